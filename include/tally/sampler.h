/* SPDX-License-Identifier: MIT */
/*
 * tally_sampler: events that sample a target into as few rings as the kernel allows.
 *
 * A ring belongs to a CPU (or, for one thread alone, to that thread); all events and threads on a
 * CPU share its ring. Every record carries TIME, TID and, with several events, IDENTIFIER, so that
 * a record's event is found by its id. Besides the samples the rings carry the side-band that names
 * addresses later: MMAP2, COMM, FORK, EXIT.
 *
 *	tally_sampler_open(&s, events, &target, NULL, &err);
 *	tally_sampler_enable(s);
 *	while (tally_sampler_next(s, -1, &got) > 0)
 *		look_at(got->record, got->event);
 *
 * Signals instead of rings: TALLY_SAMPLER_SIGTRAP here, and those of a descriptor in signal.h.
 */
#ifndef TALLY_SAMPLER_H
#define TALLY_SAMPLER_H

#include <tally/api.h>
#include <tally/count.h>
#include <tally/error.h>
#include <tally/event.h>
#include <tally/freeze.h>
#include <tally/record.h>
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
	/*
	 * A flight recorder: the newest records replace the oldest in all rings [4.7], read by
	 * tally_ring_snapshot() of each. The records that name addresses go the same way.
	 */
	TALLY_SAMPLER_OVERWRITE = 1u << 4,
	/*
	 * READ records with the counts of each thread and child that was followed, when it ends [2.6.32].
	 * Not of all: of two that take turns on a CPU
	 * the kernel exchanges the events, and who ends with those that were opened tells nothing.
	 */
	TALLY_SAMPLER_INHERIT_STAT = 1u << 5,
	/* RAW, the fields of the event itself, in the samples of tracepoints, probes and bpf-output. */
	TALLY_SAMPLER_RAW = 1u << 6,
	/* ADDR and DATA_SRC in samples, and records of mappings that hold no code. */
	TALLY_SAMPLER_DATA = 1u << 7,
	/* Callchains without their part in the kernel; in user mode (as its stack is copied) [3.7]. */
	TALLY_SAMPLER_NO_KERNEL_CHAIN = 1u << 8,
	TALLY_SAMPLER_NO_USER_CHAIN = 1u << 9,
	/* Records beside the samples: SWITCH, on CPUs SWITCH_CPU_WIDE [4.3]; */
	TALLY_SAMPLER_SWITCHES = 1u << 10,
	TALLY_SAMPLER_NAMESPACES = 1u << 11,  /* NAMESPACES [4.12], which need CAP_PERFMON; */
	TALLY_SAMPLER_CGROUPS = 1u << 12,     /* CGROUP, and the cgroup of each sample [5.7]; */
	TALLY_SAMPLER_BPF = 1u << 13,         /* KSYMBOL and BPF_EVENT [5.1]; */
	TALLY_SAMPLER_TEXT_POKES = 1u << 14,  /* TEXT_POKE [5.9]. */
	TALLY_SAMPLER_USE_CLOCKID = 1u << 15, /* time stamps of the clock `clockid` [4.1] */
	/*
	 * A sample is also a SIGTRAP, with si_code TRAP_PERF and `sig_data` in si_perf_data, to the
	 * thread that it is of, at once and before it goes on: synchronous, which no descriptor's
	 * signal is (see signal.h for those). It ends with an exec, and is for user mode of threads:
	 * -EINVAL for CPUs and for COMMAND [5.13].
	 */
	TALLY_SAMPLER_SIGTRAP = 1u << 16,
	/* PROCESS: attach while it runs instead of holding it still; see freeze.h. */
	TALLY_SAMPLER_NO_STOP = 1u << 17,
	/* tally_sampler_cancel() may end waits; takes an eventfd. */
	TALLY_SAMPLER_CANCELLABLE = 1u << 18,
	/*
	 * No records of what is mapped and started, and of all else beside the samples but switches:
	 * another sampler's event tells them, as one does that stays on while these are off.
	 */
	TALLY_SAMPLER_NO_SIDE_BAND = 1u << 19,
};

/* Bytes of the stack that perf(1) copies with --call-graph dwarf. */
#define TALLY_SAMPLER_STACK_BYTES 8192u

