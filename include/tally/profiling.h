/* SPDX-License-Identifier: MIT */
/*
 * libtally-profile: perf.data files, recordings, names for addresses, profiles and their outputs.
 * On top of libtally, whose umbrella header this one includes.
 *
 *	reader.h      reads perf.data files
 *	file_record.h the records that perf itself writes into them
 *	features.h    what they tell of the machine and the recording
 *	writer.h      writes them
 *	survey.h      what a file consists of, and what is wrong with it
 *	rewrite.h     cuts, merges and renames them
 *	recorder.h    events + target -> file
 *	maps.h        what was mapped where, in each process, at each time
 *	symbolizer.h  from addresses to names
 *	unwinder.h    from registers and a stack to callers
 *	core.h        what a core file keeps of a process
 *	stack.h       where every thread of a process, or of a core file, is
 *	script.h      samples one after another, as text
 *	profile.h     call trees, filters, and the outputs: text, folded, flame graph
 *	pack.h        a recording with the programs that it needs
 *	doctor.h      what works here, and how to mend the rest
 *	same.h        do two runs of a command do the same, and where do they part
 */
#ifndef TALLY_PROFILING_H
#define TALLY_PROFILING_H

#include <tally/annotate.h>
#include <tally/core.h>
#include <tally/doctor.h>
#include <tally/features.h>
#include <tally/file_record.h>
#include <tally/maps.h>
#include <tally/pack.h>
#include <tally/profile.h>
#include <tally/reader.h>
#include <tally/recorder.h>
#include <tally/rewrite.h>
#include <tally/same.h>
#include <tally/script.h>
#include <tally/stack.h>
#include <tally/survey.h>
#include <tally/symbolizer.h>
#include <tally/tally.h>
#include <tally/unwinder.h>
#include <tally/writer.h>

#endif
