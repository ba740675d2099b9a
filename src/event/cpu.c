/* SPDX-License-Identifier: MIT */
/*
 * The identity of the CPU from /proc/cpuinfo and sysfs. The files tell the architecture, rather than
 * the compiler, since `root` may be another machine's.
 */
#include <errno.h>
#include <regex.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/proc.h"
#include "event/cpu.h"

/* The first processor's paragraph of /proc/cpuinfo is shorter; a server has hundreds of them. */
#define CPUINFO_HEAD 16384

/* Rows have one: AuthenticAMD-25-([245][[:xdigit:]]|[[:xdigit:]]) */
#define MAX_REPEATS 4
#define MAX_GROUPS  8

/* Fields of MIDR_EL1, Arm ARM D19.2 */
#define MIDR_VARIANT  0x00f00000u
#define MIDR_REVISION 0x0000000fu

static int read_midr(char *out, const char *root, int32_t cpu)
{
	char path[96];
	uint64_t midr;

	if (cpu < 0 && proc_online_cpus(&cpu, 1, root) < 1)
		cpu = 0;
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/regs/identification/midr_el1",
		 cpu);
	int r = proc_read_line(out, CPU_IDENTITY_MAX, root, path);
	if (r < 0)
		return r;
	return parse_hex(out, &midr) ? 0 : -EINVAL;
}

/* The value of "key<tabs>: value", the first one. */
static bool cpuinfo_value(const char *text, const char *key, char *out, size_t size)
{
	size_t len = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, len) != 0)
			continue;
		const char *at = line + len + strspn(line + len, " \t");
		if (*at != ':')
			continue;
		at++;
		at += strspn(at, " \t");
		snprintf(out, size, "%.*s", (int)strcspn(at, "\n"), at);
		return *out;
	}
	return false;
}

static bool cpuinfo_number(const char *text, const char *key, unsigned *out)
{
	char value[32];
	uint64_t v;

	if (!cpuinfo_value(text, key, value, sizeof(value)) || !parse_u64(value, &v) ||
	    v > UINT16_MAX)
		return false;
	*out = (unsigned)v;
	return true;
}

static bool identify(char *out, const char *cpuinfo)
{
	char vendor[24], arch[24], implementation[24];
	unsigned family, model, stepping;

	if (cpuinfo_value(cpuinfo, "vendor_id", vendor, sizeof(vendor)) &&
	    cpuinfo_number(cpuinfo, "cpu family", &family) &&
	    cpuinfo_number(cpuinfo, "model", &model)) {
		/* The kernel writes "unknown" for a stepping of 0 on CPUs without CPUID. */
		if (!cpuinfo_number(cpuinfo, "stepping", &stepping))
			stepping = 0;
		snprintf(out, CPU_IDENTITY_MAX, "%s-%u-%X-%X", vendor, family, model, stepping);
		return true;
	}
	/* arch/riscv/kernel/cpu.c, since Linux 6.2 */
	if (!cpuinfo_value(cpuinfo, "mvendorid", vendor, sizeof(vendor)) ||
	    !cpuinfo_value(cpuinfo, "marchid", arch, sizeof(arch)) ||
	    !cpuinfo_value(cpuinfo, "mimpid", implementation, sizeof(implementation)))
		return false;
	snprintf(out, CPU_IDENTITY_MAX, "%s-%s-%s", vendor, arch, implementation);
	return true;
}

int cpu_identity(char out[CPU_IDENTITY_MAX], const char *root, int32_t cpu)
{
	struct buf text = { 0 };
	int r = read_midr(out, root, cpu);

	if (r != -ENOENT)
		return r;
	r = proc_read(&text, root, "/proc/cpuinfo", CPUINFO_HEAD);
	if (r == 0 || r == -EFBIG)
		r = !buf_text(&text) ? -ENOMEM : identify(out, text.at) ? 0 : -ENOENT;
	buf_done(&text);
	return r;
}

static bool midr_matches(uint64_t row, uint64_t midr)
{
	const uint64_t version = MIDR_VARIANT | MIDR_REVISION;

	/* The variant is the more significant half: r1p3 comes before r2p0. */
	return (row & ~version) == (midr & ~version) && (midr & version) >= (row & version);
}

/* Repetitions of repetitions cost glibc time and memory by the power of their depth. */
static bool is_cheap(const char *pattern)
{
	int repeats = 0, groups = 0;

	for (const char *c = pattern; *c; c++) {
		repeats += *c == '+' || *c == '*' || *c == '?';
		groups += *c == '(';
	}
	return repeats <= MAX_REPEATS && groups <= MAX_GROUPS && !strpbrk(pattern, "\\{");
}

static bool regex_matches(const char *pattern, const char *identity)
{
	char whole[192], without[CPU_IDENTITY_MAX];
	regex_t regex;
	const char *last = strrchr(identity, '-');

	snprintf(without, sizeof(without), "%.*s",
		 (int)(last ? (size_t)(last - identity) : strlen(identity)), identity);
	if (!is_cheap(pattern) ||
	    snprintf(whole, sizeof(whole), "^(%s)$", pattern) >= (int)sizeof(whole) ||
	    regcomp(&regex, whole, REG_EXTENDED | REG_NOSUB) != 0)
		return false;
	bool found = regexec(&regex, identity, 0, NULL, 0) == 0 ||
		     regexec(&regex, without, 0, NULL, 0) == 0;
	regfree(&regex);
	return found;
}

bool cpu_matches(const char *pattern, const char *identity)
{
	uint64_t row, midr;

	if (parse_hex(identity, &midr))
		return parse_hex(pattern, &row) && midr_matches(row, midr);
	return regex_matches(pattern, identity);
}
