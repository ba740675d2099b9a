/* SPDX-License-Identifier: MIT */
/* set: groups in several pieces, on request or where the kernel refuses the whole. */
#include <stdlib.h>

#include <tally/group.h>

#include "fakeperf.h"
#include "fakeroot.h"
#include "tap.h"

#define MEMBERS 5u

static struct tally_events *events; /* a group of five, and the same one as weak */
static struct tally_error err;
static struct fakeroot root;

static struct tally_group *open_on(uint32_t leader, uint32_t scope, uint32_t flags)
{
	struct tally_target target = { .scope = scope, .id = 100 };
	struct tally_counter_opts opts = { sizeof(opts), flags, root.path, 0 };
	struct tally_group *group = NULL;
	int r = tally_group_open(&group, events, leader, &target, &opts, &err);

	return r < 0 ? NULL : group;
}

static void counted(int nth, uint64_t value, uint64_t enabled, uint64_t running)
{
	fake_nth(nth)->value = value;
	fake_nth(nth)->enabled = enabled;
	fake_nth(nth)->running = running;
}

/* The leaders of the events from `first` on, each by how many events it lies behind `first`. */
static void check_leaders(int first, const int *leaders, int count)
{
	for (int i = 0; i < count; i++)
		check_int(fake_nth(first + i)->leader,
			  leaders[i] == i ? -1 : FAKE_FIRST + first + leaders[i]);
}

static void it_is_split_on_request(void)
{
	static const int pairs[] = { 0, 0, 2, 2, 4 };
	struct tally_count counts[MEMBERS];

	fake_reset();
	struct tally_group *group = open_on(0, TALLY_SCOPE_SELF, TALLY_COUNTER_ENABLED);
	require(group != NULL);
	check(!tally_group_is_split(group));
	check_int(tally_group_pieces(group), 1);
	for (int i = 0; i < 5; i++)
		counted(i, 100u + (unsigned)i, 50, 50);
	check_int(tally_group_split(group, 2, &err), 0);
	check(tally_group_is_split(group));
	check_int(tally_group_pieces(group), 3);
	check_int(tally_group_size(group), MEMBERS);
	require(fake.opened == 10 && fake.open == 5);
	check_leaders(5, pairs, 5);
	for (int i = 5; i < 10; i++) {
		bool leads = fake_nth(i)->leader < 0;
		check_int(!!(fake_nth(i)->attr.flags & TALLY_ATTR_DISABLED), leads);
		check(fake_nth(i)->on);
	}
	/* Each piece has times of its own; the order is that of the members. */
	counted(5, 1, 10, 10);
	counted(7, 3, 20, 10);
	counted(9, 5, 40, 40);
	fake_nth(6)->value = 2;
	fake_nth(8)->value = 4;
	check_int(tally_group_read(group, counts, MEMBERS), 0);
	for (unsigned i = 0; i < MEMBERS; i++)
		check_u64(counts[i].raw, 100 + i + i + 1);
	check_u64(counts[1].enabled_ns, 60);
	check_u64(counts[2].enabled_ns, 70);
	check_u64(counts[2].running_ns, 60);
	check_int(counts[2].state, TALLY_COUNT_SCALED);
	check_u64(counts[2].value, 105ull * 70 / 60);
	check_u64(counts[4].enabled_ns, 90);
	check_int(counts[4].state, TALLY_COUNT_EXACT);
	/* Verbs reach all of it. */
	check_int(tally_group_disable(group), 0);
	for (int i = 5; i < 10; i++)
		check(!fake_nth(i)->on);
	check_int(tally_counter_fd(tally_group_member(group, 3), 0), FAKE_FIRST + 8);
	/* Together again. */
	check_int(tally_group_split(group, MEMBERS, &err), 0);
	check(!tally_group_is_split(group));
	require(fake.opened == 15);
	check_int(fake_nth(14)->leader, FAKE_FIRST + 10);
	check(!fake_nth(10)->on);
	check_int(tally_counter_generation(tally_group_member(group, 0)), 2);
	tally_group_close(group);
	check_int(fake.open, 0);
}

