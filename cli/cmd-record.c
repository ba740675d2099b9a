/* SPDX-License-Identifier: MIT */
/* tally record: samples a command, a process or the machine into a perf.data file. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "command.h"
#include "event-lists.h"
#include "record.h"
#include "stream.h"
#include "term.h"

/* perf's default: cycles as precise as they go, and the clock where there are none. */
#define DEFAULT_EVENT "cycles:P"

/* How often a person sees progress, and how long a step may wait while a command runs. */
#define PROGRESS_NS (500 * 1000000ull)
#define STEP_MS     100
/* Who gives commands waits for their ack, and nothing else wakes a step for them. */
#define CONTROL_MS 5

/* What one recording needs; all of it is closed by close_job. */
struct job {
	struct record_options o;
	struct tally_events *events;
	struct tally_launch *launch;
	struct tally_recorder *recorder;
	struct targets targets;
	struct tally_target target;
	struct schedule schedule;
	struct control control;
	struct rotation rotation;
	char **argv;
	const char **cmdline; /* words for the file's header */
	uint64_t started_ns, shown_ns;
	bool stopped;   /* by --control */
	bool all_ended; /* the recording is over since nothing is left of the command */
};

static volatile sig_atomic_t interrupts, switches;

static void on_signal(int signal)
{
	(void)signal;
	interrupts++;
}

static void on_switch(int signal)
{
	(void)signal;
	switches++;
}

