/* SPDX-License-Identifier: MIT */
/*
 * Every field that a sample can have and this kernel can fill, each against a value that is known from
 * elsewhere: what the test itself did, /proc, another system call.
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include "fresh.h"
#include "kernel-mode.h"
#include "sampling.h"
#include "tracefs.h"

#define PAGES 50

static bool has_tracefs;

/* One page fault after the other, at addresses that are known. */
static struct fresh fresh;

FRESH_UNWATCHED ALONE static void touch_page(size_t i)
{
	fresh.at[i * fresh.page_size] = 1;
}

static uint64_t page_at(size_t i)
{
	return (uint64_t)(uintptr_t)fresh.at + i * fresh.page_size;
}

/* Is its address in the fresh pages? Others fault too: of the stack, of the library. */
static bool is_fresh(const struct tally_sampled *got, size_t *page)
{
	uint64_t offset = got->record->sample.addr - page_at(0);

	*page = offset / fresh.page_size;
	return offset < fresh.pages * fresh.page_size;
}

/*
 * Samples the faults of PAGES pages and calls `look` for each; the number of pages that were seen.
 * ADDR is always asked for.
 */
static size_t with_faults(struct tally_sampler_opts opts,
			  void (*look)(const struct tally_sampled *got, size_t page))
{
	struct sampling s;
	const struct tally_sampled *got;
	size_t seen = 0, page;

	fresh = fresh_map(PAGES);
	opts.period = opts.period ? opts.period : 1;
	opts.sample_type |= TALLY_SAMPLE_ADDR;
	if (!check(fresh.at != NULL) || !sampling_start(&s, "page-faults", &self, opts))
		return 0;
	check_int(tally_sampler_enable(s.sampler), 0);
	for (size_t i = 0; i < PAGES; i++)
		touch_page(i);
	check_int(tally_sampler_disable(s.sampler), 0);
	while ((got = sampling_next(&s, TALLY_RECORD_SAMPLE, 0)))
		if (is_fresh(got, &page)) {
			check_u64(got->record->sample.addr, page_at(page));
			seen++;
			look(got, page);
		}
	sampling_close(&s);
	fresh_unmap(&fresh);
	return seen;
}

static clockid_t used_clock;
static uint64_t began, last_time;
static int32_t used_cpu;

static void look_at_where(const struct tally_sampled *got, size_t page)
{
	const struct tally_record *rec = got->record;

	(void)page;
	check_int(rec->id.pid, getpid());
	check_int(rec->id.tid, gettid_());
	check_int(rec->id.cpu, used_cpu);
	check_int(got->event, 0);
	check(rec->id.time >= began && rec->id.time <= clock_now(used_clock));
	check(rec->id.time >= last_time);
	last_time = rec->id.time;
	check_u64(rec->sample.period, 1);
	check_int(rec->misc & TALLY_MISC_CPUMODE, TALLY_MISC_USER);
	/* The instruction that touches: in a function that is no longer than this. */
	check(rec->sample.ip - (uint64_t)(uintptr_t)touch_page < 4096);
}

static void who_when_and_where(void)
{
	static const clockid_t clocks[] = { CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_BOOTTIME,
					    CLOCK_REALTIME, CLOCK_TAI };
	cpu_set_t before;

	sched_getaffinity(0, sizeof(before), &before);
	used_cpu = stay_here();
	for (size_t i = 0; i < sizeof(clocks) / sizeof(*clocks); i++) {
		used_clock = clocks[i];
		began = clock_now(used_clock);
		last_time = 0;
		struct tally_sampler_opts opts = { .flags = TALLY_SAMPLER_USE_CLOCKID,
						   .clockid = used_clock };
		check_int(with_faults(opts, look_at_where), PAGES);
	}
	sched_setaffinity(0, sizeof(before), &before);
}

static uint64_t known_ids[3];

static void look_at_ids(const struct tally_sampled *got, size_t page)
{
	(void)page;
	known_ids[0] = got->record->id.id;
	known_ids[1] = got->record->id.stream_id;
}

