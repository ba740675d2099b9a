/* SPDX-License-Identifier: MIT */
/* recorder/synth: side-band from made-up trees of /proc, decoded again. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <tally/file_record.h>

#include "fakeroot.h"
#include "recorder/synth.h"
#include "tap.h"
#include "written.h"

/* The rings of a sampler that there is not, by their CPUs. */
static int32_t ring_cpus[4];
static uint32_t ring_count;

uint32_t tally_sampler_rings(const struct tally_sampler *sampler)
{
	(void)sampler;
	return ring_count;
}

int32_t tally_sampler_ring_cpu(const struct tally_sampler *sampler, uint32_t i)
{
	(void)sampler;
	return ring_cpus[i % 4];
}

static const struct tally_layout layout = {
	.sample_type = TALLY_SAMPLE_IP | TALLY_SAMPLE_TID | TALLY_SAMPLE_TIME | TALLY_SAMPLE_CPU,
	.sample_id_all = 1,
};

static struct synth begin(const struct fakeroot *root)
{
	buf_reset(&written);
	return (struct synth){ .layout = &layout, .root = root->path };
}

static void kernel_and_modules(void)
{
	struct fakeroot root;
	struct tally_error err;

	require(fakeroot_make(&root));
	fakeroot_file(&root, "/proc/kallsyms",
		      "ffffffff81000000 T _stext\nffffffff81000000 T _text\n"
		      "ffffffff81000040 T secondary_startup_64\n");
	fakeroot_file(&root, "/proc/iomem",
		      "00100000-bfffffff : System RAM\n  01000000-02276f47 : Kernel code\n"
		      "  02400000-02e0cfff : Kernel rodata\n");
	fakeroot_file(&root, "/proc/modules",
		      "ext4 1048576 1 - Live 0xffffffffc0100000\n"
		      "hidden 4096 0 - Live 0x0000000000000000\n");
	struct synth s = begin(&root);
	check_int(synth_kernel(&s, &err), 0);
	check_u64(s.records, 2);
	struct tally_record rec = record_at(0);
	check_int(rec.type, TALLY_RECORD_MMAP);
	check_int(rec.misc & TALLY_MISC_CPUMODE, TALLY_MISC_KERNEL);
	check_int(rec.mmap.pid, -1);
	check_u64(rec.mmap.addr, 0xffffffff81000000);
	check_u64(rec.mmap.len, 0x1276f48);
	check_u64(rec.mmap.pgoff, 0xffffffff81000000);
	check_str(rec.mmap.filename, "[kernel.kallsyms]_text");
	check_u64(rec.id.time, 0);
	rec = record_at(1);
	check_str(rec.mmap.filename, "[ext4]");
	check_u64(rec.mmap.addr, 0xffffffffc0100000);
	check_u64(rec.mmap.len, 1048576);
	synth_done(&s);
	fakeroot_remove(&root);
}

static void hidden_kernel_is_left_out(void)
{
	struct fakeroot root;
	struct tally_error err;

	require(fakeroot_make(&root));
	fakeroot_file(&root, "/proc/kallsyms", "0000000000000000 T _text\n");
	struct synth s = begin(&root);
	check_int(synth_kernel(&s, &err), 0);
	check_u64(s.records, 0);
	synth_done(&s);
	fakeroot_remove(&root);
}

static void make_process(const struct fakeroot *root)
{
	fakeroot_file(root, "/proc/41/status",
		      "Name:\tmy\\040app\nTgid:\t41\nPid:\t41\nPPid:\t7\n");
	fakeroot_file(root, "/proc/41/comm", "my app\n");
	fakeroot_file(root, "/proc/41/task/41/comm", "my app\n");
	fakeroot_file(root, "/proc/41/task/43/status",
		      "Name:\tworker\nTgid:\t41\nPid:\t43\nPPid:\t7\n");
	fakeroot_file(root, "/proc/41/task/43/comm", "worker\n");
	fakeroot_file(root, "/proc/41/maps",
		      "00400000-00401000 r--p 00000000 fe:00 11   /bin/my app\n"
		      "00401000-00500000 r-xp 00001000 fe:00 11   /bin/my app (deleted)\n"
		      "7f0000000000-7f0000001000 rwxp 00000000 00:00 0 \n"
		      "7f0000002000-7f0000003000 r-xs 00002000 103:0b 12345678901 /lib/x.so\n"
		      "garbage\n");
}

