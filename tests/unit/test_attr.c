/* SPDX-License-Identifier: MIT */
/*
 * attr: the referees are the installed <linux/perf_event.h>, for what it has, and bytes that a
 * compiler for s390x (big-endian) made of the kernel's struct.
 */
#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdlib.h>

#include <tally/attr.h>

#include "tap.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* What kernels published, 2.6.31 to 6.19, and where each size's last field begins. */
static const struct {
	uint32_t size;
	size_t field;
} published[] = {
	{ 64, offsetof(struct tally_attr, config1) },
	{ 72, offsetof(struct tally_attr, config2) },
	{ 80, offsetof(struct tally_attr, branch_sample_type) },
	{ 96, offsetof(struct tally_attr, sample_stack_user) },
	{ 104, offsetof(struct tally_attr, sample_regs_intr) },
	{ 112, offsetof(struct tally_attr, sample_max_stack) },
	{ 120, offsetof(struct tally_attr, aux_sample_size) },
	{ 128, offsetof(struct tally_attr, sig_data) },
	{ 136, offsetof(struct tally_attr, config3) },
	{ 144, offsetof(struct tally_attr, config4) },
};

static void the_layout_is_the_kernels(void)
{
	check_int(sizeof(struct tally_attr), 144);
	check(sizeof(struct perf_event_attr) <= sizeof(struct tally_attr));
#define SAME(ours, theirs)                                                                      \
	check_int(offsetof(struct tally_attr, ours), offsetof(struct perf_event_attr, theirs)); \
	check_int(sizeof(((struct tally_attr *)0)->ours),                                       \
		  sizeof(((struct perf_event_attr *)0)->theirs))
	SAME(type, type);
	SAME(size, size);
	SAME(config, config);
	SAME(sample_period, sample_freq);
	SAME(sample_type, sample_type);
	SAME(read_format, read_format);
	SAME(wakeup_events, wakeup_watermark);
	SAME(bp_type, bp_type);
	SAME(config1, bp_addr);
	SAME(config2, bp_len);
	SAME(branch_sample_type, branch_sample_type);
	SAME(sample_regs_user, sample_regs_user);
	SAME(sample_stack_user, sample_stack_user);
	SAME(clockid, clockid);
	SAME(sample_regs_intr, sample_regs_intr);
	SAME(aux_watermark, aux_watermark);
	SAME(sample_max_stack, sample_max_stack);
	SAME(aux_sample_size, aux_sample_size);
#ifdef PERF_ATTR_SIZE_VER7
	SAME(sig_data, sig_data);
#endif
#ifdef PERF_ATTR_SIZE_VER8
	SAME(config3, config3);
#endif
#ifdef PERF_ATTR_SIZE_VER9
	SAME(config4, config4);
#endif
}

/* One bit of the kernel's bit-field set by its name, read as our number. */
#define FLAG(theirs, ours)                                     \
	do {                                                   \
		struct perf_event_attr attr = { .theirs = 1 }; \
		struct tally_attr got = { 0 };                 \
		memcpy(&got, &attr, sizeof(attr));             \
		check_u64(got.flags, ours);                    \
	} while (0)

