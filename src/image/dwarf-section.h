/* SPDX-License-Identifier: MIT */
/*
 * A section of debugging information, read in chunks as they are needed: of hundreds of megabytes a
 * look-up touches a few. What was read stays where it is, so texts in it can be pointed to.
 */
#ifndef IMAGE_DWARF_SECTION_H
#define IMAGE_DWARF_SECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image/dwarf-cursor.h"
#include "image/elf-input.h"

/* Address space for the sections of a file, side by side: together they fill huge pages. */
struct dwarf_memory {
	uint8_t *at; /* what is left */
	size_t left;
	void *mapped;
	size_t size;
};

/* Zeroed is empty. */
struct dwarf_section {
	uint8_t *data;
	uint64_t size;
	/* NULL: all is there. Else a byte for each chunk, 1 when it was read. */
	uint8_t *have;
	int fd; /* the owner's */
	uint32_t chunk;
	uint64_t offset;
	size_t mapped; /* bytes of memory to give back; 0: malloc'ed, or another's */
	bool borrowed, swapped;
};

/*
 * The section with that name, compressed or not; empty when there is none. `in->fd` must stay open
 * until dwarf_section_finish() or dwarf_section_done(). `scattered`: what is needed of it are a few
 * bytes here and there, so where it is large little should stay. `memory` must outlive it; NULL: it
 * has its own. -ENOMEM.
 */
int dwarf_section_open(struct dwarf_section *s, const struct elf_input *in, const char *name,
		       bool scattered, struct dwarf_memory *memory);
/* How much of such memory it takes. */
uint64_t dwarf_section_room(const struct elf_input *in, const char *name, bool scattered);
/* Reserves so much. Where that fails, each section has its own. */
void dwarf_memory_reserve(struct dwarf_memory *m, uint64_t size);
void dwarf_memory_done(struct dwarf_memory *m);
/* Bytes in memory, which outlive it. */
void dwarf_section_borrow(struct dwarf_section *s, const uint8_t *data, size_t size, bool swapped);
/* Reads all that was not read, so that the file can be closed. */
void dwarf_section_finish(struct dwarf_section *s);
void dwarf_section_done(struct dwarf_section *s);

/* Bytes from..to of it (cut to its end), which are there then; one that has failed: they are not. */
struct dwarf_cursor dwarf_section_at(struct dwarf_section *s, uint64_t from, uint64_t to);
/* A buffer for what is looked at once: memory that is used again costs less than fresh memory. */
struct dwarf_scratch {
	uint8_t *at;
	size_t room;
};

/* As dwarf_section_at(), but the bytes last only until the scratch is used again. */
struct dwarf_cursor dwarf_section_once(struct dwarf_section *s, uint64_t from, uint64_t to,
				       struct dwarf_scratch *scratch);
/* One or the other: what is walked over once, and looked into afterwards. */
struct dwarf_cursor dwarf_section_pass(struct dwarf_section *s, uint64_t from, uint64_t to,
				       struct dwarf_scratch *scratch);
/* The text at an offset; NULL: none that ends. */
const char *dwarf_section_text(struct dwarf_section *s, uint64_t offset);

#endif
