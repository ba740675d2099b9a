/* SPDX-License-Identifier: MIT */
/* The text report, by what perf report --stdio prints for the same samples, worked out by hand. */
#include <errno.h>

#include "tap.h"
#include "unit/by-hand.h"

static char *report_of(const struct tally_profile *p, const struct tally_query_opts *query,
		       const struct tally_text_opts *opts)
{
	struct output o;
	struct tally_error err = { 0 };

	if (tally_report_text(p, query, opts, output_open(&o), &err) < 0)
		fprintf(o.to, "failed: %s", err.text);
	return output_text(&o);
}

#define TABLE (TALLY_TEXT_NO_HEADER | TALLY_TEXT_NO_GRAPH)

static void check_report(const struct tally_profile *p, const struct tally_query_opts *query,
			 const struct tally_text_opts *opts, const char *want)
{
	char *text = report_of(p, query, opts);

	check_str(text, want);
	free(text);
}

/* 60 % in parse, of which lex has 45; 40 % in read, 30 of them in the kernel. */
static struct tally_profile *example(void)
{
	struct tally_profile *p = new_profile();

	add_stack(p, 0, 0, "main;parse;lex", 3, 45);
	add_stack(p, 0, 0, "main;parse", 1, 15);
	add_stack(p, 0, 0, "main;read@libc.so.6;sys_read@[kernel]", 2, 30);
	add_stack(p, 0, 0, "main;read@libc.so.6", 1, 10);
	return p;
}

static void the_whole_report(void)
{
	struct tally_profile *p = example();

	check_report(p, NULL, NULL,
		     "# Samples: 7 of event 'cpu-clock'\n"
		     "# Event count (approx.): 100 ns\n"
		     "#\n"
		     "# Children      Self  Command  Shared Object  Symbol\n"
		     "# ........  ........  .......  .............  ............\n"
		     "#\n"
		     "   100.00%     0.00%  work     work           [.] main\n"
		     "            |\n"
		     "            ---main\n"
		     "               |\n"
		     "               |--60.00%--parse\n"
		     "               |          |\n"
		     "               |           --45.00%--lex\n"
		     "               |\n"
		     "                --40.00%--read\n"
		     "                          |\n"
		     "                           --30.00%--sys_read\n"
		     "\n"
		     "    60.00%    15.00%  work     work           [.] parse\n"
		     "            |\n"
		     "            |--45.00%--parse\n"
		     "            |          lex\n"
		     "            |\n"
		     "             --15.00%--main\n"
		     "                       parse\n"
		     "\n"
		     "    45.00%    45.00%  work     work           [.] lex\n"
		     "            |\n"
		     "            ---main\n"
		     "               parse\n"
		     "               lex\n"
		     "\n"
		     "    40.00%    10.00%  work     libc.so.6      [.] read\n"
		     "            |\n"
		     "            |--30.00%--read\n"
		     "            |          sys_read\n"
		     "            |\n"
		     "             --10.00%--main\n"
		     "                       read\n"
		     "\n"
		     "    30.00%    30.00%  work     [kernel]       [k] sys_read\n"
		     "            |\n"
		     "            ---main\n"
		     "               read\n"
		     "               sys_read\n"
		     "\n");
	tally_profile_free(p);
}

static void without_children_callers_stand_below_the_function(void)
{
	struct tally_profile *p = example();

	check_report(p, TALLY_OPTS(query, .percent_limit = 40),
		     TALLY_OPTS(text, .flags = TALLY_TEXT_NO_CHILDREN | TALLY_TEXT_SAMPLES),
		     "# Samples: 7 of event 'cpu-clock'\n"
		     "# Event count (approx.): 100 ns\n"
		     "#\n"
		     "# Overhead       Samples  Command  Shared Object  Symbol\n"
		     "# ........  ............  .......  .............  .......\n"
		     "#\n"
		     "    45.00%             3  work     work           [.] lex\n"
		     "            |\n"
		     "            ---lex\n"
		     "               parse\n"
		     "               main\n"
		     "\n");
	tally_profile_free(p);
}

static void callers_can_come_first_without_children_too(void)
{
	struct tally_profile *p = new_profile();

	add_stack(p, 0, 0, "main;a;leaf", 1, 70);
	add_stack(p, 0, 0, "main;b;leaf", 1, 30);
	check_report(p, NULL,
		     TALLY_OPTS(text, .flags = TALLY_TEXT_NO_CHILDREN | TALLY_TEXT_CALLER |
					       TALLY_TEXT_NO_HEADER),
		     "   100.00%  work     work           [.] leaf\n"
		     "            |\n"
		     "            ---main\n"
		     "               |\n"
		     "               |--70.00%--a\n"
		     "               |          leaf\n"
		     "               |\n"
		     "                --30.00%--b\n"
		     "                          leaf\n"
		     "\n");
	tally_profile_free(p);
}

