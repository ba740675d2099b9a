/* SPDX-License-Identifier: MIT */
/* profile/group-reads: what each count of a group adds to that of the sample before. */
#include "profile/group-reads.h"
#include "tap.h"

static struct group_reads g;

static int grown(uint64_t id, int32_t tid, uint64_t count, uint32_t *event, uint64_t *more)
{
	*event = UINT32_MAX;
	*more = UINT64_MAX;
	return group_reads_grown(&g, id, tid, count, event, more);
}

static void check_grown(uint64_t id, int32_t tid, uint64_t count, uint32_t event, uint64_t want)
{
	uint64_t more;
	uint32_t got;

	check_int(grown(id, tid, count, &got, &more), 1);
	check_u64(got, event);
	check_u64(more, want);
}

/* Ids 10, 11 are the first event's on two CPUs; 20, 21 the second's. */
static void begin(bool per_task)
{
	const uint64_t first[] = { 10, 11 }, second[] = { 20, 21 };

	g = (struct group_reads){ 0 };
	check_int(group_reads_add(&g, first, 2, per_task), 0);
	check_int(group_reads_add(&g, second, 2, per_task), 0);
}

static void each_id_grows_by_itself(void)
{
	begin(false);
	check_grown(10, 1, 100, 0, 100);
	check_grown(20, 1, 7, 1, 7);
	check_grown(11, 1, 1000, 0, 1000);
	check_grown(10, 1, 150, 0, 50);
	check_grown(20, 1, 7, 1, 0);
	check_grown(11, 1, 1001, 0, 1);
	group_reads_done(&g);
}

static void what_counts_a_cpu_does_not_care_for_tasks(void)
{
	begin(false);
	check_grown(10, 1, 100, 0, 100);
	check_grown(10, 2, 130, 0, 30);
	group_reads_done(&g);
}

static void those_who_inherit_count_from_zero(void)
{
	begin(true);
	check_grown(10, 1, 100, 0, 100);
	check_grown(10, 2, 30, 0, 30);
	check_grown(10, 1, 101, 0, 1);
	check_grown(10, 2, 130, 0, 100);
	group_reads_done(&g);
}

static void a_count_that_fell_began_anew(void)
{
	begin(true);
	check_grown(10, 1, 100, 0, 100);
	check_grown(10, 1, 60, 0, 60);
	group_reads_done(&g);
}

static void an_id_of_no_event_is_none(void)
{
	uint64_t more;
	uint32_t event;

	begin(false);
	check_int(grown(12, 1, 5, &event, &more), 0);
	group_reads_done(&g);
}

int main(void)
{
	tap_run(each_id_grows_by_itself);
	tap_run(what_counts_a_cpu_does_not_care_for_tasks);
	tap_run(those_who_inherit_count_from_zero);
	tap_run(a_count_that_fell_began_anew);
	tap_run(an_id_of_no_event_is_none);
	return tap_end();
}
