/* SPDX-License-Identifier: MIT */
/* tally stat: counts events while a command runs, or on what runs already. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "stat.h"
#include "term.h"
#include "watch.h"

/* One call of the command. */
struct job {
	struct stat_options options;
	struct targets targets; /* of the options; count 0: the command itself */
	struct tally_events *events;
	struct stat_result result;
	struct stat_metrics metrics;
	struct stat_counters *counters; /* of the run that is being counted */
	struct watch watch;
	double began, printed; /* when counting did, and up to when it was printed */
	double begins;         /* when it will, after a delay; 0: at once */
	uint64_t intervals;    /* how many were printed */
	int tick_error;        /* of the library, -errno */
	FILE *to;
	char *const *argv; /* the command, *argv NULL: none */
	int status;        /* what to exit with */
};

static bool on_cpus(const struct job *s)
{
	return s->targets.count && s->targets.at[0].scope == TALLY_SCOPE_CPUS;
}

static int make_rows(struct job *s)
{
	uint32_t count = s->events ? tally_events_count(s->events) : 0;
	struct stat_result *result = &s->result;

	result->rows = calloc(count + 1, sizeof(*result->rows));
	if (s->options.table)
		result->walls = calloc(s->options.repeat, sizeof(*result->walls));
	if (!result->rows || (s->options.table && !result->walls)) {
		complain("stat", "no memory for the results");
		return EXIT_FAILED;
	}
	result->count = count;
	result->by = s->options.by;
	for (uint32_t i = 0; i < count; i++)
		result->rows[i] = (struct stat_row){ .event = tally_events_at(s->events, i),
						     .cgroup = NO_CGROUP };
	int r = stat_set_cgroups(&s->options, result);
	return r == EXIT_DONE ? stat_set_filters(&s->options, s->events) : r;
}

/* The events of -e and -d, and those that metrics need; malloc'ed, NULL: no memory. */
static char *event_text(const struct job *s)
{
	char *text = stat_event_text(&s->options, on_cpus(s));

	return text ? stat_metrics_events(&s->metrics, text) : NULL;
}

static int parse_events(struct job *s)
{
	struct tally_events_opts opts = {
		.size = sizeof(opts),
		.fallback = TALLY_FALLBACK_NEWER_BITS | TALLY_FALLBACK_USER_ONLY,
		.tables = s->options.tables,
	};
	struct tally_error err = { 0 };

	if (s->options.null_run)
		return make_rows(s);
	char *text = event_text(s);
	if (!text) {
		complain("stat", "no memory for the events");
		return EXIT_FAILED;
	}
	int r = tally_events_parse(&s->events, text, &opts, &err);
	free(text);
	if (r == 0)
		return make_rows(s);
	complain("stat", "%s", err.text);
	return err.cause == TALLY_CAUSE_SYNTAX || err.cause == TALLY_CAUSE_UNKNOWN ? EXIT_USAGE
										   : EXIT_FAILED;
}

static int ignore_event(const struct tally_event_info *info, void *arg)
{
	(void)info;
	(void)arg;
	return 0;
}

/* A folder without tables is told even where no name had to be looked up in it. */
static int check_tables(const char *folder)
{
	struct tally_error err;

	if (!folder || tally_event_each("", TALLY_OPTS(events, .tables = folder), ignore_event,
					NULL, &err) >= 0)
		return EXIT_DONE;
	complain("stat", "--event-tables: %s", err.text);
	return EXIT_FAILED;
}

static int read_metrics(struct job *s)
{
	const struct stat_options *o = &s->options;

	if (!o->metrics)
		return EXIT_DONE;
	/* All CPUs are all threads of each core; a list of CPUs may leave some out. */
	s->metrics.names.tables = o->tables;
	return stat_metrics_read(&s->metrics, o->metrics, on_cpus(s), !o->target.cpus);
}

