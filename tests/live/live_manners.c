/* SPDX-License-Identifier: MIT */
/* docs/manners.md, as far as it can be seen from inside a process. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tally/tally.h>

#include "tap.h"

static struct tally_error err;

static struct tally_counter *open_one(const char *name, uint32_t scope,
				      struct tally_events **events)
{
	struct tally_target target = { .scope = scope, .id = getpid() };
	struct tally_counter *counter;

	if (tally_events_parse(events, name, NULL, &err) < 0)
		return NULL;
	if (tally_counter_open(&counter, tally_events_at(*events, 0), &target,
			       TALLY_OPTS(counter, .flags = TALLY_COUNTER_ENABLED), &err) < 0) {
		tally_events_free(*events);
		return NULL;
	}
	return counter;
}

static void close_one(struct tally_counter *counter, struct tally_events *events)
{
	tally_counter_close(counter);
	tally_events_free(events);
}

static bool is_open(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0;
}

static int count_fds(void)
{
	int count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += is_open(fd);
	return count;
}

/* One of everything that counts, used and closed. */
static bool use_everything(void)
{
	struct tally_target target = { .scope = TALLY_SCOPE_SELF };
	struct tally_events *events = NULL, *others = NULL;
	struct tally_counter *counter = open_one("page-faults:u", TALLY_SCOPE_SELF, &events);
	struct tally_group *group = NULL;
	struct tally_count counts[2];
	struct tally_fast fast;

	bool ok = counter && tally_counter_fast(counter, &fast, &err) == 0 &&
		  tally_fast_read_count(&fast, counts) == 0 &&
		  tally_counter_read(counter, counts) == 0 &&
		  tally_events_parse(&others, "{page-faults,task-clock}:u", NULL, &err) == 0 &&
		  tally_group_open(&group, others, 0, &target, NULL, &err) == 0 &&
		  tally_group_enable(group) == 0 && tally_group_read(group, counts, 2) == 0;
	tally_group_close(group);
	tally_events_free(others);
	if (counter)
		close_one(counter, events);
	return ok;
}

static void signals_are_left_alone(void)
{
	struct sigaction before[NSIG], after;
	sigset_t mask, mask_after;

	for (int s = 1; s < NSIG; s++)
		sigaction(s, NULL, &before[s]);
	sigprocmask(SIG_SETMASK, NULL, &mask);
	check(use_everything());
	for (int s = 1; s < NSIG; s++)
		if (sigaction(s, NULL, &after) == 0)
			check(after.sa_handler == before[s].sa_handler &&
			      after.sa_flags == before[s].sa_flags);
	sigprocmask(SIG_SETMASK, NULL, &mask_after);
	for (int s = 1; s < NSIG; s++)
		check_int(sigismember(&mask_after, s), sigismember(&mask, s));
}

static void descriptors_are_counted_closed_and_not_passed_on(void)
{
	struct tally_events *events;
	int before = count_fds();
	struct tally_counter *counter = open_one("page-faults:u", TALLY_SCOPE_SELF, &events);
	struct tally_fast fast;

	require(counter != NULL);
	check_int(count_fds(), before + 1);
	check_int(tally_counter_fast(counter, &fast, &err), 0);
	check_int(count_fds(), before + 1);
	check(fcntl(tally_counter_fd(counter, 0), F_GETFD) & FD_CLOEXEC);
	close_one(counter, events);
	check_int(count_fds(), before);
	check(use_everything());
	check_int(count_fds(), before);
}

static void limits_are_left_alone_while_there_are_descriptors(void)
{
	struct rlimit before, after;

	getrlimit(RLIMIT_NOFILE, &before);
	check(use_everything());
	getrlimit(RLIMIT_NOFILE, &after);
	check_u64(after.rlim_cur, before.rlim_cur);
	check_u64(after.rlim_max, before.rlim_max);
}

