/* SPDX-License-Identifier: MIT */
/* Where every thread of a process is: its stacks while it is held, their names afterwards. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tally/stack.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/proc.h"
#include "inspect/stack-hold.h"

#define DEFAULT_FRAMES 1024u
#define DEFAULT_WAIT   200u /* ms */

struct job {
	struct tally_stack_opts opts;
	struct tally_maps *maps;
	struct tally_symbolizer *symbolizer;
	struct hold hold;
	VEC(struct tally_frame) frames;
};

static int open_job(struct job *j, int32_t pid, struct tally_error *err)
{
	const struct tally_unwinder_opts unwinder = {
		.size = sizeof(unwinder),
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
	r = tally_maps_add_process(j->maps, pid, 0, j->opts.root, err);
	if (r == 0)
		r = tally_unwinder_new(&j->hold.unwinder, j->maps, &unwinder, err);
	if (r == 0)
		r = tally_symbolizer_new(&j->symbolizer, j->maps, &symbolizer, err);
	j->hold.pid = pid;
	j->hold.max_frames = j->opts.max_frames ? j->opts.max_frames : DEFAULT_FRAMES;
	j->hold.wait_ms = j->opts.wait_ms ? j->opts.wait_ms : DEFAULT_WAIT;
	return r;
}

static int list_threads(struct job *j, struct tally_error *err)
{
	int32_t *tids;
	size_t count;
	int r = proc_threads(&tids, &count, j->opts.root, j->hold.pid);

	if (r < 0)
		return error_set(err, r, TALLY_CAUSE_IO, "the threads of process %d: %s",
				 j->hold.pid, strerror(-r));
	for (size_t i = 0; i < count && r == 0; i++) {
		if (j->opts.tid && tids[i] != j->opts.tid)
			continue;
		struct held_thread *t = vec_push(&j->hold.threads);
		if (t)
			t->tid = tids[i];
		else
			r = error_nomem(err, "the threads of a process");
	}
	free(tids);
	if (r == 0 && !j->hold.threads.count)
		r = error_set(err, -ESRCH, TALLY_CAUSE_ARGUMENT, "process %d has no thread %d",
			      j->hold.pid, j->opts.tid);
	return r;
}

/* When nobody may be looked at there is nothing to tell but why. */
static int check_refused(struct job *j, struct tally_error *err)
{
	vec_each (&j->hold.threads, t)
		if (t->code != -EPERM)
			return 0;
	return error_set(
		err, -EPERM, TALLY_CAUSE_PERMISSION,
		"ptrace of process %d is refused: a debugger has it, or it is another "
		"user's, or kernel.yama.ptrace_scope or a missing cap_sys_ptrace forbids it",
		j->hold.pid);
}

/* ---- telling ---- */

/* A call that never returns may be the last instruction of its function. */
static int name_frames(struct job *j, const struct held_thread *t)
{
	j->frames.count = 0;
	if (!vec_reserve(&j->frames, t->addresses.count))
		return -ENOMEM;
	for (size_t i = 0; i < t->addresses.count; i++) {
		struct tally_frame *f = vec_push(&j->frames);
		uint64_t back = i && t->addresses.at[i] ? 1 : 0;
		int r = tally_symbolizer_find(j->symbolizer, j->hold.pid, UINT64_MAX,
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
	else if (t->how.end != TALLY_UNWIND_WHOLE &&
		 tally_unwinder_module(j->hold.unwinder, t->how.module, &module) == 0)
		snprintf(text, size, "nothing tells how to unwind further: %s%s%s", module.path,
			 module.trouble ? ": " : "", module.trouble ? module.trouble : "");
	else if (t->how.end != TALLY_UNWIND_WHOLE)
		snprintf(text, size, "nothing is mapped where it goes on");
	else
		*text = '\0';
}

static int tell(struct job *j, const struct held_thread *t,
		int (*fn)(const struct tally_stack_thread *thread, void *arg), void *arg,
		struct tally_error *err)
{
	char path[64], comm[64] = "", trouble[512];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", j->hold.pid, t->tid);
	if (proc_read_line(comm, sizeof(comm), j->opts.root, path) < 0)
		*comm = '\0';
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
	for (size_t i = 0; i < j.hold.threads.count && r == 0; i++)
		r = tell(&j, &j.hold.threads.at[i], fn, arg, err);
	hold_done(&j.hold);
	vec_done(&j.frames);
	tally_symbolizer_free(j.symbolizer);
	tally_unwinder_free(j.hold.unwinder);
	tally_maps_free(j.maps);
	return r;
}
