/* SPDX-License-Identifier: MIT */
/* The PMUs of this machine, from sysfs. */
#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/bytes.h"
#include "event/pmu.h"

#define UNCORE "uncore_"

/* Fewer hex digits are a word to perf(1), as in cpum_cf; more are an address. */
#define HEX_SUFFIX_MIN 3

/* -- paths ------------------------------------------------------------------------------------ */

/* A file name and nothing else: no way out of the folder. */
static bool is_file_name(const char *name)
{
	return name[0] && name[0] != '.' && !strchr(name, '/');
}

/* PMU_FOLDER/pmu/file, or /folder/file. -ENOENT when one of them cannot be a file's name. */
static int pmu_path(char *out, size_t size, const char *pmu, const char *folder, const char *file)
{
	if (!is_file_name(pmu) || !is_file_name(file))
		return -ENOENT;
	int n = snprintf(out, size, PMU_FOLDER "/%s%s/%s", pmu, folder, file);
	return n < 0 || (size_t)n >= size ? -ENOENT : 0;
}

/* 0 or -errno; -EFBIG when there is more than fits. */
static int read_text(char *out, size_t size, const char *root, const char *pmu, const char *folder,
		     const char *file)
{
	char path[PATH_MAX];
	int r = pmu_path(path, sizeof(path), pmu, folder, file);

	if (r == 0)
		r = proc_read_line(out, size, root, path);
	if (r < 0)
		return r;
	size_t len = strlen(out);
	if (len + 1 >= size)
		return -EFBIG;
	while (len && isspace((unsigned char)out[len - 1]))
		out[--len] = '\0';
	return 0;
}

static bool exists(const char *root, const char *pmu, const char *folder, const char *file)
{
	char path[PATH_MAX], full[PATH_MAX];

	return pmu_path(path, sizeof(path), pmu, folder, file) == 0 &&
	       proc_path(full, sizeof(full), root, path) == 0 && access(full, F_OK) == 0;
}

/* -- names of PMUs ---------------------------------------------------------------------------- */

size_t pmu_base_length(const char *name)
{
	size_t len = strlen(name), hex = 0, decimal = 0;

	while (hex < len && isxdigit((unsigned char)name[len - 1 - hex]))
		hex++;
	while (decimal < hex && isdigit((unsigned char)name[len - 1 - decimal]))
		decimal++;
	bool numbered = hex && hex + 1 < len && name[len - 1 - hex] == '_';
	return numbered && (decimal == hex || hex >= HEX_SUFFIX_MIN) ? len - hex - 1 : len;
}

/* "hisi_sccl1_ddrc" also means hisi_sccl1_ddrc0, but a5 does not mean a53. */
static bool is_same_but_number(const char *name, const char *wanted)
{
	size_t len = strlen(wanted);

	if (strncmp(name, wanted, len))
		return false;
	if (!name[len] || pmu_base_length(name) == len)
		return true;
	return len && !isdigit((unsigned char)wanted[len - 1]) &&
	       !name[len + strspn(name + len, "0123456789")];
}

bool pmu_is_meant(const char *name, const char *pattern)
{
	const char *rest = strncmp(name, UNCORE, strlen(UNCORE)) ? NULL : name + strlen(UNCORE);

	if (strpbrk(pattern, "*?["))
		return fnmatch(pattern, name, 0) == 0 || (rest && fnmatch(pattern, rest, 0) == 0);
	return is_same_but_number(name, pattern) || (rest && is_same_but_number(rest, pattern));
}

int pmu_names(struct proc_names *out, const char *root)
{
	return proc_list_names(out, root, PMU_FOLDER);
}

/* -- one PMU ---------------------------------------------------------------------------------- */

/* 1: read, 0: there is no such file, -errno. */
static int read_cpus(struct pmu *pmu, const char *root, const char *file)
{
	char path[PATH_MAX];
	struct buf text = { 0 };
	int r = pmu_path(path, sizeof(path), pmu->name, "", file);

	if (r == 0)
		r = proc_read(&text, root, path, 65536);
	int count = r < 0 ? r : !buf_text(&text) ? -ENOMEM : proc_parse_cpus(text.at, NULL, 0);
	if (count > 0) {
		pmu->cpus = calloc((size_t)count, sizeof(*pmu->cpus));
		pmu->cpu_count = pmu->cpus ? (uint32_t)count : 0;
		if (pmu->cpus)
			proc_parse_cpus(text.at, pmu->cpus, (size_t)count);
		else
			count = -ENOMEM;
	}
	buf_done(&text);
	return count >= 0 ? 1 : count == -ENOENT ? 0 : count;
}

