/* SPDX-License-Identifier: MIT */
/* What describes one recording or several, for the file that is made of them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "perfdata/rewrite.h"

#define BIT(feature) (UINT64_C(1) << (feature))

/* Made anew, or of no meaning for the result. */
#define NEVER_COPIED                                                                              \
	(BIT(TALLY_FEATURE_AUXTRACE) | BIT(TALLY_FEATURE_COMPRESSED) |                            \
	 BIT(TALLY_FEATURE_DIR_FORMAT) | BIT(TALLY_FEATURE_SAMPLE_TIME) |                         \
	 BIT(TALLY_FEATURE_HOSTNAME) | BIT(TALLY_FEATURE_CMDLINE) | BIT(TALLY_FEATURE_BUILD_ID) | \
	 BIT(TALLY_FEATURE_NRCPUS))

/* What holds for several machines, if for all the same. */
#define OF_ALL_MACHINES \
	(BIT(TALLY_FEATURE_VERSION) | BIT(TALLY_FEATURE_ARCH) | BIT(TALLY_FEATURE_BRANCH_STACK))

/* What does not tell of whom the recording is. */
#define NOT_TELLING                                                                             \
	(BIT(TALLY_FEATURE_VERSION) | BIT(TALLY_FEATURE_ARCH) | BIT(TALLY_FEATURE_EVENT_DESC) | \
	 BIT(TALLY_FEATURE_BRANCH_STACK) | BIT(TALLY_FEATURE_PMU_MAPPINGS) |                    \
	 BIT(TALLY_FEATURE_GROUP_DESC) | BIT(TALLY_FEATURE_STAT) | BIT(TALLY_FEATURE_CLOCKID))

static const char *renamed(const struct rewrite *w, uint32_t kind, const char *text)
{
	const char *name = w->opts.rename ? w->opts.rename(kind, text, w->opts.arg) : NULL;

	return name ? name : text;
}

static bool is_copied(const struct rewrite *w, uint32_t feature)
{
	if (feature >= 64)
		return !(w->opts.flags & TALLY_REWRITE_BLANK) && w->count == 1;
	uint64_t bit = BIT(feature);
	if (bit & NEVER_COPIED)
		return false;
	if ((w->opts.flags & TALLY_REWRITE_BLANK) && !(bit & NOT_TELLING))
		return false;
	if (w->count > 1 && bit == BIT(TALLY_FEATURE_EVENT_DESC))
		return false;
	return w->machines < 2 || (bit & OF_ALL_MACHINES);
}

/* Those of the first; a branch stack of any. */
static int copy_features(struct rewrite *w)
{
	const void *bytes;
	uint64_t len;
	int r = 0;

	for (uint32_t f = 1; f < TALLY_FEATURE_MAX && r == 0; f++)
		if (is_copied(w, f) &&
		    tally_reader_feature(w->inputs[0].reader, f, &bytes, &len) == 1)
			r = tally_writer_feature(w->writer, f, bytes, len);
	for (uint32_t i = 1; i < w->count && r == 0; i++)
		if (tally_reader_feature(w->inputs[i].reader, TALLY_FEATURE_BRANCH_STACK, &bytes,
					 &len) == 1)
			r = tally_writer_feature(w->writer, TALLY_FEATURE_BRANCH_STACK, "", 0);
	return r;
}

/* The hosts, each once. */
static int put_hosts(struct rewrite *w)
{
	struct buf hosts = { 0 };
	uint32_t named = 0;
	int r = 0;

	for (uint32_t i = 0; i < w->count; i++) {
		if (w->inputs[i].machine < named || !w->inputs[i].host[0])
			continue;
		named = w->inputs[i].machine + 1;
		buf_str(&hosts, hosts.len ? "," : "");
		buf_str(&hosts, renamed(w, TALLY_REWRITE_HOST, w->inputs[i].host));
	}
	if (hosts.len || hosts.failed) {
		const char *text = buf_text(&hosts);
		r = text ? tally_writer_text(w->writer, TALLY_FEATURE_HOSTNAME, text) : -ENOMEM;
	}
	buf_done(&hosts);
	return r;
}

/* Readers take a CPU beyond it for damage, so the most of all. */
static int put_cpus(struct rewrite *w)
{
	uint32_t most[2] = { 0 };
	bool any = false;

	for (uint32_t i = 0; i < w->count; i++) {
		const void *bytes;
		uint64_t len;
		if (tally_reader_feature(w->inputs[i].reader, TALLY_FEATURE_NRCPUS, &bytes, &len) !=
			    1 ||
		    len < sizeof(most))
			continue;
		for (size_t j = 0; j < ARRAY_SIZE(most); j++) {
			uint32_t n = load_u32((const uint8_t *)bytes + 4 * j, w->writer->swapped);
			most[j] = n > most[j] ? n : most[j];
		}
		any = true;
	}
	for (size_t j = 0; j < ARRAY_SIZE(most); j++)
		store_u32(&most[j], most[j], w->writer->swapped);
	return any ? tally_writer_feature(w->writer, TALLY_FEATURE_NRCPUS, most, sizeof(most)) : 0;
}

