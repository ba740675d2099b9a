/* SPDX-License-Identifier: MIT */
/* Features taken apart, over bytes made by hand from perf.data-file-format.txt, in both orders. */
#include <errno.h>
#include <stdlib.h>

#include <tally/features.h>

#include "handmade-recording.h"

static struct made m;
static size_t begin;
static int fd = -1;
static struct tally_reader *r;
static struct tally_feature_walk walk;
static struct tally_feature_item item;

/* A file with one feature, or with NRCPUS and one that comes later, whose bytes follow. */
static void start(bool swapped, int bit, uint32_t cpus)
{
	make(&m, &(struct shape){ .swapped = swapped });
	m.h.len = m.data_end;
	hm_set(&m.h, HM_FEATURES_AT, (1ull << bit) | (cpus ? 1 << 7 : 0), 8);
	hm_room(&m.h, cpus ? 32 : 16);
	if (cpus) {
		hm_section(&m.h, m.data_end, m.h.len, 8);
		hm_u32(&m.h, cpus);
		hm_u32(&m.h, cpus);
	}
	begin = m.h.len;
	walk = (struct tally_feature_walk){ .feature = (uint32_t)bit };
}

static void open_it(uint32_t cpus)
{
	hm_section(&m.h, m.data_end + (cpus ? 16 : 0), begin, m.h.len - begin);
	r = must_open(&m, &fd);
}

static void done(void)
{
	if (r)
		close_made(r, fd);
	r = NULL;
	hm_done(&m.h);
}

static bool next(void)
{
	int ret = tally_reader_item(r, &walk, &item);

	check_int(ret, 1);
	if (ret == 1)
		check_int(item.feature, walk.feature);
	return ret == 1;
}

static void end(void)
{
	check_int(tally_reader_item(r, &walk, &item), 0);
	check_int(tally_reader_item(r, &walk, &item), 0);
	done();
}

static void text(const char *s)
{
	hm_text(&m.h, s, 64);
}

static void numbers(bool swapped)
{
	start(swapped, 10, 0);
	hm_u64(&m.h, 16384000);
	open_it(0);
	if (next())
		check_u64(item.number.value, 16384000);
	end();
	start(swapped, 34, 0);
	hm_u32(&m.h, 64);
	open_it(0);
	if (next())
		check_u64(item.number.value, 64);
	end();
	start(swapped, 7, 0); /* available, online */
	hm_u32(&m.h, 8);
	hm_u32(&m.h, 6);
	open_it(0);
	if (next()) {
		check_int(item.cpus.available, 8);
		check_int(item.cpus.online, 6);
	}
	end();
	start(swapped, 21, 0);
	hm_u64(&m.h, 1000);
	hm_u64(&m.h, 2000);
	open_it(0);
	if (next()) {
		check_u64(item.times.first, 1000);
		check_u64(item.times.last, 2000);
	}
	end();
	start(swapped, 29, 0);
	hm_u32(&m.h, 1);
	hm_u32(&m.h, 4); /* CLOCK_MONOTONIC_RAW */
	hm_u64(&m.h, 1600000000000000000u);
	hm_u64(&m.h, 123456789);
	open_it(0);
	if (next()) {
		check_int(item.clocks.clockid, 4);
		check_u64(item.clocks.wall, 1600000000000000000u);
		check_u64(item.clocks.clock, 123456789);
	}
	end();
	start(swapped, 33, 0);
	hm_u32(&m.h, 183);
	hm_u32(&m.h, 5);
	open_it(0);
	if (next()) {
		check_int(item.machine.machine, 183);
		check_int(item.machine.flags, 5);
	}
	end();
	start(swapped, 27, 0);
	for (uint32_t i = 0; i < 5; i++)
		hm_u32(&m.h, i * 10);
	open_it(0);
	if (next()) {
		check_int(item.compressed.kind, 10);
		check_int(item.compressed.level, 20);
		check_int(item.compressed.mmap_len, 40);
	}
	end();
}

static void numbers_are_read(void)
{
	numbers(false);
	numbers(true);
}

