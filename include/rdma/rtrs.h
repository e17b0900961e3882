/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RTRS: RDMA transport. The interface for upper layers; all other headers are internal.
 *
 * A session connects a client and a server over one or more paths. The server allocates queue_depth
 * slots of memory for each session. A request consists of a user message and, optionally, data to
 * write or room for data to read. It occupies one slot of the session until the server answers with
 * an errno and, for reads, the data.
 */
#ifndef RTRS_H
#define RTRS_H

#include <linux/dma-direction.h>
#include <linux/scatterlist.h>
#include <linux/socket.h>
#include <linux/types.h>

/* MODULE_VERSION() of all modules of RTRS and RNBD */
#define RTRS_DRV_VERSION	"1.0"

/* Maximum length of a session name, including the terminating NUL (wire format) */
#define RTRS_NAME_LEN		255
/* Maximum length of a label: a name, a dot and a scope, including the terminating NUL */
#define RTRS_LABEL_LEN		256
/* Maximum number of paths of a session */
#define RTRS_MAX_PATHS		128
/* Maximum length of "ip:SRC@ip:DST" or "gid:SRC@gid:DST", including the terminating NUL */
#define RTRS_PATH_STR_LEN	128
/* Maximum number of requests in flight of a session (wire format) */
#define RTRS_MAX_QUEUE_DEPTH	65535
/* Default port of an RTRS server */
#define RTRS_PORT		1234

/**
 * struct rtrs_addr - addresses of both ends of a path
 * @src: local address; ss_family is AF_UNSPEC if routing shall select it
 * @dst: the server's address and port
 *
 * Families are AF_INET, AF_INET6 and AF_IB (a GID). A link-local address includes its scope.
 */
struct rtrs_addr {
	struct sockaddr_storage src;
	struct sockaddr_storage dst;
};

/**
 * struct rtrs_prefix - range of addresses with a common prefix
 * @addr: an address of the range, of a family listed in struct rtrs_addr
 * @bits: length of the prefix in bits
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
 * @RTRS_LINK_UP: a path is connected again. Requests that wait are sent after rtrs_clt_resume()
 * @RTRS_LINK_DOWN: the last connected path is lost. Requests in flight wait for a path, or have
 *	been completed. No path accepts requests until this event has been reported
 */
enum rtrs_link_event {
	RTRS_LINK_UP,
	RTRS_LINK_DOWN,
};

/**
 * struct rtrs_clt_params - parameters of rtrs_clt_open()
 * @sessname: name of the session, unique in @net; see rtrs_name_valid()
 * @label: name of the session in the log, unique on this client; up to RTRS_LABEL_LEN bytes
 *	including the terminating NUL
 * @net: network namespace of the session's paths, and of its directory in sysfs. The session
 *	acquires a reference
 * @paths: addresses of the paths to connect
 * @nr_paths: number of @paths, 1 to RTRS_MAX_PATHS
 * @nr_queues: number of connections for I/O in each path; more than one for each CPU is of no use
 * @nr_poll_queues: number of additional connections that are polled; see rtrs_clt_poll()
 * @queue_depth: maximum number of slots, up to RTRS_MAX_QUEUE_DEPTH; 0: as many as possible
 * @key: secret for mutual authentication, a key of type logon or user; NULL: none. The session
 *	acquires a reference, and reads the key's payload on each attempt to connect a path
 * @link_event: reports events after rtrs_clt_open() has returned. Called in process context; may
 *	sleep, but must neither wait for requests nor call rtrs_clt_close()
 * @srv_event: reports that the server may have called rtrs_srv_send_event() for this session since
 *	the last report. Called any number of times, possibly before rtrs_clt_open() has returned,
 *	and until rtrs_clt_close() returns. Any context
 * @retry_ok: decides about a request that was parked, or was submitted before. Returns 0 if it may
 *	be sent, -EAGAIN to keep it waiting until the next rtrs_clt_resume(), or the errno with
 *	which to complete it. Must have no side effects: it is called before each retry, and any
 *	number of times while there is no path. RCU read side, possibly under a spinlock with
 *	interrupts off
 * @prep_retry: called after @retry_ok has returned 0, right before the request is sent. Sets the
 *	request's message, whose contents may have changed. Returns 0, or the errno with which to
 *	complete the request. Process context, in the RCU read-side critical section of @retry_ok
 * @priv: argument of @link_event and @srv_event
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
 * @queue_depth: number of slots; they are numbered from 0
 * @max_io_size: maximum bytes of data in a request
 * @max_segments: maximum number of entries of a request's scatter list. Only the first entry may
 *	begin, and only the last one may end, off a 4096-byte boundary
 * @nr_queues: number of connections for I/O in each path that aren't polled
 * @nr_poll_queues: number of polled connections for I/O in each path
 * @numa_node: node of the first path's RDMA device; best for the memory of requests
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
 * @path: path on which the request was last sent, NULL while the request waits
 * @path_failures: number of paths that died while the request was on them
 * @first_failure: when the first of these paths died, in jiffies, 64 bits
 * @entry: in a list of requests that wait
 * @err: errno with which to complete the request if it may not wait any longer
 */
