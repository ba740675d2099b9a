/* SPDX-License-Identifier: MIT */
/* Reading and writing tar archives. Archives come from elsewhere: names and sizes are checked. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/sys.h"
#include "profile/tar.h"

#define BLOCK 512
#define PIECE 65536
#define MAGIC "ustar"

/* The header of a file, POSIX.1 pax(1), "ustar Interchange Format". Numbers are octal text. */
struct tar_header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100];
	char magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155], rest[12];
};

_Static_assert(sizeof(struct tar_header) == BLOCK, "a header is one block");

static unsigned checksum(const struct tar_header *h)
{
	struct tar_header plain = *h;
	unsigned sum = 0;

	memset(plain.checksum, ' ', sizeof(plain.checksum));
	for (size_t i = 0; i < sizeof(plain); i++)
		sum += ((const unsigned char *)&plain)[i];
	return sum;
}

/* A name beyond 100 bytes is cut at a '/' into prefix and name. */
static int put_name(struct tar_header *h, const char *name)
{
	size_t len = strlen(name);
	const char *cut = name;

	if (len > sizeof(h->name)) {
		cut = strchr(name + len - sizeof(h->name) - 1, '/');
		if (!cut || (size_t)(cut - name) > sizeof(h->prefix))
			return -ENAMETOOLONG;
		memcpy(h->prefix, name, (size_t)(cut - name));
		cut++;
	}
	memcpy(h->name, cut, strlen(cut));
	return 0;
}

static int put_header(int to, const char *name, uint64_t size)
{
	struct tar_header h = { .type = '0', .magic = MAGIC, .version = { '0', '0' } };
	char number[24];
	int r = put_name(&h, name);

	if (r < 0)
		return r;
	if (size >= UINT64_C(1) << 33)
		return -EFBIG;
	memcpy(h.mode, "0000644", 8);
	memcpy(h.uid, "0000000", 8);
	memcpy(h.gid, "0000000", 8);
	memcpy(h.mtime, "00000000000", 12);
	snprintf(number, sizeof(number), "%011" PRIo64, size);
	memcpy(h.size, number, sizeof(h.size));
	snprintf(number, sizeof(number), "%06o", checksum(&h));
	memcpy(h.checksum, number, 7);
	h.checksum[7] = ' ';
	return sys_write_all(to, &h, sizeof(h));
}

static int put_padding(int to, uint64_t size)
{
	static const char zeros[BLOCK];

	return size % BLOCK ? sys_write_all(to, zeros, BLOCK - size % BLOCK) : 0;
}

int tar_add_bytes(int to, const char *name, const void *bytes, uint64_t size)
{
	int r = put_header(to, name, size);

	if (r == 0)
		r = sys_write_all(to, bytes, (size_t)size);
	return r < 0 ? r : put_padding(to, size);
}

int tar_add_fd(int to, const char *name, int fd, uint64_t size)
{
	char piece[PIECE];
	int r = put_header(to, name, size);

	for (uint64_t done = 0; r == 0 && done < size;) {
		size_t want = size - done < PIECE ? (size_t)(size - done) : PIECE;
		ssize_t n = sys()->pread(fd, piece, want, (off_t)done);
		if (n < 0)
			return (int)n;
		/* It became shorter meanwhile: the rest is zeros, as the header has promised. */
		if (n == 0) {
			memset(piece, 0, want);
			n = (ssize_t)want;
		}
		r = sys_write_all(to, piece, (size_t)n);
		done += (uint64_t)n;
	}
	return r < 0 ? r : put_padding(to, size);
}

int tar_end(int to)
{
	static const char zeros[2 * BLOCK];

	return sys_write_all(to, zeros, sizeof(zeros));
}

static bool is_header(const struct tar_header *h)
{
	char number[sizeof(h->checksum) + 1] = "";

	memcpy(number, h->checksum, sizeof(h->checksum));
	return !memcmp(h->magic, MAGIC, 5) && strtoul(number, NULL, 8) == checksum(h);
}

