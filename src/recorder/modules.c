/* SPDX-License-Identifier: MIT */
/* Mapped files, their build-ids, and what is kept of them. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "image/cache.h"
#include "image/elf.h"
#include "image/jit.h"
#include "image/module.h"
#include "image/maps.h"
#include "recorder/modules.h"

#define VDSO "[vdso]"

/* Larger files are not kept: there are few, and a copy takes long. */
#define MAX_KEPT ((uint64_t)512 << 20)

/* Of each kind: file descriptors are wanted for events, too. */
#define MOST_HELD 128

/* ---- files ---- */

/* An inode is used again soon after its file is gone; the kernel tells which time it is. */
static bool is_of_generation(int fd, uint64_t generation)
{
	unsigned long now = 0;

	/* Of the answer, an int, the upper half stays 0. Many file systems have none. */
	if (!generation || sys()->ioctl(fd, FS_IOC_GETVERSION, (unsigned long)&now) < 0)
		return true;
	return (uint32_t)now == (uint32_t)generation;
}

static bool is_mapped_one(int fd, const struct stat *st, const struct mapped_file *file,
			  const struct tally_mapping *map)
{
	return file_is_mapped_one(st, map) && is_of_generation(fd, file->generation);
}

/* The mapped file: at its path, else as one of its processes sees it; then `*gone` is set. */
static int open_mapped(const struct modules *m, const struct mapped_file *file, struct stat *st,
		       bool *gone)
{
	const char *path = strings_get(&m->paths, file->path);
	const int32_t pids[] = { file->last_pid, file->pid };
	struct file_search where = {
		.root = m->root,
		.map = {
			.start = file->start,
			.end = file->end,
			.path = path,
			.inode = file->inode,
			.dev_major = file->dev_major,
			.dev_minor = file->dev_minor,
		},
	};
	struct file_found found;
	int fd = file_open_regular(path, st);

	*gone = false;
	if (fd >= 0 && is_mapped_one(fd, st, file, &where.map))
		return fd;
	if (fd >= 0)
		sys()->close(fd);
	*gone = true;
	for (size_t i = 0; i < 2; i++) {
		where.pid = pids[i];
		if (!file_find(&found, &where))
			continue;
		*st = found.st;
		if (is_mapped_one(found.fd, st, file, &where.map))
			return found.fd;
		sys()->close(found.fd);
	}
	return -ENOENT;
}

/*
 * While it is sure to be the one. Held is what is not at its path here, and what was mapped while we
 * record, as a program that was just built may soon be built again; not what runs since long ago.
 */
static void look_at(struct modules *m, struct mapped_file *file)
{
	struct stat st;
	bool gone;
	int fd = open_mapped(m, file, &st, &gone);

	if (fd < 0)
		return;
	file->id = elf_build_id(fd);
	bool is_dump = maps_is_jitdump(strings_get(&m->paths, file->path));
	uint32_t *held = gone || is_dump ? &m->held_gone : &m->held_new;
	if ((gone || is_dump || file->generation) && *held < MOST_HELD) {
		file->fd = fd;
		++*held;
	} else {
		sys()->close(fd);
	}
}

/* ---- while recording ---- */

static struct mapped_file *find_file(struct modules *m, uint32_t path,
				     const struct tally_record_mmap *map)
{
	const uint64_t key[] = { path, map->ino, (uint64_t)map->maj << 32 | map->min,
				 map->ino_generation };
	uint32_t *index = map64_at(&m->file_of, hash_bytes(key, sizeof(key)));

	if (!index)
		return NULL;
	if (*index)
		return &m->files.at[*index - 1];
	while (m->files_of_path.count <= path)
		if (!vec_push(&m->files_of_path))
			return NULL;
	struct mapped_file *file = vec_push(&m->files);
	if (!file)
		return NULL;
	*index = (uint32_t)m->files.count;
	m->files_of_path.at[path]++;
	*file = (struct mapped_file){
		.path = path,
		.pid = map->pid,
		.last_pid = map->pid,
		.start = map->addr,
		.end = map->addr + map->len,
		.inode = map->ino,
		.generation = map->ino_generation,
		.dev_major = map->maj,
		.dev_minor = map->min,
		.fd = -1,
	};
	look_at(m, file);
	return file;
}

