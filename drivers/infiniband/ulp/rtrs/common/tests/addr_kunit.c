// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of addresses and names.
 */
#include <kunit/test.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <rdma/ib.h>

#include "../core.h"

#define V4	AF_INET
#define V6	AF_INET6
#define GID	AF_IB

/* Text that is parsed, and the text that its result is formatted as. */
static const struct addr_case {
	const char *desc;
	const char *str;
	u16 family;
	u8 dst[16];
	const char *shown;
} addr_cases[] = {
	{ "IPv4", "ip:192.168.1.2", V4, { 192, 168, 1, 2 }, "ip:192.168.1.2" },
	{ "IPv4, least", "ip:0.0.0.0", V4, { 0 }, "ip:0.0.0.0" },
	{ "IPv4, greatest", "ip:255.255.255.255", V4, { 255, 255, 255, 255 },
	  "ip:255.255.255.255" },
	{ "IPv4 with source, comma", "ip:10.0.0.1,ip:10.0.0.2", V4, { 10, 0, 0, 2 },
	  "ip:10.0.0.1@ip:10.0.0.2" },
	{ "IPv4 with source, at", "ip:10.0.0.1@ip:10.0.0.2", V4, { 10, 0, 0, 2 },
	  "ip:10.0.0.1@ip:10.0.0.2" },
	{ "IPv6", "ip:fd00::2", V6, { 0xfd, [15] = 2 }, "ip:fd00::2" },
	{ "IPv6 in full", "ip:fd00:0001:0203:0405:0607:0809:0a0b:0c0d", V6,
	  { 0xfd, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13 },
	  "ip:fd00:1:203:405:607:809:a0b:c0d" },
	{ "IPv6, none", "ip:::", V6, { 0 }, "ip:::" },
	{ "IPv6 in capitals", "ip:FD00::AB", V6, { 0xfd, [15] = 0xab }, "ip:fd00::ab" },
	{ "IPv6 with source", "ip:fd00::1,ip:fd00::2", V6, { 0xfd, [15] = 2 },
	  "ip:fd00::1@ip:fd00::2" },
	{ "IPv4 in IPv6", "ip:::ffff:1.2.3.4", V6, { [10] = 0xff, 0xff, 1, 2, 3, 4 },
	  "ip:::ffff:1.2.3.4" },
	{ "IPv6 link-local", "ip:fe80::2", V6, { 0xfe, 0x80, [15] = 2 }, "ip:fe80::2" },
	{ "IPv6 link-local with a name of an interface", "ip:fe80::2%lo", V6,
	  { 0xfe, 0x80, [15] = 2 }, "ip:fe80::2%1" },
	{ "IPv6 link-local with an ifindex", "ip:fe80::2%77", V6, { 0xfe, 0x80, [15] = 2 },
	  "ip:fe80::2%77" },
	{ "IPv6 link-local with source", "ip:fe80::1%7,ip:fe80::2%7", V6,
	  { 0xfe, 0x80, [15] = 2 }, "ip:fe80::1%7@ip:fe80::2%7" },
	{ "IPv6 link-local, scope of the source alone", "ip:fe80::1%7,ip:fe80::2", V6,
	  { 0xfe, 0x80, [15] = 2 }, "ip:fe80::1%7@ip:fe80::2%7" },
	{ "IPv6 link-local, scope of the destination alone", "ip:fe80::1@ip:fe80::2%7", V6,
	  { 0xfe, 0x80, [15] = 2 }, "ip:fe80::1%7@ip:fe80::2%7" },
	{ "IPv6 link-local to a global address", "ip:fe80::1%7,ip:fd00::2", V6,
	  { 0xfd, [15] = 2 }, "ip:fe80::1%7@ip:fd00::2" },
	{ "GID", "gid:fe80::2", GID, { 0xfe, 0x80, [15] = 2 },
	  "gid:fe80:0000:0000:0000:0000:0000:0000:0002" },
	{ "GID in full", "gid:fe80:0000:0000:0000:0002:c903:0010:c0f5", GID,
	  { 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 2, 0xc9, 3, 0, 0x10, 0xc0, 0xf5 },
	  "gid:fe80:0000:0000:0000:0002:c903:0010:c0f5" },
	{ "GID with source", "gid:fe80::1@gid:fe80::2", GID, { 0xfe, 0x80, [15] = 2 },
	  "gid:fe80:0000:0000:0000:0000:0000:0000:0001@gid:fe80:0000:0000:0000:0000:0000:0000:0002"
	},
};

