/* SPDX-License-Identifier: MIT */
/* tally flame: a recording, or a command right away, as a flame graph or folded stacks. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "args.h"
#include "command.h"
#include "output.h"
#include "profiles.h"
#include "term.h"

#define DEFAULT_PICTURE "flame.svg"
#define MAX_WIDTH       100000 /* pixels; browsers draw no more */

struct options {
	struct filters filters;
	const char *output, *title, *subtitle, *freq;
	uint64_t width;
	bool folded, samples;
};

static int draw(const struct loaded *l, const struct options *o, FILE *to, struct tally_error *err)
{
	struct tally_flame_opts flame = {
		.size = sizeof(flame),
		.title = o->title,
		.subtitle = o->subtitle,
		.width = (uint32_t)o->width,
	};

	if (o->folded)
		return tally_report_folded(l->profile, &o->filters.query, to, err);
	return tally_report_flame(l->profile, &o->filters.query, &flame, to, err);
}

/* One line: what was drawn, and how far it can be believed. */
static void say_result(const struct loaded *l, const char *path)
{
	const struct tally_load_health *h = &l->health;

	fprintf(stderr, "tally flame: %" PRIu64 " samples", h->samples);
	if (strcmp(path, "-"))
		fprintf(stderr, " in %s", path);
	if (h->lost)
		fprintf(stderr, ", %" PRIu64 " lost", h->lost);
	if (h->broken_chains)
		fprintf(stderr, ", %.1f %% of the user stacks broken",
			100.0 * (double)h->broken_chains / (double)h->with_chain);
	if (h->cut_chains)
		fprintf(stderr, ", %.1f %% cut",
			100.0 * (double)h->cut_chains / (double)h->with_chain);
	if (h->unknown_frames)
		fprintf(stderr, ", %.1f %% of the frames without a symbol",
			100.0 * (double)h->unknown_frames / (double)h->frames);
	if (!h->with_chain && h->samples)
		fputs("; there are no call chains: 'tally record -g' records them", stderr);
	fputc('\n', stderr);
}

/* Into memory first: then an error of the profile leaves nothing behind, not on standard output
 * either, and one of the file is known by its number. */
static int write_drawing(const struct loaded *l, const struct options *o, struct output *output)
{
	struct tally_error err = { 0 };
	char *text = NULL;
	size_t len = 0;
	FILE *drawing = open_memstream(&text, &len);
	int r = drawing ? draw(l, o, drawing, &err) : -ENOMEM;
	int status = EXIT_DONE;

	if (drawing && fclose(drawing) != 0 && r == 0)
		r = -ENOMEM;
	if (r < 0) {
		complain("flame", "%s", err.text[0] ? err.text : "no memory");
		status = r == -EINVAL || r == -ENOENT ? EXIT_USAGE : EXIT_FAILED;
		output_close(output, false, "flame");
	} else if (!output_write(output, text, len, "flame") ||
		   !output_close(output, true, "flame")) {
		status = EXIT_FAILED;
	}
	free(text);
	return status;
}

/* Closes the output. */
static int draw_file(struct options *o, struct output *output)
{
	const char *path = output->path;
	struct loaded loaded;
	int status = profiles_load(&loaded, &o->filters, "flame");

	if (status == EXIT_DONE)
		status = write_drawing(&loaded, o, output);
	else
		output_close(output, false, "flame");
	if (status == EXIT_DONE)
		say_result(&loaded, path);
	if (status == EXIT_DONE && loaded.failed)
		status = EXIT_FAILED;
	profiles_free(&loaded);
	return status;
}

/* A command line of our own making: copies, since options may be moved about in it. */
struct words {
	char **at;
	int count, room;
};

static bool add_word(struct words *w, const char *text)
{
	if (w->count + 1 >= w->room) {
		int room = w->room ? w->room * 2 : 16;
		char **grown = realloc(w->at, (size_t)room * sizeof(*grown));
		if (!grown)
			return false;
		w->at = grown;
		w->room = room;
	}
	w->at[w->count] = strdup(text);
	w->at[w->count + 1] = NULL;
	return w->at[w->count++] != NULL;
}

static bool add_words(struct words *w, const char *const *list)
{
	while (*list)
		if (!add_word(w, *list++))
			return false;
	return true;
}

static bool add_option(struct words *w, const char *option, const char *value)
{
	return !value || (add_word(w, option) && add_word(w, value));
}

/* `tally record -g` on the command, as if it had been typed. */
static int record(const struct options *o, const char *path, char **argv)
{
	const char *const first[] = { "record", "-q", "-g", "-o", path, NULL };
	struct words w = { 0 };
	bool whole = add_words(&w, first) && add_option(&w, "-e", o->filters.query.event) &&
		     add_option(&w, "-F", o->freq) && add_word(&w, "--");
	int status = EXIT_FAILED;

	for (; whole && *argv; argv++)
		whole = add_word(&w, *argv);
	if (whole)
		status = cmd_record.run(w.count, w.at);
	else
		complain("flame", "no memory");
	for (int i = 0; i < w.count; i++)
		free(w.at[i]);
	free(w.at);
	return status;
}

