/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fault injection (faults.c), limits of RDMA devices (device.c) and checks of RDMA calls (verbs.c)
 * of rtrs-faults.ko. Included before each file of the drivers when they are built for the debug
 * kernel: macros replace the calls, so that the drivers have no code for this.
 *
 * A call that fails has no effect, and returns its most likely error.
 *
 * Calls that return errors, but do not fail here:
 * - allocations with __GFP_NOFAIL, and calls that fail only for an error of the caller
 *   (rdma_set_reuseaddr, rdma_notify, xa_store into a reserved entry)
 * - calls through pointers (read_iter, write_iter), and bios: see the tests of disks
 * - sysfs_break_active_protection(): fails for a removed file, whose writers are awaited first
 */
#ifndef RTRS_FAULTS_H
#define RTRS_FAULTS_H

/* All headers of the drivers, so that their inline functions call the real functions */
#include <linux/bio.h>
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/ctype.h>
#include <linux/device.h>
#include <linux/falloc.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/idr.h>
#include <linux/inet.h>
#include <linux/ioprio.h>
#include <linux/kobject.h>
#include <linux/kref.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/namei.h>
#include <linux/overflow.h>
#include <linux/parser.h>
#include <linux/percpu-refcount.h>
#include <linux/percpu.h>
#include <linux/random.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/sysfs.h>
#include <linux/tracepoint.h>
#include <linux/uio.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <net/net_namespace.h>
#include <rdma/ib.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>
#include <rdma/rw.h>

/* Files define it, normally before they include printk.h. */
#undef pr_fmt

/* Tests wait for messages, so these are not rate-limited. */
#undef DEFAULT_RATELIMIT_INTERVAL
#define DEFAULT_RATELIMIT_INTERVAL	0

bool rtrs_fault(const char *module, const char *call, const char *func, int line);
int rtrs_faults_create_qp(const char *module, struct rdma_cm_id *id,
			  struct ib_pd *pd, struct ib_qp_init_attr *attr);
struct ib_cq *rtrs_faults_alloc_cq(const char *module, struct ib_device *dev,
				   void *private, int nr_cqe, int vector,
				   enum ib_poll_context poll);
void rtrs_faults_device_exit(void);

int rtrs_faults_verbs_init(void);
void rtrs_faults_verbs_exit(void);
void rtrs_faults_add_qp(struct ib_qp *qp);
void rtrs_faults_destroy_qp(struct rdma_cm_id *id);
void rtrs_faults_drain_sq(struct ib_qp *qp);
void rtrs_faults_drain_rq(struct ib_qp *qp);
int rtrs_faults_modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask);
struct ib_mr *rtrs_faults_alloc_mr(struct ib_pd *pd, enum ib_mr_type type,
				   u32 max_nr_sg);
int rtrs_faults_map_mr_sg(struct ib_mr *real, struct scatterlist *sgl, int nents,
			  unsigned int *off, unsigned int page_size);
int rtrs_faults_dereg_mr(struct ib_mr *real);
int rtrs_faults_post_send(struct ib_qp *qp, const struct ib_send_wr *first,
			  const struct ib_send_wr **bad);
int rtrs_faults_post_recv(struct ib_qp *qp, const struct ib_recv_wr *first,
			  const struct ib_recv_wr **bad);
u64 rtrs_faults_map_single(struct ib_device *dev, void *ptr, size_t size,
			   enum dma_data_direction dir);
u64 rtrs_faults_map_page(struct ib_device *dev, struct page *page,
			 unsigned long off, size_t size,
			 enum dma_data_direction dir);
int rtrs_faults_map_sg(struct ib_device *dev, struct scatterlist *sgl, int nents,
		       enum dma_data_direction dir);
void rtrs_faults_unmap(struct ib_device *dev, u64 addr, size_t size,
		       enum dma_data_direction dir);
void rtrs_faults_unmap_sg(struct ib_device *dev, struct scatterlist *sgl,
			  int nents, enum dma_data_direction dir);