KUNIT_ARRAY_PARAM_DESC(addr_cases, addr_cases, desc);

static const void *addr_of(const struct sockaddr_storage *ss, size_t *len)
{
	switch (ss->ss_family) {
	case AF_INET:
		*len = 4;
		return &((const struct sockaddr_in *)ss)->sin_addr;
	case AF_INET6:
		*len = 16;
		return &((const struct sockaddr_in6 *)ss)->sin6_addr;
	default:
		*len = 16;
		return &((const struct sockaddr_ib *)ss)->sib_addr;
	}
}

static u16 port_of(const struct sockaddr_storage *ss)
{
	switch (ss->ss_family) {
	case AF_INET:
		return ntohs(((const struct sockaddr_in *)ss)->sin_port);
	case AF_INET6:
		return ntohs(((const struct sockaddr_in6 *)ss)->sin6_port);
	default:
		return be64_to_cpu(((const struct sockaddr_ib *)ss)->sib_sid);
	}
}

static void addr_is_read_and_shown(struct kunit *test)
{
	static const u16 ports[] = { 1, 1234, 65535 };
	const struct addr_case *c = test->param_value;
	char shown[RTRS_PATH_STR_LEN];
	struct rtrs_addr addr;
	const void *dst;
	size_t len, i;

	for (i = 0; i < ARRAY_SIZE(ports); i++) {
		memset(&addr, 0x5a, sizeof(addr));
		KUNIT_ASSERT_EQ(test, rtrs_addr_parse(&init_net, c->str, ports[i], &addr), 0);
		KUNIT_EXPECT_EQ(test, addr.dst.ss_family, c->family);
		KUNIT_EXPECT_EQ(test, port_of(&addr.dst), ports[i]);
		dst = addr_of(&addr.dst, &len);
		KUNIT_EXPECT_EQ(test, memcmp(dst, c->dst, len), 0);
		if (strpbrk(c->str, ",@"))
			KUNIT_EXPECT_EQ(test, port_of(&addr.src), 0);
		else
			KUNIT_EXPECT_EQ(test, addr.src.ss_family, AF_UNSPEC);
	}
	KUNIT_EXPECT_EQ(test, rtrs_addr_format(&addr, shown, sizeof(shown)), (int)strlen(c->shown));
	KUNIT_EXPECT_STREQ(test, shown, c->shown);
}

#define X16	"xxxxxxxxxxxxxxxx"
#define O16	"0000000000000000"

