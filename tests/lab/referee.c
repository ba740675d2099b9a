/* SPDX-License-Identifier: MIT */
/*
 * A plugin for QEMU that counts, by itself, what a guest executes in user mode between two instructions that
 * mean nothing to a CPU (mark_begin and mark_end in tests/loop-*.h): all instructions, and the branches that
 * loop_branches() counts there. For each pair it writes a line to the file out=FILE.
 *
 * An instruction that faults is executed again, and counted each time, which a PMU does not do: memory has to
 * be touched before. One CPU.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "qemu-plugin-1.h"

#define KERNEL_BIT 63 /* of addresses */

/* What an architecture's instructions are. */
struct decoder {
	const char *target;
	bool (*is_branch)(const uint8_t *bytes, size_t size);
	uint8_t begin[8], end[8];
	size_t mark_size;
};

PLUGIN_EXPORT int qemu_plugin_version = PLUGIN_VERSION;

static const struct decoder *decoder;
static FILE *out;
static uint64_t instructions, branches, instructions_before, branches_before;

/* All branches: BR_RETIRED. Arm Architecture Reference Manual, C4.1.65. */
static bool is_branch_arm64(const uint8_t *bytes, size_t size)
{
	static const struct {
		uint32_t mask, value;
	} kinds[] = {
		{ 0x7c000000, 0x14000000 }, /* B, BL */
		{ 0xff000000, 0x54000000 }, /* B.cond */
		{ 0x7c000000, 0x34000000 }, /* CBZ, CBNZ, TBZ, TBNZ */
		{ 0xfe000000, 0xd6000000 }, /* BR, BLR, RET, with and without authentication */
	};
	uint32_t word;

	memcpy(&word, bytes, sizeof(word));
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if ((word & kinds[i].mask) == kinds[i].value)
			return true;
	return false;
}

/* Conditional branches, which have no ModRM byte. Intel's manual, volume 2, appendix A. */
static bool is_branch_x86(const uint8_t *bytes, size_t size)
{
	static const uint8_t prefixes[] = { 0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65,
					    0x66, 0x67, 0xf0, 0xf2, 0xf3 };
	size_t i = 0;

	while (i + 1 < size &&
	       (memchr(prefixes, bytes[i], sizeof(prefixes)) || (bytes[i] & 0xf0) == 0x40))
		i++;
	if (bytes[i] == 0x0f)
		return i + 1 < size && (bytes[i + 1] & 0xf0) == 0x80;  /* Jcc rel32 */
	return (bytes[i] & 0xf0) == 0x70 || (bytes[i] & 0xfc) == 0xe0; /* Jcc rel8, LOOPcc, JRCXZ */
}

static const struct decoder decoders[] = {
	{ .target = "aarch64",
	  .is_branch = is_branch_arm64,
	  .begin = { 0xdf, 0x2f, 0x03, 0xd5 },
	  .end = { 0xff, 0x2f, 0x03, 0xd5 },
	  .mark_size = 4 },
	{ .target = "x86_64",
	  .is_branch = is_branch_x86,
	  .begin = { 0x0f, 0x1f, 0x80, 0x01, 0xee, 0x11, 0x7a },
	  .end = { 0x0f, 0x1f, 0x80, 0x02, 0xee, 0x11, 0x7a },
	  .mark_size = 7 },
};

static void begin(unsigned int vcpu, void *data)
{
	instructions_before = instructions;
	branches_before = branches;
}

static void end(unsigned int vcpu, void *data)
{
	fprintf(out, "instructions=%" PRIu64 " branches=%" PRIu64 "\n",
		instructions - instructions_before, branches - branches_before);
	fflush(out);
}

static void look_at(struct qemu_plugin_insn *insn)
{
	const uint8_t *bytes = qemu_plugin_insn_data(insn);
	size_t size = qemu_plugin_insn_size(insn);
	bool is_mark = size == decoder->mark_size;

	if (qemu_plugin_insn_vaddr(insn) >> KERNEL_BIT)
		return;
	if (is_mark && !memcmp(bytes, decoder->end, size))
		qemu_plugin_register_vcpu_insn_exec_cb(insn, end, PLUGIN_NO_REGISTERS, NULL);
	qemu_plugin_register_vcpu_insn_exec_inline(insn, PLUGIN_ADD_U64, &instructions, 1);
	if (decoder->is_branch(bytes, size))
		qemu_plugin_register_vcpu_insn_exec_inline(insn, PLUGIN_ADD_U64, &branches, 1);
	if (is_mark && !memcmp(bytes, decoder->begin, size))
		qemu_plugin_register_vcpu_insn_exec_cb(insn, begin, PLUGIN_NO_REGISTERS, NULL);
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++)
		look_at(qemu_plugin_tb_get_insn(tb, i));
}

int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(decoders) / sizeof(*decoders); i++)
		if (!strcmp(info->target_name, decoders[i].target))
			decoder = &decoders[i];
	if (!decoder || argc != 1 || strncmp(argv[0], "out=", 4) != 0)
		return 1;
	out = fopen(argv[0] + 4, "w");
	if (!out)
		return 1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}
