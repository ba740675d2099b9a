/* SPDX-License-Identifier: MIT */
/*
 * Records: what the kernel writes into rings and what perf.data files hold.
 *
 * Pure functions over bytes: no system call, no allocation, nothing is read outside the record,
 *either byte order. Live rings, files and streams use the same code.
 *
 *	struct tally_layout layout;
 *	struct tally_record rec;
 *	tally_layout_init(&layout, attr, false);
 *	if (tally_record_decode(&layout, bytes, len, &rec, sizeof(rec)) > 0 && rec.type ==
 *TALLY_RECORD_SAMPLE) printf("%d %#" PRIx64 "\n", rec.id.tid, rec.sample.ip);
 *
 * Types and fields that this version does not know pass through: `rec.bytes` always has all of it.
 * Source: perf_event_open(2) and include/uapi/linux/perf_event.h.
 */
#ifndef TALLY_RECORD_H
#define TALLY_RECORD_H

#include <tally/api.h>
#include <tally/attr.h>

TALLY_BEGIN_DECLS

enum tally_record_type {
	TALLY_RECORD_MMAP = 1,
	TALLY_RECORD_LOST = 2,
	TALLY_RECORD_COMM = 3,
	TALLY_RECORD_EXIT = 4,
	TALLY_RECORD_THROTTLE = 5,
	TALLY_RECORD_UNTHROTTLE = 6,
	TALLY_RECORD_FORK = 7,
	TALLY_RECORD_READ = 8,
	TALLY_RECORD_SAMPLE = 9,
	TALLY_RECORD_MMAP2 = 10, /* [3.16] */
	TALLY_RECORD_AUX = 11,
	TALLY_RECORD_ITRACE_START = 12,
	TALLY_RECORD_LOST_SAMPLES = 13, /* [4.2] */
	TALLY_RECORD_SWITCH = 14,
	TALLY_RECORD_SWITCH_CPU_WIDE = 15,
	TALLY_RECORD_NAMESPACES = 16,
	TALLY_RECORD_KSYMBOL = 17,
	TALLY_RECORD_BPF_EVENT = 18,
	TALLY_RECORD_CGROUP = 19,
	TALLY_RECORD_TEXT_POKE = 20,
	TALLY_RECORD_AUX_OUTPUT_HW_ID = 21,
	TALLY_RECORD_CALLCHAIN_DEFERRED = 22,
};

/* What every record begins with, in the writer's byte order. `size` counts the header too. */
struct tally_record_header {
	uint32_t type;
	uint16_t misc;
	uint16_t size;
};

/* header.misc: the low three bits tell the mode in which the CPU was. */
#define TALLY_MISC_CPUMODE            7u
#define TALLY_MISC_KERNEL             1u
#define TALLY_MISC_USER               2u
#define TALLY_MISC_HYPERVISOR         3u
#define TALLY_MISC_GUEST_KERNEL       4u
#define TALLY_MISC_GUEST_USER         5u
#define TALLY_MISC_COMM_EXEC          (1u << 13) /* COMM: the name changed by an exec [3.16] */
#define TALLY_MISC_FORK_EXEC          (1u << 13) /* FORK, in files: an existing task, inherits no maps */
#define TALLY_MISC_MMAP_DATA          (1u << 13) /* MMAP, MMAP2: not executable */
#define TALLY_MISC_SWITCH_OUT         (1u << 13) /* SWITCH, SWITCH_CPU_WIDE: away from the task [4.3] */
#define TALLY_MISC_SWITCH_OUT_PREEMPT (1u << 14) /* ... while it could run on [4.17] */
#define TALLY_MISC_EXACT_IP           (1u << 14) /* SAMPLE: ip is that of the event's instruction */
#define TALLY_MISC_MMAP_BUILD_ID      (1u << 14) /* MMAP2: a build-id instead of the inode [5.12] */

/* Values in a callchain at and above this are not addresses but tell whose addresses follow. */
#define TALLY_CONTEXT_MAX    ((uint64_t)-4095)
#define TALLY_CONTEXT_HV     ((uint64_t)-32)
#define TALLY_CONTEXT_KERNEL ((uint64_t)-128)
#define TALLY_CONTEXT_USER   ((uint64_t)-512)
/* Behind it stands a cookie: the user's part comes with a CALLCHAIN_DEFERRED that has it [6.19]. */
#define TALLY_CONTEXT_USER_DEFERRED ((uint64_t)-640)
#define TALLY_CONTEXT_GUEST         ((uint64_t)-2048)
#define TALLY_CONTEXT_GUEST_KERNEL  ((uint64_t)-2176)
#define TALLY_CONTEXT_GUEST_USER    ((uint64_t)-2560)

