/* SPDX-License-Identifier: MIT */
/*
 * The ladder of fallbacks. Each rung is a function that tries what it was given by calling the rung
 * below, and gives up one thing when the errno fits: that guests are left out, by PMUs that cannot;
 * precision; then bits that an older kernel lacks, then the kernel's share, then the hardware clock.
 * A rung that did not help restores what it took, so that nothing is given up in vain.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/bytes.h"
#include "base/proc.h"
#include "base/sys.h"
#include "event/event.h"
#include "event/explain.h"
#include "event/filter.h"
#include "event/open.h"
#include "event/probe.h"

#define FLAG_PID_CGROUP 4ul /* PERF_FLAG_PID_CGROUP, Linux 2.6.39 */
#define FLAG_FD_CLOEXEC 8ul /* PERF_FLAG_FD_CLOEXEC, Linux 3.14 */

struct attempt {
	struct tally_event *event;
	struct tally_attr *attr;
	const struct event_at *at;
	int group_fd;
	struct given_up given;
};

/*
 * What may be left out on a kernel that does not know it, since it changes no count: records beside
 * the samples, fields in samples and readings. Newest first, so that what is left out ends at what
 * the kernel has.
 */
static const struct newer {
	uint8_t offset, width;
	uint64_t bits, instead;
	const char *name;
} newer[] = {
#define BITS(field, set, instead, name)                                   \
	{                                                                 \
		offsetof(struct tally_attr, field), 8, set, instead, name \
	}
	BITS(flags, TALLY_ATTR_DEFER_CALLCHAIN | TALLY_ATTR_DEFER_OUTPUT, 0, "deferred callchains"),
	BITS(read_format, TALLY_READ_LOST, 0, "lost counts"),
	BITS(sample_type, TALLY_SAMPLE_WEIGHT_STRUCT, TALLY_SAMPLE_WEIGHT, "split weights"),
	BITS(flags, TALLY_ATTR_BUILD_ID, 0, "build ids"),
	BITS(sample_type, TALLY_SAMPLE_DATA_PAGE_SIZE | TALLY_SAMPLE_CODE_PAGE_SIZE, 0,
	     "page sizes"),
	BITS(flags, TALLY_ATTR_TEXT_POKE, 0, "text pokes"),
	BITS(flags, TALLY_ATTR_CGROUP, 0, "cgroup records"),
	BITS(sample_type, TALLY_SAMPLE_CGROUP, 0, "cgroups of samples"),
	BITS(flags, TALLY_ATTR_KSYMBOL | TALLY_ATTR_BPF_EVENT, 0, "BPF and kernel symbols"),
	BITS(flags, TALLY_ATTR_NAMESPACES, 0, "namespaces"),
	{ offsetof(struct tally_attr, sample_max_stack), 2, UINT16_MAX, 0, "a stack limit" },
	BITS(flags, TALLY_ATTR_CONTEXT_SWITCH, 0, "switch records"),
	BITS(flags, TALLY_ATTR_USE_CLOCKID, 0, "the chosen clock"),
	BITS(flags, TALLY_ATTR_MMAP2 | TALLY_ATTR_COMM_EXEC, 0, "mmap2 records"),
#undef BITS
};
_Static_assert(ARRAY_SIZE(newer) <= 32, "struct given_up has a bit for each");

static unsigned precise_of(const struct tally_attr *attr)
{
	return (unsigned)(attr->flags >> TALLY_ATTR_PRECISE_IP_SHIFT & 3);
}

static void set_precise(struct tally_attr *attr, unsigned level)
{
	attr->flags &= ~TALLY_ATTR_PRECISE_IP;
	attr->flags |= (uint64_t)level << TALLY_ATTR_PRECISE_IP_SHIFT;
}

/* true: the soft limit was below the hard one and is not any more. */
static bool raise_nofile(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= limit.rlim_max)
		return false;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

/*
 * ENOENT of an event that all kernels have is the cgroup's: its hierarchy has no perf_event controller
 * (perf_cgroup_connect(), kernel/events/core.c), as little as a folder that is no cgroup, which is EBADF.
 */