static void the_flags_are_the_kernels_bits(void)
{
	FLAG(disabled, TALLY_ATTR_DISABLED);
	FLAG(inherit, TALLY_ATTR_INHERIT);
	FLAG(pinned, TALLY_ATTR_PINNED);
	FLAG(exclusive, TALLY_ATTR_EXCLUSIVE);
	FLAG(exclude_user, TALLY_ATTR_EXCLUDE_USER);
	FLAG(exclude_kernel, TALLY_ATTR_EXCLUDE_KERNEL);
	FLAG(exclude_hv, TALLY_ATTR_EXCLUDE_HV);
	FLAG(exclude_idle, TALLY_ATTR_EXCLUDE_IDLE);
	FLAG(mmap, TALLY_ATTR_MMAP);
	FLAG(comm, TALLY_ATTR_COMM);
	FLAG(freq, TALLY_ATTR_FREQ);
	FLAG(inherit_stat, TALLY_ATTR_INHERIT_STAT);
	FLAG(enable_on_exec, TALLY_ATTR_ENABLE_ON_EXEC);
	FLAG(task, TALLY_ATTR_TASK);
	FLAG(watermark, TALLY_ATTR_WATERMARK);
	FLAG(precise_ip, 1ull << TALLY_ATTR_PRECISE_IP_SHIFT);
	FLAG(mmap_data, TALLY_ATTR_MMAP_DATA);
	FLAG(sample_id_all, TALLY_ATTR_SAMPLE_ID_ALL);
	FLAG(exclude_host, TALLY_ATTR_EXCLUDE_HOST);
	FLAG(exclude_guest, TALLY_ATTR_EXCLUDE_GUEST);
	FLAG(exclude_callchain_kernel, TALLY_ATTR_EXCLUDE_CALLCHAIN_KERNEL);
	FLAG(exclude_callchain_user, TALLY_ATTR_EXCLUDE_CALLCHAIN_USER);
	FLAG(mmap2, TALLY_ATTR_MMAP2);
	FLAG(comm_exec, TALLY_ATTR_COMM_EXEC);
	FLAG(use_clockid, TALLY_ATTR_USE_CLOCKID);
	FLAG(context_switch, TALLY_ATTR_CONTEXT_SWITCH);
	FLAG(write_backward, TALLY_ATTR_WRITE_BACKWARD);
	FLAG(namespaces, TALLY_ATTR_NAMESPACES);
	FLAG(ksymbol, TALLY_ATTR_KSYMBOL);
	FLAG(bpf_event, TALLY_ATTR_BPF_EVENT);
	FLAG(aux_output, TALLY_ATTR_AUX_OUTPUT);
	FLAG(cgroup, TALLY_ATTR_CGROUP);
	FLAG(text_poke, TALLY_ATTR_TEXT_POKE);
#ifdef PERF_ATTR_SIZE_VER7
	FLAG(build_id, TALLY_ATTR_BUILD_ID);
	FLAG(inherit_thread, TALLY_ATTR_INHERIT_THREAD);
	FLAG(remove_on_exec, TALLY_ATTR_REMOVE_ON_EXEC);
	FLAG(sigtrap, TALLY_ATTR_SIGTRAP);
#endif
#ifdef PERF_ATTR_SIZE_VER9
	FLAG(defer_callchain, TALLY_ATTR_DEFER_CALLCHAIN);
	FLAG(defer_output, TALLY_ATTR_DEFER_OUTPUT);
#endif
}

