/* SPDX-License-Identifier: MIT */
/*
 * The runs side by side. The first one goes on to the next look at memory, and what it does is logged
 * step by step; the others follow one after another, each step compared with the log.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "inspect/same.h"

/* What was read and written is kept for another go, unless it is more. */
#define TAPE_MAX (64u << 20)

/* For another go, which must not read and write again. Without memory there is none. */
static void keep(struct same_tape *tape, const struct same_run *run)
{
	struct same_input *input = NULL;

	if (!tape->full && tape->data.len + run->data.len <= TAPE_MAX)
		input = vec_push(&tape->inputs);
	tape->full = !input;
	if (!input)
		return;
	*input = run->input;
	input->data = tape->data.len;
	buf_add(&tape->data, run->data.at, run->data.len);
	tape->full = tape->data.failed;
}

static int append(struct same_log *log, struct same_run *run)
{
	struct same_step *step = vec_push(&log->steps);
	const struct tally_tracee_regs *regs = &run->threads.at[run->step.thread - 1]->regs;

	if (!step || !vec_reserve(&log->words, regs->count))
		return -ENOMEM;
	*step = run->step;
	memcpy(log->words.at + log->words.count, regs->word, regs->count * sizeof(uint64_t));
	log->words.count += regs->count;
	if (!run->input.kind)
		return 0;
	struct same_input *input = vec_push(&log->inputs);
	if (!input)
		return -ENOMEM;
	*input = run->input;
	input->data = log->data.len;
	if (input->kept)
		buf_add(&log->data, run->data.at, run->data.len);
	step->input = (uint32_t)log->inputs.count;
	if (input->kept)
		keep(&run->same->tape, run);
	return log->data.failed ? -ENOMEM : 0;
}

/* The first run, up to the next look. 1; 0: it was given up. */
static int lead(struct tally_same *same, uint64_t until)
{
	struct same_run *run = same->runs[0];
	struct same_log *log = &same->log;

	log->steps.count = log->words.count = log->inputs.count = 0;
	buf_reset(&log->data);
	while (run->ticks < until) {
		int r = same_step(run, NULL);
		if (r == 1)
			r = append(log, run) < 0 ? -ENOMEM : 1;
		if (r != 1)
			return r;
		if (run->step.ended)
			break;
		if (log->steps.count % 1024 == 0 && same_give_up(run))
			return 0;
	}
	return 1;
}

static void part(struct tally_same *same, const struct same_run *run, uint32_t how)
{
	same->report.outcome = TALLY_SAME_PARTED;
	same->report.parting = how;
	same->report.run[0] = 1;
	same->report.run[1] = run->index + 1;
}

static const char *ended_text(struct tally_same *same, uint32_t ended)
{
	return ended ? "it ends" : "it goes on";
}

/* Signals that came in one run alone, or elsewhere in the other. */
static void compare_signals(struct tally_same *same, struct same_run *run,
			    const struct same_step *first)
{
	static const struct same_input none;
	const struct same_run *lead_run = same->runs[0];
	uint32_t a = first->signals, b = run->step.signals;
	uint32_t common = a < b ? a : b, most = a < b ? b : a;

	/* They differ until the other one has come, and are told once. */
	if (most <= run->signals_noted)
		return;
	run->signals_noted = most;

	for (uint32_t i = 0; i < common; i++)
		if (!same_inputs_equal(&lead_run->signals.at[i], &run->signals.at[i])) {
			same_differ(same, run, &lead_run->signals.at[i], &run->signals.at[i]);
			return;
		}
	if (a != b)
		same_differ(same, run, a > common ? &lead_run->signals.at[common] : &none,
			    b > common ? &run->signals.at[common] : &none);
}

static void compare_inputs(struct tally_same *same, struct same_run *run,
			   const struct same_step *first)
{
	static const struct same_input none;
	const struct same_input *a = first->input ? &same->log.inputs.at[first->input - 1] : &none;

	if (a->kind && run->index == 1)
		same->report.inputs++;
	if (!same_inputs_equal(a, &run->input))
		same_differ(same, run, a, &run->input);
	if (first->signals != run->step.signals)
		compare_signals(same, run, first);
}

