/* SPDX-License-Identifier: MIT */
/*
 * Rings on the real kernel: what was written, read, lost and overwritten adds up, and waits end when
 * they should. The events are hits of a tracepoint, whose number is known.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tally/tally.h>

#include "tap.h"
#include "tracefs.h"

#define FLOOD        1000000u
#define RECORD_BYTES 40u /* a header of 8, TID, TIME, CPU, PERIOD */

/* One event with a ring. */
struct tapped {
	struct tally_events *named, *events;
	struct tally_counter *counter;
	struct tally_ring *ring;
	struct tally_layout layout;
	struct tally_error err;
};

static void hit(unsigned times)
{
	for (unsigned i = 0; i < times; i++)
		syscall(SYS_getppid);
}

/* Counts hits of getppid(2) by this thread, or by a command; each is a record of RECORD_BYTES. */
static bool tap(struct tapped *t, const struct tally_target *target, uint64_t flags, uint64_t bytes,
		uint32_t ring_flags)
{
	const struct tally_counter_opts no_inherit = { sizeof(no_inherit), TALLY_COUNTER_NO_INHERIT,
						       NULL };
	struct tally_attr attr;

	*t = (struct tapped){ 0 };
	int r = tally_events_parse(&t->named, "syscalls:sys_enter_getppid", NULL, &t->err);
	if (r == 0) {
		attr = *tally_event_attr(tally_events_at(t->named, 0));
		attr.sample_period = 1;
		attr.sample_type = TALLY_SAMPLE_TID | TALLY_SAMPLE_TIME | TALLY_SAMPLE_PERIOD |
				   TALLY_SAMPLE_CPU;
		attr.flags |= TALLY_ATTR_WATERMARK | flags;
		/* Bytes: the flood need not wake for each, the waits are to. */
		attr.wakeup_events = bytes == 4096 ? 2048 : 1;
		tally_layout_init(&t->layout, &attr, false);
		r = tally_events_new(&t->events, "getppid", &attr, NULL, &t->err);
	}
	if (r == 0)
		r = tally_counter_open(&t->counter, tally_events_at(t->events, 0), target,
				       &no_inherit, &t->err);
	if (r == 0)
		r = tally_ring_open(&t->ring, tally_counter_fd(t->counter, 0),
				    TALLY_OPTS(ring, .bytes = bytes, .flags = ring_flags), &t->err);
	if (r < 0)
		printf("# %s\n", t->err.text);
	return check_int(r, 0);
}

static void untap(struct tapped *t)
{
	tally_ring_close(t->ring);
	tally_counter_close(t->counter);
	tally_events_free(t->events);
	tally_events_free(t->named);
}

static const struct tally_target self = { .scope = TALLY_SCOPE_SELF };

/* What a reader sees of a ring. */
struct seen {
	uint64_t samples, lost, bad;
	uint64_t last_time;
	bool newest_first;
};

static void look_at(struct tapped *t, const struct tally_record_header *header, struct seen *seen)
{
	struct tally_record rec;

	if (tally_record_decode(&t->layout, header, header->size, &rec, sizeof(rec)) < 0) {
		seen->bad++;
	} else if (rec.type == TALLY_RECORD_LOST) {
		seen->lost += rec.lost.lost;
	} else if (rec.type == TALLY_RECORD_SAMPLE) {
		bool ordered = seen->newest_first ? rec.id.time <= seen->last_time
						  : rec.id.time >= seen->last_time;
		seen->bad += (seen->samples && !ordered) || rec.leftover;
		seen->last_time = rec.id.time;
		seen->samples++;
	}
}

static void read_all(struct tapped *t, struct seen *seen)
{
	const struct tally_record_header *header;
	int r;

	while ((r = tally_ring_next(t->ring, &header)) > 0)
		look_at(t, header, seen);
	check_int(r, 0);
	tally_ring_release(t->ring);
}

struct reader {
	struct tapped *tapped;
	struct seen seen;
	int end;
};

static void *read_until_cancelled(void *arg)
{
	struct reader *reader = arg;
	const struct tally_record_header *header;
	int r;

	while ((r = tally_ring_next_wait(reader->tapped->ring, -1, &header)) > 0)
		look_at(reader->tapped, header, &reader->seen);
	reader->end = r;
	return NULL;
}

