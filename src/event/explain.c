/* SPDX-License-Identifier: MIT */
/*
 * What an errno of perf_event_open(2) means here. The same errno has many causes in the kernel
 * (kernel/events/core.c), so the attr and the machine are looked at to tell which it was. Every text
 * ends in what to do.
 */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/proc.h"
#include "event/event.h"
#include "event/explain.h"
#include "event/failure.h"

/* "cannot open EVENT", and where. */
static void place_text(char *out, size_t size, const struct failure *f)
{
	char where[64] = "";

	if (f->tid > 0 && f->cpu >= 0)
		snprintf(where, sizeof(where), " for thread %d on CPU %d", f->tid, f->cpu);
	else if (f->tid > 0)
		snprintf(where, sizeof(where), " for thread %d", f->tid);
	else if (f->cpu >= 0)
		snprintf(where, sizeof(where), " on CPU %d", f->cpu);
	snprintf(out, size, "cannot open %.64s%s", f->name, where);
}

int say(const struct failure *f, enum tally_cause cause, const char *fmt, ...)
{
	char why[TALLY_ERROR_TEXT], what[160];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	place_text(what, sizeof(what), f);
	return error_set(f->err, f->code, cause, "%s: %s", what, why);
}

bool failure_kernel_older(const struct failure *f, long major, long minor)
{
	char *rest;
	long has_major = strtol(f->system.release, &rest, 10);
	long has_minor = *rest == '.' ? strtol(rest + 1, NULL, 10) : 0;

	return has_major && (has_major < major || (has_major == major && has_minor < minor));
}

static bool samples(const struct tally_attr *attr)
{
	return attr->sample_period != 0;
}

/* -- ENOENT, EOPNOTSUPP and others that say "not here" ----------------------------------------- */

bool is_hardware(const struct tally_attr *attr)
{
	return attr->type == TALLY_TYPE_HARDWARE || attr->type == TALLY_TYPE_HW_CACHE ||
	       attr->type == TALLY_TYPE_RAW;
}

static int explain_no_entry(const struct failure *f)
{
	if (f->attr->type == TALLY_TYPE_SOFTWARE)
		return say(f, TALLY_CAUSE_UNSUPPORTED,
			   "this kernel (%s) has no software event %llu: a newer one may",
			   f->system.release, (unsigned long long)f->attr->config);
	if (f->attr->type == TALLY_TYPE_TRACEPOINT)
		return say(
			f, TALLY_CAUSE_UNSUPPORTED,
			"this kernel has no tracepoints: it is built without CONFIG_EVENT_TRACING");
	if (!is_hardware(f->attr))
		return say(f, TALLY_CAUSE_UNSUPPORTED,
			   "no PMU has type %u, or it does not know the event: the types are in "
			   "/sys/bus/event_source/devices/*/type",
			   f->attr->type);
	if (f->system.has_core_pmu)
		return say(f, TALLY_CAUSE_UNSUPPORTED,
			   "the PMU of this CPU does not have it: 'tally list' shows what it has");
	if (f->system.in_vm)
		return say(f, TALLY_CAUSE_NO_PMU,
			   "this virtual machine shows no hardware counters: have its host pass "
			   "them on (QEMU: -cpu host,pmu=on), or take a software event such as "
			   "cpu-clock");
	return say(f, TALLY_CAUSE_NO_PMU,
		   "this machine shows no hardware counters (no driver for the CPU's PMU in "
		   "/sys/bus/event_source/devices): take a software event such as cpu-clock");
}

