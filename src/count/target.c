/* SPDX-License-Identifier: MIT */
/*
 * Targets. A process is all threads that /proc/PID/task shows in two scans that agree; what it
 * starts later is the kernel's to follow (inherit), since nobody can open events fast enough.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/proc.h"
#include "count/target.h"

/* How many scans a process gets to stand still; each costs about a microsecond a thread. */
#define MAX_SCANS 16

struct ids {
	int32_t *at;
	size_t count;
};

static int bad_id(const struct tally_target *target, const char *what, struct tally_error *err)
{
	return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
			 "%d is not a %s id: it must be positive", target->id, what);
}

static int new_places(struct tally_place **places, size_t count, struct tally_error *err)
{
	/* UINT32_MAX places would be 32 GiB; this also keeps later products within size_t. */
	*places = count <= UINT32_MAX / 64 ? alloc_zeroed(count ? count : 1, sizeof(**places))
					   : NULL;
	return *places ? 0 : error_nomem(err, "the list of threads and CPUs");
}

/* threads x cpus; without cpus (count 0): each thread on any CPU. */
static int cross(const struct ids *threads, const struct ids *cpus, struct tally_place **places,
		 uint32_t *count, struct tally_error *err)
{
	size_t per_thread = cpus->count ? cpus->count : 1, n = 0;
	int r = new_places(places, threads->count * per_thread, err);

	if (r < 0)
		return r;
	for (size_t t = 0; t < threads->count; t++)
		for (size_t c = 0; c < per_thread; c++)
			(*places)[n++] = (struct tally_place){
				.tid = threads->at[t],
				.cpu = cpus->count ? cpus->at[c] : -1,
			};
	*count = (uint32_t)n;
	return 0;
}

/* How many CPUs are online, of which as many as there is room for are written. */
static int read_online(int32_t *at, size_t room, const char *root, struct tally_error *err)
{
	int n = proc_online_cpus(at, room, root);

	if (n == 0)
		n = -ENODATA;
	return n > 0 ? n
		     : error_set(err, n, TALLY_CAUSE_IO,
				 "cannot read which CPUs are online from "
				 "%s/sys/devices/system/cpu/online: %s",
				 root ? root : "", strerror(-n));
}

static int online_cpus(struct ids *cpus, const char *root, struct tally_error *err)
{
	int n = read_online(NULL, 0, root, err);

	if (n < 0)
		return n;
	cpus->at = calloc((size_t)n, sizeof(*cpus->at));
	if (!cpus->at)
		return error_nomem(err, "the list of CPUs");
	int again = read_online(cpus->at, (size_t)n, root, err);
	if (again < 0)
		return again;
	cpus->count = (size_t)(again < n ? again : n);
	return 0;
}

static int of_thread(const struct tally_target *target, int32_t tid, bool per_cpu, const char *root,
		     struct tally_place **places, uint32_t *count, struct tally_error *err)
{
	struct ids threads = { &tid, 1 }, cpus = { 0 };
	int r = per_cpu && target_inherits(target) ? online_cpus(&cpus, root, err) : 0;

	if (r == 0)
		r = cross(&threads, &cpus, places, count, err);
	free(cpus.at);
	return r;
}

static int scan(struct ids *out, int32_t pid, const char *root)
{
	return proc_threads(&out->at, &out->count, root, pid);
}

static bool same(const struct ids *a, const struct ids *b)
{
	return a->count == b->count && !memcmp(a->at, b->at, a->count * sizeof(*a->at));
}

/* Scans until two scans agree; one that never does is taken as it was last seen. */
static int scan_until_stable(struct ids *out, int32_t pid, const char *root)
{
	struct ids now, before;
	int r = scan(&before, pid, root);

	for (int i = 1; r == 0 && i < MAX_SCANS; i++) {
		r = scan(&now, pid, root);
		bool stable = r == 0 && same(&now, &before);
		free(before.at);
		before = now;
		if (stable)
			break;
	}
	if (r == 0)
		*out = before;
	return r;
}

static int of_process(const struct tally_target *target, bool per_cpu, const char *root,
		      struct tally_place **places, uint32_t *count, struct tally_error *err)
{
	struct ids threads = { 0 }, cpus = { 0 };
	int r = scan_until_stable(&threads, target->id, root);

	if (r == -ESRCH)
		return error_set(err, r, TALLY_CAUSE_NO_PROCESS,
				 "there is no process %d; it may have ended", target->id);
	if (r < 0)
		return error_set(err, r, r == -EACCES ? TALLY_CAUSE_PERMISSION : TALLY_CAUSE_IO,
				 "cannot list the threads of process %d in %s/proc/%d/task: %s",
				 target->id, root ? root : "", target->id, strerror(-r));
	if (per_cpu)
		r = online_cpus(&cpus, root, err);
	if (r == 0)
		r = cross(&threads, &cpus, places, count, err);
	free(threads.at);
	free(cpus.at);
	return r;
}

