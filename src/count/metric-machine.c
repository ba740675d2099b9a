/* SPDX-License-Identifier: MIT */
/*
 * Metrics: the facts about this machine that formulas ask for, from /sys and /proc. They mean what
 * they mean in perf's tables of metrics.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/proc.h"
#include "count/metric.h"
#include "event/cpu.h"

#define CPU_FOLDER "/sys/devices/system/cpu"
#define PMU_FOLDER "/sys/bus/event_source/devices"

/* The first processor of /proc/cpuinfo is enough. */
#define CPUINFO_HEAD 16384

static bool exists(const char *root, const char *path)
{
	char full[PATH_MAX];

	return proc_path(full, sizeof(full), root, path) == 0 && access(full, F_OK) == 0;
}

/* The largest CPU number there may be, + 1. */
static int count_present(double *out, const struct metric_where *where, const char *arg)
{
	char line[4096];
	int32_t cpus[1];
	int n = proc_read_line(line, sizeof(line), where->root, CPU_FOLDER "/present");

	(void)arg;
	if (n == 0)
		n = proc_parse_cpus(line, cpus, 1);
	if (n <= 0)
		return -ENODATA;
	/* The list is ascending, so its last number is behind the last '-' or ','. */
	size_t last = strlen(line);
	while (last > 0 && line[last - 1] != '-' && line[last - 1] != ',')
		last--;
	*out = strtod(line + last, NULL) + 1;
	return 1;
}

static int count_online(double *out, const struct metric_where *where, const char *arg)
{
	int32_t cpus[1];
	int n = proc_online_cpus(cpus, 1, where->root);

	(void)arg;
	if (n <= 0)
		return -ENODATA;
	*out = n;
	return 1;
}

/* The list of CPUs that share something with this one; the file's older name is tried too. */
static int sharers(char *line, size_t size, const char *root, int32_t cpu, const char *file)
{
	static const char *const older[][2] = {
		{ "core_cpus_list", "thread_siblings_list" },
		{ "package_cpus_list", "core_siblings_list" },
	};
	char path[128];

	snprintf(path, sizeof(path), CPU_FOLDER "/cpu%d/topology/%s", cpu, file);
	int r = proc_read_line(line, size, root, path);
	for (size_t i = 0; r < 0 && i < ARRAY_SIZE(older); i++) {
		if (strcmp(older[i][0], file) != 0)
			continue;
		snprintf(path, sizeof(path), CPU_FOLDER "/cpu%d/topology/%s", cpu, older[i][1]);
		r = proc_read_line(line, size, root, path);
	}
	return r;
}

/* How many different lists there are: each is counted at its first CPU that is online. */
static int count_groups(const int32_t *cpus, int count, const char *root, const char *file,
			int *most)
{
	char line[4096];
	int32_t first;
	int groups = 0;

	for (int i = 0; i < count; i++) {
		if (sharers(line, sizeof(line), root, cpus[i], file) < 0)
			return -ENODATA;
		int n = proc_parse_cpus(line, &first, 1);
		if (n <= 0)
			return -ENODATA;
		groups += first == cpus[i];
		if (n > *most)
			*most = n;
	}
	return groups ? groups : -ENODATA;
}

/* Answers how many groups the file makes of the CPUs, with the size of the largest. */
static int read_topology(const char *root, const char *file, int *most)
{
	int n = proc_online_cpus(NULL, 0, root);
	int32_t *cpus = n > 0 ? malloc((size_t)n * sizeof(*cpus)) : NULL;
	int groups = -ENODATA;

	if (cpus && proc_online_cpus(cpus, (size_t)n, root) == n)
		groups = count_groups(cpus, n, root, file, most);
	free(cpus);
	return groups;
}

static int count_topology(double *out, const struct metric_where *where, const char *file)
{
	int most = 0, groups = read_topology(where->root, file, &most);

	if (groups < 0)
		return groups;
	*out = groups;
	return 1;
}

/* smt/active is there since Linux 4.19, and not on all architectures. */
static int is_smt_on(double *out, const struct metric_where *where, const char *arg)
{
	int64_t active;
	int most = 0;

	(void)arg;
	if (proc_read_i64(&active, where->root, CPU_FOLDER "/smt/active") == 0) {
		*out = active == 1;
		return 1;
	}
	if (read_topology(where->root, "core_cpus_list", &most) < 0)
		return -ENODATA;
	*out = most > 1;
	return 1;
}

static int is_core_wide(double *out, const struct metric_where *where, const char *arg)
{
	double smt = 1;

	*out = 0;
	if (!(where->flags & TALLY_METRIC_ON_CPUS))
		return 1;
	if (where->flags & TALLY_METRIC_WHOLE_CORES) {
		*out = 1;
		return 1;
	}
	int r = is_smt_on(&smt, where, arg);
	*out = r > 0 && !smt;
	return r;
}

static int is_on_cpus(double *out, const struct metric_where *where, const char *arg)
{
	(void)arg;
	*out = where->flags & TALLY_METRIC_ON_CPUS ? 1 : 0;
	return 1;
}

/* An ACPI table of persistent memory. */
static int has_pmem(double *out, const struct metric_where *where, const char *arg)
{
	(void)arg;
	*out = exists(where->root, "/sys/firmware/acpi/tables/NFIT");
	return 1;
}

/*
 * Calls `fn` with the folder of each PMU of CPU cores, as "cpu", "cpu_core" or "armv8_pmuv3_0",
 * until it answers non-zero.
 */
