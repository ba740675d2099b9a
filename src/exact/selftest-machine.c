/* SPDX-License-Identifier: MIT */
/* What the machine's files say that no trial would show soon. */
#include <string.h>

#include "base/bytes.h"
#include "base/proc.h"
#include "exact/selftest.h"

/* The first processor's paragraph is shorter; a server has hundreds of them. */
#define CPUINFO_HEAD 16384

void selftest_try_firmware(struct selftest *s)
{
	int64_t frozen;

	if (!selftest_is_vendor(s, "GenuineIntel") ||
	    proc_read_i64(&frozen, s->trial.root, "/sys/devices/cpu/freeze_on_smi") < 0) {
		selftest_found(s, TALLY_SELFTEST_OK, "not counted, or not known to be");
		selftest_means(s, "there is no setting for it");
		return;
	}
	if (frozen) {
		selftest_found(s, TALLY_SELFTEST_OK, "not counted");
		selftest_means(s, "counters are frozen while firmware runs (freeze_on_smi)");
		return;
	}
	selftest_found(s, TALLY_SELFTEST_LIMITED, "may be counted");
	selftest_means(s, "branches of firmware (SMI) may show in the counts, now and then");
	selftest_mend(s, "echo 1 > /sys/devices/cpu/freeze_on_smi");
}

/* Whether the first CPU has one of two features, by the line "flags" of /proc/cpuinfo. */
static bool has_either(const char *root, const char *one, const char *other)
{
	struct buf text = { 0 };
	bool has = false;

	proc_read(&text, root, "/proc/cpuinfo", CPUINFO_HEAD);
	char *flags = buf_text(&text) ? strstr(text.at, "\nflags") : NULL;
	char *rest = flags ? flags + 1 : NULL, *line = strsep(&rest, "\n"), *word;
	while ((word = strsep(&line, " \t")))
		has |= !strcmp(word, one) || !strcmp(word, other);
	buf_done(&text);
	return has;
}

void selftest_try_transactions(struct selftest *s)
{
	if (!has_either(s->trial.root, "rtm", "hle")) {
		selftest_found(s, TALLY_SELFTEST_OK, "none");
		selftest_means(s, "this CPU has no hardware transactions");
		return;
	}
	selftest_found(s, TALLY_SELFTEST_LIMITED, "TSX is on");
	selftest_means(
		s,
		"branches of a transaction that is aborted stay counted: programs that use TSX cannot be "
		"stopped exactly");
	selftest_mend(
		s,
		"boot with tsx=off, or GLIBC_TUNABLES=glibc.elision.enable=0 where glibc is its only user");
}

void selftest_try_cores(struct selftest *s)
{
	struct uarch_pmu first = { { 0 }, 0 }, pmu;
	int32_t cpus[1024];
	int count = proc_online_cpus(cpus, ARRAY_SIZE(cpus), s->trial.root);
	bool hybrid = false;

	for (int i = 0; i < count && i < (int)ARRAY_SIZE(cpus); i++) {
		if (uarch_pmu(&pmu, s->trial.root, cpus[i]) < 0)
			continue;
		hybrid |= first.name[0] && pmu.type != first.type;
		first = first.name[0] ? first : pmu;
	}
	if (!hybrid) {
		selftest_found(s, TALLY_SELFTEST_OK, "one kind");
		selftest_means(s, "a thread is counted wherever it runs");
		return;
	}
	selftest_found(s, TALLY_SELFTEST_LIMITED, "several kinds");
	selftest_means(
		s,
		"a thread is counted on cores of one kind alone, and elsewhere the clock does not hold");
	selftest_mend(s, "bind what is timed to cores of one kind, as tally does unless --no-pin");
}
