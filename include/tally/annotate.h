/* SPDX-License-Identifier: MIT */
/*
 * tally_annotation: a function of a recording, line by line and instruction by instruction, with its
 * share of the samples.
 *
 *	const struct tally_annotate_opts opts = { .size = sizeof(opts), .symbol = "main" };
 *	tally_annotation_new(&annotation, "perf.data", &opts, &err);
 *	tally_annotation_text(annotation, NULL, stdout, &err);
 *	tally_annotation_free(annotation);
 *
 * The program's file must be here, with debugging information for lines (in itself or beside it), its
 * source for their texts, and Zydis (libZydis.so.4.x, x86 alone) for instructions; what is missing is
 * said in the notes, and the rest is shown.
 */
#ifndef TALLY_ANNOTATE_H
#define TALLY_ANNOTATE_H

#include <stdio.h>
#include <tally/api.h>
#include <tally/error.h>
#include <tally/profile.h>

TALLY_BEGIN_DECLS

struct tally_annotation;

enum tally_annotate_flags {
	TALLY_ANNOTATE_INTEL =
		1u << 0, /* Intel's syntax of instructions; else AT&T's, as perf(1) */
};

/* All are borrowed for the call. */
struct tally_annotate_opts {
	uint32_t size, flags; /* enum tally_annotate_flags */
	/* As reports call it; of several functions of that name the heaviest. NULL: the heaviest. */
	const char *symbol;
	const char
		*source; /* folder in which files of the source are looked for first; NULL: none */
	const struct tally_load_opts *load;   /* NULL: the defaults; its flags must be 0 */
	const struct tally_query_opts *query; /* which samples; its symbol and sort do not matter */
};

/*
 * Loads a recording and takes apart one function. Errors: those of tally_profile_load_file(), but for
 * a damaged file of which something could be read, which is said in the notes; those of the outputs in
 * tally/profile.h; -ENOENT: no sample was taken in a function of that name. Since: 0.1
 */
TALLY_API int tally_annotation_new(struct tally_annotation **out, const char *path,
				   const struct tally_annotate_opts *opts, struct tally_error *err);
/* NULL is fine. Since: 0.1 */
TALLY_API void tally_annotation_free(struct tally_annotation *annotation);

struct tally_annotation_info {
	const char *function, *module, *path; /* the module's short name, and path as recorded */
	const char *event, *unit;             /* "ns" for clocks, "" for plain counts */
	uint64_t samples, weight;             /* of the function itself, what it called left out */
	uint64_t total;                       /* weight of all samples of the event */
	uint32_t notes;                       /* what is missing, and what to do about it */
	uint32_t reserved;
};

struct tally_annotation_line {
	const char *file; /* as the compiler was told */
	const char *text; /* NULL: the file is not here */
	uint64_t samples, weight;
	uint32_t line;
	uint32_t has_code; /* not 0: instructions of the function are of it */
};

struct tally_annotation_instruction {
	uint64_t address; /* in the module's own numbering */
	const char *
		text; /* NULL: nothing here can read it; such are only there if they have samples */
	const char *file; /* of the innermost function; NULL: unknown */
	uint64_t samples, weight;
	uint32_t line;
	uint32_t length;      /* bytes; 0: unknown */
	const char *function; /* that was inlined there; NULL: it is the function's own */
};

/* Texts are borrowed from the annotation. -EINVAL (NULL for texts) beyond the end. Since: 0.1 */
TALLY_API void tally_annotation_info(const struct tally_annotation *annotation,
				     struct tally_annotation_info *out);
TALLY_API const char *tally_annotation_note(const struct tally_annotation *annotation,
					    uint32_t note);
/* The function's own file first, then others by weight; of a file the lines that have code, and
 * those around and between them. */
TALLY_API uint32_t tally_annotation_lines(const struct tally_annotation *annotation);
TALLY_API int tally_annotation_line(const struct tally_annotation *annotation, uint32_t line,
				    struct tally_annotation_line *out);
/* By address. */
TALLY_API uint32_t tally_annotation_instructions(const struct tally_annotation *annotation);
TALLY_API int tally_annotation_instruction(const struct tally_annotation *annotation,
					   uint32_t instruction,
					   struct tally_annotation_instruction *out);

enum tally_annotation_flags {
	TALLY_ANNOTATION_COLOR = 1u << 0,           /* ANSI colours */
	TALLY_ANNOTATION_ALL = 1u << 1,             /* also long stretches without samples */
	TALLY_ANNOTATION_NO_SOURCE = 1u << 2,       /* instructions alone */
	TALLY_ANNOTATION_NO_INSTRUCTIONS = 1u << 3, /* lines alone */
};

struct tally_annotation_opts {
	uint32_t size, flags; /* enum tally_annotation_flags */
	uint32_t width;       /* columns; longer lines are cut; 0: no limit */
	uint32_t reserved;
};

/*
 * Lines, then instructions, with their shares of the function's weight: as text, and as a page of HTML
 * that needs nothing else, where lines and instructions point to each other. Of `opts` the page takes
 * none. Errors: -EINVAL, -E2BIG; -EIO when `to` does not take it. Since: 0.1
 */
TALLY_API int tally_annotation_text(const struct tally_annotation *annotation,
				    const struct tally_annotation_opts *opts, FILE *to,
				    struct tally_error *err);
TALLY_API int tally_annotation_html(const struct tally_annotation *annotation, FILE *to,
				    struct tally_error *err);

TALLY_END_DECLS

#endif
