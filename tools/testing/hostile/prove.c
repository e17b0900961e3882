// SPDX-License-Identifier: GPL-2.0
/*
 * Proofs of a secret, which is in HOSTILE_KEY. A proof is valid unless a case changes its input.
 */
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "hostile.h"

struct proof_req {
	struct info_req req;
	struct proof proof;
	u8 extra[8];
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

/* Sets the 15-bit tag of the session in the connection requests, next to first_conn. */
void prove_tag(struct path *p)
{
	const char *key = getenv("HOSTILE_KEY") ?: "none";
	struct proof_head head = { .role = 3 };
	u8 mac[32];
	unsigned int len = sizeof(mac);

	memcpy(head.label, "RTRS proof 1", 12);
	memcpy(head.sess_uuid, p->req.sess_uuid, 16);
	snprintf(head.name, sizeof(head.name), "%s", p->sess);
	HMAC(EVP_sha256(), key, strlen(key), (u8 *)&head, sizeof(head), mac, &len);
	p->req.first_conn = (p->req.first_conn & 1) | (mac[0] & 0xfe);
	p->req.tag_hi = mac[1];
}

/* Computes the MAC of a role for the nonce in @proof. */
void prove(struct path *p, u32 role, struct proof *proof)
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

/* Sends the first @len bytes of INFO_REQ with a proof. */
int send_proof(struct path *p, const struct proof *proof, u32 len)
{
	struct proof_req req = { .req.type = MSG_INFO_REQ, .proof = *proof };

	memcpy(req.req.name, p->sess, sizeof(req.req.name));
	return path_info_req(p, &req, len);
}
