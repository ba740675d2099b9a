/* SPDX-License-Identifier: MIT */
/* DWARF expressions: each operation by what section 2.5.1 of DWARF 5 says that it does. */
#include "image/unwind-expression.h"
#include "tap.h"

#define MEMORY 0x1000u

static const uint64_t memory[] = { 0x1122334455667788, 0xfedcba9876543210 };

/*
 * Evaluates the operations; false: refused. Register 7 is 0x1000, register 3 is 5; the others are
 * lost.
 */
static bool evaluate(const uint8_t *operations, size_t len, const uint64_t *cfa, uint64_t *out)
{
	uint8_t bytes[64] = { (uint8_t)len };
	const struct unwind_rules rules = { .bytes = bytes, .len = len + 1 };
	struct unwind_regs regs = { .known = 1u << 7 | 1u << 3 };
	struct unwind_memory m = { .start = MEMORY,
				   .len = sizeof(memory),
				   .copy = (const uint8_t *)memory };

	memcpy(bytes + 1, operations, len);
	regs.at[7] = MEMORY;
	regs.at[3] = 5;
	return unwind_evaluate(&rules, 0, &regs, &m, cfa, out);
}

#define BYTES(...)        (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ })
#define GIVES(value, ...) check_gives((uint64_t)(value), #__VA_ARGS__, BYTES(__VA_ARGS__))
#define REFUSED(...)      check_refused(#__VA_ARGS__, BYTES(__VA_ARGS__))

static void check_gives(uint64_t value, const char *what, const uint8_t *operations, size_t len)
{
	uint64_t got = 0;

	if (!check(evaluate(operations, len, NULL, &got)) || !check_u64(got, value))
		printf("# in %s\n", what);
}

static void check_refused(const char *what, const uint8_t *operations, size_t len)
{
	uint64_t got;

	if (!check(!evaluate(operations, len, NULL, &got)))
		printf("# in %s\n", what);
}

static void constants(void)
{
	GIVES(0, 0x30);
	GIVES(31, 0x4f);
	GIVES(0xff, 0x08, 0xff);
	GIVES(-1, 0x09, 0xff);
	GIVES(0xfffe, 0x0a, 0xfe, 0xff);
	GIVES(-2, 0x0b, 0xfe, 0xff);
	GIVES(0x80000001, 0x0c, 1, 0, 0, 0x80);
	GIVES((int32_t)0x80000001, 0x0d, 1, 0, 0, 0x80);
	GIVES(0x8877665544332211, 0x0e, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88);
	GIVES(624485, 0x10, 0xe5, 0x8e, 0x26); /* the example of section 7.6 */
	GIVES(-127, 0x11, 0x81, 0x7f);         /* and of its table 7.8 */
	GIVES(128, 0x11, 0x80, 0x01);
}

static void registers_and_memory(void)
{
	GIVES(5, 0x73, 0);
	GIVES(3, 0x73, 0x7e);      /* breg3 - 2 */
	GIVES(0x1008, 0x92, 7, 8); /* bregx */
	GIVES(memory[0], 0x77, 0, 0x06);
	GIVES(memory[1], 0x77, 8, 0x06);
	GIVES(0x7788, 0x77, 0, 0x94, 2); /* deref_size */
	REFUSED(0x70, 0);                /* a register that was lost */
	REFUSED(0x92, 33, 0);
	REFUSED(0x77, 16, 0x06); /* beyond the copy, and half in it */
	REFUSED(0x77, 12, 0x06);
	REFUSED(0x77, 0, 0x94, 9);
	REFUSED(0x06);
}

static void arithmetic(void)
{
	GIVES(8, 0x33, 0x35, 0x22);                        /* 3 + 5 */
	GIVES(-2, 0x33, 0x35, 0x1c);                       /* 3 - 5 */
	GIVES(15, 0x33, 0x35, 0x1e);                       /* 3 * 5 */
	GIVES(-3, 0x09, 0xf9, 0x32, 0x1b);                 /* -7 / 2, towards zero */
	GIVES(2, 0x38, 0x33, 0x1d);                        /* 8 mod 3 */
	GIVES(1, 0x33, 0x35, 0x1a);                        /* and */
	GIVES(7, 0x33, 0x35, 0x21);                        /* or */
	GIVES(6, 0x33, 0x35, 0x27);                        /* xor */
	GIVES(-4, 0x33, 0x20);                             /* not */
	GIVES(-3, 0x33, 0x1f);                             /* neg */
	GIVES(3, 0x09, 0xfd, 0x19);                        /* abs */
	GIVES(24, 0x33, 0x33, 0x24);                       /* shl */
	GIVES(0x7fffffffffffffff, 0x09, 0xff, 0x31, 0x25); /* shr */
	GIVES(-1, 0x09, 0xff, 0x31, 0x26);                 /* shra */
	GIVES(0, 0x33, 0x08, 64, 0x24);
	GIVES(-1, 0x09, 0xfd, 0x08, 200, 0x26);
	GIVES(131, 0x33, 0x23, 0x80, 0x01); /* plus_uconst */
	REFUSED(0x33, 0x30, 0x1b);
	REFUSED(0x33, 0x30, 0x1d);
	/* The most negative number by -1 has no answer that fits. */
	REFUSED(0x0e, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x09, 0xff, 0x1b);
	REFUSED(0x33, 0x22);
}

