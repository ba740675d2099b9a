/* SPDX-License-Identifier: MIT */
/* What Zydis says of an x86 instruction, where it was there when the tests were built. */
#ifndef TESTS_INSN_REFEREE_H
#define TESTS_INSN_REFEREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct referee_insn {
	uint8_t len;
	bool conditional, branch, repeated;
	bool careful; /* of those that a step shows itself by */
	const char *name;
};

bool referee_is_there(void);
/* false: it is no instruction, or one of a machine that nobody has. */
bool referee_decode(struct referee_insn *out, const uint8_t *bytes, size_t len, unsigned bits);

#endif
