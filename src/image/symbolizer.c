/* SPDX-License-Identifier: MIT */
/*
 * From (process, time, address) to a named frame. What a mapping's number and an address name never
 * changes, but for code that processes make, so answers are kept whole in a table by these two: a
 * repeated address costs the look-up of its mapping and a copy.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "base/error.h"
#include "image/cache.h"
#include "image/demangle.h"
#include "image/symbolizer-inside.h"
#include "image/symbolizer.h"

#define KNOWN_FLAGS                                                                           \
	(TALLY_SYMBOLIZER_MANGLED | TALLY_SYMBOLIZER_DEBUGINFOD | TALLY_SYMBOLIZER_NO_CACHE | \
	 TALLY_SYMBOLIZER_PARAMETERS)

int tally_symbolizer_new(struct tally_symbolizer **out, struct tally_maps *maps,
			 const struct tally_symbolizer_opts *opts, struct tally_error *err)
{
	struct tally_symbolizer_opts own;
	int r = opts_read(&own, sizeof(own), KNOWN_FLAGS, opts, err);

	if (r < 0)
		return r;
	if (!maps)
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
				 "a symbolizer needs maps: pass what tally_maps_new() made");
	struct tally_symbolizer *s = calloc(1, sizeof(*s));
	if (!s)
		return error_nomem(err, "a symbolizer");
	s->opts = own;
	s->maps = maps;
	if (own.flags & TALLY_SYMBOLIZER_NO_CACHE)
		s->opts.cache = NULL;
	else if (!own.cache && cache_folder(s->cache_folder))
		s->opts.cache = s->cache_folder;
	s->jit.maps = maps;
	s->jit.builds = &s->builds;
	s->jit.where = (struct file_search){
		.root = own.root,
		.symfs = own.symfs,
		.cache = s->opts.cache,
	};
	*out = s;
	return 0;
}

void tally_symbolizer_free(struct tally_symbolizer *s)
{
	if (!s)
		return;
	source_lines_free(s->lines);
	free(s->code);
	vec_each (&s->modules, m) {
		module_done(*m);
		free(*m);
	}
	vec_done(&s->modules);
	builds_done(&s->builds);
	jit_done(&s->jit);
	map64_done(&s->by_file);
	map64_done(&s->by_name);
	kernel_done(&s->kernel);
	free(s->kernel_functions);
	texts_done(&s->texts);
	free(s);
}

int tally_symbolizer_build_id(struct tally_symbolizer *s, int32_t pid, const char *path,
			      const uint8_t *build_id, uint32_t build_id_len)
{
	struct build_id id = build_id_from(build_id, build_id_len);

	if (strncmp(path, KERNEL_NAME, strlen(KERNEL_NAME)) != 0)
		return builds_set(&s->builds, path, pid, &id) ? 0 : -ENOMEM;
	if (!s->recorded.build_id.len) {
		s->recorded.build_id = id;
		symbolizer_forget_kernel(s);
	}
	return 0;
}

void tally_symbolizer_clock(struct tally_symbolizer *s, uint32_t clockid)
{
	s->jit.other_clock = clockid != CLOCK_MONOTONIC;
}

int64_t tally_symbolizer_epoch(struct tally_symbolizer *s, int32_t pid, uint64_t time)
{
	return jit_epoch(&s->jit, pid, time);
}

static struct build_id known_build_id(struct tally_symbolizer *s, int32_t pid,
				      const struct tally_mapping *map)
{
	return map->build_id_len ? build_id_from(map->build_id, map->build_id_len)
				 : builds_get(&s->builds, map->path, pid);
}

/* A new module, numbered into `*index`; NULL: no memory. */
static struct module *add_module(struct tally_symbolizer *s, uint32_t *index, const char *path,
				 const char *name)
{
	if (!vec_reserve(&s->modules, 1) || s->modules.count >= UINT32_MAX - 1)
		return NULL;
	struct module *m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	m->path = path;
	m->name = name;
	s->modules.at[s->modules.count++] = m;
	*index = (uint32_t)s->modules.count;
	return m;
}

