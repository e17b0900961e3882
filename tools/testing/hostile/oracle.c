// SPDX-License-Identifier: GPL-2.0
/*
 * The expected answers to a client's requests, according to Documentation/rtrs-protocol.rst. A
 * valid request is executed. The answer to a request with several errors has the errno of any of
 * them.
 *
 * Requests of a path are executed concurrently, so the state of a device is uncertain while it is
 * being opened or closed.
 *
 * Environment: HOSTILE_POLICY is "listed" if only volumes can be opened.
 */
#include "oracle.h"

#define NO_TYPE		0xffff
#define MODES		3	/* access modes without features */
#define ALL_FLAGS	(0xfu << 8)
#define ERR(e)		((unsigned __int128)1 << (e))
#define OK		ERR(0)
/* Valid errnos of I/O to a device of unknown state */
#define ANY_IO		(OK | ERR(ENOENT) | ERR(EINVAL) | ERR(EROFS) | ERR(EOPNOTSUPP))

enum fate { ANSWERED, FATAL };

static struct opened *find_id(struct oracle *o, u32 id)
{
	struct opened *d;

	for (d = o->opened; d < o->opened + NR_OPENED; d++)
		if (d->name[0] && d->rsp.device_id == id)
			return d;
	return NULL;
}

static struct opened *find_name(struct oracle *o, const char *name)
{
	struct opened *d;

	for (d = o->opened; d < o->opened + NR_OPENED; d++)
		if (!strcmp(d->name, name))
			return d;
	return NULL;
}

/* The server has opened a device. */
int oracle_opened(struct oracle *o, const char *name, u8 mode, const struct open_rsp *rsp)
{
	struct opened *d = find_id(o, rsp->device_id), *same = find_name(o, name);

	if (d && (strcmp(d->name, name) || d->mode != mode))
		return fail("'%s' and '%s' have the id %u", d->name, name, rsp->device_id);
	if (!d && same && !same->unsure && !same->closing)
		return fail("'%s' has two ids", name);
	d = d ?: same ?: find_name(o, "");
	if (!d)
		return fail("more than %u devices are open", NR_OPENED);
	/* CLOSEs in flight are for the former ID. */
	if (d->rsp.device_id != rsp->device_id)
		d->closing = 0;
	strcpy(d->name, name);
	d->mode = mode;
	d->rsp = *rsp;
	d->unsure = false;
	return 0;
}

/* The checks of RTRS: is the request answered, with which errno, how many data bytes has it? */
static enum fate headers(const struct path *p, const struct request *r, int *err, u32 *data_len)
{
	u32 off = r->data_len + r->msg_len, before;

	*err = 0;
	*data_len = 0;
	if (r->type != MSG_WRITE && r->type != MSG_READ &&
	    (r->type != MSG_FETCH || !has_slots(p)))
		return FATAL;
	if (r->usr_len > MAX_MSG_LEN || r->usr_len > off)
		return FATAL;
	before = off - r->usr_len;
	if (before > data_room(p) || (has_slots(p) && r->type != MSG_WRITE && before))
		return FATAL;
	if (r->type == MSG_WRITE) {
		*data_len = before;
		return ANSWERED;
	}
	if (r->nr_desc > 1 || r->flags & ~NEED_INVAL ||
	    (!r->nr_desc && (r->flags || r->type == MSG_FETCH)))
		*err = EINVAL;
	else if (r->nr_desc && (r->desc.len > (has_slots(p) ? p->rep.max_io_size : before) ||
				(r->type == MSG_FETCH && !r->desc.len)))
		*err = EINVAL;
	else if (r->nr_desc)
		*data_len = r->desc.len;
	return ANSWERED;
}

static bool in_device(const struct opened *d, const struct io_msg *m)
{
	u32 block = d->rsp.logical_block_size;
	u64 sectors = m->bi_size >> 9;

	return m->bi_size && !(m->bi_size % block) && !(m->sector % (block >> 9)) &&
	       sectors <= d->rsp.nsectors && m->sector <= d->rsp.nsectors - sectors;
}

