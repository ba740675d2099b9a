/* SPDX-License-Identifier: MIT */
/* The feature sections of a file: where they are, and their bytes, loaded when first asked for. */
#ifndef PERFDATA_SECTIONS_H
#define PERFDATA_SECTIONS_H

#include "perfdata/feature.h"
#include "perfdata/source.h"

struct sections {
	struct source *src;
	struct loaded_feature {
		struct file_section place;
		bool present;
		uint8_t *bytes; /* with a NUL behind them; NULL until loaded */
		char *text;
	} features[FILE_FEATURES];
	uint64_t total; /* bytes of all */
	char **words;   /* of CMDLINE */
	uint32_t word_count;
	bool words_read;
};

/* Notes where a feature stands. Places outside the file, or more bytes in all than the file has,
 * are left out, which the health text tells. */
void sections_add(struct sections *s, uint32_t feature, const struct file_section *place);

/* Keeps a copy of a feature that came with a stream. -ENOMEM. */
int sections_keep(struct sections *s, uint32_t feature, const uint8_t *bytes, size_t len);

/* Reads the table at `offset` that has a place for each bit. */
void sections_read_table(struct sections *s, const uint64_t *bits, uint64_t offset);

/* 1 with the bytes, 0 when there are none, or -errno. */
int sections_bytes(struct sections *s, uint32_t feature, const void **bytes, uint64_t *len);
/* A cursor over a feature, empty when there is none. */
struct cursor sections_cursor(struct sections *s, uint32_t feature);
const char *sections_text(struct sections *s, uint32_t feature);
const char *sections_word(struct sections *s, uint32_t i);

void sections_done(struct sections *s);

#endif
