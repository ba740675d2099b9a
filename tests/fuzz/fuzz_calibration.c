/* SPDX-License-Identifier: MIT */
/*
 * Bytes that are given out as a calibration. What is taken is exported as bytes that are taken again; what
 * is refused says why and leaves everything as it was.
 *
 * The first byte tells whether the sum at the end is set right, so that more than the form is tried.
 */
#include <string.h>

#include <tally/calibration.h>

#include "fuzz.h"

#define KEY    "k"
#define AT_SUM 8 /* before the end */

static void seal(uint8_t *bytes, size_t len)
{
	uint64_t sum = 0xcbf29ce484222325u; /* FNV-1a */

	for (size_t i = 0; i < len - AT_SUM; i++)
		sum = (sum ^ bytes[i]) * 0x100000001b3u;
	for (size_t i = 0; i < AT_SUM; i++)
		bytes[len - AT_SUM + i] = (uint8_t)(sum >> 8 * i);
}

static void check_again(const struct tally_calibration *seen)
{
	struct tally_calibration *twin;
	size_t len = tally_calibration_export(seen, NULL, 0);
	uint8_t *bytes = malloc(len);

	must(bytes && tally_calibration_new(&twin, KEY, NULL) == 0);
	must(tally_calibration_export(seen, bytes, len) == len);
	must(tally_calibration_import(twin, bytes, len, NULL) == 0);
	must(!memcmp(tally_calibration_skids(twin), tally_calibration_skids(seen),
		     sizeof(struct tally_skids)));
	tally_calibration_free(twin);
	free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tally_calibration *seen;
	struct tally_error err = { 0 };
	uint8_t *bytes = malloc(size ? size : 1);

	must(bytes && tally_calibration_new(&seen, KEY, NULL) == 0);
	if (size) {
		memcpy(bytes, data + 1, size - 1);
		if (data[0] & 1 && size > AT_SUM)
			seal(bytes, size - 1);
	}
	int r = tally_calibration_import(seen, bytes, size ? size - 1 : 0, &err);
	const struct tally_skids *skids = tally_calibration_skids(seen);
	if (r < 0) {
		must(err.code == r && err.cause != TALLY_CAUSE_NONE && err.text[0]);
		must(!skids->count && !skids->max);
	} else {
		uint64_t sum = 0;
		for (size_t i = 0; i < TALLY_SKID_BUCKETS; i++)
			sum += skids->bucket[i];
		must(sum == skids->count);
		for (uint32_t one_in = 1; one_in < 100000; one_in *= 7)
			tally_skids_margin(skids, one_in);
		check_again(seen);
	}
	tally_calibration_free(seen);
	free(bytes);
	return 0;
}