static void the_numbers_are_the_kernels(void)
{
	static const struct {
		uint64_t ours, theirs;
	} pairs[] = {
		{ TALLY_TYPE_HARDWARE, PERF_TYPE_HARDWARE },
		{ TALLY_TYPE_SOFTWARE, PERF_TYPE_SOFTWARE },
		{ TALLY_TYPE_TRACEPOINT, PERF_TYPE_TRACEPOINT },
		{ TALLY_TYPE_HW_CACHE, PERF_TYPE_HW_CACHE },
		{ TALLY_TYPE_RAW, PERF_TYPE_RAW },
		{ TALLY_TYPE_BREAKPOINT, PERF_TYPE_BREAKPOINT },
		{ TALLY_HW_CPU_CYCLES, PERF_COUNT_HW_CPU_CYCLES },
		{ TALLY_HW_INSTRUCTIONS, PERF_COUNT_HW_INSTRUCTIONS },
		{ TALLY_HW_CACHE_REFERENCES, PERF_COUNT_HW_CACHE_REFERENCES },
		{ TALLY_HW_CACHE_MISSES, PERF_COUNT_HW_CACHE_MISSES },
		{ TALLY_HW_BRANCH_INSTRUCTIONS, PERF_COUNT_HW_BRANCH_INSTRUCTIONS },
		{ TALLY_HW_BRANCH_MISSES, PERF_COUNT_HW_BRANCH_MISSES },
		{ TALLY_HW_BUS_CYCLES, PERF_COUNT_HW_BUS_CYCLES },
		{ TALLY_HW_STALLED_CYCLES_FRONTEND, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND },
		{ TALLY_HW_STALLED_CYCLES_BACKEND, PERF_COUNT_HW_STALLED_CYCLES_BACKEND },
		{ TALLY_HW_REF_CPU_CYCLES, PERF_COUNT_HW_REF_CPU_CYCLES },
		{ TALLY_SW_CPU_CLOCK, PERF_COUNT_SW_CPU_CLOCK },
		{ TALLY_SW_TASK_CLOCK, PERF_COUNT_SW_TASK_CLOCK },
		{ TALLY_SW_PAGE_FAULTS, PERF_COUNT_SW_PAGE_FAULTS },
		{ TALLY_SW_CONTEXT_SWITCHES, PERF_COUNT_SW_CONTEXT_SWITCHES },
		{ TALLY_SW_CPU_MIGRATIONS, PERF_COUNT_SW_CPU_MIGRATIONS },
		{ TALLY_SW_PAGE_FAULTS_MIN, PERF_COUNT_SW_PAGE_FAULTS_MIN },
		{ TALLY_SW_PAGE_FAULTS_MAJ, PERF_COUNT_SW_PAGE_FAULTS_MAJ },
		{ TALLY_SW_ALIGNMENT_FAULTS, PERF_COUNT_SW_ALIGNMENT_FAULTS },
		{ TALLY_SW_EMULATION_FAULTS, PERF_COUNT_SW_EMULATION_FAULTS },
		{ TALLY_SW_DUMMY, PERF_COUNT_SW_DUMMY },
		{ TALLY_SW_BPF_OUTPUT, PERF_COUNT_SW_BPF_OUTPUT },
		{ TALLY_CACHE_L1D, PERF_COUNT_HW_CACHE_L1D },
		{ TALLY_CACHE_L1I, PERF_COUNT_HW_CACHE_L1I },
		{ TALLY_CACHE_LL, PERF_COUNT_HW_CACHE_LL },
		{ TALLY_CACHE_DTLB, PERF_COUNT_HW_CACHE_DTLB },
		{ TALLY_CACHE_ITLB, PERF_COUNT_HW_CACHE_ITLB },
		{ TALLY_CACHE_BPU, PERF_COUNT_HW_CACHE_BPU },
		{ TALLY_CACHE_NODE, PERF_COUNT_HW_CACHE_NODE },
		{ TALLY_CACHE_OP_READ, PERF_COUNT_HW_CACHE_OP_READ },
		{ TALLY_CACHE_OP_WRITE, PERF_COUNT_HW_CACHE_OP_WRITE },
		{ TALLY_CACHE_OP_PREFETCH, PERF_COUNT_HW_CACHE_OP_PREFETCH },
		{ TALLY_CACHE_RESULT_ACCESS, PERF_COUNT_HW_CACHE_RESULT_ACCESS },
		{ TALLY_CACHE_RESULT_MISS, PERF_COUNT_HW_CACHE_RESULT_MISS },
		{ TALLY_SAMPLE_IP, PERF_SAMPLE_IP },
		{ TALLY_SAMPLE_TID, PERF_SAMPLE_TID },
		{ TALLY_SAMPLE_TIME, PERF_SAMPLE_TIME },
		{ TALLY_SAMPLE_ADDR, PERF_SAMPLE_ADDR },
		{ TALLY_SAMPLE_READ, PERF_SAMPLE_READ },
		{ TALLY_SAMPLE_CALLCHAIN, PERF_SAMPLE_CALLCHAIN },
		{ TALLY_SAMPLE_ID, PERF_SAMPLE_ID },
		{ TALLY_SAMPLE_CPU, PERF_SAMPLE_CPU },
		{ TALLY_SAMPLE_PERIOD, PERF_SAMPLE_PERIOD },
		{ TALLY_SAMPLE_STREAM_ID, PERF_SAMPLE_STREAM_ID },
		{ TALLY_SAMPLE_RAW, PERF_SAMPLE_RAW },
		{ TALLY_SAMPLE_BRANCH_STACK, PERF_SAMPLE_BRANCH_STACK },
		{ TALLY_SAMPLE_REGS_USER, PERF_SAMPLE_REGS_USER },
		{ TALLY_SAMPLE_STACK_USER, PERF_SAMPLE_STACK_USER },
		{ TALLY_SAMPLE_WEIGHT, PERF_SAMPLE_WEIGHT },
		{ TALLY_SAMPLE_DATA_SRC, PERF_SAMPLE_DATA_SRC },
		{ TALLY_SAMPLE_IDENTIFIER, PERF_SAMPLE_IDENTIFIER },
		{ TALLY_SAMPLE_TRANSACTION, PERF_SAMPLE_TRANSACTION },
		{ TALLY_SAMPLE_REGS_INTR, PERF_SAMPLE_REGS_INTR },
		{ TALLY_SAMPLE_PHYS_ADDR, PERF_SAMPLE_PHYS_ADDR },
		{ TALLY_SAMPLE_AUX, PERF_SAMPLE_AUX },
		{ TALLY_SAMPLE_CGROUP, PERF_SAMPLE_CGROUP },
		{ TALLY_SAMPLE_DATA_PAGE_SIZE, PERF_SAMPLE_DATA_PAGE_SIZE },
		{ TALLY_SAMPLE_CODE_PAGE_SIZE, PERF_SAMPLE_CODE_PAGE_SIZE },
		{ TALLY_SAMPLE_WEIGHT_STRUCT, PERF_SAMPLE_WEIGHT_STRUCT },
		{ TALLY_BRANCH_USER, PERF_SAMPLE_BRANCH_USER },
		{ TALLY_BRANCH_KERNEL, PERF_SAMPLE_BRANCH_KERNEL },
		{ TALLY_BRANCH_HV, PERF_SAMPLE_BRANCH_HV },
		{ TALLY_BRANCH_ANY, PERF_SAMPLE_BRANCH_ANY },
		{ TALLY_BRANCH_ANY_CALL, PERF_SAMPLE_BRANCH_ANY_CALL },
		{ TALLY_BRANCH_ANY_RETURN, PERF_SAMPLE_BRANCH_ANY_RETURN },
		{ TALLY_BRANCH_IND_CALL, PERF_SAMPLE_BRANCH_IND_CALL },
		{ TALLY_BRANCH_ABORT_TX, PERF_SAMPLE_BRANCH_ABORT_TX },
		{ TALLY_BRANCH_IN_TX, PERF_SAMPLE_BRANCH_IN_TX },
		{ TALLY_BRANCH_NO_TX, PERF_SAMPLE_BRANCH_NO_TX },
		{ TALLY_BRANCH_COND, PERF_SAMPLE_BRANCH_COND },
		{ TALLY_BRANCH_CALL_STACK, PERF_SAMPLE_BRANCH_CALL_STACK },
		{ TALLY_BRANCH_IND_JUMP, PERF_SAMPLE_BRANCH_IND_JUMP },
		{ TALLY_BRANCH_CALL, PERF_SAMPLE_BRANCH_CALL },
		{ TALLY_BRANCH_NO_FLAGS, PERF_SAMPLE_BRANCH_NO_FLAGS },
		{ TALLY_BRANCH_NO_CYCLES, PERF_SAMPLE_BRANCH_NO_CYCLES },
		{ TALLY_BRANCH_TYPE_SAVE, PERF_SAMPLE_BRANCH_TYPE_SAVE },
		{ TALLY_BRANCH_HW_INDEX, PERF_SAMPLE_BRANCH_HW_INDEX },
		{ TALLY_READ_TIME_ENABLED, PERF_FORMAT_TOTAL_TIME_ENABLED },
		{ TALLY_READ_TIME_RUNNING, PERF_FORMAT_TOTAL_TIME_RUNNING },
		{ TALLY_READ_ID, PERF_FORMAT_ID },
		{ TALLY_READ_GROUP, PERF_FORMAT_GROUP },
		{ TALLY_BP_R, HW_BREAKPOINT_R },
		{ TALLY_BP_W, HW_BREAKPOINT_W },
		{ TALLY_BP_X, HW_BREAKPOINT_X },
	};

	for (size_t i = 0; i < COUNT(pairs); i++)
		check_u64(pairs[i].ours, pairs[i].theirs);
	check_u64(
		TALLY_CACHE_CONFIG(TALLY_CACHE_NODE, TALLY_CACHE_OP_WRITE, TALLY_CACHE_RESULT_MISS),
		0x10106); /* cache | op << 8 | result << 16, perf_event_open(2) */
}

