/* SPDX-License-Identifier: MIT */
/*
 * Without memory: each allocation of a journey fails once, by itself, and what had been made until
 * then must be gone: memory, descriptors, mappings, children, stopped threads. It is linked so that
 * the allocations of the library come here (ld's --wrap, see meson.build); those that libc makes for
 * itself do not.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <tally/tally.h>

#include "fakeperf.h"
#include "fakeroot.h"
#include "simdrive.h"
#include "tap.h"

#define LIVE_MAX  8192
#define STEPS_MAX 4000

/* What is allocated, and which allocation fails. A tracer's thread allocates as well. */
static struct {
	pthread_mutex_t lock;
	void *live[LIVE_MAX];
	int live_count, calls, fail_at;
} memory = { .lock = PTHREAD_MUTEX_INITIALIZER };

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t len);
void __real_free(void *at);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t len);
void __wrap_free(void *at);

static bool refuse(void)
{
	pthread_mutex_lock(&memory.lock);
	bool refused = ++memory.calls == memory.fail_at;
	pthread_mutex_unlock(&memory.lock);
	if (refused)
		errno = ENOMEM;
	return refused;
}

static void *note(void *at)
{
	pthread_mutex_lock(&memory.lock);
	if (at && memory.live_count < LIVE_MAX)
		memory.live[memory.live_count++] = at;
	pthread_mutex_unlock(&memory.lock);
	return at;
}

/* What libc allocated for us is not in the list. */
static void forget(const void *at)
{
	pthread_mutex_lock(&memory.lock);
	for (int i = memory.live_count; i-- > 0;)
		if (memory.live[i] == at) {
			memory.live[i] = memory.live[--memory.live_count];
			break;
		}
	pthread_mutex_unlock(&memory.lock);
}

