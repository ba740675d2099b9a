/* SPDX-License-Identifier: MIT */
/*
 * tally_recorder: events and a target in, a perf.data file out.
 *
 *	tally_recorder_open(&rec, events, &target, TALLY_OPTS(recorder, .path = "perf.data"), &err);
 *	tally_recorder_start(rec, &err);
 *	while ((r = tally_recorder_step(rec, 250, &err)) > 0)
 *		;
 *	tally_recorder_finish(rec, &report, &err);
 *	tally_recorder_close(rec);
 *
 * Every ring is drained at least every 250 ms, all heads being taken first, so that the order that
 * a round promises holds. What already runs is described by the records that the kernel would have
 * sent: kernel and module maps, BPF programs (CAP_SYS_ADMIN), threads, names, mappings; with
 * TALLY_SAMPLER_NAMESPACES and _CGROUPS the namespaces of threads and the control groups. Which
 * threads and CPUs were recorded is said by THREAD_MAP and CPU_MAP, as perf(1) does.
 */
#ifndef TALLY_RECORDER_H
#define TALLY_RECORDER_H

#include <tally/api.h>
#include <tally/error.h>
#include <tally/event.h>
#include <tally/sampler.h>
#include <tally/target.h>
#include <tally/unwinder.h>

TALLY_BEGIN_DECLS

struct tally_recorder;

enum tally_recorder_flags {
	TALLY_RECORDER_CALLCHAIN = 1u << 0,  /* callchains by frame pointers */
	TALLY_RECORDER_NO_INHERIT = 1u << 1, /* do not follow new threads and children */
	TALLY_RECORDER_PERF_CLOCK = 1u
				    << 2, /* the kernel's perf clock instead of CLOCK_MONOTONIC */
	/*
	 * What is mapped and started is told by an event of its own, `dummy`, that is always on. For
	 * recordings whose events are switched off and on; else the first of them tells it.
	 */
	TALLY_RECORDER_SIDE_BAND = 1u << 3,
	/* Start leaves the events disabled: tally_recorder_enable() enables them. With SIDE_BAND. */
	TALLY_RECORDER_DISABLED = 1u << 4,
	/*
	 * Samples with a copy of their stack (stack_bytes of the sampler's options) are unwound on the
	 * way, and the file has callchains instead: a thirtieth of the bytes. Of a stack that is whole
	 * the registers get abi 0 and the copy is left out; one whose copy was too short ends in a
	 * second TALLY_CONTEXT_USER and keeps its registers; one that could not be unwound keeps both.
	 * Not with TALLY_SAMPLER_OVERWRITE, where samples stay as they are.
	 */
	TALLY_RECORDER_UNWIND = 1u << 5,
	/*
	 * Finish keeps in a folder what will be gone when somebody reports: mapped files that are not
	 * at their path here (of containers, or deleted), perf maps and jitdumps, the vdso, and where
	 * samples were taken in the kernel its symbols. By build-id, 1 GiB at most, the oldest files
	 * giving place. That something cannot be kept is no error.
	 */
	TALLY_RECORDER_KEEP = 1u << 6,
};

struct tally_recorder_opts {
	uint32_t size, flags;  /* enum tally_recorder_flags */
	const char *path;      /* NULL: perf.data; "-": a stream to standard output. Borrowed until
			     open returns. */
	uint64_t freq, period; /* as struct tally_sampler_opts */
	uint64_t sample_type;  /* likewise */
	uint64_t ring_bytes;   /* likewise */
	uint64_t max_bytes;    /* end cleanly when the file has this many; 0: no limit */
	const char *const
		*cmdline; /* words for the CMDLINE feature, NULL at the end. Borrowed till close. */
	const char
		*root; /* folder above /proc and /sys; NULL: the real one. Borrowed till close. */
	uint32_t owner_uid_plus_1, owner_gid_plus_1; /* as struct tally_writer_opts */
	/*
	 * How to sample, in full; NULL: as the fields above say. With it they, and the flags CALLCHAIN,
	 * NO_INHERIT and PERF_CLOCK, must be zero. Its root is the recorder's. With
	 * TALLY_SAMPLER_OVERWRITE the file has samples only when it ends, the newest: at finish, and at
	 * each switch those since the one before. Borrowed until open returns.
	 */
	const struct tally_sampler_opts *sampler;
	uint32_t compress; /* likewise: a level of zstd, 0: none */
	uint32_t reserved;
	/* With TALLY_RECORDER_KEEP: the folder; NULL: $XDG_CACHE_HOME/tally or ~/.cache/tally.
	 * Borrowed until open returns. */
	const char *cache;
};

