/* SPDX-License-Identifier: MIT */
/* verbs: what each asks the kernel for, and what becomes of counts when an event is opened anew. */
#include <stdlib.h>

#include <tally/group.h>

#include "fakeperf.h"
#include "fakeroot.h"
#include "tap.h"

static struct tally_events *events; /* t:one, then {t:two,t:three,faults} */
static struct tally_events *watch;  /* a breakpoint */
static struct tally_error err;
static struct fakeroot root;

static struct tally_counter *open_event(struct tally_event *event, uint32_t scope, uint32_t flags,
					uint64_t period)
{
	struct tally_target target = { .scope = scope, .id = 100 };
	struct tally_counter_opts opts = { sizeof(opts), flags, root.path, period };
	struct tally_counter *counter = NULL;

	return tally_counter_open(&counter, event, &target, &opts, &err) < 0 ? NULL : counter;
}

static struct tally_counter *open_on(uint32_t scope, uint32_t flags, uint64_t period)
{
	fake_reset();
	return open_event(tally_events_at(events, 0), scope, flags, period);
}

static struct tally_group *open_group(uint32_t flags)
{
	struct tally_target self = { .scope = TALLY_SCOPE_SELF };
	struct tally_counter_opts opts = { sizeof(opts), flags, root.path, 5 };
	struct tally_group *group = NULL;

	fake_reset();
	return tally_group_open(&group, events, 1, &self, &opts, &err) < 0 ? NULL : group;
}

static void a_period_makes_it_a_sampling_event(void)
{
	struct tally_counter *counter = open_on(TALLY_SCOPE_SELF, 0, 1000);

	require(counter != NULL);
	check_u64(fake_nth(0)->attr.sample_period, 1000);
	check(!(fake_nth(0)->attr.flags & TALLY_ATTR_FREQ));
	check_int(tally_counter_set_period(counter, 77), 0);
	check_u64(fake_nth(0)->period, 77);
	check_int(tally_counter_set_period(counter, 0), -EINVAL);
	check_int(tally_counter_set_period(counter, 1ull << 63), -EINVAL);
	tally_counter_close(counter);
	counter = open_on(TALLY_SCOPE_SELF, 0, 0);
	require(counter != NULL);
	check_int(tally_counter_set_period(counter, 77), -EINVAL);
	check_int(tally_counter_refresh(counter, 1), -EINVAL);
	tally_counter_close(counter);
}

static void refresh_passes_its_number_on(void)
{
	struct tally_counter *counter = open_on(TALLY_SCOPE_PROCESS, TALLY_COUNTER_NO_INHERIT, 1);

	require(counter != NULL);
	check_int(tally_counter_refresh(counter, 3), 0);
	/* The kernel takes 0 for no limit. */
	check_int(tally_counter_refresh(counter, 0), -EINVAL);
	check_int(tally_counter_refresh(counter, 0x80000000u), -EINVAL);
	for (int i = 0; i < 2; i++)
		check_u64(fake_nth(i)->limit, 3);
	tally_counter_close(counter);
}

static void all_places_are_tried_and_the_first_error_is_told(void)
{
	struct tally_counter *counter = open_on(TALLY_SCOPE_PROCESS, TALLY_COUNTER_NO_INHERIT, 1);

	require(counter != NULL);
	fake.fail_ioctl_fd = FAKE_FIRST;
	fake.fail_ioctl_code = -EIO;
	check_int(tally_counter_set_period(counter, 9), -EIO);
	check_u64(fake_nth(0)->period, 1);
	check_u64(fake_nth(1)->period, 9);
	tally_counter_close(counter);
}

static void ids_are_those_of_a_place(void)
{
	struct tally_counter *counter = open_on(TALLY_SCOPE_PROCESS, 0, 0);
	uint64_t id = 5;

	require(counter != NULL);
	check_int(tally_counter_id(counter, 1, &id), 0);
	check_u64(id, fake_nth(1)->id);
	check_int(tally_counter_id(counter, 2, &id), -EINVAL);
	check_u64(id, fake_nth(1)->id);
	tally_counter_close(counter);
}

