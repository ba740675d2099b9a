/* SPDX-License-Identifier: MIT */
/*
 * probe: made-up sysfs folders as Linux 6.18 has them, and a file made by fakeelf.h. What attr holds
 * for a probe is in perf_event_open(2), and in the kernel's commit that brought the PMUs (4.17).
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include <tally/event.h>

#include "event/event.h"
#include "event/probe.h"
#include "fakeelf.h"
#include "fakeroot.h"
#include "tap.h"

#define DEVICES  "/sys/bus/event_source/devices/"
#define BASE     0x400000u
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct fakeroot root;
static struct tally_error err;
static char file[PATH_MAX]; /* the probed one */

static void setup(bool with_pmus)
{
	static const struct fakeelf_symbol symbols[] = {
		{ "serve", BASE + 0x10, 0x20, STB_GLOBAL, STT_FUNC, 0, false },
		{ "server", BASE + 0x40, 0x20, STB_GLOBAL, STT_FUNC, 0, false },
	};
	static struct fakeelf elf;

	fakeroot_make(&root);
	fakeelf_make(&elf, BASE, NULL, SHT_SYMTAB, symbols, COUNT(symbols));
	fakeroot_bytes(&root, "/bin/daemon", elf.at, elf.len);
	fakeroot_file(&root, "/bin/script", "#!/bin/sh\n");
	snprintf(file, sizeof(file), "%s/bin/daemon", root.path);
	if (!with_pmus)
		return;
	fakeroot_file(&root, DEVICES "kprobe/type", "6\n");
	fakeroot_file(&root, DEVICES "kprobe/format/retprobe", "config:0\n");
	fakeroot_file(&root, DEVICES "uprobe/type", "7\n");
	fakeroot_file(&root, DEVICES "uprobe/format/retprobe", "config:0\n");
	fakeroot_file(&root, DEVICES "uprobe/format/ref_ctr_offset", "config:32-63\n");
}

/* Each %s is the probed file. */
static int parse(struct tally_events **events, const char *form, char *text, size_t size)
{
	size_t n = 0;

	for (const char *c = form; *c && n + strlen(file) + 1 < size; c++) {
		if (*c == '%')
			n += (size_t)snprintf(text + n, size - n, "%s", file);
		else
			text[n++] = *c;
	}
	text[n] = '\0';
	memset(&err, 0, sizeof(err));
	*events = NULL;
	return tally_events_parse(events, text, TALLY_OPTS(events, .root = root.path), &err);
}

static void what_the_kernel_is_asked_for(void)
{
	static const struct {
		const char *form, *about; /* about: NULL: the file */
		uint32_t type;
		uint64_t config, offset;
		bool user_only;
	} want[] = {
		{ "kprobe:vfs_read", "vfs_read", 6, 0, 0, false },
		{ "kprobe:vfs_read+0x10", "vfs_read", 6, 0, 16, false },
		{ "kprobe:vfs_read+12:k", "vfs_read", 6, 0, 12, false },
		{ "kretprobe:vfs_read", "vfs_read", 6, 1, 0, false },
		{ "uprobe:%:serve", NULL, 7, 0, FAKEELF_TEXT + 0x10, false },
		{ "uprobe:%:serve+0x1f", NULL, 7, 0, FAKEELF_TEXT + 0x2f, false },
		{ "uprobe:%:server+4", NULL, 7, 0, FAKEELF_TEXT + 0x44, false },
		{ "uprobe:%:0x1004", NULL, 7, 0, 0x1004, false },
		{ "uprobe:%:server:u", NULL, 7, 0, FAKEELF_TEXT + 0x40, true },
		{ "uretprobe:%:serve", NULL, 7, 1, FAKEELF_TEXT + 0x10, false },
		{ "uretprobe:%:0x1010", NULL, 7, 1, 0x1010, false },
	};

	setup(true);
	for (size_t i = 0; i < COUNT(want); i++) {
		struct tally_events *events;
		char text[PATH_MAX], real[PATH_MAX];
		int r = parse(&events, want[i].form, text, sizeof(text));
		if (r < 0)
			check_str(err.text, text);
		require(r == 0);
		const struct tally_event *e = tally_events_at(events, 0);
		const struct tally_attr *attr = tally_event_attr(e);
		check_int(tally_events_count(events), 1);
		check_str(tally_event_name(e), text);
		check_int(attr->type, want[i].type);
		check_u64(attr->config, want[i].config);
		check_u64(attr->config2, want[i].offset);
		require(attr->config1 && realpath(file, real));
		check_str((const char *)(uintptr_t)attr->config1,
			  want[i].about ? want[i].about : real);
		check(!(attr->flags & TALLY_ATTR_EXCLUDE_KERNEL) == !want[i].user_only);
		check(event_is_hit(e)); /* and so each is a sample */
		check_int(probe_kind_of(attr, root.path),
			  want[i].type == 6 ? PROBE_KERNEL : PROBE_USER);
		tally_events_free(events);
	}
	fakeroot_remove(&root);
}

/* The texts live as long as the list, however it grows and whatever moves. */
static void several_in_a_list(void)
{
	struct tally_events *events;
	char text[4 * PATH_MAX];

	setup(true);
	require(parse(&events, "{uprobe:%:serve,uretprobe:%:serve,cs}:D kprobe:a,kprobe:b,kprobe:c",
		      text, sizeof(text)) == 0);
	check_int(tally_events_count(events), 6);
	for (uint32_t i = 3; i < 6; i++) {
		const struct tally_attr *attr = tally_event_attr(tally_events_at(events, i));
		check_int(*(const char *)(uintptr_t)attr->config1, "abc"[i - 3]);
	}
	tally_events_free(events);
	fakeroot_remove(&root);
}

