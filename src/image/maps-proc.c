/* SPDX-License-Identifier: MIT */
/* The mappings of a process that runs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tally/maps.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/proc-map.h"
#include "base/proc.h"

/* A line has about 100 bytes, and vm.max_map_count is 65,530 where nobody raised it. */
#define MAPS_LIMIT (64u << 20)

static int add_line(struct tally_maps *maps, int32_t pid, uint64_t time, const char *line)
{
	struct proc_map map;

	if (!proc_map_parse(&map, line))
		return 0;
	const struct tally_mapping mapping = {
		.start = map.start,
		.end = map.end,
		.pgoff = map.offset,
		.path = map.name,
		.inode = map.inode,
		.dev_major = map.major,
		.dev_minor = map.minor,
	};
	return tally_maps_add(maps, pid, time, &mapping);
}

static int unreadable(int32_t pid, int code, struct tally_error *err)
{
	if (code == -EACCES || code == -EPERM)
		return error_set(err, code, TALLY_CAUSE_PERMISSION,
				 "this user may not look into process %d: be its user, or root, or "
				 "have CAP_SYS_PTRACE",
				 pid);
	return error_set(err, code, TALLY_CAUSE_IO, "the mappings of process %d cannot be read: %s",
			 pid, strerror(-code));
}

int tally_maps_add_process(struct tally_maps *maps, int32_t pid, uint64_t time, const char *root,
			   struct tally_error *err)
{
	struct buf text = { 0 };
	char path[64], *rest = NULL;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	int r = proc_read(&text, root, path, MAPS_LIMIT);
	if (r == 0 && !buf_text(&text))
		r = -ENOMEM;
	if (r < 0) {
		buf_done(&text);
		return unreadable(pid, r == -ENOENT ? -ESRCH : r, err);
	}
	char *line = text.at ? strtok_r(text.at, "\n", &rest) : NULL;
	for (; line && r == 0; line = strtok_r(NULL, "\n", &rest))
		r = add_line(maps, pid, time, line);
	buf_done(&text);
	return r < 0 ? error_nomem(err, "the mappings of a process") : 0;
}
