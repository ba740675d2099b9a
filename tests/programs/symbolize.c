// SPDX-License-Identifier: MIT
/*
 * What tally_symbolizer_lines() says of addresses of a file, in its own numbering, as
 * addr2line -a -f -i -C prints it: the address, then two lines a function. Reads hexadecimal numbers
 * from the standard input. With --seconds it prints how long the one call took, and nothing else.
 *
 *	symbolize [--seconds] [--parameters | --mangled] FILE [SYMFS] <addresses
 */
#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tally/profiling.h>
#include <time.h>

#define PAGE 4096

/* Maps the segments of a file to the addresses that they have in it. */
static int add_segments(struct tally_maps *maps, const char *path)
{
	FILE *in = fopen(path, "rb");
	Elf64_Ehdr head;
	Elf64_Phdr segment;

	if (!in || fread(&head, sizeof(head), 1, in) != 1 || head.e_ident[4] != ELFCLASS64)
		return -1;
	for (int i = 0; i < head.e_phnum; i++) {
		fseek(in, (long)(head.e_phoff + i * sizeof(segment)), SEEK_SET);
		if (fread(&segment, sizeof(segment), 1, in) != 1 || segment.p_type != PT_LOAD)
			continue;
		uint64_t slack = segment.p_vaddr % PAGE;
		struct tally_mapping map = {
			.start = segment.p_vaddr - slack,
			.end = segment.p_vaddr + segment.p_memsz,
			.pgoff = segment.p_offset - slack,
			.path = path,
		};
		if (tally_maps_add(maps, 1, 0, &map) < 0)
			return -1;
	}
	return fclose(in);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void print(const struct tally_symbolized *at)
{
	printf("0x%016" PRIx64 "\n", at->frame.address);
	for (uint32_t i = 0; i < at->source_count; i++) {
		const struct tally_source *s = &at->sources[i];
		printf("%s\n%s:%" PRIu32 ":%" PRIu32 "\n", s->function ? s->function : "??",
		       s->file ? s->file : "??", s->line, s->column);
	}
}

int main(int argc, char **argv)
{
	struct tally_symbolizer_opts opts = { .size = sizeof(opts) };
	static struct tally_symbolizer_query queries[100000];
	static struct tally_symbolized out[100000];
	struct tally_symbolizer *symbolizer;
	struct tally_maps *maps;
	bool seconds = false;
	size_t count = 0;

	for (; argc > 1 && argv[1][0] == '-'; argc--, argv++) {
		seconds |= !strcmp(argv[1], "--seconds");
		if (!strcmp(argv[1], "--parameters"))
			opts.flags |= TALLY_SYMBOLIZER_PARAMETERS;
		if (!strcmp(argv[1], "--mangled"))
			opts.flags |= TALLY_SYMBOLIZER_MANGLED;
	}
	if (argc < 2)
		return 2;
	opts.symfs = argc > 2 ? argv[2] : NULL;
	while (count < 100000 && scanf("%" SCNx64, &queries[count].address) == 1) {
		queries[count].pid = 1;
		queries[count++].mode = TALLY_MODE_USER;
	}
	if (tally_maps_new(&maps) < 0 || add_segments(maps, argv[1]) < 0 ||
	    tally_symbolizer_new(&symbolizer, maps, &opts, NULL) < 0)
		return 1;
	double start = now();
	if (tally_symbolizer_lines(symbolizer, queries, count, out) < 0)
		return 1;
	if (seconds)
		printf("%.6f\n", now() - start);
	for (size_t i = 0; i < count && !seconds; i++)
		print(&out[i]);
	tally_symbolizer_free(symbolizer);
	tally_maps_free(maps);
	return 0;
}
