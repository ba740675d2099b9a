/* SPDX-License-Identifier: MIT */
/*
 * The parts of `tally record`: its options, what they ask of the library, when events are on, who
 * may switch them, when a further file begins, and what is said about it all.
 */
#ifndef CLI_RECORD_H
#define CLI_RECORD_H

#include <tally/profiling.h>

#include "args.h"
#include "targets.h"

struct record_options {
	struct texts events, filters;
	struct target_args target;
	const char *tables, *cgroup;
	const char *output, *pages, *zstd;
	const char *freq, *call_graph, *branches, *clock;
	const char *delay, *control, *switch_output;
	uint64_t period, max_size, max_files;
	double duration;
	bool graph, any_branch, data, phys_data, data_page_size, code_page_size, raw, weight;
	bool stat, timestamp, switch_events, namespaces, all_cgroups;
	bool overwrite, no_inherit, no_stop, keep_stacks, no_cache, quiet, verbose;
};

/* Parses; `*left` becomes what follows the options, NULL when all is said and the answer counts. */
int record_options_parse(struct record_options *o, int argc, char **argv, char ***left);
/* Which of them exclude each other; false after an error, which was said. */
bool record_options_check(const struct record_options *o, const struct targets *targets,
			  bool command);

/* How call graphs are found best here, "fp" or "dwarf", by a trial; says so. */
const char *record_choose_graph(const struct tally_target *target, bool quiet);

/* What the options ask of the sampler. An exit status, not EXIT_DONE after an error was said. */
int record_sampling(const struct record_options *o, const struct tally_events *events,
		    struct tally_sampler_opts *out);

/* The level of compression, 0: none. false after an error, which was said. */
bool record_level(const struct record_options *o, uint32_t *out);

/* ---- when events are on: -D ---- */

#define MAX_TOGGLES 128

struct schedule {
	uint64_t at_ms[MAX_TOGGLES]; /* since the start, ascending; the first turns events on */
	unsigned count, next;
	bool starts_off;
};

/* "MS", "-1" (until somebody turns them on) or ranges as "10-20,30-40"; NULL: on at once. */
bool schedule_parse(struct schedule *s, const char *text);
/* Whether events are to be switched now, and to what. */
bool schedule_due(struct schedule *s, uint64_t now_ms, bool *on);
/* How long to wait for the next, `most` at most. */
int schedule_wait(const struct schedule *s, uint64_t now_ms, int most);

/* ---- who may switch them: --control ---- */

enum control_command {
	CONTROL_NONE, /* nothing more for now */
	CONTROL_ENABLE,
	CONTROL_DISABLE,
	CONTROL_SNAPSHOT,
	CONTROL_STOP,
	CONTROL_PING,
	CONTROL_EVLIST,
	CONTROL_UNKNOWN,
};

struct control {
	int fd, ack; /* -1: none */
	bool ours;   /* opened here, to be closed */
	size_t used;
	char line[512]; /* what has come of the next commands */
	char word[512]; /* the command at hand */
};

/* "fd:CTL[,ACK]" or "fifo:CTL[,ACK]"; false after an error, which was said. */
bool control_open(struct control *c, const char *text);
/* The next command that has come and what follows it; waits for none. */
enum control_command control_next(struct control *c, const char **argument);
/* Tells that it is done. */
void control_done(struct control *c);
void control_close(struct control *c);

/* ---- further files: --switch-output ---- */

struct rotation {
	bool wanted;
	uint64_t bytes, period_ns; /* 0: not by that */
	uint64_t bytes_before, since_ns;
	uint64_t keep; /* files; 0: all */
	char **names;  /* of those that are kept, oldest first */
	uint64_t count;
};

bool rotation_parse(struct rotation *r, const struct record_options *o);
/* Whether a further file is due by size or time. */
bool rotation_due(const struct rotation *r, uint64_t bytes, uint64_t now_ns);
/* The name for a file that is whole: PATH.YYYYMMDDhhmmssCC, which no file has yet. -1: no memory. */
int rotation_name(struct rotation *r, const char *path, uint64_t bytes, uint64_t now_ns,
		  const char **name);
/* Removes what is more than `keep`. */
void rotation_trim(struct rotation *r);
void rotation_free(struct rotation *r);

/* ---- what is said ---- */

void record_say_compromises(const struct tally_recorder *recorder,
			    const struct tally_events *events);
void record_say_progress(const struct tally_recording *now, double seconds);
void record_say_result(const struct tally_recording *rec, const struct tally_events *events,
		       const char *path, bool verbose);

#endif
