/* SPDX-License-Identifier: MIT */
/* Ring bytes into the file. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "recorder/drain.h"

static int add_to(struct tally_ring ***list, uint32_t *count, const struct tally_sampler *sampler)
{
	uint32_t more = tally_sampler_rings(sampler);
	struct tally_ring **grown = realloc(*list, (*count + (size_t)more) * sizeof(**list));

	if (!grown)
		return -ENOMEM;
	for (uint32_t i = 0; i < more; i++)
		grown[*count + i] = tally_sampler_ring(sampler, i);
	*list = grown;
	*count += more;
	return 0;
}

/* Room for the largest overwrite ring, so that a snapshot allocates nothing. */
static int make_buffer(struct drain *d)
{
	for (uint32_t i = 0; i < d->overwrite_count; i++)
		if (tally_ring_size(d->overwrite[i]) > d->buffer_size)
			d->buffer_size = tally_ring_size(d->overwrite[i]);
	free(d->buffer);
	d->buffer = malloc(d->buffer_size);
	return d->buffer ? 0 : -ENOMEM;
}

int drain_add(struct drain *d, const struct tally_sampler *sampler, bool overwrite,
	      struct tally_error *err)
{
	int r;

	if (overwrite) {
		r = add_to(&d->overwrite, &d->overwrite_count, sampler);
		if (r == 0)
			r = make_buffer(d);
	} else {
		r = add_to(&d->forward, &d->forward_count, sampler);
		free(d->heads);
		d->heads = calloc(d->forward_count + 1, sizeof(*d->heads));
		if (!d->heads)
			r = -ENOMEM;
	}
	return r < 0 ? error_nomem(err, "the recorder's rings") : 0;
}

static int append(void *arg, const struct iovec *spans, int count, struct tally_error *err)
{
	struct drain *d = arg;
	uint64_t bytes = 0;

	for (int i = 0; i < count; i++)
		bytes += spans[i].iov_len;
	uint64_t whole = tallier_add(d->seen, spans, count);
	if (whole != bytes)
		return error_set(err, -EBADMSG, TALLY_CAUSE_CORRUPT,
				 "a ring holds bytes that are no record, %" PRIu64 " bytes in",
				 whole);
	int r = tally_writer_append(d->writer, spans, count);
	if (r == 0)
		return 0;
	return error_set(err, r, TALLY_CAUSE_IO,
			 "writing %s: %s; it can be read up to there, %" PRIu64 " bytes%s", d->path,
			 strerror(-r), tally_writer_size(d->writer),
			 r == -ENOSPC || r == -EDQUOT ? "; make room, or bound it by --max-size"
						      : "");
}

/* What is in a ring up to its head: 0, 1 or 2 spans. */
static int peek(struct tally_ring *ring, uint64_t head, struct iovec spans[2],
		struct tally_error *err)
{
	int count = tally_ring_peek_to(ring, head, spans);

	if (count < 0)
		return error_set(err, count, TALLY_CAUSE_CORRUPT,
				 "the head of a ring is where no data can end");
	return count;
}

/* What the samples of all rings are unwound by. */
static int see_ring(struct drain *d, struct tally_ring *ring, uint64_t head,
		    struct tally_error *err)
{
	struct iovec spans[2];
	int count = peek(ring, head, spans, err);

	return count <= 0 ? count : unwinding_see(d->unwinding, spans, count, err);
}

static int drain_ring(struct drain *d, struct tally_ring *ring, uint64_t head,
		      struct tally_error *err)
{
	struct iovec spans[2];
	uint64_t bytes = 0;
	int count = peek(ring, head, spans, err);

	if (count <= 0)
		return count;
	for (int i = 0; i < count; i++)
		bytes += spans[i].iov_len;
	int r = d->unwinding ? unwinding_pass(d->unwinding, spans, count, append, d, err)
			     : append(d, spans, count, err);
	if (r == 0)
		tally_ring_advance(ring, bytes);
	return r;
}

int drain_round(struct drain *d, struct tally_error *err)
{
	int r = 0;

	for (uint32_t i = 0; i < d->forward_count; i++)
		d->heads[i] = tally_ring_head(d->forward[i]);
	for (uint32_t i = 0; i < d->forward_count && r == 0 && d->unwinding; i++)
		r = see_ring(d, d->forward[i], d->heads[i], err);
	for (uint32_t i = 0; i < d->forward_count && r == 0; i++)
		r = drain_ring(d, d->forward[i], d->heads[i], err);
	return r;
}

/* The ring's records, which come newest first, in the buffer's end in the order of their time. */
static int turn_round(struct drain *d, struct tally_ring *ring, struct iovec *span)
{
	const struct tally_record_header *header;
	size_t at = d->buffer_size;
	int r;

	while ((r = tally_ring_next(ring, &header)) > 0 && header->size <= at) {
		at -= header->size;
		memcpy(d->buffer + at, header, header->size);
	}
	*span = (struct iovec){ d->buffer + at, d->buffer_size - at };
	return r > 0 ? -EBADMSG : r;
}

static int copy_snapshot(struct drain *d, struct tally_ring *ring, struct tally_error *err)
{
	struct iovec span;
	int r = turn_round(d, ring, &span);

	/* What happens while it is paused is lost, so that writing has to wait. */
	tally_ring_resume(ring);
	if (r < 0)
		return error_set(err, r, TALLY_CAUSE_CORRUPT,
				 "an overwrite ring holds bytes that are no record");
	return span.iov_len ? append(d, &span, 1, err) : 0;
}

int drain_snapshot(struct drain *d, struct tally_error *err)
{
	uint32_t paused = 0;
	int r = 0;

	/* All are paused before the first is copied, so that they end at one time. */
	while (r == 0 && paused < d->overwrite_count) {
		r = tally_ring_snapshot(d->overwrite[paused]);
		paused += r == 0;
	}
	if (r < 0)
		error_set(err, r, TALLY_CAUSE_IO, "an overwrite ring cannot be paused: %s",
			  strerror(-r));
	for (uint32_t i = 0; i < paused; i++) {
		if (r == 0)
			r = copy_snapshot(d, d->overwrite[i], err);
		else
			tally_ring_resume(d->overwrite[i]);
	}
	return r;
}

void drain_done(struct drain *d)
{
	free(d->forward);
	free(d->overwrite);
	free(d->heads);
	free(d->buffer);
	*d = (struct drain){ 0 };
}
