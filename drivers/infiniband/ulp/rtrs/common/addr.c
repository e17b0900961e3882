// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Text formats of session names and path addresses. A path is [SRC,]DST, where SRC and DST are
 * "ip:<ipv4|ipv6>" or "gid:<gid>", separated by "," or "@". A prefix of addresses is one such
 * address, "/" and a number of bits.
 *
 * An IPv6 link-local address is followed by "%" and its scope, the network interface of its link.
 * The scope is parsed as an interface name or an ifindex. It is formatted as an ifindex, since
 * interfaces can be renamed.
 */
#include <linux/ctype.h>
#include <linux/export.h>
#include <linux/inet.h>
#include <linux/kstrtox.h>
#include <linux/string.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include <rdma/ib.h>

#include "core.h"

static int rtrs_gid_parse(const char *str, u16 port, struct sockaddr_ib *sib)
{
	const char *end;

	if (!in6_pton(str, -1, sib->sib_addr.sib_raw, -1, &end) || *end)
		return -EINVAL;
	sib->sib_family = AF_IB;
	/* Any partition key. */
	sib->sib_pkey = cpu_to_be16(0xffff);
	sib->sib_sid = cpu_to_be64(RDMA_IB_IP_PS_IB | port);
	sib->sib_sid_mask = cpu_to_be64(~0ULL);
	return 0;
}

static struct sockaddr_in6 *rtrs_sin6(const struct sockaddr_storage *ss)
{
	return (struct sockaddr_in6 *)ss;
}

/* Checks for a link-local address, which is unique only on its link and so needs a scope. */
static bool rtrs_is_link_local(const struct sockaddr_storage *ss)
{
	return ss->ss_family == AF_INET6 &&
	       ipv6_addr_type(&rtrs_sin6(ss)->sin6_addr) & IPV6_ADDR_LINKLOCAL;
}

/* Returns the ifindex, or 0 for an address without a scope. */
static u32 rtrs_scope(const struct sockaddr_storage *ss)
{
	return rtrs_is_link_local(ss) ? rtrs_sin6(ss)->sin6_scope_id : 0;
}

static void rtrs_set_scope(struct sockaddr_storage *ss, u32 scope)
{
	if (rtrs_is_link_local(ss) && !rtrs_sin6(ss)->sin6_scope_id)
		rtrs_sin6(ss)->sin6_scope_id = scope;
}

/*
 * Called after inet_pton_with_scope(), which ignores the scope of an address that can't have one.
 */
static int rtrs_scope_parse(const char *str, struct sockaddr_storage *ss)
{
	const char *scope = strchr(str, '%');
	u32 ifindex;

	if (!scope)
		return 0;
	/* Even if the number is also the name of an interface. */
	if (rtrs_is_link_local(ss) && !kstrtou32(scope + 1, 10, &ifindex))
		rtrs_sin6(ss)->sin6_scope_id = ifindex;
	return rtrs_scope(ss) ? 0 : -EINVAL;
}

static int rtrs_sockaddr_parse(struct net *net, const char *str, u16 port,
			       struct sockaddr_storage *ss)
{
	char port_str[6];
	int ret;

	memset(ss, 0, sizeof(*ss));
	if (!strncmp(str, "gid:", 4) && !net_eq(net, &init_net))
		return -EADDRNOTAVAIL;
	if (!strncmp(str, "gid:", 4))
		return rtrs_gid_parse(str + 4, port, (struct sockaddr_ib *)ss);
	if (strncmp(str, "ip:", 3))
		return -EINVAL;
	str += 3;
	snprintf(port_str, sizeof(port_str), "%u", port);
	ret = inet_pton_with_scope(net, AF_UNSPEC, str, port_str, ss);
	/*
	 * inet_pton_with_scope() accepts ":1234" at the end of an IPv4 address, but not as a port.
	 */
	if (!ret && ss->ss_family == AF_INET && str[strspn(str, "0123456789.")])
		return -EINVAL;
	return ret ?: rtrs_scope_parse(str, ss);
}

/**
 * rtrs_addr_parse() - parse a path
 * @net: network namespace of the path
 * @str: text, "[SRC,]DST" or "[SRC@]DST"
 * @port: port of DST, not 0
 * @addr: set to the addresses
 *
 * If only one of two link-local addresses has a scope, the other one gets the same scope.
 *
 * Context: process.
 * Return: 0; -EINVAL if @str is malformed or the families of SRC and DST differ; -EADDRNOTAVAIL for
 * a GID if @net isn't the initial namespace, as GIDs belong to no namespace.
 */
