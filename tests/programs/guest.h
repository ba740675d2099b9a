/* SPDX-License-Identifier: MIT */
/*
 * What a program without a C library needs. Such programs run the same instructions everywhere: they ask
 * neither the CPU nor the loader anything. A program defines guest_main(), which answers its status.
 */
#ifndef PROGRAMS_GUEST_H
#define PROGRAMS_GUEST_H

#include <stdint.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#include "guest-x86.h"
#elif defined(__aarch64__)
#include "guest-arm64.h"
#endif

#define GUEST_USED __attribute__((used, noinline))

int guest_main(int argc, char **argv);

static inline long guest_call0(long number)
{
	return guest_call(number, 0, 0, 0, 0, 0, 0);
}

static inline long guest_call3(long number, long a, long b, long c)
{
	return guest_call(number, a, b, c, 0, 0, 0);
}

static inline unsigned long guest_length(const char *text)
{
	unsigned long len = 0;

	while (text[len])
		len++;
	return len;
}

static inline int guest_same(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

static inline void guest_say(const char *text)
{
	guest_call3(SYS_write, 1, (long)text, (long)guest_length(text));
}

static inline void guest_say_hex(const char *what, uint64_t value)
{
	char text[20];

	for (int i = 0; i < 16; i++)
		text[i] = "0123456789abcdef"[value >> (60 - 4 * i) & 15];
	text[16] = '\n';
	text[17] = 0;
	guest_say(what);
	guest_say(text);
}

GUEST_USED _Noreturn static void guest_begin(long *stack)
{
	guest_call3(SYS_exit_group, guest_main((int)stack[0], (char **)(stack + 1)), 0, 0);
	__builtin_unreachable();
}

/* What compilers call by themselves. */
void *memcpy(void *to, const void *from, unsigned long len);
void *memset(void *to, int byte, unsigned long len);

GUEST_USED void *memcpy(void *to, const void *from, unsigned long len)
{
	for (unsigned long i = 0; i < len; i++)
		((volatile char *)to)[i] = ((const char *)from)[i];
	return to;
}

GUEST_USED void *memset(void *to, int byte, unsigned long len)
{
	for (unsigned long i = 0; i < len; i++)
		((volatile char *)to)[i] = (char)byte;
	return to;
}

#endif
