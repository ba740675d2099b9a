/* SPDX-License-Identifier: MIT */
/* tally doctor: what this user can do on this machine, and the commands that mend the rest. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <tally/profiling.h>

#include "args.h"
#include "command.h"
#include "json.h"
#include "term.h"

#define INDENT      "                            "
#define USUAL_WIDTH 80
#define NARROWEST   50
#define WIDEST      110
#define RED         "\033[31m"
#define GREEN       "\033[32m"
#define YELLOW      "\033[33m"
#define BOLD        "\033[1m"
#define PLAIN       "\033[0m"

static const struct mark {
	const char *word, *color;
} marks[] = {
	[TALLY_FINDING_OK] = { "ok", GREEN },
	[TALLY_FINDING_LIMITED] = { "limited", YELLOW },
	[TALLY_FINDING_FAILS] = { "fails", RED },
	[TALLY_FINDING_UNKNOWN] = { "unknown", YELLOW },
};

/* Without these neither `stat` nor `record -p` of an own process works. */
static const char *const needed[] = { "perf-events", "count", "sample" };

struct doctor_run {
	bool json, verbose, colors;
	unsigned width;
	unsigned count[sizeof(marks) / sizeof(*marks)];
	unsigned mends;
	unsigned missing; /* of those that are needed */
};

static void print_json(const struct tally_finding *finding)
{
	fputs("{\"check\": ", stdout);
	json_text(stdout, finding->name);
	fputs(", \"state\": ", stdout);
	json_text(stdout, marks[finding->state].word);
	fputs(", \"value\": ", stdout);
	json_text(stdout, finding->value);
	fputs(", \"meaning\": ", stdout);
	json_text(stdout, finding->meaning);
	fputs(", \"mend\": ", stdout);
	json_text(stdout, finding->mend);
	fputs("}\n", stdout);
}

/* Breaks lines at spaces; a word longer than a line stays whole. */
static void print_wrapped(const char *text, unsigned width)
{
	size_t room = width - strlen(INDENT);

	while (*text) {
		size_t len = strlen(text), cut = len;
		if (len > room) {
			for (cut = room; cut > 0 && text[cut] != ' '; cut--)
				;
			if (cut == 0)
				cut = strcspn(text, " ");
		}
		printf("%s%.*s\n", INDENT, (int)cut, text);
		text += cut;
		text += strspn(text, " ");
	}
}

static void print_finding(const struct doctor_run *run, const struct tally_finding *finding)
{
	const struct mark *mark = &marks[finding->state];

	printf("%s%-8s%s %-18s %s\n", run->colors ? mark->color : "", mark->word,
	       run->colors ? PLAIN : "", finding->name, finding->value);
	if (finding->state != TALLY_FINDING_OK || run->verbose)
		print_wrapped(finding->meaning, run->width);
	/* Whole, however long: it is there to be copied. */
	if (finding->mend)
		printf("%s%s-> %s%s\n", INDENT, run->colors ? BOLD : "", finding->mend,
		       run->colors ? PLAIN : "");
}

static int take_finding(const struct tally_finding *finding, void *arg)
{
	struct doctor_run *run = arg;
	bool works = finding->state == TALLY_FINDING_OK || finding->state == TALLY_FINDING_LIMITED;

	run->count[finding->state]++;
	run->mends += finding->mend != NULL;
	for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++)
		run->missing += !works && !strcmp(finding->name, needed[i]);
	if (run->json)
		print_json(finding);
	else
		print_finding(run, finding);
	return 0;
}

static void print_summary(const struct doctor_run *run)
{
	printf("\n%u ok, %u limited, %u failing, %u unknown: tally %s count and profile programs of "
	       "this user.\n",
	       run->count[TALLY_FINDING_OK], run->count[TALLY_FINDING_LIMITED],
	       run->count[TALLY_FINDING_FAILS], run->count[TALLY_FINDING_UNKNOWN],
	       run->missing ? "cannot" : "can");
	if (run->mends && geteuid() != 0)
		puts("The commands behind -> are for root.");
}

static unsigned usable_width(void)
{
	unsigned width = term_width(stdout);

	if (!width)
		return USUAL_WIDTH;
	return width < NARROWEST ? NARROWEST : width > WIDEST ? WIDEST : width;
}

static int run(int argc, char **argv)
{
	struct doctor_run doctor = { 0 };
	const struct arg table[] = {
		{ 'v', "verbose", NULL, "say what follows from what works, too", ARG_FLAG,
		  &doctor.verbose },
		{ 0, "json", NULL, "one object a line: check, state, value, meaning, mend",
		  ARG_FLAG, &doctor.json },
		{ 0 },
	};
	const struct args args = {
		.command = "doctor",
		.synopsis = "[OPTIONS]",
		.description =
			"Tries out what this user can do on this kernel and machine, and gives "
			"the command\nthat mends what does not work. Changes nothing. The exit "
			"status is 0 when programs of\nthis user can be counted and profiled.",
		.table = table,
	};
	struct tally_error err;

	int at = args_parse(&args, argc, argv);
	if (at < 0)
		return args_status(at);
	if (at < argc) {
		complain("doctor", "there is nothing to do with '%s'", argv[at]);
		hint("'tally doctor -h' lists the options");
		return EXIT_USAGE;
	}
	doctor.colors = term_colors(stdout);
	doctor.width = usable_width();
	if (tally_doctor_run(NULL, take_finding, &doctor, &err) < 0) {
		complain("doctor", "%s", err.text);
		return EXIT_FAILED;
	}
	if (!doctor.json)
		print_summary(&doctor);
	return doctor.missing ? EXIT_FAILED : EXIT_DONE;
}

const struct command cmd_doctor = { "doctor", "what works here, and how to mend the rest", run };
