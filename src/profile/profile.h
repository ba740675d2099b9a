/* SPDX-License-Identifier: MIT */
/*
 * A profile's tables, for the outputs: they walk over all of it, an element at a time. Texts are
 * ids in `strings`.
 */
#ifndef PROFILE_PROFILE_H
#define PROFILE_PROFILE_H

#include <tally/profile.h>

#include "base/hash.h"
#include "image/build-id.h"
#include "profile/pool.h"

#define NO_NAME UINT32_MAX

struct event {
	uint32_t name, unit;
};

struct thread {
	int32_t pid, tid;
	uint32_t comm;
};

struct module {
	uint32_t name, path, build_id_len;
	uint8_t build_id[BUILD_ID_MAX];
};

struct function {
	int32_t module;
	uint32_t name; /* or NO_NAME */
	uint32_t mode;
	uint32_t inlined; /* into its caller; end of the key */
	uint32_t label;
};

struct location {
	int32_t function;
	uint32_t source; /* "file:line"; 0: unknown */
	uint64_t address;
};

struct stack {
	int32_t parent, location;
};

struct row {
	int32_t event, thread, stack; /* the key */
	uint32_t reserved;
	uint64_t samples, weight;
};

struct tally_profile {
	struct strings strings;
	struct pool events, threads, modules, functions, locations, stacks, rows;
};

static inline const struct event *event_at(const struct tally_profile *p, uint32_t i)
{
	return i < p->events.count ? (const struct event *)p->events.at + i : NULL;
}

static inline const struct thread *thread_at(const struct tally_profile *p, uint32_t i)
{
	return i < p->threads.count ? (const struct thread *)p->threads.at + i : NULL;
}

static inline const struct module *module_at(const struct tally_profile *p, uint32_t i)
{
	return i < p->modules.count ? (const struct module *)p->modules.at + i : NULL;
}

static inline const struct function *function_at(const struct tally_profile *p, uint32_t i)
{
	return i < p->functions.count ? (const struct function *)p->functions.at + i : NULL;
}

static inline const struct location *location_at(const struct tally_profile *p, uint32_t i)
{
	return i < p->locations.count ? (const struct location *)p->locations.at + i : NULL;
}

static inline const struct stack *stack_at(const struct tally_profile *p, uint32_t i)
{
	return i < p->stacks.count ? (const struct stack *)p->stacks.at + i : NULL;
}

static inline const struct row *row_at(const struct tally_profile *p, uint32_t i)
{
	return i < p->rows.count ? (const struct row *)p->rows.at + i : NULL;
}

/* The function in which a stack ends; every stack has one. */
static inline uint32_t stack_function(const struct tally_profile *p, uint32_t stack)
{
	return (uint32_t)location_at(p, (uint32_t)stack_at(p, stack)->location)->function;
}

static inline const char *text_of(const struct tally_profile *p, uint32_t id)
{
	return strings_get(&p->strings, id);
}

#endif
