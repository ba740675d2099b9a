/* SPDX-License-Identifier: MIT */
/*
 * What a metric is made of, for its own files: the formula as nodes in an order in which operands
 * stand before what uses them, so that one pass over them computes all, whatever their depth.
 */
#ifndef COUNT_METRIC_H
#define COUNT_METRIC_H

#include <tally/metric.h>

#include "base/buf.h"
#include "base/vec.h"

#define METRIC_MAX_NAME 255 /* of an event, after unescaping */

enum metric_op {
	OP_NUMBER,
	OP_EVENT,   /* a: index of the event */
	OP_SOURCES, /* a: index of the event */
	OP_TIME,    /* a: enum metric_time */
	OP_NEGATE,  /* a */
	OP_IF,      /* a when c, else b */
	/* Of a and b. */
	OP_ADD,
	OP_SUB,
	OP_MUL,
	OP_DIV,
	OP_MOD,
	OP_LESS,
	OP_MORE,
	OP_AND,
	OP_XOR,
	OP_OR,
	OP_MIN,
	OP_MAX,
	OP_RATIO,
};

enum metric_time {
	TIME_DURATION,
	TIME_USER,
	TIME_SYSTEM,
};

struct metric_node {
	uint8_t op;
	uint32_t a, b, c;
	uint32_t source, column; /* where it was written; column from 1 */
	double number;
};

/* Why there is no value. */
enum metric_reason {
	REASON_NONE,
	REASON_MISSING,   /* no result has this label */
	REASON_MODES,     /* counted, but not in the modes of the others */
	REASON_ERROR,     /* not opened, or not read */
	REASON_NEVER_RAN, /* never scheduled */
	REASON_ZERO,      /* divided by zero */
	REASON_FRACTION,  /* & ^ | of what is not a whole number */
	REASON_RANGE,     /* beyond what a double holds */
	REASON_NO_TIME,   /* the context does not tell it */
};

/* `a` op `b`; the binary ones alone. */
enum metric_reason metric_apply(enum metric_op op, double a, double b, double *out);

/* What makes two names the same event, and in which modes it is counted. */
struct metric_key {
	const char *name; /* borrowed */
	size_t len;       /* without modifiers */
	bool generic;     /* then type and config tell it */
	uint32_t type;
	uint64_t config;
	bool modeless;    /* no mode changes what it counts */
	bool names_modes; /* has modifiers that choose modes */
	uint8_t modes;    /* those it counts, a set of METRIC_MODES */
};

#define METRIC_MODES     64
#define METRIC_ALL_MODES 0x0f /* without modifiers; guests are left out, as perf does */

void metric_key(struct metric_key *out, const char *name);
/* Whether they are the same event, whatever their modes. */
bool metric_key_same(const struct metric_key *a, const struct metric_key *b);
/* Whether both are clocks of the time that the target ran. */
bool metric_key_clocks(const struct metric_key *a, const struct metric_key *b);

/* The end of the letters and escapes of a name that begin here. */
const char *metric_word(const char *at);
/* The name that was written so. false: it is too long. */
bool metric_unescape(char out[METRIC_MAX_NAME + 1], const char *text, size_t len);
/* Appends a name as formulas have it. false: they cannot name it. */
bool metric_escape(struct buf *out, const char *name);

struct metric_event {
	char *name;
	struct metric_key key; /* of `name` */
};

/* A formula's text: the metric's own first, then those it refers to. */
struct metric_source {
	char *name, *text;
};

struct tally_metric {
	char *unit, *description, *groups, *words, *beside;
	double scale;
	VEC(struct metric_source) sources;
	VEC(struct metric_node) nodes; /* the last is the value */
	VEC(struct metric_event) events;
};

/* A metric of a vendor's table. */
struct metric_row {
	char *name, *formula, *unit, *groups, *description;
	double scale;
	size_t place; /* in the tables */
};

/* What a parse needs to know beside the text. */
struct metric_where {
	uint32_t flags; /* enum tally_metric_flags */
	const char *root;
	const struct tally_events_opts *events; /* may be NULL */
	VEC(struct metric_row) rows;            /* of the tables, by name; see metric_rows() */
	bool read;                              /* they are there */
};

