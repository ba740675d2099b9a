/* SPDX-License-Identifier: MIT */
/*
 * The parser of metrics' formulas, and what they are worth. Whatever is refused says why in one line
 * with the column; whatever is parsed names each event once, and has a finite value or a reason, also
 * from counts that are 0, scaled, or of mixed modes.
 */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include <tally/metric.h>

#include "fuzz.h"

/* More results than that would only take time. */
#define MAX_RESULTS 64

/* No machine's files: the outcome depends on the input alone. */
static const struct tally_events_opts nowhere = { .size = sizeof(nowhere), .root = "/nonexistent" };
static const struct tally_metric_opts opts = {
	.size = sizeof(opts),
	.flags = TALLY_METRIC_ON_CPUS | TALLY_METRIC_WHOLE_CORES,
	.events = &nowhere,
};

static void check_error(const struct tally_error *err, int r)
{
	must(err->code == r);
	must(err->cause != TALLY_CAUSE_NONE);
	must(strstr(err->text, "metric '") && !strchr(err->text, '\n'));
}

static void check_events(const struct tally_metric *m)
{
	uint32_t count = tally_metric_events(m);

	for (uint32_t i = 0; i < count; i++) {
		must(*tally_metric_event(m, i));
		for (uint32_t k = 0; k < i && i < MAX_RESULTS; k++)
			must(strcasecmp(tally_metric_event(m, i), tally_metric_event(m, k)) != 0);
	}
	must(!tally_metric_event(m, count));
}

static void check_compute(const struct tally_metric *m, const struct tally_result *results,
			  uint32_t count, const struct tally_metric_context *ctx)
{
	struct tally_metric_value value;
	struct tally_error err;

	int r = tally_metric_compute(m, results, count, ctx, &value, &err);
	if (r < 0) {
		must(r == -ENODATA);
		check_error(&err, r);
		return;
	}
	must(value.value - value.value == 0);
	must(value.state <= TALLY_COUNT_SCALED);
}

/* Counts of all its events, of which each `odd`-th is 0, never ran, or is one of user mode. */
static void compute_with(const struct tally_metric *m, uint32_t odd)
{
	struct tally_result results[MAX_RESULTS];
	char labels[MAX_RESULTS][300];
	uint32_t count = tally_metric_events(m);
	const struct tally_metric_context ctx = { .size = sizeof(ctx), .duration = 0.5 };

	count = count < MAX_RESULTS ? count : MAX_RESULTS;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t kind = i % 4 == odd ? odd : 0;
		snprintf(labels[i], sizeof(labels[i]), "%s%s", tally_metric_event(m, i),
			 kind == 3 ? ":u" : "");
		results[i] = (struct tally_result){
			.label = labels[i],
			.unit = "",
			.scale = 1,
			.count = { .value = kind == 1 ? 0 : UINT64_MAX / (i + 1),
				   .state = kind == 2 ? TALLY_COUNT_NEVER_RAN
						      : (uint32_t)TALLY_COUNT_SCALED },
		};
	}
	check_compute(m, results, count, odd ? &ctx : NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tally_metric *m;
	struct tally_error err;
	char *text = malloc(size + 1);

	must(text);
	memcpy(text, data, size);
	text[size] = '\0';
	int r = tally_metric_parse(&m, "IPC", text, &opts, &err);
	if (r < 0) {
		must(r == -EINVAL || r == -ENODATA);
		check_error(&err, r);
	} else {
		check_events(m);
		check_compute(m, NULL, 0, NULL);
		for (uint32_t odd = 0; odd < 4; odd++)
			compute_with(m, odd);
		tally_metric_free(m);
	}
	free(text);
	return 0;
}
