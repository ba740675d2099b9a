/* SPDX-License-Identifier: MIT */
/*
 * filter: against a model of the kernel that takes what a test says. The format file is that of
 * sched_switch in Linux 6.18, shortened; what a filter is, Documentation/trace/events.rst says.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>

#include "base/sys.h"
#include "event/event.h"
#include "event/open.h"
#include "fakeroot.h"
#include "tap.h"

#define FD 1000

static const char format[] = "name: sched_switch\nID: 372\nformat:\n"
			     "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
			     "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
			     "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
			     "\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n"
			     "\tfield:__data_loc char[] path;\toffset:28;\tsize:4;\tsigned:1;\n"
			     "\tfield:char * buf;\toffset:24;\tsize:8;\tsigned:0;\n"
			     "\tfield:u8 grid[2][4];\toffset:24;\tsize:8;\tsigned:0;\n"
			     "\nprint fmt: \"prev_comm=%s\", REC->prev_comm\n";

static struct {
	int refuse;    /* SET_FILTER answers this */
	int no_enable; /* ENABLE answers this */
	bool enabled, counts_unfiltered;
	int opens, closes, enables;
	char filter[256];
} kernel;

static struct fakeroot root;
static struct tally_error err;

static int model_open(void *attr, pid_t pid, int cpu, int group_fd, unsigned long flags)
{
	const struct tally_attr *a = attr;

	(void)pid, (void)cpu, (void)group_fd, (void)flags;
	kernel.opens++;
	kernel.enabled = !(a->flags & TALLY_ATTR_DISABLED);
	kernel.counts_unfiltered |= kernel.enabled;
	return FD;
}

static int model_ioctl(int fd, unsigned long request, unsigned long arg)
{
	check_int(fd, FD);
	if (request == PERF_EVENT_IOC_ENABLE) {
		kernel.enables++;
		kernel.enabled = !kernel.no_enable;
		return kernel.no_enable;
	}
	check_u64(request, PERF_EVENT_IOC_SET_FILTER);
	if (!kernel.refuse)
		snprintf(kernel.filter, sizeof(kernel.filter), "%s", (const char *)arg);
	return kernel.refuse;
}

static int model_close(int fd)
{
	if (fd != FD)
		return sys_kernel.close(fd);
	kernel.closes++;
	return 0;
}

const struct sys_table *sys(void)
{
	static struct sys_table table;

	table = sys_kernel;
	table.perf_event_open = model_open;
	table.ioctl = model_ioctl;
	table.close = model_close;
	return &table;
}

static struct tally_events *events;
static struct tally_event *event;
static struct tally_attr attr;

static bool set_up(const char *name, const char *filter)
{
	memset(&kernel, 0, sizeof(kernel));
	memset(&err, 0, sizeof(err));
	if (tally_events_parse(&events, name, TALLY_OPTS(events, .root = root.path), &err) < 0)
		return false;
	event = tally_events_at(events, 0);
	attr = *tally_event_attr(event);
	return tally_event_set_filter(event, filter) == 0;
}

static int open_it(void)
{
	return event_open(event, &attr, 0, -1, -1, root.path, &err);
}

static void it_is_set_before_anything_counts(void)
{
	require(set_up("sched:sched_switch", "prev_pid == 1"));
	check_int(open_it(), FD);
	check_str(kernel.filter, "prev_pid == 1");
	check(!kernel.counts_unfiltered);
	check(kernel.enabled); /* as it was asked for */
	check(!(attr.flags & TALLY_ATTR_DISABLED));
	check(!(tally_event_granted(event)->flags & TALLY_ATTR_DISABLED));
	tally_events_free(events);

	/* Disabled it stays as it is. */
	require(set_up("sched:sched_switch", "prev_pid == 1"));
	attr.flags |= TALLY_ATTR_DISABLED;
	check_int(open_it(), FD);
	check_str(kernel.filter, "prev_pid == 1");
	check(!kernel.enabled);
	check(attr.flags & TALLY_ATTR_DISABLED);
	tally_events_free(events);
}

static void without_one_nothing_is_done(void)
{
	require(set_up("sched:sched_switch", NULL));
	kernel.refuse = -EINVAL;
	check_int(open_it(), FD);
	check_int(kernel.enables, 0);
	tally_events_free(events);
}

