/* SPDX-License-Identifier: MIT */
/*
 * open: the ladder against a model of the kernel, whose rules are those of kernel/events/core.c:
 * copy_struct_from_user(), perf_copy_attr(), perf_allow_kernel(), and a PMU's event_init().
 */
#include <errno.h>
#include <sys/resource.h>

#include "base/sys.h"
#include "event/open.h"
#include "fakeroot.h"
#include "tap.h"

#define LEVELS(n) ((uint64_t)(n) << TALLY_ATTR_PRECISE_IP_SHIFT)

/* The modelled kernel; `seen` is the last attr that it was given. */
static struct {
	uint32_t attr_size;
	uint64_t flags, read_format, sample_type; /* what it knows */
	unsigned max_precise;
	bool has_pmu, pmu_samples, capable;
	bool cannot_exclude; /* PERF_PMU_CAP_NO_EXCLUDE */
	int paranoid;
	rlim_t needs_fds;  /* EMFILE while the soft limit is lower */
	int interruptions; /* how often EINTR comes first */
	int refuse;        /* answers this whatever comes; 0: does not */

	int calls;
	struct tally_attr seen, first;
	unsigned long open_flags;
} kernel;

static struct fakeroot root;
static struct tally_error err;

static int check_known(struct tally_attr *attr)
{
	const unsigned char *bytes = (const unsigned char *)attr;

	for (uint32_t i = kernel.attr_size; i < attr->size; i++)
		if (bytes[i]) {
			attr->size = kernel.attr_size;
			return -E2BIG;
		}
	if (attr->flags & ~kernel.flags || attr->read_format & ~kernel.read_format ||
	    attr->sample_type & ~kernel.sample_type)
		return -EINVAL;
	return 0;
}

static int check_allowed(const struct tally_attr *attr)
{
	if (kernel.capable)
		return 0;
	if (kernel.paranoid > 2 ||
	    (kernel.paranoid > 1 && !(attr->flags & TALLY_ATTR_EXCLUDE_KERNEL)))
		return -EACCES;
	return 0;
}

static int check_pmu(const struct tally_attr *attr)
{
	if (attr->type != TALLY_TYPE_HARDWARE)
		return 0;
	if (!kernel.has_pmu)
		return -ENOENT;
	/* event_has_any_exclude_flag() of include/linux/perf_event.h */
	if (kernel.cannot_exclude &&
	    attr->flags &
		    (TALLY_ATTR_EXCLUDE_USER | TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_HV |
		     TALLY_ATTR_EXCLUDE_IDLE | TALLY_ATTR_EXCLUDE_HOST | TALLY_ATTR_EXCLUDE_GUEST))
		return -EINVAL;
	if (attr->sample_period && !kernel.pmu_samples)
		return -EOPNOTSUPP;
	if ((attr->flags & TALLY_ATTR_PRECISE_IP) > LEVELS(kernel.max_precise))
		return -EOPNOTSUPP;
	return 0;
}

static int model_open(void *pointer, pid_t pid, int cpu, int group_fd, unsigned long flags)
{
	struct tally_attr *attr = pointer;
	struct rlimit limit;
	int r;

	kernel.seen = *attr;
	kernel.open_flags = flags;
	if (kernel.calls++ == 0)
		kernel.first = *attr;
	if (kernel.refuse)
		return kernel.refuse;
	if (kernel.interruptions-- > 0)
		return -EINTR;
	if ((r = check_known(attr)) || (r = check_allowed(attr)))
		return r;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur < kernel.needs_fds)
		return -EMFILE;
	r = check_pmu(attr);
	/* perf_allow_cpu(), which comes after the event was found. */
	if (r == 0 && pid < 0 && !kernel.capable && kernel.paranoid > 0)
		r = -EACCES;
	return r < 0 ? r : 1000;
}

const struct sys_table *sys(void)
{
	static struct sys_table table;

	table = sys_kernel;
	table.perf_event_open = model_open;
	return &table;
}

/* A kernel that knows and grants all. */
static void set_up(void)
{
	memset(&kernel, 0, sizeof(kernel));
	kernel.attr_size = 144;
	kernel.flags = kernel.read_format = kernel.sample_type = UINT64_MAX;
	kernel.max_precise = 3;
	kernel.has_pmu = kernel.pmu_samples = kernel.capable = true;
	kernel.paranoid = 2;
}

