/* SPDX-License-Identifier: MIT */
/*
 * Events as terms of a PMU, as perf-list(1) tells: cpu/event=0x3c,umask=1/.
 *
 *	terms = [ term { "," term } ]
 *	term  = NAME [ "=" value ]
 *	value = decimal | "0x" hex | text
 *
 * A term is a field of the PMU's format/ (alone: 1), an event of its events/, `config=`, `config1=`
 * to `config4=`, rNNN, `name=TEXT`, `period=` or `freq=`, or, of a PMU of the cores, the name of a
 * generic event. The order does not matter, but that of two that set the same bits the last one
 * holds; what is written holds against what an event of events/ says.
 */
#ifndef EVENT_TERMS_H
#define EVENT_TERMS_H

#include "event/nearest.h"
#include "event/resolve.h"

/*
 * Applies the `len` bytes at `text` to the PMUs that `pmu` stands for (pmus_find(); NULL: those of
 * the cores), and fills in `out`, which is zeroed: one part for each PMU, the attr as of the first,
 * and what events/ says of scale and unit. `where` is the place in n->text that errors point to;
 * NULL when `text` itself lies in n->text, behind `pmu` and a '/'. A period in terms from elsewhere
 * is a recommendation.
 * 0 or -errno explained. What `out` got is the caller's to free in both cases.
 */
int terms_apply(const struct naming *n, const char *pmu, const char *text, size_t len,
		const char *where, struct found_event *out);

/* Says that `name` (NULL: that of the cores) is no PMU here, and what comes nearest to it. */
int terms_refuse_pmu(const struct naming *n, const char *where, const char *name);

/* Explains a name that is that of a PMU without its slashes; false when it is not. */
bool terms_refuse_bare(const struct naming *n, const char *name, size_t len);

/* Offers the names of the events of all PMUs, for a name that nothing has. */
void terms_offer(struct nearest *near, const char *root);

/* pmu/terms/ */
resolve_source resolve_terms;
/* The name of an event of events/ alone, where it is of PMUs of one kind. */
resolve_source resolve_alias;

#endif
