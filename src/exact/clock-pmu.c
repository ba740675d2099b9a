/* SPDX-License-Identifier: MIT */
/*
 * The clock that a hardware counter of the thread is. Two events: one counts, and is never touched;
 * the other interrupts. One event for both would lose counts around its overflows. Both count what the
 * thread does in its own code alone, and the one that counts is pinned: when it cannot be on the
 * hardware, it says so by an end of file.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/perf_event.h>
#include <tally/attr.h>
#include <tally/clock.h>
#include <tally/fast.h>
#include <tally/selftest.h>

#include "base/error.h"
#include "base/sys.h"
#include "count/signal.h"
#include "event/cpu.h"
#include "event/explain.h"
#include "exact/tracee.h"
#include "exact/uarch.h"

/* A signal that the kernel never sends by itself, signal(7); its C name is gone from some headers. */
#define SIGNAL_DEFAULT 16 /* SIGSTKFLT */

/* Some Intel CPUs, and the kernel for them, take no shorter periods (intel_pmu_limit_period()). */
#define MIN_PERIOD 32u
#define MAX_PERIOD (1ull << 30) /* a counter of 32 bits, whose sign bit is not to be used */
#define NEVER      (1ull << 60)
#define SEEN_TIMES 2 /* the margin is at least so many times what was seen */

/* Conditional branches a second of a usual program: 3 GHz, 2 instructions a cycle, one in ten. */
#define RATE 600e6

struct pmu_clock {
	const struct tally_tracee *tracee;
	struct tally_clock_about about;
	struct tally_attr attr;
	int counting, minus, sampling; /* -1: none */
	const volatile struct tally_fast_page_ *page;
	int signal;
};

struct reading {
	uint64_t value, enabled, running;
};

/* While the thread is stopped its counter is on no hardware, and the page has the whole count. */
static bool read_page(const struct pmu_clock *c, struct reading *out)
{
	const volatile struct tally_fast_page_ *page = c->page;

	if (!page)
		return false;
	/* Acquire: pairs with the barriers of perf_event_update_userpage(). */
	uint32_t lock = __atomic_load_n(&page->lock, __ATOMIC_ACQUIRE);
	uint32_t index = page->index;
	out->value = (uint64_t)page->offset;
	out->enabled = page->time_enabled;
	out->running = page->time_running;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	/* An event that was not on the hardware all the time is left to read(2), which knows why. */
	return !(lock & 1) && page->lock == lock && index == 0 && out->enabled == out->running &&
	       out->enabled > 0;
}

static int read_event(int fd, uint64_t *value, struct tally_clock_value *out)
{
	struct reading now;
	ssize_t n = sys_read(fd, &now, sizeof(now));

	if (n < 0) {
		out->validity = TALLY_CLOCK_FAILED;
		out->error = (int32_t)n;
	} else if (n != sizeof(now) || now.enabled != now.running) {
		out->validity = TALLY_CLOCK_NOT_COUNTING;
	} else {
		*value = now.value;
	}
	return 0;
}

static int read_clock(void *self, struct tally_clock_value *out)
{
	const struct pmu_clock *c = self;
	struct reading now;
	uint64_t minus = 0;

	if (c->minus < 0 && read_page(c, &now)) {
		out->ticks = now.value;
		return 0;
	}
	read_event(c->counting, &out->ticks, out);
	if (c->minus >= 0 && out->validity == TALLY_CLOCK_VALID)
		read_event(c->minus, &minus, out);
	out->ticks -= minus;
	return 0;
}

static int about(void *self, struct tally_clock_about *out)
{
	const struct pmu_clock *c = self;

	*out = c->about;
	return 0;
}

static int disarm(void *self)
{
	const struct pmu_clock *c = self;

	return sys()->ioctl(c->sampling, PERF_EVENT_IOC_DISABLE, 0);
}

/* IOC_REFRESH: one overflow, which disables the event again. */
static int arm(void *self, uint64_t period)
{
	const struct pmu_clock *c = self;
	int r = disarm(self);

	if (r == 0)
		r = sys()->ioctl(c->sampling, PERF_EVENT_IOC_PERIOD, (unsigned long)&period);
	if (r == 0)
		r = sys()->ioctl(c->sampling, PERF_EVENT_IOC_REFRESH, 1);
	return r;
}

/* The overflow that disables is told as a hang-up (perf_event_overflow(), kernel/events/core.c). */
static bool owns(void *self, const struct tally_stop *stop)
{
	const struct pmu_clock *c = self;

	return stop->kind == TALLY_STOP_SIGNAL && stop->signal == c->signal &&
	       stop->fd == c->sampling && (stop->code == POLL_IN || stop->code == POLL_HUP);
}

