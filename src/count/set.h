/* SPDX-License-Identifier: MIT */
/*
 * The events of a counter or of a group, in one piece or split into several, with all that is
 * needed to open them anew: the kernel takes some settings once only, and a group that is too large
 * has to be opened as smaller ones.
 */
#ifndef COUNT_SET_H
#define COUNT_SET_H

#include <tally/counter.h>

#include "count/opened.h"

/* Whether it counts, as far as this library knows: a descriptor or prctl(2) may switch it too. */
enum set_state {
	SET_OFF,
	SET_ON,
	SET_BY_EXEC, /* off until the exec of a command turns it on */
	SET_LIMITED, /* on until a number of overflows has passed */
};

struct set {
	void *block; /* holds the arrays of members */
	struct tally_event **events;
	uint32_t members;
	struct tally_target target;     /* with memory of its own */
	struct tally_counter_opts opts; /* likewise; as options_read() gives them */
	struct opened *pieces;          /* the members in order, each piece a group of the kernel */
	uint32_t pieces_count;
	struct tally_count
		*carried;           /* by member: what events that are closed by now have counted */
	struct tally_count *counts; /* by member: room for a reading */
	uint32_t generation;        /* how often it was opened anew */
	enum set_state state;
	bool armed; /* some of it sends signals */
};

/*
 * Opens the events on the target, or nothing; `s` is zeroed by the caller, who closes it when it
 * fails. Errors: those of options_read() and opened_open().
 */
int set_open(struct set *s, struct tally_event *const *events, uint32_t members,
	     const struct tally_target *target, const struct tally_counter_opts *opts,
	     struct tally_error *err);

void set_close(struct set *s);

/*
 * Opens the events anew, in pieces of at most `each` members, or as they are split now when it is
 * 0, and goes on counting where the old ones ended. On failure all is as it was.
 * Errors: -EBUSY when they were inherited and have counted, since whatever they follow would be
 * lost; those of opening and reading; explained.
 */
int set_reopen(struct set *s, uint32_t each, struct tally_error *err);

/* Enables or disables all; the first error, having tried all. */
int set_enable(struct set *s);
int set_disable(struct set *s);

/* Reads all members into s->counts. */
int set_read(struct set *s);

/*
 * Reads all members at one place of the first piece; what closed events counted is not part of it.
 * Other pieces may be open at other places: what they have at the same thread and CPU is told at the
 * first place of these.
 */
int set_read_place(struct set *s, uint32_t place);

/* Reads one member at one place of its piece. */
int set_read_member_place(struct set *s, uint32_t member, uint32_t place, struct tally_count *out);

/* Whether the target stood still while it was attached to. */
bool set_start_exact(const struct set *s);

/* Reads one member, with the others of its piece. */
int set_read_member(struct set *s, uint32_t member, struct tally_count *out);

int set_reset(struct set *s);

/* The piece that a member is in, and as which of its members. */
struct opened *set_piece(const struct set *s, uint32_t member, uint32_t *index);

/* Whether it is counting now, by what this library did and by a reading in s->counts. */
bool set_is_on(const struct set *s);

#endif
