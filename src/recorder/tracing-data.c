/* SPDX-License-Identifier: MIT */
/*
 * Feature TRACING_DATA: trace-cmd's header (trace-cmd.dat.v6(5)) without its options, as perf(1)
 * writes and reads it: a mark, byte order and sizes, and files of tracefs with their lengths.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <tally/reader.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/proc.h"
#include "recorder/tracing-data.h"

#define FILE_LIMIT (16u << 20)

static const char mark[] = "\x17\x08\x44tracing";
static const char version[] = "0.6";

/* Where tracefs is; before Linux 4.1 it was a part of debugfs. */
static const char *const mounts[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };

struct tracefs {
	const char *root, *mount;
};

/* Appends a file behind its length. 0 or -errno; nothing is appended then. */
static int add_file(struct buf *out, const struct tracefs *fs, const char *name)
{
	struct buf file = { 0 };
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/%s", fs->mount, name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	int r = proc_read(&file, fs->root, path, FILE_LIMIT);
	if (r == 0) {
		buf_u64(out, file.len);
		buf_add(out, file.at, file.len);
	}
	buf_done(&file);
	return r;
}

static bool is_tracepoint(const struct tally_event *event)
{
	return tally_event_attr(event)->type == TALLY_TYPE_TRACEPOINT &&
	       strchr(tally_event_name(event), ':');
}

/* The length of "sched" in "sched:sched_switch". */
static size_t system_len(const struct tally_event *event)
{
	return strcspn(tally_event_name(event), ":");
}

static bool same_system(const struct tally_event *a, const struct tally_event *b)
{
	size_t len = system_len(a);

	return len == system_len(b) && !memcmp(tally_event_name(a), tally_event_name(b), len);
}

/* Which tracepoints a file speaks of: an event's name may have modifiers behind a second ':'. */
static bool same_tracepoint(const struct tally_event *a, const struct tally_event *b)
{
	return tally_event_attr(a)->config == tally_event_attr(b)->config;
}

/* Whether an earlier event is alike. */
static bool is_repeated(const struct tally_events *events, uint32_t i,
			bool (*alike)(const struct tally_event *a, const struct tally_event *b))
{
	for (uint32_t k = 0; k < i; k++)
		if (is_tracepoint(tally_events_at(events, k)) &&
		    alike(tally_events_at(events, k), tally_events_at(events, i)))
			return true;
	return false;
}

static int add_format(struct buf *out, const struct tracefs *fs, const struct tally_event *event)
{
	const char *full = tally_event_name(event);
	size_t group = system_len(event), name = strcspn(full + group + 1, ":");
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "events/%.*s/%.*s/format", (int)group, full, (int)name,
		     full + group + 1) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	return add_file(out, fs, path);
}

/* One system: its name, and the formats of those of its tracepoints that are recorded. */
static void add_system(struct buf *out, const struct tracefs *fs, const struct tally_events *events,
		       uint32_t first)
{
	const struct tally_event *leader = tally_events_at(events, first);
	struct buf formats = { 0 };
	uint32_t count = 0;

	for (uint32_t i = first; i < tally_events_count(events); i++) {
		const struct tally_event *event = tally_events_at(events, i);
		if (!is_tracepoint(event) || !same_system(leader, event) ||
		    is_repeated(events, i, same_tracepoint))
			continue;
		count += add_format(&formats, fs, event) == 0;
	}
	buf_add(out, tally_event_name(leader), system_len(leader));
	buf_zero(out, 1);
	buf_u32(out, count);
	buf_add(out, formats.at, formats.len);
	out->failed |= formats.failed;
	buf_done(&formats);
}

static void add_systems(struct buf *out, const struct tracefs *fs,
			const struct tally_events *events)
{
	struct buf systems = { 0 };
	uint32_t count = 0;

	for (uint32_t i = 0; i < tally_events_count(events); i++) {
		if (!is_tracepoint(tally_events_at(events, i)) ||
		    is_repeated(events, i, same_system))
			continue;
		add_system(&systems, fs, events, i);
		count++;
	}
	buf_u32(out, 0); /* formats of the tracer's own events */
	buf_u32(out, count);
	buf_add(out, systems.at, systems.len);
	out->failed |= systems.failed;
	buf_done(&systems);
}

static int add_head(struct buf *out, const struct tracefs *fs)
{
	const uint8_t sizes[] = { __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__, sizeof(long) };

	buf_add(out, mark, sizeof(mark) - 1);
	buf_add(out, version, sizeof(version));
	buf_add(out, sizes, sizeof(sizes));
	buf_u32(out, (uint32_t)sysconf(_SC_PAGESIZE));
	buf_add(out, "header_page", sizeof("header_page"));
	int r = add_file(out, fs, "events/header_page");
	buf_add(out, "header_event", sizeof("header_event"));
	return r < 0 ? r : add_file(out, fs, "events/header_event");
}

/* What stands behind the formats: names of functions, which readers have from elsewhere; texts that
 * formats name by their addresses; names of tasks, which COMM records tell. */
static void add_tail(struct buf *out, const struct tracefs *fs)
{
	struct buf printk = { 0 };
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/printk_formats", fs->mount);
	if (proc_read(&printk, fs->root, path, FILE_LIMIT) < 0)
		buf_reset(&printk);
	buf_u32(out, 0);
	buf_u32(out, (uint32_t)printk.len);
	buf_add(out, printk.at, printk.len);
	buf_u64(out, 0);
	buf_done(&printk);
}

static bool has_tracepoint(const struct tally_events *events)
{
	for (uint32_t i = 0; i < tally_events_count(events); i++)
		if (is_tracepoint(tally_events_at(events, i)))
			return true;
	return false;
}

int tracing_data_write(struct tally_writer *writer, const struct tally_events *events,
		       const char *root)
{
	struct tracefs fs = { .root = root };
	struct buf blob = { 0 };
	int r = -ENOENT;

	if (!has_tracepoint(events))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(mounts) && r < 0; i++) {
		buf_reset(&blob);
		fs.mount = mounts[i];
		r = add_head(&blob, &fs);
	}
	if (r == 0) {
		add_systems(&blob, &fs, events);
		add_tail(&blob, &fs);
		r = blob.failed ? -ENOMEM
				: tally_writer_feature(writer, TALLY_FEATURE_TRACING_DATA, blob.at,
						       blob.len);
	}
	buf_done(&blob);
	return r == -ENOMEM ? r : 0;
}
