/* SPDX-License-Identifier: MIT */
/* The folder of a control group, which stands for it in perf_event_open(2). */
#ifndef COUNT_CGROUP_H
#define COUNT_CGROUP_H

#include <tally/error.h>

/*
 * Opens the folder of a cgroup: `name` is a path below the mount of the hierarchy that has the
 * perf_event controller, or an absolute folder. Returns a descriptor.
 *   root  folder above /proc and the mounts, or NULL.
 * Errors: -EINVAL (no name), -EOPNOTSUPP (no such hierarchy is mounted), -ENOENT with the nearest
 * name, -ENOTDIR, -EACCES, -ENAMETOOLONG, those of reading /proc/self/mounts; explained.
 */
int cgroup_open(const char *name, const char *root, struct tally_error *err);

/* perf_event_open(2) said -EBADF: the folder is none of a cgroup of that hierarchy. */
int cgroup_explain_folder(const char *name, struct tally_error *err);

#endif
