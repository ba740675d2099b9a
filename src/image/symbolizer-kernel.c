/* SPDX-License-Identifier: MIT */
/* The kernel's functions, for the symbolizer: read once, when an address of the kernel is met. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "image/symbolizer-inside.h"

void symbolizer_forget_kernel(struct tally_symbolizer *s)
{
	kernel_done(&s->kernel);
	free(s->kernel_functions);
	s->kernel_functions = NULL;
	s->kernel_loaded = false;
	vec_each (&s->modules, m)
		if (!(*m)->functions)
			(*m)->function_count = 0;
	memset(s->cache, 0, sizeof(s->cache));
}

int tally_symbolizer_kernel(struct tally_symbolizer *s, uint64_t text, const uint8_t *build_id,
			    uint32_t build_id_len)
{
	s->recorded.symbol = "_text";
	s->recorded.address = text;
	if (build_id && build_id_len)
		s->recorded.build_id = build_id_from(build_id, build_id_len);
	symbolizer_forget_kernel(s);
	return 0;
}

void tally_symbolizer_release(struct tally_symbolizer *s, const char *release)
{
	snprintf(s->recorded.release, sizeof(s->recorded.release), "%s", release ? release : "");
	symbolizer_forget_kernel(s);
}

static int load_kernel(struct tally_symbolizer *s, const struct tally_mapping *map)
{
	struct kernel_recorded recorded = s->recorded;
	size_t prefix = strlen(KERNEL_NAME);

	if (s->kernel_loaded)
		return 0;
	/* The mapping's name ends in a symbol, and its pgoff is that symbol's address. */
	if (!recorded.address && map && !strncmp(map->path, KERNEL_NAME, prefix) &&
	    map->path[prefix]) {
		recorded.symbol = map->path + prefix;
		recorded.address = map->pgoff;
	}
	if (!recorded.build_id.len && map && map->build_id_len)
		recorded.build_id = build_id_from(map->build_id, map->build_id_len);
	const struct file_search where = {
		.root = s->opts.root,
		.symfs = s->opts.symfs,
		.cache = s->opts.cache,
		.debuginfod = s->opts.flags & TALLY_SYMBOLIZER_DEBUGINFOD,
	};
	int r = kernel_load(&s->kernel, &where, &recorded);
	size_t count = s->kernel.symtab.symbols.count;
	if (r == 0 && count) {
		s->kernel_functions = calloc(count, sizeof(*s->kernel_functions));
		r = s->kernel_functions ? 0 : -ENOMEM;
	}
	if (r < 0)
		kernel_done(&s->kernel);
	s->kernel_loaded = r == 0;
	return r;
}

/* "[name]" of a kernel mapping: a module's may be recorded as its file, .../net-x.ko.xz. */
static const char *kernel_module_name(char room[256], const struct tally_mapping *map)
{
	const char *slash = strrchr(map->path, '/');

	if (!strncmp(map->path, KERNEL_NAME, strlen(KERNEL_NAME)))
		return KERNEL_NAME;
	if (!slash)
		return map->path;
	snprintf(room, 256, "[%.*s]", (int)strcspn(slash + 1, "."), slash + 1);
	for (char *p = room; (p = strchr(p, '-'));)
		*p = '_';
	return room;
}

/*
 * The function at an address. Of a kernel that was kept a module may have lain elsewhere: that it was
 * here the recording must say.
 */
static uint32_t function_in_kernel(const struct kernel *k, uint64_t address,
				   const struct tally_mapping *map)
{
	uint32_t index = kernel_find(k, address);
	char room[256];

	if (index == SYMTAB_NONE || !k->kept)
		return index;
	const char *module = kernel_module(k, index);
	if (!strcmp(module, KERNEL_NAME) || (map && !strcmp(kernel_module_name(room, map), module)))
		return index;
	return SYMTAB_NONE;
}

/* What tally_symbolizer_module() tells of it. */
static void describe_kernel_module(struct tally_symbolizer *s, struct module *m)
{
	if (!strcmp(m->name, UNMAPPED) || m->function_count)
		return;
	if (!strcmp(m->name, KERNEL_NAME))
		m->build_id = s->kernel.build_id;
	m->function_count = kernel_count(&s->kernel, m->name);
	module_without_file(m, s->kernel.trouble);
}

/* The module of a kernel address: by the function there, else by the mapping; 0: no memory. */
static uint32_t module_of_address(struct tally_symbolizer *s, uint32_t function,
				  const struct tally_mapping *map)
{
	const struct kernel *k = &s->kernel;
	char room[256];

	if (function != SYMTAB_NONE)
		return symbolizer_module_by_name(s, kernel_module(k, function), "");
	if (map)
		return symbolizer_module_by_name(s, kernel_module_name(room, map), k->trouble);
	/* No mapping was recorded, and without symbols nobody knows where the kernel is. */
	if (k->trouble[0])
		return symbolizer_module_by_name(s, KERNEL_NAME, k->trouble);
	return symbolizer_module_by_name(s, UNMAPPED, NOTHING_THERE);
}

/*
 * A function that the kernel made while it ran. /proc/kallsyms has them too, while they last, in
 * modules of these names (bpf_get_kallsym(), ftrace_get_trampoline_kallsym() and
 * kprobe_get_kallsym() of kernel/).
 */
static int name_kernel_symbol(struct tally_symbolizer *s, const struct tally_mapping *map,
			      struct tally_frame *out)
{
	static const char *const modules[][2] = {
		{ "bpf_", "[bpf]" },
		{ "ftrace_", "[__builtin__ftrace]" },
		{ "kprobe_", "[__builtin__kprobes]" },
	};
	const char *name = KERNEL_NAME;

	for (size_t i = 0; i < ARRAY_SIZE(modules); i++)
		if (!strncmp(map->path, modules[i][0], strlen(modules[i][0])))
			name = modules[i][1];
	uint32_t module = symbolizer_module_by_name(s, name, "");
	if (!module)
		return -ENOMEM;
	symbolizer_fill(s, out, module);
	return symbolizer_name_function(s, map->path, map->start, out);
}

int symbolizer_name_kernel(struct tally_symbolizer *s, uint32_t mapping, struct tally_frame *out)
{
	struct tally_mapping map;
	const struct kernel *k = &s->kernel;

	if (mapping)
		maps_mapping(s->maps, mapping, &map);
	if (mapping && map.flags & TALLY_MAPPING_SYMBOL)
		return name_kernel_symbol(s, &map, out);
	int r = load_kernel(s, mapping ? &map : NULL);
	if (r < 0)
		return r;
	out->module_address = out->offset = out->address - k->delta;
	uint32_t index = function_in_kernel(k, out->address, mapping ? &map : NULL);
	uint32_t module = module_of_address(s, index, mapping ? &map : NULL);
	if (!module)
		return -ENOMEM;
	symbolizer_fill(s, out, module);
	describe_kernel_module(s, s->modules.at[module - 1]);
	if (index == SYMTAB_NONE)
		return 0;
	if (!s->kernel_functions[index])
		s->kernel_functions[index] = symbolizer_readable(s, kernel_function(k, index),
								 false);
	if (!s->kernel_functions[index])
		return -ENOMEM;
	out->function = s->kernel_functions[index];
	out->function_id = index;
	out->offset = out->module_address - symtab_start(&k->symtab, index);
	return 1;
}
