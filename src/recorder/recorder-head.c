/* SPDX-License-Identifier: MIT */
/* The head of a recording: its events, groups and machine, and what ran before it. */
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "image/build-id.h"
#include "image/kernel.h"
#include "recorder/recorder-inside.h"
#include "recorder/tracing-data.h"

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

/* With the modifier that the kernel added to it; NULL: no memory. */
static const char *granted_name(const struct tally_event *event, struct buf *room)
{
	buf_reset(room);
	buf_printf(room, "%s%s", recorded_name(event), tally_event_granted_modifier(event));
	return buf_text(room);
}

static int add_events(struct tally_recorder *r, const struct tally_sampler *sampler,
		      const struct tally_events *events, struct tally_error *err)
{
	struct buf room = { 0 };
	int ret = 0;

	for (uint32_t i = 0; ret == 0 && i < tally_events_count(events); i++) {
		const char *name = granted_name(tally_events_at(events, i), &room);
		const uint64_t *ids;
		uint32_t count = tally_sampler_ids(sampler, i, &ids);
		struct tally_attr attr = *tally_sampler_attr(sampler, i);
		/* The chains of the file have what those of the kernel lack. */
		if (r->unwinding.unwinder && attr.sample_type & TALLY_SAMPLE_STACK_USER)
			attr.flags &= ~TALLY_ATTR_EXCLUDE_CALLCHAIN_USER;
		ret = name ? tally_writer_event(r->writer, name, &attr, ids, count, err)
			   : error_nomem(err, "the name of an event");
	}
	buf_done(&room);
	return ret;
}

static int add_kernel_build_id(struct tally_recorder *r)
{
	struct build_id id = kernel_build_id(r->opts.root);

	return id.len ? tally_writer_build_id(r->writer, TALLY_MISC_KERNEL, -1, "[kernel.kallsyms]",
					      id.bytes, id.len)
		      : 0;
}

/* Groups as the file's readers know them, with the names that perf gives: its leader's stand for it. */
static int add_groups(struct tally_recorder *r)
{
	int ret = 0;

	for (uint32_t i = 0; ret == 0 && i < tally_events_count(r->events); i++) {
		const struct tally_event *event = tally_events_at(r->events, i);
		uint32_t members = tally_event_group_size(event);
		if (tally_event_leader(event) == i && members > 1)
			ret = tally_writer_group(r->writer, "{anon_group}", i, members);
	}
	return ret;
}

/* Before the records, where a stream's reader needs it. */
static int describe(struct tally_recorder *r, struct tally_error *err)
{
	uint32_t words = 0;
	int ret = tally_writer_describe_machine(r->writer, r->opts.root);

	while (r->opts.cmdline && r->opts.cmdline[words])
		words++;
	if (ret == 0 && words)
		ret = tally_writer_cmdline(r->writer, words, r->opts.cmdline);
	if (ret == 0)
		ret = add_groups(r);
	if (ret == 0)
		ret = tracing_data_write(r->writer, r->events, r->opts.root);
	if (ret == 0)
		ret = add_kernel_build_id(r);
	return ret < 0 ? error_nomem(err, "the description of the recording") : 0;
}

int recorder_open_writer(struct tally_recorder *r, struct tally_error *err)
{
	struct tally_writer_opts opts = {
		.size = sizeof(opts),
		.owner_uid_plus_1 = r->opts.owner_uid_plus_1,
		.owner_gid_plus_1 = r->opts.owner_gid_plus_1,
		.compress = r->opts.compress,
	};
	int ret = tally_writer_open(&r->writer, r->path, &opts, err);

	if (ret == 0)
		ret = add_events(r, r->sampler, r->events, err);
	if (ret == 0 && r->side)
		ret = add_events(r, r->side, r->side_events, err);
	if (ret == 0)
		ret = describe(r, err);
	if (ret == 0)
		ret = tally_writer_begin(r->writer, err);
	if (ret < 0)
		return ret;
	r->drain.writer = r->synth.writer = r->writer;
	ret = synth_kernel(&r->synth, err);
	if (ret == 0)
		ret = synth_threads(&r->synth, &r->target, err);
	return ret < 0 ? ret : synth_cpus(&r->synth, r->sampler, err);
}