/* A reader that is too slow for a ring of one page, by far: nothing is lost unseen. */
static void what_is_read_and_what_is_lost_add_up(void)
{
	struct reader reader = { 0 };
	struct tally_count count;
	struct tapped t;
	pthread_t thread;

	require(tap(&t, &self, 0, 4096, TALLY_RING_CANCELLABLE));
	reader.tapped = &t;
	require(pthread_create(&thread, NULL, read_until_cancelled, &reader) == 0);
	tally_counter_enable(t.counter);
	hit(FLOOD);
	tally_counter_disable(t.counter);
	check_int(tally_ring_cancel(t.ring), 0);
	pthread_join(thread, NULL);
	check_int(reader.end, -ECANCELED);
	read_all(&t, &reader.seen);
	require(tally_counter_read(t.counter, &count) == 0);
	check_u64(count.value, FLOOD);
	check_int(reader.seen.bad, 0);
	check(reader.seen.samples >= 64);
	/* The event itself knows, to the last; LOST records are written with the next that fits. */
	check_u64(reader.seen.samples + count.lost, FLOOD);
	check(reader.seen.lost <= count.lost);
	untap(&t);
}

static void an_overwrite_ring_keeps_the_newest(void)
{
	struct seen seen = { .newest_first = true }, again = { .newest_first = true };
	struct tally_count count;
	struct tapped t;

	require(tap(&t, &self, TALLY_ATTR_WRITE_BACKWARD, 4096, TALLY_RING_OVERWRITE));
	read_all(&t, &seen);
	check_u64(seen.samples, 0);
	tally_counter_enable(t.counter);
	hit(FLOOD);
	require(tally_ring_snapshot(t.ring) == 0);
	read_all(&t, &seen);
	require(tally_counter_read(t.counter, &count) == 0);
	check_u64(count.value, FLOOD);
	check_u64(count.lost, 0);
	check_int(seen.bad, 0);
	/* Records of 40 bytes; the oldest of those in the page is cut. */
	check_u64(seen.samples, (uint64_t)sysconf(_SC_PAGESIZE) / RECORD_BYTES);
	printf("# %" PRIu64 " read, %" PRIu64 " overwritten\n", seen.samples,
	       count.value - seen.samples - count.lost);
	/* What comes while it is paused is lost, and known to be. */
	hit(10);
	require(tally_ring_resume(t.ring) == 0);
	hit(5);
	require(tally_ring_snapshot(t.ring) == 0);
	read_all(&t, &again);
	check_u64(again.samples, 5);
	check(again.last_time > seen.last_time);
	require(tally_counter_read(t.counter, &count) == 0);
	check_u64(count.value, FLOOD + 15);
	check_u64(count.lost, 10);
	untap(&t);
}

static void the_spans_of_a_snapshot_are_whole_records(void)
{
	struct iovec spans[2];
	struct tapped t;

	require(tap(&t, &self, TALLY_ATTR_WRITE_BACKWARD, 4096, TALLY_RING_OVERWRITE));
	tally_counter_enable(t.counter);
	for (unsigned hits = 1; hits < 300; hits += 23) {
		hit(hits);
		require(tally_ring_snapshot(t.ring) == 0);
		size_t bytes = 0, fit = (size_t)sysconf(_SC_PAGESIZE) / RECORD_BYTES;
		int n = tally_ring_peek(t.ring, spans);
		for (int i = 0; i < n; i++)
			bytes += spans[i].iov_len;
		check_u64(bytes, RECORD_BYTES * (hits < fit ? hits : fit));
		tally_ring_advance(t.ring, bytes);
		check_int(tally_ring_peek(t.ring, spans), 0);
		tally_ring_resume(t.ring);
	}
	untap(&t);
}

static void a_wait_ends_with_data_or_the_time(void)
{
	const struct tally_record_header *header = NULL;
	struct tapped t;

	require(tap(&t, &self, 0, 65536, 0));
	tally_counter_enable(t.counter);
	check_int(tally_ring_wait(t.ring, 0), 0);
	check_int(tally_ring_next_wait(t.ring, 1, &header), 0);
	check(!header);
	hit(1);
	check_int(tally_ring_wait(t.ring, -1), 1);
	check_int(tally_ring_next_wait(t.ring, -1, &header), 1);
	check_int(header ? header->type : 0, TALLY_RECORD_SAMPLE);
	check_int(tally_ring_next_wait(t.ring, 0, &header), 0);
	check_int(tally_ring_cancel(t.ring), -EINVAL);
	untap(&t);
}

