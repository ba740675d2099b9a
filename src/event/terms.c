/* SPDX-License-Identifier: MIT */
/*
 * From terms to the words of an attr. perf(1) 6.1 sets bits without clearing those that an event of
 * events/ has set, so that cpu/mem-loads,ldlat=30/ may become another latency: here a field holds
 * the value that was written.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "event/nearest.h"
#include "event/pmu.h"
#include "event/table.h"
#include "event/term-text.h"
#include "event/terms.h"

/* Terms on their way into one part of an event. */
struct applying {
	const struct naming *n;
	const char *where; /* what errors point to; NULL: the term */
	const char *of; /* the event of events/ that the terms come from, NULL: they were written */
	term_list *terms;
	const struct pmu *pmu;
	struct event_part *part;
	struct found_event *event;
};

static const struct {
	const char *name;
	enum term_kind kind;
	uint32_t word;
} own_terms[] = {
	{ "config", TERM_WORD, 0 },
	{ "config1", TERM_WORD, 1 },
	{ "config2", TERM_WORD, 2 },
	{ "config3", TERM_WORD, 3 },
	{ "config4", TERM_WORD, 4 },
	{ "name", TERM_NAME, 0 },
	{ "period", TERM_PERIOD, 0 },
	{ "freq", TERM_FREQ, 0 },
	{ "percore", TERM_FOREIGN, 0 },
	{ "branch_type", TERM_FOREIGN, 0 },
	{ "time", TERM_FOREIGN, 0 },
	{ "call-graph", TERM_FOREIGN, 0 },
	{ "stack-size", TERM_FOREIGN, 0 },
	{ "max-stack", TERM_FOREIGN, 0 },
	{ "nr", TERM_FOREIGN, 0 },
	{ "inherit", TERM_FOREIGN, 0 },
	{ "no-inherit", TERM_FOREIGN, 0 },
	{ "overwrite", TERM_FOREIGN, 0 },
	{ "no-overwrite", TERM_FOREIGN, 0 },
	{ "driver-config", TERM_FOREIGN, 0 },
	{ "aux-output", TERM_FOREIGN, 0 },
	{ "aux-action", TERM_FOREIGN, 0 },
	{ "aux-sample-size", TERM_FOREIGN, 0 },
	{ "metric-id", TERM_FOREIGN, 0 },
	{ "cpu", TERM_FOREIGN, 0 },
	{ "ratio-to-prev", TERM_FOREIGN, 0 },
};

/* -- kinds of terms --------------------------------------------------------------------------- */

static bool is_own(struct term *t)
{
	for (size_t i = 0; i < ARRAY_SIZE(own_terms); i++)
		if (term_is(t, own_terms[i].name)) {
			t->kind = own_terms[i].kind;
			t->field = (struct pmu_field){ own_terms[i].word, UINT64_MAX };
			return true;
		}
	return false;
}

/* rNNN alone, which is config in hex. */
static bool is_raw(struct term *t)
{
	size_t from = t->name_len > 3 && !memcmp(t->name, "r0x", 3) ? 3 : 1;

	if (t->value || t->name_len < 2 || t->name[0] != 'r')
		return false;
	for (size_t i = from; i < t->name_len; i++)
		if (!isxdigit((unsigned char)t->name[i]))
			return false;
	t->kind = TERM_WORD;
	t->field = (struct pmu_field){ 0, UINT64_MAX };
	return true;
}

/* Of the PMUs of the cores, and of the kernel's software events, which are a PMU too. */
static bool find_generic(const struct pmu *pmu, const struct term *t, uint32_t *type,
			 uint64_t *config)
{
	const char *why;

	return !t->value && (pmu->core || pmu->type == TALLY_TYPE_SOFTWARE) &&
	       table_find(t->name, t->name_len, type, config, &why) > 0 &&
	       pmu->core == (*type != TALLY_TYPE_SOFTWARE);
}

static void offer_all(struct nearest *near, struct proc_names *names)
{
	for (size_t i = 0; i < names->count; i++)
		nearest_offer(near, names->at[i]);
	proc_names_done(names);
}

