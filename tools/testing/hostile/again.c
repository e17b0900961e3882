// SPDX-License-Identifier: GPL-2.0
/*
 * Cases of a hostile server that differs after a reconnect. It is a valid server until the first
 * write, which it does not answer, and disconnects. The client fences the write, opens the disk
 * again and resends the write, or fails it after failover_timeout.
 */
#include "server.h"

enum { SESS_ID, SAME_SERVER, OTHER_SERVER, NO_FENCING, DEPTH_LESS, DEPTH_MORE, IO_LESS, IO_MORE,
	MAJOR, NEW_RKEYS, REFUSES };
enum { FENCED_WRONG = 200, FENCED_LATE, FENCED_NEVER, FENCED_TWICE, FENCED_EARLY };

/* Is the server still valid? Further connection attempts may precede the first write. */
static bool first_life(const struct srv *s)
{
	return !s->acted || s->life < 2;
}

static int connect_again(struct srv *s, const struct cm_req *req, struct cm_rep *rep,
			 u8 *len)
{
	rep->features = FEATURE_FENCE;
	rep->sess_id = 5;
	if (s->test->arg == SAME_SERVER || s->test->arg == OTHER_SERVER)
		rep->srv_uuid[0] = s->test->arg == SAME_SERVER ? 1 : 2 - first_life(s);
	if (first_life(s))
		return S_ACCEPT;
	switch (s->test->arg) {
	case SESS_ID:
	case SAME_SERVER:
	case OTHER_SERVER:	rep->sess_id = 6; break;
	case NO_FENCING:	rep->features = 0; rep->sess_id = 0; break;
	case DEPTH_LESS:	rep->queue_depth = DEPTH / 2; break;
	case DEPTH_MORE:	rep->queue_depth = DEPTH * 2; break;
	case IO_LESS:		rep->max_io_size = CHUNK / 2 - 4096; break;
	case IO_MORE:		rep->max_io_size = CHUNK * 2 - 4096; break;
	case MAJOR:		rep->version = 0x0100; break;
	case NEW_RKEYS:		rep->flags = FLAG_NEW_RKEY; break;
	}
	if (s->test->arg != REFUSES && !(s->test->arg == FENCED_NEVER && s->fences))
		return S_ACCEPT;
	memset(rep, 0, sizeof(*rep));
	rep->magic = MAGIC;
	rep->version = VERSION;
	rep->err = -EBUSY;
	return S_REJECT;
}

enum { INFO_SHORT = 100, INFO_LESS, INFO_NONE, INFO_KEY };

static u32 info_again(struct srv *s, struct info_rsp *rsp, u32 len)
{
	if (first_life(s))
		return len;
	switch (s->test->arg) {
	case INFO_SHORT:	return len - 1;
	case INFO_LESS:		rsp->desc[0].len -= CHUNK; break;
	case INFO_NONE:		return 0;
	case INFO_KEY:		rsp->desc[0].key ^= 0x55; break;
	}
	return len;
}

/* The client has sent FENCE. */
static void fence_again(struct srv *s, u32 id)
{
	u32 imm = (u32)IMM_FENCED << 28 | id;

	switch (s->test->arg) {
	case FENCED_WRONG:
		imm = (u32)IMM_FENCED << 28 | (id + 1);
		break;
	case FENCED_LATE:
		s->later = imm;
		s->later_at = now_ms() + 1000;
		return;
	case FENCED_NEVER:
		/* The client waits for as long as the path exists. */
		s->quit_at = now_ms() + 1000;
		return;
	case FENCED_TWICE:
		/* Only once: each reconnect restarts the client's time limit. */
		if (s->fences > 1)
			break;
		s_imm(&s->cons[0], imm);
		break;
	}
	s_imm(&s->cons[0], imm);
}

enum { OPEN_ENOENT = 300, OPEN_LBS, OPEN_SIZE, OPEN_TYPE, SESS_TYPE };

