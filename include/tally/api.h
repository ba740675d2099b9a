/* SPDX-License-Identifier: MIT */
/*
 * What every tally header needs: visibility, versions and options structs.
 *
 * Conventions that hold for the whole library:
 *  - A function that returns int answers 0 or a count, or a negative errno. Out parameters are
 *    written only on success.
 *  - Functions that open, parse or load end with `struct tally_error *err`. It may be NULL.
 *  - Nothing prints, exits, aborts, installs a signal handler or forks unless that is its purpose.
 *  - There is no global state and no initialisation call. Different objects may be used by
 *    different threads at the same time; one object is used by one thread at a time, unless its
 *    header says more.
 *  - Every file descriptor is opened close-on-exec.
 */
#ifndef TALLY_API_H
#define TALLY_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define TALLY_BEGIN_DECLS extern "C" {
#define TALLY_END_DECLS   }
#else
#define TALLY_BEGIN_DECLS
#define TALLY_END_DECLS
#endif

/* Marks what the shared libraries export; everything else is hidden. */
#define TALLY_API __attribute__((visibility("default")))

/* Checks a printf-like function's arguments; `fmt` and `first` are 1-based positions. */
#define TALLY_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))

#define TALLY_VERSION_MAJOR 0
#define TALLY_VERSION_MINOR 1
#define TALLY_VERSION_PATCH 0

/*
 * Options structs begin with `uint32_t size, flags;`. Zero in any other field means the default,
 * and a NULL pointer means all defaults. A size of 0 is -EINVAL; a flag that this library does not
 * know is -EINVAL, a non-zero byte behind the fields that it knows -E2BIG. TALLY_OPTS fills in the size:
 *
 *	tally_sampler_open(&s, events, target, TALLY_OPTS(sampler, .freq = 999), &err);
 */
#ifdef __cplusplus /* C++20's designated initialisers, in the order of declaration */
#define TALLY_OPTS(kind, ...)                                             \
	([&] {                                                            \
		static thread_local struct tally_##kind##_opts opts_;     \
		opts_ = { .size = (uint32_t)sizeof(opts_), __VA_ARGS__ }; \
		return &opts_;                                            \
	}())
#else
#define TALLY_OPTS(kind, ...) \
	(&(struct tally_##kind##_opts){ .size = sizeof(struct tally_##kind##_opts), __VA_ARGS__ })
#endif

TALLY_BEGIN_DECLS

/* The version of the library that runs, as "MAJOR.MINOR.PATCH". Static storage. Since: 0.1 */
TALLY_API const char *tally_version(void);

TALLY_END_DECLS

#endif
