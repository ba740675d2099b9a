/* SPDX-License-Identifier: MIT */
/* tally data info and check: surveys of recordings, printed. */
#include <inttypes.h>
#include <stdlib.h>
#include <tally/profiling.h>

#include "args.h"
#include "command.h"
#include "data.h"
#include "json.h"
#include "term.h"

#define DEFAULT_FILE "perf.data"

static const struct {
	uint32_t feature;
	const char *name;
} texts[] = {
	{ TALLY_FEATURE_HOSTNAME, "hostname" }, { TALLY_FEATURE_OSRELEASE, "osrelease" },
	{ TALLY_FEATURE_VERSION, "version" },   { TALLY_FEATURE_ARCH, "arch" },
	{ TALLY_FEATURE_CPUDESC, "cpu" },       { TALLY_FEATURE_CPUID, "cpuid" },
};

#define TEXTS (sizeof(texts) / sizeof(*texts))

static bool has_feature(const struct tally_reader *reader, uint32_t feature)
{
	const void *bytes;
	uint64_t len;

	return tally_reader_feature(reader, feature, &bytes, &len) == 1;
}

static void print_seconds(uint64_t ns)
{
	printf("%" PRIu64 ".%09" PRIu64, ns / 1000000000, ns % 1000000000);
}

static void print_features(const struct tally_reader *reader)
{
	const char *word;

	for (size_t i = 0; i < TEXTS; i++) {
		const char *text = tally_reader_text(reader, texts[i].feature);
		if (text)
			printf("# %s: %s\n", texts[i].name, text);
	}
	if (tally_reader_cmdline(reader, 0)) {
		fputs("# command:", stdout);
		for (uint32_t i = 0; (word = tally_reader_cmdline(reader, i)); i++)
			printf(" %s", word);
		putchar('\n');
	}
	fputs("# features:", stdout);
	for (uint32_t f = 0; f < TALLY_FEATURE_MAX; f++) {
		const char *name = tally_feature_name(f);
		if (has_feature(reader, f) && name)
			printf(" %s", name);
		else if (has_feature(reader, f))
			printf(" %" PRIu32, f);
	}
	putchar('\n');
}

static void print_text(const char *path, const struct tally_survey *survey)
{
	const struct tally_survey_finding *finding;
	const struct tally_survey_event *event;
	const struct tally_survey_type *type;
	struct tally_survey_totals t;

	tally_survey_totals(survey, &t, sizeof(t));
	printf("# file: %s\n# bytes: %" PRIu64 "\n# byte order: %s\n# attr size: %" PRIu32 "\n",
	       path, t.bytes, t.swapped ? "the other" : "this machine's", t.attr_size);
	print_features(tally_survey_reader(survey));
	for (uint32_t i = 0; (event = tally_survey_event(survey, i)); i++)
		printf("# event: %s, %" PRIu64 " samples\n", event->name, event->samples);
	if (t.last) {
		fputs("# span: ", stdout);
		print_seconds(t.first);
		fputs(" to ", stdout);
		print_seconds(t.last);
		fputs(", ", stdout);
		print_seconds(t.last - t.first);
		fputs(" s\n", stdout);
	}
	printf("# lost: %" PRIu64 " records, %" PRIu64 " samples; throttled %" PRIu64 " times\n",
	       t.lost_records, t.lost_samples, t.throttled);
	for (uint32_t i = 0; (finding = tally_survey_finding(survey, i)); i++)
		printf("# %s: %s\n", finding->grade == TALLY_SURVEY_FAULT ? "fault" : "note",
		       finding->text);
	for (uint32_t i = 0; (type = tally_survey_type(survey, i)); i++)
		printf("%s %" PRIu64 "\n", type->name, type->count);
}

static void json_key(const char *before, const char *key, const char *text)
{
	printf("%s\"%s\":", before, key);
	json_text(stdout, text);
}

static void print_json_features(const struct tally_reader *reader)
{
	const char *word, *before = "";

	for (size_t i = 0; i < TEXTS; i++)
		json_key(",", texts[i].name, tally_reader_text(reader, texts[i].feature));
	fputs(",\"command\":[", stdout);
	for (uint32_t i = 0; (word = tally_reader_cmdline(reader, i)); i++) {
		fputs(i ? "," : "", stdout);
		json_text(stdout, word);
	}
	fputs("],\"features\":[", stdout);
	for (uint32_t f = 0; f < TALLY_FEATURE_MAX; f++) {
		if (!has_feature(reader, f))
			continue;
		fputs(before, stdout);
		before = ",";
		if (tally_feature_name(f))
			json_text(stdout, tally_feature_name(f));
		else
			printf("%" PRIu32, f);
	}
	putchar(']');
}

