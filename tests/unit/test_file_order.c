/* SPDX-License-Identifier: MIT */
/*
 * Records by time. The rule is perf's (tools/perf/util/ordered-events.c): a FINISHED_ROUND lets go
 * what is not newer than the newest that had come before the FINISHED_ROUND before it.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/sys.h"
#include "handmade-recording.h"
#include "perfdata/runs.h"

/* ---- system calls that fail where a test wants it ---- */

static int fail_writes; /* an errno, negative; 0: none */

static ssize_t fake_pwrite(int fd, const void *buf, size_t len, off_t offset)
{
	return fail_writes ? fail_writes : sys_kernel.pwrite(fd, buf, len, offset);
}

const struct sys_table *sys(void)
{
	static struct sys_table table;

	table = sys_kernel;
	table.pwrite = fake_pwrite;
	return &table;
}

/* ---- recordings of samples that tell their time and their number ---- */

/* SAMPLE {u64 ip: its number; u32 pid, tid; u64 time; u64 id; u64 period}. */
static void put(struct handmade *h, uint64_t number, uint64_t time)
{
	hm_record(h, 9, 2, 48);
	hm_u64(h, number);
	hm_u64(h, 7);
	hm_u64(h, time);
	hm_u64(h, 201);
	hm_u64(h, 1);
}

static void put_round(struct handmade *h)
{
	hm_record(h, TALLY_FILE_FINISHED_ROUND, 0, 8);
}

static struct tally_reader *open_by_time(const struct made *m, int *fd, const char *temp_folder)
{
	struct tally_reader_opts opts = { .size = sizeof(opts),
					  .flags = TALLY_READER_TIME_ORDER,
					  .temp_folder = temp_folder };
	struct tally_reader *r = NULL;
	struct tally_error err = { 0 };

	*fd = hm_file(&m->h);
	if (!check_int(tally_reader_open_fd(&r, *fd, "t.data", &opts, &err), 0))
		printf("# %s\n", err.text);
	return r;
}

struct seen {
	uint32_t type;
	uint64_t time, number;
};

static int next(struct tally_reader *r, struct seen *seen, struct tally_error *err)
{
	struct tally_reader_record rec;
	struct tally_record decoded;
	int ret = tally_reader_next(r, &rec, err);

	if (ret <= 0)
		return ret;
	check(tally_record_decode(rec.layout, rec.bytes, rec.len, &decoded, sizeof(decoded)) > 0);
	*seen = (struct seen){ rec.type, decoded.id.time, decoded.sample.ip };
	if (rec.type == TALLY_RECORD_SAMPLE)
		check_int(rec.event, 1);
	return ret;
}

/* The numbers of samples as they come; 0 stands for a FINISHED_ROUND. */
static void check_order(struct tally_reader *r, const int *want, int count)
{
	struct seen seen;

	for (int i = 0; i < count; i++) {
		if (!check_int(next(r, &seen, NULL), 1))
			return;
		check_int(seen.type == TALLY_FILE_FINISHED_ROUND ? 0 : (int)seen.number, want[i]);
	}
	check_int(next(r, &seen, NULL), 0);
	check_int(next(r, &seen, NULL), 0);
}

#define check_numbers(r, ...)                        \
	check_order(r, (const int[]){ __VA_ARGS__ }, \
		    sizeof((const int[]){ __VA_ARGS__ }) / sizeof(int))

static void a_round_lets_go_what_the_one_before_had(void)
{
	struct made m;
	int fd;

	start_data(&m, &(struct shape){ .header = 72 });
	put(&m.h, 1, 100);
	put(&m.h, 2, 300);
	put_round(&m.h);
	put(&m.h, 3, 200); /* of another CPU, whose ring was read too early for it */
	put(&m.h, 4, 400);
	put_round(&m.h); /* up to 300 */
	put(&m.h, 5, 350);
	put_round(&m.h); /* up to 400 */
	put(&m.h, 6, 500);
	end_data(&m);
	struct tally_reader *r = open_by_time(&m, &fd, NULL);
	require(r);
	for (int pass = 0; pass < 2; pass++) {
		check_numbers(r, 0, 1, 3, 2, 0, 5, 4, 0, 6);
		check_str(tally_reader_health(r), NULL);
		tally_reader_rewind(r, NULL);
	}
	close_made(r, fd);
	hm_done(&m.h);
}