/* How the records of one event are laid out: the part of its attr that decides. Plain data. */
struct tally_layout {
	uint64_t sample_type;
	uint64_t read_format;
	uint64_t branch_sample_type;
	uint64_t regs_user, regs_intr; /* register masks */
	uint32_t sample_id_all;        /* records other than SAMPLE end in a sample_id */
	uint32_t swapped;              /* the bytes have the other byte order */
};

/* Takes the layout from an attr. Since: 0.1 */
TALLY_API void tally_layout_init(struct tally_layout *layout, const struct tally_attr *attr,
				 bool swapped);

/* How many bytes the sample_id at the end of the other records has; 0 without sample_id_all. Since:
 * 0.1 */
TALLY_API size_t tally_layout_id_size(const struct tally_layout *layout);

/*
 * The event id in a record, from which the layout itself may be found when several events share a
 * ring or file: all must carry the id at the same place (IDENTIFIER, or ID after equal fields), and
 * any of their layouts serves. 0 when the layout has no id or the record is too short. Since: 0.1
 */
TALLY_API uint64_t tally_record_id(const struct tally_layout *layout, const void *bytes,
				   size_t len);

/* Who, when and where, common to all records; what the layout lacks is -1 (pid, tid, cpu) or 0. */
struct tally_sample_id {
	int32_t pid, tid;
	uint64_t time; /* ns of the event's clock */
	uint64_t id, stream_id;
	int32_t cpu;
	uint32_t has; /* the TALLY_SAMPLE_* bits (TID, TIME, ID, STREAM_ID, CPU, IDENTIFIER) present
		       */
};

struct tally_record_mmap {
	int32_t pid, tid;
	uint64_t addr, len, pgoff; /* bytes */
	uint32_t maj, min;         /* MMAP2 with an inode */
	uint64_t ino, ino_generation;
	uint32_t prot, flags; /* MMAP2: PROT_*, MAP_* */
	const char *filename; /* borrowed from the bytes, NUL-terminated there */
	uint32_t filename_len;
	/* MMAP2 with a build-id: 1 to 20, else 0. Ask this, not misc: the kernel may set the bit
	 * of a record with an inode when somebody else listens who wants build-ids. */
	uint8_t build_id_size;
	uint8_t reserved[3];
	uint8_t build_id[20];
	uint32_t reserved_2;
};

struct tally_record_comm {
	int32_t pid, tid;
	const char *comm; /* borrowed, NUL-terminated */
	uint32_t comm_len;
	uint32_t exec; /* by an exec: all mappings of the process are gone */
};

/* FORK and EXIT. */
struct tally_record_task {
	int32_t pid, ppid, tid, ptid;
	uint64_t time;
};

struct tally_record_lost {
	uint64_t id;   /* LOST: of the event; LOST_SAMPLES: 0 */
	uint64_t lost; /* records, or samples with LOST_SAMPLES */
};

/* THROTTLE and UNTHROTTLE. */
struct tally_record_throttle {
	uint64_t time, id, stream_id;
};

/*
 * What a counter read, within a sample (SAMPLE_READ) or a READ record: one count, or with READ_GROUP
 * those of all members. tally_record_count() gives each.
 */
struct tally_record_counts {
	uint64_t count;      /* how many */
	uint64_t enabled_ns; /* 0 without READ_TIME_ENABLED */
	uint64_t running_ns; /* 0 without READ_TIME_RUNNING */
	uint64_t format;     /* TALLY_READ_* bits of the layout */
	const void *block;   /* borrowed: where they stand */
};

/* READ: the counts of a task that ends, with inherit_stat. */
struct tally_record_read {
	int32_t pid, tid;
	struct tally_record_counts counts;
};

/* AUX: what came into the AUX area. [4.1] */
struct tally_record_aux {
	uint64_t offset, size; /* in the area, bytes; the offset ever grows */
	uint64_t flags;        /* TALLY_AUX_* */
};

