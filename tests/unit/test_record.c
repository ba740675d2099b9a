/* SPDX-License-Identifier: MIT */
/*
 * Records. The bytes that are decoded here are put together by hand, field after field, in the
 * order that perf_event_open(2) gives under "MMAP layout", in either byte order.
 */
#include <errno.h>
#include <stdlib.h>
#include <tally/record.h>

#include "records-by-hand.h"

static void one_mmap(bool swapped, uint64_t type)
{
	struct put p = put_new(TALLY_RECORD_MMAP, TALLY_MISC_KERNEL, swapped);
	struct tally_record rec;

	put32(&p, (uint32_t)-1);
	put32(&p, 0);
	put64(&p, 0xffffffff81000000);
	put64(&p, 0x1276f48);
	put64(&p, 0xffffffff81000000);
	put_text(&p, "[kernel.kallsyms]_text");
	round_trip(&p, type, &rec);
	check_int(rec.type, TALLY_RECORD_MMAP);
	check_int(rec.misc, TALLY_MISC_KERNEL);
	check_int(rec.mmap.pid, -1);
	check_int(rec.mmap.tid, 0);
	check_u64(rec.mmap.addr, 0xffffffff81000000);
	check_u64(rec.mmap.len, 0x1276f48);
	check_u64(rec.mmap.pgoff, 0xffffffff81000000);
	check_str(rec.mmap.filename, "[kernel.kallsyms]_text");
	check_int(rec.mmap.filename_len, 22);
	check_int(rec.mmap.build_id_size, 0);
}

static void mmap_has_a_name_and_a_trailer(void)
{
	in_all_ways(one_mmap);
}

static void one_mmap2(bool swapped, uint64_t type)
{
	struct put p = put_new(TALLY_RECORD_MMAP2, TALLY_MISC_USER, swapped);
	struct tally_record rec;

	put32(&p, 1000);
	put32(&p, 1001);
	put64(&p, 0x7f0000001000);
	put64(&p, 0x2000);
	put64(&p, 0x3000);
	put32(&p, 8);
	put32(&p, 1);
	put64(&p, 123456789012345);
	put64(&p, 77);
	put32(&p, 5);
	put32(&p, 2);
	put_text(&p, "/usr/lib/libc.so.6"); /* 18 and a NUL: padded by 5 */
	round_trip(&p, type, &rec);
	check_int(rec.mmap.pid, 1000);
	check_int(rec.mmap.tid, 1001);
	check_u64(rec.mmap.addr, 0x7f0000001000);
	check_u64(rec.mmap.len, 0x2000);
	check_u64(rec.mmap.pgoff, 0x3000);
	check_int(rec.mmap.maj, 8);
	check_int(rec.mmap.min, 1);
	check_u64(rec.mmap.ino, 123456789012345);
	check_u64(rec.mmap.ino_generation, 77);
	check_int(rec.mmap.prot, 5);
	check_int(rec.mmap.flags, 2);
	check_int(rec.mmap.build_id_size, 0);
	check_str(rec.mmap.filename, "/usr/lib/libc.so.6");
}

static void mmap2_has_an_inode(void)
{
	in_all_ways(one_mmap2);
}

/* SHA-1 has 20 bytes, MD5 and UUID 16, a hash of 8 is lld's fast one; the rest is zero. */
static void build_id_of(uint8_t size, bool swapped, uint64_t type)
{
	static const uint8_t id[20] = { 1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
					11, 12, 13, 14, 15, 16, 17, 18, 19, 20 };
	struct put p = put_new(TALLY_RECORD_MMAP2, TALLY_MISC_USER | TALLY_MISC_MMAP_BUILD_ID,
			       swapped);
	struct tally_record rec;

	put32(&p, 1000);
	put32(&p, 1001);
	for (uint64_t i = 1; i <= 3; i++)
		put64(&p, i * 0x1000);
	p.at[p.len] = size;
	memcpy(p.at + p.len + 4, id, size);
	p.len += 24;
	put32(&p, 5);
	put32(&p, 2);
	put_text(&p, "/bin/ls");
	round_trip(&p, type, &rec);
	check_int(rec.mmap.build_id_size, size);
	check_mem(rec.mmap.build_id, id, size);
	check_u64(rec.mmap.ino, 0);
	check_int(rec.mmap.maj, 0);
	check_int(rec.mmap.prot, 5);
	check_int(rec.mmap.flags, 2);
	check_str(rec.mmap.filename, "/bin/ls");
}

