/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RTRS 2.0 on the wire. Documentation/rtrs-protocol.rst tells who sends what
 * when; all integers are little endian but the immediate value.
 */
#ifndef RTRS_PROTO_H
#define RTRS_PROTO_H

#include <linux/bits.h>
#include <linux/build_bug.h>
#include <linux/log2.h>
#include <linux/sizes.h>
#include <linux/types.h>
#include <linux/uuid.h>

#include "../rtrs.h"

#define RTRS_MAGIC		0x1bbd
#define RTRS_VERSION_MAJOR	2
#define RTRS_VERSION_MINOR	0
#define RTRS_VERSION		(RTRS_VERSION_MAJOR << 8 | RTRS_VERSION_MINOR)

/* Connections of a path: the service connection, then those for I/O. */
#define RTRS_MAX_CONS		4096
/* Room for headers behind the data in each chunk. */
#define RTRS_HDR_ROOM		4096
/* The same of a slot with less than RTRS_HDR_ROOM * 4 bytes of data, with RTRS_FEATURE_SLOTS. */
#define RTRS_SLOT_HDR_ROOM	512
#define RTRS_MIN_CHUNK_SIZE	8192
#define RTRS_SERVICE_DEPTH	512
#define RTRS_CM_RETRIES		7

#define RTRS_HB_INTERVAL_MS	5000
#define RTRS_HB_MAX_MISSED	5

/**
 * struct rtrs_cm_req - private data of a connection request
 * @cma: the first bytes belong to the CM for AF_IB
 * @magic: RTRS_MAGIC
 * @version: RTRS_VERSION; another major version is refused
 * @cid: index of this connection in its path, 0 for the service connection
 * @cid_num: connections in the path
 * @recon_cnt: grows with each connect of the path
 * @path_uuid: names the path
 * @sess_uuid: names the session, same on all its paths
 * @first_conn: bit 0: the server may create the session for this path
 * @reserved: 0
 * @queue_depth: most requests in flight that the client will have in the session; 0: as many as
 *	the server has room for, as clients that don't know of it
 * @features: RTRS_FEATURE_* that the client offers; 0 from one that knows none
 * @path_id: with RTRS_FEATURE_FENCE: names this connect of this path in the session
 */
struct rtrs_cm_req {
	u8 cma[2];
	__le16 magic;
	__le16 version;
	__le16 cid;
	__le16 cid_num;
	__le16 recon_cnt;
	uuid_t path_uuid;
	uuid_t sess_uuid;
	u8 first_conn;
	u8 reserved;
	__le16 queue_depth;
	__le32 features;
	__le32 path_id;
};

static_assert(sizeof(struct rtrs_cm_req) == 56);

/*
 * The server can say when a path that the client has given up is dead: see
 * RTRS_IMM_FENCE.
 */
#define RTRS_FEATURE_FENCE	BIT(0)
#define RTRS_MAX_PATH_ID	0xfffffffU
/* The server may tell the client's upper layer to ask for news: see RTRS_IMM_EVENT. */
#define RTRS_FEATURE_EVENT	BIT(1)
/*
 * The server's memory for requests is of small slots. Data that don't fit in one are fetched
 * by the server, or written by it, when it has a buffer for them.
 */
#define RTRS_FEATURE_SLOTS	BIT(2)
/* With RTRS_FEATURE_SLOTS: struct rtrs_msg_imm takes the place of immediate data. */
#define RTRS_FEATURE_NO_IMM	BIT(3)
/* Both ends prove that they know a secret, before INFO_RSP: see struct rtrs_proof. */
#define RTRS_FEATURE_PROOF	BIT(4)
#define RTRS_PROOF_NONCE	32
#define RTRS_PROOF_MAC		32
#define RTRS_PROOF_LABEL	"RTRS proof 1"
/* Secrets with fewer bytes could be found by trying. */
#define RTRS_PROOF_MIN_KEY	16
/* The server says why it refuses a path, as by RTRS_FEATURE_PROOF: &rtrs_info_rsp.err */
#define RTRS_FEATURE_REASON	BIT(5)
/* Those that we know, and that don't depend on the device, or on whether there is a secret. */
#define RTRS_FEATURES		(RTRS_FEATURE_FENCE | RTRS_FEATURE_EVENT | \
				 RTRS_FEATURE_SLOTS | RTRS_FEATURE_REASON)
/* Slots are of a multiple of this; so eight of them, headers included, are whole pages. */
#define RTRS_SLOT_UNIT		512U
#define RTRS_MAX_SLOT_SIZE	SZ_128K

/* The server invalidates a chunk's key on each I/O and sends a new one. */
#define RTRS_FLAG_NEW_RKEY	BIT(1)

