/* SPDX-License-Identifier: MIT */
/*
 * Reading one ELF file with libelf. libelf checks that a section lies in the file and an index in
 * its section; string offsets and everything that we compute from values are checked here.
 */
#include <elf.h>
#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "image/elf.h"

/* Real files stay far below these. */
#define MAX_SECTION  ((uint64_t)1 << 30)
#define MAX_SEGMENTS 64
#define MAX_NOTES    65536

#define PAGE 4096

/* symbol.kind */
#define KIND_OPEN 1 /* no size was stated: `end` is the end of its section, until sorted */
#define KIND_PLT  2

struct table {
	Elf *elf;
	Elf_Data *symbols;
	size_t count;
	uint32_t names; /* offset in elf_file.names of its string table */
	uint32_t names_len;
	GElf_Half machine;
};

/* Appends a string table; false when it is none, too large, or there is no memory. */
static bool add_names(struct elf_file *f, Elf *elf, size_t section, struct table *t)
{
	GElf_Shdr head;
	Elf_Scn *scn = elf_getscn(elf, section);

	if (!scn || !gelf_getshdr(scn, &head) || head.sh_type != SHT_STRTAB ||
	    head.sh_size > MAX_SECTION)
		return false;
	const Elf_Data *data = elf_rawdata(scn, NULL);
	if (!data || !data->d_buf || f->names.count + data->d_size >= UINT32_MAX ||
	    !vec_reserve(&f->names, data->d_size + 1))
		return false;
	t->names = (uint32_t)f->names.count;
	t->names_len = (uint32_t)data->d_size;
	memcpy(f->names.at + f->names.count, data->d_buf, data->d_size);
	f->names.count += data->d_size;
	f->names.at[f->names.count++] = '\0';
	return true;
}

/* The symbol table in a section, with its names added to the file's. */
static bool open_table(struct elf_file *f, Elf *elf, Elf_Scn *scn, struct table *t)
{
	GElf_Shdr head;
	GElf_Ehdr ehdr;

	if (!gelf_getshdr(scn, &head) || !gelf_getehdr(elf, &ehdr) || head.sh_size > MAX_SECTION)
		return false;
	size_t size = gelf_fsize(elf, ELF_T_SYM, 1, EV_CURRENT);
	*t = (struct table){ .elf = elf, .machine = ehdr.e_machine };
	t->symbols = elf_getdata(scn, NULL);
	if (!size || !t->symbols || !t->symbols->d_buf)
		return false;
	t->count = t->symbols->d_size / size;
	return t->count <= INT32_MAX && add_names(f, elf, head.sh_link, t);
}

/* $a, $d, $t, $x mark code and data for ARM's and RISC-V's disassemblers. */
static bool is_mapping_symbol(const struct table *t, const char *name)
{
	return (t->machine == EM_ARM || t->machine == EM_AARCH64 || t->machine == EM_RISCV) &&
	       name[0] == '$' && name[1] && strchr("adtx", name[1]);
}

/* Whether a symbol names code: functions, and labels of hand-written assembly. */
static bool is_code(const GElf_Sym *sym, const GElf_Shdr *section)
{
	unsigned char type = GELF_ST_TYPE(sym->st_info);
	unsigned char visibility = GELF_ST_VISIBILITY(sym->st_other);

	if (!(section->sh_flags & SHF_ALLOC))
		return false;
	if (type == STT_FUNC || type == STT_GNU_IFUNC)
		return true;
	return type == STT_NOTYPE && section->sh_flags & SHF_EXECINSTR &&
	       visibility != STV_HIDDEN && visibility != STV_INTERNAL;
}

static uint8_t binding_of(const GElf_Sym *sym)
{
	switch (GELF_ST_BIND(sym->st_info)) {
	case STB_LOCAL:
		return SYMBOL_LOCAL;
	case STB_WEAK:
		return SYMBOL_WEAK;
	default: /* STB_GNU_UNIQUE is global too */
		return SYMBOL_GLOBAL;
	}
}

