/* SPDX-License-Identifier: MIT */
/* The writer: every byte of a file, and every way in which a disk may refuse. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <tally/reader.h>
#include <tally/record.h>
#include <tally/writer.h>

#include "base/sys.h"
#include "fakeroot.h"
#include "handmade.h"
#include "tap.h"

/* ---- a table of system calls whose writes can be made to misbehave ---- */

static struct {
	int64_t room;      /* bytes that still fit on the disk; -1: no limit */
	size_t short_to;   /* at most so many bytes a call; 0: all */
	int interruptions; /* so many calls end in EINTR first */
	int open_error, pwrite_error;
} fake = { .room = -1 };

static ssize_t allow(size_t len)
{
	if (fake.interruptions > 0) {
		fake.interruptions--;
		return -EINTR;
	}
	if (fake.short_to && len > fake.short_to)
		len = fake.short_to;
	if (fake.room >= 0 && (int64_t)len > fake.room)
		len = (size_t)fake.room;
	if (fake.room >= 0)
		fake.room -= (int64_t)len;
	return len ? (ssize_t)len : -ENOSPC;
}

static ssize_t fake_write(int fd, const void *buf, size_t len)
{
	ssize_t n = allow(len);

	return n < 0 ? n : sys_kernel.write(fd, buf, (size_t)n);
}

static ssize_t fake_writev(int fd, const struct iovec *iov, int count)
{
	size_t total = 0, done = 0;

	for (int i = 0; i < count; i++)
		total += iov[i].iov_len;
	if (!total)
		return 0;
	ssize_t n = allow(total);
	for (int i = 0; n > 0 && i < count && done < (size_t)n; i++) {
		size_t len = iov[i].iov_len < (size_t)n - done ? iov[i].iov_len : (size_t)n - done;
		if (write(fd, iov[i].iov_base, len) != (ssize_t)len)
			abort();
		done += len;
	}
	return n;
}

/* The header has its blocks already: only what lies behind the file's end needs room. */
static ssize_t fake_pwrite(int fd, const void *buf, size_t len, off_t offset)
{
	struct stat st;

	if (fake.pwrite_error)
		return fake.pwrite_error;
	if (fstat(fd, &st) == 0 && offset >= st.st_size) {
		ssize_t n = allow(len);
		if (n < 0)
			return n;
		len = (size_t)n;
	}
	return sys_kernel.pwrite(fd, buf, len, offset);
}

static int fake_open(const char *path, int flags, mode_t mode)
{
	return fake.open_error ? fake.open_error : sys_kernel.open(path, flags, mode);
}

const struct sys_table *sys(void)
{
	static struct sys_table table;

	table = sys_kernel;
	table.write = fake_write;
	table.writev = fake_writev;
	table.pwrite = fake_pwrite;
	table.open = fake_open;
	return &table;
}

/* ---- a folder for the files ---- */

static char dir[] = "/tmp/tally-writer-XXXXXX";
static char data_path[64], old_path[64];

static bool slurp(const char *path, struct handmade *h)
{
	FILE *f = fopen(path, "r");
	int c;

	h->len = 0;
	if (!f)
		return false;
	while ((c = fgetc(f)) != EOF) {
		uint8_t byte = (uint8_t)c;
		hm_bytes(h, &byte, 1);
	}
	fclose(f);
	return true;
}

static void spill(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	if (!f || fputs(text, f) < 0 || fclose(f))
		abort();
}

static bool holds(const char *path, const char *text)
{
	struct handmade h = { 0 };
	bool same = slurp(path, &h) && h.len == strlen(text) &&
		    (!h.len || !memcmp(h.at, text, h.len));

	hm_done(&h);
	return same;
}

static void clean(void)
{
	fake.room = -1;
	fake.short_to = 0;
	fake.interruptions = fake.open_error = fake.pwrite_error = 0;
	unlink(data_path);
	unlink(old_path);
	rmdir(data_path);
	rmdir(old_path);
}

/* ---- the bytes ---- */

static const uint64_t ids[] = { 11, 12, 13 };

static struct tally_attr clock_attr(void)
{
	struct tally_attr attr;

	tally_attr_init(&attr, TALLY_TYPE_SOFTWARE, TALLY_SW_CPU_CLOCK);
	attr.sample_period = 4000;
	attr.sample_type = TALLY_SAMPLE_IP | TALLY_SAMPLE_TID;
	attr.flags = TALLY_ATTR_FREQ | TALLY_ATTR_EXCLUDE_GUEST;
	return attr;
}

static struct tally_writer *start(void)
{
	struct tally_writer *w = NULL;
	struct tally_error err = { 0 };
	struct tally_attr attr = clock_attr();

