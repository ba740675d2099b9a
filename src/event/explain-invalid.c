/* SPDX-License-Identifier: MIT */
/* What EINVAL of perf_event_open(2) means, which the kernel says of whatever it does not like. */
#include <errno.h>
#include <stddef.h>
#include <time.h>

#include "base/bytes.h"
#include "base/proc.h"
#include "event/explain.h"
#include "event/failure.h"

/* Where `one` has `bits`, `other` must have some of `among` (needs) or none (not needs). */
static const struct rule {
	uint16_t one;
	uint16_t other;
	uint64_t bits, among;
	bool needs;
	const char *text;
} rules[] = {
#define AT(field) offsetof(struct tally_attr, field)
	{ AT(flags), AT(flags), TALLY_ATTR_INHERIT_THREAD, TALLY_ATTR_INHERIT, true,
	  "inherit_thread needs inherit" },
	{ AT(flags), AT(flags), TALLY_ATTR_SIGTRAP, TALLY_ATTR_REMOVE_ON_EXEC, true,
	  "sigtrap needs remove_on_exec" },
	{ AT(flags), AT(flags), TALLY_ATTR_ENABLE_ON_EXEC, TALLY_ATTR_REMOVE_ON_EXEC, false,
	  "enable_on_exec and remove_on_exec exclude each other" },
	{ AT(sample_type), AT(sample_type), TALLY_SAMPLE_WEIGHT, TALLY_SAMPLE_WEIGHT_STRUCT, false,
	  "a sample has its weight either whole or split" },
	{ AT(sample_type), AT(branch_sample_type), TALLY_SAMPLE_BRANCH_STACK, UINT64_MAX, true,
	  "branch_sample_type does not say which branches to record" },
	{ AT(sample_type), AT(sample_regs_user), TALLY_SAMPLE_REGS_USER, UINT64_MAX, true,
	  "sample_regs_user names no register" },
	{ AT(sample_type), AT(sample_regs_intr), TALLY_SAMPLE_REGS_INTR, UINT64_MAX, true,
	  "sample_regs_intr names no register" },
#undef AT
};

static const char *broken_rule(const struct tally_attr *attr)
{
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		const struct rule *r = &rules[i];
		uint64_t one = load_u64((const char *)attr + r->one, false);
		uint64_t other = load_u64((const char *)attr + r->other, false);

		if (one & r->bits && !(other & r->among) == r->needs)
			return r->text;
	}
	return NULL;
}

static bool is_online(const struct failure *f)
{
	int32_t cpus[8192];
	int n = proc_online_cpus(cpus, ARRAY_SIZE(cpus), f->root);

	for (int i = 0; i < n && i < (int)ARRAY_SIZE(cpus); i++)
		if (cpus[i] == f->cpu)
			return true;
	return n < 0; /* not known: do not blame it */
}

/* Of hardware events the time is read where no lock may be taken; perf_event_set_clock(). */
static bool is_usable_clock(const struct tally_attr *attr)
{
	switch (attr->clockid) {
	case CLOCK_MONOTONIC:
	case CLOCK_MONOTONIC_RAW:
		return true;
	case CLOCK_REALTIME:
	case CLOCK_BOOTTIME:
	case CLOCK_TAI:
		return !is_hardware(attr);
	default:
		return false;
	}
}

