/* SPDX-License-Identifier: MIT */
/*
 * The records of several rings as one stream: rings are written here as the kernel writes them, by
 * perf_event_open(2), "MMAP layout".
 */
#include "base/clock.h"
#include "fakesampler.h"

#define RING_BYTES 65536u

static struct tally_sampler *sampler;
static struct tally_events *events;

/* Two CPUs and two events on each: descriptors 1000 (mapped), 1001; 1002 (mapped), 1003. */
static bool open_two(struct tally_sampler_opts opts)
{
	fake_reset();
	make_root(ROOT);
	fakeroot_file(&root, "/sys/devices/system/cpu/online", "0-1\n");
	fake.with_data = true;
	events = events_of("page-faults,context-switches");
	opts.ring_bytes = RING_BYTES;
	sampler = open_with(events, &all_cpus, &opts);
	return check(sampler != NULL);
}

static void close_two(void)
{
	tally_sampler_close(sampler);
	tally_events_free(events);
	nothing_leaked();
	fakeroot_remove(&root);
}

static struct perf_event_mmap_page *page_of(int ring)
{
	return fake.events[2 * ring].mapped;
}

/* Writes bytes at the head, around the end. */
static void put(int ring, const void *bytes, size_t len)
{
	struct perf_event_mmap_page *page = page_of(ring);
	unsigned char *data = (unsigned char *)page + 4096;

	for (size_t i = 0; i < len; i++)
		data[(page->data_head + i) % RING_BYTES] = ((const unsigned char *)bytes)[i];
	page->data_head += len;
}

static uint64_t id_of(int ring, int event)
{
	return (uint64_t)(FIRST_FD + 2 * ring + event) * 10;
}

/* IDENTIFIER, IP, TID, TIME, CPU, PERIOD: as perf_event_open(2) lists them. */
static void put_sample(int ring, int event, uint64_t time, uint64_t ip)
{
	const uint64_t words[] = {
		TALLY_RECORD_SAMPLE | 56ull << 48,
		id_of(ring, event),
		ip,
		7,
		time,
		(uint64_t)ring,
		1,
	};

	put(ring, words, sizeof(words));
}

/* The sample_id: TID, TIME, CPU, IDENTIFIER. */
static void put_other(int ring, uint32_t type, uint64_t a, uint64_t b, uint64_t c, uint64_t time,
		      uint64_t id)
{
	const uint64_t words[] = { type | 64ull << 48, a, b, c, 7, time, (uint64_t)ring, id };

	put(ring, words, sizeof(words));
}

static uint64_t now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* Takes all that is due at once and compares the ips. */
static int take(const uint64_t *ips, int count)
{
	const struct tally_sampled *got;
	int n = 0;

	while (tally_sampler_next(sampler, 0, &got) == 1) {
		if (!check(n < count) || !check_u64(got->record->sample.ip, ips[n]))
			break;
		n++;
	}
	return n;
}

static void rings_are_merged_by_time(void)
{
	static const uint64_t ips[] = { 1, 2, 3, 4, 5, 6 };
	const struct tally_sampled *got;

	if (!open_two((struct tally_sampler_opts){ 0 }))
		return;
	put_sample(0, 0, 100, 1);
	put_sample(0, 1, 300, 3);
	put_sample(0, 0, 400, 4);
	put_sample(1, 0, 200, 2);
	put_sample(1, 1, 500, 5);
	put_sample(1, 1, 500, 6);
	check_int(take(ips, 6), 6);
	/* All is given back to the kernel. */
	check_u64(page_of(0)->data_tail, page_of(0)->data_head);
	check_u64(page_of(1)->data_tail, page_of(1)->data_head);

	put_sample(1, 1, 600, 7);
	require(tally_sampler_next(sampler, 0, &got) == 1);
	check_int(got->event, 1);
	check_int(got->ring, 1);
	check_int(got->cpu, 1);
	check_u64(got->record->id.time, 600);
	check_int(got->record->id.tid, 0);
	check_int(got->record->id.pid, 7);
	check_int(tally_sampler_next(sampler, 0, &got), 0);
	close_two();
}

