/* SPDX-License-Identifier: MIT */
/* A profile: tables of plain structs in which everything stands once. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/error.h"
#include "profile/profile.h"

int tally_profile_new(struct tally_profile **out, struct tally_error *err)
{
	struct tally_profile *p = calloc(1, sizeof(*p));

	if (!p)
		return error_nomem(err, "a profile");
	p->events = POOL(struct event, unit);
	p->threads = POOL(struct thread, comm);
	p->modules = POOL(struct module, build_id);
	p->functions = POOL(struct function, inlined);
	p->locations = POOL(struct location, address);
	p->stacks = POOL(struct stack, location);
	p->rows = POOL(struct row, stack);
	*out = p;
	return 0;
}

void tally_profile_free(struct tally_profile *p)
{
	if (!p)
		return;
	struct pool *pools[] = { &p->events,    &p->threads, &p->modules, &p->functions,
				 &p->locations, &p->stacks,  &p->rows };
	for (size_t i = 0; i < ARRAY_SIZE(pools); i++)
		pool_done(pools[i]);
	strings_done(&p->strings);
	free(p);
}

int tally_profile_event(struct tally_profile *p, const char *name, const char *unit)
{
	struct event event = { strings_add(&p->strings, name), strings_add(&p->strings, unit) };

	if (event.name == UINT32_MAX || event.unit == UINT32_MAX)
		return -ENOMEM;
	return pool_add(&p->events, &event);
}

int tally_profile_thread(struct tally_profile *p, int32_t pid, int32_t tid, const char *comm)
{
	struct thread thread = { pid, tid, strings_add(&p->strings, comm) };

	if (thread.comm == UINT32_MAX)
		return -ENOMEM;
	return pool_add(&p->threads, &thread);
}

int tally_profile_module(struct tally_profile *p, const char *name, const char *path,
			 const uint8_t *build_id, uint32_t build_id_len)
{
	struct module module = { .build_id_len = build_id_len };

	if (build_id_len > sizeof(module.build_id))
		return -EINVAL;
	if (build_id_len)
		memcpy(module.build_id, build_id, build_id_len);
	module.name = strings_add(&p->strings, name);
	module.path = path ? strings_add(&p->strings, path) : module.name;
	if (module.name == UINT32_MAX || module.path == UINT32_MAX)
		return -ENOMEM;
	return pool_add(&p->modules, &module);
}

/* "[libc.so.6]" for what has no symbol there; "[vdso]" and "[unknown]" have their brackets. */
static uint32_t unnamed_label(struct tally_profile *p, const struct module *module)
{
	const char *name = text_of(p, module->name);
	char label[256];

	if (name[0] == '[')
		return module->name;
	size_t n = strnlen(name, sizeof(label) - 2);
	label[0] = '[';
	memcpy(label + 1, name, n);
	label[n + 1] = ']';
	return strings_add_n(&p->strings, label, n + 2);
}

int tally_profile_function(struct tally_profile *p, int module, const char *name, uint32_t mode)
{
	const struct module *m = module_at(p, (uint32_t)module);
	struct function f = { .module = module, .name = NO_NAME, .mode = mode };

	if (!m)
		return -EINVAL;
	f.label = name ? strings_add(&p->strings, name) : unnamed_label(p, m);
	if (f.label == UINT32_MAX)
		return -ENOMEM;
	if (name)
		f.name = f.label;
	return pool_add(&p->functions, &f);
}

/* The id of a text that was put together; UINT32_MAX: no memory. */
static uint32_t keep_text(struct tally_profile *p, struct buf *text)
{
	uint32_t id = text->failed ? UINT32_MAX : strings_add_n(&p->strings, text->at, text->len);

	buf_done(text);
	return id;
}

int tally_profile_inlined(struct tally_profile *p, int module, const char *name, uint32_t mode)
{
	struct function f = { .module = module, .mode = mode, .inlined = true };
	struct buf label = { 0 };

	if (!module_at(p, (uint32_t)module) || !name)
		return -EINVAL;
	f.name = strings_add(&p->strings, name);
	buf_str(&label, name);
	buf_str(&label, " (inlined)");
	f.label = keep_text(p, &label);
	if (f.name == UINT32_MAX || f.label == UINT32_MAX)
		return -ENOMEM;
	return pool_add(&p->functions, &f);
}

int tally_profile_location(struct tally_profile *p, int function, uint64_t address)
{
	return tally_profile_place(p, function, address, NULL, 0);
}

