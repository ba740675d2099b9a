/* SPDX-License-Identifier: MIT */
/*
 * Metrics: what remains of a formula that was parsed. Nodes that the value does not need go, and
 * with them the events that only they needed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "count/metric.h"

/* Marks what the value needs; operands stand before what uses them. */
static void mark(const struct tally_metric *m, uint32_t root, bool *used)
{
	used[root] = true;
	for (uint32_t i = root + 1; i-- > 0;) {
		const struct metric_node *n = &m->nodes.at[i];
		if (!used[i] || n->op < OP_NEGATE)
			continue;
		used[n->a] = true;
		if (n->op != OP_NEGATE)
			used[n->b] = true;
		if (n->op == OP_IF)
			used[n->c] = true;
	}
}

/* Moves the nodes that are used to the front; `new` is where each of them went. */
static void keep_nodes(struct tally_metric *m, const bool *used, uint32_t *new)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < m->nodes.count; i++) {
		struct metric_node n = m->nodes.at[i];
		if (!used[i])
			continue;
		if (n.op >= OP_NEGATE) {
			n.a = new[n.a];
			n.b = new[n.b];
			n.c = new[n.c];
		}
		new[i] = count;
		m->nodes.at[count++] = n;
	}
	m->nodes.count = count;
}

/* Slots go first where there is a top-down event of Intel's: the kernel wants it to lead them. */
static bool slots_lead(const struct tally_metric *m, uint32_t slots)
{
	for (uint32_t i = 0; i < m->events.count; i++)
		if (i != slots && strstr(m->events.at[i].name, "topdown-"))
			return true;
	return false;
}

static bool is_slots(const char *name)
{
	const char *slash = strchr(name, '/');

	return !strncasecmp(slash ? slash + 1 : name, "slots", 5);
}

static void swap_events(struct tally_metric *m, uint32_t a, uint32_t b)
{
	struct metric_event kept = m->events.at[a];

	m->events.at[a] = m->events.at[b];
	m->events.at[b] = kept;
	vec_each (&m->nodes, n)
		if (n->op == OP_EVENT || n->op == OP_SOURCES)
			n->a = n->a == a ? b : n->a == b ? a : n->a;
}

/* Drops the events that no node uses. `new` has room for all of them. */
static void keep_events(struct tally_metric *m, uint32_t *new)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < m->events.count; i++)
		new[i] = UINT32_MAX;
	vec_each (&m->nodes, n)
		if (n->op == OP_EVENT || n->op == OP_SOURCES)
			new[n->a] = 0;
	for (uint32_t i = 0; i < m->events.count; i++) {
		if (new[i] == UINT32_MAX) {
			free(m->events.at[i].name);
			continue;
		}
		new[i] = count;
		m->events.at[count++] = m->events.at[i];
	}
	m->events.count = count;
	vec_each (&m->nodes, n)
		if (n->op == OP_EVENT || n->op == OP_SOURCES)
			n->a = new[n->a];
	for (uint32_t i = 1; i < count; i++)
		if (is_slots(m->events.at[i].name) && slots_lead(m, i))
			swap_events(m, 0, i);
}

int metric_prune(struct tally_metric *m, uint32_t root, struct tally_error *err)
{
	bool *used = calloc(m->nodes.count, sizeof(*used));
	uint32_t *new = calloc(m->nodes.count, sizeof(*new));
	bool ok = used && new;

	/* Each event has a node, so `new` has room for them too. */
	if (ok) {
		mark(m, root, used);
		keep_nodes(m, used, new);
		keep_events(m, new);
	}
	free(used);
	free(new);
	return ok ? 0 : error_nomem(err, "a metric");
}
