/* SPDX-License-Identifier: MIT */
/*
 * From text to events:
 *
 *	list      = item { separator item }
 *	item      = event | "{" list of events "}" [ ":" modifiers ]
 *	event     = name [ ":" modifiers ]
 *	          | pmu "/" terms "/" [ [ ":" ] modifiers ]
 *	separator = "," with or without white space around it, or white space
 *
 * What a name is, resolve.c knows: it may have colons of its own.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "event/event.h"
#include "event/resolve.h"

#define SPACE      " \t\n\r\f\v"
#define MAX_EVENTS 4096

/* Modifiers as a set, by their place in this text; how many p are counted apart. */
static const char letters[] = RESOLVE_MODIFIERS;
#define MODIFIERS "there are u k h H G I p pp ppp P D S W e"
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
	MOD_WEAK = 1u << 9,
	MOD_EXCLUSIVE = 1u << 10,
	MOD_PRECISE = 1u << 11,
	/* What the kernel grants to the leader of a group alone. */
	MOD_LEADS = MOD_PINNED | MOD_EXCLUSIVE,
	/* What makes another count of it, and so belongs to the name. */
	MOD_NAMED = (1u << 7) - 1,
};

struct modifiers {
	uint32_t set;
	unsigned precise;
	bool all_modes, keeps_name; /* of the event: see struct found_event */
};

struct parser {
	struct naming naming;
	const char *at;
	struct tally_events *events;
	VEC(struct modifiers) modifiers; /* of each event, until its item is complete */
	uint32_t fallback;
};

/* Why the letter is none of ours, where perf(1) knows it. */
static int refuse_modifier(const struct parser *p, const char *at)
{
	if (*at == 'b')
		return resolve_fail(&p->naming, at, TALLY_CAUSE_UNSUPPORTED,
				    "counting by a BPF program (modifier b) is perf's own: without "
				    "it the kernel counts the same");
	return resolve_fail(&p->naming, at, TALLY_CAUSE_SYNTAX,
			    "there is no modifier '%c': " MODIFIERS,
			    isprint((unsigned char)*at) ? *at : '?');
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
		return resolve_fail(&p->naming, text, TALLY_CAUSE_SYNTAX,
				    "a modifier is missing behind ':'");
	for (size_t i = 0; i < len; i++) {
		const char *found = text[i] ? strchr(letters, text[i]) : NULL;
		if (!found)
			return refuse_modifier(p, text + i);
		uint32_t bit = 1u << (found - letters);
		if (bit == MOD_PRECISE && ++out->precise > 3)
			return resolve_fail(&p->naming, text + i, TALLY_CAUSE_SYNTAX,
					    "ppp is the most precise there is");
		if (bit != MOD_PRECISE && out->set & bit)
			return resolve_fail(&p->naming, text + i, TALLY_CAUSE_SYNTAX,
					    "the modifier '%c' is there twice", text[i]);
		if (bit & MOD_LEADS && !leads)
			return resolve_fail(&p->naming, text + i, TALLY_CAUSE_SYNTAX,
					    "only the first event of a group can be %s (%c)",
					    bit == MOD_PINNED ? "pinned" : "exclusive", text[i]);
		out->set |= bit;
	}
	return 0;
}

static int refuse_word(const struct parser *p, bool in_group)
{
	if (*p->at == '}' && !in_group)
		return resolve_fail(&p->naming, p->at, TALLY_CAUSE_SYNTAX,
				    "this '}' closes nothing");
	if (*p->at == '{')
		return resolve_fail(&p->naming, p->at, TALLY_CAUSE_SYNTAX,
				    "a group cannot hold another group");
	return resolve_fail(&p->naming, p->at, TALLY_CAUSE_SYNTAX,
			    "the name of an event is missing here");
}

/* The events that a word means, each with the word's modifiers. */
static int append_found(struct parser *p, struct found *found, size_t len,
			const struct modifiers *modifiers)
{
	vec_each (&found->events, f) {
		const char *name = f->name ? f->name : p->at;
		if (p->events->list.count >= MAX_EVENTS)
			return resolve_fail(&p->naming, p->at, TALLY_CAUSE_LIMIT,
					    "there are more than %d events", MAX_EVENTS);
		struct modifiers *slot = vec_push(&p->modifiers);
		struct tally_event *e = slot ? events_append(p->events, name,
							     f->name ? strlen(name) : len, &f->attr)
					     : NULL;
		if (!e)
			return error_nomem(p->naming.err, "events");
		*slot = *modifiers;
		slot->all_modes = f->all_modes;
		slot->keeps_name = f->keeps_name;
		e->scale = f->scale;
		memcpy(e->unit, f->unit, sizeof(e->unit));
		e->per_package = f->per_package;
		e->snapshot = f->snapshot;
		e->rate = f->rate;
		e->parts = f->parts;
		f->parts = (event_parts){ 0 }; /* now the event's */
		e->text = f->text;
		f->text = NULL;
	}
	return 0;
}