#define TALLY_AUX_TRUNCATED (1u << 0) /* some was lost before it */
#define TALLY_AUX_OVERWRITE (1u << 1) /* a snapshot: it overwrites what is not read */
#define TALLY_AUX_PARTIAL   (1u << 2) /* it has gaps [4.12] */
#define TALLY_AUX_COLLISION (1u << 3) /* two samples collided [4.15] */

/* ITRACE_START: the task that instruction tracing started with. SWITCH_CPU_WIDE: the next or, with
 * TALLY_MISC_SWITCH_OUT unset, the previous task; -1 of who may not be told. */
struct tally_record_who {
	int32_t pid, tid;
};

/* NAMESPACES: by the order of the kernel: net, uts, ipc, pid, user, mnt, cgroup. [4.12] */
struct tally_record_namespaces {
	int32_t pid, tid;
	uint64_t count;
	const void *entries; /* borrowed; tally_record_namespace() gives each */
};

/* KSYMBOL: kernel code that came or went: BPF programs, trampolines. [5.1] */
struct tally_record_ksymbol {
	uint64_t addr;
	uint32_t len;   /* bytes */
	uint16_t kind;  /* 1 BPF, 2 out of line (trampolines, probes) */
	uint16_t flags; /* bit 0: unregistered, it is gone */
	const char *name;
	uint32_t name_len;
	uint32_t reserved;
};

/* BPF_EVENT: a program was loaded (1) or unloaded (2). [5.1] */
struct tally_record_bpf {
	uint16_t kind, flags;
	uint32_t id;
	uint8_t tag[8];
};

/* CGROUP: a cgroup's id, which is the inode of its folder, and its path. [5.7] */
struct tally_record_cgroup {
	uint64_t id;
	const char *path;
	uint32_t path_len;
	uint32_t reserved;
};

/* TEXT_POKE: kernel code was changed: old bytes, new bytes. [5.9] */
struct tally_record_text_poke {
	uint64_t addr;
	uint16_t old_len, new_len;
	uint32_t reserved;
	const void *bytes; /* borrowed: the old ones and, behind them, the new ones */
};

/* AUX_OUTPUT_HW_ID: which hardware id stands for the event in the AUX area. [5.16] */
struct tally_record_hw_id {
	uint64_t hw_id;
};

/* CALLCHAIN_DEFERRED: the user's part of the chains that end in this cookie. [6.19] */
struct tally_record_deferred {
	uint64_t cookie;
	const void *chain; /* as of a sample: tally_sample_ip() */
	uint64_t chain_len;
};

/* Registers of a sample: those of `mask`, in the order of its bits. tally_regs_value() finds one. */
struct tally_regs {
	uint64_t abi;       /* 0: none, as of kernel threads; 1: 32 bits, 2: 64 bits */
	uint64_t mask;      /* which there are, by the bits of the architecture's perf_regs.h */
	const void *values; /* borrowed, NULL with abi 0 */
};

/*
 * A sample; fields that the layout lacks are zero. pid, tid, time, id, cpu stand in the sample_id.
 * Pointers lead into the record, unaligned and in the writer's byte order: functions below give the
 * values.
 */
struct tally_record_sample {
	uint64_t ip;
	uint64_t addr;
	uint64_t period;
	const void *chain;  /* use tally_sample_ip */
	uint64_t chain_len; /* entries */
	const void *rest;   /* fields behind those that this version knows */
	uint64_t rest_len;  /* bytes */
	struct tally_record_counts counts;
	const void *raw;      /* as its tracepoint or PMU lays it out; begins at 4 modulo 8 */
	uint64_t raw_len;     /* bytes, with what the kernel padded */
	const void *branches; /* use tally_sample_branch; the latest first */
	const void *branch_counters; /* one word a branch, NULL: none [6.8] */
	uint64_t branch_count;
	uint64_t branch_hw_idx; /* UINT64_MAX: not known [5.7] */
	uint64_t
		branch_parts; /* what else the stack has: HW_INDEX, COUNTERS of branch_sample_type */
	struct tally_regs regs_user, regs_intr;
	const void *stack;       /* of user mode, from the stack pointer on */
	uint64_t stack_len;      /* bytes that are there */
	uint64_t stack_dyn_size; /* how many of them the kernel could read */
	uint64_t weight;         /* with WEIGHT_STRUCT: 32, 16 and 16 bits, the first lowest */
	uint64_t data_src;       /* use tally_data_src_decode */
	uint64_t transaction;    /* TALLY_TXN_* of the kernel's ABI, the abort code above bit 32 */
	uint64_t phys_addr;
	uint64_t cgroup;         /* inode of its folder in the cgroup file system */
	uint64_t data_page_size; /* bytes */
	uint64_t code_page_size; /* bytes */
	const void *aux;
	uint64_t aux_len; /* bytes */
	/* Which fields the layout has: one that is zero was not asked for, or there was nothing. */
	uint64_t sample_type, branch_sample_type;
};

