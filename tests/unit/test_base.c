/* SPDX-License-Identifier: MIT */
/* base: errors, options, arrays, buffers, tables, numbers and small files. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/proc.h"
#include "base/vec.h"
#include "tap.h"

static void error_is_cut_and_printable(void)
{
	struct tally_error err = { 0 };
	char big[2000];

	memset(big, 'x', sizeof(big));
	big[sizeof(big) - 1] = '\0';
	check_int(error_set(&err, -ENOENT, TALLY_CAUSE_NO_FILE, "no\n\x1b[31m%s", big), -ENOENT);
	check_int(err.code, -ENOENT);
	check_int(err.cause, TALLY_CAUSE_NO_FILE);
	check_int(strlen(err.text), TALLY_ERROR_TEXT - 1);
	check(!strncmp(err.text, "no??[31mxx", 10));
	check_int(error_set(NULL, -EINVAL, TALLY_CAUSE_ARGUMENT, "nobody listens"), -EINVAL);
}

static void error_cuts_between_characters(void)
{
	struct tally_error err;
	char big[TALLY_ERROR_TEXT + 8];

	/* The last of the bytes that fit begins a two-byte character. */
	memset(big, 'x', sizeof(big));
	memcpy(big + TALLY_ERROR_TEXT - 2, "\xc3\xa9", 3);
	error_set(&err, -1, TALLY_CAUSE_NONE, "%s", big);
	check_int(strlen(err.text), TALLY_ERROR_TEXT - 2);
	memcpy(big + TALLY_ERROR_TEXT - 3, "\xc3\xa9", 3);
	error_set(&err, -1, TALLY_CAUSE_NONE, "%s", big);
	check_int(strlen(err.text), TALLY_ERROR_TEXT - 1);
}

static void error_prefix_goes_before(void)
{
	struct tally_error err;

	error_set(&err, -1, TALLY_CAUSE_NONE, "inner");
	error_prefix(&err, "outer %d", 1);
	check_str(err.text, "outer 1: inner");
}

struct sample_opts {
	uint32_t size, flags;
	uint64_t a, b;
};

static void options_may_be_older_or_newer(void)
{
	struct sample_opts out;
	struct tally_error err;
	struct {
		struct sample_opts known;
		uint64_t newer;
	} big = { .known = { .size = sizeof(big), .a = 1, .b = 2 } };

	check_int(opts_read(&out, sizeof(out), 3, NULL, &err), 0);
	check_u64(out.a, 0);
	check_int(opts_read(&out, sizeof(out), 3, &big, &err), 0);
	check_u64(out.b, 2);
	big.known.flags = 2;
	check_int(opts_read(&out, sizeof(out), 3, &big, &err), 0);
	check_u64(out.flags, 2);
	big.known.flags = 4;
	check_int(opts_read(&out, sizeof(out), 3, &big, &err), -EINVAL);
	check_has(err.text, "0x4");
	big.known.flags = 0;
	big.newer = 1;
	check_int(opts_read(&out, sizeof(out), 3, &big, &err), -E2BIG);
	big.known.size = 16; /* compiled before `b` existed */
	check_int(opts_read(&out, sizeof(out), 3, &big, &err), 0);
	check_u64(out.a, 1);
	check_u64(out.b, 0);
	big.known.size = 0;
	check_int(opts_read(&out, sizeof(out), 3, &big, &err), -EINVAL);
	check_has(err.text, "TALLY_OPTS");
}

static void vec_grows_and_refuses_overflow(void)
{
	VEC(uint64_t) v = { 0 };
	size_t room = 0;
	void *none = NULL;

	for (uint64_t i = 0; i < 1000; i++)
		*vec_push(&v) = i * i;
	check_int(v.count, 1000);
	uint64_t sum = 0;
	vec_each (&v, p)
		sum += *p;
	check_u64(sum, 999ull * 1000 * 1999 / 6);
	vec_done(&v);
	check(!vec_grow(&none, 0, &room, SIZE_MAX / 4, 8));
	check(!vec_grow(&none, 5, &room, SIZE_MAX, 1));
}

