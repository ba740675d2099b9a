/* SPDX-License-Identifier: MIT */
/*
 * Signals at overflows, on the real kernel. The exact event is a page fault; the signal is blocked
 * and taken by sigtimedwait(2), so that nothing is left to chance.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include <tally/tally.h>

#include "fresh.h"
#include "tap.h"
#include "tracefs.h"

#define SIGNAL (SIGRTMIN + 3)

static struct tally_error err;

/* An event that overflows, of a thread. */
struct source {
	struct tally_events *events;
	struct tally_counter *counter;
};

static bool open_source(struct source *s, uint32_t scope, int32_t id, uint32_t flags,
			uint64_t period)
{
	struct tally_target target = { .scope = scope, .id = id };

	*s = (struct source){ 0 };
	int r = tally_events_parse(&s->events, "page-faults:u", NULL, &err);
	if (r == 0)
		r = tally_counter_open(&s->counter, tally_events_at(s->events, 0), &target,
				       TALLY_OPTS(counter, .flags = flags, .period = period), &err);
	if (r < 0)
		printf("# %s\n", err.text);
	return check_int(r, 0);
}

static void close_source(struct source *s)
{
	tally_counter_close(s->counter);
	tally_events_free(s->events);
}

static int arm(const struct source *s, int signo, int32_t owner)
{
	return tally_counter_signal(s->counter, TALLY_OPTS(signal, .signo = signo, .owner = owner),
				    &err);
}

/* What a signal that is pending here tells of the counter; 0: there is none. */
static int take_signal(const struct source *s)
{
	const struct timespec now = { 0 };
	siginfo_t info;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGNAL);
	return sigtimedwait(&set, &info, &now) == SIGNAL
		       ? tally_signal_is_overflow(&info, s->counter)
		       : 0;
}

/* Touches pages while it counts. */
static void touch_counted(const struct source *s, struct fresh *f, size_t pages)
{
	check_int(tally_counter_enable(s->counter), 0);
	fresh_touch(f, pages);
	check_int(tally_counter_disable(s->counter), 0);
}

static void a_limit_ends_in_a_hangup(void)
{
	struct source s;
	struct tally_count count;
	struct fresh f = fresh_map(20);

	require(f.at && open_source(&s, TALLY_SCOPE_SELF, 0, 0, 1));
	check_int(arm(&s, SIGNAL, 0), 0);
	check_int(tally_counter_refresh(s.counter, 3), 0);
	fresh_touch(&f, 10);
	check_int(take_signal(&s), POLL_IN);
	check_int(take_signal(&s), POLL_IN);
	check_int(take_signal(&s), POLL_HUP);
	check_int(take_signal(&s), 0);
	check_int(tally_counter_read(s.counter, &count), 0);
	check_u64(count.value, 3);
	/* Again: so many more. */
	check_int(tally_counter_refresh(s.counter, 2), 0);
	fresh_touch(&f, 10);
	check_int(take_signal(&s), POLL_IN);
	check_int(take_signal(&s), POLL_HUP);
	check_int(take_signal(&s), 0);
	check_int(tally_counter_read(s.counter, &count), 0);
	check_u64(count.value, 5);
	check_int(tally_counter_refresh(s.counter, 0), -EINVAL);
	fresh_unmap(&f);
	close_source(&s);
}

static void enabled_it_has_no_limit(void)
{
	struct source s;
	struct fresh f = fresh_map(30);

	require(f.at && open_source(&s, TALLY_SCOPE_SELF, 0, 0, 1));
	check_int(arm(&s, SIGNAL, 0), 0);
	touch_counted(&s, &f, 10);
	for (int i = 0; i < 10; i++)
		check_int(take_signal(&s), POLL_IN);
	check_int(take_signal(&s), 0);
	/* No more of them. */
	check_int(tally_counter_unsignal(s.counter), 0);
	touch_counted(&s, &f, 10);
	check_int(take_signal(&s), 0);
	/* And once more. */
	check_int(arm(&s, SIGNAL, 0), 0);
	check_int(tally_counter_refresh(s.counter, 1), 0);
	fresh_touch(&f, 10);
	check_int(take_signal(&s), POLL_HUP);
	fresh_unmap(&f);
	close_source(&s);
}

