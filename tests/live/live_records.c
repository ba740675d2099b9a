/* SPDX-License-Identifier: MIT */
/*
 * Every record beside the samples that this kernel can be made to send, each caused here and compared
 * with what is known from elsewhere. Not among them: LOST_SAMPLES, AUX, ITRACE_START, AUX_OUTPUT_HW_ID,
 * which take hardware, and THROTTLE, which the kernel spares software.
 */
#include <linux/bpf.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "kernel-mode.h"
#include "sampling.h"
#include "tracefs.h"

static bool has_tracefs;

/* The records of what `act` does, with the event enabled meanwhile. */
static bool with(struct sampling *s, const struct tally_target *target, uint32_t flags,
		 void (*act)(void))
{
	struct tally_sampler_opts opts = { .flags = flags, .period = 1 };

	if (!sampling_start(s, "dummy", target, opts))
		return false;
	check_int(tally_sampler_enable(s->sampler), 0);
	act();
	check_int(tally_sampler_disable(s->sampler), 0);
	return true;
}

/* The fields of the sample_id that every record has. */
static void check_id(const struct tally_record *rec, int32_t pid, int32_t tid)
{
	check_int(rec->id.pid, pid);
	check_int(rec->id.tid, tid);
	check(rec->id.time > 0 && rec->id.time <= clock_now(CLOCK_MONOTONIC));
	check(rec->id.cpu >= 0);
}

static void rename_it(void)
{
	prctl(PR_SET_NAME, "renamed", 0, 0, 0);
}

static void comm_tells_a_new_name(void)
{
	struct sampling s;
	const struct tally_sampled *got;

	if (!with(&s, &self, 0, rename_it))
		return;
	got = sampling_next(&s, TALLY_RECORD_COMM, 0);
	if (check(got != NULL)) {
		check_str(got->record->comm.comm, "renamed");
		check_int(got->record->comm.pid, getpid());
		check_int(got->record->comm.tid, gettid_());
		check(!got->record->comm.exec);
		check_id(got->record, getpid(), gettid_());
	}
	check(sampling_next(&s, TALLY_RECORD_COMM, 0) == NULL);
	sampling_close(&s);
}

#define TIMES 100

static void rename_often(void)
{
	char name[16];

	for (int i = 0; i < TIMES; i++) {
		snprintf(name, sizeof(name), "name %d", i);
		prctl(PR_SET_NAME, name, 0, 0, 0);
	}
}

/* As libperf's own test: 100 calls are exactly 100 records, in their order. */
static void a_hundred_calls_are_a_hundred_records(void)
{
	struct sampling s;
	const struct tally_sampled *got;
	char name[16];
	int found = 0;

	if (!with(&s, &self, 0, rename_often))
		return;
	for (; (got = sampling_next(&s, TALLY_RECORD_COMM, 0)); found++) {
		snprintf(name, sizeof(name), "name %d", found);
		check_str(got->record->comm.comm, name);
	}
	check_int(found, TIMES);
	sampling_close(&s);
}

static pid_t child;

static void start_a_child(void)
{
	int status;

	child = fork();
	if (child == 0)
		_exit(42);
	check(waitpid(child, &status, 0) == child);
	check_int(WEXITSTATUS(status), 42);
}

static struct tally_target this_process(void)
{
	return (struct tally_target){ .scope = TALLY_SCOPE_PROCESS, .id = getpid() };
}

static void fork_and_exit_tell_of_children(void)
{
	const struct tally_target target = this_process();
	struct sampling s;
	const struct tally_sampled *got;

	if (!with(&s, &target, 0, start_a_child))
		return;
	got = sampling_next(&s, TALLY_RECORD_FORK, 0);
	if (check(got != NULL)) {
		check_int(got->record->task.pid, child);
		check_int(got->record->task.ppid, getpid());
		check_int(got->record->task.tid, child);
		check_int(got->record->task.ptid, gettid_());
		check(got->record->task.time > 0);
	}
	got = sampling_next(&s, TALLY_RECORD_EXIT, 0);
	if (check(got != NULL)) {
		check_int(got->record->task.pid, child);
		check_int(got->record->task.tid, child);
		check_id(got->record, child, child);
	}
	sampling_close(&s);
}

static void *mapped[2];
static char map_path[256];