static void outputs_are_set_and_detached_with_all_bits(void)
{
	struct tally_counter *counter = open_on(TALLY_SCOPE_PROCESS, 0, 1);

	require(counter != NULL);
	check_int(tally_counter_set_output(counter, 1, FAKE_FIRST), 0);
	check_u64(fake_nth(1)->output, FAKE_FIRST);
	check_u64(fake_nth(0)->output, 0);
	check_int(tally_counter_set_output(counter, 1, -1), -EBADF);
	check_int(tally_counter_set_output(counter, 2, FAKE_FIRST), -EINVAL);
	check_u64(fake_nth(1)->output, FAKE_FIRST);
	check_int(tally_counter_detach_output(counter, 1), 0);
	check_u64(fake_nth(1)->output, UINT64_MAX);
	check_int(tally_counter_detach_output(counter, 2), -EINVAL);
	check_int(tally_counter_pause_output(counter, true), 0);
	check(fake_nth(0)->paused && fake_nth(1)->paused);
	check_int(tally_counter_pause_output(counter, false), 0);
	check(!fake_nth(0)->paused && !fake_nth(1)->paused);
	tally_counter_close(counter);
}

static void programs_are_set_and_queried(void)
{
	struct tally_counter *counter = open_on(TALLY_SCOPE_SELF, 0, 0);
	uint32_t ids[3] = { 0, 0, 99 };

	require(counter != NULL);
	check_int(tally_counter_query_bpf(counter, 0, ids, 3), 0);
	check_int(tally_counter_set_bpf(counter, 41), 0);
	check_int(tally_counter_set_bpf(counter, 42), 0);
	check_int(tally_counter_set_bpf(counter, 43), 0);
	check_int(tally_counter_set_bpf(counter, -1), -EBADF);
	/* How many there are, of which as many as there is room for. */
	check_int(tally_counter_query_bpf(counter, 0, ids, 2), 3);
	check_u64(ids[0], 41);
	check_u64(ids[1], 42);
	check_u64(ids[2], 99);
	check_int(tally_counter_query_bpf(counter, 1, ids, 2), -EINVAL);
	tally_counter_close(counter);
}

/* Values of an event that counted all the time. */
static void counted(int nth, uint64_t value, uint64_t ns)
{
	fake_nth(nth)->value = value;
	fake_nth(nth)->enabled = fake_nth(nth)->running = ns;
}

static void a_first_filter_opens_nothing_anew(void)
{
	struct tally_counter *counter = open_on(TALLY_SCOPE_PROCESS, 0, 0);

	require(counter != NULL);
	counted(0, 3, 30);
	check_int(tally_counter_set_filter(counter, "a == 1", &err), 0);
	check_int(fake.opened, 2);
	check_str(fake_nth(0)->filter, "a == 1");
	check_str(fake_nth(1)->filter, "a == 1");
	check_int(tally_counter_generation(counter), 0);
	check_str(tally_event_filter(tally_events_at(events, 0)), "a == 1");
	tally_counter_close(counter);
	tally_event_set_filter(tally_events_at(events, 0), NULL);
}

static void a_further_filter_keeps_the_sum(void)
{
	struct tally_counter *counter = open_on(TALLY_SCOPE_PROCESS, TALLY_COUNTER_NO_INHERIT, 0);
	struct tally_count count;

	require(counter != NULL);
	counted(0, 100, 50);
	check_int(tally_counter_reset(counter), 0);
	check_int(tally_counter_enable(counter), 0);
	check_int(tally_counter_set_filter(counter, "a == 1", &err), 0);
	counted(0, 103, 60);
	counted(1, 10, 40);
	check_int(tally_counter_set_filter(counter, "a == 2", &err), 0);
	check_int(tally_counter_generation(counter), 1);
	/* The old two are stopped and closed, the new two go on. */
	require(fake.opened == 4);
	check_int(fake.open, 2);
	for (int i = 0; i < 2; i++) {
		check(!fake_nth(i)->open && !fake_nth(i)->on);
		check(fake_nth(i + 2)->open && fake_nth(i + 2)->on);
		check(fake_nth(i + 2)->attr.flags & TALLY_ATTR_DISABLED);
		check_str(fake_nth(i + 2)->filter, "a == 2");
		check_int(fake_nth(i + 2)->pid, 100 + i);
	}
	counted(2, 7, 5);
	counted(3, 1, 5);
	check_int(tally_counter_read(counter, &count), 0);
	check_u64(count.value, 3 + 10 + 7 + 1);
	check_u64(count.enabled_ns, 10 + 40 + 5 + 5);
	check_int(count.state, TALLY_COUNT_EXACT);
	/* A reset forgets what was carried. */
	check_int(tally_counter_reset(counter), 0);
	counted(2, 8, 6);
	check_int(tally_counter_read(counter, &count), 0);
	check_u64(count.value, 1);
	check_u64(count.enabled_ns, 1);
	/* Without any: opened anew as well, since the kernel cannot remove one. */
	check_int(tally_counter_set_filter(counter, NULL, &err), 0);
	check_int(tally_counter_generation(counter), 2);
	check_str(fake_nth(4)->filter, "");
	check_int(tally_counter_read(counter, &count), 0);
	check_u64(count.value, 1);
	tally_counter_close(counter);
	check_int(fake.open, 0);
}

