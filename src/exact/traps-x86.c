/* SPDX-License-Identifier: MIT */
/* CPUID faulting is Intel's since Ivy Bridge and AMD's since Zen 4; CR4.TSD is in all. */
#include <cpuid.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <tally/tracee.h>

#include "exact/traps.h"

/* arch/x86/include/uapi/asm/prctl.h, Linux 4.12 */
#define ARCH_SET_CPUID 0x1012

const long traps_cpuid_call = SYS_arch_prctl;
const uint64_t traps_cpuid_what = ARCH_SET_CPUID;

int traps_try(uint32_t flag)
{
	const struct rlimit none = { 0, 0 };
	unsigned a, b, c, d;

	setrlimit(RLIMIT_CORE, &none);
	signal(SIGSEGV, SIG_DFL);
	if (flag == TALLY_TRACEE_TRAP_CPUID) {
		if (syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0) < 0)
			return 1;
		__cpuid(0, a, b, c, d);
		return (int)(a & b & c & d & 0);
	}
	if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV) < 0)
		return 1;
	return (int)(__builtin_ia32_rdtsc() & 0);
}
