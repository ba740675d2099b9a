/* SPDX-License-Identifier: MIT */
/* What is recorded, as perf(1) says it in each file: THREAD_MAP and CPU_MAP. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tally/reader.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/proc.h"
#include "recorder/synth.h"

#define COMM_BYTES 16 /* TASK_COMM_LEN, with the NUL */

/* A CPU_MAP is a list of 16-bit numbers, of which the last stands for -1, any CPU. */
#define LIST_KIND 0
#define ANY_CPU   UINT16_MAX

/* The threads of the target; -1 stands for whatever runs. -ESRCH and such: it is gone. */
static int list_threads(const struct synth *s, const struct tally_target *target, int32_t **tids,
			size_t *count)
{
	int32_t one = -1;

	switch (target->scope) {
	case TALLY_SCOPE_PROCESS:
		return proc_threads(tids, count, s->root, target->id);
	case TALLY_SCOPE_THREAD:
	case TALLY_SCOPE_COMMAND:
		one = target->id;
		break;
	case TALLY_SCOPE_SELF:
		one = (int32_t)gettid();
		break;
	}
	*tids = malloc(sizeof(**tids));
	if (!*tids)
		return -ENOMEM;
	**tids = one;
	*count = 1;
	return 0;
}

int synth_threads(struct synth *s, const struct tally_target *target, struct tally_error *err)
{
	struct buf body = { 0 };
	int32_t *tids;
	size_t count;
	int r = list_threads(s, target, &tids, &count);

	if (r < 0)
		return r == -ENOMEM ? error_nomem(err, "the list of threads") : 0;
	buf_u64(&body, count);
	for (size_t i = 0; i < count; i++) {
		char path[64], comm[COMM_BYTES] = { 0 };
		snprintf(path, sizeof(path), "/proc/%" PRId32 "/comm", tids[i]);
		/* A command that waits has the name of who started it, which is not its own. */
		if (tids[i] > 0 && target->scope != TALLY_SCOPE_COMMAND &&
		    proc_read_line(comm, sizeof(comm), s->root, path) < 0)
			comm[0] = '\0';
		size_t len = strlen(comm);
		buf_u64(&body, (uint64_t)(int64_t)tids[i]);
		buf_add(&body, comm, len);
		buf_zero(&body, COMM_BYTES - len);
	}
	free(tids);
	r = synth_emit_own(s, TALLY_FILE_THREAD_MAP, &body, err);
	buf_done(&body);
	return r < 0 ? r : synth_flush(s, err);
}

/* Each CPU that has a ring once, ascending; beyond 16 bits there is none. */
static void list_cpus(struct buf *list, const struct tally_sampler *sampler, uint32_t *count)
{
	bool *has = calloc(ANY_CPU + 1, sizeof(*has)); /* [CPU + 1] */

	*count = 0;
	if (!has) {
		list->failed = true;
		return;
	}
	for (uint32_t i = 0; i < tally_sampler_rings(sampler); i++) {
		int32_t cpu = tally_sampler_ring_cpu(sampler, i);
		if (cpu >= -1 && cpu < ANY_CPU)
			has[cpu + 1] = true;
	}
	for (uint32_t i = 0; i <= ANY_CPU; i++)
		if (has[i]) {
			buf_u16(list, i ? (uint16_t)(i - 1) : ANY_CPU);
			++*count;
		}
	free(has);
}

int synth_cpus(struct synth *s, const struct tally_sampler *sampler, struct tally_error *err)
{
	struct buf list = { 0 }, body = { 0 };
	uint32_t count;

	list_cpus(&list, sampler, &count);
	buf_u16(&body, LIST_KIND);
	buf_u16(&body, (uint16_t)count);
	buf_add(&body, list.at, list.len);
	body.failed |= list.failed;
	int r = synth_emit_own(s, TALLY_FILE_CPU_MAP, &body, err);
	buf_done(&list);
	buf_done(&body);
	return r < 0 ? r : synth_flush(s, err);
}
