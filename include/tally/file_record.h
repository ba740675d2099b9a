/* SPDX-License-Identifier: MIT */
/*
 * The records of perf.data files that no kernel writes (types 64 to 86), taken apart.
 *
 *	if (item.type >= 64 &&
 *	    tally_file_record_decode(item.bytes, item.len, tally_reader_swapped(reader), &rec,
 *				     sizeof(rec)) > 0 &&
 *	    rec.type == TALLY_FILE_THREAD_MAP)
 *		for (uint64_t i = 0; tally_file_thread(&rec, i, &thread); i++)
 *			...
 *
 * Pure functions: any thread may call them. Pointers lead into the record; lists are in the writer's
 * byte order, and functions give their entries.
 */
#ifndef TALLY_FILE_RECORD_H
#define TALLY_FILE_RECORD_H

#include <tally/api.h>
#include <tally/reader.h>

TALLY_BEGIN_DECLS

/* HEADER_ATTR: an event of a pipe, as tally_reader_event() tells it. */
struct tally_file_attr {
	const void *attr; /* for tally_attr_decode() */
	const void *ids;
	uint32_t attr_len;
	uint32_t id_count; /* tally_file_word() gives each */
};

/* EVENT_TYPE: a name; before Linux 3.10. */
struct tally_file_event_type {
	uint64_t config;
	const char *name;
};

/* TRACING_DATA: how many bytes follow the record, without their padding. */
struct tally_file_tracing {
	uint64_t size;
};

struct tally_file_build_id {
	int32_t pid;   /* -1: any */
	uint32_t mode; /* TALLY_MISC_KERNEL ... */
	const uint8_t *id;
	const char *name;
	uint32_t id_len; /* 1 to 20 bytes */
	uint32_t reserved;
};

/* ID_INDEX: where ids were opened. tally_file_id() gives each. */
struct tally_file_id_index {
	uint64_t count;
	const void *entries;
	const void *guests; /* NULL: no guest machines [6.1] */
};

struct tally_file_id {
	uint64_t id;
	uint64_t index;            /* of the event's ring */
	int64_t cpu, tid;          /* -1: any */
	int64_t machine_pid, vcpu; /* of the guest; 0 and -1: none */
};

/* AUXTRACE_INFO: what the AUX area traces hold: 1 Intel PT, 2 BTS, 3 CoreSight, 4 Arm SPE, 5 s390,
 * 6 HiSilicon PTT, 7 powerpc VPA DTL. tally_file_word() gives its words. */
struct tally_file_auxtrace_info {
	uint32_t kind, reserved;
	uint64_t word_count;
	const void *words;
};

/* AUXTRACE: `size` bytes follow the record; tally_reader_payload() reads them. */
struct tally_file_auxtrace {
	uint64_t size, offset; /* bytes; the offset in the AUX area, which ever grows */
	uint64_t reference;
	uint32_t index;
	int32_t tid, cpu; /* -1: any */
	uint32_t reserved;
};

struct tally_file_auxtrace_error {
	uint32_t kind, code, format;
	int32_t cpu, pid, tid;
	uint64_t ip, time;
	const char *message;
	int32_t machine_pid, vcpu; /* of a guest [6.1]; 0 and -1: none */
};

/* THREAD_MAP: what was recorded. tally_file_thread() gives each. */
struct tally_file_thread_map {
	uint64_t count;
	const void *entries;
};

struct tally_file_thread {
	int64_t pid; /* -1: any */
	char comm[17];
	char reserved[7];
};

/* CPU_MAP, and the CPUs of an EVENT_UPDATE. tally_file_cpu() gives each. */
struct tally_file_cpus {
	uint32_t kind;        /* 0 list, 1 mask, 2 range [6.1] */
	uint32_t count;       /* of list entries or of words of the mask */
	uint32_t word;        /* bytes of a word of the mask: 4 or 8 */
	uint32_t first, last; /* of a range */
	uint32_t any;         /* a range to which -1 belongs */
	const void *entries;
};

/* STAT_CONFIG: tally_file_setting() gives each: tag 0 aggregation, 1 interval, 2 scale. */
struct tally_file_stat_config {
	uint64_t count;
	const void *entries;
};

struct tally_file_stat {
	uint64_t id;
	int32_t cpu, thread; /* numbers within the CPU_MAP and THREAD_MAP; -1: none */
	uint64_t value;
	uint64_t enabled_ns, running_ns;
};

struct tally_file_stat_round {
	uint64_t kind; /* 0 interval, 1 final */
	uint64_t time; /* ns */
};

/* EVENT_UPDATE: kind 0 unit, 1 scale, 2 name, 3 CPUs of the event that has the id. */
struct tally_file_update {
	uint64_t kind, id;
	const char *text; /* unit or name; NULL else */
	double scale;
	struct tally_file_cpus cpus;
};

