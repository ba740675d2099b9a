/* SPDX-License-Identifier: MIT */
/* What an errno of a ring's mmap(2) means: locked memory, mostly. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <tally/system.h>

#include "base/error.h"
#include "event/explain.h"

#define KIB 1024u

/* Linux 6.18, kernel/events/core.c, perf_mmap(): what the user's rings may lock together. */
static int explain_mlock(struct tally_error *err, int code, uint64_t kib,
			 const struct tally_system *s)
{
	bool unknown = s->mlock_kb < 0 || s->online_cpus < 1;
	char allowance[192] = "";

	if (!unknown)
		snprintf(allowance, sizeof(allowance),
			 " (all rings of a user: %lld KiB for each of %lld CPUs by "
			 "kernel.perf_event_mlock_kb, and %llu KiB by RLIMIT_MEMLOCK)",
			 (long long)s->mlock_kb, (long long)s->online_cpus,
			 (unsigned long long)(s->memlock_soft / KIB));
	return error_set(err, code, TALLY_CAUSE_MLOCK_LIMIT,
			 "cannot map a ring of %llu KiB: that is more locked memory than this user "
			 "has left%s: smaller or fewer rings, or 'sudo sysctl "
			 "kernel.perf_event_mlock_kb=%llu', or a higher 'ulimit -l', or the "
			 "capability cap_ipc_lock",
			 (unsigned long long)kib, allowance,
			 (unsigned long long)(unknown ? kib : (uint64_t)s->mlock_kb + kib));
}

int explain_mmap(struct tally_error *err, int code, uint64_t bytes, const char *root)
{
	/* The kernel adds a page for its own data. */
	uint64_t kib = (bytes + (uint64_t)sysconf(_SC_PAGESIZE)) / KIB;
	struct tally_system s;

	if (!err)
		return code;
	tally_system_read(&s, sizeof(s), root, NULL);
	switch (code) {
	case -EPERM:
		return explain_mlock(err, code, kib, &s);
	case -ENOMEM:
		return error_set(err, code, TALLY_CAUSE_MEMORY,
				 "cannot map a ring of %llu KiB: no memory, or no room in the "
				 "address space: smaller or fewer rings",
				 (unsigned long long)kib);
	case -EINVAL:
		return error_set(
			err, code, TALLY_CAUSE_ARGUMENT,
			"cannot map a ring of %llu KiB: its data must be a power of two of "
			"pages, the event must not write to another ring, and an inherited "
			"one must be bound to a CPU",
			(unsigned long long)kib);
	case -EBUSY:
		return error_set(err, code, TALLY_CAUSE_BUSY,
				 "cannot map a ring of %llu KiB: the event has another one, by its "
				 "output or an earlier map: detach its output, or unmap the other",
				 (unsigned long long)kib);
	default:
		return error_set(err, code, TALLY_CAUSE_IO, "cannot map a ring of %llu KiB: %s",
				 (unsigned long long)kib, strerror(-code));
	}
}
