/* SPDX-License-Identifier: MIT */
/* Formats of tracepoints: texts as kernel/trace/trace_events.c writes them, and the blob that has them. */
#include <errno.h>

#include "handmade.h"
#include "profile/format.h"
#include "tap.h"

/* events/sched/sched_process_exec of Linux 6.18, and fields of other forms that there are. */
static const char text[] = "name: made_up\n"
			   "ID: 365\n"
			   "format:\n"
			   "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
			   "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
			   "\n"
			   "\tfield:__data_loc char[] filename;\toffset:8;\tsize:4;\tsigned:0;\n"
			   "\tfield:pid_t pid;\toffset:12;\tsize:4;\tsigned:1;\n"
			   "\tfield:char comm[16];\toffset:16;\tsize:16;\tsigned:0;\n"
			   "\tfield:const void * ptr;\toffset:32;\tsize:8;\tsigned:0;\n"
			   "\tfield:unsigned long args[6];\toffset:40;\tsize:48;\tsigned:0;\n"
			   "\tfield:__rel_loc char[] tail;\toffset:88;\tsize:4;\tsigned:0;\n"
			   "\tfield:struct in6 addr;\toffset:92;\tsize:16;\tsigned:0;\n"
			   "\tfield:__u8 mac[6];\toffset:108;\tsize:6;\tsigned:0;\n"
			   "\n"
			   "print fmt: \"field: offset:1; size:1; signed:0; pid=%d\", REC->pid\n";

static const struct {
	const char *name;
	uint32_t offset, size;
	enum format_kind kind;
	bool is_signed, elsewhere, relative;
	uint32_t element;
} want[] = {
	{ "filename", 8, 4, FORMAT_TEXT, false, true, false, 1 },
	{ "pid", 12, 4, FORMAT_NUMBER, true, false, false, 0 },
	{ "comm", 16, 16, FORMAT_TEXT, false, false, false, 1 },
	{ "ptr", 32, 8, FORMAT_POINTER, false, false, false, 0 },
	{ "args", 40, 48, FORMAT_ARRAY, false, false, false, 8 },
	{ "tail", 88, 4, FORMAT_TEXT, false, true, true, 1 },
	{ "addr", 92, 16, FORMAT_BYTES, false, false, false, 0 },
	{ "mac", 108, 6, FORMAT_ARRAY, false, false, false, 1 },
};

static void fields_are_those_of_the_text(void)
{
	struct format f;

	require(format_parse(&f, text, sizeof(text) - 1, 8) == 0);
	check_u64(f.id, 365);
	require(check_u64(f.fields.count, sizeof(want) / sizeof(*want)));
	for (size_t i = 0; i < f.fields.count; i++) {
		const struct format_field *field = &f.fields.at[i];
		char name[32];
		snprintf(name, sizeof(name), "%.*s", (int)field->name_len, field->name);
		check_str(name, want[i].name);
		check_u64(field->offset, want[i].offset);
		check_u64(field->size, want[i].size);
		check_int(field->kind, want[i].kind);
		check_int(field->is_signed, want[i].is_signed);
		check_int(field->elsewhere, want[i].elsewhere);
		check_int(field->relative, want[i].relative);
		if (field->kind == FORMAT_ARRAY)
			check_u64(field->element, want[i].element);
	}
	format_done(&f);
}

static void a_long_has_the_size_of_the_machine(void)
{
	static const char narrow[] = "ID: 1\n\tfield:long a[2];\toffset:8;\tsize:8;\tsigned:1;\n";
	struct format f;

	require(format_parse(&f, narrow, sizeof(narrow) - 1, 4) == 0);
	require(check_u64(f.fields.count, 1));
	check_int(f.fields.at[0].kind, FORMAT_ARRAY);
	check_u64(f.fields.at[0].element, 4);
	format_done(&f);
}

/* Every beginning of a text is one, too; without a number it is none. */
static void texts_that_are_cut_do_not_hurt(void)
{
	for (size_t len = 0; len < sizeof(text); len++) {
		struct format f;
		char *copy = malloc(len + !len);
		memcpy(copy, text, len);
		int r = format_parse(&f, copy, len, 8);
		check(r == 0 || r == -EBADMSG);
		if (len < 18)
			check_int(r, -EBADMSG);
		if (r == 0)
			format_done(&f);
		free(copy);
	}
}

static void put_file(struct handmade *h, const char *content)
{
	hm_u64(h, strlen(content));
	hm_bytes(h, content, strlen(content));
}

/* As trace-cmd.dat.v6(5) has it. */
static struct handmade blob(bool swapped)
{
	struct handmade h = { .swapped = swapped };
	bool big = (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) != swapped;

	hm_bytes(&h, "\x17\x08\x44tracing", 10);
	hm_bytes(&h, "0.6", 4);
	hm_bytes(&h, big ? "\1\4" : "\0\4", 2);
	hm_u32(&h, 4096);
	hm_bytes(&h, "header_page", 12);
	put_file(&h, "\tfield: u64 timestamp;");
	hm_bytes(&h, "header_event", 13);
	put_file(&h, "# compressed");
	hm_u32(&h, 1); /* formats of ftrace */
	put_file(&h, "name: function\nID: 1\n");
	hm_u32(&h, 1); /* systems */
	hm_bytes(&h, "made", 5);
	hm_u32(&h, 2);
	put_file(&h, text);
	put_file(&h, "name: none\n");
	hm_u32(&h, 0); /* kallsyms */
	hm_u32(&h, 11);
	hm_bytes(&h, "0x1 : \"one\"", 11);
	hm_u64(&h, 0); /* cmdlines */
	return h;
}

static void check_blob(bool swapped)
{
	struct handmade h = blob(swapped);
	struct tracing_data d;

	require(check_int(tracing_data_parse(&d, h.at, h.len), 0));
	check_int(d.big_endian, (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) != swapped);
	check_int(d.long_size, 4);
	check_u64(d.page_size, 4096);
	require(check_u64(d.formats.count, 3));
	check_str(d.formats.at[0].system, "ftrace");
	check_u64(d.formats.at[0].id, 1);
	check_str(d.formats.at[1].system, "made");
	check_u64(d.formats.at[1].id, 365);
	check_u64(d.formats.at[1].len, sizeof(text) - 1);
	check_u64(d.formats.at[2].id, UINT64_MAX);
	check_u64(d.printk_len, 11);
	check_mem(d.printk, "0x1 : \"one\"", 11);
	tracing_data_done(&d);
	hm_done(&h);
}

static void a_blob_has_the_formats(void)
{
	check_blob(false);
}

static void a_blob_of_the_other_byte_order_too(void)
{
	check_blob(true);
}

static void blobs_that_are_cut_are_damaged(void)
{
	struct handmade h = blob(false);
	/* What stands behind the formats may be missing. */
	size_t formats_end = h.len - 8 - 11 - 4 - 4;

	for (size_t len = 0; len < h.len; len++) {
		struct tracing_data d;
		uint8_t *copy = malloc(len + !len);
		memcpy(copy, h.at, len);
		check_int(tracing_data_parse(&d, copy, len), len < formats_end ? -EBADMSG : 0);
		tracing_data_done(&d);
		free(copy);
	}
	hm_done(&h);
}

int main(void)
{
	tap_run(fields_are_those_of_the_text);
	tap_run(a_long_has_the_size_of_the_machine);
	tap_run(texts_that_are_cut_do_not_hurt);
	tap_run(a_blob_has_the_formats);
	tap_run(a_blob_of_the_other_byte_order_too);
	tap_run(blobs_that_are_cut_are_damaged);
	return tap_end();
}
