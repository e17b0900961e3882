// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * INFO_REQ and INFO_RSP, the first messages on a path's service connection: the client sends the
 * name of its session, the server the addresses and keys of its chunks or slots. Before that, the
 * client registers its buffers for small data, as requests contain their keys.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/random.h>

#include "clt.h"

static bool rtrs_clt_proves(const struct rtrs_clt_path *path)
{
	return path->path.features & RTRS_FEATURE_PROOF;
}

static void rtrs_clt_info_recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rtrs_clt_path *path = container_of(wc->wr_cqe,
						  struct rtrs_clt_path, info.recv_cqe);

	if (rtrs_con_wc_failed(wc->qp->qp_context, wc, "receive of INFO_RSP"))
		return;
	if (!READ_ONCE(path->info.asked) || wc->opcode != IB_WC_RECV ||
	    wc->wc_flags & IB_WC_WITH_IMM) {
		rtrs_clt_path_error(&path->path, -EPROTO,
				    "the server's first message is no INFO_RSP");
		return;
	}
	path->info.len = wc->byte_len;
	rtrs_clt_path_step_done(path);
}

/**
 * rtrs_clt_info_alloc() - post the receive for INFO_RSP
 * @path: path that is being connected; the server's queue depth is known, and no receive has been
 *	posted on its service connection
 *
 * Return: 0 or a negative errno; rtrs_clt_info_free() cleans up in both cases.
 */
int rtrs_clt_info_alloc(struct rtrs_clt_path *path)
{
	u32 size = sizeof(struct rtrs_info_rsp) + path->neg.depth * sizeof(struct rtrs_desc) +
		   (rtrs_clt_proves(path) ? RTRS_PROOF_MAC : 0);
	int ret;

	ret = rtrs_long_alloc(&path->info.rsp, &path->path, size);
	/* Large enough for a server of this driver, which has few memory regions. */
	if (ret && size > SZ_32K)
		ret = rtrs_long_alloc(&path->info.rsp, &path->path, SZ_32K);
	if (ret)
		return ret;
	path->info.recv_cqe.done = rtrs_clt_info_recv_done;
	return rtrs_long_post_recv(&path->info.rsp, &path->cons[0].con, &path->info.recv_cqe);
}

/**
 * rtrs_clt_info_free() - undo rtrs_clt_info_alloc(), if it was called
 * @path: path whose receive of INFO_RSP is complete, or whose queue pair is drained
 */
void rtrs_clt_info_free(struct rtrs_clt_path *path)
{
	path->info.asked = false;
	rtrs_long_free(&path->info.rsp);
}

/* Checks the server's proof. By sending INFO_RSP, the server has accepted the client's proof. */
static int rtrs_clt_info_proved(struct rtrs_clt_path *path, u32 nr_desc)
{
	const struct rtrs_info_rsp *rsp = path->info.rsp.msg;
	size_t len = struct_size(rsp, desc, nr_desc);
	int ret = -EKEYREJECTED;

	if (path->info.len == len + RTRS_PROOF_MAC)
		ret = rtrs_clt_proof(path, (const u8 *)rsp + len, NULL);
	if (ret)
		rtrs_path_err(&path->path, "the server doesn't prove that it knows the key: %pe\n",
			      ERR_PTR(ret));
	return ret;
}

static int rtrs_clt_info_refused(struct rtrs_clt_path *path, int err)
{
	err = rtrs_clt_peer_errno(err);
	/* Repeated attempts log the same error once. */
	if (READ_ONCE(path->sm.logged) != err)
		rtrs_path_err(&path->path, "the server refuses session %s: %s (%pe)\n",
			      path->clt->name, err == -EKEYREJECTED ?
			      "the server has another key" : "its log says why", ERR_PTR(err));
	return err;
}

/**
 * rtrs_clt_parse_info_rsp() - parse INFO_RSP, and assign the server's chunks to the slots
 * @path: path that has its slots and has received INFO_RSP
 *
 * Return: 0; the errno with which the server refuses the path; -EPROTO if INFO_RSP doesn't describe
 * as many chunks as the server offered; with a key, -EKEYREJECTED if the server doesn't know it.
 */
