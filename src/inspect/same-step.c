/* SPDX-License-Identifier: MIT */
/* One step of a run: the instruction, what it was told, and what the program is told instead. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/sys.h"
#include "inspect/same.h"

#define PAGE 4096u

/* A call that takes longer waits for somebody else. */
#define INSIDE_MS 50
/* How often it is looked whether to give up. */
#define PATIENCE_MS 100
#define LOOK_NS     100000u

/* No system call: the kernel answers ENOSYS, and does nothing. */
#define NO_CALL UINT64_MAX

/* Results of calls that the kernel starts again: ERESTARTSYS and others, include/linux/errno.h. */
#define RESTART_FIRST (-512)
#define RESTART_LAST  (-516)

/* A thread that is on its way out, or whose process was killed, is waited for so long. */
#define FINISH_NS 10000000000u

static void read_insn(struct same_thread *t)
{
	uint64_t pc = tally_tracee_regs_pc(&t->regs);
	uint8_t bytes[SAME_INSN_BYTES];
	size_t len = PAGE - pc % PAGE;

	len = len < sizeof(bytes) ? len : sizeof(bytes);
	if (tally_tracee_peek(t->tracee, pc, bytes, len) < 0)
		len = 0;
	same_insn_read(&t->insn, t->regs.machine, bytes, len);
}

static void read_call(struct same_thread *t, uint64_t number)
{
	const struct same_machine *m = same_machine(t->regs.machine);
	struct same_pending *p = &t->pending;

	memset(p, 0, sizeof(*p));
	p->number = number;
	p->call = same_call((long)number);
	p->lasts = UINT64_MAX;
	for (int i = 0; i < 6; i++)
		p->args[i] = t->regs.word[m->arg[i]];
}

/* The answer that the first run got, or, in another go, has got before. */
static void tell_first(struct same_run *run, struct same_pending *p, const struct same_input *first)
{
	struct tally_same *same = run->same;
	const struct same_tape *tape = same->before ? &same->before->tape : NULL;

	p->told = &same->log.data;
	if (run->index == 0) {
		first = tape && same->played < tape->inputs.count ? &tape->inputs.at[same->played++]
								  : NULL;
		p->told = tape ? &tape->data : NULL;
	}
	if (!first || !first->kept || first->number != p->number)
		return;
	p->answered = true;
	p->answer = first->result;
	p->first = first;
}

/* A call that is not to be made is made another that does nothing. */
static int begin_call(struct same_run *run, struct same_thread *t, const struct same_input *first)
{
	const struct same_machine *m = same_machine(t->regs.machine);
	struct same_pending *p = &t->pending;

	read_call(t, t->regs.word[m->number]);
	if (t->done) {
		p->answered = true;
		p->answer = t->answer;
	} else {
		same_lasts(run, t);
		p->once = same_fds_concern(run, t);
	}
	if (p->once)
		tell_first(run, p, first);
	if (!p->answered && same_turn_waits(run, t))
		return 1;
	struct tally_tracee_regs regs = t->regs;
	if (p->answered)
		regs.word[m->number] = NO_CALL;
	else if (!same_pids_begin(run, p, &regs))
		return 0;
	return tally_tracee_set_regs(t->tracee, &regs);
}

/* 1: it waits for its turn, and nothing has been done. */
static int begin(struct same_run *run, struct same_thread *t, const struct same_input *first)
{
	int r = 0;

	memset(&t->insn, 0, sizeof(t->insn));
	t->pending.call = NULL;
	if (!t->signal && !t->exits) {
		read_insn(t);
		if (t->insn.kind == SAME_INSN_CALL)
			r = begin_call(run, t, first);
	}
	if (r != 0)
		return r;
	/* An instruction that is none of the kernel's is over soon. */
	t->quick = t->insn.kind != SAME_INSN_CALL && !t->signal && !t->exits && !t->restarts;
	r = tally_tracee_resume(t->tracee, TALLY_RESUME_STEP, t->signal);
	t->signal = 0;
	return r;
}

