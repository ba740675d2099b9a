/* SPDX-License-Identifier: MIT */
/*
 * Code that processes make at run time, by what they tell of it: jitdumps that they mapped, and
 * their perf maps. Read when an address of such a process is first asked for, and again when they
 * grew.
 */
#ifndef IMAGE_JIT_H
#define IMAGE_JIT_H

#include "image/builds.h"
#include "image/file-find.h"
#include "image/jit-file.h"

/* One file of a process. */
struct jit_source {
	struct jit_file file;
	char *path;       /* as the process has it; of a perf map with the pid that was recorded */
	uint32_t mapping; /* of a jitdump; 0: a perf map */
	uint64_t device, inode, size;
	uint64_t looked_ns;  /* when it was last looked at, CLOCK_MONOTONIC_COARSE; 0: never */
	uint32_t generation; /* how often it was read from its start */
	bool final;          /* the recording tells its content: it need not be looked at again */
};

struct jit_process {
	VEC(struct jit_source) sources; /* jitdumps, then the perf map */
	size_t dumps_seen;              /* of maps_jitdump() */
};

/* Zeroed but for the borrowed ones is empty. */
struct jit {
	struct tally_maps *maps;
	struct builds *builds;    /* ids of the content of these files */
	struct file_search where; /* root, symfs, cache */
	bool other_clock;         /* the recording's times are not CLOCK_MONOTONIC */
	bool dumps_only;          /* perf maps are not read */
	struct map64 index;       /* pid -> number + 1 */
	VEC(struct jit_process) processes;
};

struct jit_place {
	struct jit_source *source;
	const struct jit_code *code;
};

/*
 * The code of `pid` at that address and time, or of `owner`, its parent that had the memory
 * first. 1, or 0: none is told of; `out->source` is then a file that was read, or NULL. -ENOMEM.
 */
int jit_find(struct jit *j, int32_t pid, int32_t owner, uint64_t time, uint64_t address,
	     struct jit_place *out);

/* Whether one of the two told of code in a file that is looked at. -ENOMEM. */
int jit_tells(struct jit *j, int32_t pid, int32_t owner);

/* How often code of that process replaced other code, up to `time`. -ENOMEM. */
int64_t jit_epoch(struct jit *j, int32_t pid, uint64_t time);

void jit_done(struct jit *j);

/* What a process of that pid calls its perf map. */
void jit_perf_map_path(char out[64], int32_t pid);
/* Opens the perf map of the process where->pid: its fd and state, or a negative errno. */
int jit_open_perf_map(const struct file_search *where, struct stat *st);

#endif
