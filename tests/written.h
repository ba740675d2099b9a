/* SPDX-License-Identifier: MIT */
/* What synth writes, for tests of it; the file that includes it defines `layout`. */
#ifndef TESTS_WRITTEN_H
#define TESTS_WRITTEN_H

#include <errno.h>
#include <tally/record.h>
#include <tally/writer.h>

#include "base/buf.h"

static const struct tally_layout layout;

/* What synth hands to the writer lands here: the linker takes this one and not the real writer. */
static struct buf written;

int tally_writer_append(struct tally_writer *writer, const struct iovec *spans, int count)
{
	(void)writer;
	for (int i = 0; i < count; i++)
		buf_add(&written, spans[i].iov_base, spans[i].iov_len);
	return 0;
}

int tally_writer_build_id(struct tally_writer *writer, uint32_t cpumode, int32_t pid,
			  const char *name, const uint8_t *id, uint32_t id_len)
{
	(void)writer, (void)cpumode, (void)pid, (void)name, (void)id, (void)id_len;
	return -ENOTSUP; /* synth writes none */
}

/* The i-th record that was written; type 0 beyond the end. */
static struct tally_record record_at(int i)
{
	struct tally_record rec = { 0 };
	size_t at = 0;

	for (;; i--) {
		int n = tally_record_decode(&layout, written.at + at, written.len - at, &rec,
					    sizeof(rec));
		if (n <= 0)
			return (struct tally_record){ 0 };
		if (i == 0)
			return rec;
		at += (size_t)n;
	}
}

#endif
