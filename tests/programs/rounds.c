/* SPDX-License-Identifier: MIT */
/* rounds N: N rounds of the loop that tests know the instructions of. */
#include <stdlib.h>

#include "loop.h"

int main(int argc, char **argv)
{
	loop(argc > 1 ? strtoull(argv[1], NULL, 10) : 1);
	return 0;
}
