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
#define TALLY_MISC_CPUMODE       7u
#define TALLY_MISC_KERNEL        1u
#define TALLY_MISC_USER          2u
#define TALLY_MISC_HYPERVISOR    3u
#define TALLY_MISC_GUEST_KERNEL  4u
#define TALLY_MISC_GUEST_USER    5u
#define TALLY_MISC_COMM_EXEC     (1u << 13) /* COMM: the name changed by an exec [3.16] */
#define TALLY_MISC_FORK_EXEC     (1u << 13) /* FORK, in files: an existing task, inherits no maps */
#define TALLY_MISC_MMAP_DATA     (1u << 13) /* MMAP, MMAP2: not executable */
#define TALLY_MISC_EXACT_IP      (1u << 14) /* SAMPLE: ip is that of the event's instruction */
#define TALLY_MISC_MMAP_BUILD_ID (1u << 14) /* MMAP2: a build-id instead of the inode [5.12] */

/* Values in a callchain at and above this are not addresses but tell whose addresses follow. */
#define TALLY_CONTEXT_MAX          ((uint64_t)-4095)
#define TALLY_CONTEXT_HV           ((uint64_t)-32)
#define TALLY_CONTEXT_KERNEL       ((uint64_t)-128)
#define TALLY_CONTEXT_USER         ((uint64_t)-512)
#define TALLY_CONTEXT_GUEST        ((uint64_t)-2048)
#define TALLY_CONTEXT_GUEST_KERNEL ((uint64_t)-2176)
#define TALLY_CONTEXT_GUEST_USER   ((uint64_t)-2560)

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

/* A sample; fields that the layout lacks are zero. pid, tid, time, id, cpu stand in the sample_id.
 */
struct tally_record_sample {
	uint64_t ip;
	uint64_t addr;
	uint64_t period;
	const void
		*chain; /* borrowed, unaligned, in the writer's byte order: use tally_sample_ip */
	uint64_t chain_len; /* entries */
	const void *rest;   /* fields behind those that this version decodes; borrowed */
	uint64_t rest_len;  /* bytes */
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
		struct tally_record_sample sample;
	};
};

/*
 * Decodes the record that begins at `bytes`, of which `len` are there.
 *   out_size  sizeof *out, as the caller compiled it, so that the struct may grow.
 * Returns the record's size, which leads to the next one. User record types (64 and above) have no
 * sample_id. Pointers in `*out` point into `bytes`.
 * Errors: -EAGAIN when `len` is shorter than the record (or its header); -EBADMSG when the record
 * contradicts itself: a size below 8, fields beyond its end, a text without NUL. Since: 0.1
 */
TALLY_API int tally_record_decode(const struct tally_layout *layout, const void *bytes, size_t len,
				  struct tally_record *out, size_t out_size);

/*
 * Writes a record of the types MMAP, MMAP2, COMM, FORK, EXIT, LOST, LOST_SAMPLES, THROTTLE,
 * UNTHROTTLE or SAMPLE as the kernel would: texts padded to 8, the sample_id that the layout asks
 * for at the end. rec->size, bytes, leftover are not looked at. encode(decode(x)) == x for what the
 * kernel writes. Returns the record's size. Errors: -ENOSPC when `room` or 65,535 bytes are too
 * few; -EOPNOTSUPP for other types and sample fields; -EINVAL for a build-id of more than 20 bytes.
 * Since: 0.1
 */
TALLY_API int tally_record_encode(const struct tally_layout *layout, const struct tally_record *rec,
				  void *bytes, size_t room);

/* The i-th entry of a sample's callchain, 0 beyond its end. Since: 0.1 */
TALLY_API uint64_t tally_sample_ip(const struct tally_record *rec, uint64_t i);

/* The name of a record type as perf prints it ("MMAP2", "FINISHED_ROUND"), NULL when unknown.
 * Since: 0.1 */
TALLY_API const char *tally_record_type_name(uint32_t type);

TALLY_END_DECLS

#endif
