/* SPDX-License-Identifier: MIT */
/*
 * Frame by frame from a thread's registers to where it began. The rules at an address of a mapping
 * never change, so they are kept in a table by these two; and which mapping it is, as long as
 * nothing is mapped anew. After the first time a frame costs one look-up and a few loads.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <tally/unwinder.h>

#include "base/bytes.h"
#include "base/error.h"
#include "image/cache.h"
#include "image/maps.h"
#include "image/unwind-arch.h"
#include "image/unwind-expression.h"
#include "image/unwind-made.h"
#include "image/unwind-modules.h"
#include "image/unwinder.h"

#define CACHE_BITS 14

#define CACHE_LINE  64
#define FETCH_AHEAD 1024

/* What lies further from the stack pointer than this is no stack that was cut, but garbage. */
#define LARGEST_STACK ((uint64_t)1 << 30)

/* What is known of an address in a space (maps_space()). */
struct cached {
	uint64_t address, space; /* space 0: empty */
	const struct unwind_rules *rules;
	uint32_t mapping; /* 0: nothing is mapped there */
	bool may_change;  /* in another space: its process may tell of code there by then */
};

struct tally_unwinder {
	struct tally_maps *maps;
	const struct unwind_arch *arch;
	struct unwind_modules modules;
	struct jit jit;
	char cache_folder[PATH_MAX];
	uint64_t mask, known;        /* of the registers in the last sample, and as ours */
	uint8_t places[UNWIND_REGS]; /* in its values */
	struct cached cache[1 << CACHE_BITS];
};

/* A walk at hand. */
struct walk {
	struct tally_unwinder *u;
	const struct tally_unwind_start *start;
	struct unwind_memory memory;
	struct unwind_regs regs;
	struct tally_unwound *out;
	uint64_t space;
	uint32_t mapping; /* of the frame at hand; 0: nothing is mapped there */
	uint64_t fetched; /* bytes of the copy that were asked for */
	bool exact;       /* it stands at its address, not behind a call */
	bool interrupted; /* frames of a signal handler were passed: the stack may be another now */
};

/* What came of a step to the caller. */
enum step {
	STEP_DONE,
	STEP_OUTERMOST,
	STEP_UNREADABLE, /* memory or a register that is needed is not there */
	STEP_NO_RULES,
};

int tally_unwinder_new(struct tally_unwinder **out, struct tally_maps *maps,
		       const struct tally_unwinder_opts *opts, struct tally_error *err)
{
	struct tally_unwinder_opts own;
	struct utsname name;
	int r = opts_read(&own, sizeof(own), 0, opts, err);

	if (r < 0)
		return r;
	if (!maps)
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
				 "an unwinder needs maps: pass what tally_maps_new() made");
	const char *machine = own.machine ? own.machine : uname(&name) == 0 ? name.machine : "";
	const struct unwind_arch *arch = unwind_arch_named(machine);
	if (!arch)
		return error_set(err, -EOPNOTSUPP, TALLY_CAUSE_ARGUMENT,
				 "stacks of %s cannot be unwound, only those of x86_64 and aarch64",
				 machine);
	struct tally_unwinder *u = calloc(1, sizeof(*u));
	if (!u)
		return error_nomem(err, "an unwinder");
	u->maps = maps;
	u->arch = arch;
	u->modules.root = own.root;
	u->modules.symfs = own.symfs;
	u->modules.cache = own.cache                       ? own.cache
			   : cache_folder(u->cache_folder) ? u->cache_folder
							   : NULL;
	u->modules.machine = arch->machine;
	u->jit.maps = maps;
	u->jit.builds = &u->modules.builds;
	u->jit.dumps_only = true;
	u->jit.where = (struct file_search){
		.root = own.root,
		.symfs = own.symfs,
		.cache = u->modules.cache,
	};
	*out = u;
	return 0;
}

void tally_unwinder_free(struct tally_unwinder *u)
{
	if (!u)
		return;
	jit_done(&u->jit);
	unwind_modules_done(&u->modules);
	free(u);
}

void tally_unwinder_clock(struct tally_unwinder *u, uint32_t clockid)
{
	u->jit.other_clock = clockid != CLOCK_MONOTONIC;
}

int tally_unwinder_build_id(struct tally_unwinder *u, int32_t pid, const char *path,
			    const uint8_t *build_id, uint32_t build_id_len)
{
	struct build_id id = build_id_from(build_id, build_id_len);

	return builds_set(&u->modules.builds, path, pid, &id) ? 0 : -ENOMEM;
}

