/* SPDX-License-Identifier: MIT */
/* What can be done to a sampler's open events: their rates, their counts. */
#include "fakesampler.h"

static uint64_t period_at(int i)
{
	return fake.events[i].attr.sample_period;
}

static void look_at_periods(struct tally_sampler *s)
{
	check_int(tally_sampler_set_period(s, 1, 700), 0);
	for (int i = 0; i < 8; i++)
		check_u64(period_at(i), i % 2 ? 700 : 1000);
	check_u64(tally_sampler_attr(s, 1)->sample_period, 700);
	check_u64(tally_sampler_attr(s, 0)->sample_period, 1000);
	check_u64(tally_sampler_rate(s, 1), 0);
	/* It has no frequency, and these are no periods. */
	check_int(tally_sampler_set_freq(s, 1, 99), -EINVAL);
	check_int(tally_sampler_set_period(s, 1, 0), -EINVAL);
	check_int(tally_sampler_set_period(s, 1, 1ull << 63), -EINVAL);
	check_int(tally_sampler_set_period(s, 2, 1), -EINVAL);
	check_u64(period_at(1), 700);
	/* One that fails does not keep the others from being changed; what is told stays. */
	fake.fail_call = fake.calls + 2;
	fake.fail_code = -EIO;
	check_int(tally_sampler_set_period(s, 1, 800), -EIO);
	for (int i = 1; i < 8; i += 2)
		check_u64(period_at(i), i == 3 ? 700 : 800);
	check_u64(tally_sampler_attr(s, 1)->sample_period, 700);
}

static void periods_change_at_all_places(void)
{
	fake_reset();
	make_root(ROOT);
	with("page-faults,context-switches", &all_cpus,
	     (struct tally_sampler_opts){ .period = 1000 }, look_at_periods);
}

static void look_at_told(struct tally_sampler *s)
{
	/* perf_swevent_event(): with PERIOD each hit is a sample. A clock is no such event. */
	check(!(fake.events[0].attr.sample_type & TALLY_SAMPLE_PERIOD));
	check(fake.events[1].attr.sample_type & TALLY_SAMPLE_PERIOD);
	check(!(tally_sampler_layout(s, 0)->sample_type & TALLY_SAMPLE_PERIOD));
}

static void look_at_hits(struct tally_sampler *s)
{
	/* Each hit is a sample, and what it counts for is told. */
	check(fake.events[0].attr.sample_type & TALLY_SAMPLE_PERIOD);
	check_u64(period_at(0), 1);
	check_int(tally_sampler_set_period(s, 0, 5), -EOPNOTSUPP);
	check_u64(period_at(0), 1);
}

static void a_period_is_not_undone_by_telling_it(void)
{
	fake_reset();
	make_root(ROOT);
	with("page-faults,cpu-clock", &self, (struct tally_sampler_opts){ .period = 100000 },
	     look_at_told);
	fake_reset();
	make_root(ROOT);
	with("mem:0x1000:w", &self, (struct tally_sampler_opts){ 0 }, look_at_hits);
}

static void look_at_frequencies(struct tally_sampler *s)
{
	check_int(tally_sampler_set_freq(s, 0, 99), 0);
	check_u64(period_at(0), 99);
	check_u64(tally_sampler_rate(s, 0), 99);
	check_int(tally_sampler_set_period(s, 0, 99), -EINVAL);
	/* As when it was opened: kernel.perf_event_max_sample_rate, and what a CPU carries. */
	check_int(tally_sampler_set_freq(s, 0, 60000), 0);
	check_u64(period_at(0), 50000);
	check_int(tally_sampler_set_freq(s, 1, 60000), 0);
	check_u64(period_at(1), 25000);
	check_u64(tally_sampler_rate(s, 1), 25000);
}

static void frequencies_stay_within_what_is_allowed(void)
{
	fake_reset();
	make_root(ROOT);
	with("page-faults,cpu-clock", &self, (struct tally_sampler_opts){ 0 }, look_at_frequencies);
}

static void look_at_follower(struct tally_sampler *s)
{
	check_int(tally_sampler_set_freq(s, 1, 99), -EINVAL);
	check_int(tally_sampler_set_period(s, 1, 99), -EINVAL);
	check_int(tally_sampler_set_freq(s, 0, 99), 0);
	check_u64(period_at(1), 0);
}

static void one_that_only_counts_has_no_rate(void)
{
	fake_reset();
	make_root(ROOT);
	with("{page-faults,context-switches}:S", &self, (struct tally_sampler_opts){ 0 },
	     look_at_follower);
}

static void check_enabled(bool first, bool second)
{
	for (int i = 0; i < 8; i++)
		check_int(fake.events[i].enabled, i % 2 ? second : first);
}

static void look_at_switches(struct tally_sampler *s)
{
	check_int(tally_sampler_enable_event(s, 1), 0);
	check_enabled(false, true);
	check_int(tally_sampler_enable(s), 0);
	check_enabled(true, true);
	check_int(tally_sampler_disable_event(s, 0), 0);
	check_enabled(false, true);
	check_int(tally_sampler_enable_event(s, 2), -EINVAL);
	check_int(tally_sampler_disable_event(s, UINT32_MAX), -EINVAL);
	check_enabled(false, true);
	fake.fail_call = fake.calls + 1;
	fake.fail_code = -EIO;
	check_int(tally_sampler_disable_event(s, 1), -EIO);
	for (int i = 1; i < 8; i += 2)
		check_int(fake.events[i].enabled, i == 1);
}

