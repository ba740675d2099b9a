/* SPDX-License-Identifier: MIT */
/*
 * Records into a profile. Names are looked up once: stacks repeat, so a sample is first looked for
 * by a hash of its whole callchain, and only a stack that is new is taken apart, address by address,
 * each of which may be known too. What is remembered is keyed by process and epoch (changes.h), so
 * that it is forgotten when a mapping or a name changes.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/hash.h"
#include "image/symbolizer.h"
#include "profile/context.h"
#include "profile/load.h"
#include "profile/profile.h"
#include "profile/sideband.h"
#include "profile/stacks.h"

#define UNKNOWN "[unknown]" /* perf's word */

/* One address of a callchain. */
struct entry {
	uint64_t ip;
	uint32_t mode;
	bool exact;     /* where the CPU was, not where a call returns to */
	bool unwound;   /* by tables, which lead to what a signal interrupted */
	uint32_t place; /* index in places */
};

enum function_flags {
	FUNCTION_STARTS = 1u << 0,    /* threads begin in it */
	FUNCTION_MAY_START = 1u << 1, /* it has no name but lies where they begin */
	FUNCTION_UNNAMED = 1u << 2,
};

/* A callchain that was seen. */
struct known_stack {
	int32_t stack;
	uint32_t frames, unknown;
	bool has_user, broken, cut;
};

/* What an address stands for: locations of the profile, outermost first; several where functions
 * were inlined. */
struct places {
	size_t first;
	uint32_t count;
	bool signal; /* signal handlers return there */
};

struct tally_loader {
	struct tally_profile *profile;
	struct tally_symbolizer *symbolizer;
	struct tally_loader_opts opts;
	struct tally_load_health health;

	struct sideband sideband;
	struct stacks completed;
	VEC(struct known_stack) stacks;
	VEC(int32_t) modules;        /* by the symbolizer's number: the profile's, -1 unknown */
	VEC(uint8_t) function_flags; /* by the profile's number */
	VEC(struct entry) chain;     /* of the sample at hand */
	VEC(struct places) places;   /* of addresses ... */
	VEC(int32_t) locations;      /* ... of which each has so many of these */
	/* Values are index + 1. */
	VEC(struct tally_symbolizer_query) sightings; /* by location; address 0: none */
	bool keeps_sightings;
	struct map64 thread_of, stack_of, places_of, function_of;
};

int tally_loader_new(struct tally_loader **out, struct tally_profile *profile,
		     struct tally_maps *maps, struct tally_symbolizer *symbolizer,
		     const struct tally_loader_opts *opts, struct tally_error *err)
{
	struct tally_loader *l = calloc(1, sizeof(*l));

	if (!l)
		return error_nomem(err, "a loader");
	int r = opts_read(&l->opts, sizeof(l->opts), LOADER_FLAGS, opts, err);
	if (r < 0) {
		free(l);
		return r;
	}
	l->profile = profile;
	l->sideband.maps = l->completed.maps = maps;
	l->completed.unwinder = l->opts.unwinder;
	l->symbolizer = l->sideband.symbolizer = symbolizer;
	*out = l;
	return 0;
}

void tally_loader_free(struct tally_loader *l)
{
	if (!l)
		return;
	sideband_done(&l->sideband);
	stacks_done(&l->completed);
	vec_done(&l->stacks);
	vec_done(&l->modules);
	vec_done(&l->function_flags);
	vec_done(&l->chain);
	vec_done(&l->places);
	vec_done(&l->locations);
	vec_done(&l->sightings);
	map64_done(&l->thread_of);
	map64_done(&l->stack_of);
	map64_done(&l->places_of);
	map64_done(&l->function_of);
	free(l);
}

/* ---- samples: who ---- */

static int find_thread(struct tally_loader *l, const struct tally_record *rec)
{
	int32_t pid = rec->id.pid, tid = rec->id.tid;
	uint64_t time = sample_time(rec);
	struct task *task = sideband_task(&l->sideband, tid);

	if (!task)
		return -ENOMEM;
	uint64_t who = (uint64_t)(uint32_t)pid << 32 | (uint32_t)tid;
	uint64_t key = hash_u64(hash_u64(who) + changes_epoch(&task->names, time));
	uint32_t *known = map64_at(&l->thread_of, key);
	if (!known)
		return -ENOMEM;
	if (!*known) {
		char room[16];
		int thread = tally_profile_thread(l->profile, pid, tid,
						  sideband_name(&l->sideband, tid, time, room));
		if (thread < 0)
			return thread;
		*known = (uint32_t)thread + 1;
	}
	return (int)(*known - 1);
}