/* ---- rules ---- */

/* How long what was found at an address holds. */
enum holds {
	HOLDS_EVER,
	HOLDS_IN_SPACE,
	HOLDS_NOW,
};

/* The slow way. -ENOMEM, else enum holds, and `*rules`, NULL where there are none. */
static int find_rules(struct walk *w, uint64_t address, const struct unwind_rules **rules)
{
	struct tally_unwinder *u = w->u;
	int32_t pid = w->start->pid, owner = maps_owner(u->maps, w->mapping);
	struct tally_mapping map;

	if (maps_is_kernel(u->maps, w->mapping))
		return HOLDS_EVER;
	maps_mapping(u->maps, w->mapping, &map);
	int r = unwind_modules_rules(&u->modules, u->arch, pid, w->mapping, &map, address, rules);
	if (r <= 0)
		return r < 0 ? r : HOLDS_EVER;
	r = jit_tells(&u->jit, pid, owner);
	if (r <= 0)
		return r < 0 ? r : HOLDS_IN_SPACE;
	r = unwind_made_rules(&u->jit, pid, owner, w->start->time, address, u->arch->machine,
			      rules);
	if (r == 0 && w->exact)
		w->out->untold = 1;
	return r < 0 ? r : HOLDS_NOW;
}

/* The slow way, of which the rules are kept when the mapping is the one that it was. */
__attribute__((noinline)) static int look_up(struct walk *w, uint64_t address, struct cached *c,
					     const struct unwind_rules **rules)
{
	int64_t mapping = maps_locate(w->u->maps, w->start->pid, w->start->time, address);
	int r = HOLDS_EVER;

	if (mapping < 0)
		return (int)mapping;
	w->mapping = (uint32_t)mapping;
	bool known = c->space && c->address == address && c->mapping == mapping && !c->may_change;
	*rules = known ? c->rules : NULL;
	if (!known && mapping)
		r = find_rules(w, address, rules);
	if (r == HOLDS_EVER || r == HOLDS_IN_SPACE)
		*c = (struct cached){ address, w->space, *rules, w->mapping, r == HOLDS_IN_SPACE };
	return r < 0 ? r : 0;
}

/* The rules at an address, NULL where there are none, and its mapping. -ENOMEM. */
static inline int rules_at(struct walk *w, uint64_t address, const struct unwind_rules **rules)
{
	/* Fibonacci hashing: the upper bits of a product with 2^64 / golden ratio. */
	struct cached *c = &w->u->cache[address * 0x9e3779b97f4a7c15u >> (64 - CACHE_BITS)];

	if (c->address != address || c->space != w->space)
		return look_up(w, address, c, rules);
	w->mapping = c->mapping;
	*rules = c->rules;
	return 0;
}

/* ---- a step ---- */

/*
 * A copy comes from a ring or a file, and is in no near cache: what is waited for, line by line, is
 * most of a walk. So it is asked for as far as FETCH_AHEAD before it is come to.
 */
static inline void fetch(struct walk *w, uint64_t sp)
{
	uint64_t ahead = sp - w->memory.start + FETCH_AHEAD;

	if (ahead > w->memory.len)
		ahead = w->memory.len;
	for (; w->fetched < ahead; w->fetched += CACHE_LINE)
		__builtin_prefetch(w->memory.copy + w->fetched);
}

static inline bool is_known(const struct unwind_regs *regs, unsigned reg)
{
	return regs->known >> reg & 1;
}

static bool find_cfa(struct walk *w, const struct unwind_rules *rules, uint64_t *cfa)
{
	const struct unwind_rule *rule = &rules->cfa;

	if (rule->kind == RULE_IS_EXPRESSION)
		return unwind_evaluate(rules, rule->offset, &w->regs, &w->memory, NULL, cfa);
	if (rule->kind != RULE_REGISTER || !is_known(&w->regs, rule->other))
		return false;
	*cfa = w->regs.at[rule->other] + (uint64_t)(int64_t)rule->offset;
	return true;
}

