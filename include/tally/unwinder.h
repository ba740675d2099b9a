/* SPDX-License-Identifier: MIT */
/*
 * tally_unwinder: from the registers of a thread and its stack to its callers.
 *
 * It follows what compilers write into .eh_frame and .debug_frame, of x86-64 and arm64 programs;
 * where a module has none, frame pointers. Modules are those that a tally_maps knows, so copies
 * of a stack in a recording (REGS_USER, STACK_USER) and living threads are unwound alike. Through
 * code that a process makes while it runs the unwinding information of its jitdump leads, if it
 * tells any.
 *
 *	tally_unwinder_new(&unwinder, maps, NULL, &err);
 *	tally_unwinder_sample(unwinder, &record, addresses, 512, &how);
 *
 * After the first pass over a place in a program a frame costs some tens of nanoseconds, and
 * nothing is allocated. One thread at a time may use an unwinder.
 */
#ifndef TALLY_UNWINDER_H
#define TALLY_UNWINDER_H

#include <tally/api.h>
#include <tally/error.h>
#include <tally/maps.h>
#include <tally/record.h>

TALLY_BEGIN_DECLS

struct tally_unwinder;

struct tally_unwinder_opts {
	uint32_t size, flags;
	const char *machine; /* as uname -m, or the feature ARCH, tells it; NULL: this one. Borrowed
				until new returns. */
	const char *root;    /* folder above /proc; NULL: the real one. Borrowed. */
	const char *symfs;   /* folder in which recorded paths are looked for first. Borrowed. */
	const char *cache;   /* as in struct tally_symbolizer_opts. Borrowed. */
};

/*
 * `maps` is borrowed and may grow meanwhile. Errors: -EOPNOTSUPP: stacks of that machine cannot be
 * unwound; -EINVAL, -E2BIG: bad options; -ENOMEM. Since: 0.1
 */
TALLY_API int tally_unwinder_new(struct tally_unwinder **out, struct tally_maps *maps,
				 const struct tally_unwinder_opts *opts, struct tally_error *err);
/* NULL is fine. Since: 0.1 */
TALLY_API void tally_unwinder_free(struct tally_unwinder *unwinder);

/*
 * A build-id for a path, of process `pid` or, where that is negative, of all, as
 * tally_symbolizer_build_id(): a file with another one is not used. To be called before an address
 * in it is met. Errors: -ENOMEM. Since: 0.1
 */
TALLY_API int tally_unwinder_build_id(struct tally_unwinder *unwinder, int32_t pid,
				      const char *path, const uint8_t *build_id,
				      uint32_t build_id_len);

/*
 * The clock of the times that are asked with, as tally_symbolizer_clock(): the jitdumps of
 * processes are read with it. Since: 0.1
 */
TALLY_API void tally_unwinder_clock(struct tally_unwinder *unwinder, uint32_t clockid);

/* How a stack ends. */
enum tally_unwind_end {
	TALLY_UNWIND_WHOLE = 0, /* where its thread began */
	TALLY_UNWIND_CUT = 1,   /* where the copy of the stack does */
	TALLY_UNWIND_BROKEN =
		2, /* at an address of which no rules are known, or that makes no sense */
	TALLY_UNWIND_FULL = 3, /* at the end of the room for addresses */
};

/* Where unwinding begins. */
struct tally_unwind_start {
	int32_t pid; /* whose mappings, */
	uint32_t reserved;
	uint64_t time;     /* and when */
	uint64_t mask;     /* which registers there are, by the bits of tally_reg_name() */
	const void *regs;  /* 64 bits each, in the order of those bits */
	const void *stack; /* a copy of memory from the stack pointer on; may be NULL */
	uint64_t stack_len;
	/* A word of other memory; false: there is none. NULL: the copy is all. */
	bool (*read)(void *arg, uint64_t address, uint64_t *out);
	void *arg;
};

struct tally_unwound {
	uint32_t frames; /* addresses that were written */
	uint32_t end;    /* enum tally_unwind_end */
	/*
	 * Of BROKEN the module that lacks rules, for tally_unwinder_module(); UINT32_MAX: it is
	 * mapped nowhere, or memory made no sense.
	 */
	uint32_t module;
	/*
	 * 1: where it stood is code that its process's jitdump does not tell of so far, as programs
	 * write these some KiB at a time. It was left as code that has set up its frame pointer; where
	 * it had not, a caller is missing.
	 */
	uint32_t untold;
	/*
	 * Of CUT: bytes from the stack pointer to the end of that stack, where its mapping is
	 * known; a copy of so many would do. 0: unknown.
	 */
	uint64_t stack_bytes;
};

/* What came of many stacks. */
struct tally_stacks {
	uint64_t whole, cut, broken; /* as enum tally_unwind_end */
	/* Bytes of the longest that was cut, where that is known: a copy of so many would do. */
	uint64_t wanted_bytes;
	/* Of those that were cut: no size is known that would do. What a signal handler on a stack of
	 * its own has interrupted is in no copy. */
	uint64_t cut_beyond;
};

/*
 * Writes the address where the thread is and those to which its functions return, at most `room`.
 * Returns 0. Errors: -EINVAL: no program counter or stack pointer among the registers; -ENOMEM.
 * Since: 0.1
 */
TALLY_API int tally_unwinder_walk(struct tally_unwinder *unwinder,
				  const struct tally_unwind_start *start, uint64_t *addresses,
				  uint32_t room, struct tally_unwound *out);

/*
 * The same for a SAMPLE with REGS_USER and, as far as it goes, STACK_USER. Returns 1; 0 when it
 * carries no registers. Errors: -EBADMSG: registers of a 32-bit program, or of another byte order;
 * as tally_unwinder_walk(). Since: 0.1
 */
TALLY_API int tally_unwinder_sample(struct tally_unwinder *unwinder, const struct tally_record *rec,
				    uint64_t *addresses, uint32_t room, struct tally_unwound *out);

/*
 * Whether what returns to this address of process `pid` is a signal handler: the code there ends
 * it (__restore_rt). What is next in an unwound stack has called nobody then, but was interrupted
 * at its address, at which it is to be looked up, as is this one; all others at the call before
 * theirs. Where a thread stands is asked for by that address plus 1. Returns 1 or 0. Errors:
 * -ENOMEM. Since: 0.1
 */
TALLY_API int tally_unwinder_is_signal(struct tally_unwinder *unwinder, int32_t pid, uint64_t time,
				       uint64_t address);

struct tally_unwinder_module {
	const char *path;    /* as recorded; lives as long as the maps */
	const char *trouble; /* why it has no rules, and what to do, as a phrase; NULL: it has */
	uint64_t broken;     /* how many stacks ended in it */
};

/* The modules that were met. -EINVAL beyond the end. Since: 0.1 */
TALLY_API uint32_t tally_unwinder_modules(const struct tally_unwinder *unwinder);
TALLY_API int tally_unwinder_module(const struct tally_unwinder *unwinder, uint32_t i,
				    struct tally_unwinder_module *out);

TALLY_END_DECLS

#endif
