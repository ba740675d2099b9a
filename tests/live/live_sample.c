/* SPDX-License-Identifier: MIT */
/* Rings and samplers on the real kernel: exact counts by software events. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <tally/tally.h>

#include "kernel-mode.h"
#include "tap.h"

#define PAGES 300

static const struct tally_target self = { .scope = TALLY_SCOPE_SELF };

static int32_t gettid_(void)
{
	return (int32_t)syscall(SYS_gettid);
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Memory that no page of is there yet, and that comes page by page. */
static unsigned char *fresh_pages(size_t pages)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *at = mmap(NULL, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			0);

	if (at == MAP_FAILED)
		return NULL;
	madvise(at, pages * page, MADV_NOHUGEPAGE);
	return at;
}

static void touch(unsigned char *at, size_t pages)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (size_t i = 0; i < pages; i++)
		*(volatile unsigned char *)(at + i * page) = 1;
}

/* A sampler and the events it was opened from. */
struct sampling {
	struct tally_events *events;
	struct tally_sampler *sampler;
	struct tally_error err;
};

static bool start(struct sampling *s, const char *text, const struct tally_target *target,
		  struct tally_sampler_opts opts)
{
	opts.size = sizeof(opts);
	*s = (struct sampling){ 0 };
	int r = tally_events_parse(&s->events, text,
				   TALLY_OPTS(events, .fallback = TALLY_FALLBACK_CPU_CLOCK |
								  TALLY_FALLBACK_NEWER_BITS),
				   &s->err);
	if (r >= 0)
		r = tally_sampler_open(&s->sampler, s->events, target, &opts, &s->err);
	if (r < 0)
		printf("# %s\n", s->err.text);
	return check_int(r, 0);
}

static void stop(struct sampling *s)
{
	tally_sampler_close(s->sampler);
	tally_events_free(s->events);
}

/* Calls `fn` for all records in all rings, decoded. Returns how many there were. */
static size_t drain(const struct sampling *s, void (*fn)(const struct tally_record *rec, void *arg),
		    void *arg)
{
	const struct tally_record_header *header;
	struct tally_record rec;
	size_t count = 0;

	for (uint32_t i = 0; i < tally_sampler_rings(s->sampler); i++) {
		struct tally_ring *ring = tally_sampler_ring(s->sampler, i);
		int r;
		while ((r = tally_ring_next(ring, &header)) > 0) {
			count++;
			if (!check_int(tally_record_decode(tally_sampler_layout(s->sampler, 0),
							   header, header->size, &rec, sizeof(rec)),
				       header->size))
				break;
			check_int(rec.leftover, 0);
			fn(&rec, arg);
		}
		check_int(r, 0);
		tally_ring_release(ring);
	}
	return count;
}

/* What is looked for: samples with an address in a region, and all that must hold for each. */
struct found {
	unsigned char *at;
	size_t inside, outside, lost, lost_records;
	int32_t pid, tid;
	uint64_t since, until, last;
	unsigned char seen[PAGES];
};

static void find(const struct tally_record *rec, void *arg)
{
	struct found *f = arg;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (rec->type == TALLY_RECORD_LOST) {
		f->lost += rec->lost.lost;
		f->lost_records++;
	}
	if (rec->type != TALLY_RECORD_SAMPLE)
		return;
	uint64_t offset = rec->sample.addr - (uint64_t)(uintptr_t)f->at;
	if (offset >= PAGES * page) {
		f->outside++;
		return;
	}
	f->inside++;
	f->seen[offset / page]++;
	check_int(rec->id.pid, f->pid);
	check_int(rec->id.tid, f->tid);
	check(rec->id.time >= f->since && rec->id.time <= f->until);
	check(rec->id.time >= f->last);
	f->last = rec->id.time;
	check(rec->id.cpu >= 0 && rec->id.cpu < sysconf(_SC_NPROCESSORS_CONF));
	check_u64(rec->sample.period, 1);
	check(rec->sample.ip != 0);
}

