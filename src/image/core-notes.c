/* SPDX-License-Identifier: MIT */
/*
 * The notes of a core file (the kernel's fs/binfmt_elf.c): NT_PRSTATUS for each thread, and of the
 * process NT_PRPSINFO, NT_AUXV and NT_FILE. Structures are those of 64-bit programs, which are the
 * same on x86-64 and arm64 but for the number of registers (uapi/linux/elfcore.h).
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "image/core.h"

#define OWNER "CORE"

#define NOTE_ALIGN 4
#define NOTE_HEAD  12

/* The kernel writes 16 MiB of file names at most (kernel.core_file_note_size_limit). */
#define MOST_NOTE ((uint64_t)64 << 20)

/* struct elf_prstatus */
#define STATUS_SIGNAL 12
#define STATUS_PID    32
#define STATUS_REGS   112

/* struct elf_prpsinfo */
#define INFO_PID  24
#define INFO_COMM 40
#define INFO_SIZE 56 /* as far as it is read */

/* NT_FILE: two words, three a mapping, and the names. */
#define FILE_HEAD  16
#define FILE_ENTRY 24

struct note {
	const char *bytes;
	uint64_t len;
	uint64_t at; /* in the file */
};

static int no_memory(struct tally_error *err)
{
	return error_nomem(err, "a core file");
}

static int take_status(struct tally_core *c, const struct note *n, struct tally_error *err)
{
	uint64_t words[PRSTATUS_MOST_WORDS];

	if (n->len < STATUS_REGS + c->words * sizeof(*words))
		return core_refuse(c, n->at, "a thread's registers are too short", err);
	int32_t tid = (int32_t)load_u32(n->bytes + STATUS_PID, false);
	if (tid <= 0)
		return core_refuse(c, n->at, "a thread's number is not above 0", err);
	struct core_thread *t = vec_push(&c->threads);
	if (!t)
		return no_memory(err);
	memcpy(words, n->bytes + STATUS_REGS, c->words * sizeof(*words));
	t->tid = tid;
	/* The kernel writes the one that ended the process for each of its threads. */
	if (!c->info.signal)
		c->info.signal = load_u16(n->bytes + STATUS_SIGNAL, false);
	t->mask = prstatus_order(words, c->words, t->regs);
	return 0;
}

static int take_info(struct tally_core *c, const struct note *n, struct tally_error *err)
{
	if (n->len < INFO_SIZE)
		return core_refuse(c, n->at, "what it tells of the process is too short", err);
	c->info.pid = (int32_t)load_u32(n->bytes + INFO_PID, false);
	if (c->info.pid <= 0)
		return core_refuse(c, n->at, "the process's number is not above 0", err);
	memcpy(c->comm, n->bytes + INFO_COMM, sizeof(c->comm) - 1);
	return 0;
}

static int take_vector(struct tally_core *c, const struct note *n, struct tally_error *err)
{
	(void)err;
	for (uint64_t at = 0; n->len - at >= sizeof(Elf64_auxv_t); at += sizeof(Elf64_auxv_t))
		if (load_u64(n->bytes + at, false) == AT_SYSINFO_EHDR)
			c->vdso = load_u64(n->bytes + at + 8, false);
	return 0;
}

static int take_file(struct tally_core *c, const struct note *n, uint64_t i, uint64_t page,
		     size_t *name, struct tally_error *err)
{
	const char *entry = n->bytes + FILE_HEAD + i * FILE_ENTRY;
	uint64_t start = load_u64(entry, false), end = load_u64(entry + 8, false), offset;
	size_t len = strnlen(n->bytes + *name, n->len - *name);

	if (start >= end || __builtin_mul_overflow(load_u64(entry + 16, false), page, &offset) ||
	    *name + len >= n->len)
		return core_refuse(c, n->at, "the list of mapped files makes no sense", err);
	struct core_file *f = vec_push(&c->files);
	if (!f)
		return no_memory(err);
	*f = (struct core_file){ start, end, offset, c->names.len };
	buf_add(&c->names, n->bytes + *name, len + 1);
	*name += len + 1;
	return c->names.failed ? no_memory(err) : 0;
}

static int take_files(struct tally_core *c, const struct note *n, struct tally_error *err)
{
	uint64_t count = n->len < FILE_HEAD ? UINT64_MAX : load_u64(n->bytes, false);

	if (count > (n->len - FILE_HEAD) / FILE_ENTRY)
		return core_refuse(c, n->at, "the list of mapped files is too short", err);
	size_t name = FILE_HEAD + count * FILE_ENTRY;
	int r = 0;
	for (uint64_t i = 0; i < count && r == 0; i++)
		r = take_file(c, n, i, load_u64(n->bytes + 8, false), &name, err);
	return r;
}

static const struct {
	uint32_t type;
	int (*take)(struct tally_core *c, const struct note *n, struct tally_error *err);
} kinds[] = {
	{ NT_PRSTATUS, take_status },
	{ NT_PRPSINFO, take_info },
	{ NT_AUXV, take_vector },
	{ NT_FILE, take_files },
};

static int take(struct tally_core *c, uint32_t type, uint64_t at, uint64_t len,
		struct tally_error *err)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(kinds) && r == 0; i++) {
		if (kinds[i].type != type)
			continue;
		if (len > MOST_NOTE)
			return core_refuse(c, at, "a note is larger than 64 MiB", err);
		char *bytes = malloc(len + 1);
		const struct note n = { bytes, len, at };
		if (!bytes)
			return no_memory(err);
		r = core_read(c, at, bytes, len) ? kinds[i].take(c, &n, err)
						 : core_refuse(c, at, "it cannot be read", err);
		free(bytes);
	}
	return r;
}

int core_notes(struct tally_core *c, uint64_t offset, uint64_t len, struct tally_error *err)
{
	const uint64_t end = offset + len;
	char head[NOTE_HEAD + sizeof(OWNER)];
	int r = 0;

	while (end - offset >= sizeof(head) && r == 0) {
		if (!core_read(c, offset, head, sizeof(head)))
			return core_refuse(c, offset, "it cannot be read", err);
		uint64_t owner = load_u32(head, false), desc = load_u32(head + 4, false);
		uint64_t at = offset + NOTE_HEAD + align_up(owner, NOTE_ALIGN);
		if (at > end || desc > end - at)
			return core_refuse(c, offset, "a note reaches beyond the others", err);
		if (owner == sizeof(OWNER) && !memcmp(head + NOTE_HEAD, OWNER, sizeof(OWNER)))
			r = take(c, load_u32(head + 8, false), at, desc, err);
		offset = at + align_up(desc, NOTE_ALIGN);
		offset = offset < end ? offset : end;
	}
	return r;
}