static void a_filter_that_is_refused_changes_nothing(void)
{
	struct tally_counter *counter = open_on(TALLY_SCOPE_SELF, TALLY_COUNTER_ENABLED, 0);
	struct tally_count count;

	require(counter != NULL);
	fake.bad_filter = "no such field";
	check_int(tally_counter_set_filter(counter, "no such field", &err), -EINVAL);
	check_int(err.cause, TALLY_CAUSE_SYNTAX);
	check_has(err.text, "no such field");
	check(tally_event_filter(tally_events_at(events, 0)) == NULL);
	check_int(tally_counter_set_filter(counter, "a == 1", &err), 0);
	counted(0, 6, 6);
	check_int(tally_counter_set_filter(counter, "no such field", &err), -EINVAL);
	check_has(err.text, "no such field");
	check_str(tally_event_filter(tally_events_at(events, 0)), "a == 1");
	check_int(tally_counter_generation(counter), 0);
	check_int(fake.open, 1);
	check(fake_nth(0)->open && fake_nth(0)->on);
	/* Neither does one that cannot be opened, or read. */
	fake.fail_open_at = fake.opened + 1;
	fake.fail_open_code = -EMFILE;
	check_int(tally_counter_set_filter(counter, "a == 2", &err), -EMFILE);
	fake.fail_open_at = 0;
	fake.fail_read_code = -EPERM;
	check_int(tally_counter_set_filter(counter, "a == 2", &err), -EPERM);
	fake.fail_read_code = 0;
	check_str(tally_event_filter(tally_events_at(events, 0)), "a == 1");
	check_int(fake.open, 1);
	check(fake_nth(0)->open && fake_nth(0)->on);
	check_int(tally_counter_read(counter, &count), 0);
	check_u64(count.value, 6);
	tally_counter_close(counter);
	tally_event_set_filter(tally_events_at(events, 0), NULL);
	/* Not a tracepoint. */
	fake_reset();
	counter = open_event(tally_events_at(events, 3), TALLY_SCOPE_SELF, 0, 0);
	require(counter != NULL);
	check_int(tally_counter_set_filter(counter, "a == 1", &err), -EINVAL);
	check_int(err.cause, TALLY_CAUSE_UNSUPPORTED);
	tally_counter_close(counter);
}

static void what_is_followed_is_not_lost_by_a_filter(void)
{
	struct tally_counter *counter = open_on(TALLY_SCOPE_PROCESS, 0, 0);

	require(counter != NULL);
	check_int(tally_counter_set_filter(counter, "a == 1", &err), 0);
	/* It has not counted yet: then it is as if it was opened now. */
	check_int(tally_counter_set_filter(counter, "a == 2", &err), 0);
	check_int(tally_counter_generation(counter), 1);
	counted(2, 1, 10);
	check_int(tally_counter_set_filter(counter, "a == 3", &err), -EBUSY);
	/* A reset does not make it forget that. */
	check_int(tally_counter_reset(counter), 0);
	check_int(tally_counter_set_filter(counter, "a == 3", &err), -EBUSY);
	check_int(tally_counter_generation(counter), 1);
	check_str(tally_event_filter(tally_events_at(events, 0)), "a == 2");
	tally_counter_close(counter);
	tally_event_set_filter(tally_events_at(events, 0), NULL);
}

static void a_command_goes_on_by_what_its_exec_did(void)
{
	for (int after = 0; after < 2; after++) {
		struct tally_counter *counter = open_on(TALLY_SCOPE_COMMAND,
							TALLY_COUNTER_NO_INHERIT, 0);
		require(counter != NULL);
		check_int(tally_counter_set_filter(counter, "a == 1", &err), 0);
		if (after)
			counted(0, 1, 10);
		check_int(tally_counter_set_filter(counter, "a == 2", &err), 0);
		check_int(fake_nth(1)->on, after);
		check(fake_nth(1)->attr.flags & TALLY_ATTR_ENABLE_ON_EXEC);
		tally_counter_close(counter);
		tally_event_set_filter(tally_events_at(events, 0), NULL);
	}
}

