/* SPDX-License-Identifier: MIT */
/* `tally record`: what its options ask of the sampler. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "command.h"
#include "profiles.h"
#include "record.h"
#include "term.h"

/* kernel.perf_event_max_sample_rate where it cannot be read. */
#define RATE_UNKNOWN 100000

struct word {
	const char *name;
	uint64_t value;
};

static const struct word branch_words[] = {
	{ "u", TALLY_BRANCH_USER },
	{ "k", TALLY_BRANCH_KERNEL },
	{ "hv", TALLY_BRANCH_HV },
	{ "any", TALLY_BRANCH_ANY },
	{ "any_call", TALLY_BRANCH_ANY_CALL },
	{ "any_ret", TALLY_BRANCH_ANY_RETURN },
	{ "ind_call", TALLY_BRANCH_IND_CALL },
	{ "ind_jmp", TALLY_BRANCH_IND_JUMP },
	{ "call", TALLY_BRANCH_CALL },
	{ "cond", TALLY_BRANCH_COND },
	{ "abort_tx", TALLY_BRANCH_ABORT_TX },
	{ "in_tx", TALLY_BRANCH_IN_TX },
	{ "no_tx", TALLY_BRANCH_NO_TX },
	{ "no_flags", TALLY_BRANCH_NO_FLAGS },
	{ "no_cycles", TALLY_BRANCH_NO_CYCLES },
	{ "save_type", TALLY_BRANCH_TYPE_SAVE },
	{ "stack", TALLY_BRANCH_CALL_STACK },
	{ "hw_index", TALLY_BRANCH_HW_INDEX },
	{ "priv", TALLY_BRANCH_PRIV_SAVE },
	{ "counter", TALLY_BRANCH_COUNTERS },
};
#define BRANCH_MODES (TALLY_BRANCH_USER | TALLY_BRANCH_KERNEL | TALLY_BRANCH_HV)

/* What perf asks for, to have the branches that lead to the function at hand. */
#define LBR_CALLS                                                              \
	(TALLY_BRANCH_USER | TALLY_BRANCH_CALL_STACK | TALLY_BRANCH_NO_FLAGS | \
	 TALLY_BRANCH_NO_CYCLES)

static const struct word clock_words[] = {
	{ "monotonic", CLOCK_MONOTONIC },
	{ "mono", CLOCK_MONOTONIC },
	{ "monotonic_raw", CLOCK_MONOTONIC_RAW },
	{ "raw", CLOCK_MONOTONIC_RAW },
	{ "realtime", CLOCK_REALTIME },
	{ "real", CLOCK_REALTIME },
	{ "boottime", CLOCK_BOOTTIME },
	{ "boot", CLOCK_BOOTTIME },
	{ "tai", CLOCK_TAI },
};

static const struct word *find(const struct word *words, size_t count, const char *name, size_t len)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(words[i].name) == len && !strncasecmp(words[i].name, name, len))
			return &words[i];
	return NULL;
}
#define FIND(words, name, len) find(words, sizeof(words) / sizeof(*(words)), name, len)

/* "any_call,u"; where no kind is named, any; false: said. */
static bool read_branches(const char *text, uint64_t *out)
{
	uint64_t all = 0;

	while (text) {
		size_t len = strcspn(text, ",");
		const struct word *word = FIND(branch_words, text, len);
		if (!word) {
			complain("record", "-j: '%.*s' is no kind of branch", (int)len, text);
			hint("kinds are any, any_call, any_ret, ind_call, ind_jmp, call, cond, "
			     "in_tx, no_tx, abort_tx, stack; with u, k, hv, save_type, no_flags, "
			     "no_cycles, hw_index, priv, counter");
			return false;
		}
		all |= word->value;
		text = text[len] ? text + len + 1 : NULL;
	}
	*out = all & ~BRANCH_MODES ? all : all | TALLY_BRANCH_ANY;
	return true;
}

