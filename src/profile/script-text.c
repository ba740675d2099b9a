/* SPDX-License-Identifier: MIT */
/* A sample as perf script prints it: the columns are those of perf 6.1. */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "profile/context.h"
#include "profile/script.h"

#define NS_PER_SECOND 1000000000u
#define NS_PER_USEC   1000u
#define COMM_WIDTH    16

static void put_time(struct out *o, uint64_t ns, bool nanoseconds)
{
	uint64_t seconds = ns / NS_PER_SECOND, rest = ns % NS_PER_SECOND;

	out_dec(o, seconds, 5, ' ');
	out_char(o, '.');
	if (nanoseconds)
		out_dec(o, rest, 9, '0');
	else
		out_dec(o, rest / NS_PER_USEC, 6, '0');
	out_text(o, ": ");
}

/* The mode that a sample was taken in, and what else header.misc says of a record. */
static void put_misc(struct out *o, const struct tally_record *rec)
{
	static const char modes[] = " KUHGg  ";
	char text[] = "     ";
	size_t at = 0;

	if (modes[rec->misc & TALLY_MISC_CPUMODE] != ' ')
		text[at++] = modes[rec->misc & TALLY_MISC_CPUMODE];
	switch (rec->type) {
	case TALLY_RECORD_MMAP:
	case TALLY_RECORD_MMAP2:
		if (rec->misc & TALLY_MISC_MMAP_DATA)
			text[at] = 'M';
		break;
	case TALLY_RECORD_COMM:
		if (rec->misc & TALLY_MISC_COMM_EXEC)
			text[at] = 'E';
		break;
	case TALLY_RECORD_SWITCH:
	case TALLY_RECORD_SWITCH_CPU_WIDE:
		if (rec->misc & TALLY_MISC_SWITCH_OUT)
			text[at++] = 'S';
		if (rec->misc & TALLY_MISC_SWITCH_OUT && rec->misc & TALLY_MISC_SWITCH_OUT_PREEMPT)
			text[at] = 'p';
		break;
	default:
		break;
	}
	out_text(o, text);
	out_char(o, ' ');
}

/* A thread's name in its column, from memory while it keeps it. */
static void put_comm(struct script *s, const struct script_event *event, uint64_t time, int32_t tid)
{
	bool bare = s->chains && event->fields & FIELD_IP && event->chains;
	struct task *task = sideband_task(&s->sideband, tid);
	struct out *texts = &s->places.texts;
	char room[16];

	if (!task) {
		s->out.failed = true;
		return;
	}
	uint64_t which = (uint64_t)changes_epoch(&task->names, time) << 1 | bare;
	uint64_t key = hash_u64(hash_u64(which) ^ (uint64_t)(uint32_t)tid << 32);
	const struct place *known = place_known(&s->places, key);
	if (!known) {
		const char *name = sideband_name(&s->sideband, tid, time, room);
		size_t start = texts->len, len = strlen(name);
		if (!bare && len < COMM_WIDTH)
			out_right(texts, "", 0, COMM_WIDTH - len);
		out_plain(texts, name);
		out_char(texts, ' ');
		known = place_keep(&s->places, key, start);
	}
	if (known)
		out_bytes(&s->out, place_text(&s->places, known), known->len);
	else
		s->out.failed = true;
}

void script_start(struct script *s, const struct script_event *event,
		  const struct tally_record *rec, int32_t tid, uint64_t when)
{
	const uint32_t fields = event->fields;
	struct out *o = &s->out;

	if (fields & FIELD_COMM)
		put_comm(s, event, when, tid);
	if (fields & FIELD_PID)
		out_int(o, rec->id.pid, 5);
	if (fields & FIELD_PID && fields & FIELD_TID) {
		out_printf(o, "/%-5d ", rec->id.tid);
	} else if (fields & (FIELD_PID | FIELD_TID)) {
		if (fields & FIELD_TID)
			out_int(o, rec->id.tid, 5);
		out_char(o, ' ');
	}
	if (fields & FIELD_CPU) {
		out_char(o, '[');
		out_dec(o, rec->id.cpu < 0 ? 0 : (uint64_t)rec->id.cpu, 3, '0');
		out_text(o, "] ");
	}
	if (fields & FIELD_MISC)
		put_misc(o, rec);
	if (fields & FIELD_TIME)
		put_time(o, rec->id.time, s->opts.flags & TALLY_SCRIPT_NS);
}

