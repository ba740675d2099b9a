/* SPDX-License-Identifier: MIT */
/* tally script: the samples of a recording one after another, as perf script. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "command.h"
#include "profiles.h"
#include "span.h"
#include "term.h"

#define DEFAULT_INPUT "perf.data"

struct options {
	const char *input, *time;
	struct texts fields;
	uint64_t max_stack;
	bool json, dump, ns, no_chain, mmaps, tasks, switches, lost, namespaces, cgroups, bpf;
	bool own_payloads, full_source, force, pager, debuginfod;
	struct tally_script_opts script;
};

static uint32_t read_flags(const struct options *o)
{
	const struct {
		bool set;
		uint32_t flag;
	} rows[] = {
		{ o->json, TALLY_SCRIPT_JSON },
		{ o->dump, TALLY_SCRIPT_DUMP },
		{ o->ns, TALLY_SCRIPT_NS },
		{ o->no_chain, TALLY_SCRIPT_NO_CHAIN },
		{ o->mmaps, TALLY_SCRIPT_MMAPS },
		{ o->tasks, TALLY_SCRIPT_TASKS },
		{ o->switches, TALLY_SCRIPT_SWITCHES },
		{ o->lost, TALLY_SCRIPT_LOST },
		{ o->namespaces, TALLY_SCRIPT_NAMESPACES },
		{ o->cgroups, TALLY_SCRIPT_CGROUPS },
		{ o->bpf, TALLY_SCRIPT_BPF },
		{ o->own_payloads, TALLY_SCRIPT_OWN_PAYLOADS },
		{ o->full_source, TALLY_SCRIPT_FULL_SOURCE },
	};
	uint32_t flags = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		flags |= rows[i].set ? rows[i].flag : 0;
	return flags;
}

static bool read_options(struct options *o)
{
	o->script.size = sizeof(o->script);
	o->script.flags = read_flags(o);
	if (o->debuginfod)
		o->script.symbolizer_flags |= TALLY_SYMBOLIZER_DEBUGINFOD;
	o->script.fields = o->fields.at;
	o->script.field_count = o->fields.count;
	o->script.max_stack = o->max_stack > UINT32_MAX ? UINT32_MAX : (uint32_t)o->max_stack;
	struct span span;
	if (!span_read(&span, o->time, "script"))
		return false;
	o->script.from = span.from;
	o->script.to = span.to;
	o->script.relative = span.relative;
	return true;
}

/* What the samples do not show of themselves. */
static void tell(const struct tally_script_report *report)
{
	if (report->health[0])
		complain("script", "%s", report->health);
	if (report->lost)
		complain("script", "%" PRIu64 " samples were lost while it was recorded",
			 report->lost);
	if (report->undecodable)
		complain("script", "%" PRIu64 " records contradict their layout and were left out",
			 report->undecodable);
	profiles_say_stacks(&report->stacks, "script", "could not be unwound to their end");
}

static int show(const struct options *o)
{
	struct tally_script_report report = { 0 };
	struct tally_error err = { 0 };
	FILE *pager = pager_open(o->pager);
	const char *path = o->input ? o->input : DEFAULT_INPUT;
	int r = tally_script_file(path, &o->script, pager ? pager : stdout, &report, &err);

	if (pager)
		pager_close(pager); /* who leaves the pager early has seen enough */
	if (pager && r == -EIO)
		return EXIT_DONE;
	if (r < 0) {
		complain("script", "%s", err.text);
		if (r == -ENOENT && !o->input)
			hint("'tally record -g -- CMD' makes one, -i names another");
		if (report.samples)
			hint("shown are the samples that stand before the damage");
	}
	tell(&report);
	if (r == -EINVAL || r == -EOPNOTSUPP)
		return EXIT_USAGE;
	return r < 0 ? EXIT_FAILED : EXIT_DONE;
}

