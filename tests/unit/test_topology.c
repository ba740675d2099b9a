/* SPDX-License-Identifier: MIT */
/*
 * What tells how a machine is built, of one made up: two cores of two kinds, a node whose memory has a
 * hole, PMUs that say what they can. The layouts are those of perf.data-file-format.txt.
 */
#include <stdlib.h>
#include <unistd.h>

#include <tally/reader.h>
#include <tally/writer.h>

#include "fakeroot.h"
#include "handmade.h"
#include "tap.h"

static char dir[] = "/tmp/tally-topology-XXXXXX";
static char path[64];

static struct tally_reader *describe(const struct fakeroot *root)
{
	struct tally_writer *w = NULL;
	struct tally_reader *r = NULL;
	struct tally_attr attr;

	tally_attr_init(&attr, TALLY_TYPE_SOFTWARE, TALLY_SW_CPU_CLOCK);
	if (tally_writer_open(&w, path, TALLY_OPTS(writer, .flags = TALLY_WRITER_NO_OLD), NULL) < 0)
		return NULL;
	check_int(tally_writer_event(w, "cpu-clock", &attr, NULL, 0, NULL), 0);
	check_int(tally_writer_describe_machine(w, root->path), 0);
	check_int(tally_writer_begin(w, NULL), 0);
	check_int(tally_writer_finish(w, NULL), 0);
	tally_writer_close(w);
	check_int(tally_reader_open(&r, path, NULL, NULL), 0);
	unlink(path);
	return r;
}

static void check_feature(const struct tally_reader *r, uint32_t feature, struct handmade *want)
{
	const void *bytes = NULL;
	uint64_t len = 0;

	check_int(tally_reader_feature(r, feature, &bytes, &len), 1);
	check_u64(len, want->len);
	if (bytes && len == want->len)
		check_mem(bytes, want->at, len);
	want->len = 0;
}

static void put_cpu(const struct fakeroot *root, int cpu, const char *core, const char *die)
{
	const struct {
		const char *file, *text;
	} files[] = {
		{ "topology/core_siblings_list", "0-1\n" },
		{ "topology/thread_siblings_list", core },
		{ "topology/core_id", core },
		{ "topology/physical_package_id", "0\n" },
		{ "topology/die_cpus_list", "0-1\n" },
		{ "topology/die_id", die },
		{ "cache/index0/level", "2\n" },
		{ "cache/index0/coherency_line_size", "64\n" },
		{ "cache/index0/number_of_sets", "1024\n" },
		{ "cache/index0/ways_of_associativity", "8\n" },
		{ "cache/index0/type", "Unified\n" },
		{ "cache/index0/size", "512K\n" },
		{ "cache/index0/shared_cpu_list", "0-1\n" },
		{ "cache/index1/level", "1\n" },
		{ "cache/index1/coherency_line_size", "64\n" },
		{ "cache/index1/number_of_sets", "64\n" },
		{ "cache/index1/ways_of_associativity", "12\n" },
		{ "cache/index1/type", "Data\n" },
		{ "cache/index1/size", "48K\n" },
		{ "cache/index1/shared_cpu_list", core },
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		char full[128];
		snprintf(full, sizeof(full), "/sys/devices/system/cpu/cpu%d/%s", cpu,
			 files[i].file);
		check(fakeroot_file(root, full, files[i].text));
	}
}

