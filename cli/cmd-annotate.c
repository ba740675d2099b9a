/* SPDX-License-Identifier: MIT */
/* tally annotate: where in a function the samples are, by lines and instructions. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "command.h"
#include "json.h"
#include "output.h"
#include "profiles.h"
#include "span.h"
#include "term.h"

#define DEFAULT_INPUT "perf.data"

struct options {
	const char *input, *time, *symfs, *output, *source, *syntax;
	bool all, json, samples, pager, no_source, no_instructions;
	struct tally_query_opts query;
	struct tally_load_opts load;
	struct tally_annotate_opts annotate;
};

static bool read_syntax(struct options *o)
{
	if (!o->syntax || !strcmp(o->syntax, "att"))
		return true;
	if (!strcmp(o->syntax, "intel")) {
		o->annotate.flags |= TALLY_ANNOTATE_INTEL;
		return true;
	}
	complain("annotate", "-M: '%s' is no syntax of instructions", o->syntax);
	hint("it is att or intel");
	return false;
}

static bool read_options(struct options *o, const char *symbol)
{
	struct span span;

	if (!span_read(&span, o->time, "annotate") || !read_syntax(o))
		return false;
	o->query.size = sizeof(o->query);
	o->query.flags = o->samples ? TALLY_QUERY_BY_SAMPLES : 0;
	o->load = (struct tally_load_opts){
		.size = sizeof(o->load),
		.from = span.from,
		.to = span.to,
		.relative = span.relative,
		.symfs = o->symfs,
	};
	o->annotate.size = sizeof(o->annotate);
	o->annotate.symbol = symbol;
	o->annotate.source = o->source;
	o->annotate.load = &o->load;
	o->annotate.query = &o->query;
	return true;
}

/* ---- as JSON ---- */

static void put_counts(FILE *to, const struct tally_annotation_info *info, uint64_t samples,
		       uint64_t weight)
{
	fprintf(to, ",\"samples\":%" PRIu64 ",\"weight\":%" PRIu64 ",\"percent\":%.4f", samples,
		weight, info->weight ? 100.0 * (double)weight / (double)info->weight : 0);
}

static void put_text(FILE *to, const char *name, const char *text)
{
	fprintf(to, ",\"%s\":", name);
	if (text)
		json_text(to, text);
	else
		fputs("null", to);
}

static void put_line(FILE *to, const struct tally_annotation_info *info,
		     const struct tally_annotation_line *line)
{
	fputs("{\"type\":\"line\"", to);
	put_text(to, "file", line->file);
	fprintf(to, ",\"line\":%" PRIu32, line->line);
	put_counts(to, info, line->samples, line->weight);
	put_text(to, "text", line->text);
	fputs("}\n", to);
}

static void put_instruction(FILE *to, const struct tally_annotation_info *info,
			    const struct tally_annotation_instruction *insn)
{
	fprintf(to, "{\"type\":\"instruction\",\"address\":\"0x%" PRIx64 "\"", insn->address);
	put_counts(to, info, insn->samples, insn->weight);
	put_text(to, "text", insn->text);
	put_text(to, "file", insn->file);
	if (insn->file)
		fprintf(to, ",\"line\":%" PRIu32, insn->line);
	if (insn->function)
		put_text(to, "inlined", insn->function);
	fputs("}\n", to);
}

/* An object for the function, one for each line that has code, and for each instruction. */
static void put_json(const struct tally_annotation *a, FILE *to)
{
	struct tally_annotation_info info;
	struct tally_annotation_line line;
	struct tally_annotation_instruction insn;

	tally_annotation_info(a, &info);
	fputs("{\"type\":\"function\"", to);
	put_text(to, "function", info.function);
	put_text(to, "module", info.path);
	put_text(to, "event", info.event);
	fprintf(to,
		",\"samples\":%" PRIu64 ",\"weight\":%" PRIu64 ",\"total\":%" PRIu64 ",\"notes\":[",
		info.samples, info.weight, info.total);
	for (uint32_t i = 0; i < info.notes; i++) {
		fputs(i ? "," : "", to);
		json_text(to, tally_annotation_note(a, i));
	}
	fputs("]}\n", to);
	for (uint32_t i = 0; tally_annotation_line(a, i, &line) == 0; i++)
		if (line.has_code)
			put_line(to, &info, &line);
	for (uint32_t i = 0; tally_annotation_instruction(a, i, &insn) == 0; i++)
		put_instruction(to, &info, &insn);
}

/* ---- where it goes ---- */

static bool is_page(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot && (!strcmp(dot, ".html") || !strcmp(dot, ".htm"));
}

static int put(const struct options *o, const struct tally_annotation *a, bool colors, FILE *to,
	       struct tally_error *err)
{
	const struct tally_annotation_opts opts = {
		.size = sizeof(opts),
		.flags = (colors ? TALLY_ANNOTATION_COLOR : 0) |
			 (o->all ? TALLY_ANNOTATION_ALL : 0) |
			 (o->no_source ? TALLY_ANNOTATION_NO_SOURCE : 0) |
			 (o->no_instructions ? TALLY_ANNOTATION_NO_INSTRUCTIONS : 0),
	};

