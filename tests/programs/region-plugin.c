/* SPDX-License-Identifier: MIT */
/* A plugin with regions of its own, for plugin-host. */
#include <tally/tally.h>

TALLY_REGIONS(plugin);

static struct tally_region work = TALLY_REGION("work");

int plugin_run(int times);

__attribute__((visibility("default"))) int plugin_run(int times)
{
	for (int i = 0; i < times; i++) {
		TALLY_REGION_BEGIN(plugin, &work);
		TALLY_REGION_END(plugin, &work);
	}
	return (int)plugin.on;
}