static void one_build_id(bool swapped, uint64_t type)
{
	build_id_of(8, swapped, type);
	build_id_of(16, swapped, type);
	build_id_of(20, swapped, type);
}

static void mmap2_has_a_build_id_by_misc_bit_14(void)
{
	in_all_ways(one_build_id);
}

/*
 * Linux 6.18 with another event that wants build-ids, word for word: the bit is set, and an inode
 * on device 254:0 follows.
 */
static void one_leaked_bit(bool swapped, uint64_t type)
{
	static const uint32_t majors[] = { 0, 7, 8, 9, 11, 21, 254, 259, 4095 };

	for (size_t i = 0; i < 2 * ARRAY_SIZE(majors); i++) {
		uint32_t major = majors[i / 2];
		struct put p = put_new(TALLY_RECORD_MMAP2,
				       TALLY_MISC_USER | TALLY_MISC_MMAP_BUILD_ID, swapped);
		struct tally_record rec;
		put32(&p, 1000);
		put32(&p, 1001);
		for (uint64_t word = 1; word <= 3; word++)
			put64(&p, word * 0x1000);
		put32(&p, major);
		put32(&p, 3);
		put64(&p, 0x51423);
		put64(&p, i & 1 ? 0 : 0x8877665544332211);
		put32(&p, 5);
		put32(&p, 2);
		put_text(&p, "/usr/bin/true");
		round_trip(&p, type, &rec);
		check_int(rec.mmap.build_id_size, 0);
		check_int(rec.mmap.maj, major);
		check_int(rec.mmap.min, 3);
		check_u64(rec.mmap.ino, 0x51423);
		check_u64(rec.mmap.ino_generation, i & 1 ? 0 : 0x8877665544332211);
		check_str(rec.mmap.filename, "/usr/bin/true");
	}
}

static void mmap2_has_an_inode_though_bit_14_says_otherwise(void)
{
	in_all_ways(one_leaked_bit);
}

static void one_comm(bool swapped, uint64_t type)
{
	/* All lengths modulo 8: the id must be found at the end, not behind the text. */
	for (int len = 0; len <= 15; len++) {
		struct put p = put_new(TALLY_RECORD_COMM, len & 1 ? TALLY_MISC_COMM_EXEC : 0,
				       swapped);
		struct tally_record rec;
		char name[16] = "abcdefghijklmno";

		name[len] = '\0';
		put32(&p, 10);
		put32(&p, 11);
		put_text(&p, name);
		round_trip(&p, type, &rec);
		check_int(rec.comm.pid, 10);
		check_int(rec.comm.tid, 11);
		check_str(rec.comm.comm, name);
		check_int(rec.comm.comm_len, len);
		check_int(rec.comm.exec, len & 1);
	}
}

static void comm_has_a_padded_name(void)
{
	in_all_ways(one_comm);
}

static void one_task(bool swapped, uint64_t type)
{
	for (int exit = 0; exit < 2; exit++) {
		struct put p = put_new(exit ? TALLY_RECORD_EXIT : TALLY_RECORD_FORK, 0, swapped);
		struct tally_record rec;

		for (uint32_t i = 21; i <= 24; i++)
			put32(&p, i);
		put64(&p, 0x0102030405060708);
		round_trip(&p, type, &rec);
		check_int(rec.task.pid, 21);
		check_int(rec.task.ppid, 22);
		check_int(rec.task.tid, 23);
		check_int(rec.task.ptid, 24);
		check_u64(rec.task.time, 0x0102030405060708);
	}
}