static void one_event_is_switched_at_all_places(void)
{
	fake_reset();
	make_root(ROOT);
	with("page-faults,context-switches", &all_cpus,
	     (struct tally_sampler_opts){ .period = 1000 }, look_at_switches);
}

static struct tally_count count_of(struct tally_sampler *s, uint32_t event)
{
	struct tally_count count = { 0 };

	check_int(tally_sampler_read(s, event, &count), 0);
	return count;
}

/* On CPUs each place counts for itself: times add up. */
static void look_at_cpus(struct tally_sampler *s)
{
	for (int i = 0; i < 8; i++) {
		fake.events[i].count = (uint64_t)(i + 1);
		fake.events[i].enabled_ns = 1000;
		fake.events[i].running_ns = i % 2 ? 500 : 1000;
	}
	fake.lost = 3;
	struct tally_count count = count_of(s, 0);
	check_u64(count.raw, 1 + 3 + 5 + 7);
	check_u64(count.enabled_ns, 4000);
	check_u64(count.running_ns, 4000);
	check_u64(count.lost, 12);
	check_int(count.state, TALLY_COUNT_EXACT);
	count = count_of(s, 1);
	check_u64(count.raw, 2 + 4 + 6 + 8);
	check_int(count.state, TALLY_COUNT_SCALED);
	check_u64(count.value, 40);
	check_int(tally_sampler_read(s, 2, &count), -EINVAL);
	fake.fail_call = fake.calls + 1;
	fake.fail_code = -EIO;
	check_int(tally_sampler_read(s, 0, &count), -EIO);
}

static void counts_of_cpus_are_summed(void)
{
	fake_reset();
	make_root(ROOT);
	with("page-faults,context-switches", &all_cpus, (struct tally_sampler_opts){ 0 },
	     look_at_cpus);
}

/*
 * A thread's events on four CPUs are all enabled and take turns. They were enabled one after the
 * other; thread 77 ran on CPU 3 alone, 78 on all.
 */
static void look_at_threads(struct tally_sampler *s)
{
	for (int i = 0; i < 4; i++) {
		fake.events[i].enabled_ns = 1000 - 10 * (uint64_t)i;
		fake.events[i].running_ns = i == 3 ? 970 : 0;
		fake.events[i].count = i == 3 ? 33 : 0;
		fake.events[4 + i].enabled_ns = 2000 - 10 * (uint64_t)i;
		fake.events[4 + i].running_ns = 500;
		fake.events[4 + i].count = 10;
	}
	struct tally_count count = count_of(s, 0);
	check_u64(count.raw, 73);
	check_u64(count.enabled_ns, 970 + 1970);
	check_u64(count.running_ns, 970 + 2000);
	check_int(count.state, TALLY_COUNT_EXACT);
	check_u64(count.flags, TALLY_COUNT_START_INEXACT);
	/* Half of the time it had no counter. */
	for (int i = 4; i < 8; i++)
		fake.events[i].running_ns = 0;
	count = count_of(s, 0);
	check_int(count.state, TALLY_COUNT_SCALED);
}

static void the_cpus_of_a_thread_take_turns(void)
{
	fake_reset();
	make_root(ROOT);
	add_thread(77, 77);
	add_thread(77, 78);
	with("page-faults", &process, (struct tally_sampler_opts){ .flags = TALLY_SAMPLER_NO_STOP },
	     look_at_threads);
}

static void look_at_pinned(struct tally_sampler *s)
{
	struct tally_count count = count_of(s, 0);

	check_int(count.state, TALLY_COUNT_ERROR);
	check_int(count.error, -EBUSY);
}

static void a_pinned_event_without_counter_is_an_error(void)
{
	fake_reset();
	make_root(ROOT);
	with("page-faults:D", &self, (struct tally_sampler_opts){ 0 }, look_at_pinned);
}

/* The leader's descriptor answers for all, others for themselves. */
static void look_at_group(struct tally_sampler *s)
{
	fake.events[0].count = 1; /* the group's answer is made up elsewhere: 100 of the leader */
	fake.events[1].count = 44;
	check_u64(count_of(s, 0).raw, 100);
	check_u64(count_of(s, 1).raw, 44);
}

static void members_of_a_group_are_read_each(void)
{
	for (int old = 0; old < 2; old++) {
		fake_reset();
		make_root(ROOT);
		fake.no_lost = old;
		with("{page-faults,context-switches}:S", &self, (struct tally_sampler_opts){ 0 },
		     look_at_group);
	}
}

int main(void)
{
	tap_run(one_event_is_switched_at_all_places);
	tap_run(periods_change_at_all_places);
	tap_run(a_period_is_not_undone_by_telling_it);
	tap_run(frequencies_stay_within_what_is_allowed);
	tap_run(one_that_only_counts_has_no_rate);
	tap_run(counts_of_cpus_are_summed);
	tap_run(the_cpus_of_a_thread_take_turns);
	tap_run(a_pinned_event_without_counter_is_an_error);
	tap_run(members_of_a_group_are_read_each);
	return tap_end();
}
