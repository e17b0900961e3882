// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Slots. A slot is held by one request at a time, across all paths of the session. If a path fails
 * while the disk still processes its requests, the client may use their slots on another path, to
 * resend them or for new requests, long before the disk has finished the old ones. Such a new
 * request waits for the old one, so that the two never run concurrently.
 *
 * A client with fencing doesn't have to wait if the disk delays such requests for long: it fences
 * the old path before it resends a write. It uses other slots of the old path at once,
 * for example the slots of failed reads. So stuck requests lose their slots, see
 * rtrs_srv_slots_abandon().
 *
 * Taking and releasing a slot are one cmpxchg() each, unless a request waits for the slot.
 */
#include <linux/slab.h>

#include "srv.h"

/* Flag in rtrs_srv_slot.holder: a request waits, so the release of the slot takes the lock. */
#define RTRS_SRV_SLOT_AWAITED	1UL

/**
 * rtrs_srv_slots_init() - initialize a session's members for slots
 * @sess: a new session
 */
void rtrs_srv_slots_init(struct rtrs_srv_sess *sess)
{
	spin_lock_init(&sess->slots.lock);
	INIT_LIST_HEAD(&sess->slots.resumed);
}

/**
 * rtrs_srv_slot_next_resumed() - dequeue a request that waited for its slot and now holds it
 * @sess: session of the request
 *
 * Context: the session's resume work.
 * Return: the request, which has to begin, or NULL.
 */
struct rtrs_srv_io *rtrs_srv_slot_next_resumed(struct rtrs_srv_sess *sess)
{
	struct rtrs_srv_io *io;

	spin_lock_irq(&sess->slots.lock);
	io = list_first_entry_or_null(&sess->slots.resumed, struct rtrs_srv_io,
				      pending);
	if (io)
		list_del_init(&io->pending);
	spin_unlock_irq(&sess->slots.lock);
	return io;
}

/**
 * rtrs_srv_slots_alloc() - allocate a session's slots
 * @sess: session whose queue depth is known; nothing is done if the slots are allocated
 *
 * Context: process, under the session's up_lock.
 * Return: 0 or -ENOMEM.
 */
int rtrs_srv_slots_alloc(struct rtrs_srv_sess *sess)
{
	struct rtrs_srv_slot *slot;
	int ret;

	if (sess->slots.slot)
		return 0;
	slot = kvcalloc(sess->queue_depth, sizeof(*slot), GFP_KERNEL);
	if (!slot)
		return -ENOMEM;
	ret = rtrs_srv_mem_charge(&sess->charged, sess->queue_depth * sizeof(*slot),
				  sess->label, &sess->log);
	if (ret) {
		kvfree(slot);
		return ret;
	}
	sess->slots.slot = slot;
	return 0;
}

/**
 * rtrs_srv_slots_free() - undo rtrs_srv_slots_alloc(), if it was called
 * @sess: session without paths
 */
void rtrs_srv_slots_free(struct rtrs_srv_sess *sess)
{
	flush_work(&sess->slots.resume_work);
	kvfree(sess->slots.slot);
	sess->slots.slot = NULL;
}

static int rtrs_srv_slot_wait(struct rtrs_srv_sess *sess,
			      struct rtrs_srv_slot *slot,
			      struct rtrs_srv_io *io, struct rtrs_srv_con *con,
			      u32 off, struct rtrs_srv_io **evicted)
{
	unsigned long old;

	lockdep_assert_held(&sess->slots.lock);
	if (slot->waiter == io)
		return -EPROTO;
	/* A second waiter replaces the first one, whose path the client has given up. */
	*evicted = slot->waiter;
	slot->waiter = NULL;
	do {
		old = READ_ONCE(slot->holder);
		if ((old & ~RTRS_SRV_SLOT_AWAITED) == (unsigned long)io)
			return -EPROTO;
	} while (cmpxchg(&slot->holder, old,
			 old ? old | RTRS_SRV_SLOT_AWAITED :
			 (unsigned long)io) != old);
	io->con = con;
	io->hdr_off = off;
	if (!old)
		return 0;
	slot->waiter = io;
	return -EINPROGRESS;
}

