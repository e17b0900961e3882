// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD server: which mappings of a disk or file may write.
 *
 * Each mapping that may write has a generation, assigned when the mapping is opened for the first
 * time. A newer mapping has a greater generation. The owner of a disk is the newest mapping that
 * has written to it.
 *
 * A client whose session was lost reopens its mappings with their generations. If a newer mapping
 * has become the owner meanwhile, the older one must not write again:
 *
 * - In access modes rw and migration, the server refuses to open the older mapping, with -EBADE.
 * - In access mode handover, several mappings are open at a time. The server opens the older one,
 *   but its writes fail with -EBADE. The writes of an older mapping that was never closed fail
 *   likewise. The first write of a newer mapping begins after the older mappings' writes in
 *   progress have ended.
 *
 * A mapping A in mode rw gets a new generation each time that it is opened. While A was closed, a
 * newer mapping B may have been opened, and closed without writing. If A is reopened and writes, B
 * must not write either when it is reopened: the new generation makes A newer than B.
 *
 * Restarts
 *
 * The owner's generation is saved in a file before the owner's first write begins, see state.c. So
 * a restarted server knows the owner. Another server that shares the disk does not. In mode
 * handover, it therefore holds back writes of reopened mappings for a grace period. Meanwhile,
 * clients can reopen newer mappings and report that these have written. Writes of new mappings are
 * not held back.
 *
 * Generations are times of the server. A client may report any number: that can harm only clients
 * with which it shares the disk, and which it could harm by writing. Generations are compared by
 * their difference, so there is always a newer one.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/fs.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "rnbd-srv.h"

/* Most disks and files without mappings whose owner is kept in memory */
#define RNBD_SRV_MAX_IDLE	1024

static unsigned int rnbd_srv_grace = 40;
module_param_named(handover_grace, rnbd_srv_grace, uint, 0644);
MODULE_PARM_DESC(handover_grace,
		 "Seconds for which writes of reopened mappings in access_mode=handover are held back after a device was opened for the first time, and again after it was closed for as long; more than clients take to reconnect (default: 40)");

/* These three are protected by rnbd_srv_lock. The list begins with the longest idle entries. */
static LIST_HEAD(rnbd_srv_writers);
static unsigned int rnbd_srv_nr_idle;
static u64 rnbd_srv_generation;

static unsigned long rnbd_srv_grace_jiffies(void)
{
	return min_t(u64, (u64)READ_ONCE(rnbd_srv_grace) * HZ, MAX_JIFFY_OFFSET);
}

/* Check whether generation @a is newer than @b. Any generation is newer than 0, which is none. */
static bool rnbd_srv_newer(u64 a, u64 b)
{
	return !b || (s64)(a - b) > 0;
}

static u64 rnbd_srv_newest(u64 a, u64 b)
{
	return rnbd_srv_newer(a, b) ? a : b;
}

/* Check whether a newer mapping has written. */
static bool rnbd_srv_replaced(const struct rnbd_srv_writer *wr, const struct rnbd_srv_age *age)
{
	return wr->owner && rnbd_srv_newer(wr->owner, age->generation);
}

/* Make the mapping of generation @owner the owner. */
static void rnbd_srv_writer_pass(struct rnbd_srv_writer *wr, u64 owner)
{
	wr->nr_old += wr->nr_writes;
	wr->nr_writes = 0;
	wr->owner = owner;
	wr->granted = false;
	wr->newest = rnbd_srv_newest(wr->newest, owner);
}

/* Check whether writes in mode handover are held back until newer mappings can be reopened. */
static bool rnbd_srv_held_back(const struct rnbd_srv_writer *wr, const struct rnbd_srv_age *age)
{
	return !age->known && !wr->settled && !(age->generation == wr->owner && wr->granted);
}

/**
 * rnbd_srv_writer_check() - check whether a write may begin
 * @wr: state of the disk or file; counts the write if it may begin in mode handover
 * @mode: access mode of the mapping that writes, not ro
 * @age: age of that mapping
 *
 * A mapping that is newer than the owner becomes the owner.
 *
 * Context: &rnbd_srv_writer.lock is held, or @wr is not shared yet.
 * Return: 0; -EAGAIN if the write has to be parked; -EBADE if a newer mapping has written, in
 * access mode handover.
 */
