/* SPDX-License-Identifier: MIT */
/*
 * The code that a tracee executes. Reading it anew for each step would make a step a tenth slower, so
 * pages are remembered where nothing can change them unseen: in a mapping that is private and not
 * writable, of a process with one thread, until its next system call.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/proc.h"
#include "base/sys.h"
#include "exact/tracee.h"

/* Maps of a process with a hundred thousand mappings still fit. */
#define FILE_MAX (16u << 20)

void code_forget(struct tally_tracee *t)
{
	t->facts.known = false;
}

static const char *field(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? at + strlen(name) : NULL;
}

static unsigned family_threads(const struct tally_tracee *t)
{
	const struct tally_tracee *o = t;
	unsigned count = 0;

	do {
		count += o->pid == t->pid && o->state != TRACEE_GONE;
		o = o->next;
	} while (o != t);
	return count;
}

/* A file of the thread's in /proc, into t->text. */
static int read_file(struct tally_tracee *t, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", t->tid, name);
	buf_reset(&t->text);
	int r = proc_read(&t->text, NULL, path, FILE_MAX);
	if (r < 0)
		return r == -ENOENT ? -ESRCH : r;
	return buf_text(&t->text) ? 0 : -ENOMEM;
}

int code_facts(struct tally_tracee *t)
{
	if (t->facts.known)
		return 0;
	int r = read_file(t, "status");
	if (r < 0)
		return r;
	const char *text = buf_text(&t->text);
	const char *threads = field(text, "\nThreads:");
	const char *blocked = field(text, "\nSigBlk:");
	const char *ignored = field(text, "\nSigIgn:");
	if (!threads || !blocked || !ignored)
		return -EIO;
	unsigned long count = strtoul(threads, NULL, 10);
	memset(&t->facts, 0, sizeof(t->facts));
	t->facts.alone = count <= family_threads(t);
	t->facts.single = count == 1;
	t->facts.trap_ignored = strtoull(ignored, NULL, 16) >> (SIGTRAP - 1) & 1;
	t->facts.mask = strtoull(blocked, NULL, 16);
	t->facts.known = true;
	if (t->code)
		for (int i = 0; i < CODE_PAGES; i++)
			t->code[i].address = 0;
	return 0;
}

/* The mappings whose pages stay as they are. More than fit: the rest is read each time. */
static void read_ranges(struct tally_tracee *t)
{
	struct facts *f = &t->facts;
	unsigned long long start, end;
	char perms[5];

	f->ranges_known = true;
	if (read_file(t, "maps") < 0)
		return;
	for (const char *line = t->text.at; line && f->ranges < STEADY_MAX;) {
		if (sscanf(line, "%llx-%llx %4s", &start, &end, perms) == 3 &&
		    !strcmp(perms, "r-xp")) {
			f->range[f->ranges].start = start;
			f->range[f->ranges++].end = end;
		}
		line = strchr(line, '\n');
		if (line)
			line++;
	}
}

static bool is_steady(struct tally_tracee *t, uint64_t page)
{
	if (!t->facts.single)
		return false;
	if (!t->facts.ranges_known)
		read_ranges(t);
	for (uint32_t i = 0; i < t->facts.ranges; i++)
		if (page >= t->facts.range[i].start && page < t->facts.range[i].end)
			return true;
	return false;
}

/* The page of `pc`, when it is remembered or can be. */
static const struct code_page *find_page(struct tally_tracee *t, uint64_t pc)
{
	uint64_t address = pc & ~(uint64_t)(CODE_PAGE - 1);

	if (!t->code)
		t->code = calloc(CODE_PAGES, sizeof(*t->code));
	if (!t->code)
		return NULL;
	struct code_page *page = &t->code[address / CODE_PAGE % CODE_PAGES];
	if (page->address == address)
		return page;
	if (!is_steady(t, address))
		return NULL;
	page->address = 0;
	if (tally_tracee_peek(t, address, page->bytes, CODE_PAGE) < 0)
		return NULL;
	page->address = address;
	return page;
}

/* As many bytes as there are: the next page may not be mapped. */
static size_t read_bytes(struct tally_tracee *t, uint64_t pc, uint8_t *buf)
{
	size_t in_page = CODE_PAGE - (pc & (CODE_PAGE - 1));

	if (tally_tracee_peek(t, pc, buf, INSN_MAX) == 0)
		return INSN_MAX;
	if (in_page < INSN_MAX && tally_tracee_peek(t, pc, buf, in_page) == 0)
		return in_page;
	return 0;
}

int code_insn(struct tally_tracee *t, uint64_t pc, struct insn *out)
{
	const struct code_page *page;
	uint8_t buf[INSN_MAX];
	size_t at = pc & (CODE_PAGE - 1);
	int r = code_facts(t);

	if (r < 0)
		return r;
	page = at <= CODE_PAGE - INSN_MAX ? find_page(t, pc) : NULL;
	if (page)
		arch_insn(out, page->bytes + at, INSN_MAX, t->bits);
	else
		arch_insn(out, buf, read_bytes(t, pc, buf), t->bits);
	return 0;
}
