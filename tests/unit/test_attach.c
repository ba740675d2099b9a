/* SPDX-License-Identifier: MIT */
/*
 * What a counter's options ask of the kernel, how it is attached to a process or a cgroup, what that
 * takes, and that whatever fails leaves nothing open.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>

#include <tally/counter.h>
#include <tally/freeze.h>
#include <tally/group.h>

#include "fakeperf.h"
#include "fakeroot.h"
#include "tap.h"

static struct tally_events *events; /* page-faults, {page-faults,minor-faults} */
static struct tally_error err;
static struct fakeroot root;

static struct tally_counter *open_it(uint32_t scope, int32_t id, struct tally_counter_opts opts)
{
	struct tally_target target = { .scope = scope, .id = id, .cgroup = "web" };
	struct tally_counter *counter = NULL;

	opts.size = sizeof(opts);
	opts.root = root.path;
	return tally_counter_open(&counter, tally_events_at(events, 0), &target, &opts, &err) < 0
		       ? NULL
		       : counter;
}

static struct tally_group *open_group(uint32_t scope, int32_t id, struct tally_counter_opts opts)
{
	struct tally_target target = { .scope = scope, .id = id, .cgroup = "web" };
	struct tally_group *group = NULL;

	opts.size = sizeof(opts);
	opts.root = root.path;
	return tally_group_open(&group, events, 1, &target, &opts, &err) < 0 ? NULL : group;
}

#define OPTS(...) ((struct tally_counter_opts){ __VA_ARGS__ })
#define F(name)   ((uint32_t)TALLY_COUNTER_##name)
#define A(name)   (TALLY_ATTR_##name)

static void each_option_is_in_the_attr(void)
{
	static const struct {
		uint32_t scope, flags;
		uint64_t want; /* flags of the attr */
	} rows[] = {
		{ TALLY_SCOPE_SELF, F(INHERIT), A(DISABLED) | A(INHERIT) },
		{ TALLY_SCOPE_THREAD, F(INHERIT_THREAD),
		  A(DISABLED) | A(INHERIT) | A(INHERIT_THREAD) },
		{ TALLY_SCOPE_PROCESS, F(INHERIT_THREAD),
		  A(DISABLED) | A(INHERIT) | A(INHERIT_THREAD) },
		{ TALLY_SCOPE_SELF, F(REMOVE_ON_EXEC), A(DISABLED) | A(REMOVE_ON_EXEC) },
		{ TALLY_SCOPE_SELF, F(PINNED), A(DISABLED) | A(PINNED) },
		{ TALLY_SCOPE_SYSTEM, F(EXCLUSIVE) | F(ENABLED), A(EXCLUSIVE) },
		{ TALLY_SCOPE_THREAD, F(ENABLE_ON_EXEC), A(DISABLED) | A(ENABLE_ON_EXEC) },
		{ TALLY_SCOPE_COMMAND, F(ENABLE_ON_EXEC),
		  A(DISABLED) | A(ENABLE_ON_EXEC) | A(INHERIT) },
		{ TALLY_SCOPE_COMMAND, F(ENABLED) | F(REMOVE_ON_EXEC),
		  A(INHERIT) | A(REMOVE_ON_EXEC) },
		{ TALLY_SCOPE_SELF, F(USE_CLOCKID), A(DISABLED) | A(USE_CLOCKID) },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		fake_reset();
		struct tally_counter *counter = open_it(rows[i].scope, 100,
							OPTS(.flags = rows[i].flags));
		if (!check(counter != NULL))
			continue;
		check_u64(fake_nth(0)->attr.flags & ~A(EXCLUDE_GUEST), rows[i].want);
		tally_counter_close(counter);
	}
}

