/* SPDX-License-Identifier: MIT */
/* target: from scopes to places, over a made-up /proc and /sys. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "count/target.h"
#include "fakeroot.h"
#include "tap.h"

static struct fakeroot root;

static bool make_thread(const char *path)
{
	char file[128];

	snprintf(file, sizeof(file), "%s/stat", path);
	return fakeroot_file(&root, file, "7 (a) Z) S 1 7 7 0 -1");
}

static void drop_thread(const char *path)
{
	char full[256];

	snprintf(full, sizeof(full), "%s%s/stat", root.path, path);
	unlink(full);
	*strrchr(full, '/') = '\0';
	rmdir(full);
}

static bool write_online(const char *text)
{
	return fakeroot_file(&root, "/sys/devices/system/cpu/online", text);
}

static struct tally_place *places;
static uint32_t count;
static struct tally_error err;

static int list(uint32_t scope, int32_t id, bool per_cpu)
{
	struct tally_target target = { .scope = scope, .id = id };

	free(places);
	places = NULL;
	return target_places(&target, per_cpu, root.path, &places, &count, &err);
}

static int list_cpus(const int32_t *cpus, uint32_t n)
{
	struct tally_target target = { .scope = TALLY_SCOPE_CPUS, .cpus = cpus, .cpu_count = n };

	free(places);
	places = NULL;
	return target_places(&target, false, root.path, &places, &count, &err);
}

static void check_place(uint32_t i, int32_t tid, int32_t cpu)
{
	check_int(places[i].tid, tid);
	check_int(places[i].cpu, cpu);
}

static void a_thread_is_one_place(void)
{
	require(list(TALLY_SCOPE_SELF, 0, false) == 0);
	check_int(count, 1);
	check_place(0, 0, -1);
	require(list(TALLY_SCOPE_THREAD, 103, false) == 0);
	check_int(count, 1);
	check_place(0, 103, -1);
	require(list(TALLY_SCOPE_COMMAND, 100, false) == 0);
	check_int(count, 1);
	check_place(0, 100, -1);
}

static void a_process_is_its_threads(void)
{
	require(list(TALLY_SCOPE_PROCESS, 100, false) == 0);
	require(count == 3);
	check_place(0, 99, -1);
	check_place(1, 100, -1);
	check_place(2, 103, -1);
}

static void only_what_is_inherited_is_bound_to_cpus(void)
{
	require(list(TALLY_SCOPE_PROCESS, 100, true) == 0);
	require(count == 9);
	check_place(0, 99, 0);
	check_place(1, 99, 1);
	check_place(2, 99, 4);
	check_place(8, 103, 4);
	require(list(TALLY_SCOPE_COMMAND, 100, true) == 0);
	require(count == 3);
	check_place(2, 100, 4);
	require(list(TALLY_SCOPE_THREAD, 100, true) == 0);
	require(count == 1);
	check_place(0, 100, -1);
}

static void cpus_are_those_online_or_listed(void)
{
	static const int32_t two[] = { 4, 0 };

	require(list_cpus(NULL, 0) == 0);
	require(count == 3);
	check_place(0, -1, 0);
	check_place(1, -1, 1);
	check_place(2, -1, 4);
	require(list_cpus(two, 2) == 0);
	require(count == 2);
	check_place(0, -1, 4);
	check_place(1, -1, 0);
}

static void a_cpu_offline_or_twice_is_refused(void)
{
	static const int32_t offline[] = { 0, 2 }, negative[] = { -1 }, twice[] = { 1, 0, 1 };

	check_int(list_cpus(offline, 2), -ENODEV);
	check_int(err.cause, TALLY_CAUSE_NO_PROCESS);
	check_has(err.text, "CPU 2 is not online");
	check_int(list_cpus(negative, 1), -ENODEV);
	check_int(list_cpus(twice, 3), -EINVAL);
	check_has(err.text, "CPU 1 is listed twice");
	check_int(list_cpus(twice, 0), -EINVAL);
}

static void an_unreadable_list_of_cpus_is_an_error(void)
{
	write_online("junk\n");
	check_int(list_cpus(NULL, 0), -EINVAL);
	check_has(err.text, "/sys/devices/system/cpu/online");
	write_online("");
	check_int(list_cpus(NULL, 0), -ENODATA);
	write_online("0-1,4\n");
}

static void a_process_that_is_gone_is_esrch(void)
{
	check_int(list(TALLY_SCOPE_PROCESS, 555, false), -ESRCH);
	check_int(err.cause, TALLY_CAUSE_NO_PROCESS);
	check_has(err.text, "555");
	/* An ending process has an empty folder for a moment. */
	check_int(list(TALLY_SCOPE_PROCESS, 200, false), -ESRCH);
}

