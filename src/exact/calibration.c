/* SPDX-License-Identifier: MIT */
/* How late interrupts come: a histogram, and as bytes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tally/system.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/proc.h"
#include "event/cpu.h"
#include "exact/calibration.h"

/*
 * The bytes, all numbers little-endian: 8 bytes of magic, version (4), length of the key (4), count (8),
 * max (8), the buckets (8 each), the key without a NUL, and a sum over all before it (8).
 */
#define MAGIC      "tallyCAL"
#define VERSION    1
#define AT_VERSION 8
#define AT_KEY_LEN 12
#define AT_COUNT   16
#define AT_MAX     24
#define AT_BUCKETS 32
#define AT_KEY     (AT_BUCKETS + 8 * TALLY_SKID_BUCKETS)
#define SUM_LEN    8
/* Of less evidence nothing follows: so many times what a margin may be exceeded once in. */
#define EVIDENCE 4

struct tally_calibration {
	struct tally_skids skids;
	char key[TALLY_CALIBRATION_KEY_MAX];
};

static const bool swapped = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;

static uint32_t bucket_of(uint64_t skid)
{
	uint32_t bits = skid ? 64 - (uint32_t)__builtin_clzll(skid) : 0;

	return bits < TALLY_SKID_BUCKETS ? bits : TALLY_SKID_BUCKETS - 1;
}

void skids_add(struct tally_skids *skids, uint64_t skid)
{
	skids->count++;
	skids->bucket[bucket_of(skid)]++;
	if (skid > skids->max)
		skids->max = skid;
}

uint64_t skids_bound(const struct tally_skids *skids, uint64_t above)
{
	uint64_t more = 0;
	uint32_t i = TALLY_SKID_BUCKETS;

	while (i > 0 && more + skids->bucket[i - 1] <= above)
		more += skids->bucket[--i];
	if (i == 0)
		return 0;
	return i == TALLY_SKID_BUCKETS ? skids->max : ((uint64_t)1 << (i - 1)) - 1;
}

uint64_t tally_skids_margin(const struct tally_skids *seen, uint32_t one_in)
{
	if (!one_in || seen->count / EVIDENCE < one_in)
		return 0;
	return skids_bound(seen, seen->count / one_in);
}

/* The first line of a file below the root as one word, or "?". */
static void read_word(char *out, size_t room, const char *root, const char *path)
{
	if (proc_read_line(out, room, root, path) < 0 || !out[0])
		snprintf(out, room, "?");
	for (char *c = out; *c; c++)
		if ((unsigned char)*c <= ' ' || *c == 0x7f)
			*c = '_';
}

int tally_calibration_key(char out[TALLY_CALIBRATION_KEY_MAX], const char *root,
			  struct tally_error *err)
{
	struct tally_system system;
	char cpu[CPU_IDENTITY_MAX] = "?", microcode[24], maker[40], product[40];

	int r = tally_system_read(&system, sizeof(system), root, err);
	if (r < 0)
		return r;
	if (cpu_identity(cpu, root, -1) < 0)
		snprintf(cpu, sizeof(cpu), "?");
	read_word(microcode, sizeof(microcode), root,
		  "/sys/devices/system/cpu/cpu0/microcode/version");
	read_word(maker, sizeof(maker), root, "/sys/class/dmi/id/sys_vendor");
	read_word(product, sizeof(product), root, "/sys/class/dmi/id/product_name");
	snprintf(out, TALLY_CALIBRATION_KEY_MAX, "cpu=%.60s microcode=%s vm=%s%s%s kernel=%.40s",
		 cpu, microcode, system.in_vm ? maker : "none", system.in_vm ? "/" : "",
		 system.in_vm ? product : "", system.release);
	return 0;
}

static bool is_key(const char *key, size_t len)
{
	if (!len || len >= TALLY_CALIBRATION_KEY_MAX)
		return false;
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)key[i] < ' ' || key[i] == 0x7f)
			return false;
	return true;
}

int tally_calibration_new(struct tally_calibration **out, const char *key, struct tally_error *err)
{
	char own[TALLY_CALIBRATION_KEY_MAX];

	if (!key) {
		int r = tally_calibration_key(own, NULL, err);
		if (r < 0)
			return r;
		key = own;
	}
	size_t len = strnlen(key, TALLY_CALIBRATION_KEY_MAX);
	if (!is_key(key, len))
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
				 "the key of a calibration is one line of 1 to %d bytes",
				 TALLY_CALIBRATION_KEY_MAX - 1);
	struct tally_calibration *seen = calloc(1, sizeof(*seen));
	if (!seen)
		return error_nomem(err, "a calibration");
	memcpy(seen->key, key, len);
	*out = seen;
	return 0;
}

void tally_calibration_free(struct tally_calibration *seen)
{
	free(seen);
}

void tally_calibration_add(struct tally_calibration *seen, uint64_t skid)
{
	skids_add(&seen->skids, skid);
}