/* What headers older than Linux 6.19 may lack, by their numbers there. */
static void the_newest_numbers(void)
{
	check_u64(TALLY_SW_CGROUP_SWITCHES, 11);
	check_u64(TALLY_READ_LOST, 16);
	check_u64(TALLY_BRANCH_PRIV_SAVE, 1u << 18);
	check_u64(TALLY_BRANCH_COUNTERS, 1u << 19);
	check_u64(TALLY_ATTR_DEFER_CALLCHAIN, 1ull << 38);
	check_u64(TALLY_ATTR_DEFER_OUTPUT, 1ull << 39);
	check_u64(TALLY_CONFIG_PMU_SHIFT, 32);
	check_int(TALLY_AUX_START_PAUSED | TALLY_AUX_PAUSE << 4 | TALLY_AUX_RESUME << 8, 0x421);
#ifdef PERF_ATTR_SIZE_VER8
	check_u64(TALLY_READ_LOST, PERF_FORMAT_LOST);
	check_u64(TALLY_BRANCH_PRIV_SAVE, PERF_SAMPLE_BRANCH_PRIV_SAVE);
	check_u64(TALLY_CONFIG_PMU_SHIFT, PERF_PMU_TYPE_SHIFT);
#endif
}

static void init_zeroes_and_sizes(void)
{
	struct tally_attr attr;

	memset(&attr, 0xff, sizeof(attr));
	tally_attr_init(&attr, TALLY_TYPE_RAW, 0x1234);
	check_int(attr.type, 4);
	check_int(attr.size, 144);
	check_u64(attr.config, 0x1234);
	check_u64(attr.flags, 0);
	check_u64(attr.config4, 0);
}

