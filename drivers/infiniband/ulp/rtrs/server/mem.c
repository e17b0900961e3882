// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Memory: the chunks of a path, to which the client writes its requests, their memory regions and
 * keys; and the limit on the memory of all clients.
 *
 * Each path has its own chunks. If a path fails while the disk still processes its requests, the
 * client uses their slots again on another path. Meanwhile the disk still reads and writes the
 * chunks of the dead path, so the client must not be able to access those.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/mm.h>
#include <linux/module.h>
#include <linux/percpu_counter.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "srv.h"

static unsigned int rtrs_srv_max_memory;
module_param_named(max_memory, rtrs_srv_max_memory, uint, 0644);
MODULE_PARM_DESC(max_memory,
		 "MiB that all clients may take (default 0: half of the machine's)");

/* Bytes charged to all sessions and paths. */
static u64 rtrs_srv_mem_used;
static DEFINE_SPINLOCK(rtrs_srv_mem_lock); /* rtrs_srv_mem_used */
/* Bytes of the memory that requests use at present. Each CPU's count may be off by the batch. */
VISIBLE_IF_KUNIT struct percpu_counter rtrs_srv_mem_bufs;
#define RTRS_SRV_MEM_BATCH	SZ_256K
/*
 * Memory for paths that are not admitted yet: this fraction of max_memory, but at least that many
 * bytes.
 */
#define RTRS_SRV_HANDSHAKES_PART	64
#define RTRS_SRV_HANDSHAKES_MIN		SZ_16M

/**
 * rtrs_srv_mem_total() - compute the memory of all clients
 *
 * Return: bytes charged to them, and bytes that their requests use at present.
 */
u64 rtrs_srv_mem_total(void)
{
	return READ_ONCE(rtrs_srv_mem_used) +
	       percpu_counter_sum_positive(&rtrs_srv_mem_bufs);
}

static u64 rtrs_srv_mem_max(void)
{
	unsigned int mib = READ_ONCE(rtrs_srv_max_memory);

	if (!mib)
		return (u64)totalram_pages() / 2 << PAGE_SHIFT;
	return (u64)mib << 20;
}

/**
 * rtrs_srv_mem_handshakes() - get the memory limit of paths whose clients are not admitted yet
 *
 * Return: maximum bytes of all such paths together.
 */
u64 rtrs_srv_mem_handshakes(void)
{
	return max_t(u64, rtrs_srv_mem_max() / RTRS_SRV_HANDSHAKES_PART, RTRS_SRV_HANDSHAKES_MIN);
}

static u64 rtrs_srv_mem_in_use(void)
{
	return READ_ONCE(rtrs_srv_mem_used) +
	       percpu_counter_read_positive(&rtrs_srv_mem_bufs);
}

/**
 * rtrs_srv_mem_try_charge() - charge memory to a client, within max_memory
 * @account: bytes charged to the session or path; rtrs_srv_mem_uncharge() undoes the charge
 * @bytes: estimated bytes to charge
 * @why: set to the reason of a failure, for the log; RTRS_SRV_WHY_LEN bytes
 *
 * Any peer can request paths and connections, whose memory can't be reclaimed; the limit preserves
 * some for the rest of the system. All memory that is allocated for a peer beyond the duration of
 * its request has to be charged.
 *
 * Context: process; the caller guards @account.
 * Return: 0 or -ENOMEM.
 */
int rtrs_srv_mem_try_charge(u64 *account, u64 bytes, char *why)
{
	u64 max = rtrs_srv_mem_max();
	bool fits;

	spin_lock(&rtrs_srv_mem_lock);
	fits = rtrs_srv_mem_in_use() + bytes <= max;
	if (fits)
		WRITE_ONCE(rtrs_srv_mem_used, rtrs_srv_mem_used + bytes);
	spin_unlock(&rtrs_srv_mem_lock);
	if (fits) {
		*account += bytes;
		return 0;
	}
	snprintf(why, RTRS_SRV_WHY_LEN,
		 "%llu more bytes exceed the %llu MiB that clients may use: raise max_memory, or lower sess_queue_depth, slot_size or max_chunk_size",
		 bytes, max >> 20);
	return -ENOMEM;
}

/**
 * rtrs_srv_mem_charge() - charge memory to a client, and log a failure
 * @account: as for rtrs_srv_mem_try_charge()
 * @bytes: as for rtrs_srv_mem_try_charge()
 * @name: name of the session or path, for the log
 * @log: rate limit of messages about the session or path
 *
 * Context: process, not under rtrs_srv_lock; the caller guards @account.
 * Return: 0 or -ENOMEM.
 */
int rtrs_srv_mem_charge(u64 *account, u64 bytes, const char *name,
			struct ratelimit_state *log)
{
	char why[RTRS_SRV_WHY_LEN];
	int ret = rtrs_srv_mem_try_charge(account, bytes, why);

	lockdep_assert_not_held(&rtrs_srv_lock);
	if (ret && __ratelimit(log))
		pr_warn("%s: %s\n", name, why);
	return ret;
}

