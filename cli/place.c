/* SPDX-License-Identifier: MIT */
/* An address of a process that stands still, by /proc/PID/maps and the symbols of what is mapped. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <tally/profiling.h>

#include "place.h"

/* A line of proc_pid_maps(5). */
static void add_line(struct tally_maps *maps, int32_t process, char *line)
{
	struct tally_mapping map = { 0 };
	char perms[5] = "";
	int name = 0;

	line[strcspn(line, "\n")] = 0;
	int fields = sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n",
			    &map.start, &map.end, perms, &map.pgoff, &map.dev_major, &map.dev_minor,
			    &map.inode, &name);
	if (fields < 7 || perms[2] != 'x' || !name || !line[name])
		return;
	map.path = line + name;
	tally_maps_add(maps, process, 0, &map);
}

static void read_maps(struct tally_maps *maps, int32_t process)
{
	char path[64], line[4352];

	snprintf(path, sizeof(path), "/proc/%" PRId32 "/maps", process);
	FILE *file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		add_line(maps, process, line);
	if (file)
		fclose(file);
}

static void name(struct place *out, const struct tally_symbolized *found)
{
	const struct tally_frame *frame = &found->frame;
	const struct tally_source *source = &found->sources[0];

	snprintf(out->module, sizeof(out->module), "%s", frame->module);
	if (frame->function)
		snprintf(out->symbol, sizeof(out->symbol), "%s+0x%" PRIx64, frame->function,
			 frame->offset);
	if (source->file && source->line)
		snprintf(out->line, sizeof(out->line), "%s:%" PRIu32, source->file, source->line);
}

void place_find(struct place *out, int32_t process, uint64_t address)
{
	const struct tally_symbolizer_query query = {
		.pid = process, .mode = TALLY_MODE_USER, .time = UINT64_MAX, .address = address
	};
	struct tally_maps *maps = NULL;
	struct tally_symbolizer *symbolizer = NULL;
	struct tally_symbolized found;

	memset(out, 0, sizeof(*out));
	if (tally_maps_new(&maps) == 0) {
		read_maps(maps, process);
		if (tally_symbolizer_new(&symbolizer, maps, NULL, NULL) == 0 &&
		    tally_symbolizer_lines(symbolizer, &query, 1, &found) == 0)
			name(out, &found);
	}
	tally_symbolizer_free(symbolizer);
	tally_maps_free(maps);
}
