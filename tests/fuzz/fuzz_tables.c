/* SPDX-License-Identifier: MIT */
/*
 * The rows of event tables. Whatever a row holds, its terms are a list that cannot end the slashes
 * around it, or there is a reason; texts end where they should.
 */
#include <errno.h>
#include <string.h>

#include "event/cpu.h"
#include "event/tables-row.h"

#include "fuzz.h"

static void check_event(const struct row *row, struct buf *text)
{
	struct table_event e;

	must(row_event(row, "topic", &e, text) == 0);
	must(!*e.terms != !*e.why);
	must(!e.terms[strcspn(e.terms, "/ \t\n{}'\"\\")]);
	must(*e.pmu);
	must(e.core == !strcmp(e.pmu, "cpu") || !e.core);
	must(e.scale >= 0 && e.scale < 1e308);
	must(strlen(e.name) <= row->at[ROW_EVENT_NAME].len);
	must(strlen(e.brief) <= row->at[ROW_BRIEF].len);
	must(strlen(e.details) <= row->at[ROW_PUBLIC].len);
	must(strlen(e.errata) <= row->at[ROW_ERRATA].len);
}

static void check_metric(const struct row *row, struct buf *text)
{
	struct table_metric m;

	must(row_metric(row, &m, text) == 0);
	must(strlen(m.formula) <= row->at[ROW_METRIC_EXPR].len);
	must(strlen(m.groups) <= row->at[ROW_METRIC_GROUP].len);
	must(strlen(m.name) <= row->at[ROW_METRIC_NAME].len);
	must(strlen(m.unit) <= row->at[ROW_SCALE_UNIT].len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf text = { 0 };
	struct rows rows;
	struct row row, first;
	int r, count = 0;

	rows_init(&rows, (const char *)data, size);
	while ((r = rows_next(&rows, &row)) > 0) {
		if (!count++)
			first = row;
		check_event(&row, &text);
		check_metric(&row, &text);
		row_inherit(&row, &first);
		check_event(&row, &text);
	}
	must(r == 0 || rows.json.why);
	buf_done(&text);

	/* The first column of a mapfile.csv is as hostile. */
	char pattern[128];
	size_t len = size < sizeof(pattern) - 1 ? size : sizeof(pattern) - 1;
	memcpy(pattern, data, len);
	pattern[len] = '\0';
	cpu_matches(pattern, "GenuineIntel-6-55-4");
	cpu_matches(pattern, "0x00000000410fd0c0");
	return 0;
}