static void check_topology_item(uint32_t kind, const char *cpus, uint32_t cpu, int core, int socket,
				int die)
{
	if (!next())
		return;
	check_int(item.topology.kind, kind);
	check_str(item.topology.cpus, cpus);
	check_int(item.topology.cpu, cpu);
	check_int(item.topology.core, core);
	check_int(item.topology.socket, socket);
	check_int(item.topology.die, die);
}

/* {n, siblings of cores}, {n, of threads}, per CPU {core, socket}, {n, of dies}, per CPU {die} */
static void topology(bool swapped, int parts)
{
	start(swapped, 13, 2);
	hm_u32(&m.h, 1);
	text("0-1");
	hm_u32(&m.h, 2);
	text("0");
	text("1");
	for (uint32_t cpu = 0; parts > 1 && cpu < 2; cpu++) {
		hm_u32(&m.h, cpu + 5);
		hm_u32(&m.h, cpu + 7);
	}
	if (parts > 2) {
		hm_u32(&m.h, 1);
		text("0-1");
		hm_u32(&m.h, 0);
		hm_u32(&m.h, 3);
	}
	open_it(2);
	check_topology_item(0, "0-1", 0, -1, -1, -1);
	check_topology_item(1, "0", 0, -1, -1, -1);
	check_topology_item(1, "1", 0, -1, -1, -1);
	for (int cpu = 0; parts > 1 && cpu < 2; cpu++)
		check_topology_item(3, NULL, (uint32_t)cpu, cpu + 5, cpu + 7, -1);
	if (parts > 2) {
		check_topology_item(2, "0-1", 0, -1, -1, -1);
		check_topology_item(4, NULL, 0, -1, -1, 0);
		check_topology_item(4, NULL, 1, -1, -1, 3);
	}
	end();
}

static void topologies_of_all_ages_are_read(void)
{
	for (int parts = 1; parts < 4; parts++) {
		topology(false, parts);
		topology(true, parts);
	}
}

static void lists(bool swapped)
{
	start(swapped, 14, 0);
	hm_u32(&m.h, 2);
	for (uint32_t i = 0; i < 2; i++) {
		hm_u32(&m.h, i);
		hm_u64(&m.h, 1000 + i);
		hm_u64(&m.h, 500 + i);
		text(i ? "4-7" : "0-3");
	}
	open_it(0);
	next();
	if (next()) {
		check_int(item.index, 1);
		check_int(item.node.node, 1);
		check_u64(item.node.total_kb, 1001);
		check_u64(item.node.free_kb, 501);
		check_str(item.node.cpus, "4-7");
	}
	end();
	start(swapped, 16, 0);
	hm_u32(&m.h, 2);
	hm_u32(&m.h, 1);
	text("software");
	hm_u32(&m.h, 4);
	text("cpu");
	open_it(0);
	next();
	if (next()) {
		check_int(item.pmu.type, 4);
		check_str(item.pmu.name, "cpu");
	}
	end();
	start(swapped, 17, 0);
	hm_u32(&m.h, 1);
	text("{anon_group}");
	hm_u32(&m.h, 3);
	hm_u32(&m.h, 2);
	open_it(0);
	if (next()) {
		check_str(item.group.name, "{anon_group}");
		check_int(item.group.leader, 3);
		check_int(item.group.members, 2);
	}
	end();
	start(swapped, 18, 0);
	hm_u64(&m.h, 2);
	for (uint64_t i = 0; i < 4; i++)
		hm_u64(&m.h, 100 + i);
	open_it(0);
	next();
	if (next()) {
		check_u64(item.auxtrace.offset, 102);
		check_u64(item.auxtrace.size, 103);
	}
	end();
	start(swapped, 20, 0);
	hm_u32(&m.h, 1);
	hm_u32(&m.h, 1);
	for (uint32_t i = 0; i < 4; i++)
		hm_u32(&m.h, i + 1);
	text("Data");
	text("32K");
	text("0-1");
	open_it(0);
	if (next()) {
		check_int(item.cache.level, 1);
		check_int(item.cache.line_size, 2);
		check_int(item.cache.sets, 3);
		check_int(item.cache.ways, 4);
		check_str(item.cache.type, "Data");
		check_str(item.cache.size, "32K");
		check_str(item.cache.cpus, "0-1");
	}
	end();
	start(swapped, 30, 0);
	hm_u32(&m.h, 1);
	text("cpu_atom");
	text("8-15");
	open_it(0);
	if (next()) {
		check_str(item.hybrid.pmu, "cpu_atom");
		check_str(item.hybrid.cpus, "8-15");
	}
	end();
}

