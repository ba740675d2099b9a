/* SPDX-License-Identifier: MIT */
/* The reader over what is not one finished file: pipes, folders, files that somebody still writes. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "handmade-recording.h"

/* ---- pipes ---- */

struct feeder {
	pthread_t thread;
	const struct handmade *bytes;
	size_t most; /* bytes a write */
	int fd;
};

static void *feed(void *arg)
{
	struct feeder *f = arg;

	for (size_t done = 0; done < f->bytes->len;) {
		size_t n = f->bytes->len - done < f->most ? f->bytes->len - done : f->most;
		ssize_t written = write(f->fd, f->bytes->at + done, n);
		if (written <= 0)
			break;
		done += (size_t)written;
	}
	close(f->fd);
	return NULL;
}

/* A pipe that gives these bytes, in writes of at most `most`. */
static int pipe_of(struct feeder *f, const struct handmade *bytes, size_t most)
{
	int fds[2] = { -1, -1 };

	check_int(pipe2(fds, O_CLOEXEC), 0);
	*f = (struct feeder){ .bytes = bytes, .most = most, .fd = fds[1] };
	check_int(pthread_create(&f->thread, NULL, feed, f), 0);
	return fds[0];
}

static struct tally_reader *open_stream(int fd, uint32_t flags, struct tally_error *err)
{
	struct tally_reader_opts opts = { .size = sizeof(opts), .flags = flags };
	struct tally_reader *r = NULL;

	if (tally_reader_open_fd(&r, fd, "a pipe", &opts, err) < 0)
		printf("# %s\n", err->text);
	return r;
}

static void end_stream(struct tally_reader *r, struct feeder *f, int fd)
{
	tally_reader_close(r);
	close(fd);
	pthread_join(f->thread, NULL);
}

static void check_pipe(const struct made *m, size_t most, int records)
{
	struct feeder f;
	struct tally_error err = { 0 };
	struct tally_reader_record rec;
	uint64_t offset = 16;
	int fd = pipe_of(&f, &m->h, most), n = 0;
	struct tally_reader *r = open_stream(fd, 0, &err);

	require(r);
	check_int(tally_reader_events(r), 2);
	check_str(tally_reader_event(r, 1)->name, "faults");
	check_str(tally_reader_text(r, TALLY_FEATURE_HOSTNAME), "pipe");
	check_u64(tally_reader_file_size(r), 0);
	for (; tally_reader_next(r, &rec, &err) > 0; n++) {
		check_u64(rec.offset, offset);
		check_mem(rec.bytes, m->h.at + offset, rec.len);
		offset += rec.len + rec.payload;
		check_u64(tally_reader_position(r), offset);
	}
	check_int(n, records);
	check_u64(offset, m->h.len);
	check(!tally_reader_rewindable(r));
	check_int(tally_reader_rewind(r, &err), -ESPIPE);
	check_has(err.text, "cannot be read twice");
	check_str(tally_reader_health(r), NULL);
	end_stream(r, &f, fd);
}

static void a_pipe_is_read_as_its_bytes_come(void)
{
	struct made m;

	for (int swapped = 0; swapped < 2; swapped++) {
		make_pipe(&m, swapped);
		check_pipe(&m, 1, 7);
		check_pipe(&m, 4096, 7);
		for (int i = 0; i < 100000; i++)
			put_sample(&m.h, (uint64_t)i, 201);
		check_pipe(&m, 65536, 100007);
		hm_done(&m.h);
	}
}

/* More than is held of the beginning: what had to be known stands in front. */
static void a_long_beginning_is_not_held(void)
{
	struct made m;
	struct feeder f;
	struct tally_error err = { 0 };

	make_pipe(&m, false);
	m.h.len -= 48; /* without its sample */
	for (int i = 0; i < 300000; i++)
		hm_comm(&m.h, (uint32_t)i, "many");
	put_sample(&m.h, 1, 201);
	int fd = pipe_of(&f, &m.h, 65536);
	struct tally_reader *r = open_stream(fd, 0, &err);
	require(r);
	check_str(tally_reader_event(r, 1)->name, "faults");
	check_int(drain(r, &err), 300007);
	check_str(tally_reader_health(r), NULL);
	end_stream(r, &f, fd);
	hm_done(&m.h);
}

