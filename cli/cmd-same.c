/* SPDX-License-Identifier: MIT */
/* tally same: do two runs of a command do the same, and if not, where do they part and why? */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <tally/profiling.h>

#include "args.h"
#include "command.h"
#include "json.h"
#include "output.h"
#include "term.h"

#define DEFAULT_RUNS    2
#define DEFAULT_MINUTES 10

/* As measured in a virtual machine; without one it is ten times that. */
#define STEPS_A_SECOND 30000.0

/* As in diff(1): 1 is for what differs, so trouble is 2. */
#define EXIT_TROUBLE 2

struct options {
	uint64_t runs, every;
	double max_time;
	const char *leave, *output;
	bool json, verbose;
	bool said; /* how long it may take */
};

static void print_command(FILE *to, char *const *argv)
{
	for (; *argv; argv++)
		fprintf(to, "%s%s", *argv, argv[1] ? " " : "");
}

static void print_place(FILE *to, const struct tally_same_place *place)
{
	fprintf(to, "%#" PRIx64, place->pc);
	if (place->symbol)
		fprintf(to, " %s+%#" PRIx64, place->symbol, place->offset);
	if (place->module)
		fprintf(to, " (%s)", place->module);
	if (place->thread > 1)
		fprintf(to, " in thread %u", place->thread);
}

static void print_parting(FILE *to, const struct tally_same_report *r)
{
	const struct tally_same_place *at = &r->place;

	fprintf(to, "runs %u and %u part ", r->run[0], r->run[1]);
	switch (r->parting) {
	case TALLY_SAME_BY_REGISTERS:
		fprintf(to,
			at->tick || r->ticks ? "at tick %" PRIu64 ", by the registers behind it"
					     : "before tick %" PRIu64 ", by the registers",
			at->tick);
		break;
	case TALLY_SAME_BY_FLOW:
		fprintf(to, "before tick %" PRIu64 ", by what is executed", at->tick);
		break;
	case TALLY_SAME_BY_MEMORY:
	case TALLY_SAME_BY_VECTORS:
		fprintf(to,
			r->from == at->tick ? "at tick %" PRIu64 ", by "
					    : "from tick %" PRIu64 " to %" PRIu64 ", by ",
			r->from, at->tick);
		fputs(r->parting == TALLY_SAME_BY_MEMORY ? "memory" : "vector registers", to);
		break;
	case TALLY_SAME_BY_OUTPUT:
		fprintf(to, "at tick %" PRIu64 ", by what is written", at->tick);
		break;
	case TALLY_SAME_BY_END:
		fprintf(to, "at tick %" PRIu64 ", by the end", at->tick);
		break;
	default:
		break;
	}
	fputc('\n', to);
}

static void print_values(FILE *to, const struct tally_same_report *r)
{
	for (uint32_t i = 0; i < r->value_count; i++)
		fprintf(to, "  %-10s %s in run %u, %s in run %u\n", r->values[i].name,
			r->values[i].text[0], r->run[0], r->values[i].text[1], r->run[1]);
}

static void print_parted(FILE *to, const struct tally_same_report *r)
{
	print_parting(to, r);
	fputs("  pc         ", to);
	print_place(to, &r->place);
	fputc('\n', to);
	if (r->parting == TALLY_SAME_BY_FLOW) {
		fputs("  other pc   ", to);
		print_place(to, &r->other);
		fputc('\n', to);
	}
	if (r->address)
		fprintf(to, "  address    %#" PRIx64 "%s%s%s\n", r->address, r->where ? " (" : "",
			r->where ? r->where : "", r->where ? ")" : "");
	print_values(to, r);
}

static void print_input(FILE *to, const struct tally_same_report *r)
{
	const struct tally_same_input *input = r->input;

	if (!input) {
		fputs("no input before it differed\n", to);
		return;
	}
	fprintf(to, "the last input%s that differed: %s at tick %" PRIu64 "\n",
		r->outcome == TALLY_SAME_PARTED ? " before it" : "", input->what,
		input->place.tick);
	fputs("  pc         ", to);
	print_place(to, &input->place);
	fputc('\n', to);
	if (input->detail)
		fprintf(to, "  about      %s\n", input->detail);
	if (*input->value.text[0] || *input->value.text[1])
		fprintf(to, "  %-10s %s in run %u, %s in run %u\n", input->value.name,
			input->value.text[0], input->run[0], input->value.text[1], input->run[1]);
	if (input->condition)
		fprintf(to, "  fix        without '--leave %s' %s\n",
			tally_same_condition_name((uint32_t)__builtin_ctz(input->condition)),
			input->fix);
	else
		fprintf(to, "  fix        %s\n", input->fix);
}

