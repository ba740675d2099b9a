/* SPDX-License-Identifier: MIT */
/*
 * The table of system calls. What a call writes stands in section 2 of the manual; sizes are those of
 * the kernel's structures. Calls without a row are compared by their result alone, and what they write
 * is seen when memory is.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <time.h>

#include "base/bytes.h"
#include "inspect/same-calls.h"

#define VECTOR_MAX 1024 /* UIO_MAXIOV, readv(2) */

/* struct statx, statx(2), and siginfo_t: the kernel's sizes. */
#define STATX_BYTES   256
#define SIGINFO_BYTES 128
#define SIGSET_BYTES  8

#define PIECES(...) .piece = { __VA_ARGS__ }
#define RESULT(arg_)                                  \
	{                                             \
		.arg = (arg_), .how = SAME_OUT_RESULT \
	}
#define SIZE(arg_, size_)                                            \
	{                                                            \
		.arg = (arg_), .how = SAME_OUT_SIZE, .size = (size_) \
	}
#define ITEMS(arg_, size_)                                            \
	{                                                             \
		.arg = (arg_), .how = SAME_OUT_ITEMS, .size = (size_) \
	}
#define COUNT(arg_, n, size_)                                                       \
	{                                                                           \
		.arg = (arg_), .how = SAME_OUT_COUNT, .count = (n), .size = (size_) \
	}
#define VECTOR(arg_, n)                                             \
	{                                                           \
		.arg = (arg_), .how = SAME_OUT_VECTOR, .count = (n) \
	}
#define GIVEN(arg_)                                  \
	{                                            \
		.arg = (arg_), .how = SAME_IN_RESULT \
	}
#define GIVEN_VECTOR(arg_, n)                                      \
	{                                                          \
		.arg = (arg_), .how = SAME_IN_VECTOR, .count = (n) \
	}
#define CALL(name_, args_, ...)                                                     \
	{                                                                           \
		.number = SYS_##name_, .name = #name_, .args = (args_), __VA_ARGS__ \
	}
#define PLAIN(name_, args_) CALL(name_, args_, .flags = 0)
#define FD(more)            .flags = SAME_ON_FD | (more)
#define IO                  FD(SAME_ONCE | SAME_BLOCKS)

