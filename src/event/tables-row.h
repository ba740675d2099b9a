/* SPDX-License-Identifier: MIT */
/* The rows of a table's JSON, and what a row means. */
#ifndef EVENT_TABLES_ROW_H
#define EVENT_TABLES_ROW_H

#include "base/json.h"
#include "event/tables.h"

/* Those that say what is counted come first: an architecture's standard event gives all of them. */
enum row_key {
	ROW_EVENT_CODE,
	ROW_EXT_SEL,
	ROW_CONFIG_CODE,
	ROW_EVENT_ID_CODE,
	ROW_ANY_THREAD,
	ROW_PORT_MASK,
	ROW_COUNTER_MASK,
	ROW_CMASK,
	ROW_EDGE_DETECT,
	ROW_FC_MASK,
	ROW_INVERT,
	ROW_SAMPLE_AFTER_VALUE,
	ROW_UMASK,
	ROW_NODE_TYPE,
	ROW_RD_WR_MASK,
	ROW_EN_ALL_CORES,
	ROW_EN_ALL_SLICES,
	ROW_SLICE_ID,
	ROW_THREAD_MASK,
	ROW_FILTER,
	ROW_MSR_INDEX,
	ROW_MSR_VALUE,
	ROW_ENCODING_END,
	ROW_UNIT = ROW_ENCODING_END, /* a standard event's is not taken */
	ROW_OWN_END,
	ROW_EVENT_NAME = ROW_OWN_END,
	ROW_ARCH_STD_EVENT,
	ROW_BRIEF,
	ROW_PUBLIC,
	ROW_SCALE_UNIT,
	ROW_PER_PKG,
	ROW_DEPRECATED,
	ROW_PEBS,
	ROW_ERRATA,
	ROW_METRIC_NAME,
	ROW_METRIC_EXPR,
	ROW_METRIC_GROUP,
	ROW_METRIC_THRESHOLD,
	ROW_KEYS,
};

/* The values as they stand in the input; len 0: absent. */
struct row {
	struct json_token at[ROW_KEYS];
};

/* The rows of a file: of an array, or of the arrays Events and Metrics of an object. */
struct rows {
	struct json json;
	unsigned level; /* where the rows' array is; 0: in none */
	bool listed;    /* the last key was one that holds rows */
};

void rows_init(struct rows *rows, const char *text, size_t len);

/* 1: the next row; 0: there is none. Errors: as json_next(). */
int rows_next(struct rows *rows, struct row *out);

/* Whether the value is this text, without regard to case. */
bool row_is(const struct row *row, enum row_key key, const char *text, size_t len);

/* The row with all that it leaves to an architecture's standard event. */
void row_inherit(struct row *row, const struct row *standard);

/* Its texts are made in `text`, which is emptied, and live as long. 0 or -ENOMEM. */
int row_event(const struct row *row, const char *topic, struct table_event *out, struct buf *text);
int row_metric(const struct row *row, struct table_metric *out, struct buf *text);

#endif
