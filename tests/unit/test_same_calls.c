/* SPDX-License-Identifier: MIT */
/*
 * Which memory system calls write and read, as section 2 of the manual says. The program's memory is
 * an array, and an address is an index into it.
 */
#include <errno.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "inspect/same-calls.h"
#include "tap.h"

static uint8_t memory[1024];

struct ranges {
	struct same_range at[8];
	unsigned count;
};

static int peek(void *arg, uint64_t address, void *buf, uint64_t len)
{
	if (address > sizeof(memory) || len > sizeof(memory) - address)
		return -EFAULT;
	memcpy(buf, memory + address, len);
	return 0;
}

static int take(void *arg, const struct same_range *range)
{
	struct ranges *ranges = arg;

	if (ranges->count < 8)
		ranges->at[ranges->count++] = *range;
	return 0;
}

static struct ranges ranges_of(long number, int64_t result, uint64_t a, uint64_t b, uint64_t c)
{
	const uint64_t args[6] = { a, b, c };
	struct ranges ranges = { 0 };

	same_call_ranges(same_call(number), args, result, peek, take, &ranges);
	return ranges;
}

static void a_read_writes_what_it_has_read(void)
{
	struct ranges r = ranges_of(SYS_read, 5, 3, 100, 64);

	check_int(r.count, 1);
	check_u64(r.at[0].address, 100);
	check_u64(r.at[0].len, 5);
	check(!r.at[0].in);
	check_int(ranges_of(SYS_read, 0, 3, 100, 64).count, 0);
	check_int(ranges_of(SYS_read, -EBADF, 3, 100, 64).count, 0);
}

static void a_write_reads(void)
{
	struct ranges r = ranges_of(SYS_write, 3, 1, 200, 8);

	check_int(r.count, 1);
	check(r.at[0].in);
	check_u64(r.at[0].len, 3);
}

static void a_vector_is_filled_from_its_front(void)
{
	const struct iovec parts[3] = {
		{ (void *)500, 10 },
		{ (void *)600, 0 },
		{ (void *)700, 10 },
	};

	memcpy(memory + 64, parts, sizeof(parts));
	struct ranges r = ranges_of(SYS_readv, 14, 3, 64, 3);
	check_int(r.count, 2);
	check_u64(r.at[0].address, 500);
	check_u64(r.at[0].len, 10);
	check_u64(r.at[1].address, 700);
	check_u64(r.at[1].len, 4);
}

static void a_vector_that_lies_is_left(void)
{
	const struct iovec parts[1] = { { (void *)500, 10 } };

	memcpy(memory + sizeof(memory) - sizeof(parts), parts, sizeof(parts));
	/* The second part would stand behind the end. */
	struct ranges r = ranges_of(SYS_readv, 1 << 20, 3, sizeof(memory) - sizeof(parts),
				    UINT64_MAX);
	check_int(r.count, 1);
	check_u64(r.at[0].len, 10);
}

static void structures_have_their_size(void)
{
	check_u64(ranges_of(SYS_clock_gettime, 0, 0, 300, 0).at[0].len, 16);
	check_u64(ranges_of(SYS_ppoll, 1, 300, 3, 0).at[0].len, 3 * 8);
	check_int(ranges_of(SYS_wait4, 17, (uint64_t)-1, 0, 0).count, 0); /* no pointer, no piece */
	check_u64(ranges_of(SYS_wait4, 17, (uint64_t)-1, 300, 0).at[0].len, 4);
	check_u64(ranges_of(SYS_pipe2, 0, 300, 0, 0).at[0].len, 8);
	check_u64(ranges_of(SYS_getrandom, 7, 300, 16, 0).at[0].len, 7);
}

static void a_call_that_nobody_knows_has_no_pieces(void)
{
	check(same_call(99999)->name == NULL);
	check_int(ranges_of(99999, 8, 100, 100, 100).count, 0);
	check_str(same_call(SYS_openat)->name, "openat");
}

static void rows_point_to_arguments_that_they_have(void)
{
	for (long number = 0; number < 600; number++) {
		const struct same_call *call = same_call(number);
		check(!call->name || call->number == number);
		check(call->args <= 6);
		for (int i = 0; i < SAME_PIECES; i++)
			check(call->piece[i].how == SAME_NONE || call->piece[i].arg < call->args);
	}
}

int main(void)
{
	tap_run(a_read_writes_what_it_has_read);
	tap_run(a_write_reads);
	tap_run(a_vector_is_filled_from_its_front);
	tap_run(a_vector_that_lies_is_left);
	tap_run(structures_have_their_size);
	tap_run(a_call_that_nobody_knows_has_no_pieces);
	tap_run(rows_point_to_arguments_that_they_have);
	return tap_end();
}
