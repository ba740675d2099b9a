/* SPDX-License-Identifier: MIT */
/* A function's lines and instructions as text. */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "profile/annotate.h"
#include "profile/names.h"

#define KNOWN_FLAGS                                                                   \
	(TALLY_ANNOTATION_COLOR | TALLY_ANNOTATION_ALL | TALLY_ANNOTATION_NO_SOURCE | \
	 TALLY_ANNOTATION_NO_INSTRUCTIONS)

#define RED_PERCENT   5.0 /* shares from which perf annotate shows colours */
#define GREEN_PERCENT 0.5

/* So many instructions without samples are left out, but for those next to some that have. */
#define LONG_STRETCH 12
#define STRETCH_EDGE 3
#define FEW_LINES    60 /* up to so many lines are all shown */

#define TAB 8

struct text {
	struct tally_annotation_opts opts;
	const struct tally_annotation *a;
	FILE *to;
};

/* Ten columns, blank for nothing. */
static void put_share(const struct text *t, uint64_t weight)
{
	double share = annotate_share(t->a, weight);
	const char *color = share >= RED_PERCENT     ? "\033[31m"
			    : share >= GREEN_PERCENT ? "\033[32m"
						     : NULL;

	if (!weight) {
		fprintf(t->to, "%10s", "");
		return;
	}
	if (!(t->opts.flags & TALLY_ANNOTATION_COLOR))
		color = NULL;
	fprintf(t->to, "%s%9.2f%%%s", color ? color : "", share, color ? "\033[0m" : "");
}

/* Source as it is, but for tabs, which are expanded, and what terminals must not get. */
static void put_source(const struct text *t, const char *text, size_t used)
{
	size_t column = 0, limit = t->opts.width > used + TAB ? t->opts.width - used : TAB;

	while (*text) {
		const char *start = text;
		int32_t point = utf8_next(&text);
		size_t width = point == '\t' ? TAB - column % TAB : 1;
		if (t->opts.width && column + width > limit)
			return;
		if (point == '\t')
			fprintf(t->to, "%*s", (int)width, "");
		else if (is_harmful(point))
			putc('?', t->to);
		else
			fwrite(start, 1, (size_t)(text - start), t->to);
		column += width;
	}
}

static void put_head(const struct text *t)
{
	const struct tally_annotation *a = t->a;
	double share = a->total ? 100.0 * (double)a->weight / (double)a->total : 0;

	fputs("# Function: ", t->to);
	name_text(t->to, a->function, 0);
	fputs("\n# Module:   ", t->to);
	name_text(t->to, a->path, 0);
	fprintf(t->to, "\n# Samples:  %" PRIu64 " in it, %.2f%% of all ", a->samples, share);
	name_text(t->to, a->event, 0);
	fputs("\n", t->to);
	for (size_t i = 0; i < a->notes.count; i++) {
		fputs("# Note:     ", t->to);
		name_text(t->to, a->notes.at[i], 0);
		putc('\n', t->to);
	}
	fputs("#\n# Percentages are of the function's samples, which fall a little behind what took the "
	      "time, unless the event is precise (:p).\n",
	      t->to);
}

/* ---- lines ---- */

static void put_line(const struct text *t, const struct tally_annotation_line *line)
{
	put_share(t, line->weight);
	fprintf(t->to, " %6" PRIu32 " %c", line->line, line->has_code ? '|' : ':');
	if (line->text && *line->text) {
		putc(' ', t->to);
		put_source(t, line->text, 20);
	}
	putc('\n', t->to);
}

/* Of many lines those without samples are left out, but for those next to some that have. */
static bool is_shown(const struct text *t, size_t at)
{
	const struct tally_annotation *a = t->a;
	const struct tally_annotation_line *line = &a->lines.at[at];
	size_t from = at > STRETCH_EDGE ? at - STRETCH_EDGE : 0;

	if (t->opts.flags & TALLY_ANNOTATION_ALL || a->lines.count <= FEW_LINES)
		return true;
	for (size_t i = from; i <= at + STRETCH_EDGE && i < a->lines.count; i++)
		if (a->lines.at[i].file == line->file && a->lines.at[i].samples)
			return line->text || i == at;
	return false;
}

