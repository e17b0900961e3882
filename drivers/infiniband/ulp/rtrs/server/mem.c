// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Memory: the chunks of a path, into which the client writes its requests, their memory
 * regions and keys; and the limit of the memory that all clients take.
 *
 * Each path has chunks of its own. If a path dies with requests at the disk, the
 * client uses their slots again on another path while the disk still reads and writes
 * the chunks of the dead one, so it must not be able to reach those.
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

/* Bytes that all sessions and paths are charged with. */
static u64 rtrs_srv_mem_used;
static DEFINE_SPINLOCK(rtrs_srv_mem_lock); /* rtrs_srv_mem_used */
/* Bytes that requests have for the moment. Each CPU may be off by as much as the batch. */
static struct percpu_counter rtrs_srv_mem_bufs;
#define RTRS_SRV_MEM_BATCH	SZ_256K
/* A part of max_memory, and bytes: the greater one is for paths that are not admitted yet. */
#define RTRS_SRV_HANDSHAKES_PART	64
#define RTRS_SRV_HANDSHAKES_MIN		SZ_16M

/**
 * rtrs_srv_mem_total() - add up the memory that all clients take
 *
 * Return: bytes that they are charged with, and that requests have for the moment.
 */
VISIBLE_IF_KUNIT u64 rtrs_srv_mem_total(void)
{
	return READ_ONCE(rtrs_srv_mem_used) +
	       percpu_counter_sum_positive(&rtrs_srv_mem_bufs);
}

static int rtrs_srv_mem_show(char *buf, const struct kernel_param *kp)
{
	return sysfs_emit(buf, "%llu\n", rtrs_srv_mem_total());
}

/**
 * rtrs_srv_param_refuse() - the set method of parameters that can only be read
 * @val: new value
 * @kp: the parameter
 *
 * Return: -EPERM, also for a value that is given to modprobe, which fails then.
 */
int rtrs_srv_param_refuse(const char *val, const struct kernel_param *kp)
{
	return -EPERM;
}

static const struct kernel_param_ops rtrs_srv_mem_ops = {
	.set = rtrs_srv_param_refuse,
	.get = rtrs_srv_mem_show,
};

module_param_cb(memory_used, &rtrs_srv_mem_ops, NULL, 0444);
MODULE_PARM_DESC(memory_used, "Bytes that all clients take");

static u64 rtrs_srv_mem_max(void)
{
	unsigned int mib = READ_ONCE(rtrs_srv_max_memory);

	if (!mib)
		return (u64)totalram_pages() / 2 << PAGE_SHIFT;
	return (u64)mib << 20;
}

/**
 * rtrs_srv_mem_handshakes() - how much may paths take whose clients are not admitted yet?
 *
 * Return: bytes of all such paths together.
 */
u64 rtrs_srv_mem_handshakes(void)
{
	return max_t(u64, rtrs_srv_mem_max() / RTRS_SRV_HANDSHAKES_PART, RTRS_SRV_HANDSHAKES_MIN);
}

/**
 * rtrs_srv_mem_charge() - charge a client for memory, within max_memory
 * @account: bytes charged to its session or path; rtrs_srv_mem_uncharge() gives them back
 * @bytes: bytes to charge, about
 * @name: name of the session or path, for the log
 * @log: limit of messages about it
 *
 * Every peer can request paths and connections, and each takes memory that can't be
 * reclaimed; the limit keeps some for the machine. To be called before anything is
 * allocated for a peer that lives longer than its request.
 *
 * Context: process; the caller guards @account.
 * Return: 0 or -ENOMEM.
 */
int rtrs_srv_mem_charge(u64 *account, u64 bytes, const char *name,
			struct ratelimit_state *log)
{
	u64 max = rtrs_srv_mem_max();
	bool fits;

