/* SPDX-License-Identifier: MIT */
/*
 * Unwinding through code that a process made, by the unwinding information of its jitdump
 * (jitdump-specification.txt of Linux): .eh_frame lies behind the code, at a multiple of 8, as the
 * files of perf inject have it. The functions keep no frame pointer, so that nothing else leads on.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#include <tally/unwinder.h>

#include "fakecfi.h"
#include "fakejit.h"
#include "fakeroot.h"
#include "tap.h"

#define PID   42
#define CHILD 43
#define CODE  0x7f1000000000u
#define START (CODE + 0x100) /* a function that nobody called */
#define OTHER (CODE + 0x800) /* where code is moved to */
#define STACK 0x7ffc00000000u
#define SIZE  0x3du /* of a function: no multiple of 8 */

/*
 * DW_CFA_def_cfa, _offset and _undefined of table 7.29 of DWARF 5; RSP is 7, the return address
 * 16.
 */
#define BYTES(...)      (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ })
#define FRAME_OF(bytes) 0x0c, 7, (bytes), 0x80 | 16, 1
#define NO_CALLER       0x07, 16

/* Bits of perf_regs.h: RBP, RSP, RIP. */
#define REGS ((1u << 6) | (1u << 7) | (1u << 8))

static struct {
	struct fakeroot root;
	struct fakejit jit;
	struct tally_maps *maps;
	struct tally_unwinder *unwinder;
	uint64_t stack[64];
	uint64_t fp;
	uint64_t frames[8];
	struct tally_unwound how;
} t;

static void map(uint64_t start, uint64_t size, const char *path)
{
	const struct tally_mapping mapping = { .start = start, .end = start + size, .path = path };

	check_int(tally_maps_add(t.maps, PID, 0, &mapping), 0);
}

static void begin(bool swapped)
{
	memset(&t, 0, sizeof(t));
	t.fp = 1; /* no frame is there */
	require(fakeroot_make(&t.root));
	fakejit_begin(&t.jit, swapped, 0);
	check_int(tally_maps_new(&t.maps), 0);
	map(CODE, 0x1000, "//anon");
	map(STACK, 0x10000, "[stack]");
	check_int(tally_unwinder_new(&t.unwinder, t.maps,
				     TALLY_OPTS(unwinder, .machine = "x86_64", .root = t.root.path),
				     NULL),
		  0);
}

/* .eh_frame of a function of SIZE bytes, and an empty header behind it. */
static void tell_rules(uint64_t time, const void *program, size_t len)
{
	static const uint8_t header[20] = { 1, 0x1b, 3, 0x3b };
	struct fakecfi cfi = { 0 };
	size_t common = fakecfi_common(&cfi, 0, 1, -8, 16, BYTES(0));

	fakecfi_function(&cfi, common, FAKECFI_FRAME - (SIZE + 7) / 8 * 8, SIZE, program, len);
	fakecfi_add(&cfi, header, sizeof(header));
	fakejit_unwind(&t.jit, time, cfi.at, cfi.len, sizeof(header));
}

static void load(uint64_t time, uint64_t start)
{
	fakejit_load(&t.jit, time, start, SIZE, "made");
}

/* Writes what was told so far; the process maps the file from the first time on. */
static void write_dump(void)
{
	require(fakeroot_bytes(&t.root, "/proc/42/root/jit-42.dump", t.jit.at, t.jit.len));
}

static void map_dump(void)
{
	struct tally_mapping dump = { .start = 0x7e0000000000,
				      .end = 0x7e0000001000,
				      .path = "/jit-42.dump" };
	struct stat st;
	char path[256];

	snprintf(path, sizeof(path), "%s/proc/42/root/jit-42.dump", t.root.path);
	require(stat(path, &st) == 0);
	dump.inode = st.st_ino;
	dump.dev_major = major(st.st_dev);
	dump.dev_minor = minor(st.st_dev);
	check_int(tally_maps_add(t.maps, PID, 50, &dump), 0);
}

static void word(unsigned offset, uint64_t value)
{
	t.stack[offset / 8] = value;
}

/* From `pc` at that time, where RSP is at STACK. */
static void walk(int32_t pid, uint64_t time, uint64_t pc)
{
	const uint64_t regs[] = { t.fp, STACK, pc };
	const struct tally_unwind_start start = {
		.pid = pid,
		.time = time,
		.mask = REGS,
		.regs = regs,
		.stack = t.stack,
		.stack_len = sizeof(t.stack),
	};

	check_int(tally_unwinder_walk(t.unwinder, &start, t.frames, 8, &t.how), 0);
}

/* The place and its only caller. */
static void check_whole(uint64_t pc, uint64_t caller)
{
	check_int(t.how.end, TALLY_UNWIND_WHOLE);
	check_int(t.how.frames, 2);
	check_u64(t.frames[0], pc);
	check_u64(t.frames[1], caller);
}

static void check_broken(void)
{
	check_int(t.how.end, TALLY_UNWIND_BROKEN);
	check_int(t.how.frames, 1);
}

static void end(void)
{
	tally_unwinder_free(t.unwinder);
	tally_maps_free(t.maps);
	fakeroot_remove(&t.root);
}

/* A function with a frame of 0x28 bytes at CODE, later one of 0x48 there; START has no caller. */
static void make_two(void)
{
	tell_rules(90, BYTES(NO_CALLER));
	load(90, START);
	tell_rules(100, BYTES(FRAME_OF(0x28)));
	load(100, CODE);
	tell_rules(200, BYTES(FRAME_OF(0x48)));
	load(200, CODE);
	write_dump();
	word(0x20, START + 5);
	word(0x40, START + 9);
}

