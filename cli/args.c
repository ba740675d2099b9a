/* SPDX-License-Identifier: MIT */
/* Options by table: getopt_long(3) does the scanning. */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "command.h"
#include "term.h"

#define MAX_ARGS 64
#define LONG_BASE \
	256 /* getopt's value of the i-th entry's long name is LONG_BASE + 2 i (+ 1: "no-") */

static bool at_end(const struct arg *arg)
{
	return !arg->letter && !arg->name;
}

static void print_help(const struct args *args)
{
	printf("Usage: tally %s %s\n\n%s\n\nOptions:\n", args->command, args->synopsis,
	       args->description);
	for (const struct arg *a = args->table; !at_end(a); a++) {
		char left[64], letter[4] = "  ";

		if (a->letter)
			snprintf(letter, sizeof(letter), "-%c", a->letter);
		snprintf(left, sizeof(left), "%s%s%s%s%s%s", letter,
			 a->letter && a->name ? ", " : "  ", a->name ? "--" : "",
			 a->name ? a->name : "", a->value ? " " : "", a->value ? a->value : "");
		printf("  %-28s%s%s\n", left,
		       strlen(left) > 27 ? "\n                              " : "", a->help);
	}
	printf("  %-28s%s\n", "-h, --help", "this text");
	if (args->examples)
		printf("\nExamples:\n%s", args->examples);
}

static bool read_number(const char *text, uint64_t *out, const char **rest)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*out = strtoull(text, &end, 0);
	*rest = end;
	return !errno;
}

static bool read_size(const char *text, uint64_t *out)
{
	static const char units[] = "BKMG";
	const char *rest;

	if (!read_number(text, out, &rest))
		return false;
	if (!*rest)
		return true;
	const char *unit = strchr(units, toupper((unsigned char)*rest));
	if (!unit || rest[1])
		return false;
	unsigned shift = 10 * (unsigned)(unit - units);
	if (*out > UINT64_MAX >> shift)
		return false;
	*out <<= shift;
	return true;
}

static bool read_double(const char *text, double low, double high, double *out)
{
	char *end;

	errno = 0;
	double v = strtod(text, &end);
	if (end == text || *end || errno || !isfinite(v) || v < low || v > high)
		return false;
	*out = v;
	return true;
}

static bool add_text(struct texts *list, const char *value)
{
	if (list->count == sizeof(list->at) / sizeof(*list->at))
		return false;
	list->at[list->count++] = value;
	return true;
}

static bool store(const struct arg *arg, const char *value, bool negated)
{
	const char *rest;

	switch (arg->kind) {
	case ARG_FLAG:
		*(bool *)arg->to = !negated;
		return true;
	case ARG_TEXT:
		*(const char **)arg->to = value;
		return true;
	case ARG_TEXTS:
		return add_text(arg->to, value);
	case ARG_U64:
		return read_number(value, arg->to, &rest) && !*rest;
	case ARG_SIZE:
		return read_size(value, arg->to);
	case ARG_SECONDS:
		return read_double(value, 1e-9, 1e9, arg->to);
	case ARG_PERCENT:
		return read_double(value, 0, 100, arg->to);
	}
	return false;
}

static const char *expected(enum arg_kind kind)
{
	switch (kind) {
	case ARG_U64:
		return "a whole number";
	case ARG_SIZE:
		return "a number of bytes, as 512K or 8M";
	case ARG_SECONDS:
		return "a number of seconds above 0";
	case ARG_PERCENT:
		return "a percentage from 0 to 100";
	case ARG_TEXTS:
		return "one of at most 64 values";
	default:
		return "a value";
	}
}

static const struct arg *find(const struct args *args, int opt, bool *negated)
{
	*negated = false;
	if (opt >= LONG_BASE) {
		*negated = (opt - LONG_BASE) & 1;
		return &args->table[(opt - LONG_BASE) / 2];
	}
	for (const struct arg *a = args->table; !at_end(a); a++)
		if (a->letter == opt)
			return a;
	return NULL;
}

static int parse(const struct args *args, int argc, char **argv, bool mixed)
{
	struct option longs[2 * MAX_ARGS + 2] = { 0 };
	char shorts[2 * MAX_ARGS + 4], negatives[MAX_ARGS][40];
	size_t n = 0, s = 0;

	if (!mixed)
		shorts[s++] = '+';
	shorts[s++] = ':';
	shorts[s++] = 'h';
	for (int i = 0; !at_end(&args->table[i]) && i < MAX_ARGS; i++) {
		const struct arg *a = &args->table[i];
		bool flag = a->kind == ARG_FLAG;
		if (a->letter) {
			shorts[s++] = a->letter;
			if (!flag)
				shorts[s++] = ':';
		}
		if (!a->name)
			continue;
		longs[n++] = (struct option){ a->name, !flag, NULL, LONG_BASE + 2 * i };
		if (flag) {
			/* The opposite of "no-inherit" is "inherit". */
			if (!strncmp(a->name, "no-", 3))
				snprintf(negatives[i], sizeof(negatives[i]), "%s", a->name + 3);
			else
				snprintf(negatives[i], sizeof(negatives[i]), "no-%s", a->name);
			longs[n++] = (struct option){ negatives[i], 0, NULL,
						      LONG_BASE + 2 * i + 1 };
		}
	}
	shorts[s] = '\0';
	longs[n] = (struct option){ "help", 0, NULL, 'h' };

	optind = 0;
	opterr = 0;
	int opt;
	while ((opt = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		bool negated;
		if (opt == 'h') {
			print_help(args);
			return -1;
		}
		const char *given = argv[optind - 1];
		if (opt == '?' || opt == ':') {
			complain(args->command,
				 opt == ':' ? "option '%s' needs a value"
					    : "there is no option '%s'",
				 given);
			hint("'tally %s -h' lists the options", args->command);
			return -2;
		}
		const struct arg *a = find(args, opt, &negated);
		if (!a || !store(a, optarg, negated)) {
			complain(args->command, "%s%s%c: '%s' is not %s", a && a->name ? "--" : "-",
				 a && a->name ? a->name : "", a && !a->name ? a->letter : ' ',
				 optarg ? optarg : "", a ? expected(a->kind) : "an option");
			return -2;
		}
	}
	return optind;
}

int args_parse(const struct args *args, int argc, char **argv)
{
	return parse(args, argc, argv, false);
}

int args_parse_all(const struct args *args, int argc, char **argv)
{
	return parse(args, argc, argv, true);
}

int args_status(int index)
{
	return index == -1 ? EXIT_DONE : EXIT_USAGE;
}
