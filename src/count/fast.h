/* SPDX-License-Identifier: MIT */
/* Mapping the pages of opened events for <tally/fast.h>, and keeping them until they are closed. */
#ifndef COUNT_FAST_H
#define COUNT_FAST_H

#include <time.h>

#include <tally/attr.h>
#include <tally/error.h>
#include <tally/fast.h>

struct opened;
struct fast_pages;

/*
 * Tells the calling thread from all others, a forked child of it included, which has its thread
 * pointer: the id of its CPU clock is made of its tid (MAKE_THREAD_CPUCLOCK, linux/posix-timers.h),
 * and known without a system call.
 */
clockid_t fast_thread_clock(void);

/*
 * Fills in `out` for a member of events that are open at one place, with its page where it can be
 * mapped; without one it reads through the kernel. Errors: -EINVAL several places, no such member.
 */
int fast_open(struct opened *o, uint32_t member, struct tally_fast *out, struct tally_error *err);

/* Unmaps all of it; NULL is fine. */
void fast_pages_close(struct fast_pages *pages);

/*
 * Asks for reads from user space in the attr of a hardware event, where the CPU wants to be asked:
 * `bit` is config1's, 0 where it need not be. fast_give_up() takes it back; false when it was not
 * there.
 */
void fast_ask(struct tally_attr *attr, uint64_t bit);
bool fast_give_up(struct tally_attr *attr, uint64_t bit);

/* Armv8's PMU driver, "rdpmc" in its format folder (5.17); x86 grants it to all. */
#if defined(__aarch64__)
#define FAST_ASK_BIT 2u
#else
#define FAST_ASK_BIT 0u
#endif

#endif
