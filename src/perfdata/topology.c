/* SPDX-License-Identifier: MIT */
/*
 * How a machine is built, as perf's header.c writes it. Counts stand before what is counted, and are
 * put in their place when it is known.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tally/reader.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/proc.h"
#include "perfdata/feature.h"
#include "perfdata/topology.h"

#define CPU_FOLDER    "/sys/devices/system/cpu"
#define NODE_FOLDER   "/sys/devices/system/node"
#define MEMORY_FOLDER "/sys/devices/system/memory"
#define PMU_FOLDER    "/sys/bus/event_source/devices"

#define CACHE_VERSION    1
#define MEMORY_VERSION   1
#define CACHES_OF_A_CPU  10
#define MEMINFO_LIMIT    65536
#define MEMORY_BLOCK_MAX (1 << 24)

/* The first line of a file below `folder`; false when there is none, or it is empty. */
TALLY_PRINTF(4, 5)
static bool read_line(char *out, size_t size, const char *root, const char *fmt, ...)
{
	char path[256];
	va_list args;

	va_start(args, fmt);
	int n = vsnprintf(path, sizeof(path), fmt, args);
	va_end(args);
	return n > 0 && n < (int)sizeof(path) && proc_read_line(out, size, root, path) == 0 && *out;
}

static uint32_t begin_count(struct buf *b)
{
	buf_u32(b, 0);
	return (uint32_t)b->len - 4;
}

static void count_up(struct buf *b, uint32_t at)
{
	if (!b->failed)
		store_u32(b->at + at, load_u32(b->at + at, false) + 1, false);
}

static void put_text(struct buf *b, const char *text)
{
	feature_put_text(b, text, false);
}

/* Hands it over, unless there is nothing in it, and empties it. */
static int hand_over(struct tally_writer *w, uint32_t feature, struct buf *b, bool any)
{
	int r = b->failed ? -ENOMEM : any ? tally_writer_feature(w, feature, b->at, b->len) : 0;

	buf_done(b);
	*b = (struct buf){ 0 };
	return r;
}

/* ---- CPUs ---- */

/* The different lists that a file of the CPUs' topology has. */
static bool put_lists(struct buf *b, const char *root, uint32_t cpus, const char *file,
		      const char *older)
{
	struct strings seen = { 0 };
	uint32_t count = begin_count(b);
	char list[4096];

	for (uint32_t i = 0; i < cpus; i++) {
		size_t before = seen.count;
		if (!read_line(list, sizeof(list), root, CPU_FOLDER "/cpu%" PRIu32 "/topology/%s",
			       i, file) &&
		    (!older || !read_line(list, sizeof(list), root,
					  CPU_FOLDER "/cpu%" PRIu32 "/topology/%s", i, older)))
			continue;
		if (strings_add(&seen, list) == UINT32_MAX)
			b->failed = true;
		if (seen.count == before)
			continue;
		put_text(b, list);
		count_up(b, count);
	}
	bool any = seen.count > 0;
	strings_done(&seen);
	return any;
}

/* -1 where there is none, as perf has it for CPUs that are offline. */
static void put_number(struct buf *b, const char *root, uint32_t cpu, const char *file)
{
	char path[128];
	int64_t value = -1;

	snprintf(path, sizeof(path), CPU_FOLDER "/cpu%" PRIu32 "/topology/%s", cpu, file);
	(void)proc_read_i64(&value, root, path);
	buf_u32(b, (uint32_t)value);
}

static int put_cpus(struct tally_writer *w, const char *root, uint32_t cpus)
{
	struct buf b = { 0 };
	char line[64];
	bool any = put_lists(&b, root, cpus, "package_cpus_list", "core_siblings_list");

	put_lists(&b, root, cpus, "core_cpus_list", "thread_siblings_list");
	for (uint32_t i = 0; i < cpus; i++) {
		put_number(&b, root, i, "core_id");
		put_number(&b, root, i, "physical_package_id");
	}
	/* Where there are dies: x86 and s390x. */
	if (read_line(line, sizeof(line), root, CPU_FOLDER "/cpu0/topology/die_cpus_list")) {
		put_lists(&b, root, cpus, "die_cpus_list", NULL);
		for (uint32_t i = 0; i < cpus; i++)
			put_number(&b, root, i, "die_id");
	}
	return hand_over(w, TALLY_FEATURE_CPU_TOPOLOGY, &b, any);
}

/* ---- caches ---- */

struct cache {
	uint32_t numbers[4]; /* level, line size, sets, ways */
	char type[32], size[32], map[256];
};

/* Who shares a cache all tell of it; the first of them is asked. */
static bool is_told_by(uint32_t cpu, const char *map)
{
	char *end;
	unsigned long first = strtoul(map, &end, 10);

	return end == map || first == cpu;
}