static int open_output(struct job *s)
{
	const struct stat_options *o = &s->options;
	int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (o->append ? O_APPEND : O_TRUNC), fd;

	s->to = stderr;
	if (o->output && !strcmp(o->output, "-")) {
		s->to = stdout;
	} else if (o->output) {
		fd = open(o->output, flags, 0666);
		s->to = fd < 0 ? NULL : fdopen(fd, "w");
	} else if (o->log_fd != UINT64_MAX) {
		fd = o->log_fd > INT32_MAX ? -1 : fcntl((int)o->log_fd, F_DUPFD_CLOEXEC, 3);
		s->to = fd < 0 ? NULL : fdopen(fd, "w");
	}
	if (s->to)
		return EXIT_DONE;
	if (o->output)
		complain("stat", "cannot write to '%s': %s", o->output, strerror(errno));
	else
		complain("stat", "cannot write to descriptor %llu: %s",
			 (unsigned long long)o->log_fd, strerror(errno));
	return EXIT_FAILED;
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

static int failed(struct job *s, const struct tally_error *err)
{
	complain("stat", "%s", err->text);
	s->status = err->cause != TALLY_CAUSE_EXEC ? EXIT_FAILED
		    : err->code == -ENOENT         ? EXIT_NOT_FOUND
						   : EXIT_CANNOT_RUN;
	return -1;
}

/* As watch_launch; false: said, or stopped by a signal. */
static bool launch_command(struct job *s, char *const *argv, struct tally_launch **launch)
{
	struct tally_error err = { 0 };
	int r = watch_launch(&s->watch, launch, argv, &err);

	if (r == -EINTR && s->watch.stopped)
		s->status = 128 + s->watch.signal;
	else if (r < 0)
		failed(s, &err);
	return r == 0;
}

static int count_failed(struct job *s, const char *what, int code)
{
	complain("stat", "cannot %s the counters: %s", what, strerror(-code));
	s->status = EXIT_FAILED;
	return -1;
}

static void print(struct job *s)
{
	const struct stat_options *o = &s->options;

	const struct stat_metrics *metrics = o->metrics ? &s->metrics : NULL;

	if (o->quiet)
		return;
	if (o->json)
		stat_print_json(s->to, &s->result);
	else if (o->separator)
		stat_print_csv(s->to, &s->result, o->separator);
	else if (o->interval_ms)
		stat_print_interval(s->to, &s->result, o, s->intervals);
	else
		stat_print_table(s->to, &s->result, o, metrics, s->argv);
	if (metrics && (o->json || o->separator || o->interval_ms))
		stat_metrics_print(s->to, metrics, &s->result, o);
	fflush(s->to);
}

/* Prints what was counted since the last time. */
static int print_interval(struct job *s, double now)
{
	int r = stat_read(s->counters, &s->result);

	if (r < 0)
		return r;
	stat_take_interval(&s->result, now - s->printed);
	s->result.interval = now - s->began;
	print(s);
	s->printed = now;
	s->intervals++;
	return 0;
}

static bool counted_out(const struct job *s)
{
	return s->options.interval_count && s->intervals == s->options.interval_count;
}

/* The time of the next interval, where the ones that are over already are left out. */
static double next_interval(const struct job *s, double now)
{
	double length = (double)s->options.interval_ms * 1e-3;

	if (s->options.interval_ms == 0)
		return 0;
	return s->began + length * ((double)(uint64_t)((now - s->began) / length) + 1);
}

static void begin(struct job *s, double now)
{
	s->began = s->printed = now;
	s->begins = 0;
	s->result.disabled = false;
}

/* See struct watch: the end of the delay, and of each interval. */
static double tick(void *arg, double now)
{
	struct job *s = arg;

	if (s->begins > 0) {
		s->tick_error = stat_enable(s->counters);
		begin(s, now);
	} else {
		s->tick_error = print_interval(s, now);
	}
	return s->tick_error < 0 || counted_out(s) ? TICK_STOP : next_interval(s, now);
}

static void set_ticks(struct job *s, double now)
{
	begin(s, now);
	if (s->options.delay_ms > 0) {
		s->begins = now + (double)s->options.delay_ms * 1e-3;
		s->result.disabled = true;
	}
	s->watch.tick = tick;
	s->watch.tick_arg = s;
	s->watch.tick_at = s->begins > 0 ? s->begins : next_interval(s, now);
}

static double duration(const struct stat_options *o)
{
	return o->timeout_ms ? (double)o->timeout_ms * 1e-3 : o->duration;
}

/* Lets the command go and waits for its end, its times into the result. */
static int run_command(struct job *s, struct tally_launch *launch)
{
	struct stat_result *result = &s->result;
	struct tally_error err = { 0 };
	struct tally_exit end;

	if (tally_launch_go(launch, &err) < 0)
		return failed(s, &err);
	if (watch_command(&s->watch, launch, duration(&s->options), &end, &err) < 0) {
		tally_launch_kill(launch, SIGKILL);
		return failed(s, &err);
	}
	bool delayed = s->options.delay_ms > 0;
	moments_add(&result->wall, delayed ? watch_now() - s->began : (double)end.wall_ns * 1e-9);
	moments_add(&result->user, (double)end.user_ns * 1e-9);
	moments_add(&result->sys, (double)end.sys_ns * 1e-9);
	moments_add(&result->rss, (double)end.max_rss_bytes);
	s->status = end.status;
	return 0;
}

static int watch_others(struct job *s)
{
	watch_targets(&s->watch, &s->targets, duration(&s->options));
	moments_add(&s->result.wall, watch_now() - s->began);
	return 0;
}

/* What was counted when all is over. */
static int take_results(struct job *s)
{
	struct stat_result *result = &s->result;
	bool last = s->options.interval_ms && !counted_out(s) && s->begins == 0;
	int r = s->tick_error;

	if (r == 0 && s->options.interval_ms)
		r = last ? print_interval(s, watch_now()) : 0;
	else if (r == 0)
		r = stat_read(s->counters, result);
	if (r < 0)
		return count_failed(s, "read", r);
	stat_explain(s->counters, result);
	if (!s->options.interval_ms)
		stat_take_run(result);
	if (result->walls)
		result->walls[result->runs - 1] = result->wall.last;
	return 0;
}

/* Counts one run with open counters; a command of its own is counted from its exec on. */
static int count_run(struct job *s, struct tally_launch *launch)
{
	bool others = s->targets.count > 0;
	int r = others && s->options.delay_ms == 0 ? stat_enable(s->counters) : 0;

	if (r < 0)
		return count_failed(s, "start", r);
	set_ticks(s, watch_now());
	if ((launch ? run_command(s, launch) : watch_others(s)) < 0)
		return -1;
	r = others ? stat_disable(s->counters) : 0;
	return r < 0 ? count_failed(s, "stop", r) : take_results(s);
}

/* The command itself; after a delay it is a process like any other, which no exec enables. */
static void aim_at(struct targets *own, const struct tally_launch *launch, bool delayed)
{
	own->count = 1;
	own->at[0] = (struct tally_target){
		.scope = delayed ? TALLY_SCOPE_PROCESS : TALLY_SCOPE_COMMAND,
		.id = tally_launch_pid(launch),
	};
}

static int open_and_run(struct job *s)
{
	struct tally_launch *launch = NULL;
	struct targets own = { 0 };
	struct tally_error err = { 0 };
	int r = -1;

	if (*s->argv && !launch_command(s, s->argv, &launch))
		return -1;
	if (launch)
		aim_at(&own, launch, s->options.delay_ms > 0);
	if (stat_open(&s->counters, &s->result, s->events, s->targets.count ? &s->targets : &own,
		      &s->options, &err) < 0)
		failed(s, &err);
	else
		r = count_run(s, launch);
	stat_close(s->counters);
	s->counters = NULL;
	tally_launch_close(launch);
	return r;
}

/* Runs what --pre or --post say; a run without them would measure something else. */
static int run_beside(struct job *s, const char *option, const char *text)
{
	char shell[] = "sh", flag[] = "-c", *copy = text ? strdup(text) : NULL;
	char *const argv[] = { shell, flag, copy, NULL };
	struct tally_launch *launch = NULL;
	struct tally_error err = { 0 };
	struct tally_exit end = { 0 };
	int r = 0;

	if (!text)
		return 0;
	if (!copy) {
		complain("stat", "no memory for %s", option);
		s->status = EXIT_FAILED;
		return -1;
	}
	if (!launch_command(s, argv, &launch))
		r = -1;
	else if (tally_launch_go(launch, &err) < 0 ||
		 watch_command(&s->watch, launch, 0, &end, &err) < 0)
		r = failed(s, &err);
	else if (end.status) {
		complain("stat", "%s: '%s' exited with %d", option, text, end.status);
		s->status = EXIT_FAILED;
		r = -1;
	}
	tally_launch_close(launch);
	free(copy);
	return r;
}

static int one_run(struct job *s)
{
	int r = run_beside(s, "--pre", s->options.pre);

	s->watch.tick_at = 0;
	if (r == 0 && !s->watch.stopped)
		r = open_and_run(s);
	s->watch.tick_at = 0;
	return r == 0 ? run_beside(s, "--post", s->options.post) : r;
}

/* All runs; -r 0 shows each by itself, since there is no last one. */
static void count(struct job *s)
{
	uint64_t wanted = s->options.repeat;
	int r = 0;

	for (uint64_t i = 0; (!wanted || i < wanted) && r == 0 && !s->watch.stopped; i++) {
		r = one_run(s);
		if (r == 0 && !wanted) {
			print(s);
			stat_forget(&s->result);
		}
	}
	if (s->options.interval_ms) {
		if (r == 0 && !s->options.json && !s->options.separator && !s->options.quiet)
			stat_print_notes(s->to, &s->result, false);
	} else if (s->result.runs) {
		print(s);
	}
}

/* See struct stat_runner. */
static int run_for_pairs(void *arg, char *const *argv)
{
	struct job *s = arg;
	char *const *own = s->argv;

	s->argv = argv;
	int r = one_run(s);
	s->argv = own;
	return s->watch.stopped ? STAT_STOPPED : r < 0 ? r : s->status;
}

static void compare_with_baseline(struct job *s)
{
	struct stat_runner runner = { run_for_pairs, s };
	int r = stat_baseline(s->to, &s->options, &s->result, s->argv, &runner);

	if (r != EXIT_DONE && s->status == EXIT_DONE)
		s->status = r;
}

/* Counts, and answers what to exit with. */
static int count_to_output(struct job *s)
{
	int r = open_output(s);

	if (r == EXIT_DONE && watch_start(&s->watch, "stat")) {
		s->status = EXIT_DONE;
		if (s->options.baseline)
			compare_with_baseline(s);
		else
			count(s);
		watch_stop(&s->watch);
	} else {
		s->status = EXIT_FAILED;
	}
	if (s->to && close_output(s) != EXIT_DONE && s->status == EXIT_DONE)
		s->status = EXIT_FAILED;
	return s->status;
}

/* perf ends by the signal that ended its counting, so that a shell's loop ends too. */
static void end_by_signal(const struct job *s)
{
	if (!s->watch.signal || *s->argv)
		return;
	signal(s->watch.signal, SIG_DFL);
	raise(s->watch.signal);
}

static int run(int argc, char **argv)
{
	struct job s = { 0 };

	s.status = stat_options_parse(&s.options, argc, argv, &s.argv);
	if (!s.argv)
		return s.status;
	if (!targets_parse(&s.targets, &s.options.target, "stat") ||
	    !stat_options_check(&s.options, &s.targets, *s.argv))
		return EXIT_USAGE;
	s.status = check_tables(s.options.tables);
	if (s.status == EXIT_DONE)
		s.status = read_metrics(&s);
	if (s.status == EXIT_DONE)
		s.status = parse_events(&s);
	if (s.status == EXIT_DONE)
		s.status = count_to_output(&s);
	stat_keys_free(&s.result);
	free(s.result.rows);
	free(s.result.walls);
	free(s.result.cgroups);
	stat_metrics_free(&s.metrics);
	tally_events_free(s.events);
	end_by_signal(&s);
	return s.status;
}

const struct command cmd_stat = { "stat", "count events while a command runs", run };
