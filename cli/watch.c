/* SPDX-License-Identifier: MIT */
/* Waiting, by poll(2) on a signalfd and pidfds. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "term.h"
#include "watch.h"

/* Since Linux 5.3 and 6.9; older headers lack them. */
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL
#endif

/* How often something is looked at that no descriptor tells the end of. */
#define LOOK_MS 50

/* The signals that stop. */
static const int stops[] = { SIGINT, SIGTERM, SIGHUP };

double watch_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The milliseconds of poll(2) until `end` (0: never), at most `most` (-1: no limit). */
static int until(double end, int most)
{
	if (end == 0)
		return most;
	double ms = (end - watch_now()) * 1e3 + 1;
	if (ms < 0)
		return 0;
	if (most >= 0 && ms > most)
		return most;
	return ms > 1e9 ? 1000000000 : (int)ms;
}

/* The sooner of two times; what is not above 0 is never. */
static double sooner(double a, double b)
{
	return b > 0 && (a == 0 || b < a) ? b : a;
}

/* Calls the tick if it is due; false: that is the end. */
static bool take_tick(struct watch *watch)
{
	double time = watch->tick_at > 0 ? watch_now() : 0;

	if (time > 0 && time >= watch->tick_at)
		watch->tick_at = watch->tick(watch->tick_arg, time);
	return watch->tick_at >= 0;
}

bool watch_start(struct watch *watch, const char *command)
{
	sigset_t held;

	/* Ignored by who started us, it would keep the command's status from us. */
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&held);
	for (size_t i = 0; i < sizeof(stops) / sizeof(*stops); i++)
		sigaddset(&held, stops[i]);
	*watch = (struct watch){ .signals = signalfd(-1, &held, SFD_CLOEXEC | SFD_NONBLOCK) };
	if (watch->signals < 0) {
		complain(command, "cannot catch signals: %s", strerror(errno));
		return false;
	}
	sigprocmask(SIG_BLOCK, &held, &watch->before);
	return true;
}

void watch_stop(struct watch *watch)
{
	sigprocmask(SIG_SETMASK, &watch->before, NULL);
	close(watch->signals);
}

/* Takes a signal that came. SI_KERNEL: the terminal sent it to its whole foreground group. */
static int take_signal(struct watch *watch, bool *ours_alone)
{
	struct signalfd_siginfo info;

	if (read(watch->signals, &info, sizeof(info)) != sizeof(info))
		return 0;
	watch->stopped = true;
	watch->signal = (int)info.ssi_signo;
	*ours_alone = info.ssi_code != SI_KERNEL;
	return (int)info.ssi_signo;
}

/*
 * A signal that stops, delivered while the mask is open: it is sent again, and held back from here
 * on, so that the signalfd shows it.
 */
static void put_back(int sig, siginfo_t *info, void *context)
{
	ucontext_t *interrupted = context;

	for (size_t i = 0; i < sizeof(stops) / sizeof(*stops); i++)
		sigaddset(&interrupted->uc_sigmask, stops[i]);
	kill(getpid(), sig);
}

/* Opens the mask for a fork; what would end us meanwhile is put back. */
static void open_mask(const struct watch *watch, struct sigaction *old, sigset_t *held)
{
	struct sigaction handler = { .sa_sigaction = put_back,
				     .sa_flags = SA_SIGINFO | SA_RESTART };

	for (size_t i = 0; i < sizeof(stops) / sizeof(*stops); i++) {
		sigaction(stops[i], NULL, &old[i]);
		if (old[i].sa_handler == SIG_DFL)
			sigaction(stops[i], &handler, NULL);
	}
	sigprocmask(SIG_SETMASK, &watch->before, held);
}

static void close_mask(const struct sigaction *old, const sigset_t *held)
{
	sigprocmask(SIG_SETMASK, held, NULL);
	for (size_t i = 0; i < sizeof(stops) / sizeof(*stops); i++)
		sigaction(stops[i], &old[i], NULL);
}