static void recursion_counts_once(void)
{
	struct tally_profile *p = new_profile();

	add_stack(p, 0, 0, "main;f;g;f;g;f", 1, 6);
	add_stack(p, 0, 0, "main;f", 1, 2);
	check_report(p, NULL, TALLY_OPTS(text, .flags = TABLE),
		     "   100.00%     0.00%  work     work           [.] main\n"
		     "   100.00%   100.00%  work     work           [.] f\n"
		     "    75.00%     0.00%  work     work           [.] g\n");
	/* Up from the innermost call: the outer calls of f are callers like others. */
	check_report(p, TALLY_OPTS(query, .percent_limit = 80),
		     TALLY_OPTS(text, .flags = TALLY_TEXT_NO_HEADER | TALLY_TEXT_CALLEE),
		     "   100.00%     0.00%  work     work           [.] main\n"
		     "   100.00%   100.00%  work     work           [.] f\n"
		     "            |\n"
		     "            ---f\n"
		     "               |\n"
		     "               |--75.00%--g\n"
		     "               |          f\n"
		     "               |          g\n"
		     "               |          f\n"
		     "               |          main\n"
		     "               |\n"
		     "                --25.00%--main\n"
		     "\n");
	tally_profile_free(p);
}

static void percentages_stay_those_of_all_samples(void)
{
	struct tally_profile *p = example();

	check_report(p, TALLY_OPTS(query, .dso = "[kernel]"), TALLY_OPTS(text, .flags = TABLE),
		     "    30.00%     0.00%  work     work           [.] main\n"
		     "    30.00%     0.00%  work     libc.so.6      [.] read\n"
		     "    30.00%    30.00%  work     [kernel]       [k] sys_read\n");
	tally_profile_free(p);
}

static void lines_are_told_apart_by_the_sort_keys(void)
{
	struct tally_profile *p = example();
	int twin = tally_profile_thread(p, 7, 8, "work");

	add_stack(p, 0, twin, "main", 1, 100);
	check_report(p, TALLY_OPTS(query, .sort = "dso"), TALLY_OPTS(text, .flags = TABLE),
		     "   100.00%    80.00%  work\n"
		     "    20.00%     5.00%  libc.so.6\n"
		     "    15.00%    15.00%  [kernel]\n");
	check_report(p, TALLY_OPTS(query, .sort = "tid,comm"), TALLY_OPTS(text, .flags = TABLE),
		     "    50.00%    50.00%  7    work\n"
		     "    50.00%    50.00%  8    work\n");
	check_report(p, TALLY_OPTS(query, .sort = "pid"), TALLY_OPTS(text, .flags = TABLE),
		     "   100.00%   100.00%  7\n");
	tally_profile_free(p);
}

static void equal_names_in_two_modules_are_one_symbol_but_two_lines(void)
{
	struct tally_profile *p = new_profile();

	add_stack(p, 0, 0, "init@liba.so", 1, 60);
	add_stack(p, 0, 0, "init@libb.so", 1, 40);
	check_report(p, TALLY_OPTS(query, .sort = "symbol"), TALLY_OPTS(text, .flags = TABLE),
		     "   100.00%   100.00%  [.] init\n");
	check_report(p, TALLY_OPTS(query, .sort = "dso,symbol"), TALLY_OPTS(text, .flags = TABLE),
		     "    60.00%    60.00%  liba.so        [.] init\n"
		     "    40.00%    40.00%  libb.so        [.] init\n");
	tally_profile_free(p);
}

static void what_has_no_symbol_is_shown_by_its_address(void)
{
	struct tally_profile *p = new_profile();
	int m = tally_profile_module(p, "libz.so.1", NULL, NULL, 0);
	int f = tally_profile_function(p, m, NULL, TALLY_MODE_USER);

	for (uint64_t i = 1; i <= 2; i++) {
		int s = tally_profile_stack(p, -1, tally_profile_location(p, f, 0x1000 * i));
		tally_profile_add(p, 0, 0, s, 1, i);
	}
	check_report(p, NULL, TALLY_OPTS(text, .flags = TABLE),
		     "    66.67%    66.67%  work     libz.so.1      [.] 0x0000000000002000\n"
		     "    33.33%    33.33%  work     libz.so.1      [.] 0x0000000000001000\n");
	check_report(p, TALLY_OPTS(query, .sort = "dso"), TALLY_OPTS(text, .flags = TABLE),
		     "   100.00%   100.00%  libz.so.1\n");
	check_report(p, TALLY_OPTS(query, .symbol = "[libz.so.1]", .sort = "comm"),
		     TALLY_OPTS(text, .flags = TABLE), "   100.00%   100.00%  work\n");
	tally_profile_free(p);
}

