/* SPDX-License-Identifier: MIT */
/* pmu: what sysfs says of PMUs. */
#include <errno.h>
#include <locale.h>

#include "event/pmu.h"
#include "fakepmu.h"
#include "tap.h"

static struct fakeroot root;

static void fields_are_bits_of_a_word(void)
{
	static const struct {
		const char *text;
		uint32_t word;
		uint64_t bits;
	} good[] = {
		{ "config:0-7", 0, 0xff },
		{ "config:0-7,32-35", 0, 0xf000000ff },
		{ "config:8-15,32-55", 0, 0xffffff0000ff00 },
		{ "config:18", 0, 1u << 18 },
		{ "config:0-63", 0, UINT64_MAX },
		{ "config:63", 0, 1ull << 63 },
		{ "config1:0-15", 1, 0xffff },
		{ "config2:0-11", 2, 0xfff },
		{ "config3:0-63", 3, UINT64_MAX },
		{ "config4:5,7,9-10", 4, 0x6a0 },
	};
	static const char *const bad[] = {
		"",           "config",       "config:",
		"config:64",  "config:0-64",  "config:7-0",
		"config5:0",  "config9:0-3",  "config:0-",
		"config:0,",  "config:,1",    "config:0-7 ",
		"config: 0",  "Config:0",     "config:0x1",
		"config:-1",  "event",        "config1",
		"config10:0", "config:0-7;8", "config:0000",
	};
	struct pmu_field field;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		if (!pmu_parse_field(&field, good[i].text))
			check_str("refused", good[i].text);
		check_int(field.word, good[i].word);
		check_u64(field.bits, good[i].bits);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (pmu_parse_field(&field, bad[i]))
			check_str("taken", bad[i]);
}

/* perf-list(1): a name without its number, and without uncore_, means all of its boxes. */
static void names_mean_boxes(void)
{
	static const struct {
		const char *name, *pattern;
		bool meant;
	} pairs[] = {
		{ "uncore_imc_0", "uncore_imc_0", true },
		{ "uncore_imc_0", "uncore_imc", true },
		{ "uncore_imc_10", "uncore_imc", true },
		{ "uncore_imc_10", "imc", true },
		{ "uncore_imc_10", "imc_10", true },
		{ "uncore_imc_10", "uncore_imc_1", false },
		{ "uncore_imc_0", "uncore_im", false },
		{ "uncore_imc_0", "uncore_", false },
		{ "uncore_imc_0", "uncore", false },
		{ "uncore_imc", "uncore_imc", true },
		{ "uncore_imc_free_running_0", "uncore_imc", false },
		{ "uncore_imc_free_running_0", "uncore_imc_free_running", true },
		{ "uncore_imc_0", "uncore_*", true },
		{ "uncore_imc_0", "imc*", true },
		{ "uncore_imc_0", "uncore_[a-h]*", false },
		{ "cpu_core", "cpu", false },
		{ "cpu_atom", "cpu", false },
		{ "cpum_cf", "cpum", false },
		{ "armv8_pmuv3_0", "armv8_pmuv3", true },
		{ "armv8_cortex_a53", "armv8_cortex_a5", false },
		{ "hisi_sccl1_ddrc0", "hisi_sccl1_ddrc", true },
		{ "smmuv3_pmcg_2b402", "smmuv3_pmcg", true },
		{ "msr", "MSR", false },
		{ "msr", "", false },
	};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		if (pmu_is_meant(pairs[i].name, pairs[i].pattern) != pairs[i].meant)
			check_str(pairs[i].pattern, pairs[i].name);
	check_int(pmu_base_length("uncore_imc_10"), 10);
	check_int(pmu_base_length("cpu_core"), 8);
	check_int(pmu_base_length("0"), 1);
	check_int(pmu_base_length("_0"), 2);
	check_int(pmu_base_length(""), 0);
}

static void boxes_are_found_in_the_order_of_their_numbers(void)
{
	pmus list = { 0 };

	require(fakepmu_make(&root, fake_server));
	require(pmus_find(&list, root.path, "uncore_imc") == 0);
	require(list.count == 3);
	check_str(list.at[0].name, "uncore_imc_0");
	check_str(list.at[1].name, "uncore_imc_2");
	check_str(list.at[2].name, "uncore_imc_10");
	check_int(list.at[2].type, 30);
	check(list.at[0].per_cpu && !list.at[0].core);
	require(list.at[0].cpu_count == 2);
	check_int(list.at[0].cpus[0], 0);
	check_int(list.at[0].cpus[1], 28);
	pmus_done(&list);
	/* No CPU of it is online. */
	check_int(pmus_find(&list, root.path, "uncore_upi"), 0);
	check_int(list.count, 0);
	check_int(pmus_find(&list, root.path, NULL), 0);
	require(list.count == 1);
	check_str(list.at[0].name, "cpu");
	check(list.at[0].core && !list.at[0].per_cpu && !list.at[0].cpus);
	pmus_done(&list);
	fakeroot_remove(&root);
}

