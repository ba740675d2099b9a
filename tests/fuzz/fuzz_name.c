/* SPDX-License-Identifier: MIT */
/*
 * The parser of event lists. Whatever is parsed has sound groups, and each event's name parses to
 * the same event; whatever is refused says why in one line.
 */
#include <string.h>

#include <tally/event.h>

#include "fuzz.h"

/* No machine's tracefs: the outcome depends on the input alone. */
#define ROOT "/nonexistent"

static int parse(struct tally_events **events, const char *text, struct tally_error *err)
{
	struct tally_events_opts opts = { .size = sizeof(opts), .root = ROOT };

	return tally_events_parse(events, text, &opts, err);
}

/* D and e belong to a group, not to the name of each member. */
static void check_name(const struct tally_event *e)
{
	struct tally_error err;
	struct tally_events *again;

	must(parse(&again, tally_event_name(e), &err) == 0);
	must(tally_events_count(again) == 1);
	const struct tally_attr *a = tally_event_attr(e);
	const struct tally_attr *b = tally_event_attr(tally_events_at(again, 0));
	must(a->type == b->type && a->config == b->config);
	must(!((a->flags ^ b->flags) & ~(TALLY_ATTR_PINNED | TALLY_ATTR_EXCLUSIVE)));
	tally_events_free(again);
}

static void check_event(const struct tally_events *events, uint32_t i)
{
	const struct tally_event *e = tally_events_at(events, i);
	uint32_t leader = tally_event_leader(e), size = tally_event_group_size(e);

	must(tally_event_index(e) == i);
	must(leader <= i && i < leader + size && leader + size <= tally_events_count(events));
	must(tally_event_leader(tally_events_at(events, leader)) == leader);
	check_name(e);
}

static void check_error(const struct tally_error *err, int r)
{
	must(err->code == r);
	must(err->cause != TALLY_CAUSE_NONE);
	must(err->text[0] && !strchr(err->text, '\n'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tally_events *events;
	struct tally_error err;
	char *text = malloc(size + 1);

	must(text);
	memcpy(text, data, size);
	text[size] = '\0';
	int r = parse(&events, text, &err);
	if (r < 0) {
		check_error(&err, r);
	} else {
		for (uint32_t i = 0; i < tally_events_count(events); i++)
			check_event(events, i);
		tally_events_free(events);
	}
	free(text);
	return 0;
}
