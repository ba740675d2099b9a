/* SPDX-License-Identifier: MIT */
/* Records by time: what a FINISHED_ROUND promises (perf.data-file-format.txt). */
#include <errno.h>

#include "handmade.h"
#include "profile/rounds.h"
#include "tap.h"

#define ROUND 0 /* in a list of times */
#define NONE  UINT64_MAX

/* A recording of samples {u64 ip; u64 time}: ip is the number of the sample in the file. */
static struct tally_reader *recording(const uint64_t *times, size_t count)
{
	struct handmade h = { 0 };
	struct tally_reader *reader = NULL;
	struct hm_attr attr = { .size = 96, .sample_type = TALLY_SAMPLE_IP | TALLY_SAMPLE_TIME };

	hm_header(&h, HM_HEADER, 96 + 16);
	hm_section(&h, HM_ATTRS_AT, h.len, 96 + 16);
	hm_attr(&h, &attr);
	hm_room(&h, 16);
	size_t data = h.len;
	for (size_t i = 0; i < count; i++) {
		if (times[i] == ROUND) {
			hm_record(&h, TALLY_FILE_FINISHED_ROUND, 0, 8);
			continue;
		}
		hm_record(&h, TALLY_RECORD_SAMPLE, 2, 24);
		hm_u64(&h, i);
		hm_u64(&h, times[i] == NONE ? 0 : times[i]);
	}
	hm_section(&h, HM_DATA_AT, data, h.len - data);
	check_int(tally_reader_open_fd(&reader, hm_file(&h), "made", NULL, NULL), 0);
	hm_done(&h);
	return reader;
}

static bool wants_samples(uint32_t type, void *arg)
{
	return type == TALLY_RECORD_SAMPLE;
}

/* The numbers of the samples, in the order in which they come, as text. */
static const char *order_of(const uint64_t *times, size_t count, bool in_order)
{
	static char text[256];
	struct tally_reader *reader = recording(times, count);
	struct rounds r = { .reader = reader, .wanted = wants_samples, .in_order = in_order };
	struct tally_reader_record item;
	struct tally_record rec;
	size_t len = 0;

	text[0] = '\0';
	while (rounds_next(&r, &item, NULL) > 0) {
		if (!check_int(tally_record_decode(item.layout, item.bytes, item.len, &rec,
						   sizeof(rec)),
			       24))
			break;
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%d", len ? " " : "",
					(int)rec.sample.ip);
	}
	check_int(rounds_next(&r, &item, NULL), 0); /* the end stays the end */
	rounds_done(&r);
	tally_reader_close(reader);
	return text;
}

#define ORDER(...)                                  \
	order_of((const uint64_t[]){ __VA_ARGS__ }, \
		 sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t), false)

static void a_file_without_rounds_is_sorted_as_a_whole(void)
{
	check_str(ORDER(30, 10, 20), "1 2 0");
	check_str(ORDER(5), "0");
}

static void equal_times_stay_as_they_come(void)
{
	check_str(ORDER(20, 10, 20, 10, 20), "1 3 0 2 4");
	/* Also when they wait over a round. */
	check_str(ORDER(20, 20, ROUND, 20, 10, ROUND, 20), "4 0 1 3 6");
}

static void a_round_lets_go_what_the_one_before_it_had(void)
{
	/* 15 is older than 20 of the round before it: it may be, for 20 is held one round more. */
	check_str(ORDER(10, 20, ROUND, 15, 30, ROUND, 25, ROUND, 40), "0 3 1 6 4 8");
	/* 5 breaks the promise: 10 and 20 are gone by then. */
	check_str(ORDER(10, 20, ROUND, 30, ROUND, 5, 40, ROUND), "0 1 5 3 6");
}

static void records_without_a_time_are_not_held(void)
{
	check_str(ORDER(30, NONE, 10), "1 2 0");
}

static void what_is_in_order_is_passed_on(void)
{
	const uint64_t times[] = { 10, ROUND, 20, ROUND, 30 };

	check_str(order_of(times, 5, true), "0 2 4");
	check_str(order_of(times, 5, false), "0 2 4");
}

static void nothing_is_the_end(void)
{
	check_str(ORDER(ROUND, ROUND), "");
}

/* A record of size 0 behind good ones: those come first, then the error, and again. */
static void damage_comes_last(void)
{
	const uint64_t times[] = { 20, 10 };
	struct handmade h = { 0 };
	struct hm_attr attr = { .size = 96, .sample_type = TALLY_SAMPLE_IP | TALLY_SAMPLE_TIME };
	struct tally_reader_record item;
	struct tally_reader *reader;
	struct tally_error err;

	hm_header(&h, HM_HEADER, 96 + 16);
	hm_section(&h, HM_ATTRS_AT, h.len, 96 + 16);
	hm_attr(&h, &attr);
	hm_room(&h, 16);
	size_t data = h.len;
	for (size_t i = 0; i < 2; i++) {
		hm_record(&h, TALLY_RECORD_SAMPLE, 2, 24);
		hm_u64(&h, i);
		hm_u64(&h, times[i]);
	}
	hm_record(&h, TALLY_RECORD_SAMPLE, 2, 0);
	hm_room(&h, 16);
	hm_section(&h, HM_DATA_AT, data, h.len - data);
	require(tally_reader_open_fd(&reader, hm_file(&h), "made", NULL, NULL) == 0);
	struct rounds r = { .reader = reader, .wanted = wants_samples };
	check_int(rounds_next(&r, &item, &err), 1);
	check_u64(item.offset, data + 24);
	check_int(rounds_next(&r, &item, &err), 1);
	check_u64(item.offset, data);
	check_int(rounds_next(&r, &item, &err), -EBADMSG);
	check_has(err.text, "record 3");
	check_int(rounds_next(&r, &item, &err), -EBADMSG);
	rounds_done(&r);
	tally_reader_close(reader);
	hm_done(&h);
}

int main(void)
{
	tap_run(a_file_without_rounds_is_sorted_as_a_whole);
	tap_run(equal_times_stay_as_they_come);
	tap_run(a_round_lets_go_what_the_one_before_it_had);
	tap_run(records_without_a_time_are_not_held);
	tap_run(what_is_in_order_is_passed_on);
	tap_run(nothing_is_the_end);
	tap_run(damage_comes_last);
	return tap_end();
}
