/* SPDX-License-Identifier: MIT */
/* The output of a set of regions: text for people, or an object a line. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/sys.h"
#include "count/region.h"

/* Notes in words, by their place in the struct; the number stands before them. */
static const struct note {
	size_t offset;
	const char *key, *text;
} notes[] = {
	{ offsetof(struct tally_regions_notes, unopened), "unopened",
	  "threads could not open their counters" },
	{ offsetof(struct tally_regions_notes, open), "open",
	  "regions were still open at the end, and are not counted" },
	{ offsetof(struct tally_regions_notes, unmatched_ends), "unmatched_ends",
	  "ENDs had no BEGIN, and were ignored" },
	{ offsetof(struct tally_regions_notes, ended_by_outer), "ended_by_outer",
	  "regions had no END before that of a region around them, and ended with it" },
	{ offsetof(struct tally_regions_notes, too_deep), "too_deep",
	  "BEGINs were nested too deep, and were ignored" },
	{ offsetof(struct tally_regions_notes, too_many), "too_many",
	  "BEGINs were of more different regions than a set has, and were ignored" },
	{ offsetof(struct tally_regions_notes, interrupting), "interrupting",
	  "BEGINs or ENDs in signal handlers interrupted others, and were ignored" },
};

static uint64_t note_of(const struct tally_regions_notes *from, const struct note *note)
{
	return load_u64((const char *)from + note->offset, false);
}

static void json_string(struct buf *out, const char *text)
{
	buf_str(out, "\"");
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		if (c == '"' || c == '\\')
			buf_printf(out, "\\%c", c);
		else if (c < 0x20 || c == 0x7f)
			buf_printf(out, "\\u%04x", c);
		else
			buf_add(out, text, 1);
	}
	buf_str(out, "\"");
}

static bool has_value(const struct tally_count *count)
{
	return count->state <= TALLY_COUNT_SCALED;
}

static void json_count(struct buf *out, const char *key, const struct tally_result *result)
{
	const struct tally_count *count = &result->count;

	buf_printf(out, ",\"%s\":", key);
	if (has_value(count))
		buf_printf(out, "%" PRIu64, count->value);
	else
		buf_str(out, "null");
	buf_printf(out, ",\"%s_state\":\"%s\"", key, tally_count_state_name(count->state));
}

static int json_region(const struct tally_region_result *region, void *arg)
{
	struct buf *out = arg;

	buf_printf(out, "{\"process\":%d,\"region\":", getpid());
	json_string(out, region->name);
	buf_printf(out, ",\"calls\":%" PRIu64 ",\"failed\":%" PRIu64 ",\"counts\":[", region->calls,
		   region->failed);
	for (uint32_t i = 0; i < region->members; i++) {
		buf_str(out, i ? ",{\"event\":" : "{\"event\":");
		json_string(out, region->inclusive[i].label);
		buf_str(out, ",\"unit\":");
		json_string(out, region->inclusive[i].unit);
		json_count(out, "inclusive", &region->inclusive[i]);
		json_count(out, "exclusive", &region->exclusive[i]);
		buf_str(out, "}");
	}
	buf_str(out, "]}\n");
	return 0;
}

/* Lines of `text`, each as a string of a list. */
static void json_lines(struct buf *out, const char *text)
{
	const char *comma = "", *end;

	for (; (end = strchr(text, '\n')); text = end + 1) {
		char *line = strndup(text, (size_t)(end - text));
		buf_str(out, comma);
		json_string(out, line ? line : "");
		free(line);
		comma = ",";
	}
}

static void json_notes(struct buf *out, const struct tally_regions_state *state,
		       const char *troubles)
{
	buf_printf(out, "{\"process\":%d,\"threads\":%" PRIu64, getpid(), state->notes.threads);
	for (size_t i = 0; i < ARRAY_SIZE(notes); i++)
		buf_printf(out, ",\"%s\":%" PRIu64, notes[i].key,
			   note_of(&state->notes, &notes[i]));
	buf_printf(out, ",\"unread\":%" PRIu64 ",\"troubles\":[", state->unread);
	json_lines(out, troubles);
	buf_str(out, "]}\n");
}