	spin_lock(&rtrs_srv_mem_lock);
	fits = rtrs_srv_mem_used + percpu_counter_read_positive(&rtrs_srv_mem_bufs) +
	       bytes <= max;
	if (fits)
		WRITE_ONCE(rtrs_srv_mem_used, rtrs_srv_mem_used + bytes);
	spin_unlock(&rtrs_srv_mem_lock);
	if (fits) {
		*account += bytes;
		return 0;
	}
	if (__ratelimit(log))
		pr_warn("%s: no %llu bytes more within the %llu MiB that clients may take: raise max_memory, or lower sess_queue_depth, slot_size or max_chunk_size\n",
			name, bytes, max >> 20);
	return -ENOMEM;
}

/**
 * rtrs_srv_path_charge() - charge a path for memory, within max_memory
 * @path: path to charge, with its session
 * @bytes: bytes to charge, about
 *
 * Context: process; the path is being created, or in its setup work.
 * Return: 0 or -ENOMEM.
 */
int rtrs_srv_path_charge(struct rtrs_srv_path *path, u64 bytes)
{
	return rtrs_srv_mem_charge(&path->mem.charged, bytes, path->path.name,
				   rtrs_srv_log(path));
}

/**
 * rtrs_srv_mem_uncharge() - undo all rtrs_srv_mem_charge() of an account
 * @account: account of a session or path that has freed its memory
 */
void rtrs_srv_mem_uncharge(u64 *account)
{
	spin_lock(&rtrs_srv_mem_lock);
	WRITE_ONCE(rtrs_srv_mem_used, rtrs_srv_mem_used - *account);
	spin_unlock(&rtrs_srv_mem_lock);
	*account = 0;
}

/**
 * rtrs_srv_mem_use() - count memory that requests have for the moment
 * @bytes: how much more it is; negative if it is less
 *
 * Context: any.
 */
void rtrs_srv_mem_use(int bytes)
{
	percpu_counter_add_batch(&rtrs_srv_mem_bufs, bytes, RTRS_SRV_MEM_BATCH);
}

static u64 rtrs_srv_mem_in_use(void)
{
	return READ_ONCE(rtrs_srv_mem_used) +
	       percpu_counter_read_positive(&rtrs_srv_mem_bufs);
}

/**
 * rtrs_srv_mem_plenty() - is less than half of the memory for clients in use?
 *
 * Context: any.
 * Return: true if so.
 */
bool rtrs_srv_mem_plenty(void)
{
	return rtrs_srv_mem_in_use() < rtrs_srv_mem_max() / 2;
}

/**
 * rtrs_srv_mem_take() - take memory for the data of a request, if there is some to spare
 * @sess: session of the request
 * @bytes: how much
 * @in_turn: no other session waits, or this one has least of those that do
 *
 * Half of what isn't charged is set aside in fair shares, one for each session, of whichever
 * listener. The other half is for all. So a session with less than its share never waits for
 * another one.
 *
 * Context: any.
 * Return: true if it was taken: the caller gives it back by rtrs_srv_mem_use().
 */
bool rtrs_srv_mem_take(struct rtrs_srv_sess *sess, u32 bytes, bool in_turn)
{
	u64 max = rtrs_srv_mem_max(), charged = READ_ONCE(rtrs_srv_mem_used);
	u64 used = percpu_counter_read_positive(&rtrs_srv_mem_bufs) + bytes;
	u32 nr_sess = max(atomic_read(&rtrs_srv_nr_sess), 1);
	u64 pool = max > charged ? max - charged : 0;
	u64 share = div_u64(pool, 2 * nr_sess);

	if (used > pool)
		return false;
	if (atomic64_read(&sess->bufs.used) + bytes > share && (used > pool / 2 || !in_turn))
		return false;
	rtrs_srv_mem_use(bytes);
	return true;
}