struct rtrs_clt_io_priv {
	struct rtrs_clt_path *path;
	unsigned int path_failures;
	u64 first_failure;
	struct list_head entry;
	int err;
};

/**
 * struct rtrs_clt_io - a request
 * @slot: slot of the request. The caller assigns slots, and must not reuse one before @done has
 *	been called
 * @queue: index of the path's connection for I/O to use. The first nr_queues connections aren't
 *	polled, the following nr_poll_queues are
 * @dir: DMA_TO_DEVICE for data to the server, DMA_FROM_DEVICE for data from the server;
 *	DMA_TO_DEVICE without data. The server may execute a request with DMA_FROM_DEVICE even after
 *	it has failed on the client, so executing it late must be harmless
 * @msg: user message; owned by the transport until @done is called, as it may have to be sent
 *	again. For rtrs_clt_park() it need not be valid before rtrs_clt_params.prep_retry is called
 * @msg_len: length of @msg, up to RTRS_MAX_MSG_LEN
 * @failfast: if there is no path, the request fails instead of waiting
 * @nents: number of entries in @sgl, 0 without data
 * @data_len: bytes that @sgl describes
 * @sgl: the data, not mapped for DMA; owned by the transport until @done is called
 * @done: called once for each request that rtrs_clt_submit() or rtrs_clt_park() accepted, with 0,
 *	the server's negative errno, the errno from rtrs_clt_params.retry_ok, -EHOSTUNREACH if the
 *	request has waited too long for a path or too many paths have died while it was on them, or
 *	-ECONNABORTED if @failfast is set or the session is closed. At this point, the device can't
 *	access the data any more. Softirq or process context; also called by rtrs_clt_poll() and,
 *	for other requests on the same polled queue, by rtrs_clt_submit()
 * @priv: the transport's part
 *
 * Must stay allocated until @done is called; usually it is the driver's part of a struct request.
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

/* Maximum length of a user message, in bytes */
#define RTRS_MAX_MSG_LEN	320