static void periods_and_signals_are_in_the_attr(void)
{
	fake_reset();
	struct tally_counter *counter = open_it(TALLY_SCOPE_SELF, 0,
						OPTS(.flags = F(SIGTRAP) | F(USE_CLOCKID),
						     .period = 7, .sig_data = 0x1234567890ab,
						     .clockid = CLOCK_MONOTONIC));
	require(counter != NULL);
	const struct tally_attr *attr = &fake_nth(0)->attr;
	check_u64(attr->sample_period, 7);
	check(!(attr->flags & A(FREQ)));
	check(attr->flags & A(SIGTRAP));
	check(attr->flags & A(REMOVE_ON_EXEC));
	check_u64(attr->sig_data, 0x1234567890ab);
	check_int(attr->clockid, CLOCK_MONOTONIC);
	tally_counter_close(counter);
}

static void of_a_group_the_leader_is_pinned_and_signals(void)
{
	fake_reset();
	struct tally_group *group = open_group(
		TALLY_SCOPE_SELF, 0,
		OPTS(.flags = F(SIGTRAP) | F(PINNED) | F(EXCLUSIVE) | F(INHERIT) | F(USE_CLOCKID),
		     .period = 9, .clockid = CLOCK_BOOTTIME));
	uint64_t leader = A(SIGTRAP) | A(PINNED) | A(EXCLUSIVE) | A(DISABLED);
	uint64_t all = A(REMOVE_ON_EXEC) | A(INHERIT) | A(USE_CLOCKID);
	require(group != NULL);
	check_u64(fake_nth(0)->attr.flags & ~A(EXCLUDE_GUEST), leader | all);
	/* The kernel wants members to agree on inheritance and clocks. */
	check_u64(fake_nth(1)->attr.flags & ~A(EXCLUDE_GUEST), all);
	check_u64(fake_nth(0)->attr.sample_period, 9);
	check_u64(fake_nth(1)->attr.sample_period, 9);
	check_int(fake_nth(1)->attr.clockid, CLOCK_BOOTTIME);
	tally_group_close(group);
}

static void refuse(uint32_t scope, struct tally_counter_opts opts, const char *part)
{
	fake_reset();
	check(open_it(scope, 100, opts) == NULL);
	check_int(err.code, -EINVAL);
	check_int(err.cause, TALLY_CAUSE_ARGUMENT);
	check_has(err.text, part);
	check_int(fake.opened, 0);
}

/* perf_event_open(2): the kernel says EINVAL to some of these, and takes others without effect. */
static void what_contradicts_itself_is_refused_in_words(void)
{
	const uint32_t self = TALLY_SCOPE_SELF, cpus = TALLY_SCOPE_CPUS;

	refuse(self, OPTS(.flags = F(ENABLE_ON_EXEC) | F(REMOVE_ON_EXEC)), "exclude each other");
	refuse(TALLY_SCOPE_COMMAND, OPTS(.flags = F(REMOVE_ON_EXEC)), "exclude each other");
	refuse(self, OPTS(.flags = F(ENABLE_ON_EXEC) | F(SIGTRAP), .period = 1), "SIGTRAP implies");
	refuse(self, OPTS(.flags = F(ENABLE_ON_EXEC) | F(ENABLED)), "contradict");
	refuse(self, OPTS(.flags = F(NO_INHERIT) | F(INHERIT_THREAD)), "contradict");
	refuse(self, OPTS(.flags = F(SIGTRAP)), "needs a period");
	refuse(self, OPTS(.sig_data = 1), "sig_data");
	refuse(self, OPTS(.period = 1ull << 63), "63 bits");
	refuse(self, OPTS(.clockid = CLOCK_MONOTONIC), "USE_CLOCKID");
	refuse(self, OPTS(.reserved = 1), "reserved");
	refuse(cpus, OPTS(.flags = F(INHERIT)), "tasks");
	refuse(cpus, OPTS(.flags = F(ENABLE_ON_EXEC)), "tasks");
	refuse(TALLY_SCOPE_CGROUP, OPTS(.flags = F(SIGTRAP), .period = 1), "tasks");
	refuse(TALLY_SCOPE_SYSTEM, OPTS(.flags = F(REMOVE_ON_EXEC)), "tasks");
}

