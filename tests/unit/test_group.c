/* SPDX-License-Identifier: MIT */
/* group: members by id, verbs for the whole group, all or nothing. */
#include <stdlib.h>

#include <tally/group.h>

#include "fakeperf.h"
#include "fakeroot.h"
#include "tap.h"

static struct tally_events *events; /* faults, {page-faults,minor-faults,major-faults} */
static struct tally_error err;
static struct fakeroot root;

static struct tally_group *open_on(uint32_t scope, int32_t id, uint32_t flags)
{
	struct tally_target target = { .scope = scope, .id = id };
	struct tally_counter_opts opts = { sizeof(opts), flags, root.path };
	struct tally_group *group = NULL;

	return tally_group_open(&group, events, 1, &target, &opts, &err) < 0 ? NULL : group;
}

static void followers_are_opened_enabled_below_the_leader(void)
{
	fake_reset();
	struct tally_group *group = open_on(TALLY_SCOPE_PROCESS, 100, 0);
	require(group != NULL);
	check_int(tally_group_size(group), 3);
	require(fake.opened == 6);
	for (int i = 0; i < 6; i++) {
		const struct fake_event *e = fake_nth(i);
		bool leads = i % 3 == 0;
		check_int(e->pid, 100 + i / 3);
		check_int(e->leader, leads ? -1 : FAKE_FIRST + i / 3 * 3);
		check_int(!!(e->attr.flags & TALLY_ATTR_DISABLED), leads);
		/* The kernel wants members to agree on it. */
		check(e->attr.flags & TALLY_ATTR_INHERIT);
		check(e->attr.read_format & TALLY_READ_GROUP);
		check(e->attr.read_format & TALLY_READ_ID);
	}
	tally_group_close(group);
	check_int(fake.open, 0);
}

static void the_exec_enables_the_leader(void)
{
	fake_reset();
	struct tally_group *group = open_on(TALLY_SCOPE_COMMAND, 100, 0);
	require(group != NULL);
	check(fake_nth(0)->attr.flags & TALLY_ATTR_ENABLE_ON_EXEC);
	check(fake_nth(0)->attr.flags & TALLY_ATTR_DISABLED);
	check(!(fake_nth(1)->attr.flags & (TALLY_ATTR_ENABLE_ON_EXEC | TALLY_ATTR_DISABLED)));
	tally_group_close(group);
}

static void give_values(int first, uint64_t base)
{
	for (int i = 0; i < 3; i++) {
		fake_nth(first + i)->value = base + (unsigned)i;
		fake_nth(first + i)->enabled = 100;
		fake_nth(first + i)->running = 100;
	}
}

static void members_are_matched_by_id(void)
{
	struct tally_count counts[3];

	fake_reset();
	struct tally_group *group = open_on(TALLY_SCOPE_SELF, 0, 0);
	require(group != NULL);
	give_values(0, 10);
	fake_nth(2)->lost = 4;
	for (int order = 0; order < 2; order++) {
		fake.reversed = order;
		memset(counts, 0xff, sizeof(counts));
		check_int(tally_group_read(group, counts, 3), 0);
		for (unsigned i = 0; i < 3; i++) {
			check_u64(counts[i].value, 10 + i);
			check_u64(counts[i].enabled_ns, 100);
			check_int(counts[i].state, TALLY_COUNT_EXACT);
			check_u64(counts[i].lost, i == 2 ? 4 : 0);
		}
	}
	tally_group_close(group);
}

static void places_are_summed_member_by_member(void)
{
	struct tally_count counts[3];

	fake_reset();
	struct tally_group *group = open_on(TALLY_SCOPE_PROCESS, 100, 0);
	require(group != NULL);
	give_values(0, 10);
	give_values(3, 1000);
	fake.reversed = true;
	check_int(tally_group_read(group, counts, 3), 0);
	for (unsigned i = 0; i < 3; i++)
		check_u64(counts[i].value, 1010 + 2 * i);
	check_u64(counts[1].enabled_ns, 200);
	tally_group_close(group);
}

static void old_kernels_tell_no_lost(void)
{
	struct tally_count counts[3];

	fake_reset();
	fake.knows_lost = false;
	struct tally_group *group = open_on(TALLY_SCOPE_SELF, 0, 0);
	require(group != NULL);
	give_values(0, 10);
	check_int(tally_group_read(group, counts, 3), 0);
	for (unsigned i = 0; i < 3; i++) {
		check_u64(counts[i].value, 10 + i);
		check_u64(counts[i].lost, 0);
	}
	tally_group_close(group);
}

