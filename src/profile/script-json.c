/* SPDX-License-Identifier: MIT */
/* A sample as a JSON object on a line; 64-bit addresses are texts, which readers do not round. */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "profile/script.h"

static void member(struct out *o, const char *name)
{
	out_text(o, ",\"");
	out_text(o, name);
	out_text(o, "\":");
}

static void put_hex(struct out *o, const char *name, uint64_t value)
{
	member(o, name);
	out_text(o, "\"0x");
	out_hex(o, value, 0, ' ');
	out_char(o, '"');
}

static void put_dec(struct out *o, const char *name, uint64_t value)
{
	member(o, name);
	out_dec(o, value, 0, ' ');
}

/* The members of a place, without the braces around them. */
static int put_place(struct script *s, const struct whose *whose, uint64_t address, uint32_t mode,
		     uint32_t fields)
{
	const struct place *place = place_of(&s->places, whose, address, mode, PLACE_JSON,
					     fields & (FIELD_SRCLINE | PLACE_CALL));

	if (!place)
		return -ENOMEM;
	out_bytes(&s->out, place_text(&s->places, place), place->len);
	return 0;
}

static void put_who(struct script *s, const struct script_event *event,
		    const struct tally_record *rec)
{
	struct out *o = &s->out;
	char room[16];

	out_text(o, "{\"type\":\"sample\"");
	if (event->fields & FIELD_COMM) {
		member(o, "comm");
		out_json(o, sideband_name(&s->sideband, rec->id.tid, sample_time(rec), room));
	}
	if (rec->id.has & TALLY_SAMPLE_TID) {
		member(o, "pid");
		out_int(o, rec->id.pid, 0);
		member(o, "tid");
		out_int(o, rec->id.tid, 0);
	}
	if (rec->id.has & TALLY_SAMPLE_CPU)
		put_dec(o, "cpu", (uint64_t)(uint32_t)rec->id.cpu);
	if (rec->id.has & TALLY_SAMPLE_TIME)
		put_dec(o, "time_ns", rec->id.time);
	member(o, "event");
	out_json(o, event->name);
	put_dec(o, "period", rec->sample.period);
}

static int put_chain(struct script *s, const struct tally_record *rec, const struct whose *whose,
		     uint32_t fields)
{
	struct chain_walk walk = { 0 };
	bool first = true;
	int r = 0;

	member(&s->out, "callchain");
	out_char(&s->out, '[');
	while (r == 0 && script_frame(s, rec, &walk)) {
		out_text(&s->out, first ? "{" : ",{");
		r = put_place(s, whose, walk.address, walk.mode,
			      fields | script_call(s, whose, &walk, fields));
		out_char(&s->out, '}');
		first = false;
	}
	out_char(&s->out, ']');
	return r;
}

static void put_branches(struct script *s, const struct tally_record *rec)
{
	struct tally_branch b;

	member(&s->out, "branches");
	out_char(&s->out, '[');
	for (uint64_t i = 0; tally_sample_branch(rec, i, &b); i++) {
		out_text(&s->out, i ? ",{\"from\":\"0x" : "{\"from\":\"0x");
		out_hex(&s->out, b.from, 0, ' ');
		out_char(&s->out, '"');
		put_hex(&s->out, "to", b.to);
		if (b.flags & (TALLY_BRANCH_ENTRY_MISPRED | TALLY_BRANCH_ENTRY_PREDICTED)) {
			member(&s->out, "predicted");
			out_text(&s->out,
				 b.flags & TALLY_BRANCH_ENTRY_PREDICTED ? "true" : "false");
		}
		if (b.cycles)
			put_dec(&s->out, "cycles", b.cycles);
		out_char(&s->out, '}');
	}
	out_char(&s->out, ']');
}

