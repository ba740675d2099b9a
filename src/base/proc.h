/* SPDX-License-Identifier: MIT */
/*
 * Reading /proc, /sys and other small text files. Each path is taken below `root`, "" or NULL being
 * the real one, so that tests and other machines' trees are read by the same code.
 */
#ifndef BASE_PROC_H
#define BASE_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct proc_names {
	char **at;
	size_t count, room;
};

/* `root` + `path` into `out`. -ENAMETOOLONG when it does not fit. */
int proc_path(char *out, size_t size, const char *root, const char *path);

/* Appends a whole file, `limit` bytes at most. 0 or -errno (-EFBIG past the limit). */
int proc_read(struct buf *out, const char *root, const char *path, size_t limit);

/* The first line without its newline, cut to `size`. 0 or -errno. */
int proc_read_line(char *out, size_t size, const char *root, const char *path);

/* The number a file begins with (decimal, or hex with 0x). 0 or -errno, -EINVAL: no number. */
int proc_read_i64(int64_t *out, const char *root, const char *path);

/*
 * Reads a list like "0-3,8,10-11" into `cpus` (room for `room`); returns how many there are, which
 * may exceed the room. -EINVAL: not such a list.
 */
int proc_parse_cpus(const char *text, int32_t *cpus, size_t room);

/* The online CPUs. As proc_parse_cpus, or -errno. */
int proc_online_cpus(int32_t *cpus, size_t room, const char *root);

/* The numeric entries of a folder (/proc, /proc/PID/task), ascending; `*list` is malloc'ed. */
int proc_list_ids(int32_t **list, size_t *count, const char *root, const char *path);

/*
 * The threads of a process, ascending; `*list` is malloc'ed. -ESRCH: there is none, which an ending
 * process also says for a moment, when its folder is there and empty.
 */
int proc_threads(int32_t **list, size_t *count, const char *root, int32_t pid);

/*
 * The state letter of a thread, proc_pid_stat(5); 'X' when there is none any more. The first thread of
 * a process stays listed as a zombie ('Z') as long as others run.
 */
char proc_thread_state(const char *root, int32_t pid, int32_t tid);

/*
 * The entries of a folder but those that begin with '.', sorted so that numbers in them ascend
 * (box_2 before box_10). 0 or -errno; the list is then empty.
 */
int proc_list_names(struct proc_names *out, const char *root, const char *path);
void proc_names_done(struct proc_names *names);

/*
 * Whether this process lives in a user namespace of its own, where it may seem to have all
 * capabilities, and perf events heed none.
 */
bool proc_in_user_namespace(const char *root);

/* Whole-string numbers: false on junk, overflow or an empty text. Decimal, or hex after 0x. */
bool parse_u64(const char *text, uint64_t *out);
bool parse_i64(const char *text, int64_t *out);
bool parse_hex(const char *text, uint64_t *out);

#endif