void *__wrap_malloc(size_t size)
{
	return refuse() ? NULL : note(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size)
{
	return refuse() ? NULL : note(__real_calloc(count, size));
}

void *__wrap_realloc(void *old, size_t size)
{
	if (refuse())
		return NULL;
	forget(old);
	return note(__real_realloc(old, size));
}

char *__wrap_strdup(const char *text)
{
	return refuse() ? NULL : note(__real_strdup(text));
}

char *__wrap_strndup(const char *text, size_t len)
{
	return refuse() ? NULL : note(__real_strndup(text, len));
}

void __wrap_free(void *at)
{
	forget(at);
	__real_free(at);
}

static struct fakeroot root;
static struct tally_error err;

static int count_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Lets the k-th allocation of a journey fail, for all k; at least so many of them are refusals. */
static void fail_each(int (*journey)(void), int at_least)
{
	int refusals = 0, k = 1;

	for (; k < STEPS_MAX; k++) {
		int fds = count_fds(), live = memory.live_count;
		fake_reset();
		memset(&err, 0, sizeof(err));
		memory.calls = 0;
		memory.fail_at = k;
		int r = journey();
		bool reached = memory.calls >= k;
		memory.fail_at = 0;
		refusals += r < 0;
		bool clean = check_int(fake.open, 0) && check_int(fake.maps, 0) &&
			     check_int(fake.detached, fake.seized) && check_int(count_fds(), fds) &&
			     check_int(memory.live_count, live) &&
			     check(waitpid(-1, NULL, WNOHANG) < 0);
		if (!clean)
			printf("# at allocation %d of %d\n", k, memory.calls);
		if (!reached) {
			check_int(r, 0);
			break;
		}
		if (r < 0 && (!check_int(r, -ENOMEM) || !check_int(err.code, -ENOMEM) ||
			      !check_str(tally_cause_name(err.cause), "memory")))
			printf("# at allocation %d: %s\n", k, err.text);
	}
	check(k < STEPS_MAX);
	check(refusals >= at_least);
}

#define LIST "faults,{page-faults,minor-faults,sched:sched_switch}:u,cpu/event=1/,mem:0x10:w"

static struct tally_events *parsed(const char *list)
{
	struct tally_events *events = NULL;

	tally_events_parse(&events, list, TALLY_OPTS(events, .root = root.path), &err);
	return events;
}

static int parse(void)
{
	struct tally_events *events = NULL;
	int r = tally_events_parse(&events, LIST, TALLY_OPTS(events, .root = root.path), &err);

	if (r == 0)
		tally_events_free(events);
	return r;
}

static void names(void)
{
	fail_each(parse, 8);
}

static int take_attr(void)
{
	struct tally_events *events;
	struct tally_attr attr;

	tally_attr_init(&attr, TALLY_TYPE_SOFTWARE, TALLY_SW_PAGE_FAULTS);
	int r = tally_events_new(&events, "mine", &attr, TALLY_OPTS(events, .root = root.path),
				 &err);
	if (r == 0)
		tally_events_free(events);
	return r;
}

static void attrs(void)
{
	fail_each(take_attr, 2);
}

/* Whom the journey is on, with what. */
static struct {
	struct tally_events *events;
	uint32_t scope, flags, leader;
} on;

static const struct tally_target *target(void)
{
	static struct tally_target t;

	t = (struct tally_target){ .scope = on.scope, .id = 100, .cgroup = "web" };
	return &t;
}

static int open_counter(void)
{
	struct tally_counter *counter;
	struct tally_count count;
	int r = tally_counter_open(&counter, tally_events_at(on.events, 0), target(),
				   TALLY_OPTS(counter, .root = root.path, .flags = on.flags), &err);

	if (r < 0)
		return r;
	/* Nothing is allocated by what it does then. */
	int before = memory.calls;
	check_int(tally_counter_enable(counter), 0);
	check_int(tally_counter_read(counter, &count), 0);
	check_int(tally_counter_reset(counter), 0);
	check_int(tally_counter_disable(counter), 0);
	check_int(memory.calls, before);
	tally_counter_close(counter);
	return 0;
}

static int open_group(void)
{
	struct tally_group *group;
	struct tally_count counts[3];
	int r = tally_group_open(&group, on.events, 1, target(),
				 TALLY_OPTS(counter, .root = root.path, .flags = on.flags), &err);

	if (r < 0)
		return r;
	int before = memory.calls;
	check_int(tally_group_read(group, counts, 3), 0);
	check_int(memory.calls, before);
	tally_group_close(group);
	return 0;
}

static const uint32_t scopes[] = { TALLY_SCOPE_SELF,   TALLY_SCOPE_THREAD,  TALLY_SCOPE_PROCESS,
				   TALLY_SCOPE_SYSTEM, TALLY_SCOPE_COMMAND, TALLY_SCOPE_CGROUP };

static void counters_and_groups(void)
{
	on.events = parsed("faults,{page-faults,minor-faults,major-faults}");
	require(on.events != NULL);
	for (size_t i = 0; i < sizeof(scopes) / sizeof(*scopes); i++) {
		on.scope = scopes[i];
		on.flags = 0;
		fail_each(open_counter, 3);
		fail_each(open_group, 4);
		on.flags = TALLY_COUNTER_MEMBER_TIMES | TALLY_COUNTER_WEAK;
		fail_each(open_group, 4);
	}
	tally_events_free(on.events);
}

/* A group that is refused as it is, and what is opened anew. */
static int split(void)
{
	struct tally_group *group;
	struct tally_count counts[3];
	struct tally_fast fast;
	int r = tally_group_open(&group, on.events, 1, target(),
				 TALLY_OPTS(counter, .root = root.path, .flags = on.flags), &err);

	if (r < 0)
		return r;
	r = tally_group_split(group, 1, &err);
	if (r == 0)
		r = tally_group_split(group, 3, &err);
	check_int(tally_group_read(group, counts, 3), 0);
	if (r == 0)
		r = tally_group_fast(group, 1, &fast, &err);
	tally_group_close(group);
	return r;
}

static int filter(void)
{
	struct tally_counter *counter;
	struct tally_count count;
	int r = tally_counter_open(&counter, tally_events_at(on.events, 0), target(),
				   TALLY_OPTS(counter, .root = root.path), &err);

	if (r < 0)
		return r;
	r = tally_counter_set_filter(counter, "a == 1", &err);
	if (r == 0)
		r = tally_counter_set_filter(counter, "a == 2", &err);
	check_int(tally_counter_read(counter, &count), 0);
	tally_counter_close(counter);
	return r;
}

static void what_is_opened_anew(void)
{
	on.scope = TALLY_SCOPE_SELF;
	on.flags = 0;
	on.events = parsed("faults,{page-faults,minor-faults,major-faults}");
	require(on.events != NULL);
	fail_each(split, 10);
	tally_events_free(on.events);
	on.events = parsed("sched:sched_switch");
	require(on.events != NULL);
	/* The event keeps the last one that it was given, so that it has one from the start. */
	require(tally_event_set_filter(tally_events_at(on.events, 0), "a == 0") == 0);
	fail_each(filter, 8);
	tally_events_free(on.events);
}

static void nothing(void *arg)
{
	(void)arg;
}

static int measure_nothing(void)
{
	struct tally_group *group;
	struct tally_result results[3];
	uint64_t overhead[3];
	int r = tally_group_open(&group, on.events, 1, target(), NULL, &err);

	if (r < 0)
		return r;
	r = tally_count_overhead(group, overhead, 3);
	if (r == 0)
		r = tally_measure(group, nothing, NULL, results, 3);
	if (r < 0) { /* they have no words of their own */
		err.code = r;
		err.cause = TALLY_CAUSE_MEMORY;
	}
	tally_group_close(group);
	return r;
}

static void measuring(void)
{
	on.scope = TALLY_SCOPE_SELF;
	on.events = parsed("faults,{page-faults,minor-faults,major-faults}");
	require(on.events != NULL);
	fail_each(measure_nothing, 6);
	tally_events_free(on.events);
}

static int freeze_it(void)
{
	struct tally_freeze *freeze;
	int r = tally_freeze_open(&freeze, 100, TALLY_OPTS(freeze, .root = root.path), &err);

	if (r == 0)
		tally_freeze_close(freeze);
	return r;
}

static void freezing(void)
{
	fail_each(freeze_it, 2);
}

static int launch_it(void)
{
	char *const argv[] = { (char[]){ "true" }, NULL };
	struct tally_launch *launch;
	int r = tally_launch_start(&launch, argv, &err);

	if (r == 0)
		tally_launch_close(launch);
	return r;
}

static void launching(void)
{
	fail_each(launch_it, 1);
}

static int sample_it(void)
{
	struct tally_sampler *sampler;
	int r = tally_sampler_open(&sampler, on.events, target(),
				   TALLY_OPTS(sampler, .root = root.path, .ring_bytes = 65536),
				   &err);

	if (r == 0)
		tally_sampler_close(sampler);
	return r;
}

static int map_ring(void)
{
	struct tally_attr attr = { .size = 64 };
	struct tally_ring *ring;
	int fd = sys()->perf_event_open(&attr, 0, -1, -1, 0);
	int r = tally_ring_open(&ring, fd, TALLY_OPTS(ring, .flags = TALLY_RING_CANCELLABLE), &err);

	if (r == 0)
		tally_ring_close(ring);
	sys()->close(fd);
	return r;
}

/* A timer on a simulated thread: nothing is allocated on the way. */
static int stop_exactly(void)
{
	static const struct tally_sim_insn loop[] = {
		{ TALLY_SIM_PLAIN, .reg = 1, .value = 1 },
		{ TALLY_SIM_BRANCH, .reg = 0, .target = 0 },
	};
	struct tally_sim_opts opts = { .size = sizeof(opts), .margin = 10, .regs = { 1000 } };
	struct tally_timer_request request = { .kind = TALLY_TIMER_INSTRUCTIONS,
					       .ticks = 500,
					       .instructions = 3 };
	struct tally_calibration *seen = NULL;
	struct tally_sim *twin = NULL;
	struct simdrive d = { 0 };
	int r = -ENOMEM;

	if (tally_calibration_new(&seen, "sim", &err) == 0 &&
	    simdrive_open(&d, loop, 2, &opts, TALLY_OPTS(timer, .calibration = seen))) {
		int before = memory.calls;
		const struct tally_timer_outcome *got = simdrive_ask(&d, &request);
		check(got && got->kind == TALLY_OUTCOME_REACHED);
		check_int(memory.calls, before);
		r = tally_sim_copy(&twin, d.sim, &err);
	} else if (d.err.code) {
		err = d.err;
	}
	simdrive_close(&d);
	tally_sim_free(twin);
	tally_calibration_free(seen);
	return r;
}

static void exact_stops(void)
{
	fail_each(stop_exactly, 5);
}

static void samplers_and_rings(void)
{
	static const uint32_t sampled[] = { TALLY_SCOPE_THREAD, TALLY_SCOPE_PROCESS,
					    TALLY_SCOPE_SYSTEM };

	fail_each(map_ring, 1);
	on.events = parsed("faults,{page-faults,minor-faults}");
	require(on.events != NULL);
	for (size_t i = 0; i < sizeof(sampled) / sizeof(*sampled); i++) {
		on.scope = sampled[i];
		fail_each(sample_it, 6);
	}
	tally_events_free(on.events);
}

static int use_regions(void)
{
	struct tally_region outer = TALLY_REGION("outer"), inner = TALLY_REGION("inner");
	struct tally_regions set = { .on = 0 };

	tally_regions_start(&set);
	for (int i = 0; i < 3; i++) {
		TALLY_REGION_BEGIN(set, &outer);
		TALLY_REGION_BEGIN(set, &inner);
		TALLY_REGION_END(set, &inner);
		TALLY_REGION_END(set, &outer);
	}
	tally_regions_stop(&set);
	return 0; /* they fail silently */
}

static void regions(void)
{
	setenv("TALLY_REGIONS", "{page-faults,minor-faults}:u", 1);
	setenv("TALLY_REGIONS_OUTPUT", "/dev/null", 1);
	/* What cannot be kept of the output's name goes to standard error. */
	int out = dup(STDERR_FILENO), none = open("/dev/null", O_WRONLY | O_CLOEXEC);
	require(out >= 0 && none >= 0 && dup2(none, STDERR_FILENO) >= 0);
	fail_each(use_regions, 0);
	check(dup2(out, STDERR_FILENO) >= 0);
	close(out);
	close(none);
	unsetenv("TALLY_REGIONS");
}

static int compute_metric(void)
{
	struct tally_metric *metric;
	int r = tally_metric_parse(&metric, "it", "max(a/b, 3) if a > b else c * 2", NULL, &err);

	if (r < 0)
		return r;
	const struct tally_result results[] = {
		{ "a", "", 1, { .value = 10 } },
		{ "b", "", 1, { .value = 4 } },
		{ "c", "", 1, { .value = 1 } },
	};
	struct tally_metric_value value;
	r = tally_metric_compute(metric, results, 3, NULL, &value, &err);
	tally_metric_free(metric);
	return r;
}

static void metrics(void)
{
	fail_each(compute_metric, 3);
}

int main(void)
{
	static const char *const files[][2] = {
		{ "/proc/100/task/100/stat", "100 (a) R 1" },
		{ "/proc/100/task/101/stat", "101 (a) R 1" },
		{ "/sys/devices/system/cpu/online", "0-1\n" },
		{ "/proc/self/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n" },
		{ "/sys/fs/cgroup/web/cgroup.procs", "" },
		{ "/sys/kernel/tracing/events/sched/sched_switch/id", "300\n" },
		{ "/sys/kernel/tracing/events/sched/sched_switch/format", "name: sched_switch\n" },
		{ "/sys/bus/event_source/devices/cpu/type", "4\n" },
		{ "/sys/bus/event_source/devices/cpu/format/event", "config:0-7\n" },
	};
	bool ok = fakeroot_make(&root);

	for (size_t i = 0; ok && i < sizeof(files) / sizeof(*files); i++)
		ok = fakeroot_file(&root, files[i][0], files[i][1]);
	if (!ok) {
		printf("Bail out! no made-up machine\n");
		return 1;
	}
	tap_run(names);
	tap_run(attrs);
	tap_run(counters_and_groups);
	tap_run(what_is_opened_anew);
	tap_run(measuring);
	tap_run(freezing);
	tap_run(launching);
	tap_run(samplers_and_rings);
	tap_run(exact_stops);
	tap_run(regions);
	tap_run(metrics);
	fakeroot_remove(&root);
	return tap_end();
}
