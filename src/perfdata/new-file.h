/* SPDX-License-Identifier: MIT */
/* Creating a file whose name another may have: the older one is kept, and can have it back. */
#ifndef PERFDATA_NEW_FILE_H
#define PERFDATA_NEW_FILE_H

#include <tally/writer.h>

struct new_file {
	int fd;
	char *path;
	char *old_path; /* where the older file went; NULL when there was none */
	bool made;      /* the file is ours; a device was there before */
};

/* As tally_writer_open says. Zero the struct before; new_file_done it also after a failure. */
int new_file_open(struct new_file *file, const char *path, const struct tally_writer_opts *opts,
		  struct tally_error *err);

/* Removes the file, and gives the older one its name back. */
void new_file_undo(struct new_file *file);

/* Closes it. */
void new_file_done(struct new_file *file);

#endif