/**
 * rtrs_srv_mem_init() - determine the layout of a path's memory
 * @path: new path, whose features are known
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
	}
}

static size_t rtrs_srv_io_size(const struct rtrs_srv_ops *ops)
{
	return RTRS_SRV_IO_HEAD + ALIGN(ops->op_size, L1_CACHE_BYTES);
}

/* A key that changes with each request is the chunk's own. */
static bool rtrs_srv_changes_keys(const struct rtrs_srv_path *path)
{
	return path->sess->always_invalidate && !rtrs_srv_has_slots(path);
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
		io->op.priv = sess->priv;
		io->chunk = rtrs_region_addr(&path->mem.chunks, i);
		io->dma = rtrs_region_dma(&path->mem.chunks, i);
		if (rtrs_srv_changes_keys(path))
			io->mr = rtrs_region_mr(&path->mem.chunks, i);
	}
	return 0;
}

static void rtrs_srv_fill_msg(union rtrs_srv_msg *msg, bool slots, u32 slot)
{
	if (slots) {
		msg->answer.type = cpu_to_le16(RTRS_MSG_ANSWER);
		msg->answer.slot = cpu_to_le16(slot);
	} else {
		msg->rkey.type = cpu_to_le16(RTRS_MSG_RKEY_RSP);
		msg->rkey.slot = cpu_to_le16(slot);
	}
}

static int rtrs_srv_alloc_msgs(struct rtrs_srv_path *path)
{
	u32 depth = path->sess->queue_depth;
	u64 dma;
	u32 i;

	path->mem.msgs = kcalloc(depth, sizeof(*path->mem.msgs), GFP_KERNEL);
	if (!path->mem.msgs)
		return -ENOMEM;
	for (i = 0; i < depth; i++)
		rtrs_srv_fill_msg(&path->mem.msgs[i], rtrs_srv_has_slots(path), i);
	dma = ib_dma_map_single(path->path.dev, path->mem.msgs,
				depth * sizeof(*path->mem.msgs), DMA_TO_DEVICE);
	if (ib_dma_mapping_error(path->path.dev, dma))
		return -ENOMEM;
	path->mem.msgs_dma = dma;
	return 0;
}

static void rtrs_srv_free_msgs(struct rtrs_srv_path *path)
{
	if (path->mem.msgs_dma)
		ib_dma_unmap_single(path->path.dev, path->mem.msgs_dma,
				    path->sess->queue_depth *
				    sizeof(*path->mem.msgs), DMA_TO_DEVICE);
	path->mem.msgs_dma = 0;
	kfree(path->mem.msgs);
	path->mem.msgs = NULL;
}

static u32 rtrs_srv_chunk_size_of(const struct rtrs_srv_path *path)
{
	return path->mem.room + path->mem.hdr_room;
}

/**
 * rtrs_srv_chunks_per_mr() - compute the number of chunks in a memory region
 * @path: path that has its device
 *
 * Return: with RTRS_FEATURE_SLOTS the most that the device can register; otherwise 1 with
 * always_invalidate, or else the largest number that divides the queue depth, too. 0 if the
 * device can register too little.
 */