static void fork_and_exit(void)
{
	in_all_ways(one_task);
}

static void one_loss(bool swapped, uint64_t type)
{
	struct put p = put_new(TALLY_RECORD_LOST, 0, swapped);
	struct put q = put_new(TALLY_RECORD_LOST_SAMPLES, 0, swapped);
	struct tally_record rec;

	put64(&p, 99);
	put64(&p, 12345);
	round_trip(&p, type, &rec);
	check_u64(rec.lost.id, 99);
	check_u64(rec.lost.lost, 12345);
	put64(&q, 54321);
	round_trip(&q, type, &rec);
	check_u64(rec.lost.id, 0);
	check_u64(rec.lost.lost, 54321);
}

static void lost_and_lost_samples(void)
{
	in_all_ways(one_loss);
}

static void one_throttle(bool swapped, uint64_t type)
{
	for (uint32_t kind = TALLY_RECORD_THROTTLE; kind <= TALLY_RECORD_UNTHROTTLE; kind++) {
		struct put p = put_new(kind, 0, swapped);
		struct tally_record rec;

		for (uint64_t i = 31; i <= 33; i++)
			put64(&p, i << 33);
		round_trip(&p, type, &rec);
		check_u64(rec.throttle.time, 31ull << 33);
		check_u64(rec.throttle.id, 32ull << 33);
		check_u64(rec.throttle.stream_id, 33ull << 33);
	}
}

static void throttle_and_unthrottle(void)
{
	in_all_ways(one_throttle);
}

static void every_trailer(void)
{
	struct tally_record rec;

	/* The bits of the trailer are bits 1 2 6 7 9 16; others must not matter to it. */
	for (uint64_t type = 0; type < 1 << 17; type++) {
		if (type & ~(TRAILER_BITS | TALLY_SAMPLE_ADDR | TALLY_SAMPLE_PERIOD))
			continue;
		struct tally_layout layout = { .sample_type = type, .sample_id_all = 1 };
		struct put p = put_new(TALLY_RECORD_EXIT, 0, false);
		for (int i = 0; i < 3; i++)
			put64(&p, 0);
		put_trailer(&p, type);
		put_end(&p);
		check_int(tally_layout_id_size(&layout), p.len - 32);
		bool ok = check_int(decode(&layout, p.at, p.len, &rec), p.len) &&
			  trailer_is_right(&rec, type) && encodes_back(&layout, &rec, &p) &&
			  check_u64(tally_record_id(&layout, p.at, p.len), rec.id.id);
		if (!ok)
			return;
		layout.sample_id_all = 0;
		check_int(tally_layout_id_size(&layout), 0);
		check_u64(tally_record_id(&layout, p.at, p.len), 0);
		check_int(decode(&layout, p.at, p.len, &rec), p.len);
		check_int(rec.leftover, p.len - 32);
	}
}

/* "Reading results" of the manual; each word tells where it stands. */
static void put_read(struct put *p, uint64_t format, unsigned entries)
{
	if (format & TALLY_READ_GROUP)
		put64(p, entries);
	else
		entries = 1;
	if (!(format & TALLY_READ_GROUP))
		put64(p, 0xdead0001);
	if (format & TALLY_READ_TIME_ENABLED)
		put64(p, 0xdead0002);
	if (format & TALLY_READ_TIME_RUNNING)
		put64(p, 0xdead0003);
	for (unsigned i = 0; i < entries; i++) {
		if (format & TALLY_READ_GROUP)
			put64(p, 0xdead0004);
		if (format & TALLY_READ_ID)
			put64(p, 0xdead0005);
		if (format & TALLY_READ_LOST)
			put64(p, 0xdead0006);
	}
}

