// SPDX-License-Identifier: GPL-2.0
/*
 * Cases of a hostile client, up to the transport.
 */
#include "hostile.h"

static int hello(void)
{
	struct path *p = path_up(test_name);
	int ret;

	if (!p)
		return -1;
	ret = must_live(p);
	path_free(p);
	return ret;
}

static int req_magic(void)
{
	struct path *p = path_new(test_name);
	int ret;

	p->req.magic = 0x1234;
	ret = path_con(p, 0, &p->req, sizeof(p->req));
	ret = must_refuse(p, ret, -EINVAL);
	path_free(p);
	return ret;
}

static int imm_slot(void)
{
	struct path *p = path_up(test_name);
	int ret;

	if (!p)
		return -1;
	send_imm(p, 1, imm_req(p, p->rep.queue_depth, 0));
	ret = must_end(p, "EPROTO");
	path_free(p);
	return ret;
}

const struct test rtrs_cases[] = {
	{ "hello", "a path as it should be", hello },
	{ "req-magic", "connection request of another protocol", req_magic },
	{ "imm-slot", "request for a chunk that isn't there", imm_slot },
	{ }
};
