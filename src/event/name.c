/* SPDX-License-Identifier: MIT */
/*
 * From text to events:
 *
 *	list      = item { separator item }
 *	item      = event | "{" list of events "}" [ ":" modifiers ]
 *	event     = ( name | "r" hex | group ":" tracepoint ) [ ":" modifiers ]
 *	separator = "," with or without white space around it, or white space
 *
 * What stands before the first colon tells a tracepoint from an event with modifiers: a name that is
 * known is an event.
 */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/proc.h"
#include "event/event.h"
#include "event/nearest.h"
#include "event/table.h"
#include "event/tracepoint.h"

#define SPACE      " \t\n\r\f\v"
#define MAX_EVENTS 4096
#define MAX_WORD   127 /* longer than any name that the kernel can make */

/* Modifiers as a set, by their place in this text; how many p are counted apart. */
static const char letters[] = "ukhHGIPDSp";
#define MODIFIERS "there are u k h H G I p pp ppp P D S"
enum {
	MOD_USER = 1u << 0,
	MOD_KERNEL = 1u << 1,
	MOD_HV = 1u << 2,
	MOD_HOST = 1u << 3,
	MOD_GUEST = 1u << 4,
	MOD_NOT_IDLE = 1u << 5,
	MOD_PRECISEST = 1u << 6,
	MOD_PINNED = 1u << 7,
	MOD_READS_GROUP = 1u << 8,
	MOD_PRECISE = 1u << 9,
	/* What makes another count of it, and so belongs to the name. */
	MOD_NAMED = (1u << 7) - 1,
};

struct modifiers {
	uint32_t set;
	unsigned precise;
};

struct parser {
	const char *text, *at;
	struct tally_events *events;
	VEC(struct modifiers) modifiers; /* of each event, until its item is complete */
	uint32_t fallback;
	const char *root;
	struct tally_error *err;
};

TALLY_PRINTF(4, 5)
static int fail(const struct parser *p, const char *where, enum tally_cause cause, const char *fmt,
		...)
{
	char text[TALLY_ERROR_TEXT];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return error_set(p->err, -EINVAL, cause, "events, column %td: %s", where - p->text + 1,
			 text);
}

static bool skip_space(struct parser *p)
{
	size_t n = strspn(p->at, SPACE);

	p->at += n;
	return n > 0;
}

/* The next `len` bytes are modifiers. */
static int parse_modifiers(const struct parser *p, const char *text, size_t len, bool leads,
			   struct modifiers *out)
{
	*out = (struct modifiers){ 0 };
	if (!len)
		return fail(p, text, TALLY_CAUSE_SYNTAX, "a modifier is missing behind ':'");
	for (size_t i = 0; i < len; i++) {
		const char *found = text[i] ? strchr(letters, text[i]) : NULL;
		if (!found)
			return fail(p, text + i, TALLY_CAUSE_SYNTAX,
				    "there is no modifier '%c': " MODIFIERS,
				    isprint((unsigned char)text[i]) ? text[i] : '?');
		uint32_t bit = 1u << (found - letters);
		if (bit == MOD_PRECISE && ++out->precise > 3)
			return fail(p, text + i, TALLY_CAUSE_SYNTAX,
				    "ppp is the most precise there is");
		if (bit != MOD_PRECISE && out->set & bit)
			return fail(p, text + i, TALLY_CAUSE_SYNTAX,
				    "the modifier '%c' is there twice", text[i]);
		if (bit == MOD_PINNED && !leads)
			return fail(p, text + i, TALLY_CAUSE_SYNTAX,
				    "only the first event of a group can be pinned (D)");
		out->set |= bit;
	}
	return 0;
}

/* "r" and hex digits, as the PMU's manual gives them. 1, 0: not such a name, -EINVAL with why. */
static int find_raw(const char *name, size_t len, uint64_t *config, const char **why)
{
	char digits[MAX_WORD + 1];

	if (len < 2 || len > MAX_WORD || name[0] != 'r')
		return 0;
	memcpy(digits, name + 1, len - 1);
	digits[len - 1] = '\0';
	bool prefixed = digits[0] == '0' && digits[1] == 'x';
	const char *hex = prefixed ? digits + 2 : digits;
	if (!*hex || hex[strspn(hex, "0123456789abcdefABCDEF")])
		return 0;
	if (parse_hex(digits, config))
		return 1;
	*why = "a raw event has 64 bits, 16 hex digits at most";
	return -EINVAL;
}

