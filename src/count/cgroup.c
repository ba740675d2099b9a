/* SPDX-License-Identifier: MIT */
/* Control groups: their folders, and what stands in the way of opening one. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cgroup-mount.h"
#include "base/error.h"
#include "base/proc.h"
#include "base/sys.h"
#include "count/cgroup.h"
#include "event/explain.h"
#include "event/nearest.h"

static int find_mount(char *folder, size_t size, const char *root, struct tally_error *err)
{
	int r = cgroup_mount(folder, size, root);

	if (r == -EOPNOTSUPP)
		return error_set(
			err, r, TALLY_CAUSE_UNSUPPORTED,
			"no hierarchy of cgroups with the perf_event controller is mounted: "
			"'sudo mount -t cgroup2 none /sys/fs/cgroup'");
	if (r < 0)
		return error_set(err, r, TALLY_CAUSE_IO,
				 "cannot read %s/proc/self/mounts to find cgroups: %s",
				 root ? root : "", strerror(-r));
	return 0;
}

/* Offers the groups beside the first component of `path` below `mount` that does not exist. */
static void find_nearest(struct nearest *near, char *before, size_t size, const char *mount,
			 const char *path)
{
	char full[PATH_MAX];
	size_t done = 0;

	for (;;) {
		size_t next = done + strspn(path + done, "/");
		size_t len = strcspn(path + next, "/");
		struct stat st;
		if (snprintf(full, sizeof(full), "%s/%.*s", mount, (int)(next + len), path) >=
			    (int)sizeof(full) ||
		    !len || stat(full, &st) < 0 || !S_ISDIR(st.st_mode)) {
			nearest_init(near, path + next, len);
			break;
		}
		done = next + len;
	}
	snprintf(before, size, "%.*s", (int)done, path);
	snprintf(full, sizeof(full), "%s/%.*s", mount, (int)done, path);
	DIR *dir = opendir(full);
	struct dirent *entry;
	while (dir && (entry = readdir(dir)))
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
			nearest_offer(near, entry->d_name);
	if (dir)
		closedir(dir);
}

static int missing(const char *name, const char *mount, const char *root, struct tally_error *err)
{
	struct nearest near;
	char before[PATH_MAX];

	find_nearest(&near, before, sizeof(before), mount, name);
	if (near.name[0])
		return error_set(err, -ENOENT, TALLY_CAUSE_UNKNOWN,
				 "there is no cgroup '%.150s' below %.100s: did you mean "
				 "'%.100s%s%s'?",
				 name, mount + (root ? strlen(root) : 0), before,
				 before[0] ? "/" : "", near.name);
	return error_set(
		err, -ENOENT, TALLY_CAUSE_UNKNOWN,
		"there is no cgroup '%.200s' below %.100s: /proc/PID/cgroup names that of a "
		"process",
		name, mount + (root ? strlen(root) : 0));
}

static int explain(int code, const char *name, const char *mount, const char *root,
		   struct tally_error *err)
{
	char what[256];

	switch (code) {
	case -ENOENT:
		return missing(name, mount, root, err);
	case -ENOTDIR:
		return error_set(err, code, TALLY_CAUSE_ARGUMENT,
				 "'%.300s' is no cgroup: cgroups are folders", name);
	case -EMFILE:
		snprintf(what, sizeof(what), "cannot open cgroup '%.200s'", name);
		return explain_fds(err, code, what, 1, false, root);
	default:
		return error_set(err, code,
				 code == -EACCES ? TALLY_CAUSE_PERMISSION : TALLY_CAUSE_IO,
				 "cannot open cgroup '%.300s': %s", name, strerror(-code));
	}
}

/* Folder `path` below `above`. */
static int open_folder(const char *above, const char *path)
{
	char full[PATH_MAX];
	int n = snprintf(full, sizeof(full), "%s%s%s", above, path[0] == '/' ? "" : "/", path);

	if (n >= (int)sizeof(full))
		return -ENAMETOOLONG;
	return sys()->open(full, O_RDONLY | O_DIRECTORY, 0);
}

int cgroup_open(const char *name, const char *root, struct tally_error *err)
{
	char folder[PATH_MAX], mount[PATH_MAX];

	if (!name || !*name)
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
				 "the target is a cgroup, and none is named");
	int r = find_mount(folder, sizeof(folder), root, err);
	if (r < 0)
		return r;
	r = proc_path(mount, sizeof(mount), root, folder);
	if (r < 0)
		return explain(r, name, folder, root, err);
	/* An absolute folder, which may also be a path as /proc/PID/cgroup has it. */
	int fd = name[0] == '/' && name[1] ? open_folder(root ? root : "", name) : -ENOENT;
	if (fd == -ENOENT)
		fd = open_folder(mount, name);
	return fd < 0 ? explain(fd, name, mount, root, err) : fd;
}

int cgroup_explain_folder(const char *name, struct tally_error *err)
{
	return error_set(
		err, -EBADF, TALLY_CAUSE_ARGUMENT,
		"'%.200s' is a folder, and no cgroup of the hierarchy that has the perf_event "
		"controller: /proc/PID/cgroup names that of a process",
		name);
}
