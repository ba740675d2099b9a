/* SPDX-License-Identifier: MIT */
/*
 * Demangling with libiberty, whose output for a short hostile name may be longer than any memory:
 * substitutions double it again and again. Its callback interface lets us count what comes out, but
 * has no way to say stop; so the callback jumps out. cplus_demangle_v3_callback() allocates nothing
 * ("allocation-less", demangle.h); rust_demangle_callback() may hold one identifier's characters,
 * which are then lost.
 */
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/demangle.h>
#include <tally/symbolizer.h>

#include "base/buf.h"
#include "image/demangle.h"

#define MAX_MANGLED   8192
#define MAX_DEMANGLED 65536

/* Each back reference of a D name may double it, and its demangler has no callback. */
#define MAX_D_REFERENCES 24

struct output {
	jmp_buf stop;
	struct buf text;
};

static void collect(const char *text, size_t len, void *opaque)
{
	struct output *out = opaque;

	if (len > MAX_DEMANGLED - out->text.len)
		longjmp(out->stop, 1);
	if (len)
		buf_add(&out->text, text, len);
	if (out->text.failed)
		longjmp(out->stop, 1);
}

static int demangle_into(struct output *out, const char *name, bool parameters)
{
	int options = parameters ? DMGL_PARAMS | DMGL_ANSI : DMGL_NO_OPTS;

	if (setjmp(out->stop))
		return 0;
	/* Rust's older names are C++ names too, with a hash at their end. */
	if (rust_demangle_callback(name, DMGL_NO_OPTS, collect, out))
		return 1;
	buf_reset(&out->text);
	return cplus_demangle_v3_callback(name, options, collect, out);
}

static char *demangle_d(const char *name)
{
	size_t references = 0;

	for (const char *p = name; (p = strchr(p, 'Q')); p++)
		references++;
	return references > MAX_D_REFERENCES ? NULL : dlang_demangle(name, DMGL_DLANG);
}

/*
 * A copy of `name` up to what the demanglers would stumble over; `*rest` is what to append again.
 */
static char *cut_suffix(const char *name, const char **rest)
{
	size_t len = strcspn(name, "@");                    /* symbol versions: foo@@GLIBCXX_3.4 */
	const char *clone = memmem(name, len, ".llvm.", 6); /* ThinLTO's, of no use to people */

	*rest = name + len;
	return strndup(name, clone ? (size_t)(clone - name) : len);
}

static bool looks_mangled(const char *name)
{
	return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R' || name[1] == 'D' ||
				  !strncmp(name, "_GLOBAL_", 8));
}

char *demangle(const char *name, bool parameters)
{
	struct output out = { .text = { 0 } };
	const char *rest;
	char *result = NULL;

	if (!looks_mangled(name) || strnlen(name, MAX_MANGLED + 1) > MAX_MANGLED)
		return NULL;
	char *bare = cut_suffix(name, &rest);
	if (!bare)
		return NULL;
	if (bare[1] == 'D') {
		char *d = demangle_d(bare);
		if (d && strlen(d) <= MAX_DEMANGLED)
			buf_str(&out.text, d);
		free(d);
	} else if (!demangle_into(&out, bare, parameters)) {
		buf_reset(&out.text);
	}
	if (out.text.len) {
		buf_str(&out.text, rest);
		result = buf_text(&out.text) ? strdup(out.text.at) : NULL;
	}
	buf_done(&out.text);
	free(bare);
	return result;
}

char *tally_demangle(const char *name)
{
	return demangle(name, true);
}