static void a_relative_path_is_taken_from_here(void)
{
	struct tally_events *events;
	char here[PATH_MAX], text[PATH_MAX], real[PATH_MAX];

	setup(true);
	require(getcwd(here, sizeof(here)) && chdir(root.path) == 0);
	check_int(parse(&events, "uprobe:bin/../bin/daemon:serve", text, sizeof(text)), 0);
	require(chdir(here) == 0 && events && realpath(file, real));
	check_str((const char *)(uintptr_t)tally_event_attr(tally_events_at(events, 0))->config1,
		  real);
	tally_events_free(events);
	fakeroot_remove(&root);
}

static void errors_say_where_and_why(void)
{
	static const struct {
		const char *form;
		int code;
		const char *part;
	} wrong[] = {
		{ "kprobe:", -EINVAL, "column 8: the function is missing: kprobe:FUNCTION" },
		{ "kprobe::u", -EINVAL, "function is missing" },
		{ "kprobe:+4", -EINVAL, "function is missing" },
		{ "kprobe:f+", -EINVAL, "column 10: the offset is no number" },
		{ "kprobe:f+x", -EINVAL, "the offset is no number" },
		{ "kretprobe:f+4", -EINVAL, "whole function" },
		{ "kprobe:f:u", -EINVAL, "kernel mode" },
		{ "kprobe:f:z", -EINVAL, "no modifier 'z'" },
		{ "uprobe:", -EINVAL, "uprobe:PATH:FUNCTION" },
		{ "uprobe::serve", -EINVAL, "column 8: the file is missing" },
		{ "cs,uprobe:%", -EINVAL, "function is missing" },
		{ "uprobe:%:", -EINVAL, "function is missing" },
		{ "uprobe:%:serve:k", -EINVAL, "user mode" },
		{ "uprobe:%:serv", -EINVAL, "nearest is 'serve" },
		{ "uprobe:%:serve+0x20", -EINVAL, "has 32 bytes" },
		{ "uprobe:%:0x", -EINVAL, "no function '0x'" },
		{ "uprobe:%:0xzz", -EINVAL, "no offset" },
		{ "uprobe:%:0x1000+4", -EINVAL, "no offset" },
		{ "uprobe:%:0x10", -EINVAL, "would change data" },
		{ "uprobe:%:0x11111111111111111", -EINVAL, "no offset" },
		{ "uretprobe:%:serve+1", -EINVAL, "whole function" },
		{ "uprobe:%.none:serve", -ENOENT, "column 8: cannot find the file" },
		{ "uprobe:/dev/null:serve", -EINVAL, "no regular file" },
		{ "uprobe:/proc:serve", -EINVAL, "no regular file" },
		{ "uprobe:%/:serve", -ENOTDIR, "cannot find the file" },
	};

	setup(true);
	for (size_t i = 0; i < COUNT(wrong); i++) {
		struct tally_events *events;
		char text[PATH_MAX];
		check_int(parse(&events, wrong[i].form, text, sizeof(text)), wrong[i].code);
		check_has(err.text, wrong[i].part);
		check_has(err.text, "column ");
	}
	fakeroot_remove(&root);
}

static void a_kernel_without_the_pmus(void)
{
	struct tally_events *events;
	char text[PATH_MAX];
	struct tally_attr attr;

	setup(false);
	check_int(parse(&events, "kprobe:vfs_read", text, sizeof(text)), -EINVAL);
	check_has(err.text, "no PMU 'kprobe' (Linux 4.17, CONFIG_KPROBE_EVENTS)");
	check_int(err.cause, TALLY_CAUSE_UNSUPPORTED);
	check_int(parse(&events, "uprobe:%:serve", text, sizeof(text)), -EINVAL);
	check_has(err.text, "CONFIG_UPROBE_EVENTS");
	tally_attr_init(&attr, 7, 0);
	check_int(probe_kind_of(&attr, root.path), PROBE_NONE);
	/* A type that is no number, and a bit that is none. */
	fakeroot_file(&root, DEVICES "kprobe/type", "six\n");
	check_int(parse(&events, "kprobe:vfs_read", text, sizeof(text)), -EINVAL);
	fakeroot_file(&root, DEVICES "kprobe/type", "6\n");
	fakeroot_file(&root, DEVICES "kprobe/format/retprobe", "config1:0\n");
	check_int(parse(&events, "kretprobe:vfs_read", text, sizeof(text)), -EINVAL);
	fakeroot_file(&root, DEVICES "kprobe/format/retprobe", "config:5\n");
	require(parse(&events, "kretprobe:vfs_read", text, sizeof(text)) == 0);
	check_u64(tally_event_attr(tally_events_at(events, 0))->config, 1u << 5);
	tally_events_free(events);
	fakeroot_remove(&root);
}

int main(void)
{
	tap_run(what_the_kernel_is_asked_for);
	tap_run(several_in_a_list);
	tap_run(a_relative_path_is_taken_from_here);
	tap_run(errors_say_where_and_why);
	tap_run(a_kernel_without_the_pmus);
	return tap_end();
}
