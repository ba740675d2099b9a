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
#include "base/sys.h"
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

/* Of bytes, or where there are none of an open file. */
static int keep(const char *folder, enum cache_kind kind, const struct build_id *id, int from,
		const void *bytes, uint64_t len)
{
	char path[PATH_MAX], aside[PATH_MAX];

	if (!cache_path(path, folder, kind, id))
		return -ENAMETOOLONG;
	int n = snprintf(aside, sizeof(aside), "%s.XXXXXX", path);
	int r = n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : make_folders(path);
	if (r < 0)
		return r;
	int fd = mkostemp(aside, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = bytes ? sys_write_all(fd, bytes, len) : copy(fd, from, len);
	sys()->close(fd);
	if (r == 0 && (chmod(aside, FILE_MODE) < 0 || rename(aside, path) < 0))
		r = -errno;
	if (r < 0)
		unlink(aside);
	return r;
}

int cache_keep(const char *folder, enum cache_kind kind, const struct build_id *id, int fd,
	       uint64_t len)
{
	char path[PATH_MAX];

	if (cache_path(path, folder, kind, id) && access(path, F_OK) == 0)
		return 0;
	return keep(folder, kind, id, fd, NULL, len);
}

int cache_replace(const char *folder, enum cache_kind kind, const struct build_id *id,
		  const void *bytes, size_t len)
{
	return keep(folder, kind, id, -1, bytes, len);
}
