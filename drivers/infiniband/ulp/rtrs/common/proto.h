/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Wire format of RTRS 2.0. Documentation/rtrs-protocol.rst describes the exchange of messages. All
 * integers are little endian, except immediate values.
 */
#ifndef RTRS_PROTO_H
#define RTRS_PROTO_H

#include <linux/bits.h>
#include <linux/build_bug.h>
#include <linux/log2.h>
#include <linux/sizes.h>
#include <linux/types.h>
#include <linux/uuid.h>
#include <rdma/rtrs.h>

#define RTRS_MAGIC		0x1bbd
#define RTRS_VERSION_MAJOR	2
#define RTRS_VERSION_MINOR	0
#define RTRS_VERSION		(RTRS_VERSION_MAJOR << 8 | RTRS_VERSION_MINOR)

/* Maximum number of connections of a path: the service connection, followed by those for I/O. */
#define RTRS_MAX_CONS		4096
/* Bytes for headers after the data in each chunk. */
#define RTRS_HDR_ROOM		4096
/* The same in a slot for less than 4 * RTRS_HDR_ROOM bytes of data, with RTRS_FEATURE_SLOTS. */
#define RTRS_SLOT_HDR_ROOM	512
#define RTRS_MIN_CHUNK_SIZE	8192
#define RTRS_SERVICE_DEPTH	512
#define RTRS_CM_RETRIES		7

#define RTRS_HB_INTERVAL_MS	5000
#define RTRS_HB_MAX_MISSED	5

/**
 * struct rtrs_cm_req - private data of a connection request
 * @cma: reserved for the connection manager with AF_IB
 * @magic: RTRS_MAGIC
 * @version: RTRS_VERSION; a different major version is rejected
 * @cid: index of this connection in its path, 0 for the service connection
 * @cid_num: number of connections of the path
 * @recon_cnt: incremented each time the path is connected
 * @path_uuid: identifies the path
 * @sess_uuid: identifies the session; the same on all its paths
 * @first_conn: bit 0: the server may create the session for this path. Bits 1 to 7: with
 *	RTRS_FEATURE_PROOF, the low bits of rtrs_proof_tag(), else 0
 * @tag_hi: with RTRS_FEATURE_PROOF, the other bits of rtrs_proof_tag(), else 0
 * @queue_depth: maximum number of requests in flight that the client will use in the session. 0
 *	means the server's maximum; clients that don't support this field send 0
 * @features: RTRS_FEATURE_* flags that the client offers; 0 from a client without features
 * @path_id: with RTRS_FEATURE_FENCE: identifies this connect of this path in the session
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
	u8 tag_hi;
	__le16 queue_depth;
	__le32 features;
	__le32 path_id;
};

static_assert(sizeof(struct rtrs_cm_req) == 56);

/* Bits of rtrs_proof_tag(): the low bits, sent in rtrs_cm_req.first_conn, and all bits */
#define RTRS_TAG_LO_BITS	7
#define RTRS_TAG_BITS		15

/* The server reports when a path that the client has given up is dead: see RTRS_IMM_FENCE. */
#define RTRS_FEATURE_FENCE	BIT(0)
#define RTRS_MAX_PATH_ID	0xfffffffU
/* The server can notify the client's upper layer of changes: see RTRS_IMM_EVENT. */
#define RTRS_FEATURE_EVENT	BIT(1)
/*
 * The server's memory for requests consists of small slots. Larger data are transferred by the
 * server's RDMA READs and WRITEs, when it has a buffer for them.
 */
#define RTRS_FEATURE_SLOTS	BIT(2)
/* With RTRS_FEATURE_SLOTS: struct rtrs_msg_imm is sent instead of immediate data. */
#define RTRS_FEATURE_NO_IMM	BIT(3)
/* Both ends prove that they know a secret before INFO_RSP is accepted: see struct rtrs_proof. */
#define RTRS_FEATURE_PROOF	BIT(4)
#define RTRS_PROOF_NONCE	32
#define RTRS_PROOF_MAC		32
#define RTRS_PROOF_LABEL	"RTRS proof 1"
/* Minimum bytes of a secret; shorter ones could be found by brute force. */
#define RTRS_PROOF_MIN_KEY	16
/*
 * The server reports why it refuses a path: see &rtrs_info_rsp.err. Implied by RTRS_FEATURE_PROOF.
 */
