/* SPDX-License-Identifier: MIT */
/*
 * Breakpoints as perf(1) writes them: mem:ADDR[/LEN][:ACCESS], where ACCESS is made of r, w and
 * x; a last part of other letters is modifiers. What no CPU of this architecture can watch is
 * refused here with the reason, as the kernel says no more than EINVAL.
 */
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/proc.h"
#include "event/breakpoint.h"

#define PREFIX "mem:"

/* arch/x86/kernel/hw_breakpoint.c. Other architectures watch other things, and answer EINVAL. */
#if defined(__x86_64__) || defined(__i386__)
#define ARCH_IS_X86 1
#else
#define ARCH_IS_X86 0
#endif

struct breakpoint {
	uint64_t address, len;
	uint32_t access;
	const char *at, *end; /* what is not read yet of the word */
};

/* The number that the word goes on with, up to one of `ends`. */
static int read_number(const struct naming *n, struct breakpoint *b, const char *ends,
		       const char *what, uint64_t *out)
{
	char digits[RESOLVE_MAX_NAME + 1];
	size_t len = 0;

	while (b->at + len < b->end && !strchr(ends, b->at[len]))
		len++;
	if (!len)
		return resolve_fail(n, b->at, TALLY_CAUSE_SYNTAX,
				    "the %s is missing: mem:ADDR[/LEN][:rwx]", what);
	if (!resolve_copy(digits, b->at, len) || !parse_u64(digits, out))
		return resolve_fail(n, b->at, TALLY_CAUSE_SYNTAX,
				    "'%.*s' is no %s: a number of 64 bits, decimal or hex after 0x",
				    len > RESOLVE_MAX_NAME ? RESOLVE_MAX_NAME : (int)len, b->at,
				    what);
	b->at += len;
	return 0;
}

static uint32_t access_bit(char letter)
{
	switch (letter) {
	case 'r':
		return TALLY_BP_R;
	case 'w':
		return TALLY_BP_W;
	case 'x':
		return TALLY_BP_X;
	default:
		return 0;
	}
}

/* ":rw", each letter once; other letters behind the colon are modifiers, and left alone. */
static int read_access(const struct naming *n, struct breakpoint *b)
{
	const char *at = b->at + 1, *stop = at;

	if (b->at == b->end)
		return 0;
	while (stop < b->end && access_bit(*stop))
		stop++;
	if (stop == at || (stop < b->end && *stop != ':'))
		return 0;
	for (; at < stop; at++) {
		if (b->access & access_bit(*at))
			return resolve_fail(n, at, TALLY_CAUSE_SYNTAX,
					    "the access '%c' is there twice", *at);
		b->access |= access_bit(*at);
	}
	b->at = stop;
	return 0;
}

static int read_word(const struct naming *n, struct breakpoint *b)
{
	int r = read_number(n, b, "/:", "address", &b->address);

	if (r == 0 && b->at < b->end && *b->at == '/') {
		b->at++;
		r = read_number(n, b, ":", "length", &b->len);
		if (r == 0 && !b->len)
			r = resolve_fail(n, b->at - 1, TALLY_CAUSE_ARGUMENT,
					 "a breakpoint of no length watches nothing");
	}
	return r < 0 ? r : read_access(n, b);
}

/* perf's defaults. The kernel wants a long for execution, also where instructions are shorter. */
static void complete(struct breakpoint *b)
{
	if (!b->access)
		b->access = TALLY_BP_R | TALLY_BP_W;
	if (!b->len)
		b->len = b->access == TALLY_BP_X ? sizeof(long) : 4;
}

static const char *impossible(const struct breakpoint *b)
{
	if (b->access & TALLY_BP_X && b->access != TALLY_BP_X)
		return "one breakpoint watches either execution or data: name two events";
	if (!ARCH_IS_X86)
		return NULL;
	if (b->access == TALLY_BP_R)
		return "x86 cannot watch reads alone: take rw, which counts writes too";
	if (b->access == TALLY_BP_X && b->len != sizeof(long))
		return "a breakpoint on execution has the length of a long: leave it out";
	if (!is_power_of_two(b->len))
		return "x86 watches 1, 2, 4 or 8 bytes, some of AMD's more powers of two";
	if (b->access != TALLY_BP_X && b->address % b->len)
		return "x86 watches addresses that are a multiple of the length: give a smaller "
		       "length, as ADDR/1";
	return NULL;
}

int breakpoint_resolve(const struct naming *n, const char *text, size_t len, struct found *out)
{
	size_t prefix = strlen(PREFIX);

	if (len < prefix || memcmp(text, PREFIX, prefix) != 0)
		return 0;
	struct breakpoint b = { .at = text + prefix, .end = text + len };
	int r = read_word(n, &b);
	if (r < 0)
		return r;
	complete(&b);
	const char *why = impossible(&b);
	if (why)
		return resolve_fail(n, text, TALLY_CAUSE_UNSUPPORTED, "'%.*s': %s",
				    (int)(b.at - text), text, why);
	struct found_event *e = found_add(out, TALLY_TYPE_BREAKPOINT, 0);
	if (!e)
		return error_nomem(n->err, "events");
	e->attr.bp_type = b.access;
	e->attr.config1 = b.address;
	e->attr.config2 = b.len;
	out->taken = (size_t)(b.at - text);
	return 1;
}
