/* SPDX-License-Identifier: MIT */
/*
 * The records and sample fields beyond those that profiles need. The bytes follow perf_event_open(2)
 * and the comments of include/uapi/linux/perf_event.h, field after field, in both byte orders.
 */
#include "records-by-hand.h"

/* linux/perf_event.h, PERF_SAMPLE_BRANCH_*: _HW_INDEX and _COUNTERS. */
#define HW_INDEX (1ull << 17)
#define COUNTERS (1ull << 19)

static void put16(struct put *p, uint16_t v)
{
	store_u16(p->at + p->len, v, p->swapped);
	p->len += 2;
}

static void put_bytes(struct put *p, const char *bytes, size_t len)
{
	memcpy(p->at + p->len, bytes, len);
	p->len += len;
}

static void one_aux(bool swapped, uint64_t type)
{
	struct put p = put_new(TALLY_RECORD_AUX, 0, swapped);
	struct tally_record rec;

	put64(&p, 0x123456789a);
	put64(&p, 4096);
	put64(&p, 1 | 4);
	round_trip(&p, type, &rec);
	check_u64(rec.aux.offset, 0x123456789a);
	check_u64(rec.aux.size, 4096);
	check_u64(rec.aux.flags, TALLY_AUX_TRUNCATED | TALLY_AUX_PARTIAL);
}

static void one_itrace_start(bool swapped, uint64_t type)
{
	struct put p = put_new(TALLY_RECORD_ITRACE_START, 0, swapped);
	struct tally_record rec;

	put32(&p, 10);
	put32(&p, 11);
	round_trip(&p, type, &rec);
	check_int(rec.who.pid, 10);
	check_int(rec.who.tid, 11);
}

static void one_switch(bool swapped, uint64_t type)
{
	/* linux/perf_event.h: PERF_RECORD_MISC_SWITCH_OUT is bit 13, _PREEMPT bit 14. */
	struct put p = put_new(TALLY_RECORD_SWITCH, 1u << 13 | 1u << 14 | 2, swapped);
	struct tally_record rec;

	round_trip(&p, type, &rec);
	check(rec.misc & TALLY_MISC_SWITCH_OUT);
	check(rec.misc & TALLY_MISC_SWITCH_OUT_PREEMPT);
}

static void one_switch_cpu_wide(bool swapped, uint64_t type)
{
	struct put p = put_new(TALLY_RECORD_SWITCH_CPU_WIDE, 0, swapped);
	struct tally_record rec;

	put32(&p, (uint32_t)-1);
	put32(&p, 5);
	round_trip(&p, type, &rec);
	check_int(rec.who.pid, -1);
	check_int(rec.who.tid, 5);
}

static void one_namespaces(bool swapped, uint64_t type)
{
	struct put p = put_new(TALLY_RECORD_NAMESPACES, 0, swapped);
	struct tally_namespace n = { 1, 1 };
	struct tally_record rec;

	put32(&p, 20);
	put32(&p, 21);
	put64(&p, 7);
	for (uint64_t i = 0; i < 7; i++) {
		put64(&p, 4);
		put64(&p, 0xf0000000 + i);
	}
	round_trip(&p, type, &rec);
	check_int(rec.namespaces.pid, 20);
	check_int(rec.namespaces.tid, 21);
	check_u64(rec.namespaces.count, 7);
	for (uint64_t i = 0; i < 7; i++) {
		check(tally_record_namespace(&rec, i, &n));
		check_u64(n.dev, 4);
		check_u64(n.ino, 0xf0000000 + i);
	}
	check(!tally_record_namespace(&rec, 7, &n));
	check(!tally_record_namespace(&rec, UINT64_MAX, &n));
}

static void one_ksymbol(bool swapped, uint64_t type)
{
	struct put p = put_new(TALLY_RECORD_KSYMBOL, 0, swapped);
	struct tally_record rec;

	put64(&p, 0xffffffffc0201000);
	put32(&p, 0x1a4);
	put16(&p, 1);
	put16(&p, 1);
	put_text(&p, "bpf_prog_6deef7357e7b4530");
	round_trip(&p, type, &rec);
	check_u64(rec.ksymbol.addr, 0xffffffffc0201000);
	check_u64(rec.ksymbol.len, 0x1a4);
	check_int(rec.ksymbol.kind, 1);
	check_int(rec.ksymbol.flags, 1);
	check_str(rec.ksymbol.name, "bpf_prog_6deef7357e7b4530");
	check_int(rec.ksymbol.name_len, 25);
}

