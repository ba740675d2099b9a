/* SPDX-License-Identifier: MIT */
/*
 * tally_reader: reads perf.data files, tally's and everybody's.
 *
 *	tally_reader_open(&reader, "perf.data", NULL, &err);
 *	while ((r = tally_reader_next(reader, &item, &err)) > 0)
 *		if (tally_record_decode(item.layout, item.bytes, item.len, &rec, sizeof(rec)) > 0)
 *			...
 *	tally_reader_close(reader);
 *
 * It reads files, streams that were saved into one, pipes while they are written, and the folders
 * of perf record --threads. It streams through a small buffer: memory does not grow with the
 * recording. Records come in the file's order or by time; those that are compressed (perf record
 * -z) come in the place of what holds them. Bytes are never trusted: corrupt input ends in one error
 * with the offset, and all that stands before it has been delivered. A reader belongs to one thread
 * at a time.
 */
#ifndef TALLY_READER_H
#define TALLY_READER_H

#include <tally/api.h>
#include <tally/attr.h>
#include <tally/error.h>
#include <tally/record.h>

TALLY_BEGIN_DECLS

struct tally_reader;

/* User record types of perf.data files, beside the kernel's (record.h). */
enum tally_file_record_type {
	TALLY_FILE_HEADER_ATTR = 64,
	TALLY_FILE_EVENT_TYPE = 65,
	TALLY_FILE_TRACING_DATA = 66,
	TALLY_FILE_BUILD_ID = 67,
	TALLY_FILE_FINISHED_ROUND = 68,
	TALLY_FILE_ID_INDEX = 69,
	TALLY_FILE_AUXTRACE_INFO = 70,
	TALLY_FILE_AUXTRACE = 71,
	TALLY_FILE_AUXTRACE_ERROR = 72,
	TALLY_FILE_THREAD_MAP = 73,
	TALLY_FILE_CPU_MAP = 74,
	TALLY_FILE_STAT_CONFIG = 75,
	TALLY_FILE_STAT = 76,
	TALLY_FILE_STAT_ROUND = 77,
	TALLY_FILE_EVENT_UPDATE = 78,
	TALLY_FILE_TIME_CONV = 79,
	TALLY_FILE_HEADER_FEATURE = 80,
	TALLY_FILE_COMPRESSED = 81,
	TALLY_FILE_FINISHED_INIT = 82,
	TALLY_FILE_COMPRESSED2 = 83,
	TALLY_FILE_BPF_METADATA = 84,
	TALLY_FILE_SCHEDSTAT_CPU = 85,
	TALLY_FILE_SCHEDSTAT_DOMAIN = 86,
};

/* Sections that describe the recording, by their bit in the file's header. */
enum tally_feature {
	TALLY_FEATURE_TRACING_DATA = 1,
	TALLY_FEATURE_BUILD_ID = 2,
	TALLY_FEATURE_HOSTNAME = 3,
	TALLY_FEATURE_OSRELEASE = 4,
	TALLY_FEATURE_VERSION = 5,
	TALLY_FEATURE_ARCH = 6,
	TALLY_FEATURE_NRCPUS = 7,
	TALLY_FEATURE_CPUDESC = 8,
	TALLY_FEATURE_CPUID = 9,
	TALLY_FEATURE_TOTAL_MEM = 10,
	TALLY_FEATURE_CMDLINE = 11,
	TALLY_FEATURE_EVENT_DESC = 12,
	TALLY_FEATURE_CPU_TOPOLOGY = 13,
	TALLY_FEATURE_NUMA_TOPOLOGY = 14,
	TALLY_FEATURE_BRANCH_STACK = 15,
	TALLY_FEATURE_PMU_MAPPINGS = 16,
	TALLY_FEATURE_GROUP_DESC = 17,
	TALLY_FEATURE_AUXTRACE = 18,
	TALLY_FEATURE_STAT = 19,
	TALLY_FEATURE_CACHE = 20,
	TALLY_FEATURE_SAMPLE_TIME = 21,
	TALLY_FEATURE_MEM_TOPOLOGY = 22,
	TALLY_FEATURE_CLOCKID = 23,
	TALLY_FEATURE_DIR_FORMAT = 24,
	TALLY_FEATURE_BPF_PROG_INFO = 25,
	TALLY_FEATURE_BPF_BTF = 26,
	TALLY_FEATURE_COMPRESSED = 27,
	TALLY_FEATURE_CPU_PMU_CAPS = 28,
	TALLY_FEATURE_CLOCK_DATA = 29,
	TALLY_FEATURE_HYBRID_TOPOLOGY = 30,
	TALLY_FEATURE_PMU_CAPS = 31,
	TALLY_FEATURE_CPU_DOMAIN_INFO = 32,
	TALLY_FEATURE_E_MACHINE = 33,
	TALLY_FEATURE_CLN_SIZE = 34,
	TALLY_FEATURE_MAX = 256,
};

