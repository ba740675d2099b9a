/* SPDX-License-Identifier: MIT */
/*
 * struct tally_attr: what perf_event_open(2) is asked for.
 *
 * Byte for byte the kernel's struct perf_event_attr up to its newest ABI (VER9, 144 bytes),
 * whatever headers are installed: a pointer to one may be cast to the other. The kernel's bit-field
 * is the number `flags` here, bits by TALLY_ATTR_*. Unions of the kernel have one name, with the
 * others in the comment. An attr is sent to the kernel with the smallest published size that covers
 * what it uses, so that old kernels take it.
 *
 * Source: include/uapi/linux/perf_event.h; the versions in brackets are those that brought a field.
 */
#ifndef TALLY_ATTR_H
#define TALLY_ATTR_H

#include <tally/api.h>
#include <tally/error.h>

TALLY_BEGIN_DECLS

struct tally_attr {
	uint32_t type;          /* TALLY_TYPE_*, or a PMU's number from /sys/bus/event_source */
	uint32_t size;          /* of this struct as sent or as found in a file; 0 means 64 */
	uint64_t config;        /* which event of the type */
	uint64_t sample_period; /* events a sample; sample_freq (samples a second) with _FREQ */
	uint64_t sample_type;   /* TALLY_SAMPLE_* */
	uint64_t read_format;   /* TALLY_READ_* */
	uint64_t flags;         /* TALLY_ATTR_* and the precise_ip field */
	uint32_t wakeup_events; /* wakeup_watermark (bytes) with _WATERMARK */
	uint32_t bp_type;       /* TALLY_BP_*, with _TYPE_BREAKPOINT */
	uint64_t config1;       /* bp_addr, kprobe_func, uprobe_path */
	uint64_t config2;       /* bp_len, kprobe_addr, probe_offset [2.6.33] */
	uint64_t branch_sample_type; /* TALLY_BRANCH_* [3.4] */
	uint64_t sample_regs_user;   /* [3.7] */
	uint32_t sample_stack_user;  /* [3.7] */
	int32_t clockid;             /* with _USE_CLOCKID [4.1] */
	uint64_t sample_regs_intr;   /* [3.19] */
	uint32_t aux_watermark;      /* [4.1] */
	uint16_t sample_max_stack;   /* [4.8] */
	uint16_t reserved_2;
	uint32_t aux_sample_size; /* [5.5] */
	uint32_t aux_action;      /* TALLY_AUX_* [6.13] */
	uint64_t sig_data;        /* [5.13] */
	uint64_t config3;         /* [6.3] */
	uint64_t config4;         /* [6.19] */
};

/* Sizes that kernels published, for tally_attr_size() and files. */
#define TALLY_ATTR_SIZE_MIN 64
#define TALLY_ATTR_SIZE_MAX 144

/* attr.type */
#define TALLY_TYPE_HARDWARE   0u
#define TALLY_TYPE_SOFTWARE   1u
#define TALLY_TYPE_TRACEPOINT 2u
#define TALLY_TYPE_HW_CACHE   3u
#define TALLY_TYPE_RAW        4u
#define TALLY_TYPE_BREAKPOINT 5u

/*
 * attr.config of TALLY_TYPE_HARDWARE. Its upper half, as that of TALLY_TYPE_HW_CACHE, may name a PMU by
 * its type, where a machine has CPUs of several kinds [5.13].
 */
#define TALLY_CONFIG_PMU_SHIFT           32
#define TALLY_HW_CPU_CYCLES              0u
#define TALLY_HW_INSTRUCTIONS            1u
#define TALLY_HW_CACHE_REFERENCES        2u
#define TALLY_HW_CACHE_MISSES            3u
#define TALLY_HW_BRANCH_INSTRUCTIONS     4u
#define TALLY_HW_BRANCH_MISSES           5u
#define TALLY_HW_BUS_CYCLES              6u
#define TALLY_HW_STALLED_CYCLES_FRONTEND 7u
#define TALLY_HW_STALLED_CYCLES_BACKEND  8u
#define TALLY_HW_REF_CPU_CYCLES          9u

