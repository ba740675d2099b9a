/* SPDX-License-Identifier: MIT */
/* From the marks in callchains to modes. */
#include <stddef.h>
#include <tally/record.h>
#include <tally/symbolizer.h>

#include "base/bytes.h"
#include "profile/context.h"

static const struct {
	uint64_t context;
	uint32_t mode;
} contexts[] = {
	{ TALLY_CONTEXT_HV, TALLY_MODE_HYPERVISOR },
	{ TALLY_CONTEXT_KERNEL, TALLY_MODE_KERNEL },
	{ TALLY_CONTEXT_USER, TALLY_MODE_USER },
	{ TALLY_CONTEXT_GUEST, TALLY_MODE_GUEST_USER },
	{ TALLY_CONTEXT_GUEST_KERNEL, TALLY_MODE_GUEST_KERNEL },
	{ TALLY_CONTEXT_GUEST_USER, TALLY_MODE_GUEST_USER },
};

uint32_t context_mode(uint64_t context)
{
	for (size_t i = 0; i < ARRAY_SIZE(contexts); i++)
		if (contexts[i].context == context)
			return contexts[i].mode;
	return TALLY_MODE_UNKNOWN;
}
