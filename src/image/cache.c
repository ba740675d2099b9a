/* SPDX-License-Identifier: MIT */
/* Names, writing and reading back of what recordings keep. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/proc.h"
#include "base/sys.h"
#include "base/vec.h"
#include "image/cache.h"

#define FOLDER_MODE 0700
#define FILE_MODE   0600

#define PIECE 65536

/* "code", the length of what was hashed, and the hash. */
#define CONTENT_MARK 0x65646f63u
#define CONTENT_LEN  20

#define FNV_PRIME 0x100000001b3u

static const char *const kind_names[] = {
	[CACHE_PROGRAM] = "program",
	[CACHE_CODE] = "code",
	[CACHE_KERNEL] = "kernel",
};

bool cache_folder(char path[PATH_MAX])
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	int n;

	/* "All paths must be absolute": XDG Base Directory Specification. */
	if (cache && cache[0] == '/')
		n = snprintf(path, PATH_MAX, "%s/tally", cache);
	else if (home && home[0] == '/')
		n = snprintf(path, PATH_MAX, "%s/.cache/tally", home);
	else
		return false;
	return n > 0 && n < PATH_MAX;
}

bool cache_path(char path[PATH_MAX], const char *folder, enum cache_kind kind,
		const struct build_id *id)
{
	char text[BUILD_ID_TEXT];

	if (!id->len)
		return false;
	int n = snprintf(path, PATH_MAX, "%s/%s/%s", folder, kind_names[kind],
			 build_id_text(text, id));
	return n > 0 && n < PATH_MAX;
}

bool cache_perf_path(char path[PATH_MAX], const struct build_id *id, const char *name)
{
	const char *home = getenv("HOME");
	char text[BUILD_ID_TEXT];

	if (id->len < 2 || !home || home[0] != '/')
		return false;
	build_id_text(text, id);
	int n = snprintf(path, PATH_MAX, "%s/.debug/.build-id/%.2s/%s/%s", home, text, text + 2,
			 name);
	return n > 0 && n < PATH_MAX;
}

uint64_t cache_hash(uint64_t hash, const void *bytes, size_t len)
{
	const unsigned char *at = bytes;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ at[i]) * FNV_PRIME;
	return hash;
}

bool cache_content_id(struct build_id *out, int fd, uint64_t len)
{
	uint64_t hash = CACHE_HASH_START;
	unsigned char piece[PIECE];

	for (uint64_t at = 0; at < len;) {
		size_t want = len - at < PIECE ? (size_t)(len - at) : PIECE;
		ssize_t n = sys()->pread(fd, piece, want, (off_t)at);
		if (n <= 0)
			return false;
		hash = cache_hash(hash, piece, (size_t)n);
		at += (uint64_t)n;
	}
	*out = (struct build_id){ .len = CONTENT_LEN };
	/* In one byte order, for it is stored in recordings. */
	const bool swapped = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	store_u32(out->bytes, CONTENT_MARK, swapped);
	store_u64(out->bytes + 4, len, swapped);
	store_u64(out->bytes + 12, hash, swapped);
	return true;
}

uint64_t cache_content_len(const struct build_id *id)
{
	const bool swapped = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;

	if (id->len != CONTENT_LEN || load_u32(id->bytes, swapped) != CONTENT_MARK)
		return 0;
	return load_u64(id->bytes + 4, swapped);
}

/* The folders above a file. */
static int make_folders(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		int r = mkdir(path, FOLDER_MODE) < 0 && errno != EEXIST ? -errno : 0;
		*slash = '/';
		if (r < 0)
			return r;
	}
	return 0;
}

static int copy(int to, int from, uint64_t len)
{
	char piece[PIECE];

	for (uint64_t at = 0; at < len;) {
		size_t want = len - at < PIECE ? (size_t)(len - at) : PIECE;
		ssize_t n = sys()->pread(from, piece, want, (off_t)at);
		if (n <= 0)
			return n < 0 ? (int)n : -EIO;
		int r = sys_write_all(to, piece, (size_t)n);
		if (r < 0)
			return r;
		at += (uint64_t)n;
	}
	return 0;
}

/*
 * The folder that files of a kind are made in. Root may have the home of somebody else, who must not
 * lead it to another place: a folder that is not its own takes nothing.
 */
static int open_folder(char *path)
{
	struct stat st;
	int r = make_folders(path);

	if (r < 0)
		return r;
	char *slash = strrchr(path, '/');
	*slash = '\0';
	int fd = sys()->open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	*slash = '/';
	if (fd >= 0 && (fstat(fd, &st) < 0 || st.st_uid != geteuid())) {
		sys()->close(fd);
		return -EPERM;
	}
	return fd;
}

