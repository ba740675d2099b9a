/* SPDX-License-Identifier: MIT */
/*
 * A recording's samples in order of time, in two passes: first what was mapped and how threads were
 * called, then the samples. So names are there even for a sample that stands before the record that
 * tells of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/list.h"
#include "base/proc.h"
#include "profile/health.h"
#include "profile/script.h"

#define KNOWN_FLAGS                                                                            \
	(TALLY_SCRIPT_JSON | TALLY_SCRIPT_DUMP | TALLY_SCRIPT_NS | TALLY_SCRIPT_NO_CHAIN |     \
	 TALLY_SCRIPT_MMAPS | TALLY_SCRIPT_TASKS | TALLY_SCRIPT_SWITCHES | TALLY_SCRIPT_LOST | \
	 TALLY_SCRIPT_NAMESPACES | TALLY_SCRIPT_CGROUPS | TALLY_SCRIPT_BPF |                   \
	 TALLY_SCRIPT_OWN_PAYLOADS | TALLY_SCRIPT_FULL_SOURCE)

#define MAX_CPUS 8192

/* A blob of formats is a few megabytes where all tracepoints are recorded. */
#define BLOB_LIMIT (256u << 20)

/* ---- what is shown ---- */

/* The flag that shows records of a type; 0: they never are. */
static uint32_t flag_of(uint32_t type)
{
	static const uint32_t flags[] = {
		[TALLY_RECORD_MMAP] = TALLY_SCRIPT_MMAPS,
		[TALLY_RECORD_MMAP2] = TALLY_SCRIPT_MMAPS,
		[TALLY_RECORD_COMM] = TALLY_SCRIPT_TASKS,
		[TALLY_RECORD_FORK] = TALLY_SCRIPT_TASKS,
		[TALLY_RECORD_EXIT] = TALLY_SCRIPT_TASKS,
		[TALLY_RECORD_SWITCH] = TALLY_SCRIPT_SWITCHES,
		[TALLY_RECORD_SWITCH_CPU_WIDE] = TALLY_SCRIPT_SWITCHES,
		[TALLY_RECORD_LOST] = TALLY_SCRIPT_LOST,
		[TALLY_RECORD_LOST_SAMPLES] = TALLY_SCRIPT_LOST,
		[TALLY_RECORD_NAMESPACES] = TALLY_SCRIPT_NAMESPACES,
		[TALLY_RECORD_CGROUP] = TALLY_SCRIPT_CGROUPS,
		[TALLY_RECORD_KSYMBOL] = TALLY_SCRIPT_BPF,
		[TALLY_RECORD_BPF_EVENT] = TALLY_SCRIPT_BPF,
	};

	return type < ARRAY_SIZE(flags) ? flags[type] : 0;
}

static bool is_wanted(uint32_t type, void *arg)
{
	const struct script *s = arg;

	return type == TALLY_RECORD_SAMPLE || s->opts.flags & flag_of(type);
}

static bool has_number(const char *list, int32_t number)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", number);
	return list_has(list, text);
}

static bool passes_who(struct script *s, const struct tally_record *rec)
{
	const struct tally_script_opts *o = &s->opts;
	char room[16];

	if (o->pid && !has_number(o->pid, rec->id.pid))
		return false;
	if (o->tid && !has_number(o->tid, rec->id.tid))
		return false;
	if (o->comm &&
	    !list_has(o->comm, sideband_name(&s->sideband, rec->id.tid, sample_time(rec), room)))
		return false;
	if (!s->cpus.count)
		return true;
	vec_each (&s->cpus, cpu)
		if (*cpu == rec->id.cpu)
			return true;
	return false;
}

static bool passes_time(const struct script *s, const struct tally_record *rec)
{
	uint64_t start = s->opts.relative && s->first != UINT64_MAX ? s->first : 0;

	if (!(rec->id.has & TALLY_SAMPLE_TIME))
		return true;
	return rec->id.time >= start + s->opts.from &&
	       (!s->opts.to || rec->id.time <= start + s->opts.to);
}

