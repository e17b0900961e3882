// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RNBD server: which of several mappings of a disk or file may write, in access mode handover.
 *
 * Mappings have an age: a generation, given when they are opened for the first time. The newest
 * one that has written is the writer. A newer one becomes the writer by its first write: from then
 * on writes of older ones fail with -EBADE, for ever, and when those that the server has in
 * hand are done, that first write begins. Three numbers tell all of that: the writer's generation,
 * how many writes it has in hand, and how many older ones have.
 *
 * Recovery
 *
 * A client whose session was lost opens its mappings again, each with its generation. What
 * is known here of a disk outlives its mappings, but not the server. Until clients have had time to
 * come back and to say that they have written, as a newer one may be on its way, writes of what was
 * opened again wait. A mapping that is newer than all waits for nobody.
 *
 * Generations are the server's time. They are taken from clients as they are, to order the
 * clients among themselves: a wrong one can only harm those who share the disk in this mode,
 * and a new mapping is always newer.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/fs.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "rnbd-srv.h"

/* Disks and files without mappings of which the writer is remembered. */
#define RNBD_SRV_MAX_IDLE	1024

static unsigned int rnbd_srv_grace = 40;
module_param_named(handover_grace, rnbd_srv_grace, uint, 0644);
MODULE_PARM_DESC(handover_grace,
		 "Seconds after a device was first opened, for which writes in access_mode=handover of clients that come back wait for newer writers to come back; more than it takes clients to reconnect (default: 40)");

/* The oldest idle ones come first. These three are protected by rnbd_srv_lock. */
static LIST_HEAD(rnbd_srv_handovers);
static unsigned int rnbd_srv_nr_idle;
static u64 rnbd_srv_generation;

/* From here on older ones can't write. */
static void rnbd_srv_handover_pass(struct rnbd_srv_handover *ho, u64 writer)
{
	ho->nr_old += ho->nr_writes;
	ho->nr_writes = 0;
	ho->writer = writer;
	ho->granted = false;
	ho->newest = max(ho->newest, writer);
}

/* Its writes wait: a newer mapping may have written, of which this server doesn't know yet. */
static bool rnbd_srv_handover_waits(const struct rnbd_srv_handover *ho,
				    const struct rnbd_srv_age *age)
{
	return !age->known && !ho->settled &&
	       !(age->generation == ho->writer && ho->granted);
}

/**
 * rnbd_srv_handover_judge() - may a write begin?
 * @ho: who may write; counts it, if it may
 * @age: of its mapping
 *
 * Context: &rnbd_srv_handover.lock is held, or nobody else knows @ho.
 * Return: 0, -EAGAIN if it has to wait, -EBADE if a newer mapping has written.
 */
VISIBLE_IF_KUNIT int rnbd_srv_handover_judge(struct rnbd_srv_handover *ho,
					     const struct rnbd_srv_age *age)
{
	bool writer = age->generation == ho->writer;

	if (age->generation < ho->writer)
		return -EBADE;
	if (rnbd_srv_handover_waits(ho, age))
		return -EAGAIN;
	if (!writer)
		rnbd_srv_handover_pass(ho, age->generation);
	ho->granted = true;
	if (ho->nr_old)
		return -EAGAIN;
	ho->nr_writes++;
	return 0;
}

/**
 * rnbd_srv_handover_done() - a write in hand is done
 * @ho: who may write
 * @writer: generation that its mapping had when it began
 *
 * Context: &rnbd_srv_handover.lock is held, or nobody else knows @ho.
 * Return: true if it was the last one that others wait for.
 */
VISIBLE_IF_KUNIT bool rnbd_srv_handover_done(struct rnbd_srv_handover *ho, u64 writer)
{
	if (writer == ho->writer) {
		ho->nr_writes--;
		return false;
	}
	return !--ho->nr_old;
}

static u64 rnbd_srv_next_generation(const struct rnbd_srv_handover *ho)
{
	rnbd_srv_generation = max_t(u64, ktime_get_real_ns(), rnbd_srv_generation + 1);
	return max(rnbd_srv_generation, ho->newest + 1);
}

/**
 * rnbd_srv_handover_add() - one more mapping, or one that is there is opened as a new one
 * @ho: who may write
 * @age: what its client said; a new one gets its generation
 *
 * A client that says it has written makes its mapping the writer; one that says it can't write,
 * because a newer one has written, tells that there is such a one.
 *
 * Context: rnbd_srv_lock, and &rnbd_srv_handover.lock, are held, or nobody else knows @ho.
 */
VISIBLE_IF_KUNIT void rnbd_srv_handover_add(struct rnbd_srv_handover *ho,
					    struct rnbd_srv_age *age)
{
	u64 writer = 0;