/* ---- samples: where ---- */

/*
 * The chain's addresses, innermost first. It should begin where the sample was taken: a precise
 * event's ip replaces the place to which the CPU had slid, and is put in front of a chain that
 * leaves out the part (kernel or user) in which the sample was taken.
 */
static int read_chain(struct tally_loader *l, const struct tally_record *rec)
{
	const struct tally_record_sample *s = &rec->sample;
	struct entry first = { s->ip, rec->misc & TALLY_MISC_CPUMODE, true }, next = first;

	l->chain.count = 0;
	if (!vec_reserve(&l->chain, s->chain_len + 1))
		return -ENOMEM;
	for (uint64_t i = 0; i < s->chain_len; i++) {
		next.ip = tally_sample_ip(rec, i);
		next.unwound = i >= l->completed.unwound_from && i < l->completed.unwound_to;
		if (next.ip >= TALLY_CONTEXT_MAX) {
			next.mode = context_mode(next.ip);
			next.exact = true;
			continue;
		}
		if (!l->chain.count && s->ip && next.ip != s->ip) {
			*vec_push(&l->chain) = first;
			if (next.mode == first.mode) {
				next.exact = false;
				continue;
			}
		}
		*vec_push(&l->chain) = next;
		next.exact = false;
	}
	if (!l->chain.count)
		*vec_push(&l->chain) = first;
	return 0;
}

/* Where the stacks of processes and threads begin: in the start code of the program, of the dynamic
 * linker, and of glibc's and musl's threads. main counts too, for start code often keeps no frame
 * pointers. */
static const char *const start_functions[] = {
	"_start",       "main",     "__libc_start_main",      "__libc_start_call_main",
	"_dl_start",    "clone",    "_dl_start_user",         "__clone",
	"clone3",       "__clone3", "start_thread",           "__libc_start_main@@GLIBC_2.34",
	"start_c",      "start",    "__libc_start_main_impl", "_dl_start_final",
	"thread_start",
};

/* Modules that hold start code; without their own symbols its functions have no names. */
static const char *const start_modules[] = { "libc.so.6", "libc-",   "libpthread",
					     "ld-linux",  "ld-musl", "libc.musl" };

static uint8_t flags_of(const struct tally_frame *frame)
{
	if (!frame->function) {
		for (size_t i = 0; i < ARRAY_SIZE(start_modules); i++)
			if (!strncmp(frame->module, start_modules[i], strlen(start_modules[i])))
				return FUNCTION_UNNAMED | FUNCTION_MAY_START;
		return FUNCTION_UNNAMED;
	}
	for (size_t i = 0; i < ARRAY_SIZE(start_functions); i++)
		if (!strcmp(frame->function, start_functions[i]))
			return FUNCTION_STARTS;
	return 0;
}

static int find_module(struct tally_loader *l, const struct tally_frame *frame)
{
	struct tally_module_info info = { 0 };

	while (l->modules.count <= frame->module_id) {
		int32_t *added = vec_push(&l->modules);
		if (!added)
			return -ENOMEM;
		*added = -1;
	}
	int32_t *known = &l->modules.at[frame->module_id];
	if (*known >= 0)
		return *known;
	if (tally_symbolizer_module(l->symbolizer, frame->module_id, &info) < 0 ||
	    info.build_id_len > 20)
		info.build_id_len = 0;
	*known = tally_profile_module(l->profile, frame->module, frame->path, info.build_id,
				      info.build_id_len);
	return *known;
}

static int set_flags(struct tally_loader *l, int function, uint8_t flags)
{
	while (l->function_flags.count <= (size_t)function)
		if (!vec_push(&l->function_flags))
			return -ENOMEM;
	l->function_flags.at[function] = flags;
	return 0;
}

static int find_function(struct tally_loader *l, const struct tally_frame *frame)
{
	uint64_t module = (uint64_t)frame->module_id << 3 | (frame->mode & 7);
	uint32_t *known = map64_at(&l->function_of, module << 32 | frame->function_id);

	if (!known)
		return -ENOMEM;
	if (*known)
		return (int)(*known - 1);
	int r = find_module(l, frame);
	if (r >= 0)
		r = tally_profile_function(l->profile, r, frame->function, frame->mode);
	if (r < 0)
		return r;
	int function = r;
	r = set_flags(l, function, flags_of(frame));
	if (r < 0)
		return r;
	*known = (uint32_t)function + 1;
	return function;
}

