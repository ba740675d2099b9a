/* SPDX-License-Identifier: MIT */
/*
 * Zydis by dlopen(3), so that whoever shows no instructions needs not have it. Of its ABI we need one
 * function (Zydis/Disassembler.h, since 4.0), which fills in a struct whose size is not the same in
 * all versions: where its text stands is found out by an instruction that we know.
 */
#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/dl.h"
#include "image/disassemble.h"

/* ZYDIS_MACHINE_MODE_LONG_64, _LEGACY_32 */
#define MODE_64 0
#define MODE_32 3

#define RESULT_ROOM 8192 /* 4.0: 1,232 */
#define LENGTH_AT   16   /* behind the address, the machine mode and the mnemonic */
#define TEXT_ROOM   96
#define LONGEST     15 /* bytes of an instruction; the manuals of x86 */

static const char *const libraries[] = { "libZydis.so.4.1", "libZydis.so.4.0", "libZydis.so.4",
					 "libZydis.so" };

struct disassembler {
	void *library;
	int mode;
	size_t text_at;
	uint32_t (*decode)(int mode, uint64_t address, const void *bytes, size_t len, void *out);
	/* With room behind it: a larger struct would not be ours to give. */
	_Alignas(16) uint8_t result[RESULT_ROOM];
};

static bool run(struct disassembler *d, const uint8_t *bytes, size_t len, uint64_t address)
{
	/* The sign bit of a ZyanStatus is that of a failure. */
	return !(d->decode(d->mode, address, bytes, len, d->result) & 0x80000000u);
}

static bool find_text(struct disassembler *d)
{
	static const uint8_t nop[] = { 0x90 };
	const uint8_t *text;

	if (!run(d, nop, sizeof(nop), 0) || d->result[LENGTH_AT] != sizeof(nop))
		return false;
	text = memmem(d->result, RESULT_ROOM - TEXT_ROOM, "nop", sizeof("nop"));
	d->text_at = text ? (size_t)(text - d->result) : 0;
	return text;
}

static bool load(struct disassembler *d, bool intel)
{
	struct dl_symbol symbol = { intel ? "ZydisDisassembleIntel" : "ZydisDisassembleATT",
				    &d->decode };

	for (size_t i = 0; i < ARRAY_SIZE(libraries) && !d->library; i++)
		d->library = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL);
	return d->library && dl_find(d->library, &symbol, 1) && find_text(d);
}

int disassembler_open(struct disassembler **out, uint32_t machine, bool is_64_bit, bool intel)
{
	if (machine != EM_X86_64 && machine != EM_386)
		return -ENOTSUP;
	struct disassembler *d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->mode = is_64_bit ? MODE_64 : MODE_32;
	if (!load(d, intel)) {
		disassembler_close(d);
		return -ENOENT;
	}
	*out = d;
	return 0;
}

void disassembler_close(struct disassembler *d)
{
	if (d && d->library)
		dlclose(d->library);
	free(d);
}

/* Zydis writes addresses with all their zeros. */
static void shorten(char *text)
{
	while ((text = strstr(text, "0x0"))) {
		char *digits = text + 2;
		size_t zeros = strspn(digits, "0");
		if (!isxdigit((unsigned char)digits[zeros]))
			zeros--;
		memmove(digits, digits + zeros, strlen(digits + zeros) + 1);
		text = digits;
	}
}

size_t disassemble(struct disassembler *d, const uint8_t *bytes, size_t len, uint64_t address,
		   const char **text)
{
	size_t known = len < LONGEST ? len : LONGEST;

	if (!known || !run(d, bytes, known, address))
		return 0;
	size_t length = d->result[LENGTH_AT];
	d->result[d->text_at + TEXT_ROOM - 1] = '\0';
	shorten((char *)d->result + d->text_at);
	*text = (const char *)d->result + d->text_at;
	return length <= known ? length : 0;
}