/* ---- where ---- */

static int put_place(struct script *s, const struct whose *whose, uint64_t address, uint32_t mode,
		     enum place_form form, uint32_t fields)
{
	const struct place *place = place_of(&s->places, whose, address, mode, form, fields);

	if (!place)
		return -ENOMEM;
	out_bytes(&s->out, place_text(&s->places, place), place->len);
	return 0;
}

bool script_frame(const struct script *s, const struct tally_record *rec, struct chain_walk *walk)
{
	const struct tally_record_sample *sample = &rec->sample;

	if (!walk->i)
		walk->mode = rec->misc & TALLY_MISC_CPUMODE;
	while (walk->i < sample->chain_len &&
	       (!s->opts.max_stack || walk->frames < s->opts.max_stack)) {
		uint64_t entry = tally_sample_ip(rec, walk->i++);
		if (entry < TALLY_CONTEXT_MAX) {
			walk->before = walk->inside ? walk->address : 0;
			walk->unwound = walk->i > s->stacks.unwound_from &&
					walk->i <= s->stacks.unwound_to;
			walk->inside = true;
			walk->frames++;
			walk->address = entry;
			return true;
		}
		walk->inside = false;
		if (entry == TALLY_CONTEXT_USER_DEFERRED)
			walk->i++; /* a cookie stands behind it */
		walk->mode = context_mode(entry);
	}
	return false;
}

/* Code to which signal handlers return is not called, and what they interrupted calls nobody. */
static bool is_signal(const struct script *s, const struct whose *whose, uint64_t address)
{
	return s->stacks.unwinder &&
	       tally_unwinder_is_signal(s->stacks.unwinder, whose->pid, whose->time, address) > 0;
}

uint32_t script_call(const struct script *s, const struct whose *whose,
		     const struct chain_walk *walk, uint32_t fields)
{
	if (!walk->before || !(fields & FIELD_SRCLINE))
		return 0;
	if (walk->mode == TALLY_MODE_USER && (is_signal(s, whose, walk->address) ||
					      (walk->unwound && is_signal(s, whose, walk->before))))
		return 0;
	return PLACE_CALL;
}

static const struct place *frame_place(struct script *s, const struct chain_walk *walk,
				       const struct whose *whose, uint32_t fields)
{
	return place_of(&s->places, whose, walk->address, walk->mode, PLACE_FRAME,
			fields | script_call(s, whose, walk, fields));
}

/* The frames of a chain, from memory when it was seen: stacks repeat. */
static int put_chain(struct script *s, const struct tally_record *rec, const struct whose *whose,
		     uint32_t fields)
{
	const struct tally_record_sample *sample = &rec->sample;
	struct chain_walk walk = { 0 };
	uint64_t who[] = { (uint64_t)(uint32_t)whose->pid << 32 | fields >> 8 << 8 |
				   (rec->misc & 7),
			   (uint64_t)whose->epoch.process << 32 | whose->epoch.kernel };

	if (!sample->chain_len)
		return 0;
	uint64_t key = hash_u64(hash_bytes(who, sizeof(who)) ^
				hash_bytes(sample->chain, sample->chain_len * sizeof(uint64_t)));
	const struct place *known = place_known(&s->places, key);
	while (!known && script_frame(s, rec, &walk))
		if (!frame_place(s, &walk, whose, fields))
			return -ENOMEM;
	if (!known) {
		/* All frames have their texts by now, so that none comes in between these. */
		size_t start = s->places.texts.len;
		walk = (struct chain_walk){ 0 };
		while (script_frame(s, rec, &walk)) {
			const struct place *p = frame_place(s, &walk, whose, fields);
			if (!p || !places_repeat(&s->places, p))
				return -ENOMEM;
		}
		known = place_keep(&s->places, key, start);
	}
	if (!known)
		return -ENOMEM;
	out_bytes(&s->out, place_text(&s->places, known), known->len);
	return 0;
}