bool tar_is(const char *path)
{
	struct tar_header h;
	struct stat st;

	/* Opening a pipe and closing it again would end who writes into it. */
	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	int fd = sys()->open(path, O_RDONLY | O_NONBLOCK, 0);
	if (fd < 0)
		return false;
	bool is = sys()->pread(fd, &h, sizeof(h), 0) == sizeof(h) && is_header(&h);
	sys()->close(fd);
	return is;
}

/* Relative, and never upwards. */
static bool is_inside(const char *name)
{
	if (!*name || *name == '/')
		return false;
	for (const char *part = name; part; part = strchr(part, '/') ? strchr(part, '/') + 1 : NULL)
		if (!strncmp(part, "..", 2) && (part[2] == '/' || !part[2]))
			return false;
	return true;
}

static int make_folders(char *path, size_t from)
{
	for (char *slash = strchr(path + from, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		int r = mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
		*slash = '/';
		if (r < 0)
			return r;
	}
	return 0;
}

static int copy_out(int from, uint64_t offset, uint64_t size, const char *path)
{
	char piece[PIECE];
	int to = sys()->open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600), r = 0;

	if (to < 0)
		return to;
	for (uint64_t done = 0; r == 0 && done < size;) {
		size_t want = size - done < PIECE ? (size_t)(size - done) : PIECE;
		ssize_t n = sys()->pread(from, piece, want, (off_t)(offset + done));
		if (n <= 0) {
			r = n < 0 ? (int)n : -EBADMSG;
			break;
		}
		r = sys_write_all(to, piece, (size_t)n);
		done += (uint64_t)n;
	}
	sys()->close(to);
	return r;
}

static int unpack_one(int from, const struct tar_header *h, uint64_t offset, uint64_t size,
		      const char *folder)
{
	char path[PATH_MAX], name[sizeof(h->prefix) + sizeof(h->name) + 2];
	size_t prefix = strnlen(h->prefix, sizeof(h->prefix));

	snprintf(name, sizeof(name), "%.*s%s%.*s", (int)prefix, h->prefix, prefix ? "/" : "",
		 (int)strnlen(h->name, sizeof(h->name)), h->name);
	if (h->type != '0' && h->type != '\0')
		return 0;
	if (!is_inside(name) ||
	    snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
		return -EBADMSG;
	int r = make_folders(path, strlen(folder) + 1);
	return r < 0 ? r : copy_out(from, offset, size, path);
}

static int unpack_all(int from, uint64_t total, const char *folder)
{
	struct tar_header h;
	uint64_t at = 0;
	int r = 0;

	while (r == 0 && total - at >= BLOCK) {
		char number[sizeof(h.size) + 1] = "";
		if (sys()->pread(from, &h, sizeof(h), (off_t)at) != sizeof(h))
			return -EBADMSG;
		if (!h.name[0])
			return 0;
		memcpy(number, h.size, sizeof(h.size));
		uint64_t size = strtoull(number, NULL, 8);
		at += BLOCK;
		if (!is_header(&h) || size > total - at)
			return -EBADMSG;
		r = unpack_one(from, &h, at, size, folder);
		size = (size + BLOCK - 1) / BLOCK * BLOCK;
		at = size > total - at ? total : at + size;
	}
	return r;
}

int tar_unpack(const char *path, const char *folder, struct tally_error *err)
{
	struct stat st;
	int fd = sys()->open(path, O_RDONLY, 0);
	int r = fd < 0 ? fd : fstat(fd, &st) < 0 ? -errno : 0;

	if (r == 0)
		r = unpack_all(fd, (uint64_t)st.st_size, folder);
	if (fd >= 0)
		sys()->close(fd);
	if (r == -EBADMSG)
		return error_set(err, r, TALLY_CAUSE_CORRUPT,
				 "%s: a damaged archive; pack the recording anew", path);
	return r < 0 ? error_set(err, r, TALLY_CAUSE_IO, "cannot unpack %s into %s: %s%s", path,
				 folder, strerror(-r),
				 r == -ENOSPC ? "; make room, or set TMPDIR" : "")
		     : 0;
}
