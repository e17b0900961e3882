// SPDX-License-Identifier: GPL-2.0-or-later
/* KUnit tests of proofs: the hashed data, and that each part of them matters. */
#include <keys/user-type.h>
#include <kunit/test.h>
#include <linux/cred.h>
#include <linux/key-type.h>
#include <linux/slab.h>

#include "../core.h"

#define NR_CONS	3

struct proof_test {
	struct crypto_shash *tfm;
	struct key *key;
	struct rtrs_proof_data *data;
	struct rtrs_proof_head *head;
	u8 mac[RTRS_PROOF_MAC];
};

static struct key *new_key(const char *secret, size_t len)
{
	struct key *key;

	key = key_alloc(&key_type_logon, "rtrs:test", GLOBAL_ROOT_UID, GLOBAL_ROOT_GID,
			current_cred(), KEY_POS_ALL, KEY_ALLOC_NOT_IN_QUOTA, NULL);
	if (!IS_ERR(key) && key_instantiate_and_link(key, secret, len, NULL, NULL)) {
		key_put(key);
		return ERR_PTR(-EINVAL);
	}
	return key;
}

/* Fills in the data of an example path */
static void fill(struct proof_test *t)
{
	struct rtrs_addr addr;
	unsigned int i;

	WARN_ON(rtrs_addr_parse(&init_net, "ip:10.0.0.2,ip:10.0.0.1", 1, &addr));
	memset(t->head, 0, sizeof(*t->head));
	rtrs_proof_fill(t->head, "web", &addr.src, &addr.dst);
	memset(t->head->nonce, 0xa5, sizeof(t->head->nonce));
	memset(&t->head->sess_uuid, 1, sizeof(uuid_t));
	memset(&t->head->path_uuid, 2, sizeof(uuid_t));
	memset(&t->head->srv_uuid, 3, sizeof(uuid_t));
	t->head->sess_id = cpu_to_le32(0x01020304);
	t->head->path_id = cpu_to_le32(5);
	t->head->features = cpu_to_le32(0x17);
	t->head->recon_cnt = cpu_to_le16(6);
	t->head->nr_cons = cpu_to_le16(NR_CONS);
	for (i = 0; i < NR_CONS; i++) {
		memset(t->data->con[i].nonce, 0x10 + i, sizeof(t->data->con[i].nonce));
		t->data->con[i].client_qpn = cpu_to_le32(0x100 + i);
		t->data->con[i].server_qpn = cpu_to_le32(0x200 + i);
	}
}

static int check(struct proof_test *t, enum rtrs_proof_role role)
{
	return rtrs_proof_check(t->tfm, t->key, role, t->data, t->mac);
}

static int proof_init(struct kunit *test)
{
	struct proof_test *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);

	if (!t)
		return -ENOMEM;
	t->data = kunit_kzalloc(test, struct_size(t->data, con, NR_CONS), GFP_KERNEL);
	if (!t->data)
		return -ENOMEM;
	t->data->nr_cons = NR_CONS;
	t->head = &t->data->head;
	test->priv = t;
	t->tfm = rtrs_proof_alloc();
	if (IS_ERR(t->tfm))
		return PTR_ERR(t->tfm);
	t->key = new_key("0123456789abcdef", 16);
	if (IS_ERR(t->key))
		return PTR_ERR(t->key);
	fill(t);
	return rtrs_proof_make(t->tfm, t->key, RTRS_PROOF_CLIENT, t->data, t->mac);
}

static void proof_exit(struct kunit *test)
{
	struct proof_test *t = test->priv;

	if (!t)
		return;
	if (!IS_ERR_OR_NULL(t->key))
		key_put(t->key);
	if (!IS_ERR_OR_NULL(t->tfm))
		rtrs_proof_free(t->tfm);
}

/* The expected MAC was computed independently, from the description of the protocol */
static void proof_is_as_written_down(struct kunit *test)
{
	static const u8 mac[RTRS_PROOF_MAC] = {
		0x9b, 0x34, 0xd1, 0x55, 0x75, 0x46, 0xfb, 0x96,
		0x11, 0x47, 0xc5, 0x81, 0x27, 0x41, 0x71, 0xa5,
		0x20, 0xc1, 0x1a, 0x6c, 0x7f, 0x61, 0x12, 0xab,
		0xd7, 0xa1, 0xd8, 0xd3, 0x1c, 0x06, 0xb5, 0x31,
	};
	struct proof_test *t = test->priv;

	KUNIT_EXPECT_EQ(test, memcmp(t->mac, mac, sizeof(mac)), 0);
}

