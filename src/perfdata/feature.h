/* SPDX-License-Identifier: MIT */
/*
 * Payloads of feature sections: what both the reader and the writer know about their bytes.
 * Encoders append to a buf, in this machine's byte order or the other; decoders take from a cursor that never
 * leaves its section.
 */
#ifndef PERFDATA_FEATURE_H
#define PERFDATA_FEATURE_H

#include <stdbool.h>
#include <tally/attr.h>

#include "base/buf.h"
#include "perfdata/layout.h"

/* A feature's name as perf writes it ("HOSTNAME"), "?" when unknown. */
const char *feature_name(uint32_t feature);

void feature_put_u32(struct buf *b, uint32_t v, bool swapped);
void feature_put_text(struct buf *b, const char *text, bool swapped);
void feature_put_words(struct buf *b, uint32_t count, const char *const *words, bool swapped);

/* EVENT_DESC is its head and, for each event, its attr and what feature_put_event puts. */
void feature_put_events_head(struct buf *b, uint32_t count, uint32_t attr_size, bool swapped);
void feature_put_event(struct buf *b, const char *name, const uint64_t *ids, uint32_t id_count,
		       bool swapped);

/* One more entry of GROUP_DESC, which begins with their number. */
void feature_put_group(struct buf *b, const char *name, uint32_t leader, uint32_t members,
		       bool swapped);

/* One entry of BUILD_ID. -EINVAL: an id of no or too many bytes; -ENAMETOOLONG. */
int feature_put_build_id(struct buf *b, uint32_t cpumode, int32_t pid, const char *name,
			 const uint8_t *id, uint32_t id_len, bool swapped);

/* What is left of a section. `bad` is set once something reached beyond its end. */
struct cursor {
	const uint8_t *at;
	uint64_t left;
	bool swapped, bad;
};

/* The next `len` bytes; NULL, and `bad`, when they are not there. */
const uint8_t *take_bytes(struct cursor *c, uint64_t len);
uint32_t take_u32(struct cursor *c); /* 0 when bad */

/* A text: its first byte and its length up to a NUL, which need not be there. */
struct text {
	const char *at;
	size_t len;
};
struct text take_text(struct cursor *c);

/* An entry of EVENT_DESC. */
struct event_desc {
	struct tally_attr attr;
	struct text name;
	const uint8_t *ids; /* in the file's byte order */
	uint32_t id_count;
};
/* The head: how many entries follow; 0 also when it is damaged. */
uint32_t take_events_head(struct cursor *c, uint32_t *attr_size);
/* false at a damaged entry. */
bool take_event(struct cursor *c, uint32_t attr_size, struct event_desc *out);

struct build_id_entry {
	uint32_t cpumode;
	int32_t pid;
	struct text name;
	const uint8_t *id;
	uint32_t id_len;
};
/* Entries had no pid before Linux 2.6.36: "[kernel.kallsyms]", the first, begins 4 bytes early. */
bool build_ids_lack_pid(struct cursor c);
/* false at the end and at a damaged entry, which also sets `bad`. */
bool take_build_id(struct cursor *c, bool no_pid, struct build_id_entry *out);

#endif
