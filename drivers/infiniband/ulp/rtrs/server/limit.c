// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Limits of handshakes: how many paths may be being set up at a time, and how much memory they may
 * take, until their clients are admitted; how much of that is for one address; and how soon an
 * address may try again that proved something wrong. Requests beyond them take no memory, queue
 * pair or key. The address is what the client says it is.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "srv.h"

static unsigned int rtrs_srv_max_handshakes = 1024;
module_param_named(max_handshakes, rtrs_srv_max_handshakes, uint, 0644);
MODULE_PARM_DESC(max_handshakes,
		 "Paths that may be being set up at a time; 0: any number, and no delay after wrong secrets (default 1024)");

/*
 * If a limit is reached, handshakes that take longer are ended in favour of an address that has no
 * handshake.
 */
#define RTRS_SRV_SLOW_MS	2000
/* An address may be wrong that often before it has to wait. */
#define RTRS_SRV_FREE_WRONGS	4
#define RTRS_SRV_FIRST_DELAY_MS	100
#define RTRS_SRV_MAX_DELAY_MS	12800
/* When it has been quiet for so long, it is as good as new. */
#define RTRS_SRV_FORGET_MS	60000
/* Of more addresses than that the ones that were wrong longest ago are forgotten. */
#define RTRS_SRV_MAX_OFFENDERS	1024

/**
 * struct rtrs_srv_offender - an address from which something wrong was proved
 * @list: in rtrs_srv_offenders, the last one that was wrong first
 * @srv: where it came in, as two networks may have the same addresses
 * @addr: the address, whatever its port
 * @nr: how often
 * @until: when it may try again, get_jiffies_64()
 */
struct rtrs_srv_offender {
	struct list_head list;
	const struct rtrs_srv *srv;
	struct sockaddr_storage addr;
	unsigned int nr;
	u64 until;
};

/* All under rtrs_srv_lock */
static LIST_HEAD(rtrs_srv_handshakes);
static LIST_HEAD(rtrs_srv_offenders);
static unsigned int rtrs_srv_nr_offenders;

/**
 * rtrs_srv_may_begin() - may one more path of an address be set up?
 * @own: what that address has: paths that are being set up, or their memory
 * @all: what all addresses have
 * @more: what the path adds to both
 * @max: most of all addresses
 *
 * An address may have as many as are left for others: half of them if it comes first, half of the
 * rest if it comes second. A single path may take all memory if there is no other one.
 *
 * Return: true if so.
 */
VISIBLE_IF_KUNIT bool rtrs_srv_may_begin(u64 own, u64 all, u64 more, u64 max)
{
	return all <= max && own + more <= max - all;
}

/**
 * rtrs_srv_delay_ms() - how long has an address to wait that was wrong?
 * @nr: how often it was
 *
 * Return: ms, doubled each time.
 */
VISIBLE_IF_KUNIT unsigned int rtrs_srv_delay_ms(unsigned int nr)
{
	unsigned int doubled = ilog2(RTRS_SRV_MAX_DELAY_MS / RTRS_SRV_FIRST_DELAY_MS);

	if (nr <= RTRS_SRV_FREE_WRONGS)
		return 0;
	return RTRS_SRV_FIRST_DELAY_MS << min(nr - RTRS_SRV_FREE_WRONGS - 1, doubled);
}

static void rtrs_srv_forget(struct rtrs_srv_offender *offender)
{
	list_del(&offender->list);
	kfree(offender);
	rtrs_srv_nr_offenders--;
}

/* Forgets old ones on its way. */
static struct rtrs_srv_offender *rtrs_srv_offender(const struct rtrs_srv *srv,
						   const struct sockaddr_storage *addr)
{
	struct rtrs_srv_offender *offender, *next, *found = NULL;

	lockdep_assert_held(&rtrs_srv_lock);
	list_for_each_entry_safe(offender, next, &rtrs_srv_offenders, list) {
		if (time_after64(get_jiffies_64(),
				 offender->until + msecs_to_jiffies(RTRS_SRV_FORGET_MS)))
			rtrs_srv_forget(offender);
		else if (offender->srv == srv && rtrs_addr_same_host(&offender->addr, addr))
			found = offender;
	}
	return found;
}