/* PERF_RECORD_SAMPLE of the manual, in its order; the reference that the decoder is held to. */
static struct put put_sample(uint64_t type, uint64_t format, unsigned chain, bool swapped)
{
	struct put p = put_new(TALLY_RECORD_SAMPLE, TALLY_MISC_USER, swapped);

	if (type & TALLY_SAMPLE_IDENTIFIER)
		put64(&p, 4711);
	if (type & TALLY_SAMPLE_IP)
		put64(&p, 0x401000);
	if (type & TALLY_SAMPLE_TID) {
		put32(&p, 701);
		put32(&p, 702);
	}
	if (type & TALLY_SAMPLE_TIME)
		put64(&p, 0x1122334455667788);
	if (type & TALLY_SAMPLE_ADDR)
		put64(&p, 0x7fff00001234);
	if (type & TALLY_SAMPLE_ID)
		put64(&p, 4711);
	if (type & TALLY_SAMPLE_STREAM_ID)
		put64(&p, 4712);
	if (type & TALLY_SAMPLE_CPU) {
		put32(&p, 3);
		put32(&p, 0);
	}
	if (type & TALLY_SAMPLE_PERIOD)
		put64(&p, 250000);
	if (type & TALLY_SAMPLE_READ)
		put_read(&p, format, 3);
	if (type & TALLY_SAMPLE_CALLCHAIN) {
		put64(&p, chain);
		for (unsigned i = 0; i < chain; i++)
			put64(&p, i ? 0x401000 + i : TALLY_CONTEXT_USER);
	}
	return p;
}

static bool sample_is_right(const struct tally_record *rec, uint64_t type, unsigned chain)
{
	bool ok = trailer_is_right(rec, type);

	ok &= check_u64(rec->sample.ip, type & TALLY_SAMPLE_IP ? 0x401000 : 0);
	ok &= check_u64(rec->sample.addr, type & TALLY_SAMPLE_ADDR ? 0x7fff00001234 : 0);
	ok &= check_u64(rec->sample.period, type & TALLY_SAMPLE_PERIOD ? 250000 : 0);
	if (!(type & TALLY_SAMPLE_CALLCHAIN))
		return ok & check_u64(rec->sample.chain_len, 0);
	ok &= check_u64(rec->sample.chain_len, chain);
	for (unsigned i = 0; i < chain; i++)
		ok &= check_u64(tally_sample_ip(rec, i), i ? 0x401000 + i : TALLY_CONTEXT_USER);
	return ok & check_u64(tally_sample_ip(rec, chain), 0);
}

/* One sample, whole and with fields behind it that are not decoded. */
static bool one_sample(uint64_t type, uint64_t format, unsigned chain, bool swapped)
{
	struct tally_layout layout = { .sample_type = type,
				       .read_format = format,
				       .swapped = swapped };
	struct put p = put_sample(type, format, chain, swapped);
	struct tally_record rec;

	put_end(&p);
	bool ok = check_int(decode(&layout, p.at, p.len, &rec), p.len) &&
		  sample_is_right(&rec, type, chain) && check_int(rec.leftover, 0) &&
		  check_u64(rec.sample.rest_len, 0) &&
		  check_u64(tally_record_id(&layout, p.at, p.len), rec.id.id);
	ok = ok && encodes_back(&layout, &rec, &p);

	size_t before = p.len;
	put64(&p, 0xfeedfacecafebeef);
	put_end(&p);
	ok = ok && check_int(decode(&layout, p.at, p.len, &rec), p.len) &&
	     check_int(rec.leftover, 8);
	layout.sample_type |= 1ull << 25; /* what no kernel knows yet */
	return ok && check_int(decode(&layout, p.at, p.len, &rec), p.len) &&
	       sample_is_right(&rec, type, chain) && check_u64(rec.sample.rest_len, 8) &&
	       check_mem(rec.sample.rest, p.at + before, 8) && check_int(rec.leftover, 0);
}

