/* SPDX-License-Identifier: MIT */
/* The sampler over a kernel that is made up: what it asks for, and what becomes of failures. */
#include <sys/utsname.h>

#include "fakesampler.h"

static void look_at_rings(struct tally_sampler *s)
{
	check_int(tally_sampler_rings(s), 4);
	check_int(fake.maps, 4);
	check_int(fake.opened, 8);
	check_u64(tally_ring_size(tally_sampler_ring(s, 3)), 4 << 20); /* two of 4000 a second */
	check(tally_sampler_ring(s, 4) == NULL);
	for (int i = 0; i < 8; i++) {
		const struct fake_event *e = &fake.events[i];
		check_int(e->tid, -1);
		check_int(e->cpu, i / 2);
		check_int(e->mapped != NULL, i % 2 == 0);
		check_int(e->output, i % 2 ? FIRST_FD + i - 1 : -1);
	}
	const uint64_t *ids = NULL;
	check_int(tally_sampler_ids(s, 1, &ids), 4);
	for (int i = 0; i < 4; i++)
		check_u64(ids[i], (uint64_t)(FIRST_FD + 2 * i + 1) * 10);
	check_int(tally_sampler_ids(s, 2, &ids), 0);
}

static void cpus_have_a_ring_each(void)
{
	fake_reset();
	make_root(ROOT);
	with("page-faults,context-switches", &all_cpus, (struct tally_sampler_opts){ 0 },
	     look_at_rings);
}

static void look_at_process(struct tally_sampler *s)
{
	check_int(tally_sampler_rings(s), 4);
	check_int(fake.opened, 12);
	for (int i = 0; i < 12; i++) {
		const struct fake_event *e = &fake.events[i];
		check_int(e->tid, 77 + i / 4);
		check_int(e->cpu, i % 4);
		check_int(e->output, i < 4 ? -1 : FIRST_FD + i % 4);
		check(e->attr.flags & TALLY_ATTR_INHERIT);
	}
}

static void threads_share_the_rings_of_the_cpus(void)
{
	fake_reset();
	make_root(ROOT);
	for (int i = 0; i < 3; i++)
		add_thread(77, 77 + i);
	with("page-faults", &process, (struct tally_sampler_opts){ 0 }, look_at_process);
}

static void look_at_no_inherit(struct tally_sampler *s)
{
	check_int(tally_sampler_rings(s), 4);
	check_int(fake.opened, 8);
	check(!(fake.events[0].attr.flags & TALLY_ATTR_INHERIT));
}

static void threads_share_rings_without_inherit_too(void)
{
	fake_reset();
	make_root(ROOT);
	add_thread(77, 77);
	add_thread(77, 78);
	with("page-faults", &process,
	     (struct tally_sampler_opts){ .flags = TALLY_SAMPLER_NO_INHERIT }, look_at_no_inherit);
}

static void look_at_gone(struct tally_sampler *s)
{
	const uint64_t *ids;

	check_int(tally_sampler_rings(s), 4);
	check_int(fake.open_fds, 8);
	check_int(tally_sampler_ids(s, 0, &ids), 8);
	check_u64(ids[7], (uint64_t)(FIRST_FD + 7) * 10);
}

static void a_thread_that_ends_meanwhile_is_left_out(void)
{
	/* The first one too: then another opens the rings. Held still nobody would end. */
	for (int32_t gone = 77; gone < 80; gone++) {
		fake_reset();
		make_root(ROOT);
		for (int i = 0; i < 3; i++)
			add_thread_in(77, 77 + i, 77 + i == gone ? "1 (x) Z 0\n" : "1 (x) R 0\n");
		fake.gone_tid = gone;
		with("page-faults", &process,
		     (struct tally_sampler_opts){ .flags = TALLY_SAMPLER_NO_STOP }, look_at_gone);
	}
}

static void a_process_that_is_gone_is_an_error(void)
{
	struct tally_events *events = events_of("page-faults");
	struct tally_sampler *s = NULL;
	struct tally_error err = { 0 };

	fake_reset();
	make_root(ROOT);
	add_thread(77, 77);
	fake.gone_tid = 77;
	check_int(tally_sampler_open(&s, events, &process, TALLY_OPTS(sampler, .root = root.path),
				     &err),
		  -ESRCH);
	check_int(err.code, -ESRCH);
	check(s == NULL);
	nothing_leaked();
	fakeroot_remove(&root);
	tally_events_free(events);
}

static void start_a_thread(void)
{
	fake.on_open = NULL;
	add_thread(77, 90);
}

static void look_at_grown(struct tally_sampler *s)
{
	check_int(fake.opened, 4 + 8);
	check_int(fake.open_fds, 8);
	check_int(fake.events[8].tid, 90);
	check_int(fake.maps, 4);
}

static void a_thread_that_starts_meanwhile_is_found(void)
{
	fake_reset();
	make_root(ROOT);
	add_thread(77, 77);
	fake.on_open = start_a_thread;
	with("page-faults", &process, (struct tally_sampler_opts){ 0 }, look_at_grown);
}