int watch_launch(struct watch *watch, struct tally_launch **launch, char *const argv[],
		 struct tally_error *err)
{
	struct sigaction old[sizeof(stops) / sizeof(*stops)];
	struct tally_launch *started = NULL;
	sigset_t held;
	bool alone;

	open_mask(watch, old, &held);
	int r = tally_launch_start(&started, argv, err);
	close_mask(old, &held);
	if (r < 0)
		return r;
	/* The child may have been forked with the signal held back. */
	if (take_signal(watch, &alone)) {
		tally_launch_close(started);
		return -EINTR;
	}
	*launch = started;
	return 0;
}

int watch_command(struct watch *watch, struct tally_launch *launch, double seconds,
		  struct tally_exit *end, struct tally_error *err)
{
	double deadline = seconds > 0 ? watch_now() + seconds : 0;
	int r;

	while ((r = tally_launch_wait(launch, 0, end, err)) == 0) {
		struct pollfd fds[] = {
			{ .fd = watch->signals, .events = POLLIN },
			{ .fd = tally_launch_fd(launch), .events = POLLIN },
		};
		bool alone = false;
		double end_of_sleep = sooner(deadline, watch->tick_at);
		poll(fds, 2, until(end_of_sleep, fds[1].fd < 0 ? LOOK_MS : -1));
		take_tick(watch);
		int sig = take_signal(watch, &alone);
		if (sig && alone)
			tally_launch_kill(launch, sig);
		if (deadline != 0 && watch_now() >= deadline) {
			tally_launch_kill(launch, SIGTERM);
			deadline = 0;
		}
	}
	/* What ended the command may have come to us too, a moment later than its end. */
	bool alone;
	take_signal(watch, &alone);
	return r;
}

static int open_pidfd(const struct tally_target *target)
{
	unsigned flags = target->scope == TALLY_SCOPE_THREAD ? PIDFD_THREAD : 0;

	return (int)syscall(SYS_pidfd_open, target->id, flags);
}

static bool has_ended(const struct tally_target *target, int pidfd)
{
	struct pollfd fd = { .fd = pidfd, .events = POLLIN };

	if (pidfd >= 0)
		return poll(&fd, 1, 0) > 0;
	return kill(target->id, 0) < 0 && errno == ESRCH;
}

/* Forgets the ended ones among fds[0 .. count - 1]; how many are left. */
static uint32_t forget_ended(struct pollfd *fds, const struct tally_target **of, uint32_t count)
{
	uint32_t left = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (has_ended(of[i], fds[i].fd)) {
			if (fds[i].fd >= 0)
				close(fds[i].fd);
			continue;
		}
		fds[left] = fds[i];
		of[left++] = of[i];
	}
	return left;
}

void watch_targets(struct watch *watch, const struct targets *targets, double seconds)
{
	struct pollfd fds[1 + MAX_TARGETS] = { { .fd = watch->signals, .events = POLLIN } };
	const struct tally_target *of[MAX_TARGETS];
	double deadline = seconds > 0 ? watch_now() + seconds : 0;
	uint32_t count = 0, left;
	int look = -1;
	bool alone;

	for (uint32_t i = 0; i < targets->count; i++) {
		if (targets->at[i].scope == TALLY_SCOPE_CPUS)
			continue;
		of[count++] = &targets->at[i];
		fds[count] = (struct pollfd){ open_pidfd(&targets->at[i]), POLLIN, 0 };
		if (fds[count].fd < 0)
			look = LOOK_MS;
	}
	left = count;
	while (!take_signal(watch, &alone) && !(deadline != 0 && watch_now() >= deadline)) {
		left = forget_ended(fds + 1, of, left);
		if (count && !left)
			break;
		poll(fds, 1 + left, until(sooner(deadline, watch->tick_at), look));
		if (!take_tick(watch))
			break;
	}
	for (uint32_t i = 1; i <= left; i++)
		if (fds[i].fd >= 0)
			close(fds[i].fd);
}
