/* SPDX-License-Identifier: MIT */
/*
 * What instructions are. x86: bytes written down from the manual, and Zydis as the referee on random
 * bytes and on the text of the C library. arm64: words from the architecture's manual.
 */
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

#include "exact/insn.h"
#include "insn-referee.h"
#include "tap.h"

#define CONDITIONAL (TALLY_INSN_BRANCH | TALLY_INSN_CONDITIONAL)
#define CARE        TALLY_INSN_CARE

static const struct {
	uint8_t bytes[15];
	uint8_t len;
	uint32_t flags;
	uint8_t how;
	const char *what;
} known[] = {
	{ { 0x74, 0x02 }, 2, CONDITIONAL, INSN_PLAIN, "je" },
	{ { 0x0f, 0x85, 0, 1, 0, 0 }, 6, CONDITIONAL, INSN_PLAIN, "jne near" },
	{ { 0x2e, 0x75, 0x02 }, 3, CONDITIONAL, INSN_PLAIN, "jne with a hint" },
	{ { 0xe2, 0xfe }, 2, CONDITIONAL, INSN_PLAIN, "loop" },
	{ { 0xe3, 0x00 }, 2, CONDITIONAL, INSN_PLAIN, "jrcxz" },
	{ { 0x67, 0xe3, 0x00 }, 3, CONDITIONAL, INSN_PLAIN, "jecxz" },
	{ { 0xeb, 0x00 }, 2, TALLY_INSN_BRANCH, INSN_PLAIN, "jmp" },
	{ { 0xe8, 0, 0, 0, 0 }, 5, TALLY_INSN_BRANCH, INSN_PLAIN, "call" },
	{ { 0xc3 }, 1, TALLY_INSN_BRANCH, INSN_PLAIN, "ret" },
	{ { 0xf3, 0xc3 }, 2, TALLY_INSN_BRANCH, INSN_PLAIN, "rep ret" },
	{ { 0xff, 0xe0 }, 2, TALLY_INSN_BRANCH, INSN_PLAIN, "jmp rax" },
	{ { 0x3e, 0xff, 0xd0 }, 3, TALLY_INSN_BRANCH, INSN_PLAIN, "notrack call rax" },
	{ { 0xff, 0xc0 }, 2, 0, INSN_PLAIN, "inc eax" },
	{ { 0xff, 0x30 }, 2, 0, INSN_PLAIN, "push [rax]" },
	{ { 0x48, 0x0f, 0x44, 0xc1 }, 4, 0, INSN_PLAIN, "cmove" },
	{ { 0x0f, 0x05 }, 2, TALLY_INSN_SYSCALL | CARE, INSN_CALL, "syscall" },
	{ { 0xcd, 0x80 }, 2, TALLY_INSN_SYSCALL | CARE, INSN_CALL, "int 80" },
	{ { 0xcd, 0x81 }, 2, 0, INSN_PLAIN, "int 81" },
	{ { 0x0f, 0xa2 }, 2, CARE, INSN_BEHIND, "cpuid" },
	{ { 0x8e, 0xd0 }, 2, CARE, INSN_BEHIND, "mov ss, eax" },
	{ { 0x66, 0x8e, 0x15, 0, 0, 0, 0 }, 7, CARE, INSN_BEHIND, "mov ss, [rip]" },
	{ { 0x8e, 0xd8 }, 2, 0, INSN_PLAIN, "mov ds, eax" },
	{ { 0x9c }, 1, CARE, INSN_PUSHF, "pushf" },
	{ { 0x66, 0x9c }, 2, CARE, INSN_PUSHF, "pushfw" },
	{ { 0x9d }, 1, CARE, INSN_PLAIN, "popf" },
	{ { 0x48, 0xcf }, 2, TALLY_INSN_BRANCH | CARE, INSN_PLAIN, "iretq" },
	{ { 0xcc }, 1, CARE, INSN_PLAIN, "int3" },
	{ { 0xf3, 0xa4 }, 2, TALLY_INSN_REPEATED | CARE, INSN_REPEAT, "rep movsb" },
	{ { 0xf2, 0xae }, 2, TALLY_INSN_REPEATED | CARE, INSN_REPEAT, "repne scasb" },
	{ { 0xf3, 0x48, 0xab }, 3, TALLY_INSN_REPEATED | CARE, INSN_REPEAT, "rep stosq" },
	{ { 0xa4 }, 1, 0, INSN_PLAIN, "movsb" },
	{ { 0xf3, 0x0f, 0xb8, 0xc1 }, 4, 0, INSN_PLAIN, "popcnt" },
	{ { 0xc5, 0xf8, 0x77 }, 3, 0, INSN_PLAIN, "vzeroupper" },
	{ { 0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8 }, 10, 0, INSN_PLAIN, "movabs" },
	/* VEX: the opcode alone would be a Jcc. */
	{ { 0xc5, 0xf9, 0x74, 0xc1 }, 4, 0, INSN_PLAIN, "vpcmpeqb" },
};

