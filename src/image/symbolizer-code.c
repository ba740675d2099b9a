/* SPDX-License-Identifier: MIT */
/* The bytes of functions, read from their module's file when they are asked for. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/sys.h"
#include "image/symbolizer-inside.h"

/* The largest function of a program that was made by a generator is far below it. */
#define MAX_CODE ((uint64_t)16 << 20)

/* Where the file has the byte at an address. */
static bool file_offset(const struct elf_file *f, uint64_t address, uint64_t size, uint64_t *offset)
{
	for (size_t i = 0; i < f->segments.count; i++) {
		const struct elf_segment *s = &f->segments.at[i];
		if (s->executable && address >= s->address && address - s->address < s->size &&
		    size <= s->size - (address - s->address)) {
			*offset = address - s->address + s->offset;
			return true;
		}
	}
	return false;
}

static bool read_at(int fd, void *to, size_t len, uint64_t offset)
{
	return sys()->pread(fd, to, len, (off_t)offset) == (ssize_t)len;
}

/* Class, byte order and machine stand where every ELF file has them. */
static bool read_machine(int fd, struct tally_code *out)
{
	uint8_t head[EI_NIDENT + 4];

	if (!read_at(fd, head, sizeof(head), 0))
		return false;
	bool swapped = (head[EI_DATA] == ELFDATA2MSB) ==
		       (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
	out->is_64_bit = head[EI_CLASS] == ELFCLASS64;
	out->machine = load_u16(head + EI_NIDENT + 2, swapped);
	return true;
}

static bool read_code(int fd, const struct module *m, uint64_t offset, uint8_t *bytes,
		      struct tally_code *out)
{
	struct stat st;

	/* The same file as the symbols are from. */
	if (fstat(fd, &st) < 0 || st.st_dev != m->device || st.st_ino != m->inode)
		return false;
	out->mtime = st.st_mtime;
	return read_machine(fd, out) && read_at(fd, bytes, out->size, offset);
}

int tally_symbolizer_code(struct tally_symbolizer *s, const struct tally_symbolizer_query *q,
			  struct tally_code *out)
{
	uint8_t **own = &s->code;
	uint64_t offset;

	*out = (struct tally_code){ 0 };
	int r = tally_symbolizer_find(s, q->pid, q->time, q->address, q->mode, &out->frame);
	if (r <= 0)
		return r < 0 ? r : -ENOENT;
	const struct module *m = s->modules.at[out->frame.module_id];
	if (!m->opened || out->frame.function_id >= m->file.symtab.symbols.count)
		return -ENODATA;
	out->start = out->frame.module_address - out->frame.offset;
	out->size = m->file.symtab.symbols.at[out->frame.function_id].size;
	if (!out->size || out->size > MAX_CODE ||
	    !file_offset(&m->file, out->start, out->size, &offset))
		return -ENODATA;
	uint8_t *bytes = realloc(*own, out->size);
	if (!bytes)
		return -ENOMEM;
	out->bytes = *own = bytes;
	out->path = m->opened;
	int fd = sys()->open(m->opened, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0)
		return -ENODATA;
	bool ok = read_code(fd, m, offset, bytes, out);
	sys()->close(fd);
	return ok ? 0 : -ENODATA;
}
