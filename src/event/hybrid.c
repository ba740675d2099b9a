/* SPDX-License-Identifier: MIT */
/*
 * Without a PMU's number the kernel takes the first kind of core, and on the others such an event
 * counts nothing: half a count that looks like a whole one. Since Linux 5.13 the upper half of config
 * says which PMU a generic event is for (PERF_PMU_TYPE_SHIFT); a raw event is of the PMU's own type.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "event/hybrid.h"
#include "event/pmu.h"

#define PMU_TYPE_SHIFT 32

static bool is_of_any_core(const struct found_event *e)
{
	bool generic = e->attr.type == TALLY_TYPE_HARDWARE || e->attr.type == TALLY_TYPE_HW_CACHE;

	return !e->parts.count &&
	       (e->attr.type == TALLY_TYPE_RAW || (generic && !(e->attr.config >> PMU_TYPE_SHIFT)));
}

static bool add_part(struct found_event *e, const struct tally_attr *asked, const struct pmu *pmu)
{
	size_t bytes = pmu->cpu_count * sizeof(*pmu->cpus);
	int32_t *cpus = bytes ? malloc(bytes) : NULL;
	struct event_part *part = bytes && !cpus ? NULL : vec_push(&e->parts);

	if (!part) {
		free(cpus);
		return false;
	}
	if (cpus)
		memcpy(cpus, pmu->cpus, bytes);
	bool raw = asked->type == TALLY_TYPE_RAW;
	part->type = raw ? pmu->type : asked->type;
	part->config = asked->config | (raw ? 0 : (uint64_t)pmu->type << PMU_TYPE_SHIFT);
	memcpy(part->pmu, pmu->name, sizeof(part->pmu));
	part->cpus = cpus;
	part->cpu_count = pmu->cpu_count;
	return true;
}

static bool add_parts(struct found_event *e, pmus *cores)
{
	const struct tally_attr asked = e->attr;

	vec_each (cores, core)
		if (!add_part(e, &asked, core))
			return false;
	e->attr.type = e->parts.at[0].type;
	e->attr.config = e->parts.at[0].config;
	return true;
}

int hybrid_expand(const struct naming *n, const char *where, struct found *found)
{
	pmus cores = { 0 };
	bool any = false;
	int r;

	vec_each (&found->events, e)
		any |= is_of_any_core(e);
	if (!any)
		return 0;
	r = pmu_core_kinds(n->root);
	if (r <= 1)
		return r < 0 ? error_nomem(n->err, "the PMUs") : 0;
	r = pmus_find(&cores, n->root, NULL);
	if (r < 0 && r != -ENOMEM)
		r = resolve_fail(n, where, TALLY_CAUSE_IO, "cannot read " PMU_FOLDER "/%s: %s",
				 cores.count ? cores.at[0].name : "", strerror(-r));
	if (r == 0 && cores.count)
		vec_each (&found->events, e)
			if (r == 0 && is_of_any_core(e) && !add_parts(e, &cores))
				r = -ENOMEM;
	pmus_done(&cores);
	return r == -ENOMEM ? error_nomem(n->err, "an event's parts") : r;
}
