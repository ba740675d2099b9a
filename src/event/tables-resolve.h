/* SPDX-License-Identifier: MIT */
/* Names of the tables in opts->tables, as a source of names. */
#ifndef EVENT_TABLES_RESOLVE_H
#define EVENT_TABLES_RESOLVE_H

#include "event/nearest.h"
#include "event/resolve.h"

/* A name of several core PMUs (cpu_core, cpu_atom) is one event with a part for each. */
resolve_source resolve_tables;

/* Offers the tables' names to the search for the nearest one. 0 or -errno; n->err is left alone. */
int tables_offer(const struct naming *n, struct nearest *near);

#endif