/* attr.config of TALLY_TYPE_SOFTWARE */
#define TALLY_SW_CPU_CLOCK        0u
#define TALLY_SW_TASK_CLOCK       1u
#define TALLY_SW_PAGE_FAULTS      2u
#define TALLY_SW_CONTEXT_SWITCHES 3u
#define TALLY_SW_CPU_MIGRATIONS   4u
#define TALLY_SW_PAGE_FAULTS_MIN  5u
#define TALLY_SW_PAGE_FAULTS_MAJ  6u
#define TALLY_SW_ALIGNMENT_FAULTS 7u
#define TALLY_SW_EMULATION_FAULTS 8u
#define TALLY_SW_DUMMY            9u
#define TALLY_SW_BPF_OUTPUT       10u
#define TALLY_SW_CGROUP_SWITCHES  11u

/*
 * attr.config of TALLY_TYPE_HW_CACHE: a cache, an operation and a result, as
 * TALLY_CACHE_CONFIG(TALLY_CACHE_L1D, TALLY_CACHE_OP_READ, TALLY_CACHE_RESULT_MISS).
 */
#define TALLY_CACHE_L1D  0u
#define TALLY_CACHE_L1I  1u
#define TALLY_CACHE_LL   2u
#define TALLY_CACHE_DTLB 3u
#define TALLY_CACHE_ITLB 4u
#define TALLY_CACHE_BPU  5u
#define TALLY_CACHE_NODE 6u

#define TALLY_CACHE_OP_READ     0u
#define TALLY_CACHE_OP_WRITE    1u
#define TALLY_CACHE_OP_PREFETCH 2u

#define TALLY_CACHE_RESULT_ACCESS 0u
#define TALLY_CACHE_RESULT_MISS   1u

#define TALLY_CACHE_CONFIG(cache, op, result) \
	((uint64_t)(cache) | (uint64_t)(op) << 8 | (uint64_t)(result) << 16)

/* attr.bp_type; at the address config1, config2 bytes long */
#define TALLY_BP_R 1u
#define TALLY_BP_W 2u
#define TALLY_BP_X 4u

/* attr.sample_type, in the order in which a sample's fields follow each other but for IDENTIFIER */
#define TALLY_SAMPLE_IP             (1ull << 0)
#define TALLY_SAMPLE_TID            (1ull << 1)
#define TALLY_SAMPLE_TIME           (1ull << 2)
#define TALLY_SAMPLE_ADDR           (1ull << 3)
#define TALLY_SAMPLE_READ           (1ull << 4)
#define TALLY_SAMPLE_CALLCHAIN      (1ull << 5)
#define TALLY_SAMPLE_ID             (1ull << 6)
#define TALLY_SAMPLE_CPU            (1ull << 7)
#define TALLY_SAMPLE_PERIOD         (1ull << 8)
#define TALLY_SAMPLE_STREAM_ID      (1ull << 9)
#define TALLY_SAMPLE_RAW            (1ull << 10)
#define TALLY_SAMPLE_BRANCH_STACK   (1ull << 11) /* [3.4] */
#define TALLY_SAMPLE_REGS_USER      (1ull << 12) /* [3.7] */
#define TALLY_SAMPLE_STACK_USER     (1ull << 13) /* [3.7] */
#define TALLY_SAMPLE_WEIGHT         (1ull << 14) /* [3.10] */
#define TALLY_SAMPLE_DATA_SRC       (1ull << 15) /* [3.10] */
#define TALLY_SAMPLE_IDENTIFIER     (1ull << 16) /* [3.12] */
#define TALLY_SAMPLE_TRANSACTION    (1ull << 17) /* [3.13] */
#define TALLY_SAMPLE_REGS_INTR      (1ull << 18) /* [3.19] */
#define TALLY_SAMPLE_PHYS_ADDR      (1ull << 19) /* [4.14] */
#define TALLY_SAMPLE_AUX            (1ull << 20) /* [5.5] */
#define TALLY_SAMPLE_CGROUP         (1ull << 21) /* [5.7] */
#define TALLY_SAMPLE_DATA_PAGE_SIZE (1ull << 22) /* [5.11] */
#define TALLY_SAMPLE_CODE_PAGE_SIZE (1ull << 23) /* [5.11] */
#define TALLY_SAMPLE_WEIGHT_STRUCT  (1ull << 24) /* [5.12] */