static void text_count(struct buf *out, const struct tally_result *result)
{
	const struct tally_count *count = &result->count;
	char value[48];

	if (has_value(count))
		snprintf(value, sizeof(value), "%s%" PRIu64 "%s%s",
			 count->state == TALLY_COUNT_SCALED ? "~" : "", count->value,
			 *result->unit ? " " : "", result->unit);
	else
		snprintf(value, sizeof(value), "%s", tally_count_state_name(count->state));
	buf_printf(out, " %20s", value);
}

static int text_region(const struct tally_region_result *region, void *arg)
{
	struct buf *out = arg;

	buf_printf(out, "%-24s %10" PRIu64, region->name, region->calls);
	for (uint32_t i = 0; i < region->members; i++) {
		if (i)
			buf_printf(out, "%-24s %10s", "", "");
		buf_printf(out, "  %-24s", region->inclusive[i].label);
		text_count(out, &region->inclusive[i]);
		text_count(out, &region->exclusive[i]);
		buf_str(out, "\n");
	}
	if (region->failed)
		buf_printf(out, "%-24s %10" PRIu64 "  of them could not be counted\n", "",
			   region->failed);
	return 0;
}

static void text_notes(struct buf *out, const struct tally_regions_state *state,
		       const char *troubles)
{
	const char *end;

	for (size_t i = 0; i < ARRAY_SIZE(notes); i++) {
		uint64_t n = note_of(&state->notes, &notes[i]);
		if (n)
			buf_printf(out, "note: %" PRIu64 " %s\n", n, notes[i].text);
	}
	if (state->unread)
		buf_printf(out,
			   "note: %" PRIu64 " threads were in the middle of one, and are missing\n",
			   state->unread);
	for (; (end = strchr(troubles, '\n')); troubles = end + 1)
		buf_printf(out, "note: %.*s\n", (int)(end - troubles), troubles);
}

/* Lines about all that could not be counted: when starting, and in threads. */
static const char *troubles_of(const struct tally_regions_state *state, struct buf *lines)
{
	buf_add(lines, state->config->troubles.at, state->config->troubles.len);
	if (state->notes.unopened)
		buf_printf(lines, "%s\n", state->first_error.text);
	const char *text = buf_text(lines);
	return text ? text : "";
}

static void compose(struct buf *out, const struct tally_regions_state *state)
{
	struct buf lines = { 0 };
	const char *troubles = troubles_of(state, &lines);

	if (state->config->json) {
		region_each(state, &state->ended, json_region, out);
		json_notes(out, state, troubles);
	} else {
		buf_printf(out, "regions of %s, process %d, threads with regions: %" PRIu64 "\n",
			   program_invocation_short_name, getpid(), state->notes.threads);
		if (state->names_count)
			buf_printf(out, "%-24s %10s  %-24s %20s %20s\n", "region", "calls", "event",
				   "inclusive", "exclusive");
		region_each(state, &state->ended, text_region, out);
		text_notes(out, state, troubles);
	}
	buf_done(&lines);
}

/* The file to append to, by its pattern: %p is this process. */
static int open_output(const char *pattern)
{
	struct buf path = { 0 };

	for (; *pattern; pattern++) {
		if (pattern[0] == '%' && pattern[1] == 'p')
			buf_printf(&path, "%d", getpid());
		else
			buf_add(&path, pattern, 1);
		pattern += pattern[0] == '%' && (pattern[1] == 'p' || pattern[1] == '%');
	}
	int fd = buf_text(&path) ? sys()->open(path.at, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
	buf_done(&path);
	return fd;
}

void region_dump(const struct tally_regions_state *state)
{
	const char *output = state->config->output;
	int fd = output ? open_output(output) : STDERR_FILENO;
	struct buf out = { 0 };

	compose(&out, state);
	/* At one go, so that processes that share the file do not mix their lines. */
	if (fd >= 0 && !out.failed)
		sys_write_all(fd, out.at, out.len);
	if (output && fd >= 0)
		sys()->close(fd);
	buf_done(&out);
}
