/* SPDX-License-Identifier: MIT */
/* tally until: runs a command to an exact point, and shows where that is. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <tally/tally.h>

#include "command.h"
#include "exact.h"
#include "json.h"
#include "place.h"
#include "term.h"

struct until_run {
	struct exact exact;
	uint64_t branches, instructions;
	bool registers, gdb;
};

/* Where it stands; `known` is false when it is gone. */
struct standing {
	bool known;
	struct tally_tracee_regs regs;
	struct place place;
};

static void look(struct standing *s, const struct tally_run *run)
{
	struct tally_tracee *tracee = tally_run_tracee(run);

	memset(s, 0, sizeof(*s));
	s->known = tally_tracee_regs(tracee, &s->regs) == 0;
	if (s->known)
		place_find(&s->place, tally_tracee_pid(tracee), tally_tracee_regs_pc(&s->regs));
}

static const char *name_of(const struct standing *s, uint32_t index)
{
	return tally_tracee_regs_name(s->regs.machine, index);
}

static void print_json(FILE *to, const struct tally_run *run, const struct standing *s)
{
	const struct tally_timer_outcome *o = tally_run_outcome(run);

	fprintf(to, "{\"outcome\": \"%s\", \"late_by\": %" PRIu64 ", \"clock\": \"%s\", ",
		tally_outcome_name(o->kind), o->late_by,
		tally_clock_about(tally_run_clock(run))->backend);
	fprintf(to, "\"branches\": %" PRIu64 ", \"instructions\": %" PRIu64 ", ", o->clock.ticks,
		o->instructions);
	if (s->known)
		fprintf(to, "\"pc\": \"0x%" PRIx64 "\", ", tally_tracee_regs_pc(&s->regs));
	else
		fputs("\"pc\": null, ", to);
	fputs("\"symbol\": ", to);
	json_text(to, s->place.symbol[0] ? s->place.symbol : NULL);
	fputs(", \"line\": ", to);
	json_text(to, s->place.line[0] ? s->place.line : NULL);
	fputs(", \"registers\": {", to);
	for (uint32_t i = 0; s->known && name_of(s, i); i++)
		fprintf(to, "%s\"%s\": \"0x%" PRIx64 "\"", i ? ", " : "", name_of(s, i),
			s->regs.word[i]);
	fputs("}}\n", to);
}

static void print_registers(FILE *to, const struct standing *s)
{
	uint32_t i;

	for (i = 0; name_of(s, i); i++)
		fprintf(to, "%8s 0x%016" PRIx64 "%s", name_of(s, i), s->regs.word[i],
			i % 3 == 2 ? "\n" : "");
	if (i % 3)
		fputc('\n', to);
}

static void print_text(FILE *to, const struct until_run *u, const struct tally_run *run,
		       const struct standing *s)
{
	const struct tally_timer_outcome *o = tally_run_outcome(run);

	fprintf(to, "%s: %" PRIu64 " conditional branches", tally_outcome_name(o->kind),
		o->clock.ticks);
	if (o->instructions)
		fprintf(to, ", by %" PRIu64 " instructions", o->instructions);
	if (o->kind == TALLY_OUTCOME_LATE)
		fprintf(to, ", late by %" PRIu64, o->late_by);
	fprintf(to, " (%s clock)\n", tally_clock_about(tally_run_clock(run))->backend);
	if (!s->known)
		return;
	fprintf(to, "%8s 0x%016" PRIx64 "  %s%s%s%s\n", "pc", tally_tracee_regs_pc(&s->regs),
		s->place.symbol, s->place.symbol[0] ? " (" : "", s->place.module,
		s->place.symbol[0] ? ")" : "");
	if (s->place.line[0])
		fprintf(to, "%8s %s\n", "line", s->place.line);
	if (u->registers)
		print_registers(to, s);
}

