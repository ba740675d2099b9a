/* SPDX-License-Identifier: MIT */
/* `tally stat`: what counts are summed up for: a CPU, a core, a thread ..., and a cgroup. */
#include <stdlib.h>
#include <string.h>

#include "stat.h"
#include "topology.h"

/* Which levels of the topology make a key. */
static const struct {
	bool cpu, core, die, socket, node, tid;
} parts[] = {
	[BY_ALL] = { 0 },
	[BY_CPU] = { .cpu = true },
	[BY_CORE] = { .core = true, .die = true, .socket = true },
	[BY_DIE] = { .die = true, .socket = true },
	[BY_SOCKET] = { .socket = true },
	[BY_NODE] = { .node = true },
	[BY_THREAD] = { .tid = true },
};

/* A thread's name, as the kernel has it now; "" when it is gone. */
static void read_comm(char *out, size_t size, int32_t tid)
{
	char path[48];

	*out = '\0';
	snprintf(path, sizeof(path), "/proc/%d/comm", tid);
	FILE *file = fopen(path, "re");
	if (!file)
		return;
	if (fgets(out, (int)size, file))
		out[strcspn(out, "\n")] = '\0';
	fclose(file);
}

static struct stat_key make_key(enum stat_by by, const struct tally_place *place, uint32_t cgroup)
{
	bool placed = parts[by].core || parts[by].die || parts[by].socket || parts[by].node;
	struct topology t = placed ? topology_of(place->cpu) : (struct topology){ 0 };

	return (struct stat_key){
		.cpu = parts[by].cpu ? place->cpu : -1,
		.core = parts[by].core ? t.core : -1,
		.die = parts[by].die ? t.die : -1,
		.socket = parts[by].socket ? t.socket : -1,
		.node = parts[by].node ? t.node : -1,
		.tid = parts[by].tid ? place->tid : -1,
		.cgroup = cgroup,
	};
}

static bool same_key(const struct stat_key *a, const struct stat_key *b)
{
	return a->cpu == b->cpu && a->core == b->core && a->die == b->die &&
	       a->socket == b->socket && a->node == b->node && a->tid == b->tid &&
	       a->cgroup == b->cgroup;
}

struct stat_key *stat_key_of(struct stat_result *result, const struct tally_place *place,
			     uint32_t cgroup)
{
	struct stat_key key = make_key(result->by, place, cgroup);

	for (uint32_t k = 0; k < result->key_count; k++)
		if (same_key(&result->keys[k], &key))
			return &result->keys[k];
	void *more = realloc(result->keys, (result->key_count + 1) * sizeof(*result->keys));
	if (!more)
		return NULL;
	result->keys = more;
	key.cells = calloc(result->count + 1, sizeof(*key.cells));
	if (!key.cells)
		return NULL;
	if (key.tid > 0)
		read_comm(key.comm, sizeof(key.comm), key.tid);
	result->keys[result->key_count] = key;
	return &result->keys[result->key_count++];
}

void stat_keys_free(struct stat_result *result)
{
	for (uint32_t k = 0; k < result->key_count; k++)
		free(result->keys[k].cells);
	free(result->keys);
	result->keys = NULL;
	result->key_count = 0;
}

/* Rows that could not be opened are shown under each key that they were meant for. */
static bool is_shown(const struct stat_row *row, const struct stat_key *key,
		     const struct stat_cell *cell)
{
	return stat_counts_in(row, key->cgroup) && (row->error.code || cell->places);
}

static bool rows_outside(const struct stat_result *result)
{
	bool each_has_its_own = result->cgroup_count && result->count &&
				result->rows[0].cgroup != NO_CGROUP;

	return result->by == BY_CPU || result->by == BY_THREAD || each_has_its_own;
}

/* How many keys stand together: those of one cgroup, when each event is counted in each. */
static uint32_t keys_together(const struct stat_result *result)
{
	bool in_each = result->cgroup_count && result->count && result->rows[0].cgroup == NO_CGROUP;

	/* A CPU that came on-line meanwhile has its keys behind all others. */
	if (!in_each || result->key_count % result->cgroup_count)
		return result->key_count;
	return result->key_count / result->cgroup_count;
}

bool stat_next(const struct stat_result *result, struct stat_at *at)
{
	bool outside = rows_outside(result);
	uint32_t keys = keys_together(result), block = keys * result->count;

	while (at->n < result->count * result->key_count) {
		uint32_t first = at->n / block * keys, n = at->n % block;
		uint32_t k = first + (outside ? n % keys : n / result->count);
		at->n++;
		at->row = outside ? n / keys : n % result->count;
		at->key = &result->keys[k];
		at->cell = &at->key->cells[at->row];
		if (is_shown(&result->rows[at->row], at->key, at->cell))
			return true;
	}
	return false;
}

const char *stat_key_name(char *out, size_t size, const struct stat_result *result,
			  const struct stat_key *key)
{
	*out = '\0';
	switch (result->by) {
	case BY_ALL:
		break;
	case BY_CPU:
		snprintf(out, size, "CPU%d", key->cpu);
		break;
	case BY_NODE:
		snprintf(out, size, "N%d", key->node);
		break;
	case BY_THREAD:
		snprintf(out, size, "%s-%d", key->comm, key->tid);
		break;
	case BY_CORE:
		snprintf(out, size, "S%d-D%d-C%d", key->socket, key->die, key->core);
		break;
	case BY_DIE:
		snprintf(out, size, "S%d-D%d", key->socket, key->die);
		break;
	case BY_SOCKET:
		snprintf(out, size, "S%d", key->socket);
		break;
	}
	return out;
}

uint32_t stat_cpus(const struct stat_at *at)
{
	return at->cell->places ? at->cell->places : at->key->cpus;
}

bool stat_shows_cpus(enum stat_by by)
{
	return by == BY_CORE || by == BY_DIE || by == BY_SOCKET || by == BY_NODE;
}