static void offer_generic(struct nearest *near, const struct pmu *pmu)
{
	struct table_entry e;

	for (size_t i = 0; table_at(i, &e); i++) {
		bool software = e.type == TALLY_TYPE_SOFTWARE;
		if (software ? pmu->type != TALLY_TYPE_SOFTWARE : !pmu->core)
			continue;
		nearest_offer(near, e.name);
		if (e.alias)
			nearest_offer(near, e.alias);
	}
}

/* " has event, umask ..." of the fields. */
static void list_fields(struct buf *b, const struct naming *n, const char *pmu)
{
	struct proc_names names;

	if (pmu_fields(&names, n->root, pmu) < 0 || !names.count)
		buf_str(b, ", which has no fields: give config=");
	for (size_t i = 0; i < names.count; i++)
		buf_printf(b, "%s%s", i ? ", " : ", which has ", names.at[i]);
	proc_names_done(&names);
}

static int refuse_term(const struct applying *a, const struct term *t)
{
	struct proc_names names;
	struct nearest near;
	struct buf fields = { 0 };

	if (a->of)
		return resolve_fail(
			a->n, term_place(a->where, t), TALLY_CAUSE_UNSUPPORTED,
			"'%s' of PMU '%s' uses the term '%.*s', which its format/ lacks", a->of,
			a->pmu->name, SHOWN(t->name, t->name_len));
	nearest_init(&near, t->name, t->name_len);
	if (pmu_fields(&names, a->n->root, a->pmu->name) == 0)
		offer_all(&near, &names);
	if (pmu_aliases(&names, a->n->root, a->pmu->name) == 0)
		offer_all(&near, &names);
	offer_generic(&near, a->pmu);
	for (size_t i = 0; i < ARRAY_SIZE(own_terms); i++)
		if (own_terms[i].kind != TERM_FOREIGN)
			nearest_offer(&near, own_terms[i].name);
	if (near.name[0])
		return resolve_fail(a->n, term_place(a->where, t), TALLY_CAUSE_UNKNOWN,
				    "there is no term or event '%.*s' of PMU '%s', the nearest is "
				    "'%s'",
				    SHOWN(t->name, t->name_len), a->pmu->name, near.name);
	list_fields(&fields, a->n, a->pmu->name);
	int r = resolve_fail(a->n, term_place(a->where, t), TALLY_CAUSE_UNKNOWN,
			     "there is no term or event '%.*s' of PMU '%s'%s",
			     SHOWN(t->name, t->name_len), a->pmu->name,
			     fields.failed ? "" : buf_text(&fields));
	buf_done(&fields);
	return r;
}

static int classify(const struct applying *a, struct term *t)
{
	char name[RESOLVE_MAX_NAME + 1];
	uint32_t type;
	uint64_t config;
	bool alone = !t->value || (t->value_len == 1 && t->value[0] == '1');

	resolve_copy(name, t->name, t->name_len);
	t->kind = TERM_FIELD;
	int r = pmu_field(&t->field, a->n->root, a->pmu->name, name);
	if (r == -EINVAL)
		return resolve_fail(a->n, term_place(a->where, t), TALLY_CAUSE_UNSUPPORTED,
				    "cannot understand what " PMU_FOLDER "/%s/format/%s says",
				    a->pmu->name, name);
	if (r == 0 || is_own(t))
		return 0;
	if (!a->of && alone && pmu_has_alias(a->n->root, a->pmu->name, name)) {
		t->kind = TERM_ALIAS;
		return 0;
	}
	if (!a->of && find_generic(a->pmu, t, &type, &config)) {
		t->kind = TERM_GENERIC;
		return 0;
	}
	return is_raw(t) ? 0 : refuse_term(a, t);
}

/* -- words ------------------------------------------------------------------------------------ */

static uint64_t *word_of(struct event_part *part, uint32_t word)
{
	uint64_t *const words[PMU_WORDS] = { &part->config, &part->config1, &part->config2,
					     &part->config3, &part->config4 };

	return words[word];
}

