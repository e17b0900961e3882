/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the hostile peer's files share: connections, a path of them, and what a
 * case is.
 */
#ifndef HOSTILE_H
#define HOSTILE_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define MAX_CONS	8
#define MAX_DEPTH	1024
#define STRIDE		(136 << 10)	/* a chunk and something behind it */
#define NR_AREAS	8		/* pieces of memory to send from */
#define RECV_SIZE	64
#define NR_RECVS	128
#define SLOW_MS		300		/* what a request to dev_slow takes */
#define BIG_LEN		(1 << 20)	/* most data of a request with slots */
#define ANSWER_INV	16		/* in place of a type: SEND WITH INV of a struct answer */
#define INFO_SIZE	(8 + 16 * MAX_DEPTH)

/**
 * struct con - a connection
 * @path: its path
 * @cid: its index there
 * @ch: events of @id
 * @id: the connection manager's side of it
 * @qp: the queue pair, the connection manager's or our own
 * @cq: completions of both queues
 * @recvs: NR_RECVS buffers of RECV_SIZE bytes, part of the path's memory
 * @up: was established
 * @ended: the peer disconnected it, or it broke
 * @status: first completion that failed, not counting flushed ones
 * @inflight: work requests in the send queue whose completion has not been seen
 * @busy: a thread has its completions
 * @nonce: from the accept
 * @peer_qpn: number of the peer's queue pair
 */
struct con {
	struct path *path;
	unsigned int cid;
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id;
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	u8 *recvs;
	bool up;
	bool ended;
	enum ibv_wc_status status;
	unsigned int inflight;
	bool busy;
	u8 nonce[8];
	u32 peer_qpn;
};

/**
 * struct slot - what is known of a chunk
 * @addr: where it is
 * @key: its key
 * @answers: how many answers came for it
 * @err: errno of the last one, as the peer said it
 * @imm_type: type of its immediate value, or ANSWER_INV
 */
struct slot {
	u64 addr;
	u32 key;
	u32 answers;
	int err;
	int imm_type;
};

/**
 * struct path - a path as a client has it
 * @sess: name of the session
 * @addr: where the server is
 * @req: private data that the connection requests are made of
 * @nr_cons: how many connections are asked for
 * @cons: they
 * @pd: all memory is in there
 * @mem: areas to send from, then as many for data that is read, then receives
 * @mr: @mem
 * @mem_len: length of @mem
 * @big: with slots: BIG_LEN bytes to be fetched, then as many for data that is read
 * @big_mr: @big, under a key of its own
 * @reads: how many RDMA READs the server may have in flight, as it is told
 * @rep: the server's answer to the first request
 * @reject_err: errno of a reject, 0 if it said none
 * @off_bits: bits of an offset in the immediate value of a request
 * @nr_info: descriptors of INFO_RSP, 0 before it came
 * @slot: the chunks
 * @refused: errno in an INFO_RSP without descriptors
 * @hb_msgs: heartbeats that came
 * @hb_acks: answers to heartbeats that came
 * @fenced: answers to FENCE that came
 * @fenced_id: payload of the last one
 * @invalidated: messages that invalidated something
 * @unexpected: what came and is none of all this
 * @no_recv: connections get no receives
 * @mute: heartbeats aren't answered
 * @no_imm: what would be immediate data is sent as a message, also where cases don't say so
 * @may_read: queue pairs can send RDMA READ and atomics, though the peer allows none
 */
struct path {
	char sess[256];
	struct sockaddr_storage addr;
	struct cm_req req;
	unsigned int nr_cons;
	struct con cons[MAX_CONS];
	struct ibv_pd *pd;
	u8 *mem;
	struct ibv_mr *mr;
	size_t mem_len;
	u8 *big;
	struct ibv_mr *big_mr;
	u8 reads;
	struct cm_rep rep;
	int reject_err;
	unsigned int off_bits;
	unsigned int nr_info;
	struct slot slot[MAX_DEPTH];
	int refused;
	unsigned int hb_msgs;
	unsigned int hb_acks;
	unsigned int fenced;
	u32 fenced_id;
	unsigned int invalidated;
	unsigned int unexpected;
	bool no_recv;
	bool mute;
	bool no_imm;
	bool may_read;
};

/**
 * struct request - what is to be sent, field by field, right or wrong
 * @slot: which chunk
 * @cid: which connection
 * @type: MSG_WRITE, MSG_READ or MSG_FETCH
 * @msg: user message
 * @msg_len: so much of it is sent
 * @usr_len: so much is said to be there
 * @data: what to write, NULL for whatever there is
 * @data_len: how much is written, or how much room there is for data
 * @flags: of a read, or of what is to be fetched
 * @nr_desc: so many are said to be there
 * @desc: where to read to, or where to fetch from
 */
struct request {
	unsigned int slot;
	unsigned int cid;
	u16 type;
	const void *msg;
	u16 msg_len;
	u16 usr_len;
	const void *data;
	u32 data_len;
	u16 flags;
	u16 nr_desc;
	struct desc desc;
};

/**
 * struct proof - what follows INFO_REQ if the feature is negotiated
 * @nonce: of the client
 * @mac: HMAC-SHA-256 over what both know
 */
struct proof {
	u8 nonce[32];
	u8 mac[32];
};

#define PROOF_LEN	(sizeof(struct info_req) + sizeof(struct proof))

/* util.c */
extern char why[512];
extern bool quiet;
u64 now_ms(void);
void nap_us(unsigned int us);
int fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void rnd_seed(u64 seed);
u64 rnd(void);
u32 rnd_below(u32 n);
void log_mark(void);
const char *log_line(unsigned int i);