/* A sample of one's own has the event's id as both; PERF_EVENT_IOC_ID tells it. */
static void ids_are_those_of_the_event(void)
{
	const uint64_t types[] = { TALLY_SAMPLE_ID, TALLY_SAMPLE_STREAM_ID,
				   TALLY_SAMPLE_IDENTIFIER | TALLY_SAMPLE_STREAM_ID };
	struct sampling s;
	const uint64_t *ids;
	const struct tally_sampled *got;

	for (size_t i = 0; i < 3; i++) {
		if (!sampling_start(
			    &s, "page-faults", &self,
			    (struct tally_sampler_opts){ .period = 1, .sample_type = types[i] }))
			return;
		fresh = fresh_map(1);
		check_int(tally_sampler_enable(s.sampler), 0);
		touch_page(0);
		check_int(tally_sampler_disable(s.sampler), 0);
		check_int(tally_sampler_ids(s.sampler, 0, &ids), 1);
		got = sampling_next(&s, TALLY_RECORD_SAMPLE, 0);
		if (check(got != NULL)) {
			look_at_ids(got, 0);
			check_u64(known_ids[0], types[i] == TALLY_SAMPLE_STREAM_ID ? 0 : ids[0]);
			check_u64(known_ids[1], types[i] == TALLY_SAMPLE_ID ? 0 : ids[0]);
		}
		sampling_close(&s);
		fresh_unmap(&fresh);
	}
}

static uint64_t periods;

static void look_at_period(const struct tally_sampled *got, size_t page)
{
	(void)page;
	periods += got->record->sample.period;
	check_u64(got->record->sample.period, 5);
}

static void a_period_is_told(void)
{
	periods = 0;
	size_t seen = with_faults((struct tally_sampler_opts){ .period = 5 }, look_at_period);

	/* Each fifth; a few faults of others may be counted among them. */
	check(seen >= PAGES / 5 - 2 && seen <= PAGES / 5 + 2);
}

static uint64_t last_value, reads;

static void look_at_read(const struct tally_sampled *got, size_t page)
{
	struct tally_record_count count;

	(void)page;
	reads++;
	check_u64(got->record->sample.counts.count, 1);
	check(tally_record_count(got->record, 0, &count));
	/* Each fault is one: it grows with each sample, by this one. */
	check(count.value >= reads && count.value > last_value);
	check(got->record->sample.counts.running_ns <= got->record->sample.counts.enabled_ns);
	check_u64(count.lost, 0);
	last_value = count.value;
}

static void a_reading_is_in_each_sample(void)
{
	reads = last_value = 0;
	check_int(with_faults((struct tally_sampler_opts){ .sample_type = TALLY_SAMPLE_READ },
			      look_at_read),
		  PAGES);
	/* Nobody else faulted more than a few times. */
	check(last_value < PAGES + 20);
}

static uint32_t chain_flags;

static void look_at_chain(const struct tally_sampled *got, size_t page)
{
	const struct tally_record *rec = got->record;
	bool user = false, kernel = false;
	uint64_t first_user = 0;

	(void)page;
	for (uint64_t i = 0; i < rec->sample.chain_len; i++) {
		uint64_t ip = tally_sample_ip(rec, i);
		user |= ip == TALLY_CONTEXT_USER;
		kernel |= ip == TALLY_CONTEXT_KERNEL;
		if (user && !first_user && ip != TALLY_CONTEXT_USER)
			first_user = ip;
	}
	/* A fault in user mode: its registers have no part in the kernel. */
	check(!kernel);
	check_int(user, !(chain_flags & TALLY_SAMPLER_NO_USER_CHAIN));
	if (user)
		check_u64(first_user, rec->sample.ip);
}

static void look_at_short_chain(const struct tally_sampled *got, size_t page)
{
	uint64_t addresses = 0;

	(void)page;
	for (uint64_t i = 0; i < got->record->sample.chain_len; i++)
		addresses += tally_sample_ip(got->record, i) < TALLY_CONTEXT_MAX;
	check(addresses >= 1 && addresses <= 2);
}

static void chains_begin_at_the_ip(void)
{
	const uint32_t flags[] = { 0, TALLY_SAMPLER_NO_KERNEL_CHAIN, TALLY_SAMPLER_NO_USER_CHAIN };

	for (size_t i = 0; i < 3; i++) {
		chain_flags = flags[i];
		check_int(
			with_faults((struct tally_sampler_opts){ .flags = TALLY_SAMPLER_CALLCHAIN |
									  flags[i] },
				    look_at_chain),
			PAGES);
	}
	check_int(with_faults((struct tally_sampler_opts){ .flags = TALLY_SAMPLER_CALLCHAIN,
							   .max_stack = 2 },
			      look_at_short_chain),
		  PAGES);
}

/* Bits of tally_reg_name() by what they are for. */
static unsigned register_bit(const char *one, const char *other)
{
	struct utsname host;

	uname(&host);
	for (unsigned bit = 0; bit < 64; bit++) {
		const char *name = tally_reg_name(host.machine, bit);
		if (name && (!strcmp(name, one) || !strcmp(name, other)))
			return bit;
	}
	return 64;
}

