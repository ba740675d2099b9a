/* SPDX-License-Identifier: MIT */
/*
 * Edit distance with insertions, deletions, replacements and swaps of neighbours (optimal string
 * alignment), since swapped letters are the commonest slip. Upper and lower case count as equal, so
 * that "CYCLES" finds "cycles".
 */
#include <ctype.h>
#include <string.h>

#include "event/nearest.h"

void nearest_init(struct nearest *n, const char *wanted, size_t len)
{
	*n = (struct nearest){ .wanted = wanted, .len = len };
	/* Every third letter wrong, and two in short names: beyond that it is another word. */
	n->distance = (unsigned)(len / 3 < 2 ? 2 : len / 3) + 1;
	if (len > NEAREST_MAX)
		n->distance = 0;
}

static unsigned min(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

static unsigned distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	unsigned rows[3][NEAREST_MAX + 1];
	unsigned *before = rows[0], *last = rows[1], *row = rows[2];

	for (unsigned j = 0; j <= b_len; j++)
		last[j] = j;
	for (size_t i = 1; i <= a_len; i++) {
		int x = tolower((unsigned char)a[i - 1]);
		row[0] = (unsigned)i;
		for (size_t j = 1; j <= b_len; j++) {
			int y = tolower((unsigned char)b[j - 1]);
			row[j] = min(last[j - 1] + (x != y), min(last[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2]) &&
			    y == tolower((unsigned char)a[i - 2]))
				row[j] = min(row[j], before[j - 2] + 1);
		}
		unsigned *oldest = before;
		before = last;
		last = row;
		row = oldest;
	}
	return last[b_len];
}

void nearest_offer(struct nearest *n, const char *name)
{
	size_t len = strlen(name);
	size_t apart = len > n->len ? len - n->len : n->len - len;

	if (len > NEAREST_MAX || apart >= n->distance)
		return;
	unsigned d = distance(n->wanted, n->len, name, len);
	if (d < n->distance) {
		n->distance = d;
		memcpy(n->name, name, len + 1);
	}
}
