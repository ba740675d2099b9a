/* SPDX-License-Identifier: MIT */
/*
 * tally_profile: many samples, folded into a call tree with everything interned once.
 *
 * A profile is plain data: events, threads, modules, functions, locations, a tree of stacks, and
 * rows (event, thread, stack) with the number of samples and the sum of their periods. Every output
 * is a walk over it.
 *
 *	tally_profile_new(&profile, &err);
 *	tally_profile_load_file(profile, "perf.data", NULL, &health, NULL, 0, &err);
 *	tally_report_text(profile, TALLY_OPTS(query, .comm = "python3"), NULL, stdout, &err);
 *	tally_profile_free(profile);
 *
 * Records can also be pushed, from a file or a live ring, one after another: tally_loader.
 */
#ifndef TALLY_PROFILE_H
#define TALLY_PROFILE_H

#include <stdio.h>
#include <tally/api.h>
#include <tally/error.h>
#include <tally/maps.h>
#include <tally/record.h>
#include <tally/symbolizer.h>
#include <tally/unwinder.h>

TALLY_BEGIN_DECLS

struct tally_profile;

/* Errors: -ENOMEM. Since: 0.1 */
TALLY_API int tally_profile_new(struct tally_profile **out, struct tally_error *err);
/* NULL is fine. Since: 0.1 */
TALLY_API void tally_profile_free(struct tally_profile *profile);

/* ---- filling it by hand: what a loader does, and a program with samples of its own can do ---- */

/*
 * All return an index: equal content has an equal index. Texts are copied. Errors: -ENOMEM; -EINVAL
 * when an index that is passed in does not exist, or a build-id is longer than 20 bytes.
 * Since: 0.1
 */

/* `unit` is "ns" for clocks and "" for plain counts. */
TALLY_API int tally_profile_event(struct tally_profile *p, const char *name, const char *unit);
/* A thread under one of its names. */
TALLY_API int tally_profile_thread(struct tally_profile *p, int32_t pid, int32_t tid,
				   const char *comm);
/* `name` is short ("libc.so.6"), `path` is where it lies; NULL: as the name. */
TALLY_API int tally_profile_module(struct tally_profile *p, const char *name, const char *path,
				   const uint8_t *build_id, uint32_t build_id_len);
/* `name` NULL: all that has no symbol in that module. `mode` is enum tally_mode. */
TALLY_API int tally_profile_function(struct tally_profile *p, int module, const char *name,
				     uint32_t mode);
/* A function that the compiler inlined into its caller, where it stands on top of it in stacks. */
TALLY_API int tally_profile_inlined(struct tally_profile *p, int module, const char *name,
				    uint32_t mode);
/* `address` in the module's own numbering, so that it is the same in every process. */
TALLY_API int tally_profile_location(struct tally_profile *p, int function, uint64_t address);
/* The same, with its place in the source; `file` NULL or `line` 0: unknown. */
TALLY_API int tally_profile_place(struct tally_profile *p, int function, uint64_t address,
				  const char *file, uint32_t line);
/* The stack of `location` called by the stack `parent` (-1: by nobody). */
TALLY_API int tally_profile_stack(struct tally_profile *p, int parent, int location);

/* Counts samples with their summed period. Sums saturate. Errors: -ENOMEM, -EINVAL. Since: 0.1 */
TALLY_API int tally_profile_add(struct tally_profile *p, int event, int thread, int stack,
				uint64_t samples, uint64_t weight);

/* ---- what is in it ---- */

struct tally_profile_function_info {
	const char *name;   /* NULL: no symbol */
	const char *label;  /* what outputs call it: the name, "name (inlined)", else "[module]" */
	const char *module; /* short */
	const char *path;
	const uint8_t *build_id;
	uint32_t build_id_len; /* 0: unknown */
	uint32_t mode;         /* enum tally_mode */
	uint32_t inlined;      /* not 0: into its caller */
	uint32_t reserved;
};

struct tally_profile_thread_info {
	const char *comm;
	int32_t pid, tid;
};

struct tally_profile_row {
	int32_t event, thread, stack;
	uint32_t reserved;
	uint64_t samples, weight;
};

/*
 * How many there are, and one by its index: 0, or -EINVAL (NULL for texts) beyond the end. Texts
 * are borrowed until the profile is next added to. Since: 0.1
 */
TALLY_API uint32_t tally_profile_events(const struct tally_profile *p);
TALLY_API const char *tally_profile_event_name(const struct tally_profile *p, uint32_t event);
TALLY_API const char *tally_profile_event_unit(const struct tally_profile *p, uint32_t event);
TALLY_API uint32_t tally_profile_threads(const struct tally_profile *p);
TALLY_API int tally_profile_thread_info(const struct tally_profile *p, uint32_t thread,
					struct tally_profile_thread_info *out);
TALLY_API uint32_t tally_profile_functions(const struct tally_profile *p);
TALLY_API int tally_profile_function_info(const struct tally_profile *p, uint32_t function,
					  struct tally_profile_function_info *out);
