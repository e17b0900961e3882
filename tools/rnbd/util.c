// SPDX-License-Identifier: GPL-2.0
/*
 * Memory, time, and parsing of numbers, sizes and addresses
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <err.h>
#include <errno.h>
#include <math.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rnbd.h"

/* Exit if an allocation has failed. */
static void *checked(void *p)
{
	if (!p)
		err(exit_failed, "no memory");
	return p;
}

void *xcalloc(size_t nr, size_t size)
{
	return checked(calloc(nr ? nr : 1, size));
}

void *xrealloc(void *p, size_t nr, size_t size)
{
	return checked(reallocarray(p, nr ? nr : 1, size));
}

char *xstrdup(const char *s)
{
	return checked(strdup(s));
}

char *xasprintf(const char *fmt, ...)
{
	va_list args;
	char *text;
	int n;

	va_start(args, fmt);
	n = vasprintf(&text, fmt, args);
	va_end(args);
	return checked(n < 0 ? NULL : text);
}

/* Append KEY=VALUE to *@text, which is NULL or from malloc(), after a blank if it is not empty. */
void add_pair(char **text, const char *key, const char *value)
{
	bool first = !*text || !**text;
	char *longer = xasprintf("%s%s%s=%s", first ? "" : *text, first ? "" : " ", key, value);

	free(*text);
	*text = longer;
}

/* Get the time of a monotonic clock in seconds. */
double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* Sleep, until a signal arrives. */
void nap(double seconds)
{
	struct timespec ts;

	if (seconds <= 0)
		return;
	ts.tv_sec = seconds;
	ts.tv_nsec = (seconds - ts.tv_sec) * 1e9;
	nanosleep(&ts, NULL);
}

bool starts_with(const char *s, const char *with)
{
	return !strncmp(s, with, strlen(with));
}

bool parse_number(const char *text, long long min, long long max, long long *value)
{
	char *end;

	errno = 0;
	*value = strtoll(text, &end, 10);
	return !errno && !isspace((unsigned char)*text) && end != text && !*end &&
	       *value >= min && *value <= max;
}

bool parse_seconds(const char *text, double *seconds)
{
	char *end;

	*seconds = strtod(text, &end);
	return end != text && !*end && isfinite(*seconds) && *seconds > 0 && *seconds < 1e6;
}

/* Parse a size in bytes, or with a unit: s (sectors), B (bytes), K, M, G, T or P. */
bool parse_size(const char *text, long long *bytes)
{
	static const struct {
		char name;
		long long bytes;
	} units[] = {
		{ 0, 1 }, { 'B', 1 }, { 'S', SECTOR }, { 'K', 1LL << 10 }, { 'M', 1LL << 20 },
		{ 'G', 1LL << 30 }, { 'T', 1LL << 40 }, { 'P', 1LL << 50 },
	};
	long long n;
	char *end;
	size_t i;

	errno = 0;
	n = strtoll(text, &end, 10);
	if (errno || end == text || n < 0 || (*end && end[1]))
		return false;
	for (i = 0; i < ARRAY_SIZE(units); i++)
		if (toupper((unsigned char)*end) == units[i].name)
			return !__builtin_mul_overflow(n, units[i].bytes, bytes);
	return false;
}

static bool is_ip(const char *text)
{
	struct in6_addr buf;

	return inet_pton(AF_INET, text, &buf) == 1 || inet_pton(AF_INET6, text, &buf) == 1;
}

/* Check for an IPv6 link-local address, "%", and the name or ifindex of an interface. */
static bool has_scope(const char *text)
{
	const char *scope = strchr(text, '%');
	struct in6_addr buf;
	bool is = false;
	char *address;

	if (!scope || !is_word(scope + 1) || strpbrk(scope + 1, "%/") || !strcmp(scope, "%0"))
		return false;
	address = xasprintf("%.*s", (int)(scope - text), text);
	if (inet_pton(AF_INET6, address, &buf) == 1)
		is = IN6_IS_ADDR_LINKLOCAL(&buf);
	free(address);
	return is;
}

/* Convert "%NAME" to "%IFINDEX". A number is an ifindex, even if it is an interface's name. */
static char *scope_number(const char *scope)
{
	unsigned int ifindex = 0;

	if (scope[1 + strspn(scope + 1, "0123456789")])
		ifindex = if_nametoindex(scope + 1);
	return ifindex ? xasprintf("%%%u", ifindex) : NULL;
}

/* Convert "%IFINDEX" to "%NAME". */
static char *scope_name(const char *scope)
{
	char name[IF_NAMESIZE];
	long long ifindex;

	if (!parse_number(scope + 1, 1, UINT32_MAX, &ifindex) || !if_indextoname(ifindex, name))
		return NULL;
	return xasprintf("%%%s", name);
}

/* Replace each "%INTERFACE" in addresses by the result of @other, unless that is NULL. */
static char *replace_scopes(const char *text, char *(*other)(const char *scope))
{
	char *whole = xstrdup(""), *longer, *part, *replaced;
	size_t n;

	for (; *text; text += n) {
		n = *text == '%' ? 1 + strcspn(text + 1, "%@,/ ") : strcspn(text, "%");
		part = xasprintf("%.*s", (int)n, text);
		replaced = *part == '%' ? other(part) : NULL;
		longer = xasprintf("%s%s", whole, replaced ? replaced : part);
		free(replaced);
		free(part);
		free(whole);
		whole = longer;
	}
	return whole;
}

/* Convert interfaces in addresses to the kernel's format, the ifindex. */
char *number_scopes(const char *text)
{
	return replace_scopes(text, scope_number);
}

/* Convert interfaces in addresses to names, which persist across reboots. */
char *name_scopes(const char *text)
{
	return replace_scopes(text, scope_name);
}

/* Convert "ip:ADDRESS", "gid:GID" or a plain address to the kernel's format. NULL if invalid. */
char *parse_address(const char *text)
{
	if (starts_with(text, "gid:"))
		return is_ip(text + 4) ? xstrdup(text) : NULL;
	if (starts_with(text, "ip:"))
		text += 3;
	return is_ip(text) || has_scope(text) ? xasprintf("ip:%s", text) : NULL;
}

/* Convert "[SRC,]DST" or "[SRC@]DST" to the kernel's format. NULL if invalid. */
char *parse_path(const char *text)
{
	char *copy = xstrdup(text), *dst, *src, *path = NULL;
	char *cut = strpbrk(copy, ",@");

	if (!cut) {
		free(copy);
		return parse_address(text);
	}
	*cut = 0;
	src = parse_address(copy);
	dst = parse_address(cut + 1);
	if (src && dst)
		path = xasprintf("%s,%s", src, dst);
	free(src);
	free(dst);
	free(copy);
	return path;
}