int rtrs_addr_parse(struct net *net, const char *str, u16 port, struct rtrs_addr *addr)
{
	char src[RTRS_PATH_STR_LEN];
	size_t len = strcspn(str, ",@");
	int ret;

	memset(&addr->src, 0, sizeof(addr->src));
	if (!port || strlen(str) >= sizeof(src))
		return -EINVAL;
	if (str[len]) {
		memcpy(src, str, len);
		src[len] = '\0';
		str += len + 1;
		ret = rtrs_sockaddr_parse(net, src, 0, &addr->src);
		if (ret)
			return ret;
	}
	ret = rtrs_sockaddr_parse(net, str, port, &addr->dst);
	if (ret)
		return ret;
	if (len && addr->src.ss_family != AF_UNSPEC &&
	    addr->src.ss_family != addr->dst.ss_family)
		return -EINVAL;
	rtrs_set_scope(&addr->dst, rtrs_scope(&addr->src));
	rtrs_set_scope(&addr->src, rtrs_scope(&addr->dst));
	return 0;
}
EXPORT_SYMBOL_GPL(rtrs_addr_parse);

/**
 * rtrs_addr_from_id() - get the addresses of a connection
 * @id: cm_id with a resolved route, or of a connection request
 * @addr: set to the addresses; the scope of link-local ones is the interface of @id
 *
 * Context: any.
 */
void rtrs_addr_from_id(const struct rdma_cm_id *id, struct rtrs_addr *addr)
{
	addr->src = id->route.addr.src_addr;
	addr->dst = id->route.addr.dst_addr;
	rtrs_set_scope(&addr->src, id->route.addr.dev_addr.bound_dev_if);
	rtrs_set_scope(&addr->dst, id->route.addr.dev_addr.bound_dev_if);
}
EXPORT_SYMBOL_GPL(rtrs_addr_from_id);

static int rtrs_end_format(const struct sockaddr_storage *ss, char *buf,
			   size_t len)
{
	int n;

	switch (ss->ss_family) {
	case AF_IB:
		return scnprintf(buf, len, "gid:%pI6",
				 &((const struct sockaddr_ib *)ss)->sib_addr);
	case AF_INET:
		return scnprintf(buf, len, "ip:%pI4",
				 &((const struct sockaddr_in *)ss)->sin_addr);
	case AF_INET6:
		n = scnprintf(buf, len, "ip:%pI6c", &rtrs_sin6(ss)->sin6_addr);
		if (rtrs_scope(ss))
			n += scnprintf(buf + n, len - n, "%%%u", rtrs_scope(ss));
		return n;
	default:
		return scnprintf(buf, len, "-");
	}
}

/**
 * rtrs_addr_format() - format a path
 * @addr: addresses of the path; AF_UNSPEC ones are omitted
 * @buf: set to "SRC@DST", NUL-terminated; RTRS_PATH_STR_LEN bytes are enough
 * @len: size of @buf
 *
 * Context: any.
 * Return: length of the text without the NUL.
 */
int rtrs_addr_format(const struct rtrs_addr *addr, char *buf, size_t len)
{
	int n = 0;

	if (addr->src.ss_family != AF_UNSPEC) {
		n = rtrs_end_format(&addr->src, buf, len);
		if (addr->dst.ss_family == AF_UNSPEC)
			return n;
		n += scnprintf(buf + n, len - n, "@");
	}
	return n + rtrs_end_format(&addr->dst, buf + n, len - n);
}
EXPORT_SYMBOL_GPL(rtrs_addr_format);

/**
 * rtrs_addr_port() - get the server's port from a path's addresses
 * @addr: result of rtrs_addr_parse()
 *
 * Context: any.
 * Return: the destination port.
 */
u16 rtrs_addr_port(const struct rtrs_addr *addr)
{
	const struct sockaddr_ib *sib = (const struct sockaddr_ib *)&addr->dst;
	const struct sockaddr_in6 *sin6 = (const struct sockaddr_in6 *)&addr->dst;

	if (addr->dst.ss_family == AF_IB)
		return be64_to_cpu(sib->sib_sid);
	/* IPv4 addresses have the port at the same offset. */
	return ntohs(sin6->sin6_port);
}
EXPORT_SYMBOL_GPL(rtrs_addr_port);

/**
 * rtrs_addr_bytes() - get the bytes of an address, without port and scope
 * @ss: an IP address or a GID
 * @len: set to the number of bytes; 0 if @ss is neither
 *
 * Return: the bytes, in network order.
 */
const u8 *rtrs_addr_bytes(const struct sockaddr_storage *ss, size_t *len)
{
	switch (ss->ss_family) {
	case AF_INET:
		*len = sizeof(struct in_addr);
		return (const u8 *)&((const struct sockaddr_in *)ss)->sin_addr;
	case AF_INET6:
		*len = sizeof(struct in6_addr);
		return rtrs_sin6(ss)->sin6_addr.s6_addr;
	case AF_IB:
		*len = sizeof(struct ib_addr);
		return ((const struct sockaddr_ib *)ss)->sib_addr.sib_raw;
	default:
		*len = 0;
		return (const u8 *)ss;
	}
}