/* The module of a mapped file; 0: no memory. */
static uint32_t module_of_file(struct tally_symbolizer *s, int32_t owner,
			       const struct tally_mapping *map)
{
	uint32_t *index = map64_at(&s->by_file, file_key(map));

	if (!index || *index)
		return index ? *index : 0;
	const char *slash = strrchr(map->path, '/');
	const char *why = module_not_a_file(map->path);
	bool in_brackets = why || map->path[0] != '/';
	struct module *m = add_module(s, index, map->path,
				      in_brackets || !slash[1] ? map->path : slash + 1);
	if (!m)
		return 0;
	m->build_id = known_build_id(s, owner, map);
	if (why)
		module_without_file(m, why);
	return *index;
}

uint32_t symbolizer_module_by_name(struct tally_symbolizer *s, const char *path,
				   const char *trouble)
{
	uint32_t text = texts_add(&s->texts, path, strlen(path));
	uint32_t *index = text == UINT32_MAX ? NULL : map64_at(&s->by_name, text);

	if (!index || *index)
		return index ? *index : 0;
	path = texts_get(&s->texts, text);
	const char *slash = strrchr(path, '/');
	struct module *m = add_module(s, index, path, slash ? slash + 1 : path);
	if (!m)
		return 0;
	module_without_file(m, trouble);
	return *index;
}

void symbolizer_fill(const struct tally_symbolizer *s, struct tally_frame *out, uint32_t module)
{
	const struct module *m = s->modules.at[module - 1];

	out->module = m->name;
	out->path = m->path;
	out->module_id = module - 1;
}

const char *symbolizer_readable(struct tally_symbolizer *s, const char *name, bool is_plt)
{
	bool mangled = s->opts.flags & TALLY_SYMBOLIZER_MANGLED;
	bool parameters = s->opts.flags & TALLY_SYMBOLIZER_PARAMETERS;
	char *own = mangled ? NULL : demangle(name, parameters);
	const char *text = own ? own : name, *result = NULL;

	if (!is_plt) {
		result = texts_intern(&s->texts, text);
	} else {
		size_t len = strlen(text);
		char *stub = malloc(len + sizeof("@plt"));
		if (stub) {
			memcpy(stub, text, len);
			memcpy(stub + len, "@plt", sizeof("@plt"));
			result = texts_intern(&s->texts, stub);
		}
		free(stub);
	}
	free(own);
	return result;
}

static const char *read_name(struct tally_symbolizer *s, struct module *m, uint32_t index)
{
	const struct elf_file *f = &m->file;

	m->functions[index] = symbolizer_readable(s, elf_file_name(f, index),
						  elf_file_is_plt(f, index));
	return m->functions[index];
}

static inline int name_in_file(struct tally_symbolizer *s, struct module *m,
			       struct tally_frame *out)
{
	uint64_t start;
	uint32_t index = symtab_find_start(&m->file.symtab, out->module_address, &start);

	if (index == SYMTAB_NONE)
		return 0;
	if (!m->functions[index] && !read_name(s, m, index))
		return -ENOMEM;
	out->function = m->functions[index];
	out->function_id = index;
	out->offset = out->module_address - start;
	return 1;
}

int symbolizer_name_function(struct tally_symbolizer *s, const char *name, uint64_t start,
			     struct tally_frame *out)
{
	const char *function = symbolizer_readable(s, name, false);
	uint32_t text = function ? texts_add(&s->texts, function, strlen(function)) : UINT32_MAX;

	if (text == UINT32_MAX)
		return -ENOMEM;
	out->function = function;
	out->function_id = BY_NAME | text;
	out->offset = out->address - start;
	return 1;
}

static struct file_search search_of(const struct tally_symbolizer *s, int32_t pid, uint32_t mapping)
{
	struct file_search where = {
		.root = s->opts.root,
		.symfs = s->opts.symfs,
		.cache = s->opts.cache,
		.debuginfod = s->opts.flags & TALLY_SYMBOLIZER_DEBUGINFOD,
		.pid = pid,
	};

	maps_mapping(s->maps, mapping, &where.map);
	return where;
}

