/* SPDX-License-Identifier: MIT */
/*
 * Unwinding of x86-64 and arm64 stacks, each of a program whose unwind tables are made by hand and
 * of a stack that is written as the manuals say that such code leaves it. What is right follows
 * from them: the psABI of x86-64 and the DWARF register numbers of both.
 */
#include <errno.h>
#include <stdlib.h>

#include <tally/unwinder.h>

#include "fakecfi.h"
#include "fakeroot.h"
#include "image/unwind-cfi.h"
#include "tap.h"

#define PID   4242
#define BASE  0x7f0000000000u /* where the program is mapped */
#define CODE  (BASE + FAKECFI_CODE)
#define STACK 0x7ffc00000000u

/* DW_CFA_* with their operands, from table 7.29 of DWARF 5. */
#define ADVANCE(n)        (uint8_t)(0x40 | (n))
#define OFFSET(reg, n)    (uint8_t)(0x80 | (reg)), (n)
#define RESTORE(reg)      (uint8_t)(0xc0 | (reg))
#define DEF_CFA(reg, n)   0x0c, (reg), (n)
#define DEF_REGISTER(reg) 0x0d, (reg)
#define DEF_OFFSET(n)     0x0e, (n)
#define UNDEFINED(reg)    0x07, (reg)
#define REMEMBER          0x0a
#define RECALL            0x0b
#define BYTES(...)        (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ })

/* Bits of perf_regs.h. */
enum {
	X86_BX = 1,
	X86_BP = 6,
	X86_SP = 7,
	X86_IP = 8,
};
enum {
	ARM_FP = 29,
	ARM_LR = 30,
	ARM_SP = 31,
	ARM_PC = 32,
};

static struct {
	struct fakeroot root;
	struct tally_maps *maps;
	struct tally_unwinder *unwinder;
	struct fakecfi cfi;
	uint8_t code[64];
	size_t code_len;
	uint64_t stack[512]; /* from STACK on */
	uint64_t regs[33];   /* by bit */
	uint64_t mask;
	uint64_t frames[64];
	struct tally_unwound how;
} t;

static void set(unsigned bit, uint64_t value)
{
	t.regs[bit] = value;
	t.mask |= (uint64_t)1 << bit;
}

static void word(unsigned offset, uint64_t value)
{
	t.stack[offset / 8] = value;
}

static void begin(void)
{
	memset(&t, 0, sizeof(t));
	fakeroot_make(&t.root);
	tally_maps_new(&t.maps);
}

static void map(uint64_t start, uint64_t size, uint64_t pgoff, const char *path)
{
	const struct tally_mapping mapping = {
		.start = start, .end = start + size, .pgoff = pgoff, .path = path
	};

	tally_maps_add(t.maps, PID, 0, &mapping);
}

/* Writes the program and maps it; an unwinder for it. */
static void load(const char *machine, const char *section)
{
	uint8_t file[FAKECFI_ROOM];
	char path[128];
	bool arm = !strcmp(machine, "aarch64");
	size_t len = fakecfi_elf(file, arm ? EM_AARCH64 : EM_X86_64, section, t.cfi.at, t.cfi.len,
				 t.code, t.code_len);

	fakeroot_bytes(&t.root, "/program", file, len);
	snprintf(path, sizeof(path), "%s/program", t.root.path);
	map(BASE, FAKECFI_FRAME + FAKECFI_PAGE, 0, path);
	map(STACK, 0x10000, 0, "[stack]");
	check_int(tally_unwinder_new(&t.unwinder, t.maps, TALLY_OPTS(unwinder, .machine = machine),
				     NULL),
		  0);
}

/* Walks with so many bytes of the stack. */
static int walk(size_t stack_len)
{
	uint64_t values[33];
	size_t count = 0;

	for (unsigned bit = 0; bit < 33; bit++)
		if (t.mask >> bit & 1)
			values[count++] = t.regs[bit];
	uint64_t sp = t.mask >> ARM_PC & 1 ? t.regs[ARM_SP] : t.regs[X86_SP];
	const struct tally_unwind_start start = {
		.pid = PID,
		.mask = t.mask,
		.regs = values,
		.stack = (const uint8_t *)t.stack + (sp - STACK),
		.stack_len = stack_len,
	};
	return tally_unwinder_walk(t.unwinder, &start, t.frames, 64, &t.how);
}

