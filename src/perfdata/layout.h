/* SPDX-License-Identifier: MIT */
/*
 * The on-disk structures of perf.data files. Nothing outside this folder knows them, and nothing
 * in it points them at bytes of a file: fields are loaded one by one, since files may be
 * unaligned, cut or of the other byte order. The source is perf's own documentation,
 * perf.data-file-format.txt, and what its readers were seen to insist on.
 */
#ifndef PERFDATA_LAYOUT_H
#define PERFDATA_LAYOUT_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/* "PERFILE2" as a number in the writer's byte order; version 1 is text in either. */
#define FILE_MAGIC    0x32454c4946524550ull
#define FILE_MAGIC_V1 "PERFFILE"

/* A place in the file: an array of bytes that something else tells how to read. */
struct file_section {
	uint64_t offset, size;
};

#define FILE_FEATURE_WORDS 4
#define FILE_FEATURES      (FILE_FEATURE_WORDS * 64)

struct file_header {
	uint64_t magic;
	uint64_t size;
	uint64_t attr_size; /* of an entry of the attrs section; 0 when its writer was killed */
	struct file_section attrs, data, event_types; /* event_types: unused since Linux 3.x */
	uint64_t features[FILE_FEATURE_WORDS];        /* one bit a section that follows the data */
};

#define FILE_HEADER_SIZE      104
#define FILE_HEADER_SIZE_OLD  72 /* ends before the features */
#define FILE_HEADER_SIZE_PIPE 16 /* magic and size alone; all else is records */

static_assert(sizeof(struct file_section) == 16, "a section is two numbers");
static_assert(sizeof(struct file_header) == FILE_HEADER_SIZE, "the header of file mode");
static_assert(offsetof(struct file_header, data) == 40, "header.data");
static_assert(offsetof(struct file_header, features) == FILE_HEADER_SIZE_OLD, "header.features");

/* An entry of the attrs section: attr.size bytes of attr, then the section of its ids. */
#define ATTR_SIZE_OFFSET 4

/* Texts in features: u32 length, which counts NUL and padding, then the bytes. */
#define TEXT_ALIGN 64

/* An entry of BUILD_ID: record header, i32 pid, id, u8 size, 3 bytes; then the name. */
#define BUILD_ID_MAX          20
#define BUILD_ID_ENTRY        36
#define BUILD_ID_AT           12         /* of the id in an entry */
#define BUILD_ID_SIZE_AT      32         /* of the size byte */
#define BUILD_ID_ENTRY_NO_PID 32         /* before the pid was added, the id stood at 8 */
#define MISC_BUILD_ID_SIZE    (1u << 15) /* the size byte counts [5.10] */

#define RECORD_HEADER  8
#define RECORD_TYPE_AT 0
#define RECORD_MISC_AT 4
#define RECORD_SIZE_AT 6
/* The user record types begin here; the kernel's never reach it. */
#define RECORD_USER 64

#endif
