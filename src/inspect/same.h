/* SPDX-License-Identifier: MIT */
/* What the parts of a comparison of runs share. */
#ifndef INSPECT_SAME_H
#define INSPECT_SAME_H

#include <sched.h>
#include <sys/types.h>
#include <tally/maps.h>
#include <tally/same.h>
#include <tally/symbolizer.h>
#include <tally/tracee.h>

#include "base/buf.h"
#include "base/vec.h"
#include "inspect/same-calls.h"
#include "inspect/same-machine.h"

/* Descriptors that are followed to know which the command was started with. */
#define SAME_FDS 1024

/* Clocks of clock_gettime(2) that have a number: CLOCK_REALTIME (0) to CLOCK_TAI (11). */
#define SAME_CLOCKS 12

/* What an input has written is shown by so many bytes. */
#define SAME_HEAD 16

/* What AT_RANDOM points to: getauxval(3). */
#define SAME_RANDOM_BYTES 16

/* How often the caller is told how far it is. */
#define PROGRESS_NS 1000000000u

/* What came from outside. */
enum same_input_kind {
	SAME_INPUT_NONE,
	SAME_INPUT_CALL,
	SAME_INPUT_INSN,
	SAME_INPUT_SIGNAL,
	SAME_INPUT_START, /* where the kernel has put it */
	SAME_INPUT_BYTES, /* AT_RANDOM */
	SAME_INPUT_VVAR,  /* the data page of the vDSO */
};

struct same_input {
	uint32_t kind;   /* enum same_input_kind */
	uint32_t thread; /* number of the thread */
	uint64_t tick, pc;
	uint64_t number; /* of the call, the signal; enum same_insn_kind */
	uint64_t args[6];
	int64_t result;
	uint64_t digest; /* of what it wrote */
	uint64_t given;  /* of what it was given to write */
	uint64_t given_at;
	uint64_t at, len; /* the first piece that it wrote */
	uint64_t data;    /* where all of it stands in the log, when `kept` */
	bool kept;
	bool once; /* it was on a descriptor that the command was started with */
	uint8_t head_len;
	uint8_t head[SAME_HEAD];
};

/* Something that was executed. Its registers stand beside it in the log. */
struct same_step {
	uint64_t tick, pc;
	uint32_t thread;
	uint32_t input;   /* index + 1; 0: none */
	uint32_t signals; /* that had come before */
	uint32_t ended;   /* 1: it is about to end; 2: it has ended */
};

/* What the first run did since the last look at memory. */
struct same_log {
	VEC(struct same_step) steps;
	VEC(uint64_t) words;
	VEC(struct same_input) inputs;
	struct buf data;
};

/* What the first run was told on the descriptors that it was started with, from the start on. */
struct same_tape {
	VEC(struct same_input) inputs;
	struct buf data;
	bool full; /* there was more */
};

/* Ticks that are looked at one by one, and the byte that is looked at; 0: none. */
struct same_focus {
	uint64_t from, to, address;
};

struct same_page {
	uint64_t address, hash;
};

enum same_thread_state {
	SAME_READY,
	SAME_WAITS,  /* for a futex or a time; nothing of it is in the kernel */
	SAME_INSIDE, /* in a system call that has not come back */
	SAME_ENDED,
};

/* A system call that is being made. */
struct same_pending {
	const struct same_call *call; /* NULL: none */
	uint64_t number, args[6];
	bool answered; /* it is not made: `answer` is its result */
	bool once;     /* its descriptor is one that the command was started with */
	int64_t answer;
	uint64_t lasts; /* ns until it ends by its time-out; UINT64_MAX: it has none */
	const struct same_input *first; /* what the first run was told, when that is to be told */
	const struct buf *told;         /* ... and the bytes of it */
};

