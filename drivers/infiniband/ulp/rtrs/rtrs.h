/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RTRS: RDMA transport. The interface for upper layers; all other headers are internal.
 *
 * A session connects a client and a server over one or more paths. The server
 * sets queue_depth chunks of memory aside for each. A request is a user message
 * and, with it, data to be written or room for data to be read; it occupies one
 * slot, and the slot's number is the chunk's. The answer is an errno and, for
 * reads, the data.
 */
#ifndef RTRS_H
#define RTRS_H

#include <linux/dma-direction.h>
#include <linux/scatterlist.h>
#include <linux/socket.h>
#include <linux/types.h>

/* MODULE_VERSION() of all modules of RTRS and RNBD. */
#define RTRS_DRV_VERSION	"1.0"

/* Longest session name, the terminating NUL included (wire format). */
#define RTRS_NAME_LEN		255
/* Longest label: a name, a point and a scope, the terminating NUL included. */
#define RTRS_LABEL_LEN		256
/* Most paths a session may have. */
#define RTRS_MAX_PATHS		128
/* Longest "ip:SRC@ip:DST" or "gid:SRC@gid:DST", the NUL included. */
#define RTRS_PATH_STR_LEN	128
/* Most requests in flight of a session (wire format). */
#define RTRS_MAX_QUEUE_DEPTH	65535
/* Port that an RTRS server listens on unless told otherwise. */
#define RTRS_PORT		1234

/**
 * struct rtrs_addr - the two ends of a path
 * @src: local address; ss_family is AF_UNSPEC when routing is to choose it
 * @dst: the server's address and port
 *
 * Families are AF_INET, AF_INET6 and AF_IB (a GID). The scope of a link-local address is a part
 * of it.
 */
struct rtrs_addr {
	struct sockaddr_storage src;
	struct sockaddr_storage dst;
};

/**
 * struct rtrs_prefix - addresses that begin alike
 * @addr: one of them, of the families of struct rtrs_addr
 * @bits: how many of its first bits all of them have
 */
struct rtrs_prefix {
	struct sockaddr_storage addr;
	unsigned int bits;
};

struct key;
struct net;

int rtrs_addr_parse(struct net *net, const char *str, u16 port, struct rtrs_addr *addr);
int rtrs_addr_format(const struct rtrs_addr *addr, char *buf, size_t len);
u16 rtrs_addr_port(const struct rtrs_addr *addr);
bool rtrs_addr_same_host(const struct sockaddr_storage *a,
			 const struct sockaddr_storage *b);
int rtrs_prefix_parse(struct net *net, const char *str, struct rtrs_prefix *prefix);
int rtrs_prefix_format(const struct rtrs_prefix *prefix, char *buf, size_t len);
bool rtrs_prefix_has(const struct rtrs_prefix *prefix, const struct sockaddr_storage *ss);
bool rtrs_name_valid(const char *name);
struct key *rtrs_get_key(const char *name);
struct key *rtrs_copy_key(struct key *key);
bool rtrs_same_key(const struct key *a, const struct key *b);

/* Client */

struct rtrs_clt;
struct rtrs_clt_io;

/**
 * enum rtrs_link_event - change of a session as a whole
 * @RTRS_LINK_UP: it has a connected path again. Requests that wait go on after
 *	rtrs_clt_resume()
 * @RTRS_LINK_DOWN: its last connected path is gone. Requests in flight wait for a
 *	path, or have been completed. No path takes requests again before this event has
 *	been reported
 */
enum rtrs_link_event {
	RTRS_LINK_UP,
	RTRS_LINK_DOWN,
};

