/* SPDX-License-Identifier: MIT */
/*
 * bench-symbols FILE: CPU time for reading the symbols of an ELF file, for naming addresses that
 * were not asked for before, and for asking again. One line: "load_ms first_ns again_ns functions".
 */
#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tally/profiling.h>

#define PID       1
#define START     0x7f0000000000
#define ADDRESSES 20000 /* more than any cache of answers holds */
#define HOT       1000
#define ROUNDS    1000

static double cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int find(struct tally_symbolizer *s, uint64_t address)
{
	struct tally_frame frame;

	return tally_symbolizer_find(s, PID, 0, address, TALLY_MODE_USER, &frame);
}

/* Maps what a loader maps to be executed. Returns where it ends, 0: nothing. */
static uint64_t map_code(struct tally_maps *maps, const char *path)
{
	FILE *file = fopen(path, "r");
	uint64_t end = 0;
	Elf64_Ehdr head;
	Elf64_Phdr segment;

	if (!file || fread(&head, sizeof(head), 1, file) != 1 ||
	    memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64)
		return 0;
	for (int i = 0; i < head.e_phnum; i++) {
		if (fseek(file, (long)(head.e_phoff + i * sizeof(segment)), SEEK_SET) != 0 ||
		    fread(&segment, sizeof(segment), 1, file) != 1)
			break;
		if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_X))
			continue;
		uint64_t start = START + (segment.p_vaddr & ~(uint64_t)0xfff);
		end = START + segment.p_vaddr + segment.p_filesz;
		struct tally_mapping map = {
			.start = start,
			.end = end,
			.pgoff = segment.p_offset & ~(uint64_t)0xfff,
			.path = path,
		};
		if (tally_maps_add(maps, PID, 0, &map) < 0)
			return 0;
	}
	fclose(file);
	return end;
}

/* Places in the file that have a function, pseudo-random but the same in each run. */
static size_t choose(struct tally_symbolizer *s, uint64_t *addresses, uint64_t size)
{
	uint64_t seed = 1;
	size_t count = 0;

	for (int tries = 0; tries < 100 * ADDRESSES && count < ADDRESSES; tries++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		uint64_t address = START + (seed >> 16) % size;
		if (find(s, address) == 1)
			addresses[count++] = address;
	}
	return count;
}

static double time_each(struct tally_symbolizer *s, const uint64_t *addresses, size_t count,
			int rounds)
{
	double start = cpu_ns();

	for (int i = 0; i < rounds; i++)
		for (size_t k = 0; k < count; k++)
			find(s, addresses[k]);
	return (cpu_ns() - start) / ((double)count * rounds);
}

static int run(struct tally_maps *maps, const char *path)
{
	static uint64_t addresses[ADDRESSES];
	struct tally_symbolizer *s;
	struct tally_module_info info;
	struct tally_error err;

	uint64_t end = map_code(maps, path);
	if (!end || tally_symbolizer_new(&s, maps, NULL, &err) < 0) {
		fprintf(stderr, "%s: no code\n", path);
		return 1;
	}
	double start = cpu_ns();
	find(s, end - 1);
	double load = cpu_ns() - start;
	size_t count = choose(s, addresses, end - START);
	if (!count || tally_symbolizer_module(s, 0, &info) < 0) {
		fprintf(stderr, "%s: no functions\n", path);
		tally_symbolizer_free(s);
		return 1;
	}
	/* All names are made by now: what is left is the search. */
	double first = time_each(s, addresses, count, 3);
	double again = time_each(s, addresses, count < HOT ? count : HOT, ROUNDS);
	printf("%.3f %.1f %.1f %" PRIu32 "\n", load / 1e6, first, again, info.symbols);
	tally_symbolizer_free(s);
	return 0;
}

int main(int argc, char **argv)
{
	struct tally_maps *maps;

	if (argc != 2 || tally_maps_new(&maps) < 0) {
		fprintf(stderr, "usage: bench-symbols FILE\n");
		return 2;
	}
	int status = run(maps, argv[1]);
	tally_maps_free(maps);
	return status;
}
