/* SPDX-License-Identifier: MIT */
/* Core files that are made by hand: what they tell, and what is refused, with its place. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <tally/core.h>

#include "fakecore.h"
#include "fakeroot.h"
#include "tap.h"

#define CODE  0x7f0000000000u
#define STACK 0x7ffc00000000u
#define VDSO  0x7ffd00000000u

/* Words of x86-64's struct user_regs_struct. */
enum {
	RBP = 4,
	RIP = 16,
	RSP = 19,
};

static struct {
	struct fakeroot root;
	struct fakecore file;
	struct tally_core *core;
	struct tally_error err;
	uint64_t regs[FAKECORE_ARM64_WORDS];
	uint64_t stack[64];
} t;

/* A core of one thread, 43, of process 42, that has a stack. */
static void begin(void)
{
	memset(&t, 0, sizeof(t));
	require(fakeroot_make(&t.root));
	fakecore_begin(&t.file, EM_X86_64);
	for (unsigned i = 0; i < FAKECORE_X86_WORDS; i++)
		t.regs[i] = 100 + i;
	fakecore_thread(&t.file, 43, 6, t.regs);
	fakecore_process(&t.file, 42, "a-program-of-a-name");
}

static int open_bytes(size_t len)
{
	char path[256];

	check(fakeroot_bytes(&t.root, "/core", t.file.at, len));
	snprintf(path, sizeof(path), "%s/core", t.root.path);
	return tally_core_open(&t.core, path, &t.err);
}

static int open_core(void)
{
	return open_bytes(fakecore_end(&t.file));
}

static void end(void)
{
	tally_core_close(t.core);
	fakeroot_remove(&t.root);
}

static uint64_t value(const struct tally_core_thread *thread, unsigned bit)
{
	uint64_t below = thread->start.mask & (((uint64_t)1 << bit) - 1);

	check(thread->start.mask >> bit & 1);
	return ((const uint64_t *)thread->start.regs)[__builtin_popcountll(below)];
}

static void threads_have_registers_by_perfs_bits(void)
{
	struct tally_core_thread thread;

	begin();
	t.regs[RIP] = CODE;
	fakecore_thread(&t.file, 44, 0, t.regs);
	check_int(open_core(), 0);
	const struct tally_core_info *info = tally_core_info(t.core);
	check_int(info->pid, 42);
	check_u64(info->threads, 2);
	check_str(info->comm, "a-program-of-a-");
	check_str(info->machine, "x86_64");
	check_u64(info->missing, 0);
	check_u64(info->signal, 6);

	check_int(tally_core_thread(t.core, 0, &thread), 0);
	check_int(thread.tid, 43);
	check_int(thread.start.pid, 42);
	/* AX BX CX DX SI DI BP SP IP are bits 0 to 8 (perf_regs.h); their words by sys/user.h. */
	static const unsigned words[] = { 10, 5, 11, 12, 13, 14, RBP, RSP, RIP };
	for (unsigned bit = 0; bit < sizeof(words) / sizeof(words[0]); bit++)
		check_u64(value(&thread, bit), 100 + words[bit]);
	/* R8 to R15 are bits 16 to 23. */
	static const unsigned more[] = { 9, 8, 7, 6, 3, 2, 1, 0 };
	for (unsigned i = 0; i < 8; i++)
		check_u64(value(&thread, 16 + i), 100 + more[i]);
	check_int(tally_core_thread(t.core, 1, &thread), 0);
	check_int(thread.tid, 44);
	check_u64(value(&thread, 8), CODE);
	check_int(tally_core_thread(t.core, 2, &thread), -EINVAL);
	end();
}

static void an_arm64_core(void)
{
	struct tally_core_thread thread;

	begin();
	fakecore_begin(&t.file, EM_AARCH64);
	for (unsigned i = 0; i < FAKECORE_ARM64_WORDS; i++)
		t.regs[i] = 200 + i;
	fakecore_thread(&t.file, 7, 11, t.regs);
	check_int(open_core(), 0);
	check_str(tally_core_info(t.core)->machine, "aarch64");
	/* Nothing tells the process: it is the first thread's. */
	check_int(tally_core_info(t.core)->pid, 7);
	check_str(tally_core_info(t.core)->comm, "");
	check_int(tally_core_thread(t.core, 0, &thread), 0);
	check_u64(thread.start.mask, 0x1ffffffff);
	for (unsigned bit = 0; bit < 33; bit++)
		check_u64(value(&thread, bit), 200 + bit);
	end();
}

