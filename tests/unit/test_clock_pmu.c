/* SPDX-License-Identifier: MIT */
/* The counter's clock against a kernel that only exists here, and the table of CPUs. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>

#include <linux/perf_event.h>
#include <tally/attr.h>
#include <tally/clock.h>
#include <tally/selftest.h>

#include "base/sys.h"
#include "exact/tracee.h"
#include "exact/uarch.h"
#include "tap.h"

#define COUNTING 100
#define SAMPLING 101

static struct {
	struct tally_attr attr[4];
	int opened, refuse; /* an errno for the opening of this number */
	uint64_t value, enabled, running;
	ssize_t read_answer; /* bytes, or -errno */
	uint64_t period;
	bool armed;
	int closed;
	unsigned long signal, owner_type, owner, flags;
} kernel;

static int fake_open(void *attr, pid_t pid, int cpu, int group, unsigned long flags)
{
	if (kernel.refuse && kernel.opened == kernel.refuse - 1)
		return -ENOENT;
	memcpy(&kernel.attr[kernel.opened], attr, sizeof(struct tally_attr));
	return COUNTING + kernel.opened++;
}

/* Explanations of errors read files of their own. */
static bool is_event(int fd)
{
	return fd >= COUNTING && fd < COUNTING + 4;
}

static ssize_t fake_read(int fd, void *buf, size_t len)
{
	const uint64_t words[3] = { kernel.value, kernel.enabled, kernel.running };

	if (!is_event(fd))
		return sys_kernel.read(fd, buf, len);
	if (kernel.read_answer > 0)
		memcpy(buf, words, sizeof(words));
	return kernel.read_answer;
}

static int fake_ioctl(int fd, unsigned long request, unsigned long arg)
{
	if (fd != SAMPLING)
		return -EBADF;
	if (request == PERF_EVENT_IOC_DISABLE)
		kernel.armed = false;
	if (request == PERF_EVENT_IOC_PERIOD)
		kernel.period = *(const uint64_t *)arg;
	if (request == PERF_EVENT_IOC_REFRESH)
		kernel.armed = arg == 1;
	return 0;
}

static int fake_fcntl(int fd, int cmd, unsigned long arg)
{
	if (cmd == F_SETSIG)
		kernel.signal = arg;
	if (cmd == F_SETOWN_EX) {
		kernel.owner_type = (unsigned long)((const struct f_owner_ex *)arg)->type;
		kernel.owner = (unsigned long)((const struct f_owner_ex *)arg)->pid;
	}
	if (cmd == F_SETFL)
		kernel.flags = arg;
	return 0;
}

static int fake_mmap(void **addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	return -EINVAL; /* so that each read is one */
}

static int fake_close(int fd)
{
	kernel.closed += is_event(fd);
	return is_event(fd) ? 0 : sys_kernel.close(fd);
}

const struct sys_table *sys(void)
{
	static struct sys_table table;

	table = sys_kernel;
	table.perf_event_open = fake_open;
	table.read = table.plain_read = fake_read;
	table.ioctl = fake_ioctl;
	table.fcntl = fake_fcntl;
	table.mmap = fake_mmap;
	table.close = fake_close;
	return &table;
}

static struct tally_tracee tracee = { .tid = 4711 };

static struct tally_clock *open_clock(const struct tally_clock_pmu_opts *more)
{
	static const struct tally_attr attr = { .type = TALLY_TYPE_RAW, .config = 0xd1 };
	struct tally_clock_pmu_opts opts = { .size = sizeof(opts), .attr = &attr };
	struct tally_clock *clock = NULL;
	struct tally_error err;

	memset(&kernel, 0, sizeof(kernel));
	kernel.read_answer = 24;
	if (more) {
		opts.signal = more->signal;
		opts.margin = more->margin;
	}
	int r = tally_clock_open_pmu(&clock, &tracee, TALLY_TICKS_CONDITIONAL, &opts, &err);
	if (!check_int(r, 0))
		printf("# %s\n", err.text);
	return clock;
}

static void two_events_are_opened(void)
{
	struct tally_clock *clock = open_clock(NULL);

	require(clock);
	check_int(kernel.opened, 2);
	const struct tally_attr *count = &kernel.attr[0], *sample = &kernel.attr[1];
	check_u64(count->config, 0xd1);
	check_u64(sample->config, 0xd1);
	check(count->flags & TALLY_ATTR_PINNED);
	check(!(sample->flags & TALLY_ATTR_PINNED));
	check(count->flags & TALLY_ATTR_EXCLUDE_KERNEL);
	check(sample->flags & TALLY_ATTR_EXCLUDE_KERNEL);
	check(!(count->flags & TALLY_ATTR_DISABLED));
	check(sample->flags & TALLY_ATTR_DISABLED);
	check_u64(count->sample_period, 0);
	check(sample->sample_period > 0);
	check_u64(kernel.signal, 16);
	check_u64(kernel.owner_type, F_OWNER_TID);
	check_u64(kernel.owner, 4711);
	check(kernel.flags & O_ASYNC);
	tally_clock_free(clock);
	check_int(kernel.closed, 2);
}

