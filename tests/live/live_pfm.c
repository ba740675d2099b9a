/* SPDX-License-Identifier: MIT */
/*
 * Vendors' names by the libpfm4 that is installed, made to believe that it runs on a Skylake. The
 * numbers are those of Intel's manual (SDM volume 3B, events of the Skylake microarchitecture), in the
 * layout of IA32_PERFEVTSELx that Linux's cpu PMU shares.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include <tally/tally.h>

#include "tap.h"

#define CMASK(n) ((uint64_t)(n) << 24)
#define INVERT   (1ull << 23)

static struct tally_error err;

static bool present(void)
{
	void *library = dlopen("libpfm.so.4", RTLD_LAZY | RTLD_LOCAL);

	if (library)
		dlclose(library);
	return library != NULL;
}

static int parse(const char *text, struct tally_attr *attr)
{
	struct tally_events *events;
	int r = tally_events_parse(&events, text, NULL, &err);

	if (r < 0)
		return r;
	*attr = *tally_event_attr(tally_events_at(events, 0));
	if (tally_events_count(events) != 1)
		r = -1;
	tally_events_free(events);
	return r;
}

static void names_of_skylake(void)
{
	static const struct {
		const char *name;
		uint64_t config, config1, flags;
	} rows[] = {
		{ "skl::MEM_LOAD_RETIRED:L3_MISS", 0x20d1, 0, 0 },
		{ "MEM_LOAD_RETIRED:L3_MISS", 0x20d1, 0, 0 },
		{ "MEM_LOAD_RETIRED.L3_MISS", 0x20d1, 0, 0 },
		{ "mem_load_retired.l3_miss", 0x20d1, 0, 0 },
		{ "skl::MEM_LOAD_RETIRED:L3_MISS:u", 0x20d1, 0,
		  TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_HV },
		{ "MEM_LOAD_RETIRED.L3_MISS:k", 0x20d1, 0,
		  TALLY_ATTR_EXCLUDE_USER | TALLY_ATTR_EXCLUDE_HV },
		{ "BR_INST_RETIRED:u", 0xc4, 0, TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_HV },
		{ "UOPS_ISSUED:ANY:c=4:i", 0x010e | CMASK(4) | INVERT, 0, 0 },
		{ "MEM_TRANS_RETIRED:LOAD_LATENCY:ldlat=100", 0x01cd, 100, 0 },
	};
	struct tally_attr attr;

	if (!present())
		tap_skip("libpfm4 is not installed");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (!check_int(parse(rows[i].name, &attr), 0)) {
			printf("# %s: %s\n", rows[i].name, err.text);
			continue;
		}
		check_u64(attr.type, TALLY_TYPE_RAW);
		check_u64(attr.config, rows[i].config);
		check_u64(attr.config1, rows[i].config1);
		check_u64(attr.flags, rows[i].flags | TALLY_ATTR_EXCLUDE_GUEST);
	}
}

static void what_libpfm_refuses(void)
{
	static const struct {
		const char *name, *part;
	} rows[] = {
		{ "skl::MEM_LOAD_RETIRED:NO_SUCH",
		  "libpfm4 says of 'skl::MEM_LOAD_RETIRED:NO_SUCH'" },
		{ "skl::NO_SUCH_EVENT", "libpfm4 has no event 'skl::NO_SUCH_EVENT' for this CPU" },
		{ "cycles,amd64_fam17h_zen2::RETIRED_INSTRUCTIONS",
		  "column 8: libpfm4 has no event" },
		{ "INST_RETIRED:u:c=1", "modes of an event come last" },
		{ "NO_SUCH_EVENT_AT_ALL.ANYWHERE",
		  "there is no event 'NO_SUCH_EVENT_AT_ALL.ANYWHERE'" },
	};
	struct tally_attr attr;

	if (!present())
		tap_skip("libpfm4 is not installed");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		check_int(parse(rows[i].name, &attr), -EINVAL);
		check_has(err.text, rows[i].part);
	}
}

/* Whose name libpfm4 knows too stays the kernel's. */
static void generic_names_stay_the_kernels(void)
{
	struct tally_attr attr = { 0 };

	check_int(parse("cycles", &attr), 0);
	check_u64(attr.type, TALLY_TYPE_HARDWARE);
	check_int(parse("PERF_COUNT_HW_CPU_CYCLES", &attr), -EINVAL);
}

static void *parse_often(void *arg)
{
	struct tally_attr attr = { 0 };
	intptr_t bad = 0;

	(void)arg;
	for (int i = 0; i < 20; i++) {
		struct tally_events *events;
		struct tally_error why;
		int r = tally_events_parse(&events, "skl::MEM_LOAD_RETIRED:L3_MISS", NULL, &why);
		if (r == 0) {
			attr = *tally_event_attr(tally_events_at(events, 0));
			tally_events_free(events);
		}
		bad += r != 0 || attr.config != 0x20d1;
	}
	return (void *)bad;
}

/* libpfm4 has no lock of its own. */
static void threads_may_parse_at_once(void)
{
	pthread_t threads[4];
	void *bad;

	if (!present())
		tap_skip("libpfm4 is not installed");
	for (int i = 0; i < 4; i++)
		require(pthread_create(&threads[i], NULL, parse_often, NULL) == 0);
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], &bad);
		check_int((intptr_t)bad, 0);
	}
}

/* A program's own use of libpfm4 goes on: its tables are not taken away. */
static void a_program_that_uses_it_itself(void)
{
	void *library = dlopen("libpfm.so.4", RTLD_LAZY | RTLD_LOCAL);
	struct tally_attr attr;
	int (*initialize)(void);
	int (*find_event)(const char *name);

	if (!library)
		tap_skip("libpfm4 is not installed");
	void *symbols[] = { dlsym(library, "pfm_initialize"), dlsym(library, "pfm_find_event") };
	require(symbols[0] && symbols[1]);
	memcpy(&initialize, &symbols[0], sizeof(initialize));
	memcpy(&find_event, &symbols[1], sizeof(find_event));
	check_int(initialize(), 0);
	check(find_event("skl::INST_RETIRED") >= 0);
	check_int(parse("skl::MEM_LOAD_RETIRED:L3_MISS", &attr), 0);
	check(find_event("skl::INST_RETIRED") >= 0);
	/* It stays: what pfm_initialize() allocated belongs to the program. */
}

int main(void)
{
	setenv("LIBPFM_FORCE_PMU", "skl", 1);
	tap_run(names_of_skylake);
	tap_run(what_libpfm_refuses);
	tap_run(generic_names_stay_the_kernels);
	tap_run(threads_may_parse_at_once);
	tap_run(a_program_that_uses_it_itself);
	return tap_end();
}
