/* SPDX-License-Identifier: MIT */
/* Reading a file by position, every byte or an error; or a pipe as its bytes come. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/sys.h"
#include "perfdata/source.h"

int source_read(const struct source *src, void *to, uint64_t offset, size_t len, const char *what,
		struct tally_error *err)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = sys()->pread(src->fd, (char *)to + done, len - done,
					 (off_t)(offset + done));
		if (n == -EINTR)
			continue;
		if (n < 0)
			return error_set(err, (int)n, TALLY_CAUSE_IO,
					 "%s: reading %s at offset %" PRIu64 " failed: %s",
					 src->name, what, offset + done, strerror((int)-n));
		if (n == 0)
			return error_set(err, -EBADMSG, TALLY_CAUSE_TRUNCATED,
					 "%s: ends at offset %" PRIu64 " inside %s, which needs "
					 "%zu bytes from offset %" PRIu64,
					 src->name, offset + done, what, len, offset);
		done += (size_t)n;
	}
	return 0;
}

int64_t source_take(const struct source *src, void *to, uint64_t offset, size_t len)
{
	ssize_t n;

	do
		n = src->once ? sys()->read(src->fd, to, len)
			      : sys()->pread(src->fd, to, len, (off_t)offset);
	while (n == -EINTR);
	return n;
}

bool source_holds(const struct source *src, const struct file_section *section)
{
	return section->offset <= src->size && section->size <= src->size - section->offset;
}

void source_complain(struct source *src, const char *fmt, ...)
{
	char clause[HEALTH_TEXT / 2];
	size_t used = strlen(src->part);
	va_list ap;

	va_start(ap, fmt);
	snprintf(clause, sizeof(clause), "%s", src->part);
	vsnprintf(clause + used, sizeof(clause) - used, fmt, ap);
	va_end(ap);
	if (strstr(src->health, clause))
		return;
	used = strlen(src->health);
	snprintf(src->health + used, HEALTH_TEXT - used, "%s%s", used ? "; " : "", clause);
}
