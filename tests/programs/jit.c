/* SPDX-License-Identifier: MIT */
/*
 * jit map|dump SECONDS FOLDER: makes a function at run time, runs it for half of the time, then makes
 * another and runs that. `map` tells of them in /tmp/perf-PID.map, and has them side by side; `dump`
 * in FOLDER/jit-PID.dump, where the second takes the place of the first. They are called made_first
 * and made_second. Status 77: no code is known for this machine.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* Counts its argument down to 0. */
#if defined(__x86_64__)
static const unsigned char code[] = { 0xff, 0xcf, 0x75, 0xfc, 0xc3 };
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
static const uint32_t code[] = { 0x71000400, 0x54ffffe1, 0xd65f03c0 };
#define MACHINE EM_AARCH64
#else
static const unsigned char code[1];
#define MACHINE EM_NONE
#endif

#define SIDE 256 /* how far apart functions lie that lie side by side */

/* tools/perf/Documentation/jitdump-specification.txt */
struct head {
	uint32_t magic, version, size, machine, pad, pid;
	uint64_t time, flags;
};

struct load {
	uint32_t id, size;
	uint64_t time;
	uint32_t pid, tid;
	uint64_t vma, address, length, index;
};

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static FILE *open_dump(const char *folder)
{
	struct head head = { .magic = 0x4A695444, .version = 1, .size = sizeof(head) };
	char path[4096];

	head.machine = MACHINE;
	head.pid = (uint32_t)getpid();
	head.time = now();
	snprintf(path, sizeof(path), "%s/jit-%d.dump", folder, getpid());
	FILE *f = fopen(path, "w+");
	if (!f || fwrite(&head, sizeof(head), 1, f) != 1 || fflush(f) ||
	    mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(f), 0) == MAP_FAILED)
		exit(1);
	return f;
}

static FILE *open_map(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	return fopen(path, "w");
}

static void tell(FILE *f, int dump, const unsigned char *at, const char *name, uint64_t index)
{
	struct load load = { .time = now(), .index = index };

	if (!dump) {
		fprintf(f, "%lx %zx %s\n", (unsigned long)(uintptr_t)at, sizeof(code), name);
		fflush(f);
		return;
	}
	load.size = (uint32_t)(sizeof(load) + strlen(name) + 1 + sizeof(code));
	load.pid = load.tid = (uint32_t)getpid();
	load.vma = load.address = (uintptr_t)at;
	load.length = sizeof(code);
	fwrite(&load, sizeof(load), 1, f);
	fwrite(name, strlen(name) + 1, 1, f);
	fwrite(code, sizeof(code), 1, f);
	fflush(f);
}

static void run(const unsigned char *at, uint64_t ns)
{
	uint64_t end = now() + ns;
	void (*function)(uint32_t n);

	memcpy(&function, &at, sizeof(function));
	while (now() < end)
		function(1000000);
}

int main(int argc, char **argv)
{
	static const char *const names[] = { "made_first", "made_second" };
	int dump = argc > 1 && !strcmp(argv[1], "dump");

	if (argc != 4)
		return 2;
	if (sizeof(code) == 1)
		return 77;
	unsigned char *room = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	FILE *f = dump ? open_dump(argv[3]) : open_map();
	if (room == MAP_FAILED || !f)
		return 1;
	for (uint64_t i = 0; i < 2; i++) {
		unsigned char *at = room + (dump ? 0 : i * SIDE);
		memcpy(at, code, sizeof(code));
		__builtin___clear_cache((char *)at, (char *)at + sizeof(code));
		tell(f, dump, at, names[i], i);
		run(at, (uint64_t)(strtod(argv[2], NULL) * 5e8));
	}
	return 0;
}
