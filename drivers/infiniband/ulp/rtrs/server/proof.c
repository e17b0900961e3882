// SPDX-License-Identifier: GPL-2.0-or-later
/* Mutual authentication of client and server when a path is set up. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/key.h>
#include <linux/slab.h>

#include "srv.h"

static const struct rtrs_proof *rtrs_srv_req_proof(const struct rtrs_srv_path *path)
{
	return path->setup.req.msg + sizeof(struct rtrs_info_req);
}

/* Returns the data of the path's proofs. All connections are established; none can be added. */
static struct rtrs_proof_data *rtrs_srv_proof_data(const struct rtrs_srv_path *path)
{
	const struct rtrs_info_req *req = path->setup.req.msg;
	const struct rtrs_srv_sess *sess = path->sess;
	struct rtrs_proof_data *data;

	data = rtrs_proof_data_alloc(&path->path, RTRS_PROOF_SERVER, req->name);
	if (!data)
		return NULL;
	memcpy(data->head.nonce, rtrs_srv_req_proof(path)->nonce, sizeof(data->head.nonce));
	uuid_copy(&data->head.sess_uuid, &sess->uuid);
	if (path->path.features & RTRS_FEATURE_FENCE) {
		uuid_copy(&data->head.srv_uuid, &sess->srv->uuid);
		data->head.sess_id = cpu_to_le32(sess->id);
	}
	return data;
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
			     struct rtrs_proof_data *data)
{
	const struct rtrs_srv *srv = path->sess->srv;
	const struct rtrs_info_req *req = path->setup.req.msg;
	unsigned int nr = 0;
	struct key *key;
	int ret;

	while ((key = srv->ops->key(srv->owner, req->name, &path->path.addr.dst, nr++))) {
		ret = rtrs_proof_check(tfm, key, RTRS_PROOF_CLIENT, data,
				       rtrs_srv_req_proof(path)->mac);
		if (!ret)
			ret = rtrs_srv_check_tag(path->sess, tfm, key, req->name);
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

/**
 * rtrs_srv_proof() - check a client's proof, or make the server's
 * @path: path with a valid INFO_REQ and all connections, with RTRS_FEATURE_PROOF
 * @ours: set to the server's proof, made with the path's key. NULL: the client's proof is checked,
 *	and &rtrs_srv_path.key is set to the key if the proof is correct
 *
 * Context: the path's setup work.
 * Return: 0; -EKEYREJECTED if the client knows none of the keys that the upper layer has for it; or
 * another negative errno.
 */
int rtrs_srv_proof(struct rtrs_srv_path *path, u8 *ours)
{
	struct rtrs_proof_data *data;
	struct crypto_shash *tfm;
	int ret = -ENOMEM;

	tfm = rtrs_proof_alloc();
	if (IS_ERR(tfm))
		return PTR_ERR(tfm);
	data = rtrs_srv_proof_data(path);
	if (data)
		ret = ours ? rtrs_proof_make(tfm, path->key, RTRS_PROOF_SERVER, data, ours) :
			     rtrs_srv_try_keys(path, tfm, data);
	rtrs_proof_free(tfm);
	kvfree(data);
	return ret;
}