static void the_size_is_the_smallest_that_covers(void)
{
	for (size_t i = 0; i < COUNT(published); i++) {
		struct tally_attr attr;
		tally_attr_init(&attr, TALLY_TYPE_SOFTWARE, 0);
		((unsigned char *)&attr)[published[i].field] = 1;
		check_int(tally_attr_size(&attr), published[i].size);
	}
	struct tally_attr attr;
	tally_attr_init(&attr, TALLY_TYPE_SOFTWARE, 0);
	check_int(tally_attr_size(&attr), 64);
	attr.clockid = 1; /* in the hole of VER3 */
	check_int(tally_attr_size(&attr), 96);
	attr.aux_action = 1; /* in the hole of VER6 */
	check_int(tally_attr_size(&attr), 120);
}

/* Each byte different, so that a misplaced one shows; only fields within `size` are filled. */
static struct tally_attr pattern(uint32_t size)
{
	struct tally_attr attr = { 0 };
	unsigned char *bytes = (unsigned char *)&attr;

	for (uint32_t i = 0; i < size; i++)
		bytes[i] = (unsigned char)(i * 37 + 11);
	attr.size = size;
	return attr;
}

static void every_size_goes_round_in_both_orders(void)
{
	for (size_t i = 0; i < COUNT(published); i++)
		for (int swapped = 0; swapped < 2; swapped++) {
			uint32_t size = published[i].size;
			struct tally_attr attr = pattern(size), back;
			unsigned char bytes[144];
			check_int(tally_attr_encode(&attr, bytes, size, swapped), size);
			check_int(tally_attr_decode(&back, bytes, size, swapped), size);
			check_mem(&back, &attr, sizeof(attr));
			if (!swapped)
				check_mem(bytes, &attr, size);
		}
}

