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
#include <linux/sizes.h>
#include <linux/slab.h>

#include "srv.h"

static unsigned int rtrs_srv_max_memory;
module_param_named(max_memory, rtrs_srv_max_memory, uint, 0644);
MODULE_PARM_DESC(max_memory,
		 "MiB that all clients may take (default 0: half of the machine's)");

/* Bytes that all sessions and paths are charged with. */
static u64 rtrs_srv_mem_used;
static DEFINE_SPINLOCK(rtrs_srv_mem_lock); /* rtrs_srv_mem_used */

static int rtrs_srv_mem_show(char *buf, const struct kernel_param *kp)
{
	return sysfs_emit(buf, "%llu\n", READ_ONCE(rtrs_srv_mem_used));
}

static int rtrs_srv_mem_set(const char *val, const struct kernel_param *kp)
{
	return -EPERM;
}

static const struct kernel_param_ops rtrs_srv_mem_ops = {
	.set = rtrs_srv_mem_set,
	.get = rtrs_srv_mem_show,
};

module_param_cb(memory_used, &rtrs_srv_mem_ops, NULL, 0444);
MODULE_PARM_DESC(memory_used, "Bytes that all clients take");

/* Estimated bytes of a memory region in the device and its driver, besides its page list. */
#define RTRS_SRV_MR_BYTES	512

static u64 rtrs_srv_mem_max(void)
{
	unsigned int mib = READ_ONCE(rtrs_srv_max_memory);

	if (!mib)
		return (u64)totalram_pages() / 2 << PAGE_SHIFT;
	return (u64)mib << 20;
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
	fits = bytes <= max && rtrs_srv_mem_used <= max - bytes;
	if (fits)
		WRITE_ONCE(rtrs_srv_mem_used, rtrs_srv_mem_used + bytes);
	spin_unlock(&rtrs_srv_mem_lock);
	if (fits) {
		*account += bytes;
		return 0;
	}
	if (__ratelimit(log))
		pr_warn("%s: no %llu bytes more within the %llu MiB that clients may take: raise max_memory, or lower sess_queue_depth or max_chunk_size\n",
			name, bytes, max >> 20);
	return -ENOMEM;
}

/**
 * rtrs_srv_path_charge() - charge a path for memory, within max_memory
 * @path: path to charge, with its session
 * @bytes: bytes to charge, about
 *
 * Context: process; under the lock of the path's connections, if there are any.
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

static size_t rtrs_srv_io_size(const struct rtrs_srv_ops *ops)
{
	return RTRS_SRV_IO_HEAD + ALIGN(ops->op_size, L1_CACHE_BYTES);
}

static int rtrs_srv_chunks_alloc(struct rtrs_srv_path *path)
{
	/* Compound pages, as the upper layer may hand parts of them on. */
	gfp_t gfp = GFP_KERNEL | __GFP_ZERO | __GFP_COMP | __GFP_NOWARN |
		    __GFP_RETRY_MAYFAIL;
	struct rtrs_srv_sess *sess = path->sess;
	int node = ibdev_to_node(path->path.dev);
	u32 i;

	path->mem.chunks = kvcalloc(sess->queue_depth, sizeof(*path->mem.chunks),
				    GFP_KERNEL);
	if (!path->mem.chunks)
		return -ENOMEM;
	for (i = 0; i < sess->queue_depth; i++) {
		path->mem.chunks[i] = alloc_pages_node(node, gfp,
						       get_order(sess->chunk_size));
		if (path->mem.chunks[i])
			continue;
		rtrs_srv_warn(path, "no memory for %u chunks of %u bytes: lower sess_queue_depth or max_chunk_size\n",
			      sess->queue_depth, sess->chunk_size);
		return -ENOMEM;
	}
	return 0;
}

static void rtrs_srv_chunks_free(struct rtrs_srv_path *path)
{
	struct rtrs_srv_sess *sess = path->sess;
	u32 i;

	if (!path->mem.chunks)
		return;
	for (i = 0; i < sess->queue_depth && path->mem.chunks[i]; i++)
		__free_pages(path->mem.chunks[i], get_order(sess->chunk_size));
	kvfree(path->mem.chunks);
	path->mem.chunks = NULL;
}

static int rtrs_srv_ios_alloc(struct rtrs_srv_path *path)
{
	struct rtrs_srv_sess *sess = path->sess;
	struct rtrs_srv_io *io;
	u32 i;

	path->ios.size = rtrs_srv_io_size(sess->srv->ops);
	path->ios.mem = kvcalloc(sess->queue_depth, path->ios.size, GFP_KERNEL);
	if (!path->ios.mem)
		return -ENOMEM;
	for (i = 0; i < sess->queue_depth; i++) {
		io = rtrs_srv_path_io(path, i);
		io->slot = i;
		io->op.priv = sess->priv;
		io->op.sgl = &io->sg;
		io->chunk = page_address(path->mem.chunks[i]);
		sg_init_one(&io->sg, io->chunk, sess->chunk_size);
	}
	return 0;
}

