/* SPDX-License-Identifier: MIT */
/* One event on one target: the case of one member. */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>

#include "base/error.h"
#include "count/fast.h"
#include "count/opened.h"

struct tally_counter {
	struct opened opened;
};

int tally_counter_open(struct tally_counter **out, struct tally_event *event,
		       const struct tally_target *target, const struct tally_counter_opts *opts,
		       struct tally_error *err)
{
	struct tally_counter *counter = calloc(1, sizeof(*counter));

	if (!counter)
		return error_nomem(err, "a counter");
	int r = opened_open(&counter->opened, &event, 1, target, opts, err);
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
	if (!counter)
		return;
	opened_close(&counter->opened);
	free(counter);
}

int tally_counter_enable(struct tally_counter *counter)
{
	return opened_ioctl(&counter->opened, PERF_EVENT_IOC_ENABLE);
}

int tally_counter_disable(struct tally_counter *counter)
{
	return opened_ioctl(&counter->opened, PERF_EVENT_IOC_DISABLE);
}

int tally_counter_reset(struct tally_counter *counter)
{
	return opened_reset(&counter->opened);
}

int tally_counter_read(struct tally_counter *counter, struct tally_count *out)
{
	return opened_read_one(&counter->opened, out);
}

int tally_counter_fast(struct tally_counter *counter, struct tally_fast *out,
		       struct tally_error *err)
{
	return fast_open(&counter->opened, 0, out, err);
}

uint32_t tally_counter_places(const struct tally_counter *counter,
			      const struct tally_place **places)
{
	if (places)
		*places = counter->opened.places;
	return counter->opened.places_count;
}

int tally_counter_fd(const struct tally_counter *counter, uint32_t place)
{
	return place < counter->opened.places_count ? counter->opened.fds[place] : -EINVAL;
}
