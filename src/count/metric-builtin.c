/* SPDX-License-Identifier: MIT */
/*
 * The built-in metrics. Those of the generic events are perf stat's shadow metrics and those of its
 * table arch/common/common/metrics.json, whose names they have. Top-down level 1 tells where the
 * slots went in which the pipeline could have issued an operation; the events for it differ:
 *
 *   Intel   PERF_METRICS since Ice Lake: the kernel gives each share as slots (arch/x86/events/intel/
 *           core.c, icl_get_metrics_event_value), so the four add up to slots.
 *           perf's tools/perf/Documentation/topdown.txt
 *   AMD     Zen 4: 6, Zen 5: 8 dispatch slots in a cycle; pmu-events/arch/x86/amdzen4 and amdzen5,
 *           pipeline.json. As raw events, since no sysfs file names them: rc1 operations retired
 *           (PMCx0C1), r7aa dispatched (PMCx0AA), r1000001a0 r100001ea0 r1000060a0 slots that were
 *           empty for want of operations, for stalls behind dispatch, for the other thread
 *           (PMCx1A0, unit masks 01, 1E, 60).
 *   Arm     cores with PMMIR_EL1.SLOTS; pmu-events/arch/arm64/sbsa.json. Neoverse V1 and early N2
 *           count some stalled slots too much (Arm's errata notices).
 */
#include <strings.h>

#include "base/bytes.h"
#include "count/metric.h"

#define RAN METRIC_RAN

#define PERCENT(name, alias, formula, beside, words, description)                              \
	{                                                                                      \
		name, alias, formula, 100, "%", beside, words, description, NULL, NEED_NOTHING \
	}
#define RATIO(name, alias, formula, beside, words, description)                             \
	{                                                                                   \
		name, alias, formula, 0, "", beside, words, description, NULL, NEED_NOTHING \
	}
#define CACHE(name, cache, kind, words, what)                                             \
	PERCENT(name, NULL, cache "-load-misses / " cache "-loads", cache "-load-misses", \
		"of all " words, what)
#define TOPDOWN(name, formula, description, need)                                         \
	{                                                                                 \
		name, NULL, formula, 100, "%", NULL, NULL, description, "TopdownL1", need \
	}

#define EMPTY_FE   "slots in which the frontend supplied nothing"
#define EMPTY_BE   "slots in which the backend took nothing"
#define WASTED     "slots of operations that did not retire"
#define USED       "slots of operations that retired"
#define OTHER      "slots that the core's other thread had"
#define ARM_SLOTS  "(#slots * cpu_cycles)"
#define ARM_ISSUED "(1 - stall_slot / " ARM_SLOTS ")"