static void lists_are_read(void)
{
	lists(false);
	lists(true);
}

/* {version 1, block size, n}, each {node, blocks, bits, words} */
static void the_memory_of_nodes_is_read(void)
{
	for (int swapped = 0; swapped < 2; swapped++) {
		start(swapped, 22, 0);
		hm_u64(&m.h, 1);
		hm_u64(&m.h, 0x8000000);
		hm_u64(&m.h, 2);
		for (uint64_t node = 0; node < 2; node++) {
			hm_u64(&m.h, node);
			hm_u64(&m.h, 65);
			hm_u64(&m.h, 65);
			hm_u64(&m.h, 0xff + node);
			hm_u64(&m.h, 1);
		}
		open_it(0);
		next();
		if (next()) {
			check_u64(item.memory.block_size, 0x8000000);
			check_u64(item.memory.node, 1);
			check_u64(item.memory.bits, 65);
			check_u64(item.memory.word_count, 2);
			check_mem(item.memory.words, m.h.at + m.h.len - 16, 16);
		}
		end();
	}
}

static void bpf_programs_are_read(void)
{
	start(false, 25, 0);
	hm_u32(&m.h, 2);
	for (uint32_t i = 0; i < 2; i++) {
		hm_u32(&m.h, 8);
		hm_u32(&m.h, 3);
		hm_u64(&m.h, 5);
		hm_bytes(&m.h, "proginfodat", 11);
	}
	open_it(0);
	next();
	if (next()) {
		check_int(item.bpf.info_len, 8);
		check_u64(item.bpf.arrays, 5);
		check_u64(item.bpf.data_len, 3);
		check_mem(item.bpf.info, "proginfo", 8);
		check_mem(item.bpf.data, "dat", 3);
	}
	end();
	start(true, 25, 0);
	open_it(0);
	check_int(tally_reader_item(r, &walk, &item), -EOPNOTSUPP);
	done();
	start(false, 26, 0);
	hm_u32(&m.h, 1);
	hm_u32(&m.h, 77);
	hm_u32(&m.h, 4);
	hm_bytes(&m.h, "btf!", 4);
	open_it(0);
	if (next()) {
		check_int(item.bpf.id, 77);
		check_u64(item.bpf.data_len, 4);
		check_mem(item.bpf.data, "btf!", 4);
	}
	end();
}

static void check_cap(const char *pmu, const char *name, const char *value)
{
	if (!next())
		return;
	check_str(item.caps.pmu, pmu);
	check_str(item.caps.name, name);
	check_str(item.caps.value, value);
}

/* {n, each {m, m times {name, value}, pmu}}: also PMUs without any. */
static void capabilities_are_read_with_their_pmu(void)
{
	start(false, 28, 0);
	hm_u32(&m.h, 1);
	text("branches");
	text("32");
	open_it(0);
	check_cap(NULL, "branches", "32");
	end();
	start(false, 31, 0);
	hm_u32(&m.h, 4);
	hm_u32(&m.h, 0);
	text("none");
	hm_u32(&m.h, 2);
	text("branches");
	text("32");
	text("max_precise");
	text("3");
	text("cpu_core");
	hm_u32(&m.h, 1);
	text("branches");
	text("16");
	text("cpu_atom");
	hm_u32(&m.h, 0);
	text("none either");
	open_it(0);
	check_cap("cpu_core", "branches", "32");
	check_cap("cpu_core", "max_precise", "3");
	check_cap("cpu_atom", "branches", "16");
	end();
}