static bool read_clock(const char *text, struct tally_sampler_opts *opts)
{
	const char *name = strncasecmp(text, "CLOCK_", 6) ? text : text + 6;
	const struct word *word = FIND(clock_words, name, strlen(name));
	char *end;

	if (!strcasecmp(name, "perf")) {
		opts->flags |= TALLY_SAMPLER_PERF_CLOCK;
		return true;
	}
	/* By its number, as long as it is one that the kernel takes (perf_event_set_clock()). */
	unsigned long number = isdigit((unsigned char)*text) ? strtoul(text, &end, 10) : UINT32_MAX;
	for (size_t i = 0; i < sizeof(clock_words) / sizeof(*clock_words) && !word; i++)
		if (number == clock_words[i].value && !*end)
			word = &clock_words[i];
	if (!word) {
		complain("record", "-k: '%s' is no clock", text);
		hint("clocks are monotonic, raw, real, boot, tai, perf");
		return false;
	}
	opts->flags |= TALLY_SAMPLER_USE_CLOCKID;
	opts->clockid = (int32_t)word->value;
	return true;
}

static bool read_stack(const char *text, struct tally_sampler_opts *opts)
{
	unsigned long bytes = TALLY_SAMPLER_STACK_BYTES;
	char *end = NULL;

	errno = 0;
	if (*text == ',' && isdigit((unsigned char)text[1]))
		bytes = strtoul(text + 1, &end, 0);
	if ((*text && (!end || *end)) || errno || !bytes || bytes > LARGEST_STACK) {
		complain("record",
			 "--call-graph: 'dwarf%s': at most %d bytes of stack fit into a "
			 "sample",
			 text, LARGEST_STACK);
		return false;
	}
	/*
	 * Frames of user mode come from the copy; those of the kernel from itself. Unwinders find the
	 * tables that they need in mappings without code, which is why perf asks for DATA, too.
	 */
	opts->flags |= TALLY_SAMPLER_CALLCHAIN | TALLY_SAMPLER_NO_USER_CHAIN | TALLY_SAMPLER_DATA;
	opts->stack_bytes = (uint32_t)(bytes + 7) / 8 * 8;
	return true;
}

static bool read_call_graph(const struct record_options *o, struct tally_sampler_opts *opts)
{
	const char *text = o->call_graph;

	if (!text || !strcmp(text, "fp")) {
		if (text || o->graph)
			opts->flags |= TALLY_SAMPLER_CALLCHAIN;
		return true;
	}
	if (!strncmp(text, "dwarf", 5) && (!text[5] || text[5] == ','))
		return read_stack(text + 5, opts);
	if (strcmp(text, "lbr") != 0) {
		complain("record", "--call-graph: '%s' is not known; fp, dwarf[,BYTES] and lbr are",
			 text);
		return false;
	}
	if (opts->branch_sample_type) {
		complain("record", "--call-graph lbr and -b or -j use the same branch records");
		return false;
	}
	opts->flags |= TALLY_SAMPLER_CALLCHAIN;
	opts->branch_sample_type = LBR_CALLS;
	return true;
}

static bool read_rate(const struct record_options *o, struct tally_sampler_opts *opts)
{
	struct tally_system system;
	char *end;

	opts->period = o->period;
	if (!o->freq)
		return true;
	if (!strcmp(o->freq, "max")) {
		opts->freq = RATE_UNKNOWN;
		if (tally_system_read(&system, sizeof(system), NULL, NULL) == 0 &&
		    system.max_sample_rate > 0)
			opts->freq = (uint64_t)system.max_sample_rate;
		return true;
	}
	opts->freq = strtoull(o->freq, &end, 10);
	if (end != o->freq && !*end && opts->freq && *o->freq != '-')
		return true;
	complain("record", "-F: '%s' is neither a number of samples a second nor 'max'", o->freq);
	return false;
}

/* Pages, or a size with its unit. Saturates, so that what is beyond all memory is refused as such. */
static bool read_pages(const char *text, uint64_t *out)
{
	static const char units[] = "BKMG";
	uint64_t unit = (uint64_t)sysconf(_SC_PAGESIZE);
	char *end;

	if (!text)
		return true;
	errno = 0;
	uint64_t number = strtoull(text, &end, 10);
	const char *found = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
	if (!isdigit((unsigned char)*text) || !number || (*end && (!found || end[1]))) {
		complain("record", "-m: '%s' is neither a number of pages nor a size, as 8M", text);
		return false;
	}
	if (found)
		unit = 1ull << 10 * (found - units);
	if (errno || __builtin_mul_overflow(number, unit, out))
		*out = UINT64_MAX;
	return true;
}

