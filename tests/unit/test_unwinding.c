/* SPDX-License-Identifier: MIT */
/*
 * recorder/unwinding: what becomes of a ring's records on their way to the file, whole or in two
 * stretches. What a stack holds, the test says.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/buf.h"
#include "recorder/unwinding.h"
#include "tap.h"

#define COPIED (TALLY_SAMPLE_CALLCHAIN | TALLY_SAMPLE_REGS_USER | TALLY_SAMPLE_STACK_USER)

static const struct tally_layout layouts[2] = {
	{
		.sample_type = TALLY_SAMPLE_IDENTIFIER | TALLY_SAMPLE_IP | TALLY_SAMPLE_TID |
			       TALLY_SAMPLE_TIME | TALLY_SAMPLE_PERIOD | COPIED,
		.sample_id_all = true,
		.regs_user = 0x1ff,
	},
	{
		.sample_type = TALLY_SAMPLE_IDENTIFIER | TALLY_SAMPLE_IP | TALLY_SAMPLE_TID |
			       TALLY_SAMPLE_TIME | COPIED | TALLY_SAMPLE_DATA_SRC,
		.sample_id_all = true,
		.regs_user = 0x1ff,
	},
};

static const uint64_t ids[2] = { 101, 102 };

/* What the unwinder finds, by the first register. */
static const struct {
	uint32_t end, frames, untold;
} answers[] = {
	{ TALLY_UNWIND_WHOLE, 3, 0 },
	{ TALLY_UNWIND_CUT, 2, 0 },
	{ TALLY_UNWIND_BROKEN, 1, 0 },
	{ TALLY_UNWIND_WHOLE, 2, 1 },
};

static struct {
	struct buf out;
	int mapped, made, asked; /* mappings, maps, and processes that /proc was asked about */
	int clocks;              /* unwinders that know the clock of the records */
	int fail;                /* what the sink answers */
} world;

/* ---- stand-ins for the sampler and the unwinder ---- */

uint32_t tally_events_count(const struct tally_events *events)
{
	return 2;
}

uint32_t tally_sampler_ids(const struct tally_sampler *sampler, uint32_t event,
			   const uint64_t **out)
{
	*out = &ids[event];
	return 1;
}

const struct tally_layout *tally_sampler_layout(const struct tally_sampler *sampler, uint32_t event)
{
	return &layouts[event];
}

int tally_unwinder_new(struct tally_unwinder **out, struct tally_maps *maps,
		       const struct tally_unwinder_opts *opts, struct tally_error *err)
{
	return 0;
}

const struct tally_attr *tally_sampler_attr(const struct tally_sampler *sampler, uint32_t event)
{
	static const struct tally_attr attr = { .flags = TALLY_ATTR_USE_CLOCKID,
						.clockid = CLOCK_MONOTONIC_RAW };

	return &attr;
}

void tally_unwinder_clock(struct tally_unwinder *unwinder, uint32_t clockid)
{
	check_int(clockid, CLOCK_MONOTONIC_RAW);
	world.clocks++;
}

void tally_unwinder_free(struct tally_unwinder *unwinder)
{
}

int tally_maps_new(struct tally_maps **out)
{
	world.made++;
	return 0;
}

void tally_maps_free(struct tally_maps *maps)
{
}

int tally_maps_push(struct tally_maps *maps, const struct tally_record *rec)
{
	world.mapped += rec->type == TALLY_RECORD_MMAP2;
	return 1;
}

int tally_maps_add_process(struct tally_maps *maps, int32_t pid, uint64_t time, const char *root,
			   struct tally_error *err)
{
	check_int(pid, 7);
	world.asked++;
	return -ESRCH;
}

int tally_unwinder_sample(struct tally_unwinder *unwinder, const struct tally_record *rec,
			  uint64_t *addresses, uint32_t room, struct tally_unwound *out)
{
	uint64_t which;

	tally_regs_value(rec, &rec->sample.regs_user, 0, &which);
	*out = (struct tally_unwound){ .frames = answers[which].frames,
				       .end = answers[which].end,
				       .untold = answers[which].untold,
				       .stack_bytes = 9000 };
	for (uint32_t i = 0; i < out->frames; i++)
		addresses[i] = 0x1000 * (i + 1);
	return 1;
}

/* ---- records ---- */

static void add(struct buf *b, const struct tally_layout *layout, const struct tally_record *rec)
{
	static char bytes[65536];
	int n = tally_record_encode(layout, rec, bytes, sizeof(bytes));

	check(n > 0);
	buf_add(b, bytes, n > 0 ? (size_t)n : 0);
}

/*
 * A sample of event `event` whose stack the unwinder answers as `which`; abi 0: a kernel thread's.
 */
