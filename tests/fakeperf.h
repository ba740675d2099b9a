/* SPDX-License-Identifier: MIT */
/*
 * A kernel for the tests of counters: perf_event_open(2), ioctl(2), fcntl(2), read(2) and close(2) on
 * events that count what a test says, after the manual page and Linux 6.18, and ptrace(2) and
 * waitid(2) of threads that stop when they are asked to. Everything else goes to the real one.
 * Include it once in a test program; it defines sys().
 */
#ifndef TESTS_FAKEPERF_H
#define TESTS_FAKEPERF_H

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>

#include <tally/attr.h>

#include "base/sys.h"

#define FAKE_FIRST 100000 /* descriptors from here on are ours */
#define FAKE_MAX   64

struct fake_event {
	bool open;
	struct tally_attr attr;
	pid_t pid;
	int cpu, leader; /* group_fd as given */
	unsigned long flags;
	uint64_t id, value, enabled, running, lost;
	bool end_of_file; /* PERF_EVENT_STATE_ERROR */
	unsigned enables, disables, resets, group_verbs;
	bool on;
	uint64_t limit, period, output; /* of REFRESH, PERIOD, SET_OUTPUT */
	bool paused;
	char filter[64];
	int progs[64];
	unsigned prog_count;
	struct tally_attr modified; /* by MODIFY_ATTRIBUTES */
	int file_flags, signo;
	struct f_owner_ex owner;
	void *page; /* what was mapped of it last */
};

static struct {
	struct fake_event events[FAKE_MAX];
	int opened, open; /* ever, and now */
	/* What goes wrong. */
	int fail_open_at, fail_open_code; /* the n-th open from 1 on */
	pid_t missing_pid;                /* -ESRCH for it */
	int fail_ioctl_fd, fail_ioctl_code;
	int fail_read_code;
	size_t cut_read;   /* answer only so many bytes */
	uint64_t stale_ns; /* since a cgroup was watched last, when an event of it is enabled */
	bool knows_lost;   /* READ_LOST, Linux 6.0 */
	bool reversed;     /* members of a group from the last to the first */
	bool drops_last;   /* the last member left its group */
	int most_members;  /* of a group; more are EINVAL, as validate_group() has it */
	const char *bad_filter; /* EINVAL */
	uint64_t bad_address;   /* EINVAL, for breakpoints */
	int fail_fcntl_cmd, fail_fcntl_code;
	int fail_fcntl_fd; /* 0: at any descriptor */
	char fcntls[256];  /* what was called, in order */
	int ptrace_code;   /* what PTRACE_SEIZE answers */
	unsigned seized, detached;
	int files;               /* that are open beside the events */
	int fail_call_at, calls; /* the n-th call of all that can fail fails, from 1 on */
	int fail_mmap_code;      /* of an event's page */
	int fail_madvise_code;   /* MADV_WIPEONFORK, Linux 4.14 */
	int maps;                /* all kinds of memory, now */
} fake;

static void fake_reset(void)
{
	memset(&fake, 0, sizeof(fake));
	fake.knows_lost = true;
}

static inline struct fake_event *fake_at(int fd)
{
	return fd >= FAKE_FIRST && fd < FAKE_FIRST + FAKE_MAX ? &fake.events[fd - FAKE_FIRST]
							      : NULL;
}

/* Whether this call is the one that fails. */
static inline bool fake_fails(void)
{
	return ++fake.calls == fake.fail_call_at;
}

/* The n-th event that was opened, from 0 on. */
static inline struct fake_event *fake_nth(int n)
{
	return &fake.events[n];
}

static inline int fake_members(int leader)
{
	int members = 1;

	for (int i = 0; i < fake.opened; i++)
		members += fake.events[i].open && fake.events[i].leader == leader;
	return members;
}

