/* SPDX-License-Identifier: MIT */
/* recorder/modules: which mapped files get a build-id, by the files that are really there. */
#include <fcntl.h>
#include <link.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "fakeelf.h"
#include "fakeroot.h"
#include "image/cache.h"
#include "recorder/modules.h"
#include "tap.h"

/* What was given to the writer: the linker takes this one and not the real writer. */
static struct {
	int calls;
	int32_t pid;
	char name[PATH_MAX];
	uint8_t id[20];
	uint32_t id_len;
} given;

int tally_writer_build_id(struct tally_writer *writer, uint32_t cpumode, int32_t pid,
			  const char *name, const uint8_t *id, uint32_t id_len)
{
	(void)writer;
	check_int(cpumode, TALLY_MISC_USER);
	given.pid = pid;
	given.calls++;
	snprintf(given.name, sizeof(given.name), "%s", name);
	memcpy(given.id, id, id_len);
	given.id_len = id_len;
	return 0;
}

/* This program's file, as MMAP2 would tell it. */
static bool own_map(struct tally_record *rec, char path[PATH_MAX])
{
	struct stat st;
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);

	if (n < 0 || stat("/proc/self/exe", &st) < 0)
		return false;
	path[n] = '\0';
	*rec = (struct tally_record){
		.type = TALLY_RECORD_MMAP2,
		.misc = TALLY_MISC_USER,
		.mmap = { .pid = (int32_t)getpid(),
			  .filename = path,
			  .ino = st.st_ino,
			  .maj = major(st.st_dev),
			  .min = minor(st.st_dev) },
	};
	return true;
}

/* The build-id as the loader mapped it: the first object that dl_iterate_phdr tells is the program. */
struct loaded {
	uint8_t id[20];
	uint32_t len;
};

static int find_note(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct loaded *out = arg;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const char *at = (const char *)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
		const char *end = at + info->dlpi_phdr[i].p_memsz;
		if (info->dlpi_phdr[i].p_type != PT_NOTE)
			continue;
		while (at + sizeof(ElfW(Nhdr)) <= end) {
			const ElfW(Nhdr) *note = (const void *)at;
			const char *name = at + sizeof(*note);
			const char *desc = name + ((note->n_namesz + 3) & ~3u);
			if (note->n_type == NT_GNU_BUILD_ID && note->n_descsz <= 20 &&
			    !strcmp(name, "GNU")) {
				out->len = note->n_descsz;
				memcpy(out->id, desc, out->len);
				return 1;
			}
			at = desc + ((note->n_descsz + 3) & ~3u);
		}
	}
	return 1;
}

static void a_mapped_file_gets_its_build_id(void)
{
	struct modules m = { 0 };
	struct tally_record rec;
	struct loaded want = { 0 };
	char path[PATH_MAX];

	dl_iterate_phdr(find_note, &want);
	if (!want.len)
		tap_skip("this program was linked without a build-id");
	require(own_map(&rec, path));
	memset(&given, 0, sizeof(given));
	check_int(modules_see(&m, &rec), 0);
	check_int(modules_see(&m, &rec), 0);
	check_int(modules_write(&m, NULL, NULL), 0);
	check_int(given.calls, 1);
	check_str(given.name, path);
	check_int(given.id_len, want.len);
	check_mem(given.id, want.id, want.len);
	modules_done(&m);
}

static void another_file_by_now_gets_none(void)
{
	struct modules m = { 0 };
	struct tally_record rec;
	char path[PATH_MAX];

	require(own_map(&rec, path));
	rec.mmap.ino++;
	memset(&given, 0, sizeof(given));
	check_int(modules_see(&m, &rec), 0);
	check_int(modules_write(&m, NULL, NULL), 0);
	check_int(given.calls, 0);
	/* One path, two files: an id would be wrong for one of them. */
	rec.mmap.ino--;
	check_int(modules_see(&m, &rec), 0);
	check_int(modules_write(&m, NULL, NULL), 0);
	check_int(given.calls, 0);
	modules_done(&m);
}