static int wait_stop(struct same_thread *t, int timeout_ms)
{
	int r;

	do
		r = tally_tracee_wait(t->tracee, timeout_ms, &t->stop);
	while (r == -EINTR);
	return r < 0 ? r : t->stop.kind != TALLY_STOP_NONE;
}

/*
 * Threads that an execve of another one ends; the first one goes on as who has called it. They stand
 * still, so what becomes of them is asked for beside the library.
 */
static int look_at_others(struct same_run *run, const struct same_thread *who)
{
	int r = 0, status;

	for (size_t i = 0; i < run->threads.count && r >= 0; i++) {
		struct same_thread *t = run->threads.at[i];
		int32_t tid = tally_tracee_tid(t->tracee);
		if (t == who || t->state == SAME_ENDED ||
		    waitpid(tid, &status, __WALL | WNOHANG) != tid)
			continue;
		r = tally_tracee_stopped(t->tracee, status, &t->stop);
		if (r != 1)
			continue;
		if (t->stop.kind == TALLY_STOP_EXITING)
			r = tally_tracee_resume(t->tracee, TALLY_RESUME_RUN, 0);
		t->came = t->stop.kind == TALLY_STOP_EXEC;
		if (t->stop.kind >= TALLY_STOP_EXITED)
			t->state = SAME_ENDED;
	}
	return r < 0 ? r : 0;
}

/* 1: it has stopped; 0: it is the first thread now, or it was given up. */
static int await_exec(struct same_run *run, struct same_thread *t)
{
	struct same_thread *first = run->threads.at[0];
	bool gone = false;
	int r = 0;

	do {
		/* Nobody is told of the end of who has become the first thread. */
		if (gone)
			sys()->sleep_ns(LOOK_NS);
		else
			r = wait_stop(t, 1);
		gone |= r == 1 && t->stop.kind == TALLY_STOP_GONE;
		if (r == 0 || gone)
			r = look_at_others(run, t);
		if (r == 0 && t != first && first->came) {
			t->state = SAME_ENDED;
			first->state = SAME_READY;
			run->turn = 0;
			return 0;
		}
	} while (r == 0 && !same_give_up(run));
	return r;
}

/* 1: it has stopped; 0: it is inside, or it was given up. */
static int await(struct same_run *run, struct same_thread *t)
{
	const struct same_call *call = t->pending.call;
	bool alone = same_turn_alive(run) == 1;
	bool blocks = call && (call->flags & SAME_BLOCKS) && !t->pending.answered;
	int r;

	if (t->quick)
		return wait_stop(t, -1);
	if (call && call->kind == SAME_EXEC && !alone)
		return await_exec(run, t);
	/* The end of the first thread is told when the others have ended. */
	bool lingers = t->exits && t->number == 1 && !alone;
	if (alone || (!blocks && !lingers)) {
		do
			r = wait_stop(t, PATIENCE_MS);
		while (r == 0 && !same_give_up(run));
		return r;
	}
	r = wait_stop(t, lingers ? 0 : INSIDE_MS);
	if (r == 0) {
		t->state = SAME_INSIDE;
		run->same->chances |= lingers ? 0 : 1u << SAME_CHANCE_WAKE;
	}
	return r;
}

/* Those that have come back. */
static int look_inside(struct same_run *run)
{
	for (size_t i = 0; i < run->threads.count; i++) {
		struct same_thread *t = run->threads.at[i];
		if (t->state != SAME_INSIDE)
			continue;
		int r = wait_stop(t, 0);
		if (r < 0)
			return r;
		t->came = r == 1;
		t->state = r == 1 ? SAME_READY : SAME_INSIDE;
	}
	return 0;
}

