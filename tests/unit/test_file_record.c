/* SPDX-License-Identifier: MIT */
/* perf's own records, over bytes made by hand from tools/lib/perf/include/perf/event.h. */
#include <errno.h>
#include <stdlib.h>

#include <tally/file_record.h>

#include "handmade.h"
#include "tap.h"

static struct handmade h;
static struct tally_file_record rec;

static void start(bool swapped, uint32_t type, uint16_t misc)
{
	hm_done(&h);
	h.swapped = swapped;
	hm_record(&h, type, misc, 0);
}

/* Pads to 8, sets the size and decodes. */
static int decode(void)
{
	hm_room(&h, (8 - h.len % 8) % 8);
	hm_set(&h, 6, h.len, 2);
	int ret = tally_file_record_decode(h.at, h.len, h.swapped, &rec, sizeof(rec));
	if (ret >= 0)
		check_int(ret, h.len);
	return ret;
}

static void words(int count, uint64_t from)
{
	for (int i = 0; i < count; i++)
		hm_u64(&h, from + (uint64_t)i);
}

static void check_all(bool swapped)
{
	struct hm_attr attr = { .type = 1, .size = 72, .config = 2 };
	struct tally_file_id id;
	struct tally_file_thread thread;
	uint64_t word, value;
	const char *key, *note;

	start(swapped, 64, 0);
	hm_attr(&h, &attr);
	words(3, 100);
	require(decode() > 0);
	check_int(rec.type, 64);
	check_int(rec.attr.attr_len, 72);
	check_int(rec.attr.id_count, 3);
	check(tally_file_word(&rec, 2, &word));
	check_u64(word, 102);
	check(!tally_file_word(&rec, 3, &word));

	start(swapped, 65, 0);
	hm_u64(&h, 7);
	hm_bytes(&h, "cycles", 7);
	require(decode() > 0);
	check_u64(rec.event_type.config, 7);
	check_str(rec.event_type.name, "cycles");

	start(swapped, 66, 0);
	hm_u32(&h, 4711);
	require(decode() > 0);
	check_u64(rec.tracing.size, 4711);

	start(swapped, 67, 0x8002);
	hm_u32(&h, (uint32_t)-1);
	for (int i = 0; i < 20; i++)
		hm_bytes(&h, "\x11", 1);
	hm_bytes(&h, "\x10\0\0\0/bin/true", 14);
	require(decode() > 0);
	check_int(rec.build_id.pid, -1);
	check_int(rec.build_id.mode, TALLY_MISC_USER);
	check_int(rec.build_id.id_len, 16);
	check_int(rec.build_id.id[15], 0x11);
	check_str(rec.build_id.name, "/bin/true");

	start(swapped, 69, 0);
	hm_u64(&h, 2);
	words(8, 10);
	require(decode() > 0);
	check_u64(rec.id_index.count, 2);
	require(tally_file_id(&rec, 1, &id));
	check_u64(id.id, 14);
	check_u64(id.index, 15);
	check_int(id.cpu, 16);
	check_int(id.tid, 17);
	check_int(id.vcpu, -1);
	check(!tally_file_id(&rec, 2, &id));
	words(4, 50);
	require(decode() > 0);
	require(tally_file_id(&rec, 1, &id));
	check_int(id.machine_pid, 52);
	check_int(id.vcpu, 53);

	start(swapped, 70, 0);
	hm_u32(&h, 1);
	hm_u32(&h, 0);
	words(2, 5);
	require(decode() > 0);
	check_int(rec.auxtrace_info.kind, 1);
	check_u64(rec.auxtrace_info.word_count, 2);
	check(tally_file_word(&rec, 1, &word));
	check_u64(word, 6);

	start(swapped, 71, 0);
	words(3, 1000);
	for (uint32_t i = 0; i < 4; i++)
		hm_u32(&h, i + 2);
	require(decode() > 0);
	check_u64(rec.auxtrace.size, 1000);
	check_u64(rec.auxtrace.offset, 1001);
	check_u64(rec.auxtrace.reference, 1002);
	check_int(rec.auxtrace.index, 2);
	check_int(rec.auxtrace.tid, 3);
	check_int(rec.auxtrace.cpu, 4);

	for (uint32_t format = 0; format < 3; format++) {
		start(swapped, 72, 0);
		for (uint32_t i = 0; i < 5; i++)
			hm_u32(&h, i + 1);
		hm_u32(&h, format);
		hm_u64(&h, 0x401000);
		if (format)
			hm_u64(&h, 77);
		size_t text = h.len;
		hm_room(&h, 64);
		memcpy(h.at + text, "lost", 4);
		hm_u32(&h, 8);
		hm_u32(&h, 9);
		require(decode() > 0);
		check_int(rec.auxtrace_error.kind, 1);
		check_int(rec.auxtrace_error.code, 2);
		check_int(rec.auxtrace_error.cpu, 3);
		check_int(rec.auxtrace_error.pid, 4);
		check_int(rec.auxtrace_error.tid, 5);
		check_u64(rec.auxtrace_error.ip, 0x401000);
		check_u64(rec.auxtrace_error.time, format ? 77 : 0);
		check_str(rec.auxtrace_error.message, "lost");
		check_int(rec.auxtrace_error.machine_pid, format == 2 ? 8 : 0);
		check_int(rec.auxtrace_error.vcpu, format == 2 ? 9 : -1);
	}

	start(swapped, 73, 0);
	hm_u64(&h, 2);
	for (uint64_t i = 0; i < 2; i++) {
		hm_u64(&h, i ? UINT64_MAX : 5);
		hm_bytes(&h, i ? "0123456789abcdef" : "init\0\0\0\0\0\0\0\0\0\0\0", 16);
	}
	require(decode() > 0);
	require(tally_file_thread(&rec, 0, &thread));
	check_int(thread.pid, 5);
	check_str(thread.comm, "init");
	require(tally_file_thread(&rec, 1, &thread));
	check_int(thread.pid, -1);
	check_str(thread.comm, "0123456789abcdef");
	check(!tally_file_thread(&rec, 2, &thread));

	start(swapped, 75, 0);
	hm_u64(&h, 2);
	words(4, 0);
	require(decode() > 0);
	require(tally_file_setting(&rec, 1, &word, &value));
	check_u64(word, 2);
	check_u64(value, 3);
	check(!tally_file_setting(&rec, 2, &word, &value));

	start(swapped, 76, 0);
	hm_u64(&h, 9);
	hm_u32(&h, 1);
	hm_u32(&h, 2);
	words(3, 100);
	require(decode() > 0);
	check_u64(rec.stat.id, 9);
	check_int(rec.stat.cpu, 1);
	check_int(rec.stat.thread, 2);
	check_u64(rec.stat.value, 100);
	check_u64(rec.stat.enabled_ns, 101);
	check_u64(rec.stat.running_ns, 102);

	start(swapped, 77, 0);
	words(2, 1);
	require(decode() > 0);
	check_u64(rec.stat_round.kind, 1);
	check_u64(rec.stat_round.time, 2);

	start(swapped, 79, 0);
	words(3, 1);
	require(decode() > 0);
	check_u64(rec.time_conv.shift, 1);
	check_u64(rec.time_conv.mult, 2);
	check_u64(rec.time_conv.zero, 3);
	check_int(rec.time_conv.cap_short, 0);
	words(2, 4);
	hm_bytes(&h, "\1\1\0\0\0\0\0", 8);
	require(decode() > 0);
	check_u64(rec.time_conv.mask, 5);
	check_int(rec.time_conv.cap_zero, 1);
	check_int(rec.time_conv.cap_short, 1);

	start(swapped, 80, 0);
	hm_u64(&h, 3);
	hm_bytes(&h, "12345678", 8);
	require(decode() > 0);
	check_u64(rec.feature.feature, 3);
	check_u64(rec.feature.len, 8);
	check_mem(rec.feature.bytes, "12345678", 8);

	start(swapped, 83, 0);
	hm_u64(&h, 3);
	hm_bytes(&h, "abc", 3);
	require(decode() > 0);
	check_u64(rec.packed.len, 3);
	check_mem(rec.packed.bytes, "abc", 3);

	start(swapped, 84, 0);
	memcpy(hm_room(&h, 512), "prog", 4);
	hm_u64(&h, 1);
	memcpy(hm_room(&h, 64), "key", 3);
	memcpy(hm_room(&h, 256), "value", 5);
	require(decode() > 0);
	check_str(rec.bpf_metadata.program, "prog");
	require(tally_file_note(&rec, 0, &key, &note));
	check_str(key, "key");
	check_str(note, "value");
	check(!tally_file_note(&rec, 1, &key, &note));

	for (uint32_t type = 85; type < 87; type++) {
		start(swapped, type, 0);
		hm_u64(&h, 1234);
		hm_u32(&h, 3);
		hm_u16(&h, 17);
		hm_u16(&h, 2);
		words(2, 0);
		require(decode() > 0);
		check_u64(rec.schedstat.time, 1234);
		check_int(rec.schedstat.cpu, 3);
		check_int(rec.schedstat.version, 17);
		check_int(rec.schedstat.domain, type == 86 ? 2 : 0);
		check_u64(rec.schedstat.counters_len, 16);
	}
}