	if (tally_writer_open(&w, data_path, NULL, &err) < 0 ||
	    tally_writer_event(w, "cpu-clock", &attr, ids, 2, &err) < 0) {
		printf("# %s\n", err.text);
		abort();
	}
	attr.config = TALLY_SW_PAGE_FAULTS;
	tally_writer_event(w, "faults:u", &attr, ids + 2, 1, &err);
	return w;
}

/* What stands in both the attrs section and EVENT_DESC. */
static void want_attr(struct handmade *h, uint64_t config)
{
	hm_u32(h, 1);
	hm_u32(h, 64);
	hm_u64(h, config);
	hm_u64(h, 4000);
	hm_u64(h, 3);
	hm_u64(h, 0);
	hm_u64(h, 1 << 10 | 1 << 20);
	hm_room(h, 16);
}

static void want_head(struct handmade *h)
{
	hm_header(h, 104, 80);
	hm_section(h, HM_ATTRS_AT, 128, 160);
	hm_section(h, HM_DATA_AT, 288, 0);
	for (int i = 0; i < 3; i++)
		hm_u64(h, ids[i]);
	want_attr(h, 0);
	hm_u64(h, 104);
	hm_u64(h, 16);
	want_attr(h, 2);
	hm_u64(h, 120);
	hm_u64(h, 8);
}

static void want_round(struct handmade *h)
{
	hm_record(h, 68, 0, 8);
	hm_set(h, HM_DATA_AT + 8, h->len - 288, 8);
}

static void want_event_desc(struct handmade *h)
{
	hm_u32(h, 2);
	hm_u32(h, 64);
	want_attr(h, 0);
	hm_u32(h, 2);
	hm_text(h, "cpu-clock", 64);
	hm_u64(h, 11);
	hm_u64(h, 12);
	want_attr(h, 2);
	hm_u32(h, 1);
	hm_text(h, "faults:u", 64);
	hm_u64(h, 13);
}

static void check_file(const struct handmade *want)
{
	struct handmade got = { 0 };

	require(slurp(data_path, &got));
	check_int(got.len, want->len);
	check_mem(got.at, want->at, got.len < want->len ? got.len : want->len);
	hm_done(&got);
}

static void every_byte_is_where_it_belongs(void)
{
	struct tally_error err = { 0 };
	struct handmade want = { 0 }, comm = { 0 };
	struct tally_writer *w = start();

	want_head(&want);
	check_int(tally_writer_begin(w, &err), 0);
	check_file(&want);
	check_u64(tally_writer_size(w), 288);

	hm_comm(&comm, 7, "make");
	hm_comm(&comm, 8, "cc1");
	struct iovec spans[] = { { comm.at, 40 }, { comm.at + 40, 24 } };
	check_int(tally_writer_append(w, spans, 2), 0);
	hm_bytes(&want, comm.at, comm.len);
	check_file(&want); /* sizes are of the last round */

	check_int(tally_writer_round(w, &err), 0);
	want_round(&want);
	check_file(&want);
	check_int(tally_writer_round(w, &err), 0); /* nothing came since */
	check_file(&want);

	check_int(tally_writer_append(w, spans, 2), 0);
	hm_bytes(&want, comm.at, comm.len);
	check_int(tally_writer_text(w, TALLY_FEATURE_HOSTNAME, "elsewhere"), 0);
	check_int(tally_writer_feature(w, TALLY_FEATURE_SAMPLE_TIME, "0123456789abcdef", 16), 0);
	check_int(tally_writer_text(w, TALLY_FEATURE_HOSTNAME, "box"), 0);
	check_int(tally_writer_finish(w, &err), 0);
	hm_set(&want, HM_DATA_AT + 8, want.len - 288, 8);
	hm_set(&want, HM_FEATURES_AT, 1 << 3 | 1 << 12 | 1 << 21, 8);
	size_t table = want.len;
	hm_room(&want, 48);
	hm_section(&want, table, want.len, 68);
	hm_text(&want, "box", 64);
	size_t begin = want.len;
	want_event_desc(&want);
	hm_section(&want, table + 16, begin, want.len - begin);
	hm_section(&want, table + 32, want.len, 16);
	hm_bytes(&want, "0123456789abcdef", 16);
	check_file(&want);
	check_u64(tally_writer_size(w), want.len);

	tally_writer_close(w);
	check_file(&want);
	hm_done(&want);
	hm_done(&comm);
	clean();
}

/* ---- the same bytes, however the kernel takes them ---- */

