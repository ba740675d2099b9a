/* SPDX-License-Identifier: MIT */
/*
 * A flame graph as one SVG. Frames are placed in percent of the width, so that the picture is right
 * at any; script and style (flame.js, flame.css) stand in it, and without them it still shows all.
 * The markup is what viewers of FlameGraph's files rely on: a group func_g for each frame with
 * title "name (N samples, P%)", rect and text.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "profile/flame.js.h"
#include "profile/names.h"
#include "profile/tree.h"

#define DEFAULT_WIDTH 1200
#define LEAST_WIDTH   480
#define DEFAULT_LEAST 0.1 /* pixels */
#define SIDE          10
#define TOP           90
#define BOTTOM        10
#define ROW           17   /* from a frame to the one above */
#define BOX           16   /* of that the frame */
#define CHAR_WIDTH    7.23 /* of a monospace font of 12 pixels; the script measures it */
#define LABEL_PAD     3
#define BASELINE      12
#define LEGEND        80 /* from one key to the next */

struct flame {
	struct tally_flame_opts opts;
	const struct query *q;
	const struct tree *tree;
	FILE *to;
	uint64_t *start; /* by node: the weight that stands left of it */
	uint32_t width;
	uint32_t deepest; /* among the frames that are shown */
	bool has_inlined;
};

#define MIDDLE 0x808080 /* of a palette */

enum kind {
	KIND_USER,
	KIND_KERNEL,
	KIND_UNNAMED,
	KIND_COMMAND,
	KIND_INLINED,
	KINDS,
};

/* A frame's kind decides its hue, its name the shade. HSL; hue in degrees, the others 0 to 1. */
static const struct palette {
	double hue, hue_span, saturation, saturation_span, light, light_span;
	const char *legend;
} palettes[KINDS] = {
	[KIND_USER] = { 14, 34, 0.80, 0.14, 0.62, 0.07, "program" },
	[KIND_KERNEL] = { 198, 22, 0.48, 0.14, 0.64, 0.08, "kernel" },
	[KIND_UNNAMED] = { 36, 10, 0.10, 0.08, 0.76, 0.07, "no symbol" },
	[KIND_COMMAND] = { 130, 30, 0.26, 0.08, 0.72, 0.06, "command" },
	[KIND_INLINED] = { 168, 16, 0.44, 0.12, 0.66, 0.07, "inlined" },
};

/* FNV-1a: a name keeps its colour over versions of this library. */
static uint32_t name_hash(const char *name)
{
	uint32_t h = 2166136261u;

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 16777619u;
	/* Its low bits are weak for short texts. */
	h ^= h >> 15;
	h *= 0x2c1b3c6du;
	return h ^ h >> 13;
}

/* One channel of HSL to RGB: n is 0 for red, 8 for green, 4 for blue. */
static unsigned channel(double hue, double saturation, double light, int n)
{
	double k = fmod(n + hue / 30, 12), a = saturation * fmin(light, 1 - light);

	return (unsigned)lround(255 * (light - a * fmax(-1, fmin(fmin(k - 3, 9 - k), 1))));
}

/* A hash of 24 bits is a place in the palette. */
static void print_color(FILE *to, enum kind kind, uint32_t hash)
{
	const struct palette *p = &palettes[kind];
	double hue = p->hue + p->hue_span * (hash & 0xff) / 255;
	double saturation = p->saturation + p->saturation_span * (hash >> 8 & 0xff) / 255;
	double light = p->light + p->light_span * (hash >> 16 & 0xff) / 255;

	fprintf(to, "#%02x%02x%02x", channel(hue, saturation, light, 0),
		channel(hue, saturation, light, 8), channel(hue, saturation, light, 4));
}

static enum kind kind_of(const struct flame *f, int32_t node)
{
	const struct tree_node *n = tree_at(f->tree, node);

	if (n->depth < 2)
		return KIND_COMMAND;
	const struct function *function = tree_function(f->tree, node);
	if (function->mode == TALLY_MODE_KERNEL || function->mode == TALLY_MODE_GUEST_KERNEL)
		return KIND_KERNEL;
	if (function->inlined)
		return KIND_INLINED;
	return function->name == NO_NAME ? KIND_UNNAMED : KIND_USER;
}

/* 1234567 as 1,234,567. */
static void print_grouped(FILE *to, uint64_t number)
{
	char digits[24];
	int n = snprintf(digits, sizeof(digits), "%" PRIu64, number);

	for (int i = 0; i < n; i++) {
		if (i && (n - i) % 3 == 0)
			putc(',', to);
		putc(digits[i], to);
	}
}