static void equal_times_stay_in_the_order_of_the_file(void)
{
	struct made m;
	int fd;

	start_data(&m, &(struct shape){ .header = 72 });
	for (int i = 1; i <= 6; i++)
		put(&m.h, (uint64_t)i, i % 3 ? 50 : 40);
	end_data(&m);
	struct tally_reader *r = open_by_time(&m, &fd, NULL);
	require(r);
	check_numbers(r, 3, 6, 1, 2, 4, 5);
	close_made(r, fd);
	hm_done(&m.h);
}

static void what_has_no_time_comes_at_once(void)
{
	struct made m;
	int fd;

	start_data(&m, &(struct shape){ .header = 72 });
	put(&m.h, 1, 200);
	put(&m.h, 2, 0);
	put(&m.h, 3, UINT64_MAX);
	put(&m.h, 4, 100);
	end_data(&m);
	struct tally_reader *r = open_by_time(&m, &fd, NULL);
	require(r);
	check_numbers(r, 2, 3, 4, 1);
	close_made(r, fd);
	hm_done(&m.h);
}

/* With sample_id_all {tid, time, id} the time of others is the second word from their end. */
static void other_records_have_their_time_at_the_end(void)
{
	struct made m;
	struct tally_reader_record rec;
	int fd;

	start_data(&m, &(struct shape){ .header = 72 });
	for (size_t i = 0; i < 2; i++)
		hm_set(&m.h, m.attrs + 112 * i + 40, SAMPLE_ID_ALL, 8);
	put(&m.h, 1, 200);
	hm_record(&m.h, 3, 0, 48);
	hm_u64(&m.h, 7);
	hm_bytes(&m.h, "early\0\0", 8);
	hm_u64(&m.h, 7);
	hm_u64(&m.h, 100);
	hm_u64(&m.h, 101);
	end_data(&m);
	struct tally_reader *r = open_by_time(&m, &fd, NULL);
	require(r);
	require(tally_reader_next(r, &rec, NULL) == 1);
	check_int(rec.type, TALLY_RECORD_COMM);
	check_u64(rec.offset, m.data + 48);
	check_int(rec.event, 0);
	require(tally_reader_next(r, &rec, NULL) == 1);
	check_int(rec.type, TALLY_RECORD_SAMPLE);
	close_made(r, fd);
	hm_done(&m.h);
}

static void what_breaks_the_promise_is_told(void)
{
	struct made m;
	int fd;

	start_data(&m, &(struct shape){ .header = 72 });
	put(&m.h, 1, 100);
	put_round(&m.h);
	put_round(&m.h);
	put(&m.h, 2, 50);
	end_data(&m);
	struct tally_reader *r = open_by_time(&m, &fd, NULL);
	require(r);
	check_numbers(r, 0, 1, 0, 2);
	check_has(tally_reader_health(r), "has 1 records that came later");
	close_made(r, fd);
	hm_done(&m.h);
}

static void what_stood_before_damage_is_delivered_in_order(void)
{
	struct made m;
	struct seen seen;
	struct tally_error err = { 0 }, again = { 0 };
	int fd;

	start_data(&m, &(struct shape){ .header = 72 });
	put(&m.h, 1, 200);
	put(&m.h, 2, 100);
	hm_record(&m.h, 9, 2, 7);
	end_data(&m);
	struct tally_reader *r = open_by_time(&m, &fd, NULL);
	require(r);
	for (int i = 0; i < 2; i++) {
		check_int(next(r, &seen, &err), 1);
		check_u64(seen.number, i ? 1 : 2);
	}
	check_int(next(r, &seen, &err), -EBADMSG);
	check_has(err.text, "record 3 (SAMPLE)");
	check_int(next(r, &seen, &again), -EBADMSG);
	check_str(again.text, err.text);
	close_made(r, fd);
	hm_done(&m.h);
}

