/* SPDX-License-Identifier: MIT */
/*
 * Errnos of probes and breakpoints, which have causes of their own: kernel/trace/trace_event_perf.c,
 * trace_kprobe.c, trace_uprobe.c and kernel/events/hw_breakpoint.c.
 */
#include <errno.h>
#include <stddef.h>

#include "base/bytes.h"
#include "base/capability.h"
#include "event/failure.h"

#define KERNEL_ENOTSUPP 524 /* include/linux/errno.h; it is not meant to reach programs */

static const struct row {
	enum probe_kind kind;
	int code;
	enum tally_cause cause;
	const char *text;
} rows[] = {
	{ PROBE_KERNEL, ENOENT, TALLY_CAUSE_UNKNOWN,
	  "this kernel has no such function that can be probed: /proc/kallsyms lists its functions "
	  "(some are inlined everywhere or renamed, as by .isra.0)" },
	{ PROBE_KERNEL, EADDRNOTAVAIL, TALLY_CAUSE_UNKNOWN,
	  "several functions of this kernel have the name, so that it says not which: 'grep -w NAME "
	  "/proc/kallsyms' as root lists them, and the tracefs file kprobe_events takes an address" },
	{ PROBE_KERNEL, EINVAL, TALLY_CAUSE_UNSUPPORTED,
	  "this function may not be probed, or not there: it is in "
	  "/sys/kernel/debug/kprobes/blacklist, not traced by ftrace (notrace), or shorter than the "
	  "offset" },
	{ PROBE_KERNEL, EILSEQ, TALLY_CAUSE_ARGUMENT,
	  "no instruction begins at this offset: 'objdump -d' of the kernel shows where they do" },
	{ PROBE_KERNEL, E2BIG, TALLY_CAUSE_ARGUMENT, "no function has so long a name" },
	{ PROBE_USER, ENOENT, TALLY_CAUSE_NO_FILE,
	  "its file is not there any more, or not as this process sees the file system" },
	{ PROBE_USER, EINVAL, TALLY_CAUSE_ARGUMENT,
	  "the kernel finds no place for a probe there: the file must be a regular one, and the offset "
	  "in it" },
	{ PROBE_USER, EIO, TALLY_CAUSE_UNSUPPORTED,
	  "its file system keeps no pages that could hold a probe: copy the program to a disk or tmpfs" },
	{ PROBE_USER, E2BIG, TALLY_CAUSE_ARGUMENT, "the path has more than 4095 bytes" },
	{ PROBE_USER, EEXIST, TALLY_CAUSE_BUSY,
	  "there is a breakpoint of somebody else, as of a debugger" },
	{ PROBE_NONE, EFAULT, TALLY_CAUSE_ARGUMENT,
	  "config1 of its attr does not point to a text that can be read" },
	{ PROBE_NONE, KERNEL_ENOTSUPP, TALLY_CAUSE_UNSUPPORTED,
	  "the instruction there cannot be probed on this CPU: take another offset" },
	{ PROBE_NONE, EOPNOTSUPP, TALLY_CAUSE_UNSUPPORTED,
	  "the instruction there cannot be probed, or samples of it cannot have what is asked for "
	  "(branch stacks need a hardware event)" },
};

int explain_probe(const struct failure *f)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].code == -f->code &&
		    (rows[i].kind == f->probe || rows[i].kind == PROBE_NONE))
			return say(f, rows[i].cause, "%s", rows[i].text);
	return 0;
}

/* The upper half of all addresses is the kernel's, on the 64-bit architectures. */
static bool is_kernels(const struct tally_attr *attr)
{
	return attr->config1 >> 63;
}

int explain_breakpoint(const struct failure *f)
{
	bool capable = f->system.capabilities & 1ull << CAP_SYS_ADMIN;

	if ((f->code == -EPERM || f->code == -EACCES) && is_kernels(f->attr) && !capable)
		return say(
			f, TALLY_CAUSE_PERMISSION,
			"%#llx is the kernel's address, and watching it needs CAP_SYS_ADMIN, whatever "
			"kernel.perf_event_paranoid is: be root",
			(unsigned long long)f->attr->config1);
	if (f->code == -EINVAL && is_kernels(f->attr) && f->attr->flags & TALLY_ATTR_EXCLUDE_KERNEL)
		return say(
			f, TALLY_CAUSE_ARGUMENT,
			"%#llx is the kernel's address, which is not touched in user mode: without "
			"the modifier u",
			(unsigned long long)f->attr->config1);
	if (f->code == -EOPNOTSUPP && f->attr->config2 > 8)
		return say(f, TALLY_CAUSE_UNSUPPORTED,
			   "this CPU watches 8 bytes at most, not %llu: give a smaller length, or "
			   "several breakpoints",
			   (unsigned long long)f->attr->config2);
	if (f->code == -ENOENT)
		return say(f, TALLY_CAUSE_UNSUPPORTED,
			   "this kernel watches no addresses: it is built without "
			   "CONFIG_HAVE_HW_BREAKPOINT");
	return 0;
}
