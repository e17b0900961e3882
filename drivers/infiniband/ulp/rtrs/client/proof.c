// SPDX-License-Identifier: GPL-2.0-or-later
/* Mutual authentication of client and server when a path is connected */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/slab.h>

#include "clt.h"

/**
 * rtrs_clt_proof() - make the client's proof, or check the server's, that it knows the key
 * @path: path with all connections and its nonce
 * @theirs: the server's proof, or NULL
 * @ours: set to the client's proof if @theirs is NULL
 *
 * Context: the path's connect_work.
 * Return: 0, -EKEYREJECTED if the server doesn't know the session's key, or another negative errno.
 */
int rtrs_clt_proof(struct rtrs_clt_path *path, const u8 *theirs, u8 *ours)
{
	struct rtrs_clt *clt = path->clt;
	struct rtrs_proof_data *data;
	int ret;

	data = rtrs_proof_data_alloc(&path->path, RTRS_PROOF_CLIENT, clt->name);
	if (!data)
		return -ENOMEM;
	memcpy(data->head.nonce, path->info.nonce, sizeof(data->head.nonce));
	uuid_copy(&data->head.sess_uuid, &clt->uuid);
	uuid_copy(&data->head.srv_uuid, &path->neg.srv_uuid);
	data->head.sess_id = cpu_to_le32(path->neg.sess_id);
	mutex_lock(&clt->proof_lock);
	if (theirs)
		ret = rtrs_proof_check(clt->proof_tfm, clt->key, RTRS_PROOF_SERVER, data, theirs);
	else
		ret = rtrs_proof_make(clt->proof_tfm, clt->key, RTRS_PROOF_CLIENT, data, ours);
	mutex_unlock(&clt->proof_lock);
	kvfree(data);
	return ret;
}

/**
 * rtrs_clt_proof_tag() - compute the tag of a path's connection requests, if there is a key
 * @path: path that is about to be connected; its tag is set
 *
 * The secret of the key may change at any time, but a session on the server keeps the tag with
 * which it was created. So paths use the tag of the paths that are already connected.
 *
 * Context: process, under clt->lock.
 * Return: 0 or a negative errno, see rtrs_proof_tag().
 */
int rtrs_clt_proof_tag(struct rtrs_clt_path *path)
{
	struct rtrs_clt *clt = path->clt;
	int ret;

	lockdep_assert_held(&clt->lock);
	if (!clt->key)
		return 0;
	if (clt->nr_up) {
		path->neg.tag = clt->tag;
		return 0;
	}
	mutex_lock(&clt->proof_lock);
	ret = rtrs_proof_tag(clt->proof_tfm, clt->key, clt->name, &clt->uuid, &path->neg.tag);
	mutex_unlock(&clt->proof_lock);
	return ret;
}
