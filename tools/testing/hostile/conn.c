// SPDX-License-Identifier: GPL-2.0
/*
 * Connections: addresses and routes, queue pairs, the connection manager. Each has an event channel
 * and a completion queue of its own, so that a broken one does not block others.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>

#include "hostile.h"

#define RESOLVE_MS	5000
#define SEND_WRS	512

int set_addr(struct sockaddr_storage *to, const char *addr, const char *port)
{
	struct sockaddr_in6 *in6 = (void *)to;
	struct sockaddr_in *in = (void *)to;

	if (inet_pton(AF_INET, addr, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons(atoi(port));
		return 0;
	}
	if (inet_pton(AF_INET6, addr, &in6->sin6_addr) != 1)
		return -1;
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(atoi(port));
	return 0;
}

/* Keeps the private data of an answer. The CM pads those of an accept. */
static void con_keep_rep(struct con *con, const struct rdma_cm_event *ev)
{
	const struct cm_rep *rep = ev->param.conn.private_data;
	struct path *p = con->path;
	bool rejected = ev->event == RDMA_CM_EVENT_REJECTED;

	if (!rep || ev->param.conn.private_data_len < sizeof(*rep))
		return;
	if (rejected)
		p->reject_err = rep->magic == MAGIC ? (int16_t)rep->err : 0;
	else if (!con->cid)
		p->rep = *rep;
	memcpy(con->nonce, rep->nonce, sizeof(con->nonce));
	con->peer_qpn = ev->param.conn.qp_num;
}

static void con_event(struct con *con, const struct rdma_cm_event *ev)
{
	switch (ev->event) {
	case RDMA_CM_EVENT_ESTABLISHED:
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		con->up = true;
		con_keep_rep(con, ev);
		break;
	case RDMA_CM_EVENT_REJECTED:
		con_keep_rep(con, ev);
		con->ended = true;
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		con->ended = true;
		break;
	default:
		break;
	}
}

/* Handles one event within @ms; returns its type, or -1. */
static int con_next_event(struct con *con, int ms)
{
	struct pollfd fd = { .fd = con->ch->fd, .events = POLLIN };
	struct rdma_cm_event *ev;
	int type;

	if (poll(&fd, 1, ms) <= 0 || rdma_get_cm_event(con->ch, &ev))
		return -1;
	type = ev->event;
	con_event(con, ev);
	rdma_ack_cm_event(ev);
	return type;
}

/* Waits for the event; another one, or none, is a failure. */
int con_wait_event(struct con *con, enum rdma_cm_event_type want, int ms)
{
	int got = con_next_event(con, ms);

	if (got == (int)want)
		return 0;
	return fail("connection %u: waited for %s, got %s", con->cid,
		    rdma_event_str(want), got < 0 ? "nothing" : rdma_event_str(got));
}

void con_poll_cm(struct con *con)
{
	while (con->ch && con_next_event(con, 0) >= 0)
		;
}

int con_resolve(struct con *con)
{
	con->ch = rdma_create_event_channel();
	if (!con->ch)
		return fail("no event channel: %s", strerror(errno));
	fcntl(con->ch->fd, F_SETFL, O_NONBLOCK);
	if (rdma_create_id(con->ch, &con->id, con, RDMA_PS_TCP) ||
	    rdma_resolve_addr(con->id, NULL, (void *)&con->path->addr,
			      RESOLVE_MS))
		return fail("can't resolve the address: %s", strerror(errno));
	if (con_wait_event(con, RDMA_CM_EVENT_ADDR_RESOLVED, RESOLVE_MS))
		return -1;
	if (rdma_resolve_route(con->id, RESOLVE_MS))
		return fail("can't resolve the route: %s", strerror(errno));
	return con_wait_event(con, RDMA_CM_EVENT_ROUTE_RESOLVED, RESOLVE_MS);
}

int con_recv(struct con *con, unsigned int i)
{
	bool info = i == NR_RECVS;
	struct ibv_sge sge = {
		.addr = (uintptr_t)con->recvs + i * RECV_SIZE,
		.length = info ? INFO_SIZE : RECV_SIZE,
		.lkey = con->path->mr->lkey,
	};
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	/* Completions may be handled after the queue pair is destroyed. */
	return con->qp ? ibv_post_recv(con->qp, &wr, &bad) : -1;
}

/* Modifies a queue pair as the CM does with its own, but allows RDMA READ and atomics. */
static int con_move_qp(struct con *con, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask;

	if (rdma_init_qp_attr(con->id, &attr, &mask))
		return -1;
	if (state == IBV_QPS_RTS)
		attr.max_rd_atomic = 1;
	return ibv_modify_qp(con->qp, &attr, mask);
}

void con_destroy_qp(struct con *con)
{
	if (con->qp && con->qp == con->id->qp)
		rdma_destroy_qp(con->id);
	else if (con->qp)
		ibv_destroy_qp(con->qp);
	con->qp = NULL;
}

