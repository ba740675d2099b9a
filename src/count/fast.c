/* SPDX-License-Identifier: MIT */
/*
 * Counters read without a system call, and the way through the kernel where that is not to be had.
 */
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "base/page.h"
#include "base/sys.h"
#include "count/fast.h"
#include "count/opened.h"
#include "count/read-format.h"
#include "count/settle.h"

/* This is on the stack of a signal handler. */
#define MOST_MEMBERS 64
#define MOST_WORDS   READ_WORDS(MOST_MEMBERS)

/* What one counter or group has mapped. */
struct fast_pages {
	uintptr_t *owner; /* alone on a page that fork wipes */
	uint32_t members;
	void *at[]; /* by member; NULL: not mapped */
};

static int take_one(const struct tally_fast *fast, struct tally_count *out)
{
	uint64_t words[READ_ALONE_WORDS];
	ssize_t n = sys_read(fast->fd, words, sizeof(words));

	if (n < 0)
		return (int)n;
	if (n == 0)
		return -EBUSY;
	if (n < (ssize_t)((READ_ALONE_WORDS - 1) * sizeof(*words)))
		return -EIO;
	out->raw = words[0];
	out->enabled_ns = words[1];
	out->running_ns = words[2];
	out->lost = n == sizeof(words) ? words[4] : 0;
	return 0;
}

static int take_member(const struct tally_fast *fast, struct tally_count *out)
{
	uint64_t words[MOST_WORDS];
	ssize_t n = sys_read(fast->fd, words, sizeof(words));

	if (n < 0)
		return (int)n;
	if (n == 0)
		return -EBUSY;
	size_t got = (size_t)n / sizeof(*words);
	if (got < READ_GROUP_HEAD || !words[0])
		return -EIO;
	size_t width = (got - READ_GROUP_HEAD) / words[0];
	for (size_t i = READ_GROUP_HEAD; width >= 2 && i + width <= got; i += width) {
		if (words[i + 1] != fast->id)
			continue;
		out->raw = words[i];
		out->enabled_ns = words[1];
		out->running_ns = words[2];
		out->lost = width > 2 ? words[i + 2] : 0;
		return 0;
	}
	return -EIO;
}

static int take(const struct tally_fast *fast, struct tally_count *out)
{
	return fast->id ? take_member(fast, out) : take_one(fast, out);
}

int tally_fast_read_kernel(const struct tally_fast *fast, struct tally_count *out)
{
	struct tally_count count = { 0 };
	int r = take(fast, &count);

	if (r == -EBUSY)
		count.error = r;
	else if (r < 0)
		return r;
	count_settle(&count);
	*out = count;
	return 0;
}

int tally_fast_value_kernel(const struct tally_fast *fast, uint64_t *value)
{
	struct tally_count count;
	int r = take(fast, &count);

	if (r == 0)
		*value = count.raw;
	return r;
}

int tally_fast_get(const struct tally_fast *fast, uint64_t *value)
{
	return tally_fast_read(fast, value);
}

int tally_fast_get_count(const struct tally_fast *fast, struct tally_count *out)
{
	return tally_fast_read_count(fast, out);
}

bool tally_fast_is_user(const struct tally_fast *fast)
{
	struct tally_fast_now_ now;

	return tally_fast_mine_(fast) &&
	       tally_fast_from_page_(fast->page, tally_fast_counter_, NULL, &now);
}

/* Elsewhere config1 means something else: an address, a path. */
static bool has_user_bit(const struct tally_attr *attr)
{
	return attr->type == TALLY_TYPE_HARDWARE || attr->type == TALLY_TYPE_HW_CACHE ||
	       attr->type == TALLY_TYPE_RAW;
}

void fast_ask(struct tally_attr *attr, uint64_t bit)
{
	if (has_user_bit(attr))
		attr->config1 |= bit;
}

bool fast_give_up(struct tally_attr *attr, uint64_t bit)
{
	if (!has_user_bit(attr) || !(attr->config1 & bit))
		return false;
	attr->config1 &= ~bit;
	return true;
}

clockid_t fast_thread_clock(void)
{
	clockid_t id;

	return pthread_getcpuclockid(pthread_self(), &id) == 0 ? id : 0;
}

static struct fast_pages *pages_new(uint32_t members, uintptr_t owner)
{
	struct fast_pages *pages = calloc(1, sizeof(*pages) + members * sizeof(*pages->at));

	if (!pages)
		return NULL;
	pages->members = members;
	pages->owner = page_map_wiped();
	if (!pages->owner) {
		free(pages);
		return NULL;
	}
	*pages->owner = owner;
	return pages;
}

/*
 * A page alone, without a ring behind it. It counts as locked memory of the user, as a ring does.
 */
static void map_member(struct opened *o, uint32_t member, struct tally_fast *out)
{
	void *at = o->pages->at[member];

	if (!at && sys()->mmap(&at, page_size(), PROT_READ, MAP_SHARED, o->fds[member], 0) < 0)
		return;
	o->pages->at[member] = at;
	out->page = at;
	out->owner = o->pages->owner;
}

/*
 * Whether a page would be of use: where there are instructions to read with, to the counted thread.
 */
static bool is_mine(const struct opened *o)
{
	return o->opener && o->opener == tally_fast_thread_() &&
	       o->opener_clock == fast_thread_clock() && o->places[0].tid == 0 &&
	       o->places[0].cpu == -1;
}

int fast_open(struct opened *o, uint32_t member, struct tally_fast *out, struct tally_error *err)
{
	if (o->places_count != 1)
		return error_set(
			err, -EINVAL, TALLY_CAUSE_ARGUMENT,
			"a counter of %u places cannot be read at once: a fast read is for "
			"one thread, as TALLY_SCOPE_SELF is",
			o->places_count);
	if (member >= o->members)
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
				 "the group has %u members: there is no member %u", o->members,
				 member);
	if (o->members > MOST_MEMBERS)
		return error_set(err, -EINVAL, TALLY_CAUSE_LIMIT,
				 "a group of %u members is too large for fast reads: at most %d",
				 o->members, MOST_MEMBERS);
	/*
	 * As groups are read everywhere: by the leader, which knows whether the group lost its
	 * place; unless its members are read one by one.
	 */
	*out = (struct tally_fast){ .fd = o->fds[o->singly ? member : 0] };
	if (!o->singly)
		out->id = o->ids[member];
	if (!is_mine(o))
		return 0;
	if (!o->pages)
		o->pages = pages_new(o->members, o->opener);
	if (o->pages)
		map_member(o, member, out);
	return 0;
}

void fast_pages_close(struct fast_pages *pages)
{
	if (!pages)
		return;
	/* A forked child has not got the pages: something else may stand in their place. */
	for (uint32_t i = 0; *pages->owner && i < pages->members; i++)
		if (pages->at[i])
			page_unmap(pages->at[i]);
	page_unmap(pages->owner);
	free(pages);
}