static double percent(const struct flame *f, uint64_t weight)
{
	return 100.0 * (double)weight / (double)f->q->kept;
}

static double pixels(const struct flame *f, int32_t node)
{
	return percent(f, tree_at(f->tree, node)->total) / 100 * (f->width - 2.0 * SIDE);
}

/* Narrow frames are left out by a share that does not depend on the width. */
static bool is_shown(const struct flame *f, int32_t node)
{
	return percent(f, tree_at(f->tree, node)->total) / 100 * (DEFAULT_WIDTH - 2 * SIDE) >=
	       f->opts.min_width;
}

/* Siblings side by side from where their parent begins. Parents have the lower index. */
static void place(struct flame *f)
{
	for (int32_t i = 0; i < (int32_t)f->tree->nodes.count; i++) {
		const struct tree_node *n = tree_at(f->tree, i);
		uint64_t at = f->start[i];
		f->has_inlined |= kind_of(f, i) == KIND_INLINED;
		if (n->depth > f->deepest && is_shown(f, i))
			f->deepest = n->depth;
		for (int32_t c = n->first; c >= 0; c = tree_at(f->tree, c)->next) {
			f->start[c] = at;
			at += tree_at(f->tree, c)->total;
		}
	}
}

static void print_frame(const struct flame *f, int32_t node)
{
	const struct tally_profile *p = f->q->profile;
	const struct tree_node *n = tree_at(f->tree, node);
	char room_for_label[TREE_LABEL_ROOM];
	const char *label = tree_label(f->tree, node, room_for_label);
	double x = percent(f, f->start[node]),
	       room = (pixels(f, node) - 2 * LABEL_PAD) / CHAR_WIDTH;
	unsigned y = ROW * (f->deepest - n->depth);

	fputs("<g class=\"func_g\"", f->to);
	if (n->depth > 1) {
		const struct function *function = tree_function(f->tree, node);
		fputs(" data-dso=\"", f->to);
		name_xml(f->to, text_of(p, module_at(p, (uint32_t)function->module)->name), 0);
		putc('"', f->to);
	}
	fputs("><title>", f->to);
	name_xml(f->to, label, 0);
	fputs(" (", f->to);
	print_grouped(f->to, n->samples);
	fprintf(f->to,
		" %s, %.2f%%)</title><rect x=\"%.6f%%\" y=\"%u\" width=\"%.6f%%\" height=\"%d\" "
		"rx=\"1.5\" fill=\"",
		n->samples == 1 ? "sample" : "samples", percent(f, n->total), x, y,
		percent(f, n->total), BOX);
	print_color(f->to, kind_of(f, node), name_hash(label));
	fputs("\"/>", f->to);
	if (room >= 3 || room >= (double)name_length(label)) {
		fprintf(f->to, "<text x=\"%.6f%%\" dx=\"%d\" y=\"%u\">", x, LABEL_PAD,
			y + BASELINE);
		name_xml(f->to, label, (size_t)room);
		fputs("</text>", f->to);
	}
	fputs("</g>\n", f->to);
}

static void print_frames(const struct flame *f)
{
	fprintf(f->to, "<svg id=\"frames\" x=\"%d\" y=\"%d\" width=\"%u\" height=\"%u\">\n", SIDE,
		TOP, f->width - 2 * SIDE, ROW * (f->deepest + 1));
	for (int32_t at = TREE_ROOT, next; at >= 0; at = next) {
		bool shown = is_shown(f, at);
		if (shown)
			print_frame(f, at);
		next = tree_next(f->tree, at, !shown);
	}
	fputs("</svg>\n", f->to);
}

static void print_lines(FILE *to, const char *const *lines)
{
	for (; *lines; lines++)
		fputs(*lines, to);
}

/* What the picture is of, when the caller does not say it. */
static void print_subtitle(const struct flame *f)
{
	const struct query *q = f->q;
	uint32_t event = (uint32_t)q->event;

	fputs("<text id=\"subtitle\" x=\"50%\" y=\"46\">", f->to);
	if (f->opts.subtitle) {
		name_xml(f->to, f->opts.subtitle, 0);
	} else {
		print_grouped(f->to, q->kept_samples);
		fprintf(f->to, " %s of ", q->kept_samples == 1 ? "sample" : "samples");
		name_xml(f->to, tally_profile_event_name(q->profile, event), 0);
		const char *unit = tally_profile_event_unit(q->profile, event);
		if (!q->by_samples && unit[0] == 'n' && unit[1] == 's' && !unit[2])
			fprintf(f->to, ", %.3f s", (double)q->kept / 1e9);
	}
	fputs("</text>\n", f->to);
}

