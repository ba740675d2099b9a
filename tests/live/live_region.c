/* SPDX-License-Identifier: MIT */
/*
 * region, on the real kernel: exact page faults by region, over threads, forks, and a stop while
 * others go on. Sets are started by hand, with an environment of ours; the macros that do it are
 * tried by the examples' test and live_manners.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tally/tally.h>

#include "fresh.h"
#include "tap.h"

static char output[64];
static struct tally_regions set;
static struct tally_region outer = TALLY_REGION("outer"), inner = TALLY_REGION("inner"),
			   other = TALLY_REGION("other");

/* Fresh pages, so many that no test runs out of them. */
static struct fresh fresh;
static atomic_size_t fresh_used;
#define FRESH_PAGES 20000u

/* So many page faults, no more and no less. */
FRESH_UNWATCHED static void fault(size_t pages)
{
	size_t at = atomic_fetch_add(&fresh_used, pages);

	for (; pages && at < FRESH_PAGES; pages--, at++)
		fresh.at[at * fresh.page_size] = 1;
}

static bool start(const char *events, const char *format)
{
	snprintf(output, sizeof(output), "/tmp/tally-region-%d", getpid());
	unlink(output);
	setenv("TALLY_REGIONS", events, 1);
	setenv("TALLY_REGIONS_OUTPUT", "/tmp/tally-region-%p", 1);
	setenv("TALLY_REGIONS_FORMAT", format, 1);
	tally_regions_start(&set);
	return set.on;
}

static char text[65536];

/* What a process wrote; "" when nothing. */
static const char *written_by(pid_t pid)
{
	char path[64];
	size_t n = 0;

	snprintf(path, sizeof(path), "/tmp/tally-region-%d", pid);
	FILE *f = fopen(path, "r");
	if (f) {
		n = fread(text, 1, sizeof(text) - 1, f);
		fclose(f);
		unlink(path);
	}
	text[n] = '\0';
	return text;
}

static const char *stop(void)
{
	tally_regions_stop(&set);
	return written_by(getpid());
}

struct found {
	const char *name;
	uint64_t calls, inclusive, exclusive;
	uint32_t state;
};

static int match(const struct tally_region_result *result, void *arg)
{
	struct found *f = arg;

	if (strcmp(result->name, f->name) != 0)
		return 0;
	f->calls = result->calls;
	f->inclusive = result->inclusive[0].count.value;
	f->exclusive = result->exclusive[0].count.value;
	f->state = result->inclusive[0].count.state;
	return 1;
}

static struct found find(const char *name)
{
	struct found f = { .name = name };

	tally_regions_read(&set, match, &f);
	return f;
}

static struct tally_regions_notes notes(void)
{
	struct tally_regions_notes n;

	tally_regions_notes(&set, &n, sizeof(n));
	return n;
}

static void begin(struct tally_region *region)
{
	TALLY_REGION_BEGIN(set, region);
}

static void end(struct tally_region *region)
{
	TALLY_REGION_END(set, region);
}

/* The first use of a region takes memory for its name; what is exact comes after. */
static void warm_up(void)
{
	struct tally_region *all[] = { &outer, &inner, &other };

	/* In a forked child the first store to each page of the parent's is a fault. */
	fault(1);
	for (int i = 0; i < 3; i++) {
		begin(all[i]);
		end(all[i]);
	}
}

static void unasked_it_is_off(void)
{
	unsetenv("TALLY_REGIONS");
	tally_regions_start(&set);
	check_u64(set.on, 0);
	begin(&outer);
	end(&outer);
	check(set.state == NULL);
	check_u64(outer.tag, 0);
	check(!start("", "text"));
	check(!start("0", "text"));
	check_str(stop(), "");
}

static void faults_are_exact_inside_and_outside(void)
{
	if (!start("page-faults:u", "text"))
		tap_skip("page faults cannot be counted here");
	warm_up();
	for (int i = 0; i < 3; i++) {
		begin(&outer);
		fault(10);
		begin(&inner);
		fault(5);
		end(&inner);
		begin(&other);
		end(&other);
		fault(2);
		end(&outer);
	}
	struct found f = find("outer");
	check_u64(f.calls, 4);
	check_u64(f.inclusive, 51);
	check_u64(f.exclusive, 36);
	check_int(f.state, TALLY_COUNT_EXACT);
	f = find("inner");
	check_u64(f.calls, 4);
	check_u64(f.inclusive, 15);
	check_u64(f.exclusive, 15);
	check_u64(find("other").inclusive, 0);
	check_u64(find("nobody").calls, 0);
	const char *said = stop();
	check_has(said, "outer ");
	check_has(said, "page-faults:u ");
	check(!strstr(said, "note:"));
	check(set.state == NULL);
	check_u64(set.on, 0);
}

