/* SPDX-License-Identifier: MIT */
/* A program's start and its system calls, arm64. */
#ifndef PROGRAMS_GUEST_ARM64_H
#define PROGRAMS_GUEST_ARM64_H

__asm__(".text\n"
	".globl _start\n"
	"_start:\n"
	"	mov x29, #0\n"
	"	mov x0, sp\n"
	"	bl guest_begin\n");

static inline long guest_call(long number, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc #0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
}

/* The kernel has one of its own in the vDSO; this is for sa_restorer all the same. */
void guest_restore(void);
__asm__(".text\n"
	".globl guest_restore\n"
	"guest_restore:\n"
	"	mov x8, #139\n"
	"	svc #0\n");

long guest_clone(unsigned long flags, void *stack_end, void (*function)(void));
__asm__(".text\n"
	".globl guest_clone\n"
	"guest_clone:\n"
	"	mov x9, x2\n"
	"	mov x2, #0\n"
	"	mov x3, #0\n"
	"	mov x4, #0\n"
	"	mov x8, #220\n"
	"	svc #0\n"
	"	cbnz x0, 1f\n"
	"	blr x9\n"
	"	mov x0, #0\n"
	"	mov x8, #93\n"
	"	svc #0\n"
	"1:	ret\n");

/* So many conditional branches, at least one. */
static inline void guest_branches(unsigned long count)
{
	__asm__ volatile("1:	subs %0, %0, #1\n"
			 "	b.ne 1b"
			 : "+r"(count)
			 :
			 : "cc");
}

/* Reads the clock; nothing traps it here. */
static inline void guest_read_clock(void)
{
	__asm__ volatile("mrs x9, cntvct_el0" ::: "x9");
}

/* The kernel leaves the pc at it; a handler has to move it. */
#define GUEST_BREAKPOINT() __asm__ volatile("brk #0" ::: "memory")

#endif