static int explain_unsupported(const struct failure *f)
{
	const struct tally_attr *attr = f->attr;

	if (attr->sample_type & TALLY_SAMPLE_BRANCH_STACK)
		return say(f, TALLY_CAUSE_UNSUPPORTED,
			   "branch stacks need hardware that records branches, and a hardware "
			   "event: sample without them");
	if (attr->flags & TALLY_ATTR_PRECISE_IP && is_hardware(attr))
		return say(f, TALLY_CAUSE_UNSUPPORTED,
			   "this PMU has no precise level %u for it: use fewer p, or P",
			   (unsigned)(attr->flags >> TALLY_ATTR_PRECISE_IP_SHIFT & 3));
	if (attr->flags & TALLY_ATTR_AUX_OUTPUT)
		return say(f, TALLY_CAUSE_UNSUPPORTED,
			   "only a member of a group whose leader has an AUX area can write to it");
	if (attr->sample_type & (TALLY_SAMPLE_REGS_USER | TALLY_SAMPLE_REGS_INTR))
		return say(f, TALLY_CAUSE_UNSUPPORTED,
			   "some of the registers (user %#llx, interrupted %#llx) do not exist "
			   "for this PMU: ask for fewer",
			   (unsigned long long)attr->sample_regs_user,
			   (unsigned long long)attr->sample_regs_intr);
	if (samples(attr) && is_hardware(attr))
		return say(f, TALLY_CAUSE_UNSUPPORTED,
			   "its counter raises no interrupts here, so it cannot sample: count with "
			   "it, or sample cpu-clock");
	return say(f, TALLY_CAUSE_UNSUPPORTED,
		   "this PMU does not support what was asked of it (flags %#llx, sample_type "
		   "%#llx): ask for less, or take another event",
		   (unsigned long long)attr->flags, (unsigned long long)attr->sample_type);
}

static int explain_no_device(const struct failure *f)
{
	if (f->cpu >= 0)
		return say(f, TALLY_CAUSE_NO_PROCESS,
			   "the CPU is offline: /sys/devices/system/cpu/online lists those that "
			   "are not");
	return say(f, TALLY_CAUSE_UNSUPPORTED,
		   "this CPU lacks the hardware for it, or its PMU has gone: take another event");
}

static int explain_no_process(const struct failure *f)
{
	return say(f, TALLY_CAUSE_NO_PROCESS,
		   "no thread has this id: it has ended, or belongs to another pid namespace, as a "
		   "container's, where it must be named by its number here ('ps -eL' lists them)");
}

static int explain_missing_call(const struct failure *f)
{
	if (f->system.paranoid == TALLY_SYSTEM_UNKNOWN)
		return say(f, TALLY_CAUSE_UNSUPPORTED,
			   "this kernel has no perf_event_open, as it is built without "
			   "CONFIG_PERF_EVENTS: boot one that has it");
	return say(f, TALLY_CAUSE_SECCOMP,
		   "the kernel has perf_event_open, yet it is refused as if it had not, which a "
		   "seccomp filter or a sandbox does: run it outside, or start the container with "
		   "'--cap-add PERFMON' or '--security-opt seccomp=unconfined'");
}

/* -- limits ---------------------------------------------------------------------------------- */

static int explain_fd_limit(const struct failure *f)
{
	char what[160];

	place_text(what, sizeof(what), f);
	return explain_fds(f->err, f->code, what, 1, true, f->root);
}

static int explain_busy(const struct failure *f)
{
	return say(f, TALLY_CAUSE_BUSY,
		   "somebody else holds this PMU for himself (a tracer such as intel_pt, an "
		   "exclusive event)%s: end the other one first",
		   f->system.nmi_watchdog == 1 ? "; kernel.nmi_watchdog=1 holds a counter too"
					       : "");
}

static int explain_no_space(const struct failure *f)
{
	if (f->attr->type == TALLY_TYPE_BREAKPOINT)
		return say(f, TALLY_CAUSE_LIMIT,
			   "all hardware breakpoints of the CPU are in use (x86 has 4), by other "
			   "events or a debugger: close one first");
	return say(f, TALLY_CAUSE_LIMIT, "the PMU has no counter left for it: count fewer events");
}

static int explain_overflow(const struct failure *f)
{
	return say(f, TALLY_CAUSE_LIMIT,
		   "stacks of %u frames are more than kernel.perf_event_max_stack (%lld) allows: "
		   "ask for fewer, or 'sudo sysctl kernel.perf_event_max_stack=%u' while no event "
		   "is open",
		   f->attr->sample_max_stack, (long long)f->system.max_stack,
		   f->attr->sample_max_stack);
}

/* perf_event_validate_size(): what one read(2) of a group answers has 16 KiB at most. */
static int explain_too_many(const struct failure *f)
{
	return say(
		f, TALLY_CAUSE_LIMIT,
		"its group has more members than the kernel can read at once (16 KiB, about 680 of "
		"them): use smaller groups, or one that may be split (modifier W)");
}

