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
 * Names:
 *	cycles, instructions, cache-misses ...	generic hardware events
 *	cpu-clock, page-faults or faults ...	software events
 *	L1-dcache-load-misses, LLC-loads ...	caches
 *	rNNN					raw, in hex
 *	mem:ADDR[/LEN][:rwx]			a hardware breakpoint: rw of 4 bytes, or a long for x
 *	kprobe:FUNC[+OFF], kretprobe:FUNC	a function of the kernel, and its return [4.17]
 *	uprobe:PATH:FUNC[+OFF]			a function of a program or library, by its symbol;
 *	uretprobe:PATH:FUNC			FUNC may be an offset in the file, 0x...; the path has
 *						no colon, comma, brace or space [4.17]. What starts
 *						later does not inherit probes: a compromise says so
 *	group:name				tracepoints, from tracefs; a pattern as sched:* is an
 *						event for each that matches
 *	mem_load_retired.l3_miss		a vendor's name, from the tables in opts->tables
 *	skl::MEM_LOAD_RETIRED:L3_MISS		a vendor's name by libpfm4, where that is installed;
 *	MEM_LOAD_RETIRED.L3_MISS		without its PMU when nothing else is called so
 *
 * and events of the PMUs in /sys/bus/event_source/devices:
 *
 *	cpu/event=0x3c,umask=1/		the fields of the PMU's format/, in any order; one alone is 1
 *	cpu/mem-loads,ldlat=30/		an event of its events/; what is written holds against it
 *	energy-pkg			the same alone, where only PMUs of one kind have it
 *	cpu_core/cycles/		a generic event, of one kind of core
 *	uncore_imc/cas_count_read/	all boxes: uncore_imc_0, uncore_imc_1 ...; also imc/.../, and
 *					patterns as uncore_[ci]*
 *	cpu/r1a8/, cpu/config=0x1a8/	the words config and config1 to config4 themselves
 *	cpu/...,name=stalls/		what the event is called
 *	cpu/...,period=1000/		its own period when it is sampled; freq= samples a second
 *
 * Numbers of terms are decimal, or hex after 0x.
 *
 * Modifiers behind a colon: u user, k kernel, h hypervisor, H host, G guest, I not when idle,
 * p pp ppp more precise, P as precise as there is, D pinned, e exclusive, W a group that may be
 * split, S sample-read. Those behind a group's brace add to those of its members. Guests are left
 * out unless G or H is given; events of PMUs other than those of the cores, most of which tell no
 * modes apart, leave out only what is asked for.
 */
#ifndef TALLY_EVENT_H
#define TALLY_EVENT_H

#include <tally/api.h>
#include <tally/attr.h>
#include <tally/error.h>

TALLY_BEGIN_DECLS

/*
 * A list of events; owns them. Opening an event writes to it what was granted, so threads that open
 * from one list do it one after the other.
 */
struct tally_events;
struct tally_event; /* one event of a list; lives as long as the list */

/* What may be given up, in this order, when the kernel refuses an event. Bits. */
enum tally_fallback {
	/* Ask for less precision: precise_ip 3, 2, 1, 0. Only for the modifier P and defaults. */
	TALLY_FALLBACK_PRECISE = 1u << 0,
	/*
	 * Leave out attr bits that this kernel does not know and that change no count. Guests are
	 * counted, where neither G nor H was given, by a PMU that cannot tell them apart.
	 */
	TALLY_FALLBACK_NEWER_BITS = 1u << 1,
	/* Count user mode only where kernel.perf_event_paranoid forbids the kernel. */
	TALLY_FALLBACK_USER_ONLY = 1u << 2,
	/* Take cpu-clock for cycles where there is no PMU: time instead of cycles. */
	TALLY_FALLBACK_CPU_CLOCK = 1u << 3,
};

struct tally_events_opts {
	uint32_t size, flags;
	uint32_t fallback; /* enum tally_fallback; 0: give up nothing but newer bits */
	uint32_t reserved; /* 0 */
	const char *root;  /* folder above /sys and /proc; NULL: the real one. Borrowed. */
	/*
	 * Folder of vendors' event tables in perf's JSON: one with a mapfile.csv and a folder for
	 * each CPU model, as tools/perf/pmu-events/arch/x86 of the kernel, or a model's folder
	 * itself. Their names compare without regard to case. NULL: none. Borrowed.
	 */
	const char *tables;
};

/*
 * Parses a list of events: names separated by commas or white space, `{a,b}` a group whose first
 * member leads, modifiers behind a name or a closing brace. `*out` is yours to free.
 * Errors: -EINVAL with the column and, when a name is merely unknown, the nearest one that exists
 * (TALLY_CAUSE_SYNTAX, _UNKNOWN; _ARGUMENT without a text or for the options; _UNSUPPORTED for what no PMU has, as writes of an instruction
 * cache, or this one has not, as more bits than a field; _NO_PMU for those of the cores where the
 * machine shows none; _IO when sysfs cannot be understood; _LIMIT beyond 4096 events, or 256 terms);
 * -ENOENT, -EACCES and others when tracefs, a probed file or the tables cannot be read (-ENOENT too
 * when these have nothing for this CPU; _CORRUPT with file, line and column); -ENOMEM.
 * Since: 0.1
 */
TALLY_API int tally_events_parse(struct tally_events **out, const char *text,
				 const struct tally_events_opts *opts, struct tally_error *err);