static void every_type_is_taken_apart(void)
{
	check_all(false);
	check_all(true);
}

/* ---- CPUs ---- */

static void check_cpus(const int *want, int count)
{
	uint64_t cursor = 0;
	int32_t cpu;

	require(decode() > 0);
	for (int i = 0; i < count; i++) {
		require(tally_file_cpu(&rec, &cursor, &cpu));
		check_int(cpu, want[i]);
	}
	check(!tally_file_cpu(&rec, &cursor, &cpu));
}

static void maps(bool swapped, uint32_t type)
{
	size_t pad = type == 78 ? 16 : 0;

	for (int kind = 0; kind < 4; kind++) {
		start(swapped, type, 0);
		if (pad) {
			hm_u64(&h, 3);
			hm_u64(&h, 99);
		}
		hm_u16(&h, kind > 1 ? kind - 1 : kind);
		if (kind == 0) {
			hm_u16(&h, 3);
			hm_u16(&h, 0xffff);
			hm_u16(&h, 0);
			hm_u16(&h, 300);
			check_cpus((const int[]){ -1, 0, 300 }, 3);
		} else if (kind < 3) {
			uint32_t word = kind == 1 ? 4 : 8;
			hm_u16(&h, 2);
			hm_u16(&h, word);
			hm_room(&h, word == 8 ? 4 : 0);
			for (int i = 0; i < 2; i++)
				hm_store(&h, hm_room(&h, word), i ? 5 : 1ull << (word * 8 - 1),
					 word);
			int bits = (int)word * 8;
			check_cpus((const int[]){ bits - 1, bits, bits + 2 }, 3);
		} else {
			hm_bytes(&h, "\1\0", 2);
			hm_u16(&h, 5);
			hm_u16(&h, 6);
			check_cpus((const int[]){ -1, 5, 6 }, 3);
		}
		if (pad)
			check_u64(rec.update.id, 99);
	}
}