/**
 * struct rtrs_cm_rep - private data of an accept and of a reject
 * @magic: RTRS_MAGIC
 * @version: RTRS_VERSION
 * @err: 0 on accept, negative errno on reject
 * @queue_depth: chunks of the session; at most as many as the client has asked for
 * @max_io_size: most bytes of data in a request; without RTRS_FEATURE_SLOTS, bytes of data in
 *	a chunk
 * @max_hdr_size: bytes for headers in a chunk, or slot
 * @flags: RTRS_FLAG_NEW_RKEY or 0
 * @features: those offered that the server grants; 0 from one that knows none
 * @sess_id: with RTRS_FEATURE_FENCE: not 0, another one for each session that the
 *	server makes, so that a client can tell that its session is not the old one
 * @srv_uuid: with RTRS_FEATURE_FENCE: names the server from its start to its end; it
 *	sends no INFO_RSP in a session while it has an older one of the same sess_uuid.
 *	All 0 from one that promises nothing like that
 * @slot_size: with RTRS_FEATURE_SLOTS: bytes of data in a slot, a multiple of RTRS_SLOT_UNIT
 * @nonce: with RTRS_FEATURE_PROOF: random, another one for each connection; else 0
 */
struct rtrs_cm_rep {
	__le16 magic;
	__le16 version;
	__le16 err;
	__le16 queue_depth;
	__le32 max_io_size;
	__le32 max_hdr_size;
	__le32 flags;
	__le32 features;
	__le32 sess_id;
	uuid_t srv_uuid;
	__le32 slot_size;
	u8 nonce[8];
};

static_assert(sizeof(struct rtrs_cm_rep) == 56);

/**
 * enum rtrs_msg_type - first field of each message
 * @RTRS_MSG_INFO_REQ: struct rtrs_info_req
 * @RTRS_MSG_INFO_RSP: struct rtrs_info_rsp
 * @RTRS_MSG_WRITE: struct rtrs_msg_write
 * @RTRS_MSG_READ: struct rtrs_msg_read
 * @RTRS_MSG_RKEY_RSP: struct rtrs_msg_rkey_rsp
 * @RTRS_MSG_FETCH: struct rtrs_msg_read, of a request whose data the server is to fetch
 * @RTRS_MSG_ANSWER: struct rtrs_msg_answer
 * @RTRS_MSG_IMM: struct rtrs_msg_imm
 */
enum rtrs_msg_type {
	RTRS_MSG_INFO_REQ	= 0,
	RTRS_MSG_INFO_RSP	= 1,
	RTRS_MSG_WRITE		= 2,
	RTRS_MSG_READ		= 3,
	RTRS_MSG_RKEY_RSP	= 4,
	RTRS_MSG_FETCH		= 5,
	RTRS_MSG_ANSWER		= 6,
	RTRS_MSG_IMM		= 7,
};

/**
 * struct rtrs_desc - memory that the peer may use
 * @addr: address for the peer's work requests
 * @key: its remote key
 * @len: bytes
 */
struct rtrs_desc {
	__le64 addr;
	__le32 key;
	__le32 len;
} __packed;

static_assert(sizeof(struct rtrs_desc) == 16);

/**
 * struct rtrs_info_req - the client's first message, on connection 0
 * @type: RTRS_MSG_INFO_REQ
 * @name: the session's name, NUL terminated
 * @reserved: 0
 */
struct rtrs_info_req {
	__le16 type;
	char name[RTRS_NAME_LEN];
	u8 reserved[15];
};

static_assert(sizeof(struct rtrs_info_req) == 272);

/**
 * struct rtrs_info_rsp - the answer to struct rtrs_info_req
 * @type: RTRS_MSG_INFO_RSP
 * @nr_desc: how many descriptors follow
 * @err: with RTRS_FEATURE_PROOF or RTRS_FEATURE_REASON: 0, or the negative errno for which the
 *	path is refused; there are no descriptors then. Without: 0
 * @desc: cover the session's chunks, in order
 */
struct rtrs_info_rsp {
	__le16 type;
	__le16 nr_desc;
	__le32 err;
	struct rtrs_desc desc[];
};

static_assert(sizeof(struct rtrs_info_rsp) == 8);

/**
 * struct rtrs_proof - with RTRS_FEATURE_PROOF: what follows an INFO_REQ
 * @nonce: random, another one for each connect
 * @mac: HMAC-SHA-256 of a struct rtrs_proof_head and a struct rtrs_proof_con for each connection
 *
 * An INFO_RSP without an error is followed by a mac alone.
 */
struct rtrs_proof {
	u8 nonce[RTRS_PROOF_NONCE];
	u8 mac[RTRS_PROOF_MAC];
};

static_assert(sizeof(struct rtrs_proof) == 64);

