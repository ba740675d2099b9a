/* SPDX-License-Identifier: MIT */
/* What stands before a line program: how it is encoded, and the names of files. */
#ifndef IMAGE_LINE_HEADER_H
#define IMAGE_LINE_HEADER_H

#include "image/line-table.h"

/*
 * Reads it, and files and folders into `t`; the cursor then stands at the program, and ends with
 * it. -EBADMSG: nothing that we can read; -ENOMEM.
 */
int line_header_read(struct line_header *h, struct line_table *t, const struct dwarf_unit *u,
		     struct dwarf_cursor *c);

/* Reads an entry of the tables before version 5 into `file`; false: the table ends. */
bool line_header_old_file(struct dwarf_cursor *c, struct line_file *file);

#endif