/* The errors of I/O to an open device, or OK */
static unsigned __int128 io_errs(const struct opened *d, const struct io_msg *m, bool read,
				 u32 data_len)
{
	unsigned __int128 errs = 0;
	u8 op = m->rw;

	if (m->rw & ~(0xffu | ALL_FLAGS))
		errs |= ERR(EINVAL);
	if (op == OP_FLUSH)
		return errs ?: OK;
	if (op > OP_WRITE_ZEROES)
		return errs | ERR(EOPNOTSUPP);
	if (op <= OP_WRITE && (read != (op == OP_READ) || data_len != m->bi_size))
		errs |= ERR(EINVAL);
	if (op == OP_WRITE_ZEROES && data_len)
		errs |= ERR(EOPNOTSUPP);
	if (op != OP_READ && d->mode == ACC_RO)
		errs |= ERR(EROFS);
	if (!in_device(d, m))
		errs |= ERR(EINVAL);
	if ((op == OP_DISCARD && !d->rsp.max_discard_sectors) ||
	    (op == OP_SECURE_ERASE && !d->rsp.secure_discard) ||
	    (op == OP_WRITE_ZEROES && !d->rsp.max_write_zeroes_sectors))
		errs |= ERR(EOPNOTSUPP);
	return errs ?: OK;
}

/* The message is too short to have a device ID. */
static void too_short(struct expected *e)
{
	e->errs = ERR(EINVAL);
	e->type = NO_TYPE;
}

static void expect_io(struct oracle *o, struct expected *e, const struct request *r, u32 data_len)
{
	struct opened *d;
	struct io_msg m = { };

	memcpy(&m, r->msg, r->usr_len < sizeof(m) ? r->usr_len : sizeof(m));
	e->id = m.device_id;
	d = find_id(o, m.device_id);
	e->unknown = !d;
	if (r->usr_len < offsetof(struct io_msg, prio))
		too_short(e);
	else if (!d)
		e->errs = o->opens ? ANY_IO : ERR(ENOENT);
	else
		e->errs = io_errs(d, &m, r->type == MSG_READ, data_len) |
			  (d->closing || d->unsure ? ERR(ENOENT) : 0);
}

/* A device that the session has open can be opened again in the same mode only. */
static unsigned __int128 open_errs(struct oracle *o, const struct expected *e)
{
	const char *policy = getenv("HOSTILE_POLICY");
	struct opened *d = find_name(o, e->name);

	if (strcmp(e->name, dev_rw) && strcmp(e->name, dev_other))
		return policy && !strcmp(policy, "listed") ? ERR(ENOENT) :
		       ERR(ENOENT) | ERR(EINVAL) | ERR(ENOTBLK) | ERR(ENOTDIR);
	if (!d || d->closing || d->unsure)
		return OK | ERR(EBUSY);
	return d->mode == e->mode ? OK : ERR(EBUSY);
}

static bool name_ok(const char *name, size_t len)
{
	size_t i, n = strnlen(name, len);

	for (i = 0; i < n; i++)
		if ((u8)name[i] < 0x20 || (u8)name[i] == 0x7f)
			return false;
	return n < len;
}

static void expect_open(struct oracle *o, struct expected *e, const struct request *r,
			u32 data_len)
{
	struct open_req m = { };

	memcpy(&m, r->msg, r->usr_len < sizeof(m) ? r->usr_len : sizeof(m));
	if (r->usr_len < sizeof(m) || r->type != MSG_READ || data_len < sizeof(struct open_rsp) ||
	    m.access_mode >= MODES || !name_ok(m.name, sizeof(m.name))) {
		e->errs = ERR(EINVAL);
		return;
	}
	strcpy(e->name, m.name);
	e->mode = m.access_mode;
	e->unsure = o->closes;
	e->errs = open_errs(o, e);
}

static void expect_close(struct oracle *o, struct expected *e, const struct request *r)
{
	struct close_msg m = { };
	struct opened *d;

	memcpy(&m, r->msg, r->usr_len < sizeof(m) ? r->usr_len : sizeof(m));
	e->id = m.device_id;
	d = find_id(o, m.device_id);
	e->unknown = !d;
	if (r->usr_len < sizeof(m))
		too_short(e);
	else if (d)
		e->errs = OK | (d->closing || d->unsure ? ERR(ENOENT) : 0);
	else
		e->errs = ERR(ENOENT) | (o->opens ? OK : 0);
}

/* Features change the answers, see generation.c; here they are set only by chance. */
static void expect_info(struct oracle *o, struct expected *e, const struct request *r, u32 data_len)
{
	struct sess_info m = { };
	u32 features[2];	/* and a cookie */

	memcpy(&m, r->msg, r->usr_len < sizeof(m) ? r->usr_len : sizeof(m));
	e->errs = OK;
	if (r->usr_len < sizeof(m) || r->type != MSG_READ || data_len < sizeof(m))
		e->errs = ERR(EINVAL);
	memcpy(features, (u8 *)&m + 8, sizeof(features));
	if (features[0] && features[1])
		o->wild = true;
}

