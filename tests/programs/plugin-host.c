/* SPDX-License-Identifier: MIT */
/*
 * plugin-host PLUGIN...: a program that knows nothing of tally. Loads plugins, runs them in this
 * thread and in one that outlives them, unloads them, and says what there is of them afterwards:
 *
 *	loaded tally=N fds=N     how many mappings of a libtally, how many descriptors
 *	unloaded tally=N fds=N
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PLUGINS 4

static struct {
	int (*run[PLUGINS])(int);
	int count;
	pthread_barrier_t ran, unloaded;
} host;

static int count_fds(void)
{
	struct stat st;
	int count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fstat(fd, &st) == 0;
	return count;
}

static int count_tally(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4096];
	int count = 0;

	while (maps && fgets(line, sizeof(line), maps))
		count += strstr(line, "libtally") || strstr(line, "region-plugin");
	if (maps)
		fclose(maps);
	return count;
}

static void say(const char *when)
{
	printf("%s tally=%d fds=%d\n", when, count_tally(), count_fds());
	fflush(stdout);
}

/* Its destructors of thread-specific data run when the plugins are gone. */
static void *outlive(void *arg)
{
	for (int i = 0; i < host.count; i++)
		host.run[i](10);
	pthread_barrier_wait(&host.ran);
	pthread_barrier_wait(&host.unloaded);
	return arg;
}

int main(int argc, char **argv)
{
	void *handles[PLUGINS];
	pthread_t thread;

	say("before");
	for (int i = 1; i < argc && host.count < PLUGINS; i++) {
		void *handle = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
		if (!handle) {
			fprintf(stderr, "plugin-host: %s\n", dlerror());
			return EXIT_FAILURE;
		}
		handles[host.count] = handle;
		*(void **)&host.run[host.count++] = dlsym(handle, "plugin_run");
	}
	pthread_barrier_init(&host.ran, NULL, 2);
	pthread_barrier_init(&host.unloaded, NULL, 2);
	if (pthread_create(&thread, NULL, outlive, NULL) != 0)
		return EXIT_FAILURE;
	pthread_barrier_wait(&host.ran);
	for (int i = 0; i < host.count; i++)
		host.run[i](5);
	say("loaded");
	for (int i = 0; i < host.count; i++)
		dlclose(handles[i]);
	say("unloaded");
	pthread_barrier_wait(&host.unloaded);
	pthread_join(thread, NULL);
	say("after");
	return EXIT_SUCCESS;
}