static void every_page_fault_is_a_sample_with_its_address(void)
{
	struct found f = { .pid = getpid(), .tid = gettid_(), .at = fresh_pages(PAGES) };
	struct sampling s;

	require(f.at != NULL);
	require(start(
		&s, "page-faults", &self,
		(struct tally_sampler_opts){ .period = 1, .sample_type = TALLY_SAMPLE_ADDR }));
	check_int(tally_sampler_rings(s.sampler), 1);
	/* A page before and one after: the sampler is not yet and no longer on. */
	touch(f.at, 1);
	f.since = now();
	check_int(tally_sampler_enable(s.sampler), 0);
	touch(f.at + sysconf(_SC_PAGESIZE), PAGES - 2);
	check_int(tally_sampler_disable(s.sampler), 0);
	f.until = now();
	touch(f.at, PAGES);
	drain(&s, find, &f);
	check_int(f.inside, PAGES - 2);
	for (size_t i = 0; i < PAGES; i++)
		check_int(f.seen[i], i > 0 && i < PAGES - 1);
	check_int(f.lost, 0);
	uint64_t lost = 1;
	check_int(tally_sampler_lost(s.sampler, &lost), 0);
	check_u64(lost, 0);
	stop(&s);
	munmap(f.at, PAGES * (size_t)sysconf(_SC_PAGESIZE));
}

static void what_does_not_fit_is_told(void)
{
	struct found f = { .pid = getpid(), .tid = gettid_(), .at = fresh_pages(PAGES) };
	struct sampling s;
	uint64_t lost = 0;

	require(f.at != NULL);
	require(start(&s, "page-faults", &self,
		      (struct tally_sampler_opts){
			      .period = 1, .ring_bytes = 4096, .sample_type = TALLY_SAMPLE_ADDR }));
	check_u64(tally_ring_size(tally_sampler_ring(s.sampler, 0)), sysconf(_SC_PAGESIZE));
	f.since = now();
	tally_sampler_enable(s.sampler);
	touch(f.at, PAGES - 1);
	tally_sampler_disable(s.sampler); /* or what follows would fault for pages of its own */
	f.until = UINT64_MAX;
	check_int(tally_sampler_lost(s.sampler, &lost), 0);
	drain(&s, find, &f);
	/* A sample with an address has 56 bytes; the rest of the pages found no room. */
	check(f.inside + f.outside == (size_t)sysconf(_SC_PAGESIZE) / 56);
	if (tally_sampler_attr(s.sampler, 0)->read_format & TALLY_READ_LOST)
		check_u64(f.inside + lost, PAGES - 1);
	/* The kernel tells of the loss in the ring too, before the next record that fits. */
	check_int(f.lost, 0);
	tally_sampler_enable(s.sampler);
	touch(f.at + (size_t)(PAGES - 1) * (size_t)sysconf(_SC_PAGESIZE), 1);
	tally_sampler_disable(s.sampler);
	drain(&s, find, &f);
	check_int(f.lost_records, 1);
	check_u64(f.inside + f.lost, PAGES);
	stop(&s);
	munmap(f.at, PAGES * (size_t)sysconf(_SC_PAGESIZE));
}

static void count_samples(const struct tally_record *rec, void *arg)
{
	*(size_t *)arg += rec->type == TALLY_RECORD_SAMPLE;
}

static void every_context_switch_is_a_sample(void)
{
	struct timespec moment = { .tv_nsec = 1000 };
	struct rusage before, after;
	struct sampling s;
	size_t samples = 0;

	require(start(&s, "context-switches", &self, (struct tally_sampler_opts){ .period = 1 }));
	if (tally_sampler_attr(s.sampler, 0)->flags & TALLY_ATTR_EXCLUDE_KERNEL) {
		stop(&s);
		tap_skip("switches happen in the kernel, which this user may not watch");
	}
	tally_sampler_enable(s.sampler);
	getrusage(RUSAGE_THREAD, &before);
	do {
		nanosleep(&moment, NULL); /* one that is over at once needs no switch */
		getrusage(RUSAGE_THREAD, &after);
	} while (after.ru_nvcsw < before.ru_nvcsw + 20);
	tally_sampler_disable(s.sampler);
	drain(&s, count_samples, &samples);
	long switches = after.ru_nvcsw + after.ru_nivcsw - before.ru_nvcsw - before.ru_nivcsw;
	/* Those between the calls, when somebody else's turn came, are few. */
	check((long)samples >= switches);
	check((long)samples <= switches + 20);
	stop(&s);
}

