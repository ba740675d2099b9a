/* SPDX-License-Identifier: MIT */
/* The events that PMUs have names for, on the tour of all events. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "event/pmu.h"
#include "event/term-text.h"
#include "event/terms.h"
#include "event/tour.h"

/* ",core=?" for each parameter that has to be given. true: there are some. */
static bool describe_parameters(char *out, size_t size, const char *text)
{
	const struct naming n = { .text = text };
	term_list terms = { 0 };
	size_t len = 0;

	out[0] = '\0';
	if (term_split(&terms, &n, text, text, strlen(text)) == 0)
		vec_each (&terms, t)
			if (t->value_len == 1 && t->value[0] == '?' && len < size)
				len += (size_t)snprintf(out + len, size - len, ",%.*s=?",
							SHOWN(t->name, t->name_len));
	vec_done(&terms);
	return len > 0;
}

/* Opens it as it would be opened by its name. */
static bool opens(const struct tour *t, const char *pmu, const char *alias, char *name,
		  struct tally_error *why)
{
	const struct naming n = { .text = alias, .root = t->opts.root, .err = why };
	struct found found = { 0 };
	struct found_event *f = found_add(&found, 0, 0);
	int r = f ? terms_apply(&n, pmu, alias, strlen(alias), alias, f)
		  : error_nomem(why, "events");

	if (r == 0) {
		struct tally_event e = { .name = name, .attr = f->attr, .parts = f->parts };
		if (!f->all_modes)
			e.attr.flags |= TALLY_ATTR_EXCLUDE_GUEST;
		r = tour_opens(t, &e, why) ? 0 : -EINVAL;
	}
	found_done(&found);
	return r == 0;
}

/* `folder` is the PMU whose events are read, `pmu` the name that means it and all its like. */
static int visit(const struct tour *t, const char *folder, const char *pmu, const char *alias)
{
	char name[2 * RESOLVE_MAX_NAME + 512], parameters[256];
	struct tally_error why = { 0 };
	struct pmu_alias a;

	bool known = pmu_alias(&a, t->opts.root, folder, alias) == 0;
	bool open = describe_parameters(parameters, sizeof(parameters), known ? a.terms : "");
	snprintf(name, sizeof(name), "%s/%s%s/", pmu, alias, parameters);
	if (!tour_wants(t, name))
		return 0;
	bool openable = open || opens(t, pmu, alias, name, &why);
	const struct tally_event_info info = {
		.name = name,
		.kind = TALLY_EVENT_PMU,
		.openable = openable,
		.pmu = pmu,
		.unit = known ? a.unit : "",
		.why = openable ? NULL : tour_reason(&why, name),
	};
	return t->fn(&info, t->arg);
}

static int visit_all(const struct tour *t, const char *folder, const char *pmu)
{
	struct proc_names aliases;
	int r = pmu_aliases(&aliases, t->opts.root, folder);

	if (r == -ENOMEM)
		return error_nomem(t->err, "the events of a PMU");
	r = 0;
	for (size_t i = 0; r == 0 && i < aliases.count; i++)
		r = visit(t, folder, pmu, aliases.at[i]);
	proc_names_done(&aliases);
	return r;
}

static bool are_boxes_of_one(const char *a, const char *b)
{
	size_t base = pmu_base_length(a);

	return a[base] && b[pmu_base_length(b)] && base == pmu_base_length(b) &&
	       !strncmp(a, b, base);
}

int tour_pmus(const struct tour *t)
{
	struct proc_names names;
	int r = pmu_names(&names, t->opts.root);

	if (r < 0)
		return r == -ENOMEM ? error_nomem(t->err, "the PMUs") : 0;
	for (size_t i = 0; r == 0 && i < names.count; i++) {
		const char *name = names.at[i];
		char shown[PMU_MAX_NAME + 1];
		if (strlen(name) > PMU_MAX_NAME || (i && are_boxes_of_one(names.at[i - 1], name)))
			continue;
		bool several = i + 1 < names.count && are_boxes_of_one(name, names.at[i + 1]);
		snprintf(shown, sizeof(shown), "%.*s",
			 (int)(several ? pmu_base_length(name) : strlen(name)), name);
		r = visit_all(t, name, shown);
	}
	proc_names_done(&names);
	return r;
}
