/* SPDX-License-Identifier: MIT */
/*
 * Names of the generic events: hardware and software ones stand in a list, cache events are made of
 * a cache, an operation and a result. The names are perf(1)'s, as perf-list(1) prints them and its
 * -e takes them.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <tally/event.h>

#include "base/bytes.h"
#include "event/table.h"

struct generic {
	const char *name, *alias, *description;
	uint32_t config;
};

/* Both lists by name. */
static const struct generic hardware[] = {
	{ "branch-instructions", "branches", "branch instructions retired",
	  TALLY_HW_BRANCH_INSTRUCTIONS },
	{ "branch-misses", NULL, "branch instructions that were mispredicted",
	  TALLY_HW_BRANCH_MISSES },
	{ "bus-cycles", NULL, "cycles of the bus, or of a clock of fixed rate",
	  TALLY_HW_BUS_CYCLES },
	{ "cache-misses", NULL, "accesses that missed the last level cache",
	  TALLY_HW_CACHE_MISSES },
	{ "cache-references", NULL, "accesses to the last level cache", TALLY_HW_CACHE_REFERENCES },
	{ "cpu-cycles", "cycles", "cycles of the core; their rate follows its frequency",
	  TALLY_HW_CPU_CYCLES },
	{ "instructions", NULL, "instructions retired", TALLY_HW_INSTRUCTIONS },
	{ "ref-cycles", NULL, "cycles at a fixed rate, whatever the frequency",
	  TALLY_HW_REF_CPU_CYCLES },
	{ "stalled-cycles-backend", "idle-cycles-backend",
	  "cycles in which nothing retired for want of data or units",
	  TALLY_HW_STALLED_CYCLES_BACKEND },
	{ "stalled-cycles-frontend", "idle-cycles-frontend",
	  "cycles in which no instruction was issued for want of decoded ones",
	  TALLY_HW_STALLED_CYCLES_FRONTEND },
};

static const struct generic software[] = {
	{ "alignment-faults", NULL, "unaligned accesses that the kernel mended",
	  TALLY_SW_ALIGNMENT_FAULTS },
	{ "bpf-output", NULL, "carries what BPF programs write", TALLY_SW_BPF_OUTPUT },
	{ "cgroup-switches", NULL, "context switches to a task of another cgroup",
	  TALLY_SW_CGROUP_SWITCHES },
	{ "context-switches", "cs", "switches from one task to another",
	  TALLY_SW_CONTEXT_SWITCHES },
	{ "cpu-clock", NULL, "time, by a timer of each CPU", TALLY_SW_CPU_CLOCK },
	{ "cpu-migrations", "migrations", "moves of a task to another CPU",
	  TALLY_SW_CPU_MIGRATIONS },
	{ "dummy", NULL, "counts nothing; carries records of maps, names and forks",
	  TALLY_SW_DUMMY },
	{ "emulation-faults", NULL, "instructions that the kernel emulated",
	  TALLY_SW_EMULATION_FAULTS },
	{ "major-faults", NULL, "page faults that had to read from a disk",
	  TALLY_SW_PAGE_FAULTS_MAJ },
	{ "minor-faults", NULL, "page faults that needed no disk", TALLY_SW_PAGE_FAULTS_MIN },
	{ "page-faults", "faults", "page faults", TALLY_SW_PAGE_FAULTS },
	{ "task-clock", NULL, "time that the task ran on a CPU", TALLY_SW_TASK_CLOCK },
};

/* Cache events: config is cache | operation << 8 | result << 16, numbered as in the kernel's ABI. */
enum cache_number {
	L1D,
	L1I,
	LL,
	DTLB,
	ITLB,
	BRANCH,
	NODE,
};

enum operation {
	LOAD,
	STORE,
	PREFETCH,
	OPERATIONS,
};

enum result {
	ACCESS,
	MISS,
	RESULTS,
};

#define CAN(operation)     (1u << (operation))
#define CAN_ALL            (CAN(LOAD) | CAN(STORE) | CAN(PREFETCH))
#define SPELLINGS          4
#define CONFIG(c, op, res) ((uint64_t)(c) | (uint64_t)(op) << 8 | (uint64_t)(res) << 16)
#define CONFIG_CACHE(cfg)  ((cfg)&0xff)
#define CONFIG_OP(cfg)     ((cfg) >> 8 & 0xff)
#define CONFIG_RESULT(cfg) ((cfg) >> 16)