struct tally_sampler_opts {
	uint32_t size, flags; /* enum tally_sampler_flags */
	/* For all events but those whose names have their own (pmu/.../ with period= or freq=). */
	uint64_t freq; /* samples a second and CPU; 0 with period 0: 4000, as perf */
	/*
	 * Events a sample; wins over freq. With more than 1, samples of what software counts
	 * (page-faults, tracepoints, probes) have no PERIOD, since with it the kernel makes each event a
	 * sample.
	 */
	uint64_t period;
	/*
	 * TALLY_SAMPLE_* bits beyond IP, TID, TIME, PERIOD and CPU, as ADDR, PHYS_ADDR, WEIGHT_STRUCT,
	 * DATA_PAGE_SIZE. Those with fields of their own here are set by these.
	 */
	uint64_t sample_type;
	/*
	 * A ring; 0: room for half a second at the rate that was asked for, 8 MiB for events by a
	 * period; within the mlock budget, and 256 MiB for all rings at most.
	 */
	uint64_t ring_bytes;
	uint64_t watermark; /* bytes in a ring that wake the reader; 0: a quarter of the ring */
	const char *root;   /* folder above /proc and /sys; NULL: the real one. Borrowed. */
	/* TALLY_BRANCH_* bits: BRANCH_STACK in the samples of this kind [3.4]; 0: none. */
	uint64_t branch_sample_type;
	/*
	 * Registers in samples, bits by tally_reg_name(): those of user mode [3.7], and those at the
	 * interrupt [3.19]. 0: none, but with stack_bytes those of tally_regs_general().
	 */
	uint64_t regs_user, regs_intr;
	/* Of the user's stack in each sample, for unwinding; a multiple of 8, at most 65528 [3.7]. */
	uint32_t stack_bytes;
	uint32_t max_stack; /* entries of a callchain; 0: kernel.perf_event_max_stack [4.8] */
	int32_t clockid;    /* with USE_CLOCKID: CLOCK_MONOTONIC, _MONOTONIC_RAW, _REALTIME ... */
	uint32_t reserved;
	uint64_t sig_data; /* with SIGTRAP */
	/*
	 * PROCESS: a freeze of it, which several samplers and counters share. NULL: it is held still
	 * while this sampler is opened. Borrowed until the open call returns.
	 */
	const struct tally_freeze *freeze;
};

/*
 * Opens all events of the list on the target, disabled; a COMMAND is enabled by its exec.
 * `events` must outlive the sampler. A frequency beyond kernel.perf_event_max_sample_rate is
 * lowered to it, and one beyond what a machine carries with a software clock (see
 * tally_sampler_rate) too. With neither freq nor period each hit of a tracepoint, a
 * breakpoint or a probe is a sample.
 * Groups stay groups; with the modifier S only their leader samples, with the counts of all.
 * Rings whose size is left to the sampler are made smaller until the kernel maps them, down to
 * 64 KiB. As tally_counter_open it may raise the soft RLIMIT_NOFILE, and holds a PROCESS still while
 * it attaches to it. Errors: as tally_counter_open and tally_ring_open; -EINVAL for options that
 * contradict each other. Since: 0.1
 */
TALLY_API int tally_sampler_open(struct tally_sampler **out, struct tally_events *events,
				 const struct tally_target *target,
				 const struct tally_sampler_opts *opts, struct tally_error *err);

/* Whether a PROCESS stood still while it was attached to, as tally_counter_start_exact(). Since: 0.1 */
TALLY_API bool tally_sampler_start_exact(const struct tally_sampler *sampler);

/* Starts, stops all events. Errors: -errno of ioctl(2). Since: 0.1 */
TALLY_API int tally_sampler_enable(struct tally_sampler *sampler);
TALLY_API int tally_sampler_disable(struct tally_sampler *sampler);

/*
 * Starts, stops the i-th event alone, at all its places; the leader of a group all its members with it.
 * Errors: -EINVAL beyond the list; -errno of ioctl(2), having tried all places. Since: 0.1
 */
TALLY_API int tally_sampler_enable_event(struct tally_sampler *sampler, uint32_t event);
TALLY_API int tally_sampler_disable_event(struct tally_sampler *sampler, uint32_t event);

/*
 * Changes the period of the i-th event, in events a sample, or its frequency, in samples a second, while
 * it samples; with which of the two it was opened it stays. Software clocks are held to what
 * tally_sampler_rate() says, and all to kernel.perf_event_max_sample_rate. When it takes effect and
 * whom it does not reach (threads and children that are followed already) is as with
 * tally_counter_set_period().
 * Errors: -EOPNOTSUPP for what software counts, by hits, and was opened with a period of 1: the kernel then
 * heeds no other (open it with 2, and set 1);
 * -EINVAL for 0, for 2^63 and more, for an event of the other kind, one that does not sample,
 * and beyond the list; -errno of ioctl(2), having tried all places. Since: 0.1
 */
TALLY_API int tally_sampler_set_period(struct tally_sampler *sampler, uint32_t event,
				       uint64_t period);
TALLY_API int tally_sampler_set_freq(struct tally_sampler *sampler, uint32_t event, uint64_t freq);

/*
 * Reads what the i-th event has counted, as tally_counter_read() would, summed over its places.
 * Errors: -EINVAL beyond the list; -errno of read(2). Since: 0.1
 */
TALLY_API int tally_sampler_read(struct tally_sampler *sampler, uint32_t event,
				 struct tally_count *out);

