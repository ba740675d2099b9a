/* SPDX-License-Identifier: MIT */
/*
 * The PMUs that the kernel shows below /sys/bus/event_source/devices, as
 * Documentation/ABI/testing/sysfs-bus-event_source-devices-* tell: each a folder with its number
 * (type), where it counts (cpus, cpumask), which bits its terms set (format/) and the events that
 * have names (events/).
 */
#ifndef EVENT_PMU_H
#define EVENT_PMU_H

#include <stdbool.h>
#include <stdint.h>

#include "base/proc.h"
#include "base/vec.h"

#define PMU_FOLDER   "/sys/bus/event_source/devices"
#define PMU_MAX_NAME 63
#define PMU_WORDS    5 /* config, config1 to config4 */

struct pmu {
	char name[PMU_MAX_NAME + 1];
	uint32_t type;
	bool core;     /* counts what cores execute; where there are several, each has its `cpus` */
	bool per_cpu;  /* counts CPUs or packages, on the CPUs of its cpumask */
	int32_t *cpus; /* ascending; NULL: all */
	uint32_t cpu_count;
};

typedef VEC(struct pmu) pmus;

/* The bits that a term's value is spread over, from its lowest bit on. */
struct pmu_field {
	uint32_t word; /* 0: config, 1: config1 ... */
	uint64_t bits;
};

/* An event that has a name. */
struct pmu_alias {
	char terms[1024];
	double scale; /* 1.0: none */
	char unit[32];
	bool per_package, snapshot;
};

/*
 * The PMUs that `name` stands for and that count somewhere: the one that is called so; all boxes of
 * an uncore PMU where it lacks the number (uncore_imc: uncore_imc_0, uncore_imc_1 ...) or also the
 * prefix (imc), as perf(1) has it; those that match a pattern with * ? [; NULL: those of the cores.
 * An empty list when there are none. Errors: -errno when one cannot be read, its name in
 * `out->at[0].name` then, "" when it is the folder.
 */
int pmus_find(pmus *out, const char *root, const char *name);
void pmus_done(pmus *list);

/*
 * How many PMUs of cores there are, also those whose CPUs are all offline: with more than one an
 * event has to say which. 0 or more, -ENOMEM.
 */
int pmu_core_kinds(const char *root);

/* Whether `name` of a PMU is meant by `pattern`, as above. */
bool pmu_is_meant(const char *name, const char *pattern);

/* The length of a PMU's name without the number of its box; all of it when it has none. */
size_t pmu_base_length(const char *name);

/* The names of all PMUs, sorted. 0 or -errno. */
int pmu_names(struct proc_names *out, const char *root);

/* What format/NAME says. 0; -ENOENT: it has no such term; -EINVAL: it cannot be understood. */
int pmu_field(struct pmu_field *out, const char *root, const char *pmu, const char *name);

/* Reads "config:0-7,32-35". false: it is no such text. */
bool pmu_parse_field(struct pmu_field *out, const char *text);

/* Whether events/NAME is there, by any spelling as with perf, or by this one alone (quicker). */
bool pmu_has_alias(const char *root, const char *pmu, const char *name);
bool pmu_spells_alias(const char *root, const char *pmu, const char *name);

/* What events/NAME and the files beside it say. 0; -ENOENT; -EINVAL, -EFBIG; other -errno. */
int pmu_alias(struct pmu_alias *out, const char *root, const char *pmu, const char *name);

/* The names of terms, and of events without the files beside them; sorted. */
int pmu_fields(struct proc_names *out, const char *root, const char *pmu);
int pmu_aliases(struct proc_names *out, const char *root, const char *pmu);

#endif
