/* SPDX-License-Identifier: MIT */
/* The counter of a simulated thread: it counts what is retired, and interrupts with faults. */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "exact/clock.h"
#include "exact/sim.h"

#define PPM        1000000u
#define CODE_IN    1    /* POLL_IN of SIGPOLL, which perf events use with any signal number */
#define CODE_TKILL (-6) /* SI_TKILL */

uint64_t sim_random(struct tally_sim *sim, uint64_t bound)
{
	sim->random += 0x9e3779b97f4a7c15u;
	return hash_u64(sim->random) % bound;
}

bool sim_chance(struct tally_sim *sim, uint32_t ppm)
{
	return ppm && sim_random(sim, PPM) < ppm;
}

uint64_t sim_draw(struct tally_sim *sim, uint32_t ppm)
{
	/* Evenly spread around the mean, which is as good as any other distribution here. */
	return ppm ? sim->counts.executed + 1 + sim_random(sim, 2 * (uint64_t)PPM / ppm)
		   : UINT64_MAX;
}

/* Sets `next_alarm`, so that the usual instruction compares one number. */
static void find_next_alarm(struct tally_sim *sim)
{
	sim->next_alarm = sim->armed.on ? sim->armed.tick : UINT64_MAX;
	for (uint32_t i = 0; i < SIM_ALARMS; i++)
		if (sim->others[i].on && sim->others[i].tick < sim->next_alarm)
			sim->next_alarm = sim->others[i].tick;
}

static void add_other(struct tally_sim *sim, const struct sim_alarm *alarm)
{
	for (uint32_t i = 0; i < SIM_ALARMS; i++)
		if (!sim->others[i].on) {
			sim->others[i] = *alarm;
			break;
		}
	find_next_alarm(sim);
}

static void interrupt(struct tally_sim *sim)
{
	const struct tally_sim_opts *o = &sim->opts;

	sim_raise(sim, o->signal,
		  &(struct sim_signal){ .ours = true, .code = CODE_IN, .fd = SIM_FD });
	if (sim_chance(sim, o->duplicate_ppm))
		add_other(sim, &(struct sim_alarm){
				       .on = true,
				       .tick = sim->counted + sim_random(sim, 2 * o->skid_max + 2),
				       .insns = 1,
			       });
}

/* Whether it is due now; else it comes an instruction nearer. */
static bool rings(struct tally_sim *sim, struct sim_alarm *alarm)
{
	if (!alarm->on || alarm->tick > sim->counted)
		return false;
	if (alarm->insns) {
		alarm->insns--;
		return false;
	}
	alarm->on = false;
	return true;
}

static void ring_alarms(struct tally_sim *sim)
{
	bool now = rings(sim, &sim->armed);

	for (uint32_t i = 0; i < SIM_ALARMS; i++)
		now |= rings(sim, &sim->others[i]);
	if (now)
		interrupt(sim);
	find_next_alarm(sim);
}

/* By a thread of the program, or by the counter of another tracer: only the descriptor differs. */
static void send_foreign(struct tally_sim *sim)
{
	bool counter = sim_random(sim, 2);

	sim_raise(sim, sim->opts.signal,
		  &(struct sim_signal){ .code = counter ? CODE_IN : CODE_TKILL,
					.fd = counter ? SIM_FD + 1 : SIM_FD });
	sim->next_foreign = sim_draw(sim, sim->opts.foreign_ppm);
}

void sim_retired(struct tally_sim *sim, const struct tally_retired *retired)
{
	uint64_t ticks = clock_ticks_retired(sim->opts.ticks, retired);

	sim->counts.executed++;
	sim->counts.ticks += ticks;
	if (!(sim->opts.flags & TALLY_SIM_STEP_ONLY))
		sim->counted += ticks;
	if (sim->counts.executed >= sim->next_miscount) {
		sim->counted++;
		sim->next_miscount = sim_draw(sim, sim->opts.miscount_ppm);
	}
	if (sim->counted >= sim->next_alarm)
		ring_alarms(sim);
	if (sim->counts.executed >= sim->next_foreign)
		send_foreign(sim);
}

