/* SPDX-License-Identifier: MIT */
/* Folded stacks, by the rules that flamegraph.pl and stackcollapse-perf.pl set. */
#include <errno.h>

#include "tap.h"
#include "unit/by-hand.h"

static char *folded(const struct tally_profile *p, const struct tally_query_opts *query)
{
	struct output o;

	if (tally_report_folded(p, query, output_open(&o), NULL) < 0)
		fputs("failed", o.to);
	return output_text(&o);
}

static void a_line_is_a_stack_with_its_own_weight(void)
{
	struct tally_profile *p = new_profile();

	add_stack(p, 0, 0, "main;parse;lex", 1, 30);
	add_stack(p, 0, 0, "main;parse", 1, 20);
	add_stack(p, 0, 0, "main;parse;lex", 1, 5);
	char *text = folded(p, NULL);
	check_str(text, "work;main;parse 20\n"
			"work;main;parse;lex 35\n");
	free(text);
	text = folded(p, TALLY_OPTS(query, .flags = TALLY_QUERY_BY_SAMPLES));
	check_str(text, "work;main;parse 1\n"
			"work;main;parse;lex 2\n");
	free(text);
	tally_profile_free(p);
}

static void names_cannot_break_a_line(void)
{
	struct tally_profile *p = new_profile();
	int thread = tally_profile_thread(p, 8, 8, "a b;c");

	add_stack(p, 0, thread, "f(int, char)\n;\x01g\xff", 1, 1);
	int f = tally_profile_function(p, 0, "x;y z", TALLY_MODE_USER);
	int s = tally_profile_stack(p, -1, tally_profile_location(p, f, 0));
	tally_profile_add(p, 0, thread, s, 1, 3);
	char *text = folded(p, NULL);
	check_str(text, "a_b:c;f(int,_char)_;_g? 1\n"
			"a_b:c;x:y_z 3\n");
	free(text);
	tally_profile_free(p);
}

static void kernel_frames_are_marked(void)
{
	struct tally_profile *p = new_profile();

	add_stack(p, 0, 0, "main;do_read@[kernel]", 1, 1);
	add_stack(p, 0, 0, "main;?@[kernel]", 1, 2);
	char *text = folded(p, NULL);
	check_str(text, "work;main;[kernel]_[k] 2\n"
			"work;main;do_read_[k] 1\n");
	free(text);
	tally_profile_free(p);
}

static void threads_of_one_name_are_one_stack(void)
{
	struct tally_profile *p = new_profile();
	int twin = tally_profile_thread(p, 7, 8, "work");

	add_stack(p, 0, 0, "main", 1, 1);
	add_stack(p, 0, twin, "main", 1, 2);
	char *text = folded(p, NULL);
	check_str(text, "work;main 3\n");
	free(text);
	text = folded(p, TALLY_OPTS(query, .tid = "8"));
	check_str(text, "work;main 2\n");
	free(text);
	tally_profile_free(p);
}

static void the_order_does_not_depend_on_that_of_the_samples(void)
{
	static const char *const stacks[] = { "main;b", "main;a;c", "main;a", "init", "main;b;a" };
	struct tally_profile *p = new_profile(), *q = new_profile();

	for (int i = 0; i < 5; i++) {
		add_stack(p, 0, 0, stacks[i], 1, 1);
		add_stack(q, 0, 0, stacks[4 - i], 1, 1);
	}
	char *one = folded(p, NULL), *two = folded(q, NULL);
	check_str(one, two);
	check_str(one,
		  "work;init 1\nwork;main;a 1\nwork;main;a;c 1\nwork;main;b 1\nwork;main;b;a 1\n");
	free(one);
	free(two);
	tally_profile_free(p);
	tally_profile_free(q);
}

static void addresses_of_one_function_are_one_frame(void)
{
	struct tally_profile *p = new_profile();

	add_stack(p, 0, 0, "main", 1, 1);
	int s = tally_profile_stack(p, -1, tally_profile_location(p, 0, 0x42));
	tally_profile_add(p, 0, 0, s, 1, 2);
	char *text = folded(p, NULL);
	check_str(text, "work;main 3\n");
	free(text);
	tally_profile_free(p);
}

static void a_full_disk_is_an_error(void)
{
	struct tally_profile *p = new_profile();
	struct tally_error err = { 0 };
	FILE *full = fopen("/dev/full", "w");

	if (!full)
		tap_skip("no /dev/full here");
	add_stack(p, 0, 0, "main", 1, 1);
	check_int(tally_report_folded(p, NULL, full, &err), -EIO);
	check_has(err.text, "No space left");
	fclose(full);
	tally_profile_free(p);
}

static void a_very_deep_stack_is_walked_without_recursion(void)
{
	struct tally_profile *p = new_profile();
	int m = tally_profile_module(p, "m", NULL, NULL, 0), stack = -1;
	int f = tally_profile_function(p, m, "f", TALLY_MODE_USER);
	int l = tally_profile_location(p, f, 0);

	for (int i = 0; i < 200000; i++)
		stack = tally_profile_stack(p, stack, l);
	tally_profile_add(p, 0, 0, stack, 1, 1);
	char *text = folded(p, NULL);
	check_int(strlen(text), strlen("work") + 200000 * 2 + strlen(" 1\n"));
	free(text);
	tally_profile_free(p);
}

int main(void)
{
	tap_run(a_line_is_a_stack_with_its_own_weight);
	tap_run(names_cannot_break_a_line);
	tap_run(kernel_frames_are_marked);
	tap_run(threads_of_one_name_are_one_stack);
	tap_run(the_order_does_not_depend_on_that_of_the_samples);
	tap_run(addresses_of_one_function_are_one_frame);
	tap_run(a_full_disk_is_an_error);
	tap_run(a_very_deep_stack_is_walked_without_recursion);
	return tap_end();
}
