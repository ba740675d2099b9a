/* SPDX-License-Identifier: MIT */
/* Options of a sampler: which fit together, and what they are in an attr. */
#ifndef SAMPLE_OPTIONS_H
#define SAMPLE_OPTIONS_H

#include <tally/sampler.h>

/* The flags of an attr by which one event a place carries what names addresses and tasks for all. */
#define SAMPLER_SIDE_BAND                                                              \
	(TALLY_ATTR_MMAP | TALLY_ATTR_MMAP2 | TALLY_ATTR_MMAP_DATA | TALLY_ATTR_COMM | \
	 TALLY_ATTR_COMM_EXEC | TALLY_ATTR_TASK | TALLY_ATTR_BUILD_ID |                \
	 TALLY_ATTR_CONTEXT_SWITCH | TALLY_ATTR_NAMESPACES | TALLY_ATTR_CGROUP |       \
	 TALLY_ATTR_KSYMBOL | TALLY_ATTR_BPF_EVENT | TALLY_ATTR_TEXT_POKE)

/*
 * Copies and checks them, and fills in defaults. Errors: -EINVAL and -E2BIG, explained.
 */
int sampler_options_read(struct tally_sampler_opts *out, const struct tally_sampler_opts *opts,
			 const struct tally_target *target, struct tally_error *err);

/* The SAMPLER_SIDE_BAND flags that they ask for. */
uint64_t sampler_options_side_band(const struct tally_sampler_opts *opts);

/* Adds to an attr what they ask for of each sample; has_payload: the event has fields of its own. */
void sampler_options_apply(const struct tally_sampler_opts *opts, bool has_payload,
			   struct tally_attr *attr);

#endif
