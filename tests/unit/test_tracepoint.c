/* SPDX-License-Identifier: MIT */
/* tracepoint: made-up tracefs folders, in the shape of Documentation/trace/events.rst. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tally/event.h>

#include "event/tracepoint.h"
#include "fakeroot.h"
#include "tap.h"

#define TRACEFS "/sys/kernel/tracing"
#define DEBUGFS "/sys/kernel/debug/tracing"
#define NOBODY  65534

static struct fakeroot root;
static struct tally_error err;

static void setup(const char *mount)
{
	static const char *const files[][2] = {
		{ "sched/sched_switch/id", "372\n" },
		{ "sched/sched_waking/id", "370\n" },
		{ "sched/enable", "0\n" },
		{ "kmem/kmalloc/id", "471\n" },
		{ "ftrace/print/format", "none\n" },
		{ "u/k/id", "9\n" },
		{ "xhci-hcd/xhci_dbg_quirks/id", "11" },
		{ "bad/number/id", "x\n" },
		{ "bad/negative/id", "-3\n" },
		{ "header_page", "\n" },
	};
	char path[128];

	if (!fakeroot_make(&root))
		perror("mkdtemp");
	chmod(root.path, 0755);
	for (size_t i = 0; mount && i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(path, sizeof(path), "%s/events/%s", mount, files[i][0]);
		if (!fakeroot_file(&root, path, files[i][1]))
			perror(path);
	}
}

static void teardown(void)
{
	fakeroot_remove(&root);
}

static int id_of(const char *group, const char *name)
{
	uint64_t id = 0;
	int r = tracepoint_id(&id, group, name, root.path, &err);

	return r < 0 ? r : (int)id;
}

static void ids_from_tracefs_and_debugfs(void)
{
	static const char *const mounts[] = { TRACEFS, DEBUGFS };

	for (int i = 0; i < 2; i++) {
		setup(mounts[i]);
		check_int(id_of("sched", "sched_switch"), 372);
		check_int(id_of("xhci-hcd", "xhci_dbg_quirks"), 11);
		check(tracepoint_has_group(root.path, "sched"));
		check(!tracepoint_has_group(root.path, "shed"));
		check(!tracepoint_has_group(root.path, ".."));
		teardown();
	}
}

/* An empty mount point is what a machine without the mount has. */
static void an_empty_mount_point_is_no_tracefs(void)
{
	char path[128];

	setup(DEBUGFS);
	snprintf(path, sizeof(path), "%s" TRACEFS, root.path);
	check_int(mkdir(path, 0700), 0);
	check_int(id_of("kmem", "kmalloc"), 471);
	teardown();
}

static void how_to_mount_it(void)
{
	setup(NULL);
	check_int(id_of("sched", "sched_switch"), -ENOENT);
	check_int(err.cause, TALLY_CAUSE_NO_FILE);
	check_has(err.text, "mount -t tracefs nodev /sys/kernel/tracing");
	check(!tracepoint_has_group(root.path, "sched"));
	teardown();
}

static void a_user_who_may_not_read_it(void)
{
	char path[128];
	bool is_root = geteuid() == 0;

	setup(TRACEFS);
	snprintf(path, sizeof(path), "%s" TRACEFS, root.path);
	check_int(chmod(path, 0), 0);
	if (is_root)
		check_int(seteuid(NOBODY), 0);
	check_int(id_of("sched", "sched_switch"), -EACCES);
	if (is_root)
		check_int(seteuid(0), 0);
	check_int(err.cause, TALLY_CAUSE_PERMISSION);
	check_has(err.text, "remount");
	check_has(err.text, "/sys/kernel/tracing");
	chmod(path, 0700);
	teardown();
}

/* Since Linux 5.16 the ids have mode 0440, so the folder may be open and the id closed. */
static void an_id_that_may_not_be_read(void)
{
	char path[160];
	bool is_root = geteuid() == 0;

	setup(TRACEFS);
	snprintf(path, sizeof(path), "%s" TRACEFS "/events/sched/sched_switch/id", root.path);
	check_int(chmod(path, 0), 0);
	if (is_root)
		check_int(seteuid(NOBODY), 0);
	check_int(id_of("sched", "sched_switch"), -EACCES);
	if (is_root)
		check_int(seteuid(0), 0);
	check_has(err.text, "gid=");
	teardown();
}

