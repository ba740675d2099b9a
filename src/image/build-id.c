/* SPDX-License-Identifier: MIT */
/* Finding and comparing build-ids. */
#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "image/build-id.h"

#define NOTE_ALIGN 4

struct build_id build_id_from(const uint8_t *bytes, size_t len)
{
	struct build_id id = { .len = (uint32_t)(len < BUILD_ID_MAX ? len : BUILD_ID_MAX) };

	if (!bytes)
		return (struct build_id){ 0 };
	memcpy(id.bytes, bytes, id.len);
	return id;
}

struct build_id build_id_from_notes(const void *notes, size_t len, bool swapped)
{
	const uint8_t *at = notes;

	/* The head is the same in 32-bit files. */
	while (len >= sizeof(Elf64_Nhdr)) {
		const Elf64_Nhdr head = {
			.n_namesz = load_u32(at, swapped),
			.n_descsz = load_u32(at + 4, swapped),
			.n_type = load_u32(at + 8, swapped),
		};
		at += sizeof(head);
		len -= sizeof(head);
		size_t name = align_up(head.n_namesz, NOTE_ALIGN);
		size_t desc = align_up(head.n_descsz, NOTE_ALIGN);
		if (name > len || head.n_descsz > len - name)
			break;
		if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == sizeof(ELF_NOTE_GNU) &&
		    !memcmp(at, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)))
			return build_id_from(at + name, head.n_descsz);
		if (desc > len - name)
			break;
		at += name + desc;
		len -= name + desc;
	}
	return (struct build_id){ 0 };
}

static bool is_zero(const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (bytes[i])
			return false;
	return true;
}

bool build_ids_differ(const struct build_id *a, const struct build_id *b)
{
	const struct build_id *longer = a->len > b->len ? a : b;
	const struct build_id *shorter = a->len > b->len ? b : a;

	if (!shorter->len)
		return false;
	return memcmp(a->bytes, b->bytes, shorter->len) != 0 ||
	       !is_zero(longer->bytes + shorter->len, longer->len - shorter->len);
}

bool build_ids_match(const struct build_id *a, const struct build_id *b)
{
	return a->len && b->len && !build_ids_differ(a, b);
}

const char *build_id_text(char out[BUILD_ID_TEXT], const struct build_id *id)
{
	for (uint32_t i = 0; i < id->len; i++)
		snprintf(out + (size_t)2 * i, 3, "%02x", id->bytes[i]);
	out[(size_t)2 * id->len] = '\0';
	return out;
}
