/* SPDX-License-Identifier: MIT */
/*
 * Kernel symbols. The kernel formats its whole list for each reader, 5 MB in 40 to 80 ms: it is
 * read once, when a kernel address has been met. A line is "address type name[\t[module]]";
 * proc_kallsyms of kernel/kallsyms.c.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/proc.h"
#include "image/bulk.h"
#include "image/kernel-kept.h"
#include "image/kernel.h"

#define KALLSYMS     "/proc/kallsyms"
#define MAX_KALLSYMS ((size_t)256 << 20)
#define MAX_NOTES    65536
#define PAGE         4096u

/* Modules lie within 2 GiB of the kernel, before or behind it, so that calls reach. */
#define BEHIND ((uint64_t)1 << 31)

/* The text of a small kernel; larger ones make it grow. */
#define TYPICAL_KALLSYMS ((size_t)6 << 20)

struct parser {
	struct kernel *k;
	char *write; /* names are moved to the front of the text as it is read */
	const char *reference;
	uint64_t reference_now;
	bool hidden; /* functions at address 0 */
};

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

/* Text and weak functions: local, global. */
static bool is_function(char type, uint8_t *binding)
{
	if (type != 't' && type != 'T' && type != 'w' && type != 'W')
		return false;
	*binding = type == 't' ? SYMBOL_LOCAL : type == 'T' ? SYMBOL_GLOBAL : SYMBOL_WEAK;
	return true;
}

/* 0 without a module; UINT32_MAX: no memory. More modules than the field holds share its last. */
static uint32_t module_group(struct kernel *k, const char *module, size_t len)
{
	if (!len)
		return 0;
	uint32_t index = texts_add(&k->modules, module, len);
	if (index == UINT32_MAX)
		return index;
	return index >= UINT16_MAX ? UINT16_MAX : index + 1;
}

static int parse_line(struct parser *p, const char *line, size_t len)
{
	const char *end = line + len;
	uint64_t address = 0;
	struct symbol s = { 0 };
	int digit;

	while (line < end && (digit = hex_digit(*line)) >= 0) {
		address = address << 4 | (unsigned)digit;
		line++;
	}
	if (end - line < 4 || line[0] != ' ' || line[2] != ' ' || !is_function(line[1], &s.binding))
		return 0;
	if (!address) {
		p->hidden = true;
		return 0;
	}
	line += 3;
	const char *tab = memchr(line, '\t', (size_t)(end - line));
	size_t name_len = (size_t)((tab ? tab : end) - line);
	if (!name_len)
		return 0;
	uint32_t group = tab ? module_group(p->k, tab + 1, (size_t)(end - tab - 1)) : 0;
	if (group == UINT32_MAX)
		return -ENOMEM;
	if (!group && p->reference && strlen(p->reference) == name_len &&
	    !memcmp(line, p->reference, name_len))
		p->reference_now = address;
	s.group = (uint16_t)group;
	s.name = (uint32_t)(p->write - p->k->names);
	/* The address and the type that stood before it leave room for the NUL. */
	memmove(p->write, line, name_len);
	p->write[name_len] = '\0';
	p->write += name_len + 1;
	if (!p->k->symtab.base)
		p->k->symtab.base = address > BEHIND ? address - BEHIND : 1;
	return symtab_add(&p->k->symtab, address, 0, s) ? 0 : -ENOMEM;
}

static int parse(struct parser *p, char *text, size_t len)
{
	char *end = text + len;

	p->k->names = p->write = text;
	while (text < end) {
		char *newline = memchr(text, '\n', (size_t)(end - text));
		char *stop = newline ? newline : end;
		int r = parse_line(p, text, (size_t)(stop - text));
		if (r < 0)
			return r;
		text = stop + 1;
	}
	/* What is left behind the names goes back. */
	char *smaller = realloc(p->k->names, (size_t)(p->write - p->k->names) + 1);
	if (smaller)
		p->k->names = smaller;
	return 0;
}

/*
 * No sizes are given. A function reaches to the next one; the last of the kernel or of a module to
 * the end of the page behind it, as in perf, since what follows lies elsewhere.
 */
