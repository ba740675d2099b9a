/* SPDX-License-Identifier: MIT */
/* The few functions of libdebuginfod, by its manual debuginfod_find_debuginfo(3). */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/dl.h"
#include "image/debuginfod.h"

#define LIBRARY "libdebuginfod.so.1"

struct client;
typedef int find_fn(struct client *client, const unsigned char *id, int len, char **path);

struct library {
	void *handle;
	struct client *(*begin)(void);
	void (*end)(struct client *client);
	find_fn *find[2]; /* by enum debuginfod_kind */
};

static bool load(struct library *l)
{
	const struct dl_symbol symbols[] = {
		{ "debuginfod_begin", &l->begin },
		{ "debuginfod_end", &l->end },
		{ "debuginfod_find_debuginfo", &l->find[DEBUGINFOD_DEBUG] },
		{ "debuginfod_find_executable", &l->find[DEBUGINFOD_PROGRAM] },
	};

	/* It stays loaded: libcurl, which it uses, does not like to be thrown out. */
	l->handle = dlopen(LIBRARY, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
	return l->handle && dl_find(l->handle, symbols, ARRAY_SIZE(symbols));
}

int debuginfod_open(const struct build_id *id, enum debuginfod_kind kind, char *path)
{
	char *kept = NULL;
	const char *urls = getenv("DEBUGINFOD_URLS");
	struct library l = { 0 };
	int r = -ENOSYS;

	if (!urls || !*urls)
		return -ENOSYS;
	if (!id->len)
		return -ENOENT;
	struct client *client = load(&l) ? l.begin() : NULL;
	if (client) {
		r = l.find[kind](client, id->bytes, (int)id->len, &kept);
		l.end(client);
	}
	if (l.handle)
		dlclose(l.handle);
	if (r >= 0 && path)
		snprintf(path, PATH_MAX, "%s", kept ? kept : "");
	free(kept);
	return r;
}