static void every_failure_leaves_nothing_behind(void)
{
	static const struct tally_target *const targets[] = { &all_cpus, &command, &self };
	struct tally_events *events = events_of("{page-faults,context-switches},cpu-clock");
	int steps = 0;

	make_root(ROOT);
	for (size_t t = 0; t < ARRAY_SIZE(targets); t++)
		for (int call = 1;; call++) {
			struct tally_sampler *s = NULL;
			struct tally_error err = { 0 };
			fake_reset();
			fake.fail_call = call;
			fake.fail_code = -EIO;
			int r = tally_sampler_open(&s, events, targets[t],
						   TALLY_OPTS(sampler, .root = root.path), &err);
			if (!fake.failed) {
				check_int(r, 0);
				tally_sampler_close(s);
				nothing_leaked();
				break;
			}
			steps++;
			if (!check_int(r, -EIO) || !check_int(err.code, -EIO) ||
			    !check(err.text[0] && s == NULL) || !nothing_leaked())
				return;
		}
	/* On each of 4 CPUs: 3 events, 3 ids, a map, 2 redirections. */
	check_int(steps, 4 * 9 + 4 * 9 + 9);
	fakeroot_remove(&root);
	tally_events_free(events);
}

static void look_at_attrs(struct tally_sampler *s)
{
	const uint64_t side_band = TALLY_ATTR_MMAP | TALLY_ATTR_MMAP2 | TALLY_ATTR_COMM |
				   TALLY_ATTR_COMM_EXEC | TALLY_ATTR_TASK;
	const uint64_t both = TALLY_ATTR_WATERMARK | TALLY_ATTR_SAMPLE_ID_ALL | TALLY_ATTR_FREQ |
			      TALLY_ATTR_USE_CLOCKID | TALLY_ATTR_DISABLED;
	const struct tally_attr *first = &fake.events[0].attr, *second = &fake.events[1].attr;

	check_u64(first->flags & side_band, side_band);
	check_u64(second->flags & side_band, 0);
	check_u64(first->flags & both, both);
	check_u64(second->flags & both, both);
	check_u64(first->flags & (TALLY_ATTR_INHERIT | TALLY_ATTR_ENABLE_ON_EXEC), 0);
	check_int(first->clockid, 1);
	check_u64(first->sample_type, TALLY_SAMPLE_IP | TALLY_SAMPLE_TID | TALLY_SAMPLE_TIME |
					      TALLY_SAMPLE_PERIOD | TALLY_SAMPLE_CPU |
					      TALLY_SAMPLE_IDENTIFIER | TALLY_SAMPLE_CALLCHAIN |
					      TALLY_SAMPLE_ADDR);
	check_u64(second->sample_type, first->sample_type);
	check_u64(first->read_format, TALLY_READ_TIME_ENABLED | TALLY_READ_TIME_RUNNING |
					      TALLY_READ_ID | TALLY_READ_LOST);
	check_u64(first->sample_period, 4000);
	check_u64(first->wakeup_events, 1 << 20); /* a quarter of a ring for two of 4000 a second */
	check_u64(tally_sampler_layout(s, 1)->sample_type, second->sample_type);
	check_int(tally_sampler_layout(s, 1)->sample_id_all, 1);
	check_mem(tally_sampler_attr(s, 1), second, sizeof(*second));
	check(tally_sampler_attr(s, 2) == NULL && tally_sampler_layout(s, 2) == NULL);
	check_u64(tally_sampler_rate(s, 0), 4000);
	check_str(tally_sampler_compromise(s), NULL);
}

static void attrs_are_as_the_contract_says(void)
{
	fake_reset();
	make_root(ROOT);
	with("page-faults,context-switches", &thread,
	     (struct tally_sampler_opts){ .flags = TALLY_SAMPLER_CALLCHAIN,
					  .sample_type = TALLY_SAMPLE_ADDR },
	     look_at_attrs);
}

static void look_at_own_rates(struct tally_sampler *s)
{
	check_u64(fake.events[0].attr.sample_period, 1000);
	check_u64(fake.events[1].attr.sample_period, 99);
	check_u64(fake.events[2].attr.sample_period, tally_sampler_rate(s, 2) ? 4000 : 5000);
	check(!(fake.events[0].attr.flags & TALLY_ATTR_FREQ));
	check(fake.events[1].attr.flags & TALLY_ATTR_FREQ);
}

static void a_name_may_have_its_own_rate(void)
{
	const struct tally_sampler_opts rates[] = { { 0 }, { .period = 5000 } };

	for (int i = 0; i < 2; i++) {
		fake_reset();
		make_root(ROOT);
		fakeroot_file(&root, "/sys/bus/event_source/devices/software/type", "1\n");
		with("software/cs,period=1000/,software/config=2,freq=99/,cs", &thread, rates[i],
		     look_at_own_rates);
	}
}