/**
 * rtrs_addr_same_host() - compare two addresses without their ports
 * @a: an IP address or a GID
 * @b: another one
 *
 * Return: true if the addresses are the same; false if their families differ.
 */
bool rtrs_addr_same_host(const struct sockaddr_storage *a,
			 const struct sockaddr_storage *b)
{
	size_t len;
	const u8 *x = rtrs_addr_bytes(a, &len), *y = rtrs_addr_bytes(b, &len);

	return len && a->ss_family == b->ss_family && !memcmp(x, y, len) &&
	       rtrs_scope(a) == rtrs_scope(b);
}
EXPORT_SYMBOL_GPL(rtrs_addr_same_host);

/**
 * rtrs_prefix_parse() - parse a prefix of addresses
 * @net: network namespace for the lookup of interface names
 * @str: text, "ip:ADDRESS" or "gid:GID", optionally followed by "/BITS"
 * @prefix: set to the prefix; without BITS it contains only that address
 *
 * Context: process.
 * Return: 0, or -EINVAL if @str is malformed.
 */
int rtrs_prefix_parse(struct net *net, const char *str, struct rtrs_prefix *prefix)
{
	char addr[RTRS_PATH_STR_LEN];
	size_t len = strcspn(str, "/");
	unsigned int most;

	if (len >= sizeof(addr))
		return -EINVAL;
	memcpy(addr, str, len);
	addr[len] = '\0';
	/* A prefix of GIDs is valid in any namespace. */
	if (!strncmp(addr, "gid:", 4))
		net = &init_net;
	if (rtrs_sockaddr_parse(net, addr, 0, &prefix->addr))
		return -EINVAL;
	most = prefix->addr.ss_family == AF_INET ? 32 : 128;
	prefix->bits = most;
	if (str[len] && (kstrtouint(str + len + 1, 10, &prefix->bits) || prefix->bits > most))
		return -EINVAL;
	return 0;
}
EXPORT_SYMBOL_GPL(rtrs_prefix_parse);

/**
 * rtrs_prefix_format() - format a prefix of addresses
 * @prefix: result of rtrs_prefix_parse()
 * @buf: set to text in the format of rtrs_prefix_parse(); RTRS_PATH_STR_LEN bytes are enough
 * @len: size of @buf
 *
 * Context: any.
 * Return: length of the text without the NUL.
 */
int rtrs_prefix_format(const struct rtrs_prefix *prefix, char *buf, size_t len)
{
	int n = rtrs_end_format(&prefix->addr, buf, len);

	return n + scnprintf(buf + n, len - n, "/%u", prefix->bits);
}
EXPORT_SYMBOL_GPL(rtrs_prefix_format);

/**
 * rtrs_prefix_has() - check whether a prefix contains an address
 * @prefix: result of rtrs_prefix_parse()
 * @ss: an IP address or a GID. The port is ignored, and so is the scope if the prefix has none
 *
 * Context: any.
 * Return: true if it does; false if the families differ.
 */
bool rtrs_prefix_has(const struct rtrs_prefix *prefix, const struct sockaddr_storage *ss)
{
	const struct sockaddr_storage *own = &prefix->addr;
	unsigned int bytes = prefix->bits / 8, bits = prefix->bits % 8;
	size_t len;
	const u8 *a = rtrs_addr_bytes(own, &len), *b = rtrs_addr_bytes(ss, &len);

	if (!len || own->ss_family != ss->ss_family ||
	    (rtrs_scope(own) && rtrs_scope(own) != rtrs_scope(ss)))
		return false;
	return !memcmp(a, b, bytes) && (!bits || !((a[bytes] ^ b[bytes]) >> (8 - bits)));
}
EXPORT_SYMBOL_GPL(rtrs_prefix_has);

/**
 * rtrs_name_valid() - check whether text is a valid session name
 * @name: NUL-terminated text
 *
 * A name is used as a directory in sysfs and as a part of directory names, and is sent to the
 * server. So a name is not empty, its length with the NUL is at most RTRS_NAME_LEN, and it contains
 * no '/', no '.', and no blank or unprintable characters.
 *
 * Context: any.
 * Return: true if the name is valid.
 */
bool rtrs_name_valid(const char *name)
{
	size_t len = strnlen(name, RTRS_NAME_LEN);
	size_t i;

	if (!len || len == RTRS_NAME_LEN)
		return false;
	for (i = 0; i < len; i++)
		if (name[i] == '/' || name[i] == '.' || !isgraph(name[i]))
			return false;
	return true;
}
EXPORT_SYMBOL_GPL(rtrs_name_valid);