/**
 * struct rtrs_clt_params - parameters of rtrs_clt_open()
 * @sessname: name of the session, unique in @net; see rtrs_name_valid()
 * @label: what the log calls it, unique on this client and at most RTRS_LABEL_LEN with the NUL
 * @net: network namespace of its paths, and of its directory in sysfs. The session takes a
 *	reference
 * @paths: addresses of the paths to connect
 * @nr_paths: number of @paths, 1 to RTRS_MAX_PATHS
 * @nr_queues: connections for I/O in each path, at most one for each CPU makes sense
 * @nr_poll_queues: as many more, polled; see rtrs_clt_poll()
 * @queue_depth: most slots, up to RTRS_MAX_QUEUE_DEPTH; 0: as many as there can be
 * @key: secret that both ends are to prove that they know, of type logon or user; NULL: none.
 *	The session takes a reference, and looks at the key for each connect of a path
 * @link_event: told of changes after rtrs_clt_open() has returned; process
 *	context, may sleep, but not wait for requests, and must not call
 *	rtrs_clt_close()
 * @srv_event: rtrs_srv_send_event() was called at the other end for this session since
 *	the last call, or may have been. May come any number of times, also before
 *	rtrs_clt_open() has returned, and until rtrs_clt_close() does. Any context
 * @retry_ok: may a request be sent that was submitted before, or parked? Returns 0 if
 *	so, -EAGAIN to let it wait for the next rtrs_clt_resume(), or the errno that
 *	completes it. Changes nothing. Called before each retry, and any number of
 *	times while there is no path. RCU read side, perhaps under a spinlock with
 *	interrupts off
 * @prep_retry: called after @retry_ok has returned 0, right before the request is sent:
 *	sets its message, whose contents may have changed. Returns 0, or the errno that
 *	completes the request. Process context, the same RCU read side as @retry_ok
 * @priv: handed to @link_event and @srv_event
 */
struct rtrs_clt_params {
	const char *sessname;
	const char *label;
	struct net *net;
	const struct rtrs_addr *paths;
	unsigned int nr_paths;
	unsigned int nr_queues;
	unsigned int nr_poll_queues;
	unsigned int queue_depth;
	struct key *key;
	void (*link_event)(void *priv, enum rtrs_link_event ev);
	void (*srv_event)(void *priv);
	int (*retry_ok)(struct rtrs_clt_io *io);
	int (*prep_retry)(struct rtrs_clt_io *io);
	void *priv;
};

/**
 * struct rtrs_clt_limits - limits of a session's requests
 * @queue_depth: slots are 0 .. queue_depth - 1
 * @max_io_size: most bytes of data in a request
 * @max_segments: most entries of a request's scatter list; none but the first
 *	may begin, and none but the last may end, off a 4096-byte boundary
 * @nr_queues: connections for I/O in each path that aren't polled
 * @nr_poll_queues: connections for I/O in each path that are
 * @numa_node: node of the first path's RDMA device, where requests are best kept
 */
struct rtrs_clt_limits {
	u32 queue_depth;
	u32 max_io_size;
	u32 max_segments;
	u32 nr_queues;
	u32 nr_poll_queues;
	int numa_node;
};

/**
 * struct rtrs_clt_io_priv - the transport's part of a request
 * @path: path on which it was sent last, NULL while it waits
 * @path_failures: number of paths that died while it was on them
 * @first_failure: when the first of them died, in jiffies
 * @entry: in a list of requests that wait
 * @err: errno with which it ends, once it may not wait any longer
 */
struct rtrs_clt_io_priv {
	struct rtrs_clt_path *path;
	unsigned int path_failures;
	unsigned long first_failure;
	struct list_head entry;
	int err;
};

/**
 * struct rtrs_clt_io - a request
 * @slot: slot that it occupies. The caller assigns slots, and must not use one again
 *	before @done has been called
 * @queue: index of the path's connection for I/O to use. From nr_queues on, there are
 *	nr_poll_queues polled ones
 * @dir: DMA_TO_DEVICE carries data to the server, DMA_FROM_DEVICE brings data
 *	back; without data it is DMA_TO_DEVICE
 * @msg: user message; belongs to the transport until @done, as it may have to be
 *	sent again. For rtrs_clt_park() it need not be there before
 *	rtrs_clt_params.prep_retry
 * @msg_len: its length, at most RTRS_MAX_MSG_LEN
 * @failfast: it fails when there is no path, instead of waiting
 * @nents: entries in @sgl, 0 without data
 * @data_len: bytes that @sgl describes
 * @sgl: the data, unmapped; belongs to the transport until @done
 * @done: called once for each request that rtrs_clt_submit() or rtrs_clt_park()
 *	accepted, with 0, the server's negative errno, that of rtrs_clt_params.retry_ok,
 *	-EHOSTUNREACH if it has waited for a path for too long, or too many have died under
 *	it, or -ECONNABORTED if @failfast is set, or the session is closed. Softirq or
 *	process context, from within rtrs_clt_poll() and, for other requests on the same
 *	polled queue, rtrs_clt_submit(). The device can't access the data any more
 * @priv: the transport's part
 *
 * Lives as long as the request, usually in the driver's part of a struct request.
 */