/* The caller's value of one register, from the callee's `old`; false: it is lost. */
static bool find_value(struct walk *w, const struct unwind_rules *rules,
		       const struct unwind_rule *rule, const struct unwind_regs *old, uint64_t cfa,
		       uint64_t *out)
{
	switch (rule->kind) {
	case RULE_KEPT:
		*out = old->at[rule->reg];
		return is_known(old, rule->reg);
	case RULE_AT:
		return unwind_load(&w->memory, cfa + (uint64_t)(int64_t)rule->offset, out);
	case RULE_IS:
		*out = cfa + (uint64_t)(int64_t)rule->offset;
		return true;
	case RULE_REGISTER:
		*out = old->at[rule->other];
		return is_known(old, rule->other);
	case RULE_AT_EXPRESSION:
		return unwind_evaluate(rules, rule->offset, old, &w->memory, &cfa, out) &&
		       unwind_load(&w->memory, *out, out);
	case RULE_IS_EXPRESSION:
		return unwind_evaluate(rules, rule->offset, old, &w->memory, &cfa, out);
	default:
		return false;
	}
}

static void set_value(struct unwind_regs *regs, unsigned reg, uint64_t value, bool known)
{
	regs->at[reg] = value;
	regs->known = (regs->known & ~((uint64_t)1 << reg)) | (uint64_t)known << reg;
}

/* All registers of the caller. What is saved in memory alone needs no copy of the callee's. */
static void apply(struct walk *w, const struct unwind_rules *rules, uint64_t cfa)
{
	const struct unwind_arch *arch = w->u->arch;
	struct unwind_regs *regs = &w->regs, copy;
	const struct unwind_regs *old = regs;

	if (!rules->plain) {
		copy = *regs;
		old = &copy;
	}
	regs->known &= arch->kept;
	set_value(regs, arch->sp, cfa, true);
	for (unsigned i = 0; i < rules->count; i++) {
		const struct unwind_rule *rule = &rules->saved[i];
		uint64_t value = 0;
		bool known = find_value(w, rules, rule, old, cfa, &value);
		set_value(regs, rule->reg, value, known);
	}
}

/* A signature of the return address that the CPU put above it, where there may be one. */
static uint64_t without_signature(const struct unwind_arch *arch, uint64_t address)
{
	return address & arch->address_mask;
}

static enum step step_by_rules(struct walk *w, const struct unwind_rules *rules)
{
	const struct unwind_arch *arch = w->u->arch;
	uint64_t cfa, before = w->regs.at[arch->sp];

	if (rules->outermost)
		return STEP_OUTERMOST;
	if (!find_cfa(w, rules, &cfa))
		return STEP_UNREADABLE;
	fetch(w, cfa);
	apply(w, rules, cfa);
	if (!is_known(&w->regs, rules->ra) || !is_known(&w->regs, arch->sp))
		return STEP_UNREADABLE;
	set_value(&w->regs, arch->pc, without_signature(arch, w->regs.at[rules->ra]), true);
	/* A stack grows from caller to callee; a signal may have had a stack of its own. */
	if (!rules->signal &&
	    (w->regs.at[arch->sp] < before || (w->regs.at[arch->sp] == before && !w->exact)))
		return STEP_NO_RULES;
	w->exact = rules->signal;
	w->interrupted |= rules->signal;
	return STEP_DONE;
}

static bool is_code(struct walk *w, uint64_t address)
{
	return maps_locate(w->u->maps, w->start->pid, w->start->time, address) > 0;
}

/* Whether tables tell of a place, so that what its frame has in a register may be anything. */
static bool is_told(struct walk *w, uint64_t address)
{
	const struct unwind_rules *rules = NULL;
	uint32_t mapping = w->mapping;
	bool told = rules_at(w, address, &rules) == 0 && rules;

	w->mapping = mapping;
	return told;
}

/*
 * Where no table tells of the place: as code that keeps a frame pointer, of which the psABI says
 * that it is 0 in the outermost frame.
 */
static enum step step_by_frame_pointer(struct walk *w)
{
	const struct unwind_arch *arch = w->u->arch;
	struct unwind_regs *regs = &w->regs;
	uint64_t fp = regs->at[arch->fp], next, pc;

	if (!is_known(regs, arch->fp))
		return STEP_NO_RULES;
	if (!fp)
		return STEP_OUTERMOST;
	if (fp < regs->at[arch->sp] || fp % 8)
		return STEP_NO_RULES;
	if (!unwind_load(&w->memory, fp, &next) || !unwind_load(&w->memory, fp + 8, &pc))
		return STEP_UNREADABLE;
	pc = without_signature(arch, pc);
	if (!pc || !is_code(w, pc) || (next && next <= fp && !is_told(w, pc - 1)))
		return STEP_NO_RULES;
	regs->known = 0;
	set_value(regs, arch->fp, next, true);
	set_value(regs, arch->sp, fp + 16, true);
	set_value(regs, arch->pc, pc, true);
	w->exact = false;
	return STEP_DONE;
}