static void look_at_command(struct tally_sampler *s)
{
	uint64_t flags = fake.events[0].attr.flags;

	check(flags & TALLY_ATTR_ENABLE_ON_EXEC && flags & TALLY_ATTR_DISABLED);
	check(flags & TALLY_ATTR_INHERIT);
	check_int(tally_sampler_rings(s), 4);
	check_u64(fake.events[0].attr.sample_type & TALLY_SAMPLE_IDENTIFIER, 0);
}

static void look_at_command_alone(struct tally_sampler *s)
{
	uint64_t flags = fake.events[0].attr.flags;

	check(flags & TALLY_ATTR_ENABLE_ON_EXEC);
	check_u64(flags & (TALLY_ATTR_INHERIT | TALLY_ATTR_USE_CLOCKID), 0);
	check(flags & TALLY_ATTR_BUILD_ID);
	check_int(fake.events[0].attr.clockid, 0);
	check_int(tally_sampler_rings(s), 1);
	check_int(fake.events[0].cpu, -1);
	check_u64(tally_ring_size(tally_sampler_ring(s, 0)), 131072);
	check_u64(fake.events[0].attr.wakeup_events, 1000);
	check_u64(fake.events[0].attr.sample_period, 5000);
	check_u64(tally_sampler_rate(s, 0), 0);
}

static void a_command_starts_with_its_exec(void)
{
	fake_reset();
	make_root(ROOT);
	with("page-faults", &command, (struct tally_sampler_opts){ 0 }, look_at_command);
	fake_reset();
	make_root(ROOT);
	with("page-faults", &command,
	     (struct tally_sampler_opts){ .flags = TALLY_SAMPLER_NO_INHERIT |
						   TALLY_SAMPLER_PERF_CLOCK |
						   TALLY_SAMPLER_BUILD_ID,
					  .period = 5000,
					  .freq = 99,
					  .ring_bytes = 131072,
					  .watermark = 1000 },
	     look_at_command_alone);
}

static void look_at_group(struct tally_sampler *s)
{
	for (int cpu = 0; cpu < 4; cpu++) {
		const struct fake_event *e = &fake.events[3 * cpu];
		check_int(e[0].group_fd, -1);
		check_int(e[1].group_fd, FIRST_FD + 3 * cpu);
		check_int(e[2].group_fd, -1);
		check(e[0].attr.flags & TALLY_ATTR_DISABLED);
		/* A follower that is disabled would stay so when its leader is enabled. */
		check(!(e[1].attr.flags & TALLY_ATTR_DISABLED));
		check(e[2].attr.flags & TALLY_ATTR_DISABLED);
		check_u64(e[1].attr.sample_period, 4000);
	}
}

static void look_at_read_group(struct tally_sampler *s)
{
	const struct tally_attr *leader = &fake.events[0].attr, *follower = &fake.events[1].attr;
	uint64_t lost = 0;

	check(leader->sample_type & TALLY_SAMPLE_READ);
	check_u64(leader->read_format, TALLY_READ_TIME_ENABLED | TALLY_READ_TIME_RUNNING |
					       TALLY_READ_ID | TALLY_READ_LOST | TALLY_READ_GROUP);
	check_u64(leader->sample_period, 4000);
	check(!(follower->sample_type & TALLY_SAMPLE_READ));
	check_u64(follower->sample_period, 0);
	check(!(follower->flags & TALLY_ATTR_FREQ));
	/* The leader's descriptor answers for the group; each loss counts once. */
	fake.lost = 5;
	check_int(tally_sampler_lost(s, &lost), 0);
	check_u64(lost, 4 * (5 + 5));
}

static void groups_stay_groups(void)
{
	fake_reset();
	make_root(ROOT);
	with("{page-faults,context-switches},minor-faults", &all_cpus,
	     (struct tally_sampler_opts){ 0 }, look_at_group);
	fake_reset();
	make_root(ROOT);
	with("{page-faults,context-switches}:D,minor-faults:D", &all_cpus,
	     (struct tally_sampler_opts){ 0 }, look_at_group);
	fake_reset();
	make_root(ROOT);
	with("{page-faults,context-switches}:S", &all_cpus, (struct tally_sampler_opts){ 0 },
	     look_at_read_group);
}

static void look_at_lost(struct tally_sampler *s)
{
	uint64_t lost = 99;

	fake.lost = 3;
	check_int(tally_sampler_lost(s, &lost), 0);
	check_u64(lost, fake.no_lost ? 0 : 8 * 3);
	fake.fail_call = fake.calls + 3;
	fake.fail_code = -EIO;
	lost = 99;
	check_int(tally_sampler_lost(s, &lost), fake.no_lost ? 0 : -EIO);
	check_u64(lost, fake.no_lost ? 0 : 99);
}

