/* SPDX-License-Identifier: MIT */
/* Where in a stopped process an address is. */
#ifndef CLI_PLACE_H
#define CLI_PLACE_H

#include <stddef.h>
#include <stdint.h>

/* From the process's mappings as they are: it must not run meanwhile. "": nothing names it. */
struct place {
	char symbol[512]; /* function+0x12 */
	char module[256];
	char line[512]; /* file:12, where the program has debugging information */
};

void place_find(struct place *out, int32_t process, uint64_t address);

#endif
