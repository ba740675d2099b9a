/* SPDX-License-Identifier: MIT */
/*
 * Records pushed one by one, with maps and a symbolizer of the test's own: a function per page of
 * each process, whose name tells what was asked. How often it is asked is counted.
 */
#include <errno.h>

#include <tally/attr.h>

#include "image/symbolizer.h"
#include "image/unwinder.h"
#include "tap.h"
#include "unit/by-hand.h"

/* ---- a world in which everything has a name ---- */

static struct {
	int asked, mapped, forked, execed, exited;
	int32_t pid;            /* of the last mapping */
	const char *generation; /* part of every user function's name; "" leaves it without one */
	const char *thread;     /* every thread's name */
	int fail;               /* what the next calls answer */
	uint64_t unwound[3];    /* addresses */
	struct tally_unwound how;
	uint64_t stack_bytes;
	uint64_t replaced; /* when code took the place of other code; 0: never */
	uint32_t flags;    /* of the last mapping */
	int removed;
} world;

static char names[256][32];
static uint32_t name_count;

static const char *keep(const char *name)
{
	for (uint32_t i = 0; i < name_count; i++)
		if (!strcmp(names[i], name))
			return names[i];
	snprintf(names[name_count], sizeof(names[0]), "%s", name);
	return names[name_count++];
}

int tally_maps_add(struct tally_maps *maps, int32_t pid, uint64_t time,
		   const struct tally_mapping *map)
{
	world.mapped++;
	world.pid = pid;
	world.flags = map->flags;
	return map->start < map->end ? world.fail : -EINVAL;
}

int tally_maps_remove(struct tally_maps *maps, int32_t pid, uint64_t time, uint64_t start,
		      uint64_t end)
{
	world.removed++;
	world.pid = pid;
	return start < end ? 0 : -EINVAL;
}

int tally_maps_fork(struct tally_maps *maps, int32_t pid, int32_t tid, int32_t parent_pid,
		    int32_t parent_tid, uint64_t time)
{
	world.forked++;
	return 0;
}

int tally_maps_comm(struct tally_maps *maps, int32_t pid, int32_t tid, uint64_t time,
		    const char *comm, bool exec)
{
	world.execed += exec;
	return 0;
}

int tally_maps_exit(struct tally_maps *maps, int32_t pid, int32_t tid, uint64_t time)
{
	world.exited++;
	return 0;
}

const char *tally_maps_name(struct tally_maps *maps, int32_t tid, uint64_t time)
{
	return world.thread;
}

int tally_symbolizer_module(const struct tally_symbolizer *symbolizer, uint32_t id,
			    struct tally_module_info *out)
{
	return -EINVAL;
}

/* What the test says that a copy of the stack holds. */
int tally_unwinder_sample(struct tally_unwinder *unwinder, const struct tally_record *rec,
			  uint64_t *addresses, uint32_t room, struct tally_unwound *out)
{
	if (!rec->sample.regs_user.abi)
		return 0;
	memcpy(addresses, world.unwound, sizeof(world.unwound));
	*out = world.how;
	return 1;
}

/* Signal handlers return to the first byte of page 6, which is a function as all pages are. */
int tally_unwinder_is_signal(struct tally_unwinder *unwinder, int32_t pid, uint64_t time,
			     uint64_t address)
{
	check_int(address & 0xfff, 0);
	return address == 0x6000;
}

bool symbolizer_begins_behind(const struct tally_symbolizer *symbolizer,
			      const struct tally_frame *frame)
{
	return !((frame->address + 1) & 0xfff);
}

uint64_t unwinder_stack_bytes(struct tally_maps *maps, const struct tally_record *rec)
{
	return world.stack_bytes;
}

int64_t tally_symbolizer_epoch(struct tally_symbolizer *symbolizer, int32_t pid, uint64_t time)
{
	return world.replaced && time >= world.replaced;
}

void tally_symbolizer_clock(struct tally_symbolizer *symbolizer, uint32_t clockid)
{
}

void tally_unwinder_clock(struct tally_unwinder *unwinder, uint32_t clockid)
{
}

