/* SPDX-License-Identifier: MIT */
/*
 * bpf-spin SECONDS: loads a BPF program "spin", lets the kernel run it again and again, and is gone with
 * it. Status 77: no program can be loaded here.
 */
#include <linux/bpf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STEPS 2000

static long bpf(int command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr));
}

/* r0 = 0; r0 += 1, many times; exit. */
static long load(void)
{
	static struct bpf_insn code[STEPS + 2];
	union bpf_attr attr = { .prog_type = BPF_PROG_TYPE_SOCKET_FILTER };

	code[0] = (struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_K };
	for (size_t i = 1; i <= STEPS; i++)
		code[i] = (struct bpf_insn){ .code = BPF_ALU64 | BPF_ADD | BPF_K, .imm = 1 };
	code[STEPS + 1] = (struct bpf_insn){ .code = BPF_JMP | BPF_EXIT };
	attr.insns = (uintptr_t)code;
	attr.insn_cnt = STEPS + 2;
	attr.license = (uintptr_t) "GPL";
	memcpy(attr.prog_name, "spin", 5);
	return bpf(BPF_PROG_LOAD, &attr);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	static unsigned char packet[64];
	double end = now() + (argc > 1 ? strtod(argv[1], NULL) : 1);
	long program = load();

	if (program < 0)
		return 77;
	while (now() < end) {
		union bpf_attr attr = { 0 };
		attr.test.prog_fd = (uint32_t)program;
		attr.test.data_in = (uintptr_t)packet;
		attr.test.data_size_in = sizeof(packet);
		attr.test.repeat = 10000;
		if (bpf(BPF_PROG_TEST_RUN, &attr) < 0)
			return 77;
	}
	return 0;
}
