/* SPDX-License-Identifier: MIT */
/* Time that a recording did not see because somebody else held the CPUs. */
#ifndef RECORDER_STOLEN_H
#define RECORDER_STOLEN_H

#include <stdint.h>

struct stolen {
	uint64_t steal_ns;            /* by the hypervisor, all CPUs: /proc/stat */
	uint64_t cgroup_throttled_ns; /* by the CPU quota of this process's cgroup: cpu.stat */
};

/* What it is by now, since boot or since the cgroup was made. What cannot be read is 0. */
void stolen_read(struct stolen *out, const char *root);

#endif
