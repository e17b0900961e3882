// SPDX-License-Identifier: GPL-2.0
/*
 * Floods of a hostile client: of connects that it leaves half open, and of wrong proofs. They last
 * until there is a file HOSTILE_STOP, and say in HOSTILE_TOLD how far they have come.
 */
#include <poll.h>
#include <unistd.h>

#include "hostile.h"

#define MOST	5000
#define WAIT_MS	5000

/* What came of the tries */
struct flood {
	unsigned int tries;
	unsigned int refused;	/* -EAGAIN */
	unsigned int open;	/* half open, or proofs that were wrong */
	unsigned int most;	/* of them at a time */
};

static bool stopped(void)
{
	return !access(getenv("HOSTILE_STOP"), F_OK);
}

static void tell(const struct flood *f)
{
	FILE *to = fopen(getenv("HOSTILE_TOLD"), "w");

	if (!to)
		return;
	fprintf(to, "tries=%u refused=%u open=%u most=%u\n", f->tries, f->refused, f->open,
		f->most);
	fclose(to);
}

/* One that is waited for, and what becomes of it */
struct knock {
	struct rdma_cm_id *id;
	int event;
	int err;
};

/* Handles an event of any of them; false if there is none in time. */
static bool flood_event(struct rdma_event_channel *ch, struct flood *f, int ms)
{
	struct pollfd fd = { .fd = ch->fd, .events = POLLIN };
	struct rdma_cm_event *ev;
	const struct cm_rep *rep;
	struct knock *k;

	if (poll(&fd, 1, ms) <= 0 || rdma_get_cm_event(ch, &ev))
		return false;
	k = ev->id->context;
	k->event = ev->event;
	rep = ev->param.conn.private_data;
	if (ev->event == RDMA_CM_EVENT_REJECTED && rep &&
	    ev->param.conn.private_data_len >= sizeof(*rep) && rep->magic == MAGIC)
		k->err = (int16_t)rep->err;
	/* The server has had enough of it. */
	f->open -= ev->event == RDMA_CM_EVENT_DISCONNECTED;
	rdma_ack_cm_event(ev);
	return true;
}

static int flood_await(struct rdma_event_channel *ch, struct flood *f, struct knock *k, int want)
{
	k->event = -1;
	while (k->event < 0)
		if (!flood_event(ch, f, WAIT_MS))
			return fail("waited for %s", rdma_event_str(want));
	return k->event == want ? 0 : -1;
}

/* Up to connection 0 of a session of its own; nothing follows. */
static int knock(struct rdma_event_channel *ch, struct flood *f, struct knock *k, struct path *p)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct rdma_conn_param param = {
		.private_data = &p->req,
		.private_data_len = sizeof(p->req),
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
	static struct ibv_cq *cq;

	if (rdma_create_id(ch, &k->id, k, RDMA_PS_TCP) ||
	    rdma_resolve_addr(k->id, NULL, (void *)&p->addr, WAIT_MS) ||
	    flood_await(ch, f, k, RDMA_CM_EVENT_ADDR_RESOLVED) ||
	    rdma_resolve_route(k->id, WAIT_MS) ||
	    flood_await(ch, f, k, RDMA_CM_EVENT_ROUTE_RESOLVED))
		return fail("no route: %s", strerror(errno));
	if (!cq)
		cq = ibv_create_cq(k->id->verbs, 1, NULL, NULL, 0);
	attr.send_cq = cq;
	attr.recv_cq = cq;
	if (!cq || rdma_create_qp(k->id, NULL, &attr) || rdma_connect(k->id, &param))
		return fail("can't connect: %s", strerror(errno));
	k->err = 0;
	if (!flood_await(ch, f, k, RDMA_CM_EVENT_ESTABLISHED)) {
		f->open++;
		f->most = f->open > f->most ? f->open : f->most;
		return 0;
	}
	rdma_destroy_qp(k->id);
	rdma_destroy_id(k->id);
	k->id = NULL;
	f->refused += k->err == -EAGAIN;
	return k->err == -EAGAIN ? 0 : fail("refused with %d", k->err);
}

static int flood_half(long arg)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct knock *knocks = calloc(MOST, sizeof(*knocks));
	struct path *p = path_new("half");
	struct flood f = { };
	unsigned int i;
	int ret = 0;

	for (i = 0; i < MOST && !ret && !stopped(); i++) {
		memcpy(p->req.sess_uuid, &i, sizeof(i));
		memcpy(p->req.path_uuid, &i, sizeof(i));
		ret = knock(ch, &f, &knocks[i], p);
		f.tries++;
		tell(&f);
	}
	/* They stay. */
	while (!ret && !stopped())
		flood_event(ch, &f, 100);
	for (i = 0; i < MOST; i++) {
		if (!knocks[i].id)
			continue;
		rdma_disconnect(knocks[i].id);
		rdma_destroy_qp(knocks[i].id);
		rdma_destroy_id(knocks[i].id);
	}
	rdma_destroy_event_channel(ch);
	free(knocks);
	return end_with(p, ret);
}

static int flood_proofs(long arg)
{
	struct flood f = { };
	int err;

	while (!stopped()) {
		err = wrong_proof_once();
		f.tries++;
		f.refused += err == -EAGAIN;
		f.open += err == -EKEYREJECTED;
		if (err != -EAGAIN && err != -EKEYREJECTED)
			return fail("a wrong proof got %d", err);
		tell(&f);
	}
	return 0;
}

const struct test flood_cases[] = {
	{ "flood-half", "connects that are left half open", flood_half, .extra = true },
	{ "flood-proofs", "wrong proofs as fast as they are answered", flood_proofs,
	  .extra = true },
	{ }
};