static void what_is_young_waits_for_a_round(void)
{
	static const uint64_t old[] = { 1 };
	const struct tally_sampled *got;

	if (!open_two((struct tally_sampler_opts){ 0 }))
		return;
	put_sample(0, 0, 100, 1);
	require(tally_sampler_next(sampler, 0, &got) == 1);
	put_sample(0, 0, now() + 5000000, 2);
	check_int(tally_sampler_next(sampler, 0, &got), 0);
	/* It is in the ring still. What is old is given meanwhile. */
	check_u64(page_of(0)->data_head - page_of(0)->data_tail, 56);
	put_sample(1, 0, 200, 1);
	check_int(take(old, 1), 1);
	usleep(7000);
	require(tally_sampler_next(sampler, 0, &got) == 1);
	check_u64(got->record->sample.ip, 2);
	close_two();
}

/* As CLOCK_REALTIME when it is set back: what came before then is ahead of it. */
static void a_clock_that_is_set_back_holds_nothing_for_ever(void)
{
	const struct tally_sampled *got;

	if (!open_two((struct tally_sampler_opts){ 0 }))
		return;
	put_sample(0, 0, now() + 3600 * 1000000000ull, 1);
	require(tally_sampler_next(sampler, 60000, &got) == 1);
	check_u64(got->record->sample.ip, 1);
	close_two();
}

static void a_young_record_does_not_overtake(void)
{
	static const uint64_t ips[] = { 1, 2 };
	uint64_t soon;

	if (!open_two((struct tally_sampler_opts){ 0 }))
		return;
	/* CPU 1 has written; CPU 0 was slower and writes a record that is older. */
	soon = now() + 3600 * 1000000000ull;
	put_sample(1, 0, soon + 10, 2);
	check_int(take(NULL, 0), 0);
	put_sample(0, 0, soon, 1);
	check_int(tally_sampler_disable(sampler), 0);
	check_int(take(ips, 2), 2);
	close_two();
}

static void all_is_given_when_it_is_disabled(void)
{
	static const uint64_t ips[] = { 1 };

	for (int how = 0; how < 2; how++) {
		if (!open_two((struct tally_sampler_opts){ .flags = how ? TALLY_SAMPLER_PERF_CLOCK
									: 0 }))
			return;
		put_sample(0, 0, now() + 3600 * 1000000000ull, 1);
		check_int(how ? 0 : tally_sampler_disable(sampler), 0);
		check_int(take(ips, 1), 1);
		close_two();
	}
}

static void records_go_around_the_end(void)
{
	const struct tally_sampled *got;
	uint64_t expected = 1, put_in = 1;

	if (!open_two((struct tally_sampler_opts){ 0 }))
		return;
	/* 56 is no divisor of the size: in each lap one record wraps. */
	for (int lap = 0; lap < 40; lap++) {
		for (int i = 0; i < 300; i++, put_in++)
			put_sample((int)(put_in / 3 % 2), (int)(put_in % 2), put_in, put_in);
		while (tally_sampler_next(sampler, 0, &got) == 1) {
			if (!check_u64(got->record->sample.ip, expected) ||
			    !check_int(got->event, expected % 2))
				goto out;
			expected++;
		}
	}
	check_u64(expected, put_in);
out:
	close_two();
}

static void space_is_given_back_early(void)
{
	const struct tally_sampled *got;

	if (!open_two((struct tally_sampler_opts){ 0 }))
		return;
	for (uint64_t i = 0; i < 1000; i++)
		put_sample(0, 0, i + 1, i);
	for (int i = 0; i < 999; i++)
		require(tally_sampler_next(sampler, 0, &got) == 1);
	/* While a round is going on, at most a quarter of the ring is kept from the kernel. */
	check(page_of(0)->data_tail >= 999 * 56 - RING_BYTES / 4 - 56);
	/* But never what the caller looks at. */
	check(page_of(0)->data_tail <= 998 * 56);
	check_u64(got->record->sample.ip, 998);
	close_two();
}

static void records_of_nobody_are_given(void)
{
	const struct tally_sampled *got;

	if (!open_two((struct tally_sampler_opts){ 0 }))
		return;
	put_other(0, 60, 1, 2, 3, 100, id_of(0, 1));
	put_other(0, 60, 1, 2, 3, 101, 4711);
	put_other(0, 60, 1, 2, 3, 102, 0);
	require(tally_sampler_next(sampler, 0, &got) == 1);
	check_int(got->record->type, 60);
	check_int(got->event, 1);
	require(tally_sampler_next(sampler, 0, &got) == 1);
	check_u64(got->event, UINT32_MAX);
	require(tally_sampler_next(sampler, 0, &got) == 1);
	check_int(got->event, 0);
	close_two();
}

