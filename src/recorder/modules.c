/* SPDX-License-Identifier: MIT */
/* Mapped files and their build-ids. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/sys.h"
#include "image/elf.h"
#include "recorder/modules.h"

static bool same_file(const struct mapped_file *file, const struct tally_record_mmap *map)
{
	return file->inode == map->ino && file->dev_major == map->maj &&
	       file->dev_minor == map->min;
}

int modules_see(struct modules *m, const struct tally_record *rec)
{
	const struct tally_record_mmap *map = &rec->mmap;

	if (rec->type != TALLY_RECORD_MMAP2 ||
	    (rec->misc & TALLY_MISC_CPUMODE) != TALLY_MISC_USER || !map->ino ||
	    map->build_id_size || map->filename[0] != '/')
		return 0;
	uint32_t id = strings_add(&m->paths, map->filename);
	if (id == UINT32_MAX)
		return -ENOMEM;
	/* Id 0 is "", which is no path: its place stays empty. */
	while (m->files.count <= id)
		if (!vec_push(&m->files))
			return -ENOMEM;
	struct mapped_file *file = &m->files.at[id];
	if (!file->inode)
		*file = (struct mapped_file){ map->ino, map->maj, map->min, map->pid, false };
	else if (!same_file(file, map))
		file->replaced = true;
	return 0;
}

/* -1 when there is none, or another file by now. A path may name a FIFO or a device, too. */
static int open_mapped(const struct mapped_file *file, const char *path)
{
	struct stat st;
	int fd = sys()->open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_ino == file->inode &&
	    major(st.st_dev) == file->dev_major && minor(st.st_dev) == file->dev_minor)
		return fd;
	sys()->close(fd);
	return -1;
}

/* By its path here, else as the process sees it: it may live in another mount namespace. */
static int open_anywhere(const struct mapped_file *file, const char *path, const char *root)
{
	char full[PATH_MAX];
	int fd = open_mapped(file, path);

	if (fd < 0 && snprintf(full, sizeof(full), "%s/proc/%d/root%s", root ? root : "", file->pid,
			       path) < (int)sizeof(full))
		fd = open_mapped(file, full);
	return fd;
}

int modules_write(const struct modules *m, struct tally_writer *writer, const char *root)
{
	for (uint32_t i = 1; i < m->files.count; i++) {
		const struct mapped_file *file = &m->files.at[i];
		const char *path = strings_get(&m->paths, i);
		int fd = file->inode && !file->replaced ? open_anywhere(file, path, root) : -1;
		if (fd < 0)
			continue;
		struct build_id id = elf_build_id(fd);
		sys()->close(fd);
		int r = id.len ? tally_writer_build_id(writer, TALLY_MISC_USER, -1, path, id.bytes,
						       id.len)
			       : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

void modules_done(struct modules *m)
{
	strings_done(&m->paths);
	vec_done(&m->files);
}
