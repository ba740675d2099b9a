/* SPDX-License-Identifier: MIT */
/*
 * What the program is told of time and chance, when that is to be the same in all runs. A clock shows
 * where it stood when the runs were started, and a nanosecond more each tick; a call that has slept adds
 * what it was asked to sleep.
 */
#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "inspect/same.h"

#define NS           1000000000u
#define NS_PER_US    1000u
#define NS_PER_MS    1000000u
#define NS_PER_CLOCK 10000000u /* of times(2): USER_HZ is 100 on both machines */

uint64_t same_now(const struct same_run *run)
{
	return run->ticks + run->slept;
}

uint64_t same_number(struct same_run *run)
{
	return hash_u64(++run->random);
}

/* CPU time (numbers that clock_getcpuclockid(3) makes, too) begins with the program. */
static uint64_t clock_value(const struct same_run *run, uint64_t clock)
{
	return (clock < SAME_CLOCKS ? run->same->clocks[clock] : 0) + same_now(run);
}

static int poke(struct same_thread *t, uint64_t at, const void *bytes, size_t len)
{
	return at ? tally_tracee_poke(t->tracee, at, bytes, len) : 0;
}

static int answer_random(struct same_run *run, struct same_thread *t, int64_t *result)
{
	uint64_t at = t->pending.args[0], left = (uint64_t)*result, number;
	int r = 0;

	while (left && r == 0) {
		size_t len = left < sizeof(number) ? left : sizeof(number);
		number = same_number(run);
		r = poke(t, at, &number, len);
		at += len;
		left -= len;
	}
	return r;
}

static int answer_clock(struct same_run *run, struct same_thread *t, int64_t *result)
{
	uint64_t ns = clock_value(run, t->pending.args[0]);
	const struct timespec time = { (time_t)(ns / NS), (long)(ns % NS) };

	return poke(t, t->pending.args[1], &time, sizeof(time));
}

static int answer_timeval(struct same_run *run, struct same_thread *t, int64_t *result)
{
	uint64_t ns = clock_value(run, CLOCK_REALTIME);
	const struct timeval time = { (time_t)(ns / NS), (suseconds_t)(ns % NS / NS_PER_US) };

	return poke(t, t->pending.args[0], &time, sizeof(time));
}

static int answer_seconds(struct same_run *run, struct same_thread *t, int64_t *result)
{
	int64_t seconds = (int64_t)(clock_value(run, CLOCK_REALTIME) / NS);

	*result = seconds;
	return poke(t, t->pending.args[0], &seconds, sizeof(seconds));
}

static int answer_times(struct same_run *run, struct same_thread *t, int64_t *result)
{
	const struct tms times = { .tms_utime = (clock_t)(same_now(run) / NS_PER_CLOCK) };

	*result = (int64_t)(clock_value(run, CLOCK_MONOTONIC) / NS_PER_CLOCK);
	return poke(t, t->pending.args[0], &times, sizeof(times));
}

static int answer_usage(struct same_run *run, struct same_thread *t, int64_t *result)
{
	uint64_t ns = same_now(run);
	const struct timeval times[2] = {
		{ (time_t)(ns / NS), (suseconds_t)(ns % NS / NS_PER_US) },
	};

	return poke(t, t->pending.args[1], times, sizeof(times));
}

static const struct {
	int (*answer)(struct same_run *run, struct same_thread *t, int64_t *result);
	uint32_t condition;
} answers[] = {
	[SAME_RANDOM] = { answer_random, TALLY_SAME_RANDOM },
	[SAME_CLOCK] = { answer_clock, TALLY_SAME_TIME },
	[SAME_TIMEVAL] = { answer_timeval, TALLY_SAME_TIME },
	[SAME_SECONDS] = { answer_seconds, TALLY_SAME_TIME },
	[SAME_TIMES] = { answer_times, TALLY_SAME_TIME },
	[SAME_USAGE] = { answer_usage, TALLY_SAME_TIME },
};

