/* SPDX-License-Identifier: MIT */
/*
 * Record types and their fields as tables: a further type or sample field is a further row. Rows
 * stand in the order in which the kernel writes (perf_event_open(2), "MMAP layout";
 * kernel/events/core.c, perf_output_sample() and __perf_event__output_id_sample()).
 */
#include "base/bytes.h"
#include "event/record-table.h"

#define AT(member) offsetof(struct tally_record, member)

static const struct field mmap_fields[] = {
	{ ALWAYS, AT(mmap.pid), PAIR },      { ALWAYS, AT(mmap.addr), WORD },
	{ ALWAYS, AT(mmap.len), WORD },      { ALWAYS, AT(mmap.pgoff), WORD },
	{ ALWAYS, AT(mmap.filename), TEXT },
};

static const struct field mmap2_fields[] = {
	{ ALWAYS, AT(mmap.pid), PAIR },
	{ ALWAYS, AT(mmap.addr), WORD },
	{ ALWAYS, AT(mmap.len), WORD },
	{ ALWAYS, AT(mmap.pgoff), WORD },
	{ FORM_INODE, AT(mmap.maj), PAIR },
	{ FORM_INODE, AT(mmap.ino), WORD },
	{ FORM_INODE, AT(mmap.ino_generation), WORD },
	{ FORM_BUILD_ID, AT(mmap.build_id_size), BUILD_ID },
	{ ALWAYS, AT(mmap.prot), PAIR },
	{ ALWAYS, AT(mmap.filename), TEXT },
};

static const struct field comm_fields[] = {
	{ ALWAYS, AT(comm.pid), PAIR },
	{ ALWAYS, AT(comm.comm), TEXT },
};

static const struct field task_fields[] = {
	{ ALWAYS, AT(task.pid), PAIR },
	{ ALWAYS, AT(task.tid), PAIR },
	{ ALWAYS, AT(task.time), WORD },
};

static const struct field lost_fields[] = {
	{ ALWAYS, AT(lost.id), WORD },
	{ ALWAYS, AT(lost.lost), WORD },
};

static const struct field lost_samples_fields[] = {
	{ ALWAYS, AT(lost.lost), WORD },
};

static const struct field throttle_fields[] = {
	{ ALWAYS, AT(throttle.time), WORD },
	{ ALWAYS, AT(throttle.id), WORD },
	{ ALWAYS, AT(throttle.stream_id), WORD },
};

static const struct field read_fields[] = {
	{ ALWAYS, AT(read.pid), PAIR },
	{ ALWAYS, AT(read.counts), COUNTS },
};

static const struct field aux_fields[] = {
	{ ALWAYS, AT(aux.offset), WORD },
	{ ALWAYS, AT(aux.size), WORD },
	{ ALWAYS, AT(aux.flags), WORD },
};

static const struct field who_fields[] = {
	{ ALWAYS, AT(who.pid), PAIR },
};

static const struct field no_fields[] = {
	{ 0, 0, WORD },
};

static const struct field namespaces_fields[] = {
	{ ALWAYS, AT(namespaces.pid), PAIR },
	{ ALWAYS, AT(namespaces.count), NAMESPACES },
};

static const struct field ksymbol_fields[] = {
	{ ALWAYS, AT(ksymbol.addr), WORD },
	{ ALWAYS, AT(ksymbol.len), W422 },
	{ ALWAYS, AT(ksymbol.name), TEXT },
};

static const struct field bpf_fields[] = {
	{ ALWAYS, AT(bpf.kind), W224 },
	{ ALWAYS, AT(bpf.tag), BYTES },
};

static const struct field cgroup_fields[] = {
	{ ALWAYS, AT(cgroup.id), WORD },
	{ ALWAYS, AT(cgroup.path), TEXT },
};

static const struct field text_poke_fields[] = {
	{ ALWAYS, AT(text_poke.addr), WORD },
	{ ALWAYS, AT(text_poke.old_len), POKE },
};

static const struct field hw_id_fields[] = {
	{ ALWAYS, AT(hw_id.hw_id), WORD },
};

static const struct field deferred_fields[] = {
	{ ALWAYS, AT(deferred.cookie), WORD },
	{ ALWAYS, AT(deferred.chain), CHAIN },
};

