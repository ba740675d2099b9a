/* SPDX-License-Identifier: MIT */
/*
 * Call frame information made by hand (DWARF 5, 6.4.1; LSB Core, 10.6.1), and an ELF file around
 * it: code at 0x1000, the stubs of .plt at 0x1400 and .eh_frame at 0x2000, in the file as in
 * memory.
 */
#ifndef TESTS_FAKECFI_H
#define TESTS_FAKECFI_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FAKECFI_CODE  0x1000u
#define FAKECFI_STUBS 0x1400u
#define FAKECFI_FRAME 0x2000u
#define FAKECFI_PAGE  0x1000u
#define FAKECFI_ROOM  0x3800u

struct fakecfi {
	uint8_t at[FAKECFI_PAGE];
	size_t len;
};

static inline void fakecfi_add(struct fakecfi *c, const void *bytes, size_t len)
{
	memcpy(c->at + c->len, bytes, len);
	c->len += len;
}

static inline void fakecfi_u32(struct fakecfi *c, uint32_t v)
{
	fakecfi_add(c, &v, sizeof(v));
}

/* Pads with DW_CFA_nop and writes the length, which does not count itself. */
static inline void fakecfi_close_(struct fakecfi *c, size_t start)
{
	while (c->len % 8)
		c->at[c->len++] = 0;
	uint32_t len = (uint32_t)(c->len - start - 4);
	memcpy(c->at + start, &len, sizeof(len));
}

/* A CIE of augmentation "zR", or "zRS" of signal frames; addresses are PC-relative of 4 bytes. */
static inline size_t fakecfi_common(struct fakecfi *c, int signal, uint8_t code_align,
				    int8_t data_align, uint8_t ra, const void *program, size_t len)
{
	size_t start = c->len;

	fakecfi_u32(c, 0);
	fakecfi_u32(c, 0);
	fakecfi_add(c, "\1zRS", signal ? 4 : 3);
	fakecfi_add(c, "", 1);
	fakecfi_add(c, &code_align, 1);
	uint8_t align = (uint8_t)data_align & 0x7f; /* SLEB128 of one byte */
	fakecfi_add(c, &align, 1);
	fakecfi_add(c, &ra, 1);
	fakecfi_add(c, "\1\x1b", 2);
	fakecfi_add(c, program, len);
	fakecfi_close_(c, start);
	return start;
}

/* An FDE of `size` bytes of code from the address `code` on. */
static inline void fakecfi_function(struct fakecfi *c, size_t common, uint32_t code, uint32_t size,
				    const void *program, size_t len)
{
	size_t start = c->len;

	fakecfi_u32(c, 0);
	fakecfi_u32(c, (uint32_t)(c->len - common));
	fakecfi_u32(c, code - (FAKECFI_FRAME + (uint32_t)c->len));
	fakecfi_u32(c, size);
	fakecfi_add(c, "", 1);
	fakecfi_add(c, program, len);
	fakecfi_close_(c, start);
}

/*
 * The file; its length. `code` is what stands at the code's start. `section` is ".eh_frame", or
 * another.
 */
static inline size_t fakecfi_elf(uint8_t out[FAKECFI_ROOM], uint16_t machine, const char *section,
				 const void *frame, size_t frame_len, const void *code,
				 size_t code_len)
{
	char names[64] = "";
	Elf64_Ehdr head = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = machine,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(head),
		.e_ehsize = sizeof(head),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
		.e_shoff = FAKECFI_FRAME + FAKECFI_PAGE,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 4,
		.e_shstrndx = 2,
	};
	const Elf64_Phdr segment = {
		.p_type = PT_LOAD,
		.p_flags = PF_R | PF_X,
		.p_filesz = FAKECFI_FRAME + FAKECFI_PAGE,
		.p_memsz = FAKECFI_FRAME + FAKECFI_PAGE,
		.p_align = FAKECFI_PAGE,
	};
	Elf64_Shdr sections[4] = {
		[1] = { .sh_name = 1,
			.sh_type = SHT_PROGBITS,
			.sh_addr = FAKECFI_FRAME,
			.sh_offset = FAKECFI_FRAME,
			.sh_size = frame_len },
		[2] = { .sh_type = SHT_STRTAB, .sh_size = sizeof(names) },
		[3] = { .sh_name = 32,
			.sh_type = SHT_PROGBITS,
			.sh_addr = FAKECFI_STUBS,
			.sh_offset = FAKECFI_STUBS,
			.sh_size = 0x40 },
	};

	memcpy(names + 1, section, strlen(section) + 1);
	memcpy(names + 32, ".plt", sizeof(".plt"));
	sections[2].sh_offset = head.e_shoff + sizeof(sections);
	memset(out, 0, FAKECFI_ROOM);
	memcpy(out, &head, sizeof(head));
	memcpy(out + sizeof(head), &segment, sizeof(segment));
	memcpy(out + FAKECFI_CODE, code, code_len);
	memcpy(out + FAKECFI_FRAME, frame, frame_len);
	memcpy(out + head.e_shoff, sections, sizeof(sections));
	memcpy(out + sections[2].sh_offset, names, sizeof(names));
	return sections[2].sh_offset + sizeof(names);
}

#endif
