/* SPDX-License-Identifier: MIT */
/*
 * A function's lines and instructions side by side as one page of HTML, with script and style in it;
 * without them it still shows all.
 */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "profile/annotate.h"
#include "profile/annotate.js.h"
#include "profile/names.h"

static void put_embedded(FILE *to, const char *const *lines)
{
	while (*lines)
		fputs(*lines++, to);
}

static void put_head(const struct tally_annotation *a, FILE *to)
{
	double share = a->total ? 100.0 * (double)a->weight / (double)a->total : 0;

	fputs("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>", to);
	name_xml(to, a->function, 0);
	fputs("</title>\n<style>\n", to);
	put_embedded(to, annotate_css);
	fputs("</style>\n<script>\n", to);
	put_embedded(to, annotate_js);
	fputs("</script></head>\n<body><header><h1>", to);
	name_xml(to, a->function, 0);
	fputs("</h1>\n<p>", to);
	name_xml(to, a->path, 0);
	fprintf(to, "</p>\n<p>%" PRIu64 " samples in it, %.2f%% of all ", a->samples, share);
	name_xml(to, a->event, 0);
	fputs("; percentages are of these samples</p>\n", to);
	for (size_t i = 0; i < a->notes.count; i++) {
		fputs("<p class=\"note\">", to);
		name_xml(to, a->notes.at[i], 0);
		fputs("</p>\n", to);
	}
	fputs("</header><main>\n", to);
}

/* Which row of the other side belongs to it; files are told apart by their places in the list. */
static void put_link(const struct tally_annotation *a, const char *file, uint32_t line, FILE *to)
{
	size_t number = 0;

	while (number < a->files.count && a->files.at[number].path != file)
		number++;
	fprintf(to, " data-l=\"%zu:%" PRIu32 "\"", number, line);
}

/* The share, on a ground that is the darker the more it is. */
static void put_share(const struct tally_annotation *a, uint64_t weight, FILE *to)
{
	double share = annotate_share(a, weight);

	if (weight)
		fprintf(to,
			"<td class=\"share\" style=\"background:rgba(255,90,20,%.3f)\">%.2f%%</td>",
			0.06 + share / 100 * 0.8, share);
	else
		fputs("<td class=\"share\"></td>", to);
}

/* Tabs are what a name must not have, and a line may. */
static void put_text(const char *text, FILE *to)
{
	while (*text) {
		char piece[256];
		size_t tabs = strspn(text, "\t");
		for (size_t i = 0; i < tabs; i++)
			putc('\t', to);
		text += tabs;
		size_t len = strcspn(text, "\t");
		if (len >= sizeof(piece)) {
			/* Not through the middle of a character. */
			for (len = sizeof(piece) - 1;
			     len > sizeof(piece) - 5 && (text[len] & 0xc0) == 0x80;)
				len--;
		}
		memcpy(piece, text, len);
		piece[len] = '\0';
		name_xml(to, piece, 0);
		text += len;
	}
}

static void put_line(const struct tally_annotation *a, const struct tally_annotation_line *line,
		     FILE *to)
{
	fputs("<tr", to);
	if (line->has_code) {
		put_link(a, line->file, line->line, to);
		fprintf(to, " data-w=\"%" PRIu64 "\">", line->weight);
	} else {
		fputs(" class=\"plain\">", to);
	}
	put_share(a, line->weight, to);
	fprintf(to, "<td class=\"number\">%" PRIu32 "</td><td>", line->line);
	put_text(line->text ? line->text : "", to);
	fputs("</td></tr>\n", to);
}

static void put_lines(const struct tally_annotation *a, FILE *to)
{
	const struct tally_annotation_line *last = NULL;

	for (size_t i = 0; i < a->lines.count; i++) {
		const struct tally_annotation_line *line = &a->lines.at[i];
		if (!last || line->file != last->file) {
			fputs("<tr class=\"file\"><td colspan=\"3\">", to);
			name_xml(to, line->file, 0);
			fputs("</td></tr>\n", to);
		} else if (line->line != last->line + 1 && line->text) {
			fputs("<tr class=\"gap\"><td></td><td></td><td>&#8943;</td></tr>\n", to);
		}
		put_line(a, line, to);
		last = line;
	}
}

static void put_place(const struct tally_annotation_instruction *insn, FILE *to)
{
	fputs("<tr class=\"place\"><td></td><td colspan=\"2\">", to);
	if (insn->function) {
		name_xml(to, insn->function, 0);
		fputs(" (inlined) ", to);
	}
	if (insn->file) {
		name_xml(to, annotate_base(insn->file), 0);
		fprintf(to, ":%" PRIu32, insn->line);
	}
	fputs("</td></tr>\n", to);
}

static void put_instructions(const struct tally_annotation *a, FILE *to)
{
	const struct tally_annotation_instruction *last = NULL;

	for (size_t i = 0; i < a->instructions.count; i++) {
		const struct tally_annotation_instruction *insn = &a->instructions.at[i];
		if (!last || insn->file != last->file || insn->line != last->line ||
		    insn->function != last->function)
			put_place(insn, to);
		fputs("<tr", to);
		if (insn->file)
			put_link(a, insn->file, insn->line, to);
		fprintf(to, " data-w=\"%" PRIu64 "\">", insn->weight);
		put_share(a, insn->weight, to);
		fprintf(to, "<td class=\"number\">%" PRIx64 "</td><td>", insn->address);
		name_xml(to, insn->text ? insn->text : "", 0);
		fputs("</td></tr>\n", to);
		last = insn;
	}
}

int tally_annotation_html(const struct tally_annotation *a, FILE *to, struct tally_error *err)
{
	put_head(a, to);
	if (a->lines.count) {
		fputs("<section><table>\n", to);
		put_lines(a, to);
		fputs("</table></section>\n", to);
	}
	fputs("<section><table>\n", to);
	put_instructions(a, to);
	fputs("</table></section>\n</main></body></html>\n", to);
	return output_end(to, "the annotation", err);
}