static void instructions_of_the_manual(void)
{
	struct insn insn;

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		insn_x86(&insn, known[i].bytes, INSN_MAX, 64);
		if (!check_int(insn.len, known[i].len) || !check_u64(insn.flags, known[i].flags) ||
		    !check_int(insn.how, known[i].how))
			printf("# %s\n", known[i].what);
	}
}

static void targets_of_branches(void)
{
	static const struct {
		uint8_t bytes[6];
		int64_t target;
	} rows[] = {
		{ { 0x74, 0x10 }, 0x12 },
		{ { 0xeb, 0xfe }, 0 },
		{ { 0xe9, 0xfb, 0xff, 0xff, 0xff }, 0 },
		{ { 0x0f, 0x84, 0x00, 0x01, 0x00, 0x00 }, 0x106 },
	};
	struct insn insn;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		insn_x86(&insn, rows[i].bytes, sizeof(rows[i].bytes), 64);
		check(insn.relative);
		check_int(insn.target, rows[i].target);
	}
}

static void in_32_bit_code_the_same_bytes_are_others(void)
{
	static const uint8_t inc_dec[] = { 0x40, 0x48, 0x90 }, pop_ss[] = { 0x17, 0x90 };
	static const uint8_t far_call[] = { 0x9a, 1, 2, 3, 4, 5, 6 };
	struct insn insn;

	insn_x86(&insn, inc_dec, sizeof(inc_dec), 32);
	check_int(insn.len, 1);
	insn_x86(&insn, inc_dec, sizeof(inc_dec), 64);
	check_int(insn.len, 3);
	insn_x86(&insn, pop_ss, sizeof(pop_ss), 32);
	check_int(insn.how, INSN_BEHIND);
	insn_x86(&insn, pop_ss, sizeof(pop_ss), 64);
	check_u64(insn.flags, TALLY_INSN_UNKNOWN);
	insn_x86(&insn, far_call, sizeof(far_call), 32);
	check_int(insn.len, 7);
}

/* Cut off, or longer than 15 bytes: no instruction, and no byte behind the end is looked at. */
static void what_is_cut_off_is_unknown(void)
{
	uint8_t prefixes[INSN_MAX + 1];
	struct insn insn;

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		for (size_t len = 0; len < known[i].len; len++) {
			insn_x86(&insn, known[i].bytes, len, 64);
			check_u64(insn.flags, TALLY_INSN_UNKNOWN);
			check_int(insn.len, 0);
		}
	memset(prefixes, 0x66, sizeof(prefixes));
	prefixes[INSN_MAX] = 0x90;
	insn_x86(&insn, prefixes, sizeof(prefixes), 64);
	check_u64(insn.flags, TALLY_INSN_UNKNOWN);
}