int rtrs_faults_rw_init(struct rdma_rw_ctx *ctx, struct ib_qp *qp, u32 port,
			struct scatterlist *sgl, u32 nents, u32 off, u64 remote,
			u32 rkey, enum dma_data_direction dir);
void rtrs_faults_rw_destroy(struct rdma_rw_ctx *ctx, struct ib_qp *qp, u32 port,
			    struct scatterlist *sgl, u32 nents,
			    enum dma_data_direction dir);
void rtrs_faults_sync(struct ib_device *dev, u64 addr, size_t size,
		      enum dma_data_direction dir);

#define RTRS_FAULT(call) rtrs_fault(KBUILD_MODNAME, #call, __func__, __LINE__)

/* Within its own expansion, a macro's name is the real function. */
#define RTRS_FAIL(call, failure, ...) \
	(RTRS_FAULT(call) ? failure : call(__VA_ARGS__))
#define RTRS_FAIL_NULL(call, ...) RTRS_FAIL(call, NULL, __VA_ARGS__)
#define RTRS_FAIL_ERR(call, ...) RTRS_FAIL(call, -ENOMEM, __VA_ARGS__)
#define RTRS_FAIL_PTR(call, ...) RTRS_FAIL(call, ERR_PTR(-ENOMEM), __VA_ARGS__)

