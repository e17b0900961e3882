/* SPDX-License-Identifier: GPL-2.0 */
/*
 * RTRS 2.0 and RNBD 2.2 on the wire, written down from the description of the
 * protocol and not from the drivers' headers, so that a slip there shows here.
 * Little endian throughout, as are the machines that this runs on.
 */
#ifndef HOSTILE_PROTO_H
#define HOSTILE_PROTO_H

#include <assert.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;

#define MAGIC		0x1bbd
#define VERSION		0x0200
#define FLAG_NEW_RKEY	2
#define FEATURE_FENCE	1
#define FEATURE_EVENT	2
#define FEATURE_SLOTS	4
#define FEATURE_NO_IMM	8
#define FEATURE_PROOF	16
#define FEATURE_REASON	32
#define MAX_MSG_LEN	320	/* what our server takes of a user message */

struct cm_req {
	u8 cma[2];
	u16 magic;
	u16 version;
	u16 cid;
	u16 cid_num;
	u16 recon_cnt;
	u8 path_uuid[16];
	u8 sess_uuid[16];
	u8 first_conn;
	u8 tag_hi;
	u16 queue_depth;
	u32 features;
	u32 path_id;
} __attribute__((packed));
static_assert(sizeof(struct cm_req) == 56, "cm_req");

struct cm_rep {
	u16 magic;
	u16 version;
	u16 err;
	u16 queue_depth;
	u32 max_io_size;
	u32 max_hdr_size;
	u32 flags;
	u32 features;
	u32 sess_id;
	u8 srv_uuid[16];
	u32 slot_size;
	u8 nonce[8];
} __attribute__((packed));
static_assert(sizeof(struct cm_rep) == 56, "cm_rep");

enum { MSG_INFO_REQ, MSG_INFO_RSP, MSG_WRITE, MSG_READ, MSG_RKEY_RSP, MSG_FETCH, MSG_ANSWER,
	MSG_IMM };

struct info_req {
	u16 type;
	char name[255];
	u8 reserved[15];
} __attribute__((packed));
static_assert(sizeof(struct info_req) == 272, "info_req");

struct desc {
	u64 addr;
	u32 key;
	u32 len;
} __attribute__((packed));

struct info_rsp {
	u16 type;
	u16 nr;
	int32_t err;
	struct desc desc[];
} __attribute__((packed));

/* A write's header ends after usr_len. */
struct io_hdr {
	u16 type;
	u16 usr_len;
	u16 flags;
	u16 nr_desc;
	struct desc desc[1];
} __attribute__((packed));
static_assert(sizeof(struct io_hdr) == 24, "io_hdr");

#define NEED_INVAL	1

struct rkey_rsp {
	u16 type;
	u16 slot;
	u32 rkey;
} __attribute__((packed));

/* Body of the SEND WITH INV that answers a request with NEED_INVAL, with slots */
struct answer {
	u16 type;
	u16 slot;
	u16 err;
	u8 reserved[2];
} __attribute__((packed));
static_assert(sizeof(struct answer) == 8, "answer");

/* Sent in place of immediate data */
struct msg_imm {
	u16 type;
	u16 zero;
	u32 imm;
} __attribute__((packed));
static_assert(sizeof(struct msg_imm) == 8, "msg_imm");

enum { IMM_IO_REQ, IMM_IO_RSP, IMM_IO_RSP_W_INV, IMM_FENCE, IMM_FENCED, IMM_EVENT,
	IMM_HB_MSG = 8,
	IMM_HB_ACK };

/* RNBD */

enum { RNBD_SESS_INFO, RNBD_SESS_INFO_RSP, RNBD_OPEN, RNBD_OPEN_RSP, RNBD_IO,
	RNBD_CLOSE, RNBD_LIST, RNBD_LIST_RSP };
enum { OP_READ, OP_WRITE, OP_FLUSH, OP_DISCARD, OP_SECURE_ERASE, OP_WRITE_ZEROES };
enum { ACC_RO, ACC_RW, ACC_MIGRATION };
enum { FEATURE_DISK_STATE = 1 << 5, FEATURE_VOLUMES = 1 << 6 };

struct sess_info {
	u16 type;
	u16 zero;
	u8 ver;
	u8 reserved[31];
} __attribute__((packed));
static_assert(sizeof(struct sess_info) == 36, "sess_info");

struct open_req {
	u16 type;
	u16 zero;
	u8 access_mode;
	u8 reserved;
	char name[255];
	u8 reserved2[3];
} __attribute__((packed));
static_assert(sizeof(struct open_req) == 264, "open_req");

struct open_rsp {
	u16 type;
	u16 zero;
	u32 device_id;
	u64 nsectors;
	u32 max_hw_sectors;
	u32 max_write_zeroes_sectors;
	u32 max_discard_sectors;
	u32 discard_granularity;
	u32 discard_alignment;
	u16 physical_block_size;
	u16 logical_block_size;
	u16 max_segments;
	u16 secure_discard;
	u8 obsolete;
	u8 cache_policy;
	u8 reserved[10];
} __attribute__((packed));
static_assert(sizeof(struct open_rsp) == 56, "open_rsp");

struct io_msg {
	u16 type;
	u16 zero;
	u32 device_id;
	u64 sector;
	u32 rw;
	u32 bi_size;
	u16 prio;
	u8 reserved[6];
} __attribute__((packed));
static_assert(sizeof(struct io_msg) == 32, "io_msg");

struct list_req {
	u16 type;
	u8 zero[6];
	u64 cursor;
} __attribute__((packed));
static_assert(sizeof(struct list_req) == 16, "list_req");

struct list_entry {
	u64 nsectors;
	u8 uuid[16];
	u8 modes;
	u8 name_len;
	u8 reserved[6];
	char name[];
} __attribute__((packed));
static_assert(sizeof(struct list_entry) == 32, "list_entry");

struct list_rsp {
	u16 type;
	u16 zero;
	u16 nr;
	u16 zero2;
	u64 cursor;
	u8 entries[];
} __attribute__((packed));
static_assert(sizeof(struct list_rsp) == 16, "list_rsp");

struct close_msg {
	u16 type;
	u16 zero;
	u32 device_id;
} __attribute__((packed));

#endif
