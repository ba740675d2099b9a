/* SPDX-License-Identifier: MIT */
/*
 * Runs a command, samples it, and prints every record that the kernel writes, as it comes.
 *
 *	cc print-samples.c $(pkg-config --cflags --libs libtally)
 *	./a.out -e page-faults ls
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tally/tally.h>

/* The event that a record belongs to: by its id, which all events carry at the same place. */
static const struct tally_layout *layout_of(const struct tally_sampler *sampler,
					    const struct tally_record_header *header,
					    uint32_t events)
{
	const struct tally_layout *first = tally_sampler_layout(sampler, 0);
	uint64_t id = tally_record_id(first, header, header->size);
	const uint64_t *ids;

	for (uint32_t event = 0; event < events; event++)
		for (uint32_t n = tally_sampler_ids(sampler, event, &ids); n-- > 0;)
			if (ids[n] == id)
				return tally_sampler_layout(sampler, event);
	return first;
}

static void drain(struct tally_sampler *sampler, uint32_t events)
{
	static char line[65536];

	for (uint32_t i = 0; i < tally_sampler_rings(sampler); i++) {
		struct tally_ring *ring = tally_sampler_ring(sampler, i);
		const struct tally_record_header *header;
		struct tally_record record;
		while (tally_ring_next(ring, &header) > 0) {
			const struct tally_layout *layout = layout_of(sampler, header, events);
			if (tally_record_decode(layout, header, header->size, &record,
						sizeof(record)) < 0)
				continue;
			tally_record_print(layout, &record, NULL, line, sizeof(line));
			puts(line);
		}
		tally_ring_release(ring);
	}
}

static int print_samples(const char *text, char **argv, struct tally_error *err)
{
	struct tally_events_opts events_opts = { .size = sizeof(events_opts),
						 .fallback = TALLY_FALLBACK_PRECISE |
							     TALLY_FALLBACK_USER_ONLY |
							     TALLY_FALLBACK_CPU_CLOCK };
	struct tally_target target = { .scope = TALLY_SCOPE_COMMAND };
	struct tally_events *events = NULL;
	struct tally_sampler *sampler = NULL;
	struct tally_launch *launch = NULL;
	struct tally_exit end = { 0 };

	int r = tally_events_parse(&events, text, &events_opts, err);
	if (r == 0)
		r = tally_launch_start(&launch, argv, err);
	if (r == 0) {
		target.id = tally_launch_pid(launch);
		r = tally_sampler_open(&sampler, events, &target,
				       TALLY_OPTS(sampler, .flags = TALLY_SAMPLER_CALLCHAIN), err);
	}
	if (r == 0)
		r = tally_launch_go(launch, err);
	/* Drained every 250 ms at least, and once more when all tasks have ended. */
	for (int woken = 0; r == 0 && woken != -EPIPE;) {
		woken = tally_sampler_wait(sampler, 250);
		drain(sampler, tally_events_count(events));
	}
	if (r == 0)
		r = tally_launch_wait(launch, -1, &end, err);
	tally_sampler_close(sampler);
	tally_launch_close(launch);
	tally_events_free(events);
	return r < 0 ? r : end.status;
}

int main(int argc, char **argv)
{
	bool named = argc > 3 && !strcmp(argv[1], "-e");
	struct tally_error err;

	if (argc < 2) {
		fprintf(stderr, "usage: print-samples [-e EVENTS] CMD [ARG...]\n");
		return 2;
	}
	int r = print_samples(named ? argv[2] : "cycles", argv + (named ? 3 : 1), &err);
	if (r < 0)
		fprintf(stderr, "print-samples: %s\n", err.text);
	return r < 0 ? EXIT_FAILURE : r;
}
