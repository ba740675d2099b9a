/* SPDX-License-Identifier: MIT */
/* Records by time, within what FINISHED_ROUND records promise, in bounded memory. */
#ifndef PERFDATA_ORDER_H
#define PERFDATA_ORDER_H

#include "perfdata/runs.h"

/* An entry of the index: 16 bytes a record. */
struct order_entry {
	uint64_t time;
	uint64_t at; /* in the arena */
};

struct order {
	uint8_t *arena;                    /* heads and bytes of records, in the order they came */
	size_t used, dropped;              /* bytes in it; of them, of records that were taken */
	struct order_entry *index, *spare; /* sorted from `first` to `sorted` */
	size_t first, sorted, count;
	uint64_t newest;   /* time seen so far */
	uint64_t promised; /* the newest that the round before the last had */
	uint64_t limit;    /* up to where records may be taken now */
	uint64_t taken;    /* time of the last one that was */
	uint64_t late;     /* records that came after their time had passed */
	bool in_runs;      /* the one given last is the first of the runs */
	bool given;        /* one was given, to be dropped */
	struct runs runs;
};

/* -ENOMEM. */
int order_init(struct order *o, const char *temp_folder);
/* Keeps a record, whose bytes are copied. -ENOMEM, or of a temporary file. */
int order_push(struct order *o, const struct waiting *head, const void *bytes,
	       struct tally_error *err);
/* A round has ended: what the round before it had may be taken. */
void order_round(struct order *o);
/* All may be taken. */
void order_end(struct order *o);
/* The earliest of what may be taken: 1, valid until the next call; 0: none; or of a temporary file. */
int order_next(struct order *o, struct waiting *head, const uint8_t **bytes,
	       struct tally_error *err);
/* Forgets all. */
void order_reset(struct order *o);
void order_done(struct order *o);

#endif