enum tally_reader_flags {
	/*
	 * By time, as perf sorts: a FINISHED_ROUND promises that what comes later is newer than all
	 * that came before the FINISHED_ROUND before it. Records of equal times stay in the file's
	 * order; those without a time (0, ~0, user record types) come at once. Without rounds, and in
	 * folders, all is sorted. Memory has a limit (about 12 MiB); what is beyond goes through a
	 * temporary file.
	 */
	TALLY_READER_TIME_ORDER = 1u << 0,
	/* The same where the recording comes through a pipe, which cannot be read twice. */
	TALLY_READER_TIME_ORDER_PIPE = 1u << 1,
	/* COMPRESSED and COMPRESSED2 records as they stand, and not what they hold. */
	TALLY_READER_PACKED = 1u << 2,
	/*
	 * Somebody still writes the file: 0 of tally_reader_next means that there is no whole record
	 * yet, and a later call may find one. Names that the writer puts behind the records are not
	 * known. Of a pipe that is nothing special: it is read as its bytes come.
	 */
	TALLY_READER_FOLLOW = 1u << 3,
};

struct tally_reader_opts {
	uint32_t size, flags;    /* enum tally_reader_flags */
	const char *temp_folder; /* for temporary files; NULL: $TMPDIR, else /var/tmp or /tmp */
};

/* One record of the file. */
struct tally_reader_record {
	const void *bytes; /* in the file's byte order; valid until the next call on the reader */
	uint32_t len;      /* header.size, or more for a COMPRESSED2 that overflows it */
	uint32_t type;     /* header.type in this machine's byte order */
	uint64_t offset;   /* in the file; of a compressed one, where that stands which holds it */
	const struct tally_layout
		*layout;  /* for tally_record_decode; lives as long as the reader */
	uint32_t event;   /* which of the file's events it belongs to; 0 when it does not tell */
	uint32_t part;    /* of a folder: 0 its file "data", 1 "data.0" and so on */
	uint64_t payload; /* bytes that follow it in the file (AUXTRACE, TRACING_DATA) */
};

/* One event of the file. Lives as long as the reader. */
struct tally_reader_event {
	const char *name;       /* from EVENT_DESC, else made from type and config */
	struct tally_attr attr; /* decoded */
	const void *raw_attr; /* its bytes in the file, of any size and in the file's byte order */
	uint32_t raw_attr_len;
	uint32_t id_count;
	const uint64_t *ids; /* decoded */
};

/*
 * Opens a recording: a file, a pipe's stream that was saved into one, a folder with the files "data",
 * "data.0" and so on, a FIFO (which waits for its writer), or with "-" the standard input. Of a pipe
 * up to 4 MiB are looked at ahead for events and features; what has the form of a file is copied
 * into a temporary one first. Errors: -ENOENT, -EACCES and others of open(2); -EBADMSG with offset
 * and what was expected (TALLY_CAUSE_CORRUPT, TALLY_CAUSE_TRUNCATED); -ENOMEM; of a temporary file.
 * Since: 0.1
 */
TALLY_API int tally_reader_open(struct tally_reader **out, const char *path,
				const struct tally_reader_opts *opts, struct tally_error *err);

/* As tally_reader_open on a descriptor, which stays the caller's. A regular file is read by position,
 * anything else from where it stands. `name` is for messages. Since: 0.1 */
TALLY_API int tally_reader_open_fd(struct tally_reader **out, int fd, const char *name,
				   const struct tally_reader_opts *opts, struct tally_error *err);

