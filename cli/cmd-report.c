/* SPDX-License-Identifier: MIT */
/* tally report: the sorted table and call graphs of a recording, as perf report --stdio. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "command.h"
#include "output.h"
#include "profiles.h"
#include "term.h"

#define MAX_TROUBLES 10 /* modules without symbols that are named */

struct options {
	struct filters filters;
	const char *graph;
	double percent_limit;
	uint64_t lines;
	bool children, no_graph, inverted, samples, quiet, pager, stdio;
	struct tally_text_opts text;
};

/* What perf's -g may say, as far as it means something here. */
static const struct {
	const char *word;
	uint32_t flags;
} graph_words[] = {
	{ "graph", 0 },
	{ "none", TALLY_TEXT_NO_GRAPH },
	{ "caller", TALLY_TEXT_CALLER },
	{ "callee", TALLY_TEXT_CALLEE },
	{ "function", 0 },
	{ "percent", 0 },
};

static bool read_graph_word(struct options *o, const char *word)
{
	char *end;

	for (size_t i = 0; i < sizeof(graph_words) / sizeof(*graph_words); i++) {
		if (!strcmp(word, graph_words[i].word)) {
			o->text.flags |= graph_words[i].flags;
			return true;
		}
	}
	double limit = strtod(word, &end);
	if (end == word || *end || !(limit >= 0 && limit <= 100))
		return false;
	/* 0 would be the default; nothing is as light as this. */
	o->text.graph_limit = limit > 0 ? limit : 1e-12;
	return true;
}