static int put_cmdline(struct rewrite *w)
{
	const struct tally_reader *reader = w->inputs[0].reader;
	VEC(const char *) words = { 0 };
	const char *word;
	int r = 0;

	if ((w->opts.flags & TALLY_REWRITE_BLANK) || w->machines > 1)
		return 0;
	for (uint32_t i = 0; r == 0 && (word = tally_reader_cmdline(reader, i)); i++) {
		const char **slot = vec_push(&words);
		if (slot)
			*slot = strdup(renamed(w, TALLY_REWRITE_WORD, word));
		r = slot && *slot ? 0 : -ENOMEM;
	}
	if (r == 0 && words.count)
		r = tally_writer_cmdline(w->writer, (uint32_t)words.count, words.at);
	vec_each (&words, each)
		free((char *)(uintptr_t)*each);
	vec_done(&words);
	return r;
}

int rewrite_build_id(struct rewrite *w, uint32_t cpumode, int32_t pid, const char *name,
		     const uint8_t *id, uint32_t id_len)
{
	struct buf key = { 0 };
	const char *path = name[0] == '/' ? renamed(w, TALLY_REWRITE_PATH, name) : name;
	size_t before = w->build_ids.count;

	buf_printf(&key, "%s:%d:%.*s", path, pid, (int)id_len, (const char *)id);
	uint32_t known = key.failed ? UINT32_MAX : strings_add_n(&w->build_ids, key.at, key.len);
	buf_done(&key);
	if (known == UINT32_MAX)
		return -ENOMEM;
	if (w->build_ids.count == before)
		return 0;
	int r = tally_writer_build_id(w->writer, cpumode, pid, path, id, id_len);
	return r == -ENOMEM ? r : 0;
}

static int add_build_id(uint32_t cpumode, int32_t pid, const char *name, const uint8_t *id,
			uint32_t id_len, void *arg)
{
	return rewrite_build_id(arg, cpumode, pid, name, id, id_len);
}

/* As it is, if nothing in it has to change. */
static int put_build_ids(struct rewrite *w)
{
	const void *bytes;
	uint64_t len;
	int r = 0;

	if (w->count == 1 && !w->opts.rename)
		return tally_reader_feature(w->inputs[0].reader, TALLY_FEATURE_BUILD_ID, &bytes,
					    &len) == 1
			       ? tally_writer_feature(w->writer, TALLY_FEATURE_BUILD_ID, bytes, len)
			       : 0;
	for (uint32_t i = 0; i < w->count && r == 0; i++) {
		r = tally_reader_build_ids(w->inputs[i].reader, add_build_id, w);
		if (r == -EBADMSG) {
			rewrite_complain(w, "%s has a damaged list of build-ids",
					 w->inputs[i].path);
			r = 0;
		}
	}
	return r;
}

int rewrite_features(struct rewrite *w)
{
	int r = copy_features(w);

	if (r == 0)
		r = put_hosts(w);
	if (r == 0)
		r = put_cpus(w);
	if (r == 0)
		r = put_cmdline(w);
	return r < 0 ? r : put_build_ids(w);
}

static int copy_if(struct rewrite *w, uint32_t feature)
{
	const void *bytes;
	uint64_t len;

	if (tally_reader_feature(w->inputs[0].reader, feature, &bytes, &len) != 1)
		return 0;
	return tally_writer_feature(w->writer, feature, bytes, len);
}

/* As the input had it; of the samples that were kept where some were not. */
static int put_span(struct rewrite *w)
{
	uint64_t span[2] = { w->first, w->last };
	const void *bytes;
	uint64_t len;

	if (w->count == 1 && !wanted_filters(&w->opts))
		return copy_if(w, TALLY_FEATURE_SAMPLE_TIME);
	if (!w->last ||
	    tally_reader_feature(w->inputs[0].reader, TALLY_FEATURE_SAMPLE_TIME, &bytes, &len) != 1)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(span); i++)
		store_u64(&span[i], span[i], w->writer->swapped);
	return tally_writer_feature(w->writer, TALLY_FEATURE_SAMPLE_TIME, span, sizeof(span));
}

static int put_aux_index(struct rewrite *w)
{
	struct buf bytes = { 0 };
	uint64_t count = w->aux_index.len / sizeof(struct file_section);

	if (w->aux_index.failed)
		return -ENOMEM;
	if (!count)
		return 0;
	store_u64(&count, count, w->writer->swapped);
	buf_u64(&bytes, count);
	buf_add(&bytes, w->aux_index.at, w->aux_index.len);
	int r = bytes.failed ? -ENOMEM
			     : tally_writer_feature(w->writer, TALLY_FEATURE_AUXTRACE, bytes.at,
						    bytes.len);
	buf_done(&bytes);
	return r;
}

int rewrite_late_features(struct rewrite *w)
{
	int r = put_span(w);

	if (r == 0)
		r = put_aux_index(w);
	if (r == 0 && w->packed)
		r = copy_if(w, TALLY_FEATURE_COMPRESSED);
	return r;
}
