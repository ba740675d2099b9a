/* SPDX-License-Identifier: MIT */
/*
 * Events and a target in, a perf.data file out: opens what it needs, describes what already runs, and
 * moves ring bytes into the file, round by round.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <tally/reader.h>

#include "base/clock.h"
#include "base/error.h"
#include "image/cache.h"
#include "image/kernel.h"
#include "recorder/bpf-features.h"
#include "recorder/recorder-inside.h"

/* At 99 Hz a watermark is never reached, so that rings are drained by time as well. */
#define DRAIN_NS (250 * 1000000ull)

#define DEFAULT_PATH "perf.data"

#define KNOWN_FLAGS                                                               \
	(RECORDER_SAMPLING | TALLY_RECORDER_SIDE_BAND | TALLY_RECORDER_DISABLED | \
	 TALLY_RECORDER_UNWIND | TALLY_RECORDER_KEEP)

/* The flags of the event that tells what is mapped and started, as the kernel took them. */
static uint64_t teller_flags(const struct tally_recorder *r)
{
	return tally_sampler_attr(r->side ? r->side : r->sampler, 0)->flags;
}

/* What belongs to no task. */
static int describe_system(struct tally_recorder *r, struct tally_error *err)
{
	int ret = synth_bpf(&r->synth, err);

	if (ret == 0 && teller_flags(r) & TALLY_ATTR_CGROUP)
		ret = synth_cgroups(&r->synth, err);
	return ret;
}

/* The exec of a command tells its name and mappings, but not where it has been since its fork. */
static int describe_waiting(struct tally_recorder *r, struct tally_error *err)
{
	if (r->target.scope != TALLY_SCOPE_COMMAND)
		return 0;
	int ret = describe_system(r, err);
	return ret < 0 ? ret : synth_namespaces(&r->synth, r->target.id, r->target.id, err);
}

/* Where no home is known nothing is kept: that is no reason not to record. */
static int find_cache(struct tally_recorder *r, struct tally_error *err)
{
	char folder[PATH_MAX];

	if (!(r->opts.flags & TALLY_RECORDER_KEEP) || (!r->opts.cache && !cache_folder(folder)))
		return 0;
	r->cache = strdup(r->opts.cache ? r->opts.cache : folder);
	return r->cache ? 0 : error_nomem(err, "a recorder");
}

int tally_recorder_open(struct tally_recorder **out, struct tally_events *events,
			const struct tally_target *target, const struct tally_recorder_opts *opts,
			struct tally_error *err)
{
	struct tally_recorder *r = calloc(1, sizeof(*r));

	if (!r)
		return error_nomem(err, "a recorder");
	int ret = opts_read(&r->opts, sizeof(r->opts), KNOWN_FLAGS, opts, err);
	if (ret < 0)
		goto fail;
	if (!r->opts.path)
		r->opts.path = DEFAULT_PATH;
	r->path = strdup(r->opts.path);
	if (!r->path) {
		ret = error_nomem(err, "a recorder");
		goto fail;
	}
	ret = find_cache(r, err);
	if (ret < 0)
		goto fail;
	r->events = events;
	r->target = *target;
	r->opened_cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	stolen_read(&r->stolen_before, r->opts.root);

	ret = recorder_open_samplers(r, err);
	if (ret < 0)
		goto fail;
	r->drain.seen = &r->seen;
	r->drain.path = r->path;
	r->synth = (struct synth){
		.layout = tally_sampler_layout(r->sampler, 0),
		.root = r->opts.root,
		.data_maps = teller_flags(r) & TALLY_ATTR_MMAP_DATA,
		.namespaces = teller_flags(r) & TALLY_ATTR_NAMESPACES,
		.modules = &r->seen.modules,
		.maps = &r->unwinding.maps,
	};
	tallier_init(&r->seen, r->synth.layout);
	r->seen.modules.root = r->opts.root;
	ret = recorder_open_writer(r, err);
	if (ret == 0)
		ret = describe_waiting(r, err);
	if (ret < 0)
		goto fail;
	r->started_ns = r->drained_ns = clock_ns(CLOCK_MONOTONIC);
	r->opts.path = NULL; /* borrowed until here */
	r->opts.sampler = NULL;
	*out = r;
	return 0;
fail:
	tally_recorder_discard(r);
	return ret;
}

/* Synthesised after the events are enabled, so that nothing that starts in between is missed. */
static int describe_running(struct tally_recorder *r, struct tally_error *err)
{
	switch (r->target.scope) {
	case TALLY_SCOPE_SELF:
		return synth_process(&r->synth, (int32_t)getpid(), err);
	case TALLY_SCOPE_THREAD:
		return synth_thread(&r->synth, r->target.id, err);
	case TALLY_SCOPE_PROCESS:
		return synth_process(&r->synth, r->target.id, err);
	case TALLY_SCOPE_CPUS:
	case TALLY_SCOPE_SYSTEM:
	case TALLY_SCOPE_CGROUP: /* a thread may enter it at any time */
		return synth_system(&r->synth, err);
	default:
		return 0; /* a command's exec tells all */
	}
}

