/* SPDX-License-Identifier: MIT */
/* Line programs (DWARF 5, 6.2.5), run once for marks, and from a mark on for a row. */
#include <errno.h>
#include <stdlib.h>

#include "image/line-header.h"

/* To find a row so many are made again, none with more bytes of program before it. */
#define INTERVAL 32
#define MOST_GAP 1024

/* ---- the machine ---- */

struct state {
	uint64_t address;
	uint32_t file, line, column;
	uint32_t op; /* operation in a VLIW instruction */
};

struct program {
	const struct line_header *head;
	const uint8_t *start;
	struct dwarf_cursor at;
	struct dwarf_cursor entry; /* of a file that was defined */
	uint32_t inverse;          /* of the line range, in 1/65536 */
};

/* What a program comes to. */
enum event {
	NOTHING,
	A_ROW,
	A_FILE,
	END_OF_SEQUENCE,
	END_OF_PROGRAM,
};

static const struct state first_state = { .file = 1, .line = 1 };

static struct program program_at(const struct line_table *t, uint64_t offset)
{
	const struct line_header *h = &t->head;
	struct program p = { .head = h, .start = t->program.at, .at = t->program };

	/* Dividing takes long; of numbers of 8 bits this comes to the same. */
	p.inverse = h->line_range ? 65536 / h->line_range + 1 : 0;
	cursor_take(&p.at, offset);
	return p;
}

static uint64_t offset_of(const struct program *p)
{
	return (uint64_t)(p->at.at - p->start);
}

static inline void advance(const struct line_header *h, struct state *s, uint64_t operations)
{
	uint64_t ops = s->op + operations;

	if (h->max_ops == 1) {
		s->address += operations * h->min_length;
		return;
	}
	s->address += ops / h->max_ops * h->min_length;
	s->op = (uint32_t)(ops % h->max_ops);
}

/* Most take one byte. */
static inline uint64_t operand(struct dwarf_cursor *c)
{
	return c->at < c->end && *c->at < 0x80 ? *c->at++ : cursor_uleb(c);
}

static void set_address(struct state *s, struct dwarf_cursor *c, uint64_t size)
{
	s->address = cursor_address(c, size > 8 ? 0 : (uint8_t)size);
	s->op = 0;
}

static enum event run_extended(struct program *p, struct state *s)
{
	uint64_t len = operand(&p->at);
	const uint8_t *body = cursor_take(&p->at, len);

	if (!body || !len)
		return NOTHING;
	p->entry = (struct dwarf_cursor){ body + 1, body + len, p->at.swapped, false };
	switch (*body) {
	case DW_LNE_end_sequence:
		return END_OF_SEQUENCE;
	case DW_LNE_set_address:
		set_address(s, &p->entry, len - 1);
		return NOTHING;
	case DW_LNE_define_file:
		return A_FILE;
	default: /* discriminators, and what vendors added: passed over by its length */
		return NOTHING;
	}
}

static enum event run_standard(struct program *p, struct state *s, uint8_t opcode)
{
	const struct line_header *h = p->head;

	switch (opcode) {
	case DW_LNS_extended:
		return run_extended(p, s);
	case DW_LNS_copy:
		return A_ROW;
	case DW_LNS_advance_pc:
		advance(h, s, operand(&p->at));
		return NOTHING;
	case DW_LNS_advance_line:
		s->line += (uint32_t)cursor_sleb(&p->at);
		return NOTHING;
	case DW_LNS_set_file:
		s->file = (uint32_t)operand(&p->at);
		return NOTHING;
	case DW_LNS_set_column:
		s->column = (uint32_t)operand(&p->at);
		return NOTHING;
	case DW_LNS_const_add_pc:
		if (h->line_range)
			advance(h, s, (255u - h->opcode_base) / h->line_range);
		return NOTHING;
	case DW_LNS_fixed_advance_pc:
		s->address += cursor_u16(&p->at);
		s->op = 0;
		return NOTHING;
	case DW_LNS_negate_stmt:
	case DW_LNS_set_basic_block:
	case DW_LNS_set_prologue_end:
	case DW_LNS_set_epilogue_begin:
		return NOTHING;
	default:
		for (uint8_t i = 0; i < h->operands[opcode - 1]; i++)
			cursor_uleb(&p->at);
		return NOTHING;
	}
}

