/* SPDX-License-Identifier: MIT */
/* signal: the order that keeps a process alive, who is refused, and what a siginfo_t tells. */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <tally/signal.h>

#include "fakeperf.h"
#include "fakeroot.h"
#include "tap.h"

static struct tally_events *events;
static struct tally_error err;
static struct fakeroot root;

static struct tally_counter *open_counter(uint32_t scope)
{
	struct tally_target target = { .scope = scope, .id = 100 };
	struct tally_counter_opts opts = { sizeof(opts), 0, root.path, 1 };
	struct tally_counter *counter = NULL;

	fake_reset();
	return tally_counter_open(&counter, tally_events_at(events, 0), &target, &opts, &err) < 0
		       ? NULL
		       : counter;
}

static int arm(struct tally_counter *counter, int signo, int owner)
{
	return tally_counter_signal(counter, TALLY_OPTS(signal, .signo = signo, .owner = owner),
				    &err);
}

static void sending_is_the_last_thing_that_is_switched_on(void)
{
	struct tally_counter *counter = open_counter(TALLY_SCOPE_SELF);
	struct fake_event *e = fake_nth(0);

	require(counter != NULL);
	e->file_flags = O_RDWR | O_NONBLOCK;
	check_int(arm(counter, SIGUSR1, 200), 0);
	check_str(fake.fcntls, "owner signal async");
	check_int(e->owner.type, F_OWNER_TID);
	check_int(e->owner.pid, 200);
	check_int(e->signo, SIGUSR1);
	/* Flags of others stay. */
	check_int(e->file_flags, O_RDWR | O_NONBLOCK | O_ASYNC);
	/* Again: nothing is sent while owner and signal belong to different callers. */
	fake.fcntls[0] = '\0';
	check_int(arm(counter, SIGUSR2, 201), 0);
	check_str(fake.fcntls, "sync owner signal async");
	fake.fcntls[0] = '\0';
	check_int(tally_counter_unsignal(counter), 0);
	check_str(fake.fcntls, "sync");
	check_int(e->file_flags, O_RDWR | O_NONBLOCK);
	/* The event counts on all the time. */
	check_int(e->disables + e->enables, 0);
	tally_counter_close(counter);
}

static void defaults_are_sigio_to_the_caller(void)
{
	struct tally_counter *counter = open_counter(TALLY_SCOPE_SELF);

	require(counter != NULL);
	/* The made-up /proc does not know this thread, so nothing can be said against it. */
	check_int(tally_counter_signal(counter, NULL, &err), 0);
	check_int(fake_nth(0)->signo, SIGIO);
	check_int(fake_nth(0)->owner.pid, syscall(SYS_gettid));
	tally_counter_close(counter);
}

static void all_places_send_or_none(void)
{
	static const int steps[] = { F_SETOWN_EX, F_SETSIG, F_GETFL, F_SETFL };

	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		struct tally_counter *counter = open_counter(TALLY_SCOPE_PROCESS);
		require(counter != NULL);
		fake.fail_fcntl_cmd = steps[i];
		fake.fail_fcntl_code = steps[i] == F_SETOWN_EX ? -ESRCH : -EPERM;
		fake.fail_fcntl_fd = FAKE_FIRST + 1;
		check_int(arm(counter, SIGUSR1, 200), fake.fail_fcntl_code);
		check(!(fake_nth(0)->file_flags & O_ASYNC));
		check(!(fake_nth(1)->file_flags & O_ASYNC));
		tally_counter_close(counter);
	}
}

static void a_signal_that_would_kill_is_refused(void)
{
	static const struct {
		int signo, owner, code;
	} rows
		[] = {
			{ SIGUSR1, 200, 0 },      /* caught */
			{ SIGUSR2, 201, 0 },      /* blocked */
			{ SIGIO, 202, 0 },        /* ignored */
			{ SIGUSR2, 200, -EPERM }, /* each of them has but one */
			{ SIGUSR1, 201, -EPERM },
			{ SIGUSR1, 202, -EPERM },
			{ 0, 200, -EPERM }, /* SIGIO */
			{ 64, 203, 0 },     /* the last bit */
			{ 63, 203, -EPERM },
			{ SIGUSR1, 204, 0 }, /* in sigwaitinfo(2), which shows nothing as blocked */
			{ SIGUSR1, 205, 0 }, /* may be there */
			{ SIGCHLD, 200, 0 }, /* ignored by default */
			{ SIGURG, 200, 0 },
			{ SIGKILL, 200, -EINVAL },
			{ SIGSTOP, 200, -EINVAL },
			{ 65, 200, -EINVAL },
			{ -1, 200, -EINVAL },
			{ SIGUSR1, -1, -EINVAL },
		};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct tally_counter *counter = open_counter(TALLY_SCOPE_SELF);
		require(counter != NULL);
		if (!check_int(arm(counter, rows[i].signo, rows[i].owner), rows[i].code))
			printf("# row %zu\n", i);
		check_int(!!(fake_nth(0)->file_flags & O_ASYNC), rows[i].code == 0);
		if (rows[i].code == -EPERM)
			check_int(tally_counter_signal(counter,
						       TALLY_OPTS(signal, .signo = rows[i].signo,
								  .owner = rows[i].owner,
								  .flags = TALLY_SIGNAL_UNHANDLED),
						       &err),
				  0);
		tally_counter_close(counter);
	}
}

