/* SPDX-License-Identifier: MIT */
/*
 * Probes by the PMUs kprobe and uprobe (Linux 4.17), which need no name in tracefs and end with
 * the event: config1 points to the function's name or the file's path, config2 is the offset from
 * there. A return is the bit that format/retprobe names.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/proc.h"
#include "event/elf-symbol.h"
#include "event/probe.h"

#define DEVICES "/sys/bus/event_source/devices/"

static const struct kind {
	const char *prefix, *pmu, *form;
	bool user, at_return;
} kinds[] = {
	{ "kprobe:", "kprobe", "kprobe:FUNCTION[+OFFSET]", false, false },
	{ "kretprobe:", "kprobe", "kretprobe:FUNCTION", false, true },
	{ "uprobe:", "uprobe", "uprobe:PATH:FUNCTION[+OFFSET] or uprobe:PATH:0xOFFSET", true,
	  false },
	{ "uretprobe:", "uprobe", "uretprobe:PATH:FUNCTION or uretprobe:PATH:0xOFFSET", true,
	  true },
};

/* A probe's word, taken apart. */
struct probe {
	const struct kind *kind;
	const char *path, *symbol, *offset; /* where they begin in the word */
	size_t path_len, symbol_len;
	uint64_t plus;
	size_t taken;
};

static int read_type(uint32_t *type, const char *pmu, const char *root)
{
	char path[128];
	int64_t number;

	snprintf(path, sizeof(path), DEVICES "%s/type", pmu);
	int r = proc_read_i64(&number, root, path);
	if (r < 0)
		return r;
	if (number < 0 || number > UINT32_MAX)
		return -EINVAL;
	*type = (uint32_t)number;
	return 0;
}

enum probe_kind probe_kind_of(const struct tally_attr *attr, const char *root)
{
	uint32_t type;

	if (attr->type <= TALLY_TYPE_BREAKPOINT)
		return PROBE_NONE;
	if (read_type(&type, "kprobe", root) == 0 && type == attr->type)
		return PROBE_KERNEL;
	if (read_type(&type, "uprobe", root) == 0 && type == attr->type)
		return PROBE_USER;
	return PROBE_NONE;
}

/* "config:0" is what the kernel has always said; another bit would be told here. */
static int read_return_bit(uint64_t *bit, const char *pmu, const char *root)
{
	static const char before[] = "config:";
	char path[128], line[64];
	uint64_t number;

	snprintf(path, sizeof(path), DEVICES "%s/format/retprobe", pmu);
	int r = proc_read_line(line, sizeof(line), root, path);
	if (r < 0)
		return r;
	if (strncmp(line, before, strlen(before)) != 0 ||
	    !parse_u64(line + strlen(before), &number) || number > 63)
		return -EINVAL;
	*bit = UINT64_C(1) << number;
	return 0;
}

static int fail(const struct naming *n, const char *where, const struct probe *p, const char *what)
{
	return resolve_fail(n, where, TALLY_CAUSE_SYNTAX, "%s: %s", what, p->kind->form);
}

/* "+OFFSET" behind a symbol. */
static int read_plus(const struct naming *n, struct probe *p)
{
	char digits[RESOLVE_MAX_NAME + 1];
	const char *plus = memchr(p->symbol, '+', p->symbol_len);

	if (!plus)
		return 0;
	size_t len = p->symbol_len - (size_t)(plus + 1 - p->symbol);
	p->offset = plus + 1;
	p->symbol_len = (size_t)(plus - p->symbol);
	if (!resolve_copy(digits, plus + 1, len) || !parse_u64(digits, &p->plus))
		return fail(n, plus + 1, p, "the offset is no number, decimal or hex after 0x");
	if (p->kind->at_return)
		return fail(n, plus, p, "a return is that of a whole function, without an offset");
	return 0;
}

static int split(const struct naming *n, const char *text, size_t len, struct probe *p)
{
	const char *at = text + strlen(p->kind->prefix), *end = text + len, *colon;

	if (p->kind->user) {
		p->path = at;
		colon = memchr(at, ':', (size_t)(end - at));
		if (!colon || colon == at)
			return fail(n, colon ? at : end, p,
				    colon ? "the file is missing" : "the function is missing");
		p->path_len = (size_t)(colon - at);
		at = colon + 1;
	}
	colon = memchr(at, ':', (size_t)(end - at));
	p->symbol = at;
	p->symbol_len = (size_t)((colon ? colon : end) - at);
	p->taken = (size_t)(at - text) + p->symbol_len;
	int r = read_plus(n, p);
	if (r == 0 && !p->symbol_len)
		r = fail(n, at, p, "the function is missing");
	return r;
}

