/* SPDX-License-Identifier: MIT */
/*
 * Metrics: from text to nodes. A parser by recursive descent; how deep it goes is limited, and so is
 * how much a formula that refers to others can grow. What is known now is computed now, so that
 * "a if #smt_on else b" needs the events of one branch alone.
 */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/bytes.h"
#include "base/error.h"
#include "count/metric.h"
#include "event/table.h"

#define SPACE " \t\n\r\f\v"
/* perf's longest formula has about 2,000 bytes; with all that it refers to, some 10,000 nodes. */
#define MAX_FORMULA 65536
#define MAX_NODES   65536
#define MAX_EVENTS  1024
#define MAX_DEPTH   128
/* The generic event with the longest name has 26 bytes. */
#define MAX_KNOWN 64

/* A metric that was referred to: its nodes serve all who do. */
struct reference {
	uint32_t source, node;
	enum metric_scope scope;
};

struct shared {
	struct tally_metric *metric;
	struct metric_where *where;
	VEC(struct reference) references;
	struct tally_error *err;
	unsigned depth;
};

/* One text that is parsed, and those in the middle of which that is needed. */
struct parser {
	struct shared *shared;
	const struct parser *up;
	const char *text, *at;
	uint32_t source;
	enum metric_scope scope;
};

TALLY_PRINTF(5, 6)
static int fail(const struct parser *p, const char *where, int code, enum tally_cause cause,
		const char *fmt, ...)
{
	char text[TALLY_ERROR_TEXT];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return error_set(p->shared->err, code, cause, "metric '%.100s', column %td: %s",
			 p->shared->metric->sources.at[p->source].name, where - p->text + 1, text);
}

static int no_memory(const struct parser *p)
{
	return error_nomem(p->shared->err, "a metric");
}

static const char *skip_space(struct parser *p)
{
	p->at += strspn(p->at, SPACE);
	return p->at;
}

/* Whether a "-" belongs to it: a generic event, with modifiers or without, or a metric. */
static bool is_known(const struct parser *p, const char *text, size_t len)
{
	char name[METRIC_MAX_NAME + 1];
	struct metric_key key;

	if (!metric_unescape(name, text, len))
		return false;
	metric_key(&key, name);
	if (key.generic)
		return true;
	const char *formula;
	enum metric_scope scope = p->scope;
	return metric_lookup(&formula, &scope, name, p->shared->where, NULL) > 0;
}

/* The length of the word at `at`: as far as the longest known name with a "-", or to the first. */
static size_t word_length(const struct parser *p, const char *at)
{
	const char *first = metric_word(at), *end = first, *longest = first;

	while (end > at && *end == '-' && metric_word(end + 1) > end + 1) {
		end = metric_word(end + 1);
		if (end - at > MAX_KNOWN)
			break;
		if (is_known(p, at, (size_t)(end - at)))
			longest = end;
	}
	return (size_t)(longest - at);
}

/* A node of values that are known is its value. */
static void fold(const struct tally_metric *m, struct metric_node *n)
{
	double v;

	if (n->op < OP_ADD)
		return;
	const struct metric_node *a = &m->nodes.at[n->a], *b = &m->nodes.at[n->b];
	if (a->op == OP_NUMBER && b->op == OP_NUMBER &&
	    metric_apply(n->op, a->number, b->number, &v) == REASON_NONE)
		*n = (struct metric_node){ .op = OP_NUMBER, .number = v };
}

/* Whether the value is 0 whatever the other side of an "&" is. */
static bool is_zero(const struct tally_metric *m, uint32_t node)
{
	return m->nodes.at[node].op == OP_NUMBER && m->nodes.at[node].number == 0;
}

static int add_node(struct parser *p, const char *where, struct metric_node node, uint32_t *out)
{
	struct tally_metric *m = p->shared->metric;

	if (node.op == OP_AND && (is_zero(m, node.a) || is_zero(m, node.b)))
		node = (struct metric_node){ .op = OP_NUMBER };
	fold(m, &node);
	if (m->nodes.count == MAX_NODES)
		return fail(p, where, -EINVAL, TALLY_CAUSE_LIMIT,
			    "the formula has, with those that it refers to, more than %d parts",
			    MAX_NODES);
	struct metric_node *slot = vec_push(&m->nodes);
	if (!slot)
		return no_memory(p);
	*slot = node;
	slot->source = p->source;
	slot->column = (uint32_t)(where - p->text + 1);
	*out = (uint32_t)m->nodes.count - 1;
	return 0;
}