static int rtrs_srv_map_chunks(struct rtrs_srv_path *path)
{
	struct rtrs_srv_sess *sess = path->sess;
	struct ib_device *dev = path->path.dev;
	u64 dma;

	while (path->mem.nr_mapped < sess->queue_depth) {
		dma = ib_dma_map_page(dev, path->mem.chunks[path->mem.nr_mapped], 0,
				      sess->chunk_size, DMA_BIDIRECTIONAL);
		if (ib_dma_mapping_error(dev, dma))
			return -ENOMEM;
		rtrs_srv_path_io(path, path->mem.nr_mapped)->dma = dma;
		path->mem.nr_mapped++;
	}
	return 0;
}

static void rtrs_srv_unmap_chunks(struct rtrs_srv_path *path)
{
	while (path->mem.nr_mapped--)
		ib_dma_unmap_page(path->path.dev,
				  rtrs_srv_path_io(path, path->mem.nr_mapped)->dma,
				  path->sess->chunk_size, DMA_BIDIRECTIONAL);
	path->mem.nr_mapped = 0;
}

static int rtrs_srv_alloc_rkeys(struct rtrs_srv_path *path)
{
	u32 depth = path->sess->queue_depth;
	u64 dma;
	u32 i;

	path->mem.rkeys = kcalloc(depth, sizeof(*path->mem.rkeys), GFP_KERNEL);
	if (!path->mem.rkeys)
		return -ENOMEM;
	for (i = 0; i < depth; i++) {
		path->mem.rkeys[i].type = cpu_to_le16(RTRS_MSG_RKEY_RSP);
		path->mem.rkeys[i].slot = cpu_to_le16(i);
	}
	dma = ib_dma_map_single(path->path.dev, path->mem.rkeys,
				depth * sizeof(*path->mem.rkeys), DMA_TO_DEVICE);
	if (ib_dma_mapping_error(path->path.dev, dma))
		return -ENOMEM;
	path->mem.rkeys_dma = dma;
	return 0;
}

static void rtrs_srv_free_rkeys(struct rtrs_srv_path *path)
{
	if (path->mem.rkeys_dma)
		ib_dma_unmap_single(path->path.dev, path->mem.rkeys_dma,
				    path->sess->queue_depth *
				    sizeof(*path->mem.rkeys), DMA_TO_DEVICE);
	path->mem.rkeys_dma = 0;
	kfree(path->mem.rkeys);
	path->mem.rkeys = NULL;
}

/**
 * rtrs_srv_chunks_per_mr() - compute the number of chunks in a memory region
 * @path: path that has its device
 *
 * Return: 1 with always_invalidate; otherwise the largest number that divides the queue
 * depth and that the device can register; 0 if it can't register one chunk.
 */
u32 rtrs_srv_chunks_per_mr(const struct rtrs_srv_path *path)
{
	const struct rtrs_srv_sess *sess = path->sess;
	u32 max = path->path.dev->attrs.max_fast_reg_page_list_len /
		  (sess->chunk_size / RTRS_SRV_MR_PAGE);
	u32 n;

	/* A descriptor's length has 32 bits, and so have most devices' MRs. */
	max = min_t(u32, max, SZ_1G / sess->chunk_size);
	if (sess->always_invalidate)
		max = min_t(u32, max, 1);
	for (n = min(max, sess->queue_depth); n > 1; n--)
		if (sess->queue_depth % n == 0)
			break;
	return n;
}

/**
 * rtrs_srv_mem_bytes() - compute the memory of a path's chunks and requests
 * @sess: session of the path
 * @per_mr: number of chunks in a memory region
 * @io_size: bytes of a struct rtrs_srv_io with the upper layer's part
 *
 * Return: bytes of chunks, requests, memory regions, and messages with their keys.
 */
VISIBLE_IF_KUNIT u64 rtrs_srv_mem_bytes(const struct rtrs_srv_sess *sess,
					u32 per_mr, size_t io_size)
{
	u64 slot = sess->chunk_size + sizeof(struct page *) + io_size;
	u64 mr = RTRS_SRV_MR_BYTES + sizeof(struct ib_mr *) +
		 sizeof(struct rtrs_desc) +
		 (u64)per_mr * (sess->chunk_size / RTRS_SRV_MR_PAGE) * sizeof(u64);

	if (sess->always_invalidate)
		slot += sizeof(struct rtrs_msg_rkey_rsp);
	return sess->queue_depth * slot + sess->queue_depth / per_mr * mr +
	       sizeof(struct rtrs_info_rsp);
}

