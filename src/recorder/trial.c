/* SPDX-License-Identifier: MIT */
/*
 * Do frame pointers find whole stacks here? A process is sampled for a moment with both, the chain
 * by frame pointers and a copy of the stack, which its unwind tables are followed through: where
 * the two agree, frame pointers did it.
 */
#include <errno.h>
#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <tally/recorder.h>
#include <tally/sampler.h>
#include <tally/unwinder.h>
#include <unistd.h>

#include "base/error.h"
#include "base/sys.h"

#define TRIAL_NS   (60 * 1000000ull)
#define TRIAL_FREQ 4000

/* Start code often keeps no frame pointers: __libc_start_call_main, __libc_start_main, _start. */
#define START_FRAMES 3

#define MOST_FRAMES 512

struct trial {
	struct tally_events *events;
	struct tally_sampler *sampler;
	struct tally_maps *maps;
	struct tally_unwinder *unwinder;
	uint64_t frames[MOST_FRAMES];
};

/* ---- somebody to look at ---- */

static int compare(const void *a, const void *b)
{
	char left[32], right[32];

	snprintf(left, sizeof(left), "%g", *(const double *)a);
	snprintf(right, sizeof(right), "%g", *(const double *)b);
	return strcmp(left, right);
}

/* What programs do most in the C library: sort, print, search, allocate. */
static _Noreturn void work(void)
{
	double numbers[64];
	regex_t pattern;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (regcomp(&pattern, "(a|b)*c+d", REG_EXTENDED) != 0)
		_exit(1);
	for (unsigned i = 0;; i++) {
		char *text = strdup("abababccccd");
		for (size_t k = 0; k < 64; k++)
			numbers[k] = (double)((k * 2654435761u + i) % 1000) / 7;
		qsort(numbers, 64, sizeof(*numbers), compare);
		if (text)
			regexec(&pattern, text, 0, NULL, 0);
		free(text);
	}
}

static int start_worker(pid_t *pid, struct tally_error *err)
{
	*pid = fork();
	if (*pid < 0)
		return error_set(err, -errno, TALLY_CAUSE_NONE,
				 "a process to try call graphs on: %s", strerror(errno));
	if (*pid == 0)
		work();
	return 0;
}

static void end_worker(pid_t pid)
{
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

/* ---- looking ---- */

static int open_trial(struct trial *t, int32_t pid, struct tally_error *err)
{
	const struct tally_events_opts events = {
		.size = sizeof(events),
		.fallback = TALLY_FALLBACK_NEWER_BITS | TALLY_FALLBACK_USER_ONLY,
	};
	const struct tally_sampler_opts sampler = {
		.size = sizeof(sampler),
		.flags = TALLY_SAMPLER_CALLCHAIN | TALLY_SAMPLER_NO_KERNEL_CHAIN |
			 TALLY_SAMPLER_NO_INHERIT | TALLY_SAMPLER_NO_STOP,
		.freq = TRIAL_FREQ,
		.stack_bytes = TALLY_SAMPLER_STACK_BYTES,
	};
	const struct tally_target target = { .scope = TALLY_SCOPE_PROCESS, .id = pid };
	int r = tally_events_parse(&t->events, "cpu-clock:u", &events, err);

	if (r == 0)
		r = tally_sampler_open(&t->sampler, t->events, &target, &sampler, err);
	if (r == 0 && tally_maps_new(&t->maps) < 0)
		r = error_nomem(err, "the mappings of a process");
	if (r == 0)
		r = tally_maps_add_process(t->maps, pid, 0, NULL, err);
	if (r == 0)
		r = tally_unwinder_new(&t->unwinder, t->maps, NULL, err);
	return r;
}

/* Whether the chain, without marks, has all `count` frames but `missing` behind the first. */
static bool has_all(const struct tally_record *rec, const uint64_t *frames, uint32_t count,
		    uint32_t missing)
{
	uint32_t at = 0;

	for (uint64_t i = 0; i < rec->sample.chain_len && at < count; i++) {
		uint64_t entry = tally_sample_ip(rec, i);
		if (entry >= TALLY_CONTEXT_MAX)
			continue;
		if (entry != frames[at])
			return false;
		at += at ? 1 : 1 + missing;
	}
	return at >= count;
}

/*
 * The leaf's caller may be missing, where the leaf's own frame is not there yet. Of a stack that is
 * cut there are no frames of start code.
 */
static bool is_whole(const struct tally_record *rec, const uint64_t *frames,
		     const struct tally_unwound *how)
{
	uint32_t start = how->end == TALLY_UNWIND_WHOLE ? START_FRAMES : 0;
	uint32_t needed = how->frames > start ? how->frames - start : 1;

	return has_all(rec, frames, needed, 0) || has_all(rec, frames, needed, 1);
}

static void look(struct trial *t, const struct tally_record *rec, struct tally_trial *out)
{
	struct tally_unwound how;

	if (tally_unwinder_sample(t->unwinder, rec, t->frames, MOST_FRAMES, &how) <= 0 ||
	    (how.end != TALLY_UNWIND_WHOLE && how.end != TALLY_UNWIND_CUT))
		return;
	out->stacks++;
	out->whole += is_whole(rec, t->frames, &how);
}

static void look_at_ring(struct trial *t, struct tally_ring *ring, struct tally_trial *out)
{
	const struct tally_layout *layout = tally_sampler_layout(t->sampler, 0);
	const struct tally_record_header *header;
	struct tally_record rec;

	while (tally_ring_next(ring, &header) > 0)
		if (tally_record_decode(layout, header, header->size, &rec, sizeof(rec)) > 0)
			look(t, &rec, out);
	tally_ring_release(ring);
}

static int sample(struct trial *t, struct tally_trial *out, struct tally_error *err)
{
	int r = tally_sampler_enable(t->sampler);

	if (r < 0)
		return error_set(err, r, TALLY_CAUSE_IO, "sampling for a trial: %s", strerror(-r));
	sys()->sleep_ns(TRIAL_NS);
	tally_sampler_disable(t->sampler);
	for (uint32_t i = 0; i < tally_sampler_rings(t->sampler); i++)
		look_at_ring(t, tally_sampler_ring(t->sampler, i), out);
	return 0;
}

int tally_recorder_trial(int32_t pid, struct tally_trial *out, struct tally_error *err)
{
	struct trial *t = calloc(1, sizeof(*t));
	pid_t worker = 0;
	int r = t ? 0 : error_nomem(err, "a trial");

	*out = (struct tally_trial){ 0 };
	if (r == 0 && !pid)
		r = start_worker(&worker, err);
	if (r == 0)
		r = open_trial(t, pid ? pid : worker, err);
	if (r == 0)
		r = sample(t, out, err);
	if (worker > 0)
		end_worker(worker);
	if (!t)
		return r;
	tally_sampler_close(t->sampler);
	tally_events_free(t->events);
	tally_unwinder_free(t->unwinder);
	tally_maps_free(t->maps);
	free(t);
	return r;
}