/* The bits of a value, from the lowest on, at the places of `bits`. */
static uint64_t spread(uint64_t value, uint64_t bits)
{
	uint64_t out = 0;

	for (; bits; bits &= bits - 1, value >>= 1)
		if (value & 1)
			out |= bits & -bits;
	return out;
}

static int set_field(const struct applying *a, const struct term *t)
{
	uint64_t value, bits = t->field.bits, *word = word_of(a->part, t->field.word);
	unsigned room = (unsigned)__builtin_popcountll(bits);
	char hex[RESOLVE_MAX_NAME + 1];
	int r = 0;

	if (t->kind == TERM_WORD && !t->value && t->name[0] == 'r') {
		resolve_copy(hex, t->name + 1, t->name_len - 1);
		if (!parse_hex(hex, &value))
			return resolve_fail(a->n, term_place(a->where, t), TALLY_CAUSE_UNSUPPORTED,
					    "a raw event has 64 bits, 16 hex digits at most");
	} else {
		r = term_value(a->n, a->where, t, &value);
	}
	if (r < 0)
		return r;
	if (room < 64 && value >> room)
		return resolve_fail(a->n, term_place(a->where, t), TALLY_CAUSE_UNSUPPORTED,
				    "%.*s has %u bit%s, %#llx needs %d",
				    SHOWN(t->name, t->name_len), room, room == 1 ? "" : "s",
				    (unsigned long long)value, 64 - __builtin_clzll(value));
	*word = (*word & ~bits) | spread(value, bits);
	return 0;
}

static int set_all(const struct applying *a, enum term_kind kind)
{
	int r = 0;

	vec_each (a->terms, t)
		if (r == 0 && t->kind == kind)
			r = set_field(a, t);
	return r;
}

/* -- events of events/ ------------------------------------------------------------------------ */

static const struct term *find_term(term_list *terms, const struct term *like)
{
	vec_each (terms, t)
		if (t->name_len == like->name_len && !memcmp(t->name, like->name, t->name_len))
			return t;
	return NULL;
}

/* "core=?": it must be among what was written, which is set later. */
static int need_parameter(const struct applying *inner, term_list *written, const struct term *t)
{
	if (find_term(written, t))
		return 0;
	return resolve_fail(inner->n, term_place(inner->where, t), TALLY_CAUSE_SYNTAX,
			    "'%s' of PMU '%s' needs %.*s: add %.*s=NUMBER", inner->of,
			    inner->pmu->name, SHOWN(t->name, t->name_len),
			    SHOWN(t->name, t->name_len));
}

static int set_alias_terms(struct applying *inner, term_list *written, const char *text)
{
	int r = term_split(inner->terms, inner->n, inner->where, text, strlen(text));

	vec_each (inner->terms, t) {
		if (r == 0)
			r = classify(inner, t);
		if (r == 0 && t->value_len == 1 && t->value[0] == '?') {
			r = need_parameter(inner, written, t);
			t->kind = TERM_FOREIGN;
		}
	}
	if (r == 0)
		r = set_all(inner, TERM_WORD);
	return r < 0 ? r : set_all(inner, TERM_FIELD);
}

static int refuse_alias(const struct applying *a, const struct term *t, int r)
{
	return resolve_fail(a->n, term_place(a->where, t), TALLY_CAUSE_UNSUPPORTED,
			    "cannot understand what " PMU_FOLDER "/%s/events/%.*s and the files "
			    "beside it say: %s",
			    a->pmu->name, SHOWN(t->name, t->name_len),
			    r == -EINVAL ? "it is no number" : strerror(-r));
}

static bool is_as_before(const struct found_event *e, const struct pmu_alias *alias)
{
	return e->scale == alias->scale && !strcmp(e->unit, alias->unit) &&
	       e->per_package == alias->per_package && e->snapshot == alias->snapshot;
}