static void values_have_their_validity(void)
{
	struct tally_clock *clock = open_clock(NULL);
	struct tally_clock_value now;

	require(clock);
	kernel.value = 500;
	kernel.enabled = kernel.running = 10;
	tally_clock_read(clock, &now);
	check_int(now.validity, TALLY_CLOCK_VALID);
	check_u64(now.ticks, 500);
	kernel.running = 9; /* it was not on the hardware all the time */
	tally_clock_read(clock, &now);
	check_int(now.validity, TALLY_CLOCK_NOT_COUNTING);
	kernel.running = 10;
	kernel.read_answer = 0; /* a pinned event that found no place: end of file */
	tally_clock_read(clock, &now);
	check_int(now.validity, TALLY_CLOCK_NOT_COUNTING);
	kernel.read_answer = -EIO;
	tally_clock_read(clock, &now);
	check_int(now.validity, TALLY_CLOCK_FAILED);
	check_int(now.error, -EIO);
	tally_clock_free(clock);
}

static void an_arming_is_for_one_interrupt(void)
{
	struct tally_clock *clock = open_clock(NULL);

	require(clock);
	check_int(tally_clock_arm(clock, 1000), 0);
	check(kernel.armed);
	check_u64(kernel.period, 1000);
	check_int(tally_clock_arm(clock, 1), -ERANGE);
	check_int(tally_clock_disarm(clock), 0);
	check(!kernel.armed);
	tally_clock_free(clock);
}

static void only_its_own_signals_are_owned(void)
{
	const struct tally_clock_pmu_opts opts = { .signal = 40 };
	struct tally_clock *clock = open_clock(&opts);
	struct tally_stop stop = {
		.kind = TALLY_STOP_SIGNAL, .signal = 40, .code = POLL_HUP, .fd = SAMPLING
	};

	require(clock);
	check_int(tally_clock_about(clock)->signal, 40);
	check(tally_clock_owns(clock, &stop));
	stop.code = POLL_IN;
	check(tally_clock_owns(clock, &stop));
	stop.code = SI_USER; /* somebody's kill */
	check(!tally_clock_owns(clock, &stop));
	stop.code = POLL_IN;
	stop.fd = SAMPLING + 1;
	check(!tally_clock_owns(clock, &stop));
	stop.fd = SAMPLING;
	stop.signal = 41;
	check(!tally_clock_owns(clock, &stop));
	stop.signal = 40;
	stop.kind = TALLY_STOP_GROUP;
	check(!tally_clock_owns(clock, &stop));
	tally_clock_free(clock);
}

static void what_cannot_be_is_refused(void)
{
	static const struct tally_attr attr = { .type = TALLY_TYPE_RAW };
	struct tally_clock_pmu_opts opts = { .size = sizeof(opts), .attr = &attr, .signal = 9 };
	struct tally_clock *clock;
	struct tally_error err;

	memset(&kernel, 0, sizeof(kernel));
	check_int(tally_clock_open_pmu(&clock, &tracee, TALLY_TICKS_CONDITIONAL, &opts, &err),
		  -EINVAL);
	check_has(err.text, "SIGKILL");
	opts.signal = 0;
	opts.attr = NULL;
	check_int(tally_clock_open_pmu(&clock, &tracee, TALLY_TICKS_OTHER, &opts, &err), -EINVAL);
	check_has(err.text, "attr");
	opts.attr = &attr;
	for (int n = 1; n <= 2; n++) {
		memset(&kernel, 0, sizeof(kernel));
		kernel.refuse = n;
		check_int(
			tally_clock_open_pmu(&clock, &tracee, TALLY_TICKS_CONDITIONAL, &opts, &err),
			-ENOENT);
		check_int(kernel.closed, n - 1);
	}
}