static void what_never_ran_is_scaled_over_all_its_time(void)
{
	struct tally_count counts[MEMBERS];

	fake_reset();
	struct tally_group *group = open_on(0, TALLY_SCOPE_SELF, TALLY_COUNTER_ENABLED);
	require(group != NULL);
	counted(0, 0, 100, 0);
	check_int(tally_group_split(group, 1, &err), 0);
	counted(5, 30, 100, 100);
	check_int(tally_group_read(group, counts, MEMBERS), 0);
	check_int(counts[0].state, TALLY_COUNT_SCALED);
	check_u64(counts[0].value, 60);
	/* From a reset on it is exact. */
	check_int(tally_group_reset(group), 0);
	counted(5, 37, 110, 110);
	check_int(tally_group_read(group, counts, MEMBERS), 0);
	check_int(counts[0].state, TALLY_COUNT_EXACT);
	check_u64(counts[0].value, 7);
	tally_group_close(group);
}

static void an_error_stays_until_it_is_reset(void)
{
	struct tally_count counts[MEMBERS];

	fake_reset();
	struct tally_group *group = open_on(0, TALLY_SCOPE_SELF, 0);
	require(group != NULL);
	fake_nth(0)->end_of_file = true;
	check_int(tally_group_split(group, 4, &err), 0);
	check_int(tally_group_read(group, counts, MEMBERS), 0);
	check_int(counts[4].state, TALLY_COUNT_ERROR);
	check_int(counts[4].error, -EBUSY);
	check_int(tally_group_reset(group), 0);
	check_int(tally_group_read(group, counts, MEMBERS), 0);
	check_int(counts[4].state, TALLY_COUNT_EXACT);
	tally_group_close(group);
}

static void a_split_that_fails_leaves_it_whole(void)
{
	for (int at = 6; at <= 10; at++) {
		fake_reset();
		struct tally_group *group = open_on(0, TALLY_SCOPE_SELF, TALLY_COUNTER_ENABLED);
		require(group != NULL);
		fake.fail_open_at = at;
		fake.fail_open_code = -EMFILE;
		check_int(tally_group_split(group, 2, &err), -EMFILE);
		check(!tally_group_is_split(group));
		check_int(fake.open, 5);
		check(fake_nth(0)->open && fake_nth(0)->on && fake_nth(4)->on);
		check_int(tally_group_split(group, 0, &err), -EINVAL);
		tally_group_close(group);
	}
}

static void what_is_followed_is_not_lost_by_a_split(void)
{
	fake_reset();
	struct tally_group *group = open_on(0, TALLY_SCOPE_PROCESS, 0);
	require(group != NULL);
	counted(0, 0, 100, 0);
	check_int(tally_group_split(group, 2, &err), -EBUSY);
	check_has(err.text, "follows");
	tally_group_close(group);
}

/* PMUs that take 1, 2, ... members at a time. */
static void a_weak_group_is_split_where_the_kernel_refuses_it(void)
{
	static const int want[][5] = {
		{ 0, 1, 2, 3, 4 }, { 0, 0, 2, 2, 4 }, { 0, 0, 0, 3, 3 },
		{ 0, 0, 0, 0, 4 }, { 0, 0, 0, 0, 0 },
	};

	for (int most = 1; most <= 5; most++) {
		struct tally_count counts[MEMBERS];
		int of_member[MEMBERS], n = 0;

		fake_reset();
		fake.most_members = most;
		/* By the flag and by the modifier W. */
		struct tally_group *group = open_on(most % 2 ? 0 : MEMBERS, TALLY_SCOPE_SELF,
						    TALLY_COUNTER_ENABLED |
							    (most % 2 ? TALLY_COUNTER_WEAK : 0));
		require(group != NULL);
		check_int(fake.open, 5);
		for (int i = 0; i < fake.opened; i++)
			if (fake_nth(i)->open && n < 5)
				of_member[n++] = i;
		for (int i = 0; i < 5; i++) {
			int leader = want[most - 1][i];
			check_int(fake_nth(of_member[i])->leader,
				  leader == i ? -1 : FAKE_FIRST + of_member[leader]);
			fake_nth(of_member[i])->value = 10u + (unsigned)i;
		}
		check_int(tally_group_is_split(group), most < 5);
		check_int(tally_group_read(group, counts, MEMBERS), 0);
		for (unsigned i = 0; i < MEMBERS; i++)
			check_u64(counts[i].value, 10 + i);
		tally_group_close(group);
		check_int(fake.open, 0);
	}
}