static void a_member_that_is_missing_is_an_error(void)
{
	struct tally_count counts[3];

	fake_reset();
	struct tally_group *group = open_on(TALLY_SCOPE_SELF, 0, 0);
	require(group != NULL);
	give_values(0, 10);
	fake.drops_last = true;
	check_int(tally_group_read(group, counts, 3), 0);
	check_int(counts[0].state, TALLY_COUNT_EXACT);
	check_u64(counts[1].value, 11);
	check_int(counts[2].state, TALLY_COUNT_ERROR);
	check_u64(counts[2].value, 0);
	tally_group_close(group);
}

static void end_of_file_is_an_error_of_all(void)
{
	struct tally_count counts[3];

	fake_reset();
	struct tally_group *group = open_on(TALLY_SCOPE_SELF, 0, 0);
	require(group != NULL);
	fake_nth(0)->end_of_file = true;
	check_int(tally_group_read(group, counts, 3), 0);
	for (int i = 0; i < 3; i++) {
		check_int(counts[i].state, TALLY_COUNT_ERROR);
		check_int(counts[i].error, -EBUSY);
	}
	tally_group_close(group);
}

static void short_reads_do_not_reach_beyond_what_was_read(void)
{
	struct tally_count counts[3];

	fake_reset();
	struct tally_group *group = open_on(TALLY_SCOPE_SELF, 0, 0);
	require(group != NULL);
	give_values(0, 10);
	/* Full once, so that the buffer holds stale words. */
	check_int(tally_group_read(group, counts, 3), 0);
	for (size_t cut = 1; cut < 24; cut++) {
		fake.cut_read = cut;
		check_int(tally_group_read(group, counts, 3), -EIO);
	}
	/* Head and one member of three words. */
	fake.cut_read = 24 + 24 + 16;
	check_int(tally_group_read(group, counts, 3), 0);
	check_u64(counts[0].value, 10);
	check_int(counts[1].state, TALLY_COUNT_ERROR);
	check_int(counts[2].state, TALLY_COUNT_ERROR);
	tally_group_close(group);
}

static void a_failed_read_changes_nothing(void)
{
	struct tally_count counts[3] = { { .value = 1 }, { .value = 2 }, { .value = 3 } };

	fake_reset();
	struct tally_group *group = open_on(TALLY_SCOPE_SELF, 0, 0);
	require(group != NULL);
	check_int(tally_group_read(group, counts, 2), -ENOSPC);
	fake.fail_read_code = -ECHILD;
	check_int(tally_group_read(group, counts, 3), -ECHILD);
	check_u64(counts[0].value, 1);
	check_u64(counts[2].value, 3);
	tally_group_close(group);
}

static void reset_is_a_baseline_of_all_members(void)
{
	struct tally_count counts[3];

	fake_reset();
	struct tally_group *group = open_on(TALLY_SCOPE_SELF, 0, 0);
	require(group != NULL);
	give_values(0, 10);
	check_int(tally_group_reset(group), 0);
	fake.reversed = true;
	fake_nth(1)->value += 5;
	fake_nth(0)->enabled = fake_nth(0)->running = 150;
	check_int(tally_group_read(group, counts, 3), 0);
	check_u64(counts[0].value, 0);
	check_u64(counts[1].value, 5);
	check_u64(counts[2].value, 0);
	check_u64(counts[2].enabled_ns, 50);
	tally_group_close(group);
}

static void verbs_act_on_the_whole_group(void)
{
	fake_reset();
	struct tally_group *group = open_on(TALLY_SCOPE_PROCESS, 100, 0);
	require(group != NULL);
	check_int(tally_group_enable(group), 0);
	check_int(tally_group_disable(group), 0);
	for (int i = 0; i < 6; i++) {
		check_int(fake_nth(i)->enables, i % 3 == 0);
		check_int(fake_nth(i)->disables, i % 3 == 0);
		check_int(fake_nth(i)->group_verbs, i % 3 == 0 ? 2 : 0);
	}
	tally_group_close(group);
}