static void map64_keeps_all_keys(void)
{
	struct map64 m = { 0 };

	check_int(map64_get(&m, 7), 0);
	for (uint64_t k = 0; k < 10000; k++)
		*map64_at(&m, k * k) = (uint32_t)k + 1;
	for (uint64_t k = 0; k < 10000; k++)
		if (map64_get(&m, k * k) != k + 1) {
			check_int(map64_get(&m, k * k), k + 1);
			break;
		}
	check_int(map64_get(&m, 2), 0);
	/* Slots that were asked for and left empty do not fill the table for ever. */
	for (uint64_t k = 1; k < 100000; k++)
		map64_at(&m, ~k);
	check(m.room <= 262144);
	check_int(map64_get(&m, 9999 * 9999), 10000);
	map64_done(&m);
}

static void strings_are_interned(void)
{
	struct strings s = { 0 };
	char name[32];

	check_int(strings_add(&s, "main"), 1);
	check_int(strings_add(&s, ""), 0);
	check_int(strings_add(&s, "main"), 1);
	check_int(strings_add_n(&s, "mainly", 4), 1);
	check_int(strings_add(&s, "mainly"), 2);
	for (int i = 0; i < 5000; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		strings_add(&s, name);
	}
	check_int(strings_add(&s, "f4999"), 5002);
	check_str(strings_get(&s, 5002), "f4999");
	check_str(strings_get(&s, 1), "main");
	check_str(strings_get(&s, 999999), "");
	strings_done(&s);
}

static void numbers_are_whole_or_nothing(void)
{
	uint64_t u;
	int64_t i;

	check(parse_u64("0x10", &u) && u == 16);
	check(parse_u64("18446744073709551615", &u) && u == UINT64_MAX);
	check(!parse_u64("18446744073709551616", &u));
	check(!parse_u64("", &u));
	check(!parse_u64(" 1", &u));
	check(!parse_u64("-1", &u));
	check(!parse_u64("1x", &u));
	check(!parse_u64("0x", &u));
	check(parse_i64("-9223372036854775808", &i) && i == INT64_MIN);
	check(!parse_i64("9223372036854775808", &i));
	check(parse_hex("1c4", &u) && u == 0x1c4);
}

static void cpu_lists(void)
{
	int32_t cpus[4] = { 0 };

	check_int(proc_parse_cpus("0-3,8,10-11\n", cpus, 4), 7);
	check_int(cpus[3], 3);
	check_int(proc_parse_cpus("", cpus, 4), 0);
	check_int(proc_parse_cpus("3-1", cpus, 4), -EINVAL);
	check_int(proc_parse_cpus("1,x", cpus, 4), -EINVAL);
	check_int(proc_parse_cpus("0-999999999", cpus, 4), -EINVAL);
}

static void files_below_a_root(void)
{
	char root[] = "/tmp/tally-base-XXXXXX", path[128], line[16];
	int64_t v;
	struct buf b = { 0 };

	require(mkdtemp(root));
	snprintf(path, sizeof(path), "%s/n", root);
	FILE *f = fopen(path, "w");
	require(f);
	fputs("-1 rest\nsecond\n", f);
	fclose(f);
	check_int(proc_read_i64(&v, root, "/n"), 0);
	check_int(v, -1);
	check_int(proc_read_line(line, sizeof(line), root, "/n"), 0);
	check_str(line, "-1 rest");
	check_int(proc_read_line(line, 4, root, "/n"), 0);
	check_str(line, "-1 ");
	check_int(proc_read(&b, root, "/n", 100), 0);
	check_int(b.len, 15);
	check_int(proc_read(&b, root, "/n", 3), -EFBIG);
	check_int(proc_read_i64(&v, root, "/none"), -ENOENT);
	buf_done(&b);
	unlink(path);
	rmdir(root);
}

static void mul_div_does_not_overflow(void)
{
	check_u64(mul_div(UINT64_MAX, 3, 3), UINT64_MAX);
	check_u64(mul_div(UINT64_MAX, 3, 1), UINT64_MAX);
	check_u64(mul_div(1ull << 40, 1ull << 40, 1ull << 41), 1ull << 39);
	check_u64(mul_div(5, 1, 0), 0);
}

int main(void)
{
	tap_run(error_is_cut_and_printable);
	tap_run(error_cuts_between_characters);
	tap_run(error_prefix_goes_before);
	tap_run(options_may_be_older_or_newer);
	tap_run(vec_grows_and_refuses_overflow);
	tap_run(map64_keeps_all_keys);
	tap_run(strings_are_interned);
	tap_run(numbers_are_whole_or_nothing);
	tap_run(cpu_lists);
	tap_run(files_below_a_root);
	tap_run(mul_div_does_not_overflow);
	return tap_end();
}