static void events_are_opened_with_their_filter(void)
{
	struct tally_event *event = tally_events_at(events, 0);

	check_int(tally_event_set_filter(event, "a == 4"), 0);
	struct tally_counter *counter = open_on(TALLY_SCOPE_PROCESS, 0, 0);
	require(counter != NULL);
	check_str(fake_nth(0)->filter, "a == 4");
	check_str(fake_nth(1)->filter, "a == 4");
	tally_counter_close(counter);
	tally_event_set_filter(event, "b");
	fake_reset();
	fake.bad_filter = "b";
	check(open_event(event, TALLY_SCOPE_SELF, 0, 0) == NULL);
	check_int(err.code, -EINVAL);
	check_int(fake.open, 0);
	tally_event_set_filter(event, NULL);
}

static void a_member_acts_for_itself_and_is_not_switched(void)
{
	struct tally_group *group = open_group(0);
	struct tally_count count;

	require(group != NULL);
	struct tally_counter *second = tally_group_member(group, 1);
	require(second != NULL);
	check(tally_group_member(group, 3) == NULL);
	check_int(tally_counter_enable(second), -EINVAL);
	check_int(tally_counter_disable(second), -EINVAL);
	check_int(tally_counter_reset(second), -EINVAL);
	check_int(tally_counter_fd(second, 0), FAKE_FIRST + 1);
	check_int(tally_counter_fd(second, 1), -EINVAL);
	check_int(tally_counter_places(second, NULL), 1);
	check_int(tally_counter_set_period(second, 8), 0);
	check_int(tally_counter_refresh(second, 2), 0);
	for (int i = 0; i < 3; i++) {
		check_u64(fake_nth(i)->period, i == 1 ? 8 : 5);
		check_u64(fake_nth(i)->limit, i == 1 ? 2 : 0);
		check_int(fake_nth(i)->enables + fake_nth(i)->disables, 0);
		counted(i, 10 + (unsigned)i, 4);
	}
	check_int(tally_counter_read(second, &count), 0);
	check_u64(count.value, 11);
	/* Borrowed: nothing is closed. */
	tally_counter_close(second);
	check_int(fake.open, 3);
	tally_group_close(group);
}

static void a_members_filter_opens_the_whole_group_anew(void)
{
	struct tally_group *group = open_group(TALLY_COUNTER_ENABLED);
	struct tally_count counts[3];

	require(group != NULL);
	struct tally_counter *second = tally_group_member(group, 1);
	check_int(tally_counter_set_filter(second, "a == 1", &err), 0);
	for (int i = 0; i < 3; i++)
		counted(i, 10 * ((unsigned)i + 1), 100);
	check_int(tally_counter_set_filter(second, "a == 2", &err), 0);
	require(fake.opened == 6);
	check_int(fake.open, 3);
	check_int(tally_counter_generation(second), 1);
	check_int(tally_counter_generation(tally_group_member(group, 0)), 1);
	check_int(tally_counter_fd(second, 0), FAKE_FIRST + 4);
	for (int i = 3; i < 6; i++) {
		check_int(fake_nth(i)->leader, i == 3 ? -1 : FAKE_FIRST + 3);
		check_str(fake_nth(i)->filter, i == 4 ? "a == 2" : "");
		check(fake_nth(i)->on);
		counted(i, 1, 1);
	}
	check_int(tally_group_read(group, counts, 3), 0);
	for (unsigned i = 0; i < 3; i++) {
		check_u64(counts[i].value, 10 * (i + 1) + 1);
		check_u64(counts[i].enabled_ns, 101);
	}
	tally_group_close(group);
	check_int(fake.open, 0);
	tally_event_set_filter(tally_events_at(events, 2), NULL);
}

static struct tally_attr breakpoint_at(uint64_t address)
{
	struct tally_attr attr;

	tally_attr_init(&attr, TALLY_TYPE_BREAKPOINT, 0);
	attr.bp_type = 2; /* HW_BREAKPOINT_W */
	attr.config1 = address;
	attr.config2 = 8;
	return attr;
}

static void breakpoints_are_moved_at_all_places_or_none(void)
{
	struct tally_attr next = breakpoint_at(0x2000), bad = breakpoint_at(0x3000);

	fake_reset();
	struct tally_counter *counter = open_event(tally_events_at(watch, 0), TALLY_SCOPE_PROCESS,
						   0, 0);
	require(counter != NULL);
	check_int(tally_counter_modify(counter, &next, &err), 0);
	for (int i = 0; i < 2; i++) {
		check_u64(fake_nth(i)->attr.config1, 0x2000);
		check(!fake_nth(i)->on);
	}
	check_int(tally_counter_enable(counter), 0);
	next.config1 = 0x2008;
	check_int(tally_counter_modify(counter, &next, &err), 0);
	check(fake_nth(0)->on && fake_nth(1)->on);
	fake.bad_address = 0x3000;
	check_int(tally_counter_modify(counter, &bad, &err), -EINVAL);
	check_has(err.text, "0x3000");
	/* The second place refuses it: the first goes back. */
	fake.bad_address = 0;
	fake.fail_ioctl_fd = FAKE_FIRST + 1;
	fake.fail_ioctl_code = -ENOSPC;
	check_int(tally_counter_modify(counter, &bad, &err), -ENOSPC);
	for (int i = 0; i < 2; i++) {
		check_u64(fake_nth(i)->attr.config1, 0x2008);
		check(fake_nth(i)->on);
	}
	tally_counter_close(counter);
}

