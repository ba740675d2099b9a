/* SPDX-License-Identifier: MIT */
/*
 * The unwinding information of jitdumps: for each function .eh_frame and, behind it,
 * .eh_frame_hdr. Their addresses are those of the ELF file that perf inject makes of the function
 * (tools/perf/util/genelf.c): .eh_frame begins at the first multiple of 8 behind the code. Code
 * that was moved has taken it along. The header is not needed: a function has an entry or two.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "image/unwind-made.h"
#include "image/unwind-table.h"

#define FRAME_ALIGN 8

static int fill_table(struct unwind_table *t, const struct jit_file *f, const struct jit_unwind *u)
{
	const struct cfi_section no_header = { 0 };
	struct unwind_part *part = &t->parts[0];
	size_t len = u->size - u->header_size;

	if (!vec_reserve(&part->bytes, len))
		return -ENOMEM;
	/* The file's own bytes move when more is told. */
	memcpy(part->bytes.at, f->unwind_bytes.at + u->at, len);
	part->bytes.count = len;
	part->section = (struct cfi_section){
		.bytes = part->bytes.at,
		.len = len,
		.address = u->start + ((u->code_size + FRAME_ALIGN - 1) & -(uint64_t)FRAME_ALIGN),
	};
	return unwind_table_index(part, &no_header);
}

static int make_table(const struct jit_file *f, struct jit_unwind *u)
{
	struct unwind_table *t = calloc(1, sizeof(*t));
	int r = t ? fill_table(t, f, u) : -ENOMEM;

	if (r < 0 && t)
		unwind_table_done(t);
	if (r < 0)
		free(t);
	else
		u->table = t;
	return r;
}

int unwind_made_rules_of(struct jit_file *f, const struct jit_code *code, uint64_t address,
			 const struct unwind_rules **rules)
{
	struct jit_unwind *u = code->unwind ? &f->unwinds.at[code->unwind - 1] : NULL;
	int error = 0;

	/* A header alone says that the code keeps a frame pointer. */
	if (!u || u->size == u->header_size || f->swapped)
		return 0;
	if (!u->table && make_table(f, u) < 0)
		return -ENOMEM;
	*rules = unwind_table_find(u->table, address - code->start + u->start, &error);
	return error;
}

int unwind_made_rules(struct jit *jit, int32_t pid, int32_t owner, uint64_t time, uint64_t address,
		      uint16_t machine, const struct unwind_rules **rules)
{
	struct jit_place place;
	int r = jit_find(jit, pid, owner, time, address, &place);

	if (r <= 0)
		return r;
	if (place.source->file.machine == machine)
		r = unwind_made_rules_of(&place.source->file, place.code, address, rules);
	return r < 0 ? r : 1;
}
