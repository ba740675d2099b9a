/* SPDX-License-Identifier: MIT */
/* The features that tell how a machine is built, from /sys. */
#ifndef PERFDATA_TOPOLOGY_H
#define PERFDATA_TOPOLOGY_H

#include <tally/writer.h>

/*
 * CPU_TOPOLOGY of `cpus` CPUs, NUMA_TOPOLOGY, CACHE, PMU_MAPPINGS, MEM_TOPOLOGY, CPU_PMU_CAPS,
 * PMU_CAPS and HYBRID_TOPOLOGY. What /sys does not tell is left out. -ENOMEM.
 */
int topology_describe(struct tally_writer *writer, const char *root, uint32_t cpus);

#endif