struct rtrs_clt_io {
	u16 slot;
	u16 queue;
	u16 msg_len;
	bool failfast;
	enum dma_data_direction dir;
	u32 nents;
	u32 data_len;
	const void *msg;
	struct scatterlist *sgl;
	void (*done)(struct rtrs_clt_io *io, int err);
	struct rtrs_clt_io_priv priv;
};

/* Longest user message, in bytes. */
#define RTRS_MAX_MSG_LEN	320

/* Settings of a session that rtrs_clt_set() knows. */
#define RTRS_CLT_NR_SETTINGS	8

struct rtrs_clt *rtrs_clt_open(const struct rtrs_clt_params *params);
void rtrs_clt_close(struct rtrs_clt *clt);
bool rtrs_clt_may_wait(const struct rtrs_clt *clt, unsigned long since);
bool rtrs_clt_has_path(struct rtrs_clt *clt, const struct rtrs_addr *addr);
int rtrs_clt_check_setting(const char *name, const char *str);
int rtrs_clt_set(struct rtrs_clt *clt, const char *name, const char *str);
void rtrs_clt_limits(const struct rtrs_clt *clt, struct rtrs_clt_limits *limits);
int rtrs_clt_submit(struct rtrs_clt *clt, struct rtrs_clt_io *io, bool last);
int rtrs_clt_park(struct rtrs_clt *clt, struct rtrs_clt_io *io);
void rtrs_clt_resume(struct rtrs_clt *clt);
void rtrs_clt_commit(struct rtrs_clt *clt, unsigned int queue);
int rtrs_clt_poll(struct rtrs_clt *clt, unsigned int queue);
void rtrs_clt_give_up(struct rtrs_clt *clt, struct rtrs_clt_io *io);

/* Server */

struct rtrs_srv;
struct rtrs_srv_path;
struct rtrs_srv_sess;

/**
 * struct rtrs_srv_op - a request that arrived
 * @priv: return value of &rtrs_srv_ops.sess_up for the session
 * @dir: DMA_FROM_DEVICE if the client reads, DMA_TO_DEVICE otherwise (the names
 *	are the client's: same value as in its struct rtrs_clt_io)
 * @data_len: bytes of data that came with it, or most bytes to answer with
 * @nents: entries of @sgl, 0 without data
 * @msg_len: length of @msg
 * @sgl: the data of a write, or room for those of a read, which the upper layer fills in
 *	wholly unless the request fails: physically contiguous pieces in the kernel's linear
 *	map, all but the last one of whole pages. Without always_invalidate, the client may be
 *	able to change them at any time
 * @msg: the user message, a copy that the client can't reach
 *
 * Belongs to the upper layer from ->request() until rtrs_srv_complete().
 */
struct rtrs_srv_op {
	void *priv;
	enum dma_data_direction dir;
	u32 data_len;
	u32 nents;
	u16 msg_len;
	struct scatterlist *sgl;
	u8 msg[RTRS_MAX_MSG_LEN] __aligned(8);
};

/**
 * struct rtrs_srv_peer - who is at the other end of a path
 * @addr: its address
 * @key: secret that it has proved to know, as from &rtrs_srv_ops.key; NULL: none
 * @path: the path, for rtrs_srv_know_path()
 * @admitted: &rtrs_srv_ops.admit has admitted it on that path
 * @closing: it takes no requests any more, and finishes those that it has
 * @nr_cons: connections of the path
 * @nr_slots: most requests that it can have at a time
 * @memory: bytes of the server's memory that it takes, but for the data of large requests
 *
 * What they point to lives as long as the path.
 */
struct rtrs_srv_peer {
	const struct sockaddr_storage *addr;
	const struct key *key;
	struct rtrs_srv_path *path;
	bool admitted;
	bool closing;
	u32 nr_cons;
	u32 nr_slots;
	u64 memory;
};

