/* SPDX-License-Identifier: MIT */
/* Printing a recording's samples: what its parts share. */
#ifndef PROFILE_SCRIPT_H
#define PROFILE_SCRIPT_H

#include <tally/reader.h>
#include <tally/script.h>
#include <tally/symbolizer.h>

#include "profile/fields.h"
#include "profile/rounds.h"
#include "profile/out.h"
#include "profile/payload.h"
#include "profile/places.h"
#include "profile/sideband.h"
#include "profile/stacks.h"

/* An event of the file. */
struct script_event {
	const struct tally_reader_event *file;
	const char *name;
	size_t name_len;
	uint32_t fields; /* enum field */
	bool chains;     /* callchains are printed */
	bool shown;      /* the filter lets it through */
	bool addr_named; /* symbols belong to its addr, of page faults */
};

struct script {
	struct tally_script_opts opts;
	struct tally_reader *reader;
	struct tally_maps *maps;
	struct tally_symbolizer *symbolizer;
	struct sideband sideband;
	struct tally_unwinder *unwinder; /* NULL: on that machine stacks cannot be unwound */
	struct stacks stacks;
	struct fields fields;
	struct rounds rounds;
	struct payloads payloads;
	struct places places;
	struct out out;
	VEC(struct script_event) events;
	VEC(int32_t) cpus;   /* of the filter */
	void *blob;          /* TRACING_DATA of a stream */
	size_t name_width;   /* of the longest event's name */
	size_t memory_width; /* of the widest data_src so far */
	const char *machine; /* for names of registers */
	uint64_t first;      /* the earliest sample */
	uint64_t newest;     /* of what is shown */
	bool out_of_order;   /* some of it is older than what stands before it */
	bool chains;         /* some event has callchains, and they are wanted */
	bool bad_formats, unknown_formats, no_library, bad_build_ids;
	struct tally_script_report report;
};

/* The event of a record. */
static inline const struct script_event *event_of(const struct script *s, uint32_t event)
{
	return &s->events.at[event < s->events.count ? event : 0];
}

/* Who, which CPU and when, as every line begins. The name is that of `tid` at the time `when`. */
void script_start(struct script *s, const struct script_event *event,
		  const struct tally_record *rec, int32_t tid, uint64_t when);

/* A sample on a line, or on several with its callchain, which ends so. -ENOMEM. */
int script_text(struct script *s, const struct script_event *event, const struct tally_record *rec,
		const struct whose *whose);
int script_json(struct script *s, const struct script_event *event, const struct tally_record *rec,
		const struct whose *whose, enum stack_end end);

/* A record that is no sample, as a line. */
void script_other(struct script *s, const struct script_event *event,
		  const struct tally_record *rec);

/* A walk through a callchain, innermost first; zeroed before it begins. */
struct chain_walk {
	uint64_t i, address;
	uint64_t before; /* the frame that the one at hand called; 0: none */
	uint32_t mode, frames;
	bool unwound; /* by tables, which lead to what a signal interrupted */
	bool inside;  /* the part (user or kernel) at hand has begun */
};

/* The next frame: its address and mode. false: no more. */
bool script_frame(const struct script *s, const struct tally_record *rec, struct chain_walk *walk);

/* For place_of(): without lines a frame to which a call returns looks like the others. */
uint32_t script_call(const struct script *s, const struct whose *whose,
		     const struct chain_walk *walk, uint32_t fields);

/* sample.data_src in perf's words. */
void script_data_src(struct script *s, uint64_t data_src);

#endif