static const struct same_call rows[] = {
	/* clang-format off */
	CALL(read, 3, IO, PIECES(RESULT(1))),
	CALL(write, 3, IO, PIECES(GIVEN(1))),
	CALL(pread64, 4, IO, PIECES(RESULT(1))),
	CALL(pwrite64, 4, IO, PIECES(GIVEN(1))),
	CALL(readv, 3, IO, PIECES(VECTOR(1, 2))),
	CALL(writev, 3, IO, PIECES(GIVEN_VECTOR(1, 2))),
	CALL(preadv, 5, IO, PIECES(VECTOR(1, 2))),
	CALL(pwritev, 5, IO, PIECES(GIVEN_VECTOR(1, 2))),
	CALL(lseek, 3, FD(SAME_ONCE)),
	CALL(sendfile, 4, IO),
	CALL(copy_file_range, 6, FD(SAME_BLOCKS)),
	CALL(splice, 6, IO),
	CALL(sendto, 6, IO, PIECES(GIVEN(1))),
	CALL(recvfrom, 6, IO, PIECES(RESULT(1))),
	CALL(sendmsg, 3, FD(SAME_BLOCKS)),
	CALL(recvmsg, 3, FD(SAME_BLOCKS)),
	CALL(ioctl, 3, FD(0)),
	CALL(fstat, 2, FD(SAME_ONCE), PIECES(SIZE(1, sizeof(struct stat)))),
	CALL(fstatfs, 2, FD(0), PIECES(SIZE(1, sizeof(struct statfs)))),
	CALL(statfs, 2, PIECES(SIZE(1, sizeof(struct statfs)))),
	CALL(newfstatat, 4, FD(SAME_ONCE), PIECES(SIZE(2, sizeof(struct stat)))),
	CALL(statx, 5, FD(SAME_ONCE), PIECES(SIZE(4, STATX_BYTES))),
	CALL(getdents64, 3, FD(0), PIECES(RESULT(1))),
	CALL(readlinkat, 4, PIECES(RESULT(2))),
	CALL(getcwd, 2, PIECES(RESULT(0))),
	CALL(ftruncate, 2, FD(SAME_ONCE)),
	CALL(fsync, 1, FD(0)),
	CALL(fdatasync, 1, FD(0)),
	CALL(flock, 2, FD(SAME_BLOCKS)),
	CALL(fadvise64, 4, FD(0)),
	CALL(fallocate, 4, FD(0)),
	CALL(fchmod, 2, FD(0)),
	CALL(fchown, 3, FD(0)),
	CALL(fchdir, 1, FD(0)),
	PLAIN(openat, 4),
	PLAIN(faccessat, 3),
	PLAIN(mkdirat, 3),
	PLAIN(unlinkat, 3),
	PLAIN(renameat2, 5),
	PLAIN(linkat, 5),
	PLAIN(symlinkat, 3),
	PLAIN(fchmodat, 3),
	PLAIN(fchownat, 5),
	PLAIN(utimensat, 4),
	PLAIN(truncate, 2),
	PLAIN(umask, 1),
	PLAIN(chdir, 1),
	CALL(close, 1, FD(0), .kind = SAME_CLOSE),
	CALL(dup, 1, FD(0), .kind = SAME_DUP),
	CALL(dup3, 3, FD(0), .kind = SAME_DUP),
	CALL(fcntl, 3, FD(0), .kind = SAME_FCNTL),
	CALL(pipe2, 2, PIECES(SIZE(0, 8))),
	PLAIN(eventfd2, 2),
	PLAIN(signalfd4, 4),
	PLAIN(timerfd_create, 2),
	CALL(timerfd_settime, 4, FD(0), PIECES(SIZE(3, sizeof(struct itimerspec)))),
	CALL(timerfd_gettime, 2, FD(0), PIECES(SIZE(1, sizeof(struct itimerspec)))),
	PLAIN(inotify_init1, 1),
	CALL(inotify_add_watch, 3, FD(0)),
	PLAIN(memfd_create, 2),
	PLAIN(epoll_create1, 1),
	CALL(epoll_ctl, 4, FD(0)),
	CALL(epoll_pwait, 6, FD(SAME_BLOCKS), .kind = SAME_EPOLL,
	     PIECES(ITEMS(1, sizeof(struct epoll_event)))),
	CALL(ppoll, 5, .flags = SAME_BLOCKS, .kind = SAME_POLL_TIME,
	     PIECES(COUNT(0, 1, sizeof(struct pollfd)))),
	CALL(pselect6, 6, .flags = SAME_BLOCKS),
	PLAIN(socket, 3),
	CALL(socketpair, 4, PIECES(SIZE(3, 8))),
	CALL(connect, 3, FD(SAME_BLOCKS)),
	CALL(bind, 3, FD(0)),
	CALL(listen, 2, FD(0)),
	CALL(accept, 3, FD(SAME_BLOCKS)),
	CALL(accept4, 4, FD(SAME_BLOCKS)),
	CALL(shutdown, 2, FD(0)),
	CALL(getsockname, 3, FD(0)),
	CALL(getpeername, 3, FD(0)),
	CALL(setsockopt, 5, FD(0)),
	CALL(getsockopt, 5, FD(0)),

	CALL(mmap, 6, .kind = SAME_MAP),
	PLAIN(munmap, 2),
	PLAIN(mremap, 5),
	PLAIN(mprotect, 3),
	PLAIN(madvise, 3),
	PLAIN(brk, 1),
	PLAIN(mincore, 3),
	PLAIN(mlock, 2),
	PLAIN(membarrier, 3),
	CALL(io_setup, 2, .kind = SAME_RING),
	CALL(io_uring_setup, 2, .kind = SAME_RING),
	CALL(io_uring_enter, 6, FD(SAME_BLOCKS), .kind = SAME_RING),

	CALL(getrandom, 3, .kind = SAME_RANDOM, PIECES(RESULT(0))),
	CALL(clock_gettime, 2, .kind = SAME_CLOCK, PIECES(SIZE(1, sizeof(struct timespec)))),
	CALL(clock_getres, 2, PIECES(SIZE(1, sizeof(struct timespec)))),
	CALL(gettimeofday, 2, .kind = SAME_TIMEVAL, PIECES(SIZE(0, sizeof(struct timeval)))),
	CALL(times, 1, .kind = SAME_TIMES, PIECES(SIZE(0, sizeof(struct tms)))),
	CALL(getrusage, 2, .kind = SAME_USAGE, PIECES(SIZE(1, sizeof(struct rusage)))),
	CALL(nanosleep, 2, .flags = SAME_BLOCKS, .kind = SAME_SLEEP),
	CALL(clock_nanosleep, 4, .flags = SAME_BLOCKS, .kind = SAME_SLEEP_ON),
	CALL(getitimer, 2, PIECES(SIZE(1, sizeof(struct itimerval)))),
	CALL(setitimer, 3, PIECES(SIZE(2, sizeof(struct itimerval)))),
	CALL(timer_create, 3, PIECES(SIZE(2, 4))),
	CALL(timer_settime, 4, PIECES(SIZE(3, sizeof(struct itimerspec)))),
	CALL(timer_gettime, 2, PIECES(SIZE(1, sizeof(struct itimerspec)))),
	PLAIN(timer_delete, 1),
	CALL(sysinfo, 1, PIECES(SIZE(0, sizeof(struct sysinfo)))),
	CALL(uname, 1, PIECES(SIZE(0, sizeof(struct utsname)))),

	CALL(getpid, 0, .kind = SAME_PID),
	CALL(gettid, 0, .kind = SAME_PID),
	CALL(getppid, 0, .kind = SAME_PID),
	CALL(getpgid, 1, .kind = SAME_PID),
	CALL(getsid, 1, .kind = SAME_PID),
	CALL(setsid, 0, .kind = SAME_PID),
	PLAIN(setpgid, 2),
	CALL(set_tid_address, 1, .kind = SAME_PID),
	PLAIN(getuid, 0),
	PLAIN(getgid, 0),
	PLAIN(geteuid, 0),
	PLAIN(getegid, 0),
	CALL(getgroups, 2, PIECES(ITEMS(1, 4))),
	CALL(getcpu, 3, PIECES(SIZE(0, 4), SIZE(1, 4))),
	CALL(sched_getaffinity, 3, PIECES(RESULT(2))),
	PLAIN(sched_setaffinity, 3),
	CALL(sched_yield, 0, .kind = SAME_YIELD),
	PLAIN(getpriority, 2),
	PLAIN(setpriority, 3),
	CALL(prlimit64, 4, PIECES(SIZE(3, sizeof(struct rlimit)))),
	CALL(getrlimit, 2, PIECES(SIZE(1, sizeof(struct rlimit)))),
	PLAIN(prctl, 5),
	PLAIN(rseq, 4),
	PLAIN(set_robust_list, 2),
	CALL(futex, 6, .flags = SAME_BLOCKS, .kind = SAME_FUTEX),
	CALL(rt_sigaction, 4, PIECES(SIZE(2, 32))),
	CALL(rt_sigprocmask, 4, PIECES(SIZE(2, SIGSET_BYTES))),
	CALL(rt_sigpending, 2, PIECES(SIZE(0, SIGSET_BYTES))),
	CALL(rt_sigsuspend, 2, .flags = SAME_BLOCKS),
	CALL(rt_sigtimedwait, 4, .flags = SAME_BLOCKS, PIECES(SIZE(1, SIGINFO_BYTES))),
	PLAIN(rt_sigreturn, 0),
	PLAIN(sigaltstack, 2),
	CALL(kill, 2, .flags = SAME_SENDS),
	CALL(tkill, 2, .flags = SAME_SENDS, .kind = SAME_WAKE),
	CALL(tgkill, 3, .flags = SAME_SENDS, .kind = SAME_WAKE),
	CALL(clone, 5, .kind = SAME_CHILD),
	CALL(clone3, 2, .kind = SAME_CHILD),
	CALL(execve, 3, .kind = SAME_EXEC),
	CALL(execveat, 5, .kind = SAME_EXEC),
	CALL(wait4, 4, .flags = SAME_BLOCKS, PIECES(SIZE(1, 4), SIZE(3, sizeof(struct rusage)))),
	CALL(waitid, 5, .flags = SAME_BLOCKS, PIECES(SIZE(2, SIGINFO_BYTES), SIZE(4, sizeof(struct rusage)))),
	PLAIN(exit, 1),
	CALL(exit_group, 1, .flags = SAME_ENDS),
	PLAIN(bpf, 3),
	PLAIN(perf_event_open, 5),
#ifdef SYS_open /* x86-64 has those, too, that others need no more */
	PLAIN(open, 3),
	CALL(stat, 2, PIECES(SIZE(1, sizeof(struct stat)))),
	CALL(lstat, 2, PIECES(SIZE(1, sizeof(struct stat)))),
	PLAIN(access, 2),
	CALL(readlink, 3, PIECES(RESULT(1))),
	PLAIN(mkdir, 2),
	PLAIN(rmdir, 1),
	PLAIN(unlink, 1),
	PLAIN(rename, 2),
	PLAIN(link, 2),
	PLAIN(symlink, 2),
	PLAIN(chmod, 2),
	PLAIN(chown, 3),
	PLAIN(creat, 2),
	CALL(getdents, 3, FD(0), PIECES(RESULT(1))),
	CALL(dup2, 2, FD(0), .kind = SAME_DUP),
	CALL(pipe, 1, PIECES(SIZE(0, 8))),
	PLAIN(eventfd, 1),
	PLAIN(epoll_create, 1),
	CALL(epoll_wait, 4, FD(SAME_BLOCKS), .kind = SAME_EPOLL,
	     PIECES(ITEMS(1, sizeof(struct epoll_event)))),
	CALL(poll, 3, .flags = SAME_BLOCKS, .kind = SAME_POLL,
	     PIECES(COUNT(0, 1, sizeof(struct pollfd)))),
	CALL(select, 5, .flags = SAME_BLOCKS),
	CALL(time, 1, .kind = SAME_SECONDS, PIECES(SIZE(0, sizeof(time_t)))),
	PLAIN(alarm, 1),
	CALL(pause, 0, .flags = SAME_BLOCKS),
	CALL(getpgrp, 0, .kind = SAME_PID),
	CALL(fork, 0, .kind = SAME_CHILD),
	CALL(vfork, 0, .kind = SAME_CHILD),
	PLAIN(arch_prctl, 2),
#endif
	/* clang-format on */
};