/* A tracepoint that is given without its group. */
struct bare {
	const char *wanted;
	size_t len;
	char found[2 * MAX_WORD];
};

static int compare_bare(const char *name, void *arg)
{
	struct bare *b = arg;
	const char *last = strchr(name, ':') + 1;

	if (strlen(last) != b->len || memcmp(last, b->wanted, b->len) != 0)
		return 0;
	snprintf(b->found, sizeof(b->found), "%s", name);
	return 1;
}

static int refuse_unknown(const struct parser *p, const char *name, size_t len)
{
	struct bare bare = { .wanted = name, .len = len };
	struct table_entry e;
	struct nearest near;
	int shown = len > MAX_WORD ? MAX_WORD : (int)len;

	nearest_init(&near, name, len);
	for (size_t i = 0; table_at(i, &e); i++) {
		nearest_offer(&near, e.name);
		if (e.alias)
			nearest_offer(&near, e.alias);
	}
	if (tracepoint_each(p->root, compare_bare, &bare) == -ENOMEM)
		return error_nomem(p->err, "the names of tracepoints");
	if (!bare.found[0] && !near.name[0])
		return fail(p, name, TALLY_CAUSE_UNKNOWN,
			    "there is no event '%.*s': 'tally list' shows those there are", shown,
			    name);
	return fail(p, name, TALLY_CAUSE_UNKNOWN, "there is no event '%.*s', the nearest is '%s'",
		    shown, name, bare.found[0] ? bare.found : near.name);
}

static bool copy_word(char *out, const char *word, size_t len)
{
	if (len > MAX_WORD)
		return false;
	memcpy(out, word, len);
	out[len] = '\0';
	return true;
}

/* "cycels:u" is a slip in a name rather than a tracepoint u of the group cycels. */
static int resolve_tracepoint(const struct parser *p, const char *text, size_t colon, size_t len,
			      struct tally_attr *attr, size_t *taken)
{
	char group[MAX_WORD + 1], name[MAX_WORD + 1];
	const char *second = text + colon + 1;
	const char *end = memchr(second, ':', len - colon - 1);
	size_t second_len = end ? (size_t)(end - second) : len - colon - 1;
	uint64_t id;

	if (!copy_word(group, text, colon) || !copy_word(name, second, second_len))
		return fail(p, text, TALLY_CAUSE_UNKNOWN,
			    "there is no tracepoint with a name that long");
	if (strpbrk(name, "*?["))
		return fail(p, second, TALLY_CAUSE_SYNTAX,
			    "patterns are not expanded: name each tracepoint ('tally list' takes "
			    "patterns)");
	if (!name[strspn(name, letters)] && !tracepoint_has_group(p->root, group))
		return refuse_unknown(p, text, colon);
	int r = tracepoint_id(&id, group, name, p->root, p->err);
	if (r < 0) {
		error_prefix(p->err, "events, column %td", text - p->text + 1);
		return r;
	}
	tally_attr_init(attr, TALLY_TYPE_TRACEPOINT, id);
	*taken = colon + 1 + second_len;
	return 0;
}

/* What the word names; `*taken` is the length of the name, modifiers follow. */
static int resolve(const struct parser *p, const char *text, size_t len, struct tally_attr *attr,
		   size_t *taken)
{
	const char *colon = memchr(text, ':', len), *slash = memchr(text, '/', len), *why = "";
	size_t name_len = colon ? (size_t)(colon - text) : len;
	uint32_t type;
	uint64_t config;

	if (!name_len)
		return fail(p, text, TALLY_CAUSE_SYNTAX, "a name is missing before ':'");
	if (slash)
		return fail(p, slash, TALLY_CAUSE_UNSUPPORTED,
			    "events of the form pmu/terms/ are not read: give the bits as rNNN");
	int r = table_find(text, name_len, &type, &config, &why);
	if (r == 0) {
		r = find_raw(text, name_len, &config, &why);
		type = TALLY_TYPE_RAW;
	}
	if (r < 0)
		return fail(p, text, TALLY_CAUSE_UNSUPPORTED, "'%.*s': %s", (int)name_len, text,
			    why);
	if (r > 0) {
		tally_attr_init(attr, type, config);
		*taken = name_len;
		return 0;
	}
	if (colon)
		return resolve_tracepoint(p, text, name_len, len, attr, taken);
	return refuse_unknown(p, text, name_len);
}

