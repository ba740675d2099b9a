/* SPDX-License-Identifier: MIT */
/*
 * Layers of parts. The member with most parts is the spine. Beside its part stands, in each layer,
 * the part of every other member that is of the same PMU; one that counts everywhere, as software
 * events do, stands in all layers, since each layer sees a share of the CPUs or of the time alone.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/proc.h"
#include "count/parts.h"
#include "count/target.h"

static uint32_t widest(struct tally_event *const *events, uint32_t members)
{
	struct tally_event_part part;
	uint32_t best = 0, most = 0;

	for (uint32_t m = 0; members > 1 && m < members; m++) {
		uint32_t parts = tally_event_parts(events[m]);
		/* Of those with one part, one that counts on some CPUs alone goes first. */
		uint32_t weight = parts * 2 + (tally_event_part(events[m], 0, &part) && part.cpus);
		if (weight > most) {
			most = weight;
			best = m;
		}
	}
	return best;
}

static bool counts_everywhere(const struct tally_event *event)
{
	struct tally_event_part part;

	return tally_event_parts(event) == 1 && tally_event_part(event, 0, &part) && !part.cpus &&
	       !part.per_cpu;
}

/* The part of an event that goes with `beside`, PART_NONE when none does. */
static uint32_t part_beside(const struct tally_event *event, const struct tally_event_part *beside)
{
	struct tally_event_part part;

	for (uint32_t i = 0; tally_event_part(event, i, &part); i++)
		if (part.pmu[0] && !strcmp(part.pmu, beside->pmu))
			return i;
	return counts_everywhere(event) && !beside->per_cpu ? 0 : PART_NONE;
}

static int cannot_group(const struct parts *p, uint32_t member, const char *why,
			struct tally_error *err)
{
	return error_set(err, -EINVAL, TALLY_CAUSE_UNSUPPORTED,
			 "%.100s and %.100s cannot be one group: %s; count them beside each other, "
			 "without braces",
			 tally_event_name(p->events[0]), tally_event_name(p->events[member]), why);
}

/* Every part of every member must stand in some layer, and the leader in all. */
static int check_layers(const struct parts *p, struct tally_error *err)
{
	for (uint32_t m = 0; m < p->members; m++) {
		uint32_t found = 0;
		for (uint32_t l = 0; l < p->layers; l++) {
			bool here = p->of[(size_t)l * p->members + m] != PART_NONE;
			if (!here && m == 0)
				return cannot_group(
					p, p->spine,
					"the leader does not count on all the PMUs of the "
					"other",
					err);
			found += here;
		}
		if (found < tally_event_parts(p->events[m]))
			return cannot_group(p, m,
					    "they count on different PMUs, or one counts whole "
					    "packages and the other what runs",
					    err);
		if (tally_event_per_package(p->events[m]) != p->per_package)
			return cannot_group(p, m, "one counts packages and the other CPUs", err);
	}
	return 0;
}

static int check_tasks(const struct parts *p, struct tally_error *err)
{
	struct tally_event_part part;

	for (uint32_t m = 0; m < p->members; m++)
		for (uint32_t i = 0; tally_event_part(p->events[m], i, &part); i++)
			if (part.per_cpu)
				return error_set(err, -EINVAL, TALLY_CAUSE_UNSUPPORTED,
						 "cannot open %.100s for a thread or process: it "
						 "counts whole packages, and cannot follow a task: "
						 "use -a, or a target of CPUs",
						 tally_event_name(p->events[m]));
	return 0;
}

static int make_layers(struct parts *p, struct tally_error *err)
{
	uint32_t members = p->members;
	struct tally_event_part beside;

	p->of = alloc_zeroed((size_t)p->layers * members, sizeof(*p->of));
	if (!p->of)
		return error_nomem(err, "the parts of an event");
	for (uint32_t l = 0; l < p->layers; l++) {
		tally_event_part(p->events[p->spine], l, &beside);
		for (uint32_t m = 0; m < members; m++)
			p->of[(size_t)l * members + m] = m == p->spine ? l
								       : part_beside(p->events[m],
										     &beside);
	}
	return 0;
}

/* What nearly all events are: one part, alone, wherever the target is. */
static bool is_plain(const struct parts *p)
{
	struct tally_event_part part = { .cpus = NULL };

	tally_event_part(p->events[0], 0, &part);
	return p->members == 1 && p->layers == 1 && !p->per_package && !part.cpus && !part.per_cpu;
}

