/* SPDX-License-Identifier: MIT */
/*
 * tally_symbolizer: from (process, time, address) to a named frame.
 *
 * Modules are read once, when an address in them is first asked for; the kernel's symbols too. A
 * module is looked for by what the mapping says: below symfs, through /proc/PID/root and map_files
 * while the process lives and has that very file (other mount namespaces, deleted files), by its
 * path, then by its build-id in what recordings, perf's too (~/.debug), kept. A file whose build-id differs from the
 * recorded one is not used. Symbols that were taken out of a file come from its separate debug file.
 *
 * Code that a process makes while it runs is named by what it tells: a jitdump that it maps (as
 * jit-PID.dump), which has times, so that reused memory has the names of its time; or
 * /tmp/perf-PID.map, which is read again when it grew.
 */
#ifndef TALLY_SYMBOLIZER_H
#define TALLY_SYMBOLIZER_H

#include <tally/api.h>
#include <tally/error.h>
#include <tally/maps.h>

TALLY_BEGIN_DECLS

struct tally_symbolizer;

enum tally_symbolizer_flags {
	TALLY_SYMBOLIZER_MANGLED = 1u << 0, /* leave C++ and Rust names as the linker knows them */
	/* Ask the servers in $DEBUGINFOD_URLS for what is not here; needs libdebuginfod. */
	TALLY_SYMBOLIZER_DEBUGINFOD = 1u << 1,
	TALLY_SYMBOLIZER_NO_CACHE = 1u << 2, /* do not use what recordings kept */
	TALLY_SYMBOLIZER_PARAMETERS = 1u
				      << 3, /* demangled functions with their parameters' types */
};

struct tally_symbolizer_opts {
	uint32_t size, flags; /* enum tally_symbolizer_flags */
	const char
		*root; /* folder above /proc (kallsyms, PID/root); NULL: the real one. Borrowed. */
	const char *symfs; /* folder in which recorded paths are looked for first; NULL: none.
			      Borrowed. */
	const char *cache; /* folder with what recordings kept; NULL: $XDG_CACHE_HOME/tally or
			      ~/.cache/tally. Borrowed. */
};

/* Whose address it is; the values are those of header.misc's cpumode. */
enum tally_mode {
	TALLY_MODE_UNKNOWN = 0,
	TALLY_MODE_KERNEL = 1,
	TALLY_MODE_USER = 2,
	TALLY_MODE_HYPERVISOR = 3,
	TALLY_MODE_GUEST_KERNEL = 4,
	TALLY_MODE_GUEST_USER = 5,
};

/* A named place. Texts live as long as the symbolizer. */
struct tally_frame {
	uint64_t address; /* as asked for */
	uint64_t
		offset; /* from the function's start; from the module's when there is no function */
	uint64_t module_address; /* address in the module's own numbering (ELF virtual address) */
	const char *function;    /* NULL: no symbol covers it */
	const char *module;      /* short name: "libc.so.6", "[kernel.kallsyms]", "[ext4]" (a kernel
				 module); "[unknown]" when nothing is mapped */
	const char *path;        /* full path of the module as recorded, or module */
	uint32_t module_id;      /* equal for equal modules, below tally_symbolizer_modules() */
	uint32_t function_id;    /* unique in its module; UINT32_MAX without a function */
	uint32_t mode;           /* enum tally_mode */
	uint32_t reserved;
};

/* What became of a module. */
struct tally_module_info {
	const char *path, *name;
	/* Why it has no symbols, or too few for what was asked, and what to do, as a phrase for
	 * people; NULL: it has. */
	const char *trouble;
	const uint8_t *build_id; /* of a perf map or jitdump an id of its content, where the
				    recording tells one */
	uint32_t build_id_len;
	uint32_t symbols;         /* how many functions it names */
	uint64_t lookups, misses; /* addresses asked for, and how many had no function */
};

/* `maps` must outlive it. Errors: -ENOMEM, -EINVAL. Since: 0.1 */
TALLY_API int tally_symbolizer_new(struct tally_symbolizer **out, struct tally_maps *maps,
				   const struct tally_symbolizer_opts *opts,
				   struct tally_error *err);
/* NULL is fine. Since: 0.1 */
TALLY_API void tally_symbolizer_free(struct tally_symbolizer *symbolizer);

/*
 * Which kernel the recording is of: `_text`'s address there (0: unknown) and its build-id, so that
 * the running kernel's symbols are moved by the difference when it is the same build, and refused
 * when it is another. Without this call, a kernel mapping's reference symbol
 * (`[kernel.kallsyms]_text` with its address in pgoff) says as much. Since: 0.1
 */
TALLY_API int tally_symbolizer_kernel(struct tally_symbolizer *symbolizer, uint64_t text,
				      const uint8_t *build_id, uint32_t build_id_len);

/*
 * The release of the recorded kernel, as uname -r tells it. Where the recording has no build-id of
 * its kernel, another release than the running one has its symbols refused. Longer ones than 63
 * characters are cut; NULL: unknown. Since: 0.1
 */
TALLY_API void tally_symbolizer_release(struct tally_symbolizer *symbolizer, const char *release);

/*
 * A build-id for a path, from the BUILD_ID feature, for mappings that carry none;
 * "[kernel.kallsyms]" is the kernel's. `pid` is the process whose file it is, or negative: all.
 * A path that has build-ids for single processes has none for the others. To be called before an
 * address in the module is asked for. Errors: -ENOMEM. Since: 0.1
 */
