/* SPDX-License-Identifier: MIT */
/*
 * Runs a fuzz target over the files of folders, so that its corpus is a test for every compiler. With
 * -Dfuzz=true libFuzzer's own main takes its place. Speaks TAP, a line a file.
 */
#include <dirent.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

#define INPUT_LIMIT (64u << 20)

/* A buffer of just the file's size, so that AddressSanitizer sees a read beyond it. */
static uint8_t *read_file(const char *path, size_t *len)
{
	FILE *f = fopen(path, "rb");
	uint8_t *bytes = NULL;
	long size;

	if (!f)
		return NULL;
	if (fseek(f, 0, SEEK_END) == 0 && (size = ftell(f)) >= 0 && size <= INPUT_LIMIT &&
	    fseek(f, 0, SEEK_SET) == 0 && (bytes = malloc(size ? (size_t)size : 1)))
		*len = fread(bytes, 1, (size_t)size, f);
	fclose(f);
	return bytes;
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* Answers how many files could not be read. */
static int run_folder(const char *folder, int *number)
{
	struct dirent **entries;
	int count = scandir(folder, &entries, is_visible, alphasort), bad = 0;

	if (count <= 0) {
		printf("not ok %d - %s holds no corpus\n", ++*number, folder);
		return 1;
	}
	for (int i = 0; i < count; i++) {
		char path[PATH_MAX];
		size_t len = 0;
		snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
		uint8_t *bytes = read_file(path, &len);
		if (bytes)
			LLVMFuzzerTestOneInput(bytes, len);
		bad += !bytes;
		printf("%sok %d - %s\n", bytes ? "" : "not ", ++*number, entries[i]->d_name);
		free(bytes);
		free(entries[i]);
	}
	free(entries);
	return bad;
}

int main(int argc, char **argv)
{
	int number = 0, bad = 0;

	for (int i = 1; i < argc; i++)
		bad += run_folder(argv[i], &number);
	printf("1..%d\n", number);
	return bad || !number;
}
