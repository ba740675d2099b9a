/* SPDX-License-Identifier: MIT */
/* The report as perf report --stdio prints it: a sorted table, and below each line its calls. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "profile/graph.h"
#include "profile/lines.h"
#include "profile/names.h"
#include "profile/tree.h"

#define KNOWN_FLAGS                                                                             \
	(TALLY_TEXT_NO_CHILDREN | TALLY_TEXT_NO_GRAPH | TALLY_TEXT_CALLER | TALLY_TEXT_CALLEE | \
	 TALLY_TEXT_COLOR | TALLY_TEXT_SAMPLES | TALLY_TEXT_NO_HEADER)

#define GRAPH_LIMIT   0.5 /* percent, as perf report */
#define RED_PERCENT   5.0 /* shares from which perf report shows colours */
#define GREEN_PERCENT 0.5

struct text {
	struct tally_text_opts opts;
	const struct query *q;
	const struct tree *tree;
	FILE *to;
	bool children;
	size_t widths[QUERY_KEYS];
	const struct line **lines; /* sorted */
	size_t count;
};

static const char *const titles[QUERY_KEYS] = {
	[QUERY_COMM] = "Command", [QUERY_DSO] = "Shared Object", [QUERY_SYMBOL] = "Symbol",
	[QUERY_PID] = "Pid",      [QUERY_TID] = "Tid",           [QUERY_SRCLINE] = "Source:Line",
};

/* perf report's letters. */
static const char mode_letters[] = {
	[TALLY_MODE_UNKNOWN] = '!',      [TALLY_MODE_KERNEL] = 'k',
	[TALLY_MODE_USER] = '.',         [TALLY_MODE_HYPERVISOR] = 'H',
	[TALLY_MODE_GUEST_KERNEL] = 'g', [TALLY_MODE_GUEST_USER] = 'u',
};

static uint64_t line_weight(const struct text *t, const struct line *line)
{
	return t->children ? line->children : line->self;
}

static double percent(const struct text *t, uint64_t weight)
{
	return t->q->total ? 100.0 * (double)weight / (double)t->q->total : 0;
}

/* The line without the folder of its file, as perf report; else what is known of the place. */
static const char *source_text(const struct text *t, int32_t node, char room[TREE_LABEL_ROOM])
{
	uint32_t source = tree_source(t->tree, node);
	const char *text = source ? text_of(t->q->profile, source) : NULL;
	const char *slash = text ? strrchr(text, '/') : NULL;

	return slash ? slash + 1 : text ? text : tree_label(t->tree, node, room);
}

/* A column's text; numbers are written into `room`. */
static const char *column_text(const struct text *t, const struct line *line, enum query_key key,
			       char room[TREE_LABEL_ROOM])
{
	const struct tally_profile *p = t->q->profile;
	const struct tree_head *head = (const struct tree_head *)t->tree->heads.at + line->head;
	const struct function *f = tree_function(t->tree, line->first);

	switch (key) {
	case QUERY_COMM:
		return text_of(p, head->comm);
	case QUERY_DSO:
		return text_of(p, module_at(p, (uint32_t)f->module)->name);
	case QUERY_SYMBOL:
		return tree_label(t->tree, line->first, room);
	case QUERY_SRCLINE:
		return source_text(t, line->first, room);
	default:
		snprintf(room, TREE_LABEL_ROOM, "%d", key == QUERY_PID ? head->pid : head->tid);
		return room;
	}
}

static char mode_letter(uint32_t mode)
{
	return mode < sizeof(mode_letters) ? mode_letters[mode] : '!';
}

static void print_percent(const struct text *t, uint64_t weight)
{
	double share = percent(t, weight);
	const char *color = share >= RED_PERCENT     ? "\033[31m"
			    : share >= GREEN_PERCENT ? "\033[32m"
						     : NULL;

	if (!(t->opts.flags & TALLY_TEXT_COLOR))
		color = NULL;
	fprintf(t->to, "%s%9.2f%%%s", color ? color : "", share, color ? "\033[0m" : "");
}

/* Columns before the sort keys. */
static size_t numbers_width(const struct text *t)
{
	return 10 + (t->children ? 10u : 0u) + (t->opts.flags & TALLY_TEXT_SAMPLES ? 14u : 0u);
}