static void print_conditions(FILE *to, const struct options *o, const struct tally_same_report *r)
{
	for (uint32_t i = 0; i < r->state_count; i++)
		if (r->states[i].why || o->verbose)
			fprintf(to, "%s: %s (%s)\n", r->states[i].why ? "not fixed" : "fixed",
				r->states[i].name,
				r->states[i].why ? r->states[i].why : r->states[i].help);
	for (uint32_t i = 0; i < r->uncontrolled_count; i++)
		fprintf(to, "not fixed: %s\n", r->uncontrolled[i]);
}

static void print_text(FILE *to, const struct options *o, const struct tally_same_report *r,
		       char *const *argv)
{
	fprintf(to, "%u runs of '", r->runs);
	print_command(to, argv);
	fputs("'\n", to);
	if (r->outcome == TALLY_SAME_IDENTICAL)
		fprintf(to,
			"identical: %" PRIu64 " ticks, %" PRIu64 " inputs, %" PRIu64
			" looks at memory, exit status %d\n",
			r->ticks, r->inputs, r->looks, r->status);
	if (r->outcome == TALLY_SAME_IDENTICAL && r->input) {
		fprintf(to, "inputs that differed without consequence: %" PRIu64 "\n", r->differed);
		print_input(to, r);
	}
	if (r->outcome == TALLY_SAME_UNFINISHED)
		fprintf(to, "identical for %" PRIu64 " ticks, then given up: %s\n", r->ticks,
			r->why);
	if (r->outcome == TALLY_SAME_PARTED) {
		print_parted(to, r);
		print_input(to, r);
	}
	print_conditions(to, o, r);
}

static void json_place(FILE *to, const char *name, const struct tally_same_place *place)
{
	fprintf(to, "\"%s\": {\"tick\": %" PRIu64 ", \"pc\": \"%#" PRIx64 "\", \"symbol\": ", name,
		place->tick, place->pc);
	json_text(to, place->symbol);
	fprintf(to, ", \"offset\": %" PRIu64 ", \"module\": ", place->offset);
	json_text(to, place->module);
	fprintf(to, ", \"thread\": %u}", place->thread);
}

static void json_pair(FILE *to, const struct tally_same_value *value)
{
	json_text(to, value->name);
	fputs(": [", to);
	json_text(to, value->text[0]);
	fputs(", ", to);
	json_text(to, value->text[1]);
	fputs("]", to);
}

static void json_input(FILE *to, const struct tally_same_input *input)
{
	fputs(", \"input\": ", to);
	if (!input) {
		fputs("null", to);
		return;
	}
	fputs("{\"what\": ", to);
	json_text(to, input->what);
	fputs(", ", to);
	json_place(to, "at", &input->place);
	fputs(", \"about\": ", to);
	json_text(to, input->detail);
	fputs(", ", to);
	json_pair(to, &input->value);
	fputs(", \"switch\": ", to);
	json_text(to, input->condition
			      ? tally_same_condition_name((uint32_t)__builtin_ctz(input->condition))
			      : NULL);
	fputs(", \"fix\": ", to);
	json_text(to, input->fix);
	fputs("}", to);
}