/* {schedstat version, most domains}, each CPU {cpu, n, n times {domain, [name], mask, list}} */
static void domains_are_read(void)
{
	for (uint32_t version = 16; version < 18; version++) {
		start(false, 32, 2);
		hm_u32(&m.h, version);
		hm_u32(&m.h, 1);
		for (uint32_t cpu = 0; cpu < 3; cpu++) {
			hm_u32(&m.h, cpu);
			hm_u32(&m.h, cpu != 1);
			if (cpu == 1)
				continue;
			hm_u32(&m.h, 0);
			if (version == 17)
				text("MC");
			text("3");
			text("0-1");
		}
		open_it(2);
		for (uint32_t cpu = 0; cpu < 3; cpu += 2) {
			if (!next())
				break;
			check_int(item.domain.cpu, cpu);
			check_int(item.domain.domain, 0);
			check_str(item.domain.name, version == 17 ? "MC" : NULL);
			check_str(item.domain.mask, "3");
			check_str(item.domain.cpus, "0-1");
		}
		end();
	}
}

static void what_is_absent_or_of_another_form_is_told(void)
{
	start(false, 16, 0);
	hm_u32(&m.h, 0);
	open_it(0);
	check_int(tally_reader_item(r, &walk, &item), 0);
	walk = (struct tally_feature_walk){ .feature = TALLY_FEATURE_CACHE };
	check_int(tally_reader_item(r, &walk, &item), 0);
	walk.feature = TALLY_FEATURE_HOSTNAME;
	check_int(tally_reader_item(r, &walk, &item), -EOPNOTSUPP);
	walk.feature = 4000;
	check_int(tally_reader_item(r, &walk, &item), -EOPNOTSUPP);
	done();
}

/* ---- damage ---- */

/* Whatever the bytes: texts and bytes lie within the file's, and a walk ends. */
static void walk_all(size_t limit)
{
	for (uint32_t feature = 0; feature < 40; feature++) {
		struct tally_feature_walk w = { .feature = feature };
		size_t n = 0;
		while (tally_reader_item(r, &w, &item) > 0 && n <= limit)
			n++;
		check(n <= limit);
	}
}

static void any_bytes_end_a_walk(void)
{
	uint64_t dice = 88172645463325252u;

	for (int bit = 7; bit < 35; bit++) {
		for (int round = 0; round < 200; round++) {
			start(round & 1, bit, bit > 7 ? 3 : 0);
			for (int i = 0; i < 60; i++) {
				dice ^= dice << 13, dice ^= dice >> 7, dice ^= dice << 17;
				/* Small counts and lengths are the interesting ones. */
				hm_u32(&m.h, dice % 5 ? dice % 7 : dice);
			}
			open_it(bit > 7 ? 3 : 0);
			if (!r)
				continue;
			walk_all(m.h.len);
			done();
		}
	}
}

static void a_cut_list_is_told_up_to_the_cut(void)
{
	start(false, 16, 0);
	hm_u32(&m.h, UINT32_MAX);
	hm_u32(&m.h, 1);
	text("software");
	hm_u32(&m.h, 2);
	hm_u32(&m.h, 3);
	hm_bytes(&m.h, "abc", 3); /* no NUL */
	open_it(0);
	next();
	check_int(tally_reader_item(r, &walk, &item), -EBADMSG);
	check_int(tally_reader_item(r, &walk, &item), -EBADMSG);
	done();
}

int main(void)
{
	tap_run(numbers_are_read);
	tap_run(topologies_of_all_ages_are_read);
	tap_run(lists_are_read);
	tap_run(the_memory_of_nodes_is_read);
	tap_run(bpf_programs_are_read);
	tap_run(capabilities_are_read_with_their_pmu);
	tap_run(domains_are_read);
	tap_run(what_is_absent_or_of_another_form_is_told);
	tap_run(any_bytes_end_a_walk);
	tap_run(a_cut_list_is_told_up_to_the_cut);
	return tap_end();
}
