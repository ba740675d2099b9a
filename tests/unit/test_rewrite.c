/* SPDX-License-Identifier: MIT */
/* Recordings written anew: made by hand, in both byte orders, copied, renamed, filtered and merged. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <tally/rewrite.h>
#include <tally/survey.h>

#include "handmade-recording.h"

static char dir[] = "/tmp/tally-rewrite-XXXXXX";
static char out_path[64];

/* A made file under a name; the descriptor stays open as long as the name is used. */
struct named {
	int fd;
	char path[64];
};

static struct named name_it(const struct made *m)
{
	struct named n = { .fd = hm_file(&m->h) };

	snprintf(n.path, sizeof(n.path), "/proc/self/fd/%d", n.fd);
	return n;
}

static struct tally_reader *open_out(void)
{
	struct tally_reader *r = NULL;
	struct tally_error err;

	if (tally_reader_open(&r, out_path, NULL, &err) < 0)
		printf("# %s\n", err.text);
	return r;
}

static struct tally_rewritten rewrite(uint32_t count, const char *const *inputs,
				      const struct tally_rewrite_opts *opts)
{
	struct tally_rewritten result = { 0 };
	struct tally_error err = { 0 };

	if (!check(tally_rewrite(out_path, count, inputs, opts, &result, &err) == 0))
		printf("# %s\n", err.text);
	return result;
}

static void check_feature(const struct tally_reader *a, const struct tally_reader *b, uint32_t f)
{
	const void *one = NULL, *two = NULL;
	uint64_t one_len = 0, two_len = 0;

	check_int(tally_reader_feature(a, f, &one, &one_len),
		  tally_reader_feature(b, f, &two, &two_len));
	check_u64(one_len, two_len);
	if (one && one_len == two_len)
		check_mem(one, two, one_len);
}

static void copy(bool swapped)
{
	struct made m;
	int fd;

	make(&m, &(struct shape){ .swapped = swapped });
	struct named in = name_it(&m);
	struct tally_rewritten result = rewrite(1, (const char *[]){ in.path }, NULL);
	check_u64(result.records, 3);
	check_u64(result.samples, 1);
	check_str(result.trouble, "");
	struct tally_reader *before = must_open(&m, &fd), *after = open_out();
	require(before && after);
	check_int(tally_reader_swapped(after), swapped);
	for (uint32_t f = 0; f < TALLY_FEATURE_MAX; f++)
		check_feature(before, after, f);
	for (uint32_t i = 0; i < 2; i++) {
		const struct tally_reader_event *a = tally_reader_event(before, i);
		const struct tally_reader_event *b = tally_reader_event(after, i);
		check_str(b->name, a->name);
		check_int(b->raw_attr_len, a->raw_attr_len);
		check_mem(b->raw_attr, a->raw_attr, a->raw_attr_len);
		check_int(b->id_count, 2);
		check_mem(b->ids, a->ids, 16);
	}
	struct tally_reader_record one, two;
	while (tally_reader_next(before, &one, NULL) > 0) {
		require(tally_reader_next(after, &two, NULL) == 1);
		check_int(two.len, one.len);
		check_int(two.event, one.event);
		check_mem(two.bytes, one.bytes, one.len);
	}
	check_int(tally_reader_next(after, &two, NULL), 0);
	close_made(before, fd);
	tally_reader_close(after);
	close(in.fd);
	free(m.h.at);
}

static void copies_are_equal_in_both_byte_orders(void)
{
	copy(false);
	copy(true);
}

static const char *other_name(uint32_t kind, const char *text, void *arg)
{
	int *asked = arg;

	++*asked;
	switch (kind) {
	case TALLY_REWRITE_COMM:
		return !strcmp(text, "make") ? "a name that is much longer than it was" : "x";
	case TALLY_REWRITE_HOST:
		return "nowhere";
	case TALLY_REWRITE_PATH:
		return "/z";
	case TALLY_REWRITE_WORD:
		return !strcmp(text, "record") ? "w" : NULL;
	default:
		return NULL;
	}
}

static int see_name(uint32_t cpumode, int32_t pid, const char *name, const uint8_t *id,
		    uint32_t id_len, void *arg)
{
	(void)pid, (void)id;
	check_str(name, cpumode == TALLY_MISC_KERNEL ? "[kernel.kallsyms]" : "/z");
	check_int(id_len, cpumode == TALLY_MISC_KERNEL ? 20 : 8);
	++*(int *)arg;
	return 0;
}

