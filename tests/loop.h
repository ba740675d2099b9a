/* SPDX-License-Identifier: MIT */
/*
 * A loop whose instructions and branches are known: loop(n) does n rounds, at least one, of
 * LOOP_INSTRUCTIONS instructions, one of them a conditional branch. What is around the rounds is the same
 * for every n. loop_branches() is the name of an event that counts conditional branches in user mode, ""
 * where none is known; whether it counts has to be tried. mark_begin() and mark_end() are instructions that do
 * nothing, and that a referee in an emulator can see.
 */
#ifndef TESTS_LOOP_H
#define TESTS_LOOP_H

#if defined(__x86_64__)
#include "loop-x86.h"
#elif defined(__aarch64__)
#include "loop-arm64.h"
#else
#include "loop-other.h"
#endif

#endif