static void the_nearest_of_all(void)
{
	setup(TRACEFS);
	check_int(id_of("shed", "sched_swich"), -EINVAL);
	check_int(err.cause, TALLY_CAUSE_UNKNOWN);
	check_has(err.text, "nearest is 'sched:sched_switch'");
	check_int(id_of("kmem", "kmaloc"), -EINVAL);
	check_has(err.text, "nearest is 'kmem:kmalloc'");
	check_int(id_of("none", "of_these_at_all"), -EINVAL);
	check_has(err.text, "tally list");
	check_int(id_of("sched", "enable"), -EINVAL); /* a file */
	check_int(id_of("ftrace", "print"), -EINVAL); /* has no id */
	teardown();
}

static void hostile_names_and_contents(void)
{
	char longest[200];

	setup(TRACEFS);
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	check_int(id_of("..", "sched"), -EINVAL);
	check_int(id_of("sched/..", "sched"), -EINVAL);
	check_int(id_of("", "sched_switch"), -EINVAL);
	check_int(id_of("sched", ""), -EINVAL);
	check_int(id_of(longest, longest), -EINVAL);
	check_int(id_of("bad", "number"), -EINVAL);
	check_int(err.cause, TALLY_CAUSE_IO);
	check_int(id_of("bad", "negative"), -EINVAL);
	teardown();
}

static int collect(const char *name, void *arg)
{
	char *text = arg;

	strcat(strcat(text, name), " ");
	return strcmp(name, "sched:sched_switch") == 0 && strchr(text, '!') ? 7 : 0;
}

static void all_sorted_until_told_to_stop(void)
{
	char text[512] = "", some[512] = "!";

	setup(TRACEFS);
	check_int(tracepoint_each(root.path, collect, text), 0);
	check_str(text, "bad:negative bad:number kmem:kmalloc sched:sched_switch "
			"sched:sched_waking u:k xhci-hcd:xhci_dbg_quirks ");
	check_int(tracepoint_each(root.path, collect, some), 7);
	check_str(some, "!bad:negative bad:number kmem:kmalloc sched:sched_switch ");
	teardown();
	setup(NULL);
	check_int(tracepoint_each(root.path, collect, text), 0);
	teardown();
}

static const struct tally_attr *parsed(struct tally_events **events, const char *text)
{
	int r = tally_events_parse(events, text, TALLY_OPTS(events, .root = root.path), &err);

	return r < 0 ? NULL : tally_event_attr(tally_events_at(*events, 0));
}

/* perf 6.1: type 2, exclude_guest, and the modes of the modifiers behind the second colon. */
static void colons_of_tracepoints_and_of_modifiers(void)
{
	struct tally_events *events;
	const struct tally_attr *attr;

	setup(TRACEFS);
	require((attr = parsed(&events, "sched:sched_switch")));
	check_int(attr->type, TALLY_TYPE_TRACEPOINT);
	check_u64(attr->config, 372);
	check_u64(attr->flags, TALLY_ATTR_EXCLUDE_GUEST);
	tally_events_free(events);
	require((attr = parsed(&events, "sched:sched_switch:u")));
	check_str(tally_event_name(tally_events_at(events, 0)), "sched:sched_switch:u");
	check_u64(attr->flags,
		  TALLY_ATTR_EXCLUDE_GUEST | TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_HV);
	tally_events_free(events);
	/* Both words are made of modifiers; the group exists. */
	require((attr = parsed(&events, "u:k")));
	check_u64(attr->config, 9);
	tally_events_free(events);
	require((attr = parsed(&events, "{sched:sched_switch,kmem:kmalloc}:k")));
	check_str(tally_event_name(tally_events_at(events, 1)), "kmem:kmalloc:k");
	tally_events_free(events);

	check(!parsed(&events, "cs,sched:sched_switch:x"));
	check_has(err.text, "column 23:");
	check(!parsed(&events, "cs,sched:sched_swtch"));
	check_has(err.text, "column 4:");
	check_has(err.text, "nearest is 'sched:sched_switch'");
	check(!parsed(&events, "sched_switch"));
	check_has(err.text, "nearest is 'sched:sched_switch'");
	check(!parsed(&events, "cycels:u"));
	check_has(err.text, "nearest is 'cycles'");
	teardown();
}