struct chains {
	size_t samples, marked, mine;
};

static void look_at_chain(const struct tally_record *rec, void *arg)
{
	struct chains *c = arg;

	if (rec->type != TALLY_RECORD_SAMPLE)
		return;
	c->samples++;
	c->mine += rec->id.tid == gettid_();
	/* A chain begins with the marker of whose addresses follow. */
	c->marked += rec->sample.chain_len >= 2 && tally_sample_ip(rec, 0) >= TALLY_CONTEXT_MAX &&
		     tally_sample_ip(rec, 1) < TALLY_CONTEXT_MAX;
}

/* Uses CPU time until the ring has something, however slow the machine is. */
static bool spin_until_sampled(const struct sampling *s)
{
	struct timespec t;
	uint64_t start = tally_ring_head(tally_sampler_ring(s->sampler, 0));

	do {
		for (int i = 0; i < 1000000; i++)
			__asm__ volatile("");
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	} while (t.tv_sec < 20 &&
		 tally_ring_head(tally_sampler_ring(s->sampler, 0)) < start + 4096);
	return tally_ring_head(tally_sampler_ring(s->sampler, 0)) > start;
}

static void the_cpu_clock_samples_call_chains(void)
{
	struct chains c = { 0 };
	struct sampling s;

	require(start(
		&s, "cycles", &self,
		(struct tally_sampler_opts){ .freq = 1000, .flags = TALLY_SAMPLER_CALLCHAIN }));
	tally_sampler_enable(s.sampler);
	check(spin_until_sampled(&s));
	tally_sampler_disable(s.sampler);
	drain(&s, look_at_chain, &c);
	check(c.samples > 0);
	check_int(c.marked, c.samples);
	check_int(c.mine, c.samples);
	check_u64(tally_sampler_rate(s.sampler, 0), 1000);
	stop(&s);
}

static void several_events_are_told_apart_by_id(void)
{
	struct sampling s;
	const struct tally_record_header *header;
	size_t of[2] = { 0, 0 };
	unsigned char *at = fresh_pages(PAGES);

	require(start(&s, "page-faults,minor-faults", &self,
		      (struct tally_sampler_opts){ .period = 1 }));
	check_int(tally_sampler_rings(s.sampler), 1);
	tally_sampler_enable(s.sampler);
	touch(at, PAGES);
	tally_sampler_disable(s.sampler);
	struct tally_ring *ring = tally_sampler_ring(s.sampler, 0);
	while (tally_ring_next(ring, &header) > 0) {
		const uint64_t *ids;
		uint64_t id = tally_record_id(tally_sampler_layout(s.sampler, 0), header,
					      header->size);
		uint32_t found = 0;
		for (uint32_t e = 0; e < 2; e++)
			if (check_int(tally_sampler_ids(s.sampler, e, &ids), 1) && ids[0] == id) {
				of[e] += header->type == TALLY_RECORD_SAMPLE;
				found++;
			}
		check_int(found, 1);
	}
	/* Each of these faults is a minor one. */
	check(of[0] >= PAGES);
	check(of[1] >= PAGES);
	stop(&s);
	munmap(at, PAGES * (size_t)sysconf(_SC_PAGESIZE));
}

/* What a shell that runs one program does, as its records tell it. */
struct story {
	int32_t shell;
	size_t execs, forks, exits, maps, build_ids, samples;
	bool shell_named, child_named, exited;
};