static void process_threads_then_mappings(void)
{
	struct fakeroot root;
	struct tally_error err;

	require(fakeroot_make(&root));
	make_process(&root);
	struct synth s = begin(&root);
	check_int(synth_process(&s, 41, &err), 0);
	check_u64(s.records, 7);

	struct tally_record rec = record_at(0);
	check_int(rec.type, TALLY_RECORD_FORK);
	check_int(rec.misc, TALLY_MISC_FORK_EXEC);
	check_int(rec.task.pid, 41);
	check_int(rec.task.ppid, 7);
	rec = record_at(1);
	check_int(rec.type, TALLY_RECORD_COMM);
	check_str(rec.comm.comm, "my app");
	check_int(rec.misc & TALLY_MISC_COMM_EXEC, 0);
	rec = record_at(2);
	check_int(rec.task.tid, 43);
	check_int(rec.task.ptid, 41);
	check_int(rec.task.ppid, 41);
	check_str(record_at(3).comm.comm, "worker");

	rec = record_at(4);
	check_int(rec.type, TALLY_RECORD_MMAP2);
	check_str(rec.mmap.filename, "/bin/my app (deleted)");
	check_u64(rec.mmap.addr, 0x401000);
	check_u64(rec.mmap.len, 0xff000);
	check_u64(rec.mmap.pgoff, 0x1000);
	check_u64(rec.mmap.ino, 11);
	check_int(rec.mmap.maj, 0xfe);
	check_int(rec.mmap.prot, 5);
	check_int(rec.mmap.flags, 2);
	check_str(record_at(5).mmap.filename, "//anon");
	rec = record_at(6);
	check_int(rec.mmap.maj, 0x103);
	check_int(rec.mmap.min, 0x0b);
	check_u64(rec.mmap.ino, 12345678901);
	check_int(rec.mmap.flags, 1);
	synth_done(&s);
	fakeroot_remove(&root);
}

static void thread_alone_with_its_leader(void)
{
	struct fakeroot root;
	struct tally_error err;

	require(fakeroot_make(&root));
	make_process(&root);
	fakeroot_file(&root, "/proc/43/status", "Name:\tworker\nTgid:\t41\nPid:\t43\nPPid:\t7\n");
	fakeroot_file(&root, "/proc/43/comm", "worker\n");
	struct synth s = begin(&root);
	check_int(synth_thread(&s, 43, &err), 0);
	check_u64(s.records, 7);
	check_int(record_at(0).task.tid, 41);
	check_int(record_at(2).task.tid, 43);
	check_int(record_at(4).mmap.pid, 41);
	synth_done(&s);
	fakeroot_remove(&root);
}

static uint64_t inode(const struct fakeroot *root, const char *path)
{
	char full[PATH_MAX];
	struct stat st;

	snprintf(full, sizeof(full), "%s%s", root->path, path);
	return stat(full, &st) == 0 ? st.st_ino : 0;
}

/* linux/perf_event.h: NET_NS_INDEX 0, UTS 1, IPC 2, PID 3, USER 4, MNT 5, CGROUP 6. */
static void make_namespaces(const struct fakeroot *root)
{
	static const char *const names[] = { "uts", "net", "pid", "ipc", "mnt", "user", "cgroup" };
	char path[64];

	for (int i = 0; i < 7; i++) {
		snprintf(path, sizeof(path), "/proc/41/ns/%s", names[i]);
		fakeroot_file(root, path, "");
	}
	/* Of another thread some cannot be seen: as of a kernel without them. */
	fakeroot_file(root, "/proc/41/task/43/ns/mnt", "");
}