struct same_thread {
	struct tally_tracee *tracee;
	struct tally_tracee_regs regs; /* where it stands */
	uint32_t number;               /* from 1 */
	uint32_t id;                   /* as its program knows it */
	uint32_t state;                /* enum same_thread_state */
	int signal;                    /* to be delivered */
	struct same_insn insn;         /* the one that is being executed */
	struct same_pending pending;
	bool exits, execs;
	bool restarts;          /* its call is to be started again */
	bool quick;             /* what it does is over soon */
	bool came;              /* from inside: `stop` has not been looked at */
	struct tally_stop stop; /* the last */
	/* SAME_WAITS */
	uint64_t futex, until; /* 0: for none; UINT64_MAX: without a time-out */
	uint32_t expected, bits;
	bool done;   /* the wait is over with `answer` */
	bool native; /* the call is to be made after all */
	int64_t answer;
};

struct same_run {
	struct tally_same *same;
	uint32_t index; /* 0: the first, with which others are compared */
	VEC(struct same_thread *) threads;
	uint32_t turn;     /* whose turn it is */
	uint64_t turn_end; /* ... until this tick */
	uint64_t ticks;    /* executed */
	uint64_t slept;    /* ns */
	uint64_t random;   /* numbers that were given */
	int32_t init;      /* the first process of the namespace; 0: none */
	uint64_t vdso, at_random;
	bool ended;
	int status; /* as a shell reports it */
	uint8_t fds[SAME_FDS / 8];
	VEC(struct same_input) signals;
	uint32_t signals_noted; /* so many were found to differ, or not */
	VEC(struct same_page) pages;
	/* The step that was made last. */
	struct same_step step;
	struct same_input input;
	struct buf data; /* what its call has written, when `keep` */
	bool keep;
};

/* Why runs may differ that nothing here controls. */
enum same_chance {
	SAME_CHANCE_CHILD,
	SAME_CHANCE_WAKE,
	SAME_CHANCE_SHARED,
	SAME_CHANCE_RING,
	SAME_CHANCE_SIGNAL,
	SAME_CHANCE_UNKNOWN,
	SAME_CHANCES,
};

struct tally_same {
	struct tally_same_opts opts;
	const struct same_machine *machine;
	char *const *argv;
	struct same_run *runs[TALLY_SAME_RUNS_MAX];
	uint32_t count;
	struct same_log log;
	struct same_tape tape;
	const struct tally_same *before; /* another go of the same: its tape is played */
	size_t played;
	struct same_focus focus;
	uint64_t looked;              /* the tick of the last look at memory */
	cpu_set_t cpus;               /* the caller's */
	int cpu;                      /* the one that all are bound to */
	int namespace;                /* the caller's pid namespace; -1: none is left */
	uint64_t clocks[SAME_CLOCKS]; /* at the start, ns */
	uint64_t tsc;
	uint64_t end_ns; /* when it is given up; 0: never */
	uint64_t next_progress_ns;
	const char *given_up; /* why */
	bool tells_pids;      /* of the first run to the others: there are no namespaces */
	uint32_t chances;     /* 1 << enum same_chance */
	const char *missing[TALLY_SAME_CONDITIONS]; /* why a condition cannot be had */
	/* The last input of the first run that differed from another one's. */
	struct same_input differing[2];
	uint32_t differing_run;
	char *differing_detail;
	/* What was found. */
	struct tally_same_report report;
	struct tally_same_input report_input;
	VEC(struct tally_same_value) values;
	struct tally_same_state states[TALLY_SAME_CONDITIONS];
	const char *uncontrolled[SAME_CHANCES];
	VEC(char *) texts;
	struct tally_maps *maps;
	int32_t mapped; /* whose they are */
	struct tally_symbolizer *symbolizer;
};

/* same-conditions.c */
bool same_fixes(const struct tally_same *same, uint32_t condition);
int same_prepare(struct tally_same *same, struct tally_error *err);
/* Behind execve: AT_RANDOM and the vDSO. */
int same_fix_stack(struct same_run *run, struct same_thread *t);
int same_start(struct tally_same *same, struct same_run *run, struct tally_error *err);
void same_stop(struct tally_same *same, struct same_run *run);

/* same-answers.c: what the program is told instead of what differs. */
uint64_t same_now(const struct same_run *run); /* ns since the start */
uint64_t same_number(struct same_run *run);    /* the next of the fixed random ones */
void same_lasts(struct same_run *run, struct same_thread *t);
/* Behind the call, which has `result`; the registers may be changed, too: 1. */
int same_answer_call(struct same_run *run, struct same_thread *t, int64_t *result);
int same_answer_insn(struct same_run *run, struct same_thread *t);