static void recursion_is_counted_once(void)
{
	require(start("page-faults:u", "text"));
	warm_up();
	begin(&outer);
	fault(1);
	begin(&inner);
	fault(10);
	begin(&outer);
	fault(100);
	end(&outer);
	end(&inner);
	fault(1);
	end(&outer);
	struct found f = find("outer");
	check_u64(f.calls, 3);
	check_u64(f.inclusive, 112);
	check_u64(f.exclusive, 102);
	f = find("inner");
	check_u64(f.inclusive, 110);
	check_u64(f.exclusive, 10);
	stop();
}

static void handles_of_one_name_are_one_region(void)
{
	struct tally_region twin = TALLY_REGION("outer");

	require(start("page-faults:u", "text"));
	begin(&outer);
	end(&outer);
	begin(&twin);
	end(&twin);
	begin(&outer);
	end(&twin);
	check_u64(find("outer").calls, 3);
	check_u64(notes().unmatched_ends, 0);
	stop();
}

static void what_does_not_match_is_told(void)
{
	require(start("page-faults:u", "text"));
	warm_up();
	end(&outer);
	begin(&outer);
	end(&inner);
	begin(&inner);
	begin(&other);
	fault(3);
	end(&outer); /* ends the two in it */
	end(&inner);
	struct tally_regions_notes n = notes();
	check_u64(n.threads, 1);
	check_u64(n.unmatched_ends, 3);
	check_u64(n.ended_by_outer, 2);
	check_u64(n.open, 0);
	check_u64(find("outer").inclusive, 3);
	check_u64(find("inner").inclusive, 3);
	check_u64(find("other").exclusive, 3);
	begin(&outer);
	begin(&inner);
	check_u64(notes().open, 2);
	check_u64(find("outer").calls, 2);
	const char *said = stop();
	check_has(said, "note: 2 regions were still open");
	check_has(said, "note: 3 ENDs had no BEGIN");
	check_has(said, "note: 2 regions had no END before");
}

static void too_deep_is_told_and_ignored(void)
{
	struct tally_region deep = TALLY_REGION("deep");

	require(start("page-faults:u", "text"));
	for (int i = 0; i < TALLY_REGION_DEPTH + 3; i++)
		begin(&deep);
	for (int i = 0; i < TALLY_REGION_DEPTH + 3; i++)
		end(&deep);
	check_u64(notes().too_deep, 3);
	check_u64(notes().open, 0);
	check_u64(notes().unmatched_ends, 0);
	check_u64(find("deep").calls, TALLY_REGION_DEPTH);
	stop();
}

static void *fault_in_thread(void *arg)
{
	warm_up();
	begin(&outer);
	fault(*(size_t *)arg);
	end(&outer);
	return NULL;
}

static void threads_are_summed(void)
{
	size_t pages = 20;
	pthread_t thread;

	require(start("page-faults:u", "text"));
	for (int i = 0; i < 3; i++) {
		require(pthread_create(&thread, NULL, fault_in_thread, &pages) == 0);
		pthread_join(thread, NULL);
	}
	fault_in_thread(&pages);
	struct found f = find("outer");
	check_u64(f.calls, 8);
	check_u64(f.inclusive, 80);
	check_u64(notes().threads, 4);
	check_has(stop(), "threads with regions: 4");
}

/* A thread that lives on when the set is stopped. */
struct living {
	pthread_barrier_t ready, go;
	size_t pages;
};

static void *live_on(void *arg)
{
	struct living *l = arg;

	fault_in_thread(&l->pages);
	begin(&inner);
	pthread_barrier_wait(&l->ready);
	pthread_barrier_wait(&l->go);
	end(&inner);
	begin(&outer);
	end(&outer);
	return NULL;
}

