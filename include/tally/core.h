/* SPDX-License-Identifier: MIT */
/*
 * tally_core: what a core file, core(5), keeps of a process: the registers of its threads, what it
 * had mapped, and its memory. With maps, a symbolizer and an unwinder it has named stacks:
 *
 *	tally_core_open(&core, "core", &err);
 *	tally_core_map(core, maps);
 *	for (uint32_t i = 0; i < tally_core_info(core)->threads; i++) {
 *		tally_core_thread(core, i, &thread);
 *		tally_unwinder_walk(unwinder, &thread.start, addresses, room, &how);
 *	}
 *
 * Core files of 64-bit little-endian x86-64 and arm64 programs are read, as Linux and gcore(1)
 * write them, on any machine. tally_stack_core() does all of this.
 */
#ifndef TALLY_CORE_H
#define TALLY_CORE_H

#include <tally/api.h>
#include <tally/error.h>
#include <tally/maps.h>
#include <tally/unwinder.h>

TALLY_BEGIN_DECLS

struct tally_core;

struct tally_core_info {
	int32_t pid;
	uint32_t threads;    /* for tally_core_thread() */
	const char *comm;    /* the process's name, cut to 15 bytes; "": unknown */
	const char *machine; /* as uname -m tells it, for struct tally_unwinder_opts */
	uint64_t missing;    /* bytes of memory that lie behind the file's end: it was cut */
	uint32_t signal;     /* that ended the process; of gcore(1) perhaps another; 0: none */
	uint32_t reserved;
};

struct tally_core_thread {
	int32_t tid;
	uint32_t reserved;
	struct tally_unwind_start start; /* its registers and the core's memory; the core's */
};

/*
 * Reads all of a core file but its memory, which is read when asked for: the file stays open.
 * Errors: -ENOEXEC: it is no core file; -EOPNOTSUPP: of a 32-bit, big-endian or other machine's
 * program; -EBADMSG: it contradicts itself, or ends before its notes do, with the byte at which;
 * -ENOMEM; those of open(2). Since: 0.1
 */
TALLY_API int tally_core_open(struct tally_core **out, const char *path, struct tally_error *err);
/* NULL is fine. Since: 0.1 */
TALLY_API void tally_core_close(struct tally_core *core);

/* Lives as long as the core. Since: 0.1 */
TALLY_API const struct tally_core_info *tally_core_info(const struct tally_core *core);

/*
 * The i-th thread, in the file's order: the one that a signal ended is first. Errors: -EINVAL:
 * there is none. Since: 0.1
 */
TALLY_API int tally_core_thread(struct tally_core *core, uint32_t i, struct tally_core_thread *out);

/*
 * Adds what the process had mapped, at all times: files by NT_FILE, with build-ids where their
 * first page is in the core, so that another build is not taken for them; the vdso; and the rest
 * of its memory as "//anon". Errors: -ENOMEM. Since: 0.1
 */
TALLY_API int tally_core_map(struct tally_core *core, struct tally_maps *maps);

TALLY_END_DECLS

#endif
