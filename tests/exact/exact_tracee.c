/* SPDX-License-Identifier: MIT */
/* What can be done with a thread that is traced, tried on real ones. */
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "../programs/counted.h"
#include "guests.h"
#include "tap.h"

static struct tally_tracee *launch(const char *program, const char *word, uint32_t flags)
{
	char copy[32];
	char *argv[] = { getenv(program), word ? copy : NULL, NULL };
	struct tally_tracee *tracee = NULL;
	struct tally_error err;

	snprintf(copy, sizeof(copy), "%s", word ? word : "");
	int r = tally_tracee_launch(&tracee, argv, TALLY_OPTS(tracee, .flags = flags), &err);

	if (!check_int(r, 0))
		printf("# %s\n", err.text);
	return tracee;
}

static int go_on(struct tally_tracee *t, uint32_t how, int signal, struct tally_stop *stop)
{
	int r = tally_tracee_resume(t, how, signal);

	return r < 0 ? r : tally_tracee_wait(t, -1, stop);
}

/* Up to the first stop of a kind. */
static bool run_to(struct tally_tracee *t, uint32_t how, uint32_t kind, struct tally_stop *stop)
{
	stop->kind = TALLY_STOP_NONE;
	while (stop->kind != kind && !guest_is_over(stop))
		if (go_on(t, how, stop->kind == TALLY_STOP_SIGNAL ? stop->signal : 0, stop) < 0)
			return false;
	return stop->kind == kind;
}

static void starts_at_its_first_instruction(void)
{
	struct tally_tracee *t = launch("COUNTED", NULL, 0);
	struct tally_tracee_regs regs, after;
	struct tally_stop stop;
	unsigned char code[4];

	require(t);
	check_int(tally_tracee_regs(t, &regs), 0);
	check(tally_tracee_regs_sp(&regs) != 0);
	check_int(tally_tracee_peek(t, tally_tracee_regs_pc(&regs), code, sizeof(code)), 0);
	if (regs.machine == EM_X86_64) {
		check_mem(code, "\xb9\xe8\x03\x00", 4); /* mov $1000, %ecx */
		check_str(tally_tracee_regs_name(regs.machine, 16), "rip");
	}
	check(tally_tracee_regs_name(regs.machine, regs.count) == NULL);
	check_int(go_on(t, TALLY_RESUME_STEP, 0, &stop), 0);
	check_int(stop.kind, TALLY_STOP_STEP);
	check_u64(stop.address, tally_tracee_regs_pc(&regs));
	check_int(tally_tracee_regs(t, &after), 0);
	check_u64(stop.pc, tally_tracee_regs_pc(&after));
	check_u64(stop.retired.instructions, 1);
	check_u64(stop.retired.branches, 0);
	tally_tracee_free(t);
}

static void memory_is_all_or_nothing(void)
{
	struct tally_tracee *t = launch("COUNTED", NULL, 0);
	struct tally_tracee_regs regs;
	uint64_t word = 0x1122334455667788u, back = 0;

	require(t);
	check_int(tally_tracee_regs(t, &regs), 0);
	uint64_t stack = tally_tracee_regs_sp(&regs) - 64, code = tally_tracee_regs_pc(&regs);
	check_int(tally_tracee_poke(t, stack, &word, sizeof(word)), 0);
	check_int(tally_tracee_peek(t, stack, &back, sizeof(back)), 0);
	check_u64(back, word);
	check_int(tally_tracee_poke(t, code, &word, sizeof(word)), 0); /* not writable for itself */
	check_int(tally_tracee_peek(t, 8, &back, sizeof(back)), -EFAULT);
	check_int(tally_tracee_peek(t, stack, &back, 0), 0);
	tally_tracee_free(t);
}

