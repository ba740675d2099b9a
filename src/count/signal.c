/* SPDX-License-Identifier: MIT */
/*
 * Signals of events: fcntl(2) "Managing signals", and what arrives in a siginfo_t. The order in
 * which a descriptor is set up keeps SIGIO, which kills by default, from being sent meanwhile.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <tally/signal.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/proc.h"
#include "count/counter.h"
#include "count/signal.h"

#define STATUS_LIMIT 65536

/* si_code of SIGTRAP by an event, Linux 5.13; older headers of libc lack it. */
#define CODE_TRAP_PERF 6

/* Stops sending at one descriptor; its owner and signal stay, without effect. */
static int stop_sending(int fd)
{
	int flags = sys()->fcntl(fd, F_GETFL, 0);

	if (flags < 0)
		return flags;
	return flags & O_ASYNC ? sys()->fcntl(fd, F_SETFL, (unsigned long)(flags & ~O_ASYNC)) : 0;
}

int signal_stop(const struct opened *o, uint32_t member)
{
	int first = 0;

	for (uint32_t p = 0; p < o->places_count; p++) {
		int fd = opened_fd(o, p, member);
		int r = fd < 0 ? 0 : stop_sending(fd);
		if (first == 0)
			first = r;
	}
	return first;
}

/*
 * Nothing is sent while O_ASYNC is clear: it goes first and comes last, so that neither an owner
 * without its signal nor a signal without its owner is ever in force. The event goes on counting.
 */
int signal_send(int fd, int signo, int32_t tid)
{
	struct f_owner_ex owner = { .type = F_OWNER_TID, .pid = tid };

	int r = stop_sending(fd);
	if (r == 0)
		r = sys()->fcntl(fd, F_SETOWN_EX, (unsigned long)&owner);
	if (r == 0)
		r = sys()->fcntl(fd, F_SETSIG, (unsigned long)signo);
	if (r < 0)
		return r;
	int flags = sys()->fcntl(fd, F_GETFL, 0);
	return flags < 0 ? flags : sys()->fcntl(fd, F_SETFL, (unsigned long)(flags | O_ASYNC));
}

/* What a thread does with signals: SigBlk, SigIgn or SigCgt of proc(5). */
static bool read_mask(const char *status, const char *key, uint64_t *mask)
{
	const char *at = strstr(status, key);

	if (at)
		*mask = strtoull(at + strlen(key), NULL, 16);
	return at != NULL;
}

static bool ignored_by_default(int signo)
{
	static const int harmless[] = { SIGCHLD, SIGCONT, SIGURG, SIGWINCH };

	for (size_t i = 0; i < ARRAY_SIZE(harmless); i++)
		if (harmless[i] == signo)
			return true;
	return false;
}

/* Whether /proc says that a thread neither blocks nor ignores nor catches a signal. */
static bool unhandled(int signo, pid_t tid, const char *root)
{
	static const char *const keys[] = { "\nSigBlk:", "\nSigIgn:", "\nSigCgt:" };
	uint64_t mask, any = 0;
	struct buf text = { 0 };
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	bool known = proc_read(&text, root, path, STATUS_LIMIT) == 0 && buf_text(&text);
	for (size_t i = 0; known && i < ARRAY_SIZE(keys); i++) {
		known = read_mask(text.at, keys[i], &mask);
		any |= known ? mask : 0;
	}
	buf_done(&text);
	return known && !(any >> (signo - 1) & 1);
}

/*
 * Whether a thread waits for signals, by sigwaitinfo(2) and its like, or may: the kernel does not
 * show as blocked what a thread waits for (real_blocked).
 */
static bool may_wait(pid_t tid, const char *root)
{
	char path[64];
	int64_t call;

	snprintf(path, sizeof(path), "/proc/%d/syscall", tid);
	int r = proc_read_i64(&call, root, path);
	/* "running" is no number; where it cannot be read nothing is known. */
	return r == 0 ? call == SYS_rt_sigtimedwait : r != -EINVAL;
}

/*
 * Whether the default action would strike. The owner may begin or end to wait between two looks, so
 * it is looked at a second time. Where /proc does not tell, it is not said.
 */
static bool would_kill(int signo, pid_t tid, const char *root)
{
	return !ignored_by_default(signo) && unhandled(signo, tid, root) && !may_wait(tid, root) &&
	       unhandled(signo, tid, root) && !may_wait(tid, root);
}

