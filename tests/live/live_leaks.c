/* SPDX-License-Identifier: MIT */
/*
 * Ten thousand times opened and closed, and refused at each descriptor that a process may lack:
 * descriptors, mappings, children and memory are what they were before.
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "opening.h"
#include "tap.h"

#define TIMES    10000
#define SLOWLY   1000 /* what forks or stops a process each time */
#define SETTLING 10   /* until then caches are filled */

/* What must not grow. */
struct census {
	int fds, maps, children;
	size_t memory;
};

static int count_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Mappings of events: those of the allocator come and go. */
static int count_maps(void)
{
	char line[512];
	int n = 0;
	FILE *f = fopen("/proc/self/maps", "r");

	while (f && fgets(line, sizeof(line), f))
		n += strstr(line, "perf_event") != NULL;
	if (f)
		fclose(f);
	return n;
}

static struct census take_census(void)
{
	return (struct census){
		.fds = count_fds(),
		.maps = count_maps(),
		.children = waitpid(-1, NULL, WNOHANG) == 0 || errno != ECHILD,
		.memory = mallinfo2().uordblks,
	};
}

/* A leak would be TIMES pieces at least; the allocator keeps a few freed ones in hand. */
static bool check_census(const struct census *before, size_t room)
{
	struct census now = take_census();
	bool same = check_int(now.fds, before->fds) && check_int(now.maps, before->maps) &&
		    check_int(now.children, before->children);

	return same && check(now.memory <= before->memory + room);
}

static struct tally_events *events; /* faults, {page-faults,minor-faults} */
static int32_t waiter;              /* a process that waits */

static int use_counter(void)
{
	struct tally_counter *counter;
	int r = tally_counter_open(&counter, tally_events_at(events, 0), &self, NULL, &err);

	if (r == 0)
		tally_counter_close(counter);
	return r;
}

static int use_group(void)
{
	struct tally_group *group;
	int r = tally_group_open(&group, events, 1, &self, NULL, &err);

	if (r == 0)
		tally_group_close(group);
	return r;
}

static int use_fast(void)
{
	struct tally_counter *counter;
	struct tally_fast fast;
	int r = tally_counter_open(&counter, tally_events_at(events, 0), &self, NULL, &err);

	if (r < 0)
		return r;
	r = tally_counter_fast(counter, &fast, &err);
	tally_counter_close(counter);
	return r;
}

static int use_split(void)
{
	struct tally_group *group;
	int r = tally_group_open(&group, events, 1, &self, NULL, &err);

	if (r < 0)
		return r;
	r = tally_group_split(group, 1, &err);
	tally_group_close(group);
	return r;
}

static int use_ring(void)
{
	struct tally_counter *counter;
	struct tally_ring *ring;
	int r = tally_counter_open(&counter, tally_events_at(events, 0), &self,
				   TALLY_OPTS(counter, .period = 1), &err);

	if (r < 0)
		return r;
	r = tally_ring_open(&ring, tally_counter_fd(counter, 0),
			    TALLY_OPTS(ring, .bytes = 4096, .flags = TALLY_RING_CANCELLABLE), &err);
	if (r == 0)
		tally_ring_close(ring);
	tally_counter_close(counter);
	return r;
}

static int use_sampler(void)
{
	struct tally_sampler *sampler;
	int r = tally_sampler_open(&sampler, events, &self,
				   TALLY_OPTS(sampler, .period = 1, .ring_bytes = 4096), &err);

	if (r == 0)
		tally_sampler_close(sampler);
	return r;
}

/* Regions fail silently: a set without events to count has no threads. */
static int use_regions(void)
{
	struct tally_region outer = TALLY_REGION("outer"), inner = TALLY_REGION("inner");
	struct tally_regions set = { .on = 0 };
	struct tally_regions_notes notes = { 0 };

	tally_regions_start(&set);
	TALLY_REGION_BEGIN(set, &outer);
	TALLY_REGION_BEGIN(set, &inner);
	TALLY_REGION_END(set, &inner);
	TALLY_REGION_END(set, &outer);
	int r = tally_regions_notes(&set, &notes, sizeof(notes));
	tally_regions_stop(&set);
	return r == 0 && (notes.unopened || !notes.threads) ? -EMFILE : r;
}

static int use_freeze(void)
{
	struct tally_freeze *freeze;
	int r = tally_freeze_open(&freeze, waiter, NULL, &err);

	if (r == 0)
		tally_freeze_close(freeze);
	return r;
}

static int use_process(void)
{
	const struct tally_target process = { .scope = TALLY_SCOPE_PROCESS, .id = waiter };
	struct tally_group *group;
	int r = tally_group_open(&group, events, 1, &process, NULL, &err);

	if (r == 0)
		tally_group_close(group);
	return r;
}

static int use_launch(void)
{
	char *const argv[] = { (char[]){ "/bin/true" }, NULL };
	struct tally_launch *launch;
	struct tally_exit end;
	int r = tally_launch_start(&launch, argv, &err);

	if (r < 0)
		return r;
	r = tally_launch_go(launch, &err);
	if (r == 0)
		r = tally_launch_wait(launch, -1, &end, &err) == 1 ? 0 : -EIO;
	tally_launch_close(launch);
	return r;
}