static int go_on(struct same_run *run, struct same_thread *t, uint32_t how)
{
	int r = tally_tracee_resume(t->tracee, how, 0);

	if (r < 0)
		return r;
	t->quick = false;
	r = await(run, t);
	t->came = r == 1;
	return r < 0 ? r : 0;
}

static int add_thread(struct same_run *run, struct tally_tracee *tracee)
{
	struct same_thread *t = same_turn_add(run, tracee);

	if (!t) {
		tally_tracee_free(tracee);
		return -ENOMEM;
	}
	int r = wait_stop(t, -1);
	if (r < 0)
		return r;
	t->came = t->stop.kind != TALLY_STOP_INTERRUPT;
	return t->came ? 0 : tally_tracee_regs(tracee, &t->regs);
}

/* A process has memory of its own, or its parent's for a while. */
static int add_process(struct same_run *run, struct same_thread *from, int32_t pid)
{
	struct tally_tracee *child;
	struct tally_stop stop;
	int r = tally_tracee_adopt(&child, pid, NULL, NULL, NULL);

	if (r < 0)
		return r == -ESRCH ? 0 : r;
	do
		r = tally_tracee_wait(child, -1, &stop);
	while (r == -EINTR);
	if (r == 0)
		return same_child(run, from, child);
	tally_tracee_free(child);
	return r;
}

/* What a clone or a fork has made; then the call goes on. */
static int add_new(struct same_run *run, struct same_thread *from)
{
	int32_t tid = (int32_t)from->stop.value;
	struct tally_tracee *tracee;
	int r = -ESRCH;

	/* A thread's process is its parent's; a process is one that nobody else could be. */
	if (from->stop.kind == TALLY_STOP_CLONE)
		r = tally_tracee_adopt(&tracee, tid, from->tracee, NULL, NULL);
	if (r == 0 && tally_tracee_pid(tracee) == tally_tracee_pid(from->tracee))
		return add_thread(run, tracee);
	if (r == 0)
		tally_tracee_free(tracee);
	return add_process(run, from, tid);
}

/* Of the program's own doing: a fault, or what a thread of it has sent. */
static bool is_own(const struct same_run *run, const struct same_thread *t)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS };
	siginfo_t info;

	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
		if (t->stop.signal == faults[i] && t->stop.code > 0)
			return true;
	return t->stop.signal == SIGPIPE ||
	       ((t->stop.code == SI_USER || t->stop.code == SI_TKILL || t->stop.code == SI_QUEUE) &&
		tally_tracee_siginfo(t->tracee, &info) == 0 &&
		(uint32_t)info.si_pid == run->threads.at[0]->id);
}

static int take_signal(struct same_run *run, struct same_thread *t)
{
	struct same_input *input = vec_push(&run->signals);

	if (!input)
		return -ENOMEM;
	t->signal = t->stop.signal;
	int r = same_pids_signal(run, t);
	if (r == 0)
		r = tally_tracee_regs(t->tracee, &t->regs);
	input->kind = SAME_INPUT_SIGNAL;
	input->thread = t->number;
	input->tick = run->ticks;
	input->pc = tally_tracee_regs_pc(&t->regs);
	input->number = (uint64_t)t->stop.signal;
	input->result = t->stop.code;
	if (!is_own(run, t))
		run->same->chances |= 1u << SAME_CHANCE_SIGNAL;
	return r;
}

static void note_chances(struct same_run *run, const struct same_thread *t, int64_t result)
{
	const struct same_pending *p = &t->pending;
	uint32_t *chances = &run->same->chances;

	if (result < 0)
		return;
	switch (p->call->kind) {
	case SAME_MAP:
		if ((p->args[3] & MAP_TYPE) != MAP_PRIVATE && !(p->args[3] & MAP_ANONYMOUS) &&
		    (p->args[2] & PROT_WRITE))
			*chances |= 1u << SAME_CHANCE_SHARED;
		break;
	case SAME_RING:
		*chances |= 1u << SAME_CHANCE_RING;
		break;
	default:
		break;
	}
}

