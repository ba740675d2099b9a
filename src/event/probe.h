/* SPDX-License-Identifier: MIT */
/* Probes: kprobe:FUNC, kretprobe:FUNC, uprobe:PATH:SYMBOL, uretprobe:PATH:SYMBOL. */
#ifndef EVENT_PROBE_H
#define EVENT_PROBE_H

#include "event/resolve.h"

resolve_source probe_resolve;

enum probe_kind {
	PROBE_NONE,
	PROBE_KERNEL,
	PROBE_USER,
};

/* Whether an attr is of one of the PMUs of probes, whose types are in sysfs below `root`. */
enum probe_kind probe_kind_of(const struct tally_attr *attr, const char *root);

#endif