static void map_itself(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	mapped[0] = mmap(NULL, 8192, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 4096);
	mapped[1] = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
}

static void check_map(const struct tally_record *rec, int which, uint64_t len, uint64_t offset,
		      uint32_t prot, uint32_t flags)
{
	struct stat st;

	check_int(stat("/proc/self/exe", &st), 0);
	check_u64(rec->mmap.addr, (uint64_t)(uintptr_t)mapped[which]);
	check_u64(rec->mmap.len, len);
	check_u64(rec->mmap.pgoff, offset);
	check_int(rec->mmap.prot, prot);
	check_int(rec->mmap.flags, flags);
	check_u64(rec->mmap.ino, st.st_ino);
	check_int(rec->mmap.maj, major(st.st_dev));
	check_int(rec->mmap.min, minor(st.st_dev));
	check_str(rec->mmap.filename, map_path);
	check_int(rec->mmap.pid, getpid());
	check_int(!(rec->misc & TALLY_MISC_MMAP_DATA), which == 0);
}

static void mmap2_tells_what_is_mapped(void)
{
	struct sampling s;
	const struct tally_sampled *got;

	check(readlink("/proc/self/exe", map_path, sizeof(map_path) - 1) > 0);
	for (int data = 0; data < 2; data++) {
		if (!with(&s, &self, data ? TALLY_SAMPLER_DATA : 0, map_itself))
			return;
		got = sampling_next(&s, TALLY_RECORD_MMAP2, 0);
		if (check(got != NULL))
			check_map(got->record, 0, 8192, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE);
		/* One that holds no code comes with the addresses of data. */
		got = sampling_next(&s, TALLY_RECORD_MMAP2, 0);
		if (check_int(got != NULL, data) && got)
			check_map(got->record, 1, 4096, 0, PROT_READ, MAP_SHARED);
		munmap(mapped[0], 8192);
		munmap(mapped[1], 4096);
		sampling_close(&s);
	}
}

/* Sleeping goes off the CPU and comes back: SWITCH tells both, in turn. */
static void sleep_a_little(void)
{
	for (int i = 0; i < 5; i++)
		usleep(1000);
}

static void switches_go_out_and_in(void)
{
	struct sampling s;
	const struct tally_sampled *got;
	int out = 0, in = 0;

	if (!with(&s, &self, TALLY_SAMPLER_SWITCHES, sleep_a_little))
		return;
	while ((got = sampling_next(&s, TALLY_RECORD_SWITCH, 0))) {
		bool goes = got->record->misc & TALLY_MISC_SWITCH_OUT;
		/* It is out when it comes in, and the other way round. */
		check_int(out - in, goes ? 0 : 1);
		out += goes;
		in += !goes;
		check_id(got->record, getpid(), gettid_());
	}
	check(out >= 5 && in >= 5);
	sampling_close(&s);
}

static void a_cpu_tells_who_comes_and_goes(void)
{
	const struct tally_target cpus = { .scope = TALLY_SCOPE_SYSTEM };
	const struct tally_sampled *got;
	struct sampling s;
	int from_us = 0, to_us = 0;
	int r = sampling_open(
		&s, "dummy", &cpus,
		(struct tally_sampler_opts){ .flags = TALLY_SAMPLER_SWITCHES, .period = 1 });

	sampling_close(&s);
	if (r == -EACCES || r == -EPERM)
		tap_skip("CPUs are for privileged users");
	if (!with(&s, &cpus, TALLY_SAMPLER_SWITCHES, sleep_a_little))
		return;
	while ((got = sampling_next(&s, TALLY_RECORD_SWITCH_CPU_WIDE, 0))) {
		bool out = got->record->misc & TALLY_MISC_SWITCH_OUT;
		/* The record is of who goes or comes, and names the other one. */
		check_int(got->record->id.cpu, got->cpu);
		if (got->record->id.tid != gettid_())
			continue;
		check(got->record->who.tid != gettid_());
		from_us += out;
		to_us += !out;
	}
	check(from_us >= 5 && to_us >= 5);
	sampling_close(&s);
}

static uint64_t namespaces[7];
static int unshared[2];

