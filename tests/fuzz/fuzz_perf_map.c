/* SPDX-License-Identifier: MIT */
/*
 * The reader of perf maps. Read in two parts it ends with what it is when read at once, but for times;
 * look-ups answer with functions that cover the address.
 */
#include <stdint.h>
#include <string.h>

#include "fuzz.h"
#include "image/jit-file.h"
#include "memfile.h"

static void check_file(const struct jit_file *f)
{
	must(f->codes.count == f->layers.added.count);
	for (size_t i = 0; i < f->codes.count; i++) {
		const struct layer *layer = &f->layers.added.at[i];
		uint64_t places[] = { layer->start, layer->end - 1, layer->end };
		for (size_t k = 0; k < sizeof(places) / sizeof(places[0]); k++) {
			const struct jit_code *code = jit_file_find(f, places[k], UINT64_MAX);
			must(code || k == 2);
			if (!code)
				continue;
			const struct layer *found = &f->layers.added.at[code - f->codes.at];
			must(found->start <= places[k] && places[k] < found->end);
			must(k == 2 || found >= layer);
			must(strlen(jit_file_text(f, code->name)) < f->names.len);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct jit_file whole = { 0 }, parts = { 0 };

	memfile.at = data;
	memfile.len = size / 2;
	must(jit_file_read(&parts, MEMFILE_FD, 0) >= 0);
	memfile.len = size;
	must(jit_file_read(&parts, MEMFILE_FD, 1) >= 0);
	must(jit_file_read(&whole, MEMFILE_FD, 0) >= 0);
	check_file(&parts);
	check_file(&whole);
	/* What the first half ended in the middle of may have been read twice. */
	must(parts.codes.count - whole.codes.count <= 1);
	jit_file_done(&parts);
	jit_file_done(&whole);
	return 0;
}
