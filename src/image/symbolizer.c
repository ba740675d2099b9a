/* SPDX-License-Identifier: MIT */
/*
 * From (process, time, address) to a named frame. What a mapping's number and an address name never
 * changes, but for code that processes make, so answers are kept whole in a table by these two: a
 * repeated address costs the look-up of its mapping and a copy.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tally/symbolizer.h>
#include <time.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/vec.h"
#include "image/builds.h"
#include "image/cache.h"
#include "image/demangle.h"
#include "image/jit.h"
#include "image/kernel.h"
#include "image/maps.h"
#include "image/module.h"
#include "image/texts.h"

/* Sets of two answers: with one place each, a quarter of 1,000 hot addresses would meet another. */
#define CACHE_BITS 11
#define CACHE_WAYS 2

#define CODE_NOT_TOLD "code made at run time of which its program tells no name"

#define UNMAPPED      "[unknown]" /* perf's word */
#define NOTHING_THERE "nothing is mapped there"

#define KNOWN_FLAGS \
	(TALLY_SYMBOLIZER_MANGLED | TALLY_SYMBOLIZER_DEBUGINFOD | TALLY_SYMBOLIZER_NO_CACHE)

/* Numbers of functions in modules whose functions are known by their names alone. */
#define BY_NAME 0x80000000u

struct answer {
	struct tally_frame frame;
	uint32_t mapping, mode; /* mode as asked for */
	bool used;
};

struct tally_symbolizer {
	struct tally_symbolizer_opts opts;
	struct tally_maps *maps;
	struct texts texts;
	VEC(struct module *) modules;
	struct map64 by_file; /* hash of path_id and inode -> module + 1 */
	struct map64 by_name; /* index in texts -> module + 1, for what is no file */
	struct builds builds;
	struct jit jit;
	struct kernel kernel;
	struct kernel_recorded recorded;
	const char **kernel_functions; /* by index; NULL until asked for */
	bool kernel_loaded;
	bool fleeting; /* the answer at hand may be another one soon */
	char cache_folder[PATH_MAX];
	struct answer_set {
		struct answer way[CACHE_WAYS];
		uint32_t next; /* the way that gives place */
	} cache[1 << CACHE_BITS];
};

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

/* The kernel's names are loaded anew when they are next needed. */
static void forget_kernel(struct tally_symbolizer *s)
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

