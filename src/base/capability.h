/* SPDX-License-Identifier: MIT */
/* The CAP_* numbers, with those that older installed headers lack. */
#ifndef BASE_CAPABILITY_H
#define BASE_CAPABILITY_H

#include <linux/capability.h>

#ifndef CAP_PERFMON
#define CAP_PERFMON 38 /* Linux 5.8 */
#endif

#endif
