/* SPDX-License-Identifier: MIT */
/*
 * Features taken apart. Each is a head, mostly with a count, and entries; a walk goes from entry to
 * entry. The source is perf's own documentation, perf.data-file-format.txt, and its writer where
 * that disagrees (NRCPUS has its numbers the other way round).
 */
#include <errno.h>
#include <string.h>

#include <tally/features.h>

#include "base/bytes.h"
#include "perfdata/reader-inside.h"

struct step {
	const struct tally_reader *reader;
	struct cursor c;
	struct tally_feature_walk *walk;
	struct tally_feature_item *out;
};

static uint64_t take_u64(struct cursor *c)
{
	const uint8_t *at = take_bytes(c, sizeof(uint64_t));

	return at ? load_u64(at, c->swapped) : 0;
}

/* A text that can be handed out as it stands: with its NUL. */
static const char *take_string(struct cursor *c)
{
	uint32_t len = take_u32(c);
	const char *text = (const char *)take_bytes(c, len);

	if (!text || !memchr(text, '\0', len)) {
		c->bad = true;
		return NULL;
	}
	return text;
}

/* Heads: what stands before the first entry. They leave in walk->left how many there are, or that
 * the entries tell. */

static void head_one(struct step *s)
{
	s->walk->left = 1;
}

static void head_count(struct step *s)
{
	s->walk->left = take_u32(&s->c);
}

static void head_versioned(struct step *s)
{
	s->walk->version = take_u32(&s->c);
	s->walk->left = take_u32(&s->c);
}

/* More than 32 bits of entries cannot be there. */
static void head_long(struct step *s)
{
	uint64_t count = take_u64(&s->c);

	s->walk->left = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
}

static void head_memory(struct step *s)
{
	take_u64(&s->c); /* the version, 1 */
	s->walk->size = take_u64(&s->c);
	head_long(s);
}

/* Each CPU that may be present has entries; how many there are stands in another feature. */
static void head_topology(struct step *s)
{
	struct cursor cpus = sections_cursor(s->reader->sections, TALLY_FEATURE_NRCPUS);

	s->walk->number = take_u32(&cpus);
	s->walk->inner = take_u32(&s->c);
	s->walk->left = UINT32_MAX;
}

static void head_pmu_caps(struct step *s)
{
	s->walk->number = take_u32(&s->c);
	s->walk->left = UINT32_MAX;
}

static void head_domains(struct step *s)
{
	s->walk->version = take_u32(&s->c);
	take_u32(&s->c); /* the greatest number of domains a CPU has */
	s->walk->left = UINT32_MAX;
}

/* Entries: false when there is none any more. What they leave is not looked at when the cursor went
 * bad. */

static bool take_number_u32(struct step *s)
{
	s->out->number.value = take_u32(&s->c);
	return true;
}

static bool take_number_u64(struct step *s)
{
	s->out->number.value = take_u64(&s->c);
	return true;
}

static bool take_cpu_counts(struct step *s)
{
	s->out->cpus.available = take_u32(&s->c);
	s->out->cpus.online = take_u32(&s->c);
	return true;
}

enum {
	TOPOLOGY_CORES,
	TOPOLOGY_THREADS,
	TOPOLOGY_DIES,
	TOPOLOGY_CPU,
	TOPOLOGY_CPU_DIE
};

/* The order in the file: cores, threads, CPUs, dies, dies of CPUs. */
static const uint8_t topology_order[] = { TOPOLOGY_CORES, TOPOLOGY_THREADS, TOPOLOGY_CPU,
					  TOPOLOGY_DIES, TOPOLOGY_CPU_DIE };

/* Where a stage has no more entries, the next begins; old files end after the threads or CPUs. */
static bool find_topology_stage(struct step *s)
{
	struct tally_feature_walk *w = s->walk;

	while (!w->inner && !s->c.bad) {
		if (++w->stage == ARRAY_SIZE(topology_order) || !s->c.left || !w->number)
			return false;
		uint8_t kind = topology_order[w->stage];
		bool listed = kind != TOPOLOGY_CPU && kind != TOPOLOGY_CPU_DIE;
		w->index = 0;
		w->inner = listed ? take_u32(&s->c) : w->number;
	}
	return !s->c.bad;
}

static bool take_topology(struct step *s)
{
	struct tally_item_topology *t = &s->out->topology;

	if (!find_topology_stage(s))
		return false;
	s->walk->inner--;
	*t = (struct tally_item_topology){
		.kind = topology_order[s->walk->stage], .core = -1, .socket = -1, .die = -1
	};
	if (t->kind == TOPOLOGY_CPU) {
		t->cpu = s->walk->index;
		t->core = (int32_t)take_u32(&s->c);
		t->socket = (int32_t)take_u32(&s->c);
	} else if (t->kind == TOPOLOGY_CPU_DIE) {
		t->cpu = s->walk->index;
		t->die = (int32_t)take_u32(&s->c);
	} else {
		t->cpus = take_string(&s->c);
	}
	return true;
}

