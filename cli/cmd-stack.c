/* SPDX-License-Identifier: MIT */
/* tally stack: where every thread of a process is, or was when it left a core. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <tally/profiling.h>

#include "args.h"
#include "command.h"
#include "json.h"
#include "targets.h"
#include "term.h"

struct options {
	const char *pid, *tid, *core, *symfs;
	uint64_t max_stack;
	bool json;
};

static const char *const ends[] = {
	[TALLY_UNWIND_WHOLE] = "whole",
	[TALLY_UNWIND_CUT] = "cut",
	[TALLY_UNWIND_BROKEN] = "broken",
	[TALLY_UNWIND_FULL] = "full",
};

/* A name from the other process, on a terminal. */
static void print_plain(const char *text)
{
	for (; *text; text++)
		putchar((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text);
}

static void print_frame(uint32_t number, const struct tally_frame *f)
{
	printf("#%-3" PRIu32 "0x%016" PRIx64 " ", number, f->address);
	if (f->function) {
		print_plain(f->function);
		printf("+0x%" PRIx64 " (", f->offset);
	} else {
		printf("[unknown]+0x%" PRIx64 " (", f->module_address);
	}
	print_plain(f->path);
	puts(")");
}

static int print_thread(const struct tally_stack_thread *t, void *arg)
{
	(void)arg;
	printf("TID %" PRId32 " ", t->tid);
	print_plain(t->comm);
	putchar('\n');
	for (uint32_t i = 0; i < t->frame_count; i++)
		print_frame(i, &t->frames[i]);
	if (t->trouble) {
		fputs("    -- ", stdout);
		print_plain(t->trouble);
		putchar('\n');
	}
	return 0;
}

static void print_json_frame(const struct tally_frame *f)
{
	printf("{\"address\":\"0x%" PRIx64 "\",\"function\":", f->address);
	json_text(stdout, f->function);
	printf(",\"offset\":%" PRIu64 ",\"module\":", f->offset);
	json_text(stdout, f->path);
	printf(",\"module_address\":\"0x%" PRIx64 "\"}", f->module_address);
}

static int print_json_thread(const struct tally_stack_thread *t, void *arg)
{
	(void)arg;
	printf("{\"pid\":%" PRId32 ",\"tid\":%" PRId32 ",\"comm\":", t->pid, t->tid);
	json_text(stdout, t->comm);
	printf(",\"end\":\"%s\",\"trouble\":", ends[t->end]);
	json_text(stdout, t->trouble);
	fputs(",\"frames\":[", stdout);
	for (uint32_t i = 0; i < t->frame_count; i++) {
		if (i)
			putchar(',');
		print_json_frame(&t->frames[i]);
	}
	puts("]}");
	return 0;
}

static void tell_module(const struct tally_module_info *module, void *arg)
{
	(void)arg;
	fflush(stdout);
	complain("stack", "%s: %s", module->path, module->trouble);
}

/* A positive number; 0: it is none. */
static int32_t read_id(const char *text)
{
	char *end;
	long id = strtol(text, &end, 10);

	return end == text || *end || id <= 0 || id > INT32_MAX ? 0 : (int32_t)id;
}

/* A thread's process, by the folder that it shows under its own number, too. */
static int32_t process_of(int32_t tid)
{
	char path[64], line[128];
	int32_t pid = 0;

	snprintf(path, sizeof(path), "/proc/%" PRId32 "/status", tid);
	FILE *status = fopen(path, "re");
	while (status && !pid && fgets(line, sizeof(line), status))
		if (!strncmp(line, "Tgid:", 5))
			pid = (int32_t)strtol(line + 5, NULL, 10);
	if (status)
		fclose(status);
	return pid;
}

static int show(const struct options *o, int32_t pid, int32_t tid)
{
	struct tally_error err = { 0 };
	const struct tally_stack_opts opts = {
		.size = sizeof(opts),
		.max_frames = o->max_stack > UINT32_MAX ? UINT32_MAX : (uint32_t)o->max_stack,
		.tid = tid,
		.symfs = o->symfs,
		.module = tell_module,
	};
	int (*print)(const struct tally_stack_thread *t, void *arg) = o->json ? print_json_thread
									      : print_thread;
	int r = o->core ? tally_stack_core(o->core, &opts, print, NULL, &err)
			: tally_stack_process(pid, &opts, print, NULL, &err);

	if (r == 0)
		return EXIT_DONE;
	complain("stack", "%s", err.text);
	return EXIT_FAILED;
}

static int run(int argc, char **argv)
{
	struct options o = { 0 };
	const struct arg table[] = {
		{ 'p', "pid", "PID", "all threads of this process", ARG_TEXT, &o.pid },
		{ 't', "tid", "TID", "this thread alone", ARG_TEXT, &o.tid },
		{ 0, "core", "FILE", "the threads that a core file tells of", ARG_TEXT, &o.core },
		{ 0, "max-stack", "N", "at most N frames a thread (default: 1024)", ARG_COUNT,
		  &o.max_stack },
		{ 0, "symfs", "FOLDER", "look for programs and libraries below it first", ARG_TEXT,
		  &o.symfs },
		{ 0, "json", NULL, "one object a line, one a thread", ARG_FLAG, &o.json },
		{ 0 },
	};
	const struct args args = {
		.command = "stack",
		.synopsis = "[OPTIONS] -p PID | --core FILE",
		.description =
			"Shows where every thread of a running process is, innermost call first. "
			"The process\nstands still meanwhile, for some milliseconds. Or where "
			"they were when it left a core.",
		.examples = "  tally stack -p 1234\n"
			    "  tally stack --json -p 1234 | jq .frames[0].function\n",
		.table = table,
	};
	int at = args_parse(&args, argc, argv);

	if (at < 0)
		return args_status(at);
	if (!!o.pid + !!o.tid + !!o.core != 1 || argv[at]) {
		complain("stack",
			 "one process (-p), thread (-t) or core (--core) is what it shows");
		hint("'tally stack -h' lists the options");
		return EXIT_USAGE;
	}
	if (o.core)
		return show(&o, 0, 0);
	int32_t id = read_id(o.pid ? o.pid : o.tid);
	if (!id) {
		complain("stack", "'%s' is no number of a %s", o.pid ? o.pid : o.tid,
			 o.pid ? "process" : "thread");
		return EXIT_USAGE;
	}
	int32_t pid = o.pid ? id : process_of(id);
	if (!pid) {
		complain("stack", "there is no thread %" PRId32, id);
		return EXIT_FAILED;
	}
	return show(&o, pid, o.pid ? 0 : id);
}

const struct command cmd_stack = { "stack", "where every thread of a process is, or of a core",
				   run };
