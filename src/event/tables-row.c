/* SPDX-License-Identifier: MIT */
/*
 * From a row to perf's terms, as tools/perf/pmu-events/jevents.py of the kernel makes them, which is
 * what perf and so everybody's habits are built on. Where that stops at a row which cannot be put
 * in terms, this says why and goes on with the others.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/bytes.h"
#include "base/proc.h"
#include "event/tables-row.h"

/* A row's key and, where its value is a number of the encoding, the term it becomes. */
static const struct {
	const char *name, *term;
} keys[ROW_KEYS] = {
	[ROW_EVENT_CODE] = { "EventCode", NULL },
	[ROW_EXT_SEL] = { "ExtSel", NULL },
	[ROW_CONFIG_CODE] = { "ConfigCode", NULL },
	[ROW_EVENT_ID_CODE] = { "EventidCode", NULL },
	[ROW_ANY_THREAD] = { "AnyThread", "any" },
	[ROW_PORT_MASK] = { "PortMask", "ch_mask" },
	[ROW_COUNTER_MASK] = { "CounterMask", "cmask" },
	[ROW_CMASK] = { "CMask", "cmask" },
	[ROW_EDGE_DETECT] = { "EdgeDetect", "edge" },
	[ROW_FC_MASK] = { "FCMask", "fc_mask" },
	[ROW_INVERT] = { "Invert", "inv" },
	[ROW_SAMPLE_AFTER_VALUE] = { "SampleAfterValue", "period" },
	[ROW_UMASK] = { "UMask", "umask" },
	[ROW_NODE_TYPE] = { "NodeType", "type" },
	[ROW_RD_WR_MASK] = { "RdWrMask", "rdwrmask" },
	[ROW_EN_ALL_CORES] = { "EnAllCores", "enallcores" },
	[ROW_EN_ALL_SLICES] = { "EnAllSlices", "enallslices" },
	[ROW_SLICE_ID] = { "SliceId", "sliceid" },
	[ROW_THREAD_MASK] = { "ThreadMask", "threadmask" },
	[ROW_FILTER] = { "Filter", NULL },
	[ROW_MSR_INDEX] = { "MSRIndex", NULL },
	[ROW_MSR_VALUE] = { "MSRValue", NULL },
	[ROW_UNIT] = { "Unit", NULL },
	[ROW_EVENT_NAME] = { "EventName", NULL },
	[ROW_ARCH_STD_EVENT] = { "ArchStdEvent", NULL },
	[ROW_BRIEF] = { "BriefDescription", NULL },
	[ROW_PUBLIC] = { "PublicDescription", NULL },
	[ROW_SCALE_UNIT] = { "ScaleUnit", NULL },
	[ROW_PER_PKG] = { "PerPkg", NULL },
	[ROW_DEPRECATED] = { "Deprecated", NULL },
	[ROW_PEBS] = { "PEBS", NULL },
	[ROW_ERRATA] = { "Errata", NULL },
	[ROW_METRIC_NAME] = { "MetricName", NULL },
	[ROW_METRIC_EXPR] = { "MetricExpr", NULL },
	[ROW_METRIC_GROUP] = { "MetricGroup", NULL },
	[ROW_METRIC_THRESHOLD] = { "MetricThreshold", NULL },
};

void rows_init(struct rows *rows, const char *text, size_t len)
{
	*rows = (struct rows){ 0 };
	json_init(&rows->json, text, len);
}

/* ROW_KEYS: none of ours. */
static size_t find_key(const struct json_token *t)
{
	for (size_t i = 0; i < ROW_KEYS; i++)
		if (keys[i].name[0] == t->text[0] && json_is(t, keys[i].name))
			return i;
	return ROW_KEYS;
}

/* Intel writes "null" for no errata. */
static bool is_absent(const struct json_token *t)
{
	return t->kind == JSON_NULL || (t->kind == JSON_STRING && json_is(t, "null"));
}