/*
 * A list of one event from an attr of your own. `name` is copied; NULL gives it a name by its type
 * and config. Errors: -EINVAL (no attr, or one of a size that cannot be, or with a field that this
 * library does not know), -E2BIG, -ENOMEM. Since: 0.1
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
/* What a raw count is multiplied with to be in that unit, 1.0 for plain counts. */
TALLY_API double tally_event_scale(const struct tally_event *event);
/* Whether all CPUs of a package show the same count, so that it is to be taken once for each. */
TALLY_API bool tally_event_per_package(const struct tally_event *event);
/* Whether a reading is a level, as a temperature, rather than something that adds up. */
TALLY_API bool tally_event_snapshot(const struct tally_event *event);
/* The filter that tracepoints are opened with, NULL: none. */
TALLY_API const char *tally_event_filter(const struct tally_event *event);
/* The position of this event and of its group's leader in the list; equal when it leads or is
 * alone. */
TALLY_API uint32_t tally_event_index(const struct tally_event *event);
TALLY_API uint32_t tally_event_leader(const struct tally_event *event);
/* How many events its group has; 1 when it is alone. */
TALLY_API uint32_t tally_event_group_size(const struct tally_event *event);
/* Whether the modifier S asks for the group's counts in each of the leader's samples. */
TALLY_API bool tally_event_reads_group(const struct tally_event *event);
/*
 * Whether the modifier W lets its group be split into single events where the PMU cannot count all
 * of it at once. Every member of a group answers the same.
 */
TALLY_API bool tally_event_is_weak(const struct tally_event *event);
/* What was asked for: type, config and mode flags. Never NULL. */
TALLY_API const struct tally_attr *tally_event_attr(const struct tally_event *event);
/* What the kernel granted when it was last opened; NULL before. */
TALLY_API const struct tally_attr *tally_event_granted(const struct tally_event *event);
/*
 * Whether it was opened without what its target asked for, that new threads and children inherit it:
 * what they do is not in its count. So it is with probes, as the kernel cannot do it.
 */
TALLY_API bool tally_event_inherit_refused(const struct tally_event *event);
/*
 * What was given up to have it opened, as a phrase for people ("cpu-clock instead of cycles: this
 * machine shows no hardware counters"); NULL when nothing was.
 */
TALLY_API const char *tally_event_compromise(const struct tally_event *event);
/*
 * What its name lacks to tell what is counted: ":u" or "u" (behind a modifier or a PMU's slash) where
 * all was asked for and the kernel left user mode alone, as perf(1) adds it; else "".
 */
TALLY_API const char *tally_event_granted_modifier(const struct tally_event *event);

/*
 * Sets the filter (the kernel's language, as "prev_pid == 1 && next_pid > 10") that the event is
 * opened with from now on; NULL removes it. It is copied. The kernel checks it when the event is
 * opened: what opens it answers -EINVAL for an event that takes none, as all but tracepoints, and
 * for a filter that the kernel does not take, naming the fields that there are. An event that is
 * already open keeps the filter it has. Errors: -ENOMEM. Since: 0.1
 */
TALLY_API int tally_event_set_filter(struct tally_event *event, const char *filter);

/*
 * What an event is made of. Most have one part. `cycles` on a CPU with two kinds of cores has one
 * for each, and an event of an uncore PMU one for each of its boxes; counters open all parts and add
 * their counts up.
 */
struct tally_event_part {
	struct tally_attr attr;
	const char *pmu; /* its name in /sys/bus/event_source/devices, "" where none was named */
	const int32_t *cpus; /* where it counts, ascending; NULL: on all CPUs. Borrowed. */
	uint32_t cpu_count;
	uint32_t
		per_cpu; /* it counts CPUs or packages: it cannot follow a task, is opened on `cpus` */
};

/* How many parts an event has, at least 1. Since: 0.1 */
TALLY_API uint32_t tally_event_parts(const struct tally_event *event);
/* The i-th part; false beyond the end, with `*out` as it was. Since: 0.1 */
TALLY_API bool tally_event_part(const struct tally_event *event, uint32_t i,
				struct tally_event_part *out);

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
	TALLY_EVENT_PMU,    /* an event of a PMU's events/ in sysfs: pmu/name/ */
	TALLY_EVENT_VENDOR, /* of the tables in opts->tables */
};

struct tally_event_info {
	const char *name;        /* borrowed for the call */
	const char *alias;       /* another name for the same event, or NULL */
	const char *description; /* one line, or NULL */
	uint32_t kind;           /* enum tally_event_kind */
	/*
	 * Whether this user can open it here, found by trying; 1 also for what is not tried:
	 * tracepoints, events of tables, but for whether their PMU is here, and events whose
	 * parameters have to be given ("core=?" in the name).
	 */
	uint32_t openable;
	const char *pmu;  /* its name, that of all its boxes where there are several; "": none */
	const char *unit; /* as tally_event_unit() */
	const char *why;  /* it cannot be opened: a line for people; NULL when it can */
};

/*
 * Calls `fn` for every event that there is a name for and that matches `glob` (fnmatch(3); NULL:
 * all), kind by kind (hardware, software, cache, PMUs, tables, tracepoints) and by name, those of
 * tables in the tables' order, until it returns non-zero, which is then returned. Tracepoints are left
 * out when tracefs cannot be read, PMUs when sysfs cannot. `info` and its texts are borrowed for the
 * call. Errors: -ENOMEM; those of opts->tables as tally_events_parse(). Since: 0.1
 */
TALLY_API int tally_event_each(const char *glob, const struct tally_events_opts *opts,
			       int (*fn)(const struct tally_event_info *info, void *arg), void *arg,
			       struct tally_error *err);

TALLY_END_DECLS

#endif