static void one_bpf_event(bool swapped, uint64_t type)
{
	struct put p = put_new(TALLY_RECORD_BPF_EVENT, 0, swapped);
	struct tally_record rec;

	put16(&p, 2);
	put16(&p, 0);
	put32(&p, 0x01020304);
	put_bytes(&p, "\x6d\xee\xf7\x35\x7e\x7b\x45\x30", 8);
	round_trip(&p, type, &rec);
	check_int(rec.bpf.kind, 2);
	check_int(rec.bpf.flags, 0);
	check_u64(rec.bpf.id, 0x01020304);
	check_mem(rec.bpf.tag, "\x6d\xee\xf7\x35\x7e\x7b\x45\x30", 8);
}

static void one_cgroup(bool swapped, uint64_t type)
{
	struct put p = put_new(TALLY_RECORD_CGROUP, 0, swapped);
	struct tally_record rec;

	put64(&p, 7341);
	put_text(&p, "/system.slice/x");
	round_trip(&p, type, &rec);
	check_u64(rec.cgroup.id, 7341);
	check_str(rec.cgroup.path, "/system.slice/x");
	check_int(rec.cgroup.path_len, 15);
}

/* The bytes follow the lengths at once, and all of it is padded to 8. */
static void one_text_poke(bool swapped, uint64_t type)
{
	struct put p = put_new(TALLY_RECORD_TEXT_POKE, 0, swapped);
	struct tally_record rec;

	put64(&p, 0xffffffff81000010);
	put16(&p, 5);
	put16(&p, 2);
	put_bytes(&p, "\xe9\1\2\3\4\xeb\xfe", 7);
	put_bytes(&p, "\0\0\0\0\0", 5);
	round_trip(&p, type, &rec);
	check_u64(rec.text_poke.addr, 0xffffffff81000010);
	check_int(rec.text_poke.old_len, 5);
	check_int(rec.text_poke.new_len, 2);
	check_mem(rec.text_poke.bytes, "\xe9\1\2\3\4\xeb\xfe", 7);
}

static void one_hw_id(bool swapped, uint64_t type)
{
	struct put p = put_new(TALLY_RECORD_AUX_OUTPUT_HW_ID, 0, swapped);
	struct tally_record rec;

	put64(&p, 0x11);
	round_trip(&p, type, &rec);
	check_u64(rec.hw_id.hw_id, 0x11);
}

static void one_deferred(bool swapped, uint64_t type)
{
	struct put p = put_new(TALLY_RECORD_CALLCHAIN_DEFERRED, 0, swapped);
	struct tally_record rec;

	put64(&p, 0xc00c1e);
	put64(&p, 3);
	put64(&p, TALLY_CONTEXT_USER);
	put64(&p, 0x401000);
	put64(&p, 0x402000);
	round_trip(&p, type, &rec);
	check_u64(rec.deferred.cookie, 0xc00c1e);
	check_u64(rec.deferred.chain_len, 3);
	check_u64(tally_sample_ip(&rec, 0), TALLY_CONTEXT_USER);
	check_u64(tally_sample_ip(&rec, 2), 0x402000);
	check_u64(tally_sample_ip(&rec, 3), 0);
}

static void records_that_tell_what_else_happens(void)
{
	in_all_ways(one_aux);
	in_all_ways(one_itrace_start);
	in_all_ways(one_switch);
	in_all_ways(one_switch_cpu_wide);
	in_all_ways(one_namespaces);
	in_all_ways(one_ksymbol);
	in_all_ways(one_bpf_event);
	in_all_ways(one_cgroup);
	in_all_ways(one_text_poke);
	in_all_ways(one_hw_id);
	in_all_ways(one_deferred);
}