struct cache {
	const char *names[SPELLINGS]; /* the first is the one to print */
	const char *what;
	unsigned can;
	const char *cannot; /* why it has not the others */
};

/* What each can is what perf(1) takes. */
static const struct cache caches[] = {
	[L1D] = { { "L1-dcache", "l1-d", "l1d", "L1-data" }, "level 1 data cache", CAN_ALL, NULL },
	[L1I] = { { "L1-icache", "l1-i", "l1i", "L1-instruction" },
		  "level 1 instruction cache",
		  CAN(LOAD) | CAN(PREFETCH),
		  "an instruction cache is not written, it has loads and prefetches" },
	[LL] = { { "LLC", "L2" }, "last level cache", CAN_ALL, NULL },
	[DTLB] = { { "dTLB", "d-tlb", "Data-TLB" }, "data TLB", CAN_ALL, NULL },
	[ITLB] = { { "iTLB", "i-tlb", "Instruction-TLB" },
		   "instruction TLB",
		   CAN(LOAD),
		   "an instruction TLB is only looked up, it has loads" },
	[BRANCH] = { { "branch", "bpu", "btb", "bpc" },
		     "branch predictor",
		     CAN(LOAD),
		     "a branch predictor is only looked up, it has loads" },
	[NODE] = { { "node" }, "memory of the NUMA node", CAN_ALL, NULL },
};

static const char *const operations[OPERATIONS][SPELLINGS] = {
	{ "load", "loads", "read" },
	{ "store", "stores", "write" },
	{ "prefetch", "prefetches", "speculative-read", "speculative-load" },
};

static const char *const results[RESULTS][SPELLINGS] = {
	{ "refs", "Reference", "ops", "access" },
	{ "misses", "miss" },
};

/* The order in which tables are printed: by name. */
static const uint8_t caches_by_name[] = { L1D, L1I, LL, BRANCH, DTLB, ITLB, NODE };
static const uint8_t operations_by_name[] = { LOAD, PREFETCH, STORE };

/* How much of `text` is one of the spellings, up to a '-' or the end; 0: none. */
static size_t match(const char *const *spellings, const char *text, size_t len)
{
	size_t best = 0;

	for (size_t i = 0; i < SPELLINGS && spellings[i]; i++) {
		size_t n = strlen(spellings[i]);
		if (n > best && n <= len && !memcmp(text, spellings[i], n) &&
		    (n == len || text[n] == '-'))
			best = n;
	}
	return best;
}

/* Takes one word of a list from the text behind a '-'. Answers its index, or -1. */
static int take(const char *const (*words)[SPELLINGS], int count, const char **text, size_t *len)
{
	for (int i = 0; *len > 1 && **text == '-' && i < count; i++) {
		size_t n = match(words[i], *text + 1, *len - 1);
		if (n) {
			*text += n + 1;
			*len -= n + 1;
			return i;
		}
	}
	return -1;
}

/* Operation and result may come in either order, and both may be left out. */
static int find_cache(const char *name, size_t len, uint64_t *config, const char **why)
{
	size_t c = 0, n = 0;

	while (c < ARRAY_SIZE(caches) && !(n = match(caches[c].names, name, len)))
		c++;
	if (!n)
		return 0;
	name += n;
	len -= n;
	int result = take(results, RESULTS, &name, &len);
	int op = take(operations, OPERATIONS, &name, &len);
	if (result < 0)
		result = take(results, RESULTS, &name, &len);
	if (len)
		return 0;
	op = op < 0 ? LOAD : op;
	if (!(caches[c].can & CAN((unsigned)op))) {
		*why = caches[c].cannot;
		return -EINVAL;
	}
	*config = CONFIG(c, op, result < 0 ? ACCESS : result);
	return 1;
}

static const struct generic *find_generic(const struct generic *list, size_t count,
					  const char *name, size_t len)
{
	for (size_t i = 0; i < count; i++) {
		const char *names[] = { list[i].name, list[i].alias };
		for (int k = 0; k < 2 && names[k]; k++)
			if (strlen(names[k]) == len && !memcmp(names[k], name, len))
				return &list[i];
	}
	return NULL;
}