static void part_flow(struct tally_same *same, struct same_run *run, const struct same_step *first)
{
	if (first->ended != run->step.ended) {
		part(same, run, TALLY_SAME_BY_END);
		same_value(same, "end", ended_text(same, first->ended),
			   ended_text(same, run->step.ended));
	} else {
		part(same, run, TALLY_SAME_BY_FLOW);
	}
	same_place(same, run, &same->report.place, first);
	same_place(same, run, &same->report.other, &run->step);
}

/* What it was given to write to a file, or to a screen. */
static bool outputs_differ(const struct tally_same *same, const struct same_run *run,
			   const struct same_step *first)
{
	const struct same_input *a = first->input ? &same->log.inputs.at[first->input - 1] : NULL;

	return a && a->given != run->input.given;
}

/* 1: they part. */
static int compare_step(struct tally_same *same, struct same_run *run, size_t index)
{
	const struct same_step *first = &same->log.steps.at[index], *now = &run->step;
	const struct tally_tracee_regs *regs = &run->threads.at[now->thread - 1]->regs;
	const uint64_t *words = same->log.words.at + index * regs->count;

	compare_inputs(same, run, first);
	if (first->tick != now->tick || first->thread != now->thread || first->pc != now->pc ||
	    first->ended != now->ended) {
		part_flow(same, run, first);
		return 1;
	}
	if (memcmp(words, regs->word, regs->count * sizeof(uint64_t)) != 0) {
		part(same, run, TALLY_SAME_BY_REGISTERS);
		same_tell_registers(same, words, regs->word);
	} else if (outputs_differ(same, run, first)) {
		part(same, run, TALLY_SAME_BY_OUTPUT);
		same_tell_where(same, run, run->input.given_at);
	} else {
		return 0;
	}
	same_place(same, run, &same->report.place, first);
	return 1;
}

/* 2: they part; 1: it has followed; 0: it was given up. */
static int follow(struct tally_same *same, struct same_run *run)
{
	for (size_t i = 0; i < same->log.steps.count; i++) {
		uint32_t input = same->log.steps.at[i].input;
		int r = same_step(run, input ? &same->log.inputs.at[input - 1] : NULL);
		if (r != 1)
			return r;
		if (compare_step(same, run, i) == 1)
			return 2;
		if (i % 1024 == 0 && same_give_up(run))
			return 0;
	}
	return 1;
}

/* Whether the last input that differed has written what differs there: then that is the place. */
static bool was_input(const struct tally_same *same, const struct same_run *run, uint64_t address)
{
	const struct same_input *a = &same->differing[0];

	return same->differing_run == run->index && a->kind == SAME_INPUT_CALL &&
	       a->tick >= same->looked && address - a->at < a->len;
}

static bool peek_byte(const struct same_run *run, uint64_t address, uint8_t *byte)
{
	return tally_tracee_peek(same_turn_any(run), address, byte, 1) == 0;
}

/* Where a run stands that has not just executed what makes the difference. */
static struct same_step standing(const struct same_run *run, uint32_t thread)
{
	const struct tally_tracee_regs *regs = &run->threads.at[thread - 1]->regs;

	return (struct same_step){
		.tick = run->ticks,
		.thread = thread,
		.pc = tally_tracee_regs_pc(regs),
	};
}

/* `step` is what made them differ, when it is `exact`; else they do since the last look. */
static void place_since(struct tally_same *same, struct same_run *run, const struct same_step *step,
			bool exact)
{
	same_place(same, run, &same->report.place, step);
	same->report.from = exact ? step->tick : same->looked;
}

static void part_memory(struct tally_same *same, struct same_run *run, uint64_t address,
			struct same_step step, bool exact)
{
	const struct same_input *input = &same->differing[0];
	struct same_run *both[2] = { same->runs[0], run };
	const char *texts[2];
	uint8_t byte;

