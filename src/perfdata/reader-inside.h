/* SPDX-License-Identifier: MIT */
/* What a reader is made of: opening.c puts it together, reader.c reads. */
#ifndef PERFDATA_READER_INSIDE_H
#define PERFDATA_READER_INSIDE_H

#include <tally/reader.h>

#include "perfdata/head.h"
#include "perfdata/order.h"
#include "perfdata/sections.h"
#include "perfdata/stream.h"
#include "perfdata/unpack.h"

/* Types that are counted one by one; all others together behind them. */
#define COUNTED_TYPES 128

struct tally_reader {
	struct tally_reader_opts opts;
	struct source src; /* the file, or a folder's file "data" */
	char *name;
	char health[HEALTH_TEXT];
	bool owns_fd;
	struct head head;
	struct events events;
	struct sections *sections; /* apart, as its parts are loaded by getters */
	struct stream stream;
	struct unpack unpack;
	struct order *order; /* NULL: as they stand in the file */

	/* Of a folder (perf record --threads): the files "data.0" and so on. */
	char *folder;
	char *part_name;
	char part_label[32];
	struct source part_src;
	uint32_t part, part_count; /* part 0 is src */
	uint64_t parts_size, passed_size;
	struct stream first; /* how the stream of part 0 began */

	bool draining;              /* records are taken out of `order` */
	struct stream_record round; /* comes behind them */
	bool ended;                 /* nothing else comes */
	bool has_payload;           /* the last record handed out has one */
	uint64_t counts[COUNTED_TYPES + 1];
	struct tally_error failed; /* code 0: nothing has */
};

/* Where the records of a file are; also after it has grown. */
int find_records(struct tally_reader *r, struct tally_error *err);
/* Looks again at a file that somebody still writes. 1: there is more, 0, or -errno. */
int look_again(struct tally_reader *r, struct tally_error *err);
/* Goes on with the folder's next file. 1, 0 when there is none, or -errno. */
int open_next_part(struct tally_reader *r, struct tally_error *err);
/* Back to the first. */
void rewind_parts(struct tally_reader *r);

#endif