static bool has_tracepoint(const struct tally_events *events)
{
	for (uint32_t i = 0; i < tally_events_count(events); i++)
		if (tally_event_attr(tally_events_at(events, i))->type == TALLY_TYPE_TRACEPOINT)
			return true;
	return false;
}

static void read_flags(const struct record_options *o, const struct tally_events *events,
		       struct tally_sampler_opts *opts)
{
	const struct {
		bool given;
		uint32_t flag;
		uint64_t sample_type;
	} bits[] = {
		{ o->no_inherit, TALLY_SAMPLER_NO_INHERIT, 0 },
		{ o->no_stop, TALLY_SAMPLER_NO_STOP, 0 },
		{ o->overwrite, TALLY_SAMPLER_OVERWRITE, 0 },
		{ o->stat, TALLY_SAMPLER_INHERIT_STAT, 0 },
		{ o->raw || has_tracepoint(events), TALLY_SAMPLER_RAW, 0 },
		{ o->data, TALLY_SAMPLER_DATA, 0 },
		{ o->switch_events, TALLY_SAMPLER_SWITCHES, 0 },
		{ o->namespaces, TALLY_SAMPLER_NAMESPACES, 0 },
		{ o->all_cgroups, TALLY_SAMPLER_CGROUPS, 0 },
		/* Programs that are loaded while it records have samples too. */
		{ true, TALLY_SAMPLER_BPF, 0 },
		{ o->phys_data, 0, TALLY_SAMPLE_PHYS_ADDR },
		{ o->data_page_size, 0, TALLY_SAMPLE_DATA_PAGE_SIZE },
		{ o->code_page_size, 0, TALLY_SAMPLE_CODE_PAGE_SIZE },
		{ o->weight, 0, TALLY_SAMPLE_WEIGHT },
	};

	for (size_t i = 0; i < sizeof(bits) / sizeof(*bits); i++) {
		if (!bits[i].given)
			continue;
		opts->flags |= bits[i].flag;
		opts->sample_type |= bits[i].sample_type;
	}
}

/* Of the stacks of a trial so many must be whole by frame pointers, or copies are better. */
#define WHOLE_SHARE 0.95

/* Fewer tell nothing: the process slept. */
#define LEAST_STACKS 20

const char *record_choose_graph(const struct tally_target *target, bool quiet)
{
	struct tally_trial trial = { 0 };
	bool process = target->scope == TALLY_SCOPE_PROCESS;

	if (process && tally_recorder_trial(target->id, &trial, NULL) < 0)
		return "fp";
	if (trial.stacks < LEAST_STACKS && tally_recorder_trial(0, &trial, NULL) < 0)
		return "fp";
	bool good = (double)trial.whole >= WHOLE_SHARE * (double)trial.stacks;
	if (!quiet)
		complain(
			"record",
			"call graphs by %s (--call-graph %s): in a trial frame pointers found %" PRIu64
			" of %" PRIu64 " stacks whole",
			good ? "frame pointers" : "copies of the stack", good ? "fp" : "dwarf",
			trial.whole, trial.stacks);
	return good ? "fp" : "dwarf";
}

int record_sampling(const struct record_options *o, const struct tally_events *events,
		    struct tally_sampler_opts *out)
{
	const char *branches = o->any_branch ? "any" : o->branches;

	*out = (struct tally_sampler_opts){ .size = sizeof(*out) };
	read_flags(o, events, out);
	bool good = (!branches || read_branches(branches, &out->branch_sample_type)) &&
		    read_call_graph(o, out) && read_rate(o, out) &&
		    read_pages(o->pages, &out->ring_bytes) &&
		    (!o->clock || read_clock(o->clock, out));
	return good ? EXIT_DONE : EXIT_USAGE;
}

bool record_level(const struct record_options *o, uint32_t *out)
{
	char *end;

	*out = 0;
	if (!o->zstd)
		return true;
	unsigned long level = *o->zstd ? strtoul(o->zstd, &end, 10) : 1;
	if (*o->zstd && (*end || !isdigit((unsigned char)*o->zstd) || !level || level > 22)) {
		complain("record", "-z: '%s' is no level of compression; 1 to 22 are", o->zstd);
		return false;
	}
	*out = (uint32_t)level;
	return true;
}