/* Page 1 is main, page 2 is libc's nameless start code, the others are called by number. */
int tally_symbolizer_find(struct tally_symbolizer *symbolizer, int32_t pid, uint64_t time,
			  uint64_t address, uint32_t mode, struct tally_frame *out)
{
	char name[32];
	uint64_t page = address >> 12 & 0xff;

	world.asked++;
	*out = (struct tally_frame){ .address = address, .module_address = address, .mode = mode };
	out->module = mode == TALLY_MODE_KERNEL ? "[kernel]" : page == 2 ? "libc.so.6" : "work";
	out->module_id = mode == TALLY_MODE_KERNEL ? 0 : page == 2 ? 1 : 2;
	out->path = out->module;
	out->function_id = UINT32_MAX;
	if (page == 2 && mode == TALLY_MODE_USER)
		return 0;
	snprintf(name, sizeof(name), "%s%d%s", mode == TALLY_MODE_KERNEL ? "k" : "u", (int)page,
		 mode == TALLY_MODE_KERNEL ? "" : world.generation);
	out->function = page == 1 ? "main" : keep(name);
	for (uint32_t i = 0; i < name_count; i++)
		if (names[i] == out->function)
			out->function_id = i;
	if (page == 1)
		out->function_id = 1000;
	return 1;
}

/* Page 9 holds what a() inlined into b(), and b() into the page's own function. */
int tally_symbolizer_lines(struct tally_symbolizer *symbolizer,
			   const struct tally_symbolizer_query *q, size_t count,
			   struct tally_symbolized *out)
{
	static struct tally_source sources[3];

	*out = (struct tally_symbolized){ .sources = sources, .source_count = 1 };
	tally_symbolizer_find(symbolizer, q->pid, q->time, q->address, q->mode, &out->frame);
	sources[0] =
		(struct tally_source){ .function = "a", .file = "/s/a.c", .line = 3, .inlined = 1 };
	sources[1] =
		(struct tally_source){ .function = "b", .file = "/s/b.c", .line = 4, .inlined = 1 };
	sources[2] = (struct tally_source){ .file = "/s/c.c",
					    .line = (uint32_t)q->address & 0xfff };
	if (q->address >> 12 == 9)
		out->source_count = 3;
	else
		sources[0] = sources[2];
	sources[out->source_count - 1].function = out->frame.function;
	return 0;
}

/* ---- pushing ---- */

static struct tally_profile *profile;
static struct tally_loader *loader;

static void begin_with(const struct tally_loader_opts *opts)
{
	memset(&world, 0, sizeof(world));
	world.generation = "";
	world.thread = "work";
	name_count = 0;
	tally_profile_new(&profile, NULL);
	tally_profile_event(profile, "cpu-clock", "ns");
	tally_loader_new(&loader, profile, NULL, NULL, opts, NULL);
}

static void begin(void)
{
	begin_with(NULL);
}

static void end(void)
{
	tally_loader_free(loader);
	tally_profile_free(profile);
}

/* A sample of 10 ns by thread 7 at `time`; the chain's first address is the ip when that is 0. */
static int push_chain(uint32_t cpumode, uint64_t time, uint64_t ip, const uint64_t *chain,
		      size_t len)
{
	struct tally_record rec = { .type = TALLY_RECORD_SAMPLE, .misc = (uint16_t)cpumode };

	rec.id = (struct tally_sample_id){
		.pid = 7, .tid = 7, .time = time, .has = TALLY_SAMPLE_TIME
	};
	rec.sample.ip = ip;
	rec.sample.period = 10;
	rec.sample.chain = chain;
	rec.sample.chain_len = len;
	return tally_loader_push(loader, &rec, 0);
}

