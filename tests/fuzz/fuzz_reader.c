/* SPDX-License-Identifier: MIT */
/*
 * The reader of perf.data files. Whatever a file holds: records are the file's bytes, in order,
 * within its size; a second pass tells the same, and so do order by time, a pipe and a folder;
 * refusals and damage are told in one line.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/mman.h>
#include <unistd.h>

#include <tally/features.h>
#include <tally/file_record.h>
#include <tally/reader.h>

#include "fuzz.h"

#define RECORDS_LIMIT 1000000

static void check_error(const struct tally_error *err, int r)
{
	must(r < 0 && err->code == r);
	must(err->cause != TALLY_CAUSE_NONE);
	must(err->text[0] && !strchr(err->text, '\n'));
}

/* Each entry of each list that a record of perf's own has. */
static void read_own(const struct tally_reader_record *item, bool swapped)
{
	struct tally_file_record rec;
	struct tally_file_id id;
	struct tally_file_thread thread;
	uint64_t word, value, cursor = 0, n = 0;
	const char *key, *note;
	int32_t cpu;

	if (tally_file_record_decode(item->bytes, item->len, swapped, &rec, sizeof(rec)) < 0)
		return;
	while (tally_file_id(&rec, n, &id) || tally_file_thread(&rec, n, &thread) ||
	       tally_file_word(&rec, n, &word) || tally_file_setting(&rec, n, &word, &value) ||
	       tally_file_note(&rec, n, &key, &note))
		must(++n <= item->len);
	for (n = 0; tally_file_cpu(&rec, &cursor, &cpu); n++)
		must(n <= 65536 * 8);
}

static void check_record(const struct tally_reader *r, const struct tally_reader_record *rec,
			 const uint8_t *data, size_t size, uint64_t *end)
{
	struct tally_record decoded;

	must(rec->offset >= *end && rec->len >= 8);
	must(rec->offset <= size && rec->len <= size - rec->offset);
	must(!memcmp(rec->bytes, data + rec->offset, rec->len));
	must(rec->event < tally_reader_events(r));
	*end = rec->offset + rec->len;
	must(tally_reader_position(r) >= *end && tally_reader_position(r) <= size);
	tally_record_decode(rec->layout, rec->bytes, rec->len, &decoded, sizeof(decoded));
	read_own(rec, tally_reader_swapped(r));
}

/* Reads all records and answers how many there are; `*last` is how it ended. */
static uint64_t drain(struct tally_reader *r, const uint8_t *data, size_t size, int *last)
{
	struct tally_reader_record rec;
	struct tally_error err;
	uint64_t count = 0, end = 0;

	while ((*last = tally_reader_next(r, &rec, &err)) > 0) {
		check_record(r, &rec, data, size, &end);
		count++;
	}
	if (*last < 0)
		check_error(&err, *last);
	must(tally_reader_next(r, &rec, &err) == *last);
	return count;
}

static void check_events(const struct tally_reader *r, size_t size)
{
	must(tally_reader_events(r) > 0);
	for (uint32_t i = 0; i < tally_reader_events(r); i++) {
		const struct tally_reader_event *e = tally_reader_event(r, i);
		must(e->name && e->raw_attr_len >= 64 && e->raw_attr_len <= size);
		must(e->id_count <= size / 8 && (!e->id_count || e->ids));
	}
}

static int visit_id(uint32_t cpumode, int32_t pid, const char *name, const uint8_t *id,
		    uint32_t id_len, void *arg)
{
	uint8_t *sum = arg;

	must(id_len > 0 && id_len <= 20);
	for (uint32_t i = 0; i < id_len; i++)
		*sum = (uint8_t)(*sum + id[i]);
	*sum = (uint8_t)(*sum + strlen(name));
	return 0;
}

static void check_features(const struct tally_reader *r, size_t size)
{
	const void *bytes;
	uint64_t len, total = 0;
	uint8_t sum = 0;

	for (uint32_t i = 0; i < TALLY_FEATURE_MAX; i++) {
		if (tally_reader_feature(r, i, &bytes, &len) == 1)
			total += len;
		tally_reader_text(r, i);
	}
	must(total <= size);
	for (uint32_t i = 0; i < TALLY_FEATURE_MAX; i++) {
		struct tally_feature_walk walk = { .feature = i };
		struct tally_feature_item item;
		for (uint64_t n = 0; tally_reader_item(r, &walk, &item) > 0; n++)
			must(n <= size);
	}
	for (uint32_t i = 0; tally_reader_cmdline(r, i); i++)
		must(i <= size / 4);
	tally_reader_build_ids(r, visit_id, &sum);
}