static bool take_node(struct step *s)
{
	struct tally_item_node *n = &s->out->node;

	n->node = take_u32(&s->c);
	n->total_kb = take_u64(&s->c);
	n->free_kb = take_u64(&s->c);
	n->cpus = take_string(&s->c);
	return true;
}

static bool take_pmu(struct step *s)
{
	s->out->pmu.type = take_u32(&s->c);
	s->out->pmu.name = take_string(&s->c);
	return true;
}

static bool take_group(struct step *s)
{
	s->out->group.name = take_string(&s->c);
	s->out->group.leader = take_u32(&s->c);
	s->out->group.members = take_u32(&s->c);
	return true;
}

static bool take_auxtrace(struct step *s)
{
	s->out->auxtrace.offset = take_u64(&s->c);
	s->out->auxtrace.size = take_u64(&s->c);
	return true;
}

static bool take_cache(struct step *s)
{
	struct tally_item_cache *c = &s->out->cache;

	c->level = take_u32(&s->c);
	c->line_size = take_u32(&s->c);
	c->sets = take_u32(&s->c);
	c->ways = take_u32(&s->c);
	c->type = take_string(&s->c);
	c->size = take_string(&s->c);
	c->cpus = take_string(&s->c);
	return true;
}

static bool take_times(struct step *s)
{
	s->out->times.first = take_u64(&s->c);
	s->out->times.last = take_u64(&s->c);
	return true;
}

/* The bitmap: its bits, how many, and then as many words as they fill. */
static bool take_memory(struct step *s)
{
	struct tally_item_memory *m = &s->out->memory;

	m->block_size = s->walk->size;
	m->node = take_u64(&s->c);
	take_u64(&s->c); /* the number of blocks, which the bits have too */
	m->bits = take_u64(&s->c);
	m->word_count = m->bits / 64 + (m->bits % 64 != 0);
	m->words = take_bytes(&s->c,
			      m->word_count > s->c.left / 8 ? UINT64_MAX : m->word_count * 8);
	return true;
}

static bool take_bpf_program(struct step *s)
{
	struct tally_item_bpf *b = &s->out->bpf;

	b->info_len = take_u32(&s->c);
	b->data_len = take_u32(&s->c);
	b->arrays = take_u64(&s->c);
	b->info = take_bytes(&s->c, b->info_len);
	b->data = take_bytes(&s->c, b->data_len);
	return true;
}

static bool take_btf(struct step *s)
{
	struct tally_item_bpf *b = &s->out->bpf;

	b->id = take_u32(&s->c);
	b->data_len = take_u32(&s->c);
	b->data = take_bytes(&s->c, b->data_len);
	return true;
}

static bool take_compressed(struct step *s)
{
	struct tally_item_compressed *z = &s->out->compressed;

	z->version = take_u32(&s->c);
	z->kind = take_u32(&s->c);
	z->level = take_u32(&s->c);
	z->ratio = take_u32(&s->c);
	z->mmap_len = take_u32(&s->c);
	return true;
}

static bool take_cap(struct step *s)
{
	s->out->caps.name = take_string(&s->c);
	s->out->caps.value = take_string(&s->c);
	return true;
}

/* The name of a PMU stands behind its entries: so it is looked up ahead. */
static const char *pmu_behind(struct cursor c, uint32_t entries)
{
	for (uint32_t i = 0; i < entries && !c.bad; i++) {
		take_string(&c);
		take_string(&c);
	}
	return take_string(&c);
}

static bool take_pmu_cap(struct step *s)
{
	struct tally_feature_walk *w = s->walk;

	while (!w->inner && !s->c.bad) {
		if (w->text)
			take_string(&s->c);
		w->text = NULL;
		if (!w->number)
			return false;
		w->number--;
		w->inner = take_u32(&s->c);
		w->text = pmu_behind(s->c, w->inner);
		s->c.bad |= !w->text;
	}
	w->inner--;
	s->out->caps.pmu = w->text;
	return take_cap(s);
}

/* {u32 version, clockid; u64 wall, clock} */
static bool take_clocks(struct step *s)
{
	take_u32(&s->c);
	s->out->clocks.clockid = take_u32(&s->c);
	s->out->clocks.wall = take_u64(&s->c);
	s->out->clocks.clock = take_u64(&s->c);
	return true;
}

static bool take_hybrid(struct step *s)
{
	s->out->hybrid.pmu = take_string(&s->c);
	s->out->hybrid.cpus = take_string(&s->c);
	return true;
}

