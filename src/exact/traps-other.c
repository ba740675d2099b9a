/* SPDX-License-Identifier: MIT */
/* Where there is no instruction of this kind that could be trapped. */
#include "exact/traps.h"

const long traps_cpuid_call = -1;
const uint64_t traps_cpuid_what = 0;

int traps_try(uint32_t flag)
{
	return 1;
}