/* Runs up to the next event. What is common, with short numbers, is done here. */
static inline enum event run(struct program *p, struct state *s)
{
	const struct line_header *h = p->head;
	const uint8_t *at = p->at.at, *end = p->at.end;

	while (at < end) {
		uint8_t opcode = *at++;
		bool is_short = at < end && *at < 0x80;
		if (opcode >= h->opcode_base) {
			/* A special opcode moves both and makes a row; without a range it is none. */
			uint32_t both = opcode - h->opcode_base, steps = both * p->inverse >> 16;
			p->at.at = at;
			if (!h->line_range)
				break;
			advance(h, s, steps);
			s->line += (uint32_t)h->line_base + both - steps * h->line_range;
			return A_ROW;
		}
		if (opcode == DW_LNS_set_column && is_short) {
			s->column = *at++;
		} else if (opcode == DW_LNS_set_file && is_short) {
			s->file = *at++;
		} else if (opcode == DW_LNS_advance_line && is_short) {
			/* Bit 6 is the sign. */
			s->line += (uint32_t)((*at++ ^ 0x40) - 0x40);
		} else if (opcode != DW_LNS_negate_stmt) {
			p->at.at = at;
			enum event event = run_standard(p, s, opcode);
			if (event != NOTHING)
				return event;
			at = p->at.at;
		}
	}
	return END_OF_PROGRAM;
}

/* ---- marks ---- */

/* A sequence, while its program runs. */
struct sequence {
	uint64_t begins; /* in the program */
	uint64_t start;  /* its first address */
	size_t first;    /* mark */
	/* Of the row that was made last: where it is, where the program goes on. */
	uint32_t at, program;
	uint32_t left; /* rows up to the next mark */
	bool open;
	bool odd; /* each row is to have a mark */
};

/* false: its address is none that a code model reaches. */
static bool row_at(const struct state *s, uint64_t start, uint32_t *at)
{
	uint64_t distance = s->address - start;

	*at = (uint32_t)distance;
	return s->address >= start && distance <= UINT32_MAX;
}

static bool keep_mark(struct line_table *t, struct sequence *q, const struct state *s)
{
	if (!vec_reserve(&t->marks, 1))
		return false;
	t->marks.at[t->marks.count++] = (struct line_mark){
		.at = q->at,
		.program = q->program,
		.file = s->file,
		.line = s->line,
		.column = s->column,
		.op = s->op,
	};
	q->left = INTERVAL;
	return true;
}

static void begin_row(struct sequence *q, uint64_t address, uint32_t program)
{
	q->open = true;
	q->start = address;
	q->program = program;
	q->left = 1;
}

/* The next row of a sequence. false: no memory. */
static inline bool mark_row(struct line_table *t, struct sequence *q, const struct program *p,
			    const struct state *s)
{
	uint32_t program = (uint32_t)offset_of(p), at;

	if (!q->open)
		begin_row(q, s->address, program);
	if (!row_at(s, q->start, &at))
		return true;
	q->odd |= at < q->at || program - q->program > MOST_GAP;
	q->at = at;
	q->program = program;
	return --q->left || keep_mark(t, q, s);
}

static struct line_row row_of(const struct state *s, uint32_t at)
{
	return (struct line_row){
		.at = at,
		.line = s->line,
		.file = s->file < LINE_NO_FILE ? (uint16_t)s->file : LINE_NO_FILE,
		.column = s->column <= UINT16_MAX ? (uint16_t)s->column : 0,
	};
}