static uint64_t add_or_max(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Fills in `out`; false: not a function of this file. */
static bool make_symbol(const struct elf_file *f, const struct table *t, const GElf_Sym *sym,
			struct symbol *out)
{
	GElf_Shdr section;

	if (!sym->st_name || sym->st_name >= t->names_len || sym->st_shndx == SHN_UNDEF ||
	    sym->st_shndx >= SHN_LORESERVE)
		return false;
	Elf_Scn *scn = elf_getscn(t->elf, sym->st_shndx);
	if (!scn || !gelf_getshdr(scn, &section) || !is_code(sym, &section) ||
	    is_mapping_symbol(t, f->names.at + t->names + sym->st_name))
		return false;
	/* The lowest bit tells Thumb from ARM code. */
	uint64_t start = t->machine == EM_ARM ? sym->st_value & ~(uint64_t)1 : sym->st_value;
	*out = (struct symbol){
		.start = start,
		.end = add_or_max(start, sym->st_size),
		.name = t->names + sym->st_name,
		.binding = binding_of(sym),
	};
	if (!sym->st_size) {
		uint64_t limit = add_or_max(section.sh_addr, section.sh_size);
		out->end = limit > start ? limit : start;
		out->kind = KIND_OPEN;
	}
	return true;
}

static int add_symbols(struct elf_file *f, const struct table *t)
{
	for (size_t i = 0; i < t->count; i++) {
		GElf_Sym sym;
		struct symbol symbol;
		if (!gelf_getsym(t->symbols, (int)i, &sym) || !make_symbol(f, t, &sym, &symbol))
			continue;
		if (!symtab_add(&f->symtab, &symbol))
			return -ENOMEM;
	}
	return 0;
}

/* The shape of a section of stubs: the linker's, by machine (psABIs, binutils). */
struct plt_shape {
	GElf_Half machine;
	const char *section;
	uint32_t head, entry;
};

static const struct plt_shape plt_shapes[] = {
	{ EM_X86_64, ".plt", 16, 16 }, { EM_X86_64, ".plt.sec", 0, 16 }, { EM_386, ".plt", 16, 16 },
	{ EM_386, ".plt.sec", 0, 16 }, { EM_AARCH64, ".plt", 32, 16 },   { EM_ARM, ".plt", 20, 12 },
	{ EM_RISCV, ".plt", 32, 16 },
};

static const struct plt_shape *plt_shape(GElf_Half machine, const char *section)
{
	for (size_t i = 0; i < ARRAY_SIZE(plt_shapes); i++)
		if (plt_shapes[i].machine == machine && !strcmp(plt_shapes[i].section, section))
			return &plt_shapes[i];
	return NULL;
}

/* The dynamic symbol that relocation `i` is about; 0: none. */
static size_t relocated_symbol(Elf_Data *relocs, bool addends, size_t i)
{
	GElf_Rela rela;
	GElf_Rel rel;

	if (addends)
		return gelf_getrela(relocs, (int)i, &rela) ? GELF_R_SYM(rela.r_info) : 0;
	return gelf_getrel(relocs, (int)i, &rel) ? GELF_R_SYM(rel.r_info) : 0;
}

/* The stubs of one section stand in the order of the relocations of .rela.plt. */
static int add_stubs(struct elf_file *f, const struct table *dynamic, const GElf_Shdr *plt,
		     const struct plt_shape *shape, Elf_Data *relocs, bool addends)
{
	size_t size = gelf_fsize(dynamic->elf, addends ? ELF_T_RELA : ELF_T_REL, 1, EV_CURRENT);
	size_t count = size ? relocs->d_size / size : 0;

	for (size_t i = 0; i < count && i < INT32_MAX; i++) {
		uint64_t at = shape->head + i * shape->entry;
		if (at >= plt->sh_size || plt->sh_size - at < shape->entry)
			break;
		GElf_Sym sym;
		size_t index = relocated_symbol(relocs, addends, i);
		if (!index || index >= dynamic->count ||
		    !gelf_getsym(dynamic->symbols, (int)index, &sym) || !sym.st_name ||
		    sym.st_name >= dynamic->names_len)
			continue;
		struct symbol stub = {
			.start = plt->sh_addr + at,
			.end = add_or_max(plt->sh_addr + at, shape->entry),
			.name = dynamic->names + sym.st_name,
			.binding = SYMBOL_GLOBAL,
			.kind = KIND_PLT,
		};
		if (stub.end > stub.start && !symtab_add(&f->symtab, &stub))
			return -ENOMEM;
	}
	return 0;
}

static const char *section_name(Elf *elf, const GElf_Shdr *head)
{
	size_t names;

	if (elf_getshdrstrndx(elf, &names) < 0)
		return "";
	/* libelf answers NULL for a text that does not end in its section. */
	const char *name = elf_strptr(elf, names, head->sh_name);
	return name ? name : "";
}

static Elf_Data *plt_relocs(Elf *elf, bool *addends)
{
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
		GElf_Shdr head;
		if (!gelf_getshdr(scn, &head) || head.sh_size > MAX_SECTION)
			continue;
		const char *name = section_name(elf, &head);
		*addends = head.sh_type == SHT_RELA;
		if ((*addends && !strcmp(name, ".rela.plt")) ||
		    (head.sh_type == SHT_REL && !strcmp(name, ".rel.plt")))
			return elf_getdata(scn, NULL);
	}
	return NULL;
}