/* Records into `folder` and draws it; the output is closed. */
static int record_and_draw(struct options *o, struct output *output, const char *folder,
			   char **argv)
{
	char *path;

	if (asprintf(&path, "%s/perf.data", folder) < 0) {
		complain("flame", "no memory");
		output_close(output, false, "flame");
		return EXIT_FAILED;
	}
	int status = record(o, path, argv);
	if (access(path, R_OK) == 0) {
		o->filters.input = path;
		/* What was asked for by name may have been granted under another. */
		o->filters.query.event = NULL;
		int drawn = draw_file(o, output);
		status = drawn == EXIT_DONE ? status : drawn;
		unlink(path);
	} else {
		output_close(output, false, "flame");
	}
	free(path);
	return status;
}

/* The command's status is passed on when it was recorded and drawn. */
static int draw_command(struct options *o, struct output *output, char **argv)
{
	const char *tmp = getenv("TMPDIR");
	char *folder;
	int status = EXIT_FAILED;

	if (asprintf(&folder, "%s/tally-XXXXXX", tmp && *tmp ? tmp : "/tmp") < 0)
		folder = NULL;
	if (folder && mkdtemp(folder)) {
		status = record_and_draw(o, output, folder, argv);
		rmdir(folder);
	} else {
		complain("flame", "cannot make a folder '%s': %s", folder ? folder : "",
			 strerror(errno));
		hint("TMPDIR names another place for it");
		output_close(output, false, "flame");
	}
	free(folder);
	return status;
}

static bool check_options(const struct options *o, bool has_command)
{
	if (o->width > MAX_WIDTH) {
		complain("flame", "--width: %" PRIu64 " is too big: it may be %d at most", o->width,
			 MAX_WIDTH);
		return false;
	}
	if (has_command && o->filters.input) {
		complain("flame", "-i and a command exclude each other");
		return false;
	}
	if (!has_command && o->freq) {
		complain("flame", "-F is for a command to record, and there is none");
		hint("'tally flame -F %s -- CMD' records one", o->freq);
		return false;
	}
	return true;
}

/* Before anything is recorded: what was measured must not be lost for want of a place. */
static int open_and_draw(struct options *o, char **argv)
{
	const char *path = o->output ? o->output : o->folded ? "-" : DEFAULT_PICTURE;
	struct output output;

	if (!output_open(&output, path, "flame"))
		return EXIT_FAILED;
	return *argv ? draw_command(o, &output, argv) : draw_file(o, &output);
}

static int run(int argc, char **argv)
{
	struct options o = { 0 };
	const struct arg table[] = {
		FILTER_ARGS(&o.filters),
		{ 'o', "output", "FILE",
		  "where to write it, - is standard output (default: flame.svg)", ARG_TEXT,
		  &o.output },
		{ 'e', "event", "EVENT", "which event (default: the first that has samples)",
		  ARG_TEXT, &o.filters.query.event },
		{ 'F', "freq", "N", "with CMD: samples a second", ARG_TEXT, &o.freq },
		{ 0, "samples", NULL, "weigh by number of samples, not by their periods", ARG_FLAG,
		  &o.samples },
		{ 0, "folded", NULL, "folded stacks, a line each, to standard output", ARG_FLAG,
		  &o.folded },
		{ 0, "title", "TEXT", "above the picture", ARG_TEXT, &o.title },
		{ 0, "subtitle", "TEXT", "below the title", ARG_TEXT, &o.subtitle },
		{ 0, "width", "PIXELS", "fixed (default: as wide as the window)", ARG_COUNT,
		  &o.width },
		{ 0 },
	};
	const struct args args = {
		.command = "flame",
		.synopsis = "[OPTIONS] [-- CMD [ARG...]]",
		.description =
			"Draws a recording as a flame graph: one SVG file that needs nothing "
			"but a browser.\nClick to zoom, Ctrl-F to search. With CMD it is "
			"recorded first.",
		.examples = "  tally flame -o xz.svg -- xz -k big.tar\n"
			    "  tally flame -i perf.data --comm python3\n"
			    "  tally flame --folded | flamegraph.pl > other.svg\n",
		.table = table,
	};
	int at = args_parse(&args, argc, argv);

	if (at < 0)
		return args_status(at);
	if (o.samples)
		o.filters.query.flags |= TALLY_QUERY_BY_SAMPLES;
	return check_options(&o, argv[at]) ? open_and_draw(&o, argv + at) : EXIT_USAGE;
}

const struct command cmd_flame = { "flame", "draw a recording, or a command, as a flame graph",
				   run };
