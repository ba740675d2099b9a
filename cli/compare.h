/* SPDX-License-Identifier: MIT */
/* Whether two series of measurements differ, and by how much. */
#ifndef CLI_COMPARE_H
#define CLI_COMPARE_H

#include <stddef.h>

enum verdict_of {
	COMPARE_UNKNOWN, /* too few measurements for an interval */
	COMPARE_SAME,    /* no difference was seen: the interval holds 0 */
	COMPARE_LESS,
	COMPARE_MORE,
};

struct comparison {
	double mean_a, mean_b, median_a, median_b;
	double shift;     /* how much more b is than a: Hodges' and Lehmann's estimate */
	double low, high; /* where that lies with 95 % confidence; as shift when UNKNOWN */
	enum verdict_of verdict;
};

/*
 * Compares a[0 .. n - 1] with b[0 .. m - 1], both at least one; sorts them. The shift is the median
 * of all differences b[j] - a[i], and its interval is that of Mann and Whitney's test: neither takes
 * the shape of a distribution for granted, and one run that was disturbed moves them little. 0, or
 * -ENOMEM.
 */
int compare(struct comparison *out, double *a, size_t n, double *b, size_t m);

#endif
