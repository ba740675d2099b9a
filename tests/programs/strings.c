/* SPDX-License-Identifier: MIT */
/*
 * Instructions of x86-64 that valgrind counts otherwise: 70 times LOOP, twice JRCXZ, and a REP MOVSB of
 * 64 bytes, which is one instruction to the hardware. No conditional jump but these.
 */
__asm__(".data\n"
	"from:	.zero 64\n"
	"to:	.zero 64\n"
	".text\n"
	".globl _start\n"
	"_start:\n"
	"	mov $70, %ecx\n"
	"1:	loop 1b\n"
	"	jrcxz 2f\n"
	"	ud2\n"
	"2:	mov $64, %ecx\n"
	"	jrcxz 3f\n"
	"3:	lea from(%rip), %rsi\n"
	"	lea to(%rip), %rdi\n"
	"	rep movsb\n"
	"	mov $231, %eax\n"
	"	xor %edi, %edi\n"
	"	syscall\n");