/* A read block as the manual lays it out. The i-th member has the value 100 + i. */
static void put_counts(struct put *p, uint64_t format, unsigned members)
{
	bool group = format & TALLY_READ_GROUP;

	put64(p, group ? members : 100);
	if (format & TALLY_READ_TIME_ENABLED)
		put64(p, 5000);
	if (format & TALLY_READ_TIME_RUNNING)
		put64(p, 4000);
	for (unsigned i = 0; i < (group ? members : 1); i++) {
		if (group)
			put64(p, 100 + i);
		if (format & TALLY_READ_ID)
			put64(p, 200 + i);
		if (format & TALLY_READ_LOST)
			put64(p, 300 + i);
	}
}

static bool counts_are_right(const struct tally_record *rec, const struct tally_record_counts *c,
			     uint64_t format, unsigned members)
{
	uint64_t count = format & TALLY_READ_GROUP ? members : 1;
	struct tally_record_count one;
	bool ok = check_u64(c->count, count);

	ok &= check_u64(c->enabled_ns, format & TALLY_READ_TIME_ENABLED ? 5000 : 0);
	ok &= check_u64(c->running_ns, format & TALLY_READ_TIME_RUNNING ? 4000 : 0);
	for (uint64_t i = 0; i < count; i++) {
		ok &= check(tally_record_count(rec, i, &one));
		ok &= check_u64(one.value, 100 + i);
		ok &= check_u64(one.id, format & TALLY_READ_ID ? 200 + i : 0);
		ok &= check_u64(one.lost, format & TALLY_READ_LOST ? 300 + i : 0);
	}
	return ok && check(!tally_record_count(rec, count, &one)) &&
	       check(!tally_record_count(rec, UINT64_MAX, &one));
}

static bool one_read(uint64_t format, unsigned members, bool swapped)
{
	struct tally_layout layout = { .sample_type = TALLY_SAMPLE_TID | TALLY_SAMPLE_TIME,
				       .sample_id_all = 1,
				       .read_format = format,
				       .swapped = swapped };
	struct put p = put_new(TALLY_RECORD_READ, 0, swapped);
	struct tally_record rec;

	put32(&p, 30);
	put32(&p, 31);
	put_counts(&p, format, members);
	put_trailer(&p, layout.sample_type);
	put_end(&p);
	return check_int(decode(&layout, p.at, p.len, &rec), p.len) &&
	       check_int(rec.read.pid, 30) && check_int(rec.read.tid, 31) &&
	       counts_are_right(&rec, &rec.read.counts, format, members) &&
	       trailer_is_right(&rec, layout.sample_type) && check_int(rec.leftover, 0) &&
	       encodes_back(&layout, &rec, &p);
}

/* bindings have had GROUP inverted, LOST left out, and the leader's format used for a follower. */
static void counts_in_every_format(void)
{
	for (uint64_t format = 0; format < 32; format++)
		for (int swapped = 0; swapped < 2; swapped++)
			for (unsigned members = 0; members < 4; members++)
				if (!one_read(format, members, swapped))
					return;
}

/* The fields of a sample behind the callchain, by their bits, each with its own traps. */

static void put_behind_chain(struct put *p, uint64_t type)
{
	if (type & TALLY_SAMPLE_RAW) {
		put32(p, 12); /* counts its padding: 4 + 12 is a multiple of 8 */
		put_bytes(p, "hello, raw\0\0", 12);
	}
	if (type & TALLY_SAMPLE_BRANCH_STACK) {
		put64(p, 1);
		put64(p, 0x401000);
		put64(p, 0x402000);
		put64(p, 0);
	}
	if (type & TALLY_SAMPLE_REGS_USER) {
		put64(p, 2);
		put64(p, 0xa0);
		put64(p, 0xa8);
	}
	if (type & TALLY_SAMPLE_STACK_USER) {
		put64(p, 16);
		put_bytes(p, "0123456789abcdef", 16);
		put64(p, 8);
	}
	if (type & (TALLY_SAMPLE_WEIGHT | TALLY_SAMPLE_WEIGHT_STRUCT))
		put64(p, 0x000300020000000a);
	if (type & TALLY_SAMPLE_DATA_SRC)
		put64(p, 0x68100142);
	if (type & TALLY_SAMPLE_TRANSACTION)
		put64(p, 0x500000003);
	if (type & TALLY_SAMPLE_REGS_INTR)
		put64(p, 0);
	if (type & TALLY_SAMPLE_PHYS_ADDR)
		put64(p, 0x12345000);
	if (type & TALLY_SAMPLE_CGROUP)
		put64(p, 7341);
	if (type & TALLY_SAMPLE_DATA_PAGE_SIZE)
		put64(p, 4096);
	if (type & TALLY_SAMPLE_CODE_PAGE_SIZE)
		put64(p, 2 << 20);
	if (type & TALLY_SAMPLE_AUX) {
		put64(p, 8);
		put_bytes(p, "auxbytes", 8);
	}
}