/*
 * Where no table tells of the place before a return address, but of that itself, a function begins
 * there: nobody called from it. So a stack of makecontext(3) begins, and ends in libgcc's eyes.
 */
static int step_untold(struct walk *w, enum step *result)
{
	const struct unwind_rules *rules = NULL;
	int r = w->exact ? 0 : rules_at(w, w->regs.at[w->u->arch->pc], &rules);

	if (r == 0)
		*result = rules ? STEP_OUTERMOST : step_by_frame_pointer(w);
	return r;
}

static inline int step(struct walk *w, enum step *result)
{
	const struct unwind_rules *rules;
	uint64_t pc = w->regs.at[w->u->arch->pc];
	int r = rules_at(w, w->exact ? pc : pc - 1, &rules);

	if (r < 0 || !rules)
		return r < 0 ? r : step_untold(w, result);
	*result = step_by_rules(w, rules);
	return 0;
}

/* ---- the walk ---- */

/* They are needed first of all. */
static void fetch_registers(const struct tally_unwind_start *start)
{
	for (size_t at = 0; at < UNWIND_REGS * sizeof(uint64_t); at += CACHE_LINE)
		__builtin_prefetch((const char *)start->regs + at);
}

/* Samples of one event have one mask. */
static void place_registers(struct tally_unwinder *u, uint64_t mask)
{
	const struct unwind_arch *arch = u->arch;

	u->mask = mask;
	u->known = 0;
	for (unsigned i = 0; i < arch->regs; i++) {
		uint8_t bit = arch->perf_bits[i];
		u->known |= (mask >> bit & 1) << i;
		u->places[i] = (uint8_t)__builtin_popcountll(mask & (((uint64_t)1 << bit) - 1));
	}
}

static bool take_registers(struct walk *w)
{
	const struct unwind_arch *arch = w->u->arch;
	const char *values = (const char *)w->start->regs;

	if (w->u->mask != w->start->mask)
		place_registers(w->u, w->start->mask);
	w->regs.known = w->u->known;
	for (unsigned i = 0; i < arch->regs; i++)
		if (is_known(&w->regs, i))
			w->regs.at[i] = load_u64(values + 8 * w->u->places[i], false);
	return is_known(&w->regs, arch->pc) && is_known(&w->regs, arch->sp);
}

/* How far the stack reaches, by its mapping; 0: unknown. It may have grown since, downwards. */
static uint64_t stack_bytes(struct walk *w)
{
	const struct tally_unwind_start *s = w->start;
	struct tally_maps *maps = w->u->maps;
	uint64_t from = w->memory.start;
	struct tally_mapping map, first;

	if (tally_maps_find(maps, s->pid, s->time, w->memory.missed, &map) <= 0 ||
	    map.end <= from || map.end - from > LARGEST_STACK)
		return 0;
	/* What a signal handler on a stack of its own has interrupted is on another. */
	if (tally_maps_find(maps, s->pid, s->time, from, &first) > 0 && first.end != map.end)
		return 0;
	return map.end - from;
}

/*
 * Memory is missing: either the copy was too short, or the walk has gone astray. The copy of a
 * signal handler's own stack never holds what it interrupted.
 */
static bool is_cut(const struct walk *w)
{
	const struct unwind_memory *m = &w->memory;
	uint64_t distance = m->missed - m->start;

	if (m->read || !m->missed)
		return false;
	return w->interrupted || (distance + 8 > m->len && distance < LARGEST_STACK);
}

static void tell_end(struct walk *w, enum step how)
{
	struct tally_unwound *out = w->out;

	if (how == STEP_OUTERMOST) {
		out->end = TALLY_UNWIND_WHOLE;
	} else if (how == STEP_UNREADABLE && is_cut(w)) {
		out->end = TALLY_UNWIND_CUT;
		out->stack_bytes = stack_bytes(w);
	} else {
		out->end = TALLY_UNWIND_BROKEN;
		out->module = w->mapping ? unwind_modules_broken(&w->u->modules, w->mapping)
					 : UINT32_MAX;
	}
}