static void what_is_no_file_is_left_out(void)
{
	struct modules m = { 0 };
	struct tally_record rec;
	char path[PATH_MAX];
	struct fakeroot root;

	require(own_map(&rec, path));
	memset(&given, 0, sizeof(given));
	rec.misc = TALLY_MISC_KERNEL;
	check_int(modules_see(&m, &rec), 0);
	rec.misc = TALLY_MISC_USER;
	rec.mmap.filename = "//anon";
	rec.mmap.ino = 0;
	check_int(modules_see(&m, &rec), 0);
	rec.mmap.filename = "[vdso]";
	rec.mmap.ino = 1;
	check_int(modules_see(&m, &rec), 0);
	check_int(m.files.count, 0);

	/* A FIFO must not be waited for, and a file that is no ELF has none. */
	require(fakeroot_make(&root));
	snprintf(path, sizeof(path), "%s/fifo", root.path);
	require(mkfifo(path, 0600) == 0);
	struct stat st;
	stat(path, &st);
	rec.mmap = (struct tally_record_mmap){
		.filename = path, .ino = st.st_ino, .maj = major(st.st_dev), .min = minor(st.st_dev)
	};
	check_int(modules_see(&m, &rec), 0);
	fakeroot_file(&root, "/text", "no ELF\n");
	snprintf(path, sizeof(path), "%s/text", root.path);
	stat(path, &st);
	rec.mmap.ino = st.st_ino;
	check_int(modules_see(&m, &rec), 0);
	check_int(m.files.count, 2);
	m.vdso = false; /* it has a build-id, though no file */
	check_int(modules_write(&m, NULL, NULL), 0);
	check_int(given.calls, 0);
	modules_done(&m);
	fakeroot_remove(&root);
}

static const uint8_t an_id[20] = { 0xab, 0xcd, 1 };

/* A program "/in/box" in the root of process 42, and its mapping there. */
static bool make_box(const struct fakeroot *root, struct tally_record *rec)
{
	static struct fakeelf e;
	char path[PATH_MAX];
	struct stat st;

	fakeelf_make(&e, 0x1000, an_id, SHT_SYMTAB, NULL, 0);
	snprintf(path, sizeof(path), "%s/proc/42/root/in/box", root->path);
	if (!fakeroot_bytes(root, "/proc/42/root/in/box", e.at, e.len) || stat(path, &st) < 0)
		return false;
	*rec = (struct tally_record){
		.type = TALLY_RECORD_MMAP2,
		.misc = TALLY_MISC_USER,
		.mmap = { .pid = 42,
			  .filename = "/in/box",
			  .ino = st.st_ino,
			  .maj = major(st.st_dev),
			  .min = minor(st.st_dev) },
	};
	return true;
}

/* The kept file's bytes are those of the one in the process's root. */
static void check_kept(const struct fakeroot *root, const char *kept, const char *from)
{
	char command[512];

	snprintf(command, sizeof(command), "cmp -s %s/cache/%s %s%s", root->path, kept, root->path,
		 from);
	check_int(system(command), 0);
}

static void what_is_in_a_container_is_kept(void)
{
	struct modules m = { 0 };
	struct tally_record rec;
	struct fakeroot root;
	char cache[PATH_MAX];
	require(fakeroot_make(&root) && make_box(&root, &rec));
	snprintf(cache, sizeof(cache), "%s/cache", root.path);
	m.root = root.path;
	memset(&given, 0, sizeof(given));

	check_int(modules_see(&m, &rec), 0);
	check_int(modules_write(&m, NULL, cache), 0);
	check_int(given.calls, 1);
	check_str(given.name, "/in/box");
	check_int(given.pid, -1);
	check_mem(given.id, an_id, 20);
	check_kept(&root, "program/abcd010000000000000000000000000000000000",
		   "/proc/42/root/in/box");
	modules_done(&m);
	fakeroot_remove(&root);
}