static void registers_can_be_set(void)
{
	struct tally_tracee *t = launch("COUNTED", NULL, 0);
	struct tally_tracee_regs regs, after;
	unsigned char vector[16384], again[16384];
	size_t len = 16, more = sizeof(again);

	require(t);
	check_int(tally_tracee_regs(t, &regs), 0);
	regs.word[3] = 0xabcdef; /* r12, x3 */
	check_int(tally_tracee_set_regs(t, &regs), 0);
	check_int(tally_tracee_regs(t, &after), 0);
	check_mem(&after, &regs, sizeof(regs));
	check_int(tally_tracee_vector(t, vector, &len), -ENOBUFS);
	len = sizeof(vector);
	check_int(tally_tracee_vector(t, vector, &len), 0);
	check(len >= 512);
	vector[160] = 0x5a; /* the first vector register on x86, v10 on arm64 */
	if (regs.machine == EM_X86_64)
		vector[512] |= 2; /* XSTATE_BV: the SSE state is not the initial one */
	check_int(tally_tracee_set_vector(t, vector, len), 0);
	check_int(tally_tracee_vector(t, again, &more), 0);
	check_int(again[160], 0x5a);
	tally_tracee_free(t);
}

/* The function of the third loop is called a hundred times. */
static void a_breakpoint_is_hit_each_time(void)
{
	struct tally_tracee *t = launch("COUNTED", NULL, 0);
	struct tally_stop stop = { 0 };
	uint64_t function = 0;
	int hits = 0;

	require(t);
	/* A taken branch that is no conditional one, the first of which is the call. */
	while (!function && go_on(t, TALLY_RESUME_STEP, 0, &stop) == 0)
		if (stop.retired.branches && !stop.retired.conditional)
			function = stop.pc;
	tally_tracee_free(t);
	t = launch("COUNTED", NULL, 0);
	require(t);
	do {
		check_int(tally_tracee_break(t, function), 0);
		if (!check_int(go_on(t, TALLY_RESUME_RUN, 0, &stop), 0))
			break;
		hits += stop.kind == TALLY_STOP_BREAKPOINT;
		if (stop.kind == TALLY_STOP_BREAKPOINT)
			check_u64(stop.pc, function);
	} while (!guest_is_over(&stop));
	check_int(hits, 100);
	check_int(stop.value, 0);
	tally_tracee_free(t);
}

static void no_breakpoint_is_seen_by_a_read(void)
{
	struct tally_tracee *t = launch("COUNTED", NULL, 0);
	struct tally_tracee_regs regs;
	struct tally_stop stop;
	unsigned char before[8], after[8];

	require(t);
	check_int(tally_tracee_regs(t, &regs), 0);
	uint64_t pc = tally_tracee_regs_pc(&regs);
	check_int(tally_tracee_peek(t, pc, before, sizeof(before)), 0);
	check_int(tally_tracee_break(t, pc), 0); /* where it stands: stepped over first */
	check_int(go_on(t, TALLY_RESUME_RUN, 0, &stop), 0);
	check_int(stop.kind, TALLY_STOP_EXITING);
	check_int(tally_tracee_peek(t, pc, after, sizeof(after)), 0);
	check_mem(after, before, sizeof(before));
	check_int(tally_tracee_break(t, 8), -EFAULT);
	tally_tracee_free(t);
}

static void calls_of_its_own_leave_no_trace(void)
{
	static const uint64_t none[6] = { 0 };
	struct tally_tracee *t = launch("COUNTED", NULL, 0);
	struct tally_tracee_regs before, after;
	struct tally_retired_total retired;
	struct tally_stop stop;
	int64_t result = 0;
	bool exact;

	require(t);
	check_int(go_on(t, TALLY_RESUME_STEP, 0, &stop), 0);
	check_int(tally_tracee_regs(t, &before), 0);
	for (int i = 0; i < 10; i++) {
		check_int(tally_tracee_syscall(t, SYS_getpid, none, &result), 0);
		check_int(result, tally_tracee_pid(t));
	}
	check_int(tally_tracee_syscall(t, SYS_close, (const uint64_t[6]){ 999 }, &result), 0);
	check_int(result, -EBADF);
	check_int(tally_tracee_regs(t, &after), 0);
	check_mem(&after, &before, sizeof(after));
	check(run_to(t, TALLY_RESUME_STEP, TALLY_STOP_EXITED, &stop));
	tally_tracee_retired(t, &retired, &exact);
	check_u64(retired.instructions, COUNTED_INSTRUCTIONS);
	check_u64(retired.conditional, COUNTED_CONDITIONAL);
	check(exact);
	tally_tracee_free(t);
}