static bool holds(const int32_t *ids, size_t count, int32_t id)
{
	for (size_t i = 0; i < count; i++)
		if (ids[i] == id)
			return true;
	return false;
}

/* Keeps those of the online CPUs that the target lists, in its order. */
static int pick_cpus(struct ids *online, const struct tally_target *target, struct tally_error *err)
{
	if (!target->cpu_count)
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT, "the list of CPUs is empty");
	for (uint32_t i = 0; i < target->cpu_count; i++) {
		int32_t cpu = target->cpus[i];
		if (!holds(online->at, online->count, cpu))
			return error_set(err, -ENODEV, TALLY_CAUSE_NO_PROCESS,
					 "CPU %d is not online: %zu CPUs are, from %d to %d", cpu,
					 online->count, online->at[0],
					 online->at[online->count - 1]);
		if (holds(target->cpus, i, cpu))
			return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
					 "CPU %d is listed twice and would be counted twice", cpu);
	}
	/* All online and none twice, so they fit. */
	memcpy(online->at, target->cpus, target->cpu_count * sizeof(*online->at));
	online->count = target->cpu_count;
	return 0;
}

static int of_cpus(const struct tally_target *target, const char *root, struct tally_place **places,
		   uint32_t *count, struct tally_error *err)
{
	int32_t any = -1;
	struct ids anybody = { &any, 1 }, cpus = { 0 };
	int r = online_cpus(&cpus, root, err);

	if (r == 0 && target->cpus && target->scope != TALLY_SCOPE_SYSTEM)
		r = pick_cpus(&cpus, target, err);
	if (r == 0)
		r = cross(&anybody, &cpus, places, count, err);
	free(cpus.at);
	return r;
}

int target_places(const struct tally_target *target, bool per_cpu, const char *root,
		  struct tally_place **places, uint32_t *count, struct tally_error *err)
{
	if (target->reserved)
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
				 "the reserved field of a target is not 0");
	switch (target->scope) {
	case TALLY_SCOPE_SELF:
		return of_thread(target, 0, per_cpu, root, places, count, err);
	case TALLY_SCOPE_THREAD:
		if (target->id <= 0)
			return bad_id(target, "thread", err);
		return of_thread(target, target->id, per_cpu, root, places, count, err);
	case TALLY_SCOPE_COMMAND:
		if (target->id <= 0)
			return bad_id(target, "process", err);
		return of_thread(target, target->id, per_cpu, root, places, count, err);
	case TALLY_SCOPE_PROCESS:
		if (target->id <= 0)
			return bad_id(target, "process", err);
		return of_process(target, per_cpu, root, places, count, err);
	case TALLY_SCOPE_CPUS:
	case TALLY_SCOPE_SYSTEM:
	case TALLY_SCOPE_CGROUP:
		return of_cpus(target, root, places, count, err);
	}
	return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT, "%u is no scope of a target",
			 target->scope);
}

bool target_is_cpus(const struct tally_target *target)
{
	return target->scope == TALLY_SCOPE_CPUS || target->scope == TALLY_SCOPE_SYSTEM ||
	       target->scope == TALLY_SCOPE_CGROUP;
}

bool target_inherits(const struct tally_target *target)
{
	return target->scope == TALLY_SCOPE_PROCESS || target->scope == TALLY_SCOPE_COMMAND;
}

bool target_may_shrink(const struct tally_target *target)
{
	return target->scope == TALLY_SCOPE_PROCESS;
}

/* The first thread of a process that has ended is listed as long as others run. */
static bool has_ended(int32_t pid, int32_t tid, const char *root)
{
	char state = proc_thread_state(root, pid, tid);

	return state == 'X' || state == 'Z';
}

int target_grew(const struct tally_target *target, const char *root,
		const struct tally_place *places, uint32_t count)
{
	struct ids now;

	if (target->scope != TALLY_SCOPE_PROCESS || scan(&now, target->id, root) < 0)
		return 0;
	/* Both lists ascend by thread. */
	uint32_t p = 0;
	bool grew = false;
	for (size_t i = 0; i < now.count && !grew; i++) {
		while (p < count && places[p].tid < now.at[i])
			p++;
		grew = (p == count || places[p].tid != now.at[i]) &&
		       !has_ended(target->id, now.at[i], root);
	}
	free(now.at);
	return grew;
}