static int add_plt(struct elf_file *f, const struct table *dynamic)
{
	bool addends = false;
	Elf_Data *relocs = plt_relocs(dynamic->elf, &addends);

	if (!relocs || !relocs->d_buf)
		return 0;
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(dynamic->elf, scn));) {
		GElf_Shdr head;
		if (!gelf_getshdr(scn, &head) || head.sh_type != SHT_PROGBITS)
			continue;
		const struct plt_shape *shape = plt_shape(dynamic->machine,
							  section_name(dynamic->elf, &head));
		int r = shape ? add_stubs(f, dynamic, &head, shape, relocs, addends) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_tables(struct elf_file *f, Elf *elf)
{
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
		GElf_Shdr head;
		struct table t;
		if (!gelf_getshdr(scn, &head) ||
		    (head.sh_type != SHT_SYMTAB && head.sh_type != SHT_DYNSYM) ||
		    !open_table(f, elf, scn, &t))
			continue;
		int r = add_symbols(f, &t);
		if (r == 0 && head.sh_type == SHT_DYNSYM)
			r = add_plt(f, &t);
		if (r < 0)
			return r;
		f->has_symtab |= head.sh_type == SHT_SYMTAB;
	}
	return 0;
}

static struct build_id find_build_id(Elf *elf)
{
	size_t count;

	if (elf_getphdrnum(elf, &count) < 0)
		return (struct build_id){ 0 };
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr head;
		if (!gelf_getphdr(elf, (int)i, &head) || head.p_type != PT_NOTE ||
		    head.p_filesz > MAX_NOTES || head.p_offset > INT64_MAX)
			continue;
		const Elf_Data *notes = elf_getdata_rawchunk(elf, (int64_t)head.p_offset,
							     head.p_filesz, ELF_T_BYTE);
		if (!notes || !notes->d_buf)
			continue;
		struct build_id id = build_id_from_notes(notes->d_buf, notes->d_size);
		if (id.len)
			return id;
	}
	return (struct build_id){ 0 };
}

static int read_segments(struct elf_file *f, Elf *elf)
{
	size_t count;

	if (elf_getphdrnum(elf, &count) < 0)
		return -ENOEXEC;
	for (size_t i = 0; i < count && f->segments.count < MAX_SEGMENTS; i++) {
		GElf_Phdr head;
		if (!gelf_getphdr(elf, (int)i, &head) || head.p_type != PT_LOAD || !head.p_filesz)
			continue;
		struct elf_segment *s = vec_push(&f->segments);
		if (!s)
			return -ENOMEM;
		*s = (struct elf_segment){
			.offset = head.p_offset,
			.size = head.p_filesz,
			.address = head.p_vaddr,
			.executable = head.p_flags & PF_X,
		};
	}
	return 0;
}

static int read_elf(struct elf_file *f, Elf *elf)
{
	if (elf_kind(elf) != ELF_K_ELF)
		return -ENOEXEC;
	f->build_id = find_build_id(elf);
	int r = read_segments(f, elf);
	return r < 0 ? r : read_tables(f, elf);
}

