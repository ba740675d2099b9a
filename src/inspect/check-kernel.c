/* SPDX-License-Identifier: MIT */
/* Checks of the kernel's settings and files, and of what this user may do with them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/capability.h"
#include "base/proc.h"
#include "image/build-id.h"
#include "inspect/check.h"
#include "inspect/probe.h"

#define SMALL_FILE   65536
#define MOUNTS_LIMIT (4u << 20)

#define CONTAINER_MEND                                                                           \
	"start the container with its own profile: docker run --cap-add PERFMON --security-opt " \
	"seccomp=unconfined ..."

static bool has(const struct doctor *d, unsigned capability)
{
	return d->system.capabilities >> capability & 1;
}

void check_reached(const struct doctor *d, struct finding *f)
{
	if (d->system.paranoid == TALLY_SYSTEM_UNKNOWN) {
		finding_set(f, TALLY_FINDING_FAILS, "not in this kernel");
		finding_means(f,
			      "/proc/sys/kernel/perf_event_paranoid is missing: this kernel has no "
			      "performance events, so nothing can be counted or sampled");
		finding_mend(f, "run a kernel that was built with CONFIG_PERF_EVENTS=y");
		return;
	}
	if (d->reached == 0) {
		finding_set(f, TALLY_FINDING_OK, "in this kernel, %s", d->system.release);
		finding_means(f, "perf_event_open(2) answers");
		return;
	}
	finding_set(f, TALLY_FINDING_FAILS, "%s",
		    d->reached == -PROBE_KILLED ? "whoever asks is killed" : strerror(-d->reached));
	finding_means(f, "the kernel has performance events, but perf_event_open(2) does not get "
			 "through to it");
	finding_mend(f, CONTAINER_MEND);
}

/* What each level of kernel.perf_event_paranoid leaves to a user without capabilities. */
static const struct level {
	int64_t from; /* this level and those above, up to the next row */
	enum tally_finding_state state;
	const char *meaning;
} levels[] = {
	{ 3, TALLY_FINDING_FAILS, "this user may open no event at all" },
	{ 2, TALLY_FINDING_LIMITED,
	  "this user may count and sample own processes in user mode; not the kernel's part of them, "
	  "no whole CPUs, no tracepoints" },
	{ 1, TALLY_FINDING_LIMITED,
	  "this user may count and sample own processes, user and kernel mode; no whole CPUs, no "
	  "tracepoints" },
	{ 0, TALLY_FINDING_OK,
	  "this user may count and sample processes and whole CPUs; no raw data of tracepoints" },
	{ INT64_MIN, TALLY_FINDING_OK, "this user may open every event" },
};

void check_paranoid(const struct doctor *d, struct finding *f)
{
	int64_t paranoid = d->system.paranoid;
	const struct level *level = levels;

	if (paranoid == TALLY_SYSTEM_UNKNOWN) {
		finding_set(f, TALLY_FINDING_UNKNOWN, "no such setting");
		finding_means(f, "this kernel has no performance events");
		return;
	}
	while (paranoid < level->from)
		level++;
	if (d->system.may_profile_all && paranoid >= 0) {
		finding_set(f, TALLY_FINDING_OK, "%lld", (long long)paranoid);
		finding_means(f, "it does not bind this user, who has CAP_PERFMON or "
				 "CAP_SYS_ADMIN");
		return;
	}
	finding_set(f, level->state, "%lld", (long long)paranoid);
	finding_means(f, "%s", level->meaning);
	if (level->state != TALLY_FINDING_OK)
		finding_mend(f, "sysctl -w kernel.perf_event_paranoid=%d", paranoid > 1 ? 1 : 0);
}

static void list_capabilities(const struct doctor *d, char *out, size_t size)
{
	static const struct {
		unsigned bit;
		const char *name;
	} known[] = {
		{ CAP_PERFMON, "perfmon" },       { CAP_SYS_ADMIN, "sys_admin" },
		{ CAP_SYS_PTRACE, "sys_ptrace" }, { CAP_SYSLOG, "syslog" },
		{ CAP_IPC_LOCK, "ipc_lock" },
	};
	size_t used = 0;

	snprintf(out, size, "none that helps");
	for (size_t i = 0; i < ARRAY_SIZE(known) && used < size; i++)
		if (has(d, known[i].bit))
			used += (size_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "",
						 known[i].name);
}

void check_capabilities(const struct doctor *d, struct finding *f)
{
	char list[96];

	list_capabilities(d, list, sizeof(list));
	if (proc_in_user_namespace(d->root)) {
		finding_set(f, TALLY_FINDING_LIMITED, "%s, in a user namespace", list);
		finding_means(f,
			      "perf events ask for capabilities of the first user namespace: those "
			      "of this one do not count");
		finding_mend(
			f, "run it outside of the user namespace (rootless container, unshare -U)");
		return;
	}
	if (has(d, CAP_SYS_ADMIN) || (has(d, CAP_PERFMON) && has(d, CAP_SYS_PTRACE))) {
		finding_set(f, TALLY_FINDING_OK, "%s", list);
		finding_means(f, "enough to profile the whole system and other users' processes");
		return;
	}
	finding_set(f, d->system.paranoid < 0 ? TALLY_FINDING_OK : TALLY_FINDING_LIMITED, "%s",
		    list);
	finding_means(f, "this user sees own processes, and as much as kernel.perf_event_paranoid "
			 "leaves");
	finding_mend(f, "setcap cap_perfmon,cap_sys_ptrace,cap_syslog=ep %s", d->program);
}