struct tally_record {
	uint32_t type; /* enum tally_record_type; others pass through */
	uint16_t misc;
	uint16_t size;
	const void *bytes; /* the whole record, borrowed from the caller's buffer */
	struct tally_sample_id id;
	uint32_t swapped;
	uint32_t leftover; /* bytes between the decoded fields and the sample_id that nobody claimed
			    */
	union {
		struct tally_record_mmap mmap; /* MMAP, MMAP2 */
		struct tally_record_comm comm;
		struct tally_record_task task; /* FORK, EXIT */
		struct tally_record_lost lost; /* LOST, LOST_SAMPLES */
		struct tally_record_throttle throttle;
		struct tally_record_read read;
		struct tally_record_sample sample;
		struct tally_record_aux aux;
		struct tally_record_who who; /* ITRACE_START, SWITCH_CPU_WIDE */
		struct tally_record_namespaces namespaces;
		struct tally_record_ksymbol ksymbol;
		struct tally_record_bpf bpf;
		struct tally_record_cgroup cgroup;
		struct tally_record_text_poke text_poke;
		struct tally_record_hw_id hw_id;
		struct tally_record_deferred deferred;
	};
};

/*
 * Decodes the record that begins at `bytes`, of which `len` are there.
 *   out_size  sizeof *out, as the caller compiled it, so that the struct may grow.
 * Returns the record's size, which leads to the next one. User record types (64 and above) have no
 * sample_id. Pointers in `*out` point into `bytes`. After an error `*out` holds nothing of use.
 * Errors: -EAGAIN when `len` is shorter than the record (or its header); -EBADMSG when the record
 * contradicts itself: a size below 8, fields beyond its end, a text without NUL. Since: 0.1
 */
TALLY_API int tally_record_decode(const struct tally_layout *layout, const void *bytes, size_t len,
				  struct tally_record *out, size_t out_size);

/*
 * Writes a record of any type that has a name as the kernel would: texts padded to 8, the sample_id
 * that the layout asks for at the end. rec->size, bytes, leftover are not looked at; borrowed values
 * are taken to be in the byte order that rec->swapped tells. encode(decode(x)) == x for what the
 * kernel writes. Returns the record's size. Errors: -ENOSPC when `room` or 65,535 bytes are too
 * few; -EOPNOTSUPP for other types, and for sample fields or read formats that this version does
 * not know; -EINVAL for a build-id of more than 20 bytes, or counts and registers that do not fit
 * the layout. Since: 0.1
 */
TALLY_API int tally_record_encode(const struct tally_layout *layout, const struct tally_record *rec,
				  void *bytes, size_t room);

/* The i-th entry of the callchain of a SAMPLE or CALLCHAIN_DEFERRED, 0 beyond its end. Since: 0.1 */
TALLY_API uint64_t tally_sample_ip(const struct tally_record *rec, uint64_t i);

/* One of the counts of a SAMPLE or READ; what the format lacks is 0. */
struct tally_record_count {
	uint64_t value, id, lost;
};

/* The i-th count; false beyond the end, or for a record without counts. Since: 0.1 */
TALLY_API bool tally_record_count(const struct tally_record *rec, uint64_t i,
				  struct tally_record_count *out);

/* A branch that was taken. */
struct tally_branch {
	uint64_t from, to;
	uint64_t
		counters; /* occurrences of events since the branch before, as the PMU packs them */
	uint32_t flags;   /* TALLY_BRANCH_ENTRY_* */
	uint16_t cycles;  /* since the branch before; 0: not told */
	uint8_t type; /* 0 unknown, 1 conditional, 2 not, 3 indirect, 4 call ...; 15: see new_type */
	uint8_t spec; /* 0 not told, 1 wrong path, 2 right path not speculated, 3 right path [6.1] */
	uint8_t new_type; /* [6.1] */
	uint8_t priv;     /* 0 unknown, 1 user, 2 kernel, 3 hypervisor [6.1] */
	uint8_t reserved[2];
};