static bool has_u64(uint64_t got, uint64_t type, uint64_t bit, uint64_t want)
{
	return check_u64(got, type & bit ? want : 0);
}

static bool behind_chain_is_right(const struct tally_record *rec, uint64_t type)
{
	const struct tally_record_sample *s = &rec->sample;
	struct tally_branch branch;
	uint64_t value = 0;
	bool ok = has_u64(s->raw_len, type, TALLY_SAMPLE_RAW, 12);

	if (type & TALLY_SAMPLE_RAW)
		ok &= check_mem(s->raw, "hello, raw\0\0", 12);
	ok &= has_u64(s->branch_count, type, TALLY_SAMPLE_BRANCH_STACK, 1);
	if (type & TALLY_SAMPLE_BRANCH_STACK)
		ok &= check(tally_sample_branch(rec, 0, &branch)) &&
		      check_u64(branch.from, 0x401000) && check_u64(branch.to, 0x402000);
	ok &= has_u64(s->regs_user.abi, type, TALLY_SAMPLE_REGS_USER, 2);
	if (type & TALLY_SAMPLE_REGS_USER) {
		ok &= check(tally_regs_value(rec, &s->regs_user, 3, &value)) &&
		      check_u64(value, 0xa0);
		ok &= check(tally_regs_value(rec, &s->regs_user, 63, &value)) &&
		      check_u64(value, 0xa8);
		ok &= check(!tally_regs_value(rec, &s->regs_user, 4, &value));
		ok &= check(!tally_regs_value(rec, &s->regs_user, 64, &value));
	}
	ok &= has_u64(s->stack_len, type, TALLY_SAMPLE_STACK_USER, 16);
	ok &= has_u64(s->stack_dyn_size, type, TALLY_SAMPLE_STACK_USER, 8);
	if (type & TALLY_SAMPLE_STACK_USER)
		ok &= check_mem(s->stack, "0123456789abcdef", 16);
	ok &= has_u64(s->weight, type, TALLY_SAMPLE_WEIGHT | TALLY_SAMPLE_WEIGHT_STRUCT,
		      0x000300020000000a);
	ok &= has_u64(s->data_src, type, TALLY_SAMPLE_DATA_SRC, 0x68100142);
	ok &= has_u64(s->transaction, type, TALLY_SAMPLE_TRANSACTION, 0x500000003);
	ok &= check_u64(s->regs_intr.abi, 0) && check(!s->regs_intr.values);
	ok &= has_u64(s->phys_addr, type, TALLY_SAMPLE_PHYS_ADDR, 0x12345000);
	ok &= has_u64(s->cgroup, type, TALLY_SAMPLE_CGROUP, 7341);
	ok &= has_u64(s->data_page_size, type, TALLY_SAMPLE_DATA_PAGE_SIZE, 4096);
	ok &= has_u64(s->code_page_size, type, TALLY_SAMPLE_CODE_PAGE_SIZE, 2 << 20);
	ok &= has_u64(s->aux_len, type, TALLY_SAMPLE_AUX, 8);
	if (type & TALLY_SAMPLE_AUX)
		ok &= check_mem(s->aux, "auxbytes", 8);
	return ok;
}

static bool one_tail(uint64_t type, bool swapped)
{
	struct tally_layout layout = { .sample_type = type | TALLY_SAMPLE_IP,
				       .regs_user = 1ull << 3 | 1ull << 63,
				       .regs_intr = 0xff,
				       .swapped = swapped };
	struct put p = put_new(TALLY_RECORD_SAMPLE, 0, swapped);
	struct tally_record rec;

	put64(&p, 0x400000);
	put_behind_chain(&p, type);
	put_end(&p);
	return check_int(decode(&layout, p.at, p.len, &rec), p.len) &&
	       check_u64(rec.sample.ip, 0x400000) && behind_chain_is_right(&rec, type) &&
	       check_int(rec.leftover, 0) && check_u64(rec.sample.rest_len, 0) &&
	       encodes_back(&layout, &rec, &p);
}

