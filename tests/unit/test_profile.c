/* SPDX-License-Identifier: MIT */
/* Profiles: equal content has an equal index, sums are right, indices are checked. */
#include <errno.h>

#include "tap.h"
#include "unit/by-hand.h"

static void equal_content_has_an_equal_index(void)
{
	static const uint8_t id[20] = { 1 }, other_id[20] = { 2 };
	struct tally_profile *p = new_profile();

	int m = tally_profile_module(p, "libc.so.6", "/lib/libc.so.6", id, 20);
	check_int(tally_profile_module(p, "libc.so.6", "/lib/libc.so.6", id, 20), m);
	check(tally_profile_module(p, "libc.so.6", "/lib/libc.so.6", other_id, 20) != m);
	check(tally_profile_module(p, "libc.so.6", "/opt/libc.so.6", id, 20) != m);

	int f = tally_profile_function(p, m, "read", TALLY_MODE_USER);
	check_int(tally_profile_function(p, m, "read", TALLY_MODE_USER), f);
	check(tally_profile_function(p, m, "read", TALLY_MODE_KERNEL) != f);
	check(tally_profile_function(p, m, "write", TALLY_MODE_USER) != f);

	int l = tally_profile_location(p, f, 0x1000);
	check_int(tally_profile_location(p, f, 0x1000), l);
	check(tally_profile_location(p, f, 0x1001) != l);

	int s = tally_profile_stack(p, -1, l);
	check_int(tally_profile_stack(p, -1, l), s);
	int deeper = tally_profile_stack(p, s, l);
	check(deeper != s);
	check_int(tally_profile_stack(p, s, l), deeper);
	tally_profile_free(p);
}

static void a_thread_has_an_index_for_each_of_its_names(void)
{
	struct tally_profile *p = new_profile();
	struct tally_profile_thread_info info;

	check_int(tally_profile_thread(p, 7, 7, "work"), 0);
	check_int(tally_profile_thread(p, 7, 7, "renamed"), 1);
	check_int(tally_profile_thread(p, 7, 8, "work"), 2);
	check_int(tally_profile_threads(p), 3);
	require(tally_profile_thread_info(p, 2, &info) == 0);
	check_str(info.comm, "work");
	check_int(info.pid, 7);
	check_int(info.tid, 8);
	tally_profile_free(p);
}

static void rows_sum_up_and_saturate(void)
{
	struct tally_profile *p = new_profile();
	struct tally_profile_row row;

	check_int(add_stack(p, 0, 0, "main;parse", 2, 10), 0);
	check_int(add_stack(p, 0, 0, "main;parse", 3, 5), 0);
	check_int(add_stack(p, 0, 0, "main", 1, UINT64_MAX), 0);
	check_int(add_stack(p, 0, 0, "main", 1, 1), 0);
	check_int(tally_profile_rows(p), 2);
	require(tally_profile_row(p, 0, &row) == 0);
	check_u64(row.samples, 5);
	check_u64(row.weight, 15);
	require(tally_profile_row(p, 1, &row) == 0);
	check_u64(row.samples, 2);
	check_u64(row.weight, UINT64_MAX);
	tally_profile_free(p);
}

static void what_has_no_symbol_is_called_by_its_module(void)
{
	struct tally_profile *p = new_profile();
	struct tally_profile_function_info info;

	add_stack(p, 0, 0, "?@libc.so.6;?@[vdso]", 1, 1);
	require(tally_profile_function_info(p, 0, &info) == 0);
	check_str(info.name, NULL);
	check_str(info.label, "[libc.so.6]");
	check_str(info.module, "libc.so.6");
	require(tally_profile_function_info(p, 1, &info) == 0);
	check_str(info.label, "[vdso]");
	tally_profile_free(p);
}

static void stacks_lead_to_their_callers(void)
{
	struct tally_profile *p = new_profile();
	struct tally_profile_function_info info;
	int32_t parent, function;
	uint64_t address;

	add_stack(p, 0, 0, "main;parse", 1, 1);
	check_int(tally_profile_stacks(p), 2);
	require(tally_profile_stack_info(p, 1, &parent, &function, &address) == 0);
	check_int(parent, 0);
	tally_profile_function_info(p, (uint32_t)function, &info);
	check_str(info.name, "parse");
	require(tally_profile_stack_info(p, 0, &parent, &function, &address) == 0);
	check_int(parent, -1);
	tally_profile_free(p);
}

static void indices_beyond_the_end_are_refused(void)
{
	struct tally_profile *p = new_profile();
	struct tally_profile_function_info function;
	struct tally_profile_thread_info thread;
	struct tally_profile_row row;
	static const uint8_t id[21];
	int32_t a, b;
	uint64_t c;

	check_int(tally_profile_module(p, "m", NULL, id, 21), -EINVAL);
	check_int(tally_profile_function(p, 0, "f", 0), -EINVAL);
	check_int(tally_profile_function(p, -1, "f", 0), -EINVAL);
	check_int(tally_profile_location(p, 0, 0), -EINVAL);
	check_int(tally_profile_stack(p, -1, 0), -EINVAL);
	add_stack(p, 0, 0, "main", 1, 1);
	check_int(tally_profile_stack(p, -2, 0), -EINVAL);
	check_int(tally_profile_stack(p, 1, 0), -EINVAL);
	check_int(tally_profile_add(p, 1, 0, 0, 1, 1), -EINVAL);
	check_int(tally_profile_add(p, 0, 1, 0, 1, 1), -EINVAL);
	check_int(tally_profile_add(p, 0, 0, -1, 1, 1), -EINVAL);
	check_int(tally_profile_function_info(p, 1, &function), -EINVAL);
	check_int(tally_profile_thread_info(p, 1, &thread), -EINVAL);
	check_int(tally_profile_row(p, 1, &row), -EINVAL);
	check_int(tally_profile_stack_info(p, 1, &a, &b, &c), -EINVAL);
	check_str(tally_profile_event_name(p, 1), NULL);
	check_str(tally_profile_event_unit(p, 1), NULL);
	tally_profile_free(p);
}

static void many_of_all_are_found_again(void)
{
	struct tally_profile *p = new_profile();
	int m = tally_profile_module(p, "m", NULL, NULL, 0), stack = -1;

	for (int round = 0; round < 2; round++) {
		stack = -1;
		for (int i = 0; i < 20000; i++) {
			char name[16];
			snprintf(name, sizeof(name), "f%d", i);
			int f = tally_profile_function(p, m, name, TALLY_MODE_USER);
			int l = tally_profile_location(p, f, (uint64_t)i << 40);
			int s = tally_profile_stack(p, stack, l);
			if (f != i || l != i || s != i) {
				check(f == i && l == i && s == i);
				break;
			}
			stack = s;
		}
	}
	check_int(tally_profile_stacks(p), 20000);
	tally_profile_free(p);
}

int main(void)
{
	tap_run(equal_content_has_an_equal_index);
	tap_run(a_thread_has_an_index_for_each_of_its_names);
	tap_run(rows_sum_up_and_saturate);
	tap_run(what_has_no_symbol_is_called_by_its_module);
	tap_run(stacks_lead_to_their_callers);
	tap_run(indices_beyond_the_end_are_refused);
	tap_run(many_of_all_are_found_again);
	return tap_end();
}
