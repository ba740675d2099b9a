/* SPDX-License-Identifier: MIT */
/*
 * Where every thread of a process is: its stacks while it is held, their names afterwards. Or of a
 * core file, which holds still.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tally/core.h>
#include <tally/stack.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/proc.h"
#include "inspect/stack-hold.h"

#define DEFAULT_FRAMES 1024u
#define DEFAULT_WAIT   200u /* ms */

struct job {
	struct tally_stack_opts opts;
	struct tally_core *core; /* NULL: a running process */
	struct tally_maps *maps;
	struct tally_symbolizer *symbolizer;
	struct hold hold;
	VEC(struct tally_frame) frames;
};

static int map(struct job *j, struct tally_error *err)
{
	if (!j->core)
		return tally_maps_add_process(j->maps, j->hold.pid, 0, j->opts.root, err);
	return tally_core_map(j->core, j->maps) < 0 ? error_nomem(err, "a core's mappings") : 0;
}

static int open_job(struct job *j, int32_t pid, struct tally_error *err)
{
	const struct tally_unwinder_opts unwinder = {
		.size = sizeof(unwinder),
		.machine = j->core ? tally_core_info(j->core)->machine : NULL,
		.root = j->opts.root,
		.symfs = j->opts.symfs,
	};
	const struct tally_symbolizer_opts symbolizer = {
		.size = sizeof(symbolizer),
		.flags = j->opts.symbolizer_flags,
		.root = j->opts.root,
		.symfs = j->opts.symfs,
	};
	int r = tally_maps_new(&j->maps);

	if (r < 0)
		return error_nomem(err, "the mappings of a process");
	j->hold.pid = pid;
	r = map(j, err);
	if (r == 0)
		r = tally_unwinder_new(&j->hold.unwinder, j->maps, &unwinder, err);
	if (r == 0)
		r = tally_symbolizer_new(&j->symbolizer, j->maps, &symbolizer, err);
	j->hold.max_frames = j->opts.max_frames ? j->opts.max_frames : DEFAULT_FRAMES;
	j->hold.wait_ms = j->opts.wait_ms ? j->opts.wait_ms : DEFAULT_WAIT;
	return r;
}

/* A thread that is asked for; NULL: this one is not, or, with -ENOMEM, no memory. */
static struct held_thread *add_thread(struct job *j, int32_t tid, int *r, struct tally_error *err)
{
	if (j->opts.tid && tid != j->opts.tid)
		return NULL;
	struct held_thread *t = vec_push(&j->hold.threads);
	if (t)
		t->tid = tid;
	else
		*r = error_nomem(err, "the threads of a process");
	return t;
}

static int check_any(const struct job *j, struct tally_error *err)
{
	return j->hold.threads.count
		       ? 0
		       : error_set(err, -ESRCH, TALLY_CAUSE_ARGUMENT, "process %d has no thread %d",
				   j->hold.pid, j->opts.tid);
}

static int list_threads(struct job *j, struct tally_error *err)
{
	int32_t *tids;
	size_t count;
	int r = proc_threads(&tids, &count, j->opts.root, j->hold.pid);

	if (r < 0)
		return error_set(err, r, TALLY_CAUSE_IO, "the threads of process %d: %s",
				 j->hold.pid, strerror(-r));
	for (size_t i = 0; i < count && r == 0; i++)
		add_thread(j, tids[i], &r, err);
	free(tids);
	return r == 0 ? check_any(j, err) : r;
}

/* PF_KTHREAD of the kernel's linux/sched.h, which /proc/PID/stat shows among its flags. */
#define KERNEL_THREAD 0x200000u

/* What ptrace(2) refuses whoever asks. NULL: neither of these. */
static const char *never_traced(const struct job *j)
{
	char path[64], line[1024], state;
	unsigned flags;

	snprintf(path, sizeof(path), "/proc/%d/stat", j->hold.pid);
	if (proc_read_line(line, sizeof(line), j->opts.root, path) < 0)
		return NULL;
	/* The name may hold anything, but what follows it no parenthesis. */
	const char *behind = strrchr(line, ')');
	if (!behind || sscanf(behind, ") %c %*d %*d %*d %*d %*d %u", &state, &flags) != 2)
		return NULL;
	if (flags & KERNEL_THREAD)
		return "is a thread of the kernel, which has no stack in user mode";
	return state == 'Z' ? "has ended, and only waits for its parent to learn of it" : NULL;
}

