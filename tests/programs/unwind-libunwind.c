/* SPDX-License-Identifier: MIT */
/*
 * Unwinds a recording by libunwind's remote interface, x86-64 only. It asks for the index of
 * .eh_frame_hdr of the module at an address, and for memory: the copy of the stack, or the file's.
 */
#include <elf.h>
#include <fcntl.h>
#include <libunwind-x86_64.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unwinding.h"

#define MOST_MAPPINGS 4096

/* A mapped file, wholly in memory here. */
struct mapping {
	int32_t pid;
	uint64_t start, end, offset;
	const uint8_t *image;
	uint64_t size;
};

static struct {
	struct mapping mappings[MOST_MAPPINGS];
	size_t count;
	const struct tally_record *rec; /* that is unwound */
	unw_addr_space_t space;
} job;

/* It is exported, but stands in no header. */
int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t space, unw_word_t ip, unw_dyn_info_t *di,
				       unw_proc_info_t *pi, int need_unwind_info, void *arg);

static const uint8_t *open_image(const char *path, uint64_t *size)
{
	struct stat st;
	int fd;

	if (!strcmp(path, "[vdso]")) {
		*size = 8192;
		return (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	}
	fd = path[0] == '/' ? open(path, O_RDONLY) : -1;
	if (fd < 0 || fstat(fd, &st) < 0)
		return NULL;
	void *image = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	*size = (uint64_t)st.st_size;
	return image == MAP_FAILED ? NULL : image;
}

/* The last one counts where several cover an address. */
static const struct mapping *mapping_of(uint64_t address)
{
	for (size_t i = job.count; i-- > 0;) {
		const struct mapping *m = &job.mappings[i];
		if (m->pid == job.rec->id.pid && address >= m->start && address < m->end)
			return m;
	}
	return NULL;
}

/* Where the linker thinks that code is which was mapped from this page of the file. */
static uint64_t file_address(const Elf64_Phdr *heads, size_t count, uint64_t offset)
{
	for (size_t i = 0; i < count; i++)
		if (heads[i].p_type == PT_LOAD && heads[i].p_flags & PF_X &&
		    offset == (heads[i].p_offset & ~(uint64_t)4095))
			return offset - heads[i].p_offset + heads[i].p_vaddr;
	return offset;
}

static int find_proc_info(unw_addr_space_t space, unw_word_t ip, unw_proc_info_t *pi,
			  int need_unwind_info, void *arg)
{
	const struct mapping *m = mapping_of(ip);

	if (!m || m->size < sizeof(Elf64_Ehdr) || memcmp(m->image, ELFMAG, SELFMAG) != 0)
		return -UNW_ENOINFO;
	const Elf64_Ehdr *head = (const void *)m->image;
	const Elf64_Phdr *heads = (const void *)(m->image + head->e_phoff);
	uint64_t bias = m->start - file_address(heads, head->e_phnum, m->offset);
	for (size_t i = 0; i < head->e_phnum; i++) {
		if (heads[i].p_type != PT_GNU_EH_FRAME)
			continue;
		const uint8_t *index = m->image + heads[i].p_offset;
		uint32_t entries;
		/* Version 1, encodings 1b 03 3b: what all linkers write. */
		if (index[0] != 1 || index[2] != 3 || index[3] != 0x3b)
			return -UNW_ENOINFO;
		memcpy(&entries, index + 8, sizeof(entries));
		unw_dyn_info_t di = {
			.format = UNW_INFO_FORMAT_REMOTE_TABLE,
			.start_ip = m->start,
			.end_ip = m->end,
		};
		di.u.rti.segbase = heads[i].p_vaddr + bias;
		di.u.rti.table_data = di.u.rti.segbase + 12;
		di.u.rti.table_len = (uint64_t)entries * 8 / sizeof(unw_word_t);
		return UNW_OBJ(dwarf_search_unwind_table)(space, ip, &di, pi, need_unwind_info,
							  arg);
	}
	return -UNW_ENOINFO;
}

static int access_mem(unw_addr_space_t space, unw_word_t address, unw_word_t *value, int write,
		      void *arg)
{
	uint64_t word;

	(void)space, (void)arg;
	if (write)
		return -UNW_EINVAL;
	if (stack_word(job.rec, address, &word)) {
		*value = word;
		return 0;
	}
	/* Tables lie in mappings without code, which are there when data was recorded, too. */
	const struct mapping *m = mapping_of(address);
	uint64_t at = m ? address - m->start + m->offset : 0;
	if (!m || m->size < sizeof(*value) || at > m->size - sizeof(*value))
		return -UNW_EINVAL;
	memcpy(value, m->image + at, sizeof(*value));
	return 0;
}

static int access_reg(unw_addr_space_t space, unw_regnum_t reg, unw_word_t *value, int write,
		      void *arg)
{
	uint64_t word;

	(void)space, (void)arg;
	if (write || reg < 0 || reg > 16 ||
	    !tally_regs_value(job.rec, &job.rec->sample.regs_user, perf_bits[reg], &word))
		return -UNW_EBADREG;
	*value = word;
	return 0;
}

static int no_fpreg(unw_addr_space_t space, unw_regnum_t reg, unw_fpreg_t *value, int write,
		    void *arg)
{
	(void)space, (void)reg, (void)value, (void)write, (void)arg;
	return -UNW_EINVAL;
}

static int no_list(unw_addr_space_t space, unw_word_t *out, void *arg)
{
	(void)space, (void)out, (void)arg;
	return -UNW_ENOINFO;
}

static int no_resume(unw_addr_space_t space, unw_cursor_t *cursor, void *arg)
{
	(void)space, (void)cursor, (void)arg;
	return -UNW_EINVAL;
}

static int no_name(unw_addr_space_t space, unw_word_t address, char *out, size_t size,
		   unw_word_t *offset, void *arg)
{
	(void)space, (void)address, (void)out, (void)size, (void)offset, (void)arg;
	return -UNW_EINVAL;
}

static void nothing_to_put(unw_addr_space_t space, unw_proc_info_t *pi, void *arg)
{
	(void)space, (void)pi, (void)arg;
}

static void unwind(const struct tally_record *rec)
{
	static uint64_t frames[MOST_FRAMES];
	unw_cursor_t cursor;
	unw_word_t ip;
	size_t count = 0;
	int r;

	job.rec = rec;
	if (unw_init_remote(&cursor, job.space, &job) < 0)
		return;
	do {
		unw_get_reg(&cursor, UNW_REG_IP, &ip);
		if (!ip)
			break;
		frames[count++] = ip;
	} while ((r = unw_step(&cursor)) > 0 && count < MOST_FRAMES);
	print_frames(rec, frames, count, r == 0 ? "whole" : "ended");
}

static void take(void *arg, const struct tally_record *rec)
{
	(void)arg;
	if (rec->type == TALLY_RECORD_MMAP || rec->type == TALLY_RECORD_MMAP2) {
		struct mapping m = {
			.pid = rec->mmap.pid,
			.start = rec->mmap.addr,
			.end = rec->mmap.addr + rec->mmap.len,
			.offset = rec->mmap.pgoff,
		};
		m.image = open_image(rec->mmap.filename, &m.size);
		if (m.image && job.count < MOST_MAPPINGS)
			job.mappings[job.count++] = m;
	} else if (has_stack(rec)) {
		unwind(rec);
	}
}

int main(int argc, char **argv)
{
	unw_accessors_t accessors = {
		.find_proc_info = find_proc_info,
		.put_unwind_info = nothing_to_put,
		.get_dyn_info_list_addr = no_list,
		.access_mem = access_mem,
		.access_reg = access_reg,
		.access_fpreg = no_fpreg,
		.resume = no_resume,
		.get_proc_name = no_name,
	};

	if (argc != 2) {
		fprintf(stderr, "usage: unwind-libunwind FILE\n");
		return 2;
	}
	job.space = unw_create_addr_space(&accessors, 0);
	unw_set_caching_policy(job.space, UNW_CACHE_GLOBAL);
	int status = for_records(argv[1], take, NULL);
	unw_destroy_addr_space(job.space);
	return status;
}