/**
 * enum rtrs_proof_role - which end makes a proof
 * @RTRS_PROOF_CLIENT: the client
 * @RTRS_PROOF_SERVER: the server
 */
enum rtrs_proof_role {
	RTRS_PROOF_CLIENT	= 1,
	RTRS_PROOF_SERVER	= 2,
};

/**
 * struct rtrs_proof_head - what a proof is about; not sent
 * @label: RTRS_PROOF_LABEL
 * @role: enum rtrs_proof_role
 * @nonce: of the client; the caller's, as all that follows but the name and addresses
 * @sess_uuid: from the connection requests
 * @path_uuid: likewise
 * @srv_uuid: from the accepts, 0 without RTRS_FEATURE_FENCE
 * @sess_id: likewise
 * @path_id: from the connection requests, 0 without RTRS_FEATURE_FENCE
 * @features: those granted
 * @recon_cnt: from the connection requests
 * @nr_cons: connections of the path
 * @name: of the session, with zeroes behind it
 * @client: family and address of the client, with zeroes behind it
 * @server: the same of the server
 * @reserved: 0
 */
struct rtrs_proof_head {
	char label[12];
	__le32 role;
	u8 nonce[RTRS_PROOF_NONCE];
	uuid_t sess_uuid;
	uuid_t path_uuid;
	uuid_t srv_uuid;
	__le32 sess_id;
	__le32 path_id;
	__le32 features;
	__le16 recon_cnt;
	__le16 nr_cons;
	char name[RTRS_NAME_LEN + 1];
	u8 client[17];
	u8 server[17];
	u8 reserved[2];
};

static_assert(sizeof(struct rtrs_proof_head) == 404);

/**
 * struct rtrs_proof_con - what a proof says of a connection; not sent
 * @nonce: from the accept
 * @client_qpn: number of the client's queue pair, 0 over iWARP
 * @server_qpn: number of the server's queue pair, 0 over iWARP
 */
struct rtrs_proof_con {
	u8 nonce[8];
	__le32 client_qpn;
	__le32 server_qpn;
};

static_assert(sizeof(struct rtrs_proof_con) == 16);

/**
 * struct rtrs_msg_write - header of a request that carries data or nothing
 * @type: RTRS_MSG_WRITE
 * @usr_len: bytes of user message before this header
 */
struct rtrs_msg_write {
	__le16 type;
	__le16 usr_len;
} __packed;

static_assert(sizeof(struct rtrs_msg_write) == 4);

/* Answer with SEND WITH INV of the first descriptor's key. */
#define RTRS_READ_NEED_INVAL	BIT(0)

/**
 * struct rtrs_msg_read - header of a request that wants data, or has them fetched
 * @type: RTRS_MSG_READ or, with RTRS_FEATURE_SLOTS, RTRS_MSG_FETCH
 * @usr_len: bytes of user message before this header
 * @flags: RTRS_READ_NEED_INVAL or 0
 * @nr_desc: 0 or 1; 1 for RTRS_MSG_FETCH
 * @desc: where the client wants the data, or has them
 */
struct rtrs_msg_read {
	__le16 type;
	__le16 usr_len;
	__le16 flags;
	__le16 nr_desc;
	struct rtrs_desc desc[];
} __packed;

static_assert(sizeof(struct rtrs_msg_read) == 8);

/**
 * struct rtrs_msg_rkey_rsp - goes with an answer under RTRS_FLAG_NEW_RKEY
 * @type: RTRS_MSG_RKEY_RSP
 * @slot: of which chunk
 * @rkey: its key from now on
 */
struct rtrs_msg_rkey_rsp {
	__le16 type;
	__le16 slot;
	__le32 rkey;
};

static_assert(sizeof(struct rtrs_msg_rkey_rsp) == 8);

/**
 * struct rtrs_msg_answer - body of the SEND WITH INV that answers a request with
 *	RTRS_READ_NEED_INVAL under RTRS_FEATURE_SLOTS
 * @type: RTRS_MSG_ANSWER
 * @slot: slot of the request
 * @err: magnitude of the errno, 0 to 511
 * @reserved: 0
 */
struct rtrs_msg_answer {
	__le16 type;
	__le16 slot;
	__le16 err;
	u8 reserved[2];
};

static_assert(sizeof(struct rtrs_msg_answer) == 8);

/**
 * struct rtrs_msg_imm - with RTRS_FEATURE_NO_IMM, sent in place of immediate data
 * @type: RTRS_MSG_IMM
 * @reserved: 0
 * @imm: the immediate value
 */
struct rtrs_msg_imm {
	__le16 type;
	__le16 reserved;
	__le32 imm;
};

static_assert(sizeof(struct rtrs_msg_imm) == 8);

/**
 * rtrs_msg_imm_valid() - check what came in place of immediate data
 * @msg: message that was received
 * @len: bytes that were received
 *
 * Return: true if it has an immediate value.
 */
