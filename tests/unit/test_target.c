/* SPDX-License-Identifier: MIT */
/* target: from scopes to places, over a made-up /proc and /sys. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "count/target.h"
#include "tap.h"

static char root[64];

static void make_folder(const char *path)
{
	char full[256], *slash;

	snprintf(full, sizeof(full), "%s%s", root, path);
	for (slash = strchr(full + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(full, 0700);
		*slash = '/';
	}
	mkdir(full, 0700);
}

static void drop_folder(const char *path)
{
	char full[256];

	snprintf(full, sizeof(full), "%s%s", root, path);
	rmdir(full);
}

static void write_online(const char *text)
{
	char full[256];

	make_folder("/sys/devices/system/cpu");
	snprintf(full, sizeof(full), "%s/sys/devices/system/cpu/online", root);
	FILE *f = fopen(full, "w");
	if (f) {
		fputs(text, f);
		fclose(f);
	}
}

static void setup(void)
{
	strcpy(root, "/tmp/tally-target-XXXXXX");
	if (!mkdtemp(root))
		perror("mkdtemp");
	make_folder("/proc/100/task/100");
	make_folder("/proc/100/task/103");
	make_folder("/proc/100/task/99");
	make_folder("/proc/200/task");
	write_online("0-1,4\n");
}

static void teardown(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	if (system(command))
		printf("# %s is left\n", root);
}

static struct tally_place *places;
static uint32_t count;
static struct tally_error err;

static int list(uint32_t scope, int32_t id, bool per_cpu)
{
	struct tally_target target = { .scope = scope, .id = id };

	free(places);
	places = NULL;
	return target_places(&target, per_cpu, root, &places, &count, &err);
}

static int list_cpus(const int32_t *cpus, uint32_t n)
{
	struct tally_target target = { .scope = TALLY_SCOPE_CPUS, .cpus = cpus, .cpu_count = n };

	free(places);
	places = NULL;
	return target_places(&target, false, root, &places, &count, &err);
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
	check_int(target_grew(&target, root, places, count), 0);
	make_folder("/proc/100/task/101");
	check_int(target_grew(&target, root, places, count), 1);
	drop_folder("/proc/100/task/101");
	make_folder("/proc/100/task/2000");
	check_int(target_grew(&target, root, places, count), 1);
	drop_folder("/proc/100/task/2000");
	/* Fewer threads are fine. */
	drop_folder("/proc/100/task/99");
	check_int(target_grew(&target, root, places, count), 0);
	make_folder("/proc/100/task/99");
	/* Other scopes follow nobody. */
	target.scope = TALLY_SCOPE_THREAD;
	check_int(target_grew(&target, root, places, 0), 0);
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
	setup();
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
	teardown();
	free(places);
	return tap_end();
}
