/* SPDX-License-Identifier: MIT */
/* Asking the kernel about its BPF programs, by bpf(2). It takes CAP_SYS_ADMIN and Linux 4.13. */
#ifndef RECORDER_BPF_H
#define RECORDER_BPF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The next program behind `*id`; the first behind 0. false: none. */
bool bpf_next_program(uint32_t *id);

/* Its descriptor, or -errno: -ENOENT when it has been unloaded. */
int bpf_program(uint32_t id);

/* Fills in a struct bpf_prog_info or bpf_btf_info. 0 or -errno. */
int bpf_ask(int fd, void *info, size_t size);

/*
 * The types of this id, allocated, and their length; NULL where there are none. false: no memory.
 */
bool bpf_types(uint32_t id, void **types, uint32_t *len);

#endif