static void proof_of_the_same_is_right(struct kunit *test)
{
	struct proof_test *t = test->priv;

	fill(t);
	KUNIT_EXPECT_EQ(test, check(t, RTRS_PROOF_CLIENT), 0);
}

/* A proof can't be reflected to the end that made it. */
static void proof_is_of_one_end(struct kunit *test)
{
	struct proof_test *t = test->priv;

	KUNIT_EXPECT_EQ(test, check(t, RTRS_PROOF_SERVER), -EKEYREJECTED);
}

/* A change of any byte invalidates the proof */
static void proof_is_about_all_of_it(struct kunit *test)
{
	struct proof_test *t = test->priv;
	size_t role = offsetof(struct rtrs_proof_head, role), i;

	for (i = 0; i < sizeof(*t->head); i++) {
		/* The role is set by the check. */
		if (i >= role && i < role + sizeof(t->head->role))
			continue;
		((u8 *)t->head)[i] ^= 1;
		KUNIT_EXPECT_EQ_MSG(test, check(t, RTRS_PROOF_CLIENT), -EKEYREJECTED,
				    "byte %zu of the head", i);
		((u8 *)t->head)[i] ^= 1;
	}
	for (i = 0; i < NR_CONS * sizeof(t->data->con[0]); i++) {
		((u8 *)t->data->con)[i] ^= 0x80;
		KUNIT_EXPECT_EQ_MSG(test, check(t, RTRS_PROOF_CLIENT), -EKEYREJECTED,
				    "byte %zu of the connections", i);
		((u8 *)t->data->con)[i] ^= 0x80;
	}
	t->data->nr_cons--;
	KUNIT_EXPECT_EQ(test, check(t, RTRS_PROOF_CLIENT), -EKEYREJECTED);
	t->data->nr_cons++;
	for (i = 0; i < sizeof(t->mac); i++) {
		t->mac[i] ^= 1;
		KUNIT_EXPECT_EQ_MSG(test, check(t, RTRS_PROOF_CLIENT), -EKEYREJECTED,
				    "byte %zu of the proof", i);
		t->mac[i] ^= 1;
	}
	KUNIT_EXPECT_EQ(test, check(t, RTRS_PROOF_CLIENT), 0);
}

static void names_and_addresses_fill_their_room(struct kunit *test)
{
	struct proof_test *t = test->priv;
	struct rtrs_addr addr;

	KUNIT_ASSERT_EQ(test, rtrs_addr_parse(&init_net, "ip:fd00::1,ip:fd00::2", 1, &addr), 0);
	memset(t->head, 0, sizeof(*t->head));
	rtrs_proof_fill(t->head, "w", &addr.dst, &addr.src);
	KUNIT_EXPECT_EQ(test, t->head->client[0], AF_INET6);
	KUNIT_EXPECT_EQ(test, t->head->client[16], 2);
	KUNIT_EXPECT_EQ(test, t->head->server[16], 1);
	KUNIT_EXPECT_EQ(test, t->head->name[0], 'w');
	KUNIT_EXPECT_NULL(test, memchr_inv(t->head->name + 1, 0, sizeof(t->head->name) - 1));
	KUNIT_EXPECT_EQ(test, t->head->reserved[1], 0);
}

/* One end of an example path */
struct proof_end {
	struct rtrs_path path;
	struct rtrs_con con[2];
	struct rdma_cm_id id[2];
	struct ib_qp qp[2];
	struct ib_device dev;
	struct ib_port_data ports[2];
};

/* Allocate an end of a path. @own and @peer are the first queue pair numbers of each end. */
static struct proof_end *new_end(struct kunit *test, const char *addr, u32 own, u32 peer)
{
	struct proof_end *e = kunit_kzalloc(test, sizeof(*e), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, e);
	KUNIT_ASSERT_EQ(test, rtrs_addr_parse(&init_net, addr, 1, &e->path.addr), 0);
	memset(&e->path.uuid, 2, sizeof(e->path.uuid));
	e->path.id = 5;
	e->path.nr_connects = 6;
	e->path.features = RTRS_FEATURE_FENCE | RTRS_FEATURE_PROOF;
	e->path.nr_cons = 2;
	INIT_LIST_HEAD(&e->path.cons);
	e->dev.port_data = e->ports;
	for (i = 0; i < 2; i++) {
		e->qp[i].qp_num = own + i;
		e->id[i].device = &e->dev;
		e->id[i].port_num = 1;
		e->id[i].qp = &e->qp[i];
		e->con[i].cm_id = &e->id[i];
		e->con[i].cid = i;
		e->con[i].peer_qpn = peer + i;
		memset(e->con[i].nonce, 0x10 + i, sizeof(e->con[i].nonce));
	}
	return e;
}

