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

static int learn_feature(const struct stream_record *record, struct sections *sections)
{
	if (record->len <= FEATURE_BYTES_AT)
		return 1; /* the end mark: the writer's first unused number, so not a feature */
	uint64_t feature = load_u64(record->bytes + RECORD_HEADER, sections->src->swapped);
	struct file_section place = { record->offset + FEATURE_BYTES_AT,
				      record->len - FEATURE_BYTES_AT };
	if (feature < FILE_FEATURES)
		sections_add(sections, (uint32_t)feature, &place);
	return 1;
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

int pipe_learn(const struct stream_record *record, struct source *src, struct events *events,
	       struct sections *sections, struct tally_error *err)
{
	switch (record->type) {
	case TALLY_FILE_HEADER_ATTR:
		return learn_attr(record, src, events, err);
	case TALLY_FILE_HEADER_FEATURE:
		return learn_feature(record, sections);
	case TALLY_FILE_EVENT_UPDATE:
		return learn_update(record, src, events, err);
	case TALLY_RECORD_SAMPLE:
	case TALLY_FILE_FINISHED_ROUND:
	case TALLY_FILE_COMPRESSED:
	case TALLY_FILE_COMPRESSED2:
		return 0;
	default:
		return 1;
	}
}
