/* SPDX-License-Identifier: MIT */
/* The parser of /proc/kallsyms. */
#include <string.h>

#include "fuzz.h"
#include "image/kernel.h"

/* No machine's: the outcome depends on the input alone. */
#define ROOT "/nonexistent"

static void check_kernel(const struct kernel *k, size_t size)
{
	const struct symtab *t = &k->symtab;

	must(t->symbols.count <= size / 4);
	for (size_t i = 0; i < t->symbols.count; i++) {
		const struct symbol *s = &t->symbols.at[i];
		must(i == 0 || s[-1].start < s->start);
		must(strlen(kernel_function(k, (uint32_t)i)) < size);
		must(strlen(kernel_module(k, (uint32_t)i)) <= size + strlen(KERNEL_NAME));
		if (s->size)
			must(kernel_find(k, symtab_start(t, (uint32_t)i) + k->delta) == i ||
			     k->delta);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kernel_recorded recorded = { .symbol = "_text", .address = 0xffffffff81000000 };
	struct kernel k = { 0 };

	/* Of just that size: a sanitizer sees what reads behind it. */
	char *copy = malloc(size + !size);
	must(copy);
	memcpy(copy, data, size);
	must(kernel_parse(&k, copy, size, ROOT, &recorded) == 0);
	if (k.trouble[0])
		must(k.symtab.symbols.count == 0 && !strchr(k.trouble, '\n'));
	check_kernel(&k, size);
	kernel_done(&k);
	return 0;
}