static int refuse_word(const struct parser *p, bool in_group)
{
	if (*p->at == '}' && !in_group)
		return fail(p, p->at, TALLY_CAUSE_SYNTAX, "this '}' closes nothing");
	if (*p->at == '{')
		return fail(p, p->at, TALLY_CAUSE_SYNTAX, "a group cannot hold another group");
	return fail(p, p->at, TALLY_CAUSE_SYNTAX, "the name of an event is missing here");
}

static int parse_event(struct parser *p, bool in_group, bool leads)
{
	size_t len = strcspn(p->at, SPACE ",{}"), taken = 0;
	struct modifiers modifiers = { 0 };
	struct tally_attr attr;

	if (!len)
		return refuse_word(p, in_group);
	if (p->events->list.count >= MAX_EVENTS)
		return fail(p, p->at, TALLY_CAUSE_LIMIT, "there are more than %d events",
			    MAX_EVENTS);
	int r = resolve(p, p->at, len, &attr, &taken);
	if (r == 0 && taken < len)
		r = parse_modifiers(p, p->at + taken + 1, len - taken - 1, leads, &modifiers);
	if (r < 0)
		return r;
	struct modifiers *slot = vec_push(&p->modifiers);
	if (!slot || !events_append(p->events, p->at, len, &attr))
		return error_nomem(p->err, "events");
	*slot = modifiers;
	p->at += len;
	return 0;
}

/* perf(1)'s meaning: naming modes excludes the others, and guests are left out unless named. */
static uint64_t mode_flags(uint32_t set)
{
	static const struct {
		uint32_t bit, among;
		uint64_t exclude;
	} modes[] = {
		{ MOD_USER, MOD_USER | MOD_KERNEL | MOD_HV, TALLY_ATTR_EXCLUDE_USER },
		{ MOD_KERNEL, MOD_USER | MOD_KERNEL | MOD_HV, TALLY_ATTR_EXCLUDE_KERNEL },
		{ MOD_HV, MOD_USER | MOD_KERNEL | MOD_HV, TALLY_ATTR_EXCLUDE_HV },
		{ MOD_HOST, MOD_HOST | MOD_GUEST, TALLY_ATTR_EXCLUDE_HOST },
		{ MOD_GUEST, MOD_HOST | MOD_GUEST, TALLY_ATTR_EXCLUDE_GUEST },
	};
	uint64_t flags = set & MOD_NOT_IDLE ? TALLY_ATTR_EXCLUDE_IDLE : 0;

	if (!(set & (MOD_HOST | MOD_GUEST)))
		set |= MOD_HOST;
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (set & modes[i].among && !(set & modes[i].bit))
			flags |= modes[i].exclude;
	return flags;
}

/* The name with the group's modifiers that it has not itself: "cycles" in {cycles,cs}:u. */
static bool extend_name(struct tally_event *e, const struct modifiers *own,
			const struct modifiers *group)
{
	char more[sizeof(letters) + 3];
	size_t n = 0;

	for (size_t i = 0; letters[i]; i++)
		if (group->set & ~own->set & MOD_NAMED & 1u << i)
			more[n++] = letters[i];
	for (unsigned i = 0; i < group->precise; i++)
		more[n++] = 'p';
	if (!n)
		return true;
	more[n] = '\0';
	size_t size = strlen(e->name) + n + 2;
	char *longer = malloc(size);
	if (!longer)
		return false;
	snprintf(longer, size, "%s%s%s", e->name, own->set ? "" : ":", more);
	free(e->name);
	e->name = longer;
	return true;
}