static int walk(struct walk *w, uint64_t *addresses, uint32_t room)
{
	const struct unwind_arch *arch = w->u->arch;
	struct tally_unwound *out = w->out;
	enum step how;

	for (;;) {
		if (out->frames == room) {
			out->end = TALLY_UNWIND_FULL;
			return 0;
		}
		addresses[out->frames++] = w->regs.at[arch->pc];
		int r = step(w, &how);
		if (r < 0)
			return r;
		/* What was started by nobody returns to nowhere. */
		if (how == STEP_DONE && !w->regs.at[arch->pc])
			how = STEP_OUTERMOST;
		if (how != STEP_DONE) {
			tell_end(w, how);
			return 0;
		}
	}
}

int tally_unwinder_walk(struct tally_unwinder *u, const struct tally_unwind_start *start,
			uint64_t *addresses, uint32_t room, struct tally_unwound *out)
{
	struct walk w = {
		.u = u,
		.start = start,
		.memory = {
			.len = start->stack ? start->stack_len : 0,
			.copy = start->stack,
			.read = start->read,
			.arg = start->arg,
		},
		.out = out,
		.exact = true,
	};

	fetch_registers(start);
	fetch(&w, 0);
	*out = (struct tally_unwound){ .module = UINT32_MAX };
	if (!take_registers(&w))
		return -EINVAL;
	w.space = maps_space(u->maps, start->pid, start->time);
	if (!w.space)
		return -ENOMEM;
	w.memory.start = w.regs.at[u->arch->sp];
	return walk(&w, addresses, room);
}

int tally_unwinder_is_signal(struct tally_unwinder *u, int32_t pid, uint64_t time, uint64_t address)
{
	const struct tally_unwind_start start = { .pid = pid, .time = time };
	struct walk w = { .u = u, .start = &start, .space = maps_space(u->maps, pid, time) };
	const struct unwind_rules *rules;
	int r = w.space ? rules_at(&w, address - 1, &rules) : -ENOMEM;

	return r < 0 ? r : rules && rules->signal;
}

/* TALLY_REGS_ABI_64 of the kernel's uapi/linux/perf_event.h. */
#define ABI_64 2

int tally_unwinder_sample(struct tally_unwinder *u, const struct tally_record *rec,
			  uint64_t *addresses, uint32_t room, struct tally_unwound *out)
{
	const struct tally_record_sample *s = &rec->sample;
	const struct tally_unwind_start start = {
		.pid = rec->id.pid,
		.time = rec->id.has & TALLY_SAMPLE_TIME ? rec->id.time : UINT64_MAX,
		.mask = s->regs_user.mask,
		.regs = s->regs_user.values,
		.stack = s->stack,
		/* The kernel leaves the rest as it was. */
		.stack_len = s->stack_dyn_size < s->stack_len ? s->stack_dyn_size : s->stack_len,
	};

	if (rec->type != TALLY_RECORD_SAMPLE || !s->regs_user.abi)
		return 0;
	if (s->regs_user.abi != ABI_64 || rec->swapped)
		return -EBADMSG;
	int r = tally_unwinder_walk(u, &start, addresses, room, out);
	return r < 0 ? r : 1;
}

uint64_t unwinder_stack_bytes(struct tally_maps *maps, const struct tally_record *rec)
{
	static const struct unwind_arch *const archs[] = { &unwind_x86_64, &unwind_arm64 };
	uint64_t time = rec->id.has & TALLY_SAMPLE_TIME ? rec->id.time : UINT64_MAX, sp;
	struct tally_mapping map;

	/* An arm64 sample has a register where that of x86-64 has none. */
	for (size_t i = 0; i < ARRAY_SIZE(archs); i++)
		if (tally_regs_value(rec, &rec->sample.regs_user, archs[i]->perf_bits[archs[i]->sp],
				     &sp) &&
		    tally_maps_find(maps, rec->id.pid, time, sp, &map) > 0)
			return map.end - sp < LARGEST_STACK ? map.end - sp : 0;
	return 0;
}

uint32_t tally_unwinder_modules(const struct tally_unwinder *u)
{
	return (uint32_t)u->modules.list.count;
}

int tally_unwinder_module(const struct tally_unwinder *u, uint32_t i,
			  struct tally_unwinder_module *out)
{
	if (i >= u->modules.list.count)
		return -EINVAL;
	const struct unwind_module *m = u->modules.list.at[i];

	*out = (struct tally_unwinder_module){
		.path = m->path,
		.trouble = m->trouble[0] ? m->trouble : NULL,
		.broken = m->broken,
	};
	return 0;
}