/* For a further file: who was started by a process that is recorded may be anywhere. */
static int describe_again(struct tally_recorder *r, struct tally_error *err)
{
	switch (r->target.scope) {
	case TALLY_SCOPE_SELF:
	case TALLY_SCOPE_THREAD:
		return describe_running(r, err);
	default:
		return synth_system(&r->synth, err);
	}
}

static int switch_failed(int code, bool on, struct tally_error *err)
{
	return error_set(err, code, TALLY_CAUSE_IO, "the events cannot be %s: %s",
			 on ? "enabled" : "disabled", strerror(-code));
}

int tally_recorder_start(struct tally_recorder *r, struct tally_error *err)
{
	bool disabled = r->opts.flags & TALLY_RECORDER_DISABLED;
	int ret = 0;

	if (r->target.scope != TALLY_SCOPE_COMMAND && r->side)
		ret = tally_sampler_enable(r->side);
	if (ret == 0 && r->target.scope != TALLY_SCOPE_COMMAND && !disabled)
		ret = tally_sampler_enable(r->sampler);
	if (ret < 0)
		return switch_failed(ret, true, err);
	r->started_ns = r->drained_ns = clock_ns(CLOCK_MONOTONIC);
	if (r->target.scope != TALLY_SCOPE_COMMAND)
		ret = describe_system(r, err);
	if (ret == 0)
		ret = describe_running(r, err);
	return ret < 0 ? ret : synth_finished(&r->synth, err);
}

static int set_enabled(struct tally_recorder *r, uint32_t event, bool on, struct tally_error *err)
{
	int ret;

	if (event == UINT32_MAX)
		ret = on ? tally_sampler_enable(r->sampler) : tally_sampler_disable(r->sampler);
	else
		ret = on ? tally_sampler_enable_event(r->sampler, event)
			 : tally_sampler_disable_event(r->sampler, event);
	return ret < 0 ? switch_failed(ret, on, err) : 0;
}

int tally_recorder_enable(struct tally_recorder *r, uint32_t event, struct tally_error *err)
{
	return set_enabled(r, event, true, err);
}

int tally_recorder_disable(struct tally_recorder *r, uint32_t event, struct tally_error *err)
{
	return set_enabled(r, event, false, err);
}

static uint64_t bytes_written(const struct tally_recorder *r)
{
	return r->bytes_before + (r->writer ? tally_writer_size(r->writer) : 0);
}

/*
 * One round. A flight recorder's file has none before its end, for what is in the rings then is older
 * than much of what is in the file.
 */
static int drain(struct tally_recorder *r, struct tally_error *err)
{
	uint64_t before = r->seen.records;
	int ret = drain_round(&r->drain, err);

	r->drained_ns = clock_ns(CLOCK_MONOTONIC);
	if (ret == 0 && r->seen.records != before && !r->overwrite) {
		ret = tally_writer_round(r->writer, err);
		r->rounds++;
	}
	if (r->opts.max_bytes && bytes_written(r) >= r->opts.max_bytes)
		r->ended = true;
	return ret;
}

/* What is in the rings of a flight recorder, too. */
static int drain_all(struct tally_recorder *r, struct tally_error *err)
{
	int ret = r->overwrite ? drain_snapshot(&r->drain, err) : 0;

	if (ret == 0)
		ret = drain(r, err);
	if (ret == 0 && r->overwrite) {
		ret = tally_writer_round(r->writer, err);
		r->rounds++;
	}
	return ret;
}

int tally_recorder_step(struct tally_recorder *r, int timeout_ms, struct tally_error *err)
{
	uint64_t since = clock_ns(CLOCK_MONOTONIC) - r->drained_ns;
	uint64_t left = since < DRAIN_NS ? DRAIN_NS - since : 0;
	int wait_ms = (int)((left + 999999) / 1000000);

	if (r->ended)
		return 0;
	if (timeout_ms >= 0 && timeout_ms < wait_ms)
		wait_ms = timeout_ms;
	/* Rings that are overwritten need nobody when they fill up. */
	int got = tally_sampler_wait(r->overwrite ? r->side : r->sampler, wait_ms);
	if (got == -EPIPE)
		r->ended = true;
	else if (got == -EINTR)
		return error_set(err, got, TALLY_CAUSE_NONE, "interrupted by a signal");
	else if (got < 0)
		return error_set(err, got, TALLY_CAUSE_IO, "waiting for records: %s",
				 strerror(-got));
	if (got != 0 || clock_ns(CLOCK_MONOTONIC) - r->drained_ns >= DRAIN_NS) {
		int ret = drain(r, err);
		if (ret < 0)
			return ret;
	}
	return r->ended ? 0 : 1;
}