static void close_ends(struct symtab *t)
{
	for (size_t i = 0; i < t->symbols.count; i++) {
		struct symbol *s = &t->symbols.at[i];
		bool last = i + 1 == t->symbols.count;
		uint32_t room = (last ? UINT32_MAX : s[1].start) - s->start;
		uint32_t to_page = 2 * PAGE - (uint32_t)(t->base + s->start) % PAGE;
		bool same = !last && (s[1].group == s->group || s[1].start == s->start);
		s->size = same || to_page > room ? room : to_page;
	}
}

/* Of what is left when each address has one name. */
static bool count_functions(struct kernel *k)
{
	size_t groups = k->modules.count < UINT16_MAX ? k->modules.count + 1 : UINT16_MAX + 1;

	if (!vec_reserve(&k->counts, groups))
		return false;
	memset(k->counts.at, 0, groups * sizeof(*k->counts.at));
	k->counts.count = groups;
	vec_each (&k->symtab.symbols, s)
		k->counts.at[s->group]++;
	return true;
}

static const char *name_of(const void *owner, const struct symbol *symbol)
{
	const struct kernel *k = owner;

	return k->names + symbol->name;
}

static void explain_hidden(struct kernel *k, const char *root)
{
	int64_t restricted;

	if (proc_read_i64(&restricted, root, "/proc/sys/kernel/kptr_restrict") < 0)
		restricted = -1;
	if (restricted > 0)
		snprintf(k->trouble, sizeof(k->trouble),
			 "kernel addresses are hidden from this user (kernel.kptr_restrict is "
			 "%" PRId64 "): run as root, or sysctl kernel.kptr_restrict=0",
			 restricted);
	else
		snprintf(k->trouble, sizeof(k->trouble),
			 "kernel addresses are hidden from this user: run as root, or sysctl "
			 "kernel.perf_event_paranoid=1");
}

static void explain_other_build(struct kernel *k, const struct build_id *recorded)
{
	char a[BUILD_ID_TEXT], b[BUILD_ID_TEXT];

	snprintf(k->trouble, sizeof(k->trouble),
		 "recorded on another kernel (build-id %s) than the one that runs here (%s): "
		 "report on the machine of the recording, or install the recorded kernel's vmlinux "
		 "(its -dbg package)",
		 build_id_text(a, recorded), build_id_text(b, &k->build_id));
}

struct build_id kernel_build_id(const char *root)
{
	struct build_id id = { 0 };
	struct buf notes = { 0 };

	if (proc_read(&notes, root, "/sys/kernel/notes", MAX_NOTES) == 0 && notes.len)
		id = build_id_from_notes(notes.at, notes.len, false);
	buf_done(&notes);
	return id;
}

/* Sets `delta`, or says why the symbols cannot be moved. */
static void place_kernel(struct kernel *k, const struct kernel_recorded *recorded,
			 uint64_t reference_now)
{
	if (!recorded->address)
		return;
	if (!reference_now) {
		snprintf(k->trouble, sizeof(k->trouble),
			 KALLSYMS " has no %s, by which the recording places its kernel",
			 recorded->symbol);
		return;
	}
	k->delta = recorded->address - reference_now;
	if (k->delta && (!recorded->build_id.len || !k->build_id.len))
		snprintf(k->trouble, sizeof(k->trouble),
			 "the recording has %s at %#" PRIx64 ", this kernel at %#" PRIx64
			 ", and no build-id tells whether it is the same one, restarted",
			 recorded->symbol, recorded->address, reference_now);
}

int kernel_parse(struct kernel *k, char *text, size_t len, const char *root,
		 const struct kernel_recorded *recorded)
{
	struct parser p = { .k = k, .reference = recorded->symbol };
	int r = parse(&p, text, len);

	if (r < 0)
		return r;
	if (!k->symtab.symbols.count && p.hidden)
		explain_hidden(k, root);
	else if (!k->symtab.symbols.count)
		snprintf(k->trouble, sizeof(k->trouble),
			 KALLSYMS " is empty: this kernel is built without CONFIG_KALLSYMS");
	else
		place_kernel(k, recorded, p.reference_now);
	if (k->trouble[0]) {
		symtab_done(&k->symtab);
		return 0;
	}
	if (!symtab_sort(&k->symtab))
		return -ENOMEM;
	close_ends(&k->symtab);
	return symtab_seal(&k->symtab, name_of, k) && count_functions(k) ? 0 : -ENOMEM;
}

