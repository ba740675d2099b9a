/* SPDX-License-Identifier: MIT */
/* Code whose branches are known: arm64. */
#include <sys/syscall.h>

#include "exact/loads.h"

const struct tally_retired load_each[LOADS] = {
	[LOAD_TAKEN] = { .instructions = 2, .branches = 1, .conditional = 1, .taken = 1 },
	[LOAD_NEVER] = { .instructions = 10, .branches = 9, .conditional = 9, .taken = 1 },
	[LOAD_MIXED] = { .instructions = 7, .branches = 3, .conditional = 3, .taken = 2 },
	[LOAD_JUMPS] = { .instructions = 6, .branches = 5, .conditional = 1, .taken = 5 },
	[LOAD_ATOMIC] = { .instructions = 7, .branches = 2, .conditional = 2, .taken = 1 },
	[LOAD_SYSCALLS] = { .instructions = 4, .branches = 1, .conditional = 1, .taken = 1 },
};

static void taken(uint64_t n)
{
	__asm__ volatile("1: subs %0, %0, #1\n\t"
			 "b.ne 1b"
			 : "+r"(n)
			 :
			 : "cc");
}

static void never(uint64_t n)
{
	__asm__ volatile("1:\n\t"
			 ".rept 8\n\t"
			 "cbz %0, 2f\n\t"
			 ".endr\n\t"
			 "subs %0, %0, #1\n\t"
			 "b.ne 1b\n\t"
			 "2:"
			 : "+r"(n)
			 :
			 : "cc");
}

static void mixed(uint64_t n)
{
	uint64_t bit = 0;

	__asm__ volatile("1: eor %1, %1, #1\n\t"
			 "cbz %1, 2f\n\t"
			 "nop\n\t"
			 "2: eor %1, %1, #1\n\t"
			 "cbz %1, 3f\n\t"
			 "nop\n\t"
			 "3: subs %0, %0, #1\n\t"
			 "b.ne 1b"
			 : "+r"(n), "+r"(bit)
			 :
			 : "cc");
}

static void jumps(uint64_t n)
{
	__asm__ volatile("1: b 2f\n\t"
			 "2: bl 3f\n\t"
			 "b 4f\n\t"
			 "3: ret\n\t"
			 "4: subs %0, %0, #1\n\t"
			 "b.ne 1b"
			 : "+r"(n)
			 :
			 : "cc", "x30");
}

/* Exclusive, since counters have been seen to count its failures; it does not fail here, mostly. */
static void atomic(uint64_t n)
{
	uint64_t word = 0, value, failed;

	__asm__ volatile("1: ldxr %1, [%3]\n\t"
			 "add %1, %1, #1\n\t"
			 "stxr %w2, %1, [%3]\n\t"
			 "cbnz %w2, 1b\n\t"
			 "nop\n\t"
			 "subs %0, %0, #1\n\t"
			 "b.ne 1b"
			 : "+r"(n), "=&r"(value), "=&r"(failed)
			 : "r"(&word)
			 : "cc", "memory");
}

static void syscalls(uint64_t n)
{
	__asm__ volatile("1: mov x8, %1\n\t"
			 "svc #0\n\t"
			 "subs %0, %0, #1\n\t"
			 "b.ne 1b"
			 : "+r"(n)
			 : "i"(SYS_getppid)
			 : "x0", "x8", "cc", "memory");
}

void load_run(enum load load, uint64_t n)
{
	static void (*const runs[LOADS])(uint64_t) = {
		[LOAD_TAKEN] = taken, [LOAD_NEVER] = never,   [LOAD_MIXED] = mixed,
		[LOAD_JUMPS] = jumps, [LOAD_ATOMIC] = atomic, [LOAD_SYSCALLS] = syscalls,
	};

	if (runs[load])
		runs[load](n);
}