static struct tally_events *events;
static struct tally_event *event;
static struct tally_attr attr;

static bool parse(const char *text, uint32_t fallback)
{
	struct tally_events_opts opts = { .size = sizeof(opts),
					  .fallback = fallback,
					  .root = root.path };

	if (tally_events_parse(&events, text, &opts, &err) < 0)
		return false;
	event = tally_events_at(events, 0);
	attr = *tally_event_attr(event);
	return true;
}

static int open_it(void)
{
	kernel.calls = 0;
	return event_open(event, &attr, 0, -1, -1, root.path, &err);
}

static void the_smallest_size_is_sent(void)
{
	set_up();
	require(parse("cycles", 0));
	check_int(open_it(), 1000);
	check_int(kernel.calls, 1);
	check_int(kernel.seen.size, 64);
	check_u64(kernel.open_flags, 8); /* PERF_FLAG_FD_CLOEXEC */
	check(tally_event_granted(event));
	check_u64(tally_event_granted(event)->config, 0);
	check(!tally_event_compromise(event));
	attr.clockid = 1;
	attr.flags |= TALLY_ATTR_USE_CLOCKID;
	check_int(open_it(), 1000);
	check_int(kernel.seen.size, 96);
	attr.config3 = 1;
	check_int(open_it(), 1000);
	check_int(kernel.seen.size, 136);
	tally_events_free(events);
}

static void precision_goes_down_step_by_step(void)
{
	set_up();
	for (unsigned max = 0; max <= 3; max++) {
		kernel.max_precise = max;
		require(parse("cycles:P", 0));
		check_int(open_it(), 1000);
		check_int(kernel.calls, 4 - (int)max);
		check_u64(kernel.first.flags & TALLY_ATTR_PRECISE_IP, LEVELS(3));
		check_u64(attr.flags & TALLY_ATTR_PRECISE_IP, LEVELS(max));
		check_u64(tally_event_granted(event)->flags, attr.flags);
		if (max < 3)
			check_has(tally_event_compromise(event), "precise level");
		else
			check(!tally_event_compromise(event));
		tally_events_free(events);
	}
}

/* As perf does since 5.1, for uncore PMUs, msr, power: nobody asked for guests to be left out. */
static void guests_are_counted_where_they_cannot_be_told_apart(void)
{
	set_up();
	kernel.cannot_exclude = true;
	require(parse("cycles", 0));
	check_int(open_it(), 1000);
	check_int(kernel.calls, 2);
	check_u64(tally_event_granted(event)->flags, 0);
	check_has(tally_event_compromise(event), "guests counted too");
	check_int(open_it(), 1000); /* at the next place it is known */
	check_int(kernel.calls, 1);
	check_has(tally_event_compromise(event), "guests counted too");
	tally_events_free(events);

	/* With an older kernel and less precision at once. */
	kernel.flags &= ~TALLY_ATTR_BUILD_ID;
	kernel.max_precise = 1;
	require(parse("cycles:P", 0));
	attr.flags |= TALLY_ATTR_BUILD_ID;
	check_int(open_it(), 1000);
	check_u64(attr.flags, LEVELS(1));
	check_has(tally_event_compromise(event), "precise level 1");
	check_has(tally_event_compromise(event), "guests counted too");
	check_has(tally_event_compromise(event), "build ids");
	tally_events_free(events);
}

static void modes_that_were_named_stay(void)
{
	static const char *const names[] = { "cycles:H", "cycles:G", "cycles:u",
					     "cycles:k", "cycles:I", "cycles:uH" };

	set_up();
	kernel.cannot_exclude = true;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		require(parse(names[i], 0));
		const struct tally_attr asked = attr;
		check_int(open_it(), -EINVAL);
		check_mem(&attr, &asked, sizeof(attr));
		check(!tally_event_granted(event));
		tally_events_free(events);
	}
	/* An attr of the caller's own is not tampered with, nor one that nothing may be given up of. */
	struct tally_attr own;
	tally_attr_init(&own, TALLY_TYPE_HARDWARE, 0);
	own.flags = TALLY_ATTR_EXCLUDE_GUEST;
	require(tally_events_new(&events, "own", &own, NULL, &err) == 0);
	event = tally_events_at(events, 0);
	attr = own;
	check_int(open_it(), -EINVAL);
	check_int(kernel.calls, 1);
	tally_events_free(events);
	require(parse("cycles", TALLY_FALLBACK_PRECISE));
	check_int(open_it(), -EINVAL);
	tally_events_free(events);
}

