/* SPDX-License-Identifier: MIT */
/*
 * Code that a program executes. The first byte says how wide it is. What is told never lies behind the
 * end, is the same whatever stands behind it, and what is cut off is unknown.
 */
#include <string.h>

#include "exact/insn.h"
#include "fuzz.h"

static void check_x86(const uint8_t *bytes, size_t len, unsigned bits)
{
	struct insn insn, alone, cut;

	insn_x86(&insn, bytes, len, bits);
	must(insn.len <= len && insn.len <= INSN_MAX);
	must((insn.len == 0) == ((insn.flags & TALLY_INSN_UNKNOWN) != 0));
	must(insn.how < INSN_HOWS);
	must(!(insn.flags & TALLY_INSN_CONDITIONAL) || (insn.flags & TALLY_INSN_BRANCH));
	if (!insn.len)
		return;
	insn_x86(&alone, bytes, insn.len, bits);
	must(memcmp(&insn, &alone, sizeof(insn)) == 0);
	insn_x86(&cut, bytes, insn.len - 1u, bits);
	must(cut.len == 0);
}

static void check_arm64(const uint8_t *bytes, size_t len)
{
	struct insn insn;
	uint32_t word;

	for (; len >= sizeof(word); bytes += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, bytes, sizeof(word));
		insn_arm64(&insn, word);
		must(insn.len == sizeof(word) && insn.how < INSN_HOWS);
		must(insn.relative <= ((insn.flags & TALLY_INSN_BRANCH) != 0));
		must(insn.target % 4 == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	if (data[0] % 3 == 2)
		check_arm64(data + 1, size - 1);
	else
		check_x86(data + 1, size - 1, data[0] % 3 ? 32 : 64);
	return 0;
}
