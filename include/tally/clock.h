/* SPDX-License-Identifier: MIT */
/*
 * tally_clock: a clock that goes by what a thread executes, so that it shows the same in every run.
 *
 *	tally_clock_read(clock, &now);
 *	if (now.validity == TALLY_CLOCK_VALID)
 *		printf("%" PRIu64 " conditional branches\n", now.ticks);
 *
 * A clock has a semantics (what a tick is), a backend (who counts), and tells with each value
 * whether it holds. Backends are the `pmu` (a hardware counter of the thread), `step` (each
 * instruction is stepped and told apart by its bytes: works everywhere, and is slow), `sim`
 * (sim.h: a program that only exists in memory, with every fault that hardware has). A backend of
 * one's own (a virtual machine, a translator, ticks that a compiler put in) is a struct
 * tally_clock_ops: it counts, and the clock on top of it does the arithmetic.
 *
 * Ticks begin at 0 when the clock is opened, or as tally_clock_set() says. By agreement that is the
 * first instruction behind execve, so that the same program stops at the same place in every run.
 *
 * All calls are made while the thread is stopped, by one thread at a time: of a traced thread by
 * the one that traces it. None but _new and _free allocates.
 */
#ifndef TALLY_CLOCK_H
#define TALLY_CLOCK_H

#include <tally/api.h>
#include <tally/attr.h>
#include <tally/error.h>
#include <tally/tracee.h>

TALLY_BEGIN_DECLS

struct tally_clock;

/* What a tick is. Values are stored in traces: they never change. */
enum tally_ticks {
	TALLY_TICKS_CONDITIONAL = 1,  /* a retired conditional branch, taken or not */
	TALLY_TICKS_TAKEN = 2,        /* a retired branch that was taken */
	TALLY_TICKS_BRANCHES = 3,     /* a retired branch of any kind */
	TALLY_TICKS_INSTRUCTIONS = 4, /* a retired instruction */
	TALLY_TICKS_OTHER = 5,        /* what the backend's event counts: `identity` says what */
};

enum tally_clock_validity {
	TALLY_CLOCK_VALID = 0,
	TALLY_CLOCK_NOT_COUNTING, /* the counter was not on the hardware all the time */
	TALLY_CLOCK_REVOKED,      /* the kernel took it away: a set-user-ID exec, a hybrid CPU */
	TALLY_CLOCK_GONE,         /* the thread has ended */
	TALLY_CLOCK_BACKWARD,     /* it went backward, or moved when it could not */
	TALLY_CLOCK_FAILED,       /* it could not be read: `error` */
};

struct tally_clock_value {
	uint64_t ticks;    /* 0 unless it is valid */
	uint32_t validity; /* enum tally_clock_validity */
	int32_t error;     /* FAILED: the errno, negative; else 0 */
};

enum tally_clock_can {
	/* It counts while the thread runs; else only what is stepped. */
	TALLY_CLOCK_COUNTS_FREE = 1u << 0,
	TALLY_CLOCK_INTERRUPTS = 1u << 1, /* tally_clock_arm() works */
	TALLY_CLOCK_MAY_SKID = 1u << 2,   /* an interrupt may come late; else it never does */
	/*
	 * What a step counts is what it retired (tally_stop.retired), without exception: a timer
	 * then takes a step that counted otherwise for a clock that is broken.
	 */
	TALLY_CLOCK_FOLLOWS_STEPS = 1u << 3,
};

/* How the counts of a clock differ from what its semantics says. */
enum tally_clock_quirks {
	TALLY_CLOCK_NO_LOOP = 1u << 0,      /* x86: LOOP and J*CXZ are no conditional branches */
	TALLY_CLOCK_COUNTS_REP = 1u << 1,   /* x86: repetitions of REP are */
	TALLY_CLOCK_COUNTS_TRAPS = 1u << 2, /* interrupts and page faults count, now and then */
};

/* What a clock is; to be stored in traces and compared when they are replayed. */
struct tally_clock_about {
	uint32_t ticks;      /* enum tally_ticks */
	uint32_t can;        /* enum tally_clock_can */
	uint64_t min_period; /* the shortest that arm takes; at least 1 */
	uint64_t max_period; /* the longest; 0: no limit */
	uint64_t margin;     /* so many ticks late an interrupt is expected to come at most */
	double rate;         /* ticks a second of running, roughly; 0: unknown */
	uint32_t quirks;     /* enum tally_clock_quirks */
	int32_t signal;      /* by which its interrupts come; 0: it has none */
	char backend[16];    /* "pmu", "step", "sim", or the embedder's */
	char identity[144];  /* the CPU and what else its counts depend on; "": nothing */
};