static void losses_are_summed_where_the_kernel_tells(void)
{
	for (int old = 0; old < 2; old++) {
		fake_reset();
		make_root(ROOT);
		fake.no_lost = old;
		with("page-faults,context-switches", &all_cpus, (struct tally_sampler_opts){ 0 },
		     look_at_lost);
	}
}

static void look_at_high_rates(struct tally_sampler *s)
{
	check_u64(tally_sampler_rate(s, 0), 50000);
	check_u64(tally_sampler_rate(s, 1), 25000);
	check_u64(fake.events[0].attr.sample_period, 50000);
	check_u64(fake.events[1].attr.sample_period, 25000);
	check_has(tally_sampler_compromise(s), "kernel.perf_event_max_sample_rate");
	check_has(tally_sampler_compromise(s), "task-clock at 25000 instead of 100000");
}

static void look_at_short_periods(struct tally_sampler *s)
{
	check_u64(fake.events[0].attr.sample_period, 10000);
	check_u64(fake.events[1].attr.sample_period, 40000);
	check_has(tally_sampler_compromise(s), "cpu-clock every 40000 instead of 10000 ns");
}

static void look_at_fallback(struct tally_sampler *s)
{
	/* The kernel refuses cycles; cpu-clock at that rate would starve a CPU. */
	check_u64(tally_sampler_rate(s, 0), 25000);
	for (int i = 0; i < fake.opened; i++)
		if (fake.events[i].open)
			check_u64(fake.events[i].attr.sample_period, 25000);
	check_int(tally_sampler_attr(s, 0)->type, TALLY_TYPE_SOFTWARE);
	check_has(tally_sampler_compromise(s), "25000 instead of 50000");
}

static void rates_that_starve_a_machine_are_lowered(void)
{
	fake_reset();
	make_root(ROOT);
	with("page-faults,task-clock", &self, (struct tally_sampler_opts){ .freq = 100000 },
	     look_at_high_rates);
	fake_reset();
	make_root(ROOT);
	with("page-faults,cpu-clock", &self, (struct tally_sampler_opts){ .period = 10000 },
	     look_at_short_periods);
	fake_reset();
	make_root(ROOT);
	with("cycles", &all_cpus, (struct tally_sampler_opts){ .freq = 50000 }, look_at_fallback);
}

static uint64_t expected_ring;

static void look_at_size(struct tally_sampler *s)
{
	check_u64(tally_ring_size(tally_sampler_ring(s, 0)), expected_ring);
	for (int i = 0; i < fake.opened; i++)
		if (fake.events[i].open)
			check_u64(fake.events[i].attr.wakeup_events, expected_ring / 4);
}

static void rings_shrink_to_what_the_kernel_maps(void)
{
	static const int codes[] = { -EPERM, -ENOMEM };

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
		for (expected_ring = 65536; expected_ring <= 4 << 20; expected_ring *= 4) {
			fake_reset();
			make_root(ROOT);
			fake.map_limit = expected_ring + (size_t)sysconf(_SC_PAGESIZE);
			fake.map_code = codes[i];
			with("page-faults,context-switches", &self,
			     (struct tally_sampler_opts){ 0 }, look_at_size);
		}
}

static void rings_that_cannot_shrink_are_an_error(void)
{
	static const struct {
		uint64_t asked;
		int code;
	} cases[] = { { 0, -EPERM }, { 0, -ENOMEM }, { 1 << 20, -EPERM }, { 0, -EINVAL } };
	struct tally_events *events = events_of("page-faults");

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct tally_sampler *s = NULL;
		struct tally_error err = { 0 };
		fake_reset();
		make_root(ROOT);
		/* An explicit size is taken at its word though a smaller one would do. */
		fake.map_limit = cases[i].asked ? 65536 + 4096 : 1;
		fake.map_code = cases[i].code;
		check_int(tally_sampler_open(&s, events, &all_cpus,
					     TALLY_OPTS(sampler, .root = root.path,
							.ring_bytes = cases[i].asked),
					     &err),
			  cases[i].code);
		check_int(err.code, cases[i].code);
		if (cases[i].code == -EPERM)
			check_int(err.cause, TALLY_CAUSE_MLOCK_LIMIT);
		check(s == NULL);
		nothing_leaked();
		fakeroot_remove(&root);
	}
	tally_events_free(events);
}

