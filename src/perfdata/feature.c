/* SPDX-License-Identifier: MIT */
/* Encoding and decoding of what stands in feature sections. */
#include <errno.h>
#include <string.h>

#include <tally/reader.h>

#include "base/bytes.h"
#include "perfdata/feature.h"

static const char *const names[] = {
	[TALLY_FEATURE_TRACING_DATA] = "TRACING_DATA",
	[TALLY_FEATURE_BUILD_ID] = "BUILD_ID",
	[TALLY_FEATURE_HOSTNAME] = "HOSTNAME",
	[TALLY_FEATURE_OSRELEASE] = "OSRELEASE",
	[TALLY_FEATURE_VERSION] = "VERSION",
	[TALLY_FEATURE_ARCH] = "ARCH",
	[TALLY_FEATURE_NRCPUS] = "NRCPUS",
	[TALLY_FEATURE_CPUDESC] = "CPUDESC",
	[TALLY_FEATURE_CPUID] = "CPUID",
	[TALLY_FEATURE_TOTAL_MEM] = "TOTAL_MEM",
	[TALLY_FEATURE_CMDLINE] = "CMDLINE",
	[TALLY_FEATURE_EVENT_DESC] = "EVENT_DESC",
	[TALLY_FEATURE_CPU_TOPOLOGY] = "CPU_TOPOLOGY",
	[TALLY_FEATURE_NUMA_TOPOLOGY] = "NUMA_TOPOLOGY",
	[TALLY_FEATURE_BRANCH_STACK] = "BRANCH_STACK",
	[TALLY_FEATURE_PMU_MAPPINGS] = "PMU_MAPPINGS",
	[TALLY_FEATURE_GROUP_DESC] = "GROUP_DESC",
	[TALLY_FEATURE_AUXTRACE] = "AUXTRACE",
	[TALLY_FEATURE_STAT] = "STAT",
	[TALLY_FEATURE_CACHE] = "CACHE",
	[TALLY_FEATURE_SAMPLE_TIME] = "SAMPLE_TIME",
	[TALLY_FEATURE_MEM_TOPOLOGY] = "MEM_TOPOLOGY",
	[TALLY_FEATURE_CLOCKID] = "CLOCKID",
	[TALLY_FEATURE_DIR_FORMAT] = "DIR_FORMAT",
	[TALLY_FEATURE_BPF_PROG_INFO] = "BPF_PROG_INFO",
	[TALLY_FEATURE_BPF_BTF] = "BPF_BTF",
	[TALLY_FEATURE_COMPRESSED] = "COMPRESSED",
	[TALLY_FEATURE_CPU_PMU_CAPS] = "CPU_PMU_CAPS",
	[TALLY_FEATURE_CLOCK_DATA] = "CLOCK_DATA",
	[TALLY_FEATURE_HYBRID_TOPOLOGY] = "HYBRID_TOPOLOGY",
	[TALLY_FEATURE_PMU_CAPS] = "PMU_CAPS",
	[TALLY_FEATURE_CPU_DOMAIN_INFO] = "CPU_DOMAIN_INFO",
	[TALLY_FEATURE_E_MACHINE] = "E_MACHINE",
	[TALLY_FEATURE_CLN_SIZE] = "CLN_SIZE",
};

const char *feature_name(uint32_t feature)
{
	return feature < ARRAY_SIZE(names) && names[feature] ? names[feature] : "?";
}

void feature_put_u32(struct buf *b, uint32_t v, bool swapped)
{
	store_u32(&v, v, swapped);
	buf_u32(b, v);
}

void feature_put_text(struct buf *b, const char *text, bool swapped)
{
	size_t len = strlen(text), padded = align_up(len + 1, TEXT_ALIGN);

	feature_put_u32(b, (uint32_t)padded, swapped);
	buf_add(b, text, len);
	buf_zero(b, padded - len);
}

void feature_put_words(struct buf *b, uint32_t count, const char *const *words, bool swapped)
{
	feature_put_u32(b, count, swapped);
	for (uint32_t i = 0; i < count; i++)
		feature_put_text(b, words[i], swapped);
}

void feature_put_events_head(struct buf *b, uint32_t count, uint32_t attr_size, bool swapped)
{
	feature_put_u32(b, count, swapped);
	feature_put_u32(b, attr_size, swapped);
}

void feature_put_event(struct buf *b, const char *name, const uint64_t *ids, uint32_t id_count,
		       bool swapped)
{
	feature_put_u32(b, id_count, swapped);
	feature_put_text(b, name, swapped);
	for (uint32_t i = 0; i < id_count; i++) {
		uint64_t id;
		store_u64(&id, ids[i], swapped);
		buf_u64(b, id);
	}
}

