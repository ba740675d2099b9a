/* SPDX-License-Identifier: MIT */
/*
 * Samplers on the real kernel: records of many threads in the order of time, processes that are attached
 * to as they run, cgroups, rates that change, signals, and how it all ends.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "churning.h"
#include "fresh.h"
#include "kernel-mode.h"
#include "sampling.h"
#include "tracefs.h"

#define THREADS 8
#define PAGES   400 /* a thread touches */
#define TRIGGER "syscalls:sys_enter_getppid"

/* siginfo_t of Linux 5.13; the C library may be older. */
#define SI_CODE_PERF 6

static bool has_tracefs;

static struct tally_target this_process(void)
{
	return (struct tally_target){ .scope = TALLY_SCOPE_PROCESS, .id = getpid() };
}

/* -- many threads ------------------------------------------------------------------------------- */

struct toucher {
	struct fresh fresh;
	int32_t tid;
	size_t seen;
};

FRESH_UNWATCHED static void *touch_all(void *arg)
{
	struct toucher *t = arg;

	t->tid = gettid_();
	fresh_touch(&t->fresh, PAGES);
	return NULL;
}

/* Whose page it is, if it is one; each page of each thread is touched by that thread. */
static void find_toucher(struct toucher *t, const struct tally_record *rec)
{
	for (int i = 0; i < THREADS; i++) {
		uint64_t offset = rec->sample.addr - (uint64_t)(uintptr_t)t[i].fresh.at;
		if (offset >= PAGES * t[i].fresh.page_size)
			continue;
		t[i].seen++;
		check_int(rec->id.tid, t[i].tid);
		check_int(rec->id.pid, getpid());
	}
}