/* The whole path, as the kernel looks it up when the event is opened, from wherever that is. */
static int find_file(const struct naming *n, const struct probe *p, char **path)
{
	char *written = strndup(p->path, p->path_len);
	struct stat st;

	*path = written ? realpath(written, NULL) : NULL;
	int r = *path ? 0 : -errno;
	free(written);
	if (r == -ENOMEM)
		return error_nomem(n->err, "a path");
	if (r < 0)
		error_set(n->err, r,
			  r == -ENOENT || r == -ENOTDIR ? TALLY_CAUSE_NO_FILE
							: TALLY_CAUSE_PERMISSION,
			  "events, column %td: cannot find the file '%.*s': %s",
			  p->path - n->text + 1, p->path_len > 200 ? 200 : (int)p->path_len,
			  p->path, strerror(-r));
	else if (stat(*path, &st) < 0 || !S_ISREG(st.st_mode))
		return resolve_fail(
			n, p->path, TALLY_CAUSE_ARGUMENT,
			"'%.200s' is no regular file: a probe needs a program or library", *path);
	return r;
}

/* The offset in the file, for a symbol or for digits that give it. */
static int find_place(const struct naming *n, const struct probe *p, const char *path,
		      uint64_t *offset)
{
	char word[RESOLVE_MAX_NAME + 1];
	struct elf_function f = { 0 };

	bool number = p->symbol_len > 2 && !memcmp(p->symbol, "0x", 2);
	if (number && (p->offset || !resolve_copy(word, p->symbol, p->symbol_len) ||
		       !parse_hex(word, offset)))
		return fail(n, p->symbol, p, "this is no offset in a file");
	int r = number ? elf_check_offset(path, *offset, n->err)
		       : elf_find_function(&f, path, p->symbol, p->symbol_len, n->err);
	if (r < 0) {
		error_prefix(n->err, "events, column %td", p->symbol - n->text + 1);
		return r;
	}
	if (number)
		return 0;
	if (p->plus >= f.size)
		return resolve_fail(n, p->offset ? p->offset : p->symbol, TALLY_CAUSE_ARGUMENT,
				    "the function has %llu bytes: the offset is not in it",
				    (unsigned long long)f.size);
	*offset = f.offset + p->plus;
	return 0;
}

/* Modifiers that leave nothing to count: the kernel would answer with 0, or not heed them. */
static int check_modes(const struct naming *n, const struct probe *p, const char *text, size_t len)
{
	const char *modifiers = text + p->taken;
	size_t more = len - p->taken;
	bool user = memchr(modifiers, 'u', more), kernel = memchr(modifiers, 'k', more);

	if (p->kind->user && kernel && !user)
		return resolve_fail(n, modifiers, TALLY_CAUSE_ARGUMENT,
				    "a probe of a program is hit in user mode: without the "
				    "modifier k");
	if (!p->kind->user && user && !kernel)
		return resolve_fail(n, modifiers, TALLY_CAUSE_ARGUMENT,
				    "a probe of the kernel is hit in kernel mode: without the "
				    "modifier u");
	return 0;
}

static int find_text(const struct naming *n, const struct probe *p, char **text, uint64_t *offset)
{
	if (p->kind->user) {
		int r = find_file(n, p, text);
		return r < 0 ? r : find_place(n, p, *text, offset);
	}
	*offset = p->plus;
	*text = strndup(p->symbol, p->symbol_len);
	return *text ? 0 : error_nomem(n->err, "a function's name");
}

static int add(const struct naming *n, const struct probe *p, char *text, uint64_t offset,
	       struct found *out)
{
	uint64_t bit = 0;
	uint32_t type = 0;
	int r = read_type(&type, p->kind->pmu, n->root);

	if (r == 0 && p->kind->at_return)
		r = read_return_bit(&bit, p->kind->pmu, n->root);
	if (r < 0) {
		free(text);
		return resolve_fail(
			n, p->kind->user ? p->path : p->symbol, TALLY_CAUSE_UNSUPPORTED,
			"this kernel has no PMU '%s' (Linux 4.17, CONFIG_%s_EVENTS), or "
			"sysfs does not show it: %s",
			p->kind->pmu, p->kind->user ? "UPROBE" : "KPROBE", strerror(-r));
	}
	struct found_event *e = found_add(out, type, bit);
	if (!e) {
		free(text);
		return error_nomem(n->err, "events");
	}
	e->text = text;
	e->attr.config1 = (uintptr_t)text;
	e->attr.config2 = offset;
	out->taken = p->taken;
	return 1;
}

int probe_resolve(const struct naming *n, const char *text, size_t len, struct found *out)
{
	struct probe p = { 0 };
	uint64_t offset = 0;
	char *about = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(kinds) && !p.kind; i++)
		if (strncmp(text, kinds[i].prefix, strlen(kinds[i].prefix)) == 0)
			p.kind = &kinds[i];
	if (!p.kind)
		return 0;
	int r = split(n, text, len, &p);
	if (r == 0)
		r = check_modes(n, &p, text, len);
	if (r == 0)
		r = find_text(n, &p, &about, &offset);
	if (r < 0) {
		free(about);
		return r;
	}
	return add(n, &p, about, offset, out);
}