static inline bool rtrs_msg_imm_valid(const struct rtrs_msg_imm *msg, u32 len)
{
	return len == sizeof(*msg) && msg->type == cpu_to_le16(RTRS_MSG_IMM) &&
	       !msg->reserved;
}

/* Headers of a request: user message, RTRS header, one descriptor. */
#define RTRS_MAX_HDR_LEN	(RTRS_MAX_MSG_LEN + \
				 sizeof(struct rtrs_msg_read) + \
				 sizeof(struct rtrs_desc))
static_assert(RTRS_MAX_HDR_LEN <= RTRS_SLOT_HDR_ROOM);

/* Bytes for headers in a slot with RTRS_FEATURE_SLOTS; @slot_size bytes are for data. */
static inline u32 rtrs_slot_hdr_room(u32 slot_size)
{
	return slot_size < 4 * RTRS_HDR_ROOM ? RTRS_SLOT_HDR_ROOM : RTRS_HDR_ROOM;
}

/**
 * enum rtrs_imm_type - top 4 bits of an immediate value
 * @RTRS_IMM_IO_REQ: a request; payload: slot and header offset
 * @RTRS_IMM_IO_RSP: an answer; payload: errno and slot
 * @RTRS_IMM_IO_RSP_W_INV: the same, the client's key has been invalidated
 * @RTRS_IMM_FENCE: with RTRS_FEATURE_FENCE, on the service connection: end the path
 *	whose id is the payload, and say when it is dead
 * @RTRS_IMM_FENCED: the answer, with the same payload: nothing that was sent on that
 *	path has any effect after this
 * @RTRS_IMM_EVENT: with RTRS_FEATURE_EVENT, on the service connection, payload 0: the
 *	server's upper layer has news for the client's, which has to ask what it is
 * @RTRS_IMM_HB_MSG: heartbeat
 * @RTRS_IMM_HB_ACK: answer to a heartbeat
 */
enum rtrs_imm_type {
	RTRS_IMM_IO_REQ		= 0,
	RTRS_IMM_IO_RSP		= 1,
	RTRS_IMM_IO_RSP_W_INV	= 2,
	RTRS_IMM_FENCE		= 3,
	RTRS_IMM_FENCED		= 4,
	RTRS_IMM_EVENT		= 5,
	RTRS_IMM_HB_MSG		= 8,
	RTRS_IMM_HB_ACK		= 9,
};

#define RTRS_IMM_PAYLOAD_BITS	28
#define RTRS_IMM_SLOT_BITS	19
#define RTRS_IMM_ERR_MASK	GENMASK(8, 0)

static inline u32 rtrs_imm(enum rtrs_imm_type type, u32 payload)
{
	return (u32)type << RTRS_IMM_PAYLOAD_BITS |
	       (payload & GENMASK(RTRS_IMM_PAYLOAD_BITS - 1, 0));
}

static inline u32 rtrs_imm_type(u32 imm)
{
	return imm >> RTRS_IMM_PAYLOAD_BITS;
}

static inline u32 rtrs_imm_payload(u32 imm)
{
	return imm & GENMASK(RTRS_IMM_PAYLOAD_BITS - 1, 0);
}

/* Bits left for an offset in the payload of RTRS_IMM_IO_REQ. */
static inline u32 rtrs_imm_off_bits(u32 queue_depth)
{
	u32 slot_bits = queue_depth > 1 ? ilog2(queue_depth - 1) + 1 : 0;

	return RTRS_IMM_PAYLOAD_BITS - slot_bits;
}

/* Payload of RTRS_IMM_IO_REQ, and its parts; @off fits in @off_bits. */
static inline u32 rtrs_imm_req(u32 slot, u32 off, u32 off_bits)
{
	return slot << off_bits | off;
}

static inline u32 rtrs_imm_req_slot(u32 payload, u32 off_bits)
{
	return payload >> off_bits;
}

static inline u32 rtrs_imm_req_off(u32 payload, u32 off_bits)
{
	return payload & GENMASK(off_bits - 1, 0);
}

/* Payload of RTRS_IMM_IO_RSP; @err is 0 or a negative errno. */
static inline u32 rtrs_imm_rsp(u32 slot, int err)
{
	return ((u32)abs(err) & RTRS_IMM_ERR_MASK) << RTRS_IMM_SLOT_BITS | slot;
}

static inline u32 rtrs_imm_rsp_slot(u32 payload)
{
	return payload & GENMASK(RTRS_IMM_SLOT_BITS - 1, 0);
}

static inline int rtrs_imm_rsp_err(u32 payload)
{
	return -(int)(payload >> RTRS_IMM_SLOT_BITS);
}

#endif /* RTRS_PROTO_H */
