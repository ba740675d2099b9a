/* SPDX-License-Identifier: MIT */
/* A header, a list of types of various lengths, and the strings that they have their names from. */
#include <linux/btf.h>
#include <stdbool.h>
#include <string.h>

#include "base/bytes.h"
#include "recorder/btf.h"

/* Bytes behind a struct btf_type: some always, and some for each of its BTF_INFO_VLEN members. */
static const struct {
	uint8_t known, always, each;
} kinds[] = {
	[1] = { 1, 4, 0 },   /* INT */
	[2] = { 1, 0, 0 },   /* PTR */
	[3] = { 1, 12, 0 },  /* ARRAY */
	[4] = { 1, 0, 12 },  /* STRUCT */
	[5] = { 1, 0, 12 },  /* UNION */
	[6] = { 1, 0, 8 },   /* ENUM */
	[7] = { 1, 0, 0 },   /* FWD */
	[8] = { 1, 0, 0 },   /* TYPEDEF */
	[9] = { 1, 0, 0 },   /* VOLATILE */
	[10] = { 1, 0, 0 },  /* CONST */
	[11] = { 1, 0, 0 },  /* RESTRICT */
	[12] = { 1, 0, 0 },  /* FUNC */
	[13] = { 1, 0, 8 },  /* FUNC_PROTO */
	[14] = { 1, 4, 0 },  /* VAR */
	[15] = { 1, 0, 12 }, /* DATASEC */
	[16] = { 1, 0, 0 },  /* FLOAT */
	[17] = { 1, 4, 0 },  /* DECL_TAG */
	[18] = { 1, 0, 0 },  /* TYPE_TAG */
	[19] = { 1, 0, 12 }, /* ENUM64 */
};

/* A section of the `len` bytes, by the header's offset, which counts from the header's end. */
static const char *section(const char *btf, size_t len, const struct btf_header *h, uint32_t offset,
			   uint32_t size)
{
	uint64_t from = (uint64_t)h->hdr_len + offset;

	return from + size <= len ? btf + from : NULL;
}

/* The type that has this id, of those that begin with 1. */
static bool find_type(struct btf_type *type, const char *types, size_t len, uint32_t id)
{
	size_t at = 0;

	while (id && len - at >= sizeof(*type)) {
		memcpy(type, types + at, sizeof(*type));
		uint32_t kind = BTF_INFO_KIND(type->info);
		if (kind >= ARRAY_SIZE(kinds) || !kinds[kind].known)
			return false;
		if (!--id)
			return true;
		size_t size = sizeof(*type) + kinds[kind].always +
			      (size_t)kinds[kind].each * BTF_INFO_VLEN(type->info);
		if (size > len - at)
			return false;
		at += size;
	}
	return false;
}

const char *btf_name(const void *btf, size_t len, uint32_t type_id)
{
	struct btf_header h;
	struct btf_type type;

	if (len < sizeof(h))
		return NULL;
	memcpy(&h, btf, sizeof(h));
	const char *types = section(btf, len, &h, h.type_off, h.type_len);
	const char *strings = section(btf, len, &h, h.str_off, h.str_len);
	if (h.magic != BTF_MAGIC || h.hdr_len < sizeof(h) || !types || !strings ||
	    !find_type(&type, types, h.type_len, type_id) || type.name_off >= h.str_len)
		return NULL;
	const char *name = strings + type.name_off;
	return *name && memchr(name, '\0', h.str_len - type.name_off) ? name : NULL;
}
