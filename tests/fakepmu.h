/* SPDX-License-Identifier: MIT */
/*
 * The PMUs of machines that are not here, as their kernels show them in sysfs: the files'
 * contents are those that the drivers (arch/x86/events, drivers/perf, arch/powerpc/perf) print.
 */
#ifndef TESTS_FAKEPMU_H
#define TESTS_FAKEPMU_H

#include "fakeroot.h"

#define DEVICES "/sys/bus/event_source/devices/"

struct fakefile {
	const char *path, *text; /* below DEVICES; a text without its newline */
};

/* AMD family 17h: the event has its bits in two places. */
static const struct fakefile fake_amd[] = {
	{ "cpu/type", "4" },
	{ "cpu/format/event", "config:0-7,32-35" },
	{ "cpu/format/umask", "config:8-15" },
	{ "cpu/format/edge", "config:18" },
	{ "cpu/format/inv", "config:23" },
	{ "cpu/format/cmask", "config:24-31" },
	{ "cpu/events/cpu-cycles", "event=0x76" },
	{ "cpu/events/cache-misses", "event=0x64,umask=0x09" },
	{ "ibs_op/type", "9" },
	{ "ibs_op/format/cnt_ctl", "config:19" },
	{ "amd_l3/type", "12" },
	{ "amd_l3/cpumask", "0,4" },
	{ "amd_l3/format/event", "config:0-7" },
	{ "amd_l3/format/threadmask", "config:56-63" },
	{ "software/type", "1" },
	{ NULL, NULL },
};

/* Two sockets of an Intel server. */
static const struct fakefile fake_server[] = {
	{ "cpu/type", "4" },
	{ "cpu/format/event", "config:0-7" },
	{ "cpu/format/umask", "config:8-15" },
	{ "cpu/format/any", "config:21" },
	{ "cpu/format/cmask", "config:24-31" },
	{ "cpu/format/ldlat", "config1:0-15" },
	{ "cpu/format/offcore_rsp", "config1:0-63" },
	{ "cpu/events/cpu-cycles", "event=0x3c" },
	{ "cpu/events/instructions", "event=0xc0" },
	{ "cpu/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3" },
	{ "cpu/events/topdown-slots-issued", "event=0x0e,umask=0x01" },
	{ "cpu/events/topdown-slots-issued.scale", "4" },
	{ "msr/type", "10" },
	{ "msr/format/event", "config:0-63" },
	{ "msr/events/tsc", "event=0x00" },
	{ "power/type", "11" },
	{ "power/cpumask", "0,28" },
	{ "power/format/event", "config:0-7" },
	{ "power/events/energy-pkg", "event=0x02" },
	{ "power/events/energy-pkg.scale", "2.3283064365386962890625e-10" },
	{ "power/events/energy-pkg.unit", "Joules" },
	{ "power/events/energy-ram", "event=0x03" },
	{ "power/events/energy-ram.scale", "1.5258789062500000000000e-05" },
	{ "power/events/energy-ram.unit", "Joules" },
	{ "uncore_imc_0/type", "20" },
	{ "uncore_imc_0/cpumask", "0,28" },
	{ "uncore_imc_0/format/event", "config:0-7" },
	{ "uncore_imc_0/format/umask", "config:8-15" },
	{ "uncore_imc_0/events/clockticks", "event=0xff,umask=0x00" },
	{ "uncore_imc_0/events/cas_count_read", "event=0x04,umask=0x03" },
	{ "uncore_imc_0/events/cas_count_read.scale", "6.103515625e-5" },
	{ "uncore_imc_0/events/cas_count_read.unit", "MiB" },
	{ "uncore_imc_2/type", "22" },
	{ "uncore_imc_2/cpumask", "0,28" },
	{ "uncore_imc_2/format/event", "config:0-7" },
	{ "uncore_imc_2/format/umask", "config:8-15" },
	{ "uncore_imc_2/events/clockticks", "event=0xff,umask=0x00" },
	{ "uncore_imc_2/events/cas_count_read", "event=0x04,umask=0x03" },
	{ "uncore_imc_2/events/cas_count_read.scale", "6.103515625e-5" },
	{ "uncore_imc_2/events/cas_count_read.unit", "MiB" },
	{ "uncore_imc_10/type", "30" },
	{ "uncore_imc_10/cpumask", "0,28" },
	{ "uncore_imc_10/format/event", "config:0-7" },
	{ "uncore_imc_10/format/umask", "config:8-15" },
	{ "uncore_imc_10/events/clockticks", "event=0xff,umask=0x00" },
	{ "uncore_imc_10/events/cas_count_read", "event=0x04,umask=0x03" },
	{ "uncore_imc_10/events/cas_count_read.scale", "6.103515625e-5" },
	{ "uncore_imc_10/events/cas_count_read.unit", "MiB" },
	{ "uncore_imc_free_running_0/type", "40" },
	{ "uncore_imc_free_running_0/cpumask", "0,28" },
	{ "uncore_imc_free_running_0/format/event", "config:0-7" },
	{ "uncore_imc_free_running_0/format/umask", "config:8-15" },
	{ "uncore_imc_free_running_0/events/read", "event=0xff,umask=0x20" },
	{ "uncore_cha_0/type", "50" },
	{ "uncore_cha_0/cpumask", "0,28" },
	{ "uncore_cha_0/format/event", "config:0-7" },
	{ "uncore_cha_0/format/umask", "config:8-15,32-55" },
	{ "uncore_cha_0/events/clockticks", "event=0x01" },
	{ "uncore_cha_1/type", "51" },
	{ "uncore_cha_1/cpumask", "0,28" },
	{ "uncore_cha_1/format/event", "config:0-7" },
	{ "uncore_cha_1/format/umask", "config:8-15,32-55" },
	{ "uncore_cha_1/events/clockticks", "event=0x01" },
	{ "uncore_upi_0/type", "60" },
	{ "uncore_upi_0/cpumask", "" },
	{ "software/type", "1" },
	{ NULL, NULL },
};