/* 1: filled in; 0: it counts nowhere, as its CPUs are all offline; -errno. */
static int load(struct pmu *pmu, const char *root)
{
	char path[PATH_MAX];
	int64_t type;
	int r = pmu_path(path, sizeof(path), pmu->name, "", "type");

	if (r == 0)
		r = proc_read_i64(&type, root, path);
	if (r < 0 || type < 0 || type > UINT32_MAX)
		return r < 0 ? r : -EINVAL;
	pmu->type = (uint32_t)type;
	int core = read_cpus(pmu, root, "cpus");
	int mask = core ? core : read_cpus(pmu, root, "cpumask");
	if (core < 0 || mask < 0)
		return core < 0 ? core : mask;
	pmu->core = core || !strcmp(pmu->name, "cpu") || !strcmp(pmu->name, "cpum_cf");
	pmu->per_cpu = !core && mask;
	return pmu->cpu_count || !mask;
}

static bool may_be_core(const char *root, const char *name)
{
	return !strcmp(name, "cpu") || !strcmp(name, "cpum_cf") || exists(root, name, "", "cpus");
}

/* Appends the PMU if it counts somewhere. */
static int add(pmus *out, const char *root, const char *name)
{
	struct pmu *pmu = vec_push(out);

	if (!pmu)
		return -ENOMEM;
	memcpy(pmu->name, name, strlen(name) + 1);
	int r = load(pmu, root);
	if (r > 0)
		return 0;
	free(pmu->cpus);
	pmu->cpus = NULL;
	if (r < 0)
		memmove(out->at[0].name, pmu->name, sizeof(pmu->name));
	else
		out->count--;
	return r;
}

int pmus_find(pmus *out, const char *root, const char *name)
{
	struct proc_names names;
	int r = pmu_names(&names, root);

	if (r == -ENOENT)
		return 0;
	for (size_t i = 0; r == 0 && i < names.count; i++) {
		const char *candidate = names.at[i];
		if (strlen(candidate) <= PMU_MAX_NAME &&
		    (name ? pmu_is_meant(candidate, name) : may_be_core(root, candidate)))
			r = add(out, root, candidate);
	}
	proc_names_done(&names);
	return r;
}

int pmu_core_kinds(const char *root)
{
	struct proc_names names;
	int r = pmu_names(&names, root), count = 0;

	for (size_t i = 0; i < names.count; i++)
		count += may_be_core(root, names.at[i]);
	proc_names_done(&names);
	return r == -ENOMEM ? r : count;
}

void pmus_done(pmus *list)
{
	vec_each (list, pmu)
		free(pmu->cpus);
	vec_done(list);
}

/* -- format/ ---------------------------------------------------------------------------------- */

/* A number of at most three digits, stepped over. */
static bool take_number(const char **text, unsigned *out)
{
	size_t digits = strspn(*text, "0123456789");

	if (!digits || digits > 3)
		return false;
	*out = (unsigned)strtoul(*text, NULL, 10);
	*text += digits;
	return true;
}

static bool take_range(const char **text, uint64_t *bits)
{
	unsigned first, last;

	if (!take_number(text, &first))
		return false;
	last = first;
	if (**text == '-' && ((*text)++, !take_number(text, &last)))
		return false;
	if (last < first || last > 63)
		return false;
	*bits |= (UINT64_MAX >> (63 - (last - first))) << first;
	return true;
}

bool pmu_parse_field(struct pmu_field *out, const char *text)
{
	uint64_t bits = 0;
	unsigned word = 0;

	if (strncmp(text, "config", 6))
		return false;
	text += 6;
	if (*text != ':' && (!take_number(&text, &word) || word >= PMU_WORDS || *text != ':'))
		return false;
	do {
		text++;
		if (!take_range(&text, &bits))
			return false;
	} while (*text == ',');
	if (*text)
		return false;
	*out = (struct pmu_field){ word, bits };
	return true;
}

int pmu_field(struct pmu_field *out, const char *root, const char *pmu, const char *name)
{
	char text[256];
	int r = read_text(text, sizeof(text), root, pmu, "/format", name);

	if (r < 0)
		return r;
	return pmu_parse_field(out, text) ? 0 : -EINVAL;
}

