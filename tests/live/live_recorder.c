/* SPDX-License-Identifier: MIT */
/* Recorders on the real kernel: events switched off and on, further files, flight recorders. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <tally/profiling.h>
#include <tally/tally.h>

#include "tap.h"

#define PAGES 300

static const struct tally_target self = { .scope = TALLY_SCOPE_SELF };
static const struct tally_sampler_opts each_fault = { .size = sizeof(each_fault), .period = 1 };

static struct {
	char folder[64], path[80], next[80];
	struct tally_events *events;
	struct tally_recorder *recorder;
	struct tally_error err;
} t;

static void touch_fresh_pages(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char *at = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	require(at != MAP_FAILED);
	madvise(at, PAGES * page, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < PAGES; i++)
		*(volatile unsigned char *)(at + i * page) = 1;
	munmap(at, PAGES * page);
}

static int open_with(const char *events, struct tally_recorder_opts opts)
{
	memset(&t, 0, sizeof(t));
	strcpy(t.folder, "/tmp/tally-recorder-XXXXXX");
	if (!mkdtemp(t.folder))
		return -errno;
	snprintf(t.path, sizeof(t.path), "%s/f", t.folder);
	snprintf(t.next, sizeof(t.next), "%s/g", t.folder);
	opts.size = sizeof(opts);
	opts.path = t.path;
	struct tally_events_opts user = { .size = sizeof(user),
					  .fallback = TALLY_FALLBACK_USER_ONLY };
	int r = tally_events_parse(&t.events, events, &user, &t.err);
	return r < 0 ? r : tally_recorder_open(&t.recorder, t.events, &self, &opts, &t.err);
}

static void end(void)
{
	tally_recorder_close(t.recorder);
	tally_events_free(t.events);
	unlink(t.path);
	unlink(t.next);
	check_int(rmdir(t.folder), 0);
}

/* Samples that were written, after a drain. */
static uint64_t written(void)
{
	struct tally_recording now;

	/* A step drains every 250 ms. */
	for (int i = 0; i < 30; i++)
		if (tally_recorder_step(t.recorder, 10, &t.err) < 0)
			check_str(t.err.text, "");
	tally_recorder_progress(t.recorder, &now);
	return now.samples;
}

/* Samples of the i-th event in a file. */
static uint64_t in_file(const char *path, uint32_t event)
{
	struct tally_reader *reader;
	struct tally_reader_record item;
	struct tally_error err;
	uint64_t count = 0;

	if (!check(tally_reader_open(&reader, path, NULL, &err) == 0))
		return 0;
	while (tally_reader_next(reader, &item, &err) > 0)
		count += item.type == TALLY_RECORD_SAMPLE && item.event == event;
	check(!tally_reader_health(reader));
	tally_reader_close(reader);
	return count;
}

static void two_ways_to_say_it_are_refused(void)
{
	const struct tally_recorder_opts both[] = {
		{ .sampler = &each_fault, .flags = TALLY_RECORDER_CALLCHAIN },
		{ .sampler = &each_fault, .freq = 99 },
		{ .sampler = &each_fault, .period = 99 },
		{ .sampler = &each_fault, .sample_type = TALLY_SAMPLE_ADDR },
		{ .sampler = &each_fault, .ring_bytes = 65536 },
	};

	for (size_t i = 0; i < sizeof(both) / sizeof(*both); i++) {
		check_int(open_with("page-faults", both[i]), -EINVAL);
		check_has(t.err.text, "twice");
		end();
	}
}

static void what_starts_disabled_needs_a_side_band(void)
{
	check_int(open_with("page-faults",
			    (struct tally_recorder_opts){ .flags = TALLY_RECORDER_DISABLED }),
		  -EINVAL);
	check_has(t.err.text, "SIDE_BAND");
	end();
}