/* attr.branch_sample_type, with TALLY_SAMPLE_BRANCH_STACK. Modes, those of the event when none: */
#define TALLY_BRANCH_USER   (1ull << 0)
#define TALLY_BRANCH_KERNEL (1ull << 1)
#define TALLY_BRANCH_HV     (1ull << 2)
/* which branches, at least one; */
#define TALLY_BRANCH_ANY        (1ull << 3)
#define TALLY_BRANCH_ANY_CALL   (1ull << 4)
#define TALLY_BRANCH_ANY_RETURN (1ull << 5)
#define TALLY_BRANCH_IND_CALL   (1ull << 6)
#define TALLY_BRANCH_ABORT_TX   (1ull << 7)  /* [3.11] */
#define TALLY_BRANCH_IN_TX      (1ull << 8)  /* [3.11] */
#define TALLY_BRANCH_NO_TX      (1ull << 9)  /* [3.11] */
#define TALLY_BRANCH_COND       (1ull << 10) /* [3.16] */
#define TALLY_BRANCH_CALL_STACK (1ull << 11) /* [4.1] */
#define TALLY_BRANCH_IND_JUMP   (1ull << 12) /* [4.2] */
#define TALLY_BRANCH_CALL       (1ull << 13) /* [4.4] */
/* and what is told of each. */
#define TALLY_BRANCH_NO_FLAGS  (1ull << 14) /* [4.5] */
#define TALLY_BRANCH_NO_CYCLES (1ull << 15) /* [4.5] */
#define TALLY_BRANCH_TYPE_SAVE (1ull << 16) /* [4.14] */
#define TALLY_BRANCH_HW_INDEX  (1ull << 17) /* [5.7] */
#define TALLY_BRANCH_PRIV_SAVE (1ull << 18) /* [6.1] */
#define TALLY_BRANCH_COUNTERS  (1ull << 19) /* [6.8] */

/* attr.aux_action [6.13] */
#define TALLY_AUX_START_PAUSED (1u << 0)
#define TALLY_AUX_PAUSE        (1u << 1)
#define TALLY_AUX_RESUME       (1u << 2)

/* attr.read_format */
#define TALLY_READ_TIME_ENABLED (1ull << 0)
#define TALLY_READ_TIME_RUNNING (1ull << 1)
#define TALLY_READ_ID           (1ull << 2)
#define TALLY_READ_GROUP        (1ull << 3)
#define TALLY_READ_LOST         (1ull << 4) /* [6.0] */

