/* SPDX-License-Identifier: MIT */
/* The inside of tally_rewrite(): its inputs, and what they have in common. */
#ifndef PERFDATA_REWRITE_H
#define PERFDATA_REWRITE_H

#include <tally/reader.h>
#include <tally/rewrite.h>

#include "base/buf.h"
#include "base/hash.h"
#include "perfdata/patch.h"
#include "perfdata/wanted.h"
#include "perfdata/writer.h"

struct input {
	const char *path;
	struct tally_reader *reader;
	int fd; /* for what follows records without being in them; -1: none */
	struct wanted wanted;
	struct patch patch;
	const char *host;   /* "" when it does not tell */
	uint32_t machine;   /* equal for equal hosts, from 0 on */
	uint64_t *identify; /* by event: an id that its records get; 0: none */
};

struct rewrite {
	struct tally_rewrite_opts opts;
	struct input *inputs;
	uint32_t count, machines;
	struct tally_writer *writer;
	struct tally_rewritten result;
	uint64_t first, last;     /* times of the samples that were kept */
	struct buf aux_index;     /* offset and size of each AUXTRACE record */
	struct strings build_ids; /* those that are listed, to list them once */
	bool packed;              /* records were passed on as they were compressed */
	uint8_t room[PATCH_ROOM];
};

/* A clause of what was wrong. */
TALLY_PRINTF(2, 3) void rewrite_complain(struct rewrite *w, const char *fmt, ...);

/* Events of all inputs to the writer, with ids that differ. */
int rewrite_plan(struct rewrite *w, struct tally_error *err);

/* What describes the recordings: before the records, and what only they told. -ENOMEM. */
int rewrite_features(struct rewrite *w);
int rewrite_late_features(struct rewrite *w);
/* One build-id; `name` is renamed here. */
int rewrite_build_id(struct rewrite *w, uint32_t cpumode, int32_t pid, const char *name,
		     const uint8_t *id, uint32_t id_len);

#endif