static const struct bad_addr_case {
	const char *desc;
	const char *str;
} bad_addr_cases[] = {
	{ "nothing", "" },
	{ "only a comma", "," },
	{ "only an at", "@" },
	{ "no kind", "1.2.3.4" },
	{ "a kind alone", "ip:" },
	{ "a kind alone, GID", "gid:" },
	{ "half a kind", "gi:fe80::1" },
	{ "a kind in capitals", "IP:1.2.3.4" },
	{ "another kind", "tcp:1.2.3.4" },
	{ "a kind twice", "ip:ip:1.2.3.4" },
	{ "a space in front", " ip:1.2.3.4" },
	{ "a space behind", "ip:1.2.3.4 " },
	{ "a space in between", "ip: 1.2.3.4" },
	{ "a name", "ip:localhost" },
	{ "three numbers", "ip:1.2.3" },
	{ "five numbers", "ip:1.2.3.4.5" },
	{ "a number above 255", "ip:1.2.3.256" },
	{ "a number beyond 32 bits", "ip:1.2.3.4294967297" },
	{ "a negative number", "ip:1.2.3.-4" },
	{ "a port", "ip:1.2.3.4:1234" },
	{ "a colon behind", "ip:1.2.3.4:" },
	{ "another line", "ip:1.2.3.4\nip" },
	{ "a port, at the source", "ip:1.2.3.5:80,ip:1.2.3.4" },
	{ "a prefix length", "ip:1.2.3.4/24" },
	{ "nine groups", "ip:1:2:3:4:5:6:7:8:9" },
	{ "seven groups", "ip:1:2:3:4:5:6:7" },
	{ "two gaps", "ip:1::2::3" },
	{ "three colons", "ip:fd00:::1" },
	{ "a group of five digits", "ip:fd00::12345" },
	{ "no hexadecimal digit", "ip:fd00::g" },
	{ "brackets", "ip:[fd00::1]" },
	{ "an interface that isn't there", "ip:fe80::1%nosuchdev" },
	{ "an interface with a long name", "ip:fe80::1%" X16 X16 },
	{ "an empty scope", "ip:fe80::1%" },
	{ "a scope of 0", "ip:fe80::1%0" },
	{ "a negative scope", "ip:fe80::1%-1" },
	{ "a scope beyond 32 bits", "ip:fe80::1%4294967296" },
	{ "two scopes", "ip:fe80::1%lo%lo" },
	{ "a scope of a global address", "ip:fd00::1%lo" },
	{ "a scope of IPv4", "ip:1.2.3.4%lo" },
	{ "GID with rubbish behind", "gid:fe80::1x" },
	{ "GID with a scope", "gid:fe80::1%1" },
	{ "GID as IPv4", "gid:1.2.3.4" },
	{ "GID of nine groups", "gid:1:2:3:4:5:6:7:8:9" },
	{ "no destination", "ip:1.2.3.4," },
	{ "no source", ",ip:1.2.3.4" },
	{ "no source, at", "@ip:1.2.3.4" },
	{ "two separators", "ip:1.2.3.4,,ip:1.2.3.5" },
	{ "three addresses", "ip:1.2.3.4,ip:1.2.3.5,ip:1.2.3.6" },
	{ "a bad source", "ip:1.2.3.400,ip:1.2.3.4" },
	{ "a bad destination", "ip:1.2.3.4,ip:1.2.3.400" },
	{ "IPv4 to IPv6", "ip:1.2.3.4,ip:fd00::1" },
	{ "IPv6 to IPv4", "ip:fd00::1,ip:1.2.3.4" },
	{ "IPv6 to GID", "ip:fe80::1,gid:fe80::2" },
	{ "GID to IPv4", "gid:fe80::1,ip:1.2.3.4" },
	{ "127 characters, too many digits", "ip:" O16 O16 O16 O16 O16 O16 O16 "00000000.0.0" },
	{ "128 characters, too many digits", "ip:" O16 O16 O16 O16 O16 O16 O16 "00000000.0.00" },
	{ "129 characters of source", X16 X16 X16 X16 X16 X16 X16 X16 "x,ip:1.2.3.4" },
	{ "a percent sign for printing", "ip:%s%s%s%n" },
};

KUNIT_ARRAY_PARAM_DESC(bad_addr_cases, bad_addr_cases, desc);

static void addr_is_refused(struct kunit *test)
{
	const struct bad_addr_case *c = test->param_value;
	struct rtrs_addr addr;

	KUNIT_EXPECT_EQ(test, rtrs_addr_parse(&init_net, c->str, 1234, &addr), -EINVAL);
}

static void addr_needs_a_port(struct kunit *test)
{
	struct rtrs_addr addr;

	KUNIT_EXPECT_EQ(test, rtrs_addr_parse(&init_net, "ip:1.2.3.4", 0, &addr), -EINVAL);
	KUNIT_EXPECT_EQ(test, rtrs_addr_parse(&init_net, "gid:fe80::1", 0, &addr), -EINVAL);
}

