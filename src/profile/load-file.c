/* SPDX-License-Identifier: MIT */
/*
 * A perf.data file into a profile, in two passes: first what was mapped and how threads were
 * called, then the samples. Records of different CPUs are not in order of time in a file; asked in
 * this way their order does not matter, and nothing needs to be kept or sorted. What comes through a
 * pipe can be read once: in order of time, with samples that wait for what comes behind them.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tally/file_record.h>
#include <tally/reader.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/vec.h"
#include "profile/awaited.h"
#include "profile/group-reads.h"
#include "profile/health.h"
#include "profile/load.h"
#include "profile/sideband.h"
#include "profile/unpacked.h"

struct file {
	struct tally_load_opts opts;
	struct tally_profile *profile;
	struct tally_reader *reader;
	struct tally_maps *maps;
	struct tally_symbolizer *symbolizer;
	struct tally_loader *loader;
	struct tally_unwinder *unwinder; /* NULL: on that machine stacks cannot be unwound */
	VEC(int) events;                 /* by the file's number: the profile's */
	struct group_reads group_reads;
	struct awaited awaited; /* through a pipe */
	uint64_t first;         /* the earliest sample, as far as it was looked for */
	bool bad_build_ids;
	bool late_maps; /* through a pipe: mappings without a time came after samples */
};

static bool is_clock(const struct tally_attr *attr)
{
	return attr->type == TALLY_TYPE_SOFTWARE &&
	       (attr->config == TALLY_SW_CPU_CLOCK || attr->config == TALLY_SW_TASK_CLOCK);
}

