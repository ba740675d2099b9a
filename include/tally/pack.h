/* SPDX-License-Identifier: MIT */
/*
 * tally_pack: a recording and what gives names to its addresses, as one tar archive, to be looked at
 * on another machine: tally_profile_load_file() reads it like a recording. Any tar(1) unpacks it:
 * perf.data, and files below their paths, the kernel's symbols among them as proc/kallsyms.
 */
#ifndef TALLY_PACK_H
#define TALLY_PACK_H

#include <tally/api.h>
#include <tally/error.h>

TALLY_BEGIN_DECLS

struct tally_packed {
	uint64_t bytes; /* of the archive */
	uint32_t files; /* in it, the recording not counted */
	uint32_t
		missing; /* that samples lie in, but which are not there or not the recorded ones */
	char first[256]; /* the path of the first that is missing; "" */
};

/*
 * Packs the recording with the files in which its samples and callchains lie, their separate symbols
 * (/usr/lib/debug/.build-id), the kernel's symbols and the maps of just-in-time compilers
 * (/tmp/perf-PID.map). Files whose build-id is not the recorded one are left out; what the recording kept
 * of containers and of deleted files comes from the cache of this user. `packed` may be
 * NULL. Errors: of tally_profile_load_file; of writing. Since: 0.1
 */
TALLY_API int tally_pack(const char *output, const char *recording, struct tally_packed *packed,
			 struct tally_error *err);

TALLY_END_DECLS

#endif
