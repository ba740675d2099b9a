/* SPDX-License-Identifier: MIT */
/* Side-band for what already runs, from /proc, in the order in which perf(1) writes it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <tally/reader.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/proc-map.h"
#include "base/proc.h"
#include "base/sys.h"
#include "recorder/synth.h"

/* Limits against a /proc that never ends. A line of maps has about 100 bytes. */
#define MAPS_LIMIT    (256u << 20)
#define MODULES_LIMIT (4u << 20)
#define IOMEM_LIMIT   (4u << 20)
#define STATUS_LIMIT  65536

/* _text is among the first symbols of kallsyms on every architecture; so far read 64 KiB at most. */
#define KALLSYMS_HEAD 65536

/* Records are handed to the writer in portions of about this many bytes. */
#define PORTION 65536

/* The largest record that the side-band has: PATH_MAX and the fixed fields fit. */
#define RECORD_ROOM 8192

int synth_flush(struct synth *s, struct tally_error *err)
{
	struct iovec span = { s->out.at, s->out.len };

	if (!s->out.len)
		return 0;
	int r = tally_writer_append(s->writer, &span, 1);
	if (r < 0)
		return error_set(err, r, TALLY_CAUSE_IO, "writing the maps of what runs: %s",
				 strerror(-r));
	buf_reset(&s->out);
	return 0;
}

int synth_emit(struct synth *s, const struct tally_record *rec, struct tally_error *err)
{
	char bytes[RECORD_ROOM];
	int n = tally_record_encode(s->layout, rec, bytes, sizeof(bytes));

	if (n < 0)
		return error_set(err, n, TALLY_CAUSE_ARGUMENT,
				 "a record of type %" PRIu32 " cannot be written: %s", rec->type,
				 strerror(-n));
	buf_add(&s->out, bytes, (size_t)n);
	if (s->out.failed || (s->modules && modules_see(s->modules, rec) < 0) ||
	    (s->maps && *s->maps && tally_maps_push(*s->maps, rec) == -ENOMEM))
		return error_nomem(err, "the maps of what runs");
	s->records++;
	return s->out.len >= PORTION ? synth_flush(s, err) : 0;
}

int synth_emit_own(struct synth *s, uint32_t type, struct buf *body, struct tally_error *err)
{
	size_t size = sizeof(struct tally_record_header) + align_up(body->len, 8);
	const struct tally_record_header header = { .type = type, .size = (uint16_t)size };

	if (size > UINT16_MAX && !body->failed)
		return 0;
	buf_add(&s->out, &header, sizeof(header));
	buf_add(&s->out, body->at, body->len);
	buf_zero(&s->out, size - sizeof(header) - body->len);
	if (s->out.failed || body->failed)
		return error_nomem(err, "the maps of what runs");
	s->records++;
	return s->out.len >= PORTION ? synth_flush(s, err) : 0;
}

/* The address of _text, 0 when it is hidden or not among the first symbols. */
static uint64_t find_text(const char *root)
{
	char path[512], *head = malloc(KALLSYMS_HEAD + 1);
	uint64_t address = 0;

	if (!head || proc_path(path, sizeof(path), root, "/proc/kallsyms") < 0)
		goto out;
	int fd = sys()->open(path, O_RDONLY, 0);
	if (fd < 0)
		goto out;
	size_t have = 0;
	const char *found = NULL;
	/* The kernel formats about a page a read, so stop at the first that has it. */
	while (!found && have < KALLSYMS_HEAD) {
		ssize_t n = sys()->read(fd, head + have, KALLSYMS_HEAD - have);
		if (n <= 0)
			break;
		have += (size_t)n;
		head[have] = '\0';
		found = strstr(head, " T _text\n");
	}
	sys()->close(fd);
	if (found) {
		const char *line = found;
		while (line > head && line[-1] != '\n')
			line--;
		address = strtoull(line, NULL, 16);
	}
out:
	free(head);
	return address;
}