static void every_subset_of_the_fields_behind_the_chain(void)
{
	static const uint64_t bits[] = {
		TALLY_SAMPLE_RAW,         TALLY_SAMPLE_BRANCH_STACK,   TALLY_SAMPLE_REGS_USER,
		TALLY_SAMPLE_STACK_USER,  TALLY_SAMPLE_WEIGHT,         TALLY_SAMPLE_DATA_SRC,
		TALLY_SAMPLE_TRANSACTION, TALLY_SAMPLE_REGS_INTR,      TALLY_SAMPLE_PHYS_ADDR,
		TALLY_SAMPLE_CGROUP,      TALLY_SAMPLE_DATA_PAGE_SIZE, TALLY_SAMPLE_CODE_PAGE_SIZE,
		TALLY_SAMPLE_AUX,
	};

	for (unsigned set = 0; set < 1u << ARRAY_SIZE(bits); set++) {
		uint64_t type = 0;
		for (size_t i = 0; i < ARRAY_SIZE(bits); i++)
			type |= set >> i & 1 ? bits[i] : 0;
		if (!one_tail(type, false) || !one_tail(type, true))
			return;
	}
	one_tail(TALLY_SAMPLE_WEIGHT_STRUCT, true);
}

static void the_traps_of_lengths(void)
{
	for (int swapped = 0; swapped < 2; swapped++) {
		struct tally_layout layout = { .sample_type = TALLY_SAMPLE_REGS_USER |
							      TALLY_SAMPLE_STACK_USER |
							      TALLY_SAMPLE_PHYS_ADDR,
					       .regs_user = 0xffffff,
					       .swapped = swapped };
		struct put p = put_new(TALLY_RECORD_SAMPLE, 0, swapped);
		struct tally_record rec;
		/* A kernel thread: abi 0, so no registers; stack size 0, so no dyn_size. */
		put64(&p, 0);
		put64(&p, 0);
		put64(&p, 77);
		put_end(&p);
		check_int(decode(&layout, p.at, p.len, &rec), p.len);
		check_u64(rec.sample.phys_addr, 77);
		check_u64(rec.sample.regs_user.mask, 0);
		check_int(rec.leftover, 0);
		encodes_back(&layout, &rec, &p);
		survives_truncation(&layout, &p);
	}
}

/* Raw data that was asked for and is not there is 4 bytes of zero, not nothing. */
static void absent_raw_data_is_four_zeros(void)
{
	struct tally_layout layout = { .sample_type = TALLY_SAMPLE_RAW | TALLY_SAMPLE_CGROUP };
	struct put p = put_new(TALLY_RECORD_SAMPLE, 0, false);
	struct tally_record rec;

	put32(&p, 4);
	put32(&p, 0);
	put64(&p, 9);
	put_end(&p);
	check_int(decode(&layout, p.at, p.len, &rec), p.len);
	check_u64(rec.sample.raw_len, 4);
	check_mem(rec.sample.raw, "\0\0\0\0", 4);
	check_u64(rec.sample.cgroup, 9);
	encodes_back(&layout, &rec, &p);
}

/* A file that counts no padding in the size is padded all the same. */
static void raw_data_of_any_length_is_padded(void)
{
	struct tally_layout layout = { .sample_type = TALLY_SAMPLE_RAW | TALLY_SAMPLE_CGROUP };

	for (uint32_t len = 0; len < 9; len++) {
		struct put p = put_new(TALLY_RECORD_SAMPLE, 0, false);
		struct tally_record rec;
		put32(&p, len);
		memset(p.at + p.len, 'x', len);
		memset(p.at + p.len + len, 0, 8);
		p.len = align_up(p.len + len, 8);
		put64(&p, 9);
		put_end(&p);
		check_int(decode(&layout, p.at, p.len, &rec), p.len);
		check_u64(rec.sample.raw_len, len);
		check_u64(rec.sample.cgroup, 9);
		encodes_back(&layout, &rec, &p);
	}
}