static void the_soft_limit_is_raised_when_they_run_out(void)
{
	struct rlimit before, low, after;
	struct tally_events *events = NULL;

	getrlimit(RLIMIT_NOFILE, &before);
	int lowest = open("/dev/null", O_RDONLY | O_CLOEXEC);
	require(lowest >= 0);
	close(lowest);
	/* No descriptor is left: `lowest` would be the next one. */
	low = (struct rlimit){ (rlim_t)lowest, before.rlim_max };
	require(setrlimit(RLIMIT_NOFILE, &low) == 0);
	struct tally_counter *counter = open_one("page-faults:u", TALLY_SCOPE_SELF, &events);
	getrlimit(RLIMIT_NOFILE, &after);
	setrlimit(RLIMIT_NOFILE, &before);
	require(counter != NULL);
	check_u64(after.rlim_cur, before.rlim_max);
	close_one(counter, events);
}

static uint64_t value_of(struct tally_counter *counter)
{
	struct tally_count count = { 0 };

	check_int(tally_counter_read(counter, &count), 0);
	return count.enabled_ns;
}

static int run_child(void (*fn)(struct tally_counter *), struct tally_counter *counter)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		fn(counter);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return status;
}

static void close_in_child(struct tally_counter *counter)
{
	tally_counter_close(counter);
}

static void disable_in_child(struct tally_counter *counter)
{
	tally_counter_disable(counter);
}

static void a_child_may_close_what_it_inherits(void)
{
	struct tally_events *events;
	struct tally_counter *counter = open_one("page-faults:u", TALLY_SCOPE_SELF, &events);
	struct tally_fast fast;

	require(counter != NULL);
	check_int(tally_counter_fast(counter, &fast, &err), 0);
	check_int(run_child(close_in_child, counter), 0);
	uint64_t then = value_of(counter);
	check(value_of(counter) > then);
	close_one(counter, events);
}

static void a_child_that_disables_disables_its_parents(void)
{
	struct tally_events *events;
	struct tally_counter *counter = open_one("page-faults:u", TALLY_SCOPE_SELF, &events);

	require(counter != NULL);
	check_int(run_child(disable_in_child, counter), 0);
	uint64_t then = value_of(counter);
	check_u64(value_of(counter), then);
	close_one(counter, events);
}

static void *open_in_thread(void *arg)
{
	return open_one("page-faults:u", TALLY_SCOPE_SELF, arg);
}

static void a_counter_outlives_its_thread(void)
{
	struct tally_events *events;
	void *opened = NULL;
	pthread_t thread;

	require(pthread_create(&thread, NULL, open_in_thread, &events) == 0);
	pthread_join(thread, &opened);
	struct tally_counter *counter = opened;
	require(counter != NULL);
	uint64_t then = value_of(counter);
	check(then > 0);
	check_u64(value_of(counter), then);
	check_int(tally_counter_disable(counter), 0);
	close_one(counter, events);
}

/* What the handler uses, and what it found. */
static struct {
	struct tally_fast fast;
	struct tally_counter *counter;
	struct tally_group *group;
	struct tally_regions *set;
	struct tally_region region;
	volatile sig_atomic_t runs, wrong;
} handler = { .region = TALLY_REGION("in the handler") };

static void handle(int sig)
{
	struct tally_count counts[2];
	struct tally_page page;
	uint64_t value = 0;
	int r = tally_fast_read(&handler.fast, &value);

	(void)sig;
	r |= tally_fast_read_count(&handler.fast, counts);
	r |= tally_counter_disable(handler.counter);
	r |= tally_counter_read(handler.counter, counts);
	r |= tally_counter_reset(handler.counter);
	r |= tally_counter_enable(handler.counter);
	r |= tally_group_read(handler.group, counts, 2);
	tally_fast_is_user(&handler.fast);
	tally_page_read(&handler.fast, &page, sizeof(page));
	TALLY_REGION_BEGIN(*handler.set, &handler.region);
	TALLY_REGION_END(*handler.set, &handler.region);
	handler.wrong += r != 0;
	handler.runs++;
}