static void add_sample(struct buf *b, unsigned event, uint64_t which, uint64_t abi)
{
	static const uint64_t kernel[] = { TALLY_CONTEXT_KERNEL, 0xffffffff81000000 };
	static const uint64_t stack[512];
	uint64_t regs[9] = { which };
	struct tally_record rec = {
		.type = TALLY_RECORD_SAMPLE,
		.misc = TALLY_MISC_KERNEL,
		.id = { .pid = 7, .tid = 8, .time = 1000 + which, .id = ids[event] },
		.sample = {
			.ip = 0xffffffff81000000,
			.period = 5,
			.chain = kernel,
			.chain_len = 2,
			.regs_user = { .abi = abi, .mask = abi ? 0x1ff : 0, .values = regs },
			.stack = abi ? stack : NULL,
			.stack_len = abi ? sizeof(stack) : 0,
			.stack_dyn_size = abi ? 4000 : 0,
			.data_src = 77,
		},
	};

	add(b, &layouts[event], &rec);
}

static void add_map(struct buf *b)
{
	struct tally_record rec = {
		.type = TALLY_RECORD_MMAP2,
		.misc = TALLY_MISC_USER,
		.id = { .pid = 7, .tid = 7, .time = 1, .id = ids[0] },
		.mmap = { .pid = 7,
			  .tid = 7,
			  .addr = 0x1000,
			  .len = 0x1000,
			  .filename = "/bin/x",
			  .filename_len = 6 },
	};

	add(b, &layouts[0], &rec);
}

static int sink(void *arg, const struct iovec *spans, int count, struct tally_error *err)
{
	for (int i = 0; i < count; i++)
		buf_add(&world.out, spans[i].iov_base, spans[i].iov_len);
	return world.fail;
}

static struct unwinding begin(void)
{
	struct unwinding u;

	memset(&world, 0, sizeof(world));
	check_int(unwinding_open(&u, NULL, NULL, NULL, NULL), 0);
	return u;
}

/* The next record of what came out. */
static struct tally_record next(size_t *at, const struct tally_layout *layout)
{
	struct tally_record rec = { 0 };
	int n = tally_record_decode(layout, world.out.at + *at, world.out.len - *at, &rec,
				    sizeof(rec));

	check(n > 0);
	*at += n > 0 ? (size_t)n : 0;
	return rec;
}

static void check_whole(size_t *at, unsigned event)
{
	struct tally_record rec = next(at, &layouts[event]);

	check_u64(rec.sample.chain_len, 6);
	check_u64(tally_sample_ip(&rec, 0), TALLY_CONTEXT_KERNEL);
	check_u64(tally_sample_ip(&rec, 1), 0xffffffff81000000);
	check_u64(tally_sample_ip(&rec, 2), TALLY_CONTEXT_USER);
	check_u64(tally_sample_ip(&rec, 3), 0x1000);
	check_u64(tally_sample_ip(&rec, 5), 0x3000);
	check_u64(rec.sample.regs_user.abi, 0);
	check_u64(rec.sample.stack_len, 0);
	/* All else is what it was. */
	check_u64(rec.id.id, ids[event]);
	check_u64(rec.id.time, 1000);
	check_int(rec.id.tid, 8);
	check_u64(rec.sample.ip, 0xffffffff81000000);
	check_u64(event ? rec.sample.data_src : rec.sample.period, event ? 77 : 5);
	check_int(rec.misc, TALLY_MISC_KERNEL);
	check_u64(rec.leftover, 0);
}

static void check_cut(size_t *at)
{
	struct tally_record rec = next(at, &layouts[0]);
	uint64_t which = 0;

	check_u64(rec.sample.chain_len, 6);
	check_u64(tally_sample_ip(&rec, 4), 0x2000);
	check_u64(tally_sample_ip(&rec, 5), TALLY_CONTEXT_USER);
	check_u64(rec.sample.regs_user.abi, 2);
	check(tally_regs_value(&rec, &rec.sample.regs_user, 0, &which));
	check_u64(which, 1);
	check_u64(rec.sample.stack_len, 0);
}

/* Where the ring wraps does not matter. */
static void samples_become_chains_at_every_cut(void)
{
	struct buf in = { 0 };

	add_sample(&in, 0, 0, 2);
	add_sample(&in, 1, 0, 2);
	add_sample(&in, 0, 1, 2);
	for (size_t cut = 0; cut <= in.len; cut += 8) {
		struct iovec spans[2] = { { in.at, cut }, { in.at + cut, in.len - cut } };
		struct unwinding u = begin();
		check_int(unwinding_pass(&u, spans, 2, sink, NULL, NULL), 0);
		size_t at = 0;
		check_whole(&at, 0);
		check_whole(&at, 1);
		check_cut(&at);
		check_u64(at, world.out.len);
		check_u64(u.stacks.whole, 2);
		check_u64(u.stacks.cut, 1);
		check_u64(u.stacks.wanted_bytes, 9000);
		buf_done(&world.out);
		unwinding_done(&u);
	}
	buf_done(&in);
}