static int see_file(struct modules *m, const struct tally_record_mmap *map)
{
	uint32_t path = strings_add(&m->paths, map->filename);
	struct mapped_file *file = path == UINT32_MAX ? NULL : find_file(m, path, map);

	if (!file)
		return -ENOMEM;
	file->last_pid = map->pid;
	file->start = map->addr;
	file->end = map->addr + map->len;
	uint32_t number = (uint32_t)(file - m->files.at);
	uint32_t *user = map64_at(&m->user_of, (uint64_t)number << 32 | (uint32_t)map->pid);
	if (!user || *user)
		return user ? 0 : -ENOMEM;
	if (!vec_reserve(&m->users, 1))
		return -ENOMEM;
	m->users.at[m->users.count++] = (struct file_user){ number, map->pid };
	*user = (uint32_t)m->users.count;
	return 0;
}

static int see_maker(struct modules *m, int32_t pid)
{
	uint32_t *maker = map64_at(&m->maker_of, (uint32_t)pid);

	if (!maker || *maker)
		return maker ? 0 : -ENOMEM;
	if (!vec_reserve(&m->makers, 1))
		return -ENOMEM;
	m->makers.at[m->makers.count++] = pid;
	*maker = (uint32_t)m->makers.count;
	return 0;
}

int modules_see(struct modules *m, const struct tally_record *rec)
{
	const struct tally_record_mmap *map = &rec->mmap;
	uint32_t mode = rec->misc & TALLY_MISC_CPUMODE;

	if (rec->type != TALLY_RECORD_MMAP2 || mode != TALLY_MISC_USER)
		return 0;
	m->vdso |= !strcmp(map->filename, VDSO);
	bool no_file = module_not_a_file(map->filename);
	/* In a memfd there may be made code, or a program. */
	if ((no_file || strstr(map->filename, "memfd:")) && !(rec->misc & TALLY_MISC_MMAP_DATA) &&
	    see_maker(m, map->pid) < 0)
		return -ENOMEM;
	if (no_file || !map->ino || map->build_id_size || map->filename[0] != '/')
		return 0;
	return see_file(m, map);
}

/* ---- at the end ---- */

struct keeper {
	const struct modules *m;
	struct tally_writer *writer;
	const char *cache;
};

/* The processes that have no other file of that path: an id for more would be wrong for some. */
static int tell_users(const struct keeper *k, uint32_t number, const struct build_id *id)
{
	const struct modules *m = k->m;
	const struct mapped_file *file = &m->files.at[number];
	const char *path = strings_get(&m->paths, file->path);
	int r = 0;

	if (m->files_of_path.at[file->path] == 1)
		return tally_writer_build_id(k->writer, TALLY_MISC_USER, -1, path, id->bytes,
					     id->len);
	for (size_t i = 0; i < m->users.count && r == 0; i++) {
		const struct file_user *user = &m->users.at[i];
		uint32_t others = 0;
		if (user->file != number)
			continue;
		for (uint32_t f = 0; f < m->files.count; f++)
			others += f != number && m->files.at[f].path == file->path &&
				  map64_get(&m->user_of, (uint64_t)f << 32 | (uint32_t)user->pid);
		if (!others)
			r = tally_writer_build_id(k->writer, TALLY_MISC_USER, user->pid, path,
						  id->bytes, id->len);
	}
	return r;
}

/* A cache that cannot be written to makes no recording worse. */
static void keep(const struct keeper *k, enum cache_kind kind, const struct build_id *id, int fd,
		 uint64_t len)
{
	if (k->cache && len <= MAX_KEPT)
		cache_keep(k->cache, kind, id, fd, len);
}

