/* SPDX-License-Identifier: MIT */
/* Options by table: getopt_long(3) does the scanning. */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
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
	printf("Usage: tally %s%s%s\n\n%s\n\nOptions:\n", args->command, *args->synopsis ? " " : "",
	       args->synopsis, args->description);
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

/* What became of a value. */
enum verdict {
	TAKEN,
	WRONG,
	TOO_BIG
};

static enum verdict read_number(const char *text, uint64_t *out, const char **rest)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return WRONG;
	errno = 0;
	*out = strtoull(text, &end, 0);
	*rest = end;
	return errno == ERANGE ? TOO_BIG : TAKEN;
}

static enum verdict read_whole(const char *text, uint64_t least, uint64_t *out)
{
	const char *rest = text;
	uint64_t number = 0;
	enum verdict verdict = read_number(text, &number, &rest);

	if (*rest || (verdict == TAKEN && number < least))
		return WRONG;
	if (verdict == TAKEN)
		*out = number;
	return verdict;
}

static enum verdict read_signed(const char *text, int64_t *out)
{
	bool negative = *text == '-';
	uint64_t number = 0;
	enum verdict verdict = read_whole(text + negative, 0, &number);

	if (verdict == TAKEN && number > INT64_MAX)
		return TOO_BIG;
	if (verdict == TAKEN)
		*out = negative ? -(int64_t)number : (int64_t)number;
	return verdict;
}

static enum verdict read_size(const char *text, uint64_t *out)
{
	static const char units[] = "BKMG";
	const char *rest;
	enum verdict verdict = read_number(text, out, &rest);

	if (verdict == WRONG || !*rest)
		return verdict;
	const char *unit = strchr(units, toupper((unsigned char)*rest));
	if (!unit || rest[1])
		return WRONG;
	unsigned shift = 10 * (unsigned)(unit - units);
	if (verdict == TOO_BIG || *out > UINT64_MAX >> shift)
		return TOO_BIG;
	*out <<= shift;
	return TAKEN;
}

static enum verdict read_double(const char *text, double low, double high, double *out)
{
	char *end;
	double v = strtod(text, &end); /* HUGE_VAL or 0 beyond the range of a double */

	if (end == text || *end || !(v >= low))
		return WRONG;
	if (v > high)
		return TOO_BIG;
	*out = v;
	return TAKEN;
}

static enum verdict add_text(struct texts *list, const char *value)
{
	if (list->count == sizeof(list->at) / sizeof(*list->at))
		return TOO_BIG;
	list->after[list->count] = list->behind ? list->behind->count : 0;
	list->at[list->count++] = value;
	return TAKEN;
}

static enum verdict store(const struct arg *arg, const char *value, bool negated)
{
	switch (arg->kind) {
	case ARG_FLAG:
		*(bool *)arg->to = !negated;
		return TAKEN;
	case ARG_LEVEL:
		++*(unsigned *)arg->to;
		return TAKEN;
	case ARG_TEXT:
	case ARG_MAYBE_TEXT:
	case ARG_JOINED_TEXT:
		*(const char **)arg->to = value ? value : "";
		return TAKEN;
	case ARG_TEXTS:
		return add_text(arg->to, value);
	case ARG_U64:
		return read_whole(value, 0, arg->to);
	case ARG_I64:
		return read_signed(value, arg->to);
	case ARG_COUNT:
		return read_whole(value, 1, arg->to);
	case ARG_SIZE:
		return read_size(value, arg->to);
	case ARG_SECONDS:
		return read_double(value, 1e-9, 1e9, arg->to);
	case ARG_PERCENT:
		return read_double(value, 0, 100, arg->to);
	}
	return WRONG;
}

/* What a value has to be, and the most that it may be. */
static const struct {
	const char *what, *most;
} expected[] = {
	[ARG_U64] = { "a whole number from 0 on", "18446744073709551615" },
	[ARG_I64] = { "a whole number", "9223372036854775807" },
	[ARG_COUNT] = { "a whole number above 0", "18446744073709551615" },
	[ARG_SIZE] = { "a number of bytes, as 512K or 8M", "18446744073709551615 bytes" },
	[ARG_SECONDS] = { "a number of seconds, 0.000000001 at least", "1000000000 seconds" },
	[ARG_PERCENT] = { "a percentage from 0 to 100", "100" },
};

static void refuse(const struct args *args, const struct arg *arg, const char *value,
		   enum verdict verdict)
{
	char name[64];

