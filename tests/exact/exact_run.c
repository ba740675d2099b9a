/* SPDX-License-Identifier: MIT */
/* Timers on real threads: the loop that comes with the library, and one of the caller's own. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>

#include "../programs/counted.h"
#include "guests.h"
#include "tap.h"

static char *words[3];

static char *const *command(const char *program, char *word)
{
	words[0] = getenv(program);
	words[1] = word;
	return words;
}

static struct tally_timer_request exactly(uint64_t ticks)
{
	return (struct tally_timer_request){
		.size = sizeof(struct tally_timer_request),
		.kind = TALLY_TIMER_EXACTLY,
		.flags = TALLY_TIMER_ABSOLUTE | TALLY_TIMER_FROM_HERE,
		.ticks = ticks,
	};
}

/* With its output caught; `text` may be NULL. */
static int run_quietly(struct tally_run **run, char *const argv[],
		       const struct tally_run_opts *opts, struct tally_error *err, char *text)
{
	char unwanted[GUEST_TEXT];
	int before, file = capture_output(&before);
	int r = tally_tracee_run(run, argv, opts, err);

	restore_output(file, before, text ? text : unwanted);
	return r;
}

/* Whatever happens on the way, signals, handlers, calls: each tick is reached, one after the other. */
static void each_tick_is_reached(char *hazard)
{
	uint64_t last = 0;

	for (uint64_t ticks = 0;; ticks++) {
		const struct tally_timer_request request = exactly(ticks);
		const struct tally_run_thread *threads;
		struct tally_run *run = NULL;
		struct tally_error err;
		if (!check_int(run_quietly(&run, command("HAZARDS", hazard),
					   TALLY_OPTS(run, .request = &request,
						      .clock = TALLY_RUN_STEP),
					   &err, NULL),
			       0))
			break;
		const struct tally_timer_outcome *o = tally_run_outcome(run);
		tally_run_threads(run, &threads);
		uint64_t instructions = threads[0].retired.instructions;
		bool over = o->kind == TALLY_OUTCOME_EXITED;
		bool good = over || (check_int(o->kind, TALLY_OUTCOME_REACHED) &&
				     check_u64(o->clock.ticks, ticks) &&
				     check(instructions > last || ticks == 0));
		last = instructions;
		tally_run_free(run);
		if (over || !good) {
			printf("# '%s': %llu ticks\n", hazard, (unsigned long long)ticks);
			check(ticks > 20);
			break;
		}
	}
}

static void points_amid_signals_and_calls_are_reached(void)
{
	char handler[] = "handler", fork_[] = "fork";

	each_tick_is_reached(handler);
	each_tick_is_reached(fork_);
}

static void a_command_is_counted_to_its_end(void)
{
	const struct tally_run_thread *threads;
	struct tally_run *run = NULL;
	struct tally_error err;

	check_int(run_quietly(&run, command("COUNTED", NULL),
			      TALLY_OPTS(run, .clock = TALLY_RUN_STEP), &err, NULL),
		  0);
	require(run);
	check_int(tally_run_status(run), 0);
	check_int(tally_run_outcome(run)->kind, TALLY_OUTCOME_EXITED);
	check_int(tally_run_threads(run, &threads), 1);
	check_int(threads[0].clock.validity, TALLY_CLOCK_VALID);
	check_u64(threads[0].clock.ticks, COUNTED_CONDITIONAL);
	check_u64(threads[0].retired.instructions, COUNTED_INSTRUCTIONS);
	tally_run_free(run);
}

/* 16 threads that do the same have the same count, and all of them are counted. */
static void threads_are_counted_each(void)
{
	char name[] = "threads", text[GUEST_TEXT];
	const struct tally_run_thread *threads;
	struct tally_run *run = NULL;
	struct tally_error err;

	check_int(run_quietly(&run, command("HAZARDS", name),
			      TALLY_OPTS(run, .clock = TALLY_RUN_STEP), &err, text),
		  0);
	require(run);
	check_str(text, "threads 0000000000000010\n");
	check_int(tally_run_threads(run, &threads), 17);
	for (int i = 1; i < 17; i++) {
		check_int(threads[i].clock.validity, TALLY_CLOCK_VALID);
		check_u64(threads[i].clock.ticks, threads[1].clock.ticks);
		check(threads[i].clock.ticks >= 30);
	}
	tally_run_free(run);
}

