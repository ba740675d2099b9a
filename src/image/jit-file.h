/* SPDX-License-Identifier: MIT */
/*
 * What a process tells of the code that it makes at run time, in a file that grows as it does:
 * /tmp/perf-PID.map, a text (tools/perf/Documentation/jit-interface.txt), or jit-PID.dump, which has
 * times and the code itself (jitdump-specification.txt there).
 */
#ifndef IMAGE_JIT_FILE_H
#define IMAGE_JIT_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/hash.h"
#include "image/layers.h"

/* A function; its number is that of its layer. */
struct jit_code {
	uint64_t start; /* where it lies; its lines count from there */
	uint32_t name;  /* offset in jit_file.names; JIT_NO_NAME: code was moved away from here */
	uint32_t lines, line_count; /* in jit_file.lines; 0: none are told */
	uint32_t unwind;            /* number in jit_file.unwinds + 1; 0: none is told */
};

#define JIT_NO_NAME UINT32_MAX

struct jit_line {
	uint64_t offset; /* from the function's start; ascending */
	uint32_t line;
	uint32_t file; /* offset in jit_file.names */
};

/* .eh_frame_hdr and .eh_frame of one function, in jit_file.unwind_bytes. */
struct jit_unwind {
	size_t at;
	uint32_t header_size, size; /* .eh_frame_hdr comes last */
	uint64_t start, code_size;  /* of the function, where it was loaded */
	struct unwind_table *table; /* made by unwind-made.c when first needed */
};

struct jit_file {
	struct layers layers;
	VEC(struct jit_code) codes;
	VEC(struct jit_line) lines;
	VEC(struct jit_unwind) unwinds;
	struct map64 latest; /* start -> number + 1 of the last one there */
	struct buf names, unwind_bytes;
	uint64_t limit;   /* what lies behind so many bytes is not read; 0: all is */
	uint64_t offset;  /* read so far, in bytes */
	bool dump;        /* a jitdump */
	bool other_clock; /* its times are the CPU's, which no recording has */
	bool swapped;     /* written in the other byte order */
	uint32_t machine; /* EM_*, of a jitdump */
	/* Told of a function before it is loaded: */
	uint32_t next_lines, next_line_count, next_unwind;
	uint64_t next_start;
	uint64_t least_offset; /* of a line from its function, plus 1; 0: no line is told */
};

/*
 * Reads what was added to the open file since the last call, into a zeroed `*f` first (`dump` set
 * for a jitdump). `now` is the time of what a perf map tells anew. Returns how many functions came.
 * Errors: -ENOEXEC: it is no such file; -ENOMEM.
 */
int64_t jit_file_read(struct jit_file *f, int fd, uint64_t now);

/* The function that lay there at that time; NULL: none. */
const struct jit_code *jit_file_find(const struct jit_file *f, uint64_t address, uint64_t time);
static inline const char *jit_file_text(const struct jit_file *f, uint32_t offset)
{
	return f->names.at + offset;
}

/* The line of a function that has the byte at `offset` in it; NULL: none is told. */
const struct jit_line *jit_file_line(const struct jit_file *f, const struct jit_code *code,
				     uint64_t offset);

void jit_file_done(struct jit_file *f);

/* For the readers of the two forms. A piece of the file that does not end in it is read again. */

/* Adds a function. false: no memory. More than LAYERS_MAX are left out. */
bool jit_file_add(struct jit_file *f, uint64_t start, uint64_t size, uint64_t since,
		  const struct jit_code *code);
/* A text's offset in `names`; JIT_NO_NAME: no memory. */
uint32_t jit_file_add_text(struct jit_file *f, const char *text, size_t len);

/* A part of the file in memory. */
struct jit_window {
	char *bytes; /* malloc'ed */
	size_t room, len;
	uint64_t at; /* where in the file it begins, not behind jit_file.offset */
	bool last;   /* the file ends in it */
};

struct jit_piece {
	const char *at;
	size_t len;
};

#define JIT_WINDOW 65536

/*
 * What lies at jit_file.offset: `wanted` bytes or more, fewer where the file ends. false: no memory.
 */
bool jit_file_window(const struct jit_file *f, int fd, struct jit_window *w, size_t wanted,
		     struct jit_piece *out);

int perf_map_read(struct jit_file *f, int fd, uint64_t now);
int jitdump_read(struct jit_file *f, int fd);

#endif
