/* SPDX-License-Identifier: MIT */
/* Code that processes make at run time, for the symbolizer: functions, and lines where jitdumps tell. */
#include <errno.h>

#include "image/symbolizer-inside.h"

#define CODE_NOT_TOLD "code made at run time of which its program tells no name"

int symbolizer_name_made(struct tally_symbolizer *s, int32_t pid, int32_t owner, uint64_t time,
			 struct module *m, struct tally_frame *out)
{
	struct jit_place place;
	int r = jit_find(&s->jit, pid, owner, time, out->address, &place);

	s->fleeting = true;
	if (r <= 0) {
		if (r == 0 && place.source && module_not_a_file(m->path))
			module_without_file(m, CODE_NOT_TOLD);
		return r;
	}
	uint32_t index = symbolizer_module_by_name(s, place.source->path, "");
	if (!index)
		return -ENOMEM;
	struct module *made = s->modules.at[index - 1];
	made->function_count = (uint32_t)place.source->file.codes.count;
	made->build_id = builds_get(&s->builds, place.source->path, pid);
	symbolizer_fill(s, out, index);
	out->module_address = out->address;
	return symbolizer_name_function(s, jit_file_text(&place.source->file, place.code->name),
					place.code->start, out);
}

int symbolizer_made_line(struct tally_symbolizer *s, const struct tally_symbolizer_query *query,
			 const char **file, uint32_t *line)
{
	int64_t mapping = maps_locate(s->maps, query->pid, query->time, query->address);
	struct jit_place place;

	if (mapping <= 0)
		return (int)mapping;
	int r = jit_find(&s->jit, query->pid, maps_owner(s->maps, (uint32_t)mapping), query->time,
			 query->address, &place);
	if (r <= 0)
		return r;
	const struct jit_file *f = &place.source->file;
	const struct jit_line *found = jit_file_line(f, place.code,
						     query->address - place.code->start);
	if (!found)
		return 0;
	/* Its own texts move when more is told. */
	*file = texts_intern(&s->texts, jit_file_text(f, found->file));
	*line = found->line;
	return *file ? 1 : -ENOMEM;
}