static void what_follows_records_can_be_read_from_a_pipe(void)
{
	struct made m;
	struct feeder f;
	struct tally_error err = { 0 };
	struct tally_reader_record rec;
	uint8_t *bytes = malloc(700000);
	int fd;

	make_pipe(&m, false);
	hm_record(&m.h, TALLY_FILE_AUXTRACE, 0, 48);
	hm_u64(&m.h, 700000);
	hm_room(&m.h, 32);
	for (int i = 0; i < 700000; i++)
		bytes[i] = (uint8_t)(i * 7 / 3);
	hm_bytes(&m.h, bytes, 700000);
	hm_comm(&m.h, 1, "behind");
	check_pipe(&m, 10000, 9);
	for (int by_position = 0; by_position < 2; by_position++) {
		uint8_t part[1000];
		uint64_t at = 1000;
		int64_t n;
		fd = by_position ? hm_file(&m.h) : pipe_of(&f, &m.h, 30000);
		struct tally_reader *r = open_stream(fd, 0, &err);
		require(r);
		check_int(tally_reader_payload(r, 0, part, sizeof(part)), 0);
		while (tally_reader_next(r, &rec, &err) > 0 && rec.type != TALLY_FILE_AUXTRACE)
			check_u64(rec.payload, 0);
		check_u64(rec.payload, 700000);
		while ((n = tally_reader_payload(r, at, part, sizeof(part))) > 0) {
			check_mem(part, bytes + at, (size_t)n);
			at += (uint64_t)n;
		}
		check_int(n, 0);
		check_u64(at, 700000);
		check_int(tally_reader_payload(r, 0, part, 1), by_position ? 1 : -ESPIPE);
		check_int(tally_reader_next(r, &rec, &err), 1);
		check_int(rec.type, TALLY_RECORD_COMM);
		check_int(tally_reader_payload(r, 0, part, 1), 0);
		if (by_position)
			close_made(r, fd);
		else
			end_stream(r, &f, fd);
	}
	free(bytes);
	hm_done(&m.h);
}

/* The bytes that follow TRACING_DATA are what the section of a file holds. */
static void tracing_data_of_a_pipe_is_a_feature(void)
{
	struct made m;
	struct feeder f;
	struct tally_error err = { 0 };
	const void *bytes;
	uint64_t len;

	make_pipe(&m, false);
	m.h.len -= 48;
	hm_record(&m.h, TALLY_FILE_TRACING_DATA, 0, 12);
	hm_u32(&m.h, 11);
	hm_bytes(&m.h, "\x17\x08\x44tracing0\0\0\0\0\0", 16);
	put_sample(&m.h, 1, 201);
	for (int by_position = 0; by_position < 2; by_position++) {
		int fd = by_position ? hm_file(&m.h) : pipe_of(&f, &m.h, 30000);
		struct tally_reader *r = open_stream(fd, 0, &err);
		require(r);
		check_int(tally_reader_feature(r, TALLY_FEATURE_TRACING_DATA, &bytes, &len), 1);
		check_u64(len, 11);
		check_mem(bytes, "\x17\x08\x44tracing0", 11);
		if (by_position)
			close_made(r, fd);
		else
			end_stream(r, &f, fd);
	}
	hm_done(&m.h);
}

static void a_pipe_that_breaks_off_is_read_to_its_last_whole_record(void)
{
	struct made m;
	struct feeder f;
	struct tally_error err = { 0 };

	make_pipe(&m, false);
	hm_record(&m.h, TALLY_FILE_AUXTRACE, 0, 48);
	hm_u64(&m.h, 1000);
	hm_room(&m.h, 32 + 999);
	int fd = pipe_of(&f, &m.h, 65536);
	struct tally_reader *r = open_stream(fd, 0, &err);
	require(r);
	check_int(drain(r, &err), 8);
	check_has(tally_reader_health(r), "1 of 1000 bytes");
	end_stream(r, &f, fd);

	m.h.len -= 1047 + 10; /* within the sample */
	fd = pipe_of(&f, &m.h, 65536);
	require((r = open_stream(fd, 0, &err)) != NULL);
	check_int(drain(r, &err), 6);
	check_has(tally_reader_health(r), "ends with 38 bytes");
	end_stream(r, &f, fd);

	for (m.h.len = 0; m.h.len <= 16; m.h.len += 8) {
		fd = pipe_of(&f, &m.h, 65536);
		check(!open_stream(fd, 0, &err));
		check_int(err.code, -EBADMSG);
		end_stream(NULL, &f, fd);
	}
	hm_done(&m.h);
}

/* `cat perf.data | tally report -i -`: the names of events stand behind the records. */
static void a_file_through_a_pipe_is_read_as_a_file(void)
{
	struct made m;
	struct feeder f;
	struct tally_error err = { 0 };

	make(&m, &(struct shape){ 0 });
	int fd = pipe_of(&f, &m.h, 100);
	struct tally_reader *r = open_stream(fd, 0, &err);
	require(r);
	check_u64(tally_reader_file_size(r), m.h.len);
	check_str(tally_reader_event(r, 1)->name, "faults:u");
	check_records(r, &m);
	check(tally_reader_rewindable(r));
	check_int(tally_reader_rewind(r, &err), 0);
	check_records(r, &m);
	end_stream(r, &f, fd);

	m.h.len = 50; /* within the header */
	fd = pipe_of(&f, &m.h, 100);
	check(!open_stream(fd, 0, &err));
	check_has(err.text, "inside its header");
	end_stream(NULL, &f, fd);
	hm_done(&m.h);
}

