/* SPDX-License-Identifier: MIT */
/* The build-id: what a linker writes into a file to tell its builds apart. */
#ifndef IMAGE_BUILD_ID_H
#define IMAGE_BUILD_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The kernel's BUILD_ID_SIZE_MAX: a SHA-1. Longer ones are cut, as the kernel never reports them.
 */
#define BUILD_ID_MAX 20

struct build_id {
	uint32_t len; /* 0: unknown */
	uint8_t bytes[BUILD_ID_MAX];
};

struct build_id build_id_from(const uint8_t *bytes, size_t len);

/* Searches ELF notes, in the other byte order if `swapped`, for NT_GNU_BUILD_ID. */
struct build_id build_id_from_notes(const void *notes, size_t len, bool swapped);

/* Both are known and differ. MMAP2 pads a short one with zeroes (perf before 5.11). */
bool build_ids_differ(const struct build_id *a, const struct build_id *b);

/* Both are known and the same. */
bool build_ids_match(const struct build_id *a, const struct build_id *b);

/* In hex digits; returns `out`. */
#define BUILD_ID_TEXT (2 * BUILD_ID_MAX + 1)
const char *build_id_text(char out[BUILD_ID_TEXT], const struct build_id *id);

#endif
