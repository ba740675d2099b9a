/* SPDX-License-Identifier: MIT */
/* Finding and reading what processes tell of their code. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/proc.h"
#include "base/sys.h"
#include "image/cache.h"
#include "image/jit.h"
#include "image/maps.h"

/* So long a file is taken to be as it was. */
#define LOOK_AGAIN_NS 50000000ull

/* A process has no more such files; hostile recordings may claim any number. */
#define MAX_SOURCES 16

#define STATUS_LIMIT 65536

/* ---- where the files are ---- */

void jit_perf_map_path(char out[64], int32_t pid)
{
	snprintf(out, 64, "/tmp/perf-%d.map", pid);
}

/* The pid that a process has in its own namespace, by which it calls its perf map. */
static int32_t own_pid(const struct file_search *where)
{
	struct buf status = { 0 };
	char path[64];
	int32_t pid = where->pid;

	snprintf(path, sizeof(path), "/proc/%d/status", where->pid);
	if (proc_read(&status, where->root, path, STATUS_LIMIT) == 0 && buf_text(&status)) {
		const char *line = strstr(status.at, "\nNSpid:");
		const char *end = line ? strchr(line + 1, '\n') : NULL;
		/* From the outermost namespace to its own. */
		while (end && end > line && end[-1] >= '0' && end[-1] <= '9')
			end--;
		int32_t last = end ? atoi(end) : 0;
		pid = last > 0 ? last : pid;
	}
	buf_done(&status);
	return pid;
}

/* Anybody may have written what is in /tmp: it must be of root, of us, or of the process's owner. */
static bool is_trusted(const struct stat *st, const struct file_search *where)
{
	struct stat process;
	char path[PATH_MAX], name[64];

	if (st->st_uid == 0 || st->st_uid == geteuid())
		return true;
	snprintf(name, sizeof(name), "/proc/%d", where->pid);
	if (proc_path(path, sizeof(path), where->root, name) == 0 && stat(path, &process) == 0)
		return st->st_uid == process.st_uid;
	/* It is gone: who profiled it was its owner or root. */
	return geteuid() == 0;
}

/* Whether the file begins with what a recording says that it had. */
static bool has_content(int fd, const struct stat *st, const struct build_id *recorded)
{
	uint64_t len = cache_content_len(recorded);
	struct build_id own;

	return !len || ((uint64_t)st->st_size >= len && cache_content_id(&own, fd, len) &&
			build_ids_match(&own, recorded));
}

static int open_content(const char *path, const struct file_search *where, struct stat *st)
{
	int fd = file_open_regular(path, st);

	if (fd >= 0 && (!is_trusted(st, where) || !has_content(fd, st, &where->build_id))) {
		sys()->close(fd);
		return -ENOENT;
	}
	return fd;
}

static int open_cached(const struct file_search *where, struct stat *st)
{
	char path[PATH_MAX];

	if (!where->cache || !cache_content_len(&where->build_id) ||
	    !cache_path(path, where->cache, CACHE_CODE, &where->build_id))
		return -ENOENT;
	return open_content(path, where, st);
}

int jit_open_perf_map(const struct file_search *where, struct stat *st)
{
	char path[PATH_MAX], root[PATH_MAX], recorded[64], name[64];
	int32_t own = own_pid(where);
	int fd = -ENOENT;

	jit_perf_map_path(recorded, where->pid);
	jit_perf_map_path(name, own);
	if (where->symfs && proc_path(path, sizeof(path), where->symfs, recorded) == 0)
		fd = open_content(path, where, st);
	file_process_root(root, where);
	if (fd < 0 && proc_path(path, sizeof(path), root, name) == 0)
		fd = open_content(path, where, st);
	/* Of a process in another namespace this would be somebody else's. */
	if (fd < 0 && own == where->pid)
		fd = open_content(recorded, where, st);
	return fd < 0 ? open_cached(where, st) : fd;
}

static int open_dump(const struct file_search *where, struct stat *st)
{
	const struct build_id none = { 0 };
	struct file_search search = *where;
	struct file_found found;

	search.build_id = none;
	if (file_find(&found, &search)) {
		*st = found.st;
		if (has_content(found.fd, st, &where->build_id))
			return found.fd;
		sys()->close(found.fd);
	}
	return open_cached(where, st);
}

/* ---- reading them ---- */

static int open_source(struct jit *j, int32_t pid, const struct jit_source *s,
		       const struct build_id *id, struct stat *st)
{
	struct file_search where = j->where;

	where.pid = pid;
	where.build_id = *id;
	if (!s->mapping)
		return jit_open_perf_map(&where, st);
	maps_mapping(j->maps, s->mapping, &where.map);
	return open_dump(&where, st);
}

/* Begins anew when it is another file, or was written anew. */
static void follow_file(struct jit_source *s, const struct stat *st)
{
	bool dump = s->file.dump;

	if (s->inode == st->st_ino && s->device == st->st_dev &&
	    s->file.offset <= (uint64_t)st->st_size)
		return;
	jit_file_done(&s->file);
	s->file.dump = dump;
	s->device = st->st_dev;
	s->inode = st->st_ino;
	s->generation++;
}

