/* SPDX-License-Identifier: MIT */
/*
 * tally_calibration: how late a machine's interrupts come, as experience for timers.
 *
 * An interrupt of a hardware counter reaches the thread some ticks behind the one that was asked
 * for: its skid. On some CPUs that is never more than 125; on others a hundred mostly, and tens
 * of thousands now and then. Timers add what they see, and take their margins from it. It is
 * bytes in the caller's hand between runs: the library writes no files.
 *
 *	tally_calibration_new(&seen, NULL, &err);
 *	tally_calibration_import(seen, bytes, len, &err);	// of an earlier run, if there are any
 *	tally_timer_new(&timer, clock, TALLY_OPTS(timer, .calibration = seen), &err);
 */
#ifndef TALLY_CALIBRATION_H
#define TALLY_CALIBRATION_H

#include <tally/api.h>
#include <tally/error.h>

TALLY_BEGIN_DECLS

struct tally_calibration;

/*
 * Skids in ticks, by size. bucket[0]: 0; bucket[i]: from 2^(i-1) to 2^i - 1; the last: all that is
 * above, too.
 */
#define TALLY_SKID_BUCKETS 40

struct tally_skids {
	uint64_t count, max;
	uint64_t bucket[TALLY_SKID_BUCKETS];
};

/* The room that a key takes, with its NUL. */
#define TALLY_CALIBRATION_KEY_MAX 256

/*
 * What skids depend on, as one line: CPU, its microcode, hypervisor, kernel. Read from /proc and
 * /sys below `root`; NULL or "" is the real machine. What is not told is "?". Errors: -EINVAL.
 * Since: 0.1
 */
TALLY_API int tally_calibration_key(char out[TALLY_CALIBRATION_KEY_MAX], const char *root,
				    struct tally_error *err);

/*
 * An empty one. `key` is copied; NULL: that of this machine.
 * Errors: -EINVAL (a key that is empty, too long, or not one line), -ENOMEM. Since: 0.1
 */
TALLY_API int tally_calibration_new(struct tally_calibration **out, const char *key,
				    struct tally_error *err);
TALLY_API void tally_calibration_free(struct tally_calibration *seen);

/* Adds one interrupt, that came `skid` ticks late. Since: 0.1 */
TALLY_API void tally_calibration_add(struct tally_calibration *seen, uint64_t skid);

/* What has been seen, and where. Lives as long as the object. Since: 0.1 */
TALLY_API const struct tally_skids *tally_calibration_skids(const struct tally_calibration *seen);
TALLY_API const char *tally_calibration_where(const struct tally_calibration *seen);

/*
 * The least margin that all but one in `one_in` interrupts kept to, rounded up to a power of two
 * less one. 0 when fewer than four times as many have been seen, which says too little, or none.
 * Since: 0.1
 */
TALLY_API uint64_t tally_skids_margin(const struct tally_skids *seen, uint32_t one_in);

/*
 * Writes it as bytes that any machine reads. Answers how many those are; when `room` is less
 * nothing is written. Since: 0.1
 */
TALLY_API size_t tally_calibration_export(const struct tally_calibration *seen, void *buf,
					  size_t room);

/*
 * Adds what was exported. The bytes may come from anywhere.
 * Errors, after which it is as before: -EBADMSG (not such bytes, cut short, or contradicting
 * themselves), -EPROTONOSUPPORT (of a later version), -EXDEV (of another machine, microcode,
 * hypervisor or kernel; the text has both), -EOVERFLOW. Since: 0.1
 */
TALLY_API int tally_calibration_import(struct tally_calibration *seen, const void *bytes,
				       size_t len, struct tally_error *err);

TALLY_END_DECLS

#endif
