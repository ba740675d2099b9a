/* SPDX-License-Identifier: MIT */
/*
 * Runs a command, samples it, and prints every record that the kernel writes, in the order of time.
 *
 *	cc print-samples.c $(pkg-config --cflags --libs libtally)
 *	./a.out -e page-faults ls
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tally/tally.h>

/* Prints all records in the order of time, until every task has ended. */
static int print_all(struct tally_sampler *sampler)
{
	static char line[65536];
	const struct tally_sampled *got;
	int r;

	while ((r = tally_sampler_next(sampler, -1, &got)) == 1) {
		const struct tally_layout *layout = tally_sampler_layout(sampler, got->event);
		if (!layout)
			continue; /* of an event that is not ours */
		tally_record_print(layout, got->record, NULL, line, sizeof(line));
		puts(line);
	}
	return r == -EPIPE ? 0 : r;
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
	if (r == 0)
		r = print_all(sampler);
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