static void write_whole(void)
{
	struct tally_error err = { 0 };
	struct handmade comm = { 0 };
	struct iovec spans[5] = { 0 };
	struct tally_writer *w = start();

	for (int i = 0; i < 5; i++)
		hm_comm(&comm, 7, "make");
	/* Spans as rings give them: of any length, also none. */
	static const size_t cuts[] = { 0, 1, 1, 90, 121, 160 };
	for (int i = 0; i < 5; i++)
		spans[i] = (struct iovec){ comm.at + cuts[i], cuts[i + 1] - cuts[i] };
	check_int(tally_writer_begin(w, &err), 0);
	check_int(tally_writer_append(w, spans, 5), 0);
	check_int(tally_writer_append(w, spans, 0), 0);
	check_int(tally_writer_round(w, &err), 0);
	check_int(tally_writer_append(w, spans, 5), 0);
	check_int(tally_writer_text(w, TALLY_FEATURE_HOSTNAME, "box"), 0);
	check_int(tally_writer_finish(w, &err), 0);
	tally_writer_close(w);
	hm_done(&comm);
}

static void short_and_interrupted_writes_change_nothing(void)
{
	struct handmade want = { 0 };

	write_whole();
	require(slurp(data_path, &want));
	clean();
	for (size_t n = 1; n < 170; n++) {
		fake.short_to = n;
		fake.interruptions = (int)(n % 7);
		write_whole();
		check_file(&want);
		clean();
	}
	hm_done(&want);
}

static void many_spans_are_written_in_several_calls(void)
{
	static struct iovec spans[3000];
	struct tally_record_header round = { 68, 0, 8 };
	struct tally_writer *w = start();
	struct handmade got = { 0 };

	for (int i = 0; i < 3000; i++)
		spans[i] = (struct iovec){ &round, sizeof(round) };
	check_int(tally_writer_begin(w, NULL), 0);
	check_int(tally_writer_append(w, spans, 3000), 0);
	tally_writer_close(w);
	require(slurp(data_path, &got));
	check_int(got.len, 288 + 24000);
	hm_done(&got);
	clean();
}

static void appending_allocates_nothing(void)
{
	struct handmade comm = { 0 };
	struct tally_writer *w = start();

	hm_comm(&comm, 7, "make");
	struct iovec span = { comm.at, comm.len };
	check_int(tally_writer_begin(w, NULL), 0);
	size_t before = mallinfo2().uordblks;
	for (int i = 0; i < 100; i++) {
		check_int(tally_writer_append(w, &span, 1), 0);
		check_int(tally_writer_round(w, NULL), 0);
	}
	check_u64(mallinfo2().uordblks, before);
	tally_writer_close(w);
	hm_done(&comm);
	clean();
}

/* ---- full disks ---- */

static int count_records(const char *path, const char **health)
{
	static char text[512];
	struct tally_reader *r = NULL;
	struct tally_reader_record rec;
	struct tally_error err = { 0 };
	int n = 0, ret = tally_reader_open(&r, path, NULL, &err);

	if (ret == 0)
		while ((ret = tally_reader_next(r, &rec, &err)) > 0)
			n += rec.type != TALLY_FILE_FINISHED_ROUND;
	if (ret < 0)
		printf("# %s\n", err.text);
	if (health) {
		const char *told = r ? tally_reader_health(r) : NULL;
		snprintf(text, sizeof(text), "%s", told ? told : "");
		*health = text;
	}
	tally_reader_close(r);
	return ret < 0 ? ret : n;
}

static void a_full_disk_leaves_what_is_whole(void)
{
	struct tally_error err;
	struct handmade comm = { 0 };
	const char *health;

	for (int i = 0; i < 3; i++)
		hm_comm(&comm, 7, "make");
	struct iovec spans[] = { { comm.at, 50 }, { comm.at + 50, 46 } };
	/* Room for two rounds and any part of a third. */
	for (int64_t room = 0; room < 104; room++) {
		struct tally_writer *w = start();
		int whole = room < 96 ? (int)room / 32 : 3;
		check_int(tally_writer_begin(w, &err), 0);
		for (int i = 0; i < 2; i++) {
			check_int(tally_writer_append(w, spans, 2), 0);
			check_int(tally_writer_round(w, &err), 0);
		}
		fake.room = room;
		if (room < 96) {
			check_int(tally_writer_append(w, spans, 2), -ENOSPC);
			fake.room = -1;
			check_int(tally_writer_append(w, spans, 2), -ENOSPC);
		} else {
			check_int(tally_writer_append(w, spans, 2), 0);
		}
		check_int(tally_writer_round(w, &err), -ENOSPC);
		check_int(err.cause, TALLY_CAUSE_IO);
		check_has(err.text, data_path);
		check_has(err.text, "No space left");
		check_u64(tally_writer_size(w), 288 + 208 + (uint64_t)whole * 32);
		if (room % 2) {
			fake.room = -1; /* what was cut off made room */
			check_int(tally_writer_finish(w, &err), 0);
		}
		tally_writer_close(w);
		check_int(count_records(data_path, &health), 6 + whole);
		check_str(health, "");
		clean();
	}
	hm_done(&comm);
}