static bool is_cgroup_to_blame(const struct attempt *a, int code)
{
	return code == -ENOENT && a->at->cgroup && a->attr->type == TALLY_TYPE_SOFTWARE &&
	       a->attr->config <= TALLY_SW_DUMMY;
}

/* On E2BIG the kernel has written its own size into the attr. */
static int try(struct attempt *a)
{
	unsigned long flags = FLAG_FD_CLOEXEC | (a->at->cgroup ? FLAG_PID_CGROUP : 0);
	int r;

	do {
		a->attr->size = tally_attr_size(a->attr);
		r = sys()->perf_event_open(a->attr, a->at->tid, a->at->cpu, a->group_fd, flags);
	} while (r == -EINTR || (r == -EMFILE && raise_nofile()));
	return is_cgroup_to_blame(a, r) ? -EBADF : r;
}

/* AMD's IBS, which does the precise samples there, answers ENOENT for most events. */
static bool may_be_precision(int code)
{
	return code == -EINVAL || code == -EOPNOTSUPP || code == -ENOENT;
}

/*
 * A PMU that cannot tell modes apart, as those of uncore, takes no exclude bit at all and says EINVAL
 * (PERF_PMU_CAP_NO_EXCLUDE, Linux 5.1; older ones say it each for itself). That guests are left out
 * nobody asked for, so it may go; what H, u or k asked for may not.
 */
static int with_guests(struct attempt *a)
{
	int first = try(a);

	if (first != -EINVAL || !(a->event->fallback & TALLY_FALLBACK_NEWER_BITS) ||
	    !a->event->guests_by_default || !(a->attr->flags & TALLY_ATTR_EXCLUDE_GUEST))
		return first;
	a->attr->flags &= ~TALLY_ATTR_EXCLUDE_GUEST;
	int r = try(a);
	a->given.guests = r != -EINVAL;
	if (a->given.guests)
		return r;
	a->attr->flags |= TALLY_ATTR_EXCLUDE_GUEST;
	return first;
}

static int with_precision(struct attempt *a)
{
	unsigned asked = precise_of(a->attr);
	const uint64_t flags = a->attr->flags;
	const struct given_up before = a->given;
	int first = with_guests(a), r = first;

	if (!(a->event->fallback & TALLY_FALLBACK_PRECISE))
		return r;
	for (unsigned level = asked; level > 0 && may_be_precision(r); level--) {
		set_precise(a->attr, level - 1);
		a->given.precise = (uint8_t)level;
		r = with_guests(a);
	}
	if (!asked || !may_be_precision(r))
		return r;
	a->attr->flags = flags;
	a->given = before;
	return first;
}

static bool has_newer(const struct tally_attr *attr, size_t i)
{
	uint64_t value = 0;

	memcpy(&value, (const char *)attr + newer[i].offset, newer[i].width);
	return value & newer[i].bits;
}

static void drop_newer(struct attempt *a, size_t i)
{
	char *at = (char *)a->attr + newer[i].offset;
	uint64_t value = 0;

	memcpy(&value, at, newer[i].width);
	value = (value & ~newer[i].bits) | newer[i].instead;
	memcpy(at, &value, newer[i].width);
	a->given.newer |= 1u << i;
}

/* Nothing that selects what is counted lies behind `known` but what may be dropped? Then drop it. */
static bool fit_into(struct attempt *a, uint32_t known)
{
	for (size_t i = 0; i < ARRAY_SIZE(newer); i++)
		if (newer[i].offset >= known && has_newer(a->attr, i))
			drop_newer(a, i);
	if (!(a->attr->flags & TALLY_ATTR_SIGTRAP))
		a->attr->sig_data = 0; /* it only travels with the signal */
	return tally_attr_size(a->attr) <= known;
}