TALLY_API uint32_t tally_profile_stacks(const struct tally_profile *p);
/* The parent stack (-1: none), the location's function and address. */
TALLY_API int tally_profile_stack_info(const struct tally_profile *p, uint32_t stack,
				       int32_t *parent, int32_t *function, uint64_t *address);
/* "file:line" of the location, as it was added; NULL: unknown. */
TALLY_API const char *tally_profile_stack_source(const struct tally_profile *p, uint32_t stack);
TALLY_API uint32_t tally_profile_rows(const struct tally_profile *p);
TALLY_API int tally_profile_row(const struct tally_profile *p, uint32_t row,
				struct tally_profile_row *out);

/* ---- loading records ---- */

struct tally_loader;

enum tally_loader_flags {
	/* Locations with their place in the source, from the modules' debugging information. */
	TALLY_LOADER_LINES = 1u << 0,
	/* Functions that were inlined where a sample was taken, or where a caller called, as frames
	 * of their own. The sample then counts as taken in the innermost of them. */
	TALLY_LOADER_INLINE = 1u << 1,
};

struct tally_loader_opts {
	uint32_t size, flags; /* enum tally_loader_flags */
	/* Samples outside [from, to) are left out. ns of the recording's clock; to 0: no end. */
	uint64_t from, to;
	/* Unwinds copies of stacks in samples; NULL: they are not unwound. Borrowed. */
	struct tally_unwinder *unwinder;
};

/* How good the data is. */
struct tally_load_health {
	uint64_t samples;        /* counted into the profile */
	uint64_t filtered;       /* left out by `from` and `to` */
	uint64_t with_chain;     /* of the samples: the callchain has a user part */
	uint64_t broken_chains;  /* of these: it does not reach the start of the thread */
	uint64_t frames;         /* of all samples together */
	uint64_t unknown_frames; /* of these: without a symbol */
	uint64_t lost;           /* by LOST and LOST_SAMPLES records */
	uint64_t undecodable;    /* records that contradict their layout */
	uint64_t first, last;    /* times of the first and the last sample that was counted */
	/*
	 * Of the samples with a callchain, but not broken: it ends where the copy of the stack does.
	 * The longest of these stacks has `wanted_stack` bytes, where that is known: a copy of so many
	 * would have been enough.
	 */
	uint64_t cut_chains, wanted_stack;
	uint64_t cut_beyond; /* of the cut ones: as in struct tally_stacks */
	uint64_t
		copied_stacks; /* of the samples: from a copy of the stack, by whoever unwound it */
};

/*
 * A loader takes records one by one. It looks at a sample with the side-band (MMAP, MMAP2, COMM,
 * FORK, EXIT) and the deferred callchains that were pushed before it, whatever the times in them: push a file's side-band first
 * and its samples afterwards, as tally_profile_load_file does by reading it twice. Of live rings
 * push each round in order of time.
 *
 * It borrows profile, maps and symbolizer. Errors: -EINVAL, -E2BIG, -ENOMEM. Since: 0.1
 */
TALLY_API int tally_loader_new(struct tally_loader **out, struct tally_profile *profile,
			       struct tally_maps *maps, struct tally_symbolizer *symbolizer,
			       const struct tally_loader_opts *opts, struct tally_error *err);
/* NULL is fine. Since: 0.1 */
TALLY_API void tally_loader_free(struct tally_loader *loader);
/*
 * Takes one decoded record; a sample counts for the profile's event number `event`, with its period
 * as weight. Types other than side-band, samples and loss are ignored. A stack that was seen before
 * costs a hash of its addresses and no allocation. Errors: -ENOMEM; -EINVAL for an event that does
 * not exist. Since: 0.1
 */
TALLY_API int tally_loader_push(struct tally_loader *loader, const struct tally_record *record,
				int event);
TALLY_API void tally_loader_health(const struct tally_loader *loader,
				   struct tally_load_health *out);

struct tally_load_opts {
	uint32_t size, flags;      /* enum tally_loader_flags */
	uint64_t from, to;         /* as in struct tally_loader_opts */
	uint32_t relative;         /* not 0: `from` and `to` count from the first sample */
	uint32_t symbolizer_flags; /* enum tally_symbolizer_flags */
	const char *root, *symfs;  /* as in struct tally_symbolizer_opts. Borrowed. */
	/* Called once for each module that has no symbols, when all is loaded. NULL: nobody asks. */
	void (*trouble)(const struct tally_module_info *module, void *arg);
	void *arg;
	/* Likewise for each module in which stacks ended that were unwound. */
	void (*broken)(const struct tally_unwinder_module *module, void *arg);
	const char *cache; /* as in struct tally_symbolizer_opts */
};