static void made_code_is_unwound_by_the_tables_of_its_time(void)
{
	begin(false);
	make_two();
	map_dump();
	for (unsigned i = 0; i < 2; i++) {
		walk(PID, 150, CODE + 8);
		check_whole(CODE + 8, START + 5);
		walk(PID, 250, CODE + 8);
		check_whole(CODE + 8, START + 9);
	}
	/* Behind the last of SIZE bytes nothing is told; a call may be the last of them. */
	walk(PID, 150, CODE + SIZE);
	check_broken();
	word(0x20, START + SIZE);
	walk(PID, 150, CODE + SIZE - 1);
	check_whole(CODE + SIZE - 1, START + SIZE);
	end();
}

static void times_of_another_clock_say_nothing(void)
{
	begin(false);
	make_two();
	map_dump();
	tally_unwinder_clock(t.unwinder, UINT32_MAX);
	walk(PID, 150, CODE + 8);
	check_whole(CODE + 8, START + 9);
	tally_unwinder_clock(t.unwinder, CLOCK_MONOTONIC);
	walk(PID, 150, CODE + 8);
	check_whole(CODE + 8, START + 5);
	end();
}

static void moved_code_takes_its_tables_along(void)
{
	begin(false);
	tell_rules(90, BYTES(NO_CALLER));
	load(90, START);
	tell_rules(100, BYTES(FRAME_OF(0x28)));
	load(100, CODE);
	fakejit_move(&t.jit, 300, CODE, OTHER, SIZE);
	write_dump();
	map_dump();
	word(0x20, START + 5);
	walk(PID, 200, CODE + 8);
	check_whole(CODE + 8, START + 5);
	walk(PID, 300, OTHER + 8);
	check_whole(OTHER + 8, START + 5);
	walk(PID, 300, CODE + 8);
	check_broken();
	end();
}

/* What was asked before the process told of its code is not kept. */
static void code_is_told_of_late(void)
{
	begin(false);
	make_two();
	walk(PID, 150, CODE + 8);
	check_broken();
	check(!t.how.untold);
	map_dump();
	walk(PID, 150, CODE + 8);
	check_whole(CODE + 8, START + 5);
	check(!t.how.untold);
	/* Of a process with a jitdump, behind all code that this tells of. */
	walk(PID, 150, CODE + 0x800);
	check(t.how.untold);
	check_int(tally_unwinder_is_signal(t.unwinder, PID, 150, CODE + 0x800), 0);
	end();
}

static void a_child_runs_its_parents_code(void)
{
	begin(false);
	make_two();
	map_dump();
	check_int(tally_maps_fork(t.maps, CHILD, CHILD, PID, PID, 110), 0);
	walk(CHILD, 150, CODE + 8);
	check_whole(CODE + 8, START + 5);
	end();
}

/* A header alone is what V8 writes for code that keeps a frame pointer. */
static void code_without_tables_has_frame_pointers(void)
{
	static const uint8_t header[20] = { 1, 0x1b, 3, 0x3b };

	begin(false);
	tell_rules(90, BYTES(NO_CALLER));
	load(90, START);
	fakejit_unwind(&t.jit, 100, header, sizeof(header), sizeof(header));
	load(100, CODE);
	write_dump();
	map_dump();
	t.fp = STACK + 0x30;
	word(0x30, 0);
	word(0x38, START + 7);
	walk(PID, 150, CODE + 8);
	check_whole(CODE + 8, START + 7);
	end();
}

/* A record of unwinding information that says of itself what it has not. */
static void claim(uint64_t size, uint64_t header, const void *bytes, size_t len)
{
	fakejit_unwind(&t.jit, 100, bytes, len, 0);
	memcpy(t.jit.at + t.jit.len - len - 24, &size, sizeof(size));
	memcpy(t.jit.at + t.jit.len - len - 16, &header, sizeof(header));
}

static void check_claim(uint64_t size, uint64_t header, const void *bytes, size_t len)
{
	begin(false);
	claim(size, header, bytes, len);
	load(100, CODE);
	write_dump();
	map_dump();
	walk(PID, 150, CODE + 8);
	check_broken();
	end();
}

static void false_tables_are_not_used(void)
{
	static const uint8_t garbage[64] = { 0xff, 0xff, 0xff, 0x7f, 1, 2, 3, 4, 5, 6, 7, 8 };
	static const uint8_t nothing[64];

	check_claim(65, 0, garbage, 64);
	check_claim(UINT64_MAX, 0, garbage, 64);
	check_claim(64, 65, garbage, 64);
	check_claim(64, UINT64_MAX, garbage, 64);
	check_claim(0, 0, garbage, 64);
	check_claim(64, 0, garbage, 64);
	check_claim(64, 20, nothing, 64);
	check_claim(3, 0, garbage, 3);
}

static void tables_of_other_machines_are_not_used(void)
{
	const uint32_t arm = EM_AARCH64;

	begin(false);
	make_two();
	memcpy(t.jit.at + 12, &arm, sizeof(arm));
	write_dump();
	map_dump();
	walk(PID, 150, CODE + 8);
	check_broken();
	end();
	/* In the other byte order. */
	begin(true);
	make_two();
	map_dump();
	walk(PID, 150, CODE + 8);
	check_broken();
	end();
}

int main(void)
{
	tap_run(made_code_is_unwound_by_the_tables_of_its_time);
	tap_run(times_of_another_clock_say_nothing);
	tap_run(moved_code_takes_its_tables_along);
	tap_run(code_is_told_of_late);
	tap_run(a_child_runs_its_parents_code);
	tap_run(code_without_tables_has_frame_pointers);
	tap_run(false_tables_are_not_used);
	tap_run(tables_of_other_machines_are_not_used);
	return tap_end();
}