static void a_process_is_held_while_it_is_attached_to(void)
{
	struct tally_count count;

	fake_reset();
	struct tally_counter *counter = open_it(TALLY_SCOPE_PROCESS, 100, OPTS(.flags = 0));
	require(counter != NULL);
	check_int(fake.seized, 3);
	check_int(fake.detached, 3);
	check(tally_counter_start_exact(counter));
	check_int(tally_counter_read(counter, &count), 0);
	check_int(count.flags, 0);
	tally_counter_close(counter);
	/* Of the other scopes nobody is. */
	counter = open_it(TALLY_SCOPE_THREAD, 100, OPTS(.flags = 0));
	require(counter != NULL);
	check_int(fake.seized, 3);
	check(tally_counter_start_exact(counter));
	tally_counter_close(counter);
}

static void refused_or_unwanted_it_is_attached_to_as_it_runs(void)
{
	struct tally_count count, counts[2];

	for (int unwanted = 0; unwanted < 2; unwanted++) {
		uint32_t flags = unwanted ? F(NO_STOP) : 0;
		fake_reset();
		fake.ptrace_code = -EPERM;
		struct tally_counter *counter = open_it(TALLY_SCOPE_PROCESS, 100,
							OPTS(.flags = flags));
		struct tally_group *group = open_group(TALLY_SCOPE_PROCESS, 100,
						       OPTS(.flags = flags));
		require(counter != NULL && group != NULL);
		check_int(fake.open, 9);
		check(!tally_counter_start_exact(counter));
		check(!tally_group_start_exact(group));
		check_int(tally_counter_read(counter, &count), 0);
		check_int(count.flags, TALLY_COUNT_START_INEXACT);
		check_int(tally_counter_read_place(counter, 1, &count), 0);
		check_int(count.flags, TALLY_COUNT_START_INEXACT);
		check_int(tally_group_read(group, counts, 2), 0);
		check_int(counts[1].flags, TALLY_COUNT_START_INEXACT);
		/* A new zero does not mend which threads are counted. */
		check_int(tally_counter_reset(counter), 0);
		check_int(tally_counter_read(counter, &count), 0);
		check_int(count.flags, TALLY_COUNT_START_INEXACT);
		tally_counter_close(counter);
		tally_group_close(group);
	}
}

static void several_counters_share_one_stop(void)
{
	struct tally_freeze *freeze;

	fake_reset();
	require(tally_freeze_open(&freeze, 100, TALLY_OPTS(freeze, .root = root.path), &err) == 0);
	check_int(fake.seized, 3);
	struct tally_counter *counter = open_it(TALLY_SCOPE_PROCESS, 100, OPTS(.freeze = freeze));
	struct tally_group *group = open_group(TALLY_SCOPE_PROCESS, 100, OPTS(.freeze = freeze));
	require(counter != NULL && group != NULL);
	check_int(fake.seized, 3);
	check_int(fake.detached, 0);
	check(tally_counter_start_exact(counter));
	check(tally_group_start_exact(group));
	tally_freeze_close(freeze);
	check_int(fake.detached, 3);
	tally_counter_close(counter);
	tally_group_close(group);
	/* It must be the same process. */
	require(tally_freeze_open(&freeze, 100, TALLY_OPTS(freeze, .root = root.path), &err) == 0);
	refuse(TALLY_SCOPE_SELF, OPTS(.freeze = freeze), "freeze is of a process");
	check(open_it(TALLY_SCOPE_PROCESS, 200, OPTS(.freeze = freeze)) == NULL);
	check_has(err.text, "holds process 100, and the target is process 200");
	refuse(TALLY_SCOPE_PROCESS, OPTS(.freeze = freeze, .flags = F(NO_STOP)), "contradict");
	tally_freeze_close(freeze);
}

