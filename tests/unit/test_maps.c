/* SPDX-License-Identifier: MIT */
/*
 * maps, space: what is mapped where and when. What is right follows from mmap(2), fork(2),
 * execve(2) and the records of perf_event_open(2).
 */
#include <errno.h>
#include <stdlib.h>
#include <tally/maps.h>

#include "image/space.h"
#include "tap.h"

static int map_at(struct tally_maps *m, int32_t pid, uint64_t time, uint64_t start, uint64_t end,
		  uint64_t pgoff, const char *path)
{
	struct tally_mapping map = { .start = start, .end = end, .pgoff = pgoff, .path = path };

	return tally_maps_add(m, pid, time, &map);
}

/* The path at an address, "" when nothing is mapped there. */
static const char *path_at(struct tally_maps *m, int32_t pid, uint64_t time, uint64_t address)
{
	struct tally_mapping map;
	int r = tally_maps_find(m, pid, time, address, &map);

	if (r <= 0)
		return r ? "error" : "";
	if (address < map.start || address >= map.end)
		return "outside";
	return map.path;
}

static void mapping_begins_at_its_time_and_place(void)
{
	struct tally_maps *m;
	require(tally_maps_new(&m) == 0);

	map_at(m, 7, 100, 0x1000, 0x3000, 0, "/a");
	check_str(path_at(m, 7, 99, 0x1000), "");
	check_str(path_at(m, 7, 100, 0xfff), "");
	check_str(path_at(m, 7, 100, 0x1000), "/a");
	check_str(path_at(m, 7, UINT64_MAX, 0x2fff), "/a");
	check_str(path_at(m, 7, 100, 0x3000), "");
	check_str(path_at(m, 8, 100, 0x1000), "");
	tally_maps_free(m);
	tally_maps_free(NULL);
}

static void everything_that_was_said_comes_back(void)
{
	static const uint8_t id[20] = { 1, 2, 3 };
	struct tally_mapping map = { .start = 1,
				     .end = UINT64_MAX,
				     .pgoff = 42,
				     .path = "/x",
				     .build_id = id,
				     .build_id_len = 20,
				     .inode = 5,
				     .dev_major = 6,
				     .dev_minor = 7 };
	struct tally_mapping out = { 0 };
	struct tally_maps *m;
	require(tally_maps_new(&m) == 0);

	check_int(tally_maps_add(m, 1, 0, &map), 0);
	map.build_id_len = 0;
	check_int(tally_maps_add(m, 2, 0, &map), 0);
	check_int(tally_maps_add(m, 3, 0, &map), 0);
	check_u64(tally_maps_paths(m), 2);
	check_int(tally_maps_find(m, 1, 0, 1, &out), 1);
	check_u64(out.start, 1);
	check_u64(out.end, UINT64_MAX);
	check_u64(out.pgoff, 42);
	check_str(out.path, "/x");
	check_u64(out.build_id_len, 20);
	check_mem(out.build_id, id, 20);
	check_u64(out.inode, 5);
	check_u64(out.dev_major, 6);
	check_u64(out.dev_minor, 7);
	struct tally_mapping two = { 0 }, three = { 0 };
	check_int(tally_maps_find(m, 2, 0, 1, &two), 1);
	check_int(tally_maps_find(m, 3, 0, UINT64_MAX - 1, &three), 1);
	check(two.path_id == three.path_id && two.path_id != out.path_id);
	check(two.build_id_len == 0 && two.path_id < 2 && out.path_id < 2);
	tally_maps_free(m);
}

static void empty_and_wrapping_ranges_are_refused(void)
{
	struct tally_maps *m;
	require(tally_maps_new(&m) == 0);

	check_int(map_at(m, 1, 0, 0x1000, 0x1000, 0, "/a"), -EINVAL);
	check_int(map_at(m, 1, 0, UINT64_MAX - 4095, 0, 0, "/a"), -EINVAL);
	check_int(map_at(m, 1, 0, 0, 1, 0, NULL), 0);
	check_str(path_at(m, 1, 0, 0), "");
	tally_maps_free(m);
}

/* mmap(2): "If the memory region ... overlaps pages of any existing mapping, then the overlapped
 * part of the existing mapping will be discarded." */
