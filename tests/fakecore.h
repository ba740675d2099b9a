/* SPDX-License-Identifier: MIT */
/*
 * A core file made by hand, by core(5), elf(5) and the structures of the kernel's
 * include/uapi/linux/elfcore.h as 64-bit programs have them: headers, then notes, then memory.
 */
#ifndef TESTS_FAKECORE_H
#define TESTS_FAKECORE_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FAKECORE_ROOM        65536u
#define FAKECORE_NOTES       0x400u  /* where notes begin */
#define FAKECORE_MEMORY      0x4000u /* and memory */
#define FAKECORE_X86_WORDS   27
#define FAKECORE_ARM64_WORDS 34

struct fakecore {
	uint8_t at[FAKECORE_ROOM];
	size_t notes, memory; /* where the next one goes */
	unsigned segments;    /* PT_LOAD */
	unsigned words;
};

static inline void fakecore_begin(struct fakecore *c, uint16_t machine)
{
	const Elf64_Ehdr head = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_CORE,
		.e_machine = machine,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(head),
		.e_ehsize = sizeof(head),
		.e_phentsize = sizeof(Elf64_Phdr),
	};

	memset(c, 0, sizeof(*c));
	memcpy(c->at, &head, sizeof(head));
	c->notes = FAKECORE_NOTES;
	c->memory = FAKECORE_MEMORY;
	c->words = machine == EM_AARCH64 ? FAKECORE_ARM64_WORDS : FAKECORE_X86_WORDS;
}

static inline void fakecore_note(struct fakecore *c, uint32_t type, const void *desc, size_t len)
{
	const Elf64_Nhdr head = { 5, (uint32_t)len, type };

	memcpy(c->at + c->notes, &head, sizeof(head));
	memcpy(c->at + c->notes + 12, "CORE", 5);
	memcpy(c->at + c->notes + 20, desc, len);
	c->notes += 20 + (len + 3) / 4 * 4;
}

/* The registers are in the order of struct user_regs_struct, or user_pt_regs. */
static inline void fakecore_thread(struct fakecore *c, int32_t tid, uint16_t signal,
				   const uint64_t *regs)
{
	uint8_t status[112 + 8 * FAKECORE_ARM64_WORDS + 8] = { 0 };

	memcpy(status + 12, &signal, sizeof(signal));
	memcpy(status + 32, &tid, sizeof(tid));
	memcpy(status + 112, regs, 8 * c->words);
	fakecore_note(c, NT_PRSTATUS, status, 112 + 8 * (size_t)c->words + 8);
}

static inline void fakecore_process(struct fakecore *c, int32_t pid, const char *comm)
{
	uint8_t info[136] = { 0 };

	memcpy(info + 24, &pid, sizeof(pid));
	memcpy(info + 40, comm, strnlen(comm, 16));
	fakecore_note(c, NT_PRPSINFO, info, sizeof(info));
}

/* NT_FILE of one mapping; `page` is in bytes what `offset` counts in. */
static inline void fakecore_file(struct fakecore *c, uint64_t start, uint64_t end, uint64_t page,
				 uint64_t offset, const char *path)
{
	const uint64_t words[] = { 1, page, start, end, offset };
	uint8_t desc[256];

	memcpy(desc, words, sizeof(words));
	memcpy(desc + sizeof(words), path, strlen(path) + 1);
	fakecore_note(c, NT_FILE, desc, sizeof(words) + strlen(path) + 1);
}

static inline void fakecore_header_(struct fakecore *c, unsigned i, const Elf64_Phdr *p)
{
	memcpy(c->at + sizeof(Elf64_Ehdr) + i * sizeof(*p), p, sizeof(*p));
}

/* Memory of `size` bytes, of which the file keeps `len`. */
static inline void fakecore_memory(struct fakecore *c, uint64_t start, uint64_t size,
				   const void *bytes, size_t len)
{
	const Elf64_Phdr p = {
		.p_type = PT_LOAD,
		.p_vaddr = start,
		.p_memsz = size,
		.p_offset = c->memory,
		.p_filesz = len,
	};

	fakecore_header_(c, 1 + c->segments++, &p);
	memcpy(c->at + c->memory, bytes, len);
	c->memory += len;
}

/* The headers of all; how long the file is. */
static inline size_t fakecore_end(struct fakecore *c)
{
	const Elf64_Phdr notes = {
		.p_type = PT_NOTE,
		.p_offset = FAKECORE_NOTES,
		.p_filesz = c->notes - FAKECORE_NOTES,
	};
	uint16_t count = (uint16_t)(1 + c->segments);

	fakecore_header_(c, 0, &notes);
	memcpy(c->at + offsetof(Elf64_Ehdr, e_phnum), &count, sizeof(count));
	return c->memory;
}

#endif