	if (o->json)
		return put_json(a, to), 0;
	if (o->output && is_page(o->output))
		return tally_annotation_html(a, to, err);
	return tally_annotation_text(a, &opts, to, err);
}

static bool page(const struct options *o, const char *text, size_t len)
{
	const char *path = o->output ? o->output : "-";
	FILE *pager = o->output || o->json ? NULL : pager_open(o->pager);
	struct output output;

	if (!pager)
		return output_open(&output, path, "annotate") &&
		       output_write(&output, text, len, "annotate") &&
		       output_close(&output, true, "annotate");
	fwrite(text, 1, len, pager); /* who leaves the pager early has seen enough */
	pager_close(pager);
	return true;
}

/* It is made first, so that an error leaves nothing behind. */
static int show(const struct options *o, const struct tally_annotation *a)
{
	struct tally_error err = { 0 };
	char *text = NULL;
	size_t len = 0;
	FILE *to = open_memstream(&text, &len);
	int r = to ? put(o, a, !o->output && term_colors(stdout), to, &err) : -ENOMEM;

	if (to && fclose(to) != 0 && r == 0)
		r = -ENOMEM;
	if (r < 0)
		complain("annotate", "%s", err.text[0] ? err.text : "no memory");
	bool whole = r == 0 && page(o, text, len);
	free(text);
	return whole ? EXIT_DONE : EXIT_FAILED;
}

static int annotate(const struct options *o)
{
	struct tally_annotation *a;
	struct tally_error err = { 0 };
	int r = tally_annotation_new(&a, o->input ? o->input : DEFAULT_INPUT, &o->annotate, &err);

	if (r < 0) {
		complain("annotate", "%s", err.text);
		if (err.cause == TALLY_CAUSE_NO_FILE && !o->input)
			hint("'tally record -- CMD' makes one, -i names another");
		return r == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
	}
	int status = show(o, a);
	tally_annotation_free(a);
	return status;
}

static int run(int argc, char **argv)
{
	struct options o = { .pager = true };
	const struct arg table[] = {
		{ 'i', "input", "FILE", "the recording (default: perf.data)", ARG_TEXT, &o.input },
		{ 'o', "output", "FILE", "a page of HTML where its name ends in .html, else text",
		  ARG_TEXT, &o.output },
		{ 'M', "disassembler-style", "STYLE", "att (default) or intel", ARG_TEXT,
		  &o.syntax },
		{ 0, "source-dir", "FOLDER", "look for files of the source below it first",
		  ARG_TEXT, &o.source },
		{ 0, "all", NULL, "also what has no samples, of long functions", ARG_FLAG, &o.all },
		{ 0, "no-source", NULL, "instructions alone", ARG_FLAG, &o.no_source },
		{ 0, "no-instructions", NULL, "lines alone", ARG_FLAG, &o.no_instructions },
		{ 'e', "event", "EVENT", "which event (default: the first that has samples)",
		  ARG_TEXT, &o.query.event },
		{ 'c', "comm", "NAMES", "only threads of these names", ARG_TEXT, &o.query.comm },
		{ 'd', "dso", "NAMES", "only this program or library", ARG_TEXT, &o.query.dso },
		{ 0, "pid", "PIDS", "only these processes", ARG_TEXT, &o.query.pid },
		{ 0, "tid", "TIDS", "only these threads", ARG_TEXT, &o.query.tid },
		{ 0, "time", "FROM,TO",
		  "only this time, in seconds; +1.5 counts from the first sample", ARG_TEXT,
		  &o.time },
		{ 0, "samples", NULL, "weigh by number of samples, not by their periods", ARG_FLAG,
		  &o.samples },
		{ 0, "symfs", "FOLDER", "look for programs and libraries below it first", ARG_TEXT,
		  &o.symfs },
		{ 0, "json", NULL, "an object a line", ARG_FLAG, &o.json },
		{ 0, "pager", NULL, "page on a terminal (default)", ARG_FLAG, &o.pager },
		{ 0 },
	};
	const struct args args = {
		.command = "annotate",
		.synopsis = "[OPTIONS] [SYMBOL]",
		.description =
			"Shows where in a function the samples are: lines of its source, and "
			"instructions.\nWithout SYMBOL it is the function that has most of "
			"them.",
		.examples = "  tally annotate                      the heaviest function\n"
			    "  tally annotate -o main.html main    to look at with a browser\n"
			    "  tally annotate -d libc.so.6 --source-dir ~/glibc memchr\n",
		.table = table,
	};
	int at = args_parse(&args, argc, argv);

	if (at < 0)
		return args_status(at);
	if (argv[at] && argv[at + 1]) {
		complain("annotate", "one function at a time: '%s' is another", argv[at + 1]);
		return EXIT_USAGE;
	}
	return read_options(&o, argv[at]) ? annotate(&o) : EXIT_USAGE;
}

const struct command cmd_annotate = { "annotate", "where in a function the samples are", run };
