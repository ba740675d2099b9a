/* SPDX-License-Identifier: MIT */
/*
 * What a program does, written down by a stepper that shares nothing with ours: plain
 * PTRACE_SINGLESTEP, and Zydis for what an instruction is. `reference-step FILE PROGRAM` writes a
 * struct reference_row for each boundary between two instructions, the first one included. The program
 * must do nothing that such a stepper is fooled by.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <Zydis/Zydis.h>

#include "reference.h"

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static pid_t start(char *program)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		char *argv[] = { program, NULL }, *envp[] = { NULL };
		personality(ADDR_NO_RANDOMIZE);
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
			_exit(126);
		execve(program, argv, envp);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) < 0 || !WIFSTOPPED(status))
		die("start");
	return child;
}

static bool is_conditional(pid_t child, uint64_t pc)
{
	static const char *const others[] = { "jrcxz", "jecxz", "jcxz", "loop", "loope", "loopne" };
	ZydisDecoder decoder;
	ZydisDecodedInstruction insn;
	long words[2];

	for (int i = 0; i < 2; i++) {
		errno = 0;
		words[i] = ptrace(PTRACE_PEEKTEXT, child, (void *)(pc + 8 * (unsigned)i), NULL);
		if (errno)
			words[i] = 0;
	}
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (!ZYAN_SUCCESS(
		    ZydisDecoderDecodeInstruction(&decoder, NULL, words, sizeof(words), &insn)))
		return false;
	if (insn.meta.category == ZYDIS_CATEGORY_COND_BR)
		return true;
	const char *name = ZydisMnemonicGetString(insn.mnemonic);
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (!strcmp(name, others[i]))
			return true;
	return false;
}

static void look(pid_t child, struct reference_row *row)
{
	if (ptrace(PTRACE_GETREGS, child, NULL, &row->regs) < 0 ||
	    ptrace(PTRACE_GETFPREGS, child, NULL, &row->vector) < 0)
		die("registers");
}

int main(int argc, char **argv)
{
	struct reference_row row = { 0 };
	FILE *file = argc == 3 ? fopen(argv[1], "wb") : NULL;
	int status;

	if (!file)
		die("reference-step FILE PROGRAM");
	pid_t child = start(argv[2]);
	for (;;) {
		look(child, &row);
		if (fwrite(&row, sizeof(row), 1, file) != 1)
			die(argv[1]);
		row.conditional += is_conditional(child, row.regs.rip);
		if (ptrace(PTRACE_SINGLESTEP, child, NULL, NULL) < 0 ||
		    waitpid(child, &status, 0) < 0)
			die("step");
		if (!WIFSTOPPED(status))
			break;
	}
	return fclose(file) != 0;
}
