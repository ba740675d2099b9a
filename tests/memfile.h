/* SPDX-License-Identifier: MIT */
/*
 * One file in memory for what reads by sys()->open() and ->pread(): any path opens it. Include it
 * once in a test program; it defines sys().
 */
#ifndef TESTS_MEMFILE_H
#define TESTS_MEMFILE_H

#include <errno.h>
#include <string.h>

#include "base/sys.h"

#define MEMFILE_FD 100000

static struct {
	const unsigned char *at;
	size_t len;
	int open;             /* how often it is open now */
	int refuse_open;      /* an errno, negative */
	int fail_pread_after; /* so many reads succeed, the next is EIO; 0: all do */
	size_t most;          /* bytes that one pread gives at most, 0: any number */
	int preads;
} memfile;

static int memfile_open(const char *path, int flags, mode_t mode)
{
	(void)path, (void)flags, (void)mode;
	if (memfile.refuse_open)
		return memfile.refuse_open;
	memfile.open++;
	return MEMFILE_FD;
}

static ssize_t memfile_pread(int fd, void *buf, size_t len, off_t offset)
{
	if (fd != MEMFILE_FD || offset < 0)
		return -EBADF;
	if (++memfile.preads == memfile.fail_pread_after)
		return -EIO;
	if ((size_t)offset >= memfile.len)
		return 0;
	size_t rest = memfile.len - (size_t)offset;
	if (len > rest)
		len = rest;
	if (memfile.most && len > memfile.most)
		len = memfile.most;
	memcpy(buf, memfile.at + offset, len);
	return (ssize_t)len;
}

static int memfile_close(int fd)
{
	if (fd != MEMFILE_FD)
		return sys_kernel.close(fd);
	memfile.open--;
	return 0;
}

const struct sys_table *sys(void)
{
	static struct sys_table table;

	if (!table.open) {
		table = sys_kernel;
		table.open = memfile_open;
		table.pread = memfile_pread;
		table.close = memfile_close;
	}
	return &table;
}

#endif
