/* SPDX-License-Identifier: MIT */
/*
 * Features of a perf.data file: what it tells of the machine and of how it was recorded, one item
 * after another.
 *
 *	struct tally_feature_walk walk = { .feature = TALLY_FEATURE_PMU_MAPPINGS };
 *	while ((r = tally_reader_item(reader, &walk, &item)) > 0)
 *		printf("%u %s\n", item.pmu.type, item.pmu.name);
 *
 * Features that are one text are had by tally_reader_text(), CMDLINE by tally_reader_cmdline(),
 * EVENT_DESC with the events, BUILD_ID by tally_reader_build_ids(); BRANCH_STACK and STAT have no
 * bytes: tally_reader_feature() tells whether they are there, and gives those of TRACING_DATA.
 */
#ifndef TALLY_FEATURES_H
#define TALLY_FEATURES_H

#include <tally/api.h>
#include <tally/reader.h>

TALLY_BEGIN_DECLS

/* TOTAL_MEM (kB), CLOCKID (resolution in ns), DIR_FORMAT (version), CLN_SIZE (bytes of a cache line
 * [7.0]). */
struct tally_item_number {
	uint64_t value;
};

/* NRCPUS. */
struct tally_item_cpus {
	uint32_t available; /* the greatest number of CPUs that may be present */
	uint32_t online;
};

/* CPU_TOPOLOGY: first the lists, then, in newer files, each CPU in order of its number. */
struct tally_item_topology {
	uint32_t kind; /* 0 cores' siblings, 1 threads' siblings, 2 dies' siblings, 3 a CPU */
	uint32_t cpu;  /* of kind 3, as the next ones */
	int32_t core, socket, die; /* -1: not told; the die comes in an item of its own, kind 4 */
	uint32_t reserved;
	const char *cpus; /* a list as "0-3"; NULL with kinds 3 and 4 */
};

/* NUMA_TOPOLOGY. */
struct tally_item_node {
	uint32_t node, reserved;
	uint64_t total_kb, free_kb;
	const char *cpus;
};

/* PMU_MAPPINGS. */
struct tally_item_pmu {
	uint32_t type, reserved;
	const char *name;
};

/* GROUP_DESC. */
struct tally_item_group {
	const char *name;
	uint32_t leader;  /* number of its first event */
	uint32_t members; /* how many events */
};

/* AUXTRACE: where AUXTRACE records stand. */
struct tally_item_auxtrace {
	uint64_t offset, size; /* of the record in the file, bytes; with what follows it */
};

/* CACHE. */
struct tally_item_cache {
	uint32_t level, line_size, sets, ways;
	const char *type, *size, *cpus; /* "Data", "32K", "0-1" */
};

/* SAMPLE_TIME: ns, of the events' clock. */
struct tally_item_times {
	uint64_t first, last;
};

/* MEM_TOPOLOGY: the memory blocks of a node, as bits. */
struct tally_item_memory {
	uint64_t block_size; /* bytes; of all */
	uint64_t node, bits; /* bits: how many count */
	const void *words;   /* of 8 bytes each, in the file's byte order */
	uint64_t word_count;
};

/* BPF_PROG_INFO: struct bpf_prog_info of the recording kernel, and its arrays; BPF_BTF: an id and
 * types. */
struct tally_item_bpf {
	uint32_t id;       /* BPF_BTF */
	uint32_t info_len; /* bytes */
	uint64_t arrays;   /* BPF_PROG_INFO: which arrays stand in `data` */
	const void *info, *data;
	uint64_t data_len; /* bytes */
};

/* COMPRESSED. */
struct tally_item_compressed {
	uint32_t version, kind; /* kind 1: zstd */
	uint32_t level, ratio;  /* ratio: rounded down */
	uint32_t mmap_len;      /* bytes that a slice holds at most */
};

/* CPU_PMU_CAPS, PMU_CAPS. */
struct tally_item_caps {
	const char *pmu; /* NULL: of the CPU's */
	const char *name, *value;
};

/* CLOCK_DATA: two clocks at one moment, ns. */
struct tally_item_clocks {
	uint32_t clockid, reserved; /* of the events, as clock_gettime(2) numbers them */
	uint64_t wall, clock;       /* since 1970; of that clock */
};

/* HYBRID_TOPOLOGY. */
struct tally_item_hybrid {
	const char *pmu, *cpus;
};

/* CPU_DOMAIN_INFO: a scheduling domain of a CPU. [7.0] */
struct tally_item_domain {
	uint32_t cpu, domain;
	const char *name; /* NULL: not told, by versions of schedstat before 17 */
	const char *mask, *cpus;
};

/* E_MACHINE: as in ELF headers. [7.0] */
struct tally_item_machine {
	uint32_t machine, flags;
};

struct tally_feature_item {
	uint32_t feature, index;
	union {
		struct tally_item_number number;
		struct tally_item_cpus cpus;
		struct tally_item_topology topology;
		struct tally_item_node node;
		struct tally_item_pmu pmu;
		struct tally_item_group group;
		struct tally_item_auxtrace auxtrace;
		struct tally_item_cache cache;
		struct tally_item_times times;
		struct tally_item_memory memory;
		struct tally_item_bpf bpf;
		struct tally_item_compressed compressed;
		struct tally_item_caps caps;
		struct tally_item_clocks clocks;
		struct tally_item_hybrid hybrid;
		struct tally_item_domain domain;
		struct tally_item_machine machine;
	};
	uint64_t room[4]; /* for what comes later */
};

/* Where a walk stands: `feature` is the caller's to set, all else to zero. */
struct tally_feature_walk {
	uint32_t feature;
	uint32_t started;
	uint64_t at; /* bytes behind us */
	uint32_t index, stage, left, inner, number, version;
	uint64_t size;
	const char *text;
};

/*
 * The next item: 1; 0 at the end, and at once when the file has not the feature. Texts and bytes are
 * borrowed: they live as long as the reader. Errors: -EBADMSG where its bytes contradict themselves,
 * those before have been told; -EOPNOTSUPP for a feature that has no items, and for BPF_PROG_INFO of
 * the other byte order, whose arrays nobody can tell apart; -ENOMEM, -EIO of loading it. Since: 0.1
 */
TALLY_API int tally_reader_item(const struct tally_reader *reader, struct tally_feature_walk *walk,
				struct tally_feature_item *out);

TALLY_END_DECLS

#endif
