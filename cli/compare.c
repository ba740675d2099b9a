/* SPDX-License-Identifier: MIT */
/* Hodges and Lehmann 1963; Mann and Whitney 1947. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare.h"

/* What may lie outside of the interval on each of its sides. */
#define TAIL 0.025
/* The normal distribution's quantile for it. */
#define TAIL_Z 1.959963985
/* Up to so many measurements the test's distribution is computed, beyond it is all but normal. */
#define EXACT_MOST 30

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(const double *sorted, size_t n)
{
	return (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
}

static double mean(const double *values, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += values[i];
	return sum / (double)n;
}

/*
 * The distribution of U for n and m measurements into p[0 .. n * m]. The largest of all is one of
 * the n with probability n / (n + m), and then above all m others:
 *	p(n, m, u) = n / (n + m) p(n - 1, m, u - m) + m / (n + m) p(n, m - 1, u)
 * `rows` is zeroed, with room for m + 1 distributions: those of the last n, by m.
 */
static void distribution(double *rows, size_t n, size_t m)
{
	size_t width = n * m + 1;

	for (size_t j = 0; j <= m; j++)
		rows[j * width] = 1;
	for (size_t i = 1; i <= n; i++) {
		for (size_t j = 1; j <= m; j++) {
			double *p = rows + j * width, *fewer = p - width;
			double part = (double)i / (double)(i + j);
			/* Downwards, since p[u - j] is still wanted as it was for i - 1. */
			for (size_t u = i * j + 1; u-- > 0;)
				p[u] = (u >= j ? part * p[u - j] : 0) + (1 - part) * fewer[u];
		}
	}
}

/* How many of the sorted differences lie outside of the interval on each side. */
static int outside(size_t n, size_t m, size_t *out)
{
	double pairs = (double)n * (double)m, sum = 0;

	*out = 0;
	if (n > EXACT_MOST || m > EXACT_MOST) {
		double k = pairs / 2 - TAIL_Z * sqrt(pairs * (double)(n + m + 1) / 12);
		*out = k > 0 ? (size_t)k : 0;
		return 0;
	}
	double *rows = calloc((m + 1) * (n * m + 1), sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	distribution(rows, n, m);
	const double *p = rows + m * (n * m + 1);
	while (sum + p[*out] <= TAIL)
		sum += p[(*out)++];
	free(rows);
	return 0;
}

static enum verdict_of judge(const struct comparison *c)
{
	if (c->low <= 0 && c->high >= 0)
		return COMPARE_SAME;
	return c->high < 0 ? COMPARE_LESS : COMPARE_MORE;
}

int compare(struct comparison *out, double *a, size_t n, double *b, size_t m)
{
	double *all = calloc(n * m, sizeof(*all));
	size_t k, count = 0;
	int r = all ? outside(n, m, &k) : -ENOMEM;

	if (r < 0) {
		free(all);
		return r;
	}
	qsort(a, n, sizeof(*a), by_value);
	qsort(b, m, sizeof(*b), by_value);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < m; j++)
			all[count++] = b[j] - a[i];
	qsort(all, count, sizeof(*all), by_value);
	*out = (struct comparison){
		.mean_a = mean(a, n),
		.mean_b = mean(b, m),
		.median_a = median(a, n),
		.median_b = median(b, m),
		.shift = median(all, count),
	};
	/* The interval lies between the k-th smallest and the k-th largest, counted from 1. */
	out->low = k ? all[k - 1] : out->shift;
	out->high = k ? all[count - k] : out->shift;
	out->verdict = k ? judge(out) : COMPARE_UNKNOWN;
	free(all);
	return 0;
}
