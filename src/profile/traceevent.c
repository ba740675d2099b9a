/* SPDX-License-Identifier: MIT */
/*
 * libtraceevent by dlopen(3), so that whoever records no tracepoints needs not have it. Its ABI is
 * declared here, from its manual pages and <traceevent/event-parse.h>; it has not changed since 1.0.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/dl.h"
#include "base/hash.h"
#include "profile/traceevent.h"

#define LIBRARY "libtraceevent.so.1"

/* TEP_PRINT_INFO, enum tep_endian and TEP_LOG_NONE */
#define PRINT_INFO         "INFO"
#define LITTLE_ENDIAN_FILE 0
#define BIG_ENDIAN_FILE    1
#define LOG_NONE           0

struct tep_handle;
struct tep_event;

/* struct trace_seq */
struct tep_seq {
	char *buffer;
	unsigned int buffer_size, len, readpos;
	int state;
};

/* struct tep_record */
struct tep_record {
	unsigned long long ts, offset;
	long long missed_events;
	int record_size, size;
	void *data;
	int cpu, ref_count, locked;
	void *priv;
	/* builds for debugging have more behind it */
	void *reserved[4];
};

struct traceevent {
	void *library;
	struct tep_handle *tep;
	struct tep_seq seq;
	struct map64 parsed; /* by number: 1 known, 2 refused */
	traceevent_resolver *resolver;
	void *arg;
	bool has_seq;

	struct tep_handle *(*alloc)(void);
	void (*free)(struct tep_handle *tep);
	void (*set_loglevel)(int level);
	void (*set_page_size)(struct tep_handle *tep, int size);
	void (*set_long_size)(struct tep_handle *tep, int size);
	void (*set_file_bigendian)(struct tep_handle *tep, int endian);
	void (*set_local_bigendian)(struct tep_handle *tep, int endian);
	int (*parse_header_page)(struct tep_handle *tep, char *text, unsigned long size,
				 int long_size);
	int (*parse_event)(struct tep_handle *tep, const char *text, unsigned long size,
			   const char *system);
	struct tep_event *(*find_event)(struct tep_handle *tep, int id);
	int (*register_print_string)(struct tep_handle *tep, const char *text,
				     unsigned long long address);
	int (*set_function_resolver)(struct tep_handle *tep,
				     char *(*function)(void *arg, unsigned long long *address,
						       char **module),
				     void *arg);
	void (*print_event)(struct tep_handle *tep, struct tep_seq *seq, struct tep_record *record,
			    const char *fmt, ...);
	void (*seq_init)(struct tep_seq *seq);
	void (*seq_reset)(struct tep_seq *seq);
	void (*seq_destroy)(struct tep_seq *seq);
};

static bool find_symbols(struct traceevent *t)
{
	const struct dl_symbol symbols[] = {
		{ "tep_alloc", &t->alloc },
		{ "tep_free", &t->free },
		{ "tep_set_loglevel", &t->set_loglevel },
		{ "tep_set_page_size", &t->set_page_size },
		{ "tep_set_long_size", &t->set_long_size },
		{ "tep_set_file_bigendian", &t->set_file_bigendian },
		{ "tep_set_local_bigendian", &t->set_local_bigendian },
		{ "tep_parse_header_page", &t->parse_header_page },
		{ "tep_parse_event", &t->parse_event },
		{ "tep_find_event", &t->find_event },
		{ "tep_register_print_string", &t->register_print_string },
		{ "tep_set_function_resolver", &t->set_function_resolver },
		{ "tep_print_event", &t->print_event },
		{ "trace_seq_init", &t->seq_init },
		{ "trace_seq_reset", &t->seq_reset },
		{ "trace_seq_destroy", &t->seq_destroy },
	};

	return dl_find(t->library, symbols, sizeof(symbols) / sizeof(symbols[0]));
}