static int with_newer_bits(struct attempt *a)
{
	int first = with_precision(a), r = first;

	if ((r != -EINVAL && r != -E2BIG) || !(a->event->fallback & TALLY_FALLBACK_NEWER_BITS) ||
	    invalid_anywhere(a->attr))
		return r;
	const struct tally_attr asked = *a->attr;
	const struct given_up before = a->given;
	if (r == -E2BIG && fit_into(a, asked.size))
		r = with_precision(a);
	for (size_t i = 0; i < ARRAY_SIZE(newer) && r == -EINVAL; i++)
		if (has_newer(a->attr, i)) {
			drop_newer(a, i);
			r = with_precision(a);
		}
	if (r != -EINVAL && r != -E2BIG)
		return r;
	*a->attr = asked;
	a->given = before;
	return first;
}

static int with_user_only(struct attempt *a)
{
	int first = with_newer_bits(a);

	if (first != -EACCES || !(a->event->fallback & TALLY_FALLBACK_USER_ONLY) ||
	    a->attr->flags & (TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_USER) ||
	    event_only_in_kernel(a->attr))
		return first;
	const struct tally_attr asked = *a->attr;
	a->attr->flags |= TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_HV;
	int r = with_newer_bits(a);
	/* EINVAL: it cannot exclude anything, so that the permission is what is missing. */
	a->given.user_only = r != -EACCES && r != -EPERM && r != -EINVAL;
	if (a->given.user_only)
		return r;
	*a->attr = asked;
	return first;
}

static bool is_cycles(const struct tally_attr *attr)
{
	/* The upper half of config is a PMU's number on CPUs with two kinds of cores. */
	return attr->type == TALLY_TYPE_HARDWARE && (uint32_t)attr->config == TALLY_HW_CPU_CYCLES;
}

static bool is_cpu_clock(const struct tally_attr *attr)
{
	return attr->type == TALLY_TYPE_SOFTWARE && attr->config == TALLY_SW_CPU_CLOCK;
}

static bool lacks_counter(int code)
{
	return code == -ENOENT || code == -EOPNOTSUPP || code == -ENODEV || code == -ENXIO;
}

static int with_cpu_clock(struct attempt *a)
{
	int first = with_user_only(a);

	if (!lacks_counter(first) || !(a->event->fallback & TALLY_FALLBACK_CPU_CLOCK) ||
	    !is_cycles(a->attr))
		return first;
	const struct tally_attr asked = *a->attr;
	const struct given_up before = a->given;
	a->attr->type = TALLY_TYPE_SOFTWARE;
	a->attr->config = TALLY_SW_CPU_CLOCK;
	set_precise(a->attr, 0);
	int r = with_user_only(a);
	/* A clock that is refused as well is refused for another reason: that one has to be mended. */
	if (r < 0 && lacks_counter(r)) {
		*a->attr = asked;
		a->given = before;
		return first;
	}
	a->given.precise = 0;
	a->given.clock = true;
	a->given.clock_reason = first;
	return r;
}

/* What the last opening gave up holds for this one when its attr begins without it. */
static struct given_up still_given_up(const struct tally_event *event,
				      const struct tally_attr *attr)
{
	struct given_up g = event->given;

	if (!(attr->flags & TALLY_ATTR_EXCLUDE_KERNEL))
		g.user_only = false;
	if (attr->flags & TALLY_ATTR_EXCLUDE_GUEST)
		g.guests = false;
	if (attr->flags & TALLY_ATTR_INHERIT)
		g.alone = false;
	if (!is_cpu_clock(attr) || !is_cycles(&event->attr))
		g.clock = false;
	if (precise_of(attr) + 1 != g.precise)
		g.precise = 0;
	for (size_t i = 0; g.newer && i < ARRAY_SIZE(newer); i++)
		if (has_newer(attr, i))
			g.newer &= ~(1u << i);
	return g;
}

TALLY_PRINTF(2, 3)
static void say(struct tally_event *e, const char *fmt, ...)
{
	size_t n = strlen(e->compromise);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(e->compromise + n, sizeof(e->compromise) - n, fmt, ap);
	va_end(ap);
}

static const char *and_then(const struct tally_event *e)
{
	return e->compromise[0] ? "; " : "";
}

static void say_newer(struct tally_event *e, uint32_t bits)
{
	const char *before = "without ";

	say(e, "%s", and_then(e));
	for (size_t i = 0; i < ARRAY_SIZE(newer); i++)
		if (bits >> i & 1) {
			say(e, "%s%s", before, newer[i].name);
			before = ", ";
		}
	say(e, ": this kernel lacks them");
}

