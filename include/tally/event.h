/* SPDX-License-Identifier: MIT */
/*
 * Events: a name, what to ask the kernel for, and what it granted.
 *
 * A text as perf(1) takes it after -e becomes a list of events. Groups in it are kept.
 *
 *	struct tally_events *events;
 *	tally_events_parse(&events, "{cycles,instructions}:u,page-faults", NULL, &err);
 *	...
 *	tally_events_free(events);
 *
 * Names: generic hardware (cycles, instructions, cache-misses ...), software (cpu-clock,
 * page-faults or faults ...), cache events (L1-dcache-load-misses, LLC-loads ...), rNNN (raw, hex),
 * tracepoints (group:name, from tracefs).
 * Modifiers behind a colon: u user, k kernel, h hypervisor, H host, G guest, I not when idle,
 * p pp ppp more precise, P as precise as there is, D pinned, S sample-read. Those behind a group's
 * brace add to those of its members. Guests are left out unless G or H is given.
 */
#ifndef TALLY_EVENT_H
#define TALLY_EVENT_H

#include <tally/api.h>
#include <tally/attr.h>
#include <tally/error.h>

TALLY_BEGIN_DECLS

struct tally_events; /* a list of events; owns them */
struct tally_event;  /* one event of a list; lives as long as the list */

/* What may be given up, in this order, when the kernel refuses an event. Bits. */
enum tally_fallback {
	/* Ask for less precision: precise_ip 3, 2, 1, 0. Only for the modifier P and defaults. */
	TALLY_FALLBACK_PRECISE = 1u << 0,
	/* Leave out attr bits that this kernel does not know and that change no count. */
	TALLY_FALLBACK_NEWER_BITS = 1u << 1,
	/* Count user mode only where kernel.perf_event_paranoid forbids the kernel. */
	TALLY_FALLBACK_USER_ONLY = 1u << 2,
	/* Take cpu-clock for cycles where there is no PMU: time instead of cycles. */
	TALLY_FALLBACK_CPU_CLOCK = 1u << 3,
};

struct tally_events_opts {
	uint32_t size, flags;
	uint32_t fallback; /* enum tally_fallback; 0: give up nothing but newer bits */
	uint32_t reserved;
	const char *root; /* folder above /sys and /proc; NULL: the real one. Borrowed. */
};

/*
 * Parses a list of events: names separated by commas or white space, `{a,b}` a group whose first
 * member leads, modifiers behind a name or a closing brace. `*out` is yours to free.
 * Errors: -EINVAL with the column and, when a name is merely unknown, the nearest one that exists
 * (TALLY_CAUSE_SYNTAX, _UNKNOWN; _UNSUPPORTED for what no PMU has, as writes of an instruction
 * cache; _LIMIT beyond 4096 events); -ENOENT, -EACCES when tracefs cannot be read; -ENOMEM.
 * Since: 0.1
 */
TALLY_API int tally_events_parse(struct tally_events **out, const char *text,
				 const struct tally_events_opts *opts, struct tally_error *err);

/*
 * A list of one event from an attr of your own. `name` is copied; NULL gives it a name by its type
 * and config. Errors: -EINVAL, -ENOMEM. Since: 0.1
 */
TALLY_API int tally_events_new(struct tally_events **out, const char *name,
			       const struct tally_attr *attr, const struct tally_events_opts *opts,
			       struct tally_error *err);

/* Frees the list and its events. Nothing opened from it may be in use. NULL is fine. Since: 0.1 */
TALLY_API void tally_events_free(struct tally_events *events);

/* How many events there are; at least 1. Since: 0.1 */
TALLY_API uint32_t tally_events_count(const struct tally_events *events);

/* The i-th event in the text's order, NULL beyond the end. Since: 0.1 */
TALLY_API struct tally_event *tally_events_at(const struct tally_events *events, uint32_t i);

/* Since: 0.1, all of these. Texts are borrowed from the list. */

/* As it was written, modifiers included ("cycles:u"), those of its group too. */
TALLY_API const char *tally_event_name(const struct tally_event *event);
/* "ns" for clocks, "" for plain counts; after opening that of the event that was granted. */
TALLY_API const char *tally_event_unit(const struct tally_event *event);
/* What a raw count is multiplied with to be in that unit; 1.0 for all events so far. */
TALLY_API double tally_event_scale(const struct tally_event *event);
/* The position of this event and of its group's leader in the list; equal when it leads or is
 * alone. */
TALLY_API uint32_t tally_event_index(const struct tally_event *event);
TALLY_API uint32_t tally_event_leader(const struct tally_event *event);
/* How many events its group has; 1 when it is alone. */
TALLY_API uint32_t tally_event_group_size(const struct tally_event *event);
/* Whether the modifier S asks for the group's counts in each of the leader's samples. */
TALLY_API bool tally_event_reads_group(const struct tally_event *event);
/* What was asked for: type, config and mode flags. Never NULL. */
TALLY_API const struct tally_attr *tally_event_attr(const struct tally_event *event);
/* What the kernel granted when it was last opened; NULL before. */
TALLY_API const struct tally_attr *tally_event_granted(const struct tally_event *event);
/*
 * What was given up to have it opened, as a phrase for people ("cpu-clock instead of cycles: this
 * machine shows no hardware counters"); NULL when nothing was.
 */
TALLY_API const char *tally_event_compromise(const struct tally_event *event);

/*
 * Whether events can be opened here at all: 0, or the errno of opening the least that there is (a
 * software event of the calling thread, user mode only), with the reason in words: a kernel without
 * perf events, a seccomp filter, kernel.perf_event_paranoid above 2, no file descriptors left.
 * Since: 0.1
 */
TALLY_API int tally_supported(struct tally_error *err);

/* Which kind of thing tally_event_each() names. */
enum tally_event_kind {
	TALLY_EVENT_HARDWARE,
	TALLY_EVENT_SOFTWARE,
	TALLY_EVENT_CACHE,
	TALLY_EVENT_TRACEPOINT,
};

struct tally_event_info {
	const char *name;        /* borrowed for the call */
	const char *alias;       /* another name for the same event, or NULL */
	const char *description; /* one line, or NULL */
	uint32_t kind;           /* enum tally_event_kind */
	uint32_t openable; /* whether this user can open it here, found by trying; tracepoints: 1 */
};

/*
 * Calls `fn` for every event that there is a name for and that matches `glob` (fnmatch(3); NULL:
 * all), by kind and name, until it returns non-zero, which is then returned. Tracepoints are left
 * out when tracefs cannot be read. Errors: -ENOMEM. Since: 0.1
 */
TALLY_API int tally_event_each(const char *glob, const struct tally_events_opts *opts,
			       int (*fn)(const struct tally_event_info *info, void *arg), void *arg,
			       struct tally_error *err);

TALLY_END_DECLS

#endif