/* GIDs are not specific to a namespace. */
static void addr_in_another_namespace_is_no_gid(struct kunit *test)
{
	struct net *other = kunit_kzalloc(test, sizeof(*other), GFP_KERNEL);
	struct rtrs_addr addr;

	KUNIT_ASSERT_NOT_NULL(test, other);
	KUNIT_EXPECT_EQ(test, rtrs_addr_parse(other, "ip:1.2.3.4,ip:1.2.3.5", 1, &addr), 0);
	KUNIT_EXPECT_EQ(test, rtrs_addr_parse(other, "gid:fe80::1", 1, &addr), -EADDRNOTAVAIL);
	KUNIT_EXPECT_EQ(test, rtrs_addr_parse(other, "gid:fe80::1,ip:1.2.3.5", 1, &addr),
			-EADDRNOTAVAIL);
	KUNIT_EXPECT_EQ(test, rtrs_addr_parse(other, "ip:1.2.3.5,gid:fe80::1", 1, &addr),
			-EADDRNOTAVAIL);
}

#define LONGEST(end)	"fe80:1111:1111:1111:1112:c903:1111:c0" end "%99999999"

static const char longest[] = "ip:" LONGEST("f5") "@ip:" LONGEST("f6");

static void addr_of_the_longest_form_is_shown_whole_or_cut(struct kunit *test)
{
	char buf[RTRS_PATH_STR_LEN];
	struct rtrs_addr addr;
	size_t len;

	KUNIT_ASSERT_EQ(test, rtrs_addr_parse(&init_net, longest, 1234, &addr), 0);
	for (len = 1; len <= sizeof(buf); len++) {
		memset(buf, 'x', sizeof(buf));
		KUNIT_ASSERT_EQ(test, rtrs_addr_format(&addr, buf, len),
				(int)min(len - 1, strlen(longest)));
		KUNIT_ASSERT_EQ(test, strncmp(buf, longest, len - 1), 0);
		if (len < sizeof(buf))
			KUNIT_ASSERT_EQ(test, buf[len], 'x');
	}
}

/* Link-local addresses without a scope get the interface of the connection. */
static const struct id_case {
	const char *desc;
	const char *src, *dst;
	int ifindex;
	const char *shown;
} id_cases[] = {
	{ "IPv4", "ip:10.0.0.1", "ip:10.0.0.2", 7, "ip:10.0.0.1@ip:10.0.0.2" },
	{ "IPv6", "ip:fd00::1", "ip:fd00::2", 7, "ip:fd00::1@ip:fd00::2" },
	{ "GID", "gid:fe80::1", "gid:fe80::2", 7,
	  "gid:fe80:0000:0000:0000:0000:0000:0000:0001@gid:fe80:0000:0000:0000:0000:0000:0000:0002"
	},
	{ "link-local", "ip:fe80::1", "ip:fe80::2", 7, "ip:fe80::1%7@ip:fe80::2%7" },
	{ "link-local, the interface isn't known", "ip:fe80::1", "ip:fe80::2", 0,
	  "ip:fe80::1@ip:fe80::2" },
	{ "link-local, of a port of a bond", "ip:fe80::1%3", "ip:fe80::2%3", 7,
	  "ip:fe80::1%3@ip:fe80::2%3" },
	{ "only the source is link-local", "ip:fe80::1", "ip:fd00::2", 7,
	  "ip:fe80::1%7@ip:fd00::2" },
};

KUNIT_ARRAY_PARAM_DESC(id_cases, id_cases, desc);