/* As when a container has ended by the end of the recording, or a program was built again. */
static void what_is_gone_at_the_end_is_kept_from_when_it_was_met(void)
{
	for (int again = 0; again < 2; again++) {
		struct modules m = { 0 };
		struct tally_record rec;
		struct fakeroot root;
		struct stat st;
		char cache[PATH_MAX], path[PATH_MAX], copy[PATH_MAX];
		require(fakeroot_make(&root) && make_box(&root, &rec));
		snprintf(cache, sizeof(cache), "%s/cache", root.path);
		snprintf(path, sizeof(path), "%s/proc/42/root/in/box", root.path);
		m.root = root.path;
		memset(&given, 0, sizeof(given));
		if (again) {
			/* At its path here, where it is until another takes its place. */
			rec.mmap.filename = path;
			rec.mmap.ino_generation = 1;
			require(stat(path, &st) == 0);
		}
		int file = open(path, O_RDONLY), version = 0;
		/* Where the file system has none, any does. */
		if (again && ioctl(file, FS_IOC_GETVERSION, &version) == 0)
			rec.mmap.ino_generation = (uint32_t)version;
		close(file);

		check_int(modules_see(&m, &rec), 0);
		snprintf(copy, sizeof(copy), "%s/proc/42/was", root.path);
		require(rename(path, copy) == 0);
		if (again)
			fakeroot_file(&root, "/proc/42/root/in/box", "another one");
		check_int(modules_write(&m, NULL, cache), 0);
		check_int(given.calls, 1);
		check_mem(given.id, an_id, 20);
		check_kept(&root, "program/abcd010000000000000000000000000000000000",
			   "/proc/42/was");
		modules_done(&m);
		fakeroot_remove(&root);
	}
}

static void another_generation_of_an_inode_is_another_file(void)
{
	struct modules m = { 0 };
	struct tally_record rec;
	char path[PATH_MAX];
	int version = 0;

	require(own_map(&rec, path));
	int file = open(path, O_RDONLY);
	int r = ioctl(file, FS_IOC_GETVERSION, &version);
	close(file);
	if (r < 0)
		tap_skip("inodes have no generations on this file system");
	for (uint32_t other = 0; other < 2; other++) {
		rec.mmap.ino_generation = (uint32_t)version + other;
		memset(&given, 0, sizeof(given));
		check_int(modules_see(&m, &rec), 0);
		check_int(m.files.at[0].id.len == 0, other);
		modules_done(&m);
		m = (struct modules){ 0 };
	}
}

/* What is told of one container's file must not count for another's of the same path. */
static void files_of_one_path_are_told_apart_by_process(void)
{
	struct modules m = { 0 };
	struct tally_record rec;
	struct fakeroot root;
	require(fakeroot_make(&root) && make_box(&root, &rec));
	m.root = root.path;
	memset(&given, 0, sizeof(given));

	check_int(modules_see(&m, &rec), 0);
	rec.mmap.pid = 43;
	rec.mmap.ino++;
	check_int(modules_see(&m, &rec), 0);
	check_int(modules_write(&m, NULL, NULL), 0);
	check_int(given.calls, 1);
	check_int(given.pid, 42);
	modules_done(&m);
	fakeroot_remove(&root);
}

static void what_tells_of_made_code_is_kept(void)
{
	static const char map[] = "7f0000000000 10 made\n";
	struct modules m = { 0 };
	struct tally_record rec;
	struct fakeroot root;
	struct build_id id;
	char cache[PATH_MAX], kept[64], text[BUILD_ID_TEXT];
	require(fakeroot_make(&root) && make_box(&root, &rec) &&
		fakeroot_file(&root, "/proc/42/root/tmp/perf-42.map", map));
	snprintf(cache, sizeof(cache), "%s/cache", root.path);
	m.root = root.path;
	memset(&given, 0, sizeof(given));

	rec.mmap.filename = "//anon";
	rec.mmap.ino = 0;
	check_int(modules_see(&m, &rec), 0);
	check_int(modules_write(&m, NULL, cache), 0);
	check_int(given.calls, 1);
	check_str(given.name, "/tmp/perf-42.map");
	id = build_id_from(given.id, given.id_len);
	check_u64(cache_content_len(&id), sizeof(map) - 1);
	snprintf(kept, sizeof(kept), "code/%s", build_id_text(text, &id));
	check_kept(&root, kept, "/proc/42/root/tmp/perf-42.map");
	modules_done(&m);
	fakeroot_remove(&root);
}

int main(void)
{
	tap_run(a_mapped_file_gets_its_build_id);
	tap_run(another_file_by_now_gets_none);
	tap_run(what_is_no_file_is_left_out);
	tap_run(what_is_in_a_container_is_kept);
	tap_run(what_is_gone_at_the_end_is_kept_from_when_it_was_met);
	tap_run(another_generation_of_an_inode_is_another_file);
	tap_run(files_of_one_path_are_told_apart_by_process);
	tap_run(what_tells_of_made_code_is_kept);
	return tap_end();
}
