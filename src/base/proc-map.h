/* SPDX-License-Identifier: MIT */
/* Lines of /proc/PID/maps (proc_pid_maps(5)). */
#ifndef BASE_PROC_MAP_H
#define BASE_PROC_MAP_H

#include <stdbool.h>
#include <stdint.h>

struct proc_map {
	uint64_t start, end, offset, inode;
	uint32_t major, minor;
	char perms[5]; /* "r-xp" */
	const char
		*name; /* in the line, "//anon" as the kernel's own records say, or "//toolong" */
};

/* Takes a line apart, without its newline. false: it is none. */
bool proc_map_parse(struct proc_map *out, const char *line);

#endif
