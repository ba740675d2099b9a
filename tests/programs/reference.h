/* SPDX-License-Identifier: MIT */
/* A line of what reference-step writes. */
#ifndef PROGRAMS_REFERENCE_H
#define PROGRAMS_REFERENCE_H

#include <stdint.h>
#include <sys/user.h>

struct reference_row {
	uint64_t conditional; /* branches that were executed before */
	struct user_regs_struct regs;
	struct user_fpregs_struct vector;
};

#endif