/* A call at a signal's stop ends that stop: the signal comes all the same, with what it had. */
static void a_call_at_a_signal_does_not_lose_it(void)
{
	static const uint64_t none[6] = { 0 };
	char word[] = "handler";
	char *const argv[] = { getenv("HAZARDS"), word, NULL };
	struct guest_end alone;
	struct tally_stop stop = { 0 };
	char text[GUEST_TEXT];
	int before, signals = 0, file;
	int64_t result;

	guest_alone(argv, &alone);
	file = capture_output(&before);
	struct tally_tracee *t = launch("HAZARDS", "handler", 0);
	while (t && !guest_is_over(&stop)) {
		int signal = stop.kind == TALLY_STOP_SIGNAL ? stop.signal : 0;
		siginfo_t info;
		if (signal) {
			signals++;
			check_int(tally_tracee_syscall(t, SYS_getpid, none, &result), 0);
			check_int(tally_tracee_siginfo(t, &info), 0);
			check_int(info.si_code, SI_TKILL);
		}
		if (!check_int(go_on(t, TALLY_RESUME_STEP, signal, &stop), 0))
			break;
	}
	tally_tracee_free(t);
	restore_output(file, before, text);
	check_int(signals, 3);
	check_str(text, alone.text);
}

/* A loop of the caller's, who waits himself. */
static void it_fits_into_a_loop_of_the_callers(void)
{
	struct tally_tracee *t = launch("COUNTED", NULL, 0);
	struct tally_retired_total retired;
	struct tally_stop stop = { 0 };
	bool exact, goes_on = false;
	int status;

	require(t);
	while (!guest_is_over(&stop)) {
		if (!goes_on)
			require(tally_tracee_resume(t, TALLY_RESUME_STEP, 0) == 0);
		require(waitpid(tally_tracee_tid(t), &status, __WALL) == tally_tracee_tid(t));
		int r = tally_tracee_stopped(t, status, &stop);
		require(r >= 0);
		goes_on = r == 0;
	}
	tally_tracee_retired(t, &retired, &exact);
	check_u64(retired.instructions, COUNTED_INSTRUCTIONS);
	check(exact);
	tally_tracee_free(t);
}

static pid_t start_spinning(void)
{
	pid_t child = fork();

	if (child == 0)
		for (volatile int i = 0;; i++)
			;
	return child;
}

static void a_running_one_is_seized_and_let_go(void)
{
	pid_t child = start_spinning();
	struct tally_tracee *t = NULL;
	struct tally_stop stop;
	struct tally_error err;
	int status;

	check_int(tally_tracee_seize(&t, child, NULL, &err), 0);
	require(t);
	check_int(tally_tracee_wait(t, -1, &stop), 0);
	check_int(stop.kind, TALLY_STOP_INTERRUPT);
	for (int i = 0; i < 100; i++) {
		check_int(go_on(t, TALLY_RESUME_STEP, 0, &stop), 0);
		check_int(stop.kind, TALLY_STOP_STEP);
	}
	check_int(tally_tracee_resume(t, TALLY_RESUME_RUN, 0), 0);
	check_int(tally_tracee_wait(t, 20, &stop), 0);
	check_int(stop.kind, TALLY_STOP_NONE);
	check_int(tally_tracee_interrupt(t), 0);
	check_int(tally_tracee_wait(t, -1, &stop), 0);
	check_int(stop.kind, TALLY_STOP_INTERRUPT);
	check_int(tally_tracee_detach(t, SIGSTOP), 0);
	tally_tracee_free(t);
	check_int(waitpid(child, &status, WUNTRACED), child);
	check(WIFSTOPPED(status));
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	check_int(tally_tracee_seize(&t, child, NULL, &err), -ESRCH);
}