struct content {
	const void *bytes; /* NULL: those of the open file */
	int fd;
	uint64_t len;
};

/* Aside, and renamed when it is whole. */
static int write_in(int folder, const char *name, const struct content *content)
{
	char aside[NAME_MAX + 1];

	snprintf(aside, sizeof(aside), ".%s.%d", name, (int)getpid());
	unlinkat(folder, aside, 0);
	int fd = openat(folder, aside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			FILE_MODE);
	if (fd < 0)
		return -errno;
	int r = content->bytes ? sys_write_all(fd, content->bytes, content->len)
			       : copy(fd, content->fd, content->len);
	sys()->close(fd);
	if (r == 0 && renameat(folder, aside, folder, name) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(folder, aside, 0);
	return r;
}

static int keep(const char *folder, enum cache_kind kind, const struct build_id *id,
		const struct content *content)
{
	char path[PATH_MAX];

	if (!cache_path(path, folder, kind, id))
		return -ENAMETOOLONG;
	int fd = open_folder(path);
	if (fd < 0)
		return fd;
	int r = write_in(fd, strrchr(path, '/') + 1, content);
	sys()->close(fd);
	return r;
}

static bool is_kept(const char *folder, enum cache_kind kind, const struct build_id *id)
{
	char path[PATH_MAX];

	return cache_path(path, folder, kind, id) && access(path, F_OK) == 0;
}

int cache_keep(const char *folder, enum cache_kind kind, const struct build_id *id, int fd,
	       uint64_t len)
{
	const struct content content = { .fd = fd, .len = len };

	return is_kept(folder, kind, id) ? 0 : keep(folder, kind, id, &content);
}

int cache_keep_bytes(const char *folder, enum cache_kind kind, const struct build_id *id,
		     const void *bytes, size_t len)
{
	const struct content content = { .bytes = bytes, .len = len };

	return is_kept(folder, kind, id) ? 0 : keep(folder, kind, id, &content);
}

int cache_replace(const char *folder, enum cache_kind kind, const struct build_id *id,
		  const void *bytes, size_t len)
{
	const struct content content = { .bytes = bytes, .len = len };

	return keep(folder, kind, id, &content);
}

struct kept_file {
	char path[PATH_MAX];
	uint64_t size;
	struct timespec time;
};

static int compare_ages(const void *a, const void *b)
{
	const struct kept_file *const *x = a, *const *y = b;
	const struct timespec *s = &(*x)->time, *t = &(*y)->time;

	if (s->tv_sec != t->tv_sec)
		return s->tv_sec < t->tv_sec ? -1 : 1;
	return s->tv_nsec < t->tv_nsec ? -1 : s->tv_nsec > t->tv_nsec;
}

struct kept_files {
	VEC(struct kept_file *) list;
	uint64_t size;
};

static void list_kind(struct kept_files *out, const char *folder, enum cache_kind kind)
{
	struct proc_names names = { 0 };
	char path[PATH_MAX];
	struct stat st;
	int n = snprintf(path, sizeof(path), "/%s", kind_names[kind]);

	if (n < 0 || proc_list_names(&names, folder, path) < 0)
		return;
	for (size_t i = 0; i < names.count; i++) {
		n = snprintf(path, sizeof(path), "%s/%s/%s", folder, kind_names[kind], names.at[i]);
		if (n < 0 || n >= PATH_MAX || lstat(path, &st) < 0 || !S_ISREG(st.st_mode))
			continue;
		struct kept_file *file = vec_reserve(&out->list, 1) ? malloc(sizeof(*file)) : NULL;
		if (!file)
			break;
		memcpy(file->path, path, (size_t)n + 1);
		file->size = (uint64_t)st.st_size;
		file->time = st.st_mtim;
		out->list.at[out->list.count++] = file;
		out->size += file->size;
	}
	proc_names_done(&names);
}

void cache_trim(const char *folder)
{
	struct kept_files files = { 0 };

	for (size_t kind = 0; kind < ARRAY_SIZE(kind_names); kind++)
		list_kind(&files, folder, kind);
	if (files.size > CACHE_LIMIT)
		qsort(files.list.at, files.list.count, sizeof(*files.list.at), compare_ages);
	vec_each (&files.list, file) {
		if (files.size > CACHE_LIMIT && unlink((*file)->path) == 0)
			files.size -= (*file)->size;
		free(*file);
	}
	vec_done(&files.list);
}
