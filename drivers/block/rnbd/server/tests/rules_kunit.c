// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of the rules: access to volumes and paths, proofs, hosts of sessions, and limits.
 */
#include <kunit/test.h>
#include <net/net_namespace.h>

#include "../rules.h"

static const struct rule_case {
	const char *desc;
	/* The volume, the host to which it has a link, and the attributes and policy */
	const char *volume, *host;
	unsigned long modes;
	bool enabled, any_host, listed;
	/* The client's session, and the name and mode in OPEN */
	const char *sessname, *name;
	enum rnbd_access_mode mode;
	/* The result: a volume or a path, or an errno */
	bool is_volume;
	int ret;
	/* Address prefix of the host, NULL for any, and address of the client */
	const char *prefix, *peer;
} rule_cases[] = {
#define ALL	RNBD_SRV_ALL_MODES
#define RW	RNBD_ACCESS_RW
	{ "open: a path", "v", "s", ALL, true, false, false,
	  "s", "/dev/x", RW, false, 0 },
	{ "open: a volume", "v", "s", ALL, true, false, false,
	  "s", "v", RW, true, 0 },
	{ "open: a volume of others", "v", "s", ALL, true, false, false,
	  "t", "v", RW, false, -ENOENT },
	{ "open: a path to a volume's name", "v", "s", ALL, true, false, false,
	  "t", "./v", RW, false, 0 },
	{ "open: a path, a volume is off", "v", "s", ALL, false, true, false,
	  "s", "v", RW, false, 0 },
	{ "listed: a path", "v", "s", ALL, true, false, true,
	  "s", "/dev/x", RW, false, -ENOENT },
	{ "listed: a volume", "v", "s", ALL, true, false, true,
	  "s", "v", RW, true, 0 },
	{ "listed: a volume of others", "v", "s", ALL, true, false, true,
	  "t", "v", RW, false, -ENOENT },
	{ "listed: a volume of nobody", "v", NULL, ALL, true, false, true,
	  "s", "v", RW, false, -ENOENT },
	{ "listed: a volume for all", "v", NULL, ALL, true, true, true,
	  "s", "v", RW, true, 0 },
	{ "listed: a volume is off", "v", "s", ALL, false, false, true,
	  "s", "v", RW, false, -ENOENT },
	{ "listed: a volume for all is off", "v", NULL, ALL, false, true, true,
	  "s", "v", RW, false, -ENOENT },
	{ "listed: a slash in front", "v", "s", ALL, true, false, true,
	  "s", "/v", RW, false, -ENOENT },
	{ "listed: a slash behind", "v", "s", ALL, true, false, true,
	  "s", "v/", RW, false, -ENOENT },
	{ "listed: a dot", "v", "s", ALL, true, false, true,
	  "s", "./v", RW, false, -ENOENT },
	{ "listed: dots", "v", "s", ALL, true, false, true,
	  "s", "x/../v", RW, false, -ENOENT },
	{ "listed: a volume's beginning", "vol", "s", ALL, true, false, true,
	  "s", "vo", RW, false, -ENOENT },
	{ "listed: more than a volume", "vol", "s", ALL, true, false, true,
	  "s", "vols", RW, false, -ENOENT },
	{ "listed: no name", "v", "s", ALL, true, true, true,
	  "s", "", RW, false, -ENOENT },
	{ "listed: the client sends a pattern", "v", "s", ALL, true, true, true,
	  "s", "*", RW, false, -ENOENT },
	{ "a volume's name is no pattern", "v*", "s", ALL, true, true, true,
	  "s", "vol", RW, false, -ENOENT },
	{ "a pattern of sessions", "v", "web-*", ALL, true, false, true,
	  "web-1", "v", RW, true, 0 },
	{ "a pattern: nothing where it has a star", "v", "web-*", ALL, true, false, true,
	  "web-", "v", RW, true, 0 },
	{ "a pattern: its beginning only", "v", "web-*", ALL, true, false, true,
	  "web", "v", RW, false, -ENOENT },
	{ "a pattern: text in front", "v", "web-*", ALL, true, false, true,
	  "xweb-1", "v", RW, false, -ENOENT },
	{ "a pattern: text behind", "v", "*-web", ALL, true, false, true,
	  "1-webx", "v", RW, false, -ENOENT },
	{ "a pattern: a set", "v", "node[1-3]", ALL, true, false, true,
	  "node2", "v", RW, true, 0 },
	{ "a pattern: not in the set", "v", "node[1-3]", ALL, true, false, true,
	  "node4", "v", RW, false, -ENOENT },
	{ "a session whose name is a pattern", "v", "s1", ALL, true, false, true,
	  "s*", "v", RW, false, -ENOENT },
	{ "a session whose name is all", "v", "s1", ALL, true, false, true,
	  "*", "v", RW, false, -ENOENT },
	{ "a session's name in other letters", "v", "s", ALL, true, false, true,
	  "S", "v", RW, false, -ENOENT },
	{ "ro of ro", "v", "s", BIT(RNBD_ACCESS_RO), true, false, true,
	  "s", "v", RNBD_ACCESS_RO, true, 0 },
	{ "rw of ro", "v", "s", BIT(RNBD_ACCESS_RO), true, false, true,
	  "s", "v", RW, false, -EACCES },
	{ "migration of ro", "v", "s", BIT(RNBD_ACCESS_RO), true, false, true,
	  "s", "v", RNBD_ACCESS_MIGRATION, false, -EACCES },
	{ "migration of rw", "v", "s", BIT(RW), true, false, true,
	  "s", "v", RNBD_ACCESS_MIGRATION, false, -EACCES },
	{ "ro of rw", "v", "s", BIT(RW), true, false, true,
	  "s", "v", RNBD_ACCESS_RO, false, -EACCES },
	{ "rw of ro, of others", "v", "s", BIT(RNBD_ACCESS_RO), true, false, true,
	  "t", "v", RW, false, -ENOENT },
	{ "migration of all", "v", "s", ALL, true, false, true,
	  "s", "v", RNBD_ACCESS_MIGRATION, true, 0 },
	{ "handover of migration", "v", "s", BIT(RNBD_ACCESS_MIGRATION), true, false, true,
	  "s", "v", RNBD_ACCESS_HANDOVER, false, -EACCES },
	{ "handover of all", "v", "s", ALL, true, false, true,
	  "s", "v", RNBD_ACCESS_HANDOVER, true, 0 },
	{ "no mode at all", "v", "s", 0, true, false, true,
	  "s", "v", RNBD_ACCESS_RO, false, -EACCES },
	{ "a host's address", "v", "s", ALL, true, false, true,
	  "s", "v", RW, true, 0, "ip:10.0.0.1", "ip:10.0.0.1" },
	{ "a host's address, another session", "v", "s", ALL, true, false, true,
	  "t", "v", RW, false, -ENOENT, "ip:10.0.0.1", "ip:10.0.0.1" },
	{ "another address", "v", "s", ALL, true, false, true,
	  "s", "v", RW, false, -ENOENT, "ip:10.0.0.1", "ip:10.0.0.2" },
	{ "another address, for all", "v", "s", ALL, true, true, true,
	  "s", "v", RW, true, 0, "ip:10.0.0.1", "ip:10.0.0.2" },
	{ "another address, the policy is open", "v", "s", ALL, true, false, false,
	  "s", "v", RW, false, -ENOENT, "ip:10.0.0.1", "ip:10.0.0.2" },
	{ "another address, a path", "v", "s", ALL, true, false, false,
	  "s", "/dev/x", RW, false, 0, "ip:10.0.0.1", "ip:10.0.0.2" },
	{ "another address, a mode that nobody may", "v", "s", BIT(RNBD_ACCESS_RO), true, false,
	  true, "s", "v", RW, false, -ENOENT, "ip:10.0.0.1", "ip:10.0.0.2" },
	{ "a host's network", "v", "s", ALL, true, false, true,
	  "s", "v", RW, true, 0, "ip:10.0.0.0/30", "ip:10.0.0.3" },
	{ "beside a host's network", "v", "s", ALL, true, false, true,
	  "s", "v", RW, false, -ENOENT, "ip:10.0.0.0/30", "ip:10.0.0.4" },
	{ "a host's GIDs", "v", "s", ALL, true, false, true,
	  "s", "v", RW, true, 0, "gid:fe80::/64", "gid:fe80::2" },
	{ "a host's link", "v", "s", ALL, true, false, true,
	  "s", "v", RW, true, 0, "ip:fe80::2%1", "ip:fe80::2%1" },
	{ "another link", "v", "s", ALL, true, false, true,
	  "s", "v", RW, false, -ENOENT, "ip:fe80::2%1", "ip:fe80::2%2" },
	{ "a GID is no address", "v", "s", ALL, true, false, true,
	  "s", "v", RW, false, -ENOENT, "ip:fe80::/64", "gid:fe80::2" },
#undef ALL
#undef RW
};

