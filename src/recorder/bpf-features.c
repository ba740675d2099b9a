/* SPDX-License-Identifier: MIT */
/*
 * BPF_PROG_INFO: a count, and for each program the length of the kernel's struct and of its arrays,
 * a bit for each array that follows, the struct and the arrays, in which the struct's pointers
 * become offsets (struct perf_bpil of perf's util/bpf-utils.h). BPF_BTF: a count, and for each set of
 * types its id, length and bytes.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>

#include <tally/reader.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/sys.h"
#include "base/vec.h"
#include "recorder/bpf-features.h"
#include "recorder/bpf.h"

/* A program has a million instructions at most, of which each makes some tens of bytes. */
#define MAX_ARRAYS (64u << 20)

/* Where in a struct bpf_prog_info an array's address and number stand, and the size of an entry. */
struct array {
	size_t address, count, size_at; /* size_at 0: all have `size` */
	uint32_t size;
	bool wanted;
};

#define AT(field) offsetof(struct bpf_prog_info, field)

/* By the numbers of their bits; perf asks for the same ones. */
static const struct array arrays[] = {
	{ AT(jited_prog_insns), AT(jited_prog_len), 0, 1, true },
	{ AT(xlated_prog_insns), AT(xlated_prog_len), 0, 1, false },
	{ AT(map_ids), AT(nr_map_ids), 0, 4, false },
	{ AT(jited_ksyms), AT(nr_jited_ksyms), 0, 8, true },
	{ AT(jited_func_lens), AT(nr_jited_func_lens), 0, 4, true },
	{ AT(func_info), AT(nr_func_info), AT(func_info_rec_size), 0, true },
	{ AT(line_info), AT(nr_line_info), AT(line_info_rec_size), 0, true },
	{ AT(jited_line_info), AT(nr_jited_line_info), AT(jited_line_info_rec_size), 0, true },
	{ AT(prog_tags), AT(nr_prog_tags), 0, BPF_TAG_SIZE, true },
};

/* A program, with its arrays one after the other. */
struct program {
	struct bpf_prog_info info;
	uint8_t *data;
	uint64_t data_len, arrays;
};

static uint32_t word(const struct bpf_prog_info *info, size_t at)
{
	uint32_t value;

	memcpy(&value, (const char *)info + at, sizeof(value));
	return value;
}

static void set_word(struct bpf_prog_info *info, size_t at, uint32_t value)
{
	memcpy((char *)info + at, &value, sizeof(value));
}

static void set_address(struct bpf_prog_info *info, const struct array *a, uint64_t value)
{
	memcpy((char *)info + a->address, &value, sizeof(value));
}

static uint64_t bytes_of(const struct bpf_prog_info *info, const struct array *a)
{
	uint64_t size = a->size_at ? word(info, a->size_at) : a->size;

	return a->wanted ? align_up(size * word(info, a->count), 8) : 0;
}

/* Lays the arrays out; their addresses become `base` and where they stand. */
static void place_arrays(struct program *p, const struct bpf_prog_info *sizes, uint64_t base)
{
	uint64_t at = 0;

	p->arrays = 0;
	for (size_t i = 0; i < ARRAY_SIZE(arrays); i++) {
		const struct array *a = &arrays[i];
		uint64_t bytes = bytes_of(sizes, a);
		if (!bytes)
			continue;
		set_address(&p->info, a, base + at);
		set_word(&p->info, a->count, word(sizes, a->count));
		if (a->size_at)
			set_word(&p->info, a->size_at, word(sizes, a->size_at));
		p->arrays |= 1ull << i;
		at += bytes;
	}
}

/* Asked twice, the first time for the lengths. 1; 0: nothing can be said of it; -ENOMEM. */
static int program_read(struct program *p, int fd)
{
	struct bpf_prog_info sizes;

	memset(p, 0, sizeof(*p));
	memset(&sizes, 0, sizeof(sizes));
	if (bpf_ask(fd, &sizes, sizeof(sizes)) < 0)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(arrays); i++)
		p->data_len += bytes_of(&sizes, &arrays[i]);
	if (p->data_len > MAX_ARRAYS)
		return 0;
	p->data = calloc(1, p->data_len + 1);
	if (!p->data)
		return -ENOMEM;
	place_arrays(p, &sizes, (uintptr_t)p->data);
	if (bpf_ask(fd, &p->info, sizeof(p->info)) < 0)
		return 0;
	place_arrays(p, &sizes, 0);
	return 1;
}

static void add_program(struct buf *out, const struct program *p)
{
	buf_u32(out, sizeof(p->info));
	buf_u32(out, (uint32_t)p->data_len);
	buf_u64(out, p->arrays);
	buf_add(out, &p->info, sizeof(p->info));
	buf_add(out, p->data, p->data_len);
}

/* Both lists with their numbers in front, which are known at the end. */
struct lists {
	struct buf programs, types;
	VEC(uint32_t) known; /* ids of types that are in the list */
	uint32_t count;      /* of programs */
};

static bool knows(struct lists *l, uint32_t id)
{
	vec_each (&l->known, i)
		if (*i == id)
			return true;
	return false;
}

/* Several programs may share their types. */
static int add_types(struct lists *l, uint32_t id)
{
	uint32_t len, *slot;
	void *types;

	if (!id || knows(l, id))
		return 0;
	if (!bpf_types(id, &types, &len))
		return -ENOMEM;
	slot = len ? vec_push(&l->known) : NULL;
	if (slot) {
		*slot = id;
		buf_u32(&l->types, id);
		buf_u32(&l->types, len);
		buf_add(&l->types, types, len);
	}
	free(types);
	return len && !slot ? -ENOMEM : 0;
}

static int add_one(struct lists *l, uint32_t id)
{
	struct program p;
	int fd = bpf_program(id);

	if (fd < 0)
		return 0; /* unloaded meanwhile */
	int r = program_read(&p, fd);
	sys()->close(fd);
	if (r > 0) {
		add_program(&l->programs, &p);
		l->count++;
		r = add_types(l, p.info.btf_id);
	}
	free(p.data);
	return r;
}

static int write_list(struct tally_writer *writer, uint32_t feature, struct buf *list,
		      uint32_t count)
{
	if (list->failed)
		return -ENOMEM;
	if (!count)
		return 0;
	memcpy(list->at, &count, sizeof(count));
	return tally_writer_feature(writer, feature, list->at, list->len);
}

int bpf_features(struct tally_writer *writer)
{
	struct lists l = { 0 };
	int r = 0;

	buf_u32(&l.programs, 0);
	buf_u32(&l.types, 0);
	for (uint32_t id = 0; r == 0 && bpf_next_program(&id);)
		r = add_one(&l, id);
	if (r == 0)
		r = write_list(writer, TALLY_FEATURE_BPF_PROG_INFO, &l.programs, l.count);
	if (r == 0)
		r = write_list(writer, TALLY_FEATURE_BPF_BTF, &l.types, (uint32_t)l.known.count);
	buf_done(&l.programs);
	buf_done(&l.types);
	vec_done(&l.known);
	return r;
}
