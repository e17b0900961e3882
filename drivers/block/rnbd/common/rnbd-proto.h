/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RNBD 2.2: messages between client and server. Each message is the user message of an RTRS
 * request; an answer is the data of an RTRS read. All integers are little endian.
 */
#ifndef RNBD_PROTO_H
#define RNBD_PROTO_H

#include <linux/align.h>
#include <linux/build_bug.h>
#include <linux/ctype.h>
#include <linux/stddef.h>
#include <linux/string.h>
#include <linux/types.h>

/* Major version of the protocol. The minor version is not exchanged. */
#define RNBD_VER_MAJOR	2

/* Size of a device name, including the terminating NUL. */
#define RNBD_NAME_LEN	255

/* Check the name of a device, which reaches logs and sysfs: short, without control characters. */
static inline bool rnbd_name_ok(const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++) {
		if (iscntrl(name[i]))
			return false;
	}
	return len < RNBD_NAME_LEN;
}

/**
 * enum rnbd_msg_type - values of &rnbd_msg_hdr.type
 * @RNBD_MSG_SESS_INFO: first message of a session, a read
 * @RNBD_MSG_SESS_INFO_RSP: its answer
 * @RNBD_MSG_OPEN: open a device, a read
 * @RNBD_MSG_OPEN_RSP: its answer
 * @RNBD_MSG_IO: do I/O on an open device, a read or a write
 * @RNBD_MSG_CLOSE: close a device, a write without data
 * @RNBD_MSG_LIST: list volumes, a read; needs RNBD_FEATURE_VOLUMES
 * @RNBD_MSG_LIST_RSP: its answer
 */
enum rnbd_msg_type {
	RNBD_MSG_SESS_INFO,
	RNBD_MSG_SESS_INFO_RSP,
	RNBD_MSG_OPEN,
	RNBD_MSG_OPEN_RSP,
	RNBD_MSG_IO,
	RNBD_MSG_CLOSE,
	RNBD_MSG_LIST,
	RNBD_MSG_LIST_RSP,
};

/**
 * enum rnbd_access_mode - how a device is opened
 * @RNBD_ACCESS_RO: reads only; any number of mappings
 * @RNBD_ACCESS_RW: reads and writes; refused while another mapping may write
 * @RNBD_ACCESS_MIGRATION: reads and writes; refused while two other mappings may write
 * @RNBD_ACCESS_HANDOVER: reads and writes; any number of mappings, all of them in this mode or
 *	in mode ro. Once a mapping has written, the writes of older ones fail. Needs
 *	RNBD_FEATURE_HANDOVER
 * @RNBD_ACCESS_MODES: number of access modes
 */
enum rnbd_access_mode {
	RNBD_ACCESS_RO,
	RNBD_ACCESS_RW,
	RNBD_ACCESS_MIGRATION,
	RNBD_ACCESS_HANDOVER,
	RNBD_ACCESS_MODES,
};

/* Names of the access modes in user interfaces, indexed by enum rnbd_access_mode. */
#define RNBD_ACCESS_NAMES { "ro", "rw", "migration", "handover" }

/* &rnbd_msg_io.rw: an operation ... */
#define RNBD_OP_MASK		0xff
#define RNBD_OP_READ		0
#define RNBD_OP_WRITE		1
#define RNBD_OP_FLUSH		2
#define RNBD_OP_DISCARD		3
#define RNBD_OP_SECURE_ERASE	4
#define RNBD_OP_WRITE_ZEROES	5
/* ... and flags. */
#define RNBD_F_SYNC		BIT(8)
#define RNBD_F_FUA		BIT(9)
#define RNBD_F_PREFLUSH		BIT(10)
#define RNBD_F_NOUNMAP		BIT(11)
#define RNBD_F_ALL \
	(RNBD_F_SYNC | RNBD_F_FUA | RNBD_F_PREFLUSH | RNBD_F_NOUNMAP)

/* &rnbd_msg_open_rsp.cache_policy */
#define RNBD_CACHE_FUA		BIT(0)
#define RNBD_CACHE_WRITEBACK	BIT(1)