static void every_subset_of_sample_fields(void)
{
	static const uint64_t bits[] = {
		TALLY_SAMPLE_IP,        TALLY_SAMPLE_TID,       TALLY_SAMPLE_TIME,
		TALLY_SAMPLE_ADDR,      TALLY_SAMPLE_ID,        TALLY_SAMPLE_CPU,
		TALLY_SAMPLE_PERIOD,    TALLY_SAMPLE_STREAM_ID, TALLY_SAMPLE_IDENTIFIER,
		TALLY_SAMPLE_CALLCHAIN,
	};

	for (unsigned set = 0; set < 1u << ARRAY_SIZE(bits); set++) {
		uint64_t type = 0;
		for (size_t i = 0; i < ARRAY_SIZE(bits); i++)
			type |= set >> i & 1 ? bits[i] : 0;
		for (int swapped = 0; swapped < 2; swapped++) {
			if (!one_sample(type, 0, set % 5, swapped))
				return;
			for (uint64_t format = 0; format < 32; format++)
				if (!one_sample(type | TALLY_SAMPLE_READ, format, 2, swapped))
					return;
		}
	}
}

static void samples_survive_truncation(void)
{
	uint64_t all = TRAILER_BITS | TALLY_SAMPLE_IP | TALLY_SAMPLE_ADDR | TALLY_SAMPLE_PERIOD |
		       TALLY_SAMPLE_READ | TALLY_SAMPLE_CALLCHAIN;

	for (uint64_t format = 0; format < 32; format++)
		for (int swapped = 0; swapped < 2; swapped++) {
			struct tally_layout layout = { .sample_type = all,
						       .read_format = format,
						       .swapped = swapped };
			struct put p = put_sample(all, format, 4, swapped);
			put_end(&p);
			survives_truncation(&layout, &p);
		}
}

static void counts_beyond_the_record_are_refused(void)
{
	static const uint64_t hostile[] = { 3,          1ull << 32, 1ull << 60,
					    1ull << 61, INT64_MAX,  UINT64_MAX };
	struct tally_record rec;

	for (size_t i = 0; i < ARRAY_SIZE(hostile); i++) {
		struct tally_layout layout = { .sample_type = TALLY_SAMPLE_CALLCHAIN };
		struct put p = put_new(TALLY_RECORD_SAMPLE, 0, false);
		put64(&p, hostile[i]);
		put64(&p, 1);
		put64(&p, 2);
		put_end(&p);
		check_int(decode(&layout, p.at, p.len, &rec), -EBADMSG);
		layout.sample_type = TALLY_SAMPLE_READ;
		for (uint64_t format = 0; format < 32; format++) {
			layout.read_format = format | TALLY_READ_GROUP;
			check_int(decode(&layout, p.at, p.len, &rec), -EBADMSG);
		}
	}
}

static void a_read_block_of_unknown_shape_stays_raw(void)
{
	struct tally_layout layout = { .sample_type = TALLY_SAMPLE_IP | TALLY_SAMPLE_READ |
						      TALLY_SAMPLE_CALLCHAIN,
				       .read_format = TALLY_READ_ID | 1ull << 5 };
	struct put p = put_new(TALLY_RECORD_SAMPLE, 0, false);
	struct tally_record rec;

	for (uint64_t i = 1; i <= 6; i++)
		put64(&p, i);
	put_end(&p);
	check_int(decode(&layout, p.at, p.len, &rec), p.len);
	check_u64(rec.sample.ip, 1);
	check_u64(rec.sample.chain_len, 0);
	check_u64(rec.sample.rest_len, 40);
}

