/* SPDX-License-Identifier: MIT */
/*
 * Named regions of code, counted when somebody asks for it.
 *
 *	TALLY_REGIONS(app);                                        // in one source, at file scope
 *	static struct tally_region solve = TALLY_REGION("solve");  // a handle, static
 *
 *	TALLY_REGION_BEGIN(app, &solve);
 *	...
 *	TALLY_REGION_END(app, &solve);
 *
 * The environment turns it on, before the program or library starts:
 *
 *	TALLY_REGIONS         events, as after -e; "1" is a list for everyone; unset, "" or "0": off
 *	TALLY_REGIONS_OUTPUT  file to append to, %p is the process id; standard error by default
 *	TALLY_REGIONS_FORMAT  "text", or "json": one object a line
 *
 * Off, a BEGIN or END is a load and a branch; on, it is one read of a group of counters. The state
 * is the user's own: the library has no globals and runs no code of its own accord. A set-user-ID
 * program is not asked.
 *
 * Each thread counts itself, by a group that it opens at its first region; threads are summed when
 * they end, and at the exit of the program (or dlclose of the library) whose regions these are.
 * Those that still run then are included as far as they have ended their regions; a region that is
 * open is told, and not counted.
 * Regions nest, up to TALLY_REGION_DEPTH in a thread: inclusive counts are those between BEGIN and
 * END, exclusive ones without those of regions inside. What calls itself is counted inclusively
 * once. A region ends in the thread that began it. What is not so is told in the output: an END
 * without a BEGIN, one that ends others that are inside it.
 * Nothing of this ever gets into the program's way: events that cannot be opened are told in the
 * output. A forked child begins anew with counters of its own, and says nothing of its parent's; a
 * child of vfork must not use regions. A signal handler may use those regions that its thread has
 * ended before: a first time allocates. A BEGIN or END that interrupts another is ignored, and
 * told.
 */
#ifndef TALLY_REGION_H
#define TALLY_REGION_H

#include <tally/api.h>
#include <tally/count.h>

TALLY_BEGIN_DECLS

/* How many regions may be open in a thread, and how many different names a set has. */
#define TALLY_REGION_DEPTH 64
#define TALLY_REGION_NAMES 4096

/*
 * A region's handle. Handles of one name are one region. The name is copied when it is first used,
 * so that a plugin with handles may be closed; `tag` is the library's.
 */
struct tally_region {
	const char *name;
	uint64_t tag;
};

#define TALLY_REGION(name) \
	{                  \
		(name), 0  \
	}

/* A set of regions, on static storage of the program's or library's that they are in. */
struct tally_regions {
	uint32_t on; /* the only thing that BEGIN and END look at while it is 0 */
	/* The library's, from here on. */
	uint32_t visitors;
	uint32_t key;
	uint32_t reserved;
	uint64_t generation;
	uint32_t *alive;
	struct tally_regions_state *state;
	struct tally_region_thread *left;
};

/* Defines the set, and starts and stops it with the program or library. One a set. */
#define TALLY_REGIONS(set)                                          \
	extern struct tally_regions set;                            \
	__attribute__((constructor)) static void set##_start_(void) \
	{                                                           \
		tally_regions_start(&set);                          \
	}                                                           \
	__attribute__((destructor)) static void set##_stop_(void)   \
	{                                                           \
		tally_regions_stop(&set);                           \
	}                                                           \
	struct tally_regions set

/* Declares it, for other sources. */
#define TALLY_REGIONS_EXTERN(set) extern struct tally_regions set

#define TALLY_REGION_BEGIN(set, region)                                                \
	do {                                                                           \
		if (__builtin_expect(__atomic_load_n(&(set).on, __ATOMIC_RELAXED), 0)) \
			tally_region_begin(&(set), (region));                          \
	} while (0)

#define TALLY_REGION_END(set, region)                                                  \
	do {                                                                           \
		if (__builtin_expect(__atomic_load_n(&(set).on, __ATOMIC_RELAXED), 0)) \
			tally_region_end(&(set), (region));                            \
	} while (0)

/* What the macros call. Any thread; they fail silently, and tell it in the output. Since: 0.1 */
TALLY_API void tally_region_begin(struct tally_regions *set, struct tally_region *region);
TALLY_API void tally_region_end(struct tally_regions *set, struct tally_region *region);

/*
 * Turns the set on if the environment asks for it, and off again with the output. TALLY_REGIONS()
 * calls them; a set that it did not define must be zeroed before the first start. Stopping waits a
 * moment for threads that are just inside a BEGIN or END. Since: 0.1
 */
TALLY_API void tally_regions_start(struct tally_regions *set);
TALLY_API void tally_regions_stop(struct tally_regions *set);

/* The sums of a region over all threads. It may grow at its end. */
struct tally_region_result {
	const char *name;
	uint64_t calls;  /* how often it was ended */
	uint64_t failed; /* of these, how often counters could not be read: not in the counts */
	uint32_t members;
	uint32_t reserved;
	const struct tally_result *inclusive,
		*exclusive; /* `members` of each, in the events' order */
};

/*
 * Gives the sums so far to `fn`, by region in the order of first use, until it returns non-zero,
 * which is then returned. All is borrowed for the call. Nothing is given while the set is off, or
 * in a forked child that had no region yet. Errors: -ENOMEM. Since: 0.1
 */
TALLY_API int tally_regions_read(struct tally_regions *set,
				 int (*fn)(const struct tally_region_result *result, void *arg),
				 void *arg);

/* What is not as it should be, so far; summed over all threads. It may grow at its end. */
struct tally_regions_notes {
	uint64_t threads;        /* that had regions */
	uint64_t unopened;       /* of these, how many could not open their counters */
	uint64_t open;           /* regions that are open now: not in the sums */
	uint64_t unmatched_ends; /* ENDs without a BEGIN: ignored */
	uint64_t ended_by_outer; /* regions that were ended by the END of one around them */
	uint64_t too_deep;       /* BEGINs beyond TALLY_REGION_DEPTH: ignored, with their ENDs */
	uint64_t too_many;       /* BEGINs of regions beyond TALLY_REGION_NAMES: ignored */
	uint64_t interrupting;   /* BEGINs and ENDs in a handler that interrupted one: ignored */
};

/* out_size  sizeof *out as the caller compiled it. Errors: -EINVAL for 0. Since: 0.1 */
TALLY_API int tally_regions_notes(struct tally_regions *set, struct tally_regions_notes *out,
				  size_t out_size);

TALLY_END_DECLS

#endif
