/* SPDX-License-Identifier: MIT */
/*
 * struct tally_system: what this machine has and what this user may do, read from /proc and /sys.
 * Facts only; `tally doctor` and the error texts draw the conclusions.
 */
#ifndef TALLY_SYSTEM_H
#define TALLY_SYSTEM_H

#include <tally/api.h>
#include <tally/error.h>

TALLY_BEGIN_DECLS

/* A figure that could not be read. */
#define TALLY_SYSTEM_UNKNOWN INT64_MIN

struct tally_system {
	int64_t paranoid; /* kernel.perf_event_paranoid, -1 to 4; UNKNOWN: no perf events at all */
	int64_t max_sample_rate; /* kernel.perf_event_max_sample_rate, a second */
	int64_t max_stack;       /* kernel.perf_event_max_stack, frames */
	int64_t mlock_kb; /* kernel.perf_event_mlock_kb: ring memory a CPU that needs no memlock */
	int64_t kptr_restrict; /* kernel.kptr_restrict: 0 shows kernel addresses, 1 to root, 2 to
				  nobody */
	int64_t nmi_watchdog;  /* kernel.nmi_watchdog: 1 takes a hardware counter */
	int64_t online_cpus;
	uint64_t capabilities;             /* effective set of this process, bits by CAP_* */
	int64_t seccomp;                   /* 0 none, 1 strict, 2 filter */
	uint64_t nofile_soft, nofile_hard; /* RLIMIT_NOFILE */
	uint64_t memlock_soft;             /* RLIMIT_MEMLOCK, bytes; UINT64_MAX: unlimited */
	uint32_t has_core_pmu; /* a PMU of the CPU cores is listed in /sys/bus/event_source/devices
				*/
	uint32_t in_vm;        /* the CPU says that a hypervisor runs it */
	uint32_t uid;          /* effective user id */
	/*
	 * Paranoid -1, or CAP_PERFMON or CAP_SYS_ADMIN of the first user namespace: the level sets
	 * this process no limits.
	 */
	uint32_t may_profile_all;
	char tracefs[64];           /* where tracefs is mounted and may be read, "" when nowhere */
	char release[64];           /* kernel release, uname -r */
	char machine[32];           /* uname -m */
	uint32_t in_user_namespace; /* of its own: its capabilities count for nothing here */
	uint32_t reserved;
};

/*
 * Reads it all. `root` is put before each path; NULL or "" is the real machine. What cannot be read
 * is UNKNOWN, so it fails only for a wrong size. out_size  sizeof *out as the caller compiled it.
 * Errors: -EINVAL. Since: 0.1
 */
TALLY_API int tally_system_read(struct tally_system *out, size_t out_size, const char *root,
				struct tally_error *err);

/*
 * How many frames a call chain may have: kernel.perf_event_max_stack, or 127, which is what kernels
 * have that do not tell (before Linux 4.8). Since: 0.1
 */
TALLY_API uint32_t tally_max_stack(void);

TALLY_END_DECLS

#endif
