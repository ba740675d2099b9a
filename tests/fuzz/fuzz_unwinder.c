/* SPDX-License-Identifier: MIT */
/*
 * The unwinder on a program whose unwind tables, registers and stack are the input's. It ends,
 * within the room for addresses, and what it answers is one of the four ends.
 *
 * The first byte chooses the machine, the second how many of the 33 registers are the input's,
 * whose words follow; two bytes tell the length of the stack, which follows; the rest is .eh_frame.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <tally/unwinder.h>

#include "fakecfi.h"
#include "fuzz.h"
#include "image/module.h"

#define PID   1
#define BASE  0x7f0000000000u
#define STACK 0x7ffc00000000u
#define ROOM  64

static uint8_t file[FAKECFI_ROOM];
static size_t file_len;

/* Stands in for the search of mapped files: there is one, in memory. */
int module_open(const char *path, const struct file_search *where)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	must(fd >= 0 && write(fd, file, file_len) == (ssize_t)file_len);
	return fd;
}

const char *module_not_a_file(const char *path)
{
	return path[0] == '/' ? NULL : "no file";
}

struct input {
	const uint8_t *at;
	size_t left;
};

static const uint8_t *take(struct input *in, size_t len)
{
	const uint8_t *at = in->at;

	len = len < in->left ? len : in->left;
	in->at += len;
	in->left -= len;
	return at;
}

static uint64_t take_number(struct input *in, size_t bytes)
{
	uint64_t v = 0;
	size_t left = in->left;

	memcpy(&v, take(in, bytes), bytes < left ? bytes : left);
	return v;
}

static void map(struct tally_maps *maps, uint64_t start, uint64_t size, const char *path)
{
	const struct tally_mapping mapping = { .start = start, .end = start + size, .path = path };

	must(tally_maps_add(maps, PID, 0, &mapping) == 0);
}

/* All registers lead to the stack or into the code, where the input does not say otherwise. */
static void fill(uint64_t *regs, struct input *in, unsigned given)
{
	for (unsigned i = 0; i < 33; i++)
		regs[i] = STACK + 8 * i;
	regs[8] = regs[32] = BASE + FAKECFI_CODE;
	for (unsigned i = 0; i < given; i++)
		regs[i] = take_number(in, sizeof(uint64_t));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	bool arm = take_number(&in, 1) & 1;
	uint64_t regs[33], addresses[ROOM];
	struct tally_unwound how;
	struct tally_maps *maps;
	struct tally_unwinder *unwinder;

	fill(regs, &in, (unsigned)take_number(&in, 1) % 34);
	struct tally_unwind_start start = {
		.pid = PID,
		.mask = arm ? 0x1ffffffffu : 0xff01ffu,
		.regs = regs,
		.stack_len = take_number(&in, 2),
	};
	start.stack_len = start.stack_len < in.left ? start.stack_len : in.left;
	start.stack = take(&in, start.stack_len);
	size_t frame = in.left < FAKECFI_PAGE ? in.left : FAKECFI_PAGE;
	file_len = fakecfi_elf(file, arm ? EM_AARCH64 : EM_X86_64, ".eh_frame", in.at, frame, "",
			       0);

	must(tally_maps_new(&maps) == 0);
	map(maps, BASE, FAKECFI_FRAME + FAKECFI_PAGE, "/program");
	map(maps, STACK, 0x10000, "[stack]");
	must(tally_unwinder_new(&unwinder, maps,
				TALLY_OPTS(unwinder, .machine = arm ? "aarch64" : "x86_64"),
				NULL) == 0);
	must(tally_unwinder_walk(unwinder, &start, addresses, ROOM, &how) == 0);
	must(how.frames >= 1 && how.frames <= ROOM && how.end <= TALLY_UNWIND_FULL);
	must(how.end != TALLY_UNWIND_FULL || how.frames == ROOM);
	tally_unwinder_free(unwinder);
	tally_maps_free(maps);
	return 0;
}