#define PUSH(mode, time, ip, ...)                                     \
	push_chain(mode, time, ip, (const uint64_t[]){ __VA_ARGS__ }, \
		   sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

static int push_mmap(int32_t pid, uint64_t time, uint32_t misc, const char *name, uint64_t pgoff)
{
	struct tally_record rec = { .type = TALLY_RECORD_MMAP2, .misc = (uint16_t)misc };

	rec.id = (struct tally_sample_id){
		.pid = pid, .tid = pid, .time = time, .has = TALLY_SAMPLE_TIME
	};
	rec.mmap = (struct tally_record_mmap){ .pid = pid,
					       .tid = pid,
					       .addr = 0x1000,
					       .len = 0x1000,
					       .pgoff = pgoff,
					       .filename = name };
	return tally_loader_push(loader, &rec, 0);
}

static void check_folded(const char *want)
{
	struct output o;

	tally_report_folded(profile, NULL, output_open(&o), NULL);
	char *text = output_text(&o);
	check_str(text, want);
	free(text);
}

static struct tally_load_health health_now(void)
{
	struct tally_load_health h;

	tally_loader_health(loader, &h);
	return h;
}

#define USER   TALLY_MISC_USER
#define KERNEL TALLY_MISC_KERNEL

static void context_markers_set_the_mode_and_are_no_frames(void)
{
	begin();
	PUSH(KERNEL, 1, 0x9010, TALLY_CONTEXT_KERNEL, 0x9010, 0x8010, TALLY_CONTEXT_USER, 0x3010,
	     0x1010);
	check_folded("work;main;u3;k8_[k];k9_[k] 10\n");
	check_u64(health_now().frames, 4);
	end();
}

static void a_sample_without_a_chain_is_its_ip(void)
{
	begin();
	push_chain(USER, 1, 0x3010, NULL, 0);
	push_chain(KERNEL, 2, 0x3010, NULL, 0);
	PUSH(USER, 3, 0x4010, TALLY_CONTEXT_USER);
	check_folded("work;k3_[k] 10\nwork;u3 10\nwork;u4 10\n");
	/* The last one was asked for a chain and got none. */
	check_u64(health_now().with_chain, 1);
	check_u64(health_now().broken_chains, 1);
	end();
}

/* A call that never returns may be the last instruction of its function; the return address is
 * then the next function's first. Where the CPU was interrupted nothing is taken off. */
static void return_addresses_belong_to_the_call_before_them(void)
{
	begin();
	PUSH(USER, 1, 0x4000, TALLY_CONTEXT_USER, 0x4000, 0x4000, 0x2000);
	check_folded("work;main;u3;u4 10\n");
	end();
	begin();
	PUSH(KERNEL, 1, 0x9000, TALLY_CONTEXT_KERNEL, 0x9000, TALLY_CONTEXT_USER, 0x4000, 0x2000);
	check_folded("work;main;u4;k9_[k] 10\n");
	end();
}

static void a_precise_ip_replaces_where_the_cpu_slid_to(void)
{
	begin();
	PUSH(USER, 1, 0x4010, TALLY_CONTEXT_USER, 0x5010, 0x1010);
	check_folded("work;main;u4 10\n");
	end();
}

static void a_chain_without_its_kernel_part_still_ends_in_the_kernel(void)
{
	begin();
	PUSH(KERNEL, 1, 0x9010, TALLY_CONTEXT_USER, 0x5010, 0x1010);
	check_folded("work;main;u5;k9_[k] 10\n");
	end();
}

static void a_stack_that_was_seen_is_not_asked_for_again(void)
{
	begin();
	for (uint64_t i = 0; i < 100; i++)
		PUSH(USER, i, 0x3010, TALLY_CONTEXT_USER, 0x3010, 0x1010);
	check_int(world.asked, 2);
	/* Of a new stack only what is new. */
	PUSH(USER, 100, 0x4010, TALLY_CONTEXT_USER, 0x4010, 0x1010);
	check_int(world.asked, 3);
	check_folded("work;main;u3 1000\nwork;main;u4 10\n");
	end();
}

static void a_new_mapping_gives_addresses_a_new_meaning(void)
{
	begin();
	world.generation = "old";
	PUSH(USER, 10, 0x3010, TALLY_CONTEXT_USER, 0x3010, 0x1010);
	push_mmap(7, 20, USER, "/bin/work", 0);
	world.generation = "new";
	PUSH(USER, 30, 0x3010, TALLY_CONTEXT_USER, 0x3010, 0x1010);
	/* Rings are not in order of time: an older sample may come later. */
	PUSH(USER, 15, 0x3010, TALLY_CONTEXT_USER, 0x3010, 0x1010);
	check_folded("work;main;u3new 10\nwork;main;u3old 20\n");
	end();
}

static void code_that_is_replaced_gives_addresses_a_new_meaning(void)
{
	begin();
	world.replaced = 5;
	PUSH(USER, 4, 0x3010, TALLY_CONTEXT_USER, 0x3010, 0x1010);
	world.generation = "new";
	PUSH(USER, 5, 0x3010, TALLY_CONTEXT_USER, 0x3010, 0x1010);
	PUSH(USER, 3, 0x3010, TALLY_CONTEXT_USER, 0x3010, 0x1010); /* of another CPU */
	check_folded("work;main;u3 20\nwork;main;u3new 10\n");
	end();
}

static int push_ksymbol(uint64_t addr, uint32_t len, uint16_t flags)
{
	struct tally_record rec = { .type = TALLY_RECORD_KSYMBOL };

	rec.ksymbol = (struct tally_record_ksymbol){
		.addr = addr, .len = len, .kind = 1, .flags = flags, .name = "bpf_prog_1"
	};
	return tally_loader_push(loader, &rec, 0);
}

static void kernel_symbols_come_and_go(void)
{
	begin();
	check_int(push_ksymbol(0xffffffffc0000000, 0x100, 0), 0);
	check_int(world.pid, TALLY_MAPS_KERNEL);
	check_u64(world.flags, TALLY_MAPPING_SYMBOL);
	check_int(world.mapped, 1);
	check_int(push_ksymbol(0xffffffffc0000000, 0x100, 1), 0);
	check_int(world.mapped, 1);
	check_int(world.removed, 1);
	/* Beyond the last address. */
	check_int(push_ksymbol(UINT64_MAX - 1, 0x100, 0), 0);
	check_u64(health_now().undecodable, 1);
	end();
}

static void another_process_mapping_does_not_matter(void)
{
	begin();
	PUSH(USER, 10, 0x3010, TALLY_CONTEXT_USER, 0x3010, 0x1010);
	push_mmap(8, 20, USER, "/bin/other", 0);
	PUSH(USER, 30, 0x3010, TALLY_CONTEXT_USER, 0x3010, 0x1010);
	check_int(world.asked, 2);
	end();
}

static void names_are_those_of_their_time(void)
{
	struct tally_record rec = { .type = TALLY_RECORD_COMM };

	begin();
	PUSH(USER, 10, 0x3010, TALLY_CONTEXT_USER, 0x3010);
	rec.id = (struct tally_sample_id){ .time = 20, .has = TALLY_SAMPLE_TIME };
	rec.comm = (struct tally_record_comm){ .pid = 7, .tid = 7, .comm = "new" };
	check_int(tally_loader_push(loader, &rec, 0), 0);
	world.thread = "new";
	PUSH(USER, 30, 0x3010, TALLY_CONTEXT_USER, 0x3010);
	check_folded("new;u3 10\nwork;u3 10\n");
	end();
}

static void a_thread_without_a_name_is_its_number(void)
{
	begin();
	world.thread = NULL;
	PUSH(USER, 10, 0x3010, TALLY_CONTEXT_USER, 0x3010);
	check_folded(":7;u3 10\n");
	end();
}

static void made_up_forks_copy_no_maps(void)
{
	struct tally_record rec = { .type = TALLY_RECORD_FORK, .misc = TALLY_MISC_FORK_EXEC };

	begin();
	rec.task = (struct tally_record_task){ 8, 7, 8, 7, 10 };
	tally_loader_push(loader, &rec, 0);
	check_int(world.forked, 0);
	rec.misc = 0;
	tally_loader_push(loader, &rec, 0);
	check_int(world.forked, 1);
	end();
}

static void the_kernels_mappings_are_everybodys(void)
{
	begin();
	push_mmap(-1, 0, KERNEL, "[kernel.kallsyms]_text", 0xffffffff81000000);
	check_int(world.pid, TALLY_MAPS_KERNEL);
	check_int(world.mapped, 1);
	push_mmap(-1, 0, TALLY_MISC_GUEST_KERNEL, "[guest.kernel.kallsyms]_text", 1);
	check_int(world.mapped, 1);
	end();
}

static void a_chain_is_whole_when_it_reaches_the_start(void)
{
	begin();
	PUSH(USER, 1, 0x3010, TALLY_CONTEXT_USER, 0x3010, 0x1010); /* main */
	PUSH(USER, 2, 0x3010, TALLY_CONTEXT_USER, 0x3010, 0x1010, 0x2010);
	PUSH(USER, 3, 0x3010, TALLY_CONTEXT_USER, 0x3010, 0x5010, 0x2010); /* libc, nameless */
	check_u64(health_now().broken_chains, 0);
	PUSH(USER, 4, 0x3010, TALLY_CONTEXT_USER, 0x3010, 0x5010);
	PUSH(USER, 5, 0x2010, TALLY_CONTEXT_USER, 0x2010); /* the leaf alone */
	PUSH(USER, 5, 0x2010, TALLY_CONTEXT_USER, 0x2010); /* from memory */
	check_u64(health_now().broken_chains, 3);
	check_u64(health_now().with_chain, 6);
	check_u64(health_now().unknown_frames, 4);
	/* A kernel thread has no user part to be broken. */
	PUSH(KERNEL, 6, 0x9010, TALLY_CONTEXT_KERNEL, 0x9010);
	check_u64(health_now().with_chain, 6);
	end();
}

/* ---- stacks that were copied, deferred, or come from branches ---- */

#define COPIED (TALLY_SAMPLE_CALLCHAIN | TALLY_SAMPLE_REGS_USER | TALLY_SAMPLE_STACK_USER)

static struct tally_record sample_of(uint32_t cpumode, uint64_t ip, const uint64_t *chain,
				     size_t len)
{
	struct tally_record rec = { .type = TALLY_RECORD_SAMPLE, .misc = (uint16_t)cpumode };

	rec.id =
		(struct tally_sample_id){ .pid = 7, .tid = 7, .time = 1, .has = TALLY_SAMPLE_TIME };
	rec.sample.ip = ip;
	rec.sample.period = 10;
	rec.sample.chain = chain;
	rec.sample.chain_len = len;
	return rec;
}

#define SAMPLE(mode, ip, ...)                                  \
	sample_of(mode, ip, (const uint64_t[]){ __VA_ARGS__ }, \
		  sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

/* With an unwinder, which answers these frames. */
static void begin_unwinding(uint32_t end_of_stack, uint64_t stack_bytes)
{
	begin_with(TALLY_OPTS(loader, .unwinder = (void *)&world));
	world.unwound[0] = 0x3010;
	world.unwound[1] = 0x4010;
	world.unwound[2] = 0x5010;
	world.how = (struct tally_unwound){ .frames = 3,
					    .end = end_of_stack,
					    .stack_bytes = stack_bytes };
}

static void copies_of_stacks_are_unwound(void)
{
	const uint64_t word = 0;

	begin_unwinding(TALLY_UNWIND_WHOLE, 0);
	struct tally_record rec = SAMPLE(KERNEL, 0x9010, TALLY_CONTEXT_KERNEL, 0x9010);
	rec.sample.sample_type = COPIED;
	rec.sample.stack = &word;
	rec.sample.stack_len = sizeof(word);
	rec.sample.regs_user.abi = 2;
	check_int(tally_loader_push(loader, &rec, 0), 0);
	check_folded("work;u5;u4;u3;k9_[k] 10\n");
	/* The unwinder knows that it is whole, though no function of start code is there. */
	check_u64(health_now().broken_chains, 0);
	check_u64(health_now().copied_stacks, 1);
	/* What was told by frame pointers gives way to what is whole. */
	rec = SAMPLE(USER, 0x3010, TALLY_CONTEXT_USER, 0x3010, 0x8010);
	rec.sample.sample_type = COPIED;
	rec.sample.stack = &word;
	rec.sample.stack_len = sizeof(word);
	rec.sample.regs_user.abi = 2;
	check_int(tally_loader_push(loader, &rec, 0), 0);
	check_folded("work;u5;u4;u3 10\nwork;u5;u4;u3;k9_[k] 10\n");
	end();
}

/* perf record -g --user-regs: the leaf keeps no frame pointer, and its caller is in the link register. */
static void registers_mend_chains_by_frame_pointers(void)
{
	begin_unwinding(TALLY_UNWIND_CUT, 0);
	world.how.frames = 2;
	struct tally_record rec = SAMPLE(USER, 0x3010, TALLY_CONTEXT_USER, 0x3010, 0x7010, 0x1010);
	rec.sample.sample_type = TALLY_SAMPLE_CALLCHAIN | TALLY_SAMPLE_REGS_USER;
	rec.sample.regs_user.abi = 2;
	tally_loader_push(loader, &rec, 0);
	check_folded("work;main;u7;u4;u3 10\n");
	check_u64(health_now().broken_chains + health_now().cut_chains, 0);
	end();
	/* A short copy tells three; from where both agree frame pointers go on. */
	begin_unwinding(TALLY_UNWIND_CUT, 0);
	rec = SAMPLE(USER, 0x3010, TALLY_CONTEXT_USER, 0x3010, 0x5010, 0x7010, 0x1010);
	rec.sample.sample_type = COPIED;
	rec.sample.regs_user.abi = 2;
	tally_loader_push(loader, &rec, 0);
	check_folded("work;main;u7;u5;u4;u3 10\n");
	check_u64(health_now().broken_chains + health_now().cut_chains, 0);
	end();
}

static void stacks_that_are_cut_or_broken_are_counted_as_such(void)
{
	const uint64_t word = 0;

	begin_unwinding(TALLY_UNWIND_CUT, 12345);
	struct tally_record rec = SAMPLE(USER, 0x3010, TALLY_CONTEXT_USER);
	rec.sample.sample_type = COPIED;
	rec.sample.stack = &word;
	rec.sample.stack_len = sizeof(word);
	rec.sample.regs_user.abi = 2;
	tally_loader_push(loader, &rec, 0);
	check_u64(health_now().cut_chains, 1);
	check_u64(health_now().broken_chains, 0);
	check_u64(health_now().wanted_stack, 12345);
	world.how.end = TALLY_UNWIND_BROKEN;
	world.how.stack_bytes = 0;
	tally_loader_push(loader, &rec, 0);
	check_u64(health_now().cut_chains, 1);
	check_u64(health_now().broken_chains, 1);
	check_u64(health_now().with_chain, 2);
	check_folded("work;u5;u4;u3 20\n");
	end();
}

/* As recorder/unwinding.h has it: registers of abi 0 say whole, a second mark at the end says cut. */
static void what_was_unwound_while_recording_tells_how_it_ended(void)
{
	begin();
	struct tally_record rec = SAMPLE(USER, 0x3010, TALLY_CONTEXT_USER, 0x3010, 0x4010);
	rec.sample.sample_type = COPIED;
	tally_loader_push(loader, &rec, 0);
	check_u64(health_now().broken_chains + health_now().cut_chains, 0);
	world.stack_bytes = 4711;
	rec = SAMPLE(USER, 0x3010, TALLY_CONTEXT_USER, 0x3010, 0x4010, TALLY_CONTEXT_USER);
	rec.sample.sample_type = COPIED;
	rec.sample.regs_user.abi = 2;
	tally_loader_push(loader, &rec, 0);
	check_u64(health_now().cut_chains, 1);
	check_u64(health_now().broken_chains, 0);
	check_u64(health_now().wanted_stack, 4711);
	check_folded("work;u4;u3 20\n");
	end();
}

/*
 * What a signal interrupted stands at its first instruction, and so does the code to which its
 * handler returns; the caller of the one, behind a call that is its function's last, does not.
 */
static void what_a_signal_interrupted_has_called_nobody(void)
{
	static const uint32_t flags[] = { 0, TALLY_LOADER_LINES };
	struct tally_record rec;

	for (int i = 0; i < 2; i++) {
		begin_with(TALLY_OPTS(loader, .unwinder = (void *)&world, .flags = flags[i]));
		/* Unwound while it was recorded. */
		rec = SAMPLE(USER, 0x3010, TALLY_CONTEXT_USER, 0x3010, 0x6000, 0x5000, 0x4000);
		rec.sample.sample_type = COPIED;
		tally_loader_push(loader, &rec, 0);
		check_folded("work;u3;u5;u6;u3 10\n");
		/* By frame pointers the function itself is left out: there stands its caller. */
		rec = SAMPLE(USER, 0x3010, TALLY_CONTEXT_USER, 0x3010, 0x6000, 0x5000, 0x4000);
		tally_loader_push(loader, &rec, 0);
		check_folded("work;u3;u4;u6;u3 10\nwork;u3;u5;u6;u3 10\n");
		end();
	}
	/* From a copy of the stack. */
	const uint64_t word = 0;
	begin_unwinding(TALLY_UNWIND_WHOLE, 0);
	world.unwound[1] = 0x6000;
	world.unwound[2] = 0x5000;
	rec = SAMPLE(USER, 0x3010, TALLY_CONTEXT_USER);
	rec.sample.sample_type = COPIED;
	rec.sample.stack = &word;
	rec.sample.stack_len = sizeof(word);
	rec.sample.regs_user.abi = 2;
	tally_loader_push(loader, &rec, 0);
	check_folded("work;u5;u6;u3 10\n");
	end();
}

static void push_deferred(int32_t tid, uint64_t cookie, const uint64_t *chain, size_t len)
{
	struct tally_record rec = { .type = TALLY_RECORD_CALLCHAIN_DEFERRED };

	rec.id = (struct tally_sample_id){
		.pid = 7, .tid = tid, .time = 2, .has = TALLY_SAMPLE_TIME
	};
	rec.deferred = (struct tally_record_deferred){ cookie, chain, len };
	check_int(tally_loader_push(loader, &rec, 0), 0);
}

static void deferred_parts_are_joined_by_thread_and_cookie(void)
{
	begin();
	push_deferred(7, 42, (const uint64_t[]){ TALLY_CONTEXT_USER, 0x3010, 0x1010 }, 3);
	push_deferred(8, 43, (const uint64_t[]){ TALLY_CONTEXT_USER, 0x6010, 0x1010 }, 3);
	struct tally_record rec = SAMPLE(KERNEL, 0x9010, TALLY_CONTEXT_KERNEL, 0x9010,
					 TALLY_CONTEXT_USER_DEFERRED, 42);
	check_int(tally_loader_push(loader, &rec, 0), 0);
	check_folded("work;main;u3;k9_[k] 10\n");
	check_u64(health_now().broken_chains, 0);
	/* Another thread's part is not taken: this one's is missing, and its cookie is no address. */
	rec = SAMPLE(KERNEL, 0x9010, TALLY_CONTEXT_KERNEL, 0x9010, TALLY_CONTEXT_USER_DEFERRED, 43);
	check_int(tally_loader_push(loader, &rec, 0), 0);
	check_folded("work;k9_[k] 10\nwork;main;u3;k9_[k] 10\n");
	end();
}

/* How the kernel lays out a branch: from, to, flags. */
static struct tally_record branches_of(const uint64_t *chain, size_t len,
				       const uint64_t (*calls)[3], uint64_t count)
{
	struct tally_record rec = sample_of(USER, 0x3010, chain, len);

	rec.sample.sample_type = TALLY_SAMPLE_CALLCHAIN | TALLY_SAMPLE_BRANCH_STACK;
	rec.sample.branch_sample_type = TALLY_BRANCH_CALL_STACK;
	rec.sample.branches = calls;
	rec.sample.branch_count = count;
	return rec;
}

static void call_stack_branches_are_the_callers(void)
{
	static const uint64_t chain[] = { TALLY_CONTEXT_USER, 0x3010, 0x8010 };
	static const uint64_t calls[][3] = { { 0x4010, 0x3000 },
					     { 0x5010, 0x4000 },
					     { 0x1010, 0x5000 } };

	begin();
	/* Frame pointers had led astray. */
	struct tally_record rec = branches_of(chain, 3, calls, 3);
	check_int(tally_loader_push(loader, &rec, 0), 0);
	check_folded("work;main;u5;u4;u3 10\n");
	end();
}

/* The CPU keeps five; what lay beyond is that of the sample before, which had the same outer calls. */
static void deeper_stacks_are_stitched_to_those_before_them(void)
{
	static const uint64_t chain[] = { TALLY_CONTEXT_USER, 0x3010 };
	static const uint64_t first[][3] = {
		{ 0x4010 }, { 0x5010 }, { 0x6010 }, { 0x7010 }, { 0x1010 }
	};
	static const uint64_t second[][3] = {
		{ 0x8010 }, { 0x4010 }, { 0x5010 }, { 0x6010 }, { 0x7010 }
	};
	static const uint64_t other[][3] = {
		{ 0x8010 }, { 0xa010 }, { 0xb010 }, { 0xc010 }, { 0xd010 }
	};

	begin();
	struct tally_record rec = branches_of(chain, 2, first, 5);
	check_int(tally_loader_push(loader, &rec, 0), 0);
	rec = branches_of(chain, 2, second, 5);
	check_int(tally_loader_push(loader, &rec, 0), 0);
	check_folded("work;main;u7;u6;u5;u4;u3 10\nwork;main;u7;u6;u5;u4;u8;u3 10\n");
	/* Nothing is stitched to what has nothing in common with it. */
	rec = branches_of(chain, 2, other, 5);
	check_int(tally_loader_push(loader, &rec, 0), 0);
	check_folded("work;main;u7;u6;u5;u4;u3 10\nwork;main;u7;u6;u5;u4;u8;u3 10\n"
		     "work;u13;u12;u11;u10;u8;u3 10\n");
	end();
}

static void times_are_a_filter(void)
{
	begin_with(TALLY_OPTS(loader, .from = 10, .to = 20));
	for (uint64_t time = 8; time < 24; time++)
		push_chain(USER, time, 0x3010, NULL, 0);
	struct tally_load_health h = health_now();
	check_u64(h.samples, 10);
	check_u64(h.filtered, 6);
	check_u64(h.first, 10);
	check_u64(h.last, 19);
	end();
}

static void loss_is_added_up(void)
{
	struct tally_record rec = { .type = TALLY_RECORD_LOST, .lost = { .lost = 3 } };

	begin();
	tally_loader_push(loader, &rec, 0);
	rec.type = TALLY_RECORD_LOST_SAMPLES;
	rec.lost.lost = 4;
	tally_loader_push(loader, &rec, 0);
	check_u64(health_now().lost, 7);
	end();
}

static void nonsense_is_counted_and_left_out(void)
{
	struct tally_record rec = { .type = TALLY_RECORD_MMAP };

	begin();
	check_int(tally_loader_push(loader, &rec, 0), 0);
	check_u64(health_now().undecodable, 1);
	rec.type = 4711;
	check_int(tally_loader_push(loader, &rec, 0), 0);
	check_u64(health_now().undecodable, 1);
	end();
}

/* "label source" of a stack and those below it, innermost first. */
static const char *sources_of(int32_t stack)
{
	static char text[256];
	struct tally_profile_function_info info;
	int32_t parent, function;
	uint64_t address;

	for (text[0] = '\0'; stack >= 0; stack = parent) {
		const char *source = tally_profile_stack_source(profile, (uint32_t)stack);
		tally_profile_stack_info(profile, (uint32_t)stack, &parent, &function, &address);
		tally_profile_function_info(profile, (uint32_t)function, &info);
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s %s;", info.label,
			 source ? source : "-");
	}
	return text;
}

static const char *load_page_9(uint32_t flags)
{
	const struct tally_loader_opts opts = { .size = sizeof(opts), .flags = flags };
	const uint64_t chain[] = { TALLY_CONTEXT_USER, 0x9010, 0x1021 };
	struct tally_profile_row row;

	begin_with(&opts);
	check_int(push_chain(USER, 20, 0, chain, 3), 0);
	check_int(tally_profile_row(profile, 0, &row), 0);
	return sources_of(row.stack);
}

static void lines_and_inlined_calls_come_when_asked_for(void)
{
	check_str(load_page_9(0), "u9 -;main -;");
	end();
	/* What was executed is the line of the innermost, whoever it was inlined into. */
	check_str(load_page_9(TALLY_LOADER_LINES), "u9 /s/a.c:3;main /s/c.c:32;");
	end();
	check_str(load_page_9(TALLY_LOADER_INLINE), "a (inlined) -;b (inlined) -;u9 -;main -;");
	end();
	check_str(load_page_9(TALLY_LOADER_LINES | TALLY_LOADER_INLINE),
		  "a (inlined) /s/a.c:3;b (inlined) /s/b.c:4;u9 /s/c.c:16;main /s/c.c:32;");
	check_u64(health_now().frames, 2);
	check_u64(health_now().broken_chains, 0);
	end();
}

static void a_lack_of_memory_ends_it(void)
{
	begin();
	world.fail = -ENOMEM;
	check_int(push_mmap(7, 20, USER, "/bin/work", 0), -ENOMEM);
	end();
}

static void an_event_that_does_not_exist_is_refused(void)
{
	struct tally_record rec = { .type = TALLY_RECORD_SAMPLE, .misc = USER };

	begin();
	check_int(tally_loader_push(loader, &rec, 1), -EINVAL);
	check_u64(health_now().samples, 0);
	end();
}

int main(void)
{
	tap_run(context_markers_set_the_mode_and_are_no_frames);
	tap_run(a_sample_without_a_chain_is_its_ip);
	tap_run(return_addresses_belong_to_the_call_before_them);
	tap_run(a_precise_ip_replaces_where_the_cpu_slid_to);
	tap_run(a_chain_without_its_kernel_part_still_ends_in_the_kernel);
	tap_run(a_stack_that_was_seen_is_not_asked_for_again);
	tap_run(a_new_mapping_gives_addresses_a_new_meaning);
	tap_run(code_that_is_replaced_gives_addresses_a_new_meaning);
	tap_run(kernel_symbols_come_and_go);
	tap_run(another_process_mapping_does_not_matter);
	tap_run(names_are_those_of_their_time);
	tap_run(a_thread_without_a_name_is_its_number);
	tap_run(made_up_forks_copy_no_maps);
	tap_run(the_kernels_mappings_are_everybodys);
	tap_run(a_chain_is_whole_when_it_reaches_the_start);
	tap_run(copies_of_stacks_are_unwound);
	tap_run(registers_mend_chains_by_frame_pointers);
	tap_run(stacks_that_are_cut_or_broken_are_counted_as_such);
	tap_run(what_was_unwound_while_recording_tells_how_it_ended);
	tap_run(what_a_signal_interrupted_has_called_nobody);
	tap_run(deferred_parts_are_joined_by_thread_and_cookie);
	tap_run(call_stack_branches_are_the_callers);
	tap_run(deeper_stacks_are_stitched_to_those_before_them);
	tap_run(times_are_a_filter);
	tap_run(loss_is_added_up);
	tap_run(nonsense_is_counted_and_left_out);
	tap_run(lines_and_inlined_calls_come_when_asked_for);
	tap_run(a_lack_of_memory_ends_it);
	tap_run(an_event_that_does_not_exist_is_refused);
	return tap_end();
}