static char *stack_marker;

static void look_at_regs(const struct tally_sampled *got, size_t page)
{
	const struct tally_record *rec = got->record;
	unsigned sp = register_bit("SP", "sp"), ip = register_bit("IP", "pc");
	uint64_t value = 0;

	(void)page;
	check_u64(rec->sample.regs_user.abi, sizeof(long) == 8 ? 2 : 1);
	check(tally_regs_value(rec, &rec->sample.regs_user, ip, &value));
	check_u64(value, rec->sample.ip);
	check(tally_regs_value(rec, &rec->sample.regs_user, sp, &value));
	/* Below the frame of the caller, and not far. */
	check((uint64_t)(uintptr_t)stack_marker - value < 8192);
	/* The interrupted mode was the user's. */
	check(tally_regs_value(rec, &rec->sample.regs_intr, ip, &value));
	check_u64(value, rec->sample.ip);
}

static void registers_are_those_of_the_thread(void)
{
	char here;
	uint64_t mask = 1ull << register_bit("SP", "sp") | 1ull << register_bit("IP", "pc");

	stack_marker = &here;
	check_int(with_faults((struct tally_sampler_opts){ .regs_user = mask, .regs_intr = mask },
			      look_at_regs),
		  PAGES);
}

static volatile unsigned char pattern_[64];
static const volatile unsigned char *pattern;

static void look_at_stack(const struct tally_sampled *got, size_t page)
{
	const struct tally_record *rec = got->record;
	uint64_t sp = 0, offset;

	(void)page;
	check(tally_regs_value(rec, &rec->sample.regs_user, register_bit("SP", "sp"), &sp));
	offset = (uint64_t)(uintptr_t)pattern - sp;
	if (!check(offset + 64 <= rec->sample.stack_dyn_size) ||
	    !check(rec->sample.stack_dyn_size <= rec->sample.stack_len))
		return;
	for (int i = 0; i < 64; i++)
		if (!check_int(((const unsigned char *)rec->sample.stack)[offset + (uint64_t)i],
			       (i * 37 + 11) & 255))
			return;
}

static void the_stack_is_copied(void)
{
	volatile unsigned char on_stack[64];

	for (int i = 0; i < 64; i++)
		on_stack[i] = (unsigned char)(i * 37 + 11);
	pattern = on_stack;
	check_int(with_faults((struct tally_sampler_opts){ .stack_bytes = 16384 }, look_at_stack),
		  PAGES);
	/* A copy of 65528 bytes leaves no room for the rest: the kernel copies less. */
	check_int(with_faults((struct tally_sampler_opts){ .stack_bytes = 65528 }, look_at_stack),
		  PAGES);
	pattern = pattern_;
}

/* The kernel's PERF_MEM_NA: no access, level, snoop, lock, TLB is known; <linux/perf_event.h>. */
static void look_at_nothing(const struct tally_sampled *got, size_t page)
{
	const struct tally_record *rec = got->record;
	struct tally_data_src d = tally_data_src_decode(rec->sample.data_src);

	(void)page;
	check_int(d.op, 1);
	check_int(d.level, 1);
	check_int(d.snoop, 1);
	check_int(d.lock, 1);
	check_int(d.dtlb, 1);
	check_u64(rec->sample.weight, 0);
	check_u64(rec->sample.transaction, 0);
}

static void software_tells_no_data_source(void)
{
	const uint64_t weights[] = { TALLY_SAMPLE_WEIGHT, TALLY_SAMPLE_WEIGHT_STRUCT };

	for (size_t i = 0; i < 2; i++)
		check_int(with_faults(
				  (struct tally_sampler_opts){
					  .flags = TALLY_SAMPLER_DATA,
					  .sample_type = weights[i] | TALLY_SAMPLE_TRANSACTION },
				  look_at_nothing),
			  PAGES);
}

/* proc(5): /proc/pid/pagemap, 64 bits a page: bit 63 present, bits 0 to 54 the frame. */
static uint64_t physical(uint64_t addr)
{
	uint64_t entry = 0;
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return 0;
	ssize_t n = pread(fd, &entry, sizeof(entry), (off_t)(addr / fresh.page_size * 8));
	close(fd);
	if (n != sizeof(entry) || !(entry >> 63))
		return 0;
	return (entry & ((1ull << 55) - 1)) * fresh.page_size + addr % fresh.page_size;
}

static uint64_t frames[PAGES];

