/* SPDX-License-Identifier: MIT */
/*
 * libtally: count what a program does and sample where it does it. Needs libc alone.
 *
 * This is the only header that a program includes for it; <tally/profiling.h> is that of
 * libtally-profile (files, symbols, profiles). Each topic header also stands alone:
 *
 *	api.h       visibility, versions, options structs
 *	error.h     struct tally_error: what failed, why, what to do
 *	system.h    what this machine has and this user may do
 *	attr.h      struct tally_attr: what perf_event_open(2) is asked for
 *	event.h     events by name
 *	target.h    whom to count or sample
 *	launch.h    a command that waits until counters are attached
 *	count.h     a reading that knows whether it is exact
 *	freeze.h    holds a process still while counters are attached
 *	counter.h   one event on a target
 *	group.h     events counted together
 *	signal.h    signals at overflows
 *	metric.h    formulas over counts
 *	fast.h      counters read without a system call
 *	page.h      what the kernel says of a mapped event, and its clock
 *	measure.h   what a function does, counted
 *	region.h    named regions of code, counted when the environment asks for it
 *	record.h    records: bytes to structs and back
 *	ring.h      the memory that the kernel writes records into
 *	sampler.h   many rings for a target
 *	tracee.h    a thread under ptrace, where every stop is a value
 *	clock.h     clocks that go by what a thread executes
 *	timer.h     stops at exact points of an execution
 *	run.h       a command, run to such a point or counted to its end
 *	calibration.h  how late a machine's interrupts come
 *	selftest.h  whether counters are honest
 *	sim.h       a thread that only exists in memory, to try out loops around timers
 */
#ifndef TALLY_TALLY_H
#define TALLY_TALLY_H

#include <tally/api.h>
#include <tally/attr.h>
#include <tally/calibration.h>
#include <tally/clock.h>
#include <tally/count.h>
#include <tally/counter.h>
#include <tally/error.h>
#include <tally/event.h>
#include <tally/fast.h>
#include <tally/freeze.h>
#include <tally/group.h>
#include <tally/launch.h>
#include <tally/measure.h>
#include <tally/metric.h>
#include <tally/page.h>
#include <tally/record.h>
#include <tally/region.h>
#include <tally/ring.h>
#include <tally/run.h>
#include <tally/sampler.h>
#include <tally/selftest.h>
#include <tally/signal.h>
#include <tally/sim.h>
#include <tally/system.h>
#include <tally/target.h>
#include <tally/timer.h>
#include <tally/tracee.h>

#endif
