/* SPDX-License-Identifier: MIT */
/*
 * Counts events around a piece of code, in this thread: page faults and the time on a CPU.
 *
 *	cc count-region.c $(pkg-config --cflags --libs libtally)
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <tally/tally.h>

#define BYTES (8u << 20)

/* The piece of code: touches fresh memory, each page of which is a fault. */
static int work(void)
{
	volatile char *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return -1;
	madvise((void *)(uintptr_t)memory, BYTES, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < BYTES; i += 4096)
		memory[i] = 1;
	return munmap((void *)(uintptr_t)memory, BYTES);
}

static void print(const struct tally_event *event, const struct tally_count *count)
{
	if (count->state == TALLY_COUNT_NEVER_RAN || count->state == TALLY_COUNT_ERROR)
		printf("%-16s %s\n", tally_event_name(event), tally_count_state_name(count->state));
	else
		printf("%-16s %" PRIu64 " %s\n", tally_event_name(event), count->value,
		       tally_event_unit(event));
}

/* A group: both events are counted over the same stretch of time. */
static int count_work(struct tally_events *events, struct tally_error *err)
{
	struct tally_target target = { .scope = TALLY_SCOPE_SELF };
	struct tally_count counts[2];
	struct tally_group *group;

	int r = tally_group_open(&group, events, 0, &target, NULL, err);
	if (r < 0)
		return r;
	r = tally_group_enable(group);
	if (r >= 0)
		r = work();
	if (r >= 0)
		r = tally_group_disable(group);
	if (r >= 0)
		r = tally_group_read(group, counts, 2);
	for (uint32_t i = 0; r >= 0 && i < tally_group_size(group); i++)
		print(tally_events_at(events, i), &counts[i]);
	if (r < 0)
		snprintf(err->text, sizeof(err->text), "counting failed");
	tally_group_close(group);
	return r;
}

int main(void)
{
	struct tally_events *events;
	struct tally_error err;

	if (tally_events_parse(&events, "{page-faults,task-clock}:u", NULL, &err) < 0 ||
	    count_work(events, &err) < 0) {
		fprintf(stderr, "count-region: %s\n", err.text);
		return EXIT_FAILURE;
	}
	tally_events_free(events);
	return EXIT_SUCCESS;
}