static void it_comes_at_the_tenth_and_not_before(void)
{
	struct source s;
	struct fresh f = fresh_map(64);

	require(f.at && open_source(&s, TALLY_SCOPE_SELF, 0, 0, 10));
	check_int(arm(&s, SIGNAL, 0), 0);
	for (int round = 0; round < 2; round++) {
		touch_counted(&s, &f, 9);
		check_int(take_signal(&s), 0);
		touch_counted(&s, &f, 1);
		check_int(take_signal(&s), POLL_IN);
	}
	check_int(take_signal(&s), 0);
	fresh_unmap(&f);
	close_source(&s);
}

static void a_period_that_is_set_begins_anew(void)
{
	struct source s;
	struct fresh f = fresh_map(64);
	struct tally_count count;

	require(f.at && open_source(&s, TALLY_SCOPE_SELF, 0, 0, 10));
	check_int(arm(&s, SIGNAL, 0), 0);
	touch_counted(&s, &f, 6);
	check_int(tally_counter_set_period(s.counter, 8), 0);
	touch_counted(&s, &f, 7);
	check_int(take_signal(&s), 0);
	touch_counted(&s, &f, 1);
	check_int(take_signal(&s), POLL_IN);
	/* The count is not touched. */
	check_int(tally_counter_read(s.counter, &count), 0);
	check_u64(count.value, 14);
	check_int(tally_counter_set_period(s.counter, 0), -EINVAL);
	check_int(tally_counter_set_period(s.counter, 1ull << 63), -EINVAL);
	fresh_unmap(&f);
	close_source(&s);
}

static void a_reset_delays_nothing(void)
{
	struct source s;
	struct fresh f = fresh_map(64);
	struct tally_count count;

	require(f.at && open_source(&s, TALLY_SCOPE_SELF, 0, 0, 10));
	check_int(arm(&s, SIGNAL, 0), 0);
	touch_counted(&s, &f, 6);
	check_int(tally_counter_reset(s.counter), 0);
	touch_counted(&s, &f, 4);
	/* It is the tenth of the period, and the fourth of the count. */
	check_int(take_signal(&s), POLL_IN);
	check_int(tally_counter_read(s.counter, &count), 0);
	check_u64(count.value, 4);
	fresh_unmap(&f);
	close_source(&s);
}

/* Has an event that begins with the exec send a signal that ends who does not handle it. */
static int status_of_exec(bool kept)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		struct source s;
		sigset_t none;
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		if (!open_source(&s, TALLY_SCOPE_SELF, 0, TALLY_COUNTER_ENABLE_ON_EXEC, 1) ||
		    tally_counter_signal(
			    s.counter,
			    TALLY_OPTS(signal, .signo = SIGNAL, .flags = TALLY_SIGNAL_UNHANDLED),
			    &err) < 0)
			_exit(90);
		if (kept)
			fcntl(tally_counter_fd(s.counter, 0), F_SETFD, 0);
		execl("/bin/true", "true", NULL);
		_exit(91);
	}
	check_int(waitpid(pid, &status, 0), pid);
	return status;
}

static void nothing_is_sent_across_an_exec(void)
{
	/* That it could be is shown by a descriptor that is kept. */
	int kept = status_of_exec(true);
	check(WIFSIGNALED(kept) && WTERMSIG(kept) == SIGNAL);
	check_int(status_of_exec(false), 0);
}

static void a_member_is_limited_by_itself(void)
{
	struct tally_target self = { .scope = TALLY_SCOPE_SELF };
	struct tally_events *events;
	struct tally_group *group;
	struct fresh f = fresh_map(40);
	struct tally_count counts[2];

	require(f.at &&
		tally_events_parse(&events, "{page-faults,minor-faults}:u", NULL, &err) == 0);
	require(tally_group_open(&group, events, 0, &self, TALLY_OPTS(counter, .period = 1),
				 &err) == 0);
	check_int(tally_group_enable(group), 0);
	fresh_touch(&f, 1);
	check_int(tally_group_disable(group), 0);
	check_int(tally_group_reset(group), 0);
	check_int(tally_counter_refresh(tally_group_member(group, 1), 3), 0);
	check_int(tally_group_enable(group), 0);
	fresh_touch(&f, 10);
	check_int(tally_group_disable(group), 0);
	check_int(tally_group_read(group, counts, 2), 0);
	check_u64(counts[0].value, 10);
	check_u64(counts[1].value, 3);
	tally_group_close(group);
	tally_events_free(events);
	fresh_unmap(&f);
}

/* A thread that waits for signals until it is told to end, and says what came. */
struct owner {
	pthread_t thread;
	const struct source *source;
	_Atomic int tid;
	int hangups, overflows;
};

