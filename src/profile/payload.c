/* SPDX-License-Identifier: MIT */
/* Payloads of tracepoints, field by field. Nothing in them is trusted to lie within them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "profile/payload.h"

/* Elements of an array that are printed. */
#define MAX_ELEMENTS 64

int payloads_init(struct payloads *p, const void *blob, size_t len, bool library,
		  traceevent_resolver *resolver, void *arg)
{
	int r = tracing_data_parse(&p->data, blob, len);

	if (r == -ENOMEM)
		return r;
	p->swapped = p->data.big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
	for (size_t i = 0; i < p->data.formats.count; i++) {
		uint64_t id = p->data.formats.at[i].id;
		uint32_t *slot = id == UINT64_MAX ? NULL : map64_at(&p->by_id, id);
		if (slot && !*slot)
			*slot = (uint32_t)i + 1;
	}
	if (library && p->data.formats.count)
		traceevent_new(&p->library, &p->data, NULL, resolver, arg);
	return r;
}

void payloads_done(struct payloads *p)
{
	traceevent_free(p->library);
	vec_each (&p->formats, format)
		format_done(format);
	vec_done(&p->formats);
	map64_done(&p->by_id);
	map64_done(&p->parsed_by);
	tracing_data_done(&p->data);
}

static const struct format_text *text_of(const struct payloads *p, uint64_t id)
{
	uint32_t index = map64_get(&p->by_id, id);

	return index ? &p->data.formats.at[index - 1] : NULL;
}

/* The format, taken apart when it is first asked for; NULL: not known. */
static const struct format *format_of(struct payloads *p, uint64_t id)
{
	const struct format_text *text = text_of(p, id);
	uint32_t *slot = text ? map64_at(&p->parsed_by, id) : NULL;

	if (!slot)
		return NULL;
	if (!*slot) {
		struct format *format = vec_push(&p->formats);
		uint32_t long_size = p->data.long_size == 4 ? 4 : 8;
		if (!format)
			return NULL;
		if (format_parse(format, text->text, text->len, long_size) < 0) {
			p->formats.count--;
			return NULL;
		}
		*slot = (uint32_t)p->formats.count;
	}
	return &p->formats.at[*slot - 1];
}

/* ---- fields ---- */

/* Where a field's bytes are: within the payload, or nowhere. */
struct bytes {
	const char *at;
	size_t len;
};

static bool find_bytes(const struct format_field *f, const char *raw, size_t len, bool swapped,
		       struct bytes *out)
{
	uint64_t offset = f->offset, size = f->size;

	if (offset > len || size > len - offset)
		return false;
	if (f->elsewhere) {
		if (size < sizeof(uint32_t))
			return false;
		uint32_t place = load_u32(raw + offset, swapped);
		uint64_t base = f->relative ? offset + size : 0;
		offset = base + (place & 0xffff);
		size = place >> 16;
		if (offset > len || size > len - offset)
			return false;
	}
	*out = (struct bytes){ raw + offset, (size_t)size };
	return true;
}

static uint64_t load_number(const char *at, size_t size, bool swapped)
{
	switch (size) {
	case 1:
		return (uint8_t)*at;
	case 2:
		return load_u16(at, swapped);
	case 4:
		return load_u32(at, swapped);
	default:
		return load_u64(at, swapped);
	}
}

static void put_number(struct out *o, const char *at, size_t size, bool is_signed, bool swapped)
{
	uint64_t value = load_number(at, size, swapped);
	unsigned shift = 64 - 8 * (unsigned)size;

	if (is_signed)
		out_int(o, (int64_t)(value << shift) >> shift, 0);
	else
		out_dec(o, value, 0, ' ');
}

static void put_bytes(struct out *o, const struct bytes *b)
{
	for (size_t i = 0; i < b->len; i++)
		out_hex(o, (uint8_t)b->at[i], 2, '0');
}

static void put_array(struct out *o, const struct format_field *f, const struct bytes *b,
		      bool swapped, bool json)
{
	size_t count = b->len / f->element;

	out_char(o, json ? '[' : '{');
	for (size_t i = 0; i < count && i < MAX_ELEMENTS; i++) {
		if (i)
			out_char(o, ',');
		put_number(o, b->at + i * f->element, f->element, f->is_signed, swapped);
	}
	if (count > MAX_ELEMENTS && !json)
		out_text(o, ",...");
	out_char(o, json ? ']' : '}');
}

static void put_characters(struct out *o, const struct bytes *b, bool json)
{
	char room[256], *text = b->len < sizeof(room) ? room : malloc(b->len + 1);

	if (!text) {
		o->failed = true;
		return;
	}
	memcpy(text, b->at, b->len);
	text[b->len] = '\0';
	if (json)
		out_json(o, text);
	else
		out_plain(o, text);
	if (text != room)
		free(text);
}

static void put_value(struct out *o, const struct format_field *f, const struct bytes *b,
		      bool swapped, bool json)
{
	const char *quote = json ? "\"" : "";

	switch (f->kind) {
	case FORMAT_TEXT:
		put_characters(o, b, json);
		break;
	case FORMAT_ARRAY:
		put_array(o, f, b, swapped, json);
		break;
	case FORMAT_NUMBER:
		put_number(o, b->at, b->len, f->is_signed, swapped);
		break;
	case FORMAT_POINTER:
		out_text(o, quote);
		out_text(o, "0x");
		out_hex(o, load_number(b->at, b->len, swapped), 0, ' ');
		out_text(o, quote);
		break;
	case FORMAT_BYTES:
		out_text(o, quote);
		put_bytes(o, b);
		out_text(o, quote);
		break;
	}
}

/* What the payload is too short for is left out. */
static void put_fields(struct out *o, const struct format *format, const char *raw, size_t len,
		       bool swapped, bool json)
{
	bool first = true;

	for (size_t i = 0; i < format->fields.count; i++) {
		const struct format_field *f = &format->fields.at[i];
		struct bytes b;
		if (!find_bytes(f, raw, len, swapped, &b))
			continue;
		if (!first)
			out_char(o, json ? ',' : ' ');
		first = false;
		if (json)
			out_char(o, '"');
		out_bytes(o, f->name, f->name_len);
		out_text(o, json ? "\":" : "=");
		put_value(o, f, &b, swapped, json);
	}
}

bool payload_text(struct payloads *p, struct out *o, uint64_t id, const struct tally_record *rec)
{
	const struct tally_record_sample *s = &rec->sample;
	const struct format_text *text = text_of(p, id);

	if (text && p->library && s->raw_len <= INT32_MAX &&
	    traceevent_put(p->library, o, text, s->raw, s->raw_len, rec->id.cpu, rec->id.time))
		return true;
	const struct format *format = format_of(p, id);
	if (format)
		put_fields(o, format, s->raw, s->raw_len, p->swapped, false);
	return format;
}

bool payload_json(struct payloads *p, struct out *o, uint64_t id, const struct tally_record *rec)
{
	const struct format *format = format_of(p, id);

	if (!format)
		return false;
	out_char(o, '{');
	put_fields(o, format, rec->sample.raw, rec->sample.raw_len, p->swapped, true);
	out_char(o, '}');
	return true;
}
