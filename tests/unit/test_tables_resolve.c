/* SPDX-License-Identifier: MIT */
/*
 * tables-resolve, tour-tables: names of vendors' tables become events of the machine's PMUs. The bits
 * are those that format/ of the made-up machines gives the terms.
 */
#include <errno.h>

#include <tally/event.h>

#include "fakepmu.h"
#include "tap.h"

static struct fakeroot root;
static char tables[96];
static struct tally_error err;

static void setup(const struct fakefile *machine, const char *json)
{
	if (!fakepmu_make(&root, machine) || !fakeroot_file(&root, "/m/table.json", json))
		perror("fakepmu");
	snprintf(tables, sizeof(tables), "%s/m", root.path);
}

static struct tally_events *parse(const char *text)
{
	struct tally_events *events = NULL;
	int r = tally_events_parse(&events, text,
				   TALLY_OPTS(events, .root = root.path, .tables = tables), &err);

	if (r < 0)
		check_int(err.code, r);
	return r < 0 ? NULL : events;
}

static const char server[] =
	"[{\"EventName\":\"MEM_INST_RETIRED.ALL_LOADS\",\"EventCode\":\"0xd0\",\"UMask\":\"0x81\","
	"\"SampleAfterValue\":\"2000003\",\"PEBS\":\"1\",\"BriefDescription\":\"All loads.\"},"
	"{\"EventName\":\"LOAD_LATENCY_GT_128\",\"EventCode\":\"0xcd\",\"UMask\":\"0x1\","
	"\"MSRIndex\":\"0x3F6\",\"MSRValue\":\"0x80\"},"
	"{\"EventName\":\"UNC_M_CAS_COUNT.RD\",\"EventCode\":\"0x4\",\"UMask\":\"0x3\","
	"\"PerPkg\":\"1\",\"ScaleUnit\":\"64Bytes\",\"Unit\":\"iMC\"},"
	"{\"EventName\":\"UNC_I_CLOCKTICKS\",\"EventCode\":\"0x1\",\"Unit\":\"IRP\"},"
	"{\"EventName\":\"INVERTED\",\"EventCode\":\"0x1\",\"Invert\":\"1\"},"
	"{\"EventName\":\"BAD\",\"MSRIndex\":\"0x1ac\"},"
	"{\"EventName\":\"BOTH\",\"EventCode\":\"0x1\"},"
	"{\"EventName\":\"BOTH\",\"EventCode\":\"0x2\",\"Unit\":\"CHA\"},"
	"{\"EventName\":\"cycles\",\"EventCode\":\"0x99\"}]";

static void an_event_of_the_core(void)
{
	setup(fake_server, server);
	struct tally_events *events = parse("mem_inst_retired.all_loads:u,Load_Latency_GT_128");
	require(events);
	struct tally_event *e = tally_events_at(events, 0);
	const struct tally_attr *attr = tally_event_attr(e);
	check_int(attr->type, 4);
	check_u64(attr->config, 0x81d0);
	check_u64(attr->sample_period, 0); /* a counter must not interrupt */
	check_u64(attr->flags,
		  TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_HV | TALLY_ATTR_EXCLUDE_GUEST);
	check_str(tally_event_name(e), "mem_inst_retired.all_loads:u");
	attr = tally_event_attr(tally_events_at(events, 1));
	check_u64(attr->config, 0x01cd);
	check_u64(attr->config1, 0x80);
	tally_events_free(events);
	fakeroot_remove(&root);
}

static void all_boxes_of_an_uncore_pmu(void)
{
	static const uint32_t types[] = { 20, 22, 30 };
	struct tally_event_part part;

	setup(fake_server, server);
	struct tally_events *events = parse("unc_m_cas_count.rd");
	require(events);
	struct tally_event *e = tally_events_at(events, 0);
	check_int(tally_event_parts(e), 3);
	for (uint32_t i = 0; i < 3 && check(tally_event_part(e, i, &part)); i++) {
		check_int(part.attr.type, types[i]);
		check_u64(part.attr.config, 0x0304);
		check(part.per_cpu);
		check_int(part.cpu_count, 2);
	}
	check_str(tally_event_unit(e), "Bytes");
	check(tally_event_scale(e) == 64.0);
	tally_events_free(events);
	fakeroot_remove(&root);
}

