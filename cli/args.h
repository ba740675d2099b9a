/* SPDX-License-Identifier: MIT */
/*
 * A command's options as one table, from which both parsing and -h are made. Letters are perf(1)'s,
 * with perf's meaning for that command and no other; what perf has not is a long option.
 */
#ifndef CLI_ARGS_H
#define CLI_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum arg_kind {
	ARG_FLAG,        /* bool *: set; cleared by the name with "no-" put before or taken away */
	ARG_LEVEL,       /* unsigned *: one more each time it is given */
	ARG_TEXT,        /* const char ** */
	ARG_MAYBE_TEXT,  /* as ARG_TEXT; without a value, or before a word with '-', it is "" */
	ARG_JOINED_TEXT, /* likewise, but a value is only ever part of the same word */
	ARG_TEXTS,       /* struct texts *: may be given several times */
	ARG_U64,         /* uint64_t *: a whole number */
	ARG_I64,         /* int64_t *: a whole number, maybe with a '-' */
	ARG_COUNT,       /* uint64_t *: a whole number above 0 */
	ARG_SIZE,        /* uint64_t *: a number with B, K, M or G behind it */
	ARG_SECONDS,     /* double *: a number of seconds, from 1e-9 to 1e9 */
	ARG_PERCENT,     /* double *: 0 to 100 */
};

struct texts {
	const char *at[64];
	unsigned count;
	const struct texts *behind; /* NULL, or another option's texts ... */
	unsigned after[64];         /* ... of which there were so many when at[i] was given */
};

struct arg {
	char letter;       /* 0: none */
	const char *name;  /* long name; NULL: none */
	const char *value; /* what stands for the value in the help; NULL for flags */
	const char *help;
	enum arg_kind kind;
	void *to;
};

struct args {
	const char *command;     /* "stat" */
	const char *synopsis;    /* "[OPTIONS] -- CMD [ARG...]" */
	const char *description; /* a sentence or two */
	const char *examples;    /* lines, or NULL */
	const struct arg *table; /* ends with an entry without letter and name */
};

/*
 * Parses options up to the first word that is none, or up to "--", which is skipped. Answers the
 * index of the first word left (argc: none); -1 after -h, whose help went to stdout; -2 after an
 * error, which was printed with a hint.
 */
int args_parse(const struct args *args, int argc, char **argv);

/* As args_parse, but words and options may be mixed; words move to the end of argv, in order. */
int args_parse_all(const struct args *args, int argc, char **argv);

/* What a command answers for such an index: the exit status for -1 and -2. */
int args_status(int index);

#endif