static void compare(const uint8_t *bytes, size_t len, unsigned bits, uint64_t *compared)
{
	struct referee_insn want;
	struct insn got;
	static unsigned complaints;

	if (!referee_decode(&want, bytes, len, bits))
		return;
	++*compared;
	insn_x86(&got, bytes, len, bits);
	bool same = got.len == want.len &&
		    !(got.flags & TALLY_INSN_CONDITIONAL) == !want.conditional &&
		    !(got.flags & TALLY_INSN_BRANCH) == !want.branch &&
		    !(got.flags & TALLY_INSN_REPEATED) == !want.repeated &&
		    (!want.careful || (got.flags & TALLY_INSN_CARE));
	if (same || complaints++ > 20)
		return;
	check(same);
	printf("# %s, %u bits: %u bytes, not %u, flags %#x:", want.name, bits, got.len, want.len,
	       got.flags);
	for (int i = 0; i < INSN_MAX; i++)
		printf(" %02x", bytes[i]);
	puts("");
}

static uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Uniform bytes rarely have the longer opcodes; most rounds begin with one of these. */
static void random_bytes_are_what_the_referee_says(void)
{
	static const uint8_t fronts[][2] = { { 0x0f }, { 0x66, 0x0f }, { 0xf3, 0x0f }, { 0xc4 },
					     { 0xc5 }, { 0x62 },       { 0x48 },       { 0x8f },
					     { 0xf2 }, { 0x67 } };
	uint64_t state = 88172645463325252u, compared = 0;
	uint8_t bytes[16];

	if (!referee_is_there())
		tap_skip("libzydis-dev is not installed");
	for (int i = 0; i < 2000000; i++) {
		for (int k = 0; k < 2; k++) {
			uint64_t word = random_next(&state);
			memcpy(bytes + 8 * k, &word, sizeof(word));
		}
		unsigned front = (unsigned)(i % 12);
		if (front < sizeof(fronts) / sizeof(*fronts))
			memcpy(bytes, fronts[front], fronts[front][1] ? 2 : 1);
		compare(bytes, INSN_MAX, i & 1 ? 64 : 32, &compared);
	}
	printf("# %llu instructions compared\n", (unsigned long long)compared);
	check(compared > 500000);
}

#if defined(__x86_64__)
static const bool libc_is_x86 = true;
#else
static const bool libc_is_x86 = false;
#endif

struct text {
	const uint8_t *at;
	size_t len;
};

static int find_libc(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct text *text = arg;

	if (!strstr(info->dlpi_name, "libc.so"))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type == PT_LOAD && (p->p_flags & PF_X)) {
			text->at = (const uint8_t *)(info->dlpi_addr + p->p_vaddr);
			text->len = p->p_memsz;
		}
	}
	return 1;
}

/* One after the other, as a disassembler goes through it. */
static void all_of_libc_is_what_the_referee_says(void)
{
	struct text text = { 0 };
	uint64_t compared = 0;

	if (!referee_is_there())
		tap_skip("libzydis-dev is not installed");
	if (!libc_is_x86)
		tap_skip("the C library is of another machine");
	dl_iterate_phdr(find_libc, &text);
	require(text.len > 0);
	for (size_t at = 0; at < text.len;) {
		struct referee_insn insn;
		compare(text.at + at, text.len - at, 64, &compared);
		at += referee_decode(&insn, text.at + at, text.len - at, 64) ? insn.len : 1;
	}
	printf("# %llu instructions compared\n", (unsigned long long)compared);
	check(compared > 100000);
}