static void *own(void *arg)
{
	struct owner *o = arg;
	siginfo_t info;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGNAL);
	o->tid = (int)syscall(SYS_gettid);
	while (o->hangups == 0 && sigwaitinfo(&set, &info) == SIGNAL) {
		int what = tally_signal_is_overflow(&info, o->source->counter);
		o->overflows += what == POLL_IN;
		o->hangups += what == POLL_HUP;
	}
	return NULL;
}

static bool start_owner(struct owner *o, const struct source *s)
{
	*o = (struct owner){ .source = s };
	if (pthread_create(&o->thread, NULL, own, o) != 0)
		return false;
	while (!o->tid)
		sched_yield();
	return true;
}

static void only_its_owner_gets_it(void)
{
	struct source s;
	struct owner owner;
	struct fresh f = fresh_map(20);

	require(f.at && open_source(&s, TALLY_SCOPE_SELF, 0, 0, 1));
	require(start_owner(&owner, &s));
	check_int(arm(&s, SIGNAL, owner.tid), 0);
	check_int(tally_counter_refresh(s.counter, 5), 0);
	fresh_touch(&f, 10);
	/* It is pending neither here nor for the process as a whole. */
	check_int(take_signal(&s), 0);
	pthread_join(owner.thread, NULL);
	check_int(owner.overflows, 4);
	check_int(owner.hangups, 1);
	fresh_unmap(&f);
	close_source(&s);
}

static void a_child_that_is_followed_tells_the_owner(void)
{
	struct source s;
	struct fresh f = fresh_map(20);
	struct tally_count count;
	int seen = 0;

	require(f.at && open_source(&s, TALLY_SCOPE_PROCESS, getpid(), 0, 1));
	/* The kernel has no limit for what is inherited. */
	check_int(tally_counter_refresh(s.counter, 3), -EINVAL);
	check_int(tally_counter_enable(s.counter), 0);
	pid_t pid = fork();
	if (pid == 0) {
		tally_counter_disable(s.counter); /* acts on the parent's as well */
		tally_counter_signal(s.counter,
				     TALLY_OPTS(signal, .signo = SIGNAL, .owner = getppid()), NULL);
		tally_counter_enable(s.counter);
		fresh_touch(&f, 10);
		_exit(0);
	}
	check_int(waitpid(pid, NULL, 0), pid);
	check_int(tally_counter_disable(s.counter), 0);
	while (take_signal(&s) == POLL_IN)
		seen++;
	check(seen >= 10);
	check_int(tally_counter_read(s.counter, &count), 0);
	check(count.value >= 10);
	fresh_unmap(&f);
	close_source(&s);
}

static void closed_it_sends_nothing_though_it_is_mapped(void)
{
	struct fresh f = fresh_map(20);
	struct source s;
	siginfo_t info;
	sigset_t set;
	const struct timespec now = { 0 };

	require(f.at && open_source(&s, TALLY_SCOPE_SELF, 0, 0, 1));
	/* The mapping keeps the event alive, and it is enabled. */
	void *page = mmap(NULL, f.page_size, PROT_READ, MAP_SHARED, tally_counter_fd(s.counter, 0),
			  0);
	require(page != MAP_FAILED);
	check_int(arm(&s, SIGNAL, 0), 0);
	check_int(tally_counter_enable(s.counter), 0);
	fresh_touch(&f, 1);
	check_int(take_signal(&s), POLL_IN);
	close_source(&s);
	sigemptyset(&set);
	sigaddset(&set, SIGNAL);
	while (sigtimedwait(&set, &info, &now) == SIGNAL)
		; /* of what closing faulted */
	fresh_touch(&f, 5);
	check(sigtimedwait(&set, &info, &now) < 0);
	munmap(page, f.page_size);
	fresh_unmap(&f);
}

static bool has_tracefs;

static void tracepoints_end_as_well(void)
{
	struct tally_target self = { .scope = TALLY_SCOPE_SELF };
	struct source s = { 0 };
	struct tally_count count;

	if (!has_tracefs ||
	    tally_events_parse(&s.events, "syscalls:sys_enter_getppid", NULL, &err) < 0)
		tap_skip("no tracepoints of system calls");
	require(tally_counter_open(&s.counter, tally_events_at(s.events, 0), &self,
				   TALLY_OPTS(counter, .period = 1), &err) == 0);
	check_int(arm(&s, SIGNAL, 0), 0);
	check_int(tally_counter_refresh(s.counter, 3), 0);
	for (int i = 0; i < 10; i++)
		syscall(SYS_getppid);
	check_int(take_signal(&s), POLL_IN);
	check_int(take_signal(&s), POLL_IN);
	check_int(take_signal(&s), POLL_HUP);
	check_int(take_signal(&s), 0);
	check_int(tally_counter_read(s.counter, &count), 0);
	check_u64(count.value, 3);
	close_source(&s);
}