static int count_fds(void)
{
	int count = 0;

	for (int fd = 0; fd < 1024; fd++) {
		struct stat st;
		count += fstat(fd, &st) == 0;
	}
	return count;
}

static void living_threads_are_included_as_far_as_they_are(void)
{
	struct living l = { .pages = 30 };
	int fds = count_fds();
	pthread_t thread;

	require(start("page-faults:u", "json"));
	pthread_barrier_init(&l.ready, NULL, 2);
	pthread_barrier_init(&l.go, NULL, 2);
	require(pthread_create(&thread, NULL, live_on, &l) == 0);
	pthread_barrier_wait(&l.ready);
	check_u64(find("outer").inclusive, 30);
	check_u64(notes().open, 1);
	const char *said = stop();
	check_has(said, "\"region\":\"outer\",\"calls\":2,");
	check_has(said, "\"inclusive\":30,\"inclusive_state\":\"exact\"");
	check_has(said, "\"open\":1");
	check_int(count_fds(), fds);
	/* It goes on without its set, and then with the set started again. */
	require(start("page-faults:u", "text"));
	pthread_barrier_wait(&l.go);
	pthread_join(thread, NULL);
	check_u64(find("outer").calls, 1);
	/* What it had begun before is not this start's. */
	check_u64(notes().unmatched_ends, 1);
	stop();
	check_int(count_fds(), fds);
}

static void a_forked_child_begins_anew(void)
{
	int status = -1;

	require(start("page-faults:u", "text"));
	warm_up();
	begin(&outer);
	fault(7);
	pid_t pid = fork();
	if (pid == 0) {
		end(&outer); /* its parent's: ignored, and not worth a word */
		warm_up();
		begin(&outer);
		fault(3);
		end(&outer);
		bool ok = find("outer").inclusive == 3 && notes().unmatched_ends == 0 &&
			  notes().threads == 1;
		tally_regions_stop(&set);
		_exit(ok ? 0 : 1);
	}
	require(pid > 0);
	check_int(waitpid(pid, &status, 0), pid);
	check_int(status, 0);
	end(&outer);
	check_u64(find("outer").calls, 2);
	/* What fork itself does to the parent's pages is none of ours. */
	check(find("outer").inclusive >= 7);
	check_has(written_by(pid), "threads with regions: 1\n");
	check_has(stop(), "threads with regions: 1\n");
}

static void a_child_without_regions_says_nothing(void)
{
	int fds = count_fds(), status = -1;

	require(start("page-faults:u", "text"));
	warm_up();
	pid_t pid = fork();
	if (pid == 0) {
		tally_regions_stop(&set);
		tally_regions_stop(&set);
		_exit(0);
	}
	require(pid > 0);
	check_int(waitpid(pid, &status, 0), pid);
	check_int(status, 0);
	check_str(written_by(pid), "");
	check_has(stop(), "threads with regions: 1\n");
	check_int(count_fds(), fds);
}

/* Threads of a child are as good as those of any process. */
static void a_childs_threads_begin_anew(void)
{
	int status = -1;
	size_t pages = 4;

	require(start("page-faults:u", "text"));
	warm_up();
	pid_t pid = fork();
	if (pid == 0) {
		pthread_t thread;
		if (pthread_create(&thread, NULL, fault_in_thread, &pages) != 0)
			_exit(2);
		pthread_join(thread, NULL);
		fault_in_thread(&pages);
		bool ok = find("outer").inclusive == 8 && notes().threads == 2;
		tally_regions_stop(&set);
		_exit(ok ? 0 : 1);
	}
	require(pid > 0);
	check_int(waitpid(pid, &status, 0), pid);
	check_int(status, 0);
	written_by(pid);
	stop();
}

static atomic_bool enough;

static void *hammer(void *arg)
{
	uint64_t *calls = arg;

	while (!enough) {
		begin(&outer);
		begin(&inner);
		end(&inner);
		end(&outer);
		++*calls;
	}
	return NULL;
}

