/* SPDX-License-Identifier: MIT */
/*
 * Filters. The kernel answers EINVAL to all that is wrong with one, and writes no line into
 * tracefs' error_log when it came by ioctl(2), so the tracepoint's own list of fields is what an
 * error can go by.
 */
#include <ctype.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/sys.h"
#include "event/filter.h"
#include "event/nearest.h"
#include "event/tracepoint.h"

/* What every tracepoint can be asked for beside its fields; trace_events_filter.c. */
static const char *const everywhere[] = {
	"cpu", "CPU", "comm", "COMM", "stacktrace", "STACKTRACE"
};

int filter_prepare(const struct tally_event *event, struct tally_attr *attr,
		   struct tally_error *err)
{
	if (!event->filter)
		return 0;
	if (attr->type != TALLY_TYPE_TRACEPOINT)
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
				 "%s takes no filter: the kernel has them for tracepoints alone",
				 event->name);
	if (attr->flags & TALLY_ATTR_DISABLED)
		return 0;
	/* Nothing is to be counted that the filter would not let by. */
	attr->flags |= TALLY_ATTR_DISABLED;
	return 1;
}

/* The tracepoint that has this number. */
struct wanted {
	uint64_t id;
	char name[256];
};

static int compare_id(const char *name, uint64_t id, void *arg)
{
	struct wanted *w = arg;

	if (id != w->id)
		return 0;
	snprintf(w->name, sizeof(w->name), "%s", name);
	return 1;
}

/* A line of a format file, as "\tfield:char prev_comm[16];\toffset:8; ...": the name in it. */
static bool field_name(const char *line, size_t len, char *out, size_t size)
{
	static const char mark[] = "field:";
	const char *from = memmem(line, len, mark, strlen(mark));
	const char *end = from ? memchr(from, ';', len - (size_t)(from - line)) : NULL;

	if (!end)
		return false;
	while (end > from && end[-1] == ']')
		while (end > from && *--end != '[')
			;
	const char *start = end;
	while (start > from && (isalnum((unsigned char)start[-1]) || start[-1] == '_'))
		start--;
	if (start == end || (size_t)(end - start) >= size)
		return false;
	memcpy(out, start, (size_t)(end - start));
	out[end - start] = '\0';
	return true;
}

static void each_field(const char *format, void (*fn)(const char *name, void *arg), void *arg)
{
	char name[NEAREST_MAX + 1];

	for (const char *line = format; *line;) {
		size_t len = strcspn(line, "\n");
		if (field_name(line, len, name, sizeof(name)))
			fn(name, arg);
		line += len + (line[len] == '\n');
	}
}

static void offer_field(const char *name, void *arg)
{
	nearest_offer(arg, name);
}

/* Fills in the field that is nearest to a name. */
static void find_nearest(struct nearest *near, const char *format, const char *name, size_t len)
{
	nearest_init(near, name, len);
	each_field(format, offer_field, near);
	for (size_t i = 0; i < ARRAY_SIZE(everywhere); i++)
		nearest_offer(near, everywhere[i]);
}

struct wanted_field {
	const char *name;
	size_t len;
	bool found;
};

static void compare_field(const char *name, void *arg)
{
	struct wanted_field *w = arg;

	w->found |= strlen(name) == w->len && !memcmp(name, w->name, w->len);
}

static bool is_field(const char *format, const char *name, size_t len)
{
	struct wanted_field w = { name, len, false };

	each_field(format, compare_field, &w);
	for (size_t i = 0; i < ARRAY_SIZE(everywhere); i++)
		compare_field(everywhere[i], &w);
	return w.found;
}

static size_t word_length(const char *text)
{
	size_t len = 0;

	while (isalnum((unsigned char)text[len]) || text[len] == '_')
		len++;
	return len;
}

/* Whether it is compared with something: "pid == 1", "name.ustring ~ \"x*\"", "flags & 4". */
static bool is_compared(const char *after)
{
	if (*after == '.')
		after += 1 + word_length(after + 1);
	after += strspn(after, " \t");
	return *after && strchr("=!<>~&", *after) && strncmp(after, "&&", 2) != 0;
}

