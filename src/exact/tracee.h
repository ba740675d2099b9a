/* SPDX-License-Identifier: MIT */
/* What the parts of a tracee share. */
#ifndef EXACT_TRACEE_H
#define EXACT_TRACEE_H

#include <stdatomic.h>
#include <tally/tracee.h>

#include "base/buf.h"
#include "exact/arch.h"

/* Breakpoints that are in the code at the same time: behind a region, and where it may jump to. */
#define BREAKS_MAX 8

/* Pages of code that are remembered, each with a tail of the next for what crosses its end. */
#define CODE_PAGES 8
#define CODE_PAGE  4096u

/* Mappings whose code does not change without a system call. */
#define STEADY_MAX 64

/* si_code of a trap: Linux, include/uapi/asm-generic/siginfo.h. */
#define CODE_BRKPT 1
#define CODE_TRACE 2
#define CODE_PERF  6

enum tracee_state {
	TRACEE_RUNS,
	TRACEE_STOPPED,
	TRACEE_GONE,
};

/* What happens between a resume and the stop that is told. */
enum plan {
	PLAN_RUN,
	PLAN_DELIVER, /* a signal, up to its handler's entry */
	PLAN_STEP,    /* PTRACE_SINGLESTEP */
	PLAN_REPEAT,  /* likewise, until a REP is over */
	PLAN_CALL,    /* up to the exit of a system call */
	PLAN_BEHIND,  /* to one of the breakpoints */
};

struct breaks {
	uint32_t count;
	bool in; /* they stand in the code */
	struct {
		uint64_t address;
		uint8_t saved[4];
		struct tally_retired retired; /* by who gets there */
		bool unknown;                 /* that cannot be told */
	} at[BREAKS_MAX];
};

struct code_page {
	uint64_t address; /* 0: empty */
	uint8_t bytes[CODE_PAGE];
};

/* What /proc tells, until the next system call may change it. */
struct facts {
	bool known;
	bool alone;        /* no thread of the process is out of our hands */
	bool single;       /* it is the only one */
	bool trap_ignored; /* SIGTRAP */
	uint64_t mask;     /* of blocked signals */
	bool ranges_known;
	uint32_t ranges;
	struct {
		uint64_t start, end;
	} range[STEADY_MAX];
};

/* A signal whose stop had to be left, to be sent again. */
enum held_state {
	HELD_NONE,
	HELD_TAKEN,
	HELD_SENT,
};

struct held {
	enum held_state state;
	siginfo_t info;
};

struct pin; /* exact/tracee-pin.c */

struct tally_tracee {
	int32_t tid, pid;
	uint32_t flags; /* enum tally_tracee_flags */
	enum tracee_state state;
	struct tally_launch *launch; /* a child of ours, to be ended with the tracee; or NULL */
	bool detached;
	struct tally_tracee *next, *previous; /* the family, as a ring */
	int mem;                              /* /proc/TID/mem */
	struct pin *pin;

	uint32_t how; /* enum tally_tracee_resume */
	enum plan plan;
	struct tally_stop stop;  /* the last that was told */
	bool in_call;            /* between entry and exit of a system call */
	bool starts;             /* ... which is an execve that has succeeded */
	bool restarts;           /* the call will be started again */
	bool masked;             /* a call was interrupted that may have set a mask for its time */
	bool step_over;          /* a step before a run, from where the breakpoint stands */
	bool asked;              /* an interrupt of our own is on its way */
	bool run_behind;         /* a run behind the entry of a handler */
	bool again;              /* stop by an interrupt, once more */
	atomic_bool interrupted; /* by tally_tracee_interrupt(), and not told yet */
	bool has_status;         /* one that came too early, for the next wait */
	int wait_status;

	bool regs_known, pc_known;
	struct tally_tracee_regs regs;
	uint64_t pc;
	unsigned bits; /* 0: unknown */

	/* The step that is being made. */
	struct insn insn;
	uint64_t address, repeats;
	bool own_trap_flag; /* the program steps itself */
	bool loaded_flags;  /* the last step was over POPF or IRET */
	struct tally_retired retired;
	struct tally_retired_total total;
	uint64_t losses; /* how often it executed what is not in `total` */

