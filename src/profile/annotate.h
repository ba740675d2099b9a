/* SPDX-License-Identifier: MIT */
/* A function taken apart: what its parts share. */
#ifndef PROFILE_ANNOTATE_H
#define PROFILE_ANNOTATE_H

#include <tally/annotate.h>

#include "base/vec.h"
#include "image/texts.h"

/* A file of the source. */
struct source_file {
	const char *path; /* as the compiler was told; interned, so that equal ones are the same */
	uint64_t weight;
	bool is_own;             /* the function stands in it, not only what was inlined */
	char *text;              /* NULL: it is not here */
	VEC(const char *) lines; /* of the text, each ended, without its end of line */
	bool is_newer;           /* than the program */
};

struct tally_annotation {
	struct texts texts;
	const char *function, *module, *path, *event, *unit;
	uint64_t samples, weight, total;
	VEC(const char *) notes;
	VEC(struct tally_annotation_instruction) instructions;
	VEC(struct tally_annotation_line) lines;
	VEC(struct source_file) files; /* in the order of the lines */
};

/* Says what is missing. -ENOMEM. */
TALLY_PRINTF(2, 3) int annotate_note(struct tally_annotation *a, const char *fmt, ...);

/*
 * Makes lines of the instructions, with their texts from the files below `source` (NULL: none) and
 * where they were compiled. `mtime`: of the program. -ENOMEM.
 */
int annotate_lines(struct tally_annotation *a, const char *own_file, const char *source,
		   int64_t mtime);
void annotate_files_done(struct tally_annotation *a);

/* A share of the function's weight in percent. */
static inline double annotate_share(const struct tally_annotation *a, uint64_t weight)
{
	return a->weight ? 100.0 * (double)weight / (double)a->weight : 0;
}

/* The name of a file without its folders. */
static inline const char *annotate_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

#endif