/* Why it is not there. */
static void explain(const struct tally_run *run)
{
	const struct tally_timer_outcome *o = tally_run_outcome(run);

	if (o->kind == TALLY_OUTCOME_EXITED && tally_run_status(run) >= 0)
		complain("until", "the command ended before, with status %d",
			 tally_run_status(run));
	else if (o->why)
		complain("until", "%s", o->why);
	if (o->kind == TALLY_OUTCOME_CLOCK_INVALID)
		hint("'--clock step' counts each instruction, and cannot miss one");
}

/* In place of us; the command stays stopped when there is no gdb. */
static int to_gdb(struct tally_run *run)
{
	char pid[16];
	int32_t process = tally_tracee_pid(tally_run_tracee(run));
	int r = tally_run_detach(run);

	if (r < 0) {
		complain("until", "process %" PRId32 " cannot be let go: %s", process,
			 strerror(-r));
		return EXIT_FAILED;
	}
	snprintf(pid, sizeof(pid), "%" PRId32, process);
	execlp("gdb", "gdb", "-q", "-p", pid, (char *)NULL);
	complain("until", "cannot run gdb: %s", strerror(errno));
	hint("process %s is left stopped; 'kill -CONT %s' lets it go on", pid, pid);
	return EXIT_FAILED;
}

static int report(struct until_run *u, struct tally_run *run)
{
	struct standing s;

	look(&s, run);
	if (u->exact.json)
		print_json(u->exact.to, run, &s);
	else
		print_text(u->exact.to, u, run, &s);
	if (tally_run_outcome(run)->kind == TALLY_OUTCOME_REACHED)
		return EXIT_DONE;
	explain(run);
	return EXIT_FAILED;
}

static int run(int argc, char **argv)
{
	struct until_run u = { .exact = { .command = "until" }, .branches = UINT64_MAX };
	const struct arg table[] = {
		{ 0, "branches", "N", "stop where N conditional branches have been executed",
		  ARG_U64, &u.branches },
		{ 0, "instructions", "M", "and M instructions after that", ARG_U64,
		  &u.instructions },
		{ 0, "regs", NULL, "show all general registers", ARG_FLAG, &u.registers },
		{ 0, "gdb", NULL, "leave the stopped command to gdb", ARG_FLAG, &u.gdb },
		EXACT_ARGS(&u.exact),
		{ 0 },
	};
	const struct args args = {
		.command = "until",
		.synopsis = "--branches N [OPTIONS] -- CMD [ARG...]",
		.description =
			"Runs a command until its first thread has executed exactly so much, shows "
			"where that\nis, and ends the command. The same program with the same input "
			"stops at the same place.",
		.examples = "  tally until --branches 20000 --regs -- ./program\n"
			    "  tally until --branches 20000 --instructions 3 --gdb -- ./program\n",
		.table = table,
	};
	struct tally_timer_request request = { .size = sizeof(request) };
	struct tally_run_opts opts = { .ticks = TALLY_TICKS_CONDITIONAL, .request = &request };
	struct tally_run *tally_run = NULL;

	int at = args_parse(&args, argc, argv);
	if (at < 0)
		return args_status(at);
	if (at == argc || u.branches == UINT64_MAX) {
		complain("until", at == argc ? "there is no command to run"
					     : "it is not said until when: --branches is missing");
		hint("tally until --branches 1000 -- ls");
		return EXIT_USAGE;
	}
	request.kind = u.instructions ? TALLY_TIMER_INSTRUCTIONS : TALLY_TIMER_EXACTLY;
	request.flags = TALLY_TIMER_ABSOLUTE | TALLY_TIMER_FROM_HERE;
	request.ticks = u.exact.ticks = u.branches;
	request.instructions = u.exact.instructions = u.instructions;
	int status = exact_run(&u.exact, &opts, argv + at, &tally_run);
	if (status == EXIT_DONE)
		status = report(&u, tally_run);
	if (u.exact.to)
		status = exact_finish(&u.exact, status);
	if (status == EXIT_DONE && u.gdb)
		status = to_gdb(tally_run);
	tally_run_free(tally_run);
	return status;
}

const struct command cmd_until = { "until", "runs to an exact point and shows it", run };
