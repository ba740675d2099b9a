/* SPDX-License-Identifier: MIT */
/*
 * A decoded record as a line of text or JSON, field by field, for debugging and for tests. Names and
 * numbers are those of the ABI; symbols and perf(1)'s columns are another matter.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/bytes.h"
#include "event/record-table.h"

struct printer {
	char *out;
	size_t size, len; /* of the buffer; of the whole text, which may be longer */
	bool json, fresh; /* fresh: nothing stands before the next item here */
	const struct tally_record *rec;
};

TALLY_PRINTF(2, 3) static void put(struct printer *p, const char *fmt, ...)
{
	size_t room = p->len < p->size ? p->size - p->len : 0;
	va_list ap;

	va_start(ap, fmt);
	int n = vsnprintf(room ? p->out + p->len : NULL, room, fmt, ap);
	va_end(ap);
	p->len += n > 0 ? (size_t)n : 0;
}

static void put_char(struct printer *p, char c)
{
	if (p->len + 1 < p->size) {
		p->out[p->len] = c;
		p->out[p->len + 1] = '\0';
	}
	p->len++;
}

/* What separates this item from the one before, and its name; NULL in an array. */
static void begin(struct printer *p, const char *name)
{
	if (!p->fresh)
		put(p, p->json ? "," : " ");
	p->fresh = false;
	if (name)
		put(p, p->json ? "\"%s\":" : "%s=", name);
}

static void number(struct printer *p, const char *name, uint64_t value)
{
	begin(p, name);
	put(p, "%" PRIu64, value);
}

static void integer(struct printer *p, const char *name, int64_t value)
{
	begin(p, name);
	put(p, "%" PRId64, value);
}

/* JSON has no hexadecimal numbers, and readers of it lose bits of large ones: a text. */
static void address(struct printer *p, const char *name, uint64_t value)
{
	begin(p, name);
	put(p, p->json ? "\"0x%" PRIx64 "\"" : "0x%" PRIx64, value);
}

/* What is not printable ASCII is escaped, in both forms: names come from anywhere. */
static void text(struct printer *p, const char *name, const char *bytes, size_t len)
{
	begin(p, name);
	put_char(p, '"');
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)bytes[i];
		if (c == '"' || c == '\\')
			put(p, "\\%c", c);
		else if (c < 0x20 || c >= 0x7f)
			put(p, "\\u%04x", c);
		else
			put_char(p, (char)c);
	}
	put_char(p, '"');
}

static void bytes_as_hex(struct printer *p, const char *name, const void *bytes, uint64_t len)
{
	const unsigned char *at = bytes;

	begin(p, name);
	if (p->json)
		put_char(p, '"');
	for (uint64_t i = 0; i < len; i++)
		put(p, "%02x", at[i]);
	if (p->json)
		put_char(p, '"');
}

static void open_list(struct printer *p, const char *name, char bracket)
{
	begin(p, name);
	put_char(p, bracket);
	p->fresh = true;
}

static void close_list(struct printer *p, char bracket)
{
	put_char(p, bracket);
	p->fresh = false;
}

/* -- callchains, counts, branches, registers -------------------------------------------------- */

static const struct {
	uint64_t value;
	const char *name;
} contexts[] = {
	{ TALLY_CONTEXT_HV, "hypervisor" },
	{ TALLY_CONTEXT_KERNEL, "kernel" },
	{ TALLY_CONTEXT_USER, "user" },
	{ TALLY_CONTEXT_USER_DEFERRED, "user-deferred" },
	{ TALLY_CONTEXT_GUEST, "guest" },
	{ TALLY_CONTEXT_GUEST_KERNEL, "guest-kernel" },
	{ TALLY_CONTEXT_GUEST_USER, "guest-user" },
};

const char *tally_context_name(uint64_t entry)
{
	for (size_t i = 0; i < ARRAY_SIZE(contexts); i++)
		if (contexts[i].value == entry)
			return contexts[i].name;
	return NULL;
}

static void print_chain(struct printer *p, const char *name, uint64_t count)
{
	open_list(p, name, '[');
	for (uint64_t i = 0; i < count; i++) {
		uint64_t entry = tally_sample_ip(p->rec, i);
		const char *context = tally_context_name(entry);
		if (context)
			text(p, NULL, context, strlen(context));
		else
			address(p, NULL, entry);
	}
	close_list(p, ']');
}

