/* SPDX-License-Identifier: MIT */
/* supported: whatever errno the kernel has, it is an answer with a reason. */
#include <errno.h>

#include <tally/event.h>

#include "base/sys.h"
#include "tap.h"

#define OURS 100000

static struct {
	int answer, calls, closed;
	bool has_dummy;
	struct tally_attr seen;
} kernel;

static int fake_perf_event_open(void *attr, pid_t pid, int cpu, int group_fd, unsigned long flags)
{
	kernel.calls++;
	memcpy(&kernel.seen, attr, ((struct tally_attr *)attr)->size);
	if (!kernel.has_dummy && kernel.seen.config == TALLY_SW_DUMMY)
		return -ENOENT;
	return kernel.answer;
}

static int fake_close(int fd)
{
	if (fd != OURS)
		return sys_kernel.close(fd);
	kernel.closed++;
	return 0;
}

const struct sys_table *sys(void)
{
	static struct sys_table table;

	table = sys_kernel;
	table.perf_event_open = fake_perf_event_open;
	table.close = fake_close;
	return &table;
}

static void set_up(int answer)
{
	memset(&kernel, 0, sizeof(kernel));
	kernel.answer = answer;
	kernel.has_dummy = true;
}

static void it_asks_for_what_anybody_may_have(void)
{
	set_up(OURS);
	check_int(tally_supported(NULL), 0);
	check_int(kernel.calls, 1);
	check_int(kernel.closed, 1);
	check_u64(kernel.seen.type, TALLY_TYPE_SOFTWARE);
	check(kernel.seen.flags & TALLY_ATTR_EXCLUDE_KERNEL);
	check(kernel.seen.flags & TALLY_ATTR_DISABLED);
}

static void an_old_kernel_has_another_event(void)
{
	set_up(OURS);
	kernel.has_dummy = false;
	check_int(tally_supported(NULL), 0);
	check_u64(kernel.seen.config, TALLY_SW_TASK_CLOCK);
	check_int(kernel.closed, 1);
}

static void every_errno_is_an_answer(void)
{
	for (int code = 1; code < 134; code++) {
		struct tally_error err = { .code = 0 };
		set_up(-code);
		check_int(tally_supported(&err), -code);
		check_int(err.code, -code);
		check_has(err.text, "cannot open any event");
		check_int(tally_supported(NULL), -code);
		check_int(kernel.closed, 0);
	}
}

int main(void)
{
	tap_run(it_asks_for_what_anybody_may_have);
	tap_run(an_old_kernel_has_another_event);
	tap_run(every_errno_is_an_answer);
	return tap_end();
}
