/* SPDX-License-Identifier: MIT */
/*
 * DWARF expressions (DWARF 5, 2.5.1), as far as call frame information may use them. libdw has an
 * evaluator only inside its own unwinder; these two hundred lines allocate nothing, and end.
 */
#include "image/dwarf-cursor.h"
#include "image/unwind-expression.h"

#define MAX_DEPTH 64
#define MAX_STEPS 1000 /* branches may loop */

/* DW_OP_* */
enum {
	OP_DEREF = 0x06,
	OP_CONST1U = 0x08,
	OP_CONST1S,
	OP_CONST2U,
	OP_CONST2S,
	OP_CONST4U,
	OP_CONST4S,
	OP_CONST8U,
	OP_CONST8S,
	OP_CONSTU,
	OP_CONSTS,
	OP_DUP,
	OP_DROP,
	OP_OVER,
	OP_PICK,
	OP_SWAP,
	OP_ROT,
	OP_ABS = 0x19,
	OP_AND,
	OP_DIV,
	OP_MINUS,
	OP_MOD,
	OP_MUL,
	OP_NEG,
	OP_NOT,
	OP_OR,
	OP_PLUS,
	OP_PLUS_UCONST,
	OP_SHL,
	OP_SHR,
	OP_SHRA,
	OP_XOR,
	OP_BRA,
	OP_EQ,
	OP_GE,
	OP_GT,
	OP_LE,
	OP_LT,
	OP_NE,
	OP_SKIP,
	OP_LIT0 = 0x30,
	OP_LIT31 = 0x4f,
	OP_BREG0 = 0x70,
	OP_BREG31 = 0x8f,
	OP_BREGX = 0x92,
	OP_DEREF_SIZE = 0x94,
	OP_NOP = 0x96,
};

struct machine {
	struct dwarf_cursor in;
	const uint8_t *start;
	const struct unwind_regs *regs;
	struct unwind_memory *memory;
	unsigned depth;
	uint64_t stack[MAX_DEPTH];
};

static bool push(struct machine *m, uint64_t value)
{
	if (m->depth == MAX_DEPTH)
		return false;
	m->stack[m->depth++] = value;
	return true;
}

/* The n-th from the top, 0 being that. NULL: there are not so many. */
static uint64_t *top(struct machine *m, uint64_t n)
{
	return n < m->depth ? &m->stack[m->depth - 1 - n] : NULL;
}

static bool push_register(struct machine *m, uint64_t reg)
{
	int64_t offset = cursor_sleb(&m->in);

	return reg < UNWIND_REGS && m->regs->known >> reg & 1 &&
	       push(m, m->regs->at[reg] + (uint64_t)offset);
}

static bool dereference(struct machine *m, uint64_t bytes)
{
	uint64_t *at = top(m, 0);

	if (!at || !bytes || bytes > sizeof(*at) || !unwind_load(m->memory, *at, at))
		return false;
	if (bytes < sizeof(*at))
		*at &= ((uint64_t)1 << 8 * bytes) - 1;
	return true;
}

static bool jump(struct machine *m, bool taken)
{
	int64_t by = cursor_signed(&m->in, 2);

	if (!taken)
		return true;
	if (by < m->start - m->in.at || by > m->in.end - m->in.at)
		return false;
	m->in.at += by;
	return true;
}

static bool branch(struct machine *m)
{
	if (!m->depth)
		return false;
	return jump(m, m->stack[--m->depth] != 0);
}

static bool unary(struct machine *m, uint8_t op)
{
	uint64_t *a = top(m, 0);

	if (!a)
		return false;
	switch (op) {
	case OP_ABS:
		*a = (int64_t)*a < 0 ? -*a : *a;
		return true;
	case OP_NEG:
		*a = -*a;
		return true;
	case OP_NOT:
		*a = ~*a;
		return true;
	default: /* PLUS_UCONST */
		*a += cursor_uleb(&m->in);
		return true;
	}
}

