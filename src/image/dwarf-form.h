/* SPDX-License-Identifier: MIT */
/* The values of attributes: how many bytes they have, and what they say by themselves. */
#ifndef IMAGE_DWARF_FORM_H
#define IMAGE_DWARF_FORM_H

#include <stdbool.h>
#include <stdint.h>

#include "image/dwarf-cursor.h"
#include "image/dwarf-names.h"

/* What sizes in a unit depend on. */
struct dwarf_encoding {
	uint8_t version, address_size;
	bool is64;
};

/* A value as it stands there; what it means takes its unit (dwarf-unit.h). */
struct dwarf_value {
	uint16_t form; /* 0: there is none */
	uint64_t number;
	const char *text; /* of DW_FORM_string */
};

/* Forms take so many bytes in every DIE; -1: it differs. */
int dwarf_form_size(uint16_t form, const struct dwarf_encoding *e);

/* For those of sizes that differ. One that nobody knows makes the cursor fail: what follows cannot be
 * found. */
void dwarf_form_skip(struct dwarf_cursor *c, uint16_t form, const struct dwarf_encoding *e);
struct dwarf_value dwarf_form_read(struct dwarf_cursor *c, uint16_t form, int64_t constant,
				   const struct dwarf_encoding *e);

/* Whether it is a number, and not a place in a section. */
bool dwarf_value_is_constant(const struct dwarf_value *v);

#endif