void feature_put_group(struct buf *b, const char *name, uint32_t leader, uint32_t members,
		       bool swapped)
{
	if (!b->len)
		buf_u32(b, 0);
	feature_put_text(b, name, swapped);
	feature_put_u32(b, leader, swapped);
	feature_put_u32(b, members, swapped);
	if (!b->failed)
		store_u32(b->at, load_u32(b->at, swapped) + 1, swapped);
}

int feature_put_build_id(struct buf *b, uint32_t cpumode, int32_t pid, const char *name,
			 const uint8_t *id, uint32_t id_len, bool swapped)
{
	uint8_t entry[BUILD_ID_ENTRY] = { 0 };
	size_t name_len = strlen(name), size = align_up(BUILD_ID_ENTRY + name_len + 1, 8);
	uint32_t misc = (cpumode & TALLY_MISC_CPUMODE) | MISC_BUILD_ID_SIZE;

	if (!id_len || id_len > BUILD_ID_MAX)
		return -EINVAL;
	if (size > UINT16_MAX)
		return -ENAMETOOLONG;
	/* perf writes no record type here */
	store_u16(entry + RECORD_MISC_AT, (uint16_t)misc, swapped);
	store_u16(entry + RECORD_SIZE_AT, (uint16_t)size, swapped);
	store_u32(entry + RECORD_HEADER, (uint32_t)pid, swapped);
	memcpy(entry + BUILD_ID_AT, id, id_len);
	entry[BUILD_ID_SIZE_AT] = (uint8_t)id_len;
	buf_add(b, entry, sizeof(entry));
	buf_add(b, name, name_len);
	buf_zero(b, size - BUILD_ID_ENTRY - name_len);
	return b->failed ? -ENOMEM : 0;
}

const uint8_t *take_bytes(struct cursor *c, uint64_t len)
{
	const uint8_t *at = c->at;

	if (c->bad || len > c->left) {
		c->bad = true;
		return NULL;
	}
	c->at += len;
	c->left -= len;
	return at;
}

uint32_t take_u32(struct cursor *c)
{
	const uint8_t *at = take_bytes(c, sizeof(uint32_t));

	return at ? load_u32(at, c->swapped) : 0;
}

static struct text text_of(const uint8_t *at, uint64_t len)
{
	const char *text = (const char *)at;

	return (struct text){ text, at ? strnlen(text, len) : 0 };
}

struct text take_text(struct cursor *c)
{
	uint32_t len = take_u32(c);

	return text_of(take_bytes(c, len), len);
}

uint32_t take_events_head(struct cursor *c, uint32_t *attr_size)
{
	uint32_t count = take_u32(c);

	*attr_size = take_u32(c);
	return c->bad ? 0 : count;
}

bool take_event(struct cursor *c, uint32_t attr_size, struct event_desc *out)
{
	const uint8_t *attr = take_bytes(c, attr_size);

	if (!attr || tally_attr_decode(&out->attr, attr, attr_size, c->swapped) < 0)
		return false;
	out->id_count = take_u32(c);
	out->name = take_text(c);
	out->ids = take_bytes(c, (uint64_t)out->id_count * sizeof(uint64_t));
	return !c->bad;
}

bool build_ids_lack_pid(struct cursor c)
{
	static const char shifted[] = "nel.kallsyms]";
	const uint8_t *at = take_bytes(&c, BUILD_ID_ENTRY + sizeof(shifted) - 1);

	return at && !memcmp(at + BUILD_ID_ENTRY, shifted, sizeof(shifted) - 1);
}

bool take_build_id(struct cursor *c, bool no_pid, struct build_id_entry *out)
{
	struct cursor head = *c;
	uint32_t fixed = no_pid ? BUILD_ID_ENTRY_NO_PID : BUILD_ID_ENTRY;

	if (!c->left)
		return false;
	const uint8_t *at = take_bytes(&head, RECORD_HEADER);
	uint32_t size = at ? load_u16(at + RECORD_SIZE_AT, c->swapped) : 0;
	if (size <= fixed || !take_bytes(c, size)) {
		c->bad = true;
		return false;
	}
	uint32_t misc = load_u16(at + RECORD_MISC_AT, c->swapped);
	bool sized = !no_pid && (misc & MISC_BUILD_ID_SIZE) && at[BUILD_ID_SIZE_AT] < BUILD_ID_MAX;
	out->cpumode = misc & TALLY_MISC_CPUMODE;
	out->pid = no_pid ? -1 : (int32_t)load_u32(at + RECORD_HEADER, c->swapped);
	out->id = at + (no_pid ? RECORD_HEADER : BUILD_ID_AT);
	out->id_len = sized ? at[BUILD_ID_SIZE_AT] : BUILD_ID_MAX;
	out->name = text_of(at + fixed, size - fixed);
	return true;
}