static void print_counts(struct printer *p, const struct tally_record_counts *counts)
{
	struct tally_record_count one;

	if (counts->format & TALLY_READ_TIME_ENABLED)
		number(p, "enabled_ns", counts->enabled_ns);
	if (counts->format & TALLY_READ_TIME_RUNNING)
		number(p, "running_ns", counts->running_ns);
	open_list(p, "counts", '[');
	for (uint64_t i = 0; tally_record_count(p->rec, i, &one); i++) {
		open_list(p, NULL, '{');
		number(p, "value", one.value);
		if (counts->format & TALLY_READ_ID)
			number(p, "id", one.id);
		if (counts->format & TALLY_READ_LOST)
			number(p, "lost", one.lost);
		close_list(p, '}');
	}
	close_list(p, ']');
}

static void print_branch(struct printer *p, const struct tally_branch *b)
{
	static const char *const flags[] = { "mispred", "predicted", "in_tx", "abort" };

	open_list(p, NULL, '{');
	address(p, "from", b->from);
	address(p, "to", b->to);
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
		if (b->flags >> i & 1)
			number(p, flags[i], 1);
	number(p, "cycles", b->cycles);
	number(p, "type", b->type);
	if (b->spec)
		number(p, "spec", b->spec);
	if (b->new_type)
		number(p, "new_type", b->new_type);
	if (b->priv)
		number(p, "priv", b->priv);
	if (b->counters)
		address(p, "counters", b->counters);
	close_list(p, '}');
}

static void print_branches(struct printer *p)
{
	const struct tally_record_sample *s = &p->rec->sample;
	struct tally_branch branch;

	if (s->branch_hw_idx != UINT64_MAX)
		number(p, "branch_hw_idx", s->branch_hw_idx);
	open_list(p, "branches", '[');
	for (uint64_t i = 0; tally_sample_branch(p->rec, i, &branch); i++)
		print_branch(p, &branch);
	close_list(p, ']');
}

static void print_regs(struct printer *p, const char *name, const struct tally_regs *regs,
		       const char *machine)
{
	uint64_t value;

	open_list(p, name, '{');
	number(p, "abi", regs->abi);
	for (unsigned bit = 0; bit < 64; bit++) {
		char plain[8];
		const char *reg = machine ? tally_reg_name(machine, bit) : NULL;
		snprintf(plain, sizeof(plain), "%u", bit);
		if (tally_regs_value(p->rec, regs, bit, &value))
			address(p, reg ? reg : plain, value);
	}
	close_list(p, '}');
}

/* -- records ---------------------------------------------------------------------------------- */

enum style {
	DECIMAL,
	SIGNED,
	HEX,
};

struct row {
	const char *name;
	uint16_t at;
	uint8_t width, style;
};

#define ROW(member, name, style)                                          \
	{                                                                 \
		name, offsetof(struct tally_record, member),              \
			sizeof(((struct tally_record *)0)->member), style \
	}

