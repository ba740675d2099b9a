/* SPDX-License-Identifier: MIT */
/*
 * tally_stack: where every thread of a running process is at one moment, or was when it left a
 * core.
 *
 *	tally_stack_process(pid, NULL, print_thread, NULL, &err);
 *
 * All threads are stopped with ptrace(2) (PTRACE_SEIZE, PTRACE_INTERRUPT) while their stacks are
 * unwound, some 100 us a thread and the reading of unwind tables before the first; names are
 * looked for when they run again. What the process sees of it is told in freeze.h.
 */
#ifndef TALLY_STACK_H
#define TALLY_STACK_H

#include <tally/api.h>
#include <tally/error.h>
#include <tally/symbolizer.h>
#include <tally/unwinder.h>

TALLY_BEGIN_DECLS

struct tally_stack_opts {
	uint32_t size, flags;
	uint32_t max_frames;       /* of a thread; 0: 1024 */
	uint32_t wait_ms;          /* how long for a thread that does not stop; 0: 200 */
	uint32_t symbolizer_flags; /* enum tally_symbolizer_flags */
	int32_t tid;               /* only this thread; 0: all */
	const char *root, *symfs;  /* as in struct tally_symbolizer_opts. Borrowed. */
	/* Called at the end for each module in which frames have no function, with why; NULL: nobody
	 * asks. */
	void (*module)(const struct tally_module_info *module, void *arg);
	void *arg;
};

/* A thread. Texts and frames are borrowed for the call. */
struct tally_stack_thread {
	int32_t pid, tid;
	const char *comm;
	const struct tally_frame *frames; /* innermost first; an address is that of the return */
	uint32_t frame_count;
	uint32_t end; /* enum tally_unwind_end */
	/* Why there are no frames, or not all, as a sentence; NULL: the stack is whole. */
	const char *trouble;
};

/*
 * Calls `fn` for each thread, by ascending tid; a non-zero answer ends it and is returned. A thread
 * that cannot be stopped is told with its trouble. Errors: -ESRCH: there is no such process or
 * thread; -EPERM: ptrace(2) is refused for all; -EOPNOTSUPP: stacks of this machine cannot be
 * unwound; -EINVAL, -E2BIG: bad options; -ENOMEM. Linux 3.4. Since: 0.1
 */
TALLY_API int tally_stack_process(int32_t pid, const struct tally_stack_opts *opts,
				  int (*fn)(const struct tally_stack_thread *thread, void *arg),
				  void *arg, struct tally_error *err);

/*
 * The same for the threads of a core file, in its order: the one that a signal ended is the
 * first. `wait_ms` is of no use, and `comm` the process's. Errors: as tally_core_open() (core.h);
 * -ESRCH: it has no such thread; -EINVAL, -E2BIG: bad options. Since: 0.1
 */
TALLY_API int tally_stack_core(const char *path, const struct tally_stack_opts *opts,
			       int (*fn)(const struct tally_stack_thread *thread, void *arg),
			       void *arg, struct tally_error *err);

TALLY_END_DECLS

#endif
