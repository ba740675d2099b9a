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

#endif
