/* SPDX-License-Identifier: MIT */
/* Fresh pages: each one that is touched is a page fault, whatever the machine. */
#ifndef TESTS_FRESH_H
#define TESTS_FRESH_H

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* Shadow memory of a sanitizer would fault as well. */
#if defined(__SANITIZE_ADDRESS__)
#define FRESH_UNWATCHED __attribute__((no_sanitize_address))
#elif defined(__SANITIZE_THREAD__)
#define FRESH_UNWATCHED __attribute__((no_sanitize_thread))
#elif defined(__clang__)
#define FRESH_UNWATCHED __attribute__((no_sanitize("address", "undefined", "thread")))
#else
#define FRESH_UNWATCHED
#endif

struct fresh {
	volatile char *at;
	size_t pages, page_size, touched;
};

/* Nothing faults while it is mapped. `at` is NULL when there is no memory. */
static inline struct fresh fresh_map(size_t pages)
{
	struct fresh f = { NULL, pages, (size_t)sysconf(_SC_PAGESIZE), 0 };
	void *at = mmap(NULL, pages * f.page_size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at != MAP_FAILED) {
		madvise(at, pages * f.page_size, MADV_NOHUGEPAGE);
		f.at = at;
	}
	return f;
}

/* Touches the next n pages. */
FRESH_UNWATCHED static inline void fresh_touch(struct fresh *f, size_t n)
{
	for (; n > 0 && f->touched < f->pages; n--)
		f->at[f->touched++ * f->page_size] = 1;
}

static inline void fresh_unmap(struct fresh *f)
{
	munmap((void *)(uintptr_t)f->at, f->pages * f->page_size);
}

#endif