/* 1, 0 or -ENOMEM. */
static int passes_where(struct script *s, const struct tally_record *rec, const struct whose *whose)
{
	if (!s->opts.symbol && !s->opts.dso)
		return 1;
	const struct place *place = place_of(&s->places, whose, rec->sample.ip,
					     rec->misc & TALLY_MISC_CPUMODE, PLACE_SAMPLE,
					     FIELD_IP | FIELD_SYM | FIELD_SYMOFF | FIELD_DSO);
	return place ? place->passes : -ENOMEM;
}

/* ---- the samples ---- */

static void count_stack(struct tally_stacks *s, enum stack_end end, uint64_t wanted)
{
	s->whole += end == STACK_WHOLE;
	s->cut += end == STACK_CUT;
	s->cut_beyond += end == STACK_CUT && !wanted;
	s->broken += end == STACK_BROKEN;
	if (end == STACK_CUT && wanted > s->wanted_bytes)
		s->wanted_bytes = wanted;
}

static int print_sample(struct script *s, const struct script_event *event,
			struct tally_record *rec)
{
	enum stack_end end = STACK_UNKNOWN;
	uint64_t wanted = 0;
	struct whose whose = { .pid = rec->id.pid, .time = sample_time(rec) };

	places_trim(&s->places);
	int r = sideband_epoch(&s->sideband, whose.pid, whose.time, &whose.epoch);
	if (r < 0)
		return r;
	bool passes = event->shown && passes_time(s, rec) && passes_who(s, rec);
	r = passes ? passes_where(s, rec, &whose) : 0;
	if (r <= 0) {
		s->report.filtered += r == 0;
		return r;
	}
	s->report.samples++;
	r = event->chains ? stacks_complete(&s->stacks, rec, &end, &wanted) : 0;
	if (r < 0)
		return r;
	count_stack(&s->report.stacks, end, wanted);
	if (s->opts.flags & TALLY_SCRIPT_JSON)
		return script_json(s, event, rec, &whose, end);
	return event->fields ? script_text(s, event, rec, &whose) : 0;
}

static void print_whole(struct script *s, const struct tally_reader_record *item,
			const struct tally_record *rec, bool json)
{
	const struct tally_print_opts opts = {
		.size = sizeof(opts),
		.flags = json ? TALLY_PRINT_JSON : 0,
		.machine = s->machine,
	};
	char room[4096], *text = room;
	size_t len = tally_record_print(item->layout, rec, &opts, room, sizeof(room));

	if (len >= sizeof(room)) {
		text = malloc(len + 1);
		if (text)
			tally_record_print(item->layout, rec, &opts, text, len + 1);
	}
	if (text)
		out_bytes(&s->out, text, len);
	else
		s->out.failed = true;
	out_char(&s->out, '\n');
	if (text != room)
		free(text);
}

/* Samples of a constant period have it in the attr alone. */
static void fill_period(const struct script_event *event, struct tally_record *rec)
{
	const struct tally_attr *attr = &event->file->attr;

	if (attr->sample_type & TALLY_SAMPLE_PERIOD)
		return;
	rec->sample.period = attr->flags & TALLY_ATTR_FREQ ? 1 : attr->sample_period;
}

static int print_item(struct script *s, const struct tally_reader_record *item)
{
	const struct script_event *event = event_of(s, item->event);
	struct tally_record rec;

	if (tally_record_decode(item->layout, item->bytes, item->len, &rec, sizeof(rec)) < 0) {
		s->report.undecodable++;
		return 0;
	}
	if (rec.type == TALLY_RECORD_SAMPLE) {
		fill_period(event, &rec);
		return print_sample(s, event, &rec);
	}
	if (!passes_time(s, &rec))
		return 0;
	if (s->opts.flags & TALLY_SCRIPT_JSON)
		print_whole(s, item, &rec, true);
	else
		script_other(s, event, &rec);
	return 0;
}

static int print_all(struct script *s, struct tally_error *err)
{
	struct tally_reader_record item;
	int r;

	s->rounds = (struct rounds){
		.reader = s->reader,
		.wanted = is_wanted,
		.arg = s,
		.in_order = !s->out_of_order,
	};
	while ((r = rounds_next(&s->rounds, &item, err)) > 0) {
		if (print_item(s, &item) < 0)
			return error_nomem(err, "names of addresses");
		if (s->out.failed)
			return 0; /* told by who flushes */
	}
	return r;
}