/* Without build-ids to compare, the release is what tells kernels apart. */
static bool is_other_release(struct kernel *k, const char *root,
			     const struct kernel_recorded *recorded)
{
	char running[sizeof(recorded->release)];

	if (recorded->build_id.len || !recorded->release[0] ||
	    proc_read_line(running, sizeof(running), root, "/proc/sys/kernel/osrelease") < 0 ||
	    !strcmp(running, recorded->release))
		return false;
	snprintf(k->trouble, sizeof(k->trouble),
		 "recorded on kernel %s, without its build-id; %s runs here: report there",
		 recorded->release, running);
	return true;
}

static int load_running(struct kernel *k, const char *root, const struct kernel_recorded *recorded)
{
	k->build_id = kernel_build_id(root);
	if (build_ids_differ(&k->build_id, &recorded->build_id)) {
		explain_other_build(k, &recorded->build_id);
		return 0;
	}
	if (is_other_release(k, root, recorded))
		return 0;
	struct buf text = { .at = bulk_alloc(TYPICAL_KALLSYMS) };
	if (!text.at)
		return -ENOMEM;
	text.room = TYPICAL_KALLSYMS;
	int r = proc_read(&text, root, KALLSYMS, MAX_KALLSYMS);
	if (r == 0)
		return kernel_parse(k, text.at, text.len, root, recorded);
	buf_done(&text);
	if (r == -ENOMEM)
		return r;
	snprintf(k->trouble, sizeof(k->trouble), KALLSYMS " cannot be read: %s",
		 strerrordesc_np(-r));
	return 0;
}

int kernel_load(struct kernel *k, const struct file_search *where,
		const struct kernel_recorded *recorded)
{
	struct kernel kept = { .kept = true };
	int r = load_running(k, where->root, recorded);

	if (r < 0 || !k->trouble[0])
		return r;
	/* Hidden from this user, or not the recorded one. */
	r = kernel_load_kept(&kept, where, recorded,
			     recorded->build_id.len ? recorded->build_id : k->build_id);
	if (r <= 0) {
		kernel_done(&kept);
		return r;
	}
	kernel_done(k);
	*k = kept;
	return 0;
}

int kernel_take(struct kernel *k, struct elf_file *f)
{
	k->symtab = f->symtab;
	k->names = f->names.at;
	f->symtab = (struct symtab){ 0 };
	f->names.at = NULL;
	f->names.count = f->names.room = 0;
	return k->symtab.symbols.count && k->names ? (count_functions(k) ? 1 : -ENOMEM) : 0;
}

uint32_t kernel_find(const struct kernel *k, uint64_t address)
{
	uint32_t index = symtab_find(&k->symtab, address - k->delta);

	/* A moved kernel has been restarted: its modules lie anywhere. */
	if (index != SYMTAB_NONE && k->delta && k->symtab.symbols.at[index].group)
		return SYMTAB_NONE;
	return index;
}

const char *kernel_function(const struct kernel *k, uint32_t index)
{
	return name_of(k, &k->symtab.symbols.at[index]);
}

const char *kernel_module(const struct kernel *k, uint32_t index)
{
	uint16_t group = k->symtab.symbols.at[index].group;

	return group ? texts_get(&k->modules, (uint32_t)group - 1) : KERNEL_NAME;
}

uint32_t kernel_count(const struct kernel *k, const char *module)
{
	for (size_t i = 0; i < k->counts.count; i++)
		if (!strcmp(module, i ? texts_get(&k->modules, (uint32_t)i - 1) : KERNEL_NAME))
			return k->counts.at[i];
	return 0;
}

void kernel_done(struct kernel *k)
{
	symtab_done(&k->symtab);
	texts_done(&k->modules);
	vec_done(&k->counts);
	free(k->names);
	*k = (struct kernel){ 0 };
}