static void later_mapping_cuts_what_it_covers(void)
{
	struct tally_mapping map;
	struct tally_maps *m;
	require(tally_maps_new(&m) == 0);

	map_at(m, 1, 10, 0x10000, 0x20000, 0x5000, "/old");
	map_at(m, 1, 20, 0x14000, 0x16000, 0, "/new");
	check_int(tally_maps_find(m, 1, 15, 0x15000, &map), 1);
	check_str(map.path, "/old");
	check_u64(map.start, 0x10000);
	check_u64(map.end, 0x20000);

	check_int(tally_maps_find(m, 1, 20, 0x13fff, &map), 1);
	check_str(map.path, "/old");
	check_u64(map.start, 0x10000);
	check_u64(map.end, 0x14000);
	check_u64(map.pgoff, 0x5000);
	check_int(tally_maps_find(m, 1, 20, 0x15fff, &map), 1);
	check_str(map.path, "/new");
	check_u64(map.start, 0x14000);
	check_u64(map.end, 0x16000);
	check_int(tally_maps_find(m, 1, 20, 0x16000, &map), 1);
	check_str(map.path, "/old");
	check_u64(map.start, 0x16000);
	check_u64(map.end, 0x20000);
	check_u64(map.pgoff, 0xb000);

	map_at(m, 1, 30, 0x0, 0x100000, 0, "/all");
	check_str(path_at(m, 1, 30, 0x13000), "/all");
	check_str(path_at(m, 1, 30, 0x15000), "/all");
	check_str(path_at(m, 1, 29, 0x15000), "/new");
	tally_maps_free(m);
}

static void fork_copies_and_both_go_their_own_way(void)
{
	struct tally_maps *m;
	require(tally_maps_new(&m) == 0);

	map_at(m, 1, 10, 0x1000, 0x2000, 0, "/early");
	tally_maps_fork(m, 2, 2, 1, 1, 20);
	map_at(m, 1, 30, 0x5000, 0x6000, 0, "/parent");
	map_at(m, 2, 30, 0x7000, 0x8000, 0, "/child");
	tally_maps_fork(m, 3, 3, 2, 2, 40);
	check_str(path_at(m, 2, 19, 0x1000), "");
	check_str(path_at(m, 2, 20, 0x1000), "/early");
	check_str(path_at(m, 2, 50, 0x5000), "");
	check_str(path_at(m, 1, 50, 0x7000), "");
	check_str(path_at(m, 2, 50, 0x7000), "/child");
	check_str(path_at(m, 3, 50, 0x7000), "/child");
	check_str(path_at(m, 3, 50, 0x1000), "/early");
	tally_maps_free(m);
}

/* Parent and child in one nanosecond must not paint each other's address space. */
static void equal_times_do_not_mix_processes(void)
{
	struct tally_maps *m;
	require(tally_maps_new(&m) == 0);

	map_at(m, 1, 0, 0x1000, 0x2000, 0, "/a");
	tally_maps_fork(m, 2, 2, 1, 1, 0);
	map_at(m, 2, 0, 0x1000, 0x2000, 0, "/b");
	map_at(m, 1, 0, 0x3000, 0x4000, 0, "/c");
	tally_maps_fork(m, 3, 3, 1, 1, 0);
	map_at(m, 1, 0, 0x1000, 0x2000, 0, "/d");
	check_str(path_at(m, 1, 0, 0x1000), "/d");
	check_str(path_at(m, 2, 0, 0x1000), "/b");
	check_str(path_at(m, 2, 0, 0x3000), "");
	check_str(path_at(m, 3, 0, 0x1000), "/a");
	check_str(path_at(m, 3, 0, 0x3000), "/c");
	tally_maps_free(m);
}

static void exec_clears_the_process(void)
{
	struct tally_maps *m;
	require(tally_maps_new(&m) == 0);

	map_at(m, 1, 10, 0x1000, 0x2000, 0, "/a");
	tally_maps_comm(m, 1, 1, 20, "renamed", false);
	tally_maps_comm(m, 1, 1, 30, "other", true);
	map_at(m, 1, 31, 0x3000, 0x4000, 0, "/b");
	check_str(path_at(m, 1, 29, 0x1000), "/a");
	check_str(path_at(m, 1, 30, 0x1000), "");
	check_str(path_at(m, 1, 31, 0x3000), "/b");
	check_str(tally_maps_name(m, 1, 29), "renamed");
	check_str(tally_maps_name(m, 1, 30), "other");
	tally_maps_free(m);
}