#define RTRS_FEATURE_REASON	BIT(5)
/* Supported features that depend neither on the device nor on a secret. */
#define RTRS_FEATURES		(RTRS_FEATURE_FENCE | RTRS_FEATURE_EVENT | \
				 RTRS_FEATURE_SLOTS | RTRS_FEATURE_REASON)
/* Unit of slot sizes, so that eight slots, headers included, fill whole pages. */
#define RTRS_SLOT_UNIT		512U
#define RTRS_MAX_SLOT_SIZE	SZ_128K

/* The server may invalidate a chunk's key during a request, and sends the key with each answer. */
#define RTRS_FLAG_NEW_RKEY	BIT(1)

/**
 * struct rtrs_cm_rep - private data of an accept and of a reject
 * @magic: RTRS_MAGIC
 * @version: RTRS_VERSION
 * @err: 0 on accept, negative errno on reject
 * @queue_depth: number of chunks of the session; at most what the client requested
 * @max_io_size: maximum bytes of data of a request; without RTRS_FEATURE_SLOTS, bytes of data in a
 *	chunk
 * @max_hdr_size: bytes for headers in a chunk or slot
 * @flags: RTRS_FLAG_NEW_RKEY or 0
 * @features: offered features that the server grants; 0 from a server without features
 * @sess_id: with RTRS_FEATURE_FENCE: identifies the session, not 0. A session that the server
 *	creates again gets another id, so that the client detects that its old session is gone
 * @srv_uuid: with RTRS_FEATURE_FENCE: identifies the server from its start to its end. The server
 *	sends no INFO_RSP in a session while an older session of the same sess_uuid and name exists.
 *	All 0 from a server without this guarantee
 * @slot_size: with RTRS_FEATURE_SLOTS: bytes of data in a slot, a multiple of RTRS_SLOT_UNIT
 * @nonce: with RTRS_FEATURE_PROOF: random number, different for each connection; else 0
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
 * enum rtrs_msg_type - type of a message, its first field
 * @RTRS_MSG_INFO_REQ: struct rtrs_info_req
 * @RTRS_MSG_INFO_RSP: struct rtrs_info_rsp
 * @RTRS_MSG_WRITE: struct rtrs_msg_write
 * @RTRS_MSG_READ: struct rtrs_msg_read
 * @RTRS_MSG_RKEY_RSP: struct rtrs_msg_rkey_rsp
 * @RTRS_MSG_FETCH: struct rtrs_msg_read of a request whose data the server has to fetch
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
 * struct rtrs_desc - memory that the peer may access
 * @addr: remote address
 * @key: remote key
 * @len: length in bytes
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
 * @name: the session's name, NUL-terminated
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
 * @nr_desc: number of descriptors in @desc
 * @err: with RTRS_FEATURE_PROOF or RTRS_FEATURE_REASON: 0, or the negative errno with which the
 *	path is refused; then @nr_desc is 0. Without these features: 0
 * @desc: memory regions that cover the session's chunks, in order
 */
struct rtrs_info_rsp {
	__le16 type;
	__le16 nr_desc;
	__le32 err;
	struct rtrs_desc desc[];
};

static_assert(sizeof(struct rtrs_info_rsp) == 8);

/**
 * struct rtrs_proof - data that follow an INFO_REQ with RTRS_FEATURE_PROOF
 * @nonce: random number, different for each connect of a path
 * @mac: HMAC-SHA-256 of a struct rtrs_proof_head and of a struct rtrs_proof_con for each connection
 *
 * An INFO_RSP without an error is followed by the server's MAC only.
 */
struct rtrs_proof {
	u8 nonce[RTRS_PROOF_NONCE];
	u8 mac[RTRS_PROOF_MAC];
};

static_assert(sizeof(struct rtrs_proof) == 64);

/**
 * enum rtrs_proof_role - what a MAC is computed for
 * @RTRS_PROOF_CLIENT: the client's proof
 * @RTRS_PROOF_SERVER: the server's proof
 * @RTRS_PROOF_TAG: the tag of connection requests, see rtrs_proof_tag()
 */
enum rtrs_proof_role {
	RTRS_PROOF_CLIENT	= 1,
	RTRS_PROOF_SERVER	= 2,
	RTRS_PROOF_TAG		= 3,
};