static int parse_event(struct parser *p, bool in_group, bool leads)
{
	struct found found = { 0 };
	size_t len = resolve_word(p->at);
	struct modifiers modifiers = { 0 };

	if (!len)
		return refuse_word(p, in_group);
	int r = resolve(&p->naming, p->at, len, &found);
	size_t from = found.taken;
	if (r == 0 && from < len) {
		from += p->at[from] == ':';
		r = parse_modifiers(p, p->at + from, len - from, leads, &modifiers);
	}
	if (r == 0)
		r = append_found(p, &found, len, &modifiers);
	found_done(&found);
	p->at += len;
	return r;
}

/*
 * perf(1)'s meaning: naming modes excludes the others, and guests are left out unless named. A PMU
 * that cannot tell them apart would refuse to leave out what nobody asked for.
 */
static uint64_t mode_flags(const struct modifiers *all)
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
	uint32_t set = all->set;
	uint64_t flags = set & MOD_NOT_IDLE ? TALLY_ATTR_EXCLUDE_IDLE : 0;

	if (!(set & (MOD_HOST | MOD_GUEST)) && !all->all_modes)
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
	if (!n || own->keeps_name)
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

	e->attr.flags |= mode_flags(all) | precise << TALLY_ATTR_PRECISE_IP_SHIFT;
	if (all->set & MOD_PINNED && leads)
		e->attr.flags |= TALLY_ATTR_PINNED;
	if (all->set & MOD_EXCLUSIVE && leads)
		e->attr.flags |= TALLY_ATTR_EXCLUSIVE;
	e->guests_by_default = !(all->set & (MOD_HOST | MOD_GUEST)) && !all->all_modes;
	e->reads_group = all->set & MOD_READS_GROUP;
	e->fallback = p->fallback;
	if (all->set & MOD_PRECISEST)
		e->fallback |= TALLY_FALLBACK_PRECISE;
	else if (all->precise)
		e->fallback &= ~(uint32_t)TALLY_FALLBACK_PRECISE;
}

/* A group that may be split is so as a whole, whichever of its members says so. */
static bool is_weak(const struct parser *p, size_t first, size_t end, const struct modifiers *group)
{
	uint32_t set = group->set;

	for (size_t i = first; i < end; i++)
		set |= p->modifiers.at[i].set;
	return set & MOD_WEAK;
}

/* The events of [first, end) are one group. `where` is where its modifiers begin. */
static int finish(const struct parser *p, size_t first, size_t end, const struct modifiers *group,
		  const char *where)
{
	bool weak = is_weak(p, first, end, group);

	for (size_t i = first; i < end; i++) {
		struct tally_event *e = &p->events->list.at[i];
		const struct modifiers *own = &p->modifiers.at[i];
		const struct modifiers all = { own->set | group->set, own->precise + group->precise,
					       own->all_modes };
		if (all.precise > 3)
			return resolve_fail(&p->naming, where, TALLY_CAUSE_SYNTAX,
					    "with those of '%s' these are more than three p",
					    e->name);
		if (!extend_name(e, own, group))
			return error_nomem(p->naming.err, "an event's name");
		apply(p, e, &all, i == first);
		e->weak = weak;
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
	return resolve_fail(&p->naming, p->at, TALLY_CAUSE_SYNTAX, "a comma is missing here");
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
		return resolve_fail(&p->naming, open, TALLY_CAUSE_SYNTAX, "this '{' is not closed");
	p->at++;
	const char *where = p->at + 1;
	if (*p->at == ':') {
		len = strcspn(where, SPACE ",{}");
		r = parse_modifiers(p, where, len, true, &modifiers);
		p->at = where + len;
	}
	return r < 0 ? r : finish(p, first, p->events->list.count, &modifiers, where);
}

static int parse_single(struct parser *p)
{
	size_t first = p->events->list.count;
	const struct modifiers none = { 0 };
	int r = parse_event(p, false, true);

	/* A pattern's events are each alone. */
	for (size_t i = first; r == 0 && i < p->events->list.count; i++)
		r = finish(p, i, i + 1, &none, p->at);
	return r;
}

static int parse_list(struct parser *p)
{
	int r;

	skip_space(p);
	if (!*p->at)
		return resolve_fail(&p->naming, p->at, TALLY_CAUSE_SYNTAX, "no event is named");
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
	struct parser p = {
		.naming = { .text = text, .root = o.root, .tables = o.tables, .err = err },
		.at = text,
		.events = calloc(1, sizeof(*p.events)),
		.fallback = o.fallback
	};
	r = p.events ? parse_list(&p) : error_nomem(err, "events");
	vec_done(&p.modifiers);
	if (r < 0) {
		tally_events_free(p.events);
		return r;
	}
	*out = p.events;
	return 0;
}
