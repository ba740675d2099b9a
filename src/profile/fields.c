/* SPDX-License-Identifier: MIT */
/* perf script's -F: names, defaults, and what the samples of a file have. */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "profile/fields.h"

#define WHERE (FIELD_IP | FIELD_SYM | FIELD_SYMOFF | FIELD_DSO)
#define WHO   (FIELD_COMM | FIELD_TID | FIELD_TIME | FIELD_CPU | FIELD_EVENT)
#define MEMORY                                                                          \
	(FIELD_ADDR | FIELD_DATA_SRC | FIELD_WEIGHT | FIELD_INS_LAT | FIELD_PHYS_ADDR | \
	 FIELD_DATA_PAGE_SIZE | FIELD_CODE_PAGE_SIZE)

/* What is in a sample that symbols can be found for. */
#define ADDRESSES (FIELD_IP | FIELD_ADDR | FIELD_BRSTACK | FIELD_BRSTACKSYM | FIELD_BRSTACKOFF)

static const struct {
	const char *name, *people;
	uint32_t defaults, impossible;
} kinds[FIELDS_KINDS] = {
	[FIELDS_HW] = { "hw", "hardware", WHO | WHERE | FIELD_PERIOD,
			FIELD_TRACE | FIELD_BPF_OUTPUT },
	[FIELDS_SW] = { "sw", "software", WHO | WHERE | FIELD_PERIOD | FIELD_BPF_OUTPUT,
			FIELD_TRACE },
	[FIELDS_TRACE] = { "trace", "tracepoint", WHO | FIELD_TRACE, 0 },
	[FIELDS_CACHE] = { "", "hardware cache", WHO | WHERE | FIELD_PERIOD,
			   FIELD_TRACE | FIELD_BPF_OUTPUT },
	[FIELDS_RAW] = { "raw", "raw", WHO | WHERE | FIELD_PERIOD | MEMORY,
			 FIELD_TRACE | FIELD_BPF_OUTPUT },
	[FIELDS_BREAKPOINT] = { "", "breakpoint", WHO | WHERE | FIELD_PERIOD,
				FIELD_TRACE | FIELD_BPF_OUTPUT },
	[FIELDS_OTHER] = { "", "PMU", WHO | WHERE | FIELD_PERIOD, FIELD_TRACE | FIELD_BPF_OUTPUT },
};

/* perf's names; `sample` is the part of the sample that it comes from, any bit of it. */
static const struct {
	const char *name;
	uint32_t field;
	uint64_t sample;
} names[] = {
	{ "comm", FIELD_COMM, 0 },
	{ "tid", FIELD_TID, TALLY_SAMPLE_TID },
	{ "pid", FIELD_PID, TALLY_SAMPLE_TID },
	{ "misc", FIELD_MISC, 0 },
	{ "time", FIELD_TIME, TALLY_SAMPLE_TIME },
	{ "cpu", FIELD_CPU, TALLY_SAMPLE_CPU },
	{ "period", FIELD_PERIOD, 0 },
	{ "event", FIELD_EVENT, 0 },
	{ "trace", FIELD_TRACE, TALLY_SAMPLE_RAW },
	{ "addr", FIELD_ADDR, TALLY_SAMPLE_ADDR },
	{ "data_src", FIELD_DATA_SRC, TALLY_SAMPLE_DATA_SRC },
	{ "weight", FIELD_WEIGHT, TALLY_SAMPLE_WEIGHT | TALLY_SAMPLE_WEIGHT_STRUCT },
	{ "ins_lat", FIELD_INS_LAT, TALLY_SAMPLE_WEIGHT_STRUCT },
	{ "ip", FIELD_IP, TALLY_SAMPLE_IP },
	{ "sym", FIELD_SYM, 0 },
	{ "symoff", FIELD_SYMOFF, 0 },
	{ "dso", FIELD_DSO, 0 },
	{ "srcline", FIELD_SRCLINE, 0 },
	{ "iregs", FIELD_IREGS, TALLY_SAMPLE_REGS_INTR },
	{ "uregs", FIELD_UREGS, TALLY_SAMPLE_REGS_USER },
	{ "brstack", FIELD_BRSTACK, TALLY_SAMPLE_BRANCH_STACK },
	{ "brstacksym", FIELD_BRSTACKSYM, TALLY_SAMPLE_BRANCH_STACK },
	{ "brstackoff", FIELD_BRSTACKOFF, TALLY_SAMPLE_BRANCH_STACK },
	{ "bpf-output", FIELD_BPF_OUTPUT, TALLY_SAMPLE_RAW },
	{ "phys_addr", FIELD_PHYS_ADDR, TALLY_SAMPLE_PHYS_ADDR },
	{ "data_page_size", FIELD_DATA_PAGE_SIZE, TALLY_SAMPLE_DATA_PAGE_SIZE },
	{ "code_page_size", FIELD_CODE_PAGE_SIZE, TALLY_SAMPLE_CODE_PAGE_SIZE },
};

