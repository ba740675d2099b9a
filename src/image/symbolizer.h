/* SPDX-License-Identifier: MIT */
/* What readers of recordings know of names beyond the symbolizer's public header. */
#ifndef IMAGE_SYMBOLIZER_H
#define IMAGE_SYMBOLIZER_H

#include <tally/symbolizer.h>

/*
 * Whether the byte behind the address that `frame` was the answer for is not of its function, by the
 * symbols of its module, or the frame has none: what returns there may not have been called.
 */
bool symbolizer_begins_behind(const struct tally_symbolizer *symbolizer,
			      const struct tally_frame *frame);

#endif