static int fake_perf_event_open(void *attr, pid_t pid, int cpu, int group_fd, unsigned long flags)
{
	struct tally_attr a;

	memset(&a, 0, sizeof(a));
	memcpy(&a, attr, sizeof(a));
	if (fake_fails())
		return -EIO;
	if (fake.opened + 1 == fake.fail_open_at)
		return fake.fail_open_code;
	if (fake.missing_pid && pid == fake.missing_pid)
		return -ESRCH;
	if (!fake.knows_lost && a.read_format & TALLY_READ_LOST)
		return -EINVAL;
	if (group_fd >= 0 && (!fake_at(group_fd) || !fake_at(group_fd)->open))
		return -EBADF;
	if (fake.most_members && group_fd >= 0 && fake_members(group_fd) >= fake.most_members)
		return -EINVAL;
	if (fake.opened == FAKE_MAX)
		return -EMFILE;
	fake.events[fake.opened] = (struct fake_event){
		.open = true,
		.attr = a,
		.pid = pid,
		.cpu = cpu,
		.leader = group_fd,
		.flags = flags,
		.id = 7000u + (unsigned)fake.opened,
		.on = !(a.flags & TALLY_ATTR_DISABLED),
		.period = a.sample_period,
		.file_flags = O_RDWR,
	};
	fake.open++;
	return FAKE_FIRST + fake.opened++;
}

/* PERF_IOC_FLAG_GROUP reaches the members, and an event below a leader that is off stays off. */
static void fake_switch(struct fake_event *e, bool on, bool group)
{
	int fd = FAKE_FIRST + (int)(e - fake.events);

	e->on = on;
	for (int i = 0; group && i < fake.opened; i++)
		if (fake.events[i].open && fake.events[i].leader == fd)
			fake.events[i].on = on;
}

/* is_sampling_event() */
static bool fake_samples(const struct fake_event *e)
{
	return e->attr.sample_period != 0;
}

static int fake_refresh(struct fake_event *e, unsigned long arg)
{
	if (!fake_samples(e) || e->attr.flags & TALLY_ATTR_INHERIT)
		return -EINVAL;
	e->limit += arg;
	e->on = true;
	return 0;
}

static int fake_period(struct fake_event *e, unsigned long arg)
{
	uint64_t period;

	memcpy(&period, (const void *)arg, sizeof(period));
	if (!fake_samples(e) || !period || period >> 63)
		return -EINVAL;
	e->period = period;
	return 0;
}

/* ftrace_profile_set_filter() */
static int fake_filter(struct fake_event *e, const char *filter)
{
	if (e->attr.type != TALLY_TYPE_TRACEPOINT)
		return -EINVAL;
	if (e->filter[0])
		return -EEXIST;
	if (fake.bad_filter && !strcmp(filter, fake.bad_filter))
		return -EINVAL;
	snprintf(e->filter, sizeof(e->filter), "%s", filter);
	return 0;
}

static int fake_query(const struct fake_event *e, uint32_t *query)
{
	if (e->attr.type != TALLY_TYPE_TRACEPOINT)
		return -EINVAL;
	if (query[0] > 64)
		return -E2BIG;
	query[1] = e->prog_count;
	for (unsigned i = 0; i < e->prog_count && i < query[0]; i++)
		query[2 + i] = (uint32_t)e->progs[i];
	return query[0] < e->prog_count ? -ENOSPC : 0;
}

/*
 * perf_event_modify_breakpoint(): it stops the event, and starts it again by the disabled bit that
 * it has then, which is the new one only after a success.
 */
static int fake_modify(struct fake_event *e, const struct tally_attr *to)
{
	struct tally_attr same = e->attr;

	if (to->type != e->attr.type)
		return -EINVAL;
	if (e->attr.type != TALLY_TYPE_BREAKPOINT)
		return -EOPNOTSUPP;
	same.bp_type = to->bp_type;
	same.config1 = to->config1;
	same.config2 = to->config2;
	same.flags &= ~TALLY_ATTR_DISABLED;
	same.flags |= to->flags & TALLY_ATTR_DISABLED;
	int r = memcmp(&same, to, sizeof(same)) ||
				(fake.bad_address && to->config1 == fake.bad_address)
			? -EINVAL
			: 0;
	if (r == 0)
		e->attr = *to;
	e->on = !(e->attr.flags & TALLY_ATTR_DISABLED);
	return r;
}