/* same-inputs.c: what a call told and was given. */
int same_take_call(struct same_run *run, struct same_thread *t, int64_t result);
/* Puts what the first run was told into memory. */
int same_replay(struct same_run *run, struct same_thread *t);
/* Notes when `a`, of the first run, and `b` are not the same. */
bool same_inputs_equal(const struct same_input *a, const struct same_input *b);
void same_differ(struct tally_same *same, struct same_run *run, const struct same_input *a,
		 const struct same_input *b);

/* same-fds.c */
int same_fds_start(struct same_run *run);
bool same_fds_has(const struct same_run *run, uint64_t fd);
bool same_fds_concern(struct same_run *run, struct same_thread *t);
void same_fds_follow(struct same_run *run, const struct same_thread *t, int64_t result);

/* same-pids.c */
/* Whether a call names a thread of the run's own: then `*regs` has its true number. */
bool same_pids_begin(struct same_run *run, const struct same_pending *p,
		     struct tally_tracee_regs *regs);
int same_pids_finish(struct same_run *run, struct same_thread *t, int64_t *result);
int same_pids_signal(struct same_run *run, struct same_thread *t);

/* same-children.c: a process that `from` has made is let go, and freed. */
int same_child(struct same_run *run, struct same_thread *from, struct tally_tracee *child);

/* same-turns.c */
struct same_thread *same_turn_add(struct same_run *run, struct tally_tracee *tracee);
uint32_t same_turn_alive(const struct same_run *run);
/* Whether there is one that is not on its way out. */
bool same_turn_goes_on(const struct same_run *run);
/* One by which memory and files are reached: the first one may have ended before the others. */
struct tally_tracee *same_turn_any(const struct same_run *run);
/* The thread whose turn it is. 1; 0: it was given up; 2: all that can go on are SAME_INSIDE. */
int same_turn(struct same_run *run, struct same_thread **out);
/* Whether a call is one that waits by turns: then it is not made now. */
bool same_turn_waits(struct same_run *run, struct same_thread *t);
/* A futex call that wakes others, or moves them; `*result`: with them. */
void same_turn_wake(struct same_run *run, const struct same_thread *t, int64_t *result);
void same_turn_look(struct same_run *run); /* after a thread has ended: futexes that changed */
void same_turn_signalled(struct same_run *run, const struct same_thread *t);
bool same_give_up(struct same_run *run); /* it is time to */

/* same-compare.c: up to the report. */
int same_compare(struct tally_same *same, struct tally_error *err);

/* same-step.c */
/*
 * Executes one step, which is then in run->step and ->input. `first`: what the first run's call there
 * was told; NULL: none. 1; 0: it was given up; or -errno.
 */
int same_step(struct same_run *run, const struct same_input *first);
/* Lets a run that is about to end do so. */
int same_finish(struct same_run *run);
int same_peek_thread(void *thread, uint64_t address, void *buf, uint64_t len);

/* same-memory.c */
int same_memory_digest(struct same_run *run, uint64_t *bytes);
/* 1: they differ, at `*address`; 0; or -errno. */
int same_memory_compare(struct same_run *a, struct same_run *b, uint64_t *address);
/* 1: vector registers differ (0: not; or -errno) at `*byte`, of thread `*thread`. */
int same_vectors_compare(struct same_run *a, struct same_run *b, uint32_t *thread, size_t *byte,
			 uint8_t values[2]);

/* same-tell.c: the report. */
TALLY_PRINTF(2, 3) const char *same_text(struct tally_same *same, const char *fmt, ...);
void same_place(struct tally_same *same, struct same_run *run, struct tally_same_place *out,
		const struct same_step *step);
void same_value(struct tally_same *same, const char *name, const char *a, const char *b);
void same_tell_registers(struct tally_same *same, const uint64_t *a, const uint64_t *b);
void same_tell_input(struct tally_same *same, struct same_run *run);
void same_tell_where(struct tally_same *same, struct same_run *run, uint64_t address);
void same_tell_end(struct tally_same *same);

#endif