const struct same_call *same_call(long number)
{
	static const struct same_call none = { .number = -1, .args = 6, .flags = SAME_BLOCKS };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].number == number)
			return &rows[i];
	return &none;
}

struct walk {
	same_peek *peek;
	int (*fn)(void *arg, const struct same_range *range);
	void *arg;
};

static int tell(const struct walk *w, uint64_t address, uint64_t len, bool in)
{
	const struct same_range range = { .address = address, .len = len, .in = in };

	return address && len ? w->fn(w->arg, &range) : 0;
}

static int walk_vector(const struct walk *w, uint64_t at, uint64_t count, uint64_t left, bool in)
{
	struct iovec part;
	int r = 0;

	for (uint64_t i = 0; i < count && i < VECTOR_MAX && left && r == 0; i++) {
		r = w->peek(w->arg, at + i * sizeof(part), &part, sizeof(part));
		if (r < 0)
			return r;
		uint64_t len = part.iov_len < left ? part.iov_len : left;
		r = tell(w, (uint64_t)(uintptr_t)part.iov_base, len, in);
		left -= len;
	}
	return r;
}

static int walk_piece(const struct walk *w, const struct same_piece *p, const uint64_t args[6],
		      uint64_t result)
{
	uint64_t at = args[p->arg];

	switch (p->how) {
	case SAME_OUT_RESULT:
		return tell(w, at, result, false);
	case SAME_OUT_SIZE:
		return tell(w, at, p->size, false);
	case SAME_OUT_ITEMS:
		return tell(w, at, result * p->size, false);
	case SAME_OUT_COUNT:
		return tell(w, at, args[p->count] * p->size, false);
	case SAME_OUT_VECTOR:
		return walk_vector(w, at, args[p->count], result, false);
	case SAME_IN_RESULT:
		return tell(w, at, result, true);
	case SAME_IN_VECTOR:
		return walk_vector(w, at, args[p->count], result, true);
	default:
		return 0;
	}
}

int same_call_ranges(const struct same_call *call, const uint64_t args[6], int64_t result,
		     same_peek *peek, int (*fn)(void *arg, const struct same_range *range),
		     void *arg)
{
	const struct walk w = { .peek = peek, .fn = fn, .arg = arg };
	int r = 0;

	for (size_t i = 0; i < SAME_PIECES && result >= 0 && r == 0; i++)
		r = walk_piece(&w, &call->piece[i], args, (uint64_t)result);
	return r;
}