static void print_start(const struct flame *f, unsigned height)
{
	fprintf(f->to,
		"<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"no\"?>\n"
		"<svg version=\"1.1\" width=\"%u\" height=\"%u\"%s "
		"xmlns=\"http://www.w3.org/2000/svg\">\n<style>\n",
		f->width, height, f->opts.width ? "" : " data-fluid=\"\"");
	print_lines(f->to, flame_css);
	fputs("</style>\n<script><![CDATA[\n", f->to);
	print_lines(f->to, flame_js);
	fputs("]]></script>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n", f->to);
}

static void print_legend(const struct flame *f)
{
	unsigned x = SIDE;

	for (enum kind kind = 0; kind < KINDS; kind++, x += LEGEND) {
		if (kind == KIND_INLINED && !f->has_inlined)
			continue;
		fprintf(f->to,
			"<rect x=\"%u\" y=\"53\" width=\"10\" height=\"10\" rx=\"2\" fill=\"", x);
		print_color(f->to, kind, MIDDLE);
		fprintf(f->to, "\"/><text class=\"legend\" x=\"%u\" y=\"62\">%s</text>\n", x + 14,
			palettes[kind].legend);
	}
}

/*
 * Behind the frames in the file, so that it covers them when the script lets it follow the view.
 * Buttons appear with the script that serves them.
 */
static void print_head(const struct flame *f)
{
	fprintf(f->to, "<g id=\"head\"><rect width=\"100%%\" height=\"%d\" fill=\"#fff\"/>\n",
		TOP - 2);
	fputs("<text id=\"title\" x=\"50%\" y=\"26\">", f->to);
	name_xml(f->to, f->opts.title ? f->opts.title : "Flame Graph", 0);
	fputs("</text>\n", f->to);
	print_subtitle(f);
	fputs("<text id=\"unzoom\" class=\"button hide\" x=\"10\" y=\"26\">Reset zoom</text>\n"
	      "<text id=\"ignorecase\" class=\"button hide script off\" x=\"100%\" dx=\"-104\" y=\"26\">"
	      "<title>ignore case (Ctrl-I)</title>ic</text>\n"
	      "<text id=\"search\" class=\"button hide script\" x=\"100%\" dx=\"-10\" y=\"26\">"
	      "<title>by regular expression (Ctrl-F)</title>Search</text>\n"
	      "<text id=\"matched\" x=\"100%\" dx=\"-10\" y=\"80\"> </text>\n"
	      "<text id=\"details\" x=\"10\" y=\"80\"> </text>\n",
	      f->to);
	print_legend(f);
	fputs("</g>\n", f->to);
}

static int draw(struct flame *f)
{
	f->start = calloc(f->tree->nodes.count, sizeof(*f->start));
	if (!f->start)
		return -ENOMEM;
	place(f);
	unsigned height = TOP + ROW * (f->deepest + 1) + BOTTOM;
	print_start(f, height);
	print_frames(f);
	print_head(f);
	fputs("</svg>\n", f->to);
	free(f->start);
	return 0;
}

static int read_opts(struct flame *f, const struct tally_flame_opts *opts, struct tally_error *err)
{
	int r = opts_read(&f->opts, sizeof(f->opts), 0, opts, err);

	if (r < 0)
		return r;
	if (f->opts.width && f->opts.width < LEAST_WIDTH)
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
				 "a flame graph %u pixels wide is too narrow: take at least %d",
				 f->opts.width, LEAST_WIDTH);
	f->width = f->opts.width ? f->opts.width : DEFAULT_WIDTH;
	if (f->opts.min_width == 0)
		f->opts.min_width = DEFAULT_LEAST;
	return 0;
}

int tally_report_flame(const struct tally_profile *profile, const struct tally_query_opts *query,
		       const struct tally_flame_opts *opts, FILE *to, struct tally_error *err)
{
	static const bool by_comm[QUERY_KEYS] = { [QUERY_COMM] = true };
	struct query q;
	struct tree tree;
	struct flame flame = { .q = &q, .tree = &tree, .to = to };
	int r = read_opts(&flame, opts, err);

	if (r < 0 || (r = query_open(&q, profile, query, err)) < 0)
		return r;
	r = tree_build(&tree, &q, by_comm, TREE_GATHERED);
	if (r == 0) {
		r = draw(&flame);
		tree_done(&tree);
	}
	query_done(&q);
	return r < 0 ? error_nomem(err, "a flame graph") : output_end(to, "the flame graph", err);
}
