/* SPDX-License-Identifier: MIT */
/* Reading all of a recording, to count what is in it and to find what is wrong. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tally/survey.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/vec.h"
#include "perfdata/feature.h"

/* header.type has 32 bits; beyond these all count as one. */
#define TYPES 256

/* Debian 12's perf 6.1 refuses a file whose attrs are larger than those it knows. */
#define ATTR_SIZE_PERF_6_1 128

struct found {
	struct tally_survey_finding finding;
	char text[512];
};

struct tally_survey {
	struct tally_reader *reader;
	struct tally_survey_totals totals;
	uint64_t counts[TYPES + 1];
	VEC(struct tally_survey_type) types;
	VEC(struct tally_survey_event) events;
	VEC(struct found *) findings;
	uint64_t odd, undecodable,
		early; /* records: of odd sizes, that contradict themselves ... */
	uint64_t newest, marked, promised; /* times: so far, at the last round, at the one before */
	uint64_t rounds;
	bool failed;
};

TALLY_PRINTF(3, 4)
static void find(struct tally_survey *s, uint32_t grade, const char *fmt, ...)
{
	struct found *found = calloc(1, sizeof(*found)), **slot = vec_push(&s->findings);
	va_list args;

	if (!found || !slot) {
		s->findings.count -= slot ? 1 : 0;
		free(found);
		s->failed = true;
		return;
	}
	va_start(args, fmt);
	vsnprintf(found->text, sizeof(found->text), fmt, args);
	va_end(args);
	found->finding = (struct tally_survey_finding){ .grade = grade, .text = found->text };
	*slot = found;
}

/* Whether records may come in odd sizes, as perf wrote them up to 6.9. */
static bool may_be_odd(uint32_t type)
{
	return type == TALLY_FILE_HEADER_FEATURE || type == TALLY_FILE_COMPRESSED ||
	       type == TALLY_FILE_TRACING_DATA || type == TALLY_FILE_COMPRESSED2;
}

/* After a round, nothing may be older than the newest of the round before. */
static void check_order(struct tally_survey *s, const struct tally_record *rec)
{
	if (rec->type == TALLY_FILE_FINISHED_ROUND) {
		s->promised = s->marked;
		s->marked = s->newest;
		s->rounds++;
		return;
	}
	uint64_t time = rec->id.has & TALLY_SAMPLE_TIME ? rec->id.time : 0;
	if (!time || time == UINT64_MAX)
		return;
	s->early += time < s->promised;
	s->newest = time > s->newest ? time : s->newest;
}

static void count_sample(struct tally_survey *s, const struct tally_record *rec, uint32_t event)
{
	struct tally_survey_totals *t = &s->totals;

	t->samples++;
	if (event < s->events.count)
		s->events.at[event].samples++;
	if (!(rec->id.has & TALLY_SAMPLE_TIME))
		return;
	if (!t->last || rec->id.time < t->first)
		t->first = rec->id.time;
	if (rec->id.time > t->last)
		t->last = rec->id.time;
}

static void take(struct tally_survey *s, const struct tally_reader_record *item)
{
	struct tally_record rec;

	s->counts[item->type < TYPES ? item->type : TYPES]++;
	s->totals.records++;
	s->odd += item->len % 8 && !may_be_odd(item->type);
	if (tally_record_decode(item->layout, item->bytes, item->len, &rec, sizeof(rec)) <= 0) {
		s->undecodable++;
		return;
	}
	check_order(s, &rec);
	if (rec.type == TALLY_RECORD_SAMPLE)
		count_sample(s, &rec, item->event);
	else if (rec.type == TALLY_RECORD_LOST)
		s->totals.lost_records += rec.lost.lost;
	else if (rec.type == TALLY_RECORD_LOST_SAMPLES)
		s->totals.lost_samples += rec.lost.lost;
	else if (rec.type == TALLY_RECORD_THROTTLE)
		s->totals.throttled++;
}

static void find_faults(struct tally_survey *s, const struct tally_error *broken)
{
	const char *health = tally_reader_health(s->reader);

	if (broken->code)
		find(s, TALLY_SURVEY_FAULT, "%s", broken->text);
	if (health)
		find(s, TALLY_SURVEY_FAULT, "it %s", health);
	if (s->undecodable)
		find(s, TALLY_SURVEY_FAULT, "%" PRIu64 " records contradict themselves",
		     s->undecodable);
	if (s->early)
		find(s, TALLY_SURVEY_FAULT,
		     "%" PRIu64
		     " records are older than their round allows: readers show them late",
		     s->early);
	if (s->odd)
		find(s, TALLY_SURVEY_NOTE,
		     "%" PRIu64 " records have a size that is no multiple of 8, which the newest "
		     "perf refuses",
		     s->odd);
	if (s->counts[TYPES])
		find(s, TALLY_SURVEY_NOTE,
		     "%" PRIu64 " records are of unknown types, at which perf up to 6.12 ends",
		     s->counts[TYPES]);
}

