/* SPDX-License-Identifier: MIT */
/* A refused perf_event_open(2), as the files that explain it pass it around. */
#ifndef EVENT_FAILURE_H
#define EVENT_FAILURE_H

#include <stdbool.h>

#include <tally/attr.h>
#include <tally/error.h>
#include <tally/system.h>

#include "event/probe.h"

struct failure {
	struct tally_error *err;
	int code;
	const char *name, *root;
	const struct tally_attr *attr;
	int32_t tid, cpu;
	struct tally_system system;
	enum probe_kind probe;
};

/* Fills in the error; answers its code. */
TALLY_PRINTF(3, 4)
int say(const struct failure *f, enum tally_cause cause, const char *fmt, ...);

/* Whether the kernel is known to be older than that one. */
bool failure_kernel_older(const struct failure *f, long major, long minor);

/* EACCES and EPERM of all events but those below. */
int explain_permission(const struct failure *f);

/* What is told of probes and breakpoints alone. 0: nothing, another cause has to be found. */
int explain_probe(const struct failure *f);
int explain_breakpoint(const struct failure *f);

/* What EINVAL means; first what can be wrong with the place and the sampling alone (1: said it). */
int explain_bad_value(const struct failure *f);
int explain_invalid(const struct failure *f);

/* Whether it is an event of the CPU's own counters. */
bool is_hardware(const struct tally_attr *attr);
#endif