static void rename_all(bool swapped)
{
	struct tally_reader_record item;
	struct tally_record rec;
	struct made m;
	int asked = 0, ids = 0, comms = 0;

	make(&m, &(struct shape){ .swapped = swapped });
	struct named in = name_it(&m);
	rewrite(1, (const char *[]){ in.path },
		TALLY_OPTS(rewrite, .rename = other_name, .arg = &asked));
	struct tally_reader *r = open_out();
	require(r);
	check_str(tally_reader_text(r, TALLY_FEATURE_HOSTNAME), "nowhere");
	check_str(tally_reader_cmdline(r, 0), "perf");
	check_str(tally_reader_cmdline(r, 2), "w");
	check_int(tally_reader_build_ids(r, see_name, &ids), 0);
	check_int(ids, 2);
	while (tally_reader_next(r, &item, NULL) > 0) {
		require(tally_record_decode(item.layout, item.bytes, item.len, &rec, sizeof(rec)) >
			0);
		check_int(item.len % 8, 0);
		if (rec.type != TALLY_RECORD_COMM)
			continue;
		check_str(rec.comm.comm, comms++ ? "x" : "a name that is much longer than it was");
		check_int(rec.comm.tid, comms == 1 ? 7 : 8);
	}
	check_int(comms, 2);
	check(asked >= 4);
	tally_reader_close(r);
	close(in.fd);
	free(m.h.at);
}

static void names_are_exchanged_in_both_byte_orders(void)
{
	rename_all(false);
	rename_all(true);
}

static void filters_keep_what_samples_need(void)
{
	struct made m;
	struct tally_error err;

	make(&m, &(struct shape){ 0 });
	struct named in = name_it(&m);
	const char *const paths[] = { in.path };
	check_u64(rewrite(1, paths, TALLY_OPTS(rewrite, .tid = "8")).samples, 1);
	check_u64(rewrite(1, paths, TALLY_OPTS(rewrite, .pid = "1,7")).samples, 1);
	struct tally_rewritten result = rewrite(1, paths, TALLY_OPTS(rewrite, .pid = "8"));
	check_u64(result.samples, 0);
	check_u64(result.records, 2);
	check_u64(result.dropped, 1);
	check_u64(rewrite(1, paths, TALLY_OPTS(rewrite, .comm = "cc1")).samples, 1);
	check_u64(rewrite(1, paths, TALLY_OPTS(rewrite, .comm = "make")).samples, 0);
	check_u64(rewrite(1, paths, TALLY_OPTS(rewrite, .from = 1234, .to = 1235)).samples, 1);
	check_u64(rewrite(1, paths, TALLY_OPTS(rewrite, .to = 1234)).samples, 0);
	check_u64(rewrite(1, paths, TALLY_OPTS(rewrite, .event = "faults:u")).samples, 1);
	check_u64(rewrite(1, paths, TALLY_OPTS(rewrite, .event = "cycles:pp")).samples, 0);
	check_int(tally_rewrite(out_path, 1, paths, TALLY_OPTS(rewrite, .event = "no"), NULL, &err),
		  -ENOENT);
	check_int(tally_rewrite(out_path, 1, paths, TALLY_OPTS(rewrite, .tid = "8,"), NULL, &err),
		  0);
	check_int(tally_rewrite(out_path, 1, paths, TALLY_OPTS(rewrite, .tid = ""), NULL, &err),
		  -EINVAL);
	check_int(tally_rewrite(out_path, 0, paths, NULL, NULL, &err), -EINVAL);
	check_int(tally_rewrite(out_path, 1, (const char *[]){ "/nonexistent" }, NULL, NULL, &err),
		  -ENOENT);
	close(in.fd);
	free(m.h.at);
}

