/* SPDX-License-Identifier: MIT */
/*
 * Decoding of the records that perf itself writes. The source of their layouts is perf's library,
 * tools/lib/perf/include/perf/event.h; that some grew at their end shows by their length.
 */
#include <errno.h>
#include <string.h>

#include <tally/file_record.h>
#include <tally/record.h>

#include "base/bytes.h"
#include "perfdata/layout.h"

#define BODY RECORD_HEADER

/* Offsets are those in the record, header included. */
static uint64_t u64_at(const struct tally_file_record *r, uint32_t at)
{
	return load_u64((const uint8_t *)r->bytes + at, r->swapped);
}

static uint32_t u32_at(const struct tally_file_record *r, uint32_t at)
{
	return load_u32((const uint8_t *)r->bytes + at, r->swapped);
}

static int32_t s32_at(const struct tally_file_record *r, uint32_t at)
{
	return (int32_t)u32_at(r, at);
}

static uint16_t u16_at(const struct tally_file_record *r, uint32_t at)
{
	return load_u16((const uint8_t *)r->bytes + at, r->swapped);
}

static const void *at(const struct tally_file_record *r, uint32_t offset)
{
	return (const uint8_t *)r->bytes + offset;
}

/* A text that ends in the record, and within `room` bytes; NULL when it does not. */
static const char *text_at(const struct tally_file_record *r, uint32_t offset, uint32_t room)
{
	const char *text = at(r, offset);
	uint32_t left = r->len - offset;

	return memchr(text, '\0', left < room ? left : room) ? text : NULL;
}

/* Whether `count` entries of `size` bytes are there from `offset` on. */
static bool holds(const struct tally_file_record *r, uint32_t offset, uint64_t count, uint32_t size)
{
	return count <= (r->len - offset) / size;
}

/* ---- one function a type: false when the record contradicts itself ---- */

static bool take_attr(struct tally_file_record *r)
{
	uint32_t size = u32_at(r, BODY + ATTR_SIZE_OFFSET);

	size = size ? size : TALLY_ATTR_SIZE_MIN;
	if (size < TALLY_ATTR_SIZE_MIN || !holds(r, BODY, 1, size))
		return false;
	r->attr = (struct tally_file_attr){
		.attr = at(r, BODY),
		.attr_len = size,
		.ids = at(r, BODY + size),
		.id_count = (r->len - BODY - size) / (uint32_t)sizeof(uint64_t),
	};
	return true;
}

static bool take_event_type(struct tally_file_record *r)
{
	r->event_type.config = u64_at(r, BODY);
	r->event_type.name = text_at(r, BODY + 8, 64);
	return r->event_type.name != NULL;
}

static bool take_tracing(struct tally_file_record *r)
{
	r->tracing.size = u32_at(r, BODY);
	return true;
}

static bool take_build_id(struct tally_file_record *r)
{
	uint8_t size = *(const uint8_t *)at(r, BUILD_ID_SIZE_AT);
	bool sized = (r->misc & MISC_BUILD_ID_SIZE) && size <= BUILD_ID_MAX;

	r->build_id = (struct tally_file_build_id){
		.pid = s32_at(r, BODY),
		.mode = r->misc & TALLY_MISC_CPUMODE,
		.id = at(r, BUILD_ID_AT),
		.id_len = sized ? size : BUILD_ID_MAX,
		.name = text_at(r, BUILD_ID_ENTRY, UINT32_MAX),
	};
	return r->build_id.name && r->build_id.id_len;
}

static bool take_id_index(struct tally_file_record *r)
{
	uint64_t count = u64_at(r, BODY);

	if (!holds(r, BODY + 8, count, 32))
		return false;
	uint32_t guests = BODY + 8 + (uint32_t)count * 32;
	r->id_index = (struct tally_file_id_index){
		.count = count,
		.entries = at(r, BODY + 8),
		.guests = count && holds(r, guests, count, 16) ? at(r, guests) : NULL,
	};
	return true;
}

static bool take_auxtrace_info(struct tally_file_record *r)
{
	r->auxtrace_info = (struct tally_file_auxtrace_info){
		.kind = u32_at(r, BODY),
		.word_count = (r->len - BODY - 8) / sizeof(uint64_t),
		.words = at(r, BODY + 8),
	};
	return true;
}