static void no_room_for_features_leaves_the_records(void)
{
	struct tally_error err = { 0 };
	struct handmade comm = { 0 };
	const char *health;

	hm_comm(&comm, 7, "make");
	struct iovec span = { comm.at, comm.len };
	for (int64_t room = 0; room < 200; room += 13) {
		struct tally_writer *w = start();
		check_int(tally_writer_begin(w, &err), 0);
		check_int(tally_writer_append(w, &span, 1), 0);
		fake.room = room;
		check_int(tally_writer_finish(w, &err), -ENOSPC);
		check_has(err.text, "No space left");
		tally_writer_close(w);
		check_int(count_records(data_path, &health), 1);
		check_str(health, "");
		clean();
	}
	hm_done(&comm);
}

static void no_room_for_the_head_is_an_error(void)
{
	struct tally_error err = { 0 };
	struct tally_writer *w = start();

	fake.room = 100;
	check_int(tally_writer_begin(w, &err), -ENOSPC);
	check_has(err.text, "No space left");
	tally_writer_discard(w);
	check(access(data_path, F_OK) < 0);
	clean();
}

static void a_header_that_cannot_be_updated_is_an_error(void)
{
	struct tally_error err = { 0 };
	struct handmade comm = { 0 };
	struct tally_writer *w = start();

	hm_comm(&comm, 7, "make");
	struct iovec span = { comm.at, comm.len };
	check_int(tally_writer_begin(w, &err), 0);
	check_int(tally_writer_append(w, &span, 1), 0);
	fake.pwrite_error = -EIO;
	check_int(tally_writer_round(w, &err), -EIO);
	check_int(tally_writer_finish(w, &err), -EIO);
	tally_writer_close(w);
	check_int(count_records(data_path, NULL), 1);
	hm_done(&comm);
	clean();
}

/* A killed writer: the file is whatever stood there at that moment. */
static void a_killed_writer_loses_at_most_half_a_record(void)
{
	struct handmade comm = { 0 };
	const char *health;

	hm_comm(&comm, 7, "make");
	hm_comm(&comm, 8, "cc1");
	struct iovec span = { comm.at, comm.len };
	for (int rounds = 0; rounds < 3; rounds++) {
		for (off_t cut = 0; cut < 40; cut += 8) {
			struct tally_writer *w = start();
			check_int(tally_writer_begin(w, NULL), 0);
			for (int i = 0; i < rounds; i++) {
				check_int(tally_writer_append(w, &span, 1), 0);
				check_int(tally_writer_round(w, NULL), 0);
			}
			check_int(tally_writer_append(w, &span, 1), 0);
			uint64_t size = tally_writer_size(w);
			tally_writer_close(w);
			require(truncate(data_path, (off_t)size - cut) == 0);
			int lost = cut > 32 ? 2 : cut > 0 ? 1 : 0;
			check_int(count_records(data_path, &health), 2 * rounds + 2 - lost);
			check(health[0]);
			clean();
		}
	}
	hm_done(&comm);
}

/* ---- names ---- */

static void an_older_file_is_kept(void)
{
	struct tally_writer *w = NULL;
	struct tally_error err;
	struct stat st;

	spill(data_path, "old");
	spill(old_path, "older");
	mode_t mask = umask(0);
	check_int(tally_writer_open(&w, data_path, NULL, &err), 0);
	umask(mask);
	check(holds(old_path, "old"));
	check(holds(data_path, ""));
	check_int(stat(data_path, &st), 0);
	check_int(st.st_mode & 07777, 0600);
	tally_writer_discard(w);
	check(holds(data_path, "old"));
	check(access(old_path, F_OK) < 0);
	clean();
}

static void an_older_file_is_replaced_on_demand(void)
{
	struct tally_writer *w = NULL;
	struct tally_error err;

	spill(data_path, "old");
	check_int(tally_writer_open(&w, data_path, TALLY_OPTS(writer, .flags = TALLY_WRITER_NO_OLD),
				    &err),
		  0);
	check(access(old_path, F_OK) < 0);
	check(holds(data_path, ""));
	tally_writer_close(w);
	clean();
}

static void what_cannot_be_kept_is_not_overwritten(void)
{
	struct tally_writer *w = NULL;
	struct tally_error err = { 0 };

	spill(data_path, "old");
	require(mkdir(old_path, 0700) == 0);
	check_int(tally_writer_open(&w, data_path, NULL, &err), -EISDIR);
	check_has(err.text, old_path);
	check(holds(data_path, "old"));
	check(!w);
	clean();
}

static void a_failed_open_gives_the_name_back(void)
{
	struct tally_writer *w = NULL;
	struct tally_error err = { 0 };

	spill(data_path, "old");
	fake.open_error = -ENOSPC;
	check_int(tally_writer_open(&w, data_path, NULL, &err), -ENOSPC);
	check_has(err.text, data_path);
	check(holds(data_path, "old"));
	check(!w);
	clean();
}