VISIBLE_IF_KUNIT int rnbd_srv_writer_check(struct rnbd_srv_writer *wr, enum rnbd_access_mode mode,
					   const struct rnbd_srv_age *age)
{
	bool handover = mode == RNBD_ACCESS_HANDOVER;

	/* In mode migration, the older mapping may write as well. */
	if (rnbd_srv_replaced(wr, age))
		return handover ? -EBADE : 0;
	if (handover && rnbd_srv_held_back(wr, age))
		return -EAGAIN;
	if (age->generation != wr->owner)
		rnbd_srv_writer_pass(wr, age->generation);
	wr->granted = true;
	if (wr->owner != wr->saved)
		return -EAGAIN;
	if (!handover)
		return 0;
	if (wr->nr_old)
		return -EAGAIN;
	wr->nr_writes++;
	return 0;
}

/**
 * rnbd_srv_writer_done() - count a write in access mode handover as done
 * @wr: state of the disk or file
 * @generation: generation of the write's mapping when the write began
 *
 * Context: &rnbd_srv_writer.lock is held, or @wr is not shared yet.
 * Return: true if it was the last write of an older mapping.
 */
VISIBLE_IF_KUNIT bool rnbd_srv_writer_done(struct rnbd_srv_writer *wr, u64 generation)
{
	if (generation == wr->owner) {
		wr->nr_writes--;
		return false;
	}
	return !--wr->nr_old;
}

static u64 rnbd_srv_next_generation(const struct rnbd_srv_writer *wr)
{
	u64 next;

	rnbd_srv_generation = max_t(u64, ktime_get_real_ns(), rnbd_srv_generation + 1);
	next = rnbd_srv_newest(rnbd_srv_generation, wr->newest + 1);
	return next ?: 1;
}

/**
 * rnbd_srv_writer_add() - add a mapping, or open an existing one as a new one
 * @wr: state of the disk or file
 * @mode: access mode of the mapping, not ro
 * @age: age that the client reported; set to a new generation if the mapping is new, or is reopened
 *	in mode rw
 *
 * If the client reports that the mapping has written, the mapping becomes the owner. If the client
 * reports that a newer mapping has written, the owner is an unknown mapping whose generation is
 * greater by one. Neither replaces a newer owner.
 *
 * Context: rnbd_srv_lock and &rnbd_srv_writer.lock are held, or @wr is not shared yet.
 * Return: 0, or -EBADE if the mapping must not write again, and so can't be opened in its mode.
 */
VISIBLE_IF_KUNIT int rnbd_srv_writer_add(struct rnbd_srv_writer *wr, enum rnbd_access_mode mode,
					 struct rnbd_srv_age *age)
{
	u64 owner = 0;

	age->known = !age->generation;
	if (age->known)
		age->generation = rnbd_srv_next_generation(wr);
	if (age->flags & RNBD_GEN_FENCED)
		owner = age->generation + 1 ?: 1;
	else if (age->flags & RNBD_GEN_WRITER)
		owner = age->generation;
	if (owner && rnbd_srv_newer(owner, wr->owner))
		rnbd_srv_writer_pass(wr, owner);
	if (mode != RNBD_ACCESS_HANDOVER && rnbd_srv_replaced(wr, age))
		return -EBADE;
	wr->newest = rnbd_srv_newest(wr->newest, age->generation);
	if (mode == RNBD_ACCESS_RW && !age->known)
		age->generation = rnbd_srv_next_generation(wr);
	wr->newest = rnbd_srv_newest(wr->newest, age->generation);
	return 0;
}

/* Queue parked writes, for workers of their mappings to check them again. Any context. */
static void rnbd_srv_writer_kick(struct rnbd_srv_writer *wr)
{
	struct rnbd_srv_req *req, *next;
	unsigned long flags;
	LIST_HEAD(parked);

	spin_lock_irqsave(&wr->lock, flags);
	list_splice_init(&wr->parked, &parked);
	spin_unlock_irqrestore(&wr->lock, flags);
	list_for_each_entry_safe(req, next, &parked, parked)
		rnbd_srv_queue_add(req);
}

/**
 * rnbd_srv_writer_close() - submit or fail the parked writes of a mapping
 * @map: mapping in any access mode, whose closing bit is set
 *
 * Context: any.
 */
void rnbd_srv_writer_close(struct rnbd_srv_map *map)
{
	if (map->writer)
		rnbd_srv_writer_kick(map->writer);
}