static void cores_of_two_kinds(void)
{
	pmus list = { 0 };

	require(fakepmu_make(&root, fake_biglittle));
	require(pmus_find(&list, root.path, NULL) == 0);
	require(list.count == 2);
	check_str(list.at[1].name, "armv8_cortex_a72");
	check(list.at[1].core && !list.at[1].per_cpu);
	require(list.at[1].cpu_count == 2);
	check_int(list.at[1].cpus[0], 4);
	pmus_done(&list);
	fakeroot_remove(&root);
}

static void what_cannot_be_read_is_told(void)
{
	struct pmu_field field;
	struct pmu_alias alias;
	pmus list = { 0 };

	require(fakepmu_make(&root, fake_odd));
	check_int(pmus_find(&list, root.path, "broken"), -EINVAL);
	check_str(list.at[0].name, "broken");
	pmus_done(&list);
	check_int(pmu_field(&field, root.path, "odd", "prose"), -EINVAL);
	check_int(pmu_field(&field, root.path, "odd", "none"), -ENOENT);
	check_int(pmu_field(&field, root.path, "odd", "../type"), -ENOENT);
	check_int(pmu_field(&field, root.path, "../devices/odd", "high"), -ENOENT);
	check_int(pmu_field(&field, root.path, "odd", ""), -ENOENT);
	check_int(pmu_field(&field, root.path, "odd", "tail"), 0);
	check_int(pmu_alias(&alias, root.path, "odd", "bad-scale"), -EINVAL);
	check_int(pmu_alias(&alias, root.path, "odd", "negative-scale"), -EINVAL);
	check_int(pmu_alias(&alias, root.path, "odd", "level.unit"), -ENOENT);
	check_int(pmu_alias(&alias, root.path, "odd", "none"), -ENOENT);
	check_int(pmus_find(&list, "/nonexistent", NULL), 0);
	check_int(list.count, 0);
	fakeroot_remove(&root);
}

static void an_alias_has_scale_and_unit(void)
{
	struct pmu_alias alias;

	require(fakepmu_make(&root, fake_odd));
	require(pmu_alias(&alias, root.path, "odd", "LEVEL") == 0);
	check_str(alias.terms, "high");
	check(alias.scale == 0.5);
	check_str(alias.unit, "C");
	check(alias.snapshot && alias.per_package);
	require(pmu_alias(&alias, root.path, "hv_24x7", "CPM_CCYC") == 0);
	check(alias.scale == 1.0);
	check(!alias.unit[0] && !alias.snapshot && !alias.per_package);
	fakeroot_remove(&root);
}

/* Where a number has a comma for a point. Skipped where no such locale is installed. */
static void scales_are_read_in_any_locale(void)
{
	static const char *const commas[] = { "de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR" };
	struct pmu_alias alias;
	bool set = false;

	for (size_t i = 0; !set && i < sizeof(commas) / sizeof(commas[0]); i++)
		set = setlocale(LC_NUMERIC, commas[i]) != NULL;
	if (!set)
		tap_skip("no locale with a decimal comma is installed");
	require(fakepmu_make(&root, fake_odd));
	check_int(pmu_alias(&alias, root.path, "odd", "level"), 0);
	check(alias.scale == 0.5);
	setlocale(LC_NUMERIC, "C");
	fakeroot_remove(&root);
}

static void files_beside_an_event_are_no_events(void)
{
	struct proc_names names;

	require(fakepmu_make(&root, fake_server));
	require(pmu_aliases(&names, root.path, "power") == 0);
	require(names.count == 2);
	check_str(names.at[0], "energy-pkg");
	check_str(names.at[1], "energy-ram");
	proc_names_done(&names);
	check(pmu_has_alias(root.path, "power", "energy-pkg"));
	check(pmu_has_alias(root.path, "power", "ENERGY-pkg"));
	check(!pmu_has_alias(root.path, "power", "energy-pkg.unit"));
	check(!pmu_has_alias(root.path, "power", "energy"));
	fakeroot_remove(&root);
}

int main(void)
{
	tap_run(fields_are_bits_of_a_word);
	tap_run(names_mean_boxes);
	tap_run(boxes_are_found_in_the_order_of_their_numbers);
	tap_run(cores_of_two_kinds);
	tap_run(what_cannot_be_read_is_told);
	tap_run(an_alias_has_scale_and_unit);
	tap_run(scales_are_read_in_any_locale);
	tap_run(files_beside_an_event_are_no_events);
	return tap_end();
}
