/* SPDX-License-Identifier: MIT */
/* Words by the quoting rules of POSIX's shell (XCU 2.2), as far as they need no shell. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "words.h"

/* Operators, expansions and patterns: what sh(1) would not take literally ... */
#define SHELL_SIGNS "|&;<>()$`*?[\n"
/* ... at the start of a word alone: a home folder, a comment; in the first: `!`, and `A=b`. */
#define SHELL_STARTS "~#"
#define SHELL_FIRST  "!="
/* What a backslash quotes within "..."; before anything else it stands for itself. */
#define ESCAPED "$`\"\\"

struct split {
	const char *at; /* in the text */
	char *to;       /* behind what was written */
	bool shell, first;
};

/* From behind the opening quote to behind the closing one; false: there is none. */
static bool take_quoted(struct split *s, char quote)
{
	for (; *s->at != quote; s->at++) {
		if (!*s->at)
			return false;
		if (quote == '"' && *s->at == '\\' && s->at[1] && strchr(ESCAPED, s->at[1]))
			s->at++;
		else if (quote == '"' && strchr("$`", *s->at))
			s->shell = true;
		*s->to++ = *s->at;
	}
	s->at++;
	return true;
}

static bool is_sign(const struct split *s, char c, bool starts)
{
	return strchr(SHELL_SIGNS, c) || (starts && strchr(SHELL_STARTS, c)) ||
	       (s->first && strchr(SHELL_FIRST, c));
}

static bool take_word(struct split *s)
{
	const char *start = s->at;
	bool good = true;

	while (good && *s->at && !strchr(" \t", *s->at)) {
		char c = *s->at++;
		if (c == '\'' || c == '"') {
			good = take_quoted(s, c);
		} else if (c == '\\' && *s->at) {
			*s->to++ = *s->at++;
		} else {
			s->shell |= is_sign(s, c, s->at == start + 1);
			*s->to++ = c;
		}
	}
	*s->to++ = '\0';
	s->first = false;
	return good;
}

static int split(struct words *out, const char *text)
{
	struct split s = { .at = text, .to = out->text, .first = true };
	int count = 0;

	for (s.at += strspn(s.at, " \t"); *s.at; s.at += strspn(s.at, " \t")) {
		out->argv[count++] = s.to;
		if (!take_word(&s))
			return -EINVAL;
	}
	out->shell = s.shell;
	return count ? 0 : -EINVAL;
}

static void use_shell(struct words *out, const char *text)
{
	static const char head[] = "sh\0-c";

	memcpy(out->text, head, sizeof(head));
	strcpy(out->text + sizeof(head), text);
	out->argv[0] = out->text;
	out->argv[1] = out->text + 3;
	out->argv[2] = out->text + sizeof(head);
	out->argv[3] = NULL;
}

int words_split(struct words *out, const char *text)
{
	size_t length = strlen(text);

	*out = (struct words){
		/* Each word takes a character at least, and a blank; sh -c TEXT takes four. */
		.argv = calloc(length / 2 + 5, sizeof(char *)),
		.text = malloc(length + 16),
	};
	int r = out->argv && out->text ? split(out, text) : -ENOMEM;
	if (r == 0 && out->shell)
		use_shell(out, text);
	if (r < 0)
		words_free(out);
	return r;
}

void words_free(struct words *words)
{
	free(words->argv);
	free(words->text);
	*words = (struct words){ 0 };
}
