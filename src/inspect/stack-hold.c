/* SPDX-License-Identifier: MIT */
/*
 * Stopping threads and walking up their stacks while they stand still. Memory is read by pages,
 * which are kept: nobody writes meanwhile.
 */
#include <elf.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/sys.h"
#include "image/prstatus.h"
#include "inspect/stack-hold.h"

#define PAGE      4096u
#define PAGES     64u
#define LOOK_NS   50000u
#define NS_PER_MS 1000000u

struct page {
	uint64_t address;
	bool valid;
	uint8_t bytes[PAGE];
};

struct memory {
	int32_t pid;
	struct page pages[PAGES];
};

/* ---- memory ---- */

static const struct page *page_at(struct memory *m, uint64_t address)
{
	uint64_t start = address & ~(uint64_t)(PAGE - 1);
	struct page *p = &m->pages[start / PAGE % PAGES];

	if (p->valid && p->address == start)
		return p;
	struct iovec to = { p->bytes, PAGE };
	struct iovec from = { (void *)(uintptr_t)start, PAGE }; /* NOLINT: the other's */
	p->address = start;
	p->valid = process_vm_readv(m->pid, &to, 1, &from, 1, 0) == PAGE;
	return p->valid ? p : NULL;
}

static bool read_word(void *arg, uint64_t address, uint64_t *out)
{
	uint8_t bytes[sizeof(*out)];

	for (size_t i = 0; i < sizeof(bytes);) {
		const struct page *p = page_at(arg, address + i);
		if (!p)
			return false;
		size_t at = (address + i) % PAGE, len = PAGE - at;
		len = len < sizeof(bytes) - i ? len : sizeof(bytes) - i;
		memcpy(bytes + i, p->bytes + at, len);
		i += len;
	}
	*out = load_u64(bytes, false);
	return true;
}

/* ---- threads ---- */

static void seize(struct held_thread *t)
{
	long r = sys()->ptrace(PTRACE_SEIZE, t->tid, 0, 0);

	t->code = r < 0 ? (int)r : -EAGAIN;
	t->seized = r == 0;
	if (t->seized)
		sys()->ptrace(PTRACE_INTERRUPT, t->tid, 0, 0);
}

/* How many that were asked have not stopped. */
static unsigned look(struct hold *h)
{
	unsigned missing = 0;

	vec_each (&h->threads, t) {
		siginfo_t info;
		if (!t->seized || t->stopped)
			continue;
		int r = sys()->waitid(P_PID, (id_t)t->tid, &info, WSTOPPED | __WALL | WNOHANG);
		if (r == 0 && info.si_pid) {
			t->stopped = true;
			/*
			 * Stops by the interrupt and by job control have an event above the signal.
			 */
			t->signal = info.si_status >> 8 ? 0 : info.si_status;
		} else if (r < 0 && r != -EINTR) {
			t->seized = false; /* it has ended */
			t->code = -ESRCH;
		} else {
			missing++;
		}
	}
	return missing;
}

static void await_all(struct hold *h)
{
	uint64_t start = clock_ns(CLOCK_MONOTONIC);

	while (look(h) && clock_ns(CLOCK_MONOTONIC) - start < (uint64_t)h->wait_ms * NS_PER_MS)
		sys()->sleep_ns(LOOK_NS);
}

static int unwind(struct hold *h, struct held_thread *t, struct memory *memory)
{
	uint64_t words[64], values[64];
	struct iovec regs = { words, sizeof(words) };
	struct tally_unwind_start start = {
		.pid = h->pid,
		.time = UINT64_MAX,
		.regs = values,
		.read = read_word,
		.arg = memory,
	};
	long r = sys()->ptrace(PTRACE_GETREGSET, t->tid, NT_PRSTATUS, (unsigned long)&regs);

	if (r < 0)
		return (int)r;
	start.mask = prstatus_order(words, regs.iov_len / sizeof(*words), values);
	if (!start.mask)
		return -EOPNOTSUPP;
	if (!vec_reserve(&t->addresses, h->max_frames))
		return -ENOMEM;
	r = tally_unwinder_walk(h->unwinder, &start, t->addresses.at, h->max_frames, &t->how);
	t->addresses.count = t->how.frames;
	return (int)r;
}

static void *hold_all(void *arg)
{
	struct hold *h = arg;
	struct memory *memory = calloc(1, sizeof(*memory));

	vec_each (&h->threads, t)
		seize(t);
	await_all(h);
	if (memory)
		memory->pid = h->pid;
	vec_each (&h->threads, t)
		if (t->stopped)
			t->code = memory ? unwind(h, t, memory) : -ENOMEM;
	vec_each (&h->threads, t)
		if (t->stopped)
			sys()->ptrace(PTRACE_DETACH, t->tid, 0, (unsigned long)t->signal);
	free(memory);
	return NULL;
}

int hold_and_unwind(struct hold *h)
{
	pthread_t tracer;
	sigset_t all, before;

	/* The caller's handlers are for the caller's threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int r = pthread_create(&tracer, NULL, hold_all, h);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r == 0)
		pthread_join(tracer, NULL);
	return -r;
}

void hold_done(struct hold *h)
{
	vec_each (&h->threads, t)
		vec_done(&t->addresses);
	vec_done(&h->threads);
}
