/* SPDX-License-Identifier: MIT */
/*
 * The TRACING_DATA blob, which is trace-cmd's header (trace-cmd.dat.v6(5)) without its options: a mark,
 * the writer's byte order and sizes, and texts of tracefs with their lengths.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "profile/format.h"

static const char mark[] = "\x17\x08\x44tracing";

struct cursor {
	const char *at;
	size_t left;
	bool swapped, bad;
};

static const char *take(struct cursor *c, uint64_t len)
{
	const char *at = c->at;

	if (c->bad || len > c->left) {
		c->bad = true;
		return NULL;
	}
	c->at += len;
	c->left -= (size_t)len;
	return at;
}

static uint32_t take_u32(struct cursor *c)
{
	const char *at = take(c, sizeof(uint32_t));

	return at ? load_u32(at, c->swapped) : 0;
}

static uint64_t take_u64(struct cursor *c)
{
	const char *at = take(c, sizeof(uint64_t));

	return at ? load_u64(at, c->swapped) : 0;
}

/* A text that ends in NUL. */
static const char *take_text(struct cursor *c)
{
	size_t len = c->bad ? 0 : strnlen(c->at, c->left);

	return take(c, len + 1);
}

/* Bytes behind their length. */
static const char *take_file(struct cursor *c, size_t *len)
{
	uint64_t size = take_u64(c);
	const char *at = take(c, size);

	*len = at ? (size_t)size : 0;
	return at;
}

static bool take_named(struct cursor *c, const char *name, const char **text, size_t *len)
{
	const char *found = take_text(c);

	if (!found || strcmp(found, name) != 0) {
		c->bad = true;
		return false;
	}
	*text = take_file(c, len);
	return !c->bad;
}

/* The number of a format, without taking it apart. */
static uint64_t number_of(const char *text, size_t len)
{
	const char *at = memmem(text, len, "\nID:", 4);
	uint64_t id = 0;
	size_t i;

	if (!at)
		return UINT64_MAX;
	at += 4;
	for (i = 0; at + i < text + len && at[i] == ' '; i++)
		;
	for (; at + i < text + len && at[i] >= '0' && at[i] <= '9' && id < UINT32_MAX; i++)
		id = id * 10 + (uint64_t)(at[i] - '0');
	return id;
}

static int take_formats(struct cursor *c, struct tracing_data *out, const char *system)
{
	uint32_t count = take_u32(c);

	for (uint32_t i = 0; i < count && !c->bad; i++) {
		size_t len;
		const char *text = take_file(c, &len);
		if (!text)
			break;
		struct format_text *slot = vec_push(&out->formats);
		if (!slot)
			return -ENOMEM;
		*slot = (struct format_text){ system, text, len, number_of(text, len) };
	}
	return 0;
}

static int take_systems(struct cursor *c, struct tracing_data *out)
{
	uint32_t count = take_u32(c);
	int r = 0;

	for (uint32_t i = 0; i < count && !c->bad && r == 0; i++) {
		const char *system = take_text(c);
		if (system)
			r = take_formats(c, out, system);
	}
	return r;
}

/* What stands in front of the formats. */
static void take_head(struct cursor *c, struct tracing_data *out)
{
	const char *head = take(c, sizeof(mark) - 1), *events;
	size_t events_len;

	if (!head || memcmp(head, mark, sizeof(mark) - 1) != 0) {
		c->bad = true;
		return;
	}
	take_text(c); /* the version: "0.6" or "0.5" */
	const char *sizes = take(c, 2);
	if (!sizes)
		return;
	out->big_endian = sizes[0] != 0;
	out->long_size = (uint8_t)sizes[1];
	c->swapped = out->big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
	out->page_size = take_u32(c);
	if (take_named(c, "header_page", &out->header_page, &out->header_page_len))
		take_named(c, "header_event", &events, &events_len);
}

int tracing_data_parse(struct tracing_data *out, const void *bytes, size_t len)
{
	struct cursor c = { .at = bytes, .left = len };

	*out = (struct tracing_data){ 0 };
	take_head(&c, out);
	int r = c.bad ? 0 : take_formats(&c, out, "ftrace");
	if (r == 0 && !c.bad)
		r = take_systems(&c, out);
	if (r < 0)
		return r;
	if (c.bad)
		return -EBADMSG;
	take(&c, take_u32(&c)); /* kallsyms, which perf leaves out */
	uint32_t printk = take_u32(&c);
	out->printk = take(&c, printk);
	out->printk_len = out->printk ? printk : 0;
	return 0;
}

void tracing_data_done(struct tracing_data *data)
{
	vec_done(&data->formats);
}