/* -D: all that is in the file, as it stands there. */
static int dump_all(struct script *s, struct tally_error *err)
{
	bool json = s->opts.flags & TALLY_SCRIPT_JSON;
	struct tally_reader_record item;
	struct tally_record rec;
	int r;

	while ((r = tally_reader_next(s->reader, &item, err)) > 0 && !s->out.failed) {
		if (tally_record_decode(item.layout, item.bytes, item.len, &rec, sizeof(rec)) < 0) {
			s->report.undecodable++;
			continue;
		}
		s->report.samples += rec.type == TALLY_RECORD_SAMPLE;
		if (!json) {
			out_text(&s->out, "0x");
			out_hex(&s->out, item.offset, 0, ' ');
			out_text(&s->out, " [0x");
			out_hex(&s->out, item.len, 0, ' ');
			out_text(&s->out, "]: ");
		}
		print_whole(s, &item, &rec, json);
	}
	return r < 0 ? r : 0;
}

/* ---- before them ---- */

static const char *resolve(void *arg, uint64_t address, uint64_t *start, const char **module)
{
	struct script *s = arg;
	struct tally_frame frame;

	if (tally_symbolizer_find(s->symbolizer, TALLY_MAPS_KERNEL, NO_TIME, address,
				  TALLY_MODE_KERNEL, &frame) <= 0)
		return NULL;
	*start = address - frame.offset;
	*module = strcmp(frame.module, "[kernel.kallsyms]") != 0 ? frame.module : NULL;
	return frame.function;
}

/* Formats of a stream stand behind a record of it. */
static void take_blob(struct script *s, const char *path, const struct tally_reader_record *item)
{
	const size_t header = 8;

	if (s->blob || item->len < header + sizeof(uint32_t))
		return;
	uint32_t len = load_u32((const char *)item->bytes + header,
				tally_reader_swapped(s->reader));
	uint64_t at = item->offset + item->len, size = tally_reader_file_size(s->reader);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return;
	if (at <= size && len <= size - at && len <= BLOB_LIMIT && (s->blob = malloc(len + 1u))) {
		ssize_t got = pread(fd, s->blob, len, (off_t)at);
		int r = got == (ssize_t)len
				? payloads_init(&s->payloads, s->blob, len,
						!(s->opts.flags & TALLY_SCRIPT_OWN_PAYLOADS), NULL,
						NULL)
				: -EBADMSG;
		s->bad_formats = r < 0;
	}
	close(fd);
}

/* Whether what is shown comes by time already: then nothing needs to be held to sort it. */
static void watch_order(struct script *s, const struct tally_reader_record *item)
{
	uint64_t time = is_wanted(item->type, s) ? rounds_time(item) : 0;

	if (!time || time == UINT64_MAX)
		return;
	s->out_of_order |= time < s->newest;
	s->newest = time;
}

/* Side-band, what was lost, and the earliest sample. */
static int first_pass(struct script *s, const char *path)
{
	struct tally_reader_record item;
	struct tally_record rec;
	int r = 0;

	while (r == 0 && tally_reader_next(s->reader, &item, NULL) > 0) {
		bool sample = s->opts.relative && item.type == TALLY_RECORD_SAMPLE;
		bool lost = item.type == TALLY_RECORD_LOST ||
			    item.type == TALLY_RECORD_LOST_SAMPLES;
		if (item.type == TALLY_FILE_TRACING_DATA)
			take_blob(s, path, &item);
		if (!s->out_of_order)
			watch_order(s, &item);
		bool deferred = item.type == TALLY_RECORD_CALLCHAIN_DEFERRED;
		if (!sample && !lost && !deferred && !is_sideband(item.type))
			continue;
		if (tally_record_decode(item.layout, item.bytes, item.len, &rec, sizeof(rec)) < 0)
			s->report.undecodable += is_sideband(item.type);
		else if (lost)
			s->report.lost += rec.lost.lost;
		else if (deferred)
			r = stacks_defer(&s->stacks, &rec);
		else if (!sample)
			r = sideband_push(&s->sideband, &rec);
		else if (rec.id.has & TALLY_SAMPLE_TIME && rec.id.time < s->first)
			s->first = rec.id.time;
	}
	return r;
}

