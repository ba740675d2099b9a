/* SPDX-License-Identifier: MIT */
/*
 * The sections with unwind tables of an ELF file: .eh_frame with its index, which every program
 * has, and .debug_frame, which Go and some assembler code have instead. A file without section
 * headers has .eh_frame_hdr as a segment, which tells where .eh_frame begins.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "image/elf-input.h"
#include "image/unwind-table.h"

#define MAX_SEGMENTS 64

/* zlib and zstd make a byte of so many at most: more is no honest section. */
#define MAX_INFLATION 2048
#define MAX_SECTION   ((uint64_t)1 << 28)

static int read_bytes(const struct elf_input *in, struct unwind_part *p, uint64_t offset,
		      uint64_t len, uint64_t address)
{
	if (len > MAX_SECTION || offset > in->size || len > in->size - offset || !len)
		return 0;
	if (!vec_reserve(&p->bytes, len))
		return -ENOMEM;
	if (!elf_input_read(in, p->bytes.at, len, offset))
		return 0;
	p->bytes.count = len;
	p->section.bytes = p->bytes.at;
	p->section.len = len;
	p->section.address = address;
	return 0;
}

/* libelf inflates a compressed section into memory of its own. */
static int read_compressed(const struct elf_input *in, size_t index, struct unwind_part *p)
{
	Elf_Scn *scn = elf_getscn(in->elf, index);
	GElf_Shdr head;
	GElf_Chdr packed;

	if (!scn || !gelf_getshdr(scn, &head) || !gelf_getchdr(scn, &packed) ||
	    packed.ch_size > MAX_SECTION || packed.ch_size / MAX_INFLATION > head.sh_size ||
	    elf_compress(scn, 0, 0) < 0)
		return 0;
	const Elf_Data *data = elf_rawdata(scn, NULL);
	if (!data || !data->d_buf || !data->d_size)
		return 0;
	if (!vec_reserve(&p->bytes, data->d_size))
		return -ENOMEM;
	memcpy(p->bytes.at, data->d_buf, data->d_size);
	p->bytes.count = data->d_size;
	p->section.bytes = p->bytes.at;
	p->section.len = data->d_size;
	return 0;
}

static int read_section(const struct elf_input *in, const char *name, struct unwind_part *p)
{
	for (size_t i = 1; i < in->sections.count; i++) {
		const GElf_Shdr *s = elf_input_section(in, i);
		if (!s || s->sh_type == SHT_NOBITS ||
		    strcmp(elf_input_section_name(in, s), name) != 0)
			continue;
		if (s->sh_flags & SHF_COMPRESSED)
			return read_compressed(in, i, p);
		return read_bytes(in, p, s->sh_offset, s->sh_size, s->sh_addr);
	}
	return 0;
}

static void note_stubs(struct unwind_table *t, const struct elf_input *in)
{
	for (size_t i = 1; i < in->sections.count && t->stub_count < UNWIND_STUBS; i++) {
		const GElf_Shdr *s = elf_input_section(in, i);
		const char *name = s ? elf_input_section_name(in, s) : "";
		if (strncmp(name, ".plt", 4) != 0 || s->sh_size > UINT64_MAX - s->sh_addr)
			continue;
		t->stubs[t->stub_count++] = (struct unwind_stubs){
			.start = s->sh_addr,
			.end = s->sh_addr + s->sh_size,
			.lazy = !strcmp(name, ".plt"),
		};
	}
}

/* The segment that is .eh_frame_hdr, of length 0 where there is none. */
static GElf_Phdr find_header(const struct elf_input *in)
{
	GElf_Phdr head;
	size_t count;

	if (elf_getphdrnum(in->elf, &count) < 0)
		count = 0;
	for (size_t i = 0; i < count && i < MAX_SEGMENTS; i++)
		if (gelf_getphdr(in->elf, (int)i, &head) && head.p_type == PT_GNU_EH_FRAME)
			return head;
	return (GElf_Phdr){ 0 };
}

/* From where the header says that it begins to the end of that segment. */
static int read_by_header(struct unwind_table *t, const struct elf_input *in,
			  const struct cfi_section *header)
{
	size_t at = 4;
	uint64_t start;

	if (header->len < at ||
	    cfi_pointer(header, &at, header->bytes[1], header->address, &start) < 0)
		return 0;
	vec_each (&t->layout.segments, s)
		if (start >= s->address && start - s->address < s->size)
			return read_bytes(in, &t->parts[0], s->offset + (start - s->address),
					  s->size - (start - s->address), start);
	return 0;
}

static int read_tables(struct unwind_table *t, const struct elf_input *in)
{
	struct unwind_part header = { 0 };
	const struct cfi_section none = { 0 };
	const GElf_Phdr segment = find_header(in);
	int r = elf_file_read_segments(&t->layout, in);

	note_stubs(t, in);
	if (r == 0)
		r = read_bytes(in, &header, segment.p_offset, segment.p_filesz, segment.p_vaddr);
	if (r == 0)
		r = read_section(in, ".eh_frame", &t->parts[0]);
	if (r == 0 && !t->parts[0].section.len)
		r = read_by_header(t, in, &header.section);
	t->parts[1].section.debug_frame = true;
	if (r == 0)
		r = read_section(in, ".debug_frame", &t->parts[1]);
	if (r == 0)
		r = unwind_table_index(&t->parts[0], &header.section);
	if (r == 0)
		r = unwind_table_index(&t->parts[1], &none);
	vec_done(&header.bytes);
	return r;
}

int unwind_table_read(struct unwind_table *t, int fd)
{
	struct elf_input in;
	int r = elf_input_open(&in, fd);

	if (r == 0 &&
	    (in.head.e_ident[EI_CLASS] != ELFCLASS64 || in.head.e_ident[EI_DATA] != ELFDATA2LSB))
		r = -ENOEXEC;
	if (r == 0) {
		t->machine = in.head.e_machine;
		r = read_tables(t, &in);
	}
	elf_input_done(&in);
	if (r == 0 && !t->parts[0].entries.count && !t->parts[1].entries.count)
		r = -ENODATA;
	return r;
}