/* The child tells its inodes before it ends, and the parent waits for it. */
static void leave_a_namespace(void)
{
	static const char *const names[] = { "net", "uts", "ipc", "pid", "user", "mnt", "cgroup" };
	int status;

	child = fork();
	if (child == 0) {
		struct stat st;
		char path[64];
		int bad = unshare(CLONE_NEWUTS) != 0;
		for (int i = 0; i < 7; i++) {
			snprintf(path, sizeof(path), "/proc/self/ns/%s", names[i]);
			uint64_t inode = stat(path, &st) == 0 ? st.st_ino : 0;
			bad |= write(unshared[1], &inode, sizeof(inode)) != sizeof(inode);
		}
		_exit(bad);
	}
	waitpid(child, &status, 0);
	check_int(status, 0);
	check_int(read(unshared[0], namespaces, sizeof(namespaces)), sizeof(namespaces));
}

static void namespaces_have_the_inodes_of_proc(void)
{
	const struct tally_target target = this_process();
	const struct tally_sampled *got;
	struct tally_namespace ns;
	struct sampling s;
	bool same = false;

	if (geteuid() != 0)
		tap_skip("namespaces are for privileged users");
	check_int(pipe(unshared), 0);
	if (!with(&s, &target, TALLY_SAMPLER_NAMESPACES, leave_a_namespace))
		return;
	/* That of the fork, then that of the unshare: the last one of the child counts. */
	while ((got = sampling_next(&s, TALLY_RECORD_NAMESPACES, 0))) {
		if (got->record->namespaces.pid != child)
			continue;
		check_u64(got->record->namespaces.count, 7);
		same = true;
		for (uint64_t i = 0; i < 7; i++)
			same &= tally_record_namespace(got->record, i, &ns) &&
				(!namespaces[i] || ns.ino == namespaces[i]);
	}
	check(same);
	close(unshared[0]);
	close(unshared[1]);
	sampling_close(&s);
}

static char cgroup_folder[256];
static uint64_t cgroup_inode;

static void make_a_cgroup(void)
{
	cgroup_inode = make_cgroup(cgroup_folder, sizeof(cgroup_folder), "tally-records");
}

static void a_new_cgroup_is_told(void)
{
	const struct tally_target cpus = { .scope = TALLY_SCOPE_SYSTEM };
	const struct tally_sampled *got;
	struct sampling s;
	int found = 0;

	if (geteuid() != 0)
		tap_skip("cgroups are for privileged users");
	if (!with(&s, &cpus, TALLY_SAMPLER_CGROUPS, make_a_cgroup))
		return;
	while (cgroup_inode && (got = sampling_next(&s, TALLY_RECORD_CGROUP, 0))) {
		if (got->record->cgroup.id != cgroup_inode)
			continue;
		found++;
		check_str(strrchr(got->record->cgroup.path, '/'), strrchr(cgroup_folder, '/'));
	}
	sampling_close(&s);
	if (!cgroup_inode)
		tap_skip("no cgroup can be made here");
	check_int(found, 1);
	check_int(rmdir(cgroup_folder), 0);
}

static int program;
static uint32_t program_id;
static uint8_t program_tag[8];

/* r0 = 0; exit: the shortest program there is. */
static void load_a_program(void)
{
	const struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
		.insns = (uint64_t)(uintptr_t)code,
		.insn_cnt = 2,
		.license = (uint64_t)(uintptr_t) "MIT",
	};
	struct bpf_prog_info info = { 0 };

	program = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
	if (program < 0)
		return;
	union bpf_attr ask = { .info = { .bpf_fd = (uint32_t)program,
					 .info_len = sizeof(info),
					 .info = (uint64_t)(uintptr_t)&info } };
	syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &ask, sizeof(ask));
	program_id = info.id;
	memcpy(program_tag, info.tag, sizeof(program_tag));
	close(program);
}