static void hear(const struct tally_record *rec, void *arg)
{
	struct story *story = arg;
	bool of_shell = rec->id.pid == story->shell;

	switch (rec->type) {
	case TALLY_RECORD_COMM:
		story->execs += rec->comm.exec;
		story->shell_named |= of_shell && !strcmp(rec->comm.comm, "sh");
		/* Rings are not in step: its FORK may be in one that is drained later. */
		story->child_named |= !of_shell && rec->comm.exec &&
				      !strcmp(rec->comm.comm, "sleep");
		check_int(rec->comm.pid, rec->id.pid);
		break;
	case TALLY_RECORD_FORK:
		story->forks++;
		check_int(rec->task.ppid, story->shell);
		break;
	case TALLY_RECORD_EXIT:
		story->exits++;
		story->exited |= rec->task.pid == story->shell;
		break;
	case TALLY_RECORD_MMAP2:
		story->maps++;
		check(rec->mmap.prot & PROT_EXEC);
		check(rec->mmap.filename_len > 0 && rec->mmap.len > 0);
		story->build_ids += rec->mmap.build_id_size == 20;
		break;
	default:
		story->samples += rec->type == TALLY_RECORD_SAMPLE;
		check_int(rec->type, TALLY_RECORD_SAMPLE);
	}
}

/* Runs a shell that runs a program, samples its faults, and hears the whole story. */
static void hear_shell(uint32_t flags, struct story *story)
{
	char *argv[] = { (char[]){ "/bin/sh" }, (char[]){ "-c" }, (char[]){ "sleep 0; exit 3" },
			 NULL };
	struct tally_target target = { .scope = TALLY_SCOPE_COMMAND };
	struct tally_launch *launch;
	struct tally_exit end = { 0 };
	struct tally_error err;
	struct sampling s;
	int r;

	require(check_int(tally_launch_start(&launch, argv, &err), 0));
	target.id = story->shell = tally_launch_pid(launch);
	if (start(&s, "page-faults", &target,
		  (struct tally_sampler_opts){ .period = 1, .flags = flags })) {
		check_int(tally_sampler_wait(s.sampler, 0), 0);
		check_int(tally_launch_go(launch, &err), 0);
		while ((r = tally_sampler_wait(s.sampler, 100)) >= 0)
			drain(&s, hear, story);
		check_int(r, -EPIPE);
		drain(&s, hear, story);
		check_int(tally_launch_wait(launch, -1, &end, &err), 1);
		check_int(end.status, 3);
		check_int(drain(&s, hear, story), 0);
	}
	stop(&s);
	tally_launch_close(launch);
}

static void a_command_is_heard_from_exec_to_exit(void)
{
	struct story story = { 0 };

	hear_shell(0, &story);
	check(story.shell_named && story.child_named && story.exited);
	check_int(story.execs, 2);
	check_int(story.forks, 1);
	check_int(story.exits, 2);
	/* The program, its loader and libc, twice over. */
	check(story.maps >= 6);
	check(story.samples > 50);
	check_int(story.build_ids, 0);
}

static void build_ids_come_with_the_maps(void)
{
	struct story story = { 0 };

	hear_shell(TALLY_SAMPLER_BUILD_ID, &story);
	if (!story.build_ids)
		tap_skip("this kernel puts no build-ids into MMAP2 (Linux 5.12 does)");
	/* All but the vdso and the like, which have none. */
	check(story.build_ids >= 6);
}

/* The kernel then marks our records as theirs, though ours have inodes. */
static void somebody_elses_build_ids_do_not_confuse_ours(void)
{
	struct tally_target cpus = { .scope = TALLY_SCOPE_CPUS };
	struct story story = { 0 };
	struct tally_system system;
	struct sampling theirs;

	tally_system_read(&system, sizeof(system), NULL, NULL);
	if (!system.may_profile_all && system.paranoid > 0)
		tap_skip("this user may not watch whole CPUs");
	require(start(&theirs, "dummy", &cpus,
		      (struct tally_sampler_opts){ .period = 1, .flags = TALLY_SAMPLER_BUILD_ID }));
	tally_sampler_enable(theirs.sampler);
	hear_shell(0, &story);
	stop(&theirs);
	check(story.shell_named && story.child_named && story.exited);
	check(story.maps >= 6);
	check_int(story.build_ids, 0);
}

