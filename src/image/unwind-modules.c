/* SPDX-License-Identifier: MIT */
/* From mappings to unwind tables. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "image/module.h"
#include "image/unwind-modules.h"

/* The mapped file, or a negative errno. The symbolizer looks for it in the same way. */
static int open_file(struct unwind_modules *m, int32_t pid, const struct tally_mapping *map)
{
	const struct file_search where = {
		.root = m->root,
		.symfs = m->symfs,
		.cache = m->cache,
		.pid = pid,
		.map = *map,
		.build_id = map->build_id_len ? build_id_from(map->build_id, map->build_id_len)
					      : builds_get(&m->builds, map->path, pid),
	};

	return module_open(map->path, &where);
}

/* Why its stacks will be broken. */
static void explain(struct unwind_module *module, uint16_t machine, int r)
{
	const char *why = "";

	if (r == -ENOEXEC)
		why = "not an ELF file of a 64-bit program";
	else if (r == -ENODATA)
		why = "no unwind tables (.eh_frame): build it with -fasynchronous-unwind-tables, or "
		      "with frame pointers";
	else if (r == 0 && module->table.machine != machine)
		why = "a program for another machine";
	else if (r < 0)
		why = "the mapped file is not here, or another build of it";
	snprintf(module->trouble, sizeof(module->trouble), "%s", why);
}

static int load(struct unwind_modules *m, struct unwind_module *module, int32_t pid,
		const struct tally_mapping *map)
{
	const char *why = module_not_a_file(map->path);
	int fd, r;

	if (why) {
		snprintf(module->trouble, sizeof(module->trouble), "%s", why);
		return 0;
	}
	fd = open_file(m, pid, map);
	r = fd < 0 ? fd : unwind_table_read(&module->table, fd);
	if (fd >= 0)
		sys()->close(fd);
	if (r == -ENOMEM)
		return r;
	explain(module, m->machine, r);
	if (module->trouble[0])
		unwind_table_done(&module->table);
	return 0;
}

/* Index + 1 of the module of a mapping's file; 0: no memory. */
static uint32_t module_of_file(struct unwind_modules *m, int32_t pid,
			       const struct tally_mapping *map)
{
	uint32_t *index = map64_at(&m->by_file, file_key(map));

	if (!index || *index)
		return index ? *index : 0;
	struct unwind_module *module = calloc(1, sizeof(*module));
	if (!module)
		return 0;
	module->path = map->path;
	struct unwind_module **slot = load(m, module, pid, map) < 0 ? NULL : vec_push(&m->list);
	if (!slot) {
		unwind_table_done(&module->table);
		free(module);
		return 0;
	}
	*slot = module;
	*index = (uint32_t)m->list.count;
	return *index;
}

/*
 * Whether the code at this place of the file is what signal handlers return to: at its start, where
 * the address before that is looked up, inside it, or right behind it, in the system call.
 */
static bool is_trampoline(struct unwind_modules *m, const struct unwind_arch *arch, int32_t pid,
			  const struct tally_mapping *map, uint64_t offset)
{
	uint8_t code[2 * UNWIND_TRAMPOLINE_BYTES + 1];
	size_t len = arch->trampoline_len, size = 2 * len + 1;
	int fd = offset < len ? -1 : open_file(m, pid, map);
	bool found = fd >= 0 &&
		     sys()->pread(fd, code, size, (off_t)(offset - len)) == (ssize_t)size &&
		     memmem(code, size, arch->trampoline, len);

	if (fd >= 0)
		sys()->close(fd);
	return found;
}

/* What is known of code without the tables that compilers write. NULL: nothing. */
static const struct unwind_rules *known_code(struct unwind_modules *m,
					     const struct unwind_arch *arch, int32_t pid,
					     const struct unwind_module *module,
					     const struct tally_mapping *map, uint64_t offset,
					     uint64_t at)
{
	const struct unwind_stubs *stubs = unwind_table_stubs(&module->table, at);

	if (!stubs)
		return is_trampoline(m, arch, pid, map, offset) ? arch->trampoline_rules : NULL;
	/* The first stub of all, to which the others jump then, pushes another word. */
	uint64_t from = at - stubs->start;
	bool pushed = stubs->lazy && arch->stub_bytes && from >= arch->stub_bytes &&
		      from % arch->stub_bytes >= arch->push_end;
	return pushed ? arch->pushed_rules : arch->stub_rules;
}

int unwind_modules_rules(struct unwind_modules *m, const struct unwind_arch *arch, int32_t pid,
			 uint32_t mapping, const struct tally_mapping *map, uint64_t address,
			 const struct unwind_rules **rules)
{
	int error = 0;
	uint64_t offset = address - map->start + map->pgoff, at;

	*rules = NULL;
	while (m->by_mapping.count <= mapping)
		if (!vec_push(&m->by_mapping))
			return -ENOMEM;
	if (!m->by_mapping.at[mapping])
		m->by_mapping.at[mapping] = module_of_file(m, pid, map);
	if (!m->by_mapping.at[mapping])
		return -ENOMEM;
	struct unwind_module *module = m->list.at[m->by_mapping.at[mapping] - 1];
	if (!module->table.machine)
		return 1;
	if (!elf_file_address(&module->table.layout, offset, &at))
		return 0;
	*rules = unwind_table_find(&module->table, at, &error);
	if (!*rules && error == 0)
		*rules = known_code(m, arch, pid, module, map, offset, at);
	return error;
}

uint32_t unwind_modules_broken(struct unwind_modules *m, uint32_t mapping)
{
	uint32_t index = mapping < m->by_mapping.count ? m->by_mapping.at[mapping] : 0;

	if (!index)
		return UINT32_MAX;
	m->list.at[index - 1]->broken++;
	return index - 1;
}

void unwind_modules_done(struct unwind_modules *m)
{
	vec_each (&m->list, module) {
		unwind_table_done(&(*module)->table);
		free(*module);
	}
	vec_done(&m->list);
	vec_done(&m->by_mapping);
	map64_done(&m->by_file);
	builds_done(&m->builds);
}