static void end(void)
{
	tally_unwinder_free(t.unwinder);
	tally_maps_free(t.maps);
	fakeroot_remove(&t.root);
}

static void check_frames(uint32_t ends, size_t count, const uint64_t *frames)
{
	check_int(t.how.end, ends);
	check_int(t.how.frames, count);
	for (size_t i = 0; i < count && i < t.how.frames; i++)
		check_u64(t.frames[i], frames[i]);
}

#define CHECK(end, ...)                                                                 \
	check_frames(end, sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t), \
		     (const uint64_t[]){ __VA_ARGS__ })

static void check_signal(uint64_t address, int want)
{
	check_int(tally_unwinder_is_signal(t.unwinder, PID, 0, address), want);
}

/*
 * The CIE of compilers for x86-64: the return address is register 16, at CFA - 8; CFA is RSP + 8.
 */
static size_t x86_common(void)
{
	return fakecfi_common(&t.cfi, 0, 1, -8, 16, BYTES(DEF_CFA(7, 8), OFFSET(16, 1)));
}

/*
 * Three functions: 0x00 pushes RBX at 0x01; 0x40 has a frame pointer; 0x80 is where threads begin.
 */
static void x86_program(void)
{
	size_t common = x86_common();

	fakecfi_function(&t.cfi, common, FAKECFI_CODE, 0x40,
			 BYTES(ADVANCE(1), DEF_OFFSET(16), OFFSET(3, 2), ADVANCE(0x20), RESTORE(3),
			       DEF_OFFSET(8)));
	fakecfi_function(&t.cfi, common, FAKECFI_CODE + 0x40, 0x40,
			 BYTES(ADVANCE(1), DEF_OFFSET(16), OFFSET(6, 2), ADVANCE(3),
			       DEF_REGISTER(6), ADVANCE(0x20), REMEMBER, DEF_CFA(7, 8), ADVANCE(1),
			       RECALL));
	fakecfi_function(&t.cfi, common, FAKECFI_CODE + 0x80, 0x40, BYTES(UNDEFINED(16)));
}

static void x86_rows_hold_from_their_place_on(void)
{
	begin();
	x86_program();
	load("x86_64", ".eh_frame");
	/*
	 * At its first instruction the return address is on top; the caller has a frame at STACK +
	 * 0x40.
	 */
	set(X86_IP, CODE);
	set(X86_SP, STACK);
	set(X86_BP, STACK + 0x40);
	set(X86_BX, 77);
	word(0, CODE + 0x50);
	word(0x40, 0);
	word(0x48, CODE + 0x90);
	check_int(walk(4096), 0);
	CHECK(TALLY_UNWIND_WHOLE, CODE, CODE + 0x50, CODE + 0x90);
	/* Behind the push, RBX is there and the address above it. */
	set(X86_IP, CODE + 1);
	word(0, 77);
	word(8, CODE + 0x50);
	check_int(walk(4096), 0);
	CHECK(TALLY_UNWIND_WHOLE, CODE + 1, CODE + 0x50, CODE + 0x90);
	/* Behind the pop, as at the start. */
	set(X86_IP, CODE + 0x21);
	word(0, CODE + 0x50);
	check_int(walk(4096), 0);
	CHECK(TALLY_UNWIND_WHOLE, CODE + 0x21, CODE + 0x50, CODE + 0x90);
	end();
}

static void x86_remembered_rules_come_back(void)
{
	begin();
	x86_program();
	load("x86_64", ".eh_frame");
	/* At 0x64 for one byte CFA is RSP + 8; then it is RBP + 16 again. */
	set(X86_SP, STACK);
	set(X86_BP, STACK + 0x40);
	word(0, CODE + 0x90);
	word(0x48, CODE + 0x91);
	set(X86_IP, CODE + 0x64);
	check_int(walk(4096), 0);
	CHECK(TALLY_UNWIND_WHOLE, CODE + 0x64, CODE + 0x90);
	set(X86_IP, CODE + 0x65);
	check_int(walk(4096), 0);
	CHECK(TALLY_UNWIND_WHOLE, CODE + 0x65, CODE + 0x91);
	end();
}

