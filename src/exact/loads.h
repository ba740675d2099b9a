/* SPDX-License-Identifier: MIT */
/* Code whose branches are known, to be counted. One file for each architecture. */
#ifndef EXACT_LOADS_H
#define EXACT_LOADS_H

#include <stdbool.h>
#include <stdint.h>

#include <tally/tracee.h>

enum load {
	LOAD_TAKEN,    /* conditional branches that are always taken */
	LOAD_NEVER,    /* mostly such that never are */
	LOAD_MIXED,    /* both, in turn */
	LOAD_JUMPS,    /* jumps, calls and returns between them */
	LOAD_ATOMIC,   /* locked instructions between */
	LOAD_SYSCALLS, /* system calls between */
	LOAD_LOOP,     /* x86: LOOP and JRCXZ */
	LOAD_REP,      /* x86: repeated string instructions between */
	LOADS,
};

/* What one iteration retires. All 0: this architecture has no such load. */
extern const struct tally_retired load_each[LOADS];

/* `n` iterations, at least 1. What is around them is the same each time. */
void load_run(enum load load, uint64_t n);

#endif