static int run(int argc, char **argv)
{
	struct options o = { .pager = true };
	const struct arg table[] = {
		{ 'i', "input", "FILE", "the recording (default: perf.data)", ARG_TEXT, &o.input },
		{ 'F', "fields", "FIELDS",
		  "what to print: names as perf script's, +NAME to add, -NAME to take away; "
		  "KIND: in front for hw, sw, trace or raw events alone",
		  ARG_TEXTS, &o.fields },
		{ 'G', "hide-call-graph", NULL, "where a sample was taken, not who called it",
		  ARG_FLAG, &o.no_chain },
		{ 0, "ns", NULL, "nine decimals of times", ARG_FLAG, &o.ns },
		{ 0, "max-stack", "N", "at most N frames of a callchain", ARG_COUNT, &o.max_stack },
		{ 'c', "comms", "NAMES", "only threads of these names", ARG_TEXT, &o.script.comm },
		{ 0, "pid", "PIDS", "only these processes", ARG_TEXT, &o.script.pid },
		{ 0, "tid", "TIDS", "only these threads", ARG_TEXT, &o.script.tid },
		{ 'C', "cpu", "CPUS", "only these CPUs", ARG_TEXT, &o.script.cpu },
		{ 'S', "symbols", "NAMES", "only samples in these functions", ARG_TEXT,
		  &o.script.symbol },
		{ 0, "dsos", "NAMES", "only samples in these programs and libraries", ARG_TEXT,
		  &o.script.dso },
		{ 0, "event", "NAMES", "only these events of the recording", ARG_TEXT,
		  &o.script.event },
		{ 0, "time", "FROM,TO",
		  "only this time, in seconds; +1.5 counts from the first sample", ARG_TEXT,
		  &o.time },
		{ 0, "show-mmap-events", NULL, "also what was mapped", ARG_FLAG, &o.mmaps },
		{ 0, "show-task-events", NULL, "also names, forks and exits", ARG_FLAG, &o.tasks },
		{ 0, "show-switch-events", NULL, "also context switches", ARG_FLAG, &o.switches },
		{ 0, "show-lost-events", NULL, "also where samples were lost", ARG_FLAG, &o.lost },
		{ 0, "show-namespace-events", NULL, "also namespaces", ARG_FLAG, &o.namespaces },
		{ 0, "show-cgroup-events", NULL, "also cgroups", ARG_FLAG, &o.cgroups },
		{ 0, "show-bpf-events", NULL, "also BPF programs", ARG_FLAG, &o.bpf },
		{ 'D', "dump-raw-trace", NULL, "every record, field by field, as the file has it",
		  ARG_FLAG, &o.dump },
		{ 0, "json", NULL, "an object a line", ARG_FLAG, &o.json },
		{ 0, "own-payloads", NULL, "tracepoints as name=value, without libtraceevent",
		  ARG_FLAG, &o.own_payloads },
		{ 0, "full-source-path", NULL, "srcline with the whole path of its file", ARG_FLAG,
		  &o.full_source },
		{ 0, "symfs", "FOLDER", "look for programs and libraries below it first", ARG_TEXT,
		  &o.script.symfs },
		{ 0, "debuginfod", NULL, "ask the servers in $DEBUGINFOD_URLS for missing symbols",
		  ARG_FLAG, &o.debuginfod },
		{ 'f', "force", NULL, "as perf has it; nothing is refused here", ARG_FLAG,
		  &o.force },
		{ 0, "pager", NULL, "page on a terminal (default)", ARG_FLAG, &o.pager },
		{ 0 },
	};
	const struct args args = {
		.command = "script",
		.synopsis = "[OPTIONS]",
		.description = "Prints the samples of a recording one after another, by time, in "
			       "the columns of perf script.",
		.examples = "  tally script -F comm,tid,time,event,trace   what tracepoints told\n"
			    "  tally script --time +1,+1.5 -c python3      half a second of one "
			    "program\n"
			    "  tally script --json | jq .symbol            for programs\n",
		.table = table,
	};
	int at = args_parse(&args, argc, argv);

	if (at < 0)
		return args_status(at);
	if (argv[at]) {
		complain("script", "'%s' is no option", argv[at]);
		hint("-i names the recording, -S a function");
		return EXIT_USAGE;
	}
	return read_options(&o) ? show(&o) : EXIT_USAGE;
}

const struct command cmd_script = { "script", "the samples of a recording, one by one", run };