static void reading_and_stopping_may_come_at_any_moment(void)
{
	int fds = count_fds();

	for (int round = 0; round < 20; round++) {
		pthread_t threads[3];
		uint64_t calls[3] = { 0 }, last = 0;
		enough = false;
		require(start("page-faults:u,task-clock:u", "text"));
		for (int i = 0; i < 3; i++)
			require(pthread_create(&threads[i], NULL, hammer, &calls[i]) == 0);
		for (int i = 0; i < 50; i++) {
			struct found f = find("outer");
			check(f.calls >= last);
			last = f.calls;
		}
		stop(); /* while they go on */
		enough = true;
		for (int i = 0; i < 3; i++)
			pthread_join(threads[i], NULL);
		check(calls[0] + calls[1] + calls[2] >= last);
		check_u64(set.on, 0);
		check_int(count_fds(), fds);
	}
}

static void threads_that_end_are_never_lost(void)
{
	require(start("page-faults:u", "text"));
	for (int i = 0; i < 50; i++) {
		pthread_t threads[4];
		size_t none = 0;
		for (int k = 0; k < 4; k++)
			require(pthread_create(&threads[k], NULL, fault_in_thread, &none) == 0);
		for (int k = 0; k < 4; k++)
			pthread_join(threads[k], NULL);
	}
	check_u64(find("outer").calls, 400);
	check_u64(notes().threads, 200);
	stop();
}

static void a_wrong_name_is_told_once(void)
{
	check(!start("page-fautls", "text"));
	begin(&outer);
	end(&outer);
	const char *said = stop();
	check_has(said, "note: nothing is counted: TALLY_REGIONS: ");
	check_has(said, "page-faults");
	check(!start("page-fautls", "json"));
	check_has(stop(), "\"troubles\":[\"nothing is counted");
}

static bool has_pmu(void)
{
	struct tally_system s;

	return tally_system_read(&s, sizeof(s), NULL, NULL) == 0 && s.has_core_pmu;
}

static void events_that_cannot_be_opened_are_left_out(void)
{
	if (has_pmu())
		tap_skip("this machine has a PMU, so that its events can be opened");
	require(start("cycles,page-faults:u", "text"));
	warm_up();
	begin(&outer);
	fault(2);
	end(&outer);
	check_u64(find("outer").inclusive, 2);
	check_has(stop(), "note: not counted: cannot open cycles: ");
	check(!start("cycles", "text"));
	check_has(stop(), "note: nothing is counted");
}

static int stop_at_once(const struct tally_region_result *result, void *arg)
{
	++*(int *)arg;
	return result->calls ? 42 : 0;
}

static void a_callback_ends_the_reading(void)
{
	int calls = 0;

	check_int(tally_regions_read(&set, stop_at_once, &calls), 0);
	require(start("page-faults:u", "text"));
	warm_up();
	check_int(tally_regions_read(&set, stop_at_once, &calls), 42);
	check_int(calls, 1);
	check_int(tally_regions_notes(&set, NULL, 0), -EINVAL);
	stop();
}

static void names_are_copied_and_escaped(void)
{
	char name[] = "a \"quoted\"\tname\\";
	struct tally_region mine = TALLY_REGION(name);

	require(start("page-faults:u", "json"));
	begin(&mine);
	end(&mine);
	memset(name, 'x', sizeof(name) - 1);
	check_has(stop(), "\"region\":\"a \\\"quoted\\\"\\u0009name\\\\\"");
}

int main(void)
{
	fresh = fresh_map(FRESH_PAGES);
	if (!fresh.at || !start("page-faults:u", "text")) {
		printf("1..0 # SKIP page faults cannot be counted here: %s", stop());
		return 0;
	}
	stop();
	tap_run(unasked_it_is_off);
	tap_run(faults_are_exact_inside_and_outside);
	tap_run(recursion_is_counted_once);
	tap_run(handles_of_one_name_are_one_region);
	tap_run(what_does_not_match_is_told);
	tap_run(too_deep_is_told_and_ignored);
	tap_run(threads_are_summed);
	tap_run(living_threads_are_included_as_far_as_they_are);
	tap_run(a_forked_child_begins_anew);
	tap_run(a_child_without_regions_says_nothing);
	tap_run(a_childs_threads_begin_anew);
	tap_run(reading_and_stopping_may_come_at_any_moment);
	tap_run(threads_that_end_are_never_lost);
	tap_run(a_wrong_name_is_told_once);
	tap_run(events_that_cannot_be_opened_are_left_out);
	tap_run(a_callback_ends_the_reading);
	tap_run(names_are_copied_and_escaped);
	return tap_end();
}