static int read_row(struct rows *rows, struct row *out)
{
	struct json_token t;
	int r;

	memset(out, 0, sizeof(*out));
	while ((r = json_next(&rows->json, &t)) == JSON_KEY) {
		size_t key = find_key(&t);
		r = json_next(&rows->json, &t);
		if (r == JSON_OBJECT || r == JSON_ARRAY)
			r = json_skip(&rows->json, &t);
		else if (r > 0 && key < ROW_KEYS && !is_absent(&t))
			out->at[key] = t;
		if (r < 0)
			return r;
	}
	return r < 0 ? r : 1;
}

/* Outside of rows. 1: a row begins. */
static int pass(struct rows *rows, const struct json_token *t)
{
	unsigned depth = rows->json.depth;

	switch (t->kind) {
	case JSON_OBJECT:
		if (rows->level && depth == rows->level + 1)
			return 1;
		return depth == 1 ? 0 : json_skip(&rows->json, t);
	case JSON_ARRAY:
		if (rows->level || (depth > 1 && !rows->listed))
			return json_skip(&rows->json, t);
		rows->level = depth;
		return 0;
	case JSON_ARRAY_END:
		if (depth < rows->level)
			rows->level = 0;
		return 0;
	case JSON_KEY:
		rows->listed = json_is(t, "Events") || json_is(t, "Metrics");
		return 0;
	default:
		return 0;
	}
}

int rows_next(struct rows *rows, struct row *out)
{
	struct json_token t;
	int r;

	while ((r = json_next(&rows->json, &t)) > 0) {
		r = pass(rows, &t);
		if (r < 0)
			return r;
		if (r > 0)
			return read_row(rows, out);
	}
	return r;
}

bool row_is(const struct row *row, enum row_key key, const char *text, size_t len)
{
	const struct json_token *t = &row->at[key];

	return t->len == len && len && strncasecmp(t->text, text, len) == 0;
}

void row_inherit(struct row *row, const struct row *standard)
{
	for (size_t i = 0; i < ROW_KEYS; i++)
		if (i < ROW_ENCODING_END || (i >= ROW_OWN_END && !row->at[i].len))
			row->at[i] = standard->at[i];
}

/* A number as it stands: decimal or hex, up to a comma. */
struct number {
	uint64_t value;
	bool given, hex, broken;
};

static struct number read_number(const struct row *row, enum row_key key)
{
	const struct json_token *t = &row->at[key];
	const char *comma = t->len ? memchr(t->text, ',', t->len) : NULL;
	size_t len = comma ? (size_t)(comma - t->text) : t->len;
	struct number n = { .given = t->len > 0 };
	char digits[32];

	if (!n.given || t->kind == JSON_FALSE)
		return n;
	n.value = 1;
	if (t->kind == JSON_TRUE)
		return n;
	n.broken = len >= sizeof(digits);
	if (n.broken)
		return n;
	memcpy(digits, t->text, len);
	digits[len] = '\0';
	n.hex = digits[0] == '0' && (digits[1] | 0x20) == 'x';
	n.broken = !parse_u64(digits, &n.value);
	return n;
}

/* Terms in the making, and what stands against them. */
struct encoding {
	const struct row *row;
	struct buf *out;
	char why[128];
};

static struct number number(struct encoding *e, enum row_key key)
{
	struct number n = read_number(e->row, key);

	if (n.broken && !e->why[0])
		snprintf(e->why, sizeof(e->why), "its %s '%.*s' is not a number of 64 bits",
			 keys[key].name, (int)(e->row->at[key].len > 40 ? 40 : e->row->at[key].len),
			 e->row->at[key].text);
	return n;
}

/* As printf's %#llx but for what is the same in decimal. */
static void add_hex(struct buf *out, const char *term, uint64_t v)
{
	buf_printf(out, v < 10 ? "%s=%llu" : "%s=%#llx", term, (unsigned long long)v);
}