static void rings_fit_the_budget_of_a_user(void)
{
	/* 4 CPUs of 516 KiB and what RLIMIT_MEMLOCK adds; a page more than the data each. */
	static const struct {
		const struct tally_target *target;
		rlim_t memlock;
		uint64_t bytes;
	} cases[] = {
		{ &all_cpus, 0, 512 << 10 },          { &self, 0, 2 << 20 },
		{ &all_cpus, 8 << 20, 2 << 20 },      { &self, 8 << 20, 8 << 20 },
		{ &all_cpus, 2112 << 10, 1 << 20 },   { &all_cpus, 2048 << 10, 1 << 20 },
		{ &all_cpus, 2047 << 10, 512 << 10 },
	};
	struct rlimit before, limit;

	getrlimit(RLIMIT_MEMLOCK, &before);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		limit = before;
		limit.rlim_cur = cases[i].memlock;
		if (setrlimit(RLIMIT_MEMLOCK, &limit) < 0)
			tap_skip("RLIMIT_MEMLOCK cannot be set to 8 MiB here");
		fake_reset();
		make_root(USER);
		expected_ring = cases[i].bytes;
		with("page-faults", cases[i].target, (struct tally_sampler_opts){ .period = 1 },
		     look_at_size);
	}
	/* Where perf_event_paranoid is -1 nobody is held to it. */
	fake_reset();
	make_root(USER);
	fakeroot_file(&root, "/proc/sys/kernel/perf_event_paranoid", "-1\n");
	limit.rlim_cur = 0;
	setrlimit(RLIMIT_MEMLOCK, &limit);
	expected_ring = 8 << 20;
	with("page-faults", &all_cpus, (struct tally_sampler_opts){ .period = 1 }, look_at_size);
	setrlimit(RLIMIT_MEMLOCK, &before);
}

/* Half a second of samples of 1 KiB, as a power of two; events by a period have no such bound. */
static void rings_fit_the_rate(void)
{
	static const struct {
		uint64_t freq, period, bytes;
	} cases[] = {
		{ 99, 0, 512 << 10 }, { 999, 0, 512 << 10 },  { 0, 0, 2 << 20 },
		{ 9000, 0, 8 << 20 }, { 100000, 0, 8 << 20 }, { 0, 1000, 8 << 20 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		fake_reset();
		make_root(ROOT);
		expected_ring = cases[i].bytes;
		with("page-faults", &all_cpus,
		     (struct tally_sampler_opts){ .freq = cases[i].freq,
						  .period = cases[i].period },
		     look_at_size);
	}
}

static void many_cpus_do_not_take_all_memory(void)
{
	fake_reset();
	make_root(ROOT);
	fakeroot_file(&root, "/sys/devices/system/cpu/online", "0-127\n");
	expected_ring = 2 << 20;
	with("page-faults", &all_cpus, (struct tally_sampler_opts){ .period = 1 }, look_at_size);
}

static void look_at_switching(struct tally_sampler *s)
{
	check(!fake.events[0].enabled && !fake.events[7].enabled);
	check_int(tally_sampler_enable(s), 0);
	for (int i = 0; i < 8; i++)
		check(fake.events[i].enabled);
	/* One that fails does not keep the others from being switched. */
	fake.fail_call = fake.calls + 2;
	fake.fail_code = -EIO;
	check_int(tally_sampler_disable(s), -EIO);
	for (int i = 0; i < 8; i++)
		check_int(fake.events[i].enabled, i == 1);
}

static void all_events_are_switched(void)
{
	fake_reset();
	make_root(ROOT);
	with("page-faults,context-switches", &all_cpus, (struct tally_sampler_opts){ 0 },
	     look_at_switching);
}

/* Two threads on four CPUs: rings 0 to 3 are mapped by 77's events, 78's write there too. */
static void look_at_waiting(struct tally_sampler *s)
{
	check_int(tally_sampler_wait(s, 0), 0);
	fake.events[2].revents = POLLIN;
	check_int(tally_sampler_wait(s, 1000), 1);
	fake.poll_answer = -EINTR;
	check_int(tally_sampler_wait(s, -1), -EINTR);
	fake.poll_answer = 0;

	/* The thread that mapped the rings has ended, the other one goes on. */
	fake.events[2].revents = 0;
	for (int i = 0; i < 4; i++)
		fake.events[i].revents = POLLHUP;
	check_int(tally_sampler_wait(s, 0), 0);
	fake.events[7].revents = POLLIN;
	check_int(tally_sampler_wait(s, 0), 1);
	/* Its last data and its end at once: the data first. */
	for (int i = 4; i < 8; i++)
		fake.events[i].revents = i == 6 ? POLLIN | POLLHUP : POLLHUP;
	check_int(tally_sampler_wait(s, -1), 1);
	check_int(tally_sampler_wait(s, -1), -EPIPE);
	/* Nobody is polled any more: it would spin. */
	fake.polls = 0;
	check_int(tally_sampler_wait(s, -1), -EPIPE);
	check_int(fake.polls, 0);
}

static void waiting_ends_with_the_last_thread(void)
{
	fake_reset();
	make_root(ROOT);
	add_thread(77, 77);
	add_thread(77, 78);
	with("page-faults", &process, (struct tally_sampler_opts){ 0 }, look_at_waiting);
}

static bool exact;

static void look_at_exactness(struct tally_sampler *s)
{
	check_int(tally_sampler_start_exact(s), exact);
	/* While it was opened, and not longer. */
	check_int(fake.seized, exact ? 2 : 0);
	check_int(fake.let_go, fake.seized);
}

static int seized_at_open;

static void look_whether_held(void)
{
	seized_at_open = fake.seized - fake.let_go;
}

static void a_process_is_held_while_it_is_opened(void)
{
	static const struct {
		bool refuse, exact;
		uint32_t flags;
	} cases[] = { { false, true, 0 },
		      { true, false, 0 },
		      { false, false, TALLY_SAMPLER_NO_STOP } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		fake_reset();
		make_root(ROOT);
		add_thread(77, 77);
		add_thread(77, 78);
		exact = cases[i].exact;
		fake.refuse_ptrace = cases[i].refuse;
		fake.on_open = look_whether_held;
		with("page-faults", &process,
		     (struct tally_sampler_opts){ .flags = cases[i].flags }, look_at_exactness);
		check_int(seized_at_open, exact ? 2 : 0);
	}
	/* Others need none. */
	fake_reset();
	make_root(ROOT);
	exact = true;
	struct tally_sampler_opts none = { 0 };
	struct tally_events *events = events_of("page-faults");
	struct tally_sampler *s = open_with(events, &thread, &none);
	check(s && tally_sampler_start_exact(s));
	check_int(fake.seized, 0);
	tally_sampler_close(s);
	tally_events_free(events);
	fakeroot_remove(&root);
}

static void a_freeze_may_be_shared(void)
{
	struct tally_events *events;
	struct tally_freeze *freeze = NULL;
	struct tally_error err = { 0 };

	fake_reset();
	make_root(ROOT);
	add_thread(77, 77);
	events = events_of("page-faults");
	require(tally_freeze_open(&freeze, 77, TALLY_OPTS(freeze, .root = root.path), &err) == 0);
	for (int i = 0; i < 2; i++) {
		struct tally_sampler_opts opts = { .freeze = freeze };
		struct tally_sampler *s = open_with(events, &process, &opts);
		check(s && tally_sampler_start_exact(s));
		check_int(fake.seized, 1);
		check_int(fake.let_go, 0);
		tally_sampler_close(s);
	}
	tally_freeze_close(freeze);
	check_int(fake.let_go, 1);
	tally_events_free(events);
	fakeroot_remove(&root);
}

static void look_at_cgroup(struct tally_sampler *s)
{
	char path[PATH_MAX], link[64];
	struct stat folder, opened;

	check_int(tally_sampler_rings(s), 4);
	check_int(fake.opened, 8);
	for (int i = 0; i < 8; i++) {
		check_int(fake.events[i].tid, fake.cgroup_fd);
		check_int(fake.events[i].cpu, i / 2);
		check_u64(fake.events[i].attr.flags & TALLY_ATTR_INHERIT, 0);
	}
	snprintf(path, sizeof(path), "%s/cg/one/two", root.path);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fake.cgroup_fd);
	check_int(stat(path, &folder), 0);
	check_int(stat(link, &opened), 0);
	check_u64(opened.st_ino, folder.st_ino);
}