/* Like RTRS_FAIL, but calls rtrs_faults_@call() */
#define RTRS_FAIL_OWN(call, failure, ...) \
	(RTRS_FAULT(call) ? failure : rtrs_faults_##call(__VA_ARGS__))

/* Defines rtrs_faults_@name(), which calls the kernel's function, or macro on some kernels. */
#define RTRS_FAULTS_OWN(type, name, params, args) \
	static inline type rtrs_faults_##name params { return name args; }

/* Memory */
RTRS_FAULTS_OWN(void *, kzalloc, (size_t size, gfp_t gfp), (size, gfp))
RTRS_FAULTS_OWN(void *, kmalloc, (size_t size, gfp_t gfp), (size, gfp))
RTRS_FAULTS_OWN(void *, kcalloc, (size_t n, size_t size, gfp_t gfp), (n, size, gfp))
RTRS_FAULTS_OWN(void *, kzalloc_node, (size_t size, gfp_t gfp, int node), (size, gfp, node))
RTRS_FAULTS_OWN(void *, kvcalloc, (size_t n, size_t size, gfp_t gfp), (n, size, gfp))
RTRS_FAULTS_OWN(void *, kvzalloc, (size_t size, gfp_t gfp), (size, gfp))
RTRS_FAULTS_OWN(struct page *, alloc_pages, (gfp_t gfp, unsigned int order), (gfp, order))
RTRS_FAULTS_OWN(struct page *, alloc_pages_node, (int node, gfp_t gfp, unsigned int order),
		(node, gfp, order))
RTRS_FAULTS_OWN(void __percpu *, __alloc_percpu, (size_t size, size_t align), (size, align))

#undef kzalloc
#define kzalloc(size, gfp)						\
	(!((gfp) & __GFP_NOFAIL) && RTRS_FAULT(kzalloc) ?		\
	 NULL : rtrs_faults_kzalloc(size, gfp))
#undef kmalloc
#define kmalloc(...)		RTRS_FAIL_OWN(kmalloc, NULL, __VA_ARGS__)
#undef kcalloc
#define kcalloc(...)		RTRS_FAIL_OWN(kcalloc, NULL, __VA_ARGS__)
#undef kzalloc_node
#define kzalloc_node(...)	RTRS_FAIL_OWN(kzalloc_node, NULL, __VA_ARGS__)
#undef kvcalloc
#define kvcalloc(...)		RTRS_FAIL_OWN(kvcalloc, NULL, __VA_ARGS__)
#undef kvzalloc
#define kvzalloc(...)		RTRS_FAIL_OWN(kvzalloc, NULL, __VA_ARGS__)
#undef alloc_pages
#define alloc_pages(...)	RTRS_FAIL_OWN(alloc_pages, NULL, __VA_ARGS__)
#undef alloc_pages_node
#define alloc_pages_node(...)	RTRS_FAIL_OWN(alloc_pages_node, NULL, __VA_ARGS__)
/* alloc_percpu() is a macro around it. */
#undef __alloc_percpu
#define __alloc_percpu(...)	RTRS_FAIL_OWN(__alloc_percpu, NULL, __VA_ARGS__)
#define kstrdup(...)		RTRS_FAIL_NULL(kstrdup, __VA_ARGS__)
#define kasprintf(...)		RTRS_FAIL_NULL(kasprintf, __VA_ARGS__)
#define sgl_alloc_order(...)	RTRS_FAIL_NULL(sgl_alloc_order, __VA_ARGS__)
#define percpu_ref_init(...)	RTRS_FAIL_ERR(percpu_ref_init, __VA_ARGS__)
#define ida_alloc(...)		RTRS_FAIL_ERR(ida_alloc, __VA_ARGS__)
#define xa_insert(...)		RTRS_FAIL_ERR(xa_insert, __VA_ARGS__)
#define xa_alloc_cyclic(...)	RTRS_FAIL_ERR(xa_alloc_cyclic, __VA_ARGS__)
#undef alloc_workqueue
#define alloc_workqueue(...) \
	(RTRS_FAULT(alloc_workqueue) ? NULL : alloc_workqueue_noprof(__VA_ARGS__))

/* References to objects that may be going away */
#define percpu_ref_tryget_live(...) \
	RTRS_FAIL(percpu_ref_tryget_live, false, __VA_ARGS__)
#define try_module_get(...)	RTRS_FAIL(try_module_get, false, __VA_ARGS__)

/* sysfs; class_register() is a macro around __class_register(). */
#define __class_register(...)	RTRS_FAIL_ERR(__class_register, __VA_ARGS__)
#define __root_device_register(...) \
	RTRS_FAIL_PTR(__root_device_register, __VA_ARGS__)
#define dev_set_name(...)	RTRS_FAIL_ERR(dev_set_name, __VA_ARGS__)
#define device_add(...)		RTRS_FAIL_ERR(device_add, __VA_ARGS__)
#define device_create(...)	RTRS_FAIL_PTR(device_create, __VA_ARGS__)
#define device_create_file(...)	RTRS_FAIL_ERR(device_create_file, __VA_ARGS__)
#define kobject_add(...)	RTRS_FAIL_ERR(kobject_add, __VA_ARGS__)
#define kobject_create_and_add(...) \
	RTRS_FAIL_NULL(kobject_create_and_add, __VA_ARGS__)
/* The caller must put the kobject on an error, so it is initialized. */
#define kobject_init_and_add(kobj, ktype, ...)				\
	(RTRS_FAULT(kobject_init_and_add) ?				\
	 (kobject_init(kobj, ktype), -ENOMEM) :				\
	 kobject_init_and_add(kobj, ktype, __VA_ARGS__))
#define sysfs_create_group(...)	RTRS_FAIL_ERR(sysfs_create_group, __VA_ARGS__)
#define sysfs_create_link(...)	RTRS_FAIL_ERR(sysfs_create_link, __VA_ARGS__)
#define sysfs_create_link_nowarn(...) \
	RTRS_FAIL_ERR(sysfs_create_link_nowarn, __VA_ARGS__)

/* Disks; some of these are macros on older kernels. */
RTRS_FAULTS_OWN(int, blk_mq_alloc_tag_set, (struct blk_mq_tag_set *set), (set))
RTRS_FAULTS_OWN(int, blk_rq_map_kern, (struct request *rq, void *buf, unsigned int len, gfp_t gfp),
		(rq, buf, len, gfp))

#undef blk_mq_alloc_tag_set
#define blk_mq_alloc_tag_set(...) RTRS_FAIL_OWN(blk_mq_alloc_tag_set, -ENOMEM, __VA_ARGS__)
#undef blk_rq_map_kern
#define blk_rq_map_kern(...)	RTRS_FAIL_OWN(blk_rq_map_kern, -ENOMEM, __VA_ARGS__)
#define blk_mq_alloc_queue(...)	RTRS_FAIL_PTR(blk_mq_alloc_queue, __VA_ARGS__)
/* blk_mq_alloc_disk() is a macro around it. */
#define __blk_mq_alloc_disk(...) \
	RTRS_FAIL_PTR(__blk_mq_alloc_disk, __VA_ARGS__)
#define blk_mq_alloc_request(...) \
	RTRS_FAIL_PTR(blk_mq_alloc_request, __VA_ARGS__)
#define device_add_disk(...)	RTRS_FAIL_ERR(device_add_disk, __VA_ARGS__)

/* Files */
#define kern_path(...)		RTRS_FAIL_ERR(kern_path, __VA_ARGS__)
#define filp_open(...)		RTRS_FAIL_PTR(filp_open, __VA_ARGS__)
#define file_path(...)		RTRS_FAIL(file_path, ERR_PTR(-ENAMETOOLONG), __VA_ARGS__)
#define vfs_fsync(...)		RTRS_FAIL(vfs_fsync, -EIO, __VA_ARGS__)
#define vfs_fallocate(...)	RTRS_FAIL(vfs_fallocate, -ENOSPC, __VA_ARGS__)

/* Verbs; ib_alloc_pd() is a macro around __ib_alloc_pd(). */
#define __ib_alloc_pd(...)	RTRS_FAIL_PTR(__ib_alloc_pd, __VA_ARGS__)
#define ib_alloc_cq(...)						\
	(RTRS_FAULT(ib_alloc_cq) ? ERR_PTR(-ENOMEM) :			\
	 rtrs_faults_alloc_cq(KBUILD_MODNAME, __VA_ARGS__))
#define ib_alloc_mr(...)						\
	(RTRS_FAULT(ib_alloc_mr) ? ERR_PTR(-ENOMEM) :			\
	 rtrs_faults_alloc_mr(__VA_ARGS__))
#define ib_map_mr_sg(...)						\
	(RTRS_FAULT(ib_map_mr_sg) ? -ENOMEM :				\
	 rtrs_faults_map_mr_sg(__VA_ARGS__))
#define ib_dereg_mr(mr)		rtrs_faults_dereg_mr(mr)
#define ib_post_send(...)						\
	(RTRS_FAULT(ib_post_send) ? -ENOMEM :				\
	 rtrs_faults_post_send(__VA_ARGS__))
#define ib_post_recv(...)						\
	(RTRS_FAULT(ib_post_recv) ? -ENOMEM :				\
	 rtrs_faults_post_recv(__VA_ARGS__))
#define ib_drain_sq(qp)		rtrs_faults_drain_sq(qp)
#define ib_drain_rq(qp)		rtrs_faults_drain_rq(qp)
#define ib_modify_qp(...)	rtrs_faults_modify_qp(__VA_ARGS__)
#define ib_dma_map_single(...)						\
	(RTRS_FAULT(ib_dma_map_single) ? DMA_MAPPING_ERROR :		\
	 rtrs_faults_map_single(__VA_ARGS__))
#define ib_dma_map_page(...)						\
	(RTRS_FAULT(ib_dma_map_page) ? DMA_MAPPING_ERROR :		\
	 rtrs_faults_map_page(__VA_ARGS__))
#define ib_dma_map_sg(...)						\
	(RTRS_FAULT(ib_dma_map_sg) ? 0 :				\
	 rtrs_faults_map_sg(__VA_ARGS__))
#define ib_dma_unmap_single(...) rtrs_faults_unmap(__VA_ARGS__)
#define ib_dma_unmap_page(...)	rtrs_faults_unmap(__VA_ARGS__)
#define ib_dma_unmap_sg(...)	rtrs_faults_unmap_sg(__VA_ARGS__)
#define rdma_rw_ctx_init(...)						\
	(RTRS_FAULT(rdma_rw_ctx_init) ? -ENOMEM :			\
	 rtrs_faults_rw_init(__VA_ARGS__))
#define rdma_rw_ctx_destroy(...) rtrs_faults_rw_destroy(__VA_ARGS__)
#define ib_dma_sync_single_for_cpu(...)					\
	(rtrs_faults_sync(__VA_ARGS__), ib_dma_sync_single_for_cpu(__VA_ARGS__))
#define ib_dma_sync_single_for_device(...)				\
	(rtrs_faults_sync(__VA_ARGS__),					\
	 ib_dma_sync_single_for_device(__VA_ARGS__))
/* Mappings of a software device never fail. */
#define ib_dma_mapping_error(dev, addr)					\
	((addr) == DMA_MAPPING_ERROR ? -ENOMEM :			\
	 ib_dma_mapping_error(dev, addr))

/* The connection manager; rdma_create_id() is a macro. */
#define __rdma_create_kernel_id(...) \
	RTRS_FAIL_PTR(__rdma_create_kernel_id, __VA_ARGS__)
#define rdma_create_qp(...)						\
	(RTRS_FAULT(rdma_create_qp) ? -ENOMEM :				\
	 rtrs_faults_create_qp(KBUILD_MODNAME, __VA_ARGS__))
#define rdma_destroy_qp(id)	rtrs_faults_destroy_qp(id)
#define rdma_resolve_addr(...)	RTRS_FAIL_ERR(rdma_resolve_addr, __VA_ARGS__)
#define rdma_resolve_route(...)	RTRS_FAIL_ERR(rdma_resolve_route, __VA_ARGS__)
#define rdma_connect(...)	RTRS_FAIL_ERR(rdma_connect, __VA_ARGS__)
#define rdma_accept(...)	RTRS_FAIL_ERR(rdma_accept, __VA_ARGS__)
#define rdma_reject(...)	RTRS_FAIL_ERR(rdma_reject, __VA_ARGS__)
#define rdma_disconnect(...)	RTRS_FAIL_ERR(rdma_disconnect, __VA_ARGS__)
#define rdma_set_afonly(...)	RTRS_FAIL_ERR(rdma_set_afonly, __VA_ARGS__)
#define rdma_bind_addr(...)	RTRS_FAIL_ERR(rdma_bind_addr, __VA_ARGS__)
#define rdma_listen(...)	RTRS_FAIL_ERR(rdma_listen, __VA_ARGS__)

/*
 * Space in a send queue, for the callers of rtrs_core. Without space, requests that were queued
 * before are sent. rtrs_con_post() never lacks space, as the queue is large enough. Since 6.17,
 * KBUILD_MODNAME as a token has no prefix.
 */
#define kmod_rtrs_client 1
#define rtrs_client 1
#define kmod_rtrs_server 1
#define rtrs_server 1
#define kmod_rtrs_core 0
#define rtrs_core 0
#define kmod_rtrs_faults 0
#define rtrs_faults 0
#define kmod_rnbd_client 0
#define rnbd_client 0
#define kmod_rnbd_server 0
#define rnbd_server 0
#if __KBUILD_MODNAME
#define RTRS_FAULTS_CON
#endif
#undef kmod_rtrs_client
#undef rtrs_client
#undef kmod_rtrs_server
#undef rtrs_server
#undef kmod_rtrs_core
#undef rtrs_core
#undef kmod_rtrs_faults
#undef rtrs_faults
#undef kmod_rnbd_client
#undef rnbd_client
#undef kmod_rnbd_server
#undef rnbd_server

#ifdef RTRS_FAULTS_CON
#include "../../../../drivers/infiniband/ulp/rtrs/common/core.h"

#define rtrs_con_queue(con, ...)					\
	(RTRS_FAULT(rtrs_con_queue) ? (rtrs_con_flush(con), -EBUSY) :	\
	 rtrs_con_queue(con, __VA_ARGS__))
#define rtrs_con_has_room(con, nr)					\
	(!RTRS_FAULT(rtrs_con_has_room) && rtrs_con_has_room(con, nr))
#endif

#endif /* RTRS_FAULTS_H */