static int add_number(struct parser *p, const char *where, double number, uint32_t *out)
{
	return add_node(p, where, (struct metric_node){ .op = OP_NUMBER, .number = number }, out);
}

static int add_event(struct parser *p, const char *where, enum metric_op op, const char *name,
		     uint32_t *out)
{
	struct tally_metric *m = p->shared->metric;
	uint32_t i = 0;

	while (i < m->events.count && strcasecmp(m->events.at[i].name, name) != 0)
		i++;
	if (i == MAX_EVENTS)
		return fail(p, where, -EINVAL, TALLY_CAUSE_LIMIT,
			    "the formula needs more than %d events", MAX_EVENTS);
	if (i == m->events.count) {
		char *copy = strdup(name);
		struct metric_event *e = copy ? vec_push(&m->events) : NULL;
		if (!e) {
			free(copy);
			return no_memory(p);
		}
		e->name = copy;
		metric_key(&e->key, copy);
	}
	return add_node(p, where, (struct metric_node){ .op = (uint8_t)op, .a = i }, out);
}

static int parse_formula(struct parser *p, uint32_t *out);
static int parse_source(struct shared *s, const struct parser *up, const char *name,
			const char *text, enum metric_scope scope, uint32_t *out);

static int expect(struct parser *p, char c, const char *what)
{
	if (*skip_space(p) != c)
		return fail(p, p->at, -EINVAL, TALLY_CAUSE_SYNTAX, "'%c' is missing here, %s", c,
			    what);
	p->at++;
	return 0;
}

/* The formula of a metric takes the place of its name. */
static int refer(struct parser *p, const char *where, const char *name, const char *formula,
		 enum metric_scope scope, uint32_t *out)
{
	struct shared *s = p->shared;

	for (const struct parser *up = p; up; up = up->up)
		if (!strcasecmp(s->metric->sources.at[up->source].name, name))
			return fail(p, where, -EINVAL, TALLY_CAUSE_SYNTAX,
				    "the metric '%s' would need itself", name);
	vec_each (&s->references, r)
		if (r->scope == scope && !strcasecmp(s->metric->sources.at[r->source].name, name)) {
			*out = r->node;
			return 0;
		}
	uint32_t source = (uint32_t)s->metric->sources.count;
	int r = parse_source(s, p, name, formula, scope, out);
	if (r < 0)
		return r;
	struct reference *reference = vec_push(&s->references);
	if (!reference)
		return no_memory(p);
	*reference = (struct reference){ source, *out, scope };
	return 0;
}

static int add_name(struct parser *p, const char *where, const char *name, uint32_t *out)
{
	static const struct {
		const char *name;
		enum metric_time which;
	} times[] = {
		{ "duration_time", TIME_DURATION },
		{ "interval_sec", TIME_DURATION },
		{ "system_time", TIME_SYSTEM },
		{ "user_time", TIME_USER },
	};
	struct metric_key key;

	for (size_t i = 0; i < ARRAY_SIZE(times); i++)
		if (!strcmp(times[i].name, name))
			return add_node(p, where,
					(struct metric_node){ .op = OP_TIME, .a = times[i].which },
					out);
	metric_key(&key, name);
	const char *formula;
	enum metric_scope scope = p->scope;
	int r = key.generic
			? 0
			: metric_lookup(&formula, &scope, name, p->shared->where, p->shared->err);
	if (r < 0)
		return r;
	return r ? refer(p, where, name, formula, scope, out)
		 : add_event(p, where, OP_EVENT, name, out);
}