/* Sizes that no kernel published hold the fields that fit whole. */
static void every_other_size_goes_round_too(void)
{
	for (uint32_t size = 64; size <= 144; size += 8)
		for (int swapped = 0; swapped < 2; swapped++) {
			struct tally_attr attr = pattern(size), back;
			unsigned char bytes[144];
			check_int(tally_attr_encode(&attr, bytes, size, swapped), size);
			check_int(tally_attr_decode(&back, bytes, size, swapped), size);
			check_mem(&back, &attr, sizeof(attr));
		}
}

/* A file of a newer kernel is passed on with what this library has no name for. */
static void unknown_bits_survive(void)
{
	for (int swapped = 0; swapped < 2; swapped++)
		for (unsigned bit = 0; bit < 64; bit++) {
			struct tally_attr attr = { .size = 144 }, back;
			unsigned char bytes[144];
			attr.flags = attr.sample_type = attr.read_format = 1ull << bit;
			attr.branch_sample_type = attr.flags;
			attr.aux_action = 1u << bit % 32;
			attr.reserved_2 = (uint16_t)(1u << bit % 16);
			check_int(tally_attr_encode(&attr, bytes, 144, swapped), 144);
			check_int(tally_attr_decode(&back, bytes, 144, swapped), 144);
			check_mem(&back, &attr, sizeof(attr));
		}
}

/* Each field set by itself, against the compiler's own struct of as many bytes. */
static void each_field_is_where_the_compiler_puts_it(void)
{
#define FIELD(ours, theirs, value)                                                            \
	do {                                                                                  \
		struct perf_event_attr attr = { .theirs = (value) };                          \
		struct tally_attr got;                                                        \
		attr.size = sizeof(attr);                                                     \
		check_int(tally_attr_decode(&got, &attr, sizeof(attr), false), sizeof(attr)); \
		check_u64((uint64_t)got.ours, (uint64_t)attr.theirs);                         \
	} while (0)
	FIELD(type, type, 0x01020304);
	FIELD(config, config, 0x0102030405060708);
	FIELD(sample_period, sample_period, 0x0102030405060708);
	FIELD(sample_period, sample_freq, 0x0102030405060708);
	FIELD(sample_type, sample_type, 0x0102030405060708);
	FIELD(read_format, read_format, 0x0102030405060708);
	FIELD(wakeup_events, wakeup_events, 0x01020304);
	FIELD(wakeup_events, wakeup_watermark, 0x01020304);
	FIELD(bp_type, bp_type, 0x01020304);
	FIELD(config1, bp_addr, 0x0102030405060708);
	FIELD(config1, kprobe_func, 0x0102030405060708);
	FIELD(config1, uprobe_path, 0x0102030405060708);
	FIELD(config2, bp_len, 0x0102030405060708);
	FIELD(config2, kprobe_addr, 0x0102030405060708);
	FIELD(config2, probe_offset, 0x0102030405060708);
	FIELD(branch_sample_type, branch_sample_type, 0x0102030405060708);
	FIELD(sample_regs_user, sample_regs_user, 0x0102030405060708);
	FIELD(sample_stack_user, sample_stack_user, 0x01020304);
	FIELD(clockid, clockid, -5);
	FIELD(sample_regs_intr, sample_regs_intr, 0x0102030405060708);
	FIELD(aux_watermark, aux_watermark, 0x01020304);
	FIELD(sample_max_stack, sample_max_stack, 0x0102);
	FIELD(aux_sample_size, aux_sample_size, 0x01020304);
#ifdef PERF_ATTR_SIZE_VER7
	FIELD(sig_data, sig_data, 0x0102030405060708);
#endif
#ifdef PERF_ATTR_SIZE_VER8
	FIELD(config3, config3, 0x0102030405060708);
#endif
#undef FIELD
	for (unsigned level = 1; level < 4; level++) {
		struct perf_event_attr attr = { .size = sizeof(attr), .precise_ip = level & 3 };
		struct tally_attr got;
		check_int(tally_attr_decode(&got, &attr, sizeof(attr), false), sizeof(attr));
		check_u64(got.flags, (uint64_t)level << TALLY_ATTR_PRECISE_IP_SHIFT);
	}
}

