/* SPDX-License-Identifier: MIT */
/* For tests of the CPU's counters: is there a PMU that counts, and which of its events do? */
#ifndef TESTS_PMU_H
#define TESTS_PMU_H

#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "loop.h"
#include "opening.h"
#include "tap.h"

static char no_pmu[TALLY_ERROR_TEXT]; /* why; "": there is one */

#define NEED_PMU()                        \
	do {                              \
		if (no_pmu[0])            \
			tap_skip(no_pmu); \
	} while (0)

/* Interrupts that this machine has served so far, of all CPUs: the first number of /proc/stat's "intr". */
static inline uint64_t interrupts(void)
{
	static char text[65536];
	int fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	const char *line = strstr(text, "\nintr ");
	return line ? strtoull(line + 6, NULL, 10) : 0;
}

/* What a counter that is off counts over a loop. */
static inline uint64_t count_loop(struct tally_counter *counter, uint64_t rounds)
{
	uint64_t before = value_of(counter);

	tally_counter_enable(counter);
	loop(rounds);
	tally_counter_disable(counter);
	return value_of(counter) - before;
}

/* Opens an event of the CPU for this thread, if it also counts each round of the loop. */
static inline bool open_moving(struct opened *o, const char *name, uint32_t flags, uint64_t period)
{
	if (!name[0] || !open_counter(o, name, &self, flags, period))
		return false;
	uint64_t least = count_loop(o->counter, 1);
	if (count_loop(o->counter, 1001) >= least + 1000)
		return true;
	close_all(o);
	return false;
}

/* Instructions in user mode, by the kernel's own interface: what it can is no matter of the library. */
static inline int open_by_hand(uint64_t config1)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_HARDWARE,
					.size = sizeof(attr),
					.config = PERF_COUNT_HW_INSTRUCTIONS,
					.config1 = config1,
					.exclude_kernel = 1,
					.exclude_hv = 1 };

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static inline uint64_t read_by_hand(int fd)
{
	uint64_t value = 0;

	return read(fd, &value, sizeof(value)) == sizeof(value) ? value : 0;
}

/* Fills in no_pmu, in the words of the library where it refuses too. */
static inline void probe_pmu(void)
{
	struct opened probe;
	int fd = open_by_hand(0);

	if (fd < 0) {
		snprintf(no_pmu, sizeof(no_pmu), "this machine has no event for instructions");
		if (open_counter(&probe, "instructions:u", &self, 0, 0))
			close_all(&probe);
		else
			snprintf(no_pmu, sizeof(no_pmu), "%s", err.text);
		return;
	}
	uint64_t before = read_by_hand(fd);
	loop(1000);
	if (read_by_hand(fd) < before + 1000)
		snprintf(no_pmu, sizeof(no_pmu), "instructions open here, and do not move");
	close(fd);
}

#endif
