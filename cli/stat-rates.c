/* SPDX-License-Identifier: MIT */
/*
 * `tally stat`: what a count means beside the others. A rule names the event that a count is
 * divided by; both must have counted in the same modes (u, k ...). Without a rule, or without the
 * other event, a count is given per second of the time that the tasks ran.
 */
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

/* One key's cells with the events that they are of. */
struct beside {
	const struct stat_result *result;
	const struct stat_cell *cells;
};

static bool has_value(const struct beside *b, uint32_t i)
{
	const struct stat_cell *cell = &b->cells[i];

	return cell->places && cell->sum.state <= TALLY_COUNT_SCALED && cell->value.n;
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
	return tally_event_attr(row->event)->flags & MODES;
}

/* The mean of an event that counted beside `row`, 0 when there is none. */
static double mean_of(const struct beside *b, uint32_t type, uint64_t config,
		      const struct stat_row *row)
{
	for (uint32_t i = 0; i < b->result->count; i++) {
		const struct stat_row *other = &b->result->rows[i];
		if (has_value(b, i) && is_event(other, type, config) && modes(other) == modes(row))
			return b->cells[i].value.mean;
	}
	return 0;
}

/* Nanoseconds that the tasks ran, 0 when no clock was counted. */
static double ran_ns(const struct beside *b)
{
	for (uint32_t i = 0; i < b->result->count; i++)
		if (has_value(b, i) && is_clock(&b->result->rows[i]))
			return b->cells[i].value.mean;
	return 0;
}

static struct stat_rate make_rate(int decimals, double number, const char *unit)
{
	struct stat_rate rate = {
		.unit = unit,
		.mark = decimals == 2 ? " " : "",
		.number = number,
		.number_unit = unit,
	};

	snprintf(rate.value, sizeof(rate.value), "%*.*f", 5 + decimals, decimals, number);
	return rate;
}

static struct stat_rate by_rule(const struct beside *b, uint32_t i)
{
	const struct stat_row *row = &b->result->rows[i];
	const struct rule *rule = rules, *end = rules + sizeof(rules) / sizeof(*rules);

	while (rule < end && !is_event(row, rule->type, rule->config))
		rule++;
	double base = rule < end ? mean_of(b, rule->base_type, rule->base, row) : 0;
	if (base <= 0)
		return (struct stat_rate){ 0 };
	double ratio = b->cells[i].value.mean / base;
	struct stat_rate rate = make_rate(2, rule->percent ? 100 * ratio : ratio, rule->words);
	if (rule->percent)
		rate.mark = "%";
	return rate;
}

static struct stat_rate per_second(double per_second)
{
	static const char *const units[] = { "/sec", "K/sec", "M/sec", "G/sec" };
	unsigned unit = 0;

	double scaled = per_second;

	for (; scaled >= 1000 && unit < 3; unit++)
		scaled /= 1000;
	struct stat_rate rate = make_rate(3, scaled, units[unit]);
	rate.number = per_second;
	rate.number_unit = units[0];
	return rate;
}

struct stat_rate stat_rate(const struct stat_result *result, const struct stat_at *at)
{
	const struct beside b = { result, at->key->cells };
	const struct stat_row *row = &result->rows[at->row];
	const struct stat_rate none = { 0 };
	double ns = ran_ns(&b), mean = at->cell->value.mean;

	if (!has_value(&b, at->row))
		return none;
	if (is_clock(row))
		return result->wall.mean > 0
			       ? make_rate(3, mean * 1e-9 / result->wall.mean, "CPUs utilized")
			       : none;
	struct stat_rate rate = by_rule(&b, at->row);
	if (*rate.value || ns <= 0 || *tally_event_unit(row->event))
		return rate;
	if (is_event(row, TALLY_TYPE_HARDWARE, TALLY_HW_CPU_CYCLES))
		return make_rate(3, mean / ns, "GHz");
	return per_second(mean * 1e9 / ns);
}