static void names_are(const char *text, const char *const *want, uint32_t count)
{
	struct tally_events *events;
	int r = tally_events_parse(&events, text, TALLY_OPTS(events, .root = root.path), &err);

	if (r < 0)
		check_str(err.text, text);
	require(r == 0);
	check_int(tally_events_count(events), count);
	for (uint32_t i = 0; i < count && i < tally_events_count(events); i++)
		check_str(tally_event_name(tally_events_at(events, i)), want[i]);
	tally_events_free(events);
}

/* As perf does: an event for each that matches, alone unless braces make a group of them. */
static void patterns_are_several_events(void)
{
	struct tally_events *events;
	static const char *const all[] = { "sched:sched_switch", "sched:sched_waking" };
	static const char *const modified[] = { "cs", "sched:sched_switch:u",
						"sched:sched_waking:u" };
	static const char *const across[] = { "kmem:kmalloc", "u:k" };

	setup(TRACEFS);
	names_are("sched:*", all, 2);
	names_are("sched:sched_*", all, 2);
	names_are("sch[e]d:sched_?*ing", all + 1, 1);
	names_are("*:sched_switch", all, 1);
	names_are("cs,sched:*:u", modified, 3);
	names_are("[ku]*:k*", across, 2);

	require(parsed(&events, "sched:*:k,{sched:*}:DW"));
	check_int(tally_events_count(events), 4);
	for (uint32_t i = 0; i < 4; i++) {
		const struct tally_event *e = tally_events_at(events, i);
		check_int(tally_event_leader(e), i < 2 ? i : 2);
		check_int(tally_event_group_size(e), i < 2 ? 1 : 2);
		check(tally_event_is_weak(e) == (i >= 2));
		check_u64(tally_event_attr(e)->config, i % 2 ? 370 : 372);
		check(!(tally_event_attr(e)->flags & TALLY_ATTR_PINNED) == (i != 2));
	}
	tally_events_free(events);
	teardown();
}

static void patterns_that_match_nothing(void)
{
	struct tally_events *events;

	setup(TRACEFS);
	check(!parsed(&events, "cs,sched:foo*"));
	check_int(err.code, -EINVAL);
	check_int(err.cause, TALLY_CAUSE_UNKNOWN);
	check_has(err.text, "column 4: no tracepoint matches 'sched:foo*'");
	check(!parsed(&events, "ftrace:*")); /* has no id */
	check(!parsed(&events, "../../*:*"));
	check(!parsed(&events, "sched:[*"));
	check(!parsed(&events, "sched:*:x"));
	check_has(err.text, "no modifier 'x'");
	check(!parsed(&events,
		      "bad:num*")); /* its number cannot be read: not left out in silence */
	check_int(err.cause, TALLY_CAUSE_IO);
	teardown();
	setup(NULL);
	check(!parsed(&events, "sched:*"));
	check_int(err.code, -ENOENT);
	check_has(err.text, "mount -t tracefs");
	teardown();
}

int main(void)
{
	tap_run(ids_from_tracefs_and_debugfs);
	tap_run(an_empty_mount_point_is_no_tracefs);
	tap_run(how_to_mount_it);
	tap_run(a_user_who_may_not_read_it);
	tap_run(an_id_that_may_not_be_read);
	tap_run(the_nearest_of_all);
	tap_run(hostile_names_and_contents);
	tap_run(all_sorted_until_told_to_stop);
	tap_run(colons_of_tracepoints_and_of_modifiers);
	tap_run(patterns_are_several_events);
	tap_run(patterns_that_match_nothing);
	return tap_end();
}