KUNIT_ARRAY_PARAM_DESC(rule_cases, rule_cases, desc);

static struct rnbd_srv_map *map_of(struct kunit *test, const struct rule_case *c,
				   const struct rtrs_srv_peer *client)
{
	struct rnbd_srv_map *map = kunit_kzalloc(test, sizeof(*map), GFP_KERNEL);
	size_t len = strlen(c->sessname) + 1;

	KUNIT_ASSERT_NOT_NULL(test, map);
	map->sess = kunit_kzalloc(test, struct_size(map->sess, name, len), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, map->sess);
	memcpy(map->sess->name, c->sessname, len);
	map->sess->client = *client;
	strscpy(map->path, c->name, sizeof(map->path));
	map->mode = c->mode;
	return map;
}

static void rules_say_who_may_open_what(struct kunit *test)
{
	const struct rule_case *c = test->param_value;
	struct rnbd_srv_rules *rules = kunit_kzalloc(test, sizeof(*rules), GFP_KERNEL);
	struct rnbd_srv_volume *volume = kunit_kzalloc(test, sizeof(*volume), GFP_KERNEL);
	struct rnbd_srv_host *host = kunit_kzalloc(test, sizeof(*host), GFP_KERNEL);
	struct rnbd_srv_allow allow = { .host = host };
	const struct rnbd_srv_volume *found;
	struct rtrs_prefix prefix;
	struct rtrs_srv_peer peer = { };
	struct rtrs_addr addr;

	KUNIT_ASSERT_NOT_NULL(test, rules);
	KUNIT_ASSERT_NOT_NULL(test, volume);
	KUNIT_ASSERT_NOT_NULL(test, host);
	INIT_LIST_HEAD(&rules->volumes);
	INIT_LIST_HEAD(&volume->allowed);
	config_group_init_type_name(&volume->group, c->volume, NULL);
	volume->modes = c->modes;
	volume->enabled = c->enabled;
	volume->allow_any_host = c->any_host;
	list_add(&volume->list, &rules->volumes);
	if (c->host) {
		strscpy(host->sessions, c->host, sizeof(host->sessions));
		list_add(&allow.list, &volume->allowed);
	}
	if (c->prefix) {
		KUNIT_ASSERT_EQ(test, rtrs_prefix_parse(&init_net, c->prefix, &prefix), 0);
		host->prefixes = &prefix;
		host->nr_prefixes = 1;
	}
	KUNIT_ASSERT_EQ(test, rtrs_addr_parse(&init_net, c->peer ?: "ip:192.168.1.2", 1, &addr), 0);
	peer.addr = &addr.dst;
	rules->listed = c->listed;

	KUNIT_EXPECT_EQ(test, c->ret, rnbd_srv_judge(rules, map_of(test, c, &peer), &found));
	if (!c->ret)
		KUNIT_EXPECT_PTR_EQ(test, found,
				    c->is_volume ? (const struct rnbd_srv_volume *)volume : NULL);
}

