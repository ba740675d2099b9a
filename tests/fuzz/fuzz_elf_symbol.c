/* SPDX-License-Identifier: MIT */
/*
 * The reader of functions for uprobes. The input is a file; what is found in it lies in a part that
 * may be probed, and what is refused says why. The names asked for are those of the seeds, and one
 * that the file itself brings: its last bytes.
 */
#include <string.h>

#include "event/elf-symbol.h"
#include "fuzz.h"
#include "memfile.h"

static void ask(const char *name, size_t len)
{
	struct elf_function f = { 0 };
	struct tally_error err = { 0 };
	int r = elf_find_function(&f, "/fuzz", name, len, &err);

	must(memfile.open == 0);
	if (r < 0) {
		must(err.code == r && err.cause != TALLY_CAUSE_NONE && err.text[0]);
		return;
	}
	must(r == 0 && f.size > 0);
	must(elf_check_offset("/fuzz", f.offset, NULL) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = { "first", "twice", "main", "secnd", "" };
	size_t tail = size < 5 ? size : 5;

	memset(&memfile, 0, sizeof(memfile));
	memfile.at = data;
	memfile.len = size;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		ask(names[i], strlen(names[i]));
	ask((const char *)data + size - tail, tail);
	return 0;
}
