/* SPDX-License-Identifier: MIT */
/* HEADER_ATTR, HEADER_FEATURE and EVENT_UPDATE records. */
#include <errno.h>
#include <inttypes.h>

#include "base/bytes.h"
#include "base/error.h"
#include "perfdata/pipe.h"

/* EVENT_UPDATE: header, u64 type, u64 id, then the text. */
#define UPDATE_NAME_AT 24
#define UPDATE_NAME    2u
/* HEADER_FEATURE: header, u64 feature, then what the section of a file would hold. */
#define FEATURE_BYTES_AT 16

static int learn_attr(const struct stream_record *record, const struct source *src,
		      struct events *events, struct tally_error *err)
{
	const uint8_t *attr = record->bytes + RECORD_HEADER;
	uint32_t len = record->len - RECORD_HEADER;
	uint32_t size = len < TALLY_ATTR_SIZE_MIN ? 0
						  : load_u32(attr + ATTR_SIZE_OFFSET, src->swapped);

	if (!size && len >= TALLY_ATTR_SIZE_MIN)
		size = TALLY_ATTR_SIZE_MIN;
	if (size < TALLY_ATTR_SIZE_MIN || size > len)
		return error_set(err, -EBADMSG, TALLY_CAUSE_CORRUPT,
				 "%s: the record HEADER_ATTR at offset %" PRIu64
				 " has an attr of %u bytes, expected 64 to %u; the file is damaged",
				 src->name, record->offset, size, len);
	int r = events_add(events, src, attr, size, attr + size,
			   (len - size) / (uint32_t)sizeof(uint64_t));
	return r < 0 ? error_nomem(err, "an event") : 1;
}

/* By position it is found again when somebody asks. */
static int keep_feature(uint64_t feature, uint64_t offset, const uint8_t *bytes, uint64_t len,
			struct sections *sections, struct tally_error *err)
{
	struct file_section place = { offset, len };

	if (feature >= FILE_FEATURES)
		return 1;
	if (!sections->src->once)
		sections_add(sections, (uint32_t)feature, &place);
	else if (sections_keep(sections, (uint32_t)feature, bytes, len) < 0)
		return error_nomem(err, "a feature");
	return 1;
}

static int learn_feature(const struct stream_record *record, struct sections *sections,
			 struct tally_error *err)
{
	if (record->len <= FEATURE_BYTES_AT)
		return 1; /* the end mark: the writer's first unused number, so not a feature */
	return keep_feature(load_u64(record->bytes + RECORD_HEADER, sections->src->swapped),
			    record->offset + FEATURE_BYTES_AT, record->bytes + FEATURE_BYTES_AT,
			    record->len - FEATURE_BYTES_AT, sections, err);
}

/* What stands in a section of other files follows this record. */
static int learn_tracing(const struct stream_record *record, struct stream *stream,
			 struct sections *sections, struct tally_error *err)
{
	uint64_t len = load_u32(record->bytes + RECORD_HEADER, sections->src->swapped);
	uint64_t offset = record->offset + record->len;
	int r = 1;

	if (len > record->following)
		return 1;
	if (sections->src->once)
		r = stream_need(stream, (size_t)len, err);
	if (r <= 0)
		return r;
	return keep_feature(TALLY_FEATURE_TRACING_DATA, offset, stream->buf + stream->at, len,
			    sections, err);
}

static int learn_update(const struct stream_record *record, struct source *src,
			struct events *events, struct tally_error *err)
{
	const uint8_t *at = record->bytes + RECORD_HEADER;

	if (record->len <= UPDATE_NAME_AT || load_u64(at, src->swapped) != UPDATE_NAME)
		return 1;
	const char *name = (const char *)record->bytes + UPDATE_NAME_AT;
	struct text text = { name, strnlen(name, record->len - UPDATE_NAME_AT) };
	int r = events_rename(events, load_u64(at + 8, src->swapped), text);
	return r < 0 ? error_nomem(err, "an event's name") : 1;
}

int pipe_learn(const struct stream_record *record, struct stream *stream, struct events *events,
	       struct sections *sections, struct tally_error *err)
{
	switch (record->type) {
	case TALLY_FILE_HEADER_ATTR:
		return learn_attr(record, stream->src, events, err);
	case TALLY_FILE_HEADER_FEATURE:
		return learn_feature(record, sections, err);
	case TALLY_FILE_TRACING_DATA:
		return learn_tracing(record, stream, sections, err);
	case TALLY_FILE_EVENT_UPDATE:
		return learn_update(record, stream->src, events, err);
	case TALLY_RECORD_SAMPLE:
	case TALLY_FILE_FINISHED_ROUND:
	case TALLY_FILE_COMPRESSED:
	case TALLY_FILE_COMPRESSED2:
		return 0;
	default:
		return 1;
	}
}