/* Every page of every thread exactly once, in order but for what is said to be late. */
static void the_threads_of_a_process_are_one_stream(void)
{
	const struct tally_target target = this_process();
	struct tally_sampler_opts opts = { .period = 1, .sample_type = TALLY_SAMPLE_ADDR };
	struct toucher touchers[THREADS] = { 0 };
	struct tally_sampler_account account;
	const struct tally_sampled *got;
	pthread_t threads[THREADS];
	struct sampling s;
	uint64_t newest = 0, late = 0, samples = 0;

	if (!sampling_start(&s, "page-faults", &target, opts))
		return;
	check(tally_sampler_start_exact(s.sampler));
	check_int(tally_sampler_enable(s.sampler), 0);
	for (int i = 0; i < THREADS; i++) {
		touchers[i].fresh = fresh_map(PAGES);
		check_int(pthread_create(&threads[i], NULL, touch_all, &touchers[i]), 0);
	}
	/* Read while they run, and what is left when they have ended. */
	for (int ended = 0; ended < 2; ended++) {
		while (tally_sampler_next(s.sampler, 5, &got) == 1) {
			late += got->record->id.time < newest;
			newest = got->record->id.time > newest ? got->record->id.time : newest;
			if (got->record->type != TALLY_RECORD_SAMPLE)
				continue;
			samples++;
			find_toucher(touchers, got->record);
			check_int(got->record->id.cpu, got->cpu);
		}
		for (int i = 0; !ended && i < THREADS; i++)
			pthread_join(threads[i], NULL);
		check_int(ended ? 0 : tally_sampler_disable(s.sampler), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		check_int(touchers[i].seen, PAGES);
		fresh_unmap(&touchers[i].fresh);
	}
	check_int(tally_sampler_account(s.sampler, UINT32_MAX, &account, sizeof(account)), 0);
	check_u64(account.disordered, late);
	check_u64(account.samples, samples);
	check_u64(account.lost, 0);
	printf("# %" PRIu64 " of %" PRIu64 " records were late\n", late, account.records);
	sampling_close(&s);
}

/* Takes what there is; how many are samples. */
static uint64_t count_samples(struct sampling *s, int timeout_ms)
{
	uint64_t samples = 0;

	while (sampling_next(s, TALLY_RECORD_SAMPLE, timeout_ms))
		samples++;
	return samples;
}

/* Attached while it triggers and starts threads all the time: do its books and ours agree? */
static bool samples_running_process(void)
{
	struct tally_sampler_account account = { 0 };
	struct tally_count count = { 0 };
	struct sampling s;
	struct churn c;
	uint64_t before = 0, after = 0, samples = 0;

	if (!check(churn_start(&c, "6", "getppid")))
		return true;
	churn_some(&c, 0, 2000);
	churn_go(&c);
	const struct tally_target target = { .scope = TALLY_SCOPE_PROCESS, .id = c.pid };
	if (sampling_start(&s, TRIGGER, &target, (struct tally_sampler_opts){ 0 })) {
		check(tally_sampler_start_exact(s.sampler));
		before = churn_pause(&c);
		check_int(tally_sampler_enable(s.sampler), 0);
		for (int i = 0; i < 5; i++) {
			after = churn_some(&c, i ? after : before, 1000);
			samples += count_samples(&s, 0);
		}
		check_int(tally_sampler_disable(s.sampler), 0);
		samples += count_samples(&s, 0);
		check_int(tally_sampler_read(s.sampler, 0, &count), 0);
		check_int(tally_sampler_account(s.sampler, 0, &account, sizeof(account)), 0);
		check_u64(account.samples, samples);
		sampling_close(&s);
		churn_go(&c);
	}
	churn_end(&c);
	uint64_t told = after - before, seen = samples + account.lost;
	if (count.raw != told || seen != told)
		printf("# counted %" PRIu64 ", sampled %" PRIu64 ", of %" PRIu64 "\n", count.raw,
		       seen, told);
	return count.raw == told && seen == told;
}

/* Twice, for what live_attach.c says of threads that end. */
static void a_process_that_runs_is_sampled_exactly(void)
{
	if (!has_tracefs)
		tap_skip("no tracefs");
	check(samples_running_process() || samples_running_process());
}

/* -- verbs -------------------------------------------------------------------------------------- */

static void rates_change_while_it_samples(void)
{
	static const uint64_t rates[] = { 2, 10, 1, 50 };
	struct fresh fresh;
	struct sampling s;

	if (!sampling_start(&s, "page-faults", &self, (struct tally_sampler_opts){ .period = 2 }))
		return;
	for (size_t i = 0; i < 4; i++) {
		check_int(tally_sampler_set_period(s.sampler, 0, rates[i]), 0);
		fresh = fresh_map(PAGES);
		check_int(tally_sampler_enable(s.sampler), 0);
		fresh_touch(&fresh, PAGES);
		check_int(tally_sampler_disable(s.sampler), 0);
		uint64_t samples = count_samples(&s, 0);
		/* What was left of the old period is dropped; the library faults a few times, too. */
		check(samples + 2 >= PAGES / rates[i] && samples <= (PAGES + 20) / rates[i] + 2);
		fresh_unmap(&fresh);
	}
	check_int(tally_sampler_set_freq(s.sampler, 0, 99), -EINVAL);
	sampling_close(&s);
	if (!sampling_start(&s, "page-faults", &self, (struct tally_sampler_opts){ .freq = 100 }))
		return;
	check_int(tally_sampler_set_freq(s.sampler, 0, 200), 0);
	check_u64(tally_sampler_rate(s.sampler, 0), 200);
	check_int(tally_sampler_set_period(s.sampler, 0, 200), -EINVAL);
	sampling_close(&s);
}

/* A counter beside it is the referee. */
static void readings_are_those_of_a_counter(void)
{
	const struct tally_target target = this_process();
	struct tally_events *events = NULL;
	struct tally_counter *counter = NULL;
	struct tally_count mine, other, mine_before, other_before;
	struct fresh fresh = fresh_map(PAGES);
	struct tally_error err;
	struct sampling s;

	if (!sampling_start(&s, "page-faults,dummy", &target,
			    (struct tally_sampler_opts){ .period = 7 }))
		return;
	require(tally_events_parse(&events, "page-faults", NULL, &err) == 0);
	require(tally_counter_open(&counter, tally_events_at(events, 0), &target, NULL, &err) == 0);
	check_int(tally_sampler_enable(s.sampler), 0);
	check_int(tally_counter_enable(counter), 0);
	/* What the first reading itself touches is not counted in between. */
	for (int i = 0; i < 2; i++) {
		check_int(tally_sampler_read(s.sampler, 0, &mine_before), 0);
		check_int(tally_counter_read(counter, &other_before), 0);
	}
	fresh_touch(&fresh, PAGES);
	check_int(tally_sampler_read(s.sampler, 0, &mine), 0);
	check_int(tally_counter_read(counter, &other), 0);
	check_u64(mine.raw - mine_before.raw, other.raw - other_before.raw);
	check(mine.raw - mine_before.raw >= PAGES);
	check_int(mine.state, TALLY_COUNT_EXACT);
	check_u64(mine.value, mine.raw);
	/* Of one thread on its CPUs: not as many times as there are CPUs. */
	check(mine.enabled_ns <= clock_now(CLOCK_MONOTONIC));
	check_int(tally_sampler_read(s.sampler, 1, &mine), 0);
	check_u64(mine.raw, 0);
	tally_counter_close(counter);
	tally_events_free(events);
	sampling_close(&s);
	fresh_unmap(&fresh);
}

/* -- cgroups ------------------------------------------------------------------------------------ */

static void touch_in_cgroup(const char *folder, int go, struct fresh *fresh)
{
	char byte;

	if (!enter_cgroup(folder) || read(go, &byte, 1) != 1)
		_exit(1);
	fresh_touch(fresh, PAGES);
	_exit(0);
}

static void a_cgroup_has_its_own_samples(void)
{
	struct tally_sampler_opts opts = { .period = 1, .sample_type = TALLY_SAMPLE_ADDR };
	struct fresh fresh = fresh_map(PAGES), other = fresh_map(PAGES);
	const struct tally_sampled *got;
	struct sampling s;
	char folder[256];
	int go[2], status = -1;
	size_t seen = 0;

	if (!make_cgroup(folder, sizeof(folder), "tally-sampler"))
		tap_skip("no cgroup can be made here");
	const struct tally_target target = { .scope = TALLY_SCOPE_CGROUP, .cgroup = folder };
	check_int(pipe2(go, O_CLOEXEC), 0);
	pid_t child = fork();
	if (child == 0)
		touch_in_cgroup(folder, go[0], &fresh);
	if (sampling_start(&s, "page-faults", &target, opts)) {
		check_int(tally_sampler_enable(s.sampler), 0);
		fresh_touch(&other, PAGES); /* outside of it */
		check_int(write(go[1], "g", 1), 1);
		check(waitpid(child, &status, 0) == child);
		check_int(status, 0);
		check_int(tally_sampler_disable(s.sampler), 0);
		while ((got = sampling_next(&s, TALLY_RECORD_SAMPLE, 0))) {
			uint64_t offset = got->record->sample.addr - (uint64_t)(uintptr_t)fresh.at;
			check_int(got->record->id.pid, child);
			seen += offset < PAGES * fresh.page_size;
		}
		check_int(seen, PAGES);
		sampling_close(&s);
	}
	check_int(rmdir(folder), 0);
	close(go[0]);
	close(go[1]);
	fresh_unmap(&fresh);
	fresh_unmap(&other);
}

/* -- signals, cancelling, the end --------------------------------------------------------------- */

static volatile sig_atomic_t traps, wrong_traps;

static void on_trap(int sig, siginfo_t *info, void *context)
{
	uint64_t data;

	(void)sig, (void)context;
	traps++;
	/* si_perf_data lies behind si_addr. */
	memcpy(&data, (char *)info + offsetof(siginfo_t, si_addr) + sizeof(void *), sizeof(data));
	if (info->si_code != SI_CODE_PERF || (unsigned long)data != (unsigned long)0x5eed)
		wrong_traps++;
}

static void a_sample_may_be_a_signal(void)
{
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO }, before;
	struct tally_sampler_opts opts = { .flags = TALLY_SAMPLER_SIGTRAP,
					   .period = 50,
					   .sig_data = 0x5eed };
	struct sampling s;

	if (!has_tracefs)
		tap_skip("no tracefs");
	sigaction(SIGTRAP, &action, &before);
	int r = sampling_open(&s, TRIGGER, &self, opts);
	if (r < 0 && s.err.cause == TALLY_CAUSE_UNSUPPORTED)
		tap_skip("this kernel has no sigtrap");
	if (check_int(r, 0)) {
		check_int(tally_sampler_enable(s.sampler), 0);
		for (int i = 0; i < 500; i++)
			syscall(SYS_getppid);
		check_int(tally_sampler_disable(s.sampler), 0);
		check_int(traps, 10);
		check_int(wrong_traps, 0);
		/* And each is a sample all the same. */
		check_u64(count_samples(&s, 0), 10);
	}
	sampling_close(&s);
	sigaction(SIGTRAP, &before, NULL);
}

