/* SPDX-License-Identifier: MIT */
/*
 * bench-ring call COUNT: sleeps for a second, then enters getppid(2) so often.
 *
 * bench-ring write PID EVENT FILE RING_BYTES: samples a process until it ends, writing what comes from the
 * rings to a file with nothing in between: the least that a recorder can do. Its samples have the fields
 * that `tally record` asks for of tracepoints, so that both write the same bytes.
 *
 * bench-ring next PID EVENT: takes the records of the process one by one in the order of time, decoded.
 * One line: "samples lost late cpu_ns".
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <tally/tally.h>

#define DRAIN_MS 250

static double cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int call(long count)
{
	sleep(1);
	for (long i = 0; i < count; i++)
		syscall(SYS_getppid);
	return 0;
}

static struct tally_sampler *open_it(const char *pid, const char *event, uint64_t ring_bytes)
{
	const struct tally_target target = { .scope = TALLY_SCOPE_PROCESS, .id = atoi(pid) };
	struct tally_sampler *sampler = NULL;
	struct tally_events *events = NULL;
	struct tally_error err = { 0 };

	if (tally_events_parse(&events, event, NULL, &err) < 0 ||
	    tally_sampler_open(
		    &sampler, events, &target,
		    TALLY_OPTS(sampler, .flags = TALLY_SAMPLER_RAW, .ring_bytes = ring_bytes),
		    &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		exit(1);
	}
	tally_sampler_enable(sampler);
	return sampler;
}

static void write_ring(struct tally_ring *ring, int fd)
{
	struct iovec spans[2];
	int count = tally_ring_peek(ring, spans);

	for (int i = 0; i < count; i++) {
		if (write(fd, spans[i].iov_base, spans[i].iov_len) < 0)
			exit(1);
		tally_ring_advance(ring, spans[i].iov_len);
	}
}

static int write_all(struct tally_sampler *s, const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	for (int r = 0; r >= 0 || r == -EINTR;) {
		r = tally_sampler_wait(s, DRAIN_MS);
		for (uint32_t i = 0; i < tally_sampler_rings(s); i++)
			write_ring(tally_sampler_ring(s, i), fd);
	}
	return close(fd);
}

static int next_all(struct tally_sampler *s)
{
	struct tally_sampler_account account;
	const struct tally_sampled *got;
	double before = cpu_ns();

	while (tally_sampler_next(s, -1, &got) == 1)
		;
	double spent = cpu_ns() - before;
	tally_sampler_account(s, UINT32_MAX, &account, sizeof(account));
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %.0f\n", account.samples, account.lost,
	       account.disordered, spent);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "call"))
		return call(atol(argv[2]));
	if (argc == 6 && !strcmp(argv[1], "write"))
		return write_all(open_it(argv[2], argv[3], strtoull(argv[5], NULL, 10)), argv[4]);
	if (argc == 4 && !strcmp(argv[1], "next"))
		return next_all(open_it(argv[2], argv[3], 0));
	fprintf(stderr,
		"usage: bench-ring call COUNT | write PID EVENT FILE BYTES | next PID EVENT\n");
	return 2;
}