/*
 * { .type = 1, .size = 128, .config = 3, .precise_ip = 1, .disabled = 1, .build_id = 1,
 *   .sample_id_all = 1 }, compiled by clang for s390x.
 */
static void a_big_endian_compilers_bytes(void)
{
	unsigned char bytes[128] = { 0, 0, 0, 1, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 3 };
	unsigned char again[128];
	struct tally_attr attr;

	bytes[40] = 0x80;
	bytes[42] = 0xa0;
	bytes[44] = 0x20;
	check_int(tally_attr_decode(&attr, bytes, sizeof(bytes), true), 128);
	check_int(attr.type, 1);
	check_int(attr.size, 128);
	check_u64(attr.config, 3);
	check_u64(attr.flags, TALLY_ATTR_DISABLED | TALLY_ATTR_BUILD_ID | TALLY_ATTR_SAMPLE_ID_ALL |
				      1ull << TALLY_ATTR_PRECISE_IP_SHIFT);
	check_int(tally_attr_encode(&attr, again, sizeof(again), true), 128);
	check_mem(again, bytes, sizeof(bytes));

	/* { .precise_ip = 2 }: the other bit of the two, in the byte before. */
	memset(bytes + 40, 0, 8);
	bytes[41] = 0x01;
	check_int(tally_attr_decode(&attr, bytes, sizeof(bytes), true), 128);
	check_u64(attr.flags, 2ull << TALLY_ATTR_PRECISE_IP_SHIFT);
}

/* The n-th flag is the n-th bit from the top of a big-endian u64. */
static void each_flag_mirrors(void)
{
	for (unsigned n = 0; n < 40; n++) {
		unsigned char bytes[64] = { [7] = 64 };
		struct tally_attr attr;
		if (n == 15 || n == 16)
			continue; /* precise_ip is a number of two bits */
		bytes[40 + n / 8] = (unsigned char)(0x80 >> n % 8);
		check_int(tally_attr_decode(&attr, bytes, sizeof(bytes), true), 64);
		check_u64(attr.flags, 1ull << n);
	}
}

static void narrow_fields_swap_on_their_own(void)
{
	unsigned char bytes[144] = { [7] = 144 };
	struct tally_attr attr;

	memcpy(bytes + 48, "\1\2\3\4\5\6\7\x08", 8);       /* wakeup_events, bp_type */
	memcpy(bytes + 88, "\1\2\3\4\xff\xff\xff\xfe", 8); /* sample_stack_user, clockid */
	memcpy(bytes + 104, "\1\2\3\4\5\6\7\x08", 8);      /* aux_watermark, max_stack, reserved */
	bytes[116] = 0x80; /* aux_start_paused, the first bit of another bit-field */
	check_int(tally_attr_decode(&attr, bytes, sizeof(bytes), true), 144);
	check_u64(attr.wakeup_events, 0x01020304);
	check_u64(attr.bp_type, 0x05060708);
	check_u64(attr.sample_stack_user, 0x01020304);
	check_int(attr.clockid, -2);
	check_u64(attr.aux_watermark, 0x01020304);
	check_u64(attr.sample_max_stack, 0x0506);
	check_u64(attr.reserved_2, 0x0708);
	check_u64(attr.aux_action, 1);
}