/* The same file twice: ids collide, and the records have no IDENTIFIER. */
static void merge_with_itself(bool swapped)
{
	struct tally_reader_record item;
	struct tally_record rec;
	struct made m;
	uint32_t events[2] = { 0 };
	int samples = 0;

	make(&m, &(struct shape){ .swapped = swapped });
	struct named in = name_it(&m);
	struct tally_rewritten result = rewrite(2, (const char *[]){ in.path, in.path }, NULL);
	check_u64(result.records, 6);
	check_u64(result.samples, 2);
	struct tally_reader *r = open_out();
	require(r);
	check_int(tally_reader_events(r), 4);
	check_str(tally_reader_event(r, 1)->name, "faults:u");
	check_str(tally_reader_event(r, 3)->name, "faults:u");
	for (uint32_t i = 0; i < 4; i++)
		check(tally_reader_event(r, i)->attr.sample_type & TALLY_SAMPLE_IDENTIFIER);
	while (tally_reader_next(r, &item, NULL) > 0) {
		require(tally_record_decode(item.layout, item.bytes, item.len, &rec, sizeof(rec)) >
			0);
		if (rec.type != TALLY_RECORD_SAMPLE)
			continue;
		check_u64(rec.sample.ip, 0x401000);
		check_u64(rec.sample.period, 1000);
		check_int(rec.id.tid, 8);
		require(samples < 2);
		events[samples++] = item.event;
	}
	check_int(samples, 2);
	check_int(events[0], 1);
	check_int(events[1], 3);
	check_int(tally_reader_build_ids(r, count_id, &(int){ 0 }), 0);
	check_str(tally_reader_text(r, TALLY_FEATURE_HOSTNAME), "box");
	tally_reader_close(r);
	close(in.fd);
	free(m.h.at);
}

static void merged_files_are_told_apart(void)
{
	merge_with_itself(false);
	merge_with_itself(true);
}

static void byte_orders_are_not_mixed(void)
{
	struct made a, b;
	struct tally_error err;

	make(&a, &(struct shape){ 0 });
	make(&b, &(struct shape){ .swapped = true });
	struct named one = name_it(&a), two = name_it(&b);
	check_int(tally_rewrite(out_path, 2, (const char *[]){ one.path, two.path }, NULL, NULL,
				&err),
		  -EOPNOTSUPP);
	check_has(err.text, "byte order");
	close(one.fd);
	close(two.fd);
	free(a.h.at);
	free(b.h.at);
}

static void streams_become_files(void)
{
	for (int swapped = 0; swapped < 2; swapped++) {
		struct made m;
		make_pipe(&m, swapped);
		struct named in = name_it(&m);
		struct tally_rewritten result = rewrite(1, (const char *[]){ in.path }, NULL);
		check_u64(result.samples, 1);
		struct tally_reader *r = open_out();
		require(r);
		check_str(tally_reader_text(r, TALLY_FEATURE_HOSTNAME), "pipe");
		check_int(tally_reader_events(r), 2);
		check_u64(tally_reader_event(r, 1)->ids[1], 202);
		check_int(drain(r, NULL), 3); /* COMM, EVENT_UPDATE, SAMPLE */
		tally_reader_close(r);
		close(in.fd);
		free(m.h.at);
	}
}

/* Every byte of a file changed: an answer, and nothing worse; sanitizers look on. */
static void damaged_inputs_do_no_harm(void)
{
	struct tally_error err;
	struct made m;
	int asked = 0;

	make(&m, &(struct shape){ 0 });
	for (size_t i = 0; i < m.h.len; i++) {
		m.h.at[i] ^= 0xff;
		struct named in = name_it(&m);
		const char *const twice[] = { in.path, in.path };
		(void)tally_rewrite(out_path, 2, twice,
				    TALLY_OPTS(rewrite, .flags = TALLY_REWRITE_BLANK,
					       .rename = other_name, .arg = &asked),
				    NULL, &err);
		struct tally_survey *survey;
		if (tally_survey_new(&survey, in.path, &err) == 0)
			tally_survey_free(survey);
		m.h.at[i] ^= 0xff;
		close(in.fd);
	}
	check(asked > 0);
	free(m.h.at);
}

int main(void)
{
	if (!mkdtemp(dir))
		return 1;
	snprintf(out_path, sizeof(out_path), "%s/out.data", dir);
	tap_run(copies_are_equal_in_both_byte_orders);
	tap_run(names_are_exchanged_in_both_byte_orders);
	tap_run(filters_keep_what_samples_need);
	tap_run(merged_files_are_told_apart);
	tap_run(byte_orders_are_not_mixed);
	tap_run(streams_become_files);
	tap_run(damaged_inputs_do_no_harm);
	unlink(out_path);
	rmdir(dir);
	return tap_end();
}
