/* SPDX-License-Identifier: MIT */
/* Lines of the source: of which instructions are, what stands there, and what stands around them. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/proc.h"
#include "base/sys.h"
#include "profile/annotate.h"

#define MAX_SOURCE ((int64_t)64 << 20)
#define CONTEXT    1 /* lines around those that have code */
#define GAP        8 /* so many lines without code between others are shown too */

/* ---- texts ---- */

static int split_lines(struct source_file *file, size_t size)
{
	char *at = file->text, *end = file->text + size;

	while (at < end) {
		char *newline = memchr(at, '\n', (size_t)(end - at));
		const char **line = vec_push(&file->lines);
		if (!line)
			return -ENOMEM;
		*line = at;
		newline = newline ? newline : end;
		*newline = '\0';
		if (newline > at && newline[-1] == '\r')
			newline[-1] = '\0';
		at = newline + 1;
	}
	return 0;
}

/* 1 when it was read, 0 when it is no such file. -ENOMEM. */
static int read_text(struct source_file *file, const char *path, int64_t mtime)
{
	struct stat st;
	int fd = sys()->open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	int r = 0;

	if (fd < 0)
		return 0;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= MAX_SOURCE) {
		file->text = malloc((size_t)st.st_size + 1);
		ssize_t n = file->text ? sys()->pread(fd, file->text, (size_t)st.st_size, 0) : 0;
		file->is_newer = st.st_mtime > mtime;
		r = !file->text ? -ENOMEM : n < 0 ? 0 : split_lines(file, (size_t)n);
		r = r < 0 ? r : 1;
	}
	sys()->close(fd);
	return r;
}

/*
 * Below `folder`, by the whole path and then by less and less of its beginning: a tree of the source
 * seldom lies where it was compiled.
 */
static int find_below(struct source_file *file, const char *folder, int64_t mtime)
{
	char path[PATH_MAX];
	int r = 0;

	for (const char *rest = file->path; rest && r == 0;) {
		int n = snprintf(path, sizeof(path), "%s/%s", folder, rest);
		if (n > 0 && (size_t)n < sizeof(path))
			r = read_text(file, path, mtime);
		rest = strchr(rest + 1, '/');
		rest = rest ? rest + 1 : NULL;
	}
	return r;
}

static int find_text(struct source_file *file, const char *folder, int64_t mtime)
{
	int r = folder ? find_below(file, folder, mtime) : 0;

	/* A relative path is relative to a folder of the compiler's that nobody knows here. */
	if (r == 0 && file->path[0] == '/')
		r = read_text(file, file->path, mtime);
	return r < 0 ? r : 0;
}

void annotate_files_done(struct tally_annotation *a)
{
	vec_each (&a->files, file) {
		free(file->text);
		vec_done(&file->lines);
	}
	vec_done(&a->files);
}

/* ---- lines ---- */

static int compare_lines(const void *left, const void *right)
{
	const struct tally_annotation_line *a = left, *b = right;

	if (a->file != b->file)
		return (uintptr_t)a->file < (uintptr_t)b->file ? -1 : 1;
	return a->line < b->line ? -1 : a->line > b->line;
}

/* The lines of which instructions are, by file and number. */
static int collect(const struct tally_annotation *a, struct tally_annotation_line **out,
		   size_t *count)
{
	struct tally_annotation_line *lines = calloc(a->instructions.count + 1, sizeof(*lines));
	size_t n = 0, kept = 0;

	if (!lines)
		return -ENOMEM;
	for (size_t i = 0; i < a->instructions.count; i++) {
		const struct tally_annotation_instruction *insn = &a->instructions.at[i];
		if (insn->file)
			lines[n++] = (struct tally_annotation_line){
				.file = insn->file,
				.line = insn->line,
				.samples = insn->samples,
				.weight = insn->weight,
				.has_code = 1,
			};
	}
	qsort(lines, n, sizeof(*lines), compare_lines);
	for (size_t i = 0; i < n; i++) {
		if (kept && compare_lines(&lines[kept - 1], &lines[i]) == 0) {
			lines[kept - 1].samples += lines[i].samples;
			lines[kept - 1].weight += lines[i].weight;
		} else {
			lines[kept++] = lines[i];
		}
	}
	*out = lines;
	*count = kept;
	return 0;
}

