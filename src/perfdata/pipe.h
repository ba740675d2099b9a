/* SPDX-License-Identifier: MIT */
/* Files in the form of a pipe's stream: what the sections of other files say, records say here. */
#ifndef PERFDATA_PIPE_H
#define PERFDATA_PIPE_H

#include "perfdata/events.h"
#include "perfdata/stream.h"

/* Takes what a record tells of events and features. 1 to go on, 0 when what describes the recording
 * is over, -EBADMSG, -ENOMEM. */
int pipe_learn(const struct stream_record *record, struct stream *stream, struct events *events,
	       struct sections *sections, struct tally_error *err);

#endif