static void a_pipe_that_does_not_wait_can_be_asked_again(void)
{
	struct made m;
	struct tally_error err = { 0 };
	struct tally_reader_record rec;
	int fds[2];

	make_pipe(&m, false);
	require(pipe2(fds, O_CLOEXEC) == 0);
	require(write(fds[1], m.h.at, m.h.len) == (ssize_t)m.h.len);
	struct tally_reader *r = open_stream(fds[0], 0, &err);
	require(r);
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	for (int i = 0; i < 7; i++)
		check_int(tally_reader_next(r, &rec, &err), 1);
	check_int(tally_reader_next(r, &rec, &err), -EAGAIN);
	require(write(fds[1], m.h.at + m.h.len - 48, 20) == 20);
	check_int(tally_reader_next(r, &rec, &err), -EAGAIN);
	require(write(fds[1], m.h.at + m.h.len - 28, 28) == 28);
	check_int(tally_reader_next(r, &rec, &err), 1);
	check_int(rec.type, TALLY_RECORD_SAMPLE);
	close(fds[1]);
	check_int(tally_reader_next(r, &rec, &err), 0);
	tally_reader_close(r);
	close(fds[0]);
	hm_done(&m.h);
}

/* ---- files that grow ---- */

static void append(int fd, const struct made *m, size_t from, size_t to)
{
	check_int(pwrite(fd, m->h.at + from, to - from, (off_t)from), (int64_t)(to - from));
}

static void set_data_size(int fd, struct made *m, uint64_t size)
{
	hm_set(&m->h, HM_DATA_AT + 8, size, 8);
	append(fd, m, 0, HM_HEADER);
}

/* tally tells the size at each round, perf at the end; both write the features last. */
static void check_growing(bool told)
{
	struct made m;
	struct tally_error err = { 0 };
	struct tally_reader_record rec;
	uint64_t features;

	make(&m, &(struct shape){ 0 });
	size_t len = m.h.len, size = m.data_end - m.data;
	memcpy(&features, m.h.at + HM_FEATURES_AT, sizeof(features));
	hm_set(&m.h, HM_FEATURES_AT, 0, 8);
	hm_set(&m.h, HM_DATA_AT + 8, 0, 8);
	m.h.len = m.data + 32 + 20; /* a record and a part */
	int fd = hm_file(&m.h);
	m.h.len = len;
	if (told)
		set_data_size(fd, &m, 32);
	struct tally_reader *r = open_stream(fd, TALLY_READER_FOLLOW, &err);
	require(r);
	check_int(tally_reader_next(r, &rec, &err), 1);
	check_int(tally_reader_next(r, &rec, &err), 0);
	check_int(tally_reader_next(r, &rec, &err), 0);
	append(fd, &m, m.data + 52, m.data + 80);
	if (told) {
		check_int(tally_reader_next(r, &rec, &err), 0);
		set_data_size(fd, &m, 80);
	}
	check_int(tally_reader_next(r, &rec, &err), 1);
	check_int(rec.type, TALLY_RECORD_SAMPLE);
	check_int(tally_reader_next(r, &rec, &err), 0);
	append(fd, &m, m.data + 80, len);
	memcpy(m.h.at + HM_FEATURES_AT, &features, sizeof(features));
	set_data_size(fd, &m, size);
	check_int(tally_reader_next(r, &rec, &err), 1);
	check_int(rec.type, TALLY_RECORD_COMM);
	check_int(tally_reader_next(r, &rec, &err), 0);
	check_str(tally_reader_text(r, TALLY_FEATURE_HOSTNAME), "box");
	check_str(tally_reader_health(r), NULL);
	tally_reader_rewind(r, NULL);
	check_records(r, &m);
	close_made(r, fd);
	hm_done(&m.h);
}

static void a_growing_file_can_be_followed(void)
{
	check_growing(true);
	check_growing(false);
}

/* ---- folders ---- */

static void put_file(const char *dir, const char *name, const void *bytes, size_t len)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
	check(fd >= 0 && write(fd, bytes, len) == (ssize_t)len);
	close(fd);
}

static void remove_folder(const char *dir)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/data", dir);
	unlink(path);
	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/data.%d", dir, i);
		unlink(path);
	}
	rmdir(dir);
}

static void sample_at(struct handmade *h, uint64_t ip, uint64_t time)
{
	put_sample(h, ip, 201);
	hm_set(h, h->len - 24, time, 8);
}

