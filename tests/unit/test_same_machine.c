/* SPDX-License-Identifier: MIT */
/*
 * Instructions by their bytes, as an assembler makes them (GNU as 2.40), and their answers as the
 * manuals have them: Intel SDM vol. 2, RDTSC ("loads the high-order 32 bits into EDX and the low-order
 * ones into EAX", and clears the upper halves), RDRAND (CF is set, OF, SF, ZF, AF, PF are cleared).
 */
#include <elf.h>

#include "inspect/same-machine.h"
#include "tap.h"

enum {
	R12 = 3,
	RBX = 5,
	RAX = 10,
	RDX = 12,
	FLAGS = 18,
	PSTATE = 33,
};

static struct same_insn read_bytes(uint32_t machine, const char *bytes, size_t len)
{
	struct same_insn insn;

	same_insn_read(&insn, machine, (const uint8_t *)bytes, len);
	return insn;
}

#define X86(bytes)   read_bytes(EM_X86_64, bytes, sizeof(bytes) - 1)
#define ARM64(bytes) read_bytes(EM_AARCH64, bytes, sizeof(bytes) - 1)

static void tells_instructions_of_x86(void)
{
	check_int(X86("\x0f\x05").kind, SAME_INSN_CALL);
	check_int(X86("\x0f\x31").kind, SAME_INSN_RDTSC);
	check_int(X86("\x0f\x01\xf9").kind, SAME_INSN_RDTSCP);
	check_int(X86("\x48\x0f\xc7\xf0").kind, SAME_INSN_RDRAND); /* rdrand %rax */
	check_int(X86("\x0f\xc7\xfb").kind, SAME_INSN_RDSEED);     /* rdseed %ebx */
}

static void tells_others_from_them(void)
{
	check_int(X86("\xf3\x0f\xc7\xf8").kind, SAME_INSN_OTHER);     /* rdpid %rax */
	check_int(X86("\x0f\xc7\x0b").kind, SAME_INSN_OTHER);         /* cmpxchg8b (%rbx) */
	check_int(X86("\x48\x0f\xc7\x33").kind, SAME_INSN_OTHER);     /* vmptrld (%rbx) */
	check_int(X86("\x0f\x01\xf8").kind, SAME_INSN_OTHER);         /* swapgs */
	check_int(X86("\x0f\xaf\xc3").kind, SAME_INSN_OTHER);         /* imul %ebx,%eax */
	check_int(X86("\xb8\x0f\x05\x00\x00").kind, SAME_INSN_OTHER); /* mov $0x50f,%eax */
	check_int(X86("\x0f").kind, SAME_INSN_OTHER);                 /* cut short */
	check_int(X86("").kind, SAME_INSN_OTHER);
	check_int(read_bytes(EM_RISCV, "\x0f\x05", 2).kind, SAME_INSN_OTHER);
}

static void tells_instructions_of_arm64(void)
{
	check_int(ARM64("\x01\x00\x00\xd4").kind, SAME_INSN_CALL); /* svc #0 */
	check_int(ARM64("\x47\xe0\x3b\xd5").kind, SAME_INSN_CNTVCT);
	check_int(ARM64("\x47\xe0\x3b\xd5").word, 7); /* mrs x7, cntvct_el0 */
	check_int(ARM64("\x03\x24\x3b\xd5").kind, SAME_INSN_RNDR);
	check_int(ARM64("\x1f\x20\x03\xd5").kind, SAME_INSN_OTHER); /* nop */
	check_int(ARM64("\x02\x00\x00\xd4").kind, SAME_INSN_OTHER); /* hvc #0 */
	check_int(ARM64("\x01\x00").kind, SAME_INSN_OTHER);         /* cut short */
}

static void a_time_stamp_is_in_two_halves(void)
{
	struct tally_tracee_regs regs = { .machine = EM_X86_64 };
	struct same_insn insn = X86("\x0f\x31");

	regs.word[RAX] = regs.word[RDX] = UINT64_MAX;
	same_insn_answer(&regs, &insn, 0x1122334455667788);
	check_u64(regs.word[RAX], 0x55667788);
	check_u64(regs.word[RDX], 0x11223344);
	check_u64(same_insn_value(&regs, &insn), 0x1122334455667788);
}

