/* SPDX-License-Identifier: MIT */
/*
 * The JSON parser. Tokens lie within the input and in its order, brackets match, what is skipped is
 * what is walked, and an error says why and where.
 */
#include <errno.h>

#include "base/json.h"

#include "fuzz.h"

static int walk(const char *text, size_t size)
{
	struct buf plain = { 0 };
	struct json_token t;
	struct json j;
	const char *last = text;
	int r, depth = 0;
	unsigned line, column;

	json_init(&j, text, size);
	while ((r = json_next(&j, &t)) > 0) {
		must(r == (int)t.kind);
		must(t.text >= last && t.text + t.len <= text + size);
		last = t.text;
		depth += t.kind == JSON_OBJECT || t.kind == JSON_ARRAY;
		depth -= t.kind == JSON_OBJECT_END || t.kind == JSON_ARRAY_END;
		must(depth >= 0 && depth <= JSON_DEPTH);
		buf_reset(&plain);
		json_decode(&plain, &t);
		must(plain.len <= t.len);
		json_is(&t, "EventName");
	}
	if (r == 0)
		must(depth == 0);
	else
		must((r == -EINVAL || r == -E2BIG) && j.why);
	json_place(&j, &line, &column);
	must(line >= 1 && column >= 1 && column <= size + 1);
	buf_done(&plain);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct json_token t;
	struct json j;
	const char *text = (const char *)data;

	int r = walk(text, size);
	json_init(&j, text, size);
	int first = json_next(&j, &t);
	if (first > 0)
		first = json_skip(&j, &t);
	if (first == 0)
		first = json_next(&j, &t);
	must((first < 0) == (r < 0));
	return 0;
}