static int each_core_pmu(const char *root, int (*fn)(const char *root, const char *folder, void *),
			 void *arg)
{
	static const char *const cores[] = { "cpu", "arm" };
	char path[PATH_MAX];
	struct dirent *entry;
	int r = 0;
	DIR *dir = proc_path(path, sizeof(path), root, PMU_FOLDER) == 0 ? opendir(path) : NULL;

	while (dir && r == 0 && (entry = readdir(dir)))
		for (size_t i = 0; i < ARRAY_SIZE(cores); i++)
			if (!strncmp(entry->d_name, cores[i], strlen(cores[i]))) {
				snprintf(path, sizeof(path), PMU_FOLDER "/%s", entry->d_name);
				r = fn(root, path, arg);
				break;
			}
	if (dir)
		closedir(dir);
	return r;
}

static int read_slots(const char *root, const char *folder, void *arg)
{
	char path[PATH_MAX];
	int64_t slots;

	if (snprintf(path, sizeof(path), "%s/caps/slots", folder) >= (int)sizeof(path) ||
	    proc_read_i64(&slots, root, path) < 0 || slots <= 0)
		return 0;
	*(double *)arg = (double)slots;
	return 1;
}

/* How many operations an Arm core can dispatch in a cycle (PMMIR_EL1.SLOTS). */
static int count_slots(double *out, const struct metric_where *where, const char *arg)
{
	(void)arg;
	return each_core_pmu(where->root, read_slots, out) > 0 ? 1 : -ENODATA;
}

/*
 * "model name : Intel(R) Xeon(R) Gold 6154 CPU @ 3.00GHz": Intel's TSC runs at that rate. Others
 * have 0, as in perf.
 */
static int tsc_frequency(double *out, const struct metric_where *where, const char *arg)
{
	struct buf text = { 0 };
	double ghz;
	int r = proc_read(&text, where->root, "/proc/cpuinfo", CPUINFO_HEAD);

	(void)arg;
	const char *all = r == 0 || r == -EFBIG ? buf_text(&text) : NULL;
	const char *model = all ? strstr(all, "model name") : NULL;
	size_t line = model ? strcspn(model, "\n") : 0;
	const char *at = model ? memmem(model, line, " @ ", 3) : NULL;
	r = -ENODATA;
	*out = 0;
	if (all && !strstr(all, "GenuineIntel")) {
		r = 1;
	} else if (at) {
		size_t n = metric_number(at + 3, &ghz);
		if (n && !strncmp(at + 3 + n, "GHz", 3)) {
			*out = ghz * 1e9;
			r = 1;
		}
	}
	buf_done(&text);
	return r;
}

static const struct {
	const char *name;
	int (*read)(double *out, const struct metric_where *where, const char *arg);
	const char *arg;
	const char *source; /* what could not be read */
} literals[] = {
	{ "core_wide", is_core_wide, NULL, CPU_FOLDER "/smt/active" },
	{ "has_pmem", has_pmem, NULL, NULL },
	{ "num_cores", count_topology, "core_cpus_list", CPU_FOLDER "/cpu*/topology" },
	{ "num_cpus", count_present, NULL, CPU_FOLDER "/present" },
	{ "num_cpus_online", count_online, NULL, CPU_FOLDER "/online" },
	{ "num_dies", count_topology, "die_cpus_list", CPU_FOLDER "/cpu*/topology" },
	{ "num_packages", count_topology, "package_cpus_list", CPU_FOLDER "/cpu*/topology" },
	{ "slots", count_slots, NULL, "caps/slots of an Arm PMU in " PMU_FOLDER },
	{ "smt_on", is_smt_on, NULL, CPU_FOLDER "/smt/active" },
	{ "system_tsc_freq", tsc_frequency, NULL, "the TSC's frequency in /proc/cpuinfo" },
	{ "target_cpu", is_on_cpus, NULL, NULL },
};

int metric_literal(double *out, const char *name, size_t len, const struct metric_where *where,
		   const char **why)
{
	for (size_t i = 0; i < ARRAY_SIZE(literals); i++) {
		if (strlen(literals[i].name) != len || strncasecmp(literals[i].name, name, len))
			continue;
		int r = literals[i].read(out, where, literals[i].arg);
		*why = literals[i].source;
		return r < 0 ? -ENODATA : 1;
	}
	return 0;
}

int metric_is_cpu(const char *id, const char *root)
{
	char identity[CPU_IDENTITY_MAX];

	if (cpu_identity(identity, root, -1) < 0)
		return -ENODATA;
	return cpu_matches(id, identity);
}

static int find_event(const char *root, const char *folder, void *arg)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/events/%s", folder, (const char *)arg) <
		       (int)sizeof(path) &&
	       exists(root, path);
}

bool metric_cpu_has_event(const char *name, const char *root)
{
	char copy[64];

	snprintf(copy, sizeof(copy), "%s", name);
	return each_core_pmu(root, find_event, copy) > 0;
}

bool metric_cpu_model(const char *vendor, const char *root, unsigned *family, unsigned *model)
{
	char identity[CPU_IDENTITY_MAX];
	size_t len = strlen(vendor);

	return cpu_identity(identity, root, -1) == 0 && !strncmp(identity, vendor, len) &&
	       sscanf(identity + len, "-%u-%x", family, model) == 2;
}