/* Inheriting a probe would make fork(2) fail in what is watched. */
static void probes_are_not_inherited(void)
{
	const uint64_t inherit = TALLY_ATTR_INHERIT | TALLY_ATTR_INHERIT_THREAD;
	struct tally_attr own;

	set_up();
	fakeroot_file(&root, "/sys/bus/event_source/devices/uprobe/type", "7\n");
	for (uint32_t type = 7; type < 9; type++) {
		tally_attr_init(&own, type, 0);
		require(tally_events_new(&events, "own", &own,
					 TALLY_OPTS(events, .root = root.path), &err) == 0);
		event = tally_events_at(events, 0);
		attr = own;
		check_int(open_it(), 1000); /* not asked for is not refused */
		check(!tally_event_inherit_refused(event));
		attr.flags = inherit;
		for (int place = 0; place < 2; place++) {
			check_int(event_open(event, &attr, place, -1, -1, root.path, &err), 1000);
			check_u64(kernel.seen.flags, type == 7 ? 0 : inherit);
			check(tally_event_inherit_refused(event) == (type == 7));
			check(!tally_event_compromise(event) == (type != 7));
		}
		tally_events_free(events);
	}
}

/* What is missing is the permission; user mode alone cannot be counted by such a PMU. */
static void a_pmu_without_modes_is_forbidden(void)
{
	set_up();
	kernel.cannot_exclude = true;
	kernel.capable = false;
	fakeroot_file(&root, "/proc/sys/kernel/perf_event_paranoid", "2\n");
	require(parse("cycles", TALLY_FALLBACK_USER_ONLY | TALLY_FALLBACK_NEWER_BITS));
	check_int(open_it(), -EACCES);
	check_int(err.cause, TALLY_CAUSE_PARANOID);
	check_u64(attr.flags, TALLY_ATTR_EXCLUDE_GUEST);
	tally_events_free(events);
}

static void what_was_named_precisely_is_not_given_up(void)
{
	set_up();
	kernel.max_precise = 1;
	require(parse("cycles:pp", TALLY_FALLBACK_PRECISE));
	check_int(open_it(), -EOPNOTSUPP);
	check_int(kernel.calls, 1);
	check_has(err.text, "precise level 2");
	check(!tally_event_granted(event));
	tally_events_free(events);
}

static void newer_bits_go_off_newest_first(void)
{
	set_up();
	kernel.flags = TALLY_ATTR_BPF_EVENT * 2 - 1; /* Linux 5.1 */
	kernel.read_format = TALLY_READ_LOST - 1;
	require(parse("cpu-clock", 0));
	attr.flags |= TALLY_ATTR_MMAP2 | TALLY_ATTR_KSYMBOL | TALLY_ATTR_BPF_EVENT |
		      TALLY_ATTR_CGROUP | TALLY_ATTR_BUILD_ID | TALLY_ATTR_MMAP;
	attr.read_format = TALLY_READ_ID | TALLY_READ_LOST;
	const uint64_t asked = attr.flags;
	check_int(open_it(), 1000);
	check_u64(attr.flags, asked & ~(TALLY_ATTR_CGROUP | TALLY_ATTR_BUILD_ID));
	check_u64(attr.read_format, TALLY_READ_ID);
	check_has(tally_event_compromise(event), "build ids");
	check_has(tally_event_compromise(event), "lost counts");
	check(!strstr(tally_event_compromise(event), "mmap2"));

	/* The next place begins where this one ended, and the compromise stands. */
	check_int(open_it(), 1000);
	check_int(kernel.calls, 1);
	check_has(tally_event_compromise(event), "build ids");
	/* Another one, which gives up nothing, has none. */
	attr = *tally_event_attr(event);
	attr.read_format = TALLY_READ_ID;
	kernel.flags = UINT64_MAX;
	attr.flags |= TALLY_ATTR_BUILD_ID | TALLY_ATTR_CGROUP;
	kernel.read_format = UINT64_MAX;
	attr.read_format |= TALLY_READ_LOST;
	check_int(open_it(), 1000);
	check(!tally_event_compromise(event));
	tally_events_free(events);
}