static int parse_literal(struct parser *p, uint32_t *out)
{
	const char *where = p->at++, *why = NULL;
	size_t len = 0;
	double value;

	while (isalnum((unsigned char)p->at[len]) || p->at[len] == '_')
		len++;
	int shown = len > 40 ? 40 : (int)len;
	int r = metric_literal(&value, p->at, len, p->shared->where, &why);
	if (r == 0)
		return fail(p, where, -EINVAL, TALLY_CAUSE_UNKNOWN, "there is no literal '#%.*s'",
			    shown, p->at);
	if (r < 0)
		return fail(p, where, r, TALLY_CAUSE_UNSUPPORTED,
			    "'#%.*s' cannot be found out here: %s does not tell it", shown, p->at,
			    why);
	p->at += len;
	return add_number(p, where, value, out);
}

/* min, max, d_ratio: two formulas between parentheses. */
static int parse_two(struct parser *p, const char *where, enum metric_op op, uint32_t *out)
{
	struct metric_node n = { .op = (uint8_t)op };

	int r = parse_formula(p, &n.a);
	if (r == 0)
		r = expect(p, ',', "this function takes two values");
	if (r == 0)
		r = parse_formula(p, &n.b);
	if (r == 0)
		r = expect(p, ')', "to close the function's '('");
	return r < 0 ? r : add_node(p, where, n, out);
}

/* Whether a list of events that is this one alone would parse. */
static int has_event(const struct parser *p, const char *name, double *out)
{
	struct tally_events *events;
	int r = tally_events_parse(&events, name, p->shared->where->events, NULL);

	if (r == -ENOMEM)
		return no_memory(p);
	*out = r == 0;
	if (r == 0)
		tally_events_free(events);
	return 0;
}

/* Functions of a name rather than of a value. */
static int parse_of_name(struct parser *p, const char *where, enum metric_op op, uint32_t *out)
{
	char name[METRIC_MAX_NAME + 1];
	const char *at = skip_space(p);
	size_t len = op == OP_SOURCES ? word_length(p, at) : (size_t)(metric_word(at) - at);
	double value = 0;
	int r = 0;

	/* Nothing else can follow, so "-" needs no escape. */
	while (op != OP_SOURCES && at[len] == '-')
		len = (size_t)(metric_word(at + len + 1) - at);
	if (!len || !metric_unescape(name, at, len))
		return fail(p, at, -EINVAL, TALLY_CAUSE_SYNTAX,
			    "a name of at most %d bytes is missing here", METRIC_MAX_NAME);
	p->at += len;
	r = expect(p, ')', "to close the function's '('");
	if (r < 0)
		return r;
	if (op == OP_SOURCES)
		return add_event(p, where, op, name, out);
	if (op == OP_EVENT)
		r = has_event(p, name, &value);
	else
		value = r = metric_is_cpu(name, p->shared->where->root);
	if (r == -ENODATA)
		return fail(p, where, r, TALLY_CAUSE_UNSUPPORTED,
			    "neither /proc/cpuinfo nor sysfs tells which CPU this is");
	return r < 0 ? r : add_number(p, where, value, out);
}

static const struct function {
	const char *name;
	enum metric_op op; /* of the functions of a name: OP_SOURCES, OP_EVENT, OP_NUMBER */
	bool of_name;
} functions[] = {
	{ "min", OP_MIN, false },        { "max", OP_MAX, false },
	{ "d_ratio", OP_RATIO, false },  { "source_count", OP_SOURCES, true },
	{ "has_event", OP_EVENT, true }, { "strcmp_cpuid_str", OP_NUMBER, true },
};

static const struct function *find_function(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++)
		if (strlen(functions[i].name) == len && !memcmp(functions[i].name, name, len))
			return &functions[i];
	return NULL;
}

static bool is_keyword(const char *at, size_t len, const char *keyword)
{
	return strlen(keyword) == len && !memcmp(at, keyword, len);
}

