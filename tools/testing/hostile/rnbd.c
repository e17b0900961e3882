// SPDX-License-Identifier: GPL-2.0
/*
 * Cases of a hostile client: RNBD messages
 */
#include "hostile.h"

int sess_info(struct path *p, u8 ver)
{
	struct sess_info msg = { .type = RNBD_SESS_INFO, .ver = ver };
	struct request r = request_rnbd(p, MSG_READ, &msg, sizeof(msg), 36);
	const struct sess_info *rsp = (void *)read_area(p, 0);
	int err = do_request(p, &r);

	if (err > 0)
		return -1;
	if (err)
		return fail("SESS_INFO: %d", err);
	if (rsp->type != RNBD_SESS_INFO_RSP || rsp->ver > 2)
		return fail("SESS_INFO: answer of type %u, version %u",
			    rsp->type, rsp->ver);
	return 0;
}

/* The errno of the answer; 1 without an answer */
int open_dev(struct path *p, const char *name, u8 mode, struct open_rsp *rsp)
{
	struct open_req msg = { .type = RNBD_OPEN, .access_mode = mode };
	struct request r = request_rnbd(p, MSG_READ, &msg, sizeof(msg), 56);
	int err;

	snprintf(msg.name, sizeof(msg.name), "%s", name);
	err = do_request(p, &r);
	if (!err)
		memcpy(rsp, read_area(p, 0), sizeof(*rsp));
	return err;
}

/* The same; retries while another session may still be closing the device. */
int open_retry(struct path *p, const char *name, u8 mode, struct open_rsp *rsp)
{
	u64 end = now_ms() + 5000;
	int err;

	while ((err = open_dev(p, name, mode, rsp)) == -EBUSY && now_ms() < end)
		nap_us(2000);
	return err;
}

/* A session with a device open */
static struct path *path_dev(u8 mode, struct open_rsp *rsp)
{
	struct path *p = path_up(test_name);
	int err;

	if (!p)
		return NULL;
	if (!sess_info(p, 2)) {
		err = open_retry(p, dev_rw, mode, rsp);
		if (!err)
			return p;
		if (err < 0)
			fail("can't open %s: %d", dev_rw, err);
	}
	path_free(p);
	return NULL;
}

/* A valid I/O message */
struct io_msg io_msg(u32 id, u32 rw, u64 sector, u32 len)
{
	return (struct io_msg) {
		.type = RNBD_IO,
		.device_id = id,
		.sector = sector,
		.rw = rw,
		.bi_size = len,
	};
}

/* Sends an I/O message with data_len bytes of data; the answer must have the errno. */
static int io(struct path *p, const struct io_msg *msg, u16 dir, u32 data_len,
	      int err)
{
	struct request r = request_rnbd(p, dir, msg, sizeof(*msg), data_len);

	if (must_answer(p, &r, err)) {
		char text[300];

		snprintf(text, sizeof(text), "%.299s", why);
		return fail("operation %#x, sector %llu, %u bytes, %u of data: %s",
			    msg->rw, (unsigned long long)msg->sector,
			    msg->bi_size, data_len, text);
	}
	return 0;
}

static int close_dev(struct path *p, u32 id)
{
	struct close_msg msg = { .type = RNBD_CLOSE, .device_id = id };
	struct request r = request_rnbd(p, MSG_WRITE, &msg, sizeof(msg), 0);

	return do_request(p, &r);
}

static int read_block(struct path *p, u32 id, u64 sector, int err)
{
	struct io_msg msg = io_msg(id, OP_READ, sector, 4096);

	memset(read_area(p, 0), 0, 4096);
	return io(p, &msg, MSG_READ, 4096, err);
}

static int write_block(struct path *p, u32 id, u64 sector, u8 with, int err)
{
	struct io_msg msg = io_msg(id, OP_WRITE, sector, 4096);

	memset(area(p, 0), with, 4096);
	return io(p, &msg, MSG_WRITE, 4096, err);
}

