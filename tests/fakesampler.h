/* SPDX-License-Identifier: MIT */
/*
 * A kernel that is made up, for tests of the sampler: descriptors and maps are counted, every call can
 * be made to fail, and what was asked for can be looked at. Include it once in a test program; it
 * defines sys().
 */
#ifndef TESTS_FAKESAMPLER_H
#define TESTS_FAKESAMPLER_H

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <tally/sampler.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/sys.h"
#include "fakeroot.h"
#include "tap.h"

#define FIRST_FD 1000
#define MAX_FDS  256

struct fake_event {
	bool open;
	struct tally_attr attr;
	int32_t tid, cpu;
	int group_fd, output;
	bool enabled;
	uint64_t count, enabled_ns, running_ns;
	void *mapped;
	size_t map_len;
	short revents;
};

static struct {
	struct fake_event events[MAX_FDS];
	int opened, open_fds, maps;
	int calls, fail_call, fail_code; /* the how-manieth call fails, from 1 */
	int failed;
	int32_t gone_tid; /* perf_event_open answers ESRCH for it */
	bool no_lost;     /* a kernel before 6.0 */
	bool has_pmu;     /* hardware events can be opened */
	size_t map_limit; /* bytes of a map beyond which map_code is answered; 0: none */
	int map_code;
	int polls, poll_answer;
	bool with_data; /* rings can be written to */
	uint64_t lost;
	int seized, let_go;
	bool refuse_ptrace;
	int cgroup_fd; /* of the folder that was opened last */
	void (*on_open)(void);
} fake;

static struct fakeroot root;

static struct fake_event *event_of(int fd)
{
	static struct fake_event none;

	if (!check(fd >= FIRST_FD && fd < FIRST_FD + MAX_FDS && fake.events[fd - FIRST_FD].open))
		return &none;
	return &fake.events[fd - FIRST_FD];
}

/* Whether this call is the one that shall fail. */
static bool fails(void)
{
	if (++fake.calls != fake.fail_call)
		return false;
	fake.failed++;
	return true;
}

static void remove_thread(int32_t pid, int32_t tid)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/proc/%d/task/%d/comm", root.path, pid, tid);
	unlink(path);
	*strrchr(path, '/') = '\0';
	rmdir(path);
}

static int fake_open_event(void *attr, pid_t pid, int cpu, int group_fd, unsigned long flags)
{
	const struct tally_attr *a = attr;

	check(flags & PERF_FLAG_FD_CLOEXEC);
	if (flags & PERF_FLAG_PID_CGROUP)
		fake.cgroup_fd = pid;
	if (fake.on_open)
		fake.on_open();
	if (fails())
		return fake.fail_code;
	if (fake.gone_tid && pid == fake.gone_tid) {
		remove_thread(77, pid);
		return -ESRCH;
	}
	if (a->type == TALLY_TYPE_HARDWARE && !fake.has_pmu)
		return -ENOENT;
	if (group_fd >= 0 && a->flags & (TALLY_ATTR_PINNED | TALLY_ATTR_EXCLUSIVE))
		return -EINVAL; /* "only group leaders can be exclusive or pinned" */
	if (fake.no_lost && a->read_format & TALLY_READ_LOST)
		return -EINVAL;
	if (!check(fake.opened < MAX_FDS))
		return -EMFILE;
	fake.events[fake.opened] = (struct fake_event){ .open = true,
							.count = 100,
							.enabled_ns = 50,
							.running_ns = 50,
							.tid = pid,
							.cpu = cpu,
							.group_fd = group_fd,
							.output = -1 };
	memcpy(&fake.events[fake.opened].attr, attr, sizeof(*a) < a->size ? sizeof(*a) : a->size);
	fake.open_fds++;
	return FIRST_FD + fake.opened++;
}

