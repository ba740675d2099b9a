/* SPDX-License-Identifier: MIT */
/* Events of the calling thread on code whose branches are known. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>

#include <linux/perf_event.h>

#include "base/sys.h"
#include "exact/selftest.h"

#define NEVER (1ull << 60)
/*
 * Iterations behind the end of a period, and how late an interrupt may come at most: one that is lost may
 * come a whole period later, which is not to be taken for this one.
 */
#define TAIL      200000
#define MOST_SKID 90000
/* While another event interrupts: each so many ticks. */
#define BESIDE_PERIOD 1000

/* An event that is open, or two whose difference it is. */
struct opened_event {
	int fd, minus;
};

static void close_event(struct opened_event *e)
{
	if (e->fd >= 0)
		sys()->close(e->fd);
	if (e->minus >= 0)
		sys()->close(e->minus);
	e->fd = e->minus = -1;
}

static int open_one(const struct tally_attr *attr)
{
	struct tally_attr copy = *attr;

	copy.flags |= TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_HV;
	copy.read_format = TALLY_READ_TIME_ENABLED | TALLY_READ_TIME_RUNNING;
	return sys()->perf_event_open(&copy, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static int open_event(struct opened_event *e, const struct tally_attr *attr, uint64_t minus)
{
	struct tally_attr other = *attr;

	e->minus = -1;
	e->fd = open_one(attr);
	if (e->fd < 0)
		return e->fd;
	if (!minus)
		return 0;
	other.config = minus;
	e->minus = open_one(&other);
	int r = e->minus;
	if (r < 0)
		close_event(e);
	return r < 0 ? r : 0;
}

/* -ENODATA: it is not on the hardware all the time. */
static int read_one(int fd, uint64_t *out)
{
	struct {
		uint64_t value, enabled, running;
	} now;
	ssize_t n = sys_read(fd, &now, sizeof(now));

	if (n < 0)
		return (int)n;
	if (n != sizeof(now) || now.enabled != now.running)
		return -ENODATA;
	*out = now.value;
	return 0;
}

static int read_event(const struct opened_event *e, uint64_t *out)
{
	uint64_t minus = 0;
	int r = read_one(e->fd, out);

	if (r == 0 && e->minus >= 0)
		r = read_one(e->minus, &minus);
	*out -= minus;
	return r;
}

static int count_load(const struct opened_event *e, enum load load, uint64_t n, uint64_t *out)
{
	uint64_t before = 0, after = 0;
	int r = read_event(e, &before);

	if (r < 0)
		return r;
	load_run(load, n);
	r = read_event(e, &after);
	*out = after - before;
	return r;
}

uint64_t trial_each(const struct trial *t, enum load load)
{
	const struct tally_retired *each = &load_each[load];

	return t->ticks == TALLY_TICKS_TAKEN ? each->taken : each->conditional;
}

/* The difference of a large and a small load, in which what is around them drops out. */
static int count_difference(const struct opened_event *e, enum load load, uint64_t *out)
{
	uint64_t small = 0, large = 0;
	int r = count_load(e, load, TRIAL_SMALL, &small);

	if (r == 0)
		r = count_load(e, load, TRIAL_LARGE, &large);
	*out = large - small;
	return r;
}

static void measure_rounds(const struct trial *t, const struct opened_event *e, enum load load,
			   struct measured *m)
{
	uint64_t got = 0, first = 0;

	m->steady = true;
	m->want = m->got = trial_each(t, load) * (TRIAL_LARGE - TRIAL_SMALL);
	/* The first one calls what is only linked when it is called. */
	m->error = count_difference(e, load, &got);
	for (uint32_t i = 0; m->error == 0 && i < t->rounds; i++) {
		m->error = count_difference(e, load, &got);
		if (i == 0)
			first = got;
		m->steady &= got == first;
		if (got != m->want) {
			m->got = got;
			m->wrong++;
		}
	}
}

struct measured trial_measure(const struct trial *t, enum load load,
			      const struct tally_attr *beside)
{
	struct opened_event e, other = { -1, -1 };
	struct measured m = { 0 };

	m.error = open_event(&e, &t->attr, t->minus);
	if (m.error < 0)
		return m;
	if (beside) {
		struct tally_attr attr = *beside;
		attr.sample_period = BESIDE_PERIOD;
		attr.wakeup_events = 1;
		m.error = open_event(&other, &attr, 0);
	}
	if (m.error == 0)
		measure_rounds(t, &e, load, &m);
	close_event(&other);
	close_event(&e);
	return m;
}

int trial_count(const struct trial *t, const struct tally_attr *attr, enum load load, uint64_t n,
		uint64_t *out)
{
	struct opened_event e;
	int r = open_event(&e, attr, 0);

	if (r < 0)
		return r;
	r = count_load(&e, load, n, out);
	close_event(&e);
	return r;
}

int trial_second(const struct trial *t, uint64_t n, uint64_t *second)
{
	struct tally_attr sampling = t->attr;
	struct opened_event a, b;
	uint64_t before = 0, after = 0;
	int r = open_event(&a, &t->attr, t->minus);

	if (r < 0)
		return r;
	sampling.sample_period = NEVER;
	r = open_event(&b, &sampling, 0);
	if (r == 0) {
		r = read_one(b.fd, &before);
		load_run(LOAD_TAKEN, n);
		if (r == 0)
			r = read_one(b.fd, &after);
		*second = after - before;
		close_event(&b);
	}
	close_event(&a);
	return r;
}

int trial_bind(int32_t cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) < 0 ? -errno : 0;
}

/* Runs until long behind the period, on another CPU for a third of it. */
static void run_past(const struct trial *t, uint64_t period, int32_t to)
{
	uint64_t third = period / 3 + 1;

	load_run(LOAD_TAKEN, third);
	if (to >= 0)
		trial_bind(to);
	load_run(LOAD_TAKEN, third);
	if (to >= 0)
		trial_bind(t->cpu);
	load_run(LOAD_TAKEN, third + TAIL);
}

/*
 * IOC_REFRESH with 1 disables the event at its first overflow, in the interrupt: what it has
 * counted beyond the period is how late that came.
 */
int64_t trial_interrupt(const struct trial *t, uint64_t period, int32_t to)
{
	struct tally_attr attr = t->attr;
	struct opened_event e;
	uint64_t count = 0;

	attr.flags |= TALLY_ATTR_DISABLED;
	attr.sample_period = NEVER;
	attr.wakeup_events = 1;
	int r = open_event(&e, &attr, 0);
	if (r < 0)
		return r;
	r = sys()->ioctl(e.fd, PERF_EVENT_IOC_PERIOD, (unsigned long)&period);
	if (r == 0)
		r = sys()->ioctl(e.fd, PERF_EVENT_IOC_REFRESH, 1);
	if (r == 0) {
		run_past(t, period, to);
		r = read_one(e.fd, &count);
	}
	close_event(&e);
	if (r < 0)
		return r;
	return count < period || count - period > MOST_SKID ? -ENODATA : (int64_t)(count - period);
}