static void cpus_are_read_in_all_forms(void)
{
	for (int swapped = 0; swapped < 2; swapped++) {
		maps(swapped, 74);
		maps(swapped, 78);
	}
}

static void updates_tell_units_scales_and_names(void)
{
	for (int swapped = 0; swapped < 2; swapped++) {
		for (uint64_t kind = 0; kind < 3; kind += 2) {
			start(swapped, 78, 0);
			hm_u64(&h, kind);
			hm_u64(&h, 5);
			hm_bytes(&h, "Joules", 7);
			require(decode() > 0);
			check_u64(rec.update.kind, kind);
			check_str(rec.update.text, "Joules");
		}
		double scale = 2.5;
		uint64_t bits;
		memcpy(&bits, &scale, sizeof(bits));
		start(swapped, 78, 0);
		hm_u64(&h, 1);
		hm_u64(&h, 5);
		hm_u64(&h, bits);
		require(decode() > 0);
		check(rec.update.scale == 2.5);
		check(!rec.update.text);
	}
}

/* ---- damage ---- */

static void refuses_what_it_does_not_know(void)
{
	start(false, 87, 0);
	check_int(decode(), -EOPNOTSUPP);
	start(false, 9, 0);
	check_int(decode(), -EOPNOTSUPP);
	start(false, 68, 0);
	check_int(decode(), 8);
	check_int(tally_file_record_decode(h.at, 7, false, &rec, sizeof(rec)), -EAGAIN);
	hm_set(&h, 6, 16, 2);
	check_int(tally_file_record_decode(h.at, 8, false, &rec, sizeof(rec)), -EAGAIN);
}

