/* SPDX-License-Identifier: MIT */
/*
 * debug-file, elf-content: against programs that gcc, objcopy and dwz made here, with their debug
 * files where gdb's manual ("Separate Debug Files") says that they may be.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "fakeroot.h"
#include "image/debug-file.h"
#include "image/elf-content.h"
#include "shell.h"
#include "tap.h"

static bool there_is(const char *tool)
{
	char text[64];

	snprintf(text, sizeof(text), "command -v %s >/dev/null 2>&1", tool);
	return system(text) == 0;
}

/* A program "opt/prog" of many functions, with DWARF; `flags` for gcc. */
static bool make_program(struct fakeroot *root, const char *flags)
{
	return fakeroot_make(root) &&
	       fakeroot_file(
		       root, "/opt/prog.c",
		       "#include <stdio.h>\n"
		       "static int __attribute__((noinline)) inner(int n) { return n * 3; }\n"
		       "int main(int argc, char **argv) { return puts(argv[inner(argc) - 3]); }\n") &&
	       shell(root, "gcc -g -O1 %s -o opt/prog opt/prog.c", flags);
}

/* Takes its DWARF and symbols out into `debug`, below the root. */
static bool split(const struct fakeroot *root, const char *debug)
{
	return shell(root,
		     "mkdir -p $(dirname %s) && objcopy --only-keep-debug opt/prog %s && "
		     "objcopy --strip-all opt/prog",
		     debug, debug);
}

struct search {
	struct debug_search where;
	char opened[PATH_MAX];
	int fd;
};

static bool open_program(struct search *s, const struct fakeroot *root)
{
	*s = (struct search){ .where = { .path = "/opt/prog", .roots = { root->path } } };
	snprintf(s->opened, sizeof(s->opened), "%s/opt/prog", root->path);
	s->where.opened = s->opened;
	s->fd = open(s->opened, O_RDONLY | O_CLOEXEC);
	return s->fd >= 0;
}

/* Looks for the DWARF of opt/prog; its path behind the root in `found`, "" when there is none. */
static int look(const struct fakeroot *root, char found[PATH_MAX], bool *alt)
{
	struct debug_file file;
	struct search s;

	found[0] = '\0';
	*alt = false;
	if (!open_program(&s, root))
		return -EIO;
	int r = debug_file_find(&file, &s.where, s.fd, DEBUG_DWARF);
	close(s.fd);
	if (r == 0) {
		snprintf(found, PATH_MAX, "%s", file.path + strlen(root->path));
		*alt = file.alt >= 0;
		debug_file_done(&file);
	}
	return r;
}

static void check_found(const struct fakeroot *root, int r, const char *path)
{
	char found[PATH_MAX];
	bool alt;

	check_int(look(root, found, &alt), r);
	check_str(found, path);
	check(!alt);
}

static void whole_program_is_its_own_debug_file(void)
{
	struct debug_file file;
	struct fakeroot root;
	struct search s;
	if (!there_is("gcc"))
		tap_skip("there is no gcc");
	require(make_program(&root, "") && open_program(&s, &root));

	check_int(debug_file_find(&file, &s.where, s.fd, DEBUG_SYMBOLS), 0);
	check(file.own);
	check_str(file.path, s.opened);
	check(file.fd != s.fd);
	debug_file_done(&file);
	check_int(file.fd, -1);
	close(s.fd);

	require(shell(&root, "strip opt/prog") && open_program(&s, &root));
	check_int(debug_file_find(&file, &s.where, s.fd, DEBUG_SYMBOLS), -ENOENT);
	check_int(debug_file_find(&file, &s.where, s.fd, DEBUG_DWARF), -ENOENT);
	close(s.fd);
	fakeroot_remove(&root);
}