/* What a C compiler of either byte order makes of struct perf_branch_entry's bits. */
static uint64_t branch_flags(bool mirrored)
{
	/* mispred 1, predicted 0, in_tx 0, abort 1, cycles 0x1234, type 15, spec 2, new_type 5, priv 3 */
	static const struct {
		unsigned width;
		uint64_t value;
	} fields[] = { { 1, 1 },  { 1, 0 }, { 1, 0 }, { 1, 1 }, { 16, 0x1234 },
		       { 4, 15 }, { 2, 2 }, { 4, 5 }, { 3, 3 } };
	uint64_t flags = 0;
	unsigned at = 0;

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		flags |= fields[i].value << (mirrored ? 64 - at - fields[i].width : at);
		at += fields[i].width;
	}
	return flags;
}

static void put_branches(struct put *p, unsigned count, bool hw_idx, bool counters)
{
	put64(p, count);
	if (hw_idx)
		put64(p, 31);
	for (unsigned i = 0; i < count; i++) {
		put64(p, 0x401000 + i);
		put64(p, 0x402000 + i);
		put64(p, branch_flags(p->swapped));
	}
	for (unsigned i = 0; counters && i < count; i++)
		put64(p, 0x50 + i);
}

static bool branches_are_right(const struct tally_record *rec, unsigned count, bool hw_idx,
			       bool counters)
{
	struct tally_branch b;
	bool ok = check_u64(rec->sample.branch_count, count);

	ok &= check_u64(rec->sample.branch_hw_idx, hw_idx ? 31 : UINT64_MAX);
	ok &= check(!!rec->sample.branch_counters == (counters && count));
	for (unsigned i = 0; ok && i < count; i++) {
		ok &= check(tally_sample_branch(rec, i, &b));
		ok &= check_u64(b.from, 0x401000 + i) && check_u64(b.to, 0x402000 + i);
		ok &= check_u64(b.counters, counters ? 0x50 + i : 0);
		ok &= check_u64(b.flags, TALLY_BRANCH_ENTRY_MISPRED | TALLY_BRANCH_ENTRY_ABORT);
		ok &= check_int(b.cycles, 0x1234) && check_int(b.type, 15) && check_int(b.spec, 2);
		ok &= check_int(b.new_type, 5) && check_int(b.priv, 3);
	}
	return ok && check(!tally_sample_branch(rec, count, &b));
}

/*
 * What was asked for need not be there: hw_idx is written with an empty stack, but not when there is
 * none; counters are left out by PMUs without them. Only the record's length tells.
 */
static void branch_stacks_in_every_form(void)
{
	for (int n = 0; n < 64; n++) {
		bool swapped = n & 1, index = n & 2, counters = n & 4, asked_index = n & 8;
		bool asked_counters = n & 16, more = n & 32;
		if ((index && !asked_index) || (counters && !asked_counters))
			continue;
		for (unsigned count = 0; count < 3; count++) {
			if (count && asked_index && !index)
				continue; /* the kernel writes it beside any entries */
			struct tally_layout layout = {
				.sample_type = TALLY_SAMPLE_BRANCH_STACK |
					       (more ? TALLY_SAMPLE_WEIGHT : 0),
				.branch_sample_type = (asked_index ? HW_INDEX : 0) |
						      (asked_counters ? COUNTERS : 0),
				.swapped = swapped,
			};
			struct put p = put_new(TALLY_RECORD_SAMPLE, 0, swapped);
			struct tally_record rec;
			put_branches(&p, count, index, counters);
			if (more)
				put64(&p, 12);
			put_end(&p);
			if (!check_int(decode(&layout, p.at, p.len, &rec), p.len) ||
			    !branches_are_right(&rec, count, index, counters) ||
			    !check_u64(rec.sample.weight, more ? 12 : 0) ||
			    !check_int(rec.leftover, 0) || !encodes_back(&layout, &rec, &p))
				return;
		}
	}
}

