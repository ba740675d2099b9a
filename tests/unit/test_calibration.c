/* SPDX-License-Identifier: MIT */
/* Calibrations: what is learned, as bytes and back, and bytes that lie. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include <tally/calibration.h>

#include "base/bytes.h"
#include "fakeroot.h"
#include "tap.h"

#define KEY "cpu=GenuineIntel-6-55-4 microcode=0x5003604 vm=none kernel=6.1"

/* The layout, by hand: magic, version, length of the key, count, max, buckets, key, sum. */
#define AT_VERSION 8
#define AT_KEY_LEN 12
#define AT_COUNT   16
#define AT_MAX     24
#define AT_BUCKET  32
#define AT_KEY     (32 + 8 * TALLY_SKID_BUCKETS)

static struct tally_calibration *make(const char *key)
{
	struct tally_calibration *c = NULL;
	struct tally_error err;

	if (tally_calibration_new(&c, key, &err) < 0)
		printf("# %s\n", err.text);
	return c;
}

static void counts_by_size(void)
{
	struct tally_calibration *c = make(KEY);

	require(c);
	tally_calibration_add(c, 0);
	tally_calibration_add(c, 1);
	tally_calibration_add(c, 2);
	tally_calibration_add(c, 3);
	tally_calibration_add(c, 4);
	tally_calibration_add(c, 1ull << 50);
	const struct tally_skids *s = tally_calibration_skids(c);
	check_u64(s->count, 6);
	check_u64(s->max, 1ull << 50);
	check_u64(s->bucket[0], 1);
	check_u64(s->bucket[1], 1);
	check_u64(s->bucket[2], 2);
	check_u64(s->bucket[3], 1);
	check_u64(s->bucket[TALLY_SKID_BUCKETS - 1], 1);
	check_str(tally_calibration_where(c), KEY);
	tally_calibration_free(c);
}

/* 384 as the 99th percentile, and one in a thousand far out: what is known of one EPYC. */
static void tells_margins(void)
{
	struct tally_calibration *c = make(KEY);

	require(c);
	const struct tally_skids *s = tally_calibration_skids(c);
	check_u64(tally_skids_margin(s, 100), 0);
	for (int i = 0; i < 9990; i++)
		tally_calibration_add(c, (uint64_t)(i % 384));
	for (int i = 0; i < 10; i++)
		tally_calibration_add(c, 61000);
	check_u64(tally_skids_margin(s, 100), 511);
	check_u64(tally_skids_margin(s, 1000), 511);
	check_u64(tally_skids_margin(s, 2500), 65535);
	check_u64(tally_skids_margin(s, 2501), 0); /* four times as many have not been seen */
	check_u64(tally_skids_margin(s, 0), 0);
	tally_calibration_free(c);
}

static size_t export_of(const struct tally_calibration *c, uint8_t *buf, size_t room)
{
	size_t len = tally_calibration_export(c, NULL, 0);

	check(len <= room);
	check_u64(tally_calibration_export(c, buf, len - 1), len);
	check_u64(tally_calibration_export(c, buf, len), len);
	return len;
}

static struct tally_calibration *example(void)
{
	struct tally_calibration *c = make(KEY);

	for (uint64_t i = 0; c && i < 100; i++)
		tally_calibration_add(c, i);
	return c;
}

static void comes_back(void)
{
	struct tally_calibration *a = example(), *b = make(KEY);
	uint8_t bytes[1024];
	struct tally_error err;

	require(a && b);
	size_t len = export_of(a, bytes, sizeof(bytes));
	check_int(tally_calibration_import(b, bytes, len, &err), 0);
	check_mem(tally_calibration_skids(b), tally_calibration_skids(a),
		  sizeof(struct tally_skids));
	/* It adds to what is there. */
	tally_calibration_add(b, 5000);
	check_int(tally_calibration_import(b, bytes, len, &err), 0);
	check_u64(tally_calibration_skids(b)->count, 201);
	check_u64(tally_calibration_skids(b)->max, 5000);
	check_u64(tally_calibration_skids(b)->bucket[1], 2);
	tally_calibration_free(a);
	tally_calibration_free(b);
}

