/* SPDX-License-Identifier: MIT */
/*
 * tally_maps: what was mapped where, in each process, at each time.
 *
 * Fed from MMAP2, KSYMBOL, FORK, EXIT and COMM records in any order; asked with (pid, time, address) in any
 * order. Of records with equal times, the one that was added first happened first. A process
 * begins with its parent's mappings at the time of the fork, and with none at an exec. Mappings
 * that a later one covers end there, wholly or in part.
 *
 * Adding and asking may alternate. A record that is older than what has been asked since takes
 * time in proportion to the records that it overtakes: when there is a choice, add all, then ask.
 */
#ifndef TALLY_MAPS_H
#define TALLY_MAPS_H

#include <tally/api.h>
#include <tally/error.h>
#include <tally/record.h>

TALLY_BEGIN_DECLS

struct tally_maps;

/* pid of mappings that every process shares: the kernel's. */
#define TALLY_MAPS_KERNEL (-1)

enum tally_mapping_flags {
	/*
	 * One function that the kernel made while it ran (a BPF program, a trampoline of ftrace, a copy
	 * of instructions for a kprobe), by a KSYMBOL record: the path is its name.
	 */
	TALLY_MAPPING_SYMBOL = 1u << 0,
};

/* A mapping as it is at some time. */
struct tally_mapping {
	uint64_t start, end; /* addresses, end exclusive */
	uint64_t pgoff;   /* offset in the file, bytes; of kernel maps: address of the symbol in the
			     name */
	const char *path; /* as recorded; lives as long as the maps */
	uint32_t path_id; /* equal for equal paths and build-ids, below tally_maps_paths() */
	uint32_t build_id_len;   /* 0: unknown */
	const uint8_t *build_id; /* likewise */
	uint64_t inode;          /* 0: unknown */
	uint32_t dev_major, dev_minor;
	uint32_t flags; /* enum tally_mapping_flags */
	uint32_t reserved;
};

/* Errors: -ENOMEM. Since: 0.1 */
TALLY_API int tally_maps_new(struct tally_maps **out);
/* NULL is fine. Since: 0.1 */
TALLY_API void tally_maps_free(struct tally_maps *maps);

/*
 * A mapping came to be at `time` (ns; 0: it was always there). pid is TALLY_MAPS_KERNEL for kernel
 * and modules. `map->path`, `build_id` are copied; path_id is ignored. Errors: -ENOMEM; -EINVAL:
 * empty or wrapping range. Since: 0.1
 */
TALLY_API int tally_maps_add(struct tally_maps *maps, int32_t pid, uint64_t time,
			     const struct tally_mapping *map);

/*
 * From `time` on nothing is mapped at `start` to `end` (exclusive), by a KSYMBOL record that
 * unregisters. Errors: as tally_maps_add(). Since: 0.1
 */
TALLY_API int tally_maps_remove(struct tally_maps *maps, int32_t pid, uint64_t time, uint64_t start,
				uint64_t end);

/*
 * A process `pid` was forked from `parent`: it takes a copy of its mappings. Threads (pid ==
 * parent) only inherit the name. Not for FORK records that perf(1) makes for what already runs
 * (misc bit 13, FORK_EXEC): their mappings follow. Errors: -ENOMEM. Since: 0.1
 */
TALLY_API int tally_maps_fork(struct tally_maps *maps, int32_t pid, int32_t tid, int32_t parent_pid,
			      int32_t parent_tid, uint64_t time);

/* A thread's name changed; by an exec all mappings of its process are gone. Errors: -ENOMEM.
 * Since: 0.1 */
TALLY_API int tally_maps_comm(struct tally_maps *maps, int32_t pid, int32_t tid, uint64_t time,
			      const char *comm, bool exec);

/* A thread ended. Its names and mappings remain for its time. Since: 0.1 */
TALLY_API int tally_maps_exit(struct tally_maps *maps, int32_t pid, int32_t tid, uint64_t time);

/*
 * The same by a record: MMAP, MMAP2, COMM, FORK and EXIT. Returns 1 when it changed something, 0 for
 * others, and for those that perf(1) makes up for what already runs. Errors: -ENOMEM; -EINVAL: it makes
 * no sense. Since: 0.1
 */
TALLY_API int tally_maps_push(struct tally_maps *maps, const struct tally_record *rec);

/*
 * What process `pid` has mapped now, from /proc/PID/maps below `root` (NULL: the real one), for times
 * from `time` on. Errors: -ESRCH: there is no such process; -EACCES and others of reading; -ENOMEM.
 * Since: 0.1
 */
TALLY_API int tally_maps_add_process(struct tally_maps *maps, int32_t pid, uint64_t time,
				     const char *root, struct tally_error *err);

/*
 * The mapping of `address` at `time`, or the kernel's there; `start`, `end` and `pgoff` are those
 * of what is left of it. Returns 1, or 0 when there is none. Errors: -ENOMEM. Since: 0.1
 */
TALLY_API int tally_maps_find(struct tally_maps *maps, int32_t pid, uint64_t time, uint64_t address,
			      struct tally_mapping *out);

/* A thread's name at `time`; NULL when unknown. Lives as long as the maps. Since: 0.1 */
TALLY_API const char *tally_maps_name(struct tally_maps *maps, int32_t tid, uint64_t time);

/* How many different (path, build-id) pairs there are. Since: 0.1 */
TALLY_API uint32_t tally_maps_paths(const struct tally_maps *maps);

TALLY_END_DECLS

#endif
