/* SPDX-License-Identifier: MIT */
/*
 * Which event counts branches in a way that a program determines alone, by microarchitecture. From the
 * vendors' event lists (intel/perfmon, AMD's processor programming references, Arm's and Apple's
 * manuals); margins are what has been seen of interrupts' skid, in ticks, and no bound. On Intel from
 * Ice Lake on, the unit mask 0x01 counts taken branches alone: it is 0x11 there, on Lion Cove with bit
 * 40 (UMaskExt), and 0x07 from Cougar Cove and Darkmont on.
 *
 * A CPUID may lie in a virtual machine: "Icelake-Server" of QEMU has the model of Snow Ridge. So a row
 * is a first candidate, and what counts exactly decides.
 */
#include <string.h>

#include "event/cpu.h"
#include "event/pmu.h"
#include "exact/uarch.h"

#define CONDITIONAL TALLY_TICKS_CONDITIONAL
#define TAKEN       TALLY_TICKS_TAKEN
#define NONE        0

/* The first row that matches counts. */
static const struct uarch rows[] = {
	/* clang-format off */
	{ "GenuineIntel-6-(F|16|17|1D)", "Merom/Penryn", NULL, NONE, 0, 0, 100 },
	{ "GenuineIntel-6-(1A|1E|1F|2E)", "Nehalem", NULL, CONDITIONAL, 0x01c4, 0, 100 },
	{ "GenuineIntel-6-(25|2C|2F)", "Westmere", NULL, CONDITIONAL, 0x01c4, 0, 100 },
	{ "GenuineIntel-6-(2A|2D)", "SandyBridge", NULL, CONDITIONAL, 0x01c4, 0, 100 },
	{ "GenuineIntel-6-(3A|3E)", "IvyBridge", NULL, CONDITIONAL, 0x01c4, 0, 100 },
	{ "GenuineIntel-6-(3C|3F|45|46)", "Haswell", NULL, CONDITIONAL, 0x01c4, 0, 100 },
	{ "GenuineIntel-6-(3D|47|4F|56)", "Broadwell", NULL, CONDITIONAL, 0x01c4, 0, 100 },
	{ "GenuineIntel-6-(4E|55|5E)", "Skylake/CascadeLake", NULL, CONDITIONAL, 0x01c4, 0, 100 },
	{ "GenuineIntel-6-(8E|9E)", "KabyLake", NULL, CONDITIONAL, 0x01c4, 0, 100 },
	{ "GenuineIntel-6-(A5|A6)", "CometLake", NULL, CONDITIONAL, 0x01c4, 0, 100 },
	{ "GenuineIntel-6-(7D|7E|6A|6C|86)", "IceLake", NULL, CONDITIONAL, 0x11c4, 0, 100 },
	{ "GenuineIntel-6-(8C|8D)", "TigerLake", NULL, CONDITIONAL, 0x11c4, 0, 100 },
	{ "GenuineIntel-6-(A7)", "RocketLake", NULL, CONDITIONAL, 0x11c4, 0, 100 },
	{ "GenuineIntel-6-(97|9A)", "AlderLake P", "cpu_core", CONDITIONAL, 0x11c4, 0, 125 },
	{ "GenuineIntel-6-(B7|BA|BF)", "RaptorLake P", "cpu_core", CONDITIONAL, 0x11c4, 0, 125 },
	{ "GenuineIntel-6-(8F)", "SapphireRapids", NULL, CONDITIONAL, 0x11c4, 0, 125 },
	{ "GenuineIntel-6-(CF)", "EmeraldRapids", NULL, CONDITIONAL, 0x11c4, 0, 125 },
	{ "GenuineIntel-6-(AD|AE)", "GraniteRapids", NULL, CONDITIONAL, 0x11c4, 0, 125 },
	{ "GenuineIntel-6-(AA|AC|B5)", "MeteorLake P", "cpu_core", CONDITIONAL, 0x11c4, 0, 125 },
	{ "GenuineIntel-6-(BD)", "LunarLake P", "cpu_core", CONDITIONAL, 0x100000011c4, 0, 125 },
	{ "GenuineIntel-6-(C5|C6)", "ArrowLake P", "cpu_core", CONDITIONAL, 0x100000011c4, 0, 125 },
	{ "GenuineIntel-6-(CC|D5|E5)", "PantherLake P", "cpu_core", CONDITIONAL, 0x07c4, 0, 125 },
	{ "GenuineIntel-18-(1|3)", "NovaLake P", "cpu_core", CONDITIONAL, 0x07c4, 0, 125 },
	{ "GenuineIntel-6-(37|4A|4C|4D|5A)", "Silvermont/Airmont", NULL, CONDITIONAL, 0x7ec4, 0, 100 },
	{ "GenuineIntel-6-(57|85)", "KnightsLanding/Mill", NULL, CONDITIONAL, 0x7ec4, 0, 100 },
	{ "GenuineIntel-6-(5C|5F|7A)", "Goldmont/Plus", NULL, CONDITIONAL, 0x7ec4, 0, 100 },
	{ "GenuineIntel-6-(9C|96|86)", "Tremont", NULL, CONDITIONAL, 0x7ec4, 0, 100 },
	{ "GenuineIntel-6-(97|9A|B7|BA|BF|BE)", "Gracemont E", "cpu_atom", CONDITIONAL, 0x7ec4, 0, 100 },
	{ "GenuineIntel-6-(AA|AC|B5|C5|AF|B6)", "Crestmont E", "cpu_atom", CONDITIONAL, 0x7ec4, 0, 100 },
	{ "GenuineIntel-6-(BD|C5|C6)", "Skymont E", "cpu_atom", CONDITIONAL, 0x7ec4, 0, 100 },
	{ "GenuineIntel-6-(CC|D5|E5|DD)", "Darkmont E", "cpu_atom", CONDITIONAL, 0x07c4, 0, 125 },
	{ "GenuineIntel-18-(1|3)", "ArcticWolf E", "cpu_atom", CONDITIONAL, 0x07c4, 0, 125 },
	{ "AuthenticAMD-21-(2|30)", "Piledriver/Steamroller", NULL, TAKEN, 0x00c4, 0x00c6, 250 },
	{ "AuthenticAMD-18-1", "Llano", NULL, TAKEN, 0x00c4, 0x00c6, 250 },
	{ "AuthenticAMD-26-11", "Zen 5 (Turin dense)", NULL, CONDITIONAL, 0x00d1, 0, 1000 },
	{ "AuthenticAMD-(23|25|26)-[[:xdigit:]]+", "Zen", NULL, CONDITIONAL, 0x00d1, 0, 10000 },
	{ "0x00000000410fd050", "A55/A75/E1/A520", NULL, NONE, 0, 0, 0 },
	{ "0x00000000410fd0a0", "A55/A75/E1/A520", NULL, NONE, 0, 0, 0 },
	{ "0x00000000410fd4a0", "A55/A75/E1/A520", NULL, NONE, 0, 0, 0 },
	{ "0x00000000410fd800", "A55/A75/E1/A520", NULL, NONE, 0, 0, 0 },
	{ "0x00000000510f8030", "A55/A75/E1/A520", NULL, NONE, 0, 0, 0 },
	{ "0x00000000510f8050", "A55/A75/E1/A520", NULL, NONE, 0, 0, 0 },
	{ "0x00000000510f8020", "A55/A75/E1/A520", NULL, NONE, 0, 0, 0 },
	{ "0x00000000410fd0b0", "A76/A77/A78/X1", NULL, TAKEN, 0x21, 0, 10000 },
	{ "0x00000000510f8040", "A76/A77/A78/X1", NULL, TAKEN, 0x21, 0, 10000 },
	{ "0x00000000410fd0d0", "A76/A77/A78/X1", NULL, TAKEN, 0x21, 0, 10000 },
	{ "0x00000000410fd410", "A76/A77/A78/X1", NULL, TAKEN, 0x21, 0, 10000 },
	{ "0x00000000410fd4b0", "A76/A77/A78/X1", NULL, TAKEN, 0x21, 0, 10000 },
	{ "0x00000000410fd440", "A76/A77/A78/X1", NULL, TAKEN, 0x21, 0, 10000 },
	{ "0x00000000410fd4c0", "A76/A77/A78/X1", NULL, TAKEN, 0x21, 0, 10000 },
	{ "0x00000000410fd810", "A720", NULL, TAKEN, 0x21, 0, 1000 },
	{ "0x00000000410fd0c0", "Neoverse N1/N2/N3/V1/V2/V3AE/V3", NULL, TAKEN, 0x21, 0, 1000 },
	{ "0x00000000410fd490", "Neoverse N1/N2/N3/V1/V2/V3AE/V3", NULL, TAKEN, 0x21, 0, 1000 },
	{ "0x00000000410fd8e0", "Neoverse N1/N2/N3/V1/V2/V3AE/V3", NULL, TAKEN, 0x21, 0, 1000 },
	{ "0x00000000410fd400", "Neoverse N1/N2/N3/V1/V2/V3AE/V3", NULL, TAKEN, 0x21, 0, 1000 },
	{ "0x00000000410fd4f0", "Neoverse N1/N2/N3/V1/V2/V3AE/V3", NULL, TAKEN, 0x21, 0, 1000 },
	{ "0x00000000410fd830", "Neoverse N1/N2/N3/V1/V2/V3AE/V3", NULL, TAKEN, 0x21, 0, 1000 },
	{ "0x00000000410fd840", "Neoverse N1/N2/N3/V1/V2/V3AE/V3", NULL, TAKEN, 0x21, 0, 1000 },
	{ "0x00000000c00fac30", "AmpereOne", NULL, TAKEN, 0x21, 0, 1000 },
	{ "0x00000000510f0010", "OryonX1", NULL, TAKEN, 0x21, 0, 10000 },
	{ "0x00000000610f0220", "M1 Icestorm", NULL, TAKEN, 0x90, 0, 1000 },
	{ "0x00000000610f0240", "M1 Icestorm", NULL, TAKEN, 0x90, 0, 1000 },
	{ "0x00000000610f0280", "M1 Icestorm", NULL, TAKEN, 0x90, 0, 1000 },
	{ "0x00000000610f0230", "M1 Firestorm", NULL, TAKEN, 0x90, 0, 1000 },
	{ "0x00000000610f0250", "M1 Firestorm", NULL, TAKEN, 0x90, 0, 1000 },
	{ "0x00000000610f0290", "M1 Firestorm", NULL, TAKEN, 0x90, 0, 1000 },
	{ "0x00000000610f0320", "M2 Blizzard", NULL, TAKEN, 0x90, 0, 1000 },
	{ "0x00000000610f0340", "M2 Blizzard", NULL, TAKEN, 0x90, 0, 1000 },
	{ "0x00000000610f0380", "M2 Blizzard", NULL, TAKEN, 0x90, 0, 1000 },
	{ "0x00000000610f0330", "M2 Avalanche", NULL, TAKEN, 0x90, 0, 1000 },
	{ "0x00000000610f0350", "M2 Avalanche", NULL, TAKEN, 0x90, 0, 1000 },
	{ "0x00000000610f0390", "M2 Avalanche", NULL, TAKEN, 0x90, 0, 1000 },
	/* clang-format on */
};

