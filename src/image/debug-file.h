/* SPDX-License-Identifier: MIT */
/*
 * What was taken out of a program: the file with its full symbols or its DWARF, which distributions
 * and strip put beside it, and the file that dwz makes of what several of those share. Looked for as
 * gdb and binutils do: by build-id, then by the name and checksum in .gnu_debuglink. What is found
 * shows that it belongs to the program: by its build-id, or where one of them has none by the CRC.
 */
#ifndef IMAGE_DEBUG_FILE_H
#define IMAGE_DEBUG_FILE_H

#include <limits.h>
#include <stdbool.h>

#include "image/build-id.h"

enum debug_part {
	DEBUG_SYMBOLS, /* .symtab */
	DEBUG_DWARF,   /* .debug_info or .debug_line */
};

struct debug_search {
	const char *path;   /* of the program, as it was mapped; NULL: has none */
	const char *opened; /* path at which it was opened here; NULL: none */
	/* Folders below which paths like /usr/lib/debug are taken, in this order; NULL: left out,
	 * "": this system. */
	const char *roots[3];
	bool debuginfod; /* ask servers too */
};

struct debug_file {
	int fd;   /* has what was asked for */
	int alt;  /* dwz's, for DW_FORM_ref_sup4 and its like; -1: it needs none, or none is here */
	bool own; /* it is the program itself */
	char path[PATH_MAX]; /* at which `fd` was opened, for what lies beside it; "": none */
};

/*
 * Finds the file with that part of the program in `fd`, which remains the caller's. Errors:
 * -ENOENT: there is none; -ENOEXEC: the program is no ELF file; -ENOMEM. debug_file_done() is
 * needed after success only. The sections are read by elf_content_read().
 */
int debug_file_find(struct debug_file *out, const struct debug_search *where, int fd,
		    enum debug_part part);
void debug_file_done(struct debug_file *file);

#endif