static void close_one(int fd)
{
	if (fd >= 0)
		sys()->close(fd);
}

static void free_clock(void *self)
{
	struct pmu_clock *c = self;

	if (c->page)
		sys()->munmap((void *)(uintptr_t)c->page, (size_t)sysconf(_SC_PAGESIZE));
	close_one(c->counting);
	close_one(c->minus);
	close_one(c->sampling);
	free(c);
}

static int open_event(struct pmu_clock *c, int *fd, const struct tally_attr *attr,
		      struct tally_error *err)
{
	struct tally_attr copy = *attr;

	*fd = sys()->perf_event_open(&copy, c->tracee->tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (*fd >= 0)
		return 0;
	int code = *fd;
	return explain_open(err, code, tally_ticks_name(c->about.ticks), &copy, c->tracee->tid, -1,
			    NULL);
}

static int open_events(struct pmu_clock *c, uint64_t minus, struct tally_error *err)
{
	struct tally_attr counting = c->attr, sampling = c->attr;

	counting.flags |= TALLY_ATTR_PINNED;
	counting.read_format = TALLY_READ_TIME_ENABLED | TALLY_READ_TIME_RUNNING;
	sampling.flags |= TALLY_ATTR_DISABLED;
	sampling.sample_period = NEVER;
	sampling.wakeup_events = 1;
	int r = open_event(c, &c->counting, &counting, err);
	if (r == 0 && minus) {
		counting.config = minus;
		r = open_event(c, &c->minus, &counting, err);
	}
	if (r == 0)
		r = open_event(c, &c->sampling, &sampling, err);
	if (r < 0)
		return r;
	r = signal_send(c->sampling, c->signal, c->tracee->tid);
	if (r < 0)
		return error_set(err, r, TALLY_CAUSE_PERMISSION,
				 "overflows cannot be sent to thread %d as signal %d: %s",
				 c->tracee->tid, c->signal, strerror(-r));
	void *page = NULL;
	if (sys()->mmap(&page, (size_t)sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, c->counting,
			0) == 0)
		c->page = page; /* without it each read is a system call */
	return 0;
}

/* Semantics that every PMU has a generic event for, which interrupts and faults add to. */
static bool is_generic(struct pmu_clock *c)
{
	uint32_t ticks = c->about.ticks;

	if (ticks != TALLY_TICKS_INSTRUCTIONS && ticks != TALLY_TICKS_BRANCHES)
		return false;
	c->attr.type = TALLY_TYPE_HARDWARE;
	c->attr.config = ticks == TALLY_TICKS_INSTRUCTIONS ? TALLY_HW_INSTRUCTIONS
							   : TALLY_HW_BRANCH_INSTRUCTIONS;
	c->about.quirks = TALLY_CLOCK_COUNTS_TRAPS;
	return true;
}

static int no_event(struct tally_error *err, const char *identity, uint32_t ticks,
		    const struct uarch *row)
{
	if (row && row->ticks)
		return error_set(
			err, -ENOTSUP, TALLY_CAUSE_UNSUPPORTED,
			"the counters of this CPU (%s, %s) have no event for %s; they have "
			"one for %s",
			identity, row->name, tally_ticks_name(ticks), tally_ticks_name(row->ticks));
	return error_set(err, -ENOTSUP, TALLY_CAUSE_UNSUPPORTED,
			 "no event is known that counts %s exactly on this CPU (%s%s%s); the step "
			 "clock works everywhere",
			 tally_ticks_name(ticks), identity, row ? ", " : "", row ? row->name : "");
}

/* By the table of CPUs, for the one that is identified. */
static int choose_event(struct pmu_clock *c, const struct uarch_pmu *pmu, const struct uarch *row,
			uint64_t *minus, struct tally_error *err)
{
	if (is_generic(c))
		return 0;
	if (!row || row->ticks != c->about.ticks)
		return no_event(err, c->about.identity, c->about.ticks, row);
	c->attr.type = pmu->type;
	c->attr.config = row->config;
	*minus = row->minus;
	return 0;
}

/* What was tried out. */
static int take_tried(struct pmu_clock *c, const struct tally_selftest *tried, uint64_t *minus,
		      struct tally_error *err)
{
	if (tried->ticks != c->about.ticks)
		return error_set(
			err, -ENOTSUP, TALLY_CAUSE_UNSUPPORTED,
			"the counters of this machine were tried and do not count %s exactly; "
			"'tally doctor' tells more",
			tally_ticks_name(c->about.ticks));
	c->attr = tried->attr;
	*minus = tried->minus;
	c->about.quirks = tried->quirks;
	if (tried->min_period > c->about.min_period)
		c->about.min_period = tried->min_period;
	/* A few tries do not show the latest that there is. */
	if (tried->skids.max > c->about.margin / SEEN_TIMES)
		c->about.margin = tried->skids.max * SEEN_TIMES;
	if (tried->ticks == TALLY_TICKS_CONDITIONAL && !tried->quirks)
		c->about.can |= TALLY_CLOCK_FOLLOWS_STEPS;
	return 0;
}

/* For the CPU that the caller is on, where the tracee is, too, when it is to be counted for sure. */
static int find_event(struct pmu_clock *c, const struct tally_selftest *tried, uint64_t *minus,
		      struct tally_error *err)
{
	char identity[CPU_IDENTITY_MAX] = "unknown";
	struct uarch_pmu pmu = { "?", 0 };
	int cpu = sched_getcpu(), r = uarch_pmu(&pmu, NULL, cpu);

