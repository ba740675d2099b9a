/* SPDX-License-Identifier: MIT */
/*
 * A clock of one's own: an interpreter that counts its branches lets a timer stop it at an exact point.
 *
 *	own-clock [ticks]
 *
 * What it interprets is the sequence of Collatz. It checks for the end of a slice only at every 16th
 * branch, so its interrupts come up to 15 ticks late, and the timer steps the rest.
 */
#include <stdio.h>
#include <stdlib.h>

#include <tally/tally.h>

struct vm {
	uint64_t n, start;            /* the number of the sequence, and which sequence it is */
	uint64_t branches, slice_end; /* the clock, and when it interrupts */
};

/* One instruction: n is halved or tripled, which is a branch; at 1 the next sequence begins. */
static struct tally_retired execute(struct vm *vm)
{
	if (vm->n == 1) {
		vm->n = ++vm->start;
		return (struct tally_retired){ .instructions = 1 };
	}
	vm->n = vm->n % 2 ? 3 * vm->n + 1 : vm->n / 2;
	vm->branches++;
	return (struct tally_retired){ .instructions = 1, .branches = 1, .conditional = 1 };
}

static int vm_about(void *self, struct tally_clock_about *out)
{
	out->ticks = TALLY_TICKS_CONDITIONAL;
	out->can = TALLY_CLOCK_COUNTS_FREE | TALLY_CLOCK_INTERRUPTS | TALLY_CLOCK_MAY_SKID |
		   TALLY_CLOCK_FOLLOWS_STEPS;
	out->margin = 16;
	snprintf(out->backend, sizeof(out->backend), "vm");
	return 0;
}

static int vm_read(void *self, struct tally_clock_value *out)
{
	out->ticks = ((struct vm *)self)->branches;
	return 0;
}

static int vm_arm(void *self, uint64_t period)
{
	struct vm *vm = self;

	vm->slice_end = vm->branches + period;
	return 0;
}

static int vm_disarm(void *self)
{
	((struct vm *)self)->slice_end = UINT64_MAX;
	return 0;
}

/* Nobody else stops this thread. */
static bool vm_owns(void *self, const struct tally_stop *stop)
{
	return stop->kind == TALLY_STOP_SIGNAL;
}

static const struct tally_clock_ops ops = {
	.size = sizeof(ops),
	.about = vm_about,
	.read = vm_read,
	.arm = vm_arm,
	.disarm = vm_disarm,
	.owns = vm_owns,
};

static void perform(struct vm *vm, const struct tally_timer_action *action, struct tally_stop *stop)
{
	*stop = (struct tally_stop){ .kind = TALLY_STOP_STEP };
	stop->retired = execute(vm);
	if (action->what == TALLY_TIMER_STEP)
		return;
	while (vm->branches % 16 || vm->branches < vm->slice_end)
		execute(vm);
	vm->slice_end = UINT64_MAX;
	*stop = (struct tally_stop){ .kind = TALLY_STOP_SIGNAL };
}

int main(int argc, char **argv)
{
	struct tally_timer_request request = { .size = sizeof(request),
					       .kind = TALLY_TIMER_EXACTLY,
					       .ticks = argc > 1 ? strtoull(argv[1], NULL, 10)
								 : 1000000 };
	struct vm vm = { .n = 1, .start = 1, .slice_end = UINT64_MAX };
	struct tally_timer_action action;
	struct tally_clock *clock = NULL;
	struct tally_timer *timer = NULL;
	struct tally_error err;
	struct tally_stop stop;

	if (tally_clock_new(&clock, &ops, &vm, &err) < 0 ||
	    tally_timer_new(&timer, clock, NULL, &err) < 0 ||
	    tally_timer_request(timer, &request, &err) < 0) {
		fprintf(stderr, "own-clock: %s\n", err.text);
		return 1;
	}
	while (tally_timer_next(timer, &action) == 0 && action.what != TALLY_TIMER_DONE) {
		perform(&vm, &action, &stop);
		tally_timer_stopped(timer, &stop, NULL);
	}
	struct tally_timer_outcome got = *tally_timer_outcome(timer);
	printf("%s at %llu: sequence %llu, number %llu, after %llu steps\n",
	       tally_outcome_name(got.kind), (unsigned long long)got.clock.ticks,
	       (unsigned long long)vm.start, (unsigned long long)vm.n,
	       (unsigned long long)tally_timer_stats(timer)->steps);
	tally_timer_free(timer);
	tally_clock_free(clock);
	return got.kind != TALLY_OUTCOME_REACHED;
}
