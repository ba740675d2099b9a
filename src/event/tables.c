/* SPDX-License-Identifier: MIT */
/*
 * Which files of a tables folder are this CPU's, and the walk over their rows. Rows that refer to an
 * architecture's standard event (arm64's do) are completed from the files beside mapfile.csv, which
 * are read when the first such row comes.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/proc.h"
#include "base/vec.h"
#include "event/cpu.h"
#include "event/tables-row.h"

#define MAX_FILE  (64u << 20) /* the largest there is has 1.5 MB */
#define MAX_CLIMB 3           /* folders from a model's up to mapfile.csv: arm64/arm/cortex-a76 */

/* The architecture's standard events, sorted by name; their rows point into the texts. */
struct standards {
	bool loaded;
	VEC(struct buf) texts;
	VEC(struct row) rows;
	VEC(const struct row *) sorted;
};

struct walk {
	const char *name; /* NULL: all */
	size_t len;
	enum row_key kind; /* ROW_EVENT_NAME or ROW_METRIC_NAME */
	int (*event)(const struct table_event *event, void *arg);
	int (*metric)(const struct table_metric *metric, void *arg);
	void *arg;
	struct tally_error *err;
	int32_t cpu; /* whose model is meant; negative: the first one online */
	char model[PATH_MAX], arch[PATH_MAX]; /* folders */
	struct standards standards;
	struct buf text; /* of one row */
};

