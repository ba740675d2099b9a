/* SPDX-License-Identifier: MIT */
/* recorder/bpf-features: programs of a made-up kernel, and the features' bytes. */
#include <errno.h>
#include <linux/bpf.h>
#include <string.h>

#include <tally/reader.h>

#include "base/buf.h"
#include "base/sys.h"
#include "recorder/bpf-features.h"
#include "tap.h"

#define FD    1000 /* and the program's id */
#define TYPES 2000 /* and the types' id */

enum {
	SHARED = 7, /* types of programs 1 and 3 */
	GONE = 2,
	LAST = 4, /* which has neither code nor types */
	CODE = 5, /* bytes of the others' machine code */
};

static int refuse; /* errno of all */
static uint32_t code_len;
static int opened, closed;
static struct buf features[256];

int tally_writer_feature(struct tally_writer *writer, uint32_t feature, const void *bytes,
			 size_t len)
{
	(void)writer;
	buf_reset(&features[feature]);
	buf_add(&features[feature], bytes, len);
	return 0;
}

static int fake_program(uint32_t id, struct bpf_prog_info *info)
{
	uint8_t *code = (void *)(uintptr_t)info->jited_prog_insns;
	uint64_t *symbols = (void *)(uintptr_t)info->jited_ksyms;

	info->id = id;
	/* Arrays that nobody asked for have their numbers, too. */
	info->xlated_prog_len = 16;
	if (id == LAST)
		return 0;
	info->btf_id = SHARED;
	if (code)
		memset(code, (int)id, info->jited_prog_len);
	if (symbols)
		symbols[0] = 0xffff0000 + id;
	info->jited_prog_len = code_len;
	info->nr_jited_ksyms = 1;
	return 0;
}

static int fake_types(struct bpf_btf_info *info)
{
	if (info->btf)
		memcpy((void *)(uintptr_t)info->btf, "types", 5);
	info->btf_size = 5;
	return 0;
}

static int fake_bpf(int cmd, void *arg, unsigned int size)
{
	union bpf_attr *attr = arg;

	if (refuse)
		return -refuse;
	check_u64(size, sizeof(*attr));
	switch (cmd) {
	case BPF_PROG_GET_NEXT_ID:
		attr->next_id = attr->start_id + 1;
		return attr->start_id < LAST ? 0 : -ENOENT;
	case BPF_PROG_GET_FD_BY_ID:
		opened += attr->prog_id != GONE;
		return attr->prog_id == GONE ? -ENOENT : (int)(FD + attr->prog_id);
	case BPF_BTF_GET_FD_BY_ID:
		opened++;
		return (int)(TYPES + attr->btf_id);
	default:
		return attr->info.bpf_fd >= TYPES
			       ? fake_types((void *)(uintptr_t)attr->info.info)
			       : fake_program(attr->info.bpf_fd - FD,
					      (void *)(uintptr_t)attr->info.info);
	}
}

static int fake_close(int fd)
{
	(void)fd;
	closed++;
	return 0;
}

const struct sys_table *sys(void)
{
	static struct sys_table table;

	table = (struct sys_table){ .bpf = fake_bpf, .close = fake_close };
	return &table;
}

static void setup(uint32_t len)
{
	code_len = len;
	refuse = opened = closed = 0;
	for (int i = 0; i < 256; i++)
		buf_reset(&features[i]);
}

/* What must stand in the file next. */
static bool next_is(const struct buf *b, size_t *at, const void *bytes, size_t len)
{
	bool same = *at + len <= b->len && !memcmp(b->at + *at, bytes, len);

	*at += len;
	return same;
}

static bool next_word(const struct buf *b, size_t *at, uint32_t word)
{
	return next_is(b, at, &word, sizeof(word));
}

/* struct perf_bpil of a program with code: bits 0, JITED_INSNS, and 3, JITED_KSYMS. */
static bool next_program(const struct buf *b, size_t *at, uint32_t id)
{
	const uint64_t bits = 1 << 0 | 1 << 3, symbol = 0xffff0000 + id;
	const struct bpf_prog_info want = {
		.id = id,
		.xlated_prog_len = 16,
		.btf_id = SHARED,
		.jited_prog_len = CODE,
		.jited_prog_insns = 0,
		.nr_jited_ksyms = 1,
		.jited_ksyms = 8,
	};
	uint8_t code[8] = { 0 };

	memset(code, (int)id, CODE);
	return next_word(b, at, sizeof(want)) && next_word(b, at, 16) && next_is(b, at, &bits, 8) &&
	       next_is(b, at, &want, sizeof(want)) && next_is(b, at, code, 8) &&
	       next_is(b, at, &symbol, 8);
}

static void programs_and_types(void)
{
	const struct buf *programs = &features[TALLY_FEATURE_BPF_PROG_INFO];
	const struct buf *types = &features[TALLY_FEATURE_BPF_BTF];
	const struct bpf_prog_info last = { .id = LAST, .xlated_prog_len = 16 };
	const uint64_t none = 0;
	size_t at = 0;

	setup(CODE);
	check_int(bpf_features(NULL), 0);
	check(next_word(programs, &at, 3));
	check(next_program(programs, &at, 1));
	check(next_program(programs, &at, 3));
	check(next_word(programs, &at, sizeof(last)) && next_word(programs, &at, 0));
	check(next_is(programs, &at, &none, 8) && next_is(programs, &at, &last, sizeof(last)));
	check_u64(at, programs->len);
	at = 0;
	check(next_word(types, &at, 1) && next_word(types, &at, SHARED));
	check(next_word(types, &at, 5) && next_is(types, &at, "types", 5));
	check_u64(at, types->len);
	check_int(closed, opened);
}

static void what_is_too_long_is_left_out(void)
{
	uint32_t count;

	setup(UINT32_MAX);
	check_int(bpf_features(NULL), 0);
	memcpy(&count, features[TALLY_FEATURE_BPF_PROG_INFO].at, sizeof(count));
	check_u64(count, 1); /* LAST */
	check_int(closed, opened);
}

static void nothing_may_be_asked(void)
{
	setup(CODE);
	refuse = EPERM;
	check_int(bpf_features(NULL), 0);
	check_u64(features[TALLY_FEATURE_BPF_PROG_INFO].len, 0);
	check_u64(features[TALLY_FEATURE_BPF_BTF].len, 0);
}

int main(void)
{
	tap_run(programs_and_types);
	tap_run(what_is_too_long_is_left_out);
	tap_run(nothing_may_be_asked);
	for (int i = 0; i < 256; i++)
		buf_done(&features[i]);
	return tap_end();
}
