/* SPDX-License-Identifier: MIT */
/*
 * How events of several parts lie over the places of a target. A group's parts make "layers": in each
 * layer the members that count on one PMU stand together, and each is opened wherever that PMU counts.
 * An event alone is a group of one, with a layer for each of its parts.
 */
#ifndef COUNT_PARTS_H
#define COUNT_PARTS_H

#include <tally/error.h>
#include <tally/event.h>
#include <tally/target.h>

#define PART_NONE UINT32_MAX

struct parts {
	uint32_t members, layers;
	uint32_t *of;     /* [layer * members + member]: the member's part, PART_NONE: not there */
	uint32_t spine;   /* the member that the layers follow: it has a part in each */
	bool per_package; /* one CPU of each package is enough */
	bool plain;       /* one event of one part: its places are the target's */
	uint32_t first;   /* what `of` points to then: its part 0 */
	struct tally_event *const *events;
};

/*
 * Finds the layers of a group, or of one event, for a target. `p` is zeroed by the caller, who calls
 * parts_done() in any case and does not move it; `events` must outlive it.
 * Errors: -EINVAL (they cannot be one group; what counts CPUs or packages cannot follow a task),
 * -ENOMEM; explained.
 */
int parts_init(struct parts *p, struct tally_event *const *events, uint32_t members,
	       const struct tally_target *target, struct tally_error *err);

/* The part of a member in a layer; false: it is not there. */
bool parts_of(const struct parts *p, uint32_t layer, uint32_t member, struct tally_event_part *out);

/*
 * Replaces the target's places by those where layers are opened: place by place, the layers of a place
 * behind each other, each place with the layer as its `part`. `*list` is malloc'ed, as it was.
 *   root  folder above /sys for the packages of CPUs, or NULL.
 * Errors: -ENODEV (it counts on none of these CPUs), -ENOMEM, those of reading /sys; explained.
 */
int parts_spread(const struct parts *p, const char *root, struct tally_place **list,
		 uint32_t *count, struct tally_error *err);

/* How many file descriptors places take that parts_spread() made. */
uint64_t parts_fds(const struct parts *p, const struct tally_place *list, uint32_t count);

void parts_done(struct parts *p);

#endif
