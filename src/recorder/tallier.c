/* SPDX-License-Identifier: MIT */
/* Counting the records in raw ring bytes. */
#include <string.h>

#include "base/bytes.h"
#include "recorder/tallier.h"

/* LOST: header, id, lost. LOST_SAMPLES: header, lost. */
#define LOST_AT         16
#define LOST_SAMPLES_AT 8

/* An MMAP2 record has a path of at most PATH_MAX and about 100 bytes beside. */
#define MAP_ROOM 8192

void tallier_init(struct tallier *t, const struct tally_layout *layout)
{
	static const uint64_t before_time[] = {
		TALLY_SAMPLE_IDENTIFIER,
		TALLY_SAMPLE_IP,
		TALLY_SAMPLE_TID,
	};

	*t = (struct tallier){ .layout = layout };
	if (!(layout->sample_type & TALLY_SAMPLE_TIME))
		return;
	t->time_offset = sizeof(struct tally_record_header);
	for (size_t i = 0; i < ARRAY_SIZE(before_time); i++)
		if (layout->sample_type & before_time[i])
			t->time_offset += sizeof(uint64_t);
}

/* Records are multiples of 8 and so are the stretches: a u64 never straddles them. */
static uint64_t word_at(const struct iovec *spans, int count, uint64_t offset)
{
	if (offset + 8 <= spans[0].iov_len)
		return load_u64((const char *)spans[0].iov_base + offset, false);
	offset -= spans[0].iov_len;
	if (count > 1 && offset + 8 <= spans[1].iov_len)
		return load_u64((const char *)spans[1].iov_base + offset, false);
	return 0;
}

static void add_sample(struct tallier *t, uint64_t time)
{
	t->samples++;
	if (!t->time_offset || !time)
		return;
	if (!t->first_time || time < t->first_time)
		t->first_time = time;
	if (time > t->last_time)
		t->last_time = time;
}

/* Copies the record at `offset` together, which may lie in both stretches, and notes its file. */
static void add_map(struct tallier *t, const struct iovec *spans, uint64_t offset, size_t size)
{
	char bytes[MAP_ROOM];
	struct tally_record rec;
	size_t first = offset < spans[0].iov_len ? spans[0].iov_len - offset : 0;

	if (size > sizeof(bytes))
		return;
	first = first < size ? first : size;
	if (first)
		memcpy(bytes, (const char *)spans[0].iov_base + offset, first);
	if (first < size)
		memcpy(bytes + first,
		       (const char *)spans[1].iov_base + offset + first - spans[0].iov_len,
		       size - first);
	if (tally_record_decode(t->layout, bytes, size, &rec, sizeof(rec)) > 0 &&
	    modules_see(&t->modules, &rec) < 0)
		t->failed = true;
}

uint64_t tallier_add(struct tallier *t, const struct iovec *spans, int count)
{
	uint64_t total = 0, at = 0;

	for (int i = 0; i < count; i++)
		total += spans[i].iov_len;
	while (total - at >= sizeof(struct tally_record_header)) {
		struct tally_record_header header;
		uint64_t word = word_at(spans, count, at);
		memcpy(&header, &word, sizeof(header));
		if (header.size < sizeof(header) || header.size % 8 || header.size > total - at)
			break;
		t->records++;
		if (header.type == TALLY_RECORD_SAMPLE) {
			t->kernel |= (header.misc & TALLY_MISC_CPUMODE) == TALLY_MISC_KERNEL;
			add_sample(t, t->time_offset && t->time_offset < header.size
					      ? word_at(spans, count, at + t->time_offset)
					      : 0);
		} else if (header.type == TALLY_RECORD_LOST && header.size >= LOST_AT + 8)
			t->lost += word_at(spans, count, at + LOST_AT);
		else if (header.type == TALLY_RECORD_LOST_SAMPLES &&
			 header.size >= LOST_SAMPLES_AT + 8)
			t->lost += word_at(spans, count, at + LOST_SAMPLES_AT);
		else if (header.type == TALLY_RECORD_THROTTLE)
			t->throttled++;
		else if (header.type == TALLY_RECORD_MMAP2)
			add_map(t, spans, at, header.size);
		at += header.size;
	}
	return at;
}

void tallier_done(struct tallier *t)
{
	modules_done(&t->modules);
}
