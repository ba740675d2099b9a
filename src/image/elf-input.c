/* SPDX-License-Identifier: MIT */
/* Bytes, sections and symbols of an ELF file, each checked to lie in it. */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/sys.h"
#include "image/elf-input.h"

/* Of a segment or section of notes, and how many are looked at: linkers write two or three. */
#define MAX_NOTES      65536
#define MAX_NOTE_PARTS 16

/* 32-bit symbols are decoded by so many. */
#define PIECE 256

static int read_sections(struct elf_input *in)
{
	size_t count;

	if (elf_getshdrnum(in->elf, &count) < 0)
		return 0; /* a file may have none, or only broken ones */
	/* Symbols cannot name those from SHN_LORESERVE on without a table that no program has. */
	for (size_t i = 0; i < count && i < SHN_LORESERVE; i++) {
		Elf_Scn *scn = elf_getscn(in->elf, i);
		GElf_Shdr *head = vec_push(&in->sections);
		if (!head)
			return -ENOMEM;
		if (!scn || !gelf_getshdr(scn, head))
			*head = (GElf_Shdr){ .sh_type = SHT_NULL };
	}
	return 0;
}

int elf_input_open(struct elf_input *in, int fd)
{
	struct stat st;

	*in = (struct elf_input){ .fd = fd };
	if (fstat(fd, &st) < 0 || st.st_size < 0 || elf_version(EV_CURRENT) == EV_NONE)
		return -ENOEXEC;
	in->size = (uint64_t)st.st_size;
	in->elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!in->elf || elf_kind(in->elf) != ELF_K_ELF || !gelf_getehdr(in->elf, &in->head))
		return -ENOEXEC;
	return read_sections(in);
}

void elf_input_done(struct elf_input *in)
{
	elf_end(in->elf);
	vec_done(&in->sections);
}

bool elf_input_read(const struct elf_input *in, void *out, size_t len, uint64_t offset)
{
	return sys_pread_all(in->fd, out, len, offset, in->size);
}

bool elf_input_is_swapped(const struct elf_input *in)
{
	bool little = in->head.e_ident[EI_DATA] == ELFDATA2LSB;

	return little != (BYTE_ORDER == LITTLE_ENDIAN);
}

const GElf_Shdr *elf_input_section(const struct elf_input *in, size_t index)
{
	if (index >= in->sections.count)
		return NULL;
	const GElf_Shdr *s = &in->sections.at[index];
	if (s->sh_type == SHT_NULL || s->sh_size > ELF_INPUT_MAX_SECTION)
		return NULL;
	if (s->sh_type != SHT_NOBITS &&
	    (s->sh_offset > in->size || s->sh_size > in->size - s->sh_offset))
		return NULL;
	return s;
}

const char *elf_input_section_name(const struct elf_input *in, const GElf_Shdr *section)
{
	size_t names;

	if (elf_getshdrstrndx(in->elf, &names) < 0)
		return "";
	/* libelf answers NULL for a text that does not end in its section. */
	const char *name = elf_strptr(in->elf, names, section->sh_name);
	return name ? name : "";
}

static struct build_id build_id_at(const struct elf_input *in, uint64_t offset, uint64_t size)
{
	struct build_id id = { 0 };

	if (!size || size > MAX_NOTES)
		return id;
	void *notes = malloc(size);
	if (notes && elf_input_read(in, notes, size, offset))
		id = build_id_from_notes(notes, size, elf_input_is_swapped(in));
	free(notes);
	return id;
}

/* By the segments, which outlive what strips the sections. */
static struct build_id build_id_of_segments(const struct elf_input *in)
{
	struct build_id id = { 0 };
	size_t count;

	if (elf_getphdrnum(in->elf, &count) < 0)
		return id;
	for (size_t i = 0, seen = 0; i < count && seen < MAX_NOTE_PARTS && !id.len; i++) {
		GElf_Phdr head;
		if (!gelf_getphdr(in->elf, (int)i, &head) || head.p_type != PT_NOTE)
			continue;
		seen++;
		id = build_id_at(in, head.p_offset, head.p_filesz);
	}
	return id;
}

struct build_id elf_input_build_id(const struct elf_input *in)
{
	struct build_id id = build_id_of_segments(in);

	/* Modules of the kernel have no segments, and neither have dwz's files. */
	for (size_t i = 1, seen = 0; i < in->sections.count && seen < MAX_NOTE_PARTS && !id.len;
	     i++) {
		const GElf_Shdr *section = elf_input_section(in, i);
		if (!section || section->sh_type != SHT_NOTE)
			continue;
		seen++;
		id = build_id_at(in, section->sh_offset, section->sh_size);
	}
	return id;
}

static size_t symbol_size(const struct elf_input *in)
{
	return in->head.e_ident[EI_CLASS] == ELFCLASS64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
}

size_t elf_input_symbols(const struct elf_input *in, const GElf_Shdr *table)
{
	return table->sh_size / symbol_size(in);
}

/* From the file's byte order to ours, in place. */
static bool decode(const struct elf_input *in, void *symbols, size_t len)
{
	Elf_Data data = {
		.d_buf = symbols,
		.d_size = len,
		.d_type = ELF_T_SYM,
		.d_version = EV_CURRENT,
	};

	return gelf_xlatetom(in->elf, &data, &data, in->head.e_ident[EI_DATA]) != NULL;
}

static bool read_small(const struct elf_input *in, const GElf_Shdr *table, size_t first,
		       size_t count, GElf_Sym *out)
{
	Elf32_Sym piece[PIECE];

	while (count) {
		size_t n = count < PIECE ? count : PIECE;
		size_t len = n * sizeof(*piece);
		if (!elf_input_read(in, piece, len, table->sh_offset + first * sizeof(*piece)) ||
		    !decode(in, piece, len))
			return false;
		for (size_t i = 0; i < n; i++)
			*out++ = (GElf_Sym){
				.st_name = piece[i].st_name,
				.st_info = piece[i].st_info,
				.st_other = piece[i].st_other,
				.st_shndx = piece[i].st_shndx,
				.st_value = piece[i].st_value,
				.st_size = piece[i].st_size,
			};
		first += n;
		count -= n;
	}
	return true;
}

bool elf_input_read_symbols(const struct elf_input *in, const GElf_Shdr *table, size_t first,
			    size_t count, GElf_Sym *out)
{
	size_t all = elf_input_symbols(in, table);

	if (first > all || count > all - first)
		return false;
	if (symbol_size(in) == sizeof(Elf32_Sym))
		return read_small(in, table, first, count, out);
	size_t len = count * sizeof(*out);
	return elf_input_read(in, out, len, table->sh_offset + first * sizeof(*out)) &&
	       decode(in, out, len);
}