/* Whoever may write to the folder must not make a privileged recorder write elsewhere. */
static void links_are_not_followed(void)
{
	char target[80], link[80] = { 0 };
	struct tally_writer *w = NULL;
	struct tally_error err;

	snprintf(target, sizeof(target), "%s/target", dir);
	spill(target, "precious");
	require(symlink(target, data_path) == 0);
	check_int(tally_writer_open(&w, data_path, NULL, &err), 0);
	check(holds(target, "precious"));
	check(readlink(old_path, link, sizeof(link) - 1) > 0);
	check_str(link, target);
	tally_writer_close(w);
	unlink(target);
	clean();
}

static void names_that_are_no_files(void)
{
	struct tally_writer *w = NULL;
	struct tally_error err = { 0 };
	char path[96];

	check_int(tally_writer_open(&w, dir, NULL, &err), -EISDIR);
	check_has(err.text, "folder");
	require(mkfifo(data_path, 0600) == 0);
	check_int(tally_writer_open(&w, data_path, NULL, &err), -ESPIPE);
	clean();
	snprintf(path, sizeof(path), "%s/none/perf.data", dir);
	check_int(tally_writer_open(&w, path, NULL, &err), -ENOENT);
	check_int(err.cause, TALLY_CAUSE_NO_FILE);
	check_has(err.text, path);
	check(!w);
}

/* They are written as they are, and remain whose they are. */
static void devices_are_left_alone(void)
{
	struct tally_writer *w = NULL;
	struct tally_error err = { 0 };
	struct stat before, after;

	require(stat("/dev/null", &before) == 0);
	require(symlink("/dev/null", data_path) == 0);
	const char *const names[] = { "/dev/null", data_path };
	for (int i = 0; i < 2; i++) {
		check_int(tally_writer_open(&w, names[i],
					    TALLY_OPTS(writer, .owner_uid_plus_1 = 1001), &err),
			  0);
		tally_writer_discard(w);
		require(stat(names[i], &after) == 0);
		check_int(after.st_uid, before.st_uid);
		check_int(after.st_mode, before.st_mode);
	}
	clean();
}