/* Of the two on top; a stands below b. */
static bool binary(struct machine *m, uint8_t op)
{
	if (m->depth < 2)
		return false;
	uint64_t b = m->stack[--m->depth], a = m->stack[m->depth - 1], *out = top(m, 0);
	int64_t sa = (int64_t)a, sb = (int64_t)b;

	if ((op == OP_DIV && (!b || (sa == INT64_MIN && sb == -1))) || (op == OP_MOD && !b))
		return false;
	switch (op) {
	case OP_AND:
		*out = a & b;
		break;
	case OP_DIV:
		*out = (uint64_t)(sa / sb);
		break;
	case OP_MINUS:
		*out = a - b;
		break;
	case OP_MOD:
		*out = a % b;
		break;
	case OP_MUL:
		*out = a * b;
		break;
	case OP_OR:
		*out = a | b;
		break;
	case OP_PLUS:
		*out = a + b;
		break;
	case OP_SHL:
		*out = b < 64 ? a << b : 0;
		break;
	case OP_SHR:
		*out = b < 64 ? a >> b : 0;
		break;
	case OP_SHRA:
		*out = (uint64_t)(sa >> (b < 64 ? b : 63));
		break;
	case OP_XOR:
		*out = a ^ b;
		break;
	case OP_EQ:
		*out = sa == sb;
		break;
	case OP_GE:
		*out = sa >= sb;
		break;
	case OP_GT:
		*out = sa > sb;
		break;
	case OP_LE:
		*out = sa <= sb;
		break;
	case OP_LT:
		*out = sa < sb;
		break;
	default: /* NE */
		*out = sa != sb;
		break;
	}
	return true;
}

static bool shuffle(struct machine *m, uint8_t op)
{
	uint64_t n = op == OP_OVER ? 1 : op == OP_PICK ? cursor_fixed(&m->in, 1) : 0;
	uint64_t *a = top(m, 0), *b = top(m, 1), *c = top(m, 2), *picked = top(m, n), saved;

	if (!a || !picked || (op == OP_SWAP && !b) || (op == OP_ROT && !c))
		return false;
	saved = *a;
	switch (op) {
	case OP_DROP:
		m->depth--;
		return true;
	case OP_SWAP:
		*a = *b;
		*b = saved;
		return true;
	case OP_ROT:
		*a = *b;
		*b = *c;
		*c = saved;
		return true;
	default: /* DUP, OVER, PICK */
		return push(m, *picked);
	}
}

static bool constant(struct machine *m, uint8_t op)
{
	if (op == OP_CONSTU)
		return push(m, cursor_uleb(&m->in));
	if (op == OP_CONSTS)
		return push(m, (uint64_t)cursor_sleb(&m->in));
	size_t bytes = (size_t)1 << (op - OP_CONST1U) / 2;
	return push(m, (op - OP_CONST1U) % 2 ? (uint64_t)cursor_signed(&m->in, bytes)
					     : cursor_fixed(&m->in, bytes));
}

static bool step(struct machine *m)
{
	uint8_t op = (uint8_t)cursor_fixed(&m->in, 1);

	if (op >= OP_LIT0 && op <= OP_LIT31)
		return push(m, op - OP_LIT0);
	if (op >= OP_BREG0 && op <= OP_BREG31)
		return push_register(m, op - OP_BREG0);
	if (op >= OP_CONST1U && op <= OP_CONSTS)
		return constant(m, op);
	if (op >= OP_DUP && op <= OP_ROT)
		return shuffle(m, op);
	switch (op) {
	case OP_DEREF:
		return dereference(m, sizeof(uint64_t));
	case OP_DEREF_SIZE:
		return dereference(m, cursor_fixed(&m->in, 1));
	case OP_ABS:
	case OP_NEG:
	case OP_NOT:
	case OP_PLUS_UCONST:
		return unary(m, op);
	case OP_BRA:
		return branch(m);
	case OP_SKIP:
		return jump(m, true);
	case OP_BREGX:
		return push_register(m, cursor_uleb(&m->in));
	case OP_NOP:
		return true;
	default:
		return op >= OP_AND && op <= OP_NE && binary(m, op);
	}
}

bool unwind_evaluate(const struct unwind_rules *rules, int32_t offset,
		     const struct unwind_regs *regs, struct unwind_memory *memory,
		     const uint64_t *cfa, uint64_t *out)
{
	if (offset < 0 || (size_t)offset >= rules->len)
		return false;
	struct machine m = {
		.in = { rules->bytes + offset, rules->bytes + rules->len, false },
		.regs = regs,
		.memory = memory,
	};
	uint64_t len = cursor_uleb(&m.in);
	bool good = !m.in.failed && len <= (uint64_t)(m.in.end - m.in.at);

	if (!good)
		return false;
	m.start = m.in.at;
	m.in.end = m.in.at + len;
	if (cfa)
		push(&m, *cfa);
	for (unsigned steps = 0; good && m.in.at < m.in.end; steps++)
		good = steps < MAX_STEPS && step(&m) && !m.in.failed;
	if (!good || !m.depth)
		return false;
	*out = m.stack[m.depth - 1];
	return true;
}