static bool take_auxtrace(struct tally_file_record *r)
{
	r->auxtrace = (struct tally_file_auxtrace){
		.size = u64_at(r, BODY),
		.offset = u64_at(r, BODY + 8),
		.reference = u64_at(r, BODY + 16),
		.index = u32_at(r, BODY + 24),
		.tid = s32_at(r, BODY + 28),
		.cpu = s32_at(r, BODY + 32),
	};
	return true;
}

#define AUX_MESSAGE 64

/* The time came with Linux 5.2 (fmt 1), guests with 6.1 (fmt 2). */
static bool take_auxtrace_error(struct tally_file_record *r)
{
	uint32_t format = u32_at(r, BODY + 20), message = format ? BODY + 40 : BODY + 32;
	uint32_t guest = message + AUX_MESSAGE;

	r->auxtrace_error = (struct tally_file_auxtrace_error){
		.kind = u32_at(r, BODY),
		.code = u32_at(r, BODY + 4),
		.cpu = s32_at(r, BODY + 8),
		.pid = s32_at(r, BODY + 12),
		.tid = s32_at(r, BODY + 16),
		.format = format,
		.ip = u64_at(r, BODY + 24),
		.vcpu = -1,
	};
	if (r->len <= message)
		return false;
	if (format)
		r->auxtrace_error.time = u64_at(r, BODY + 32);
	if (format > 1 && r->len >= guest + 8) {
		r->auxtrace_error.machine_pid = s32_at(r, guest);
		r->auxtrace_error.vcpu = s32_at(r, guest + 4);
	}
	r->auxtrace_error.message = text_at(r, message, AUX_MESSAGE);
	return r->auxtrace_error.message != NULL;
}

static bool take_thread_map(struct tally_file_record *r)
{
	r->thread_map.count = u64_at(r, BODY);
	r->thread_map.entries = at(r, BODY + 8);
	return holds(r, BODY + 8, r->thread_map.count, 24);
}

/* Packed, with 2 bytes in front; those of a mask of 8-byte words stand behind 4 that are unused. */
static bool take_cpus(const struct tally_file_record *r, uint32_t offset,
		      struct tally_file_cpus *cpus)
{
	if (!holds(r, offset, 1, 6))
		return false;
	*cpus = (struct tally_file_cpus){ .kind = u16_at(r, offset),
					  .count = u16_at(r, offset + 2) };
	switch (cpus->kind) {
	case 0:
		cpus->entries = at(r, offset + 4);
		return holds(r, offset + 4, cpus->count, 2);
	case 1:
		cpus->word = u16_at(r, offset + 4);
		if ((cpus->word != 4 && cpus->word != 8) || !holds(r, offset, 1, 10))
			return false;
		offset += cpus->word == 8 ? 10 : 6;
		cpus->entries = at(r, offset);
		return holds(r, offset, cpus->count, cpus->word);
	case 2:
		if (!holds(r, offset, 1, 8))
			return false;
		cpus->any = *(const uint8_t *)at(r, offset + 2);
		cpus->count = 0;
		cpus->first = u16_at(r, offset + 4);
		cpus->last = u16_at(r, offset + 6);
		return cpus->first <= cpus->last;
	default:
		return false;
	}
}

static bool take_cpu_map(struct tally_file_record *r)
{
	return take_cpus(r, BODY, &r->cpu_map);
}

static bool take_stat_config(struct tally_file_record *r)
{
	r->stat_config.count = u64_at(r, BODY);
	r->stat_config.entries = at(r, BODY + 8);
	return holds(r, BODY + 8, r->stat_config.count, 16);
}

static bool take_stat(struct tally_file_record *r)
{
	r->stat = (struct tally_file_stat){
		.id = u64_at(r, BODY),
		.cpu = s32_at(r, BODY + 8),
		.thread = s32_at(r, BODY + 12),
		.value = u64_at(r, BODY + 16),
		.enabled_ns = u64_at(r, BODY + 24),
		.running_ns = u64_at(r, BODY + 32),
	};
	return true;
}

static bool take_stat_round(struct tally_file_record *r)
{
	r->stat_round.kind = u64_at(r, BODY);
	r->stat_round.time = u64_at(r, BODY + 8);
	return true;
}

enum {
	UPDATE_UNIT,
	UPDATE_SCALE,
	UPDATE_NAME,
	UPDATE_CPUS
};