static void a_cgroup_is_sampled_on_all_cpus(void)
{
	const struct tally_target group = { .scope = TALLY_SCOPE_CGROUP, .cgroup = "one/two" };

	fake_reset();
	make_root(ROOT);
	fakeroot_file(&root, "/proc/self/mounts", "cgroup2 /cg cgroup2 rw 0 0\n");
	fakeroot_file(&root, "/cg/one/two/cgroup.procs", "");
	with("page-faults,context-switches", &group, (struct tally_sampler_opts){ 0 },
	     look_at_cgroup);
	check(fcntl(fake.cgroup_fd, F_GETFD) < 0);
}

static struct tally_attr expected_attrs[2];

static void look_at_expected(struct tally_sampler *s)
{
	(void)s;
	for (int i = 0; i < 2; i++) {
		const struct tally_attr *got = &fake.events[i].attr, *want = &expected_attrs[i];
		check_u64(got->flags, want->flags);
		check_u64(got->sample_type, want->sample_type);
		check_u64(got->branch_sample_type, want->branch_sample_type);
		check_u64(got->sample_regs_user, want->sample_regs_user);
		check_u64(got->sample_regs_intr, want->sample_regs_intr);
		check_u64(got->sample_stack_user, want->sample_stack_user);
		check_u64(got->sample_max_stack, want->sample_max_stack);
		check_u64(got->sig_data, want->sig_data);
		check_int(got->clockid, want->clockid);
	}
}

