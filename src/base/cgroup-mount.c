/* SPDX-License-Identifier: MIT */
/*
 * The perf_event controller is in a hierarchy of its own or shared (version 1), or in the unified one
 * (version 2), where it is always on; /proc/self/mounts tells where.
 */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cgroup-mount.h"
#include "base/proc.h"

#define MOUNTS_LIMIT (16u << 20)

#define CONTROLLER "perf_event"

/* A line of /proc/self/mounts, proc_pid_mounts(5): device, folder, type, options. */
struct mount_line {
	char folder[PATH_MAX], type[32], options[1024];
};

/* White space and backslashes in a folder's name are three octal digits: \040. */
static void unescape(char *text)
{
	char *to = text;

	for (const char *from = text; *from; to++) {
		if (*from == '\\' && from[1] >= '0' && from[1] <= '3' &&
		    strspn(from + 1, "01234567") >= 3) {
			*to = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

static bool parse_mount(struct mount_line *m, const char *line)
{
	/* The widths are those of the fields, less one: 4095, 31, 1023. */
	if (sscanf(line, "%*s %4095s %31s %1023s", m->folder, m->type, m->options) != 3)
		return false;
	unescape(m->folder);
	return true;
}

static bool has_option(const char *options, const char *wanted)
{
	size_t len = strlen(wanted);

	for (const char *at = options; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (!strncmp(at, wanted, len) && (at[len] == ',' || !at[len]))
			return true;
	}
	return false;
}

/* A version 1 hierarchy with the controller takes it away from the unified one. */
static bool choose_mount(char *folder, size_t size, const char *mounts)
{
	struct mount_line m;
	bool found = false;

	for (const char *line = mounts; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		if (!parse_mount(&m, line))
			continue;
		bool own = !strcmp(m.type, "cgroup") && has_option(m.options, CONTROLLER);
		if (!own && (found || strcmp(m.type, "cgroup2") != 0))
			continue;
		snprintf(folder, size, "%s", m.folder);
		found = true;
		if (own)
			return true;
	}
	return found;
}

int cgroup_mount(char *folder, size_t size, const char *root)
{
	struct buf text = { 0 };
	int r = proc_read(&text, root, "/proc/self/mounts", MOUNTS_LIMIT);

	if (r == 0 && !buf_text(&text))
		r = -ENOMEM;
	if (r == 0 && !choose_mount(folder, size, text.at))
		r = -EOPNOTSUPP;
	buf_done(&text);
	return r;
}