static void rtrs_srv_add_offender(struct rtrs_srv_offender *offender)
{
	lockdep_assert_held(&rtrs_srv_lock);
	if (rtrs_srv_nr_offenders == RTRS_SRV_MAX_OFFENDERS)
		rtrs_srv_forget(list_last_entry(&rtrs_srv_offenders, struct rtrs_srv_offender,
						list));
	list_add(&offender->list, &rtrs_srv_offenders);
	rtrs_srv_nr_offenders++;
}

static bool rtrs_srv_handshake_is_slow(const struct rtrs_srv_path *path)
{
	return rtrs_srv_path_state(path) == RTRS_SRV_CONNECTING &&
	       !time_before64(get_jiffies_64(),
			      path->setup.began + msecs_to_jiffies(RTRS_SRV_SLOW_MS));
}

/*
 * Ends at least one that is slow, the oldest first, and as many as have @bytes together; none if
 * that would not be enough. They are in the order in which they began.
 */
static bool rtrs_srv_make_room(u64 bytes)
{
	struct rtrs_srv_path *path;
	u64 slow = 0, freed = 0;

	list_for_each_entry(path, &rtrs_srv_handshakes, setup.handshake)
		if (rtrs_srv_handshake_is_slow(path))
			slow += path->mem.charged;
	if (slow < bytes)
		return false;
	list_for_each_entry(path, &rtrs_srv_handshakes, setup.handshake) {
		if (!rtrs_srv_handshake_is_slow(path))
			continue;
		rtrs_srv_path_error(&path->path, -ETIMEDOUT,
				    "its handshake is slow, and others wait for theirs");
		freed += path->mem.charged;
		if (freed >= bytes)
			return true;
	}
	return false;
}

/**
 * rtrs_srv_handshake_delayed() - does an address have to wait because of wrong proofs?
 * @srv: where the request came in
 * @from: address of the client
 *
 * Context: under rtrs_srv_lock.
 * Return: 0, or -EAGAIN if the client has to try again later.
 */
int rtrs_srv_handshake_delayed(const struct rtrs_srv *srv, const struct sockaddr_storage *from)
{
	struct rtrs_srv_offender *offender;

	if (!READ_ONCE(rtrs_srv_max_handshakes))
		return 0;
	offender = rtrs_srv_offender(srv, from);
	return offender && time_before64(get_jiffies_64(), offender->until) ? -EAGAIN : 0;
}

/**
 * rtrs_srv_sess_has_room() - may a session have one more path, whatever others do?
 * @path: new path, not in its session's list
 * @bytes: memory that it takes until its client is admitted
 *
 * Whoever knows the UUID of a session may add as much memory to it as its connected paths take. So
 * the session can get its paths back while strangers use up what is set aside for handshakes.
 *
 * Context: under rtrs_srv_lock.
 * Return: true if so.
 */
VISIBLE_IF_KUNIT bool rtrs_srv_sess_has_room(const struct rtrs_srv_path *path, u64 bytes)
{
	const struct rtrs_srv_path *other;
	u64 connected = 0;

	list_for_each_entry(other, &path->sess->paths, entry) {
		if (rtrs_srv_path_state(other) == RTRS_SRV_CONNECTED)
			connected += other->cost;
		else if (!other->setup.admitted)
			bytes += other->mem.charged;
	}
	return bytes <= connected;
}

static int rtrs_srv_check_handshakes(const struct rtrs_srv_path *path, u64 bytes,
				     unsigned int max)
{
	u64 nr = 0, nr_own = 0, mem = 0, mem_own = 0, max_mem = rtrs_srv_mem_handshakes();
	const struct rtrs_srv_path *other;
	u64 missing;

	if (bytes > max_mem) {
		rtrs_srv_warn(path, "%u connections take %llu bytes, more than the %llu for paths whose client is not admitted yet: raise max_memory, or let the client have fewer\n",
			      path->conns.nr, bytes, max_mem);
		return -ENOMEM;
	}
	list_for_each_entry(other, &rtrs_srv_handshakes, setup.handshake) {
		nr++;
		mem += other->mem.charged;
		if (other->sess->srv != path->sess->srv ||
		    !rtrs_addr_same_host(&other->addr.dst, &path->addr.dst))
			continue;
		nr_own++;
		mem_own += other->mem.charged;
	}
	if (rtrs_srv_may_begin(nr_own, nr, 1, max) &&
	    rtrs_srv_may_begin(mem_own, mem, bytes, max_mem))
		return 0;
	/* Paths that are ending count, but their memory comes free without ending others. */
	missing = mem + bytes > max_mem ? min(bytes, mem + bytes - max_mem) : 0;
	return !nr_own && rtrs_srv_make_room(missing) ? 0 : -EAGAIN;
}

