/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The hostile server: what its cases are made of.
 */
#ifndef HOSTILE_SERVER_H
#define HOSTILE_SERVER_H

#include "hostile.h"

#define DEPTH		16
#define CHUNK		(128 << 10)
#define S_SLOT		4096	/* bytes of data in a slot, where there are slots */
#define USE_LEN		65536	/* bytes of the disk that are used */
/* Cases that are connected to again: how long their client waits for a path, and for a dead
 * one to have no effect any more */
#define FAILOVER_S	3
#define UNFENCED_MS	500
#define S_RECVS		64
#define S_RECV_SIZE	512
#define S_SENDS		256

/**
 * struct scon - a connection that a client made
 * @id: the connection manager's side of it
 * @cq: completions of both queues
 * @cid: its index in the path
 * @recvs: buffers
 * @up: established, as the CM or the client said
 * @ended: broken, or disconnected
 * @disconnected: s_disconnect() was called
 * @inflight: work requests whose completion has not been seen
 */
struct scon {
	struct rdma_cm_id *id;
	struct ibv_cq *cq;
	unsigned int cid;
	u8 *recvs;
	bool up;
	bool ended;
	bool disconnected;
	unsigned int inflight;
};

/**
 * struct srv - the server
 * @test: the case at hand
 * @ch: all events
 * @listen: listens
 * @cons: connections by index
 * @nr_cons: how many the client announced
 * @rep: what it was told
 * @pd: all memory is in there
 * @mr: @mem
 * @mem: chunks, then receives, then @out
 * @mem_len: its length
 * @out: messages and data to send
 * @out_used: so much of it was given out in this round
 * @requests: how many came, by RNBD type
 * @complaint: the client did something wrong
 * @ended: a connection broke
 * @acted: the case has done what is wrong
 * @lied: what the client was told of our memory is wrong
 * @quit_at: when to disconnect
 * @given_up: all is refused from now on
 * @wrote: a write of data has come
 * @small_key: key of the client's memory for small reads, 0 until one has come
 * @large_key: key of the last large request
 * @life: how often the client has begun to connect
 * @fences: how often it asked for a fence
 * @later: an immediate value to send
 * @later_at: when to do that
 * @want_err: what map_device is to return; as the case says, unless chance decides
 * @want_io: what I/O is to give, likewise
 */
struct srv {
	const struct srv_test *test;
	struct rdma_event_channel *ch;
	struct rdma_cm_id *listen;
	struct scon cons[MAX_CONS];
	unsigned int nr_cons;
	struct cm_rep rep;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	u8 *mem;
	size_t mem_len;
	u8 *out;
	u32 out_used;
	unsigned int requests[6];
	const char *complaint;
	bool ended;
	bool acted;
	bool lied;
	u64 quit_at;
	bool given_up;
	bool wrote;
	u32 small_key;
	u32 large_key;
	volatile unsigned int life;
	unsigned int fences;
	u32 later;
	u64 later_at;
	int want_err;
	int want_io;
};

/**
 * struct sreq - a request of the client
 * @con: where it came
 * @slot: which chunk
 * @hdr: its header
 * @msg: its user message, in the chunk
 * @kind: RNBD type of that
 */
struct sreq {
	struct scon *con;
	u32 slot;
	struct io_hdr hdr;
	const u8 *msg;
	u16 kind;
};

enum { S_ACCEPT, S_REJECT, S_IGNORE };

/* What the client's log says of a path that ends, and why */
#define ENDS		"path ends: "
#define UNASKED		"the server answered what was not asked"
#define BAD_IMM		"the server sent unexpected immediate data"
#define BAD_MSG		"the server sent a message that was not asked for"
#define BAD_INFO	"the server's first message is no INFO_RSP"
#define BAD_WRITE	"write of a full-size packet"
#define OTHER_KEY	"the server invalidated a key that is not the slot's"
#define NO_ANSWER	"the server invalidated a key without an answer"

/* In place of map_device's errno: anything may come of it. For random_case only */
#define ANY	(-1)

/**
 * struct srv_test - a case
 * @name: its name
 * @about: what is wrong
 * @err: what map_device is to return: 0, an errno, ANY
 * @errs: other errnos that it may return, as that is a race
 * @io_err: what I/O is to give, if the device is mapped
 * @may_map: the client may map the device before it notices
 * @ends: the client is to end the path and to say why
 * @connect: changes the answer to a connection request, or refuses it
 * @established: a connection stands
 * @info: changes INFO_RSP; its length, 0 for none
 * @request: a request came; true if it has been seen to
 * @arg: for all of these
 * @at: for @request: at what kind of request
 * @large: for @request: at a large read
 * @flags: for the accept
 * @mute: heartbeats aren't answered
 * @rounds: how often the disk is used, whatever errors there are, 0 for once
 * @ms: limit for map_device
 * @extra: not in "all"
 * @again: the client connects again, and has to; its I/O waits for that
 * @fence: with @again: the client asks for a fence
 * @fenced: with @again: it has to ask
 * @io_ms: with @again: for so long it has to wait
 * @log: what the log has to say of the session
 */
struct srv_test {
	const char *name;
	const char *about;
	int err;
	int errs[2];
	int io_err;
	bool may_map;
	bool ends;
	int (*connect)(struct srv *s, const struct cm_req *req,
		       struct cm_rep *rep, u8 *len);
	void (*established)(struct srv *s, struct scon *c);
	u32 (*info)(struct srv *s, struct info_rsp *rsp, u32 len);
	bool (*request)(struct srv *s, const struct sreq *r);
	long arg;
	u16 at;
	bool large;
	u32 flags;
	bool mute;
	unsigned int rounds;
	unsigned int ms;
	bool extra;
	bool again;
	void (*fence)(struct srv *s, u32 id);
	bool fenced;
	unsigned int io_ms;
	const char *log;
};

extern const struct srv_test server_cases[];
extern const struct srv_test again_cases[];
extern const struct srv_test pulled_cases[];
extern const struct srv_test random_case;

int s_post(struct scon *c, enum ibv_wr_opcode opcode, const void *from, u32 len,
	   u32 imm_or_inv, u64 addr, u32 key);
u32 s_rsp(u32 type, u32 slot, int err);
void s_imm(struct scon *c, u32 imm);
void s_answer(const struct sreq *r, u32 type, u32 slot, int err);
void s_data(const struct sreq *r, const void *data, u32 len);
void s_reply(const struct sreq *r, const void *data, u32 len, int err);
void s_answer_inv(const struct sreq *r, u32 key, const struct answer *a, u32 len);
bool s_slots(const struct srv *s);
bool s_needs_inval(const struct sreq *r);
struct open_rsp s_open_rsp(void);
void s_up(struct scon *c);
bool s_poll(void);
void s_hang_up(void);
void s_disconnect(struct scon *c);
int random_server(const char *addr, const char *port, u64 seed,
		  unsigned int requests);
int run_server(const char *addr, const char *port, char **patterns, int nr);

#endif