/* &rnbd_msg_open_rsp.flags */
#define RNBD_DISK_ROTATIONAL	BIT(0)
/* the disk is read-only at present */
#define RNBD_DISK_READ_ONLY	BIT(1)
/* the disk was removed; the client must close it before it can open it again */
#define RNBD_DISK_GONE		BIT(2)

/* &rnbd_msg_open.flags: the client knows of the disk's write cache and sends flushes */
#define RNBD_OPEN_FLUSHES	BIT(0)

/**
 * struct rnbd_msg_hdr - header of each message and answer
 * @type: enum rnbd_msg_type
 * @reserved: 0
 */
struct rnbd_msg_hdr {
	__le16 type;
	__le16 reserved;
};

/* &rnbd_msg_sess_info.features: operation 5 is write zeroes; without this bit, write same */
#define RNBD_FEATURE_WRITE_ZEROES	BIT(0)
/* the server sends a transport event when the size of a device has changed */
#define RNBD_FEATURE_RESIZE_EVENT	BIT(1)
/* answers to OPEN contain the disk's unique id */
#define RNBD_FEATURE_UNIQUE_ID		BIT(2)
/* access mode handover is supported */
#define RNBD_FEATURE_HANDOVER		BIT(3)
/* mappings in access modes rw and migration have a generation, too */
#define RNBD_FEATURE_GENERATION		BIT(4)
/*
 * The server also sends an event when the limits of a disk have changed or the disk was removed.
 * It makes each write durable until the client knows of the disk's write cache.
 */
#define RNBD_FEATURE_DISK_STATE		BIT(5)
/* RNBD_MSG_LIST is supported, and answers to OPEN contain the UUID of the volume */
#define RNBD_FEATURE_VOLUMES		BIT(6)
/* Features that this driver supports */
#define RNBD_FEATURES	(RNBD_FEATURE_WRITE_ZEROES | RNBD_FEATURE_RESIZE_EVENT | \
			 RNBD_FEATURE_UNIQUE_ID | RNBD_FEATURE_HANDOVER | \
			 RNBD_FEATURE_GENERATION | RNBD_FEATURE_DISK_STATE | \
			 RNBD_FEATURE_VOLUMES)

/**
 * struct rnbd_msg_sess_info - RNBD_MSG_SESS_INFO and RNBD_MSG_SESS_INFO_RSP
 * @hdr: header
 * @ver: major version of the sender
 * @reserved: 0
 * @features: RNBD_FEATURE_* that the client offers; in the answer, the subset that the server
 *	grants
 * @cookie: a random number other than 0, repeated in the answer. An answer with another cookie
 *	grants no features: a server without support for features leaves arbitrary bytes here
 * @reserved2: 0
 */
struct rnbd_msg_sess_info {
	struct rnbd_msg_hdr hdr;
	u8 ver;
	u8 reserved[3];
	__le32 features;
	__le32 cookie;
	u8 reserved2[20];
};

static_assert(sizeof(struct rnbd_msg_sess_info) == 36);
static_assert(offsetof(struct rnbd_msg_sess_info, features) == 8);

/**
 * struct rnbd_msg_open - RNBD_MSG_OPEN
 * @hdr: header
 * @access_mode: enum rnbd_access_mode
 * @flags: RNBD_OPEN_*; 0 unless RNBD_FEATURE_DISK_STATE was granted
 * @dev_name: name of the device, NUL-terminated
 * @reserved: 0
 */
struct rnbd_msg_open {
	struct rnbd_msg_hdr hdr;
	u8 access_mode;
	u8 flags;
	char dev_name[RNBD_NAME_LEN];
	u8 reserved[3];
};

static_assert(sizeof(struct rnbd_msg_open) == 264);

/**
 * rnbd_has_generation() - test whether messages that open a device contain a generation
 * @mode: access mode of the mapping
 * @features: RNBD_FEATURE_* that the server granted
 *
 * Return: true if RNBD_MSG_OPEN is a struct rnbd_msg_open_gen and its answer has a generation.
 */
