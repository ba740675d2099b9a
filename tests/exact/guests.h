/* SPDX-License-Identifier: MIT */
/* Running small programs alone and traced, and comparing what they say and how they end. */
#ifndef EXACT_GUESTS_H
#define EXACT_GUESTS_H

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <tally/tally.h>

#define GUEST_TEXT 4096

struct guest_end {
	int status; /* 128 + the signal that ended it, too */
	char text[GUEST_TEXT];
	/* Of a traced one. */
	int error;                        /* of a call of the library's that failed */
	uint64_t steps, signals, strange; /* `strange`: TALLY_INSN_UNKNOWN */
	struct tally_retired_total retired;
	bool exact;
	struct tally_tracee_regs last; /* at its EXITING stop */
};

/* Standard output goes to a file in memory; the file it went to before comes back by restore. */
static int capture_output(int *before)
{
	int file = memfd_create("guest", MFD_CLOEXEC);

	fflush(stdout);
	*before = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
	dup2(file, STDOUT_FILENO);
	return file;
}

static void restore_output(int file, int before, char *text)
{
	dup2(before, STDOUT_FILENO);
	close(before);
	ssize_t n = pread(file, text, GUEST_TEXT - 1, 0);
	text[n > 0 ? n : 0] = 0;
	close(file);
}

static inline void guest_alone(char *const argv[], struct guest_end *end)
{
	int before, status = 0, file = capture_output(&before);
	pid_t child;

	memset(end, 0, sizeof(*end));
	child = fork();
	if (child == 0) {
		execv(argv[0], argv);
		_exit(127);
	}
	waitpid(child, &status, 0);
	end->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	restore_output(file, before, end->text);
}

static inline void guest_take(struct guest_end *end, struct tally_tracee *tracee,
			      const struct tally_stop *stop)
{
	end->steps += stop->kind == TALLY_STOP_STEP;
	end->signals += stop->kind == TALLY_STOP_SIGNAL;
	end->strange += (stop->insn & TALLY_INSN_UNKNOWN) != 0;
	if (stop->kind == TALLY_STOP_EXITING)
		tally_tracee_regs(tracee, &end->last);
	if (stop->kind == TALLY_STOP_EXITED)
		end->status = (int)stop->value;
	if (stop->kind == TALLY_STOP_KILLED)
		end->status = 128 + stop->signal;
}

static inline bool guest_is_over(const struct tally_stop *stop)
{
	return stop->kind == TALLY_STOP_EXITED || stop->kind == TALLY_STOP_KILLED ||
	       stop->kind == TALLY_STOP_GONE;
}

/* All stops are resumed alike; signals are passed on. `keep`: a signal for tally_tracee_keep(). */
static inline void guest_traced_keeping(char *const argv[], uint32_t flags, uint32_t how, int keep,
					struct guest_end *end)
{
	struct tally_tracee *tracee;
	struct tally_stop stop = { 0 };
	struct tally_error err;
	int before, file = capture_output(&before);

	memset(end, 0, sizeof(*end));
	end->error = tally_tracee_launch(&tracee, argv, TALLY_OPTS(tracee, .flags = flags), &err);
	if (end->error == 0 && keep)
		end->error = tally_tracee_keep(tracee, keep);
	while (end->error == 0 && !guest_is_over(&stop)) {
		end->error = tally_tracee_resume(
			tracee, stop.kind == TALLY_STOP_GROUP ? TALLY_RESUME_LISTEN : how,
			stop.kind == TALLY_STOP_SIGNAL ? stop.signal : 0);
		if (end->error == 0)
			end->error = tally_tracee_wait(tracee, -1, &stop);
		if (end->error == 0)
			guest_take(end, tracee, &stop);
	}
	if (end->error < 0 && !tracee) {
		restore_output(file, before, end->text);
		return;
	}
	tally_tracee_retired(tracee, &end->retired, &end->exact);
	tally_tracee_free(tracee);
	restore_output(file, before, end->text);
}

static inline void guest_traced(char *const argv[], uint32_t flags, uint32_t how,
				struct guest_end *end)
{
	guest_traced_keeping(argv, flags, how, 0, end);
}

#endif