/* conn.c */
int set_addr(struct sockaddr_storage *to, const char *addr, const char *port);
int con_wait_event(struct con *con, enum rdma_cm_event_type want, int ms);
int con_resolve(struct con *con);
int con_create_qp(struct con *con);
int con_request_only(struct con *con, const void *data, u8 len);
int con_request(struct con *con, const void *data, u8 len);
void con_poll_cm(struct con *con);
void con_destroy_qp(struct con *con);
void con_break_qp(struct con *con);
void con_free(struct con *con);
int con_post(struct con *con, struct ibv_send_wr *wr);
int con_room(struct con *con, unsigned int nr);
int con_recv(struct con *con, unsigned int i);

/* path.c */
struct path *path_new(const char *sess);
extern bool all_slots;
extern bool all_no_imm;
extern const char *srv_keys;
bool has_slots(const struct path *p);
u32 data_room(const struct path *p);
u32 chunk_len(const struct path *p);
void path_offer(struct path *p);
void path_offer_slots(struct path *p);
void path_offer_no_imm(struct path *p);
void path_offer_proof(struct path *p);
void path_join(struct path *p, const struct path *first, unsigned int addr);
int path_con(struct path *p, unsigned int cid, const struct cm_req *req, u8 len);
int path_connect(struct path *p);
int path_info_req(struct path *p, const void *msg, u32 len);
int path_wait_info(struct path *p);
int path_info(struct path *p);
struct path *path_ready(struct path *p);
struct path *path_up(const char *sess);
void path_poll(struct path *p);
bool path_ended(const struct path *p);
void path_free(struct path *p);
u8 *area(struct path *p, unsigned int i);
u8 *read_area(struct path *p, unsigned int i);
int send_imm(struct path *p, unsigned int cid, u32 imm);
int send_msg(struct path *p, unsigned int cid, const void *msg, u32 len);
int send_with(struct path *p, unsigned int cid, const void *from, u32 len,
	      enum ibv_wr_opcode opcode, u32 imm_or_key);
int rdma_op(struct path *p, unsigned int cid, u32 len, u64 addr, u32 key,
	    enum ibv_wr_opcode opcode);
int write_to(struct path *p, unsigned int cid, const void *from, u32 len,
	     u64 addr, u32 key, const u32 *imm);
u32 imm_req(const struct path *p, unsigned int slot, u32 off);
u32 request_write(struct path *p, const struct request *r, u32 *imm);
struct ibv_send_wr request_wr(struct path *p, const struct request *r,
			      struct ibv_sge *sge);
int request_send(struct path *p, const struct request *r);
struct request request_rnbd(struct path *p, u16 type, const void *msg, u16 len,
			    u32 data_len);
int wait_answer(struct path *p, unsigned int slot, u32 before, int ms);
int do_request(struct path *p, const struct request *r);

/* prove.c */
void prove(struct path *p, u32 role, struct proof *proof);
void prove_tag(struct path *p);
int send_proof(struct path *p, const struct proof *proof, u32 len);

/* rnbd.c */
struct io_msg io_msg(u32 id, u32 rw, u64 sector, u32 len);
int open_all_slots(struct path *p);
int leave_open(struct path *p);
int sess_info(struct path *p, u8 ver);
int open_soon(struct path *p, const char *name, u8 mode, struct open_rsp *rsp);
int open_dev(struct path *p, const char *name, u8 mode, struct open_rsp *rsp);

/* check.c */
int unnamed_ends_logged(unsigned int nr);
int must_end(struct path *p, const char *reason);
int must_end_quietly(struct path *p);
int must_end_late(struct path *p);
int must_go(const char *sess, int ms);
int must_live(struct path *p);
int must_answer(struct path *p, const struct request *r, int err);
int must_answer_some(struct path *p, const struct request *r);
int end_with(struct path *p, int ret);
int must_refuse(struct path *p, int got, int err);

/**
 * struct test - a directed case
 * @name: its name
 * @about: what is wrong, and what is to come of it
 * @run: does it; 0, or fail()
 * @arg: for @run
 * @quiet: ends paths, and doesn't look for the reason in the log, which may not tell
 *	of so many
 * @extra: takes its time, or wants slots, so "all" leaves it out
 */
struct test {
	const char *name;
	const char *about;
	int (*run)(long arg);
	long arg;
	bool quiet;
	bool extra;
};

int hello(long arg);
extern const struct test connect_cases[];
extern const struct test request_cases[];
extern const struct test rnbd_cases[];
extern const struct test fence_cases[];
extern const struct test generation_cases[];
extern const struct test pull_cases[];
extern const struct test scribble_cases[];
extern const struct test no_imm_cases[];
extern const struct test proof_cases[];
int wrong_proof_once(void);
extern const struct test flood_cases[];
void hold_fetching(const char *sess);

/* random.c */
int random_client(u64 seed, unsigned int messages);

/* main.c */
extern const char *test_name;
extern char note[300];
extern char **args;
extern char dev_rw[255];
extern char dev_slow[256];
extern char dev_other[256];
extern char dev_held[255];
extern struct sockaddr_storage addrs[3];
bool chosen(const char *name, bool extra, char **patterns, int nr);
int not_chosen(char **patterns, int nr);
void count_ended(void);
void count_refused(void);
int hold_and_kill(const char *how);
struct path *in_hand(const char *sess, unsigned int nr_cons, unsigned int nr);
int put_in_hand(struct path *p, unsigned int slot, unsigned int nr, u64 *since);

#endif