/* A command that is given up before it begins, and one that there is not. */
static int use_launch_in_vain(void)
{
	char *const argv[] = { (char[]){ "/no/such/program" }, NULL };
	struct tally_launch *launch;
	int r = tally_launch_start(&launch, argv, &err);

	if (r < 0)
		return r;
	if (tally_launch_go(launch, &err) != -ENOENT)
		r = -EIO;
	tally_launch_close(launch);
	if (r == 0)
		r = tally_launch_start(&launch, argv, &err);
	if (r == 0)
		tally_launch_close(launch);
	return r;
}

static int use_names(void)
{
	struct tally_events *list;
	int r = tally_events_parse(&list, "{page-faults,minor-faults}:u,faults", NULL, &err);

	if (r == 0)
		tally_events_free(list);
	return r;
}

static const struct user {
	const char *name;
	int (*use)(void);
	int times;
} users[] = {
	/* These first: a fork is slow with much memory, which a sanitizer keeps. */
	{ "a command", use_launch, SLOWLY },   { "commands in vain", use_launch_in_vain, SLOWLY },
	{ "a freeze", use_freeze, SLOWLY },    { "a process", use_process, SLOWLY },
	{ "a counter", use_counter, TIMES },   { "a group", use_group, TIMES },
	{ "a fast counter", use_fast, TIMES }, { "a group that is split", use_split, TIMES },
	{ "a ring", use_ring, TIMES },         { "a sampler", use_sampler, TIMES },
	{ "regions", use_regions, TIMES },     { "names", use_names, TIMES },
};

#define USERS (sizeof(users) / sizeof(*users))

static void opened_and_closed_they_leave_nothing(void)
{
	for (size_t u = 0; u < USERS; u++) {
		struct census before = take_census();
		bool ok = true;
		for (int i = 0; ok && i < users[u].times; i++) {
			if (i == SETTLING)
				before = take_census();
			ok = check_int(users[u].use(), 0);
		}
		/* Less than two bytes each time are no leak. */
		if (!ok || !check_census(&before, (size_t)users[u].times * 2))
			printf("# %s: %s\n", users[u].name, ok ? "" : err.text);
	}
}

/*
 * In a child, as the hard limit cannot be raised again: 0, 1, 2 ... descriptors are left. Each of
 * them is refused with EMFILE, in words, or works.
 */
static int use_with_few(const struct user *user)
{
	struct rlimit limit;
	int refused = 0, lowest = dup(STDIN_FILENO);
	struct census before;

	close(lowest);
	getrlimit(RLIMIT_NOFILE, &limit);
	before = take_census();
	/* The soft limit is raised to the hard one, so that both go down, from many to few. */
	for (int left = 24; left >= 0; left--) {
		limit.rlim_cur = limit.rlim_max = (rlim_t)(lowest + left);
		if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
			return 2;
		memset(&err, 0, sizeof(err));
		int r = user->use();
		refused += r < 0;
		if (r < 0 && r != -EMFILE && r != -EACCES)
			return 3;
		if (r < 0 && user->use != use_regions && (err.code != r || !err.text[0]))
			return 4;
		if (count_fds() != before.fds)
			return 5;
	}
	return refused ? 0 : 6;
}

static void refused_they_leave_nothing(void)
{
	for (size_t u = 0; u < USERS; u++) {
		int status = -1;
		if (users[u].use == use_names)
			continue; /* takes none */
		fflush(stdout);
		pid_t pid = fork();
		if (pid == 0) {
			int code = use_with_few(&users[u]);
			if (code)
				printf("# %s: %d %s\n", users[u].name, err.code, err.text);
			fflush(stdout);
			_exit(code);
		}
		check_int(waitpid(pid, &status, 0), pid);
		if (!check_int(WEXITSTATUS(status), 0) || !check(WIFEXITED(status)))
			printf("# %s\n", users[u].name);
	}
}

static bool start_waiter(void)
{
	int ready[2];
	char byte = 0;

	if (pipe2(ready, O_CLOEXEC) < 0)
		return false;
	waiter = fork();
	if (waiter == 0) {
		close(ready[0]);
		close(ready[1]);
		for (;;)
			pause();
	}
	close(ready[1]);
	bool ok = waiter > 0 && read(ready[0], &byte, 1) == 0;
	close(ready[0]);
	return ok;
}

int main(void)
{
	struct opened probe, keeper;

	setenv("TALLY_REGIONS", "{page-faults,minor-faults}:u", 1);
	setenv("TALLY_REGIONS_OUTPUT", "/dev/null", 1);
	if (!open_counter(&probe, "page-faults:u", &self, 0, 0) ||
	    !open_counter(&keeper, "minor-faults:u", &self, 0, 0)) {
		printf("1..0 # SKIP %s\n", err.text);
		return 0;
	}
	/* Kept: the first user of a software event costs the kernel half a millisecond, each time. */
	if (!start_waiter() ||
	    tally_events_parse(&events, "page-faults:u,{page-faults,minor-faults}:u", NULL, &err) <
		    0) {
		printf("Bail out! %s\n", err.text);
		return 1;
	}
	tap_run(opened_and_closed_they_leave_nothing);
	tap_run(refused_they_leave_nothing);
	kill(waiter, SIGKILL);
	waitpid(waiter, NULL, 0);
	tally_events_free(events);
	close_all(&probe);
	close_all(&keeper);
	return tap_end();
}