int con_create_qp(struct con *con)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap.max_send_wr = SEND_WRS,
		.cap.max_recv_wr = NR_RECVS + 1,
		.cap.max_send_sge = 1,
		.cap.max_recv_sge = 1,
		.cap.max_inline_data = sizeof(struct msg_imm),
		.sq_sig_all = 1,
	};
	unsigned int i;

	con->cq = ibv_create_cq(con->id->verbs, SEND_WRS + NR_RECVS + 1, NULL,
				NULL, 0);
	if (!con->cq)
		return fail("no completion queue: %s", strerror(errno));
	attr.send_cq = con->cq;
	attr.recv_cq = con->cq;
	if (con->path->may_read) {
		con->qp = ibv_create_qp(con->path->pd, &attr);
		if (!con->qp || con_move_qp(con, IBV_QPS_INIT))
			return fail("no queue pair: %s", strerror(errno));
	} else {
		if (rdma_create_qp(con->id, con->path->pd, &attr))
			return fail("no queue pair: %s", strerror(errno));
		con->qp = con->id->qp;
	}
	if (con->path->no_recv)
		return 0;
	/* The first one, of connection 0, is for INFO_RSP. */
	if (!con->cid && con_recv(con, NR_RECVS))
		return fail("can't post a receive");
	for (i = 0; i < NR_RECVS; i++)
		if (con_recv(con, i))
			return fail("can't post a receive");
	return 0;
}

/* Moves the queue pair to the error state, which the peer is not told. */
void con_break_qp(struct con *con)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	ibv_modify_qp(con->qp, &attr, IBV_QP_STATE);
}

int con_request_only(struct con *con, const void *data, u8 len)
{
	struct rdma_conn_param param = {
		.private_data = data,
		.private_data_len = len,
		.responder_resources = con->path->reads,
		.initiator_depth = 1,
		.retry_count = 7,
		.rnr_retry_count = 7,
		.qp_num = con->qp->qp_num,
	};

	return rdma_connect(con->id, &param);
}

/* 0: accepted; 1: rejected; -1: neither */
int con_request(struct con *con, const void *data, u8 len)
{
	int ev;

	if (con_request_only(con, data, len))
		return fail("rdma_connect: %s", strerror(errno));
	ev = con_next_event(con, 10000);
	if (ev == RDMA_CM_EVENT_ESTABLISHED)
		return 0;
	if (ev == RDMA_CM_EVENT_CONNECT_RESPONSE) {
		if (con_move_qp(con, IBV_QPS_RTR) ||
		    con_move_qp(con, IBV_QPS_RTS) || rdma_establish(con->id))
			return fail("can't establish: %s", strerror(errno));
		return 0;
	}
	if (ev == RDMA_CM_EVENT_REJECTED)
		return 1;
	return fail("connection %u: request got %s", con->cid,
		    ev < 0 ? "no answer" : rdma_event_str(ev));
}

void con_free(struct con *con)
{
	con_destroy_qp(con);
	if (con->cq)
		ibv_destroy_cq(con->cq);
	if (con->id)
		rdma_destroy_id(con->id);
	if (con->ch)
		rdma_destroy_event_channel(con->ch);
	*con = (struct con) {
		.path = con->path,
		.cid = con->cid,
		.recvs = con->recvs,
	};
}

/* Waits for room for @nr work requests; -1 if the connection ends first. */
int con_room(struct con *con, unsigned int nr)
{
	u64 end = now_ms() + 10000;

	while (con->inflight + nr > SEND_WRS) {
		path_poll(con->path);
		if (con->ended || con->status || now_ms() > end)
			return -1;
		if (con->inflight + nr > SEND_WRS)
			nap_us(50);
	}
	return 0;
}

/* Posts an RDMA WRITE WITH IMM as a write, if it has data, and a message. */
static int con_post_as_msg(struct con *con, const struct ibv_send_wr *wr)
{
	struct msg_imm msg = { .type = MSG_IMM, .imm = ntohl(wr->imm_data) };
	struct ibv_sge sge = { .addr = (uintptr_t)&msg, .length = sizeof(msg) };
	struct ibv_send_wr write = *wr, send = {
		.wr_id = 1ull << 63,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE,
	};

	write.opcode = IBV_WR_RDMA_WRITE;
	write.next = NULL;
	if (wr->num_sge && con_post(con, &write))
		return -1;
	return con_post(con, &send);
}

/* Posts a chain one by one, without immediate data. */
static int con_post_no_imm(struct con *con, const struct ibv_send_wr *wr)
{
	struct ibv_send_wr one;
	int ret = 0;

	for (; wr && !ret; wr = wr->next) {
		one = *wr;
		one.next = NULL;
		ret = wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? con_post_as_msg(con, wr) :
								 con_post(con, &one);
	}
	return ret;
}

static bool has_imm(const struct ibv_send_wr *wr)
{
	for (; wr; wr = wr->next)
		if (wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
			return true;
	return false;
}

/* Posts a chain. A post that fails because the queue pair is broken is no error. */
int con_post(struct con *con, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad = NULL, *w;
	unsigned int nr = 0;

	if (con->path->no_imm && has_imm(wr))
		return con_post_no_imm(con, wr);
	for (w = wr; w; w = w->next)
		nr++;
	if (!con->qp || con_room(con, nr))
		return -1;
	if (ibv_post_send(con->qp, wr, &bad))
		for (w = bad; w; w = w->next)
			nr--;
	con->inflight += nr;
	return 0;
}
