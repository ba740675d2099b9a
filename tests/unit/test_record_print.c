/* SPDX-License-Identifier: MIT */
/* Records as text: every field under its name, nothing that steers a terminal, JSON that parses. */
#include "records-by-hand.h"

static char line[4096];

static const char *as(uint32_t flags, const struct tally_layout *layout,
		      const struct tally_record *rec)
{
	const struct tally_print_opts opts = { sizeof(opts), flags, "x86_64" };
	size_t len = tally_record_print(layout, rec, &opts, line, sizeof(line));

	return len < sizeof(line) && strlen(line) == len ? line : "(a wrong length)";
}

static void a_sample_has_its_fields_by_name(void)
{
	struct tally_layout layout = { .sample_type = TALLY_SAMPLE_IP | TALLY_SAMPLE_TID |
						      TALLY_SAMPLE_CALLCHAIN | TALLY_SAMPLE_RAW |
						      TALLY_SAMPLE_REGS_USER,
				       .regs_user = 1ull << 8 };
	struct put p = put_new(TALLY_RECORD_SAMPLE, 2, false);
	struct tally_record rec;

	put64(&p, 0x401234);
	put32(&p, 7);
	put32(&p, 8);
	put64(&p, 2);
	put64(&p, TALLY_CONTEXT_USER);
	put64(&p, 0x401234);
	put32(&p, 4);
	put32(&p, 0x0a0b0c0d);
	put64(&p, 2);
	put64(&p, 0x401234);
	put_end(&p);
	require(decode(&layout, p.at, p.len, &rec) > 0);
	check_str(
		as(0, &layout, &rec),
		"SAMPLE misc=0x2 record_size=72 pid=7 tid=8 ip=0x401234 chain=[\"user\" 0x401234] "
		"raw=0d0c0b0a regs_user={abi=2 IP=0x401234}");
	check_str(as(TALLY_PRINT_JSON, &layout, &rec),
		  "{\"type\":\"SAMPLE\",\"misc\":\"0x2\",\"record_size\":72,\"pid\":7,\"tid\":8,"
		  "\"ip\":\"0x401234\",\"chain\":[\"user\",\"0x401234\"],\"raw\":\"0d0c0b0a\","
		  "\"regs_user\":{\"abi\":2,\"IP\":\"0x401234\"}}");
}

static void names_do_not_steer_a_terminal(void)
{
	struct tally_layout layout = { 0 };
	struct put p = put_new(TALLY_RECORD_COMM, TALLY_MISC_COMM_EXEC, false);
	struct tally_record rec;

	put32(&p, 7);
	put32(&p, 8);
	put_text(&p, "a\033[2J\"\\\n");
	put_end(&p);
	require(decode(&layout, p.at, p.len, &rec) > 0);
	check_str(as(0, &layout, &rec), "COMM misc=0x2000 record_size=32 pid=7 tid=8 exec=1 "
					"comm=\"a\\u001b[2J\\\"\\\\\\u000a\"");
}

static void types_without_a_name_have_their_number(void)
{
	struct tally_layout layout = { .sample_type = TALLY_SAMPLE_TIME, .sample_id_all = 1 };
	struct put p = put_new(99999, 0, false);
	struct tally_record rec;

	put64(&p, 5);
	put_end(&p);
	require(decode(&layout, p.at, p.len, &rec) > 0);
	check_str(as(0, &layout, &rec), "99999 misc=0x0 record_size=16 leftover=8");
	check_str(as(TALLY_PRINT_JSON, &layout, &rec),
		  "{\"type\":\"99999\",\"misc\":\"0x0\",\"record_size\":16,\"leftover\":8}");
}

/* As snprintf(3): any room, always with its NUL, and the length that it would have. */
static void any_room_is_enough(void)
{
	struct tally_layout layout = { 0 };
	struct put p = put_new(TALLY_RECORD_LOST, 0, false);
	struct tally_record rec;
	const char *whole = "LOST misc=0x0 record_size=24 lost_id=3 lost=4";

	put64(&p, 3);
	put64(&p, 4);
	put_end(&p);
	require(decode(&layout, p.at, p.len, &rec) > 0);
	check_int(tally_record_print(&layout, &rec, NULL, NULL, 0), strlen(whole));
	for (size_t room = 1; room < strlen(whole) + 3; room++) {
		char *cut = malloc(room);
		require(cut != NULL);
		check_int(tally_record_print(&layout, &rec, NULL, cut, room), strlen(whole));
		check(strlen(cut) < room && !strncmp(cut, whole, strlen(cut)));
		check(room <= strlen(whole) || !strcmp(cut, whole));
		free(cut);
	}
}

static void contexts_have_names(void)
{
	check_str(tally_context_name((uint64_t)-32), "hypervisor");
	check_str(tally_context_name((uint64_t)-128), "kernel");
	check_str(tally_context_name((uint64_t)-512), "user");
	check_str(tally_context_name((uint64_t)-640), "user-deferred");
	check_str(tally_context_name((uint64_t)-2176), "guest-kernel");
	check(!tally_context_name(0x401000));
	check(!tally_context_name((uint64_t)-1));
}

int main(void)
{
	tap_run(a_sample_has_its_fields_by_name);
	tap_run(names_do_not_steer_a_terminal);
	tap_run(types_without_a_name_have_their_number);
	tap_run(any_room_is_enough);
	tap_run(contexts_have_names);
	return tap_end();
}
