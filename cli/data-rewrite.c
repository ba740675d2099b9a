/* SPDX-License-Identifier: MIT */
/* tally data cut and merge: new recordings of old ones, maybe without names. */
#include <errno.h>
#include <inttypes.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <tally/profiling.h>

#include "args.h"
#include "command.h"
#include "data.h"
#include "output.h"
#include "span.h"
#include "term.h"

#define DEFAULT_FILE "perf.data"

/* Kinds of names, as the list of names calls them, and what stands for one. */
static const struct {
	const char *kind, *made;
} kinds[] = {
	[TALLY_REWRITE_PATH] = { "path", "/file%" PRIu64 },
	[TALLY_REWRITE_COMM] = { "comm", "comm%" PRIu64 },
	[TALLY_REWRITE_CGROUP] = { "cgroup", "/cgroup%" PRIu64 },
	[TALLY_REWRITE_HOST] = { "host", "host%" PRIu64 },
	[TALLY_REWRITE_WORD] = { "word", "word%" PRIu64 },
};

#define KINDS (sizeof(kinds) / sizeof(*kinds))

struct name {
	uint32_t kind;
	char *old, *made;
	struct name *next; /* in the order in which they were met */
};

/* What names were given: equal texts get equal names, also over several runs by a file. */
struct names {
	void *tree;
	struct name *first, **last;
	uint64_t counts[KINDS];
	bool failed;
};

struct options {
	struct tally_rewrite_opts rewrite;
	const char *output, *time, *names;
	uint64_t level;
	bool anonymise;
};

static int compare(const void *left, const void *right)
{
	const struct name *a = left, *b = right;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	return strcmp(a->old, b->old);
}

static void free_name(struct name *name)
{
	free(name->old);
	free(name->made);
	free(name);
}

static const char *add_name(struct names *names, uint32_t kind, const char *old, const char *made)
{
	struct name *name = calloc(1, sizeof(*name));

	if (!name)
		return NULL;
	*name = (struct name){ kind, strdup(old), strdup(made), NULL };
	struct name **node = name->old && name->made ? tsearch(name, &names->tree, compare) : NULL;
	if (!node || *node != name) {
		free_name(name);
		return node ? (*node)->made : NULL;
	}
	if (!names->first)
		names->last = &names->first;
	*names->last = name;
	names->last = &name->next;
	names->counts[kind]++;
	return name->made;
}

/* What names no file of anybody: the kernel, the vdso, memory without a file. */
static bool is_nobodys(uint32_t kind, const char *text)
{
	return !*text || (kind == TALLY_REWRITE_PATH && (text[0] != '/' || text[1] == '/')) ||
	       (kind == TALLY_REWRITE_CGROUP && !strcmp(text, "/"));
}

static const char *give_name(uint32_t kind, const char *text, void *arg)
{
	struct names *names = arg;
	struct name key = { .kind = kind, .old = (char *)(uintptr_t)text };
	char made[40];

	if (kind >= KINDS || is_nobodys(kind, text))
		return NULL;
	struct name **node = tfind(&key, &names->tree, compare);
	if (node)
		return (*node)->made;
	int prefix = (int)strcspn(kinds[kind].made, "%");
	snprintf(made, sizeof(made), "%.*s%" PRIu64, prefix, kinds[kind].made,
		 names->counts[kind] + 1);
	const char *name = add_name(names, kind, text, made);
	names->failed |= !name;
	/* Without memory nothing must remain, either. */
	return name ? name : "?";
}

static void names_done(struct names *names)
{
	for (struct name *name = names->first, *next; name; name = next) {
		next = name->next;
		tdelete(name, &names->tree, compare);
		free_name(name);
	}
}

/* Lines KIND TAB OLD TAB NEW. A file that is not there yet is empty. */
static bool read_names(struct names *names, const char *path, const char *command)
{
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t room = 0;
	bool good = true;

	if (!file) {
		if (errno != ENOENT)
			complain(command, "cannot read '%s': %s", path, strerror(errno));
		return errno == ENOENT;
	}
	while (good && getline(&line, &room, file) > 0) {
		line[strcspn(line, "\n")] = '\0';
		char *old = strchr(line, '\t'), *made = old ? strchr(old + 1, '\t') : NULL;
		uint32_t kind = 0;
		if (old && made) {
			*old = *made = '\0';
			while (kind < KINDS && strcmp(kinds[kind].kind, line) != 0)
				kind++;
		}
		good = old && made && kind < KINDS && add_name(names, kind, old + 1, made + 1);
		if (!good)
			complain(command,
				 "'%s' is no list of names: lines are KIND, OLD and NEW, "
				 "with tabs between",
				 path);
	}
	free(line);
	fclose(file);
	return good;
}

static bool write_names(const struct names *names, const char *path, const char *command)
{
	struct output output;
	bool good = output_open(&output, path, command);

	if (!good)
		return false;
	for (const struct name *n = names->first; n; n = n->next)
		fprintf(output.to, "%s\t%s\t%s\n", kinds[n->kind].kind, n->old, n->made);
	return output_close(&output, true, command);
}

