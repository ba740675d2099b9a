/* SPDX-License-Identifier: MIT */
/*
 * Terms of a PMU, both as they are written and as a hostile sysfs might have them. The first line of
 * the input is a list of events; the others are what format/f, events/e, events/e.scale, events/e.unit,
 * cpumask and type of the PMU p say. What is taken has sound parts and a scale; what is refused says why
 * in one line.
 */
#include <string.h>

#include <tally/event.h>

#include "event/pmu.h"
#include "fakeroot.h"
#include "fuzz.h"

#define PMU "/sys/bus/event_source/devices/p/"

static struct fakeroot root;

static void remove_root(void)
{
	fakeroot_remove(&root);
}

static void make_root(void)
{
	if (root.path[0])
		return;
	must(fakeroot_make(&root));
	atexit(remove_root);
	must(fakeroot_file(&root, PMU "format/event", "config:0-7,32-35\n"));
	must(fakeroot_file(&root, PMU "events/fixed", "event=0x1c7,f=?\n"));
	must(fakeroot_file(&root, "/sys/bus/event_source/devices/box_0/type", "9\n"));
	must(fakeroot_file(&root, "/sys/bus/event_source/devices/box_1/type", "10\n"));
	must(fakeroot_file(&root, "/sys/bus/event_source/devices/box_1/events/e", "config=2\n"));
}

static void check_part(const struct tally_event *e, uint32_t i)
{
	struct tally_event_part part;

	must(tally_event_part(e, i, &part));
	must(part.pmu && strlen(part.pmu) <= PMU_MAX_NAME);
	must(!part.cpu_count == !part.cpus);
	for (uint32_t k = 1; k < part.cpu_count && k < 100; k++)
		must(part.cpus[k] >= 0);
	must(i || part.attr.config == tally_event_attr(e)->config);
}

static void check_list(const char *text)
{
	struct tally_events_opts opts = { .size = sizeof(opts), .root = root.path };
	struct tally_events *events;
	struct tally_error err = { 0 };

	int r = tally_events_parse(&events, text, &opts, &err);
	if (r < 0) {
		must(err.code == r && err.cause != TALLY_CAUSE_NONE);
		must(err.text[0] && !strchr(err.text, '\n'));
		return;
	}
	for (uint32_t i = 0; i < tally_events_count(events); i++) {
		const struct tally_event *e = tally_events_at(events, i);
		must(tally_event_scale(e) > 0);
		for (uint32_t k = 0; k < tally_event_parts(e); k++)
			check_part(e, k);
	}
	tally_events_free(events);
}

static void check_field(const char *text)
{
	struct pmu_field field;

	if (!pmu_parse_field(&field, text))
		return;
	must(field.word < PMU_WORDS);
	must(field.bits != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const files[] = { PMU "format/f",       PMU "events/e",
					     PMU "events/e.scale", PMU "events/e.unit",
					     PMU "cpumask",        PMU "type" };
	char *text = malloc(size + 1), *rest = text;

	must(text);
	memcpy(text, data, size);
	text[size] = '\0';
	make_root();
	const char *list = strsep(&rest, "\n");
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		char *line = rest ? strsep(&rest, "\n") : NULL;
		char *path = NULL;
		if (i == 0)
			check_field(line ? line : "");
		if (line) {
			must(fakeroot_file(&root, files[i], line));
		} else {
			must(asprintf(&path, "%s%s", root.path, files[i]) > 0);
			remove(path);
			free(path);
		}
	}
	check_list(list);
	free(text);
	return 0;
}
