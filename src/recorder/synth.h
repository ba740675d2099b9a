/* SPDX-License-Identifier: MIT */
/*
 * The records that the kernel would have sent for what already runs when a recording begins: where
 * the kernel, its modules and BPF programs lie, which control groups there are, which threads, their
 * namespaces, names and mappings. Read from /proc and /sys, and by bpf(2); all carry time 0 and a
 * zero sample_id, as perf(1) writes them. Also which threads and CPUs a recording is of.
 */
#ifndef RECORDER_SYNTH_H
#define RECORDER_SYNTH_H

#include <stdbool.h>
#include <tally/error.h>
#include <tally/maps.h>
#include <tally/record.h>
#include <tally/sampler.h>
#include <tally/target.h>
#include <tally/writer.h>

#include "base/buf.h"
#include "recorder/modules.h"

struct synth {
	struct tally_writer *writer;
	const struct tally_layout *layout; /* of the file's first event */
	const char *root;                  /* folder above /proc, or NULL */
	uint64_t records;                  /* written so far */
	bool data_maps;                    /* mappings that hold no code, too */
	bool namespaces;                   /* of each thread, too */
	struct modules *modules;           /* notes what is mapped; may be NULL */
	struct tally_maps *const
		*maps;  /* takes the same, for unwinding; may be, or lead to, NULL */
	struct buf out; /* records on their way to the writer */
};

/* Adds a record; it reaches the writer with a portion of others, or when they are flushed. */
int synth_emit(struct synth *s, const struct tally_record *rec, struct tally_error *err);
/*
 * One that only files have, of this body, which is padded. Left out when it does not fit into a
 * record, for the half of a list would be a false one.
 */
int synth_emit_own(struct synth *s, uint32_t type, struct buf *body, struct tally_error *err);
int synth_flush(struct synth *s, struct tally_error *err);

/*
 * The kernel's map and those of its modules. A kernel whose addresses are hidden is left out.
 * kallsyms is read up to _text only, which stands in its first lines, and the length is taken from
 * /proc/iomem: formatting all of kallsyms costs the kernel 40 ms and more.
 */
int synth_kernel(struct synth *s, struct tally_error *err);

/*
 * The BPF programs that are loaded, of this machine alone: with a root that is another's there are
 * none, nor where bpf(2) may not be asked, which takes CAP_SYS_ADMIN.
 */
int synth_bpf(struct synth *s, struct tally_error *err);

/* THREAD_MAP: which threads are recorded, those of the target now; -1 where it is CPUs. */
int synth_threads(struct synth *s, const struct tally_target *target, struct tally_error *err);

/* CPU_MAP: which CPUs; -1 where threads are followed wherever they run. */
int synth_cpus(struct synth *s, const struct tally_sampler *sampler, struct tally_error *err);

/* A process: its threads, names and mappings, of code only unless data_maps. One that is gone meanwhile is no error. */
int synth_process(struct synth *s, int32_t pid, struct tally_error *err);

/* One thread alone, with the mappings of its process. */
int synth_thread(struct synth *s, int32_t tid, struct tally_error *err);

/*
 * The namespaces of one thread alone, where they are asked for: of a command that waits for its
 * exec, which tells the rest.
 */
int synth_namespaces(struct synth *s, int32_t pid, int32_t tid, struct tally_error *err);

/* The control groups of the hierarchy that perf events know; none where none is mounted. */
int synth_cgroups(struct synth *s, struct tally_error *err);

/* Every process. */
int synth_system(struct synth *s, struct tally_error *err);

/* The end of all this: FINISHED_INIT, which perf knows from 6.0 on. */
int synth_finished(struct synth *s, struct tally_error *err);

void synth_done(struct synth *s);

#endif
