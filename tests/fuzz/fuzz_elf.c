/* SPDX-License-Identifier: MIT */
/*
 * The reader of ELF files. Whatever is read has sorted functions that do not wrap, look-ups that
 * agree with them, and names that end.
 */
#include <string.h>

#include "fuzz.h"
#include "image/elf.h"

/* Among the functions that begin before `address`, the last one that covers it. */
static uint32_t covering(const struct symtab *t, uint32_t distance)
{
	for (size_t i = t->symbols.count; i-- > 0;) {
		const struct symbol *s = &t->symbols.at[i];
		if (s->start <= distance && distance - s->start < s->size)
			return (uint32_t)i;
	}
	return SYMTAB_NONE;
}

/* In the cost of a look-up by walking lies the limit to so many. */
#define LOOKUPS 64

static void check_file(const struct elf_file *f)
{
	const struct symtab *t = &f->symtab;

	for (size_t i = 0; i < t->symbols.count; i++) {
		const struct symbol *s = &t->symbols.at[i];
		must(i == 0 || s[-1].start < s->start);
		must(s->size <= UINT32_MAX - s->start);
		must(strlen(elf_file_name(f, (uint32_t)i)) < f->names.count + f->plt_names.count);
	}
	for (size_t i = 0; i < t->symbols.count && i < LOOKUPS; i++) {
		const struct symbol *s = &t->symbols.at[i];
		uint32_t places[] = { s->start, s->start + s->size / 2, s->start + s->size };
		for (size_t k = 0; k < sizeof(places) / sizeof(places[0]); k++)
			must(symtab_find(t, t->base + places[k]) == covering(t, places[k]) ||
			     t->base > UINT64_MAX - places[k]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct elf_file f = { 0 };
	uint64_t address;

	if (elf_file_read_memory(&f, data, size) == 0 && elf_file_seal(&f) == 0) {
		check_file(&f);
		for (uint64_t offset = 0; offset <= size; offset += size / 16 + 1)
			elf_file_address(&f, offset, &address);
	}
	elf_file_done(&f);
	return 0;
}
