/* SPDX-License-Identifier: MIT */
/* A jitdump made in memory, by tools/perf/Documentation/jitdump-specification.txt of Linux. */
#ifndef TESTS_FAKEJIT_H
#define TESTS_FAKEJIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct fakejit {
	unsigned char at[65536];
	size_t len;
	bool swapped;
};

static inline void fakejit_u32_(struct fakejit *j, uint32_t v)
{
	v = j->swapped ? __builtin_bswap32(v) : v;
	memcpy(j->at + j->len, &v, sizeof(v));
	j->len += sizeof(v);
}

static inline void fakejit_u64_(struct fakejit *j, uint64_t v)
{
	v = j->swapped ? __builtin_bswap64(v) : v;
	memcpy(j->at + j->len, &v, sizeof(v));
	j->len += sizeof(v);
}

static inline void fakejit_bytes_(struct fakejit *j, const void *bytes, size_t len)
{
	memcpy(j->at + j->len, bytes, len);
	j->len += len;
}

static inline void fakejit_begin(struct fakejit *j, bool swapped, uint64_t flags)
{
	*j = (struct fakejit){ .swapped = swapped };
	fakejit_u32_(j, 0x4A695444);
	fakejit_u32_(j, 1);
	fakejit_u32_(j, 40);
	fakejit_u32_(j, 62);
	fakejit_u32_(j, 0);
	fakejit_u32_(j, 42);
	fakejit_u64_(j, 1);
	fakejit_u64_(j, flags);
}

static inline void fakejit_head_(struct fakejit *j, uint32_t id, size_t body, uint64_t time)
{
	fakejit_u32_(j, id);
	fakejit_u32_(j, (uint32_t)(16 + body));
	fakejit_u64_(j, time);
}

static inline void fakejit_load(struct fakejit *j, uint64_t time, uint64_t start, uint32_t size,
				const char *name)
{
	fakejit_head_(j, 0, 40 + strlen(name) + 1 + size, time);
	fakejit_u32_(j, 42);
	fakejit_u32_(j, 42);
	fakejit_u64_(j, start);
	fakejit_u64_(j, start);
	fakejit_u64_(j, size);
	fakejit_u64_(j, time);
	fakejit_bytes_(j, name, strlen(name) + 1);
	memset(j->at + j->len, 0x90, size);
	j->len += size;
}

static inline void fakejit_move(struct fakejit *j, uint64_t time, uint64_t from, uint64_t to,
				uint64_t size)
{
	fakejit_head_(j, 1, 48, time);
	fakejit_u32_(j, 42);
	fakejit_u32_(j, 42);
	fakejit_u64_(j, to);
	fakejit_u64_(j, from);
	fakejit_u64_(j, to);
	fakejit_u64_(j, size);
	fakejit_u64_(j, 1);
}

struct fakejit_line {
	uint64_t address;
	uint32_t line;
	const char *file; /* "\xff": the one before */
};

static inline void fakejit_lines(struct fakejit *j, uint64_t time, uint64_t start,
				 const struct fakejit_line *lines, size_t count)
{
	size_t body = 16;

	for (size_t i = 0; i < count; i++)
		body += 16 + strlen(lines[i].file) + 1;
	fakejit_head_(j, 2, body, time);
	fakejit_u64_(j, start);
	fakejit_u64_(j, count);
	for (size_t i = 0; i < count; i++) {
		fakejit_u64_(j, lines[i].address);
		fakejit_u32_(j, lines[i].line);
		fakejit_u32_(j, 0);
		fakejit_bytes_(j, lines[i].file, strlen(lines[i].file) + 1);
	}
}

static inline void fakejit_unwind(struct fakejit *j, uint64_t time, const void *bytes, size_t len,
				  size_t header)
{
	fakejit_head_(j, 4, 24 + len, time);
	fakejit_u64_(j, len);
	fakejit_u64_(j, header);
	fakejit_u64_(j, len);
	fakejit_bytes_(j, bytes, len);
}

#endif