static void a_random_number_is_as_wide_as_its_register(void)
{
	static const struct {
		const char *bytes;
		size_t len;
		int word;
		uint64_t want;
	} rows[] = {
		{ "\x48\x0f\xc7\xf0", 4, RAX, 0x1122334455667788 }, /* rdrand %rax */
		{ "\x0f\xc7\xf3", 3, RBX, 0x55667788 },             /* rdrand %ebx */
		{ "\x66\x0f\xc7\xf2", 4, RDX, 0xffffffffffff7788 }, /* rdrand %dx */
		{ "\x49\x0f\xc7\xf4", 4, R12, 0x1122334455667788 }, /* rdrand %r12 */
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct tally_tracee_regs regs = { .machine = EM_X86_64 };
		struct same_insn insn = read_bytes(EM_X86_64, rows[i].bytes, rows[i].len);
		regs.word[rows[i].word] = UINT64_MAX;
		regs.word[FLAGS] = 0xcd6; /* all status flags but CF; IF, DF */
		same_insn_answer(&regs, &insn, 0x1122334455667788);
		check_u64(regs.word[rows[i].word], rows[i].want);
		check_u64(regs.word[FLAGS], 0x403 | (0xcd6 & 0x600));
	}
}

static void arm64s_answers_go_where_they_are_asked(void)
{
	struct tally_tracee_regs regs = { .machine = EM_AARCH64 };
	struct same_insn insn = ARM64("\x03\x24\x3b\xd5"); /* mrs x3, rndr */

	regs.word[PSTATE] = 0x60001000;
	same_insn_answer(&regs, &insn, 42);
	check_u64(regs.word[3], 42);
	check_u64(regs.word[PSTATE], 0x1000); /* NZCV is 0 when there was a number */
	insn = ARM64("\x5f\xe0\x3b\xd5");     /* mrs xzr, cntvct_el0 */
	regs.word[31] = 7;                    /* the stack pointer's place, which it is not */
	same_insn_answer(&regs, &insn, 42);
	check_u64(regs.word[31], 7);
	check_u64(same_insn_value(&regs, &insn), 0);
}

/* Intel SDM vol. 1, 13.4.1 to 13.4.3 and 13.5.2: where the registers stand in the standard format. */
static void vector_registers_have_names(void)
{
	static const struct {
		uint32_t machine;
		size_t byte;
		const char *name;
	} rows[] = {
		{ EM_X86_64, 0, "x87 control, byte 0" },
		{ EM_X86_64, 32, "st0, byte 0" },
		{ EM_X86_64, 32 + 7 * 16, "st7, byte 0" },
		{ EM_X86_64, 160, "xmm0, byte 0" },
		{ EM_X86_64, 415, "xmm15, byte 15" },
		{ EM_X86_64, 576, "ymm0, byte 16" },
		{ EM_X86_64, 831, "ymm15, byte 31" },
		{ EM_X86_64, 832, "XSAVE area, byte 832" },
		{ EM_AARCH64, 0, "v0, byte 0" },
		{ EM_AARCH64, 16 * 31 + 3, "v31, byte 3" },
		{ EM_AARCH64, 512, "fpsr or fpcr, byte 0" },
	};
	char name[64];

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		same_vector_name(name, sizeof(name), rows[i].machine, rows[i].byte);
		check_str(name, rows[i].name);
	}
	check(!same_vector_header(EM_X86_64, 415));
	check(same_vector_header(EM_X86_64, 512));
	check(!same_vector_header(EM_X86_64, 576));
	check(!same_vector_header(EM_AARCH64, 500));
}

int main(void)
{
	tap_run(vector_registers_have_names);
	tap_run(tells_instructions_of_x86);
	tap_run(tells_others_from_them);
	tap_run(tells_instructions_of_arm64);
	tap_run(a_time_stamp_is_in_two_halves);
	tap_run(a_random_number_is_as_wide_as_its_register);
	tap_run(arm64s_answers_go_where_they_are_asked);
	return tap_end();
}
