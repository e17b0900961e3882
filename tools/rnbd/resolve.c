// SPDX-License-Identifier: GPL-2.0
/*
 * Names of hosts in paths. They are resolved only on the command line. The kernel takes addresses
 * only, and so does the table of volumes, since a name may not resolve yet during a boot.
 */
#include <ctype.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "volumes.h"

/* Check for a decimal or hexadecimal number, as in the last part of an incomplete IPv4 address. */
static bool is_number(const char *text, size_t n)
{
	const char *digits = "0123456789";

	if (n >= 2 && *text == '0' && tolower((unsigned char)text[1]) == 'x') {
		digits = "0123456789abcdefABCDEF";
		text += 2;
		n -= 2;
	}
	return strspn(text, digits) >= n;
}

/*
 * Check for the name of a host. getaddrinfo() also takes "10.0.0" for an address, so a name must
 * not end in a number.
 */
static bool is_host(const char *text)
{
	const char *last;
	size_t n;

	for (;; text += n + 1) {
		for (n = 0; isascii(text[n]) && (isalnum(text[n]) || text[n] == '-'); n++)
			;
		if (!n || *text == '-')
			return false;
		last = text;
		/* One dot may follow the last part. */
		if (!text[n] || (text[n] == '.' && !text[n + 1]))
			return !is_number(last, n);
		if (text[n] != '.')
			return false;
	}
}

static int report_unresolved(const char *name, int error)
{
	char *closest = closest_word(ACCESS_MODES " from", name);

	report_not_found("host name %s does not resolve: %s%s%s%s", name, gai_strerror(error),
			 closest ? "; or did you mean " : "", closest ? closest : "",
			 closest ? "?" : "");
	free(closest);
	return RNBD_NOT_FOUND;
}

/* Resolve a name to its first address, in the kernel's format. */
static int resolve(const char *name, int family, char **address)
{
	const struct addrinfo hints = { .ai_family = family, .ai_socktype = SOCK_STREAM };
	struct addrinfo *found;
	char text[NI_MAXHOST];
	int error;

	error = getaddrinfo(name, NULL, &hints, &found);
	if (error)
		return report_unresolved(name, error);
	error = getnameinfo(found->ai_addr, found->ai_addrlen, text, sizeof(text), NULL, 0,
			    NI_NUMERICHOST);
	freeaddrinfo(found);
	if (error)
		return report_unresolved(name, error);
	*address = parse_address(text);
	return *address ? RNBD_OK : report_bad_path(text);
}

/* Get the family of an address in the kernel's format. */
static int family_of(const char *address)
{
	if (!address || !starts_with(address, "ip:"))
		return AF_UNSPEC;
	return strchr(address + 3, ':') ? AF_INET6 : AF_INET;
}

/* Resolve the one or two parts of a path. @src is NULL if there is only a destination. */
static int resolve_parts(const char *text, const char *src, const char *dst, char **path)
{
	char *from = src ? parse_address(src) : NULL, *to = parse_address(dst);
	int ret = RNBD_OK;

	if ((!to && !is_host(dst)) || (src && !from && !is_host(src)))
		ret = report_bad_path(text);
	if (!ret && !to)
		ret = resolve(dst, family_of(from), &to);
	if (!ret && src && !from)
		ret = resolve(src, family_of(to), &from);
	if (!ret)
		*path = src ? xasprintf("%s,%s", from, to) : xstrdup(to);
	free(from);
	free(to);
	return ret;
}

/*
 * Convert "[SRC,]DST" or "[SRC@]DST" to the kernel's format; both may be names of hosts. The caller
 * frees @path. Returns an exit code; errors are reported.
 */
int resolve_path(const char *text, char **path)
{
	char *copy = xstrdup(text), *cut = strpbrk(copy, ",@");
	int ret;

	if (cut)
		*cut = 0;
	ret = resolve_parts(text, cut ? copy : NULL, cut ? cut + 1 : copy, path);
	free(copy);
	return ret;
}