TALLY_API int tally_symbolizer_build_id(struct tally_symbolizer *symbolizer, int32_t pid,
					const char *path, const uint8_t *build_id,
					uint32_t build_id_len);

/*
 * The clock of the times that are asked with: CLOCK_MONOTONIC without this call, UINT32_MAX: the
 * kernel's perf clock. The times in jitdumps are CLOCK_MONOTONIC, and are of use with that alone.
 * Since: 0.1
 */
TALLY_API void tally_symbolizer_clock(struct tally_symbolizer *symbolizer, uint32_t clockid);

/*
 * A number that changes with `time` when code of the process took the place of other code, so that
 * an answer for one of its addresses may be kept only together with it. Errors: -ENOMEM.
 * Since: 0.1
 */
TALLY_API int64_t tally_symbolizer_epoch(struct tally_symbolizer *symbolizer, int32_t pid,
					 uint64_t time);

/*
 * Names an address. Always fills in `*out`; returns 1 when there is a function, 0 when not.
 * For a return address in a callchain pass the address minus 1 and put it right afterwards.
 * Errors: -ENOMEM. Since: 0.1
 */
TALLY_API int tally_symbolizer_find(struct tally_symbolizer *symbolizer, int32_t pid, uint64_t time,
				    uint64_t address, uint32_t mode, struct tally_frame *out);

/* An address to be named, as the parameters of tally_symbolizer_find(). */
struct tally_symbolizer_query {
	int32_t pid;
	uint32_t mode; /* enum tally_mode */
	uint64_t time, address;
};

/* A function at an address: the one that stands there, or one that was inlined there. */
struct tally_source {
	const char *function;  /* as those of frames; NULL: unknown */
	const char *file;      /* as the compiler was told, with its folder; NULL: unknown */
	uint32_t line, column; /* in `file`, from 1 on; 0: unknown, or code that is of no line */
	uint32_t inlined;      /* not 0: into the next source, at that one's line */
	uint32_t reserved;
};

/* All that is known of an address. */
struct tally_symbolized {
	struct tally_frame frame; /* as tally_symbolizer_find() tells */
	/* At least one; the innermost first, the last is the function of `frame`. */
	const struct tally_source *sources;
	uint32_t source_count;
	uint32_t build_id_len;   /* of the module; 0: unknown */
	const uint8_t *build_id; /* lives as long as the symbolizer */
};

/*
 * Names `count` addresses with their places in the source and the calls that the compiler inlined
 * there, into `out[0]` to `out[count - 1]`. For return addresses pass them minus 1, as for
 * tally_symbolizer_find().
 *
 * Lines and inlined calls come from the module's DWARF (versions 2 to 5, in itself, in its debug
 * file, in .dwo files or a .dwp, with the file that dwz shares, by GNU's sections or DWARF 5's),
 * which is looked for when it is first asked for and read as far as needed: of a compilation unit
 * once all, so many addresses of one program cost far less than their number, and the files stay
 * open. Where there is none a source has the function alone. The outermost function's name is the
 * symbol's, where there is one, as perf(1) shows it.
 *
 * `sources` are the symbolizer's, until the next call; their texts live as long as it does. Returns
 * 0. Errors: -ENOMEM: then `out` is to be ignored. Since: 0.1
 */
TALLY_API int tally_symbolizer_lines(struct tally_symbolizer *symbolizer,
				     const struct tally_symbolizer_query *queries, size_t count,
				     struct tally_symbolized *out);

/* A function's instructions, as they stand in its module's file. */
struct tally_code {
	struct tally_frame frame; /* of the address that was asked for */
	uint64_t start, size;     /* of the function, in the module's own numbering; bytes */
	const uint8_t *bytes;     /* the symbolizer's, until the next call */
	const char *path;         /* at which the file was found here */
	uint32_t machine;         /* ELF's e_machine */
	uint32_t is_64_bit;
	int64_t mtime; /* when the file was last changed, s since 1970 */
};

/*
 * The code of the function at an address. Errors: -ENOENT: no function is known there; -ENODATA: its
 * code is in no file that is here (the kernel's, code made at run time, a file that is gone or was
 * replaced since it was read), or is larger than 16 MiB; `out->frame` is filled in with these two;
 * -ENOMEM. Since: 0.1
 */
TALLY_API int tally_symbolizer_code(struct tally_symbolizer *symbolizer,
				    const struct tally_symbolizer_query *query,
				    struct tally_code *out);

/* The modules that were met. Since: 0.1 */
TALLY_API uint32_t tally_symbolizer_modules(const struct tally_symbolizer *symbolizer);
TALLY_API int tally_symbolizer_module(const struct tally_symbolizer *symbolizer, uint32_t id,
				      struct tally_module_info *out);

/*
 * Demangles a C++ (Itanium), Rust (legacy, v0) or D name, with parameter types; those of frames
 * come without unless asked for, as perf(1) shows them. Returns a malloc'ed text, NULL when it is not mangled, or
 * when the text would be longer than 64 KiB: short names exist that demangle into gigabytes.
 * Since: 0.1
 */
TALLY_API char *tally_demangle(const char *name);

TALLY_END_DECLS

#endif