/* How many characters the last column may have; 0: any. */
static size_t last_limit(const struct text *t)
{
	size_t used = numbers_width(t) + 2;

	if (!t->opts.width)
		return 0;
	for (uint32_t i = 0; i + 1 < t->q->sorts; i++)
		used += t->widths[t->q->sort[i]] + 2;
	if (t->q->sort[t->q->sorts - 1] == QUERY_SYMBOL)
		used += strlen("[.] ");
	return used + 8 < t->opts.width ? t->opts.width - used : 8;
}

static void print_line(const struct text *t, const struct line *line)
{
	if (t->children)
		print_percent(t, line->children);
	print_percent(t, line->self);
	if (t->opts.flags & TALLY_TEXT_SAMPLES)
		fprintf(t->to, "  %12" PRIu64, line->self_samples);
	for (uint32_t i = 0; i < t->q->sorts; i++) {
		enum query_key key = t->q->sort[i];
		bool last = i + 1 == t->q->sorts;
		char room[TREE_LABEL_ROOM];
		const char *text = column_text(t, line, key, room);
		size_t used = name_length(text);

		fputs("  ", t->to);
		if (key == QUERY_SYMBOL) {
			fprintf(t->to, "[%c] ",
				mode_letter(tree_function(t->tree, line->first)->mode));
			used += strlen("[.] ");
		}
		name_text(t->to, text, last ? last_limit(t) : 0);
		if (!last)
			fprintf(t->to, "%*s", (int)(t->widths[key] - used), "");
	}
	putc('\n', t->to);
}

static void measure(struct text *t)
{
	for (uint32_t i = 0; i < t->q->sorts; i++) {
		enum query_key key = t->q->sort[i];
		size_t *width = &t->widths[key], extra = key == QUERY_SYMBOL ? strlen("[.] ") : 0;
		*width = strlen(titles[key]);
		for (size_t k = 0; k < t->count; k++) {
			char room[TREE_LABEL_ROOM];
			size_t n = name_length(column_text(t, t->lines[k], key, room)) + extra;
			if (n > *width)
				*width = n;
		}
	}
}

static void print_rule(FILE *to, size_t width)
{
	while (width--)
		putc('.', to);
}

static void print_header(const struct text *t)
{
	const struct query *q = t->q;
	bool samples = t->opts.flags & TALLY_TEXT_SAMPLES;
	const char *unit = tally_profile_event_unit(q->profile, (uint32_t)q->event);

	fprintf(t->to, "# Samples: %" PRIu64 " of event '", q->samples);
	name_text(t->to, tally_profile_event_name(q->profile, (uint32_t)q->event), 0);
	fputs("'", t->to);
	if (q->kept_samples != q->samples)
		fprintf(t->to, ", %" PRIu64 " of them pass the filters", q->kept_samples);
	if (!q->by_samples)
		fprintf(t->to, "\n# Event count (approx.): %" PRIu64 "%s%s", q->total,
			*unit ? " " : "", unit);
	fprintf(t->to, "\n#\n# %s%s", t->children ? "Children      Self" : "Overhead",
		samples ? "       Samples" : "");
	for (uint32_t i = 0; i < q->sorts; i++)
		fprintf(t->to, "  %-*s", i + 1 < q->sorts ? (int)t->widths[q->sort[i]] : 0,
			titles[q->sort[i]]);
	fprintf(t->to, "\n# ........%s%s", t->children ? "  ........" : "",
		samples ? "  ............" : "");
	for (uint32_t i = 0; i < q->sorts; i++) {
		size_t width = t->widths[q->sort[i]];
		fputs("  ", t->to);
		print_rule(t->to, i + 1 < q->sorts || width < 40 ? width : 40);
	}
	fputs("\n#\n", t->to);
}

struct sorted {
	const struct line *line;
	const struct text *text;
};

