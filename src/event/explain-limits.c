/* SPDX-License-Identifier: MIT */
/* No file descriptor is left: how many it takes, how many there may be, and how to get more. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <tally/system.h>

#include "base/error.h"
#include "base/proc.h"
#include "event/explain.h"

static int explain_all_files(struct tally_error *err, int code, const char *what, const char *root)
{
	int64_t max;

	if (proc_read_i64(&max, root, "/proc/sys/fs/file-max") < 0)
		return error_set(err, code, TALLY_CAUSE_FD_LIMIT,
				 "%.200s: all processes together have too many files open: raise "
				 "the sysctl fs.file-max",
				 what);
	return error_set(err, code, TALLY_CAUSE_FD_LIMIT,
			 "%.200s: all processes together have as many files open as they may: "
			 "'sudo sysctl fs.file-max=%lld', now %lld",
			 what, max > INT64_MAX / 2 ? INT64_MAX : (long long)max * 2,
			 (long long)max);
}

/* What is open already is as much as the limit at most, so that both together do. */
static void mend(char *out, size_t size, const struct tally_system *s, uint64_t needed)
{
	unsigned long long soft = s->nofile_soft, hard = s->nofile_hard;

	if (soft < hard)
		snprintf(out, size, "'ulimit -n %llu'", hard);
	else
		snprintf(out, size,
			 "'sudo prlimit --nofile=%llu --pid $$' in the shell that starts it",
			 hard + needed);
}

int explain_fds(struct tally_error *err, int code, const char *what, uint64_t needed, bool events,
		const char *root)
{
	struct tally_system s;
	char more[128];

	if (!err)
		return code;
	if (code == -ENFILE)
		return explain_all_files(err, code, what, root);
	tally_system_read(&s, sizeof(s), root, NULL);
	mend(more, sizeof(more), &s, needed);
	return error_set(
		err, code, TALLY_CAUSE_FD_LIMIT,
		"%.200s: it takes %llu file descriptor%s%s, and this process may have %llu "
		"(RLIMIT_NOFILE, hard limit %llu): %s%s",
		what, (unsigned long long)needed, needed == 1 ? "" : "s",
		events ? ", one for each event, thread and CPU" : "",
		(unsigned long long)s.nofile_soft, (unsigned long long)s.nofile_hard,
		events ? "fewer events or threads, or " : "", more);
}