static void build_id_leads_to_the_debug_file(void)
{
	const char *debug =
		"usr/lib/debug/.build-id/ab/cdef0123456789abcdef0123456789abcdef01.debug";
	char path[128];
	struct fakeroot root;
	if (!there_is("gcc"))
		tap_skip("there is no gcc");
	require(make_program(&root, "-Wl,--build-id=0xabcdef0123456789abcdef0123456789abcdef01"));
	require(split(&root, debug));
	snprintf(path, sizeof(path), "/%s", debug);

	check_found(&root, 0, path);
	/* A debug file of another build in its place. */
	require(shell(&root, "gcc -g -Wl,--build-id=0xabcd00 -o %s opt/prog.c", debug));
	check_found(&root, -ENOENT, "");
	fakeroot_remove(&root);
}

static void link_leads_to_the_debug_file(void)
{
	static const char *const places[] = { "/opt/prog.debug", "/opt/.debug/prog.debug",
					      "/usr/lib/debug/opt/prog.debug",
					      "/usr/lib/debug/usr/opt/prog.debug" };
	struct fakeroot root;
	if (!there_is("gcc"))
		tap_skip("there is no gcc");
	require(make_program(&root, "-Wl,--build-id=none") && split(&root, "prog.debug"));
	require(shell(&root, "objcopy --add-gnu-debuglink=prog.debug opt/prog"));

	check_found(&root, -ENOENT, "");
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		require(shell(&root, "mkdir -p $(dirname .%s) && cp prog.debug .%s", places[i],
			      places[i]));
		check_found(&root, 0, places[i]);
		/* One byte more changes the CRC, not the ELF file. */
		require(shell(&root, "echo >> .%s", places[i]));
		check_found(&root, -ENOENT, "");
	}
	fakeroot_remove(&root);
}

/* With build-ids these decide, however the file was changed since. */
static void link_to_another_build_is_not_used(void)
{
	struct fakeroot root;
	if (!there_is("gcc"))
		tap_skip("there is no gcc");
	require(make_program(&root, "-Wl,--build-id") && split(&root, "opt/prog.debug"));
	require(shell(&root, "cd opt && objcopy --add-gnu-debuglink=prog.debug prog"));

	check_found(&root, 0, "/opt/prog.debug");
	require(shell(&root, "gcc -g -O2 -Wl,--build-id -o opt/prog.debug opt/prog.c"));
	check_found(&root, -ENOENT, "");
	fakeroot_remove(&root);
}

/* dwz -m: what prog and twin share goes into a third file. */
static void check_dwz(const char *form)
{
	char found[PATH_MAX];
	struct fakeroot root;
	bool alt;
	require(make_program(&root, "-gdwarf-4"));
	require(shell(&root, "cd opt && cp prog twin && dwz %s prog twin", form));

	check_int(look(&root, found, &alt), 0);
	check_str(found, "/opt/prog");
	check(alt);
	/* Another file of that name. */
	require(shell(&root, "mv opt/shared opt/true && cp opt/twin opt/shared"));
	check_int(look(&root, found, &alt), 0);
	check(!alt);
	/* One that was made of other programs. */
	require(shell(&root,
		      "echo 'int other(int x) { return x + 1; }' >> opt/prog.c && mkdir more && "
		      "gcc -gdwarf-4 -O2 -o more/prog opt/prog.c && cd more && cp prog twin && "
		      "dwz %s prog twin && cp shared ../opt",
		      form));
	check_int(look(&root, found, &alt), 0);
	check(!alt);
	require(shell(&root, "mv opt/true opt/shared"));
	check_int(look(&root, found, &alt), 0);
	check(alt);
	fakeroot_remove(&root);
}

static void dwz_file_is_found(void)
{
	if (!there_is("gcc") || !there_is("dwz"))
		tap_skip("there is no gcc or no dwz");
	check_dwz("-m shared -r");
}

/* DWARF 5's .debug_sup, with a checksum in both files. */
static void dwarf_5s_supplementary_file_is_found(void)
{
	if (!there_is("gcc") || !there_is("dwz"))
		tap_skip("there is no gcc or no dwz");
	check_dwz("-5 -m shared -M shared");
}