static void a_process_is_stopped_once_for_all_pieces(void)
{
	fake_reset();
	fake.most_members = 2;
	struct tally_group *group = open_on(MEMBERS, TALLY_SCOPE_PROCESS, 0);
	require(group != NULL);
	check_int(tally_group_pieces(group), 3);
	check(tally_group_start_exact(group));
	check_int(fake.seized, 1);
	check_int(fake.detached, 1);
	check_int(tally_group_split(group, 1, &err), 0);
	check_int(fake.seized, 2);
	check_int(fake.detached, 2);
	tally_group_close(group);
	/* And let go when it fails. */
	fake_reset();
	fake.most_members = 2;
	fake.fail_open_at = 5;
	fake.fail_open_code = -EMFILE;
	check(open_on(MEMBERS, TALLY_SCOPE_PROCESS, 0) == NULL);
	check_int(fake.detached, fake.seized);
	check_int(fake.open, 0);
}

static void others_are_refused_as_the_kernel_refuses_them(void)
{
	fake_reset();
	fake.most_members = 3;
	check(open_on(0, TALLY_SCOPE_SELF, 0) == NULL);
	check_int(err.code, -EINVAL);
	check_int(fake.open, 0);
	/* A weak one for any other reason too, and when a single event is refused. */
	for (int at = 1; at <= 5; at++) {
		fake_reset();
		fake.fail_open_at = at;
		fake.fail_open_code = -EACCES;
		check(open_on(0, TALLY_SCOPE_SELF, TALLY_COUNTER_WEAK) == NULL);
		check_int(err.code, -EACCES);
		check_int(fake.open, 0);
	}
}

static void members_are_read_one_by_one_where_asked(void)
{
	struct tally_count counts[MEMBERS];

	fake_reset();
	struct tally_group *group = open_on(0, TALLY_SCOPE_SELF, TALLY_COUNTER_MEMBER_TIMES);
	require(group != NULL);
	for (int i = 0; i < 5; i++) {
		check(!(fake_nth(i)->attr.read_format & TALLY_READ_GROUP));
		counted(i, 10u * (unsigned)i, 100, 100u - (unsigned)i);
	}
	check_int(tally_group_read(group, counts, MEMBERS), 0);
	for (unsigned i = 0; i < MEMBERS; i++) {
		check_u64(counts[i].raw, 10 * i);
		check_u64(counts[i].running_ns, 100 - i);
	}
	fake_nth(3)->end_of_file = true;
	check_int(tally_group_read(group, counts, MEMBERS), 0);
	for (int i = 0; i < 5; i++)
		check_int(counts[i].state, i == 0   ? TALLY_COUNT_EXACT
					   : i == 3 ? TALLY_COUNT_ERROR
						    : TALLY_COUNT_SCALED);
	for (size_t cut = 1; cut < 40; cut++) {
		fake.cut_read = cut;
		check_int(tally_group_read(group, counts, MEMBERS), -EIO);
	}
	tally_group_close(group);
}