/* What an option sets beyond the rest, in both events or in the first, by perf_event_open(2). */
static void each_option_is_in_the_attr(void)
{
	static const struct {
		const struct tally_target *target;
		struct tally_sampler_opts opts;
		struct tally_attr both, first;
	} cases[] = {
		{ &process, { 0 }, { 0 }, { 0 } },
		{ &process,
		  { .flags = TALLY_SAMPLER_OVERWRITE },
		  { .flags = TALLY_ATTR_WRITE_BACKWARD },
		  { 0 } },
		{ &process,
		  { .flags = TALLY_SAMPLER_INHERIT_STAT },
		  { .flags = TALLY_ATTR_INHERIT_STAT },
		  { 0 } },
		{ &process,
		  { .flags = TALLY_SAMPLER_DATA },
		  { .sample_type = TALLY_SAMPLE_ADDR | TALLY_SAMPLE_DATA_SRC },
		  { .flags = TALLY_ATTR_MMAP_DATA } },
		{ &process,
		  { .flags = TALLY_SAMPLER_CALLCHAIN | TALLY_SAMPLER_NO_USER_CHAIN,
		    .stack_bytes = 65528,
		    .regs_user = 0x180,
		    .max_stack = 20 },
		  { .flags = TALLY_ATTR_EXCLUDE_CALLCHAIN_USER,
		    .sample_type = TALLY_SAMPLE_CALLCHAIN | TALLY_SAMPLE_REGS_USER |
				   TALLY_SAMPLE_STACK_USER,
		    .sample_regs_user = 0x180,
		    .sample_stack_user = 65528,
		    .sample_max_stack = 20 },
		  { 0 } },
		{ &process,
		  { .flags = TALLY_SAMPLER_NO_KERNEL_CHAIN,
		    .regs_intr = 6,
		    .branch_sample_type = TALLY_BRANCH_ANY },
		  { .flags = TALLY_ATTR_EXCLUDE_CALLCHAIN_KERNEL,
		    .sample_type = TALLY_SAMPLE_REGS_INTR | TALLY_SAMPLE_BRANCH_STACK,
		    .branch_sample_type = TALLY_BRANCH_ANY,
		    .sample_regs_intr = 6 },
		  { 0 } },
		{ &process,
		  { .flags = TALLY_SAMPLER_SWITCHES | TALLY_SAMPLER_NAMESPACES |
			     TALLY_SAMPLER_CGROUPS | TALLY_SAMPLER_BPF | TALLY_SAMPLER_TEXT_POKES |
			     TALLY_SAMPLER_BUILD_ID },
		  { .sample_type = TALLY_SAMPLE_CGROUP },
		  { .flags = TALLY_ATTR_CONTEXT_SWITCH | TALLY_ATTR_NAMESPACES | TALLY_ATTR_CGROUP |
			     TALLY_ATTR_KSYMBOL | TALLY_ATTR_BPF_EVENT | TALLY_ATTR_TEXT_POKE |
			     TALLY_ATTR_BUILD_ID } },
		{ &process,
		  { .flags = TALLY_SAMPLER_USE_CLOCKID, .clockid = CLOCK_BOOTTIME },
		  { .clockid = CLOCK_BOOTTIME - CLOCK_MONOTONIC },
		  { 0 } },
		{ &process,
		  { .flags = TALLY_SAMPLER_SIGTRAP, .sig_data = 0x1234567890 },
		  { .flags = TALLY_ATTR_SIGTRAP | TALLY_ATTR_REMOVE_ON_EXEC,
		    .sig_data = 0x1234567890 },
		  { 0 } },
		{ &process,
		  { .sample_type = TALLY_SAMPLE_PHYS_ADDR | TALLY_SAMPLE_WEIGHT_STRUCT },
		  { .sample_type = TALLY_SAMPLE_PHYS_ADDR | TALLY_SAMPLE_WEIGHT_STRUCT },
		  { 0 } },
		/* Neither of the two has fields of its own. */
		{ &process, { .flags = TALLY_SAMPLER_RAW }, { 0 }, { 0 } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		for (int e = 0; e < 2; e++) {
			const struct tally_attr *more = &cases[i].both;
			expected_attrs[e] = *more;
			expected_attrs[e].flags |= TALLY_ATTR_DISABLED | TALLY_ATTR_INHERIT |
						   TALLY_ATTR_FREQ | TALLY_ATTR_WATERMARK |
						   TALLY_ATTR_SAMPLE_ID_ALL |
						   TALLY_ATTR_USE_CLOCKID |
						   TALLY_ATTR_EXCLUDE_GUEST;
			expected_attrs[e].sample_type |= TALLY_SAMPLE_IP | TALLY_SAMPLE_TID |
							 TALLY_SAMPLE_TIME | TALLY_SAMPLE_PERIOD |
							 TALLY_SAMPLE_CPU | TALLY_SAMPLE_IDENTIFIER;
			expected_attrs[e].clockid += CLOCK_MONOTONIC;
		}
		expected_attrs[0].flags |= cases[i].first.flags | TALLY_ATTR_MMAP |
					   TALLY_ATTR_MMAP2 | TALLY_ATTR_COMM |
					   TALLY_ATTR_COMM_EXEC | TALLY_ATTR_TASK;
		fake_reset();
		make_root(ROOT);
		add_thread(77, 77);
		with("page-faults,context-switches", cases[i].target, cases[i].opts,
		     look_at_expected);
	}
}

static void look_at_registers(struct tally_sampler *s)
{
	struct utsname host;
	uint64_t mask = fake.events[0].attr.sample_regs_user;

	(void)s;
	check_int(uname(&host), 0);
	check_u64(mask, tally_regs_general(host.machine));
	check(mask != 0);
}

static void a_copy_of_the_stack_brings_the_registers(void)
{
	fake_reset();
	make_root(ROOT);
	with("page-faults", &self, (struct tally_sampler_opts){ .stack_bytes = 8192 },
	     look_at_registers);
}

static void options_that_contradict_each_other_are_refused(void)
{
	static const struct {
		const struct tally_target *target;
		struct tally_sampler_opts opts;
		const char *text;
	} cases[] = {
		{ &all_cpus, { .flags = TALLY_SAMPLER_SIGTRAP }, "SIGTRAP is for threads" },
		{ &command, { .flags = TALLY_SAMPLER_SIGTRAP }, "exec" },
		{ &self, { .flags = TALLY_SAMPLER_INHERIT_STAT }, "INHERIT_STAT" },
		{ &command,
		  { .flags = TALLY_SAMPLER_INHERIT_STAT | TALLY_SAMPLER_NO_INHERIT },
		  "INHERIT_STAT" },
		{ &self,
		  { .flags = TALLY_SAMPLER_PERF_CLOCK | TALLY_SAMPLER_USE_CLOCKID },
		  "PERF_CLOCK" },
		{ &self, { .clockid = 1 }, "USE_CLOCKID" },
		{ &self, { .sig_data = 1 }, "sig_data" },
		{ &self, { .reserved = 1 }, "reserved" },
		{ &self, { .stack_bytes = 65536 }, "65528" },
		{ &self, { .stack_bytes = 12 }, "multiple of 8" },
		{ &self, { .max_stack = 65536 }, "65535" },
		{ &self, { .sample_type = TALLY_SAMPLE_STACK_USER }, "stack_bytes" },
		{ &self, { .sample_type = TALLY_SAMPLE_AUX }, "AUX" },
	};
	struct tally_events *events;
	struct tally_sampler *s = NULL;

	fake_reset();
	make_root(ROOT);
	events = events_of("page-faults");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct tally_sampler_opts opts = cases[i].opts;
		struct tally_error err = { 0 };
		opts.size = sizeof(opts);
		opts.root = root.path;
		check_int(tally_sampler_open(&s, events, cases[i].target, &opts, &err), -EINVAL);
		check_has(err.text, cases[i].text);
	}
	check_int(fake.opened, 0);
	tally_events_free(events);
	fakeroot_remove(&root);
}

