// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Proofs by which each end of a path shows that it knows a secret, without disclosing it. A proof
 * is a MAC over the properties of the path: identity and addresses of both ends, and each
 * connection. So a proof is valid neither for another path, nor at another time, nor as the proof
 * of the other end.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <crypto/algapi.h>
#include <crypto/hash.h>
#include <keys/user-type.h>
#include <linux/cred.h>
#include <linux/export.h>
#include <linux/key-type.h>
#include <linux/key.h>
#include <linux/slab.h>
#include <linux/rcupdate.h>
#include <linux/string.h>
#include <linux/uidgid.h>
#include <linux/unaligned.h>

#include "core.h"

static void rtrs_proof_addr(u8 *to, const struct sockaddr_storage *ss)
{
	size_t len;
	const u8 *bytes = rtrs_addr_bytes(ss, &len);

	to[0] = ss->ss_family;
	memcpy(to + 1, bytes, len);
}

/**
 * rtrs_proof_fill() - fill in the names and addresses of a proof
 * @head: zeroed; filled in, except for members that rtrs_proof_head leaves to the caller
 * @name: the session's name
 * @client: address of the client
 * @server: address of the server
 */
VISIBLE_IF_KUNIT void rtrs_proof_fill(struct rtrs_proof_head *head, const char *name,
				      const struct sockaddr_storage *client,
				      const struct sockaddr_storage *server)
{
	memcpy(head->label, RTRS_PROOF_LABEL, sizeof(head->label));
	strscpy_pad(head->name, name, sizeof(head->name));
	rtrs_proof_addr(head->client, client);
	rtrs_proof_addr(head->server, server);
}

static void rtrs_proof_fill_con(struct rtrs_proof_con *to, const struct rtrs_con *con,
				enum rtrs_proof_role role)
{
	bool iwarp = rdma_protocol_iwarp(con->cm_id->device, con->cm_id->port_num);
	__le32 own = cpu_to_le32(iwarp ? 0 : con->cm_id->qp->qp_num);
	__le32 peer = cpu_to_le32(iwarp ? 0 : con->peer_qpn);

	memcpy(to->nonce, con->nonce, sizeof(to->nonce));
	to->client_qpn = role == RTRS_PROOF_CLIENT ? own : peer;
	to->server_qpn = role == RTRS_PROOF_CLIENT ? peer : own;
}

/**
 * rtrs_proof_data_alloc() - allocate and fill in the data of a path's proofs
 * @path: path with all of its connections
 * @role: role of this end
 * @name: the session's name
 *
 * The caller fills in the client's nonce and what identifies the session: sess_uuid, and with
 * RTRS_FEATURE_FENCE srv_uuid and sess_id.
 *
 * Context: process, may sleep; the thread that sets up the path.
 * Return: the data, for kvfree(); or NULL.
 */
struct rtrs_proof_data *rtrs_proof_data_alloc(const struct rtrs_path *path,
					      enum rtrs_proof_role role, const char *name)
{
	bool client = role == RTRS_PROOF_CLIENT;
	const struct rtrs_addr *addr = &path->addr;
	struct rtrs_proof_data *data;
	const struct rtrs_con *con;

	data = kvzalloc(struct_size(data, con, path->nr_cons), GFP_KERNEL);
	if (!data)
		return NULL;
	data->nr_cons = path->nr_cons;
	rtrs_proof_fill(&data->head, name, client ? &addr->src : &addr->dst,
			client ? &addr->dst : &addr->src);
	uuid_copy(&data->head.path_uuid, &path->uuid);
	if (path->features & RTRS_FEATURE_FENCE)
		data->head.path_id = cpu_to_le32(path->id);
	data->head.features = cpu_to_le32(path->features);
	data->head.recon_cnt = cpu_to_le16(path->nr_connects);
	data->head.nr_cons = cpu_to_le16(path->nr_cons);
	list_for_each_entry(con, &path->cons, entry)
		rtrs_proof_fill_con(&data->con[con->cid], con, role);
	return data;
}
EXPORT_SYMBOL_GPL(rtrs_proof_data_alloc);