	struct facts facts;
	struct code_page *code; /* CODE_PAGES of them */
	struct buf text;        /* files of /proc are read into it */
	uint64_t break_at;      /* tally_tracee_break(); 0: none */
	struct breaks breaks;
	bool lent;             /* SIGTRAP is taken out of the mask */
	bool owes_ignore;      /* the kernel has reset an ignored SIGTRAP */
	struct held redeliver; /* a signal, after an injected call */
	struct held trap;      /* the program's own SIGTRAP, which it blocks */
	int keep;              /* tally_tracee_keep(); 0: none */
	bool keep_lent;        /* it is taken out of the mask */
	uint64_t kept_mask;    /* the program\'s, when it ran last */
	struct held kept;      /* one for the program, which blocks it */
	uint64_t call_at;      /* an instruction for system calls in the vDSO; 0: unknown */
};

/* tracee-stop.c: a status as a stop, with what the kernel tells; nothing is done about it. */
int stop_read(struct tally_tracee *t, int wait_status, struct tally_stop *stop);

/* tracee-registers.c */
int tracee_read_regs(struct tally_tracee *t); /* into t->regs */
int tracee_read_pc(struct tally_tracee *t);   /* into t->pc */
int tracee_move_pc(struct tally_tracee *t, uint64_t pc);

/* tracee.c */
/* Lets it go on. 0 also when it has been killed: its next status tells. */
int tracee_continue(struct tally_tracee *t, int request, int signal);
/* Waits for a status of waitpid(2). 1; 0: none within the time; or -errno. */
int tracee_await(struct tally_tracee *t, int timeout_ms, int *wait_status);
/* Whether a thread or process exists: for those that vanish without a word. */
bool tracee_exists(const struct tally_tracee *t);
int tracee_open_files(struct tally_tracee *t);

/* tracee-step.c */
int step_begin(struct tally_tracee *t, int signal);
int run_begin(struct tally_tracee *t, int signal);
int resume_begin(struct tally_tracee *t, int signal); /* one of them, as t->how says */
/* A stop that came: 1: it is to be told; 0: the thread goes on. */
int step_stopped(struct tally_tracee *t, struct tally_stop *stop);

/* tracee-region.c: code that must not be interrupted, planned to be run at once by breakpoints. */
int region_begin(struct tally_tracee *t);
int region_announced(struct tally_tracee *t);

/* tracee-code.c */
void code_forget(struct tally_tracee *t); /* all that a system call may change */
int code_facts(struct tally_tracee *t);
/* The instruction at `pc`; one that cannot be read has TALLY_INSN_UNKNOWN. */
int code_insn(struct tally_tracee *t, uint64_t pc, struct insn *out);

/* tracee-breaks.c */
int breaks_add(struct tally_tracee *t, uint64_t address);
int breaks_insert(struct tally_tracee *t);
int breaks_remove(struct tally_tracee *t);
/* Which of ours a thread ran into that stands at `pc` now; -1: none. */
int breaks_hit(const struct tally_tracee *t, uint64_t pc);
/* Whether it is one of the family's, or one that is gone already. */
bool breaks_of_family(struct tally_tracee *t, uint64_t pc);
/* Makes bytes that were read what they are without breakpoints. */
void breaks_hide(const struct tally_tracee *t, uint64_t address, uint8_t *buf, size_t len);

/* tracee-signals.c: SIGTRAP of a program that blocks or ignores it. */
int trap_lend(struct tally_tracee *t);
int trap_return(struct tally_tracee *t);
/* The same of the signal that is to be kept unblocked, while the thread runs. */
int keep_lend(struct tally_tracee *t);
int keep_return(struct tally_tracee *t);
/* Such a signal that is for a program that blocks it waits until it does not. */
int keep_back(struct tally_tracee *t, int *signal);
/* Keeps the signal of a stop that is to be left; sends it again. */
int held_take(struct tally_tracee *t);
int held_send(struct tally_tracee *t);
/* Gives a signal that was sent again what it had with it. 1: deliver it at once; 0; or -errno. */
int held_restore(struct tally_tracee *t, struct tally_stop *stop);

/* tracee-inject.c */
int inject(struct tally_tracee *t, long number, const uint64_t args[6], int64_t *result);

/* tracee-traps.c */
int traps_arm(struct tally_tracee *t);
/* Makes a SIGSEGV of a trapped CPUID, RDTSC or RDTSCP one of these. */
int traps_judge(struct tally_tracee *t, struct tally_stop *stop);
int traps_check(uint32_t flags, struct tally_error *err);

/* tracee-pin.c */
int pin_take(struct tally_tracee *t);
int pin_share(struct tally_tracee *t, const struct tally_tracee *from);
void pin_unbind(const struct tally_tracee *t); /* the program gets its CPUs */
void pin_release(struct tally_tracee *t);
int pin_entry(struct tally_tracee *t, const struct tally_stop *stop);
int pin_exit(struct tally_tracee *t, struct tally_stop *stop);

#endif