static void find_notes(struct tally_survey *s)
{
	const struct tally_survey_totals *t = &s->totals;

	if (!tally_reader_text(s->reader, TALLY_FEATURE_HOSTNAME))
		find(s, TALLY_SURVEY_NOTE,
		     "it has no feature HOSTNAME, without which some readers ignore all features");
	if (t->attr_size > ATTR_SIZE_PERF_6_1)
		find(s, TALLY_SURVEY_NOTE,
		     "its events have %" PRIu32 " bytes: perf up to 6.2 refuses the file",
		     t->attr_size);
	if (!s->rounds && t->samples)
		find(s, TALLY_SURVEY_NOTE,
		     "it has no rounds (FINISHED_ROUND): readers sort all of it at once");
	if (t->lost_records || t->lost_samples)
		find(s, TALLY_SURVEY_NOTE,
		     "%" PRIu64 " records and %" PRIu64 " samples were lost while recording",
		     t->lost_records, t->lost_samples);
	if (!t->samples)
		find(s, TALLY_SURVEY_NOTE, "it has no sample");
}

static int prepare(struct tally_survey *s)
{
	const struct tally_attr *first = &tally_reader_event(s->reader, 0)->attr;

	s->totals.clockid = first->flags & TALLY_ATTR_USE_CLOCKID ? first->clockid : -1;
	s->totals.bytes = tally_reader_file_size(s->reader);
	s->totals.swapped = tally_reader_swapped(s->reader);
	for (uint32_t i = 0; i < tally_reader_events(s->reader); i++) {
		const struct tally_reader_event *e = tally_reader_event(s->reader, i);
		struct tally_survey_event *slot = vec_push(&s->events);
		if (!slot)
			return -ENOMEM;
		slot->name = e->name;
		if (e->raw_attr_len > s->totals.attr_size)
			s->totals.attr_size = e->raw_attr_len;
	}
	return 0;
}

static int list_types(struct tally_survey *s)
{
	for (uint32_t i = 0; i <= TYPES; i++) {
		struct tally_survey_type *slot = s->counts[i] ? vec_push(&s->types) : NULL;
		const char *name = i < TYPES ? tally_record_type_name(i) : NULL;
		if (s->counts[i] && !slot)
			return -ENOMEM;
		if (slot)
			*slot = (struct tally_survey_type){ .type = i,
							    .name = name ? name : "UNKNOWN",
							    .count = s->counts[i] };
	}
	return 0;
}

static int read_all(struct tally_survey *s, struct tally_error *err)
{
	struct tally_reader_record item;
	struct tally_error broken = { 0 };
	int r = prepare(s);

	if (r < 0)
		return error_nomem(err, "a survey");
	while ((r = tally_reader_next(s->reader, &item, &broken)) > 0)
		take(s, &item);
	if (r < 0 && r != -EBADMSG) {
		if (err)
			*err = broken;
		return r;
	}
	if (r == 0)
		broken.code = 0;
	find_faults(s, &broken);
	find_notes(s);
	return s->failed || list_types(s) < 0 ? error_nomem(err, "a survey") : 0;
}

int tally_survey_new(struct tally_survey **out, const char *path, struct tally_error *err)
{
	struct tally_survey *s = calloc(1, sizeof(*s));

	if (!s)
		return error_nomem(err, path);
	int r = tally_reader_open(&s->reader, path, NULL, err);
	if (r == 0)
		r = read_all(s, err);
	if (r < 0) {
		tally_survey_free(s);
		return r;
	}
	*out = s;
	return 0;
}

void tally_survey_free(struct tally_survey *s)
{
	if (!s)
		return;
	vec_each (&s->findings, found)
		free(*found);
	vec_done(&s->findings);
	vec_done(&s->types);
	vec_done(&s->events);
	tally_reader_close(s->reader);
	free(s);
}

void tally_survey_totals(const struct tally_survey *s, struct tally_survey_totals *out,
			 size_t out_size)
{
	memset(out, 0, out_size);
	memcpy(out, &s->totals, out_size < sizeof(s->totals) ? out_size : sizeof(s->totals));
}

const struct tally_survey_type *tally_survey_type(const struct tally_survey *s, uint32_t i)
{
	return i < s->types.count ? &s->types.at[i] : NULL;
}

const struct tally_survey_event *tally_survey_event(const struct tally_survey *s, uint32_t i)
{
	return i < s->events.count ? &s->events.at[i] : NULL;
}

const struct tally_survey_finding *tally_survey_finding(const struct tally_survey *s, uint32_t i)
{
	return i < s->findings.count ? &s->findings.at[i]->finding : NULL;
}

const struct tally_reader *tally_survey_reader(const struct tally_survey *s)
{
	return s->reader;
}

const char *tally_feature_name(uint32_t feature)
{
	const char *name = feature_name(feature);

	return *name == '?' ? NULL : name;
}