static void old_kernels_tell_no_lost_of_single_members(void)
{
	struct tally_count counts[MEMBERS];

	fake_reset();
	fake.knows_lost = false;
	struct tally_group *group = open_on(0, TALLY_SCOPE_SELF, TALLY_COUNTER_MEMBER_TIMES);
	require(group != NULL);
	fake_nth(4)->value = 9;
	check_int(tally_group_read(group, counts, MEMBERS), 0);
	check_u64(counts[4].value, 9);
	tally_group_close(group);
}

/* It was off before the exec, since it was disabled, and stays so. */
static void what_the_exec_did_not_enable_it_does_not_enable_later(void)
{
	fake_reset();
	struct tally_group *group = open_on(0, TALLY_SCOPE_COMMAND, TALLY_COUNTER_ENABLED);
	require(group != NULL);
	check(!(fake_nth(0)->attr.flags & TALLY_ATTR_ENABLE_ON_EXEC));
	check_int(tally_group_disable(group), 0);
	require(tally_group_split(group, 3, &err) == 0);
	check(!(fake_nth(5)->attr.flags & TALLY_ATTR_ENABLE_ON_EXEC));
	check(!fake_nth(5)->on);
	tally_group_close(group);
	/* Without ENABLED it is the exec that does. */
	group = open_on(0, TALLY_SCOPE_COMMAND, 0);
	require(group != NULL);
	require(tally_group_split(group, 3, &err) == 0);
	check(fake_nth(fake.opened - 1)->open);
	check(fake_nth(fake.opened - 5)->attr.flags & TALLY_ATTR_ENABLE_ON_EXEC);
	tally_group_close(group);
}

static void targets_need_not_be_kept(void)
{
	int32_t *cpus = malloc(2 * sizeof(*cpus));
	char *path = strdup(root.path);
	struct tally_target target = { .scope = TALLY_SCOPE_CPUS, .cpus = cpus, .cpu_count = 2 };
	struct tally_counter_opts opts = { sizeof(opts), 0, path, 0 };
	struct tally_group *group = NULL;

	require(cpus && path);
	cpus[0] = 2;
	cpus[1] = 0;
	fake_reset();
	require(tally_group_open(&group, events, 0, &target, &opts, &err) == 0);
	cpus[0] = cpus[1] = 77;
	free(cpus);
	free(path);
	check_int(tally_group_split(group, 4, &err), 0);
	require(fake.opened == 20);
	for (int i = 0; i < 10; i++)
		check_int(fake_nth(10 + i)->cpu, i < 4 ? 2 : i < 8 ? 0 : i == 8 ? 2 : 0);
	tally_group_close(group);
}

int main(void)
{
	fake_reset();
	if (!fakeroot_make(&root) ||
	    !fakeroot_file(&root, "/proc/100/task/100/stat", "100 (a) R 1") ||
	    !fakeroot_file(&root, "/sys/devices/system/cpu/online", "0-2\n") ||
	    tally_events_parse(&events,
			       "{page-faults,minor-faults,major-faults,cs,migrations},"
			       "{page-faults,minor-faults,major-faults,cs,migrations}:W",
			       NULL, &err) < 0) {
		printf("Bail out! no made-up machine: %s\n", err.text);
		return 1;
	}
	tap_run(it_is_split_on_request);
	tap_run(what_never_ran_is_scaled_over_all_its_time);
	tap_run(an_error_stays_until_it_is_reset);
	tap_run(a_split_that_fails_leaves_it_whole);
	tap_run(what_is_followed_is_not_lost_by_a_split);
	tap_run(a_weak_group_is_split_where_the_kernel_refuses_it);
	tap_run(a_process_is_stopped_once_for_all_pieces);
	tap_run(others_are_refused_as_the_kernel_refuses_them);
	tap_run(members_are_read_one_by_one_where_asked);
	tap_run(old_kernels_tell_no_lost_of_single_members);
	tap_run(what_the_exec_did_not_enable_it_does_not_enable_later);
	tap_run(targets_need_not_be_kept);
	fakeroot_remove(&root);
	tally_events_free(events);
	return tap_end();
}