/* A function that ends in a call to one that never returns: the address is the next function's. */
static void x86_a_return_address_belongs_to_the_call_before_it(void)
{
	begin();
	x86_program();
	load("x86_64", ".eh_frame");
	set(X86_IP, CODE);
	set(X86_SP, STACK);
	/*
	 * In the first function's last row CFA is RSP + 8; in the second's first it would be, too:
	 * so take the second's end, where CFA is RBP + 16, and the third's start.
	 */
	set(X86_BP, STACK + 0x40);
	word(0, CODE + 0x80);
	word(0x48, CODE + 0x90);
	check_int(walk(4096), 0);
	CHECK(TALLY_UNWIND_WHOLE, CODE, CODE + 0x80, CODE + 0x90);
	end();
}

static void x86_a_short_copy_is_cut(void)
{
	begin();
	x86_program();
	load("x86_64", ".eh_frame");
	set(X86_IP, CODE);
	set(X86_SP, STACK + 0x100);
	set(X86_BP, STACK + 0x200);
	word(0x100, CODE + 0x50);
	word(0x208, CODE + 0x90);
	check_int(walk(0x108), 0);
	CHECK(TALLY_UNWIND_CUT, CODE, CODE + 0x50);
	/* The stack's mapping ends 0x10000 above STACK. */
	check_u64(t.how.stack_bytes, 0x10000 - 0x100);
	check_int(walk(0x110), 0);
	CHECK(TALLY_UNWIND_WHOLE, CODE, CODE + 0x50, CODE + 0x90);
	/* Without any copy the thread's place alone is known. */
	check_int(walk(0), 0);
	CHECK(TALLY_UNWIND_CUT, CODE);
	end();
}

/*
 * The stub of a lazy PLT: DW_CFA_def_cfa_expression as linkers write it, CFA = RSP + 8 + 8 * ((RIP
 * & 15) >= 11).
 */
static void x86_expressions_are_evaluated(void)
{
	begin();
	size_t common = x86_common();
	fakecfi_function(
		&t.cfi, common, FAKECFI_CODE, 0x40,
		BYTES(0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22));
	fakecfi_function(&t.cfi, common, FAKECFI_CODE + 0x80, 0x40, BYTES(UNDEFINED(16)));
	load("x86_64", ".eh_frame");
	set(X86_SP, STACK);
	set(X86_IP, CODE + 0x16);
	word(0, CODE + 0x90);
	word(8, CODE + 0x91);
	check_int(walk(4096), 0);
	CHECK(TALLY_UNWIND_WHOLE, CODE + 0x16, CODE + 0x90);
	set(X86_IP, CODE + 0x1b);
	check_int(walk(4096), 0);
	CHECK(TALLY_UNWIND_WHOLE, CODE + 0x1b, CODE + 0x91);
	end();
}

/* The same stubs where the linker (lld) tells nothing of them but their section. */
static void x86_stubs_without_tables_are_known(void)
{
	const uint64_t stubs = BASE + FAKECFI_STUBS;

	begin();
	x86_program();
	load("x86_64", ".eh_frame");
	set(X86_SP, STACK);
	set(X86_BP, STACK + 8);
	word(0, CODE + 0x90);
	word(8, CODE + 0x91);
	set(X86_IP, stubs + 0x16);
	check_int(walk(4096), 0);
	CHECK(TALLY_UNWIND_WHOLE, stubs + 0x16, CODE + 0x90);
	set(X86_IP, stubs + 0x1b);
	check_int(walk(4096), 0);
	CHECK(TALLY_UNWIND_WHOLE, stubs + 0x1b, CODE + 0x91);
	end();
}