static void others_than_tracepoints_take_none(void)
{
	require(set_up("page-faults", "prev_pid == 1"));
	check_int(open_it(), -EINVAL);
	check_int(kernel.opens, 0);
	check_has(err.text, "page-faults takes no filter");
	check(!tally_event_granted(event));
	tally_events_free(events);
}

static void a_refused_one_leaves_nothing_open(void)
{
	require(set_up("sched:sched_switch", "prev_pid == 1"));
	kernel.refuse = -EINVAL;
	const struct tally_attr asked = attr;
	check_int(open_it(), -EINVAL);
	check_int(kernel.closes, kernel.opens);
	check(!kernel.enabled);
	check_mem(&attr, &asked, sizeof(attr));
	check(!tally_event_granted(event));
	check_int(event_open(event, &attr, 0, -1, -1, root.path, NULL), -EINVAL);
	tally_events_free(events);

	require(set_up("sched:sched_switch", "prev_pid == 1"));
	kernel.no_enable = -EIO;
	check_int(open_it(), -EIO);
	check_int(kernel.closes, kernel.opens);
	tally_events_free(events);
}

/* What the kernel refuses, and what is said of it. */
static void errors_name_the_fields(void)
{
	static const struct {
		const char *filter, *part;
	} wrong[] = {
		{ "prev_pidd == 1", "no field 'prev_pidd', the nearest is 'prev_pid'" },
		{ "prev_pid == 1 && (pref_comm ~ \"x == 1\")",
		  "'pref_comm', the nearest is 'prev_comm'" },
		{ "quux > 3",
		  "no field 'quux', it has common_pid, prev_comm, prev_pid, path, buf, grid" },
		{ "bogus_field.ustring ~ \"x\"", "no field 'bogus_field'" },
		{ "bogus_flags&4", "no field 'bogus_flags'" },
		{ "prev_pid ==", "the filter 'prev_pid =='" },
		{ "prev_pid == abc", "its fields are common_pid, prev_comm" },
		{ "prev_comm == \"unclosed", "its fields are" },
		{ "CPU == 1 || COMM == \"x\" || common_pid && common_type != 2", "its fields are" },
		{ "path ~ \"x\" && buf != 0 && grid == 2", "its fields are" },
		{ "", "its fields are" },
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		require(set_up("cs,sched:sched_switch:u", NULL));
		event = tally_events_at(events, 1);
		attr = *tally_event_attr(event);
		check_int(tally_event_set_filter(event, wrong[i].filter), 0);
		kernel.refuse = -EINVAL;
		check_int(open_it(), -EINVAL);
		check_int(err.code, -EINVAL);
		check_has(err.text, wrong[i].part);
		check_has(err.text, "sched:sched_switch");
		tally_events_free(events);
	}
}

static void other_errors(void)
{
	size_t len = 1u << 17;
	char *text = malloc(len + 1);

	require(text);
	memset(text, 'x', len);
	text[len] = '\0';
	require(set_up("sched:sched_switch", text));
	kernel.refuse = -EINVAL;
	check_int(open_it(), -EINVAL);
	check_int(err.cause, TALLY_CAUSE_LIMIT);
	check_has(err.text, "more than a page");
	tally_events_free(events);
	free(text);

	require(set_up("sched:sched_switch", "prev_pid == 1"));
	kernel.refuse = -ENOMEM;
	check_int(open_it(), -ENOMEM);
	check_has(err.text, "Cannot allocate");
	tally_events_free(events);

	/* A tracepoint whose format is not to be found. */
	require(set_up("kmem:kmalloc", "x == 1"));
	kernel.refuse = -EINVAL;
	check_int(open_it(), -EINVAL);
	check_has(err.text, "the filter 'x == 1' of kmem:kmalloc");
	tally_events_free(events);
}

int main(void)
{
	if (!fakeroot_make(&root))
		return 1;
	fakeroot_file(&root, "/sys/kernel/tracing/events/sched/sched_switch/id", "372\n");
	fakeroot_file(&root, "/sys/kernel/tracing/events/sched/sched_switch/format", format);
	fakeroot_file(&root, "/sys/kernel/tracing/events/kmem/kmalloc/id", "7\n");
	tap_run(it_is_set_before_anything_counts);
	tap_run(without_one_nothing_is_done);
	tap_run(others_than_tracepoints_take_none);
	tap_run(a_refused_one_leaves_nothing_open);
	tap_run(errors_name_the_fields);
	tap_run(other_errors);
	fakeroot_remove(&root);
	return tap_end();
}