/**
 * rtrs_proof_alloc() - allocate the hash for proofs
 *
 * Allocation may load a module, so a client calls this before any disk depends on the session.
 *
 * Context: process, may sleep.
 * Return: the hash, for rtrs_proof_free(), or an ERR_PTR().
 */
struct crypto_shash *rtrs_proof_alloc(void)
{
	return crypto_alloc_shash("hmac(sha256)", 0, 0);
}
EXPORT_SYMBOL_GPL(rtrs_proof_alloc);

/**
 * rtrs_proof_free() - undo rtrs_proof_alloc()
 * @tfm: hash from rtrs_proof_alloc(), or NULL
 */
void rtrs_proof_free(struct crypto_shash *tfm)
{
	crypto_free_shash(tfm);
}
EXPORT_SYMBOL_GPL(rtrs_proof_free);

/*
 * Validates a key, and sets it in @tfm unless that is NULL. The secret is stored only in the
 * keyring and, digested, in the hash.
 */
static int rtrs_proof_use_key(struct crypto_shash *tfm, struct key *key)
{
	const struct user_key_payload *payload;
	int ret = key_validate(key);

	if (ret)
		return ret;
	down_read(&key->sem);
	payload = user_key_payload_locked(key);
	if (!payload)
		ret = -EKEYREVOKED;
	else if (payload->datalen < RTRS_PROOF_MIN_KEY)
		ret = -EKEYREJECTED;
	else if (tfm)
		ret = crypto_shash_setkey(tfm, payload->data, payload->datalen);
	up_read(&key->sem);
	return ret;
}

/**
 * rtrs_get_key() - look up a key for proofs
 * @name: description of a key of type logon
 *
 * Logs a failure.
 *
 * Context: process whose keyrings are searched; may sleep.
 * Return: the key, with a reference; or an ERR_PTR(): -ENOKEY if there is none, -EKEYREVOKED,
 * -EKEYEXPIRED, or -EKEYREJECTED if the secret is shorter than RTRS_PROOF_MIN_KEY bytes.
 */
struct key *rtrs_get_key(const char *name)
{
	struct key *key = request_key(&key_type_logon, name, NULL);
	int err;

	if (IS_ERR(key)) {
		pr_err("%.64s: no key of type logon has this name in your keyrings: %pe\n", name,
		       key);
		return key;
	}
	err = rtrs_proof_use_key(NULL, key);
	if (!err)
		return key;
	pr_err("%.64s: the key is too short, or not valid any more: %pe\n", name, ERR_PTR(err));
	key_put(key);
	return ERR_PTR(err);
}
EXPORT_SYMBOL_GPL(rtrs_get_key);

static struct key *rtrs_new_key(const char *name, const void *secret, size_t len)
{
	struct key *key;
	int err;

	key = key_alloc(&key_type_logon, name, GLOBAL_ROOT_UID, GLOBAL_ROOT_GID, current_cred(),
			0, KEY_ALLOC_NOT_IN_QUOTA, NULL);
	if (IS_ERR(key))
		return key;
	err = key_instantiate_and_link(key, secret, len, NULL, NULL);
	if (!err)
		return key;
	key_put(key);
	return ERR_PTR(err);
}

/**
 * rtrs_copy_key() - copy a key, so that updates of the key don't change the copy
 * @key: key from rtrs_get_key()
 *
 * The copy is in no keyring and has the description of the key.
 *
 * Context: process, may sleep.
 * Return: the copy, with a reference, or an ERR_PTR().
 */
struct key *rtrs_copy_key(struct key *key)
{
	const struct user_key_payload *payload;
	int err = -EKEYREVOKED;
	struct key *copy;
	void *secret = NULL;
	size_t len = 0;

	down_read(&key->sem);
	payload = user_key_payload_locked(key);
	if (payload) {
		len = payload->datalen;
		secret = kmemdup(payload->data, len, GFP_KERNEL);
		err = -ENOMEM;
	}
	up_read(&key->sem);
	if (!secret)
		return ERR_PTR(err);
	copy = rtrs_new_key(key->description, secret, len);
	kfree_sensitive(secret);
	return copy;
}
EXPORT_SYMBOL_GPL(rtrs_copy_key);

