// SPDX-License-Identifier: GPL-2.0
/*
 * Generations: three valid clients of one disk lose their sessions at random, and a model defines
 * which of them may write. And a client that reports invalid generations.
 *
 * Environment: HOSTILE_SCHEDULES, the number of schedules. With HOSTILE_RESTART, "restart" is
 * printed after some schedules, and a line is read when the server was restarted.
 */
#include "hostile.h"

#define FEATURE_GENERATIONS	(1 << 3 | 1 << 4)	/* HANDOVER and GENERATION */
#define GEN_WRITER		1
#define GEN_FENCED		2
#define ACC_HANDOVER		3
#define NR_CLIENTS		3
#define STEPS			12

struct open_gen_req {
	struct open_req open;
	u64 generation;
	u8 flags;
	u8 reserved[7];
} __attribute__((packed));

struct open_gen_rsp {
	struct open_rsp open;
	u8 id[24];
	u64 generation;
	u8 flags;
	u8 reserved[7];
} __attribute__((packed));

/* A client with one mapping */
struct client {
	char name[32];			/* of its session */
	struct path *p;			/* NULL while the session is lost */
	bool mapped;
	bool open;			/* the server has the mapping open */
	u8 mode;			/* access mode */
	u32 id;				/* device ID */
	u64 generation;			/* as the client stores it */
	u8 flags;			/* as the client stores them */
	u64 order;			/* of mapping; in mode rw also of opening again */
	bool replaced;			/* another mapping has written: must not write again */
};

static struct client clients[NR_CLIENTS];
/* Order of the newest mapping; stamp of the last successful write; stamp of the last write */
static u64 newest, on_disk, stamp;

static int sess_info_gen(struct path *p)
{
	struct sess_info msg = { .type = RNBD_SESS_INFO, .ver = 2 };
	u32 features[2] = { FEATURE_GENERATIONS, 0x12345678 };
	struct request r;

	memcpy((u8 *)&msg + 8, features, sizeof(features));
	r = request_rnbd(p, MSG_READ, &msg, sizeof(msg), 36);
	if (do_request(p, &r) || memcmp(read_area(p, 0) + 8, features, sizeof(features)))
		return fail("SESS_INFO: generations not granted");
	return 0;
}

/* Ends the session. */
static void lose(struct client *c)
{
	if (c->p)
		path_free(c->p);
	c->p = NULL;
	c->open = false;
}

/* Retries while an earlier session of the same name ends. */
static int connect_client(struct client *c)
{
	u64 end = now_ms() + 20000;

	while (!c->p && now_ms() < end) {
		c->p = path_up(c->name);
		if (!c->p)
			nap_us(20000);
	}
	return c->p ? sess_info_gen(c->p) : -1;
}

/* The errno of the answer; 1 without an answer */
static int send_open(struct client *c, struct open_gen_rsp *rsp)
{
	struct open_gen_req msg = {
		.open = { .type = RNBD_OPEN, .access_mode = c->mode },
		.generation = c->generation,
		.flags = c->flags,
	};
	struct request r = request_rnbd(c->p, MSG_READ, &msg, sizeof(msg), sizeof(*rsp));
	int err;

	snprintf(msg.open.name, sizeof(msg.open.name), "%s", dev_rw);
	err = do_request(c->p, &r);
	if (!err)
		memcpy(rsp, read_area(c->p, 0), sizeof(*rsp));
	return err;
}

/* Do the access modes of the open mappings allow this one? */
static bool access_ok(const struct client *c)
{
	unsigned int writers = 0, handover = 0, i;

	for (i = 0; i < NR_CLIENTS; i++) {
		writers += clients[i].open;
		handover += clients[i].open && clients[i].mode == ACC_HANDOVER;
	}
	if (c->mode == ACC_HANDOVER)
		return writers == handover;
	return !handover && writers < (c->mode == ACC_RW ? 1 : 2);
}

/* Opens a mapping. Retries if it may be opened, but the server is still closing another one. */
static int open_gen_retry(struct client *c, struct open_gen_rsp *rsp)
{
	bool ok = access_ok(c);
	u64 end = now_ms() + 10000;
	int err;

	while ((err = send_open(c, rsp)) == -EBUSY && ok && now_ms() < end)
		nap_us(2000);
	return err;
}

static int open_client(struct client *c)
{
	bool new = !c->generation, refused = c->replaced && c->mode != ACC_HANDOVER;
	int want = refused ? -EBADE : access_ok(c) ? 0 : -EBUSY, err;
	struct open_gen_rsp rsp;

	if (!c->p && connect_client(c))
		return -1;
	err = open_gen_retry(c, &rsp);
	if (err != want)
		return fail("%s (mode %u, %s): OPEN gives %d, not %d", c->name, c->mode,
			    new ? "new" : "again", err, want);
	if (err == -EBADE)
		c->mapped = false;
	if (err)
		return 0;
	if (new || c->mode == ACC_RW) {
		c->order = ++newest;
		c->generation = rsp.generation;
		c->flags = 0;
	}
	if (!c->generation)
		return fail("%s: no generation", c->name);
	c->id = rsp.open.device_id;
	c->open = true;
	c->mapped = true;
	return 0;
}

static int map_client(struct client *c)
{
	c->mapped = false;
	c->mode = 1 + rnd_below(3);
	c->generation = 0;
	c->flags = 0;
	c->replaced = false;
	return open_client(c);
}