static int read_source(struct jit *j, int32_t pid, struct jit_source *s, uint64_t time)
{
	const struct build_id id = builds_get(j->builds, s->path, pid);
	struct stat st;
	int fd = open_source(j, pid, s, &id, &st);

	if (fd < 0)
		return 0;
	follow_file(s, &st);
	/* The recording ended there: what came later is not of its time. */
	s->file.limit = cache_content_len(&id);
	s->final = s->file.limit != 0;
	int64_t r = 0;
	if (!s->size || s->size != (uint64_t)st.st_size)
		r = jit_file_read(&s->file, fd, time);
	s->size = (uint64_t)st.st_size;
	sys()->close(fd);
	return r == -ENOMEM ? -ENOMEM : 0;
}

/* ---- processes ---- */

static bool add_source(struct jit_process *p, const char *path, uint32_t mapping)
{
	struct jit_source *s = p->sources.count < MAX_SOURCES ? vec_push(&p->sources) : NULL;

	if (!s)
		return p->sources.count >= MAX_SOURCES;
	s->path = strdup(path);
	s->mapping = mapping;
	s->file.dump = mapping != 0;
	return s->path;
}

/* Numbers are small and found in both; the perf map, which nobody maps, comes with the first call. */
static bool find_sources(struct jit *j, struct jit_process *p, int32_t pid)
{
	struct tally_mapping map;
	char path[64];
	uint32_t dump;
	bool ok = true;

	if (!p->sources.count && !j->dumps_only) {
		jit_perf_map_path(path, pid);
		ok = add_source(p, path, 0);
	}
	while (ok && (dump = maps_jitdump(j->maps, pid, &p->dumps_seen))) {
		maps_mapping(j->maps, dump, &map);
		bool known = false;
		vec_each (&p->sources, s)
			known |= !strcmp(s->path, map.path);
		ok = known || add_source(p, map.path, dump);
	}
	return ok;
}

static struct jit_process *process_of(struct jit *j, int32_t pid)
{
	uint32_t *index = map64_at(&j->index, (uint32_t)pid);

	if (!index)
		return NULL;
	if (!*index) {
		if (!vec_push(&j->processes))
			return NULL;
		*index = (uint32_t)j->processes.count;
	}
	struct jit_process *p = &j->processes.at[*index - 1];
	return find_sources(j, p, pid) ? p : NULL;
}

/* Reads it again when it may have grown. */
static int look_at_source(struct jit *j, int32_t pid, struct jit_source *s, uint64_t time)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC_COARSE);

	if (s->final || (s->looked_ns && now - s->looked_ns < LOOK_AGAIN_NS))
		return 0;
	s->looked_ns = now;
	return read_source(j, pid, s, time);
}

/* Jitdumps have times of CLOCK_MONOTONIC, which say nothing in a recording with another clock. */
static bool is_timeless(const struct jit *j, const struct jit_source *s)
{
	return s->mapping && j->other_clock;
}

static int find(struct jit *j, int32_t pid, uint64_t time, uint64_t address, struct jit_place *out)
{
	struct jit_process *p = process_of(j, pid);

	*out = (struct jit_place){ 0 };
	if (!p)
		return -ENOMEM;
	/* Jitdumps know more than the perf map, which is the first. */
	for (size_t i = p->sources.count; i-- > 0;) {
		struct jit_source *s = &p->sources.at[i];
		int r = look_at_source(j, pid, s, time);
		if (r < 0)
			return r;
		if (!s->file.codes.count)
			continue;
		out->source = s;
		out->code = jit_file_find(&s->file, address, is_timeless(j, s) ? UINT64_MAX : time);
		if (out->code)
			return 1;
	}
	return 0;
}

int jit_find(struct jit *j, int32_t pid, int32_t owner, uint64_t time, uint64_t address,
	     struct jit_place *out)
{
	int r = find(j, pid, time, address, out);

	return r == 0 && owner != pid ? find(j, owner, time, address, out) : r;
}

int jit_tells(struct jit *j, int32_t pid, int32_t owner)
{
	const int32_t pids[] = { pid, owner };

	for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
		const struct jit_process *p = process_of(j, pids[i]);
		if (!p || p->sources.count)
			return p ? 1 : -ENOMEM;
	}
	return 0;
}

int64_t jit_epoch(struct jit *j, int32_t pid, uint64_t time)
{
	struct jit_process *p = process_of(j, pid);
	uint32_t epoch = 0;

	if (!p)
		return -ENOMEM;
	vec_each (&p->sources, s) {
		int r = s->looked_ns ? 0 : look_at_source(j, pid, s, time);
		if (r < 0)
			return r;
		epoch += s->generation;
		if (!is_timeless(j, s))
			epoch += layers_epoch(&s->file.layers, time);
	}
	return epoch;
}

void jit_done(struct jit *j)
{
	vec_each (&j->processes, p) {
		vec_each (&p->sources, s) {
			jit_file_done(&s->file);
			free(s->path);
		}
		vec_done(&p->sources);
	}
	vec_done(&j->processes);
	map64_done(&j->index);
}