static void json_parted(FILE *to, const struct tally_same_report *r)
{
	static const char *const partings[] = {
		[TALLY_SAME_BY_REGISTERS] = "registers", [TALLY_SAME_BY_FLOW] = "flow",
		[TALLY_SAME_BY_MEMORY] = "memory",       [TALLY_SAME_BY_VECTORS] = "vectors",
		[TALLY_SAME_BY_OUTPUT] = "output",       [TALLY_SAME_BY_END] = "end",
	};

	fprintf(to, ", \"by\": \"%s\", \"between\": [%u, %u], ", partings[r->parting], r->run[0],
		r->run[1]);
	json_place(to, "at", &r->place);
	if (r->parting == TALLY_SAME_BY_FLOW) {
		fputs(", ", to);
		json_place(to, "other", &r->other);
	}
	if (r->parting == TALLY_SAME_BY_MEMORY || r->parting == TALLY_SAME_BY_VECTORS)
		fprintf(to, ", \"from\": %" PRIu64, r->from);
	if (r->address) {
		fprintf(to, ", \"address\": \"%#" PRIx64 "\", \"where\": ", r->address);
		json_text(to, r->where);
	}
	fputs(", \"values\": {", to);
	for (uint32_t i = 0; i < r->value_count; i++) {
		fputs(i ? ", " : "", to);
		json_pair(to, &r->values[i]);
	}
	fputs("}", to);
	json_input(to, r->input);
}

static void print_json(FILE *to, const struct tally_same_report *r)
{
	static const char *const outcomes[] = {
		[TALLY_SAME_IDENTICAL] = "identical",
		[TALLY_SAME_PARTED] = "parted",
		[TALLY_SAME_UNFINISHED] = "unfinished",
	};

	fprintf(to,
		"{\"outcome\": \"%s\", \"runs\": %u, \"ticks\": %" PRIu64 ", \"inputs\": %" PRIu64
		", \"differed\": %" PRIu64 ", \"looks\": %" PRIu64 ", \"status\": ",
		outcomes[r->outcome], r->runs, r->ticks, r->inputs, r->differed, r->looks);
	if (r->status < 0)
		fputs("null", to);
	else
		fprintf(to, "%d", r->status);
	if (r->why) {
		fputs(", \"why\": ", to);
		json_text(to, r->why);
	}
	if (r->outcome == TALLY_SAME_PARTED)
		json_parted(to, r);
	fputs(", \"not_fixed\": {", to);
	const char *comma = "";
	for (uint32_t i = 0; i < r->state_count; i++) {
		if (!r->states[i].why)
			continue;
		fputs(comma, to);
		json_text(to, r->states[i].name);
		fputs(": ", to);
		json_text(to, r->states[i].why);
		comma = ", ";
	}
	fputs("}, \"uncontrolled\": [", to);
	for (uint32_t i = 0; i < r->uncontrolled_count; i++) {
		fputs(i ? ", " : "", to);
		json_text(to, r->uncontrolled[i]);
	}
	fputs("]}\n", to);
}

/* "random,time" as bits; false: a word that is none was complained about. */
static bool read_leave(const char *list, uint32_t *leave)
{
	while (list && *list) {
		size_t len = strcspn(list, ",");
		uint32_t i = 0;
		const char *name;
		while ((name = tally_same_condition_name(i)) &&
		       (strlen(name) != len || strncmp(name, list, len) != 0))
			i++;
		if (!name) {
			complain("same", "--leave: there is no condition '%.*s'", (int)len, list);
			hint("'tally same -h' lists them");
			return false;
		}
		*leave |= 1u << i;
		list += len + (list[len] == ',');
	}
	return true;
}

static bool check_options(const struct options *o)
{
	if (o->runs < 2 || o->runs > TALLY_SAME_RUNS_MAX) {
		complain("same", "--runs: %" PRIu64 " cannot be compared: it takes from 2 to %d",
			 o->runs, TALLY_SAME_RUNS_MAX);
		return false;
	}
	if (o->every > TALLY_SAME_EVERY_MAX) {
		complain("same", "--every: %" PRIu64 " is too big: it may be %d at most", o->every,
			 TALLY_SAME_EVERY_MAX);
		return false;
	}
	return true;
}

/* Who waits wants to know for how long. What is over at once is not announced. */
static int say_progress(void *arg, uint64_t ticks)
{
	struct options *o = arg;

	if (ticks && !o->said && !o->json)
		complain("same",
			 "stepping executes about %.0f instructions a second, of %" PRIu64
			 " runs together, and is given up after %.0f s",
			 STEPS_A_SECOND, o->runs, o->max_time);
	o->said |= ticks > 0;
	return 0;
}

static int status_of(const struct tally_same_report *r)
{
	return r->outcome == TALLY_SAME_IDENTICAL ? EXIT_DONE
	       : r->outcome == TALLY_SAME_PARTED  ? EXIT_FAILED
						  : EXIT_TROUBLE;
}