void check_seccomp(const struct doctor *d, struct finding *f)
{
	if (d->system.seccomp == TALLY_SYSTEM_UNKNOWN) {
		finding_set(f, TALLY_FINDING_UNKNOWN, "/proc/self/status does not say");
		finding_means(f, "%s",
			      d->reached == 0
				      ? "if there is a filter, it lets perf events through"
				      : "a filter may be what keeps perf events from this process");
		return;
	}
	if (d->system.seccomp == 0) {
		finding_set(f, TALLY_FINDING_OK, "no filter");
		finding_means(f, "no seccomp filter stands between this process and the kernel");
		return;
	}
	if (d->reached == 0) {
		finding_set(f, TALLY_FINDING_OK, "a filter, which lets perf events through");
		return;
	}
	finding_set(f, TALLY_FINDING_FAILS, "a filter, which refuses perf_event_open(2)");
	finding_means(f, "this is how containers are set up unless told otherwise");
	finding_mend(f, CONTAINER_MEND);
}

/*
 * 0 when kallsyms shows addresses, 1 when it shows zeros, or -errno. Before 6.15 x86 has its per-CPU
 * symbols first, some of which really are at 0, so one line does not tell; it is not read whole,
 * since the kernel takes its time to format it.
 */
static int hides_addresses(const struct doctor *d)
{
	struct buf text = { 0 };
	int r = proc_read(&text, d->root, "/proc/kallsyms", SMALL_FILE);
	bool hidden = true;

	if (r == -EFBIG)
		r = 0;
	if (r == 0 && !buf_text(&text))
		r = -ENOMEM;
	for (const char *line = r == 0 ? text.at : NULL; line && *line && hidden;) {
		hidden = !strtoull(line, NULL, 16);
		line = strchr(line, '\n');
		line += line != NULL;
	}
	buf_done(&text);
	return r < 0 ? r : hidden;
}

/*
 * kernel/ksyms_common.c: 0 shows addresses to all where the paranoid level is 1 or less, 0 and 1 to
 * CAP_SYSLOG, 2 to nobody.
 */
void check_kernel_symbols(const struct doctor *d, struct finding *f)
{
	int64_t restricted = d->system.kptr_restrict;
	int hidden = hides_addresses(d);

	if (hidden < 0) {
		finding_set(f, TALLY_FINDING_LIMITED, "/proc/kallsyms: %s", strerror(-hidden));
		finding_means(f, "kernel addresses in profiles stay without names");
		finding_mend(f, "run a kernel that was built with CONFIG_KALLSYMS=y");
		return;
	}
	if (!hidden) {
		finding_set(f, TALLY_FINDING_OK, "addresses are shown");
		finding_means(f, "kernel functions in profiles have names");
		return;
	}
	if (restricted == TALLY_SYSTEM_UNKNOWN)
		finding_set(f, TALLY_FINDING_LIMITED, "addresses are hidden");
	else
		finding_set(f, TALLY_FINDING_LIMITED, "addresses are hidden, kptr_restrict is %lld",
			    (long long)restricted);
	finding_means(f, "kernel addresses in profiles stay without names");
	if (d->system.may_profile_all || d->system.paranoid < 2)
		finding_mend(f, "sysctl -w kernel.kptr_restrict=0");
	else
		finding_mend(f, "sysctl -w kernel.kptr_restrict=0 kernel.perf_event_paranoid=1");
}

void check_kernel_build_id(const struct doctor *d, struct finding *f)
{
	struct buf notes = { 0 };
	int r = proc_read(&notes, d->root, "/sys/kernel/notes", SMALL_FILE);

	if (r == 0 && notes.len && build_id_from_notes(notes.at, notes.len, false).len) {
		finding_set(f, TALLY_FINDING_OK, "known");
		finding_means(f, "a recording tells which kernel it is from");
	} else {
		finding_set(f, TALLY_FINDING_LIMITED, "%s",
			    r < 0 ? strerror(-r) : "/sys/kernel/notes holds none");
		finding_means(f, "a recording cannot tell which kernel it is from; read it on this "
				 "machine, before the kernel is replaced");
	}
	buf_done(&notes);
}

