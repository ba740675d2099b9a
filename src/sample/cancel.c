/* SPDX-License-Identifier: MIT */
/* An eventfd that is polled with the rest, and a flag, so that data cannot hide it. */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/error.h"
#include "base/sys.h"
#include "sample/cancel.h"

int cancel_open(struct cancel *c, struct tally_error *err)
{
	*c = (struct cancel){ .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
	if (c->fd >= 0)
		return 0;
	int code = -errno;
	return error_set(err, code, code == -ENOMEM ? TALLY_CAUSE_MEMORY : TALLY_CAUSE_FD_LIMIT,
			 "no eventfd to cancel waits with: %s", strerror(-code));
}

void cancel_close(struct cancel *c)
{
	if (c->fd >= 0)
		sys()->close(c->fd);
	c->fd = -1;
}

int cancel_send(struct cancel *c)
{
	const uint64_t one = 1;

	if (c->fd < 0)
		return -EINVAL;
	/* Release: pairs with the exchange of the waiting thread. */
	__atomic_store_n(&c->sent, true, __ATOMIC_RELEASE);
	ssize_t n = sys()->write(c->fd, &one, sizeof(one));
	return n == -EAGAIN || n > 0 ? 0 : (int)n; /* EAGAIN: it is as full as can be */
}

bool cancel_taken(struct cancel *c)
{
	uint64_t count;

	if (c->fd < 0 || !__atomic_load_n(&c->sent, __ATOMIC_RELAXED) ||
	    !__atomic_exchange_n(&c->sent, false, __ATOMIC_ACQ_REL))
		return false;
	(void)sys()->read(c->fd, &count, sizeof(count));
	return true;
}
