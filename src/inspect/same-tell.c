/* SPDX-License-Identifier: MIT */
/* The report of a comparison: places, values and inputs in words. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "inspect/same.h"

const char *same_text(struct tally_same *same, const char *fmt, ...)
{
	char *text, **at;
	va_list ap;

	va_start(ap, fmt);
	int len = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (len < 0)
		return "";
	at = vec_push(&same->texts);
	if (!at) {
		free(text);
		return "";
	}
	*at = text;
	return text;
}

static int add_mapping(struct tally_maps *maps, int32_t pid, const char *line)
{
	struct tally_mapping m = { 0 };
	char perms[8];
	int path = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %" SCNu64 " %n", &m.start,
		   &m.end, perms, &m.pgoff, &m.inode, &path) < 5 ||
	    !path || !line[path])
		return 0;
	m.path = line + path;
	return tally_maps_add(maps, pid, 0, &m);
}

/* What is mapped now. Without it places have no names. */
static void read_maps(struct tally_same *same, int32_t tid)
{
	char path[64], *line = NULL;
	size_t room = 0;
	ssize_t len;

	if (same->symbolizer || tally_maps_new(&same->maps) < 0)
		return;
	snprintf(path, sizeof(path), "/proc/%d/maps", tid);
	same->mapped = tid;
	FILE *file = fopen(path, "re");
	while (file && (len = getline(&line, &room, file)) > 0) {
		line[len - 1] = '\0';
		if (add_mapping(same->maps, tid, line) < 0)
			break;
	}
	free(line);
	if (file)
		fclose(file);
	tally_symbolizer_new(&same->symbolizer, same->maps, NULL, NULL);
}

void same_place(struct tally_same *same, struct same_run *run, struct tally_same_place *out,
		const struct same_step *step)
{
	struct tally_frame frame;

	out->tick = step->tick;
	out->pc = step->pc;
	out->thread = step->thread;
	read_maps(same, tally_tracee_tid(same_turn_any(run)));
	if (!same->symbolizer || tally_symbolizer_find(same->symbolizer, same->mapped, 0, step->pc,
						       TALLY_MODE_USER, &frame) < 0)
		return;
	out->symbol = frame.function;
	out->offset = frame.offset;
	out->module = frame.path;
}

void same_tell_where(struct tally_same *same, struct same_run *run, uint64_t address)
{
	struct tally_mapping m;

	same->report.address = address;
	read_maps(same, tally_tracee_tid(same_turn_any(run)));
	if (same->maps && tally_maps_find(same->maps, same->mapped, 0, address, &m) == 1)
		same->report.where = same_text(same, "%s", m.path);
}

void same_value(struct tally_same *same, const char *name, const char *a, const char *b)
{
	struct tally_same_value *value = vec_push(&same->values);

	if (!value)
		return;
	value->name = name;
	value->text[0] = a;
	value->text[1] = b;
	same->report.values = same->values.at;
	same->report.value_count = (uint32_t)same->values.count;
}

void same_tell_registers(struct tally_same *same, const uint64_t *a, const uint64_t *b)
{
	const struct tally_tracee_regs *regs = &same->runs[0]->threads.at[0]->regs;

	for (uint32_t i = 0; i < regs->count; i++)
		if (a[i] != b[i])
			same_value(same, tally_tracee_regs_name(regs->machine, i),
				   same_text(same, "%#" PRIx64, a[i]),
				   same_text(same, "%#" PRIx64, b[i]));
}

static const char *name_call(struct tally_same *same, const struct same_input *input)
{
	const struct same_call *call = same_call((long)input->number);
	char args[160];
	size_t len = 0;

	args[0] = '\0';
	for (unsigned i = 0; i < call->args && len < sizeof(args); i++)
		len += (size_t)snprintf(args + len, sizeof(args) - len,
					input->args[i] < 1u << 16 ? "%s%" PRIu64 : "%s%#" PRIx64,
					i ? ", " : "", input->args[i]);
	return call->name ? same_text(same, "%s(%s)", call->name, args)
			  : same_text(same, "system call %" PRIu64 "(%s)", input->number, args);
}

