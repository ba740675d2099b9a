/* SPDX-License-Identifier: MIT */
/* tally record -D: which texts are times, and when events are on by them. */
#include "../../cli/record.h"
#include "tap.h"

static void one_number_is_a_delay(void)
{
	struct schedule s;
	bool on = false;

	check(schedule_parse(&s, "300"));
	check(s.starts_off);
	check(!schedule_due(&s, 299, &on));
	check_int(schedule_wait(&s, 250, 100), 50);
	check_int(schedule_wait(&s, 0, 100), 100);
	check(schedule_due(&s, 300, &on));
	check(on);
	check(!schedule_due(&s, 1000, &on));
	check_int(schedule_wait(&s, 1000, 100), 100);
}

static void ranges_are_on_in_between(void)
{
	struct schedule s;
	bool on = false;

	check(schedule_parse(&s, "10-20,30-40"));
	check(s.starts_off);
	check(schedule_due(&s, 25, &on) && on);
	check(schedule_due(&s, 25, &on) && !on);
	check(!schedule_due(&s, 25, &on));
	check(schedule_due(&s, 30, &on) && on);
	check(schedule_due(&s, 41, &on) && !on);
}

static void nothing_is_on_at_once(void)
{
	static const char *const texts[] = { NULL, "0" };
	struct schedule s;
	bool on;

	for (size_t i = 0; i < 2; i++) {
		check(schedule_parse(&s, texts[i]));
		check(!s.starts_off);
		check(!schedule_due(&s, 5, &on));
	}
}

static void minus_one_waits_for_others(void)
{
	struct schedule s;
	bool on;

	check(schedule_parse(&s, "-1"));
	check(s.starts_off);
	check(!schedule_due(&s, UINT64_MAX, &on));
}

static void other_texts_are_refused(void)
{
	static const char *const texts[] = {
		"",      "x",        "-2",       "5x",         "10-",
		"20-10", "10-10",    "10-20,",   "10-20,15",   "10-20,15-30",
		"10,20", "10-20-30", "10-20,30", "4000000000", "99999999999999999999",
	};
	struct schedule s;

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (!check(!schedule_parse(&s, texts[i])))
			printf("# '%s' was taken\n", texts[i]);
}

int main(void)
{
	tap_run(one_number_is_a_delay);
	tap_run(ranges_are_on_in_between);
	tap_run(nothing_is_on_at_once);
	tap_run(minus_one_waits_for_others);
	tap_run(other_texts_are_refused);
	return tap_end();
}
