/* SPDX-License-Identifier: MIT */
/* "start-end perms offset maj:min inode   path". */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/proc-map.h"

bool proc_map_parse(struct proc_map *out, const char *line)
{
	int at = 0;

	if (sscanf(line,
		   "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %" SCNx32 ":%" SCNx32 " %" SCNu64 " %n",
		   &out->start, &out->end, out->perms, &out->offset, &out->major, &out->minor,
		   &out->inode, &at) != 7 ||
	    !at || strlen(out->perms) != 4 || out->end <= out->start)
		return false;
	out->name = line[at] ? line + at : "//anon";
	/* A path in /proc may be longer than PATH_MAX; the kernel's own records say so likewise. */
	if (strlen(out->name) >= PATH_MAX)
		out->name = "//toolong";
	return true;
}