static const struct row mmap_rows[] = {
	ROW(mmap.pid, "pid", SIGNED), ROW(mmap.tid, "tid", SIGNED),  ROW(mmap.addr, "addr", HEX),
	ROW(mmap.len, "len", HEX),    ROW(mmap.pgoff, "pgoff", HEX), { 0 },
};
static const struct row inode_rows[] = {
	ROW(mmap.maj, "maj", DECIMAL),
	ROW(mmap.min, "min", DECIMAL),
	ROW(mmap.ino, "ino", DECIMAL),
	ROW(mmap.ino_generation, "ino_generation", DECIMAL),
	{ 0 },
};
static const struct row prot_rows[] = {
	ROW(mmap.prot, "prot", DECIMAL),
	ROW(mmap.flags, "flags", HEX),
	{ 0 },
};
static const struct row lost_rows[] = {
	ROW(lost.id, "lost_id", DECIMAL),
	ROW(lost.lost, "lost", DECIMAL),
	{ 0 },
};
static const struct row comm_rows[] = {
	ROW(comm.pid, "pid", SIGNED),
	ROW(comm.tid, "tid", SIGNED),
	ROW(comm.exec, "exec", DECIMAL),
	{ 0 },
};
static const struct row task_rows[] = {
	ROW(task.pid, "pid", SIGNED),    ROW(task.ppid, "ppid", SIGNED),
	ROW(task.tid, "tid", SIGNED),    ROW(task.ptid, "ptid", SIGNED),
	ROW(task.time, "time", DECIMAL), { 0 },
};
static const struct row throttle_rows[] = {
	ROW(throttle.time, "time", DECIMAL),
	ROW(throttle.id, "id", DECIMAL),
	ROW(throttle.stream_id, "stream_id", DECIMAL),
	{ 0 },
};
static const struct row read_rows[] = {
	ROW(read.pid, "pid", SIGNED),
	ROW(read.tid, "tid", SIGNED),
	{ 0 },
};
static const struct row aux_rows[] = {
	ROW(aux.offset, "offset", HEX),
	ROW(aux.size, "size", DECIMAL),
	ROW(aux.flags, "flags", HEX),
	{ 0 },
};
static const struct row who_rows[] = {
	ROW(who.pid, "pid", SIGNED),
	ROW(who.tid, "tid", SIGNED),
	{ 0 },
};
static const struct row namespaces_rows[] = {
	ROW(namespaces.pid, "pid", SIGNED),
	ROW(namespaces.tid, "tid", SIGNED),
	{ 0 },
};
static const struct row ksymbol_rows[] = {
	ROW(ksymbol.addr, "addr", HEX),
	ROW(ksymbol.len, "len", DECIMAL),
	ROW(ksymbol.kind, "kind", DECIMAL),
	ROW(ksymbol.flags, "flags", HEX),
	{ 0 },
};
static const struct row bpf_rows[] = {
	ROW(bpf.kind, "kind", DECIMAL),
	ROW(bpf.flags, "flags", HEX),
	ROW(bpf.id, "bpf_id", DECIMAL),
	{ 0 },
};
static const struct row cgroup_rows[] = {
	ROW(cgroup.id, "cgroup_id", DECIMAL),
	{ 0 },
};
static const struct row text_poke_rows[] = {
	ROW(text_poke.addr, "addr", HEX),
	ROW(text_poke.old_len, "old_len", DECIMAL),
	ROW(text_poke.new_len, "new_len", DECIMAL),
	{ 0 },
};
static const struct row hw_id_rows[] = {
	ROW(hw_id.hw_id, "hw_id", HEX),
	{ 0 },
};
static const struct row deferred_rows[] = {
	ROW(deferred.cookie, "cookie", HEX),
	{ 0 },
};

static void print_rows(struct printer *p, const struct row *row)
{
	for (; row && row->name; row++) {
		const unsigned char *at = (const unsigned char *)p->rec + row->at;
		uint64_t value = row->width == 8   ? load_u64(at, false)
				 : row->width == 4 ? load_u32(at, false)
						   : load_u16(at, false);
		if (row->style == SIGNED)
			integer(p, row->name, (int32_t)value);
		else if (row->style == HEX)
			address(p, row->name, value);
		else
			number(p, row->name, value);
	}
}

static void print_file(struct printer *p)
{
	const struct tally_record_mmap *m = &p->rec->mmap;

	if (p->rec->type == TALLY_RECORD_MMAP2 && m->build_id_size)
		bytes_as_hex(p, "build_id", m->build_id, m->build_id_size);
	else if (p->rec->type == TALLY_RECORD_MMAP2)
		print_rows(p, inode_rows);
	if (p->rec->type == TALLY_RECORD_MMAP2)
		print_rows(p, prot_rows);
	text(p, "filename", m->filename, m->filename_len);
}

static void print_comm(struct printer *p)
{
	text(p, "comm", p->rec->comm.comm, p->rec->comm.comm_len);
}

static void print_read(struct printer *p)
{
	print_counts(p, &p->rec->read.counts);
}

static void print_switch(struct printer *p)
{
	number(p, "out", p->rec->misc & TALLY_MISC_SWITCH_OUT ? 1 : 0);
	number(p, "preempt", p->rec->misc & TALLY_MISC_SWITCH_OUT_PREEMPT ? 1 : 0);
}

static void print_namespaces(struct printer *p)
{
	struct tally_namespace one;

	open_list(p, "namespaces", '[');
	for (uint64_t i = 0; tally_record_namespace(p->rec, i, &one); i++) {
		open_list(p, NULL, '{');
		number(p, "dev", one.dev);
		number(p, "ino", one.ino);
		close_list(p, '}');
	}
	close_list(p, ']');
}