	age->known = !age->generation;
	age->generation = age->known ? rnbd_srv_next_generation(ho) :
				       min_t(u64, age->generation, S64_MAX);
	if (age->flags & RNBD_HANDOVER_FENCED)
		writer = age->generation + 1;
	else if (age->flags & RNBD_HANDOVER_WRITER)
		writer = age->generation;
	if (writer > ho->writer)
		rnbd_srv_handover_pass(ho, writer);
	ho->newest = max(ho->newest, age->generation);
}

/* Have requests that were parked judged again, each by its mapping's workers. Any context. */
static void rnbd_srv_handover_kick(struct list_head *parked)
{
	struct rnbd_srv_req *req, *next;

	list_for_each_entry_safe(req, next, parked, parked)
		queue_work(req->map->wq, &req->work);
}

/* Something has changed that they may have waited for, or that has them fail. */
static void rnbd_srv_handover_kick_all(struct rnbd_srv_handover *ho)
{
	unsigned long flags;
	LIST_HEAD(parked);

	spin_lock_irqsave(&ho->lock, flags);
	list_splice_init(&ho->parked, &parked);
	spin_unlock_irqrestore(&ho->lock, flags);
	rnbd_srv_handover_kick(&parked);
}

/**
 * rnbd_srv_handover_close() - have nothing of a mapping wait any more
 * @map: mapping in any access mode, whose closing bit is set
 *
 * Context: any.
 */
void rnbd_srv_handover_close(struct rnbd_srv_map *map)
{
	if (map->handover)
		rnbd_srv_handover_kick_all(map->handover);
}

static void rnbd_srv_settle_work(struct work_struct *work)
{
	struct rnbd_srv_handover *ho = container_of(to_delayed_work(work),
						    struct rnbd_srv_handover, settle);

	spin_lock_irq(&ho->lock);
	ho->settled = true;
	spin_unlock_irq(&ho->lock);
	rnbd_srv_handover_kick_all(ho);
}

/**
 * rnbd_srv_handover_begin() - a write of a mapping in access mode handover wants to begin
 * @req: the write; its work item is to ask again
 *
 * Context: any.
 * Return: 0 if it may, and rnbd_srv_handover_end() has to follow; -EAGAIN if its work item is
 * queued later; -EBADE if a newer mapping has written; -ENOENT if it would have to wait, and the
 * mapping is being closed.
 */
int rnbd_srv_handover_begin(struct rnbd_srv_req *req)
{
	struct rnbd_srv_map *map = req->map;
	struct rnbd_srv_handover *ho = map->handover;
	unsigned long flags;
	int err;

	spin_lock_irqsave(&ho->lock, flags);
	err = rnbd_srv_handover_judge(ho, &map->age);
	if (err == -EAGAIN && test_bit(0, &map->closing))
		err = -ENOENT;
	if (!err)
		req->writer = map->age.generation;
	else if (err == -EAGAIN)
		list_add_tail(&req->parked, &ho->parked);
	spin_unlock_irqrestore(&ho->lock, flags);
	return err;
}

/**
 * rnbd_srv_handover_end() - a write is done
 * @req: the write, for which rnbd_srv_handover_begin() returned 0
 *
 * Context: any.
 */
void rnbd_srv_handover_end(struct rnbd_srv_req *req)
{
	struct rnbd_srv_handover *ho = req->map->handover;
	unsigned long flags;
	LIST_HEAD(parked);

	spin_lock_irqsave(&ho->lock, flags);
	if (rnbd_srv_handover_done(ho, req->writer))
		list_splice_init(&ho->parked, &parked);
	spin_unlock_irqrestore(&ho->lock, flags);
	req->writer = 0;
	rnbd_srv_handover_kick(&parked);
}

static void rnbd_srv_handover_open(struct rnbd_srv_map *map, const struct rnbd_srv_age *age)
{
	struct rnbd_srv_handover *ho = map->handover;

	spin_lock_irq(&ho->lock);
	map->age = *age;
	rnbd_srv_handover_add(ho, &map->age);
	spin_unlock_irq(&ho->lock);
	rnbd_srv_handover_kick_all(ho);
}

static void rnbd_srv_handover_free(struct rnbd_srv_handover *ho)
{
	list_del(&ho->list);
	cancel_delayed_work_sync(&ho->settle);
	kfree(ho);
}

/**
 * rnbd_srv_handover_init() - nobody has written yet
 * @ho: who may write, zeroed
 */
VISIBLE_IF_KUNIT void rnbd_srv_handover_init(struct rnbd_srv_handover *ho)
{
	spin_lock_init(&ho->lock);
	INIT_LIST_HEAD(&ho->parked);
	INIT_DELAYED_WORK(&ho->settle, rnbd_srv_settle_work);
}

static struct rnbd_srv_handover *rnbd_srv_handover_create(const struct inode *inode)
{
	struct rnbd_srv_handover *ho = kzalloc(sizeof(*ho), GFP_KERNEL);

