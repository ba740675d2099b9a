/* SPDX-License-Identifier: MIT */
/*
 * jit-PID.dump, version 1: a header, then records, each with a head of 16 bytes. What tells of a
 * function's lines and of how to unwind it comes before the record that loads it. The code itself,
 * which is most of the file, is passed over.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "image/jit-file.h"

#define MAGIC          0x4A695444u /* "JiTD" */
#define MAX_VERSION    1
#define FLAG_CPU_CLOCK 1u /* JITDUMP_FLAGS_ARCH_TIMESTAMP */

#define HEAD_SIZE   40
#define RECORD_HEAD 16
#define LOAD_SIZE   (RECORD_HEAD + 40)
#define MOVE_SIZE   (RECORD_HEAD + 48)
#define DEBUG_SIZE  (RECORD_HEAD + 16)
#define UNWIND_SIZE (RECORD_HEAD + 24)
#define ENTRY_SIZE  16 /* of a line, without its file name */

/* A function has a name and lines and unwinding information of so many bytes at most. */
#define MAX_NAME   4096
#define MAX_LINES  ((size_t)16 << 20)
#define MAX_UNWIND ((size_t)1 << 20)

/* All unwinding information together; more is left out. */
#define MAX_ALL_UNWIND ((size_t)256 << 20)

enum record_id {
	RECORD_LOAD = 0,
	RECORD_MOVE = 1,
	RECORD_DEBUG_INFO = 2,
	RECORD_UNWINDING_INFO = 4,
};

/* What is looked at of a record. */
struct piece {
	const char *at;
	size_t len;
	uint64_t time;
	bool swapped;
};

static uint64_t u64_at(const struct piece *p, size_t offset)
{
	return load_u64(p->at + offset, p->swapped);
}

/* A function's lines and unwinding information wait for it; those for another one are dropped. */
static void take_waiting(struct jit_file *f, uint64_t start, uint64_t size, struct jit_code *code)
{
	if (f->next_line_count && f->next_start == start) {
		code->lines = f->next_lines;
		code->line_count = f->next_line_count;
	}
	code->unwind = f->next_unwind;
	if (code->unwind) {
		f->unwinds.at[code->unwind - 1].start = start;
		f->unwinds.at[code->unwind - 1].code_size = size;
	}
	f->next_line_count = f->next_unwind = 0;
}

static int take_load(struct jit_file *f, const struct piece *p)
{
	if (p->len <= LOAD_SIZE)
		return 0;
	uint64_t start = u64_at(p, RECORD_HEAD + 16), size = u64_at(p, RECORD_HEAD + 24);
	const char *name = p->at + LOAD_SIZE;
	size_t room = p->len - LOAD_SIZE;
	struct jit_code code = {
		.name = jit_file_add_text(f, name,
					  strnlen(name, room < MAX_NAME ? room : MAX_NAME)),
	};

	take_waiting(f, start, size, &code);
	if (code.name == JIT_NO_NAME)
		return f->names.failed ? -ENOMEM : 0;
	return jit_file_add(f, start, size, p->time, &code) ? 0 : -ENOMEM;
}

/* The old place has nothing from then on; the new one has what the old one had. */
static int take_move(struct jit_file *f, const struct piece *p)
{
	if (p->len < MOVE_SIZE)
		return 0;
	uint64_t from = u64_at(p, RECORD_HEAD + 16), to = u64_at(p, RECORD_HEAD + 24);
	uint64_t size = u64_at(p, RECORD_HEAD + 32);
	const struct jit_code gone = { .name = JIT_NO_NAME };
	uint32_t latest = map64_get(&f->latest, from);

	if (!latest)
		return 0;
	struct jit_code moved = f->codes.at[latest - 1];
	return jit_file_add(f, from, size, p->time, &gone) &&
			       jit_file_add(f, to, size, p->time, &moved)
		       ? 0
		       : -ENOMEM;
}

