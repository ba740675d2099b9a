/* SPDX-License-Identifier: MIT */
/* Flame graphs as text: where frames stand, what they say, that nothing breaks the markup. The
 * command's test reads them with an XML parser. */
#include <errno.h>

#include "tap.h"
#include "unit/by-hand.h"

static char *flame(const struct tally_profile *p, const struct tally_query_opts *query,
		   const struct tally_flame_opts *opts)
{
	struct output o;
	struct tally_error err = { 0 };

	if (tally_report_flame(p, query, opts, output_open(&o), &err) < 0)
		fprintf(o.to, "failed: %s", err.text);
	return output_text(&o);
}

struct box {
	double x, width;
	unsigned y;
	bool found;
};

/* The rect of the n-th frame (from 0) whose title begins with `title`. */
static struct box box_of(const char *svg, const char *title, int n)
{
	char what[128];
	struct box box = { 0 };

	snprintf(what, sizeof(what), "<title>%s", title);
	const char *at = strstr(svg, "<svg id=\"frames\"");
	while (at && (at = strstr(at, what)) != NULL && n--)
		at++;
	at = at ? strstr(at, "<rect ") : NULL;
	if (at && sscanf(at, "<rect x=\"%lf%%\" y=\"%u\" width=\"%lf%%\"", &box.x, &box.y,
			 &box.width) == 3)
		box.found = true;
	return box;
}

static void check_box(const char *svg, const char *title, double x, double width)
{
	struct box box = box_of(svg, title, 0);

	check(box.found);
	check(box.x > x - 1e-4 && box.x < x + 1e-4);
	check(box.width > width - 1e-4 && box.width < width + 1e-4);
	if (box.x < x - 1e-4 || box.x > x + 1e-4 || box.width < width - 1e-4)
		printf("# %s: %f %f\n", title, box.x, box.width);
}

static void widths_are_shares_and_siblings_stand_by_name(void)
{
	struct tally_profile *p = new_profile();

	add_stack(p, 0, 0, "main;write", 1, 30);
	add_stack(p, 0, 0, "main;parse;lex", 1, 20);
	add_stack(p, 0, 0, "main;parse", 2, 10);
	add_stack(p, 0, 0, "main", 1, 40);
	char *svg = flame(p, NULL, NULL);
	check_box(svg, "all (5 samples, 100.00%)", 0, 100);
	check_box(svg, "work (5 samples, 100.00%)", 0, 100);
	check_box(svg, "main (5 samples, 100.00%)", 0, 100);
	check_box(svg, "parse (3 samples, 30.00%)", 0, 30);
	check_box(svg, "lex (1 sample, 20.00%)", 0, 20);
	check_box(svg, "write (1 sample, 30.00%)", 30, 30);
	check(box_of(svg, "lex", 0).y < box_of(svg, "parse", 0).y);
	check(box_of(svg, "parse", 0).y == box_of(svg, "write", 0).y);
	check(box_of(svg, "main", 0).y < box_of(svg, "work", 0).y);
	free(svg);
	tally_profile_free(p);
}

static void recursion_is_a_tower(void)
{
	struct tally_profile *p = new_profile();

	add_stack(p, 0, 0, "f;f;f", 1, 1);
	char *svg = flame(p, NULL, NULL);
	check(box_of(svg, "f (", 0).y > box_of(svg, "f (", 1).y);
	check(box_of(svg, "f (", 1).y > box_of(svg, "f (", 2).y);
	check(!box_of(svg, "f (", 3).found);
	free(svg);
	tally_profile_free(p);
}

static void what_has_no_symbol_is_no_tower(void)
{
	struct tally_profile *p = new_profile();

	add_stack(p, 0, 0, "?@[unknown];?@[unknown];?@libz.so.1;?@libz.so.1;f", 1, 1);
	add_stack(p, 0, 0, "?@[unknown]", 1, 1);
	add_stack(p, 0, 0, "?@[unknown];?@[unknown]", 1, 2);
	char *svg = flame(p, NULL, NULL);
	check_box(svg, "[unknown] (3 samples, 100.00%)", 0, 100);
	check(!box_of(svg, "[unknown]", 1).found);
	check_box(svg, "[libz.so.1] (1 sample, 25.00%)", 0, 25);
	check(!box_of(svg, "[libz.so.1]", 1).found);
	check_box(svg, "f (1 sample, 25.00%)", 0, 25);
	free(svg);
	tally_profile_free(p);
}

static void percentages_are_of_what_passes_the_filters(void)
{
	struct tally_profile *p = new_profile();
	int other = tally_profile_thread(p, 9, 9, "other");

	add_stack(p, 0, 0, "main", 1, 90);
	add_stack(p, 0, other, "main", 1, 10);
	char *svg = flame(p, TALLY_OPTS(query, .comm = "other"), NULL);
	check_box(svg, "other (1 sample, 100.00%)", 0, 100);
	check(!box_of(svg, "work", 0).found);
	free(svg);
	tally_profile_free(p);
}

