/* SPDX-License-Identifier: MIT */
/* Addresses as text, each made once. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "profile/fields.h"
#include "profile/places.h"

/* As much text as that is kept. */
#define TEXT_LIMIT (64u << 20)

#define UNKNOWN "[unknown]" /* perf's word */

/* Memory that is no file's; perf takes its addresses as they are (util/map.c). */
static const struct {
	const char *begin;
	bool generated; /* code that a program made: perf names the file in which it may tell of it */
} no_files[] = {
	{ "//anon", true },  { "/dev/zero", true }, { "/anon_hugepage", true },
	{ "[stack", false }, { "/SYSV", false },    { "[heap]", false },
};

bool list_has(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (;;) {
		size_t item = strcspn(list, ",");
		if (item == len && !memcmp(list, word, len))
			return true;
		if (!list[item])
			return false;
		list += item + 1;
	}
}

struct looked_up {
	struct tally_frame frame;
	uint64_t in_file; /* the address as an offset in its file, where it has one */
	uint64_t in_map;  /* likewise, of the kernel from the start of its mapping */
	bool generated;
};

static int look_up(struct places *p, const struct whose *whose, uint64_t address, uint32_t mode,
		   struct looked_up *out)
{
	struct tally_mapping map;
	int r = tally_symbolizer_find(p->symbolizer, whose->pid, whose->time, address, mode,
				      &out->frame);

	if (r < 0)
		return r;
	bool user = out->frame.mode == TALLY_MODE_USER;
	*out = (struct looked_up){ .frame = out->frame, .in_file = address, .in_map = address };
	if (!strcmp(out->frame.module, UNKNOWN))
		return 0;
	r = tally_maps_find(p->sideband->maps, user ? whose->pid : TALLY_MAPS_KERNEL, whose->time,
			    address, &map);
	if (r <= 0)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(no_files); i++) {
		if (!strncmp(map.path, no_files[i].begin, strlen(no_files[i].begin))) {
			out->generated = no_files[i].generated && !out->frame.function;
			return 0;
		}
	}
	out->in_map = address - map.start + (user ? map.pgoff : 0);
	if (user)
		out->in_file = out->in_map;
	return 0;
}

/* Where in the source; `source` is filled in for as long as nothing else is looked up. */
static int look_up_source(struct places *p, const struct whose *whose, const struct looked_up *at,
			  uint32_t fields, struct tally_source *source)
{
	uint64_t back = fields & PLACE_CALL && at->frame.address ? 1 : 0;
	const struct tally_symbolizer_query query = {
		.pid = whose->pid,
		.mode = at->frame.mode,
		.time = whose->time,
		.address = at->frame.address - back,
	};
	struct tally_symbolized found;
	int r = tally_symbolizer_lines(p->symbolizer, &query, 1, &found);

	if (r == 0)
		*source = found.sources[0];
	return r;
}

static const char *dso_of(const struct looked_up *at)
{
	return at->frame.mode == TALLY_MODE_USER ? at->frame.path : at->frame.module;
}

static void put_symbol(struct out *o, const struct looked_up *at, uint32_t fields)
{
	if (!at->frame.function) {
		out_text(o, UNKNOWN);
		return;
	}
	out_plain(o, at->frame.function);
	if (fields & FIELD_SYMOFF) {
		out_text(o, "+0x");
		out_hex(o, at->frame.offset, 0, ' ');
	}
}