static const struct proof_case {
	const char *desc;
	/* Keys of the host "web" at 10.0.0.0/8, and the key that the client has proved; 0: none */
	int first, second, proved;
	const char *sessname, *peer;
	/* Another host without keys matches the name and any address. */
	bool other;
	int ret;
	/* Result for a volume that only the host "web" may open */
	int open;
	/* Result of rnbd_srv_check_known() with policy "listed" */
	int known;
} proof_cases[] = {
	{ "a host without keys", 0, 0, 0, "web", "ip:10.0.0.1", false, 0, 0 },
	{ "a host without keys, one is proved", 0, 0, 1, "web", "ip:10.0.0.1", false, 0, 0 },
	{ "its key", 1, 0, 1, "web", "ip:10.0.0.1", false, 0, 0 },
	{ "its first key", 1, 2, 1, "web", "ip:10.0.0.1", false, 0, 0 },
	{ "its second key", 1, 2, 2, "web", "ip:10.0.0.1", false, 0, 0 },
	{ "another key", 1, 2, 3, "web", "ip:10.0.0.1", false, -EKEYREJECTED, -ENOENT, -ENOENT },
	{ "no key", 1, 0, 0, "web", "ip:10.0.0.1", false, -EKEYREJECTED, -ENOENT, -ENOENT },
	{ "no key, another name", 1, 0, 0, "db", "ip:10.0.0.1", false, 0, -ENOENT, -ENOENT },
	{ "no key, from elsewhere", 1, 0, 0, "web", "ip:192.168.0.1", false, -EKEYREJECTED,
	  -ENOENT, -ENOENT },
	{ "its key, from elsewhere", 1, 0, 1, "web", "ip:192.168.0.1", false, -EKEYREJECTED,
	  -ENOENT, -ENOENT },
	{ "a host without keys, from elsewhere", 0, 0, 0, "web", "ip:192.168.0.1", false, 0,
	  -ENOENT, -ENOENT },
	{ "no key, another host has none", 1, 0, 0, "web", "ip:10.0.0.1", true, -EKEYREJECTED,
	  -ENOENT },
	{ "no key, another host has none, from elsewhere", 1, 0, 0, "web", "ip:192.168.0.1", true,
	  0, -ENOENT },
	{ "its key, another host has none", 1, 0, 1, "web", "ip:10.0.0.1", true, 0, 0 },
};

