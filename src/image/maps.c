/* SPDX-License-Identifier: MIT */
/*
 * Address spaces over time. Events are kept as they come; a look-up first brings them into the
 * order of time and applies those that are new. Each process has a list of (time, address space),
 * each thread one of (time, name). An event that is older than what has been applied takes back
 * what is younger than it, so the cost of coming late is the number of events that it overtakes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/vec.h"
#include "image/history.h"
#include "image/maps.h"
#include "image/space.h"
#include "image/texts.h"

/* Addresses of one block of 16 KiB share a place in the cache: mappings are rarely smaller. */
#define CACHE_BITS  10
#define BLOCK_SHIFT 14
/* A program of 100 MiB would fill it: blocks of 4 MiB and more have a cache of their own. */
#define LARGE_CACHE_BITS  8
#define LARGE_BLOCK_SHIFT 22

struct mapping {
	uint64_t start, end, pgoff, inode;
	uint32_t path_id, dev_major, dev_minor, flags;
	int32_t pid; /* who mapped it */
	bool gone;   /* nothing is there from then on */
};

struct path {
	const char *path;
	const uint8_t *build_id;
	uint32_t build_id_len;
};

enum event_kind {
	EVENT_MAP,
	EVENT_FORK,
	EVENT_COMM,
	EVENT_EXEC
};

struct event {
	uint64_t time;
	uint32_t order; /* of arrival: what happened first among equal times */
	uint32_t kind;
	int32_t pid, tid;
	union {
		uint32_t value; /* mapping, or name + 1 */
		struct {
			int32_t pid, tid;
		} parent;
	};
	uint32_t nodes; /* how many the spaces had before it was applied */
};

/* An answer, and the addresses and times for which it holds, ends inclusive. */
struct place {
	struct space_block block;
	uint64_t from, until;
};

struct cached {
	struct place place;
	int32_t pid;
	uint32_t epoch; /* 0: empty */
};

struct tally_maps {
	VEC(struct event) events;
	size_t applied; /* the first so many are in order and in the histories */
	VEC(struct mapping) mappings;
	VEC(uint32_t) dumps;     /* numbers of mapped jitdumps */
	struct texts path_texts; /* path, NUL, build-id; the index is the path_id */
	VEC(struct path) paths;
	struct texts names;
	struct spaces spaces;
	struct histories processes, threads;
	uint32_t epoch;
	struct cached cache[1 << CACHE_BITS]; /* of mappings' numbers, in blocks as they come */
	struct cached large[1 << LARGE_CACHE_BITS];
	const struct cached *recent; /* the one of these that was used last */
	struct cached last;          /* of tally_maps_find(), whole mappings */
};

static int apply_map(struct tally_maps *m, const struct event *e)
{
	struct history *h = history_make(&m->processes, e->pid);
	struct change *c = h ? history_begin(h, e->time, m->spaces.count) : NULL;
	const struct mapping *map = &m->mappings.at[e->value - 1];

	uint32_t value = map->gone ? 0 : e->value;

	if (!c || !space_paint(&m->spaces, &c->value, h->owned, map->start, map->end - 1, value))
		return -ENOMEM;
	return 0;
}

static int set_name(struct tally_maps *m, int32_t tid, uint64_t time, uint32_t name)
{
	struct history *h = history_make(&m->threads, tid);
	struct change *c = h ? history_begin(h, time, 0) : NULL;

	if (!c)
		return -ENOMEM;
	c->value = name;
	return 0;
}

static int apply_fork(struct tally_maps *m, const struct event *e)
{
	int r = set_name(m, e->tid, e->time, history_last(history_get(&m->threads, e->parent.tid)));

	if (r < 0 || e->pid == e->parent.pid)
		return r;
	struct history *child = history_make(&m->processes, e->pid);
	struct change *c = child ? history_begin(child, e->time, m->spaces.count) : NULL;
	if (!c)
		return -ENOMEM;
	/* From now on both have the same nodes: neither may change them in place. */
	struct history *parent = history_get(&m->processes, e->parent.pid);
	c->value = history_last(parent);
	child->owned = m->spaces.count;
	if (parent)
		parent->owned = m->spaces.count;
	return 0;
}

static int apply_comm(struct tally_maps *m, const struct event *e)
{
	int r = set_name(m, e->tid, e->time, e->value);

	if (r < 0 || e->kind != EVENT_EXEC)
		return r;
	struct history *h = history_make(&m->processes, e->pid);
	struct change *c = h ? history_begin(h, e->time, m->spaces.count) : NULL;
	if (!c)
		return -ENOMEM;
	c->value = 0;
	return 0;
}

