/* SPDX-License-Identifier: MIT */
/*
 * Tracer and tracee on one CPU: a stop then is a switch between two threads, and no wake-up of another
 * CPU. The program's two system calls about its CPUs are answered by what holds without that.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sys.h"
#include "exact/tracee.h"

/* Since Linux 5.3; the number is the same on all architectures. */
#ifndef SYS_clone3
#define SYS_clone3 435
#endif

#define CPU_BYTES 128u /* as the C library's cpu_set_t: 1024 CPUs */

/* Calls that are about CPUs. */
enum pin_call {
	CALL_OTHER,
	CALL_GET,
	CALL_SET,
	CALL_FORK, /* or clone of any kind */
};

struct pin {
	cpu_set_t tracers; /* the tracer's before: what the kernel would allow */
	cpu_set_t wanted;  /* what the program believes to have */
	cpu_set_t one;
	bool owner; /* of the tracer's CPUs: who was launched */
	enum pin_call call;
	int64_t result;
	uint64_t args[3];
};

int pin_take(struct tally_tracee *t)
{
	struct pin *pin = calloc(1, sizeof(*pin));
	int cpu = sched_getcpu();

	if (!pin)
		return -ENOMEM;
	if (cpu < 0 || sched_getaffinity(0, sizeof(pin->tracers), &pin->tracers) < 0)
		goto fail;
	pin->wanted = pin->tracers;
	CPU_ZERO(&pin->one);
	CPU_SET(cpu, &pin->one);
	if (sched_setaffinity(0, sizeof(pin->one), &pin->one) < 0)
		goto fail;
	pin->owner = true;
	t->pin = pin;
	return 0;
fail:
	free(pin);
	return -errno;
}

int pin_share(struct tally_tracee *t, const struct tally_tracee *from)
{
	if (!from->pin)
		return 0;
	t->pin = malloc(sizeof(*t->pin));
	if (!t->pin)
		return -ENOMEM;
	*t->pin = *from->pin;
	t->pin->owner = false;
	t->pin->call = CALL_OTHER;
	return 0;
}

void pin_release(struct tally_tracee *t)
{
	if (t->pin && t->pin->owner)
		sched_setaffinity(0, sizeof(t->pin->tracers), &t->pin->tracers);
	free(t->pin);
	t->pin = NULL;
}

void pin_unbind(const struct tally_tracee *t)
{
	if (t->pin)
		sched_setaffinity(t->tid, sizeof(t->pin->wanted), &t->pin->wanted);
}

/* As the kernel does: what is allowed of what is wanted, and an error when that is nothing. */
static int64_t want(struct tally_tracee *t)
{
	struct pin *pin = t->pin;
	cpu_set_t asked, both;
	size_t len = pin->args[1] < CPU_BYTES ? pin->args[1] : CPU_BYTES;

	CPU_ZERO(&asked);
	if (tally_tracee_peek(t, pin->args[2], &asked, len) < 0)
		return -EFAULT;
	CPU_AND(&both, &asked, &pin->tracers);
	if (CPU_COUNT(&both) == 0)
		return -EINVAL;
	pin->wanted = both;
	return 0;
}

static const struct {
	long number;
	enum pin_call call;
} calls[] = {
	{ SYS_sched_getaffinity, CALL_GET },
	{ SYS_sched_setaffinity, CALL_SET },
	{ SYS_clone, CALL_FORK },
	{ SYS_clone3, CALL_FORK },
#ifdef SYS_fork
	{ SYS_fork, CALL_FORK },
	{ SYS_vfork, CALL_FORK },
#endif
};

static enum pin_call call_of(uint64_t number)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if ((uint64_t)calls[i].number == number)
			return calls[i].call;
	return CALL_OTHER;
}

int pin_entry(struct tally_tracee *t, const struct tally_stop *stop)
{
	struct pin *pin = t->pin;
	enum pin_call call = t->bits == 32 ? CALL_OTHER : call_of(stop->value);
	int r;

	pin->call = call == CALL_FORK ? call : CALL_OTHER;
	if (call != CALL_GET && call != CALL_SET)
		return 0;
	r = tracee_read_regs(t);
	if (r < 0)
		return r;
	for (int i = 0; i < 3; i++)
		pin->args[i] = arch_call_arg(&t->regs, i);
	if (pin->args[0] != 0 && pin->args[0] != (uint64_t)t->tid)
		return 0;
	pin->call = call;
	if (call == CALL_GET)
		return 0;
	pin->result = want(t);
	return arch_skip_call(t->tid, &t->regs);
}

/* A child that is not followed gets all CPUs. A thread of the same process stays where it is. */
static void free_child(const struct tally_tracee *t, int32_t child)
{
	if (t->flags & TALLY_TRACEE_FOLLOW_FORKS || syscall(SYS_tgkill, t->pid, child, 0) == 0)
		return;
	sched_setaffinity(child, sizeof(t->pin->wanted), &t->pin->wanted);
}

int pin_exit(struct tally_tracee *t, struct tally_stop *stop)
{
	struct pin *pin = t->pin;
	enum pin_call call = pin->call;
	int r = 0;

	pin->call = CALL_OTHER;
	if (call == CALL_FORK && (int64_t)stop->value > 0)
		free_child(t, (int32_t)stop->value);
	if (call == CALL_GET && (int64_t)stop->value > 0)
		return tally_tracee_poke(t, pin->args[2], &pin->wanted,
					 stop->value < CPU_BYTES ? stop->value : CPU_BYTES);
	if (call != CALL_SET)
		return 0;
	r = tracee_read_regs(t);
	if (r < 0)
		return r;
	t->regs.word[arch.result] = (uint64_t)pin->result;
	stop->value = (uint64_t)pin->result;
	return arch_set_regs(t->tid, &t->regs);
}
