/* SPDX-License-Identifier: MIT */
/*
 * struct tally_error: what failed, on what, why, and what to do about it.
 *
 * The caller owns it, usually on its stack, and passes its address as the last argument; nothing is
 * allocated. It means something after a call that failed only; one struct may serve many calls.
 *
 *	struct tally_error err;
 *	if (tally_events_parse(&events, "cycles", NULL, &err) < 0)
 *		fprintf(stderr, "%s\n", err.text);
 */
#ifndef TALLY_ERROR_H
#define TALLY_ERROR_H

#include <tally/api.h>

TALLY_BEGIN_DECLS

/* Why something failed, coarsely: for programs that react. People read the text. */
enum tally_cause {
	TALLY_CAUSE_NONE = 0,
	TALLY_CAUSE_ARGUMENT,    /* the caller passed something that cannot be right */
	TALLY_CAUSE_SYNTAX,      /* a text that does not parse; the text says where */
	TALLY_CAUSE_UNKNOWN,     /* a name that nothing has: event, tracepoint, symbol */
	TALLY_CAUSE_PARANOID,    /* kernel.perf_event_paranoid forbids it */
	TALLY_CAUSE_PERMISSION,  /* file permissions, ptrace rules, another user's process */
	TALLY_CAUSE_SECCOMP,     /* a seccomp filter or a security module refused the call */
	TALLY_CAUSE_NO_PMU,      /* this machine shows no hardware counters */
	TALLY_CAUSE_UNSUPPORTED, /* this kernel or PMU does not have it */
	TALLY_CAUSE_NO_PROCESS,  /* no such process, thread or CPU */
	TALLY_CAUSE_FD_LIMIT,    /* RLIMIT_NOFILE or fs.file-max is used up */
	TALLY_CAUSE_MLOCK_LIMIT, /* kernel.perf_event_mlock_kb and RLIMIT_MEMLOCK are used up */
	TALLY_CAUSE_LIMIT,       /* another limit: a rate, a stack depth, counters in a group */
	TALLY_CAUSE_BUSY,        /* somebody else holds it */
	TALLY_CAUSE_MEMORY,      /* no memory */
	TALLY_CAUSE_NO_FILE,     /* no such file or folder */
	TALLY_CAUSE_CORRUPT,     /* bytes that contradict their format; the text has the offset */
	TALLY_CAUSE_TRUNCATED,   /* the input ends early; everything before has been delivered */
	TALLY_CAUSE_IO,          /* reading or writing failed: disk full, broken pipe */
	TALLY_CAUSE_EXEC,        /* a command could not be run */
};

/* Room for one line of explanation. */
#define TALLY_ERROR_TEXT 504

struct tally_error {
	int32_t code;                /* the negative errno that the call returned */
	uint32_t cause;              /* enum tally_cause */
	char text[TALLY_ERROR_TEXT]; /* one line without a newline, NUL-terminated */
};

/* The cause as a word ("paranoid"), for logs and tests. "?" for an unknown value. Since: 0.1 */
TALLY_API const char *tally_cause_name(uint32_t cause);

TALLY_END_DECLS

#endif