static int set_alias(const struct applying *a, const struct term *t)
{
	char name[RESOLVE_MAX_NAME + 1];
	struct pmu_alias alias;
	term_list terms = { 0 };
	struct found_event *e = a->event;

	resolve_copy(name, t->name, t->name_len);
	int r = pmu_alias(&alias, a->n->root, a->pmu->name, name);
	if (r < 0)
		return refuse_alias(a, t, r);
	struct applying inner = *a;
	inner.where = term_place(a->where, t);
	inner.of = name;
	inner.terms = &terms;
	r = set_alias_terms(&inner, a->terms, alias.terms);
	vec_done(&terms);
	if (r < 0)
		return r;
	if (e->parts.count > 1 && !is_as_before(e, &alias))
		return resolve_fail(a->n, term_place(a->where, t), TALLY_CAUSE_UNSUPPORTED,
				    "'%s' of PMU '%s' and of PMU '%s' differ in scale or unit, so "
				    "that they do not add up: name one of them",
				    name, e->parts.at[0].pmu, a->pmu->name);
	e->scale = alias.scale;
	memcpy(e->unit, alias.unit, sizeof(e->unit));
	e->per_package = alias.per_package;
	e->snapshot = alias.snapshot;
	return 0;
}

/* Where cores are of several kinds, the upper half of config says which (Linux 5.13). */
static int set_generic(const struct applying *a, const struct term *t)
{
	vec_each (a->terms, other)
		if (other->kind == TERM_FIELD || other->kind == TERM_WORD)
			return resolve_fail(
				a->n, term_place(a->where, t), TALLY_CAUSE_UNSUPPORTED,
				"'%.*s' of PMU '%s' is the kernel's own name and takes no "
				"further bits, as those of %.*s",
				SHOWN(t->name, t->name_len), a->pmu->name,
				SHOWN(other->name, other->name_len));
	find_generic(a->pmu, t, &a->part->type, &a->part->config);
	int kinds = a->pmu->core ? pmu_core_kinds(a->n->root) : 0;
	if (kinds > 1)
		a->part->config |= (uint64_t)a->pmu->type << 32;
	return kinds < 0 ? error_nomem(a->n->err, "the PMUs") : 0;
}

/* Bits that were written come later and hold against these. */
static int set_named(const struct applying *a)
{
	const struct term *named = NULL;

	vec_each (a->terms, t) {
		if (t->kind != TERM_ALIAS && t->kind != TERM_GENERIC)
			continue;
		if (named)
			return resolve_fail(
				a->n, term_place(a->where, t), TALLY_CAUSE_SYNTAX,
				"'%.*s' and '%.*s' are two events: name one between the "
				"slashes",
				SHOWN(named->name, named->name_len), SHOWN(t->name, t->name_len));
		named = t;
	}
	if (!named)
		return 0;
	return named->kind == TERM_ALIAS ? set_alias(a, named) : set_generic(a, named);
}

/* -- what is not the PMU's -------------------------------------------------------------------- */

static int set_name(const struct applying *a, const struct term *t)
{
	const char *text = t->value;
	size_t len = t->value_len;

	if (len > 1 && text[0] == '\'' && text[len - 1] == '\'')
		text++, len -= 2;
	if (!len)
		return resolve_fail(a->n, term_place(a->where, t), TALLY_CAUSE_SYNTAX,
				    "a name is missing behind name=");
	free(a->event->name);
	a->event->name = strndup(text, len);
	a->event->keeps_name = true;
	return a->event->name ? 0 : error_nomem(a->n->err, "an event's name");
}

static int set_rate(const struct applying *a, const struct term *t)
{
	uint64_t value;
	int r = term_value(a->n, a->where, t, &value);

	if (r < 0)
		return r;
	if (!t->value || !value)
		return resolve_fail(a->n, term_place(a->where, t), TALLY_CAUSE_SYNTAX,
				    "%.*s needs a number above 0", SHOWN(t->name, t->name_len));
	bool freq = t->kind == TERM_FREQ;
	a->event->rate = (struct event_rate){ .period = freq ? 0 : value,
					      .freq = freq ? value : 0,
					      .by_default = a->where != NULL };
	return 0;
}

