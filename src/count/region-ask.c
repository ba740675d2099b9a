/* SPDX-License-Identifier: MIT */
/*
 * What the environment asks for. Events that cannot be opened here are left out and told, so that
 * the others are counted: each is tried alone, and then all of them as the group that threads will
 * open.
 */
#include <stdlib.h>
#include <string.h>
#include <tally/counter.h>

#include "count/region.h"

/* "1": two that need a PMU, and three that every kernel has. */
#define EVERYONES "instructions,cycles,task-clock,page-faults,context-switches"

static const struct tally_target self = { .scope = TALLY_SCOPE_SELF };

static int parse(struct tally_events **events, const char *text, struct tally_error *err)
{
	struct tally_events_opts opts = {
		.size = sizeof(opts),
		.fallback = TALLY_FALLBACK_PRECISE | TALLY_FALLBACK_NEWER_BITS |
			    TALLY_FALLBACK_USER_ONLY,
	};

	return tally_events_parse(events, text, &opts, err);
}

static bool opens_alone(struct tally_event *event, struct tally_error *err)
{
	struct tally_counter *counter;

	if (tally_counter_open(&counter, event, &self, NULL, err) < 0)
		return false;
	tally_counter_close(counter);
	return true;
}

/* The names of the events that can be opened here, with commas; their number. */
static uint32_t openable(struct region_config *config, struct tally_events *asked,
			 struct buf *names)
{
	struct tally_error err;
	uint32_t count = 0;

	for (uint32_t i = 0; i < tally_events_count(asked); i++) {
		struct tally_event *event = tally_events_at(asked, i);
		if (opens_alone(event, &err))
			buf_printf(names, "%s%s", count++ ? "," : "", tally_event_name(event));
		else
			buf_printf(&config->troubles, "not counted: %s\n", err.text);
	}
	return count;
}

static bool opens_together(struct tally_events *events, struct tally_error *err)
{
	struct tally_group *group;

	if (tally_group_open(&group, events, 0, &self, NULL, err) < 0)
		return false;
	tally_group_close(group);
	return true;
}

/* As many of the names as fit into one group, from the first one on. NULL: told why. */
static struct tally_events *largest_group(struct region_config *config, struct tally_events *asked,
					  uint32_t count)
{
	struct tally_events *events = NULL;
	struct tally_error err = { .text = "no memory" };

	for (; count; count--) {
		struct buf text = { 0 };
		buf_str(&text, "{");
		for (uint32_t i = 0; i < count; i++)
			buf_printf(&text, "%s%s", i ? "," : "",
				   tally_event_name(tally_events_at(asked, i)));
		buf_str(&text, "}");
		int r = buf_text(&text) ? parse(&events, text.at, &err) : -1;
		buf_done(&text);
		if (r == 0 && opens_together(events, &err))
			return events;
		if (r == 0)
			tally_events_free(events);
		buf_printf(&config->troubles, "not counted with the others: %s\n", err.text);
	}
	return NULL;
}

/*
 * What results say of events. Not asked of them later: whoever opens their group writes to them.
 */
static void describe(struct region_config *config)
{
	for (uint32_t i = 0; i < config->members; i++) {
		const struct tally_event *event = tally_events_at(config->events, i);
		const char *compromise = tally_event_compromise(event);
		config->blanks[i].label = tally_event_name(event);
		config->blanks[i].unit = tally_event_unit(event);
		config->blanks[i].scale = tally_event_scale(event);
		if (compromise)
			buf_printf(&config->troubles, "%s: %s\n", tally_event_name(event),
				   compromise);
	}
}

static void choose_events(struct region_config *config, const char *text)
{
	struct tally_events *asked = NULL, *alone = NULL;
	struct tally_error err;
	struct buf names = { 0 };

	if (parse(&asked, text, &err) < 0) {
		buf_printf(&config->troubles, "nothing is counted: TALLY_REGIONS: %s\n", err.text);
		return;
	}
	uint32_t count = openable(config, asked, &names);
	if (count && buf_text(&names) && parse(&alone, names.at, &err) == 0)
		config->events = largest_group(config, alone, tally_events_count(alone));
	if (config->events)
		config->blanks = calloc(tally_events_count(config->events),
					sizeof(*config->blanks));
	if (config->blanks)
		config->members = tally_events_count(config->events);
	else
		buf_printf(&config->troubles, "nothing is counted\n");
	describe(config);
	tally_events_free(alone);
	tally_events_free(asked);
	buf_done(&names);
}

static void choose_output(struct region_config *config)
{
	const char *output = secure_getenv("TALLY_REGIONS_OUTPUT");
	const char *format = secure_getenv("TALLY_REGIONS_FORMAT");

	config->output = output && *output ? strdup(output) : NULL;
	config->json = format && !strcmp(format, "json");
	if (format && *format && !config->json && strcmp(format, "text") != 0)
		buf_printf(&config->troubles,
			   "TALLY_REGIONS_FORMAT is neither text nor json: %.64s\n", format);
}

struct region_config *region_config_read(void)
{
	/* Of a set-user-ID program: another user's, who would make it write files. */
	const char *asked = secure_getenv("TALLY_REGIONS");

	if (!asked || !*asked || !strcmp(asked, "0"))
		return NULL;
	struct region_config *config = calloc(1, sizeof(*config));
	if (!config)
		return NULL;
	choose_output(config);
	choose_events(config, strcmp(asked, "1") != 0 ? asked : EVERYONES);
	return config;
}

void region_config_free(struct region_config *config)
{
	if (!config)
		return;
	tally_events_free(config->events);
	free(config->blanks);
	free(config->output);
	buf_done(&config->troubles);
	free(config);
}