static const char alderlake[] =
	"[{\"EventName\":\"MEM_UOPS.ALL\",\"EventCode\":\"0xd0\",\"UMask\":\"0x81\","
	"\"Unit\":\"cpu_atom\"},"
	"{\"EventName\":\"mem_uops.all\",\"EventCode\":\"0xd1\",\"UMask\":\"0x1\","
	"\"Unit\":\"cpu_core\"},"
	"{\"EventName\":\"MEM_UOPS.ALL\",\"EventCode\":\"0xd2\",\"Unit\":\"cpu_core\"},"
	"{\"EventName\":\"MEM_UOPS.ALL\",\"EventCode\":\"0xd3\",\"Unit\":\"cpu_lowpower\"},"
	"{\"EventName\":\"LOW\",\"EventCode\":\"0xd3\",\"Unit\":\"cpu_lowpower\"},"
	"{\"EventName\":\"ATOM\",\"EventCode\":\"0x3\",\"Unit\":\"cpu_atom\"}]";

static void a_part_for_each_kind_of_core(void)
{
	struct tally_event_part part;

	setup(fake_hybrid, alderlake);
	struct tally_events *events = parse("MEM_UOPS.ALL,atom");
	require(events);
	check_int(tally_events_count(events), 2);
	struct tally_event *e = tally_events_at(events, 0);
	/* Of two rows of one PMU the first holds, and one that is not here is no part. */
	require(tally_event_parts(e) == 2);
	tally_event_part(e, 0, &part);
	check_int(part.attr.type, 10);
	check_u64(part.attr.config, 0x81d0);
	check_str(part.pmu, "cpu_atom");
	check_int(part.cpus[0], 16);
	tally_event_part(e, 1, &part);
	check_int(part.attr.type, 4);
	check_u64(part.attr.config, 0x01d1);
	check_str(part.pmu, "cpu_core");
	check_int(part.cpu_count, 16);
	e = tally_events_at(events, 1);
	check_int(tally_event_parts(e), 1);
	check_int(tally_event_attr(e)->type, 10);
	tally_events_free(events);
	fakeroot_remove(&root);
}

/* The big cores are of another model, with another number for the event and none for the second. */
static void each_model_of_a_big_little_machine(void)
{
	struct tally_event_part part;

	setup(fake_biglittle, "[]");
	fakeroot_file(&root, "/sys/devices/system/cpu/cpu0/regs/identification/midr_el1",
		      "0x00000000410fd034\n");
	fakeroot_file(&root, "/sys/devices/system/cpu/cpu4/regs/identification/midr_el1",
		      "0x00000000410fd080\n");
	fakeroot_file(&root, "/m/mapfile.csv",
		      "0x00000000410fd030,v1,arm/a53,core\n0x00000000410fd080,v1,arm/a72,core\n");
	fakeroot_file(&root, "/m/arm/a53/all.json",
		      "[{\"EventName\":\"PREFETCH\",\"EventCode\":\"0xc2\"},"
		      "{\"EventName\":\"LITTLE\",\"EventCode\":\"0xc3\"}]");
	fakeroot_file(&root, "/m/arm/a72/all.json",
		      "[{\"EventName\":\"PREFETCH\",\"EventCode\":\"0x102\"}]");
	struct tally_events *events = parse("prefetch,little");
	require(events);
	struct tally_event *e = tally_events_at(events, 0);
	require(tally_event_parts(e) == 2);
	tally_event_part(e, 0, &part);
	check_str(part.pmu, "armv8_cortex_a53");
	check_u64(part.attr.config, 0xc2);
	tally_event_part(e, 1, &part);
	check_str(part.pmu, "armv8_cortex_a72");
	check_u64(part.attr.config, 0x102);
	e = tally_events_at(events, 1);
	check_int(tally_event_parts(e), 1);
	check_int(tally_event_attr(e)->type, 8);
	tally_events_free(events);
	check(!parse("prefecth"));
	check_has(err.text, "the nearest is 'PREFETCH'");
	fakeroot_remove(&root);
}

