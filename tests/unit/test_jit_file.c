/* SPDX-License-Identifier: MIT */
/* jit-file, perf-map, jitdump: files made by the kernel's descriptions of the two formats. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fakejit.h"
#include "image/jit-file.h"
#include "tap.h"

static int file_of(const void *bytes, size_t len)
{
	int fd = memfd_create("jit", MFD_CLOEXEC);

	return fd >= 0 && write(fd, bytes, len) == (ssize_t)len ? fd : -1;
}

static int64_t read_once(struct jit_file *f, bool dump, const void *bytes, size_t len)
{
	int fd = file_of(bytes, len);

	*f = (struct jit_file){ .dump = dump };
	int64_t r = jit_file_read(f, fd, 0);
	close(fd);
	return r;
}

static const char *name_at(const struct jit_file *f, uint64_t address, uint64_t time)
{
	const struct jit_code *code = jit_file_find(f, address, time);

	return code ? jit_file_text(f, code->name) : "";
}

static void perf_map_lines_become_functions(void)
{
	static const char text[] = "7f0000001000 40 LazyCompile:*add /a b.js:3:1\n"
				   "0x7f0000002000 0x10 Stub\r\n"
				   "\n"
				   "not a line\n"
				   "7f0000003000 0 empty\n"
				   "7f0000003000 10\n"
				   "7f0000003000 10 \n"
				   "7f0000003000  10  blanks\n"
				   "fffffffffffffff0 20 wraps\n"
				   "11111111111111111 20 too large\n"
				   "7f0000004000 8 last, without a newline";
	struct jit_file f;

	check_int(read_once(&f, false, text, sizeof(text) - 1), 4);
	check_str(name_at(&f, 0x7f0000001000, 0), "LazyCompile:*add /a b.js:3:1");
	check_str(name_at(&f, 0x7f000000103f, 0), "LazyCompile:*add /a b.js:3:1");
	check_str(name_at(&f, 0x7f0000001040, 0), "");
	check_str(name_at(&f, 0x7f000000200f, 0), "Stub");
	check_str(name_at(&f, 0x7f0000003000, 0), "blanks");
	check_str(name_at(&f, 0x7f0000004007, 0), "last, without a newline");
	jit_file_done(&f);
}

/* A file cannot tell when: in it the last one counts. What is read later came later. */
static void perf_map_that_grew_is_read_on(void)
{
	int fd = file_of("", 0);
	struct jit_file f = { 0 };
	const char *first = "1000 100 old\n2000 100 older\n2000 100 newer\n30";

	require(fd >= 0 && write(fd, first, strlen(first)) > 0);
	check_int(jit_file_read(&f, fd, 10), 3);
	check_str(name_at(&f, 0x1000, 0), "old");
	check_str(name_at(&f, 0x2000, 0), "newer");
	check_int(jit_file_read(&f, fd, 20), 0);
	require(write(fd, "00 100 halved\n1000 80 new\n", 26) == 26);
	check_int(jit_file_read(&f, fd, 30), 2);
	check_str(name_at(&f, 0x3000, 30), "halved");
	check_str(name_at(&f, 0x1000, 29), "old");
	check_str(name_at(&f, 0x1000, 30), "new");
	check_str(name_at(&f, 0x1080, 30), "old");
	close(fd);
	jit_file_done(&f);
}

/* A process that lives on tells of code that a recording does not have. */
static void what_lies_behind_the_limit_is_not_read(void)
{
	static const char text[] = "1000 100 old\n1000 100 new\n";
	struct jit_file f = { .limit = 13 };
	int fd = file_of(text, sizeof(text) - 1);

	check_int(jit_file_read(&f, fd, 0), 1);
	check_str(name_at(&f, 0x1000, 0), "old");
	check_int(jit_file_read(&f, fd, 0), 0);
	close(fd);
	jit_file_done(&f);
}

/* More than one window; and a line that is longer than any name. */
static void perf_map_may_be_large(void)
{
	size_t room = 600000, len = 0;
	char *text = malloc(room);
	struct jit_file f;
	char name[32];
	require(text);

	for (unsigned i = 0; i < 10000; i++) {
		if (i == 5000) {
			memset(text + len, 'x', 200000);
			len += 200000;
			text[len++] = '\n';
		}
		len += (size_t)snprintf(text + len, room - len, "%x 10 f%u\n", 0x1000 + i * 16, i);
	}
	check_int(read_once(&f, false, text, len), 10000);
	for (unsigned i = 0; i < 10000; i += 777) {
		snprintf(name, sizeof(name), "f%u", i);
		check_str(name_at(&f, 0x1000 + i * 16 + 7, 0), name);
	}
	jit_file_done(&f);
	free(text);
}