static int compare_lines(const void *left, const void *right)
{
	const struct sorted *l = left, *r = right;
	const struct text *t = l->text;
	uint64_t a = line_weight(t, l->line), b = line_weight(t, r->line);

	if (a != b)
		return a > b ? -1 : 1;
	/* Equal weights come from one caller with one callee: the caller first. */
	if (l->line->depth != r->line->depth)
		return l->line->depth < r->line->depth ? -1 : 1;
	for (uint32_t i = 0; i < t->q->sorts; i++) {
		char room[2][TREE_LABEL_ROOM];
		int c = strcmp(column_text(t, l->line, t->q->sort[i], room[0]),
			       column_text(t, r->line, t->q->sort[i], room[1]));
		if (c)
			return c;
	}
	return l->line->cell < r->line->cell ? -1 : l->line->cell > r->line->cell;
}

/* The lines that are shown, in their order. */
static int sort_lines(struct text *t, const struct lines *lines)
{
	size_t count = lines->all.count;
	struct sorted *list = calloc(count + 1, sizeof(*list));

	t->lines = calloc(count + 1, sizeof(*t->lines));
	if (!list || !t->lines) {
		free(list);
		return -ENOMEM;
	}
	for (size_t i = 0; i < count; i++) {
		const struct line *line = (const struct line *)lines->all.at + i;
		uint64_t weight = line_weight(t, line);
		if (weight && percent(t, weight) >= t->q->percent_limit)
			list[t->count++] = (struct sorted){ line, t };
	}
	qsort(list, t->count, sizeof(*list), compare_lines);
	if (t->opts.lines && t->count > t->opts.lines)
		t->count = t->opts.lines;
	for (size_t i = 0; i < t->count; i++)
		t->lines[i] = list[i].line;
	free(list);
	return 0;
}

static int print_lines(struct text *t, const struct lines *lines)
{
	struct graph graph = {
		.q = t->q,
		.tree = t->tree,
		.lines = lines,
		.to = t->to,
		.children = t->children,
		.callee = t->opts.flags & TALLY_TEXT_CALLEE ||
			  (!t->children && !(t->opts.flags & TALLY_TEXT_CALLER)),
		.limit = t->opts.graph_limit,
	};
	int r = graph_open(&graph);

	for (size_t i = 0; i < t->count && r == 0; i++) {
		print_line(t, t->lines[i]);
		if (!(t->opts.flags & TALLY_TEXT_NO_GRAPH))
			r = graph_print(&graph, t->lines[i]);
	}
	graph_done(&graph);
	return r;
}

static int print_report(struct text *t)
{
	struct lines lines;
	int r = lines_build(&lines, t->q, t->tree);

	if (r < 0)
		return r;
	r = sort_lines(t, &lines);
	if (r == 0) {
		measure(t);
		if (!(t->opts.flags & TALLY_TEXT_NO_HEADER))
			print_header(t);
		r = print_lines(t, &lines);
	}
	free(t->lines);
	lines_done(&lines);
	return r;
}

static int read_opts(struct text *t, const struct tally_text_opts *opts, struct tally_error *err)
{
	int r = opts_read(&t->opts, sizeof(t->opts), KNOWN_FLAGS, opts, err);

	if (r < 0)
		return r;
	if ((t->opts.flags & TALLY_TEXT_CALLER) && (t->opts.flags & TALLY_TEXT_CALLEE))
		return error_set(
			err, -EINVAL, TALLY_CAUSE_ARGUMENT,
			"a call graph leads from callers down or from callees up, not both");
	if (t->opts.graph_limit == 0)
		t->opts.graph_limit = GRAPH_LIMIT;
	t->children = !(t->opts.flags & TALLY_TEXT_NO_CHILDREN);
	return 0;
}

int tally_report_text(const struct tally_profile *profile, const struct tally_query_opts *query,
		      const struct tally_text_opts *opts, FILE *to, struct tally_error *err)
{
	struct query q;
	struct tree tree;
	struct text text = { .q = &q, .tree = &tree, .to = to };
	int r = read_opts(&text, opts, err);

	if (r < 0 || (r = query_open(&q, profile, query, err)) < 0)
		return r;
	r = tree_build(&tree, &q, q.sorts_by,
		       q.sorts_by[QUERY_SRCLINE] ? TREE_BY_LINE : TREE_BY_ADDRESS);
	if (r == 0) {
		r = print_report(&text);
		tree_done(&tree);
	}
	query_done(&q);
	return r < 0 ? error_nomem(err, "a report") : output_end(to, "the report", err);
}