static void what_nothing_is_told_of_is_broken(void)
{
	struct tally_unwinder_module module;

	begin();
	x86_program();
	load("x86_64", ".eh_frame");
	/* No rules, and RBP is not there. */
	set(X86_IP, CODE + 0x200);
	set(X86_SP, STACK);
	check_int(walk(4096), 0);
	CHECK(TALLY_UNWIND_BROKEN, CODE + 0x200);
	check_int(tally_unwinder_module(t.unwinder, t.how.module, &module), 0);
	check_has(module.path, "/program");
	check_u64(module.broken, 1);
	check(!module.trouble);
	/* Where nothing is mapped, no module is to blame. */
	set(X86_IP, 0x1234);
	check_int(walk(4096), 0);
	CHECK(TALLY_UNWIND_BROKEN, 0x1234);
	check_u64(t.how.module, UINT32_MAX);
	end();
}

/* A program without tables that keeps frame pointers, as JIT code does. */
static void x86_frame_pointers_lead_on_without_tables(void)
{
	begin();
	x86_program();
	load("x86_64", ".eh_frame");
	map(0x10000, 0x1000, 0, "//anon");
	set(X86_IP, 0x10010);
	set(X86_SP, STACK);
	set(X86_BP, STACK + 0x20);
	word(0x20, STACK + 0x60);
	word(0x28, 0x10020);
	word(0x60, 0);
	word(0x68, CODE + 0x90);
	check_int(walk(4096), 0);
	CHECK(TALLY_UNWIND_WHOLE, 0x10010, 0x10020, CODE + 0x90);
	/*
	 * A frame pointer of 0 is where the thread began; one that leads down, or into nothing, is
	 * none.
	 */
	word(0x60, 0);
	word(0x68, 0x10030);
	check_int(walk(4096), 0);
	CHECK(TALLY_UNWIND_WHOLE, 0x10010, 0x10020, 0x10030);
	word(0x20, STACK + 0x10);
	check_int(walk(4096), 0);
	CHECK(TALLY_UNWIND_BROKEN, 0x10010);
	/* But a caller of which tables tell may have anything in that register. */
	word(0x28, CODE + 0x90);
	check_int(walk(4096), 0);
	CHECK(TALLY_UNWIND_WHOLE, 0x10010, CODE + 0x90);
	word(0x20, STACK + 0x60);
	word(0x28, 0x999999);
	check_int(walk(4096), 0);
	CHECK(TALLY_UNWIND_BROKEN, 0x10010);
	end();
}

/*
 * rt_sigframe: the handler returns to `mov $15, %rax; syscall`, the ucontext is on top then, and
 * its registers are 40 bytes in: r8 ... r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip.
 */
static void x86_signal_frames_without_tables_are_known(void)
{
	static const uint8_t trampoline[] = { 0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05 };

	begin();
	memcpy(t.code + 0x30, trampoline, sizeof(trampoline));
	t.code_len = 0x40;
	size_t common = x86_common();
	fakecfi_function(&t.cfi, common, FAKECFI_CODE + 0x10, 0x10, BYTES(0));
	fakecfi_function(&t.cfi, common, FAKECFI_CODE + 0x40, 0x20, BYTES(DEF_CFA(6, 16)));
	fakecfi_function(&t.cfi, common, FAKECFI_CODE + 0x80, 0x40, BYTES(UNDEFINED(16)));
	load("x86_64", ".eh_frame");
	set(X86_IP, CODE + 0x10);
	set(X86_SP, STACK);
	word(0, CODE + 0x30);
	word(8 + 40 + 80, STACK + 0x300);  /* rbp */
	word(8 + 40 + 120, STACK + 0x280); /* rsp */
	word(8 + 40 + 128, CODE + 0x40);   /* rip: the first instruction of a function */
	word(0x308, CODE + 0x90);
	check_int(walk(4096), 0);
	CHECK(TALLY_UNWIND_WHOLE, CODE + 0x10, CODE + 0x30, CODE + 0x40, CODE + 0x90);
	check_signal(CODE + 0x30, 1);
	check_signal(CODE + 0x40, 0);
	check_signal(CODE + 0x90, 0);
	check_signal(0x1234, 0);
	check_signal(0, 0);
	/* A copy of the handler's own stack never has the other. */
	check_int(walk(0x200), 0);
	CHECK(TALLY_UNWIND_CUT, CODE + 0x10, CODE + 0x30, CODE + 0x40);
	/* In the trampoline itself, and in its system call. */
	set(X86_SP, STACK + 8);
	set(X86_IP, CODE + 0x37);
	check_int(walk(4096 - 8), 0);
	CHECK(TALLY_UNWIND_WHOLE, CODE + 0x37, CODE + 0x40, CODE + 0x90);
	set(X86_IP, CODE + 0x39);
	check_int(walk(4096 - 8), 0);
	CHECK(TALLY_UNWIND_WHOLE, CODE + 0x39, CODE + 0x40, CODE + 0x90);
	end();
}

