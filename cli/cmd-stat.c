/* SPDX-License-Identifier: MIT */
/* tally stat: counts events while a command runs, or on what runs already. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "command.h"
#include "stat.h"
#include "term.h"
#include "watch.h"

/* perf stat's defaults; on CPUs a clock of the task would stand still. */
#define DEFAULT_REST \
	",context-switches,cpu-migrations,page-faults,cycles,instructions,branches,branch-misses"

/* perf's limit is 100; ours only keeps a slip of the finger from running for years. */
#define MAX_REPEAT 1000000

/* One call of the command. */
struct job {
	struct stat_options options;
	struct targets targets; /* of the options; count 0: the command itself */
	struct tally_events *events;
	struct stat_result result;
	struct watch watch;
	FILE *to;
	char *const *argv; /* the command, *argv NULL: none */
	int status;        /* what to exit with */
};

static const char examples[] =
	"  tally stat -- make -j8                 count what a build does\n"
	"  tally stat -r 5 -e page-faults -- ls   mean and spread of five runs\n"
	"  tally stat -e '{cycles,instructions}:u' -p 1234 --duration 10\n";

static void parse_options(struct job *s, int argc, char **argv)
{
	struct stat_options *o = &s->options;
	const struct arg table[] = {
		{ 'e', "event", "LIST", "events to count, as 'tally list' shows them", ARG_TEXTS,
		  &o->events },
		{ 'a', "all-cpus", NULL, "count on all CPUs", ARG_FLAG, &o->target.all },
		{ 'C', "cpu", "LIST", "count on these CPUs, as 0-3,8", ARG_TEXT, &o->target.cpus },
		{ 'p', "pid", "PID", "count a running process, its threads and their children",
		  ARG_TEXT, &o->target.pids },
		{ 't', "tid", "TID", "count a running thread alone", ARG_TEXT, &o->target.tids },
		{ 'i', "no-inherit", NULL, "do not count children and new threads", ARG_FLAG,
		  &o->no_inherit },
		{ 'n', "null", NULL, "count nothing, only measure times", ARG_FLAG, &o->null_run },
		{ 'r', "repeat", "N", "run the command N times: mean and spread; 0: for ever",
		  ARG_U64, &o->repeat },
		{ 0, "duration", "SECONDS", "stop then; a command gets SIGTERM", ARG_SECONDS,
		  &o->duration },
		{ 'o', "output", "FILE", "results to FILE instead of stderr; -: to stdout",
		  ARG_TEXT, &o->output },
		{ 'j', "json", NULL, "results as JSON, one object a line", ARG_FLAG, &o->json },
		{ 'B', "big-num", NULL, "separate thousands (default)", ARG_FLAG, &o->big_num },
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

	o->repeat = 1;
	o->big_num = true;
	int at = args_parse(&args, argc, argv);
	s->argv = at < 0 ? NULL : argv + at;
	s->status = at < 0 ? args_status(at) : EXIT_DONE;
}

static bool check_options(struct job *s)
{
	const struct stat_options *o = &s->options;

	if (!targets_parse(&s->targets, &o->target, "stat"))
		return false;
	if (!*s->argv && !s->targets.count) {
		complain("stat", "there is nothing to count: name a command, or -p, -t, -a or -C");
		hint("tally stat -- CMD [ARG...]");
		return false;
	}
	if (!*s->argv && o->repeat != 1) {
		complain("stat", "-r repeats a command, and there is none");
		return false;
	}
	if (o->repeat > MAX_REPEAT) {
		complain("stat", "-r: at most %d runs; 0 runs for ever", MAX_REPEAT);
		return false;
	}
	if (o->null_run && o->events.count) {
		complain("stat", "-n counts nothing, so -e cannot be combined with it");
		return false;
	}
	return true;
}

/* The lists of all -e joined, or the default; malloc'ed. */
static char *event_text(const struct job *s)
{
	const struct texts *given = &s->options.events;
	bool on_cpus = s->targets.count && s->targets.at[0].scope == TALLY_SCOPE_CPUS;
	size_t size = 128;

	for (unsigned i = 0; i < given->count; i++)
		size += strlen(given->at[i]) + 1;
	char *text = malloc(size), *end = text;
	if (!text)
		return NULL;
	*end = '\0';
	for (unsigned i = 0; i < given->count; i++)
		end += sprintf(end, "%s%s", i ? "," : "", given->at[i]);
	if (!given->count)
		sprintf(text, "%s%s", on_cpus ? "cpu-clock" : "task-clock", DEFAULT_REST);
	return text;
}

static int make_rows(struct job *s)
{
	uint32_t count = s->events ? tally_events_count(s->events) : 0;

	s->result.rows = calloc(count ? count : 1, sizeof(*s->result.rows));
	if (!s->result.rows) {
		complain("stat", "no memory for the results");
		return EXIT_FAILED;
	}
	s->result.count = count;
	for (uint32_t i = 0; i < count; i++)
		s->result.rows[i].event = tally_events_at(s->events, i);
	return EXIT_DONE;
}

static int parse_events(struct job *s)
{
	struct tally_events_opts opts = {
		.size = sizeof(opts),
		.fallback = TALLY_FALLBACK_NEWER_BITS | TALLY_FALLBACK_USER_ONLY,
	};
	struct tally_error err = { 0 };
	char *text = s->options.null_run ? NULL : event_text(s);

	if (!text)
		return s->options.null_run ? make_rows(s) : EXIT_FAILED;
	int r = tally_events_parse(&s->events, text, &opts, &err);
	free(text);
	if (r == 0)
		return make_rows(s);
	complain("stat", "%s", err.text);
	return err.cause == TALLY_CAUSE_SYNTAX || err.cause == TALLY_CAUSE_UNKNOWN ? EXIT_USAGE
										   : EXIT_FAILED;
}

static int open_output(struct job *s)
{
	const char *path = s->options.output;
	int fd;

	s->to = stderr;
	if (path && !strcmp(path, "-"))
		s->to = stdout;
	else if (path) {
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
		s->to = fd < 0 ? NULL : fdopen(fd, "w");
		if (!s->to) {
			complain("stat", "cannot write to '%s': %s", path, strerror(errno));
			return EXIT_FAILED;
		}
	}
	return EXIT_DONE;
}

static int close_output(struct job *s)
{
	bool bad = fflush(s->to) != 0 || ferror(s->to);

	if (s->to != stderr && s->to != stdout)
		bad |= fclose(s->to) != 0;
	s->to = NULL;
	if (!bad)
		return EXIT_DONE;
	complain("stat", "the results could not be written to '%s': %s",
		 s->options.output ? s->options.output : "stderr", strerror(errno));
	return EXIT_FAILED;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int failed(struct job *s, const struct tally_error *err)
{
	complain("stat", "%s", err->text);
	s->status = err->cause != TALLY_CAUSE_EXEC ? EXIT_FAILED
		    : err->code == -ENOENT         ? EXIT_NOT_FOUND
						   : EXIT_CANNOT_RUN;
	return -1;
}

/* Lets the command go and waits for its end, its times into the result. */
static int run_command(struct job *s, struct tally_launch *launch)
{
	struct tally_error err = { 0 };
	struct tally_exit end;

	if (tally_launch_go(launch, &err) < 0)
		return failed(s, &err);
	if (watch_command(&s->watch, launch, s->options.duration, &end, &err) < 0) {
		tally_launch_kill(launch, SIGKILL);
		return failed(s, &err);
	}
	moments_add(&s->result.wall, (double)end.wall_ns * 1e-9);
	moments_add(&s->result.user, (double)end.user_ns * 1e-9);
	moments_add(&s->result.sys, (double)end.sys_ns * 1e-9);
	s->status = end.status;
	return 0;
}

static int watch_others(struct job *s)
{
	double start = now();

	watch_targets(&s->watch, &s->targets, s->options.duration);
	moments_add(&s->result.wall, now() - start);
	return 0;
}

static int count_failed(struct job *s, const char *what, int code)
{
	complain("stat", "cannot %s the counters: %s", what, strerror(-code));
	s->status = EXIT_FAILED;
	return -1;
}

/* Counts one run with open counters; a command of its own is counted from its exec on. */
static int count_run(struct job *s, struct stat_counters *counters, struct tally_launch *launch)
{
	bool others = s->targets.count > 0;
	int r = others ? stat_enable(counters) : 0;

	if (r < 0)
		return count_failed(s, "start", r);
	if ((launch ? run_command(s, launch) : watch_others(s)) < 0)
		return -1;
	r = others ? stat_disable(counters) : 0;
	if (r == 0)
		r = stat_read(counters, &s->result);
	if (r < 0)
		return count_failed(s, "read", r);
	stat_take_run(&s->result);
	return 0;
}

static int open_and_run(struct job *s)
{
	struct tally_launch *launch = NULL;
	struct stat_counters *counters = NULL;
	struct targets own = { .count = 1 };
	struct tally_error err = { 0 };
	int r = -1;

	if (*s->argv && watch_launch(&s->watch, &launch, s->argv, &err) < 0)
		return failed(s, &err);
	if (launch)
		own.at[0] = (struct tally_target){ .scope = TALLY_SCOPE_COMMAND,
						   .id = tally_launch_pid(launch) };
	if (stat_open(&counters, &s->result, s->events, s->targets.count ? &s->targets : &own,
		      &s->options, &err) < 0)
		failed(s, &err);
	else
		r = count_run(s, counters, launch);
	stat_close(counters);
	tally_launch_close(launch);
	return r;
}

static void print(struct job *s)
{
	if (s->options.json)
		stat_print_json(s->to, &s->result);
	else
		stat_print_table(s->to, &s->result, &s->options, s->argv);
	fflush(s->to);
}

static void forget_runs(struct stat_result *result)
{
	for (uint32_t i = 0; i < result->count; i++)
		result->rows[i] = (struct stat_row){ .event = result->rows[i].event };
	*result = (struct stat_result){ .rows = result->rows, .count = result->count };
}

/* All runs; -r 0 shows each by itself, since there is no last one. */
static void count(struct job *s)
{
	uint64_t wanted = s->options.repeat;
	int r = 0;

	for (uint64_t i = 0; (!wanted || i < wanted) && r == 0 && !s->watch.stopped; i++) {
		r = open_and_run(s);
		if (r == 0 && !wanted) {
			print(s);
			forget_runs(&s->result);
		}
	}
	if (s->result.runs)
		print(s);
}

static int run(int argc, char **argv)
{
	struct job s = { 0 };

	parse_options(&s, argc, argv);
	if (!s.argv)
		return s.status;
	if (!check_options(&s))
		return EXIT_USAGE;
	s.status = parse_events(&s);
	if (s.status == EXIT_DONE)
		s.status = open_output(&s);
	if (s.status == EXIT_DONE && !watch_start(&s.watch, "stat"))
		s.status = EXIT_FAILED;
	if (s.status == EXIT_DONE) {
		count(&s);
		watch_stop(&s.watch);
	}
	if (s.to && close_output(&s) != EXIT_DONE && s.status == EXIT_DONE)
		s.status = EXIT_FAILED;
	free(s.result.rows);
	tally_events_free(s.events);
	return s.status;
}

const struct command cmd_stat = { "stat", "count events while a command runs", run };
