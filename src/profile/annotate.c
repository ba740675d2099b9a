/* SPDX-License-Identifier: MIT */
/*
 * From a recording to a function's instructions. Samples are counted by the addresses of the profile;
 * what stands there is asked of the symbolizer while it still knows where everything was mapped.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "image/disassemble.h"
#include "profile/annotate.h"
#include "profile/load.h"
#include "profile/query.h"

#define HOTTEST 3       /* functions that are named when the one asked for has no samples */
#define BATCH   1024    /* addresses whose lines are looked up at once */
#define BAD     "(bad)" /* what objdump(1) prints for what is no instruction */

/* What the samples say about a function or an address. */
struct hits {
	uint64_t samples, weight;
};

struct work {
	struct tally_annotation *a;
	struct tally_annotate_opts opts;
	struct query q;
	const struct tally_loader *loader;
	struct tally_symbolizer *symbolizer;
	const struct tally_profile *profile;
	struct hits *functions, *locations; /* by their numbers in the profile */
	uint32_t function;
	struct tally_symbolizer_query any; /* an address in the function */
	uint64_t bias;                     /* from the module's numbering to addresses */
	const char *own_file;
};

int annotate_note(struct tally_annotation *a, const char *fmt, ...)
{
	char text[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	const char **note = vec_push(&a->notes);
	const char *kept = note ? texts_intern(&a->texts, text) : NULL;
	if (kept)
		*note = kept;
	else if (note)
		a->notes.count--;
	return kept ? 0 : -ENOMEM;
}

/* ---- which function ---- */

static void add_hits(struct hits *h, const struct query *q, const struct row *row)
{
	h->samples += row->samples;
	h->weight += query_weight(q, row);
}

static int count_samples(struct work *w)
{
	const struct tally_profile *p = w->profile;

	w->functions = calloc(p->functions.count + 1, sizeof(*w->functions));
	w->locations = calloc(p->locations.count + 1, sizeof(*w->locations));
	if (!w->functions || !w->locations)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->rows.count; i++) {
		const struct row *row = row_at(p, i);
		if (!query_keeps(&w->q, row))
			continue;
		const struct stack *stack = stack_at(p, (uint32_t)row->stack);
		add_hits(&w->functions[stack_function(p, (uint32_t)row->stack)], &w->q, row);
		add_hits(&w->locations[stack->location], &w->q, row);
	}
	return 0;
}

/* The heaviest function that has a name and the wanted one, if any; NO_NAME: there is none. */
static uint32_t heaviest(const struct work *w, const char *name, uint64_t below)
{
	const struct tally_profile *p = w->profile;
	uint32_t best = NO_NAME;

	for (uint32_t i = 0; i < p->functions.count; i++) {
		const struct function *f = function_at(p, i);
		uint64_t weight = w->functions[i].weight;
		if (!weight || weight >= below || f->name == NO_NAME ||
		    (name && strcmp(text_of(p, f->name), name) != 0))
			continue;
		if (best == NO_NAME || weight > w->functions[best].weight)
			best = i;
	}
	return best;
}

static bool is_known(const struct work *w, const char *name)
{
	const struct tally_profile *p = w->profile;

	for (uint32_t i = 0; i < p->functions.count; i++)
		if (function_at(p, i)->name != NO_NAME &&
		    !strcmp(text_of(p, function_at(p, i)->name), name))
			return true;
	return false;
}

static int not_there(const struct work *w, struct tally_error *err)
{
	struct buf names = { 0 };
	uint64_t below = UINT64_MAX;
	const char *name = w->opts.symbol;

	for (int i = 0; i < HOTTEST; i++) {
		uint32_t f = heaviest(w, NULL, below);
		if (f == NO_NAME)
			break;
		below = w->functions[f].weight;
		buf_printf(&names, "%s'%s'", i ? ", " : "; the heaviest functions are ",
			   text_of(w->profile, function_at(w->profile, f)->name));
	}
	const char *hottest = buf_text(&names);
	int r = error_set(err, -ENOENT, TALLY_CAUSE_UNKNOWN, "no sample was taken in %s%s%s%s%s",
			  name ? "a function '" : "any function that has a name", name ? name : "",
			  name ? "'" : "",
			  name && is_known(w, name) ? ", it only called others" : "",
			  hottest ? hottest : "");
	buf_done(&names);
	return r;
}