static void expect(struct oracle *o, struct expected *e, const struct request *r, u32 data_len)
{
	switch (e->type) {
	case RNBD_SESS_INFO:
		expect_info(o, e, r, data_len);
		break;
	case RNBD_OPEN:
		expect_open(o, e, r, data_len);
		break;
	case RNBD_IO:
		expect_io(o, e, r, data_len);
		break;
	case RNBD_CLOSE:
		expect_close(o, e, r);
		break;
	default:
		e->errs = ERR(EINVAL);
		break;
	}
}

/* Counts an OPEN or CLOSE that may succeed. */
static void count(struct oracle *o, struct expected *e)
{
	struct opened *d = find_id(o, e->id);

	if (e->counted)
		return;
	e->counted = true;
	if (e->type == RNBD_OPEN) {
		o->opens++;
	} else {
		o->closes++;
		if (d)
			d->closing++;
	}
}

/* A request in flight when an OPEN is sent may have the device ID that OPEN returns. */
static void affected_by_open(struct oracle *o, struct expected *e, struct expected *open)
{
	if (!e->unknown || !(e->errs & ERR(ENOENT)))
		return;
	if (e->type == RNBD_IO) {
		e->errs |= ANY_IO;
	} else {
		e->errs |= OK;
		open->unsure = true;
		count(o, e);
	}
}

/* The same of a CLOSE */
static void affected_by_close(struct oracle *o, struct expected *e, const struct expected *close)
{
	if (e->type == RNBD_OPEN && e->counted) {
		e->unsure = true;
		e->errs |= open_errs(o, e);
	} else if ((e->type == RNBD_IO || e->type == RNBD_CLOSE) && e->id == close->id &&
		   !e->unknown) {
		e->errs |= ERR(ENOENT);
	}
}

static void affect(struct oracle *o, struct expected *new)
{
	unsigned int i;

	for (i = 0; i < NR_AREAS; i++) {
		if (!(o->pending & 1u << i) || &o->expected[i] == new)
			continue;
		if (new->type == RNBD_OPEN)
			affected_by_open(o, &o->expected[i], new);
		else
			affected_by_close(o, &o->expected[i], new);
	}
}

/* A request is sent without further changes. */
void oracle_sent(struct oracle *o, struct path *p, const struct request *r)
{
	struct expected *e = &o->expected[r->slot];
	u32 data_len;
	int err;

	memset(e, 0, sizeof(*e));
	e->type = NO_TYPE;
	o->pending |= 1u << r->slot;
	if (headers(p, r, &err, &data_len) == FATAL) {
		if (!o->wild && !o->fatal_at)
			o->fatal_at = now_ms();
		return;
	}
	if (err) {
		e->errs = ERR(err);
		return;
	}
	if (r->usr_len >= 4)
		memcpy(&e->type, r->msg, 2);
	expect(o, e, r, data_len);
	if (e->errs & OK && (e->type == RNBD_OPEN || e->type == RNBD_CLOSE)) {
		count(o, e);
		affect(o, e);
	}
}

/* An OPEN is answered. */
static int open_done(struct oracle *o, const struct path *p, unsigned int slot,
		     const struct expected *e, int err)
{
	const struct open_rsp *rsp = (void *)read_area((struct path *)p, slot);
	struct opened *d;

	o->opens--;
	if (err)
		return 0;
	if (rsp->type != RNBD_OPEN_RSP)
		return fail("OPEN is answered with a message of type %u", rsp->type);
	if (oracle_opened(o, e->name, e->mode, rsp))
		return -1;
	d = find_id(o, rsp->device_id);
	d->unsure = e->unsure;
	return 0;
}

/* A CLOSE is answered. */
static void close_done(struct oracle *o, const struct expected *e, int err)
{
	struct opened *d = find_id(o, e->id);

	o->closes--;
	if (d && d->closing)
		d->closing--;
	if (d && (!err || !d->closing))
		memset(d, 0, sizeof(*d));
	/* The OPEN of that device is not yet answered. */
	if (!d && !err && e->unknown)
		o->wild = true;
}

/* The request in a slot is answered. Returns 0, or fail() for an invalid answer. */
int oracle_answered(struct oracle *o, struct path *p, unsigned int slot)
{
	const struct expected *e = &o->expected[slot];
	bool pending = o->pending & 1u << slot;
	int err = -p->slot[slot].err;

	if (o->wild || o->fatal_at)
		return 0;
	if (!pending)
		return fail("slot %u is answered, but not in use", slot);
	o->pending &= ~(1u << slot);
	if (err < 0 || err > 127 || !(e->errs & ERR(err)))
		return fail("a message of type %u for device %u is answered with %d", e->type,
			    e->id, -err);
	o->judged++;
	o->done += e->type == RNBD_IO && !err;
	if (e->counted && e->type == RNBD_OPEN)
		return open_done(o, p, slot, e, err);
	if (e->counted)
		close_done(o, e, err);
	return 0;
}