int rtrs_clt_parse_info_rsp(struct rtrs_clt_path *path)
{
	const struct rtrs_info_rsp *rsp = path->info.rsp.msg;
	u32 i, nr, off, len, slot = 0;
	u64 addr;
	int ret;

	if (path->info.len < sizeof(*rsp) ||
	    le16_to_cpu(rsp->type) != RTRS_MSG_INFO_RSP)
		return -EPROTO;
	if (rsp->err && path->path.features & (RTRS_FEATURE_PROOF | RTRS_FEATURE_REASON))
		return rtrs_clt_info_refused(path, (s32)le32_to_cpu(rsp->err));
	nr = le16_to_cpu(rsp->nr_desc);
	if (path->info.len < struct_size(rsp, desc, nr))
		return -EPROTO;
	if (rtrs_clt_proves(path)) {
		ret = rtrs_clt_info_proved(path, nr);
		if (ret)
			return ret;
	}
	for (i = 0; i < nr; i++) {
		addr = le64_to_cpu(rsp->desc[i].addr);
		len = le32_to_cpu(rsp->desc[i].len);
		if (!len || len % path->neg.chunk_size || addr + len < addr ||
		    len / path->neg.chunk_size > path->neg.depth - slot)
			return -EPROTO;
		for (off = 0; off < len; off += path->neg.chunk_size, slot++) {
			/* The server may have more slots than the device supports. */
			if (slot >= path->neg.nr_slots)
				continue;
			path->slots[slot]->raddr = addr + off;
			path->slots[slot]->rkey = le32_to_cpu(rsp->desc[i].key);
		}
	}
	return slot == path->neg.depth ? 0 : -EPROTO;
}

static void rtrs_clt_info_send_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rtrs_con *con = wc->qp->qp_context;

	if (rtrs_con_wc_failed(con, wc, "registration of buffers or send of INFO_REQ"))
		return;
	rtrs_con_put_wr(con);
	rtrs_clt_path_step_done(to_clt_path(con->path));
}

/**
 * rtrs_clt_fill_info_req() - fill in an INFO_REQ
 * @req: message to fill in, zeroed by the caller
 * @name: name of the session, see rtrs_name_valid()
 */
void rtrs_clt_fill_info_req(struct rtrs_info_req *req, const char *name)
{
	req->type = cpu_to_le16(RTRS_MSG_INFO_REQ);
	strscpy(req->name, name, sizeof(req->name));
}

/**
 * rtrs_clt_info_register() - register a path's buffers for small data
 * @path: path that is being connected, with all connections and slots
 *
 * Context: the path's connect_work.
 * Return: 0 or a negative errno.
 */
int rtrs_clt_info_register(struct rtrs_clt_path *path)
{
	u32 i = 0;
	int ret;

	path->info.send_cqe.done = rtrs_clt_info_send_done;
	while (i < path->bufs.nr_mrs) {
		atomic_set(&path->sm.nr_pending, 1);
		ret = rtrs_region_register(&path->bufs, &path->cons[0].con, i,
					   &path->info.send_cqe);
		if (ret < 0)
			return ret;
		i += ret;
		ret = rtrs_clt_path_wait(path, RTRS_CLT_CONNECT_MS);
		if (ret)
			return ret;
	}
	return 0;
}

static int rtrs_clt_info_prove(struct rtrs_clt_path *path, struct rtrs_proof *proof)
{
	int ret;

	get_random_bytes(path->info.nonce, sizeof(path->info.nonce));
	memcpy(proof->nonce, path->info.nonce, sizeof(proof->nonce));
	ret = rtrs_clt_proof(path, NULL, proof->mac);
	if (ret)
		rtrs_path_err(&path->path, "the session's key can't be used: %pe\n",
			      ERR_PTR(ret));
	return ret;
}

/**
 * rtrs_clt_info_exchange() - send INFO_REQ and handle INFO_RSP
 * @path: path after rtrs_clt_info_register()
 *
 * Context: the path's connect_work.
 * Return: 0 or a negative errno.
 */
int rtrs_clt_info_exchange(struct rtrs_clt_path *path)
{
	u32 size = sizeof(struct rtrs_info_req) +
		   (rtrs_clt_proves(path) ? sizeof(struct rtrs_proof) : 0);
	struct rtrs_long req = {};
	int ret;

	ret = rtrs_long_alloc(&req, &path->path, size);
	if (ret)
		goto free_req;
	rtrs_clt_fill_info_req(req.msg, path->clt->name);
	if (rtrs_clt_proves(path)) {
		ret = rtrs_clt_info_prove(path, req.msg + sizeof(struct rtrs_info_req));
		if (ret)
			goto free_req;
	}
	/* Two events to wait for: INFO_REQ has been sent, and INFO_RSP has been received. */
	atomic_set(&path->sm.nr_pending, 2);
	WRITE_ONCE(path->info.asked, true);
	ret = rtrs_long_send(&req, &path->cons[0].con, &path->info.send_cqe);
	if (!ret)
		ret = rtrs_clt_path_wait(path, RTRS_CLT_CONNECT_MS);
	if (ret) {
		/* The device may still read the message. */
		rtrs_clt_cons_disconnect(path);
		goto free_req;
	}
	rtrs_long_received(&path->info.rsp);
	ret = rtrs_clt_parse_info_rsp(path);
	rtrs_clt_info_free(path);
free_req:
	rtrs_long_free(&req);
	return ret;
}