static void comparisons_are_signed(void)
{
	GIVES(1, 0x33, 0x33, 0x29);       /* eq */
	GIVES(0, 0x33, 0x33, 0x2e);       /* ne */
	GIVES(1, 0x33, 0x09, 0xff, 0x2a); /* 3 >= -1 */
	GIVES(1, 0x33, 0x09, 0xff, 0x2b); /* > */
	GIVES(0, 0x33, 0x09, 0xff, 0x2c); /* <= */
	GIVES(0, 0x33, 0x09, 0xff, 0x2d); /* < */
}

static void the_stack(void)
{
	GIVES(6, 0x33, 0x12, 0x22);          /* dup */
	GIVES(3, 0x33, 0x35, 0x13);          /* drop */
	GIVES(3, 0x33, 0x35, 0x14);          /* over */
	GIVES(3, 0x33, 0x35, 0x37, 0x15, 2); /* pick */
	GIVES(2, 0x33, 0x35, 0x16, 0x1c);    /* swap: 5 - 3 */
	/* rot: the first becomes the third, the others move up. 1 2 3 -> 3 1 2: 1 - 2 below 3. */
	GIVES(-1, 0x31, 0x32, 0x33, 0x17, 0x1c);
	REFUSED(0x33, 0x16);
	REFUSED(0x33, 0x35, 0x17);
	REFUSED(0x33, 0x15, 1);
	REFUSED(0x12);
	REFUSED(0x96);
}

static void branches(void)
{
	GIVES(4, 0x34, 0x2f, 1, 0, 0x35);       /* skip over lit5 */
	GIVES(4, 0x34, 0x31, 0x28, 1, 0, 0x35); /* bra when not zero */
	GIVES(5, 0x34, 0x30, 0x28, 1, 0, 0x35);
	/* From 5 down to 0: what is left is 0. */
	GIVES(0, 0x35, 0x31, 0x1c, 0x12, 0x28, 0xfa, 0xff);
	REFUSED(0x34, 0x2f, 2, 0, 0x35);
	REFUSED(0x34, 0x2f, 0xfb, 0xff);
	REFUSED(0x34, 0x2f, 0xfd, 0xff); /* for ever */
	REFUSED(0x31, 0x2f, 0xfc, 0xff); /* until the stack is full */
}

static void the_cfa_stands_first(void)
{
	const uint64_t cfa = 0x4000;
	uint64_t got = 0;

	check(evaluate(BYTES(0x23, 8), &cfa, &got));
	check_u64(got, 0x4008);
}

static void what_is_cut_or_unknown_is_refused(void)
{
	const uint8_t bytes[] = { 9, 0x30 };
	const struct unwind_rules rules = { .bytes = bytes, .len = sizeof(bytes) };
	struct unwind_regs regs = { 0 };
	struct unwind_memory m = { 0 };
	uint64_t got;

	check(!unwind_evaluate(&rules, 0, &regs, &m, NULL, &got));
	check(!unwind_evaluate(&rules, 2, &regs, &m, NULL, &got));
	check(!unwind_evaluate(&rules, -1, &regs, &m, NULL, &got));
	REFUSED(0x0e, 1, 2);
	REFUSED(0x10, 0x80);
	REFUSED(0x03, 0, 0, 0, 0, 0, 0, 0, 0); /* addr: where the module is, is not known here */
	REFUSED(0x50);                         /* reg0 is no value */
	REFUSED(0xff);
}

int main(void)
{
	tap_run(constants);
	tap_run(registers_and_memory);
	tap_run(arithmetic);
	tap_run(comparisons_are_signed);
	tap_run(the_stack);
	tap_run(branches);
	tap_run(the_cfa_stands_first);
	tap_run(what_is_cut_or_unknown_is_refused);
	return tap_end();
}