/* false: there is none, or another CPU tells of it. */
static bool read_cache(struct cache *c, const char *root, uint32_t cpu, uint32_t index)
{
	static const char *const numbers[] = { "level", "coherency_line_size", "number_of_sets",
					       "ways_of_associativity" };
	char folder[64], path[128];

	*c = (struct cache){ 0 };
	snprintf(folder, sizeof(folder), CPU_FOLDER "/cpu%" PRIu32 "/cache/index%" PRIu32, cpu,
		 index);
	if (!read_line(c->map, sizeof(c->map), root, "%s/shared_cpu_list", folder) ||
	    !is_told_by(cpu, c->map))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		int64_t value = 0;
		snprintf(path, sizeof(path), "%s/%s", folder, numbers[i]);
		if (proc_read_i64(&value, root, path) < 0 && i == 0)
			return false;
		c->numbers[i] = (uint32_t)value;
	}
	return read_line(c->type, sizeof(c->type), root, "%s/type", folder) &&
	       read_line(c->size, sizeof(c->size), root, "%s/size", folder);
}

static void put_cache(struct buf *b, const struct cache *c)
{
	for (size_t i = 0; i < ARRAY_SIZE(c->numbers); i++)
		buf_u32(b, c->numbers[i]);
	put_text(b, c->type);
	put_text(b, c->size);
	put_text(b, c->map);
}

/* The caches that a CPU tells of, each among those of its level. How many. */
static uint32_t add_caches(struct buf *levels, const char *root, uint32_t cpu)
{
	struct cache cache;
	uint32_t count = 0;

	for (uint32_t i = 0; i < CACHES_OF_A_CPU; i++) {
		if (!read_cache(&cache, root, cpu, i) || !cache.numbers[0] ||
		    cache.numbers[0] >= CACHES_OF_A_CPU)
			continue;
		put_cache(&levels[cache.numbers[0]], &cache);
		count++;
	}
	return count;
}

static int put_caches(struct tally_writer *w, const char *root, uint32_t cpus)
{
	struct buf b = { 0 }, levels[CACHES_OF_A_CPU] = { 0 };
	uint32_t count = 0;

	for (uint32_t cpu = 0; cpu < cpus; cpu++)
		count += add_caches(levels, root, cpu);
	buf_u32(&b, CACHE_VERSION);
	buf_u32(&b, count);
	for (size_t i = 0; i < ARRAY_SIZE(levels); i++) {
		buf_add(&b, levels[i].at, levels[i].len);
		b.failed |= levels[i].failed;
		buf_done(&levels[i]);
	}
	return hand_over(w, TALLY_FEATURE_CACHE, &b, count > 0);
}

/* ---- memory ---- */