#define TALLY_BRANCH_ENTRY_MISPRED   (1u << 0) /* neither bit: not told */
#define TALLY_BRANCH_ENTRY_PREDICTED (1u << 1)
#define TALLY_BRANCH_ENTRY_IN_TX     (1u << 2)
#define TALLY_BRANCH_ENTRY_ABORT     (1u << 3)

/* The i-th branch of a sample, the latest first; false beyond the end. Since: 0.1 */
TALLY_API bool tally_sample_branch(const struct tally_record *rec, uint64_t i,
				   struct tally_branch *out);

/* The register that is bit `bit` of the mask; false when it is not there. Since: 0.1 */
TALLY_API bool tally_regs_value(const struct tally_record *rec, const struct tally_regs *regs,
				unsigned bit, uint64_t *value);

/*
 * The name of the register that is bit `bit` for an architecture as uname(2) calls it: x86_64, i686,
 * aarch64, armv7l, riscv64, ppc64le, s390x and their kin. `abi` 1 on a 64-bit machine does not
 * change it: the mask is the kernel's. NULL: no such register. Since: 0.1
 */
TALLY_API const char *tally_reg_name(const char *machine, unsigned bit);

/*
 * The mask of the general registers of an architecture that user mode has, stack and instruction
 * pointers among them: what it takes to unwind a copy of a stack. 0: no such architecture. Since: 0.1
 */
TALLY_API uint64_t tally_regs_general(const char *machine);

/* sample.data_src taken apart; each field is a set of the kernel's PERF_MEM_* bits of that kind. */
struct tally_data_src {
	uint32_t op;       /* NA 1, LOAD 2, STORE 4, PFETCH 8, EXEC 16 */
	uint32_t level;    /* NA 1, HIT 2, MISS 4, L1 8, LFB 16, L2 32, L3 64, LOC_RAM 128 ... */
	uint32_t snoop;    /* NA 1, NONE 2, HIT 4, MISS 8, HITM 16 */
	uint32_t lock;     /* NA 1, LOCKED 2 */
	uint32_t dtlb;     /* NA 1, HIT 2, MISS 4, L1 8, L2 16, WALKER 32, OS fault 64 */
	uint32_t level_no; /* a number: 1 to 4 L1 to L4, 8 UNC, 9 CXL, 10 IO, 11 any cache, 12 LFB,
			      13 RAM, 14 PMEM, 15 NA */
	uint32_t remote;   /* 1: another node */
	uint32_t snoopx;   /* FWD 1, PEER 2 */
	uint32_t block;    /* NA 1, DATA 2, ADDR 4 */
	uint32_t hops;     /* a number: 1 same core ... 4 another board */
	uint32_t region;   /* a number [7.0] */
	uint32_t rest;     /* bits that this version does not know, from bit 0 on */
};

/* Since: 0.1 */
TALLY_API struct tally_data_src tally_data_src_decode(uint64_t data_src);

/* A namespace of a NAMESPACES record: device and inode of its file. */
struct tally_namespace {
	uint64_t dev, ino;
};

/* The i-th namespace; false beyond the end. Since: 0.1 */
TALLY_API bool tally_record_namespace(const struct tally_record *rec, uint64_t i,
				      struct tally_namespace *out);

/* The name of a context marker in a callchain ("kernel", "user" ...), NULL for an address. Since: 0.1
 */
TALLY_API const char *tally_context_name(uint64_t entry);

enum tally_print_flags {
	TALLY_PRINT_JSON = 1u << 0, /* an object; else words and name=value */
};

struct tally_print_opts {
	uint32_t size, flags; /* enum tally_print_flags; unknown ones are not looked at */
	const char *machine; /* for the names of registers, as tally_reg_name(); NULL: their bits */
};

/*
 * Writes a record as one line without a newline: every field that was decoded, under the ABI's names,
 * numbers as they are. For people who debug, and for programs. As snprintf(3) it writes at most
 * `size` bytes with the NUL and returns how long the whole text is. Since: 0.1
 */
TALLY_API size_t tally_record_print(const struct tally_layout *layout,
				    const struct tally_record *rec,
				    const struct tally_print_opts *opts, char *out, size_t size);

/* The name of a record type as perf prints it ("MMAP2", "FINISHED_ROUND"), NULL when unknown.
 * Since: 0.1 */
TALLY_API const char *tally_record_type_name(uint32_t type);

TALLY_END_DECLS

#endif
