/* SPDX-License-Identifier: MIT */
/*
 * breakpoint: texts as perf-list(1) and perf's own tests of its parser have them (mem:0, mem:0:x,
 * mem:0/2:w ...), with the numbers of <linux/hw_breakpoint.h>. What is impossible is what
 * arch/x86/kernel/hw_breakpoint.c refuses.
 */
#include <errno.h>
#include <linux/hw_breakpoint.h>

#include <tally/event.h>

#include "tap.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define U        TALLY_ATTR_EXCLUDE_USER
#define K        TALLY_ATTR_EXCLUDE_KERNEL
#define HV       TALLY_ATTR_EXCLUDE_HV
#define GUEST    TALLY_ATTR_EXCLUDE_GUEST

/* No machine's tracefs. */
static int parse(struct tally_events **events, const char *text, struct tally_error *err)
{
	*err = (struct tally_error){ 0 };
	return tally_events_parse(events, text, TALLY_OPTS(events, .root = "/nonexistent"), err);
}

static void what_perf_makes_of_them(void)
{
	static const struct {
		const char *text;
		uint64_t address, len;
		uint32_t access;
		uint64_t flags;
	} want[] = {
		{ "mem:0", 0, 4, HW_BREAKPOINT_RW, GUEST },
		{ "mem:0x1f00", 0x1f00, 4, HW_BREAKPOINT_RW, GUEST },
		{ "mem:4096", 4096, 4, HW_BREAKPOINT_RW, GUEST },
		{ "mem:0xffffffff81000000:w", 0xffffffff81000000, 4, HW_BREAKPOINT_W, GUEST },
		{ "mem:0:x", 0, sizeof(long), HW_BREAKPOINT_X, GUEST },
		{ "mem:0:rw", 0, 4, HW_BREAKPOINT_RW, GUEST },
		{ "mem:0:wr", 0, 4, HW_BREAKPOINT_RW, GUEST },
		{ "mem:0/1", 0, 1, HW_BREAKPOINT_RW, GUEST },
		{ "mem:6/2:w", 6, 2, HW_BREAKPOINT_W, GUEST },
		{ "mem:8/8:rw:u", 8, 8, HW_BREAKPOINT_RW, GUEST | K | HV },
		{ "mem:0:u", 0, 4, HW_BREAKPOINT_RW, GUEST | K | HV },
		{ "mem:0:x:k", 0, sizeof(long), HW_BREAKPOINT_X, GUEST | U | HV },
		{ "mem:3:x", 3, sizeof(long), HW_BREAKPOINT_X, GUEST },
		{ "mem:0:w:up", 0, 4, HW_BREAKPOINT_W, GUEST | K | HV | 1ull << 15 },
		{ "mem:0/4:rw:kp", 0, 4, HW_BREAKPOINT_RW, GUEST | U | HV | 1ull << 15 },
	};

	for (size_t i = 0; i < COUNT(want); i++) {
		struct tally_events *events;
		struct tally_error err;
		int r = parse(&events, want[i].text, &err);
		if (r < 0)
			check_str(err.text, want[i].text);
		require(r == 0);
		const struct tally_event *e = tally_events_at(events, 0);
		const struct tally_attr *attr = tally_event_attr(e);
		check_str(tally_event_name(e), want[i].text);
		check_int(attr->type, 5);
		check_u64(attr->config, 0);
		check_u64(attr->config1, want[i].address);
		check_u64(attr->config2, want[i].len);
		check_int(attr->bp_type, want[i].access);
		check_u64(attr->flags, want[i].flags);
		tally_events_free(events);
	}
}

static void in_lists_and_groups(void)
{
	struct tally_events *events;
	struct tally_error err;

	check_int(parse(&events, "{mem:0/4:rw,mem:8:x}:u,cs mem:16", &err), 0);
	check_int(tally_events_count(events), 4);
	check_str(tally_event_name(tally_events_at(events, 0)), "mem:0/4:rw:u");
	check_u64(tally_event_attr(tally_events_at(events, 1))->flags, GUEST | K | HV);
	check_u64(tally_event_attr(tally_events_at(events, 3))->config1, 16);
	tally_events_free(events);
}

struct wrong {
	const char *text;
	int column;
	const char *part;
};

static void refused(const struct wrong *wrong, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct tally_events *events;
		struct tally_error err;
		char column[32];
		check_int(parse(&events, wrong[i].text, &err), -EINVAL);
		snprintf(column, sizeof(column), "column %d:", wrong[i].column);
		check_has(err.text, column);
		check_has(err.text, wrong[i].part);
	}
}

static void errors_say_where(void)
{
	static const struct wrong wrong[] = {
		{ "mem:", 5, "address is missing" },
		{ "cs,mem::rw", 8, "address is missing" },
		{ "mem:main", 5, "'main' is no address" },
		{ "mem:0x", 5, "no address" },
		{ "mem:0x10000000000000000", 5, "64 bits" },
		{ "mem:0/", 7, "length is missing" },
		{ "mem:0/:r", 7, "length is missing" },
		{ "mem:0/two", 7, "no length" },
		{ "mem:0/0", 7, "no length" },
		{ "mem:0:ww", 8, "twice" },
		{ "mem:0:", 7, "modifier is missing" },
		{ "mem:0:rz", 7, "no modifier 'r'" },
		{ "mem:0:rw:z", 10, "no modifier 'z'" },
		{ "mem:0:rw:", 10, "modifier is missing" },
		{ "mem:0:wx", 1, "execution or data" },
		{ "mem:0:rwx", 1, "execution or data" },
	};

	refused(wrong, COUNT(wrong));
}

#if defined(__x86_64__)
static const char why_not_x86[] = "";
#else
static const char why_not_x86[] = "the rules are those of x86";
#endif

static void what_x86_cannot_watch(void)
{
	static const struct wrong wrong[] = {
		{ "mem:0:r", 1, "reads alone" },    { "mem:0/4:x", 1, "length of a long" },
		{ "mem:0/3:w", 1, "1, 2, 4 or 8" }, { "mem:2/4:w", 1, "multiple of the length" },
		{ "mem:1", 1, "ADDR/1" },           { "cs,mem:4/8:rw:u", 4, "'mem:4/8:rw'" },
	};

	if (why_not_x86[0])
		tap_skip(why_not_x86);
	refused(wrong, COUNT(wrong));
}

int main(void)
{
	tap_run(what_perf_makes_of_them);
	tap_run(in_lists_and_groups);
	tap_run(errors_say_where);
	tap_run(what_x86_cannot_watch);
	return tap_end();
}