/* The interrupted code allocates, opens and reads, so that a lock or an allocation would be met. */
static void counters_may_be_used_in_signal_handlers(void)
{
	struct tally_target target = { .scope = TALLY_SCOPE_SELF };
	struct itimerval every = { { 0, 500 }, { 0, 500 } }, never = { { 0, 0 }, { 0, 0 } };
	struct sigaction action = { .sa_handler = handle, .sa_flags = SA_RESTART }, old;
	struct tally_region outside = TALLY_REGION("interrupted");
	struct tally_regions set = { .on = 0 };
	struct tally_events *events, *others;

	handler.counter = open_one("page-faults:u", TALLY_SCOPE_SELF, &events);
	require(handler.counter != NULL);
	require(tally_counter_fast(handler.counter, &handler.fast, &err) == 0);
	require(tally_events_parse(&others, "{page-faults,task-clock}:u", NULL, &err) == 0);
	require(tally_group_open(&handler.group, others, 0, &target, NULL, &err) == 0);
	setenv("TALLY_REGIONS", "page-faults:u", 1);
	setenv("TALLY_REGIONS_OUTPUT", "/dev/null", 1);
	tally_regions_start(&set);
	handler.set = &set;
	handle(0); /* a region's first time allocates */
	TALLY_REGION_BEGIN(set, &outside);
	TALLY_REGION_END(set, &outside);
	sigaction(SIGALRM, &action, &old);
	setitimer(ITIMER_REAL, &every, NULL);
	while (handler.runs < 200) {
		free(malloc(100000));
		TALLY_REGION_BEGIN(set, &outside);
		use_everything();
		TALLY_REGION_END(set, &outside);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	sigaction(SIGALRM, &old, NULL);
	check_int(handler.wrong, 0);
	struct tally_regions_notes notes;
	check_int(tally_regions_notes(&set, &notes, sizeof(notes)), 0);
	check_u64(notes.unmatched_ends, 0);
	check_u64(notes.open, 0);
	tally_regions_stop(&set);
	tally_group_close(handler.group);
	tally_events_free(others);
	close_one(handler.counter, events);
}

/* Standard input is closed, so that the group's leader gets its descriptor. */
static int count_at_descriptor_0(void)
{
	const struct tally_target self = { .scope = TALLY_SCOPE_SELF };
	struct tally_events *events;
	struct tally_group *group;
	struct tally_count counts[2];

	if (tally_events_parse(&events, "{page-faults,task-clock}:u", NULL, &err) < 0)
		return 2;
	close(STDIN_FILENO);
	if (tally_group_open(&group, events, 0, &self, NULL, &err) < 0)
		return 3;
	if (tally_counter_fd(tally_group_member(group, 0), 0) != 0)
		return 4;
	if (tally_group_enable(group) < 0 || tally_group_read(group, counts, 2) < 0 ||
	    !counts[1].value || counts[1].state != TALLY_COUNT_EXACT)
		return 5;
	tally_group_close(group);
	tally_events_free(events);
	return is_open(0) ? 6 : 0;
}

static void a_descriptor_of_0_is_one(void)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(count_at_descriptor_0());
	check_int(waitpid(pid, &status, 0), pid);
	check_int(WEXITSTATUS(status), 0);
}

static void stacks_are_as_deep_as_the_kernel_says(void)
{
	FILE *f = fopen("/proc/sys/kernel/perf_event_max_stack", "r");
	unsigned frames = 127;

	if (f) {
		check_int(fscanf(f, "%u", &frames), 1);
		fclose(f);
	}
	check_u64(tally_max_stack(), frames);
}

static void what_works_is_said_to_work(void)
{
	check_int(tally_supported(&err), 0);
}

int main(void)
{
	struct tally_events *events;
	struct tally_counter *probe = open_one("page-faults:u", TALLY_SCOPE_SELF, &events);

	if (!probe) {
		printf("1..0 # SKIP %s\n", err.text);
		return 0;
	}
	close_one(probe, events);
	tap_run(signals_are_left_alone);
	tap_run(descriptors_are_counted_closed_and_not_passed_on);
	tap_run(limits_are_left_alone_while_there_are_descriptors);
	tap_run(the_soft_limit_is_raised_when_they_run_out);
	tap_run(a_child_may_close_what_it_inherits);
	tap_run(a_child_that_disables_disables_its_parents);
	tap_run(a_counter_outlives_its_thread);
	tap_run(counters_may_be_used_in_signal_handlers);
	tap_run(a_descriptor_of_0_is_one);
	tap_run(stacks_are_as_deep_as_the_kernel_says);
	tap_run(what_works_is_said_to_work);
	return tap_end();
}
