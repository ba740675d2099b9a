/* SPDX-License-Identifier: MIT */
/* `tally record`: its options, and which of them exclude each other. */
#include <string.h>

#include "command.h"
#include "record.h"
#include "term.h"

static const char examples[] =
	"  tally record -g -- ./program     profile a command with call graphs\n"
	"  tally record -g -p 1234 --duration 10\n"
	"  tally record -a -g -- sleep 5    everything, for five seconds\n"
	"  tally record --overwrite --switch-output -a   a flight recorder: SIGUSR2 keeps a file\n";

int record_options_parse(struct record_options *o, int argc, char **argv, char ***left)
{
	const struct arg table[] = {
		{ 'e', "event", "LIST",
		  "what to sample, as 'tally list' names it (default: cycles, else cpu-clock)",
		  ARG_TEXTS, &o->events },
		{ 0, "filter", "FILTER", "which of the last -e's last event, a tracepoint, count",
		  ARG_TEXTS, &o->filters },
		{ 0, "event-tables", "DIR", "vendors' event names, from perf's JSON in DIR",
		  ARG_TEXT, &o->tables },
		{ 'F', "freq", "N|max", "samples a second (default: 4000)", ARG_TEXT, &o->freq },
		{ 'c', "count", "N", "a sample every N events, instead of a rate", ARG_COUNT,
		  &o->period },
		{ 'g', NULL, NULL, "record call graphs, as a short trial finds best here", ARG_FLAG,
		  &o->graph },
		{ 0, "call-graph", "HOW",
		  "call graphs by frame pointers (fp), from a copy of the stack "
		  "(dwarf[,BYTES]) or by branch records (lbr)",
		  ARG_TEXT, &o->call_graph },
		{ 0, "keep-stacks", NULL,
		  "with dwarf: write the copies of stacks, to be unwound by a report", ARG_FLAG,
		  &o->keep_stacks },
		{ 'b', "branch-any", NULL, "with each sample the branches taken before it",
		  ARG_FLAG, &o->any_branch },
		{ 'j', "branch-filter", "LIST", "likewise, of these kinds: any_call,u ...",
		  ARG_TEXT, &o->branches },
		{ 'd', "data", NULL, "with each sample the address of its data", ARG_FLAG,
		  &o->data },
		{ 0, "phys-data", NULL, "with each sample the physical address of its data",
		  ARG_FLAG, &o->phys_data },
		{ 0, "data-page-size", NULL, "with each sample the size of its data's page",
		  ARG_FLAG, &o->data_page_size },
		{ 0, "code-page-size", NULL, "with each sample the size of its code's page",
		  ARG_FLAG, &o->code_page_size },
		{ 'W', "weight", NULL, "with each sample how long its memory access took", ARG_FLAG,
		  &o->weight },
		{ 'R', "raw-samples", NULL,
		  "with each sample the event's own fields (default for tracepoints)", ARG_FLAG,
		  &o->raw },
		{ 's', "stat", NULL, "at the end of each followed thread what it counted", ARG_FLAG,
		  &o->stat },
		{ 'T', "timestamp", NULL, "with each sample its time (always so)", ARG_FLAG,
		  &o->timestamp },
		{ 'k', "clockid", "CLOCK",
		  "which: monotonic (default), raw, real, boot, tai, or perf's own (perf)",
		  ARG_TEXT, &o->clock },
		{ 0, "switch-events", NULL, "when tasks are switched in and out", ARG_FLAG,
		  &o->switch_events },
		{ 0, "namespaces", NULL, "the namespaces of tasks", ARG_FLAG, &o->namespaces },
		{ 0, "all-cgroups", NULL, "with each sample its cgroup", ARG_FLAG,
		  &o->all_cgroups },
		{ 'p', "pid", "PID", "a running process, all its threads and their children",
		  ARG_TEXT, &o->target.pids },
		{ 't', "tid", "TID", "one running thread", ARG_TEXT, &o->target.tids },
		{ 'a', "all-cpus", NULL, "everything that runs", ARG_FLAG, &o->target.all },
		{ 'C', "cpu", "LIST", "everything that runs on these CPUs", ARG_TEXT,
		  &o->target.cpus },
		{ 'G', "cgroup", "NAME", "with -a, -C: only what runs in this cgroup", ARG_TEXT,
		  &o->cgroup },
		{ 'i', "no-inherit", NULL, "do not follow new threads and children", ARG_FLAG,
		  &o->no_inherit },
		{ 0, "no-stop", NULL,
		  "do not stop a running process while events are attached to it", ARG_FLAG,
		  &o->no_stop },
		{ 'D', "delay", "MS", "begin so late, or -1: disabled; or only in 10-20,30-40 ...",
		  ARG_TEXT, &o->delay },
		{ 0, "control", "fd:N[,M]|fifo:F[,G]",
		  "take commands (enable, disable, snapshot, stop ...), answer them by 'ack'",
		  ARG_TEXT, &o->control },
		{ 'o', "output", "FILE",
		  "where to write (default: perf.data); - is standard output", ARG_TEXT,
		  &o->output },
		{ 'N', "no-buildid-cache", NULL,
		  "do not keep what a later report would miss: programs of containers, perf maps",
		  ARG_FLAG, &o->no_cache },
		{ 'z', "compression-level", "LEVEL",
		  "compress the recording: 1 (fast, the default) to 22", ARG_JOINED_TEXT,
		  &o->zstd },
		{ 'm', "mmap-pages", "N|SIZE",
		  "pages or size of a ring (default: by the rate, 8 MiB at most)", ARG_TEXT,
		  &o->pages },
		{ 0, "overwrite", NULL, "keep the newest samples only, and write them at the end",
		  ARG_FLAG, &o->overwrite },
		{ 0, "switch-output", "WHEN",
		  "a further file on SIGUSR2 (=signal, default), or by size or time (=100M, =30s)",
		  ARG_JOINED_TEXT, &o->switch_output },
		{ 0, "switch-max-files", "N", "keep so many of them, the newest", ARG_COUNT,
		  &o->max_files },
		{ 0, "duration", "S", "end after so many seconds, the command too (SIGTERM)",
		  ARG_SECONDS, &o->duration },
		{ 0, "max-size", "SIZE", "end when the file has this size, as 100M, likewise",
		  ARG_SIZE, &o->max_size },
		{ 'q', "quiet", NULL, "only errors", ARG_FLAG, &o->quiet },
		{ 'v', "verbose", NULL, "also what the recording cost", ARG_FLAG, &o->verbose },
		{ 0 },
	};
	const struct args args = {
		.command = "record",
		.synopsis = "[OPTIONS] [-- CMD [ARG...]]",
		.description =
			"Samples where a command, a process or the whole machine spends its time.",
		.examples = examples,
		.table = table,
	};

	*o = (struct record_options){ .output = "perf.data" };
	o->filters.behind = &o->events;
	int at = args_parse(&args, argc, argv);
	*left = at < 0 ? NULL : argv + at;
	return at < 0 ? args_status(at) : EXIT_DONE;
}

