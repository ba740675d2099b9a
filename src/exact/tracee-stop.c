/* SPDX-License-Identifier: MIT */
/* A status of waitpid(2) as a stop. ptrace(2) "Stopped tracees" tells which status means what. */
#include <errno.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "base/sys.h"
#include "exact/tracee.h"

/* With PTRACE_O_TRACESYSGOOD. */
#define SIGTRAP_SYSCALL (SIGTRAP | 0x80)

/* Linux 5.3; older C libraries lack it. include/uapi/linux/ptrace.h */
#define GET_SYSCALL_INFO 0x420e
struct call_info {
	uint8_t op, pad[3];
	uint32_t arch;
	uint64_t pc, sp;
	union {
		struct {
			uint64_t number, args[6];
		} entry;
		struct {
			int64_t result;
			uint8_t is_error;
		} exit;
		struct {
			uint64_t number, args[6];
			uint32_t data;
		} seccomp;
	} u;
};

enum call_op {
	CALL_NONE,
	CALL_ENTRY,
	CALL_EXIT,
	CALL_SECCOMP,
};

static const struct {
	int event;
	enum tally_stop_kind kind;
} events[] = {
	{ PTRACE_EVENT_EXEC, TALLY_STOP_EXEC },
	{ PTRACE_EVENT_FORK, TALLY_STOP_FORK },
	{ PTRACE_EVENT_VFORK, TALLY_STOP_VFORK },
	{ PTRACE_EVENT_CLONE, TALLY_STOP_CLONE },
	{ PTRACE_EVENT_VFORK_DONE, TALLY_STOP_VFORK_DONE },
	{ PTRACE_EVENT_EXIT, TALLY_STOP_EXITING },
	{ PTRACE_EVENT_SECCOMP, TALLY_STOP_SECCOMP },
};

static int read_call(struct tally_tracee *t, struct tally_stop *stop)
{
	struct call_info info = { 0 };
	long r = sys()->ptrace(GET_SYSCALL_INFO, t->tid, sizeof(info), (unsigned long)&info);

	if (r < 0)
		return (int)r;
	if (info.op != CALL_ENTRY && info.op != CALL_EXIT)
		return -EIO;
	bool entry = info.op == CALL_ENTRY;
	stop->kind = entry ? TALLY_STOP_SYSCALL_ENTRY : TALLY_STOP_SYSCALL_EXIT;
	stop->value = entry ? info.u.entry.number : (uint64_t)info.u.exit.result;
	t->pc = stop->pc = info.pc;
	t->pc_known = true;
	return 0;
}

/* A stop by an interrupt and the start of a thread are EVENT_STOP with SIGTRAP; with another signal
 * it is one of job control. */
static int read_event(struct tally_tracee *t, int event, int signal, struct tally_stop *stop)
{
	unsigned long message = 0;

	if (event == PTRACE_EVENT_STOP) {
		stop->kind = signal == SIGTRAP ? TALLY_STOP_INTERRUPT : TALLY_STOP_GROUP;
		stop->signal = signal == SIGTRAP ? 0 : signal;
		return 0;
	}
	for (size_t i = 0; i < sizeof(events) / sizeof(*events); i++)
		if (event == events[i].event)
			stop->kind = events[i].kind;
	if (stop->kind == TALLY_STOP_NONE)
		return -EIO;
	long r = sys()->ptrace(PTRACE_GETEVENTMSG, t->tid, 0, (unsigned long)&message);
	stop->value = message;
	return (int)r;
}

/*
 * Whether a descriptor sent it (fcntl(2), F_SETSIG): si_code is POLL_IN to POLL_HUP, or SI_SIGIO of
 * those signals whose codes mean something else (send_sigio_to_task(), fs/fcntl.c).
 */
static bool is_of_descriptor(const siginfo_t *info)
{
	static const int others[] = { SIGCHLD, SIGILL, SIGFPE, SIGSEGV, SIGBUS, SIGTRAP, SIGSYS };

	if (info->si_code == SI_SIGIO)
		return true;
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (info->si_signo == others[i])
			return false;
	return info->si_code >= POLL_IN && info->si_code <= POLL_HUP;
}

/* si_perf_data stands behind si_addr: include/uapi/asm-generic/siginfo.h, of Linux 5.13. */
static uint64_t perf_data(const siginfo_t *info)
{
	unsigned long data;

	memcpy(&data, (const char *)&info->si_addr + sizeof(void *), sizeof(data));
	return data;
}

static int read_signal(struct tally_tracee *t, int signal, struct tally_stop *stop)
{
	siginfo_t info;
	long r = sys()->ptrace(PTRACE_GETSIGINFO, t->tid, 0, (unsigned long)&info);

	if (r < 0)
		return (int)r;
	stop->kind = TALLY_STOP_SIGNAL;
	stop->signal = signal;
	stop->code = info.si_code;
	if (signal == SIGTRAP && info.si_code == CODE_TRACE) {
		/* force_sig_fault() of a step tells the pc, which saves a look at the registers. */
		t->pc = stop->pc = (uint64_t)info.si_addr;
		t->pc_known = true;
	}
	if (is_of_descriptor(&info))
		stop->fd = info.si_fd;
	if (signal == SIGTRAP && info.si_code == CODE_PERF)
		stop->data = perf_data(&info);
	else if (info.si_code <= 0)
		stop->data = (uint64_t)(uintptr_t)info.si_value.sival_ptr;
	return 0;
}

static void read_end(struct tally_tracee *t, int wait_status, struct tally_stop *stop)
{
	bool exited = WIFEXITED(wait_status);

	t->state = TRACEE_GONE;
	stop->kind = exited ? TALLY_STOP_EXITED : TALLY_STOP_KILLED;
	stop->value = exited ? (uint64_t)WEXITSTATUS(wait_status) : 0;
	stop->signal = exited ? 0 : WTERMSIG(wait_status);
}

int stop_read(struct tally_tracee *t, int wait_status, struct tally_stop *stop)
{
	int signal, event;

	memset(stop, 0, sizeof(*stop));
	stop->tid = t->tid;
	stop->wait_status = wait_status;
	stop->fd = -1;
	stop->repeats = 1;
	t->regs_known = t->pc_known = false;
	if (!WIFSTOPPED(wait_status)) {
		read_end(t, wait_status, stop);
		return 0;
	}
	t->state = TRACEE_STOPPED;
	signal = WSTOPSIG(wait_status);
	event = wait_status >> 16;
	if (event)
		return read_event(t, event, signal, stop);
	if (signal == SIGTRAP_SYSCALL)
		return read_call(t, stop);
	return read_signal(t, signal, stop);
}