static void decode_takes_what_files_hold(void)
{
	unsigned char *bytes = calloc(1, 200);
	struct tally_attr attr;

	require(bytes);
	bytes[8] = 7;
	check_int(tally_attr_decode(&attr, bytes, 64, false), 64); /* a size of 0 means VER0 */
	check_int(attr.size, 0);
	check_u64(attr.config, 7);

	memset(bytes + 64, 0xff, 136);
	check_int(tally_attr_decode(&attr, bytes, 200, false), 64);
	check_u64(attr.config2, 0); /* what lies beyond belongs to something else */

	bytes[4] = 200; /* from a kernel of the future */
	check_int(tally_attr_decode(&attr, bytes, 200, false), 200);
	check_int(attr.size, 200);
	check_u64(attr.config4, UINT64_MAX);

	bytes[4] = 92; /* no kernel made this: sample_stack_user is whole, clockid is not there */
	check_int(tally_attr_decode(&attr, bytes, 200, false), 92);
	check_u64(attr.sample_stack_user, UINT32_MAX);
	check_int(attr.clockid, 0);
	free(bytes);
}

static void decode_refuses_sizes_that_cannot_be(void)
{
	unsigned char bytes[64] = { [4] = 64 };
	struct tally_attr attr = { .type = 77 };

	check_int(tally_attr_decode(&attr, bytes, 63, false), -EINVAL);
	check_int(tally_attr_decode(&attr, bytes, 0, false), -EINVAL);
	bytes[4] = 72;
	check_int(tally_attr_decode(&attr, bytes, 64, false), -EINVAL);
	bytes[4] = 63;
	check_int(tally_attr_decode(&attr, bytes, 64, false), -EINVAL);
	bytes[4] = 64;
	bytes[7] = 0x80; /* 2 GiB more */
	check_int(tally_attr_decode(&attr, bytes, 64, false), -EINVAL);
	check_int(tally_attr_decode(&attr, bytes, SIZE_MAX, false), -EINVAL);
	check_int(attr.type, 77); /* written on success only */
}

static void encode_cuts_nothing_off(void)
{
	unsigned char bytes[160];
	struct tally_attr attr;

	tally_attr_init(&attr, TALLY_TYPE_HARDWARE, 1);
	check_int(tally_attr_encode(&attr, bytes, 56, false), -EINVAL);
	check_int(tally_attr_encode(&attr, bytes, 65, false), -EINVAL);
	check_int(tally_attr_encode(&attr, bytes, 64, false), 64);
	check_int(bytes[4], 64);
	attr.config3 = 1;
	check_int(tally_attr_encode(&attr, bytes, 128, false), -E2BIG);
	memset(bytes, 0xee, sizeof(bytes));
	check_int(tally_attr_encode(&attr, bytes, 160, false), 160);
	for (size_t i = 144; i < 160; i++)
		check_int(bytes[i], 0);
}

int main(void)
{
	tap_run(the_layout_is_the_kernels);
	tap_run(the_flags_are_the_kernels_bits);
	tap_run(the_numbers_are_the_kernels);
	tap_run(the_newest_numbers);
	tap_run(init_zeroes_and_sizes);
	tap_run(the_size_is_the_smallest_that_covers);
	tap_run(every_size_goes_round_in_both_orders);
	tap_run(every_other_size_goes_round_too);
	tap_run(unknown_bits_survive);
	tap_run(each_field_is_where_the_compiler_puts_it);
	tap_run(a_big_endian_compilers_bytes);
	tap_run(each_flag_mirrors);
	tap_run(narrow_fields_swap_on_their_own);
	tap_run(decode_takes_what_files_hold);
	tap_run(decode_refuses_sizes_that_cannot_be);
	tap_run(encode_cuts_nothing_off);
	return tap_end();
}
