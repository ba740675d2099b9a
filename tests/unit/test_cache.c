/* SPDX-License-Identifier: MIT */
/* cache: names, whole files, and which give place. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

#include "fakeroot.h"
#include "image/cache.h"
#include "tap.h"

static const struct build_id an_id = { 4, { 0xab, 0xcd, 0xef, 1 } };

static void folder_is_where_the_specification_says(void)
{
	char path[PATH_MAX];

	setenv("HOME", "/home/me", 1);
	setenv("XDG_CACHE_HOME", "/other/place", 1);
	check(cache_folder(path));
	check_str(path, "/other/place/tally");
	setenv("XDG_CACHE_HOME", "relative", 1);
	check(cache_folder(path));
	check_str(path, "/home/me/.cache/tally");
	unsetenv("XDG_CACHE_HOME");
	check(cache_folder(path));
	check_str(path, "/home/me/.cache/tally");
	unsetenv("HOME");
	check(!cache_folder(path));
}

static void check_content(const struct fakeroot *root, enum cache_kind kind, const char *want)
{
	char path[PATH_MAX], got[64] = "";

	check(cache_path(path, root->path, kind, &an_id));
	FILE *f = fopen(path, "r");
	if (f && !fgets(got, sizeof(got), f))
		got[0] = '\0';
	if (f)
		fclose(f);
	check_str(got, want);
}

static void first_comer_stays_unless_it_is_replaced(void)
{
	struct fakeroot root;
	require(fakeroot_make(&root));

	check_int(cache_keep_bytes(root.path, CACHE_PROGRAM, &an_id, "first", 5), 0);
	check_int(cache_keep_bytes(root.path, CACHE_PROGRAM, &an_id, "second", 6), 0);
	check_content(&root, CACHE_PROGRAM, "first");
	check_content(&root, CACHE_CODE, "");
	check_int(cache_replace(root.path, CACHE_PROGRAM, &an_id, "third", 5), 0);
	check_content(&root, CACHE_PROGRAM, "third");
	fakeroot_remove(&root);
}

static void a_copy_is_whole_or_not_there(void)
{
	struct fakeroot root;
	char path[PATH_MAX];
	require(fakeroot_make(&root) && fakeroot_file(&root, "/from", "some bytes"));
	snprintf(path, sizeof(path), "%s/from", root.path);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	require(fd >= 0);

	check_int(cache_keep(root.path, CACHE_CODE, &an_id, fd, 11), -EIO);
	check_content(&root, CACHE_CODE, "");
	check_int(cache_keep(root.path, CACHE_CODE, &an_id, fd, 4), 0);
	check_content(&root, CACHE_CODE, "some");
	close(fd);
	/* Nothing is left aside. */
	snprintf(path, sizeof(path), "test $(ls -A %s/code | wc -l) = 1", root.path);
	check_int(system(path), 0);
	fakeroot_remove(&root);
}

/* Whoever has the cache's home must not make root write elsewhere. */
static void links_and_folders_of_others_take_nothing(void)
{
	struct fakeroot root;
	char link[PATH_MAX], target[PATH_MAX];
	require(fakeroot_make(&root) && fakeroot_file(&root, "/target/.keep", ""));
	snprintf(link, sizeof(link), "%s/program", root.path);
	snprintf(target, sizeof(target), "%s/target", root.path);
	require(symlink(target, link) == 0);

	check(cache_keep_bytes(root.path, CACHE_PROGRAM, &an_id, "bytes", 5) < 0);
	check_content(&root, CACHE_PROGRAM, "");
	if (geteuid() == 0) {
		require(remove(link) == 0 && mkdir(link, 0777) == 0 &&
			chown(link, 65534, 65534) == 0);
		check_int(cache_keep_bytes(root.path, CACHE_PROGRAM, &an_id, "bytes", 5), -EPERM);
	}
	fakeroot_remove(&root);
}

static void content_has_an_id(void)
{
	struct build_id one, other;
	struct fakeroot root;
	char path[PATH_MAX];
	require(fakeroot_make(&root) && fakeroot_file(&root, "/from", "some bytes"));
	snprintf(path, sizeof(path), "%s/from", root.path);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	require(fd >= 0);

	check(cache_content_id(&one, fd, 10));
	check_u64(cache_content_len(&one), 10);
	check(cache_content_id(&other, fd, 9));
	check(!build_ids_match(&one, &other));
	check(!cache_content_id(&other, fd, 11));
	check_u64(cache_content_len(&an_id), 0);
	close(fd);
	fakeroot_remove(&root);
}

/* FNV-1a of "a" and "foobar", by its authors' test vectors. */
static void hash_is_the_published_one(void)
{
	check_u64(cache_hash(CACHE_HASH_START, "a", 1), 0xaf63dc4c8601ec8c);
	check_u64(cache_hash(CACHE_HASH_START, "foobar", 6), 0x85944171f73967e8);
}

/* Files with nothing in them still have a size. */
static bool put_large(const struct fakeroot *root, const char *path, off_t size, time_t age)
{
	const struct timeval times[2] = { { .tv_sec = age }, { .tv_sec = age } };
	char full[PATH_MAX];

	snprintf(full, sizeof(full), "%s%s", root->path, path);
	return fakeroot_file(root, path, "") && truncate(full, size) == 0 &&
	       utimes(full, times) == 0;
}

static void oldest_files_give_place(void)
{
	const off_t half = CACHE_LIMIT / 2;
	struct fakeroot root;
	char command[256];
	require(fakeroot_make(&root));

	require(put_large(&root, "/program/newest", half, 3000) &&
		put_large(&root, "/code/oldest", half, 1000) &&
		put_large(&root, "/kernel/middle", half, 2000) &&
		put_large(&root, "/other/untouched", half, 1));
	cache_trim(root.path);
	snprintf(command, sizeof(command),
		 "cd %s && test -e program/newest -a -e kernel/middle -a ! -e code/oldest -a -e "
		 "other/untouched",
		 root.path);
	check_int(system(command), 0);
	fakeroot_remove(&root);
}

int main(void)
{
	tap_run(folder_is_where_the_specification_says);
	tap_run(first_comer_stays_unless_it_is_replaced);
	tap_run(a_copy_is_whole_or_not_there);
	tap_run(links_and_folders_of_others_take_nothing);
	tap_run(content_has_an_id);
	tap_run(hash_is_the_published_one);
	tap_run(oldest_files_give_place);
	return tap_end();
}
