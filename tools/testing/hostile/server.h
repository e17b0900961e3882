/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The hostile server: shared by the files of its cases
 */
#ifndef HOSTILE_SERVER_H
#define HOSTILE_SERVER_H

#include "hostile.h"

#define DEPTH		16
#define CHUNK		(128 << 10)
#define S_SLOT		4096	/* data bytes of a slot */
#define USE_LEN		65536	/* bytes of the disk that are used */
/* Cases with a reconnect: the client's failover_timeout and unfenced_delay_ms */
#define FAILOVER_S	3
#define UNFENCED_MS	500
#define S_RECVS		64
#define S_RECV_SIZE	512
#define S_SENDS		256

/* A connection of the client */
struct scon {
	struct rdma_cm_id *id;
	struct ibv_cq *cq;		/* of both work queues */
	unsigned int cid;		/* index in the path */
	u8 *recvs;
	bool up;			/* established, according to the CM or to a message */
	bool ended;			/* disconnected or broken */
	bool disconnected;		/* s_disconnect() was called */
	unsigned int inflight;		/* sends without a completion */
};

/* The server. It has one client with one path. */
struct srv {
	const struct srv_test *test;	/* the current case */
	struct rdma_event_channel *ch;
	struct rdma_cm_id *listen;
	struct scon cons[MAX_CONS];
	unsigned int nr_cons;		/* as the client announced */
	struct cm_rep rep;		/* the first accept or reject sent */
	struct ibv_pd *pd;
	struct ibv_mr *mr;		/* of @mem */
	u8 *mem;			/* chunks, receives, @out */
	size_t mem_len;
	u8 *out;			/* ring of messages and data to send */
	u32 out_used;
	unsigned int requests[8];	/* received, by RNBD type */
	const char *complaint;		/* protocol error of the client */
	bool ended;			/* a connection broke */
	bool acted;			/* the case has sent its invalid message */
	bool lied;			/* the client has an invalid description of @mem */
	u64 quit_at;			/* when to disconnect */
	bool given_up;			/* refuse all connection requests */
	bool wrote;			/* a write of data was received */
	u32 small_key;			/* key of the client's memory for small reads, or 0 */
	u32 large_key;			/* key of the last large request */
	volatile unsigned int life;	/* first connection requests received */
	unsigned int fences;		/* FENCE messages received */
	u32 later;			/* immediate value to send at @later_at */
	u64 later_at;
	int want_err;			/* expected errno of map_device */
	int want_io;			/* expected errno of I/O */
};

/* A request of the client */
struct sreq {
	struct scon *con;
	u32 slot;
	struct io_hdr hdr;
	const u8 *msg;			/* user message in the chunk */
	u16 kind;			/* its RNBD type */
};

enum { S_ACCEPT, S_REJECT, S_IGNORE };

/* The client's log messages about a path that ends */
#define ENDS		"path ends: "
#define UNASKED		"the server answered a request that was not sent"
#define BAD_IMM		"the server sent unexpected immediate data"
#define BAD_MSG		"the server sent an unexpected message"
#define BAD_INFO	"the server's first message is no INFO_RSP"
#define BAD_WRITE	"write of a full-size packet"
#define OTHER_KEY	"the server invalidated a key that is not the slot's"
#define NO_ANSWER	"the server invalidated a key without an answer"

/* As an errno: any result of map_device and I/O is valid (random_case only) */
#define ANY	(-1)

/* A case */
struct srv_test {
	const char *name;
	const char *about;		/* the invalid message */
	int err;			/* expected errno of map_device, 0 or ANY */
	int errs[2];			/* further errnos, where two events race */
	int io_err;			/* expected errno of I/O, if the device is mapped */
	bool may_map;			/* map_device may succeed before the client notices */
	bool ends;			/* the client logs why the path ends */
	/* Changes the answer to a connection request; returns S_ACCEPT, S_REJECT or S_IGNORE */
	int (*connect)(struct srv *s, const struct cm_req *req,
		       struct cm_rep *rep, u8 *len);
	void (*established)(struct srv *s, struct scon *c);
	/* Changes INFO_RSP; returns its length, 0 to send none */
	u32 (*info)(struct srv *s, struct info_rsp *rsp, u32 len);
	/* Returns true if it has handled the request */
	bool (*request)(struct srv *s, const struct sreq *r);
	long arg;			/* for these functions */
	u16 at;				/* for @request: RNBD type that triggers it */
	bool large;			/* for @request: only a large read triggers it */
	u32 flags;			/* of the accept */
	bool discover;			/* the client lists volumes, and maps none */
	bool mute;			/* do not answer heartbeats */
	unsigned int rounds;		/* rounds of I/O, default 1; further rounds ignore errors */
	unsigned int ms;		/* time limit of map_device */
	bool extra;			/* not part of "all" */
	bool again;			/* the client must reconnect; its I/O waits for that */
	void (*fence)(struct srv *s, u32 id);	/* with @again: handles FENCE */
	bool fenced;			/* with @again: the client must send FENCE */
	unsigned int io_ms;		/* with @again: least time that I/O waits */
	const char *log;		/* expected text in the log, about the session */
};

extern const struct srv_test server_cases[];
extern const struct srv_test again_cases[];
extern const struct srv_test pulled_cases[];
extern const struct srv_test listed_cases[];
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
u32 s_desc_each(struct info_rsp *rsp, u32 size);
void s_up(struct scon *c);
bool s_poll(void);
void s_hang_up(void);
void s_disconnect(struct scon *c);
int random_server(const char *addr, const char *port, u64 seed,
		  unsigned int requests);
int run_server(const char *addr, const char *port, char **patterns, int nr);

#endif
