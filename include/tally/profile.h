/* SPDX-License-Identifier: MIT */
/*
 * tally_profile: many samples, folded into a call tree with everything interned once.
 *
 * A profile is plain data: events, threads, modules, functions, locations, a tree of stacks, and
 *rows (event, thread, stack) with the number of samples and the sum of their periods. Every output
 *is a walk over it.
 *
 *	tally_profile_new(&profile, &err);
 *	tally_profile_load_file(profile, "perf.data", NULL, &health, &err);
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

TALLY_BEGIN_DECLS

struct tally_profile;

/* Errors: -ENOMEM. Since: 0.1 */
TALLY_API int tally_profile_new(struct tally_profile **out, struct tally_error *err);
/* NULL is fine. Since: 0.1 */
TALLY_API void tally_profile_free(struct tally_profile *profile);

/* ---- filling it by hand: what a loader does, and what a program with its own samples can do ----
 */

/* All return an index (equal content, equal index) or -ENOMEM. Texts are copied. Since: 0.1 */
TALLY_API int tally_profile_event(struct tally_profile *p, const char *name, const char *unit);
TALLY_API int tally_profile_thread(struct tally_profile *p, int32_t pid, int32_t tid,
				   const char *comm);
TALLY_API int tally_profile_module(struct tally_profile *p, const char *name, const char *path,
				   const uint8_t *build_id, uint32_t build_id_len);
/* `name` NULL: an address without a symbol. `mode` is enum tally_mode. */
TALLY_API int tally_profile_function(struct tally_profile *p, int module, const char *name,
				     uint32_t mode);
TALLY_API int tally_profile_location(struct tally_profile *p, int function, uint64_t address);
/* The stack of `location` called by `parent` (-1: nobody). */
TALLY_API int tally_profile_stack(struct tally_profile *p, int parent, int location);

/* Counts samples with their summed period. Errors: -ENOMEM, -EINVAL. Since: 0.1 */
TALLY_API int tally_profile_add(struct tally_profile *p, int event, int thread, int stack,
				uint64_t samples, uint64_t weight);

/* ---- what is in it ---- */

