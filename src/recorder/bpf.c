/* SPDX-License-Identifier: MIT */
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "recorder/bpf.h"

/* The kernel takes no more, BTF_MAX_SIZE. */
#define MAX_TYPES (16u << 20)

/* bpf(2) refuses bytes beyond its fields that are not zero; an initialiser may leave some so. */
static int bpf(int cmd, union bpf_attr *attr, uint32_t id)
{
	memset(attr, 0, sizeof(*attr));
	attr->prog_id = id; /* start_id and btf_id are at the same place */
	return sys()->bpf(cmd, attr, sizeof(*attr));
}

bool bpf_next_program(uint32_t *id)
{
	union bpf_attr attr;

	/* The ids ascend; one that does not would lead round in a circle. */
	if (bpf(BPF_PROG_GET_NEXT_ID, &attr, *id) < 0 || attr.next_id <= *id)
		return false;
	*id = attr.next_id;
	return true;
}

int bpf_program(uint32_t id)
{
	union bpf_attr attr;

	return bpf(BPF_PROG_GET_FD_BY_ID, &attr, id);
}

int bpf_ask(int fd, void *info, size_t size)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.info.bpf_fd = (uint32_t)fd;
	attr.info.info_len = (uint32_t)size;
	attr.info.info = (uintptr_t)info;
	return sys()->bpf(BPF_OBJ_GET_INFO_BY_FD, &attr, sizeof(attr));
}

/* Asked twice, the first time for the length. */
static bool types_of(int fd, void **types, uint32_t *len)
{
	struct bpf_btf_info info;

	memset(&info, 0, sizeof(info));
	if (bpf_ask(fd, &info, sizeof(info)) < 0 || !info.btf_size || info.btf_size > MAX_TYPES)
		return true;
	uint32_t size = info.btf_size;
	*types = calloc(1, size);
	if (!*types)
		return false;
	memset(&info, 0, sizeof(info));
	info.btf = (uintptr_t)*types;
	info.btf_size = size;
	if (bpf_ask(fd, &info, sizeof(info)) == 0)
		*len = size < info.btf_size ? size : info.btf_size;
	return true;
}

bool bpf_types(uint32_t id, void **types, uint32_t *len)
{
	union bpf_attr attr;
	int fd = id ? bpf(BPF_BTF_GET_FD_BY_ID, &attr, id) : -1;

	*types = NULL;
	*len = 0;
	if (fd < 0)
		return true;
	bool good = types_of(fd, types, len);
	sys()->close(fd);
	return good;
}
