/* SPDX-License-Identifier: MIT */
/* Payloads of tracepoints by libtraceevent, which knows the kernel's own way of printing them. */
#ifndef PROFILE_TRACEEVENT_H
#define PROFILE_TRACEEVENT_H

#include "profile/format.h"
#include "profile/out.h"

struct traceevent;

/* The function at an address of the kernel; its start goes to `*start`, its module, NULL: the kernel
 * itself, to `*module`. NULL: none. */
typedef const char *traceevent_resolver(void *arg, uint64_t address, uint64_t *start,
					const char **module);

/*
 * -ENOENT: the library is not installed; -ENOMEM. `data` is borrowed. `library` is its name, NULL:
 * libtraceevent.so.1.
 */
int traceevent_new(struct traceevent **out, const struct tracing_data *data, const char *library,
		   traceevent_resolver *resolver, void *arg);

/* Puts a payload; false: the library does not know how. */
bool traceevent_put(struct traceevent *t, struct out *o, const struct format_text *format,
		    const void *raw, size_t len, int32_t cpu, uint64_t time);

void traceevent_free(struct traceevent *t);

#endif
