/* SPDX-License-Identifier: MIT */
/* The control groups that there are, from the folders of their hierarchy, as perf(1) tells them. */
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
#include "base/vec.h"
#include "recorder/synth.h"

/* The handle of a file in kernfs is its 64-bit id: linux/exportfs.h, Linux 5.5. */
#define HANDLE_KERNFS 0xfe

/* Folders that are still to be looked at, each as its path below the mount; "" is the root. */
struct walk {
	VEC(char *) paths;
	const char *mount; /* with the root before it */
	dev_t dev;
};

static bool push(struct walk *w, const char *path)
{
	char *copy = strdup(path), **slot = copy ? vec_push(&w->paths) : NULL;

	if (!slot) {
		free(copy);
		return false;
	}
	*slot = copy;
	return true;
}

static int full_path(char *full, size_t size, const struct walk *w, const char *path)
{
	int n = snprintf(full, size, "%s%s", w->mount, path);

	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

/*
 * The kernel's own records and samples have the id of the kernfs node, which is the inode as well,
 * but where the inode has 32 bits only.
 */
static uint64_t id_of(const char *full, const struct stat *st)
{
	union {
		struct file_handle handle;
		char room[sizeof(struct file_handle) + sizeof(uint64_t)];
	} of = { .handle.handle_bytes = sizeof(uint64_t) };
	uint64_t id = st->st_ino;
	int mount;

	if (name_to_handle_at(AT_FDCWD, full, &of.handle, &mount, 0) == 0 &&
	    of.handle.handle_type == HANDLE_KERNFS && of.handle.handle_bytes == sizeof(id))
		memcpy(&id, of.handle.f_handle, sizeof(id));
	return id;
}

static int push_below(struct walk *w, const char *path, const char *full)
{
	DIR *dir = opendir(full);
	struct dirent *entry;
	bool good = true;

	/* Gone meanwhile, or another user's. */
	while (dir && good && (entry = readdir(dir))) {
		char below[PATH_MAX];
		if ((entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN) ||
		    !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		int n = snprintf(below, sizeof(below), "%s/%s", path, entry->d_name);
		good = n >= (int)sizeof(below) || push(w, below);
	}
	if (dir)
		closedir(dir);
	return good ? 0 : -ENOMEM;
}

/* One folder, and what is below it for later. What else is mounted or linked there is no cgroup. */
static int visit(struct synth *s, struct walk *w, const char *path, struct tally_error *err)
{
	char full[PATH_MAX];
	struct stat st;

	if (full_path(full, sizeof(full), w, path) < 0 || lstat(full, &st) < 0 ||
	    !S_ISDIR(st.st_mode) || (*path && st.st_dev != w->dev))
		return 0;
	w->dev = st.st_dev;
	const char *name = *path ? path : "/";
	struct tally_record rec = {
		.type = TALLY_RECORD_CGROUP,
		.cgroup = {
			.id = id_of(full, &st),
			.path = name,
			.path_len = (uint32_t)strlen(name),
		},
	};
	int r = synth_emit(s, &rec, err);
	if (r == 0 && push_below(w, path, full) < 0)
		r = error_nomem(err, "the list of cgroups");
	return r;
}

int synth_cgroups(struct synth *s, struct tally_error *err)
{
	char folder[PATH_MAX], mount[PATH_MAX];
	struct walk w = { .mount = mount };
	int r = 0;

	if (cgroup_mount(folder, sizeof(folder), s->root) < 0 ||
	    proc_path(mount, sizeof(mount), s->root, folder) < 0)
		return 0;
	if (!push(&w, ""))
		return error_nomem(err, "the list of cgroups");
	while (w.paths.count) {
		char *path = w.paths.at[--w.paths.count];
		if (r == 0)
			r = visit(s, &w, path, err);
		free(path);
	}
	vec_done(&w.paths);
	return r < 0 ? r : synth_flush(s, err);
}