/* attr.flags */
#define TALLY_ATTR_DISABLED                 (1ull << 0)
#define TALLY_ATTR_INHERIT                  (1ull << 1)
#define TALLY_ATTR_PINNED                   (1ull << 2)
#define TALLY_ATTR_EXCLUSIVE                (1ull << 3)
#define TALLY_ATTR_EXCLUDE_USER             (1ull << 4)
#define TALLY_ATTR_EXCLUDE_KERNEL           (1ull << 5)
#define TALLY_ATTR_EXCLUDE_HV               (1ull << 6)
#define TALLY_ATTR_EXCLUDE_IDLE             (1ull << 7)
#define TALLY_ATTR_MMAP                     (1ull << 8)
#define TALLY_ATTR_COMM                     (1ull << 9)
#define TALLY_ATTR_FREQ                     (1ull << 10)
#define TALLY_ATTR_INHERIT_STAT             (1ull << 11)
#define TALLY_ATTR_ENABLE_ON_EXEC           (1ull << 12)
#define TALLY_ATTR_TASK                     (1ull << 13)
#define TALLY_ATTR_WATERMARK                (1ull << 14)
#define TALLY_ATTR_PRECISE_IP_SHIFT         15 /* two bits: the skid that is accepted, 0 to 3 */
#define TALLY_ATTR_PRECISE_IP               (3ull << TALLY_ATTR_PRECISE_IP_SHIFT)
#define TALLY_ATTR_MMAP_DATA                (1ull << 17)
#define TALLY_ATTR_SAMPLE_ID_ALL            (1ull << 18)
#define TALLY_ATTR_EXCLUDE_HOST             (1ull << 19)
#define TALLY_ATTR_EXCLUDE_GUEST            (1ull << 20)
#define TALLY_ATTR_EXCLUDE_CALLCHAIN_KERNEL (1ull << 21) /* [3.7] */
#define TALLY_ATTR_EXCLUDE_CALLCHAIN_USER   (1ull << 22) /* [3.7] */
#define TALLY_ATTR_MMAP2                    (1ull << 23) /* [3.16] */
#define TALLY_ATTR_COMM_EXEC                (1ull << 24) /* [3.16] */
#define TALLY_ATTR_USE_CLOCKID              (1ull << 25) /* [4.1] */
#define TALLY_ATTR_CONTEXT_SWITCH           (1ull << 26) /* [4.3] */
#define TALLY_ATTR_WRITE_BACKWARD           (1ull << 27) /* [4.7] */
#define TALLY_ATTR_NAMESPACES               (1ull << 28) /* [4.12] */
#define TALLY_ATTR_KSYMBOL                  (1ull << 29) /* [5.1] */
#define TALLY_ATTR_BPF_EVENT                (1ull << 30) /* [5.1] */
#define TALLY_ATTR_AUX_OUTPUT               (1ull << 31) /* [5.4] */
#define TALLY_ATTR_CGROUP                   (1ull << 32) /* [5.7] */
#define TALLY_ATTR_TEXT_POKE                (1ull << 33) /* [5.9] */
#define TALLY_ATTR_BUILD_ID                 (1ull << 34) /* [5.12] */
#define TALLY_ATTR_INHERIT_THREAD           (1ull << 35) /* [5.13] */
#define TALLY_ATTR_REMOVE_ON_EXEC           (1ull << 36) /* [5.13] */
#define TALLY_ATTR_SIGTRAP                  (1ull << 37) /* [5.13] */
#define TALLY_ATTR_DEFER_CALLCHAIN          (1ull << 38) /* [6.19] */
#define TALLY_ATTR_DEFER_OUTPUT             (1ull << 39) /* [6.19] */

/* Zeroes an attr and sets its type, config and current size. Since: 0.1 */
TALLY_API void tally_attr_init(struct tally_attr *attr, uint32_t type, uint64_t config);

/*
 * The smallest published size that covers every non-zero field: 64, 72, 80, 96, 104, 112, 120, 128,
 * 136 or 144. attr->size itself is not looked at. Since: 0.1
 */
TALLY_API uint32_t tally_attr_size(const struct tally_attr *attr);

/*
 * Reads an attr of any size from bytes, as files carry it. Its own size field (0 means 64) says how
 * long it is; fields beyond it are zero, and what an even newer kernel appended is skipped.
 *   swapped  the bytes have the other byte order. The flags are a bit-field in C, whose bits a
 *            big-endian compiler allots from the other end; this is undone here.
 * Returns the number of bytes that the attr occupies. out->size keeps the file's figure.
 * Errors: -EINVAL when the size is below 64 or beyond `len`. Since: 0.1
 */
TALLY_API int tally_attr_decode(struct tally_attr *out, const void *bytes, size_t len,
				bool swapped);

/*
 * Writes `size` bytes (a multiple of 8, at least 64) with that value in the size field; what lies
 * behind the 144 known bytes is zeroed. Returns `size`. Errors: -EINVAL; -E2BIG when a non-zero
 * field lies beyond `size`. Since: 0.1
 */
TALLY_API int tally_attr_encode(const struct tally_attr *attr, void *bytes, size_t size,
				bool swapped);

TALLY_END_DECLS

#endif
