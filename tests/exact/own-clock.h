/* SPDX-License-Identifier: MIT */
/*
 * A backend of a clock of our own: it counts instructions, and interrupts by cycles, which are as many on an
 * emulated CPU. The library's clocks have one event for both, of which emulators of arm64 give the counter
 * that counts to the cycle counter, and the one that interrupts to one that is late.
 */
#ifndef EXACT_OWN_CLOCK_H
#define EXACT_OWN_CLOCK_H

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include "driving.h"
#include "pmu.h"

struct own {
	int counting, interrupting;
};

#define OWN_SIGNAL 16 /* SIGSTKFLT, which no kernel sends */

static inline int own_about(void *backend, struct tally_clock_about *out)
{
	*out = (struct tally_clock_about){ .ticks = TALLY_TICKS_INSTRUCTIONS,
					   .can = TALLY_CLOCK_COUNTS_FREE | TALLY_CLOCK_INTERRUPTS |
						  TALLY_CLOCK_MAY_SKID,
					   .min_period = 32,
					   .margin = 100,
					   .signal = OWN_SIGNAL,
					   .backend = "own" };
	return 0;
}

static inline int own_read(void *backend, struct tally_clock_value *out)
{
	struct own *own = backend;

	out->ticks = read_by_hand(own->counting);
	return 0;
}

static inline int own_disarm(void *backend)
{
	struct own *own = backend;

	return ioctl(own->interrupting, PERF_EVENT_IOC_DISABLE, 0) < 0 ? -errno : 0;
}

static inline int own_arm(void *backend, uint64_t period)
{
	struct own *own = backend;

	if (own_disarm(backend) < 0 ||
	    ioctl(own->interrupting, PERF_EVENT_IOC_PERIOD, &period) < 0 ||
	    ioctl(own->interrupting, PERF_EVENT_IOC_REFRESH, 1) < 0)
		return -errno;
	return 0;
}

static inline bool own_owns(void *backend, const struct tally_stop *stop)
{
	struct own *own = backend;

	return stop->kind == TALLY_STOP_SIGNAL && stop->signal == OWN_SIGNAL &&
	       stop->fd == own->interrupting;
}

static inline void own_free(void *backend)
{
	struct own *own = backend;

	close(own->counting);
	close(own->interrupting);
	free(own);
}

static inline int own_event(int32_t tid, uint64_t config, uint64_t period)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_HARDWARE,
					.size = sizeof(attr),
					.config = config,
					.sample_period = period,
					.wakeup_events = 1,
					.disabled = period != 0,
					.exclude_kernel = 1,
					.exclude_hv = 1 };

	return (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static inline int open_own(struct driven *d)
{
	static const struct tally_clock_ops ops = { .size = sizeof(ops),
						    .about = own_about,
						    .read = own_read,
						    .arm = own_arm,
						    .disarm = own_disarm,
						    .owns = own_owns,
						    .free = own_free };
	int32_t tid = tally_tracee_tid(d->tracee);
	const struct f_owner_ex owner = { F_OWNER_TID, tid };
	struct own *own = calloc(1, sizeof(*own));

	if (!own)
		return -ENOMEM;
	own->counting = own_event(tid, PERF_COUNT_HW_INSTRUCTIONS, 0);
	own->interrupting = own_event(tid, PERF_COUNT_HW_CPU_CYCLES, 1u << 30);
	int r = own->counting < 0 || own->interrupting < 0 ||
				fcntl(own->interrupting, F_SETSIG, OWN_SIGNAL) < 0 ||
				fcntl(own->interrupting, F_SETOWN_EX, &owner) < 0 ||
				fcntl(own->interrupting, F_SETFL, O_ASYNC) < 0
			? -errno
			: tally_clock_new(&d->clock, &ops, own, &d->err);
	if (r < 0)
		own_free(own);
	return r;
}

#endif
