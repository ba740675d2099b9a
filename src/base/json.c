/* SPDX-License-Identifier: MIT */
/* A pull parser of JSON. Strings are checked when they are passed, so that decoding cannot fail. */
#include <errno.h>
#include <string.h>

#include "base/json.h"

/* What may come next. Between values only separators and closing brackets stand. */
enum state {
	AT_VALUE,       /* a value has to come */
	AT_FIRST_VALUE, /* a value or ']' */
	AT_FIRST_KEY,   /* a key or '}' */
	AT_KEY,         /* a key has to come: a comma was there */
	AT_COLON,       /* behind a key */
	AT_SEPARATOR,   /* behind a value */
	AT_FAILURE,
};

void json_init(struct json *j, const char *text, size_t len)
{
	*j = (struct json){ .text = text, .at = text, .end = text + len, .state = AT_VALUE };
	if (len > UINT32_MAX) {
		j->state = AT_FAILURE;
		j->why = "more than 4 GiB";
	}
}

static int fail(struct json *j, int code, const char *why)
{
	j->why = why;
	j->state = AT_FAILURE;
	return code;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static int hex_digit(char c)
{
	if (is_digit(c))
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void skip_space(struct json *j)
{
	while (j->at < j->end &&
	       (*j->at == ' ' || *j->at == '\n' || *j->at == '\t' || *j->at == '\r'))
		j->at++;
}

/* `at` is behind a backslash. */
static const char *check_escape(struct json *j)
{
	if (j->at >= j->end)
		return "a string is not closed";
	char c = *j->at++;
	if (c != 'u')
		return c && strchr("\"\\/bfnrt", c) ? NULL : "there is no such escape";
	for (int i = 0; i < 4; i++, j->at++)
		if (j->at >= j->end || hex_digit(*j->at) < 0)
			return "four hex digits follow \\u";
	return NULL;
}

/* `at` is on the opening quote. */
static int scan_string(struct json *j, struct json_token *t, enum json_kind kind)
{
	const char *why;

	t->kind = kind;
	t->text = ++j->at;
	while (j->at < j->end && *j->at != '"') {
		unsigned char c = (unsigned char)*j->at;
		if (c < 0x20)
			return fail(j, -EINVAL, "a control character stands in a string");
		j->at++;
		if (c != '\\')
			continue;
		t->escaped = true;
		why = check_escape(j);
		if (why)
			return fail(j, -EINVAL, why);
	}
	if (j->at >= j->end)
		return fail(j, -EINVAL, "a string is not closed");
	t->len = (uint32_t)(j->at++ - t->text);
	return kind;
}

static bool skip_digits(struct json *j)
{
	const char *first = j->at;

	while (j->at < j->end && is_digit(*j->at))
		j->at++;
	return j->at > first;
}

static bool accept(struct json *j, const char *any)
{
	if (j->at >= j->end || !*j->at || !strchr(any, *j->at))
		return false;
	j->at++;
	return true;
}

static int scan_number(struct json *j, struct json_token *t)
{
	t->kind = JSON_NUMBER;
	t->text = j->at;
	accept(j, "-");
	if (!accept(j, "0") && !skip_digits(j))
		return fail(j, -EINVAL, "a number has no digits");
	if (accept(j, ".") && !skip_digits(j))
		return fail(j, -EINVAL, "digits follow a decimal point");
	if (accept(j, "eE")) {
		accept(j, "+-");
		if (!skip_digits(j))
			return fail(j, -EINVAL, "an exponent has no digits");
	}
	t->len = (uint32_t)(j->at - t->text);
	return JSON_NUMBER;
}

static int scan_word(struct json *j, struct json_token *t)
{
	static const struct {
		const char *text;
		enum json_kind kind;
	} words[] = { { "true", JSON_TRUE }, { "false", JSON_FALSE }, { "null", JSON_NULL } };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t len = strlen(words[i].text);
		if ((size_t)(j->end - j->at) < len || memcmp(j->at, words[i].text, len) != 0)
			continue;
		t->kind = words[i].kind;
		t->text = j->at;
		t->len = (uint32_t)len;
		j->at += len;
		return t->kind;
	}
	return fail(j, -EINVAL, "a value is missing here");
}

static bool in_object(const struct json *j)
{
	return j->depth && j->objects >> (j->depth - 1) & 1;
}

static int open_level(struct json *j, struct json_token *t, bool object)
{
	if (j->depth >= JSON_DEPTH)
		return fail(j, -E2BIG, "objects and arrays are nested too deeply");
	j->objects &= ~(1ull << j->depth);
	j->objects |= (uint64_t)object << j->depth;
	j->depth++;
	j->at++;
	j->state = object ? AT_FIRST_KEY : AT_FIRST_VALUE;
	t->kind = object ? JSON_OBJECT : JSON_ARRAY;
	return t->kind;
}

static int close_level(struct json *j, struct json_token *t)
{
	t->kind = in_object(j) ? JSON_OBJECT_END : JSON_ARRAY_END;
	j->depth--;
	j->at++;
	j->state = AT_SEPARATOR;
	return t->kind;
}

static int scan_value(struct json *j, struct json_token *t)
{
	char c = *j->at;

	if (c == '{' || c == '[')
		return open_level(j, t, c == '{');
	if (c == ']' && j->state == AT_FIRST_VALUE)
		return close_level(j, t);
	j->state = AT_SEPARATOR;
	if (c == '"')
		return scan_string(j, t, JSON_STRING);
	if (c == '-' || is_digit(c))
		return scan_number(j, t);
	return scan_word(j, t);
}

static int scan_key(struct json *j, struct json_token *t)
{
	if (*j->at == '}' && j->state == AT_FIRST_KEY)
		return close_level(j, t);
	if (*j->at != '"')
		return fail(j, -EINVAL, "a key in quotes is missing here");
	j->state = AT_COLON;
	return scan_string(j, t, JSON_KEY);
}

/* Passes a comma or a colon. 1: the token behind it is next, else the kind of a closing bracket. */
static int pass_separator(struct json *j, struct json_token *t)
{
	char c = *j->at;

	if (j->state == AT_COLON) {
		if (c != ':')
			return fail(j, -EINVAL, "':' is missing behind a key");
		j->state = AT_VALUE;
	} else if (!j->depth) {
		return fail(j, -EINVAL, "something follows the end of the value");
	} else if (c == (in_object(j) ? '}' : ']')) {
		close_level(j, t);
		return 0;
	} else if (c != ',') {
		return fail(j, -EINVAL,
			    in_object(j) ? "',' or '}' is missing here"
					 : "',' or ']' is missing here");
	} else {
		j->state = in_object(j) ? AT_KEY : AT_VALUE;
	}
	j->at++;
	skip_space(j);
	return 1;
}

int json_next(struct json *j, struct json_token *t)
{
	*t = (struct json_token){ 0 };
	if (j->state == AT_FAILURE)
		return -EINVAL;
	skip_space(j);
	t->text = j->at;
	if (j->state == AT_SEPARATOR && !j->depth && j->at == j->end)
		return JSON_END;
	if (j->at < j->end && (j->state == AT_SEPARATOR || j->state == AT_COLON)) {
		int r = pass_separator(j, t);
		if (r <= 0)
			return r < 0 ? r : (int)t->kind;
	}
	if (j->at == j->end)
		return fail(j, -EINVAL, "the text ends too early");
	if (j->state == AT_KEY || j->state == AT_FIRST_KEY)
		return scan_key(j, t);
	return scan_value(j, t);
}

int json_skip(struct json *j, const struct json_token *t)
{
	struct json_token next = *t;
	int r = next.kind;

	if (r == JSON_KEY)
		r = json_next(j, &next);
	if (r != JSON_OBJECT && r != JSON_ARRAY)
		return r < 0 ? r : 0;
	for (unsigned level = j->depth; r > 0 && j->depth >= level;)
		r = json_next(j, &next);
	return r < 0 ? r : 0;
}

static void add_utf8(struct buf *out, uint32_t c)
{
	char bytes[4];
	size_t n = 0;

	if (c < 0x80) {
		bytes[n++] = (char)c;
	} else if (c < 0x800) {
		bytes[n++] = (char)(0xc0 | c >> 6);
	} else if (c < 0x10000) {
		bytes[n++] = (char)(0xe0 | c >> 12);
		bytes[n++] = (char)(0x80 | (c >> 6 & 0x3f));
	} else {
		bytes[n++] = (char)(0xf0 | c >> 18);
		bytes[n++] = (char)(0x80 | (c >> 12 & 0x3f));
		bytes[n++] = (char)(0x80 | (c >> 6 & 0x3f));
	}
	if (c >= 0x80)
		bytes[n++] = (char)(0x80 | (c & 0x3f));
	buf_add(out, bytes, n);
}

static uint32_t four_digits(const char *at)
{
	uint32_t v = 0;

	for (int i = 0; i < 4; i++)
		v = v << 4 | (uint32_t)hex_digit(at[i]);
	return v;
}

/* `at` is on the four digits of \u; the end of the escape, a pair of surrogates taken as one. */
static const char *decode_unicode(struct buf *out, const char *at, const char *end)
{
	uint32_t c = four_digits(at);

	at += 4;
	if (c >= 0xd800 && c < 0xdc00 && end - at >= 6 && at[0] == '\\' && at[1] == 'u') {
		uint32_t low = four_digits(at + 2);
		if (low >= 0xdc00 && low < 0xe000) {
			add_utf8(out, 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00));
			return at + 6;
		}
	}
	add_utf8(out, !c || (c >= 0xd800 && c < 0xe000) ? 0xfffd : c);
	return at;
}

