/* SPDX-License-Identifier: MIT */
/*
 * The reader of jitdumps. Whatever it reads, names, lines and unwinding information of each
 * function are there, look-ups at any time answer with one that covers the address, and rules for
 * unwinding name registers that there are.
 */
#include <errno.h>
#include <string.h>

#include "fuzz.h"
#include "image/jit-file.h"
#include "image/unwind-made.h"
#include "memfile.h"

static void check_rules(struct jit_file *f, const struct jit_code *code, const struct layer *layer)
{
	const uint64_t addresses[] = { layer->start, layer->start + (layer->end - layer->start) / 2,
				       layer->end - 1 };

	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		const struct unwind_rules *rules = NULL;
		must(unwind_made_rules_of(f, code, addresses[i], &rules) == 0);
		if (!rules)
			continue;
		must(rules->cfa.other < UNWIND_REGS && rules->ra < UNWIND_REGS);
		for (unsigned k = 0; k < rules->count; k++)
			must(rules->saved[k].reg < UNWIND_REGS &&
			     rules->saved[k].other < UNWIND_REGS);
	}
}

static void check_code(const struct jit_file *f, const struct jit_code *code)
{
	if (code->name != JIT_NO_NAME)
		must(strlen(jit_file_text(f, code->name)) < f->names.len);
	must(code->lines + (size_t)code->line_count <= f->lines.count);
	for (uint32_t i = 0; i < code->line_count; i++) {
		const struct jit_line *line = &f->lines.at[code->lines + i];
		must(strlen(jit_file_text(f, line->file)) < f->names.len);
		must(!i || line[-1].offset <= line->offset);
		const struct jit_line *found = jit_file_line(f, code, line->offset);
		must(found && found->offset == line->offset);
	}
	must(code->unwind <= f->unwinds.count);
	if (code->unwind) {
		const struct jit_unwind *u = &f->unwinds.at[code->unwind - 1];
		must(u->header_size <= u->size && u->at + u->size <= f->unwind_bytes.len);
	}
}

static void check_file(struct jit_file *f)
{
	must(f->codes.count == f->layers.added.count);
	for (size_t i = 0; i < f->codes.count; i++) {
		const struct layer *layer = &f->layers.added.at[i];
		const uint64_t times[] = { 0, layer->since, layer->since - 1, UINT64_MAX };
		check_code(f, &f->codes.at[i]);
		check_rules(f, &f->codes.at[i], layer);
		for (size_t k = 0; k < sizeof(times) / sizeof(times[0]); k++) {
			uint32_t found = layers_find(&f->layers, layer->start, times[k]);
			must(found != LAYER_NONE);
			const struct layer *there = &f->layers.added.at[found];
			must(there->start <= layer->start && layer->start < there->end);
			must(k != 1 || found >= i);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct jit_file f = { .dump = true };

	memfile.at = data;
	memfile.len = size;
	int64_t r = jit_file_read(&f, MEMFILE_FD, 0);
	must(r >= 0 || r == -ENOEXEC);
	check_file(&f);
	uint64_t offset = f.offset;
	must(r < 0 || jit_file_read(&f, MEMFILE_FD, 0) == 0);
	must(f.offset == offset || r < 0);
	jit_file_done(&f);
	return 0;
}
