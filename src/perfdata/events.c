/* SPDX-License-Identifier: MIT */
/* Events of a file, and the search of a record's event by its id. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tally/event.h>
#include <tally/record.h>

#include "base/bytes.h"
#include "perfdata/events.h"

/* What stands before the id in a sample, and therefore has to be equal for the id to be found. */
#define BEFORE_ID                                                                     \
	(TALLY_SAMPLE_IP | TALLY_SAMPLE_TID | TALLY_SAMPLE_TIME | TALLY_SAMPLE_ADDR | \
	 TALLY_SAMPLE_ID)
/* And behind it in the sample_id of other records. */
#define BEHIND_ID (TALLY_SAMPLE_CPU | TALLY_SAMPLE_STREAM_ID)

#define BEFORE_TIME (TALLY_SAMPLE_IDENTIFIER | TALLY_SAMPLE_IP | TALLY_SAMPLE_TID)
#define BEHIND_TIME \
	(TALLY_SAMPLE_ID | TALLY_SAMPLE_STREAM_ID | TALLY_SAMPLE_CPU | TALLY_SAMPLE_IDENTIFIER)

static void event_done(struct tally_reader_event *event)
{
	free((char *)(uintptr_t)event->name);
	free((void *)(uintptr_t)event->raw_attr);
	free((uint64_t *)(uintptr_t)event->ids);
}

static uint64_t *load_ids(const uint8_t *bytes, uint32_t count, bool swapped)
{
	uint64_t *ids = malloc((count + (size_t)1) * sizeof(*ids));

	for (uint32_t i = 0; ids && i < count; i++)
		ids[i] = load_u64(bytes + (size_t)i * sizeof(*ids), swapped);
	return ids;
}

int events_add(struct events *e, const struct source *src, const uint8_t *attr, size_t len,
	       const uint8_t *ids, uint32_t id_count)
{
	struct tally_reader_event event = { .id_count = id_count };
	int size = tally_attr_decode(&event.attr, attr, len, src->swapped);

	if (size < 0)
		return size;
	uint8_t *raw = malloc((size_t)size);
	event.raw_attr = raw;
	event.raw_attr_len = (uint32_t)size;
	event.ids = load_ids(ids, id_count, src->swapped);
	struct tally_reader_event *slot = raw && event.ids ? vec_push(&e->list) : NULL;
	if (!slot) {
		event_done(&event);
		return -ENOMEM;
	}
	memcpy(raw, attr, (size_t)size);
	*slot = event;
	return size;
}

static int set_name(struct tally_reader_event *event, struct text name)
{
	char *copy = strndup(name.at, name.len);

	if (!copy)
		return -ENOMEM;
	free((char *)(uintptr_t)event->name);
	event->name = copy;
	return 0;
}

static bool has_id(const struct tally_reader_event *event, uint64_t id)
{
	for (uint32_t i = 0; i < event->id_count; i++)
		if (event->ids[i] == id)
			return true;
	return false;
}

int events_rename(struct events *e, uint64_t id, struct text name)
{
	if (!name.len)
		return 0;
	vec_each (&e->list, event)
		if (has_id(event, id) || (e->list.count == 1 && !event->id_count))
			return set_name(event, name);
	return 0;
}

static bool describes(const struct event_desc *desc, const struct tally_reader_event *event)
{
	return !event->name && event->attr.type == desc->attr.type &&
	       event->attr.config == desc->attr.config;
}

/* Entries stand in the order of the attrs, but for files that a tool took events out of. */
static struct tally_reader_event *described(struct events *e, uint32_t i,
					    const struct event_desc *desc)
{
	if (i < e->list.count && describes(desc, &e->list.at[i]))
		return &e->list.at[i];
	vec_each (&e->list, event)
		if (describes(desc, event))
			return event;
	return NULL;
}

static int name_by_description(struct events *e, struct sections *sections)
{
	struct cursor c = sections_cursor(sections, TALLY_FEATURE_EVENT_DESC);
	struct event_desc desc;
	uint32_t attr_size, count = c.left ? take_events_head(&c, &attr_size) : 0;

	for (uint32_t i = 0; i < count && take_event(&c, attr_size, &desc); i++) {
		struct tally_reader_event *event = desc.name.len ? described(e, i, &desc) : NULL;
		if (event && set_name(event, desc.name) < 0)
			return -ENOMEM;
	}
	if (c.bad)
		source_complain(sections->src, "has a damaged feature EVENT_DESC");
	return 0;
}

/* What perf shows; perf list has other names for two of them. */
static const char *const hardware[] = {
	[TALLY_HW_CPU_CYCLES] = "cycles",
	[TALLY_HW_INSTRUCTIONS] = "instructions",
	[TALLY_HW_CACHE_REFERENCES] = "cache-references",
	[TALLY_HW_CACHE_MISSES] = "cache-misses",
	[TALLY_HW_BRANCH_INSTRUCTIONS] = "branches",
	[TALLY_HW_BRANCH_MISSES] = "branch-misses",
	[TALLY_HW_BUS_CYCLES] = "bus-cycles",
	[TALLY_HW_STALLED_CYCLES_FRONTEND] = "stalled-cycles-frontend",
	[TALLY_HW_STALLED_CYCLES_BACKEND] = "stalled-cycles-backend",
	[TALLY_HW_REF_CPU_CYCLES] = "ref-cycles",
};