/* Cut at every place, without a checksum, or of another version it names no file. */
static void a_broken_debug_sup_leads_nowhere(void)
{
	static const char *const contents[] = {
		"\\005",
		"\\005\\000\\000",
		"\\005\\000\\000shared",
		"\\005\\000\\000shared\\000",
		"\\005\\000\\000shared\\000\\000",
		"\\005\\000\\000shared\\000\\024abc",
		"\\005\\000\\000shared\\000\\377\\377",
		"\\006\\000\\000shared\\000\\003abc",
		"\\005\\000\\001shared\\000\\003abc",
	};
	char found[PATH_MAX];
	struct fakeroot root;
	bool alt;
	if (!there_is("gcc"))
		tap_skip("there is no gcc");
	require(make_program(&root, "-gdwarf-5"));
	/* A shared file that is one, of that checksum, with which a good section goes. */
	require(shell(&root,
		      "cp opt/prog opt/plain && printf '\\005\\000\\001\\000\\003abc' > own && "
		      "objcopy --add-section .debug_sup=own opt/prog opt/shared"));
	require(shell(&root, "printf '\\005\\000\\000shared\\000\\003abc' > sup && "
			     "objcopy --add-section .debug_sup=sup opt/plain opt/prog"));
	check_int(look(&root, found, &alt), 0);
	check(alt);
	for (size_t i = 0; i < sizeof(contents) / sizeof(contents[0]); i++) {
		require(shell(&root,
			      "printf '%s' > sup && "
			      "objcopy --add-section .debug_sup=sup opt/plain opt/prog",
			      contents[i]));
		check_int(look(&root, found, &alt), 0);
		check(!alt);
	}
	fakeroot_remove(&root);
}

static bool read_section(const char *path, const char *name, struct elf_content *out)
{
	struct elf_input in;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int r = fd < 0 ? -EIO : elf_input_open(&in, fd);
	const GElf_Shdr *section = r == 0 ? elf_content_find(&in, name) : NULL;

	r = section ? elf_content_read(out, &in, section) : -ENOENT;
	if (fd >= 0) {
		elf_input_done(&in);
		close(fd);
	}
	return check_int(r, 0);
}

/* objcopy (and as) can pack zlib in two ways; zstd since binutils 2.40. */
static void compressed_sections_are_unpacked(void)
{
	static const char *const ways[] = { "zlib-gnu", "zlib-gabi", "zstd" };
	struct elf_content plain, unpacked;
	char path[PATH_MAX];
	struct fakeroot root;
	if (!there_is("gcc"))
		tap_skip("there is no gcc");
	require(make_program(&root, ""));
	snprintf(path, sizeof(path), "%s/opt/prog", root.path);
	require(read_section(path, ".debug_info", &plain));
	check(plain.size > 100);

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		snprintf(path, sizeof(path), "%s/opt/packed", root.path);
		if (!shell(&root, "objcopy --compress-debug-sections=%s opt/prog opt/packed",
			   ways[i]))
			continue;
		require(read_section(path, ".debug_info", &unpacked));
		check_u64(unpacked.size, plain.size);
		check_mem(unpacked.at, plain.at, plain.size);
		elf_content_done(&unpacked);
	}
	elf_content_done(&plain);
	fakeroot_remove(&root);
}

int main(void)
{
	tap_run(whole_program_is_its_own_debug_file);
	tap_run(build_id_leads_to_the_debug_file);
	tap_run(link_leads_to_the_debug_file);
	tap_run(link_to_another_build_is_not_used);
	tap_run(dwz_file_is_found);
	tap_run(dwarf_5s_supplementary_file_is_found);
	tap_run(a_broken_debug_sup_leads_nowhere);
	tap_run(compressed_sections_are_unpacked);
	return tap_end();
}