static void a_cgroup_is_opened_by_its_folder_on_every_cpu(void)
{
	const struct tally_place *places;

	fake_reset();
	struct tally_counter *counter = open_it(TALLY_SCOPE_CGROUP, 0, OPTS(.flags = 0));
	require(counter != NULL);
	require(tally_counter_places(counter, &places) == 3);
	int folder = fake_nth(0)->pid;
	check(folder >= 0 && fcntl(folder, F_GETFD) == FD_CLOEXEC);
	for (int i = 0; i < 3; i++) {
		check(fake_nth(i)->flags & PERF_FLAG_PID_CGROUP);
		check_int(fake_nth(i)->pid, folder);
		check_int(fake_nth(i)->cpu, i);
		check_int(places[i].tid, -1);
		check(!(fake_nth(i)->attr.flags & A(INHERIT)));
	}
	check_int(fake.files, 1);
	tally_counter_close(counter);
	check_int(fake.files, 0);
	check_int(fake.open, 0);
}

/* Linux 6.18 begins the first event of a cgroup when one was last active there; stale.c. */
static void the_time_before_a_cgroup_was_watched_is_not_counted(void)
{
	struct tally_count count;

	fake_reset();
	fake.stale_ns = 5000000000;
	struct tally_counter *counter = open_it(TALLY_SCOPE_CGROUP, 0, OPTS(.flags = 0));
	require(counter != NULL);
	for (int on = 1; on <= 2; on++) {
		check_int(tally_counter_enable(counter), 0);
		for (int i = 0; i < 3; i++) {
			fake_nth(i)->value += 7;
			fake_nth(i)->enabled += 100;
			fake_nth(i)->running += 50;
		}
		check_int(tally_counter_read(counter, &count), 0);
		check_u64(count.raw, (uint64_t)on * 21);
		check_u64(count.enabled_ns, (uint64_t)on * 300);
		check_u64(count.running_ns, (uint64_t)on * 150);
		check_int(tally_counter_enable(counter), 0); /* which is nothing new */
		check_int(tally_counter_disable(counter), 0);
	}
	tally_counter_close(counter);
}

static void a_folder_that_is_no_cgroup_is_told(void)
{
	/* What the kernel says of it, and of a cgroup of another hierarchy. */
	static const int codes[] = { -EBADF, -ENOENT };

	for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++) {
		fake_reset();
		fake.fail_open_at = 1;
		fake.fail_open_code = codes[i];
		check(open_it(TALLY_SCOPE_CGROUP, 0, OPTS(.flags = 0)) == NULL);
		check_int(err.code, -EBADF);
		check_has(err.text, "'web' is a folder, and no cgroup");
		check_int(fake.files, 0);
	}
}

static void a_cpu_that_goes_offline_is_told(void)
{
	fake_reset();
	fake.fail_open_at = 2;
	fake.fail_open_code = -ENODEV;
	check(open_it(TALLY_SCOPE_SYSTEM, 0, OPTS(.flags = 0)) == NULL);
	check_int(err.code, -ENODEV);
	check_has(err.text, "on CPU 1");
	check_has(err.text, "offline");
	check_int(fake.open, 0);
}

static void check_cost(uint32_t scope, uint64_t want)
{
	struct tally_target target = { .scope = scope, .id = 100, .cgroup = "web" };
	uint64_t fds = 0;

	fake_reset();
	check_int(tally_counter_cost(events, &target, TALLY_OPTS(counter, .root = root.path), &fds,
				     &err),
		  0);
	check_u64(fds, want);
	check_int(fake.opened, 0);
}

static void the_cost_is_told_before_anything_is_opened(void)
{
	struct tally_target gone = { .scope = TALLY_SCOPE_PROCESS, .id = 555 };
	uint64_t fds = 77;

	/* Three events. */
	check_cost(TALLY_SCOPE_SELF, 3);
	check_cost(TALLY_SCOPE_PROCESS, 9);
	check_cost(TALLY_SCOPE_SYSTEM, 9);
	/* And a folder for the counter and one for the group. */
	check_cost(TALLY_SCOPE_CGROUP, 11);
	check_int(tally_counter_cost(events, &gone, TALLY_OPTS(counter, .root = root.path), &fds,
				     &err),
		  -ESRCH);
	check_int(tally_counter_cost(events, &gone, TALLY_OPTS(counter, .period = 1ull << 63), &fds,
				     NULL),
		  -EINVAL);
	check_u64(fds, 77);
}