static void without_inherit_children_are_not_heard(void)
{
	struct story story = { 0 };

	hear_shell(TALLY_SAMPLER_NO_INHERIT, &story);
	check_int(story.execs, 1);
	check_int(story.exits, 1);
	check(story.exited && !story.child_named);
}

static void *fault_and_end(void *arg)
{
	int *pipes = arg;
	char byte;
	int32_t tid = gettid_();

	(void)!write(pipes[1], &tid, sizeof(tid));
	(void)!read(pipes[2], &byte, 1);
	unsigned char *at = fresh_pages(PAGES);
	touch(at, PAGES);
	munmap(at, PAGES * (size_t)sysconf(_SC_PAGESIZE));
	return NULL;
}

static void a_thread_that_ended_is_drained(void)
{
	struct tally_target target = { .scope = TALLY_SCOPE_THREAD };
	int pipes[4]; /* 0, 1: from the thread; 2, 3: to it */
	struct sampling s;
	pthread_t thread;
	size_t samples = 0;

	require(pipe(pipes) == 0 && pipe(pipes + 2) == 0);
	require(pthread_create(&thread, NULL, fault_and_end, pipes) == 0);
	require(read(pipes[0], &target.id, sizeof(target.id)) == sizeof(target.id));
	if (start(&s, "page-faults", &target, (struct tally_sampler_opts){ .period = 1 })) {
		check_int(tally_sampler_enable(s.sampler), 0);
		check_int(tally_sampler_wait(s.sampler, 0), 0);
		(void)!write(pipes[3], "x", 1);
		pthread_join(thread, NULL);
		/* It may take a moment from the join to the end of the task. */
		check_int(tally_sampler_wait(s.sampler, 10000), -EPIPE);
		check_int(tally_sampler_wait(s.sampler, 10000), -EPIPE);
		drain(&s, count_samples, &samples);
		check(samples >= PAGES);
		check_int(drain(&s, count_samples, &samples), 0);
	}
	stop(&s);
	for (int i = 0; i < 4; i++)
		close(pipes[i]);
}

/* A process whose main thread, which the rings are mapped by, ends before another. */
static void *fault_on_request(void *arg)
{
	const int *pipes = arg;
	char byte;

	while (read(pipes[2], &byte, 1) == 1 && byte == 'f') {
		unsigned char *at = fresh_pages(PAGES);
		touch(at, PAGES);
		munmap(at, PAGES * (size_t)sysconf(_SC_PAGESIZE));
		(void)!write(pipes[1], "d", 1);
	}
	_exit(0);
}

static void leave_a_thread_behind(int *pipes)
{
	pthread_t thread;
	char byte;

	if (pthread_create(&thread, NULL, fault_on_request, pipes) != 0)
		_exit(1);
	(void)!write(pipes[1], "r", 1);
	(void)!read(pipes[4], &byte, 1);
	pthread_exit(NULL);
}

static bool is_zombie(pid_t pid)
{
	char path[64], text[256] = "", *state;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, pid);
	FILE *f = fopen(path, "r");
	if (!f)
		return true;
	(void)!fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	state = strrchr(text, ')');
	return state && state[2] == 'Z';
}