static uint64_t monotonic(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t running_ms(const struct job *s)
{
	return (monotonic() - s->started_ns) / 1000000;
}

static int fail(const struct tally_error *err)
{
	complain("record", "%s", err->text);
	return EXIT_FAILED;
}

/* Who called sudo shall own the file. */
static uint32_t sudo_id(const char *name)
{
	const char *text = getenv(name);
	char *end;

	if (geteuid() != 0 || !text || !*text)
		return 0;
	unsigned long id = strtoul(text, &end, 10);
	return *end || id >= UINT32_MAX ? 0 : (uint32_t)id + 1;
}

/* ---- before it starts ---- */

/* One target, and one only: a recording has one set of rings. */
static int choose_target(struct job *s)
{
	if (!targets_parse(&s->targets, &s->o.target, "record") ||
	    !record_options_check(&s->o, &s->targets, s->argv[0]))
		return EXIT_USAGE;
	if (!strcmp(s->o.output, "-") && !stream_check("record"))
		return EXIT_USAGE;
	s->target = s->targets.at[0];
	if (!s->targets.count)
		s->target.scope = TALLY_SCOPE_COMMAND;
	if (s->o.cgroup) {
		s->target.scope = TALLY_SCOPE_CGROUP;
		s->target.cgroup = s->o.cgroup;
	}
	return EXIT_DONE;
}

static int read_course(struct job *s)
{
	if (!schedule_parse(&s->schedule, s->o.delay)) {
		complain("record",
			 "-D: '%s' is neither a number of milliseconds, nor -1, nor ascending "
			 "ranges as 10-20,30-40",
			 s->o.delay);
		return EXIT_USAGE;
	}
	if (s->schedule.starts_off && !s->schedule.count && !s->o.control) {
		complain("record", "-D -1 waits for somebody to enable the events, and nobody can");
		hint("add --control");
		return EXIT_USAGE;
	}
	return rotation_parse(&s->rotation, &s->o) && control_open(&s->control, s->o.control)
		       ? EXIT_DONE
		       : EXIT_USAGE;
}

static int parse_events(struct job *s)
{
	struct tally_events_opts opts = {
		.size = sizeof(opts),
		.fallback = TALLY_FALLBACK_NEWER_BITS | TALLY_FALLBACK_USER_ONLY,
		.tables = s->o.tables,
	};
	struct tally_error err = { 0 };
	char *text = s->o.events.count ? event_lists_join(&s->o.events, s->o.events.count)
				       : strdup(DEFAULT_EVENT);

	if (!text) {
		complain("record", "no memory for the events");
		return EXIT_FAILED;
	}
	if (!s->o.events.count)
		opts.fallback |= TALLY_FALLBACK_PRECISE | TALLY_FALLBACK_CPU_CLOCK;
	int r = tally_events_parse(&s->events, text, &opts, &err);
	free(text);
	if (r == 0)
		return event_lists_filter(&s->o.events, &s->o.filters, &opts, s->events, "record");
	fail(&err);
	bool typed = err.cause == TALLY_CAUSE_SYNTAX || err.cause == TALLY_CAUSE_UNKNOWN;
	return typed ? EXIT_USAGE : EXIT_FAILED;
}

/* argv[0] is "record": the file says what was typed, program first, as perf's do. */
static bool keep_words(struct job *s, int argc, char **argv)
{
	s->cmdline = calloc((size_t)argc + 2, sizeof(*s->cmdline));
	if (!s->cmdline)
		return false;
	s->cmdline[0] = "tally";
	for (int i = 0; i < argc; i++)
		s->cmdline[i + 1] = argv[i];
	return true;
}

static int open_recorder(struct job *s, struct tally_error *err)
{
	struct tally_sampler_opts sampling;
	struct tally_recorder_opts opts = {
		.size = sizeof(opts),
		.path = s->o.output,
		.max_bytes = s->o.max_size,
		.cmdline = s->cmdline,
		.owner_uid_plus_1 = sudo_id("SUDO_UID"),
		.owner_gid_plus_1 = sudo_id("SUDO_GID"),
		.sampler = &sampling,
	};
	int status = record_sampling(&s->o, s->events, &sampling);

	if (status)
		return status;
	if (!record_level(&s->o, &opts.compress))
		return EXIT_USAGE;
	if (!s->o.no_cache)
		opts.flags |= TALLY_RECORDER_KEEP;
	/* Events that may be off for a while leave it to another to tell what is mapped. */
	if (s->schedule.starts_off || s->o.control)
		opts.flags |= TALLY_RECORDER_SIDE_BAND;
	if (s->schedule.starts_off)
		opts.flags |= TALLY_RECORDER_DISABLED;
	if (!s->o.keep_stacks)
		opts.flags |= TALLY_RECORDER_UNWIND;
	int r = tally_recorder_open(&s->recorder, s->events, &s->target, &opts, err);
	return r < 0 ? fail(err) : EXIT_DONE;
}

/* ---- while it runs ---- */

static bool shows_progress(const struct job *s)
{
	return !s->o.quiet && isatty(STDERR_FILENO);
}

static void show_progress(struct job *s)
{
	struct tally_recording now;
	uint64_t time = monotonic();

	if (!shows_progress(s) || time - s->shown_ns < PROGRESS_NS)
		return;
	s->shown_ns = time;
	tally_recorder_progress(s->recorder, &now);
	record_say_progress(&now, (double)(time - s->started_ns) / 1e9);
}

static uint64_t bytes_so_far(struct job *s)
{
	struct tally_recording now;

	tally_recorder_progress(s->recorder, &now);
	return now.bytes;
}

/* Ends this file under a name of its own and begins another. */
static int switch_output(struct job *s, struct tally_error *err)
{
	const char *name;

	if (rotation_name(&s->rotation, s->o.output, bytes_so_far(s), monotonic(), &name) < 0) {
		snprintf(err->text, sizeof(err->text), "no memory for a file's name");
		return -ENOMEM;
	}
	int r = tally_recorder_switch(s->recorder, name, err);
	if (r == 0 && !s->o.quiet)
		complain("record", "wrote %s", name);
	rotation_trim(&s->rotation);
	return r;
}

static int switch_if_due(struct job *s, struct tally_error *err)
{
	bool by_measure = s->rotation.bytes || s->rotation.period_ns;
	bool due = switches ||
		   (by_measure && rotation_due(&s->rotation, bytes_so_far(s), monotonic()));

	if (!due || !s->rotation.wanted)
		return 0;
	switches = 0;
	return switch_output(s, err);
}

static int set_enabled(struct job *s, uint32_t event, bool on, struct tally_error *err)
{
	return on ? tally_recorder_enable(s->recorder, event, err)
		  : tally_recorder_disable(s->recorder, event, err);
}

static int keep_schedule(struct job *s, struct tally_error *err)
{
	int r = 0;
	bool on;

	while (r == 0 && schedule_due(&s->schedule, running_ms(s), &on))
		r = set_enabled(s, UINT32_MAX, on, err);
	return r;
}

/* All events, or the one that is named. */
static int obey_switch(struct job *s, const char *name, bool on, struct tally_error *err)
{
	uint32_t event = 0, count = tally_events_count(s->events);

	if (!*name)
		return set_enabled(s, UINT32_MAX, on, err);
	while (event < count && strcmp(tally_event_name(tally_events_at(s->events, event)), name))
		event++;
	if (event < count)
		return set_enabled(s, event, on, err);
	complain("record", "--control: '%s' is not recorded", name);
	return 1;
}

static int list_events(const struct job *s)
{
	for (uint32_t i = 0; i < tally_events_count(s->events); i++)
		complain("record", "event %s", tally_event_name(tally_events_at(s->events, i)));
	return 0;
}

/* 0: done; above: not, and that was said; -errno with `err`. */
static int obey(struct job *s, enum control_command command, const char *argument,
		struct tally_error *err)
{
	switch (command) {
	case CONTROL_ENABLE:
	case CONTROL_DISABLE:
		return obey_switch(s, argument, command == CONTROL_ENABLE, err);
	case CONTROL_SNAPSHOT:
		if (s->rotation.wanted)
			return switch_output(s, err);
		complain("record", "--control: snapshot needs --switch-output");
		return 1;
	case CONTROL_STOP:
		s->stopped = true;
		return 0;
	case CONTROL_EVLIST:
		return list_events(s);
	case CONTROL_PING:
		return 0;
	default:
		complain("record", "--control: there is no command '%s'", argument);
		return 1;
	}
}

static int obey_all(struct job *s, struct tally_error *err)
{
	enum control_command command;
	const char *argument;
	int r = 0;

	while (r >= 0 && !s->stopped &&
	       (command = control_next(&s->control, &argument)) != CONTROL_NONE) {
		r = obey(s, command, argument, err);
		if (r == 0)
			control_done(&s->control);
	}
	return r < 0 ? r : 0;
}

/* How long a step may wait; 0: the time is over. */
static int step_ms(const struct job *s)
{
	int most = s->control.fd >= 0 ? CONTROL_MS : STEP_MS;

	most = schedule_wait(&s->schedule, running_ms(s), most);
	if (s->o.duration <= 0)
		return most > 0 ? most : 1;
	uint64_t gone = monotonic() - s->started_ns, limit = (uint64_t)(s->o.duration * 1e9);
	uint64_t left = gone < limit ? (limit - gone) / 1000000 + 1 : 0;
	return left < (uint64_t)most ? (int)left : most > 0 ? most : 1;
}

static bool command_ended(struct job *s, struct tally_exit *end)
{
	int got = s->launch ? tally_launch_wait(s->launch, 0, end, NULL) : 0;

	return got == 1 || got == -ECHILD;
}

static bool is_full(struct job *s)
{
	return s->o.max_size && bytes_so_far(s) >= s->o.max_size;
}

/* Runs until the target ends, the time is over, a signal or a command comes, or writing fails. */
static int loop(struct job *s, struct tally_exit *end, struct tally_error *err)
{
	int r = 1, wait_ms;

	s->shown_ns = s->started_ns;
	while (r > 0 && !interrupts && !s->stopped && (wait_ms = step_ms(s)) > 0) {
		r = tally_recorder_step(s->recorder, wait_ms, err);
		if (r == -EINTR)
			r = 1;
		int other = r < 0 ? r : keep_schedule(s, err);
		if (other == 0)
			other = obey_all(s, err);
		if (other == 0)
			other = switch_if_due(s, err);
		if (other < 0)
			r = other;
		show_progress(s);
		if (command_ended(s, end))
			break;
	}
	if (shows_progress(s))
		fputs("\r\033[K", stderr);
	s->all_ended = r == 0 && s->target.scope == TALLY_SCOPE_COMMAND && !is_full(s);
	return r < 0 ? r : 0;
}

/* A command that outlives its recording is ended, as perf does; a second interrupt kills it. */
static void end_command(struct job *s, struct tally_exit *end)
{
	int before = interrupts, got;

	/* Its events end a moment before it can be waited for. */
	do
		got = tally_launch_wait(s->launch, s->all_ended ? -1 : 0, end, NULL);
	while (got == -EINTR && interrupts == before);
	if (got == 1 || got == -ECHILD)
		return;
	if (!s->o.quiet)
		complain("record", "ending '%s' (SIGTERM): its recording is over", s->argv[0]);
	tally_launch_kill(s->launch, SIGTERM);
	while ((got = tally_launch_wait(s->launch, -1, end, NULL)) == -EINTR)
		if (interrupts > before)
			tally_launch_kill(s->launch, SIGKILL);
}

static void catch_signals(const struct job *s)
{
	struct sigaction action = { .sa_handler = on_signal };

	/* Ignored by who started us, it would keep the command's status from us. */
	signal(SIGCHLD, SIG_DFL);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	action.sa_handler = on_switch;
	if (s->rotation.wanted)
		sigaction(SIGUSR2, &action, NULL);
}

/* So that writing fails with words. After the fork: a command must not inherit what is ignored. */
static void ignore_write_signals(void)
{
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
}

/* Nothing was recorded: no file remains, and an older one has its name back. */
static int discard(struct job *s, const struct tally_error *err, int status)
{
	complain("record", "%s", err->text);
	tally_recorder_discard(s->recorder);
	s->recorder = NULL;
	return status;
}

/* Starts counting and the command. */
static int start(struct job *s)
{
	struct tally_error err;

	if (tally_recorder_start(s->recorder, &err) < 0)
		return discard(s, &err, EXIT_FAILED);
	s->started_ns = s->rotation.since_ns = monotonic();
	if (!s->launch || tally_launch_go(s->launch, &err) == 0)
		return EXIT_DONE;
	return discard(s, &err, err.code == -ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN);
}

/* The last file has a name of its own, too, as perf gives it. */
static int name_last(struct job *s, struct tally_error *err)
{
	const char *name;

	if (!s->rotation.wanted)
		return 0;
	if (rotation_name(&s->rotation, s->o.output, 0, 0, &name) < 0 ||
	    rename(s->o.output, name) < 0) {
		snprintf(err->text, sizeof(err->text), "%s cannot be renamed: %s", s->o.output,
			 strerror(errno));
		return -1;
	}
	rotation_trim(&s->rotation);
	s->o.output = name;
	return 0;
}

/* With a command the status is the command's; also where the machine is watched meanwhile. */
static int run_to_end(struct job *s)
{
	struct tally_error err = { 0 };
	struct tally_recording result;
	struct tally_exit end = { 0 };
	int r = loop(s, &end, &err);
	int finished = tally_recorder_finish(s->recorder, &result, r < 0 ? NULL : &err);

	if (s->launch)
		end_command(s, &end);
	if (r == 0 && finished == 0)
		finished = name_last(s, &err);
	if (r < 0 || finished < 0)
		return fail(&err);
	if (!s->o.quiet)
		record_say_result(&result, s->events, s->o.output, s->o.verbose);
	return end.status;
}

/* Of a stream, what the command prints goes to standard error. */
static int launch(struct job *s, struct tally_error *err)
{
	struct stream stream = { -1 };

	if (!s->argv[0])
		return 0;
	if (!strcmp(s->o.output, "-") && !stream_away(&stream)) {
		complain("record", "standard output cannot be set aside: %s", strerror(errno));
		return EXIT_FAILED;
	}
	int r = tally_launch_start(&s->launch, s->argv, err);
	if (!stream_back(&stream)) {
		complain("record", "standard output cannot be put back: %s", strerror(errno));
		return EXIT_FAILED;
	}
	return r < 0 ? fail(err) : 0;
}

/* -g leaves it open how. A flight recorder keeps its samples as they are, so that copies are large. */
static void choose_graph(struct job *s)
{
	if (s->o.graph && !s->o.call_graph)
		s->o.call_graph = s->o.overwrite ? "fp"
						 : record_choose_graph(&s->target, s->o.quiet);
}

static int record(struct job *s)
{
	struct tally_error err = { 0 };

	choose_graph(s);
	catch_signals(s);
	int launched = launch(s, &err);
	if (launched)
		return launched;
	ignore_write_signals();
	if (s->target.scope == TALLY_SCOPE_COMMAND)
		s->target.id = tally_launch_pid(s->launch);
	int status = open_recorder(s, &err);
	if (status)
		return status;
	if (!s->o.quiet)
		record_say_compromises(s->recorder, s->events);
	status = start(s);
	return status ? status : run_to_end(s);
}

static void close_job(struct job *s)
{
	tally_recorder_close(s->recorder);
	tally_launch_close(s->launch);
	tally_events_free(s->events);
	control_close(&s->control);
	rotation_free(&s->rotation);
	free(s->cmdline);
}

static int run(int argc, char **argv)
{
	struct job s = { .control = { .fd = -1, .ack = -1 } };
	int status = record_options_parse(&s.o, argc, argv, &s.argv);

	if (!s.argv)
		return status;
	status = choose_target(&s);
	if (status == EXIT_DONE)
		status = read_course(&s);
	if (status == EXIT_DONE)
		status = parse_events(&s);
	if (status == EXIT_DONE && !keep_words(&s, argc, argv)) {
		complain("record", "no memory");
		status = EXIT_FAILED;
	}
	if (status == EXIT_DONE)
		status = record(&s);
	close_job(&s);
	return status;
}

const struct command cmd_record = { "record", "sample where a program spends its time", run };