/* The first one is stepped, with breakpoints in code that the others run through. */
static void breakpoints_of_one_thread_do_not_stop_the_others(void)
{
	char name[] = "together", text[GUEST_TEXT];
	const struct tally_timer_request request = exactly(1u << 20);

	for (int i = 0; i < 5; i++) {
		struct tally_run *run = NULL;
		struct tally_error err;
		check_int(run_quietly(&run, command("HAZARDS", name),
				      TALLY_OPTS(run, .clock = TALLY_RUN_STEP,
						 .flags = i & 1 ? TALLY_RUN_NO_PIN : 0,
						 .request = &request),
				      &err, text),
			  0);
		require(run);
		check_int(tally_run_outcome(run)->kind, TALLY_OUTCOME_EXITED);
		check_int(tally_run_status(run), 0);
		check_str(text, "together 0000000000000320\n");
		tally_run_free(run);
	}
}

#define MEMBERS 17

struct member {
	struct tally_tracee *tracee;
	struct tally_clock *clock;
	struct tally_timer *timer;
	bool runs, over;
	struct tally_timer_outcome outcome;
	uint64_t pc;
};

static struct member members[MEMBERS];
static int member_count;

/* A thread with a clock and a timer of its own, for its 20th conditional branch. */
static int add_member(int32_t tid, struct tally_tracee *from)
{
	const struct tally_timer_request request = exactly(20);
	struct member *m = &members[member_count++];
	int r = tally_tracee_adopt(&m->tracee, tid, from, NULL, NULL);

	if (r == 0)
		r = tally_clock_open_step(&m->clock, m->tracee, TALLY_TICKS_CONDITIONAL, NULL);
	if (r == 0)
		r = tally_timer_new(&m->timer, m->clock, NULL, NULL);
	if (r == 0)
		r = tally_timer_request(m->timer, &request, NULL);
	m->runs = true;
	return r;
}

static void take_outcome(struct member *m)
{
	struct tally_tracee_regs regs;

	if (m->outcome.kind != TALLY_OUTCOME_NONE)
		return;
	m->outcome = *tally_timer_outcome(m->timer);
	if (tally_tracee_regs(m->tracee, &regs) == 0)
		m->pc = tally_tracee_regs_pc(&regs);
}

/* What its timer asks for; without one, or behind its point, it runs. */
static int let_go(struct member *m)
{
	struct tally_timer_action action = { .what = TALLY_TIMER_RUN };
	int r = m->timer ? tally_timer_next(m->timer, &action) : 0;

	if (r == 0 && action.what == TALLY_TIMER_DONE)
		take_outcome(m);
	if (r == 0)
		r = tally_tracee_resume(
			m->tracee,
			action.what == TALLY_TIMER_STEP ? TALLY_RESUME_STEP : TALLY_RESUME_RUN, 0);
	m->runs = true;
	return r;
}

static int serve(struct member *m)
{
	struct tally_stop stop;
	int r = m->runs ? 0 : let_go(m);

	if (r == 0)
		r = tally_tracee_wait(m->tracee, 0, &stop);
	if (r < 0 || stop.kind == TALLY_STOP_NONE)
		return r;
	m->runs = false;
	if (m->timer)
		r = tally_timer_stopped(m->timer, &stop, NULL);
	m->over = guest_is_over(&stop);
	if (stop.kind == TALLY_STOP_CLONE && member_count < MEMBERS)
		r = add_member((int32_t)stop.value, m->tracee);
	return r < 0 ? r : 0;
}