static void bad_ids_and_scopes_are_einval(void)
{
	struct tally_target reserved = { .scope = TALLY_SCOPE_SELF, .reserved = 1 };

	check_int(target_places(&reserved, false, root.path, &places, &count, &err), -EINVAL);
	check_has(err.text, "reserved");
	check_int(list(TALLY_SCOPE_THREAD, 0, false), -EINVAL);
	check_int(list(TALLY_SCOPE_PROCESS, -1, false), -EINVAL);
	check_int(list(TALLY_SCOPE_COMMAND, 0, false), -EINVAL);
	check_int(list(17, 1, false), -EINVAL);
	check_int(err.cause, TALLY_CAUSE_ARGUMENT);
}

static void a_new_thread_is_noticed(void)
{
	struct tally_target target = { .scope = TALLY_SCOPE_PROCESS, .id = 100 };

	require(list(TALLY_SCOPE_PROCESS, 100, true) == 0);
	check_int(target_grew(&target, root.path, places, count), 0);
	make_thread("/proc/100/task/101");
	check_int(target_grew(&target, root.path, places, count), 1);
	drop_thread("/proc/100/task/101");
	make_thread("/proc/100/task/2000");
	check_int(target_grew(&target, root.path, places, count), 1);
	/* One that has ended is listed as long as others run, when it was the first; it cannot be opened. */
	fakeroot_file(&root, "/proc/100/task/2000/stat", "2000 (a) R) Z 1 7 7 0 -1");
	check_int(target_grew(&target, root.path, places, count), 0);
	fakeroot_file(&root, "/proc/100/task/2000/stat", "2000 (a) Z) R 1 7 7 0 -1");
	check_int(target_grew(&target, root.path, places, count), 1);
	drop_thread("/proc/100/task/2000");
	/* Fewer threads are fine. */
	drop_thread("/proc/100/task/99");
	check_int(target_grew(&target, root.path, places, count), 0);
	make_thread("/proc/100/task/99");
	/* Other scopes follow nobody. */
	target.scope = TALLY_SCOPE_THREAD;
	check_int(target_grew(&target, root.path, places, 0), 0);
}

static void a_real_process_has_a_thread(void)
{
	struct tally_target target = { .scope = TALLY_SCOPE_PROCESS, .id = getpid() };

	free(places);
	places = NULL;
	require(target_places(&target, false, NULL, &places, &count, &err) == 0);
	check_int(places[0].tid, getpid());
}

int main(void)
{
	/* 200 is ending: its folder is empty of threads. */
	if (!fakeroot_make(&root) || !make_thread("/proc/100/task/100") ||
	    !make_thread("/proc/100/task/103") || !make_thread("/proc/100/task/99") ||
	    !make_thread("/proc/200/task") || !write_online("0-1,4\n")) {
		printf("Bail out! no made-up machine\n");
		return 1;
	}
	tap_run(a_thread_is_one_place);
	tap_run(a_process_is_its_threads);
	tap_run(only_what_is_inherited_is_bound_to_cpus);
	tap_run(cpus_are_those_online_or_listed);
	tap_run(a_cpu_offline_or_twice_is_refused);
	tap_run(an_unreadable_list_of_cpus_is_an_error);
	tap_run(a_process_that_is_gone_is_esrch);
	tap_run(bad_ids_and_scopes_are_einval);
	tap_run(a_new_thread_is_noticed);
	tap_run(a_real_process_has_a_thread);
	fakeroot_remove(&root);
	free(places);
	return tap_end();
}