static void print_ksymbol(struct printer *p)
{
	text(p, "name", p->rec->ksymbol.name, p->rec->ksymbol.name_len);
}

static void print_bpf(struct printer *p)
{
	bytes_as_hex(p, "tag", p->rec->bpf.tag, sizeof(p->rec->bpf.tag));
}

static void print_cgroup(struct printer *p)
{
	text(p, "path", p->rec->cgroup.path, p->rec->cgroup.path_len);
}

static void print_text_poke(struct printer *p)
{
	const struct tally_record_text_poke *poke = &p->rec->text_poke;
	const unsigned char *bytes = poke->bytes;

	bytes_as_hex(p, "old", bytes, poke->old_len);
	bytes_as_hex(p, "new", bytes ? bytes + poke->old_len : NULL, poke->new_len);
}

static void print_deferred(struct printer *p)
{
	print_chain(p, "chain", p->rec->deferred.chain_len);
}

/* By type: the fields of fixed length, and what comes behind them. */
static const struct {
	const struct row *rows;
	void (*rest)(struct printer *p);
} forms[] = {
	[TALLY_RECORD_MMAP] = { mmap_rows, print_file },
	[TALLY_RECORD_LOST] = { lost_rows, NULL },
	[TALLY_RECORD_COMM] = { comm_rows, print_comm },
	[TALLY_RECORD_EXIT] = { task_rows, NULL },
	[TALLY_RECORD_THROTTLE] = { throttle_rows, NULL },
	[TALLY_RECORD_UNTHROTTLE] = { throttle_rows, NULL },
	[TALLY_RECORD_FORK] = { task_rows, NULL },
	[TALLY_RECORD_READ] = { read_rows, print_read },
	[TALLY_RECORD_MMAP2] = { mmap_rows, print_file },
	[TALLY_RECORD_AUX] = { aux_rows, NULL },
	[TALLY_RECORD_ITRACE_START] = { who_rows, NULL },
	[TALLY_RECORD_LOST_SAMPLES] = { lost_rows + 1, NULL },
	[TALLY_RECORD_SWITCH] = { NULL, print_switch },
	[TALLY_RECORD_SWITCH_CPU_WIDE] = { who_rows, print_switch },
	[TALLY_RECORD_NAMESPACES] = { namespaces_rows, print_namespaces },
	[TALLY_RECORD_KSYMBOL] = { ksymbol_rows, print_ksymbol },
	[TALLY_RECORD_BPF_EVENT] = { bpf_rows, print_bpf },
	[TALLY_RECORD_CGROUP] = { cgroup_rows, print_cgroup },
	[TALLY_RECORD_TEXT_POKE] = { text_poke_rows, print_text_poke },
	[TALLY_RECORD_AUX_OUTPUT_HW_ID] = { hw_id_rows, NULL },
	[TALLY_RECORD_CALLCHAIN_DEFERRED] = { deferred_rows, print_deferred },
};

/* -- samples ---------------------------------------------------------------------------------- */

/* Values of one word, by the bit that brings them. */
static const struct {
	uint64_t bit;
	struct row row;
} sample_words[] = {
	{ TALLY_SAMPLE_WEIGHT | TALLY_SAMPLE_WEIGHT_STRUCT, ROW(sample.weight, "weight", HEX) },
	{ TALLY_SAMPLE_DATA_SRC, ROW(sample.data_src, "data_src", HEX) },
	{ TALLY_SAMPLE_TRANSACTION, ROW(sample.transaction, "transaction", HEX) },
	{ TALLY_SAMPLE_PHYS_ADDR, ROW(sample.phys_addr, "phys_addr", HEX) },
	{ TALLY_SAMPLE_CGROUP, ROW(sample.cgroup, "cgroup", DECIMAL) },
	{ TALLY_SAMPLE_DATA_PAGE_SIZE, ROW(sample.data_page_size, "data_page_size", DECIMAL) },
	{ TALLY_SAMPLE_CODE_PAGE_SIZE, ROW(sample.code_page_size, "code_page_size", DECIMAL) },
};

static void print_sample_words(struct printer *p, uint64_t type)
{
	for (size_t i = 0; i < ARRAY_SIZE(sample_words); i++) {
		const struct row two[2] = { sample_words[i].row };
		if (type & sample_words[i].bit)
			print_rows(p, two);
	}
}