static int rnbd_good(long arg)
{
	struct open_rsp rsp;
	struct path *p = path_dev(ACC_RW, &rsp);
	int ret;

	if (!p)
		return -1;
	ret = write_block(p, rsp.device_id, 8, 0x5a, 0);
	if (!ret)
		ret = read_block(p, rsp.device_id, 8, 0);
	if (!ret && (read_area(p, 0)[0] != 0x5a || read_area(p, 0)[4095] != 0x5a))
		ret = fail("read other data than written");
	if (!ret && close_dev(p, rsp.device_id))
		ret = fail("not closed");
	return end_with(p, ret);
}

/* Minimum length of a message */
static int min_len(u16 type)
{
	switch (type) {
	case RNBD_SESS_INFO:	return 36;
	case RNBD_OPEN:		return 264;
	case RNBD_IO:		return 24;
	case RNBD_CLOSE:	return 8;
	default:		return 1 << 16;
	}
}

/* Messages of known and unknown types, in all relevant lengths */
static int lengths(long dir)
{
	static const u16 types[] = { 0, 1, 2, 3, 4, 5, 6, 255, 256, 65535 };
	struct path *p = path_up(test_name);
	u8 msg[MAX_MSG_LEN] = { };
	struct request r;
	unsigned int i, n;
	int err;

	if (!p)
		return -1;
	for (i = 0; i < ARRAY_SIZE(types); i++)
		for (n = 0; n <= MAX_MSG_LEN; n++) {
			if (n == 41)
				n = 260;
			if (n == 270)
				n = 319;
			memcpy(msg, &types[i], 2);
			r = request_rnbd(p, dir, msg, n, 64);
			err = do_request(p, &r);
			if (err > 0)
				return end_with(p, -1);
			if ((int)n < min_len(types[i]) && err != -EINVAL)
				return end_with(p, fail("type %u, %u bytes: %d",
							types[i], n, err));
		}
	return end_with(p, must_live(p));
}

/* Unknown versions, and one twice; then the session still works. */
static int versions(long arg)
{
	static const u8 vers[] = { 0, 1, 3, 255, 2, 2 };
	struct path *p = path_up(test_name);
	struct open_rsp rsp;
	unsigned int i;

	if (!p)
		return -1;
	for (i = 0; i < ARRAY_SIZE(vers); i++)
		if (sess_info(p, vers[i]))
			return end_with(p, -1);
	if (open_retry(p, dev_rw, ACC_RW, &rsp))
		return end_with(p, fail("can't open %s", dev_rw));
	return end_with(p, read_block(p, rsp.device_id, 0, 0));
}

/* No SESS_INFO: the server answers OPEN with any result. */
static int no_version(long arg)
{
	struct path *p = path_up(test_name);
	struct open_rsp rsp = { };

	if (!p)
		return -1;
	if (open_retry(p, dev_rw, ACC_RW, &rsp) > 0)
		return end_with(p, -1);
	return end_with(p, read_block(p, rsp.device_id, 0, 0) ?: must_live(p));
}

/* Invalid names: outside of the search path, not a device, control characters */
static int names(long arg)
{
	static const struct { const char *name; int err; } bad[] = {
		{ "", -ENOTBLK },		{ ".", -ENOTBLK },
		{ "/", -ENOTBLK },		{ "..", -EINVAL },
		{ "../..", -EINVAL },		{ "../etc/passwd", -EINVAL },
		{ "a/../../etc/passwd", -EINVAL }, { "/..", -EINVAL },
		{ "//..//", -EINVAL },		{ "shm/..", -EINVAL },
		{ "/etc/passwd", -ENOENT },	{ "/dev/null", -ENOENT },
		{ "null", -ENOTBLK },		{ "kmsg", -ENOTBLK },
		{ "a\nb", -EINVAL },		{ "a\x1b[2Jb", -EINVAL },
		{ "a\rb", -EINVAL },		{ "a\x7f", -EINVAL },
		{ "%s%n%p", -ENOENT },		{ "%SESSNAME%", -ENOENT },
		{ "a\xff\xfe", -ENOENT },	{ "...", -ENOENT },
		{ "no such", -ENOENT },
	};
	struct open_req msg = { .type = RNBD_OPEN };
	struct path *p = path_up(test_name);
	struct open_rsp rsp;
	struct request r;
	unsigned int i;
	int err;

	if (!p)
		return -1;
	if (sess_info(p, 2))
		return end_with(p, -1);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		err = open_dev(p, bad[i].name, i & 1 ? ACC_RW : ACC_RO, &rsp);
		if (err != bad[i].err)
			return end_with(p, fail("'%s': %d, not %d", bad[i].name,
						err, bad[i].err));
	}
	memset(msg.name, 'a', sizeof(msg.name) + 3);
	r = request_rnbd(p, MSG_READ, &msg, sizeof(msg), 56);
	return end_with(p, must_answer(p, &r, -EINVAL) ?: must_live(p));
}

