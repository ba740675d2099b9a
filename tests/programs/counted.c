/* SPDX-License-Identifier: MIT */
/* A program whose instructions and branches can be counted by hand: counted.h has the sums. */
#include "counted.h"

__asm__(COUNTED_PROGRAM);
