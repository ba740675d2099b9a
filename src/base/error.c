/* SPDX-License-Identifier: MIT */
/* Errors that the caller owns, and the check of options structs that the caller filled. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

/* Replaces control bytes and cuts an incomplete UTF-8 sequence at the end. */
static void make_printable(char *text)
{
	size_t n = strlen(text);

	for (size_t i = 0; i < n; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			text[i] = '?';

	size_t start = n;
	while (start > 0 && n - start < 3 && ((unsigned char)text[start - 1] & 0xc0) == 0x80)
		start--;
	if (start == 0)
		return;
	unsigned char lead = (unsigned char)text[start - 1];
	size_t want = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc0 ? 1 : 0;
	if (n - start < want)
		text[start - 1] = '\0';
}

int error_set(struct tally_error *err, int code, enum tally_cause cause, const char *fmt, ...)
{
	if (err) {
		va_list ap;

		err->code = code;
		/* Whatever was being done, a full memory is what has to be mended. */
		err->cause = code == -ENOMEM ? TALLY_CAUSE_MEMORY : cause;
		va_start(ap, fmt);
		vsnprintf(err->text, sizeof(err->text), fmt, ap);
		va_end(ap);
		make_printable(err->text);
	}
	return code;
}

int error_nomem(struct tally_error *err, const char *what)
{
	return error_set(err, -ENOMEM, TALLY_CAUSE_MEMORY, "no memory for %s", what);
}

void error_prefix(struct tally_error *err, const char *fmt, ...)
{
	char old[TALLY_ERROR_TEXT];
	va_list ap;

	if (!err)
		return;
	memcpy(old, err->text, sizeof(old));
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	size_t n = strlen(err->text);
	for (const char *rest[] = { ": ", old }, **p = rest; p < rest + 2; p++) {
		size_t len = strnlen(*p, sizeof(err->text) - 1 - n);
		memcpy(err->text + n, *p, len);
		n += len;
	}
	err->text[n] = '\0';
	make_printable(err->text);
}

int opts_read(void *out, size_t known, uint32_t known_flags, const void *opts,
	      struct tally_error *err)
{
	uint32_t size, flags;

	memset(out, 0, known);
	if (!opts)
		return 0;
	memcpy(&size, opts, sizeof(size));
	if (size < 2 * sizeof(uint32_t))
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
				 "an options struct has size %u: set .size, or use TALLY_OPTS",
				 size);
	memcpy(&flags, (const char *)opts + sizeof(size), sizeof(flags));
	if (flags & ~known_flags)
		return error_set(err, -EINVAL, TALLY_CAUSE_ARGUMENT,
				 "an options struct has flags %#x, of which this library knows %#x",
				 flags, flags & known_flags);
	const unsigned char *bytes = opts;
	for (size_t i = known; i < size; i++)
		if (bytes[i])
			return error_set(err, -E2BIG, TALLY_CAUSE_ARGUMENT,
					 "an options struct of %u bytes sets a field that this "
					 "library (%zu bytes) does not know",
					 size, known);
	memcpy(out, opts, size < known ? size : known);
	return 0;
}