static void a_refused_change_leaves_it_counting(void)
{
	struct tally_attr bad = breakpoint_at(0x3000);

	fake_reset();
	struct tally_counter *counter = open_event(tally_events_at(watch, 0), TALLY_SCOPE_SELF, 0,
						   0);
	require(counter != NULL);
	check_int(tally_counter_enable(counter), 0);
	fake.bad_address = 0x3000;
	check_int(tally_counter_modify(counter, &bad, &err), -EINVAL);
	/* The kernel alone would leave it stopped: its disabled bit is that of the opening. */
	check(fake_nth(0)->on);
	tally_counter_close(counter);
}

static void only_breakpoints_are_modified(void)
{
	struct tally_attr next = breakpoint_at(0x2000), soft;
	struct tally_counter *counter = open_on(TALLY_SCOPE_SELF, 0, 0);

	require(counter != NULL);
	check_int(tally_counter_modify(counter, &next, &err), -EOPNOTSUPP);
	check_int(err.cause, TALLY_CAUSE_UNSUPPORTED);
	tally_counter_close(counter);
	fake_reset();
	counter = open_event(tally_events_at(watch, 0), TALLY_SCOPE_SELF, 0, 0);
	require(counter != NULL);
	tally_attr_init(&soft, TALLY_TYPE_SOFTWARE, 0);
	check_int(tally_counter_modify(counter, &soft, &err), -EOPNOTSUPP);
	check_u64(fake_nth(0)->attr.config1, 0x1000);
	tally_counter_close(counter);
}

static bool make_machine(void)
{
	struct tally_attr attr = breakpoint_at(0x1000);

	return fakeroot_make(&root) &&
	       fakeroot_file(&root, "/proc/100/task/100/stat", "100 (a) R 1") &&
	       fakeroot_file(&root, "/proc/100/task/101/stat", "101 (a) R 1") &&
	       fakeroot_file(&root, "/sys/kernel/tracing/events/header_page", "x\n") &&
	       fakeroot_file(&root, "/sys/kernel/tracing/events/t/one/id", "11\n") &&
	       fakeroot_file(&root, "/sys/kernel/tracing/events/t/two/id", "12\n") &&
	       fakeroot_file(&root, "/sys/kernel/tracing/events/t/three/id", "13\n") &&
	       tally_events_parse(&events, "t:one,{t:two,t:three,faults}",
				  TALLY_OPTS(events, .root = root.path), &err) == 0 &&
	       tally_events_new(&watch, "watch", &attr, NULL, &err) == 0;
}

int main(void)
{
	fake_reset();
	if (!make_machine()) {
		printf("Bail out! no made-up machine: %s\n", err.text);
		return 1;
	}
	tap_run(a_period_makes_it_a_sampling_event);
	tap_run(refresh_passes_its_number_on);
	tap_run(all_places_are_tried_and_the_first_error_is_told);
	tap_run(ids_are_those_of_a_place);
	tap_run(outputs_are_set_and_detached_with_all_bits);
	tap_run(programs_are_set_and_queried);
	tap_run(a_first_filter_opens_nothing_anew);
	tap_run(a_further_filter_keeps_the_sum);
	tap_run(a_filter_that_is_refused_changes_nothing);
	tap_run(what_is_followed_is_not_lost_by_a_filter);
	tap_run(a_command_goes_on_by_what_its_exec_did);
	tap_run(events_are_opened_with_their_filter);
	tap_run(a_member_acts_for_itself_and_is_not_switched);
	tap_run(a_members_filter_opens_the_whole_group_anew);
	tap_run(breakpoints_are_moved_at_all_places_or_none);
	tap_run(a_refused_change_leaves_it_counting);
	tap_run(only_breakpoints_are_modified);
	fakeroot_remove(&root);
	tally_events_free(events);
	tally_events_free(watch);
	return tap_end();
}
