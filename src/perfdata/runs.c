/* SPDX-License-Identifier: MIT */
/*
 * External merging. A run is written from front to back into its level's file and read back
 * through a small buffer; the top of a heap is the run whose first record is the earliest. A
 * level that has RUNS_FAN_IN runs is merged into one run of the next, so that no more than
 * levels * fan-in buffers exist.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/sys.h"
#include "perfdata/runs.h"
#include "perfdata/temp.h"

#define READ_BUFFER  (32u << 10)
#define WRITE_BUFFER (256u << 10)

static size_t stored(uint32_t len)
{
	return sizeof(struct waiting) + align_up(len, 8);
}

static void run_free(struct runs *r, struct run *run)
{
	struct run_level *level = &r->levels[run->level];

	/* The file is empty again when nobody needs it: the disk gets its space back. */
	if (--level->count == 0 && level->fd_plus_1 && ftruncate(level->fd_plus_1 - 1, 0) == 0)
		level->size = 0;
	free(run->buf);
	free(run);
}

/* ---- reading ---- */

static const struct waiting *head_of(const struct run *run)
{
	return (const struct waiting *)(const void *)(run->buf + run->pos);
}

/* Makes `len` bytes of the run available, growing the buffer for long records. */
static int fetch(struct runs *r, struct run *run, size_t len, struct tally_error *err)
{
	if (run->have - run->pos >= len)
		return 0;
	memmove(run->buf, run->buf + run->pos, run->have - run->pos);
	run->have -= run->pos;
	run->pos = 0;
	if (len > run->room) {
		uint8_t *grown = realloc(run->buf, len);
		if (!grown)
			return error_nomem(err, "sorting records");
		run->buf = grown;
		run->room = len;
	}
	size_t want = run->room - run->have;
	if (want > run->end - run->at)
		want = (size_t)(run->end - run->at);
	int ret = temp_read(r->levels[run->level].fd_plus_1 - 1, run->buf + run->have, want,
			    run->at, err);
	if (ret < 0)
		return ret;
	run->at += want;
	run->have += want;
	return 0;
}

/* Makes the first record available. 1, 0 at the end of the run, or -errno. */
static int load_first(struct runs *r, struct run *run, struct tally_error *err)
{
	if (run->pos == run->have && run->at == run->end)
		return 0;
	int ret = fetch(r, run, sizeof(struct waiting), err);
	if (ret == 0)
		ret = fetch(r, run, stored(head_of(run)->len), err);
	return ret < 0 ? ret : 1;
}

static bool before(const struct run *a, const struct run *b)
{
	uint64_t ta = head_of(a)->time, tb = head_of(b)->time;

	return ta != tb ? ta < tb : a->age < b->age;
}

