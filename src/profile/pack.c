/* SPDX-License-Identifier: MIT */
/* A recording with the files that give names to its addresses, in one archive. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <tally/pack.h>
#include <tally/profile.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/proc.h"
#include "base/sys.h"
#include "image/build-id.h"
#include "image/cache.h"
#include "image/elf.h"
#include "image/file-find.h"
#include "profile/tar.h"
#include "profile/unpacked.h"

#define KERNEL_LIMIT (256u << 20)

#define DEBUG_FILES "/usr/lib/debug/.build-id"

/* What of the running kernel tells its functions' names and which kernel it is. */
static const char *const kernel_files[] = { "/proc/kallsyms", "/sys/kernel/notes",
					    "/proc/sys/kernel/osrelease" };

struct pack {
	int to;
	struct tally_profile *profile;
	struct strings seen; /* paths that were tried */
	struct tally_packed packed;
	bool kernel; /* its symbols are wanted */
};

/* 1 when it is new, 0, -ENOMEM. */
static int first_time(struct pack *p, const char *path)
{
	size_t before = p->seen.count;

	if (strings_add(&p->seen, path) == UINT32_MAX)
		return -ENOMEM;
	return p->seen.count != before;
}

static int count(struct pack *p, int r)
{
	p->packed.files += r == 0;
	/* It does not fit into the format; the archive goes on without it. */
	return r == -ENAMETOOLONG || r == -EFBIG ? 0 : r;
}

/* A file below its path. -ENOENT and such: there is none. */
static int add_file(struct pack *p, const char *path, const struct build_id *id)
{
	struct stat st;
	int fd = sys()->open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	int r = 0;

	if (fd < 0)
		return -ENOENT;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		r = -ENOENT;
	if (r == 0 && id && id->len) {
		struct build_id own = elf_build_id(fd);
		if (!own.len || build_ids_differ(&own, id))
			r = -ENOENT;
	}
	if (r == 0)
		r = count(p, tar_add_fd(p->to, path + 1, fd, (uint64_t)st.st_size));
	sys()->close(fd);
	return r;
}

static int add_debug_file(struct pack *p, const struct build_id *id)
{
	char path[128];
	int n = snprintf(path, sizeof(path), DEBUG_FILES "/%02x/", id->bytes[0]);

	if (id->len < 2)
		return 0;
	for (uint32_t i = 1; i < id->len && n > 0 && n < (int)sizeof(path); i++)
		n += snprintf(path + n, sizeof(path) - (size_t)n, "%02x", id->bytes[i]);
	if (n < 0 || n + 7 > (int)sizeof(path))
		return 0;
	memcpy(path + n, ".debug", 7);
	int r = add_file(p, path, NULL);
	return r == -ENOENT ? 0 : r;
}

/* A container's program, or what told of made code: kept when the recording ended. */
static int add_kept(struct pack *p, const struct build_id *id)
{
	enum cache_kind kind = cache_content_len(id) ? CACHE_CODE : CACHE_PROGRAM;
	char folder[PATH_MAX], path[PATH_MAX], name[PATH_MAX];
	struct stat st;

	if (!cache_folder(folder) || !cache_path(path, folder, kind, id) ||
	    !cache_path(name, PACK_CACHE, kind, id))
		return -ENOENT;
	int fd = file_open_regular(path, &st);
	if (fd < 0)
		return -ENOENT;
	int r = count(p, tar_add_fd(p->to, name, fd, (uint64_t)st.st_size));
	sys()->close(fd);
	return r;
}

static int add_module(struct pack *p, const struct tally_profile_function_info *f)
{
	struct build_id id = { 0 };

	if (f->mode == TALLY_MODE_KERNEL)
		p->kernel = true;
	int r = f->path[0] == '/' && f->path[1] != '/' ? first_time(p, f->path) : 0;
	if (r <= 0)
		return r;
	if (f->build_id_len)
		id = build_id_from(f->build_id, f->build_id_len);
	/* The id of a perf map is of its content, and not in it. */
	bool content = cache_content_len(&id);
	r = content ? add_kept(p, &id) : add_file(p, f->path, &id);
	if (r == -ENOENT)
		r = content ? add_file(p, f->path, NULL) : add_kept(p, &id);
	if (r == -ENOENT) {
		if (!p->packed.missing++)
			snprintf(p->packed.first, sizeof(p->packed.first), "%s", f->path);
		return 0;
	}
	return r < 0 ? r : add_debug_file(p, &id);
}