static bool request_again(struct srv *s, const struct sreq *r)
{
	struct sess_info info = { .type = RNBD_OPEN_RSP, .ver = 2 };
	struct open_rsp rsp = s_open_rsp();

	if (first_life(s)) {
		if (r->hdr.type != MSG_WRITE || r->kind != RNBD_IO)
			return false;
		if (!s->acted)
			s_hang_up();
		s->acted = true;
		s->life = 1;
		return true;
	}
	/* An answer would restart the time limit of the client's waiting requests. */
	if (s->test->arg == FENCED_WRONG)
		return true;
	if (s->test->arg == FENCED_EARLY && !s->fences && r->kind == RNBD_IO)
		s->complaint = "the write was resent before FENCE";
	if (r->kind == RNBD_SESS_INFO && s->test->arg == SESS_TYPE) {
		s_reply(r, &info, sizeof(info), 0);
		return true;
	}
	if (r->kind != RNBD_OPEN)
		return false;
	switch (s->test->arg) {
	case OPEN_ENOENT:
		s_reply(r, NULL, 0, -ENOENT);
		return true;
	case OPEN_LBS:		rsp.logical_block_size = 4096; break;
	case OPEN_SIZE:		rsp.nsectors *= 2; break;
	case OPEN_TYPE:		rsp.type = RNBD_SESS_INFO_RSP; break;
	default:		return false;
	}
	s_reply(r, &rsp, sizeof(rsp), 0);
	return true;
}

/* @io: errno of I/O; @log_: required text in the log, if any */
#define AGAIN(name_, what, io, log_, arg_, more...) \
	{ .name = "again-" name_, .about = "after the reconnect: " what, .again = true, \
	  .connect = connect_again, .info = info_again, .fence = fence_again, \
	  .request = request_again, .io_err = io, .log = log_, .arg = arg_, more }

const struct srv_test again_cases[] = {
	AGAIN("same", "no difference", 0, NULL, FENCED_EARLY, .fenced = true),
	AGAIN("sess-id", "another session ID", 0, NULL, SESS_ID, .io_ms = UNFENCED_MS),
	AGAIN("same-server", "another session ID of the same server", 0, NULL, SAME_SERVER,
	      .fenced = true),
	AGAIN("other-server", "another session ID of another server", 0, NULL, OTHER_SERVER,
	      .io_ms = UNFENCED_MS),
	AGAIN("no-fencing", "no fencing", 0, NULL, NO_FENCING, .io_ms = UNFENCED_MS),
	AGAIN("depth-less", "fewer chunks", EIO, "lower limits", DEPTH_LESS),
	AGAIN("depth-more", "more chunks", 0, NULL, DEPTH_MORE, .fenced = true),
	AGAIN("io-less", "smaller chunks", EIO, "lower limits", IO_LESS),
	AGAIN("io-more", "larger chunks", 0, NULL, IO_MORE, .fenced = true),
	AGAIN("major", "another major version", EIO, "RTRS 1", MAJOR),
	AGAIN("new-rkeys", "keys in each answer", 0, NULL, NEW_RKEYS, .fenced = true),
	AGAIN("refuses", "reject", EIO, "refused", REFUSES),
	AGAIN("info-short", "INFO_RSP a byte too short", EIO, NULL, INFO_SHORT),
	AGAIN("info-less", "INFO_RSP a chunk too short", EIO, NULL, INFO_LESS),
	AGAIN("info-none", "no INFO_RSP", EIO, NULL, INFO_NONE),
	AGAIN("info-key", "unknown key in INFO_RSP, each time", EIO, "no path for", INFO_KEY),
	AGAIN("fenced-wrong", "FENCED with another ID", EIO, ENDS BAD_IMM, FENCED_WRONG,
	      .fenced = true),
	AGAIN("fenced-late", "FENCED after a second", 0, NULL, FENCED_LATE, .fenced = true,
	      .io_ms = 1000),
	AGAIN("fenced-never", "no FENCED, then reject", EIO, NULL, FENCED_NEVER, .fenced = true),
	AGAIN("fenced-twice", "FENCED twice", 0, ENDS BAD_IMM, FENCED_TWICE, .fenced = true),
	AGAIN("open-enoent", "OPEN fails with ENOENT", EIO, NULL, OPEN_ENOENT),
	AGAIN("open-lbs", "another block size", EIO, NULL, OPEN_LBS),
	AGAIN("open-size", "a larger device", 0, NULL, OPEN_SIZE),
	AGAIN("open-type", "OPEN_RSP of another type", EIO, NULL, OPEN_TYPE),
	AGAIN("sess-type", "SESS_INFO_RSP of another type", EIO, NULL, SESS_TYPE),
	{ }
};