static int open_twice(long arg)
{
	struct open_rsp rsp, again;
	struct path *p = path_dev(ACC_RW, &rsp);
	int err;

	if (!p)
		return -1;
	if (open_dev(p, dev_rw, ACC_RW, &again) ||
	    again.device_id != rsp.device_id)
		return end_with(p, fail("another ID, or not opened"));
	err = open_dev(p, dev_rw, ACC_RO, &again);
	if (err != -EBUSY)
		return end_with(p, fail("in another mode: %d", err));
	return end_with(p, read_block(p, rsp.device_id, 0, 0));
}

/* An alias of an open device gets an ID of its own, if the access mode allows it. */
static int open_alias(long arg)
{
	struct open_rsp rsp, other;
	struct path *p = path_dev(ACC_RW, &rsp);
	char name[255];
	int err, ret;

	if (!p)
		return -1;
	snprintf(name, sizeof(name), "./%.250s", dev_rw);
	err = open_dev(p, name, ACC_RW, &other);
	if (err != -EBUSY)
		return end_with(p, fail("a second writer: %d", err));
	if (open_dev(p, name, ACC_RO, &other) ||
	    other.device_id == rsp.device_id)
		return end_with(p, fail("no ID of its own"));
	if (close_dev(p, rsp.device_id))
		return end_with(p, fail("not closed"));
	ret = read_block(p, rsp.device_id, 0, -ENOENT);
	return end_with(p, ret ?: read_block(p, other.device_id, 0, 0));
}

/* In old clients the opcode of write zeroes is write same, with data. */
static int write_same(long arg)
{
	struct open_rsp rsp;
	struct path *p = path_dev(ACC_RW, &rsp);
	struct io_msg msg;
	int ret;

	if (!p)
		return -1;
	ret = write_block(p, rsp.device_id, 0, 0xa5, 0);
	msg = io_msg(rsp.device_id, OP_WRITE_ZEROES, 0, 4096);
	memset(area(p, 0), 0x5a, 512);
	ret = ret ?: io(p, &msg, MSG_WRITE, 512, -EOPNOTSUPP);
	ret = ret ?: read_block(p, rsp.device_id, 0, 0);
	if (!ret && read_area(p, 0)[0] != 0xa5)
		ret = fail("the device has changed");
	return end_with(p, ret);
}

/* IDs that are unknown, closed, or another session's */
static int ids(long arg)
{
	static const u32 none[] = { 0, 1, 0xffff, 0x10000, 0x7fffffff, 0xffffffff };
	struct open_rsp rsp, other;
	struct path *p = path_dev(ACC_RW, &rsp), *q;
	unsigned int i;
	int ret = 0;

	if (!p)
		return -1;
	q = path_up("h-ids-2");
	if (!q)
		return end_with(p, -1);
	if (sess_info(q, 2) || open_retry(q, dev_other, ACC_RW, &other))
		ret = fail("can't open %s", dev_other);
	for (i = 0; i < ARRAY_SIZE(none) && !ret; i++)
		if (none[i] != rsp.device_id) {
			ret = read_block(p, none[i], 0, -ENOENT) ?:
			      write_block(p, none[i], 0, 1, -ENOENT);
			if (!ret && close_dev(p, none[i]) != -ENOENT)
				ret = fail("closed %u", none[i]);
		}
	if (!ret && other.device_id != rsp.device_id) {
		ret = read_block(p, other.device_id, 0, -ENOENT);
		if (!ret && close_dev(p, other.device_id) != -ENOENT)
			ret = fail("closed another session's device");
		if (!ret)
			ret = read_block(q, other.device_id, 0, 0);
	}
	if (!ret && close_dev(p, rsp.device_id))
		ret = fail("not closed");
	if (!ret)
		ret = read_block(p, rsp.device_id, 0, -ENOENT);
	if (!ret && close_dev(p, rsp.device_id) != -ENOENT)
		ret = fail("closed twice");
	path_free(q);
	return end_with(p, ret);
}

