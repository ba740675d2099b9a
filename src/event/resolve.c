/* SPDX-License-Identifier: MIT */
/*
 * The sources of names in the order in which they are asked: what stands before the first colon
 * tells a tracepoint from an event with modifiers, so names that are known go first.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/proc.h"
#include "event/breakpoint.h"
#include "event/hybrid.h"
#include "event/nearest.h"
#include "event/pfm.h"
#include "event/probe.h"
#include "event/resolve.h"
#include "event/table.h"
#include "event/tables-resolve.h"
#include "event/terms.h"
#include "event/tracepoint.h"

#define SEPARATORS " \t\n\r\f\v,{}"

int resolve_fail(const struct naming *n, const char *where, enum tally_cause cause, const char *fmt,
		 ...)
{
	char text[TALLY_ERROR_TEXT];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return error_set(n->err, -EINVAL, cause, "events, column %td: %s", where - n->text + 1,
			 text);
}

bool resolve_copy(char *out, const char *word, size_t len)
{
	if (len > RESOLVE_MAX_NAME)
		return false;
	memcpy(out, word, len);
	out[len] = '\0';
	return true;
}

struct found_event *found_add(struct found *out, uint32_t type, uint64_t config)
{
	struct found_event *e = vec_push(&out->events);

	if (e)
		tally_attr_init(&e->attr, type, config);
	return e;
}

void found_done(struct found *out)
{
	vec_each (&out->events, e) {
		free(e->name);
		free(e->text);
		event_parts_done(&e->parts);
	}
	vec_done(&out->events);
}

size_t resolve_word(const char *text)
{
	size_t plain = strcspn(text, SEPARATORS), head = strcspn(text, SEPARATORS ":/");

	if (text[head] != '/')
		return plain;
	const char *close = strchr(text + head + 1, '/');
	return close ? (size_t)(close - text) + strcspn(close, SEPARATORS) : plain;
}

static int one_event(const struct naming *n, struct found *out, uint32_t type, uint64_t config,
		     size_t taken)
{
	out->taken = taken;
	return found_add(out, type, config) ? 1 : error_nomem(n->err, "events");
}

/* The length of the word up to its first colon. */
static size_t head_length(const char *text, size_t len)
{
	const char *colon = memchr(text, ':', len);

	return colon ? (size_t)(colon - text) : len;
}

static int refuse_form(const struct naming *n, const char *text, size_t len, const char *why)
{
	return resolve_fail(n, text, TALLY_CAUSE_UNSUPPORTED, "'%.*s': %s", (int)len, text, why);
}

/* perf stat counts these itself; the kernel has no such events. */
static int resolve_tool(const struct naming *n, const char *text, size_t len, struct found *out)
{
	static const char *const names[] = { "duration_time", "user_time", "system_time" };
	size_t name_len = head_length(text, len);

	(void)out;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strlen(names[i]) == name_len && !memcmp(names[i], text, name_len))
			return refuse_form(
				n, text, name_len,
				"this is no event of the kernel's: 'tally stat' always "
				"prints the elapsed time, and that in user and system mode");
	return 0;
}

static int resolve_generic(const struct naming *n, const char *text, size_t len, struct found *out)
{
	size_t name_len = head_length(text, len);
	const char *why = "";
	uint32_t type;
	uint64_t config;
	int r = table_find(text, name_len, &type, &config, &why);

	if (r < 0)
		return refuse_form(n, text, name_len, why);
	return r ? one_event(n, out, type, config, name_len) : 0;
}

/* "r" and hex digits, as the PMU's manual gives them. */
static int resolve_raw(const struct naming *n, const char *text, size_t len, struct found *out)
{
	char digits[RESOLVE_MAX_NAME + 1];
	size_t name_len = head_length(text, len);
	uint64_t config;

	if (name_len < 2 || text[0] != 'r' || !resolve_copy(digits, text + 1, name_len - 1))
		return 0;
	bool prefixed = digits[0] == '0' && digits[1] == 'x';
	const char *hex = prefixed ? digits + 2 : digits;
	if (!*hex || hex[strspn(hex, "0123456789abcdefABCDEF")])
		return 0;
	if (!parse_hex(digits, &config))
		return refuse_form(n, text, name_len,
				   "a raw event has 64 bits, 16 hex digits at most");
	return one_event(n, out, TALLY_TYPE_RAW, config, name_len);
}

#define VENDOR_HINT "; names of CPU vendors are known with libpfm4 installed or their tables given"

