/* SPDX-License-Identifier: MIT */
/*
 * Unwinding while recording: a sample with a copy of its stack becomes one with a callchain, which
 * is a thirtieth as long. Every other record passes as the kernel wrote it.
 *
 * A sample whose stack is whole has its callchain, registers of abi 0 and no stack. One whose copy
 * was too short ends in a second mark of user mode, which says that there was more, and keeps its
 * registers, from which a reader knows how long a copy would have been long enough. One that could
 * not be unwound stays as it was.
 */
#ifndef RECORDER_UNWINDING_H
#define RECORDER_UNWINDING_H

#include <sys/uio.h>
#include <tally/event.h>
#include <tally/recorder.h>
#include <tally/sampler.h>
#include <tally/unwinder.h>

#include "base/hash.h"

struct unwinding {
	const char *root; /* folder above /proc, or NULL; borrowed */
	uint32_t clockid; /* of the records' times; UINT32_MAX: the perf clock */
	struct tally_maps *maps;
	struct tally_unwinder *unwinder;
	const struct tally_sampler *sampler;
	struct map64 layouts; /* by the id of a sample: event + 1 */
	uint64_t *addresses;  /* of the stack at hand, behind what the kernel had of it */
	char *record;         /* a sample that wraps in its ring, whole */
	char *out;            /* records on their way to the file */
	size_t len;
	struct tally_stacks stacks; /* what came of them */
	/*
	 * Mappings of a machine that starts programs all day would fill memory: after so many
	 * records all is forgotten, and of who still runs /proc tells when its next sample comes.
	 */
	uint64_t seen;
	bool forgot;
	struct map64 asked; /* pids since then */
};

/* Where the records go that it made. */
typedef int unwinding_sink(void *arg, const struct iovec *spans, int count,
			   struct tally_error *err);

/* Borrows the sampler. Errors: -EOPNOTSUPP on machines whose stacks cannot be unwound; -ENOMEM. */
int unwinding_open(struct unwinding *u, const struct tally_sampler *sampler,
		   const struct tally_events *events, const char *root, struct tally_error *err);

/* Takes the side-band of a ring, before the samples of any ring are passed. */
int unwinding_see(struct unwinding *u, const struct iovec *spans, int count,
		  struct tally_error *err);

/*
 * Passes a ring's records on, in portions, and of bytes that are no record the first few, for the
 * sink to refuse. Allocates only for what is new of modules.
 */
int unwinding_pass(struct unwinding *u, const struct iovec *spans, int count, unwinding_sink *sink,
		   void *arg, struct tally_error *err);

void unwinding_done(struct unwinding *u);

#endif