static const struct field sample_fields[] = {
	SAMPLE_WORDS,
	{ TALLY_SAMPLE_READ, AT(sample.counts), COUNTS },
	SAMPLE_CHAIN,
	{ TALLY_SAMPLE_RAW, AT(sample.raw), RAW },
	{ TALLY_SAMPLE_BRANCH_STACK, 0, BRANCHES },
	{ TALLY_SAMPLE_REGS_USER, AT(sample.regs_user), REGS },
	{ TALLY_SAMPLE_STACK_USER, 0, STACK },
	{ TALLY_SAMPLE_WEIGHT | TALLY_SAMPLE_WEIGHT_STRUCT, AT(sample.weight), WORD },
	{ TALLY_SAMPLE_DATA_SRC, AT(sample.data_src), WORD },
	{ TALLY_SAMPLE_TRANSACTION, AT(sample.transaction), WORD },
	{ TALLY_SAMPLE_REGS_INTR, AT(sample.regs_intr), REGS },
	{ TALLY_SAMPLE_PHYS_ADDR, AT(sample.phys_addr), WORD },
	{ TALLY_SAMPLE_CGROUP, AT(sample.cgroup), WORD },
	{ TALLY_SAMPLE_DATA_PAGE_SIZE, AT(sample.data_page_size), WORD },
	{ TALLY_SAMPLE_CODE_PAGE_SIZE, AT(sample.code_page_size), WORD },
	{ TALLY_SAMPLE_AUX, AT(sample.aux), AUX_DATA },
};

/* The sample_id at the end of all records but SAMPLE. */
static const struct field trailer_fields[] = {
	{ TALLY_SAMPLE_TID, AT(id.pid), PAIR }, { TALLY_SAMPLE_TIME, AT(id.time), WORD },
	{ TALLY_SAMPLE_ID, AT(id.id), WORD },   { TALLY_SAMPLE_STREAM_ID, AT(id.stream_id), WORD },
	{ TALLY_SAMPLE_CPU, AT(id.cpu), CPU },  { TALLY_SAMPLE_IDENTIFIER, AT(id.id), WORD },
};

#define SHAPE(name, fields, member)                                                          \
	{                                                                                    \
		name, fields, ARRAY_SIZE(fields), sizeof(((struct tally_record *)0)->member) \
	}

const struct shape record_shape_table[] = {
	[TALLY_RECORD_MMAP] = SHAPE("MMAP", mmap_fields, mmap),
	[TALLY_RECORD_LOST] = SHAPE("LOST", lost_fields, lost),
	[TALLY_RECORD_COMM] = SHAPE("COMM", comm_fields, comm),
	[TALLY_RECORD_EXIT] = SHAPE("EXIT", task_fields, task),
	[TALLY_RECORD_THROTTLE] = SHAPE("THROTTLE", throttle_fields, throttle),
	[TALLY_RECORD_UNTHROTTLE] = SHAPE("UNTHROTTLE", throttle_fields, throttle),
	[TALLY_RECORD_FORK] = SHAPE("FORK", task_fields, task),
	[TALLY_RECORD_READ] = SHAPE("READ", read_fields, read),
	[TALLY_RECORD_SAMPLE] = SHAPE("SAMPLE", sample_fields, sample),
	[TALLY_RECORD_MMAP2] = SHAPE("MMAP2", mmap2_fields, mmap),
	[TALLY_RECORD_AUX] = SHAPE("AUX", aux_fields, aux),
	[TALLY_RECORD_ITRACE_START] = SHAPE("ITRACE_START", who_fields, who),
	[TALLY_RECORD_LOST_SAMPLES] = SHAPE("LOST_SAMPLES", lost_samples_fields, lost),
	[TALLY_RECORD_SWITCH] = { .name = "SWITCH", .fields = no_fields },
	[TALLY_RECORD_SWITCH_CPU_WIDE] = SHAPE("SWITCH_CPU_WIDE", who_fields, who),
	[TALLY_RECORD_NAMESPACES] = SHAPE("NAMESPACES", namespaces_fields, namespaces),
	[TALLY_RECORD_KSYMBOL] = SHAPE("KSYMBOL", ksymbol_fields, ksymbol),
	[TALLY_RECORD_BPF_EVENT] = SHAPE("BPF_EVENT", bpf_fields, bpf),
	[TALLY_RECORD_CGROUP] = SHAPE("CGROUP", cgroup_fields, cgroup),
	[TALLY_RECORD_TEXT_POKE] = SHAPE("TEXT_POKE", text_poke_fields, text_poke),
	[TALLY_RECORD_AUX_OUTPUT_HW_ID] = SHAPE("AUX_OUTPUT_HW_ID", hw_id_fields, hw_id),
	[TALLY_RECORD_CALLCHAIN_DEFERRED] = SHAPE("CALLCHAIN_DEFERRED", deferred_fields, deferred),
};