/**
 * rtrs_srv_mem_uncharge() - undo all charges of an account
 * @account: account of a session or path whose memory is freed, or is about to be
 */
void rtrs_srv_mem_uncharge(u64 *account)
{
	spin_lock(&rtrs_srv_mem_lock);
	WRITE_ONCE(rtrs_srv_mem_used, rtrs_srv_mem_used - *account);
	spin_unlock(&rtrs_srv_mem_lock);
	*account = 0;
}

/**
 * rtrs_srv_mem_account() - account memory that requests use temporarily
 * @bytes: change of the memory; negative if memory was freed
 *
 * Context: any.
 */
void rtrs_srv_mem_account(int bytes)
{
	percpu_counter_add_batch(&rtrs_srv_mem_bufs, bytes, RTRS_SRV_MEM_BATCH);
}

/**
 * rtrs_srv_mem_plenty() - check whether memory is plentiful
 *
 * Context: any.
 * Return: true if less than half of the memory for clients is in use.
 */
bool rtrs_srv_mem_plenty(void)
{
	return rtrs_srv_mem_in_use() < rtrs_srv_mem_max() / 2;
}

/**
 * rtrs_srv_mem_try_account() - account memory for the data of a request, if enough is available
 * @sess: session of the request
 * @bytes: bytes of memory
 * @served_next: no other session waits, or this one is served next, see buf.c
 *
 * Half of the memory that isn't charged is divided into equal shares, one for each session of any
 * listener. The other half is available to all sessions. So a session that uses less than its share
 * never waits for other sessions.
 *
 * Context: any.
 * Return: true if the memory is accounted; the caller undoes that by rtrs_srv_mem_account().
 */
bool rtrs_srv_mem_try_account(struct rtrs_srv_sess *sess, u32 bytes, bool served_next)
{
	u64 max = rtrs_srv_mem_max(), charged = READ_ONCE(rtrs_srv_mem_used);
	u64 used = percpu_counter_read_positive(&rtrs_srv_mem_bufs) + bytes;
	u32 nr_sess = max(atomic_read(&rtrs_srv_nr_sess), 1);
	u64 pool = max > charged ? max - charged : 0;
	u64 share = div_u64(pool, 2 * nr_sess);

	if (used > pool)
		return false;
	if (atomic64_read(&sess->bufs.used) + bytes > share && (used > pool / 2 || !served_next))
		return false;
	rtrs_srv_mem_account(bytes);
	return true;
}

/**
 * rtrs_srv_mem_init() - determine the layout of a path's memory
 * @path: new path with known features
 */
void rtrs_srv_mem_init(struct rtrs_srv_path *path)
{
	struct rtrs_srv_mem *mem = &path->mem;

	if (rtrs_srv_has_slots(path)) {
		mem->room = rtrs_srv_slot_size;
		mem->hdr_room = rtrs_slot_hdr_room(mem->room);
		mem->max_io = RTRS_SRV_MAX_IO;
		mem->max_page = mem->room;
	} else {
		mem->hdr_room = RTRS_HDR_ROOM;
		mem->room = path->sess->chunk_size - mem->hdr_room;
		mem->max_io = mem->room;
		mem->max_page = SZ_4K;
	}
}

static size_t rtrs_srv_io_size(const struct rtrs_srv_ops *ops)
{
	return RTRS_SRV_IO_HEAD + ALIGN(ops->op_size, L1_CACHE_BYTES);
}

static int rtrs_srv_ios_alloc(struct rtrs_srv_path *path)
{
	struct rtrs_srv_sess *sess = path->sess;
	struct rtrs_srv_io *io;
	u32 i;

	path->ios.size = rtrs_srv_io_size(sess->srv->ops);
	/* kmalloc() would round up to a power of two. */
	path->ios.mem = vzalloc_node(array_size(sess->queue_depth, path->ios.size),
				     ibdev_to_node(path->path.dev));
	if (!path->ios.mem)
		return -ENOMEM;
	for (i = 0; i < sess->queue_depth; i++) {
		io = rtrs_srv_path_io(path, i);
		io->slot = i;
		INIT_LIST_HEAD(&io->pending);
		io->op.priv = sess->priv;
		io->chunk = rtrs_region_addr(&path->mem.chunks, i);
		io->dma = rtrs_region_dma(&path->mem.chunks, i);
	}
	return 0;
}

static int rtrs_srv_alloc_msgs(struct rtrs_srv_path *path)
{
	u32 depth = path->sess->queue_depth;
	struct rtrs_msg_answer *msg;
	int ret;
	u32 i;

	ret = rtrs_region_alloc(&path->mem.msgs, &path->path, depth, sizeof(*msg), 0);
	if (ret)
		return ret;
	for (i = 0; i < depth; i++) {
		msg = rtrs_srv_msg(path, i);
		msg->type = cpu_to_le16(RTRS_MSG_ANSWER);
		msg->slot = cpu_to_le16(i);
	}
	return 0;
}

static u32 rtrs_srv_chunk_size_of(const struct rtrs_srv_path *path)
{
	return path->mem.room + path->mem.hdr_room;
}