static void connection_has_addresses(struct kunit *test)
{
	const struct id_case *c = test->param_value;
	struct rdma_cm_id *id = kunit_kzalloc(test, sizeof(*id), GFP_KERNEL);
	char shown[RTRS_PATH_STR_LEN];
	struct rtrs_addr addr;

	KUNIT_ASSERT_NOT_NULL(test, id);
	KUNIT_ASSERT_EQ(test, rtrs_addr_parse(&init_net, c->src, 1, &addr), 0);
	id->route.addr.src_addr = addr.dst;
	KUNIT_ASSERT_EQ(test, rtrs_addr_parse(&init_net, c->dst, 1, &addr), 0);
	id->route.addr.dst_addr = addr.dst;
	id->route.addr.dev_addr.bound_dev_if = c->ifindex;

	memset(&addr, 0x5a, sizeof(addr));
	rtrs_addr_from_id(id, &addr);
	rtrs_addr_format(&addr, shown, sizeof(shown));
	KUNIT_EXPECT_STREQ(test, shown, c->shown);
}

static const struct name_case {
	const char *desc;
	const char *name;
	bool valid;
} name_cases[] = {
	{ "one character", "a", true },
	{ "letters, digits and signs", "Host-1_a:b@c!~", true },
	{ "nothing", "", false },
	{ "a slash", "a/b", false },
	{ "a slash in front", "/a", false },
	{ "a dot", "a.b", false },
	{ "a dot alone", ".", false },
	{ "two dots", "..", false },
	{ "a dot at the end", "a.", false },
	{ "a space", "a b", false },
	{ "a tab", "a\tb", false },
	{ "a line's end", "a\n", false },
	{ "the first control character", "\x01", false },
	{ "the last control character", "a\x7f", false },
	{ "a byte above ASCII that is no letter", "a\x80", false },
};

KUNIT_ARRAY_PARAM_DESC(name_cases, name_cases, desc);

static void name_is_valid_or_not(struct kunit *test)
{
	const struct name_case *c = test->param_value;

	KUNIT_EXPECT_EQ(test, rtrs_name_valid(c->name), c->valid);
}

static void name_is_as_long_as_may_be(struct kunit *test)
{
	char name[300] = "";
	size_t len;

	for (len = 0; len < sizeof(name) - 1; len++) {
		KUNIT_ASSERT_EQ(test, rtrs_name_valid(name), len > 0 && len <= 254);
		name[len] = 'a';
	}
}

/* As received from a client; KASAN detects reads beyond its end. */
static void name_without_end_is_refused(struct kunit *test)
{
	char *name = kunit_kmalloc(test, RTRS_NAME_LEN, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, name);
	memset(name, 'a', RTRS_NAME_LEN);
	KUNIT_EXPECT_FALSE(test, rtrs_name_valid(name));
	name[RTRS_NAME_LEN - 1] = '\0';
	KUNIT_EXPECT_TRUE(test, rtrs_name_valid(name));
}

static const struct host_case {
	const char *desc;
	const char *a, *b;
	bool same;
} host_cases[] = {
	{ "IPv4", "ip:10.0.0.1", "ip:10.0.0.1", true },
	{ "IPv4, another", "ip:10.0.0.1", "ip:10.0.0.2", false },
	{ "IPv6", "ip:fd00::1", "ip:fd00::1", true },
	{ "IPv6, another", "ip:fd00::1", "ip:fd01::1", false },
	{ "link-local, the same link", "ip:fe80::1%1", "ip:fe80::1%lo", true },
	{ "link-local, another link", "ip:fe80::1%1", "ip:fe80::1%2", false },
	{ "link-local, another address", "ip:fe80::1%1", "ip:fe80::2%1", false },
	{ "IPv4, and the same in IPv6", "ip:10.0.0.1", "ip:::ffff:10.0.0.1", false },
	{ "GID", "gid:fe80::1", "gid:fe80::1", true },
	{ "GID, another", "gid:fe80::1", "gid:fe80::2", false },
	{ "IPv6, and the same as a GID", "ip:fd00::1", "gid:fd00::1", false },
};

KUNIT_ARRAY_PARAM_DESC(host_cases, host_cases, desc);