static void cpus_have_their_event(void)
{
	static const struct {
		const char *identity, *pmu;
		uint32_t ticks;
		uint64_t config;
	} rows[] = {
		{ "GenuineIntel-6-5E-3", "cpu", TALLY_TICKS_CONDITIONAL, 0x01c4 },
		{ "GenuineIntel-6-7E-5", "cpu", TALLY_TICKS_CONDITIONAL, 0x11c4 },
		{ "GenuineIntel-6-8F-8", "cpu", TALLY_TICKS_CONDITIONAL, 0x11c4 },
		{ "GenuineIntel-6-97-2", "cpu_core", TALLY_TICKS_CONDITIONAL, 0x11c4 },
		{ "GenuineIntel-6-97-2", "cpu_atom", TALLY_TICKS_CONDITIONAL, 0x7ec4 },
		{ "GenuineIntel-6-BD-1", "cpu_core", TALLY_TICKS_CONDITIONAL, 0x100000011c4 },
		{ "GenuineIntel-6-CC-1", "cpu_atom", TALLY_TICKS_CONDITIONAL, 0x07c4 },
		{ "GenuineIntel-6-BE-0", "cpu", TALLY_TICKS_CONDITIONAL, 0x7ec4 },
		{ "GenuineIntel-18-1-0", "cpu_core", TALLY_TICKS_CONDITIONAL, 0x07c4 },
		{ "AuthenticAMD-23-31-0", "cpu", TALLY_TICKS_CONDITIONAL, 0x00d1 },
		/* Its family's last digits are those of Piledriver. */
		{ "AuthenticAMD-26-2-1", "cpu", TALLY_TICKS_CONDITIONAL, 0x00d1 },
		{ "AuthenticAMD-21-2-0", "cpu", TALLY_TICKS_TAKEN, 0x00c4 },
		{ "0x00000000413fd0c1", "armv8_pmuv3_0", TALLY_TICKS_TAKEN, 0x21 },
		{ "0x00000000410fd050", "armv8_pmuv3", 0, 0 },
		{ "0x00000000612f0230", "apple_firestorm_pmu", TALLY_TICKS_TAKEN, 0x90 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct uarch *found = uarch_of(rows[i].identity, rows[i].pmu);
		if (!check(found != NULL) || !check_int(found->ticks, rows[i].ticks) ||
		    !check_u64(found->config, rows[i].config))
			printf("# %s %s\n", rows[i].identity, rows[i].pmu);
	}
	check(uarch_of("GenuineIntel-6-EF-1", "cpu") == NULL);
	check(uarch_of("AuthenticAMD-15-1-0", "cpu") == NULL);
}

static int open_tried(struct tally_clock **clock, const struct tally_selftest *tried,
		      uint32_t ticks, struct tally_error *err)
{
	memset(&kernel, 0, sizeof(kernel));
	kernel.read_answer = 24;
	return tally_clock_open_pmu(clock, &tracee, ticks, TALLY_OPTS(clock_pmu, .tried = tried),
				    err);
}

/* What the self-test found is taken instead of the table's row. */
static void what_was_tried_is_taken(void)
{
	struct tally_selftest tried = { .ticks = TALLY_TICKS_CONDITIONAL,
					.attr = { .type = TALLY_TYPE_RAW, .config = 0x11c4 },
					.min_period = 64 };
	struct tally_clock *clock = NULL;
	struct tally_error err;

	require(open_tried(&clock, &tried, TALLY_TICKS_CONDITIONAL, &err) == 0);
	check_u64(kernel.attr[0].config, 0x11c4);
	check_u64(kernel.attr[1].config, 0x11c4);
	check_u64(tally_clock_about(clock)->min_period, 64);
	check(tally_clock_about(clock)->can & TALLY_CLOCK_FOLLOWS_STEPS);
	tally_clock_free(clock);
	/* Interrupts that were later than is known of the CPU widen the margin. */
	tried.skids.max = 70000;
	require(open_tried(&clock, &tried, TALLY_TICKS_CONDITIONAL, &err) == 0);
	check_u64(tally_clock_about(clock)->margin, 140000);
	tally_clock_free(clock);
	/* With a quirk its steps do not follow from what they are. */
	tried.quirks = TALLY_CLOCK_NO_LOOP;
	require(open_tried(&clock, &tried, TALLY_TICKS_CONDITIONAL, &err) == 0);
	check_int(tally_clock_about(clock)->quirks, TALLY_CLOCK_NO_LOOP);
	check(!(tally_clock_about(clock)->can & TALLY_CLOCK_FOLLOWS_STEPS));
	tally_clock_free(clock);
	/* Nothing that counts this was found. */
	check_int(open_tried(&clock, &tried, TALLY_TICKS_TAKEN, &err), -ENOTSUP);
	check_has(err.text, "taken branches");
	check_int(tally_clock_open_pmu(&clock, &tracee, TALLY_TICKS_CONDITIONAL,
				       TALLY_OPTS(clock_pmu, .tried = &tried, .attr = &tried.attr),
				       &err),
		  -EINVAL);
}

int main(void)
{
	tap_run(two_events_are_opened);
	tap_run(values_have_their_validity);
	tap_run(an_arming_is_for_one_interrupt);
	tap_run(only_its_own_signals_are_owned);
	tap_run(what_cannot_be_is_refused);
	tap_run(cpus_have_their_event);
	tap_run(what_was_tried_is_taken);
	return tap_end();
}