static void all_else_stays_byte_for_byte(void)
{
	struct buf in = { 0 };
	struct unwinding u = begin();

	add_map(&in);
	add_sample(&in, 0, 2, 2); /* could not be unwound */
	add_sample(&in, 0, 0, 0); /* has neither registers nor a stack */
	add_sample(&in, 1, 2, 2);
	add_sample(&in, 1, 3, 2); /* its code is told of later */
	add_map(&in);
	/* A type that nobody knows, and a sample that is too short for what its layout has. */
	buf_u32(&in, 4711);
	buf_u16(&in, 3);
	buf_u16(&in, 16);
	buf_u64(&in, 0x1122334455667788);
	buf_u32(&in, TALLY_RECORD_SAMPLE);
	buf_u16(&in, 2);
	buf_u16(&in, 24);
	buf_u64(&in, ids[0]);
	buf_u64(&in, 0x1000);
	struct iovec span = { in.at, in.len };
	check_int(unwinding_see(&u, &span, 1, NULL), 0);
	check_int(world.mapped, 2);
	check_int(unwinding_pass(&u, &span, 1, sink, NULL, NULL), 0);
	check_u64(world.out.len, in.len);
	check_mem(world.out.at, in.at, in.len < world.out.len ? in.len : world.out.len);
	check_u64(u.stacks.broken, 3);
	check_u64(u.stacks.whole + u.stacks.cut, 0);
	buf_done(&world.out);
	buf_done(&in);
	unwinding_done(&u);
}

/* More than its own buffer holds goes on in portions; what the file answers is passed on. */
static void portions_follow_each_other(void)
{
	struct buf in = { 0 };
	struct unwinding u = begin();

	for (unsigned i = 0; i < 200; i++)
		add_sample(&in, 0, 2, 2);
	struct iovec span = { in.at, in.len };
	check_int(unwinding_pass(&u, &span, 1, sink, NULL, NULL), 0);
	check_u64(world.out.len, in.len);
	check_mem(world.out.at, in.at, in.len < world.out.len ? in.len : world.out.len);
	world.fail = -ENOSPC;
	world.out.len = 0;
	check_int(unwinding_pass(&u, &span, 1, sink, NULL, NULL), -ENOSPC);
	check(world.out.len < in.len);
	buf_done(&world.out);
	buf_done(&in);
	unwinding_done(&u);
}

/* The bytes behind the last record reach the sink, which refuses them. */
static void bytes_that_are_no_record_are_shown(void)
{
	struct buf in = { 0 };
	struct unwinding u = begin();

	add_map(&in);
	size_t good = in.len;
	buf_u64(&in, 0);
	buf_u64(&in, 0);
	struct iovec span = { in.at, in.len };
	check_int(unwinding_see(&u, &span, 1, NULL), 0);
	check_int(unwinding_pass(&u, &span, 1, sink, NULL, NULL), 0);
	check_u64(world.out.len, good + 8);
	buf_done(&world.out);
	buf_done(&in);
	unwinding_done(&u);
}

/* What is mapped all day long does not fill memory: all is forgotten, and /proc asked anew. */
static void very_many_mappings_are_forgotten(void)
{
	struct buf maps = { 0 }, sample = { 0 };
	struct unwinding u = begin();

	for (unsigned i = 0; i < 1000; i++)
		add_map(&maps);
	add_sample(&sample, 0, 0, 2);
	struct iovec many = { maps.at, maps.len }, one = { sample.at, sample.len };
	for (unsigned i = 0; i < 150; i++)
		check_int(unwinding_see(&u, &many, 1, NULL), 0);
	check_int(unwinding_pass(&u, &one, 1, sink, NULL, NULL), 0);
	check_int(world.made, 1);
	check_int(world.asked, 0);
	for (unsigned i = 0; i < 100; i++)
		check_int(unwinding_see(&u, &many, 1, NULL), 0);
	check_int(world.made, 2);
	check_int(world.clocks, 2);
	for (unsigned i = 0; i < 3; i++)
		check_int(unwinding_pass(&u, &one, 1, sink, NULL, NULL), 0);
	check_int(world.asked, 1);
	buf_done(&world.out);
	buf_done(&maps);
	buf_done(&sample);
	unwinding_done(&u);
}

int main(void)
{
	tap_run(samples_become_chains_at_every_cut);
	tap_run(all_else_stays_byte_for_byte);
	tap_run(portions_follow_each_other);
	tap_run(bytes_that_are_no_record_are_shown);
	tap_run(very_many_mappings_are_forgotten);
	return tap_end();
}