/* Frame pointers lead from CODE to CODE + 0x10, whose frame is the outermost. */
static void a_stack_is_unwound_from_its_memory(void)
{
	struct tally_maps *maps;
	struct tally_unwinder *unwinder;
	struct tally_core_thread thread;
	struct tally_unwound how;
	uint64_t addresses[8];

	begin();
	t.regs[RIP] = CODE;
	t.regs[RSP] = STACK;
	t.regs[RBP] = STACK + 0x20;
	t.stack[0x28 / 8] = CODE + 0x10;
	fakecore_thread(&t.file, 44, 0, t.regs);
	fakecore_memory(&t.file, STACK, sizeof(t.stack), t.stack, sizeof(t.stack));
	fakecore_memory(&t.file, CODE, 0x1000, "", 0);
	check_int(open_core(), 0);
	check_int(tally_maps_new(&maps), 0);
	check_int(tally_core_map(t.core, maps), 0);
	check_int(tally_unwinder_new(&unwinder, maps, TALLY_OPTS(unwinder, .machine = "x86_64"),
				     NULL),
		  0);
	check_int(tally_core_thread(t.core, 1, &thread), 0);
	check_int(tally_unwinder_walk(unwinder, &thread.start, addresses, 8, &how), 0);
	check_int(how.end, TALLY_UNWIND_WHOLE);
	check_u64(how.frames, 2);
	check_u64(addresses[0], CODE);
	check_u64(addresses[1], CODE + 0x10);

	/* A word is there as a whole or not at all. */
	uint64_t word;
	check(thread.start.read(thread.start.arg, STACK + 0x28, &word) && word == CODE + 0x10);
	check(thread.start.read(thread.start.arg, STACK + sizeof(t.stack) - 8, &word));
	check(!thread.start.read(thread.start.arg, STACK + sizeof(t.stack) - 7, &word));
	check(!thread.start.read(thread.start.arg, STACK - 1, &word));
	check(!thread.start.read(thread.start.arg, CODE, &word));
	tally_unwinder_free(unwinder);
	tally_maps_free(maps);
	end();
}

/* The first page of an ELF file with a build-id in its note. */
static size_t first_page(uint8_t *out, uint8_t id)
{
	const Elf64_Ehdr head = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB },
		.e_phoff = sizeof(head),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
	};
	const Elf64_Phdr note = { .p_type = PT_NOTE, .p_offset = 0x100, .p_filesz = 24 };
	const uint32_t words[] = { 4, 8, NT_GNU_BUILD_ID };

	memset(out, 0, 0x200);
	memcpy(out, &head, sizeof(head));
	memcpy(out + sizeof(head), &note, sizeof(note));
	memcpy(out + 0x100, words, sizeof(words));
	memcpy(out + 0x10c, "GNU", 4);
	memset(out + 0x110, id, 8);
	return 0x200;
}

static void check_mapping(struct tally_maps *maps, uint64_t address, uint64_t start,
			  const char *path, uint64_t pgoff, uint8_t id)
{
	struct tally_mapping map;

	check_int(tally_maps_find(maps, 42, UINT64_MAX, address, &map), 1);
	check_str(map.path, path);
	check_u64(map.start, start);
	check_u64(map.pgoff, pgoff);
	check_u64(map.build_id_len, id ? 8 : 0);
	if (id && map.build_id_len)
		check_u64(map.build_id[7], id);
}

