/* SPDX-License-Identifier: MIT */
/* Feature sections, loaded when first asked for: some are large and most readers want a few. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <tally/reader.h>

#include "base/bytes.h"
#include "base/vec.h"
#include "perfdata/sections.h"

/* The largest real ones, BPF type information of a whole kernel, have a few MiB. */
#define FEATURE_LIMIT (256u << 20)

void sections_add(struct sections *s, uint32_t feature, const struct file_section *place)
{
	if (feature >= FILE_FEATURES || s->features[feature].present)
		return;
	/* Sections do not overlap, so together they cannot have more than the file. */
	if (!source_holds(s->src, place) || place->size > FEATURE_LIMIT ||
	    place->size > s->src->size - s->total) {
		source_complain(s->src,
				"has feature %s (%u) with %" PRIu64 " bytes at offset %" PRIu64
				", which does not fit the file and is left out",
				feature_name(feature), feature, place->size, place->offset);
		return;
	}
	s->total += place->size;
	s->features[feature].place = *place;
	s->features[feature].present = true;
}

int sections_keep(struct sections *s, uint32_t feature, const uint8_t *bytes, size_t len)
{
	struct loaded_feature *f = feature < FILE_FEATURES ? &s->features[feature] : NULL;

	if (!f || f->present)
		return 0;
	f->bytes = malloc(len + 1);
	if (!f->bytes)
		return -ENOMEM;
	memcpy(f->bytes, bytes, len);
	f->bytes[len] = '\0';
	f->place.size = len;
	f->present = true;
	return 0;
}

static bool has_bit(const uint64_t *bits, uint32_t i)
{
	return bits[i / 64] >> i % 64 & 1;
}

void sections_read_table(struct sections *s, const uint64_t *bits, uint64_t offset)
{
	uint8_t table[FILE_FEATURES * sizeof(struct file_section)];
	const uint8_t *entry = table;
	struct file_section at = { offset, 0 };

	for (uint32_t i = 0; i < FILE_FEATURES; i++)
		at.size += has_bit(bits, i) * sizeof(struct file_section);
	if (!at.size)
		return;
	if (!source_holds(s->src, &at) ||
	    source_read(s->src, table, at.offset, at.size, "the table of features", NULL) < 0) {
		source_complain(s->src,
				"has a table of features, at offset %" PRIu64 ", that is cut off",
				offset);
		return;
	}
	for (uint32_t i = 0; i < FILE_FEATURES; i++) {
		if (!has_bit(bits, i))
			continue;
		struct file_section place = { load_u64(entry, s->src->swapped),
					      load_u64(entry + 8, s->src->swapped) };
		sections_add(s, i, &place);
		entry += sizeof(place);
	}
}

static int load(struct sections *s, struct loaded_feature *f)
{
	if (f->bytes)
		return 0;
	uint8_t *bytes = malloc(f->place.size + 1);
	if (!bytes)
		return -ENOMEM;
	int r = source_read(s->src, bytes, f->place.offset, f->place.size, "a feature", NULL);
	if (r < 0) {
		free(bytes);
		return r;
	}
	bytes[f->place.size] = '\0';
	f->bytes = bytes;
	return 0;
}

int sections_bytes(struct sections *s, uint32_t feature, const void **bytes, uint64_t *len)
{
	struct loaded_feature *f = feature < FILE_FEATURES ? &s->features[feature] : NULL;

	if (!f || !f->present)
		return 0;
	int r = load(s, f);
	if (r < 0)
		return r;
	*bytes = f->bytes;
	*len = f->place.size;
	return 1;
}

struct cursor sections_cursor(struct sections *s, uint32_t feature)
{
	const void *bytes = NULL;
	uint64_t len = 0;

	sections_bytes(s, feature, &bytes, &len);
	return (struct cursor){ .at = bytes, .left = len, .swapped = s->src->swapped };
}

const char *sections_text(struct sections *s, uint32_t feature)
{
	struct loaded_feature *f = feature < FILE_FEATURES ? &s->features[feature] : NULL;

	if (!f || !f->present)
		return NULL;
	if (!f->text) {
		struct cursor c = sections_cursor(s, feature);
		struct text text = take_text(&c);
		f->text = c.bad ? NULL : strndup(text.at, text.len);
	}
	return f->text;
}

static void read_words(struct sections *s)
{
	struct cursor c = sections_cursor(s, TALLY_FEATURE_CMDLINE);
	uint32_t count = take_u32(&c);
	VEC(char *) words = { 0 };

	for (uint32_t i = 0; i < count; i++) {
		struct text text = take_text(&c);
		char **slot = c.bad ? NULL : vec_push(&words);
		if (!slot || !(*slot = strndup(text.at, text.len)))
			break;
	}
	s->words = words.at;
	s->word_count = (uint32_t)words.count;
	s->words_read = true;
}

const char *sections_word(struct sections *s, uint32_t i)
{
	if (!s->words_read)
		read_words(s);
	return i < s->word_count ? s->words[i] : NULL;
}

void sections_done(struct sections *s)
{
	for (uint32_t i = 0; i < FILE_FEATURES; i++) {
		free(s->features[i].bytes);
		free(s->features[i].text);
	}
	for (uint32_t i = 0; i < s->word_count; i++)
		free(s->words[i]);
	free(s->words);
	*s = (struct sections){ 0 };
}