static void weights_become_the_older_kind(void)
{
	set_up();
	kernel.sample_type = TALLY_SAMPLE_WEIGHT_STRUCT - 1;
	require(parse("cycles", 0));
	attr.sample_type = TALLY_SAMPLE_IP | TALLY_SAMPLE_WEIGHT_STRUCT;
	check_int(open_it(), 1000);
	check_u64(attr.sample_type, TALLY_SAMPLE_IP | TALLY_SAMPLE_WEIGHT);
	tally_events_free(events);
}

static void precision_is_kept_when_bits_were_to_blame(void)
{
	set_up();
	kernel.flags &= ~TALLY_ATTR_BUILD_ID;
	kernel.max_precise = 2;
	require(parse("cycles:P", 0));
	attr.flags |= TALLY_ATTR_BUILD_ID;
	check_int(open_it(), 1000);
	check_u64(attr.flags & TALLY_ATTR_PRECISE_IP, LEVELS(2));
	check(!(attr.flags & TALLY_ATTR_BUILD_ID));
	tally_events_free(events);
}

static void nothing_is_given_up_in_vain(void)
{
	set_up();
	kernel.refuse = -EINVAL;
	require(parse("cycles:P", TALLY_FALLBACK_NEWER_BITS | TALLY_FALLBACK_USER_ONLY |
					  TALLY_FALLBACK_CPU_CLOCK));
	attr.flags |= TALLY_ATTR_BUILD_ID | TALLY_ATTR_MMAP2;
	const struct tally_attr asked = attr;
	check_int(open_it(), -EINVAL);
	check_mem(&attr, &asked, sizeof(attr));
	check(!tally_event_granted(event));
	check(!tally_event_compromise(event));
	tally_events_free(events);
}

static void newer_bits_stay_when_not_allowed(void)
{
	set_up();
	kernel.flags &= ~TALLY_ATTR_BUILD_ID;
	require(parse("cycles", TALLY_FALLBACK_PRECISE));
	attr.flags |= TALLY_ATTR_BUILD_ID;
	check_int(open_it(), -EINVAL);
	check_int(kernel.calls, 1);
	tally_events_free(events);
}

static void a_smaller_attr_for_an_older_kernel(void)
{
	set_up();
	kernel.attr_size = 104; /* Linux 4.0 */
	require(parse("cycles", 0));
	attr.sample_max_stack = 64;
	check_int(open_it(), 1000);
	check_int(attr.sample_max_stack, 0);
	check_int(attr.size, 64);
	check_has(tally_event_compromise(event), "stack limit");
	tally_events_free(events);

	/* config3 tells which event it is: without it another one would be counted. */
	kernel.attr_size = 128;
	require(parse("cycles", 0));
	attr.config3 = 5;
	check_int(open_it(), -E2BIG);
	check_int(kernel.calls, 1);
	check_has(err.text, "128 bytes");
	check_has(err.text, "136 bytes");
	check_u64(attr.config3, 5);
	tally_events_free(events);

	/* sig_data has no meaning without a signal. */
	kernel.attr_size = 120;
	require(parse("cycles", 0));
	attr.sig_data = 5;
	check_int(open_it(), 1000);
	tally_events_free(events);
}

static void user_mode_where_paranoid_forbids_the_kernel(void)
{
	set_up();
	kernel.capable = false;
	fakeroot_file(&root, "/proc/sys/kernel/perf_event_paranoid", "2\n");
	require(parse("faults", TALLY_FALLBACK_USER_ONLY));
	check_int(open_it(), 1000);
	check_int(kernel.calls, 2);
	check_u64(attr.flags,
		  TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_HV | TALLY_ATTR_EXCLUDE_GUEST);
	check_str(tally_event_compromise(event), "user mode only: kernel.perf_event_paranoid is 2");
	check_int(open_it(), 1000);
	check_int(kernel.calls, 1);
	check_has(tally_event_compromise(event), "paranoid is 2");
	tally_events_free(events);

	require(parse("faults", TALLY_FALLBACK_NEWER_BITS));
	check_int(open_it(), -EACCES);
	check_int(kernel.calls, 1);
	tally_events_free(events);
}

