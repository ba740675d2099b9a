/* SPDX-License-Identifier: MIT */
/* `tally stat`: its options, and which of them exclude each other. */
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "event-lists.h"
#include "stat.h"
#include "term.h"

/* perf stat's defaults; on CPUs a clock of the task would stand still. */
#define DEFAULT_REST \
	",context-switches,cpu-migrations,page-faults,cycles,instructions,branches,branch-misses"

/* What each -d adds, as perf's. */
static const char *const details[] = {
	",L1-dcache-loads,L1-dcache-load-misses,LLC-loads,LLC-load-misses",
	(",L1-icache-loads,L1-icache-load-misses,dTLB-loads,dTLB-load-misses,iTLB-loads,"
	 "iTLB-load-misses"),
	",L1-dcache-prefetches,L1-dcache-prefetch-misses",
};
#define DETAILS (sizeof(details) / sizeof(*details))
/* The default's and all details' room, more than they have. */
#define MORE_EVENTS 512

/* perf's limit is 100; ours only keeps a slip of the finger from running for years. */
#define MAX_REPEAT 1000000

#define NOT_GIVEN UINT64_MAX

/* Pairs of runs with --baseline: enough for an interval that leaves out disturbed runs. */
#define BASELINE_PAIRS 10
/* All differences of all runs are kept, a million. */
#define MAX_PAIRS 1000

/* No time in milliseconds may be longer; some 11 days. */
#define MAX_MS 1000000000

static const char examples[] =
	"  tally stat -- make -j8                 count what a build does\n"
	"  tally stat -r 5 -e page-faults -- ls   mean and spread of five runs\n"
	"  tally stat -e '{cycles,instructions}:u' -p 1234 --duration 10\n"
	"  tally stat -a -A -I 1000               each CPU, each second\n";