static int rewrite(struct options *o, uint32_t count, char **files, const char *command)
{
	const char *fallback[] = { DEFAULT_FILE };
	struct names names = { 0 };
	struct tally_rewritten result;
	struct tally_error err;
	int status = EXIT_FAILED;

	if (o->anonymise) {
		o->rewrite.flags |= TALLY_REWRITE_BLANK;
		o->rewrite.rename = give_name;
		o->rewrite.arg = &names;
	}
	if (o->anonymise && o->names && !read_names(&names, o->names, command))
		goto out;
	if (tally_rewrite(o->output, count ? count : 1,
			  count ? (const char *const *)files : fallback, &o->rewrite, &result,
			  &err) < 0) {
		complain(command, "%s", err.text);
		status = err.cause == TALLY_CAUSE_SYNTAX ? EXIT_USAGE : EXIT_FAILED;
		goto out;
	}
	if (result.trouble[0])
		complain(command, "%s", result.trouble);
	complain(command, "%" PRIu64 " samples, %" PRIu64 " records in %s, %" PRIu64 " left out",
		 result.samples, result.records, o->output, result.dropped);
	if (names.failed || (o->anonymise && o->names && !write_names(&names, o->names, command)))
		goto out;
	status = EXIT_DONE;
out:
	names_done(&names);
	return status;
}

static bool finish_options(struct options *o, const char *command)
{
	struct span span;

	o->rewrite.size = sizeof(o->rewrite);
	if (!span_read(&span, o->time, command))
		return false;
	o->rewrite.from = span.from;
	o->rewrite.to = span.to;
	if (span.relative)
		o->rewrite.flags |= TALLY_REWRITE_RELATIVE;
	o->rewrite.compress = o->level > UINT32_MAX ? UINT32_MAX : (uint32_t)o->level;
	if (!o->names || o->anonymise)
		return true;
	complain(command, "--names is for --anonymise");
	return false;
}

/* Rows that cut and merge share. */
#define OUTPUT_ARGS(o)                                                                               \
	{ 'o',      "output",    "FILE", "the new recording; '-' is a stream to standard output",    \
	  ARG_TEXT, &(o)->output },                                                                  \
		{ 'z', "compress", "LEVEL", "compress it, 1 (fast) to 22", ARG_COUNT, &(o)->level }, \
		{ 0,        "anonymise",                                                             \
		  NULL,     "other names for paths, threads, cgroups and hosts; no payloads",        \
		  ARG_FLAG, &(o)->anonymise },                                                       \
	{                                                                                            \
		0, "names", "FILE", "keep the list of names there, and go on with it", ARG_TEXT,     \
			&(o)->names                                                                  \
	}

int data_cut(int argc, char **argv)
{
	struct options o = { .output = "cut.data" };
	const struct arg table[] = {
		OUTPUT_ARGS(&o),
		{ 0, "time", "FROM,TO",
		  "only this time, in seconds; +1.5 counts from the first sample", ARG_TEXT,
		  &o.time },
		{ 0, "pid", "PIDS", "only samples of these processes", ARG_TEXT, &o.rewrite.pid },
		{ 0, "tid", "TIDS", "only samples of these threads", ARG_TEXT, &o.rewrite.tid },
		{ 'c', "comm", "NAMES", "only samples of threads of these names", ARG_TEXT,
		  &o.rewrite.comm },
		{ 'C', "cpu", "CPUS", "only samples on these CPUs", ARG_TEXT, &o.rewrite.cpu },
		{ 'e', "event", "NAMES", "only samples of these events", ARG_TEXT,
		  &o.rewrite.event },
		{ 0 },
	};
	const struct args args = {
		.command = "data cut",
		.synopsis = "[OPTIONS] [FILE]",
		.description = "Writes a recording anew, with a part of its samples. Mappings and "
			       "names of all processes\nstay. Without a filter it is a copy, whole "
			       "even where the recording was cut short.",
		.examples = "  tally data cut --time +1,+2 -o second.data\n"
			    "  tally data cut --anonymise --names names.txt -o public.data\n",
		.table = table,
	};
	int at = args_parse_all(&args, argc, argv);

	if (at < 0)
		return args_status(at);
	if (argc - at > 1) {
		complain("data cut", "one file at a time");
		hint("'tally data merge' makes one of several");
		return EXIT_USAGE;
	}
	if (!finish_options(&o, "data cut"))
		return EXIT_USAGE;
	return rewrite(&o, (uint32_t)(argc - at), argv + at, "data cut");
}

int data_merge(int argc, char **argv)
{
	struct options o = { .output = "merged.data" };
	const struct arg table[] = { OUTPUT_ARGS(&o), { 0 } };
	const struct args args = {
		.command = "data merge",
		.synopsis = "[OPTIONS] FILE...",
		.description =
			"Writes several recordings into one. Their events stay apart. Those of "
			"another machine have\n@HOST behind their names, and process numbers "
			"of their own, 4194304 and more.",
		.examples = "  tally data merge -o all.data one.data two.data\n",
		.table = table,
	};
	int at = args_parse_all(&args, argc, argv);

	if (at < 0)
		return args_status(at);
	if (argc - at < 2) {
		complain("data merge", "name two recordings or more");
		return EXIT_USAGE;
	}
	if (!finish_options(&o, "data merge"))
		return EXIT_USAGE;
	return rewrite(&o, (uint32_t)(argc - at), argv + at, "data merge");
}