static void bytes_that_are_no_record(void)
{
	static const uint64_t good[] = { 1 };
	const uint64_t bad = TALLY_RECORD_SAMPLE | 12ull << 48;
	const struct tally_sampled *got;

	if (!open_two((struct tally_sampler_opts){ 0 }))
		return;
	put(0, &bad, sizeof(bad));
	put_sample(1, 0, 100, 1);
	check_int(tally_sampler_next(sampler, 0, &got), -EBADMSG);
	check_int(take(good, 1), 1);
	put_sample(0, 0, 200, 1);
	check_int(take(good, 1), 1);
	/* A record that is shorter than its fields: the next one is not lost. */
	const uint64_t cut[] = { TALLY_RECORD_SAMPLE | 16ull << 48, id_of(0, 0) };
	put(0, cut, sizeof(cut));
	put_sample(0, 0, 300, 1);
	check_int(tally_sampler_next(sampler, 0, &got), -EBADMSG);
	check_int(take(good, 1), 1);
	/* A head that is further ahead than the ring is long. */
	page_of(1)->data_head += 2 * RING_BYTES;
	check_int(tally_sampler_next(sampler, 0, &got), -EBADMSG);
	put_sample(1, 0, 400, 1);
	check_int(take(good, 1), 1);
	close_two();
}

static void the_end_comes_after_the_last_record(void)
{
	const struct tally_sampled *got;

	if (!open_two((struct tally_sampler_opts){ 0 }))
		return;
	for (int i = 0; i < 4; i++)
		fake.events[i].revents = POLLHUP;
	put_sample(0, 0, now() + 3600 * 1000000000ull, 1);
	check_int(tally_sampler_next(sampler, -1, &got), 1);
	check_int(tally_sampler_next(sampler, -1, &got), -EPIPE);
	check_int(tally_sampler_next(sampler, 0, &got), -EPIPE);
	close_two();
}

static void waits_can_be_cancelled(void)
{
	const struct tally_sampled *got;

	if (!open_two((struct tally_sampler_opts){ 0 }))
		return;
	check_int(tally_sampler_cancel(sampler), -EINVAL);
	close_two();
	if (!open_two((struct tally_sampler_opts){ .flags = TALLY_SAMPLER_CANCELLABLE }))
		return;
	check_int(tally_sampler_cancel(sampler), 0);
	put_sample(0, 0, 1, 1);
	check_int(tally_sampler_next(sampler, -1, &got), -ECANCELED);
	check_int(tally_sampler_next(sampler, -1, &got), 1);
	check_int(tally_sampler_cancel(sampler), 0);
	check_int(tally_sampler_wait(sampler, -1), -ECANCELED);
	fake.poll_answer = -EINTR;
	check_int(tally_sampler_next(sampler, -1, &got), -EINTR);
	close_two();
}

static void overwrite_rings_are_not_merged(void)
{
	const struct tally_sampled *got;

	if (!open_two((struct tally_sampler_opts){ .flags = TALLY_SAMPLER_OVERWRITE }))
		return;
	check_int(tally_sampler_next(sampler, 0, &got), -EINVAL);
	close_two();
}

static struct tally_sampler_account account_of(uint32_t event)
{
	struct tally_sampler_account a;

	check_int(tally_sampler_account(sampler, event, &a, sizeof(a)), 0);
	return a;
}