static const char *keep(struct tally_annotation *a, const char *text, bool *failed)
{
	const char *kept = text ? texts_intern(&a->texts, text) : NULL;

	*failed |= text && !kept;
	return kept;
}

static int take_function(struct work *w, struct tally_error *err)
{
	const struct tally_profile *p = w->profile;
	struct tally_annotation *a = w->a;
	bool failed = false;

	w->function = heaviest(w, w->opts.symbol, UINT64_MAX);
	if (w->function == NO_NAME)
		return not_there(w, err);
	const struct function *f = function_at(p, w->function);
	const struct module *m = module_at(p, (uint32_t)f->module);
	a->function = keep(a, text_of(p, f->name), &failed);
	a->module = keep(a, text_of(p, m->name), &failed);
	a->path = keep(a, text_of(p, m->path), &failed);
	a->event = keep(a, tally_profile_event_name(p, (uint32_t)w->q.event), &failed);
	a->unit = keep(a, tally_profile_event_unit(p, (uint32_t)w->q.event), &failed);
	a->samples = w->functions[w->function].samples;
	a->weight = w->functions[w->function].weight;
	a->total = w->q.total;
	uint32_t next = heaviest(w, text_of(p, f->name), a->weight);
	if (!failed && next != NO_NAME)
		failed =
			annotate_note(
				a,
				"%s has a function of that name too, with %" PRIu64
				" samples: -d chooses",
				text_of(p,
					module_at(p, (uint32_t)function_at(p, next)->module)->name),
				w->functions[next].samples) < 0;
	return failed ? error_nomem(err, "an annotation") : 0;
}

/* ---- its instructions ---- */

static int find_address(struct work *w)
{
	const struct tally_profile *p = w->profile;

	for (uint32_t i = 0; i < p->locations.count; i++) {
		const struct location *l = location_at(p, i);
		if ((uint32_t)l->function != w->function || !w->locations[i].samples ||
		    !loader_sighting(w->loader, i, &w->any))
			continue;
		w->bias = w->any.address - l->address;
		return 0;
	}
	return -ENODATA;
}

static struct tally_annotation_instruction *add_instruction(struct tally_annotation *a,
							    uint64_t address, uint32_t length)
{
	struct tally_annotation_instruction *insn = vec_push(&a->instructions);

	if (insn) {
		insn->address = address;
		insn->length = length;
	}
	return insn;
}

static int disassemble_all(struct tally_annotation *a, struct disassembler *d,
			   const struct tally_code *code)
{
	for (uint64_t at = 0, len; at < code->size; at += len) {
		const char *text;
		uint64_t address = code->start + at;
		len = disassemble(d, code->bytes + at, code->size - at, address, &text);
		if (!len) {
			text = BAD;
			len = 1;
		}
		struct tally_annotation_instruction *insn = add_instruction(a, address,
									    (uint32_t)len);
		insn = insn && (insn->text = texts_intern(&a->texts, text)) ? insn : NULL;
		if (!insn)
			return -ENOMEM;
	}
	return 0;
}

static int compare_instructions(const void *left, const void *right)
{
	const struct tally_annotation_instruction *a = left, *b = right;

	return a->address < b->address ? -1 : a->address > b->address;
}

/* Where nothing can be read, the addresses that have samples. */
static int list_addresses(struct work *w)
{
	const struct tally_profile *p = w->profile;
	struct tally_annotation *a = w->a;

	for (uint32_t i = 0; i < p->locations.count; i++) {
		const struct location *l = location_at(p, i);
		if ((uint32_t)l->function == w->function && w->locations[i].samples &&
		    !add_instruction(a, l->address, 0))
			return -ENOMEM;
	}
	if (a->instructions.count)
		qsort(a->instructions.at, a->instructions.count, sizeof(*a->instructions.at),
		      compare_instructions);
	return 0;
}