int stat_options_parse(struct stat_options *o, int argc, char **argv, char *const **left)
{
	const struct arg table[] = {
		{ 'e', "event", "LIST", "events to count, as 'tally list' shows them", ARG_TEXTS,
		  &o->events },
		{ 0, "filter", "FILTER", "which of the last -e's last event, a tracepoint, count",
		  ARG_TEXTS, &o->filters },
		{ 'M', "metrics", "NAMES",
		  "metrics, as 'tally stat -M IPC', or NAME=FORMULA; none named: what the events "
		  "suffice for",
		  ARG_MAYBE_TEXT, &o->metrics },
		{ 0, "event-tables", "DIR", "vendors' events and metrics, as perf's JSON tables",
		  ARG_TEXT, &o->tables },
		{ 'd', "detailed", NULL, "also cache events; -dd, -ddd: more of them", ARG_LEVEL,
		  &o->detail },
		{ 'a', "all-cpus", NULL, "count on all CPUs", ARG_FLAG, &o->target.all },
		{ 'C', "cpu", "LIST", "count on these CPUs, as 0-3,8", ARG_TEXT, &o->target.cpus },
		{ 'p', "pid", "PID", "count a running process, its threads and their children",
		  ARG_TEXT, &o->target.pids },
		{ 't', "tid", "TID", "count a running thread alone", ARG_TEXT, &o->target.tids },
		{ 'G', "cgroup", "NAMES",
		  "with -a, -C: in a cgroup; the n-th is the n-th event's, the only one all's",
		  ARG_TEXT, &o->cgroups },
		{ 0, "for-each-cgroup", "NAMES", "with -a, -C: each event in each cgroup", ARG_TEXT,
		  &o->each_cgroup },
		{ 'A', "no-aggr", NULL, "with -a, -C: each CPU by itself", ARG_FLAG, &o->no_aggr },
		{ 0, "per-core", NULL, "with -a, -C: summed for each core", ARG_FLAG,
		  &o->per_core },
		{ 0, "per-die", NULL, "with -a, -C: summed for each die", ARG_FLAG, &o->per_die },
		{ 0, "per-socket", NULL, "with -a, -C: summed for each socket", ARG_FLAG,
		  &o->per_socket },
		{ 0, "per-node", NULL, "with -a, -C: summed for each NUMA node", ARG_FLAG,
		  &o->per_node },
		{ 0, "per-thread", NULL, "with -p, -t: each thread by itself", ARG_FLAG,
		  &o->per_thread },
		{ 'i', "no-inherit", NULL, "do not count children and new threads", ARG_FLAG,
		  &o->no_inherit },
		{ 0, "no-stop", NULL,
		  "do not stop a running process while counters are attached to it", ARG_FLAG,
		  &o->no_stop },
		{ 'n', "null", NULL, "count nothing, only measure times", ARG_FLAG, &o->null_run },
		{ 'r', "repeat", "N", "run the command N times: mean and spread; 0: for ever",
		  ARG_U64, &o->repeat },
		{ 0, "table", NULL, "with -r: also the time of each run", ARG_FLAG, &o->table },
		{ 0, "baseline", "CMD",
		  "run CMD and the command by turns, -r times each (10): what differs", ARG_TEXT,
		  &o->baseline },
		{ 0, "pre", "CMD", "run by sh(1) before each run, uncounted", ARG_TEXT, &o->pre },
		{ 0, "post", "CMD", "run by sh(1) after each run, uncounted", ARG_TEXT, &o->post },
		{ 'I', "interval-print", "MS", "print what was counted in each interval", ARG_COUNT,
		  &o->interval_ms },
		{ 0, "interval-count", "N", "with -I: stop after N intervals", ARG_COUNT,
		  &o->interval_count },
		{ 'D', "delay", "MS", "begin to count so much after the start", ARG_I64,
		  &o->delay_ms },
		{ 0, "duration", "SECONDS", "stop then; a command gets SIGTERM", ARG_SECONDS,
		  &o->duration },
		{ 0, "timeout", "MS", "as --duration, in milliseconds", ARG_COUNT, &o->timeout_ms },
		{ 'o', "output", "FILE", "results to FILE instead of stderr; -: to stdout",
		  ARG_TEXT, &o->output },
		{ 0, "append", NULL, "with -o: add to FILE", ARG_FLAG, &o->append },
		{ 0, "log-fd", "FD", "results to an open file descriptor", ARG_U64, &o->log_fd },
		{ 'j', "json", NULL, "results as JSON, one object a line", ARG_FLAG, &o->json },
		{ 'x', "field-separator", "SEP", "results as lines with SEP between the columns",
		  ARG_TEXT, &o->separator },
		{ 'B', "big-num", NULL, "separate thousands (default)", ARG_FLAG, &o->big_num },
		{ 0, "quiet", NULL, "print no results", ARG_FLAG, &o->quiet },
		{ 'v', "verbose", NULL, "also raw counts and times of each event", ARG_FLAG,
		  &o->verbose },
		{ 0 },
	};
	const struct args args = {
		.command = "stat",
		.synopsis = "[OPTIONS] [--] CMD [ARG...]",
		.description =
			"Counts events while CMD runs, or with -p, -t, -a or -C what runs "
			"already.\nExits with CMD's status; 126 or 127 when it cannot be run.",
		.examples = examples,
		.table = table,
	};

	o->repeat = NOT_GIVEN;
	o->big_num = true;
	o->log_fd = UINT64_MAX;
	o->filters.behind = &o->events;
	int at = args_parse(&args, argc, argv);
	/* A tab is hard to type in some shells; perf takes this for it too. */
	if (o->separator && !strcmp(o->separator, "\\t"))
		o->separator = "\t";
	if (o->repeat == NOT_GIVEN)
		o->repeat = o->baseline ? BASELINE_PAIRS : 1;
	*left = at < 0 ? NULL : argv + at;
	return at < 0 ? args_status(at) : EXIT_DONE;
}

/* The one way to sum up that was chosen; false, when there were several. */
static bool choose_by(struct stat_options *o)
{
	const struct {
		bool given;
		enum stat_by by;
	} ways[] = {
		{ o->no_aggr, BY_CPU },   { o->per_core, BY_CORE },
		{ o->per_die, BY_DIE },   { o->per_socket, BY_SOCKET },
		{ o->per_node, BY_NODE }, { o->per_thread, BY_THREAD },
	};
	int given = 0;

	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		given += ways[i].given;
		if (ways[i].given)
			o->by = ways[i].by;
	}
	return given <= 1;
}

/* What an option says against the others: a sentence with its remedy. */
struct rule {
	bool broken;
	const char *said, *hint;
};

static bool keeps(const struct rule *rules, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!rules[i].broken)
			continue;
		complain("stat", "%s", rules[i].said);
		if (rules[i].hint)
			hint("%s", rules[i].hint);
		return false;
	}
	return true;
}