static void names_are_inherited_and_change(void)
{
	struct tally_maps *m;
	require(tally_maps_new(&m) == 0);

	check_str(tally_maps_name(m, 1, 0), NULL);
	tally_maps_comm(m, 1, 1, 10, "main", false);
	tally_maps_fork(m, 1, 2, 1, 1, 20);
	tally_maps_fork(m, 1, 3, 1, 2, 25);
	tally_maps_comm(m, 1, 2, 30, "worker", false);
	tally_maps_comm(m, 1, 1, 40, "changed", false);
	check_str(tally_maps_name(m, 1, 9), NULL);
	check_str(tally_maps_name(m, 1, 10), "main");
	check_str(tally_maps_name(m, 2, 19), NULL);
	check_str(tally_maps_name(m, 2, 20), "main");
	check_str(tally_maps_name(m, 2, 30), "worker");
	check_str(tally_maps_name(m, 3, 100), "main");
	check_str(tally_maps_name(m, 1, 100), "changed");
	tally_maps_free(m);
}

static void a_number_is_used_again(void)
{
	struct tally_maps *m;
	require(tally_maps_new(&m) == 0);

	map_at(m, 1, 0, 0x9000, 0xa000, 0, "/shell");
	tally_maps_comm(m, 1, 1, 0, "sh", false);
	tally_maps_fork(m, 5, 5, 1, 1, 10);
	tally_maps_comm(m, 5, 5, 11, "first", true);
	map_at(m, 5, 12, 0x1000, 0x2000, 0, "/first");
	tally_maps_exit(m, 5, 5, 20);
	/* The kernel still runs on behalf of a thread that has sent its EXIT. */
	check_str(tally_maps_name(m, 5, 21), "first");
	tally_maps_fork(m, 5, 5, 1, 1, 30);
	check_str(path_at(m, 5, 19, 0x1000), "/first");
	check_str(path_at(m, 5, 30, 0x1000), "");
	check_str(path_at(m, 5, 30, 0x9000), "/shell");
	check_str(tally_maps_name(m, 5, 30), "sh");
	tally_maps_free(m);
}

static void kernel_is_in_every_process(void)
{
	struct tally_mapping map;
	struct tally_maps *m;
	require(tally_maps_new(&m) == 0);

	map_at(m, TALLY_MAPS_KERNEL, 0, 0xffffffff81000000, 0xffffffff82000000, 0xffffffff81000000,
	       "[kernel.kallsyms]_text");
	map_at(m, TALLY_MAPS_KERNEL, 50, 0xffffffffc0000000, 0xffffffffc0002000, 0, "[ext4]");
	map_at(m, 1, 0, 0x1000, 0x2000, 0, "/a");
	check_str(path_at(m, 1, 0, 0xffffffff81000010), "[kernel.kallsyms]_text");
	check_str(path_at(m, 99, 0, 0xffffffff81000010), "[kernel.kallsyms]_text");
	check_str(path_at(m, 1, 49, 0xffffffffc0001000), "");
	check_str(path_at(m, 1, 50, 0xffffffffc0001000), "[ext4]");
	check_str(path_at(m, TALLY_MAPS_KERNEL, 50, 0x1000), "");
	/* A kernel mapping's pgoff is an address and does not move with what is cut off. */
	map_at(m, TALLY_MAPS_KERNEL, 60, 0xffffffff81000000, 0xffffffff81001000, 0, "[early]");
	check_int(tally_maps_find(m, 1, 60, 0xffffffff81001000, &map), 1);
	check_u64(map.start, 0xffffffff81001000);
	check_u64(map.pgoff, 0xffffffff81000000);
	tally_maps_free(m);
}

/* A history of few events, each with its own time. */
static void tell(struct tally_maps *m, int event)
{
	switch (event) {
	case 0:
		map_at(m, 1, 10, 0x1000, 0x4000, 0, "/a");
		break;
	case 1:
		tally_maps_fork(m, 2, 2, 1, 1, 20);
		break;
	case 2:
		map_at(m, 2, 30, 0x2000, 0x3000, 0, "/b");
		break;
	case 3:
		tally_maps_comm(m, 1, 1, 40, "one", true);
		break;
	case 4:
		map_at(m, 1, 50, 0x1000, 0x2000, 0, "/c");
		break;
	default:
		tally_maps_fork(m, 2, 2, 1, 1, 60);
		break;
	}
}