static void bytes_as_the_manual_lays_them_out(void)
{
	/* A SAMPLE of IP | TID | TIME | CPU | PERIOD on a little-endian machine, byte by byte. */
	static const unsigned char bytes[] = {
		9,    0,    0,    0,    2,    0,    48,   0,    /* type, misc, size */
		0x78, 0x56, 0x34, 0x12, 0,    0,    0,    0,    /* ip */
		0x10, 0,    0,    0,    0x11, 0,    0,    0,    /* pid, tid */
		0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01, /* time */
		1,    0,    0,    0,    0,    0,    0,    0,    /* cpu, res */
		0xa0, 0x86, 1,    0,    0,    0,    0,    0,    /* period */
	};
	struct tally_layout layout = { .sample_type = TALLY_SAMPLE_IP | TALLY_SAMPLE_TID |
						      TALLY_SAMPLE_TIME | TALLY_SAMPLE_CPU |
						      TALLY_SAMPLE_PERIOD,
				       .swapped = __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__ };
	struct tally_record rec;

	check_int(decode(&layout, bytes, sizeof(bytes), &rec), 48);
	check_int(rec.type, TALLY_RECORD_SAMPLE);
	check_int(rec.misc & TALLY_MISC_CPUMODE, TALLY_MISC_USER);
	check_u64(rec.sample.ip, 0x12345678);
	check_int(rec.id.pid, 16);
	check_int(rec.id.tid, 17);
	check_u64(rec.id.time, 0x0123456789abcdef);
	check_int(rec.id.cpu, 1);
	check_u64(rec.sample.period, 100000);
}

static void unknown_types_pass_through(void)
{
	uint64_t type = TALLY_SAMPLE_TID | TALLY_SAMPLE_CPU;
	struct tally_layout layout = { .sample_type = type, .sample_id_all = 1 };
	struct tally_record rec;
	static const uint32_t types[] = { 0, 23, 63 };

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		struct put p = put_new(types[i], 0x55, false);
		put64(&p, 1);
		put_trailer(&p, type);
		put_end(&p);
		check_int(decode(&layout, p.at, p.len, &rec), p.len);
		check_int(rec.type, types[i]);
		check_int(rec.misc, 0x55);
		check_int(rec.leftover, 8);
		trailer_is_right(&rec, type);
		check_mem(rec.bytes, p.at, p.len);
		survives_truncation(&layout, &p);
		/* One that is too short for the sample_id has none. */
		p.len = 16;
		put_end(&p);
		check_int(decode(&layout, p.at, p.len, &rec), 16);
		trailer_is_right(&rec, 0);
		check_int(rec.leftover, 8);
		check_int(tally_record_encode(&layout, &rec, p.at, sizeof(p.at)), -EOPNOTSUPP);
	}
	/* Types from 64 on are perf's own, and have no sample_id. */
	struct put p = put_new(68, 0, false);
	put_trailer(&p, type);
	put_end(&p);
	check_int(decode(&layout, p.at, p.len, &rec), p.len);
	trailer_is_right(&rec, 0);
	check_u64(tally_record_id(&layout, p.at, p.len), 0);
	p = put_new(UINT32_MAX, 0, false);
	put_end(&p);
	check_int(decode(&layout, p.at, p.len, &rec), 8);
}

static void headers_that_lie_are_refused(void)
{
	struct tally_layout layout = { 0 };
	struct tally_record rec;
	struct put p = put_new(TALLY_RECORD_COMM, 0, false);

	put64(&p, 0);
	for (size_t size = 0; size < 8; size++) {
		store_u16(p.at + 6, (uint16_t)size, false);
		for (uint32_t type = 0; type < 100; type++) {
			store_u32(p.at, type, false);
			check_int(decode(&layout, p.at, p.len, &rec), -EBADMSG);
		}
		store_u32(p.at, TALLY_RECORD_COMM, false);
		check_u64(tally_record_id(&layout, p.at, p.len), 0);
	}
	/* No text at all, and one without its NUL. */
	put_end(&p);
	check_int(decode(&layout, p.at, p.len, &rec), -EBADMSG);
	put64(&p, UINT64_MAX);
	put_end(&p);
	check_int(decode(&layout, p.at, p.len, &rec), -EBADMSG);
	/* A NUL in the sample_id is not the text's. */
	layout = (struct tally_layout){ .sample_type = TALLY_SAMPLE_TIME, .sample_id_all = 1 };
	put64(&p, 0);
	put_end(&p);
	check_int(decode(&layout, p.at, p.len, &rec), -EBADMSG);
}