static bool take_update(struct tally_file_record *r)
{
	const uint32_t data = BODY + 16;
	uint64_t bits;

	r->update = (struct tally_file_update){ .kind = u64_at(r, BODY),
						.id = u64_at(r, BODY + 8) };
	switch (r->update.kind) {
	case UPDATE_UNIT:
	case UPDATE_NAME:
		r->update.text = text_at(r, data, UINT32_MAX);
		return r->update.text != NULL;
	case UPDATE_SCALE:
		if (!holds(r, data, 1, 8))
			return false;
		bits = u64_at(r, data);
		memcpy(&r->update.scale, &bits, sizeof(bits));
		return true;
	case UPDATE_CPUS:
		return take_cpus(r, data, &r->update.cpus);
	default:
		return true;
	}
}

static bool take_time_conv(struct tally_file_record *r)
{
	r->time_conv = (struct tally_file_time_conv){
		.shift = u64_at(r, BODY),
		.mult = u64_at(r, BODY + 8),
		.zero = u64_at(r, BODY + 16),
		.cap_zero = 1, /* such a record is only written where it is */
	};
	if (r->len < BODY + 42)
		return true;
	r->time_conv.cycles = u64_at(r, BODY + 24);
	r->time_conv.mask = u64_at(r, BODY + 32);
	r->time_conv.cap_zero = *(const uint8_t *)at(r, BODY + 40);
	r->time_conv.cap_short = *(const uint8_t *)at(r, BODY + 41);
	return true;
}

static bool take_feature(struct tally_file_record *r)
{
	r->feature = (struct tally_file_feature){ u64_at(r, BODY), at(r, BODY + 8),
						  r->len - BODY - 8 };
	return true;
}

static bool take_compressed(struct tally_file_record *r)
{
	r->packed = (struct tally_file_packed){ at(r, BODY), r->len - BODY };
	return true;
}

/* Of those that one write made together the first tells of all, and the others of nothing. */
static bool take_compressed2(struct tally_file_record *r)
{
	uint64_t len = u64_at(r, BODY), left = r->len - BODY - 8;

	r->packed = (struct tally_file_packed){ at(r, BODY + 8), len < left ? len : left };
	return true;
}

enum {
	NOTE_PROGRAM = 512,
	NOTE_KEY = 64,
	NOTE_VALUE = 256,
	NOTE = NOTE_KEY + NOTE_VALUE
};

static bool take_bpf_metadata(struct tally_file_record *r)
{
	const uint32_t count_at = BODY + NOTE_PROGRAM;

	r->bpf_metadata = (struct tally_file_bpf_metadata){
		.program = text_at(r, BODY, NOTE_PROGRAM),
		.count = u64_at(r, count_at),
		.entries = at(r, count_at + 8),
	};
	return r->bpf_metadata.program && holds(r, count_at + 8, r->bpf_metadata.count, NOTE);
}

static bool take_schedstat(struct tally_file_record *r)
{
	bool domain = r->type == TALLY_FILE_SCHEDSTAT_DOMAIN;

	r->schedstat = (struct tally_file_schedstat){
		.time = u64_at(r, BODY),
		.cpu = u32_at(r, BODY + 8),
		.version = u16_at(r, BODY + 12),
		.domain = domain ? u16_at(r, BODY + 14) : 0,
		.counters = at(r, BODY + 16),
		.counters_len = r->len - BODY - 16,
	};
	return true;
}

static bool take_nothing(struct tally_file_record *r)
{
	return true;
}