#define EVENTS 6

static void check_history(struct tally_maps *m)
{
	check_str(path_at(m, 1, 9, 0x1000), "");
	check_str(path_at(m, 1, 10, 0x1000), "/a");
	check_str(path_at(m, 2, 19, 0x1000), "");
	check_str(path_at(m, 2, 20, 0x2000), "/a");
	check_str(path_at(m, 2, 30, 0x2000), "/b");
	check_str(path_at(m, 2, 59, 0x3000), "/a");
	check_str(path_at(m, 1, 39, 0x2000), "/a");
	check_str(path_at(m, 1, 40, 0x1000), "");
	check_str(path_at(m, 1, 50, 0x1000), "/c");
	check_str(path_at(m, 2, 60, 0x1000), "/c");
	check_str(path_at(m, 2, 60, 0x2000), "");
	check_str(tally_maps_name(m, 1, 39), NULL);
	check_str(tally_maps_name(m, 1, 40), "one");
	check_str(tally_maps_name(m, 2, 59), NULL);
	check_str(tally_maps_name(m, 2, 60), "one");
}

/* Tells the events in the order of a permutation; `ask` looks something up after each. */
static void try_order(const int *order, bool ask)
{
	struct tally_maps *m;
	require(tally_maps_new(&m) == 0);

	for (int i = 0; i < EVENTS; i++) {
		tell(m, order[i]);
		if (ask)
			path_at(m, 2, 100, 0x1000);
	}
	check_history(m);
	tally_maps_free(m);
}

static void permute(int *order, int from, bool ask)
{
	if (from == EVENTS)
		try_order(order, ask);
	for (int i = from; i < EVENTS; i++) {
		int first = order[from];
		order[from] = order[i];
		order[i] = first;
		permute(order, from + 1, ask);
		order[i] = order[from];
		order[from] = first;
	}
}

static void order_of_telling_does_not_matter(void)
{
	int order[EVENTS] = { 0, 1, 2, 3, 4, 5 };

	permute(order, 0, false);
}

static void asking_in_between_does_not_matter(void)
{
	int order[EVENTS] = { 0, 1, 2, 3, 4, 5 };

	permute(order, 0, true);
}

/* Against a model: an array of pages painted one by one. */
static void random_paints_agree_with_an_array(void)
{
	static uint32_t model[4096];
	struct spaces s = { 0 };
	space_t space = 0, old = 0;
	static uint32_t old_model[4096];
	uint32_t seed = 1;

	memset(model, 0, sizeof(model));
	for (uint32_t value = 1; value <= 3000; value++) {
		seed = seed * 1664525 + 1013904223;
		uint32_t a = seed >> 8 & 4095;
		seed = seed * 1664525 + 1013904223;
		uint32_t b = a + (seed >> 8 & 63);
		if (b > 4095)
			b = 4095;
		if (value == 1500) {
			old = space;
			memcpy(old_model, model, sizeof(model));
		}
		/* Before the copy is taken all nodes are its own; afterwards none is. */
		size_t owned = value < 1500 ? 0 : s.count;
		require(space_paint(&s, &space, owned, a, b, value));
		for (uint32_t i = a; i <= b; i++)
			model[i] = value;
	}
	for (uint32_t i = 0; i < 4096; i++) {
		struct space_block block = space_extent(&s, space, i);
		require(block.value == model[i]);
		require(block.first <= i && block.last >= i);
		require(block.first == 0 || model[block.first - 1] != model[i]);
		require(block.last >= 4095 || model[block.last + 1] != model[i]);
		require(space_look(&s, old, i).value == old_model[i]);
	}
	check_u64(space_extent(&s, space, UINT64_MAX).value, 0);
	check_u64(space_extent(&s, space, UINT64_MAX).last, UINT64_MAX);
	spaces_done(&s);
}