	part(same, run, TALLY_SAME_BY_MEMORY);
	if (was_input(same, run, address)) {
		exact = true;
		step = (struct same_step){
			.tick = input->tick,
			.pc = input->pc,
			.thread = input->thread,
		};
	}
	place_since(same, run, &step, exact);
	same_tell_where(same, run, address);
	for (int i = 0; i < 2; i++)
		texts[i] = peek_byte(both[i], address, &byte) ? same_text(same, "%#04x", byte)
							      : "not mapped";
	same_value(same, "byte", texts[0], texts[1]);
}

static void part_vectors(struct tally_same *same, struct same_run *run, size_t byte,
			 const uint8_t values[2], struct same_step step, bool exact)
{
	const struct tally_tracee_regs *regs = &same->runs[0]->threads.at[0]->regs;
	char name[64];

	part(same, run, TALLY_SAME_BY_VECTORS);
	same_vector_name(name, sizeof(name), regs->machine, byte);
	same_value(same, same_text(same, "%s", name), same_text(same, "%#04x", values[0]),
		   same_text(same, "%#04x", values[1]));
	place_since(same, run, &step, exact);
}

/* Whether each step from here is looked at by itself. */
static bool in_focus(const struct tally_same *same, uint64_t tick)
{
	return tick >= same->focus.from && tick < same->focus.to;
}

static uint64_t next_look(const struct tally_same *same, uint64_t from)
{
	uint64_t usual = from + same->opts.every;

	if (in_focus(same, from))
		return from + 1;
	return from < same->focus.from && usual > same->focus.from ? same->focus.from : usual;
}

/* After a step in the focus: what differed before, and the vector registers. */
static int look_closely(struct tally_same *same)
{
	struct same_run *first = same->runs[0];
	uint64_t at = same->focus.address;
	uint8_t values[2] = { 0 };
	uint32_t thread;
	size_t byte;

	for (uint32_t i = 1; i < same->count; i++) {
		struct same_run *run = same->runs[i];
		bool there[2] = { at && peek_byte(first, at, &values[0]),
				  at && peek_byte(run, at, &values[1]) };
		if (there[0] != there[1] || values[0] != values[1]) {
			part_memory(same, run, at, first->step, true);
			return 2;
		}
		int r = same_vectors_compare(first, run, &thread, &byte, values);
		if (r == 1)
			part_vectors(same, run, byte, values, first->step, true);
		if (r != 0)
			return r == 1 ? 2 : r;
	}
	return 1;
}

/* Memory and vector registers of all runs. 2: they part; 1; or -errno. */
static int look(struct tally_same *same)
{
	struct same_run *first = same->runs[0];
	uint64_t address, bytes;
	uint32_t thread;
	uint8_t values[2];
	size_t byte;
	int r = same_memory_digest(first, &same->report.bytes);

	for (uint32_t i = 1; i < same->count && r == 0; i++) {
		struct same_run *run = same->runs[i];
		r = same_memory_digest(run, &bytes);
		if (r == 0 && same_memory_compare(first, run, &address) == 1) {
			part_memory(same, run, address, standing(first, first->turn + 1), false);
			return 2;
		}
		if (r == 0)
			r = same_vectors_compare(first, run, &thread, &byte, values);
		if (r == 1) {
			part_vectors(same, run, byte, values, standing(first, thread), false);
			return 2;
		}
	}
	same->report.looks++;
	same->looked = first->ticks;
	return r < 0 ? r : 1;
}

/* What is at AT_RANDOM: all of it is shown. */
static struct same_input read_random(const struct same_run *run)
{
	struct same_thread *t = run->threads.at[0];
	struct same_input input = { .kind = SAME_INPUT_BYTES,
				    .thread = 1,
				    .pc = tally_tracee_regs_pc(&t->regs),
				    .len = SAME_HEAD,
				    .head_len = SAME_HEAD };

	if (!run->at_random ||
	    tally_tracee_peek(t->tracee, run->at_random, input.head, SAME_HEAD) < 0)
		input.kind = SAME_INPUT_NONE;
	return input;
}

static void compare_random(struct tally_same *same, struct same_run *run)
{
	const struct same_input a = read_random(same->runs[0]), b = read_random(run);

	if (memcmp(a.head, b.head, SAME_HEAD) != 0)
		same_differ(same, run, &a, &b);
}

