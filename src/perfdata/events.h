/* SPDX-License-Identifier: MIT */
/* The events of a file that is read: attrs, ids, names, layouts, and which one a record is of. */
#ifndef PERFDATA_EVENTS_H
#define PERFDATA_EVENTS_H

#include <tally/reader.h>

#include "base/hash.h"
#include "base/vec.h"
#include "perfdata/sections.h"

/* Where a record has its time, in bytes: in samples from the front, in others from the end. 0: it
 * has none. */
struct time_place {
	uint16_t sample, behind;
};

struct events {
	VEC(struct tally_reader_event) list;
	struct tally_layout *layouts; /* of each, once settled */
	struct time_place *times;     /* of each */
	struct map64 by_id;           /* id -> index + 1 */
	bool telling;                 /* records carry ids that tell the events apart */
};

/* Adds an event; `attr` has the attr's bytes, of which `len` are there, `ids` the bytes of
 * `id_count` ids. Returns the attr's size. -EINVAL: no attr; -ENOMEM. */
int events_add(struct events *e, const struct source *src, const uint8_t *attr, size_t len,
	       const uint8_t *ids, uint32_t id_count);

/* Names the event that has this id. -ENOMEM. */
int events_rename(struct events *e, uint64_t id, struct text name);

/* When all are added: names them (EVENT_DESC, else type and config), and makes their layouts. */
int events_settle(struct events *e, struct source *src, struct sections *sections);

/* Which event a record belongs to; 0 when it does not tell. */
uint32_t events_find(const struct events *e, uint32_t type, const void *bytes, uint32_t len);

/* The time of a record; 0 when it has none. */
uint64_t events_time(const struct events *e, uint32_t event, uint32_t type, const uint8_t *bytes,
		     uint32_t len);

void events_done(struct events *e);

#endif