static void a_process_outlives_its_first_thread(void)
{
	int pipes[6]; /* 0, 1: from the process; 2, 3: to its thread; 4, 5: to its main thread */
	struct sampling s;
	char byte;

	require(pipe(pipes) == 0 && pipe(pipes + 2) == 0 && pipe(pipes + 4) == 0);
	pid_t pid = fork();
	if (pid == 0)
		leave_a_thread_behind(pipes);
	struct tally_target target = { .scope = TALLY_SCOPE_PROCESS, .id = pid };
	require(pid > 0 && read(pipes[0], &byte, 1) == 1);
	if (start(&s, "page-faults", &target, (struct tally_sampler_opts){ .period = 1 })) {
		size_t samples = 0;
		int r;
		check_int(tally_sampler_rings(s.sampler), sysconf(_SC_NPROCESSORS_ONLN));
		tally_sampler_enable(s.sampler);
		(void)!write(pipes[5], "x", 1);
		while (!is_zombie(pid))
			usleep(1000);
		drain(&s, count_samples, &samples);
		samples = 0;
		/* All rings were mapped by an event of the thread that has ended. */
		check_int(tally_sampler_wait(s.sampler, 0), 0);
		(void)!write(pipes[3], "f", 1);
		require(read(pipes[0], &byte, 1) == 1);
		check_int(tally_sampler_wait(s.sampler, 0), 0);
		drain(&s, count_samples, &samples);
		check(samples >= PAGES);
		(void)!write(pipes[3], "q", 1);
		while ((r = tally_sampler_wait(s.sampler, 10000)) > 0)
			drain(&s, count_samples, &samples);
		check_int(r, -EPIPE);
	}
	stop(&s);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	for (int i = 0; i < 6; i++)
		close(pipes[i]);
}

static void a_watermark_wakes_the_reader(void)
{
	struct sampling s;
	unsigned char *at = fresh_pages(PAGES);
	size_t samples = 0;

	require(start(&s, "page-faults", &self,
		      (struct tally_sampler_opts){
			      .period = 1, .ring_bytes = 65536, .watermark = 1000 }));
	tally_sampler_enable(s.sampler);
	check_int(tally_sampler_wait(s.sampler, 0), 0);
	touch(at, PAGES); /* 48 bytes each */
	check_int(tally_sampler_wait(s.sampler, 10000), 1);
	drain(&s, count_samples, &samples);
	check(samples >= PAGES);
	check_int(tally_sampler_wait(s.sampler, 0), 0);
	stop(&s);
	munmap(at, PAGES * (size_t)sysconf(_SC_PAGESIZE));
}

static void check_cpu(const struct tally_record *rec, void *arg)
{
	size_t *samples = arg;

	if (rec->type == TALLY_RECORD_SAMPLE)
		samples[rec->id.cpu == 0 ? 0 : 1]++;
}

static void cpus_are_sampled_whoever_runs(void)
{
	const int32_t cpus[] = { 0 };
	struct tally_target target = { .scope = TALLY_SCOPE_CPUS, .cpus = cpus, .cpu_count = 1 };
	struct timespec moment = { .tv_nsec = 1000000 };
	size_t samples[2] = { 0, 0 };
	struct tally_system system;
	struct sampling s;

	tally_system_read(&system, sizeof(system), NULL, NULL);
	if (!system.may_profile_all && system.paranoid > 0)
		tap_skip("this user may not watch whole CPUs");
	require(start(&s, "context-switches", &target, (struct tally_sampler_opts){ .period = 1 }));
	check_int(tally_sampler_rings(s.sampler), 1);
	tally_sampler_enable(s.sampler);
	/* Something runs on CPU 0 sooner or later; to be sure, so do we. */
	for (int i = 0; i < 10000 && !samples[0]; i++) {
		nanosleep(&moment, NULL);
		drain(&s, check_cpu, samples);
	}
	check(samples[0] > 0);
	check_int(samples[1], 0);
	check_int(tally_sampler_wait(s.sampler, 0) >= 0, 1);
	stop(&s);
}

static void high_rates_of_a_software_clock_are_lowered(void)
{
	struct sampling s;

	require(start(&s, "task-clock", &self, (struct tally_sampler_opts){ .freq = 90000 }));
	check_u64(tally_sampler_rate(s.sampler, 0), 25000);
	check_has(tally_sampler_compromise(s.sampler), "25000");
	stop(&s);
	require(start(&s, "cpu-clock", &self, (struct tally_sampler_opts){ .period = 1 }));
	check_u64(tally_sampler_attr(s.sampler, 0)->sample_period, 40000);
	stop(&s);
}

