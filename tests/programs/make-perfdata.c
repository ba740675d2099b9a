/* SPDX-License-Identifier: MIT */
/*
 * Writes a perf.data file of made-up records through tally's writer, for other readers to judge.
 *
 *	make-perfdata PATH SAMPLES [killed] [two] [clock] [zstd] [stream]
 *
 * killed: ends after the last round, as a killed recorder does; two: a second event; clock: on
 * CLOCK_MONOTONIC; zstd: compressed; stream: in the form of a pipe's stream.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <tally/profiling.h>

#define PID     4242
#define TEXT    0x555555554000ull
#define ROUND   100
#define THREADS 3
/* Where the kernel's text begins on x86-64, and a length for it. */
#define KERNEL     0xffffffff81000000ull
#define KERNEL_LEN 0x1200000ull

static const char module[] = "/nonexistent/made-up", name[] = "made-up";

static struct tally_writer *writer;
static struct tally_layout layout;
static struct tally_error err;

static void must(int r)
{
	if (r >= 0)
		return;
	fprintf(stderr, "make-perfdata: %s\n", err.text);
	exit(1);
}

static void put(const struct tally_record *rec)
{
	char bytes[4096];
	int len = tally_record_encode(&layout, rec, bytes, sizeof(bytes));

	must(len);
	struct iovec span = { bytes, (size_t)len };
	must(tally_writer_append(writer, &span, 1));
}

static void put_maps(void)
{
	static const char kernel[] = "[kernel.kallsyms]_text";
	struct tally_record map = {
		.type = TALLY_RECORD_MMAP,
		.misc = TALLY_MISC_KERNEL,
		.mmap = { .pid = -1,
			  .addr = KERNEL,
			  .len = KERNEL_LEN,
			  .pgoff = KERNEL,
			  .filename = kernel,
			  .filename_len = sizeof(kernel) - 1 },
	};

	put(&map);
	map.type = TALLY_RECORD_MMAP2;
	map.misc = TALLY_MISC_USER;
	map.mmap = (struct tally_record_mmap){
		.pid = PID,
		.tid = PID,
		.addr = TEXT,
		.len = 0x4000,
		.prot = PROT_READ | PROT_EXEC,
		.flags = MAP_PRIVATE,
		.filename = module,
		.filename_len = sizeof(module) - 1,
	};
	put(&map);
}

static void put_sample(uint64_t i, uint64_t id)
{
	uint64_t chain[] = { TALLY_CONTEXT_USER, TEXT + 0x100 + i % 16, TEXT + 0x800 };
	struct tally_record sample = {
		.type = TALLY_RECORD_SAMPLE,
		.misc = TALLY_MISC_USER,
		.id = { .pid = PID,
			.tid = PID + (int)(i % THREADS),
			.time = 1000000000 + i * 1000000,
			.id = id,
			.cpu = (int)(i % 2) },
		.sample = { .ip = chain[1], .period = 1000 + i, .chain = chain, .chain_len = 3 },
	};

	put(&sample);
}

static void begin(bool two, bool clock)
{
	struct tally_attr attr;
	uint64_t ids[] = { 71, 72 };

	tally_attr_init(&attr, TALLY_TYPE_SOFTWARE, TALLY_SW_CPU_CLOCK);
	attr.sample_period = 4000;
	attr.sample_type = TALLY_SAMPLE_IDENTIFIER | TALLY_SAMPLE_IP | TALLY_SAMPLE_TID |
			   TALLY_SAMPLE_TIME | TALLY_SAMPLE_CPU | TALLY_SAMPLE_PERIOD |
			   TALLY_SAMPLE_CALLCHAIN;
	attr.flags = TALLY_ATTR_FREQ | TALLY_ATTR_SAMPLE_ID_ALL | TALLY_ATTR_EXCLUDE_GUEST |
		     TALLY_ATTR_MMAP | TALLY_ATTR_MMAP2 | TALLY_ATTR_COMM | TALLY_ATTR_TASK;
	if (clock) {
		attr.flags |= TALLY_ATTR_USE_CLOCKID;
		attr.clockid = CLOCK_MONOTONIC;
	}
	tally_layout_init(&layout, &attr, false);
	must(tally_writer_event(writer, "cpu-clock", &attr, ids, 1, &err));
	attr.config = TALLY_SW_PAGE_FAULTS;
	if (two)
		must(tally_writer_event(writer, "page-faults:u", &attr, ids + 1, 1, &err));
	must(tally_writer_begin(writer, &err));
}

static void describe(int argc, char **argv, uint64_t samples)
{
	static const uint8_t id[20] = { 0xab, 0xcd, 0xef };
	uint64_t times[] = { 1000000000, 1000000000 + (samples - 1) * 1000000 };

	must(tally_writer_describe_machine(writer, NULL));
	must(tally_writer_cmdline(writer, (uint32_t)argc, (const char *const *)argv));
	must(tally_writer_feature(writer, TALLY_FEATURE_SAMPLE_TIME, times, sizeof(times)));
	must(tally_writer_build_id(writer, TALLY_MISC_USER, -1, module, id, 20));
}

static bool has(char **argv, const char *word)
{
	for (; *argv; argv++)
		if (!strcmp(*argv, word))
			return true;
	return false;
}

int main(int argc, char **argv)
{
	uint64_t samples = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
	struct tally_record comm = {
		.type = TALLY_RECORD_COMM,
		.comm = { .pid = PID, .tid = PID, .comm = name, .comm_len = sizeof(name) - 1 },
	};

	if (!samples)
		return 2;
	bool two = has(argv, "two");
	struct tally_writer_opts opts = { .size = sizeof(opts), .flags = TALLY_WRITER_NO_OLD };
	if (has(argv, "stream"))
		opts.flags |= TALLY_WRITER_STREAM;
	if (has(argv, "zstd"))
		opts.compress = 1;
	must(tally_writer_open(&writer, argv[1], &opts, &err));
	describe(argc, argv, samples);
	begin(two, has(argv, "clock"));
	for (int i = 0; i < THREADS; i++, comm.comm.tid++)
		put(&comm);
	put_maps();
	for (uint64_t i = 0; i < samples; i++) {
		put_sample(i, two && i % 4 == 0 ? 72 : 71);
		if (i % ROUND == ROUND - 1)
			must(tally_writer_round(writer, &err));
	}
	if (has(argv, "killed"))
		_exit(0);
	must(tally_writer_finish(writer, &err));
	tally_writer_close(writer);
	return 0;
}