/* Fixed bytes, so that a file of today is read tomorrow, and on a machine of the other byte order. */
static void keeps_its_form(void)
{
	struct tally_calibration *c = make("k");
	uint8_t want[AT_KEY + 1 + 8] = "tallyCAL", bytes[sizeof(want)];
	uint64_t sum = 0xcbf29ce484222325u; /* FNV-1a */

	require(c);
	tally_calibration_add(c, 6);
	want[AT_VERSION] = 1;
	want[AT_KEY_LEN] = 1;
	want[AT_COUNT] = 1;
	want[AT_MAX] = 6;
	want[AT_BUCKET + 8 * 3] = 1;
	want[AT_KEY] = 'k';
	for (size_t i = 0; i < AT_KEY + 1; i++)
		sum = (sum ^ want[i]) * 0x100000001b3u;
	for (size_t i = 0; i < 8; i++)
		want[AT_KEY + 1 + i] = (uint8_t)(sum >> 8 * i);
	check_u64(tally_calibration_export(c, bytes, sizeof(bytes)), sizeof(want));
	check_mem(bytes, want, sizeof(want));
	tally_calibration_free(c);
}

/* Any bit that is wrong is found, and any end that is missing. */
static void refuses_damage(void)
{
	struct tally_calibration *a = example(), *b = make(KEY);
	uint8_t bytes[1024];
	struct tally_error err;

	require(a && b);
	size_t len = export_of(a, bytes, sizeof(bytes));
	for (size_t i = 0; i < len * 8; i++) {
		bytes[i / 8] ^= (uint8_t)(1u << i % 8);
		if (!check(tally_calibration_import(b, bytes, len, &err) < 0))
			printf("# bit %zu\n", i);
		bytes[i / 8] ^= (uint8_t)(1u << i % 8);
	}
	for (size_t cut = 0; cut < len; cut++)
		check_int(tally_calibration_import(b, bytes, cut, &err), -EBADMSG);
	check_int(tally_calibration_import(b, bytes, len + 1, &err), -EBADMSG);
	check_u64(tally_calibration_skids(b)->count, 0);
	tally_calibration_free(a);
	tally_calibration_free(b);
}

static void seal(uint8_t *bytes, size_t len)
{
	uint64_t sum = 0xcbf29ce484222325u;

	for (size_t i = 0; i < len - 8; i++)
		sum = (sum ^ bytes[i]) * 0x100000001b3u;
	for (size_t i = 0; i < 8; i++)
		bytes[len - 8 + i] = (uint8_t)(sum >> 8 * i);
}

/* With a right sum, too, what contradicts itself is refused. */
static void refuses_lies(void)
{
	static const struct {
		size_t at, len;
		uint64_t value;
		int code;
	} lies[] = {
		{ AT_VERSION, 4, 2, -EPROTONOSUPPORT },
		{ AT_VERSION, 4, 0, -EPROTONOSUPPORT },
		{ AT_KEY_LEN, 4, 0, -EBADMSG },
		{ AT_KEY_LEN, 4, UINT32_MAX, -EBADMSG },
		{ AT_COUNT, 8, 101, -EBADMSG },
		{ AT_COUNT, 8, 0, -EBADMSG },
		{ AT_MAX, 8, 63, -EBADMSG },
		{ AT_MAX, 8, 128, -EBADMSG },
		{ AT_MAX, 8, 0, -EBADMSG },
		{ AT_BUCKET, 8, 2, -EBADMSG },
		{ AT_BUCKET, 8, UINT64_MAX, -EBADMSG },
		{ AT_KEY, 1, '\n', -EBADMSG },
		{ AT_KEY, 1, 0, -EBADMSG },
		{ AT_KEY, 1, 'C', -EXDEV },
	};
	struct tally_calibration *a = example(), *b = make(KEY);
	uint8_t bytes[1024], bad[1024];
	struct tally_error err;

	require(a && b);
	size_t len = export_of(a, bytes, sizeof(bytes));
	for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
		memcpy(bad, bytes, len);
		for (size_t k = 0; k < lies[i].len; k++)
			bad[lies[i].at + k] = (uint8_t)(lies[i].value >> 8 * k);
		seal(bad, len);
		if (tally_calibration_import(b, bad, len, &err) != lies[i].code)
			printf("# lie %zu\n", i);
		check_int(err.code, lies[i].code);
		check_u64(tally_calibration_skids(b)->count, 0);
	}
	tally_calibration_free(a);
	tally_calibration_free(b);
}