/**
 * rtrs_same_key() - check whether two keys have the same secret
 * @a: key from rtrs_copy_key()
 * @b: another key from rtrs_copy_key()
 *
 * Context: any.
 * Return: true if they have; false also if one of them is revoked.
 */
bool rtrs_same_key(const struct key *a, const struct key *b)
{
	const struct user_key_payload *x, *y;
	bool same;

	if (a == b)
		return true;
	rcu_read_lock();
	x = user_key_payload_rcu(a);
	y = user_key_payload_rcu(b);
	same = x && y && x->datalen == y->datalen && !crypto_memneq(x->data, y->data, x->datalen);
	rcu_read_unlock();
	return same;
}
EXPORT_SYMBOL_GPL(rtrs_same_key);

/**
 * rtrs_proof_make() - make a proof of a secret
 * @tfm: hash from rtrs_proof_alloc(); not used concurrently
 * @key: the secret, of type logon or user
 * @role: end that makes the proof
 * @data: data of the proof; the role is set
 * @mac: set to the proof, RTRS_PROOF_MAC bytes
 *
 * Context: process, may sleep.
 * Return: 0, an errno of rtrs_get_key(), or another negative errno.
 */
int rtrs_proof_make(struct crypto_shash *tfm, struct key *key, enum rtrs_proof_role role,
		    struct rtrs_proof_data *data, u8 *mac)
{
	size_t len = sizeof(data->head) + data->nr_cons * sizeof(data->con[0]);
	int ret = rtrs_proof_use_key(tfm, key);

	data->head.role = cpu_to_le32(role);
	return ret ?: crypto_shash_tfm_digest(tfm, (const u8 *)&data->head, len, mac);
}
EXPORT_SYMBOL_GPL(rtrs_proof_make);

/**
 * rtrs_proof_check() - check the proof of the other end
 * @tfm: hash, as for rtrs_proof_make()
 * @key: the secret that the other end should know
 * @role: end that made the proof
 * @data: data of the proof, as for rtrs_proof_make()
 * @mac: the proof to check
 *
 * The comparison takes constant time.
 *
 * Context: process, may sleep.
 * Return: 0; -EKEYREJECTED if the proof is incorrect; or an errno of rtrs_proof_make().
 */
int rtrs_proof_check(struct crypto_shash *tfm, struct key *key, enum rtrs_proof_role role,
		     struct rtrs_proof_data *data, const u8 *mac)
{
	u8 expected[RTRS_PROOF_MAC];
	int ret;

	ret = rtrs_proof_make(tfm, key, role, data, expected);
	if (!ret && crypto_memneq(mac, expected, sizeof(expected)))
		ret = -EKEYREJECTED;
	memzero_explicit(expected, sizeof(expected));
	return ret;
}
EXPORT_SYMBOL_GPL(rtrs_proof_check);

/**
 * rtrs_proof_tag() - compute the tag of a session's connection requests
 * @tfm: hash, as for rtrs_proof_make()
 * @key: the client's secret
 * @name: the session's name
 * @sess_uuid: the session's UUID
 * @tag: set to a number of RTRS_TAG_BITS bits, which can't be computed without the secret
 *
 * Context: process, may sleep.
 * Return: 0, -ENOMEM, or another errno of rtrs_proof_make().
 */
int rtrs_proof_tag(struct crypto_shash *tfm, struct key *key, const char *name,
		   const uuid_t *sess_uuid, u16 *tag)
{
	static const struct sockaddr_storage none;
	struct rtrs_proof_data *data;
	u8 mac[RTRS_PROOF_MAC];
	int ret;

	data = kzalloc(sizeof(*data), GFP_KERNEL);
	if (!data)
		return -ENOMEM;
	rtrs_proof_fill(&data->head, name, &none, &none);
	uuid_copy(&data->head.sess_uuid, sess_uuid);
	ret = rtrs_proof_make(tfm, key, RTRS_PROOF_TAG, data, mac);
	*tag = ret ? 0 : get_unaligned_le16(mac) >> (16 - RTRS_TAG_BITS);
	kfree(data);
	return ret;
}
EXPORT_SYMBOL_GPL(rtrs_proof_tag);
