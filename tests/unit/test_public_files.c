/* SPDX-License-Identifier: MIT */
/*
 * The reader over perf.data files of other projects. They are not part of this tree: the folder
 * perfdata in $TALLY_SHARED has them, with an INDEX.tsv that says, by other programs' reckoning,
 * what is in each. Columns: 0 file, 4 format, 5 machine and byte order, 6 version of perf, 7
 * kernel, 8 attr size, 11 records by type ("MMAP:58 FORK:564"), 14 what makes it hard.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <tally/features.h>
#include <tally/file_record.h>
#include <tally/reader.h>

#include "tap.h"

enum {
	FILE_NAME,
	FORMAT = 4,
	MACHINE,
	PERF,
	KERNEL,
	ATTR_SIZE,
	RECORDS = 11,
	HARD = 14,
	COLUMNS
};
enum {
	TYPES = 128
};

/* Splits a line at its tabs; columns that are missing are empty. */
static void split(char *line, char **columns)
{
	line[strcspn(line, "\n")] = '\0';
	for (int i = 0; i < COLUMNS; i++) {
		columns[i] = line;
		line += strcspn(line, "\t");
		if (*line)
			*line++ = '\0';
	}
}

/* perf prints HEADER_ATTR as ATTR. */
static const char *short_name(const char *name)
{
	return strncmp(name, "HEADER_", 7) ? name : name + 7;
}

static uint32_t type_of(const char *name)
{
	for (uint32_t type = 1; type < TYPES; type++) {
		const char *known = tally_record_type_name(type);
		if (known && !strcmp(short_name(known), short_name(name)))
			return type;
	}
	printf("# no record type is called %s\n", name);
	return 0;
}

/* perf's names and numbers, as "MMAP:58 FORK:564". */
static void read_counts(uint64_t *want, char *records)
{
	for (char *word = strtok(records, " "); word; word = strtok(NULL, " ")) {
		char *colon = strchr(word, ':');
		*colon = '\0';
		want[type_of(word)] = strtoull(colon + 1, NULL, 10);
	}
}

static void check_counts(const uint64_t *counts, const uint64_t *want)
{
	for (uint32_t type = 0; type < TYPES; type++)
		if (!check_u64(counts[type], want[type]))
			printf("# ... records of type %u\n", type);
}

/* What the compressed records hold: their slices put together and taken through zstd(1), and the
 * headers in what came out counted by a script. */
static const struct {
	const char *file;
	uint32_t comm, exit, fork, sample, mmap2;
} packed[] = {
	{ "lpd__fibo.compressed2.pipe.data", 22, 17, 19, 547, 814 },
	{ "lpd__sleep.compressed.data", 1, 1, 0, 8, 4 },
	{ "lpd__sleep.compressed.pipe.data", 1, 1, 0, 8, 4 },
	{ "lpd__sleep.compressed2.pipe.data", 1, 1, 0, 7, 4 },
};

static void add_packed(uint64_t *want, const char *file)
{
	for (size_t i = 0; i < sizeof(packed) / sizeof(*packed); i++) {
		if (strcmp(packed[i].file, file) != 0)
			continue;
		want[TALLY_RECORD_COMM] += packed[i].comm;
		want[TALLY_RECORD_EXIT] += packed[i].exit;
		want[TALLY_RECORD_FORK] += packed[i].fork;
		want[TALLY_RECORD_SAMPLE] += packed[i].sample;
		want[TALLY_RECORD_MMAP2] += packed[i].mmap2;
	}
}

static void check_text(const struct tally_reader *r, uint32_t feature, const char *column)
{
	const char *got = tally_reader_text(r, feature);

	if (strcmp(column, "?") != 0)
		check_str(got, column);
}

static void check_description(const struct tally_reader *r, char **columns)
{
	columns[MACHINE][strcspn(columns[MACHINE], " ")] = '\0';
	check_text(r, TALLY_FEATURE_ARCH, columns[MACHINE]);
	check_text(r, TALLY_FEATURE_VERSION, columns[PERF]);
	check_text(r, TALLY_FEATURE_OSRELEASE, columns[KERNEL]);
	check_int(tally_reader_swapped(r), !strncmp(columns[FORMAT], "2ELIFREP", 8));
	for (uint32_t i = 0; i < tally_reader_events(r); i++) {
		check_int(tally_reader_event(r, i)->raw_attr_len, atoi(columns[ATTR_SIZE]));
		check(tally_reader_event(r, i)->name[0]);
	}
}

