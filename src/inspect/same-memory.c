/* SPDX-License-Identifier: MIT */
/*
 * What a run has in memory that it has written: pages of its own, by /proc/PID/pagemap, and those of
 * files that it shares. Pages are compared by hashes, and byte by byte where these differ.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/sys.h"
#include "inspect/same.h"

#define PAGE 4096u

/* An entry of pagemap: Linux, Documentation/admin-guide/mm/pagemap.rst. */
#define PAGEMAP_PRESENT (1ull << 63)
#define PAGEMAP_SWAPPED (1ull << 62)
#define PAGEMAP_FILE    (1ull << 61) /* of a file, or shared memory */

#define ENTRIES 512

struct area {
	uint64_t start, end;
	bool shared;
};

/* A line of /proc/PID/maps whose pages may have been written. */
static bool read_area(const char *line, struct area *area)
{
	char perms[8], name[64] = "";

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %*s %*s %*s %63s", &area->start, &area->end,
		   perms, name) < 3)
		return false;
	area->shared = perms[3] == 's';
	/* What cannot be written now may have been before; what is shared may be big, and another's. */
	return strncmp(name, "[v", 2) != 0 && (!area->shared || perms[1] == 'w');
}

/* What AT_RANDOM points to is compared when it is used. It may lie across the end of a page. */
static void clear_random(const struct same_run *run, uint64_t address, uint8_t *bytes)
{
	uint64_t start = run->at_random, end = start + SAME_RANDOM_BYTES;

	if (start < address)
		start = address;
	if (end > address + PAGE)
		end = address + PAGE;
	if (start < end)
		memset(bytes + (start - address), 0, end - start);
}

static int read_page(const struct same_run *run, uint64_t address, uint8_t *bytes, uint64_t *hash)
{
	int r = tally_tracee_peek(same_turn_any(run), address, bytes, PAGE);

	if (r == 0)
		clear_random(run, address, bytes);
	*hash = r < 0 ? 0 : hash_bytes(bytes, PAGE);
	return r;
}

static int add_page(struct same_run *run, uint64_t address)
{
	uint8_t bytes[PAGE];
	struct same_page *page;
	uint64_t hash;

	if (read_page(run, address, bytes, &hash) < 0)
		return 0; /* a device's: it is not memory */
	page = vec_push(&run->pages);
	if (!page)
		return -ENOMEM;
	page->address = address;
	page->hash = hash;
	return 0;
}

static int add_area(struct same_run *run, int pagemap, const struct area *area)
{
	uint64_t entries[ENTRIES];
	int r = 0;

	for (uint64_t at = area->start; at < area->end && r == 0; at += ENTRIES * (uint64_t)PAGE) {
		uint64_t count = (area->end - at) / PAGE;
		count = count < ENTRIES ? count : ENTRIES;
		ssize_t got = sys()->pread(pagemap, entries, count * sizeof(*entries),
					   (off_t)(at / PAGE * sizeof(*entries)));
		if (got < 0)
			return (int)got;
		for (uint64_t i = 0; i < (uint64_t)got / sizeof(*entries) && r == 0; i++)
			if ((entries[i] & (PAGEMAP_PRESENT | PAGEMAP_SWAPPED)) &&
			    (area->shared || !(entries[i] & PAGEMAP_FILE)))
				r = add_page(run, at + i * PAGE);
	}
	return r;
}

int same_memory_digest(struct same_run *run, uint64_t *bytes)
{
	int32_t pid = tally_tracee_tid(same_turn_any(run));
	char path[64], *line = NULL;
	size_t room = 0;
	struct area area;
	int r = 0;

	run->pages.count = 0;
	snprintf(path, sizeof(path), "/proc/%d/pagemap", pid);
	int pagemap = sys()->open(path, 0, 0);
	if (pagemap < 0)
		return pagemap;
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	FILE *maps = fopen(path, "re");
	if (!maps)
		r = -errno;
	while (r == 0 && getline(&line, &room, maps) > 0)
		if (read_area(line, &area))
			r = add_area(run, pagemap, &area);
	free(line);
	if (maps)
		fclose(maps);
	sys()->close(pagemap);
	*bytes = run->pages.count * (uint64_t)PAGE;
	return r;
}

/* 1: the bytes there differ. What only one of the two has mapped differs, too. */
static int compare_page(const struct same_run *a, const struct same_run *b, uint64_t page,
			uint64_t *address)
{
	uint8_t bytes[2][PAGE];
	uint64_t hash;
	int left = read_page(a, page, bytes[0], &hash), right = read_page(b, page, bytes[1], &hash);

	*address = page;
	if (left < 0 || right < 0)
		return (left < 0) != (right < 0);
	for (size_t i = 0; i < PAGE; i++) {
		*address = page + i;
		if (bytes[0][i] != bytes[1][i])
			return 1;
	}
	return 0;
}

/* Both lists ascend. A page that one has touched, and the other not, may hold the same. */
int same_memory_compare(struct same_run *a, struct same_run *b, uint64_t *address)
{
	size_t i = 0, j = 0;

	while (i < a->pages.count || j < b->pages.count) {
		uint64_t left = i < a->pages.count ? a->pages.at[i].address : UINT64_MAX;
		uint64_t right = j < b->pages.count ? b->pages.at[j].address : UINT64_MAX;
		uint64_t page = left < right ? left : right;
		bool equal = left == right && a->pages.at[i].hash == b->pages.at[j].hash;

		i += left == page;
		j += right == page;
		if (!equal && compare_page(a, b, page, address) == 1)
			return 1;
	}
	return 0;
}

/* Larger than any XSAVE area so far: with AMX it has 11 KiB. */
#define VECTOR_BYTES 16384
/* The byte by which two areas differ; `len`: none. */
static size_t find_difference(uint32_t machine, const uint8_t *a, const uint8_t *b, size_t len)
{
	size_t at = 0;

	while (at < len && (a[at] == b[at] || same_vector_header(machine, at)))
		at++;
	return at;
}

int same_vectors_compare(struct same_run *a, struct same_run *b, uint32_t *thread, size_t *byte,
			 uint8_t values[2])
{
	uint8_t left[VECTOR_BYTES], right[VECTOR_BYTES];
	int r = 0;

	for (size_t i = 0; i < a->threads.count && i < b->threads.count && r == 0; i++) {
		struct same_thread *ta = a->threads.at[i], *tb = b->threads.at[i];
		size_t len = sizeof(left), other = sizeof(right);
		/* One that is inside or has ended has none to look at. */
		if (ta->state >= SAME_INSIDE || tb->state >= SAME_INSIDE)
			continue;
		r = tally_tracee_vector(ta->tracee, left, &len);
		if (r == 0)
			r = tally_tracee_vector(tb->tracee, right, &other);
		if (r == -ESRCH) { /* another thread ends them both */
			r = 0;
			continue;
		}
		len = r < 0 ? 0 : len < other ? len : other;
		size_t at = find_difference(ta->regs.machine, left, right, len);
		if (at == len)
			continue;
		*thread = (uint32_t)i + 1;
		*byte = at;
		values[0] = left[at];
		values[1] = right[at];
		return 1;
	}
	return r;
}