/**
 * struct rtrs_srv_ops - an upper layer on the server
 * @op_size: bytes of the upper layer's part of each op, see rtrs_srv_op_priv();
 *	zeroed when the path is connected, not between requests
 * @request: handles a request. Process context, maybe with a plug; may sleep, but must not wait
 *	for another request of this or any session. Ends in exactly one rtrs_srv_complete(), from
 *	here or later
 * @sess_up: called when a session has its first path, with &rtrs_srv_params.owner, as those that
 *	follow. The return value becomes the priv
 *	of the session's ops; an ERR_PTR() refuses the session. May sleep
 * @key: gets one of the secrets by which a client can prove that it is who its session's name and
 *	its address say: that with the index @nr from 0 on, with a reference, or NULL if there are
 *	no more. May sleep
 * @admit: called when a client has proved what it can, before its session has that name; a
 *	negative errno refuses the path. May sleep
 * @path_up: called before a path of a session takes its first request, after @sess_up; calls
 *	rtrs_srv_know_path() before it decides, and undoes that if it refuses the path. A negative
 *	errno refuses the path, and is told to clients that know RTRS_FEATURE_REASON. May sleep
 * @sess_down: called when the session's last path is gone and all ops are completed; never
 *	at the same time as @request for the same session. May sleep, but not wait for
 *	I/O. When the upper layer has finished with the session, from here or later, it
 *	calls rtrs_srv_sess_down_done()
 */
struct rtrs_srv_ops {
	size_t op_size;
	void (*request)(struct rtrs_srv_op *op);
	void *(*sess_up)(void *owner, struct rtrs_srv_sess *sess);
	struct key *(*key)(void *owner, const char *sessname,
			   const struct sockaddr_storage *addr, unsigned int nr);
	int (*admit)(void *owner, const char *sessname, const struct rtrs_srv_peer *peer);
	int (*path_up)(void *priv, const struct rtrs_srv_peer *peer);
	void (*sess_down)(struct rtrs_srv_sess *sess, void *priv);
};

/**
 * struct rtrs_srv_params - parameters of rtrs_srv_open()
 * @ops: functions of the upper layer; they may be called from when that begins
 * @owner: handed to those of @ops that are called before a session is up
 * @net: network namespace in which to listen. GIDs belong to none, and are listened for in the
 *	initial one alone
 * @port: port to listen on, not 0
 * @scope: tells its sessions from others of the same name, in sysfs and in the log; NULL: they
 *	have their plain names there. Must live as long as the server
 */
struct rtrs_srv_params {
	const struct rtrs_srv_ops *ops;
	void *owner;
	struct net *net;
	u16 port;
	const char *scope;
};

struct rtrs_srv *rtrs_srv_open(const struct rtrs_srv_params *params);
void rtrs_srv_close(struct rtrs_srv *srv);
void rtrs_srv_complete(struct rtrs_srv_op *op, int err);
void rtrs_srv_sess_down_done(struct rtrs_srv_sess *sess);
void rtrs_srv_send_event(struct rtrs_srv_sess *sess);
void rtrs_srv_end_paths(struct rtrs_srv_sess *sess,
			bool (*ok)(const struct rtrs_srv_peer *peer, void *arg), void *arg);
bool rtrs_srv_any_path(struct rtrs_srv_sess *sess,
		       bool (*is)(const struct rtrs_srv_peer *peer, void *arg), void *arg);
bool rtrs_srv_restrict_paths(struct rtrs_srv_sess *sess,
			     bool (*ok)(const struct rtrs_srv_peer *peer, void *arg), void *arg);
void rtrs_srv_know_path(const struct rtrs_srv_peer *peer, bool known);
void rtrs_srv_each_path(struct rtrs_srv_sess *sess,
			void (*fn)(const struct rtrs_srv_peer *peer, void *arg), void *arg);
struct rtrs_srv_peer rtrs_srv_op_peer(struct rtrs_srv_op *op);
void *rtrs_srv_op_priv(struct rtrs_srv_op *op);
struct rtrs_srv_op *rtrs_srv_op_from_priv(void *op_priv);
const char *rtrs_srv_sess_name(const struct rtrs_srv_sess *sess);
const char *rtrs_srv_sess_label(const struct rtrs_srv_sess *sess);

#endif /* RTRS_H */