/* Alder Lake: performance and efficient cores. */
static const struct fakefile fake_hybrid[] = {
	{ "cpu_atom/type", "10" },
	{ "cpu_atom/cpus", "16-23" },
	{ "cpu_atom/format/event", "config:0-7" },
	{ "cpu_atom/format/umask", "config:8-15" },
	{ "cpu_atom/format/ldlat", "config1:0-15" },
	{ "cpu_atom/events/mem-loads", "event=0xd0,umask=0x5,ldlat=3" },
	{ "cpu_atom/events/topdown-bad-spec", "event=0x73,umask=0x0" },
	{ "cpu_core/type", "4" },
	{ "cpu_core/cpus", "0-15" },
	{ "cpu_core/format/event", "config:0-7" },
	{ "cpu_core/format/umask", "config:8-15" },
	{ "cpu_core/format/ldlat", "config1:0-15" },
	{ "cpu_core/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3" },
	{ "cpu_core/events/topdown-bad-spec", "event=0x00,umask=0x81" },
	{ "cpu_core/events/slots", "event=0x00,umask=0x4" },
	{ "power/type", "24" },
	{ "power/cpumask", "0" },
	{ "power/format/event", "config:0-7" },
	{ "software/type", "1" },
	{ NULL, NULL },
};

/* An arm64 phone: four small cores, two big ones. */
static const struct fakefile fake_biglittle[] = {
	{ "armv8_cortex_a53/type", "8" },
	{ "armv8_cortex_a53/cpus", "0-3" },
	{ "armv8_cortex_a53/format/event", "config:0-15" },
	{ "armv8_cortex_a53/format/long", "config1:0" },
	{ "armv8_cortex_a53/events/cpu_cycles", "event=0x0011" },
	{ "armv8_cortex_a53/events/l2d_cache", "event=0x0016" },
	{ "armv8_cortex_a72/type", "9" },
	{ "armv8_cortex_a72/cpus", "4-5" },
	{ "armv8_cortex_a72/format/event", "config:0-15" },
	{ "armv8_cortex_a72/format/long", "config1:0" },
	{ "armv8_cortex_a72/events/cpu_cycles", "event=0x0011" },
	{ "armv8_cortex_a72/events/l2d_cache", "event=0x0016" },
	{ "arm_spe_0/type", "12" },
	{ "arm_spe_0/cpumask", "0-5" },
	{ "arm_spe_0/format/min_latency", "config2:0-11" },
	{ "arm_spe_0/format/inv_event_filter", "config3:0-63" },
	{ "software/type", "1" },
	{ NULL, NULL },
};

/* POWER: events with parameters. The other folders test what no driver should write. */
static const struct fakefile fake_odd[] = {
	{ "hv_24x7/type", "7" },
	{ "hv_24x7/format/domain", "config:0-3" },
	{ "hv_24x7/format/core", "config:16-31" },
	{ "hv_24x7/format/offset", "config:32-63" },
	{ "hv_24x7/format/lpar", "config1:0-15" },
	{ "hv_24x7/events/CPM_CCYC", "domain=0x2,offset=0x78,core=?,lpar=0x0" },
	{ "odd/type", "99" },
	{ "odd/format/newest", "config4:0-63" },
	{ "odd/format/high", "config:63" },
	{ "odd/format/beyond", "config:60-64" },
	{ "odd/format/nowhere", "config9:0" },
	{ "odd/format/reversed", "config:7-0" },
	{ "odd/format/empty", "" },
	{ "odd/format/prose", "the event" },
	{ "odd/format/tail", "config:0-7 " },
	{ "odd/events/unknown-term", "evnt=1" },
	{ "odd/events/no-number", "high=x" },
	{ "odd/events/too-big", "high=2" },
	{ "odd/events/bad-scale", "high=1" },
	{ "odd/events/bad-scale.scale", "1,5" },
	{ "odd/events/negative-scale", "high=1" },
	{ "odd/events/negative-scale.scale", "-1" },
	{ "odd/events/level", "high" },
	{ "odd/events/level.scale", "0.5" },
	{ "odd/events/level.unit", "C" },
	{ "odd/events/level.snapshot", "1" },
	{ "odd/events/level.per-pkg", "1" },
	{ "odd/events/nothing", "" },
	{ "broken/type", "x" },
	{ "offline/type", "98" },
	{ "offline/cpumask", "" },
	{ NULL, NULL },
};

static inline bool fakepmu_make(struct fakeroot *root, const struct fakefile *files)
{
	char path[256], text[256];

	if (!fakeroot_make(root))
		return false;
	for (; files->path; files++) {
		snprintf(path, sizeof(path), DEVICES "%s", files->path);
		snprintf(text, sizeof(text), "%s\n", files->text);
		if (!fakeroot_file(root, path, text))
			return false;
	}
	return true;
}

#endif