static inline bool rnbd_has_generation(u8 mode, u32 features)
{
	switch (mode) {
	case RNBD_ACCESS_RW:
	case RNBD_ACCESS_MIGRATION:
		return features & RNBD_FEATURE_GENERATION;
	case RNBD_ACCESS_HANDOVER:
		return true;
	default:
		return false;
	}
}

/* &rnbd_msg_open_gen.flags: a write of the mapping has succeeded */
#define RNBD_GEN_WRITER		BIT(0)
/* in access mode handover: a newer mapping has written; also in &rnbd_msg_open_rsp.gen_flags */
#define RNBD_GEN_FENCED		BIT(1)

/**
 * struct rnbd_msg_open_gen - RNBD_MSG_OPEN with a generation, see rnbd_has_generation()
 * @open: the message without a generation
 * @generation: from the answer to the mapping's last OPEN or, in access mode handover, to its
 *	first OPEN; 0 if the mapping is new
 * @flags: RNBD_GEN_*, as known to the client
 * @reserved: 0
 */
struct rnbd_msg_open_gen {
	struct rnbd_msg_open open;
	__le64 generation;
	u8 flags;
	u8 reserved[7];
};

static_assert(sizeof(struct rnbd_msg_open_gen) == 280);
static_assert(offsetof(struct rnbd_msg_open_gen, generation) == 264);

/* &rnbd_msg_open_rsp.id_type: values of enum blk_unique_id and of SPC-4's designator types */
#define RNBD_ID_NONE	0
#define RNBD_ID_T10	1
#define RNBD_ID_EUI64	2
#define RNBD_ID_NAA	3

/**
 * struct rnbd_msg_open_rsp - RNBD_MSG_OPEN_RSP
 * @hdr: header
 * @device_id: identifies the device in later messages of this session
 * @nsectors: capacity in sectors of 512 bytes, as are all sectors here
 * @max_hw_sectors: largest read or write that the device executes without splitting it
 * @max_write_zeroes_sectors: largest write zeroes, 0 if the device does not support it
 * @max_discard_sectors: largest discard, 0 if the device does not support it
 * @discard_granularity: unit of discards, in bytes
 * @discard_alignment: offset of the first such unit, in bytes
 * @physical_block_size: in bytes
 * @logical_block_size: in bytes; sectors and lengths are multiples of it
 * @max_segments: most segments of a request that the device executes without splitting it
 * @secure_discard: not 0 if the device supports secure erase
 * @flags: RNBD_DISK_*; 0 unless RNBD_FEATURE_DISK_STATE was granted
 * @cache_policy: RNBD_CACHE_*
 * @alignment_offset: offset of the first physical block, in sectors; 0 like @flags
 * @io_min: smallest efficient size of I/O, in bytes, 0 if unknown; 0 like @flags
 * @io_opt: optimal size of I/O, in bytes, 0 if unknown; 0 like @flags
 * @id_type: type of @id, RNBD_ID_*; the answer ends before this field unless
 *	RNBD_FEATURE_UNIQUE_ID was granted
 * @id_len: length of @id in bytes, 0 to 16
 * @reserved: 0
 * @id: unique id of the whole disk, padded with zeroes
 * @generation: generation of the mapping, not 0; newer mappings have greater generations. The
 *	answer ends before this field unless rnbd_has_generation() or RNBD_FEATURE_VOLUMES was
 *	granted; 0 unless rnbd_has_generation()
 * @gen_flags: RNBD_GEN_FENCED or 0
 * @reserved2: 0
 * @uuid: UUID of the volume, 0 if the device is no volume; the answer ends before this field
 *	unless RNBD_FEATURE_VOLUMES was granted
 */