static void put_lines(const struct text *t)
{
	const struct tally_annotation_line *last = NULL;
	size_t left_out = 0;

	for (size_t i = 0; i < t->a->lines.count; i++) {
		const struct tally_annotation_line *line = &t->a->lines.at[i];
		if (!is_shown(t, i)) {
			left_out++;
			continue;
		}
		if (!last || line->file != last->file) {
			fputs("\n", t->to);
			name_text(t->to, line->file, 0);
			fputs("\n", t->to);
		} else if (line->line != last->line + 1 && line->text) {
			fprintf(t->to, "%10s    ...\n", "");
		}
		put_line(t, line);
		last = line;
	}
	if (left_out)
		fprintf(t->to, "\n%zu lines without samples are left out: --all shows them\n",
			left_out);
}

/* ---- instructions ---- */

static void put_instruction(const struct text *t, const struct tally_annotation_instruction *insn)
{
	put_share(t, insn->weight);
	fprintf(t->to, "  %8" PRIx64, insn->address);
	if (insn->text) {
		fputs("  ", t->to);
		put_source(t, insn->text, 22);
	}
	putc('\n', t->to);
}

/* Where what follows comes from, when that is another line than before. */
static void put_place(const struct text *t, const struct tally_annotation_instruction *insn)
{
	fprintf(t->to, "%12s", "");
	if (insn->function) {
		name_text(t->to, insn->function, 0);
		fputs(" (inlined) ", t->to);
	}
	if (insn->file) {
		name_text(t->to, annotate_base(insn->file), 0);
		fprintf(t->to, ":%" PRIu32 "\n", insn->line);
	} else {
		fputs("of no line\n", t->to);
	}
}

static bool is_same_place(const struct tally_annotation_instruction *a,
			  const struct tally_annotation_instruction *b)
{
	return a->file == b->file && a->line == b->line && a->function == b->function;
}

/* How many instructions from `at` on have no samples. */
static size_t stretch(const struct tally_annotation *a, size_t at)
{
	size_t end = at;

	while (end < a->instructions.count && !a->instructions.at[end].samples)
		end++;
	return end - at;
}

/* How many are left out from `at` on; 0: it is shown. `from`: where the stretch began. */
static size_t left_out(const struct text *t, size_t from, size_t at)
{
	size_t count = t->a->instructions.count, len = stretch(t->a, from);
	size_t first = from ? STRETCH_EDGE : 0, last = from + len < count ? STRETCH_EDGE : 0;

	if (t->opts.flags & TALLY_ANNOTATION_ALL || len < LONG_STRETCH || at != from + first)
		return 0;
	return len - first - last;
}

static void put_instructions(const struct text *t)
{
	const struct tally_annotation *a = t->a;
	const struct tally_annotation_instruction *last = NULL;

	fputs("\nInstructions\n", t->to);
	for (size_t i = 0, from = 0; i < a->instructions.count;) {
		const struct tally_annotation_instruction *insn = &a->instructions.at[i];
		if (insn->samples || (i && a->instructions.at[i - 1].samples))
			from = i;
		size_t skip = insn->samples ? 0 : left_out(t, from, i);
		if (skip) {
			fprintf(t->to, "%12s... %zu without samples\n", "", skip);
			i += skip;
			last = NULL;
			continue;
		}
		if (!last || !is_same_place(last, insn))
			put_place(t, insn);
		put_instruction(t, insn);
		last = insn;
		i++;
	}
}

int tally_annotation_text(const struct tally_annotation *a,
			  const struct tally_annotation_opts *opts, FILE *to,
			  struct tally_error *err)
{
	struct text t = { .a = a, .to = to };
	int r = opts_read(&t.opts, sizeof(t.opts), KNOWN_FLAGS, opts, err);

	if (r < 0)
		return r;
	put_head(&t);
	if (a->lines.count && !(t.opts.flags & TALLY_ANNOTATION_NO_SOURCE))
		put_lines(&t);
	if (a->instructions.count && !(t.opts.flags & TALLY_ANNOTATION_NO_INSTRUCTIONS))
		put_instructions(&t);
	return output_end(to, "the annotation", err);
}