static void what_would_kill_is_refused(void)
{
	struct source s;

	require(open_source(&s, TALLY_SCOPE_SELF, 0, 0, 1));
	check_int(arm(&s, SIGIO, 0), -EPERM);
	check_has(err.text, "handler");
	check_int(tally_counter_signal(s.counter, NULL, &err), -EPERM);
	check_int(fcntl(tally_counter_fd(s.counter, 0), F_GETFL) & O_ASYNC, 0);
	check_int(tally_counter_signal(s.counter,
				       TALLY_OPTS(signal, .flags = TALLY_SIGNAL_UNHANDLED), &err),
		  0);
	check_int(tally_counter_unsignal(s.counter), 0);
	check_int(arm(&s, SIGNAL, 0x7ffffff0), -ESRCH);
	check_int(err.cause, TALLY_CAUSE_NO_PROCESS);
	close_source(&s);
}

/* A thread that faults without end, so that events overflow at any moment. */
struct storm {
	pthread_t thread;
	_Atomic int tid, over;
};

static void *rage(void *arg)
{
	struct storm *storm = arg;

	storm->tid = (int)syscall(SYS_gettid);
	while (!storm->over) {
		struct fresh f = fresh_map(64);
		if (!f.at)
			break;
		fresh_touch(&f, 64);
		fresh_unmap(&f);
	}
	return NULL;
}

static _Atomic int handled, strangers;
static pid_t handler_tid;

static void handle(int signo)
{
	handled++;
	strangers += syscall(SYS_gettid) != handler_tid;
}

/* As others do it: the kernel may send before it knows which signal. */
static void arm_in_the_wrong_order(int fd)
{
	struct f_owner_ex owner = { F_OWNER_TID, handler_tid };

	fcntl(fd, F_SETOWN_EX, &owner);
	fcntl(fd, F_SETFL, O_ASYNC);
	/* So that the moment in between is not too short to be hit on a slow machine. */
	while (!handled)
		sched_yield();
	fcntl(fd, F_SETSIG, SIGNAL);
}

/* In a child, where only SIGNAL is caught and SIGIO would kill. */
static void arm_in_a_storm(bool rightly)
{
	struct sigaction act = { .sa_handler = handle };
	struct storm storm = { 0 };
	struct source s;
	sigset_t none;

	sigemptyset(&none);
	pthread_sigmask(SIG_SETMASK, &none, NULL);
	signal(SIGIO, SIG_DFL);
	sigaction(SIGNAL, &act, NULL);
	handler_tid = (pid_t)syscall(SYS_gettid);
	if (pthread_create(&storm.thread, NULL, rage, &storm) != 0)
		_exit(90);
	while (!storm.tid)
		sched_yield();
	if (!open_source(&s, TALLY_SCOPE_THREAD, storm.tid, TALLY_COUNTER_ENABLED, 1))
		_exit(91);
	if (!rightly)
		arm_in_the_wrong_order(tally_counter_fd(s.counter, 0));
	for (int i = 0; i < 200; i++) {
		int before = handled;
		if (arm(&s, SIGNAL, 0) < 0)
			_exit(92);
		while (handled == before)
			sched_yield();
		if (i % 3 == 0)
			tally_counter_unsignal(s.counter);
	}
	tally_counter_unsignal(s.counter);
	storm.over = 1;
	pthread_join(storm.thread, NULL);
	_exit(strangers ? 93 : 0);
}

static int status_of_storm(bool rightly)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		arm_in_a_storm(rightly);
	check_int(waitpid(pid, &status, 0), pid);
	return status;
}

static void arming_cannot_kill(void)
{
	/* That it could is shown by the wrong order. */
	int wrong = status_of_storm(false);
	check(WIFSIGNALED(wrong) && WTERMSIG(wrong) == SIGIO);
	int right = status_of_storm(true);
	check(WIFEXITED(right));
	check_int(WEXITSTATUS(right), 0);
}

