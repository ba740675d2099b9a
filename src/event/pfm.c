/* SPDX-License-Identifier: MIT */
/*
 * libpfm4 by dlopen(3), so that whoever does not use its names needs not have it. Its ABI is declared
 * here, from pfm_get_os_event_encoding(3) and pfm_initialize(3); it has not changed since 4.0.
 */
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/dl.h"
#include "base/error.h"
#include "event/pfm.h"

/* pfm_err_t */
#define PFM_SUCCESS      0
#define PFM_ERR_NOTSUPP  (-1)
#define PFM_ERR_NOTFOUND (-4)

/* PFM_PLM0 | PFM_PLM3 | PFM_PLMH: kernel, user and hypervisor, as perf asks */
#define PFM_ALL_MODES     0x19
#define PFM_OS_PERF_EVENT 1

/* pfm_perf_encode_arg_t */
struct pfm_encode_arg {
	void *attr; /* struct perf_event_attr: it writes the fields that it knows */
	char **fstr;
	size_t size;
	int idx, cpu, flags, pad;
};

struct pfm {
	void *library;
	bool ours; /* nobody else in this process had loaded it */
	int (*initialize)(void);
	void (*terminate)(void);
	const char *(*strerror)(int code);
	int (*encode)(const char *name, int modes, int os, void *arg);
};

/*
 * libpfm4 keeps its state in variables of its own and locks nothing, and a process has one copy of
 * it. This lock keeps our own threads apart; it guards that state and holds none of ours.
 */
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

bool pfm_could_know(const char *name, size_t len)
{
	bool capital = false, joint = false, dot = false, pmu = false;

	for (size_t i = 0; i < len; i++) {
		char c = name[i];
		if (!isalnum((unsigned char)c) && !(c && strchr("_.:=-", c)))
			return false;
		capital |= c >= 'A' && c <= 'Z';
		joint |= c == '_' || c == ':';
		dot |= c == '.';
		pmu |= i > 0 && c == ':' && name[i - 1] == ':';
	}
	return len && isalpha((unsigned char)name[0]) && (pmu || dot || (capital && joint));
}

static void pfm_close(struct pfm *p)
{
	/* Somebody else who uses it would lose its tables. */
	if (p->ours && p->terminate)
		p->terminate();
	if (p->library)
		dlclose(p->library);
}

static bool find_symbols(struct pfm *p)
{
	const struct dl_symbol symbols[] = {
		{ "pfm_initialize", &p->initialize },
		{ "pfm_strerror", &p->strerror },
		{ "pfm_get_os_event_encoding", &p->encode },
		{ "pfm_terminate", &p->terminate },
	};

	return dl_find(p->library, symbols, sizeof(symbols) / sizeof(symbols[0]));
}

static int pfm_open(struct pfm *p, const char *library, struct tally_error *err)
{
	void *present = dlopen(library, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);

	*p = (struct pfm){ .ours = !present };
	p->library = present ? present : dlopen(library, RTLD_LAZY | RTLD_LOCAL);
	if (!p->library)
		return error_set(err, -ENOENT, TALLY_CAUSE_NO_FILE,
				 "%s is not installed: 'apt install libpfm4'", library);
	if (!find_symbols(p)) {
		p->ours = false;
		return error_set(err, -EINVAL, TALLY_CAUSE_UNSUPPORTED, "%s is no libpfm4",
				 library);
	}
	int r = p->initialize();
	if (r == PFM_SUCCESS)
		return 0;
	return error_set(err, -EINVAL, TALLY_CAUSE_UNSUPPORTED, "libpfm4 does not start: %s",
			 p->strerror(r));
}

static int encode(struct pfm *p, const char *name, struct tally_attr *out, struct tally_error *err)
{
	/* It writes by its own idea of the struct, which may be a newer one than ours. */
	union {
		struct tally_attr attr;
		char room[4 * TALLY_ATTR_SIZE_MAX];
	} bytes = { .room = { 0 } };
	struct pfm_encode_arg arg = { .attr = &bytes, .size = sizeof(arg) };

	int r = p->encode(name, PFM_ALL_MODES, PFM_OS_PERF_EVENT, &arg);
	if (r == PFM_ERR_NOTFOUND || r == PFM_ERR_NOTSUPP)
		return 0;
	if (r != PFM_SUCCESS)
		return error_set(err, -EINVAL, TALLY_CAUSE_UNKNOWN, "libpfm4 says of '%s': %s",
				 name, p->strerror(r));
	*out = bytes.attr;
	return 1;
}

int pfm_encode(const char *library, const char *name, struct tally_attr *attr,
	       struct tally_error *err)
{
	struct pfm p;

	pthread_mutex_lock(&one_at_a_time);
	int r = pfm_open(&p, library, err);
	if (r == 0)
		r = encode(&p, name, attr, err);
	pfm_close(&p);
	pthread_mutex_unlock(&one_at_a_time);
	return r;
}

/* The length of `text` without modifiers behind its last colon. */
static size_t without_modifiers(const char *text, size_t len)
{
	size_t at = len;

	while (at > 0 && strchr(RESOLVE_MODIFIERS, text[at - 1]))
		at--;
	return at > 1 && at < len && text[at - 1] == ':' && text[at - 2] != ':' ? at - 1 : len;
}

static bool names_pmu(const char *name)
{
	return strstr(name, "::") != NULL;
}

/*
 * Without its PMU a name is a vendor's: what libpfm4 calls generic events has the kernel's names here,
 * and differs from machine to machine.
 */
static bool is_vendors(const struct tally_attr *attr, const char *name)
{
	return names_pmu(name) || attr->type >= TALLY_TYPE_RAW;
}

static int found(const struct naming *n, const char *text, const struct tally_attr *attr,
		 struct found *out)
{
	if (attr->flags & (TALLY_ATTR_EXCLUDE_USER | TALLY_ATTR_EXCLUDE_KERNEL))
		return resolve_fail(n, text, TALLY_CAUSE_SYNTAX,
				    "the modes of an event come last in its name, as ':u'");
	struct found_event *e = found_add(out, attr->type, attr->config);
	if (!e)
		return error_nomem(n->err, "events");
	e->attr.config1 = attr->config1;
	e->attr.config2 = attr->config2;
	return 1;
}

static int missing(const struct naming *n, const char *text, const char *name, int code)
{
	if (!names_pmu(name))
		return 0;
	if (code < 0)
		error_prefix(n->err, "events, column %td: '%s' is a name of libpfm4's",
			     text - n->text + 1, name);
	return code < 0 ? code
			: resolve_fail(n, text, TALLY_CAUSE_UNKNOWN,
				       "libpfm4 has no event '%s' for this CPU", name);
}

int resolve_pfm(const struct naming *n, const char *text, size_t len, struct found *out)
{
	char name[RESOLVE_MAX_NAME + 1];
	struct tally_attr attr;
	size_t taken = without_modifiers(text, len);

	/* It looks at the machine that it runs on, which is not the one below `root`. */
	if (n->root || !pfm_could_know(text, len) || !resolve_copy(name, text, taken))
		return 0;
	int r = pfm_encode(PFM_LIBRARY, name, &attr, n->err);
	if (r == 0 || r == -ENOENT)
		return missing(n, text, name, r);
	if (r < 0) {
		error_prefix(n->err, "events, column %td", text - n->text + 1);
		return r;
	}
	if (!is_vendors(&attr, name))
		return 0;
	out->taken = taken;
	return found(n, text, &attr, out);
}