static void print_json_lists(const struct tally_survey *survey)
{
	const struct tally_survey_finding *finding;
	const struct tally_survey_event *event;
	const struct tally_survey_type *type;

	fputs(",\"events\":[", stdout);
	for (uint32_t i = 0; (event = tally_survey_event(survey, i)); i++) {
		json_key(i ? ",{" : "{", "name", event->name);
		printf(",\"samples\":%" PRIu64 "}", event->samples);
	}
	fputs("],\"records\":{", stdout);
	for (uint32_t i = 0; (type = tally_survey_type(survey, i)); i++)
		printf("%s\"%s\":%" PRIu64, i ? "," : "", type->name, type->count);
	fputs("},\"findings\":[", stdout);
	for (uint32_t i = 0; (finding = tally_survey_finding(survey, i)); i++) {
		json_key(i ? ",{" : "{", "grade",
			 finding->grade == TALLY_SURVEY_FAULT ? "fault" : "note");
		json_key(",", "text", finding->text);
		putchar('}');
	}
	putchar(']');
}

static void print_json(const char *path, const struct tally_survey *survey)
{
	struct tally_survey_totals t;

	tally_survey_totals(survey, &t, sizeof(t));
	json_key("{", "file", path);
	printf(",\"bytes\":%" PRIu64 ",\"swapped\":%s,\"attr_size\":%" PRIu32, t.bytes,
	       t.swapped ? "true" : "false", t.attr_size);
	print_json_features(tally_survey_reader(survey));
	printf(",\"first_ns\":%" PRIu64 ",\"last_ns\":%" PRIu64 ",\"clockid\":%" PRId32
	       ",\"lost_records\":%" PRIu64 ",\"lost_samples\":%" PRIu64 ",\"throttled\":%" PRIu64,
	       t.first, t.last, t.clockid, t.lost_records, t.lost_samples, t.throttled);
	print_json_lists(survey);
	puts("}");
}

static int open_survey(struct tally_survey **out, const char *path)
{
	struct tally_error err;
	int r = tally_survey_new(out, path, &err);

	if (r < 0)
		complain("data", "%s", err.text);
	return r;
}

int data_info(int argc, char **argv)
{
	struct tally_survey *survey;
	bool json = false;
	const struct arg table[] = {
		{ 'j', "json", NULL, "an object", ARG_FLAG, &json },
		{ 0 },
	};
	const struct args args = {
		.command = "data info",
		.synopsis = "[OPTIONS] [FILE]",
		.description =
			"What a recording consists of: what its header tells, how many records of "
			"each type\nthere are, what was lost, and what is wrong with it.",
		.table = table,
	};
	int at = args_parse_all(&args, argc, argv);

	if (at < 0)
		return args_status(at);
	if (argc - at > 1) {
		complain("data info", "one file at a time");
		return EXIT_USAGE;
	}
	const char *path = at < argc ? argv[at] : DEFAULT_FILE;
	if (open_survey(&survey, path) < 0)
		return EXIT_FAILED;
	if (json)
		print_json(path, survey);
	else
		print_text(path, survey);
	tally_survey_free(survey);
	return EXIT_DONE;
}

/* Whether the file is without a fault. */
static bool check(const char *path, bool notes)
{
	const struct tally_survey_finding *finding;
	struct tally_survey_totals totals;
	struct tally_survey *survey;
	bool good = true;

	if (open_survey(&survey, path) < 0)
		return false;
	for (uint32_t i = 0; (finding = tally_survey_finding(survey, i)); i++) {
		bool fault = finding->grade == TALLY_SURVEY_FAULT;
		good = good && !fault;
		if (fault || notes)
			printf("%s: %s: %s\n", path, fault ? "fault" : "note", finding->text);
	}
	tally_survey_totals(survey, &totals, sizeof(totals));
	if (good)
		printf("%s: whole, %" PRIu64 " records, %" PRIu64 " samples\n", path,
		       totals.records, totals.samples);
	tally_survey_free(survey);
	return good;
}

int data_check(int argc, char **argv)
{
	bool quiet = false, good = true;
	const struct arg table[] = {
		{ 'q', "quiet", NULL, "only faults, no notes", ARG_FLAG, &quiet },
		{ 0 },
	};
	const struct args args = {
		.command = "data check",
		.synopsis = "[OPTIONS] FILE...",
		.description =
			"Reads recordings to their end. A fault is what is cut short, damaged or "
			"out of order;\na note is what other readers may refuse. The status is 1 "
			"when there is a fault.",
		.table = table,
	};
	int at = args_parse_all(&args, argc, argv);

	if (at < 0)
		return args_status(at);
	if (at == argc)
		good = check(DEFAULT_FILE, !quiet);
	for (int i = at; i < argc; i++)
		good = check(argv[i], !quiet) && good;
	return good ? EXIT_DONE : EXIT_FAILED;
}