static int set_rest(const struct applying *a, const struct term *t)
{
	switch (t->kind) {
	case TERM_NAME:
		return set_name(a, t);
	case TERM_PERIOD:
	case TERM_FREQ:
		return set_rate(a, t);
	case TERM_FOREIGN:
		return resolve_fail(a->n, term_place(a->where, t), TALLY_CAUSE_UNSUPPORTED,
				    "'%.*s' is a term of perf's own that is not read here",
				    SHOWN(t->name, t->name_len));
	default:
		return 0;
	}
}

/* -- the whole list --------------------------------------------------------------------------- */

static int apply_to_part(struct applying *a)
{
	int r = 0;

	vec_each (a->terms, t)
		if (r == 0)
			r = classify(a, t);
	if (r == 0)
		r = set_named(a);
	if (r == 0)
		r = set_all(a, TERM_WORD);
	if (r == 0)
		r = set_all(a, TERM_FIELD);
	vec_each (a->terms, t)
		if (r == 0)
			r = set_rest(a, t);
	return r;
}

/* Adds a part; on an error it is gone again. The PMU's CPUs become the part's. */
static int apply_to_pmu(struct applying *a, struct pmu *pmu)
{
	a->pmu = pmu;
	a->part = vec_push(&a->event->parts);
	if (!a->part)
		return error_nomem(a->n->err, "an event's parts");
	a->part->type = pmu->type;
	memcpy(a->part->pmu, pmu->name, sizeof(a->part->pmu));
	int r = apply_to_part(a);
	if (r < 0) {
		a->event->parts.count--;
		return r;
	}
	a->part->per_cpu = pmu->per_cpu;
	a->part->cpus = pmu->cpus;
	a->part->cpu_count = pmu->cpu_count;
	pmu->cpus = NULL;
	if (!pmu->core && pmu->type > TALLY_TYPE_BREAKPOINT)
		a->event->all_modes = true;
	return 0;
}

static void set_attr(struct found_event *e)
{
	const struct event_part *first = &e->parts.at[0];

	e->attr.type = first->type;
	e->attr.config = first->config;
	e->attr.config1 = first->config1;
	e->attr.config2 = first->config2;
	e->attr.config3 = first->config3;
	e->attr.config4 = first->config4;
}

/* A pattern means those of the PMUs that have such terms; a name means all that are called so. */
static int apply_to_all(struct applying *a, pmus *list, bool pattern)
{
	struct tally_error *err = a->n->err, why = { 0 };
	struct naming quiet = *a->n;
	int r = 0;

	quiet.err = &why;
	a->n = &quiet;
	for (size_t i = 0; i < list->count; i++) {
		r = apply_to_pmu(a, &list->at[i]);
		if (r < 0 && !(pattern && why.cause == TALLY_CAUSE_UNKNOWN))
			break;
	}
	if (r < 0 && pattern && why.cause == TALLY_CAUSE_UNKNOWN && a->event->parts.count)
		r = 0;
	if (r < 0 && err)
		*err = why;
	return r;
}

static int apply(struct applying *a, const char *pmu, const char *text, size_t len)
{
	pmus list = { 0 };
	int r = term_split(a->terms, a->n, a->where, text, len);
	const char *where = a->where ? a->where : pmu ? text - strlen(pmu) - 1 : text;

	if (r < 0)
		return r;
	r = pmus_find(&list, a->n->root, pmu);
	if (r == -ENOMEM)
		error_nomem(a->n->err, "the PMUs");
	else if (r < 0)
		r = resolve_fail(a->n, where, TALLY_CAUSE_IO, "cannot read " PMU_FOLDER "/%s: %s",
				 list.count ? list.at[0].name : "", strerror(-r));
	else if (!list.count)
		r = terms_refuse_pmu(a->n, where, pmu);
	else
		r = apply_to_all(a, &list, pmu && strpbrk(pmu, "*?["));
	pmus_done(&list);
	return r;
}

int terms_apply(const struct naming *n, const char *pmu, const char *text, size_t len,
		const char *where, struct found_event *out)
{
	term_list terms = { 0 };
	struct applying a = { .n = n, .where = where, .terms = &terms, .event = out };

	tally_attr_init(&out->attr, 0, 0);
	int r = apply(&a, pmu, text, len);
	vec_done(&terms);
	if (r == 0)
		set_attr(out);
	return r;
}
