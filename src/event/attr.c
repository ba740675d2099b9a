/* SPDX-License-Identifier: MIT */
/*
 * struct tally_attr as bytes: of any published size, in either byte order. One table names each
 * field's place; sizes, copying and swapping follow from it.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include <tally/attr.h>

#include "base/bytes.h"

/* TALLY_ATTR_* number the kernel's bit-field from the least significant bit. */
_Static_assert(
	__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	"a big-endian kernel allots the flags from the other end: TALLY_ATTR_* must be mirrored");

/* The places in include/uapi/linux/perf_event.h, whichever headers are installed here. */
#define PLACED(field, offset) \
	_Static_assert(offsetof(struct tally_attr, field) == (offset), #field " is misplaced")
PLACED(type, 0);
PLACED(size, 4);
PLACED(config, 8);
PLACED(sample_period, 16);
PLACED(sample_type, 24);
PLACED(read_format, 32);
PLACED(flags, 40);
PLACED(wakeup_events, 48);
PLACED(bp_type, 52);
PLACED(config1, 56);
PLACED(config2, 64);
PLACED(branch_sample_type, 72);
PLACED(sample_regs_user, 80);
PLACED(sample_stack_user, 88);
PLACED(clockid, 92);
PLACED(sample_regs_intr, 96);
PLACED(aux_watermark, 104);
PLACED(sample_max_stack, 108);
PLACED(reserved_2, 110);
PLACED(aux_sample_size, 112);
PLACED(aux_action, 116);
PLACED(sig_data, 120);
PLACED(config3, 128);
PLACED(config4, 136);
_Static_assert(sizeof(struct tally_attr) == TALLY_ATTR_SIZE_MAX, "the struct has padding");

/* What kernels published: VER0 to VER9. */
static const uint8_t sizes[] = { 64, 72, 80, 96, 104, 112, 120, 128, 136, 144 };

struct field {
	uint8_t offset, width;
	bool bits; /* a bit-field in C */
};

#define FIELD(name, is_bits)                                                                       \
	{                                                                                          \
		offsetof(struct tally_attr, name), sizeof(((struct tally_attr *)0)->name), is_bits \
	}
static const struct field fields[] = {
	FIELD(type, false),
	FIELD(size, false),
	FIELD(config, false),
	FIELD(sample_period, false),
	FIELD(sample_type, false),
	FIELD(read_format, false),
	FIELD(flags, true),
	FIELD(wakeup_events, false),
	FIELD(bp_type, false),
	FIELD(config1, false),
	FIELD(config2, false),
	FIELD(branch_sample_type, false),
	FIELD(sample_regs_user, false),
	FIELD(sample_stack_user, false),
	FIELD(clockid, false),
	FIELD(sample_regs_intr, false),
	FIELD(aux_watermark, false),
	FIELD(sample_max_stack, false),
	FIELD(reserved_2, false),
	FIELD(aux_sample_size, false),
	FIELD(aux_action, true),
	FIELD(sig_data, false),
	FIELD(config3, false),
	FIELD(config4, false),
};

void tally_attr_init(struct tally_attr *attr, uint32_t type, uint64_t config)
{
	*attr = (struct tally_attr){ .type = type, .size = sizeof(*attr), .config = config };
}

/* The end of the last word that is not zero: all sizes are whole words. */
static size_t used_size(const struct tally_attr *attr)
{
	const char *bytes = (const char *)attr;
	size_t used = sizeof(*attr);

	while (used && !load_u64(bytes + used - sizeof(uint64_t), false))
		used -= sizeof(uint64_t);
	return used;
}

uint32_t tally_attr_size(const struct tally_attr *attr)
{
	size_t used = used_size(attr), i = 0;

	while (sizes[i] < used)
		i++;
	return sizes[i];
}

static unsigned char mirror(unsigned char b)
{
	b = (unsigned char)((b & 0xf0) >> 4 | (b & 0x0f) << 4);
	b = (unsigned char)((b & 0xcc) >> 2 | (b & 0x33) << 2);
	return (unsigned char)((b & 0xaa) >> 1 | (b & 0x55) << 1);
}

/*
 * A big-endian compiler allots a bit-field from the most significant bit, which lies in the first
 * byte; a little-endian one from the least significant bit, in the first byte too. So the bytes
 * keep their order, and the bits in each are mirrored.
 */
static void copy_field(const struct field *f, unsigned char *to, const unsigned char *from,
		       bool swapped)
{
	for (size_t i = 0; i < f->width; i++) {
		size_t source = swapped && !f->bits ? f->width - 1u - i : i;
		to[f->offset + i] = swapped && f->bits ? mirror(from[f->offset + i])
						       : from[f->offset + source];
	}
}

/* Copies the fields that lie wholly within `size`; its own inverse. */
static void copy_fields(void *to, const void *from, size_t size, bool swapped)
{
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (fields[i].offset + fields[i].width <= size)
			copy_field(&fields[i], to, from, swapped);
}

/*
 * Mirrored, the two bits of precise_ip have changed places, as each end of a bit-field allots a
 * number's own bits from that end too.
 */
static void swap_precise_bits(struct tally_attr *attr)
{
	uint64_t level = (attr->flags & TALLY_ATTR_PRECISE_IP) >> TALLY_ATTR_PRECISE_IP_SHIFT;
	uint64_t turned = (level & 1) << 1 | level >> 1;

	attr->flags &= ~TALLY_ATTR_PRECISE_IP;
	attr->flags |= turned << TALLY_ATTR_PRECISE_IP_SHIFT;
}

int tally_attr_decode(struct tally_attr *out, const void *bytes, size_t len, bool swapped)
{
	struct tally_attr attr = { 0 };

	if (len < TALLY_ATTR_SIZE_MIN)
		return -EINVAL;
	uint32_t size = load_u32((const char *)bytes + offsetof(struct tally_attr, size), swapped);
	if (!size)
		size = TALLY_ATTR_SIZE_MIN;
	if (size < TALLY_ATTR_SIZE_MIN || size > len || size > INT_MAX)
		return -EINVAL;
	copy_fields(&attr, bytes, size, swapped);
	if (swapped)
		swap_precise_bits(&attr);
	*out = attr;
	return (int)size;
}

int tally_attr_encode(const struct tally_attr *attr, void *bytes, size_t size, bool swapped)
{
	struct tally_attr sized = *attr;

	if (size < TALLY_ATTR_SIZE_MIN || size % 8 || size > INT_MAX)
		return -EINVAL;
	if (used_size(attr) > size)
		return -E2BIG;
	sized.size = (uint32_t)size;
	if (swapped)
		swap_precise_bits(&sized);
	memset(bytes, 0, size);
	copy_fields(bytes, &sized, size, swapped);
	return (int)size;
}
