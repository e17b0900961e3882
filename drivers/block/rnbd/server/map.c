// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD server: lookup and closing of mappings.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/slab.h>

#include "rnbd-srv.h"

/*
 * Protects devices and mappings. The lock is taken when a path is set up, which memory reclaim may
 * wait for if a client on this machine depends on that path. So holders must not enter reclaim that
 * waits for I/O. Lockdep isn't told: holders also take the lock of sysfs, under which kernfs enters
 * reclaim when it is mounted.
 */
DEFINE_MUTEX(rnbd_srv_lock);
/* All devices, under rnbd_srv_lock */
LIST_HEAD(rnbd_srv_devs);

const char * const rnbd_srv_access_names[RNBD_ACCESS_MODES] = RNBD_ACCESS_NAMES;

/**
 * rnbd_srv_sess_put() - drop a reference to a session
 * @sess: session; the last reference queues &rnbd_srv_sess.end_work
 *
 * Context: any.
 */
void rnbd_srv_sess_put(struct rnbd_srv_sess *sess)
{
	if (refcount_dec_and_test(&sess->users))
		queue_work(rnbd_srv_wq, &sess->end_work);
}

/**
 * rnbd_srv_map_get() - look up a mapping for I/O
 * @sess: session of the message
 * @id: device id in the message
 *
 * Return: the mapping, with a reference to &rnbd_srv_map.ref; NULL if the id is unknown, or the
 * mapping is being closed.
 */
struct rnbd_srv_map *rnbd_srv_map_get(struct rnbd_srv_sess *sess, u32 id)
{
	struct rnbd_srv_map *map;

	rcu_read_lock();
	map = xa_load(&sess->maps, id);
	if (map && !percpu_ref_tryget_live(&map->ref))
		map = NULL;
	rcu_read_unlock();
	return map;
}

/**
 * rnbd_srv_close() - close a mapping
 * @map: mapping; protected by RCU, by rnbd_srv_lock, or by a reference to the kobject
 * @op: op to complete when the mapping is closed, or NULL
 *
 * When this returns, rnbd_srv_map_get() does not return the mapping any more.
 * &rnbd_srv_map.closed is completed when all I/O has ended and the file is closed.
 *
 * Context: any.
 * Return: true, or false if the mapping is being closed already; @op will not be completed then.
 */
bool rnbd_srv_close(struct rnbd_srv_map *map, struct rtrs_srv_op *op)
{
	if (test_and_set_bit(0, &map->closing))
		return false;
	map->close_op = op;
	rnbd_srv_writer_close(map);
	percpu_ref_kill(&map->ref);
	return true;
}

/**
 * rnbd_srv_gone() - check whether a mapping's disk was removed
 * @map: mapping
 *
 * Context: any.
 * Return: true if the disk was removed, and all I/O on it fails.
 */
bool rnbd_srv_gone(const struct rnbd_srv_map *map)
{
	return map->backend->gone && map->backend->gone(map);
}

/**
 * rnbd_srv_fill_disk() - describe the present state of a mapping's disk or file
 * @map: mapping
 * @rsp: answer to RNBD_MSG_OPEN, zeroed
 *
 * Context: process.
 */
void rnbd_srv_fill_disk(const struct rnbd_srv_map *map, struct rnbd_msg_open_rsp *rsp)
{
	rsp->nsectors = cpu_to_le64(map->backend->capacity(map));
	map->backend->limits(map, rsp);
	if (rnbd_srv_gone(map))
		rsp->flags |= RNBD_DISK_GONE;
}

/**
 * rnbd_srv_fill_rsp() - fill in the answer to RNBD_MSG_OPEN
 * @map: the open mapping
 * @rsp: answer, zeroed
 *
 * Context: rnbd_srv_lock is held.
 */
void rnbd_srv_fill_rsp(struct rnbd_srv_map *map, struct rnbd_msg_open_rsp *rsp)
{
	rsp->hdr.type = cpu_to_le16(RNBD_MSG_OPEN_RSP);
	rsp->device_id = cpu_to_le32(map->id);
	rnbd_srv_fill_disk(map, rsp);
	map->told = *rsp;
	export_uuid(rsp->uuid, &map->uuid);
	rnbd_srv_writer_fill_rsp(map, rsp);
}
