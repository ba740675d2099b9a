/* SPDX-License-Identifier: MIT */
/* Where in a stopped process an address is. */
#ifndef CLI_PLACE_H
#define CLI_PLACE_H

#include <stddef.h>
#include <stdint.h>

/*
 * "function+0x12 (module)", from the process's mappings as they are; "" when nothing names it. `process`
 * must not run meanwhile. `symbol` alone is the part before the blank.
 */
struct place {
	char symbol[512];
	char module[256];
};

void place_find(struct place *out, int32_t process, uint64_t address);

#endif
