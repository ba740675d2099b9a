/* SPDX-License-Identifier: MIT */
/*
 * What tracepoints say: the RAW part of their samples as text, by the formats that the recording
 * carries. libtraceevent prints it where it is installed, as the kernel would; else each field is
 * printed as name=value.
 */
#ifndef PROFILE_PAYLOAD_H
#define PROFILE_PAYLOAD_H

#include <tally/record.h>

#include "base/hash.h"
#include "profile/format.h"
#include "profile/traceevent.h"

/* Zeroed, it knows no format. */
struct payloads {
	struct tracing_data data;
	struct traceevent *library; /* NULL: print fields */
	VEC(struct format) formats;
	struct map64 by_id;     /* a format's number: index in data.formats + 1 */
	struct map64 parsed_by; /* likewise: index in formats + 1 */
	bool swapped;
};

/*
 * Takes a TRACING_DATA blob, which is borrowed. With `library`, libtraceevent prints when it is
 * there. -EBADMSG: damaged, what stands before is known; -ENOMEM.
 */
int payloads_init(struct payloads *p, const void *blob, size_t len, bool library,
		  traceevent_resolver *resolver, void *arg);
void payloads_done(struct payloads *p);

/* Puts the payload of a sample of tracepoint number `id`; false: its format is not known. */
bool payload_text(struct payloads *p, struct out *o, uint64_t id, const struct tally_record *rec);
/* As an object. */
bool payload_json(struct payloads *p, struct out *o, uint64_t id, const struct tally_record *rec);

#endif