static const struct kind {
	uint32_t least; /* bytes of the record, with its header */
	bool (*take)(struct tally_file_record *r);
} kinds[] = {
	[TALLY_FILE_HEADER_ATTR - RECORD_USER] = { BODY + TALLY_ATTR_SIZE_MIN, take_attr },
	[TALLY_FILE_EVENT_TYPE - RECORD_USER] = { BODY + 9, take_event_type },
	[TALLY_FILE_TRACING_DATA - RECORD_USER] = { BODY + 4, take_tracing },
	[TALLY_FILE_BUILD_ID - RECORD_USER] = { BUILD_ID_ENTRY + 1, take_build_id },
	[TALLY_FILE_FINISHED_ROUND - RECORD_USER] = { BODY, take_nothing },
	[TALLY_FILE_ID_INDEX - RECORD_USER] = { BODY + 8, take_id_index },
	[TALLY_FILE_AUXTRACE_INFO - RECORD_USER] = { BODY + 8, take_auxtrace_info },
	[TALLY_FILE_AUXTRACE - RECORD_USER] = { BODY + 40, take_auxtrace },
	[TALLY_FILE_AUXTRACE_ERROR - RECORD_USER] = { BODY + 33, take_auxtrace_error },
	[TALLY_FILE_THREAD_MAP - RECORD_USER] = { BODY + 8, take_thread_map },
	[TALLY_FILE_CPU_MAP - RECORD_USER] = { BODY + 6, take_cpu_map },
	[TALLY_FILE_STAT_CONFIG - RECORD_USER] = { BODY + 8, take_stat_config },
	[TALLY_FILE_STAT - RECORD_USER] = { BODY + 40, take_stat },
	[TALLY_FILE_STAT_ROUND - RECORD_USER] = { BODY + 16, take_stat_round },
	[TALLY_FILE_EVENT_UPDATE - RECORD_USER] = { BODY + 17, take_update },
	[TALLY_FILE_TIME_CONV - RECORD_USER] = { BODY + 24, take_time_conv },
	[TALLY_FILE_HEADER_FEATURE - RECORD_USER] = { BODY + 8, take_feature },
	[TALLY_FILE_COMPRESSED - RECORD_USER] = { BODY, take_compressed },
	[TALLY_FILE_FINISHED_INIT - RECORD_USER] = { BODY, take_nothing },
	[TALLY_FILE_COMPRESSED2 - RECORD_USER] = { BODY + 8, take_compressed2 },
	[TALLY_FILE_BPF_METADATA - RECORD_USER] = { BODY + NOTE_PROGRAM + 8, take_bpf_metadata },
	[TALLY_FILE_SCHEDSTAT_CPU - RECORD_USER] = { BODY + 16, take_schedstat },
	[TALLY_FILE_SCHEDSTAT_DOMAIN - RECORD_USER] = { BODY + 16, take_schedstat },
};

int tally_file_record_decode(const void *bytes, size_t len, bool swapped,
			     struct tally_file_record *out, size_t out_size)
{
	struct tally_file_record r = { .bytes = bytes, .swapped = swapped };
	const uint8_t *head = bytes;

	if (len < RECORD_HEADER)
		return -EAGAIN;
	r.type = load_u32(head + RECORD_TYPE_AT, swapped);
	r.misc = load_u16(head + RECORD_MISC_AT, swapped);
	if (r.type < RECORD_USER || r.type - RECORD_USER >= ARRAY_SIZE(kinds))
		return -EOPNOTSUPP;
	/* The size of a COMPRESSED2 may have overflowed; the caller knows it. */
	if (r.type != TALLY_FILE_COMPRESSED2 && len < load_u16(head + RECORD_SIZE_AT, swapped))
		return -EAGAIN;
	r.len = len < INT32_MAX ? (uint32_t)len : INT32_MAX;
	const struct kind *kind = &kinds[r.type - RECORD_USER];
	if (r.len < kind->least || !kind->take(&r))
		return -EBADMSG;
	memset(out, 0, out_size);
	memcpy(out, &r, out_size < sizeof(r) ? out_size : sizeof(r));
	return (int)r.len;
}

/* ---- lists ---- */

static const uint8_t *entry(const struct tally_file_record *rec, uint32_t type, const void *entries,
			    uint64_t count, uint64_t i, size_t size)
{
	return rec->type == type && i < count ? (const uint8_t *)entries + i * size : NULL;
}

bool tally_file_id(const struct tally_file_record *rec, uint64_t i, struct tally_file_id *out)
{
	const struct tally_file_id_index *index = &rec->id_index;
	const uint8_t *e = entry(rec, TALLY_FILE_ID_INDEX, index->entries, index->count, i, 32);

	if (!e)
		return false;
	*out = (struct tally_file_id){
		.id = load_u64(e, rec->swapped),
		.index = load_u64(e + 8, rec->swapped),
		.cpu = (int64_t)load_u64(e + 16, rec->swapped),
		.tid = (int64_t)load_u64(e + 24, rec->swapped),
		.vcpu = -1,
	};
	if (!index->guests)
		return true;
	e = (const uint8_t *)index->guests + i * 16;
	out->machine_pid = (int64_t)load_u64(e, rec->swapped);
	out->vcpu = (int64_t)load_u64(e + 8, rec->swapped);
	return true;
}