static int read_file(struct script *s, const char *path, struct tally_error *err)
{
	s->machine = tally_reader_text(s->reader, TALLY_FEATURE_ARCH);
	if (s->opts.flags & TALLY_SCRIPT_DUMP)
		return dump_all(s, err);
	if (first_pass(s, path) < 0)
		return error_nomem(err, "the recording's mappings");
	s->machine = tally_reader_text(s->reader, TALLY_FEATURE_ARCH);
	/* A stream tells it on the way. */
	tell_clock(s->symbolizer, s->unwinder, s->reader);
	tally_symbolizer_release(s->symbolizer,
				 tally_reader_text(s->reader, TALLY_FEATURE_OSRELEASE));
	int r = tally_reader_rewind(s->reader, err);
	return r < 0 ? r : print_all(s, err);
}

/* ---- opening ---- */

static int take_build_id(uint32_t cpumode, int32_t pid, const char *name, const uint8_t *id,
			 uint32_t id_len, void *arg)
{
	struct script *s = arg;

	if (s->unwinder && tally_unwinder_build_id(s->unwinder, pid, name, id, id_len) == -ENOMEM)
		return -ENOMEM;
	return tally_symbolizer_build_id(s->symbolizer, pid, name, id, id_len) == -ENOMEM ? -ENOMEM
											  : 0;
}

/* A stream tells its machine too late: stacks are taken for those of this one. */
static int open_unwinder(struct script *s, struct tally_error *err)
{
	const struct tally_unwinder_opts opts = {
		.size = sizeof(opts),
		.machine = tally_reader_text(s->reader, TALLY_FEATURE_ARCH),
		.root = s->opts.root,
		.symfs = s->opts.symfs,
		.cache = s->opts.cache,
	};
	int r = tally_unwinder_new(&s->unwinder, s->maps, &opts, err);

	s->stacks.unwinder = r == 0 ? s->unwinder : NULL;
	s->stacks.maps = s->maps;
	return r == -EOPNOTSUPP ? 0 : r;
}

static int open_symbols(struct script *s, struct tally_error *err)
{
	const struct tally_symbolizer_opts opts = {
		.size = sizeof(opts),
		.flags = s->opts.symbolizer_flags,
		.root = s->opts.root,
		.symfs = s->opts.symfs,
		.cache = s->opts.cache,
	};
	int r = tally_maps_new(&s->maps);

	if (r < 0)
		return error_nomem(err, "the recording's mappings");
	r = tally_symbolizer_new(&s->symbolizer, s->maps, &opts, err);
	if (r < 0)
		return r;
	s->sideband.maps = s->maps;
	s->sideband.symbolizer = s->symbolizer;
	s->places = (struct places){
		.sideband = &s->sideband,
		.symbolizer = s->symbolizer,
		.full_source = s->opts.flags & TALLY_SCRIPT_FULL_SOURCE,
		.symbols = s->opts.symbol,
		.dsos = s->opts.dso,
	};
	r = open_unwinder(s, err);
	if (r < 0)
		return r;
	r = tally_reader_build_ids(s->reader, take_build_id, s);
	s->bad_build_ids = r == -EBADMSG;
	return r < 0 && r != -EBADMSG ? error_nomem(err, "the recording's build-ids") : 0;
}

static int open_payloads(struct script *s, struct tally_error *err)
{
	const void *blob;
	uint64_t len;

	if (tally_reader_feature(s->reader, TALLY_FEATURE_TRACING_DATA, &blob, &len) <= 0)
		return 0;
	int r = payloads_init(&s->payloads, blob, (size_t)len,
			      !(s->opts.flags & TALLY_SCRIPT_OWN_PAYLOADS), resolve, s);
	s->bad_formats = r == -EBADMSG;
	return r == -ENOMEM ? error_nomem(err, "the formats of tracepoints") : 0;
}

/* The software events whose address is of code or data that was touched. */
static bool is_fault(const struct tally_attr *attr)
{
	return attr->type == TALLY_TYPE_SOFTWARE &&
	       (attr->config == TALLY_SW_PAGE_FAULTS || attr->config == TALLY_SW_PAGE_FAULTS_MIN ||
		attr->config == TALLY_SW_PAGE_FAULTS_MAJ);
}