/* The kernel writes -1 where it knows no index: the word is there all the same. */
static void an_unknown_hw_idx_is_a_word(void)
{
	struct tally_layout layout = { .sample_type = TALLY_SAMPLE_BRANCH_STACK,
				       .branch_sample_type = HW_INDEX };
	struct put p = put_new(TALLY_RECORD_SAMPLE, 0, false);
	struct tally_record rec;

	put64(&p, 0);
	put64(&p, UINT64_MAX);
	put_end(&p);
	check_int(decode(&layout, p.at, p.len, &rec), p.len);
	check_u64(rec.sample.branch_hw_idx, UINT64_MAX);
	check_u64(rec.sample.branch_parts, HW_INDEX);
	encodes_back(&layout, &rec, &p);
}

static void branches_change_their_byte_order(void)
{
	struct tally_layout from = { .sample_type = TALLY_SAMPLE_BRANCH_STACK,
				     .branch_sample_type = HW_INDEX | COUNTERS,
				     .swapped = true };
	struct tally_layout to = from;
	struct put p = put_new(TALLY_RECORD_SAMPLE, 0, true);
	struct put want = put_new(TALLY_RECORD_SAMPLE, 0, false);
	struct tally_record rec;
	unsigned char bytes[256];

	to.swapped = false;
	put_branches(&p, 2, true, true);
	put_end(&p);
	put_branches(&want, 2, true, true);
	put_end(&want);
	require(decode(&from, p.at, p.len, &rec) == (int)p.len);
	check_int(tally_record_encode(&to, &rec, bytes, sizeof(bytes)), want.len);
	check_mem(bytes, want.at, want.len);
}

static void counts_that_lie_are_refused(void)
{
	static const uint64_t hostile[] = {
		3,         1ull << 32, UINT64_MAX / 24 + 1, UINT64_MAX / 8 + 1, UINT64_MAX / 16 + 1,
		UINT64_MAX
	};
	static const uint64_t fields[] = { TALLY_SAMPLE_BRANCH_STACK, TALLY_SAMPLE_STACK_USER,
					   TALLY_SAMPLE_AUX };
	struct tally_record rec;

	for (size_t i = 0; i < ARRAY_SIZE(hostile); i++) {
		for (size_t f = 0; f < ARRAY_SIZE(fields); f++) {
			struct tally_layout layout = { .sample_type = fields[f],
						       .branch_sample_type = HW_INDEX | COUNTERS };
			struct put p = put_new(TALLY_RECORD_SAMPLE, 0, false);
			/* Three is one more than there is room for, but of AUX's bytes. */
			put64(&p, hostile[i] == 3 && f ? 25 : hostile[i]);
			put64(&p, 1);
			put64(&p, 2);
			put64(&p, 3);
			put_end(&p);
			check_int(decode(&layout, p.at, p.len, &rec), -EBADMSG);
		}
		struct tally_layout none = { 0 };
		struct put p = put_new(TALLY_RECORD_NAMESPACES, 0, false);
		put64(&p, 0);
		put64(&p, hostile[i]);
		put64(&p, 1);
		put64(&p, 2);
		put_end(&p);
		check_int(decode(&none, p.at, p.len, &rec), -EBADMSG);
	}
	struct tally_layout layout = { .sample_type = TALLY_SAMPLE_RAW };
	struct put p = put_new(TALLY_RECORD_SAMPLE, 0, false);
	put32(&p, 5);
	put32(&p, 0);
	put_end(&p);
	check_int(decode(&layout, p.at, p.len, &rec), -EBADMSG);
	p = put_new(TALLY_RECORD_TEXT_POKE, 0, false);
	put64(&p, 1);
	put16(&p, UINT16_MAX);
	put16(&p, UINT16_MAX);
	put32(&p, 0);
	put_end(&p);
	check_int(decode(&layout, p.at, p.len, &rec), -EBADMSG);
}