int table_find(const char *name, size_t len, uint32_t *type, uint64_t *config, const char **why)
{
	const struct generic *g = find_generic(hardware, ARRAY_SIZE(hardware), name, len);

	*type = TALLY_TYPE_HARDWARE;
	if (!g) {
		g = find_generic(software, ARRAY_SIZE(software), name, len);
		*type = TALLY_TYPE_SOFTWARE;
	}
	if (g) {
		*config = g->config;
		return 1;
	}
	*type = TALLY_TYPE_HW_CACHE;
	return find_cache(name, len, config, why);
}

/* perf's form: "LLC-loads", "LLC-load-misses". */
static void cache_name(char *out, size_t size, uint64_t config)
{
	const char *cache = caches[CONFIG_CACHE(config)].names[0];
	const char *const *op = operations[CONFIG_OP(config)];

	if (CONFIG_RESULT(config) == MISS)
		snprintf(out, size, "%s-%s-misses", cache, op[0]);
	else
		snprintf(out, size, "%s-%s", cache, op[1]);
}

static bool is_cache(uint64_t config)
{
	return CONFIG_CACHE(config) < ARRAY_SIZE(caches) && CONFIG_OP(config) < OPERATIONS &&
	       CONFIG_RESULT(config) < RESULTS;
}

bool table_name(char *out, size_t size, uint32_t type, uint64_t config)
{
	const struct generic *list = type == TALLY_TYPE_HARDWARE ? hardware : software;
	size_t count = type == TALLY_TYPE_HARDWARE ? ARRAY_SIZE(hardware) : ARRAY_SIZE(software);

	if (type == TALLY_TYPE_HW_CACHE && is_cache(config)) {
		cache_name(out, size, config);
		return true;
	}
	if (type != TALLY_TYPE_HARDWARE && type != TALLY_TYPE_SOFTWARE)
		return false;
	for (size_t i = 0; i < count; i++)
		if (list[i].config == config) {
			snprintf(out, size, "%s", list[i].name);
			return true;
		}
	return false;
}

static void fill_generic(struct table_entry *out, const struct generic *g, uint32_t kind,
			 uint32_t type)
{
	out->name = g->name;
	out->alias = g->alias;
	out->description = g->description;
	out->kind = kind;
	out->type = type;
	out->config = g->config;
}

static void fill_cache(struct table_entry *out, uint64_t config)
{
	const struct cache *c = &caches[CONFIG_CACHE(config)];
	size_t half = sizeof(out->texts) / 2;

	cache_name(out->texts, half, config);
	snprintf(out->texts + half, half, "%s: %s%s", c->what, operations[CONFIG_OP(config)][1],
		 CONFIG_RESULT(config) == MISS ? " that missed" : "");
	out->name = out->texts;
	out->alias = NULL;
	out->description = out->texts + half;
	out->kind = TALLY_EVENT_CACHE;
	out->type = TALLY_TYPE_HW_CACHE;
	out->config = config;
}

/* "-load-misses" sorts before "-loads". */
static bool cache_at(size_t i, struct table_entry *out)
{
	for (size_t c = 0; c < ARRAY_SIZE(caches_by_name); c++)
		for (size_t k = 0; k < ARRAY_SIZE(operations_by_name); k++) {
			unsigned cache = caches_by_name[c], op = operations_by_name[k];
			if (!(caches[cache].can & CAN(op)))
				continue;
			if (i < RESULTS) {
				fill_cache(out, CONFIG(cache, op, i ? ACCESS : MISS));
				return true;
			}
			i -= RESULTS;
		}
	return false;
}

bool table_at(size_t i, struct table_entry *out)
{
	if (i < ARRAY_SIZE(hardware)) {
		fill_generic(out, &hardware[i], TALLY_EVENT_HARDWARE, TALLY_TYPE_HARDWARE);
		return true;
	}
	i -= ARRAY_SIZE(hardware);
	if (i < ARRAY_SIZE(software)) {
		fill_generic(out, &software[i], TALLY_EVENT_SOFTWARE, TALLY_TYPE_SOFTWARE);
		return true;
	}
	return cache_at(i - ARRAY_SIZE(software), out);
}
