/* SPDX-License-Identifier: MIT */
/*
 * A thousand random points of a program: the place and all registers are those that another stepper,
 * which shares no code with ours, has written down (programs/reference-step.c).
 */
#include <stdio.h>

#include "../programs/reference.h"
#include "guests.h"
#include "tap.h"

#define POINTS 1000
#define SEED   20240607u

/* The registers in the 512 bytes of FXSAVE: without what is behind them, which is software's. */
#define VECTOR_BYTES 416

static struct reference_row *rows;
static size_t row_count;

static void write_reference(void)
{
	char path[] = "/tmp/tally-reference-XXXXXX", command[1024];
	int fd = mkstemp(path);

	require(fd >= 0);
	snprintf(command, sizeof(command), "%s %s %s", getenv("REFERENCE_STEP"), path,
		 getenv("WALK"));
	int r = system(command);
	off_t size = lseek(fd, 0, SEEK_END);
	unlink(path);
	require(r == 0);
	row_count = (size_t)size / sizeof(*rows);
	rows = malloc((size_t)size);
	check_int(pread(fd, rows, (size_t)size, 0), size);
	close(fd);
	printf("# %zu instructions, %llu conditional branches\n", row_count,
	       (unsigned long long)rows[row_count - 1].conditional);
	check(row_count > 1000 && row_count <= 10000);
}

/* The first boundary at which so many branches have been executed. */
static size_t find_tick(uint64_t ticks)
{
	size_t at = 0;

	while (rows[at].conditional < ticks)
		at++;
	return at;
}

static bool compare(struct tally_tracee *tracee, const struct reference_row *row)
{
	struct tally_tracee_regs regs;
	unsigned char vector[16384];
	size_t len = sizeof(vector);

	if (!check_int(tally_tracee_regs(tracee, &regs), 0) ||
	    !check_int(tally_tracee_vector(tracee, vector, &len), 0))
		return false;
	return check_u64(tally_tracee_regs_pc(&regs), row->regs.rip) &&
	       check_mem(regs.word, &row->regs, sizeof(row->regs)) &&
	       check_mem(vector, &row->vector, VECTOR_BYTES);
}

static bool try_point(uint64_t ticks, uint64_t instructions)
{
	char *argv[] = { getenv("WALK"), NULL }, *envp[] = { NULL };
	struct tally_timer_request request = {
		.size = sizeof(request),
		.flags = TALLY_TIMER_ABSOLUTE | TALLY_TIMER_FROM_HERE,
		.kind = instructions ? TALLY_TIMER_INSTRUCTIONS : TALLY_TIMER_EXACTLY,
		.ticks = ticks,
		.instructions = instructions,
	};
	struct tally_run *run;
	struct tally_error err;

	if (!check_int(tally_tracee_run(&run, argv,
					TALLY_OPTS(run, .request = &request, .envp = envp,
						   .clock = TALLY_RUN_STEP),
					&err),
		       0)) {
		printf("# %s\n", err.text);
		return false;
	}
	bool good = check_str(tally_outcome_name(tally_run_outcome(run)->kind), "reached") &&
		    compare(tally_run_tracee(run), &rows[find_tick(ticks) + instructions]);
	tally_run_free(run);
	return good;
}

static void random_points_are_those_of_the_reference(void)
{
	uint32_t random = SEED;

	require(rows);
	for (int i = 0; i < POINTS; i++) {
		random = random * 1664525u + 1013904223u;
		uint64_t ticks = (random >> 8) % (rows[row_count - 1].conditional + 1);
		random = random * 1664525u + 1013904223u;
		size_t left = row_count - 1 - find_tick(ticks);
		uint64_t instructions = (random >> 8) % (left + 1 < 40 ? left + 1 : 40);
		if (!try_point(ticks, instructions)) {
			printf("# at (%llu, %llu)\n", (unsigned long long)ticks,
			       (unsigned long long)instructions);
			return;
		}
	}
}

int main(void)
{
	tap_run(write_reference);
	tap_run(random_points_are_those_of_the_reference);
	return tap_end();
}