/* The program is another one. */
static int after_exec(struct same_run *run, struct same_thread *t)
{
	int r = same_fix_stack(run, t);

	for (size_t i = 0; i < run->threads.count; i++)
		if (run->threads.at[i] != t)
			run->threads.at[i]->state = SAME_ENDED;

	t->execs = false;
	return r < 0 ? r : same_fds_start(run);
}

static int finish_call(struct same_run *run, struct same_thread *t)
{
	const struct same_machine *m = same_machine(t->regs.machine);
	struct same_pending *p = &t->pending;
	int64_t result = (int64_t)t->regs.word[m->result];
	int r = 0;

	t->restarts = result <= RESTART_FIRST && result >= RESTART_LAST;
	if (!p->call) /* started again by the kernel */
		read_call(t, t->regs.word[m->made]);
	if (t->execs) {
		p->call = same_call(-1);
		r = after_exec(run, t);
		return r < 0 ? r : same_take_call(run, t, 0);
	}
	if (p->answered) {
		result = p->answer;
		t->regs.word[m->made] = p->number;
	}
	if (p->first)
		r = same_replay(run, t);
	else
		r = same_answer_call(run, t, &result);
	if (r == 0)
		r = same_pids_finish(run, t, &result);
	if (p->call->kind == SAME_FUTEX && !p->answered && result >= 0)
		same_turn_wake(run, t, &result);
	if (p->answered || (p->call->flags & SAME_SENDS) ||
	    (uint64_t)result != t->regs.word[m->result]) {
		t->regs.word[m->result] = (uint64_t)result;
		if (r == 0)
			r = tally_tracee_set_regs(t->tracee, &t->regs);
	}
	t->done = t->native = false;
	if (p->call->kind == SAME_WAKE && result == 0)
		same_turn_signalled(run, t);
	same_fds_follow(run, t, result);
	note_chances(run, t, result);
	return r < 0 ? r : same_take_call(run, t, result);
}

static int finish_insn(struct same_run *run, struct same_thread *t)
{
	struct same_input *input = &run->input;
	int r = 0;

	if (same_answer_insn(run, t) == 1)
		r = tally_tracee_set_regs(t->tracee, &t->regs);
	input->kind = SAME_INPUT_INSN;
	input->thread = t->number;
	input->tick = run->step.tick;
	input->pc = run->step.pc;
	input->number = t->insn.kind;
	input->result = (int64_t)same_insn_value(&t->regs, &t->insn);
	return r;
}

static void begin_record(struct same_run *run, struct same_thread *t, uint64_t pc)
{
	run->step = (struct same_step){
		.tick = run->ticks,
		.pc = pc,
		.thread = t->number,
		.signals = (uint32_t)run->signals.count,
	};
	memset(&run->input, 0, sizeof(run->input));
	run->ticks += t->stop.retired.instructions;
}

static int finish_step(struct same_run *run, struct same_thread *t)
{
	int r = tally_tracee_regs(t->tracee, &t->regs);

	if (r < 0)
		return r;
	begin_record(run, t, t->stop.address);
	if (t->stop.insn & TALLY_INSN_UNKNOWN)
		run->same->chances |= 1u << SAME_CHANCE_UNKNOWN;
	/* Who goes on for another one that has called execve has called nothing. */
	if ((t->stop.insn & TALLY_INSN_SYSCALL) || t->execs)
		r = finish_call(run, t);
	else if (t->insn.kind > SAME_INSN_CALL)
		r = finish_insn(run, t);
	return r < 0 ? r : 1;
}

/* A thread is about to end, and with it its process, unless it only left that to others. */
static int take_exit(struct same_run *run, struct same_thread *t)
{
	int r = tally_tracee_regs(t->tracee, &t->regs);

	if (r < 0)
		return r;
	begin_record(run, t, tally_tracee_regs_pc(&t->regs));
	t->exits = true;
	bool all = !t->pending.call || (t->pending.call->flags & SAME_ENDS);
	run->step.ended = all || !same_turn_goes_on(run);
	run->status = (int)t->stop.value;
	return 1;
}