static void *cancel_it(void *sampler)
{
	usleep(20000);
	check_int(tally_sampler_cancel(sampler), 0);
	return NULL;
}

static void another_thread_may_cancel(void)
{
	const struct tally_sampled *got;
	struct sampling s;
	pthread_t thread;

	if (!sampling_start(&s, "dummy", &self,
			    (struct tally_sampler_opts){ .flags = TALLY_SAMPLER_CANCELLABLE }))
		return;
	check_int(tally_sampler_enable(s.sampler), 0);
	check_int(pthread_create(&thread, NULL, cancel_it, s.sampler), 0);
	/* The thread's own start may be told first. */
	int r;
	do
		r = tally_sampler_next(s.sampler, -1, &got);
	while (r == 1);
	check_int(r, -ECANCELED);
	pthread_join(thread, NULL);
	sampling_close(&s);
}

static void the_end_comes_after_the_last_record(void)
{
	struct fresh fresh = fresh_map(PAGES);
	struct tally_sampler_opts opts = { .period = 1, .sample_type = TALLY_SAMPLE_ADDR };
	const struct tally_sampled *got;
	struct sampling s;
	int go[2], status = -1, r;
	size_t seen = 0, exits = 0;
	char byte;

	check_int(pipe2(go, O_CLOEXEC), 0);
	pid_t child = fork();
	if (child == 0) {
		close(go[1]);
		if (read(go[0], &byte, 1) != 1)
			_exit(1);
		fresh_touch(&fresh, PAGES);
		_exit(0);
	}
	const struct tally_target target = { .scope = TALLY_SCOPE_PROCESS, .id = child };
	if (sampling_start(&s, "page-faults", &target, opts)) {
		check_int(tally_sampler_enable(s.sampler), 0);
		check_int(write(go[1], "g", 1), 1);
		while ((r = tally_sampler_next(s.sampler, -1, &got)) == 1) {
			uint64_t offset = got->record->sample.addr - (uint64_t)(uintptr_t)fresh.at;
			exits += got->record->type == TALLY_RECORD_EXIT;
			seen += got->record->type == TALLY_RECORD_SAMPLE &&
				offset < PAGES * fresh.page_size;
		}
		check_int(r, -EPIPE);
		check_int(seen, PAGES);
		check_int(exits, 1);
		sampling_close(&s);
	}
	close(go[1]);
	check(waitpid(child, &status, 0) == child);
	check_int(status, 0);
	close(go[0]);
	fresh_unmap(&fresh);
}