static const char *name_signal(struct tally_same *same, uint64_t number)
{
	const char *name = sigabbrev_np((int)number);

	return name ? same_text(same, "signal SIG%s", name)
		    : same_text(same, "signal %" PRIu64, number);
}

static const char *name_input(struct tally_same *same, const struct same_input *input)
{
	switch (input->kind) {
	case SAME_INPUT_CALL:
		return name_call(same, input);
	case SAME_INPUT_INSN:
		return same_insn_name((uint32_t)input->number);
	case SAME_INPUT_SIGNAL:
		return name_signal(same, input->number);
	case SAME_INPUT_START:
		return "where the kernel has put the program";
	case SAME_INPUT_BYTES:
		return "the random bytes of the auxiliary vector, AT_RANDOM";
	case SAME_INPUT_VVAR:
		return "the kernel's data beside the vDSO";
	default:
		return "?";
	}
}

static const char *call_value(struct tally_same *same, const struct same_input *input)
{
	char bytes[3 * SAME_HEAD + 8] = "", result[64];
	const char *error = input->result < 0 && input->result > -4096
				    ? strerrorname_np((int)-input->result)
				    : NULL;
	size_t len = 0;

	for (size_t i = 0; i < input->head_len; i++)
		len += (size_t)snprintf(bytes + len, sizeof(bytes) - len, " %02x", input->head[i]);
	if (input->len > input->head_len)
		snprintf(bytes + len, sizeof(bytes) - len, " ...");
	if (error)
		snprintf(result, sizeof(result), "-%s", error);
	else if (input->result >= 1 << 16)
		snprintf(result, sizeof(result), "%#" PRIx64, (uint64_t)input->result);
	else
		snprintf(result, sizeof(result), "%" PRId64, input->result);
	if (input->kind == SAME_INPUT_BYTES)
		return same_text(same, "%s", bytes + 1);
	return input->len ? same_text(same, "%s, and wrote%s", result, bytes)
			  : same_text(same, "%s", result);
}

static const char *input_value(struct tally_same *same, const struct same_input *input)
{
	switch (input->kind) {
	case SAME_INPUT_NONE:
		return "none by then";
	case SAME_INPUT_CALL:
	case SAME_INPUT_BYTES:
		return call_value(same, input);
	case SAME_INPUT_INSN:
		return same_text(same, "%#" PRIx64, (uint64_t)input->result);
	case SAME_INPUT_SIGNAL:
		return same_text(same, "%s behind tick %" PRIu64, name_signal(same, input->number),
				 input->tick);
	default:
		return "";
	}
}

static uint32_t condition_of_call(const struct same_input *input)
{
	static const uint32_t conditions[] = {
		[SAME_RANDOM] = TALLY_SAME_RANDOM, [SAME_CLOCK] = TALLY_SAME_TIME,
		[SAME_TIMEVAL] = TALLY_SAME_TIME,  [SAME_SECONDS] = TALLY_SAME_TIME,
		[SAME_TIMES] = TALLY_SAME_TIME,    [SAME_USAGE] = TALLY_SAME_TIME,
		[SAME_PID] = TALLY_SAME_PID,       [SAME_CHILD] = TALLY_SAME_PID,
		[SAME_MAP] = TALLY_SAME_ASLR,
	};
	const struct same_call *call = same_call((long)input->number);

	if (call->kind < ARRAY_SIZE(conditions) && conditions[call->kind])
		return conditions[call->kind];
	if (call->name && !strcmp(call->name, "brk"))
		return TALLY_SAME_ASLR;
	if (call->name && !strcmp(call->name, "getcpu"))
		return TALLY_SAME_CPU;
	return call->flags & SAME_ONCE ? TALLY_SAME_IO : 0;
}