static void put_regs(struct script *s, const char *name, const struct tally_record *rec,
		     const struct tally_regs *regs)
{
	uint64_t value;
	bool first = true;

	if (!regs->values)
		return;
	member(&s->out, name);
	out_char(&s->out, '{');
	for (unsigned bit = 0; bit < 64; bit++) {
		const char *reg = tally_reg_name(s->machine, bit);
		if (!tally_regs_value(rec, regs, bit, &value))
			continue;
		if (reg)
			out_printf(&s->out, "%s\"%s\":\"0x", first ? "" : ",", reg);
		else
			out_printf(&s->out, "%s\"%u\":\"0x", first ? "" : ",", bit);
		out_hex(&s->out, value, 0, ' ');
		out_char(&s->out, '"');
		first = false;
	}
	out_char(&s->out, '}');
}

static void put_raw(struct script *s, const struct script_event *event,
		    const struct tally_record *rec)
{
	const unsigned char *raw = rec->sample.raw;
	uint64_t id = event->file->attr.config;
	struct out *o = &s->out;

	if (fields_kind(&event->file->attr) == FIELDS_TRACE) {
		struct out payload = { 0 };
		bool known = payload_json(&s->payloads, &payload, id, rec);
		if (known) {
			member(o, "trace");
			out_bytes(o, payload.at, payload.len);
		}
		s->unknown_formats |= !known;
		o->failed |= payload.failed;
		out_done(&payload);
		if (known)
			return;
	}
	member(o, "raw");
	out_char(o, '"');
	for (uint64_t i = 0; i < rec->sample.raw_len; i++)
		out_hex(o, raw[i], 2, '0');
	out_char(o, '"');
}

/* What else the layout has. */
static void put_rest(struct script *s, const struct script_event *event,
		     const struct tally_record *rec)
{
	const struct tally_record_sample *sample = &rec->sample;
	const uint64_t type = event->file->attr.sample_type;
	struct out *o = &s->out;

	if (type & TALLY_SAMPLE_ADDR)
		put_hex(o, "addr", sample->addr);
	if (type & TALLY_SAMPLE_DATA_SRC)
		put_hex(o, "data_src", sample->data_src);
	if (type & (TALLY_SAMPLE_WEIGHT | TALLY_SAMPLE_WEIGHT_STRUCT))
		put_dec(o, "weight",
			type & TALLY_SAMPLE_WEIGHT ? sample->weight : (uint32_t)sample->weight);
	if (type & TALLY_SAMPLE_PHYS_ADDR)
		put_hex(o, "phys_addr", sample->phys_addr);
	if (type & TALLY_SAMPLE_CGROUP)
		put_dec(o, "cgroup", sample->cgroup);
	if (type & TALLY_SAMPLE_DATA_PAGE_SIZE)
		put_dec(o, "data_page_size", sample->data_page_size);
	if (type & TALLY_SAMPLE_CODE_PAGE_SIZE)
		put_dec(o, "code_page_size", sample->code_page_size);
	put_regs(s, "regs_intr", rec, &sample->regs_intr);
	put_regs(s, "regs_user", rec, &sample->regs_user);
}

int script_json(struct script *s, const struct script_event *event, const struct tally_record *rec,
		const struct whose *whose, enum stack_end end)
{
	int r = 0;

	put_who(s, event, rec);
	if (event->file->attr.sample_type & TALLY_SAMPLE_IP) {
		out_char(&s->out, ',');
		r = put_place(s, whose, rec->sample.ip, rec->misc & TALLY_MISC_CPUMODE,
			      event->fields);
	}
	if (r == 0 && event->chains)
		r = put_chain(s, rec, whose, event->fields);
	if (end == STACK_CUT || end == STACK_BROKEN)
		out_text(&s->out,
			 end == STACK_CUT ? ",\"stack\":\"cut\"" : ",\"stack\":\"broken\"");
	if (rec->sample.branches)
		put_branches(s, rec);
	put_rest(s, event, rec);
	if (rec->sample.raw)
		put_raw(s, event, rec);
	out_text(&s->out, "}\n");
	return r;
}