/* How long the kernel's text is, from the line "START-END : Kernel code"; 0 when hidden. */
static uint64_t kernel_length(const char *root)
{
	struct buf text = { 0 };
	uint64_t start, end, length = 0;

	if (proc_read(&text, root, "/proc/iomem", IOMEM_LIMIT) == 0 && buf_text(&text)) {
		const char *found = strstr(text.at, ": Kernel code\n");
		while (found && found > text.at && found[-1] != '\n')
			found--;
		if (found && sscanf(found, " %" SCNx64 "-%" SCNx64, &start, &end) == 2 &&
		    end > start)
			length = end + 1 - start;
	}
	buf_done(&text);
	return length;
}

static struct tally_record kernel_map(uint64_t addr, uint64_t len, uint64_t pgoff, const char *name)
{
	return (struct tally_record){
		.type = TALLY_RECORD_MMAP,
		.misc = TALLY_MISC_KERNEL,
		.mmap = {
			.pid = -1,
			.addr = addr,
			.len = len,
			.pgoff = pgoff,
			.filename = name,
			.filename_len = (uint32_t)strlen(name),
		},
	};
}

/* One line of /proc/modules: "name size refs users state 0xaddress". */
static int emit_module(struct synth *s, const char *line, struct tally_error *err)
{
	char name[64], bracketed[70];
	uint64_t size, address;

	if (sscanf(line, "%63s %" SCNu64 " %*s %*s %*s %" SCNx64, name, &size, &address) != 3 ||
	    !address || !size)
		return 0;
	snprintf(bracketed, sizeof(bracketed), "[%s]", name);
	struct tally_record rec = kernel_map(address, size, 0, bracketed);
	return synth_emit(s, &rec, err);
}

static int emit_modules(struct synth *s, struct tally_error *err)
{
	struct buf text = { 0 };
	int r = 0;

	if (proc_read(&text, s->root, "/proc/modules", MODULES_LIMIT) == 0 && buf_text(&text)) {
		char *rest = NULL;
		for (char *line = strtok_r(text.at, "\n", &rest); line && r == 0;
		     line = strtok_r(NULL, "\n", &rest))
			r = emit_module(s, line, err);
	}
	buf_done(&text);
	return r;
}

int synth_kernel(struct synth *s, struct tally_error *err)
{
	/* perf's name: the reference symbol, whose address is the record's pgoff, ends it. */
	static const char name[] = "[kernel.kallsyms]_text";
	uint64_t text = find_text(s->root), length = kernel_length(s->root);

	if (!text)
		return 0;
	if (!length || length > UINT64_MAX - text)
		length = UINT64_MAX - text;
	struct tally_record rec = kernel_map(text, length, text, name);
	int r = synth_emit(s, &rec, err);
	if (r == 0)
		r = emit_modules(s, err);
	return r < 0 ? r : synth_flush(s, err);
}

/* What /proc/PID/status tells of a task. */
struct task {
	int32_t pid, parent;
	char comm[64];
};

static bool read_task(struct synth *s, const char *folder, struct task *task)
{
	struct buf text = { 0 };
	char path[64];
	bool ok = false;

	*task = (struct task){ 0 };
	snprintf(path, sizeof(path), "%s/status", folder);
	if (proc_read(&text, s->root, path, STATUS_LIMIT) == 0 && buf_text(&text)) {
		const char *pid = strstr(text.at, "\nTgid:"), *parent = strstr(text.at, "\nPPid:");
		/* Name: escapes blanks and such; comm has it as it is. */
		snprintf(path, sizeof(path), "%s/comm", folder);
		ok = pid && parent &&
		     proc_read_line(task->comm, sizeof(task->comm), s->root, path) == 0;
		if (ok) {
			task->pid = (int32_t)strtol(pid + 6, NULL, 10);
			task->parent = (int32_t)strtol(parent + 6, NULL, 10);
		}
	}
	buf_done(&text);
	return ok;
}

/*
 * A thread's namespaces in the order of the kernel's indices, NET_NS_INDEX to CGROUP_NS_INDEX. The
 * files are links that lead nowhere but for stat(2). A kernel without one of them has none of that
 * kind, which stays 0, as in the kernel's own records; a thread of which none can be looked at has
 * no record.
 */
