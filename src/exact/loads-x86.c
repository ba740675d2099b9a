/* SPDX-License-Identifier: MIT */
/* Code whose branches are known: x86-64. */
#include <sys/syscall.h>

#include "exact/loads.h"

const struct tally_retired load_each[LOADS] = {
	[LOAD_TAKEN] = { .instructions = 2, .branches = 1, .conditional = 1, .taken = 1 },
	[LOAD_NEVER] = { .instructions = 18, .branches = 9, .conditional = 9, .taken = 1 },
	/* The one without NOP skips it. */
	[LOAD_MIXED] = { .instructions = 7, .branches = 3, .conditional = 3, .taken = 2 },
	[LOAD_JUMPS] = { .instructions = 6, .branches = 5, .conditional = 1, .taken = 5 },
	[LOAD_ATOMIC] = { .instructions = 3, .branches = 1, .conditional = 1, .taken = 1 },
	[LOAD_SYSCALLS] = { .instructions = 4, .branches = 1, .conditional = 1, .taken = 1 },
	[LOAD_LOOP] = { .instructions = 2, .branches = 2, .conditional = 2, .taken = 1 },
	[LOAD_REP] = { .instructions = 5, .branches = 1, .conditional = 1, .taken = 1 },
};

static void taken(uint64_t n)
{
	__asm__ volatile("1: dec %0\n\t"
			 "jnz 1b"
			 : "+r"(n)
			 :
			 : "cc");
}

static void never(uint64_t n)
{
	__asm__ volatile("1:\n\t"
			 ".rept 8\n\t"
			 "test %0, %0\n\t"
			 "jz 2f\n\t"
			 ".endr\n\t"
			 "dec %0\n\t"
			 "jnz 1b\n\t"
			 "2:"
			 : "+r"(n)
			 :
			 : "cc");
}

static void mixed(uint64_t n)
{
	uint64_t bit = 0;

	__asm__ volatile("1: xor $1, %1\n\t"
			 "jz 2f\n\t"
			 "nop\n\t"
			 "2: xor $1, %1\n\t"
			 "jz 3f\n\t"
			 "nop\n\t"
			 "3: dec %0\n\t"
			 "jnz 1b"
			 : "+r"(n), "+r"(bit)
			 :
			 : "cc");
}

/* The call keeps off the 128 bytes below the stack pointer, which are the compiler's (ABI, 3.2.2). */
static void jumps(uint64_t n)
{
	__asm__ volatile("lea -128(%%rsp), %%rsp\n\t"
			 "1: jmp 2f\n\t"
			 "2: call 3f\n\t"
			 "jmp 4f\n\t"
			 "3: ret\n\t"
			 "4: dec %0\n\t"
			 "jnz 1b\n\t"
			 "lea 128(%%rsp), %%rsp"
			 : "+r"(n)
			 :
			 : "cc", "memory");
}

static void atomic(uint64_t n)
{
	uint32_t word = 0;

	__asm__ volatile("1: lock addl $1, %1\n\t"
			 "dec %0\n\t"
			 "jnz 1b"
			 : "+r"(n), "+m"(word)
			 :
			 : "cc");
}

static void syscalls(uint64_t n)
{
	__asm__ volatile("1: mov %1, %%eax\n\t"
			 "syscall\n\t"
			 "dec %0\n\t"
			 "jnz 1b"
			 : "+r"(n)
			 : "i"(SYS_getppid)
			 : "rax", "rcx", "r11", "cc", "memory");
}

static void loop(uint64_t n)
{
	__asm__ volatile("1: jrcxz 2f\n\t"
			 "loop 1b\n\t"
			 "2:"
			 : "+c"(n));
}

static void rep(uint64_t n)
{
	char bytes[4];
	char *at = bytes;
	uint64_t count;

	__asm__ volatile("1: mov %3, %1\n\t"
			 "mov $4, %%ecx\n\t"
			 "rep stosb\n\t"
			 "dec %0\n\t"
			 "jnz 1b"
			 : "+r"(n), "=&D"(at), "=&c"(count)
			 : "r"(bytes), "a"(0)
			 : "cc", "memory");
}

void load_run(enum load load, uint64_t n)
{
	static void (*const runs[LOADS])(uint64_t) = {
		[LOAD_TAKEN] = taken, [LOAD_NEVER] = never,   [LOAD_MIXED] = mixed,
		[LOAD_JUMPS] = jumps, [LOAD_ATOMIC] = atomic, [LOAD_SYSCALLS] = syscalls,
		[LOAD_LOOP] = loop,   [LOAD_REP] = rep,
	};

	runs[load](n);
}