static int fake_ioctl(int fd, unsigned long request, unsigned long arg)
{
	struct fake_event *e = event_of(fd);

	if (fails())
		return fake.fail_code;
	if (request == PERF_EVENT_IOC_ID) {
		uint64_t id = (uint64_t)fd * 10;
		memcpy((void *)arg, &id, sizeof(id));
	} else if (request == PERF_EVENT_IOC_SET_OUTPUT) {
		/* perf_event_set_output(): one CPU, one clock, and the target is mapped. */
		struct fake_event *to = event_of((int)arg);
		check_int(to->cpu, e->cpu);
		check_int(to->attr.clockid, e->attr.clockid);
		check(to->mapped && !e->mapped);
		check(e->cpu != -1 || e->tid == to->tid);
		e->output = (int)arg;
	} else if (request == PERF_EVENT_IOC_ENABLE || request == PERF_EVENT_IOC_DISABLE) {
		e->enabled = request == PERF_EVENT_IOC_ENABLE;
	} else if (request == PERF_EVENT_IOC_PERIOD) {
		memcpy(&e->attr.sample_period, (void *)arg, sizeof(uint64_t));
	} else {
		check_u64(request, 0);
	}
	return 0;
}

static int fake_mmap(void **addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	struct fake_event *e = event_of(fd);

	if (fails())
		return fake.fail_code;
	if (fake.map_limit && len > fake.map_limit)
		return fake.map_code;
	/* perf_mmap(): an inherited event must be bound to a CPU. */
	if (!check(e->cpu >= 0 || !(e->attr.flags & TALLY_ATTR_INHERIT)))
		return -EINVAL;
	fake.maps++;
	/* The first page is enough where nobody writes records. */
	*addr = e->mapped = calloc(1, fake.with_data ? len : 4096);
	e->map_len = len;
	return 0;
}

static int fake_munmap(void *addr, size_t len)
{
	for (int i = 0; i < fake.opened; i++)
		if (fake.events[i].mapped == addr)
			fake.events[i].mapped = NULL;
	fake.maps--;
	free(addr);
	return 0;
}

static int fake_close(int fd)
{
	if (fd < FIRST_FD) /* a small file */
		return sys_kernel.close(fd);
	/* Its ring is gone, which others may have written to until then. */
	check(event_of(fd)->mapped == NULL);
	event_of(fd)->open = false;
	fake.open_fds--;
	return 0;
}

static ssize_t fake_read(int fd, void *buf, size_t len)
{
	if (fd < FIRST_FD)
		return sys_kernel.read(fd, buf, len);
	struct fake_event *e = event_of(fd);
	if (e->attr.flags & TALLY_ATTR_PINNED) /* it found no counter: perf_read() */
		return 0;
	bool group = e->attr.read_format & TALLY_READ_GROUP;
	bool lost = e->attr.read_format & TALLY_READ_LOST;
	/* perf_event_open(2), "Reading results": times, then ids and losses. */
	const uint64_t one[] = { e->count, e->enabled_ns, e->running_ns, 7, fake.lost };
	const uint64_t two[] = { 2, 50, 50, 100, 7, fake.lost, 200, 8, 1000 };
	const uint64_t two_without[] = { 2, 50, 50, 100, 7, 200, 8 };

	if (fails())
		return fake.fail_code;
	check((e->attr.read_format & 7) == 7);
	const uint64_t *from = !group ? one : lost ? two : two_without;
	size_t n = sizeof(uint64_t) * (group ? (lost ? 9 : 7) : (lost ? 5 : 4));
	if (len < n)
		return -ENOSPC;
	memcpy(buf, from, n);
	return (ssize_t)n;
}

static int fake_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	int ready = 0;

	fake.polls++;
	if (fake.poll_answer < 0)
		return fake.poll_answer;
	for (nfds_t i = 0; i < count; i++) {
		fds[i].revents = fds[i].fd < FIRST_FD ? 0 : event_of(fds[i].fd)->revents;
		ready += fds[i].revents != 0;
	}
	return ready;
}

static long fake_ptrace(int request, pid_t pid, unsigned long addr, unsigned long data)
{
	(void)pid, (void)addr, (void)data;
	if (request == PTRACE_SEIZE && fake.refuse_ptrace)
		return -EPERM;
	fake.seized += request == PTRACE_SEIZE;
	fake.let_go += request == PTRACE_DETACH;
	return 0;
}