static void add_code(struct encoding *e)
{
	struct number config = number(e, ROW_CONFIG_CODE), id = number(e, ROW_EVENT_ID_CODE);

	if (config.given) {
		add_hex(e->out, "config", config.value);
	} else if (id.given) {
		add_hex(e->out, "eventid", id.value);
	} else {
		uint64_t code = number(e, ROW_EVENT_CODE).value;
		add_hex(e->out, "event", code | number(e, ROW_EXT_SEL).value << 8);
	}
}

static void add_fields(struct encoding *e)
{
	for (enum row_key key = 0; key < ROW_ENCODING_END; key++) {
		if (!keys[key].term)
			continue;
		struct number n = number(e, key);
		if (!n.value || (key == ROW_CMASK && e->row->at[ROW_COUNTER_MASK].len))
			continue;
		buf_str(e->out, ",");
		if (n.hex)
			add_hex(e->out, keys[key].term, n.value);
		else
			buf_printf(e->out, "%s=%llu", keys[key].term, (unsigned long long)n.value);
	}
}

/* It is terms already: "filter_opc=0x182". What would end the list early is not let in. */
static void add_filter(struct encoding *e)
{
	static const char fine[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_=,.-";
	const struct json_token *t = &e->row->at[ROW_FILTER];

	for (uint32_t i = 0; i < t->len; i++)
		if (!t->text[i] || !strchr(fine, t->text[i])) {
			snprintf(e->why, sizeof(e->why), "its Filter is not a list of terms");
			return;
		}
	if (!t->len)
		return;
	buf_str(e->out, ",");
	buf_add(e->out, t->text, t->len);
}

/* Bits that Linux keeps in config1: drivers by arch/x86/events/intel/core.c, format/ of the PMU. */
static void add_msr(struct encoding *e)
{
	static const struct {
		uint64_t msr;
		const char *term;
	} terms[] = {
		{ 0x1a6, "offcore_rsp" },
		{ 0x1a7, "offcore_rsp" },
		{ 0x3f6, "ldlat" },
		{ 0x3f7, "frontend" },
	};
	uint64_t msr = number(e, ROW_MSR_INDEX).value;

	if (!msr)
		return;
	const struct json_token *value = &e->row->at[ROW_MSR_VALUE];
	for (size_t i = 0; i < ARRAY_SIZE(terms); i++) {
		if (terms[i].msr != msr)
			continue;
		number(e, ROW_MSR_VALUE);
		if (value->len)
			buf_printf(e->out, ",%s=%.*s", terms[i].term, (int)value->len, value->text);
		else
			buf_printf(e->out, ",%s=0", terms[i].term);
		return;
	}
	snprintf(e->why, sizeof(e->why), "it needs MSR %#llx, for which Linux has no term",
		 (unsigned long long)msr);
}

/* Those of fixed counters: their codes are made up, Linux takes the general ones and finds out. */
static const char *fixed_terms(const struct row *row)
{
	static const char *const fixed[][2] = {
		{ "inst_retired.any", "event=0xc0,period=2000003" },
		{ "inst_retired.any_p", "event=0xc0,period=2000003" },
		{ "cpu_clk_unhalted.ref", "event=0x0,umask=0x03,period=2000003" },
		{ "cpu_clk_unhalted.thread", "event=0x3c,period=2000003" },
		{ "cpu_clk_unhalted.core", "event=0x3c,period=2000003" },
		{ "cpu_clk_unhalted.thread_any", "event=0x3c,any=1,period=2000003" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(fixed); i++)
		if (row_is(row, ROW_EVENT_NAME, fixed[i][0], strlen(fixed[i][0])))
			return fixed[i][1];
	return NULL;
}

static void add_terms(struct encoding *e)
{
	const char *fixed = fixed_terms(e->row);
	size_t begin = e->out->len;

	if (fixed) {
		buf_str(e->out, fixed);
		return;
	}
	add_code(e);
	add_fields(e);
	add_filter(e);
	add_msr(e);
	if (e->why[0])
		e->out->len = begin;
}

/* The kernel's name for a Unit, without the number of an instance. */
static void add_pmu(struct buf *out, const struct json_token *unit)
{
	static const char *const pmus[][2] = {
		{ "CBO", "uncore_cbox" },   { "QPI LL", "uncore_qpi" },
		{ "SBO", "uncore_sbox" },   { "iMPH-U", "uncore_arb" },
		{ "UPI LL", "uncore_upi" }, { "CPU-M-CF", "cpum_cf" },
		{ "CPU-M-SF", "cpum_sf" },  { "PAI-CRYPTO", "pai_crypto" },
		{ "PAI-EXT", "pai_ext" },   { "L3PMC", "amd_l3" },
		{ "DFPMC", "amd_df" },      { "UMCPMC", "amd_umc" },
	};
	/* Those that name the PMU itself, or begin to. */
	static const char *const own[] = { "cpu_core", "cpu_atom", "cpu_lowpower", "hisi_",
					   "tool",     "software", "imx8_ddr",     "imx9_ddr",
					   "ali_drw",  "arm_cmn" };

	if (!unit->len) {
		buf_str(out, "cpu");
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(pmus); i++)
		if (json_is(unit, pmus[i][0])) {
			buf_str(out, pmus[i][1]);
			return;
		}
	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		if (unit->len >= strlen(own[i]) && !memcmp(unit->text, own[i], strlen(own[i]))) {
			json_decode(out, unit);
			return;
		}
	size_t begin = out->len + strlen("uncore_");
	buf_str(out, "uncore_");
	json_decode(out, unit);
	for (size_t i = begin; i < out->len; i++)
		if (out->at[i] >= 'A' && out->at[i] <= 'Z')
			out->at[i] |= 0x20;
}

/* A description without its full stop, so that more may follow. */
static void add_description(struct buf *out, const struct json_token *t)
{
	size_t begin = out->len;

	json_decode(out, t);
	while (!out->failed && out->len > begin &&
	       (out->at[out->len - 1] == ' ' || out->at[out->len - 1] == '\n'))
		out->len--;
	if (!out->failed && out->len > begin && out->at[out->len - 1] == '.')
		out->len--;
}

static void add_value(struct buf *out, const struct json_token *t)
{
	if (t->len)
		json_decode(out, t);
}

/* The texts of a row follow each other in a buffer that moves as it grows. */
static size_t ends(struct buf *out, size_t *next)
{
	size_t begin = *next;

	buf_zero(out, 1);
	*next = out->len;
	return begin;
}

static bool is_set(const struct row *row, enum row_key key)
{
	return read_number(row, key).value != 0;
}

/*
 * v * 10^exponent. Up to 2^53 and 10^22 both numbers are exact, so that the result is rounded once, as
 * strtod's, which would read the locale's decimal point.
 */
static double times_ten(double v, int exponent)
{
	static const double tens[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
				       1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
				       1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
	const int most = (int)ARRAY_SIZE(tens) - 1;
	int left = exponent < 0 ? -exponent : exponent;

	/* It stops before it leaves the range of a double: no unit is that large. */
	while (left > 0 && v < 1e285 && v > 1e-285) {
		int step = left < most ? left : most;
		v = exponent < 0 ? v / tens[step] : v * tens[step];
		left -= step;
	}
	return v;
}

/* "e-5", with digits: its end, else NULL. */
static const char *read_exponent(const char *at, int *exponent)
{
	bool minus = *at && at[1] == '-';
	int v = 0;

	if (*at != 'e' && *at != 'E')
		return NULL;
	at += at[1] == '-' || at[1] == '+' ? 2 : 1;
	if (*at < '0' || *at > '9')
		return NULL;
	for (; *at >= '0' && *at <= '9'; at++)
		v = v > 1000 ? v : v * 10 + (*at - '0');
	*exponent += minus ? -v : v;
	return at;
}

double tables_scale(const char *text, const char **unit)
{
	uint64_t digits = 0;
	bool point = false;
	int exponent = 0;
	const char *at = text;

	for (; (*at >= '0' && *at <= '9') || (*at == '.' && !point); at++) {
		if (*at == '.') {
			point = true;
		} else if (digits < UINT64_MAX / 10 - 1) {
			digits = digits * 10 + (uint64_t)(*at - '0');
			exponent -= point;
		} else {
			exponent += !point;
		}
	}
	*unit = text;
	if (at - text <= point)
		return 1.0;
	const char *end = read_exponent(at, &exponent);
	*unit = end ? end : at;
	return times_ten((double)digits, exponent);
}

int row_event(const struct row *row, const char *topic, struct table_event *out, struct buf *text)
{
	struct encoding e = { .row = row, .out = text };
	size_t next = 0;

	buf_reset(text);
	add_value(text, &row->at[ROW_EVENT_NAME]);
	size_t name = ends(text, &next);
	add_pmu(text, &row->at[ROW_UNIT]);
	size_t pmu = ends(text, &next);
	add_terms(&e);
	size_t terms = ends(text, &next);
	buf_str(text, e.why);
	size_t why = ends(text, &next);
	add_value(text, &row->at[ROW_SCALE_UNIT]);
	size_t unit = ends(text, &next);
	add_description(text, &row->at[ROW_BRIEF]);
	size_t brief = ends(text, &next);
	add_description(text, &row->at[ROW_PUBLIC]);
	size_t details = ends(text, &next);
	add_value(text, &row->at[ROW_ERRATA]);
	size_t errata = ends(text, &next);
	if (text->failed)
		return -ENOMEM;
	const char *at = text->at;
	*out = (struct table_event){
		.name = at + name,
		.pmu = at + pmu,
		.terms = at + terms,
		.why = at + why,
		.brief = at + brief,
		.details = at + details,
		.errata = at + errata,
		.topic = topic,
		.precise = (unsigned)read_number(row, ROW_PEBS).value,
		.core = !row->at[ROW_UNIT].len,
		.per_package = is_set(row, ROW_PER_PKG),
		.deprecated = is_set(row, ROW_DEPRECATED),
	};
	out->scale = tables_scale(at + unit, &out->unit);
	return 0;
}

int row_metric(const struct row *row, struct table_metric *out, struct buf *text)
{
	size_t next = 0;

	buf_reset(text);
	add_value(text, &row->at[ROW_METRIC_NAME]);
	size_t name = ends(text, &next);
	add_value(text, &row->at[ROW_METRIC_EXPR]);
	size_t formula = ends(text, &next);
	add_pmu(text, &row->at[ROW_UNIT]);
	size_t pmu = ends(text, &next);
	add_value(text, &row->at[ROW_SCALE_UNIT]);
	size_t unit = ends(text, &next);
	add_value(text, &row->at[ROW_METRIC_GROUP]);
	size_t groups = ends(text, &next);
	add_value(text, &row->at[ROW_METRIC_THRESHOLD]);
	size_t threshold = ends(text, &next);
	add_description(text, &row->at[ROW_BRIEF]);
	size_t brief = ends(text, &next);
	add_description(text, &row->at[ROW_PUBLIC]);
	size_t details = ends(text, &next);
	if (text->failed)
		return -ENOMEM;
	const char *at = text->at;
	*out = (struct table_metric){
		.name = at + name,
		.formula = at + formula,
		.pmu = at + pmu,
		.unit = at + unit,
		.groups = at + groups,
		.threshold = at + threshold,
		.brief = at + brief,
		.details = at + details,
	};
	return 0;
}