/* An interrupt while it is stepped neither loses a step nor is lost itself. */
static void interrupts_and_steps_do_not_disturb_each_other(void)
{
	struct tally_tracee *t = launch("COUNTED", NULL, 0);
	struct tally_retired_total retired;
	struct tally_stop stop = { 0 };
	int interrupts = 0, asked = 0;
	bool exact;

	require(t);
	for (int i = 0; !guest_is_over(&stop); i++) {
		require(tally_tracee_resume(t, TALLY_RESUME_STEP, 0) == 0);
		if (i % 7 == 0 && stop.kind != TALLY_STOP_EXITING) {
			tally_tracee_interrupt(t);
			asked++;
		}
		require(tally_tracee_wait(t, -1, &stop) == 0);
		interrupts += stop.kind == TALLY_STOP_INTERRUPT;
	}
	tally_tracee_retired(t, &retired, &exact);
	check_u64(retired.instructions, COUNTED_INSTRUCTIONS);
	check(exact);
	check(interrupts > asked / 2 && interrupts <= asked);
	tally_tracee_free(t);
}

/* Through an exec by running, and stepped from there. */
static void what_follows_an_exec_can_be_stepped(void)
{
	static const uint64_t none[6] = { 0 };
	char text[GUEST_TEXT];
	int before, file = capture_output(&before);
	struct tally_tracee *t = launch("HAZARDS", "exec", 0);
	struct tally_stop stop = { 0 };
	int64_t result = 0;
	unsigned char byte;
	int steps = 0;

	if (t && check(run_to(t, TALLY_RESUME_RUN, TALLY_STOP_EXEC, &stop))) {
		check_int(tally_tracee_syscall(t, SYS_getpid, none, &result), -EINVAL);
		check_int(go_on(t, TALLY_RESUME_STEP, 0, &stop), 0); /* the rest of the call */
		check_int(stop.kind, TALLY_STOP_STEP);
		check_int(stop.retired.instructions, 0);
		check_int(tally_tracee_peek(t, stop.pc, &byte, 1), 0);
		check_int(tally_tracee_syscall(t, SYS_getpid, none, &result), 0);
		check_int(result, tally_tracee_pid(t));
		for (; steps < 100000 && !guest_is_over(&stop); steps++)
			if (!check_int(go_on(t, TALLY_RESUME_STEP, 0, &stop), 0))
				break;
	}
	tally_tracee_free(t);
	restore_output(file, before, text);
	check_int(stop.kind, TALLY_STOP_EXITED);
	check(steps > 100);
	check_str(text, "another program\n");
}

/* Killed while it stands: whatever is called then, the end is told. */
static void killed_at(uint32_t how, uint32_t kind, const char *hazard, uint32_t flags)
{
	static const uint64_t none[6] = { 0 };
	char text[GUEST_TEXT];
	int before, file = capture_output(&before);
	struct tally_tracee *t = launch("HAZARDS", hazard, flags);
	struct tally_tracee_regs regs;
	struct tally_stop stop;
	int64_t result;

	if (t && check(run_to(t, how, kind, &stop))) {
		int pid = tally_tracee_pid(t);
		kill(pid, SIGKILL);
		usleep(2000);
		tally_tracee_regs(t, &regs);
		tally_tracee_break(t, 0x401000);
		tally_tracee_syscall(t, SYS_getpid, none, &result);
		for (int i = 0; i < 4 && !guest_is_over(&stop); i++) {
			check_int(tally_tracee_resume(t, how, 0), 0);
			check_int(tally_tracee_wait(t, -1, &stop), 0);
		}
		check_int(stop.kind, TALLY_STOP_KILLED);
		check_int(stop.signal, SIGKILL);
	}
	tally_tracee_free(t);
	restore_output(file, before, text);
}

