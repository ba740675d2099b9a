/* SPDX-License-Identifier: MIT */
/* tally data pack. */
#include "command.h"
#include "data.h"
#include "term.h"

int data_pack(int argc, char **argv)
{
	complain("data pack", "is not there yet");
	return EXIT_FAILED;
}