/*
 * Checks the options, copies them and fills in `where`, which borrows from them.
 * metric_where_done() frees it whatever comes out. Errors: -EINVAL, -E2BIG.
 */
int metric_where(struct metric_where *where, struct tally_metric_opts *copy,
		 const struct tally_metric_opts *opts, struct tally_error *err);
void metric_where_done(struct metric_where *where);

/*
 * Reads the tables' metrics, once; there are none without tables. Errors: those of
 * tables_each_metric().
 */
int metric_rows(struct metric_where *where, struct tally_error *err);

/* The tables' metric of that name. 1; 0: there is none; -errno of metric_rows(). */
int metric_row(const struct metric_row **out, const char *name, struct metric_where *where,
	       struct tally_error *err);

/* Whose names a formula refers to. */
enum metric_scope {
	SCOPE_USER,    /* built-in metrics, then those of tables */
	SCOPE_TABLE,   /* those of tables, then built-in ones */
	SCOPE_BUILTIN, /* built-in metrics */
};

/*
 * The formula of the metric that is called so, and whose it is. 1; 0: there is none here; -errno of
 * metric_rows().
 */
int metric_lookup(const char **formula, enum metric_scope *scope, const char *name,
		  struct metric_where *where, struct tally_error *err);

/* Parses into an empty metric, whose owner frees it whatever comes out. */
int metric_parse(struct tally_metric *metric, const char *name, const char *formula,
		 enum metric_scope scope, struct metric_where *where, struct tally_error *err);

/* tally_metric_parse() with options that were checked. */
int metric_new(struct tally_metric **out, const char *name, const char *formula,
	       enum metric_scope scope, const struct tally_metric_opts *opts,
	       struct metric_where *where, struct tally_error *err);

/* Leaves the nodes and events that the node `root` needs; it becomes the last. Errors: -ENOMEM. */
int metric_prune(struct tally_metric *metric, uint32_t root, struct tally_error *err);

/*
 * The facts behind a literal, without its '#'. 1; 0: there is no such literal; -ENODATA: it cannot
 * be found out here, `*why` says what was missing.
 */
int metric_literal(double *out, const char *name, size_t len, const struct metric_where *where,
		   const char **why);
/* Whether the CPU is `id`, as perf writes it: 1, 0, or -ENODATA when it cannot be found out. */
int metric_is_cpu(const char *id, const char *root);
/* A PMU of the CPU cores describes an event of that name in sysfs. */
bool metric_cpu_has_event(const char *name, const char *root);
/* Vendor "AuthenticAMD", family and model of an x86 CPU. false: none, or another vendor. */
bool metric_cpu_model(const char *vendor, const char *root, unsigned *family, unsigned *model);

enum metric_need {
	NEED_NOTHING,
	NEED_INTEL_SLOTS,
	NEED_ZEN4,
	NEED_ZEN5,
	NEED_ARM_SLOTS,
};

struct metric_builtin {
	const char *name, *alias, *formula;
	double scale; /* 0: 1 */
	const char *unit, *beside, *words, *description;
	const char *groups; /* NULL: none */
	enum metric_need need;
};

/* What the formulas of rates divide by. On CPUs the clock of a task stands still. */
#define METRIC_RAN "(cpu\\-clock if #target_cpu else task\\-clock)"

/* The i-th built-in metric, NULL beyond the end. */
const struct metric_builtin *metric_builtin_at(size_t i);
/* Whether this machine can have it. */
bool metric_is_met(enum metric_need need, const struct metric_where *where);
/* The one of that name that this machine can have. `*any`: there is one for other machines. */
const struct metric_builtin *metric_builtin_find(const char *name, const struct metric_where *where,
						 bool *any);

/*
 * How much of `text` is a number as formulas have them, and its value: infinite when it is too large
 * or has more digits than anybody means. 0: none.
 */
size_t metric_number(const char *text, double *out);

#endif
