/* SPDX-License-Identifier: MIT */
/* Options of samplers. What of the target they touch is checked here; the kernel checks the rest. */
#include <errno.h>
#include <sys/utsname.h>
#include <time.h>

#include "base/bytes.h"
#include "base/error.h"
#include "count/freeze.h"
#include "count/target.h"
#include "sample/options.h"

#define FLAG(name) ((uint32_t)TALLY_SAMPLER_##name)

#define KNOWN_FLAGS                                                                              \
	(FLAG(CALLCHAIN) | FLAG(NO_INHERIT) | FLAG(PERF_CLOCK) | FLAG(BUILD_ID) |                \
	 FLAG(OVERWRITE) | FLAG(INHERIT_STAT) | FLAG(RAW) | FLAG(DATA) | FLAG(NO_KERNEL_CHAIN) | \
	 FLAG(NO_USER_CHAIN) | FLAG(SWITCHES) | FLAG(NAMESPACES) | FLAG(CGROUPS) | FLAG(BPF) |   \
	 FLAG(TEXT_POKES) | FLAG(USE_CLOCKID) | FLAG(SIGTRAP) | FLAG(NO_STOP) |                  \
	 FLAG(CANCELLABLE) | FLAG(NO_SIDE_BAND))

/* The stack that the kernel copies: the record's size has 16 bits, the copy whole words. */
#define LARGEST_STACK 65528u

/* Sample bits whose meaning another field of the attr tells; that field sets them. */
#define BY_FIELDS                                                                       \
	(TALLY_SAMPLE_BRANCH_STACK | TALLY_SAMPLE_REGS_USER | TALLY_SAMPLE_STACK_USER | \
	 TALLY_SAMPLE_REGS_INTR)

/* What a flag asks for in samples and in the flags of every event. */
static const struct {
	uint32_t flag;
	uint64_t sample, attr;
} each_event[] = {
	{ FLAG(CALLCHAIN), TALLY_SAMPLE_CALLCHAIN, 0 },
	{ FLAG(DATA), TALLY_SAMPLE_ADDR | TALLY_SAMPLE_DATA_SRC, 0 },
	{ FLAG(CGROUPS), TALLY_SAMPLE_CGROUP, 0 },
	{ FLAG(OVERWRITE), 0, TALLY_ATTR_WRITE_BACKWARD },
	{ FLAG(INHERIT_STAT), 0, TALLY_ATTR_INHERIT_STAT },
	{ FLAG(NO_KERNEL_CHAIN), 0, TALLY_ATTR_EXCLUDE_CALLCHAIN_KERNEL },
	{ FLAG(NO_USER_CHAIN), 0, TALLY_ATTR_EXCLUDE_CALLCHAIN_USER },
	/* The kernel insists on the second, lest an exec leaves it without a handler. */
	{ FLAG(SIGTRAP), 0, TALLY_ATTR_SIGTRAP | TALLY_ATTR_REMOVE_ON_EXEC },
};

/* What a flag asks for of the one event that carries the side-band. */
static const struct {
	uint32_t flag;
	uint64_t attr;
} side_band[] = {
	{ FLAG(BUILD_ID), TALLY_ATTR_BUILD_ID },
	{ FLAG(DATA), TALLY_ATTR_MMAP_DATA },
	{ FLAG(SWITCHES), TALLY_ATTR_CONTEXT_SWITCH },
	{ FLAG(NAMESPACES), TALLY_ATTR_NAMESPACES },
	{ FLAG(CGROUPS), TALLY_ATTR_CGROUP },
	{ FLAG(BPF), TALLY_ATTR_KSYMBOL | TALLY_ATTR_BPF_EVENT },
	{ FLAG(TEXT_POKES), TALLY_ATTR_TEXT_POKE },
};

static int refuse(struct tally_error *err, const char *text)
{
	return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT, "options of a sampler: %s", text);
}

static int check_flags(const struct tally_sampler_opts *o, const struct tally_target *target,
		       struct tally_error *err)
{
	if (o->flags & FLAG(SIGTRAP) && target_is_cpus(target))
		return refuse(err, "SIGTRAP is for threads; a CPU has nobody to send it to");
	if (o->flags & FLAG(SIGTRAP) && target->scope == TALLY_SCOPE_COMMAND)
		return refuse(err, "SIGTRAP ends with the exec that a COMMAND begins with");
	if (o->flags & FLAG(INHERIT_STAT) &&
	    (!target_inherits(target) || o->flags & FLAG(NO_INHERIT)))
		return refuse(err, "INHERIT_STAT is for a PROCESS or COMMAND that is followed");
	if (o->flags & FLAG(PERF_CLOCK) && o->flags & FLAG(USE_CLOCKID))
		return refuse(err, "PERF_CLOCK and USE_CLOCKID contradict each other");
	return 0;
}

