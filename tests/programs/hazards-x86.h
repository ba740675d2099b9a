/* SPDX-License-Identifier: MIT */
/* Instructions of x86-64 that a tracer's step shows itself by. */
#ifndef PROGRAMS_HAZARDS_X86_H
#define PROGRAMS_HAZARDS_X86_H

#define TRAP_FLAG 0x100u

static int flags_are_clean(void)
{
	uint64_t pushed, short_pushed = 0;

	__asm__ volatile("pushfq\n\tpop %0" : "=r"(pushed)::"memory");
	__asm__ volatile("pushfw\n\tpopw %w0" : "+r"(short_pushed)::"memory");
	return !(pushed & TRAP_FLAG) && !(short_pushed & TRAP_FLAG);
}

static int hazard_pushf(void)
{
	int clean = 1;

	for (int i = 0; i < 5; i++)
		clean &= flags_are_clean();
	/* What was pushed comes back: a flag that was left in there would trap behind it. */
	__asm__ volatile("pushfq\n\tpopfq\n\tnop\n\tnop" ::: "memory", "cc");
	guest_say(clean ? "flags clean\n" : "trap flag pushed\n");
	return !clean;
}

/* Each instruction behind must be executed once: a lost trap would have two told as one. */
static int hazard_cpuid(void)
{
	uint64_t count = 0;

	for (int i = 0; i < 10; i++)
		__asm__ volatile("xor %%eax, %%eax\n\t"
				 "xor %%ecx, %%ecx\n\t"
				 "cpuid\n\t"
				 "inc %0\n\t"
				 "inc %0"
				 : "+r"(count)::"rax", "rbx", "rcx", "rdx");
	guest_say_hex("behind cpuid ", count);
	return count != 20;
}

static int hazard_movss(void)
{
	uint64_t count = 0;

	for (int i = 0; i < 10; i++)
		__asm__ volatile("mov %%ss, %%eax\n\t"
				 "mov %%eax, %%ss\n\t"
				 "inc %0\n\t"
				 "inc %0"
				 : "+r"(count)::"rax");
	guest_say_hex("behind mov ss ", count);
	return count != 20;
}

static int hazard_syscall(void)
{
	uint64_t flags, result = SYS_getpid;

	__asm__ volatile("syscall\n\t"
			 "mov %%r11, %1"
			 : "+a"(result), "=r"(flags)::"rcx", "r11", "memory");
	guest_say(flags & TRAP_FLAG ? "trap flag in r11\n" : "r11 clean\n");
	return (flags & TRAP_FLAG) != 0;
}

static char rep_from[3000], rep_to[3000];

static int hazard_rep(void)
{
	unsigned long count = sizeof(rep_from), left;
	char *to = rep_to, *from = rep_from;
	int same;

	for (unsigned i = 0; i < sizeof(rep_from); i++)
		rep_from[i] = (char)(i * 7);
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count)::"memory");
	to = rep_to, from = rep_from, count = sizeof(rep_from);
	rep_to[100] ^= 1;
	__asm__ volatile("repe cmpsb" : "+D"(to), "+S"(from), "+c"(count)::"memory", "cc");
	left = count;
	to = rep_to, count = 0;
	__asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(0) : "memory");
	same = to == rep_to && left == sizeof(rep_from) - 101;
	guest_say_hex("left ", left);
	return !same;
}

static int hazard_iret(void)
{
	uint64_t reached = 0;

	__asm__ volatile("mov %%rsp, %%rdx\n\t"
			 "mov %%ss, %%eax\n\tpush %%rax\n\t"
			 "push %%rdx\n\t"
			 "pushfq\n\t"
			 "mov %%cs, %%eax\n\tpush %%rax\n\t"
			 "lea 1f(%%rip), %%rax\n\tpush %%rax\n\t"
			 "iretq\n"
			 "1:\tinc %0"
			 : "+r"(reached)::"rax", "rdx", "memory", "cc");
	guest_say_hex("behind iret ", reached);
	return reached != 1 || !flags_are_clean();
}