/* The port is ignored. */
static void host_is_the_same_or_not(struct kunit *test)
{
	const struct host_case *c = test->param_value;
	struct rtrs_addr a, b;

	KUNIT_ASSERT_EQ(test, rtrs_addr_parse(&init_net, c->a, 1, &a), 0);
	KUNIT_ASSERT_EQ(test, rtrs_addr_parse(&init_net, c->b, 2, &b), 0);
	KUNIT_EXPECT_EQ(test, rtrs_addr_same_host(&a.dst, &b.dst), c->same);
	KUNIT_EXPECT_EQ(test, rtrs_addr_same_host(&b.dst, &a.dst), c->same);
}

static void no_address_is_no_host(struct kunit *test)
{
	struct sockaddr_storage a = {}, b = {};

	KUNIT_EXPECT_FALSE(test, rtrs_addr_same_host(&a, &b));
}

static const struct prefix_case {
	const char *desc;
	const char *str, *addr;
	bool has;
	const char *shown;
} prefix_cases[] = {
	{ "an address", "ip:10.0.0.1", "ip:10.0.0.1", true, "ip:10.0.0.1/32" },
	{ "its neighbour", "ip:10.0.0.1", "ip:10.0.0.0", false, "ip:10.0.0.1/32" },
	{ "a network", "ip:10.1.0.0/16", "ip:10.1.255.255", true, "ip:10.1.0.0/16" },
	{ "the network behind", "ip:10.1.0.0/16", "ip:10.2.0.0", false, "ip:10.1.0.0/16" },
	{ "the network before", "ip:10.1.0.0/16", "ip:10.0.255.255", false, "ip:10.1.0.0/16" },
	{ "a network by one of its addresses", "ip:10.1.2.3/16", "ip:10.1.9.9", true,
	  "ip:10.1.2.3/16" },
	{ "bits within a byte", "ip:10.0.0.128/25", "ip:10.0.0.129", true, "ip:10.0.0.128/25" },
	{ "bits within a byte, not", "ip:10.0.0.128/25", "ip:10.0.0.127", false,
	  "ip:10.0.0.128/25" },
	{ "all of IPv4", "ip:0.0.0.0/0", "ip:255.1.2.3", true, "ip:0.0.0.0/0" },
	{ "all of IPv4 are not of IPv6", "ip:0.0.0.0/0", "ip:fd00::1", false, "ip:0.0.0.0/0" },
	{ "all of IPv6", "ip:::/0", "ip:fd00::1", true, "ip:::/0" },
	{ "all of IPv6 are not of IPv4", "ip:::/0", "ip:10.0.0.1", false, "ip:::/0" },
	{ "all of IPv6 are no GIDs", "ip:::/0", "gid:fd00::1", false, "ip:::/0" },
	{ "IPv6", "ip:fd00:1::/33", "ip:fd00:1:7fff::1", true, "ip:fd00:1::/33" },
	{ "IPv6, not", "ip:fd00:1::/33", "ip:fd00:1:8000::1", false, "ip:fd00:1::/33" },
	{ "IPv6, the last bit", "ip:fd00::1", "ip:fd00::", false, "ip:fd00::1/128" },
	{ "link-local, on any link", "ip:fe80::/64", "ip:fe80::1%7", true, "ip:fe80::/64" },
	{ "link-local, on its link", "ip:fe80::%lo/64", "ip:fe80::1%1", true, "ip:fe80::%1/64" },
	{ "link-local, on another link", "ip:fe80::%7/64", "ip:fe80::1%1", false,
	  "ip:fe80::%7/64" },
	{ "link-local, on its link, another address", "ip:fe80::1%1", "ip:fe80::2%1", false,
	  "ip:fe80::1%1/128" },
	{ "GIDs", "gid:fe80::/10", "gid:febf::1", true,
	  "gid:fe80:0000:0000:0000:0000:0000:0000:0000/10" },
	{ "GIDs, not", "gid:fe80::/10", "gid:fec0::1", false,
	  "gid:fe80:0000:0000:0000:0000:0000:0000:0000/10" },
	{ "GIDs are no addresses", "gid:::/0", "ip:fe80::1", false,
	  "gid:0000:0000:0000:0000:0000:0000:0000:0000/0" },
};

