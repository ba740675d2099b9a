/* SPDX-License-Identifier: MIT */
/*
 * What a recorder opens: the sampler of the events, another one for the side-band where theirs does not
 * tell it for long enough, and the unwinder of their stacks.
 */
#include <errno.h>

#include <tally/freeze.h>

#include "base/bytes.h"
#include "base/error.h"
#include "recorder/recorder-inside.h"

/* What the sampler of the side-band is asked for as that of the events is. */
#define SIDE_FLAGS                                                                         \
	(TALLY_SAMPLER_NO_INHERIT | TALLY_SAMPLER_PERF_CLOCK | TALLY_SAMPLER_USE_CLOCKID | \
	 TALLY_SAMPLER_DATA | TALLY_SAMPLER_NAMESPACES | TALLY_SAMPLER_CGROUPS |           \
	 TALLY_SAMPLER_BPF | TALLY_SAMPLER_TEXT_POKES | TALLY_SAMPLER_NO_STOP)

/* Both ways of saying how to sample become one. */
static int sampling(const struct tally_recorder *r, struct tally_sampler_opts *out,
		    struct tally_error *err)
{
	static const struct {
		uint32_t recorder, sampler;
	} flags[] = {
		{ TALLY_RECORDER_CALLCHAIN, TALLY_SAMPLER_CALLCHAIN },
		{ TALLY_RECORDER_NO_INHERIT, TALLY_SAMPLER_NO_INHERIT },
		{ TALLY_RECORDER_PERF_CLOCK, TALLY_SAMPLER_PERF_CLOCK },
	};
	const struct tally_recorder_opts *o = &r->opts;
	bool simple = o->flags & RECORDER_SAMPLING || o->freq || o->period || o->sample_type ||
		      o->ring_bytes;

	if (o->sampler && simple)
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
				 "how to sample is given twice, by a sampler's options and beside");
	int ret = opts_read(out, sizeof(*out), UINT32_MAX, o->sampler, err);
	if (ret < 0)
		return ret;
	out->size = sizeof(*out);
	out->root = o->root;
	if (o->sampler)
		return 0;
	out->freq = o->freq;
	out->period = o->period;
	out->sample_type = o->sample_type;
	out->ring_bytes = o->ring_bytes;
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
		if (o->flags & flags[i].recorder)
			out->flags |= flags[i].sampler;
	return 0;
}

/* An event that counts nothing and stays on, for the records of what is mapped and started. */
static int open_side(struct tally_recorder *r, const struct tally_sampler_opts *with,
		     struct tally_error *err)
{
	const struct tally_events_opts events_opts = {
		.size = sizeof(events_opts),
		.fallback = TALLY_FALLBACK_NEWER_BITS | TALLY_FALLBACK_USER_ONLY,
		.root = r->opts.root,
	};
	struct tally_sampler_opts opts = {
		.size = sizeof(opts),
		.flags = with->flags & SIDE_FLAGS,
		.clockid = with->clockid,
		.freeze = with->freeze,
		.freq = 1,
		.sample_type = TALLY_SAMPLE_IDENTIFIER,
		.root = r->opts.root,
	};
	int ret = tally_events_parse(&r->side_events, "dummy", &events_opts, err);

	if (ret == 0)
		ret = tally_sampler_open(&r->side, r->side_events, &r->target, &opts, err);
	return ret == 0 ? drain_add(&r->drain, r->side, false, err) : ret;
}

/* The events, and another that stays on where they do not, or whose records last where theirs do not. */
static int open_both(struct tally_recorder *r, struct tally_sampler_opts *opts,
		     struct tally_error *err)
{
	struct tally_target target = r->target;
	int ret;

	opts->sample_type |= TALLY_SAMPLE_IDENTIFIER;
	ret = open_side(r, opts, err);
	if (ret < 0)
		return ret;
	opts->flags |= TALLY_SAMPLER_NO_SIDE_BAND;
	/* No exec shall enable what is to stay disabled. A command that waits starts no thread. */
	if (r->opts.flags & TALLY_RECORDER_DISABLED && target.scope == TALLY_SCOPE_COMMAND) {
		target.scope = TALLY_SCOPE_PROCESS;
		opts->flags |= TALLY_SAMPLER_NO_STOP;
	}
	return tally_sampler_open(&r->sampler, r->events, &target, opts, err);
}

/* Both samplers share one stop of a process. */
static int open_held(struct tally_recorder *r, struct tally_sampler_opts *opts,
		     struct tally_error *err)
{
	struct tally_freeze *freeze = NULL;

	if (r->target.scope == TALLY_SCOPE_PROCESS && !opts->freeze &&
	    !(opts->flags & TALLY_SAMPLER_NO_STOP)) {
		int ret = tally_freeze_open(&freeze, r->target.id,
					    TALLY_OPTS(freeze, .root = r->opts.root), err);
		if (ret < 0)
			return ret;
		opts->freeze = freeze;
	}
	int ret = open_both(r, opts, err);
	tally_freeze_close(freeze);
	return ret;
}

/* Where there are stacks to unwind, and a machine whose stacks can be. */
static int open_unwinding(struct tally_recorder *r, struct tally_error *err)
{
	const uint64_t needed = TALLY_SAMPLE_CALLCHAIN | TALLY_SAMPLE_REGS_USER |
				TALLY_SAMPLE_STACK_USER;
	uint64_t type = tally_sampler_attr(r->sampler, 0)->sample_type;

	if (!(r->opts.flags & TALLY_RECORDER_UNWIND) || r->overwrite || (type & needed) != needed)
		return 0;
	int ret = unwinding_open(&r->unwinding, r->sampler, r->events, r->opts.root, err);
	if (ret == -EOPNOTSUPP) {
		unwinding_done(&r->unwinding);
		return 0;
	}
	r->drain.unwinding = &r->unwinding;
	return ret;
}

static int open_samplers(struct tally_recorder *r, struct tally_error *err)
{
	struct tally_sampler_opts opts;
	int ret = sampling(r, &opts, err);

	if (ret < 0)
		return ret;
	if (r->opts.flags & TALLY_RECORDER_DISABLED && !(r->opts.flags & TALLY_RECORDER_SIDE_BAND))
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
				 "events that start disabled cannot tell what is mapped: DISABLED "
				 "needs SIDE_BAND");
	r->overwrite = opts.flags & TALLY_SAMPLER_OVERWRITE;
	if (r->overwrite || r->opts.flags & TALLY_RECORDER_SIDE_BAND)
		ret = open_held(r, &opts, err);
	else
		ret = tally_sampler_open(&r->sampler, r->events, &r->target, &opts, err);
	return ret == 0 ? drain_add(&r->drain, r->sampler, r->overwrite, err) : ret;
}

int recorder_open_samplers(struct tally_recorder *r, struct tally_error *err)
{
	int ret = open_samplers(r, err);

	return ret == 0 ? open_unwinding(r, err) : ret;
}
