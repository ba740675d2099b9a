/* SPDX-License-Identifier: MIT */
/* Unwinds a recording by elfutils' libdwfl: a Dwfl a process, with the modules that it has last. */
#include <elfutils/libdwfl.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unwinding.h"

#define MOST_PROCESSES 1024

struct process {
	int32_t pid;
	Dwfl *dwfl;
	bool attached;
	const struct tally_record *rec; /* that is unwound */
	uint64_t frames[MOST_FRAMES];
	size_t count;
};

static struct process *processes[MOST_PROCESSES];
static size_t process_count;

static const Dwfl_Callbacks modules = {
	.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = dwfl_standard_find_debuginfo,
	.section_address = dwfl_offline_section_address,
};

static struct process *process_of(int32_t pid)
{
	for (size_t i = 0; i < process_count; i++)
		if (processes[i]->pid == pid)
			return processes[i];
	if (process_count == MOST_PROCESSES)
		exit(1);
	struct process *p = calloc(1, sizeof(*p));
	if (!p)
		exit(1);
	p->pid = pid;
	p->dwfl = dwfl_begin(&modules);
	processes[process_count++] = p;
	return p;
}

/* The kernel's, as it is mapped here: a file of its own. */
static int open_vdso(void)
{
	int fd = memfd_create("vdso", 0);

	if (fd < 0 || write(fd, (const void *)getauxval(AT_SYSINFO_EHDR), 8192) < 0)
		return -1;
	return fd;
}

static void report(struct process *p, const struct tally_record_mmap *m)
{
	bool vdso = !strcmp(m->filename, "[vdso]");

	if (!vdso && m->filename[0] != '/')
		return;
	if (dwfl_addrmodule(p->dwfl, m->addr))
		return;
	dwfl_report_begin_add(p->dwfl);
	dwfl_report_elf(p->dwfl, m->filename, m->filename, vdso ? open_vdso() : -1,
			m->addr - m->pgoff, false);
	dwfl_report_end(p->dwfl, NULL, NULL);
}

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread)
{
	(void)dwfl;
	if (*thread)
		return 0;
	*thread = arg;
	return ((struct process *)arg)->pid;
}

static bool read_word(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *out, void *arg)
{
	struct process *p = arg;
	uint64_t word;

	(void)dwfl;
	if (!stack_word(p->rec, address, &word))
		return false;
	*out = word;
	return true;
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	struct process *p = arg;
	Dwarf_Word words[17];

	for (unsigned i = 0; i < 17; i++) {
		uint64_t value = 0;
		tally_regs_value(p->rec, &p->rec->sample.regs_user, perf_bits[i], &value);
		words[i] = value;
	}
	dwfl_thread_state_register_pc(thread, words[16]);
	return dwfl_thread_state_registers(thread, 0, 17, words);
}

static int take_frame(Dwfl_Frame *frame, void *arg)
{
	struct process *p = arg;
	Dwarf_Addr pc;

	if (!dwfl_frame_pc(frame, &pc, NULL) || p->count == MOST_FRAMES)
		return DWARF_CB_ABORT;
	p->frames[p->count++] = pc;
	return DWARF_CB_OK;
}

static const Dwfl_Thread_Callbacks threads = {
	.next_thread = next_thread,
	.memory_read = read_word,
	.set_initial_registers = set_registers,
};

static void unwind(struct process *p, const struct tally_record *rec)
{
	p->rec = rec;
	p->count = 0;
	/* What architecture it is, libdwfl learns from the first module. */
	if (!p->attached)
		p->attached = dwfl_attach_state(p->dwfl, NULL, p->pid, &threads, p);
	if (!p->attached)
		return;
	int r = dwfl_getthread_frames(p->dwfl, p->pid, take_frame, p);
	print_frames(rec, p->frames, p->count, r == 0 ? "whole" : "ended");
}

static void take(void *arg, const struct tally_record *rec)
{
	(void)arg;
	if (rec->type == TALLY_RECORD_MMAP || rec->type == TALLY_RECORD_MMAP2) {
		if ((rec->misc & TALLY_MISC_CPUMODE) == TALLY_MISC_USER)
			report(process_of(rec->mmap.pid), &rec->mmap);
	} else if (has_stack(rec)) {
		unwind(process_of(rec->id.pid), rec);
	}
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: unwind-libdw FILE\n");
		return 2;
	}
	int status = for_records(argv[1], take, NULL);
	for (size_t i = 0; i < process_count; i++) {
		dwfl_end(processes[i]->dwfl);
		free(processes[i]);
	}
	return status;
}