KUNIT_ARRAY_PARAM_DESC(proof_cases, proof_cases, desc);

/* Get one of a set of keys without payloads, which are equal only if identical. */
static struct key *key_nr(struct kunit *test, int nr)
{
	static struct key keys[4];

	return nr ? &keys[nr] : NULL;
}

static void rules_say_who_must_prove_what(struct kunit *test)
{
	const struct proof_case *c = test->param_value;
	struct rnbd_srv_rules *rules = kunit_kzalloc(test, sizeof(*rules), GFP_KERNEL);
	struct rnbd_srv_volume *volume = kunit_kzalloc(test, sizeof(*volume), GFP_KERNEL);
	struct rnbd_srv_host *hosts = kunit_kcalloc(test, 2, sizeof(*hosts), GFP_KERNEL);
	struct rule_case asks = { .sessname = c->sessname, .name = "v", .mode = RNBD_ACCESS_RW };
	struct rnbd_srv_allow allow = { .host = hosts };
	const struct rnbd_srv_volume *found;
	struct rtrs_srv_peer peer;
	struct rtrs_prefix prefix;
	struct rtrs_addr addr;

	KUNIT_ASSERT_NOT_NULL(test, rules);
	KUNIT_ASSERT_NOT_NULL(test, volume);
	KUNIT_ASSERT_NOT_NULL(test, hosts);
	KUNIT_ASSERT_EQ(test, rtrs_prefix_parse(&init_net, "ip:10.0.0.0/8", &prefix), 0);
	KUNIT_ASSERT_EQ(test, rtrs_addr_parse(&init_net, c->peer, 1, &addr), 0);
	INIT_LIST_HEAD(&rules->hosts);
	INIT_LIST_HEAD(&rules->volumes);
	INIT_LIST_HEAD(&volume->allowed);
	strscpy(hosts[0].sessions, "web", sizeof(hosts[0].sessions));
	hosts[0].prefixes = &prefix;
	hosts[0].nr_prefixes = 1;
	hosts[0].keys[0] = key_nr(test, c->first);
	hosts[0].keys[1] = key_nr(test, c->second);
	list_add(&hosts[0].list, &rules->hosts);
	strscpy(hosts[1].sessions, "w*", sizeof(hosts[1].sessions));
	if (c->other)
		list_add_tail(&hosts[1].list, &rules->hosts);
	config_group_init_type_name(&volume->group, "v", NULL);
	volume->modes = RNBD_SRV_ALL_MODES;
	volume->enabled = true;
	list_add(&volume->list, &rules->volumes);
	list_add(&allow.list, &volume->allowed);
	peer.addr = &addr.dst;
	peer.key = key_nr(test, c->proved);

	KUNIT_EXPECT_EQ(test, rnbd_srv_check_proof(rules, c->sessname, &peer), c->ret);
	KUNIT_EXPECT_EQ(test, rnbd_srv_check_known(rules, c->sessname, &peer), 0);
	KUNIT_EXPECT_EQ(test, rnbd_srv_judge(rules, map_of(test, &asks, &peer), &found), c->open);
	rules->listed = true;
	KUNIT_EXPECT_EQ(test, rnbd_srv_check_known(rules, c->sessname, &peer), c->known);
	volume->allow_any_host = true;
	KUNIT_EXPECT_EQ(test, rnbd_srv_check_known(rules, c->sessname, &peer), 0);
	volume->enabled = false;
	KUNIT_EXPECT_EQ(test, rnbd_srv_check_known(rules, c->sessname, &peer), c->known);
}

