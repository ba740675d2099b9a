/* SPDX-License-Identifier: MIT */
/* The names in BPF's type format, Documentation/bpf/btf.rst. */
#ifndef RECORDER_BTF_H
#define RECORDER_BTF_H

#include <stddef.h>
#include <stdint.h>

/*
 * The name of a type or function; NULL when it has none, or the `len` bytes are no BTF. Borrowed from
 * them.
 */
const char *btf_name(const void *btf, size_t len, uint32_t type_id);

#endif
