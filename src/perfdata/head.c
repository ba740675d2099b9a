/* SPDX-License-Identifier: MIT */
/* Header, attrs and ids: everything is found by offset and checked against the file's size. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "perfdata/head.h"

/* Thousands of events on thousands of CPUs stay below this. */
#define SECTION_LIMIT (256u << 20)

#define HEADER_SIZE_AT     offsetof(struct file_header, size)
#define HEADER_ATTR_AT     offsetof(struct file_header, attr_size)
#define HEADER_FEATURES_AT offsetof(struct file_header, features)

static int corrupt(const struct source *src, struct tally_error *err, const char *what,
		   uint64_t offset, uint64_t found, const char *expected)
{
	return error_set(err, -EBADMSG, TALLY_CAUSE_CORRUPT,
			 "%s: %s at offset %" PRIu64 " is %" PRIu64 ", expected %s; the file is "
			 "damaged",
			 src->name, what, offset, found, expected);
}

/* Version 1 begins with the same text in both byte orders; only sizes of attrs tell them apart. */
static bool v1_is_swapped(const uint8_t *raw)
{
	static const uint8_t sizes[] = { 64, 72, 80, 96, 104, 112 };

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		if (load_u64(raw + HEADER_ATTR_AT, true) == sizes[i] + sizeof(struct file_section))
			return true;
	return false;
}

static int find_byte_order(const uint8_t *raw, struct source *src, struct tally_error *err)
{
	uint64_t magic = load_u64(raw, false);

	if (!memcmp(raw, FILE_MAGIC_V1, sizeof(magic)))
		src->swapped = v1_is_swapped(raw);
	else if (magic == FILE_MAGIC || magic == __builtin_bswap64(FILE_MAGIC))
		src->swapped = magic != FILE_MAGIC;
	else
		return error_set(err, -EBADMSG, TALLY_CAUSE_CORRUPT,
				 "%s: not a perf.data file: it begins with the bytes \"%.8s\", "
				 "expected \"PERFILE2\" or \"2ELIFREP\"",
				 src->name, (const char *)raw);
	return 0;
}

/* Swapped files of machines whose `unsigned long` had 32 bits have the bitmap in such words, which
 * shows by HOSTNAME, a feature that perf always writes, being in the wrong place. */
static void load_features(uint64_t *bits, const uint8_t *raw, bool swapped)
{
	uint64_t halves[FILE_FEATURE_WORDS];
	const uint64_t hostname = 1ull << TALLY_FEATURE_HOSTNAME;

	for (int i = 0; i < FILE_FEATURE_WORDS; i++) {
		bits[i] = load_u64(raw + i * 8, swapped);
		halves[i] = load_u32(raw + i * 8, swapped) |
			    (uint64_t)load_u32(raw + i * 8 + 4, swapped) << 32;
	}
	if (swapped && !(bits[0] & hostname) && (halves[0] & hostname))
		memcpy(bits, halves, sizeof(halves));
}

static void load_header(struct file_header *file, const uint8_t *raw, bool swapped)
{
	uint64_t fields[HEADER_FEATURES_AT / sizeof(uint64_t)];

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		fields[i] = load_u64(raw + i * sizeof(uint64_t), swapped);
	memcpy(file, fields, sizeof(fields));
	if (file->size == FILE_HEADER_SIZE)
		load_features(file->features, raw + HEADER_FEATURES_AT, swapped);
}

int head_parse(struct head *head, struct source *src, const uint8_t *bytes, size_t len,
	       struct tally_error *err)
{
	uint8_t raw[FILE_HEADER_SIZE + 1] = { 0 }; /* a NUL for the message about the magic */

	if (len < FILE_HEADER_SIZE_PIPE)
		return error_set(err, -EBADMSG, TALLY_CAUSE_TRUNCATED,
				 "%s: %zu bytes are too few for a perf.data file; its writer may "
				 "have ended before it wrote anything",
				 src->name, len);
	len = len < FILE_HEADER_SIZE ? len : FILE_HEADER_SIZE;
	memcpy(raw, bytes, len);
	int r = find_byte_order(raw, src, err);
	if (r < 0)
		return r;
	load_header(&head->file, raw, src->swapped);
	head->piped = head->file.size == FILE_HEADER_SIZE_PIPE;
	if (head->piped)
		return 0;
	if (head->file.size != FILE_HEADER_SIZE && head->file.size != FILE_HEADER_SIZE_OLD)
		return corrupt(src, err, "the header's size", HEADER_SIZE_AT, head->file.size,
			       "104, 72, or 16 for a pipe");
	/* Of a stream so much came that tells it from a pipe's. */
	if (len < head->file.size && !src->once)
		return error_set(err, -EBADMSG, TALLY_CAUSE_TRUNCATED,
				 "%s: ends at offset %zu inside its header of %" PRIu64 " bytes",
				 src->name, len, head->file.size);
	return 0;
}