static void namespaces_of_each_thread(void)
{
	static const char *const order[] = { "net", "uts", "ipc", "pid", "user", "mnt", "cgroup" };
	struct fakeroot root;
	struct tally_error err;
	struct tally_namespace ns;
	char path[64];

	require(fakeroot_make(&root));
	make_process(&root);
	make_namespaces(&root);
	struct synth s = begin(&root);
	s.namespaces = true;
	check_int(synth_process(&s, 41, &err), 0);
	check_u64(s.records, 9);
	check_int(record_at(0).type, TALLY_RECORD_FORK);
	struct tally_record rec = record_at(1);
	check_int(rec.type, TALLY_RECORD_NAMESPACES);
	check_int(rec.namespaces.pid, 41);
	check_int(rec.namespaces.tid, 41);
	check_u64(rec.namespaces.count, 7);
	check_u64(rec.id.time, 0);
	check_u64(rec.id.has, layout.sample_type & ~(uint64_t)TALLY_SAMPLE_IP);
	for (uint64_t i = 0; i < 7; i++) {
		snprintf(path, sizeof(path), "/proc/41/ns/%s", order[i]);
		require(tally_record_namespace(&rec, i, &ns));
		check_u64(ns.ino, inode(&root, path));
		check(ns.ino && ns.dev);
	}
	check_int(record_at(2).type, TALLY_RECORD_COMM);
	rec = record_at(4);
	check_int(rec.type, TALLY_RECORD_NAMESPACES);
	check_int(rec.namespaces.pid, 41);
	check_int(rec.namespaces.tid, 43);
	require(tally_record_namespace(&rec, 5, &ns));
	check_u64(ns.ino, inode(&root, "/proc/41/task/43/ns/mnt"));
	require(tally_record_namespace(&rec, 6, &ns));
	check_u64(ns.ino, 0);
	synth_done(&s);
	fakeroot_remove(&root);
}

static void namespaces_of_one_that_waits(void)
{
	struct fakeroot root;
	struct tally_error err;

	require(fakeroot_make(&root));
	make_namespaces(&root);
	struct synth s = begin(&root);
	check_int(synth_namespaces(&s, 41, 41, &err), 0);
	check_u64(s.records, 0); /* not asked for */
	s.namespaces = true;
	check_int(synth_namespaces(&s, 41, 41, &err), 0);
	check_u64(s.records, 1);
	check_int(record_at(0).type, TALLY_RECORD_NAMESPACES);
	check_int(synth_namespaces(&s, 42, 42, &err), 0); /* it is gone */
	check_u64(s.records, 1);
	synth_done(&s);
	fakeroot_remove(&root);
}

/* The id that the record of this path has; 0: there is none. */
static uint64_t cgroup_id(const char *path)
{
	for (int i = 0; record_at(i).type; i++) {
		struct tally_record rec = record_at(i);
		if (rec.type == TALLY_RECORD_CGROUP && !strcmp(rec.cgroup.path, path))
			return rec.cgroup.id;
	}
	return 0;
}

static void cgroups_by_their_folders(void)
{
	struct fakeroot root;
	struct tally_error err;
	char link[PATH_MAX];

	require(fakeroot_make(&root));
	struct synth s = begin(&root);
	check_int(synth_cgroups(&s, &err), 0);
	check_u64(s.records, 0); /* no mounts */
	fakeroot_file(&root, "/proc/self/mounts",
		      "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\nproc /proc proc rw 0 0\n");
	check_int(synth_cgroups(&s, &err), 0);
	check_u64(s.records, 0); /* no folder */
	fakeroot_file(&root, "/sys/fs/cgroup/cgroup.procs", "1\n");
	fakeroot_file(&root, "/sys/fs/cgroup/system.slice/cron.service/cgroup.procs", "");
	fakeroot_file(&root, "/sys/fs/cgroup/system.slice/a b/cgroup.procs", "");
	fakeroot_file(&root, "/sys/fs/cgroup/.hidden/cgroup.procs", "");
	snprintf(link, sizeof(link), "%s/sys/fs/cgroup/loop", root.path);
	check_int(symlink(".", link), 0);
	check_int(synth_cgroups(&s, &err), 0);
	check_u64(s.records, 5);
	struct tally_record rec = record_at(0);
	check_int(rec.type, TALLY_RECORD_CGROUP);
	check_str(rec.cgroup.path, "/");
	check_u64(rec.cgroup.id, inode(&root, "/sys/fs/cgroup"));
	check_u64(rec.id.time, 0);
	check_u64(rec.id.has, layout.sample_type & ~(uint64_t)TALLY_SAMPLE_IP);
	static const char *const paths[] = { "/system.slice", "/system.slice/cron.service",
					     "/system.slice/a b", "/.hidden" };
	for (int i = 0; i < 4; i++) {
		char full[128];
		snprintf(full, sizeof(full), "/sys/fs/cgroup%s", paths[i]);
		check(cgroup_id(paths[i]) != 0);
		check_u64(cgroup_id(paths[i]), inode(&root, full));
	}
	synth_done(&s);
	fakeroot_remove(&root);
}

