/* SPDX-License-Identifier: MIT */
/* Tracepoints for a test: where tracefs is not mounted, root mounts it in a namespace of its own. */
#ifndef TESTS_TRACEFS_H
#define TESTS_TRACEFS_H

#include <sched.h>
#include <stdbool.h>
#include <sys/mount.h>
#include <unistd.h>

/* Call it before threads start. false: tracepoints cannot be looked up here. */
static inline bool tracefs_ready(void)
{
	static const char at[] = "/sys/kernel/tracing",
			  file[] = "/sys/kernel/tracing/events/header_page";

	if (access(file, R_OK) == 0 ||
	    access("/sys/kernel/debug/tracing/events/header_page", R_OK) == 0)
		return true;
	return unshare(CLONE_NEWNS) == 0 &&
	       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("nodev", at, "tracefs", 0, NULL) == 0 && access(file, R_OK) == 0;
}

#endif