struct rnbd_msg_open_rsp {
	struct rnbd_msg_hdr hdr;
	__le32 device_id;
	__le64 nsectors;
	__le32 max_hw_sectors;
	__le32 max_write_zeroes_sectors;
	__le32 max_discard_sectors;
	__le32 discard_granularity;
	__le32 discard_alignment;
	__le16 physical_block_size;
	__le16 logical_block_size;
	__le16 max_segments;
	__le16 secure_discard;
	u8 flags;
	u8 cache_policy;
	__le16 alignment_offset;
	__le32 io_min;
	__le32 io_opt;
	u8 id_type;
	u8 id_len;
	u8 reserved[6];
	u8 id[16];
	__le64 generation;
	u8 gen_flags;
	u8 reserved2[7];
	u8 uuid[16];
};

/*
 * Lengths of the shortest answer, of the answer that ends with the disk's unique id, and of the
 * answer that ends with the generation
 */
#define RNBD_MSG_OPEN_RSP_MIN	offsetof(struct rnbd_msg_open_rsp, id_type)
#define RNBD_MSG_OPEN_RSP_ID	offsetof(struct rnbd_msg_open_rsp, generation)
#define RNBD_MSG_OPEN_RSP_GEN	offsetof(struct rnbd_msg_open_rsp, uuid)

static_assert(RNBD_MSG_OPEN_RSP_MIN == 56);
static_assert(RNBD_MSG_OPEN_RSP_ID == 80);
static_assert(RNBD_MSG_OPEN_RSP_GEN == 96);
static_assert(sizeof(struct rnbd_msg_open_rsp) == 112);
static_assert(offsetof(struct rnbd_msg_open_rsp, nsectors) == 8);
static_assert(offsetof(struct rnbd_msg_open_rsp, io_min) == 48);

/**
 * rnbd_same_limits() - test whether two answers describe the same limits of a disk
 * @a: answer to RNBD_MSG_OPEN
 * @b: another answer to RNBD_MSG_OPEN
 *
 * Return: true if the answers differ at most in the device's id and size, the disk's unique id and
 * the generation.
 */
static inline bool rnbd_same_limits(const struct rnbd_msg_open_rsp *a,
				    const struct rnbd_msg_open_rsp *b)
{
	size_t from = offsetof(struct rnbd_msg_open_rsp, max_hw_sectors);

	return !memcmp((const u8 *)a + from, (const u8 *)b + from, RNBD_MSG_OPEN_RSP_MIN - from);
}

/**
 * rnbd_open_rsp_len() - get the length of the answer to RNBD_MSG_OPEN
 * @mode: access mode of the mapping
 * @features: RNBD_FEATURE_* that the server granted
 *
 * Return: the length; an answer to a client with less room is shorter.
 */
static inline size_t rnbd_open_rsp_len(u8 mode, u32 features)
{
	if (features & RNBD_FEATURE_VOLUMES)
		return sizeof(struct rnbd_msg_open_rsp);
	if (rnbd_has_generation(mode, features))
		return RNBD_MSG_OPEN_RSP_GEN;
	if (features & RNBD_FEATURE_UNIQUE_ID)
		return RNBD_MSG_OPEN_RSP_ID;
	return RNBD_MSG_OPEN_RSP_MIN;
}

/**
 * rnbd_drop_ungranted() - clear the fields of an answer that need features which were not granted
 * @rsp: answer to RNBD_MSG_OPEN
 * @mode: access mode of the mapping
 * @features: RNBD_FEATURE_* that the server granted
 */
static inline void rnbd_drop_ungranted(struct rnbd_msg_open_rsp *rsp, u8 mode, u32 features)
{
	if (!(features & RNBD_FEATURE_DISK_STATE)) {
		rsp->flags = 0;
		rsp->alignment_offset = 0;
		rsp->io_min = 0;
		rsp->io_opt = 0;
	}
	if (!(features & RNBD_FEATURE_UNIQUE_ID)) {
		rsp->id_type = RNBD_ID_NONE;
		rsp->id_len = 0;
		memset(rsp->id, 0, sizeof(rsp->id));
	}
	if (!rnbd_has_generation(mode, features)) {
		rsp->generation = 0;
		rsp->gen_flags = 0;
	}
	if (!(features & RNBD_FEATURE_VOLUMES))
		memset(rsp->uuid, 0, sizeof(rsp->uuid));
}

