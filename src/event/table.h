/* SPDX-License-Identifier: MIT */
/* The generic events of the kernel's ABI, with perf(1)'s names for them. */
#ifndef EVENT_TABLE_H
#define EVENT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct table_entry {
	const char *name, *alias, *description; /* alias: may be NULL */
	uint32_t kind;                          /* enum tally_event_kind */
	uint32_t type;
	uint64_t config;
	char texts[128]; /* where a cache event's name and description are made */
};

/* The i-th event, by kind and name. false: beyond the end. */
bool table_at(size_t i, struct table_entry *out);

/*
 * The event that is called so, by name or alias, and for caches by any of perf's spellings.
 * Answers 1; 0 when there is none; -EINVAL for a cache and an operation that do not go together,
 * with `*why` saying so.
 */
int table_find(const char *name, size_t len, uint32_t *type, uint64_t *config, const char **why);

/* perf's first name for it, made in `out`. false: none. */
bool table_name(char *out, size_t size, uint32_t type, uint64_t config);

#endif
