/* SPDX-License-Identifier: MIT */
/* What the symbolizer knows of tally_maps beyond its public header. */
#ifndef IMAGE_MAPS_H
#define IMAGE_MAPS_H

#include <stddef.h>
#include <tally/maps.h>

/*
 * The number of the mapping of `address` at `time`: equal for equal mappings, whatever process
 * inherited them. 0: none. -ENOMEM.
 */
int64_t maps_locate(struct tally_maps *maps, int32_t pid, uint64_t time, uint64_t address);

/*
 * What process `pid` had mapped at `time`, as a number: while it is the same, so is what maps_locate()
 * answers for each address, but for the kernel's. 0: no memory.
 */
uint64_t maps_space(struct tally_maps *maps, int32_t pid, uint64_t time);

/* Mapping `number` as it was added: what later ones covered of it is not cut off. */
void maps_mapping(const struct tally_maps *maps, uint32_t number, struct tally_mapping *out);

/* For which process it was added. */
int32_t maps_owner(const struct tally_maps *maps, uint32_t number);
/* Whether that was TALLY_MAPS_KERNEL. */
bool maps_is_kernel(const struct tally_maps *maps, uint32_t number);

/* Whether a file is a jitdump by its name. */
bool maps_is_jitdump(const char *path);
/* The next mapping of a jitdump by that process, from `*from` on, which begins with 0. 0: none. */
uint32_t maps_jitdump(const struct tally_maps *maps, int32_t pid, size_t *from);

#endif