/* perf record --threads: DIR/data is a file as any, DIR/data.N have records alone. */
static void make_folder(const char *dir, struct made *m, struct handmade *parts)
{
	char name[16];

	make(m, &(struct shape){ 0 });
	put_file(dir, "data", m->h.at, m->h.len);
	for (int i = 0; i < 3; i++) {
		parts[i] = (struct handmade){ 0 };
		for (int k = 0; k < 10; k++)
			sample_at(&parts[i], (uint64_t)(100 * i + k),
				  (uint64_t)(2000 + 10 * k + i));
		snprintf(name, sizeof(name), "data.%d", i);
		put_file(dir, name, parts[i].at, parts[i].len);
	}
}

static void check_folder_order(struct tally_reader *r, struct handmade *parts)
{
	struct tally_reader_record rec;

	for (int i = 0; i < 3; i++)
		check_int(tally_reader_next(r, &rec, NULL), 1);
	check_int(rec.part, 0);
	for (int i = 0; i < 30; i++) {
		require(tally_reader_next(r, &rec, NULL) == 1);
		check_int(rec.part, 1 + i / 10);
		check_u64(rec.offset, 48 * (i % 10));
		check_mem(rec.bytes, parts[i / 10].at + rec.offset, 48);
		check_int(rec.event, 1);
	}
	check_u64(tally_reader_position(r), tally_reader_file_size(r));
	check_int(tally_reader_next(r, &rec, NULL), 0);
	check_int(tally_reader_next(r, &rec, NULL), 0);
}

static void check_folder_by_time(const char *dir)
{
	struct tally_reader_opts opts = { .size = sizeof(opts), .flags = TALLY_READER_TIME_ORDER };
	struct tally_reader *r = NULL;
	struct tally_reader_record rec;
	struct tally_record decoded;
	uint64_t last = 0;
	int n = 0;

	require(tally_reader_open(&r, dir, &opts, NULL) == 0);
	while (tally_reader_next(r, &rec, NULL) > 0) {
		tally_record_decode(rec.layout, rec.bytes, rec.len, &decoded, sizeof(decoded));
		if (rec.type != TALLY_RECORD_SAMPLE)
			continue;
		check(decoded.id.time > last);
		last = decoded.id.time;
		check_int(rec.part, n ? 1 + (n - 1) % 3 : 0);
		n++;
	}
	check_int(n, 31);
	tally_reader_close(r);
}

static void a_folder_of_threads_is_one_recording(void)
{
	char dir[] = "/tmp/tally-folder-XXXXXX";
	struct made m;
	struct handmade parts[3];
	struct tally_reader *r = NULL;
	struct tally_error err = { 0 };

	require(mkdtemp(dir));
	make_folder(dir, &m, parts);
	if (check_int(tally_reader_open(&r, dir, NULL, &err), 0)) {
		check_u64(tally_reader_file_size(r), m.h.len + 3 * 480);
		check_str(tally_reader_text(r, TALLY_FEATURE_HOSTNAME), "box");
		check_folder_order(r, parts);
		check_int(tally_reader_rewind(r, NULL), 0);
		check_folder_order(r, parts);
		check_str(tally_reader_health(r), NULL);
		tally_reader_close(r);
	}
	int fd = open(dir, O_RDONLY | O_DIRECTORY);
	if (check_int(tally_reader_open_fd(&r, fd, "a folder", NULL, &err), 0)) {
		check_folder_order(r, parts);
		tally_reader_close(r);
	}
	check_int(close(fd), 0);
	check_folder_by_time(dir);

	put_file(dir, "data.1", parts[1].at, 100);
	require(tally_reader_open(&r, dir, NULL, &err) == 0);
	check_int(drain(r, &err), 3 + 10 + 2 + 10);
	check_has(tally_reader_health(r), "data.1: ends with 4 bytes");
	tally_reader_close(r);
	hm_set(&parts[1], 48 + 6, 3, 2);
	put_file(dir, "data.1", parts[1].at, parts[1].len);
	require(tally_reader_open(&r, dir, NULL, &err) == 0);
	check_int(drain(r, &err), -EBADMSG);
	check_has(err.text, "/data.1: record");
	tally_reader_close(r);
	remove_folder(dir);
	for (int i = 0; i < 3; i++)
		hm_done(&parts[i]);
	hm_done(&m.h);
}

int main(void)
{
	tap_run(a_pipe_is_read_as_its_bytes_come);
	tap_run(a_long_beginning_is_not_held);
	tap_run(what_follows_records_can_be_read_from_a_pipe);
	tap_run(tracing_data_of_a_pipe_is_a_feature);
	tap_run(a_pipe_that_breaks_off_is_read_to_its_last_whole_record);
	tap_run(a_file_through_a_pipe_is_read_as_a_file);
	tap_run(a_pipe_that_does_not_wait_can_be_asked_again);
	tap_run(a_growing_file_can_be_followed);
	tap_run(a_folder_of_threads_is_one_recording);
	return tap_end();
}
