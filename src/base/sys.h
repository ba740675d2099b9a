/* SPDX-License-Identifier: MIT */
/*
 * Every system call that can fail in a way worth testing, behind one table. The library calls
 * `sys()->read(...)`; sys() gives the kernel's table, and a unit test that defines its own sys()
 * gives another, so that errno paths are tested without a kernel that produces them.
 *
 * All answer a value >= 0 or a negative errno. None retries but read and write, on EINTR.
 */
#ifndef BASE_SYS_H
#define BASE_SYS_H

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>

struct sys_table {
	/* `attr` points to a struct tally_attr, whose size field tells how much of it counts. */
	int (*perf_event_open)(void *attr, pid_t pid, int cpu, int group_fd, unsigned long flags);
	/* The argument is unsigned long: a plain int -1 would arrive as 0xffffffff. */
	int (*ioctl)(int fd, unsigned long request, unsigned long arg);
	ssize_t (*read)(int fd, void *buf, size_t len);
	/*
	 * The C library's read() itself, without a function of ours between: see sys_read(). What
	 * replaces `read` replaces it too.
	 */
	ssize_t (*plain_read)(int fd, void *buf, size_t len);
	ssize_t (*write)(int fd, const void *buf, size_t len);
	ssize_t (*writev)(int fd, const struct iovec *iov, int count);
	ssize_t (*pread)(int fd, void *buf, size_t len, off_t offset);
	ssize_t (*pwrite)(int fd, const void *buf, size_t len, off_t offset);
	int (*open)(const char *path, int flags, mode_t mode); /* adds O_CLOEXEC */
	int (*close)(int fd);
	int (*fcntl)(int fd, int cmd, unsigned long arg);
	int (*mmap)(void **addr, size_t len, int prot, int flags, int fd, off_t offset);
	int (*munmap)(void *addr, size_t len);
	int (*madvise)(void *addr, size_t len, int advice);
	int (*poll)(struct pollfd *fds, nfds_t count, int timeout_ms);
	/* Requests that answer no data: SEIZE, INTERRUPT, CONT, DETACH. */
	long (*ptrace)(int request, pid_t pid, unsigned long addr, unsigned long data);
	/* `info` is zeroed first, so that its si_pid stays 0 when WNOHANG finds nothing. */
	int (*waitid)(idtype_t type, id_t id, siginfo_t *info, int options);
	int (*bpf)(int cmd, void *attr, unsigned int size); /* bpf(2), of a union bpf_attr */
	int (*sleep_ns)(uint64_t ns);                       /* a signal may end it early */
};

const struct sys_table *sys(void);

/*
 * As sys()->read(), for counters: after a system call each return from a function is mispredicted,
 * and costs as much as a hundredth of the call.
 */
static inline ssize_t sys_read(int fd, void *buf, size_t len)
{
	ssize_t n = sys()->plain_read(fd, buf, len);

	return __builtin_expect(n < 0, 0) ? sys()->read(fd, buf, len) : n;
}

/* Write all of it, however many calls that takes: 0 or a negative errno, -EIO where none is told. */
int sys_write_all(int fd, const void *buf, size_t len);
int sys_pwrite_all(int fd, const void *buf, size_t len, uint64_t offset);

/* Read all of a piece of a file of `size` bytes; false: it is not in there, or cannot be read. */
bool sys_pread_all(int fd, void *buf, size_t len, uint64_t offset, uint64_t size);

/* The kernel's own table, for tests that replace only a few entries. */
extern const struct sys_table sys_kernel;

#endif