static int compare_files(const void *left, const void *right)
{
	const struct source_file *a = left, *b = right;

	if (a->is_own != b->is_own)
		return a->is_own ? -1 : 1;
	if (a->weight != b->weight)
		return a->weight > b->weight ? -1 : 1;
	return strcmp(a->path, b->path);
}

static int list_files(struct tally_annotation *a, const char *own_file,
		      const struct tally_annotation_line *lines, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!i || lines[i].file != lines[i - 1].file) {
			struct source_file *file = vec_push(&a->files);
			if (!file)
				return -ENOMEM;
			file->path = lines[i].file;
			file->is_own = own_file == file->path;
		}
		a->files.at[a->files.count - 1].weight += lines[i].weight;
	}
	if (a->files.count)
		qsort(a->files.at, a->files.count, sizeof(*a->files.at), compare_files);
	return 0;
}

static int add_line(struct tally_annotation *a, const struct source_file *file,
		    struct tally_annotation_line line)
{
	struct tally_annotation_line *added = vec_push(&a->lines);

	if (!added)
		return -ENOMEM;
	line.file = file->path;
	if (line.line && line.line <= file->lines.count)
		line.text = file->lines.at[line.line - 1];
	*added = line;
	return 0;
}

/* Lines without code, from..to inclusive, as far as the file has them. */
static int add_plain(struct tally_annotation *a, const struct source_file *file, uint64_t from,
		     uint64_t to)
{
	int r = 0;

	for (uint64_t i = from; i <= to && i <= file->lines.count && r == 0; i++)
		r = add_line(a, file, (struct tally_annotation_line){ .line = (uint32_t)i });
	return r;
}

/* `lines` are those of the file that have code. */
static int add_file(struct tally_annotation *a, const struct source_file *file,
		    const struct tally_annotation_line *lines, size_t count)
{
	uint64_t done = 0; /* the last line with code that is there */
	int r = 0;

	for (size_t i = 0; i < count && r == 0; i++) {
		uint64_t line = lines[i].line, from = line > CONTEXT ? line - CONTEXT : 1;
		if (i && line - done > GAP) {
			r = add_plain(a, file, done + 1, done + CONTEXT);
			done += CONTEXT;
		} else if (i) {
			from = done + 1;
		}
		if (r == 0)
			r = add_plain(a, file, from > done ? from : done + 1, line - 1);
		if (r == 0)
			r = add_line(a, file, lines[i]);
		done = line;
	}
	return r < 0 ? r : add_plain(a, file, done + 1, done + CONTEXT);
}

static int note_files(struct tally_annotation *a)
{
	const struct source_file *first_missing = NULL, *first_newer = NULL;

	vec_each (&a->files, file) {
		if (!file->text && file->weight && !first_missing)
			first_missing = file;
		if (file->is_newer && !first_newer)
			first_newer = file;
	}
	int r = 0;
	if (first_missing)
		r = annotate_note(a, "%s is not here: --source-dir names a folder with the source",
				  first_missing->path);
	if (r == 0 && first_newer)
		r = annotate_note(a, "%s is newer than the program: its lines may have moved",
				  first_newer->path);
	return r;
}

int annotate_lines(struct tally_annotation *a, const char *own_file, const char *source,
		   int64_t mtime)
{
	struct tally_annotation_line *lines;
	size_t count;
	int r = collect(a, &lines, &count);

	if (r < 0)
		return r;
	r = list_files(a, own_file, lines, count);
	for (size_t f = 0; r == 0 && f < a->files.count; f++) {
		struct source_file *file = &a->files.at[f];
		size_t first = 0, end;
		r = find_text(file, source, mtime);
		while (lines[first].file != file->path)
			first++;
		for (end = first; end < count && lines[end].file == file->path;)
			end++;
		if (r == 0)
			r = add_file(a, file, lines + first, end - first);
	}
	free(lines);
	return r < 0 ? r : note_files(a);
}
