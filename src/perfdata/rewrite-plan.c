/* SPDX-License-Identifier: MIT */
/* Several recordings' events in one: which machines they are of, and ids that tell all apart. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "perfdata/rewrite.h"

/* The kernel's PID_MAX_LIMIT: no machine has a process of this number. */
#define PIDS_OF_A_MACHINE (1 << 22)
#define MACHINES_MAX      511

/* perf refuses attrs that are larger than those it knows. */
#define ATTR_SIZE_PERF_6_1 128

/* Ids are counted up from 1 since the machine started: no kernel gets that far. */
#define ID_SHIFT 48

static void find_machines(struct rewrite *w)
{
	w->machines = 0;
	for (uint32_t i = 0; i < w->count; i++) {
		struct input *in = &w->inputs[i];
		const char *host = tally_reader_text(in->reader, TALLY_FEATURE_HOSTNAME);
		in->host = host ? host : "";
		in->machine = w->machines;
		for (uint32_t j = 0; j < i; j++)
			if (!strcmp(w->inputs[j].host, in->host))
				in->machine = w->inputs[j].machine;
		w->machines += in->machine == w->machines;
		in->patch.pid_shift = (int32_t)in->machine * PIDS_OF_A_MACHINE;
	}
}

static int refuse(const struct input *in, const char *why, struct tally_error *err)
{
	return error_set(err, -EOPNOTSUPP, TALLY_CAUSE_UNSUPPORTED, "%s cannot be merged: %s",
			 in->path, why);
}

static bool has_feature(const struct input *in, uint32_t feature)
{
	const void *bytes;
	uint64_t len;

	return tally_reader_feature(in->reader, feature, &bytes, &len) == 1;
}

static bool ids_everywhere(const struct input *in)
{
	return tally_reader_event(in->reader, 0)->attr.flags & TALLY_ATTR_SAMPLE_ID_ALL;
}

static int check_mergeable(const struct rewrite *w, struct tally_error *err)
{
	if (w->machines > MACHINES_MAX)
		return refuse(&w->inputs[w->count - 1], "files of more than 511 machines", err);
	for (uint32_t i = 0; i < w->count; i++) {
		const struct input *in = &w->inputs[i];
		if (tally_reader_swapped(in->reader) != tally_reader_swapped(w->inputs[0].reader))
			return refuse(in, "it has another byte order than the first", err);
		if (has_feature(in, TALLY_FEATURE_AUXTRACE))
			return refuse(in, "it has an AUX trace", err);
		if (has_feature(in, TALLY_FEATURE_STAT))
			return refuse(in, "it is of perf stat record", err);
		if (ids_everywhere(in) != ids_everywhere(&w->inputs[0]))
			return refuse(in,
				      "in it or in the first, records other than samples carry no "
				      "times and ids (attr.sample_id_all)",
				      err);
	}
	return 0;
}

static bool taken(const struct map64 *ids, const struct input *in, uint64_t shift)
{
	for (uint32_t i = 0; i < tally_reader_events(in->reader); i++) {
		const struct tally_reader_event *e = tally_reader_event(in->reader, i);
		for (uint32_t j = 0; j < e->id_count; j++)
			if (e->ids[j] && map64_get(ids, e->ids[j] + shift))
				return true;
	}
	return false;
}

static int take(struct map64 *ids, const struct input *in)
{
	for (uint32_t i = 0; i < tally_reader_events(in->reader); i++) {
		const struct tally_reader_event *e = tally_reader_event(in->reader, i);
		for (uint32_t j = 0; j < e->id_count; j++) {
			uint32_t *slot = map64_at(ids, e->ids[j] + in->patch.id_shift);
			if (!slot)
				return -ENOMEM;
			*slot = 1;
		}
	}
	return 0;
}

static int separate_ids(struct rewrite *w, struct map64 *ids, struct tally_error *err)
{
	for (uint32_t i = 0; i < w->count; i++) {
		struct input *in = &w->inputs[i];
		if (taken(ids, in, 0))
			in->patch.id_shift = (uint64_t)i << ID_SHIFT;
		if (in->patch.id_shift && taken(ids, in, in->patch.id_shift))
			return refuse(in, "its events' ids are the others', also when shifted",
				      err);
		if (take(ids, in) < 0)
			return error_nomem(err, "the ids of the events");
	}
	return 0;
}

static bool lacks_identifier(const struct tally_reader_event *e)
{
	return !(e->attr.sample_type & TALLY_SAMPLE_IDENTIFIER);
}

