/* SPDX-License-Identifier: MIT */
/*
 * tally_writer: writes perf.data files that perf(1) reads.
 *
 * The file is written in place and can be read at every moment: a round ends with a FINISHED_ROUND
 * record and the header's sizes brought up to date. An older file of the same name is kept as
 * NAME.old. Bytes from rings go to the file untouched.
 *
 *	tally_writer_open(&w, "perf.data", NULL, &err);
 *	tally_writer_event(w, "cycles", attr, ids, n, &err);
 *	tally_writer_begin(w, &err);
 *	tally_writer_append(w, spans, 2);  tally_writer_round(w, &err);  ...
 *	tally_writer_text(w, TALLY_FEATURE_HOSTNAME, "box");
 *	tally_writer_finish(w, &err);
 *	tally_writer_close(w);
 *
 * Instead of a file it can write the form of a stream, into a pipe, say, which perf(1) reads by -i -.
 * What describes the recording stands before the records there: give features before begin.
 */
#ifndef TALLY_WRITER_H
#define TALLY_WRITER_H

#include <sys/uio.h>
#include <tally/api.h>
#include <tally/attr.h>
#include <tally/error.h>

TALLY_BEGIN_DECLS

struct tally_writer;

enum tally_writer_flags {
	TALLY_WRITER_NO_OLD = 1u << 0, /* replace an older file instead of keeping it as .old */
	TALLY_WRITER_STREAM = 1u << 1, /* the form of a stream: nothing is written by position */
};

struct tally_writer_opts {
	uint32_t size, flags; /* enum tally_writer_flags */
	/* Who shall own the file: uid + 1 and gid + 1; 0: whom it falls to. For programs run by
	 * sudo. Not being allowed to give it away is no error. */
	uint32_t owner_uid_plus_1, owner_gid_plus_1;
	/* Records are compressed by zstd: a level from 1, the fastest, to 22; 0: not. Readers need
	 * perf 5.2 or newer, or tally. */
	uint32_t compress;
	uint32_t reserved;
};

/*
 * Creates the file, mode 0600. "-" is standard output, which gets a stream; other pipes and sockets
 * need TALLY_WRITER_STREAM. Errors: those of open(2), rename(2), with the path; -EINVAL for a level
 * that there is not; -ESPIPE for a file on what has no positions. Since: 0.1
 */
TALLY_API int tally_writer_open(struct tally_writer **out, const char *path,
				const struct tally_writer_opts *opts, struct tally_error *err);

/*
 * Adds an event; before tally_writer_begin. `ids` are those that its records carry; all are copied.
 * Errors: -ENOMEM; -EINVAL after begin. Since: 0.1
 */
TALLY_API int tally_writer_event(struct tally_writer *writer, const char *name,
				 const struct tally_attr *attr, const uint64_t *ids,
				 uint32_t id_count, struct tally_error *err);

/*
 * Tells of a group (feature GROUP_DESC): `members` events, of which the event number `leader` is the
 * first and the others follow it. Before tally_writer_begin, in the order of the events. Errors:
 * -ENOMEM; -EINVAL after begin, and for a group of fewer than two. Since: 0.1
 */
TALLY_API int tally_writer_group(struct tally_writer *writer, const char *name, uint32_t leader,
				 uint32_t members);

/*
 * Writes header, ids and attrs, all attrs in the smallest size that holds each; in a stream the
 * features that were given, too. Errors: of write(2); -E2BIG, a stream cannot hold so many ids of
 * an event. Since: 0.1
 */
TALLY_API int tally_writer_begin(struct tally_writer *writer, struct tally_error *err);

/*
 * Appends whole records. Allocates nothing. What is compressed reaches the file when a round ends or
 * half a megabyte has come together. Errors: -ENOSPC and others of write(2): the file then ends with
 * the last whole record that got out, or round where it is compressed, and can be finished. Since: 0.1
 */
TALLY_API int tally_writer_append(struct tally_writer *writer, const struct iovec *spans,
				  int count);

/*
 * Ends a round: a promise that all records to come are newer than the newest of the round before.
 * Brings the header's sizes up to date. Since: 0.1
 */
TALLY_API int tally_writer_round(struct tally_writer *writer, struct tally_error *err);

/*
 * Features, before finish; a later one of the same kind replaces the earlier. Texts and bytes are
 * copied. Since: 0.1
 */
TALLY_API int tally_writer_text(struct tally_writer *writer, uint32_t feature, const char *text);
TALLY_API int tally_writer_feature(struct tally_writer *writer, uint32_t feature, const void *bytes,
				   size_t len);
TALLY_API int tally_writer_cmdline(struct tally_writer *writer, uint32_t count,
				   const char *const *words);
TALLY_API int tally_writer_build_id(struct tally_writer *writer, uint32_t cpumode, int32_t pid,
				    const char *name, const uint8_t *id, uint32_t id_len);

/*
 * HOSTNAME, OSRELEASE, VERSION (of tally), ARCH, NRCPUS, CPUDESC, CPUID, TOTAL_MEM, CPU_TOPOLOGY,
 * NUMA_TOPOLOGY, CACHE, PMU_MAPPINGS, MEM_TOPOLOGY, CPU_PMU_CAPS, PMU_CAPS and HYBRID_TOPOLOGY of
 * this machine, read below `root`; what cannot be read is left out, HOSTNAME and NRCPUS never are.
 * Since: 0.1
 */
TALLY_API int tally_writer_describe_machine(struct tally_writer *writer, const char *root);

/* How many bytes the file has so far. Since: 0.1 */
TALLY_API uint64_t tally_writer_size(const struct tally_writer *writer);

/* Writes the features and the final header. Errors: of write(2). Since: 0.1 */
TALLY_API int tally_writer_finish(struct tally_writer *writer, struct tally_error *err);

/* Closes and removes the file, and gives an older one its name back: for a recording that failed
 * before it began. NULL is fine. Since: 0.1 */
TALLY_API void tally_writer_discard(struct tally_writer *writer);

/* Closes the file as it is. NULL is fine. Since: 0.1 */
TALLY_API void tally_writer_close(struct tally_writer *writer);

TALLY_END_DECLS

#endif