static void check_dump(bool swapped)
{
	static const struct fakejit_line lines[] = {
		{ 0x1010, 7, "/src/b.js" },
		{ 0x1000, 3, "/src/a.js" },
		{ 0x1020, 8, "\xff" },
	};
	static struct fakejit j;
	struct jit_file f;

	fakejit_begin(&j, swapped, 0);
	fakejit_lines(&j, 9, 0x1000, lines, 3);
	fakejit_unwind(&j, 9, "FRAMEHEAD", 9, 4);
	fakejit_load(&j, 10, 0x1000, 0x100, "first");
	fakejit_load(&j, 20, 0x2000, 0x100, "second");
	fakejit_load(&j, 30, 0x1000, 0x80, "third");
	fakejit_move(&j, 40, 0x2000, 0x5000, 0x100);
	check_int(read_once(&f, true, j.at, j.len), 5);

	check_str(name_at(&f, 0x1010, 5), "first");
	check_str(name_at(&f, 0x1010, 29), "first");
	check_str(name_at(&f, 0x1010, 30), "third");
	check_str(name_at(&f, 0x2000, 39), "second");
	check_str(name_at(&f, 0x2000, 40), "");
	check_str(name_at(&f, 0x50ff, 40), "second");

	const struct jit_code *first = jit_file_find(&f, 0x1018, 10);
	require(first);
	const struct jit_line *line = jit_file_line(&f, first, 0x18);
	require(line);
	check_u64(line->line, 7);
	check_str(jit_file_text(&f, line->file), "/src/b.js");
	line = jit_file_line(&f, first, 0);
	require(line);
	check_u64(line->line, 3);
	check_u64(first->unwind, 1);
	check_u64(f.unwinds.at[0].header_size, 4);
	check_mem(f.unwind_bytes.at, "FRAMEHEAD", 9);
	/* They are the first one's alone. */
	const struct jit_code *second = jit_file_find(&f, 0x2000, 20);
	require(second);
	check(!jit_file_line(&f, second, 0));
	check_u64(second->unwind, 0);
	jit_file_done(&f);
}

static void jitdump_tells_when(void)
{
	check_dump(false);
	check_dump(true);
}

static void jitdump_with_the_cpus_clock_tells_no_times(void)
{
	static struct fakejit j;
	struct jit_file f;

	fakejit_begin(&j, false, 1);
	fakejit_load(&j, 1000000, 0x1000, 0x100, "first");
	fakejit_load(&j, 2000000, 0x1000, 0x100, "second");
	check_int(read_once(&f, true, j.at, j.len), 2);
	check_str(name_at(&f, 0x1010, 0), "second");
	jit_file_done(&f);
}

static void jitdump_that_grows_is_read_on(void)
{
	static struct fakejit j;
	struct jit_file f = { .dump = true };
	int fd = file_of("", 0);
	size_t half;

	fakejit_begin(&j, false, 0);
	fakejit_load(&j, 10, 0x1000, 0x100, "first");
	half = j.len + 20;
	fakejit_load(&j, 20, 0x1000, 0x100, "second");
	require(fd >= 0 && write(fd, j.at, half) == (ssize_t)half);
	check_int(jit_file_read(&f, fd, 0), 1);
	check_str(name_at(&f, 0x1010, 20), "first");
	require(write(fd, j.at + half, j.len - half) > 0);
	check_int(jit_file_read(&f, fd, 0), 1);
	check_str(name_at(&f, 0x1010, 20), "second");
	close(fd);
	jit_file_done(&f);
}

/* Wherever it is cut, what is whole before the cut is there. */
static void jitdump_may_be_cut_anywhere(void)
{
	static struct fakejit j;
	struct jit_file f;

	fakejit_begin(&j, false, 0);
	fakejit_load(&j, 10, 0x1000, 16, "first");
	size_t one = j.len;
	fakejit_load(&j, 20, 0x2000, 16, "second");
	for (size_t len = 0; len <= j.len; len++) {
		int64_t r = read_once(&f, true, j.at, len);
		if (len < 40)
			check_int(r, -ENOEXEC);
		else if (len >= one)
			check_str(name_at(&f, 0x1000, 0), "first");
		jit_file_done(&f);
	}
	check_int(read_once(&f, true, "not a jitdump, but as long as its head is", 41), -ENOEXEC);
	jit_file_done(&f);
}

int main(void)
{
	tap_run(perf_map_lines_become_functions);
	tap_run(perf_map_that_grew_is_read_on);
	tap_run(what_lies_behind_the_limit_is_not_read);
	tap_run(perf_map_may_be_large);
	tap_run(jitdump_tells_when);
	tap_run(jitdump_with_the_cpus_clock_tells_no_times);
	tap_run(jitdump_that_grows_is_read_on);
	tap_run(jitdump_may_be_cut_anywhere);
	return tap_end();
}