u32 rtrs_srv_chunks_per_mr(const struct rtrs_srv_path *path)
{
	u32 max = rtrs_region_max_per_mr(&path->path, rtrs_srv_chunk_size_of(path));
	u32 depth = path->sess->queue_depth;
	u32 n;

	if (rtrs_srv_has_slots(path))
		return max;
	if (rtrs_srv_changes_keys(path))
		max = min_t(u32, max, 1);
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
 * Return: bytes of chunks, requests, memory regions, and messages with their keys.
 */
VISIBLE_IF_KUNIT u64 rtrs_srv_mem_bytes(const struct rtrs_srv_path *path,
					u32 per_mr, size_t io_size)
{
	u32 depth = path->sess->queue_depth;
	u64 slot = io_size;

	if (rtrs_srv_has_slots(path) || path->sess->always_invalidate)
		slot += sizeof(union rtrs_srv_msg);
	return rtrs_region_bytes(depth, rtrs_srv_chunk_size_of(path), per_mr) +
	       depth * slot + sizeof(struct rtrs_info_rsp) +
	       DIV_ROUND_UP(depth, per_mr) * sizeof(struct rtrs_desc);
}

/**
 * rtrs_srv_mem_cost() - compute the memory that a path takes
 * @path: path that has its connections
 *
 * Context: the path's setup work, before rtrs_srv_mem_setup().
 * Return: bytes that it is charged with, and will be.
 */
u64 rtrs_srv_mem_cost(struct rtrs_srv_path *path)
{
	u32 per_mr = rtrs_srv_chunks_per_mr(path);

	if (!per_mr)
		return path->mem.charged;
	return path->mem.charged +
	       rtrs_srv_mem_bytes(path, per_mr, rtrs_srv_io_size(path->sess->srv->ops));
}

static int rtrs_srv_charge_ios(struct rtrs_srv_path *path, u32 per_mr)
{
	if (!per_mr) {
		rtrs_srv_warn(path, "device %s can't register chunks of %u bytes: lower slot_size or max_chunk_size\n",
			      dev_name(&path->path.dev->dev),
			      rtrs_srv_chunk_size_of(path));
		return -EOPNOTSUPP;
	}
	return rtrs_srv_path_charge(path,
				    rtrs_srv_mem_bytes(path, per_mr,
						       rtrs_srv_io_size(path->sess->srv->ops)));
}

static int rtrs_srv_chunks_alloc(struct rtrs_srv_path *path, u32 per_mr)
{
	u32 depth = path->sess->queue_depth;
	u32 size = rtrs_srv_chunk_size_of(path);
	int ret;

	ret = rtrs_region_alloc(&path->mem.chunks, &path->path, depth, size, per_mr);
	if (ret == -ENOMEM)
		rtrs_srv_warn(path, "no memory for %u chunks of %u bytes: lower sess_queue_depth, slot_size or max_chunk_size\n",
			      depth, size);
	return ret;
}

/**
 * rtrs_srv_mem_setup() - allocate a path's chunks, requests and memory regions
 * @path: path whose session is up
 *
 * The caller has to register the memory regions.
 *
 * Context: the path's setup work.
 * Return: 0 or a negative errno; rtrs_srv_mem_free() and, for the account,
 * rtrs_srv_mem_uncharge() clean up either way.
 */
int rtrs_srv_mem_setup(struct rtrs_srv_path *path)
{
	u32 per_mr = rtrs_srv_chunks_per_mr(path);
	int ret;

	ret = rtrs_srv_charge_ios(path, per_mr);
	if (ret)
		return ret;
	ret = rtrs_srv_chunks_alloc(path, per_mr);
	if (ret)
		return ret;
	ret = rtrs_srv_ios_alloc(path);
	if (ret)
		return ret;
	if (rtrs_srv_has_slots(path) || path->sess->always_invalidate)
		return rtrs_srv_alloc_msgs(path);
	return 0;
}

/**
 * rtrs_srv_mem_free() - undo rtrs_srv_mem_setup(), as far as it came
 * @path: path whose requests are finished and queue pairs destroyed
 */
void rtrs_srv_mem_free(struct rtrs_srv_path *path)
{
	rtrs_srv_free_msgs(path);
	vfree(path->ios.mem);
	path->ios.mem = NULL;
	rtrs_region_free(&path->mem.chunks);
}

/**
 * rtrs_srv_mem_module_init() - prepare counting of memory
 *
 * Return: 0 or -ENOMEM.
 */
int __init rtrs_srv_mem_module_init(void)
{
	return percpu_counter_init(&rtrs_srv_mem_bufs, 0, GFP_KERNEL);
}

/**
 * rtrs_srv_mem_exit() - check that all memory has been given back
 *
 * Context: the module's exit, when there are no sessions.
 */
void rtrs_srv_mem_exit(void)
{
	WARN_ON_ONCE(rtrs_srv_mem_used || percpu_counter_sum(&rtrs_srv_mem_bufs));
	percpu_counter_destroy(&rtrs_srv_mem_bufs);
}
