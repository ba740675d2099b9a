/* SPDX-License-Identifier: MIT */
/* Unwinds a recording by tally_unwinder. */
#include <time.h>

#include "unwinding.h"

struct job {
	struct tally_maps *maps;
	struct tally_unwinder *unwinder;
};

static void take(void *arg, const struct tally_record *rec)
{
	static const char *const ends[] = { "whole", "cut", "broken", "full" };
	struct job *job = arg;
	struct tally_unwound how;
	uint64_t frames[MOST_FRAMES];

	if (!has_stack(rec)) {
		tally_maps_push(job->maps, rec);
		return;
	}
	if (tally_unwinder_sample(job->unwinder, rec, frames, MOST_FRAMES, &how) > 0)
		print_frames(rec, frames, how.frames, ends[how.end]);
}

int main(int argc, char **argv)
{
	struct job job = { 0 };

	if (argc != 2) {
		fprintf(stderr, "usage: unwind-tally FILE\n");
		return 2;
	}
	if (tally_maps_new(&job.maps) < 0 ||
	    tally_unwinder_new(&job.unwinder, job.maps, NULL, NULL) < 0)
		return 1;
	int status = for_records(argv[1], take, &job);
	for (uint32_t i = 0; i < tally_unwinder_modules(job.unwinder); i++) {
		struct tally_unwinder_module module;
		if (tally_unwinder_module(job.unwinder, i, &module) == 0 && module.broken)
			fprintf(stderr, "%" PRIu64 " ended in %s: %s\n", module.broken, module.path,
				module.trouble ? module.trouble : "no rules there");
	}
	tally_unwinder_free(job.unwinder);
	tally_maps_free(job.maps);
	return status;
}
