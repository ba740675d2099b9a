/* SPDX-License-Identifier: MIT */
/* What a system call has told and was given: taken down, compared, and told again to another run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "inspect/same.h"

/* Memory is read in pieces of so many bytes. */
#define PIECE 4096u

int same_peek_thread(void *thread, uint64_t address, void *buf, uint64_t len)
{
	return tally_tracee_peek(((struct same_thread *)thread)->tracee, address, buf, len);
}

struct taking {
	struct same_run *run;
	struct same_thread *thread;
	size_t told; /* replay: bytes so far */
};

static int peek_taking(void *arg, uint64_t address, void *buf, uint64_t len)
{
	return same_peek_thread(((struct taking *)arg)->thread, address, buf, len);
}

static void take_head(struct same_input *input, const uint8_t *bytes, uint64_t len)
{
	uint64_t room = SAME_HEAD - input->head_len;

	len = len < room ? len : room;
	memcpy(input->head + input->head_len, bytes, len);
	input->head_len += (uint8_t)len;
}

/* What cannot be read was not written either: a pointer to nowhere. */
static int take_range(void *arg, const struct same_range *range)
{
	struct taking *taking = arg;
	struct same_input *input = &taking->run->input;
	uint64_t *digest = range->in ? &input->given : &input->digest;
	uint8_t bytes[PIECE];

	if (range->in && !input->given_at)
		input->given_at = range->address;
	if (!range->in && !input->len) {
		input->at = range->address;
		input->len = range->len;
	}
	for (uint64_t at = 0; at < range->len; at += PIECE) {
		uint64_t len = range->len - at < PIECE ? range->len - at : PIECE;
		if (peek_taking(arg, range->address + at, bytes, len) < 0)
			return 0;
		*digest = hash_u64(*digest ^ hash_bytes(bytes, len));
		take_head(input, bytes, len);
		if (taking->run->keep && !range->in)
			buf_add(&taking->run->data, bytes, len);
	}
	return 0;
}

int same_take_call(struct same_run *run, struct same_thread *t, int64_t result)
{
	struct taking taking = { .run = run, .thread = t };
	const struct same_pending *p = &t->pending;
	struct same_input *input = &run->input;

	memset(input, 0, sizeof(*input));
	input->kind = SAME_INPUT_CALL;
	input->thread = t->number;
	input->tick = run->step.tick;
	input->pc = run->step.pc;
	input->number = p->number;
	memcpy(input->args, p->args, sizeof(input->args));
	input->result = result;
	input->once = p->once;
	run->keep = input->kept = p->once && run->index == 0;
	buf_reset(&run->data);
	/* The pieces of a poll are there whatever it answers, those of others only without an error. */
	int r = same_call_ranges(p->call, p->args, result, peek_taking, take_range, &taking);
	return r < 0 ? 0 : run->data.failed ? -1 : 0;
}

static int replay_range(void *arg, const struct same_range *range)
{
	struct taking *taking = arg;
	const struct same_input *first = taking->thread->pending.first;
	const struct buf *data = taking->thread->pending.told;
	uint64_t from = first->data + taking->told;

	if (range->in)
		return 0;
	if (from > data->len || range->len > data->len - from)
		return 0;
	taking->told += range->len;
	return tally_tracee_poke(taking->thread->tracee, range->address, data->at + from,
				 range->len);
}

int same_replay(struct same_run *run, struct same_thread *t)
{
	struct taking taking = { .run = run, .thread = t };
	const struct same_pending *p = &t->pending;

	return same_call_ranges(p->call, p->args, p->first->result, peek_taking, replay_range,
				&taking);
}

bool same_inputs_equal(const struct same_input *a, const struct same_input *b)
{
	return a->kind == b->kind && a->number == b->number && a->tick == b->tick &&
	       a->thread == b->thread && a->result == b->result && a->digest == b->digest;
}

/* The file that the call was about, while it is open. */
static char *name_of_file(const struct tally_same *same, struct same_run *run,
			  const struct same_input *input)
{
	char path[64], target[256], *text;
	int32_t pid = tally_tracee_tid(same_turn_any(run));

	if (input->kind != SAME_INPUT_CALL || !(same_call((long)input->number)->flags & SAME_ON_FD))
		return NULL;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, (int)input->args[0]);
	ssize_t len = readlink(path, target, sizeof(target) - 1);
	if (len <= 0)
		return NULL;
	target[len] = '\0';
	return asprintf(&text, "descriptor %d is %s", (int)input->args[0], target) < 0 ? NULL
										       : text;
}

void same_differ(struct tally_same *same, struct same_run *run, const struct same_input *a,
		 const struct same_input *b)
{
	same->report.differed++;
	same->differing[0] = *a;
	same->differing[1] = *b;
	same->differing_run = run->index;
	free(same->differing_detail);
	same->differing_detail = name_of_file(same, run, b);
}
