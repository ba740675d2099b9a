/* SPDX-License-Identifier: MIT */
/* One event on one target: the case of one member. */
#include <errno.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "count/counter.h"
#include "count/fast.h"

int tally_counter_open(struct tally_counter **out, struct tally_event *event,
		       const struct tally_target *target, const struct tally_counter_opts *opts,
		       struct tally_error *err)
{
	struct tally_counter *counter = alloc_zeroed(1, sizeof(*counter));

	if (!counter)
		return error_nomem(err, "a counter");
	counter->set = &counter->own;
	int r = set_open(&counter->own, &event, 1, target, opts, err);
	if (r < 0)
		goto fail;
	*out = counter;
	return 0;
fail:
	tally_counter_close(counter);
	return r;
}

void tally_counter_close(struct tally_counter *counter)
{
	if (!counter || counter_is_view(counter))
		return;
	set_close(&counter->own);
	free(counter);
}

int tally_counter_enable(struct tally_counter *counter)
{
	return counter_is_view(counter) ? -EINVAL : set_enable(counter->set);
}

int tally_counter_disable(struct tally_counter *counter)
{
	return counter_is_view(counter) ? -EINVAL : set_disable(counter->set);
}

int tally_counter_reset(struct tally_counter *counter)
{
	return counter_is_view(counter) ? -EINVAL : set_reset(counter->set);
}

int tally_counter_read(struct tally_counter *counter, struct tally_count *out)
{
	struct set *set = counter->set;

	/* The short way, for a read that costs what its system call costs. */
	if (!counter_is_view(counter) && !set->generation)
		return opened_read_one(set->pieces, out);
	return set_read_member(set, counter->member, out);
}

int tally_counter_read_place(struct tally_counter *counter, uint32_t place, struct tally_count *out)
{
	return set_read_member_place(counter->set, counter->member, place, out);
}

int tally_counter_fast(struct tally_counter *counter, struct tally_fast *out,
		       struct tally_error *err)
{
	uint32_t index;
	struct opened *o = counter_piece(counter, &index);

	return fast_open(o, index, out, err);
}

bool tally_counter_start_exact(const struct tally_counter *counter)
{
	return set_start_exact(counter->set);
}

uint32_t tally_counter_places(const struct tally_counter *counter,
			      const struct tally_place **places)
{
	uint32_t index;
	const struct opened *o = counter_piece(counter, &index);

	if (places)
		*places = o->places;
	return o->places_count;
}

int tally_counter_fd(const struct tally_counter *counter, uint32_t place)
{
	uint32_t index;
	const struct opened *o = counter_piece(counter, &index);

	return opened_fd(o, place, index);
}

uint32_t tally_counter_generation(const struct tally_counter *counter)
{
	return counter->set->generation;
}