static Elf *begin(int fd)
{
	return elf_version(EV_CURRENT) == EV_NONE ? NULL : elf_begin(fd, ELF_C_READ, NULL);
}

int elf_file_read(struct elf_file *f, int fd)
{
	Elf *elf = begin(fd);
	int r = elf ? read_elf(f, elf) : -ENOEXEC;

	elf_end(elf);
	return r;
}

int elf_file_read_memory(struct elf_file *f, const void *image, size_t size)
{
	if (elf_version(EV_CURRENT) == EV_NONE)
		return -ENOEXEC;
	/* libelf may write into the image, so it gets a copy. */
	char *copy = malloc(size);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, image, size);
	Elf *elf = elf_memory(copy, size);
	int r = elf ? read_elf(f, elf) : -ENOEXEC;
	elf_end(elf);
	free(copy);
	return r;
}

int elf_file_read_debug(struct elf_file *f, int fd)
{
	Elf *elf = begin(fd);
	int r = -ENOEXEC;

	if (elf && elf_kind(elf) == ELF_K_ELF) {
		struct build_id id = find_build_id(elf);
		bool same = id.len && f->build_id.len && !build_ids_differ(&id, &f->build_id);
		r = same ? read_tables(f, elf) : -ESTALE;
	}
	elf_end(elf);
	return r;
}

/* A symbol without a size reaches to the next one, at most to the end of its section. */
static void close_ends(struct symtab *t)
{
	for (size_t i = 0; i < t->symbols.count; i++) {
		struct symbol *s = &t->symbols.at[i];
		if (!(s->kind & KIND_OPEN))
			continue;
		if (i + 1 < t->symbols.count && s[1].start < s->end)
			s->end = s[1].start;
	}
}

static const char *name_of(const void *owner, const struct symbol *symbol)
{
	const struct elf_file *f = owner;

	return f->names.at + symbol->name;
}

int elf_file_seal(struct elf_file *f)
{
	if (!symtab_sort(&f->symtab))
		return -ENOMEM;
	close_ends(&f->symtab);
	return symtab_seal(&f->symtab, name_of, f) ? 0 : -ENOMEM;
}

/* Whether the pages of a segment, or with slack 1 its bytes, have this offset. */
static bool holds(const struct elf_segment *s, uint64_t offset, uint64_t slack)
{
	uint64_t start = s->offset & ~(slack - 1);
	uint64_t end = add_or_max(s->offset, s->size);

	end = add_or_max(end, slack - 1) & ~(slack - 1);
	return offset >= start && offset < end;
}

/*
 * Code first, since segments may share a page of the file (lld) and be mapped from it twice; exact
 * first, then as far as the pages reach that the loader maps.
 */
bool elf_file_address(const struct elf_file *f, uint64_t offset, uint64_t *address)
{
	static const struct {
		bool executable;
		uint64_t slack;
	} tries[] = { { true, 1 }, { false, 1 }, { true, PAGE }, { false, PAGE } };

	for (size_t t = 0; t < ARRAY_SIZE(tries); t++) {
		for (size_t i = 0; i < f->segments.count; i++) {
			const struct elf_segment *s = &f->segments.at[i];
			if (s->executable < tries[t].executable ||
			    !holds(s, offset, tries[t].slack))
				continue;
			*address = offset - s->offset + s->address;
			return true;
		}
	}
	return false;
}

const char *elf_file_name(const struct elf_file *f, uint32_t index)
{
	return name_of(f, &f->symtab.symbols.at[index]);
}

bool elf_file_is_plt(const struct elf_file *f, uint32_t index)
{
	return f->symtab.symbols.at[index].kind & KIND_PLT;
}

struct build_id elf_build_id(int fd)
{
	struct build_id id = { 0 };
	Elf *elf = begin(fd);

	if (elf && elf_kind(elf) == ELF_K_ELF)
		id = find_build_id(elf);
	elf_end(elf);
	return id;
}

void elf_file_done(struct elf_file *f)
{
	symtab_done(&f->symtab);
	vec_done(&f->names);
	vec_done(&f->segments);
	*f = (struct elf_file){ 0 };
}
