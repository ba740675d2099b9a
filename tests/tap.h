/* SPDX-License-Identifier: MIT */
/*
 * A small TAP producer. A test is a function; its checks say what was wrong and where, and the
 * function is one line of TAP.
 *
 *	static void adds(void)
 *	{
 *		check_int(1 + 1, 2);
 *	}
 *	int main(void)
 *	{
 *		tap_run(adds);
 *		return tap_end();
 *	}
 *
 * tap_skip("reason") inside a test ends it as skipped. Arguments are evaluated once. Nothing forks
 * and nothing jumps: counters and ptrace would notice.
 */
#ifndef TESTS_TAP_H
#define TESTS_TAP_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static struct {
	int run, failed;
	bool bad;         /* the running test has a failed check */
	const char *skip; /* why the running test is skipped */
} tap_;

#define tap_run(fn) tap_run_(#fn, fn)
#define tap_skip(reason)              \
	do {                          \
		tap_.skip = (reason); \
		return;               \
	} while (0)

#define check(cond) tap_check_((cond), __FILE__, __LINE__, #cond)
/* Checks, and leaves the test when it failed: for what later checks need. */
#define require(cond)             \
	do {                      \
		if (!check(cond)) \
			return;   \
	} while (0)
#define check_int(got, want) tap_int_((int64_t)(got), (int64_t)(want), __FILE__, __LINE__, #got)
#define check_u64(got, want) tap_u64_((uint64_t)(got), (uint64_t)(want), __FILE__, __LINE__, #got)
#define check_str(got, want) tap_str_((got), (want), __FILE__, __LINE__, #got)
/* `text` contains `part`. */
#define check_has(text, part)     tap_has_((text), (part), __FILE__, __LINE__, #text)
#define check_mem(got, want, len) tap_mem_((got), (want), (len), __FILE__, __LINE__, #got)

static inline bool tap_check_(bool ok, const char *file, int line, const char *what)
{
	if (!ok) {
		tap_.bad = true;
		printf("# %s:%d: not true: %s\n", file, line, what);
	}
	return ok;
}

static inline bool tap_int_(int64_t got, int64_t want, const char *file, int line, const char *what)
{
	if (got == want)
		return true;
	tap_.bad = true;
	printf("# %s:%d: %s is %" PRId64 ", not %" PRId64 "\n", file, line, what, got, want);
	return false;
}

static inline bool tap_u64_(uint64_t got, uint64_t want, const char *file, int line,
			    const char *what)
{
	if (got == want)
		return true;
	tap_.bad = true;
	printf("# %s:%d: %s is %" PRIu64 " (%#" PRIx64 "), not %" PRIu64 " (%#" PRIx64 ")\n", file,
	       line, what, got, got, want, want);
	return false;
}

static inline bool tap_str_(const char *got, const char *want, const char *file, int line,
			    const char *what)
{
	if (got && want ? !strcmp(got, want) : got == want)
		return true;
	tap_.bad = true;
	printf("# %s:%d: %s is \"%s\", not \"%s\"\n", file, line, what, got ? got : "(null)",
	       want ? want : "(null)");
	return false;
}

static inline bool tap_has_(const char *text, const char *part, const char *file, int line,
			    const char *what)
{
	if (text && strstr(text, part))
		return true;
	tap_.bad = true;
	printf("# %s:%d: %s has no \"%s\": \"%s\"\n", file, line, what, part,
	       text ? text : "(null)");
	return false;
}

static inline bool tap_mem_(const void *got, const void *want, size_t len, const char *file,
			    int line, const char *what)
{
	const unsigned char *g = got, *w = want;

	for (size_t i = 0; i < len; i++) {
		if (g[i] == w[i])
			continue;
		tap_.bad = true;
		printf("# %s:%d: %s differs at byte %zu of %zu: %02x, not %02x\n", file, line, what,
		       i, len, g[i], w[i]);
		return false;
	}
	return true;
}

static inline void tap_run_(const char *name, void (*fn)(void))
{
	tap_.bad = false;
	tap_.skip = NULL;
	fn();
	tap_.run++;
	tap_.failed += tap_.bad;
	if (tap_.skip && !tap_.bad)
		printf("ok %d - %s # SKIP %s\n", tap_.run, name, tap_.skip);
	else
		printf("%sok %d - %s\n", tap_.bad ? "not " : "", tap_.run, name);
	fflush(stdout);
}

static inline int tap_end(void)
{
	printf("1..%d\n", tap_.run);
	return tap_.failed ? 1 : 0;
}

#endif
