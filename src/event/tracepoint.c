/* SPDX-License-Identifier: MIT */
/*
 * Tracepoints: events/GROUP/NAME/id below tracefs, which is mounted at /sys/kernel/tracing, or was
 * before Linux 4.1 a part of debugfs.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/proc.h"
#include "base/vec.h"
#include "event/nearest.h"
#include "event/tracepoint.h"

static const char *const mounts[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };

#define FORMAT_LIMIT (1u << 20)

typedef VEC(char *) names;

static void names_done(names *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->at[i]);
	vec_done(list);
}

static int compare_names(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

/* The folders in a folder, sorted. 0 or -errno. */
static int list_folders(names *out, const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int r = 0;

	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.' ||
		    (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN))
			continue;
		char *name = strdup(entry->d_name), **slot = name ? vec_push(out) : NULL;
		if (!slot) {
			free(name);
			r = -ENOMEM;
			break;
		}
		*slot = name;
	}
	closedir(dir);
	if (out->count)
		qsort(out->at, out->count, sizeof(*out->at), compare_names);
	return r;
}

/*
 * The path of the events folder. 0, -ENOENT when neither mount has one, -EACCES when one might have.
 * It is opened, since a folder that may not be searched looks like one that lacks it.
 */
static int events_folder(char *out, size_t size, const char *root, const char **mount)
{
	int worst = -ENOENT;

	for (size_t i = 0; i < ARRAY_SIZE(mounts); i++) {
		char path[64];
		snprintf(path, sizeof(path), "%s/events", mounts[i]);
		int r = proc_path(out, size, root, path);
		if (r < 0)
			return r;
		DIR *dir = opendir(out);
		if (dir) {
			closedir(dir);
			*mount = mounts[i];
			return 0;
		}
		if (errno == EACCES && worst == -ENOENT) {
			worst = -EACCES;
			*mount = mounts[i];
		}
	}
	return worst;
}

/* As the kernel makes them from C identifiers and file names; no way out of the folder. */
static bool is_plain(const char *name)
{
	for (const char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && *c != '_' && *c != '-')
			return false;
	return *name;
}

bool tracepoint_has_group(const char *root, const char *group)
{
	char folder[PATH_MAX], path[PATH_MAX];
	const char *mount;

	return is_plain(group) && events_folder(folder, sizeof(folder), root, &mount) == 0 &&
	       snprintf(path, sizeof(path), "%s/%s", folder, group) < (int)sizeof(path) &&
	       access(path, F_OK) == 0;
}

static int refuse_mount(int code, const char *mount, struct tally_error *err)
{
	if (code == -EACCES)
		return error_set(err, code, TALLY_CAUSE_PERMISSION,
				 "this user may not read tracefs at %s: be root, or let your group "
				 "in with 'sudo mount -o remount,mode=750,gid=%u %s'",
				 mount, getegid(), mount);
	if (code == -ENOENT)
		return error_set(err, code, TALLY_CAUSE_NO_FILE,
				 "tracefs, which has the tracepoints, is not mounted: "
				 "'sudo mount -t tracefs nodev %s'",
				 mounts[0]);
	return error_set(err, code, TALLY_CAUSE_IO, "cannot read tracefs: %s", strerror(-code));
}

static int offer(const char *name, void *arg)
{
	nearest_offer(arg, name);
	return 0;
}

static int refuse_name(const char *group, const char *name, const char *root,
		       struct tally_error *err)
{
	char full[NEAREST_MAX + 2];
	struct nearest near;
	int len = snprintf(full, sizeof(full), "%s:%s", group, name);

	nearest_init(&near, full, (size_t)len);
	if (len <= NEAREST_MAX && tracepoint_each(root, offer, &near) == -ENOMEM)
		return error_nomem(err, "the names of tracepoints");
	if (near.name[0])
		return error_set(err, -EINVAL, TALLY_CAUSE_UNKNOWN,
				 "there is no tracepoint '%s', the nearest is '%s'", full,
				 near.name);
	return error_set(err, -EINVAL, TALLY_CAUSE_UNKNOWN,
			 "there is no tracepoint '%s': 'tally list' shows those of this kernel",
			 full);
}

/* The number in events/GROUP/NAME/id below `folder`. -ENOENT: there is no such tracepoint. */
static int read_id(uint64_t *id, const char *folder, const char *group, const char *name,
		   const char *mount, struct tally_error *err)
{
	char path[PATH_MAX];
	int64_t number;

	if (snprintf(path, sizeof(path), "%s/%s/%s/id", folder, group, name) >= (int)sizeof(path))
		return -ENOENT;
	int r = proc_read_i64(&number, NULL, path);
	if (r == -ENOENT || r == -ENOTDIR)
		return -ENOENT;
	if (r == -EACCES || r == -EPERM)
		return refuse_mount(-EACCES, mount, err);
	if (r < 0 || number < 0)
		return error_set(err, r < 0 ? r : -EINVAL, TALLY_CAUSE_IO,
				 "cannot read the number of tracepoint %s:%s from %s: %s", group,
				 name, path, r < 0 ? strerror(-r) : "it is negative");
	*id = (uint64_t)number;
	return 0;
}

