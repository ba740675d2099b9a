/* SPDX-License-Identifier: MIT */
/* Where the control groups are mounted that perf events know. */
#ifndef BASE_CGROUP_MOUNT_H
#define BASE_CGROUP_MOUNT_H

#include <stddef.h>

/*
 * The folder, without `root`, where the hierarchy is mounted that has the perf_event controller: one
 * of version 1, or else the unified one, where it is always on. 0; -EOPNOTSUPP: none is mounted; or
 * what reading /proc/self/mounts said.
 */
int cgroup_mount(char *folder, size_t size, const char *root);

#endif