/* The server's connections may be set up in any order. */
static void both_ends_have_the_same_data(struct kunit *test)
{
	struct proof_end *clt = new_end(test, "ip:10.0.0.2,ip:10.0.0.1", 0x100, 0x200);
	struct proof_end *srv = new_end(test, "ip:10.0.0.1,ip:10.0.0.2", 0x200, 0x100);
	struct rtrs_proof_data *a, *b;

	list_add_tail(&clt->con[0].entry, &clt->path.cons);
	list_add_tail(&clt->con[1].entry, &clt->path.cons);
	list_add_tail(&srv->con[1].entry, &srv->path.cons);
	list_add_tail(&srv->con[0].entry, &srv->path.cons);
	a = rtrs_proof_data_alloc(&clt->path, RTRS_PROOF_CLIENT, "web");
	b = rtrs_proof_data_alloc(&srv->path, RTRS_PROOF_SERVER, "web");
	if (a && b) {
		KUNIT_EXPECT_EQ(test, memcmp(a, b, struct_size(a, con, 2)), 0);
		KUNIT_EXPECT_EQ(test, a->head.client[4], 2);
		KUNIT_EXPECT_EQ(test, a->head.server[4], 1);
		KUNIT_EXPECT_EQ(test, le32_to_cpu(a->head.path_id), 5);
		KUNIT_EXPECT_EQ(test, le16_to_cpu(a->head.recon_cnt), 6);
		KUNIT_EXPECT_EQ(test, le16_to_cpu(a->head.nr_cons), 2);
		KUNIT_EXPECT_EQ(test, le32_to_cpu(a->con[1].client_qpn), 0x101);
		KUNIT_EXPECT_EQ(test, le32_to_cpu(a->con[1].server_qpn), 0x201);
		KUNIT_EXPECT_EQ(test, a->con[1].nonce[0], 0x11);
	} else {
		KUNIT_FAIL(test, "no memory");
	}
	kvfree(a);
	kvfree(b);
}

static void other_key_is_refused(struct kunit *test)
{
	struct proof_test *t = test->priv;
	struct key *key = new_key("0123456789abcdeg", 16);

	KUNIT_ASSERT_FALSE(test, IS_ERR(key));
	KUNIT_EXPECT_EQ(test, rtrs_proof_check(t->tfm, key, RTRS_PROOF_CLIENT, t->data, t->mac),
			-EKEYREJECTED);
	key_put(key);
}

static void short_key_is_refused(struct kunit *test)
{
	struct proof_test *t = test->priv;
	struct key *key = new_key("0123456789abcde", 15);

	KUNIT_ASSERT_FALSE(test, IS_ERR(key));
	KUNIT_EXPECT_EQ(test, rtrs_proof_make(t->tfm, key, RTRS_PROOF_CLIENT, t->data, t->mac),
			-EKEYREJECTED);
	key_put(key);
}

static void revoked_key_is_refused(struct kunit *test)
{
	struct proof_test *t = test->priv;

	key_revoke(t->key);
	KUNIT_EXPECT_EQ(test, check(t, RTRS_PROOF_CLIENT), -EKEYREVOKED);
}

static struct kunit_case rtrs_proof_cases[] = {
	KUNIT_CASE(proof_is_as_written_down),
	KUNIT_CASE(proof_of_the_same_is_right),
	KUNIT_CASE(proof_is_of_one_end),
	KUNIT_CASE(proof_is_about_all_of_it),
	KUNIT_CASE(names_and_addresses_fill_their_room),
	KUNIT_CASE(both_ends_have_the_same_data),
	KUNIT_CASE(other_key_is_refused),
	KUNIT_CASE(short_key_is_refused),
	KUNIT_CASE(revoked_key_is_refused),
	{}
};

static struct kunit_suite rtrs_proof_suite = {
	.name = "rtrs-proof",
	.init = proof_init,
	.exit = proof_exit,
	.test_cases = rtrs_proof_cases,
};

kunit_test_suite(rtrs_proof_suite);