static const struct beyond_case {
	const char *desc;
	/* Address and proved key of two clients with the session's name "web", 0: none */
	const char *a_addr, *b_addr;
	int a_key, b_key;
	/* The host that only one of them matches: 'n'etwork, 'k'ey; 0: none */
	char a_only, b_only;
} beyond_cases[] = {
	{ "the same address", "ip:10.0.0.1", "ip:10.0.0.1", 0, 0, 0, 0 },
	{ "addresses of one host", "ip:10.0.0.1", "ip:10.0.0.2", 0, 0, 0, 0 },
	{ "addresses of no host", "ip:192.168.0.1", "ip:172.16.0.1", 0, 0, 0, 0 },
	{ "one is at no host's address", "ip:10.0.0.1", "ip:192.168.0.1", 0, 0, 'n', 0 },
	{ "the other one is", "ip:192.168.0.1", "ip:10.0.0.1", 0, 0, 0, 'n' },
	{ "both keys of a host", "ip:10.0.0.1", "ip:10.0.0.1", 1, 2, 0, 0 },
	{ "one has proved nothing", "ip:10.0.0.1", "ip:10.0.0.1", 1, 0, 'k', 0 },
	{ "one has proved another key", "ip:10.0.0.1", "ip:10.0.0.2", 3, 2, 0, 'k' },
	{ "each matches a host that the other doesn't", "ip:10.0.0.1", "ip:192.168.0.1", 0, 1,
	  'n', 'k' },
};

KUNIT_ARRAY_PARAM_DESC(beyond_cases, beyond_cases, desc);

static char name_of(struct rnbd_srv_host *host)
{
	return host ? config_item_name(&host->item)[0] : 0;
}