static void too_many_descriptors_are_told_in_figures(void)
{
	fake_reset();
	fake.fail_open_at = 4;
	fake.fail_open_code = -EMFILE;
	check(open_group(TALLY_SCOPE_PROCESS, 100, OPTS(.flags = 0)) == NULL);
	check_int(err.code, -EMFILE);
	check_int(err.cause, TALLY_CAUSE_FD_LIMIT);
	check_has(err.text, "takes 6 file descriptors");
	check_has(err.text, "RLIMIT_NOFILE");
	check_int(fake.open, 0);
}

/* Lets the k-th call fail, for all k: each either succeeds without what failed or leaves nothing. */
static void fail_each(uint32_t scope, int at_least)
{
	int failures = 0, k = 1;

	for (;; k++) {
		fake_reset();
		fake.fail_call_at = k;
		struct tally_group *group = open_group(scope, 100, OPTS(.flags = 0));
		bool reached = fake.calls >= k;
		if (group)
			tally_group_close(group);
		else
			failures++;
		check_int(fake.open, 0);
		check_int(fake.files, 0);
		check_int(fake.detached, fake.seized);
		if (!reached)
			break;
	}
	/* The last round had none, and opened it. */
	check(k > at_least);
	check(failures >= at_least);
	check(failures < k);
}

static void whatever_call_fails_nothing_stays_open(void)
{
	/* Two members, and their ids, at each place. */
	fail_each(TALLY_SCOPE_SELF, 4);
	fail_each(TALLY_SCOPE_PROCESS, 12);
	fail_each(TALLY_SCOPE_SYSTEM, 12);
	fail_each(TALLY_SCOPE_CGROUP, 14);
}

int main(void)
{
	static const char *const files[][2] = {
		{ "/proc/100/task/100/stat", "100 (a) R 1" },
		{ "/proc/100/task/101/stat", "101 (a) R 1" },
		{ "/proc/100/task/102/stat", "102 (a) R 1" },
		{ "/sys/devices/system/cpu/online", "0-2\n" },
		{ "/proc/self/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n" },
		{ "/sys/fs/cgroup/web/cgroup.procs", "" },
	};
	bool ok = fakeroot_make(&root);

	fake_reset();
	for (size_t i = 0; ok && i < sizeof(files) / sizeof(*files); i++)
		ok = fakeroot_file(&root, files[i][0], files[i][1]);
	if (!ok ||
	    tally_events_parse(&events, "page-faults,{page-faults,minor-faults}", NULL, &err) < 0) {
		printf("Bail out! no made-up machine: %s\n", err.text);
		return 1;
	}
	tap_run(each_option_is_in_the_attr);
	tap_run(periods_and_signals_are_in_the_attr);
	tap_run(of_a_group_the_leader_is_pinned_and_signals);
	tap_run(what_contradicts_itself_is_refused_in_words);
	tap_run(a_process_is_held_while_it_is_attached_to);
	tap_run(refused_or_unwanted_it_is_attached_to_as_it_runs);
	tap_run(several_counters_share_one_stop);
	tap_run(a_cgroup_is_opened_by_its_folder_on_every_cpu);
	tap_run(the_time_before_a_cgroup_was_watched_is_not_counted);
	tap_run(a_folder_that_is_no_cgroup_is_told);
	tap_run(a_cpu_that_goes_offline_is_told);
	tap_run(the_cost_is_told_before_anything_is_opened);
	tap_run(too_many_descriptors_are_told_in_figures);
	tap_run(whatever_call_fails_nothing_stays_open);
	fakeroot_remove(&root);
	tally_events_free(events);
	return tap_end();
}