static int set_text(struct tally_reader_event *event, const char *name)
{
	return set_name(event, (struct text){ name, strlen(name) });
}

static int name_by_config(struct tally_reader_event *event)
{
	const uint32_t type = event->attr.type;
	const uint64_t config = event->attr.config;
	struct tally_events *list;
	struct tally_attr plain;
	char number[64];

	if (type == TALLY_TYPE_HARDWARE && config < ARRAY_SIZE(hardware))
		return set_text(event, hardware[config]);
	snprintf(number, sizeof(number), "raw %#" PRIx64, config);
	if (type == TALLY_TYPE_RAW)
		return set_text(event, number);
	tally_attr_init(&plain, type, config);
	if (tally_events_new(&list, NULL, &plain, NULL, NULL) < 0) {
		snprintf(number, sizeof(number), "type %u config %#" PRIx64, type, config);
		return set_text(event, number);
	}
	int r = set_text(event, tally_event_name(tally_events_at(list, 0)));
	tally_events_free(list);
	return r;
}

/* The id has one place if it leads all samples and ends all other records (IDENTIFIER), or if the
 * fields around it are the same. */
static bool same_place(uint64_t a, uint64_t b)
{
	if ((a ^ b) & TALLY_SAMPLE_IDENTIFIER)
		return false;
	return (a & TALLY_SAMPLE_IDENTIFIER) || !((a ^ b) & (BEFORE_ID | BEHIND_ID));
}

static int index_ids(struct events *e, struct source *src)
{
	uint64_t first = e->list.at[0].attr.sample_type;

	for (uint32_t i = 0; i < e->list.count; i++) {
		const struct tally_reader_event *event = &e->list.at[i];
		if (!same_place(first, event->attr.sample_type)) {
			source_complain(src,
					"has events that keep their ids in different places: all "
					"records are taken to be of the first event's form");
			return 0;
		}
		for (uint32_t k = 0; k < event->id_count; k++) {
			uint32_t *slot = map64_at(&e->by_id, event->ids[k]);
			if (!slot)
				return -ENOMEM;
			*slot = *slot ? *slot : i + 1;
		}
	}
	e->telling = e->list.count > 1 && e->by_id.count;
	return 0;
}

static uint16_t words(uint64_t bits)
{
	return (uint16_t)(__builtin_popcountll(bits) * 8);
}

static struct time_place place_time(const struct tally_attr *attr)
{
	const uint64_t type = attr->sample_type;
	struct time_place place = { 0 };

	if (!(type & TALLY_SAMPLE_TIME))
		return place;
	place.sample = RECORD_HEADER + words(type & BEFORE_TIME);
	if (attr->flags & TALLY_ATTR_SAMPLE_ID_ALL)
		place.behind = 8 + words(type & BEHIND_TIME);
	return place;
}

int events_settle(struct events *e, struct source *src, struct sections *sections)
{
	e->layouts = calloc(e->list.count, sizeof(*e->layouts));
	e->times = calloc(e->list.count, sizeof(*e->times));
	if (!e->layouts || !e->times || name_by_description(e, sections) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < e->list.count; i++) {
		struct tally_reader_event *event = &e->list.at[i];
		if (!event->name && name_by_config(event) < 0)
			return -ENOMEM;
		tally_layout_init(&e->layouts[i], &event->attr, src->swapped);
		e->times[i] = place_time(&event->attr);
	}
	return index_ids(e, src);
}

uint32_t events_find(const struct events *e, uint32_t type, const void *bytes, uint32_t len)
{
	if (!e->telling || type >= RECORD_USER)
		return 0;
	uint64_t id = tally_record_id(&e->layouts[0], bytes, len);
	uint32_t found = id ? map64_get(&e->by_id, id) : 0;
	return found ? found - 1 : 0;
}

uint64_t events_time(const struct events *e, uint32_t event, uint32_t type, const uint8_t *bytes,
		     uint32_t len)
{
	const struct time_place *place = &e->times[event];
	const bool swapped = e->layouts[event].swapped;

	if (type == TALLY_RECORD_SAMPLE)
		return place->sample && len >= place->sample + 8u
			       ? load_u64(bytes + place->sample, swapped)
			       : 0;
	return place->behind && len >= RECORD_HEADER + place->behind
		       ? load_u64(bytes + len - place->behind, swapped)
		       : 0;
}

void events_done(struct events *e)
{
	vec_each (&e->list, event)
		event_done(event);
	vec_done(&e->list);
	free(e->layouts);
	free(e->times);
	map64_done(&e->by_id);
}