static int check_values(const struct tally_sampler_opts *o, struct tally_error *err)
{
	if (o->stack_bytes % 8 || o->stack_bytes > LARGEST_STACK)
		return refuse(err, "the stack that is copied has a multiple of 8 bytes, at most "
				   "65528");
	if (o->max_stack > UINT16_MAX)
		return refuse(err, "a callchain has 65535 entries at most");
	if (o->sample_type & BY_FIELDS)
		return refuse(err,
			      "BRANCH_STACK, REGS_USER, STACK_USER and REGS_INTR are asked for "
			      "by branch_sample_type, regs_user, stack_bytes and regs_intr");
	if (o->sample_type & TALLY_SAMPLE_AUX)
		return refuse(err,
			      "AUX needs an event that writes an AUX area, and its size in the "
			      "event's own attr");
	if (!(o->flags & FLAG(USE_CLOCKID)) && o->clockid)
		return refuse(err, "a clockid needs the flag USE_CLOCKID");
	if (!(o->flags & FLAG(SIGTRAP)) && o->sig_data)
		return refuse(err, "sig_data travels with the signal of SIGTRAP, which is not set");
	if (o->reserved)
		return refuse(err, "the reserved field is not 0");
	return 0;
}

/* The registers that a copy of the stack is of no use without. */
static int fill_regs(struct tally_sampler_opts *o, struct tally_error *err)
{
	struct utsname host;

	if (!o->stack_bytes || o->regs_user)
		return 0;
	o->regs_user = uname(&host) == 0 ? tally_regs_general(host.machine) : 0;
	return o->regs_user ? 0
			    : refuse(err, "which registers this machine has is not known: a copy "
					  "of the stack needs regs_user");
}

int sampler_options_read(struct tally_sampler_opts *out, const struct tally_sampler_opts *opts,
			 const struct tally_target *target, struct tally_error *err)
{
	int r = opts_read(out, sizeof(*out), KNOWN_FLAGS, opts, err);

	if (r == 0)
		r = check_flags(out, target, err);
	if (r == 0)
		r = check_values(out, err);
	if (r == 0)
		r = freeze_check(out->freeze, target, out->flags & FLAG(NO_STOP), "a sampler", err);
	return r == 0 ? fill_regs(out, err) : r;
}

uint64_t sampler_options_side_band(const struct tally_sampler_opts *opts)
{
	uint64_t flags = TALLY_ATTR_MMAP | TALLY_ATTR_MMAP2 | TALLY_ATTR_COMM |
			 TALLY_ATTR_COMM_EXEC | TALLY_ATTR_TASK;

	if (opts->flags & FLAG(NO_SIDE_BAND))
		return opts->flags & FLAG(SWITCHES) ? TALLY_ATTR_CONTEXT_SWITCH : 0;
	for (size_t i = 0; i < ARRAY_SIZE(side_band); i++)
		if (opts->flags & side_band[i].flag)
			flags |= side_band[i].attr;
	return flags;
}

/* Fields of an attr that sample bits speak of; what an event's own attr has stays where it is not 0. */
static void apply_fields(const struct tally_sampler_opts *opts, struct tally_attr *attr)
{
	if (opts->branch_sample_type) {
		attr->sample_type |= TALLY_SAMPLE_BRANCH_STACK;
		attr->branch_sample_type = opts->branch_sample_type;
	}
	if (opts->regs_user) {
		attr->sample_type |= TALLY_SAMPLE_REGS_USER;
		attr->sample_regs_user = opts->regs_user;
	}
	if (opts->regs_intr) {
		attr->sample_type |= TALLY_SAMPLE_REGS_INTR;
		attr->sample_regs_intr = opts->regs_intr;
	}
	if (opts->stack_bytes) {
		attr->sample_type |= TALLY_SAMPLE_STACK_USER;
		attr->sample_stack_user = opts->stack_bytes;
	}
	if (opts->max_stack)
		attr->sample_max_stack = (uint16_t)opts->max_stack;
}

static void apply_clock(const struct tally_sampler_opts *opts, struct tally_attr *attr)
{
	bool chosen = opts->flags & FLAG(USE_CLOCKID);

	attr->flags &= ~TALLY_ATTR_USE_CLOCKID;
	attr->clockid = 0;
	if (opts->flags & FLAG(PERF_CLOCK))
		return;
	attr->flags |= TALLY_ATTR_USE_CLOCKID;
	attr->clockid = chosen ? opts->clockid : CLOCK_MONOTONIC;
}

void sampler_options_apply(const struct tally_sampler_opts *opts, bool has_payload,
			   struct tally_attr *attr)
{
	attr->sample_type |= opts->sample_type;
	for (size_t i = 0; i < ARRAY_SIZE(each_event); i++)
		if (opts->flags & each_event[i].flag) {
			attr->sample_type |= each_event[i].sample;
			attr->flags |= each_event[i].attr;
		}
	if (opts->flags & FLAG(RAW) && has_payload)
		attr->sample_type |= TALLY_SAMPLE_RAW;
	if (opts->flags & FLAG(SIGTRAP))
		attr->sig_data = opts->sig_data;
	apply_fields(opts, attr);
	apply_clock(opts, attr);
}