static void members_of_a_group_tell_apart(void)
{
	struct tally_target self = { .scope = TALLY_SCOPE_SELF };
	struct tally_events *events;
	struct tally_group *group;
	struct fresh f = fresh_map(20);
	struct tally_count counts[2];
	const struct timespec now = { 0 };
	siginfo_t info;
	sigset_t set;
	int firsts = 0, seconds = 0;

	require(f.at &&
		tally_events_parse(&events, "{page-faults,minor-faults}:u", NULL, &err) == 0);
	require(tally_group_open(&group, events, 0, &self, TALLY_OPTS(counter, .period = 3),
				 &err) == 0);
	struct tally_counter *first = tally_group_member(group, 0);
	struct tally_counter *second = tally_group_member(group, 1);
	check_int(tally_counter_set_period(second, 6), 0);
	for (int i = 0; i < 2; i++)
		check_int(tally_counter_signal(i ? second : first,
					       TALLY_OPTS(signal, .signo = SIGNAL), &err),
			  0);
	/* The whole group runs until its first member has overflowed four times. */
	check_int(tally_counter_refresh(first, 4), 0);
	fresh_touch(&f, 20);
	sigemptyset(&set);
	sigaddset(&set, SIGNAL);
	while (sigtimedwait(&set, &info, &now) == SIGNAL) {
		firsts += tally_signal_is_overflow(&info, first) != 0;
		seconds += tally_signal_is_overflow(&info, second) != 0;
	}
	check_int(firsts, 4);
	check(seconds == 2 || seconds == 1); /* the last ones are of the same fault */
	check_int(tally_group_read(group, counts, 2), 0);
	check_u64(counts[0].value, 12);
	tally_group_close(group);
	tally_events_free(events);
	fresh_unmap(&f);
}

static struct tally_trap trap;
static _Atomic int traps;

static void on_trap(int signo, siginfo_t *info, void *context)
{
	traps += tally_signal_is_trap(info, &trap);
}

static void a_trap_carries_its_data(void)
{
	struct sigaction act = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO }, before;
	struct tally_target self = { .scope = TALLY_SCOPE_SELF };
	struct tally_counter *counter;
	struct tally_events *events;
	struct tally_attr attr;
	struct fresh f = fresh_map(20);

	tally_attr_init(&attr, TALLY_TYPE_SOFTWARE, TALLY_SW_PAGE_FAULTS);
	attr.flags = TALLY_ATTR_SIGTRAP | TALLY_ATTR_REMOVE_ON_EXEC | TALLY_ATTR_EXCLUDE_KERNEL;
	attr.sig_data = 0xfeed5678;
	attr.sample_period = 4;
	require(f.at && tally_events_new(&events, NULL, &attr, NULL, &err) == 0);
	if (tally_counter_open(&counter, tally_events_at(events, 0), &self, NULL, &err) < 0) {
		tally_events_free(events);
		tap_skip("no traps before Linux 5.13");
	}
	sigaction(SIGTRAP, &act, &before);
	check_int(tally_counter_enable(counter), 0);
	fresh_touch(&f, 10);
	check_int(tally_counter_disable(counter), 0);
	sigaction(SIGTRAP, &before, NULL);
	check(traps >= 2);
	check_u64(trap.data, 0xfeed5678);
	check_u64(trap.type, TALLY_TYPE_SOFTWARE);
	tally_counter_close(counter);
	tally_events_free(events);
	fresh_unmap(&f);
}

int main(void)
{
	struct source probe;
	sigset_t set;

	has_tracefs = tracefs_ready();
	sigemptyset(&set);
	sigaddset(&set, SIGNAL);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (!open_source(&probe, TALLY_SCOPE_SELF, 0, 0, 1)) {
		printf("1..0 # SKIP %s\n", err.text);
		return 0;
	}
	close_source(&probe);
	tap_run(a_limit_ends_in_a_hangup);
	tap_run(enabled_it_has_no_limit);
	tap_run(it_comes_at_the_tenth_and_not_before);
	tap_run(a_period_that_is_set_begins_anew);
	tap_run(a_reset_delays_nothing);
	tap_run(nothing_is_sent_across_an_exec);
	tap_run(a_member_is_limited_by_itself);
	tap_run(only_its_owner_gets_it);
	tap_run(a_child_that_is_followed_tells_the_owner);
	tap_run(closed_it_sends_nothing_though_it_is_mapped);
	tap_run(tracepoints_end_as_well);
	tap_run(what_would_kill_is_refused);
	tap_run(arming_cannot_kill);
	tap_run(members_of_a_group_tell_apart);
	tap_run(a_trap_carries_its_data);
	return tap_end();
}
