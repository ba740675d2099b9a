/* SPDX-License-Identifier: MIT */
/*
 * For bench-pack.py: compresses the records of a recording, as a recorder's rounds give them.
 *
 *	bench-pack tally FILE OUT    through the writer
 *	bench-pack zstd FILE OUT     by libzstd alone, one stream, flushed after each round
 *
 * One line: CPU nanoseconds, without reading FILE.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>

#include <tally/profiling.h>

enum {
	LEVEL = 1,      /* of `tally record -z` */
	ROUND = 1 << 20 /* bytes, a few rings together */
};

struct input {
	uint8_t *bytes;
	size_t len;
	struct tally_attr attr;
};

static int fail(const char *what)
{
	fprintf(stderr, "bench-pack: %s\n", what);
	return 1;
}

static double cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* The records one after the other, without what a writer adds. */
static int load(struct input *in, const char *path)
{
	struct tally_reader *r;
	struct tally_reader_record item;
	struct tally_error err;
	size_t room = 0;
	int ret = tally_reader_open(&r, path, NULL, &err);

	if (ret < 0)
		return fail(err.text);
	in->attr = tally_reader_event(r, 0)->attr;
	while ((ret = tally_reader_next(r, &item, &err)) > 0) {
		if (item.type >= TALLY_FILE_HEADER_ATTR)
			continue;
		if (in->len + item.len > room) {
			room = 2 * room + ROUND;
			in->bytes = realloc(in->bytes, room);
			if (!in->bytes)
				return fail("no memory");
		}
		memcpy(in->bytes + in->len, item.bytes, item.len);
		in->len += item.len;
	}
	tally_reader_close(r);
	return ret < 0 ? fail(err.text) : 0;
}

/* Whole records of about a round from `at` on. */
static size_t round_from(const struct input *in, size_t at)
{
	size_t len = 0;

	while (len < ROUND && at + len < in->len) {
		struct tally_record_header header;
		memcpy(&header, in->bytes + at + len, sizeof(header));
		len += header.size;
	}
	return len;
}

static int by_writer(const struct input *in, const char *path)
{
	const uint64_t id = 1;
	struct tally_writer *w;
	struct tally_error err;
	int r = tally_writer_open(
		&w, path, TALLY_OPTS(writer, .flags = TALLY_WRITER_NO_OLD, .compress = LEVEL),
		&err);

	if (r == 0)
		r = tally_writer_event(w, "cpu-clock", &in->attr, &id, 1, &err);
	if (r == 0)
		r = tally_writer_begin(w, &err);
	for (size_t at = 0, len; r == 0 && at < in->len; at += len) {
		len = round_from(in, at);
		struct iovec span = { in->bytes + at, len };
		tally_writer_append(w, &span, 1);
		r = tally_writer_round(w, &err);
	}
	if (r == 0)
		r = tally_writer_finish(w, &err);
	tally_writer_close(w);
	return r < 0 ? fail(err.text) : 0;
}

static int by_zstd(const struct input *in, const char *path)
{
	static uint8_t out[1 << 16];
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ZSTD_CCtx *ctx = ZSTD_createCCtx();

	if (fd < 0 || !ctx)
		return fail(path);
	ZSTD_CCtx_setParameter(ctx, ZSTD_c_compressionLevel, LEVEL);
	for (size_t at = 0, len; at < in->len; at += len) {
		len = round_from(in, at);
		ZSTD_inBuffer span = { in->bytes + at, len, 0 };
		size_t left = 1;
		while (left) {
			ZSTD_outBuffer to = { out, sizeof(out), 0 };
			left = ZSTD_compressStream2(ctx, &to, &span, ZSTD_e_flush);
			if (ZSTD_isError(left) || write(fd, out, to.pos) < 0)
				return fail(path);
		}
	}
	ZSTD_freeCCtx(ctx);
	close(fd);
	return 0;
}

int main(int argc, char **argv)
{
	struct input in = { 0 };

	if (argc != 4 || (strcmp(argv[1], "tally") && strcmp(argv[1], "zstd")) ||
	    load(&in, argv[2]))
		return 2;
	double before = cpu_ns();
	int r = strcmp(argv[1], "zstd") ? by_writer(&in, argv[3]) : by_zstd(&in, argv[3]);
	printf("%.0f\n", cpu_ns() - before);
	free(in.bytes);
	return r;
}