static void wrong_options_are_refused(void)
{
	struct tally_counter *counter = open_counter(TALLY_SCOPE_SELF);
	struct tally_signal_opts none = { 0 };

	require(counter != NULL);
	check_int(tally_counter_signal(counter, &none, &err), -EINVAL);
	check_int(tally_counter_signal(counter, TALLY_OPTS(signal, .flags = 2), &err), -EINVAL);
	check_str(fake.fcntls, "");
	tally_counter_close(counter);
}

static void overflows_are_told_from_other_signals(void)
{
	struct tally_counter *counter = open_counter(TALLY_SCOPE_PROCESS);
	siginfo_t info = { 0 };

	require(counter != NULL);
	info.si_signo = SIGUSR1;
	info.si_fd = FAKE_FIRST + 1;
	info.si_code = POLL_IN;
	check_int(tally_signal_is_overflow(&info, counter), POLL_IN);
	info.si_code = POLL_HUP;
	check_int(tally_signal_is_overflow(&info, counter), POLL_HUP);
	/* The bit of poll(2) is another number: 16. */
	check_int(POLL_HUP, 6);
	info.si_code = POLLHUP;
	check_int(tally_signal_is_overflow(&info, counter), 0);
	/* Signals with codes of their own, as SIGSEGV. */
	info.si_code = SI_SIGIO;
	info.si_band = POLLIN | POLLRDNORM;
	check_int(tally_signal_is_overflow(&info, counter), POLL_IN);
	info.si_band = POLLHUP | POLLERR;
	check_int(tally_signal_is_overflow(&info, counter), POLL_HUP);
	/* From kill(2), and of another descriptor. */
	info.si_code = SI_USER;
	check_int(tally_signal_is_overflow(&info, counter), 0);
	info.si_code = POLL_IN;
	info.si_fd = FAKE_FIRST + 2;
	check_int(tally_signal_is_overflow(&info, counter), 0);
	tally_counter_close(counter);
}

/* As the kernel lays it out on 64-bit machines, include/uapi/asm-generic/siginfo.h. */
struct kernel_siginfo {
	int32_t signo, error, code, pad;
	uint64_t addr, data;
	uint32_t type, flags;
};

static void traps_are_decoded(void)
{
	const struct kernel_siginfo from = {
		.signo = SIGTRAP,
		.code = 6,
		.addr = 0x1234,
		.data = 0xfeedface12345678,
		.type = 5,
		.flags = 1,
	};
	struct tally_trap trap = { 0 };
	siginfo_t info = { 0 };

	if (sizeof(long) != 8)
		tap_skip("laid out otherwise");
	memcpy(&info, &from, sizeof(from));
	check(tally_signal_is_trap(&info, &trap));
	check_u64(trap.data, from.data);
	check_u64(trap.addr, 0x1234);
	check_u64(trap.type, 5);
	check_u64(trap.flags, 1);
	info.si_code = TRAP_HWBKPT;
	check(!tally_signal_is_trap(&info, &trap));
	info.si_code = 6;
	info.si_signo = SIGIO;
	check(!tally_signal_is_trap(&info, &trap));
}

/* What /proc/TID/status says, proc(5). */
static bool thread_with(int tid, uint64_t blocked, uint64_t ignored, uint64_t caught)
{
	char path[64], text[256];

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	snprintf(text, sizeof(text),
		 "Name:\tx\nSigQ:\t0/1\nSigPnd:\t%016x\nShdPnd:\t%016x\nSigBlk:\t%016" PRIx64
		 "\nSigIgn:\t%016" PRIx64 "\nSigCgt:\t%016" PRIx64 "\nCapInh:\t%016x\n",
		 0u, 0u, blocked, ignored, caught, 0u);
	return fakeroot_file(&root, path, text);
}

/* What /proc/TID/syscall says: the number of the call that it sleeps in. */
static bool thread_in(int tid, long call)
{
	char path[64], text[64];

	snprintf(path, sizeof(path), "/proc/%d/syscall", tid);
	snprintf(text, sizeof(text), "%ld 0x1 0x2 0x3 0x4 0x5 0x6 0x7ffc 0x7f12\n", call);
	return fakeroot_file(&root, path, call < 0 ? "running\n" : text);
}

static uint64_t bit(int signo)
{
	return 1ull << (signo - 1);
}

int main(void)
{
	fake_reset();
	if (!fakeroot_make(&root) ||
	    !fakeroot_file(&root, "/proc/100/task/100/stat", "100 (a) R 1") ||
	    !fakeroot_file(&root, "/proc/100/task/101/stat", "101 (a) R 1") ||
	    !thread_with(200, 0, 0, bit(SIGUSR1)) || !thread_with(201, bit(SIGUSR2), 0, 0) ||
	    !thread_with(202, 0, bit(SIGIO), 0) || !thread_with(203, 0, 0, bit(64)) ||
	    !thread_with(204, 0, 0, 0) || !thread_with(205, 0, 0, 0) || !thread_in(200, -1) ||
	    !thread_in(201, SYS_read) || !thread_in(202, -1) || !thread_in(203, -1) ||
	    !thread_in(204, SYS_rt_sigtimedwait) ||
	    tally_events_parse(&events, "page-faults", NULL, &err) < 0) {
		printf("Bail out! no made-up machine: %s\n", err.text);
		return 1;
	}
	tap_run(sending_is_the_last_thing_that_is_switched_on);
	tap_run(defaults_are_sigio_to_the_caller);
	tap_run(all_places_send_or_none);
	tap_run(a_signal_that_would_kill_is_refused);
	tap_run(wrong_options_are_refused);
	tap_run(overflows_are_told_from_other_signals);
	tap_run(traps_are_decoded);
	fakeroot_remove(&root);
	tally_events_free(events);
	return tap_end();
}
