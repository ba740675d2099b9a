/* SPDX-License-Identifier: MIT */
/*
 * attr: the referees are the installed <linux/perf_event.h>, for what it has, and bytes that a
 * compiler for s390x (big-endian) made of the kernel's struct.
 */
#include <errno.h>
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
		{ TALLY_SAMPLE_IDENTIFIER, PERF_SAMPLE_IDENTIFIER },
		{ TALLY_SAMPLE_REGS_INTR, PERF_SAMPLE_REGS_INTR },
		{ TALLY_SAMPLE_PHYS_ADDR, PERF_SAMPLE_PHYS_ADDR },
		{ TALLY_SAMPLE_AUX, PERF_SAMPLE_AUX },
		{ TALLY_SAMPLE_CGROUP, PERF_SAMPLE_CGROUP },
		{ TALLY_SAMPLE_CODE_PAGE_SIZE, PERF_SAMPLE_CODE_PAGE_SIZE },
		{ TALLY_SAMPLE_WEIGHT_STRUCT, PERF_SAMPLE_WEIGHT_STRUCT },
		{ TALLY_READ_TIME_ENABLED, PERF_FORMAT_TOTAL_TIME_ENABLED },
		{ TALLY_READ_TIME_RUNNING, PERF_FORMAT_TOTAL_TIME_RUNNING },
		{ TALLY_READ_ID, PERF_FORMAT_ID },
		{ TALLY_READ_GROUP, PERF_FORMAT_GROUP },
	};

	for (size_t i = 0; i < COUNT(pairs); i++)
		check_u64(pairs[i].ours, pairs[i].theirs);
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
	tap_run(init_zeroes_and_sizes);
	tap_run(the_size_is_the_smallest_that_covers);
	tap_run(every_size_goes_round_in_both_orders);
	tap_run(a_big_endian_compilers_bytes);
	tap_run(each_flag_mirrors);
	tap_run(narrow_fields_swap_on_their_own);
	tap_run(decode_takes_what_files_hold);
	tap_run(decode_refuses_sizes_that_cannot_be);
	tap_run(encode_cuts_nothing_off);
	return tap_end();
}
