/* SPDX-License-Identifier: MIT */
/* What a recording says of the BPF programs that are loaded at its end. */
#ifndef RECORDER_BPF_FEATURES_H
#define RECORDER_BPF_FEATURES_H

#include <tally/writer.h>

/*
 * The features BPF_PROG_INFO and BPF_BTF, as perf(1) writes them: of each program what the kernel
 * tells of it, its machine code, and where that comes from; and its types. None where bpf(2) may not
 * be asked. -ENOMEM, or of the writer.
 */
int bpf_features(struct tally_writer *writer);

#endif