/* What the library asks about addresses that a format prints as functions. */
static char *resolve(void *arg, unsigned long long *address, char **module)
{
	const struct traceevent *t = arg;
	const char *in = NULL;
	uint64_t start = *address;
	const char *name = t->resolver(t->arg, *address, &start, &in);

	*address = start;
	*module = (char *)(uintptr_t)in;
	return (char *)(uintptr_t)name;
}

/* printk_formats: "0xffffffff82345678 : \"text\"", for formats that name texts by their addresses. */
static void register_texts(struct traceevent *t, const char *text, size_t len)
{
	char *copy = len ? malloc(len + 1) : NULL, *rest = NULL;

	if (!copy)
		return;
	memcpy(copy, text, len);
	copy[len] = '\0';
	for (char *line = strtok_r(copy, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char *end, *colon = strchr(line, ':');
		unsigned long long address = strtoull(line, &end, 16);
		if (colon && end != line && colon[1] == ' ')
			t->register_print_string(t->tep, colon + 2, address);
	}
	free(copy);
}

static void describe(struct traceevent *t, const struct tracing_data *data)
{
	const bool big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	char *page = malloc(data->header_page_len + 1);

	t->set_loglevel(LOG_NONE);
	t->set_file_bigendian(t->tep, data->big_endian ? BIG_ENDIAN_FILE : LITTLE_ENDIAN_FILE);
	t->set_local_bigendian(t->tep, big ? BIG_ENDIAN_FILE : LITTLE_ENDIAN_FILE);
	t->set_page_size(t->tep, (int)data->page_size);
	t->set_long_size(t->tep, data->long_size);
	if (page && data->header_page_len) {
		memcpy(page, data->header_page, data->header_page_len);
		page[data->header_page_len] = '\0';
		t->parse_header_page(t->tep, page, data->header_page_len, data->long_size);
	}
	free(page);
	if (t->resolver)
		t->set_function_resolver(t->tep, resolve, t);
	register_texts(t, data->printk, data->printk_len);
}

int traceevent_new(struct traceevent **out, const struct tracing_data *data, const char *library,
		   traceevent_resolver *resolver, void *arg)
{
	struct traceevent *t = calloc(1, sizeof(*t));
	int r = -ENOMEM;

	if (!t)
		return r;
	t->resolver = resolver;
	t->arg = arg;
	t->library = dlopen(library ? library : LIBRARY, RTLD_LAZY | RTLD_LOCAL);
	if (!t->library || !find_symbols(t)) {
		r = -ENOENT;
		goto fail;
	}
	t->tep = t->alloc();
	if (!t->tep)
		goto fail;
	t->seq_init(&t->seq);
	t->has_seq = true;
	describe(t, data);
	*out = t;
	return 0;
fail:
	traceevent_free(t);
	return r;
}

void traceevent_free(struct traceevent *t)
{
	if (!t)
		return;
	if (t->has_seq)
		t->seq_destroy(&t->seq);
	if (t->tep)
		t->free(t->tep);
	if (t->library)
		dlclose(t->library);
	map64_done(&t->parsed);
	free(t);
}

/* Whether the library knows the format; it is given to it when it is first asked for. */
static bool knows(struct traceevent *t, const struct format_text *format)
{
	uint32_t *state = map64_at(&t->parsed, format->id);

	if (!state)
		return false;
	if (!*state) {
		int r = t->parse_event(t->tep, format->text, format->len, format->system);
		*state = r == 0 && t->find_event(t->tep, (int)format->id) ? 1 : 2;
	}
	return *state == 1;
}

bool traceevent_put(struct traceevent *t, struct out *o, const struct format_text *format,
		    const void *raw, size_t len, int32_t cpu, uint64_t time)
{
	struct tep_record record = {
		.ts = time,
		.size = (int)len,
		.data = (void *)(uintptr_t)raw,
		.cpu = cpu,
	};

	if (!knows(t, format))
		return false;
	t->seq_reset(&t->seq);
	t->print_event(t->tep, &t->seq, &record, "%s", PRINT_INFO);
	if (t->seq.state != 0)
		return false;
	out_bytes(o, t->seq.buffer, t->seq.len);
	return true;
}