bool tally_file_thread(const struct tally_file_record *rec, uint64_t i,
		       struct tally_file_thread *out)
{
	const struct tally_file_thread_map *map = &rec->thread_map;
	const uint8_t *e = entry(rec, TALLY_FILE_THREAD_MAP, map->entries, map->count, i, 24);

	if (!e)
		return false;
	*out = (struct tally_file_thread){ .pid = (int64_t)load_u64(e, rec->swapped) };
	memcpy(out->comm, e + 8, 16);
	return true;
}

bool tally_file_word(const struct tally_file_record *rec, uint64_t i, uint64_t *out)
{
	const uint8_t *e = entry(rec, TALLY_FILE_HEADER_ATTR, rec->attr.ids, rec->attr.id_count, i,
				 sizeof(*out));

	if (!e)
		e = entry(rec, TALLY_FILE_AUXTRACE_INFO, rec->auxtrace_info.words,
			  rec->auxtrace_info.word_count, i, sizeof(*out));
	if (e)
		*out = load_u64(e, rec->swapped);
	return e != NULL;
}

bool tally_file_setting(const struct tally_file_record *rec, uint64_t i, uint64_t *tag,
			uint64_t *value)
{
	const uint8_t *e = entry(rec, TALLY_FILE_STAT_CONFIG, rec->stat_config.entries,
				 rec->stat_config.count, i, 16);

	if (!e)
		return false;
	*tag = load_u64(e, rec->swapped);
	*value = load_u64(e + 8, rec->swapped);
	return true;
}

bool tally_file_note(const struct tally_file_record *rec, uint64_t i, const char **key,
		     const char **value)
{
	const uint8_t *e = entry(rec, TALLY_FILE_BPF_METADATA, rec->bpf_metadata.entries,
				 rec->bpf_metadata.count, i, NOTE);

	if (!e || !memchr(e, '\0', NOTE_KEY) || !memchr(e + NOTE_KEY, '\0', NOTE_VALUE))
		return false;
	*key = (const char *)e;
	*value = (const char *)e + NOTE_KEY;
	return true;
}

static bool next_of_mask(const struct tally_file_record *rec, const struct tally_file_cpus *cpus,
			 uint64_t *cursor, int32_t *out)
{
	const uint32_t bits = cpus->word * 8;

	for (; *cursor < (uint64_t)cpus->count * bits; ++*cursor) {
		const uint8_t *word = (const uint8_t *)cpus->entries + *cursor / bits * cpus->word;
		uint64_t value = cpus->word == 8 ? load_u64(word, rec->swapped)
						 : load_u32(word, rec->swapped);
		if (!(value >> *cursor % bits & 1))
			continue;
		*out = (int32_t)(*cursor)++;
		return true;
	}
	return false;
}

static bool next_of_list(const struct tally_file_record *rec, const struct tally_file_cpus *cpus,
			 uint64_t *cursor, int32_t *out)
{
	if (*cursor >= cpus->count)
		return false;
	uint16_t cpu = load_u16((const uint8_t *)cpus->entries + 2 * (*cursor)++, rec->swapped);
	*out = cpu == UINT16_MAX ? -1 : cpu;
	return true;
}

static bool next_of_range(const struct tally_file_cpus *cpus, uint64_t *cursor, int32_t *out)
{
	uint64_t i = (*cursor)++;

	if (cpus->any && i == 0) {
		*out = -1;
		return true;
	}
	i -= cpus->any ? 1 : 0;
	*out = (int32_t)(cpus->first + i);
	return i <= cpus->last - cpus->first;
}

bool tally_file_cpu(const struct tally_file_record *rec, uint64_t *cursor, int32_t *out)
{
	bool update = rec->type == TALLY_FILE_EVENT_UPDATE && rec->update.kind == UPDATE_CPUS;
	const struct tally_file_cpus *cpus = update ? &rec->update.cpus : &rec->cpu_map;

	if (!update && rec->type != TALLY_FILE_CPU_MAP)
		return false;
	switch (cpus->kind) {
	case 0:
		return next_of_list(rec, cpus, cursor, out);
	case 1:
		return next_of_mask(rec, cpus, cursor, out);
	default:
		return next_of_range(cpus, cursor, out);
	}
}
