/* SPDX-License-Identifier: MIT */
/* cgroup: which folder a name stands for, by made-up mounts. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "count/cgroup.h"
#include "fakeroot.h"
#include "tap.h"

/* As of proc_pid_mounts(5), from machines of each kind. */
#define UNIFIED "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid,nodev,noexec,relatime 0 0\n"
#define HYBRID                                                          \
	"tmpfs /sys/fs/cgroup tmpfs ro,mode=755 0 0\n"                  \
	"cgroup2 /sys/fs/cgroup/unified cgroup2 rw,nsdelegate 0 0\n"    \
	"cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n" \
	"cgroup /sys/fs/cgroup/perf_event cgroup rw,perf_event 0 0\n"   \
	"cgroup /sys/fs/cgroup/xperf cgroup rw,name=perf_events 0 0\n"
#define OWN_FOLDER "cgroup2 /my\\040groups cgroup2 rw 0 0\n"

static struct fakeroot root;
static struct tally_error err;

/* The folder that was opened, below the root; "" with the reason in err. */
static const char *opened(const char *mounts, const char *name)
{
	static char path[PATH_MAX];
	char link[64];

	fakeroot_file(&root, "/proc/self/mounts", mounts);
	int fd = cgroup_open(name, root.path, &err);
	if (fd < 0)
		return "";
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, path, sizeof(path) - 1);
	close(fd);
	path[n < 0 ? 0 : n] = '\0';
	return strncmp(path, root.path, strlen(root.path)) == 0 ? path + strlen(root.path) : path;
}

static void a_path_is_below_the_mount_that_has_the_controller(void)
{
	check_str(opened(UNIFIED, "system.slice/cron.service"),
		  "/sys/fs/cgroup/system.slice/cron.service");
	check_str(opened(HYBRID, "web"), "/sys/fs/cgroup/perf_event/web");
	check_str(opened(OWN_FOLDER, "a"), "/my groups/a");
}

/* The kernel escapes backslashes, too; but the file may be somebody's under a root of his own. */
static void what_is_no_escape_is_left_as_it_is(void)
{
	static const char *const folders[] = { "/my\\", "/my\\0", "/my\\04", "/my\\400",
					       "/my\\x40" };
	char line[64];

	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		snprintf(line, sizeof(line), "cgroup2 %s cgroup2 rw 0 0\n", folders[i]);
		check_str(opened(line, "a"), "");
		check_int(err.code, -ENOENT);
		check_has(err.text, folders[i]);
	}
}

static void a_leading_slash_is_a_folder_or_a_path(void)
{
	check_str(opened(UNIFIED, "/sys/fs/cgroup/system.slice"), "/sys/fs/cgroup/system.slice");
	/* As /proc/PID/cgroup has it. */
	check_str(opened(UNIFIED, "/system.slice/cron.service"),
		  "/sys/fs/cgroup/system.slice/cron.service");
	check_str(opened(UNIFIED, "/"), "/sys/fs/cgroup");
}

static void the_nearest_is_named(void)
{
	check_str(opened(UNIFIED, "system.slice/corn.service"), "");
	check_int(err.code, -ENOENT);
	check_int(err.cause, TALLY_CAUSE_UNKNOWN);
	check_has(err.text, "'system.slice/corn.service'");
	check_has(err.text, "did you mean 'system.slice/cron.service'");
	check_str(opened(UNIFIED, "sytem.slice/cron.service"), "");
	check_has(err.text, "did you mean 'system.slice'");
	check_str(opened(UNIFIED, "nothing-like-it"), "");
	check_int(err.code, -ENOENT);
	check(!strstr(err.text, "did you mean"));
}

static void other_failures_are_told(void)
{
	check_str(opened(UNIFIED, "cgroup.procs"), "");
	check_int(err.code, -ENOTDIR);
	check_has(err.text, "no cgroup");
	check_str(opened("tmpfs /sys/fs/cgroup tmpfs rw 0 0\njunk\n\n", "web"), "");
	check_int(err.code, -EOPNOTSUPP);
	check_int(err.cause, TALLY_CAUSE_UNSUPPORTED);
	check_has(err.text, "mount -t cgroup2");
	check_str(opened(UNIFIED, ""), "");
	check_int(err.code, -EINVAL);
	check_int(cgroup_open(NULL, root.path, &err), -EINVAL);
	char *longest = malloc(PATH_MAX + 1);
	require(longest != NULL);
	memset(longest, 'a', PATH_MAX);
	longest[PATH_MAX] = '\0';
	check_str(opened(UNIFIED, longest), "");
	check_int(err.code, -ENAMETOOLONG);
	free(longest);
	check_int(cgroup_explain_folder("/tmp", &err), -EBADF);
	check_has(err.text, "/tmp");
}

int main(void)
{
	static const char *const files[] = {
		"/sys/fs/cgroup/cgroup.procs",
		"/sys/fs/cgroup/system.slice/cron.service/cgroup.procs",
		"/sys/fs/cgroup/system.slice/ssh.service/cgroup.procs",
		"/sys/fs/cgroup/unified/web/cgroup.procs",
		"/sys/fs/cgroup/cpu,cpuacct/web/cgroup.procs",
		"/sys/fs/cgroup/perf_event/web/cgroup.procs",
		"/my groups/a/cgroup.procs",
	};
	bool ok = fakeroot_make(&root);

	for (size_t i = 0; ok && i < sizeof(files) / sizeof(*files); i++)
		ok = fakeroot_file(&root, files[i], "");
	if (!ok) {
		printf("Bail out! no made-up machine\n");
		return 1;
	}
	tap_run(a_path_is_below_the_mount_that_has_the_controller);
	tap_run(what_is_no_escape_is_left_as_it_is);
	tap_run(a_leading_slash_is_a_folder_or_a_path);
	tap_run(the_nearest_is_named);
	tap_run(other_failures_are_told);
	fakeroot_remove(&root);
	return tap_end();
}