static uint64_t meminfo(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

static bool put_node(struct buf *b, const char *root, const char *name, uint64_t node)
{
	struct buf text = { 0 };
	char path[128], cpus[4096] = "";

	snprintf(path, sizeof(path), NODE_FOLDER "/%s/meminfo", name);
	bool ok = proc_read(&text, root, path, MEMINFO_LIMIT) == 0 && buf_text(&text);
	if (ok) {
		(void)read_line(cpus, sizeof(cpus), root, NODE_FOLDER "/%s/cpulist", name);
		buf_u32(b, (uint32_t)node);
		buf_u64(b, meminfo(text.at, "MemTotal:"));
		buf_u64(b, meminfo(text.at, "MemFree:"));
		put_text(b, cpus);
	}
	buf_done(&text);
	return ok;
}

/* "node3" is number 3 of "node"; false: another name. */
static bool number_of(const char *name, const char *prefix, uint64_t *out)
{
	size_t len = strlen(prefix);

	return !strncmp(name, prefix, len) && parse_u64(name + len, out);
}

static int put_nodes(struct tally_writer *w, const char *root)
{
	struct proc_names names = { 0 };
	struct buf b = { 0 };
	uint32_t count = begin_count(&b);
	uint64_t node;
	bool any = false;

	(void)proc_list_names(&names, root, NODE_FOLDER);
	for (size_t i = 0; i < names.count; i++)
		if (number_of(names.at[i], "node", &node) &&
		    put_node(&b, root, names.at[i], node)) {
			count_up(&b, count);
			any = true;
		}
	proc_names_done(&names);
	return hand_over(w, TALLY_FEATURE_NUMA_TOPOLOGY, &b, any);
}

/* Which blocks of memory a node has, as a set of bits. */
static bool put_blocks(struct buf *b, const char *root, const char *name, uint64_t node)
{
	struct proc_names names = { 0 };
	char path[128];
	uint64_t block, size = 0;

	snprintf(path, sizeof(path), NODE_FOLDER "/%s", name);
	(void)proc_list_names(&names, root, path);
	for (size_t i = 0; i < names.count; i++)
		if (number_of(names.at[i], "memory", &block) && block < MEMORY_BLOCK_MAX &&
		    block >= size)
			size = block + 1;
	if (size) {
		size_t bits = b->len + 3 * sizeof(uint64_t);
		buf_u64(b, node);
		buf_u64(b, size);
		buf_u64(b, size);
		buf_zero(b, (size_t)(size + 63) / 64 * sizeof(uint64_t));
		for (size_t i = 0; i < names.count && !b->failed; i++) {
			if (!number_of(names.at[i], "memory", &block) || block >= size)
				continue;
			char *word = b->at + bits + block / 64 * sizeof(uint64_t);
			store_u64(word, load_u64(word, false) | UINT64_C(1) << block % 64, false);
		}
	}
	proc_names_done(&names);
	return size;
}

static int put_memory(struct tally_writer *w, const char *root)
{
	struct proc_names names = { 0 };
	struct buf b = { 0 };
	uint64_t block_size, node, count = 0;
	char line[64];

	if (!read_line(line, sizeof(line), root, MEMORY_FOLDER "/block_size_bytes"))
		return 0;
	block_size = strtoull(line, NULL, 16);
	buf_u64(&b, MEMORY_VERSION);
	buf_u64(&b, block_size);
	buf_u64(&b, 0);
	(void)proc_list_names(&names, root, NODE_FOLDER);
	for (size_t i = 0; i < names.count; i++)
		if (number_of(names.at[i], "node", &node))
			count += put_blocks(&b, root, names.at[i], node);
	proc_names_done(&names);
	if (!b.failed)
		store_u64(b.at + 2 * sizeof(uint64_t), count, false);
	return hand_over(w, TALLY_FEATURE_MEM_TOPOLOGY, &b, count);
}

/* ---- PMUs ---- */

static int put_pmus(struct tally_writer *w, const char *root, const struct proc_names *pmus)
{
	struct buf b = { 0 };
	uint32_t count = begin_count(&b);

	for (size_t i = 0; i < pmus->count; i++) {
		char line[64];
		uint64_t type;
		if (!read_line(line, sizeof(line), root, PMU_FOLDER "/%s/type", pmus->at[i]) ||
		    !parse_u64(line, &type))
			continue;
		buf_u32(&b, (uint32_t)type);
		put_text(&b, pmus->at[i]);
		count_up(&b, count);
	}
	return hand_over(w, TALLY_FEATURE_PMU_MAPPINGS, &b, pmus->count > 0);
}

/* Number, names and values of what a PMU says it can; false: nothing. */
static bool put_caps(struct buf *b, const char *root, const char *pmu)
{
	struct proc_names caps = { 0 };
	char path[256], value[256];
	size_t start = b->len;
	uint32_t count = begin_count(b);

	if (snprintf(path, sizeof(path), PMU_FOLDER "/%s/caps", pmu) < (int)sizeof(path))
		(void)proc_list_names(&caps, root, path);
	for (size_t i = 0; i < caps.count; i++) {
		if (!read_line(value, sizeof(value), root, "%s/%s", path, caps.at[i]))
			continue;
		put_text(b, caps.at[i]);
		put_text(b, value);
		count_up(b, count);
	}
	bool any = caps.count && !b->failed && b->len > start + 4;
	proc_names_done(&caps);
	if (!any && !b->failed)
		b->len = start;
	return any;
}

/* The CPU's own PMU where there is one alone; the others, with their names. */
static int put_all_caps(struct tally_writer *w, const char *root, const struct proc_names *pmus)
{
	struct buf cpu = { 0 }, others = { 0 };
	uint32_t count = begin_count(&others);
	bool any_cpu = false, any = false;

	for (size_t i = 0; i < pmus->count; i++) {
		if (!strcmp(pmus->at[i], "cpu")) {
			any_cpu = put_caps(&cpu, root, "cpu");
		} else if (put_caps(&others, root, pmus->at[i])) {
			put_text(&others, pmus->at[i]);
			count_up(&others, count);
			any = true;
		}
	}
	int r = hand_over(w, TALLY_FEATURE_CPU_PMU_CAPS, &cpu, any_cpu);
	int other = hand_over(w, TALLY_FEATURE_PMU_CAPS, &others, any);
	return r < 0 ? r : other;
}

/* Machines with CPUs of several kinds have a PMU for each: cpu_core, cpu_atom. */
static int put_hybrid(struct tally_writer *w, const char *root, const struct proc_names *pmus)
{
	struct buf b = { 0 };
	uint32_t count = begin_count(&b);
	char cpus[4096];
	bool any = false;

	for (size_t i = 0; i < pmus->count; i++) {
		if (strncmp(pmus->at[i], "cpu_", 4) != 0 ||
		    !read_line(cpus, sizeof(cpus), root, PMU_FOLDER "/%s/cpus", pmus->at[i]))
			continue;
		put_text(&b, pmus->at[i]);
		put_text(&b, cpus);
		count_up(&b, count);
		any = true;
	}
	return hand_over(w, TALLY_FEATURE_HYBRID_TOPOLOGY, &b, any);
}

int topology_describe(struct tally_writer *writer, const char *root, uint32_t cpus)
{
	struct proc_names pmus = { 0 };
	int r = put_cpus(writer, root, cpus);

	if (r == 0)
		r = put_nodes(writer, root);
	if (r == 0)
		r = put_caches(writer, root, cpus);
	if (r == 0)
		r = put_memory(writer, root);
	(void)proc_list_names(&pmus, root, PMU_FOLDER);
	if (r == 0)
		r = put_pmus(writer, root, &pmus);
	if (r == 0)
		r = put_all_caps(writer, root, &pmus);
	if (r == 0)
		r = put_hybrid(writer, root, &pmus);
	proc_names_done(&pmus);
	return r;
}