static int emit_namespaces(struct synth *s, const char *folder, int32_t pid, int32_t tid,
			   struct tally_error *err)
{
	static const char *const names[] = { "net", "uts", "ipc", "pid", "user", "mnt", "cgroup" };
	uint64_t entries[ARRAY_SIZE(names)][2] = { 0 };
	bool any = false;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char name[80], path[PATH_MAX];
		struct stat st;
		snprintf(name, sizeof(name), "%s/ns/%s", folder, names[i]);
		if (proc_path(path, sizeof(path), s->root, name) < 0 || stat(path, &st) < 0)
			continue;
		entries[i][0] = st.st_dev;
		entries[i][1] = st.st_ino;
		any = true;
	}
	struct tally_record rec = {
		.type = TALLY_RECORD_NAMESPACES,
		.namespaces = {
			.pid = pid,
			.tid = tid,
			.count = ARRAY_SIZE(names),
			.entries = entries,
		},
	};
	return any ? synth_emit(s, &rec, err) : 0;
}

/* FORK, NAMESPACES and COMM of one thread. false in `*there`: it is gone. */
static int emit_task(struct synth *s, const char *folder, int32_t tid, bool *there,
		     struct tally_error *err)
{
	struct task task;

	*there = read_task(s, folder, &task);
	if (!*there)
		return 0;
	bool leads = task.pid == tid;
	struct tally_record rec = {
		.type = TALLY_RECORD_FORK,
		.misc = TALLY_MISC_FORK_EXEC,
		.task = {
			.pid = task.pid,
			.ppid = leads ? task.parent : task.pid,
			.tid = tid,
			.ptid = leads ? task.parent : task.pid,
		},
	};
	int r = synth_emit(s, &rec, err);
	if (r == 0 && s->namespaces)
		r = emit_namespaces(s, folder, task.pid, tid, err);
	if (r < 0)
		return r;
	rec = (struct tally_record){
		.type = TALLY_RECORD_COMM,
		.comm = {
			.pid = task.pid,
			.tid = tid,
			.comm = task.comm,
			.comm_len = (uint32_t)strlen(task.comm),
		},
	};
	return synth_emit(s, &rec, err);
}

static int emit_map(struct synth *s, int32_t pid, const char *line, struct tally_error *err)
{
	struct proc_map map;

	if (!proc_map_parse(&map, line))
		return 0;
	const char *perms = map.perms;
	bool code = perms[2] == 'x';
	if (!code && !s->data_maps)
		return 0;
	struct tally_record rec = {
		.type = TALLY_RECORD_MMAP2,
		.misc = TALLY_MISC_USER | (code ? 0 : TALLY_MISC_MMAP_DATA),
		.mmap = {
			.pid = pid,
			.tid = pid,
			.addr = map.start,
			.len = map.end - map.start,
			.pgoff = map.offset,
			.maj = map.major,
			.min = map.minor,
			.ino = map.inode,
			.prot = (perms[0] == 'r' ? PROT_READ : 0) |
				(perms[1] == 'w' ? PROT_WRITE : 0) | (code ? PROT_EXEC : 0),
			.flags = perms[3] == 's' ? MAP_SHARED : MAP_PRIVATE,
			.filename = map.name,
			.filename_len = (uint32_t)strlen(map.name),
		},
	};
	return synth_emit(s, &rec, err);
}

/* `folder` is /proc/TID of any thread: they share the mappings. `*any`: there were some. */
static int emit_maps_of(struct synth *s, const char *folder, int32_t pid, bool *any,
			struct tally_error *err)
{
	struct buf text = { 0 };
	char path[64];
	int r = 0;

	*any = false;
	snprintf(path, sizeof(path), "%s/maps", folder);
	if (proc_read(&text, s->root, path, MAPS_LIMIT) == 0 && buf_text(&text)) {
		char *rest = NULL;
		*any = text.len > 0;
		for (char *line = strtok_r(text.at, "\n", &rest); line && r == 0;
		     line = strtok_r(NULL, "\n", &rest))
			r = emit_map(s, pid, line, err);
	}
	buf_done(&text);
	return r;
}