static void put_dso(struct out *o, const struct looked_up *at, int32_t pid)
{
	out_char(o, '(');
	if (at->generated)
		out_printf(o, "/tmp/perf-%d.map", pid);
	else
		out_plain(o, dso_of(at));
	out_char(o, ')');
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* What has no line is told by its module and address, as perf does. */
static void put_source(const struct places *p, struct out *o, const struct looked_up *at,
		       const struct tally_source *source)
{
	if (source->file && source->line) {
		out_plain(o, p->full_source ? source->file : base_name(source->file));
		out_char(o, ':');
		out_dec(o, source->line, 0, ' ');
	} else {
		out_plain(o, at->frame.module);
		out_char(o, '[');
		out_hex(o, at->frame.module_address, 0, ' ');
		out_char(o, ']');
	}
}

static void put_named(struct out *o, const struct looked_up *at, int32_t pid, uint32_t fields)
{
	if (fields & FIELD_SYM) {
		out_char(o, ' ');
		put_symbol(o, at, fields);
	}
	if (fields & FIELD_DSO) {
		out_char(o, ' ');
		put_dso(o, at, pid);
	}
}

static void put_json(struct out *o, const struct looked_up *at, const struct tally_source *source)
{
	out_text(o, "\"ip\":\"0x");
	out_hex(o, at->frame.address, 0, ' ');
	out_char(o, '"');
	if (at->frame.function) {
		out_text(o, ",\"symbol\":");
		out_json(o, at->frame.function);
		out_text(o, ",\"offset\":");
		out_dec(o, at->frame.offset, 0, ' ');
	}
	out_text(o, ",\"dso\":");
	out_json(o, dso_of(at));
	if (!source->file || !source->line)
		return;
	out_text(o, ",\"file\":");
	out_json(o, source->file);
	out_text(o, ",\"line\":");
	out_dec(o, source->line, 0, ' ');
}

static void put_place(struct places *p, const struct looked_up *at, int32_t pid,
		      enum place_form form, uint32_t fields, const struct tally_source *source)
{
	struct out *o = &p->texts;

	switch (form) {
	case PLACE_FRAME:
		out_char(o, '\t');
		out_hex(o, at->in_file, 16, ' ');
		put_named(o, at, pid, fields);
		if (fields & FIELD_SRCLINE) {
			out_text(o, "\n  ");
			put_source(p, o, at, source);
		}
		out_char(o, '\n');
		break;
	case PLACE_SAMPLE:
		out_hex(o, at->frame.address, 16, ' ');
		put_named(o, at, pid, fields);
		if (fields & FIELD_SRCLINE) {
			out_text(o, "\n  ");
			put_source(p, o, at, source);
		}
		break;
	case PLACE_NAME:
		put_symbol(o, at, fields);
		break;
	case PLACE_DSO:
		put_dso(o, at, pid);
		break;
	case PLACE_OFFSET:
		out_text(o, "0x");
		out_hex(o, at->in_map, 0, ' ');
		break;
	case PLACE_JSON:
		put_json(o, at, source);
		break;
	}
}

/* By short name or path, as perf script's --dsos. */
static bool passes(const struct places *p, const struct looked_up *at)
{
	const char *function = at->frame.function;

	if (p->symbols && !(function && list_has(p->symbols, function)))
		return false;
	return !p->dsos || list_has(p->dsos, at->frame.module) || list_has(p->dsos, at->frame.path);
}

static uint64_t key_of(const struct whose *whose, uint64_t address, uint32_t mode,
		       enum place_form form, uint32_t fields)
{
	const uint32_t deciding = FIELD_IP | FIELD_SYM | FIELD_SYMOFF | FIELD_DSO | FIELD_SRCLINE |
				  PLACE_CALL;
	bool kernel = mode == TALLY_MODE_KERNEL;
	uint64_t space = kernel ? UINT64_MAX : (uint64_t)(uint32_t)whose->pid << 32;
	uint64_t epoch = kernel ? whose->epoch.kernel
				: (uint64_t)whose->epoch.process << 32 | whose->epoch.kernel;

	return hash_u64(hash_u64(hash_u64(space) + epoch) ^ (fields & deciding) << 8 ^ mode << 4 ^
			form) ^
	       hash_u64(address + 1);
}

const struct place *place_known(struct places *p, uint64_t key)
{
	uint32_t index = map64_get(&p->known, key);

	return index ? &p->list.at[index - 1] : NULL;
}

const struct place *place_keep(struct places *p, uint64_t key, size_t start)
{
	uint32_t *index = map64_at(&p->known, key);
	struct place *place = index && !p->texts.failed ? vec_push(&p->list) : NULL;

	if (!place)
		return NULL;
	*index = (uint32_t)p->list.count;
	place->at = (uint32_t)start;
	place->len = (uint32_t)(p->texts.len - start);
	place->passes = true;
	return place;
}

const struct place *place_of(struct places *p, const struct whose *whose, uint64_t address,
			     uint32_t mode, enum place_form form, uint32_t fields)
{
	uint64_t key = key_of(whose, address, mode, form, fields);
	const struct place *known = place_known(p, key);
	struct tally_source source = { 0 };
	struct looked_up at;

	if (known)
		return known;
	if (look_up(p, whose, address, mode, &at) < 0)
		return NULL;
	if (fields & FIELD_SRCLINE && look_up_source(p, whose, &at, fields, &source) < 0)
		return NULL;
	/* Of unknown mode are the addresses of data, and of branches. */
	at.generated &= mode != TALLY_MODE_UNKNOWN || form == PLACE_DSO;
	size_t start = p->texts.len;
	put_place(p, &at, whose->pid, form, fields, &source);
	const struct place *kept = place_keep(p, key, start);
	if (kept)
		p->list.at[p->list.count - 1].passes = passes(p, &at);
	return kept;
}

bool places_repeat(struct places *p, const struct place *place)
{
	struct place copy = *place;
	size_t to = p->texts.len;

	/* Room first: the text would move from under its copy. */
	out_right(&p->texts, "", 0, copy.len);
	if (p->texts.failed)
		return false;
	memcpy(p->texts.at + to, p->texts.at + copy.at, copy.len);
	return true;
}

void places_trim(struct places *p)
{
	if (p->texts.len < TEXT_LIMIT)
		return;
	p->texts.len = 0;
	p->list.count = 0;
	map64_done(&p->known);
}

void places_done(struct places *p)
{
	out_done(&p->texts);
	vec_done(&p->list);
	map64_done(&p->known);
}
