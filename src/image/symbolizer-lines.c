/* SPDX-License-Identifier: MIT */
/* Lines and inlined calls for the symbolizer: each module's DWARF, found and opened once. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "image/debug-info.h"
#include "image/symbolizer-inside.h"

struct debug_module {
	struct debug_info *info; /* NULL: none is here */
	bool looked_for;
};

struct numbered {
	uint64_t address;
	size_t query;
};

struct source_lines {
	VEC(struct debug_module) modules; /* by the symbolizer's number */
	VEC(struct numbered) order;       /* in which the last batch was answered */
	VEC(struct tally_source) sources; /* of it */
	struct debug_places places;       /* of the address at hand */
	VEC(const char *) names;          /* readable ones ... */
	struct map64 name_at;             /* ... by where the linker's stands: index + 1 */
};

void source_lines_free(struct source_lines *lines)
{
	if (!lines)
		return;
	vec_each (&lines->modules, m) {
		if (m->info)
			debug_info_done(m->info);
		free(m->info);
	}
	vec_done(&lines->modules);
	vec_done(&lines->order);
	vec_done(&lines->sources);
	vec_done(&lines->places.list);
	vec_done(&lines->names);
	map64_done(&lines->name_at);
	free(lines);
}

static int open_debug(struct tally_symbolizer *s, const struct tally_symbolizer_query *query,
		      uint32_t module, struct debug_info **out)
{
	const struct module *m = s->modules.at[module];
	struct file_search where;
	struct debug_file file;

	if (!symbolizer_search(s, query, &where))
		return 0;
	int r = module_debug(m, &where, &file);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	*out = calloc(1, sizeof(**out));
	if (!*out) {
		debug_file_done(&file);
		return -ENOMEM;
	}
	return debug_info_open(*out, &file, m->opened, where.symfs);
}

/* NULL: the module has none. */
static int find_debug(struct source_lines *lines, struct tally_symbolizer *s,
		      const struct tally_symbolizer_query *query, uint32_t module,
		      struct debug_info **out)
{
	while (lines->modules.count <= module)
		if (!vec_push(&lines->modules))
			return -ENOMEM;
	struct debug_module *m = &lines->modules.at[module];
	int r = m->looked_for ? 0 : open_debug(s, query, module, &m->info);
	m->looked_for = true;
	*out = m->info;
	return r;
}

/* Texts of sections stay where they are, so their places tell them apart. NULL: no memory. */
static const char *readable(struct source_lines *lines, struct tally_symbolizer *s,
			    const char *name)
{
	uint32_t *index = map64_at(&lines->name_at, (uintptr_t)name);

	if (!index || !vec_reserve(&lines->names, 1))
		return NULL;
	if (!*index) {
		const char *text = symbolizer_readable(s, name, false);
		if (!text)
			return NULL;
		lines->names.at[lines->names.count++] = text;
		*index = (uint32_t)lines->names.count;
	}
	return lines->names.at[*index - 1];
}

static int add_source(struct source_lines *lines, struct tally_symbolizer *s,
		      const struct debug_place *place)
{
	struct tally_source *source = vec_push(&lines->sources);

	if (!source)
		return -ENOMEM;
	*source = (struct tally_source){
		.function = place->function,
		.file = place->file,
		.line = place->line,
		.column = place->column,
		.inlined = place->inlined,
	};
	if (!place->is_linkage)
		return 0;
	source->function = readable(lines, s, place->function);
	return source->function ? 0 : -ENOMEM;
}

/* Of code that no file has. */
static int add_made(struct source_lines *lines, struct tally_symbolizer *s,
		    const struct tally_symbolizer_query *query, struct tally_symbolized *out)
{
	struct tally_source *source = vec_push(&lines->sources);
	const char *file;
	uint32_t line;

	if (!source)
		return -ENOMEM;
	*source = (struct tally_source){ .function = out->frame.function };
	out->source_count = 1;
	bool user = out->frame.mode == TALLY_MODE_USER;
	int r = user ? symbolizer_made_line(s, query, &file, &line) : 0;
	if (r > 0) {
		source->file = file;
		source->line = line;
	}
	return r < 0 ? r : 0;
}

/* Appends the sources of one address; out->source_count tells how many. */
static int find_sources(struct source_lines *lines, struct tally_symbolizer *s,
			const struct tally_symbolizer_query *query, struct tally_symbolized *out)
{
	const struct tally_frame *frame = &out->frame;
	struct debug_info *debug = NULL;
	size_t first = lines->sources.count;
	if (frame->function && frame->function_id & BY_NAME)
		return add_made(lines, s, query, out);
	int r = find_debug(lines, s, query, frame->module_id, &debug);

	lines->places.list.count = 0;
	/* Symbol tables know how a function is called; DWARF may know but part of its name. */
	lines->places.without_outermost = frame->function != NULL;
	lines->places.no_function = !frame->function &&
				    s->modules.at[frame->module_id]->file.has_locals;
	if (r == 0 && debug)
		r = debug_info_find(debug, frame->module_address, &lines->places);
	if (r == 0 && !lines->places.list.count && !vec_push(&lines->places.list))
		r = -ENOMEM;
	for (size_t i = 0; r == 0 && i < lines->places.list.count; i++)
		r = add_source(lines, s, &lines->places.list.at[i]);
	if (r < 0)
		return r;
	out->source_count = (uint32_t)(lines->sources.count - first);
	if (frame->function)
		lines->sources.at[lines->sources.count - 1].function = frame->function;
	return 0;
}

static int name_address(struct source_lines *lines, struct tally_symbolizer *s,
			const struct tally_symbolizer_query *query, struct tally_symbolized *out)
{
	*out = (struct tally_symbolized){ 0 };
	int r = tally_symbolizer_find(s, query->pid, query->time, query->address, query->mode,
				      &out->frame);
	if (r < 0)
		return r;
	const struct module *m = s->modules.at[out->frame.module_id];
	out->build_id_len = m->build_id.len;
	out->build_id = m->build_id.len ? m->build_id.bytes : NULL;
	return find_sources(lines, s, query, out);
}

static int by_address(const void *a, const void *b)
{
	const struct numbered *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

/* What lies side by side in the program does so in tables too, and is warm in the caches then. */
static bool put_in_order(struct source_lines *lines, const struct tally_symbolizer_query *queries,
			 size_t count)
{
	lines->order.count = 0;
	if (!vec_reserve(&lines->order, count))
		return false;
	for (size_t i = 0; i < count; i++)
		lines->order.at[i] = (struct numbered){ queries[i].address, i };
	lines->order.count = count;
	if (count > 1)
		qsort(lines->order.at, count, sizeof(*lines->order.at), by_address);
	return true;
}

int tally_symbolizer_lines(struct tally_symbolizer *s, const struct tally_symbolizer_query *queries,
			   size_t count, struct tally_symbolized *out)
{
	struct source_lines *lines = s->lines;
	size_t at = 0;

	if (!lines)
		lines = s->lines = calloc(1, sizeof(*lines));
	if (!lines || !put_in_order(lines, queries, count))
		return -ENOMEM;
	lines->sources.count = 0;
	vec_each (&lines->order, o) {
		int r = name_address(lines, s, &queries[o->query], &out[o->query]);
		if (r < 0)
			return r;
	}
	/* Now that they do not move any more. */
	vec_each (&lines->order, o) {
		out[o->query].sources = lines->sources.at + at;
		at += out[o->query].source_count;
	}
	return 0;
}