static void a_failing_member_closes_all(void)
{
	for (int at = 1; at <= 6; at++) {
		fake_reset();
		fake.fail_open_at = at;
		fake.fail_open_code = -ENOENT;
		check(open_on(TALLY_SCOPE_PROCESS, 100, 0) == NULL);
		check_int(err.code, -ENOENT);
		check_has(err.text, tally_event_name(tally_events_at(events, 1 + (at - 1) % 3)));
		check_int(fake.opened, at - 1);
		check_int(fake.open, 0);
	}
	/* The kernel does not tell ids. */
	fake_reset();
	fake.fail_ioctl_fd = FAKE_FIRST + 4;
	fake.fail_ioctl_code = -ENOTTY;
	check(open_on(TALLY_SCOPE_PROCESS, 100, 0) == NULL);
	check_int(err.code, -ENOTTY);
	check_int(fake.open, 0);
}

static void only_leaders_open_a_group(void)
{
	struct tally_target target = { .scope = TALLY_SCOPE_SELF };
	struct tally_group *group = NULL;
	struct tally_count count;

	fake_reset();
	check_int(tally_group_open(&group, events, 2, &target, NULL, &err), -EINVAL);
	check_int(tally_group_open(&group, events, 4, &target, NULL, &err), -EINVAL);
	check_int(fake.opened, 0);
	/* One that is alone leads itself. */
	require(tally_group_open(&group, events, 0, &target, NULL, &err) == 0);
	check_int(tally_group_size(group), 1);
	fake_nth(0)->value = 3;
	check_int(tally_group_read(group, &count, 1), 0);
	check_u64(count.value, 3);
	tally_group_close(group);
	tally_group_close(NULL);
}

/* Each has its own room for the kernel's answer, and its own times. */
static void groups_of_different_sizes_are_read_in_turn(void)
{
	struct tally_target target = { .scope = TALLY_SCOPE_SELF };
	struct tally_count counts[3], one;
	struct tally_group *small = NULL;

	fake_reset();
	struct tally_group *large = open_on(TALLY_SCOPE_SELF, 0, 0);
	require(large != NULL);
	require(tally_group_open(&small, events, 0, &target, NULL, &err) == 0);
	give_values(0, 10);
	*fake_nth(3) = (struct fake_event){ true,         fake_nth(3)->attr, .leader = -1,
					    .value = 700, .enabled = 8,      .running = 4 };
	for (int round = 0; round < 2; round++) {
		check_int(tally_group_read(small, &one, 1), 0);
		check_int(tally_group_read(large, counts, 3), 0);
		check_u64(one.raw, 700);
		check_u64(one.value, 1400);
		check_int(one.state, TALLY_COUNT_SCALED);
		for (unsigned i = 0; i < 3; i++)
			check_u64(counts[i].value, 10 + i);
		check_u64(counts[2].enabled_ns, 100);
	}
	tally_group_close(large);
	check_int(tally_group_read(small, &one, 1), 0);
	check_u64(one.raw, 700);
	tally_group_close(small);
	check_int(fake.open, 0);
}

int main(void)
{
	fake_reset();
	if (!fakeroot_make(&root) ||
	    !fakeroot_file(&root, "/proc/100/task/100/stat", "100 (a) R 1") ||
	    !fakeroot_file(&root, "/proc/100/task/101/stat", "101 (a) R 1") ||
	    tally_events_parse(&events, "faults,{page-faults,minor-faults,major-faults}", NULL,
			       &err) < 0) {
		printf("Bail out! no made-up machine: %s\n", err.text);
		return 1;
	}
	tap_run(followers_are_opened_enabled_below_the_leader);
	tap_run(the_exec_enables_the_leader);
	tap_run(members_are_matched_by_id);
	tap_run(places_are_summed_member_by_member);
	tap_run(old_kernels_tell_no_lost);
	tap_run(a_member_that_is_missing_is_an_error);
	tap_run(end_of_file_is_an_error_of_all);
	tap_run(short_reads_do_not_reach_beyond_what_was_read);
	tap_run(a_failed_read_changes_nothing);
	tap_run(reset_is_a_baseline_of_all_members);
	tap_run(verbs_act_on_the_whole_group);
	tap_run(a_failing_member_closes_all);
	tap_run(only_leaders_open_a_group);
	tap_run(groups_of_different_sizes_are_read_in_turn);
	fakeroot_remove(&root);
	tally_events_free(events);
	return tap_end();
}