/* Adds a location to those that an address stands for. */
static int add_location(struct tally_loader *l, struct places *places, int location)
{
	int32_t *added = location < 0 ? NULL : vec_push(&l->locations);

	if (!added)
		return location < 0 ? location : -ENOMEM;
	*added = location;
	places->count++;
	return 0;
}

static int add_inlined(struct tally_loader *l, struct places *places,
		       const struct tally_frame *frame, const struct tally_source *source,
		       uint64_t address)
{
	int r = find_module(l, frame);

	if (r >= 0)
		r = tally_profile_inlined(
			l->profile, r, source->function ? source->function : UNKNOWN, frame->mode);
	if (r >= 0)
		r = tally_profile_place(l->profile, r, address, source->file, source->line);
	return add_location(l, places, r);
}

/*
 * Whether signal handlers return to the address behind that of `frame`. Code to which nothing but a
 * call returns, as nearly all is, shows that by its symbols.
 */
static int is_signal(struct tally_loader *l, const struct tally_symbolizer_query *query,
		     const struct tally_frame *frame)
{
	if (!l->completed.unwinder || frame->mode != TALLY_MODE_USER ||
	    !symbolizer_begins_behind(l->symbolizer, frame))
		return 0;
	return tally_unwinder_is_signal(l->completed.unwinder, query->pid, query->time,
					query->address + 1);
}

/* With lines, and what was inlined there. */
static int name_with_source(struct tally_loader *l, struct places *places,
			    const struct tally_symbolizer_query *query, uint64_t back)
{
	bool lines = l->opts.flags & TALLY_LOADER_LINES;
	struct tally_symbolized at;
	int r = tally_symbolizer_lines(l->symbolizer, query, 1, &at);

	if (r < 0)
		return r;
	if (back && (r = is_signal(l, query, &at.frame)))
		return r;
	uint64_t address = at.frame.module_address + back;
	uint32_t outer = at.source_count - 1;
	bool inlined = l->opts.flags & TALLY_LOADER_INLINE && outer;
	/* Unless the inlined functions are shown, where the code comes from is what counts. */
	const struct tally_source *s = &at.sources[inlined ? outer : 0];
	r = find_function(l, &at.frame);
	if (r >= 0)
		r = tally_profile_place(l->profile, r, address, lines ? s->file : NULL, s->line);
	r = add_location(l, places, r);
	for (uint32_t i = outer; inlined && i-- > 0 && r == 0;) {
		struct tally_source source = at.sources[i];
		source.file = lines ? source.file : NULL;
		r = add_inlined(l, places, &at.frame, &source, address);
	}
	return r;
}

/*
 * A return address may stand behind its function's end, so the call before it is looked up. 1:
 * there is none, for a signal handler returns there.
 */
static int name_at(struct tally_loader *l, int32_t pid, uint64_t time, const struct entry *e,
		   uint64_t back, struct places *places)
{
	struct tally_frame frame;
	const struct tally_symbolizer_query query = { pid, e->mode, time, e->ip - back };

	if (l->opts.flags)
		return name_with_source(l, places, &query, back);
	int r = tally_symbolizer_find(l->symbolizer, pid, time, query.address, e->mode, &frame);
	if (r < 0)
		return r;
	if (back && (r = is_signal(l, &query, &frame)))
		return r;
	r = find_function(l, &frame);
	if (r >= 0)
		r = tally_profile_location(l->profile, r, frame.module_address + back);
	return add_location(l, places, r);
}

static int name_entry(struct tally_loader *l, int32_t pid, uint64_t time, const struct entry *e,
		      struct places *places)
{
	int r = name_at(l, pid, time, e, e->exact || !e->ip ? 0 : 1, places);

	places->signal = r > 0;
	return r > 0 ? name_at(l, pid, time, e, 0, places) : r;
}

static int note_sightings(struct tally_loader *l, int32_t pid, uint64_t time, const struct entry *e,
			  const struct places *places)
{
	for (uint32_t i = 0; l->keeps_sightings && i < places->count; i++) {
		size_t location = (size_t)l->locations.at[places->first + i];
		while (l->sightings.count <= location)
			if (!vec_push(&l->sightings))
				return -ENOMEM;
		if (!l->sightings.at[location].address)
			l->sightings.at[location] = (struct tally_symbolizer_query){ pid, e->mode,
										     time, e->ip };
	}
	return 0;
}