/* perf has them, we have not, and why. */
static const struct {
	const char *name, *why;
} lacking[] = {
	{ "srccode", "needs the texts of the source; 'tally annotate' shows them" },
	{ "flags", "is of decoded traces of processors" },
	{ "callindent", "is of decoded traces of processors" },
	{ "insn", "is of decoded traces of processors" },
	{ "insnlen", "is of decoded traces of processors" },
	{ "synth", "is of decoded traces of processors" },
	{ "ipc", "is of decoded traces of processors" },
	{ "brstackinsn", "needs a disassembler" },
	{ "brstackinsnlen", "needs a disassembler" },
	{ "metric", "is counted by 'tally stat -M'" },
	{ "tod", "needs a recording with --clockid" },
};

enum fields_kind fields_kind(const struct tally_attr *attr)
{
	static const enum fields_kind by_type[] = {
		[TALLY_TYPE_HARDWARE] = FIELDS_HW,      [TALLY_TYPE_SOFTWARE] = FIELDS_SW,
		[TALLY_TYPE_TRACEPOINT] = FIELDS_TRACE, [TALLY_TYPE_HW_CACHE] = FIELDS_CACHE,
		[TALLY_TYPE_RAW] = FIELDS_RAW,          [TALLY_TYPE_BREAKPOINT] = FIELDS_BREAKPOINT,
	};

	return attr->type < ARRAY_SIZE(by_type) ? by_type[attr->type] : FIELDS_OTHER;
}

void fields_init(struct fields *f)
{
	*f = (struct fields){ 0 };
	for (int i = 0; i < FIELDS_KINDS; i++)
		f->shown[i] = kinds[i].defaults;
}

/* ---- parsing ---- */

static bool is_word(const char *text, size_t len, const char *word)
{
	return strlen(word) == len && !memcmp(text, word, len);
}

/* The kind that a text begins with, before a ':'; FIELDS_KINDS: all. `*text` moves behind it. */
static int take_kind(const char **text, struct tally_error *err)
{
	const char *colon = strchr(*text, ':');
	size_t len = colon ? (size_t)(colon - *text) : 0;

	if (!colon)
		return FIELDS_KINDS;
	for (int i = 0; i < FIELDS_KINDS; i++) {
		if (kinds[i].name[0] && is_word(*text, len, kinds[i].name)) {
			*text = colon + 1;
			return i;
		}
	}
	return error_set(err, -EINVAL, TALLY_CAUSE_UNKNOWN,
			 "'%.*s' is no kind of events: it is one of hw, sw, trace, raw", (int)len,
			 *text);
}

static int find_field(const char *word, size_t len, uint32_t *field, struct tally_error *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (is_word(word, len, names[i].name)) {
			*field = names[i].field;
			return 0;
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(lacking); i++)
		if (is_word(word, len, lacking[i].name))
			return error_set(err, -EOPNOTSUPP, TALLY_CAUSE_UNSUPPORTED,
					 "the field %s %s, which is not to be had here",
					 lacking[i].name, lacking[i].why);
	return error_set(
		err, -EINVAL, TALLY_CAUSE_UNKNOWN,
		"'%.*s' is no field; there are comm, pid, tid, cpu, time, event, period, ip, "
		"sym, symoff, dso, addr, trace, brstack, brstacksym, brstackoff, iregs, uregs, "
		"data_src, weight, phys_addr and others",
		(int)len, word);
}