	if (r < 0 && !tried)
		return error_set(err, r, TALLY_CAUSE_NO_PMU,
				 "this machine shows no hardware counters (%s); a virtual machine "
				 "has them only when it is set up so",
				 strerror(-r));
	cpu_identity(identity, NULL, cpu);
	snprintf(c->about.identity, sizeof(c->about.identity), "%s %s", pmu.name, identity);
	const struct uarch *row = uarch_of(identity, pmu.name);
	c->about.margin = row && row->margin ? row->margin : 1000;
	return tried ? take_tried(c, tried, minus, err) : choose_event(c, &pmu, row, minus, err);
}

static int check_opts(const struct tally_clock_pmu_opts *o, uint32_t ticks, struct tally_error *err)
{
	if (ticks < TALLY_TICKS_CONDITIONAL || ticks > TALLY_TICKS_OTHER ||
	    (ticks == TALLY_TICKS_OTHER && !o->attr))
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
				 "a counter's clock has no ticks of kind %u%s", ticks,
				 ticks == TALLY_TICKS_OTHER ? " without an attr" : "");
	if (o->attr && o->tried)
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
				 "a counter's clock takes an event or what was tried, not both");
	if (o->signal < 0 || o->signal > SIGRTMAX || o->signal == SIGKILL || o->signal == SIGSTOP ||
	    o->signal == SIGTRAP)
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
				 "signal %d cannot tell of a counter's overflow: one of 1 to %d is "
				 "needed, and not SIGKILL, SIGSTOP or SIGTRAP",
				 o->signal, SIGRTMAX);
	return 0;
}

int tally_clock_open_pmu(struct tally_clock **out, struct tally_tracee *tracee, uint32_t ticks,
			 const struct tally_clock_pmu_opts *opts, struct tally_error *err)
{
	static const struct tally_clock_ops ops = {
		.size = sizeof(ops),
		.about = about,
		.read = read_clock,
		.arm = arm,
		.disarm = disarm,
		.owns = owns,
		.free = free_clock,
	};
	struct tally_clock_pmu_opts o;
	uint64_t minus = 0;
	int r = opts_read(&o, sizeof(o), 0, opts, err);

	if (r == 0)
		r = check_opts(&o, ticks, err);
	if (r < 0)
		return r;
	struct pmu_clock *c = calloc(1, sizeof(*c));
	if (!c)
		return error_nomem(err, "a clock");
	c->tracee = tracee;
	c->counting = c->minus = c->sampling = -1;
	c->signal = o.signal ? o.signal : SIGNAL_DEFAULT;
	c->about.ticks = ticks;
	c->about.signal = c->signal;
	c->about.can = TALLY_CLOCK_COUNTS_FREE | TALLY_CLOCK_INTERRUPTS | TALLY_CLOCK_MAY_SKID;
	c->about.min_period = MIN_PERIOD;
	c->about.max_period = MAX_PERIOD;
	c->about.rate = RATE;
	memcpy(c->about.backend, "pmu", sizeof("pmu"));
	if (o.attr)
		c->attr = *o.attr;
	else
		r = find_event(c, o.tried, &minus, err);
	if (o.margin)
		c->about.margin = o.margin;
	c->attr.flags |= TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_HV;
	if (r == 0)
		r = open_events(c, minus, err);
	if (r < 0) {
		free_clock(c);
		return r;
	}
	return tally_clock_new(out, &ops, c, err);
}
