/* SPDX-License-Identifier: MIT */
/*
 * The reader of perf.data files. Whatever a file holds: records are the file's bytes, in order,
 * within its size; a second pass tells the same; refusals and damage are told in one line.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <tally/reader.h>

#include "fuzz.h"

static void check_error(const struct tally_error *err, int r)
{
	must(r < 0 && err->code == r);
	must(err->cause != TALLY_CAUSE_NONE);
	must(err->text[0] && !strchr(err->text, '\n'));
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
	for (uint32_t i = 0; tally_reader_cmdline(r, i); i++)
		must(i <= size / 4);
	tally_reader_build_ids(r, visit_id, &sum);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tally_reader *r;
	struct tally_error err;
	int first, second, fd = memfd_create("fuzz", MFD_CLOEXEC);

	must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	int ret = tally_reader_open_fd(&r, fd, "fuzz", NULL, &err);
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
	close(fd);
	return 0;
}