int tracepoint_id(uint64_t *id, const char *group, const char *name, const char *root,
		  struct tally_error *err)
{
	char folder[PATH_MAX];
	const char *mount = mounts[0];

	int r = events_folder(folder, sizeof(folder), root, &mount);
	if (r < 0)
		return refuse_mount(r, mount, err);
	r = is_plain(group) && is_plain(name) ? read_id(id, folder, group, name, mount, err)
					      : -ENOENT;
	return r == -ENOENT ? refuse_name(group, name, root, err) : r;
}

/* The folders without an id (most of the group ftrace) cannot be opened as events. */
static int each_in_group(const char *folder, const char *group,
			 int (*fn)(const char *name, void *arg), void *arg)
{
	char path[PATH_MAX], full[2 * NAME_MAX + 2];
	names list = { 0 };
	int r = 0;

	if (snprintf(path, sizeof(path), "%s/%s", folder, group) < (int)sizeof(path))
		r = list_folders(&list, path) == -ENOMEM ? -ENOMEM : 0;
	for (size_t i = 0; i < list.count && r == 0; i++) {
		snprintf(full, sizeof(full), "%s:%s", group, list.at[i]);
		if (snprintf(path, sizeof(path), "%s/%s/%s/id", folder, group, list.at[i]) <
			    (int)sizeof(path) &&
		    access(path, F_OK) == 0)
			r = fn(full, arg);
	}
	names_done(&list);
	return r;
}

int tracepoint_each(const char *root, int (*fn)(const char *name, void *arg), void *arg)
{
	char folder[PATH_MAX];
	const char *mount;
	names groups = { 0 };
	int r = 0;

	if (events_folder(folder, sizeof(folder), root, &mount) < 0)
		return 0;
	r = list_folders(&groups, folder) == -ENOMEM ? -ENOMEM : 0;
	for (size_t i = 0; i < groups.count && r == 0; i++)
		r = each_in_group(folder, groups.at[i], fn, arg);
	names_done(&groups);
	return r;
}

struct match {
	const char *group, *name, *folder, *mount;
	int (*fn)(const char *name, uint64_t id, void *arg);
	void *arg;
	size_t count;
	struct tally_error *err;
};

static int offer_match(const char *full, void *arg)
{
	struct match *m = arg;
	const char *name = strchr(full, ':') + 1;
	char group[NAME_MAX + 1];
	uint64_t id;

	snprintf(group, sizeof(group), "%.*s", (int)(name - full - 1), full);
	if (fnmatch(m->group, group, 0) != 0 || fnmatch(m->name, name, 0) != 0)
		return 0;
	int r = read_id(&id, m->folder, group, name, m->mount, m->err);
	if (r == -ENOENT)
		return 0; /* its module has just gone */
	m->count++;
	return r < 0 ? r : m->fn(full, id, m->arg);
}

int tracepoint_match(const char *group, const char *name, const char *root,
		     int (*fn)(const char *name, uint64_t id, void *arg), void *arg,
		     struct tally_error *err)
{
	char folder[PATH_MAX];
	struct match m = { group, name, folder, mounts[0], fn, arg, 0, err };

	int r = events_folder(folder, sizeof(folder), root, &m.mount);
	if (r < 0)
		return refuse_mount(r, m.mount, err);
	r = tracepoint_each(root, offer_match, &m);
	if (r == 0 && !m.count)
		return error_set(err, -EINVAL, TALLY_CAUSE_UNKNOWN,
				 "no tracepoint matches '%s:%s': 'tally list' shows those of this "
				 "kernel",
				 group, name);
	return r == -ENOMEM ? error_nomem(err, "the names of tracepoints") : r;
}

int tracepoint_format(struct buf *out, const char *full_name, const char *root)
{
	char folder[PATH_MAX], path[PATH_MAX];
	size_t group_len = strcspn(full_name, ":");
	const char *mount;

	int r = events_folder(folder, sizeof(folder), root, &mount);
	if (r < 0)
		return r;
	if (!full_name[group_len] ||
	    snprintf(path, sizeof(path), "%s/%.*s/%s/format", folder, (int)group_len, full_name,
		     full_name + group_len + 1) >= (int)sizeof(path))
		return -ENOENT;
	return proc_read(out, NULL, path, FORMAT_LIMIT);
}
