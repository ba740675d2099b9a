/* SPDX-License-Identifier: MIT */
/*
 * tally_tracee: a thread under ptrace(2), where every stop is a value.
 *
 *	tally_tracee_launch(&tracee, argv, NULL, &err);
 *	do {
 *		tally_tracee_resume(tracee, TALLY_RESUME_SYSCALL, 0);
 *		tally_tracee_wait(tracee, -1, &stop);
 *	} while (stop.kind != TALLY_STOP_EXITED && stop.kind != TALLY_STOP_KILLED);
 *	tally_tracee_free(tracee);
 *
 * It fits into a waitpid loop of the caller's, too: tally_tracee_stopped() makes a stop of a status
 * that waitpid(2) gave. libtally itself waits for single threads that it owns, by tid, and reaps
 * nobody else's children. All calls on a tracee come from the thread that seized or launched it, as
 * ptrace(2) asks; only tally_tracee_interrupt() may come from others.
 *
 * A step (TALLY_RESUME_STEP) executes one instruction as it would be executed without a tracer. What
 * makes that hard is taken care of, so that neither the caller nor the program sees it:
 *  - an instruction behind which the trap gets lost, so that a plain step executes two: CPUID in some
 *    virtual machines, MOV SS;
 *  - the trap flag that PUSHF would store;
 *  - a REP instruction, which stops at each repetition: it is one instruction, as the hardware counts;
 *  - system calls, which are run from entry to exit; what happens inside (CLONE, EXEC, ...) is told in
 *    between, and the next STEP goes on with the same call;
 *  - a signal with a handler, which stops at the handler's entry: nothing has been executed there;
 *  - SIGTRAP blocked or ignored by the program, which the kernel would unblock and reset;
 *  - a call into the vsyscall page, which the kernel emulates;
 *  - load-exclusive ... store-exclusive (arm64) and restartable sequences, rseq(2) (x86-64, where a
 *    store relative to FS announces them), which would never complete: they are run as a whole and told
 *    as one step that retired several instructions.
 * The last three, CPUID, MOV SS and long REP instructions need a breakpoint in the program's code for
 * the time of one step. Where the process has threads that are not tracees of the same family
 * (tally_tracee_adopt), those could run into it; there a REP instruction is stepped through, and the
 * others are stepped plainly: when that executes more than one instruction, the stop says so by
 * TALLY_INSN_UNKNOWN.
 *
 * Restrictions of a tracee are those of ptrace(2): one tracer, and what it shows in
 * /proc/PID/status. x86-64 (with 32-bit programs stepped, too) and arm64; Linux 5.3.
 */
#ifndef TALLY_TRACEE_H
#define TALLY_TRACEE_H

#include <signal.h>
#include <tally/api.h>
#include <tally/error.h>

TALLY_BEGIN_DECLS

struct tally_tracee;

enum tally_stop_kind {
	TALLY_STOP_NONE = 0,   /* it runs: no stop within the time */
	TALLY_STOP_STEP,       /* a step was executed: `insn`, `address`, `pc`, `retired` */
	TALLY_STOP_BREAKPOINT, /* at the breakpoint of tally_tracee_break(), which is gone: `pc` */
	TALLY_STOP_SIGNAL,     /* `signal` is about to be delivered: `code`, `fd`, `data` */
	TALLY_STOP_SYSCALL_ENTRY, /* `value`: the number */
	TALLY_STOP_SYSCALL_EXIT,  /* `value`: the result, or -errno, as int64_t */
	TALLY_STOP_SECCOMP,       /* `value`: the filter's 16 bits of data */
	TALLY_STOP_EXEC,          /* `value`: the tid that the thread had before */
	TALLY_STOP_FORK,          /* `value`: the child's tid; likewise of the next three */
	TALLY_STOP_VFORK,
	TALLY_STOP_CLONE,
	TALLY_STOP_VFORK_DONE,
	TALLY_STOP_CPUID,     /* CPUID was trapped; pc is at it; `value`: its length */
	TALLY_STOP_TSC,       /* RDTSC or RDTSCP was trapped; likewise */
	TALLY_STOP_GROUP,     /* the process was stopped by `signal` */
	TALLY_STOP_INTERRUPT, /* tally_tracee_interrupt(), or the start of a thread */
	/* It is about to end; registers can still be read. `value`: the status as of waitpid(2). */
	TALLY_STOP_EXITING,
	TALLY_STOP_EXITED, /* it is gone; `value`: its exit status */
	TALLY_STOP_KILLED, /* it is gone; `signal` ended it */
	/*
	 * It is gone, and the kernel tells nobody how. It was the first thread of its process, and
	 * another one has called execve(2) and is the first now; or it was that other one, whose EXEC
	 * stop comes from the first thread's tid. Thus a tracee of the first thread goes on as who
	 * has called execve.
	 */
	TALLY_STOP_GONE,
};