/*
 * Handle the end of a disk's grace period, after which reopened mappings may write. When the last
 * mapping is closed, the same time starts again. If no mapping is opened within it, the disk may
 * have got another owner on another server, so the next mapping starts a new grace period.
 */
static void rnbd_srv_settle_work(struct work_struct *work)
{
	struct rnbd_srv_writer *wr = container_of(to_delayed_work(work), struct rnbd_srv_writer,
						  settle);
	bool again = false;

	spin_lock_irq(&wr->lock);
	if (!wr->settled) {
		wr->settled = true;
		again = !wr->users;
	} else if (!wr->users) {
		wr->settled = false;
		wr->granted = false;
	}
	spin_unlock_irq(&wr->lock);
	if (again)
		queue_delayed_work(rnbd_srv_wq, &wr->settle, rnbd_srv_grace_jiffies());
	rnbd_srv_writer_kick(wr);
}

/* Save the owner's generation under all names of the disk, then queue parked writes. */
static void rnbd_srv_save_work(struct work_struct *work)
{
	struct rnbd_srv_writer *wr = container_of(work, struct rnbd_srv_writer, save);
	unsigned int i, nr_names;
	u64 owner;

	spin_lock_irq(&wr->lock);
	owner = wr->owner;
	nr_names = wr->nr_names;
	spin_unlock_irq(&wr->lock);

	for (i = 0; i < nr_names; i++)
		rnbd_srv_state_save(wr->names[i], owner);

	spin_lock_irq(&wr->lock);
	if (nr_names == wr->nr_names)
		wr->saved = owner;
	spin_unlock_irq(&wr->lock);
	rnbd_srv_writer_kick(wr);
}

/* Queue the saving of a new owner. &rnbd_srv_writer.lock is held. */
static void rnbd_srv_writer_save(struct rnbd_srv_writer *wr)
{
	lockdep_assert_held(&wr->lock);
	if (wr->owner != wr->saved)
		queue_work(rnbd_srv_state_wq, &wr->save);
}

/**
 * rnbd_srv_writer_begin() - begin a write that may change the owner
 * @req: the write; if it is parked, a worker later calls this function again
 *
 * Not needed for a mapping in mode rw or migration that has written.
 *
 * Context: any.
 * Return: 0 if the write may begin, and rnbd_srv_writer_end() has to follow if
 * &rnbd_srv_req.generation is not 0; -EAGAIN if the write is parked; -EBADE if a newer mapping has
 * written; -ENOENT if the write can't be parked, as the mapping is being closed.
 */
int rnbd_srv_writer_begin(struct rnbd_srv_req *req)
{
	struct rnbd_srv_map *map = req->map;
	struct rnbd_srv_writer *wr = map->writer;
	unsigned long flags;
	int err;

	spin_lock_irqsave(&wr->lock, flags);
	err = rnbd_srv_writer_check(wr, map->mode, &map->age);
	if (err == -EAGAIN) {
		rnbd_srv_writer_save(wr);
		if (test_bit(0, &map->closing))
			err = -ENOENT;
		else
			list_add_tail(&req->parked, &wr->parked);
	} else if (!err) {
		if (map->mode == RNBD_ACCESS_HANDOVER)
			req->generation = map->age.generation;
		else
			WRITE_ONCE(map->written, true);
	}
	spin_unlock_irqrestore(&wr->lock, flags);
	return err;
}

/**
 * rnbd_srv_writer_end() - end a counted write
 * @req: the write, for which rnbd_srv_writer_begin() returned 0, with a generation
 *
 * Context: any.
 */
void rnbd_srv_writer_end(struct rnbd_srv_req *req)
{
	struct rnbd_srv_writer *wr = req->map->writer;
	unsigned long flags;
	bool last;

	spin_lock_irqsave(&wr->lock, flags);
	last = rnbd_srv_writer_done(wr, req->generation);
	spin_unlock_irqrestore(&wr->lock, flags);
	req->generation = 0;
	if (last)
		rnbd_srv_writer_kick(wr);
}