	if (arg->name)
		snprintf(name, sizeof(name), "--%s", arg->name);
	else
		snprintf(name, sizeof(name), "-%c", arg->letter);
	if (arg->kind == ARG_TEXTS)
		complain(args->command, "%s may be given %zu times, not more", name,
			 sizeof(((struct texts *)0)->at) / sizeof(char *));
	else if (verdict == TOO_BIG)
		complain(args->command, "%s: '%s' is too big: it may be %s at most", name, value,
			 expected[arg->kind].most);
	else
		complain(args->command, "%s: '%s' is not %s", name, value,
			 expected[arg->kind].what);
}

/* The table as getopt_long wants it. */
struct scan {
	struct option longs[2 * MAX_ARGS + 2];
	char shorts[3 * MAX_ARGS + 4], negatives[MAX_ARGS][40];
	size_t n, s;
};

/* The opposite of "no-inherit" is "inherit". */
static const char *negate(char *to, size_t size, const char *name)
{
	if (!strncmp(name, "no-", 3))
		snprintf(to, size, "%s", name + 3);
	else
		snprintf(to, size, "no-%s", name);
	return to;
}

static void add_option(struct scan *scan, const struct arg *a, int i)
{
	bool bare = a->kind == ARG_FLAG || a->kind == ARG_LEVEL;
	bool maybe = a->kind == ARG_MAYBE_TEXT || a->kind == ARG_JOINED_TEXT;
	int value = bare ? no_argument : maybe ? optional_argument : required_argument;

	if (a->letter) {
		scan->shorts[scan->s++] = a->letter;
		for (int colons = value; colons > 0; colons--)
			scan->shorts[scan->s++] = ':';
	}
	if (!a->name)
		return;
	scan->longs[scan->n++] = (struct option){ a->name, value, NULL, LONG_BASE + 2 * i };
	if (a->kind == ARG_FLAG)
		scan->longs[scan->n++] = (struct option){
			negate(scan->negatives[i], sizeof(scan->negatives[i]), a->name),
			no_argument, NULL, LONG_BASE + 2 * i + 1
		};
}

static void scan_init(struct scan *scan, const struct args *args, bool mixed)
{
	*scan = (struct scan){ 0 };
	if (!mixed)
		scan->shorts[scan->s++] = '+';
	scan->shorts[scan->s++] = ':';
	scan->shorts[scan->s++] = 'h';
	for (int i = 0; !at_end(&args->table[i]) && i < MAX_ARGS; i++)
		add_option(scan, &args->table[i], i);
	scan->longs[scan->n] = (struct option){ "help", no_argument, NULL, 'h' };
}

/* What getopt_long answers '?' or ':' to. It names letters in optopt, and long names not at all. */
static void refuse_option(const struct args *args, int opt, const char *word)
{
	const char letter[] = { '-', (char)optopt, '\0' };
	bool is_letter = optopt > 0 && optopt < LONG_BASE && strncmp(word, "--", 2) != 0;

	complain(args->command,
		 opt == ':'             ? "option '%s' needs a value"
		 : optopt && !is_letter ? "option '%s' takes no value"
					: "there is no option '%s'",
		 is_letter ? letter : word);
	hint("'tally %s -h' lists the options", args->command);
}

static const struct arg *find(const struct args *args, int opt, bool *negated)
{
	*negated = false;
	if (opt >= LONG_BASE) {
		*negated = (opt - LONG_BASE) & 1;
		return &args->table[(opt - LONG_BASE) / 2];
	}
	const struct arg *a = args->table;
	while (a->letter != opt)
		a++;
	return a;
}

/* A value that may be missing is, for getopt, only ever part of the same word. */
static const char *next_value(int argc, char **argv)
{
	return optind < argc && argv[optind][0] != '-' ? argv[optind++] : NULL;
}

static int parse(const struct args *args, int argc, char **argv, bool mixed)
{
	struct scan scan;
	int opt;

	scan_init(&scan, args, mixed);
	optind = 0;
	opterr = 0;
	while ((opt = getopt_long(argc, argv, scan.shorts, scan.longs, NULL)) != -1) {
		bool negated;
		if (opt == 'h') {
			print_help(args);
			return -1;
		}
		if (opt == '?' || opt == ':') {
			refuse_option(args, opt, argv[optind - 1]);
			return -2;
		}
		const struct arg *a = find(args, opt, &negated);
		const char *value = optarg;
		if (!value && a->kind == ARG_MAYBE_TEXT)
			value = next_value(argc, argv);
		enum verdict verdict = store(a, value, negated);
		if (verdict != TAKEN) {
			refuse(args, a, value, verdict);
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