/*
 * Loads a perf.data file, or what else tally_reader_open() reads; "-" is the standard input; and an
 * archive of tally_pack(), which is unpacked into a folder below $TMPDIR or /tmp meanwhile, whose files
 * then are `root` and `symfs`, if these are NULL. What can be read twice is: side-band counts for
 * samples that stand before it. A sample that carries the counts of a group (modifier S) stands for
 * each member that has counted since the one before, with its own count as weight. `health` may be NULL; it is filled in on errors of the file too. What is
 * wrong with the file without keeping it from being read goes to health_text (cut to its size, ""
 * when nothing is; may be NULL). Errors: of tally_reader_open and tally_reader_next; what stood
 * before a corrupt record is in the profile all the same. Since: 0.1
 */
TALLY_API int tally_profile_load_file(struct tally_profile *profile, const char *path,
				      const struct tally_load_opts *opts,
				      struct tally_load_health *health, char *health_text,
				      size_t health_text_size, struct tally_error *err);

/* ---- asking: filters and sort keys, shared by all outputs ---- */

enum tally_query_flags {
	TALLY_QUERY_BY_SAMPLES = 1u << 0, /* weigh by number of samples, not by their periods */
};

/*
 * Each filter is a comma-separated list, one of which must be equal; NULL: all. As in perf report,
 * `dso` (short name or path) and `symbol` look at the function where the sample was taken, not at
 * its callers; "[libz.so.1]" is what has no symbol there. Texts are borrowed for the call.
 */
struct tally_query_opts {
	uint32_t size, flags; /* enum tally_query_flags */
	const char *comm, *dso, *symbol;
	const char *pid, *tid;
	const char *event; /* its name, maybe without modifiers; NULL: the first that has samples */
	const char *
		sort; /* of: comm, dso, symbol, pid, tid, srcline (with TALLY_LOADER_LINES); NULL: "comm,dso,symbol" */
	double percent_limit; /* leave out lines below this share of the total */
};

/* ---- outputs ---- */

/*
 * Errors of all: -EINVAL with the bad filter or sort key; -ENOENT when no event has that name;
 * -ENODATA when no sample passes the filters; -EOVERFLOW when the periods sum up to more than 64
 * bits hold; -EIO when `to` does not take it; -ENOMEM. Names from the recorded system are made
 * harmless for the format: printable, valid UTF-8, escaped.
 */

enum tally_text_flags {
	TALLY_TEXT_NO_CHILDREN = 1u << 0, /* what was sampled in a function alone, sorted by it */
	TALLY_TEXT_NO_GRAPH = 1u << 1,    /* the table alone */
	TALLY_TEXT_CALLER = 1u << 2,      /* call graphs lead from callers down to callees ... */
	TALLY_TEXT_CALLEE = 1u << 3,      /* ... or up; neither: CALLEE only without children */
	TALLY_TEXT_COLOR = 1u << 4,       /* ANSI colours */
	TALLY_TEXT_SAMPLES = 1u << 5,     /* a column with the number of samples */
	TALLY_TEXT_NO_HEADER = 1u << 6,   /* no lines that begin with # */
};

struct tally_text_opts {
	uint32_t size, flags; /* enum tally_text_flags */
	uint32_t width;       /* columns; 0: no limit */
	uint32_t lines;       /* rows of the table at most; 0: all */
	double graph_limit;   /* branches below this percentage are left out; 0: 0.5 as perf */
};

/*
 * A table sorted by weight, with the call graph below each line, as perf report --stdio prints it.
 * Percentages are of all samples of the event, whatever the filters (perf's --percentage absolute);
 * a function counts once a sample in the column Children, however often it recurses. What has no
 * symbol is shown by its address in the module, also as perf does.
 * Since: 0.1
 */
TALLY_API int tally_report_text(const struct tally_profile *profile,
				const struct tally_query_opts *query,
				const struct tally_text_opts *opts, FILE *to,
				struct tally_error *err);

/*
 * One line a stack, as flamegraph.pl and its kin read it: comm;outermost;...;leaf weight. Blanks
 * become _, ; becomes :, kernel frames end in _[k]. Sorted by name. Since: 0.1
 */
TALLY_API int tally_report_folded(const struct tally_profile *profile,
				  const struct tally_query_opts *query, FILE *to,
				  struct tally_error *err);

struct tally_flame_opts {
	uint32_t size, flags;
	const char *title;    /* NULL: "Flame Graph" */
	const char *subtitle; /* NULL: none */
	uint32_t width;       /* pixels; 0: as wide as the window, 1200 where no script runs */
	uint32_t reserved;
	double min_width; /* narrower frames are left out, pixels of 1200; 0: 0.1 */
};

/*
 * A flame graph as one SVG file that needs nothing else. Percentages are of what passes the
 * filters. Frames of one module without a symbol that stand upon each other are one. Since: 0.1
 */
TALLY_API int tally_report_flame(const struct tally_profile *profile,
				 const struct tally_query_opts *query,
				 const struct tally_flame_opts *opts, FILE *to,
				 struct tally_error *err);

TALLY_END_DECLS

#endif
