/* SPDX-License-Identifier: MIT */
/* The two ways to name an event of a PMU: pmu/terms/, and what its events/ calls it alone. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "event/nearest.h"
#include "event/pmu.h"
#include "event/terms.h"

/* -- PMUs that are not there ------------------------------------------------------------------ */

static bool has_core(const struct naming *n)
{
	pmus cores = { 0 };
	bool has = pmus_find(&cores, n->root, NULL) == 0 && cores.count;

	pmus_done(&cores);
	return has;
}

/* "cpu_core and cpu_atom" */
static void list_cores(char *out, size_t size, const struct naming *n)
{
	pmus cores = { 0 };
	size_t len = 0;

	out[0] = '\0';
	pmus_find(&cores, n->root, NULL);
	for (size_t i = 0; i < cores.count && len < size; i++)
		len += (size_t)snprintf(out + len, size - len, "%s%s", i ? ", " : "",
					cores.at[i].name);
	pmus_done(&cores);
}

/* Those that are a core's wherever there are any. */
static bool is_core_name(const char *name)
{
	return !name || !strcmp(name, "cpu") || !strcmp(name, "cpu_core") ||
	       !strcmp(name, "cpu_atom") || !strncmp(name, "armv", 4);
}

static int refuse_core(const struct naming *n, const char *where, const char *name)
{
	char cores[256];

	if (!has_core(n))
		return resolve_fail(n, where, TALLY_CAUSE_NO_PMU,
				    "there is no PMU '%s': this machine shows no hardware counters",
				    name ? name : "cpu");
	list_cores(cores, sizeof(cores), n);
	return resolve_fail(n, where, TALLY_CAUSE_UNKNOWN,
			    "there is no PMU '%s': here the cores have %s", name ? name : "cpu",
			    cores);
}

int terms_refuse_pmu(const struct naming *n, const char *where, const char *name)
{
	struct proc_names names = { 0 };
	struct nearest near;
	char base[PMU_MAX_NAME + 1];
	bool offline = false;

	if (is_core_name(name))
		return refuse_core(n, where, name);
	nearest_init(&near, name, strlen(name));
	pmu_names(&names, n->root);
	for (size_t i = 0; i < names.count; i++) {
		offline |= pmu_is_meant(names.at[i], name);
		nearest_offer(&near, names.at[i]);
		snprintf(base, sizeof(base), "%.*s", (int)pmu_base_length(names.at[i]),
			 names.at[i]);
		nearest_offer(&near, base);
	}
	proc_names_done(&names);
	if (offline)
		return resolve_fail(n, where, TALLY_CAUSE_UNSUPPORTED,
				    "the CPUs of PMU '%s' are all offline", name);
	if (near.name[0])
		return resolve_fail(n, where, TALLY_CAUSE_UNKNOWN,
				    "there is no PMU '%s', the nearest is '%s'", name, near.name);
	return resolve_fail(n, where, TALLY_CAUSE_UNKNOWN,
			    "there is no PMU '%s': they are in " PMU_FOLDER, name);
}

/* -- pmu/terms/ ------------------------------------------------------------------------------- */

int resolve_terms(const struct naming *n, const char *text, size_t len, struct found *out)
{
	char pmu[RESOLVE_MAX_NAME + 1];
	const char *open = memchr(text, '/', len), *colon = memchr(text, ':', len);

	if (!open || (colon && colon < open))
		return 0;
	const char *terms = open + 1;
	const char *close = memchr(terms, '/', len - (size_t)(terms - text));
	if (open == text)
		return resolve_fail(n, text, TALLY_CAUSE_SYNTAX,
				    "the name of a PMU is missing before '/'");
	if (!close)
		return resolve_fail(n, open, TALLY_CAUSE_SYNTAX,
				    "this '/' is not closed: pmu/terms/");
	if (!resolve_copy(pmu, text, (size_t)(open - text)))
		return resolve_fail(n, text, TALLY_CAUSE_UNKNOWN,
				    "there is no PMU with a name that long");
	struct found_event *e = found_add(out, 0, 0);
	if (!e)
		return error_nomem(n->err, "events");
	out->taken = (size_t)(close + 1 - text);
	int r = terms_apply(n, pmu, terms, (size_t)(close - terms), NULL, e);
	return r < 0 ? r : 1;
}