/**
 * struct rtrs_proof_head - data that a proof authenticates, common part; not sent
 * @label: RTRS_PROOF_LABEL
 * @role: enum rtrs_proof_role
 * @nonce: the client's nonce. Filled in by the caller, as all members below except the name and the
 *	addresses
 * @sess_uuid: from the connection requests
 * @path_uuid: from the connection requests
 * @srv_uuid: from the accepts, 0 without RTRS_FEATURE_FENCE
 * @sess_id: from the accepts, 0 without RTRS_FEATURE_FENCE
 * @path_id: from the connection requests, 0 without RTRS_FEATURE_FENCE
 * @features: granted features
 * @recon_cnt: from the connection requests
 * @nr_cons: number of connections of the path
 * @name: name of the session, padded with zeroes
 * @client: family and address of the client, padded with zeroes
 * @server: family and address of the server, padded with zeroes
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
 * struct rtrs_proof_con - data that a proof authenticates, for each connection; not sent
 * @nonce: the server's nonce, from the accept
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
 * struct rtrs_msg_write - header of a request with data in the chunk, or without data
 * @type: RTRS_MSG_WRITE
 * @usr_len: bytes of the user message, which precedes this header
 */
struct rtrs_msg_write {
	__le16 type;
	__le16 usr_len;
} __packed;

static_assert(sizeof(struct rtrs_msg_write) == 4);

/* The answer has to invalidate the key of the descriptor, by SEND WITH INV. */
#define RTRS_READ_NEED_INVAL	BIT(0)

/**
 * struct rtrs_msg_read - header of a read, or of a request whose data the server fetches
 * @type: RTRS_MSG_READ or, with RTRS_FEATURE_SLOTS, RTRS_MSG_FETCH
 * @usr_len: bytes of the user message, which precedes this header
 * @flags: RTRS_READ_NEED_INVAL or 0
 * @nr_desc: number of descriptors: 0 or 1; 1 for RTRS_MSG_FETCH
 * @desc: memory of the client for the data
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
 * struct rtrs_msg_rkey_rsp - message of an answer under RTRS_FLAG_NEW_RKEY
 * @type: RTRS_MSG_RKEY_RSP
 * @slot: slot of the chunk
 * @rkey: the chunk's key from now on; it may be unchanged
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
 * struct rtrs_msg_imm - message sent instead of immediate data, with RTRS_FEATURE_NO_IMM
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
 * rtrs_msg_imm_valid() - check a message that replaces immediate data
 * @msg: received message
 * @len: received bytes
 *
 * Return: true if the message is valid.
 */
static inline bool rtrs_msg_imm_valid(const struct rtrs_msg_imm *msg, u32 len)
{
	return len == sizeof(*msg) && msg->type == cpu_to_le16(RTRS_MSG_IMM) &&
	       !msg->reserved;
}

/* Maximum length of a request's headers: user message, RTRS header, one descriptor. */
#define RTRS_MAX_HDR_LEN	(RTRS_MAX_MSG_LEN + \
				 sizeof(struct rtrs_msg_read) + \
				 sizeof(struct rtrs_desc))
static_assert(RTRS_MAX_HDR_LEN <= RTRS_SLOT_HDR_ROOM);

/* Returns the bytes for headers in a slot for @slot_size bytes of data. */
static inline u32 rtrs_slot_hdr_room(u32 slot_size)
{
	return slot_size < 4 * RTRS_HDR_ROOM ? RTRS_SLOT_HDR_ROOM : RTRS_HDR_ROOM;
}

/**
 * enum rtrs_imm_type - type of an immediate value, its top 4 bits
 * @RTRS_IMM_IO_REQ: a request; payload: slot and offset of the header
 * @RTRS_IMM_IO_RSP: an answer; payload: errno and slot
 * @RTRS_IMM_IO_RSP_W_INV: the same; the client's key has been invalidated
 * @RTRS_IMM_FENCE: with RTRS_FEATURE_FENCE, on the service connection: end the path with the id in
 *	the payload, and report when it is dead
 * @RTRS_IMM_FENCED: answer to RTRS_IMM_FENCE with the same payload: from now on, nothing that was
 *	sent on that path has any effect
 * @RTRS_IMM_EVENT: with RTRS_FEATURE_EVENT, on the service connection, payload 0: something has
 *	changed that concerns the client's upper layer, which has to query the server's
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

/* Returns the number of bits for the offset in the payload of RTRS_IMM_IO_REQ. */
static inline u32 rtrs_imm_off_bits(u32 queue_depth)
{
	u32 slot_bits = queue_depth > 1 ? ilog2(queue_depth - 1) + 1 : 0;

	return RTRS_IMM_PAYLOAD_BITS - slot_bits;
}

/* Payload of RTRS_IMM_IO_REQ and its fields; @off fits in @off_bits. */
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