int parts_init(struct parts *p, struct tally_event *const *events, uint32_t members,
	       const struct tally_target *target, struct tally_error *err)
{
	p->events = events;
	p->members = members;
	p->spine = widest(events, members);
	p->layers = tally_event_parts(events[p->spine]);
	p->per_package = tally_event_per_package(events[0]);
	p->plain = is_plain(p);
	if (p->plain) {
		p->of = &p->first;
		return 0;
	}
	int r = make_layers(p, err);
	if (r == 0 && !target_is_cpus(target))
		r = check_tasks(p, err);
	return r == 0 ? check_layers(p, err) : r;
}

bool parts_of(const struct parts *p, uint32_t layer, uint32_t member, struct tally_event_part *out)
{
	return tally_event_part(p->events[member], p->of[(size_t)layer * p->members + member], out);
}

static bool counts_on(const struct tally_event_part *part, int32_t cpu)
{
	if (cpu < 0 || !part->cpus)
		return true;
	for (uint32_t i = 0; i < part->cpu_count; i++)
		if (part->cpus[i] == cpu)
			return true;
	return false;
}

static int package_of(int32_t cpu, const char *root, int64_t *package, struct tally_error *err)
{
	char path[96];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/physical_package_id",
		 cpu);
	int r = proc_read_i64(package, root, path);
	return r < 0 ? error_set(err, r, TALLY_CAUSE_IO,
				 "cannot tell which package CPU %d belongs to: %s%s: %s", cpu,
				 root ? root : "", path, strerror(-r))
		     : 0;
}

/* Whether a CPU of the same package was taken for the layer; notes the package otherwise. */
static int is_covered(const struct parts *p, const char *root, const struct tally_place *place,
		      int64_t *packages, const struct tally_place *taken, uint32_t count,
		      struct tally_error *err)
{
	if (!p->per_package || place->cpu < 0)
		return 0;
	int r = package_of(place->cpu, root, &packages[count], err);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < count; i++)
		if (taken[i].part == place->part && packages[i] == packages[count])
			return 1;
	return 0;
}

static int counts_nowhere(const struct parts *p, struct tally_error *err)
{
	struct tally_event_part part;
	const char *name = tally_event_name(p->events[0]);

	parts_of(p, 0, p->spine, &part);
	if (!part.cpu_count)
		return error_set(err, -ENODEV, TALLY_CAUSE_UNSUPPORTED,
				 "cannot open %.100s: its PMU counts on no CPU that is online",
				 name);
	return error_set(
		err, -ENODEV, TALLY_CAUSE_UNSUPPORTED,
		"cannot open %.100s: it counts on other CPUs than those asked for, as on CPU "
		"%d (%" PRIu32 " in all): use -a, or a target of those",
		name, part.cpus[0], part.cpu_count);
}

int parts_spread(const struct parts *p, const char *root, struct tally_place **list,
		 uint32_t *count, struct tally_error *err)
{
	if (p->plain)
		return 0;
	size_t room = (size_t)*count * p->layers;
	/* As many as target_places() allows; keeps products with members within size_t. */
	bool fits = room <= UINT32_MAX / 64;
	struct tally_place *out = fits ? calloc(room, sizeof(*out)) : NULL;
	int64_t *packages = fits ? calloc(room, sizeof(*packages)) : NULL;
	struct tally_event_part part;
	uint32_t n = 0;
	int r = out && packages ? 0 : error_nomem(err, "the list of threads and CPUs");

	for (uint32_t i = 0; r == 0 && i < *count; i++)
		for (uint32_t l = 0; r == 0 && l < p->layers; l++) {
			struct tally_place place = (*list)[i];
			place.part = l;
			parts_of(p, l, p->spine, &part);
			if (!counts_on(&part, place.cpu))
				continue;
			r = is_covered(p, root, &place, packages, out, n, err);
			if (r == 0)
				out[n++] = place;
			r = r > 0 ? 0 : r;
		}
	free(packages);
	if (r == 0 && !n)
		r = counts_nowhere(p, err);
	if (r < 0) {
		free(out);
		return r;
	}
	free(*list);
	*list = out;
	*count = n;
	return 0;
}

uint64_t parts_fds(const struct parts *p, const struct tally_place *list, uint32_t count)
{
	uint64_t fds = 0;

	for (uint32_t i = 0; i < count; i++)
		for (uint32_t m = 0; m < p->members; m++)
			fds += p->of[(size_t)list[i].part * p->members + m] != PART_NONE;
	return fds;
}

void parts_done(struct parts *p)
{
	if (p->of != &p->first)
		free(p->of);
	p->of = NULL;
}