/* Number of settings that rtrs_clt_set() can change */
#define RTRS_CLT_NR_SETTINGS	9

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
 * struct rtrs_srv_op - a received request
 * @priv: return value of &rtrs_srv_ops.sess_up for the session
 * @dir: DMA_FROM_DEVICE if the client reads, else DMA_TO_DEVICE: the same value as in the client's
 *	struct rtrs_clt_io
 * @data_len: bytes of data received, or maximum bytes of data to answer with
 * @nents: number of entries of @sgl, 0 without data
 * @msg_len: length of @msg
 * @sgl: the data of a write, or room for the data of a read, which the upper layer must fill
 *	completely unless the request fails. Physically contiguous pieces in the kernel's linear
 *	map; all but the last one consist of whole pages. Without always_invalidate, the client may
 *	be able to change the data at any time
 * @msg: copy of the user message, which the client can't change
 *
 * Owned by the upper layer from ->request() until rtrs_srv_complete().
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
 * struct rtrs_srv_peer - the client at the other end of a path
 * @addr: the client's address
 * @key: secret that the client has proved to know, from &rtrs_srv_ops.key; NULL: none
 * @path: the path, for rtrs_srv_track_path()
 * @closing: the path accepts no new requests, and finishes the received ones
 * @first: the client had no path that accepted requests when it requested this one; always false
 *	for clients without fencing, which can't report this
 * @memory: bytes of server memory used for the path, except for the data of large requests
 *
 * Valid, including everything that it points to, as long as the path exists.
 */
struct rtrs_srv_peer {
	const struct sockaddr_storage *addr;
	struct key *key;
	struct rtrs_srv_path *path;
	bool closing;
	bool first;
	u64 memory;
};

/**
 * struct rtrs_srv_ops - callbacks of an upper layer on the server
 * @op_size: bytes of the upper layer's part of each op, see rtrs_srv_op_priv(); zeroed when the
 *	path is connected, but not between requests
 * @request: handles a request. Process context, possibly with a plug; may sleep, but must not wait
 *	for another request of any session. Must call rtrs_srv_complete() exactly once, before or
 *	after it returns
 * @sess_up: called with &rtrs_srv_params.owner while the first path of a session is being set up,
 *	after @admit. The return value becomes the priv of the session's ops; an ERR_PTR() refuses
 *	the path. May sleep
 * @key: returns one of the secrets with which a client of this session name and address can
 *	authenticate: the one with the index @nr, counted from 0, with a reference, or NULL if there
 *	are no more. Called with &rtrs_srv_params.owner. May sleep
 * @admit: called with &rtrs_srv_params.owner after the client has authenticated, if it offered to,
 *	and before its session gets its name; a negative errno refuses the path. May sleep
 * @path_up: called before a path of a session accepts its first request, after @sess_up. Calls
 *	rtrs_srv_track_path() if it accepts the path. A negative errno refuses the path, and is sent
 *	to clients with RTRS_FEATURE_REASON. May sleep
 * @sess_down: called when the session's last path is gone and all ops are completed; never
 *	concurrently with @request for the same session. May sleep, but must not wait for I/O. The
 *	upper layer calls rtrs_srv_sess_down_done(), before or after this function returns, once it
 *	has finished with the session
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
 * @ops: callbacks of the upper layer; may be called as soon as rtrs_srv_open() begins
 * @owner: argument of the callbacks that are called before a session is up
 * @net: network namespace in which to listen. GIDs belong to no namespace, so the server listens
 *	for them in the initial one only
 * @port: port to listen on, not 0
 * @scope: distinguishes the server's sessions from others of the same name, in sysfs and in the
 *	log; NULL: plain names are used there. Must stay valid as long as the server exists
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
void rtrs_srv_track_path(const struct rtrs_srv_peer *peer);
void rtrs_srv_each_path(struct rtrs_srv_sess *sess,
			bool (*unwanted)(const struct rtrs_srv_peer *peer, void *arg), void *arg);
struct rtrs_srv_peer rtrs_srv_op_peer(struct rtrs_srv_op *op);
bool rtrs_srv_peer_closing(const struct rtrs_srv_peer *peer);
void *rtrs_srv_op_priv(struct rtrs_srv_op *op);
struct rtrs_srv_op *rtrs_srv_op_from_priv(void *op_priv);
const char *rtrs_srv_sess_name(const struct rtrs_srv_sess *sess);
const char *rtrs_srv_sess_label(const struct rtrs_srv_sess *sess);

#endif /* RTRS_H */