static void look_at_physical(const struct tally_sampled *got, size_t page)
{
	check_u64(got->record->sample.phys_addr, frames[page]);
	check_u64(got->record->sample.data_page_size, fresh.page_size);
	/* That of this program's text: it may lie in a huge page. */
	uint64_t code = got->record->sample.code_page_size;
	check(code >= fresh.page_size && !(code & (code - 1)));
}

/*
 * A fault is sampled before its page is there. So a child writes to pages that it shares with its
 * parent: at the fault the address still leads to the parent's, which pagemap told before.
 */
static int look_in_a_child(void)
{
	const struct tally_sampler_opts opts = {
		.period = 1,
		.sample_type = TALLY_SAMPLE_ADDR | TALLY_SAMPLE_PHYS_ADDR |
			       TALLY_SAMPLE_DATA_PAGE_SIZE | TALLY_SAMPLE_CODE_PAGE_SIZE,
	};
	const struct tally_sampled *got;
	struct sampling s;
	size_t page, seen = 0;

	for (size_t i = 0; i < PAGES; i++)
		frames[i] = physical(page_at(i));
	if (!sampling_start(&s, "page-faults", &self, opts))
		return 1;
	tally_sampler_enable(s.sampler);
	for (size_t i = 0; i < PAGES; i++)
		touch_page(i);
	tally_sampler_disable(s.sampler);
	while ((got = sampling_next(&s, TALLY_RECORD_SAMPLE, 0)))
		if (is_fresh(got, &page)) {
			look_at_physical(got, page);
			seen++;
		}
	check_int(seen, PAGES);
	sampling_close(&s);
	return tap_.bad;
}

static void physical_addresses_and_page_sizes(void)
{
	struct sampling s;
	int status = 0;
	int r = sampling_open(&s, "page-faults", &self,
			      (struct tally_sampler_opts){ .sample_type = TALLY_SAMPLE_PHYS_ADDR });

	sampling_close(&s);
	if (r == -EACCES)
		tap_skip("PHYS_ADDR is for privileged users");
	fresh = fresh_map(PAGES);
	for (size_t i = 0; i < PAGES; i++)
		touch_page(i);
	if (!physical(page_at(0)))
		tap_skip("/proc/self/pagemap does not tell frames to this user");
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		int bad = look_in_a_child();
		fflush(stdout);
		_exit(bad);
	}
	check(waitpid(child, &status, 0) == child);
	check_int(status, 0);
	fresh_unmap(&fresh);
}

static uint64_t cgroup_inode;

static void look_at_cgroup(const struct tally_sampled *got, size_t page)
{
	(void)page;
	check_u64(got->record->sample.cgroup, cgroup_inode);
}

/* In a child, which ends there: nobody's cgroup is changed for longer. */
static void the_cgroup_is_the_folders_inode(void)
{
	char folder[256];
	int status = 0;

	cgroup_inode = make_cgroup(folder, sizeof(folder), "tally-bits");
	if (!cgroup_inode)
		tap_skip("no cgroup can be made here");
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		bool ok = check(enter_cgroup(folder)) &&
			  check_int(with_faults(
					    (struct tally_sampler_opts){
						    .sample_type = TALLY_SAMPLE_CGROUP },
					    look_at_cgroup),
				    PAGES) &&
			  !tap_.bad;
		fflush(stdout);
		_exit(ok ? 0 : 1);
	}
	check(waitpid(child, &status, 0) == child);
	check_int(status, 0);
	check_int(rmdir(folder), 0);
}

/* The kernel's own number of it is PROC_PID_INIT_INO (include/linux/proc_ns.h). */
static bool in_first_pid_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) == 0 && st.st_ino == 0xEFFFFFFC;
}

/* raw_syscalls:sys_enter/format: long id at 8, unsigned long args[6] at 16. */
static void raw_fields_are_those_of_the_call(void)
{
	struct sampling s;
	const struct tally_sampled *got;
	int found = 0;

	if (!has_tracefs)
		tap_skip("no tracefs");
	if (!sampling_start(&s, "raw_syscalls:sys_enter", &self,
			    (struct tally_sampler_opts){ .flags = TALLY_SAMPLER_RAW }))
		return;
	check_int(tally_sampler_enable(s.sampler), 0);
	syscall(SYS_close, -12345L);
	check_int(tally_sampler_disable(s.sampler), 0);
	while ((got = sampling_next(&s, TALLY_RECORD_SAMPLE, 0))) {
		const char *raw = got->record->sample.raw;
		int64_t id, arg;
		if (!check(got->record->sample.raw_len >= 64))
			continue;
		int32_t pid;
		memcpy(&pid, raw + 4, sizeof(pid)); /* common_pid */
		/* It is that of the first namespace, whatever this one is. */
		if (in_first_pid_namespace())
			check_int(pid, gettid_());
		memcpy(&id, raw + 8, sizeof(id));
		memcpy(&arg, raw + 16, sizeof(arg));
		found += id == SYS_close && (int32_t)arg == -12345;
	}
	check_int(found, 1);
	sampling_close(&s);
}

