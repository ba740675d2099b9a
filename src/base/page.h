/* SPDX-License-Identifier: MIT */
/* Pages of memory, and those that a forked child does not inherit. */
#ifndef BASE_PAGE_H
#define BASE_PAGE_H

#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/sys.h"

static inline size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static inline void page_unmap(void *page)
{
	sys()->munmap(page, page_size());
}

/* A page that reads as 0 in a forked child (Linux 4.14); NULL: none is to be had. */
static inline void *page_map_wiped(void)
{
	void *at = NULL;

	if (sys()->mmap(&at, page_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			0) < 0)
		return NULL;
	if (sys()->madvise(at, page_size(), MADV_WIPEONFORK) < 0) {
		page_unmap(at);
		return NULL;
	}
	return at;
}

#endif