/* ---- many ---- */

static uint64_t dice;

static uint64_t roll(uint64_t sides)
{
	dice ^= dice << 13, dice ^= dice >> 7, dice ^= dice << 17;
	return dice % sides;
}

/* `rounds` rounds of what `cpus` CPUs wrote, each in order and behind one another, for so long. */
static uint64_t put_rounds(struct made *m, int rounds, int cpus, int each)
{
	uint64_t number = 0, start = 1000;

	for (int i = 0; i < rounds; i++) {
		for (int cpu = 0; cpu < cpus; cpu++) {
			/* A ring is read up to a time that is anywhere in the next round's. */
			uint64_t time = start;
			for (int k = 0; k < each; k++)
				put(&m->h, ++number, time += roll(10));
		}
		start += (uint64_t)each * 10;
		put_round(&m->h);
	}
	return number;
}

/* In order of time, and those of equal times in order of number. */
static void check_sorted(struct tally_reader *r, uint64_t count)
{
	struct seen seen, last = { 0 };
	struct tally_error err = { 0 };
	uint64_t n = 0;
	int ret, bad = 0;

	while ((ret = next(r, &seen, &err)) > 0) {
		if (seen.type != TALLY_RECORD_SAMPLE)
			continue;
		n++;
		bad += seen.time < last.time ||
		       (seen.time == last.time && seen.number < last.number);
		last = seen;
	}
	if (!check_int(ret, 0))
		printf("# %s\n", err.text);
	check_int(bad, 0);
	check_u64(n, count);
}

static void check_rounds(int rounds, int cpus, int each)
{
	struct made m;
	int fd;

	dice = 88172645463325252u;
	start_data(&m, &(struct shape){ .header = 72 });
	uint64_t count = put_rounds(&m, rounds, cpus, each);
	end_data(&m);
	struct tally_reader *r = open_by_time(&m, &fd, NULL);
	require(r);
	check_sorted(r, count);
	tally_reader_rewind(r, NULL);
	check_sorted(r, count);
	check_str(tally_reader_health(r), NULL);
	close_made(r, fd);
	hm_done(&m.h);
}

static void rounds_of_any_size_come_in_order(void)
{
	check_rounds(500, 3, 20);
	check_rounds(30, 2, 5000); /* many rounds go through the memory that holds them */
	check_rounds(5, 7, 40000); /* a round is more than memory holds */
	check_rounds(1, 1, 300000);
}

/* Without rounds all has to be sorted, here through a temporary file. */
static void without_rounds_all_is_sorted(void)
{
	struct made m;
	int fd;
	const uint64_t count = 400000;

	dice = 362436069;
	start_data(&m, &(struct shape){ .header = 72 });
	for (uint64_t i = 1; i <= count; i++)
		put(&m.h, i, 1 + roll(50000));
	end_data(&m);
	struct tally_reader *r = open_by_time(&m, &fd, "/tmp");
	require(r);
	check_sorted(r, count);
	tally_reader_rewind(r, NULL);
	check_sorted(r, count);
	close_made(r, fd);

	struct tally_error err = { 0 };
	struct seen seen;
	int ret;
	require((r = open_by_time(&m, &fd, "/nonexistent/folder")) != NULL);
	while ((ret = next(r, &seen, &err)) > 0)
		;
	check_int(ret, -ENOENT);
	check_has(err.text, "/nonexistent/folder");
	close_made(r, fd);
	require((r = open_by_time(&m, &fd, NULL)) != NULL);
	fail_writes = -ENOSPC;
	while ((ret = next(r, &seen, &err)) > 0)
		;
	fail_writes = 0;
	check_int(ret, -ENOSPC);
	check_has(err.text, "TMPDIR");
	tally_reader_rewind(r, NULL);
	check_sorted(r, count);
	close_made(r, fd);
	hm_done(&m.h);
}