int tally_profile_place(struct tally_profile *p, int function, uint64_t address, const char *file,
			uint32_t line)
{
	struct location location = { .function = function, .address = address };

	if (!function_at(p, (uint32_t)function))
		return -EINVAL;
	if (file && line) {
		struct buf source = { 0 };
		buf_printf(&source, "%s:%u", file, line);
		location.source = keep_text(p, &source);
	}
	return location.source == UINT32_MAX ? -ENOMEM : pool_add(&p->locations, &location);
}

int tally_profile_stack(struct tally_profile *p, int parent, int location)
{
	struct stack stack = { parent, location };

	if (parent < -1 || (parent >= 0 && !stack_at(p, (uint32_t)parent)) ||
	    !location_at(p, (uint32_t)location))
		return -EINVAL;
	return pool_add(&p->stacks, &stack);
}

static void add_saturating(uint64_t *sum, uint64_t more)
{
	if (__builtin_add_overflow(*sum, more, sum))
		*sum = UINT64_MAX;
}

int tally_profile_add(struct tally_profile *p, int event, int thread, int stack, uint64_t samples,
		      uint64_t weight)
{
	struct row row = { .event = event, .thread = thread, .stack = stack };

	if (!event_at(p, (uint32_t)event) || !thread_at(p, (uint32_t)thread) ||
	    !stack_at(p, (uint32_t)stack))
		return -EINVAL;
	int at = pool_add(&p->rows, &row);
	if (at < 0)
		return at;
	struct row *sum = (struct row *)p->rows.at + at;
	add_saturating(&sum->samples, samples);
	add_saturating(&sum->weight, weight);
	return 0;
}

uint32_t tally_profile_events(const struct tally_profile *p)
{
	return (uint32_t)p->events.count;
}

const char *tally_profile_event_name(const struct tally_profile *p, uint32_t event)
{
	const struct event *e = event_at(p, event);

	return e ? text_of(p, e->name) : NULL;
}

const char *tally_profile_event_unit(const struct tally_profile *p, uint32_t event)
{
	const struct event *e = event_at(p, event);

	return e ? text_of(p, e->unit) : NULL;
}

uint32_t tally_profile_threads(const struct tally_profile *p)
{
	return (uint32_t)p->threads.count;
}

int tally_profile_thread_info(const struct tally_profile *p, uint32_t thread,
			      struct tally_profile_thread_info *out)
{
	const struct thread *t = thread_at(p, thread);

	if (!t)
		return -EINVAL;
	*out = (struct tally_profile_thread_info){ text_of(p, t->comm), t->pid, t->tid };
	return 0;
}

uint32_t tally_profile_functions(const struct tally_profile *p)
{
	return (uint32_t)p->functions.count;
}

int tally_profile_function_info(const struct tally_profile *p, uint32_t function,
				struct tally_profile_function_info *out)
{
	const struct function *f = function_at(p, function);

	if (!f)
		return -EINVAL;
	const struct module *m = module_at(p, (uint32_t)f->module);
	*out = (struct tally_profile_function_info){
		.name = f->name == NO_NAME ? NULL : text_of(p, f->name),
		.label = text_of(p, f->label),
		.module = text_of(p, m->name),
		.path = text_of(p, m->path),
		.build_id = m->build_id,
		.build_id_len = m->build_id_len,
		.mode = f->mode,
		.inlined = f->inlined,
	};
	return 0;
}

uint32_t tally_profile_stacks(const struct tally_profile *p)
{
	return (uint32_t)p->stacks.count;
}

int tally_profile_stack_info(const struct tally_profile *p, uint32_t stack, int32_t *parent,
			     int32_t *function, uint64_t *address)
{
	const struct stack *s = stack_at(p, stack);

	if (!s)
		return -EINVAL;
	const struct location *l = location_at(p, (uint32_t)s->location);
	*parent = s->parent;
	*function = l->function;
	*address = l->address;
	return 0;
}

const char *tally_profile_stack_source(const struct tally_profile *p, uint32_t stack)
{
	const struct stack *s = stack_at(p, stack);
	uint32_t source = s ? location_at(p, (uint32_t)s->location)->source : 0;

	return source ? text_of(p, source) : NULL;
}

uint32_t tally_profile_rows(const struct tally_profile *p)
{
	return (uint32_t)p->rows.count;
}

int tally_profile_row(const struct tally_profile *p, uint32_t row, struct tally_profile_row *out)
{
	const struct row *r = row_at(p, row);

	if (!r)
		return -EINVAL;
	*out = (struct tally_profile_row){ .event = r->event,
					   .thread = r->thread,
					   .stack = r->stack,
					   .samples = r->samples,
					   .weight = r->weight };
	return 0;
}
