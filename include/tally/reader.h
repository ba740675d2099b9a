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
 * It streams through a small buffer: memory does not grow with the file. Records come in file
 *order. Bytes are never trusted: corrupt input ends in one error with the offset, and all that
 *stands before it has been delivered.
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
	TALLY_FEATURE_SAMPLE_TIME = 21,
	TALLY_FEATURE_CLOCKID = 23,
	TALLY_FEATURE_CLOCK_DATA = 29,
	TALLY_FEATURE_MAX = 256,
};

struct tally_reader_opts {
	uint32_t size, flags;
};

/* One record of the file. */
struct tally_reader_record {
	const void *bytes; /* in the file's byte order; valid until the next call on the reader */
	uint32_t len;      /* header.size, or more for a COMPRESSED2 that overflows it */
	uint32_t type;     /* header.type in this machine's byte order */
	uint64_t offset;   /* in the file */
	const struct tally_layout
		*layout; /* for tally_record_decode; lives as long as the reader */
	uint32_t event;  /* which of the file's events it belongs to; 0 when it does not tell */
	uint32_t reserved;
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
 * Opens a file, also a pipe's stream that was saved into one; "-" is not special. Errors: -ENOENT,
 * -EACCES; -EBADMSG with offset and what was expected (TALLY_CAUSE_CORRUPT,
 * TALLY_CAUSE_TRUNCATED); -EOPNOTSUPP for forms of the format that this version does not read;
 * -ENOMEM. Since: 0.1
 */
TALLY_API int tally_reader_open(struct tally_reader **out, const char *path,
				const struct tally_reader_opts *opts, struct tally_error *err);

/* As tally_reader_open on a descriptor, which stays the caller's and is read by position. `name` is
 * for messages. Since: 0.1 */
TALLY_API int tally_reader_open_fd(struct tally_reader **out, int fd, const char *name,
				   const struct tally_reader_opts *opts, struct tally_error *err);

/*
 * The next record: 1; 0 at the end. A file whose writer was killed (data size 0 in the header, or
 * more than the file holds) is read to its last whole record; tally_reader_health then tells.
 * Errors: -EBADMSG with offset and record number; -EIO and others of read(2). After an error every
 * further call returns it again. Since: 0.1
 */
TALLY_API int tally_reader_next(struct tally_reader *reader, struct tally_reader_record *out,
				struct tally_error *err);

/* Goes back to the first record. Errors: none for files. Since: 0.1 */
TALLY_API int tally_reader_rewind(struct tally_reader *reader, struct tally_error *err);

/* The events; at least one. NULL beyond the end. Since: 0.1 */
TALLY_API uint32_t tally_reader_events(const struct tally_reader *reader);
TALLY_API const struct tally_reader_event *tally_reader_event(const struct tally_reader *reader,
							      uint32_t i);

/* Whether the file has the other byte order. Since: 0.1 */
TALLY_API bool tally_reader_swapped(const struct tally_reader *reader);

/* Its size in bytes, and how far the records have been read. Since: 0.1 */
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