static void a_kill_at_any_stop_is_told(void)
{
	killed_at(TALLY_RESUME_STEP, TALLY_STOP_STEP, "handler", 0);
	killed_at(TALLY_RESUME_STEP, TALLY_STOP_SIGNAL, "handler", TALLY_TRACEE_PIN);
	killed_at(TALLY_RESUME_SYSCALL, TALLY_STOP_SYSCALL_ENTRY, "handler", 0);
	killed_at(TALLY_RESUME_SYSCALL, TALLY_STOP_SYSCALL_EXIT, "handler", 0);
	killed_at(TALLY_RESUME_RUN, TALLY_STOP_VFORK, "vfork", TALLY_TRACEE_FOLLOW_FORKS);
	killed_at(TALLY_RESUME_RUN, TALLY_STOP_FORK, "fork", TALLY_TRACEE_FOLLOW_FORKS);
	killed_at(TALLY_RESUME_STEP, TALLY_STOP_EXEC, "exec", 0);
	killed_at(TALLY_RESUME_RUN, TALLY_STOP_EXEC, "exec", 0);
}

/* The first thread waits, the other one becomes the process: its number vanishes. */
static void an_exec_by_another_thread_is_told(void)
{
	struct tally_tracee *first, *other = NULL;
	struct tally_stop stop = { 0 }, others = { 0 };
	char text[GUEST_TEXT];
	int before, file = capture_output(&before), former = 0, r = 0;
	bool runs = false, other_runs = true, gone = false;

	first = launch("HAZARDS", "exec-thread", TALLY_TRACEE_FOLLOW_THREADS);
	while (first && r == 0 && !guest_is_over(&stop)) {
		if (!runs)
			r = tally_tracee_resume(first, TALLY_RESUME_STEP, 0);
		if (r == 0)
			r = tally_tracee_wait(first, 1, &stop);
		runs = r == 0 && stop.kind == TALLY_STOP_NONE;
		if (stop.kind == TALLY_STOP_CLONE)
			r = tally_tracee_adopt(&other, (int32_t)stop.value, first, NULL, NULL);
		if (stop.kind == TALLY_STOP_EXEC)
			former = (int)stop.value;
		if (!other || gone || r < 0)
			continue;
		if (!other_runs)
			r = tally_tracee_resume(other, TALLY_RESUME_STEP, 0);
		if (r == 0)
			r = tally_tracee_wait(other, 1, &others);
		other_runs = r == 0 && others.kind == TALLY_STOP_NONE;
		gone = others.kind == TALLY_STOP_GONE;
	}
	int tid = other ? tally_tracee_tid(other) : -1;
	tally_tracee_free(other);
	tally_tracee_free(first);
	restore_output(file, before, text);
	check_int(r, 0);
	check(gone);
	check_int(former, tid);
	check_str(text, "another program\n");
	check_int(stop.kind, TALLY_STOP_EXITED);
	check_int(stop.value, 0);
}

/*
 * Beside a thread that is not of the family no breakpoint may be set: where a step then executes two
 * instructions, it says that it does not know what it did.
 */
static void what_cannot_be_told_is_said(void)
{
	char word[] = "shadowed";
	char *const argv[] = { getenv("HAZARDS"), word, NULL };
	struct guest_end end;

	guest_traced(argv, 0, TALLY_RESUME_STEP, &end);
	if (end.status == 99)
		tap_skip("there is no such instruction on this machine");
	check_int(end.status, 0);
	check_u64(end.strange, 10);
	check(!end.exact);
}