static void branches_below_the_limit_are_left_out(void)
{
	struct tally_profile *p = new_profile();
	uint32_t flags = TALLY_TEXT_NO_HEADER;

	add_stack(p, 0, 0, "main;rare", 1, 4);
	add_stack(p, 0, 0, "main;often", 1, 996);
	check_report(p, TALLY_OPTS(query, .percent_limit = 99.7), TALLY_OPTS(text, .flags = flags),
		     "   100.00%     0.00%  work     work           [.] main\n"
		     "            |\n"
		     "            ---main\n"
		     "               |\n"
		     "                --99.60%--often\n"
		     "\n");
	check_report(p, TALLY_OPTS(query, .percent_limit = 99.7),
		     TALLY_OPTS(text, .flags = flags, .graph_limit = 0.1),
		     "   100.00%     0.00%  work     work           [.] main\n"
		     "            |\n"
		     "            ---main\n"
		     "               |\n"
		     "               |--99.60%--often\n"
		     "               |\n"
		     "                --0.40%--rare\n"
		     "\n");
	tally_profile_free(p);
}

static void rows_and_columns_can_be_limited(void)
{
	struct tally_profile *p = new_profile();

	add_stack(p, 0, 0, "a_rather_long_name_of_a_function", 1, 2);
	add_stack(p, 0, 0, "other", 1, 1);
	check_report(p, NULL, TALLY_OPTS(text, .flags = TABLE, .lines = 1, .width = 60),
		     "    66.67%    66.67%  work     work           [.] a_rather_~\n");
	tally_profile_free(p);
}

static void names_cannot_reach_the_terminal(void)
{
	struct tally_profile *p = new_profile();
	int m = tally_profile_module(p, "work", NULL, NULL, 0);
	/* An escape sequence, a C1 control, a bidirectional override, a broken and a good letter. */
	int f = tally_profile_function(p, m, "\033[2J\xc2\x9b\xe2\x80\xae\xff\xc3\xa9", 2);
	int s = tally_profile_stack(p, -1, tally_profile_location(p, f, 0));

	tally_profile_add(p, 0, 0, s, 1, 1);
	check_report(p, NULL, TALLY_OPTS(text, .flags = TABLE),
		     "   100.00%   100.00%  work     work           [.] ?[2J???\xc3\xa9\n");
	tally_profile_free(p);
}

static void colours_are_only_those_that_were_asked_for(void)
{
	struct tally_profile *p = example();
	char *plain = report_of(p, NULL, NULL);
	char *colored = report_of(p, NULL, TALLY_OPTS(text, .flags = TALLY_TEXT_COLOR));

	check(!strchr(plain, '\033'));
	check_has(colored, "\033[31m   100.00%\033[0m     0.00%");
	free(plain);
	free(colored);
	tally_profile_free(p);
}

static void what_cannot_be_shown_is_refused(void)
{
	struct tally_profile *p = new_profile();
	struct tally_error err = { 0 };

	check_int(tally_report_text(p, NULL, NULL, stdout, &err), -ENODATA);
	add_stack(p, 0, 0, "main", 1, 1);
	check_int(tally_report_text(
			  p, NULL, TALLY_OPTS(text, .flags = TALLY_TEXT_CALLER | TALLY_TEXT_CALLEE),
			  stdout, &err),
		  -EINVAL);
	check_int(tally_report_text(p, TALLY_OPTS(query, .event = "cycles"), NULL, stdout, &err),
		  -ENOENT);
	tally_profile_free(p);
}

int main(void)
{
	tap_run(the_whole_report);
	tap_run(without_children_callers_stand_below_the_function);
	tap_run(callers_can_come_first_without_children_too);
	tap_run(recursion_counts_once);
	tap_run(percentages_stay_those_of_all_samples);
	tap_run(lines_are_told_apart_by_the_sort_keys);
	tap_run(equal_names_in_two_modules_are_one_symbol_but_two_lines);
	tap_run(what_has_no_symbol_is_shown_by_its_address);
	tap_run(branches_below_the_limit_are_left_out);
	tap_run(rows_and_columns_can_be_limited);
	tap_run(names_cannot_reach_the_terminal);
	tap_run(colours_are_only_those_that_were_asked_for);
	tap_run(what_cannot_be_shown_is_refused);
	return tap_end();
}
