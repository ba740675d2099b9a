/* SPDX-License-Identifier: MIT */
/*
 * tally_same: do two runs of a command do the same, and if not, where do they part and why?
 *
 *	if (tally_same_run(&same, argv, TALLY_OPTS(same, .runs = 3), &err) == 0)
 *		printf("%s\n", tally_same_report(same)->outcome == TALLY_SAME_IDENTICAL ?
 *				       "identical" : "they part");
 *	tally_same_free(same);
 *
 * The command is started several times, and all that can be fixed is the same for all: enum
 * tally_same_condition. The runs are stepped side by side, instruction by instruction: after each one
 * the general registers are compared, and every so many instructions, and at the end, the vector
 * registers and what memory holds that the program has written. What comes from outside (results of
 * system calls with what they wrote, signals, instructions that read clocks and random numbers) is
 * compared, too, so that the report can name the last of it that differed.
 *
 * A tick is an instruction that the program has executed, in all its threads: tick 0 is the first
 * instruction behind execve, as of a tally_clock of TALLY_TICKS_INSTRUCTIONS. Threads run one at a time
 * and take turns by ticks; futex(2) is answered by turns, too. Children, by fork, run free and are not
 * compared. Each instruction is stepped, which takes 25 to 40 microseconds in a virtual machine.
 *
 * The runs share what is outside of them: files, sockets, other processes. Linux 5.3; x86-64, arm64.
 */
#ifndef TALLY_SAME_H
#define TALLY_SAME_H

#include <tally/api.h>
#include <tally/error.h>

TALLY_BEGIN_DECLS

struct tally_same;

/* What is made the same for all runs, each unless it is let go (tally_same_opts.leave). */
enum tally_same_condition {
	TALLY_SAME_ASLR = 1u << 0, /* addresses are not randomised */
	/* AT_RANDOM, getrandom(2), RDRAND, RDSEED and RNDR give numbers of a fixed sequence. */
	TALLY_SAME_RANDOM = 1u << 1,
	/*
	 * Each run is in a pid namespace of its own: CAP_SYS_ADMIN. Without it the program is told the
	 * first run's numbers of its own threads, and the condition counts as not fixed.
	 */
	TALLY_SAME_PID = 1u << 2,
	/*
	 * Clocks that are read by system calls go by ticks, a nanosecond each, from the time of the
	 * start on; the time of sleeps is added.
	 */
	TALLY_SAME_TIME = 1u << 3,
	TALLY_SAME_TSC = 1u << 4, /* RDTSC, RDTSCP and CNTVCT go by ticks */
	/* The vDSO is hidden (AT_SYSINFO_EHDR), so that clocks are read by system calls. */
	TALLY_SAME_VDSO = 1u << 5,
	TALLY_SAME_CPU = 1u << 6, /* all on one CPU: CPUID, getcpu(2), rseq(2) tell the same */
	/*
	 * What is read from the descriptors that the command was started with is read once, and what
	 * is written to them is written once, by the first run; the others get the same answers, and
	 * their children have /dev/null there.
	 */
	TALLY_SAME_IO = 1u << 7,
};
#define TALLY_SAME_CONDITIONS 8

/* A condition's name ("aslr", "random", "pid", "time", "tsc", "vdso", "cpu", "io") and what it fixes,
 * by its bit's number; NULL: there is none. Since: 0.1 */
TALLY_API const char *tally_same_condition_name(uint32_t index);
TALLY_API const char *tally_same_condition_help(uint32_t index);

#define TALLY_SAME_RUNS_MAX  16
#define TALLY_SAME_EVERY_MAX 1000000

struct tally_same_opts {
	uint32_t size, flags; /* 0 */
	uint32_t runs;        /* 2 to TALLY_SAME_RUNS_MAX; 0: 2 */
	uint32_t leave;       /* enum tally_same_condition: what is let go */
	/* Ticks between two looks at memory, TALLY_SAME_EVERY_MAX at most; 0: 10000. As many sets of
	 * registers are kept. */
	uint64_t every;
	uint64_t max_ms;   /* it is given up after so long; 0: never */
	char *const *envp; /* the command's environment; NULL: the caller's */
	/* Called now and then while it runs, with the ticks so far. Not 0: it is given up. */
	int (*progress)(void *arg, uint64_t ticks);
	void *arg;
};