static int compare_marks(const void *a, const void *b)
{
	const struct line_mark *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

/*
 * Of a sequence whose rows go back, which the manual forbids, or lie far apart in the program: each
 * row has a mark. Of rows with one address the last holds: what came before it has no code.
 */
static bool mark_all(struct line_table *t, const struct sequence *q)
{
	struct program p = program_at(t, q->begins);
	struct state s = first_state;
	struct sequence each = *q;
	enum event event;
	uint32_t at;

	t->marks.count = q->first;
	while ((event = run(&p, &s)) == A_ROW || event == A_FILE) {
		if (event != A_ROW || !row_at(&s, q->start, &at))
			continue;
		t->marks.count -= t->marks.count > q->first && at == each.at;
		each.at = at;
		if (!keep_mark(t, &each, &s))
			return false;
	}
	qsort(t->marks.at + q->first, t->marks.count - q->first, sizeof(*t->marks.at),
	      compare_marks);
	return true;
}

/* Code that the linker left out has address 0, or a tombstone, from which rows wrap around. */
static bool end_sequence(struct line_table *t, struct sequence *q, const struct program *p,
			 uint64_t end)
{
	struct line_sequence sequence = { .low = q->start, .high = end, .first = q->first };

	if (!q->open || !q->start || end <= q->start || end - q->start > UINT32_MAX) {
		t->marks.count = q->first;
		return true;
	}
	sequence.marks_all = q->odd || offset_of(p) - q->program > MOST_GAP;
	if (sequence.marks_all && !mark_all(t, q))
		return false;
	sequence.count = t->marks.count - q->first;
	if (!vec_reserve(&t->sequences, 1))
		return false;
	t->sequences.at[t->sequences.count++] = sequence;
	return true;
}

static bool define_file(struct line_table *t, struct dwarf_cursor *c)
{
	struct line_file file, *added;

	if (!line_header_old_file(c, &file))
		return true;
	added = vec_push(&t->files);
	if (added)
		*added = file;
	return added != NULL;
}

static int make_marks(struct line_table *t)
{
	struct program p = program_at(t, 0);
	struct state s = first_state;
	struct sequence q = { 0 };

	for (bool has_memory = true; has_memory;) {
		switch (run(&p, &s)) {
		case A_ROW:
			has_memory = mark_row(t, &q, &p, &s);
			break;
		case A_FILE:
			has_memory = define_file(t, &p.entry);
			break;
		case END_OF_SEQUENCE:
			has_memory = end_sequence(t, &q, &p, s.address);
			q = (struct sequence){ .begins = offset_of(&p), .first = t->marks.count };
			s = first_state;
			break;
		default:
			/* A sequence that does not end says nothing about where it would. */
			t->marks.count = q.first;
			return 0;
		}
	}
	return -ENOMEM;
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

	t->unit = u;
	len = len == 0xffffffff ? cursor_u64(&length) + 12 : len + 4;
	if (length.failed || len > section->size || offset > section->size - len)
		return 0;
	/* Of a file whose tables lie in each other enough has been read. */
	if (len > u->file->line_budget)
		return 0;
	u->file->line_budget -= len;
	t->program = dwarf_section_at(section, offset, offset + len);
	int r = line_header_read(&t->head, t, u, &t->program);
	if (r == 0)
		r = make_marks(t);
	/* To those of the next table. */
	vec_trim(&t->marks);
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
	vec_done(&t->marks);
}

/* ---- look-ups ---- */

static const struct line_mark *find_mark(const struct line_table *t, const struct line_sequence *q,
					 uint64_t distance)
{
	const struct line_mark *at = t->marks.at + q->first;

	for (size_t n = q->count; n > 1; n -= n / 2)
		at += at[n / 2].at <= distance ? n / 2 : 0;
	return at;
}

/* Goes on from the mark before it. */
static struct line_row find_row(const struct line_table *t, const struct line_sequence *q,
				uint64_t distance)
{
	const struct line_mark *mark = find_mark(t, q, distance);
	struct state s = {
		.address = q->low + mark->at,
		.file = mark->file,
		.line = mark->line,
		.column = mark->column,
		.op = mark->op,
	};
	struct program p = program_at(t, mark->program);
	struct line_row row = row_of(&s, mark->at);
	uint32_t at;

	for (enum event event = q->marks_all ? END_OF_PROGRAM : run(&p, &s);
	     event == A_ROW || event == A_FILE; event = run(&p, &s)) {
		if (event != A_ROW || !row_at(&s, q->low, &at))
			continue;
		if (at > distance)
			break;
		row = row_of(&s, at);
	}
	return row;
}

bool line_table_find(const struct line_table *t, uint64_t address, struct line_row *row)
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
		return false;
	const struct line_sequence *q = &t->sequences.at[low - 1];
	uint64_t distance = address - q->low;
	*row = find_row(t, q, distance);
	return true;
}

struct line_file *line_table_file(const struct line_table *t, uint32_t file)
{
	if (file >= t->files.count || !t->files.at[file].name)
		return NULL;
	return &t->files.at[file];
}
