/* SPDX-License-Identifier: MIT */
/* words: a command's text as POSIX's shell would split it, or left to the shell. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../../cli/words.h"
#include "tap.h"

/* The words with a '|' behind each, malloc'ed; "" for an error. */
static char *joined(const char *text, int *shell)
{
	struct words words;
	char *out = calloc(1, 256);

	*shell = -1;
	if (!out || words_split(&words, text) < 0)
		return out;
	for (char **argv = words.argv; *argv; argv++) {
		strcat(out, *argv);
		strcat(out, "|");
	}
	*shell = words.shell;
	words_free(&words);
	return out;
}

static void check_words(const char *text, const char *want, int want_shell)
{
	int shell;
	char *got = joined(text, &shell);

	check_str(got, want);
	check_int(shell, want_shell);
	free(got);
}

static void blanks_and_quotes_make_words(void)
{
	check_words("a", "a|", 0);
	check_words("  ls -l \t /tmp  ", "ls|-l|/tmp|", 0);
	check_words("a 'b  c' \"d  e\"", "a|b  c|d  e|", 0);
	check_words("a'b'\"c\"d", "abcd|", 0);
}

static void empty_words_stay(void)
{
	check_words("a '' b", "a||b|", 0);
}

static void backslashes_quote(void)
{
	check_words("a\\ b", "a b|", 0);
	check_words("a \\$HOME \\;", "a|$HOME|;|", 0);
	check_words("a \"x\\\"y\\\\z\\q\"", "a|x\"y\\z\\q|", 0);
	check_words("a '\\'", "a|\\|", 0);
}

static void quoted_signs_need_no_shell(void)
{
	check_words("echo '$HOME; *' \"a;b|c\"", "echo|$HOME; *|a;b|c|", 0);
	check_words("cc --std=gnu17 a#b x~ -DA={1}", "cc|--std=gnu17|a#b|x~|-DA={1}|", 0);
}

static void signs_of_the_shell_are_left_to_it(void)
{
	static const char *const texts[] = {
		"a | b", "a; b",  "a && b",   "a > f",     "a < f", "a $B",  "a `b`", "a *", "a b?",
		"a [x]", "A=b c", "a \"$B\"", "a \"`b`\"", "a ~/f", "a # b", "! a",   "(a)", "a\nb",
	};
	char want[64];

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		snprintf(want, sizeof(want), "sh|-c|%s|", texts[i]);
		check_words(texts[i], want, 1);
	}
}

static void what_is_no_command_is_refused(void)
{
	static const char *const texts[] = { "", "  ", "a 'b", "a \"b", "'", "a 'b\\'c'" };
	struct words words;

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		check_int(words_split(&words, texts[i]), -EINVAL);
}

int main(void)
{
	tap_run(blanks_and_quotes_make_words);
	tap_run(empty_words_stay);
	tap_run(backslashes_quote);
	tap_run(quoted_signs_need_no_shell);
	tap_run(signs_of_the_shell_are_left_to_it);
	tap_run(what_is_no_command_is_refused);
	return tap_end();
}