/* Sectors and lengths; the KUnit tests of rnbd-server-io have more. */
static int ranges(long arg)
{
	struct open_rsp rsp;
	struct path *p = path_dev(ACC_RW, &rsp);
	const u64 end = p ? rsp.nsectors : 0;
	const struct { u64 sector; u32 len, data; } bad[] = {
		{ end - 7, 4096, 4096 },	{ -8ull, 4096, 4096 },
		{ 0, 0, 0 },			{ 0, 4096, 8192 },
		{ 0, 8192, 4096 },		{ 0, 0xfffffe00, 4096 },
	};
	struct io_msg msg;
	unsigned int i, op;
	int ret = 0;

	if (!p)
		return -1;
	for (i = 0; i < ARRAY_SIZE(bad) && !ret; i++) {
		msg = io_msg(rsp.device_id, OP_READ, bad[i].sector, bad[i].len);
		ret = io(p, &msg, MSG_READ, bad[i].data, -EINVAL);
		msg.rw = OP_WRITE;
		if (!ret)
			ret = io(p, &msg, MSG_WRITE, bad[i].data, -EINVAL);
	}
	for (op = OP_DISCARD; op <= OP_WRITE_ZEROES && !ret; op++) {
		msg = io_msg(rsp.device_id, op, end - 7, 4096);
		ret = io(p, &msg, MSG_WRITE, 0, -EINVAL);
	}
	/* A write in a read request, and the other way around */
	msg = io_msg(rsp.device_id, OP_WRITE, 0, 4096);
	if (!ret)
		ret = io(p, &msg, MSG_READ, 4096, -EINVAL);
	msg.rw = OP_READ;
	if (!ret)
		ret = io(p, &msg, MSG_WRITE, 4096, -EINVAL);
	/* Sector and length of a flush are ignored. */
	msg = io_msg(rsp.device_id, OP_FLUSH, -1, -1);
	return end_with(p, ret ?: io(p, &msg, MSG_WRITE, 0, 0));
}

/* A device that is open read-only does not change. */
static int read_only(long arg)
{
	struct open_rsp rsp;
	struct path *p = path_dev(ACC_RW, &rsp);
	unsigned int op, f;
	struct io_msg msg;
	int ret = 0;

	if (!p)
		return -1;
	ret = write_block(p, rsp.device_id, 0, 0xa5, 0);
	if (!ret && close_dev(p, rsp.device_id))
		ret = fail("not closed");
	if (!ret && open_dev(p, dev_rw, ACC_RO, &rsp))
		ret = fail("can't open %s to read", dev_rw);
	/* With all flags; and a write that a server with slots fetches */
	memset(area(p, 0), 0x11, 65536);
	for (f = 0; f < 16 && !ret; f++) {
		msg = io_msg(rsp.device_id, OP_WRITE | f << 8, 0, 4096);
		ret = io(p, &msg, MSG_WRITE, 4096, -EROFS);
		msg.bi_size = 65536;
		ret = ret ?: io(p, &msg, MSG_WRITE, 65536, -EROFS);
		for (op = OP_DISCARD; op <= OP_WRITE_ZEROES && !ret; op++) {
			msg = io_msg(rsp.device_id, op | f << 8, 0, 4096);
			ret = io(p, &msg, MSG_WRITE, 0, -EROFS);
		}
	}
	msg = io_msg(rsp.device_id, OP_FLUSH | 0x700, 0, 0);
	if (!ret)
		ret = io(p, &msg, MSG_WRITE, 0, 0);
	if (!ret)
		ret = read_block(p, rsp.device_id, 0, 0);
	if (!ret && (read_area(p, 0)[0] != 0xa5 || read_area(p, 0)[4095] != 0xa5))
		ret = fail("the device has changed");
	return end_with(p, ret);
}

