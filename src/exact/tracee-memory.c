/* SPDX-License-Identifier: MIT */
/* A tracee's memory, through /proc/TID/mem: one file for reads and writes of any kind of page. */
#include <errno.h>

#include "base/sys.h"
#include "exact/tracee.h"

/* The file answers EIO for what is not mapped, and 0 bytes when the process is gone. */
static int answer(const struct tally_tracee *t, ssize_t n, size_t len)
{
	if (n == (ssize_t)len)
		return 0;
	if (n == 0)
		return -ESRCH;
	return n > 0 || n == -EIO ? -EFAULT : (int)n;
}

int tally_tracee_peek(struct tally_tracee *tracee, uint64_t address, void *buf, size_t len)
{
	if (len == 0)
		return 0;
	int r = answer(tracee, sys()->pread(tracee->mem, buf, len, (off_t)address), len);
	if (r == 0)
		breaks_hide(tracee, address, buf, len);
	return r;
}

int tally_tracee_poke(struct tally_tracee *tracee, uint64_t address, const void *buf, size_t len)
{
	if (len == 0)
		return 0;
	tracee->facts.known = false; /* it may be code that is remembered */
	return answer(tracee, sys()->pwrite(tracee->mem, buf, len, (off_t)address), len);
}