bool stat_options_check(struct stat_options *o, const struct targets *targets, bool command)
{
	bool cpus = o->target.all || o->target.cpus, tasks = o->target.pids || o->target.tids;
	bool one_way = choose_by(o);
	const struct rule rules[] = {
		{ !command && !targets->count,
		  "there is nothing to count: name a command, or -p, -t, -a or -C",
		  "tally stat -- CMD [ARG...]" },
		{ !command && o->repeat != 1, "-r repeats a command, and there is none", NULL },
		{ o->repeat > MAX_REPEAT, "-r: at most 1000000 runs; 0 runs for ever", NULL },
		{ o->null_run && (o->events.count || o->detail),
		  "-n counts nothing, so -e and -d cannot be combined with it", NULL },
		{ !one_way,
		  "of -A, --per-core, --per-die, --per-socket, --per-node and --per-thread only one "
		  "can be given",
		  NULL },
		{ o->by == BY_THREAD && !tasks,
		  "--per-thread needs a process or a thread that runs already", "add -p PID" },
		{ o->by != BY_ALL && o->by != BY_THREAD && !cpus,
		  "-A and --per-core, --per-die, --per-socket, --per-node count CPUs, not a task",
		  "add -a for all CPUs, or -C LIST" },
		{ o->cgroups && o->each_cgroup, "-G and --for-each-cgroup cannot be combined",
		  NULL },
		{ (o->cgroups || o->each_cgroup) && !cpus,
		  "-G and --for-each-cgroup count what runs in a cgroup, on CPUs",
		  "add -a for all CPUs, or -C LIST" },
		{ o->baseline && (o->cgroups || o->each_cgroup),
		  "--baseline compares a command with another one, and nothing else", NULL },
		{ o->metrics && (o->null_run || o->baseline),
		  "-M needs counts, so -n and --baseline cannot be combined with it", NULL },
		{ o->baseline && (o->interval_ms || o->separator || o->delay_ms || o->table),
		  "--baseline cannot be combined with -I, -x, -D and --table", NULL },
		{ o->interval_ms && o->repeat != 1, "-I and -r cannot be combined", NULL },
		{ o->interval_ms && o->null_run, "-n counts nothing, so -I has nothing to print",
		  NULL },
		{ o->interval_count && !o->interval_ms,
		  "--interval-count counts the intervals of -I", "add -I MS" },
		{ o->interval_ms > MAX_MS || o->timeout_ms > MAX_MS || o->delay_ms > MAX_MS,
		  "-I, -D, --timeout: at most 1000000000 milliseconds", NULL },
		{ o->delay_ms < 0,
		  "-D: a delay below 0 would never end: nothing could enable the events",
		  "give the milliseconds until counting is to begin" },
		{ o->timeout_ms && o->duration > 0,
		  "--timeout and --duration say the same: give one", NULL },
		{ o->baseline && (!command || targets->count),
		  "--baseline compares a command with another one, and nothing else", NULL },
		{ o->baseline && !o->baseline[strspn(o->baseline, " \t\n")],
		  "--baseline: there is no command in it", NULL },
		{ o->baseline && (!o->repeat || o->repeat > MAX_PAIRS),
		  "--baseline: -r may be 1 to 1000 pairs of runs", NULL },
		{ o->json && o->separator, "-j and -x cannot be combined", NULL },
		{ o->output && o->log_fd != UINT64_MAX, "-o and --log-fd cannot be combined",
		  NULL },
		{ o->append && !o->output, "--append adds to the file of -o, and there is none",
		  NULL },
		{ o->table && (o->repeat < 2 || o->json || o->separator),
		  "--table shows the runs of -r N below a table", NULL },
	};

	return keeps(rules, sizeof(rules) / sizeof(*rules));
}

char *stat_event_text(const struct stat_options *o, bool on_cpus)
{
	char *lists = event_lists_join(&o->events, o->events.count);
	char *text = lists ? realloc(lists, strlen(lists) + MORE_EVENTS) : NULL;

	if (!text) {
		free(lists);
		return NULL;
	}
	/* -M brings the events that it needs. */
	if (!o->events.count && (!o->metrics || !*o->metrics))
		sprintf(text, "%s%s", on_cpus ? "cpu-clock" : "task-clock", DEFAULT_REST);
	for (unsigned i = 0; i < o->detail && i < DETAILS; i++)
		strcat(text, details[i] + !*text);
	return text;
}

int stat_set_filters(const struct stat_options *o, struct tally_events *events)
{
	const struct tally_events_opts opts = { .size = sizeof(opts), .tables = o->tables };

	return event_lists_filter(&o->events, &o->filters, &opts, events, "stat");
}