/* All flags with all operations, in range: any errno; the path still works. */
static int flags(long arg)
{
	struct open_rsp rsp;
	struct path *p = path_dev(ACC_RW, &rsp);
	struct io_msg msg;
	struct request r;
	u32 f, op;

	if (!p)
		return -1;
	for (f = 0; f < 16; f++)
		for (op = OP_READ; op <= OP_WRITE_ZEROES; op++) {
			msg = io_msg(rsp.device_id, op | f << 8, 0, 8192);
			r = request_rnbd(p, op == OP_READ ? MSG_READ : MSG_WRITE,
					 &msg, sizeof(msg), op > OP_WRITE ? 0 : 8192);
			if (must_answer_some(p, &r))
				return end_with(p, -1);
			if (op <= OP_FLUSH && p->slot[0].err)
				return end_with(p, fail("operation %#x: %d",
							msg.rw, p->slot[0].err));
		}
	return end_with(p, must_live(p));
}

/* Unaligned headers */
static int unaligned(long arg)
{
	struct open_rsp rsp;
	struct path *p = path_dev(ACC_RW, &rsp);
	struct io_msg msg;
	struct request r;
	u32 room;
	int ret = 0;

	if (!p)
		return -1;
	for (room = 4096; room < 4096 + 16 && !ret; room++) {
		msg = io_msg(rsp.device_id, OP_READ, 0, 4096);
		r = request_rnbd(p, MSG_READ, &msg, sizeof(msg), room);
		r.desc.len = 4096;
		ret = must_answer(p, &r, 0);
		r = request_rnbd(p, MSG_READ, &msg, 24 + (room & 15), room);
		r.desc.len = 4096;
		ret = ret ?: must_answer(p, &r, 0);
	}
	return end_with(p, ret);
}

/* Two CLOSEs at once during I/O, then OPEN */
static int close_busy(long arg)
{
	struct path *p = path_up(test_name);
	struct close_msg msg = { .type = RNBD_CLOSE };
	struct io_msg rd;
	struct open_rsp rsp;
	struct request r;
	unsigned int i;
	int ret = 0;

	if (!p)
		return -1;
	if (sess_info(p, 2) || open_retry(p, dev_slow, ACC_RW, &rsp))
		return end_with(p, fail("can't open %s", dev_slow));
	rd = io_msg(rsp.device_id, OP_READ, 0, 4096);
	for (i = 0; i < 4; i++) {
		r = request_rnbd(p, MSG_READ, &rd, sizeof(rd), 4096);
		r.slot = i;
		p->slot[i].answers = 0;
		request_send(p, &r);
	}
	msg.device_id = rsp.device_id;
	for (i = 4; i < 6; i++) {
		r = request_rnbd(p, MSG_WRITE, &msg, sizeof(msg), 0);
		r.slot = i;
		request_send(p, &r);
	}
	for (i = 0; i < 6 && !ret; i++)
		ret = wait_answer(p, i, 0, 5000);
	if (!ret && p->slot[4].err + p->slot[5].err != -ENOENT)
		ret = fail("closed: %d, %d", p->slot[4].err, p->slot[5].err);
	if (!ret && open_retry(p, dev_slow, ACC_RW, &rsp))
		ret = fail("can't be opened again");
	return end_with(p, ret);
}

/* OPENs and CLOSEs in all areas at once */
static int open_storm(long arg)
{
	struct open_req msg = { .type = RNBD_OPEN, .access_mode = ACC_RW };
	struct path *p = path_up(test_name);
	struct close_msg cl = { .type = RNBD_CLOSE };
	struct request r;
	unsigned int i, round;
	u32 before[NR_AREAS];

	if (!p)
		return -1;
	snprintf(msg.name, sizeof(msg.name), "%s", dev_rw);
	for (round = 0; round < 30; round++) {
		cl.device_id = ((struct open_rsp *)read_area(p, 0))->device_id;
		for (i = 0; i < NR_AREAS; i++) {
			if (i & 1)
				r = request_rnbd(p, MSG_WRITE, &cl, sizeof(cl), 0);
			else
				r = request_rnbd(p, MSG_READ, &msg, sizeof(msg), 56);
			r.slot = i;
			before[i] = p->slot[i].answers;
			request_send(p, &r);
		}
		for (i = 0; i < NR_AREAS; i++)
			if (wait_answer(p, i, before[i], 5000))
				return end_with(p, -1);
	}
	return end_with(p, must_live(p));
}

