/* SPDX-License-Identifier: MIT */
/*
 * System calls, as a comparison of runs sees them: which of their arguments say where they write to and
 * read from, and what has to be done about them. Pure.
 */
#ifndef INSPECT_SAME_CALLS_H
#define INSPECT_SAME_CALLS_H

#include <stdbool.h>
#include <stdint.h>

/* How long a piece of memory is that an argument points to. */
enum same_how {
	SAME_NONE,
	SAME_OUT_RESULT, /* as many bytes as the result says */
	SAME_OUT_SIZE,   /* `size` */
	SAME_OUT_ITEMS,  /* the result times `size` */
	SAME_OUT_COUNT,  /* the argument `count` times `size` */
	SAME_OUT_VECTOR, /* struct iovec, `count` of them; the result's bytes in all */
	SAME_IN_RESULT,  /* read from, as many bytes as the result says */
	SAME_IN_VECTOR,
};

struct same_piece {
	uint8_t arg, how, count;
	uint16_t size;
};

/* What has to be done about a call. */
enum same_kind {
	SAME_PLAIN,
	SAME_RANDOM,
	SAME_CLOCK,    /* clock_gettime(clock, result) */
	SAME_TIMEVAL,  /* gettimeofday(result, zone) */
	SAME_SECONDS,  /* time(result) */
	SAME_TIMES,    /* times(result) */
	SAME_USAGE,    /* getrusage(who, result) */
	SAME_SLEEP,    /* nanosleep(time, rest) */
	SAME_SLEEP_ON, /* clock_nanosleep(clock, flags, time, rest) */
	SAME_FUTEX,
	SAME_POLL,      /* poll(fds, count, milliseconds) */
	SAME_POLL_TIME, /* ppoll(fds, count, time) */
	SAME_EPOLL,     /* epoll_wait(fd, events, count, milliseconds) */
	SAME_PID,
	SAME_CLOSE,
	SAME_DUP, /* its result is another descriptor for the first argument's */
	SAME_FCNTL,
	SAME_YIELD,
	SAME_WAKE,  /* sends a signal to a thread */
	SAME_CHILD, /* makes a process, or a thread */
	SAME_MAP,   /* mmap */
	SAME_EXEC,
	SAME_RING, /* io_uring: the kernel writes to memory by itself */
};

enum same_call_flags {
	SAME_BLOCKS = 1u << 0, /* may wait for somebody else */
	SAME_ON_FD = 1u << 1,  /* its first argument is a descriptor */
	SAME_ONCE = 1u << 2,   /* likewise, and it has an effect outside: tally_same_condition IO */
	SAME_SENDS = 1u << 3,  /* a signal */
	SAME_ENDS = 1u << 4,   /* the process */
};

#define SAME_PIECES 3

struct same_call {
	long number;
	const char *name;
	uint8_t args, kind, flags; /* enum same_kind, same_call_flags */
	struct same_piece piece[SAME_PIECES];
};

/* The row of a call; one without a name, and without anything known, for those that have none. */
const struct same_call *same_call(long number);

/* A piece of memory that a call has written or read. */
struct same_range {
	uint64_t address, len;
	bool in; /* it was read */
};

/* Reads memory of who made the call. 0 or a negative errno. */
typedef int same_peek(void *arg, uint64_t address, void *buf, uint64_t len);

/*
 * The pieces of a call that has ended with `result`; `fn` answers 0, or what ends it. A vector's parts
 * are looked up by `peek`.
 */
int same_call_ranges(const struct same_call *call, const uint64_t args[6], int64_t result,
		     same_peek *peek, int (*fn)(void *arg, const struct same_range *range),
		     void *arg);

#endif
