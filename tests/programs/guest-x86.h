/* SPDX-License-Identifier: MIT */
/* A program's start and its system calls, x86-64. */
#ifndef PROGRAMS_GUEST_X86_H
#define PROGRAMS_GUEST_X86_H

__asm__(".text\n"
	".globl _start\n"
	"_start:\n"
	"	xor %ebp, %ebp\n"
	"	mov %rsp, %rdi\n"
	"	and $-16, %rsp\n"
	"	call guest_begin\n");

static inline long guest_call(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

/* The kernel calls it behind a handler: sa_restorer, rt_sigreturn(2). */
void guest_restore(void);
__asm__(".text\n"
	".globl guest_restore\n"
	"guest_restore:\n"
	"	mov $15, %eax\n"
	"	syscall\n");

/* clone(2) with a stack of its own, on which the function is called; its thread then exits. */
long guest_clone(unsigned long flags, void *stack_end, void (*function)(void));
__asm__(".text\n"
	".globl guest_clone\n"
	"guest_clone:\n"
	"	mov %rdx, %r12\n"
	"	xor %edx, %edx\n"
	"	xor %r10d, %r10d\n"
	"	xor %r8d, %r8d\n"
	"	mov $56, %eax\n"
	"	syscall\n"
	"	test %rax, %rax\n"
	"	jnz 1f\n"
	"	call *%r12\n"
	"	xor %edi, %edi\n"
	"	mov $60, %eax\n"
	"	syscall\n"
	"1:	ret\n");

/* So many conditional branches, at least one. */
static inline void guest_branches(unsigned long count)
{
	__asm__ volatile("1:	dec %0\n"
			 "	jnz 1b"
			 : "+r"(count)
			 :
			 : "cc");
}

/* Reads the clock that a tracer may trap. */
static inline void guest_read_clock(void)
{
	__asm__ volatile("rdtsc" ::: "rax", "rdx");
}

#define GUEST_BREAKPOINT() __asm__ volatile("int3" ::: "memory")

#endif