/**
 * rtrs_srv_slot_take() - take the slot of an arriving request
 * @io: io of the slot, on the path of the request
 * @con: connection on which the request arrived
 * @off: offset of the request's header in the chunk
 *
 * Context: any.
 * Return: 0 if the request holds the slot; -EINPROGRESS if it waits, and the session's resume work
 * will begin it; -EPROTO if an earlier request in this slot on this path has not been answered.
 */
int rtrs_srv_slot_take(struct rtrs_srv_io *io, struct rtrs_srv_con *con,
		       u32 off)
{
	struct rtrs_srv_sess *sess = con->path->sess;
	struct rtrs_srv_slot *slot = &sess->slots.slot[io->slot];
	struct rtrs_srv_io *evicted = NULL;
	struct rtrs_srv_path *path;
	unsigned long flags;
	int ret;

	if (likely(!cmpxchg(&slot->holder, 0, (unsigned long)io))) {
		io->con = con;
		io->hdr_off = off;
		return 0;
	}
	spin_lock_irqsave(&sess->slots.lock, flags);
	ret = rtrs_srv_slot_wait(sess, slot, io, con, off, &evicted);
	spin_unlock_irqrestore(&sess->slots.lock, flags);
	if (evicted) {
		path = evicted->con->path;
		rtrs_srv_path_error(&path->path, -ECONNRESET,
				    "the client uses its slots on another path");
		percpu_ref_put(&path->ios.ref);
	}
	return ret;
}

/**
 * rtrs_srv_slot_release() - release the slot of a request, or pass it to a waiting request
 * @io: io of the request; nothing is done if it doesn't hold its slot. After a request is finished,
 *	the caller must not access it any more
 *
 * Context: any; the caller holds a reference on the path, which keeps the session.
 */
void rtrs_srv_slot_release(struct rtrs_srv_io *io)
{
	struct rtrs_srv_sess *sess = io->con->path->sess;
	struct rtrs_srv_slot *slot = &sess->slots.slot[io->slot];
	struct rtrs_srv_io *next;
	unsigned long flags;

	if (likely(cmpxchg(&slot->holder, (unsigned long)io, 0) ==
		   (unsigned long)io))
		return;
	spin_lock_irqsave(&sess->slots.lock, flags);
	if (slot->holder != ((unsigned long)io | RTRS_SRV_SLOT_AWAITED)) {
		spin_unlock_irqrestore(&sess->slots.lock, flags);
		return;
	}
	next = slot->waiter;
	slot->waiter = NULL;
	/* The next holder sees all changes made by the previous one. */
	smp_store_release(&slot->holder, (unsigned long)next);
	if (next) {
		list_add_tail(&next->pending, &sess->slots.resumed);
		queue_work(system_dfl_wq, &sess->slots.resume_work);
	}
	spin_unlock_irqrestore(&sess->slots.lock, flags);
}

/**
 * rtrs_srv_slots_abandon() - release the slots of stuck requests for use by other paths
 * @path: closing path of a client with fencing; only the upper layer has requests of it
 *
 * Context: any; @path is in its session.
 */
void rtrs_srv_slots_abandon(struct rtrs_srv_path *path)
{
	struct rtrs_srv_io *io;
	u32 i;

	for (i = 0; path->ios.mem && i < path->sess->queue_depth; i++) {
		io = rtrs_srv_path_io(path, i);
		if (io->con)
			rtrs_srv_slot_release(io);
	}
}

/**
 * rtrs_srv_slot_forget() - end a request's wait for its slot
 * @sess: session of the request
 * @io: io of a path that is closing
 *
 * Return: true if the request waited; it then belongs to the caller, and doesn't hold the slot.
 */
bool rtrs_srv_slot_forget(struct rtrs_srv_sess *sess, struct rtrs_srv_io *io)
{
	struct rtrs_srv_slot *slot = &sess->slots.slot[io->slot];
	unsigned long flags;
	bool waited;

	spin_lock_irqsave(&sess->slots.lock, flags);
	waited = slot->waiter == io;
	if (waited)
		slot->waiter = NULL;
	spin_unlock_irqrestore(&sess->slots.lock, flags);
	return waited;
}
