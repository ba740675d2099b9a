/* SPDX-License-Identifier: MIT */
/*
 * Events and a target in, a perf.data file out: opens the sampler and the writer, describes what
 * already runs, and moves ring bytes into the file, round by round.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <tally/reader.h>
#include <tally/recorder.h>
#include <tally/sampler.h>
#include <tally/writer.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/proc.h"
#include "image/build-id.h"
#include "recorder/stolen.h"
#include "recorder/synth.h"
#include "recorder/tallier.h"
#include "recorder/tracing-data.h"

/* At 99 Hz a watermark is never reached, so that rings are drained by time as well. */
#define DRAIN_NS (250 * 1000000ull)

#define DEFAULT_PATH "perf.data"

#define KNOWN_FLAGS \
	(TALLY_RECORDER_CALLCHAIN | TALLY_RECORDER_NO_INHERIT | TALLY_RECORDER_PERF_CLOCK)

/* The kernel's build-id is in an ELF note of a few hundred bytes. */
#define NOTES_LIMIT 65536

struct tally_recorder {
	struct tally_sampler *sampler;
	struct tally_writer *writer;
	struct tally_events *events;
	struct tally_recorder_opts opts;
	struct tally_target target;
	struct synth synth;
	struct tallier seen;
	struct stolen stolen_before;
	char *path;      /* of the file, for messages */
	uint64_t *heads; /* one a ring */
	uint64_t opened_cpu_ns, started_ns, drained_ns, rounds;
	bool ended; /* all sampled tasks are gone, or the file is long enough */
};

static int open_sampler(struct tally_recorder *r, struct tally_error *err)
{
	struct tally_sampler_opts opts = {
		.size = sizeof(opts),
		.freq = r->opts.freq,
		.period = r->opts.period,
		.sample_type = r->opts.sample_type,
		.ring_bytes = r->opts.ring_bytes,
		.root = r->opts.root,
	};

	if (r->opts.flags & TALLY_RECORDER_CALLCHAIN)
		opts.flags |= TALLY_SAMPLER_CALLCHAIN;
	if (r->opts.flags & TALLY_RECORDER_NO_INHERIT)
		opts.flags |= TALLY_SAMPLER_NO_INHERIT;
	if (r->opts.flags & TALLY_RECORDER_PERF_CLOCK)
		opts.flags |= TALLY_SAMPLER_PERF_CLOCK;
	int ret = tally_sampler_open(&r->sampler, r->events, &r->target, &opts, err);
	if (ret < 0)
		return ret;
	r->heads = calloc(tally_sampler_rings(r->sampler), sizeof(*r->heads));
	return r->heads ? 0 : error_nomem(err, "the recorder's rings");
}

/* What the kernel took instead, when it took another event: the file should not call it cycles. */
static const char *recorded_name(const struct tally_event *event)
{
	const struct tally_attr *asked = tally_event_attr(event);
	const struct tally_attr *granted = tally_event_granted(event);

	if (granted && granted->type != asked->type && granted->type == TALLY_TYPE_SOFTWARE &&
	    granted->config == TALLY_SW_CPU_CLOCK)
		return "cpu-clock";
	return tally_event_name(event);
}

static int open_writer(struct tally_recorder *r, struct tally_error *err)
{
	struct tally_writer_opts opts = {
		.size = sizeof(opts),
		.owner_uid_plus_1 = r->opts.owner_uid_plus_1,
		.owner_gid_plus_1 = r->opts.owner_gid_plus_1,
	};
	int ret = tally_writer_open(&r->writer, r->opts.path, &opts, err);

	for (uint32_t i = 0; ret == 0 && i < tally_events_count(r->events); i++) {
		const uint64_t *ids;
		uint32_t count = tally_sampler_ids(r->sampler, i, &ids);
		ret = tally_writer_event(r->writer, recorded_name(tally_events_at(r->events, i)),
					 tally_sampler_attr(r->sampler, i), ids, count, err);
	}
	return ret < 0 ? ret : tally_writer_begin(r->writer, err);
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
	r->events = events;
	r->target = *target;
	r->opened_cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	stolen_read(&r->stolen_before, r->opts.root);

	ret = open_sampler(r, err);
	if (ret == 0)
		ret = open_writer(r, err);
	if (ret < 0)
		goto fail;
	r->synth = (struct synth){
		.writer = r->writer,
		.layout = tally_sampler_layout(r->sampler, 0),
		.root = r->opts.root,
		.modules = &r->seen.modules,
	};
	tallier_init(&r->seen, r->synth.layout);
	ret = synth_kernel(&r->synth, err);
	if (ret < 0)
		goto fail;
	r->started_ns = r->drained_ns = clock_ns(CLOCK_MONOTONIC);
	r->opts.path = NULL; /* borrowed until here */
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
		return synth_system(&r->synth, err);
	default:
		return 0; /* a command's exec tells all */
	}
}