/* Also what is compressed: how many records, and the end. Compressed bytes may become many. */
static uint64_t count_all(struct tally_reader *r, int *last)
{
	struct tally_reader_record rec;
	struct tally_record decoded;
	struct tally_error err;
	uint64_t count = 0;

	while ((*last = tally_reader_next(r, &rec, &err)) > 0 && count < RECORDS_LIMIT) {
		must(rec.len >= 8 && rec.event < tally_reader_events(r));
		tally_record_decode(rec.layout, rec.bytes, rec.len, &decoded, sizeof(decoded));
		count++;
	}
	if (*last < 0)
		check_error(&err, *last);
	return count;
}

struct outcome {
	uint64_t count;
	int opened, last;
};

static struct outcome read_as(int fd, uint32_t flags)
{
	struct tally_reader_opts opts = { .size = sizeof(opts), .flags = flags };
	struct tally_reader *r;
	struct tally_error err;
	struct outcome out = { 0 };

	out.opened = tally_reader_open_fd(&r, fd, "fuzz", &opts, &err);
	if (out.opened < 0) {
		check_error(&err, out.opened);
		return out;
	}
	out.count = count_all(r, &out.last);
	tally_reader_close(r);
	return out;
}

static void same(const struct outcome *a, const struct outcome *b)
{
	must(a->opened == b->opened && a->last == b->last && a->count == b->count);
}

/* As much as a pipe holds without a reader. The forms of a pipe and of a file end differently when
 * they are cut off, but for the records before that. */
static void read_as_pipe(const uint8_t *data, size_t size, const struct outcome *want)
{
	int fds[2];

	if (size > 60000)
		return;
	must(pipe2(fds, O_CLOEXEC) == 0);
	must(write(fds[1], data, size) == (ssize_t)size);
	close(fds[1]);
	struct outcome got = read_as(fds[0], TALLY_READER_TIME_ORDER_PIPE);
	close(fds[0]);
	must((got.opened < 0) == (want->opened < 0) && got.count == want->count);
}

static void put_file(int dir, const char *name, const uint8_t *data, size_t size)
{
	int fd = openat(dir, name, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);

	must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	close(fd);
}

/* The file as a folder's "data", and its second half as "data.0". */
static void read_as_folder(const uint8_t *data, size_t size, const struct outcome *want)
{
	static char path[] = "/tmp/tally-fuzz-XXXXXX";
	static int dir = -1;

	if (dir < 0) {
		must(mkdtemp(path));
		dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	must(dir >= 0);
	put_file(dir, "data", data, size);
	put_file(dir, "data.0", data + size / 2, size - size / 2);
	struct outcome got = read_as(dir, 0);
	must(got.opened == want->opened && got.count >= want->count);
	unlinkat(dir, "data", 0);
	unlinkat(dir, "data.0", 0);
	rmdir(path);
	close(dir);
	dir = -1;
	memcpy(path + sizeof(path) - 7, "XXXXXX", 6);
}

/*
 * The other ways take megabytes of room or many system calls: a search for inputs tries each on one of
 * so many.
 */
static bool tries(const uint8_t *data, size_t size, uint32_t one_of)
{
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
	uint32_t sum = 0;

	for (size_t i = 0; i < size; i++)
		sum = sum * 31 + data[i];
	return (sum >> 8) % one_of == 0;
#else
	(void)data, (void)size, (void)one_of;
	return true;
#endif
}

static void read_in_other_ways(int fd, const uint8_t *data, size_t size)
{
	if (tries(data, size, 4))
		read_as(fd, TALLY_READER_FOLLOW);
	if (!tries(data, size, 16))
		return;
	struct outcome plain = read_as(fd, 0), by_time = read_as(fd, TALLY_READER_TIME_ORDER);
	if (plain.count >= RECORDS_LIMIT)
		return;
	same(&plain, &by_time);
	if (!tries(data, size, 32))
		return;
	read_as_pipe(data, size, &plain);
	read_as_folder(data, size, &plain);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct tally_reader_opts opts = { .size = sizeof(opts),
						.flags = TALLY_READER_PACKED };
	struct tally_reader *r;
	struct tally_error err;
	int first, second, fd = memfd_create("fuzz", MFD_CLOEXEC);

	must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	int ret = tally_reader_open_fd(&r, fd, "fuzz", &opts, &err);
	if (ret < 0) {
		check_error(&err, ret);
	} else {
		check_events(r, size);
		uint64_t count = drain(r, data, size, &first);
		must(tally_reader_rewind(r, NULL) == 0);
		must(drain(r, data, size, &second) == count && first == second);
		check_features(r, size);
		tally_reader_close(r);
	}
	read_in_other_ways(fd, data, size);
	close(fd);
	return 0;
}