static int change(struct fields *f, int kind, uint32_t field, bool take_away,
		  struct tally_error *err)
{
	if (kind != FIELDS_KINDS && kinds[kind].impossible & field)
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
				 "%s events have no field of that name", kinds[kind].people);
	for (int i = 0; i < FIELDS_KINDS; i++) {
		if ((kind != FIELDS_KINDS && kind != i) || kinds[i].impossible & field)
			continue;
		f->shown[i] = take_away ? f->shown[i] & ~field : f->shown[i] | field;
		f->asked[i] = take_away ? f->asked[i] & ~field : f->asked[i] | field;
		f->set[i] = true;
	}
	return 0;
}

static void clear(struct fields *f, int kind)
{
	for (int i = 0; i < FIELDS_KINDS; i++) {
		if (kind != FIELDS_KINDS && kind != i)
			continue;
		f->shown[i] = f->asked[i] = 0;
		f->set[i] = true;
	}
}

int fields_parse(struct fields *f, const char *text, struct tally_error *err)
{
	const char *whole = text;
	int kind = take_kind(&text, err);
	bool changes = *text == '+' || *text == '-';

	if (kind < 0)
		return kind;
	if (!changes)
		clear(f, kind);
	while (*text) {
		size_t len = strcspn(text, ",");
		bool sign = *text == '+' || *text == '-';
		uint32_t field = 0;
		if (sign != changes)
			return error_set(err, -EINVAL, TALLY_CAUSE_SYNTAX,
					 "'%s' mixes fields with + and - and fields without",
					 whole);
		int r = find_field(text + sign, len - sign, &field, err);
		if (r == 0)
			r = change(f, kind, field, *text == '-', err);
		if (r < 0)
			return r;
		text += len + (text[len] == ',');
	}
	return 0;
}

/* ---- what a file has ---- */

/* Whether any event of the file has one of these in its samples. */
static bool any_has(const struct tally_reader *reader, uint64_t sample)
{
	for (uint32_t i = 0; i < tally_reader_events(reader); i++)
		if (tally_reader_event(reader, i)->attr.sample_type & sample)
			return true;
	return false;
}

static int settle_kind(struct fields *f, int kind, const struct tally_reader *reader,
		       const struct tally_reader_event *event, struct tally_error *err)
{
	uint32_t *shown = &f->shown[kind], asked = f->asked[kind];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		uint32_t field = names[i].field & *shown;
		if (!field || !names[i].sample || event->attr.sample_type & names[i].sample)
			continue;
		if (field & asked && !any_has(reader, names[i].sample))
			return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
					 "samples of %s have no %s: record it, or leave the field "
					 "out",
					 event->name, names[i].name);
		*shown &= ~field;
	}
	if (*shown & FIELD_SYMOFF && !(*shown & FIELD_SYM)) {
		if (asked & FIELD_SYMOFF && f->set[kind] && asked & FIELD_IP)
			return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
					 "symoff is the place in a function: ask for sym too");
		*shown &= ~(uint32_t)FIELD_SYMOFF;
	}
	if (*shown & FIELD_SRCLINE && !(*shown & FIELD_IP)) {
		if (asked & FIELD_SRCLINE && f->set[kind])
			return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
					 "srcline is the line of an address: ask for ip too");
		*shown &= ~(uint32_t)FIELD_SRCLINE;
	}
	if (!(*shown & ADDRESSES))
		*shown &= ~(uint32_t)(FIELD_SYM | FIELD_SYMOFF | FIELD_DSO);
	return 0;
}

int fields_settle(struct fields *f, const struct tally_reader *reader, bool chains,
		  struct tally_error *err)
{
	bool seen[FIELDS_KINDS] = { false };

	for (uint32_t i = 0; i < tally_reader_events(reader); i++) {
		const struct tally_reader_event *event = tally_reader_event(reader, i);
		int kind = fields_kind(&event->attr);
		bool has_chain = event->attr.sample_type & TALLY_SAMPLE_CALLCHAIN;
		if (kind == FIELDS_TRACE && chains && has_chain && !f->set[kind])
			f->shown[kind] |= WHERE;
		int r = seen[kind] ? 0 : settle_kind(f, kind, reader, event, err);
		if (r < 0)
			return r;
		seen[kind] = true;
	}
	return 0;
}
