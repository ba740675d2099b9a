/* SPDX-License-Identifier: MIT */
/*
 * The command on a CPU that counts: what the doctor says of it, what stat counts of a program whose
 * instructions are known, and what a recording by a period has of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pmu.h"

#define ROUNDS       50000000u
#define PERIOD       1000003u
#define MOST_PERCENT 101u /* of the loop: what else a program does is less than a hundredth */

static char output[65536];

/* Runs a line of shell, in which $TALLY and $ROUNDS are programs; all that it prints, and its status. */
static int run(const char *line)
{
	FILE *f = popen(line, "r");

	if (!f)
		return -1;
	output[fread(output, 1, sizeof(output) - 1, f)] = '\0';
	int status = pclose(f);
	if (status)
		printf("# %s: status %d: %s\n", line, status, output);
	return status;
}

/* Of the line of JSON that begins like this. */
static const char *line_of(const char *start)
{
	const char *line = strstr(output, start);

	return line ? line : "";
}

static uint64_t number_behind(const char *text, const char *key)
{
	const char *found = strstr(text, key);

	return found ? strtoull(found + strlen(key), NULL, 10) : 0;
}

static bool page_is_readable(void)
{
	int fd = open_by_hand(2);
	if (fd < 0)
		fd = open_by_hand(0);
	struct perf_event_mmap_page *page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ,
						 MAP_SHARED, fd, 0);
	bool readable = page != MAP_FAILED && page->cap_user_rdpmc;

	if (page != MAP_FAILED)
		munmap(page, (size_t)sysconf(_SC_PAGESIZE));
	close(fd);
	return readable;
}

static void the_doctor_finds_what_works(void)
{
	char rdpmc[64];

	check_int(run("\"$TALLY\" doctor --json"), 0);
	check_has(line_of("{\"check\": \"pmu\""),
		  no_pmu[0] ? "\"pmu\", \"state\": \"fails\"" : "\"pmu\", \"state\": \"ok\"");
	snprintf(rdpmc, sizeof(rdpmc), "\"rdpmc\", \"state\": \"%s\"",
		 !no_pmu[0] && page_is_readable() ? "ok" : "limited");
	check_has(line_of("{\"check\": \"rdpmc\""), rdpmc);
}

static void stat_counts_a_programs_instructions(void)
{
	char line[256];

	NEED_PMU();
	snprintf(line, sizeof(line),
		 "\"$TALLY\" stat --json -o - -e instructions:u -- \"$ROUNDS\" %u", ROUNDS);
	check_int(run(line), 0);
	check_has(output, "\"state\":\"exact\"");
	if (!LOOP_INSTRUCTIONS)
		tap_skip("the loop is not written in assembly for this architecture");
	const uint64_t value = number_behind(output, "\"value\":"),
		       right = (uint64_t)ROUNDS * LOOP_INSTRUCTIONS;
	check(value >= right && value < right / 100 * MOST_PERCENT);
}

/* Samples of a recording, and the share of them that are in the loop. */
struct recorded {
	uint64_t samples;
	double share;
};

static struct recorded record(const char *event)
{
	struct recorded r = { 0 };
	char line[512];

	snprintf(line, sizeof(line),
		 "\"$TALLY\" record -q -e %s -c %u -o command.data -- \"$ROUNDS\" %u && "
		 "\"$TALLY\" report -i command.data -g none -s symbol",
		 event, PERIOD, ROUNDS);
	check_int(run(line), 0);
	r.samples = number_behind(output, "# Samples: ");
	for (char *at = strtok(output, "\n"); at; at = strtok(NULL, "\n"))
		if (*at != '#' && strstr(at, "[.] loop"))
			r.share = strtod(at, NULL);
	unlink("command.data");
	return r;
}

static void a_recording_has_a_sample_for_each_period(void)
{
	const uint64_t instructions = (uint64_t)ROUNDS * LOOP_INSTRUCTIONS;
	const uint64_t right = instructions / PERIOD;

	NEED_PMU();
	if (!LOOP_INSTRUCTIONS)
		tap_skip("the loop is not written in assembly for this architecture");
	struct recorded r = record("instructions:u");
	check(r.samples > 0);
	check(r.share > 95);
	/* live_pmu_sample.c tells why: emulators of arm64 overflow in time by cycles alone. */
	if (r.samples < right / 2) {
		printf("# %" PRIu64 " samples of instructions, not %" PRIu64 "\n", r.samples,
		       right);
		struct recorded cycles = record("cycles:u");
		check(cycles.samples >= right);
		check(cycles.share > 95);
		tap_skip("instructions overflow late here, as emulators of arm64 have it");
	}
	check(r.samples >= right && r.samples <= instructions / 100 * MOST_PERCENT / PERIOD);
}

int main(void)
{
	if (!getenv("TALLY") || !getenv("ROUNDS")) {
		printf("1..0 # SKIP TALLY and ROUNDS do not name the programs\n");
		return 0;
	}
	probe_pmu();
	tap_run(the_doctor_finds_what_works);
	tap_run(stat_counts_a_programs_instructions);
	tap_run(a_recording_has_a_sample_for_each_period);
	return tap_end();
}