static void whole_space_can_be_painted(void)
{
	struct spaces s = { 0 };
	space_t space = 0;

	require(space_paint(&s, &space, 0, 0, UINT64_MAX, 3));
	check_u64(space_extent(&s, space, 0).last, UINT64_MAX);
	require(space_paint(&s, &space, 0, UINT64_MAX, UINT64_MAX, 4));
	check_u64(space_extent(&s, space, UINT64_MAX).value, 4);
	check_u64(space_extent(&s, space, UINT64_MAX).first, UINT64_MAX);
	check_u64(space_extent(&s, space, 0).last, UINT64_MAX - 1);
	spaces_done(&s);
}

#define MANY  100000
#define FORKS 20000

static void hundred_thousand_mappings(void)
{
	struct tally_maps *m;
	require(tally_maps_new(&m) == 0);

	for (uint64_t i = 0; i < MANY; i++)
		require(map_at(m, 1, i, i * 0x3000, i * 0x3000 + 0x1000, 0, "/a") == 0);
	for (uint64_t i = 0; i < MANY; i += 7) {
		require(!strcmp(path_at(m, 1, MANY, i * 0x3000 + 0xfff), "/a"));
		require(!strcmp(path_at(m, 1, i - 1, i * 0x3000), i ? "" : "/a"));
		require(!strcmp(path_at(m, 1, MANY, i * 0x3000 + 0x1000), ""));
	}
	tally_maps_free(m);
}

/* Were the mappings copied, this would be 2 * 10^9 of them. */
static void deep_fork_chain_of_a_full_process(void)
{
	struct tally_maps *m;
	require(tally_maps_new(&m) == 0);

	for (uint64_t i = 0; i < MANY; i++)
		require(map_at(m, 0, 0, i << 12, (i + 1) << 12, 0, i & 1 ? "/odd" : "/even") == 0);
	for (int32_t i = 1; i < FORKS; i++) {
		require(tally_maps_fork(m, i, i, i - 1, i - 1, (uint64_t)i) == 0);
		require(map_at(m, i, (uint64_t)i, (uint64_t)i << 12, (uint64_t)(i + 1) << 12, 0,
			       "/own") == 0);
	}
	check_str(path_at(m, FORKS - 1, MANY, 0x1000), "/own");
	check_str(path_at(m, FORKS - 1, MANY, (uint64_t)500 << 12), "/own");
	check_str(path_at(m, 499, MANY, (uint64_t)500 << 12), "/even");
	check_str(path_at(m, 499, MANY, (uint64_t)501 << 12), "/odd");
	tally_maps_free(m);
}

/* Overlaps of all kinds, all times alike, and look-ups that alternate with late events. */
static void piles_of_overlaps(void)
{
	struct tally_maps *m;
	require(tally_maps_new(&m) == 0);

	for (uint64_t i = 0; i < FORKS; i++)
		require(map_at(m, 1, 5, i, UINT64_MAX - i, 0, i + 1 < FORKS ? "/a" : "/last") == 0);
	check_str(path_at(m, 1, 5, FORKS), "/last");
	check_str(path_at(m, 1, 5, FORKS - 2), "/a");
	for (uint64_t i = 0; i < FORKS; i++) {
		require(map_at(m, 2, i, 0x1000, 0x2000, 0, "/b") == 0);
		require(!strcmp(path_at(m, 2, i, 0x1000), "/b"));
	}
	tally_maps_free(m);
}

int main(void)
{
	tap_run(mapping_begins_at_its_time_and_place);
	tap_run(everything_that_was_said_comes_back);
	tap_run(empty_and_wrapping_ranges_are_refused);
	tap_run(later_mapping_cuts_what_it_covers);
	tap_run(fork_copies_and_both_go_their_own_way);
	tap_run(equal_times_do_not_mix_processes);
	tap_run(exec_clears_the_process);
	tap_run(names_are_inherited_and_change);
	tap_run(a_number_is_used_again);
	tap_run(kernel_is_in_every_process);
	tap_run(order_of_telling_does_not_matter);
	tap_run(asking_in_between_does_not_matter);
	tap_run(random_paints_agree_with_an_array);
	tap_run(whole_space_can_be_painted);
	tap_run(hundred_thousand_mappings);
	tap_run(deep_fork_chain_of_a_full_process);
	tap_run(piles_of_overlaps);
	return tap_end();
}