/* What an instruction is to a clock and to one who steps over it. */
enum tally_insn {
	TALLY_INSN_BRANCH =
		1u << 0, /* may change the flow within the program: jump, call, return */
	/*
	 * A branch that may fall through. x86: Jcc, JCXZ, JECXZ, JRCXZ, LOOP, LOOPE, LOOPNE; not
	 * CMOVcc, and not the repetitions of REP. arm64: B.cond, BC.cond, CBZ, CBNZ, TBZ, TBNZ, CB<cc>.
	 */
	TALLY_INSN_CONDITIONAL = 1u << 1,
	TALLY_INSN_SYSCALL = 1u << 2,
	TALLY_INSN_REPEATED = 1u << 3,  /* x86: a string instruction with REP, REPE or REPNE */
	TALLY_INSN_EXCLUSIVE = 1u << 4, /* arm64: a load-exclusive, which begins a region */
	TALLY_INSN_CARE = 1u << 5,      /* a plain step over it would show, or be fooled */
	TALLY_INSN_UNKNOWN = 1u << 6,   /* what was executed could not be told: clocks are lost */
};

/* What a step has retired. */
struct tally_retired {
	uint32_t instructions; /* 0: the kernel did it (vsyscall), or the step was told before */
	uint32_t branches;     /* jumps, calls and returns; not system calls and traps */
	uint32_t conditional;  /* of them: those that may fall through */
	/* Of the branches: those that were taken. A conditional one to its own successor is not told
	 * from one that falls through, and is not counted here. */
	uint32_t taken;
};

struct tally_stop {
	uint32_t kind; /* enum tally_stop_kind */
	int32_t tid;
	int32_t wait_status; /* as of waitpid(2); 0 with TALLY_STOP_NONE and _GONE */
	int32_t signal;      /* SIGNAL, GROUP, KILLED */
	int32_t code, fd;    /* SIGNAL: si_code; si_fd of one that a descriptor sent, else -1 */
	uint64_t data;       /* SIGNAL: si_perf_data of a SIGTRAP of perf events; else si_value */
	uint64_t value;      /* by kind */
	uint64_t pc;         /* STEP, BREAKPOINT, CPUID, TSC: where it is */
	uint64_t address;    /* STEP: where the instruction stood */
	uint32_t insn;       /* STEP: enum tally_insn */
	uint32_t repeats;    /* STEP over a REP: how many of its repetitions; else 1 */
	/*
	 * What was retired since the last stop, by steps alone. Other stops than STEP have it, too: the
	 * system call that was entered before an EXEC or EXITING, an INT3 of the program's that makes a
	 * SIGNAL.
	 */
	struct tally_retired retired;
};

enum tally_tracee_resume {
	TALLY_RESUME_RUN,     /* until something happens */
	TALLY_RESUME_SYSCALL, /* likewise, or the next entry to or exit from a system call */
	TALLY_RESUME_STEP,    /* one instruction; see above */
	TALLY_RESUME_LISTEN,  /* after TALLY_STOP_GROUP: stays stopped, until SIGCONT */
};

