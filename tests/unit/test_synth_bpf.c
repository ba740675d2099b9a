/* SPDX-License-Identifier: MIT */
/* recorder/synth-bpf: programs of a made-up kernel, decoded again. */
#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <string.h>

#include "base/sys.h"
#include "recorder/synth.h"
#include "tap.h"
#include "written.h"

#define FD     1000 /* and the index of the program */
#define BTF_FD 2000

/* The BTF of the programs that have some. */
static struct buf types;

struct program {
	uint32_t id, functions;
	const char *name;
	uint64_t address; /* of the first; the others follow each 0x1000 */
	uint32_t len;
	bool gone;
	uint32_t btf;
};

static struct {
	const struct program *programs;
	uint32_t count;
	int refuse;   /* errno of all */
	bool circle;  /* the ids begin again */
	uint32_t lie; /* the number of functions that is told, in spite of all */
	int opened, closed;
} kernel;

static int fake_next(union bpf_attr *attr)
{
	for (uint32_t i = 0; i < kernel.count; i++)
		if (kernel.programs[i].id > attr->start_id) {
			attr->next_id = kernel.programs[i].id;
			return 0;
		}
	attr->next_id = kernel.programs[0].id;
	return kernel.circle ? 0 : -ENOENT;
}

static int fake_fd(const union bpf_attr *attr)
{
	for (uint32_t i = 0; i < kernel.count; i++)
		if (kernel.programs[i].id == attr->prog_id && !kernel.programs[i].gone) {
			kernel.opened++;
			return (int)(FD + i);
		}
	return -ENOENT;
}

/* As bpf_prog_get_info_by_fd(): as many as were asked for, and how many there are. */
static int fake_info(const union bpf_attr *attr)
{
	const struct program *p = &kernel.programs[attr->info.bpf_fd - FD];
	struct bpf_prog_info *info = (void *)(uintptr_t)attr->info.info;
	uint64_t *addresses = (void *)(uintptr_t)info->jited_ksyms;
	uint32_t *lengths = (void *)(uintptr_t)info->jited_func_lens;
	uint8_t *tags = (void *)(uintptr_t)info->prog_tags;

	for (uint32_t i = 0; i < info->nr_jited_ksyms && i < p->functions; i++)
		addresses[i] = p->address + 0x1000 * i;
	for (uint32_t i = 0; i < info->nr_jited_func_lens && i < p->functions; i++)
		lengths[i] = p->len;
	for (uint32_t i = 0; i < info->nr_prog_tags && i < p->functions; i++)
		memset(tags + 8 * i, (int)(0xa0 + i), 8);
	info->nr_jited_ksyms = info->nr_jited_func_lens = info->nr_prog_tags =
		kernel.lie ? kernel.lie : p->functions;
	struct bpf_func_info *infos = (void *)(uintptr_t)info->func_info;
	for (uint32_t i = 0; i < info->nr_func_info && i < p->functions; i++)
		infos[i].type_id = 2 + i;
	info->nr_func_info = p->btf ? info->nr_prog_tags : 0;
	info->func_info_rec_size = sizeof(*infos);
	info->btf_id = p->btf;
	info->id = p->id;
	memcpy(info->tag, "\1\2\3\4\5\6\7\x8", 8);
	memcpy(info->name, p->name, strnlen(p->name, sizeof(info->name)));
	return 0;
}

/* As btf_get_info_by_fd(): as much as there is room for, and how much there is. */
static int fake_btf(const union bpf_attr *attr)
{
	struct bpf_btf_info *info = (void *)(uintptr_t)attr->info.info;

	if (info->btf)
		memcpy((void *)(uintptr_t)info->btf, types.at,
		       types.len < info->btf_size ? types.len : info->btf_size);
	info->btf_size = (uint32_t)types.len;
	return 0;
}

static void type(struct buf *b, uint32_t name, uint32_t kind, uint32_t of)
{
	buf_u32(b, name);
	buf_u32(b, kind << 24);
	buf_u32(b, of);
}

/* BTF by hand, btf.rst: 1 a prototype, 2 and 3 functions. */
static void make_types(void)
{
	static const char strings[] = "\0first_function_with_a_name\0second";

	buf_u16(&types, 0xeb9f);
	buf_u16(&types, 1);
	buf_u32(&types, 24);
	buf_u32(&types, 0);
	buf_u32(&types, 36);
	buf_u32(&types, 36);
	buf_u32(&types, sizeof(strings));
	type(&types, 0, 13, 0);
	type(&types, 1, 12, 1);
	type(&types, 28, 12, 1);
	buf_add(&types, strings, sizeof(strings));
}

static int fake_bpf(int cmd, void *attr, unsigned int size)
{
	if (kernel.refuse)
		return -kernel.refuse;
	if (size != sizeof(union bpf_attr))
		return -E2BIG;
	switch (cmd) {
	case BPF_PROG_GET_NEXT_ID:
		return fake_next(attr);
	case BPF_PROG_GET_FD_BY_ID:
		return fake_fd(attr);
	case BPF_BTF_GET_FD_BY_ID:
		kernel.opened++;
		return BTF_FD;
	case BPF_OBJ_GET_INFO_BY_FD:
		return ((union bpf_attr *)attr)->info.bpf_fd == BTF_FD ? fake_btf(attr)
								       : fake_info(attr);
	default:
		return -EINVAL;
	}
}

static int fake_close(int fd)
{
	kernel.closed += fd >= FD;
	return 0;
}