/* A flight recorder: of many names the newest are there, the newest first. */
static void the_newest_are_kept(void)
{
	struct tally_sampler_opts opts = { .flags = TALLY_SAMPLER_OVERWRITE,
					   .period = 1,
					   .ring_bytes = 4096 };
	const struct tally_record_header *header;
	struct tally_record rec;
	struct sampling s;
	char name[24];
	int at = 999;

	if (!sampling_start(&s, "dummy,page-faults", &self, opts))
		return;
	check_int(tally_sampler_enable(s.sampler), 0);
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "name %d", i);
		prctl(PR_SET_NAME, name, 0, 0, 0);
	}
	check_int(tally_sampler_disable(s.sampler), 0);
	struct tally_ring *ring = tally_sampler_ring(s.sampler, 0);
	check_int(tally_ring_snapshot(ring), 0);
	while (tally_ring_next(ring, &header) == 1) {
		check(tally_record_decode(tally_sampler_layout(s.sampler, 0), header, header->size,
					  &rec, sizeof(rec)) > 0);
		if (rec.type != TALLY_RECORD_COMM)
			continue;
		snprintf(name, sizeof(name), "name %d", at--);
		check_str(rec.comm.comm, name);
	}
	/* A record has 64 bytes; there are some faults beside. */
	check(at <= 999 - 40 && at >= 999 - 64);
	sampling_close(&s);
}

int main(void)
{
	if (!kernel_mode_allowed())
		return kernel_mode_skip();
	has_tracefs = tracefs_ready();
	tap_run(the_threads_of_a_process_are_one_stream);
	tap_run(a_process_that_runs_is_sampled_exactly);
	tap_run(rates_change_while_it_samples);
	tap_run(readings_are_those_of_a_counter);
	tap_run(a_cgroup_has_its_own_samples);
	tap_run(a_sample_may_be_a_signal);
	tap_run(another_thread_may_cancel);
	tap_run(the_end_comes_after_the_last_record);
	tap_run(the_newest_are_kept);
	return tap_end();
}
