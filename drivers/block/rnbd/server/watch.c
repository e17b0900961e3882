// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD server: watch of the devices. Once a second, the sizes and limits of all devices are
 * compared with those that the clients know, and mappings that the clients should have closed are
 * closed.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/workqueue.h>

#include "rnbd-srv.h"

/* Interval of the checks of devices' sizes and limits */
#define RNBD_SRV_WATCH	HZ

static void rnbd_srv_watch_work(struct work_struct *work);
/* Queued while there are devices */
static DECLARE_DELAYED_WORK(rnbd_srv_watch, rnbd_srv_watch_work);

static bool rnbd_srv_size_changed(const struct rnbd_srv_map *map,
				  const struct rnbd_msg_open_rsp *now)
{
	u64 is = le64_to_cpu(now->nsectors), was = le64_to_cpu(map->told.nsectors);

	if (is == was)
		return false;
	rnbd_srv_info(map->sess, "%s has %s from %llu to %llu sectors\n", map->path,
		      is > was ? "grown" : "shrunk", was, is);
	return true;
}

static bool rnbd_srv_limits_changed(const struct rnbd_srv_map *map,
				    const struct rnbd_msg_open_rsp *now)
{
	if (rnbd_same_limits(now, &map->told))
		return false;
	if (rnbd_srv_has_cache(now) && !READ_ONCE(map->flushes))
		rnbd_srv_info(map->sess, "%s has a write cache now: writes are flushed until the client does that\n",
			      map->path);
	else
		rnbd_srv_info(map->sess, "%s has other limits now\n", map->path);
	return true;
}

/**
 * rnbd_srv_changed() - check whether a mapping's disk or file has changed
 * @map: mapping
 *
 * Compares the disk or file with &rnbd_srv_map.told, which is updated.
 *
 * Context: rnbd_srv_lock is held.
 * Return: RNBD_FEATURE_* of the events that report the changes, 0 if there are none.
 */
VISIBLE_IF_KUNIT u32 rnbd_srv_changed(struct rnbd_srv_map *map)
{
	struct rnbd_msg_open_rsp now = { };
	u32 changed = 0;

	if (map->told.flags & RNBD_DISK_GONE)
		return 0;
	rnbd_srv_fill_disk(map, &now);
	if (now.flags & RNBD_DISK_GONE) {
		rnbd_srv_info(map->sess, "%s was removed\n", map->path);
		changed = RNBD_FEATURE_DISK_STATE;
	} else {
		if (rnbd_srv_size_changed(map, &now))
			changed |= RNBD_FEATURE_RESIZE_EVENT;
		if (rnbd_srv_limits_changed(map, &now))
			changed |= RNBD_FEATURE_DISK_STATE;
	}
	map->told = now;
	return changed;
}

/**
 * rnbd_srv_overdue() - check whether the server has to close a mapping for the client
 * @map: mapping
 *
 * A removed disk keeps its name while it is open, so its mappings must be closed before the disk
 * can return. Clients with RNBD_FEATURE_DISK_STATE do that within RNBD_SRV_GONE_TIME, if they are
 * alive. If the server closed the mapping earlier, their I/O would fail with -ENOENT, as after
 * force_close. The server closes the mappings of other clients at once, since these never do.
 *
 * A client that was without a path may have unmapped devices meanwhile. When it resumes the session
 * with SESS_INFO, it opens only its other devices again. A mapping that is not opened again within
 * RNBD_SRV_UNUSED_TIME is closed, but not if the client supports no events: the server can't
 * prompt it to open its devices.
 *
 * Context: rnbd_srv_lock is held; called once in each round of the watch.
 * Return: true if the server has to close the mapping.
 */
VISIBLE_IF_KUNIT bool rnbd_srv_overdue(struct rnbd_srv_map *map)
{
	const struct rnbd_srv_sess *sess = map->sess;
	bool gone = map->told.flags & RNBD_DISK_GONE;
	u32 limit = RNBD_SRV_UNUSED_TIME;

	if (gone)
		limit = READ_ONCE(sess->features) & RNBD_FEATURE_DISK_STATE ?
			RNBD_SRV_GONE_TIME : 0;
	if (gone || ((READ_ONCE(sess->features) & RNBD_SRV_EVENTS) &&
		     map->starts != READ_ONCE(sess->starts)))
		map->overdue++;
	else
		map->overdue = 0;
	return map->overdue > limit;
}

/* Check the mappings of a device. The events due are collected, so that a session gets only one. */
static void rnbd_srv_watch_dev(struct rnbd_srv_dev *dev)
{
	struct rnbd_srv_map *map;

	list_for_each_entry(map, &dev->maps, list) {
		map->sess->event_due |= rnbd_srv_changed(map);
		/* SESS_INFO may have arrived after OPEN: prompt the client to send OPEN again. */
		if (map->overdue == RNBD_SRV_UNUSED_TIME / 2)
			map->sess->event_due |= RNBD_SRV_EVENTS;
		if (rnbd_srv_overdue(map) && rnbd_srv_close(map, NULL))
			rnbd_srv_info(map->sess, "closing %s, %s\n", map->path,
				      map->told.flags & RNBD_DISK_GONE ?
				      "whose disk was removed" :
				      "which the client has not opened again");
	}
}

static void rnbd_srv_tell_changes(struct rnbd_srv_dev *dev)
{
	struct rnbd_srv_map *map;

	list_for_each_entry(map, &dev->maps, list) {
		if (map->sess->event_due & READ_ONCE(map->sess->features))
			rtrs_srv_send_event(map->sess->rtrs);
		map->sess->event_due = 0;
	}
}

/*
 * Compare the sizes and limits of all devices with those reported to the clients, as no notifier
 * reports all changes. Nothing here waits for a filesystem: a file's size is read from memory.
 */
static void rnbd_srv_watch_work(struct work_struct *work)
{
	struct rnbd_srv_dev *dev;

	mutex_lock(&rnbd_srv_lock);
	list_for_each_entry(dev, &rnbd_srv_devs, list)
		rnbd_srv_watch_dev(dev);
	list_for_each_entry(dev, &rnbd_srv_devs, list)
		rnbd_srv_tell_changes(dev);
	if (!list_empty(&rnbd_srv_devs))
		queue_delayed_work(rnbd_srv_wq, &rnbd_srv_watch, RNBD_SRV_WATCH);
	mutex_unlock(&rnbd_srv_lock);
}

/**
 * rnbd_srv_start_watch() - start checking sizes and limits, unless started already
 *
 * Context: rnbd_srv_lock is held, and there are devices.
 */
void rnbd_srv_start_watch(void)
{
	queue_delayed_work(rnbd_srv_wq, &rnbd_srv_watch, RNBD_SRV_WATCH);
}

/**
 * rnbd_srv_stop_watch() - stop checking sizes and limits
 *
 * Context: process, may sleep; there are no devices, and none will be opened.
 */
void rnbd_srv_stop_watch(void)
{
	cancel_delayed_work_sync(&rnbd_srv_watch);
}