/*
 * A leader that has ended shows no mappings while other threads run on, so each is asked until one
 * does. Kernel threads have none, and another user's cannot be read: neither is an error.
 */
static int emit_maps(struct synth *s, int32_t pid, const int32_t *tids, size_t count,
		     struct tally_error *err)
{
	char folder[64];
	bool any = false;

	snprintf(folder, sizeof(folder), "/proc/%" PRId32, pid);
	int r = emit_maps_of(s, folder, pid, &any, err);
	for (size_t i = 0; i < count && r == 0 && !any; i++) {
		snprintf(folder, sizeof(folder), "/proc/%" PRId32 "/task/%" PRId32, pid, tids[i]);
		r = emit_maps_of(s, folder, pid, &any, err);
	}
	return r;
}

/* The leader first, then its threads, then the mappings, which belong to the leader. */
static int emit_process(struct synth *s, int32_t pid, struct tally_error *err)
{
	char folder[64];
	int32_t *tids;
	size_t count;
	bool there;

	snprintf(folder, sizeof(folder), "/proc/%" PRId32, pid);
	int r = emit_task(s, folder, pid, &there, err);
	if (r < 0 || !there)
		return r;
	snprintf(folder, sizeof(folder), "/proc/%" PRId32 "/task", pid);
	if (proc_list_ids(&tids, &count, s->root, folder) < 0)
		return 0;
	for (size_t i = 0; i < count && r == 0; i++) {
		if (tids[i] == pid)
			continue;
		snprintf(folder, sizeof(folder), "/proc/%" PRId32 "/task/%" PRId32, pid, tids[i]);
		r = emit_task(s, folder, tids[i], &there, err);
	}
	if (r == 0)
		r = emit_maps(s, pid, tids, count, err);
	free(tids);
	return r;
}

int synth_process(struct synth *s, int32_t pid, struct tally_error *err)
{
	int r = emit_process(s, pid, err);

	return r < 0 ? r : synth_flush(s, err);
}

int synth_thread(struct synth *s, int32_t tid, struct tally_error *err)
{
	char folder[64];
	struct task task;
	bool there;

	/* /proc/TID is there for every thread, though the listing of /proc hides all but leaders. */
	snprintf(folder, sizeof(folder), "/proc/%" PRId32, tid);
	if (!read_task(s, folder, &task))
		return 0;
	int r = 0;
	if (task.pid != tid) {
		char leader[64];
		snprintf(leader, sizeof(leader), "/proc/%" PRId32, task.pid);
		r = emit_task(s, leader, task.pid, &there, err);
	}
	if (r == 0)
		r = emit_task(s, folder, tid, &there, err);
	if (r == 0)
		r = emit_maps(s, task.pid, &tid, 1, err);
	return r < 0 ? r : synth_flush(s, err);
}

int synth_namespaces(struct synth *s, int32_t pid, int32_t tid, struct tally_error *err)
{
	char folder[64];

	if (!s->namespaces)
		return 0;
	snprintf(folder, sizeof(folder), "/proc/%" PRId32, tid);
	int r = emit_namespaces(s, folder, pid, tid, err);
	return r < 0 ? r : synth_flush(s, err);
}

int synth_system(struct synth *s, struct tally_error *err)
{
	int32_t *pids;
	size_t count;
	int r = proc_list_ids(&pids, &count, s->root, "/proc");

	if (r < 0)
		return error_set(err, r, TALLY_CAUSE_IO, "%s/proc cannot be listed: %s",
				 s->root ? s->root : "", strerror(-r));
	for (size_t i = 0; i < count && r == 0; i++)
		r = emit_process(s, pids[i], err);
	free(pids);
	return r < 0 ? r : synth_flush(s, err);
}

int synth_finished(struct synth *s, struct tally_error *err)
{
	int r = synth_emit_own(s, TALLY_FILE_FINISHED_INIT, &(struct buf){ 0 }, err);

	return r < 0 ? r : synth_flush(s, err);
}

void synth_done(struct synth *s)
{
	buf_done(&s->out);
}