/* Names came with version 17 of schedstat. */
#define DOMAIN_NAMES 17

static bool take_domain(struct step *s)
{
	struct tally_feature_walk *w = s->walk;

	while (!w->inner && !s->c.bad) {
		if (!s->c.left)
			return false;
		w->number = take_u32(&s->c);
		w->inner = take_u32(&s->c);
	}
	w->inner--;
	s->out->domain.cpu = w->number;
	s->out->domain.domain = take_u32(&s->c);
	if (w->version >= DOMAIN_NAMES)
		s->out->domain.name = take_string(&s->c);
	s->out->domain.mask = take_string(&s->c);
	s->out->domain.cpus = take_string(&s->c);
	return true;
}

static bool take_machine(struct step *s)
{
	s->out->machine.machine = take_u32(&s->c);
	s->out->machine.flags = take_u32(&s->c);
	return true;
}

static const struct form {
	void (*head)(struct step *s);
	bool (*take)(struct step *s);
} forms[] = {
	[TALLY_FEATURE_NRCPUS] = { head_one, take_cpu_counts },
	[TALLY_FEATURE_TOTAL_MEM] = { head_one, take_number_u64 },
	[TALLY_FEATURE_CPU_TOPOLOGY] = { head_topology, take_topology },
	[TALLY_FEATURE_NUMA_TOPOLOGY] = { head_count, take_node },
	[TALLY_FEATURE_PMU_MAPPINGS] = { head_count, take_pmu },
	[TALLY_FEATURE_GROUP_DESC] = { head_count, take_group },
	[TALLY_FEATURE_AUXTRACE] = { head_long, take_auxtrace },
	[TALLY_FEATURE_CACHE] = { head_versioned, take_cache },
	[TALLY_FEATURE_SAMPLE_TIME] = { head_one, take_times },
	[TALLY_FEATURE_MEM_TOPOLOGY] = { head_memory, take_memory },
	[TALLY_FEATURE_CLOCKID] = { head_one, take_number_u64 },
	[TALLY_FEATURE_DIR_FORMAT] = { head_one, take_number_u64 },
	[TALLY_FEATURE_BPF_PROG_INFO] = { head_count, take_bpf_program },
	[TALLY_FEATURE_BPF_BTF] = { head_count, take_btf },
	[TALLY_FEATURE_COMPRESSED] = { head_one, take_compressed },
	[TALLY_FEATURE_CPU_PMU_CAPS] = { head_count, take_cap },
	[TALLY_FEATURE_CLOCK_DATA] = { head_one, take_clocks },
	[TALLY_FEATURE_HYBRID_TOPOLOGY] = { head_count, take_hybrid },
	[TALLY_FEATURE_PMU_CAPS] = { head_pmu_caps, take_pmu_cap },
	[TALLY_FEATURE_CPU_DOMAIN_INFO] = { head_domains, take_domain },
	[TALLY_FEATURE_E_MACHINE] = { head_one, take_machine },
	[TALLY_FEATURE_CLN_SIZE] = { head_one, take_number_u32 },
};

/* The cursor where the walk stands, behind the head. 1, 0 when there is no such feature, -errno. */
static int resume(struct step *s, const struct form *form)
{
	const void *bytes;
	uint64_t len;
	int r = sections_bytes(s->reader->sections, s->walk->feature, &bytes, &len);

	if (r <= 0)
		return r;
	s->c = (struct cursor){ .at = bytes, .left = len, .swapped = s->reader->src.swapped };
	if (s->walk->started) {
		take_bytes(&s->c, s->walk->at);
	} else {
		s->walk->started = 1;
		form->head(s);
		s->walk->at = len - s->c.left;
	}
	return s->c.bad ? -EBADMSG : 1;
}

int tally_reader_item(const struct tally_reader *reader, struct tally_feature_walk *walk,
		      struct tally_feature_item *out)
{
	const uint32_t feature = walk->feature;
	const struct form *form = feature < ARRAY_SIZE(forms) ? &forms[feature] : NULL;
	struct step s = { .reader = reader, .walk = walk, .out = out };

	if (!form || !form->take || (feature == TALLY_FEATURE_BPF_PROG_INFO && reader->src.swapped))
		return -EOPNOTSUPP;
	int r = resume(&s, form);
	if (r <= 0 || !walk->left)
		return r < 0 ? r : 0;
	const uint8_t *begin = s.c.at;
	*out = (struct tally_feature_item){ .feature = feature };
	bool found = form->take(&s);
	if (s.c.bad)
		return -EBADMSG;
	walk->left = found ? walk->left - 1 : 0;
	walk->at += (uint64_t)(s.c.at - begin);
	out->index = walk->index++;
	return found;
}