static int fake_ioctl(int fd, unsigned long request, unsigned long arg)
{
	struct fake_event *e = fake_at(fd);

	if (!e)
		return sys_kernel.ioctl(fd, request, arg);
	if (fake_fails())
		return -EIO;
	if (!e->open)
		return -EBADF;
	if (fd == fake.fail_ioctl_fd)
		return fake.fail_ioctl_code;
	e->group_verbs += arg == PERF_IOC_FLAG_GROUP;
	switch (request) {
	case PERF_EVENT_IOC_ID:
		memcpy((void *)arg, &e->id, sizeof(e->id));
		return 0;
	case PERF_EVENT_IOC_ENABLE:
		if (e->flags & PERF_FLAG_PID_CGROUP && !e->on) {
			e->enabled += fake.stale_ns;
			e->running += fake.stale_ns;
		}
		fake_switch(e, true, arg & PERF_IOC_FLAG_GROUP);
		e->enables++;
		return 0;
	case PERF_EVENT_IOC_DISABLE:
		fake_switch(e, false, arg & PERF_IOC_FLAG_GROUP);
		e->disables++;
		return 0;
	case PERF_EVENT_IOC_RESET:
		e->resets++;
		return 0;
	case PERF_EVENT_IOC_REFRESH:
		return fake_refresh(e, arg);
	case PERF_EVENT_IOC_PERIOD:
		return fake_period(e, arg);
	case PERF_EVENT_IOC_SET_OUTPUT:
		e->output = arg;
		/* All 64 bits set detach; an int's -1 is a descriptor that is not there. */
		return arg == ~0ul || fake_at((int)arg) ? 0 : -EBADF;
	case PERF_EVENT_IOC_PAUSE_OUTPUT:
		e->paused = arg;
		return 0;
	case PERF_EVENT_IOC_SET_FILTER:
		return fake_filter(e, (const char *)arg);
	case PERF_EVENT_IOC_SET_BPF:
		e->progs[e->prog_count++] = (int)arg;
		return 0;
	case PERF_EVENT_IOC_QUERY_BPF:
		return fake_query(e, (uint32_t *)arg);
	case PERF_EVENT_IOC_MODIFY_ATTRIBUTES:
		return fake_modify(e, (const struct tally_attr *)arg);
	default:
		return -ENOTTY;
	}
}

static void fake_log(const char *what)
{
	size_t n = strlen(fake.fcntls);

	snprintf(fake.fcntls + n, sizeof(fake.fcntls) - n, "%s%s", n ? " " : "", what);
}

static int fake_fcntl(int fd, int cmd, unsigned long arg)
{
	struct fake_event *e = fake_at(fd);

	if (!e)
		return sys_kernel.fcntl(fd, cmd, arg);
	if (!e->open)
		return -EBADF;
	if (cmd == fake.fail_fcntl_cmd && (!fake.fail_fcntl_fd || fd == fake.fail_fcntl_fd))
		return fake.fail_fcntl_code;
	switch (cmd) {
	case F_GETFL:
		return e->file_flags;
	case F_SETFL:
		fake_log(arg & O_ASYNC ? "async" : "sync");
		e->file_flags = (int)arg;
		return 0;
	case F_SETSIG:
		fake_log("signal");
		e->signo = (int)arg;
		return 0;
	case F_SETOWN_EX:
		fake_log("owner");
		memcpy(&e->owner, (const void *)arg, sizeof(e->owner));
		return 0;
	default:
		return -EINVAL;
	}
}

static size_t fake_put_member(uint64_t *to, const struct fake_event *e, uint64_t format)
{
	size_t n = 0;

	to[n++] = e->value;
	if (format & TALLY_READ_ID)
		to[n++] = e->id;
	if (format & TALLY_READ_LOST)
		to[n++] = e->lost;
	return n;
}

static size_t fake_put_one(uint64_t *to, const struct fake_event *e)
{
	size_t n = 0;

	to[n++] = e->value;
	to[n++] = e->enabled;
	to[n++] = e->running;
	to[n++] = e->id;
	if (e->attr.read_format & TALLY_READ_LOST)
		to[n++] = e->lost;
	return n;
}

