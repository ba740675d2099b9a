/* SPDX-License-Identifier: MIT */
/* The features that describe the machine on which a file is written, from /proc and /sys. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <tally/reader.h>
#include <tally/writer.h>

#include "base/bytes.h"
#include "base/proc.h"
#include "perfdata/topology.h"

/* Enough of /proc/cpuinfo for its first CPU; the whole has as many parts as the machine CPUs. */
#define CPUINFO_PART  8192
#define MEMINFO_LIMIT 65536
#define CPUS_LIMIT    65536

/* MIDR_EL1 without variant and revision, as perf names arm64 CPUs. */
#define MIDR_MODEL UINT64_C(0xff0ffff0)

/* The value of a line "key : value", white space squeezed. false: no such line. */
static bool find_value(const char *text, const char *key, char *out, size_t size)
{
	size_t key_len = strlen(key), n = 0;

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		const char *colon = line + key_len;
		if (strncmp(line, key, key_len) != 0 || *(colon += strspn(colon, " \t")) != ':')
			continue;
		for (const char *c = colon + 1; *c && *c != '\n' && n + 1 < size; c++)
			if (!isspace((unsigned char)*c) || (n && out[n - 1] != ' '))
				out[n++] = isspace((unsigned char)*c) ? ' ' : *c;
		out[n] = '\0';
		return n > 0;
	}
	return false;
}

/* What /proc/cpuinfo calls the model differs with the architecture. */
static bool cpu_description(const char *cpuinfo, char *out, size_t size)
{
	static const char *const keys[] = { "model name", "Processor", "cpu", "Model Name",
					    "uarch" };

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (find_value(cpuinfo, keys[i], out, size))
			return true;
	return false;
}

/* As perf names CPUs: vendor,family,model,stepping on x86, the MIDR on arm64. */
static bool cpu_id(const char *cpuinfo, const char *root, char *out, size_t size)
{
	char vendor[64], family[16], model[16], stepping[16], midr[32];
	uint64_t id;

	if (find_value(cpuinfo, "vendor_id", vendor, sizeof(vendor)) &&
	    find_value(cpuinfo, "cpu family", family, sizeof(family)) &&
	    find_value(cpuinfo, "model", model, sizeof(model)) &&
	    find_value(cpuinfo, "stepping", stepping, sizeof(stepping))) {
		snprintf(out, size, "%s,%s,%s,%s", vendor, family, model, stepping);
		return true;
	}
	if (proc_read_line(midr, sizeof(midr), root,
			   "/sys/devices/system/cpu/cpu0/regs/identification/midr_el1") < 0 ||
	    !parse_hex(midr, &id))
		return false;
	snprintf(out, size, "0x%016" PRIx64, id & MIDR_MODEL);
	return true;
}

static int describe_cpu(struct tally_writer *w, const char *root)
{
	struct buf text = { 0 };
	char value[256];

	/* -EFBIG: there is more, which is not needed. Other failures: nothing to say. */
	(void)proc_read(&text, root, "/proc/cpuinfo", CPUINFO_PART);
	const char *cpuinfo = buf_text(&text);
	int r = cpuinfo ? 0 : -ENOMEM;
	if (r == 0 && cpu_description(cpuinfo, value, sizeof(value)))
		r = tally_writer_text(w, TALLY_FEATURE_CPUDESC, value);
	if (r == 0 && cpu_id(cpuinfo, root, value, sizeof(value)))
		r = tally_writer_text(w, TALLY_FEATURE_CPUID, value);
	buf_done(&text);
	return r;
}

/* How many CPU numbers there may be: one more than the last of a list such as "0-3,8". */
static uint32_t count_present(const char *root)
{
	char list[4096];
	uint64_t last;

	if (proc_read_line(list, sizeof(list), root, "/sys/devices/system/cpu/present") < 0)
		return 0;
	size_t at = strlen(list);
	while (at && isdigit((unsigned char)list[at - 1]))
		at--;
	return parse_u64(list + at, &last) && last < CPUS_LIMIT ? (uint32_t)last + 1 : 0;
}

/* Readers take a CPU beyond the first figure for damage, so it must not be too small. */
static int describe_cpus(struct tally_writer *w, const char *root)
{
	uint32_t counts[2] = { count_present(root), 0 };
	int online = proc_online_cpus(NULL, 0, root);
	long configured = sysconf(_SC_NPROCESSORS_CONF), running = sysconf(_SC_NPROCESSORS_ONLN);

	if (!counts[0])
		counts[0] = configured > 0 ? (uint32_t)configured : 1;
	counts[1] = online > 0 ? (uint32_t)online : running > 0 ? (uint32_t)running : 1;
	int r = tally_writer_feature(w, TALLY_FEATURE_NRCPUS, counts, sizeof(counts));
	return r < 0 ? r : topology_describe(w, root, counts[0]);
}

static int describe_memory(struct tally_writer *w, const char *root)
{
	struct buf text = { 0 };
	char value[32];
	int r = proc_read(&text, root, "/proc/meminfo", MEMINFO_LIMIT);

	if (r == 0 && !buf_text(&text))
		r = -ENOMEM;
	else if (r == 0 && find_value(text.at, "MemTotal", value, sizeof(value))) {
		uint64_t kb = strtoull(value, NULL, 10);
		r = tally_writer_feature(w, TALLY_FEATURE_TOTAL_MEM, &kb, sizeof(kb));
	}
	buf_done(&text);
	return r == -ENOMEM ? r : 0;
}

/* Readers of files from other machines blank all features when HOSTNAME is missing. */
static int describe_system(struct tally_writer *w, const char *root)
{
	struct utsname system = { .nodename = "localhost", .machine = "unknown" };
	char line[256];
	int r;

	uname(&system);
	if (proc_read_line(line, sizeof(line), root, "/proc/sys/kernel/hostname") < 0 || !line[0])
		snprintf(line, sizeof(line), "%s", system.nodename);
	r = tally_writer_text(w, TALLY_FEATURE_HOSTNAME, line);
	if (r == 0 && proc_read_line(line, sizeof(line), root, "/proc/sys/kernel/osrelease") == 0)
		r = tally_writer_text(w, TALLY_FEATURE_OSRELEASE, line);
	/* [6.1] */
	if (proc_read_line(line, sizeof(line), root, "/proc/sys/kernel/arch") < 0 || !line[0])
		snprintf(line, sizeof(line), "%s", system.machine);
	return r < 0 ? r : tally_writer_text(w, TALLY_FEATURE_ARCH, line);
}

int tally_writer_describe_machine(struct tally_writer *writer, const char *root)
{
	int r = describe_system(writer, root);

	if (r == 0)
		r = tally_writer_text(writer, TALLY_FEATURE_VERSION, tally_version());
	if (r == 0)
		r = describe_cpus(writer, root);
	if (r == 0)
		r = describe_cpu(writer, root);
	if (r == 0)
		r = describe_memory(writer, root);
	return r;
}
