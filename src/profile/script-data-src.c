/* SPDX-License-Identifier: MIT */
/* sample.data_src in the words of perf 6.1: which access, and where its data came from. */
#include <string.h>

#include "base/bytes.h"
#include "profile/script.h"

#define HIT  2u /* PERF_MEM_LVL_HIT, PERF_MEM_TLB_HIT */
#define MISS 4u

struct words {
	const char *const *at;
	size_t count;
};
#define WORDS(list) ((struct words){ list, ARRAY_SIZE(list) })

static const char *const ops[] = { "N/A", "LOAD", "STORE", "PFETCH", "EXEC" };
static const char *const levels[] = { "N/A",
				      "HIT",
				      "MISS",
				      "L1",
				      "LFB/MAB",
				      "L2",
				      "L3",
				      "Local RAM",
				      "Remote RAM (1 hop)",
				      "Remote RAM (2 hops)",
				      "Remote Cache (1 hop)",
				      "Remote Cache (2 hops)",
				      "I/O",
				      "Uncached" };
static const char *const numbers[16] = {
	[8] = "UNC",      [9] = "CXL",  [10] = "I/O",  [11] = "Any cache",
	[12] = "LFB/MAB", [13] = "RAM", [14] = "PMEM", [15] = "N/A",
};
static const char *const hops[] = { "N/A", "core, same node", "node, same socket",
				    "socket, same board", "board" };
static const char *const snoops[] = { "N/A", "None", "Hit", "Miss", "HitM" };
static const char *const snoops_x[] = { "Fwd", "Peer" };
static const char *const tlbs[] = { "N/A", "HIT", "MISS", "L1", "L2", "Walker", "Fault" };

/* The words of the bits that are set, with "or" in between; how many there were. */
static int put_bits(struct out *o, uint32_t bits, struct words words, int printed)
{
	for (size_t i = 0; i < words.count; i++) {
		if (!(bits >> i & 1))
			continue;
		if (printed++)
			out_text(o, " or ");
		out_text(o, words.at[i]);
	}
	return printed;
}

static void put_hit(struct out *o, uint32_t bits)
{
	if (bits & HIT)
		out_text(o, " hit");
	if (bits & MISS)
		out_text(o, " miss");
}

static void put_level(struct out *o, const struct tally_data_src *d)
{
	size_t start = o->len;
	int printed = 0;

	if (d->remote)
		out_text(o, "Remote ");
	if (d->hops)
		out_printf(o, "%s ", d->hops < ARRAY_SIZE(hops) ? hops[d->hops] : "N/A");
	else
		printed = put_bits(o, d->level & ~(HIT | MISS), WORDS(levels), 0);
	if (d->level_no) {
		if (printed)
			out_text(o, " or ");
		if (numbers[d->level_no & 15])
			out_text(o, numbers[d->level_no & 15]);
		else
			out_printf(o, "L%u", d->level_no);
	}
	if (o->len == start)
		out_text(o, "N/A");
	put_hit(o, d->level);
}

static void put_words(struct out *o, uint64_t data_src)
{
	const struct tally_data_src d = tally_data_src_decode(data_src);

	out_text(o, "|OP ");
	for (size_t i = 0; i <= ARRAY_SIZE(ops); i++) {
		if (i == ARRAY_SIZE(ops) || d.op >> i & 1) {
			out_text(o, i < ARRAY_SIZE(ops) ? ops[i] : "No");
			break;
		}
	}
	out_text(o, "|LVL ");
	put_level(o, &d);
	out_text(o, "|SNP ");
	if (!put_bits(o, d.snoopx, WORDS(snoops_x), put_bits(o, d.snoop, WORDS(snoops), 0)))
		out_text(o, "N/A");
	out_text(o, "|TLB ");
	if (!put_bits(o, d.dtlb & ~(HIT | MISS), WORDS(tlbs), 0))
		out_text(o, "N/A");
	put_hit(o, d.dtlb);
	out_text(o, "|LCK ");
	out_text(o, d.lock & 1 ? "N/A" : d.lock & 2 ? "Yes" : "No");
	out_text(o, "|BLK ");
	if (d.block & 1 || !d.block)
		out_text(o, " N/A");
	if (d.block & 2)
		out_text(o, " Data");
	if (d.block & 4)
		out_text(o, " Addr");
}

void script_data_src(struct script *s, uint64_t data_src)
{
	struct out words = { 0 };

	out_hex(&s->out, data_src, 16, ' ');
	out_char(&s->out, ' ');
	put_words(&words, data_src);
	/* perf lines it up with the widest before it. */
	if (words.len > s->memory_width)
		s->memory_width = words.len;
	out_bytes(&s->out, words.at, words.len);
	out_right(&s->out, "", 0, s->memory_width - words.len);
	s->out.failed |= words.failed;
	out_done(&words);
}