static size_t fake_put_group(uint64_t *to, const struct fake_event *leader)
{
	int fd = FAKE_FIRST + (int)(leader - fake.events);
	size_t n = 3;

	to[0] = 0;
	to[1] = leader->enabled;
	to[2] = leader->running;
	for (int i = 0; i < fake.opened; i++) {
		int k = fake.reversed ? fake.opened - 1 - i : i;
		const struct fake_event *e = &fake.events[k];
		if (!e->open || (e != leader && e->leader != fd))
			continue;
		if (fake.drops_last && e != leader && k == fake.opened - 1)
			continue;
		to[0]++;
		n += fake_put_member(to + n, e, leader->attr.read_format);
	}
	return n;
}

static ssize_t fake_read(int fd, void *buf, size_t len)
{
	uint64_t words[3 + 3 * FAKE_MAX];
	const struct fake_event *e = fake_at(fd);

	if (!e)
		return fake_fails() ? -EIO : sys_kernel.read(fd, buf, len);
	if (!e->open)
		return -EBADF;
	if (fake.fail_read_code)
		return fake.fail_read_code;
	if (e->end_of_file)
		return 0;
	size_t n = 8 * (e->attr.read_format & TALLY_READ_GROUP ? fake_put_group(words, e)
							       : fake_put_one(words, e));
	if (n > len)
		return -ENOSPC;
	if (fake.cut_read && fake.cut_read < n)
		n = fake.cut_read;
	memcpy(buf, words, n);
	return (ssize_t)n;
}

static int fake_close(int fd)
{
	struct fake_event *e = fake_at(fd);

	if (!e) {
		fake.files--;
		return sys_kernel.close(fd);
	}
	if (!e->open)
		return -EBADF;
	e->open = false;
	fake.open--;
	return 0;
}

static int fake_open(const char *path, int flags, mode_t mode)
{
	int fd = fake_fails() ? -EIO : sys_kernel.open(path, flags, mode);

	fake.files += fd >= 0;
	return fd;
}

/* Threads stop at once, and stay. */
static long fake_ptrace(int request, pid_t pid, unsigned long addr, unsigned long data)
{
	(void)pid, (void)addr, (void)data;
	if (request == PTRACE_DETACH)
		fake.detached++;
	if (request != PTRACE_SEIZE)
		return 0;
	if (fake_fails())
		return -EPERM;
	fake.seized += !fake.ptrace_code;
	return fake.ptrace_code;
}

static int fake_waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
	(void)type, (void)options;
	memset(info, 0, sizeof(*info));
	info->si_pid = (pid_t)id;
	info->si_status = PTRACE_EVENT_STOP << 8 | SIGTRAP;
	return 0;
}

/* The page of an event is fresh memory. */
static int fake_mmap(void **addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	struct fake_event *e = fake_at(fd);
	int r;

	if (e && fake.fail_mmap_code)
		return fake.fail_mmap_code;
	if (e)
		r = sys_kernel.mmap(addr, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				    -1, 0);
	else
		r = sys_kernel.mmap(addr, len, prot, flags, fd, offset);
	if (r == 0)
		fake.maps++;
	if (r == 0 && e)
		e->page = *addr;
	return r;
}

static int fake_munmap(void *addr, size_t len)
{
	fake.maps--;
	return sys_kernel.munmap(addr, len);
}

static int fake_madvise(void *addr, size_t len, int advice)
{
	return fake.fail_madvise_code ? fake.fail_madvise_code
				      : sys_kernel.madvise(addr, len, advice);
}

const struct sys_table *sys(void)
{
	static struct sys_table table;

	if (!table.read) {
		table = sys_kernel;
		table.perf_event_open = fake_perf_event_open;
		table.ioctl = fake_ioctl;
		table.read = table.plain_read = fake_read;
		table.close = fake_close;
		table.open = fake_open;
		table.ptrace = fake_ptrace;
		table.waitid = fake_waitid;
		table.fcntl = fake_fcntl;
		table.mmap = fake_mmap;
		table.munmap = fake_munmap;
		table.madvise = fake_madvise;
	}
	return &table;
}

#endif