static void files_are_mapped_with_their_build_ids(void)
{
	const uint64_t vector[] = { AT_PAGESZ, 4096, AT_SYSINFO_EHDR, VDSO, AT_NULL, 0 };
	/* /lib has its first page in the core, and a second mapping behind it; /other has none. */
	const uint64_t words[] = { 3,
				   4096,
				   CODE,
				   CODE + 0x1000,
				   0,
				   CODE + 0x1000,
				   CODE + 0x3000,
				   1,
				   CODE + 0x8000,
				   CODE + 0x9000,
				   2 };
	uint8_t desc[sizeof(words) + 17], page[0x200];
	struct tally_maps *maps;

	memcpy(desc, words, sizeof(words));
	memcpy(desc + sizeof(words), "/lib\0/lib\0/other", 17);
	begin();
	fakecore_note(&t.file, NT_FILE, desc, sizeof(desc));
	fakecore_note(&t.file, NT_AUXV, vector, sizeof(vector));
	fakecore_memory(&t.file, CODE, 0x1000, page, first_page(page, 0xaa));
	fakecore_memory(&t.file, CODE + 0x1000, 0x9000, "", 0);
	fakecore_memory(&t.file, VDSO, 0x2000, page, first_page(page, 0xbb));
	check_int(open_core(), 0);
	check_int(tally_maps_new(&maps), 0);
	check_int(tally_core_map(t.core, maps), 0);
	check_mapping(maps, CODE + 0x10, CODE, "/lib", 0, 0xaa);
	check_mapping(maps, CODE + 0x2000, CODE + 0x1000, "/lib", 0x1000, 0xaa);
	check_mapping(maps, CODE + 0x8000, CODE + 0x8000, "/other", 0x2000, 0);
	check_mapping(maps, CODE + 0x4000, CODE + 0x3000, "//anon", 0x2000, 0);
	check_mapping(maps, VDSO + 0x100, VDSO, "[vdso]", 0, 0xbb);
	tally_maps_free(maps);
	end();
}

static void a_file_that_was_cut_tells_what_is_missing(void)
{
	struct tally_core_thread thread;
	uint64_t word;

	begin();
	fakecore_memory(&t.file, STACK, sizeof(t.stack), t.stack, sizeof(t.stack));
	check_int(open_bytes(fakecore_end(&t.file) - 100), 0);
	check_u64(tally_core_info(t.core)->missing, 100);
	check_int(tally_core_thread(t.core, 0, &thread), 0);
	check(thread.start.read(thread.start.arg, STACK + sizeof(t.stack) - 112, &word));
	check(!thread.start.read(thread.start.arg, STACK + sizeof(t.stack) - 104, &word));
	end();
}

/* A number of segments that the header has no room for (PN_XNUM) is in the first section header. */
/* Notes of which another segment has the same bytes could be read a thousand times. */
static void notes_over_one_another(void)
{
	begin();
	fakecore_memory(&t.file, STACK, 0x1000, t.stack, sizeof(t.stack));
	size_t len = fakecore_end(&t.file);
	const Elf64_Phdr notes = { .p_type = PT_NOTE, .p_filesz = len };
	memcpy(t.file.at + 64 + 56, &notes, sizeof(notes));
	check_int(open_bytes(len), -EBADMSG);
	check_has(t.err.text, "byte 120: notes lie over one another");
	end();
}

static void very_many_segments(void)
{
	const uint16_t many = PN_XNUM;
	const uint64_t at = 0x3f00;
	Elf64_Shdr first = { .sh_info = 2 };

	begin();
	fakecore_memory(&t.file, STACK, 0x1000, t.stack, sizeof(t.stack));
	size_t len = fakecore_end(&t.file);
	memcpy(t.file.at + offsetof(Elf64_Ehdr, e_phnum), &many, sizeof(many));
	memcpy(t.file.at + offsetof(Elf64_Ehdr, e_shoff), &at, sizeof(at));
	memcpy(t.file.at + at, &first, sizeof(first));
	check_int(open_bytes(len), 0);
	check_u64(tally_core_info(t.core)->threads, 1);
	tally_core_close(t.core);
	t.core = NULL;
	first.sh_info = UINT32_MAX;
	memcpy(t.file.at + at, &first, sizeof(first));
	check_int(open_bytes(len), -EBADMSG);
	check_has(t.err.text, "byte 32");
	end();
}