/* Behind the address, what is there: perf does it for page faults alone. */
static int put_addr(struct script *s, const struct script_event *event,
		    const struct tally_record *rec, const struct whose *whose)
{
	const uint32_t fields = event->fields;
	int r = 0;

	if (event->addr_named && fields & (FIELD_SYM | FIELD_DSO))
		return put_place(s, whose, rec->sample.addr, TALLY_MODE_UNKNOWN, PLACE_SAMPLE,
				 fields);
	out_hex(&s->out, rec->sample.addr, 16, ' ');
	return r;
}

/* ---- registers and branches ---- */

static void put_regs(struct script *s, const struct tally_record *rec,
		     const struct tally_regs *regs)
{
	struct out *o = &s->out;
	uint64_t value;

	if (!regs->values)
		return;
	out_text(o, " ABI:");
	out_dec(o, regs->abi, 0, ' ');
	out_char(o, ' ');
	for (unsigned bit = 0; bit < 64; bit++) {
		if (!tally_regs_value(rec, regs, bit, &value))
			continue;
		const char *name = tally_reg_name(s->machine, bit);
		if (!name)
			name = "unknown";
		out_right(o, name, strlen(name), 5);
		out_text(o, ":0x");
		out_hex(o, value, 0, ' ');
		out_char(o, ' ');
	}
}

static void put_branch_flags(struct out *o, const struct tally_branch *b)
{
	static const char *const types[] = {
		"",       "COND",      "UNCOND",   "IND",  "CALL", "IND_CALL", "RET",   "SYSCALL",
		"SYSRET", "COND_CALL", "COND_RET", "ERET", "IRQ",  "SERROR",   "NO_TX",
	};
	bool told = b->flags & (TALLY_BRANCH_ENTRY_MISPRED | TALLY_BRANCH_ENTRY_PREDICTED);

	out_char(o, '/');
	out_char(o, !told ? '-' : b->flags & TALLY_BRANCH_ENTRY_PREDICTED ? 'P' : 'M');
	out_text(o, b->flags & TALLY_BRANCH_ENTRY_IN_TX ? "/X" : "/-");
	out_text(o, b->flags & TALLY_BRANCH_ENTRY_ABORT ? "/A/" : "/-/");
	out_dec(o, b->cycles, 0, ' ');
	out_char(o, '/');
	out_text(o, b->type < ARRAY_SIZE(types) ? types[b->type] : "");
	out_char(o, ' ');
}

static int put_end(struct script *s, const struct whose *whose, uint64_t address,
		   enum place_form form, uint32_t fields)
{
	int r = 0;

	if (form == PLACE_DSO) {
		out_text(&s->out, "0x");
		out_hex(&s->out, address, 0, ' ');
	} else {
		r = put_place(s, whose, address, TALLY_MODE_UNKNOWN, form, fields | FIELD_SYMOFF);
	}
	if (r == 0 && fields & FIELD_DSO)
		r = put_place(s, whose, address, TALLY_MODE_UNKNOWN, PLACE_DSO, fields);
	return r;
}

static int put_branches(struct script *s, const struct tally_record *rec, const struct whose *whose,
			enum place_form form, uint32_t fields)
{
	struct tally_branch b;
	int r = 0;

	for (uint64_t i = 0; r == 0 && tally_sample_branch(rec, i, &b); i++) {
		if (form != PLACE_NAME)
			out_char(&s->out, ' ');
		r = put_end(s, whose, b.from, form, fields);
		out_char(&s->out, '/');
		if (r == 0)
			r = put_end(s, whose, b.to, form, fields);
		put_branch_flags(&s->out, &b);
	}
	return r;
}