/* Folders in folders, of which the kernel sets no end, end where a path does. */
static void cgroups_too_deep(void)
{
	struct fakeroot root;
	struct tally_error err;
	char name[201];
	int depth = 0, back = open(".", O_RDONLY | O_CLOEXEC);

	require(fakeroot_make(&root));
	fakeroot_file(&root, "/proc/self/mounts", "cgroup2 /g cgroup2 rw 0 0\n");
	fakeroot_file(&root, "/g/cgroup.procs", "");
	struct synth s = begin(&root);
	memset(name, 'g', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	check_int(chdir(root.path) + chdir("g"), 0);
	for (; depth < 30 && mkdir(name, 0755) == 0 && chdir(name) == 0; depth++)
		;
	check_int(depth, 30);
	check_int(synth_cgroups(&s, &err), 0);
	/* The root and as many as PATH_MAX, less the path of the mount, has room for. */
	check_u64(s.records, 1 + (PATH_MAX - 1 - strlen(root.path) - 2) / sizeof(name));
	for (; depth; depth--)
		check_int(chdir("..") + rmdir(name), 0);
	check_int(fchdir(back), 0);
	close(back);
	synth_done(&s);
	fakeroot_remove(&root);
}

/* The first record, as one of those that only files have. */
static struct tally_file_record file_record(void)
{
	struct tally_file_record rec = { 0 };
	const struct tally_record_header *header = (const void *)written.at;

	if (written.len < sizeof(*header) || header->size != written.len || header->size % 8 ||
	    tally_file_record_decode(written.at, written.len, false, &rec, sizeof(rec)) < 0)
		return (struct tally_file_record){ 0 };
	return rec;
}

static void threads_of_a_target(void)
{
	struct fakeroot root;
	struct tally_error err;
	struct tally_file_thread thread;

	require(fakeroot_make(&root));
	make_process(&root);
	fakeroot_file(&root, "/proc/43/comm", "a name that is too long for it\n");
	struct synth s = begin(&root);
	struct tally_target target = { .scope = TALLY_SCOPE_PROCESS, .id = 41 };
	check_int(synth_threads(&s, &target, &err), 0);
	struct tally_file_record rec = file_record();
	check_int(rec.type, TALLY_FILE_THREAD_MAP);
	check_u64(rec.thread_map.count, 2);
	require(tally_file_thread(&rec, 0, &thread));
	check_int(thread.pid, 41);
	check_str(thread.comm, "my app");
	require(tally_file_thread(&rec, 1, &thread));
	check_int(thread.pid, 43);
	check_str(thread.comm, "a name that is ");

	static const struct {
		uint32_t scope;
		int32_t id, want;
		const char *comm;
	} cases[] = {
		{ TALLY_SCOPE_THREAD, 43, 43, "a name that is " },
		{ TALLY_SCOPE_COMMAND, 41, 41, "" },
		{ TALLY_SCOPE_SYSTEM, 0, -1, "" },
		{ TALLY_SCOPE_CPUS, 0, -1, "" },
		{ TALLY_SCOPE_CGROUP, 0, -1, "" },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		buf_reset(&written);
		target = (struct tally_target){ .scope = cases[i].scope, .id = cases[i].id };
		check_int(synth_threads(&s, &target, &err), 0);
		rec = file_record();
		check_u64(rec.thread_map.count, 1);
		require(tally_file_thread(&rec, 0, &thread));
		check_int(thread.pid, cases[i].want);
		check_str(thread.comm, cases[i].comm);
	}
	synth_done(&s);
	fakeroot_remove(&root);
}

/* A record has 64 KiB: a process that is gone, or has more threads than go into one, has no map. */
static void threads_of_none_or_too_many(void)
{
	struct fakeroot root;
	struct tally_error err;
	const struct tally_target target = { .scope = TALLY_SCOPE_PROCESS, .id = 41 };
	char path[PATH_MAX];

	require(fakeroot_make(&root));
	struct synth s = begin(&root);
	check_int(synth_threads(&s, &target, &err), 0);
	check_u64(written.len, 0);
	/* 16 bytes and 24 a thread. */
	int most = (UINT16_MAX - 16) / 24;
	fakeroot_file(&root, "/proc/41/task/1000", "");
	for (int i = 1; i < most; i++) {
		snprintf(path, sizeof(path), "%s/proc/41/task/%d", root.path, 1000 + i);
		require(mkdir(path, 0755) == 0);
	}
	check_int(synth_threads(&s, &target, &err), 0);
	struct tally_file_record rec = file_record();
	check_u64(rec.thread_map.count, (uint64_t)most);
	buf_reset(&written);
	fakeroot_file(&root, "/proc/41/task/999", "");
	check_int(synth_threads(&s, &target, &err), 0);
	check_u64(written.len, 0);
	check_u64(s.records, 1);
	synth_done(&s);
	fakeroot_remove(&root);
}

static void cpus_of_the_rings(void)
{
	static const struct {
		uint32_t rings;
		int32_t cpus[4], want[4];
		int count;
	} cases[] = {
		{ 1, { -1 }, { -1 }, 1 },
		{ 4, { 3, 0, 3, 0 }, { 0, 3 }, 2 },
		{ 3, { 5, 8191, 1 }, { 1, 5, 8191 }, 3 },
		{ 3, { 2, -1, 0 }, { -1, 0, 2 }, 3 },
		{ 2, { 70000, 1 }, { 1 }, 1 },
	};
	struct tally_error err;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct synth s = { .layout = &layout };
		buf_reset(&written);
		memcpy(ring_cpus, cases[i].cpus, sizeof(ring_cpus));
		ring_count = cases[i].rings;
		check_int(synth_cpus(&s, NULL, &err), 0);
		struct tally_file_record rec = file_record();
		check_int(rec.type, TALLY_FILE_CPU_MAP);
		uint64_t cursor = 0;
		int32_t cpu;
		int n = 0;
		for (; tally_file_cpu(&rec, &cursor, &cpu) && n < 4; n++)
			check_int(cpu, cases[i].want[n]);
		check_int(n, cases[i].count);
		synth_done(&s);
	}
}

