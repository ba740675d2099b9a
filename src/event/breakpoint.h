/* SPDX-License-Identifier: MIT */
/* Hardware breakpoints by address: mem:ADDR[/LEN][:rwx]. */
#ifndef EVENT_BREAKPOINT_H
#define EVENT_BREAKPOINT_H

#include "event/resolve.h"

resolve_source breakpoint_resolve;

#endif
