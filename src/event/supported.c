/* SPDX-License-Identifier: MIT */
/* Whether events can be opened here at all, found out by opening one that anybody may have. */
#include <errno.h>
#include <linux/perf_event.h>

#include <tally/event.h>

#include "base/sys.h"
#include "event/explain.h"

static int open_own(struct tally_attr *attr, uint64_t config)
{
	tally_attr_init(attr, TALLY_TYPE_SOFTWARE, config);
	attr->flags = TALLY_ATTR_DISABLED | TALLY_ATTR_EXCLUDE_KERNEL | TALLY_ATTR_EXCLUDE_HV;
	attr->size = tally_attr_size(attr);
	return sys()->perf_event_open(attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

int tally_supported(struct tally_error *err)
{
	struct tally_attr attr;
	int fd = open_own(&attr, TALLY_SW_DUMMY);

	/* Before Linux 3.12 there is no dummy. */
	if (fd == -ENOENT || fd == -EINVAL)
		fd = open_own(&attr, TALLY_SW_TASK_CLOCK);
	if (fd < 0)
		return explain_open(err, fd, "any event", &attr, 0, -1, NULL);
	sys()->close(fd);
	return 0;
}