/* A tracepoint that is given without its group. */
struct bare {
	const char *wanted;
	size_t len;
	char found[2 * RESOLVE_MAX_NAME];
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

static int refuse_unknown(const struct naming *n, const char *name, size_t len)
{
	struct bare bare = { .wanted = name, .len = len };
	struct table_entry e;
	struct nearest near;
	int shown = len > RESOLVE_MAX_NAME ? RESOLVE_MAX_NAME : (int)len;

	if (terms_refuse_bare(n, name, len))
		return -EINVAL;
	nearest_init(&near, name, len);
	for (size_t i = 0; table_at(i, &e); i++) {
		nearest_offer(&near, e.name);
		if (e.alias)
			nearest_offer(&near, e.alias);
	}
	terms_offer(&near, n->root);
	if (tables_offer(n, &near) == -ENOMEM)
		return error_nomem(n->err, "the names of tables");
	if (tracepoint_each(n->root, compare_bare, &bare) == -ENOMEM)
		return error_nomem(n->err, "the names of tracepoints");
	if (!bare.found[0] && !near.name[0])
		return resolve_fail(
			n, name, TALLY_CAUSE_UNKNOWN,
			"there is no event '%.*s': 'tally list' shows those there are%s", shown,
			name, pfm_could_know(name, len) ? VENDOR_HINT : "");
	return resolve_fail(n, name, TALLY_CAUSE_UNKNOWN,
			    "there is no event '%.*s', the nearest is '%s'", shown, name,
			    bare.found[0] ? bare.found : near.name);
}

struct pattern {
	struct found *out;
	const char *modifiers; /* with their colon */
	size_t modifiers_len;
};

/* The names stand for themselves, so that each can be given again alone. */
static int add_match(const char *name, uint64_t id, void *arg)
{
	const struct pattern *p = arg;
	struct found_event *e = found_add(p->out, TALLY_TYPE_TRACEPOINT, id);
	size_t size = strlen(name) + p->modifiers_len + 1;

	if (!e || !(e->name = malloc(size)))
		return -ENOMEM;
	snprintf(e->name, size, "%s%.*s", name, (int)p->modifiers_len, p->modifiers);
	return 0;
}

static int resolve_pattern(const struct naming *n, const char *text, size_t len, const char *group,
			   const char *name, struct found *out)
{
	size_t taken = strlen(group) + 1 + strlen(name);
	struct pattern p = { out, text + taken, len - taken };

	int r = tracepoint_match(group, name, n->root, add_match, &p, n->err);
	if (r < 0) {
		error_prefix(n->err, "events, column %td", text - n->text + 1);
		return r;
	}
	out->taken = taken;
	return 1;
}

/* "cycels:u" is a slip in a name rather than a tracepoint u of the group cycels. */
static int resolve_tracepoint(const struct naming *n, const char *text, size_t len,
			      struct found *out)
{
	char group[RESOLVE_MAX_NAME + 1], name[RESOLVE_MAX_NAME + 1];
	size_t group_len = head_length(text, len);
	const char *second = text + group_len + 1;
	uint64_t id;

	if (group_len == len)
		return 0;
	size_t second_len = head_length(second, len - group_len - 1);
	if (!resolve_copy(group, text, group_len) || !resolve_copy(name, second, second_len))
		return resolve_fail(n, text, TALLY_CAUSE_UNKNOWN,
				    "there is no tracepoint with a name that long");
	if (strpbrk(group, "*?[") || strpbrk(name, "*?["))
		return resolve_pattern(n, text, len, group, name, out);
	if (!name[strspn(name, RESOLVE_MODIFIERS)] && !tracepoint_has_group(n->root, group))
		return refuse_unknown(n, text, group_len);
	int r = tracepoint_id(&id, group, name, n->root, n->err);
	if (r < 0) {
		error_prefix(n->err, "events, column %td", text - n->text + 1);
		return r;
	}
	return one_event(n, out, TALLY_TYPE_TRACEPOINT, id, group_len + 1 + second_len);
}

static resolve_source *const sources[] = {
	resolve_tool,       /* duration_time: perf's own */
	resolve_generic,    /* cycles */
	resolve_raw,        /* r1a8 */
	breakpoint_resolve, /* mem:0x1000:w */
	probe_resolve,      /* uprobe:/bin/sh:main */
	resolve_terms,      /* cpu/event=1/ */
	resolve_alias,      /* mem-loads */
	resolve_tables,     /* mem_load_retired.l3_miss */
	resolve_pfm,        /* skl::INST_RETIRED */
	resolve_tracepoint, /* sched:sched_switch */
};

int resolve(const struct naming *n, const char *text, size_t len, struct found *out)
{
	if (text[0] == ':')
		return resolve_fail(n, text, TALLY_CAUSE_SYNTAX, "a name is missing before ':'");
	for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
		int r = sources[i](n, text, len, out);
		if (r)
			return r < 0 ? r : hybrid_expand(n, text, out);
	}
	return refuse_unknown(n, text, head_length(text, len));
}
