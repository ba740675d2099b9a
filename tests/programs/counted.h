/* SPDX-License-Identifier: MIT */
/*
 * Three loops: 1000 times around by a branch that is taken; 500 times with one more that never is; 100
 * times with a call. The sums follow from the text.
 */
#ifndef PROGRAMS_COUNTED_H
#define PROGRAMS_COUNTED_H

/* Branches around, those that are never taken, and the loop's with the call. */
#define COUNTED_CONDITIONAL (1000 + 2 * 500 + 100)
/* The last time around each branch falls through; calls, returns, and the jump over the function. */
#define COUNTED_TAKEN    (999 + 499 + 99 + 100 + 100 + 1)
#define COUNTED_BRANCHES (COUNTED_CONDITIONAL + 100 + 100 + 1)
/* Both machines have one instruction for each line; the start of each loop, and the end. */
#define COUNTED_INSTRUCTIONS (1 + 1000 * 2 + 1 + 500 * 4 + 1 + 100 * 4 + 1 + 3)

#if defined(__x86_64__)
#define COUNTED_PROGRAM        \
	".text\n"              \
	".globl _start\n"      \
	"_start:\n"            \
	"	mov $1000, %ecx\n"   \
	"1:	dec %ecx\n"        \
	"	jnz 1b\n"            \
	"	mov $500, %ecx\n"    \
	"2:	test %ecx, %ecx\n" \
	"	js 5f\n"             \
	"	dec %ecx\n"          \
	"	jnz 2b\n"            \
	"	mov $100, %ebx\n"    \
	"3:	call 4f\n"         \
	"	dec %ebx\n"          \
	"	jnz 3b\n"            \
	"	jmp 6f\n"            \
	"4:	ret\n"             \
	"5:	ud2\n"             \
	"6:	mov $231, %eax\n"  \
	"	xor %edi, %edi\n"    \
	"	syscall\n"
#elif defined(__aarch64__)
#define COUNTED_PROGRAM        \
	".text\n"              \
	".globl _start\n"      \
	"_start:\n"            \
	"	mov x1, #1000\n"     \
	"1:	subs x1, x1, #1\n" \
	"	b.ne 1b\n"           \
	"	mov x1, #500\n"      \
	"2:	cmp x1, #0\n"      \
	"	b.mi 5f\n"           \
	"	sub x1, x1, #1\n"    \
	"	cbnz x1, 2b\n"       \
	"	mov x2, #100\n"      \
	"3:	bl 4f\n"           \
	"	sub x2, x2, #1\n"    \
	"	cbnz x2, 3b\n"       \
	"	b 6f\n"              \
	"4:	ret\n"             \
	"5:	udf #0\n"          \
	"6:	mov x8, #94\n"     \
	"	mov x0, #0\n"        \
	"	svc #0\n"
#endif

#endif