enum tally_same_outcome {
	TALLY_SAME_IDENTICAL = 1, /* to the end */
	TALLY_SAME_PARTED,        /* `parting` */
	TALLY_SAME_UNFINISHED,    /* identical as far as they were run: `why` */
};

/* By what two runs were seen to part. */
enum tally_same_parting {
	TALLY_SAME_BY_REGISTERS = 1, /* one instruction, and other registers behind it: `values` */
	TALLY_SAME_BY_FLOW,          /* other instructions, or other threads, were executed */
	/* Within the ticks from `from` to the place's; `values`, `address`. */
	TALLY_SAME_BY_MEMORY,
	TALLY_SAME_BY_VECTORS, /* vector registers, likewise */
	TALLY_SAME_BY_OUTPUT,  /* what a system call was given to write, `address` being where */
	TALLY_SAME_BY_END,     /* one ended and the other did not, or otherwise: `values` */
};

/* A place in the program. Texts live as long as the tally_same. */
struct tally_same_place {
	uint64_t tick; /* how many instructions had been executed before */
	uint64_t pc;
	uint64_t offset;    /* from the symbol's start, or the module's */
	const char *symbol; /* NULL: unknown */
	const char *module; /* path */
	uint32_t thread;    /* in the order in which they were started, from 1 */
	uint32_t reserved;
};

/* Something of two runs. Likewise. */
struct tally_same_value {
	const char *name; /* "rax", "result" */
	const char *text[2];
};

/* What came from outside. Likewise. */
struct tally_same_input {
	struct tally_same_place place; /* of the first of the two runs */
	const char *what;   /* "getrandom(0x7ffe0000, 8, 0)", "RDTSC", "signal SIGALRM" */
	const char *detail; /* what it was about, as "descriptor 3 is /dev/urandom"; or NULL */
	const char *fix;    /* what would make it the same, or why nothing does */
	struct tally_same_value value; /* what it gave */
	uint32_t run[2];               /* to which two runs, from 1 */
	uint32_t condition; /* enum tally_same_condition that was let go, or is not to be had; 0 */
	uint32_t reserved;
};

/* What became of a condition. Likewise. */
struct tally_same_state {
	const char *name, *help;
	const char *why; /* it is not fixed; NULL: it is */
	uint32_t condition;
	uint32_t left; /* 1: because it was let go */
};

struct tally_same_report {
	uint32_t outcome; /* enum tally_same_outcome */
	uint32_t parting; /* enum tally_same_parting */
	uint32_t run[2];  /* which two part, from 1 */
	uint32_t runs;
	int32_t status;         /* of the command, as a shell reports it; -1: it has not ended */
	uint64_t ticks;         /* that were compared */
	uint64_t looks;         /* how often memory was compared */
	uint64_t bytes;         /* of memory, at the last look */
	uint64_t inputs;        /* how many came from outside */
	uint64_t differed;      /* of them: that differed */
	uint64_t from, address; /* see above */
	const char *why;        /* UNFINISHED */
	const char *where;      /* what the address belongs to: "[stack]", a path; or NULL */
	struct tally_same_place place;        /* where they part, by the first of the two runs */
	struct tally_same_place other;        /* FLOW: where the second one went */
	const struct tally_same_input *input; /* the last that differed; NULL: none did */
	const struct tally_same_value *values;
	uint32_t value_count;
	uint32_t state_count;
	const struct tally_same_state *states;
	/* What happened that nothing here controls, a sentence each. */
	const char *const *uncontrolled;
	uint32_t uncontrolled_count;
	uint32_t reserved;
};

/*
 * Runs the command, as often as is asked for, and compares. The calling thread traces it meanwhile, is
 * bound to one CPU (unless TALLY_SAME_CPU is let go), and forks one process more a run, for the pid
 * namespace. Nothing is left running.
 *
 * Errors, behind which there is nothing to be freed: -EINVAL and -E2BIG for options; those of
 * tally_tracee_launch(); -EOPNOTSUPP: a machine other than x86-64 and arm64; -ENOMEM; those of
 * ptrace(2). Since: 0.1
 */
TALLY_API int tally_same_run(struct tally_same **out, char *const argv[],
			     const struct tally_same_opts *opts, struct tally_error *err);

/* What was found. Lives as long as the object. Since: 0.1 */
TALLY_API const struct tally_same_report *tally_same_report(const struct tally_same *same);

/* NULL is fine. Since: 0.1 */
TALLY_API void tally_same_free(struct tally_same *same);

TALLY_END_DECLS

#endif