static void keep_shortcut(struct tally_symbolizer *s, uint32_t mapping, uint32_t module,
			  const struct tally_mapping *map, const struct tally_frame *f)
{
	uint64_t offset = f->address - map->start + map->pgoff, first, last;

	if (!elf_file_code(&s->modules.at[module - 1]->file, offset, &first, &last))
		return;
	uint64_t before = offset - first, behind = last - offset;
	s->shortcuts[mapping % SHORTCUTS] = (struct shortcut){
		.mapping = mapping,
		.module = module,
		.first = before < f->address ? f->address - before : 0,
		.last = behind < UINT64_MAX - f->address ? f->address + behind : UINT64_MAX,
		.bias = f->module_address - f->address,
	};
}

static int name_user(struct tally_symbolizer *s, int32_t pid, uint32_t mapping, uint64_t time,
		     struct tally_frame *out)
{
	struct file_search where = search_of(s, pid, mapping);
	int32_t owner = maps_owner(s->maps, mapping);
	uint32_t index = module_of_file(s, owner, &where.map);

	if (!index)
		return -ENOMEM;
	struct module *m = s->modules.at[index - 1];
	where.build_id = m->build_id;
	int r = module_load(m, &where);
	symbolizer_fill(s, out, index);
	uint64_t offset = out->address - where.map.start + where.map.pgoff;
	if (!elf_file_address(&m->file, offset, &out->module_address))
		out->module_address = offset;
	out->offset = out->module_address;
	if (r < 0)
		return r;
	if (!m->function_count)
		return symbolizer_name_made(s, pid, owner, time, m, out);
	keep_shortcut(s, mapping, index, &where.map, out);
	return name_in_file(s, m, out);
}

/* Whose addresses mean nothing in the address spaces that we know. */
static const char *foreign(uint32_t mode)
{
	static const char *const names[] = {
		[TALLY_MODE_HYPERVISOR] = "[hypervisor]",
		[TALLY_MODE_GUEST_KERNEL] = "[guest.kernel.kallsyms]",
		[TALLY_MODE_GUEST_USER] = "[guest.user]",
	};

	return mode < ARRAY_SIZE(names) ? names[mode] : NULL;
}

static int name_nowhere(struct tally_symbolizer *s, const char *name, const char *trouble,
			struct tally_frame *out)
{
	uint32_t module = symbolizer_module_by_name(s, name, trouble);

	if (!module)
		return -ENOMEM;
	symbolizer_fill(s, out, module);
	return 0;
}

static int name_address(struct tally_symbolizer *s, int32_t pid, uint32_t mapping, uint64_t time,
			struct tally_frame *out)
{
	const char *other = foreign(out->mode);

	if (other)
		return name_nowhere(s, other, "another system's addresses", out);
	bool kernel = mapping ? maps_is_kernel(s->maps, mapping) : out->mode == TALLY_MODE_KERNEL;
	if (out->mode == TALLY_MODE_UNKNOWN && mapping)
		out->mode = kernel ? TALLY_MODE_KERNEL : TALLY_MODE_USER;
	/* Old recordings map the kernel over nearly everything, so stray user addresses lie in it. */
	if (kernel && out->mode == TALLY_MODE_USER)
		return name_nowhere(s, UNMAPPED, NOTHING_THERE, out);
	if (kernel)
		return symbolizer_name_kernel(s, mapping, out);
	if (mapping)
		return name_user(s, pid, mapping, time, out);
	return name_nowhere(s, UNMAPPED, NOTHING_THERE, out);
}

static int64_t locate(struct tally_symbolizer *s, int32_t pid, uint64_t time, uint64_t address,
		      uint32_t mode)
{
	if (foreign(mode))
		return 0;
	return maps_locate(s->maps, mode == TALLY_MODE_KERNEL ? TALLY_MAPS_KERNEL : pid, time,
			   address);
}

static int answer(struct tally_symbolizer *s, const struct tally_frame *frame)
{
	struct module *m = s->modules.at[frame->module_id];

	m->lookups++;
	m->misses += !frame->function;
	return frame->function != NULL;
}