static void sift_down(struct runs *r, size_t i)
{
	struct run **heap = r->heap.at, *moved = heap[i];

	for (;;) {
		size_t child = 2 * i + 1;
		if (child >= r->heap.count)
			break;
		if (child + 1 < r->heap.count && before(heap[child + 1], heap[child]))
			child++;
		if (!before(heap[child], moved))
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = moved;
}

static void make_heap(struct runs *r)
{
	for (size_t i = r->heap.count / 2; i-- > 0;)
		sift_down(r, i);
}

const struct waiting *runs_first(const struct runs *r)
{
	return r->heap.count ? head_of(r->heap.at[0]) : NULL;
}

const uint8_t *runs_first_bytes(const struct runs *r)
{
	return r->heap.at[0]->buf + r->heap.at[0]->pos + sizeof(struct waiting);
}

int runs_drop(struct runs *r, struct tally_error *err)
{
	struct run *run = r->heap.at[0];

	run->pos += stored(head_of(run)->len);
	int ret = load_first(r, run, err);
	if (ret < 0)
		return ret;
	if (ret == 0) {
		r->heap.at[0] = r->heap.at[--r->heap.count];
		run_free(r, run);
	}
	if (r->heap.count)
		sift_down(r, 0);
	return 0;
}

/* ---- writing ---- */

static int open_level(struct runs *r, uint32_t level, struct tally_error *err)
{
	if (r->levels[level].fd_plus_1)
		return 0;
	int fd = temp_open(r->folder, err);
	r->levels[level].fd_plus_1 = fd < 0 ? 0 : fd + 1;
	return fd < 0 ? fd : 0;
}

static int begin(struct runs *r, uint32_t level, uint64_t age, struct tally_error *err)
{
	struct run *run = calloc(1, sizeof(*run));

	if (!run)
		return error_nomem(err, "sorting records");
	*run = (struct run){ .level = level, .age = age, .room = WRITE_BUFFER };
	r->levels[level].count++;
	run->buf = malloc(run->room);
	int ret = run->buf ? open_level(r, level, err) : error_nomem(err, "sorting records");
	if (ret < 0) {
		run_free(r, run);
		return ret;
	}
	run->at = run->end = r->levels[level].size;
	r->writing = run;
	return 0;
}

int runs_begin(struct runs *r, struct tally_error *err)
{
	return begin(r, 0, r->ages++, err);
}

static int flush(struct runs *r, struct run *run, struct tally_error *err)
{
	int ret = temp_write(r->levels[run->level].fd_plus_1 - 1, run->buf, run->have, run->end,
			     err);

	run->end += run->have;
	run->have = 0;
	return ret;
}

int runs_append(struct runs *r, const struct waiting *head, const void *bytes,
		struct tally_error *err)
{
	struct run *run = r->writing;
	size_t size = stored(head->len);

	if (size > run->room - run->have) {
		int ret = flush(r, run, err);
		if (ret < 0)
			return ret;
	}
	/* The longest record has 64 KiB. */
	uint8_t *to = run->buf + run->have;
	memcpy(to, head, sizeof(*head));
	memcpy(to + sizeof(*head), bytes, head->len);
	memset(to + sizeof(*head) + head->len, 0, size - sizeof(*head) - head->len);
	run->have += size;
	return 0;
}

/* From writing to reading, with a buffer of its size. */
static int turn_around(struct runs *r, struct run *run, struct tally_error *err)
{
	int ret = flush(r, run, err);

	if (ret < 0)
		return ret;
	r->levels[run->level].size = run->end;
	free(run->buf);
	run->room = READ_BUFFER;
	run->pos = run->have = 0;
	run->buf = malloc(run->room);
	return run->buf ? load_first(r, run, err) : error_nomem(err, "sorting records");
}

static int finish(struct runs *r, struct tally_error *err)
{
	struct run *run = r->writing;
	int ret = turn_around(r, run, err);

	struct run **slot = ret > 0 ? vec_push(&r->heap) : NULL;
	if (ret > 0 && !slot)
		ret = error_nomem(err, "sorting records");
	r->writing = NULL;
	if (slot)
		*slot = run;
	else
		run_free(r, run);
	make_heap(r);
	return ret < 0 ? ret : 0;
}

/* Takes the runs of a level out of the heap; how many stay. */
static void keep_level(struct runs *r, uint32_t level, struct run **others, size_t *count)
{
	size_t kept = 0;

	*count = 0;
	for (size_t i = 0; i < r->heap.count; i++) {
		struct run *run = r->heap.at[i];
		if (run->level == level)
			r->heap.at[kept++] = run;
		else
			others[(*count)++] = run;
	}
	r->heap.count = kept;
	make_heap(r);
}

/* Merges all runs of a level into one of the next. */
static int merge_level(struct runs *r, uint32_t level, struct tally_error *err)
{
	struct run *others[RUNS_LEVELS * (RUNS_FAN_IN + 1)];
	size_t count;
	uint64_t age = UINT64_MAX;

	keep_level(r, level, others, &count);
	vec_each (&r->heap, run)
		age = (*run)->age < age ? (*run)->age : age;
	int ret = begin(r, level + 1, age, err);
	while (ret == 0 && r->heap.count) {
		ret = runs_append(r, runs_first(r), runs_first_bytes(r), err);
		if (ret == 0)
			ret = runs_drop(r, err);
	}
	/* The array had room for all of them, and only those of this level were dropped. */
	for (size_t i = 0; i < count; i++)
		r->heap.at[r->heap.count++] = others[i];
	return ret < 0 ? ret : finish(r, err);
}

int runs_end(struct runs *r, struct tally_error *err)
{
	int ret = finish(r, err);

	for (uint32_t level = 0; ret == 0 && level + 1 < RUNS_LEVELS; level++)
		if (r->levels[level].count >= RUNS_FAN_IN)
			ret = merge_level(r, level, err);
	return ret;
}

void runs_done(struct runs *r)
{
	if (r->writing)
		run_free(r, r->writing);
	vec_each (&r->heap, run)
		run_free(r, *run);
	vec_done(&r->heap);
	for (uint32_t i = 0; i < RUNS_LEVELS; i++)
		if (r->levels[i].fd_plus_1)
			sys()->close(r->levels[i].fd_plus_1 - 1);
	*r = (struct runs){ .folder = r->folder };
}