static void x86_debug_frame_is_read_too(void)
{
	/*
	 * CIE: length 20, id, version 4, "", address 8, segment 0, 1, -8, 16; CFA RSP + 8, RA at
	 * CFA - 8. FDE: length 28, CIE at 0, 0x1000, 0x40. FDE: 0x1080, 0x40, undefined 16.
	 */
	static const uint8_t entries[] = {
		20,   0, 0,  0, 0xff, 0xff, 0xff, 0xff, 4, 0,  8,    0,    1, 0x78, 16, 0x0c, 7, 8,
		0x90, 1, 0,  0, 0,    0,    28,   0,    0, 0,  0,    0,    0, 0,    0,  0x10, 0, 0,
		0,    0, 0,  0, 0x40, 0,    0,    0,    0, 0,  0,    0,    0, 0,    0,  0,    0, 0,
		0,    0, 28, 0, 0,    0,    0,    0,    0, 0,  0x80, 0x10, 0, 0,    0,  0,    0, 0,
		0x40, 0, 0,  0, 0,    0,    0,    0,    7, 16, 0,    0,    0, 0,    0,  0,
	};

	begin();
	fakecfi_add(&t.cfi, entries, sizeof(entries));
	load("x86_64", ".debug_frame");
	set(X86_IP, CODE + 0x20);
	set(X86_SP, STACK);
	word(0, CODE + 0x90);
	check_int(walk(4096), 0);
	CHECK(TALLY_UNWIND_WHOLE, CODE + 0x20, CODE + 0x90);
	end();
}

/* CFA = RSP: the caller would be this very frame, for ever. */
static void x86_circles_end(void)
{
	begin();
	size_t common = fakecfi_common(&t.cfi, 0, 1, -8, 16, BYTES(DEF_CFA(7, 0), OFFSET(16, 0)));
	fakecfi_function(&t.cfi, common, FAKECFI_CODE, 0x40, BYTES(0));
	load("x86_64", ".eh_frame");
	set(X86_IP, CODE + 0x10);
	set(X86_SP, STACK);
	word(0, CODE + 0x10);
	check_int(walk(4096), 0);
	CHECK(TALLY_UNWIND_BROKEN, CODE + 0x10, CODE + 0x10);
	end();
	/* An expression that branches back. */
	begin();
	common = x86_common();
	fakecfi_function(&t.cfi, common, FAKECFI_CODE, 0x40,
			 BYTES(0x0f, 4, 0x30, 0x2f, 0xfd, 0xff));
	load("x86_64", ".eh_frame");
	set(X86_IP, CODE + 0x10);
	set(X86_SP, STACK);
	check_int(walk(4096), 0);
	CHECK(TALLY_UNWIND_BROKEN, CODE + 0x10);
	end();
}

static void room_and_registers_are_needed(void)
{
	begin();
	x86_program();
	load("x86_64", ".eh_frame");
	set(X86_SP, STACK);
	check_int(walk(4096), -EINVAL);
	set(X86_IP, CODE + 0x90);
	check_int(walk(4096), 0);
	CHECK(TALLY_UNWIND_WHOLE, CODE + 0x90);
	uint64_t values[] = { STACK, CODE };
	const struct tally_unwind_start start = { .pid = PID,
						  .mask = 1u << X86_SP | 1u << X86_IP,
						  .regs = values };
	check_int(tally_unwinder_walk(t.unwinder, &start, t.frames, 0, &t.how), 0);
	check_int(t.how.end, TALLY_UNWIND_FULL);
	end();
	check_int(tally_unwinder_new(&t.unwinder, NULL, NULL, NULL), -EINVAL);
	begin();
	check_int(tally_unwinder_new(&t.unwinder, t.maps, TALLY_OPTS(unwinder, .machine = "s390x"),
				     NULL),
		  -EOPNOTSUPP);
	end();
}