static int list_instructions(struct work *w, int64_t *mtime)
{
	struct tally_annotation *a = w->a;
	struct disassembler *d = NULL;
	struct tally_code code;
	int r = tally_symbolizer_code(w->symbolizer, &w->any, &code);

	if (r == -ENOMEM)
		return r;
	*mtime = r == 0 ? code.mtime : INT64_MAX;
	if (r < 0) {
		r = annotate_note(a, "its instructions are in no file that is here: shown are the "
				     "addresses that have samples");
		return r < 0 ? r : list_addresses(w);
	}
	r = disassembler_open(&d, code.machine, code.is_64_bit,
			      w->opts.flags & TALLY_ANNOTATE_INTEL);
	if (r == 0) {
		r = disassemble_all(a, d, &code);
		disassembler_close(d);
		return r;
	}
	if (r == -ENOTSUP)
		r = annotate_note(a,
				  "instructions of this machine cannot be shown, x86 alone: shown "
				  "are the addresses that have samples");
	else if (r == -ENOENT)
		r = annotate_note(a, "instructions need Zydis (Debian: libzydis4.0): shown are the "
				     "addresses that have samples");
	return r < 0 ? r : list_addresses(w);
}

/* The instruction that holds an address; NULL: none. */
static struct tally_annotation_instruction *instruction_at(struct tally_annotation *a,
							   uint64_t address)
{
	size_t low = 0, high = a->instructions.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (a->instructions.at[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &a->instructions.at[low - 1] : NULL;
}

static void count_instructions(struct work *w)
{
	const struct tally_profile *p = w->profile;

	for (uint32_t i = 0; i < p->locations.count; i++) {
		const struct location *l = location_at(p, i);
		if ((uint32_t)l->function != w->function)
			continue;
		struct tally_annotation_instruction *insn = instruction_at(w->a, l->address);
		if (!insn)
			continue;
		insn->samples += w->locations[i].samples;
		insn->weight += w->locations[i].weight;
	}
}

/* ---- their lines ---- */

static bool take_source(struct work *w, struct tally_annotation_instruction *insn,
			const struct tally_symbolized *at)
{
	const struct tally_source *inner = &at->sources[0];
	const struct tally_source *outer = &at->sources[at->source_count - 1];
	bool failed = false;

	if (inner->line)
		insn->file = keep(w->a, inner->file, &failed);
	insn->line = insn->file ? inner->line : 0;
	if (at->source_count > 1)
		insn->function = keep(w->a, inner->function ? inner->function : "?", &failed);
	if (!w->own_file && outer->line)
		w->own_file = keep(w->a, outer->file, &failed);
	return !failed;
}

static int find_lines(struct work *w)
{
	struct tally_annotation *a = w->a;
	struct tally_symbolizer_query *queries = calloc(BATCH, sizeof(*queries));
	struct tally_symbolized *out = calloc(BATCH, sizeof(*out));
	int r = queries && out ? 0 : -ENOMEM;

	for (size_t at = 0; r == 0 && at < a->instructions.count; at += BATCH) {
		size_t n = a->instructions.count - at < BATCH ? a->instructions.count - at : BATCH;
		for (size_t i = 0; i < n; i++) {
			queries[i] = w->any;
			queries[i].address = a->instructions.at[at + i].address + w->bias;
		}
		r = tally_symbolizer_lines(w->symbolizer, queries, n, out);
		for (size_t i = 0; r == 0 && i < n; i++)
			if (!take_source(w, &a->instructions.at[at + i], &out[i]))
				r = -ENOMEM;
	}
	free(queries);
	free(out);
	return r;
}

static int take_apart(struct work *w)
{
	int64_t mtime = INT64_MAX;
	int r = find_address(w);

	if (r == -ENODATA)
		return annotate_note(w->a, "nothing is known of its addresses");
	if ((r = list_instructions(w, &mtime)) < 0)
		return r;
	count_instructions(w);
	r = find_lines(w);
	/* Without code nobody would miss its lines. */
	if (r == 0 && !w->own_file && mtime != INT64_MAX)
		r = annotate_note(w->a, "there is no debugging information with its lines: compile "
					"with -g, or install the package's -dbgsym");
	return r < 0 ? r : annotate_lines(w->a, w->own_file, w->opts.source, mtime);
}

/* While the loader still has all that it needed. */
static int annotate_loaded(const struct tally_loader *loader, struct tally_symbolizer *symbolizer,
			   const struct tally_profile *profile, void *arg, struct tally_error *err)
{
	struct work *w = arg;
	struct tally_query_opts query = { .size = sizeof(query) };

	w->loader = loader;
	w->symbolizer = symbolizer;
	w->profile = profile;
	if (w->opts.query)
		memcpy(&query, w->opts.query,
		       w->opts.query->size < sizeof(query) ? w->opts.query->size : sizeof(query));
	query.size = sizeof(query);
	query.symbol = query.sort = NULL;
	int r = query_open(&w->q, profile, &query, err);
	if (r < 0)
		return r;
	r = count_samples(w);
	if (r == 0)
		r = take_function(w, err);
	else
		error_nomem(err, "an annotation");
	if (r == 0 && take_apart(w) < 0)
		r = error_nomem(err, "an annotation");
	query_done(&w->q);
	free(w->functions);
	free(w->locations);
	return r;
}

int tally_annotation_new(struct tally_annotation **out, const char *path,
			 const struct tally_annotate_opts *opts, struct tally_error *err)
{
	struct work w = { 0 };
	struct tally_profile *profile = NULL;
	char health[256];
	int r = opts_read(&w.opts, sizeof(w.opts), TALLY_ANNOTATE_INTEL, opts, err);

	if (r < 0)
		return r;
	w.a = calloc(1, sizeof(*w.a));
	if (!w.a)
		return error_nomem(err, "an annotation");
	const struct load_then then = { annotate_loaded, &w };
	r = tally_profile_new(&profile, err);
	if (r == 0)
		r = load_file_then(profile, path, w.opts.load, &then, health, sizeof(health), err);
	if (r == 0 && health[0])
		r = annotate_note(w.a, "%s", health);
	tally_profile_free(profile);
	if (r == 0)
		*out = w.a;
	else
		tally_annotation_free(w.a);
	return r;
}

void tally_annotation_free(struct tally_annotation *a)
{
	if (!a)
		return;
	annotate_files_done(a);
	vec_done(&a->notes);
	vec_done(&a->instructions);
	vec_done(&a->lines);
	texts_done(&a->texts);
	free(a);
}

void tally_annotation_info(const struct tally_annotation *a, struct tally_annotation_info *out)
{
	*out = (struct tally_annotation_info){
		.function = a->function,
		.module = a->module,
		.path = a->path,
		.event = a->event,
		.unit = a->unit,
		.samples = a->samples,
		.weight = a->weight,
		.total = a->total,
		.notes = (uint32_t)a->notes.count,
	};
}

const char *tally_annotation_note(const struct tally_annotation *a, uint32_t note)
{
	return note < a->notes.count ? a->notes.at[note] : NULL;
}

uint32_t tally_annotation_lines(const struct tally_annotation *a)
{
	return (uint32_t)a->lines.count;
}

int tally_annotation_line(const struct tally_annotation *a, uint32_t line,
			  struct tally_annotation_line *out)
{
	if (line >= a->lines.count)
		return -EINVAL;
	*out = a->lines.at[line];
	return 0;
}

uint32_t tally_annotation_instructions(const struct tally_annotation *a)
{
	return (uint32_t)a->instructions.count;
}

int tally_annotation_instruction(const struct tally_annotation *a, uint32_t instruction,
				 struct tally_annotation_instruction *out)
{
	if (instruction >= a->instructions.count)
		return -EINVAL;
	*out = a->instructions.at[instruction];
	return 0;
}