const size_t record_shapes = ARRAY_SIZE(record_shape_table);

const struct shape record_trailer = { .fields = trailer_fields,
				      .count = ARRAY_SIZE(trailer_fields) };

/* perf(1)'s own types, from FIRST_USER_TYPE on, as its `report -D` and `--stats` print them. */
static const char *const user_names[] = {
	"ATTR",         "EVENT_TYPE",    "TRACING_DATA", "BUILD_ID",       "FINISHED_ROUND",
	"ID_INDEX",     "AUXTRACE_INFO", "AUXTRACE",     "AUXTRACE_ERROR", "THREAD_MAP",
	"CPU_MAP",      "STAT_CONFIG",   "STAT",         "STAT_ROUND",     "EVENT_UPDATE",
	"TIME_CONV",    "FEATURE",       "COMPRESSED",   "FINISHED_INIT",  "COMPRESSED2",
	"BPF_METADATA",
};

static size_t trailer_size(uint64_t sample_type)
{
	return 8 * (size_t)__builtin_popcountll(sample_type & TRAILER_BITS);
}

void tally_layout_init(struct tally_layout *layout, const struct tally_attr *attr, bool swapped)
{
	*layout = (struct tally_layout){
		.sample_type = attr->sample_type,
		.read_format = attr->read_format,
		.branch_sample_type = attr->branch_sample_type,
		.regs_user = attr->sample_regs_user,
		.regs_intr = attr->sample_regs_intr,
		.sample_id_all = attr->flags & TALLY_ATTR_SAMPLE_ID_ALL ? 1 : 0,
		.swapped = swapped,
	};
}

size_t tally_layout_id_size(const struct tally_layout *layout)
{
	return layout->sample_id_all ? trailer_size(layout->sample_type) : 0;
}

/* Where the id of a SAMPLE stands, 0 when it has none. */
static size_t sample_id_offset(uint64_t type)
{
	if (type & TALLY_SAMPLE_IDENTIFIER)
		return RECORD_HEADER;
	if (!(type & TALLY_SAMPLE_ID))
		return 0;
	return RECORD_HEADER +
	       8 * (size_t)__builtin_popcountll(type & (TALLY_SAMPLE_IP | TALLY_SAMPLE_TID |
							TALLY_SAMPLE_TIME | TALLY_SAMPLE_ADDR));
}

/* How far before its end the id of any other record stands, 0 when it has none. */
static size_t trailer_id_offset(uint64_t type)
{
	if (type & TALLY_SAMPLE_IDENTIFIER)
		return 8;
	if (!(type & TALLY_SAMPLE_ID))
		return 0;
	return 8 +
	       8 * (size_t)__builtin_popcountll(type & (TALLY_SAMPLE_CPU | TALLY_SAMPLE_STREAM_ID));
}

uint64_t tally_record_id(const struct tally_layout *layout, const void *bytes, size_t len)
{
	const unsigned char *at = bytes;
	bool swapped = layout->swapped;

	if (len < RECORD_HEADER)
		return 0;
	uint32_t type = load_u32(at, swapped);
	size_t size = load_u16(at + 6, swapped);
	if (size > len)
		return 0;
	if (type == TALLY_RECORD_SAMPLE) {
		size_t offset = sample_id_offset(layout->sample_type);
		return offset && offset + 8 <= size ? load_u64(at + offset, swapped) : 0;
	}
	size_t back = trailer_id_offset(layout->sample_type);
	if (!layout->sample_id_all || type >= FIRST_USER_TYPE || !back ||
	    size < RECORD_HEADER + trailer_size(layout->sample_type))
		return 0;
	return load_u64(at + size - back, swapped);
}

const char *tally_record_type_name(uint32_t type)
{
	if (type >= FIRST_USER_TYPE && type - FIRST_USER_TYPE < ARRAY_SIZE(user_names))
		return user_names[type - FIRST_USER_TYPE];
	return record_shape(type)->name;
}