void tally_symbolizer_free(struct tally_symbolizer *s)
{
	if (!s)
		return;
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

int tally_symbolizer_kernel(struct tally_symbolizer *s, uint64_t text, const uint8_t *build_id,
			    uint32_t build_id_len)
{
	s->recorded.symbol = "_text";
	s->recorded.address = text;
	if (build_id && build_id_len)
		s->recorded.build_id = build_id_from(build_id, build_id_len);
	forget_kernel(s);
	return 0;
}

void tally_symbolizer_release(struct tally_symbolizer *s, const char *release)
{
	snprintf(s->recorded.release, sizeof(s->recorded.release), "%s", release ? release : "");
	forget_kernel(s);
}

int tally_symbolizer_build_id(struct tally_symbolizer *s, int32_t pid, const char *path,
			      const uint8_t *build_id, uint32_t build_id_len)
{
	struct build_id id = build_id_from(build_id, build_id_len);

	if (strncmp(path, KERNEL_NAME, strlen(KERNEL_NAME)) != 0)
		return builds_set(&s->builds, path, pid, &id) ? 0 : -ENOMEM;
	if (!s->recorded.build_id.len) {
		s->recorded.build_id = id;
		forget_kernel(s);
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
	uint64_t device = (uint64_t)map->dev_major << 32 | map->dev_minor;
	uint64_t key = hash_u64(hash_u64(hash_u64(map->path_id) + map->inode) + device);
	uint32_t *index = map64_at(&s->by_file, key);

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

/* The module that is no file; 0: no memory. */
static uint32_t module_by_name(struct tally_symbolizer *s, const char *path, const char *trouble)
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

static void fill_module(const struct tally_symbolizer *s, struct tally_frame *out, uint32_t module)
{
	const struct module *m = s->modules.at[module - 1];

	out->module = m->name;
	out->path = m->path;
	out->module_id = module - 1;
}

/* A linker's name as people read it; NULL: no memory. */
static const char *readable(struct tally_symbolizer *s, const char *name, bool is_plt)
{
	bool mangled = s->opts.flags & TALLY_SYMBOLIZER_MANGLED;
	char *own = mangled ? NULL : demangle(name, false);
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

static int name_in_file(struct tally_symbolizer *s, struct module *m, struct tally_frame *out)
{
	const struct elf_file *f = &m->file;
	uint32_t index = symtab_find(&f->symtab, out->module_address);

	if (index == SYMTAB_NONE)
		return 0;
	if (!m->functions[index])
		m->functions[index] = readable(s, elf_file_name(f, index),
					       elf_file_is_plt(f, index));
	if (!m->functions[index])
		return -ENOMEM;
	out->function = m->functions[index];
	out->function_id = index;
	out->offset = out->module_address - symtab_start(&f->symtab, index);
	return 1;
}

/* By its name alone; the text stands for the function. -ENOMEM. */
static int name_function(struct tally_symbolizer *s, const char *name, uint64_t start,
			 struct tally_frame *out)
{
	const char *function = readable(s, name, false);
	uint32_t text = function ? texts_add(&s->texts, function, strlen(function)) : UINT32_MAX;

	if (text == UINT32_MAX)
		return -ENOMEM;
	out->function = function;
	out->function_id = BY_NAME | text;
	out->offset = out->address - start;
	return 1;
}

/* By what the process tells of code that it made, or its parent that had the memory first. */
static int name_made_code(struct tally_symbolizer *s, int32_t pid, int32_t owner, uint64_t time,
			  struct module *m, struct tally_frame *out)
{
	struct jit_place place;
	int r = jit_find(&s->jit, pid, time, out->address, &place);

	s->fleeting = true;
	if (r == 0 && owner != pid)
		r = jit_find(&s->jit, owner, time, out->address, &place);
	if (r <= 0) {
		if (r == 0 && place.source && module_not_a_file(m->path))
			module_without_file(m, CODE_NOT_TOLD);
		return r;
	}
	uint32_t index = module_by_name(s, place.source->path, "");
	if (!index)
		return -ENOMEM;
	s->modules.at[index - 1]->function_count = (uint32_t)place.source->file.codes.count;
	fill_module(s, out, index);
	out->module_address = out->address;
	return name_function(s, jit_file_text(&place.source->file, place.code->name),
			     place.code->start, out);
}

static int name_user(struct tally_symbolizer *s, int32_t pid, uint32_t mapping, uint64_t time,
		     struct tally_frame *out)
{
	struct file_search where = {
		.root = s->opts.root,
		.symfs = s->opts.symfs,
		.cache = s->opts.cache,
		.debuginfod = s->opts.flags & TALLY_SYMBOLIZER_DEBUGINFOD,
		.pid = pid,
	};
	int32_t owner = maps_owner(s->maps, mapping);

	maps_mapping(s->maps, mapping, &where.map);
	uint32_t index = module_of_file(s, owner, &where.map);
	if (!index)
		return -ENOMEM;
	struct module *m = s->modules.at[index - 1];
	where.build_id = m->build_id;
	int r = module_load(m, &where);
	fill_module(s, out, index);
	uint64_t offset = out->address - where.map.start + where.map.pgoff;
	if (!elf_file_address(&m->file, offset, &out->module_address))
		out->module_address = offset;
	out->offset = out->module_address;
	if (r < 0)
		return r;
	return m->function_count ? name_in_file(s, m, out)
				 : name_made_code(s, pid, owner, time, m, out);
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
		return module_by_name(s, kernel_module(k, function), "");
	if (map)
		return module_by_name(s, kernel_module_name(room, map), k->trouble);
	/* No mapping was recorded, and without symbols nobody knows where the kernel is. */
	if (k->trouble[0])
		return module_by_name(s, KERNEL_NAME, k->trouble);
	return module_by_name(s, UNMAPPED, NOTHING_THERE);
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
	uint32_t module = module_by_name(s, name, "");
	if (!module)
		return -ENOMEM;
	fill_module(s, out, module);
	return name_function(s, map->path, map->start, out);
}

static int name_kernel(struct tally_symbolizer *s, uint32_t mapping, struct tally_frame *out)
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
	fill_module(s, out, module);
	describe_kernel_module(s, s->modules.at[module - 1]);
	if (index == SYMTAB_NONE)
		return 0;
	if (!s->kernel_functions[index])
		s->kernel_functions[index] = readable(s, kernel_function(k, index), false);
	if (!s->kernel_functions[index])
		return -ENOMEM;
	out->function = s->kernel_functions[index];
	out->function_id = index;
	out->offset = out->module_address - symtab_start(&k->symtab, index);
	return 1;
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
	uint32_t module = module_by_name(s, name, trouble);

	if (!module)
		return -ENOMEM;
	fill_module(s, out, module);
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
		return name_kernel(s, mapping, out);
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

int tally_symbolizer_find(struct tally_symbolizer *s, int32_t pid, uint64_t time, uint64_t address,
			  uint32_t mode, struct tally_frame *out)
{
	int64_t mapping = locate(s, pid, time, address, mode);
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