static int rnbd_srv_writer_open(struct rnbd_srv_map *map, const struct rnbd_srv_age *age)
{
	struct rnbd_srv_writer *wr = map->writer;
	int err;

	spin_lock_irq(&wr->lock);
	map->age = *age;
	WRITE_ONCE(map->written, false);
	err = rnbd_srv_writer_add(wr, map->mode, &map->age);
	rnbd_srv_writer_save(wr);
	spin_unlock_irq(&wr->lock);
	rnbd_srv_writer_kick(wr);
	return err;
}

static void rnbd_srv_writer_free(struct rnbd_srv_writer *wr)
{
	unsigned int i;

	list_del(&wr->list);
	cancel_delayed_work_sync(&wr->settle);
	flush_work(&wr->save);
	for (i = 0; i < wr->nr_names; i++)
		kfree(wr->names[i]);
	kfree(wr);
}

/**
 * rnbd_srv_writer_init() - initialize the state of a disk without an owner
 * @wr: state, zeroed
 */
VISIBLE_IF_KUNIT void rnbd_srv_writer_init(struct rnbd_srv_writer *wr)
{
	spin_lock_init(&wr->lock);
	INIT_LIST_HEAD(&wr->parked);
	INIT_DELAYED_WORK(&wr->settle, rnbd_srv_settle_work);
	INIT_WORK(&wr->save, rnbd_srv_save_work);
}

static struct rnbd_srv_writer *rnbd_srv_writer_create(const struct rnbd_srv_id *id)
{
	struct rnbd_srv_writer *wr = kzalloc(sizeof(*wr), GFP_KERNEL);

	if (!wr)
		return NULL;
	rnbd_srv_writer_init(wr);
	wr->id = *id;
	rnbd_srv_nr_idle++;
	list_add_tail(&wr->list, &rnbd_srv_writers);
	return wr;
}

static struct rnbd_srv_writer *rnbd_srv_writer_find(const struct rnbd_srv_id *id)
{
	struct rnbd_srv_writer *wr;

	list_for_each_entry(wr, &rnbd_srv_writers, list) {
		if (wr->id.dev == id->dev && wr->id.nr == id->nr &&
		    wr->id.generation == id->generation)
			return wr;
	}
	return rnbd_srv_writer_create(id);
}

/*
 * Add a name under which to save the owner, if the disk was not opened by it before. The owner that
 * is saved under that name becomes the owner if it is newer.
 */
static void rnbd_srv_writer_add_name(struct rnbd_srv_writer *wr, struct rnbd_srv_map *map)
{
	unsigned int i;

	if (!map->state_name)
		return;
	for (i = 0; i < wr->nr_names; i++) {
		if (!strcmp(wr->names[i], map->state_name))
			return;
	}
	if (i == ARRAY_SIZE(wr->names)) {
		rnbd_srv_err(map->sess, "%s: opened by more than %u names: the last writer isn't saved under this one\n",
			     map->path, i);
		return;
	}
	spin_lock_irq(&wr->lock);
	if (map->saved && rnbd_srv_newer(map->saved, wr->owner)) {
		rnbd_srv_writer_pass(wr, map->saved);
		if (!wr->nr_names)
			wr->saved = map->saved;
	}
	if (map->saved != wr->owner)
		wr->saved = 0;
	wr->names[wr->nr_names++] = map->state_name;
	map->state_name = NULL;
	spin_unlock_irq(&wr->lock);
}

/**
 * rnbd_srv_writer_join() - add a mapping that is being opened
 * @map: mapping in another mode than ro, without I/O, with the age that the client reported
 *
 * Context: rnbd_srv_lock is held.
 * Return: 0, -ENOMEM, or -EBADE if a newer mapping has written. In each case
 * rnbd_srv_writer_leave() has to follow.
 */
int rnbd_srv_writer_join(struct rnbd_srv_map *map)
{
	struct rnbd_srv_writer *wr = rnbd_srv_writer_find(&map->disk_id);

	if (!wr)
		return -ENOMEM;
	map->writer = wr;
	rnbd_srv_writer_add_name(wr, map);
	spin_lock_irq(&wr->lock);
	if (!wr->users++)
		rnbd_srv_nr_idle--;
	/* No effect if the grace period has begun already. */
	if (!wr->settled)
		queue_delayed_work(rnbd_srv_wq, &wr->settle, rnbd_srv_grace_jiffies());
	spin_unlock_irq(&wr->lock);
	return rnbd_srv_writer_open(map, &map->age);
}