static int refuse_value(const struct parser *p)
{
	const char *at = p->at;
	unsigned char c = (unsigned char)*at;

	if (!c)
		return fail(p, at, -EINVAL, TALLY_CAUSE_SYNTAX, "a value is missing at the end");
	if (c == '?')
		return fail(p, at, -EINVAL, TALLY_CAUSE_UNSUPPORTED,
			    "events with '?', a parameter of POWER's hv_24x7, are not read");
	if (c == '\\')
		return fail(p, at, -EINVAL, TALLY_CAUSE_SYNTAX,
			    "behind '\\' one of '-' ',' '=' must stand");
	return fail(p, at, -EINVAL, TALLY_CAUSE_SYNTAX,
		    "a value is missing before '%c': a number, a name, '#' or '('",
		    isprint(c) ? c : '?');
}

static int parse_word(struct parser *p, uint32_t *out)
{
	char name[METRIC_MAX_NAME + 1];
	const char *where = p->at;
	size_t plain = (size_t)(metric_word(where) - where), len;
	const struct function *f;
	double number;

	size_t digits = metric_number(where, &number);
	if (digits && digits >= plain) {
		p->at += digits;
		if (number - number != 0)
			return fail(p, where, -EINVAL, TALLY_CAUSE_SYNTAX,
				    "this number is too large, or has too many digits");
		return add_number(p, where, number, out);
	}
	if (!plain || is_keyword(where, plain, "if") || is_keyword(where, plain, "else"))
		return refuse_value(p);
	f = find_function(where, plain);
	len = f ? plain : word_length(p, where);
	p->at += len;
	if (f) {
		int r = expect(p, '(', "behind the name of a function");
		if (r < 0)
			return r;
		return f->of_name ? parse_of_name(p, where, f->op, out)
				  : parse_two(p, where, f->op, out);
	}
	if (*p->at == '?')
		return refuse_value(p);
	if (!metric_unescape(name, where, len))
		return fail(p, where, -EINVAL, TALLY_CAUSE_LIMIT,
			    "this name has more than %d bytes", METRIC_MAX_NAME);
	return add_name(p, where, name, out);
}

static int parse_value(struct parser *p, uint32_t *out)
{
	const char *where = skip_space(p);
	int r;

	if (*where == '#')
		return parse_literal(p, out);
	if (*where != '(')
		return parse_word(p, out);
	p->at++;
	r = parse_formula(p, out);
	if (r == 0 && *skip_space(p) != ')')
		r = fail(p, p->at, -EINVAL, TALLY_CAUSE_SYNTAX,
			 "'(' of column %td is not closed: ')' or an operator is missing here",
			 where - p->text + 1);
	p->at += r == 0;
	return r;
}

/* Minus signs that follow each other cancel out, so they need no recursion. */
static int parse_signed(struct parser *p, uint32_t *out)
{
	const char *where = skip_space(p);
	bool negative = false;

	for (; *skip_space(p) == '-'; p->at++)
		negative = !negative;
	int r = parse_value(p, out);
	if (r < 0 || !negative)
		return r;
	const struct metric_node *n = &p->shared->metric->nodes.at[*out];
	if (n->op == OP_NUMBER)
		return add_number(p, where, -n->number, out);
	return add_node(p, where, (struct metric_node){ .op = OP_NEGATE, .a = *out }, out);
}

static const struct operator
{
	char sign;
	uint8_t strength; /* a stronger one binds before a weaker one */
	enum metric_op op;
}
operators[] = {
	{ '|', 1, OP_OR },   { '^', 2, OP_XOR }, { '&', 3, OP_AND }, { '<', 4, OP_LESS },
	{ '>', 4, OP_MORE }, { '+', 5, OP_ADD }, { '-', 5, OP_SUB }, { '*', 6, OP_MUL },
	{ '/', 6, OP_DIV },  { '%', 6, OP_MOD },
};

static const struct operator* next_operator(struct parser *p)
{
	char c = *skip_space(p);

	for (size_t i = 0; i < ARRAY_SIZE(operators); i++)
		if (operators[i].sign == c)
			return &operators[i];
	return NULL;
}

