/* SPDX-License-Identifier: MIT */
/*
 * tally_survey: what a recording consists of, and what is wrong with it.
 *
 *	tally_survey_new(&survey, "perf.data", &err);
 *	for (i = 0; (line = tally_survey_type(survey, i)); i++)
 *		printf("%s %llu\n", line->name, line->count);
 *	tally_survey_free(survey);
 */
#ifndef TALLY_SURVEY_H
#define TALLY_SURVEY_H

#include <tally/api.h>
#include <tally/error.h>
#include <tally/reader.h>

TALLY_BEGIN_DECLS

struct tally_survey;

/* How many records of a type there are. */
struct tally_survey_type {
	uint32_t type;
	uint32_t reserved;
	const char *name; /* as perf's; "UNKNOWN" when it is not known */
	uint64_t count;
};

/* An event of the recording, and its samples. */
struct tally_survey_event {
	const char *name;
	uint64_t samples;
};

struct tally_survey_totals {
	uint64_t bytes; /* of the file */
	uint64_t records, samples;
	uint64_t first, last;  /* times of samples, ns of the recording's clock; 0: none */
	uint64_t lost_records; /* by LOST records */
	uint64_t lost_samples; /* by LOST_SAMPLES records */
	uint64_t throttled;    /* THROTTLE records */
	uint32_t attr_size;    /* the largest of the events', bytes */
	uint32_t swapped;      /* the other byte order */
	int32_t clockid;       /* of the first event; -1: perf's clock */
	uint32_t reserved;
};

/* How much of something wrong was found. */
enum tally_survey_grade {
	TALLY_SURVEY_NOTE,  /* it may surprise: another reader refuses it, say */
	TALLY_SURVEY_FAULT, /* it is not as it should be: cut short, damaged, out of order */
};

struct tally_survey_finding {
	uint32_t grade; /* enum tally_survey_grade */
	uint32_t reserved;
	const char *text; /* a sentence without a full stop */
};

/*
 * Reads all of a recording. A damaged one is surveyed up to the damage, which is a finding. Errors:
 * of tally_reader_open; of reading. Since: 0.1
 */
TALLY_API int tally_survey_new(struct tally_survey **out, const char *path,
			       struct tally_error *err);

/* The sums. `out_size` is sizeof *out, as the caller compiled it. Since: 0.1 */
TALLY_API void tally_survey_totals(const struct tally_survey *survey,
				   struct tally_survey_totals *out, size_t out_size);

/* The i-th of them, NULL beyond the end: types by their number, events as in the file, findings as
 * they were met. They live as long as the survey. Since: 0.1 */
TALLY_API const struct tally_survey_type *tally_survey_type(const struct tally_survey *survey,
							    uint32_t i);
TALLY_API const struct tally_survey_event *tally_survey_event(const struct tally_survey *survey,
							      uint32_t i);
TALLY_API const struct tally_survey_finding *tally_survey_finding(const struct tally_survey *survey,
								  uint32_t i);

/* The reader that was used, for its features. Since: 0.1 */
TALLY_API const struct tally_reader *tally_survey_reader(const struct tally_survey *survey);

/* A feature's name as perf prints it ("HOSTNAME"); NULL when unknown. Since: 0.1 */
TALLY_API const char *tally_feature_name(uint32_t feature);

/* NULL is fine. Since: 0.1 */
TALLY_API void tally_survey_free(struct tally_survey *survey);

TALLY_END_DECLS

#endif
