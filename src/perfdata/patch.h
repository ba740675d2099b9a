/* SPDX-License-Identifier: MIT */
/* Changes of a record on its way from one file to another. */
#ifndef PERFDATA_PATCH_H
#define PERFDATA_PATCH_H

#include <tally/reader.h>
#include <tally/rewrite.h>

/* What is done to every record of a file. */
struct patch {
	uint64_t id_shift; /* added to every id but 0 */
	int32_t pid_shift; /* added to every process and thread but 0 and -1 */
	bool blank;
	const char *(*rename)(uint32_t kind, const char *text, void *arg);
	void *arg;
};

/* header.size has 16 bits. */
#define PATCH_ROOM 65536

/*
 * Writes the record as it shall be into `out`, which has PATCH_ROOM bytes, and answers its size.
 *   rec       the record, decoded
 *   identify  an id that it gets as IDENTIFIER; 0: none
 * -E2BIG: what is added does not fit.
 */
int patch_record(const struct patch *p, const struct tally_layout *layout,
		 const struct tally_record *rec, uint64_t identify, uint8_t *out);

/* Whether any record is changed. */
bool patch_changes(const struct patch *p);

#endif