/*
 * Sends OPENs of the slow device in all slots except the first, without waiting for answers. They
 * must not delay the OPEN of another device.
 */
int open_all_slots(struct path *p)
{
	struct open_req msg = { .type = RNBD_OPEN, .access_mode = ACC_RO };
	struct open_rsp rsp;
	struct request r;
	unsigned int i;

	snprintf(msg.name, sizeof(msg.name), "%.254s", dev_slow);
	for (i = 1; i < p->rep.queue_depth; i++) {
		r = request_rnbd(p, MSG_READ, &msg, sizeof(msg), 56);
		r.slot = i;
		if (request_send(p, &r))
			return fail("only %u OPENs were sent", i - 1);
		path_poll(p);
	}
	if (open_dev(p, dev_rw, ACC_RO, &rsp))
		return fail("the OPEN of another device fails, or has no answer");
	if (p->slot[1].answers)
		return fail("the OPEN of the slow device is answered");
	return 0;
}

static int send_features(struct path *p, u32 feature)
{
	struct sess_info msg = { .type = RNBD_SESS_INFO, .ver = 2 };
	u32 features[2] = { feature, 0x12345678 };
	struct request r;

	memcpy((u8 *)&msg + 8, features, sizeof(features));
	r = request_rnbd(p, MSG_READ, &msg, sizeof(msg), 36);
	if (do_request(p, &r) || memcmp(read_area(p, 0) + 8, features, sizeof(features)))
		return fail("SESS_INFO: feature %#x not granted", feature);
	return 0;
}

/* Opens three devices, sends SESS_INFO again, and opens only two of the devices again. */
int leave_open(struct path *p)
{
	const char *const names[] = { dev_slow, dev_rw, dev_other };
	struct open_rsp rsp;
	unsigned int i, round;

	for (round = 0; round < 2; round++) {
		if (send_features(p, FEATURE_DISK_STATE))
			return -1;
		for (i = round; i < ARRAY_SIZE(names); i++)
			if (open_dev(p, names[i], ACC_RW, &rsp))
				return fail("can't open %s", names[i]);
	}
	return 0;
}

/* The list of a server without volumes is empty, whatever the cursor is. */
static int list_cursors(long arg)
{
	static const u64 cursors[] = { 0, 1, 1ull << 63, -1ull };
	struct list_req msg = { .type = RNBD_LIST };
	struct path *p = path_up(test_name);
	static const u8 none[16] = { RNBD_LIST_RSP };
	struct request r;
	unsigned int i;
	int ret;

	if (!p)
		return -1;
	/* Not before the feature is granted */
	r = request_rnbd(p, MSG_READ, &msg, sizeof(msg), 4096);
	ret = must_answer(p, &r, -EINVAL) ?: send_features(p, FEATURE_VOLUMES);
	for (i = 0; i < ARRAY_SIZE(cursors) && !ret; i++) {
		msg.cursor = cursors[i];
		memset(read_area(p, 0), 0x5a, 4096);
		r = request_rnbd(p, MSG_READ, &msg, sizeof(msg), 4096);
		ret = must_answer(p, &r, 0);
		if (!ret && memcmp(read_area(p, 0), none, sizeof(none)))
			ret = fail("cursor %llu: the list isn't empty",
				   (unsigned long long)cursors[i]);
	}
	return end_with(p, ret ?: must_live(p));
}

/* An answer to OPEN with a UUID has nothing in fields of features that were not granted. */
static int open_volumes(long arg)
{
	struct open_req msg = { .type = RNBD_OPEN, .access_mode = ACC_RW };
	struct path *p = path_up(test_name);
	u64 end = now_ms() + 5000;
	static const u8 none[40];
	struct request r;
	int ret;

	if (!p)
		return -1;
	ret = send_features(p, FEATURE_VOLUMES);
	if (ret)
		return end_with(p, ret);
	snprintf(msg.name, sizeof(msg.name), "%s", dev_rw);
	r = request_rnbd(p, MSG_READ, &msg, sizeof(msg), 112);
	while ((ret = do_request(p, &r)) == -EBUSY && now_ms() < end)
		nap_us(2000);
	if (ret)
		ret = fail("can't open %s: %d", dev_rw, ret);
	else if (memcmp(read_area(p, 0) + sizeof(struct open_rsp), none, sizeof(none)))
		ret = fail("the answer has an id or a generation");
	return end_with(p, ret ?: must_live(p));
}

