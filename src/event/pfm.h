/* SPDX-License-Identifier: MIT */
/*
 * Vendors' names of events from libpfm4, which is loaded when such a name comes and nothing else knew
 * it: skl::MEM_LOAD_RETIRED:L3_MISS, MEM_LOAD_RETIRED.L3_MISS, with libpfm's own attributes
 * (UOPS_ISSUED:ANY:c=4:i).
 */
#ifndef EVENT_PFM_H
#define EVENT_PFM_H

#include "event/resolve.h"

#define PFM_LIBRARY "libpfm.so.4"

/*
 * Whether a word looks like a vendor's name: "::" or a dot in it, or capitals with '_' or ':'. Loading
 * libpfm4 and having it look at the machine takes 3 ms, which no slip in a generic name should.
 */
bool pfm_could_know(const char *name, size_t len);

/*
 * Has `library` encode one event, for all modes, into type, config, config1 and config2 of an attr.
 * 1; 0: it has no such event for this CPU; -ENOENT: no such library; -EINVAL: it knows the event and
 * says what is wrong with the rest, or is no libpfm4; -ENOMEM. Threads take turns.
 */
int pfm_encode(const char *library, const char *name, struct tally_attr *attr,
	       struct tally_error *err);

resolve_source resolve_pfm;

#endif
