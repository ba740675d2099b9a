/* SPDX-License-Identifier: MIT */
/* Formats of tracepoints, from the text that the kernel makes (kernel/trace/trace_events.c). */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/format.h"

/* A stretch of text. */
struct span {
	const char *at;
	size_t len;
};

static bool starts(const struct span *s, const char *word)
{
	size_t len = strlen(word);

	return s->len >= len && !memcmp(s->at, word, len);
}

static void skip(struct span *s, size_t n)
{
	s->at += n;
	s->len -= n;
}

static void trim(struct span *s)
{
	while (s->len && isspace((unsigned char)s->at[0]))
		skip(s, 1);
	while (s->len && isspace((unsigned char)s->at[s->len - 1]))
		s->len--;
}

/* What stands before the next `end`, which is taken too. */
static struct span take(struct span *s, char end)
{
	const char *found = s->len ? memchr(s->at, end, s->len) : NULL;
	struct span part = { s->at, found ? (size_t)(found - s->at) : s->len };

	skip(s, part.len + (found != NULL));
	return part;
}

static bool has(const struct span *s, const char *word)
{
	return memmem(s->at, s->len, word, strlen(word)) != NULL;
}

/* A decimal number with a name in front: "size:8". */
static bool labelled(struct span part, const char *label, uint64_t *out)
{
	trim(&part);
	if (!starts(&part, label))
		return false;
	skip(&part, strlen(label));
	trim(&part);
	uint64_t value = 0;
	size_t digits = 0;
	for (; digits < part.len && isdigit((unsigned char)part.at[digits]); digits++) {
		if (value > UINT32_MAX)
			return false;
		value = value * 10 + (uint64_t)(part.at[digits] - '0');
	}
	*out = value;
	return digits && digits == part.len;
}

/* "char prev_comm[16]" into type and name; the brackets may belong to either. */
static bool split_declaration(struct span text, struct span *type, struct span *name)
{
	trim(&text);
	size_t end = text.len;

	if (end && text.at[end - 1] == ']')
		while (end && text.at[end - 1] != '[')
			end--;
	if (end && end != text.len)
		end--;
	size_t start = end;
	while (start && (isalnum((unsigned char)text.at[start - 1]) || text.at[start - 1] == '_'))
		start--;
	*name = (struct span){ text.at + start, end - start };
	*type = (struct span){ text.at, start };
	trim(type);
	return name->len && type->len && name->len < UINT16_MAX;
}

static bool is_character(const struct span *type)
{
	return has(type, "char") && !has(type, "*");
}

/* Types of numbers by their names, for the elements of arrays. */
static uint32_t element_size(const struct span *type, uint32_t long_size)
{
	static const struct {
		const char *word;
		uint32_t size;
	} words[] = {
		{ "64", 8 },   { "long long", 8 }, { "32", 4 },   { "16", 2 },  { "8", 1 },
		{ "char", 1 }, { "short", 2 },     { "long", 0 }, { "int", 4 }, { "bool", 1 },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (has(type, words[i].word))
			return words[i].size ? words[i].size : long_size;
	return 0;
}

static enum format_kind kind_of(const struct format_field *f, const struct span *type, bool array)
{
	if (array && is_character(type) && !has(type, "unsigned"))
		return FORMAT_TEXT;
	if (array || f->elsewhere)
		return f->element ? FORMAT_ARRAY : FORMAT_BYTES;
	if (f->size != 1 && f->size != 2 && f->size != 4 && f->size != 8)
		return FORMAT_BYTES;
	return has(type, "*") ? FORMAT_POINTER : FORMAT_NUMBER;
}

/* "field:TYPE NAME;	offset:8;	size:16;	signed:0;" */
static bool parse_field(struct format_field *f, struct span line, uint32_t long_size)
{
	struct span declaration = take(&line, ';'), type, name;
	uint64_t offset, size, is_signed = 0;

	if (!labelled(take(&line, ';'), "offset:", &offset) ||
	    !labelled(take(&line, ';'), "size:", &size))
		return false;
	labelled(take(&line, ';'), "signed:", &is_signed);
	if (!split_declaration(declaration, &type, &name))
		return false;
	*f = (struct format_field){
		.name = name.at,
		.name_len = (uint32_t)name.len,
		.offset = (uint32_t)offset,
		.size = (uint32_t)size,
		.is_signed = is_signed != 0,
		.relative = starts(&type, "__rel_loc"),
	};
	f->elsewhere = f->relative || starts(&type, "__data_loc");
	bool array = has(&declaration, "[");
	f->element = element_size(&type, long_size);
	if (!f->elsewhere && (!f->element || f->size % f->element))
		f->element = 0;
	f->kind = kind_of(f, &type, array);
	return true;
}

int format_parse(struct format *out, const char *text, size_t len, uint32_t long_size)
{
	struct span rest = { text, len };
	bool numbered = false;

	*out = (struct format){ 0 };
	while (rest.len) {
		struct span line = take(&rest, '\n');
		struct format_field field;
		trim(&line);
		if (labelled(line, "ID:", &out->id))
			numbered = true;
		if (starts(&line, "print fmt:"))
			break;
		if (!starts(&line, "field:"))
			continue;
		skip(&line, strlen("field:"));
		if (!parse_field(&field, line, long_size) ||
		    (field.name_len > 7 && !memcmp(field.name, "common_", 7)))
			continue;
		struct format_field *slot = vec_push(&out->fields);
		if (!slot) {
			format_done(out);
			return -ENOMEM;
		}
		*slot = field;
	}
	if (numbered)
		return 0;
	format_done(out);
	return -EBADMSG;
}

void format_done(struct format *format)
{
	vec_done(&format->fields);
}