/* Puts a number of `size` bytes at `at` into a good core, which must be refused then. */
static void check_refused(size_t at, uint64_t number, size_t size, int code, const char *said)
{
	begin();
	fakecore_file(&t.file, CODE, CODE + 0x1000, 4096, 2, "/lib");
	fakecore_memory(&t.file, STACK, 0x1000, t.stack, sizeof(t.stack));
	size_t len = fakecore_end(&t.file);
	memcpy(t.file.at + at, &number, size);
	check_int(open_bytes(len), code);
	check_has(t.err.text, code ? "/core" : "");
	check_has(t.err.text, said);
	end();
}

static void what_makes_no_sense_is_refused_with_its_place(void)
{
	const size_t note = 64, memory = 64 + 56; /* program headers */
	const size_t status = FAKECORE_NOTES, info = status + 20 + 112 + 27 * 8 + 8;
	const size_t file = info + 20 + 136;

	check_refused(0, 0, 4, -ENOEXEC, "is no core file");
	check_refused(4, ELFCLASS32, 1, -EOPNOTSUPP, "64-bit");
	check_refused(5, ELFDATA2MSB, 1, -EOPNOTSUPP, "little-endian");
	check_refused(16, ET_DYN, 2, -ENOEXEC, "but no core file");
	check_refused(18, EM_S390, 2, -EOPNOTSUPP, "ELF machine 22");
	check_refused(32, UINT64_MAX - 20, 8, -EBADMSG, "byte 32:");
	check_refused(54, 57, 2, -EBADMSG, "byte 54:");
	check_refused(56, 60000, 2, -EBADMSG, "byte 32:");
	check_refused(note + 8, UINT64_MAX, 8, -EBADMSG, "byte 64: the notes reach beyond the end");
	check_refused(note + 32, FAKECORE_ROOM, 8, -EBADMSG, "byte 64: the notes reach");
	check_refused(memory + 32, 0x1001, 8, -EBADMSG, "byte 120: a segment's size");
	check_refused(memory + 16, UINT64_MAX - 8, 8, -EBADMSG, "byte 120: a segment's size");
	/* Memory may be notes, too, which tell of nobody. */
	check_refused(memory, PT_NOTE, 4, 0, "");
	check_refused(status, UINT32_MAX, 4, -EBADMSG, "byte 1024: a note reaches");
	check_refused(status + 4, UINT32_MAX, 4, -EBADMSG, "byte 1024: a note reaches");
	check_refused(status + 4, 111, 4, -EBADMSG, "byte 1044: a thread's registers");
	check_refused(status + 20 + 32, 0, 4, -EBADMSG, "byte 1044: a thread's number");
	check_refused(status + 8, 99, 4, -EBADMSG, "no note tells of a thread");
	check_refused(info + 20 + 24, UINT32_MAX, 4, -EBADMSG, "the process's number");
	check_refused(file + 20, 2, 8, -EBADMSG, "mapped files");
	check_refused(file + 20, UINT64_MAX, 8, -EBADMSG, "mapped files is too short");
	check_refused(file + 4, 15, 4, -EBADMSG, "mapped files is too short");
	check_refused(file + 28, UINT64_MAX, 8, -EBADMSG, "makes no sense");
	check_refused(file + 36, CODE + 0x1000, 8, -EBADMSG, "makes no sense");
	check_refused(file + 20 + 40 + 4, '/', 1, -EBADMSG, "makes no sense");
}

static void what_cannot_be_opened(void)
{
	begin();
	check_int(tally_core_open(&t.core, "/no/such/core", &t.err), -ENOENT);
	check_has(t.err.text, "/no/such/core");
	check_int(tally_core_open(&t.core, "/dev/zero", &t.err), -ENOEXEC);
	check_int(tally_core_open(&t.core, t.root.path, NULL), -ENOEXEC);
	check_int(open_bytes(0), -ENOEXEC);
	tally_core_close(NULL);
	end();
}

int main(void)
{
	tap_run(threads_have_registers_by_perfs_bits);
	tap_run(an_arm64_core);
	tap_run(a_stack_is_unwound_from_its_memory);
	tap_run(files_are_mapped_with_their_build_ids);
	tap_run(a_file_that_was_cut_tells_what_is_missing);
	tap_run(notes_over_one_another);
	tap_run(very_many_segments);
	tap_run(what_makes_no_sense_is_refused_with_its_place);
	tap_run(what_cannot_be_opened);
	return tap_end();
}
