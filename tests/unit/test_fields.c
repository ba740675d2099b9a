/* SPDX-License-Identifier: MIT */
/* perf script's -F: what perf-script(1) says of it. */
#include <errno.h>

#include "handmade.h"
#include "profile/fields.h"
#include "tap.h"

static struct fields f;
static struct tally_error err;

static int parse(const char *text)
{
	return fields_parse(&f, text, &err);
}

/* A recording of one event, of which only the description counts. */
static struct tally_reader *recording(uint32_t type, uint64_t sample_type)
{
	struct handmade h = { 0 };
	struct tally_reader *reader = NULL;
	struct hm_attr attr = { .type = type, .size = 96, .sample_type = sample_type };

	hm_header(&h, HM_HEADER, 96 + 16);
	hm_section(&h, HM_ATTRS_AT, h.len, 96 + 16);
	hm_attr(&h, &attr);
	hm_room(&h, 16);
	hm_section(&h, HM_DATA_AT, h.len, 32);
	hm_comm(&h, 7, "work");
	int fd = hm_file(&h);
	check_int(tally_reader_open_fd(&reader, fd, "made", NULL, &err), 0);
	hm_done(&h);
	return reader;
}

static int settle(uint32_t type, uint64_t sample_type, bool chains)
{
	struct tally_reader *reader = recording(type, sample_type);
	int r = fields_settle(&f, reader, chains, &err);

	tally_reader_close(reader);
	return r;
}

static void defaults_are_those_of_the_manual(void)
{
	fields_init(&f);
	check_u64(f.shown[FIELDS_HW], FIELD_COMM | FIELD_TID | FIELD_TIME | FIELD_CPU |
					      FIELD_EVENT | FIELD_IP | FIELD_SYM | FIELD_SYMOFF |
					      FIELD_DSO | FIELD_PERIOD);
	check_u64(f.shown[FIELDS_TRACE],
		  FIELD_COMM | FIELD_TID | FIELD_TIME | FIELD_CPU | FIELD_EVENT | FIELD_TRACE);
}

static void a_list_replaces(void)
{
	fields_init(&f);
	check_int(parse("comm,ip"), 0);
	check_u64(f.shown[FIELDS_HW], FIELD_COMM | FIELD_IP);
	check_u64(f.shown[FIELDS_TRACE], FIELD_COMM | FIELD_IP);
	check_int(parse(""), 0);
	check_u64(f.shown[FIELDS_SW], 0);
}

static void a_kind_in_front_means_it_alone(void)
{
	fields_init(&f);
	uint32_t before = f.shown[FIELDS_HW];
	check_int(parse("trace:time,trace"), 0);
	check_u64(f.shown[FIELDS_TRACE], FIELD_TIME | FIELD_TRACE);
	check_u64(f.shown[FIELDS_HW], before);
	check_int(parse("hw:trace"), -EINVAL);
	check_has(err.text, "hardware events");
	check_int(parse("nosuch:time"), -EINVAL);
	check_has(err.text, "nosuch");
}

static void signs_add_and_take_away(void)
{
	fields_init(&f);
	uint32_t before = f.shown[FIELDS_SW];
	check_int(parse("+addr,-period"), 0);
	check_u64(f.shown[FIELDS_SW], (before | FIELD_ADDR) & ~(uint32_t)FIELD_PERIOD);
	check_int(parse("+addr,period"), -EINVAL);
	check_has(err.text, "mixes");
	check_int(parse("addr,+period"), -EINVAL);
}

static void what_kinds_cannot_have_is_left_out(void)
{
	fields_init(&f);
	check_int(parse("comm,trace"), 0);
	check_u64(f.shown[FIELDS_HW], FIELD_COMM);
	check_u64(f.shown[FIELDS_TRACE], FIELD_COMM | FIELD_TRACE);
}

static void unknown_and_lacking_fields_are_told_apart(void)
{
	fields_init(&f);
	check_int(parse("comm,colour"), -EINVAL);
	check_has(err.text, "'colour' is no field");
	check_int(parse("srccode"), -EOPNOTSUPP);
	check_has(err.text, "tally annotate");
}

static void a_line_is_of_an_address(void)
{
	fields_init(&f);
	check_int(parse("comm,ip,srcline"), 0);
	check_u64(f.shown[FIELDS_SW] & FIELD_SRCLINE, FIELD_SRCLINE);
}

static void defaults_without_data_go(void)
{
	fields_init(&f);
	check_int(settle(TALLY_TYPE_HARDWARE, TALLY_SAMPLE_TID | TALLY_SAMPLE_IP, false), 0);
	check_u64(f.shown[FIELDS_HW], FIELD_COMM | FIELD_TID | FIELD_EVENT | FIELD_IP | FIELD_SYM |
					      FIELD_SYMOFF | FIELD_DSO | FIELD_PERIOD);
	/* Without any address there is nothing to name. */
	fields_init(&f);
	check_int(settle(TALLY_TYPE_HARDWARE, TALLY_SAMPLE_TID, false), 0);
	check_u64(f.shown[FIELDS_HW], FIELD_COMM | FIELD_TID | FIELD_EVENT | FIELD_PERIOD);
}

static void what_was_asked_for_must_be_there(void)
{
	fields_init(&f);
	check_int(parse("comm,cpu"), 0);
	check_int(settle(TALLY_TYPE_HARDWARE, TALLY_SAMPLE_TID | TALLY_SAMPLE_IP, false), -EINVAL);
	check_has(err.text, "have no cpu");
	fields_init(&f);
	check_int(parse("comm,ip,symoff"), 0);
	check_int(settle(TALLY_TYPE_HARDWARE, TALLY_SAMPLE_TID | TALLY_SAMPLE_IP, false), -EINVAL);
	check_has(err.text, "ask for sym too");
}

static void tracepoints_get_addresses_with_their_chains(void)
{
	const uint64_t type = TALLY_SAMPLE_TID | TALLY_SAMPLE_IP | TALLY_SAMPLE_RAW;

	fields_init(&f);
	check_int(settle(TALLY_TYPE_TRACEPOINT, type | TALLY_SAMPLE_CALLCHAIN, true), 0);
	check(f.shown[FIELDS_TRACE] & FIELD_IP);
	fields_init(&f);
	check_int(settle(TALLY_TYPE_TRACEPOINT, type, false), 0);
	check(!(f.shown[FIELDS_TRACE] & FIELD_IP));
}

static void types_have_kinds(void)
{
	check_int(fields_kind(&(struct tally_attr){ .type = TALLY_TYPE_TRACEPOINT }), FIELDS_TRACE);
	check_int(fields_kind(&(struct tally_attr){ .type = TALLY_TYPE_RAW }), FIELDS_RAW);
	check_int(fields_kind(&(struct tally_attr){ .type = 8 }), FIELDS_OTHER);
	check_int(fields_kind(&(struct tally_attr){ .type = UINT32_MAX }), FIELDS_OTHER);
}

int main(void)
{
	tap_run(defaults_are_those_of_the_manual);
	tap_run(a_list_replaces);
	tap_run(a_kind_in_front_means_it_alone);
	tap_run(signs_add_and_take_away);
	tap_run(what_kinds_cannot_have_is_left_out);
	tap_run(unknown_and_lacking_fields_are_told_apart);
	tap_run(a_line_is_of_an_address);
	tap_run(defaults_without_data_go);
	tap_run(what_was_asked_for_must_be_there);
	tap_run(tracepoints_get_addresses_with_their_chains);
	tap_run(types_have_kinds);
	return tap_end();
}
