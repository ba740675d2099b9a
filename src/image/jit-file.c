/* SPDX-License-Identifier: MIT */
/* Functions that were made at run time, as their files tell of them. */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "image/jit-file.h"
#include "image/unwind-table.h"

#define ELF_HEADER sizeof(Elf64_Ehdr)

bool jit_file_add(struct jit_file *f, uint64_t start, uint64_t size, uint64_t since,
		  const struct jit_code *code)
{
	if (!size || start > UINT64_MAX - size || f->codes.count >= LAYERS_MAX)
		return true;
	if (!vec_reserve(&f->codes, 1) || !layers_add(&f->layers, start, start + size, since))
		return false;
	uint32_t *latest = map64_at(&f->latest, start);
	if (!latest)
		return false;
	*latest = (uint32_t)f->codes.count + 1;
	f->codes.at[f->codes.count] = *code;
	f->codes.at[f->codes.count++].start = start;
	return true;
}

static void fill_window(const struct jit_file *f, struct jit_window *w, int fd)
{
	w->len = 0;
	while (w->len < w->room) {
		ssize_t n = sys()->pread(fd, w->bytes + w->len, w->room - w->len,
					 (off_t)(w->at + w->len));
		if (n <= 0)
			break;
		w->len += (size_t)n;
	}
	w->last = w->len < w->room;
	if (f->limit && w->at + w->len >= f->limit) {
		w->len = w->at < f->limit ? (size_t)(f->limit - w->at) : 0;
		w->last = true;
	}
}

bool jit_file_window(const struct jit_file *f, int fd, struct jit_window *w, size_t wanted,
		     struct jit_piece *out)
{
	uint64_t used = f->offset - w->at;

	if (used > w->len || (w->len - used < wanted && !w->last)) {
		if (wanted > w->room) {
			char *grown = realloc(w->bytes, wanted + JIT_WINDOW);
			if (!grown)
				return false;
			w->bytes = grown;
			w->room = wanted + JIT_WINDOW;
		}
		w->at = f->offset;
		used = 0;
		fill_window(f, w, fd);
	}
	*out = (struct jit_piece){ w->bytes + used, w->len - used };
	return true;
}

uint32_t jit_file_add_text(struct jit_file *f, const char *text, size_t len)
{
	size_t at = f->names.len;

	if (at >= JIT_NO_NAME - len)
		return JIT_NO_NAME;
	buf_add(&f->names, text, len);
	buf_zero(&f->names, 1);
	return f->names.failed ? JIT_NO_NAME : (uint32_t)at;
}

int64_t jit_file_read(struct jit_file *f, int fd, uint64_t now)
{
	size_t before = f->codes.count;
	int r = f->dump ? jitdump_read(f, fd) : perf_map_read(f, fd, now);

	if (r == 0 && f->codes.count != before && !layers_seal(&f->layers))
		r = -ENOMEM;
	return r < 0 ? r : (int64_t)(f->codes.count - before);
}

const struct jit_code *jit_file_find(const struct jit_file *f, uint64_t address, uint64_t time)
{
	uint32_t index = layers_find(&f->layers, address, time);

	if (index == LAYER_NONE || f->codes.at[index].name == JIT_NO_NAME)
		return NULL;
	return &f->codes.at[index];
}

const struct jit_line *jit_file_line(const struct jit_file *f, const struct jit_code *code,
				     uint64_t offset)
{
	const struct jit_line *found = NULL;

	/* V8 adds what the ELF header takes in the files that perf inject makes of jitdumps
	 * (perf-jit.cc); then no line of any function lies before that. */
	if (f->least_offset == ELF_HEADER + 1)
		offset += ELF_HEADER;
	for (uint32_t low = 0, high = code->line_count; low < high;) {
		uint32_t middle = low + (high - low) / 2;
		const struct jit_line *line = &f->lines.at[code->lines + middle];
		if (line->offset <= offset) {
			found = line;
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return found;
}

void jit_file_done(struct jit_file *f)
{
	layers_done(&f->layers);
	map64_done(&f->latest);
	vec_done(&f->codes);
	vec_done(&f->lines);
	vec_each (&f->unwinds, u) {
		if (u->table)
			unwind_table_done(u->table);
		free(u->table);
	}
	vec_done(&f->unwinds);
	buf_done(&f->names);
	buf_done(&f->unwind_bytes);
	*f = (struct jit_file){ 0 };
}