static void sixteen_threads_have_a_timer_each(void)
{
	char name[] = "threads", text[GUEST_TEXT];
	int before, r, file = capture_output(&before);
	struct tally_error err;
	bool all = false;

	memset(members, 0, sizeof(members));
	member_count = 1;
	r = tally_tracee_launch(
		&members[0].tracee, command("HAZARDS", name),
		TALLY_OPTS(tracee, .flags = TALLY_TRACEE_FOLLOW_THREADS | TALLY_TRACEE_NO_RANDOM),
		&err);
	while (r == 0 && !all) {
		all = true;
		for (int i = 0; r == 0 && i < member_count; i++) {
			if (!members[i].over)
				r = serve(&members[i]);
			all &= members[i].over;
		}
	}
	for (int i = member_count - 1; i >= 0; i--) {
		tally_timer_free(members[i].timer);
		tally_clock_free(members[i].clock);
		tally_tracee_free(members[i].tracee);
	}
	restore_output(file, before, text);
	check_int(r, 0);
	check_str(text, "threads 0000000000000010\n");
	check_int(member_count, MEMBERS);
	for (int i = 1; i < member_count; i++) {
		check_int(members[i].outcome.kind, TALLY_OUTCOME_REACHED);
		check_u64(members[i].outcome.clock.ticks, 20);
		check(members[i].pc != 0);
		check_u64(members[i].pc, members[1].pc);
	}
}

static int refuse(void *arg, const struct tally_clock_about *clock, const char *why)
{
	*(uint32_t *)arg = clock->ticks;
	return 42;
}

static void it_may_be_refused_before_it_starts(void)
{
	char name[] = "handler", text[GUEST_TEXT];
	struct tally_run *run;
	struct tally_error err;
	uint32_t ticks = 0;

	check_int(run_quietly(&run, command("HAZARDS", name),
			      TALLY_OPTS(run, .ticks = TALLY_TICKS_TAKEN, .clock = TALLY_RUN_STEP,
					 .begin = refuse, .arg = &ticks),
			      &err, text),
		  42);
	check_int(ticks, TALLY_TICKS_TAKEN);
	check_str(text, "");
}

static void it_is_given_up_after_its_time(void)
{
	char program[] = "/bin/sleep", seconds[] = "100";
	char *const argv[] = { program, seconds, NULL };
	const struct tally_timer_request request = exactly(1u << 30);
	struct tally_run *run;
	struct tally_error err;

	check_int(run_quietly(&run, argv,
			      TALLY_OPTS(run, .clock = TALLY_RUN_STEP, .max_ms = 50,
					 .request = &request),
			      &err, NULL),
		  -ETIME);
	check_has(err.text, "50 ms");
}

static void what_was_left_stopped_goes_on_where_it_was(void)
{
	char name[] = "handler";
	const struct tally_timer_request request = exactly(30);
	struct tally_run *run = NULL;
	struct tally_error err;
	char text[GUEST_TEXT];
	int status, before, file = capture_output(&before);

	int r = tally_tracee_run(&run, command("HAZARDS", name),
				 TALLY_OPTS(run, .request = &request, .clock = TALLY_RUN_STEP),
				 &err);
	pid_t pid = r == 0 ? tally_tracee_pid(tally_run_tracee(run)) : -1;
	if (r == 0)
		r = tally_run_detach(run);
	tally_run_free(run);
	bool stopped = waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status);
	kill(pid, SIGCONT);
	waitpid(pid, &status, 0);
	restore_output(file, before, text);
	check_int(r, 0);
	check(stopped);
	check(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	check_has(text, "handled 0000000000000003");
}

int main(void)
{
	tap_run(a_command_is_counted_to_its_end);
	tap_run(points_amid_signals_and_calls_are_reached);
	tap_run(threads_are_counted_each);
	tap_run(breakpoints_of_one_thread_do_not_stop_the_others);
	tap_run(sixteen_threads_have_a_timer_each);
	tap_run(it_may_be_refused_before_it_starts);
	tap_run(it_is_given_up_after_its_time);
	tap_run(what_was_left_stopped_goes_on_where_it_was);
	return tap_end();
}