/* For a CPU without a row: conditional branches as any of them encodes it. */
static const uint64_t candidates[] = { 0x01c4, 0x11c4, 0x100000011c4, 0x07c4, 0x7ec4, 0x00d1 };

const uint64_t *uarch_candidates(size_t *count)
{
	*count = sizeof(candidates) / sizeof(*candidates);
	return candidates;
}

/* Rows of one kind of core are for its PMU; a virtual machine may call any core's PMU "cpu". */
static bool is_of_pmu(const struct uarch *row, const char *pmu)
{
	return !row->pmu || !strcmp(pmu, "cpu") || !strcmp(pmu, row->pmu) ||
	       (!strcmp(pmu, "cpu_lowpower") && !strcmp(row->pmu, "cpu_atom"));
}

const struct uarch *uarch_of(const char *identity, const char *pmu)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (cpu_matches(rows[i].pattern, identity) && is_of_pmu(&rows[i], pmu))
			return &rows[i];
	return NULL;
}

static bool counts_on(const struct pmu *pmu, int32_t cpu)
{
	for (uint32_t i = 0; i < pmu->cpu_count; i++)
		if (pmu->cpus[i] == cpu)
			return true;
	return !pmu->cpus;
}

int uarch_pmu(struct uarch_pmu *out, const char *root, int32_t cpu)
{
	pmus list = { 0 };
	int r = pmus_find(&list, root, NULL);

	if (r == 0)
		r = -ENODEV;
	vec_each (&list, pmu) {
		if (r != -ENODEV || !counts_on(pmu, cpu))
			continue;
		memcpy(out->name, pmu->name, sizeof(out->name));
		out->type = pmu->type;
		r = 0;
	}
	pmus_done(&list);
	return r;
}