/* What a process has open is nobody's to rename. */
static void links_of_the_system_are_refused(void)
{
	struct tally_writer *w = NULL;
	struct tally_error err = { 0 };
	char path[64];

	spill(data_path, "open");
	int fd = open(data_path, O_RDWR);
	require(fd >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	check_int(tally_writer_open(&w, path, NULL, &err), -ESPIPE);
	check(holds(data_path, "open"));
	close(fd);
	clean();
}

static void the_owner_is_who_asked(void)
{
	struct tally_writer *w = NULL;
	struct tally_error err;
	struct stat st = { 0 };

	if (geteuid() != 0)
		tap_skip("only root gives files away");
	check_int(tally_writer_open(
			  &w, data_path,
			  TALLY_OPTS(writer, .owner_uid_plus_1 = 1001, .owner_gid_plus_1 = 1002),
			  &err),
		  0);
	check_int(stat(data_path, &st), 0);
	check_int(st.st_uid, 1000);
	check_int(st.st_gid, 1001);
	tally_writer_close(w);
	clean();
}

/* ---- what goes into the head and the features ---- */

static uint32_t attr_size_of(const struct tally_attr *second)
{
	struct tally_writer *w = start();
	struct tally_reader *r = NULL;
	uint32_t size = 0;

	tally_writer_event(w, "second", second, NULL, 0, NULL);
	check_int(tally_writer_begin(w, NULL), 0);
	check_int(tally_writer_finish(w, NULL), 0);
	tally_writer_close(w);
	check_int(tally_reader_open(&r, data_path, NULL, NULL), 0);
	if (r) {
		size = tally_reader_event(r, 0)->raw_attr_len;
		for (uint32_t i = 0; i < tally_reader_events(r); i++)
			check_int(tally_reader_event(r, i)->attr.size, size);
		check_str(tally_reader_event(r, 2)->name, "second");
	}
	tally_reader_close(r);
	clean();
	return size;
}

/* Published sizes: perf_event_open(2) and PERF_ATTR_SIZE_VER0 to VER9. */
static void all_attrs_have_the_smallest_common_size(void)
{
	struct tally_attr attr = clock_attr();

	check_int(attr_size_of(&attr), 64);
	attr.config2 = 1;
	check_int(attr_size_of(&attr), 72);
	attr.branch_sample_type = 1;
	check_int(attr_size_of(&attr), 80);
	attr.flags |= TALLY_ATTR_USE_CLOCKID;
	attr.clockid = CLOCK_MONOTONIC;
	check_int(attr_size_of(&attr), 96);
	attr.sample_max_stack = 1;
	check_int(attr_size_of(&attr), 112);
	attr.sig_data = 1;
	check_int(attr_size_of(&attr), 128);
	attr.config3 = 1;
	check_int(attr_size_of(&attr), 136);
}

static void clocks_of_choice_are_described(void)
{
	struct tally_attr attr = clock_attr();
	struct tally_writer *w = start();
	struct tally_reader *r = NULL;
	const void *bytes;
	uint64_t len, resolution, wall, clock;
	uint32_t words[2];
	struct timespec now;

	attr.flags |= TALLY_ATTR_USE_CLOCKID;
	attr.clockid = CLOCK_MONOTONIC;
	tally_writer_event(w, "timed", &attr, NULL, 0, NULL);
	check_int(tally_writer_begin(w, NULL), 0);
	check_int(tally_writer_finish(w, NULL), 0);
	tally_writer_close(w);
	require(tally_reader_open(&r, data_path, NULL, NULL) == 0);
	require(tally_reader_feature(r, TALLY_FEATURE_CLOCKID, &bytes, &len) == 1);
	require(len == 8);
	memcpy(&resolution, bytes, 8);
	check(resolution >= 1 && resolution <= 10000000);
	require(tally_reader_feature(r, TALLY_FEATURE_CLOCK_DATA, &bytes, &len) == 1);
	require(len == 24);
	memcpy(words, bytes, 8);
	memcpy(&wall, (const char *)bytes + 8, 8);
	memcpy(&clock, (const char *)bytes + 16, 8);
	check_int(words[0], 1);
	check_int(words[1], CLOCK_MONOTONIC);
	clock_gettime(CLOCK_REALTIME, &now);
	check(wall / 1000000000 <= (uint64_t)now.tv_sec);
	clock_gettime(CLOCK_MONOTONIC, &now);
	check(clock / 1000000000 <= (uint64_t)now.tv_sec);
	tally_reader_close(r);
	clean();
}

static void build_ids_are_entries_of_whole_words(void)
{
	static const uint8_t id[21] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };
	struct handmade want = { 0 };
	struct tally_writer *w = start();
	struct tally_reader *r = NULL;
	char name[PATH_MAX * 17];
	const void *bytes;
	uint64_t len;

	check_int(tally_writer_begin(w, NULL), 0);
	check_int(tally_writer_build_id(w, TALLY_MISC_KERNEL, -1, "[kernel.kallsyms]", id, 20), 0);
	check_int(tally_writer_build_id(w, TALLY_MISC_USER, 5, "/b", id, 8), 0);
	check_int(tally_writer_build_id(w, TALLY_MISC_USER, 5, "/b", id, 0), -EINVAL);
	check_int(tally_writer_build_id(w, TALLY_MISC_USER, 5, "/b", id, 21), -EINVAL);
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	check_int(tally_writer_build_id(w, TALLY_MISC_USER, 5, name, id, 8), -ENAMETOOLONG);
	check_int(tally_writer_finish(w, NULL), 0);
	tally_writer_close(w);

	hm_record(&want, 0, 0x8001, 56); /* misc bit 15: the size byte counts */
	hm_u32(&want, (uint32_t)-1);
	hm_bytes(&want, id, 20);
	hm_bytes(&want, "\x14\0\0", 4);
	hm_bytes(&want, "[kernel.kallsyms]\0\0", 20);
	hm_record(&want, 0, 0x8002, 40);
	hm_u32(&want, 5);
	hm_bytes(&want, id, 8);
	hm_room(&want, 12);
	hm_bytes(&want, "\x08\0\0", 4);
	hm_bytes(&want, "/b\0", 4);
	require(tally_reader_open(&r, data_path, NULL, NULL) == 0);
	require(tally_reader_feature(r, TALLY_FEATURE_BUILD_ID, &bytes, &len) == 1);
	check_u64(len, want.len);
	check_mem(bytes, want.at, want.len);
	tally_reader_close(r);
	hm_done(&want);
	clean();
}

static struct tally_reader *describe(const char *root)
{
	struct tally_writer *w = start();
	struct tally_reader *r = NULL;

	check_int(tally_writer_begin(w, NULL), 0);
	check_int(tally_writer_describe_machine(w, root), 0);
	check_int(tally_writer_cmdline(w, 3, (const char *const[]){ "tally", "", "true" }), 0);
	check_int(tally_writer_finish(w, NULL), 0);
	tally_writer_close(w);
	check_int(tally_reader_open(&r, data_path, NULL, NULL), 0);
	return r;
}

static void check_u32s(struct tally_reader *r, uint32_t feature, uint32_t first, uint32_t second)
{
	const void *bytes;
	uint64_t len;
	uint32_t words[2];

	require(tally_reader_feature(r, feature, &bytes, &len) == 1);
	require(len == sizeof(words));
	memcpy(words, bytes, sizeof(words));
	check_int(words[0], first);
	check_int(words[1], second);
}