/* Of an attr that is too large the kernel has written its own size into it. */
static int explain_too_big(const struct failure *f)
{
	if (f->attr->size >= tally_attr_size(f->attr))
		return explain_too_many(f);
	return say(f, TALLY_CAUSE_UNSUPPORTED,
		   "this kernel (%s) knows %u bytes of struct perf_event_attr, and what is asked "
		   "for lies in the %u bytes of a newer one: leave it out, or boot a newer kernel",
		   f->system.release, f->attr->size, tally_attr_size(f->attr));
}

static int explain_memory(const struct failure *f)
{
	return say(
		f, TALLY_CAUSE_MEMORY,
		"the kernel has no memory for it: open fewer events, or on fewer threads and CPUs, "
		"or end other programs");
}

static int explain_bad_fd(const struct failure *f)
{
	return say(f, TALLY_CAUSE_ARGUMENT,
		   "the descriptor of its group's leader is closed or no "
		   "event: open the leader first");
}

/* -------------------------------------------------------------------------------------------- */

static const struct {
	int code;
	int (*explain)(const struct failure *f);
} explainers[] = {
	{ EACCES, explain_permission },
	{ EPERM, explain_permission },
	{ ENOENT, explain_no_entry },
	{ ENXIO, explain_no_entry },
	{ EOPNOTSUPP, explain_unsupported },
	{ ENODEV, explain_no_device },
	{ ESRCH, explain_no_process },
	{ ENOSYS, explain_missing_call },
	{ EMFILE, explain_fd_limit },
	{ ENFILE, explain_fd_limit },
	{ EBUSY, explain_busy },
	{ ENOSPC, explain_no_space },
	{ EOVERFLOW, explain_overflow },
	{ E2BIG, explain_too_big },
	{ ENOMEM, explain_memory },
	{ EBADF, explain_bad_fd },
	{ EINVAL, explain_invalid },
};

static void begin(struct failure *f)
{
	tally_system_read(&f->system, sizeof(f->system), f->root, NULL);
	f->probe = probe_kind_of(f->attr, f->root);
}

/* What only this kind of event can have wrong. 0: something else is. */
static int explain_kind(const struct failure *f)
{
	if (f->probe)
		return explain_probe(f);
	return f->attr->type == TALLY_TYPE_BREAKPOINT ? explain_breakpoint(f) : 0;
}

int explain_open(struct tally_error *err, int code, const char *name, const struct tally_attr *attr,
		 int32_t tid, int32_t cpu, const char *root)
{
	struct failure f = { err, code, name, root, attr, tid, cpu };

	if (!err)
		return code;
	begin(&f);
	if ((code == -EINVAL && explain_bad_value(&f)) || explain_kind(&f))
		return code;
	for (size_t i = 0; i < ARRAY_SIZE(explainers); i++)
		if (explainers[i].code == -code)
			return explainers[i].explain(&f);
	return say(&f, TALLY_CAUSE_UNSUPPORTED, "%s", strerror(-code));
}

int explain_member(struct tally_error *err, int code, const char *name,
		   const struct tally_attr *attr, int32_t tid, int32_t cpu, const char *root)
{
	struct failure f = { err, code, name, root, attr, tid, cpu };

	if (!err)
		return code;
	begin(&f);
	const char *broken = invalid_anywhere(attr);
	if (explain_bad_value(&f))
		return code;
	if (broken)
		return say(&f, TALLY_CAUSE_ARGUMENT, "%s", broken);
	if (attr->flags & (TALLY_ATTR_PINNED | TALLY_ATTR_EXCLUSIVE))
		return say(&f, TALLY_CAUSE_ARGUMENT,
			   "only the first event of a group can be pinned or exclusive");
	return say(
		&f, TALLY_CAUSE_LIMIT,
		"it cannot be counted together with the others of its group: the PMU has fewer "
		"counters than the group needs%s, or the members differ in clock, inheritance or "
		"place; use a smaller group",
		f.system.nmi_watchdog == 1 ? " (kernel.nmi_watchdog=1 takes one)" : "");
}
