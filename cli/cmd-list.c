/* SPDX-License-Identifier: MIT */
/* tally list */
#include <string.h>
#include <tally/tally.h>

#include "args.h"
#include "command.h"
#include "json.h"
#include "term.h"

/* Names and descriptions begin in these columns. */
#define NAME_WIDTH 47

struct listing {
	FILE *to;
	const char *glob;   /* of names; NULL: all */
	const char *tables; /* folder of vendors' event tables; NULL: none */
	int64_t kind;       /* the only one to show; -1: all */
	int64_t last;       /* the kind of the last line */
	unsigned count, missing;
	char why[512];     /* the first of those that are missing */
	bool several_whys; /* another has another reason */
	bool json;
};

/* By enum tally_event_kind: perf's word for it, and the heading. */
static const struct {
	const char *word, *heading;
} kinds[] = {
	[TALLY_EVENT_HARDWARE] = { "hw", "Hardware events" },
	[TALLY_EVENT_SOFTWARE] = { "sw", "Software events" },
	[TALLY_EVENT_CACHE] = { "cache", "Cache events" },
	[TALLY_EVENT_TRACEPOINT] = { "tracepoint", "Tracepoints" },
	[TALLY_EVENT_PMU] = { "pmu", "Events of PMUs" },
	[TALLY_EVENT_VENDOR] = { "vendor", "Events of the CPU's vendor" },
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static void print_json_member(FILE *to, const char *key, const char *text)
{
	fprintf(to, ",\"%s\":", key);
	json_text(to, text);
}

static void print_json(const struct listing *l, const struct tally_event_info *info)
{
	fputs("{\"event\":", l->to);
	json_text(l->to, info->name);
	print_json_member(l->to, "alias", info->alias);
	print_json_member(l->to, "kind", kinds[info->kind].word);
	print_json_member(l->to, "description", info->description);
	print_json_member(l->to, "pmu", info->pmu[0] ? info->pmu : NULL);
	print_json_member(l->to, "unit", info->unit[0] ? info->unit : NULL);
	fprintf(l->to, ",\"openable\":%s", info->openable ? "true" : "false");
	print_json_member(l->to, "why", info->why);
	fputs("}\n", l->to);
}

static void print_line(struct listing *l, const struct tally_event_info *info)
{
	char names[256];

	if (info->kind != l->last)
		fprintf(l->to, "%s%s\n", l->last < 0 ? "" : "\n", kinds[info->kind].heading);
	l->last = info->kind;
	snprintf(names, sizeof(names), "%s%s%s", info->name, info->alias ? " OR " : "",
		 info->alias ? info->alias : "");
	/* Tracepoints have no description, and can be opened where they are listed. */
	if (info->kind == TALLY_EVENT_TRACEPOINT)
		fprintf(l->to, "    %s\n", names);
	else if (!info->description)
		fprintf(l->to, "  %c %s%s%s%s\n", info->openable ? ' ' : '-', names,
			info->unit[0] ? "  (" : "", info->unit, info->unit[0] ? ")" : "");
	else
		fprintf(l->to, "  %c %-*s  %s\n", info->openable ? ' ' : '-', NAME_WIDTH, names,
			info->description);
}

static int show(const struct tally_event_info *info, void *arg)
{
	struct listing *l = arg;

	if (info->kind >= KINDS || (l->kind >= 0 && info->kind != l->kind))
		return 0;
	l->count++;
	l->missing += !info->openable;
	if (info->why && !l->why[0])
		snprintf(l->why, sizeof(l->why), "%s", info->why);
	else if (info->why && strncmp(l->why, info->why, sizeof(l->why) - 1) != 0)
		l->several_whys = true;
	if (l->json)
		print_json(l, info);
	else
		print_line(l, info);
	return ferror(l->to) ? 1 : 0;
}

static int64_t kind_of(const char *word)
{
	for (size_t i = 0; i < KINDS; i++)
		if (!strcmp(word, kinds[i].word))
			return (int64_t)i;
	return -1;
}

/* Why there are no tracepoints, as it is said of each; "" where there are. */
static void without_tracepoints(char *why, size_t size)
{
	struct tally_system system;
	struct tally_events *events;
	struct tally_error err = { 0 };

	*why = '\0';
	tally_system_read(&system, sizeof(system), NULL, NULL);
	if (system.tracefs[0])
		return;
	if (tally_events_parse(&events, "sched:sched_switch", NULL, &err) == 0)
		tally_events_free(events);
	const char *place = strstr(err.text, ": "); /* in the list of events, of one */
	snprintf(why, size, "%s", place ? place + 2 : err.text);
}

/* What the list leaves out or marks, after it. */
static void print_notes(const struct listing *l)
{
	char why[TALLY_ERROR_TEXT];

	if (l->missing)
		fprintf(l->to, "\n- cannot be opened by this user on this machine%s%s.\n",
			l->several_whys ? "; --json says why" : ": ",
			l->several_whys ? "" : l->why);
	without_tracepoints(why, sizeof(why));
	if (*why && (l->kind < 0 || l->kind == TALLY_EVENT_TRACEPOINT))
		fprintf(l->to, "\nTracepoints are left out: %s.\n", why);
}

/* Nothing was listed. */
static int complain_of_nothing(const struct listing *l, const char *word)
{
	bool tracepoint = l->kind == TALLY_EVENT_TRACEPOINT || strchr(word, ':');
	char why[TALLY_ERROR_TEXT] = "";

	if (tracepoint)
		without_tracepoints(why, sizeof(why));
	if (l->kind >= 0)
		complain("list", "there are no events of the kind '%s' here", word);
	else
		complain("list", "there is no event like '%s' here", word);
	if (*why)
		hint("%s", why);
	else
		hint("'tally list' without a pattern shows all");
	return EXIT_FAILED;
}

static int list(struct listing *l)
{
	struct tally_error err;
	FILE *pager = l->json ? NULL : pager_open(true);

	l->to = pager ? pager : stdout;
	int r = tally_event_each(l->glob, TALLY_OPTS(events, .tables = l->tables), show, l, &err);
	if (r >= 0 && !l->json && l->count)
		print_notes(l);
	pager_close(pager);
	if (r < 0) {
		complain("list", "%s", err.text);
		return EXIT_FAILED;
	}
	return EXIT_DONE;
}

static int run(int argc, char **argv)
{
	bool json = false;
	const char *tables = NULL;
	const struct arg table[] = {
		{ 0, "event-tables", "DIR",
		  "with the events of vendors' tables in DIR, in perf's JSON", ARG_TEXT, &tables },
		{ 0, "json", NULL,
		  "one JSON object a line: event, alias, kind, description, pmu, unit, openable, why",
		  ARG_FLAG, &json },
		{ 0 },
	};
	const struct args args = {
		.command = "list",
		.synopsis = "[OPTIONS] [hw|sw|cache|pmu|vendor|tracepoint|GLOB]",
		.description =
			"Lists the events that have a name, for -e of 'tally stat' and "
			"'tally record'. A GLOB without\n* ? [ matches anywhere in a name. A "
			"'-' marks what this user cannot open on this machine.",
		.examples = "  tally list\n  tally list cache\n  tally list 'sched:*'\n"
			    "  tally list fault --json\n",
		.table = table,
	};
	char anywhere[256];
	int at = args_parse_all(&args, argc, argv);

	if (at < 0)
		return args_status(at);
	if (argc - at > 1) {
		complain("list", "one pattern at a time: '%s' is too many", argv[at + 1]);
		return EXIT_USAGE;
	}
	const char *word = at < argc ? argv[at] : NULL;
	struct listing l = {
		.kind = word ? kind_of(word) : -1, .last = -1, .json = json, .tables = tables
	};
	if (word && l.kind < 0) {
		snprintf(anywhere, sizeof(anywhere), "*%s*", word);
		l.glob = strpbrk(word, "*?[") ? word : anywhere;
	}
	int status = list(&l);
	if (status == EXIT_DONE && !l.count)
		return complain_of_nothing(&l, word ? word : "");
	return status;
}

const struct command cmd_list = { "list", "events that can be counted and sampled", run };