/* Operators of at least this strength, from left to right. */
static int parse_sum(struct parser *p, unsigned weakest, uint32_t *out)
{
	const struct operator* o;
	int r = parse_signed(p, out);

	while (r == 0 && (o = next_operator(p)) && o->strength >= weakest) {
		struct metric_node n = { .op = (uint8_t)o->op, .a = *out };
		const char *where = p->at++;
		if (*p->at == '=' || (*p->at == *where && strchr("&|<>*/", *where)))
			return fail(p, where, -EINVAL, TALLY_CAUSE_SYNTAX,
				    "there is no operator '%.2s': there are + - * / %% < > & | ^",
				    where);
		r = parse_sum(p, o->strength + 1, &n.b);
		if (r == 0)
			r = add_node(p, where, n, out);
	}
	return r;
}

static bool take_keyword(struct parser *p, const char *keyword)
{
	const char *at = skip_space(p);
	size_t len = (size_t)(metric_word(at) - at);

	if (!is_keyword(at, len, keyword))
		return false;
	p->at += len;
	return true;
}

static bool same_number(const struct metric_node *a, const struct metric_node *b)
{
	return a->op == OP_NUMBER && b->op == OP_NUMBER && a->number == b->number;
}

/* The branch that a known condition takes is all there is, and so is one of two that are equal. */
static int add_if(struct parser *p, const char *where, const struct metric_node *n, uint32_t *out)
{
	const struct metric_node *nodes = p->shared->metric->nodes.at;

	if (nodes[n->c].op == OP_NUMBER)
		*out = nodes[n->c].number != 0 ? n->a : n->b;
	else if (same_number(&nodes[n->a], &nodes[n->b]))
		*out = n->a;
	else
		return add_node(p, where, *n, out);
	return 0;
}

static int parse_choice(struct parser *p, uint32_t *out)
{
	struct metric_node n = { .op = OP_IF };
	const char *where;

	int r = parse_sum(p, 0, &n.a);
	if (r < 0)
		return r;
	where = skip_space(p);
	if (!take_keyword(p, "if")) {
		*out = n.a;
		return 0;
	}
	r = parse_sum(p, 0, &n.c);
	if (r < 0)
		return r;
	if (!take_keyword(p, "else"))
		return fail(p, p->at, -EINVAL, TALLY_CAUSE_SYNTAX,
			    "'else' is missing here, for the 'if' of column %td",
			    where - p->text + 1);
	r = parse_formula(p, &n.b);
	return r < 0 ? r : add_if(p, where, &n, out);
}

static int parse_formula(struct parser *p, uint32_t *out)
{
	if (p->shared->depth == MAX_DEPTH)
		return fail(p, p->at, -EINVAL, TALLY_CAUSE_LIMIT,
			    "formulas are nested more than %d deep", MAX_DEPTH);
	p->shared->depth++;
	int r = parse_choice(p, out);
	p->shared->depth--;
	return r;
}

static int parse_source(struct shared *s, const struct parser *up, const char *name,
			const char *text, enum metric_scope scope, uint32_t *out)
{
	struct metric_source *source = vec_push(&s->metric->sources);

	if (!source)
		return error_nomem(s->err, "a metric");
	source->name = strdup(name);
	source->text = strdup(text);
	if (!source->name || !source->text)
		return error_nomem(s->err, "a metric");
	struct parser p = {
		.shared = s,
		.up = up,
		.text = source->text,
		.at = source->text,
		.source = (uint32_t)s->metric->sources.count - 1,
		.scope = scope,
	};
	if (strlen(text) > MAX_FORMULA)
		return fail(&p, p.text, -EINVAL, TALLY_CAUSE_LIMIT,
			    "the formula has more than %d bytes", MAX_FORMULA);
	int r = parse_formula(&p, out);
	if (r == 0 && *skip_space(&p))
		r = fail(&p, p.at, -EINVAL, TALLY_CAUSE_SYNTAX,
			 *p.at == ')' ? "this ')' closes nothing"
				      : "an operator is missing before this");
	return r;
}

int metric_parse(struct tally_metric *metric, const char *name, const char *formula,
		 enum metric_scope scope, struct metric_where *where, struct tally_error *err)
{
	struct shared s = { .metric = metric, .where = where, .err = err };
	uint32_t root = 0;

	int r = parse_source(&s, NULL, name, formula, scope, &root);
	vec_done(&s.references);
	return r < 0 ? r : metric_prune(metric, root, err);
}
