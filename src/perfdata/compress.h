/* SPDX-License-Identifier: MIT */
/*
 * Records in, COMPRESSED records out: slices of one zstd stream, as perf record -z writes them.
 *
 * Readers keep one decompression context for all slices, but give each slice to it by one call, so
 * there must be one frame alone. Slices are filled up to whole words by empty blocks, which zstd
 * allows anywhere between two blocks: a decoder skips them, and every record of the file has a size
 * that is a multiple of 8.
 */
#ifndef PERFDATA_COMPRESS_H
#define PERFDATA_COMPRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A slice gives back at most this many bytes: what readers reserve, by the feature COMPRESSED. */
#define COMPRESS_OUTPUT_MAX (1u << 20)
#define COMPRESS_LEVEL_MAX  22

struct compressor;

/* Where the COMPRESSED records go. A negative answer ends the work and is passed on. */
typedef int compress_put(void *arg, const void *record, size_t len);

/* Errors: -EINVAL, a level that there is not; -ENOMEM. */
int compressor_open(struct compressor **out, uint32_t level, compress_put *put, void *arg);

/* Takes bytes of records, which need not be whole ones. Allocates nothing. */
int compressor_add(struct compressor *c, const void *bytes, size_t len);

/* Puts all that was taken. */
int compressor_flush(struct compressor *c);

/* Whether something was taken that is not put yet. */
bool compressor_pending(const struct compressor *c);

/* Bytes taken, and those of the records put. */
uint64_t compressor_taken(const struct compressor *c);
uint64_t compressor_put(const struct compressor *c);

/* NULL is fine. */
void compressor_close(struct compressor *c);

#endif