/* PERF_MEM_S(OP, LOAD) and so on, by the shifts of linux/perf_event.h. */
static void data_sources_are_taken_apart(void)
{
	/* op LOAD 0; level HIT|L3 at 5; snoop HITM at 19; lock LOCKED at 24; dtlb HIT|L2 at 26;
	 * lvl_num PMEM at 33; remote at 37; snoopx FWD at 38; blk ADDR at 40; hops 2 at 43 */
	uint64_t src = 2ull | (2ull | 0x40) << 5 | 16ull << 19 | 2ull << 24 | (2ull | 16) << 26 |
		       14ull << 33 | 1ull << 37 | 1ull << 38 | 4ull << 40 | 2ull << 43;
	struct tally_data_src d = tally_data_src_decode(src);

	check_int(d.op, 2);
	check_int(d.level, 0x42);
	check_int(d.snoop, 16);
	check_int(d.lock, 2);
	check_int(d.dtlb, 18);
	check_int(d.level_no, 14);
	check_int(d.remote, 1);
	check_int(d.snoopx, 1);
	check_int(d.block, 4);
	check_int(d.hops, 2);
	check_int(d.region, 0);
	check_int(d.rest, 0);
	d = tally_data_src_decode(UINT64_MAX);
	check_int(d.op, 31);
	check_int(d.level, 0x3fff);
	check_int(d.level_no, 15);
	check_int(d.rest, 0x1fff);
}

static void registers_have_their_names(void)
{
	/* By arch/.../include/uapi/asm/perf_regs.h */
	static const struct {
		const char *machine;
		unsigned bit;
		const char *name;
	} names[] = {
		{ "x86_64", 0, "AX" },     { "x86_64", 7, "SP" },     { "x86_64", 8, "IP" },
		{ "x86_64", 16, "R8" },    { "x86_64", 23, "R15" },   { "x86_64", 32, "XMM0" },
		{ "x86_64", 33, NULL },    { "x86_64", 62, "XMM15" }, { "x86_64", 64, NULL },
		{ "i686", 8, "IP" },       { "i686", 16, NULL },      { "aarch64", 30, "lr" },
		{ "aarch64", 31, "sp" },   { "aarch64", 32, "pc" },   { "aarch64", 33, NULL },
		{ "armv7l", 13, "sp" },    { "armv7l", 15, "pc" },    { "armv7l", 16, NULL },
		{ "riscv64", 0, "pc" },    { "riscv64", 2, "sp" },    { "riscv64", 10, "a0" },
		{ "riscv64", 31, "t6" },   { "ppc64le", 1, "r1" },    { "ppc64le", 32, "nip" },
		{ "ppc64le", 36, "link" }, { "s390x", 15, "r15" },    { "s390x", 16, "fp0" },
		{ "s390x", 33, "pc" },     { "s390x", 34, NULL },     { "vax", 0, NULL },
		{ "", 0, NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *name = tally_reg_name(names[i].machine, names[i].bit);
		if (names[i].name)
			check_str(name ? name : "(none)", names[i].name);
		else
			check(!name);
	}
}

/* What unwinding begins with is among them, and each has a name. */
static void general_registers_can_unwind(void)
{
	static const struct {
		const char *machine;
		unsigned sp, ip, count;
	} machines[] = {
		{ "x86_64", 7, 8, 20 },   { "i686", 7, 8, 16 },    { "aarch64", 31, 32, 33 },
		{ "armv7l", 13, 15, 16 }, { "riscv64", 2, 0, 32 }, { "ppc64le", 1, 32, 45 },
		{ "s390x", 15, 33, 34 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(machines); i++) {
		uint64_t mask = tally_regs_general(machines[i].machine);
		check(mask >> machines[i].sp & 1 && mask >> machines[i].ip & 1);
		check_int(__builtin_popcountll(mask), machines[i].count);
		for (unsigned bit = 0; bit < 64; bit++)
			if (mask >> bit & 1)
				check(tally_reg_name(machines[i].machine, bit) != NULL);
	}
	check_u64(tally_regs_general("vax"), 0);
}

int main(void)
{
	tap_run(records_that_tell_what_else_happens);
	tap_run(counts_in_every_format);
	tap_run(every_subset_of_the_fields_behind_the_chain);
	tap_run(the_traps_of_lengths);
	tap_run(absent_raw_data_is_four_zeros);
	tap_run(raw_data_of_any_length_is_padded);
	tap_run(branch_stacks_in_every_form);
	tap_run(an_unknown_hw_idx_is_a_word);
	tap_run(branches_change_their_byte_order);
	tap_run(counts_that_lie_are_refused);
	tap_run(data_sources_are_taken_apart);
	tap_run(registers_have_their_names);
	tap_run(general_registers_can_unwind);
	return tap_end();
}