/* time() of the page that kernels have had at this place since 2002; it may be switched off. */
static int hazard_vsyscall(void)
{
	long (*const old_time)(long *) = (long (*)(long *))0xffffffffff600400;
	long then = guest_call3(SYS_time, 0, 0, 0), now;

	now = old_time(0);
	guest_say(now >= then && now - then < 100 ? "vsyscall right\n" : "vsyscall wrong\n");
	return 0;
}

/* The program steps itself: each of its traps is its own. */
static volatile uint64_t own_traps;
static void count_own_trap(int signal)
{
	own_traps++;
}

static int hazard_own_steps(void)
{
	handle(5, (uintptr_t)count_own_trap, 0);
	__asm__ volatile("pushfq\n\t"
			 "orl $0x100, (%%rsp)\n\t"
			 "popfq\n\t"
			 "nop\n\tnop\n\tnop\n\t"
			 "pushfq\n\t"
			 "andl $~0x100, (%%rsp)\n\t"
			 "popfq\n\t"
			 "nop" ::
				 : "memory", "cc");
	guest_say_hex("own traps ", own_traps);
	return own_traps != 6;
}

/*
 * A restartable sequence that adds one, and starts again when it is interrupted: in a thread that is
 * stopped behind each instruction, for ever. The area of rseq(2) is what FS points to.
 */
static struct {
	uint32_t cpu_id_start, cpu_id;
	uint64_t sequence;
	uint32_t flags, pad[3];
} area __attribute__((aligned(32)));
uint64_t guest_added, guest_aborted;

static int hazard_rseq(void)
{
	const uint32_t signature = 0x53053053;

	guest_call3(SYS_arch_prctl, 0x1002, (long)&area, 0); /* ARCH_SET_FS */
	if (guest_call(SYS_rseq, (long)&area, sizeof(area), 0, signature, 0, 0) < 0) {
		guest_say("no rseq\n");
		return 0;
	}
	for (int i = 0; i < 100; i++)
		__asm__ volatile(".pushsection .data\n"
				 "	.balign 32\n"
				 "3:	.long 0, 0\n"
				 "	.quad 1f, 2f - 1f, 4f\n"
				 ".popsection\n"
				 ".pushsection .text.unlikely, \"ax\"\n"
				 "	.long 0x53053053\n"
				 "4:	incq guest_aborted(%%rip)\n"
				 "	jmp 5f\n"
				 ".popsection\n"
				 "5:	lea 3b(%%rip), %%rax\n"
				 "	mov %%rax, %%fs:8\n"
				 "1:	mov guest_added(%%rip), %%rdx\n"
				 "	test %%rdx, %%rdx\n"
				 "	js 6f\n"
				 "	inc %%rdx\n"
				 "	mov %%rdx, guest_added(%%rip)\n"
				 "2:	nop\n"
				 "6:\n" ::
					 : "rax", "rdx", "memory", "cc");
	guest_say_hex("added ", guest_added);
	return guest_added != 100;
}

/* Not the same in any two runs, unless somebody answers instead. */
static int hazard_tsc(void)
{
	uint32_t low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	int right = low == 0x1234 && high == 0x5678;
	__asm__ volatile("rdtscp" : "=a"(low), "=d"(high)::"rcx");
	right &= low == 0x1234 && high == 0x5678;
	guest_say(right ? "answered\n" : "the CPU's\n");
	return 0;
}

/* 1, by a CPUID. */
static uint64_t careful_one(void)
{
	uint64_t one = 0;

	__asm__ volatile("xor %%eax, %%eax\n\t"
			 "cpuid\n\t"
			 "inc %0"
			 : "+r"(one)::"rax", "rbx", "rcx", "rdx");
	return one;
}

static void skip_breakpoint(void *context)
{
}

#define HAZARDS_OF_MACHINE                                                                     \
	{ "pushf", hazard_pushf }, { "cpuid", hazard_cpuid }, { "movss", hazard_movss },       \
		{ "syscall", hazard_syscall }, { "rep", hazard_rep }, { "iret", hazard_iret }, \
		{ "vsyscall", hazard_vsyscall }, { "own-steps", hazard_own_steps },            \
		{ "tsc", hazard_tsc }, { "rseq", hazard_rseq },

/* A step over it executes the next instruction, too. */
#define hazard_of_two     hazard_movss
#define OTHERS_OF_MACHINE { "shadowed", hazard_shadowed },

#endif