int pmu_fields(struct proc_names *out, const char *root, const char *pmu)
{
	char path[PATH_MAX];

	*out = (struct proc_names){ 0 };
	int r = pmu_path(path, sizeof(path), pmu, "", "format");
	return r < 0 ? r : proc_list_names(out, root, path);
}

/* -- events/ ---------------------------------------------------------------------------------- */

/* The files that say more about the event before the dot. */
static bool is_beside(const char *name)
{
	static const char *const ends[] = { ".scale", ".unit", ".per-pkg", ".snapshot" };
	const char *dot = strrchr(name, '.');

	for (size_t i = 0; dot && i < ARRAY_SIZE(ends); i++)
		if (!strcmp(dot, ends[i]))
			return true;
	return false;
}

int pmu_aliases(struct proc_names *out, const char *root, const char *pmu)
{
	char path[PATH_MAX];
	size_t kept = 0;

	*out = (struct proc_names){ 0 };
	int r = pmu_path(path, sizeof(path), pmu, "", "events");
	if (r == 0)
		r = proc_list_names(out, root, path);
	for (size_t i = 0; i < out->count; i++)
		if (is_beside(out->at[i]))
			free(out->at[i]);
		else
			out->at[kept++] = out->at[i];
	out->count = kept;
	return r;
}

/* How it is spelled in the folder. 0 or -errno. */
static int spelling(char *out, size_t size, const char *root, const char *pmu, const char *name)
{
	struct proc_names names;
	int r = is_beside(name) || strlen(name) >= size ? -ENOENT : 0;

	if (r == 0 && exists(root, pmu, "/events", name)) {
		memcpy(out, name, strlen(name) + 1);
		return 0;
	}
	if (r == 0)
		r = pmu_aliases(&names, root, pmu);
	if (r < 0)
		return r;
	r = -ENOENT;
	for (size_t i = 0; r < 0 && i < names.count; i++)
		if (!strcasecmp(names.at[i], name)) {
			memcpy(out, names.at[i], strlen(name) + 1);
			r = 0;
		}
	proc_names_done(&names);
	return r;
}

bool pmu_has_alias(const char *root, const char *pmu, const char *name)
{
	char found[256];

	return spelling(found, sizeof(found), root, pmu, name) == 0;
}

bool pmu_spells_alias(const char *root, const char *pmu, const char *name)
{
	return !is_beside(name) && exists(root, pmu, "/events", name);
}

/* A factor as the kernel writes it, whatever the program's locale has for a point. */
static bool parse_scale(const char *text, double *out)
{
	locale_t c = newlocale(LC_ALL_MASK, "C", NULL);
	char *end;

	if (!c)
		return false;
	*out = strtod_l(text, &end, c);
	freelocale(c);
	return end != text && !*end && isfinite(*out) && *out > 0;
}

/* A file beside an event. 1: read; 0: it is not there; -errno. */
static int read_beside(char *out, size_t size, const char *root, const char *pmu, const char *alias,
		       const char *end)
{
	char file[300];

	snprintf(file, sizeof(file), "%s%s", alias, end);
	int r = read_text(out, size, root, pmu, "/events", file);
	return r == -ENOENT ? 0 : r < 0 ? r : 1;
}

static int read_flag(bool *out, const char *root, const char *pmu, const char *alias,
		     const char *end)
{
	char text[16];
	int r = read_beside(text, sizeof(text), root, pmu, alias, end);

	*out = r > 0 && !strcmp(text, "1");
	return r < 0 ? r : 0;
}

int pmu_alias(struct pmu_alias *out, const char *root, const char *pmu, const char *name)
{
	char found[256], scale[64];

	*out = (struct pmu_alias){ .scale = 1.0 };
	int r = spelling(found, sizeof(found), root, pmu, name);
	if (r == 0)
		r = read_text(out->terms, sizeof(out->terms), root, pmu, "/events", found);
	if (r < 0)
		return r;
	r = read_beside(scale, sizeof(scale), root, pmu, found, ".scale");
	if (r < 0 || (r > 0 && !parse_scale(scale, &out->scale)))
		return r < 0 ? r : -EINVAL;
	r = read_beside(out->unit, sizeof(out->unit), root, pmu, found, ".unit");
	if (r >= 0)
		r = read_flag(&out->per_package, root, pmu, found, ".per-pkg");
	return r < 0 ? r : read_flag(&out->snapshot, root, pmu, found, ".snapshot");
}