static void put_machine(const struct fakeroot *root)
{
	static const char *const files[][2] = {
		{ "/sys/devices/system/cpu/present", "0-1\n" },
		{ "/sys/devices/system/node/node3/meminfo",
		  "Node 3 MemTotal:       4000 kB\nNode 3 MemFree:        1000 kB\n" },
		{ "/sys/devices/system/node/node3/cpulist", "0-1\n" },
		{ "/sys/devices/system/node/node3/memory0/state", "online\n" },
		{ "/sys/devices/system/node/node3/memory65/state", "online\n" },
		{ "/sys/devices/system/memory/block_size_bytes", "8000000\n" },
		{ "/sys/bus/event_source/devices/cpu/type", "4\n" },
		{ "/sys/bus/event_source/devices/cpu/caps/max_precise", "3\n" },
		{ "/sys/bus/event_source/devices/cpu_atom/type", "10\n" },
		{ "/sys/bus/event_source/devices/cpu_atom/cpus", "1\n" },
		{ "/sys/bus/event_source/devices/cpu_atom/caps/branches", "32\n" },
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		check(fakeroot_file(root, files[i][0], files[i][1]));
	put_cpu(root, 0, "0\n", "7\n");
	put_cpu(root, 1, "1\n", "7\n");
}

static void put_cache(struct handmade *h, const uint32_t *numbers, const char *type,
		      const char *size, const char *map)
{
	for (int i = 0; i < 4; i++)
		hm_u32(h, numbers[i]);
	hm_text(h, type, 64);
	hm_text(h, size, 64);
	hm_text(h, map, 64);
}

static void check_cpus(const struct tally_reader *r, struct handmade *h)
{
	hm_u32(h, 1);
	hm_text(h, "0-1", 64);
	hm_u32(h, 2);
	hm_text(h, "0", 64);
	hm_text(h, "1", 64);
	for (uint32_t cpu = 0; cpu < 2; cpu++) {
		hm_u32(h, cpu);
		hm_u32(h, 0);
	}
	hm_u32(h, 1);
	hm_text(h, "0-1", 64);
	hm_u32(h, 7);
	hm_u32(h, 7);
	check_feature(r, TALLY_FEATURE_CPU_TOPOLOGY, h);

	hm_u32(h, 1);
	hm_u32(h, 3);
	put_cache(h, (uint32_t[]){ 1, 64, 64, 12 }, "Data", "48K", "0");
	put_cache(h, (uint32_t[]){ 1, 64, 64, 12 }, "Data", "48K", "1");
	put_cache(h, (uint32_t[]){ 2, 64, 1024, 8 }, "Unified", "512K", "0-1");
	check_feature(r, TALLY_FEATURE_CACHE, h);
}

static void check_memory(const struct tally_reader *r, struct handmade *h)
{
	hm_u32(h, 1);
	hm_u32(h, 3);
	hm_u64(h, 4000);
	hm_u64(h, 1000);
	hm_text(h, "0-1", 64);
	check_feature(r, TALLY_FEATURE_NUMA_TOPOLOGY, h);

	hm_u64(h, 1);
	hm_u64(h, 0x8000000);
	hm_u64(h, 1);
	hm_u64(h, 3);
	hm_u64(h, 66);
	hm_u64(h, 66);
	hm_u64(h, 1);
	hm_u64(h, 2);
	check_feature(r, TALLY_FEATURE_MEM_TOPOLOGY, h);
}

static void check_pmus(const struct tally_reader *r, struct handmade *h)
{
	hm_u32(h, 2);
	hm_u32(h, 4);
	hm_text(h, "cpu", 64);
	hm_u32(h, 10);
	hm_text(h, "cpu_atom", 64);
	check_feature(r, TALLY_FEATURE_PMU_MAPPINGS, h);

	hm_u32(h, 1);
	hm_text(h, "max_precise", 64);
	hm_text(h, "3", 64);
	check_feature(r, TALLY_FEATURE_CPU_PMU_CAPS, h);

	hm_u32(h, 1);
	hm_u32(h, 1);
	hm_text(h, "branches", 64);
	hm_text(h, "32", 64);
	hm_text(h, "cpu_atom", 64);
	check_feature(r, TALLY_FEATURE_PMU_CAPS, h);

	hm_u32(h, 1);
	hm_text(h, "cpu_atom", 64);
	hm_text(h, "1", 64);
	check_feature(r, TALLY_FEATURE_HYBRID_TOPOLOGY, h);
}

static void a_machine_is_described(void)
{
	struct handmade h = { 0 };
	struct fakeroot root;

	require(fakeroot_make(&root));
	put_machine(&root);
	struct tally_reader *r = describe(&root);
	fakeroot_remove(&root);
	require(r);
	check_cpus(r, &h);
	check_memory(r, &h);
	check_pmus(r, &h);
	tally_reader_close(r);
	free(h.at);
}

static void what_is_not_told_is_left_out(void)
{
	static const uint32_t features[] = {
		TALLY_FEATURE_CPU_TOPOLOGY, TALLY_FEATURE_CACHE,        TALLY_FEATURE_NUMA_TOPOLOGY,
		TALLY_FEATURE_MEM_TOPOLOGY, TALLY_FEATURE_PMU_MAPPINGS, TALLY_FEATURE_PMU_CAPS,
	};
	struct fakeroot root;
	const void *bytes;
	uint64_t len;

	require(fakeroot_make(&root));
	struct tally_reader *r = describe(&root);
	fakeroot_remove(&root);
	require(r);
	for (size_t i = 0; i < sizeof(features) / sizeof(*features); i++)
		check_int(tally_reader_feature(r, features[i], &bytes, &len), 0);
	tally_reader_close(r);
}

int main(void)
{
	if (!mkdtemp(dir))
		return 1;
	snprintf(path, sizeof(path), "%s/perf.data", dir);
	tap_run(a_machine_is_described);
	tap_run(what_is_not_told_is_left_out);
	rmdir(dir);
	return tap_end();
}