/* A program that blocks everything is stopped by the signal that is kept, and by no other. */
static void a_kept_signal_is_not_blocked(void)
{
	char text[GUEST_TEXT];
	int before, file = capture_output(&before);
	struct tally_tracee *t = launch("HAZARDS", "deaf", 0);
	struct tally_stop stop = { 0 };
	uint64_t mask = 0;

	if (t && check_int(tally_tracee_keep(t, 16), 0)) {
		check_int(tally_tracee_resume(t, TALLY_RESUME_RUN, 0), 0);
		do
			tally_tracee_wait(t, 5, &stop);
		while (lseek(STDOUT_FILENO, 0, SEEK_END) == 0);
		check_int(stop.kind, TALLY_STOP_NONE);
		syscall(SYS_tgkill, tally_tracee_pid(t), tally_tracee_tid(t), SIGUSR1);
		check_int(tally_tracee_wait(t, 20, &stop), 0);
		check_int(stop.kind, TALLY_STOP_NONE);
		syscall(SYS_tgkill, tally_tracee_pid(t), tally_tracee_tid(t), 16);
		check_int(tally_tracee_wait(t, -1, &stop), 0);
		check_int(stop.kind, TALLY_STOP_SIGNAL);
		check_int(stop.signal, 16);
		check_int(tally_tracee_sigmask(t, &mask), 0);
		check(mask >> 15 & 1);
		check_int(tally_tracee_keep(t, SIGKILL), -EINVAL);
	}
	tally_tracee_free(t);
	restore_output(file, before, text);
	check_str(text, "deaf\n");
}

/* What a program did whose trapped instructions were answered; how it ended. */
struct trapped {
	int traps;
	struct tally_error err;
	char text[GUEST_TEXT];
};

static int run_trapped(struct trapped *out, char *word, uint32_t flag, uint32_t kind)
{
	char *argv[] = { getenv("HAZARDS"), word, NULL };
	struct tally_tracee *t = NULL;
	struct tally_stop stop = { 0 };
	int before, file = capture_output(&before);

	out->traps = 0;
	int r = tally_tracee_launch(&t, argv, TALLY_OPTS(tracee, .flags = flag), &out->err);
	while (r == 0 && !guest_is_over(&stop)) {
		struct tally_tracee_regs regs;
		if (stop.kind == kind) {
			out->traps++;
			tally_tracee_regs(t, &regs);
			if (kind == TALLY_STOP_TSC) {
				regs.word[10] = 0x1234; /* rax */
				regs.word[12] = 0x5678; /* rdx */
			}
			regs.word[16] += stop.value;
			tally_tracee_set_regs(t, &regs);
		}
		r = go_on(t, TALLY_RESUME_STEP, 0, &stop);
	}
	tally_tracee_free(t);
	restore_output(file, before, out->text);
	return r;
}

/* A timestamp is what the tracer answers. */
static void time_stamp_reads_are_trapped(void)
{
	char word[] = "tsc";
	struct trapped got;
	int r = run_trapped(&got, word, TALLY_TRACEE_TRAP_TSC, TALLY_STOP_TSC);

	if (r == -ENODEV)
		tap_skip("time-stamp reads cannot be trapped on this machine");
	check_int(r, 0);
	check_int(got.traps, 2);
	check_str(got.text, "answered\n");
}

/* Where it cannot, that is said, and nothing is started. */
static void cpuid_is_trapped_or_refused(void)
{
	char word[] = "cpuid";
	struct trapped got;
	int r = run_trapped(&got, word, TALLY_TRACEE_TRAP_CPUID, TALLY_STOP_CPUID);

	if (r == -ENODEV) {
		check_has(got.err.text, "cannot be trapped");
		check_int(got.err.cause, TALLY_CAUSE_UNSUPPORTED);
		return;
	}
	check_int(r, 0);
	check_int(got.traps, 10);
}

