/* SPDX-License-Identifier: MIT */
/*
 * The reader of units, functions and inlined calls. The input is sections, each as a byte for what it
 * is (0-15 of the program, 16-31 of a .dwo file, 32-47 of dwz's shared file; 128: other byte order),
 * its length in three bytes, and its bytes. What is found at an address is a chain that ends, and
 * texts that end.
 */
#include <string.h>

#include "fuzz.h"
#include "image/debug-info.h"
#include "image/inline-index.h"

/* In the cost of look-ups lies the limit to so many. */
#define LOOKUPS 64
#define UNITS   16

static void take_sections(const uint8_t *data, size_t size, struct dwarf_file *files[3])
{
	while (size >= 4) {
		size_t len = data[1] | (size_t)data[2] << 8 | (size_t)data[3] << 16;
		unsigned what = data[0] & 15, file = data[0] >> 4 & 7;
		len = len < size - 4 ? len : size - 4;
		if (what < DWARF_SECTIONS && file < 3)
			dwarf_section_borrow(&files[file]->sections[what], data + 4, len,
					     data[0] & 128);
		data += 4 + len;
		size -= 4 + len;
	}
}

static void look_up(struct debug_info *d, uint64_t address, uint64_t limit)
{
	struct debug_places places = { .no_function = address % 2 };

	if (debug_info_find(d, address, &places) == 0) {
		must(places.list.count <= limit + 1);
		for (size_t i = 0; i < places.list.count; i++) {
			const struct debug_place *p = &places.list.at[i];
			must(!p->function || strlen(p->function) <= limit);
			must(!p->file || strlen(p->file) <= 3 * limit);
			must(p->inlined == (i + 1 < places.list.count));
		}
	}
	vec_done(&places.list);
}

/* Where something changes is where mistakes are. What is looked up may change the cover itself. */
static void look_around(struct debug_info *d, const struct cover *cover, uint64_t limit)
{
	uint64_t places[LOOKUPS];
	size_t count = cover->starts.count < LOOKUPS ? cover->starts.count : LOOKUPS;

	for (size_t i = 0; i < count; i++) {
		must(i == 0 || cover->starts.at[i - 1] < cover->starts.at[i]);
		places[i] = cover->base + cover->starts.at[i];
	}
	for (size_t i = 0; i < count; i++) {
		look_up(d, places[i], limit);
		look_up(d, places[i] - 1, limit);
	}
}

static void look_inside(struct debug_info *d, size_t index, uint64_t limit)
{
	const struct inline_index *x = d->indexes.at[index];

	look_around(d, &x->cover, limit);
	for (size_t i = 0; i < x->inner.count && i < UNITS; i++)
		look_around(d, &x->inner.at[i], limit);
}

/* As dwarf_split_find() does with what it finds. */
static void join(struct debug_info *d, struct dwarf_file *dwo)
{
	for (size_t i = 0; i < d->file.units.count && i < UNITS; i++) {
		struct dwarf_unit *u = &d->file.units.at[i];
		if (!u->dwo_name.form || i >= dwo->units.count || dwo->units.at[i].skeleton)
			continue;
		u->split = &dwo->units.at[i];
		u->split->skeleton = u;
		dwarf_unit_root(u->split);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct debug_info d = { 0 };
	struct dwarf_file dwo = { .is_dwo = true };
	struct dwarf_file *files[] = { &d.file, &dwo, &d.alt };

	take_sections(data, size, files);
	if (debug_info_start(&d) == 0 && dwarf_file_list(&dwo) == 0) {
		join(&d, &dwo);
		look_around(&d, &d.units, size);
		for (size_t i = 0; i < d.indexes.count && i < UNITS; i++)
			look_inside(&d, i, size);
	}
	debug_info_done(&d);
	dwarf_file_done(&dwo);
	return 0;
}
