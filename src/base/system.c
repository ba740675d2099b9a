/* SPDX-License-Identifier: MIT */
/* What this machine has and what this user may do: facts from /proc and /sys. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <tally/system.h>

#include "base/bytes.h"
#include "base/capability.h"
#include "base/error.h"
#include "base/proc.h"

#define STATUS_LIMIT  65536
#define CPUINFO_LIMIT (16u << 20)
/* PERF_MAX_STACK_DEPTH. */
#define DEFAULT_STACK 127u

static int64_t sysctl(const char *root, const char *name)
{
	char path[128];
	int64_t value;

	snprintf(path, sizeof(path), "/proc/sys/kernel/%s", name);
	return proc_read_i64(&value, root, path) < 0 ? TALLY_SYSTEM_UNKNOWN : value;
}

/* The text behind "\nKEY:" in a /proc file, or NULL. */
static const char *field(const char *text, const char *key)
{
	size_t len = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, key, len) && line[len] == ':')
			return line + len + 1;
		if (!*line)
			break;
	}
	return NULL;
}

static void read_status(struct tally_system *s, const char *root)
{
	struct buf text = { 0 };

	s->seccomp = TALLY_SYSTEM_UNKNOWN;
	if (proc_read(&text, root, "/proc/self/status", STATUS_LIMIT) == 0 && buf_text(&text)) {
		const char *caps = field(text.at, "CapEff"), *mode = field(text.at, "Seccomp");
		if (caps)
			s->capabilities = strtoull(caps, NULL, 16);
		if (mode)
			s->seccomp = strtoll(mode, NULL, 10);
	}
	buf_done(&text);
}

/* x86 tells in a flag; arm64 does not say. */
static void read_cpuinfo(struct tally_system *s, const char *root)
{
	struct buf text = { 0 };

	if (proc_read(&text, root, "/proc/cpuinfo", CPUINFO_LIMIT) == 0 && buf_text(&text)) {
		const char *flags = strstr(text.at, "\nflags");
		const char *end = flags ? strchr(flags + 1, '\n') : NULL;
		const char *word = flags ? strstr(flags, " hypervisor") : NULL;
		s->in_vm = word && (!end || word < end);
	}
	buf_done(&text);
}

/*
 * PMUs of cores, by the names that their drivers give: "cpu" (x86 and most), "cpu_core", "cpu_atom"
 * (hybrid x86), "armv8_pmuv3_0", "armv8_cortex_a72" and such (by ACPI or device tree), "apple_*",
 * "cpum_cf" (s390).
 */
static bool is_core_pmu(const char *name)
{
	static const char *const prefixes[] = { "armv6_", "armv7_", "armv8_", "armv9_", "apple_" };
	static const char *const names[] = { "cpu", "cpu_core", "cpu_atom", "cpum_cf" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

static void read_pmus(struct tally_system *s, const char *root)
{
	char path[PATH_MAX];
	struct dirent *entry;

	if (proc_path(path, sizeof(path), root, "/sys/bus/event_source/devices") < 0)
		return;
	DIR *dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		if (is_core_pmu(entry->d_name))
			s->has_core_pmu = 1;
	if (dir)
		closedir(dir);
}

static void read_tracefs(struct tally_system *s, const char *root)
{
	static const char *const mounts[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };
	char path[128], line[8];

	for (size_t i = 0; i < ARRAY_SIZE(mounts) && !s->tracefs[0]; i++) {
		snprintf(path, sizeof(path), "%s/events/header_page", mounts[i]);
		if (proc_read_line(line, sizeof(line), root, path) == 0)
			snprintf(s->tracefs, sizeof(s->tracefs), "%s", mounts[i]);
	}
}

static void read_limits(struct tally_system *s)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		s->nofile_soft = limit.rlim_cur;
		s->nofile_hard = limit.rlim_max;
	}
	if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0)
		s->memlock_soft = limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
}

uint32_t tally_max_stack(void)
{
	int64_t frames = sysctl(NULL, "perf_event_max_stack");

	return frames > 0 && frames <= UINT32_MAX ? (uint32_t)frames : DEFAULT_STACK;
}

int tally_system_read(struct tally_system *out, size_t out_size, const char *root,
		      struct tally_error *err)
{
	struct tally_system s = { 0 };
	struct utsname name;

	if (out_size < sizeof(uint64_t))
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
				 "a struct tally_system of %zu bytes is too small", out_size);
	s.paranoid = sysctl(root, "perf_event_paranoid");
	s.max_sample_rate = sysctl(root, "perf_event_max_sample_rate");
	s.max_stack = sysctl(root, "perf_event_max_stack");
	s.mlock_kb = sysctl(root, "perf_event_mlock_kb");
	s.kptr_restrict = sysctl(root, "kptr_restrict");
	s.nmi_watchdog = sysctl(root, "nmi_watchdog");
	int cpus = proc_online_cpus(NULL, 0, root);
	s.online_cpus = cpus < 0 ? TALLY_SYSTEM_UNKNOWN : cpus;
	read_status(&s, root);
	read_cpuinfo(&s, root);
	read_pmus(&s, root);
	read_tracefs(&s, root);
	read_limits(&s);
	s.uid = geteuid();
	s.in_user_namespace = proc_in_user_namespace(root);
	s.may_profile_all = s.paranoid == -1 ||
			    (!s.in_user_namespace && (s.capabilities >> CAP_PERFMON & 1 ||
						      s.capabilities >> CAP_SYS_ADMIN & 1));
	if (uname(&name) == 0) {
		snprintf(s.release, sizeof(s.release), "%.63s", name.release);
		snprintf(s.machine, sizeof(s.machine), "%.31s", name.machine);
	}
	memset(out, 0, out_size);
	memcpy(out, &s, out_size < sizeof(s) ? out_size : sizeof(s));
	return 0;
}