struct tally_profile_function_info {
	const char *name;   /* NULL: no symbol */
	const char *module; /* short */
	const char *path;
	uint32_t mode; /* enum tally_mode */
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

/* Counts, and elements by index; -EINVAL (NULL for texts) beyond the end. Borrowed. Since: 0.1 */
TALLY_API uint32_t tally_profile_events(const struct tally_profile *p);
TALLY_API const char *tally_profile_event_name(const struct tally_profile *p, uint32_t event);
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
TALLY_API uint32_t tally_profile_rows(const struct tally_profile *p);
TALLY_API int tally_profile_row(const struct tally_profile *p, uint32_t row,
				struct tally_profile_row *out);

/* ---- loading records ---- */

struct tally_loader;

struct tally_loader_opts {
	uint32_t size, flags;
	/* Samples outside [from, to) are left out; 0: open end. ns of the recording's clock. */
	uint64_t from, to;
};

/* How good the data is. */
struct tally_load_health {
	uint64_t samples;       /* counted into the profile */
	uint64_t filtered;      /* left out by `from` and `to` */
	uint64_t with_chain;    /* samples whose stack has a user part by callchain */
	uint64_t broken_chains; /* of these, those that do not reach a known start of the thread */
	uint64_t unknown_frames, frames; /* frames without a symbol, and all */
	uint64_t lost;                   /* by LOST and LOST_SAMPLES records */
	uint64_t undecodable;            /* records that contradict their layout */
	uint64_t first, last;            /* times of the first and the last sample */
};

/*
 * Pushing records: side-band (MMAP2, COMM, FORK, EXIT) may come before or after the samples that
 * need it only if it is pushed first; tally_profile_load_file therefore reads a file twice. The
 * loader borrows profile, maps and symbolizer. Errors: -ENOMEM. Since: 0.1
 */
TALLY_API int tally_loader_new(struct tally_loader **out, struct tally_profile *profile,
			       struct tally_maps *maps, struct tally_symbolizer *symbolizer,
			       const struct tally_loader_opts *opts, struct tally_error *err);
/* Takes one record, already decoded, of the profile's event number `event`. Other types than
 * side-band, samples and loss are ignored. Errors: -ENOMEM. Since: 0.1 */
TALLY_API int tally_loader_push(struct tally_loader *loader, const struct tally_record *record,
				int event);
TALLY_API void tally_loader_health(const struct tally_loader *loader,
				   struct tally_load_health *out);
TALLY_API void tally_loader_free(struct tally_loader *loader);

struct tally_load_opts {
	uint32_t size, flags;
	uint64_t from,
		to; /* as in struct tally_loader_opts, but counted from the first sample when */
	uint32_t relative;         /* this is not 0 */
	uint32_t symbolizer_flags; /* enum tally_symbolizer_flags */
	const char *root, *symfs;  /* as in struct tally_symbolizer_opts. Borrowed. */
	/* A module that could not be named, told once each when loading is done. May be NULL. */
	void (*trouble)(const struct tally_module_info *module, void *arg);
	void *arg;
};

/*
 * Loads a perf.data file. What is wrong with the file without keeping it from being read goes to
 * health_text (cut to its size, "" when nothing; may be NULL).
 * Errors: of tally_reader_open and tally_reader_next; what stood before a corrupt record is in the
 * profile all the same. Since: 0.1
 */
TALLY_API int tally_profile_load_file(struct tally_profile *profile, const char *path,
				      const struct tally_load_opts *opts,
				      struct tally_load_health *health, char *health_text,
				      size_t health_text_size, struct tally_error *err);

/* ---- asking: filters and sort keys, shared by all outputs ---- */

enum tally_query_flags {
	TALLY_QUERY_BY_SAMPLES = 1u
				 << 0, /* weight is the number of samples, not the sum of periods */
};

struct tally_query_opts {
	uint32_t size, flags; /* enum tally_query_flags */
	/* Each is a comma-separated list of names, one of which must match; NULL: all. Borrowed. */
	const char *comm, *dso,
		*symbol; /* the leaf's module and function, as perf report filters */
	const char *pid, *tid;
	const char *event;    /* NULL: the first event that has samples */
	const char *sort;     /* of: comm, dso, symbol, pid, tid; NULL: "comm,dso,symbol" */
	double percent_limit; /* leave out lines below this share of the total */
};

/* ---- outputs ---- */

enum tally_text_flags {
	TALLY_TEXT_NO_CHILDREN = 1u << 0, /* sort by self, do not add up callees */
	TALLY_TEXT_NO_GRAPH = 1u << 1,    /* the table alone */
	TALLY_TEXT_CALLERS =
		1u << 2, /* call graph from the outermost caller down (default: callee up) */
	TALLY_TEXT_COLOR = 1u << 3, /* ANSI colours */
};

struct tally_text_opts {
	uint32_t size, flags;
	uint32_t width;     /* columns; 0: no limit */
	uint32_t lines;     /* rows of the table at most; 0: all */
	double graph_limit; /* call graph branches below this percentage are left out; 0: 0.5 as
			       perf */
};

/* The sorted table, then the call graph below each line. Errors: -EINVAL with the bad sort key or
 * filter; -ENOENT when no event has that name; -EIO; -ENOMEM. Since: 0.1 */
TALLY_API int tally_report_text(const struct tally_profile *profile,
				const struct tally_query_opts *query,
				const struct tally_text_opts *opts, FILE *to,
				struct tally_error *err);

/* One line a stack: comm;outermost;...;leaf weight. Blanks in names become _, ; becomes :, kernel
 * frames end in _[k]. Since: 0.1 */
TALLY_API int tally_report_folded(const struct tally_profile *profile,
				  const struct tally_query_opts *query, FILE *to,
				  struct tally_error *err);

struct tally_flame_opts {
	uint32_t size, flags;
	const char *title;    /* NULL: "Flame Graph" */
	const char *subtitle; /* NULL: none */
	uint32_t width;       /* pixels; 0: 1200 */
	uint32_t reserved;
	double min_width; /* narrower frames are left out, pixels; 0: 0.1 */
};

/* A flame graph as one SVG file that needs nothing else. Since: 0.1 */
TALLY_API int tally_report_flame(const struct tally_profile *profile,
				 const struct tally_query_opts *query,
				 const struct tally_flame_opts *opts, FILE *to,
				 struct tally_error *err);

TALLY_END_DECLS

#endif