/* ---- arm64 ---- */

/* The CIE of compilers for arm64: code by 4, the return address is x30, CFA is SP. */
static size_t arm_common(int signal)
{
	return fakecfi_common(&t.cfi, signal, 4, -8, 30, BYTES(DEF_CFA(31, 0)));
}

/* 0x00 is a leaf; 0x40 does `stp x29, x30, [sp, #-32]!`; 0x80 is where threads begin. */
static void arm_program(void)
{
	size_t common = arm_common(0);

	fakecfi_function(&t.cfi, common, FAKECFI_CODE, 0x40, BYTES(0));
	fakecfi_function(&t.cfi, common, FAKECFI_CODE + 0x40, 0x40,
			 BYTES(0x2d, ADVANCE(1), DEF_OFFSET(32), OFFSET(29, 4), OFFSET(30, 3)));
	fakecfi_function(&t.cfi, common, FAKECFI_CODE + 0x80, 0x40, BYTES(UNDEFINED(30)));
}

static void arm_begin(uint64_t pc, uint64_t lr)
{
	begin();
	arm_program();
	load("aarch64", ".eh_frame");
	set(ARM_PC, pc);
	set(ARM_LR, lr);
	set(ARM_SP, STACK);
	set(ARM_FP, STACK);
}

static void arm64_a_leaf_returns_by_its_link_register(void)
{
	arm_begin(CODE + 0x10, CODE + 0x50);
	word(0, STACK + 0x100); /* x29 and x30 of the caller, saved by it */
	word(8, CODE + 0x90);
	check_int(walk(4096), 0);
	CHECK(TALLY_UNWIND_WHOLE, CODE + 0x10, CODE + 0x50, CODE + 0x90);
	/* Also without any copy, as far as registers tell. */
	check_int(walk(0), 0);
	CHECK(TALLY_UNWIND_CUT, CODE + 0x10, CODE + 0x50);
	end();
}

/* A stub of the PLT leaves the link register as it is. */
static void arm64_stubs_return_by_the_link_register(void)
{
	arm_begin(BASE + FAKECFI_STUBS + 0x28, CODE + 0x50);
	word(0, 0);
	word(8, CODE + 0x90);
	check_int(walk(4096), 0);
	CHECK(TALLY_UNWIND_WHOLE, BASE + FAKECFI_STUBS + 0x28, CODE + 0x50, CODE + 0x90);
	end();
}

/* paciasp puts a signature above bit 47 of x30, which the stack then holds. */
static void arm64_signatures_are_taken_off(void)
{
	arm_begin(CODE + 0x10, 0x00b2000000000000u | (CODE + 0x50));
	word(8, 0x7a31000000000000u | (CODE + 0x90));
	check_int(walk(4096), 0);
	CHECK(TALLY_UNWIND_WHOLE, CODE + 0x10, CODE + 0x50, CODE + 0x90);
	end();
}

static void arm64_a_link_register_of_0_is_the_start(void)
{
	arm_begin(CODE + 0x10, 0);
	check_int(walk(4096), 0);
	CHECK(TALLY_UNWIND_WHOLE, CODE + 0x10);
	end();
}

/* A function that saved nothing and is no leaf would be its own caller, for ever. */
static void arm64_circles_end(void)
{
	arm_begin(CODE + 0x10, CODE + 0x14);
	check_int(walk(4096), 0);
	CHECK(TALLY_UNWIND_BROKEN, CODE + 0x10, CODE + 0x14);
	end();
}

static void arm64_frame_pointers_lead_on_without_tables(void)
{
	arm_begin(0x10010, 0x10014);
	map(0x10000, 0x1000, 0, "//anon");
	word(0, STACK + 0x40);
	word(8, 0x10020);
	word(0x40, 0);
	word(0x48, CODE + 0x90);
	check_int(walk(4096), 0);
	CHECK(TALLY_UNWIND_WHOLE, 0x10010, 0x10020, CODE + 0x90);
	end();
}