static const struct metric_builtin builtins[] = {
	RATIO("insn_per_cycle", "IPC", "instructions / cycles", "instructions", "insn per cycle",
	      "instructions retired in a cycle"),
	RATIO("cycles_per_insn", "CPI", "cycles / instructions", NULL, "cycles per insn",
	      "cycles for an instruction"),
	RATIO("stalled_cycles_per_instruction", NULL,
	      "max(stalled-cycles-frontend, stalled-cycles-backend) / instructions", NULL,
	      "stalled cycles per insn", "cycles in which one end of the pipeline stood still"),
	PERCENT("frontend_cycles_idle", NULL, "stalled-cycles-frontend / cycles",
		"stalled-cycles-frontend", "frontend cycles idle",
		"cycles in which no instruction was issued for want of decoded ones"),
	PERCENT("backend_cycles_idle", NULL, "stalled-cycles-backend / cycles",
		"stalled-cycles-backend", "backend cycles idle",
		"cycles in which nothing retired for want of data or units"),
	PERCENT("branch_miss_rate", NULL, "branch-misses / branches", "branch-misses",
		"of all branches", "branches that were mispredicted"),
	PERCENT("cache_miss_rate", NULL, "cache-misses / cache-references", "cache-misses",
		"of all cache refs", "accesses to the last level cache that missed it"),
	PERCENT("l1d_miss_rate", NULL, "L1-dcache-load-misses / L1-dcache-loads",
		"L1-dcache-load-misses", "of all L1-dcache accesses",
		"loads that missed the level 1 data cache"),
	PERCENT("l1i_miss_rate", NULL, "L1-icache-load-misses / L1-icache-loads",
		"L1-icache-load-misses", "of all L1-icache accesses",
		"fetches that missed the level 1 instruction cache"),
	PERCENT("llc_miss_rate", NULL, "LLC-load-misses / LLC-loads", "LLC-load-misses",
		"of all LL-cache accesses", "loads that missed the last level cache"),
	PERCENT("dtlb_miss_rate", NULL, "dTLB-load-misses / dTLB-loads", "dTLB-load-misses",
		"of all dTLB cache accesses", "loads whose page the data TLB did not know"),
	PERCENT("itlb_miss_rate", NULL, "iTLB-load-misses / iTLB-loads", "iTLB-load-misses",
		"of all iTLB cache accesses",
		"fetches whose page the instruction TLB did not know"),
	RATIO("branch_mpki", NULL, "1000 * branch-misses / instructions", NULL,
	      "branch misses per 1000 insn", "mispredicted branches in 1000 instructions"),
	RATIO("cache_mpki", NULL, "1000 * cache-misses / instructions", NULL,
	      "cache misses per 1000 insn", "misses of the last level cache in 1000 instructions"),
	RATIO("faults_per_kinsn", NULL, "1000 * page-faults / instructions", NULL,
	      "page faults per 1000 insn", "page faults in 1000 instructions"),
	/* Cycles of one mode over the time of all would be no frequency. */
	{ "cycles_frequency", "GHz", "cycles:ukh / " RAN, 0, "GHz", "cycles", "GHz",
	  "the rate at which the cores ran", NULL, NEED_NOTHING },
	{ "CPUs_utilized", NULL, RAN " / (duration_time * 1e9)", 0, "CPUs", "task-clock",
	  "CPUs utilized", "CPUs that were busy on average", NULL, NEED_NOTHING },
	{ "cs_per_second", NULL, "1e9 * context-switches / " RAN, 0, "/sec", "context-switches",
	  NULL, "context switches in a second of running", NULL, NEED_NOTHING },
	{ "migrations_per_second", NULL, "1e9 * cpu-migrations / " RAN, 0, "/sec", "cpu-migrations",
	  NULL, "moves to another CPU in a second of running", NULL, NEED_NOTHING },
	{ "page_faults_per_second", NULL, "1e9 * page-faults / " RAN, 0, "/sec", "page-faults",
	  NULL, "page faults in a second of running", NULL, NEED_NOTHING },

	TOPDOWN("retiring", "topdown\\-retiring / slots", USED, NEED_INTEL_SLOTS),
	TOPDOWN("bad_speculation", "topdown\\-bad\\-spec / slots", WASTED, NEED_INTEL_SLOTS),
	TOPDOWN("frontend_bound", "topdown\\-fe\\-bound / slots", EMPTY_FE, NEED_INTEL_SLOTS),
	TOPDOWN("backend_bound", "topdown\\-be\\-bound / slots", EMPTY_BE, NEED_INTEL_SLOTS),

	TOPDOWN("retiring", "rc1 / (6 * cycles)", USED, NEED_ZEN4),
	TOPDOWN("bad_speculation", "(r7aa - rc1) / (6 * cycles)", WASTED, NEED_ZEN4),
	TOPDOWN("frontend_bound", "r1000001a0 / (6 * cycles)", EMPTY_FE, NEED_ZEN4),
	TOPDOWN("backend_bound", "r100001ea0 / (6 * cycles)", EMPTY_BE, NEED_ZEN4),
	TOPDOWN("smt_contention", "r1000060a0 / (6 * cycles)", OTHER, NEED_ZEN4),

	TOPDOWN("retiring", "rc1 / (8 * cycles)", USED, NEED_ZEN5),
	TOPDOWN("bad_speculation", "(r7aa - rc1) / (8 * cycles)", WASTED, NEED_ZEN5),
	TOPDOWN("frontend_bound", "r1000001a0 / (8 * cycles)", EMPTY_FE, NEED_ZEN5),
	TOPDOWN("backend_bound", "r100001ea0 / (8 * cycles)", EMPTY_BE, NEED_ZEN5),
	TOPDOWN("smt_contention", "r1000060a0 / (8 * cycles)", OTHER, NEED_ZEN5),

	TOPDOWN("retiring", "op_retired / op_spec * " ARM_ISSUED, USED, NEED_ARM_SLOTS),
	TOPDOWN("bad_speculation", "(1 - op_retired / op_spec) * " ARM_ISSUED, WASTED,
		NEED_ARM_SLOTS),
	TOPDOWN("frontend_bound", "stall_slot_frontend / " ARM_SLOTS, EMPTY_FE, NEED_ARM_SLOTS),
	TOPDOWN("backend_bound", "stall_slot_backend / " ARM_SLOTS, EMPTY_BE, NEED_ARM_SLOTS),
};

/* Models of AMD's families as the kernel sorts them (arch/x86/kernel/cpu/amd.c). */
static const struct models {
	enum metric_need need;
	unsigned family, first, last;
} models[] = {
	{ NEED_ZEN4, 0x19, 0x10, 0x1f }, { NEED_ZEN4, 0x19, 0x60, 0xaf },
	{ NEED_ZEN5, 0x1a, 0x00, 0x2f }, { NEED_ZEN5, 0x1a, 0x40, 0x4f },
	{ NEED_ZEN5, 0x1a, 0x60, 0x7f },
};

static bool is_zen(enum metric_need need, const char *root)
{
	unsigned family, model;

	if (!metric_cpu_model("AuthenticAMD", root, &family, &model))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(models); i++)
		if (models[i].need == need && models[i].family == family &&
		    model >= models[i].first && model <= models[i].last)
			return true;
	return false;
}

bool metric_is_met(enum metric_need need, const struct metric_where *where)
{
	const char *why;
	double slots;

	switch (need) {
	case NEED_NOTHING:
		return true;
	case NEED_INTEL_SLOTS:
		return metric_cpu_has_event("slots", where->root) &&
		       metric_cpu_has_event("topdown-retiring", where->root);
	case NEED_ARM_SLOTS:
		return metric_cpu_has_event("stall_slot", where->root) &&
		       metric_literal(&slots, "slots", 5, where, &why) > 0;
	default:
		return is_zen(need, where->root);
	}
}

const struct metric_builtin *metric_builtin_at(size_t i)
{
	return i < ARRAY_SIZE(builtins) ? &builtins[i] : NULL;
}

static bool is_called(const struct metric_builtin *b, const char *name)
{
	return !strcasecmp(b->name, name) || (b->alias && !strcasecmp(b->alias, name));
}

const struct metric_builtin *metric_builtin_find(const char *name, const struct metric_where *where,
						 bool *any)
{
	*any = false;
	for (size_t i = 0; i < ARRAY_SIZE(builtins); i++) {
		if (!is_called(&builtins[i], name))
			continue;
		*any = true;
		if (metric_is_met(builtins[i].need, where))
			return &builtins[i];
	}
	return NULL;
}