/*
 * A backend. `self` is what was given to tally_clock_new(). It counts ticks from where it was
 * made, and never sees tally_clock_set, pause, resume or adjust. All are called while the thread
 * is stopped, and answer 0 or a negative errno.
 */
struct tally_clock_ops {
	uint32_t size, flags; /* sizeof(struct tally_clock_ops); 0 */
	/* Fills in `*out`, which is zeroed before. Called once. */
	int (*about)(void *self, struct tally_clock_about *out);
	/* What it counts now, or why that does not hold. */
	int (*read)(void *self, struct tally_clock_value *out);
	/*
	 * One interrupt after `period` more ticks (within about's limits), instead of the one
	 * that was armed before. An interrupt stops the thread with TALLY_STOP_SIGNAL. NULL
	 * without TALLY_CLOCK_INTERRUPTS, as the next two.
	 */
	int (*arm)(void *self, uint64_t period);
	int (*disarm)(void *self);
	/*
	 * Whether a stop by a signal is an interrupt of this backend's, be it of now or of an
	 * earlier arming. Never true of a signal that somebody else sent: it is not delivered to
	 * the program.
	 */
	bool (*owns)(void *self, const struct tally_stop *stop);
	/*
	 * Something was retired by a step: `stop->retired`; when `stop->insn` has
	 * TALLY_INSN_UNKNOWN it could not be told what. NULL: it counts by itself.
	 */
	int (*stepped)(void *self, const struct tally_stop *stop);
	void (*free)(void *self); /* NULL: nothing is to be freed */
};

/*
 * A clock on a backend. The ops are copied. It takes over `self`, which tally_clock_free() frees;
 * when it fails `self` stays the caller's.
 * Errors: -EINVAL (about or read is missing; arm, disarm or owns where it says that it interrupts;
 * what it tells about itself cannot be), -E2BIG (ops of a later version), -ENOMEM; those of
 * `about`. Since: 0.1
 */
TALLY_API int tally_clock_new(struct tally_clock **out, const struct tally_clock_ops *ops,
			      void *self, struct tally_error *err);
/* Frees it with its backend. NULL does nothing. Since: 0.1 */
TALLY_API void tally_clock_free(struct tally_clock *clock);

/* What it is. Lives as long as the clock. Since: 0.1 */
TALLY_API const struct tally_clock_about *tally_clock_about(const struct tally_clock *clock);

/*
 * Whether a point of an execution that was found by the clock `then` is the same point by `now`:
 * they count the same, with the same quirks; who counts does not matter, unless the semantics is
 * OTHER. 0: it is. Errors: -EXDEV, with how they differ. Since: 0.1
 */
TALLY_API int tally_clock_compare(const struct tally_clock_about *then,
				  const struct tally_clock_about *now, struct tally_error *err);

/*
 * Ticks since it was opened or set, without those of pauses; while it is paused, those of before.
 * It always fills in `*out`: that a value does not hold is no error of this call. BACKWARD stays
 * until the clock is set. Since: 0.1
 */
TALLY_API void tally_clock_read(struct tally_clock *clock, struct tally_clock_value *out);

/*
 * From here on it counts from `ticks`. Ends what is said of values that went backward.
 * Errors: -EIO when it cannot be read, or the errno of that. Since: 0.1
 */
TALLY_API int tally_clock_set(struct tally_clock *clock, uint64_t ticks);

/*
 * What is executed from here on does not count, as injected system calls, until it is resumed.
 * May be nested. Errors: -EIO when it cannot be read, or the errno of that; -EINVAL: resumed
 * without pause. Since: 0.1
 */
TALLY_API int tally_clock_pause(struct tally_clock *clock);
TALLY_API int tally_clock_resume(struct tally_clock *clock);

/*
 * Ticks that the backend missed, as of instructions that the caller emulated; negative: that it
 * counted and should not have. Errors: -ERANGE, beyond 0 and 2^64 - 1; -EIO when it cannot be read,
 * or the errno of that. Since: 0.1
 */
TALLY_API int tally_clock_adjust(struct tally_clock *clock, int64_t ticks);