int tally_recorder_start(struct tally_recorder *r, struct tally_error *err)
{
	if (r->target.scope != TALLY_SCOPE_COMMAND) {
		int ret = tally_sampler_enable(r->sampler);
		if (ret < 0)
			return error_set(err, ret, TALLY_CAUSE_IO,
					 "the events cannot be enabled: %s", strerror(-ret));
	}
	r->started_ns = r->drained_ns = clock_ns(CLOCK_MONOTONIC);
	return describe_running(r, err);
}

static int drain_ring(struct tally_recorder *r, struct tally_ring *ring, uint64_t head,
		      struct tally_error *err)
{
	struct iovec spans[2];
	uint64_t bytes = 0;
	int count = tally_ring_peek_to(ring, head, spans);

	if (count < 0)
		return error_set(err, count, TALLY_CAUSE_CORRUPT,
				 "the head of a ring is where no data can end");
	if (!count)
		return 0;
	for (int i = 0; i < count; i++)
		bytes += spans[i].iov_len;
	uint64_t whole = tallier_add(&r->seen, spans, count);
	if (whole != bytes)
		return error_set(err, -EBADMSG, TALLY_CAUSE_CORRUPT,
				 "a ring holds bytes that are no record, %" PRIu64 " bytes in",
				 whole);
	int ret = tally_writer_append(r->writer, spans, count);
	if (ret < 0)
		return error_set(
			err, ret, TALLY_CAUSE_IO,
			"writing %s: %s; it can be read up to its last whole round, %" PRIu64
			" bytes%s",
			r->path, strerror(-ret), tally_writer_size(r->writer),
			ret == -ENOSPC ? "; make room, or bound it by --max-size" : "");
	tally_ring_advance(ring, bytes);
	return 0;
}

/* One round: all heads first, so that no record in it is newer than the heads of all rings. */
static int drain(struct tally_recorder *r, struct tally_error *err)
{
	uint32_t rings = tally_sampler_rings(r->sampler);
	uint64_t before = r->seen.records;
	int ret = 0;

	for (uint32_t i = 0; i < rings; i++)
		r->heads[i] = tally_ring_head(tally_sampler_ring(r->sampler, i));
	for (uint32_t i = 0; i < rings && ret == 0; i++)
		ret = drain_ring(r, tally_sampler_ring(r->sampler, i), r->heads[i], err);
	r->drained_ns = clock_ns(CLOCK_MONOTONIC);
	if (ret == 0 && r->seen.records != before) {
		ret = tally_writer_round(r->writer, err);
		r->rounds++;
	}
	if (r->opts.max_bytes && tally_writer_size(r->writer) >= r->opts.max_bytes)
		r->ended = true;
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
	int got = tally_sampler_wait(r->sampler, wait_ms);
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
		.bytes = tally_writer_size(r->writer),
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
	};
	/* LOST records tell of the past only; the events themselves know about now. */
	if (tally_sampler_lost(r->sampler, &lost) == 0 && lost > out->lost)
		out->lost = lost;
}

static int add_kernel_build_id(struct tally_recorder *r)
{
	struct buf notes = { 0 };
	struct build_id id = { 0 };

	if (proc_read(&notes, r->opts.root, "/sys/kernel/notes", NOTES_LIMIT) == 0 && notes.len)
		id = build_id_from_notes(notes.at, notes.len);
	buf_done(&notes);
	return id.len ? tally_writer_build_id(r->writer, TALLY_MISC_KERNEL, -1, "[kernel.kallsyms]",
					      id.bytes, id.len)
		      : 0;
}

static int add_features(struct tally_recorder *r)
{
	const uint64_t span[2] = { r->seen.first_time, r->seen.last_time };
	uint32_t words = 0;
	int ret = tally_writer_describe_machine(r->writer, r->opts.root);

	while (r->opts.cmdline && r->opts.cmdline[words])
		words++;
	if (ret == 0 && words)
		ret = tally_writer_cmdline(r->writer, words, r->opts.cmdline);
	if (ret == 0 && r->seen.first_time)
		ret = tally_writer_feature(r->writer, TALLY_FEATURE_SAMPLE_TIME, span,
					   sizeof(span));
	if (ret == 0)
		ret = tracing_data_write(r->writer, r->events, r->opts.root);
	if (ret == 0)
		ret = add_kernel_build_id(r);
	if (ret == 0)
		ret = modules_write(&r->seen.modules, r->writer, r->opts.root);
	return ret;
}

int tally_recorder_finish(struct tally_recorder *r, struct tally_recording *report,
			  struct tally_error *err)
{
	int ret = tally_sampler_disable(r->sampler);

	if (ret < 0)
		error_set(err, ret, TALLY_CAUSE_IO, "the events cannot be disabled: %s",
			  strerror(-ret));
	if (ret == 0)
		ret = drain(r, err);
	if (ret == 0) {
		ret = add_features(r);
		if (ret < 0)
			error_nomem(err, "the description of the recording");
	}
	if (ret == 0)
		ret = tally_writer_finish(r->writer, err);
	if (report)
		tally_recorder_progress(r, report);
	return ret;
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
	synth_done(&r->synth);
	tallier_done(&r->seen);
	free(r->heads);
	free(r->path);
	free(r);
}
