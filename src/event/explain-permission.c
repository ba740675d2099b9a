/* SPDX-License-Identifier: MIT */
/*
 * What EACCES and EPERM of perf_event_open(2) mean: the level of paranoid, a missing capability,
 * another user's process, a filter or a security module.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/capability.h"
#include "base/proc.h"
#include "event/event.h"
#include "event/failure.h"

/* Any level will do for somebody with the capability, and none without it. */
#define LEVEL_NONE (-2)

/*
 * The highest kernel.perf_event_paranoid at which an unprivileged user may do this. Levels above 2
 * are those of distributions: they forbid everything.
 */
static int64_t level_needed(const struct failure *f)
{
	const struct tally_attr *attr = f->attr;

	if (attr->flags & TALLY_ATTR_NAMESPACES || f->probe)
		return LEVEL_NONE;
	if (attr->type == TALLY_TYPE_TRACEPOINT &&
	    (f->code == -EPERM || attr->sample_type & TALLY_SAMPLE_RAW))
		return -1;
	if (f->tid == -1)
		return 0;
	if (!(attr->flags & TALLY_ATTR_EXCLUDE_KERNEL) ||
	    attr->sample_type & TALLY_SAMPLE_PHYS_ADDR)
		return 1;
	return 2;
}

static const char *forbidden_at(int64_t needed)
{
	switch (needed) {
	case -1:
		return "forbids the data of tracepoints to this user";
	case 0:
		return "forbids watching whole CPUs to this user";
	case 1:
		return "lets this user watch user mode alone";
	default:
		return "forbids all events to this user";
	}
}

/* CAP_PERFMON came with Linux 5.8. */
static const char *capability(const struct failure *f)
{
	return failure_kernel_older(f, 5, 8) ? "cap_sys_admin" : "cap_perfmon";
}

/* What the capability is given to: the running program. */
static void program(char *out, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", out, size - 1);

	snprintf(out + (n > 0 ? n : 0), size - (n > 0 ? (size_t)n : 0), "%s",
		 n > 0 ? "" : "PROGRAM");
}

static bool is_capable(const struct failure *f)
{
	uint64_t able = 1ull << CAP_PERFMON | 1ull << CAP_SYS_ADMIN;

	return f->system.capabilities & able && !proc_in_user_namespace(f->root);
}

static int refused_by_filter(const struct failure *f)
{
	const char *held = is_capable(f) ? ", though it has the capability" : "";

	if (f->system.seccomp > 0)
		return say(f, TALLY_CAUSE_SECCOMP,
			   "a seccomp filter of this process refuses perf_event_open%s, as "
			   "containers' default profiles do: start the container with "
			   "'--cap-add PERFMON' or '--security-opt seccomp=unconfined'",
			   held);
	return say(
		f, TALLY_CAUSE_SECCOMP,
		"a security module (SELinux, AppArmor, lockdown) refuses perf_event_open to this "
		"process%s: 'sudo dmesg' or the audit log name the rule",
		held);
}

/*
 * Whether the least there is, nothing of the own user mode, is refused as well. Levels of paranoid up
 * to 2 allow it, so that it is a filter that refuses, whichever errno it has been told to answer.
 */
static bool filter_refuses_all(const struct failure *f)
{
	return f->system.seccomp > 0 && f->system.paranoid <= 2 &&
	       f->system.paranoid != TALLY_SYSTEM_UNKNOWN && tally_supported(NULL) == f->code;
}

static int refused_by_paranoid(const struct failure *f, int64_t needed)
{
	/* PMUs beside the cores' tell no modes apart. */
	bool has_modes = f->attr->type <= TALLY_TYPE_BREAKPOINT;
	bool user_helps = needed == 1 && f->system.paranoid <= 2 && has_modes &&
			  !event_only_in_kernel(f->attr);
	char path[192];

	program(path, sizeof(path));
	return say(f, TALLY_CAUSE_PARANOID,
		   "kernel.perf_event_paranoid is %lld, which %s: be root, or "
		   "'sudo sysctl kernel.perf_event_paranoid=%lld', or 'sudo setcap %s=ep %s'%s",
		   (long long)f->system.paranoid, forbidden_at(needed), (long long)needed,
		   capability(f), path,
		   user_helps ? ", or ask for user mode alone (modifier u)" : "");
}

/* Whether the thread is known to be another user's. */
static bool is_anothers(const struct failure *f, uint32_t *owner)
{
	char path[64], full[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", f->tid);
	if (f->tid <= 0 || proc_path(full, sizeof(full), f->root, path) < 0 || stat(full, &st) < 0)
		return false;
	*owner = st.st_uid;
	return st.st_uid != f->system.uid;
}

static int refused_process(const struct failure *f)
{
	uint32_t owner;
	char mine[192];

	program(mine, sizeof(mine));
	if (is_anothers(f, &owner))
		return say(f, TALLY_CAUSE_PERMISSION,
			   "it belongs to user %u, this is user %u: be that user or root, or "
			   "'sudo setcap %s=ep %s'",
			   owner, f->system.uid, capability(f), mine);
	return say(f, TALLY_CAUSE_PERMISSION,
		   "this user may not look into it, as it has changed its credentials or is "
		   "protected: be root, or 'sudo setcap %s=ep %s'",
		   capability(f), mine);
}

/*
 * Paranoid says EACCES, and EPERM only for tracepoints; seccomp profiles and lockdown say EPERM.
 */
int explain_permission(const struct failure *f)
{
	int64_t needed = level_needed(f);
	bool tracepoint = f->attr->type == TALLY_TYPE_TRACEPOINT;
	uint32_t owner;
	char path[192];

	if (is_capable(f) || (f->code == -EPERM && !tracepoint && f->system.seccomp > 0) ||
	    filter_refuses_all(f))
		return refused_by_filter(f);
	if (is_anothers(f, &owner)) /* no level of paranoid would help */
		return refused_process(f);
	if (needed == LEVEL_NONE) {
		program(path, sizeof(path));
		return say(f, TALLY_CAUSE_PERMISSION,
			   "%s need a capability, whatever kernel.perf_event_paranoid is: be root, "
			   "or 'sudo setcap %s=ep %s'",
			   f->probe ? "probes" : "records of namespaces", capability(f), path);
	}
	if (f->system.paranoid == TALLY_SYSTEM_UNKNOWN)
		return say(f, TALLY_CAUSE_PERMISSION,
			   "%s, and /proc/sys/kernel/perf_event_paranoid cannot be read to tell "
			   "why: be root",
			   strerror(-f->code));
	if (f->system.paranoid > needed)
		return refused_by_paranoid(f, needed);
	if (f->tid > 0)
		return refused_process(f);
	return refused_by_filter(f);
}