/* Each kind of loss is told once, for its event and in the sum. */
static void losses_are_in_the_account(void)
{
	const struct tally_sampled *got;
	struct tally_sampler_account a;

	if (!open_two((struct tally_sampler_opts){ 0 }))
		return;
	put_sample(0, 0, 10, 1);
	put_sample(0, 1, 11, 1);
	put_sample(1, 1, 12, 1);
	/* id, lost; the rest is padding that the decoder leaves over. */
	const uint64_t lost[] = {
		TALLY_RECORD_LOST | 56ull << 48, id_of(0, 1), 5, 7, 20, 0, id_of(0, 1)
	};
	put(0, lost, sizeof(lost));
	const uint64_t samples[] = {
		TALLY_RECORD_LOST_SAMPLES | 48ull << 48, 3, 7, 21, 0, id_of(0, 0)
	};
	put(0, samples, sizeof(samples));
	/* time, id, stream_id: of 1 from 1000 to 1500 and of 0 without an end. */
	put_other(1, TALLY_RECORD_THROTTLE, 1000, id_of(1, 1), 99, 1000, id_of(1, 1));
	put_other(1, TALLY_RECORD_UNTHROTTLE, 1500, id_of(1, 1), 99, 1500, id_of(1, 1));
	put_other(1, TALLY_RECORD_THROTTLE, 1600, id_of(1, 0), 98, 1600, id_of(1, 0));
	put_other(1, TALLY_RECORD_UNTHROTTLE, 1700, 4711, 98, 1700, 4711);
	while (tally_sampler_next(sampler, 0, &got) == 1)
		;
	fake.lost = 2; /* by each of the two descriptors of an event */

	a = account_of(0);
	check_u64(a.records, 3);
	check_u64(a.samples, 1);
	check_u64(a.lost_records, 0);
	check_u64(a.lost_samples, 3);
	check_u64(a.lost_format, 4);
	check_u64(a.lost, 7);
	check_u64(a.throttled, 1);
	check_u64(a.throttled_ns, 0);
	a = account_of(1);
	check_u64(a.records, 5);
	check_u64(a.samples, 2);
	check_u64(a.lost_records, 5);
	check_u64(a.lost, 5);
	check_u64(a.throttled, 1);
	check_u64(a.throttled_ns, 500);
	a = account_of(UINT32_MAX);
	check_u64(a.records, 9);
	check_u64(a.samples, 3);
	check_u64(a.lost_records, 5);
	check_u64(a.lost_samples, 3);
	check_u64(a.lost_format, 8);
	check_u64(a.lost, 11);
	check_u64(a.throttled, 2);
	check_u64(a.throttled_ns, 500);
	check_int(tally_sampler_account(sampler, 2, &a, sizeof(a)), -EINVAL);
	close_two();
}

static void an_older_caller_gets_what_it_knows(void)
{
	struct {
		uint64_t records, samples, guard;
	} small = { 9, 9, 4711 };
	struct {
		struct tally_sampler_account a;
		uint64_t newer;
	} large = { .newer = 4711 };

	if (!open_two((struct tally_sampler_opts){ 0 }))
		return;
	check_int(tally_sampler_account(sampler, 0, (void *)&small, 16), 0);
	check_u64(small.samples, 0);
	check_u64(small.guard, 4711);
	check_int(tally_sampler_account(sampler, 0, &large.a, sizeof(large)), 0);
	check_u64(large.newer, 0);
	close_two();
}

static void who_drains_himself_notes_what_was_lost(void)
{
	const uint64_t lost[] = { TALLY_RECORD_LOST | 56ull << 48, 10010, 6, 7, 20, 0, 10010 };

	if (!open_two((struct tally_sampler_opts){ 0 }))
		return;
	check_int(tally_sampler_note(sampler, lost, sizeof(lost)), 56);
	check_int(tally_sampler_note(sampler, lost, 40), -EAGAIN);
	check_u64(account_of(1).lost_records, 6);
	check_u64(account_of(UINT32_MAX).lost, 6);
	close_two();
}

static void what_comes_late_is_counted(void)
{
	static const uint64_t ips[] = { 1, 2, 3 };

	if (!open_two((struct tally_sampler_opts){ 0 }))
		return;
	/* An interrupt's record lies before that of the moment before it. */
	put_sample(0, 0, 110, 1);
	put_sample(0, 0, 100, 2);
	put_sample(0, 0, 120, 3);
	check_int(take(ips, 3), 3);
	check_u64(account_of(UINT32_MAX).disordered, 1);
	close_two();
}

int main(void)
{
	tap_run(rings_are_merged_by_time);
	tap_run(what_is_young_waits_for_a_round);
	tap_run(a_clock_that_is_set_back_holds_nothing_for_ever);
	tap_run(a_young_record_does_not_overtake);
	tap_run(all_is_given_when_it_is_disabled);
	tap_run(records_go_around_the_end);
	tap_run(space_is_given_back_early);
	tap_run(records_of_nobody_are_given);
	tap_run(bytes_that_are_no_record);
	tap_run(the_end_comes_after_the_last_record);
	tap_run(waits_can_be_cancelled);
	tap_run(overwrite_rings_are_not_merged);
	tap_run(losses_are_in_the_account);
	tap_run(an_older_caller_gets_what_it_knows);
	tap_run(who_drains_himself_notes_what_was_lost);
	tap_run(what_comes_late_is_counted);
	return tap_end();
}
