/* SPDX-License-Identifier: MIT */
/* The places in which a mapped file may be, and the proof that one there is the mapped one. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/sys.h"
#include "image/cache.h"
#include "image/debuginfod.h"
#include "image/elf.h"
#include "image/file-find.h"

int file_open_regular(const char *path, struct stat *st)
{
	int fd = sys()->open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);

	if (fd >= 0 && (fstat(fd, st) < 0 || !S_ISREG(st->st_mode))) {
		sys()->close(fd);
		return -ENOENT;
	}
	return fd;
}

/*
 * overlayfs, of which containers are made, and btrfs show files under a device of their own (major
 * 0), where the kernel may have recorded the one beneath.
 */
bool file_is_mapped_one(const struct stat *st, const struct tally_mapping *map)
{
	bool same_device = major(st->st_dev) == map->dev_major &&
			   minor(st->st_dev) == map->dev_minor;

	return map->inode && st->st_ino == map->inode && (same_device || !major(st->st_dev));
}

/* On the same file system, and another one: who compiled a program anew did not change the device. */
static bool is_replaced(const struct stat *st, const struct tally_mapping *map)
{
	return map->inode && st->st_ino != map->inode && major(st->st_dev) &&
	       major(st->st_dev) == map->dev_major && minor(st->st_dev) == map->dev_minor;
}

bool file_undeleted(char path[PATH_MAX], const char *recorded)
{
	size_t len = strlen(recorded), end = strlen(FILE_DELETED);
	bool deleted = len >= end && !strcmp(recorded + len - end, FILE_DELETED);

	len -= deleted ? end : 0;
	snprintf(path, PATH_MAX, "%.*s", len < PATH_MAX ? (int)len : PATH_MAX, recorded);
	return deleted;
}

enum demand {
	NOT_OTHER, /* it must not be of another build than recorded */
	IN_PLACE,  /* nor another file in the place of the mapped one */
	PROVEN,    /* it must be known to be the mapped one */
};

static bool try_file(struct file_found *found, const char *path, enum demand demand,
		     const struct file_search *where)
{
	struct stat st;
	int fd = file_open_regular(path, &st);

	found->denied |= fd == -EACCES || fd == -EPERM;
	if (fd < 0)
		return false;
	struct build_id id = elf_build_id(fd);
	bool differ = build_ids_differ(&id, &where->build_id);
	bool same = build_ids_match(&id, &where->build_id);
	bool proven = same || file_is_mapped_one(&st, &where->map);
	bool replaced = !same && demand == IN_PLACE && is_replaced(&st, &where->map);
	if (!differ && !replaced && (proven || demand < PROVEN)) {
		found->fd = fd;
		found->st = st;
		snprintf(found->path, sizeof(found->path), "%s", path);
		return true;
	}
	found->replaced |= replaced;
	if (differ) {
		found->other_build = true;
		found->id = id;
	}
	sys()->close(fd);
	return false;
}

/* A link below `root`, and where it leads. */
static bool read_link(char link[PATH_MAX], char target[PATH_MAX], const char *root,
		      const char *name)
{
	if (proc_path(link, PATH_MAX, root, name) < 0)
		return false;
	ssize_t len = readlink(link, target, PATH_MAX - 1);
	if (len < 0)
		return false;
	target[len] = '\0';
	return true;
}

/*
 * map_files/START-END leads to the mapped file itself, deleted or out of reach as it may be. That
 * the living process has this path in this place proves that it is the recorded one. Needs root.
 */
static bool try_map_files(struct file_found *found, const struct file_search *where)
{
	char name[128], link[PATH_MAX], target[PATH_MAX];
	const struct tally_mapping *map = &where->map;

	snprintf(name, sizeof(name), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, where->pid,
		 map->start, map->end);
	return read_link(link, target, where->root, name) && !strcmp(target, map->path) &&
	       try_file(found, link, NOT_OTHER, where);
}

/*
 * /proc/PID/exe leads to the program's own file in the same way, and who may look at the process
 * needs no more rights for it. A mapping may have been recorded before its file was deleted.
 */
static bool try_exe(struct file_found *found, const struct file_search *where)
{
	char name[64], link[PATH_MAX], target[PATH_MAX], path[PATH_MAX], now[PATH_MAX];

	snprintf(name, sizeof(name), "/proc/%d/exe", where->pid);
	if (!read_link(link, target, where->root, name))
		return false;
	file_undeleted(now, target);
	file_undeleted(path, where->map.path);
	return !strcmp(now, path) && try_file(found, link, PROVEN, where);
}

void file_process_root(char path[PATH_MAX], const struct file_search *where)
{
	snprintf(path, PATH_MAX, "%s/proc/%d/root", where->root ? where->root : "", where->pid);
}

static bool try_below(struct file_found *found, const char *folder, const char *path,
		      enum demand demand, const struct file_search *where)
{
	char full[PATH_MAX];

	return proc_path(full, sizeof(full), folder, path) == 0 &&
	       try_file(found, full, demand, where);
}

static bool try_process(struct file_found *found, const char *path, const struct file_search *where)
{
	char folder[PATH_MAX];

	if (where->pid <= 0)
		return false;
	file_process_root(folder, where);
	return try_below(found, folder, path, PROVEN, where) || try_map_files(found, where) ||
	       try_exe(found, where);
}

/* By build-id alone: what a recording kept, perf's too, and what servers have. */
static bool try_elsewhere(struct file_found *found, const struct file_search *where)
{
	char path[PATH_MAX];

	if (!where->build_id.len)
		return false;
	if (where->cache && cache_path(path, where->cache, CACHE_PROGRAM, &where->build_id) &&
	    try_file(found, path, PROVEN, where))
		return true;
	if (where->cache && cache_perf_path(path, &where->build_id, "elf") &&
	    try_file(found, path, PROVEN, where))
		return true;
	int fd = where->debuginfod
			 ? debuginfod_open(&where->build_id, DEBUGINFOD_PROGRAM, found->path)
			 : -1;
	if (fd < 0)
		return false;
	found->fd = fd;
	return fstat(fd, &found->st) == 0;
}

bool file_find(struct file_found *found, const struct file_search *where)
{
	const char *recorded = where->map.path;
	char path[PATH_MAX];

	*found = (struct file_found){ .fd = -1 };
	if (recorded[0] != '/' || strlen(recorded) >= sizeof(path))
		return false;
	bool deleted = file_undeleted(path, recorded);
	return (where->symfs && try_below(found, where->symfs, path, NOT_OTHER, where)) ||
	       try_process(found, path, where) ||
	       /* What took the place of a deleted file must show that it is the same. */
	       try_file(found, path, deleted ? PROVEN : IN_PLACE, where) ||
	       try_elsewhere(found, where);
}