static void a_bpf_program_is_told(void)
{
	const struct tally_target cpus = { .scope = TALLY_SCOPE_SYSTEM };
	const struct tally_sampled *got;
	struct sampling s;
	int loads = 0, symbols = 0;
	char name[32];

	if (geteuid() != 0)
		tap_skip("BPF is for privileged users");
	if (!with(&s, &cpus, TALLY_SAMPLER_BPF, load_a_program))
		return;
	/* "bpf_prog_" and the tag in hexadecimal: bpf_get_prog_name(), kernel/bpf/core.c. */
	int n = snprintf(name, sizeof(name), "bpf_prog_");
	for (int i = 0; i < 8; i++)
		n += snprintf(name + n, sizeof(name) - (size_t)n, "%02x", program_tag[i]);
	while (program >= 0 && tally_sampler_next(s.sampler, 0, &got) == 1) {
		const struct tally_record *rec = got->record;
		if (rec->type == TALLY_RECORD_BPF_EVENT && rec->bpf.id == program_id &&
		    rec->bpf.kind == 1) {
			loads++;
			check_mem(rec->bpf.tag, program_tag, 8);
		}
		if (rec->type == TALLY_RECORD_KSYMBOL && !strncmp(rec->ksymbol.name, name, 25) &&
		    !(rec->ksymbol.flags & 1)) {
			symbols++;
			check_int(rec->ksymbol.kind, 1);
			check(rec->ksymbol.len > 0 && rec->ksymbol.addr >> 63);
		}
	}
	sampling_close(&s);
	if (program < 0)
		tap_skip("no BPF program can be loaded here");
	check_int(loads, 1);
	if (symbols)
		check_int(symbols, 1);
	else
		printf("# no KSYMBOL: BPF is interpreted here\n");
}

static void a_small_ring_tells_what_it_lost(void)
{
	struct sampling s;
	const struct tally_sampled *got;
	struct tally_sampler_account account;
	struct tally_sampler_opts opts = { .period = 1, .ring_bytes = 4096 };
	uint64_t came = 0, lost = 0;

	if (!sampling_start(&s, "dummy", &self, opts))
		return;
	check_int(tally_sampler_enable(s.sampler), 0);
	for (int i = 0; i < 10; i++)
		rename_often();
	while (tally_sampler_next(s.sampler, 10, &got) == 1)
		came += got->record->type == TALLY_RECORD_COMM;
	rename_it(); /* the loss is told before the next record that finds room */
	check_int(tally_sampler_disable(s.sampler), 0);
	while (tally_sampler_next(s.sampler, 0, &got) == 1) {
		came += got->record->type == TALLY_RECORD_COMM;
		lost += got->record->type == TALLY_RECORD_LOST ? got->record->lost.lost : 0;
		if (got->record->type == TALLY_RECORD_LOST)
			check_int(got->event, 0);
	}
	check_u64(came + lost, 10 * TIMES + 1);
	check(lost > 0);
	check_int(tally_sampler_account(s.sampler, UINT32_MAX, &account, sizeof(account)), 0);
	check_u64(account.lost_records, lost);
	/* What the event itself says [6.0]. */
	if (tally_sampler_attr(s.sampler, 0)->read_format & TALLY_READ_LOST)
		check_u64(account.lost_format, lost);
	check_u64(account.lost, lost);
	check_u64(account.lost_samples, 0);
	sampling_close(&s);
}

static volatile unsigned char *pages;

/* getrusage(2) knows how often it faulted. */
static uint64_t faults;

static void *touch_pages(void *count)
{
	struct rusage usage;

	for (size_t i = 0; i < *(size_t *)count; i++)
		pages[i * 4096] = 1;
	getrusage(RUSAGE_THREAD, &usage);
	faults = (uint64_t)(usage.ru_minflt + usage.ru_majflt);
	return NULL;
}

/* Starts a thread on another CPU than this one. */
static bool start_elsewhere(pthread_t *thread, void *arg)
{
	cpu_set_t allowed;
	pthread_attr_t attr;

	sched_getaffinity(0, sizeof(allowed), &allowed);
	CPU_CLR(stay_here(), &allowed);
	if (!CPU_COUNT(&allowed))
		return false;
	pthread_attr_init(&attr);
	pthread_attr_setaffinity_np(&attr, sizeof(allowed), &allowed);
	check_int(pthread_create(thread, &attr, touch_pages, arg), 0);
	pthread_attr_destroy(&attr);
	return true;
}

/*
 * A thread that is followed tells its counts when it ends. It runs on a CPU of its own: where two that
 * are followed take turns the kernel exchanges their events (perf_event_context_sched_out()), and those
 * that end may be the ones that nobody inherited.
 */