/* When nobody may be looked at there is nothing to tell but why. */
static int check_refused(struct job *j, struct tally_error *err)
{
	vec_each (&j->hold.threads, t)
		if (t->code != -EPERM)
			return 0;
	const char *never = never_traced(j);
	if (never)
		return error_set(err, -EPERM, TALLY_CAUSE_ARGUMENT, "process %d %s", j->hold.pid,
				 never);
	return error_set(
		err, -EPERM, TALLY_CAUSE_PERMISSION,
		"ptrace of process %d is refused: a debugger has it, or it is another "
		"user's, or kernel.yama.ptrace_scope or a missing cap_sys_ptrace forbids it",
		j->hold.pid);
}

/* ---- telling ---- */

/*
 * How far before its address a frame is looked up: 1 behind a call, which may be the last
 * instruction of its function. 0 where the thread is or was interrupted by a signal, and of the
 * code to which its handler returns.
 */
static int call_before(struct job *j, const struct held_thread *t, size_t i)
{
	const uint64_t *at = t->addresses.at;
	int32_t pid = j->hold.pid;

	if (!i || !at[i])
		return 0;
	int r = tally_unwinder_is_signal(j->hold.unwinder, pid, UINT64_MAX, at[i]);
	if (r == 0)
		r = tally_unwinder_is_signal(j->hold.unwinder, pid, UINT64_MAX,
					     at[i - 1] + (i == 1));
	return r < 0 ? r : !r;
}

static int name_frames(struct job *j, const struct held_thread *t)
{
	j->frames.count = 0;
	if (!vec_reserve(&j->frames, t->addresses.count))
		return -ENOMEM;
	for (size_t i = 0; i < t->addresses.count; i++) {
		struct tally_frame *f = vec_push(&j->frames);
		int r = call_before(j, t, i);
		uint64_t back = r > 0;
		if (r >= 0)
			r = tally_symbolizer_find(j->symbolizer, j->hold.pid, UINT64_MAX,
						  t->addresses.at[i] - back, TALLY_MODE_USER, f);
		if (r < 0)
			return r;
		f->address += back;
		f->offset += back;
		f->module_address += back;
	}
	return 0;
}

static void explain(const struct job *j, const struct held_thread *t, char *text, size_t size)
{
	struct tally_unwinder_module module = { 0 };
	uint64_t missing = j->core ? tally_core_info(j->core)->missing : 0;

	if (t->code == -ESRCH)
		snprintf(text, size, "it has ended");
	else if (t->code == -EAGAIN)
		snprintf(text, size, "it did not stop within %u ms: it waits in the kernel",
			 j->hold.wait_ms);
	else if (t->code == -EPERM)
		snprintf(text, size, "a debugger has it");
	else if (t->code == -EOPNOTSUPP)
		snprintf(text, size, "it runs a 32-bit program");
	else if (t->code)
		snprintf(text, size, "%s", strerror(-t->code));
	else if (t->how.end == TALLY_UNWIND_FULL)
		snprintf(text, size, "it is deeper than %u frames", j->hold.max_frames);
	else if (t->how.end != TALLY_UNWIND_WHOLE && missing)
		snprintf(text, size, "%" PRIu64 " bytes of memory are missing: the file was cut",
			 missing);
	else if (t->how.end != TALLY_UNWIND_WHOLE &&
		 tally_unwinder_module(j->hold.unwinder, t->how.module, &module) == 0)
		snprintf(text, size, "nothing tells how to unwind further: %s%s%s", module.path,
			 module.trouble ? ": " : "", module.trouble ? module.trouble : "");
	else if (t->how.end != TALLY_UNWIND_WHOLE)
		snprintf(text, size, "nothing is mapped where it goes on");
	else
		*text = '\0';
}

static void read_comm(const struct job *j, const struct held_thread *t, char *comm, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", j->hold.pid, t->tid);
	if (j->core)
		snprintf(comm, size, "%s", tally_core_info(j->core)->comm);
	else if (proc_read_line(comm, size, j->opts.root, path) < 0)
		*comm = '\0';
}