/* A first thread that has ended shows nothing, while the others go on with the same mappings. */
static void leader_that_ended(void)
{
	struct fakeroot root;
	struct tally_error err;

	require(fakeroot_make(&root));
	make_process(&root);
	fakeroot_file(&root, "/proc/41/maps", "");
	fakeroot_file(&root, "/proc/41/task/41/maps", "");
	fakeroot_file(&root, "/proc/41/task/43/maps",
		      "00401000-00500000 r-xp 00001000 fe:00 11   /bin/my app\n");
	struct synth s = begin(&root);
	check_int(synth_process(&s, 41, &err), 0);
	check_u64(s.records, 5);
	check_int(record_at(4).mmap.pid, 41);
	check_u64(record_at(4).mmap.addr, 0x401000);
	synth_done(&s);
	fakeroot_remove(&root);
}

/* /proc shows paths of any length; perf_event_mmap_event() says "//toolong" for such. */
static void path_beyond_path_max(void)
{
	struct fakeroot root;
	struct tally_error err;
	static char maps[9000];

	require(fakeroot_make(&root));
	make_process(&root);
	int n = snprintf(maps, sizeof(maps), "00401000-00500000 r-xp 00001000 fe:00 11   /");
	memset(maps + n, 'x', sizeof(maps) - (size_t)n - 2);
	maps[sizeof(maps) - 2] = '\n';
	fakeroot_file(&root, "/proc/41/maps", maps);
	struct synth s = begin(&root);
	check_int(synth_process(&s, 41, &err), 0);
	check_str(record_at(4).mmap.filename, "//toolong");
	synth_done(&s);
	fakeroot_remove(&root);
}

static void everything_and_what_is_gone(void)
{
	struct fakeroot root;
	struct tally_error err;

	require(fakeroot_make(&root));
	make_process(&root);
	fakeroot_file(&root, "/proc/50/nothing", "it ended while we looked\n");
	struct synth s = begin(&root);
	check_int(synth_system(&s, &err), 0);
	check_u64(s.records, 7);
	synth_done(&s);
	check_int(synth_process(&s, 99, &err), 0);
	check_u64(s.records, 7);
	synth_done(&s);
	fakeroot_remove(&root);
	check_int(synth_system(&s, &err), -ENOENT);
	check_has(err.text, "/proc");
}

int main(void)
{
	tap_run(kernel_and_modules);
	tap_run(hidden_kernel_is_left_out);
	tap_run(process_threads_then_mappings);
	tap_run(thread_alone_with_its_leader);
	tap_run(namespaces_of_each_thread);
	tap_run(namespaces_of_one_that_waits);
	tap_run(cgroups_by_their_folders);
	tap_run(cgroups_too_deep);
	tap_run(threads_of_a_target);
	tap_run(threads_of_none_or_too_many);
	tap_run(cpus_of_the_rings);
	tap_run(leader_that_ended);
	tap_run(path_beyond_path_max);
	tap_run(everything_and_what_is_gone);
	buf_done(&written);
	return tap_end();
}
