/* SPDX-License-Identifier: MIT */
/* Reading and decompressing sections. */
#include <endian.h>
#include <errno.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/bytes.h"
#include "image/bulk.h"
#include "image/elf-content.h"
#include "image/inflate.h"

#ifndef ELFCOMPRESS_ZSTD /* glibc 2.37 */
#define ELFCOMPRESS_ZSTD 2
#endif

/*
 * No real section shrinks to a thousandth of its size; what claims to is made to fill the memory of
 * its reader.
 */
#define MAX_RATIO 1024

/* Symbols alone stay far below it; the decoder's dictionary too. */
#define MAX_UNXZ  ((uint64_t)256 << 20)
#define XZ_MEMORY ((uint64_t)128 << 20)

#define OLD_MAGIC "ZLIB" /* then the size, 8 bytes, big-endian */
#define OLD_HEAD  12

static bool is_named(const struct elf_input *in, const GElf_Shdr *section, const char *name)
{
	const char *own = elf_input_section_name(in, section);

	return !strcmp(own, name) || (!strncmp(own, ".z", 2) && !strncmp(name, ".debug_", 7) &&
				      !strcmp(own + 2, name + 1));
}

const GElf_Shdr *elf_content_find(const struct elf_input *in, const char *name)
{
	for (size_t i = 1; i < in->sections.count; i++) {
		const GElf_Shdr *section = elf_input_section(in, i);
		if (section && section->sh_type != SHT_NOBITS && is_named(in, section, name))
			return section;
	}
	return NULL;
}

static bool inflate_zlib(struct elf_content *out, const uint8_t *packed, size_t len)
{
	return inflate_whole(out->at, out->size, packed, len);
}

static bool inflate_zstd(struct elf_content *out, const uint8_t *packed, size_t len)
{
	return ZSTD_decompress(out->at, out->size, packed, len) == out->size;
}

/* `size` is what the packed bytes claim to become. */
static int unpack(struct elf_content *out,
		  bool (*inflate)(struct elf_content *, const uint8_t *, size_t), uint64_t size,
		  const uint8_t *packed, size_t len)
{
	struct elf_content content = { 0 };

	if (!size)
		return *out = content, 0;
	if (size > ELF_INPUT_MAX_SECTION || size / MAX_RATIO > len)
		return -ENOEXEC;
	content.size = (size_t)size;
	content.at = bulk_alloc(content.size);
	if (!content.at)
		return -ENOMEM;
	if (!inflate(&content, packed, len)) {
		elf_content_done(&content);
		return -ENOEXEC;
	}
	*out = content;
	return 0;
}

static int unpack_standard(struct elf_content *out, const struct elf_input *in, const uint8_t *raw,
			   size_t len)
{
	bool swapped = elf_input_is_swapped(in);
	bool wide = in->head.e_ident[EI_CLASS] == ELFCLASS64;
	size_t head = wide ? sizeof(Elf64_Chdr) : sizeof(Elf32_Chdr);

	if (len < head)
		return -ENOEXEC;
	uint32_t type = load_u32(raw, swapped);
	uint64_t size = wide ? load_u64(raw + offsetof(Elf64_Chdr, ch_size), swapped)
			     : load_u32(raw + offsetof(Elf32_Chdr, ch_size), swapped);
	if (type == ELFCOMPRESS_ZLIB)
		return unpack(out, inflate_zlib, size, raw + head, len - head);
	if (type == ELFCOMPRESS_ZSTD)
		return unpack(out, inflate_zstd, size, raw + head, len - head);
	return -ENOTSUP;
}

static int unpack_old(struct elf_content *out, const uint8_t *raw, size_t len)
{
	uint64_t size;

	if (len < OLD_HEAD)
		return -ENOEXEC;
	memcpy(&size, raw + 4, sizeof(size));
	return unpack(out, inflate_zlib, be64toh(size), raw + OLD_HEAD, len - OLD_HEAD);
}

int elf_content_read(struct elf_content *out, const struct elf_input *in, const GElf_Shdr *section)
{
	struct elf_content raw = { .size = section->sh_size };

	if (section->sh_type == SHT_NOBITS)
		return -ENOEXEC;
	if (!raw.size)
		return *out = raw, 0;
	raw.at = bulk_alloc(raw.size);
	if (!raw.at)
		return -ENOMEM;
	int r = -ENOEXEC;
	if (elf_input_read(in, raw.at, raw.size, section->sh_offset)) {
		bool old = !strncmp(elf_input_section_name(in, section), ".zdebug_", 8) &&
			   raw.size >= 4 && !memcmp(raw.at, OLD_MAGIC, 4);
		if (section->sh_flags & SHF_COMPRESSED)
			r = unpack_standard(out, in, raw.at, raw.size);
		else if (old)
			r = unpack_old(out, raw.at, raw.size);
		else
			return *out = raw, 0;
	}
	elf_content_done(&raw);
	return r;
}

/* How large it becomes stands nowhere, so the memory grows with it. */
int elf_content_unpack_xz(struct elf_content *out, const struct elf_content *packed)
{
	uint64_t most = packed->size < MAX_UNXZ / MAX_RATIO ? packed->size * MAX_RATIO : MAX_UNXZ;
	lzma_stream stream = LZMA_STREAM_INIT;
	struct elf_content content = { 0 };
	size_t room = 0;

	lzma_ret r = lzma_stream_decoder(&stream, XZ_MEMORY, 0);
	stream.next_in = packed->at;
	stream.avail_in = packed->size;
	while (r == LZMA_OK && room < most) {
		size_t more = room ? room : packed->size * 4;
		uint8_t *grown = realloc(content.at, room + more);
		if (!grown) {
			r = LZMA_MEM_ERROR;
			break;
		}
		content.at = grown;
		stream.next_out = grown + room;
		stream.avail_out = more;
		room += more;
		r = lzma_code(&stream, LZMA_FINISH);
	}
	content.size = room - stream.avail_out;
	lzma_end(&stream);
	if (r != LZMA_STREAM_END) {
		elf_content_done(&content);
		return r == LZMA_MEM_ERROR ? -ENOMEM : -ENOEXEC;
	}
	*out = content;
	return 0;
}

void elf_content_done(struct elf_content *content)
{
	free(content->at);
	*content = (struct elf_content){ 0 };
}