static int add_events(struct file *f)
{
	for (uint32_t i = 0; i < tally_reader_events(f->reader); i++) {
		const struct tally_reader_event *e = tally_reader_event(f->reader, i);
		int *slot = vec_push(&f->events);
		if (!slot)
			return -ENOMEM;
		*slot = tally_profile_event(f->profile, e->name, is_clock(&e->attr) ? "ns" : "");
		if (*slot < 0)
			return *slot;
		if (group_reads_add(&f->group_reads, e->ids, e->id_count,
				    e->attr.flags & TALLY_ATTR_INHERIT) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int take_build_id(uint32_t cpumode, int32_t pid, const char *name, const uint8_t *id,
			 uint32_t id_len, void *arg)
{
	struct file *f = arg;

	if (f->unwinder && tally_unwinder_build_id(f->unwinder, pid, name, id, id_len) == -ENOMEM)
		return -ENOMEM;
	return tally_symbolizer_build_id(f->symbolizer, pid, name, id, id_len) == -ENOMEM ? -ENOMEM
											  : 0;
}

/* The sum of periods needs one for each sample: a constant one stands in the attr alone. */
static void fill_period(const struct file *f, const struct tally_reader_record *item,
			struct tally_record *rec)
{
	const struct tally_reader_event *e = tally_reader_event(f->reader, item->event);

	if (rec->type != TALLY_RECORD_SAMPLE || (item->layout->sample_type & TALLY_SAMPLE_PERIOD))
		return;
	bool constant = e && e->attr.sample_period && !(e->attr.flags & TALLY_ATTR_FREQ);
	rec->sample.period = constant ? e->attr.sample_period : 1;
}

/* What is taken before the samples that it tells of. */
static bool comes_first(uint32_t type)
{
	return is_sideband(type) || type == TALLY_RECORD_CALLCHAIN_DEFERRED;
}

static bool is_counted(uint32_t type)
{
	return type == TALLY_RECORD_SAMPLE || type == TALLY_RECORD_LOST ||
	       type == TALLY_RECORD_LOST_SAMPLES;
}

/* Of pipes, which have no feature that lists them (perf inject -b). */
static int take_build_id_record(struct file *f, const struct tally_reader_record *item)
{
	struct tally_file_record rec;
	const struct tally_file_build_id *b = &rec.build_id;

	if (tally_file_record_decode(item->bytes, item->len, tally_reader_swapped(f->reader), &rec,
				     sizeof(rec)) < 0)
		return 0;
	return take_build_id(b->mode, b->pid, b->name, b->id, b->id_len, f);
}

/* Side-band, of which none tells the event. */
static int push_side_band(struct file *f, const struct tally_reader_record *item,
			  struct tally_record *rec)
{
	if (tally_record_decode(item->layout, item->bytes, item->len, rec, sizeof(*rec)) < 0) {
		loader_undecodable(f->loader);
		return 0;
	}
	return tally_loader_push(f->loader, rec, 0);
}

static int push_for(struct file *f, const struct tally_record *rec, uint32_t event)
{
	return tally_loader_push(f->loader, rec, event < f->events.count ? f->events.at[event] : 0);
}

/*
 * A sample of a group's leader stands for every member that has counted since the one before, each
 * with its own count as weight, as in perf report.
 */
static int push_group(struct file *f, struct tally_record *rec)
{
	struct tally_record_count count;
	uint32_t event;
	int r = 0;

	for (uint64_t i = 0; i < rec->sample.counts.count && r >= 0; i++) {
		if (!tally_record_count(rec, i, &count))
			continue;
		r = group_reads_grown(&f->group_reads, count.id, rec->id.tid, count.value, &event,
				      &rec->sample.period);
		if (r > 0 && rec->sample.period)
			r = push_for(f, rec, event);
	}
	return r < 0 ? r : 0;
}

static bool reads_group(const struct tally_record *rec)
{
	const uint64_t by_id = TALLY_READ_GROUP | TALLY_READ_ID;

	return rec->type == TALLY_RECORD_SAMPLE && (rec->sample.counts.format & by_id) == by_id;
}

static int push_counted(struct file *f, const struct tally_reader_record *item,
			struct tally_record *rec)
{
	if (tally_record_decode(item->layout, item->bytes, item->len, rec, sizeof(*rec)) < 0) {
		loader_undecodable(f->loader);
		return 0;
	}
	fill_period(f, item, rec);
	return reads_group(rec) ? push_group(f, rec) : push_for(f, rec, item->event);
}

/* One walk through the records: side-band and, for times that count from it, the earliest sample. */
static int first_pass(struct file *f)
{
	struct tally_reader_record item;
	struct tally_record rec;
	int r = 0;

	while (r >= 0 && tally_reader_next(f->reader, &item, NULL) > 0) {
		if (comes_first(item.type))
			r = push_side_band(f, &item, &rec);
		else if (item.type == TALLY_FILE_BUILD_ID)
			r = take_build_id_record(f, &item);
		else if (f->opts.relative && item.type == TALLY_RECORD_SAMPLE &&
			 tally_record_decode(item.layout, item.bytes, item.len, &rec, sizeof(rec)) >
				 0 &&
			 rec.id.time < f->first)
			f->first = rec.id.time;
	}
	return r;
}

static void set_times(struct file *f)
{
	uint64_t start = f->opts.relative && f->first != UINT64_MAX ? f->first : 0;

	loader_between(f->loader, start + f->opts.from, f->opts.to ? start + f->opts.to : 0);
}

/* The samples, and what was lost of them. An error of the file that ended the first pass ends this
 * one at the same place. */
static int second_pass(struct file *f, struct tally_error *err)
{
	struct tally_reader_record item;
	struct tally_record rec;
	int r;

	while ((r = tally_reader_next(f->reader, &item, err)) > 0)
		if (is_counted(item.type) && push_counted(f, &item, &rec) < 0)
			return error_nomem(err, "the profile");
	return r;
}

/* In order of time the first sample is the earliest. */
static void note_first(struct file *f, const struct tally_record *rec)
{
	if (f->first != UINT64_MAX)
		return;
	f->first = rec->id.time;
	set_times(f);
}

static int push_sample(struct file *f, const struct tally_reader_record *item,
		       struct tally_record *rec)
{
	if (item->type == TALLY_RECORD_SAMPLE && f->first == UINT64_MAX &&
	    tally_record_decode(item->layout, item->bytes, item->len, rec, sizeof(*rec)) > 0)
		note_first(f, rec);
	return push_counted(f, item, rec);
}

static int push_awaited(const struct tally_reader_record *item, void *arg)
{
	struct tally_record rec;

	return push_counted(arg, item, &rec);
}

/* A part of a callchain goes to the samples that wait for it. */
static int push_deferred(struct file *f, const struct tally_reader_record *item,
			 struct tally_record *rec)
{
	int r = push_side_band(f, item, rec);

	if (r < 0 || rec->type != TALLY_RECORD_CALLCHAIN_DEFERRED)
		return r;
	return awaited_give(&f->awaited, rec->id.tid, rec->deferred.cookie, push_awaited, f);
}

/* Counts of a group tell what was counted since the ones before, so these cannot wait. */
static int push_or_wait(struct file *f, const struct tally_reader_record *item,
			struct tally_record *rec)
{
	const struct tally_reader_event *e = tally_reader_event(f->reader, item->event);
	uint64_t cookie;

	if (!e || !(e->attr.flags & TALLY_ATTR_DEFER_CALLCHAIN) ||
	    tally_record_decode(item->layout, item->bytes, item->len, rec, sizeof(*rec)) <= 0 ||
	    !awaited_cookie(rec, &cookie) || reads_group(rec))
		return push_sample(f, item, rec);
	note_first(f, rec);
	int r = 0;
	if (awaited_is_full(&f->awaited))
		r = awaited_give_all(&f->awaited, push_awaited, f);
	return r < 0 ? r : awaited_add(&f->awaited, item, rec->id.tid, cookie);
}

/* What a pipe gives, as it comes. Mappings that the recorder put at its end, without a time, have
 * come too late for the samples before them. */
static int only_pass(struct file *f, struct tally_error *err)
{
	struct tally_reader_record item;
	struct tally_record rec = { 0 };
	int r;

	set_times(f);
	while ((r = tally_reader_next(f->reader, &item, err)) > 0) {
		if (item.type == TALLY_RECORD_CALLCHAIN_DEFERRED) {
			r = push_deferred(f, &item, &rec);
		} else if (is_sideband(item.type)) {
			r = push_side_band(f, &item, &rec);
			f->late_maps |= f->first != UINT64_MAX && !rec.id.time;
		} else if (item.type == TALLY_FILE_BUILD_ID) {
			r = take_build_id_record(f, &item);
		} else if (is_counted(item.type)) {
			r = push_or_wait(f, &item, &rec);
		}
		if (r < 0)
			return error_nomem(err, "the profile");
	}
	/* What they wait for was lost, or is not in the recording any more. */
	if (awaited_give_all(&f->awaited, push_awaited, f) < 0)
		return error_nomem(err, "the profile");
	return r;
}

static void tell_machine(struct file *f)
{
	tell_clock(f->symbolizer, f->unwinder, f->reader);
	tally_symbolizer_release(f->symbolizer,
				 tally_reader_text(f->reader, TALLY_FEATURE_OSRELEASE));
}

static int read_file(struct file *f, struct tally_error *err)
{
	if (!tally_reader_rewindable(f->reader)) {
		tell_machine(f);
		return only_pass(f, err);
	}
	if (first_pass(f) < 0)
		return error_nomem(err, "the recording's mappings");
	/* A stream tells it on the way. */
	tell_machine(f);
	int r = tally_reader_rewind(f->reader, err);
	if (r < 0)
		return r;
	set_times(f);
	return second_pass(f, err);
}

/* Stacks of a machine that is not known are not unwound. A stream tells its machine too late. */
static int open_unwinder(struct file *f, struct tally_error *err)
{
	const struct tally_unwinder_opts opts = {
		.size = sizeof(opts),
		.machine = tally_reader_text(f->reader, TALLY_FEATURE_ARCH),
		.root = f->opts.root,
		.symfs = f->opts.symfs,
		.cache = f->opts.cache,
	};
	int r = tally_unwinder_new(&f->unwinder, f->maps, &opts, err);

	if (r == 0)
		loader_unwinds(f->loader, f->unwinder);
	return r == -EOPNOTSUPP ? 0 : r;
}

static int prepare(struct file *f, struct tally_error *err)
{
	struct tally_symbolizer_opts opts = { .size = sizeof(opts),
					      .flags = f->opts.symbolizer_flags,
					      .root = f->opts.root,
					      .symfs = f->opts.symfs,
					      .cache = f->opts.cache };
	const struct tally_loader_opts loader_opts = { .size = sizeof(loader_opts),
						       .flags = f->opts.flags };
	int r = tally_maps_new(&f->maps);

	if (r < 0)
		return error_nomem(err, "the recording's mappings");
	if ((r = tally_symbolizer_new(&f->symbolizer, f->maps, &opts, err)) < 0 ||
	    (r = tally_loader_new(&f->loader, f->profile, f->maps, f->symbolizer, &loader_opts,
				  err)) < 0 ||
	    (r = open_unwinder(f, err)) < 0)
		return r;
	r = add_events(f);
	if (r == 0)
		r = tally_reader_build_ids(f->reader, take_build_id, f);
	/* Those before a damaged entry were taken; the samples do not depend on the rest. */
	f->bad_build_ids = r == -EBADMSG;
	return r < 0 && r != -EBADMSG ? error_nomem(err, "the recording's events and build-ids")
				      : 0;
}

static void tell_trouble(const struct file *f)
{
	struct tally_module_info info;

	for (uint32_t i = 0; i < tally_symbolizer_modules(f->symbolizer); i++)
		if (tally_symbolizer_module(f->symbolizer, i, &info) == 0 && info.trouble &&
		    info.lookups)
			f->opts.trouble(&info, f->opts.arg);
}

static void tell_broken(const struct file *f)
{
	struct tally_unwinder_module module;

	for (uint32_t i = 0; f->unwinder && i < tally_unwinder_modules(f->unwinder); i++)
		if (tally_unwinder_module(f->unwinder, i, &module) == 0 && module.broken)
			f->opts.broken(&module, f->opts.arg);
}

static void tell_health(const struct file *f, const char *path, char *text, size_t size)
{
	const char *const parts[] = {
		tally_reader_health(f->reader),
		f->bad_build_ids ? "has a damaged list of build-ids (feature BUILD_ID)" : NULL,
		f->late_maps
			? "has mappings behind the samples that they are for, and came through a "
			  "pipe, which cannot be read twice: save it into a file and read that"
			: NULL,
	};

	health_text(text, size, path, parts, ARRAY_SIZE(parts));
}

static void close_file(struct file *f)
{
	tally_loader_free(f->loader);
	tally_unwinder_free(f->unwinder);
	tally_symbolizer_free(f->symbolizer);
	tally_maps_free(f->maps);
	tally_reader_close(f->reader);
	vec_done(&f->events);
	group_reads_done(&f->group_reads);
	awaited_done(&f->awaited);
}

/* What is to be done with what was loaded, also where the file is damaged behind it. */
static int call_then(struct file *f, const struct load_then *then, const char *path, int r,
		     char *health, size_t size, struct tally_error *err)
{
	struct tally_load_health loaded;
	struct tally_error damage = err ? *err : (struct tally_error){ 0 };

	tally_loader_health(f->loader, &loaded);
	if (r < 0 && !loaded.samples)
		return r;
	int done = then->call(f->loader, f->symbolizer, f->profile, then->arg, err);
	if (done == 0 && r < 0)
		snprintf(health, size, "%s: shown are the samples that stand before the damage",
			 damage.text[0] ? damage.text : path);
	return done;
}

/* What loads: opens the file, reads it, and tells about it. */
struct loading {
	const char *path;
	struct tally_load_health *health;
	char *health_text;
	size_t health_size;
	const struct load_then *then; /* NULL: nothing */
};

static int load(struct file *f, const struct loading *l, const struct unpacked *unpacked,
		struct tally_error *err)
{
	const struct tally_reader_opts reader_opts = { .size = sizeof(reader_opts),
						       .flags = TALLY_READER_TIME_ORDER_PIPE };
	int r = tally_reader_open(&f->reader, unpacked->folder ? unpacked->recording : l->path,
				  &reader_opts, err);

	if (r == 0)
		r = prepare(f, err);
	if (r < 0)
		return r;
	if (l->then)
		loader_keep_sightings(f->loader);
	r = read_file(f, err);
	if (l->health)
		tally_loader_health(f->loader, l->health);
	if (l->health_text)
		tell_health(f, l->path, l->health_text, l->health_size);
	if (f->opts.trouble)
		tell_trouble(f);
	if (f->opts.broken)
		tell_broken(f);
	if (l->then)
		r = call_then(f, l->then, l->path, r, l->health_text, l->health_size, err);
	return r;
}

static int load_whole(struct tally_profile *profile, const struct tally_load_opts *opts,
		      const struct loading *l, struct tally_error *err)
{
	struct file f = { .profile = profile, .first = UINT64_MAX };
	struct unpacked unpacked = { 0 };
	char cache[PATH_MAX];

	if (l->health)
		*l->health = (struct tally_load_health){ 0 };
	if (l->health_text && l->health_size)
		*l->health_text = '\0';
	int r = opts_read(&f.opts, sizeof(f.opts), LOADER_FLAGS, opts, err);
	if (r == 0)
		r = unpacked_open(&unpacked, l->path, err);
	if (unpacked.folder) {
		f.opts.root = f.opts.root ? f.opts.root : unpacked.folder;
		f.opts.symfs = f.opts.symfs ? f.opts.symfs : unpacked.folder;
		snprintf(cache, sizeof(cache), "%s/" PACK_CACHE, unpacked.folder);
		f.opts.cache = f.opts.cache ? f.opts.cache : cache;
	}
	if (r == 0)
		r = load(&f, l, &unpacked, err);
	close_file(&f);
	unpacked_close(&unpacked);
	return r;
}

int tally_profile_load_file(struct tally_profile *profile, const char *path,
			    const struct tally_load_opts *opts, struct tally_load_health *health,
			    char *health_text, size_t health_text_size, struct tally_error *err)
{
	const struct loading l = { path, health, health_text, health_text_size, NULL };

	return load_whole(profile, opts, &l, err);
}

int load_file_then(struct tally_profile *profile, const char *path,
		   const struct tally_load_opts *opts, const struct load_then *then, char *health,
		   size_t health_size, struct tally_error *err)
{
	const struct loading l = { path, NULL, health, health_size, then };

	return load_whole(profile, opts, &l, err);
}