/* The index in l->places. */
static int find_places(struct tally_loader *l, int32_t pid, struct epoch epoch, uint64_t time,
		       const struct entry *e)
{
	bool kernel = e->mode == TALLY_MODE_KERNEL;
	uint64_t space = kernel ? (uint64_t)UINT32_MAX << 32 | epoch.kernel
				: (uint64_t)(uint32_t)pid << 32 | epoch.process;
	uint64_t key = hash_u64(hash_u64(space) + (e->mode << 1 | e->exact)) ^ hash_u64(e->ip);
	uint32_t *known = map64_at(&l->places_of, key);

	if (!known || !vec_reserve(&l->places, 1))
		return -ENOMEM;
	if (!*known) {
		struct places places = { .first = l->locations.count };
		int r = name_entry(l, pid, time, e, &places);
		if (r == 0)
			r = note_sightings(l, pid, time, e, &places);
		if (r < 0)
			return r;
		l->places.at[l->places.count++] = places;
		*known = (uint32_t)l->places.count;
	}
	return (int)(*known - 1);
}

/* Flags of the function that an address is in, as the loader made it. */
static uint8_t place_flags(const struct tally_loader *l, const struct places *places)
{
	uint32_t outermost = (uint32_t)l->locations.at[places->first];
	int32_t function = location_at(l->profile, outermost)->function;

	return (size_t)function < l->function_flags.count ? l->function_flags.at[function] : 0;
}

/* Puts an address on top of a stack. */
static int grow_stack(struct tally_loader *l, const struct places *places, int32_t *stack)
{
	for (uint32_t i = 0; i < places->count; i++) {
		int r = tally_profile_stack(l->profile, *stack, l->locations.at[places->first + i]);
		if (r < 0)
			return r;
		*stack = r;
	}
	return 0;
}

/*
 * Names each address of the chain at hand, innermost first: which is where a signal handler returns
 * to tells of the next that it was interrupted.
 */
static int name_chain(struct tally_loader *l, int32_t pid, struct epoch epoch, uint64_t time)
{
	bool interrupted = false;

	vec_each (&l->chain, e) {
		e->exact |= interrupted && e->unwound;
		int r = find_places(l, pid, epoch, time, e);
		if (r < 0)
			return r;
		e->place = (uint32_t)r;
		interrupted = l->places.at[r].signal;
	}
	return 0;
}

/* Makes the stack of the chain at hand, outermost first. */
static int build_stack(struct tally_loader *l, int32_t pid, struct epoch epoch, uint64_t time,
		       enum stack_end end, struct known_stack *out)
{
	bool starts = false, outermost = true;
	int r = name_chain(l, pid, epoch, time);

	*out = (struct known_stack){ .stack = -1 };
	for (size_t i = l->chain.count; i-- > 0 && r == 0;) {
		const struct entry *e = &l->chain.at[i];
		const struct places *places = &l->places.at[e->place];
		r = grow_stack(l, places, &out->stack);
		if (r < 0)
			break;
		uint8_t flags = place_flags(l, places);
		out->frames++;
		out->unknown += (flags & FUNCTION_UNNAMED) != 0;
		if (e->mode != TALLY_MODE_USER)
			continue;
		out->has_user = true;
		starts |= flags & FUNCTION_STARTS ||
			  (outermost && !e->exact && flags & FUNCTION_MAY_START);
		outermost = false;
	}
	out->cut = out->has_user && end == STACK_CUT;
	out->broken = out->has_user && (end == STACK_BROKEN || (end == STACK_UNKNOWN && !starts));
	return r;
}

static uint64_t stack_key(const struct tally_record *rec, struct epoch epoch, enum stack_end end,
			  size_t unwound)
{
	const struct tally_record_sample *s = &rec->sample;
	uint64_t where[] = { s->ip, (uint64_t)epoch.process << 32 | epoch.kernel,
			     (uint64_t)(uint32_t)rec->id.pid << 32 | rec->swapped << 3 |
				     (rec->misc & TALLY_MISC_CPUMODE),
			     end, unwound };
	uint64_t key = hash_bytes(where, sizeof(where));

	return s->chain_len ? hash_u64(key ^ hash_bytes(s->chain, s->chain_len * sizeof(uint64_t)))
			    : key;
}