/*
 * Waits until a ring passes its watermark. Returns 1; 0 after `timeout_ms` (rings may hold records
 * all the same: drain them at least every 250 ms); -EPIPE when every sampled task has ended (drain
 * once more: the last records are in the rings); -EINTR when a signal came. Allocates nothing.
 * Since: 0.1
 */
TALLY_API int tally_sampler_wait(struct tally_sampler *sampler, int timeout_ms);

/*
 * Ends the wait (tally_sampler_wait, tally_sampler_next) that is going on in another thread with
 * -ECANCELED, or else the next one. Async-signal-safe. Errors: -EINVAL without
 * TALLY_SAMPLER_CANCELLABLE. Since: 0.1
 */
TALLY_API int tally_sampler_cancel(struct tally_sampler *sampler);

/* A record and whose it is. Borrowed until the next call of tally_sampler_next(). */
struct tally_sampled {
	const struct tally_record
		*record; /* decoded; a period that its layout lacks is filled in */
	uint32_t event;  /* its index in the list; UINT32_MAX: its id is none of the sampler's */
	uint32_t ring;
	int32_t cpu; /* that the ring belongs to; -1: a thread's */
	uint32_t reserved;
};

/*
 * The next record of all rings, in the order of time, waiting for it `timeout_ms` at most; negative: for
 * ever. What it takes is allocated when the sampler is opened; records stay in their rings.
 *
 * It works in rounds: when a ring passes its watermark, 250 ms after the last round, or when the time is
 * up, all rings are looked at. A round gives what is older than 1 ms; what is younger stays in its ring
 * for the next one, so that a record that another CPU is just writing is not overtaken (its delay is 1 ms,
 * or a round). After tally_sampler_disable(), at the end, and with TALLY_SAMPLER_PERF_CLOCK, which nobody
 * else can read, a round gives all there is.
 *
 * What can still come late is counted in tally_sampler_account.disordered: records of an interrupt that
 * came between the time stamp of another and its place in the ring, which lie before that one though they
 * are younger (measured: five in a million, by 12 us); and those of a CPU that the hypervisor took away for
 * longer than 1 ms in the middle of a record. By the perf clock also what came while the heads of all
 * rings were looked at.
 *
 * Returns 1 with `*out`; 0 at the time-out; -EPIPE when every sampled task has ended and all has been
 * given; -ECANCELED after tally_sampler_cancel(); -EINTR when a signal came; -EBADMSG for bytes that are
 * no record: the rest of that ring's round is given up, and the next call goes on. -EINVAL with
 * TALLY_SAMPLER_OVERWRITE. Not to be mixed with draining the rings. One thread at a time. Since: 0.1
 */
TALLY_API int tally_sampler_next(struct tally_sampler *sampler, int timeout_ms,
				 const struct tally_sampled **out);

/* The rings, to drain, and the CPU that one belongs to (-1: a thread's). Since: 0.1 */
TALLY_API uint32_t tally_sampler_rings(const struct tally_sampler *sampler);
TALLY_API struct tally_ring *tally_sampler_ring(const struct tally_sampler *sampler, uint32_t i);
TALLY_API int32_t tally_sampler_ring_cpu(const struct tally_sampler *sampler, uint32_t i);

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

/*
 * What did not come, and what did. All but lost_format is from the records that tally_sampler_next() has
 * given or tally_sampler_note() was shown.
 */
struct tally_sampler_account {
	uint64_t records, samples; /* samples among the records */
	/* Best known: lost_samples, and the larger of lost_records and lost_format. */
	uint64_t lost;
	/*
	 * Told by LOST records, of the ring: the kernel has whichever event writes next tell them, so
	 * that only their sum over all events says something.
	 */
	uint64_t lost_records;
	uint64_t lost_samples; /* told by LOST_SAMPLES: what hardware could not keep [4.2] */
	uint64_t lost_format;  /* what the event says that found no room, up to now [6.0] */
	uint64_t throttled; /* how often it came too often, and was stopped until the next tick */
	uint64_t throttled_ns; /* how long, of the times that are over */
	uint64_t disordered;   /* given later than a younger one; in the sum of all events only */
};

/*
 * The account of the i-th event; of UINT32_MAX that of all together.
 *   out_size  sizeof *out, as the caller compiled it, so that the struct may grow.
 * Errors: -EINVAL beyond the list; -errno of read(2). Since: 0.1
 */
TALLY_API int tally_sampler_account(struct tally_sampler *sampler, uint32_t event,
				    struct tally_sampler_account *out, size_t out_size);

/*
 * Takes a record into the account, for who drains the rings himself: those of the types LOST,
 * LOST_SAMPLES, THROTTLE and UNTHROTTLE are enough for all but `records` and `samples`. Errors: those of
 * tally_record_decode. Since: 0.1
 */
TALLY_API int tally_sampler_note(struct tally_sampler *sampler, const void *record, size_t len);

/* Closes everything. NULL is fine. Since: 0.1 */
TALLY_API void tally_sampler_close(struct tally_sampler *sampler);

TALLY_END_DECLS

#endif