/* ---- runs ---- */

static int compare_times(const void *a, const void *b)
{
	const struct waiting *x = a, *y = b;

	return x->time != y->time ? (x->time < y->time ? -1 : 1) : (x->offset < y->offset ? -1 : 1);
}

static void put_run(struct runs *runs, int count, uint64_t *number)
{
	static char bytes[65536];
	struct waiting heads[64];

	for (int i = 0; i < count; i++)
		heads[i] = (struct waiting){ .time = roll(1000),
					     .offset = ++*number,
					     .len = *number % 100 ? 8 : 65535 };
	qsort(heads, (size_t)count, sizeof(*heads), compare_times);
	check_int(runs_begin(runs, NULL), 0);
	for (int i = 0; i < count; i++)
		check_int(runs_append(runs, &heads[i], bytes, NULL), 0);
	check_int(runs_end(runs, NULL), 0);
}

static void check_runs(struct runs *runs, uint64_t count)
{
	const struct waiting *head;
	struct waiting last = { 0 };
	uint64_t n = 0;

	while ((head = runs_first(runs))) {
		check(compare_times(&last, head) < 0);
		check_int(head->len, head->offset % 100 ? 8 : 65535);
		last = *head;
		n++;
		check_int(runs_drop(runs, NULL), 0);
	}
	check_u64(n, count);
}

/* More runs than are merged at once, so that runs of runs are made, twice over. */
static void thousands_of_runs_are_merged_in_turns(void)
{
	struct runs runs = { 0 };
	uint64_t number = 0;

	dice = 521288629;
	for (int i = 0; i < RUNS_FAN_IN * RUNS_FAN_IN + 50; i++)
		put_run(&runs, 1 + i % 5, &number);
	check(runs.levels[2].count == 1);
	check(runs.heap.count < 3 * RUNS_FAN_IN);
	check_runs(&runs, number);
	/* The disk has its space back. */
	for (int i = 0; i < 3; i++)
		check_u64(runs.levels[i].size, 0);
	runs_done(&runs);
}

static void runs_may_come_while_others_are_taken(void)
{
	struct runs runs = { 0 };
	uint64_t number = 0, taken = 0, last = 0;

	for (int i = 0; i < 500; i++) {
		struct waiting head = { .time = 10 * (uint64_t)i, .offset = ++number, .len = 8 };
		check_int(runs_begin(&runs, NULL), 0);
		for (int k = 0; k < 3; k++, head.time += 7)
			check_int(runs_append(&runs, &head, "12345678", NULL), 0);
		check_int(runs_end(&runs, NULL), 0);
		for (; runs_first(&runs)->time < 10 * (uint64_t)i; taken++) {
			check(runs_first(&runs)->time >= last);
			last = runs_first(&runs)->time;
			check_int(runs_drop(&runs, NULL), 0);
		}
	}
	for (; runs_first(&runs); taken++)
		check_int(runs_drop(&runs, NULL), 0);
	check_u64(taken, 1500);
	runs_done(&runs);
}

int main(void)
{
	tap_run(a_round_lets_go_what_the_one_before_had);
	tap_run(equal_times_stay_in_the_order_of_the_file);
	tap_run(what_has_no_time_comes_at_once);
	tap_run(other_records_have_their_time_at_the_end);
	tap_run(what_breaks_the_promise_is_told);
	tap_run(what_stood_before_damage_is_delivered_in_order);
	tap_run(rounds_of_any_size_come_in_order);
	tap_run(without_rounds_all_is_sorted);
	tap_run(thousands_of_runs_are_merged_in_turns);
	tap_run(runs_may_come_while_others_are_taken);
	return tap_end();
}
