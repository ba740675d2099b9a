/* SPDX-License-Identifier: MIT */
/* What a recording says about the payloads of its tracepoints: the feature TRACING_DATA. */
#ifndef RECORDER_TRACING_DATA_H
#define RECORDER_TRACING_DATA_H

#include <tally/event.h>
#include <tally/writer.h>

/*
 * Gives the writer the formats of the tracepoints among the events, from tracefs below `root`;
 * nothing when there are none, or when tracefs cannot be read. -ENOMEM.
 */
int tracing_data_write(struct tally_writer *writer, const struct tally_events *events,
		       const char *root);

#endif