/* In a child of a user whom nobody else is, since the budget of locked memory is the user's. */
static int try_as_nobody(void)
{
	uid_t nobody = 1000000000u + (uid_t)getpid();
	struct rlimit none = { 0, 0 };
	struct sampling a, b;
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct tally_system system;

	tally_system_read(&system, sizeof(system), NULL, NULL);
	if (setrlimit(RLIMIT_MEMLOCK, &none) < 0 || setgid(nobody) < 0 || setuid(nobody) < 0)
		return 77;
	if (system.paranoid < 0 || system.paranoid > 2)
		return 77;
	if (!start(&a, "page-faults:u", &self, (struct tally_sampler_opts){ 0 }))
		return 1;
	uint64_t budget = (uint64_t)(system.mlock_kb * 1024 * system.online_cpus);
	uint64_t size = tally_ring_size(tally_sampler_ring(a.sampler, 0));
	check(size + page <= budget);
	check(size == 8u << 20 || 2 * size + page > budget);
	/* What is left is too little for the next one's computed size: it shrinks. */
	b = (struct sampling){ 0 };
	tally_events_parse(&b.events, "page-faults:u", NULL, &b.err);
	int r = tally_sampler_open(&b.sampler, b.events, &self, NULL, &b.err);
	if (r == 0) {
		check(tally_ring_size(tally_sampler_ring(b.sampler, 0)) + size + 2 * page <=
		      budget);
	} else {
		check_int(r, -EPERM);
		check_int(b.err.cause, TALLY_CAUSE_MLOCK_LIMIT);
		check(budget - size - page < 65536 + page);
	}
	stop(&b);
	stop(&a);
	return tap_.bad;
}

static void an_ordinary_user_gets_what_the_budget_allows(void)
{
	int status = 0;

	if (geteuid() != 0)
		tap_skip("only root can become another user");
	pid_t pid = fork();
	if (pid == 0) {
		int r = try_as_nobody();
		fflush(stdout);
		_exit(r);
	}
	require(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		tap_skip("another user may not sample here, or cannot be become");
	check_int(WEXITSTATUS(status), 0);
}

static void a_process_that_does_not_exist_is_an_error(void)
{
	struct tally_target target = { .scope = TALLY_SCOPE_THREAD, .id = INT32_MAX };
	struct tally_sampler *sampler = NULL;
	struct tally_events *events;
	struct tally_error err;

	require(tally_events_parse(&events, "page-faults", NULL, &err) == 0);
	check_int(tally_sampler_open(&sampler, events, &target, NULL, &err), -ESRCH);
	check_int(err.cause, TALLY_CAUSE_NO_PROCESS);
	check(sampler == NULL);
	tally_events_free(events);
}

int main(void)
{
	if (!kernel_mode_allowed())
		return kernel_mode_skip();
	tap_run(every_page_fault_is_a_sample_with_its_address);
	tap_run(what_does_not_fit_is_told);
	tap_run(every_context_switch_is_a_sample);
	tap_run(the_cpu_clock_samples_call_chains);
	tap_run(several_events_are_told_apart_by_id);
	tap_run(a_command_is_heard_from_exec_to_exit);
	tap_run(build_ids_come_with_the_maps);
	tap_run(somebody_elses_build_ids_do_not_confuse_ours);
	tap_run(without_inherit_children_are_not_heard);
	tap_run(a_thread_that_ended_is_drained);
	tap_run(a_process_outlives_its_first_thread);
	tap_run(a_watermark_wakes_the_reader);
	tap_run(cpus_are_sampled_whoever_runs);
	tap_run(high_rates_of_a_software_clock_are_lowered);
	tap_run(an_ordinary_user_gets_what_the_budget_allows);
	tap_run(a_process_that_does_not_exist_is_an_error);
	return tap_end();
}
