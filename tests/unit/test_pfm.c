/* SPDX-License-Identifier: MIT */
/* pfm without libpfm4: which words are worth loading it for, and what is said when it is missing. */
#include <errno.h>

#include "event/pfm.h"
#include "tap.h"

static struct tally_error err;

static void words_that_look_like_a_vendors(void)
{
	static const struct {
		const char *word;
		bool could;
	} rows[] = {
		{ "skl::MEM_LOAD_RETIRED:L3_MISS", true },
		{ "skl::mem_load_retired:l3_miss", true },
		{ "MEM_LOAD_RETIRED.L3_MISS", true },
		{ "mem_load_retired.l3_miss", true },
		{ "INST_RETIRED", true },
		{ "UOPS_ISSUED:ANY:c=4:i", true },
		{ "cycles", false },
		{ "cycels:u", false },
		{ "page_faults", false },
		{ "sched:sched_switch", false },
		{ "L1-dcache-lods", false },
		{ "CYCLES", false },
		{ "r1A2", false },
		{ "R1A2", false },
		{ "", false },
		{ "::", false },
		{ "1.5", false },
		{ "A_B/c/", false },
		{ "A_\xc3\xa4", false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!check(pfm_could_know(rows[i].word, strlen(rows[i].word)) == rows[i].could))
			printf("# %s\n", rows[i].word);
}

static void a_library_that_is_not_there(void)
{
	struct tally_attr attr;

	check_int(pfm_encode("libpfm-of-nobody.so.4", "INST_RETIRED", &attr, &err), -ENOENT);
	check_int(err.cause, TALLY_CAUSE_NO_FILE);
	check_str(err.text, "libpfm-of-nobody.so.4 is not installed: 'apt install libpfm4'");
}

static void a_library_that_is_another(void)
{
	struct tally_attr attr;

	check_int(pfm_encode("libc.so.6", "INST_RETIRED", &attr, &err), -EINVAL);
	check_has(err.text, "libc.so.6 is no libpfm4");
}

/* What runs here says nothing of the machine below another root. */
static void another_machine_is_not_asked(void)
{
	static const char word[] = "skl::INST_RETIRED";
	struct naming n = { .text = word, .root = "/nonexistent", .err = &err };
	struct found out = { 0 };

	check_int(resolve_pfm(&n, word, sizeof(word) - 1, &out), 0);
	check_int(resolve(&n, word, sizeof(word) - 1, &out), -EINVAL);
	check_has(err.text, "column 1: there is no event 'skl'");
	found_done(&out);
}

/* After a nearest name there is no room for doubt; without one there is a hint. */
static void a_hint_for_words_of_vendors(void)
{
	static const struct {
		const char *word;
		bool hint;
	} rows[] = {
		{ "OFFCORE_REQUESTS_OUTSTANDING.DEMAND_DATA_RD", true },
		{ "something-quite-different", false },
	};
	struct found out = { 0 };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct naming n = { .text = rows[i].word, .root = "/nonexistent", .err = &err };
		check_int(resolve(&n, rows[i].word, strlen(rows[i].word), &out), -EINVAL);
		check((strstr(err.text, "libpfm4") != NULL) == rows[i].hint);
	}
	found_done(&out);
}

int main(void)
{
	tap_run(words_that_look_like_a_vendors);
	tap_run(a_library_that_is_not_there);
	tap_run(a_library_that_is_another);
	tap_run(another_machine_is_not_asked);
	tap_run(a_hint_for_words_of_vendors);
	return tap_end();
}