static void names_are_escaped_and_valid(void)
{
	struct tally_profile *p = new_profile();
	int m = tally_profile_module(p, "a\"b&c", NULL, NULL, 0);
	int f = tally_profile_function(p, m, "f<int>(char&)\x01\xff\xef\xbf\xbf]]>", 2);
	int s = tally_profile_stack(p, -1, tally_profile_location(p, f, 0));

	tally_profile_add(p, 0, 0, s, 1, 1);
	char *svg = flame(p, NULL, TALLY_OPTS(flame, .title = "<&>", .subtitle = "\"'"));
	check_has(svg,
		  "<title>f&lt;int&gt;(char&amp;)\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd]]&gt; (1 "
		  "sample, 100.00%)</title>");
	check_has(svg, "data-dso=\"a&quot;b&amp;c\"");
	check_has(svg, ">&lt;&amp;&gt;</text>");
	check_has(svg, ">&quot;&#39;</text>");
	free(svg);
	tally_profile_free(p);
}

static void labels_fit_their_frames(void)
{
	struct tally_profile *p = new_profile();

	add_stack(p, 0, 0, "a_name_that_is_too_long_for_its_frame", 1, 1);
	add_stack(p, 0, 0, "wide", 1, 19);
	char *svg = flame(p, NULL, NULL);
	/* A twentieth of 1180 pixels, less 6, holds 7 characters of 7.23 pixels. */
	check_has(svg, ">a_nam..</text>");
	check_has(svg, ">wide</text>");
	free(svg);
	tally_profile_free(p);
}

static void what_is_too_narrow_to_see_is_left_out(void)
{
	struct tally_profile *p = new_profile();

	add_stack(p, 0, 0, "main;narrow;deep", 1, 1);
	add_stack(p, 0, 0, "main;wide", 1, 20000);
	char *svg = flame(p, NULL, NULL);
	check(!box_of(svg, "narrow", 0).found);
	check(!box_of(svg, "deep", 0).found);
	check_int(box_of(svg, "wide", 0).y, 0);
	free(svg);
	svg = flame(p, NULL, TALLY_OPTS(flame, .min_width = 0.01));
	check(box_of(svg, "deep", 0).found);
	free(svg);
	tally_profile_free(p);
}

static void the_same_samples_give_the_same_picture(void)
{
	struct tally_profile *p = new_profile(), *q = new_profile();

	add_stack(p, 0, 0, "main;a", 1, 1);
	add_stack(p, 0, 0, "main;b", 1, 2);
	add_stack(q, 0, 0, "main;b", 1, 2);
	add_stack(q, 0, 0, "main;a", 1, 1);
	char *one = flame(p, NULL, NULL), *two = flame(q, NULL, NULL);
	check_str(one, two);
	free(one);
	free(two);
	tally_profile_free(p);
	tally_profile_free(q);
}

static void the_width_is_fixed_when_it_is_given(void)
{
	struct tally_profile *p = new_profile();
	struct tally_error err = { 0 };

	add_stack(p, 0, 0, "main", 1, 1);
	char *svg = flame(p, NULL, TALLY_OPTS(flame, .width = 800));
	check_has(svg, "<svg version=\"1.1\" width=\"800\"");
	check(!strstr(svg, "data-fluid=\""));
	free(svg);
	svg = flame(p, NULL, NULL);
	check_has(svg, "data-fluid=\"\"");
	free(svg);
	check_int(tally_report_flame(p, NULL, TALLY_OPTS(flame, .width = 10), stdout, &err),
		  -EINVAL);
	tally_profile_free(p);
}

static void nothing_is_asked_from_the_network(void)
{
	struct tally_profile *p = new_profile();

	add_stack(p, 0, 0, "main", 1, 1);
	char *svg = flame(p, NULL, NULL);
	for (const char *at = svg; (at = strstr(at, "http")) != NULL; at++)
		check(!strncmp(at, "http://www.w3.org/2000/svg\"", 27) ||
		      !strncmp(at, "http://www.w3.org/1999/xhtml\"", 29));
	check(!strstr(svg, "@import") && !strstr(svg, "href") && !strstr(svg, "url("));
	free(svg);
	tally_profile_free(p);
}

static void a_picture_of_nothing_is_an_error(void)
{
	struct tally_profile *p = new_profile();
	struct tally_error err = { 0 };

	check_int(tally_report_flame(p, NULL, NULL, stdout, &err), -ENODATA);
	check_has(err.text, "cpu-clock");
	tally_profile_free(p);
}

int main(void)
{
	tap_run(widths_are_shares_and_siblings_stand_by_name);
	tap_run(recursion_is_a_tower);
	tap_run(what_has_no_symbol_is_no_tower);
	tap_run(percentages_are_of_what_passes_the_filters);
	tap_run(names_are_escaped_and_valid);
	tap_run(labels_fit_their_frames);
	tap_run(what_is_too_narrow_to_see_is_left_out);
	tap_run(the_same_samples_give_the_same_picture);
	tap_run(the_width_is_fixed_when_it_is_given);
	tap_run(nothing_is_asked_from_the_network);
	tap_run(a_picture_of_nothing_is_an_error);
	return tap_end();
}