/* Free the state that has been idle for longest, if too many are idle. */
static void rnbd_srv_writer_shrink(void)
{
	struct rnbd_srv_writer *wr;

	if (rnbd_srv_nr_idle <= RNBD_SRV_MAX_IDLE)
		return;
	list_for_each_entry(wr, &rnbd_srv_writers, list) {
		if (wr->users || work_busy(&wr->save))
			continue;
		rnbd_srv_nr_idle--;
		rnbd_srv_writer_free(wr);
		return;
	}
}

/**
 * rnbd_srv_writer_leave() - undo rnbd_srv_writer_join()
 * @map: mapping in any access mode, without I/O
 *
 * The owner is kept.
 *
 * Context: rnbd_srv_lock is held.
 */
void rnbd_srv_writer_leave(struct rnbd_srv_map *map)
{
	struct rnbd_srv_writer *wr = map->writer;
	bool last;

	if (!wr)
		return;
	map->writer = NULL;
	spin_lock_irq(&wr->lock);
	last = !--wr->users;
	if (last && wr->settled)
		mod_delayed_work(rnbd_srv_wq, &wr->settle, rnbd_srv_grace_jiffies());
	spin_unlock_irq(&wr->lock);
	if (!last)
		return;
	list_move_tail(&wr->list, &rnbd_srv_writers);
	rnbd_srv_nr_idle++;
	rnbd_srv_writer_shrink();
}

/**
 * rnbd_srv_writer_again() - handle another OPEN of an open mapping
 * @map: mapping in any access mode
 * @age: age that the client reported. If the mapping is new to the client, the client has not
 *	received the answer to an earlier OPEN, and the mapping gets a new generation
 *
 * Context: rnbd_srv_lock is held.
 */
void rnbd_srv_writer_again(struct rnbd_srv_map *map, const struct rnbd_srv_age *age)
{
	/* Can't fail, since a new mapping is newer than the owner. */
	if (map->writer && !age->generation)
		rnbd_srv_writer_open(map, age);
}

/**
 * rnbd_srv_writer_fill_rsp() - report a mapping's generation, and whether it may write
 * @map: mapping in any access mode
 * @rsp: answer to RNBD_MSG_OPEN
 *
 * Context: process.
 */
void rnbd_srv_writer_fill_rsp(struct rnbd_srv_map *map, struct rnbd_msg_open_rsp *rsp)
{
	struct rnbd_srv_writer *wr = map->writer;

	if (!wr)
		return;
	spin_lock_irq(&wr->lock);
	rsp->generation = cpu_to_le64(map->age.generation);
	if (map->mode == RNBD_ACCESS_HANDOVER && rnbd_srv_replaced(wr, &map->age))
		rsp->gen_flags = RNBD_GEN_FENCED;
	spin_unlock_irq(&wr->lock);
}

/* Get the value of a mapping's attribute "handover". &rnbd_srv_writer.lock is held. */
VISIBLE_IF_KUNIT const char *rnbd_srv_writer_word(const struct rnbd_srv_writer *wr,
						  const struct rnbd_srv_age *age)
{
	if (rnbd_srv_replaced(wr, age))
		return "fenced";
	if (rnbd_srv_held_back(wr, age))
		return "waiting";
	return age->generation == wr->owner ? "writer" : "newer";
}

/**
 * rnbd_srv_writer_state() - describe whether a mapping may write
 * @map: mapping in access mode handover, between rnbd_srv_writer_join() and
 *	rnbd_srv_writer_leave()
 *
 * Context: process.
 * Return: "writer" if the mapping is the owner; "fenced" if a newer mapping is; "newer" if the
 * first write will make the mapping the owner; "waiting" if the grace period holds writes back.
 */
const char *rnbd_srv_writer_state(struct rnbd_srv_map *map)
{
	struct rnbd_srv_writer *wr = map->writer;
	const char *state;

	spin_lock_irq(&wr->lock);
	state = rnbd_srv_writer_word(wr, &map->age);
	spin_unlock_irq(&wr->lock);
	return state;
}

/**
 * rnbd_srv_writer_exit() - free all state
 *
 * Context: process, may sleep; there are no mappings, and none will be opened.
 */
void rnbd_srv_writer_exit(void)
{
	struct rnbd_srv_writer *wr, *next;

	list_for_each_entry_safe(wr, next, &rnbd_srv_writers, list)
		rnbd_srv_writer_free(wr);
}