int explain_bad_value(const struct failure *f)
{
	const struct tally_attr *attr = f->attr;
	uint64_t stack = attr->sample_stack_user;

	if (f->tid == -1 && f->cpu == -1)
		say(f, TALLY_CAUSE_ARGUMENT, "neither a thread nor a CPU is named");
	else if (f->cpu >= 0 && !is_online(f))
		say(f, TALLY_CAUSE_NO_PROCESS,
		    "there is no such CPU online: /sys/devices/system/cpu/online lists them");
	else if (attr->flags & TALLY_ATTR_FREQ && f->system.max_sample_rate >= 0 &&
		 attr->sample_period > (uint64_t)f->system.max_sample_rate)
		say(f, TALLY_CAUSE_LIMIT,
		    "%llu samples a second are more than kernel.perf_event_max_sample_rate (%lld) "
		    "allows: ask for fewer, or 'sudo sysctl kernel.perf_event_max_sample_rate=%llu'",
		    (unsigned long long)attr->sample_period, (long long)f->system.max_sample_rate,
		    (unsigned long long)attr->sample_period);
	else if (!(attr->flags & TALLY_ATTR_FREQ) && attr->sample_period >> 63)
		say(f, TALLY_CAUSE_ARGUMENT, "a period has 63 bits at most");
	else if (attr->sample_type & TALLY_SAMPLE_STACK_USER && (stack % 8 || stack > UINT16_MAX))
		say(f, TALLY_CAUSE_ARGUMENT,
		    "stacks of %llu bytes cannot be copied: it must be a multiple of 8, at most "
		    "65528",
		    (unsigned long long)stack);
	else if (attr->flags & TALLY_ATTR_USE_CLOCKID && !is_usable_clock(attr))
		say(f, TALLY_CAUSE_ARGUMENT,
		    "the clock %d cannot stamp its samples: take CLOCK_MONOTONIC or "
		    "CLOCK_MONOTONIC_RAW, or for software events CLOCK_REALTIME, CLOCK_BOOTTIME or "
		    "CLOCK_TAI",
		    attr->clockid);
	else
		return 0;
	return 1;
}

/* What came with Linux 5.13, where the kernel is older. */
static const char *too_new(const struct failure *f)
{
	if (!failure_kernel_older(f, 5, 13))
		return NULL;
	if (f->attr->flags & TALLY_ATTR_SIGTRAP)
		return "sigtrap";
	if (f->attr->flags & TALLY_ATTR_INHERIT_THREAD)
		return "inherit_thread";
	return f->attr->flags & TALLY_ATTR_REMOVE_ON_EXEC ? "remove_on_exec" : NULL;
}

int explain_invalid(const struct failure *f)
{
	const struct tally_attr *attr = f->attr;
	const char *broken = broken_rule(attr), *newer = too_new(f);

	if (broken)
		return say(f, TALLY_CAUSE_ARGUMENT, "%s", broken);
	if (newer)
		return say(f, TALLY_CAUSE_UNSUPPORTED, "%s needs Linux 5.13, this is %s", newer,
			   f->system.release);
	if (attr->type == TALLY_TYPE_TRACEPOINT)
		return say(f, TALLY_CAUSE_UNKNOWN,
			   "this kernel has no tracepoint with the number %llu: its module may "
			   "have gone, 'tally list' shows those there are",
			   (unsigned long long)attr->config);
	if (attr->type == TALLY_TYPE_BREAKPOINT)
		return say(
			f, TALLY_CAUSE_ARGUMENT,
			"no breakpoint like that (type %u, address %#llx, length %llu): align it "
			"to its length; reading alone, and execution of other than a long, are "
			"not watched",
			attr->bp_type, (unsigned long long)attr->config1,
			(unsigned long long)attr->config2);
	if (attr->type == TALLY_TYPE_HW_CACHE)
		return say(f, TALLY_CAUSE_UNSUPPORTED,
			   "the PMU of this CPU does not have this cache event: 'tally list' shows "
			   "what it has");
	if (attr->flags & TALLY_ATTR_INHERIT && attr->sample_type & TALLY_SAMPLE_READ)
		return say(f, TALLY_CAUSE_UNSUPPORTED,
			   "readings in samples of inherited events need TID in the sample_type, "
			   "and Linux 6.13");
	if (attr->type > TALLY_TYPE_BREAKPOINT && f->tid != -1)
		return say(f, TALLY_CAUSE_UNSUPPORTED,
			   "its PMU (type %u) may count whole CPUs and all modes only: watch CPUs "
			   "(-a), without modifiers",
			   attr->type);
	return say(
		f, TALLY_CAUSE_UNSUPPORTED,
		"this kernel (%s) does not take type %u config %#llx with sample_type %#llx, "
		"read_format %#llx, flags %#llx: it may be older than one of these, 'sudo dmesg' "
		"may tell",
		f->system.release, attr->type, (unsigned long long)attr->config,
		(unsigned long long)attr->sample_type, (unsigned long long)attr->read_format,
		(unsigned long long)attr->flags);
}

const char *invalid_anywhere(const struct tally_attr *attr)
{
	if (attr->flags & TALLY_ATTR_USE_CLOCKID && !is_usable_clock(attr))
		return "no event has this clock";
	return broken_rule(attr);
}