static int open_events(struct script *s, struct tally_error *err)
{
	bool wanted = !(s->opts.flags & TALLY_SCRIPT_NO_CHAIN);

	for (uint32_t i = 0; i < tally_reader_events(s->reader); i++)
		s->chains |= wanted && tally_reader_event(s->reader, i)->attr.sample_type &
					       TALLY_SAMPLE_CALLCHAIN;
	int r = fields_settle(&s->fields, s->reader, s->chains, err);
	for (uint32_t i = 0; r == 0 && i < tally_reader_events(s->reader); i++) {
		struct script_event *e = vec_push(&s->events);
		if (!e)
			return error_nomem(err, "the recording's events");
		e->file = tally_reader_event(s->reader, i);
		e->name = e->file->name;
		e->name_len = strlen(e->name);
		e->fields = s->fields.shown[fields_kind(&e->file->attr)];
		e->chains = wanted && e->file->attr.sample_type & TALLY_SAMPLE_CALLCHAIN;
		e->shown = !s->opts.event || list_means_event(s->opts.event, e->name);
		e->addr_named = is_fault(&e->file->attr);
		if (e->name_len > s->name_width)
			s->name_width = e->name_len;
	}
	return r;
}

static int read_filters(struct script *s, struct tally_error *err)
{
	fields_init(&s->fields);
	for (uint32_t i = 0; i < s->opts.field_count; i++) {
		int r = fields_parse(&s->fields, s->opts.fields[i], err);
		if (r < 0)
			return r;
	}
	if (!s->opts.cpu)
		return 0;
	if (!vec_reserve(&s->cpus, MAX_CPUS))
		return error_nomem(err, "a list of CPUs");
	int count = proc_parse_cpus(s->opts.cpu, s->cpus.at, MAX_CPUS);
	if (count <= 0 || count > MAX_CPUS)
		return error_set(err, -EINVAL, TALLY_CAUSE_SYNTAX,
				 "'%s' is no list of CPUs such as 0-3,8", s->opts.cpu);
	s->cpus.count = (size_t)count;
	return 0;
}

/* What the reader cannot know is wrong. */
static void tell_health(struct script *s, const char *path)
{
	const char *const parts[] = {
		tally_reader_health(s->reader),
		s->bad_build_ids ? "has a damaged list of build-ids (feature BUILD_ID)" : NULL,
		s->bad_formats ? "has a damaged description of tracepoints (feature TRACING_DATA)"
			       : NULL,
		s->unknown_formats ? "does not describe the payloads of all its tracepoints, which "
				     "are printed as bytes"
				   : NULL,
	};

	health_text(s->report.health, sizeof(s->report.health), path, parts, ARRAY_SIZE(parts));
}

static void close_script(struct script *s)
{
	payloads_done(&s->payloads);
	places_done(&s->places);
	rounds_done(&s->rounds);
	sideband_done(&s->sideband);
	stacks_done(&s->stacks);
	tally_unwinder_free(s->unwinder);
	tally_symbolizer_free(s->symbolizer);
	tally_maps_free(s->maps);
	tally_reader_close(s->reader);
	vec_done(&s->events);
	vec_done(&s->cpus);
	out_done(&s->out);
	free(s->blob);
}

int tally_script_file(const char *path, const struct tally_script_opts *opts, FILE *to,
		      struct tally_script_report *report, struct tally_error *err)
{
	struct script s = { .first = UINT64_MAX, .out = { .to = to } };
	int r = opts_read(&s.opts, sizeof(s.opts), KNOWN_FLAGS, opts, err);

	if (r == 0)
		r = read_filters(&s, err);
	if (r == 0)
		r = tally_reader_open(&s.reader, path, NULL, err);
	if (r == 0)
		r = open_symbols(&s, err);
	if (r == 0)
		r = open_events(&s, err);
	if (r == 0)
		r = open_payloads(&s, err);
	if (r == 0) {
		r = read_file(&s, path, err);
		int flushed = out_flush(&s.out);
		if (flushed == -EIO)
			r = error_set(err, -EIO, TALLY_CAUSE_IO, "cannot write the samples: %s",
				      strerror(errno ? errno : EIO));
		tell_health(&s, path);
	}
	s.report.undecodable += s.sideband.senseless;
	if (report)
		*report = s.report;
	close_script(&s);
	return r;
}
