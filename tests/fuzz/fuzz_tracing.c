/* SPDX-License-Identifier: MIT */
/* Formats of tracepoints in a recording, and payloads that are printed by them. */
#include <errno.h>
#include <string.h>

#include "fuzz.h"
#include "profile/payload.h"

#define MAX_PAYLOADS 8

/* The payload of a format is a part of the input, of just that size: a sanitizer sees what reads
 * behind it. */
static void print_payload(struct payloads *p, uint64_t id, const uint8_t *data, size_t size)
{
	struct out o = { 0 };
	uint8_t *raw = malloc(size + !size);
	struct tally_record rec = { .type = TALLY_RECORD_SAMPLE,
				    .sample = { .raw = raw, .raw_len = size } };

	must(raw);
	memcpy(raw, data, size);
	bool text = payload_text(p, &o, id, &rec), json = payload_json(p, &o, id, &rec);
	must(text == json && !o.failed);
	/* Names are made harmless on their way out. */
	for (size_t i = 0; i < o.len; i++)
		must((unsigned char)o.at[i] >= 0x20 && o.at[i] != 0x7f);
	out_done(&o);
	free(raw);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct payloads p = { 0 };
	uint8_t *blob = malloc(size + !size);

	must(blob);
	memcpy(blob, data, size);
	int r = payloads_init(&p, blob, size, false, NULL, NULL);
	must(r == 0 || r == -EBADMSG);
	for (size_t i = 0; i < p.data.formats.count; i++) {
		const struct format_text *f = &p.data.formats.at[i];
		must((const uint8_t *)f->text >= blob && f->len <= size &&
		     (const uint8_t *)f->text + f->len <= blob + size);
		if (i < MAX_PAYLOADS)
			print_payload(&p, f->id, data + size / 2, size - size / 2);
	}
	payloads_done(&p);
	free(blob);
	return 0;
}