static void does_not_overflow(void)
{
	struct tally_calibration *a = make("k"), *b = make("k");
	uint8_t bytes[1024];
	struct tally_error err;

	require(a && b);
	tally_calibration_add(a, 0);
	size_t len = export_of(a, bytes, sizeof(bytes));
	memset(bytes + AT_COUNT, 0xff, 8);
	memset(bytes + AT_BUCKET, 0xff, 8);
	seal(bytes, len);
	check_int(tally_calibration_import(b, bytes, len, &err), 0);
	check_int(tally_calibration_import(b, bytes, len, &err), -EOVERFLOW);
	check_u64(tally_calibration_skids(b)->count, UINT64_MAX);
	tally_calibration_free(a);
	tally_calibration_free(b);
}

static void refuses_keys(void)
{
	struct tally_calibration *c = NULL;
	struct tally_error err;
	char longest[TALLY_CALIBRATION_KEY_MAX + 1] = { 0 };

	check_int(tally_calibration_new(&c, "", &err), -EINVAL);
	check_int(tally_calibration_new(&c, "two\nlines", &err), -EINVAL);
	memset(longest, 'x', TALLY_CALIBRATION_KEY_MAX);
	check_int(tally_calibration_new(&c, longest, &err), -EINVAL);
	longest[TALLY_CALIBRATION_KEY_MAX - 1] = '\0';
	check_int(tally_calibration_new(&c, longest, &err), 0);
	uint8_t bytes[1024];
	check(tally_calibration_export(c, bytes, sizeof(bytes)) < sizeof(bytes));
	tally_calibration_free(c);
	tally_calibration_free(NULL);
}

static void key_names_the_machine(void)
{
	struct fakeroot root;
	char key[TALLY_CALIBRATION_KEY_MAX];
	struct tally_error err;

	require(fakeroot_make(&root));
	check(fakeroot_file(&root, "/proc/cpuinfo",
			    "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 26\n"
			    "model\t\t: 17\nstepping\t: 0\nflags\t\t: fpu hypervisor\n"));
	check(fakeroot_file(&root, "/sys/devices/system/cpu/cpu0/microcode/version",
			    "0xb101047\n"));
	check(fakeroot_file(&root, "/sys/class/dmi/id/sys_vendor", "Some Maker\n"));
	check(fakeroot_file(&root, "/sys/class/dmi/id/product_name", "Box 1\n"));
	check_int(tally_calibration_key(key, root.path, &err), 0);
	check_has(key, "cpu=AuthenticAMD-26-11-0 ");
	check_has(key, " microcode=0xb101047 ");
	check_has(key, " vm=Some_Maker/Box_1 ");
	check_has(key, " kernel=");
	check(!strchr(key, '\n'));
	fakeroot_remove(&root);
	/* The real one has a key, too, which makes a calibration. */
	struct tally_calibration *c = make(NULL);
	check(c);
	tally_calibration_free(c);
}

int main(void)
{
	tap_run(counts_by_size);
	tap_run(tells_margins);
	tap_run(comes_back);
	tap_run(keeps_its_form);
	tap_run(refuses_damage);
	tap_run(refuses_lies);
	tap_run(does_not_overflow);
	tap_run(refuses_keys);
	tap_run(key_names_the_machine);
	return tap_end();
}
