/* SPDX-License-Identifier: MIT */
/*
 * `events KIND BEFORE BEHIND`: one thing that a tracer may want to see, between so many conditional
 * branches. getppid(2) marks where they begin; from there to the thing there are no others.
 */
#include "guest.h"

#define SIGNAL_WINCH 28 /* ignored unless a program wants it */

static void call(void)
{
	guest_call0(SYS_getpid);
}

static void signal_to_itself(void)
{
	guest_call3(SYS_tgkill, guest_call0(SYS_getpid), guest_call0(SYS_gettid), SIGNAL_WINCH);
}

static const struct {
	const char *name;
	void (*make)(void);
} kinds[] = {
	{ "call", call },
	{ "signal", signal_to_itself },
	{ "clock", guest_read_clock },
};

static unsigned long number(const char *text)
{
	unsigned long value = 0;

	for (; *text; text++)
		value = 10 * value + (unsigned long)(*text - '0');
	return value;
}

int guest_main(int argc, char **argv)
{
	void (*make)(void) = 0;

	if (argc != 4)
		return 2;
	for (unsigned long i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (guest_same(argv[1], kinds[i].name))
			make = kinds[i].make;
	if (!make)
		return 2;
	unsigned long before = number(argv[2]), behind = number(argv[3]);
	guest_call0(SYS_getppid);
	guest_branches(before);
	make();
	guest_branches(behind);
	return 0;
}
