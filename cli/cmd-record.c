/* SPDX-License-Identifier: MIT */
/* tally record: samples a command, a process or the machine into a perf.data file. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <tally/profiling.h>

#include "args.h"
#include "command.h"
#include "targets.h"
#include "term.h"

/* perf's default: cycles as precise as they go, and the clock where there are none. */
#define DEFAULT_EVENT "cycles:P"

/* How often a person sees progress, and how long a step may wait while a command runs. */
#define PROGRESS_NS (500 * 1000000ull)
#define STEP_MS     100

struct options {
	const char *events, *output, *pid, *tid, *cpus, *freq, *call_graph;
	uint64_t period, pages, max_size;
	double duration;
	bool all, graph, no_inherit, quiet, verbose;
};

/* What one recording needs; all of it is closed by close_job. */
struct job {
	struct options o;
	struct tally_events *events;
	struct tally_launch *launch;
	struct tally_recorder *recorder;
	struct targets targets;
	struct tally_target target;
	char **argv;
	const char **cmdline; /* words for the file's header */
	uint64_t started_ns;
	bool all_ended; /* the recording is over since nothing is left of the command */
};

static volatile sig_atomic_t interrupts;

static void on_signal(int signal)
{
	(void)signal;
	interrupts++;
}

static uint64_t monotonic(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int fail(const struct tally_error *err)
{
	complain("record", "%s", err->text);
	return EXIT_FAILED;
}

/* One target, and one only: a recording has one set of rings. */
static int choose_target(struct job *s)
{
	const struct target_args given = { s->o.pid, s->o.tid, s->o.cpus, s->o.all };

	if (!targets_parse(&s->targets, &given, "record"))
		return EXIT_USAGE;
	if (s->targets.count > 1) {
		complain("record", "only one process or thread can be recorded at a time");
		hint("-a records everything; 'tally report --pid' picks from it");
		return EXIT_USAGE;
	}
	if (!s->targets.count && !s->argv[0]) {
		complain("record", "nothing to record");
		hint("give a command after --, or -p PID, -t TID, or -a; 'tally record -h' tells "
		     "more");
		return EXIT_USAGE;
	}
	s->target = s->targets.at[0];
	if (!s->targets.count)
		s->target.scope = TALLY_SCOPE_COMMAND;
	return 0;
}

static int read_rate(const struct options *o, struct tally_recorder_opts *opts)
{
	struct tally_system system;
	char *end;

	opts->period = o->period;
	if (!o->freq)
		return 0;
	if (o->period) {
		complain("record", "-F and -c exclude each other: a rate or a period");
		return EXIT_USAGE;
	}
	if (!strcmp(o->freq, "max")) {
		opts->freq = 100000;
		if (tally_system_read(&system, sizeof(system), NULL, NULL) == 0 &&
		    system.max_sample_rate > 0)
			opts->freq = (uint64_t)system.max_sample_rate;
		return 0;
	}
	opts->freq = strtoull(o->freq, &end, 10);
	if (end == o->freq || *end || !opts->freq || *o->freq == '-') {
		complain("record", "-F: '%s' is neither a number of samples a second nor 'max'",
			 o->freq);
		return EXIT_USAGE;
	}
	return 0;
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

/* Saturates, so that a number beyond all memory is refused as such. */
static uint64_t ring_bytes(uint64_t pages)
{
	uint64_t bytes;

	return __builtin_mul_overflow(pages, (uint64_t)sysconf(_SC_PAGESIZE), &bytes) ? UINT64_MAX
										      : bytes;
}

static int open_recorder(struct job *s, int argc, char **argv, struct tally_error *err)
{
	struct tally_recorder_opts opts = {
		.size = sizeof(opts),
		.path = s->o.output,
		.ring_bytes = ring_bytes(s->o.pages),
		.max_bytes = s->o.max_size,
		.owner_uid_plus_1 = sudo_id("SUDO_UID"),
		.owner_gid_plus_1 = sudo_id("SUDO_GID"),
	};
	int status = read_rate(&s->o, &opts);

	if (status)
		return status;
	/* argv[0] is "record": the file says what was typed, program first, as perf's do. */
	s->cmdline = calloc((size_t)argc + 2, sizeof(*s->cmdline));
	if (!s->cmdline) {
		complain("record", "no memory");
		return EXIT_FAILED;
	}
	s->cmdline[0] = "tally";
	for (int i = 0; i < argc; i++)
		s->cmdline[i + 1] = argv[i];
	opts.cmdline = s->cmdline;
	if (s->o.graph || s->o.call_graph)
		opts.flags |= TALLY_RECORDER_CALLCHAIN;
	if (s->o.no_inherit)
		opts.flags |= TALLY_RECORDER_NO_INHERIT;
	int r = tally_recorder_open(&s->recorder, s->events, &s->target, &opts, err);
	return r < 0 ? fail(err) : 0;
}

static void say_compromises(const struct job *s)
{
	const char *clamped = tally_recorder_compromise(s->recorder);

	if (s->o.quiet)
		return;
	for (uint32_t i = 0; i < tally_events_count(s->events); i++) {
		const char *what = tally_event_compromise(tally_events_at(s->events, i));
		if (what)
			complain("record", "%s", what);
	}
	if (clamped)
		complain("record", "%s", clamped);
}

static void print_bytes(FILE *to, uint64_t bytes)
{
	if (bytes < 10240)
		fprintf(to, "%" PRIu64 " B", bytes);
	else if (bytes < 10 * 1048576)
		fprintf(to, "%.1f KiB", (double)bytes / 1024);
	else
		fprintf(to, "%.1f MiB", (double)bytes / 1048576);
}

static void show_progress(struct job *s, uint64_t *shown)
{
	struct tally_recording now;
	uint64_t time = monotonic();

	if (s->o.quiet || !isatty(STDERR_FILENO) || time - *shown < PROGRESS_NS)
		return;
	*shown = time;
	tally_recorder_progress(s->recorder, &now);
	fprintf(stderr, "\r%6.1f s  %" PRIu64 " samples  ", (double)(time - s->started_ns) / 1e9,
		now.samples);
	print_bytes(stderr, now.bytes);
	if (now.lost)
		fprintf(stderr, "  %" PRIu64 " lost", now.lost);
	fputs("\033[K", stderr);
}

static bool is_full(struct job *s)
{
	struct tally_recording now;

	if (!s->o.max_size)
		return false;
	tally_recorder_progress(s->recorder, &now);
	return now.bytes >= s->o.max_size;
}

/* Runs until the target ends, the time is over, a signal comes or writing fails. */
static int loop(struct job *s, struct tally_exit *end, struct tally_error *err)
{
	uint64_t shown = monotonic(), limit = (uint64_t)(s->o.duration * 1e9);
	bool over = false;
	int r = 1;

	while (r > 0 && !interrupts && !over) {
		int wait_ms = STEP_MS;
		if (limit) {
			uint64_t gone = monotonic() - s->started_ns;
			uint64_t left = gone < limit ? limit - gone : 0;
			over = !left;
			if (left / 1000000 < (uint64_t)wait_ms)
				wait_ms = (int)(left / 1000000) + 1;
		}
		r = over ? 1 : tally_recorder_step(s->recorder, wait_ms, err);
		if (r == -EINTR)
			r = 1;
		show_progress(s, &shown);
		int ended = s->launch ? tally_launch_wait(s->launch, 0, end, NULL) : 0;
		if (ended == 1 || ended == -ECHILD)
			break;
	}
	if (shown != s->started_ns && !s->o.quiet && isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
	s->all_ended = r == 0 && s->target.scope == TALLY_SCOPE_COMMAND && !s->o.no_inherit &&
		       !is_full(s);
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

/* What a clock cannot see: software clocks fire in an interrupt, so never where those are off. */
static const char *clock_note(const struct job *s)
{
	static const char *const notes[] = {
		[TALLY_SW_CPU_CLOCK] =
			"; by cpu-clock, which cannot see code that runs with interrupts off",
		[TALLY_SW_TASK_CLOCK] =
			"; by task-clock, which cannot see code that runs with interrupts off",
	};

	for (uint32_t i = 0; i < tally_events_count(s->events); i++) {
		const struct tally_attr *attr = tally_event_granted(tally_events_at(s->events, i));
		if (attr && attr->type == TALLY_TYPE_SOFTWARE &&
		    attr->config <= TALLY_SW_TASK_CLOCK)
			return notes[attr->config];
	}
	return "";
}

static void say_result(const struct job *s, const struct tally_recording *rec)
{
	double cpu_ns = (double)rec->duration_ns * (double)sysconf(_SC_NPROCESSORS_ONLN);

	if (s->o.quiet)
		return;
	fprintf(stderr, "tally record: %" PRIu64 " samples, ", rec->samples);
	print_bytes(stderr, rec->bytes);
	fprintf(stderr, " in %s, %" PRIu64 " lost%s", s->o.output, rec->lost, clock_note(s));
	if (rec->throttled)
		fprintf(stderr, "; throttled %" PRIu64 " times by the kernel", rec->throttled);
	if (rec->steal_ns && cpu_ns > 0)
		fprintf(stderr, "; the hypervisor stole %.1f %% of the CPU time",
			100 * (double)rec->steal_ns / cpu_ns);
	if (rec->cgroup_throttled_ns && rec->duration_ns)
		fprintf(stderr, "; the cgroup's quota held it for %.1f %% of the time",
			100 * (double)rec->cgroup_throttled_ns / (double)rec->duration_ns);
	fputc('\n', stderr);
	if (s->o.verbose)
		fprintf(stderr,
			"tally record: %" PRIu64 " records, %" PRIu64
			" rounds, %.1f ms of own CPU time\n",
			rec->records, rec->rounds, (double)rec->cpu_ns / 1e6);
}

static void catch_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	/* Ignored by who started us, it would keep the command's status from us. */
	signal(SIGCHLD, SIG_DFL);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
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
	s->started_ns = monotonic();
	if (!s->launch || tally_launch_go(s->launch, &err) == 0)
		return 0;
	return discard(s, &err, err.code == -ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN);
}

/* With a command the status is the command's; also where the machine is watched meanwhile. */
static int record(struct job *s, int argc, char **argv)
{
	struct tally_error err = { 0 };
	struct tally_recording result;
	struct tally_exit end = { 0 };

	catch_signals();
	if (s->argv[0] && tally_launch_start(&s->launch, s->argv, &err) < 0)
		return fail(&err);
	ignore_write_signals();
	if (s->target.scope == TALLY_SCOPE_COMMAND)
		s->target.id = tally_launch_pid(s->launch);
	int status = open_recorder(s, argc, argv, &err);
	if (status)
		return status;
	say_compromises(s);
	status = start(s);
	if (status)
		return status;
	int r = loop(s, &end, &err);
	int finished = tally_recorder_finish(s->recorder, &result, r < 0 ? NULL : &err);
	if (s->launch)
		end_command(s, &end);
	if (r < 0 || finished < 0)
		return fail(&err);
	say_result(s, &result);
	return end.status;
}

static void close_job(struct job *s)
{
	tally_recorder_close(s->recorder);
	tally_launch_close(s->launch);
	tally_events_free(s->events);
	free(s->cmdline);
}

static int run(int argc, char **argv)
{
	struct job s = { .o = { .output = "perf.data" } };
	struct options *o = &s.o;
	const struct arg table[] = {
		{ 'e', "event", "LIST",
		  "what to sample, as 'tally list' names it (default: cycles, else cpu-clock)",
		  ARG_TEXT, &o->events },
		{ 'F', "freq", "N|max", "samples a second (default: 4000)", ARG_TEXT, &o->freq },
		{ 'c', "count", "N", "a sample every N events, instead of a rate", ARG_COUNT,
		  &o->period },
		{ 'g', NULL, NULL, "record call graphs", ARG_FLAG, &o->graph },
		{ 0, "call-graph", "fp", "how call graphs are found: by frame pointers", ARG_TEXT,
		  &o->call_graph },
		{ 'p', "pid", "PID", "a running process, all its threads and their children",
		  ARG_TEXT, &o->pid },
		{ 't', "tid", "TID", "one running thread", ARG_TEXT, &o->tid },
		{ 'a', "all-cpus", NULL, "everything that runs", ARG_FLAG, &o->all },
		{ 'C', "cpu", "LIST", "everything that runs on these CPUs", ARG_TEXT, &o->cpus },
		{ 'i', "no-inherit", NULL, "do not follow new threads and children", ARG_FLAG,
		  &o->no_inherit },
		{ 'o', "output", "FILE", "where to write (default: perf.data)", ARG_TEXT,
		  &o->output },
		{ 'm', "mmap-pages", "N", "pages of a ring (default: by the rate, 8 MiB at most)",
		  ARG_COUNT, &o->pages },
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
		.examples =
			"  tally record -g -- ./program     profile a command with call graphs\n"
			"  tally record -g -p 1234 --duration 10\n"
			"  tally record -a -g -- sleep 5    everything, for five seconds\n",
		.table = table,
	};
	struct tally_events_opts events_opts = { .size = sizeof(events_opts) };
	struct tally_error err;
	int at = args_parse(&args, argc, argv);

	if (at < 0)
		return args_status(at);
	s.argv = argv + at;
	if (o->call_graph && strcmp(o->call_graph, "fp") != 0) {
		complain("record", "--call-graph: '%s' is not known; 'fp' is", o->call_graph);
		return EXIT_USAGE;
	}
	if (!strcmp(o->output, "-") || !*o->output) {
		complain("record", "-o: a recording needs a file: its header is written last");
		return EXIT_USAGE;
	}
	int status = choose_target(&s);
	if (status)
		return status;
	events_opts.fallback = TALLY_FALLBACK_NEWER_BITS | TALLY_FALLBACK_USER_ONLY;
	if (!o->events)
		events_opts.fallback |= TALLY_FALLBACK_PRECISE | TALLY_FALLBACK_CPU_CLOCK;
	if (tally_events_parse(&s.events, o->events ? o->events : DEFAULT_EVENT, &events_opts,
			       &err) < 0) {
		fail(&err);
		bool typed = err.cause == TALLY_CAUSE_SYNTAX || err.cause == TALLY_CAUSE_UNKNOWN;
		return typed ? EXIT_USAGE : EXIT_FAILED;
	}
	status = record(&s, argc, argv);
	close_job(&s);
	return status;
}

const struct command cmd_record = { "record", "sample where a program spends its time", run };
