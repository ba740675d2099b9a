/* SPDX-License-Identifier: MIT */
/* Words for the causes of errors, and the library's version. */
#include <tally/error.h>

#include "base/bytes.h"

static const char *const names[] = {
	[TALLY_CAUSE_NONE] = "none",
	[TALLY_CAUSE_ARGUMENT] = "argument",
	[TALLY_CAUSE_SYNTAX] = "syntax",
	[TALLY_CAUSE_UNKNOWN] = "unknown",
	[TALLY_CAUSE_PARANOID] = "paranoid",
	[TALLY_CAUSE_PERMISSION] = "permission",
	[TALLY_CAUSE_SECCOMP] = "seccomp",
	[TALLY_CAUSE_NO_PMU] = "no-pmu",
	[TALLY_CAUSE_UNSUPPORTED] = "unsupported",
	[TALLY_CAUSE_NO_PROCESS] = "no-process",
	[TALLY_CAUSE_FD_LIMIT] = "fd-limit",
	[TALLY_CAUSE_MLOCK_LIMIT] = "mlock-limit",
	[TALLY_CAUSE_LIMIT] = "limit",
	[TALLY_CAUSE_BUSY] = "busy",
	[TALLY_CAUSE_MEMORY] = "memory",
	[TALLY_CAUSE_NO_FILE] = "no-file",
	[TALLY_CAUSE_CORRUPT] = "corrupt",
	[TALLY_CAUSE_TRUNCATED] = "truncated",
	[TALLY_CAUSE_IO] = "io",
	[TALLY_CAUSE_EXEC] = "exec",
};

const char *tally_cause_name(uint32_t cause)
{
	return cause < ARRAY_SIZE(names) ? names[cause] : "?";
}

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

const char *tally_version(void)
{
	return TEXT(TALLY_VERSION_MAJOR) "." TEXT(TALLY_VERSION_MINOR) "." TEXT(
		TALLY_VERSION_PATCH);
}
