/* SPDX-License-Identifier: MIT */
/*
 * Core files. What is taken has threads with registers, whose stacks are walked in its memory and
 * its mappings; the walk ends within the room for addresses.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <tally/core.h>

#include "fuzz.h"
#include "image/module.h"

#define ROOM         64
#define MOST_THREADS 16

/* Stands in for the search of mapped files, of which the input could name any. */
int module_open(const char *path, const struct file_search *where)
{
	return -ENOENT;
}

const char *module_not_a_file(const char *path)
{
	return path[0] == '/' ? NULL : "no file";
}

static void walk(struct tally_core *core)
{
	const struct tally_core_info *info = tally_core_info(core);
	struct tally_core_thread thread;
	struct tally_unwinder *unwinder;
	struct tally_maps *maps;
	struct tally_unwound how;
	uint64_t addresses[ROOM];

	must(tally_maps_new(&maps) == 0);
	must(tally_core_map(core, maps) == 0);
	must(tally_unwinder_new(&unwinder, maps, TALLY_OPTS(unwinder, .machine = info->machine),
				NULL) == 0);
	must(info->threads > 0 && info->pid > 0);
	must(tally_core_thread(core, info->threads, &thread) == -EINVAL);
	for (uint32_t i = 0; i < info->threads && i < MOST_THREADS; i++) {
		must(tally_core_thread(core, i, &thread) == 0);
		must(thread.tid > 0);
		must(tally_unwinder_walk(unwinder, &thread.start, addresses, ROOM, &how) == 0);
		must(how.frames >= 1 && how.frames <= ROOM && how.end <= TALLY_UNWIND_FULL);
	}
	tally_unwinder_free(unwinder);
	tally_maps_free(maps);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tally_error err = { 0 };
	struct tally_core *core;
	char path[64];
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	int r = tally_core_open(&core, path, &err);
	close(fd);
	if (r < 0) {
		must(r == -ENOEXEC || r == -EOPNOTSUPP || r == -EBADMSG);
		must(err.code == r && err.text[0]);
		return 0;
	}
	walk(core);
	tally_core_close(core);
	return 0;
}