	if (!ho)
		return NULL;
	rnbd_srv_handover_init(ho);
	ho->dev = inode->i_sb->s_dev;
	ho->ino = inode->i_ino;
	ho->inode_generation = inode->i_generation;
	rnbd_srv_nr_idle++;
	list_add_tail(&ho->list, &rnbd_srv_handovers);
	queue_delayed_work(rnbd_srv_wq, &ho->settle,
			   msecs_to_jiffies(1000 * READ_ONCE(rnbd_srv_grace)));
	return ho;
}

static struct rnbd_srv_handover *rnbd_srv_handover_find(const struct inode *inode)
{
	struct rnbd_srv_handover *ho;

	list_for_each_entry(ho, &rnbd_srv_handovers, list) {
		if (ho->dev == inode->i_sb->s_dev && ho->ino == inode->i_ino &&
		    ho->inode_generation == inode->i_generation)
			return ho;
	}
	return rnbd_srv_handover_create(inode);
}

/**
 * rnbd_srv_handover_join() - a mapping is opened
 * @map: mapping in access mode handover, that does no I/O yet, with the age that its client said
 * @inode: tells which disk or file it is
 *
 * Context: rnbd_srv_lock is held.
 * Return: 0 or -ENOMEM.
 */
int rnbd_srv_handover_join(struct rnbd_srv_map *map, const struct inode *inode)
{
	struct rnbd_srv_handover *ho = rnbd_srv_handover_find(inode);

	if (!ho)
		return -ENOMEM;
	if (!ho->users++)
		rnbd_srv_nr_idle--;
	map->handover = ho;
	rnbd_srv_handover_open(map, &map->age);
	return 0;
}

/**
 * rnbd_srv_handover_leave() - undo rnbd_srv_handover_join()
 * @map: mapping in any access mode, without I/O
 *
 * Who has written is remembered.
 *
 * Context: rnbd_srv_lock is held.
 */
void rnbd_srv_handover_leave(struct rnbd_srv_map *map)
{
	struct rnbd_srv_handover *ho = map->handover;

	if (!ho || --ho->users)
		return;
	list_move_tail(&ho->list, &rnbd_srv_handovers);
	if (rnbd_srv_nr_idle++ < RNBD_SRV_MAX_IDLE)
		return;
	list_for_each_entry(ho, &rnbd_srv_handovers, list) {
		if (!ho->users)
			break;
	}
	rnbd_srv_nr_idle--;
	rnbd_srv_handover_free(ho);
}

/**
 * rnbd_srv_handover_again() - a client opens a mapping that it has open
 * @map: mapping in any access mode
 * @age: what the client says now; if that it is a new mapping, it has not got the answer when it
 *	opened this one
 *
 * Context: rnbd_srv_lock is held.
 */
void rnbd_srv_handover_again(struct rnbd_srv_map *map, const struct rnbd_srv_age *age)
{
	if (map->handover && !age->generation)
		rnbd_srv_handover_open(map, age);
}

/**
 * rnbd_srv_handover_fill_rsp() - tell a client its mapping's age, and whether it can write
 * @map: mapping in any access mode
 * @rsp: answer to RNBD_MSG_OPEN
 *
 * Context: process.
 */
void rnbd_srv_handover_fill_rsp(struct rnbd_srv_map *map, struct rnbd_msg_open_rsp *rsp)
{
	struct rnbd_srv_handover *ho = map->handover;

	if (!ho)
		return;
	spin_lock_irq(&ho->lock);
	rsp->generation = cpu_to_le64(map->age.generation);
	if (map->age.generation < ho->writer)
		rsp->handover = RNBD_HANDOVER_FENCED;
	spin_unlock_irq(&ho->lock);
}

/* What an opening of this age may do, as handover in sysfs says it; @ho is locked. */
VISIBLE_IF_KUNIT const char *rnbd_srv_handover_word(const struct rnbd_srv_handover *ho,
						    const struct rnbd_srv_age *age)
{
	if (age->generation < ho->writer)
		return "fenced";
	if (rnbd_srv_handover_waits(ho, age))
		return "waiting";
	return age->generation == ho->writer ? "writer" : "newer";
}

/**
 * rnbd_srv_handover_state() - may a mapping write?
 * @map: mapping in access mode handover, that has joined, and not left
 *
 * Context: process.
 * Return: "writer" if it is the last one that has written, "fenced" if a newer one has, "newer" if
 * its first write makes it the writer, "waiting" if its writes wait for newer ones to come back.
 */
const char *rnbd_srv_handover_state(struct rnbd_srv_map *map)
{
	struct rnbd_srv_handover *ho = map->handover;
	const char *state;

	spin_lock_irq(&ho->lock);
	state = rnbd_srv_handover_word(ho, &map->age);
	spin_unlock_irq(&ho->lock);
	return state;
}

/**
 * rnbd_srv_handover_exit() - forget who has written
 *
 * Context: process, may sleep; there are no mappings, and will be none.
 */
void rnbd_srv_handover_exit(void)
{
	struct rnbd_srv_handover *ho, *next;

	list_for_each_entry_safe(ho, next, &rnbd_srv_handovers, list)
		rnbd_srv_handover_free(ho);
}
