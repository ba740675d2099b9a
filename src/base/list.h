/* SPDX-License-Identifier: MIT */
/* Comma-separated lists, as options give them. A comma at the end begins no further item. */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stdbool.h>
#include <string.h>

/* The next item of a list that is not at its end: its length; `*list` moves behind it. */
static inline size_t list_next(const char **list, const char **item)
{
	size_t len = strcspn(*list, ",");

	*item = *list;
	*list += len + ((*list)[len] == ',');
	return len;
}

static inline bool list_item_is(const char *item, size_t len, const char *word)
{
	return !strncmp(word, item, len) && !word[len];
}

static inline bool list_holds(const char *list, const char *word)
{
	const char *item;

	while (*list) {
		size_t len = list_next(&list, &item);
		if (list_item_is(item, len, word))
			return true;
	}
	return false;
}

/* How long the name of an event is without its modifiers: of "cycles:u", "cpu/cycles/u". */
static inline size_t event_stem(const char *name)
{
	size_t len = strlen(name), at = len;

	while (at && strchr("ukhIGHpPSDWebRX", name[at - 1]))
		at--;
	if (at == len || !at || (name[at - 1] != ':' && name[at - 1] != '/'))
		return len;
	return name[at - 1] == ':' ? at - 1 : at;
}

/* Whether a word means an event: its name, or that without modifiers, which means all of them. */
static inline bool word_means_event(const char *word, size_t len, const char *name)
{
	return !strncmp(word, name, len) && (!name[len] || len == event_stem(name));
}

static inline bool list_means_event(const char *list, const char *name)
{
	const char *item;

	/* A name may have commas of its own. */
	if (word_means_event(list, strlen(list), name))
		return true;
	while (*list) {
		size_t len = list_next(&list, &item);
		if (word_means_event(item, len, name))
			return true;
	}
	return false;
}

#endif
