/* SPDX-License-Identifier: MIT */
/* The recorder from the inside: what its parts share. */
#ifndef RECORDER_INSIDE_H
#define RECORDER_INSIDE_H

#include <tally/recorder.h>
#include <tally/sampler.h>
#include <tally/writer.h>

#include "recorder/drain.h"
#include "recorder/stolen.h"
#include "recorder/synth.h"
#include "recorder/tallier.h"
#include "recorder/unwinding.h"

/* The flags that say how to sample where a sampler's options do not. */
#define RECORDER_SAMPLING \
	(TALLY_RECORDER_CALLCHAIN | TALLY_RECORDER_NO_INHERIT | TALLY_RECORDER_PERF_CLOCK)

struct tally_recorder {
	struct tally_sampler *sampler;
	/*
	 * What is mapped and started, by an event of its own: for events that are off meanwhile, or
	 * whose records are overwritten. NULL: the first event of the sampler tells it.
	 */
	struct tally_sampler *side;
	struct tally_events *events, *side_events;
	struct tally_writer *writer;
	struct tally_recorder_opts opts;
	struct tally_target target;
	struct synth synth;
	struct tallier seen;
	struct drain drain;
	struct unwinding unwinding; /* without an unwinder: samples stay as they are */
	struct stolen stolen_before;
	char *path;  /* of the file, for messages */
	char *cache; /* folder; NULL: nothing is kept */
	uint64_t opened_cpu_ns, started_ns, drained_ns, rounds;
	uint64_t bytes_before; /* in the files before this one */
	bool overwrite;        /* the samples are in the rings, and in the file when that ends */
	bool ended;            /* all sampled tasks are gone, or the file is long enough */
};

/* The events, the side-band, and what unwinds their stacks. */
int recorder_open_samplers(struct tally_recorder *r, struct tally_error *err);

/* A file with its header, the kernel's maps and the threads of the target. */
int recorder_open_writer(struct tally_recorder *r, struct tally_error *err);

#endif