/* -- an event of events/ alone ---------------------------------------------------------------- */

/* The PMUs that have an event of this name: their names without the number of a box. */
struct owners {
	char first[PMU_MAX_NAME + 1], second[PMU_MAX_NAME + 1];
	bool several; /* not boxes of one kind */
};

static void add_owner(struct owners *o, const char *pmu)
{
	char base[PMU_MAX_NAME + 1];

	snprintf(base, sizeof(base), "%.*s", (int)pmu_base_length(pmu), pmu);
	if (!o->first[0]) {
		memcpy(o->first, base, sizeof(base));
	} else if (strcmp(o->first, base) && !o->several) {
		memcpy(o->second, base, sizeof(base));
		o->several = true;
	}
}

static int find_owners(struct owners *o, const struct naming *n, const char *alias)
{
	struct proc_names names;
	int r = pmu_names(&names, n->root);

	if (r < 0)
		return r == -ENOMEM ? error_nomem(n->err, "the PMUs") : 0;
	for (size_t i = 0; i < names.count; i++)
		if (strlen(names.at[i]) <= PMU_MAX_NAME &&
		    pmu_spells_alias(n->root, names.at[i], alias))
			add_owner(o, names.at[i]);
	proc_names_done(&names);
	return 0;
}

static bool are_cores(const struct naming *n, const char *alias)
{
	struct proc_names names;
	pmus cores = { 0 };
	bool all = pmus_find(&cores, n->root, NULL) == 0 && pmu_names(&names, n->root) == 0;

	for (size_t i = 0; all && i < names.count; i++) {
		bool core = false;
		vec_each (&cores, c)
			core |= !strcmp(c->name, names.at[i]);
		if (pmu_spells_alias(n->root, names.at[i], alias) != core)
			all = false;
	}
	proc_names_done(&names);
	pmus_done(&cores);
	return all;
}

bool terms_refuse_bare(const struct naming *n, const char *name, size_t len)
{
	char pmu[RESOLVE_MAX_NAME + 1];
	struct proc_names names;
	bool found = false;

	if (!resolve_copy(pmu, name, len) || !len || pmu_names(&names, n->root) < 0)
		return false;
	for (size_t i = 0; !found && i < names.count; i++)
		found = !strpbrk(pmu, "*?[") && pmu_is_meant(names.at[i], pmu);
	proc_names_done(&names);
	if (found)
		resolve_fail(n, name, TALLY_CAUSE_UNKNOWN,
			     "'%s' is a PMU, not an event: name one of its events, as %s/.../; "
			     "'tally list %s/' shows them",
			     pmu, pmu, pmu);
	return found;
}

void terms_offer(struct nearest *near, const char *root)
{
	struct proc_names pmu_list, aliases;

	if (pmu_names(&pmu_list, root) < 0)
		return;
	for (size_t i = 0; i < pmu_list.count; i++) {
		if (pmu_aliases(&aliases, root, pmu_list.at[i]) < 0)
			continue;
		for (size_t k = 0; k < aliases.count; k++)
			nearest_offer(near, aliases.at[k]);
		proc_names_done(&aliases);
	}
	proc_names_done(&pmu_list);
}

int resolve_alias(const struct naming *n, const char *text, size_t len, struct found *out)
{
	const char *colon = memchr(text, ':', len);
	size_t name_len = colon ? (size_t)(colon - text) : len;
	char alias[RESOLVE_MAX_NAME + 1];
	struct owners owners = { 0 };

	if (!resolve_copy(alias, text, name_len) || strpbrk(alias, "/=,"))
		return 0;
	int r = find_owners(&owners, n, alias);
	if (r < 0 || !owners.first[0])
		return r;
	bool cores = owners.several && are_cores(n, alias);
	if (owners.several && !cores)
		return resolve_fail(n, text, TALLY_CAUSE_UNKNOWN,
				    "'%s' is an event of PMU '%s' and of PMU '%s': say which, as "
				    "%s/%s/",
				    alias, owners.first, owners.second, owners.first, alias);
	struct found_event *e = found_add(out, 0, 0);
	if (!e)
		return error_nomem(n->err, "events");
	out->taken = name_len;
	r = terms_apply(n, cores ? NULL : owners.first, alias, name_len, text, e);
	return r < 0 ? r : 1;
}