static void children_of_the_callers_are_left_to_him(void)
{
	char word[] = "fork";
	char *const argv[] = { getenv("HAZARDS"), word, NULL };
	struct guest_end end;
	int status = 0;
	pid_t child = fork();

	if (child == 0)
		_exit(5);
	usleep(2000);
	guest_traced(argv, TALLY_TRACEE_PIN, TALLY_RESUME_STEP, &end);
	check_int(end.status, 0);
	check_int(waitpid(child, &status, 0), child);
	check_int(WEXITSTATUS(status), 5);
}

static void it_ends_with_its_tracer(void)
{
	int pipes[2], pid = 0, status = 0;

	require(pipe(pipes) == 0);
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); /* so that its end is told to us */
	pid_t tracer = fork();
	if (tracer == 0) {
		struct tally_tracee *t = launch("COUNTED", NULL, 0);
		pid = t ? tally_tracee_pid(t) : 0;
		_exit(write(pipes[1], &pid, sizeof(pid)) != sizeof(pid));
	}
	waitpid(tracer, NULL, 0);
	check_int(read(pipes[0], &pid, sizeof(pid)), sizeof(pid));
	close(pipes[0]);
	close(pipes[1]);
	require(pid > 0);
	check_int(waitpid(pid, &status, 0), pid);
	check(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void what_cannot_be_is_refused(void)
{
	char path[] = "/no/such/program";
	char *const none[] = { NULL }, *const nowhere[] = { path, NULL };
	struct tally_tracee *t = NULL;
	struct tally_stop stop;
	struct tally_error err;

	check_int(tally_tracee_launch(&t, none, NULL, &err), -EINVAL);
	check_int(tally_tracee_launch(&t, nowhere, NULL, &err), -ENOENT);
	check_int(err.cause, TALLY_CAUSE_EXEC);
	check_int(tally_tracee_seize(&t, 1 << 30, NULL, &err), -ESRCH);
	check_int(tally_tracee_seize(&t, 1, TALLY_OPTS(tracee, .flags = TALLY_TRACEE_PIN), &err),
		  -EINVAL);
	t = launch("COUNTED", NULL, 0);
	require(t);
	check_int(tally_tracee_wait(t, 0, &stop), -EINVAL); /* it is stopped */
	check_int(tally_tracee_resume(t, TALLY_RESUME_LISTEN, 0), -EINVAL);
	check_int(tally_tracee_resume(t, 17, 0), -EINVAL);
	check(run_to(t, TALLY_RESUME_RUN, TALLY_STOP_EXITED, &stop));
	check_int(tally_tracee_resume(t, TALLY_RESUME_RUN, 0), -EINVAL);
	tally_tracee_free(t);
	tally_tracee_free(NULL);
}

int main(void)
{
	tap_run(starts_at_its_first_instruction);
	tap_run(memory_is_all_or_nothing);
	tap_run(registers_can_be_set);
	tap_run(a_breakpoint_is_hit_each_time);
	tap_run(no_breakpoint_is_seen_by_a_read);
	tap_run(calls_of_its_own_leave_no_trace);
	tap_run(a_call_at_a_signal_does_not_lose_it);
	tap_run(it_fits_into_a_loop_of_the_callers);
	tap_run(a_running_one_is_seized_and_let_go);
	tap_run(interrupts_and_steps_do_not_disturb_each_other);
	tap_run(what_follows_an_exec_can_be_stepped);
	tap_run(a_kill_at_any_stop_is_told);
	tap_run(an_exec_by_another_thread_is_told);
	tap_run(what_cannot_be_told_is_said);
	tap_run(a_kept_signal_is_not_blocked);
	tap_run(time_stamp_reads_are_trapped);
	tap_run(cpuid_is_trapped_or_refused);
	tap_run(children_of_the_callers_are_left_to_him);
	tap_run(it_ends_with_its_tracer);
	tap_run(what_cannot_be_is_refused);
	return tap_end();
}
