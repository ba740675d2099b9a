/* SPDX-License-Identifier: MIT */
/* Samplers for live tests: opened, asked for records, closed. */
#ifndef TESTS_SAMPLING_H
#define TESTS_SAMPLING_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <tally/tally.h>

#include "tap.h"

/* Neither inlined nor cloned, by any compiler. */
#if defined(__clang__)
#define ALONE __attribute__((noinline, optnone))
#else
#define ALONE __attribute__((noipa))
#endif

struct sampling {
	struct tally_events *events;
	struct tally_sampler *sampler;
	struct tally_error err;
};

static const __attribute__((unused)) struct tally_target self = { .scope = TALLY_SCOPE_SELF };

static inline uint64_t clock_now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline int32_t gettid_(void)
{
	return (int32_t)syscall(SYS_gettid);
}

/* Opens and answers what the library answered. */
static inline int sampling_open(struct sampling *s, const char *text,
				const struct tally_target *target, struct tally_sampler_opts opts)
{
	opts.size = sizeof(opts);
	*s = (struct sampling){ 0 };
	int r = tally_events_parse(&s->events, text, NULL, &s->err);
	return r < 0 ? r : tally_sampler_open(&s->sampler, s->events, target, &opts, &s->err);
}

static inline void sampling_close(struct sampling *s)
{
	tally_sampler_close(s->sampler);
	tally_events_free(s->events);
}

/* Opens what has to be possible; says why when it is not. */
static inline bool sampling_start(struct sampling *s, const char *text,
				  const struct tally_target *target, struct tally_sampler_opts opts)
{
	int r = sampling_open(s, text, target, opts);

	if (r < 0) {
		printf("# %s\n", s->err.text);
		sampling_close(s);
	}
	return check_int(r, 0);
}

/* The next record of a type, all others are passed over; NULL: none within the time. */
static inline const struct tally_sampled *sampling_next(struct sampling *s, uint32_t type,
							int timeout_ms)
{
	const struct tally_sampled *got;

	while (tally_sampler_next(s->sampler, timeout_ms, &got) == 1) {
		check_int(got->record->leftover, 0);
		if (got->record->type == type)
			return got;
	}
	return NULL;
}

/* Moves the calling thread to one CPU, the one it is on; that CPU. */
static inline int stay_here(void)
{
	int cpu = sched_getcpu();
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
	return cpu;
}

/* A folder of the cgroup hierarchy that has the perf_event controller, made here; its inode, 0: none. */
static inline uint64_t make_cgroup(char *folder, size_t size, const char *name)
{
	static const char *const mounts[] = { "/sys/fs/cgroup/perf_event", "/sys/fs/cgroup/unified",
					      "/sys/fs/cgroup" };
	struct stat st;

	for (size_t i = 0; i < sizeof(mounts) / sizeof(*mounts); i++) {
		snprintf(folder, size, "%s/cgroup.procs", mounts[i]);
		if (access(folder, W_OK) < 0)
			continue;
		snprintf(folder, size, "%s/%s-%d", mounts[i], name, getpid());
		if (mkdir(folder, 0755) == 0 && stat(folder, &st) == 0)
			return st.st_ino;
	}
	return 0;
}

/* Moves the caller into a cgroup. */
static inline bool enter_cgroup(const char *folder)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/cgroup.procs", folder);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, "0", 1) == 1;
	if (fd >= 0)
		close(fd);
	return ok;
}

#endif