/* The stack of a sample, from memory when it was seen. Its key is a hash of 64 bits and nothing
 * else: among a million stacks two share one with a chance of 1 in 37 million. */
static int find_stack(struct tally_loader *l, const struct tally_record *rec, enum stack_end end)
{
	uint64_t time = sample_time(rec);
	struct epoch epoch;
	int r = sideband_epoch(&l->sideband, rec->id.pid, time, &epoch);

	if (r < 0)
		return r;
	uint32_t *known = map64_at(&l->stack_of,
				   stack_key(rec, epoch, end, l->completed.unwound_to));
	if (!known)
		return -ENOMEM;
	if (*known)
		return (int)(*known - 1);
	r = read_chain(l, rec);
	struct known_stack *stack = r < 0 ? NULL : vec_push(&l->stacks);
	if (!stack)
		return -ENOMEM;
	r = build_stack(l, rec->id.pid, epoch, time, end, stack);
	if (r < 0) {
		l->stacks.count--;
		return r;
	}
	*known = (uint32_t)l->stacks.count;
	return (int)(*known - 1);
}

static void count_sample(struct tally_load_health *h, const struct tally_record *rec,
			 const struct known_stack *stack)
{
	h->frames += stack->frames;
	h->unknown_frames += stack->unknown;
	if (rec->sample.chain_len && stack->has_user) {
		h->with_chain++;
		h->broken_chains += stack->broken;
		h->cut_chains += stack->cut;
	}
	if (rec->id.has & TALLY_SAMPLE_TIME) {
		if (!h->samples || rec->id.time < h->first)
			h->first = rec->id.time;
		if (rec->id.time > h->last)
			h->last = rec->id.time;
	}
	h->samples++;
}

static int push_sample(struct tally_loader *l, const struct tally_record *rec, int event)
{
	if (rec->id.time < l->opts.from || (l->opts.to && rec->id.time >= l->opts.to)) {
		l->health.filtered++;
		return 0;
	}
	int thread = find_thread(l, rec);
	if (thread < 0)
		return thread;
	struct tally_record whole = *rec;
	enum stack_end end;
	uint64_t wanted;
	int r = stacks_complete(&l->completed, &whole, &end, &wanted);
	int at = r < 0 ? r : find_stack(l, &whole, end);
	if (at < 0)
		return at;
	const struct known_stack *stack = &l->stacks.at[at];
	r = tally_profile_add(l->profile, event, thread, stack->stack, 1, rec->sample.period);
	if (r < 0)
		return r;
	count_sample(&l->health, &whole, stack);
	l->health.copied_stacks += end != STACK_UNKNOWN;
	l->health.cut_beyond += end == STACK_CUT && !wanted;
	if (wanted > l->health.wanted_stack)
		l->health.wanted_stack = wanted;
	return 0;
}

int tally_loader_push(struct tally_loader *l, const struct tally_record *rec, int event)
{
	switch (rec->type) {
	case TALLY_RECORD_SAMPLE:
		return push_sample(l, rec, event);
	case TALLY_RECORD_LOST:
	case TALLY_RECORD_LOST_SAMPLES:
		l->health.lost += rec->lost.lost;
		return 0;
	case TALLY_RECORD_CALLCHAIN_DEFERRED:
		return stacks_defer(&l->completed, rec);
	default:
		return sideband_push(&l->sideband, rec);
	}
}

void loader_keep_sightings(struct tally_loader *l)
{
	l->keeps_sightings = true;
}

bool loader_sighting(const struct tally_loader *l, uint32_t location,
		     struct tally_symbolizer_query *out)
{
	if (location >= l->sightings.count || !l->sightings.at[location].address)
		return false;
	*out = l->sightings.at[location];
	return true;
}

void loader_between(struct tally_loader *l, uint64_t from, uint64_t to)
{
	l->opts.from = from;
	l->opts.to = to;
}

void loader_unwinds(struct tally_loader *l, struct tally_unwinder *unwinder)
{
	l->completed.unwinder = unwinder;
}

void loader_undecodable(struct tally_loader *l)
{
	l->health.undecodable++;
}

void tally_loader_health(const struct tally_loader *l, struct tally_load_health *out)
{
	*out = l->health;
	out->undecodable += l->sideband.senseless;
}
