// SPDX-License-Identifier: GPL-2.0-or-later
/* Mutual authentication of client and server when a path is set up. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/key.h>
#include <linux/slab.h>

#include "srv.h"

static void rtrs_srv_proof_head(const struct rtrs_srv_path *path, struct rtrs_proof_head *head)
{
	const struct rtrs_srv_sess *sess = path->sess;
	const struct rtrs_info_req *req = path->setup.req;
	const struct rtrs_proof *proof = (const void *)(req + 1);

	rtrs_proof_fill(head, req->name, &path->path.addr.dst, &path->path.addr.src);
	memcpy(head->nonce, proof->nonce, sizeof(head->nonce));
	uuid_copy(&head->sess_uuid, &sess->uuid);
	uuid_copy(&head->path_uuid, &path->path.uuid);
	if (path->path.features & RTRS_FEATURE_FENCE) {
		uuid_copy(&head->srv_uuid, &sess->srv->uuid);
		head->sess_id = cpu_to_le32(sess->id);
		head->path_id = cpu_to_le32(path->path.id);
	}
	head->features = cpu_to_le32(path->path.features);
	head->recon_cnt = cpu_to_le16(path->path.nr_connects);
	head->nr_cons = cpu_to_le16(path->path.nr_cons);
}

/*
 * Returns the connections' part of a proof, to be freed with kvfree(). All connections are
 * established, and none can be added.
 */
static struct rtrs_proof_con *rtrs_srv_proof_cons(const struct rtrs_srv_path *path)
{
	struct rtrs_proof_con *cons;
	u32 i;

	cons = kvcalloc(path->path.nr_cons, sizeof(*cons), GFP_KERNEL);
	for (i = 0; cons && i < path->path.nr_cons; i++)
		rtrs_proof_fill_con(&cons[i], &path->conns.con[i]->con, RTRS_PROOF_SERVER);
	return cons;
}

/*
 * Checks the tag of a session without a name, which may have been created by a client without the
 * key. A session that has a name was authenticated before, possibly with a secret that has changed
 * since.
 */
static int rtrs_srv_check_tag(const struct rtrs_srv_sess *sess, struct crypto_shash *tfm,
			      struct key *key, const char *name)
{
	u16 tag;
	int ret;

	if (READ_ONCE(sess->name[0]))
		return 0;
	ret = rtrs_proof_tag(tfm, key, name, &sess->uuid, &tag);
	if (ret)
		return ret;
	return tag == sess->tag ? 0 : -EKEYREJECTED;
}

/* Tries all keys that the upper layer has for the client. */
static int rtrs_srv_try_keys(struct rtrs_srv_path *path, struct crypto_shash *tfm,
			     struct rtrs_proof_head *head, const struct rtrs_proof_con *cons)
{
	const struct rtrs_srv *srv = path->sess->srv;
	const struct rtrs_proof *proof = (const void *)(path->setup.req + 1);
	unsigned int nr = 0;
	struct key *key;
	int ret;

	while ((key = srv->ops->key(srv->owner, head->name, &path->path.addr.dst, nr++))) {
		ret = rtrs_proof_check(tfm, key, RTRS_PROOF_CLIENT, head, cons, path->path.nr_cons,
				       proof->mac);
		if (!ret)
			ret = rtrs_srv_check_tag(path->sess, tfm, key, head->name);
		if (!ret) {
			path->key = key;
			return 0;
		}
		if (ret == -ENOMEM) {
			key_put(key);
			return ret;
		}
		if (ret != -EKEYREJECTED)
			rtrs_srv_warn(path, "the key %s can't be used: %pe\n", key->description,
				      ERR_PTR(ret));
		key_put(key);
	}
	return -EKEYREJECTED;
}

/* Makes the server's proof if @ours is set, else checks the client's proof. */
static int rtrs_srv_proof(struct rtrs_srv_path *path, u8 *ours)
{
	struct rtrs_proof_head *head;
	struct rtrs_proof_con *cons;
	struct crypto_shash *tfm;
	int ret = -ENOMEM;

	tfm = rtrs_proof_alloc();
	if (IS_ERR(tfm))
		return PTR_ERR(tfm);
	head = kzalloc(sizeof(*head), GFP_KERNEL);
	cons = rtrs_srv_proof_cons(path);
	if (!head || !cons)
		goto free;
	rtrs_srv_proof_head(path, head);
	if (ours)
		ret = rtrs_proof_make(tfm, path->key, RTRS_PROOF_SERVER, head, cons,
				      path->path.nr_cons, ours);
	else
		ret = rtrs_srv_try_keys(path, tfm, head, cons);
free:
	rtrs_proof_free(tfm);
	kvfree(cons);
	kfree(head);
	return ret;
}

/**
 * rtrs_srv_proof_check() - check a client's proof
 * @path: path with a valid INFO_REQ and all connections; &rtrs_srv_path.key is set if the proof is
 *	correct
 *
 * Context: the path's setup work.
 * Return: 0, also without RTRS_FEATURE_PROOF; -EKEYREJECTED if the client knows none of the keys
 * that the upper layer has for it; or another negative errno.
 */
int rtrs_srv_proof_check(struct rtrs_srv_path *path)
{
	return path->path.features & RTRS_FEATURE_PROOF ? rtrs_srv_proof(path, NULL) : 0;
}

/**
 * rtrs_srv_proof_make() - make the server's proof
 * @path: path with a key, after rtrs_srv_proof_check()
 * @mac: set to the proof
 *
 * Context: the path's setup work.
 * Return: 0 or a negative errno.
 */
int rtrs_srv_proof_make(struct rtrs_srv_path *path, u8 *mac)
{
	return rtrs_srv_proof(path, mac);
}
