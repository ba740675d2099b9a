/* SPDX-License-Identifier: MIT */
/*
 * CPUID and time-stamp reads that stop the thread: the kernel has the instruction fault, and the fault
 * is a SIGSEGV at it. Whether they do is found out by a child that executes one.
 */
#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/sys.h"
#include "exact/traps.h"
#include "exact/tracee.h"

#define TRAPS (TALLY_TRACEE_TRAP_CPUID | TALLY_TRACEE_TRAP_TSC)

/* si_code of a fault that the processor reports without an address: SI_KERNEL. */
#define CODE_KERNEL 0x80

static int arm(struct tally_tracee *t, long number, uint64_t what, uint64_t value)
{
	const uint64_t args[6] = { what, value };
	int64_t result = 0;
	int r = inject(t, number, args, &result);

	return r < 0 ? r : (int)result;
}

int traps_arm(struct tally_tracee *t)
{
	int r = 0;

	if (t->flags & TALLY_TRACEE_TRAP_CPUID)
		r = arm(t, traps_cpuid_call, traps_cpuid_what, 0);
	if (r == 0 && (t->flags & TALLY_TRACEE_TRAP_TSC))
		r = arm(t, SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV);
	return r;
}

int traps_judge(struct tally_tracee *t, struct tally_stop *stop)
{
	struct insn insn;
	int r;

	if (!(t->flags & TRAPS) || stop->kind != TALLY_STOP_SIGNAL || stop->signal != SIGSEGV ||
	    stop->code != CODE_KERNEL)
		return 0;
	r = tracee_read_regs(t);
	if (r == 0)
		r = code_insn(t, t->pc, &insn);
	if (r < 0 || !(insn.cpuid || insn.tsc))
		return r;
	stop->kind = insn.cpuid ? TALLY_STOP_CPUID : TALLY_STOP_TSC;
	stop->signal = stop->code = 0;
	stop->pc = t->pc;
	stop->value = insn.len;
	return 0;
}

/* Whether a child that has asked for the trap is ended by it. */
static int try_trap(uint32_t flag)
{
	pid_t child = fork();
	int status;

	if (child == 0)
		_exit(traps_try(flag));
	if (child < 0)
		return -errno;
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

int traps_check(uint32_t flags, struct tally_error *err)
{
	static const struct {
		uint32_t flag;
		const char *what;
	} rows[] = {
		{ TALLY_TRACEE_TRAP_CPUID, "CPUID (arch_prctl ARCH_SET_CPUID)" },
		{ TALLY_TRACEE_TRAP_TSC, "time-stamp reads (prctl PR_SET_TSC)" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		if (!(flags & rows[i].flag))
			continue;
		int r = try_trap(rows[i].flag);
		if (r < 0)
			return error_set(err, r, TALLY_CAUSE_LIMIT,
					 "cannot try out whether %s can be trapped: %s",
					 rows[i].what, strerror(-r));
		if (r == 0)
			return error_set(err, -ENODEV, TALLY_CAUSE_UNSUPPORTED,
					 "%s cannot be trapped on this machine: a child that asked "
					 "for it was not stopped",
					 rows[i].what);
	}
	return 0;
}