static int rtrs_srv_charge_ios(struct rtrs_srv_path *path)
{
	struct rtrs_srv_sess *sess = path->sess;
	u32 per_mr = rtrs_srv_chunks_per_mr(path);
	u64 bytes;
	int ret;

	if (!per_mr) {
		rtrs_srv_warn(path, "device %s can't register a chunk of %u bytes: lower max_chunk_size\n",
			      dev_name(&path->path.dev->dev), sess->chunk_size);
		return -EOPNOTSUPP;
	}
	bytes = rtrs_srv_mem_bytes(sess, per_mr, rtrs_srv_io_size(sess->srv->ops));
	mutex_lock(&path->conns.lock);
	ret = rtrs_srv_path_charge(path, bytes);
	mutex_unlock(&path->conns.lock);
	return ret;
}

/* Make a memory region of @nr chunks from @slot on. */
static int rtrs_srv_add_mr(struct rtrs_srv_path *path, struct scatterlist *sgl,
			   u32 slot, u32 nr)
{
	struct rtrs_srv_sess *sess = path->sess;
	struct scatterlist *sg;
	struct ib_mr *mr;
	int ret;
	u32 i;

	mr = ib_alloc_mr(path->path.pd, IB_MR_TYPE_MEM_REG,
			 nr * (sess->chunk_size / RTRS_SRV_MR_PAGE));
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	path->mem.mrs[path->mem.nr_mrs++] = mr;
	sg_init_table(sgl, nr);
	for_each_sg(sgl, sg, nr, i) {
		sg_set_page(sg, path->mem.chunks[slot + i], sess->chunk_size, 0);
		sg_dma_address(sg) = rtrs_srv_path_io(path, slot + i)->dma;
		sg_dma_len(sg) = sess->chunk_size;
	}
	ret = ib_map_mr_sg(mr, sgl, nr, NULL, RTRS_SRV_MR_PAGE);
	if (ret != nr)
		return ret < 0 ? ret : -EINVAL;
	if (sess->always_invalidate)
		rtrs_srv_path_io(path, slot)->mr = mr;
	return 0;
}

static int rtrs_srv_alloc_mrs(struct rtrs_srv_path *path)
{
	struct rtrs_srv_sess *sess = path->sess;
	u32 nr = rtrs_srv_chunks_per_mr(path);
	struct scatterlist *sgl;
	int ret = 0;
	u32 slot;

	path->mem.mrs = kvcalloc(sess->queue_depth / nr, sizeof(*path->mem.mrs),
				 GFP_KERNEL);
	sgl = kvcalloc(nr, sizeof(*sgl), GFP_KERNEL);
	if (!path->mem.mrs || !sgl)
		ret = -ENOMEM;
	for (slot = 0; slot < sess->queue_depth && !ret; slot += nr)
		ret = rtrs_srv_add_mr(path, sgl, slot, nr);
	kvfree(sgl);
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
	int ret;

	ret = rtrs_srv_charge_ios(path);
	if (ret)
		return ret;
	ret = rtrs_srv_chunks_alloc(path);
	if (ret)
		return ret;
	ret = rtrs_srv_ios_alloc(path);
	if (ret)
		return ret;
	ret = rtrs_srv_map_chunks(path);
	if (ret)
		return ret;
	ret = rtrs_srv_alloc_mrs(path);
	if (ret)
		return ret;
	return path->sess->always_invalidate ? rtrs_srv_alloc_rkeys(path) : 0;
}

/**
 * rtrs_srv_mem_free() - undo rtrs_srv_mem_setup(), as far as it came
 * @path: path whose requests are finished and queue pairs destroyed
 */
void rtrs_srv_mem_free(struct rtrs_srv_path *path)
{
	while (path->mem.nr_mrs)
		ib_dereg_mr(path->mem.mrs[--path->mem.nr_mrs]);
	kvfree(path->mem.mrs);
	path->mem.mrs = NULL;
	rtrs_srv_free_rkeys(path);
	rtrs_srv_unmap_chunks(path);
	kvfree(path->ios.mem);
	path->ios.mem = NULL;
	rtrs_srv_chunks_free(path);
}

/**
 * rtrs_srv_mem_exit() - check that all memory has been given back
 *
 * Context: the module's exit, when there are no sessions.
 */
void rtrs_srv_mem_exit(void)
{
	WARN_ON_ONCE(rtrs_srv_mem_used);
}