void tally_recorder_progress(struct tally_recorder *r, struct tally_recording *out)
{
	const struct tally_attr *attr = tally_sampler_attr(r->sampler, 0);
	struct stolen stolen;
	uint64_t lost;

	stolen_read(&stolen, r->opts.root);
	*out = (struct tally_recording){
		.samples = r->seen.samples,
		.records = r->seen.records + r->synth.records,
		.bytes = bytes_written(r),
		.lost = r->seen.lost,
		.rounds = r->rounds,
		.throttled = r->seen.throttled,
		.duration_ns = r->drained_ns - r->started_ns,
		.cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - r->opened_cpu_ns,
		.steal_ns = stolen.steal_ns - r->stolen_before.steal_ns,
		.cgroup_throttled_ns = stolen.cgroup_throttled_ns -
				       r->stolen_before.cgroup_throttled_ns,
		.clockid = attr->flags & TALLY_ATTR_USE_CLOCKID ? (uint32_t)attr->clockid
								: UINT32_MAX,
		.stacks = r->unwinding.stacks,
	};
	/* LOST records tell of the past only; the events themselves know about now. */
	if (tally_sampler_lost(r->sampler, &lost) == 0 && lost > out->lost)
		out->lost = lost;
}

/* What is known only now. */
static int add_features(struct tally_recorder *r)
{
	const uint64_t span[2] = { r->seen.first_time, r->seen.last_time };
	int ret = 0;

	if (r->seen.first_time)
		ret = tally_writer_feature(r->writer, TALLY_FEATURE_SAMPLE_TIME, span,
					   sizeof(span));
	if (ret == 0 && (!r->opts.root || !*r->opts.root))
		ret = bpf_features(r->writer);
	if (ret < 0)
		return ret;
	/* What cannot be kept is missed later, if at all; the recording is as good without. */
	if (r->cache && r->seen.kernel)
		kernel_keep(r->opts.root, r->cache);
	ret = modules_write(&r->seen.modules, r->writer, r->cache);
	if (r->cache)
		cache_trim(r->cache);
	return ret;
}

/* The file as it stays: with all that has come, and its features. On a full disk there may be room
 * for these still; the first failure is told. */
static int finish_file(struct tally_recorder *r, struct tally_error *err)
{
	int drained = drain_all(r, err);
	struct tally_error *more = drained < 0 ? NULL : err;
	int ret = add_features(r) < 0 ? error_nomem(more, "the description of the recording")
				      : tally_writer_finish(r->writer, more);

	return drained < 0 ? drained : ret;
}

int tally_recorder_switch(struct tally_recorder *r, const char *keep_as, struct tally_error *err)
{
	int ret = finish_file(r, err);

	if (ret < 0)
		return ret;
	if (rename(r->path, keep_as) < 0)
		return error_set(err, -errno, TALLY_CAUSE_IO, "%s cannot be renamed to %s: %s",
				 r->path, keep_as, strerror(errno));
	r->bytes_before += tally_writer_size(r->writer);
	tally_writer_close(r->writer);
	r->writer = NULL;
	r->seen.first_time = r->seen.last_time = 0;
	ret = recorder_open_writer(r, err);
	if (ret == 0)
		ret = describe_system(r, err);
	if (ret == 0)
		ret = describe_again(r, err);
	return ret < 0 ? ret : synth_finished(&r->synth, err);
}

int tally_recorder_finish(struct tally_recorder *r, struct tally_recording *report,
			  struct tally_error *err)
{
	int ret = tally_sampler_disable(r->sampler);

	if (ret < 0)
		switch_failed(ret, false, err);
	if (ret == 0)
		ret = finish_file(r, err);
	if (report)
		tally_recorder_progress(r, report);
	return ret;
}

bool tally_recorder_start_exact(const struct tally_recorder *r)
{
	return r->target.scope != TALLY_SCOPE_PROCESS || tally_sampler_start_exact(r->sampler);
}

const char *tally_recorder_compromise(const struct tally_recorder *r)
{
	return tally_sampler_compromise(r->sampler);
}

void tally_recorder_discard(struct tally_recorder *r)
{
	if (!r)
		return;
	tally_writer_discard(r->writer);
	r->writer = NULL;
	tally_recorder_close(r);
}

void tally_recorder_close(struct tally_recorder *r)
{
	if (!r)
		return;
	tally_writer_close(r->writer);
	tally_sampler_close(r->sampler);
	tally_sampler_close(r->side);
	tally_events_free(r->side_events);
	drain_done(&r->drain);
	unwinding_done(&r->unwinding);
	synth_done(&r->synth);
	tallier_done(&r->seen);
	free(r->path);
	free(r->cache);
	free(r);
}
