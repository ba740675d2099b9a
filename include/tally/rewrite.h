/* SPDX-License-Identifier: MIT */
/*
 * tally_rewrite: from recordings to a recording, with less in it, several in one, or other names.
 *
 *	tally_rewrite("part.data", 1, (const char *[]){ "perf.data" },
 *		      TALLY_OPTS(rewrite, .comm = "python3"), &result, &err);
 *
 * Bytes of records that need no change are copied as they are, in the file's byte order: without a
 * filter perf(1) says the same of the copy. The result is written aside, and gets its name when it is
 * whole; it may be one of the inputs. A damaged or unfinished input gives what stands before the
 * damage, and the copy is a finished file.
 */
#ifndef TALLY_REWRITE_H
#define TALLY_REWRITE_H

#include <tally/api.h>
#include <tally/error.h>

TALLY_BEGIN_DECLS

enum tally_rewrite_flags {
	/* `from` and `to` count from the first sample. */
	TALLY_REWRITE_RELATIVE = 1u << 0,
	/* Zeroes what may hold anything: the payloads of tracepoints behind their common fields,
	 * copies of stacks, registers, and words in callchains that can be no addresses. Leaves out TRACING_DATA and what describes the machine. */
	TALLY_REWRITE_BLANK = 1u << 1,
};

/* What a text that may be renamed is. */
enum tally_rewrite_text {
	TALLY_REWRITE_PATH,   /* of a mapped file, also in BUILD_ID */
	TALLY_REWRITE_COMM,   /* a thread's name */
	TALLY_REWRITE_CGROUP, /* a cgroup's path */
	TALLY_REWRITE_HOST,   /* HOSTNAME */
	TALLY_REWRITE_WORD,   /* of the command line */
};

struct tally_rewrite_opts {
	uint32_t size, flags; /* enum tally_rewrite_flags */
	/*
	 * Which samples are kept: lists with commas, NULL: all. With them go what else happens to a
	 * thread (context switches, reads, throttling, loss); what later samples need (mappings,
	 * names, forks and ends of threads) is always kept.
	 */
	const char *pid, *tid, *cpu, *comm;
	const char *
		event; /* one name as the recording has it, or a list; without modifiers: with any */
	uint64_t from, to; /* ns of the recording's clock, [from, to); to 0: no end */
	uint32_t compress; /* as struct tally_writer_opts */
	uint32_t reserved;
	/* Gives a text another name, or NULL: it keeps its own. The answer is used before the next
	 * call. NULL: all keep theirs. */
	const char *(*rename)(uint32_t kind, const char *text, void *arg);
	void *arg;
	uint32_t owner_uid_plus_1, owner_gid_plus_1; /* as struct tally_writer_opts */
};

/* What came of it. */
struct tally_rewritten {
	uint64_t records, samples; /* in the result, samples among the records */
	uint64_t dropped;          /* left out by the filters, samples and others */
	uint64_t too_big;          /* left out since the record has no room for what is added */
	uint64_t bytes;            /* of the file */
	char trouble
		[512]; /* what was wrong with the inputs, or is less than true of the result; "" */
};

/*
 * Writes `count` recordings into one. Of several:
 *  - ids are kept apart: those of a later file are shifted where they occur in an earlier one. Events
 *    whose records do not tell what they are of get an IDENTIFIER each;
 *  - files of other machines (HOSTNAME) have their process and thread numbers raised by a multiple of
 *    4194304, which no kernel gives, and "@HOST" behind the names of their events. HOSTNAME lists
 *    all. Kernel addresses are the same for all machines in this format: see `trouble`;
 *  - clocks are left as they are; that they differ is told in `trouble`;
 *  - rounds are left out, as files overlap in time: readers sort all of it.
 * `output` "-" writes a stream to standard output. `result` may be NULL.
 * Errors: those of tally_reader_open and tally_writer_open; -EINVAL for lists that are none;
 * -ENOENT for an event that no input has; -EOPNOTSUPP for what cannot be merged: other byte orders,
 * AUX traces, results of perf stat record. No file is left behind then. Since: 0.1
 */
TALLY_API int tally_rewrite(const char *output, uint32_t count, const char *const *inputs,
			    const struct tally_rewrite_opts *opts, struct tally_rewritten *result,
			    struct tally_error *err);

TALLY_END_DECLS

#endif