static void the_name_gets_the_modifier_that_was_not_asked_for(void)
{
	static const struct {
		const char *name, *modifier;
	} named[] = {
		{ "faults", ":u" },  { "faults:u", "" },  { "cpu/event=1/", "u" },
		{ "faults:I", "u" }, { "faults:hu", "" },
	};

	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
		set_up();
		fakeroot_file(&root, "/proc/sys/kernel/perf_event_paranoid", "2\n");
		fakeroot_file(&root, "/sys/bus/event_source/devices/cpu/type", "4\n");
		fakeroot_file(&root, "/sys/bus/event_source/devices/cpu/format/event",
			      "config:0-7\n");
		for (int capable = 1; capable >= 0; capable--) {
			kernel.capable = capable;
			require(parse(named[i].name, TALLY_FALLBACK_USER_ONLY));
			check_str(tally_event_granted_modifier(event), "");
			check_int(open_it(), 1000);
			check_str(tally_event_granted_modifier(event),
				  capable ? "" : named[i].modifier);
			tally_events_free(events);
		}
	}
}

/* A switch happens in the kernel: with it excluded the count is a 0 that is not true. */
static void user_mode_is_no_answer_for_kernel_events(void)
{
	static const char *const names[] = { "cs", "migrations", "cgroup-switches", "faults:k" };

	set_up();
	kernel.capable = false;
	for (int i = 0; i < 4; i++) {
		require(parse(names[i], TALLY_FALLBACK_USER_ONLY));
		check_int(open_it(), -EACCES);
		check_int(kernel.calls, 1);
		tally_events_free(events);
	}
}

static void user_mode_does_not_help_at_level_three(void)
{
	set_up();
	kernel.capable = false;
	kernel.paranoid = 3;
	require(parse("faults", TALLY_FALLBACK_USER_ONLY));
	check_int(open_it(), -EACCES);
	check_int(kernel.calls, 2);
	check_u64(attr.flags, TALLY_ATTR_EXCLUDE_GUEST);
	tally_events_free(events);
}

static void the_clock_for_cycles(void)
{
	set_up();
	kernel.has_pmu = false;
	require(parse("cycles:P", TALLY_FALLBACK_CPU_CLOCK));
	check_str(tally_event_unit(event), "");
	check_int(open_it(), 1000);
	check_int(attr.type, TALLY_TYPE_SOFTWARE);
	check_u64(attr.config, TALLY_SW_CPU_CLOCK);
	check_u64(attr.flags, TALLY_ATTR_EXCLUDE_GUEST);
	check_str(tally_event_compromise(event),
		  "cpu-clock instead of cycles: this machine shows no hardware counters");
	check_str(tally_event_unit(event), "ns");
	check_u64(tally_event_attr(event)->config, TALLY_HW_CPU_CYCLES);
	check_int(tally_event_attr(event)->type, TALLY_TYPE_HARDWARE);
	check_int(open_it(), 1000);
	check_int(kernel.calls, 1);
	check_has(tally_event_compromise(event), "cpu-clock instead of cycles");
	tally_events_free(events);

	/* A PMU without interrupts counts, but cannot sample. */
	kernel.has_pmu = true;
	kernel.pmu_samples = false;
	require(parse("cycles", TALLY_FALLBACK_CPU_CLOCK));
	attr.sample_period = 4000;
	attr.flags |= TALLY_ATTR_FREQ;
	check_int(open_it(), 1000);
	check_has(tally_event_compromise(event), "cpu-clock instead of cycles");
	check_u64(attr.sample_period, 4000);
	tally_events_free(events);
}

/* No counters, and the clock on whole CPUs is forbidden: what has to be mended is the latter. */
static void the_clock_may_be_forbidden(void)
{
	set_up();
	kernel.has_pmu = kernel.capable = false;
	require(parse("cycles", TALLY_FALLBACK_CPU_CLOCK | TALLY_FALLBACK_USER_ONLY));
	check_int(event_open(event, &attr, -1, 0, -1, root.path, &err), -EACCES);
	check_int(err.cause, TALLY_CAUSE_PARANOID);
	check_has(err.text, "cannot open cycles on CPU 0");
	check_int(attr.type, TALLY_TYPE_HARDWARE);
	check(tally_event_granted(event) == NULL);
	tally_events_free(events);
}

static void the_clock_is_for_cycles_alone(void)
{
	set_up();
	kernel.has_pmu = false;
	require(parse("instructions", TALLY_FALLBACK_CPU_CLOCK));
	check_int(open_it(), -ENOENT);
	check_int(kernel.calls, 1);
	check_int(err.cause, TALLY_CAUSE_NO_PMU);
	tally_events_free(events);
	require(parse("cycles", TALLY_FALLBACK_USER_ONLY));
	check_int(open_it(), -ENOENT);
	tally_events_free(events);
}

