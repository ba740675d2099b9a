/* SPDX-License-Identifier: MIT */
/*
 * The form of a file: header, ids, attrs, records, table of features, features. The header is
 * brought up to date by position, so that a killed writer leaves a file that ends at a round.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/sys.h"
#include "perfdata/writer.h"

/* Where the file's numbers have the other byte order; all of it but the feature bits' order. */
static void swap_words(uint64_t *words, size_t count, bool swapped)
{
	for (size_t i = 0; i < count; i++)
		store_u64(&words[i], words[i], swapped);
}

static void put_words(struct buf *b, const uint64_t *words, size_t count, bool swapped)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t word = words[i];
		swap_words(&word, 1, swapped);
		buf_u64(b, word);
	}
}

static void fill_header(const struct tally_writer *w, uint64_t ids_size, struct file_header *head)
{
	*head = (struct file_header){
		.magic = FILE_MAGIC,
		.size = FILE_HEADER_SIZE,
		.attr_size = w->attr_size + sizeof(struct file_section),
		.attrs.offset = FILE_HEADER_SIZE + ids_size,
		.data.offset = w->data_offset,
		.data.size = w->data_size,
	};
	head->attrs.size = w->events.count * head->attr_size;
}

static void swap_header(struct file_header *head, bool swapped)
{
	uint64_t words[sizeof(*head) / sizeof(uint64_t)];

	memcpy(words, head, sizeof(words));
	swap_words(words, ARRAY_SIZE(words), swapped);
	memcpy(head, words, sizeof(words));
}

static uint64_t ids_size(struct tally_writer *w)
{
	uint64_t size = 0;

	vec_each (&w->events, e)
		size += e->id_count * sizeof(uint64_t);
	return size;
}

static int put_head(struct tally_writer *w, struct buf *b)
{
	struct file_header head;
	uint64_t ids_offset = FILE_HEADER_SIZE;

	w->data_offset = FILE_HEADER_SIZE + ids_size(w) +
			 w->events.count * (w->attr_size + sizeof(struct file_section));
	fill_header(w, ids_size(w), &head);
	swap_header(&head, w->swapped);
	buf_add(b, &head, sizeof(head));
	vec_each (&w->events, e)
		put_words(b, e->ids, e->id_count, w->swapped);
	vec_each (&w->events, e) {
		const uint64_t ids[] = { ids_offset, e->id_count * sizeof(uint64_t) };
		writer_put_attr(w, b, &e->attr);
		put_words(b, ids, ARRAY_SIZE(ids), w->swapped);
		ids_offset += ids[1];
	}
	return 0;
}

/* One number, in one page: a reader sees the old size or the new one. */
static int mark(struct tally_writer *w)
{
	uint64_t size = w->data_size;

	swap_words(&size, 1, w->swapped);
	return sys_pwrite_all(w->file.fd, &size, sizeof(size),
			      offsetof(struct file_header, data.size));
}

static void cut(struct tally_writer *w)
{
	(void)!ftruncate(w->file.fd, (off_t)(w->data_offset + w->data_size));
	(void)mark(w); /* in place: needs no room */
}

/* The table and, behind it, the payloads, both in the order of the bits. */
static void build_features(struct tally_writer *w, struct buf *b, uint64_t *bits)
{
	uint64_t at = w->data_offset + w->data_size +
		      w->features.count * sizeof(struct file_section);

	writer_sort_features(w);
	vec_each (&w->features, f) {
		const uint64_t section[] = { at, f->bytes.len };
		put_words(b, section, ARRAY_SIZE(section), w->swapped);
		bits[f->feature / 64] |= 1ull << f->feature % 64;
		at += f->bytes.len;
		b->failed |= f->bytes.failed;
	}
	vec_each (&w->features, f)
		buf_add(b, f->bytes.at, f->bytes.len);
}

/* The header names the features only once they are written. */
static int put_features(struct tally_writer *w)
{
	struct file_header head;
	struct buf b = { 0 };
	uint64_t at = w->data_offset + w->data_size;
	int r = writer_own_features(w);

	if (r < 0)
		return r;
	fill_header(w, ids_size(w), &head);
	build_features(w, &b, head.features);
	swap_header(&head, w->swapped);
	r = b.failed ? -ENOMEM : sys_pwrite_all(w->file.fd, b.at, b.len, at);
	if (r == 0)
		r = sys_pwrite_all(w->file.fd, &head, sizeof(head), 0);
	if (r < 0)
		cut(w);
	else
		w->size += b.len;
	buf_done(&b);
	return r;
}

const struct writer_form writer_file = { put_head, mark, put_features, cut };