/**
 * rtrs_srv_handshake_begin() - charge and count a path that is to be set up
 * @path: new path
 * @bytes: memory that it takes until its client is admitted
 *
 * Context: under rtrs_srv_lock.
 * Return: 0; -EAGAIN if the client has to try again later; -ENOMEM if there is too little memory,
 * or if it takes more than all such paths may have.
 */
int rtrs_srv_handshake_begin(struct rtrs_srv_path *path, u64 bytes)
{
	unsigned int max = READ_ONCE(rtrs_srv_max_handshakes);
	bool has_room = rtrs_srv_sess_has_room(path, bytes);
	int ret;

	lockdep_assert_held(&rtrs_srv_lock);
	if (max && !has_room) {
		ret = rtrs_srv_check_handshakes(path, bytes, max);
		if (ret)
			return ret;
	}
	ret = rtrs_srv_path_charge(path, bytes);
	if (ret)
		return ret;
	path->setup.began = get_jiffies_64();
	if (!has_room)
		list_add_tail(&path->setup.handshake, &rtrs_srv_handshakes);
	return 0;
}

/**
 * rtrs_srv_handshake_end() - count a path no more
 * @path: path whose client is admitted, or that is gone; it may have been so before
 *
 * Context: under rtrs_srv_lock.
 */
void rtrs_srv_handshake_end(struct rtrs_srv_path *path)
{
	lockdep_assert_held(&rtrs_srv_lock);
	list_del_init(&path->setup.handshake);
}

/**
 * rtrs_srv_handshake_wrong() - have an address wait before it tries again
 * @path: path whose client proved something wrong; others may have the same address
 *
 * Context: process, may sleep.
 */
void rtrs_srv_handshake_wrong(const struct rtrs_srv_path *path)
{
	const struct rtrs_srv *srv = path->sess->srv;
	/* Before the lock is taken, as others wait for it. Without memory, it may not count. */
	struct rtrs_srv_offender *new = kzalloc(sizeof(*new), GFP_KERNEL);
	struct rtrs_srv_offender *offender;
	unsigned int wait;

	mutex_lock(&rtrs_srv_lock);
	offender = rtrs_srv_offender(srv, &path->addr.dst);
	if (!offender && new) {
		new->srv = srv;
		new->addr = path->addr.dst;
		rtrs_srv_add_offender(new);
		swap(offender, new);
	}
	if (offender) {
		wait = rtrs_srv_delay_ms(++offender->nr);
		offender->until = get_jiffies_64() + msecs_to_jiffies(wait);
		list_move(&offender->list, &rtrs_srv_offenders);
	}
	mutex_unlock(&rtrs_srv_lock);
	kfree(new);
}

/**
 * rtrs_srv_handshake_right() - forget that an address was wrong
 * @path: path whose client has proved who it is
 *
 * Context: process, may sleep.
 */
void rtrs_srv_handshake_right(const struct rtrs_srv_path *path)
{
	struct rtrs_srv_offender *offender;

	mutex_lock(&rtrs_srv_lock);
	offender = rtrs_srv_offender(path->sess->srv, &path->addr.dst);
	if (offender)
		rtrs_srv_forget(offender);
	mutex_unlock(&rtrs_srv_lock);
}

/**
 * rtrs_srv_limit_forget() - free what is kept of addresses
 * @srv: where they came in; it has no paths any more, and listens no more
 *
 * Context: process, may sleep.
 */
void rtrs_srv_limit_forget(const struct rtrs_srv *srv)
{
	struct rtrs_srv_offender *offender, *next;

	mutex_lock(&rtrs_srv_lock);
	list_for_each_entry_safe(offender, next, &rtrs_srv_offenders, list) {
		if (offender->srv == srv)
			rtrs_srv_forget(offender);
	}
	mutex_unlock(&rtrs_srv_lock);
}