static struct answer_set *set_of(struct tally_symbolizer *s, uint32_t mapping, uint64_t address)
{
	return &s->cache[hash_u64(address + ((uint64_t)mapping << 40)) >> (64 - CACHE_BITS)];
}

/* The slow way: names the address, and keeps the answer in the set. */
static int find_anew(struct tally_symbolizer *s, int32_t pid, uint32_t mapping, uint64_t time,
		     struct answer_set *set, struct tally_frame *out)
{
	uint32_t mode = out->mode;

	s->fleeting = false;
	int r = name_address(s, pid, mapping, time, out);
	if (r < 0)
		return r;
	if (s->fleeting)
		return answer(s, out);
	set->way[set->next++ % CACHE_WAYS] = (struct answer){
		.frame = *out,
		.mapping = mapping,
		.mode = mode,
		.used = true,
	};
	return answer(s, out);
}

static int find_kept(struct tally_symbolizer *s, int32_t pid, int64_t mapping, uint64_t time,
		     uint64_t address, uint32_t mode, struct tally_frame *out)
{
	struct answer_set *set = set_of(s, mapping < 0 ? 0 : (uint32_t)mapping, address);

	for (size_t i = 0; i < CACHE_WAYS; i++) {
		const struct answer *a = &set->way[i];
		if (a->frame.address == address && a->mapping == mapping && a->mode == mode &&
		    a->used) {
			*out = a->frame;
			return answer(s, out);
		}
	}
	*out = (struct tally_frame){
		.address = address,
		.offset = address,
		.module_address = address,
		.module = UNMAPPED,
		.path = UNMAPPED,
		.function_id = UINT32_MAX,
		.mode = mode,
	};
	return mapping < 0 ? (int)mapping : find_anew(s, pid, (uint32_t)mapping, time, set, out);
}

int tally_symbolizer_find(struct tally_symbolizer *s, int32_t pid, uint64_t time, uint64_t address,
			  uint32_t mode, struct tally_frame *out)
{
	int64_t mapping = locate(s, pid, time, address, mode);
	const struct shortcut *way = &s->shortcuts[(uint64_t)mapping % SHORTCUTS];

	if (mapping <= 0 || way->mapping != mapping || address < way->first || address > way->last)
		return find_kept(s, pid, mapping, time, address, mode, out);
	struct module *m = s->modules.at[way->module - 1];
	*out = (struct tally_frame){
		.address = address,
		.offset = address + way->bias,
		.module_address = address + way->bias,
		.module = m->name,
		.path = m->path,
		.module_id = way->module - 1,
		.function_id = UINT32_MAX,
		.mode = TALLY_MODE_USER,
	};
	int r = name_in_file(s, m, out);
	return r < 0 ? r : answer(s, out);
}

bool symbolizer_begins_behind(const struct tally_symbolizer *s, const struct tally_frame *f)
{
	const struct symtab *t = &s->modules.at[f->module_id]->file.symtab;

	return !f->function || symtab_find(t, f->module_address + 1) != f->function_id;
}

uint32_t tally_symbolizer_modules(const struct tally_symbolizer *s)
{
	return (uint32_t)s->modules.count;
}

int tally_symbolizer_module(const struct tally_symbolizer *s, uint32_t id,
			    struct tally_module_info *out)
{
	if (id >= s->modules.count)
		return -EINVAL;
	const struct module *m = s->modules.at[id];
	/* What little a stripped module has may have been all that was asked for. */
	bool enough = !m->trouble[0] || (m->function_count && !m->misses);

	*out = (struct tally_module_info){
		.path = m->path,
		.name = m->name,
		.trouble = enough ? NULL : m->trouble,
		.build_id = m->build_id.len ? m->build_id.bytes : NULL,
		.build_id_len = m->build_id.len,
		.symbols = m->function_count,
		.lookups = m->lookups,
		.misses = m->misses,
	};
	return 0;
}

bool symbolizer_search(struct tally_symbolizer *s, const struct tally_symbolizer_query *query,
		       struct file_search *out)
{
	int64_t mapping = locate(s, query->pid, query->time, query->address, query->mode);

	if (mapping <= 0)
		return false;
	*out = search_of(s, query->pid, (uint32_t)mapping);
	return true;
}