static void options_are_checked(void)
{
	struct tally_events *events = events_of("page-faults");
	struct tally_sampler_opts opts = { .size = sizeof(opts), .flags = 1u << 30 };
	struct tally_sampler *s = NULL;
	struct tally_error err;

	fake_reset();
	check_int(tally_sampler_open(&s, events, &self, &opts, &err), -EINVAL);
	check_has(err.text, "0x40000000");
	opts.size = 0;
	check_int(tally_sampler_open(&s, events, &self, &opts, &err), -EINVAL);
	struct tally_target nobody = { .scope = 99 };
	check_int(tally_sampler_open(&s, events, &nobody, NULL, &err), -EINVAL);
	check(s == NULL);
	tally_sampler_close(NULL);
	nothing_leaked();
	tally_events_free(events);
}

int main(void)
{
	tap_run(cpus_have_a_ring_each);
	tap_run(threads_share_the_rings_of_the_cpus);
	tap_run(threads_share_rings_without_inherit_too);
	tap_run(a_thread_that_ends_meanwhile_is_left_out);
	tap_run(a_process_that_is_gone_is_an_error);
	tap_run(a_thread_that_starts_meanwhile_is_found);
	tap_run(every_failure_leaves_nothing_behind);
	tap_run(attrs_are_as_the_contract_says);
	tap_run(a_name_may_have_its_own_rate);
	tap_run(a_command_starts_with_its_exec);
	tap_run(groups_stay_groups);
	tap_run(losses_are_summed_where_the_kernel_tells);
	tap_run(rates_that_starve_a_machine_are_lowered);
	tap_run(rings_shrink_to_what_the_kernel_maps);
	tap_run(rings_that_cannot_shrink_are_an_error);
	tap_run(rings_fit_the_rate);
	tap_run(rings_fit_the_budget_of_a_user);
	tap_run(many_cpus_do_not_take_all_memory);
	tap_run(all_events_are_switched);
	tap_run(waiting_ends_with_the_last_thread);
	tap_run(a_process_is_held_while_it_is_opened);
	tap_run(a_freeze_may_be_shared);
	tap_run(a_cgroup_is_sampled_on_all_cpus);
	tap_run(each_option_is_in_the_attr);
	tap_run(a_copy_of_the_stack_brings_the_registers);
	tap_run(options_that_contradict_each_other_are_refused);
	tap_run(options_are_checked);
	return tap_end();
}