static void what_cannot_be_counted_says_why(void)
{
	static const struct {
		const char *text;
		uint32_t cause;
		const char *part;
	} rows[] = {
		{ "cs,BAD", TALLY_CAUSE_UNSUPPORTED,
		  "events, column 4: the table's BAD cannot be counted: it needs MSR 0x1ac" },
		{ "BOTH", TALLY_CAUSE_UNKNOWN, "for the PMUs cpu and uncore_cha: name the PMU" },
		{ "cs,UNC_I_CLOCKTICKS", TALLY_CAUSE_UNKNOWN,
		  "column 4: there is no PMU 'uncore_irp'" },
		/* The kernel's format/ of this CPU has no term of that name. */
		{ "INVERTED", TALLY_CAUSE_UNKNOWN, "inv" },
		{ "mem_inst_retired.all_laods", TALLY_CAUSE_UNKNOWN,
		  "the nearest is 'MEM_INST_RETIRED.ALL_LOADS'" },
		{ "both:x", TALLY_CAUSE_NO_FILE, "tracefs" },
	};

	setup(fake_server, server);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		check(!parse(rows[i].text));
		check_int(err.cause, rows[i].cause);
		check_has(err.text, rows[i].part);
	}
	fakeroot_remove(&root);
}

static void tables_that_cannot_be_read(void)
{
	setup(fake_server, "[{\"EventName\":\"A\"} x");
	check(!parse("cs,MEM"));
	check_int(err.code, -EINVAL);
	check_int(err.cause, TALLY_CAUSE_CORRUPT);
	check_has(err.text, "events, column 4: ");
	check_has(err.text, "/m/table.json, line 1, column 20: ',' or ']'");
	/* The kernel's own names do not need them. */
	struct tally_events *events = parse("cycles,cs,r1a2");
	check(events);
	tally_events_free(events);
	fakeroot_remove(&root);
}

static void the_kernels_names_come_first(void)
{
	setup(fake_server, server);
	struct tally_events *events = parse("cycles");
	require(events);
	check_int(tally_event_attr(tally_events_at(events, 0))->type, TALLY_TYPE_HARDWARE);
	tally_events_free(events);
	fakeroot_remove(&root);
}

struct listed {
	char lines[2048];
	uint32_t count;
};

static int list(const struct tally_event_info *info, void *arg)
{
	struct listed *l = arg;
	size_t len = strlen(l->lines);

	if (info->kind != TALLY_EVENT_VENDOR)
		return 0;
	l->count++;
	snprintf(l->lines + len, sizeof(l->lines) - len, "%s|%s|%s|%s|%u|%s\n", info->name,
		 info->description ? info->description : "-", info->pmu, info->unit, info->openable,
		 info->why ? info->why : "-");
	return 0;
}

static void the_list_of_all_events(void)
{
	struct listed l = { 0 };

	setup(fake_server, server);
	check_int(tally_event_each(NULL, TALLY_OPTS(events, .root = root.path, .tables = tables),
				   list, &l, &err),
		  0);
	check_int(l.count, 9);
	check_has(l.lines, "MEM_INST_RETIRED.ALL_LOADS|All loads|cpu||1|-\n");
	check_has(l.lines, "UNC_M_CAS_COUNT.RD|-|uncore_imc|Bytes|1|-\n");
	check_has(l.lines, "UNC_I_CLOCKTICKS|-|uncore_irp||0|there is no PMU 'uncore_irp'");
	check_has(l.lines, "BAD|-|cpu||0|it needs MSR 0x1ac");
	memset(&l, 0, sizeof(l));
	check_int(tally_event_each("*cas*", TALLY_OPTS(events, .root = root.path, .tables = tables),
				   list, &l, &err),
		  0);
	check_int(l.count, 1);
	check_int(tally_event_each(NULL,
				   TALLY_OPTS(events, .root = root.path, .tables = "/nonexistent"),
				   list, &l, &err),
		  -ENOENT);
	check_has(err.text, "/nonexistent");
	fakeroot_remove(&root);
}

int main(void)
{
	tap_run(an_event_of_the_core);
	tap_run(all_boxes_of_an_uncore_pmu);
	tap_run(a_part_for_each_kind_of_core);
	tap_run(each_model_of_a_big_little_machine);
	tap_run(what_cannot_be_counted_says_why);
	tap_run(tables_that_cannot_be_read);
	tap_run(the_kernels_names_come_first);
	tap_run(the_list_of_all_events);
	return tap_end();
}