/* The file for being kept; negative: it need not be, or is gone. A jitdump may go with its folder. */
static int open_for_keeping(const struct keeper *k, const struct mapped_file *file, bool is_dump,
			    struct stat *st)
{
	bool gone;
	int fd = open_mapped(k->m, file, st, &gone);
	bool stays = fd >= 0 && !gone && !is_dump, is_held = file->fd >= 0;

	if (fd >= 0 && !stays && !is_held) {
		struct build_id id = elf_build_id(fd);
		if (is_dump || build_ids_match(&id, &file->id))
			return fd;
	}
	if (fd >= 0)
		sys()->close(fd);
	if (stays || !is_held)
		return -ENOENT;
	return fstat(file->fd, st) == 0 ? fcntl(file->fd, F_DUPFD_CLOEXEC, 0) : -errno;
}

static int write_file(const struct keeper *k, uint32_t number)
{
	const struct mapped_file *file = &k->m->files.at[number];
	bool is_dump = maps_is_jitdump(strings_get(&k->m->paths, file->path));
	struct build_id id = file->id;
	struct stat st;
	int fd = open_for_keeping(k, file, is_dump, &st);
	uint64_t size = fd >= 0 ? (uint64_t)st.st_size : 0;

	/* It has no build-id of its own. */
	if (is_dump && (fd < 0 || size > MAX_KEPT || !cache_content_id(&id, fd, size)))
		id.len = 0;
	int r = id.len ? tell_users(k, number, &id) : 0;
	if (id.len && fd >= 0)
		keep(k, is_dump ? CACHE_CODE : CACHE_PROGRAM, &id, fd, size);
	if (fd >= 0)
		sys()->close(fd);
	return r;
}

static int write_perf_map(const struct keeper *k, int32_t pid)
{
	const struct file_search where = { .root = k->m->root, .pid = pid };
	char path[64];
	struct build_id id;
	struct stat st;
	int fd = jit_open_perf_map(&where, &st), r = 0;

	if (fd < 0)
		return 0;
	uint64_t size = (uint64_t)st.st_size;
	jit_perf_map_path(path, pid);
	if (size <= MAX_KEPT && cache_content_id(&id, fd, size)) {
		r = tally_writer_build_id(k->writer, TALLY_MISC_USER, -1, path, id.bytes, id.len);
		keep(k, CACHE_CODE, &id, fd, size);
	}
	sys()->close(fd);
	return r;
}

static int write_vdso(const struct keeper *k)
{
	struct elf_file f = { 0 };
	size_t size;
	const void *image = module_vdso(&size);
	int r = 0;

	if (image && elf_file_read_memory(&f, image, size) == 0 && f.build_id.len) {
		r = tally_writer_build_id(k->writer, TALLY_MISC_USER, -1, VDSO, f.build_id.bytes,
					  f.build_id.len);
		if (k->cache)
			cache_keep_bytes(k->cache, CACHE_PROGRAM, &f.build_id, image, size);
	}
	elf_file_done(&f);
	return r;
}

int modules_write(const struct modules *m, struct tally_writer *writer, const char *cache)
{
	const struct keeper k = { m, writer, cache };
	int r = m->vdso ? write_vdso(&k) : 0;

	for (uint32_t i = 0; i < m->files.count && r == 0; i++)
		r = write_file(&k, i);
	for (size_t i = 0; i < m->makers.count && r == 0; i++)
		r = write_perf_map(&k, m->makers.at[i]);
	return r;
}

void modules_done(struct modules *m)
{
	vec_each (&m->files, file)
		if (file->fd >= 0)
			sys()->close(file->fd);
	strings_done(&m->paths);
	vec_done(&m->files);
	vec_done(&m->users);
	vec_done(&m->files_of_path);
	vec_done(&m->makers);
	map64_done(&m->file_of);
	map64_done(&m->user_of);
	map64_done(&m->maker_of);
}
