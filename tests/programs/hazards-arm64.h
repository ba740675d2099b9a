/* SPDX-License-Identifier: MIT */
/* Instructions of arm64 that do not complete when they are interrupted. */
#ifndef PROGRAMS_HAZARDS_ARM64_H
#define PROGRAMS_HAZARDS_ARM64_H

static uint64_t shared_word;

/* An addition and an exchange under a condition, as compilers make them without LSE. */
static int hazard_exclusive(void)
{
	uint64_t old, wanted = 100, next = 7;
	uint32_t failed;

	for (int i = 0; i < 100; i++)
		__asm__ volatile("1:	ldxr %0, [%2]\n"
				 "	add %0, %0, #1\n"
				 "	stxr %w1, %0, [%2]\n"
				 "	cbnz %w1, 1b\n"
				 : "=&r"(old), "=&r"(failed)
				 : "r"(&shared_word)
				 : "memory");
	for (int i = 0; i < 2; i++)
		__asm__ volatile("1:	ldaxr %0, [%2]\n"
				 "	cmp %0, %3\n"
				 "	b.ne 2f\n"
				 "	stlxr %w1, %4, [%2]\n"
				 "	cbnz %w1, 1b\n"
				 "2:\n"
				 : "=&r"(old), "=&r"(failed)
				 : "r"(&shared_word), "r"(wanted), "r"(next)
				 : "memory", "cc");
	guest_say_hex("word ", shared_word);
	return shared_word != 7 || old != 7;
}

/* 1, by a load-exclusive and its store. */
static uint64_t careful_one(void)
{
	uint64_t word = 0, value;
	uint32_t failed;

	__asm__ volatile("1:	ldxr %0, [%2]\n"
			 "	add %0, %0, #1\n"
			 "	stxr %w1, %0, [%2]\n"
			 "	cbnz %w1, 1b\n"
			 : "=&r"(value), "=&r"(failed)
			 : "r"(&word)
			 : "memory");
	return word;
}

/* struct ucontext of the kernel: the pc stands behind x0 to x30 and sp in its sigcontext. */
static void skip_breakpoint(void *context)
{
	uint64_t *regs = (uint64_t *)((char *)context + 176 + 8);

	regs[32] += 4;
}

#define HAZARDS_OF_MACHINE { "exclusive", hazard_exclusive },

/* There is none of which a plain step executes two. */
#define OTHERS_OF_MACHINE

#endif
