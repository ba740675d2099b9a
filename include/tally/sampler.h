/* SPDX-License-Identifier: MIT */
/*
 * tally_sampler: events that sample a target into as few rings as the kernel allows.
 *
 * A ring belongs to a CPU (or, for one thread alone, to that thread); all events and threads on a
 * CPU share its ring. Every record carries TIME, TID and, with several events, IDENTIFIER, so that
 * a record's event is found by its id. Besides the samples the rings carry the side-band that names
 * addresses later: MMAP2, COMM, FORK, EXIT.
 */
#ifndef TALLY_SAMPLER_H
#define TALLY_SAMPLER_H

#include <tally/api.h>
#include <tally/error.h>
#include <tally/event.h>
#include <tally/ring.h>
#include <tally/target.h>

TALLY_BEGIN_DECLS

struct tally_sampler;

enum tally_sampler_flags {
	TALLY_SAMPLER_CALLCHAIN = 1u << 0, /* callchains by frame pointers */
	TALLY_SAMPLER_NO_INHERIT =
		1u << 1, /* PROCESS, COMMAND: do not follow new threads and children */
	TALLY_SAMPLER_PERF_CLOCK =
		1u << 2, /* time stamps of the kernel's perf clock, not CLOCK_MONOTONIC */
	/*
	 * Build-ids in MMAP2 instead of inodes [5.12]. Mind the neighbours: kernels up to 6.18 at
	 * least then mark MMAP2 records of every other listener on the machine as having one, which
	 * crashes perf 6.1 while it records.
	 */
	TALLY_SAMPLER_BUILD_ID = 1u << 3,
};

struct tally_sampler_opts {
	uint32_t size, flags; /* enum tally_sampler_flags */
	/* For all events but those whose names have their own (pmu/.../ with period= or freq=). */
	uint64_t freq;        /* samples a second and CPU; 0 with period 0: 4000, as perf */
	uint64_t period;      /* events a sample; wins over freq */
	uint64_t sample_type; /* TALLY_SAMPLE_* bits beyond IP, TID, TIME, PERIOD and CPU */
	/*
	 * A ring; 0: room for half a second at the rate that was asked for, 8 MiB for events by a
	 * period; within the mlock budget, and 256 MiB for all rings at most.
	 */
	uint64_t ring_bytes;
	uint64_t watermark; /* bytes in a ring that wake the reader; 0: a quarter of the ring */
	const char *root;   /* folder above /proc and /sys; NULL: the real one. Borrowed. */
};

/*
 * Opens all events of the list on the target, disabled; a COMMAND is enabled by its exec.
 * `events` must outlive the sampler. A frequency beyond kernel.perf_event_max_sample_rate is
 * lowered to it, and one beyond what a machine carries with a software clock (see
 * tally_sampler_rate) too. With neither freq nor period each hit of a tracepoint, a
 * breakpoint or a probe is a sample.
 * Groups stay groups; with the modifier S only their leader samples, with the counts of all.
 * Rings whose size is left to the sampler are made smaller until the kernel maps them, down to
 * 64 KiB. As tally_counter_open it may raise the
 * soft RLIMIT_NOFILE. Errors: as tally_counter_open and tally_ring_open. Since: 0.1
 */
TALLY_API int tally_sampler_open(struct tally_sampler **out, struct tally_events *events,
				 const struct tally_target *target,
				 const struct tally_sampler_opts *opts, struct tally_error *err);

/* Starts, stops all events. Errors: -errno of ioctl(2). Since: 0.1 */
TALLY_API int tally_sampler_enable(struct tally_sampler *sampler);
TALLY_API int tally_sampler_disable(struct tally_sampler *sampler);

/*
 * Waits until a ring passes its watermark. Returns 1; 0 after `timeout_ms` (rings may hold records
 * all the same: drain them at least every 250 ms); -EPIPE when every sampled task has ended (drain
 * once more: the last records are in the rings); -EINTR when a signal came. Allocates nothing.
 * Since: 0.1
 */
TALLY_API int tally_sampler_wait(struct tally_sampler *sampler, int timeout_ms);

/* The rings, to drain. Since: 0.1 */
TALLY_API uint32_t tally_sampler_rings(const struct tally_sampler *sampler);
TALLY_API struct tally_ring *tally_sampler_ring(const struct tally_sampler *sampler, uint32_t i);

/* The layout of the i-th event's records, and its attr as the kernel took it. Borrowed. Since: 0.1
 */
TALLY_API const struct tally_layout *tally_sampler_layout(const struct tally_sampler *sampler,
							  uint32_t event);
TALLY_API const struct tally_attr *tally_sampler_attr(const struct tally_sampler *sampler,
						      uint32_t event);

/* The ids that the i-th event has at its places, which its records carry. Borrowed. Since: 0.1 */
TALLY_API uint32_t tally_sampler_ids(const struct tally_sampler *sampler, uint32_t event,
				     const uint64_t **ids);

/*
 * The rate that was asked of the kernel for the i-th event after clamping, in samples a second, 0
 * with a period. The kernel does not throttle software clocks, and a high rate of them starves a
 * CPU, so they are held to 25,000 a second, periods of theirs likewise. Since: 0.1
 */
TALLY_API uint64_t tally_sampler_rate(const struct tally_sampler *sampler, uint32_t event);
/* What was clamped, as a phrase for people; NULL when nothing was. Since: 0.1 */
TALLY_API const char *tally_sampler_compromise(const struct tally_sampler *sampler);

/*
 * Samples that the kernel dropped for want of room so far, by PERF_FORMAT_LOST, summed over events
 * and places; 0 before Linux 6.0, where only LOST records tell. Errors: -errno of read(2). Since:
 * 0.1
 */
TALLY_API int tally_sampler_lost(struct tally_sampler *sampler, uint64_t *lost);

/* Closes everything. NULL is fine. Since: 0.1 */
TALLY_API void tally_sampler_close(struct tally_sampler *sampler);

TALLY_END_DECLS

#endif
