/* SPDX-License-Identifier: MIT */
/* Line programs (DWARF 5, 6.2.5) run into rows. */
#include <errno.h>
#include <stdlib.h>

#include "image/line-header.h"

struct machine {
	struct line_table *table;
	const struct line_header *head;
	uint64_t address, start; /* start: of the sequence */
	size_t first;            /* row of the sequence */
	uint32_t file, line, column;
	uint32_t op;      /* operation in a VLIW instruction */
	uint32_t inverse; /* of the line range, in 1/65536 */
	bool open, unordered, no_memory;
};

static void reset(struct machine *m)
{
	m->address = m->start = 0;
	m->op = 0;
	m->file = 1;
	m->line = 1;
	m->column = 0;
	m->open = m->unordered = false;
	m->first = m->table->rows.count;
}

static void advance(struct machine *m, uint64_t operations)
{
	uint64_t ops = m->op + operations;

	if (m->head->max_ops == 1) {
		m->address += operations * m->head->min_length;
		return;
	}
	m->address += ops / m->head->max_ops * m->head->min_length;
	m->op = (uint32_t)(ops % m->head->max_ops);
}

/* Of rows with one address the last holds: what came before it has no code. */
static void add_row(struct machine *m)
{
	struct line_table *t = m->table;

	if (!m->open) {
		m->open = true;
		m->start = m->address;
	}
	uint64_t distance = m->address - m->start;
	if (m->address < m->start || distance > UINT32_MAX)
		return; /* no code model reaches so far */
	struct line_row *last = t->rows.count > m->first ? &t->rows.at[t->rows.count - 1] : NULL;
	if (last && last->at > distance)
		m->unordered = true;
	bool same = last && last->at == distance;
	if (!same && t->rows.count == t->rows.room && !vec_reserve(&t->rows, 1)) {
		m->no_memory = true;
		return;
	}
	struct line_row *row = same ? last : &t->rows.at[t->rows.count++];
	*row = (struct line_row){
		.at = (uint32_t)distance,
		.line = m->line,
		.file = m->file < LINE_NO_FILE ? (uint16_t)m->file : LINE_NO_FILE,
		.column = m->column <= UINT16_MAX ? (uint16_t)m->column : 0,
	};
}