static const struct {
	uint32_t word, flags;
	uint8_t how;
	const char *what;
} known_arm64[] = {
	{ 0x54000040, CONDITIONAL, INSN_PLAIN, "b.eq +8" },
	{ 0x54000050, CONDITIONAL, INSN_PLAIN, "bc.eq +8" },
	{ 0xb4ffffe0, CONDITIONAL, INSN_PLAIN, "cbz x0, -4" },
	{ 0x35000040, CONDITIONAL, INSN_PLAIN, "cbnz w0, +8" },
	{ 0x36000040, CONDITIONAL, INSN_PLAIN, "tbz w0, #0, +8" },
	{ 0xb7f80040, CONDITIONAL, INSN_PLAIN, "tbnz x0, #63, +8" },
	{ 0x14000001, TALLY_INSN_BRANCH, INSN_PLAIN, "b +4" },
	{ 0x97ffffff, TALLY_INSN_BRANCH, INSN_PLAIN, "bl -4" },
	{ 0xd61f0020, TALLY_INSN_BRANCH, INSN_PLAIN, "br x1" },
	{ 0xd63f0020, TALLY_INSN_BRANCH, INSN_PLAIN, "blr x1" },
	{ 0xd65f03c0, TALLY_INSN_BRANCH, INSN_PLAIN, "ret" },
	{ 0xd65f0bff, TALLY_INSN_BRANCH, INSN_PLAIN, "retaa" },
	{ 0xd4000001, TALLY_INSN_SYSCALL | CARE, INSN_CALL, "svc #0" },
	{ 0xd4200000, CARE, INSN_PLAIN, "brk #0" },
	{ 0xd503201f, 0, INSN_PLAIN, "nop" },
	{ 0x9a810000, 0, INSN_PLAIN, "csel x0, x0, x1, eq" },
	{ 0xc85f7c20, TALLY_INSN_EXCLUSIVE | CARE, INSN_REGION, "ldxr x0, [x1]" },
	{ 0x885ffc20, TALLY_INSN_EXCLUSIVE | CARE, INSN_REGION, "ldaxr w0, [x1]" },
	{ 0x085f7c20, TALLY_INSN_EXCLUSIVE | CARE, INSN_REGION, "ldxrb w0, [x1]" },
	{ 0xc87f0440, TALLY_INSN_EXCLUSIVE | CARE, INSN_REGION, "ldxp x0, x1, [x2]" },
	{ 0xc8027c20, 0, INSN_PLAIN, "stxr w2, x0, [x1]" },
	{ 0xc8dffc20, 0, INSN_PLAIN, "ldar x0, [x1]" },
	{ 0xc8a07c41, 0, INSN_PLAIN, "cas x0, x1, [x2]" },
	{ 0x48607c82, 0, INSN_PLAIN, "caspa x0, x1, x2, x3, [x4]" },
	{ 0xf8200041, 0, INSN_PLAIN, "ldadd x0, x1, [x2]" },
};

static void words_of_the_arm_manual(void)
{
	struct insn insn;

	for (size_t i = 0; i < sizeof(known_arm64) / sizeof(*known_arm64); i++) {
		insn_arm64(&insn, known_arm64[i].word);
		if (!check_u64(insn.flags, known_arm64[i].flags) ||
		    !check_int(insn.how, known_arm64[i].how) || !check_int(insn.len, 4))
			printf("# %s\n", known_arm64[i].what);
	}
	check(insn_arm64_ends_region(0xc8027c20));  /* stxr w2, x0, [x1] */
	check(insn_arm64_ends_region(0xc8238440));  /* stlxp w3, x0, x1, [x2] */
	check(!insn_arm64_ends_region(0xc89ffc20)); /* stlr x0, [x1] */
	check(!insn_arm64_ends_region(0xc85f7c20));
}

static void targets_of_arm_branches(void)
{
	static const struct {
		uint32_t word;
		int64_t target;
	} rows[] = {
		{ 0x54000040, 8 }, { 0xb4ffffe0, -4 },     { 0x97ffffff, -4 },
		{ 0xb7f80040, 8 }, { 0x36fc0000, -32768 },
	};
	struct insn insn;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		insn_arm64(&insn, rows[i].word);
		check(insn.relative);
		check_int(insn.target, rows[i].target);
	}
}

int main(void)
{
	tap_run(instructions_of_the_manual);
	tap_run(targets_of_branches);
	tap_run(in_32_bit_code_the_same_bytes_are_others);
	tap_run(what_is_cut_off_is_unknown);
	tap_run(random_bytes_are_what_the_referee_says);
	tap_run(all_of_libc_is_what_the_referee_says);
	tap_run(words_of_the_arm_manual);
	tap_run(targets_of_arm_branches);
	return tap_end();
}
