/* SPDX-License-Identifier: MIT */
/*
 * What works here for this user: a table of checks. What can be tried is tried, since settings and
 * opened events may promise what a hypervisor does not keep.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <tally/doctor.h>

#include "base/bytes.h"
#include "base/error.h"
#include "inspect/check.h"
#include "inspect/probe.h"

static const struct check {
	const char *name;
	void (*run)(const struct doctor *d, struct finding *f);
} checks[] = {
	{ "perf-events", check_reached },
	{ "seccomp", check_seccomp },
	{ "paranoid", check_paranoid },
	{ "capabilities", check_capabilities },
	{ "count", check_count },
	{ "count-kernel", check_count_kernel },
	{ "count-cpus", check_count_cpus },
	{ "attach", check_attach },
	{ "cgroups", check_cgroups },
	{ "sample", check_sample },
	{ "mlock", check_mlock },
	{ "descriptors", check_descriptors },
	{ "max-rate", check_max_rate },
	{ "kernel-symbols", check_kernel_symbols },
	{ "kernel-build-id", check_kernel_build_id },
	{ "processes", check_processes },
	{ "tracefs", check_tracefs },
	{ "pmu", check_pmu },
	{ "nmi-watchdog", check_nmi_watchdog },
	{ "rdpmc", check_rdpmc },
	{ "breakpoints", check_breakpoints },
	{ "ptrace", check_ptrace },
	{ "single-step", check_single_step },
	{ "single-block", check_single_block },
};

#define SET_TEXT(text, fmt)                                 \
	do {                                                \
		va_list ap;                                 \
		va_start(ap, fmt);                          \
		vsnprintf((text), sizeof(text), (fmt), ap); \
		va_end(ap);                                 \
	} while (0)

void finding_set(struct finding *f, enum tally_finding_state state, const char *value, ...)
{
	f->state = state;
	SET_TEXT(f->value, value);
}

void finding_means(struct finding *f, const char *meaning, ...)
{
	SET_TEXT(f->meaning, meaning);
}

void finding_mend(struct finding *f, const char *mend, ...)
{
	SET_TEXT(f->mend, mend);
}

/* In single quotes where the path has anything that a shell would read. */
static void quote_program(char *out, size_t size)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "_-+./@%:,=";
	char path[256];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	path[n > 0 ? n : 0] = '\0';
	if (n <= 0 || strchr(path, '\''))
		snprintf(out, size, "PROGRAM");
	else if (path[strspn(path, plain)])
		snprintf(out, size, "'%s'", path);
	else
		snprintf(out, size, "%s", path);
}

static int run_check(const struct check *check, struct doctor *d,
		     int (*fn)(const struct tally_finding *finding, void *arg), void *arg)
{
	struct finding f = { .state = TALLY_FINDING_UNKNOWN };

	check->run(d, &f);
	struct tally_finding finding = {
		.name = check->name,
		.value = f.value,
		.meaning = f.meaning,
		.mend = f.mend[0] ? f.mend : NULL,
		.state = f.state,
	};
	return fn(&finding, arg);
}

int tally_doctor_run(const struct tally_doctor_opts *opts,
		     int (*fn)(const struct tally_finding *finding, void *arg), void *arg,
		     struct tally_error *err)
{
	struct tally_doctor_opts known;
	struct doctor d = { 0 };

	int r = opts_read(&known, sizeof(known), 0, opts, err);
	if (r < 0)
		return r;
	d.root = known.root ? known.root : "";
	r = tally_system_read(&d.system, sizeof(d.system), d.root, err);
	if (r < 0)
		return r;
	quote_program(d.program, sizeof(d.program));
	d.reached = probe_reached();
	for (size_t i = 0; i < ARRAY_SIZE(checks) && r == 0; i++)
		r = run_check(&checks[i], &d, fn, arg);
	return r ? r : check_clock(&d, fn, arg, err);
}