static void take_end(struct same_run *run, struct same_thread *t)
{
	t->state = SAME_ENDED;
	if (t->number == 1)
		run->status = t->stop.kind == TALLY_STOP_KILLED ? 128 + t->stop.signal
								: (int)t->stop.value;
	same_turn_look(run);
	run->ended = same_turn_alive(run) == 0;
}

/* What came of it. 1: a step; 0: nothing yet. */
static int handle(struct same_run *run, struct same_thread *t)
{
	int r;

	switch (t->stop.kind) {
	case TALLY_STOP_STEP:
		return finish_step(run, t);
	case TALLY_STOP_SIGNAL:
		return take_signal(run, t);
	case TALLY_STOP_CLONE:
	case TALLY_STOP_FORK:
	case TALLY_STOP_VFORK:
		r = add_new(run, t);
		return r < 0 ? r : go_on(run, t, TALLY_RESUME_STEP);
	case TALLY_STOP_VFORK_DONE:
		return go_on(run, t, TALLY_RESUME_STEP);
	case TALLY_STOP_EXEC:
		t->execs = true;
		return go_on(run, t, TALLY_RESUME_STEP);
	case TALLY_STOP_GROUP:
		return go_on(run, t, TALLY_RESUME_LISTEN);
	case TALLY_STOP_EXITING:
		return take_exit(run, t);
	case TALLY_STOP_EXITED:
	case TALLY_STOP_KILLED:
	case TALLY_STOP_GONE:
		take_end(run, t);
		if (!run->ended)
			return 0;
		begin_record(run, t, 0);
		run->step.ended = 2;
		return 1;
	default: /* an interrupt: it goes on with what it was about */
		return go_on(run, t, TALLY_RESUME_STEP);
	}
}

/* The thread whose turn it is goes on until something comes of it. */
static int go(struct same_run *run, struct same_thread *t, const struct same_input *first)
{
	int r = 1;

	if (!t->came) {
		r = begin(run, t, first);
		if (r != 0)
			return r < 0 ? r : 0;
		r = await(run, t);
	}
	t->came = false;
	while (r == 1) {
		r = handle(run, t);
		if (r != 0 || !t->came)
			return r;
		t->came = false;
		r = 1;
	}
	return r;
}

int same_step(struct same_run *run, const struct same_input *first)
{
	struct same_thread *t;
	int r;

	for (;;) {
		r = look_inside(run);
		if (r == 0)
			r = same_turn(run, &t);
		if (r == 2)
			continue;
		if (r == 1)
			r = go(run, t, first);
		else
			return r;
		if (r != 0)
			return r;
		if (run->same->given_up)
			return 0;
	}
}

/* One that is on its way out. */
static int let_end(struct same_run *run, struct same_thread *t)
{
	int r = 0;

	if (t->state != SAME_INSIDE && !t->came)
		r = tally_tracee_resume(t->tracee, TALLY_RESUME_RUN, t->signal);
	t->came = false;
	t->signal = 0;
	t->state = SAME_INSIDE;
	if (r == 0)
		r = wait_stop(t, 1);
	if (r <= 0)
		return r;
	t->state = SAME_READY;
	if (t->stop.kind >= TALLY_STOP_EXITED)
		take_end(run, t);
	return 0;
}

int same_finish(struct same_run *run)
{
	uint64_t start = clock_ns(CLOCK_MONOTONIC);
	int r = 0;

	while (!run->ended && r == 0 && clock_ns(CLOCK_MONOTONIC) - start < FINISH_NS)
		for (size_t i = run->threads.count; i-- > 0 && r == 0;)
			if (run->threads.at[i]->state != SAME_ENDED)
				r = let_end(run, run->threads.at[i]);
	return r;
}
