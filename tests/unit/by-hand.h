/* SPDX-License-Identifier: MIT */
/* Small profiles by hand, and outputs as texts, for the tests of the profile room. */
#ifndef UNIT_BY_HAND_H
#define UNIT_BY_HAND_H

#include <stdlib.h>
#include <string.h>
#include <tally/profile.h>

/*
 * Adds samples of a stack like "main;parse@libx.so;read@[kernel]": frames outermost first, each
 * with a module behind @ ("work" without), whose mode is kernel for "[kernel]". "?" has no symbol.
 */
static inline int add_stack(struct tally_profile *p, int event, int thread, const char *frames,
			    uint64_t samples, uint64_t weight)
{
	char text[512], *rest = NULL;
	int stack = -1;

	snprintf(text, sizeof(text), "%s", frames);
	for (char *f = strtok_r(text, ";", &rest); f; f = strtok_r(NULL, ";", &rest)) {
		char *module = strrchr(f, '@');
		uint32_t mode = TALLY_MODE_USER;
		if (module)
			*module++ = '\0';
		if (module && !strcmp(module, "[kernel]"))
			mode = TALLY_MODE_KERNEL;
		int m = tally_profile_module(p, module ? module : "work", NULL, NULL, 0);
		int function = tally_profile_function(p, m, strcmp(f, "?") ? f : NULL, mode);
		int location = tally_profile_location(p, function, 0);
		stack = tally_profile_stack(p, stack, location);
	}
	return tally_profile_add(p, event, thread, stack, samples, weight);
}

/* A profile of one event "cpu-clock" and the thread 7/7 "work". */
static inline struct tally_profile *new_profile(void)
{
	struct tally_profile *p = NULL;

	if (tally_profile_new(&p, NULL) < 0 || tally_profile_event(p, "cpu-clock", "ns") != 0 ||
	    tally_profile_thread(p, 7, 7, "work") != 0)
		abort();
	return p;
}

struct output {
	char *text;
	size_t len;
	FILE *to;
};

static inline FILE *output_open(struct output *o)
{
	*o = (struct output){ 0 };
	o->to = open_memstream(&o->text, &o->len);
	return o->to;
}

/* The text; yours to free. */
static inline char *output_text(struct output *o)
{
	fclose(o->to);
	return o->text;
}

#endif
