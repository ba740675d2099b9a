/* SPDX-License-Identifier: MIT */
/* json: texts by the grammar of RFC 8259, and what it forbids. */
#include <errno.h>
#include <stdlib.h>

#include "base/json.h"
#include "tap.h"

/* The tokens of a text as a line: brackets, K and S with their text, N with its digits, t f 0. */
static int spell(struct buf *out, const char *text, struct json *j)
{
	struct json_token t;
	int r;

	buf_reset(out);
	json_init(j, text, strlen(text));
	while ((r = json_next(j, &t)) > 0) {
		buf_add(out, &" {}[]KSNtf0"[t.kind], 1);
		if (t.kind == JSON_KEY || t.kind == JSON_STRING || t.kind == JSON_NUMBER)
			json_decode(out, &t);
	}
	return r;
}

static void tokens_in_their_order(void)
{
	static const struct {
		const char *text, *tokens;
	} rows[] = {
		{ "{}", "{}" },
		{ " [ ] ", "[]" },
		{ "\"x\"", "Sx" },
		{ "-0.5e+10", "N-0.5e+10" },
		{ "[0,1 , 20,true,false,null]", "[N0N1N20tf0]" },
		{ "{\"a\":1,\"b\" : [ {\"c\":\"d\"},[]]\n}\n", "{KaN1Kb[{KcSd}[]]}" },
		{ "[{},{\"\":\"\"}]", "[{}{KS}]" },
	};
	struct buf out = { 0 };
	struct json j;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		check_int(spell(&out, rows[i].text, &j), 0);
		check_str(buf_text(&out), rows[i].tokens);
	}
	buf_done(&out);
}

static void escapes_become_utf8(void)
{
	static const struct {
		const char *text, *plain;
	} rows[] = {
		{ "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "S\"\\/\b\f\n\r\t" },
		{ "\"a\\u0041\\u00e9z\"", "SaA\xc3\xa9z" },
		{ "\"\\u20AC\"", "S\xe2\x82\xac" },
		{ "\"\\ud83d\\ude00\"", "S\xf0\x9f\x98\x80" },
		/* Half a pair, in any order, and a NUL. */
		{ "\"\\ud83d\"", "S\xef\xbf\xbd" },
		{ "\"\\ude00\\ud83d\"", "S\xef\xbf\xbd\xef\xbf\xbd" },
		{ "\"\\ud83d\\u0041\"", "S\xef\xbf\xbd"
					"A" },
		{ "\"\\u0000\"", "S\xef\xbf\xbd" },
	};
	struct buf out = { 0 };
	struct json j;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		check_int(spell(&out, rows[i].text, &j), 0);
		check_str(buf_text(&out), rows[i].plain);
	}
	buf_done(&out);
}

static void what_is_not_json(void)
{
	static const struct {
		const char *text, *why;
		unsigned line, column;
	} rows[] = {
		{ "", "too early", 1, 1 },
		{ "[1,]", "value is missing", 1, 4 },
		{ "[1 2]", "',' or ']'", 1, 4 },
		{ "{\"a\" 1}", "':'", 1, 6 },
		{ "{\"a\":1 \"b\":2}", "',' or '}'", 1, 8 },
		{ "{\"a\":1,}", "key in quotes", 1, 8 },
		{ "{a:1}", "key in quotes", 1, 2 },
		{ "[1}", "',' or ']'", 1, 3 },
		{ "[\n 1,\n x]", "value is missing", 3, 2 },
		{ "[1] [2]", "follows the end", 1, 5 },
		{ "\"abc", "not closed", 1, 5 },
		{ "\"\\", "not closed", 1, 3 },
		{ "\"\\x\"", "no such escape", 1, 4 },
		{ "\"\\u12g4\"", "four hex digits", 1, 6 },
		{ "\"a\nb\"", "control character", 1, 3 },
		{ "01", "follows the end", 1, 2 },
		{ "-", "no digits", 1, 2 },
		{ "1.", "decimal point", 1, 3 },
		{ "1e+", "exponent", 1, 4 },
		{ "+1", "value is missing", 1, 1 },
		{ "nul", "value is missing", 1, 1 },
		{ "[", "too early", 1, 2 },
		{ "{\"a\":", "too early", 1, 6 },
		{ "]", "value is missing", 1, 1 },
		{ "[,1]", "value is missing", 1, 2 },
	};
	struct buf out = { 0 };
	struct json_token t;
	struct json j;
	unsigned line, column;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		check_int(spell(&out, rows[i].text, &j), -EINVAL);
		check_has(j.why, rows[i].why);
		json_place(&j, &line, &column);
		check_int(line, rows[i].line);
		check_int(column, rows[i].column);
		check_int(json_next(&j, &t), -EINVAL);
	}
	buf_done(&out);
}

static void nesting_has_a_limit(void)
{
	char text[2 * JSON_DEPTH + 3];
	struct buf out = { 0 };
	struct json j;

	memset(text, '[', JSON_DEPTH);
	memset(text + JSON_DEPTH, ']', JSON_DEPTH);
	text[2 * JSON_DEPTH] = '\0';
	check_int(spell(&out, text, &j), 0);
	memset(text, '[', JSON_DEPTH + 1);
	memset(text + JSON_DEPTH + 1, ']', JSON_DEPTH + 1);
	text[2 * JSON_DEPTH + 2] = '\0';
	check_int(spell(&out, text, &j), -E2BIG);
	check_has(j.why, "too deeply");
	buf_done(&out);
}

static void a_value_is_skipped_whole(void)
{
	static const char text[] = "{\"a\":{\"x\":[1,{}]},\"b\":[[],2],\"c\":3,\"d\":4}";
	struct json_token t;
	struct json j;
	char keys[8] = "";

	json_init(&j, text, sizeof(text) - 1);
	check_int(json_next(&j, &t), JSON_OBJECT);
	while (json_next(&j, &t) == JSON_KEY) {
		strncat(keys, t.text, 1);
		check_int(json_skip(&j, &t), 0);
	}
	check_int(t.kind, JSON_OBJECT_END);
	check_str(keys, "abcd");
	check_int(json_next(&j, &t), JSON_END);

	json_init(&j, text, sizeof(text) - 1);
	check_int(json_next(&j, &t), JSON_OBJECT);
	check_int(json_skip(&j, &t), 0);
	check_int(json_next(&j, &t), JSON_END);

	json_init(&j, text, sizeof(text) - 3);
	check_int(json_next(&j, &t), JSON_OBJECT);
	check_int(json_skip(&j, &t), -EINVAL);
}

static void keys_compare_by_what_they_mean(void)
{
	static const char text[] = "{\"Ev\\u0065nt\":\"Event\"}";
	struct json_token t;
	struct json j;

	json_init(&j, text, sizeof(text) - 1);
	json_next(&j, &t);
	check_int(json_next(&j, &t), JSON_KEY);
	check(json_is(&t, "Event"));
	check(!json_is(&t, "Even"));
	check_int(json_next(&j, &t), JSON_STRING);
	check(json_is(&t, "Event"));
	check(!json_is(&t, "event"));
}

int main(void)
{
	tap_run(tokens_in_their_order);
	tap_run(escapes_become_utf8);
	tap_run(what_is_not_json);
	tap_run(nesting_has_a_limit);
	tap_run(a_value_is_skipped_whole);
	tap_run(keys_compare_by_what_they_mean);
	return tap_end();
}
