/* SPDX-License-Identifier: MIT */
/*
 * What side-band records (MMAP, MMAP2, KSYMBOL, COMM, FORK, EXIT) change: mappings and names go into a
 * tally_maps, and the times of the changes are kept, so that what was found out about a process can
 * be remembered until something about it changed (changes.h).
 */
#ifndef PROFILE_SIDEBAND_H
#define PROFILE_SIDEBAND_H

#include <tally/maps.h>
#include <tally/reader.h>
#include <tally/record.h>
#include <tally/symbolizer.h>
#include <tally/unwinder.h>

#include "base/hash.h"
#include "base/vec.h"
#include "profile/changes.h"

/* Samples without a time see what was there last. */
#define NO_TIME UINT64_MAX

/* A thread, and what changed in the process of that number. */
struct task {
	int32_t id;
	struct changes names, maps;
};

/* Zeroed, but for what is borrowed, is empty. */
struct sideband {
	struct tally_maps *maps;             /* borrowed */
	struct tally_symbolizer *symbolizer; /* likewise */
	VEC(struct task) tasks;
	struct map64 task_of; /* index + 1 */
	uint64_t senseless;   /* records that contradict themselves, and were left out */
};

/* What can change the meaning of an address of a process: its mappings and the kernel's. */
struct epoch {
	uint32_t process, kernel;
};

static inline bool is_sideband(uint32_t type)
{
	const uint32_t types = 1u << TALLY_RECORD_MMAP | 1u << TALLY_RECORD_MMAP2 |
			       1u << TALLY_RECORD_COMM | 1u << TALLY_RECORD_FORK |
			       1u << TALLY_RECORD_EXIT | 1u << TALLY_RECORD_KSYMBOL;

	return type < 32 && types >> type & 1;
}

static inline uint64_t sample_time(const struct tally_record *rec)
{
	return rec->id.has & TALLY_SAMPLE_TIME ? rec->id.time : NO_TIME;
}

/* Tells the two (NULL: there is no unwinder) which clock the recording has its times from. */
void tell_clock(struct tally_symbolizer *symbolizer, struct tally_unwinder *unwinder,
		const struct tally_reader *reader);

/* Takes a record; other types are ignored. -ENOMEM is the only error. */
int sideband_push(struct sideband *s, const struct tally_record *rec);

/* The thread or process of that number. NULL: no memory. Valid until the next call. */
struct task *sideband_task(struct sideband *s, int32_t id);

/* The epoch of a process at `time`. -ENOMEM. */
int sideband_epoch(struct sideband *s, int32_t pid, uint64_t time, struct epoch *out);

/* A thread's name at `time`: as recorded, else as perf(1) has it, which may be put into `room`. */
const char *sideband_name(struct sideband *s, int32_t tid, uint64_t time, char room[16]);

void sideband_done(struct sideband *s);

#endif
