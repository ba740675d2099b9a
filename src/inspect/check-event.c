/* SPDX-License-Identifier: MIT */
/* Checks by effect: an event is opened, made to happen, and its count looked at. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <tally/counter.h>
#include <tally/sampler.h>

#include "base/error.h"
#include "base/proc.h"
#include "base/sys.h"
#include "inspect/check.h"

#define PAGES       16 /* touched to have them counted */
#define WRITES      10 /* to a watched variable */
#define BURN_MS     20 /* of CPU time, to be sampled */
#define SAMPLE_RATE 1000
#define RING_BYTES  (64u << 10)

#define PMU_MEND                                                                                       \
	"give the virtual machine a PMU (libvirt: <features><pmu state='on'/></features>; QEMU: -cpu " \
	"host,pmu=on; clouds: a bare-metal size)"

/* What the trials of the doctor take, and a user of events at the least. */
#define FEW_FDS 64

/* ---- things to count */

/* Small pages, so that each is a fault of its own. */
static void *fresh_pages(size_t count, size_t *len)
{
	*len = count * (size_t)sysconf(_SC_PAGESIZE);
	void *at = mmap(NULL, *len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return NULL;
	madvise(at, *len, MADV_NOHUGEPAGE);
	return at;
}

static void touch_pages(void *arg)
{
	size_t len;
	volatile char *at = fresh_pages(PAGES, &len);

	for (size_t i = 0; at && i < PAGES; i++)
		at[i * (len / PAGES)] = 1;
	if (at)
		munmap((void *)(uintptr_t)at, len);
}

/* uname(2) writes to the page, so that the fault happens in the kernel. */
static void touch_from_kernel(void *arg)
{
	size_t len;
	void *at = fresh_pages(1, &len);

	if (!at)
		return;
	uname(at);
	munmap(at, len);
}

static int64_t cpu_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void burn_cpu(void *arg)
{
	int64_t end = cpu_ms() + BURN_MS;

	do
		for (volatile int i = 0; i < 100000; i++)
			;
	while (cpu_ms() < end);
}

static void write_variable(void *arg)
{
	volatile int32_t *variable = arg;

	for (int32_t i = 1; i <= WRITES; i++)
		*variable = i;
}

/* ---- counting them */

/* What to count, while what goes on. */
struct trial {
	struct tally_target target;
	void (*work)(void *arg);
	void *arg;
};

static int count_events(const struct doctor *d, struct tally_events *events,
			const struct trial *trial, struct tally_count *count,
			struct tally_error *err)
{
	struct tally_counter *counter;
	int r = tally_counter_open(&counter, tally_events_at(events, 0), &trial->target,
				   TALLY_OPTS(counter, .root = d->root), err);

	if (r < 0)
		return r;
	r = tally_counter_enable(counter);
	if (r >= 0) {
		trial->work(trial->arg);
		r = tally_counter_read(counter, count);
	}
	if (r < 0)
		error_set(err, r, TALLY_CAUSE_IO, "a counter was opened but cannot be read: %s",
			  strerror(-r));
	tally_counter_close(counter);
	return r;
}

static int count_named(const struct doctor *d, const char *name, const struct trial *trial,
		       struct tally_count *count, struct tally_error *err)
{
	struct tally_events *events;
	int r = tally_events_parse(&events, name, TALLY_OPTS(events, .root = d->root), err);

	if (r < 0)
		return r;
	r = count_events(d, events, trial, count, err);
	tally_events_free(events);
	return r;
}

/*
 * The library's own words are the meaning; the command depends on the cause. `level` is the paranoid
 * level that would allow it.
 */
static void cannot(const struct doctor *d, struct finding *f, enum tally_finding_state state,
		   const struct tally_error *err, int level)
{
	finding_set(f, state, "%s", strerror(-err->code));
	finding_means(f, "%s", err->text);
	if (err->cause == TALLY_CAUSE_PARANOID)
		finding_mend(f, "sysctl -w kernel.perf_event_paranoid=%d", level);
	else if (err->cause == TALLY_CAUSE_FD_LIMIT)
		finding_mend(f, "prlimit --nofile=%" PRIu64 " --pid $$",
			     d->system.nofile_hard + FEW_FDS);
	else if (err->cause == TALLY_CAUSE_MLOCK_LIMIT)
		finding_mend(f, "sysctl -w kernel.perf_event_mlock_kb=516");
}

static bool no_use(const struct doctor *d, struct finding *f, enum tally_finding_state state)
{
	if (d->reached == 0 && d->system.paranoid != TALLY_SYSTEM_UNKNOWN)
		return false;
	finding_set(f, state, "not tried");
	finding_means(f, "no performance event can be opened at all: see perf-events");
	return true;
}

void check_count(const struct doctor *d, struct finding *f)
{
	struct trial trial = { .target = { .scope = TALLY_SCOPE_SELF }, .work = touch_pages };
	struct tally_count count;
	struct tally_error err;

	if (no_use(d, f, TALLY_FINDING_FAILS))
		return;
	if (count_named(d, "page-faults:u", &trial, &count, &err) < 0) {
		cannot(d, f, TALLY_FINDING_FAILS, &err, 1);
		return;
	}
	if (count.value < PAGES) {
		finding_set(f, TALLY_FINDING_FAILS, "%" PRIu64 " of %d page faults", count.value,
			    PAGES);
		finding_means(f, "events can be opened but miss what happens");
		return;
	}
	finding_set(f, TALLY_FINDING_OK, "page faults are counted");
	finding_means(f, "this user can count what own programs do in user mode");
}

void check_count_kernel(const struct doctor *d, struct finding *f)
{
	struct trial trial = { .target = { .scope = TALLY_SCOPE_SELF }, .work = touch_from_kernel };
	struct tally_count count;
	struct tally_error err;

	if (no_use(d, f, TALLY_FINDING_UNKNOWN))
		return;
	if (count_named(d, "page-faults:k", &trial, &count, &err) < 0) {
		cannot(d, f, TALLY_FINDING_LIMITED, &err, 1);
		return;
	}
	finding_set(f, count.value ? TALLY_FINDING_OK : TALLY_FINDING_FAILS, "%s",
		    count.value ? "counted" : "opens, counts nothing");
	finding_means(f, "what the kernel does for own programs %s be counted and sampled",
		      count.value ? "can" : "cannot");
}

void check_count_cpus(const struct doctor *d, struct finding *f)
{
	struct trial trial = { .target = { .scope = TALLY_SCOPE_CPUS }, .work = touch_pages };
	struct tally_count count;
	struct tally_error err;

	if (no_use(d, f, TALLY_FINDING_UNKNOWN))
		return;
	if (count_named(d, "page-faults", &trial, &count, &err) < 0) {
		cannot(d, f, TALLY_FINDING_LIMITED, &err, 0);
		return;
	}
	finding_set(f, count.value >= PAGES ? TALLY_FINDING_OK : TALLY_FINDING_FAILS, "%s",
		    count.value >= PAGES ? "counted" : "opens, misses what happens");
	finding_means(f, "whole CPUs %s be counted and sampled (-a)",
		      count.value >= PAGES ? "can" : "cannot");
}

/* ---- sampling */

static uint64_t drain_samples(struct tally_sampler *sampler)
{
	const struct tally_record_header *header;
	uint64_t samples = 0;

	for (uint32_t i = 0; i < tally_sampler_rings(sampler); i++) {
		struct tally_ring *ring = tally_sampler_ring(sampler, i);
		while (tally_ring_next(ring, &header) > 0)
			samples += header->type == TALLY_RECORD_SAMPLE;
		tally_ring_release(ring);
	}
	return samples;
}

static int64_t sample_self(const struct doctor *d, struct tally_error *err)
{
	struct tally_target target = { .scope = TALLY_SCOPE_SELF };
	struct tally_events *events = NULL;
	struct tally_sampler *sampler = NULL;
	int64_t r = tally_events_parse(&events, "cpu-clock:u", TALLY_OPTS(events, .root = d->root),
				       err);

	if (r >= 0)
		r = tally_sampler_open(&sampler, events, &target,
				       TALLY_OPTS(sampler, .freq = SAMPLE_RATE,
						  .ring_bytes = RING_BYTES, .root = d->root),
				       err);
	if (r >= 0) {
		tally_sampler_enable(sampler);
		burn_cpu(NULL);
		tally_sampler_disable(sampler);
		r = (int64_t)drain_samples(sampler);
	}
	tally_sampler_close(sampler);
	tally_events_free(events);
	return r;
}

void check_sample(const struct doctor *d, struct finding *f)
{
	struct tally_error err;

	if (no_use(d, f, TALLY_FINDING_FAILS))
		return;
	int64_t samples = sample_self(d, &err);
	if (samples < 0) {
		cannot(d, f, TALLY_FINDING_FAILS, &err, 1);
		return;
	}
	if (samples == 0) {
		finding_set(f, TALLY_FINDING_FAILS, "opens, never samples");
		finding_means(f, "the clock of the kernel (cpu-clock) takes no samples here");
		return;
	}
	finding_set(f, TALLY_FINDING_OK, "cpu-clock samples");
	finding_means(f, "this user can profile own programs by time");
}

/* ---- hardware */

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* The names in /sys/bus/event_source/devices, in one line. */
static void list_pmus(const struct doctor *d, char *out, size_t size)
{
	char path[4096];
	struct dirent **entries;
	size_t used = 0;
	int count = -1;

	if (proc_path(path, sizeof(path), d->root, "/sys/bus/event_source/devices") == 0)
		count = scandir(path, &entries, is_visible, alphasort);
	snprintf(out, size, "nothing");
	for (int i = 0; i < count; i++) {
		if (used < size)
			used += (size_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "",
						 entries[i]->d_name);
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
}

static void mend_pmu(const struct doctor *d, struct finding *f)
{
	if (d->system.in_vm)
		finding_mend(f, "%s", PMU_MEND);
	else
		finding_mend(f,
			     "enable the PMU in the firmware's settings; or, in a virtual machine: "
			     "%s",
			     PMU_MEND);
}

void check_pmu(const struct doctor *d, struct finding *f)
{
	struct trial trial = { .target = { .scope = TALLY_SCOPE_SELF }, .work = burn_cpu };
	struct tally_count count;
	struct tally_error err;
	char pmus[128];

	if (no_use(d, f, TALLY_FINDING_UNKNOWN))
		return;
	int r = count_named(d, "cycles:u", &trial, &count, &err);
	if (r == 0 && count.value > 0) {
		finding_set(f, TALLY_FINDING_OK, "cycles are counted");
		finding_means(f, "hardware events can be counted and sampled");
		return;
	}
	/* Everything but these two says nothing about a PMU. */
	if (r < 0 && err.cause != TALLY_CAUSE_NO_PMU && err.cause != TALLY_CAUSE_UNSUPPORTED) {
		cannot(d, f, TALLY_FINDING_UNKNOWN, &err, 1);
		return;
	}
	list_pmus(d, pmus, sizeof(pmus));
	if (r == 0)
		finding_set(f, TALLY_FINDING_FAILS, "cycles can be opened, but count nothing");
	else
		finding_set(f, TALLY_FINDING_FAILS, "none for the CPU cores; there is %s", pmus);
	finding_means(f,
		      "hardware events (cycles, instructions, cache-misses ...) cannot be counted; "
		      "profiles are taken by time, with cpu-clock");
	mend_pmu(d, f);
}

/*
 * Maps the counter's page: whether the kernel says that user space may read the counter. arm64 says so
 * only of those that ask for it.
 */
static int may_read_counter(const struct doctor *d)
{
	struct tally_target target = { .scope = TALLY_SCOPE_SELF };
	struct tally_events *events = NULL;
	struct tally_counter *counter = NULL;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *map = NULL;

	int r = tally_events_parse(&events, "cycles:u", TALLY_OPTS(events, .root = d->root), NULL);
	if (r >= 0)
		r = tally_counter_open(
			&counter, tally_events_at(events, 0), &target,
			TALLY_OPTS(counter, .flags = TALLY_COUNTER_ENABLED | TALLY_COUNTER_FAST,
				   .root = d->root),
			NULL);
	if (r >= 0)
		r = sys()->mmap(&map, page, PROT_READ, MAP_SHARED, tally_counter_fd(counter, 0), 0);
	if (r >= 0) {
		r = ((const struct perf_event_mmap_page *)map)->cap_user_rdpmc;
		sys()->munmap(map, page);
	}
	tally_counter_close(counter);
	tally_events_free(events);
	return r;
}

void check_rdpmc(const struct doctor *d, struct finding *f)
{
	if (no_use(d, f, TALLY_FINDING_UNKNOWN))
		return;
	int r = may_read_counter(d);
	if (r > 0) {
		finding_set(f, TALLY_FINDING_OK, "allowed");
		finding_means(f, "a program can read its own counters without a system call");
		return;
	}
	finding_means(f, "reading a counter takes a system call");
	if (r < 0) {
		finding_set(f, TALLY_FINDING_LIMITED, "no counter to read: %s", strerror(-r));
		return;
	}
	finding_set(f, TALLY_FINDING_LIMITED, "not allowed");
	if (!strcmp(d->system.machine, "x86_64"))
		finding_mend(f, "echo 1 > /sys/bus/event_source/devices/cpu/rdpmc");
	else if (!strcmp(d->system.machine, "aarch64"))
		finding_mend(f, "sysctl -w kernel.perf_user_access=1");
}

static int count_writes(const struct doctor *d, struct tally_count *count, struct tally_error *err)
{
	int32_t variable = 0;
	struct trial trial = { .target = { .scope = TALLY_SCOPE_SELF },
			       .work = write_variable,
			       .arg = &variable };
	struct tally_events *events;
	struct tally_attr attr;

	tally_attr_init(&attr, TALLY_TYPE_BREAKPOINT, 0);
	attr.flags = TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_HV;
	attr.bp_type = HW_BREAKPOINT_W;
	attr.config1 = (uintptr_t)&variable;
	attr.config2 = HW_BREAKPOINT_LEN_4;
	int r = tally_events_new(&events, "a write to a variable", &attr, NULL, err);
	if (r < 0)
		return r;
	r = count_events(d, events, &trial, count, err);
	tally_events_free(events);
	return r;
}

void check_breakpoints(const struct doctor *d, struct finding *f)
{
	struct tally_count count;
	struct tally_error err;

	if (no_use(d, f, TALLY_FINDING_UNKNOWN))
		return;
	int r = count_writes(d, &count, &err);
	if (r < 0) {
		/* Somebody, a debugger for one, has all the debug registers. */
		cannot(d, f, r == -ENOSPC ? TALLY_FINDING_UNKNOWN : TALLY_FINDING_FAILS, &err, 1);
		return;
	}
	if (count.value == WRITES) {
		finding_set(f, TALLY_FINDING_OK, "each write is seen");
		finding_means(f, "hardware breakpoints and watchpoints work");
		return;
	}
	if (count.value == 0)
		finding_set(f, TALLY_FINDING_FAILS, "opens, never fires");
	else
		finding_set(f, TALLY_FINDING_FAILS, "%" PRIu64 " of %d writes are seen",
			    count.value, WRITES);
	finding_means(f, "breakpoint events, and watchpoints of debuggers, are accepted but %s",
		      count.value ? "do not count right" : "do nothing");
	if (d->system.in_vm)
		finding_mend(f, "run it on a machine or hypervisor that provides debug registers");
}
