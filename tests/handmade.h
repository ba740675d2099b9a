/* SPDX-License-Identifier: MIT */
/*
 * perf.data files made by hand, byte by byte from the description of the format
 * (perf.data-file-format.txt, perf_event_open(2)), so that reader and writer are not judged by each
 * other alone.
 */
#ifndef TESTS_HANDMADE_H
#define TESTS_HANDMADE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct handmade {
	uint8_t *at;
	size_t len, room;
	bool swapped; /* write the other byte order */
};

static inline uint8_t *hm_room(struct handmade *h, size_t len)
{
	if (h->room < h->len + len) {
		h->room = (h->len + len) * 2 + 4096;
		h->at = realloc(h->at, h->room);
		if (!h->at)
			abort();
	}
	uint8_t *to = h->at + h->len;
	memset(to, 0, len);
	h->len += len;
	return to;
}

static inline void hm_bytes(struct handmade *h, const void *bytes, size_t len)
{
	if (len)
		memcpy(hm_room(h, len), bytes, len);
}

/* The low `size` bytes of a number, in the file's byte order. */
static inline void hm_store(const struct handmade *h, uint8_t *to, uint64_t v, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		bool big = (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) != h->swapped;
		to[big ? size - 1 - i : i] = (uint8_t)(v >> 8 * i);
	}
}

static inline void hm_u16(struct handmade *h, uint64_t v)
{
	uint8_t *to = hm_room(h, 2);

	hm_store(h, to, v, 2);
}

static inline void hm_u32(struct handmade *h, uint64_t v)
{
	uint8_t *to = hm_room(h, 4);

	hm_store(h, to, v, 4);
}

static inline void hm_u64(struct handmade *h, uint64_t v)
{
	uint8_t *to = hm_room(h, 8);

	hm_store(h, to, v, 8);
}

static inline void hm_set(struct handmade *h, size_t at, uint64_t v, size_t size)
{
	hm_store(h, h->at + at, v, size);
}

/* A text in a feature: u32 length with NUL and padding, then the bytes. */
static inline void hm_text(struct handmade *h, const char *text, size_t align)
{
	size_t len = strlen(text) + 1, padded = (len + align - 1) / align * align;

	hm_u32(h, padded);
	hm_bytes(h, text, len);
	hm_room(h, padded - len);
}

/* A record header; the size is that of header and body. */
static inline void hm_record(struct handmade *h, uint32_t type, uint16_t misc, uint16_t size)
{
	hm_u32(h, type);
	hm_u16(h, misc);
	hm_u16(h, size);
}

/* COMM {u32 pid, tid; char comm[16]}: 32 bytes, no sample_id. */
static inline void hm_comm(struct handmade *h, uint32_t pid, const char *comm)
{
	char name[16] = { 0 };

	hm_record(h, 3, 0, 32);
	hm_u32(h, pid);
	hm_u32(h, pid);
	memcpy(name, comm, strnlen(comm, sizeof(name) - 1));
	hm_bytes(h, name, sizeof(name));
}

/* The fields of an attr that matter here; `flags` are given as a little-endian machine has them. */
struct hm_attr {
	uint32_t type, size;
	uint64_t config, sample_type, flags;
};

/* A big-endian compiler allots bit-fields from the other end of each byte. */
static inline void hm_flags(struct handmade *h, uint64_t flags)
{
	uint8_t *to = hm_room(h, 8);

	hm_store(h, to, flags, 8);
	if (!h->swapped)
		return;
	memset(to, 0, 8);
	for (int bit = 0; bit < 64; bit++)
		if (flags >> bit & 1)
			to[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
}

static inline void hm_attr(struct handmade *h, const struct hm_attr *a)
{
	size_t begin = h->len, size = a->size ? a->size : 64;

	hm_u32(h, a->type);
	hm_u32(h, a->size);
	hm_u64(h, a->config);
	hm_u64(h, 1000); /* sample_period */
	hm_u64(h, a->sample_type);
	hm_u64(h, 0); /* read_format */
	hm_flags(h, a->flags);
	hm_room(h, begin + size - h->len);
}

enum {
	HM_HEADER = 104,
	HM_ATTR_SIZE_AT = 16,
	HM_ATTRS_AT = 24,
	HM_DATA_AT = 40,
	HM_TYPES_AT = 56,
	HM_FEATURES_AT = 72,
};

/* "PERFILE2" as a number, and the header's fields, to be filled in by hm_set. */
static inline void hm_header(struct handmade *h, uint64_t size, uint64_t attr_size)
{
	hm_u64(h, 0x32454c4946524550u);
	hm_u64(h, size);
	hm_u64(h, attr_size);
	hm_room(h, size - 24);
}

static inline void hm_section(struct handmade *h, size_t at, uint64_t offset, uint64_t size)
{
	hm_set(h, at, offset, 8);
	hm_set(h, at + 8, size, 8);
}

/* A file in memory with these bytes, its position at the start. */
static inline int hm_file(const struct handmade *h)
{
	int fd = memfd_create("handmade", MFD_CLOEXEC);

	if (fd < 0 || write(fd, h->at, h->len) != (ssize_t)h->len)
		abort();
	return fd;
}

static inline void hm_done(struct handmade *h)
{
	free(h->at);
	memset(h, 0, sizeof(*h));
}

#endif
