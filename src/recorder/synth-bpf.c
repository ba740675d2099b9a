/* SPDX-License-Identifier: MIT */
/* The BPF programs that are loaded, and where each of their functions lies. */
#include <inttypes.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sys.h"
#include "recorder/bpf.h"
#include "recorder/btf.h"
#include "recorder/synth.h"

/* Functions of a program that are believed in: the kernel's own limit is 256, BPF_MAX_SUBPROGS. */
#define MAX_FUNCTIONS 4096

/* KSYM_NAME_LEN is 128 before Linux 6.1, and 512. */
#define NAME_BYTES 512

/* A program's functions: address, length in bytes and tag of each, and its type, which has its name. */
struct functions {
	uint64_t *addresses;
	uint32_t *lengths;
	uint8_t (*tags)[BPF_TAG_SIZE];
	struct bpf_func_info *infos; /* zero where there is no BTF */
	uint32_t count, btf_len;
	void *btf; /* NULL: none */
};

static void functions_done(struct functions *f)
{
	free(f->addresses);
	free(f->lengths);
	free(f->tags);
	free(f->infos);
	free(f->btf);
	*f = (struct functions){ 0 };
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* A count of the kernel's is how many there are, however few were asked for. */
static uint32_t count_of(const struct bpf_prog_info *info)
{
	return least(info->nr_jited_ksyms, least(info->nr_jited_func_lens, info->nr_prog_tags));
}

/*
 * Asked twice, the first time for the number of functions. None where addresses are hidden, or
 * before Linux 5.0. false: no memory.
 */
static bool functions_read(struct functions *f, int fd, struct bpf_prog_info *info)
{
	*f = (struct functions){ 0 };
	memset(info, 0, sizeof(*info));
	if (bpf_ask(fd, info, sizeof(*info)) < 0)
		return true;
	uint32_t count = count_of(info);
	bool typed = info->nr_func_info == count && info->func_info_rec_size == sizeof(*f->infos);
	if (!count || count > MAX_FUNCTIONS)
		return true;
	*f = (struct functions){
		.addresses = calloc(count, sizeof(*f->addresses)),
		.lengths = calloc(count, sizeof(*f->lengths)),
		.tags = calloc(count, sizeof(*f->tags)),
		.infos = calloc(count, sizeof(*f->infos)),
	};
	if (!f->addresses || !f->lengths || !f->tags || !f->infos)
		return false;
	memset(info, 0, sizeof(*info));
	info->nr_jited_ksyms = info->nr_jited_func_lens = info->nr_prog_tags = count;
	info->jited_ksyms = (uintptr_t)f->addresses;
	info->jited_func_lens = (uintptr_t)f->lengths;
	info->prog_tags = (uintptr_t)f->tags;
	if (typed) {
		info->nr_func_info = count;
		info->func_info_rec_size = sizeof(*f->infos);
		info->func_info = (uintptr_t)f->infos;
	}
	if (bpf_ask(fd, info, sizeof(*info)) == 0)
		f->count = least(count, count_of(info));
	return !f->count || !typed || bpf_types(info->btf_id, &f->btf, &f->btf_len);
}

/*
 * bpf_prog_TAG_NAME, as in kallsyms and the kernel's own records, where the first function has the
 * tag of the whole program. A program's own name is cut to 15 bytes; without BTF each of several
 * functions is F, as perf(1) says.
 */
static void name_function(char *name, const struct functions *f, uint32_t i,
			  const struct bpf_prog_info *info)
{
	const uint8_t *tag = i ? f->tags[i] : info->tag;
	int n = snprintf(name, NAME_BYTES, "bpf_prog_");

	for (size_t b = 0; b < BPF_TAG_SIZE; b++)
		n += snprintf(name + n, NAME_BYTES - (size_t)n, "%02x", tag[b]);
	const char *own = btf_name(f->btf, f->btf_len, f->infos[i].type_id);
	if (own)
		snprintf(name + n, NAME_BYTES - (size_t)n, "_%s", own);
	else if (f->count > 1)
		snprintf(name + n, NAME_BYTES - (size_t)n, "_F");
	else if (info->name[0])
		snprintf(name + n, NAME_BYTES - (size_t)n, "_%.*s", (int)BPF_OBJ_NAME_LEN,
			 info->name);
}

static int emit_functions(struct synth *s, const struct functions *f,
			  const struct bpf_prog_info *info, struct tally_error *err)
{
	char name[NAME_BYTES];
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < f->count; i++) {
		/* What an interpreter runs has no code of its own. */
		if (!f->addresses[i] || !f->lengths[i])
			continue;
		name_function(name, f, i, info);
		struct tally_record rec = {
			.type = TALLY_RECORD_KSYMBOL,
			.ksymbol = {
				.addr = f->addresses[i],
				.len = f->lengths[i],
				.kind = PERF_RECORD_KSYMBOL_TYPE_BPF,
				.name = name,
				.name_len = (uint32_t)strlen(name),
			},
		};
		r = synth_emit(s, &rec, err);
	}
	return r;
}

static int emit_program(struct synth *s, const struct functions *f,
			const struct bpf_prog_info *info, struct tally_error *err)
{
	struct tally_record rec = {
		.type = TALLY_RECORD_BPF_EVENT,
		.bpf = {
			.kind = PERF_BPF_EVENT_PROG_LOAD,
			.id = info->id,
		},
	};
	int r = emit_functions(s, f, info, err);

	_Static_assert(sizeof(rec.bpf.tag) == sizeof(info->tag), "linux/bpf.h: BPF_TAG_SIZE");
	memcpy(rec.bpf.tag, info->tag, sizeof(rec.bpf.tag));
	return r == 0 && f->count ? synth_emit(s, &rec, err) : r;
}

int synth_bpf(struct synth *s, struct tally_error *err)
{
	int r = 0;

	if (s->root && *s->root)
		return 0;
	for (uint32_t id = 0; r == 0 && bpf_next_program(&id);) {
		struct bpf_prog_info info;
		struct functions f;
		int fd = bpf_program(id);
		if (fd < 0)
			continue; /* unloaded meanwhile */
		r = functions_read(&f, fd, &info) ? emit_program(s, &f, &info, err)
						  : error_nomem(err, "the list of BPF programs");
		functions_done(&f);
		sys()->close(fd);
	}
	return r < 0 ? r : synth_flush(s, err);
}