/* The line of /proc/mounts for `point`, its options copied to `options`. */
static bool find_mount(const struct doctor *d, const char *point, const char *type, char *options,
		       size_t size)
{
	struct buf text = { 0 };
	bool found = false;

	if (proc_read(&text, d->root, "/proc/mounts", MOUNTS_LIMIT) == 0 && buf_text(&text)) {
		char *rest = NULL;
		for (char *line = strtok_r(text.at, "\n", &rest); line && !found;
		     line = strtok_r(NULL, "\n", &rest)) {
			char at[256], fs[64], opts[512];
			found = sscanf(line, "%*s %255s %63s %511s", at, fs, opts) == 3 &&
				(!point || !strcmp(at, point)) && !strcmp(fs, type);
			if (found)
				snprintf(options, size, "%s", point ? opts : at);
		}
	}
	buf_done(&text);
	return found;
}

static bool kernel_has_filesystem(const struct doctor *d, const char *type)
{
	struct buf text = { 0 };
	char line[64];
	bool found = false;

	snprintf(line, sizeof(line), "\t%s\n", type);
	if (proc_read(&text, d->root, "/proc/filesystems", SMALL_FILE) == 0 && buf_text(&text))
		found = strstr(text.at, line);
	buf_done(&text);
	return found;
}

void check_tracefs(const struct doctor *d, struct finding *f)
{
	char at[256];

	if (d->system.tracefs[0]) {
		finding_set(f, TALLY_FINDING_OK, "%s", d->system.tracefs);
		finding_means(f, "tracepoints can be used by name");
		return;
	}
	if (find_mount(d, NULL, "tracefs", at, sizeof(at))) {
		finding_set(f, TALLY_FINDING_LIMITED, "%s, unreadable for this user", at);
		finding_means(f, "tracepoints cannot be looked up by name");
		finding_mend(f, "mount -o remount,mode=755 %s", at);
	} else if (kernel_has_filesystem(d, "tracefs")) {
		finding_set(f, TALLY_FINDING_LIMITED, "not mounted");
		finding_means(f, "tracepoints cannot be looked up by name");
		finding_mend(f, "mount -t tracefs nodev /sys/kernel/tracing");
	} else {
		finding_set(f, TALLY_FINDING_LIMITED, "not in this kernel");
		finding_means(f, "there are no tracepoints");
		finding_mend(f, "run a kernel that was built with CONFIG_FTRACE=y");
	}
}

/* Whether a word "name=..." in mount options has a value other than 0 and off. */
static bool hides_pids(const char *options)
{
	const char *word = strstr(options, "hidepid=");

	return word && strncmp(word + 8, "0", 1) && strncmp(word + 8, "off", 3);
}

void check_processes(const struct doctor *d, struct finding *f)
{
	char options[512] = "";

	if (has(d, CAP_SYS_PTRACE) && !proc_in_user_namespace(d->root)) {
		finding_set(f, TALLY_FINDING_OK, "all");
		finding_means(f, "processes of all users can be attached to");
		return;
	}
	if (find_mount(d, "/proc", "proc", options, sizeof(options)) && hides_pids(options)) {
		finding_set(f, TALLY_FINDING_LIMITED, "own ones; others are hidden (hidepid)");
		finding_means(f,
			      "processes of other users cannot be seen or attached to, and their "
			      "code in recordings of whole CPUs stays without names");
		finding_mend(f, "mount -o remount,hidepid=0 /proc");
		return;
	}
	finding_set(f, TALLY_FINDING_LIMITED, "own ones");
	finding_means(f, "processes of other users cannot be attached to, and their code in "
			 "recordings of whole CPUs stays without names");
	finding_mend(f, "setcap cap_perfmon,cap_sys_ptrace,cap_syslog=ep %s", d->program);
}

/* Documentation/admin-guide/LSM/Yama.rst; it binds stepping, not counting and sampling. */
void check_ptrace(const struct doctor *d, struct finding *f)
{
	int64_t scope;

	if (proc_read_i64(&scope, d->root, "/proc/sys/kernel/yama/ptrace_scope") < 0 ||
	    scope == 0) {
		finding_set(f, TALLY_FINDING_OK, "not restricted by Yama");
		finding_means(f, "running processes of this user can be traced");
		return;
	}
	if (scope < 3 && has(d, CAP_SYS_PTRACE)) {
		finding_set(f, TALLY_FINDING_OK, "yama.ptrace_scope is %lld", (long long)scope);
		finding_means(f, "it does not bind this user, who has CAP_SYS_PTRACE");
		return;
	}
	finding_set(f, TALLY_FINDING_LIMITED, "yama.ptrace_scope is %lld", (long long)scope);
	if (scope == 3) {
		finding_means(f,
			      "no process can be traced until the next boot, own children neither");
		finding_mend(f, "boot with kernel.yama.ptrace_scope=0 in /etc/sysctl.d");
	} else {
		finding_means(f,
			      "%s can be traced; others are counted and sampled, but not attached "
			      "to at one moment",
			      scope == 1 ? "only children" : "no process of this user");
		finding_mend(f, "sysctl -w kernel.yama.ptrace_scope=0");
	}
}
