/* SPDX-License-Identifier: MIT */
/*
 * `tally stat`: what a count means beside the others. A rule names the event that a count is
 * divided by; both must have counted in the same modes (u, k ...). Without a rule, or without the
 * other event, a count is given per second of the time that the tasks ran.
 */
#include <string.h>

#include "stat.h"

#define MODES                                                                          \
	(TALLY_ATTR_EXCLUDE_USER | TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_HV | \
	 TALLY_ATTR_EXCLUDE_HOST | TALLY_ATTR_EXCLUDE_GUEST | TALLY_ATTR_EXCLUDE_IDLE)

/* attr.config of TALLY_TYPE_HW_CACHE: cache | operation << 8 | result << 16. */
#define CACHE(cache, op, result) ((cache) | (op) << 8 | (result) << 16)
enum {
	L1D,
	L1I,
	LL,
	DTLB,
	ITLB,
	BPU,
	NODE
};
enum {
	READ,
	WRITE,
	PREFETCH
};
enum {
	ACCESS,
	MISS
};

struct rule {
	uint32_t type;
	uint64_t config;
	uint32_t base_type;
	uint64_t base;
	bool percent;
	const char *words;
};

#define HW(config, base, percent, words)                                               \
	{                                                                              \
		TALLY_TYPE_HARDWARE, config, TALLY_TYPE_HARDWARE, base, percent, words \
	}
#define MISSES(cache, op, words)                                                  \
	{                                                                         \
		TALLY_TYPE_HW_CACHE, CACHE(cache, op, MISS), TALLY_TYPE_HW_CACHE, \
			CACHE(cache, op, ACCESS), true, words                     \
	}

static const struct rule rules[] = {
	HW(TALLY_HW_INSTRUCTIONS, TALLY_HW_CPU_CYCLES, false, "insn per cycle"),
	HW(TALLY_HW_BRANCH_MISSES, TALLY_HW_BRANCH_INSTRUCTIONS, true, "of all branches"),
	HW(TALLY_HW_CACHE_MISSES, TALLY_HW_CACHE_REFERENCES, true, "of all cache refs"),
	HW(TALLY_HW_STALLED_CYCLES_FRONTEND, TALLY_HW_CPU_CYCLES, true, "frontend cycles idle"),
	HW(TALLY_HW_STALLED_CYCLES_BACKEND, TALLY_HW_CPU_CYCLES, true, "backend cycles idle"),
	MISSES(L1D, READ, "of all L1-dcache accesses"),
	MISSES(L1I, READ, "of all L1-icache accesses"),
	MISSES(LL, READ, "of all LL-cache accesses"),
	MISSES(DTLB, READ, "of all dTLB cache accesses"),
	MISSES(ITLB, READ, "of all iTLB cache accesses"),
};

static bool has_value(const struct stat_row *row)
{
	return row->sum.state <= TALLY_COUNT_SCALED && row->value.n;
}

static bool is_event(const struct stat_row *row, uint32_t type, uint64_t config)
{
	const struct tally_attr *attr = tally_event_attr(row->event);

	return attr->type == type && attr->config == config;
}

static bool is_clock(const struct stat_row *row)
{
	return is_event(row, TALLY_TYPE_SOFTWARE, TALLY_SW_TASK_CLOCK) ||
	       is_event(row, TALLY_TYPE_SOFTWARE, TALLY_SW_CPU_CLOCK);
}

static uint64_t modes(const struct stat_row *row)
{
	const struct tally_attr *granted = tally_event_granted(row->event);

	return (granted ? granted : tally_event_attr(row->event))->flags & MODES;
}

/* The mean of an event that counted beside `row`, 0 when there is none. */
static double mean_of(const struct stat_result *result, uint32_t type, uint64_t config,
		      const struct stat_row *beside)
{
	for (uint32_t i = 0; i < result->count; i++) {
		const struct stat_row *row = &result->rows[i];
		if (has_value(row) && is_event(row, type, config) && modes(row) == modes(beside))
			return row->value.mean;
	}
	return 0;
}

/* Nanoseconds that the tasks ran, 0 when no clock was counted. */
static double ran_ns(const struct stat_result *result)
{
	for (uint32_t i = 0; i < result->count; i++)
		if (has_value(&result->rows[i]) && is_clock(&result->rows[i]))
			return result->rows[i].value.mean;
	return 0;
}

static bool by_rule(char *out, size_t size, const struct stat_result *result,
		    const struct stat_row *row)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
		const struct rule *rule = &rules[i];
		if (!is_event(row, rule->type, rule->config))
			continue;
		double base = mean_of(result, rule->base_type, rule->base, row);
		if (base <= 0)
			return false;
		double ratio = row->value.mean / base;
		if (rule->percent)
			snprintf(out, size, "%7.2f%% %s", 100 * ratio, rule->words);
		else
			snprintf(out, size, "%7.2f  %s", ratio, rule->words);
		return true;
	}
	return false;
}

static void per_second(char *out, size_t size, double per_second)
{
	static const char *const units[] = { "/sec", "K/sec", "M/sec", "G/sec" };
	unsigned unit = 0;

	for (; per_second >= 1000 && unit < 3; unit++)
		per_second /= 1000;
	snprintf(out, size, "%8.3f %s", per_second, units[unit]);
}

void stat_rate(char *out, size_t size, const struct stat_result *result, uint32_t i)
{
	const struct stat_row *row = &result->rows[i];
	double ns = ran_ns(result);

	*out = '\0';
	if (!has_value(row))
		return;
	if (is_clock(row)) {
		if (result->wall.mean > 0)
			snprintf(out, size, "%8.3f CPUs utilized",
				 row->value.mean * 1e-9 / result->wall.mean);
	} else if (by_rule(out, size, result, row) || ns <= 0 || *tally_event_unit(row->event)) {
		return;
	} else if (is_event(row, TALLY_TYPE_HARDWARE, TALLY_HW_CPU_CYCLES)) {
		snprintf(out, size, "%8.3f GHz", row->value.mean / ns);
	} else {
		per_second(out, size, row->value.mean * 1e9 / ns);
	}
}