static void check_end(int ret, const struct tally_error *err, const char *hard)
{
	const char *stop = strstr(hard, "stop at ");
	char offset[64];

	if (strncmp(hard, "CORRUPT", 7) != 0) {
		if (!check_int(ret, 0))
			printf("# %s\n", err->text);
		return;
	}
	check_int(ret, -EBADMSG);
	snprintf(offset, sizeof(offset), "offset %d", stop ? atoi(stop + 8) : -1);
	check_has(err->text, offset);
}

struct pass {
	uint64_t counts[TYPES]; /* of records handed out */
	uint64_t undecoded;
};

static int read_all(struct tally_reader *r, struct pass *pass, struct tally_error *err)
{
	struct tally_reader_record rec;
	struct tally_record decoded;
	struct tally_file_record own;
	int ret;

	*pass = (struct pass){ 0 };
	bool swapped = tally_reader_swapped(r);
	while ((ret = tally_reader_next(r, &rec, err)) > 0) {
		pass->counts[rec.type < TYPES ? rec.type : 0]++;
		pass->undecoded += tally_record_decode(rec.layout, rec.bytes, rec.len, &decoded,
						       sizeof(decoded)) < 0;
		if (rec.type >= TALLY_FILE_HEADER_ATTR)
			pass->undecoded += tally_file_record_decode(rec.bytes, rec.len, swapped,
								    &own, sizeof(own)) < 0;
	}
	return ret;
}

static bool is_packed(uint32_t type)
{
	return type == TALLY_FILE_COMPRESSED || type == TALLY_FILE_COMPRESSED2;
}

/* Whatever they hold: they can be walked to their end. */
static void check_features(const struct tally_reader *r)
{
	struct tally_feature_item item;

	for (uint32_t feature = 0; feature < TALLY_FEATURE_MAX; feature++) {
		struct tally_feature_walk walk = { .feature = feature };
		int ret;
		while ((ret = tally_reader_item(r, &walk, &item)) > 0)
			;
		if (!check(ret == 0 || ret == -EOPNOTSUPP))
			printf("# ... feature %u: %d\n", feature, ret);
	}
}

/* In every way: as it stands, with what is compressed, and that by time. */
static void check_way(const char *path, uint32_t flags, char **columns, const uint64_t *want)
{
	struct tally_reader_opts opts = { .size = sizeof(opts), .flags = flags };
	struct tally_reader *r = NULL;
	struct tally_error err = { 0 };
	struct pass pass;

	if (!check_int(tally_reader_open(&r, path, &opts, &err), 0)) {
		printf("# %s\n", err.text);
		return;
	}
	check_end(read_all(r, &pass, &err), &err, columns[HARD]);
	check_u64(pass.undecoded, 0);
	for (uint32_t type = 1; type < TYPES; type++) {
		check_u64(tally_reader_count(r, type), want[type]);
		if (is_packed(type) && !(flags & TALLY_READER_PACKED))
			pass.counts[type] += want[type];
	}
	check_counts(pass.counts, want);
	check_description(r, columns);
	check_features(r);
	tally_reader_close(r);
}

static void check_file(const char *folder, char **columns)
{
	char path[4096];
	uint64_t want[TYPES] = { 0 };

	snprintf(path, sizeof(path), "%s/%s", folder, columns[FILE_NAME]);
	read_counts(want, columns[RECORDS]);
	check_way(path, TALLY_READER_PACKED, columns, want);
	add_packed(want, columns[FILE_NAME]);
	check_way(path, 0, columns, want);
	check_way(path, TALLY_READER_TIME_ORDER, columns, want);
}

/* Each file is a test by its name. */
static const char *shared_folder;
static char **current;

static void read_current(void)
{
	check_file(shared_folder, current);
}

static void public_files_are_read(void)
{
	tap_skip("TALLY_SHARED names no folder with perfdata/INDEX.tsv");
}

int main(void)
{
	static char folder[2048], index_path[4096], line[65536];
	const char *shared = getenv("TALLY_SHARED");
	char *columns[COLUMNS];

	snprintf(folder, sizeof(folder), "%s/perfdata", shared ? shared : "");
	snprintf(index_path, sizeof(index_path), "%s/INDEX.tsv", folder);
	FILE *f = shared ? fopen(index_path, "r") : NULL;
	if (!f) {
		tap_run(public_files_are_read);
		return tap_end();
	}
	shared_folder = folder;
	current = columns;
	for (bool first = true; fgets(line, sizeof(line), f); first = false) {
		split(line, columns);
		if (!first)
			tap_run_(columns[FILE_NAME], read_current);
	}
	fclose(f);
	return tap_end();
}
