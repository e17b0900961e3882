// SPDX-License-Identifier: GPL-2.0
/*
 * RNBD as a client speaks it, and wrong.
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

/* The errno of the answer; 1 if none came */
int open_dev(struct path *p, const char *name, u8 mode, struct open_rsp *rsp)
{
	struct open_req msg = { .type = RNBD_OPEN, .access_mode = mode };
	struct request r = request_rnbd(p, MSG_READ, &msg, sizeof(msg), 56);
	int err;

	strncpy(msg.name, name, sizeof(msg.name));
	err = do_request(p, &r);
	if (!err)
		memcpy(rsp, read_area(p, 0), sizeof(*rsp));
	return err;
}

/* A session with a device open. */
static struct path *path_dev(u8 mode, struct open_rsp *rsp)
{
	struct path *p = path_up(test_name);
	int err;

	if (!p)
		return NULL;
	if (!sess_info(p, 2)) {
		err = open_dev(p, dev_rw, mode, rsp);
		if (!err)
			return p;
		if (err < 0)
			fail("can't open %s: %d", dev_rw, err);
	}
	path_free(p);
	return NULL;
}

static int rnbd_good(void)
{
	struct open_rsp rsp;
	struct path *p = path_dev(ACC_RW, &rsp);
	struct io_msg msg = { .type = RNBD_IO, .rw = OP_WRITE, .bi_size = 4096 };
	struct request r;
	int ret;

	if (!p)
		return -1;
	msg.device_id = rsp.device_id;
	r = request_rnbd(p, MSG_WRITE, &msg, sizeof(msg), 4096);
	memset(area(p, 0), 0x5a, 4096);
	ret = must_answer(p, &r, 0);
	msg.rw = OP_READ;
	r = request_rnbd(p, MSG_READ, &msg, sizeof(msg), 4096);
	memset(read_area(p, 0), 0, 4096);
	if (!ret)
		ret = must_answer(p, &r, 0);
	if (!ret && (read_area(p, 0)[0] != 0x5a || read_area(p, 0)[4095] != 0x5a))
		ret = fail("what was read is not what was written");
	path_free(p);
	return ret;
}

const struct test rnbd_cases[] = {
	{ "rnbd-good", "open, write, read: all as it should be", rnbd_good },
	{ }
};
