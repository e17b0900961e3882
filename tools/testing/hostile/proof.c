// SPDX-License-Identifier: GPL-2.0
/*
 * Cases of a hostile client: proofs of a secret. The session's host has a key on the server, whose
 * secret is in HOSTILE_KEY, for valid proofs.
 */
#include "hostile.h"

#define SESS	"keyed"

/* A path of the session with a key that offers a proof; not connected */
static struct path *keyed_path(void)
{
	struct path *p = path_new(SESS);

	if (p) {
		path_offer(p);
		path_offer_proof(p);
	}
	return p;
}

/* The same, connected */
static struct path *proof_path(void)
{
	struct path *p = keyed_path();

	if (!p)
		return NULL;
	if (!path_connect(p) && p->rep.features & FEATURE_PROOF)
		return p;
	path_free(p);
	return NULL;
}

/* The server refuses the path with an errno, and leaves the disconnect to the client. */
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

/* A valid proof of another path, which has ended or not */
static int earlier(struct proof *proof, bool stays, struct path **first)
{
	*first = proof_path();
	if (!*first)
		return -1;
	prove(*first, 1, proof);
	if (send_proof(*first, proof, PROOF_LEN) ||
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
		return fail("no path with proofs");
	/* As if another client had made the connection: its nonce or queue pair differ. */
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
	ret = send_proof(p, &proof, PROOF_LEN);
	if (!ret && arg == RIGHT)
		ret = path_wait_info(p) ?: must_live(p);
	else if (!ret)
		ret = must_be_refused(p);
	if (!ret && arg == AGAIN_AFTER) {
		proof.mac[31] ^= 1;
		ret = send_proof(p, &proof, PROOF_LEN) ?:
		      must_end_quietly(p);
	}
	if (!ret && arg == IO_AFTER)
		ret = send_imm(p, 1, 0) ?: must_end_quietly(p);
	if (first)
		path_free(first);
	return end_with(p, ret);
}

/* The errno of the refusal, or another negative number */
int wrong_proof_once(void)
{
	struct path *p = path_new(SESS);
	struct proof proof;
	int ret;

	memset(&proof, 0x5a, sizeof(proof));
	path_offer_proof(p);
	ret = path_connect(p);
	if (ret)
		ret = p->reject_err ?: ret;
	else if (send_proof(p, &proof, PROOF_LEN) ||
		 must_be_refused(p))
		ret = -1;
	else
		ret = p->refused;
	path_free(p);
	return ret;
}

/* INFO_REQ has another length than its features require. */
static int proof_len(long len)
{
	struct proof proof = { };
	struct path *p = proof_path();
	int ret;

	if (!p)
		return fail("no path with proofs");
	prove(p, 1, &proof);
	ret = send_proof(p, &proof, len);
	return end_with(p, ret ?: must_end(p, "first message"));
}

/* No proof, with the session name of a host that has a key */
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

/* A refused client does not disconnect: the server ends the path. */
static int refused_stays(long arg)
{
	struct path *p = proof_path();
	struct proof proof;
	int ret;

	if (!p)
		return fail("no path with proofs");
	memset(&proof, 0x5a, sizeof(proof));
	ret = send_proof(p, &proof, PROOF_LEN) ?:
	      must_be_refused(p) ?: must_end_quietly(p);
	return end_with(p, ret);
}

/* A path with the UUID of the owner's session, but without a proof */
static struct path *stranger(const struct path *owner, const char *sess)
{
	struct path *p = path_new(sess);

	if (p) {
		path_offer(p);
		memcpy(p->req.sess_uuid, owner->req.sess_uuid, 16);
	}
	return p;
}

enum { UP, HALF_OPEN, OTHER_DEPTH, LATER, LATER_PATH, INSIDER, INSIDER_LIES };

/*
 * A client without a proof has a session with the owner's UUID, or connects to that UUID. The
 * owner's path comes up in another session, and stays.
 */
static int stranger_has_uuid(long arg)
{
	struct path *p = keyed_path(), *other;
	int ret = 0;

	if (!p)
		return -1;
	other = stranger(p, test_name);
	if (!other)
		return end_with(p, -1);
	if (arg == LATER || arg == LATER_PATH)
		ret = path_connect(p) ?: path_info(p);
	if (arg == LATER_PATH) {
		memcpy(other->req.path_uuid, p->req.path_uuid, 16);
		other->req.recon_cnt = p->req.recon_cnt + 1;
	}
	if (arg == OTHER_DEPTH) {
		path_offer_proof(other);
		other->req.queue_depth = 5;
	}
	if (!ret)
		ret = path_connect(other);
	if (!ret && arg != HALF_OPEN && arg != OTHER_DEPTH)
		ret = path_info(other);
	if (!ret && arg != LATER && arg != LATER_PATH)
		ret = path_connect(p) ?: path_info(p);
	if (!ret && other->rep.sess_id == p->rep.sess_id)
		ret = fail("both are in session %#x", p->rep.sess_id);
	ret = ret ?: must_live(p);
	path_free(other);
	return end_with(p, ret);
}

/*
 * The same with a client that has a key and a name of its own, with its own tag or the owner's. It
 * gets a session of its own, or none.
 */
static int insider_has_uuid(long arg)
{
	struct path *p = keyed_path(), *other;
	int ret = -1;

	if (!p)
		return -1;
	other = stranger(p, "insider");
	if (!other)
		return end_with(p, -1);
	path_offer_proof(other);
	if (arg == INSIDER_LIES)
		memcpy(&other->req.first_conn, &p->req.first_conn, 2);
	if (!path_connect(other)) {
		ret = path_info(other);
		if (arg == INSIDER_LIES)
			ret = ret ? 0 : fail("it joined the owner's session");
	}
	ret = ret ?: path_connect(p) ?: path_info(p) ?: must_live(p);
	path_free(other);
	return end_with(p, ret ?: must_live(p));
}

/* A path without INFO_REQ in a session whose only other path ends: session and path end. */
static int half_open_stays(long arg)
{
	struct path *p = keyed_path(), *half = keyed_path();
	int ret = -1;

	if (p && half && !path_connect(p) && !path_info(p)) {
		path_join(half, p, 0);
		ret = path_connect(half);
	}
	if (p)
		path_free(p);
	ret = ret ?: must_end_quietly(half) ?: must_go(SESS, 10000);
	return half ? end_with(half, ret) : -1;
}

/* A client that knows the host's connection requests reconnects its path without a valid proof. */
static int stranger_reconnects(long arg)
{
	struct path *p = keyed_path(), *other = keyed_path();
	struct proof proof;
	int ret = -1;

	memset(&proof, 0x5a, sizeof(proof));
	if (p && other && !path_connect(p) && !path_info(p)) {
		path_join(other, p, 0);
		memcpy(other->req.path_uuid, p->req.path_uuid, 16);
		other->req.recon_cnt = p->req.recon_cnt + 1;
		ret = path_connect(other) ?: must_live(p) ?:
		      send_proof(other, &proof, PROOF_LEN) ?: must_be_refused(other) ?:
		      must_live(p);
	}
	if (other)
		path_free(other);
	return p ? end_with(p, ret) : -1;
}

#define PROOF(name, about, arg) { name, about, wrong_proof, arg, .extra = true }

const struct test proof_cases[] = {
	PROOF("proof-right", "valid proof", RIGHT),
	PROOF("proof-random", "random bytes", RANDOM),
	PROOF("proof-bit", "one bit differs", BIT),
	PROOF("proof-reflected", "the server's part", REFLECTED),
	PROOF("proof-name", "proof of another session name", OTHER_NAME),
	PROOF("proof-replayed", "proof of a path that has ended", REPLAYED),
	PROOF("proof-path", "proof of another path", OTHER_PATH),
	PROOF("proof-con", "connection 1 of another client", OTHER_CON),
	PROOF("proof-con-0", "connection 0 of another client", OTHER_CON_0),
	PROOF("proof-qp", "queue pair of another client", OTHER_QP),
	PROOF("proof-again", "valid proof after an invalid one", AGAIN_AFTER),
	PROOF("proof-io", "request after an invalid proof", IO_AFTER),
	{ "proof-uuid", "without a proof: a session with the owner's UUID", stranger_has_uuid, UP,
	  .extra = true },
	{ "proof-uuid-half", "without a proof: a session that is not complete", stranger_has_uuid,
	  HALF_OPEN, .extra = true },
	{ "proof-uuid-depth", "without a proof: another queue depth", stranger_has_uuid,
	  OTHER_DEPTH, .extra = true },
	{ "proof-uuid-later", "without a proof: connects to the UUID of a session",
	  stranger_has_uuid, LATER, .extra = true },
	{ "proof-uuid-path", "without a proof: reconnects the UUID of a path", stranger_has_uuid,
	  LATER_PATH, .extra = true },
	{ "proof-uuid-insider", "another client with a key uses the owner's UUID",
	  insider_has_uuid, INSIDER, .extra = true },
	{ "proof-uuid-lies", "the same with the owner's tag", insider_has_uuid, INSIDER_LIES,
	  .extra = true },
	{ "proof-reconnect", "reconnect of a path with an invalid proof", stranger_reconnects,
	  .extra = true },
	{ "proof-half-open", "a path without INFO_REQ when the session's other path ends",
	  half_open_stays, .extra = true },
	{ "proof-stay", "no disconnect after an invalid proof", refused_stays, .extra = true },
	{ "proof-none", "no proof", no_proof, .extra = true },
	{ "proof-missing", "INFO_REQ without the negotiated proof", proof_len, 272,
	  .extra = true },
	{ "proof-cut", "proof a byte too short", proof_len, 272 + 63, .extra = true },
	{ "proof-long", "proof a byte too long", proof_len, 272 + 65, .extra = true },
	{ }
};