/* One that nobody waited for yet ends the next wait, and that one alone. */
static void a_cancel_ends_one_wait(void)
{
	struct tapped t;

	require(tap(&t, &self, 0, 65536, TALLY_RING_CANCELLABLE));
	tally_counter_enable(t.counter);
	hit(1);
	check_int(tally_ring_cancel(t.ring), 0);
	check_int(tally_ring_cancel(t.ring), 0);
	check_int(tally_ring_wait(t.ring, -1), -ECANCELED);
	check_int(tally_ring_wait(t.ring, -1), 1);
	untap(&t);
}

/* The last records come before the end is told, though the kernel says no more than hang-up. */
static void the_end_comes_after_the_last_record(void)
{
	const struct tally_record_header *header;
	struct seen seen = { 0 };
	struct tapped t;
	int go[2], r;

	require(pipe(go) == 0);
	pid_t child = fork();
	if (child == 0) {
		char byte;
		close(go[1]);
		if (read(go[0], &byte, 1) == 1)
			hit(3);
		_exit(0);
	}
	close(go[0]);
	bool ok = tap(&t, &(struct tally_target){ .scope = TALLY_SCOPE_THREAD, .id = child }, 0,
		      65536, 0);
	if (ok)
		tally_counter_enable(t.counter);
	check(write(go[1], "g", 1) == 1);
	close(go[1]);
	require(waitpid(child, NULL, 0) == child);
	require(ok);
	while ((r = tally_ring_next_wait(t.ring, -1, &header)) > 0)
		look_at(&t, header, &seen);
	check_int(r, -EPIPE);
	check_u64(seen.samples, 3);
	check_int(tally_ring_wait(t.ring, -1), -EPIPE);
	untap(&t);
}

static void a_paused_ring_loses_what_comes(void)
{
	struct tally_count count;
	struct seen seen = { 0 };
	struct tapped t;

	require(tap(&t, &self, 0, 65536, 0));
	tally_counter_enable(t.counter);
	hit(2);
	check_int(tally_ring_pause(t.ring, true), 0);
	hit(3);
	check_int(tally_ring_pause(t.ring, false), 0);
	hit(4);
	read_all(&t, &seen);
	require(tally_counter_read(t.counter, &count) == 0);
	check_u64(count.value, 9);
	check_u64(count.lost, 3);
	check_u64(seen.samples, 6);
	check_u64(seen.lost, 3);
	untap(&t);
}

static void a_ring_shrinks_to_what_may_be_mapped(void)
{
	struct tapped t;

	/* 2 GiB are more than the kernel maps for anybody (1 GiB). */
	require(tap(&t, &self, 0, 2ull << 30, TALLY_RING_SHRINK));
	check(tally_ring_size(t.ring) < 2ull << 30);
	check_has(tally_ring_shrunk(t.ring) ? tally_ring_shrunk(t.ring) : "",
		  "instead of 2097152 KiB");
	untap(&t);
	require(tap(&t, &self, 0, 4096, TALLY_RING_SHRINK));
	check(!tally_ring_shrunk(t.ring));
	untap(&t);
}

static void software_has_no_aux_area(void)
{
	struct tally_error err;
	struct tapped t;

	require(tap(&t, &self, 0, 4096, 0));
	check_int(tally_ring_aux_open(t.ring, NULL, &err), -EOPNOTSUPP);
	check_has(err.text, "no AUX area");
	check_int(tally_ring_aux_peek(t.ring, (struct iovec[2]){ 0 }), -EINVAL);
	untap(&t);
}

int main(void)
{
	static const char *const why = "tracefs is not mounted and this user may not mount it";

	if (!tracefs_ready()) {
		printf("1..0 # SKIP %s\n", why);
		return 0;
	}
	tap_run(what_is_read_and_what_is_lost_add_up);
	tap_run(an_overwrite_ring_keeps_the_newest);
	tap_run(the_spans_of_a_snapshot_are_whole_records);
	tap_run(a_wait_ends_with_data_or_the_time);
	tap_run(a_cancel_ends_one_wait);
	tap_run(the_end_comes_after_the_last_record);
	tap_run(a_paused_ring_loses_what_comes);
	tap_run(a_ring_shrinks_to_what_may_be_mapped);
	tap_run(software_has_no_aux_area);
	return tap_end();
}