static void paths_of_other_hosts_are_told_apart(struct kunit *test)
{
	const struct beyond_case *c = test->param_value;
	struct rnbd_srv_rules *rules = kunit_kzalloc(test, sizeof(*rules), GFP_KERNEL);
	struct rnbd_srv_host *hosts = kunit_kcalloc(test, 4, sizeof(*hosts), GFP_KERNEL);
	static const char * const names[] = { "any", "network", "key", "x" };
	struct rule_case asks = { .sessname = "web", .name = "v" };
	struct rnbd_srv_sess *sess;
	struct rtrs_srv_peer a = { }, b = { };
	struct rtrs_addr a_addr, b_addr;
	struct rtrs_prefix prefix;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, rules);
	KUNIT_ASSERT_NOT_NULL(test, hosts);
	KUNIT_ASSERT_EQ(test, rtrs_prefix_parse(&init_net, "ip:10.0.0.0/8", &prefix), 0);
	KUNIT_ASSERT_EQ(test, rtrs_addr_parse(&init_net, c->a_addr, 1, &a_addr), 0);
	KUNIT_ASSERT_EQ(test, rtrs_addr_parse(&init_net, c->b_addr, 1, &b_addr), 0);
	a.addr = &a_addr.dst;
	a.key = key_nr(test, c->a_key);
	b.addr = &b_addr.dst;
	b.key = key_nr(test, c->b_key);
	INIT_LIST_HEAD(&rules->hosts);
	/* The first host matches both, and the last one none. */
	for (i = 0; i < 4; i++) {
		strscpy(hosts[i].sessions, i == 3 ? "x" : "w*", sizeof(hosts[i].sessions));
		config_item_init_type_name(&hosts[i].item, names[i], NULL);
		list_add_tail(&hosts[i].list, &rules->hosts);
	}
	hosts[1].prefixes = &prefix;
	hosts[1].nr_prefixes = 1;
	hosts[2].keys[0] = key_nr(test, 1);
	hosts[2].keys[1] = key_nr(test, 2);
	sess = map_of(test, &asks, &a)->sess;
	sess->rules = rules;

	KUNIT_EXPECT_EQ(test, name_of(rnbd_srv_host_beyond(sess, &a, &b)), c->a_only);
	KUNIT_EXPECT_EQ(test, name_of(rnbd_srv_host_beyond(sess, &b, &a)), c->b_only);
}

static const struct limit_case {
	const char *desc;
	u64 limits[RNBD_SRV_NR_LIMITS], used[RNBD_SRV_NR_LIMITS];
	/* The limit that is exceeded; RNBD_SRV_NR_LIMITS: none */
	enum rnbd_srv_limit beyond;
} limit_cases[] = {
	{ "no limits", { }, { 9, 9 }, RNBD_SRV_NR_LIMITS },
	{ "just as much as it may", { 1, 5 }, { 1, 5 }, RNBD_SRV_NR_LIMITS },
	{ "one session more", { 1 }, { 2, 9 }, RNBD_SRV_MAX_SESSIONS },
	{ "a byte more than 4 GiB", { 0, 1ULL << 32 }, { 1, (1ULL << 32) + 1 },
	  RNBD_SRV_MAX_MEMORY },
	{ "4 GiB", { 0, 1ULL << 32 }, { 1, 1ULL << 32 }, RNBD_SRV_NR_LIMITS },
	{ "both", { 1, 5 }, { 2, 6 }, RNBD_SRV_MAX_SESSIONS },
};

KUNIT_ARRAY_PARAM_DESC(limit_cases, limit_cases, desc);

static void limits_are_the_most_that_a_host_has(struct kunit *test)
{
	const struct limit_case *c = test->param_value;
	struct rnbd_srv_host *host = kunit_kzalloc(test, sizeof(*host), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, host);
	memcpy(host->limits, c->limits, sizeof(host->limits));
	KUNIT_EXPECT_EQ(test, rnbd_srv_over_limit(host, c->used), c->beyond);
}

static struct kunit_case rnbd_srv_rules_cases[] = {
	KUNIT_CASE_PARAM(rules_say_who_may_open_what, rule_cases_gen_params),
	KUNIT_CASE_PARAM(rules_say_who_must_prove_what, proof_cases_gen_params),
	KUNIT_CASE_PARAM(paths_of_other_hosts_are_told_apart, beyond_cases_gen_params),
	KUNIT_CASE_PARAM(limits_are_the_most_that_a_host_has, limit_cases_gen_params),
	{}
};

static struct kunit_suite rnbd_srv_rules_suite = {
	.name = "rnbd-server-rules",
	.test_cases = rnbd_srv_rules_cases,
};

kunit_test_suite(rnbd_srv_rules_suite);
