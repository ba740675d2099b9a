/* SPDX-License-Identifier: MIT */
/* Metrics: numbers as formulas have them, whatever the program's locale. */
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "count/metric.h"

#define DIGITS     "0123456789"
#define HEX_DIGITS "0123456789abcdefABCDEF"

/* Longer ones are no numbers that somebody means. */
#define MAX_NUMBER 63

static size_t hex_number(const char *text, double *out)
{
	size_t digits = text[0] == '0' && (text[1] == 'x' || text[1] == 'X')
				? strspn(text + 2, HEX_DIGITS)
				: 0;

	if (!digits)
		return 0;
	*out = digits > 16 ? HUGE_VAL : (double)strtoull(text, NULL, 16);
	return digits + 2;
}

/* digits [. digits] [e [+-] digits], with a digit on one side of the point at least. */
static size_t decimal_length(const char *text)
{
	size_t whole = strspn(text, DIGITS), n = whole, fraction = 0;

	if (text[n] == '.') {
		fraction = strspn(text + n + 1, DIGITS);
		n += 1 + fraction;
	}
	if (!whole && !fraction)
		return 0;
	if (text[n] == 'e' || text[n] == 'E') {
		size_t sign = text[n + 1] == '-' || text[n + 1] == '+';
		size_t digits = strspn(text + n + 1 + sign, DIGITS);
		n += digits ? 1 + sign + digits : 0;
	}
	return n;
}

size_t metric_number(const char *text, double *out)
{
	size_t len = hex_number(text, out);
	char copy[MAX_NUMBER + 1];

	if (len)
		return len;
	len = decimal_length(text);
	if (!len)
		return 0;
	if (len > MAX_NUMBER) {
		*out = HUGE_VAL;
		return len;
	}
	memcpy(copy, text, len);
	copy[len] = '\0';
	/* strtod alone would want a comma where the program's locale does. */
	locale_t c = newlocale(LC_ALL_MASK, "C", NULL);
	if (!c)
		return 0;
	*out = strtod_l(copy, NULL, c);
	freelocale(c);
	return len;
}