const struct tally_skids *tally_calibration_skids(const struct tally_calibration *seen)
{
	return &seen->skids;
}

const char *tally_calibration_where(const struct tally_calibration *seen)
{
	return seen->key;
}

/* FNV-1a: against bytes that were cut or mixed up, not against malice. */
static uint64_t sum_of(const uint8_t *bytes, size_t len)
{
	uint64_t sum = 0xcbf29ce484222325u;

	for (size_t i = 0; i < len; i++)
		sum = (sum ^ bytes[i]) * 0x100000001b3u;
	return sum;
}

size_t tally_calibration_export(const struct tally_calibration *seen, void *buf, size_t room)
{
	size_t key_len = strlen(seen->key), len = AT_KEY + key_len + SUM_LEN;
	uint8_t *at = buf;

	if (room < len)
		return len;
	memcpy(at, MAGIC, AT_VERSION);
	store_u32(at + AT_VERSION, VERSION, swapped);
	store_u32(at + AT_KEY_LEN, (uint32_t)key_len, swapped);
	store_u64(at + AT_COUNT, seen->skids.count, swapped);
	store_u64(at + AT_MAX, seen->skids.max, swapped);
	for (size_t i = 0; i < TALLY_SKID_BUCKETS; i++)
		store_u64(at + AT_BUCKETS + 8 * i, seen->skids.bucket[i], swapped);
	memcpy(at + AT_KEY, seen->key, key_len);
	store_u64(at + len - SUM_LEN, sum_of(at, len - SUM_LEN), swapped);
	return len;
}

static int bad_bytes(struct tally_error *err, const char *how)
{
	return error_set(err, -EBADMSG, TALLY_CAUSE_CORRUPT,
			 "these bytes are no calibration: %s; calibrate anew", how);
}

/* The form: magic, version, lengths, the sum. */
static int check_form(const uint8_t *at, size_t len, struct tally_error *err)
{
	if (len < AT_KEY + SUM_LEN || memcmp(at, MAGIC, AT_VERSION) != 0)
		return bad_bytes(err, "they do not begin as one, or are too few");
	uint32_t version = load_u32(at + AT_VERSION, swapped);
	if (version != VERSION)
		return error_set(err, -EPROTONOSUPPORT, TALLY_CAUSE_UNSUPPORTED,
				 "this calibration is of version %u, and this library knows %d",
				 version, VERSION);
	uint32_t key_len = load_u32(at + AT_KEY_LEN, swapped);
	if (len - AT_KEY - SUM_LEN != key_len)
		return bad_bytes(err, "they end early, or late");
	if (load_u64(at + len - SUM_LEN, swapped) != sum_of(at, len - SUM_LEN))
		return bad_bytes(err, "their sum is wrong");
	if (!is_key((const char *)at + AT_KEY, key_len))
		return bad_bytes(err, "the key is no line of text");
	return 0;
}

/* The content: buckets add up, and the largest one is where the histogram ends. */
static int read_skids(struct tally_skids *out, const uint8_t *at, struct tally_error *err)
{
	uint64_t sum = 0;
	uint32_t last = 0;

	out->count = load_u64(at + AT_COUNT, swapped);
	out->max = load_u64(at + AT_MAX, swapped);
	for (uint32_t i = 0; i < TALLY_SKID_BUCKETS; i++) {
		out->bucket[i] = load_u64(at + AT_BUCKETS + 8 * (size_t)i, swapped);
		if (__builtin_add_overflow(sum, out->bucket[i], &sum))
			return bad_bytes(err, "the counts add up to more than 2^64");
		if (out->bucket[i])
			last = i;
	}
	if (sum != out->count || bucket_of(out->max) != last)
		return bad_bytes(err, "the counts contradict one another");
	return 0;
}

int tally_calibration_import(struct tally_calibration *seen, const void *bytes, size_t len,
			     struct tally_error *err)
{
	struct tally_skids more = { 0 };
	const uint8_t *at = bytes;
	uint64_t count;

	int r = check_form(at, len, err);
	if (r == 0)
		r = read_skids(&more, at, err);
	if (r < 0)
		return r;
	int key_len = (int)(len - AT_KEY - SUM_LEN);
	if (strlen(seen->key) != (size_t)key_len || memcmp(seen->key, at + AT_KEY, (size_t)key_len))
		return error_set(err, -EXDEV, TALLY_CAUSE_ARGUMENT,
				 "the calibration is of '%.*s', and this is '%s': calibrate anew",
				 key_len, (const char *)at + AT_KEY, seen->key);
	if (__builtin_add_overflow(seen->skids.count, more.count, &count))
		return error_set(err, -EOVERFLOW, TALLY_CAUSE_LIMIT,
				 "the calibration counts more than 2^64 interrupts");
	seen->skids.count = count;
	for (uint32_t i = 0; i < TALLY_SKID_BUCKETS; i++)
		seen->skids.bucket[i] += more.bucket[i];
	if (more.max > seen->skids.max)
		seen->skids.max = more.max;
	return 0;
}