static int compare_rows(const void *a, const void *b)
{
	const struct line_row *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

/* Code that the linker left out has address 0, or a tombstone, from which rows wrap around. */
static void end_sequence(struct machine *m)
{
	struct line_table *t = m->table;
	size_t count = t->rows.count - m->first;
	uint64_t end = m->address;

	if (m->open && m->start && end > m->start && count && end - m->start <= UINT32_MAX) {
		struct line_sequence *s = vec_push(&t->sequences);
		m->no_memory |= !s;
		if (s)
			*s = (struct line_sequence){ m->start, end, m->first, count };
		/* The manual forbids it; a look-up must hold all the same. */
		if (m->unordered)
			qsort(t->rows.at + m->first, count, sizeof(*t->rows.at), compare_rows);
	} else {
		t->rows.count = m->first;
	}
	reset(m);
}

static void set_address(struct machine *m, struct dwarf_cursor *c, uint64_t size)
{
	m->address = cursor_address(c, size > 8 ? 0 : (uint8_t)size);
	m->op = 0;
}

static void define_file(struct machine *m, struct dwarf_cursor *c)
{
	struct line_file file, *added;

	if (!line_header_old_file(c, &file))
		return;
	added = vec_push(&m->table->files);
	if (added)
		*added = file;
	m->no_memory |= !added;
}

static void run_extended(struct machine *m, struct dwarf_cursor *c)
{
	uint64_t len = cursor_uleb(c);
	const uint8_t *body = cursor_take(c, len);

	if (!body || !len)
		return;
	struct dwarf_cursor inner = { body + 1, body + len, c->swapped, false };
	switch (*body) {
	case DW_LNE_end_sequence:
		end_sequence(m);
		break;
	case DW_LNE_set_address:
		set_address(m, &inner, len - 1);
		break;
	case DW_LNE_define_file:
		define_file(m, &inner);
		break;
	default: /* discriminators, and what vendors added: passed over by its length */
		break;
	}
}

static void skip_operands(const struct machine *m, uint8_t opcode, struct dwarf_cursor *c)
{
	for (uint8_t i = 0; i < m->head->operands[opcode - 1]; i++)
		cursor_uleb(c);
}

static void run_standard(struct machine *m, uint8_t opcode, struct dwarf_cursor *c)
{
	switch (opcode) {
	case DW_LNS_copy:
		add_row(m);
		break;
	case DW_LNS_advance_pc:
		advance(m, cursor_uleb(c));
		break;
	case DW_LNS_advance_line:
		m->line += (uint32_t)cursor_sleb(c);
		break;
	case DW_LNS_set_file:
		m->file = (uint32_t)cursor_uleb(c);
		break;
	case DW_LNS_set_column:
		m->column = (uint32_t)cursor_uleb(c);
		break;
	case DW_LNS_const_add_pc:
		if (m->head->line_range)
			advance(m, (255u - m->head->opcode_base) / m->head->line_range);
		break;
	case DW_LNS_fixed_advance_pc:
		m->address += cursor_u16(c);
		m->op = 0;
		break;
	case DW_LNS_negate_stmt:
	case DW_LNS_set_basic_block:
	case DW_LNS_set_prologue_end:
	case DW_LNS_set_epilogue_begin:
		break;
	default:
		skip_operands(m, opcode, c);
	}
}

static void run(struct machine *m, struct dwarf_cursor *c)
{
	const struct line_header *h = m->head;

	reset(m);
	/* Dividing takes long; of numbers of 8 bits this comes to the same. */
	m->inverse = h->line_range ? 65536 / h->line_range + 1 : 0;
	while (c->at < c->end && !c->failed && !m->no_memory) {
		uint8_t opcode = *c->at++;
		if (opcode >= h->opcode_base) {
			/* A special opcode moves both and makes a row; without a range it is none. */
			uint32_t both = opcode - h->opcode_base, steps = both * m->inverse >> 16;
			if (!h->line_range)
				break;
			advance(m, steps);
			m->line += (uint32_t)h->line_base + both - steps * h->line_range;
			add_row(m);
		} else if (opcode == DW_LNS_extended) {
			run_extended(m, c);
		} else {
			run_standard(m, opcode, c);
		}
	}
	/* A sequence that does not end says nothing about where it would. */
	m->table->rows.count = m->first;
}

static int compare_sequences(const void *a, const void *b)
{
	const struct line_sequence *x = a, *y = b;

	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	return x->high < y->high ? -1 : x->high > y->high;
}

int line_table_read(struct line_table *t, const struct dwarf_unit *u, uint64_t offset)
{
	struct dwarf_section *section = &u->file->sections[DWARF_LINE];
	struct dwarf_cursor length = dwarf_section_at(section, offset, offset + 12);
	uint64_t len = cursor_u32(&length);
	struct line_header head;

	t->unit = u;
	len = len == 0xffffffff ? cursor_u64(&length) + 12 : len + 4;
	if (length.failed || len > section->size || offset > section->size - len)
		return 0;
	/* Of a file whose tables lie in each other enough has been read. */
	if (len > u->file->line_budget)
		return 0;
	u->file->line_budget -= len;
	struct dwarf_cursor c = dwarf_section_at(section, offset, offset + len);
	int r = line_header_read(&head, t, u, &c);
	if (r == 0) {
		struct machine m = { .table = t, .head = &head };
		run(&m, &c);
		r = m.no_memory ? -ENOMEM : 0;
	}
	/* To those of the next table. */
	vec_trim(&t->rows);
	if (t->sequences.count)
		qsort(t->sequences.at, t->sequences.count, sizeof(*t->sequences.at),
		      compare_sequences);
	return r == -ENOMEM ? r : 0;
}

void line_table_done(struct line_table *t)
{
	vec_done(&t->folders);
	vec_done(&t->files);
	vec_done(&t->sequences);
	vec_done(&t->rows);
}

static const struct line_row *find_row(const struct line_table *t, const struct line_sequence *s,
				       uint64_t address)
{
	const struct line_row *at = t->rows.at + s->first;

	for (size_t n = s->count; n > 1; n -= n / 2)
		at += at[n / 2].at <= address - s->low ? n / 2 : 0;
	return at;
}

const struct line_row *line_table_find(const struct line_table *t, uint64_t address)
{
	size_t low = 0, high = t->sequences.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (t->sequences.at[middle].low <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || address >= t->sequences.at[low - 1].high)
		return NULL;
	return find_row(t, &t->sequences.at[low - 1], address);
}

struct line_file *line_table_file(const struct line_table *t, uint32_t file)
{
	if (file >= t->files.count || !t->files.at[file].name)
		return NULL;
	return &t->files.at[file];
}