/* TIME_CONV: perf clock = zero + (time stamp counter * mult >> shift); see perf_event_open(2). */
struct tally_file_time_conv {
	uint64_t shift, mult, zero;
	uint64_t cycles, mask;        /* of a counter of fewer bits [5.9] */
	uint32_t cap_zero, cap_short; /* zero is valid; cycles and mask are */
};

/* HEADER_FEATURE: a feature's bytes in a pipe. Of no bytes it is the end mark, whose number means
 * nothing. */
struct tally_file_feature {
	uint64_t feature;
	const void *bytes;
	uint64_t len;
};

/* COMPRESSED, COMPRESSED2: a slice of the file's zstd stream. */
struct tally_file_packed {
	const void *bytes;
	uint64_t len;
};

/* BPF_METADATA: notes of a BPF program. tally_file_note() gives each. [6.17] */
struct tally_file_bpf_metadata {
	const char *program;
	uint64_t count;
	const void *entries;
};

/* SCHEDSTAT_CPU and SCHEDSTAT_DOMAIN: a line of /proc/schedstat of that version. [7.0] */
struct tally_file_schedstat {
	uint64_t time;
	uint32_t cpu;
	uint16_t version, domain; /* domain: 0 for a CPU */
	const void *counters;     /* in the order of the version, of 4 and 8 bytes */
	uint64_t counters_len;    /* bytes */
};

struct tally_file_record {
	uint32_t type; /* enum tally_file_record_type */
	uint16_t misc;
	uint16_t reserved;
	const void *bytes;
	uint32_t len;
	uint32_t swapped;
	union {
		struct tally_file_attr attr;
		struct tally_file_event_type event_type;
		struct tally_file_tracing tracing;
		struct tally_file_build_id build_id;
		struct tally_file_id_index id_index;
		struct tally_file_auxtrace_info auxtrace_info;
		struct tally_file_auxtrace auxtrace;
		struct tally_file_auxtrace_error auxtrace_error;
		struct tally_file_thread_map thread_map;
		struct tally_file_cpus cpu_map;
		struct tally_file_stat_config stat_config;
		struct tally_file_stat stat;
		struct tally_file_stat_round stat_round;
		struct tally_file_update update;
		struct tally_file_time_conv time_conv;
		struct tally_file_feature feature;
		struct tally_file_packed packed;
		struct tally_file_bpf_metadata bpf_metadata;
		struct tally_file_schedstat schedstat;
	};
};

/*
 * Decodes the record that begins at `bytes`, of which `len` are there: item.bytes and item.len of
 * tally_reader_next().
 *   out_size  sizeof *out, as the caller compiled it, so that the struct may grow.
 * Returns `len`. FINISHED_ROUND and FINISHED_INIT have nothing beyond their type. Errors: -EAGAIN
 * when `len` is shorter than header.size says; -EBADMSG when the record contradicts itself: too
 * short for its type or its counts, a text without NUL; -EOPNOTSUPP for types that this version does
 * not know, the kernel's among them. Since: 0.1
 */
TALLY_API int tally_file_record_decode(const void *bytes, size_t len, bool swapped,
				       struct tally_file_record *out, size_t out_size);

/* The i-th entry of an ID_INDEX; false beyond the end. Since: 0.1 */
TALLY_API bool tally_file_id(const struct tally_file_record *rec, uint64_t i,
			     struct tally_file_id *out);
/* The i-th thread of a THREAD_MAP; false beyond the end. Since: 0.1 */
TALLY_API bool tally_file_thread(const struct tally_file_record *rec, uint64_t i,
				 struct tally_file_thread *out);
/* The i-th id of a HEADER_ATTR, or word of an AUXTRACE_INFO; false beyond the end. Since: 0.1 */
TALLY_API bool tally_file_word(const struct tally_file_record *rec, uint64_t i, uint64_t *out);
/* The i-th setting of a STAT_CONFIG; false beyond the end. Since: 0.1 */
TALLY_API bool tally_file_setting(const struct tally_file_record *rec, uint64_t i, uint64_t *tag,
				  uint64_t *value);
/* The i-th note of a BPF_METADATA, borrowed; false beyond the end. Since: 0.1 */
TALLY_API bool tally_file_note(const struct tally_file_record *rec, uint64_t i, const char **key,
			       const char **value);

/* The next CPU of a CPU_MAP or an EVENT_UPDATE's: -1 stands for any. `*cursor` begins as 0. false
 * at the end. Since: 0.1 */
TALLY_API bool tally_file_cpu(const struct tally_file_record *rec, uint64_t *cursor, int32_t *out);

TALLY_END_DECLS

#endif