/**
 * rtrs_srv_chunks_per_mr() - compute the number of chunks in a memory region
 * @path: path with an open device
 *
 * Return: with RTRS_FEATURE_SLOTS, the maximum that the device can register. Otherwise the largest
 * possible divisor of the queue depth. 0 if the device can't register a chunk.
 */
u32 rtrs_srv_chunks_per_mr(const struct rtrs_srv_path *path)
{
	u32 max = rtrs_region_max_per_mr(&path->path, rtrs_srv_chunk_size_of(path));
	u32 depth = path->sess->queue_depth;
	u32 n;

	if (rtrs_srv_has_slots(path))
		return max;
	for (n = min(max, depth); n > 1; n--)
		if (depth % n == 0)
			break;
	return n;
}

/**
 * rtrs_srv_mem_bytes() - compute the memory of a path's chunks and requests
 * @path: path with its session
 * @per_mr: number of chunks in a memory region
 * @io_size: bytes of a struct rtrs_srv_io with the upper layer's part
 *
 * Return: bytes of chunks, requests, memory regions and messages.
 */
VISIBLE_IF_KUNIT u64 rtrs_srv_mem_bytes(const struct rtrs_srv_path *path,
					u32 per_mr, size_t io_size)
{
	u32 depth = path->sess->queue_depth;
	u64 bytes = rtrs_region_bytes(depth, rtrs_srv_chunk_size_of(path), per_mr);

	if (rtrs_srv_has_slots(path))
		bytes += rtrs_region_bytes(depth, sizeof(struct rtrs_msg_answer), 0);
	return bytes + depth * (u64)io_size + sizeof(struct rtrs_info_rsp) +
	       DIV_ROUND_UP(depth, per_mr) * sizeof(struct rtrs_desc);
}

/**
 * rtrs_srv_mem_cost() - compute the memory of a path
 * @path: path whose connections are set up
 *
 * Context: the path's setup work, before rtrs_srv_mem_setup().
 * Return: bytes that are charged to the path already, plus the bytes that rtrs_srv_mem_setup()
 * will charge.
 */
u64 rtrs_srv_mem_cost(struct rtrs_srv_path *path)
{
	u32 per_mr = rtrs_srv_chunks_per_mr(path);

	if (!per_mr)
		return path->mem.charged;
	return path->mem.charged +
	       rtrs_srv_mem_bytes(path, per_mr, rtrs_srv_io_size(path->sess->srv->ops));
}

/**
 * rtrs_srv_mem_setup() - allocate a path's chunks, requests and memory regions
 * @path: path whose session is up and whose cost is known
 *
 * The memory regions are not registered yet.
 *
 * Context: the path's setup work.
 * Return: 0 or a negative errno. In either case, rtrs_srv_mem_free() and rtrs_srv_mem_uncharge()
 * clean up.
 */
int rtrs_srv_mem_setup(struct rtrs_srv_path *path)
{
	u32 per_mr = rtrs_srv_chunks_per_mr(path), depth = path->sess->queue_depth;
	u32 size = rtrs_srv_chunk_size_of(path);
	int ret;

	if (!per_mr) {
		rtrs_srv_warn(path, "device %s can't register chunks of %u bytes: lower slot_size or max_chunk_size\n",
			      dev_name(&path->path.dev->dev), size);
		return -EOPNOTSUPP;
	}
	ret = rtrs_srv_mem_charge(&path->mem.charged, path->cost - path->mem.charged,
				  path->path.name, path->path.log);
	if (ret)
		return ret;
	ret = rtrs_region_alloc(&path->mem.chunks, &path->path, depth, size, per_mr);
	if (ret == -ENOMEM)
		rtrs_srv_warn(path, "no memory for %u chunks of %u bytes: lower sess_queue_depth, slot_size or max_chunk_size\n",
			      depth, size);
	if (!ret)
		ret = rtrs_srv_ios_alloc(path);
	if (!ret && rtrs_srv_has_slots(path))
		ret = rtrs_srv_alloc_msgs(path);
	return ret;
}

/**
 * rtrs_srv_mem_free() - undo rtrs_srv_mem_setup(), even if it failed
 * @path: path whose requests are finished and whose queue pairs are destroyed
 */
void rtrs_srv_mem_free(struct rtrs_srv_path *path)
{
	rtrs_region_free(&path->mem.msgs);
	vfree(path->ios.mem);
	path->ios.mem = NULL;
	rtrs_region_free(&path->mem.chunks);
}

/**
 * rtrs_srv_mem_module_init() - initialize the accounting of memory
 *
 * Return: 0 or -ENOMEM.
 */
int __init rtrs_srv_mem_module_init(void)
{
	return percpu_counter_init(&rtrs_srv_mem_bufs, 0, GFP_KERNEL);
}

/**
 * rtrs_srv_mem_exit() - check that all memory is uncharged
 *
 * Context: module exit, when no sessions exist.
 */
void rtrs_srv_mem_exit(void)
{
	WARN_ON_ONCE(rtrs_srv_mem_used || percpu_counter_sum(&rtrs_srv_mem_bufs));
	percpu_counter_destroy(&rtrs_srv_mem_bufs);
}