/* What the READ records of a thread that touched `touched` pages add up to. */
static void count_the_ended(size_t touched, uint64_t *sum)
{
	const struct tally_target target = this_process();
	struct tally_sampler_opts opts = { .flags = TALLY_SAMPLER_INHERIT_STAT, .freq = 100 };
	struct sampling s;
	const struct tally_sampled *got;
	struct tally_record_count count;
	pthread_t thread;

	*sum = 0;
	pages = mmap(NULL, touched * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	madvise((void *)(uintptr_t)pages, touched * 4096, MADV_NOHUGEPAGE);
	if (!sampling_start(&s, "page-faults", &target, opts))
		return;
	check_int(tally_sampler_enable(s.sampler), 0);
	require(start_elsewhere(&thread, &touched));
	pthread_join(thread, NULL);
	/* It is joined before the kernel has ended it. On each CPU it has an event, and each tells. */
	for (uint32_t left = tally_sampler_rings(s.sampler);
	     left && (got = sampling_next(&s, TALLY_RECORD_READ, 2000)); left--) {
		check_int(got->record->read.pid, getpid());
		check(got->record->read.tid != gettid_());
		check(tally_record_count(got->record, 0, &count));
		check(count.id != 0);
		*sum += count.value;
	}
	sampling_close(&s);
	munmap((void *)(uintptr_t)pages, touched * 4096);
}

static void read_tells_the_counts_of_the_ended(void)
{
	const uint64_t touched = 200;
	cpu_set_t before;
	uint64_t sum = 0;

	sched_getaffinity(0, sizeof(before), &before);
	if (CPU_COUNT(&before) < 2)
		tap_skip("one CPU");
	/* On a busy machine they may have taken a turn all the same. */
	for (int tries = 0; tries < 10 && sum < touched; tries++)
		count_the_ended(touched, &sum);
	/* It faults before its events count, and after it has asked, a few times. */
	check(sum >= touched);
	check(sum + 20 >= faults && sum < faults + 100);
	sched_setaffinity(0, sizeof(before), &before);
}

/* The first listener of a tracepoint has its code changed. */
static void use_a_tracepoint(void)
{
	struct tally_events *events = NULL;
	struct tally_counter *counter = NULL;

	if (tally_events_parse(&events, "signal:signal_deliver", NULL, NULL) == 0 &&
	    tally_counter_open(&counter, tally_events_at(events, 0), &self, NULL, NULL) == 0)
		tally_counter_close(counter);
	tally_events_free(events);
}

static void changed_kernel_code_is_told(void)
{
	const struct tally_target cpus = { .scope = TALLY_SCOPE_SYSTEM };
	const struct tally_sampled *got;
	struct sampling s;
	int pokes = 0;

	if (geteuid() != 0 || !has_tracefs)
		tap_skip("tracepoints are for privileged users with tracefs");
	if (!with(&s, &cpus, TALLY_SAMPLER_TEXT_POKES, use_a_tracepoint))
		return;
	bool asked = tally_sampler_attr(s.sampler, 0)->flags & TALLY_ATTR_TEXT_POKE;
	while ((got = sampling_next(&s, TALLY_RECORD_TEXT_POKE, 0))) {
		const struct tally_record_text_poke *p = &got->record->text_poke;
		pokes++;
		check(p->addr >> 63);
		check_int(p->old_len, p->new_len);
		check(p->new_len > 0 &&
		      memcmp(p->bytes, (const char *)p->bytes + p->old_len, p->new_len) != 0);
	}
	sampling_close(&s);
	if (!asked || !pokes)
		tap_skip("this kernel tells no text pokes");
}

int main(void)
{
	if (!kernel_mode_allowed())
		return kernel_mode_skip();
	has_tracefs = tracefs_ready();
	tap_run(comm_tells_a_new_name);
	tap_run(a_hundred_calls_are_a_hundred_records);
	tap_run(fork_and_exit_tell_of_children);
	tap_run(mmap2_tells_what_is_mapped);
	tap_run(switches_go_out_and_in);
	tap_run(a_cpu_tells_who_comes_and_goes);
	tap_run(namespaces_have_the_inodes_of_proc);
	tap_run(a_new_cgroup_is_told);
	tap_run(a_bpf_program_is_told);
	tap_run(a_small_ring_tells_what_it_lost);
	tap_run(read_tells_the_counts_of_the_ended);
	tap_run(changed_kernel_code_is_told);
	return tap_end();
}