/* What a recording came to. */
struct tally_recording {
	uint64_t samples, records; /* written, samples among the records */
	uint64_t bytes;            /* of the file, and of those before it after a switch */
	uint64_t lost;             /* records and samples that the kernel says it dropped */
	uint64_t rounds;
	uint64_t throttled;   /* THROTTLE records */
	uint64_t duration_ns; /* from start to the last drain */
	uint64_t cpu_ns;      /* CPU time of the recording thread since open */
	uint64_t steal_ns;    /* time that the hypervisor took from this machine's CPUs meanwhile */
	uint64_t
		cgroup_throttled_ns; /* time that this cgroup was held by its CPU quota meanwhile */
	uint32_t clockid;            /* CLOCK_MONOTONIC, or UINT32_MAX: the perf clock */
	uint32_t reserved;
	struct tally_stacks stacks; /* with TALLY_RECORDER_UNWIND */
};

/*
 * Opens sampler and file, writes the header and what already runs; nothing is counted yet (a
 * COMMAND starts with its exec). On failure no half-made file remains, and an older one has its
 * name back. `events` must outlive the recorder. Errors: of tally_sampler_open and
 * tally_writer_open. Since: 0.1
 */
TALLY_API int tally_recorder_open(struct tally_recorder **out, struct tally_events *events,
				  const struct tally_target *target,
				  const struct tally_recorder_opts *opts, struct tally_error *err);

/* Enables the events; needless for a COMMAND, but with TALLY_RECORDER_DISABLED. Since: 0.1 */
TALLY_API int tally_recorder_start(struct tally_recorder *recorder, struct tally_error *err);

/*
 * Enables or disables the events while it records, `event` of them or all (UINT32_MAX); of a group
 * the leader stands for all its members. Without TALLY_RECORDER_SIDE_BAND code that is loaded while the
 * first event is disabled has no names. Errors: -EINVAL for
 * an event that does not exist; -errno of ioctl(2). Since: 0.1
 */
TALLY_API int tally_recorder_enable(struct tally_recorder *recorder, uint32_t event,
				    struct tally_error *err);
TALLY_API int tally_recorder_disable(struct tally_recorder *recorder, uint32_t event,
				     struct tally_error *err);

/*
 * Waits at most `timeout_ms` for data, and drains all rings when a watermark was passed or 250 ms
 * have gone by since they last were. Returns 1 to go on; 0 when the target has ended or max_bytes
 * is reached: everything is written then. Errors: -EINTR when a signal came, go on or finish;
 * errors of writing. Since: 0.1
 */
TALLY_API int tally_recorder_step(struct tally_recorder *recorder, int timeout_ms,
				  struct tally_error *err);

/*
 * Finishes the file, renames it to `keep_as`, and goes on in a new one of the first one's name, which
 * begins with what runs now. The events go on meanwhile. After an error only discard and close are of
 * use. Errors: of finish, of rename(2), of open. Since: 0.1
 */
TALLY_API int tally_recorder_switch(struct tally_recorder *recorder, const char *keep_as,
				    struct tally_error *err);

/* What there is so far, over all files; may be called between steps. Since: 0.1 */
TALLY_API void tally_recorder_progress(struct tally_recorder *recorder,
				       struct tally_recording *out);

/*
 * Stops the events, drains, and finishes the file. `report` may be NULL. Since: 0.1
 */
TALLY_API int tally_recorder_finish(struct tally_recorder *recorder, struct tally_recording *report,
				    struct tally_error *err);

/*
 * Whether a PROCESS stood still while its threads were attached to. Where it could not be stopped, one
 * that started in that moment may be sampled twice, or not from its start. Always true of other scopes.
 * Since: 0.1
 */
TALLY_API bool tally_recorder_start_exact(const struct tally_recorder *recorder);

/* What was clamped or given up by the sampler, as a phrase; NULL when nothing was. Since: 0.1 */
TALLY_API const char *tally_recorder_compromise(const struct tally_recorder *recorder);

/* Closes it, removes the file and gives an older one its name back: for a command that could not be
 * run. NULL is fine. Since: 0.1 */
TALLY_API void tally_recorder_discard(struct tally_recorder *recorder);

/* Closes it; without finish the file stays as it is, readable up to its last round. Since: 0.1 */
TALLY_API void tally_recorder_close(struct tally_recorder *recorder);

/* How many of the stacks of a trial frame pointers found whole, as their unwind tables tell. */
struct tally_trial {
	uint64_t stacks, whole;
};

/*
 * Samples process `pid` for at most 60 ms, or, with 0, a child that is forked for it and works in the C
 * library, to learn whether frame pointers will do for call graphs. `stacks` may be few where a process
 * hardly runs. Errors: as tally_sampler_open() and tally_unwinder_new(); of fork(2). Since: 0.1
 */
TALLY_API int tally_recorder_trial(int32_t pid, struct tally_trial *out, struct tally_error *err);

TALLY_END_DECLS

#endif
