// SPDX-License-Identifier: GPL-2.0-or-later
/* Mutual authentication of client and server when a path is connected */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/slab.h>

#include "clt.h"

static void rtrs_clt_proof_head(const struct rtrs_clt_path *path, struct rtrs_proof_head *head)
{
	rtrs_proof_fill(head, path->clt->name, &path->path.addr.src, &path->path.addr.dst);
	memcpy(head->nonce, path->info.nonce, sizeof(head->nonce));
	uuid_copy(&head->sess_uuid, &path->clt->uuid);
	uuid_copy(&head->path_uuid, &path->path.uuid);
	uuid_copy(&head->srv_uuid, &path->neg.srv_uuid);
	head->sess_id = cpu_to_le32(path->neg.sess_id);
	if (path->path.features & RTRS_FEATURE_FENCE)
		head->path_id = cpu_to_le32(path->path.id);
	head->features = cpu_to_le32(path->path.features);
	head->recon_cnt = cpu_to_le16(path->path.nr_connects);
	head->nr_cons = cpu_to_le16(path->path.nr_cons);
}

/* Computes the client's proof, or checks the server's proof if @theirs is set. */
static int rtrs_clt_proof(struct rtrs_clt_path *path, const u8 *theirs, u8 *ours)
{
	struct rtrs_proof_head *head;
	struct rtrs_proof_con *cons;
	unsigned int i;
	int ret = -ENOMEM;

	head = kzalloc(sizeof(*head), GFP_KERNEL);
	cons = kvcalloc(path->path.nr_cons, sizeof(*cons), GFP_KERNEL);
	if (!head || !cons)
		goto free;
	rtrs_clt_proof_head(path, head);
	for (i = 0; i < path->path.nr_cons; i++)
		rtrs_proof_fill_con(&cons[i], &path->cons[i].con, RTRS_PROOF_CLIENT);
	mutex_lock(&path->clt->proof_lock);
	if (theirs)
		ret = rtrs_proof_check(path->clt->proof_tfm, path->clt->key, RTRS_PROOF_SERVER,
				       head, cons, path->path.nr_cons, theirs);
	else
		ret = rtrs_proof_make(path->clt->proof_tfm, path->clt->key, RTRS_PROOF_CLIENT,
				      head, cons, path->path.nr_cons, ours);
	mutex_unlock(&path->clt->proof_lock);
free:
	kvfree(cons);
	kfree(head);
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

/**
 * rtrs_clt_proof_make() - compute the client's proof that it knows the session's key
 * @path: path with all connections and its nonce
 * @mac: set to the proof
 *
 * Context: the path's connect_work.
 * Return: 0 or a negative errno, see rtrs_proof_make().
 */
int rtrs_clt_proof_make(struct rtrs_clt_path *path, u8 *mac)
{
	return rtrs_clt_proof(path, NULL, mac);
}

/**
 * rtrs_clt_proof_check() - check the server's proof that it knows the session's key
 * @path: path after rtrs_clt_proof_make()
 * @mac: the server's proof
 *
 * Context: the path's connect_work.
 * Return: 0, -EKEYREJECTED if the server doesn't know the session's key, or another negative errno.
 */
int rtrs_clt_proof_check(struct rtrs_clt_path *path, const u8 *mac)
{
	return rtrs_clt_proof(path, mac, NULL);
}
