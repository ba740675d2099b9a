/* SPDX-License-Identifier: MIT */
/* recorder/btf: bytes by the layout of Documentation/bpf/btf.rst. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "recorder/btf.h"
#include "tap.h"

#define STRINGS "\0int\0main_of_a_long_name\0sub"
#define INT     1
#define MAIN    5
#define SUB     25

static void type(struct buf *b, uint32_t name, uint32_t kind, uint32_t members, uint32_t of)
{
	buf_u32(b, name);
	buf_u32(b, kind << 24 | members);
	buf_u32(b, of);
}

/* 1 int; 2 a struct of two; 3 an array; 4 a prototype of one parameter; 5 and 6 functions. */
static struct buf make(void)
{
	struct buf types = { 0 }, b = { 0 };

	type(&types, INT, 1, 0, 4);
	buf_u32(&types, 32);
	type(&types, 0, 4, 2, 8);
	buf_zero(&types, 24);
	type(&types, 0, 3, 0, 0);
	buf_zero(&types, 12);
	type(&types, 0, 13, 1, 1);
	buf_zero(&types, 8);
	type(&types, MAIN, 12, 0, 4);
	type(&types, SUB, 12, 0, 4);
	buf_u16(&b, 0xeb9f);
	buf_u16(&b, 1);
	buf_u32(&b, 24);
	buf_u32(&b, 0);
	buf_u32(&b, (uint32_t)types.len);
	buf_u32(&b, (uint32_t)types.len);
	buf_u32(&b, sizeof(STRINGS));
	buf_add(&b, types.at, types.len);
	buf_add(&b, STRINGS, sizeof(STRINGS));
	buf_done(&types);
	return b;
}

static void names(void)
{
	struct buf b = make();

	check_str(btf_name(b.at, b.len, 1), "int");
	check(!btf_name(b.at, b.len, 2));
	check(!btf_name(b.at, b.len, 4));
	check_str(btf_name(b.at, b.len, 5), "main_of_a_long_name");
	check_str(btf_name(b.at, b.len, 6), "sub");
	check(!btf_name(b.at, b.len, 0));
	check(!btf_name(b.at, b.len, 7));
	check(!btf_name(b.at, b.len, UINT32_MAX));
	buf_done(&b);
}

/* A name is within the bytes, or there is none; run with a sanitizer, no byte beyond is read. */
static void damaged(void)
{
	struct buf whole = make();
	int found = 0, outside = 0;

	for (size_t len = 0; len < whole.len; len++) {
		char *cut = malloc(len + 1);
		require(cut);
		memcpy(cut, whole.at, len);
		cut = realloc(cut, len ? len : 1);
		found += btf_name(cut, len, 5) != NULL;
		free(cut);
	}
	check_int(found, 0);
	for (size_t at = 0; at < whole.len; at++)
		for (int value = 0; value < 256; value++) {
			char was = whole.at[at];
			whole.at[at] = (char)value;
			for (uint32_t id = 0; id < 9; id++) {
				const char *name = btf_name(whole.at, whole.len, id);
				outside += name && (name < whole.at ||
						    name + strlen(name) >= whole.at + whole.len);
			}
			whole.at[at] = was;
		}
	check_int(outside, 0);
	buf_done(&whole);
}

int main(void)
{
	tap_run(names);
	tap_run(damaged);
	return tap_end();
}