static void older_and_newer_callers(void)
{
	struct tally_layout layout = { 0 };
	struct put p = put_new(TALLY_RECORD_THROTTLE, 0, false);
	struct {
		struct tally_record rec;
		uint64_t newer;
	} big;
	unsigned char *small = (unsigned char *)&big;

	for (uint64_t i = 1; i <= 3; i++)
		put64(&p, i);
	put_end(&p);
	memset(&big, 0xff, sizeof(big));
	check_int(tally_record_decode(&layout, p.at, p.len, &big.rec, sizeof(big)), p.len);
	check_u64(big.rec.throttle.stream_id, 3);
	check_u64(big.newer, 0);
	memset(&big, 0xff, sizeof(big));
	check_int(tally_record_decode(&layout, p.at, p.len, &big.rec, 16), p.len);
	check_int(big.rec.size, p.len);
	check_int(small[15] == 0xff, 0);
	check_int(small[16], 0xff);
}

static void the_longest_record_and_one_more(void)
{
	static unsigned char bytes[70000], chain[65536];
	struct tally_layout layout = { .sample_type = TALLY_SAMPLE_CALLCHAIN };
	struct tally_record rec = { .type = TALLY_RECORD_SAMPLE }, back;

	/* header.size has 16 bits: 8 of header, 8 of count, 8,189 addresses. */
	rec.sample.chain = chain;
	rec.sample.chain_len = 8189;
	check_int(tally_record_encode(&layout, &rec, bytes, sizeof(bytes)), 65528);
	check_int(decode(&layout, bytes, 65528, &back), 65528);
	check_u64(back.sample.chain_len, 8189);
	rec.sample.chain_len = 8190;
	check_int(tally_record_encode(&layout, &rec, bytes, sizeof(bytes)), -ENOSPC);
	rec.sample.chain_len = UINT64_MAX / 8 + 2;
	check_int(tally_record_encode(&layout, &rec, bytes, sizeof(bytes)), -ENOSPC);
}

static void what_cannot_be_encoded_is_refused(void)
{
	unsigned char bytes[256];
	struct tally_layout layout = { .sample_type = TALLY_SAMPLE_IP | TALLY_SAMPLE_READ };
	struct tally_record rec = { .type = TALLY_RECORD_SAMPLE };

	check_int(tally_record_encode(&layout, &rec, bytes, sizeof(bytes)), -EINVAL);
	layout.read_format = 1ull << 5;
	check_int(tally_record_encode(&layout, &rec, bytes, sizeof(bytes)), -EOPNOTSUPP);
	layout.sample_type = 1ull << 25;
	check_int(tally_record_encode(&layout, &rec, bytes, sizeof(bytes)), -EOPNOTSUPP);
	rec.type = 68;
	check_int(tally_record_encode(&layout, &rec, bytes, sizeof(bytes)), -EOPNOTSUPP);
	rec = (struct tally_record){ .type = TALLY_RECORD_MMAP2 };
	rec.mmap.build_id_size = 21;
	check_int(tally_record_encode(&layout, &rec, bytes, sizeof(bytes)), -EINVAL);
	check_int(tally_record_encode(&layout, &rec, NULL, 0), -EINVAL);
	rec.mmap.build_id_size = 0;
	check_int(tally_record_encode(&layout, &rec, NULL, 0), -ENOSPC);
	check_int(tally_record_encode(&layout, &rec, bytes, 79), -ENOSPC);
	check_int(tally_record_encode(&layout, &rec, bytes, 80), 80);
}