static int fits(char *out, const char *folder, const char *name)
{
	int n = snprintf(out, PATH_MAX, "%s/%s", folder, name);

	return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

static int refuse_file(struct tally_error *err, int code, const char *path)
{
	if (code == -ENOMEM)
		return error_nomem(err, "a table of events");
	if (code == -EFBIG)
		return error_set(err, code, TALLY_CAUSE_LIMIT,
				 "%s has more than %u MiB, which no table of events has", path,
				 MAX_FILE >> 20);
	return error_set(err, code,
			 code == -EACCES   ? TALLY_CAUSE_PERMISSION
			 : code == -ENOENT ? TALLY_CAUSE_NO_FILE
					   : TALLY_CAUSE_IO,
			 "cannot read %s: %s", path, strerror(-code));
}

/* Whether the row of a mapfile has a path that stays below the folder. */
static bool is_below(const char *path)
{
	return path[0] && path[0] != '/' && strncmp(path, "../", 3) != 0 &&
	       strcmp(path, "..") != 0 && !strstr(path, "/..");
}

/* "Family-model,Version,Filename,EventType" in one line, which is cut up. */
static bool row_names_model(char *line, const char *identity, const char **path)
{
	char *fields[3], *at = line;

	if (*line == '#')
		return false;
	for (int i = 0; i < 3; i++) {
		fields[i] = at;
		at += strcspn(at, ",");
		if (!*at && i < 2)
			return false;
		if (*at)
			*at++ = '\0';
	}
	*path = fields[2];
	return cpu_matches(fields[0], identity) && is_below(*path);
}

/* The first row that matches, as perf takes it. */
static int find_model(struct walk *w, struct buf *mapfile, const char *identity)
{
	char *line, *rest = mapfile->at;
	const char *path;

	while ((line = strsep(&rest, "\n"))) {
		line[strcspn(line, "\r")] = '\0';
		if (row_names_model(line, identity, &path))
			return fits(w->model, w->arch, path);
	}
	return -ENOENT;
}

/* The folder has a mapfile.csv: the model's folder is below it. */
static int locate_by_cpu(struct walk *w, struct buf *mapfile, const char *root)
{
	char identity[CPU_IDENTITY_MAX];
	int r = cpu_identity(identity, root, w->cpu);

	if (r < 0)
		return error_set(w->err, r, TALLY_CAUSE_UNSUPPORTED,
				 "this CPU cannot be looked up in %s/mapfile.csv: neither "
				 "/proc/cpuinfo nor sysfs tells what it is; name the folder of its "
				 "model itself",
				 w->arch);
	if (!buf_text(mapfile))
		return error_nomem(w->err, "a table of events");
	r = find_model(w, mapfile, identity);
	if (r < 0)
		return error_set(w->err, r, TALLY_CAUSE_UNSUPPORTED,
				 "%s/mapfile.csv has no row for this CPU, %s; name the folder of a "
				 "model itself if you know one that fits",
				 w->arch, identity);
	return 0;
}

/* Where the architecture's standard events are, seen from a model's folder. */
static int climb(struct walk *w)
{
	char path[PATH_MAX], mapfile[PATH_MAX];

	if (fits(w->arch, w->model, "..") < 0)
		return -ENAMETOOLONG;
	snprintf(path, sizeof(path), "%s", w->arch);
	for (int i = 0; i < MAX_CLIMB; i++) {
		if (fits(mapfile, path, "mapfile.csv") < 0)
			return -ENAMETOOLONG;
		if (access(mapfile, F_OK) == 0) {
			memcpy(w->arch, path, sizeof(path));
			return 0;
		}
		if (strlen(path) + 3 >= sizeof(path))
			return -ENAMETOOLONG;
		strcat(path, "/..");
	}
	return 0;
}

static int locate(struct walk *w, const char *folder, const char *root)
{
	char path[PATH_MAX];
	struct buf mapfile = { 0 };
	int r = fits(path, folder, "mapfile.csv");

	if (r == 0)
		r = proc_read(&mapfile, NULL, path, MAX_FILE);
	if (r == 0) {
		snprintf(w->arch, sizeof(w->arch), "%s", folder);
		r = locate_by_cpu(w, &mapfile, root);
	} else if (r == -ENOENT || r == -ENOTDIR) {
		snprintf(w->model, sizeof(w->model), "%s", folder);
		r = climb(w);
		if (r < 0)
			r = refuse_file(w->err, r, folder);
	} else {
		r = refuse_file(w->err, r, path);
	}
	buf_done(&mapfile);
	return r;
}

static int is_table(const struct dirent *entry)
{
	const char *dot = strrchr(entry->d_name, '.');

	return dot && dot != entry->d_name && !strcmp(dot, ".json");
}

static int refuse_json(const struct walk *w, const struct rows *rows, int code, const char *path)
{
	unsigned line, column;

	json_place(&rows->json, &line, &column);
	return error_set(w->err, code, TALLY_CAUSE_CORRUPT, "%s, line %u, column %u: %s", path,
			 line, column, rows->json.why);
}

/* Calls `fn` with each row of a file, until it answers non-zero. */
static int each_row(struct walk *w, const char *path, const struct buf *text,
		    int (*fn)(struct walk *w, struct row *row, const char *topic),
		    const char *topic)
{
	struct rows rows;
	struct row row;
	int r;

	rows_init(&rows, text->at, text->len);
	while ((r = rows_next(&rows, &row)) > 0) {
		r = fn(w, &row, topic);
		if (r)
			return r;
	}
	return r < 0 ? refuse_json(w, &rows, r, path) : 0;
}

/* A file of a folder is read into `text`; "" where there are no bytes, so that it can be parsed. */
static int read_file(const struct walk *w, const char *path, struct buf *text)
{
	int r = proc_read(text, NULL, path, MAX_FILE);

	if (r == 0 && !buf_text(text))
		r = -ENOMEM;
	return r < 0 ? refuse_file(w->err, r, path) : 0;
}

/* Calls `fn` with the path of each .json file of a folder, by name, until it answers non-zero. */
static int each_file(struct walk *w, const char *folder,
		     int (*fn)(struct walk *w, const char *path, const char *name), bool must_be)
{
	struct dirent **entries;
	char path[PATH_MAX];
	int count = scandir(folder, &entries, is_table, alphasort), r = 0;

	if (count < 0)
		return refuse_file(w->err, -errno, folder);
	for (int i = 0; i < count; i++) {
		if (r == 0 && fits(path, folder, entries[i]->d_name) < 0)
			r = refuse_file(w->err, -ENAMETOOLONG, folder);
		if (r == 0)
			r = fn(w, path, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	if (!count && must_be)
		return error_set(w->err, -ENOENT, TALLY_CAUSE_NO_FILE,
				 "%s holds neither a mapfile.csv nor tables of events (*.json)",
				 folder);
	return r;
}

static int keep_standard(struct walk *w, struct row *row, const char *topic)
{
	struct row *copy;

	if (!row->at[ROW_EVENT_NAME].len && !row->at[ROW_METRIC_NAME].len)
		return 0;
	copy = vec_push(&w->standards.rows);
	if (!copy)
		return error_nomem(w->err, topic);
	*copy = *row;
	return 0;
}

static int load_standards_file(struct walk *w, const char *path, const char *name)
{
	struct buf *text = vec_push(&w->standards.texts);

	if (!text)
		return error_nomem(w->err, path);
	int r = read_file(w, path, text);
	return r < 0 ? r : each_row(w, path, text, keep_standard, name);
}

static const struct json_token *standard_name(const struct row *row)
{
	return &row->at[row->at[ROW_EVENT_NAME].len ? ROW_EVENT_NAME : ROW_METRIC_NAME];
}

static int compare_names(const struct json_token *a, const struct json_token *b)
{
	int r = strncasecmp(a->text, b->text, a->len < b->len ? a->len : b->len);

	return r ? r : (a->len > b->len) - (a->len < b->len);
}

static int compare_standards(const void *a, const void *b)
{
	const struct row *x = *(const struct row *const *)a, *y = *(const struct row *const *)b;

	return compare_names(standard_name(x), standard_name(y));
}

static int compare_wanted(const void *wanted, const void *b)
{
	return compare_names(wanted, standard_name(*(const struct row *const *)b));
}

static int load_standards(struct walk *w)
{
	struct standards *s = &w->standards;

	s->loaded = true;
	int r = each_file(w, w->arch, load_standards_file, false);
	if (r < 0 || !s->rows.count)
		return r;
	vec_each (&s->rows, row) {
		const struct row **slot = vec_push(&s->sorted);
		if (!slot)
			return error_nomem(w->err, "the standard events");
		*slot = row;
	}
	qsort(s->sorted.at, s->sorted.count, sizeof(*s->sorted.at), compare_standards);
	return 0;
}

/* Completes a row that refers to a standard event. 1; 0: there is no such event; -errno. */
static int inherit(struct walk *w, struct row *row)
{
	struct standards *s = &w->standards;

	if (!s->loaded) {
		int r = load_standards(w);
		if (r < 0)
			return r;
	}
	const struct row **found = s->sorted.count ? bsearch(&row->at[ROW_ARCH_STD_EVENT],
							     s->sorted.at, s->sorted.count,
							     sizeof(*s->sorted.at), compare_wanted)
						   : NULL;
	if (found)
		row_inherit(row, *found);
	return found != NULL;
}

static void standards_done(struct standards *s)
{
	vec_each (&s->texts, text)
		buf_done(text);
	vec_done(&s->texts);
	vec_done(&s->rows);
	vec_done(&s->sorted);
}

static bool is_wanted(const struct walk *w, const struct row *row)
{
	const struct json_token *own = &row->at[w->kind];

	if (!w->name)
		return own->len || row->at[ROW_ARCH_STD_EVENT].len;
	return row_is(row, own->len ? w->kind : ROW_ARCH_STD_EVENT, w->name, w->len);
}

static int visit_row(struct walk *w, struct row *row, const char *topic)
{
	struct table_event event;
	struct table_metric metric;
	char why[128] = "";
	int r = 1;

	if (!is_wanted(w, row))
		return 0;
	const struct json_token *standard = &row->at[ROW_ARCH_STD_EVENT];
	if (standard->len)
		r = inherit(w, row);
	if (r < 0)
		return r;
	if (r == 0) {
		snprintf(why, sizeof(why), "no file beside mapfile.csv has the standard event %.*s",
			 (int)(standard->len > 60 ? 60 : standard->len), standard->text);
		if (!row->at[w->kind].len && w->kind == ROW_EVENT_NAME)
			row->at[w->kind] = *standard;
	}
	if (!row->at[w->kind].len)
		return 0;
	if (w->kind == ROW_EVENT_NAME) {
		r = row_event(row, topic, &event, &w->text);
		if (r == 0 && why[0]) {
			event.why = why;
			event.terms = "";
		}
	} else if (!row->at[ROW_METRIC_EXPR].len) {
		return 0;
	} else {
		r = row_metric(row, &metric, &w->text);
	}
	if (r < 0)
		return error_nomem(w->err, "a table of events");
	return w->kind == ROW_EVENT_NAME ? w->event(&event, w->arg) : w->metric(&metric, w->arg);
}

static int visit_file(struct walk *w, const char *path, const char *name)
{
	char topic[NAME_MAX + 1];
	struct buf text = { 0 };
	int r = read_file(w, path, &text);

	snprintf(topic, sizeof(topic), "%.*s", (int)strlen(name) - (int)strlen(".json"), name);
	if (r == 0)
		r = each_row(w, path, &text, visit_row, topic);
	buf_done(&text);
	return r;
}

static int walk(struct walk *w, const struct tally_events_opts *opts)
{
	if (!opts->tables)
		return 0;
	int r = locate(w, opts->tables, opts->root);
	if (r == 0)
		r = each_file(w, w->model, visit_file, true);
	standards_done(&w->standards);
	buf_done(&w->text);
	return r;
}

int tables_each_of(const struct tally_events_opts *opts, int32_t cpu, const char *name, size_t len,
		   int (*fn)(const struct table_event *event, void *arg), void *arg,
		   struct tally_error *err)
{
	struct walk w = { .name = name,
			  .len = len,
			  .kind = ROW_EVENT_NAME,
			  .event = fn,
			  .arg = arg,
			  .err = err,
			  .cpu = cpu };

	return walk(&w, opts);
}

int tables_each(const struct tally_events_opts *opts, const char *name, size_t len,
		int (*fn)(const struct table_event *event, void *arg), void *arg,
		struct tally_error *err)
{
	return tables_each_of(opts, -1, name, len, fn, arg, err);
}

int tables_each_metric(const struct tally_events_opts *opts,
		       int (*fn)(const struct table_metric *metric, void *arg), void *arg,
		       struct tally_error *err)
{
	struct walk w = {
		.kind = ROW_METRIC_NAME, .metric = fn, .arg = arg, .err = err, .cpu = -1
	};

	return walk(&w, opts);
}
