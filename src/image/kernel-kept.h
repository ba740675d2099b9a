/* SPDX-License-Identifier: MIT */
/* Symbols of a kernel that does not run here, or not for this user. */
#ifndef IMAGE_KERNEL_KEPT_H
#define IMAGE_KERNEL_KEPT_H

#include "image/elf.h"
#include "image/kernel.h"

/*
 * Fills a zeroed `*k` from the cache or from vmlinux, by build-id. 1; 0: there is none, or it cannot
 * be placed; -ENOMEM. kernel_done() is the caller's in any case.
 */
int kernel_load_kept(struct kernel *k, const struct file_search *where,
		     const struct kernel_recorded *recorded, struct build_id id);

/* Makes the functions of a sealed vmlinux the kernel's. 1; 0: it has none; -ENOMEM. */
int kernel_take(struct kernel *k, struct elf_file *f);

#endif