static void events_are_switched(void)
{
	const struct tally_recorder_opts opts = {
		.flags = TALLY_RECORDER_DISABLED | TALLY_RECORDER_SIDE_BAND,
		.sampler = &each_fault,
	};
	uint64_t before;

	require(open_with("page-faults,minor-faults", opts) == 0);
	check_int(tally_recorder_start(t.recorder, &t.err), 0);
	touch_fresh_pages();
	check_u64(written(), 0);
	check_int(tally_recorder_enable(t.recorder, 1, &t.err), 0);
	touch_fresh_pages();
	check_int(tally_recorder_disable(t.recorder, UINT32_MAX, &t.err), 0);
	before = written();
	check(before >= PAGES && before < 2 * PAGES);
	touch_fresh_pages();
	check_u64(written(), before);
	check_int(tally_recorder_enable(t.recorder, UINT32_MAX, &t.err), 0);
	touch_fresh_pages();
	check_int(tally_recorder_disable(t.recorder, 0, &t.err), 0);
	check_int(tally_recorder_disable(t.recorder, 1, &t.err), 0);
	check(written() >= before + 2 * PAGES);
	check_int(tally_recorder_enable(t.recorder, 2, &t.err), -EINVAL);
	check_int(tally_recorder_disable(t.recorder, 2, &t.err), -EINVAL);
	check_int(tally_recorder_finish(t.recorder, NULL, &t.err), 0);
	check(in_file(t.path, 1) > in_file(t.path, 0));
	end();
}

static void a_file_is_switched(void)
{
	struct tally_recording all;

	require(open_with("page-faults", (struct tally_recorder_opts){ .period = 1 }) == 0);
	check_int(tally_recorder_start(t.recorder, &t.err), 0);
	touch_fresh_pages();
	check_int(tally_recorder_switch(t.recorder, t.next, &t.err), 0);
	touch_fresh_pages();
	touch_fresh_pages();
	check_int(tally_recorder_finish(t.recorder, &all, &t.err), 0);
	uint64_t first = in_file(t.next, 0), second = in_file(t.path, 0);
	check(first >= PAGES && first < 2 * PAGES);
	check(second >= 2 * PAGES);
	check_u64(first + second, all.samples);
	end();
}

static void a_name_that_cannot_be_is_told(void)
{
	char nowhere[100];

	require(open_with("page-faults", (struct tally_recorder_opts){ .period = 1 }) == 0);
	check_int(tally_recorder_start(t.recorder, &t.err), 0);
	snprintf(nowhere, sizeof(nowhere), "%s/no/such", t.folder);
	check_int(tally_recorder_switch(t.recorder, nowhere, &t.err), -ENOENT);
	check_has(t.err.text, nowhere);
	check_has(t.err.text, t.path);
	end();
}

static void a_flight_recorder_writes_at_its_end(void)
{
	const struct tally_sampler_opts overwrite = { .size = sizeof(overwrite),
						      .flags = TALLY_SAMPLER_OVERWRITE,
						      .period = 1 };
	struct tally_recording all;

	require(open_with("page-faults", (struct tally_recorder_opts){ .sampler = &overwrite }) ==
		0);
	check_int(tally_recorder_start(t.recorder, &t.err), 0);
	touch_fresh_pages();
	check_u64(written(), 0);
	check_int(tally_recorder_switch(t.recorder, t.next, &t.err), 0);
	touch_fresh_pages();
	touch_fresh_pages();
	check_int(tally_recorder_finish(t.recorder, &all, &t.err), 0);
	uint64_t first = in_file(t.next, 0), second = in_file(t.path, 0);
	check(first >= PAGES && first < 2 * PAGES);
	check(second >= 2 * PAGES);
	check_u64(first + second, all.samples);
	end();
}

int main(void)
{
	tap_run(two_ways_to_say_it_are_refused);
	tap_run(what_starts_disabled_needs_a_side_band);
	tap_run(events_are_switched);
	tap_run(a_file_is_switched);
	tap_run(a_name_that_cannot_be_is_told);
	tap_run(a_flight_recorder_writes_at_its_end);
	return tap_end();
}