/* Before the first instruction: where the kernel has put things. 2: they part. */
static int compare_start(struct tally_same *same)
{
	const struct tally_tracee_regs *a = &same->runs[0]->threads.at[0]->regs, *b;
	const struct same_input start = { .kind = SAME_INPUT_START,
					  .thread = 1,
					  .pc = tally_tracee_regs_pc(a) };

	for (uint32_t i = 1; i < same->count; i++) {
		struct same_run *run = same->runs[i];
		b = &run->threads.at[0]->regs;
		compare_random(same, run);
		if (!memcmp(a->word, b->word, a->count * sizeof(uint64_t)))
			continue;
		const struct same_step step = { .thread = 1, .pc = tally_tracee_regs_pc(b) };
		same_differ(same, run, &start, &start);
		part(same, run, TALLY_SAME_BY_REGISTERS);
		same_tell_registers(same, a->word, b->word);
		same_place(same, run, &same->report.place, &step);
		return 2;
	}
	return look(same);
}

/* All are about to end: they do. 2: they end otherwise. */
static int end_all(struct tally_same *same)
{
	for (uint32_t i = 0; i < same->count; i++) {
		int r = same_finish(same->runs[i]);
		if (r < 0)
			return r;
	}
	const struct same_run *first = same->runs[0];
	same->report.status = first->status;
	for (uint32_t i = 1; i < same->count; i++) {
		const struct same_run *run = same->runs[i];
		if (run->status == first->status)
			continue;
		part(same, run, TALLY_SAME_BY_END);
		same_value(same, "status", same_text(same, "%d", first->status),
			   same_text(same, "%d", run->status));
		return 2;
	}
	same->report.outcome = TALLY_SAME_IDENTICAL;
	return 1;
}

/* Up to the next look. 3: to the end. */
static int advance(struct tally_same *same, uint64_t from)
{
	int r = lead(same, next_look(same, from));

	for (uint32_t i = 1; i < same->count && r == 1; i++)
		r = follow(same, same->runs[i]);
	if (r != 1)
		return r;
	const struct same_run *first = same->runs[0];
	same->report.ticks = first->ticks;
	/* When it has ended there is no memory to look at any more. */
	if (in_focus(same, from) && !first->step.ended)
		r = look_closely(same);
	else if (first->step.ended != 2)
		r = look(same);
	if (r == 1 && first->step.ended && same->report.differed)
		same_tell_input(same, same->runs[same->differing_run]);
	if (r == 1 && first->step.ended)
		return end_all(same) < 0 ? -EIO : 3;
	return r;
}

/* A difference that came out of the vDSO, and no input differed: it has read beside itself. */
static void blame_vdso(struct tally_same *same)
{
	const struct tally_same_place *place = &same->report.place;
	const struct same_input vvar = { .kind = SAME_INPUT_VVAR,
					 .thread = place->thread,
					 .tick = place->tick,
					 .pc = place->pc };

	if (!same_fixes(same, TALLY_SAME_VDSO) && place->module && strstr(place->module, "[vdso]"))
		same_differ(same, same->runs[same->report.run[1] - 1], &vvar, &vvar);
}

static void tell_parting(struct tally_same *same)
{
	struct same_run *run = same->runs[same->report.run[1] - 1];

	blame_vdso(same);
	if (same->differing_run == run->index)
		same_tell_input(same, run);
}

int same_compare(struct tally_same *same, struct tally_error *err)
{
	int r = compare_start(same);

	while (r == 1)
		r = advance(same, same->runs[0]->ticks);
	if (r < 0)
		return error_set(err, r, TALLY_CAUSE_IO, "the runs can no longer be traced: %s",
				 strerror(-r));
	if (r == 0) {
		same->report.outcome = TALLY_SAME_UNFINISHED;
		same->report.why = same->given_up;
	}
	if (same->report.outcome == TALLY_SAME_PARTED)
		tell_parting(same);
	same_tell_end(same);
	return 0;
}
