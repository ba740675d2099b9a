/* SPDX-License-Identifier: MIT */
/* Sockets, dies, cores and nodes, as Documentation/admin-guide/cputopology.rst has them. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "targets.h"
#include "topology.h"

/* An id is -1 where the architecture does not know it. */
static int32_t read_id(int32_t cpu, const char *name)
{
	char path[96];
	int id = 0;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/%s", cpu, name);
	FILE *file = fopen(path, "re");
	if (!file)
		return 0;
	if (fscanf(file, "%d", &id) != 1 || id < 0)
		id = 0;
	fclose(file);
	return id;
}

/* A NUMA node is a folder nodeN beside the CPU's files. */
static int32_t read_node(int32_t cpu)
{
	char path[64];
	int node = 0;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d", cpu);
	DIR *folder = opendir(path);
	if (!folder)
		return 0;
	for (const struct dirent *entry; (entry = readdir(folder));)
		if (!strncmp(entry->d_name, "node", 4) && entry->d_name[4])
			node = atoi(entry->d_name + 4);
	closedir(folder);
	return node;
}

struct topology topology_of(int32_t cpu)
{
	return (struct topology){
		.core = read_id(cpu, "core_id"),
		.die = read_id(cpu, "die_id"),
		.socket = read_id(cpu, "physical_package_id"),
		.node = read_node(cpu),
	};
}

bool topology_online(int32_t *cpus, uint32_t *count)
{
	char text[4096];
	FILE *file = fopen("/sys/devices/system/cpu/online", "re");

	if (!file)
		return false;
	bool good = fgets(text, sizeof(text), file);
	fclose(file);
	if (!good)
		return false;
	text[strcspn(text, "\n")] = '\0';
	return cpus_parse(text, cpus, count);
}