static int do_io(struct client *c, u16 dir, u8 op)
{
	struct io_msg msg = io_msg(c->id, op, 0, 4096);
	struct request r = request_rnbd(c->p, dir, &msg, sizeof(msg), 4096);

	return do_request(c->p, &r);
}

static int write_client(struct client *c)
{
	int want = c->replaced && c->mode == ACC_HANDOVER ? -EBADE : 0, err;
	unsigned int i;

	stamp++;
	memcpy(area(c->p, 0), &stamp, sizeof(stamp));
	err = do_io(c, MSG_WRITE, OP_WRITE);
	if (err != want)
		return fail("%s (mode %u): a write gives %d, not %d", c->name, c->mode, err, want);
	if (err) {
		c->flags |= GEN_FENCED;
		return 0;
	}
	on_disk = stamp;
	c->flags |= GEN_WRITER;
	for (i = 0; i < NR_CLIENTS; i++)
		if (&clients[i] != c && ((c->mode == ACC_RW && clients[i].mode == ACC_RW) ||
					 clients[i].order < c->order))
			clients[i].replaced = true;
	return 0;
}

static int read_client(struct client *c)
{
	u64 got = 0;
	int err;

	err = do_io(c, MSG_READ, OP_READ);
	memcpy(&got, read_area(c->p, 0), sizeof(got));
	if (err || (on_disk && got != on_disk))
		return fail("%s: a read gives %d, write %llu, not %llu", c->name, err,
			    (unsigned long long)got, (unsigned long long)on_disk);
	return 0;
}

static int unmap_client(struct client *c)
{
	struct close_msg msg = { .type = RNBD_CLOSE, .device_id = c->id };
	struct request r = request_rnbd(c->p, MSG_WRITE, &msg, sizeof(msg), 0);
	int err = do_request(c->p, &r);

	c->open = false;
	c->mapped = false;
	return err ? fail("%s: CLOSE gives %d", c->name, err) : 0;
}

static int restart_server(void)
{
	char line[16];
	unsigned int i;

	for (i = 0; i < NR_CLIENTS; i++)
		lose(&clients[i]);
	printf("restart\n");
	fflush(stdout);
	return fgets(line, sizeof(line), stdin) ? 0 : fail("the server isn't restarted");
}

static int step(void)
{
	struct client *c = &clients[rnd_below(NR_CLIENTS)];

	if (!c->open)
		return c->mapped ? open_client(c) : map_client(c);
	switch (rnd_below(8)) {
	case 0:
	case 1:
		lose(c);
		return 0;
	case 2:
		return unmap_client(c);
	case 3:
		return read_client(c);
	default:
		return write_client(c);
	}
}

static int schedules(long arg)
{
	const char *nr = getenv("HOSTILE_SCHEDULES");
	unsigned int i, j, restarts = 0, n = nr ? atoi(nr) : 100;
	bool restart = getenv("HOSTILE_RESTART");
	int ret = 0;

	for (i = 0; i < NR_CLIENTS; i++)
		snprintf(clients[i].name, sizeof(clients[i].name), "h-gen%u", i);
	for (i = 0; i < n && !ret; i++) {
		for (j = 0; j < STEPS && !ret; j++)
			ret = step();
		if (restart && !ret && !rnd_below(5)) {
			ret = restart_server();
			restarts++;
		}
	}
	for (i = 0; i < NR_CLIENTS; i++)
		lose(&clients[i]);
	snprintf(note, sizeof(note), "%u schedules, %u restarts, %llu writes", n, restarts,
		 (unsigned long long)stamp);
	return ret;
}

/* A client with handover reports invalid generations: later mappings still work. */
static int liar(long arg)
{
	static const u64 far[] = { INT64_MAX, 1ull << 63, UINT64_MAX, UINT64_MAX - 1, 1 };
	struct client *good = &clients[0], *bad = &clients[1];
	unsigned int i, j;
	int ret = 0;

	snprintf(good->name, sizeof(good->name), "%s-good", test_name);
	snprintf(bad->name, sizeof(bad->name), "%s-bad", test_name);
	for (i = 0; i < 2 * ARRAY_SIZE(far) && !ret; i++) {
		struct open_gen_rsp rsp;

		bad->mode = good->mode = ACC_HANDOVER;
		bad->generation = far[i / 2];
		bad->flags = i & 1 ? GEN_FENCED : GEN_WRITER;
		good->generation = 0;
		good->flags = 0;
		if (connect_client(bad) || send_open(bad, &rsp) || connect_client(good) ||
		    send_open(good, &rsp)) {
			ret = fail("%u: can't be opened", i);
			break;
		}
		good->generation = rsp.generation;
		for (j = 0; j < 3 && !ret; j++) {
			good->id = rsp.open.device_id;
			if (do_io(good, MSG_WRITE, OP_WRITE))
				ret = fail("%u: the new mapping can't write, round %u", i, j);
			good->flags = GEN_WRITER;
			lose(good);
			if (!ret && (connect_client(good) || open_gen_retry(good, &rsp)))
				ret = fail("%u: the new mapping isn't opened again", i);
		}
		lose(good);
		lose(bad);
	}
	lose(good);
	lose(bad);
	return ret;
}

const struct test generation_cases[] = {
	{ "gen-liar", "a client with handover reports unknown generations", liar },
	{ "gen-schedules", "three clients write and lose their sessions at random", schedules,
	  .extra = true, .quiet = true },
	{ }
};
