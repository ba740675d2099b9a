/* SPDX-License-Identifier: MIT */
/* Which CPU this is, spelled as the mapfile.csv of perf's event tables spells it. */
#ifndef EVENT_CPU_H
#define EVENT_CPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CPU_IDENTITY_MAX 80

/*
 * x86: vendor, family in decimal, model and stepping in hex ("GenuineIntel-6-55-4"); arm64: the MIDR
 * of `cpu`, or of the first one online when that is negative ("0x00000000410fd0c0"); RISC-V: mvendorid, marchid and mimpid. Read
 * below `root`, so that another machine's tree tells what that machine is. -ENOENT: nothing there
 * tells; or -errno of the files.
 */
int cpu_identity(char out[CPU_IDENTITY_MAX], const char *root, int32_t cpu);

/*
 * Whether a row's first column means this CPU. MIDRs: the same part, of this variant and revision
 * or a later one. The others: the pattern, an extended regular expression, matches the whole
 * identity, with its stepping or, as most rows are, without. A pattern with back-references, counted
 * repetition or many others, which can take forever, matches nothing; no table has one.
 */
bool cpu_matches(const char *pattern, const char *identity);

#endif