/*
 * One interrupt, `period` ticks from now, instead of the one that was armed before; and none.
 * Errors: -EOPNOTSUPP (it cannot), -ERANGE (a period that `about` does not allow), -EBUSY (it is
 * paused); those of the backend. Since: 0.1
 */
TALLY_API int tally_clock_arm(struct tally_clock *clock, uint64_t period);
TALLY_API int tally_clock_disarm(struct tally_clock *clock);

/* Whether a stop is an interrupt of the clock's, of now or of an earlier arming. Since: 0.1 */
TALLY_API bool tally_clock_owns(struct tally_clock *clock, const struct tally_stop *stop);

/*
 * Tells of a stop what was retired by steps before it, if anything was. A timer does this for the
 * stops that it is told of. Errors: those of the backend. Since: 0.1
 */
TALLY_API int tally_clock_stepped(struct tally_clock *clock, const struct tally_stop *stop);

/*
 * How many ticks a duration is, by the stated rate, rounded down; UINT64_MAX when they are more. 0
 * when the rate is unknown. Since: 0.1
 */
TALLY_API uint64_t tally_clock_ticks_of(const struct tally_clock *clock, uint64_t ns);

/*
 * The semantics, the validity in words ("conditional branches", "it went backward"); "?" for an
 * unknown value. Static storage. Since: 0.1
 */
TALLY_API const char *tally_ticks_name(uint32_t ticks);
TALLY_API const char *tally_clock_validity_name(uint32_t validity);

/*
 * The clock of what a tracee's steps retire (tally_tracee_retired()), of any semantics but OTHER.
 * Whatever is executed without a step makes it NOT_COUNTING. It does not interrupt, so a timer steps
 * all the way: 25 to 40 thousand instructions a second in a virtual machine. Its conditional branches
 * are those of TALLY_INSN_CONDITIONAL, so LOOP and J*CXZ are, and repetitions of REP are not.
 * It borrows `tracee`. Errors: -EINVAL, -ENOMEM. Since: 0.1
 */
TALLY_API int tally_clock_open_step(struct tally_clock **out, struct tally_tracee *tracee,
				    uint32_t ticks, struct tally_error *err);

struct tally_selftest;

struct tally_clock_pmu_opts {
	uint32_t size, flags; /* no flags yet */
	/*
	 * The signal by which an overflow stops the tracee; 0: 16 (SIGSTKFLT), which no kernel sends.
	 * A program that blocks it makes its interrupts late, which a timer finds out by the clock;
	 * tally_tracee_keep() keeps it unblocked.
	 */
	int32_t signal;
	int32_t reserved;
	uint64_t margin; /* ticks; 0: what has been seen on this CPU */
	/*
	 * The event, where it is known better than by the table of CPUs: type and config, and what else
	 * they need. NULL: by `tried`, or by the CPU that the caller is on. Borrowed.
	 */
	const struct tally_attr *attr;
	/*
	 * What tally_selftest_run() found on this CPU, instead of the table's row: event, quirks, the
	 * shortest period, and twice the skid that was seen where the table's margin is less. What
	 * counts conditional branches without quirks is then compared with each step of a timer
	 * (TALLY_CLOCK_FOLLOWS_STEPS). Borrowed.
	 */
	const struct tally_selftest *tried;
};

/*
 * The clock of a hardware counter, for one CPU or CPUs of one kind: pin the tracee on machines that have
 * several. CONDITIONAL on Intel (Nehalem and later) and AMD (Zen and later), TAKEN on arm64 and older
 * AMD; BRANCHES and INSTRUCTIONS everywhere, which interrupts and page faults add to
 * (TALLY_CLOCK_COUNTS_TRAPS), so that they are no clock to stop exactly by; OTHER with `attr`. Ticks are
 * those of the thread since it was opened, in its own code. The table is not proof: some virtual
 * machines and CPUs count otherwise than they should. `opts` may be NULL. It borrows `tracee`.
 * Errors: -EINVAL, -E2BIG, -ENOMEM; -ENODEV (no hardware counters), -ENOTSUP (no event that is known
 * for this), and those of perf_event_open(2), explained. Linux 3.14. Since: 0.1
 */
TALLY_API int tally_clock_open_pmu(struct tally_clock **out, struct tally_tracee *tracee,
				   uint32_t ticks, const struct tally_clock_pmu_opts *opts,
				   struct tally_error *err);

TALLY_END_DECLS

#endif
