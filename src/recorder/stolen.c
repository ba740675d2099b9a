/* SPDX-License-Identifier: MIT */
/* Steal time of the machine and throttled time of the cgroup, version 2 or 1. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/proc.h"
#include "recorder/stolen.h"

#define SMALL_FILE 65536

/* "cpu  user nice system idle iowait irq softirq steal ...", in clock ticks. */
static uint64_t steal(const char *root)
{
	char line[512];
	uint64_t ticks;
	long hz = sysconf(_SC_CLK_TCK);

	if (hz <= 0 || proc_read_line(line, sizeof(line), root, "/proc/stat") < 0 ||
	    sscanf(line, "cpu %*u %*u %*u %*u %*u %*u %*u %" SCNu64, &ticks) != 1)
		return 0;
	return ticks * (1000000000u / (uint64_t)hz);
}

/* The number behind `key` in a file of "key number" lines, times `unit`; 0 when there is none. */
static uint64_t keyed(const char *root, const char *path, const char *key, uint64_t unit)
{
	struct buf text = { 0 };
	uint64_t value = 0;

	if (proc_read(&text, root, path, SMALL_FILE) == 0 && buf_text(&text)) {
		const char *at = strstr(text.at, key);
		if (at)
			value = strtoull(at + strlen(key), NULL, 10) * unit;
	}
	buf_done(&text);
	return value;
}

/* One line of /proc/self/cgroup: "0::/path" of version 2, "N:cpu,cpuacct:/path" of version 1. */
static uint64_t throttled_of(const char *root, const char *line)
{
	char path[PATH_MAX];
	const char *names = strchr(line, ':');
	const char *group = names ? strchr(names + 1, ':') : NULL;

	if (!group)
		return 0;
	group++;
	if (!strncmp(line, "0::", 3)) {
		static const char *const mounts[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
		for (size_t i = 0; i < 2; i++) {
			snprintf(path, sizeof(path), "%s%s/cpu.stat", mounts[i], group);
			uint64_t ns = keyed(root, path, "throttled_usec ", 1000);
			if (ns)
				return ns;
		}
		return 0;
	}
	if (!strstr(names, ":cpu,") && !strstr(names, ",cpu:") && !strstr(names, ":cpu:"))
		return 0;
	snprintf(path, sizeof(path), "/sys/fs/cgroup/cpu%s/cpu.stat", group);
	return keyed(root, path, "throttled_time ", 1);
}

void stolen_read(struct stolen *out, const char *root)
{
	struct buf text = { 0 };

	*out = (struct stolen){ .steal_ns = steal(root) };
	if (proc_read(&text, root, "/proc/self/cgroup", SMALL_FILE) == 0 && buf_text(&text)) {
		char *rest = NULL;
		for (char *line = strtok_r(text.at, "\n", &rest); line;
		     line = strtok_r(NULL, "\n", &rest))
			out->cgroup_throttled_ns += throttled_of(root, line);
	}
	buf_done(&text);
}