/* "graph,0.5,caller", in any order. */
static bool read_graph(struct options *o)
{
	char words[128], *rest = NULL;

	if (!o->graph)
		return true;
	snprintf(words, sizeof(words), "%s", o->graph);
	for (char *word = strtok_r(words, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
		if (read_graph_word(o, word))
			continue;
		complain("report", "-g: '%s' is no kind of call graph that there is", word);
		hint("it is a list of: graph or none, a least percentage, caller or callee");
		return false;
	}
	return true;
}

static bool read_options(struct options *o)
{
	o->filters.query.percent_limit = o->percent_limit;
	o->text.size = sizeof(o->text);
	o->text.lines = o->lines > UINT32_MAX ? UINT32_MAX : (uint32_t)o->lines;
	if (!o->children)
		o->text.flags |= TALLY_TEXT_NO_CHILDREN;
	if (o->samples)
		o->text.flags |= TALLY_TEXT_SAMPLES;
	if (o->quiet)
		o->text.flags |= TALLY_TEXT_NO_HEADER;
	if (o->no_graph)
		o->text.flags |= TALLY_TEXT_NO_GRAPH;
	if (!read_graph(o))
		return false;
	if (o->inverted && !(o->text.flags & TALLY_TEXT_CALLEE))
		o->text.flags |= TALLY_TEXT_CALLER;
	return true;
}

static void print_seconds(FILE *to, uint64_t ns)
{
	fprintf(to, "%" PRIu64 ".%06" PRIu64, ns / 1000000000, ns / 1000 % 1000000);
}

static void print_head(FILE *to, const struct loaded *l)
{
	const struct tally_load_health *h = &l->health;

	fprintf(to, "# Total Lost Samples: %" PRIu64 "\n", h->lost);
	if (h->last) {
		fputs("# Time: ", to);
		print_seconds(to, h->first);
		fputs(" to ", to);
		print_seconds(to, h->last);
		fprintf(to, " (%.3f s)\n", (double)(h->last - h->first) / 1e9);
	}
	fputs("#\n", to);
}

static double percent(uint64_t part, uint64_t all)
{
	return all ? 100.0 * (double)part / (double)all : 0;
}

/* A path and a reason from a file, on a terminal. */
static void print_plain(FILE *to, const char *text)
{
	for (; *text; text++)
		putc((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text, to);
}

static void print_troubles(FILE *to, const struct trouble *list, size_t count)
{
	for (size_t i = 0; i < count && i < MAX_TROUBLES; i++) {
		fputs("#   ", to);
		print_plain(to, list[i].path);
		fputs(": ", to);
		print_plain(to, list[i].why);
		putc('\n', to);
	}
	if (count > MAX_TROUBLES)
		fprintf(to, "#   and %zu more\n", count - MAX_TROUBLES);
}

/* Of stacks that end where a copy does, how long it would have to be. */
static void print_cut(FILE *to, const struct tally_load_health *h)
{
	uint64_t enough = profiles_stack_bytes(h->wanted_stack);

	fprintf(to,
		"#\n# %" PRIu64 " of %" PRIu64 " user stacks (%.1f %%) are cut: they go on "
		"behind the copy of their stack\n",
		h->cut_chains, h->with_chain, percent(h->cut_chains, h->with_chain));
	if (enough)
		fprintf(to, "# (tally record --call-graph dwarf,%" PRIu64 " copies enough)\n",
			enough);
	else if (h->wanted_stack)
		fprintf(to,
			"# (the longest has %" PRIu64 " bytes, a sample holds %d: --call-graph "
			"dwarf,%d, or fp)\n",
			h->wanted_stack, LARGEST_STACK, LARGEST_STACK);
	if (h->cut_beyond)
		fprintf(to, "# (%" PRIu64 " of them go on where no copy reaches: " BEYOND ")\n",
			h->cut_beyond);
}

static void print_broken(FILE *to, const struct loaded *l)
{
	const struct tally_load_health *h = &l->health;

	fprintf(to,
		"#\n# %" PRIu64 " of %" PRIu64 " user stacks (%.1f %%) are broken: they end "
		"before the start of their thread,\n",
		h->broken_chains, h->with_chain, percent(h->broken_chains, h->with_chain));
	if (!h->copied_stacks)
		fputs("# as code without frame pointers does (-fno-omit-frame-pointer keeps them, "
		      "tally record --call-graph dwarf\n# does without)\n",
		      to);
	else
		fprintf(to, "# where nothing tells how to unwind%s\n",
			l->broken_count ? "; in these modules:" : "");
	print_troubles(to, l->broken, l->broken_count);
}

/* How far the report can be believed. */
static void print_foot(FILE *to, const struct loaded *l)
{
	const struct tally_load_health *h = &l->health;

	if (h->with_chain)
		fprintf(to, "#\n# %" PRIu64 " of %" PRIu64 " user stacks are whole\n",
			h->with_chain - h->broken_chains - h->cut_chains, h->with_chain);
	if (h->cut_chains)
		print_cut(to, h);
	if (h->broken_chains)
		print_broken(to, l);
	if (h->unknown_frames)
		fprintf(to, "#\n# %.1f %% of all frames have no symbol%s\n",
			percent(h->unknown_frames, h->frames),
			l->trouble_count ? "; modules without:" : "");
	print_troubles(to, l->troubles, l->trouble_count);
	if (h->undecodable)
		fprintf(to, "#\n# %" PRIu64 " records contradict their layout and were left out\n",
			h->undecodable);
}

/* The table of one event, or nothing at all; where no head says which it is, its name does. */
static int print_section(FILE *to, const struct loaded *l, const struct options *o, bool is_first,
			 struct tally_error *err)
{
	char *text = NULL;
	size_t len = 0;
	FILE *section = open_memstream(&text, &len);

	if (!section)
		return -ENOMEM;
	int r = tally_report_text(l->profile, &o->filters.query, &o->text, section, err);
	if (fclose(section) != 0 && r == 0)
		r = -ENOMEM;
	if (r == 0 && !is_first)
		fputc('\n', to);
	if (r == 0 && o->quiet) {
		print_plain(to, o->filters.query.event);
		fputc('\n', to);
	}
	if (r == 0)
		fwrite(text, 1, len, to);
	free(text);
	return r;
}

/* One section for each event that has samples, as perf report does. */
static int print_events(FILE *to, const struct loaded *l, struct options *o,
			struct tally_error *err)
{
	uint32_t events = tally_profile_events(l->profile);
	int shown = 0, r = 0;

	if (o->filters.query.event || events < 2)
		return tally_report_text(l->profile, &o->filters.query, &o->text, to, err);
	for (uint32_t i = 0; i < events && (r == 0 || r == -ENODATA); i++) {
		o->filters.query.event = tally_profile_event_name(l->profile, i);
		r = print_section(to, l, o, shown == 0, err);
		shown += r == 0;
	}
	return r == -ENODATA && shown ? 0 : r;
}

static int print_report(FILE *to, const struct loaded *l, struct options *o,
			struct tally_error *err)
{
	if (!o->quiet)
		print_head(to, l);
	int r = print_events(to, l, o, err);
	if (r == 0 && !o->quiet)
		print_foot(to, l);
	return r;
}

static bool page(const struct options *o, const char *text, size_t len)
{
	struct output output;
	FILE *pager = pager_open(o->pager);

	if (!pager)
		return output_open(&output, "-", "report") &&
		       output_write(&output, text, len, "report");
	fwrite(text, 1, len, pager); /* who leaves the pager early has seen enough */
	pager_close(pager);
	return true;
}

/* The report is made first, so that an error leaves nothing on standard output. */
static int show(const struct loaded *l, struct options *o)
{
	struct tally_error err = { 0 };
	char *text = NULL;
	size_t len = 0;
	FILE *report = open_memstream(&text, &len);

	o->text.flags |= term_colors(stdout) ? TALLY_TEXT_COLOR : 0;
	int r = report ? print_report(report, l, o, &err) : -ENOMEM;
	if (report && fclose(report) != 0 && r == 0)
		r = -ENOMEM;
	if (r < 0)
		complain("report", "%s", err.text[0] ? err.text : "no memory");
	bool whole = r == 0 && page(o, text, len);
	free(text);
	if (r < 0)
		return r == -EINVAL || r == -ENOENT ? EXIT_USAGE : EXIT_FAILED;
	return l->failed || !whole ? EXIT_FAILED : EXIT_DONE;
}

static int run(int argc, char **argv)
{
	struct options o = { .children = true, .pager = true };
	const struct arg table[] = {
		FILTER_ARGS(&o.filters),
		{ 0, "event", "EVENT", "only this event of the recording", ARG_TEXT,
		  &o.filters.query.event },
		{ 's', "sort", "KEYS",
		  "comm, dso, symbol, pid, tid, srcline (default: comm,dso,symbol)", ARG_TEXT,
		  &o.filters.query.sort },
		{ 0, "children", NULL, "count what a function called as its own too (default)",
		  ARG_FLAG, &o.children },
		{ 'g', "call-graph", "[HOW]", "graph or none, a least percentage, caller or callee",
		  ARG_MAYBE_TEXT, &o.graph },
		{ 0, "no-call-graph", NULL, "the table alone", ARG_FLAG, &o.no_graph },
		{ 'G', "inverted", NULL, "call graphs from callers down", ARG_FLAG, &o.inverted },
		{ 'n', "show-nr-samples", NULL, "a column with the number of samples", ARG_FLAG,
		  &o.samples },
		{ 0, "percent-limit", "P", "leave out lines below P percent", ARG_PERCENT,
		  &o.percent_limit },
		{ 0, "lines", "N", "at most N lines of the table", ARG_COUNT, &o.lines },
		{ 'q', "quiet", NULL, "the table alone, without lines that begin with #", ARG_FLAG,
		  &o.quiet },
		{ 0, "pager", NULL, "page on a terminal (default)", ARG_FLAG, &o.pager },
		{ 0, "stdio", NULL, "as perf has it; there is no other way to show it", ARG_FLAG,
		  &o.stdio },
		{ 0 },
	};
	const struct args args = {
		.command = "report",
		.synopsis = "[OPTIONS]",
		.description =
			"Shows where a recording's samples are: a table, and below each line "
			"its calls.\nPercentages are of all samples, whatever the filters.",
		.examples =
			"  tally report --no-children       what was executed, and who called it\n"
			"  tally report -s dso -g none      which libraries\n"
			"  tally report -c python3 --time +1,+2\n",
		.table = table,
	};
	int at = args_parse(&args, argc, argv);

	if (at < 0)
		return args_status(at);
	if (argv[at]) {
		complain("report", "'%s' is no option", argv[at]);
		hint("-i names the recording, -S a function");
		return EXIT_USAGE;
	}
	struct loaded loaded;
	if (!read_options(&o))
		return EXIT_USAGE;
	int status = profiles_load(&loaded, &o.filters, "report");
	if (status == EXIT_DONE)
		status = show(&loaded, &o);
	profiles_free(&loaded);
	return status;
}

const struct command cmd_report = { "report", "where the samples of a recording are", run };
