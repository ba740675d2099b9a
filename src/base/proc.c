/* SPDX-License-Identifier: MIT */
/* Small text files below a root, and the numbers in them. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/proc.h"
#include "base/sys.h"
#include "base/vec.h"

/* CPU numbers are below the kernel's NR_CPUS, 8192 on the largest builds; allow for more. */
#define MAX_CPU 65536

int proc_path(char *out, size_t size, const char *root, const char *path)
{
	int n = snprintf(out, size, "%s%s", root ? root : "", path);

	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

static int open_below(const char *root, const char *path)
{
	char full[PATH_MAX];
	int r = proc_path(full, sizeof(full), root, path);

	return r < 0 ? r : sys()->open(full, O_RDONLY, 0);
}

int proc_read(struct buf *out, const char *root, const char *path, size_t limit)
{
	char chunk[16384];
	size_t total = 0;
	int fd = open_below(root, path);

	if (fd < 0)
		return fd;
	ssize_t n;
	while ((n = sys()->read(fd, chunk, sizeof(chunk))) > 0) {
		total += (size_t)n;
		if (total > limit) {
			n = -EFBIG;
			break;
		}
		buf_add(out, chunk, (size_t)n);
	}
	sys()->close(fd);
	if (n < 0)
		return (int)n;
	return out->failed ? -ENOMEM : 0;
}

int proc_read_line(char *out, size_t size, const char *root, const char *path)
{
	int fd = open_below(root, path);

	if (fd < 0)
		return fd;
	size_t have = 0;
	ssize_t n = 0;
	while (have + 1 < size && (n = sys()->read(fd, out + have, size - 1 - have)) > 0) {
		have += (size_t)n;
		if (memchr(out + have - n, '\n', (size_t)n))
			break;
	}
	sys()->close(fd);
	if (n < 0)
		return (int)n;
	out[have] = '\0';
	out[strcspn(out, "\n")] = '\0';
	return 0;
}

int proc_read_i64(int64_t *out, const char *root, const char *path)
{
	char line[64];
	int r = proc_read_line(line, sizeof(line), root, path);

	if (r < 0)
		return r;
	line[strcspn(line, " \t")] = '\0';
	return parse_i64(line, out) ? 0 : -EINVAL;
}

static bool parse_cpu(const char **text, long *cpu)
{
	char *end;

	if (!isdigit((unsigned char)**text))
		return false;
	errno = 0;
	*cpu = strtol(*text, &end, 10);
	*text = end;
	return !errno && *cpu < MAX_CPU;
}

int proc_parse_cpus(const char *text, int32_t *cpus, size_t room)
{
	int count = 0;

	while (*text && *text != '\n') {
		long first, last;
		if (!parse_cpu(&text, &first))
			return -EINVAL;
		last = first;
		if (*text == '-' && (text++, !parse_cpu(&text, &last)))
			return -EINVAL;
		if (last < first)
			return -EINVAL;
		for (long cpu = first; cpu <= last; cpu++, count++)
			if ((size_t)count < room)
				cpus[count] = (int32_t)cpu;
		if (*text == ',')
			text++;
		else if (*text && *text != '\n')
			return -EINVAL;
	}
	return count;
}

int proc_online_cpus(int32_t *cpus, size_t room, const char *root)
{
	struct buf text = { 0 };
	int r = proc_read(&text, root, "/sys/devices/system/cpu/online", 65536);

	if (r == 0 && !buf_text(&text))
		r = -ENOMEM;
	if (r == 0)
		r = proc_parse_cpus(text.at, cpus, room);
	buf_done(&text);
	return r;
}

static int compare_ids(const void *a, const void *b)
{
	int32_t x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return (x > y) - (x < y);
}

int proc_list_ids(int32_t **list, size_t *count, const char *root, const char *path)
{
	char full[PATH_MAX];
	int r = proc_path(full, sizeof(full), root, path);
	if (r < 0)
		return r;
	DIR *dir = opendir(full);
	if (!dir)
		return -errno;

	VEC(int32_t) ids = { 0 };
	struct dirent *entry;
	while ((entry = readdir(dir))) {
		uint64_t id;
		if (!isdigit((unsigned char)entry->d_name[0]) || !parse_u64(entry->d_name, &id) ||
		    id > INT32_MAX)
			continue;
		int32_t *slot = vec_push(&ids);
		if (!slot) {
			closedir(dir);
			vec_done(&ids);
			return -ENOMEM;
		}
		*slot = (int32_t)id;
	}
	closedir(dir);
	if (ids.count)
		qsort(ids.at, ids.count, sizeof(*ids.at), compare_ids);
	*list = ids.at;
	*count = ids.count;
	return 0;
}

int proc_threads(int32_t **list, size_t *count, const char *root, int32_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	int r = proc_list_ids(list, count, root, path);
	if (r == 0 && !*count) {
		free(*list);
		r = -ESRCH;
	}
	return r == -ENOENT ? -ESRCH : r;
}

/* "tid (comm) state ...": comm may hold anything, so the last parenthesis counts. */
char proc_thread_state(const char *root, int32_t pid, int32_t tid)
{
	char path[64], line[256];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	if (proc_read_line(line, sizeof(line), root, path) < 0)
		return 'X';
	const char *end = strrchr(line, ')');
	return end && end[1] == ' ' ? end[2] : 'X';
}

static int compare_names(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strverscmp(*x, *y);
}

void proc_names_done(struct proc_names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->at[i]);
	vec_done(names);
}

int proc_list_names(struct proc_names *out, const char *root, const char *path)
{
	char full[PATH_MAX];
	struct dirent *entry;

	*out = (struct proc_names){ 0 };
	int r = proc_path(full, sizeof(full), root, path);
	DIR *dir = r < 0 ? NULL : opendir(full);
	if (!dir)
		return r < 0 ? r : -errno;
	while (r == 0 && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		char *name = strdup(entry->d_name), **slot = name ? vec_push(out) : NULL;
		if (slot)
			*slot = name;
		else
			free(name), r = -ENOMEM;
	}
	closedir(dir);
	if (r < 0)
		proc_names_done(out);
	if (out->count)
		qsort(out->at, out->count, sizeof(*out->at), compare_names);
	return r;
}

/* "0 0 4294967295": the ids of the first user namespace, mapped to themselves. */
bool proc_in_user_namespace(const char *root)
{
	char line[64];
	unsigned long inside, outside, count;

	if (proc_read_line(line, sizeof(line), root, "/proc/self/uid_map") < 0)
		return false;
	return sscanf(line, "%lu %lu %lu", &inside, &outside, &count) == 3 &&
	       (inside || outside || count != 4294967295u);
}

static bool parse_digits(const char *text, int base, uint64_t *out)
{
	char *end;

	if (!isxdigit((unsigned char)*text))
		return false;
	errno = 0;
	unsigned long long v = strtoull(text, &end, base);
	if (errno || *end)
		return false;
	*out = v;
	return true;
}

bool parse_u64(const char *text, uint64_t *out)
{
	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		return parse_digits(text + 2, 16, out);
	return parse_digits(text, 10, out);
}

bool parse_i64(const char *text, int64_t *out)
{
	uint64_t v;
	bool minus = *text == '-';

	if (!parse_u64(text + minus, &v) || v > (uint64_t)INT64_MAX + minus)
		return false;
	*out = minus ? (int64_t)(0 - v) : (int64_t)v;
	return true;
}

bool parse_hex(const char *text, uint64_t *out)
{
	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		text += 2;
	return parse_digits(text, 16, out);
}
