/* SPDX-License-Identifier: MIT */
/* Where a CPU sits, and which CPUs are on-line. */
#ifndef CLI_TOPOLOGY_H
#define CLI_TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>

struct topology {
	int32_t core, die, socket, node; /* core ids are unique within a die, die ids in a socket */
};

/* From /sys/devices/system/cpu/cpuN; what the kernel does not tell is 0, as for perf. */
struct topology topology_of(int32_t cpu);

/* The CPUs that are on-line; room for MAX_CPUS. false: the kernel does not tell. */
bool topology_online(int32_t *cpus, uint32_t *count);

#endif