static int fake_waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
	(void)type, (void)options;
	memset(info, 0, sizeof(*info));
	info->si_pid = (pid_t)id;
	info->si_status = PTRACE_EVENT_STOP << 8 | SIGTRAP;
	return 0;
}

/* A freeze asks from a thread of its own, so that the table is made once. */
const struct sys_table *sys(void)
{
	static struct sys_table table;

	if (table.poll)
		return &table;
	table = sys_kernel;
	table.ptrace = fake_ptrace;
	table.waitid = fake_waitid;
	table.perf_event_open = fake_open_event;
	table.ioctl = fake_ioctl;
	table.read = table.plain_read = fake_read;
	table.close = fake_close;
	table.mmap = fake_mmap;
	table.munmap = fake_munmap;
	table.poll = fake_poll;
	return &table;
}

static inline void fake_reset(void)
{
	memset(&fake, 0, sizeof(fake));
}

/* Whether all that was opened and mapped is gone again. */
static inline bool nothing_leaked(void)
{
	bool closed = check_int(fake.open_fds, 0);

	return check_int(fake.maps, 0) && closed;
}

#define USER "CapEff:\t0000000000000000\n"
#define ROOT "CapEff:\t000001ffffffffff\n"

static void make_root(const char *status)
{
	require(fakeroot_make(&root));
	fakeroot_file(&root, "/proc/sys/kernel/perf_event_paranoid", "2\n");
	fakeroot_file(&root, "/proc/sys/kernel/perf_event_max_sample_rate", "50000\n");
	fakeroot_file(&root, "/proc/sys/kernel/perf_event_mlock_kb", "516\n");
	fakeroot_file(&root, "/sys/devices/system/cpu/online", "0-3\n");
	fakeroot_file(&root, "/proc/self/status", status);
}

static void add_thread_in(int32_t pid, int32_t tid, const char *stat)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	fakeroot_file(&root, path, stat);
}

static inline void add_thread(int32_t pid, int32_t tid)
{
	add_thread_in(pid, tid, "1 (x) R 0\n");
}

static struct tally_events *events_of(const char *text)
{
	struct tally_events *events = NULL;
	struct tally_error err;

	check_int(tally_events_parse(&events, text,
				     TALLY_OPTS(events,
						.fallback = TALLY_FALLBACK_CPU_CLOCK |
							    TALLY_FALLBACK_NEWER_BITS,
						.root = root.path),
				     &err),
		  0);
	return events;
}

static const __attribute__((unused)) struct tally_target all_cpus = { .scope = TALLY_SCOPE_CPUS };
static const __attribute__((unused)) struct tally_target command = { .scope = TALLY_SCOPE_COMMAND,
								     .id = 77 };
static const __attribute__((unused)) struct tally_target process = { .scope = TALLY_SCOPE_PROCESS,
								     .id = 77 };
static const __attribute__((unused)) struct tally_target thread = { .scope = TALLY_SCOPE_THREAD,
								    .id = 78 };
static const __attribute__((unused)) struct tally_target self = { .scope = TALLY_SCOPE_SELF };

static inline struct tally_sampler *open_with(struct tally_events *events,
					      const struct tally_target *target,
					      struct tally_sampler_opts *opts)
{
	struct tally_sampler *s = NULL;
	struct tally_error err = { 0 };

	opts->size = sizeof(*opts);
	opts->root = root.path;
	if (!check_int(tally_sampler_open(&s, events, target, opts, &err), 0))
		printf("# %s\n", err.text);
	return s;
}

/* Opens `text` on a target, looks at it by `look`, and checks that nothing remains. */
static inline void with(const char *text, const struct tally_target *target,
			struct tally_sampler_opts opts, void (*look)(struct tally_sampler *s))
{
	struct tally_events *events = events_of(text);
	struct tally_sampler *s = events ? open_with(events, target, &opts) : NULL;

	if (s)
		look(s);
	tally_sampler_close(s);
	tally_events_free(events);
	nothing_leaked();
	fakeroot_remove(&root);
}

#endif