/* The vdso's trampoline, `mov x8, #139; svc #0`: above 128 bytes of siginfo is the ucontext, whose
 * registers x0 to x30, sp and pc are 184 bytes in. */
static void arm64_signal_frames_are_known(void)
{
	static const uint8_t trampoline[] = { 0x68, 0x11, 0x80, 0xd2, 1, 0, 0, 0xd4 };
	const unsigned registers = 128 + 184;

	begin();
	memcpy(t.code + 0x30, trampoline, sizeof(trampoline));
	t.code_len = 0x40;
	/* Nothing tells of the trampoline at 0x30. */
	size_t common = arm_common(0);
	fakecfi_function(&t.cfi, common, FAKECFI_CODE, 0x20, BYTES(0));
	fakecfi_function(&t.cfi, common, FAKECFI_CODE + 0x40, 0x40, BYTES(0));
	fakecfi_function(&t.cfi, common, FAKECFI_CODE + 0x80, 0x40, BYTES(UNDEFINED(30)));
	load("aarch64", ".eh_frame");
	set(ARM_PC, CODE + 0x10);
	set(ARM_LR, CODE + 0x30);
	set(ARM_SP, STACK);
	set(ARM_FP, STACK);
	word(registers + 8 * 30, CODE + 0x90);   /* x30 */
	word(registers + 8 * 31, STACK + 0x800); /* sp */
	word(registers + 8 * 32, CODE + 0x40);   /* pc: the first instruction of a function */
	check_int(walk(4096), 0);
	CHECK(TALLY_UNWIND_WHOLE, CODE + 0x10, CODE + 0x30, CODE + 0x40, CODE + 0x90);
	end();
}

/* The vdso of newer kernels has CFI for it, of augmentation S: the caller stands at its address. */
static void arm64_signal_frames_by_their_cfi(void)
{
	begin();
	size_t common = arm_common(0);
	size_t signal = arm_common(1);
	fakecfi_function(&t.cfi, common, FAKECFI_CODE, 0x20, BYTES(0));
	fakecfi_function(&t.cfi, signal, FAKECFI_CODE + 0x20, 0x20,
			 BYTES(DEF_CFA(29, 0), 0x11, 29, 0, 0x11, 30, 0x7f));
	fakecfi_function(&t.cfi, common, FAKECFI_CODE + 0x80, 0x40, BYTES(UNDEFINED(30)));
	load("aarch64", ".eh_frame");
	set(ARM_PC, CODE + 0x10);
	set(ARM_LR, CODE + 0x30);
	set(ARM_SP, STACK);
	set(ARM_FP, STACK + 0x200);
	word(0x208,
	     CODE + 0x80); /* the first instruction: its own rules hold, not those before it */
	check_int(walk(4096), 0);
	CHECK(TALLY_UNWIND_WHOLE, CODE + 0x10, CODE + 0x30, CODE + 0x80);
	check_signal(CODE + 0x30, 1);
	check_signal(CODE + 0x80, 0);
	end();
}

int main(void)
{
	tap_run(x86_rows_hold_from_their_place_on);
	tap_run(x86_remembered_rules_come_back);
	tap_run(x86_a_return_address_belongs_to_the_call_before_it);
	tap_run(x86_a_short_copy_is_cut);
	tap_run(x86_expressions_are_evaluated);
	tap_run(x86_stubs_without_tables_are_known);
	tap_run(what_nothing_is_told_of_is_broken);
	tap_run(x86_frame_pointers_lead_on_without_tables);
	tap_run(x86_signal_frames_without_tables_are_known);
	tap_run(x86_debug_frame_is_read_too);
	tap_run(x86_circles_end);
	tap_run(room_and_registers_are_needed);
	tap_run(arm64_a_leaf_returns_by_its_link_register);
	tap_run(arm64_stubs_return_by_the_link_register);
	tap_run(arm64_signatures_are_taken_off);
	tap_run(arm64_a_link_register_of_0_is_the_start);
	tap_run(arm64_circles_end);
	tap_run(arm64_frame_pointers_lead_on_without_tables);
	tap_run(arm64_signal_frames_are_known);
	tap_run(arm64_signal_frames_by_their_cfi);
	return tap_end();
}
