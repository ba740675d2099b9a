/* SPDX-License-Identifier: MIT */
/*
 * Metrics: when two names are the same event, and in which modes an event is counted. A result is
 * known by its label alone, so all of this is read from texts.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/bytes.h"
#include "count/metric.h"
#include "event/event.h"
#include "event/table.h"

/* All modifiers there are; the first ones choose modes, and each has the bit of its place. */
static const char letters[] = "ukhHGIpPDS";
enum {
	MODE_USER = 1u << 0,
	MODE_KERNEL = 1u << 1,
	MODE_HV = 1u << 2,
	MODE_HOST = 1u << 3,
	MODE_GUEST = 1u << 4,
	MODE_NOT_IDLE = 1u << 5,
	MODE_LEVELS = MODE_USER | MODE_KERNEL | MODE_HV,
	MODE_MACHINES = MODE_HOST | MODE_GUEST,
	MODE_ALL = MODE_LEVELS |
		   MODE_HOST, /* without modifiers; guests are left out as perf does */
};

/* The characters that a name may have behind a '\\', as in perf. */
#define ESCAPED "-,="

/* Whatever the program's locale calls a letter. */
static bool is_word(char c)
{
	static const char word[] = "abcdefghijklmnopqrstuvwxyz"
				   "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:@";

	return c && strchr(word, c);
}

const char *metric_word(const char *at)
{
	for (;;) {
		if (is_word(*at))
			at++;
		else if (*at == '\\' && at[1] && strchr(ESCAPED, at[1]))
			at += 2;
		else
			return at;
	}
}

bool metric_unescape(char out[METRIC_MAX_NAME + 1], const char *text, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		i += text[i] == '\\';
		if (n == METRIC_MAX_NAME)
			return false;
		out[n++] = text[i] == '@' ? '/' : text[i];
	}
	out[n] = '\0';
	return true;
}

bool metric_escape(struct buf *out, const char *name)
{
	for (; *name; name++) {
		if (strchr(ESCAPED, *name))
			buf_str(out, "\\");
		else if (*name != '/' && (!is_word(*name) || *name == '@'))
			return false;
		buf_add(out, *name == '/' ? "@" : name, 1);
	}
	return true;
}

/* "cycles:u", "cpu/event=0x3c/u": where the modifiers begin, `len` when there are none. */
static size_t modifiers_at(const char *name, size_t len)
{
	size_t at = len;

	while (at > 0 && name[at - 1] != ':' && name[at - 1] != '/')
		at--;
	if (at == 0 || at == len)
		return len;
	for (size_t i = at; i < len; i++)
		if (!strchr(letters, name[i]))
			return len;
	return at;
}

static uint8_t modes_of(const char *modifiers, size_t len)
{
	unsigned set = 0;

	for (size_t i = 0; i < len; i++)
		set |= 1u << (strchr(letters, modifiers[i]) - letters);
	set &= METRIC_MODES - 1;
	if (!(set & MODE_LEVELS))
		set |= MODE_LEVELS;
	if (!(set & MODE_MACHINES))
		set |= MODE_HOST;
	return (uint8_t)set;
}

static bool is_clock(uint32_t type, uint64_t config)
{
	return type == TALLY_TYPE_SOFTWARE &&
	       (config == TALLY_SW_TASK_CLOCK || config == TALLY_SW_CPU_CLOCK);
}

/* Clocks run whatever the mode; what is counted outside of the cores has no mode at all. */
static bool has_no_modes(const struct metric_key *key)
{
	static const char *const cores[] = { "cpu", "arm", "apple" };
	const char *slash = memchr(key->name, '/', key->len);
	struct tally_attr attr = { .type = key->type, .config = key->config };

	if (key->generic)
		return is_clock(key->type, key->config) || event_only_in_kernel(&attr);
	for (size_t i = 0; slash && i < ARRAY_SIZE(cores); i++)
		if (!strncasecmp(key->name, cores[i], strlen(cores[i])))
			return false;
	return slash || memchr(key->name, ':', key->len); /* a tracepoint */
}

void metric_key(struct metric_key *out, const char *name)
{
	size_t len = strlen(name), at = modifiers_at(name, len);
	const char *why;

	*out = (struct metric_key){ .name = name, .len = at };
	if (at < len) {
		static const char modes[] = "ukhHGI";
		out->names_modes = strcspn(name + at, modes) < len - at;
		out->len = name[at - 1] == ':' ? at - 1 : at;
	}
	out->modes = modes_of(name + at, len - at);
	out->generic = table_find(name, out->len, &out->type, &out->config, &why) > 0;
	out->modeless = has_no_modes(out);
}

bool metric_key_same(const struct metric_key *a, const struct metric_key *b)
{
	if (a->generic || b->generic)
		return a->generic && b->generic && a->type == b->type && a->config == b->config;
	return a->len == b->len && !strncasecmp(a->name, b->name, a->len);
}

bool metric_key_clocks(const struct metric_key *a, const struct metric_key *b)
{
	return a->generic && b->generic && is_clock(a->type, a->config) &&
	       is_clock(b->type, b->config);
}

/* The modes that the kernel granted, as modifiers; "" for all of them. */
static void granted_modes(char *out, uint64_t flags)
{
	static const struct {
		uint64_t without;
		char letter;
	} levels[] = {
		{ TALLY_ATTR_EXCLUDE_USER, 'u' },
		{ TALLY_ATTR_EXCLUDE_KERNEL, 'k' },
		{ TALLY_ATTR_EXCLUDE_HV, 'h' },
	};
	const uint64_t all = TALLY_ATTR_EXCLUDE_USER | TALLY_ATTR_EXCLUDE_KERNEL |
			     TALLY_ATTR_EXCLUDE_HV;

	for (size_t i = 0; flags & all && i < ARRAY_SIZE(levels); i++)
		if (!(flags & levels[i].without))
			*out++ = levels[i].letter;
	if (!(flags & TALLY_ATTR_EXCLUDE_GUEST)) {
		if (!(flags & TALLY_ATTR_EXCLUDE_HOST))
			*out++ = 'H';
		*out++ = 'G';
	}
	if (flags & TALLY_ATTR_EXCLUDE_IDLE)
		*out++ = 'I';
	*out = '\0';
}

int tally_metric_label(char *out, size_t size, const struct tally_event *event)
{
	const uint64_t modes = TALLY_ATTR_EXCLUDE_USER | TALLY_ATTR_EXCLUDE_KERNEL |
			       TALLY_ATTR_EXCLUDE_HV | TALLY_ATTR_EXCLUDE_HOST |
			       TALLY_ATTR_EXCLUDE_GUEST | TALLY_ATTR_EXCLUDE_IDLE;
	const struct tally_attr *asked = tally_event_attr(event);
	const struct tally_attr *granted = tally_event_granted(event);
	const char *name = tally_event_name(event);
	char other[64], modifiers[8];
	struct metric_key key;
	int n;

	bool another = granted &&
		       (granted->type != asked->type || granted->config != asked->config) &&
		       table_name(other, sizeof(other), granted->type, granted->config);
	if (!granted || (!another && !((granted->flags ^ asked->flags) & modes))) {
		n = snprintf(out, size, "%s", name);
	} else {
		metric_key(&key, another ? other : name);
		granted_modes(modifiers, granted->flags);
		bool slash = key.len && key.name[key.len - 1] == '/';
		n = snprintf(out, size, "%.*s%s%s", (int)key.len, key.name,
			     *modifiers && !slash ? ":" : "", modifiers);
	}
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : n;
}