/* P asks for what there is; pp asks for pp. */
static void apply(const struct parser *p, struct tally_event *e, const struct modifiers *all,
		  bool leads)
{
	uint64_t precise = all->set & MOD_PRECISEST ? 3 : all->precise;

	e->attr.flags = mode_flags(all->set) | precise << TALLY_ATTR_PRECISE_IP_SHIFT;
	if (all->set & MOD_PINNED && leads)
		e->attr.flags |= TALLY_ATTR_PINNED;
	e->reads_group = all->set & MOD_READS_GROUP;
	e->fallback = p->fallback;
	if (all->set & MOD_PRECISEST)
		e->fallback |= TALLY_FALLBACK_PRECISE;
	else if (all->precise)
		e->fallback &= ~(uint32_t)TALLY_FALLBACK_PRECISE;
}

/* The events from `first` on are one item. `where` is where its modifiers begin. */
static int finish(const struct parser *p, size_t first, const struct modifiers *group,
		  const char *where)
{
	size_t end = p->events->list.count;

	for (size_t i = first; i < end; i++) {
		struct tally_event *e = &p->events->list.at[i];
		const struct modifiers *own = &p->modifiers.at[i];
		const struct modifiers all = { own->set | group->set,
					       own->precise + group->precise };
		if (all.precise > 3)
			return fail(p, where, TALLY_CAUSE_SYNTAX,
				    "with those of '%s' these are more than three p", e->name);
		if (!extend_name(e, own, group))
			return error_nomem(p->err, "an event's name");
		apply(p, e, &all, i == first);
		e->leader = (uint32_t)first;
		e->group_size = (uint32_t)(end - first);
	}
	return 0;
}

/* Between two items. 1: another follows, 0: the end (or a '}' in a group). */
static int parse_separator(struct parser *p, bool in_group)
{
	bool space = skip_space(p);

	if (!*p->at || (in_group && *p->at == '}'))
		return 0;
	if (*p->at == ',') {
		p->at++;
		skip_space(p);
		return 1;
	}
	if (space || *p->at == '}')
		return 1;
	return fail(p, p->at, TALLY_CAUSE_SYNTAX, "a comma is missing here");
}

static int parse_group(struct parser *p)
{
	const char *open = p->at++;
	size_t first = p->events->list.count, len;
	struct modifiers modifiers = { 0 };
	int r;

	skip_space(p);
	do {
		r = parse_event(p, true, p->events->list.count == first);
		if (r == 0)
			r = parse_separator(p, true);
	} while (r > 0);
	if (r < 0)
		return r;
	if (!*p->at)
		return fail(p, open, TALLY_CAUSE_SYNTAX, "this '{' is not closed");
	p->at++;
	const char *where = p->at + 1;
	if (*p->at == ':') {
		len = strcspn(where, SPACE ",{}");
		r = parse_modifiers(p, where, len, true, &modifiers);
		p->at = where + len;
	}
	return r < 0 ? r : finish(p, first, &modifiers, where);
}

static int parse_single(struct parser *p)
{
	size_t first = p->events->list.count;
	const struct modifiers none = { 0 };
	int r = parse_event(p, false, true);

	return r < 0 ? r : finish(p, first, &none, p->at);
}

static int parse_list(struct parser *p)
{
	int r;

	skip_space(p);
	if (!*p->at)
		return fail(p, p->at, TALLY_CAUSE_SYNTAX, "no event is named");
	do {
		r = *p->at == '{' ? parse_group(p) : parse_single(p);
		if (r == 0)
			r = parse_separator(p, false);
	} while (r > 0);
	return r;
}

int tally_events_parse(struct tally_events **out, const char *text,
		       const struct tally_events_opts *opts, struct tally_error *err)
{
	struct tally_events_opts o;
	int r = events_opts_read(&o, opts, err);

	if (r < 0)
		return r;
	if (!text)
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT, "no event is named");
	struct parser p = { .text = text,
			    .at = text,
			    .events = calloc(1, sizeof(*p.events)),
			    .fallback = o.fallback,
			    .root = o.root,
			    .err = err };
	r = p.events ? parse_list(&p) : error_nomem(err, "events");
	vec_done(&p.modifiers);
	if (r < 0) {
		tally_events_free(p.events);
		return r;
	}
	*out = p.events;
	return 0;
}