static void the_machine_is_described(void)
{
	struct fakeroot root;

	require(fakeroot_make(&root));
	fakeroot_file(&root, "/proc/sys/kernel/hostname", "box\n");
	fakeroot_file(&root, "/proc/sys/kernel/osrelease", "6.18.44\n");
	fakeroot_file(&root, "/proc/sys/kernel/arch", "x86_64\n");
	fakeroot_file(&root, "/proc/meminfo", "MemTotal:        8137712 kB\nMemFree: 1 kB\n");
	fakeroot_file(&root, "/sys/devices/system/cpu/present", "0-2,8-11\n");
	fakeroot_file(&root, "/sys/devices/system/cpu/online", "0-1,9\n");
	fakeroot_file(&root, "/proc/cpuinfo",
		      "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\n"
		      "model name\t: Intel(R)  Xeon(R)   Gold\nstepping\t: 7\n");
	struct tally_reader *r = describe(root.path);
	if (r) {
		check_str(tally_reader_text(r, TALLY_FEATURE_HOSTNAME), "box");
		check_str(tally_reader_text(r, TALLY_FEATURE_OSRELEASE), "6.18.44");
		check_str(tally_reader_text(r, TALLY_FEATURE_VERSION), tally_version());
		check_str(tally_reader_text(r, TALLY_FEATURE_ARCH), "x86_64");
		check_str(tally_reader_text(r, TALLY_FEATURE_CPUDESC), "Intel(R) Xeon(R) Gold");
		check_str(tally_reader_text(r, TALLY_FEATURE_CPUID), "GenuineIntel,6,85,7");
		/* One more than the last number, for a CPU beyond it is damage to readers. */
		check_u32s(r, TALLY_FEATURE_NRCPUS, 12, 3);
		check_u32s(r, TALLY_FEATURE_TOTAL_MEM, 8137712, 0);
		check_str(tally_reader_cmdline(r, 0), "tally");
		check_str(tally_reader_cmdline(r, 1), "");
		check_str(tally_reader_cmdline(r, 2), "true");
		check_str(tally_reader_cmdline(r, 3), NULL);
	}
	tally_reader_close(r);
	fakeroot_remove(&root);
	clean();
}

static void an_arm64_machine_is_described(void)
{
	struct fakeroot root;

	require(fakeroot_make(&root));
	fakeroot_file(&root, "/proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\n");
	fakeroot_file(&root, "/sys/devices/system/cpu/cpu0/regs/identification/midr_el1",
		      "0x00000000413fd0c1\n");
	struct tally_reader *r = describe(root.path);
	if (r) {
		/* Variant and revision are left out, as perf does. */
		check_str(tally_reader_text(r, TALLY_FEATURE_CPUID), "0x00000000410fd0c0");
		check_str(tally_reader_text(r, TALLY_FEATURE_CPUDESC), NULL);
	}
	tally_reader_close(r);
	fakeroot_remove(&root);
	clean();
}

/* Readers blank all features of files without a host name. */
static void a_machine_without_proc_has_a_name_and_cpus(void)
{
	struct tally_reader *r = describe("/nonexistent");
	const void *bytes;
	uint64_t len;

	require(r);
	const char *host = tally_reader_text(r, TALLY_FEATURE_HOSTNAME);
	check(host && host[0]);
	check_int(tally_reader_feature(r, TALLY_FEATURE_NRCPUS, &bytes, &len), 1);
	check_int(tally_reader_feature(r, TALLY_FEATURE_TOTAL_MEM, &bytes, &len), 0);
	tally_reader_close(r);
	clean();
}

/* ---- the order of calls ---- */

static void calls_out_of_order_are_refused(void)
{
	struct tally_attr attr = clock_attr();
	struct tally_writer *w = NULL;
	struct tally_error err;
	struct iovec none = { 0 };

	check_int(tally_writer_open(&w, data_path, NULL, &err), 0);
	check_int(tally_writer_begin(w, &err), -EINVAL);
	check_has(err.text, "event");
	check_int(tally_writer_append(w, &none, 1), -EINVAL);
	check_int(tally_writer_round(w, &err), -EINVAL);
	check_int(tally_writer_finish(w, &err), -EINVAL);
	check_int(tally_writer_event(w, "e", &attr, NULL, 0, &err), 0);
	check_int(tally_writer_begin(w, &err), 0);
	check_int(tally_writer_begin(w, &err), -EINVAL);
	check_int(tally_writer_event(w, "e", &attr, NULL, 0, &err), -EINVAL);
	check_int(tally_writer_text(w, 256, "x"), -EINVAL);
	check_int(tally_writer_finish(w, &err), 0);
	check_int(tally_writer_finish(w, &err), -EINVAL);
	check_int(tally_writer_append(w, &none, 1), -EINVAL);
	check_int(tally_writer_round(w, &err), -EINVAL);
	check_int(tally_writer_text(w, TALLY_FEATURE_HOSTNAME, "x"), -EINVAL);
	tally_writer_close(w);
	tally_writer_close(NULL);
	tally_writer_discard(NULL);
	check_int(tally_writer_open(&w, data_path, TALLY_OPTS(writer, .flags = 1u << 31), &err),
		  -EINVAL);
	clean();
}