/* Messages and read buffers of all lengths, as reads and writes */
static int list_lengths(long arg)
{
	struct path *p = path_up(test_name);
	u8 msg[MAX_MSG_LEN] = { RNBD_LIST };
	struct request r;
	unsigned int i;
	int ret;

	if (!p)
		return -1;
	ret = send_features(p, FEATURE_VOLUMES);
	for (i = 2; i <= MAX_MSG_LEN && !ret; i += i < 20 ? 1 : 50) {
		r = request_rnbd(p, MSG_READ, msg, i, 304);
		ret = must_answer(p, &r, i < 16 ? -EINVAL : 0);
	}
	for (i = 0; i <= 4096 && !ret; i += i < 300 ? 16 : 1 + i / 4) {
		r = request_rnbd(p, MSG_READ, msg, 16, i);
		ret = must_answer(p, &r, i < 304 ? -EINVAL : 0);
	}
	if (!ret) {
		r = request_rnbd(p, MSG_WRITE, msg, 16, 4096);
		ret = must_answer(p, &r, -EINVAL);
	}
	return end_with(p, ret ?: must_live(p));
}

/* LIST in all slots, repeatedly, must not delay other messages. */
static int list_storm(long arg)
{
	struct list_req msg = { .type = RNBD_LIST };
	struct path *p = path_up(test_name);
	u32 before[NR_AREAS];
	struct open_rsp rsp;
	struct request r;
	unsigned int i, round;

	if (!p)
		return -1;
	if (send_features(p, FEATURE_VOLUMES))
		return end_with(p, -1);
	for (round = 0; round < 30; round++) {
		for (i = 1; i < NR_AREAS; i++) {
			r = request_rnbd(p, MSG_READ, &msg, sizeof(msg), 4096);
			r.slot = i;
			r.desc.addr = (uintptr_t)read_area(p, i);
			before[i] = p->slot[i].answers;
			request_send(p, &r);
		}
		if (!round && open_retry(p, dev_rw, ACC_RW, &rsp))
			return end_with(p, fail("can't open %s", dev_rw));
		for (i = 1; i < NR_AREAS; i++)
			if (wait_answer(p, i, before[i], 5000))
				return end_with(p, -1);
	}
	return end_with(p, read_block(p, rsp.device_id, 0, 0) ?: must_live(p));
}

const struct test rnbd_cases[] = {
	{ "rnbd-good", "valid open, write, read and close", rnbd_good },
	{ "rnbd-lengths-read", "messages of all types and lengths, as reads", lengths, MSG_READ },
	{ "rnbd-lengths-write", "the same as writes", lengths, MSG_WRITE },
	{ "rnbd-versions", "unknown versions, and one twice", versions },
	{ "rnbd-no-version", "no SESS_INFO", no_version },
	{ "open-names", "invalid names", names },
	{ "open-twice", "opened twice, and in another mode", open_twice },
	{ "open-volumes", "opened with no feature but VOLUMES", open_volumes },
	{ "open-alias", "opened by another name", open_alias },
	{ "open-storm", "OPENs and CLOSEs at once", open_storm },
	{ "ids", "IDs that are unknown, closed or another session's", ids },
	{ "close-busy", "CLOSE twice during I/O", close_busy },
	{ "io-write-same", "write zeroes with data", write_same },
	{ "io-ranges", "invalid sectors and lengths", ranges },
	{ "io-flags", "all operations with all flags", flags },
	{ "io-unaligned", "unaligned headers", unaligned },
	{ "io-read-only", "operations that change a read-only device", read_only },
	{ "list-cursors", "LIST with invalid cursors", list_cursors },
	{ "list-lengths", "LIST of all lengths", list_lengths },
	{ "list-storm", "LIST in all slots at once", list_storm },
	{ }
};
