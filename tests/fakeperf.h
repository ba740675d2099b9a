/* SPDX-License-Identifier: MIT */
/*
 * A kernel for the tests of counters: perf_event_open(2), ioctl(2), read(2) and close(2) on events
 * that count what a test says, after the manual page and Linux 6.18. Everything else goes to the
 * real one. Include it once in a test program; it defines sys().
 */
#ifndef TESTS_FAKEPERF_H
#define TESTS_FAKEPERF_H

#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

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
	int fail_mmap_code;    /* of an event's page */
	int fail_madvise_code; /* MADV_WIPEONFORK, Linux 4.14 */
	int maps;              /* all kinds of memory, now */
	size_t cut_read;       /* answer only so many bytes */
	bool knows_lost;       /* READ_LOST, Linux 6.0 */
	bool reversed;         /* members of a group from the last to the first */
	bool drops_last;       /* the last member left its group */
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

/* The n-th event that was opened, from 0 on. */
static inline struct fake_event *fake_nth(int n)
{
	return &fake.events[n];
}

static int fake_perf_event_open(void *attr, pid_t pid, int cpu, int group_fd, unsigned long flags)
{
	struct tally_attr a;

	memset(&a, 0, sizeof(a));
	memcpy(&a, attr, sizeof(a));
	if (fake.opened + 1 == fake.fail_open_at)
		return fake.fail_open_code;
	if (fake.missing_pid && pid == fake.missing_pid)
		return -ESRCH;
	if (!fake.knows_lost && a.read_format & TALLY_READ_LOST)
		return -EINVAL;
	if (group_fd >= 0 && (!fake_at(group_fd) || !fake_at(group_fd)->open))
		return -EBADF;
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
	};
	fake.open++;
	return FAKE_FIRST + fake.opened++;
}

static int fake_ioctl(int fd, unsigned long request, unsigned long arg)
{
	struct fake_event *e = fake_at(fd);

	if (!e)
		return sys_kernel.ioctl(fd, request, arg);
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
		e->enables++;
		return 0;
	case PERF_EVENT_IOC_DISABLE:
		e->disables++;
		return 0;
	case PERF_EVENT_IOC_RESET:
		e->resets++;
		return 0;
	default:
		return -ENOTTY;
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
		return sys_kernel.read(fd, buf, len);
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

	if (!e)
		return sys_kernel.close(fd);
	if (!e->open)
		return -EBADF;
	e->open = false;
	fake.open--;
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
		table.mmap = fake_mmap;
		table.munmap = fake_munmap;
		table.madvise = fake_madvise;
	}
	return &table;
}

#endif