/**
 * struct rnbd_msg_io - RNBD_MSG_IO
 * @hdr: header
 * @device_id: from the answer to RNBD_MSG_OPEN
 * @sector: first sector, in units of 512 bytes
 * @rw: RNBD_OP_* and RNBD_F_*
 * @bi_size: length in bytes
 * @prio: as in ioprio_set(2); absent from messages shorter than RNBD_MSG_IO_PRIO
 * @reserved: 0
 */
struct rnbd_msg_io {
	struct rnbd_msg_hdr hdr;
	__le32 device_id;
	__le64 sector;
	__le32 rw;
	__le32 bi_size;
	__le16 prio;
	u8 reserved[6];
};

static_assert(sizeof(struct rnbd_msg_io) == 32);
static_assert(offsetof(struct rnbd_msg_io, prio) == 24);

/* Lengths of the shortest RNBD_MSG_IO, and of the shortest one with a priority */
#define RNBD_MSG_IO_MIN		offsetof(struct rnbd_msg_io, prio)
#define RNBD_MSG_IO_PRIO	offsetofend(struct rnbd_msg_io, prio)

/**
 * struct rnbd_msg_close - RNBD_MSG_CLOSE
 * @hdr: header
 * @device_id: from the answer to RNBD_MSG_OPEN
 */
struct rnbd_msg_close {
	struct rnbd_msg_hdr hdr;
	__le32 device_id;
};

static_assert(sizeof(struct rnbd_msg_close) == 8);

/**
 * struct rnbd_msg_list - RNBD_MSG_LIST
 * @hdr: header
 * @reserved: 0
 * @cursor: 0 for the first message; then @cursor of the last answer
 */
struct rnbd_msg_list {
	struct rnbd_msg_hdr hdr;
	__le32 reserved;
	__le64 cursor;
};

static_assert(sizeof(struct rnbd_msg_list) == 16);
static_assert(offsetof(struct rnbd_msg_list, cursor) == 8);

/**
 * struct rnbd_msg_list_rsp - beginning of RNBD_MSG_LIST_RSP; entries of varying length follow
 * @hdr: header
 * @nr: number of entries, may be 0
 * @reserved: 0
 * @cursor: cursor for the next message, greater than the one of this message; 0: the list is
 *	complete
 */
struct rnbd_msg_list_rsp {
	struct rnbd_msg_hdr hdr;
	__le16 nr;
	__le16 reserved;
	__le64 cursor;
};

static_assert(sizeof(struct rnbd_msg_list_rsp) == 16);
static_assert(offsetof(struct rnbd_msg_list_rsp, cursor) == 8);

/**
 * struct rnbd_list_entry - a volume in RNBD_MSG_LIST_RSP
 * @nsectors: capacity in sectors, 0 if unknown
 * @uuid: UUID of the volume
 * @modes: bit mask of the access modes that the volume allows, BIT(RNBD_ACCESS_*)
 * @name_len: length of @name in bytes, 1 to RNBD_NAME_LEN - 1
 * @reserved: 0
 * @name: name of the volume, without a terminating NUL; padded with zeroes to a multiple of 8 bytes
 */
struct rnbd_list_entry {
	__le64 nsectors;
	u8 uuid[16];
	u8 modes;
	u8 name_len;
	u8 reserved[6];
	char name[];
};

static_assert(sizeof(struct rnbd_list_entry) == 32);
static_assert(offsetof(struct rnbd_list_entry, modes) == 24);

/* Get the length of an entry, including the padding. */
static inline size_t rnbd_list_entry_len(size_t name_len)
{
	return sizeof(struct rnbd_list_entry) + ALIGN(name_len, 8);
}

/* Room for an answer with an entry of any length; shorter reads are refused */
#define RNBD_MSG_LIST_RSP_MIN	(sizeof(struct rnbd_msg_list_rsp) + \
				 sizeof(struct rnbd_list_entry) + 256)

#endif /* RNBD_PROTO_H */