static char plain_escape(char c)
{
	static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
	const char *found = strchr(from, c);

	return found ? to[found - from] : c;
}

void json_decode(struct buf *out, const struct json_token *t)
{
	/* A token that was never filled in has no text to point into. */
	if (!t->len)
		return;
	const char *at = t->text, *end = at + t->len;

	while (t->escaped && at < end) {
		const char *slash = memchr(at, '\\', (size_t)(end - at));
		if (!slash)
			break;
		buf_add(out, at, (size_t)(slash - at));
		at = slash + 2;
		if (slash[1] == 'u') {
			at = decode_unicode(out, at, end);
		} else {
			char c = plain_escape(slash[1]);
			buf_add(out, &c, 1);
		}
	}
	buf_add(out, at, (size_t)(end - at));
}

bool json_is(const struct json_token *t, const char *text)
{
	size_t len = strlen(text);

	if (!t->escaped)
		return t->len == len && memcmp(t->text, text, len) == 0;
	struct buf plain = { 0 };
	json_decode(&plain, t);
	bool same = !plain.failed && plain.len == len && memcmp(plain.at, text, len) == 0;
	buf_done(&plain);
	return same;
}

void json_place(const struct json *j, unsigned *line, unsigned *column)
{
	const char *start = j->text;

	*line = 1;
	for (const char *c = j->text; c < j->at; c++) {
		if (*c != '\n')
			continue;
		++*line;
		start = c + 1;
	}
	*column = (unsigned)(j->at - start) + 1;
}
