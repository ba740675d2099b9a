/* SPDX-License-Identifier: MIT */
#include <string.h>

#include <Zydis/Zydis.h>

#include "insn-referee.h"

bool referee_is_there(void)
{
	return true;
}

static bool is_among(const char *name, const char *const *list)
{
	while (*list && strcmp(name, *list) != 0)
		list++;
	return *list;
}

bool referee_decode(struct referee_insn *out, const uint8_t *bytes, size_t len, unsigned bits)
{
	/* Their category is that of all conditional branches, or it is not: by name they are. */
	static const char *const conditional[] = { "jrcxz", "jecxz",  "jcxz", "loop",
						   "loope", "loopne", NULL };
	static const char *const careful[] = { "cpuid", "pushf",   "pushfd",   "pushfq", "popf",
					       "popfd", "popfq",   "iret",     "iretd",  "iretq",
					       "int3",  "syscall", "sysenter", NULL };
	static const char *const nobodys[] = { "jknzd", "jkzd", NULL }; /* Knights Corner */
	ZydisDecoder decoder;
	ZydisDecodedInstruction insn;

	ZydisDecoderInit(&decoder,
			 bits == 64 ? ZYDIS_MACHINE_MODE_LONG_64
				    : ZYDIS_MACHINE_MODE_LONG_COMPAT_32,
			 bits == 64 ? ZYDIS_STACK_WIDTH_64 : ZYDIS_STACK_WIDTH_32);
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, bytes, len, &insn)))
		return false;
	out->name = ZydisMnemonicGetString(insn.mnemonic);
	if (is_among(out->name, nobodys))
		return false;
	ZydisInstructionCategory category = insn.meta.category;
	out->len = insn.length;
	out->conditional = (category == ZYDIS_CATEGORY_COND_BR &&
			    insn.mnemonic != ZYDIS_MNEMONIC_XBEGIN &&
			    insn.mnemonic != ZYDIS_MNEMONIC_XEND) ||
			   is_among(out->name, conditional);
	bool iret = insn.mnemonic == ZYDIS_MNEMONIC_IRET || insn.mnemonic == ZYDIS_MNEMONIC_IRETD ||
		    insn.mnemonic == ZYDIS_MNEMONIC_IRETQ;
	out->branch = out->conditional || iret ||
		      (category == ZYDIS_CATEGORY_UNCOND_BR &&
		       insn.mnemonic != ZYDIS_MNEMONIC_XABORT) ||
		      insn.mnemonic == ZYDIS_MNEMONIC_CALL || insn.mnemonic == ZYDIS_MNEMONIC_RET;
	out->repeated = (insn.attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE |
					    ZYDIS_ATTRIB_HAS_REPNE)) != 0 &&
			(category == ZYDIS_CATEGORY_STRINGOP ||
			 category == ZYDIS_CATEGORY_IOSTRINGOP);
	out->careful = is_among(out->name, careful);
	return true;
}