static int apply(struct tally_maps *m, struct event *e)
{
	e->nodes = (uint32_t)m->spaces.count;
	switch (e->kind) {
	case EVENT_MAP:
		return apply_map(m, e);
	case EVENT_FORK:
		return apply_fork(m, e);
	default:
		return apply_comm(m, e);
	}
}

/* Takes back what happened after `time`. */
static void take_back(struct tally_maps *m, uint64_t time)
{
	while (m->applied && m->events.at[m->applied - 1].time > time) {
		const struct event *e = &m->events.at[--m->applied];
		m->spaces.count = e->nodes;
		history_trim(&m->processes, e->pid, time, m->spaces.count);
		history_trim(&m->threads, e->tid, time, 0);
	}
}

static int compare_events(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* Brings new events into order, behind the applied ones that are not younger. */
static void order_events(struct tally_maps *m)
{
	struct event *fresh = m->events.at + m->applied;
	size_t count = m->events.count - m->applied;
	uint64_t oldest = fresh[0].time;
	bool ordered = true;

	for (size_t i = 1; i < count; i++) {
		ordered = ordered && fresh[i - 1].time <= fresh[i].time;
		if (fresh[i].time < oldest)
			oldest = fresh[i].time;
	}
	if (m->applied && m->events.at[m->applied - 1].time > oldest) {
		take_back(m, oldest);
		ordered = false;
	}
	if (!ordered)
		qsort(m->events.at + m->applied, m->events.count - m->applied,
		      sizeof(*m->events.at), compare_events);
}

static int catch_up(struct tally_maps *m)
{
	if (m->applied == m->events.count)
		return 0;
	order_events(m);
	m->epoch++; /* after 2^32 rounds an old answer could pass for a new one: 0 is skipped */
	m->epoch += !m->epoch;
	for (; m->applied < m->events.count; m->applied++) {
		int r = apply(m, &m->events.at[m->applied]);
		if (r < 0)
			return r;
	}
	return 0;
}

int tally_maps_new(struct tally_maps **out)
{
	struct tally_maps *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->epoch = 1;
	m->recent = m->cache;
	*out = m;
	return 0;
}

void tally_maps_free(struct tally_maps *m)
{
	if (!m)
		return;
	histories_done(&m->processes);
	histories_done(&m->threads);
	spaces_done(&m->spaces);
	texts_done(&m->path_texts);
	texts_done(&m->names);
	vec_done(&m->paths);
	vec_done(&m->mappings);
	vec_done(&m->dumps);
	vec_done(&m->events);
	free(m);
}

/* The number of (path, build-id); UINT32_MAX: no memory. */
static uint32_t add_path(struct tally_maps *m, const struct tally_mapping *map)
{
	const char *path = map->path ? map->path : "";
	size_t id_len = map->build_id ? map->build_id_len : 0;
	size_t path_len = strlen(path);
	char *both = malloc(path_len + 1 + id_len);

	if (!both || !vec_reserve(&m->paths, 1)) {
		free(both);
		return UINT32_MAX;
	}
	memcpy(both, path, path_len + 1);
	if (id_len)
		memcpy(both + path_len + 1, map->build_id, id_len);
	uint32_t id = texts_add(&m->path_texts, both, path_len + 1 + id_len);
	free(both);
	if (id == m->paths.count) {
		const char *text = texts_get(&m->path_texts, id);
		m->paths.at[m->paths.count++] = (struct path){
			.path = text,
			.build_id = (const uint8_t *)text + path_len + 1,
			.build_id_len = (uint32_t)id_len,
		};
	}
	return id;
}

/* "jit-PID.dump": a process maps it so that recorders see its path (jitdump-specification.txt). */
bool maps_is_jitdump(const char *path)
{
	const char *name = strrchr(path, '/');
	size_t digits = name && !strncmp(name, "/jit-", 5) ? strspn(name + 5, "0123456789") : 0;

	return digits && !strncmp(name + 5 + digits, ".dump", 5);
}

static int add_event(struct tally_maps *m, const struct event *e)
{
	if (m->events.count >= UINT32_MAX)
		return -ENOMEM;
	struct event *slot = vec_push(&m->events);
	if (!slot)
		return -ENOMEM;
	*slot = *e;
	slot->order = (uint32_t)m->events.count;
	return 0;
}

static int add_mapping(struct tally_maps *m, int32_t pid, uint64_t time,
		       const struct tally_mapping *map, bool gone)
{
	if (map->end <= map->start)
		return -EINVAL;
	uint32_t path_id = add_path(m, map);
	if (path_id == UINT32_MAX || m->mappings.count >= SPACE_MAX_VALUE)
		return -ENOMEM;
	struct mapping *own = vec_push(&m->mappings);
	if (!own)
		return -ENOMEM;
	*own = (struct mapping){
		.start = map->start,
		.end = map->end,
		.pgoff = map->pgoff,
		.inode = map->inode,
		.path_id = path_id,
		.dev_major = map->dev_major,
		.dev_minor = map->dev_minor,
		.flags = map->flags,
		.pid = pid,
		.gone = gone,
	};
	if (maps_is_jitdump(m->paths.at[path_id].path)) {
		uint32_t *dump = vec_push(&m->dumps);
		if (!dump)
			return -ENOMEM;
		*dump = (uint32_t)m->mappings.count;
	}
	struct event e = {
		.time = time,
		.kind = EVENT_MAP,
		.pid = pid,
		.tid = pid,
		.value = (uint32_t)m->mappings.count,
	};
	return add_event(m, &e);
}

int tally_maps_add(struct tally_maps *m, int32_t pid, uint64_t time,
		   const struct tally_mapping *map)
{
	return add_mapping(m, pid, time, map, false);
}

int tally_maps_remove(struct tally_maps *m, int32_t pid, uint64_t time, uint64_t start,
		      uint64_t end)
{
	const struct tally_mapping nothing = { .start = start, .end = end };

	return add_mapping(m, pid, time, &nothing, true);
}

int tally_maps_fork(struct tally_maps *m, int32_t pid, int32_t tid, int32_t parent_pid,
		    int32_t parent_tid, uint64_t time)
{
	struct event e = {
		.time = time,
		.kind = EVENT_FORK,
		.pid = pid,
		.tid = tid,
		.parent = { parent_pid, parent_tid },
	};

	return add_event(m, &e);
}

int tally_maps_comm(struct tally_maps *m, int32_t pid, int32_t tid, uint64_t time, const char *comm,
		    bool exec)
{
	uint32_t name = texts_add(&m->names, comm, strlen(comm));
	struct event e = {
		.time = time,
		.kind = exec ? EVENT_EXEC : EVENT_COMM,
		.pid = pid,
		.tid = tid,
		.value = name + 1,
	};

	return name == UINT32_MAX ? -ENOMEM : add_event(m, &e);
}

/*
 * Nothing ends here. The kernel sends EXIT while the thread still runs its last steps, so samples
 * with its tid follow; a leader may exit long before its process; and who takes the number next
 * says so by a FORK of its own.
 */
int tally_maps_exit(struct tally_maps *m, int32_t pid, int32_t tid, uint64_t time)
{
	return 0;
}

/* The space of a process at `time` (0: none), and when it is so. */
static space_t space_at(const struct tally_maps *m, int32_t pid, uint64_t time, struct place *p)
{
	const struct history *h = history_get(&m->processes, pid);
	size_t count = h ? history_count_until(h, time) : 0;

	p->from = count ? h->changes.at[count - 1].time : 0;
	p->until = h && count < h->changes.count ? h->changes.at[count].time - 1 : UINT64_MAX;
	return count ? h->changes.at[count - 1].value : 0;
}

static struct place look(const struct tally_maps *m, int32_t pid, uint64_t time, uint64_t address)
{
	struct place p;
	space_t space = space_at(m, pid, time, &p);

	p.block = space_look(&m->spaces, space, address);
	return p;
}

/* Where both hold and `own` has nothing: the kernel's mappings are everybody's. */
static struct place look_behind(struct place own, struct place kernel)
{
	if (own.block.first > kernel.block.first)
		kernel.block.first = own.block.first;
	if (own.block.last < kernel.block.last)
		kernel.block.last = own.block.last;
	if (own.from > kernel.from)
		kernel.from = own.from;
	if (own.until < kernel.until)
		kernel.until = own.until;
	return kernel;
}

static inline bool cached_holds(const struct cached *c, uint32_t epoch, int32_t pid, uint64_t time,
				uint64_t address)
{
	const struct place *p = &c->place;

	return address >= p->block.first && address <= p->block.last && time >= p->from &&
	       time <= p->until && c->pid == pid && c->epoch == epoch;
}

/* Fibonacci hashing: the upper bits of a product with 2^64 / golden ratio. */
static inline size_t cache_index(int32_t pid, uint64_t block, unsigned bits)
{
	return (block + ((uint64_t)(uint32_t)pid << 32)) * 0x9e3779b97f4a7c15u >> (64 - bits);
}

/* Keeps the answer in one of its two places, as large as its block is. */
static const struct cached *look_and_keep(struct tally_maps *m, int32_t pid, uint64_t time,
					  uint64_t address, struct cached *small,
					  struct cached *large)
{
	struct place p = look(m, pid, time, address);

	if (!p.block.value && pid != TALLY_MAPS_KERNEL)
		p = look_behind(p, look(m, TALLY_MAPS_KERNEL, time, address));
	bool is_large = p.block.last - p.block.first >= (1u << LARGE_BLOCK_SHIFT) - 1;
	struct cached *c = is_large ? large : small;
	*c = (struct cached){ .place = p, .pid = pid, .epoch = m->epoch };
	return c;
}

static uint32_t find_number(struct tally_maps *m, int32_t pid, uint64_t time, uint64_t address)
{
	const struct cached *c = m->recent;

	/* Often it is where the last one was, in a large mapping perhaps, of many such places. */
	if (cached_holds(c, m->epoch, pid, time, address))
		return c->place.block.value;
	struct cached *small = &m->cache[cache_index(pid, address >> BLOCK_SHIFT, CACHE_BITS)];
	struct cached *large =
		&m->large[cache_index(pid, address >> LARGE_BLOCK_SHIFT, LARGE_CACHE_BITS)];
	if (cached_holds(small, m->epoch, pid, time, address))
		c = small;
	else if (cached_holds(large, m->epoch, pid, time, address))
		c = large;
	else
		c = look_and_keep(m, pid, time, address, small, large);
	m->recent = c;
	return c->place.block.value;
}

int64_t maps_locate(struct tally_maps *m, int32_t pid, uint64_t time, uint64_t address)
{
	int r = catch_up(m);

	return r < 0 ? r : find_number(m, pid, time, address);
}

uint64_t maps_space(struct tally_maps *m, int32_t pid, uint64_t time)
{
	struct place p;

	if (catch_up(m) < 0)
		return 0;
	/* A space's nodes may change in place, but with the epoch; which is never 0. */
	return (uint64_t)m->epoch << 32 | space_at(m, pid, time, &p);
}

void maps_mapping(const struct tally_maps *m, uint32_t number, struct tally_mapping *out)
{
	const struct mapping *map = &m->mappings.at[number - 1];
	const struct path *path = &m->paths.at[map->path_id];

	*out = (struct tally_mapping){
		.start = map->start,
		.end = map->end,
		.pgoff = map->pgoff,
		.path = path->path,
		.path_id = map->path_id,
		.build_id_len = path->build_id_len,
		.build_id = path->build_id_len ? path->build_id : NULL,
		.inode = map->inode,
		.dev_major = map->dev_major,
		.dev_minor = map->dev_minor,
		.flags = map->flags,
	};
}

int32_t maps_owner(const struct tally_maps *m, uint32_t number)
{
	return m->mappings.at[number - 1].pid;
}

bool maps_is_kernel(const struct tally_maps *m, uint32_t number)
{
	return maps_owner(m, number) == TALLY_MAPS_KERNEL;
}

uint32_t maps_jitdump(const struct tally_maps *m, int32_t pid, size_t *from)
{
	while (*from < m->dumps.count) {
		uint32_t number = m->dumps.at[(*from)++];
		if (maps_owner(m, number) == pid)
			return number;
	}
	return 0;
}

/* What is left of mapping `number`, which is at `address`; the answer is kept for the next call. */
static const struct space_block *extent(struct tally_maps *m, int32_t pid, uint64_t time,
					uint64_t address, uint32_t number)
{
	struct cached *c = &m->last;

	if (c->place.block.value == number && cached_holds(c, m->epoch, pid, time, address))
		return &c->place.block;
	space_t space = space_at(m, maps_is_kernel(m, number) ? TALLY_MAPS_KERNEL : pid, time,
				 &c->place);
	c->place.block = space_extent(&m->spaces, space, address);
	c->pid = pid;
	c->epoch = m->epoch;
	return &c->place.block;
}

int tally_maps_find(struct tally_maps *m, int32_t pid, uint64_t time, uint64_t address,
		    struct tally_mapping *out)
{
	int64_t number = maps_locate(m, pid, time, address);
	if (number <= 0)
		return (int)number;
	const struct space_block *b = extent(m, pid, time, address, (uint32_t)number);
	maps_mapping(m, (uint32_t)number, out);
	/* pgoff moves along, but for the kernel's, where it is an address. */
	if (!maps_is_kernel(m, (uint32_t)number))
		out->pgoff += b->first - out->start;
	out->start = b->first;
	out->end = b->last + 1;
	return 1;
}

const char *tally_maps_name(struct tally_maps *m, int32_t tid, uint64_t time)
{
	if (catch_up(m) < 0)
		return NULL;
	const struct history *h = history_get(&m->threads, tid);
	size_t count = h ? history_count_until(h, time) : 0;
	uint32_t name = count ? h->changes.at[count - 1].value : 0;
	return name ? texts_get(&m->names, name - 1) : NULL;
}

uint32_t tally_maps_paths(const struct tally_maps *m)
{
	return (uint32_t)m->paths.count;
}