/* What an option says against the others: a sentence with its remedy. */
struct rule {
	bool broken;
	const char *said, *hint;
};

bool record_options_check(const struct record_options *o, const struct targets *targets,
			  bool command)
{
	bool cpus = o->target.all || o->target.cpus;
	bool follows = !cpus && !o->target.tids && !o->no_inherit;
	const struct rule rules[] = {
		{ targets->count > 1, "only one process or thread can be recorded at a time",
		  "-a records everything; 'tally report --pid' picks from it" },
		{ !targets->count && !command, "nothing to record",
		  "give a command after --, or -p PID, -t TID, or -a; 'tally record -h' tells "
		  "more" },
		{ o->freq && o->period, "-F and -c exclude each other: a rate or a period", NULL },
		{ !*o->output, "-o: a recording needs a file, or '-' for a stream", NULL },
		{ !strcmp(o->output, "-") && o->switch_output,
		  "--switch-output makes files, and -o - is a stream", NULL },
		{ o->any_branch && o->branches, "-b is -j any: give one of them", NULL },
		{ o->cgroup && !cpus, "-G records what runs in a cgroup, on CPUs",
		  "add -a for all CPUs, or -C LIST" },
		{ o->stat && !follows,
		  "-s tells of threads and children that are followed, and here none are",
		  "record a command or a process (-p), without -i" },
		{ o->max_files && !o->switch_output,
		  "--switch-max-files is for the files of --switch-output", NULL },
		{ o->no_stop && !o->target.pids,
		  "--no-stop is for a running process: nothing else is stopped", "add -p PID" },
	};

	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
		if (!rules[i].broken)
			continue;
		complain("record", "%s", rules[i].said);
		if (rules[i].hint)
			hint("%s", rules[i].hint);
		return false;
	}
	return true;
}
