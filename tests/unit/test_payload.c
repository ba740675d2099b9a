/* SPDX-License-Identifier: MIT */
/* Payloads of tracepoints, without libtraceevent: bytes by hand, values by the format. */
#include <errno.h>
#include <stdlib.h>

#include "handmade.h"
#include "profile/payload.h"
#include "tap.h"

static const char text[] = "name: made_up\n"
			   "ID: 9\n"
			   "format:\n"
			   "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
			   "\tfield:int nice;\toffset:4;\tsize:4;\tsigned:1;\n"
			   "\tfield:u8 flag;\toffset:8;\tsize:1;\tsigned:0;\n"
			   "\tfield:short low;\toffset:10;\tsize:2;\tsigned:1;\n"
			   "\tfield:void * at;\toffset:12;\tsize:8;\tsigned:0;\n"
			   "\tfield:char comm[8];\toffset:20;\tsize:8;\tsigned:0;\n"
			   "\tfield:__data_loc char[] file;\toffset:28;\tsize:4;\tsigned:0;\n"
			   "\tfield:__rel_loc char[] near;\toffset:32;\tsize:4;\tsigned:0;\n"
			   "\tfield:u16 pair[2];\toffset:36;\tsize:4;\tsigned:0;\n"
			   "\n"
			   "print fmt: \"nice=%d\", REC->nice\n";

#define WANT "nice=-5 flag=200 low=-2 at=0xdeadbeef00 comm=a\"b file=/etc/x near=yes pair={1,65535}"
#define WANT_JSON                                                                           \
	"{\"nice\":-5,\"flag\":200,\"low\":-2,\"at\":\"0xdeadbeef00\",\"comm\":\"a\\\"b\"," \
	"\"file\":\"/etc/x\",\"near\":\"yes\",\"pair\":[1,65535]}"

static struct handmade blob(bool swapped)
{
	struct handmade h = { .swapped = swapped };
	bool big = (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) != swapped;

	hm_bytes(&h, "\x17\x08\x44tracing", 10);
	hm_bytes(&h, "0.6", 4);
	hm_bytes(&h, big ? "\1\10" : "\0\10", 2);
	hm_u32(&h, 4096);
	hm_bytes(&h, "header_page", 12);
	hm_u64(&h, 0);
	hm_bytes(&h, "header_event", 13);
	hm_u64(&h, 0);
	hm_u32(&h, 0);
	hm_u32(&h, 1);
	hm_bytes(&h, "made", 5);
	hm_u32(&h, 1);
	hm_u64(&h, sizeof(text) - 1);
	hm_bytes(&h, text, sizeof(text) - 1);
	return h;
}

static struct handmade payload(bool swapped)
{
	struct handmade h = { .swapped = swapped };

	hm_u16(&h, 9);
	hm_u16(&h, 0);
	hm_u32(&h, (uint32_t)-5);
	hm_bytes(&h, "\xc8", 2);
	hm_u16(&h, (uint16_t)-2);
	hm_u64(&h, 0xdeadbeef00);
	hm_bytes(&h, "a\"b\0\0\0\0", 8);
	hm_u32(&h, 7 << 16 | 40); /* length, and offset from the start */
	hm_u32(&h, 4 << 16 | 11); /* offset from behind itself */
	hm_u16(&h, 1);
	hm_u16(&h, 65535);
	hm_bytes(&h, "/etc/x", 7);
	hm_bytes(&h, "yes", 4);
	return h;
}

static char *printed(struct payloads *p, const void *raw, size_t len, bool json)
{
	struct out o = { 0 };
	struct tally_record rec = { .sample = { .raw = raw, .raw_len = len } };

	check(json ? payload_json(p, &o, 9, &rec) : payload_text(p, &o, 9, &rec));
	out_char(&o, '\0');
	check(!o.failed);
	return o.at;
}

static void check_printed(bool swapped)
{
	struct handmade b = blob(swapped), raw = payload(swapped);
	struct payloads p = { 0 };

	check_int(payloads_init(&p, b.at, b.len, false, NULL, NULL), 0);
	char *line = printed(&p, raw.at, raw.len, false);
	check_str(line, WANT);
	free(line);
	line = printed(&p, raw.at, raw.len, true);
	check_str(line, WANT_JSON);
	free(line);
	payloads_done(&p);
	hm_done(&b);
	hm_done(&raw);
}

static void values_are_those_of_the_bytes(void)
{
	check_printed(false);
}

static void in_the_other_byte_order_too(void)
{
	check_printed(true);
}

/* Places that lead out of the payload, and fields beyond its end, are left out. */
static void nothing_outside_the_payload_is_read(void)
{
	struct handmade b = blob(false), raw = payload(false);
	struct payloads p = { 0 };

	check_int(payloads_init(&p, b.at, b.len, false, NULL, NULL), 0);
	for (size_t len = 0; len <= raw.len; len++) {
		uint8_t *copy = malloc(len + !len);
		memcpy(copy, raw.at, len);
		free(printed(&p, copy, len, false));
		free(copy);
	}
	char *line = printed(&p, raw.at, 10, false);
	check_str(line, "nice=-5 flag=200");
	free(line);
	hm_set(&raw, 28, 0xffff0028, 4);
	hm_set(&raw, 32, 0x0004ffff, 4);
	line = printed(&p, raw.at, raw.len, false);
	check_str(line, "nice=-5 flag=200 low=-2 at=0xdeadbeef00 comm=a\"b pair={1,65535}");
	free(line);
	payloads_done(&p);
	hm_done(&b);
	hm_done(&raw);
}

static void an_unknown_tracepoint_is_said_to_be(void)
{
	struct handmade b = blob(false);
	struct payloads p = { 0 };
	struct out o = { 0 };
	struct tally_record rec = { .sample = { .raw = b.at, .raw_len = 8 } };

	check_int(payloads_init(&p, b.at, b.len, false, NULL, NULL), 0);
	check(!payload_text(&p, &o, 10, &rec));
	check(!payload_json(&p, &o, UINT64_MAX, &rec));
	check_u64(o.len, 0);
	out_done(&o);
	payloads_done(&p);
	hm_done(&b);
}

static void a_library_that_is_not_there_is_done_without(void)
{
	struct handmade b = blob(false);
	struct tracing_data d;
	struct traceevent *t = NULL;

	check_int(tracing_data_parse(&d, b.at, b.len), 0);
	check_int(traceevent_new(&t, &d, "libtraceevent-that-is-not-there.so", NULL, NULL),
		  -ENOENT);
	check(!t);
	/* A library, but another one. */
	check_int(traceevent_new(&t, &d, "libc.so.6", NULL, NULL), -ENOENT);
	check(!t);
	tracing_data_done(&d);
	hm_done(&b);
}

int main(void)
{
	tap_run(values_are_those_of_the_bytes);
	tap_run(in_the_other_byte_order_too);
	tap_run(nothing_outside_the_payload_is_read);
	tap_run(an_unknown_tracepoint_is_said_to_be);
	tap_run(a_library_that_is_not_there_is_done_without);
	return tap_end();
}
