/* SPDX-License-Identifier: MIT */
/* Options of counters: which fit together, and what they are in an attr. */
#include <errno.h>

#include "base/bytes.h"
#include "base/error.h"
#include "count/freeze.h"
#include "count/options.h"
#include "count/target.h"

#define FLAG(name) ((uint32_t)TALLY_COUNTER_##name)

#define KNOWN_FLAGS                                                                            \
	(FLAG(ENABLED) | FLAG(NO_INHERIT) | FLAG(INHERIT) | FLAG(INHERIT_THREAD) |             \
	 FLAG(REMOVE_ON_EXEC) | FLAG(PINNED) | FLAG(EXCLUSIVE) | FLAG(ENABLE_ON_EXEC) |        \
	 FLAG(SIGTRAP) | FLAG(USE_CLOCKID) | FLAG(NO_STOP) | FLAG(MEMBER_TIMES) | FLAG(WEAK) | \
	 FLAG(FAST))

/* The kernel lets these pass on CPUs, where no task starts another or execs, and does nothing. */
#define OF_TASKS                                                                              \
	(FLAG(INHERIT) | FLAG(INHERIT_THREAD) | FLAG(REMOVE_ON_EXEC) | FLAG(ENABLE_ON_EXEC) | \
	 FLAG(SIGTRAP) | FLAG(NO_STOP))

/* What the library decides by the options and the target, whatever the event's attr has. */
#define OWN_FLAGS                                                               \
	(TALLY_ATTR_DISABLED | TALLY_ATTR_ENABLE_ON_EXEC | TALLY_ATTR_INHERIT | \
	 TALLY_ATTR_INHERIT_THREAD)

/* Flags that cannot stand together. */
static const struct conflict {
	uint32_t one, other;
	const char *text;
} conflicts[] = {
	{ FLAG(NO_INHERIT), FLAG(INHERIT) | FLAG(INHERIT_THREAD),
	  "NO_INHERIT and INHERIT contradict each other" },
	{ FLAG(ENABLE_ON_EXEC), FLAG(REMOVE_ON_EXEC),
	  "ENABLE_ON_EXEC (which a COMMAND has unless ENABLED is given) and REMOVE_ON_EXEC (which "
	  "SIGTRAP implies) exclude each other: the exec would end what it begins" },
	{ FLAG(ENABLE_ON_EXEC), FLAG(ENABLED),
	  "ENABLED and ENABLE_ON_EXEC contradict each other: it counts from the open or from the "
	  "exec on" },
};

static int refuse(struct tally_error *err, const char *text)
{
	return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT, "options of a counter: %s", text);
}

/* What flags mean beyond themselves. */
static void imply(struct tally_counter_opts *o, const struct tally_target *target)
{
	if (o->flags &
	    FLAG(SIGTRAP)) /* the kernel insists, lest an exec leaves it without handler */
		o->flags |= FLAG(REMOVE_ON_EXEC);
	if (target->scope == TALLY_SCOPE_COMMAND && !(o->flags & FLAG(ENABLED)))
		o->flags |= FLAG(ENABLE_ON_EXEC);
}

static int check_flags(const struct tally_counter_opts *o, const struct tally_target *target,
		       struct tally_error *err)
{
	if (target_is_cpus(target) && o->flags & OF_TASKS)
		return refuse(err, "INHERIT, REMOVE_ON_EXEC, ENABLE_ON_EXEC, SIGTRAP and NO_STOP "
				   "are for tasks; CPUs neither start threads nor exec");
	for (size_t i = 0; i < ARRAY_SIZE(conflicts); i++)
		if (o->flags & conflicts[i].one && o->flags & conflicts[i].other)
			return refuse(err, conflicts[i].text);
	return 0;
}

static int check_values(const struct tally_counter_opts *o, struct tally_error *err)
{
	if (o->flags & FLAG(SIGTRAP) && !o->period)
		return refuse(err, "SIGTRAP needs a period: how many events bring a signal");
	if (!(o->flags & FLAG(SIGTRAP)) && o->sig_data)
		return refuse(err, "sig_data travels with the signal of SIGTRAP, which is not set");
	if (o->period >> 63)
		return refuse(err, "a period has 63 bits at most");
	if (!(o->flags & FLAG(USE_CLOCKID)) && o->clockid)
		return refuse(err, "a clockid needs the flag USE_CLOCKID");
	if (o->reserved)
		return refuse(err, "the reserved field is not 0");
	return 0;
}

int options_read(struct tally_counter_opts *out, const struct tally_counter_opts *opts,
		 const struct tally_target *target, struct tally_error *err)
{
	int r = opts_read(out, sizeof(*out), KNOWN_FLAGS, opts, err);

	if (r < 0)
		return r;
	imply(out, target);
	r = check_flags(out, target, err);
	if (r == 0)
		r = check_values(out, err);
	return r == 0 ? freeze_check(out->freeze, target, out->flags & FLAG(NO_STOP), "a counter",
				     err)
		      : r;
}

/* Bits of an attr that go with a flag, on all members of a group. */
static const struct {
	uint32_t flag;
	uint64_t bits;
} common[] = {
	{ FLAG(INHERIT), TALLY_ATTR_INHERIT },
	{ FLAG(INHERIT_THREAD), TALLY_ATTR_INHERIT | TALLY_ATTR_INHERIT_THREAD },
	{ FLAG(REMOVE_ON_EXEC), TALLY_ATTR_REMOVE_ON_EXEC },
	{ FLAG(USE_CLOCKID), TALLY_ATTR_USE_CLOCKID },
};

/* What the leader alone has. Followers stay enabled: it switches them, by exec too. */
static void apply_leader(const struct tally_counter_opts *o, struct tally_attr *attr)
{
	if (!(o->flags & FLAG(ENABLED)))
		attr->flags |= TALLY_ATTR_DISABLED;
	if (o->flags & FLAG(ENABLE_ON_EXEC))
		attr->flags |= TALLY_ATTR_ENABLE_ON_EXEC;
	if (o->flags & FLAG(PINNED))
		attr->flags |= TALLY_ATTR_PINNED;
	if (o->flags & FLAG(EXCLUSIVE))
		attr->flags |= TALLY_ATTR_EXCLUSIVE;
	if (o->flags & FLAG(SIGTRAP)) {
		attr->flags |= TALLY_ATTR_SIGTRAP;
		attr->sig_data = o->sig_data;
	}
}

void options_apply(const struct tally_counter_opts *o, const struct tally_target *target,
		   bool leads, struct tally_attr *attr)
{
	attr->flags &= ~OWN_FLAGS;
	if (target_inherits(target) && !(o->flags & FLAG(NO_INHERIT)))
		attr->flags |= TALLY_ATTR_INHERIT;
	for (size_t i = 0; i < ARRAY_SIZE(common); i++)
		if (o->flags & common[i].flag)
			attr->flags |= common[i].bits;
	if (o->flags & FLAG(USE_CLOCKID))
		attr->clockid = o->clockid;
	if (o->period) {
		attr->flags &= ~TALLY_ATTR_FREQ;
		attr->sample_period = o->period;
	}
	if (leads)
		apply_leader(o, attr);
}