static int put_all_branches(struct script *s, const struct script_event *event,
			    const struct tally_record *rec, const struct whose *whose)
{
	static const struct {
		uint32_t field;
		enum place_form form;
	} rows[] = {
		{ FIELD_BRSTACK, PLACE_DSO },
		{ FIELD_BRSTACKSYM, PLACE_NAME },
		{ FIELD_BRSTACKOFF, PLACE_OFFSET },
	};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(rows) && r == 0; i++)
		if (event->fields & rows[i].field) {
			r = put_branches(s, rec, whose, rows[i].form, event->fields);
			break; /* perf prints one of them */
		}
	return r;
}

/* ---- a sample ---- */

static void put_page_size(struct out *o, uint64_t size)
{
	static const char units[] = "BKMG";
	size_t unit = 0;

	if (!size) {
		out_text(o, " N/A");
		return;
	}
	/* As perf has it, which leaves 1024M. */
	for (; size / 1024 > 1 && unit < sizeof(units) - 2; unit++)
		size /= 1024;
	out_char(o, ' ');
	out_dec(o, size, 0, ' ');
	out_char(o, units[unit]);
}

static void put_payload(struct script *s, const struct script_event *event,
			const struct tally_record *rec)
{
	if (!rec->sample.raw || payload_text(&s->payloads, &s->out, event->file->attr.config, rec))
		return;
	s->unknown_formats = true;
	const unsigned char *raw = rec->sample.raw;
	out_text(&s->out, "raw=");
	for (uint64_t i = 0; i < rec->sample.raw_len; i++)
		out_hex(&s->out, raw[i], 2, '0');
}

/* What a memory access cost and came from. */
static void put_memory(struct script *s, const struct script_event *event,
		       const struct tally_record_sample *sample)
{
	bool parts = event->file->attr.sample_type & TALLY_SAMPLE_WEIGHT_STRUCT;

	if (event->fields & FIELD_DATA_SRC)
		script_data_src(s, sample->data_src);
	if (event->fields & FIELD_WEIGHT)
		out_dec(&s->out, parts ? (uint32_t)sample->weight : sample->weight, 16, ' ');
	if (event->fields & FIELD_INS_LAT)
		out_dec(&s->out, sample->weight >> 32 & 0xffff, 16, ' ');
}

int script_text(struct script *s, const struct script_event *event, const struct tally_record *rec,
		const struct whose *whose)
{
	const struct tally_record_sample *sample = &rec->sample;
	const uint32_t fields = event->fields;
	struct out *o = &s->out;
	int r = 0;

	script_start(s, event, rec, rec->id.tid, whose->time);
	if (fields & FIELD_PERIOD) {
		out_dec(o, sample->period, 10, ' ');
		out_char(o, ' ');
	}
	if (fields & FIELD_EVENT) {
		out_right(o, event->name, event->name_len, s->name_width);
		out_text(o, ": ");
	}
	if (fields & FIELD_TRACE)
		put_payload(s, event, rec);
	if (fields & FIELD_ADDR)
		r = put_addr(s, event, rec, whose);
	put_memory(s, event, sample);
	if (fields & FIELD_IP && r == 0) {
		out_char(o, event->chains ? '\n' : ' ');
		r = event->chains ? put_chain(s, rec, whose, fields)
				  : put_place(s, whose, sample->ip, rec->misc & TALLY_MISC_CPUMODE,
					      PLACE_SAMPLE, fields);
	}
	if (fields & FIELD_IREGS)
		put_regs(s, rec, &sample->regs_intr);
	if (fields & FIELD_UREGS)
		put_regs(s, rec, &sample->regs_user);
	if (r == 0)
		r = put_all_branches(s, event, rec, whose);
	if (fields & FIELD_PHYS_ADDR)
		out_hex(o, sample->phys_addr, 16, ' ');
	if (fields & FIELD_DATA_PAGE_SIZE)
		put_page_size(o, sample->data_page_size);
	if (fields & FIELD_CODE_PAGE_SIZE)
		put_page_size(o, sample->code_page_size);
	out_char(o, '\n');
	return r;
}