/*
 * The next record: 1; 0 at the end. A file whose writer was killed (data size 0 in the header, or
 * more than the file holds) is read to its last whole record; tally_reader_health then tells.
 * Types that this version does not know are handed out too. Errors: -EBADMSG with offset and record
 * number, of the file or of what was compressed; -EIO and others of read(2); -ENOMEM; of a temporary
 * file. After an error every further call returns it again, but for -EAGAIN of a pipe that does not
 * wait. Since: 0.1
 */
TALLY_API int tally_reader_next(struct tally_reader *reader, struct tally_reader_record *out,
				struct tally_error *err);

/* Goes back to the first record. Errors: -ESPIPE for what comes through a pipe. Since: 0.1 */
TALLY_API int tally_reader_rewind(struct tally_reader *reader, struct tally_error *err);
/* Whether it can go back. Since: 0.1 */
TALLY_API bool tally_reader_rewindable(const struct tally_reader *reader);

/*
 * Reads what follows the record that was handed out last, from `offset` of it on: as much as read(2)
 * gives, at most `len`. Returns how many bytes, 0 behind the end. Through a pipe only forward, and
 * the record's own bytes are gone then. Errors: -ESPIPE for what has passed; of read(2). Since: 0.1
 */
TALLY_API int64_t tally_reader_payload(struct tally_reader *reader, uint64_t offset, void *to,
				       size_t len);

/*
 * How many records of a type came so far, since the start or the last rewind: those handed out, and
 * those that held compressed ones. TALLY_READER_OTHER_TYPES: of all types from 128 on, which nobody
 * knows. Since: 0.1
 */
TALLY_API uint64_t tally_reader_count(const struct tally_reader *reader, uint32_t type);
#define TALLY_READER_OTHER_TYPES UINT32_MAX

/* The events; at least one. NULL beyond the end. Since: 0.1 */
TALLY_API uint32_t tally_reader_events(const struct tally_reader *reader);
TALLY_API const struct tally_reader_event *tally_reader_event(const struct tally_reader *reader,
							      uint32_t i);

/* Whether the file has the other byte order. Since: 0.1 */
TALLY_API bool tally_reader_swapped(const struct tally_reader *reader);

/* Its size in bytes (of a folder all of its records' files; 0: it comes through a pipe), and how far
 * the records have been read. Since: 0.1 */
TALLY_API uint64_t tally_reader_file_size(const struct tally_reader *reader);
TALLY_API uint64_t tally_reader_position(const struct tally_reader *reader);

/* A feature section's bytes. Returns 1; 0 when the file has it not. Borrowed. Since: 0.1 */
TALLY_API int tally_reader_feature(const struct tally_reader *reader, uint32_t feature,
				   const void **bytes, uint64_t *len);

/* A feature that is one text (HOSTNAME, OSRELEASE, VERSION, ARCH, CPUDESC, CPUID). NULL when
 * absent. Since: 0.1 */
TALLY_API const char *tally_reader_text(const struct tally_reader *reader, uint32_t feature);

/* The recorded command line: the i-th word, NULL beyond the end or when absent. Since: 0.1 */
TALLY_API const char *tally_reader_cmdline(const struct tally_reader *reader, uint32_t i);

/*
 * Build-ids of files that the BUILD_ID feature lists. `fn` is called for each with the cpumode
 * (TALLY_MISC_KERNEL for the kernel and modules), the pid (-1: any), the file name and the id; a
 * non-zero answer ends it and is returned. Errors: -EBADMSG at a damaged entry, those before it
 * have been told; -ENOMEM. Since: 0.1
 */
TALLY_API int tally_reader_build_ids(const struct tally_reader *reader,
				     int (*fn)(uint32_t cpumode, int32_t pid, const char *name,
					       const uint8_t *id, uint32_t id_len, void *arg),
				     void *arg);

/* What was wrong with the file without keeping it from being read, as a sentence; NULL: nothing, so
 * far. Since: 0.1 */
TALLY_API const char *tally_reader_health(const struct tally_reader *reader);

/* Since: 0.1 */
TALLY_API void tally_reader_close(struct tally_reader *reader);

TALLY_END_DECLS

#endif