static int compare_lines(const void *a, const void *b)
{
	const struct jit_line *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Entries of address, line, discriminator, file name; a name of "\xff" is that of the one before. */
static int take_lines(struct jit_file *f, const struct piece *p)
{
	if (p->len < DEBUG_SIZE)
		return 0;
	uint64_t start = u64_at(p, RECORD_HEAD), count = u64_at(p, RECORD_HEAD + 8);
	size_t at = DEBUG_SIZE, first = f->lines.count;
	uint32_t file = JIT_NO_NAME;

	for (uint64_t i = 0; i < count && p->len - at > ENTRY_SIZE; i++) {
		const char *name = p->at + at + ENTRY_SIZE;
		size_t room = p->len - at - ENTRY_SIZE, len = strnlen(name, room);
		if (len == room)
			break;
		if (file == JIT_NO_NAME || strcmp(name, "\xff") != 0)
			file = jit_file_add_text(f, name, len < MAX_NAME ? len : MAX_NAME);
		struct jit_line *line = file == JIT_NO_NAME ? NULL : vec_push(&f->lines);
		if (!line)
			return -ENOMEM;
		*line = (struct jit_line){
			.offset = u64_at(p, at) - start,
			.line = load_u32(p->at + at + 8, p->swapped),
			.file = file,
		};
		at += ENTRY_SIZE + len + 1;
	}
	if (first > UINT32_MAX || f->lines.count == first)
		return 0;
	qsort(f->lines.at + first, f->lines.count - first, sizeof(*f->lines.at), compare_lines);
	uint64_t least = f->lines.at[first].offset + 1;
	if (!f->least_offset || least < f->least_offset)
		f->least_offset = least;
	f->next_start = start;
	f->next_lines = (uint32_t)first;
	f->next_line_count = (uint32_t)(f->lines.count - first);
	return 0;
}

static int take_unwind(struct jit_file *f, const struct piece *p)
{
	if (p->len < UNWIND_SIZE)
		return 0;
	uint64_t size = u64_at(p, RECORD_HEAD), header = u64_at(p, RECORD_HEAD + 8);

	f->next_unwind = 0;
	if (!size || size > MAX_UNWIND || header > size || size > p->len - UNWIND_SIZE ||
	    f->unwind_bytes.len > MAX_ALL_UNWIND)
		return 0;
	struct jit_unwind *unwind = vec_push(&f->unwinds);
	if (!unwind)
		return -ENOMEM;
	*unwind = (struct jit_unwind){
		.at = f->unwind_bytes.len,
		.header_size = (uint32_t)header,
		.size = (uint32_t)size,
	};
	buf_add(&f->unwind_bytes, p->at + UNWIND_SIZE, size);
	f->next_unwind = (uint32_t)f->unwinds.count;
	return f->unwind_bytes.failed ? -ENOMEM : 0;
}

/* What is told of which record, and how much of it is looked at. */
static const struct {
	int (*take)(struct jit_file *f, const struct piece *p);
	size_t most;
} kinds[] = {
	[RECORD_LOAD] = { take_load, LOAD_SIZE + MAX_NAME },
	[RECORD_MOVE] = { take_move, MOVE_SIZE },
	[RECORD_DEBUG_INFO] = { take_lines, MAX_LINES },
	[RECORD_UNWINDING_INFO] = { take_unwind, UNWIND_SIZE + MAX_UNWIND },
};

static int read_head(struct jit_file *f, int fd, struct jit_window *w)
{
	struct jit_piece head;

	if (!jit_file_window(f, fd, w, HEAD_SIZE, &head))
		return -ENOMEM;
	if (head.len < HEAD_SIZE)
		return -ENOEXEC;
	f->swapped = load_u32(head.at, false) != MAGIC;
	uint32_t size = load_u32(head.at + 8, f->swapped);
	if (load_u32(head.at, f->swapped) != MAGIC ||
	    load_u32(head.at + 4, f->swapped) > MAX_VERSION || size < HEAD_SIZE)
		return -ENOEXEC;
	f->other_clock = load_u64(head.at + 32, f->swapped) & FLAG_CPU_CLOCK;
	f->machine = load_u32(head.at + 12, f->swapped);
	f->offset = size;
	return 0;
}

/* One record; 0: the file ends before it does. */
static int read_record(struct jit_file *f, int fd, struct jit_window *w)
{
	struct jit_piece have;

	if (!jit_file_window(f, fd, w, RECORD_HEAD, &have))
		return -ENOMEM;
	if (have.len < RECORD_HEAD)
		return 0;
	uint32_t id = load_u32(have.at, f->swapped), size = load_u32(have.at + 4, f->swapped);
	if (size < RECORD_HEAD)
		return 0;
	if (id < ARRAY_SIZE(kinds) && kinds[id].take) {
		size_t len = size < kinds[id].most ? size : kinds[id].most;
		if (!jit_file_window(f, fd, w, len, &have))
			return -ENOMEM;
		if (have.len < len)
			return 0;
		struct piece p = { have.at, len, 0, f->swapped };
		p.time = f->other_clock ? 0 : u64_at(&p, 8);
		int r = kinds[id].take(f, &p);
		if (r < 0)
			return r;
	}
	f->offset += size;
	return 1;
}

int jitdump_read(struct jit_file *f, int fd)
{
	struct jit_window w = { .at = f->offset };
	int r = f->offset ? 0 : read_head(f, fd, &w);

	while (r >= 0 && (r = read_record(f, fd, &w)) > 0)
		;
	free(w.bytes);
	return r;
}