static void a_smaller_struct_is_filled_as_far_as_it_goes(void)
{
	struct tally_file_record small;

	memset(&small, 0x5a, sizeof(small));
	start(false, 77, 0);
	words(2, 1);
	hm_set(&h, 6, h.len, 2);
	check_int(tally_file_record_decode(h.at, h.len, false, &small, 8), 24);
	check_int(small.type, 77);
	check_int(small.len, 0x5a5a5a5a);
}

static void counts_beyond_the_record_are_refused(void)
{
	static const struct {
		uint32_t type, at, bytes;
	} counts[] = { { 69, 8, 8 }, { 73, 8, 8 }, { 75, 8, 8 }, { 84, 520, 8 }, { 74, 10, 2 } };
	static const uint64_t values[] = { 2000, UINT64_MAX / 32 + 2000 };

	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		start(false, counts[i].type, 0);
		hm_room(&h, 1000);
		for (int k = 0; k < 2; k++) {
			hm_set(&h, counts[i].at, values[k], counts[i].bytes);
			check_int(decode(), -EBADMSG);
		}
	}
	start(false, 65, 0);
	hm_u64(&h, 1);
	memset(hm_room(&h, 64), 'x', 64);
	check_int(decode(), -EBADMSG);
}

/* Reads every byte that a list gives, for sanitizers to see. */
static void read_lists(void)
{
	struct tally_file_id id;
	struct tally_file_thread thread;
	uint64_t word, value, cursor = 0, n = 0;
	const char *key, *note;
	int32_t cpu;

	while (tally_file_id(&rec, n, &id) || tally_file_thread(&rec, n, &thread) ||
	       tally_file_word(&rec, n, &word) || tally_file_setting(&rec, n, &word, &value) ||
	       tally_file_note(&rec, n, &key, &note))
		n++;
	check(n <= h.len);
	for (n = 0; tally_file_cpu(&rec, &cursor, &cpu); n++)
		check(n <= 8 * 65536);
}

static void any_bytes_stay_within_the_record(void)
{
	uint64_t dice = 362436069;

	for (int round = 0; round < 200000; round++) {
		uint8_t *bytes;
		start(round & 1, 64 + (uint32_t)round % 23, (uint16_t)round);
		for (int i = 0; i < round / 23 % 40; i++) {
			dice ^= dice << 13, dice ^= dice >> 7, dice ^= dice << 17;
			hm_u32(&h, dice % 3 ? dice % 9 : dice);
		}
		hm_set(&h, 6, h.len, 2);
		/* Of just that size, so that a sanitizer sees what is beyond. */
		bytes = malloc(h.len);
		memcpy(bytes, h.at, h.len);
		if (tally_file_record_decode(bytes, h.len, h.swapped, &rec, sizeof(rec)) > 0)
			read_lists();
		free(bytes);
	}
}

int main(void)
{
	tap_run(every_type_is_taken_apart);
	tap_run(cpus_are_read_in_all_forms);
	tap_run(updates_tell_units_scales_and_names);
	tap_run(refuses_what_it_does_not_know);
	tap_run(a_smaller_struct_is_filled_as_far_as_it_goes);
	tap_run(counts_beyond_the_record_are_refused);
	tap_run(any_bytes_stay_within_the_record);
	hm_done(&h);
	return tap_end();
}
