// SPDX-License-Identifier: GPL-2.0
/*
 * Cases of a hostile client: proofs that it knows a secret. The session's host has a key on the
 * server, which is in HOSTILE_KEY, or another client's proof couldn't be used again.
 */
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "hostile.h"

#define SESS	"keyed"

struct proof {
	u8 nonce[32];
	u8 mac[32];
};

struct proof_req {
	struct info_req req;
	struct proof proof;
	u8 more[8];
} __attribute__((packed));

struct proof_head {
	char label[12];
	u32 role;
	u8 nonce[32];
	u8 sess_uuid[16];
	u8 path_uuid[16];
	u8 srv_uuid[16];
	u32 sess_id;
	u32 path_id;
	u32 features;
	u16 recon_cnt;
	u16 nr_cons;
	char name[256];
	u8 addr[2][17];
	u8 zero[2];
} __attribute__((packed));
static_assert(sizeof(struct proof_head) == 404, "proof_head");

static void put_addr(u8 *to, const struct sockaddr *sa)
{
	to[0] = sa->sa_family;
	if (sa->sa_family == AF_INET)
		memcpy(to + 1, &((const struct sockaddr_in *)sa)->sin_addr, 4);
	else
		memcpy(to + 1, &((const struct sockaddr_in6 *)sa)->sin6_addr, 16);
}

/* As the role, with the nonce that is there already */
static void prove(struct path *p, u32 role, struct proof *proof)
{
	const char *key = getenv("HOSTILE_KEY") ?: "none";
	struct {
		struct proof_head head;
		struct {
			u8 nonce[8];
			u32 qpn[2];
		} cons[MAX_CONS];
	} __attribute__((packed)) all = { .head = {
		.role = role,
		.sess_id = p->rep.sess_id,
		.path_id = p->rep.features & FEATURE_FENCE ? p->req.path_id : 0,
		.features = p->rep.features,
		.recon_cnt = p->req.recon_cnt,
		.nr_cons = p->nr_cons,
	} };
	unsigned int i, len = 32;

	memcpy(all.head.label, "RTRS proof 1", 12);
	memcpy(all.head.nonce, proof->nonce, 32);
	memcpy(all.head.sess_uuid, p->req.sess_uuid, 16);
	memcpy(all.head.path_uuid, p->req.path_uuid, 16);
	memcpy(all.head.srv_uuid, p->rep.srv_uuid, 16);
	snprintf(all.head.name, sizeof(all.head.name), "%s", p->sess);
	put_addr(all.head.addr[0], rdma_get_local_addr(p->cons[0].id));
	put_addr(all.head.addr[1], rdma_get_peer_addr(p->cons[0].id));
	for (i = 0; i < p->nr_cons; i++) {
		memcpy(all.cons[i].nonce, p->cons[i].nonce, 8);
		all.cons[i].qpn[0] = p->no_imm ? 0 : p->cons[i].qp->qp_num;
		all.cons[i].qpn[1] = p->no_imm ? 0 : p->cons[i].peer_qpn;
	}
	HMAC(EVP_sha256(), key, strlen(key), (u8 *)&all,
	     sizeof(all.head) + 16 * p->nr_cons, proof->mac, &len);
}

/* A path with all connections, that offers to prove something */
static struct path *proof_path(void)
{
	struct path *p = path_new(SESS);

	if (!p)
		return NULL;
	path_offer(p);
	p->req.features |= FEATURE_PROOF;
	if (!path_connect(p) && p->rep.features & FEATURE_PROOF)
		return p;
	path_free(p);
	return NULL;
}

static int send_proof(struct path *p, const struct proof *proof, u32 len)
{
	struct proof_req req = { .req.type = MSG_INFO_REQ, .proof = *proof };

	memcpy(req.req.name, p->sess, sizeof(req.req.name));
	return path_info_req(p, &req, len);
}

/* It is told that it is refused, and nothing else; then it is for it to go. */
static int must_be_refused(struct path *p)
{
	u64 end = now_ms() + 10000;

	while (!p->refused && !path_ended(p)) {
		path_poll(p);
		if (now_ms() > end)
			return fail("no answer to a wrong proof");
		nap_us(200);
	}
	if (p->refused != -EKEYREJECTED || p->nr_info)
		return fail("refused with %d, %u descriptors", p->refused, p->nr_info);
	return 0;
}

enum { RIGHT, RANDOM, BIT, REFLECTED, OTHER_NAME, REPLAYED, OTHER_PATH, OTHER_CON, OTHER_CON_0,
	OTHER_QP, AGAIN_AFTER, IO_AFTER };

/* A proof that was right for a path that is gone, or is there beside this one */
static int earlier(struct proof *proof, bool stays, struct path **first)
{
	*first = proof_path();
	if (!*first)
		return -1;
	prove(*first, 1, proof);
	if (send_proof(*first, proof, sizeof(struct info_req) + sizeof(*proof)) ||
	    path_wait_info(*first))
		return -1;
	if (stays)
		return 0;
	path_free(*first);
	*first = NULL;
	return must_go(SESS, 10000);
}