enum tally_tracee_flags {
	TALLY_TRACEE_FOLLOW_THREADS = 1u << 0, /* new threads start traced and stopped */
	TALLY_TRACEE_FOLLOW_FORKS = 1u << 1,   /* likewise children, by fork, vfork, clone */
	TALLY_TRACEE_NO_KILL = 1u << 2,        /* it lives on when the tracer ends */
	TALLY_TRACEE_SECCOMP = 1u << 3,        /* stop at filters that answer SECCOMP_RET_TRACE */
	TALLY_TRACEE_NO_RANDOM = 1u << 4,      /* launch: no randomised addresses, personality(2) */
	/* CPUID stops it, where the machine can: arch_prctl(2), ARCH_SET_CPUID. Linux 4.12, x86. */
	TALLY_TRACEE_TRAP_CPUID = 1u << 5,
	/* RDTSC and RDTSCP stop it, those in the vDSO, too: prctl(2), PR_SET_TSC. x86. */
	TALLY_TRACEE_TRAP_TSC = 1u << 6,
	/*
	 * Launch: the calling thread and the program are bound to the CPU on which the caller is, which
	 * makes a stop 3 to 15 times cheaper. The program's sched_getaffinity(2) answers what it would
	 * without, and what it asks for by sched_setaffinity(2) is only remembered: both calls are
	 * answered by the tracer, for which each of the program's system calls stops it (20 us or so).
	 * Children that are not followed get the CPUs that it has without, after a vfork(2) when that
	 * returns. /proc/PID/status tells the truth. tally_tracee_free() gives the caller his CPUs back.
	 */
	TALLY_TRACEE_PIN = 1u << 7,
};

struct tally_tracee_opts {
	uint32_t size, flags; /* enum tally_tracee_flags */
	char *const *envp;    /* launch: its environment; NULL: the caller's */
};

/*
 * All general registers, in the order of the kernel's user_regs_struct (x86-64: 27 words; a 32-bit
 * program's, too) and user_pt_regs (arm64: 34).
 */
#define TALLY_TRACEE_REGS_MAX 40
struct tally_tracee_regs {
	uint32_t machine; /* as an ELF file has it: EM_X86_64 (62), EM_AARCH64 (183) */
	uint32_t count;   /* how many of `word` there are */
	uint64_t word[TALLY_TRACEE_REGS_MAX];
};

/* The words that every machine has; 0 of a machine that is not known. Since: 0.1 */
TALLY_API uint64_t tally_tracee_regs_pc(const struct tally_tracee_regs *regs);
TALLY_API uint64_t tally_tracee_regs_sp(const struct tally_tracee_regs *regs);
/* The name of a word as the kernel spells it ("rip", "x0"); NULL: there is none. Since: 0.1 */
TALLY_API const char *tally_tracee_regs_name(uint32_t machine, uint32_t index);

/*
 * Runs a command, which is stopped before its first instruction: tick 0 of every clock. argv[0] is
 * looked up in PATH, as execvp(3) does. It stays in the caller's process group and session, has the
 * calling thread's signal mask and the default for each signal that the caller handles. It dies with
 * the tracer, unless TALLY_TRACEE_NO_KILL.
 * Errors: -EINVAL for an empty argv or a flag; those of fork(2), ptrace(2), and, with TALLY_CAUSE_EXEC,
 * of execvp(3); -ENODEV with TALLY_CAUSE_UNSUPPORTED: what TRAP_CPUID or TRAP_TSC asks for does not
 * trap here. Since: 0.1
 */
TALLY_API int tally_tracee_launch(struct tally_tracee **out, char *const argv[],
				  const struct tally_tracee_opts *opts, struct tally_error *err);

/*
 * Takes a running thread, and asks it to stop: its first stop is TALLY_STOP_INTERRUPT, or another one
 * that came first. Flags for launch alone are -EINVAL.
 * Errors: -ESRCH (no such thread), -EPERM (another tracer, another user's, kernel.yama.ptrace_scope;
 * the text says what to change), -EINVAL, -ENOMEM. Since: 0.1
 */