/* Unless all have it, records of one file could not be told from those of another. */
static bool needs_identifiers(const struct rewrite *w)
{
	for (uint32_t i = 0; w->count > 1 && i < w->count; i++)
		for (uint32_t j = 0; j < tally_reader_events(w->inputs[i].reader); j++)
			if (lacks_identifier(tally_reader_event(w->inputs[i].reader, j)))
				return true;
	return false;
}

static uint64_t new_id(struct map64 *ids)
{
	for (uint64_t id = 1;; id++)
		if (!map64_get(ids, id)) {
			uint32_t *slot = map64_at(ids, id);
			if (!slot)
				return 0;
			*slot = 1;
			return id;
		}
}

static int identify(struct rewrite *w, struct map64 *ids)
{
	for (uint32_t i = 0; i < w->count; i++) {
		struct input *in = &w->inputs[i];
		for (uint32_t j = 0; j < tally_reader_events(in->reader); j++) {
			const struct tally_reader_event *e = tally_reader_event(in->reader, j);
			if (!lacks_identifier(e))
				continue;
			in->identify[j] = e->id_count && e->ids[0] ? e->ids[0] + in->patch.id_shift
								   : new_id(ids);
			if (!in->identify[j])
				return -ENOMEM;
		}
	}
	return 0;
}

/* An event's ids in the result: its own, shifted, or the one that it got. */
static uint64_t *new_ids(const struct input *in, uint32_t i, uint32_t *count)
{
	const struct tally_reader_event *e = tally_reader_event(in->reader, i);
	uint64_t *ids = calloc(e->id_count + (size_t)1, sizeof(*ids));

	*count = e->id_count;
	for (uint32_t j = 0; ids && j < e->id_count; j++)
		ids[j] = e->ids[j] ? e->ids[j] + in->patch.id_shift : 0;
	if (ids && !e->id_count && in->identify[i])
		ids[(*count)++] = in->identify[i];
	return ids;
}

static int add_event(struct rewrite *w, const struct input *in, uint32_t i, struct tally_error *err)
{
	const struct tally_reader_event *e = tally_reader_event(in->reader, i);
	struct tally_attr attr = e->attr;
	char *name = NULL;
	uint32_t count;
	uint64_t *ids = new_ids(in, i, &count);
	int r = -ENOMEM;

	if (in->identify[i])
		attr.sample_type |= TALLY_SAMPLE_IDENTIFIER;
	const char *host = in->patch.rename
				   ? in->patch.rename(TALLY_REWRITE_HOST, in->host, in->patch.arg)
				   : NULL;
	if (asprintf(&name, w->machines > 1 ? "%s@%s" : "%s", e->name, host ? host : in->host) < 0)
		name = NULL;
	if (name && ids)
		r = tally_writer_event(w->writer, name, &attr, ids, count, err);
	else
		error_nomem(err, "an event");
	/* As in the file, since perf evlist shows it; where Debian's perf would refuse the file, as
	 * small as it can be. */
	if (e->raw_attr_len > w->writer->attr_size && e->raw_attr_len <= ATTR_SIZE_PERF_6_1)
		w->writer->attr_size = e->raw_attr_len;
	free(name);
	free(ids);
	return r;
}

static int add_events(struct rewrite *w, struct tally_error *err)
{
	bool found = false;

	for (uint32_t i = 0; i < w->count; i++) {
		struct input *in = &w->inputs[i];
		for (uint32_t j = 0; j < tally_reader_events(in->reader); j++) {
			int r = add_event(w, in, j, err);
			if (r < 0)
				return r;
			found |= wanted_event(&w->opts, tally_reader_event(in->reader, j)->name);
		}
	}
	if (!found)
		return error_set(err, -ENOENT, TALLY_CAUSE_UNKNOWN,
				 "%s has no event '%s'; its first is '%s'", w->inputs[0].path,
				 w->opts.event, tally_reader_event(w->inputs[0].reader, 0)->name);
	return 0;
}

int rewrite_plan(struct rewrite *w, struct tally_error *err)
{
	struct map64 ids = { 0 };
	int r = 0;

	for (uint32_t i = 0; i < w->count; i++) {
		struct input *in = &w->inputs[i];
		in->identify = calloc(tally_reader_events(in->reader), sizeof(*in->identify));
		if (!in->identify)
			return error_nomem(err, "the events");
	}
	find_machines(w);
	if (w->count > 1)
		r = check_mergeable(w, err);
	if (r == 0 && w->count > 1)
		r = separate_ids(w, &ids, err);
	if (r == 0 && needs_identifiers(w) && identify(w, &ids) < 0)
		r = error_nomem(err, "the ids of the events");
	map64_done(&ids);
	return r < 0 ? r : add_events(w, err);
}