/* A data size of 0 means to readers that the writer was killed. */
static void a_file_without_records_has_a_round(void)
{
	struct tally_writer *w = start();
	const char *health;

	check_int(tally_writer_begin(w, NULL), 0);
	check_int(tally_writer_finish(w, NULL), 0);
	tally_writer_close(w);
	check_int(count_records(data_path, &health), 0);
	check_str(health, "");
	clean();
}

/* ---- there and back ---- */

static void what_is_written_is_read(void)
{
	enum {
		COUNT = 20000
	};
	struct tally_attr attr = clock_attr();
	struct tally_writer *w = start();
	struct tally_reader *r = NULL;
	struct tally_reader_record rec;
	struct tally_record sample = { .type = TALLY_RECORD_SAMPLE }, back;
	struct tally_layout layout;
	uint8_t bytes[256];
	int n = 0;

	tally_layout_init(&layout, &attr, false);
	check_int(tally_writer_begin(w, NULL), 0);
	for (int i = 0; i < COUNT; i++) {
		sample.sample.ip = (uint64_t)i * 4096;
		sample.id.pid = sample.id.tid = i;
		int len = tally_record_encode(&layout, &sample, bytes, sizeof(bytes));
		struct iovec span = { bytes, (size_t)len };
		require(len > 0 && tally_writer_append(w, &span, 1) == 0);
		if (i % 100 == 99)
			check_int(tally_writer_round(w, NULL), 0);
	}
	check_int(tally_writer_finish(w, NULL), 0);
	uint64_t size = tally_writer_size(w);
	tally_writer_close(w);
	require(tally_reader_open(&r, data_path, NULL, NULL) == 0);
	check_u64(tally_reader_file_size(r), size);
	check_int(tally_reader_events(r), 2);
	check_str(tally_reader_event(r, 0)->name, "cpu-clock");
	check_int(tally_reader_event(r, 0)->id_count, 2);
	check_u64(tally_reader_event(r, 1)->ids[0], 13);
	while (tally_reader_next(r, &rec, NULL) > 0) {
		if (rec.type != TALLY_RECORD_SAMPLE)
			continue;
		require(tally_record_decode(rec.layout, rec.bytes, rec.len, &back, sizeof(back)) >
			0);
		if (back.sample.ip != (uint64_t)n * 4096 || back.id.tid != n)
			check(!"the sample");
		n++;
	}
	check_int(n, COUNT);
	check_str(tally_reader_health(r), NULL);
	tally_reader_close(r);
	clean();
}

int main(void)
{
	if (!mkdtemp(dir))
		return 1;
	snprintf(data_path, sizeof(data_path), "%s/perf.data", dir);
	snprintf(old_path, sizeof(old_path), "%s/perf.data.old", dir);
	tap_run(every_byte_is_where_it_belongs);
	tap_run(short_and_interrupted_writes_change_nothing);
	tap_run(many_spans_are_written_in_several_calls);
	tap_run(appending_allocates_nothing);
	tap_run(a_full_disk_leaves_what_is_whole);
	tap_run(no_room_for_features_leaves_the_records);
	tap_run(no_room_for_the_head_is_an_error);
	tap_run(a_header_that_cannot_be_updated_is_an_error);
	tap_run(a_killed_writer_loses_at_most_half_a_record);
	tap_run(an_older_file_is_kept);
	tap_run(an_older_file_is_replaced_on_demand);
	tap_run(what_cannot_be_kept_is_not_overwritten);
	tap_run(a_failed_open_gives_the_name_back);
	tap_run(links_are_not_followed);
	tap_run(names_that_are_no_files);
	tap_run(devices_are_left_alone);
	tap_run(links_of_the_system_are_refused);
	tap_run(the_owner_is_who_asked);
	tap_run(all_attrs_have_the_smallest_common_size);
	tap_run(clocks_of_choice_are_described);
	tap_run(build_ids_are_entries_of_whole_words);
	tap_run(the_machine_is_described);
	tap_run(an_arm64_machine_is_described);
	tap_run(a_machine_without_proc_has_a_name_and_cpus);
	tap_run(calls_out_of_order_are_refused);
	tap_run(a_file_without_records_has_a_round);
	tap_run(what_is_written_is_read);
	rmdir(dir);
	return tap_end();
}