/* The flag is for events that have fields: a clock beside one has none. */
static void what_has_no_fields_has_no_raw(void)
{
	struct sampling s;

	if (!has_tracefs)
		tap_skip("no tracefs");
	if (!sampling_start(&s, "raw_syscalls:sys_enter,page-faults", &self,
			    (struct tally_sampler_opts){ .flags = TALLY_SAMPLER_RAW }))
		return;
	check(tally_sampler_attr(s.sampler, 0)->sample_type & TALLY_SAMPLE_RAW);
	check(!(tally_sampler_attr(s.sampler, 1)->sample_type & TALLY_SAMPLE_RAW));
	sampling_close(&s);
}

static volatile unsigned sink;

ALONE void sampled_function(void);

ALONE void sampled_function(void)
{
	sink++;
}

/* A uprobe stops at the function's first instruction: its address is the ip. */
static void a_probes_ip_is_its_label(void)
{
	struct sampling s;
	const struct tally_sampled *got;
	char path[256] = "", name[320];
	int found = 0;

	if (readlink("/proc/self/exe", path, sizeof(path) - 1) < 0)
		tap_skip("no /proc/self/exe");
	snprintf(name, sizeof(name), "uprobe:%s:sampled_function", path);
	int r = sampling_open(
		&s, name, &self,
		(struct tally_sampler_opts){ .regs_user = 1ull << register_bit("IP", "pc") });
	if (r < 0) {
		printf("# %s\n", s.err.text);
		sampling_close(&s);
		tap_skip("uprobes cannot be opened here");
	}
	check_int(tally_sampler_enable(s.sampler), 0);
	for (int i = 0; i < 7; i++)
		sampled_function();
	check_int(tally_sampler_disable(s.sampler), 0);
	while ((got = sampling_next(&s, TALLY_RECORD_SAMPLE, 0))) {
		uint64_t ip = 0;
		found++;
		check_u64(got->record->sample.ip, (uint64_t)(uintptr_t)sampled_function);
		check(tally_regs_value(got->record, &got->record->sample.regs_user,
				       register_bit("IP", "pc"), &ip));
		check_u64(ip, (uint64_t)(uintptr_t)sampled_function);
	}
	check_int(found, 7);
	sampling_close(&s);
}

static void software_has_no_branch_stacks(void)
{
	struct sampling s;

	check_int(sampling_open(&s, "page-faults", &self,
				(struct tally_sampler_opts){
					.period = 1, .branch_sample_type = TALLY_BRANCH_ANY }),
		  -EOPNOTSUPP);
	check_has(s.err.text, "branch");
	sampling_close(&s);
}

/* perf_event_open(2): more than kernel.perf_event_max_stack is EOVERFLOW. */
static void a_chain_has_a_largest_depth(void)
{
	struct sampling s;

	check_int(sampling_open(&s, "page-faults", &self,
				(struct tally_sampler_opts){ .flags = TALLY_SAMPLER_CALLCHAIN,
							     .max_stack = 65535 }),
		  -EOVERFLOW);
	check_has(s.err.text, "max_stack");
	sampling_close(&s);
}

int main(void)
{
	if (!kernel_mode_allowed())
		return kernel_mode_skip();
	has_tracefs = tracefs_ready();
	tap_run(who_when_and_where);
	tap_run(ids_are_those_of_the_event);
	tap_run(a_period_is_told);
	tap_run(a_reading_is_in_each_sample);
	tap_run(chains_begin_at_the_ip);
	tap_run(registers_are_those_of_the_thread);
	tap_run(the_stack_is_copied);
	tap_run(software_tells_no_data_source);
	tap_run(physical_addresses_and_page_sizes);
	tap_run(the_cgroup_is_the_folders_inode);
	tap_run(raw_fields_are_those_of_the_call);
	tap_run(what_has_no_fields_has_no_raw);
	tap_run(a_probes_ip_is_its_label);
	tap_run(software_has_no_branch_stacks);
	tap_run(a_chain_has_a_largest_depth);
	return tap_end();
}