TALLY_API int tally_tracee_seize(struct tally_tracee **out, int32_t tid,
				 const struct tally_tracee_opts *opts, struct tally_error *err);

/*
 * Takes over a thread that this one traces already, by PTRACE_SEIZE: the new one of a CLONE, FORK or
 * VFORK stop of `from`'s, or the caller's own seizing with `from` NULL. What waitpid(2) first tells of
 * it is then for tally_tracee_stopped(), or tally_tracee_wait() waits for it. With `from` both are of
 * one family: those of its threads that share its memory. Until it is freed `from` may not be.
 * Flags and CPU are those of `from`, `opts` must be NULL then.
 * Errors: -ESRCH, -EINVAL, -ENOMEM, those of ptrace(2). Since: 0.1
 */
TALLY_API int tally_tracee_adopt(struct tally_tracee **out, int32_t tid, struct tally_tracee *from,
				 const struct tally_tracee_opts *opts, struct tally_error *err);

/*
 * Lets it go on; `signal`: to deliver, 0: none. The signal of a SIGNAL stop is delivered only that way.
 * A thread that was killed meanwhile is no error: the next stop tells.
 * Errors: -EINVAL (it is not stopped; LISTEN at another stop than GROUP), -EIO, those of ptrace(2).
 * Since: 0.1
 */
TALLY_API int tally_tracee_resume(struct tally_tracee *tracee, uint32_t how, int signal);

/*
 * Its next stop; timeout_ms < 0: for ever. Fills in `*stop` also at the time-out, with
 * TALLY_STOP_NONE. With a time-out it looks again and again, at first every few microseconds, later in
 * intervals of an eighth of the time that has passed, 5 ms at most.
 * Errors: -EINTR: a signal came to the calling thread, wait again; -ECHILD: somebody else has waited
 * for it; those of ptrace(2). Since: 0.1
 */
TALLY_API int tally_tracee_wait(struct tally_tracee *tracee, int timeout_ms,
				struct tally_stop *stop);

/*
 * What a status of the caller's waitpid(2) means. 1: `*stop` is one to look at; 0: it belonged to a
 * step that takes several, and the thread goes on: wait again. Errors: those of ptrace(2). Since: 0.1
 */
TALLY_API int tally_tracee_stopped(struct tally_tracee *tracee, int wait_status,
				   struct tally_stop *stop);

/*
 * Asks a running one to stop: TALLY_STOP_INTERRUPT, unless something else stops it first; then the
 * INTERRUPT follows at once when it is resumed. Any thread may call it. Errors: -ESRCH. Since: 0.1
 */
TALLY_API int tally_tracee_interrupt(struct tally_tracee *tracee);

/* Its registers, while it is stopped. Errors: -ESRCH: it was killed; those of ptrace(2). Since: 0.1 */
TALLY_API int tally_tracee_regs(struct tally_tracee *tracee, struct tally_tracee_regs *regs);
TALLY_API int tally_tracee_set_regs(struct tally_tracee *tracee,
				    const struct tally_tracee_regs *regs);

/*
 * Its floating-point and vector registers as bytes: the XSAVE area (x86, NT_X86_XSTATE) or
 * user_fpsimd_state (arm64, NT_PRFPREG). `*len`: the room, then how many there are. The area's header
 * (bytes 512 to 575) tells which parts are in their initial state, which differs from run to run
 * though the registers are equal; the bytes of the parts themselves are the same all the same.
 * Errors: -ESRCH, -ENOBUFS: `*len` is too small. Since: 0.1
 */
TALLY_API int tally_tracee_vector(struct tally_tracee *tracee, void *buf, size_t *len);
TALLY_API int tally_tracee_set_vector(struct tally_tracee *tracee, const void *buf, size_t len);

/*
 * Its memory, through /proc/PID/mem: also what it may not read or write itself. The bytes of a
 * breakpoint of ours are not seen. All or nothing. Errors: -EFAULT: not all of it is mapped; -ESRCH;
 * -EIO. Since: 0.1
 */