static void a_chain_changes_its_byte_order(void)
{
	struct tally_layout theirs = { .sample_type = TALLY_SAMPLE_CALLCHAIN, .swapped = 1 };
	struct tally_layout ours = { .sample_type = TALLY_SAMPLE_CALLCHAIN };
	struct put p = put_sample(TALLY_SAMPLE_CALLCHAIN, 0, 3, true);
	struct put q = put_sample(TALLY_SAMPLE_CALLCHAIN, 0, 3, false);
	struct tally_record rec;

	put_end(&p);
	put_end(&q);
	check_int(decode(&theirs, p.at, p.len, &rec), p.len);
	encodes_back(&ours, &rec, &q);
}

static void layout_comes_from_the_attr(void)
{
	struct tally_attr attr = { .sample_type = 7,
				   .read_format = 16,
				   .branch_sample_type = 8,
				   .sample_regs_user = 9,
				   .sample_regs_intr = 10,
				   .flags = TALLY_ATTR_SAMPLE_ID_ALL };
	struct tally_layout layout;

	tally_layout_init(&layout, &attr, true);
	check_u64(layout.sample_type, 7);
	check_u64(layout.read_format, 16);
	check_u64(layout.branch_sample_type, 8);
	check_u64(layout.regs_user, 9);
	check_u64(layout.regs_intr, 10);
	check_int(layout.sample_id_all, 1);
	check_int(layout.swapped, 1);
	attr.flags = ~TALLY_ATTR_SAMPLE_ID_ALL;
	tally_layout_init(&layout, &attr, false);
	check_int(layout.sample_id_all, 0);
	check_int(layout.swapped, 0);
}

static void types_have_perfs_names(void)
{
	check_str(tally_record_type_name(TALLY_RECORD_MMAP), "MMAP");
	check_str(tally_record_type_name(TALLY_RECORD_MMAP2), "MMAP2");
	check_str(tally_record_type_name(TALLY_RECORD_LOST_SAMPLES), "LOST_SAMPLES");
	check_str(tally_record_type_name(TALLY_RECORD_AUX_OUTPUT_HW_ID), "AUX_OUTPUT_HW_ID");
	check_str(tally_record_type_name(68), "FINISHED_ROUND");
	check_str(tally_record_type_name(82), "FINISHED_INIT");
	check_str(tally_record_type_name(0), NULL);
	check_str(tally_record_type_name(23), NULL);
	check_str(tally_record_type_name(63), NULL);
	check_str(tally_record_type_name(UINT32_MAX), NULL);
}

int main(void)
{
	tap_run(mmap_has_a_name_and_a_trailer);
	tap_run(mmap2_has_an_inode);
	tap_run(mmap2_has_a_build_id_by_misc_bit_14);
	tap_run(mmap2_has_an_inode_though_bit_14_says_otherwise);
	tap_run(comm_has_a_padded_name);
	tap_run(fork_and_exit);
	tap_run(lost_and_lost_samples);
	tap_run(throttle_and_unthrottle);
	tap_run(every_trailer);
	tap_run(every_subset_of_sample_fields);
	tap_run(samples_survive_truncation);
	tap_run(counts_beyond_the_record_are_refused);
	tap_run(a_read_block_of_unknown_shape_stays_raw);
	tap_run(bytes_as_the_manual_lays_them_out);
	tap_run(unknown_types_pass_through);
	tap_run(headers_that_lie_are_refused);
	tap_run(older_and_newer_callers);
	tap_run(the_longest_record_and_one_more);
	tap_run(what_cannot_be_encoded_is_refused);
	tap_run(a_chain_changes_its_byte_order);
	tap_run(layout_comes_from_the_attr);
	tap_run(types_have_perfs_names);
	return tap_end();
}