static int wrong_proof(long arg)
{
	struct path *first = NULL, *p;
	struct proof proof;
	int ret;

	memset(&proof, 0x5a, sizeof(proof));
	if ((arg == REPLAYED || arg == OTHER_PATH) && earlier(&proof, arg == OTHER_PATH, &first))
		return first ? end_with(first, -1) : -1;
	p = proof_path();
	if (!p)
		return fail("no path that can prove anything");
	/* As if somebody else had made the connection: its nonce isn't known, or its number. */
	if (arg == OTHER_CON)
		p->cons[1].nonce[7] ^= 1;
	if (arg == OTHER_CON_0)
		p->cons[0].nonce[0] ^= 1;
	if (arg == OTHER_QP)
		p->cons[1].peer_qpn ^= 1;
	if (arg == OTHER_NAME)
		strcpy(p->sess, SESS "2");
	if (arg != RANDOM && arg != REPLAYED && arg != OTHER_PATH)
		prove(p, arg == REFLECTED ? 2 : 1, &proof);
	if (arg == OTHER_NAME)
		strcpy(p->sess, SESS);
	if (arg == BIT || arg == AGAIN_AFTER || arg == IO_AFTER)
		proof.mac[31] ^= 1;
	ret = send_proof(p, &proof, sizeof(struct info_req) + sizeof(proof));
	if (!ret && arg == RIGHT)
		ret = path_wait_info(p) ?: must_live(p);
	else if (!ret)
		ret = must_be_refused(p);
	if (!ret && arg == AGAIN_AFTER) {
		proof.mac[31] ^= 1;
		ret = send_proof(p, &proof, sizeof(struct info_req) + sizeof(proof)) ?:
		      must_end_quietly(p);
	}
	if (!ret && arg == IO_AFTER)
		ret = send_imm(p, 1, 0) ?: must_end_quietly(p);
	if (first)
		path_free(first);
	return end_with(p, ret);
}

/* The errno with which it was refused, or another negative number */
int wrong_proof_once(void)
{
	struct path *p = path_new(SESS);
	struct proof proof;
	int ret;

	memset(&proof, 0x5a, sizeof(proof));
	p->req.features |= FEATURE_PROOF;
	ret = path_connect(p);
	if (ret)
		ret = p->reject_err ?: ret;
	else if (send_proof(p, &proof, sizeof(struct info_req) + sizeof(proof)) ||
		 must_be_refused(p))
		ret = -1;
	else
		ret = p->refused;
	path_free(p);
	return ret;
}

/* INFO_REQ has another length than its features say. */
static int proof_len(long len)
{
	struct proof proof = { };
	struct path *p = proof_path();
	int ret;

	if (!p)
		return fail("no path that can prove anything");
	prove(p, 1, &proof);
	ret = send_proof(p, &proof, len);
	return end_with(p, ret ?: must_end(p, "first message"));
}

/* Nothing is proved, by a client that could, or not: by a name that a host with a key has. */
static int no_proof(long arg)
{
	struct path *p = path_new(SESS);
	struct info_req req = { .type = MSG_INFO_REQ };
	int ret = path_connect(p);

	strcpy(req.name, SESS);
	if (!ret)
		ret = path_info_req(p, &req, sizeof(req));
	return end_with(p, ret ?: must_end(p, "can't be set up"));
}

/* It is told that it is refused, and stays: not for long. */
static int refused_stays(long arg)
{
	struct path *p = proof_path();
	struct proof proof;
	int ret;

	if (!p)
		return fail("no path that can prove anything");
	memset(&proof, 0x5a, sizeof(proof));
	ret = send_proof(p, &proof, sizeof(struct info_req) + sizeof(proof)) ?:
	      must_be_refused(p) ?: must_end_quietly(p);
	return end_with(p, ret);
}

#define PROOF(name, about, arg) { name, about, wrong_proof, arg, .extra = true }

const struct test proof_cases[] = {
	PROOF("proof-right", "as it should be", RIGHT),
	PROOF("proof-random", "any bytes", RANDOM),
	PROOF("proof-bit", "a bit is wrong", BIT),
	PROOF("proof-reflected", "that of the server", REFLECTED),
	PROOF("proof-name", "of another session", OTHER_NAME),
	PROOF("proof-replayed", "of a path that has gone", REPLAYED),
	PROOF("proof-path", "of another path that is there", OTHER_PATH),
	PROOF("proof-con", "a connection is somebody else's", OTHER_CON),
	PROOF("proof-con-0", "so is the first one", OTHER_CON_0),
	PROOF("proof-qp", "its queue pair is another one", OTHER_QP),
	PROOF("proof-again", "a right one after a wrong one", AGAIN_AFTER),
	PROOF("proof-io", "a request after a wrong one", IO_AFTER),
	{ "proof-stay", "it doesn't go after a wrong one", refused_stays, .extra = true },
	{ "proof-none", "a name with a key, and no proof", no_proof, .extra = true },
	{ "proof-missing", "INFO_REQ without it", proof_len, 272, .extra = true },
	{ "proof-cut", "one byte less", proof_len, 272 + 63, .extra = true },
	{ "proof-long", "one byte more", proof_len, 272 + 65, .extra = true },
	{ }
};
