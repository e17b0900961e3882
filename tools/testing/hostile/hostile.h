/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by the files of the hostile peer: connections, paths and cases.
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
#define STRIDE		(136 << 10)	/* distance of areas: a chunk and space behind it */
#define NR_AREAS	8		/* areas to send from, and as many to read into */
#define RECV_SIZE	64
#define NR_RECVS	128
#define SLOW_MS		300		/* latency of dev_slow */
#define BIG_LEN		(1 << 20)	/* largest request with slots */
#define ANSWER_INV	16		/* imm_type of a SEND WITH INV with a struct answer */
#define INFO_SIZE	(8 + 16 * MAX_DEPTH)

/* A connection. Its completion queue serves both work queues. */
struct con {
	struct path *path;
	unsigned int cid;		/* index in the path */
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id;
	struct ibv_qp *qp;		/* of the CM, or created here (path->may_read) */
	struct ibv_cq *cq;
	u8 *recvs;			/* NR_RECVS buffers of RECV_SIZE bytes in path->mem */
	bool up;			/* was established */
	bool ended;			/* disconnected by the peer, or broken */
	enum ibv_wc_status status;	/* of the first completion that failed, except flushes */
	unsigned int inflight;		/* sends without a completion */
	bool busy;			/* another thread polls @cq */
	u8 nonce[8];			/* from the accept */
	u32 peer_qpn;
};

/* A chunk or slot of the server */
struct slot {
	u64 addr;
	u32 key;
	u32 answers;			/* received for this slot */
	int err;			/* errno of the last answer */
	int imm_type;			/* type of its immediate value, or ANSWER_INV */
};

/* A client's path */
struct path {
	char sess[256];			/* name of the session */
	struct sockaddr_storage addr;	/* of the server */
	struct cm_req req;		/* template of the connection requests */
	unsigned int nr_cons;		/* connections that path_connect() makes */
	struct con cons[MAX_CONS];
	struct ibv_pd *pd;
	u8 *mem;			/* areas to send from, areas to read into, receives */
	struct ibv_mr *mr;		/* of @mem */
	size_t mem_len;
	u8 *big;			/* with slots: BIG_LEN to fetch, BIG_LEN to read into */
	struct ibv_mr *big_mr;		/* of @big */
	u8 reads;			/* RDMA READs in flight that the server is granted */
	struct cm_rep rep;		/* private data of the first accept */
	int reject_err;			/* errno of a reject, 0 without one */
	unsigned int off_bits;		/* bits of the offset in a request's immediate value */
	unsigned int nr_info;		/* descriptors in INFO_RSP, 0 before it arrives */
	struct slot slot[MAX_DEPTH];
	int refused;			/* errno of an INFO_RSP without descriptors */
	unsigned int hb_msgs;		/* heartbeats received */
	unsigned int hb_acks;		/* answers to heartbeats received */
	unsigned int fenced;		/* FENCED messages received */
	u32 fenced_id;			/* payload of the last one */
	unsigned int invalidated;	/* messages received that invalidated a key */
	unsigned int unexpected;	/* messages received that no server sends */
	bool no_recv;			/* post no receives */
	bool mute;			/* do not answer heartbeats */
	bool no_imm;			/* send messages in place of immediate data */
	bool may_read;			/* QPs can send RDMA READ and atomics without a grant */
};

/* A request, field by field. Any field may be invalid. */
struct request {
	unsigned int slot;
	unsigned int cid;
	u16 type;			/* MSG_WRITE, MSG_READ or MSG_FETCH */
	const void *msg;		/* user message */
	u16 msg_len;			/* its length */
	u16 usr_len;			/* its length according to the header */
	const void *data;		/* to write, or NULL: the area's contents */
	u32 data_len;			/* bytes written, or room for data that is read */
	u16 flags;			/* of a read or fetch */
	u16 nr_desc;			/* number of descriptors according to the header */
	struct desc desc;		/* memory to read into or to fetch from */
};

/* Follows INFO_REQ if FEATURE_PROOF is negotiated */
struct proof {
	u8 nonce[32];			/* of the client */
	u8 mac[32];			/* HMAC-SHA-256, see prove.c */
};

/* A memory window: the only kind of key in user space that a peer can invalidate */
struct window {
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	void *addr;
	size_t len;
	u32 key;			/* of the last window_bind() */
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
unsigned int send_burst(struct path *p, u32 imm, u32 step, unsigned int nr);
int window_new(struct path *p, struct window *w, void *addr, size_t len);
int window_bind(struct path *p, struct window *w);
void window_free(struct window *w);
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
int open_retry(struct path *p, const char *name, u8 mode, struct open_rsp *rsp);
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

/* A directed case of a hostile client */
struct test {
	const char *name;
	const char *about;	/* the invalid input, and the result where it is not an error */
	int (*run)(long arg);	/* returns 0 or fail() */
	long arg;
	bool quiet;		/* too many messages for the log: reasons are not checked */
	bool extra;		/* slow, or needs slots or another set-up: not part of "all" */
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
struct path *path_with_reads(const char *sess, unsigned int nr_cons, unsigned int nr);
int start_slow_reads(struct path *p, unsigned int slot, unsigned int nr, u64 *since);

#endif