static void print_sample(struct printer *p, const struct tally_layout *layout, const char *machine)
{
	const struct tally_record_sample *s = &p->rec->sample;
	uint64_t type = layout->sample_type;

	if (type & TALLY_SAMPLE_IP)
		address(p, "ip", s->ip);
	if (type & TALLY_SAMPLE_ADDR)
		address(p, "addr", s->addr);
	if (type & TALLY_SAMPLE_PERIOD)
		number(p, "period", s->period);
	if (type & TALLY_SAMPLE_READ)
		print_counts(p, &s->counts);
	if (type & TALLY_SAMPLE_CALLCHAIN)
		print_chain(p, "chain", s->chain_len);
	if (type & TALLY_SAMPLE_RAW)
		bytes_as_hex(p, "raw", s->raw, s->raw_len);
	if (type & TALLY_SAMPLE_BRANCH_STACK)
		print_branches(p);
	if (type & TALLY_SAMPLE_REGS_USER)
		print_regs(p, "regs_user", &s->regs_user, machine);
	if (type & TALLY_SAMPLE_STACK_USER) {
		number(p, "stack_len", s->stack_len);
		number(p, "stack_dyn_size", s->stack_dyn_size);
	}
	print_sample_words(p, type);
	if (type & TALLY_SAMPLE_REGS_INTR)
		print_regs(p, "regs_intr", &s->regs_intr, machine);
	if (type & TALLY_SAMPLE_AUX)
		number(p, "aux_len", s->aux_len);
	if (s->rest_len)
		bytes_as_hex(p, "rest", s->rest, s->rest_len);
}

/* Records that have a pid of their own show that one: in JSON a name is there once. */
static void print_id(struct printer *p)
{
	const struct tally_sample_id *id = &p->rec->id;
	const char *prefix = p->rec->type == TALLY_RECORD_SAMPLE ? "" : "id_";
	char name[24];

	if (!id->has)
		return;
#define NAMED(text) (snprintf(name, sizeof(name), "%s" text, prefix), name)
	if (id->has & TALLY_SAMPLE_TID) {
		integer(p, NAMED("pid"), id->pid);
		integer(p, NAMED("tid"), id->tid);
	}
	if (id->has & TALLY_SAMPLE_TIME)
		number(p, NAMED("time"), id->time);
	if (id->has & (TALLY_SAMPLE_ID | TALLY_SAMPLE_IDENTIFIER))
		number(p, NAMED("id"), id->id);
	if (id->has & TALLY_SAMPLE_STREAM_ID)
		number(p, NAMED("stream_id"), id->stream_id);
	if (id->has & TALLY_SAMPLE_CPU)
		integer(p, NAMED("cpu"), id->cpu);
#undef NAMED
}

static void print_type(struct printer *p)
{
	const char *name = tally_record_type_name(p->rec->type);
	char number_text[16];

	snprintf(number_text, sizeof(number_text), "%" PRIu32, p->rec->type);
	if (!name)
		name = number_text;
	if (p->json)
		text(p, "type", name, strlen(name));
	else
		put(p, "%s", name);
	p->fresh = false;
}

size_t tally_record_print(const struct tally_layout *layout, const struct tally_record *rec,
			  const struct tally_print_opts *opts, char *out, size_t size)
{
	struct printer p = { .out = out, .size = size, .fresh = true, .rec = rec };
	const char *machine = NULL;

	if (opts && opts->size >= offsetof(struct tally_print_opts, machine) + sizeof(machine))
		machine = opts->machine;
	p.json = opts && opts->size >= 8 && opts->flags & TALLY_PRINT_JSON;
	if (size)
		out[0] = '\0';
	if (p.json)
		put_char(&p, '{');
	print_type(&p);
	address(&p, "misc", rec->misc);
	number(&p, "record_size", rec->size);
	print_id(&p);
	if (rec->type == TALLY_RECORD_SAMPLE) {
		print_sample(&p, layout, machine);
	} else if (rec->type < ARRAY_SIZE(forms)) {
		print_rows(&p, forms[rec->type].rows);
		if (forms[rec->type].rest)
			forms[rec->type].rest(&p);
	}
	if (rec->leftover)
		number(&p, "leftover", rec->leftover);
	if (p.json)
		put_char(&p, '}');
	return p.len;
}