/* The output is closed. */
static int print_report(const struct options *o, const struct tally_same_report *r,
			struct output *output, char *const *argv)
{
	char *text = NULL;
	size_t len = 0;
	FILE *to = open_memstream(&text, &len);

	if (!to) {
		complain("same", "no memory");
		if (o->output)
			output_close(output, false, "same");
		return EXIT_TROUBLE;
	}
	if (o->json)
		print_json(to, r);
	else
		print_text(to, o, r, argv);
	int status = fclose(to) == 0 ? status_of(r) : EXIT_TROUBLE;
	if (!o->output)
		fwrite(text, 1, len, stderr);
	else if (!output_write(output, text, len, "same") || !output_close(output, true, "same"))
		status = EXIT_TROUBLE;
	free(text);
	return status;
}

static int compare(struct options *o, uint32_t leave, char **argv)
{
	const struct tally_same_opts opts = {
		.size = sizeof(opts),
		.runs = (uint32_t)o->runs,
		.leave = leave,
		.every = o->every,
		.max_ms = (uint64_t)(o->max_time * 1000) + 1,
		.progress = say_progress,
		.arg = o,
	};
	struct tally_same *same;
	struct tally_error err;
	struct output output;

	/* Before anything is run: what was found must not be lost for want of a place. */
	if (o->output && !output_open(&output, o->output, "same"))
		return EXIT_TROUBLE;
	if (tally_same_run(&same, argv, &opts, &err) < 0) {
		complain("same", "%s", err.text);
		if (o->output)
			output_close(&output, false, "same");
		if (err.cause != TALLY_CAUSE_EXEC)
			return EXIT_TROUBLE;
		return err.code == -ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
	}
	int status = print_report(o, tally_same_report(same), &output, argv);
	tally_same_free(same);
	return status;
}

static int run(int argc, char **argv)
{
	struct options o = { .runs = DEFAULT_RUNS, .max_time = DEFAULT_MINUTES * 60 };
	uint32_t leave = 0;
	const struct arg table[] = {
		{ 'r', "runs", "R", "how many runs are compared (default: 2)", ARG_COUNT, &o.runs },
		{ 0, "every", "N", "instructions between two looks at memory (default: 10000)",
		  ARG_COUNT, &o.every },
		{ 0, "leave", "LIST",
		  "let go of conditions: aslr, random, pid, time, tsc, vdso, cpu, io", ARG_TEXT,
		  &o.leave },
		{ 0, "max-time", "SECONDS", "give up after so long (default: 600)", ARG_SECONDS,
		  &o.max_time },
		{ 'o', "output", "FILE", "the report to FILE instead of stderr; -: to stdout",
		  ARG_TEXT, &o.output },
		{ 'j', "json", NULL, "the report as one JSON object", ARG_FLAG, &o.json },
		{ 'v', "verbose", NULL, "also what was fixed", ARG_FLAG, &o.verbose },
		{ 0 },
	};
	const struct args args = {
		.command = "same",
		.synopsis = "[OPTIONS] [--] CMD [ARG...]",
		.description =
			"Runs CMD several times side by side, with all that can be fixed the same, "
			"and tells\nwhether the runs do the same, or where they part and which input "
			"differed before.\nEach instruction is stepped: 25 to 40 thousand a second, "
			"of all runs together.\nExits with 0 when they are identical, 1 when they "
			"part, 2 for trouble; 126 or 127\nwhen CMD cannot be run.",
		.examples = "  tally same -- ./prog              do two runs do the same?\n"
			    "  tally same --leave time -- ./prog does it depend on the time?\n"
			    "  tally same -r 5 --json -o report.json -- ./prog\n",
		.table = table,
	};
	int at = args_parse(&args, argc, argv);

	if (at < 0)
		return args_status(at);
	if (!check_options(&o) || !read_leave(o.leave, &leave))
		return EXIT_USAGE;
	if (at == argc) {
		complain("same", "there is no command to run");
		hint("'tally same -- CMD' compares two runs of it");
		return EXIT_USAGE;
	}
	return compare(&o, leave, argv + at);
}

const struct command cmd_same = { "same", "whether two runs do the same, or where they part", run };