KUNIT_ARRAY_PARAM_DESC(prefix_cases, prefix_cases, desc);

static void prefix_has_an_address_or_not(struct kunit *test)
{
	const struct prefix_case *c = test->param_value;
	char shown[RTRS_PATH_STR_LEN];
	struct rtrs_prefix prefix;
	struct rtrs_addr addr;

	KUNIT_ASSERT_EQ(test, rtrs_prefix_parse(&init_net, c->str, &prefix), 0);
	KUNIT_ASSERT_EQ(test, rtrs_addr_parse(&init_net, c->addr, 1, &addr), 0);
	KUNIT_EXPECT_EQ(test, rtrs_prefix_has(&prefix, &addr.dst), c->has);
	KUNIT_EXPECT_EQ(test, rtrs_prefix_format(&prefix, shown, sizeof(shown)),
			(int)strlen(c->shown));
	KUNIT_EXPECT_STREQ(test, shown, c->shown);
}

/* Interface names are looked up in the namespace; GIDs belong to no namespace. */
static void prefix_may_be_of_gids_in_any_namespace(struct kunit *test)
{
	struct net *other = kunit_kzalloc(test, sizeof(*other), GFP_KERNEL);
	struct rtrs_prefix prefix;

	KUNIT_ASSERT_NOT_NULL(test, other);
	KUNIT_EXPECT_EQ(test, rtrs_prefix_parse(other, "gid:fe80::/64", &prefix), 0);
}

static void prefix_is_refused(struct kunit *test)
{
	static const char * const wrong[] = {
		"", "/", "10.0.0.0/8", "ip:", "ip:/8", "ip:10.0.0.0/", "ip:10.0.0.0/33",
		"ip:10.0.0.0/-1", "ip:10.0.0.0/x", "ip:10.0.0.0/8x", "ip:10.0.0.0/8/8",
		"ip:10.0.0/8", "ip:fd00::/129", "gid:fe80::/129", "gid:10.0.0.0/8", "ib:fe80::/8",
		"ip:10.0.0.1,ip:10.0.0.2", "ip:10.0.0.0/4294967304",
		"ip:fe80::1%nosuchdev/64", "ip:fe80::1/64%lo", "ip:fd00::1%lo/128",
	};
	struct rtrs_prefix prefix;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(wrong); i++)
		KUNIT_EXPECT_EQ_MSG(test, rtrs_prefix_parse(&init_net, wrong[i], &prefix), -EINVAL,
				    "%s", wrong[i]);
}

static struct kunit_case rtrs_addr_cases[] = {
	KUNIT_CASE_PARAM(addr_is_read_and_shown, addr_cases_gen_params),
	KUNIT_CASE_PARAM(addr_is_refused, bad_addr_cases_gen_params),
	KUNIT_CASE(addr_needs_a_port),
	KUNIT_CASE(addr_in_another_namespace_is_no_gid),
	KUNIT_CASE(addr_of_the_longest_form_is_shown_whole_or_cut),
	KUNIT_CASE_PARAM(connection_has_addresses, id_cases_gen_params),
	KUNIT_CASE_PARAM(host_is_the_same_or_not, host_cases_gen_params),
	KUNIT_CASE(no_address_is_no_host),
	KUNIT_CASE_PARAM(prefix_has_an_address_or_not, prefix_cases_gen_params),
	KUNIT_CASE(prefix_may_be_of_gids_in_any_namespace),
	KUNIT_CASE(prefix_is_refused),
	KUNIT_CASE_PARAM(name_is_valid_or_not, name_cases_gen_params),
	KUNIT_CASE(name_is_as_long_as_may_be),
	KUNIT_CASE(name_without_end_is_refused),
	{}
};

static struct kunit_suite rtrs_addr_suite = {
	.name = "rtrs-addr",
	.test_cases = rtrs_addr_cases,
};

kunit_test_suite(rtrs_addr_suite);