static int sim_about(void *self, struct tally_clock_about *out)
{
	const struct tally_sim *sim = self;
	const struct tally_sim_opts *o = &sim->opts;

	out->ticks = o->ticks;
	if (!(o->flags & TALLY_SIM_STEP_ONLY)) {
		out->can |= TALLY_CLOCK_COUNTS_FREE;
		if (!(o->flags & TALLY_SIM_NO_INTERRUPTS))
			out->can |= TALLY_CLOCK_INTERRUPTS;
		if (!(o->flags & TALLY_SIM_NO_SKID))
			out->can |= TALLY_CLOCK_MAY_SKID;
	}
	if (o->flags & TALLY_SIM_FOLLOWS_STEPS)
		out->can |= TALLY_CLOCK_FOLLOWS_STEPS;
	out->min_period = o->min_period ? o->min_period : 1;
	out->max_period = o->max_period;
	out->margin = o->margin;
	out->rate = o->rate;
	out->signal = out->can & TALLY_CLOCK_INTERRUPTS ? o->signal : 0;
	memcpy(out->backend, "sim", sizeof("sim"));
	return 0;
}

static int sim_read(void *self, struct tally_clock_value *out)
{
	const struct tally_sim *sim = self;
	const struct tally_sim_opts *o = &sim->opts;
	uint64_t ticks = sim->counted - sim->base;

	if (o->invalid_at && ticks >= o->invalid_at) {
		out->validity = o->invalid;
	} else {
		out->ticks = ticks;
		if (o->backward_at && ticks >= o->backward_at)
			out->ticks -= o->backward < ticks ? o->backward : ticks;
	}
	return 0;
}

/* What was armed is queued already, now and then, and comes all the same. */
static void leave_stale(struct tally_sim *sim)
{
	if (sim->armed.on && sim_chance(sim, sim->opts.stale_ppm))
		add_other(sim, &sim->armed);
	sim->armed.on = false;
}

static uint64_t draw_skid(struct tally_sim *sim)
{
	const struct tally_sim_opts *o = &sim->opts;

	if (sim_chance(sim, o->tail_ppm))
		return sim_random(sim, o->tail_max + 1);
	return o->skid_min + sim_random(sim, o->skid_max - o->skid_min + 1);
}

static int sim_arm(void *self, uint64_t period)
{
	struct tally_sim *sim = self;
	const struct tally_sim_opts *o = &sim->opts;

	leave_stale(sim);
	sim->armed = (struct sim_alarm){ .on = true,
					 .tick = sim->counted + period + draw_skid(sim),
					 .insns = (uint32_t)sim_random(sim, o->skid_insns + 1ull) };
	if (sim_chance(sim, o->lost_ppm)) {
		sim->armed.on = false;
		sim->counts.lost++;
	} else if (sim_chance(sim, o->early_ppm)) {
		sim->armed.tick = sim->counted + sim_random(sim, period);
	}
	find_next_alarm(sim);
	return 0;
}

static int sim_disarm(void *self)
{
	struct tally_sim *sim = self;

	leave_stale(sim);
	find_next_alarm(sim);
	return 0;
}

static bool sim_owns(void *self, const struct tally_stop *stop)
{
	const struct tally_sim *sim = self;

	return stop->signal == sim->opts.signal && stop->code == CODE_IN && stop->fd == SIM_FD;
}

static int sim_stepped(void *self, const struct tally_stop *stop)
{
	struct tally_sim *sim = self;

	if (sim->opts.flags & TALLY_SIM_STEP_ONLY)
		sim->counted += clock_ticks_retired(sim->opts.ticks, &stop->retired);
	return 0;
}

int tally_sim_clock(struct tally_clock **out, struct tally_sim *sim, struct tally_error *err)
{
	static const struct tally_clock_ops ops = {
		.size = sizeof(ops),
		.about = sim_about,
		.read = sim_read,
		.arm = sim_arm,
		.disarm = sim_disarm,
		.owns = sim_owns,
		.stepped = sim_stepped,
	};

	sim->base = sim->counted;
	return tally_clock_new(out, &ops, sim, err);
}