const struct sys_table *sys(void)
{
	static struct sys_table table;

	if (!table.read) {
		table = sys_kernel;
		table.bpf = fake_bpf;
		table.close = fake_close;
	}
	return &table;
}

static const struct tally_layout layout = {
	.sample_type = TALLY_SAMPLE_TID | TALLY_SAMPLE_TIME,
	.sample_id_all = 1,
};

static uint64_t synthesise(const char *root)
{
	struct synth s = { .layout = &layout, .root = root };
	struct tally_error err;

	buf_reset(&written);
	kernel.opened = kernel.closed = 0;
	check_int(synth_bpf(&s, &err), 0);
	check_int(kernel.opened, kernel.closed);
	synth_done(&s);
	return s.records;
}

static const struct program programs[] = {
	{ 3, 1, "short", 0xffffffffc0001000, 20, false, 0 },
	{ 4, 1, "gone", 0xffffffffc0002000, 20, true, 0 },
	{ 9, 2, "two_of_16_bytes_", 0xffffffffc0003000, 100, false, 0 },
	{ 12, 1, "", 0xffffffffc0009000, 8, false, 0 },
	{ 13, 1, "interpreted", 0xffffffff81000000, 0, false, 0 },
	{ 14, 0, "hidden", 0, 0, false, 0 },
};

static void functions_then_program(void)
{
	kernel.programs = programs;
	kernel.count = 6;
	check_u64(synthesise(NULL), 4 + 4);
	struct tally_record rec = record_at(0);
	check_int(rec.type, TALLY_RECORD_KSYMBOL);
	check_u64(rec.ksymbol.addr, 0xffffffffc0001000);
	check_u64(rec.ksymbol.len, 20);
	check_int(rec.ksymbol.kind, PERF_RECORD_KSYMBOL_TYPE_BPF);
	check_int(rec.ksymbol.flags, 0);
	check_str(rec.ksymbol.name, "bpf_prog_0102030405060708_short");
	check_u64(rec.id.time, 0);
	rec = record_at(1);
	check_int(rec.type, TALLY_RECORD_BPF_EVENT);
	check_int(rec.bpf.kind, PERF_BPF_EVENT_PROG_LOAD);
	check_int(rec.bpf.flags, 0);
	check_u64(rec.bpf.id, 3);
	check(!memcmp(rec.bpf.tag, "\1\2\3\4\5\6\7\x8", 8));
	check_str(record_at(2).ksymbol.name, "bpf_prog_0102030405060708_F");
	rec = record_at(3);
	check_str(rec.ksymbol.name, "bpf_prog_a1a1a1a1a1a1a1a1_F");
	check_u64(rec.ksymbol.addr, 0xffffffffc0004000);
	check_u64(record_at(4).bpf.id, 9);
	check_str(record_at(5).ksymbol.name, "bpf_prog_0102030405060708");
	check_u64(record_at(6).bpf.id, 12);
	check_int(record_at(7).type, TALLY_RECORD_BPF_EVENT);
	check_u64(record_at(7).bpf.id, 13);
}

static void names_by_their_types(void)
{
	static const struct program typed[] = {
		{ 3, 2, "first_function_", 0xffffffffc0001000, 20, false, 7 },
		{ 4, 1, "first_function_", 0xffffffffc0004000, 20, false, 7 },
	};

	make_types();
	kernel.programs = typed;
	kernel.count = 2;
	check_u64(synthesise(NULL), 5);
	check_str(record_at(0).ksymbol.name,
		  "bpf_prog_0102030405060708_first_function_with_a_name");
	check_str(record_at(1).ksymbol.name, "bpf_prog_a1a1a1a1a1a1a1a1_second");
	check_str(record_at(3).ksymbol.name,
		  "bpf_prog_0102030405060708_first_function_with_a_name");
	kernel.lie = 4; /* of which two have a type */
	check_u64(synthesise(NULL), 5);
	kernel.lie = 0;
	types.len = 20; /* cut short */
	check_u64(synthesise(NULL), 5);
	check_str(record_at(0).ksymbol.name, "bpf_prog_0102030405060708_F");
	check_str(record_at(3).ksymbol.name, "bpf_prog_0102030405060708_first_function_");
	kernel.programs = programs;
	kernel.count = 6;
}

static void nothing_is_no_error(void)
{
	static const int refusals[] = { EPERM, ENOSYS, EINVAL, EACCES };

	for (size_t i = 0; i < sizeof(refusals) / sizeof(*refusals); i++) {
		kernel.refuse = refusals[i];
		check_u64(synthesise(NULL), 0);
	}
	kernel.refuse = 0;
	check_u64(synthesise("/another"), 0);
	check_u64(synthesise(""), 8);
}

/* What the kernel would not say. */
static void nonsense(void)
{
	kernel.circle = true;
	check_u64(synthesise(NULL), 8);
	kernel.circle = false;
	kernel.lie = 1u << 30;
	check_u64(synthesise(NULL), 0);
	kernel.lie = 4; /* of which no more than there are get an address; the rest stay 0 */
	check_u64(synthesise(NULL), 4 + 5);
	kernel.lie = 0;
}

int main(void)
{
	tap_run(functions_then_program);
	tap_run(names_by_their_types);
	tap_run(nothing_is_no_error);
	tap_run(nonsense);
	buf_done(&written);
	buf_done(&types);
	return tap_end();
}