/* The first word that is compared and no field; NULL: none. */
static const char *unknown_field(const char *filter, const char *format, size_t *len)
{
	for (const char *at = filter; *at; at += *len) {
		*len = word_length(at);
		if (*at == '"' || *at == '\'') {
			const char *close = strchr(at + 1, *at);
			*len = close ? (size_t)(close - at) + 1 : strlen(at);
		} else if (!*len) {
			*len = 1;
		} else if (!isdigit((unsigned char)*at) && is_compared(at + *len) &&
			   !is_field(format, at, *len)) {
			return at;
		}
	}
	return NULL;
}

static void list_field(const char *name, void *arg)
{
	struct buf *list = arg;

	/* Those that all have say nothing, but for the pid. */
	if (strncmp(name, "common_", 7) == 0 && strcmp(name, "common_pid") != 0)
		return;
	buf_printf(list, "%s%s", list->len ? ", " : "", name);
}

static int explain_by_format(const struct tally_event *event, const char *name, const char *format,
			     struct tally_error *err)
{
	size_t len = 0;
	const char *unknown = unknown_field(event->filter, format, &len);
	int shown = len > NEAREST_MAX ? NEAREST_MAX : (int)len;
	struct buf fields = { 0 };
	struct nearest near = { 0 };

	if (unknown)
		find_nearest(&near, format, unknown, len);
	each_field(format, list_field, &fields);
	const char *list = buf_text(&fields);
	if (unknown && near.name[0])
		error_set(err, -EINVAL, TALLY_CAUSE_UNKNOWN,
			  "the filter '%.128s': %s has no field '%.*s', the nearest is '%s'",
			  event->filter, name, shown, unknown, near.name);
	else if (unknown)
		error_set(err, -EINVAL, TALLY_CAUSE_UNKNOWN,
			  "the filter '%.128s': %s has no field '%.*s', it has %s", event->filter,
			  name, shown, unknown, list ? list : "others");
	else
		error_set(
			err, -EINVAL, TALLY_CAUSE_SYNTAX,
			"the kernel does not take the filter '%.128s' of %s: numbers are compared "
			"by == != < <= > >= &, texts in quotes by == != ~, joined by && || ! ( ); "
			"its fields are %s",
			event->filter, name, list ? list : "in its format file");
	buf_done(&fields);
	return -EINVAL;
}

static int explain_filter(int code, const struct tally_event *event, const char *root,
			  struct tally_error *err)
{
	struct wanted w = { .id = event->attr.config };
	struct buf format = { 0 };
	const char *text;

	if (!err)
		return code;
	if (code == -EINVAL && strlen(event->filter) >= (size_t)sysconf(_SC_PAGESIZE))
		return error_set(err, code, TALLY_CAUSE_LIMIT,
				 "the filter of %s has %zu bytes, which is more than a page",
				 event->name, strlen(event->filter));
	if (code != -EINVAL || tracepoint_match("*", "*", root, compare_id, &w, NULL) != 1 ||
	    tracepoint_format(&format, w.name, root) < 0 || !(text = buf_text(&format)))
		error_set(err, code, TALLY_CAUSE_ARGUMENT,
			  "the kernel does not take the filter '%.128s' of %s: %s", event->filter,
			  event->name, strerror(-code));
	else
		explain_by_format(event, w.name, text, err);
	buf_done(&format);
	return code;
}

int filter_set(const struct tally_event *event, int fd, bool enable, const char *root,
	       struct tally_error *err)
{
	if (!event->filter)
		return 0;
	int r = sys()->ioctl(fd, PERF_EVENT_IOC_SET_FILTER, (unsigned long)event->filter);
	if (r < 0)
		return explain_filter(r, event, root, err);
	r = enable ? sys()->ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) : 0;
	if (r < 0)
		return error_set(err, r, TALLY_CAUSE_IO, "cannot enable %s: %s", event->name,
				 strerror(-r));
	return 0;
}
