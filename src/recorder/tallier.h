/* SPDX-License-Identifier: MIT */
/*
 * Walking over raw ring bytes on their way to the file: counts records by what they are and notes
 * which files are mapped. Looks at headers and a few fixed offsets only but for MMAP2, which are
 * rare; changes nothing.
 */
#ifndef RECORDER_TALLIER_H
#define RECORDER_TALLIER_H

#include <sys/uio.h>
#include <tally/record.h>

#include "recorder/modules.h"

struct tallier {
	uint64_t samples, records, lost, throttled;
	uint64_t first_time, last_time; /* of samples; 0: none yet */
	uint32_t time_offset;           /* of TIME in a sample; 0: it has none */
	const struct tally_layout *layout;
	struct modules modules; /* what was mapped */
	bool kernel;            /* a sample was taken in the kernel */
	bool failed;            /* no memory for a mapped file */
};

/* Prepares for records of this layout, which is borrowed. */
void tallier_init(struct tallier *t, const struct tally_layout *layout);

/*
 * Takes one ring's whole records in one or two stretches. Returns how many bytes are whole records:
 * all, unless the bytes contradict themselves.
 */
uint64_t tallier_add(struct tallier *t, const struct iovec *spans, int count);

void tallier_done(struct tallier *t);

#endif