TALLY_API int tally_tracee_peek(struct tally_tracee *tracee, uint64_t address, void *buf,
				size_t len);
TALLY_API int tally_tracee_poke(struct tally_tracee *tracee, uint64_t address, const void *buf,
				size_t len);

/* The whole siginfo of a SIGNAL stop. Errors: -EINVAL: it is at none; -ESRCH. Since: 0.1 */
TALLY_API int tally_tracee_siginfo(struct tally_tracee *tracee, siginfo_t *info);
TALLY_API int tally_tracee_set_siginfo(struct tally_tracee *tracee, const siginfo_t *info);
/* The mask of blocked signals, signal 1 being bit 0, as the program has it. Since: 0.1 */
TALLY_API int tally_tracee_sigmask(struct tally_tracee *tracee, uint64_t *mask);
TALLY_API int tally_tracee_set_sigmask(struct tally_tracee *tracee, uint64_t mask);

/*
 * A signal that reaches the tracer whatever the program blocks, as that of a clock's interrupts: it is
 * taken out of the mask while the thread runs, and the program sees its mask as it set it, for which
 * each of its system calls stops it. One of these that is delivered while the program blocks it
 * waits until it does not, as it would. 0: none. Errors: -EINVAL: SIGKILL, SIGSTOP, SIGTRAP, no
 * signal; it is not stopped; -ESRCH. Since: 0.1
 */
TALLY_API int tally_tracee_keep(struct tally_tracee *tracee, int signal);

/*
 * A breakpoint in the program's code, for RUN and SYSCALL, one at a time; 0: none. It is put there when
 * the tracee is resumed, and taken away at each stop and each system call, so that neither children nor
 * reads by system calls see it; the program's own loads do. An instruction at which it stands already
 * is stepped over first. With threads that are not of the family it is refused.
 * Errors: -EBUSY: such threads; -EFAULT. Since: 0.1
 */
TALLY_API int tally_tracee_break(struct tally_tracee *tracee, uint64_t address);

/*
 * A system call made by the thread from where it is stopped, by the instruction of its own code that
 * it finds, or one that is put to where it stands for the time. Registers are as before afterwards;
 * pending signals stay so. The ticks of a free-counting clock move, so pause it; steps do not count.
 * `*result`: its result or -errno. Errors: -EINVAL: at a stop within a system call or at a signal of
 * a fault; -ESRCH; -EBUSY as tally_tracee_break(). Since: 0.1
 */
TALLY_API int tally_tracee_syscall(struct tally_tracee *tracee, long number, const uint64_t args[6],
				   int64_t *result);

/* The thread, and its process (whose first thread has the same number). Since: 0.1 */
TALLY_API int32_t tally_tracee_tid(const struct tally_tracee *tracee);
TALLY_API int32_t tally_tracee_pid(const struct tally_tracee *tracee);

/*
 * What all steps have retired since it was taken. `*exact`: nothing was executed that is not in there:
 * it has never run free, and no step was UNKNOWN. Since: 0.1
 */
struct tally_retired_total {
	uint64_t instructions, branches, conditional, taken;
};
TALLY_API void tally_tracee_retired(const struct tally_tracee *tracee,
				    struct tally_retired_total *out, bool *exact);

/*
 * Ends the tracing of a stopped one. `signal`: to be delivered, SIGSTOP: the process is left stopped,
 * as a debugger wants it that attaches next. Errors: -EINVAL: it is not stopped. Since: 0.1
 */
TALLY_API int tally_tracee_detach(struct tally_tracee *tracee, int signal);

/*
 * Frees it. One that is still traced is detached when it is stopped, and lives on; one that runs is
 * left to the end of the tracer. One that was launched, and not detached, is killed and reaped. NULL
 * is fine. Since: 0.1
 */
TALLY_API void tally_tracee_free(struct tally_tracee *tracee);

TALLY_END_DECLS

#endif
