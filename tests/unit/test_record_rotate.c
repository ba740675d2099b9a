/* SPDX-License-Identifier: MIT */
/* tally record --switch-output: when a further file is due, and which ones are kept. */
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../cli/record.h"
#include "../../cli/term.h"
#include "tap.h"

#define SECOND 1000000000ull

static char said[512];

void complain(const char *command, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(said, sizeof(said), fmt, ap);
	va_end(ap);
}

static struct rotation parse(const char *text, uint64_t files)
{
	struct record_options o = { .switch_output = text, .max_files = files };
	struct rotation r;

	check(rotation_parse(&r, &o));
	return r;
}

static void thresholds_have_units(void)
{
	static const struct {
		const char *text;
		uint64_t bytes, period_ns;
	} cases[] = {
		{ "", 0, 0 },
		{ "signal", 0, 0 },
		{ "10B", 10, 0 },
		{ "3K", 3072, 0 },
		{ "100M", 104857600, 0 },
		{ "2G", 2147483648, 0 },
		{ "30s", 0, 30 * SECOND },
		{ "2m", 0, 120 * SECOND },
		{ "1h", 0, 3600 * SECOND },
		{ "1d", 0, 86400 * SECOND },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct rotation r = parse(cases[i].text, 0);
		check(r.wanted);
		check_u64(r.bytes, cases[i].bytes);
		check_u64(r.period_ns, cases[i].period_ns);
	}
	check(!parse(NULL, 0).wanted);
}

static void other_texts_are_refused(void)
{
	static const char *const texts[] = { "x",    "10",   "10x",
					     "0s",   "M",    "-1s",
					     "10Ms", "1.5s", "99999999999999999999d" };
	struct rotation r;

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct record_options o = { .switch_output = texts[i] };
		said[0] = '\0';
		check(!rotation_parse(&r, &o));
		check_has(said, texts[i]);
	}
}

static void due_by_what_came_since_the_last(void)
{
	struct rotation size = parse("1K", 0), period = parse("1s", 0);

	check(!rotation_due(&size, 1023, 0));
	check(rotation_due(&size, 1024, 0));
	size.bytes_before = 1024;
	check(!rotation_due(&size, 2047, 0));
	check(rotation_due(&size, 2048, 0));
	period.since_ns = 5 * SECOND;
	check(!rotation_due(&period, 1u << 30, 6 * SECOND - 1));
	check(rotation_due(&period, 0, 6 * SECOND));
}

static void the_oldest_go_first(void)
{
	char folder[] = "/tmp/tally-rotate-XXXXXX", path[64];
	struct rotation r = parse("signal", 2);
	const char *name;
	char *names[3] = { 0 };

	require(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/f", folder);
	for (int i = 0; i < 3; i++) {
		require(rotation_name(&r, path, 10, 20, &name) == 0);
		names[i] = strdup(name);
		check(!strncmp(name, path, strlen(path)));
		check_int(strlen(name), strlen(path) + 1 + 16);
		check_int(access(name, F_OK), -1); /* each has a name that is new */
		FILE *made = fopen(name, "w");
		require(made);
		fclose(made);
		rotation_trim(&r);
	}
	check_u64(r.bytes_before, 10);
	check_u64(r.since_ns, 20);
	check_int(access(names[0], F_OK), -1);
	check_int(access(names[1], F_OK), 0);
	check_int(access(names[2], F_OK), 0);
	rotation_free(&r);
	for (int i = 0; i < 3; i++) {
		unlink(names[i]);
		free(names[i]);
	}
	rmdir(folder);
}

int main(void)
{
	tap_run(thresholds_have_units);
	tap_run(other_texts_are_refused);
	tap_run(due_by_what_came_since_the_last);
	tap_run(the_oldest_go_first);
	return tap_end();
}