static uint32_t condition_of(const struct same_input *input)
{
	switch (input->kind) {
	case SAME_INPUT_CALL:
		return condition_of_call(input);
	case SAME_INPUT_INSN:
		return input->number == SAME_INSN_RDRAND || input->number == SAME_INSN_RDSEED ||
				       input->number == SAME_INSN_RNDR
			       ? TALLY_SAME_RANDOM
			       : TALLY_SAME_TSC;
	case SAME_INPUT_START:
		return TALLY_SAME_ASLR;
	case SAME_INPUT_BYTES:
		return TALLY_SAME_RANDOM;
	case SAME_INPUT_VVAR:
		return TALLY_SAME_VDSO;
	default:
		return 0;
	}
}

/* What is to be said of an input that none of the conditions fixes. */
static const char *no_remedy(const struct same_input *input)
{
	const struct same_call *call = same_call((long)input->number);

	if (input->kind == SAME_INPUT_SIGNAL)
		return "nothing here fixes when a signal comes that others send, or a timer";
	if (call->flags & SAME_ON_FD)
		return "nothing here fixes what a file, a device or a socket gives: give the program "
		       "one that stays the same";
	return "nothing here fixes it: it depends on what is outside of the program";
}

void same_tell_input(struct tally_same *same, struct same_run *run)
{
	struct tally_same_input *out = &same->report_input;
	const struct same_input *a = &same->differing[0], *b = &same->differing[1];
	const struct same_input *shown = a->kind ? a : b;
	const struct same_step step = { .tick = shown->tick,
					.pc = shown->pc,
					.thread = shown->thread };

	if (!shown->kind)
		return;
	same_place(same, run, &out->place, &step);
	out->what = name_input(same, shown);
	out->detail = same->differing_detail;
	out->run[0] = 1;
	out->run[1] = same->differing_run + 1;
	out->value.name = "result";
	out->value.text[0] = input_value(same, a);
	out->value.text[1] = input_value(same, b);
	uint32_t condition = condition_of(shown);
	const char *missing = condition ? same->missing[__builtin_ctz(condition)] : NULL;
	out->condition = missing ? 0 : condition & same->opts.leave;
	out->fix = missing ? missing
		   : out->condition
			   ? tally_same_condition_help((uint32_t)__builtin_ctz(out->condition))
			   : no_remedy(shown);
	same->report.input = out;
}

static const char *const chances[SAME_CHANCES] = {
	[SAME_CHANCE_CHILD] = "it has made processes: they run free, and what they do is not "
			      "compared",
	[SAME_CHANCE_WAKE] = "threads have waited in the kernel: in which order it wakes them is "
			     "chance",
	[SAME_CHANCE_SHARED] = "it writes to a file that is mapped and shared: the runs see each "
			       "other there",
	[SAME_CHANCE_RING] = "it has asked the kernel for asynchronous input and output: when "
			     "that is done is chance",
	[SAME_CHANCE_SIGNAL] = "signals have come that it did not send itself: when is chance",
	[SAME_CHANCE_UNKNOWN] = "some steps may have executed more than one instruction",
};

void same_tell_end(struct tally_same *same)
{
	struct tally_same_report *report = &same->report;

	for (uint32_t i = 0; i < TALLY_SAME_CONDITIONS; i++) {
		bool left = same->opts.leave & 1u << i;
		same->states[i] = (struct tally_same_state){
			.name = tally_same_condition_name(i),
			.help = tally_same_condition_help(i),
			.why = same->missing[i] ? same->missing[i]
			       : left           ? "it was let go"
						: NULL,
			.condition = 1u << i,
			.left = left && !same->missing[i],
		};
	}
	report->states = same->states;
	report->state_count = TALLY_SAME_CONDITIONS;
	for (uint32_t i = 0; i < SAME_CHANCES; i++)
		if (same->chances & 1u << i)
			same->uncontrolled[report->uncontrolled_count++] = chances[i];
	report->uncontrolled = same->uncontrolled;
}
