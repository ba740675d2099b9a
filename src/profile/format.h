/* SPDX-License-Identifier: MIT */
/*
 * How a tracepoint lays out its payload: the text of its `format` file in tracefs, and the collection
 * of such texts in a recording (feature TRACING_DATA).
 */
#ifndef PROFILE_FORMAT_H
#define PROFILE_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

enum format_kind {
	FORMAT_NUMBER,
	FORMAT_POINTER, /* a number, better read in hexadecimal */
	FORMAT_TEXT,    /* an array of characters */
	FORMAT_ARRAY,   /* of numbers */
	FORMAT_BYTES,   /* anything else */
};

/* A field of the payload. */
struct format_field {
	const char *name; /* borrowed from the text, not terminated */
	uint32_t name_len;
	uint32_t offset, size; /* bytes */
	enum format_kind kind;
	uint32_t element; /* bytes of an array's elements */
	bool is_signed;
	bool elsewhere; /* __data_loc: at the place stand an offset and a length */
	bool relative;  /* __rel_loc: the offset counts from behind itself [5.17] */
};

struct format {
	uint64_t id;
	VEC(struct format_field) fields; /* without the common ones */
};

/*
 * Takes a text apart; `long_size` is that of the recorded machine, in bytes. -EBADMSG: it has no
 * number; -ENOMEM. Unknown lines are passed over.
 */
int format_parse(struct format *out, const char *text, size_t len, uint32_t long_size);
void format_done(struct format *format);

/* One format of a recording. */
struct format_text {
	const char *system; /* NUL-terminated; "ftrace" for those of the tracer */
	const char *text;
	size_t len;
	uint64_t id; /* UINT64_MAX: it has none */
};

/* Views of a TRACING_DATA blob, which is borrowed. */
struct tracing_data {
	bool big_endian; /* the payloads too */
	uint8_t long_size;
	uint32_t page_size;
	const char *header_page, *printk;
	size_t header_page_len, printk_len;
	VEC(struct format_text) formats;
};

/* -EBADMSG: damaged; what stands before the damage is there. -ENOMEM. */
int tracing_data_parse(struct tracing_data *out, const void *bytes, size_t len);
void tracing_data_done(struct tracing_data *data);

#endif
