/* SPDX-License-Identifier: MIT */
/*
 * One or two thousand instructions of many kinds, the same in each run: a sort, a checksum, some
 * floating point, calls through a table.
 */
#include "guest.h"

static uint32_t numbers[12];
static volatile double sum;

static void sort(uint32_t *at, int count)
{
	for (int i = 1; i < count; i++)
		for (int k = i; k > 0 && at[k - 1] > at[k]; k--) {
			uint32_t swap = at[k];
			at[k] = at[k - 1];
			at[k - 1] = swap;
		}
}

static uint32_t checksum(const void *bytes, unsigned len)
{
	uint32_t crc = ~0u;

	for (unsigned i = 0; i < len; i++) {
		crc ^= ((const uint8_t *)bytes)[i];
		for (int bit = 0; bit < 2; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
	}
	return crc;
}

static double half(double x)
{
	return x / 2;
}

static double next(double x)
{
	return x * 1.25 + 1;
}

static double (*const steps[])(double) = { half, next };

int guest_main(int argc, char **argv)
{
	uint32_t seed = 1;
	double x = 3;

	for (unsigned i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		seed = seed * 1664525u + 1013904223u;
		numbers[i] = seed >> 8;
	}
	sort(numbers, sizeof(numbers) / sizeof(*numbers));
	for (int i = 0; i < 12; i++)
		x = steps[i % 3 == 0](x);
	sum = x;
	return checksum(numbers, sizeof(numbers) / 2) & 0x3f;
}
