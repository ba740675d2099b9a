/* SPDX-License-Identifier: MIT */
/*
 * compare: the shift of two series, and its interval. The critical values are those of the published
 * tables of Mann and Whitney's U, two-sided, 5 %; the interval begins one difference behind them.
 */
#include <errno.h>
#include <stdlib.h>

#include "../../cli/compare.h"
#include "tap.h"

/* The largest U that is significant, for n = m; -1: none is. */
static const struct {
	size_t n;
	int u;
} critical[] = {
	{ 2, -1 }, { 3, -1 }, { 4, 0 },   { 5, 2 },   { 6, 5 },   { 7, 8 },
	{ 8, 13 }, { 9, 17 }, { 10, 23 }, { 12, 37 }, { 15, 64 }, { 20, 127 },
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Series whose differences are all different: b[j] - a[i] = n * j - i + 1000. */
static void check_interval(size_t n, int u)
{
	double *a = calloc(n, sizeof(*a)), *b = calloc(n, sizeof(*b));
	double *all = calloc(n * n, sizeof(*all));
	struct comparison c;

	require(a && b && all);
	for (size_t i = 0; i < n; i++) {
		a[i] = (double)i;
		b[i] = (double)(n * i + 1000);
		for (size_t j = 0; j < n; j++)
			all[i * n + j] = (double)(n * j + 1000) - (double)i;
	}
	qsort(all, n * n, sizeof(*all), by_value);
	check_int(compare(&c, a, n, b, n), 0);
	if (u < 0) {
		check_int(c.verdict, COMPARE_UNKNOWN);
	} else {
		check_int(c.verdict, COMPARE_MORE);
		check(c.low == all[u]);
		check(c.high == all[n * n - 1 - (size_t)u]);
	}
	check(c.shift == (all[(n * n - 1) / 2] + all[n * n / 2]) / 2);
	free(a);
	free(b);
	free(all);
}

static void the_interval_is_that_of_the_tables(void)
{
	for (size_t i = 0; i < sizeof(critical) / sizeof(*critical); i++)
		check_interval(critical[i].n, critical[i].u);
}

static void a_constant_difference_is_exact(void)
{
	double a[] = { 50, 50, 50, 50, 50 }, b[] = { 150, 150, 150, 150, 150 };
	struct comparison c;

	check_int(compare(&c, a, 5, b, 5), 0);
	check(c.shift == 100 && c.low == 100 && c.high == 100);
	check_int(c.verdict, COMPARE_MORE);
	check(c.mean_a == 50 && c.mean_b == 150 && c.median_a == 50 && c.median_b == 150);
	check_int(compare(&c, b, 5, a, 5), 0);
	check(c.shift == -100);
	check_int(c.verdict, COMPARE_LESS);
	check_int(compare(&c, a, 5, a, 5), 0);
	check(c.shift == 0);
	check_int(c.verdict, COMPARE_SAME);
}

static void one_disturbed_run_changes_little(void)
{
	double a[] = { 10, 10, 10, 10, 10, 10, 10, 10 }, b[] = { 12, 12, 12, 12, 9000, 12, 12, 12 };
	struct comparison c;

	check_int(compare(&c, a, 8, b, 8), 0);
	check(c.shift == 2 && c.low == 2 && c.high == 2);
	check_int(c.verdict, COMPARE_MORE);
}

static void overlapping_series_do_not_differ(void)
{
	double a[] = { 1, 2, 3, 4, 5, 6 }, b[] = { 1.5, 2.5, 3.5, 4.5, 5.5, 6.5 };
	struct comparison c;

	check_int(compare(&c, a, 6, b, 6), 0);
	check_int(c.verdict, COMPARE_SAME);
	check(c.shift == 0.5);
}

/*
 * Beyond the exact distribution, n = m = 40: the mean of U is 800, its standard deviation
 * sqrt(1600 * 81 / 12) = 103.92, so 2.5 % lie below 800 - 1.96 * 103.92 = 596.3.
 */
static void long_series_use_the_normal_distribution(void)
{
	double a[40], b[40], all[1600];
	struct comparison c;

	for (int i = 0; i < 40; i++) {
		a[i] = i;
		b[i] = 40 * i + 10000;
		for (int j = 0; j < 40; j++)
			all[40 * i + j] = 40 * j + 10000 - i;
	}
	qsort(all, 1600, sizeof(*all), by_value);
	check_int(compare(&c, a, 40, b, 40), 0);
	check(c.low == all[595] && c.high == all[1600 - 596]);
}

int main(void)
{
	tap_run(the_interval_is_that_of_the_tables);
	tap_run(a_constant_difference_is_exact);
	tap_run(one_disturbed_run_changes_little);
	tap_run(overlapping_series_do_not_differ);
	tap_run(long_series_use_the_normal_distribution);
	return tap_end();
}