static uint64_t span_of(const struct timespec *time)
{
	return (uint64_t)time->tv_sec * NS + (uint64_t)time->tv_nsec;
}

/* A time that a call was given; UINT64_MAX: none. */
static uint64_t read_time(struct same_thread *t, uint64_t at)
{
	struct timespec time;

	return at && tally_tracee_peek(t->tracee, at, &time, sizeof(time)) == 0 ? span_of(&time)
										: UINT64_MAX;
}

/* From an absolute time to how long that is. */
static uint64_t until(struct same_run *run, uint64_t clock, uint64_t time)
{
	uint64_t now = clock_value(run, clock);

	return time == UINT64_MAX ? time : time > now ? time - now : 0;
}

static uint64_t milliseconds(uint64_t ms)
{
	return (int32_t)ms < 0 ? UINT64_MAX : ms * NS_PER_MS;
}

/* futex(2): FUTEX_WAIT's is relative, the others' are absolute. */
static uint64_t futex_lasts(struct same_run *run, struct same_thread *t)
{
	const uint64_t *args = t->pending.args;
	unsigned op = (unsigned)args[1] & FUTEX_CMD_MASK;

	if (op == FUTEX_WAIT)
		return read_time(t, args[3]);
	if (op == FUTEX_WAIT_BITSET)
		return until(run, args[1] & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC,
			     read_time(t, args[3]));
	return UINT64_MAX;
}

void same_lasts(struct same_run *run, struct same_thread *t)
{
	struct same_pending *p = &t->pending;

	switch (p->call->kind) {
	case SAME_SLEEP:
		p->lasts = read_time(t, p->args[0]);
		break;
	case SAME_SLEEP_ON:
		p->lasts = read_time(t, p->args[2]);
		if (p->args[1] & TIMER_ABSTIME)
			p->lasts = until(run, p->args[0], p->lasts);
		break;
	case SAME_FUTEX:
		p->lasts = futex_lasts(run, t);
		break;
	case SAME_POLL:
		p->lasts = milliseconds(p->args[2]);
		break;
	case SAME_EPOLL:
		p->lasts = milliseconds(p->args[3]);
		break;
	case SAME_POLL_TIME:
		p->lasts = read_time(t, p->args[2]);
		break;
	default:
		p->lasts = UINT64_MAX;
	}
}

int same_answer_call(struct same_run *run, struct same_thread *t, int64_t *result)
{
	const struct same_pending *p = &t->pending;
	uint32_t kind = p->call->kind;

	if (p->lasts != UINT64_MAX && !t->done && *result == (kind == SAME_FUTEX ? -ETIMEDOUT : 0))
		run->slept += p->lasts;
	if (*result < 0 || kind >= ARRAY_SIZE(answers) || !answers[kind].answer ||
	    !same_fixes(run->same, answers[kind].condition))
		return 0;
	return answers[kind].answer(run, t, result);
}

/* Whether it is the vDSO's own, which reads a page of the kernel's beside it. */
static bool in_vdso(const struct same_run *run, uint64_t pc)
{
	const uint64_t vdso_max = 4 * 4096;

	return run->vdso && pc >= run->vdso && pc - run->vdso < vdso_max;
}

int same_answer_insn(struct same_run *run, struct same_thread *t)
{
	bool random = t->insn.kind == SAME_INSN_RDRAND || t->insn.kind == SAME_INSN_RDSEED ||
		      t->insn.kind == SAME_INSN_RNDR;
	uint32_t condition = random ? TALLY_SAME_RANDOM : TALLY_SAME_TSC;

	if (!same_fixes(run->same, condition) || (!random && in_vdso(run, run->step.pc)))
		return 0;
	same_insn_answer(&t->regs, &t->insn,
			 random ? same_number(run) : run->same->tsc + same_now(run));
	return 1;
}