static void describe_compromise(struct tally_event *e)
{
	const struct given_up *g = &e->given;

	e->compromise[0] = '\0';
	if (g->clock)
		say(e, "cpu-clock instead of cycles: %s",
		    g->clock_reason == -EOPNOTSUPP
			    ? "the hardware counters here do not support this use"
			    : "this machine shows no hardware counters");
	if (g->user_only && g->paranoid)
		say(e, "%suser mode only: kernel.perf_event_paranoid is %d", and_then(e),
		    g->paranoid);
	else if (g->user_only)
		say(e, "%suser mode only: the kernel may not be watched", and_then(e));
	if (g->precise)
		say(e, "%sprecise level %d: this PMU has no higher one for it", and_then(e),
		    g->precise - 1);
	if (g->alone)
		say(e,
		    "%sthreads and children that start later are not counted: the kernel cannot "
		    "have them inherit a probe",
		    and_then(e));
	if (g->guests)
		say(e, "%sguests counted too: this PMU cannot leave them out", and_then(e));
	if (g->newer)
		say_newer(e, g->newer);
}

static void remember(struct attempt *a, const char *root)
{
	struct tally_event *e = a->event;
	int64_t paranoid;

	if (a->given.user_only && !e->given.user_only) {
		bool known = proc_read_i64(&paranoid, root,
					   "/proc/sys/kernel/perf_event_paranoid") == 0;
		a->given.paranoid = known ? (int32_t)paranoid : 0;
	}
	e->given = a->given;
	e->granted = *a->attr;
	e->opened = true;
	describe_compromise(e);
}

/* Sets the filter, and takes back what was changed to set it in time. */
static int finish(struct attempt *a, int fd, bool held, const char *root, struct tally_error *err)
{
	int r = filter_set(a->event, fd, held, root, err);

	if (held)
		a->attr->flags &= ~TALLY_ATTR_DISABLED;
	if (r < 0) {
		sys()->close(fd);
		return r;
	}
	if (!a->at->further_part)
		remember(a, root);
	return fd;
}

bool event_can_follow(struct tally_event *event, const char *root)
{
	if (event->follows == FOLLOWS_UNKNOWN)
		event->follows = probe_kind_of(&event->attr, root) ? FOLLOWS_NEVER
								   : FOLLOWS_WHERE_ASKED;
	return event->follows == FOLLOWS_WHERE_ASKED;
}

void event_stays_alone(struct tally_event *event)
{
	event->given.alone = true;
}

int event_open_at(struct tally_event *event, struct tally_attr *attr, const struct event_at *at,
		  int group_fd, const char *root, struct tally_error *err)
{
	const struct tally_attr asked = *attr;
	struct attempt a = { event, attr, at, group_fd, still_given_up(event, attr) };

	int held = filter_prepare(event, attr, err);
	if (held < 0)
		return held;
	if (attr->flags & TALLY_ATTR_INHERIT && !event_can_follow(event, root)) {
		attr->flags &= ~(TALLY_ATTR_INHERIT | TALLY_ATTR_INHERIT_THREAD |
				 TALLY_ATTR_INHERIT_STAT);
		a.given.alone = true;
	}
	int fd = with_cpu_clock(&a);
	if (fd >= 0) {
		fd = finish(&a, fd, held, root, err);
		if (fd < 0)
			*attr = asked;
		return fd;
	}
	struct tally_attr last = *attr;
	int32_t tid = at->cgroup ? -1 : at->tid;
	*attr = asked;
	if (fd == -EINVAL && group_fd >= 0)
		return explain_member(err, fd, event->name, &last, tid, at->cpu, root);
	return explain_open(err, fd, event->name, &last, tid, at->cpu, root);
}

int event_open(struct tally_event *event, struct tally_attr *attr, int32_t tid, int32_t cpu,
	       int group_fd, const char *root, struct tally_error *err)
{
	const struct event_at at = { .tid = tid, .cpu = cpu };

	return event_open_at(event, attr, &at, group_fd, root, err);
}