int head_read(struct head *head, struct source *src, struct tally_error *err)
{
	uint8_t raw[FILE_HEADER_SIZE];
	size_t len = src->size < FILE_HEADER_SIZE ? (size_t)src->size : FILE_HEADER_SIZE;
	int r = source_read(src, raw, 0, len, "the header", err);

	return r < 0 ? r : head_parse(head, src, raw, len, err);
}

/* Loads a section; `*out` is the caller's to free. */
static int load_section(const struct source *src, const struct file_section *section,
			const char *what, uint8_t **out, struct tally_error *err)
{
	if (!source_holds(src, section) || section->size > SECTION_LIMIT)
		return error_set(err, -EBADMSG, TALLY_CAUSE_TRUNCATED,
				 "%s: %s with %" PRIu64 " bytes at offset %" PRIu64 " do not fit "
				 "the file of %" PRIu64 " bytes; it is damaged or cut short",
				 src->name, what, section->size, section->offset, src->size);
	uint8_t *bytes = malloc(section->size + 1);
	if (!bytes)
		return error_nomem(err, what);
	int r = source_read(src, bytes, section->offset, section->size, what, err);
	if (r < 0)
		free(bytes);
	else
		*out = bytes;
	return r;
}

struct attr_walk {
	const struct source *src;
	struct file_section attrs;
	const uint8_t *bytes;
	uint64_t at;       /* in the section */
	uint64_t ids_left; /* how many bytes of ids the file can have */
};

/* An attr of size 0 has the 64 bytes of the first kernels. */
static uint64_t entry_attr_size(const struct attr_walk *walk)
{
	uint32_t size = load_u32(walk->bytes + walk->at + ATTR_SIZE_OFFSET, walk->src->swapped);

	return size ? size : TALLY_ATTR_SIZE_MIN;
}

static int check_ids(struct attr_walk *walk, const struct file_section *ids,
		     struct tally_error *err)
{
	uint64_t entry = walk->attrs.offset + walk->at;

	if (ids->size % sizeof(uint64_t))
		return corrupt(walk->src, err, "the length of an event's ids (see its attr)", entry,
			       ids->size, "a multiple of 8");
	/* Each id stands in the file once: sections that overlap would multiply it in memory. */
	if (ids->size > walk->ids_left)
		return corrupt(walk->src, err, "the length of an event's ids (see its attr)", entry,
			       ids->size, "less than the file has");
	walk->ids_left -= ids->size;
	return 0;
}

/* Adds the event at walk->at and moves on. The entries are walked by each attr's own size, as perf
 * does: the header's figure was wrong in some writers. */
static int add_entry(struct attr_walk *walk, struct events *events, struct tally_error *err)
{
	const uint64_t left = walk->attrs.size - walk->at, tail = sizeof(struct file_section);
	const uint8_t *entry = walk->bytes + walk->at;
	uint64_t size = left < TALLY_ATTR_SIZE_MIN + tail ? 0 : entry_attr_size(walk);
	uint8_t *id_bytes;

	if (size < TALLY_ATTR_SIZE_MIN || size > left - tail)
		return corrupt(walk->src, err, "the size of an attr",
			       walk->attrs.offset + walk->at + ATTR_SIZE_OFFSET, size,
			       "64 or more, within its section");
	struct file_section ids = { load_u64(entry + size, walk->src->swapped),
				    load_u64(entry + size + 8, walk->src->swapped) };
	int r = check_ids(walk, &ids, err);
	if (r == 0)
		r = load_section(walk->src, &ids, "the ids of an event", &id_bytes, err);
	if (r < 0)
		return r;
	r = events_add(events, walk->src, entry, size, id_bytes,
		       (uint32_t)(ids.size / sizeof(uint64_t)));
	free(id_bytes);
	walk->at += size + tail;
	return r < 0 ? error_nomem(err, "an event") : 0;
}

int head_read_events(const struct head *head, const struct source *src, struct events *events,
		     struct tally_error *err)
{
	struct attr_walk walk = { .src = src, .attrs = head->file.attrs, .ids_left = src->size };
	uint8_t *bytes;

	if (!walk.attrs.size)
		return error_set(err, -EBADMSG, TALLY_CAUSE_TRUNCATED,
				 "%s: describes no event; its writer ended before it wrote them",
				 src->name);
	int r = load_section(src, &walk.attrs, "the attrs", &bytes, err);
	if (r < 0)
		return r;
	walk.bytes = bytes;
	while (r == 0 && walk.at < walk.attrs.size)
		r = add_entry(&walk, events, err);
	free(bytes);
	return r;
}