static void the_whole_ladder(void)
{
	set_up();
	kernel.has_pmu = kernel.capable = false;
	kernel.flags &= ~TALLY_ATTR_BUILD_ID;
	require(parse("cycles:P", TALLY_FALLBACK_NEWER_BITS | TALLY_FALLBACK_USER_ONLY |
					  TALLY_FALLBACK_CPU_CLOCK));
	attr.flags |= TALLY_ATTR_BUILD_ID;
	check_int(open_it(), 1000);
	check_has(tally_event_compromise(event), "cpu-clock instead of cycles");
	check_has(tally_event_compromise(event), "; user mode only");
	check_has(tally_event_compromise(event), "; without build ids");
	check_int(attr.type, TALLY_TYPE_SOFTWARE);
	tally_events_free(events);
}

static void the_soft_limit_is_raised_once(void)
{
	struct rlimit before, low, after;

	set_up();
	require(getrlimit(RLIMIT_NOFILE, &before) == 0);
	low = before;
	low.rlim_cur = 64;
	require(before.rlim_max > 64 && setrlimit(RLIMIT_NOFILE, &low) == 0);
	kernel.needs_fds = 65;
	require(parse("faults", 0));
	check_int(open_it(), 1000);
	check_int(kernel.calls, 2);
	check_int(getrlimit(RLIMIT_NOFILE, &after), 0);
	check_u64(after.rlim_cur, before.rlim_max);
	check(!tally_event_compromise(event));

	kernel.refuse = -EMFILE; /* now it is the hard limit */
	check_int(open_it(), -EMFILE);
	check_int(kernel.calls, 1);
	check_int(err.cause, TALLY_CAUSE_FD_LIMIT);
	tally_events_free(events);
	setrlimit(RLIMIT_NOFILE, &before);
}

static void an_interrupted_call_is_repeated(void)
{
	set_up();
	kernel.interruptions = 2;
	require(parse("faults", 0));
	check_int(open_it(), 1000);
	check_int(kernel.calls, 3);
	tally_events_free(events);
}

static void a_member_that_does_not_fit(void)
{
	set_up();
	kernel.refuse = -EINVAL;
	require(parse("cycles", 0));
	check_int(event_open(event, &attr, 0, -1, 5, root.path, &err), -EINVAL);
	check_int(err.cause, TALLY_CAUSE_LIMIT);
	check_has(err.text, "group");
	tally_events_free(events);
}

static void nobody_need_listen(void)
{
	set_up();
	kernel.refuse = -EPERM;
	require(parse("cycles", 0));
	check_int(event_open(event, &attr, 0, -1, -1, NULL, NULL), -EPERM);
	tally_events_free(events);
}

int main(void)
{
	if (!fakeroot_make(&root))
		return 1;
	tap_run(the_smallest_size_is_sent);
	tap_run(precision_goes_down_step_by_step);
	tap_run(guests_are_counted_where_they_cannot_be_told_apart);
	tap_run(modes_that_were_named_stay);
	tap_run(probes_are_not_inherited);
	tap_run(a_pmu_without_modes_is_forbidden);
	tap_run(what_was_named_precisely_is_not_given_up);
	tap_run(newer_bits_go_off_newest_first);
	tap_run(weights_become_the_older_kind);
	tap_run(precision_is_kept_when_bits_were_to_blame);
	tap_run(nothing_is_given_up_in_vain);
	tap_run(newer_bits_stay_when_not_allowed);
	tap_run(a_smaller_attr_for_an_older_kernel);
	tap_run(user_mode_where_paranoid_forbids_the_kernel);
	tap_run(user_mode_is_no_answer_for_kernel_events);
	tap_run(user_mode_does_not_help_at_level_three);
	tap_run(the_clock_for_cycles);
	tap_run(the_clock_may_be_forbidden);
	tap_run(the_clock_is_for_cycles_alone);
	tap_run(the_whole_ladder);
	tap_run(the_soft_limit_is_raised_once);
	tap_run(an_interrupted_call_is_repeated);
	tap_run(a_member_that_does_not_fit);
	tap_run(nobody_need_listen);
	/* Last, as it makes a PMU. */
	tap_run(the_name_gets_the_modifier_that_was_not_asked_for);
	fakeroot_remove(&root);
	return tap_end();
}