static int add_modules(struct pack *p)
{
	struct tally_profile_function_info info;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < tally_profile_functions(p->profile); i++)
		if (tally_profile_function_info(p->profile, i, &info) == 0)
			r = add_module(p, &info);
	return r;
}

/* What just-in-time compilers leave there for perf. */
static int add_maps(struct pack *p)
{
	struct tally_profile_thread_info info;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < tally_profile_threads(p->profile); i++) {
		char path[64];
		if (tally_profile_thread_info(p->profile, i, &info) < 0)
			continue;
		snprintf(path, sizeof(path), "/tmp/perf-%" PRId32 ".map", info.pid);
		r = first_time(p, path);
		if (r > 0)
			r = add_file(p, path, NULL);
		r = r == -ENOENT || r > 0 ? 0 : r;
	}
	return r;
}

/* Files of /proc have no size of their own. */
static int add_kernel(struct pack *p)
{
	int r = 0;

	for (size_t i = 0; p->kernel && r == 0 && i < sizeof(kernel_files) / sizeof(*kernel_files);
	     i++) {
		struct buf text = { 0 };
		if (proc_read(&text, NULL, kernel_files[i], KERNEL_LIMIT) == 0 && text.len)
			r = count(p, tar_add_bytes(p->to, kernel_files[i] + 1, text.at, text.len));
		buf_done(&text);
	}
	return r;
}

static int add_recording(struct pack *p, const char *path)
{
	struct stat st;
	int fd = sys()->open(path, O_RDONLY, 0);
	int r = fd < 0 ? fd : fstat(fd, &st) < 0 ? -errno : 0;

	if (r == 0)
		r = tar_add_fd(p->to, "perf.data", fd, (uint64_t)st.st_size);
	if (fd >= 0)
		sys()->close(fd);
	return r;
}

static int write_archive(struct pack *p, const char *recording)
{
	int r = add_recording(p, recording);

	if (r == 0)
		r = add_modules(p);
	if (r == 0)
		r = add_maps(p);
	if (r == 0)
		r = add_kernel(p);
	return r < 0 ? r : tar_end(p->to);
}

/* Aside, and renamed when it is whole. */
static int write_aside(struct pack *p, const char *output, const char *recording,
		       struct tally_error *err)
{
	char *aside;
	struct stat st;

	if (asprintf(&aside, "%s.part", output) < 0)
		return error_nomem(err, output);
	remove(aside);
	p->to = sys()->open(aside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	int r = p->to < 0 ? p->to : write_archive(p, recording);
	if (r == 0 && fstat(p->to, &st) == 0)
		p->packed.bytes = (uint64_t)st.st_size;
	if (p->to >= 0)
		sys()->close(p->to);
	if (r == 0 && rename(aside, output) < 0)
		r = -errno;
	if (r < 0) {
		error_set(err, r, TALLY_CAUSE_IO, "cannot write %s: %s%s", output, strerror(-r),
			  r == -ENOSPC ? "; make room, or choose another disk" : "");
		if (p->to >= 0)
			remove(aside);
	}
	free(aside);
	return r;
}

int tally_pack(const char *output, const char *recording, struct tally_packed *packed,
	       struct tally_error *err)
{
	struct pack p = { .to = -1 };
	int r = tally_profile_new(&p.profile, err);

	if (r == 0)
		r = tally_profile_load_file(p.profile, recording, NULL, NULL, NULL, 0, err);
	if (r == 0)
		r = write_aside(&p, output, recording, err);
	if (r == 0 && packed)
		*packed = p.packed;
	strings_done(&p.seen);
	tally_profile_free(p.profile);
	return r;
}