static int tell(struct job *j, const struct held_thread *t,
		int (*fn)(const struct tally_stack_thread *thread, void *arg), void *arg,
		struct tally_error *err)
{
	char comm[64], trouble[512];

	read_comm(j, t, comm, sizeof(comm));
	if (name_frames(j, t) < 0)
		return error_nomem(err, "the names of a stack");
	explain(j, t, trouble, sizeof(trouble));
	const struct tally_stack_thread thread = {
		.pid = j->hold.pid,
		.tid = t->tid,
		.comm = comm,
		.frames = j->frames.at,
		.frame_count = (uint32_t)j->frames.count,
		.end = t->code ? TALLY_UNWIND_BROKEN : t->how.end,
		.trouble = *trouble ? trouble : NULL,
	};
	return fn(&thread, arg);
}

static void tell_modules(const struct job *j)
{
	struct tally_module_info info;

	for (uint32_t i = 0; j->opts.module && i < tally_symbolizer_modules(j->symbolizer); i++)
		if (tally_symbolizer_module(j->symbolizer, i, &info) == 0 && info.trouble &&
		    info.misses)
			j->opts.module(&info, j->opts.arg);
}

static int tell_all(struct job *j, int (*fn)(const struct tally_stack_thread *thread, void *arg),
		    void *arg, struct tally_error *err)
{
	int r = 0;

	for (size_t i = 0; i < j->hold.threads.count && r == 0; i++)
		r = tell(j, &j->hold.threads.at[i], fn, arg, err);
	if (r == 0)
		tell_modules(j);
	return r;
}

static void close_job(struct job *j)
{
	hold_done(&j->hold);
	vec_done(&j->frames);
	tally_symbolizer_free(j->symbolizer);
	tally_unwinder_free(j->hold.unwinder);
	tally_maps_free(j->maps);
	tally_core_close(j->core);
}

int tally_stack_process(int32_t pid, const struct tally_stack_opts *opts,
			int (*fn)(const struct tally_stack_thread *thread, void *arg), void *arg,
			struct tally_error *err)
{
	struct job j = { 0 };
	int r = opts_read(&j.opts, sizeof(j.opts), 0, opts, err);

	if (r == 0)
		r = open_job(&j, pid, err);
	if (r == 0)
		r = list_threads(&j, err);
	if (r == 0) {
		r = hold_and_unwind(&j.hold);
		if (r < 0)
			error_set(err, r, TALLY_CAUSE_NONE, "a thread to look at others: %s",
				  strerror(-r));
	}
	if (r == 0)
		r = check_refused(&j, err);
	if (r == 0)
		r = tell_all(&j, fn, arg, err);
	close_job(&j);
	return r;
}

/* ---- of a core ---- */

static int unwind_core(struct job *j, struct tally_error *err)
{
	struct tally_core_thread thread;
	int r = 0;

	for (uint32_t i = 0; r == 0 && tally_core_thread(j->core, i, &thread) == 0; i++) {
		struct held_thread *t = add_thread(j, thread.tid, &r, err);
		if (!t)
			continue;
		if (!vec_reserve(&t->addresses, j->hold.max_frames))
			return error_nomem(err, "a stack");
		t->code = tally_unwinder_walk(j->hold.unwinder, &thread.start, t->addresses.at,
					      j->hold.max_frames, &t->how);
		t->addresses.count = t->how.frames;
	}
	return r == 0 ? check_any(j, err) : r;
}

int tally_stack_core(const char *path, const struct tally_stack_opts *opts,
		     int (*fn)(const struct tally_stack_thread *thread, void *arg), void *arg,
		     struct tally_error *err)
{
	struct job j = { 0 };
	int r = opts_read(&j.opts, sizeof(j.opts), 0, opts, err);

	if (r == 0)
		r = tally_core_open(&j.core, path, err);
	if (r == 0)
		r = open_job(&j, tally_core_info(j.core)->pid, err);
	if (r == 0)
		r = unwind_core(&j, err);
	if (r == 0)
		r = tell_all(&j, fn, arg, err);
	close_job(&j);
	return r;
}
