/* SPDX-License-Identifier: MIT */
/* The kernel's table of system calls: -errno instead of errno, close-on-exec always. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/sys.h"

static long answer(long result)
{
	return result < 0 ? -errno : result;
}

static int kernel_perf_event_open(void *attr, pid_t pid, int cpu, int group_fd, unsigned long flags)
{
	return (int)answer(syscall(SYS_perf_event_open, attr, pid, cpu, group_fd, flags));
}

static int kernel_ioctl(int fd, unsigned long request, unsigned long arg)
{
	return (int)answer(ioctl(fd, request, arg));
}

static ssize_t kernel_read(int fd, void *buf, size_t len)
{
	ssize_t n;

	do
		n = read(fd, buf, len);
	while (n < 0 && errno == EINTR);
	return answer(n);
}

static ssize_t kernel_write(int fd, const void *buf, size_t len)
{
	ssize_t n;

	do
		n = write(fd, buf, len);
	while (n < 0 && errno == EINTR);
	return answer(n);
}

static ssize_t kernel_writev(int fd, const struct iovec *iov, int count)
{
	ssize_t n;

	do
		n = writev(fd, iov, count);
	while (n < 0 && errno == EINTR);
	return answer(n);
}

static ssize_t kernel_pread(int fd, void *buf, size_t len, off_t offset)
{
	ssize_t n;

	do
		n = pread(fd, buf, len, offset);
	while (n < 0 && errno == EINTR);
	return answer(n);
}

static ssize_t kernel_pwrite(int fd, const void *buf, size_t len, off_t offset)
{
	ssize_t n;

	do
		n = pwrite(fd, buf, len, offset);
	while (n < 0 && errno == EINTR);
	return answer(n);
}

static int kernel_open(const char *path, int flags, mode_t mode)
{
	return (int)answer(open(path, flags | O_CLOEXEC, mode));
}

static int kernel_close(int fd)
{
	return (int)answer(close(fd));
}

static int kernel_fcntl(int fd, int cmd, unsigned long arg)
{
	return (int)answer(fcntl(fd, cmd, arg));
}

static int kernel_mmap(void **addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	void *at = mmap(*addr, len, prot, flags, fd, offset);

	if (at == MAP_FAILED)
		return -errno;
	*addr = at;
	return 0;
}

static int kernel_munmap(void *addr, size_t len)
{
	return (int)answer(munmap(addr, len));
}

static int kernel_madvise(void *addr, size_t len, int advice)
{
	return (int)answer(madvise(addr, len, advice));
}

static int kernel_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	return (int)answer(poll(fds, count, timeout_ms));
}

static long kernel_ptrace(int request, pid_t pid, unsigned long addr, unsigned long data)
{
	return answer(syscall(SYS_ptrace, request, pid, addr, data));
}

static int kernel_waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
	memset(info, 0, sizeof(*info));
	return (int)answer(waitid(type, id, info, options));
}

static int kernel_bpf(int cmd, void *attr, unsigned int size)
{
	return (int)answer(syscall(SYS_bpf, cmd, attr, size));
}

static int kernel_sleep_ns(uint64_t ns)
{
	const struct timespec t = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };

	return (int)answer(nanosleep(&t, NULL));
}

const struct sys_table sys_kernel = {
	.perf_event_open = kernel_perf_event_open,
	.ioctl = kernel_ioctl,
	.read = kernel_read,
	.plain_read = read,
	.write = kernel_write,
	.writev = kernel_writev,
	.pread = kernel_pread,
	.pwrite = kernel_pwrite,
	.open = kernel_open,
	.close = kernel_close,
	.fcntl = kernel_fcntl,
	.mmap = kernel_mmap,
	.munmap = kernel_munmap,
	.madvise = kernel_madvise,
	.poll = kernel_poll,
	.ptrace = kernel_ptrace,
	.waitid = kernel_waitid,
	.bpf = kernel_bpf,
	.sleep_ns = kernel_sleep_ns,
};

int sys_write_all(int fd, const void *buf, size_t len)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = sys()->write(fd, (const char *)buf + done, len - done);
		if (n == -EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? (int)n : -EIO;
		done += (size_t)n;
	}
	return 0;
}

int sys_pwrite_all(int fd, const void *buf, size_t len, uint64_t offset)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = sys()->pwrite(fd, (const char *)buf + done, len - done,
					  (off_t)(offset + done));
		if (n == -EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? (int)n : -EIO;
		done += (size_t)n;
	}
	return 0;
}

bool sys_pread_all(int fd, void *buf, size_t len, uint64_t offset, uint64_t size)
{
	char *to = buf;

	if (offset > size || len > size - offset)
		return false;
	while (len) {
		ssize_t n = sys()->pread(fd, to, len, (off_t)offset);
		if (n <= 0)
			return false;
		to += n;
		offset += (uint64_t)n;
		len -= (size_t)n;
	}
	return true;
}