static int check_signal(const struct tally_signal_opts *o, int signo, pid_t tid, const char *root,
			struct tally_error *err)
{
	if (o->owner < 0 || signo < 1 || signo > SIGRTMAX || signo == SIGKILL || signo == SIGSTOP)
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
				 "signal %d to thread %d: signals are 1 to %d without SIGKILL and "
				 "SIGSTOP, threads positive, or 0 for the caller",
				 o->signo, o->owner, SIGRTMAX);
	if (!(o->flags & TALLY_SIGNAL_UNHANDLED) && would_kill(signo, tid, root))
		return error_set(
			err, -EPERM, TALLY_CAUSE_ARGUMENT,
			"signal %d (%s) would end thread %d and its process: nothing there "
			"catches, blocks or ignores it; install a handler or block it first",
			signo, strsignal(signo), tid);
	return 0;
}

int tally_counter_signal(struct tally_counter *counter, const struct tally_signal_opts *opts,
			 struct tally_error *err)
{
	uint32_t index;
	const struct opened *o = counter_piece(counter, &index);
	struct tally_signal_opts how;

	int r = opts_read(&how, sizeof(how), TALLY_SIGNAL_UNHANDLED, opts, err);
	if (r < 0)
		return r;
	int signo = how.signo ? how.signo : SIGIO;
	pid_t tid = how.owner ? how.owner : (pid_t)syscall(SYS_gettid);
	r = check_signal(&how, signo, tid, counter->set->opts.root, err);
	if (r < 0)
		return r;
	counter->set->armed = true;
	for (uint32_t p = 0; r == 0 && p < o->places_count; p++)
		if (opened_fd(o, p, index) >= 0)
			r = signal_send(opened_fd(o, p, index), signo, tid);
	if (r < 0) {
		tally_counter_unsignal(counter);
		return error_set(err, r,
				 r == -ESRCH ? TALLY_CAUSE_NO_PROCESS : TALLY_CAUSE_PERMISSION,
				 "overflows of '%s' cannot be sent to thread %d: %s",
				 tally_event_name(counter_event(counter)), tid,
				 r == -ESRCH ? "there is no such thread" : strerror(-r));
	}
	return 0;
}

int tally_counter_unsignal(struct tally_counter *counter)
{
	uint32_t index;
	const struct opened *o = counter_piece(counter, &index);

	return signal_stop(o, index);
}

static bool is_of(const struct tally_counter *counter, int fd)
{
	uint32_t index;
	const struct opened *o = counter_piece(counter, &index);

	for (uint32_t p = 0; p < o->places_count; p++)
		if (fd >= 0 && opened_fd(o, p, index) == fd)
			return true;
	return false;
}

int tally_signal_is_overflow(const siginfo_t *info, const struct tally_counter *counter)
{
	int code = info->si_code;

	/* Signals that have codes of their own come with this one, and tell by the band. */
	if (code == SI_SIGIO)
		code = info->si_band & POLLHUP ? POLL_HUP : POLL_IN;
	if ((code != POLL_IN && code != POLL_HUP) || !is_of(counter, info->si_fd))
		return 0;
	return code;
}

/* Behind si_addr lies {unsigned long data; u32 type; u32 flags}, asm-generic/siginfo.h. */
#define TRAP_DATA (offsetof(siginfo_t, si_addr) + sizeof(void *))

bool tally_signal_is_trap(const siginfo_t *info, struct tally_trap *out)
{
	const char *at = (const char *)info + TRAP_DATA;
	unsigned long data;

	if (info->si_signo != SIGTRAP || info->si_code != CODE_TRAP_PERF)
		return false;
	memcpy(&data, at, sizeof(data));
	out->data = data;
	out->addr = (uintptr_t)info->si_addr;
	out->type = load_u32(at + sizeof(data), false);
	out->flags = load_u32(at + sizeof(data) + sizeof(uint32_t), false);
	return true;
}

int tally_task_events_enable(void)
{
	return prctl(PR_TASK_PERF_EVENTS_ENABLE, 0, 0, 0, 0) < 0 ? -errno : 0;
}

int tally_task_events_disable(void)
{
	return prctl(PR_TASK_PERF_EVENTS_DISABLE, 0, 0, 0, 0) < 0 ? -errno : 0;
}
