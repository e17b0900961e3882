// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Limits of handshakes. Until a client is admitted, its paths count towards limits on their number
 * and memory, in total and for each client address. Connection requests beyond the limits cause no
 * allocation of memory, queue pairs or keys that lasts. A client's address is not authenticated.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/hashtable.h>
#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "srv.h"

static unsigned int rtrs_srv_max_handshakes = 1024;
module_param_named(max_handshakes, rtrs_srv_max_handshakes, uint, 0644);
MODULE_PARM_DESC(max_handshakes,
		 "Paths that may be being set up at a time; 0: any number (default 1024)");

/*
 * When a limit is reached, handshakes that take longer than this are ended for the benefit of an
 * address without a handshake.
 */
#define RTRS_SRV_SLOW_MS	2000

/* All guarded by rtrs_srv_lock */
static DEFINE_HASHTABLE(rtrs_srv_origins, RTRS_SRV_HASH_BITS);
/* Paths that count towards the limits, in the order in which they began; their number and memory */
static LIST_HEAD(rtrs_srv_handshakes);
static unsigned int rtrs_srv_nr_handshakes;
static u64 rtrs_srv_handshakes_bytes;

/**
 * rtrs_srv_may_begin() - check whether a limit allows one more path of an address
 * @own: usage of that address: number of its paths that are being set up, or their memory
 * @all: usage of all addresses
 * @more: usage of the new path
 * @max: limit for all addresses
 *
 * An address may use as much as it leaves to others: half of the limit if it is the only one, half
 * of the remainder if it is the second one. A single path may use all memory if there is no other
 * path.
 *
 * Return: true if the path may be set up.
 */
VISIBLE_IF_KUNIT bool rtrs_srv_may_begin(u64 own, u64 all, u64 more, u64 max)
{
	return all <= max && own + more <= max - all;
}

/* The address as text includes the scope and excludes the port. */
static u64 rtrs_srv_hash_addr(const struct sockaddr_storage *ss)
{
	struct rtrs_addr addr = { .dst = *ss };
	char str[RTRS_PATH_STR_LEN];

	rtrs_addr_format(&addr, str, sizeof(str));
	return rtrs_srv_hash_name(str);
}

static struct rtrs_srv_origin *rtrs_srv_origin_find(const struct rtrs_srv *srv,
						    const struct sockaddr_storage *addr)
{
	struct rtrs_srv_origin *origin;

	lockdep_assert_held(&rtrs_srv_lock);
	hash_for_each_possible(rtrs_srv_origins, origin, by_addr, rtrs_srv_hash_addr(addr))
		if (origin->srv == srv && rtrs_addr_same_host(&origin->addr, addr))
			return origin;
	return NULL;
}

/* Counts a path in the record of its address: @origin, or the path's own one if that is NULL. */
static void rtrs_srv_origin_get(struct rtrs_srv_path *path, struct rtrs_srv_origin *origin)
{
	struct rtrs_srv_origin *own = path->setup.origin;

	if (origin) {
		kfree(own);
	} else {
		origin = own;
		origin->srv = path->sess->srv;
		origin->addr = path->path.addr.dst;
		hash_add(rtrs_srv_origins, &origin->by_addr, rtrs_srv_hash_addr(&origin->addr));
	}
	origin->nr++;
	origin->bytes += path->mem.charged;
	path->setup.origin = origin;
}

static bool rtrs_srv_handshake_is_slow(const struct rtrs_srv_path *path)
{
	return !time_before64(get_jiffies_64(),
			      path->setup.began + msecs_to_jiffies(RTRS_SRV_SLOW_MS));
}

/*
 * Ends slow handshakes, the oldest first: at least one, and enough to free @bytes. Ends none and
 * returns false if that is not possible.
 */
static bool rtrs_srv_make_room(u64 bytes)
{
	struct rtrs_srv_path *path;
	u64 slow = 0, freed = 0;

	list_for_each_entry(path, &rtrs_srv_handshakes, setup.handshake) {
		if (!rtrs_srv_handshake_is_slow(path))
			break;
		if (rtrs_srv_path_state(path) == RTRS_SRV_CONNECTING)
			slow += path->mem.charged;
	}
	if (slow < bytes)
		return false;
	list_for_each_entry(path, &rtrs_srv_handshakes, setup.handshake) {
		if (!rtrs_srv_handshake_is_slow(path))
			break;
		if (rtrs_srv_path_state(path) != RTRS_SRV_CONNECTING)
			continue;
		rtrs_srv_path_error(&path->path, -ETIMEDOUT,
				    "its handshake is slow, and other clients wait for theirs");
		freed += path->mem.charged;
		if (freed >= bytes)
			return true;
	}
	return false;
}

/**
 * rtrs_srv_sess_has_room() - check whether a session may get a path regardless of the limits
 * @path: new path, not in its session's list yet
 * @bytes: memory of the path until its client is admitted
 *
 * A client that knows the UUID of a session may add paths that use as much memory as the session's
 * connected paths. So the session can reconnect its paths while other clients exhaust the limits of
 * handshakes.
 *
 * Context: under rtrs_srv_lock.
 * Return: true if the path doesn't count towards the limits.
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

/* @origin: the record of the path's address, or NULL */
static int rtrs_srv_check_handshakes(struct rtrs_srv_path *path,
				     const struct rtrs_srv_origin *origin, u64 bytes,
				     unsigned int max)
{
	u64 nr_own = origin ? origin->nr : 0, mem_own = origin ? origin->bytes : 0;
	u64 mem = rtrs_srv_handshakes_bytes, max_mem = rtrs_srv_mem_handshakes();
	u64 missing;

	if (bytes > max_mem) {
		snprintf(path->end_why, sizeof(path->end_why),
			 "%u connections take %llu bytes, more than the %llu for paths whose client is not admitted yet: raise max_memory, or let the client use fewer",
			 path->path.nr_cons, bytes, max_mem);
		return -ENOMEM;
	}
	if (rtrs_srv_may_begin(nr_own, rtrs_srv_nr_handshakes, 1, max) &&
	    rtrs_srv_may_begin(mem_own, mem, bytes, max_mem))
		return 0;
	/* Memory of ending paths still counts, but becomes free without ending others. */
	missing = mem + bytes > max_mem ? min(bytes, mem + bytes - max_mem) : 0;
	return !nr_own && rtrs_srv_make_room(missing) ? 0 : -EAGAIN;
}

/**
 * rtrs_srv_handshake_begin() - charge a path that is to be set up, and count it towards the limits
 * @path: new path
 * @bytes: memory of the path until its client is admitted
 *
 * Context: under rtrs_srv_lock.
 * Return: 0; -EAGAIN if the client has to try again later; -ENOMEM if there is too little memory,
 * or @bytes exceeds the limit for all such paths: then &rtrs_srv_path.end_why is set.
 */
int rtrs_srv_handshake_begin(struct rtrs_srv_path *path, u64 bytes)
{
	unsigned int max = READ_ONCE(rtrs_srv_max_handshakes);
	bool has_room = rtrs_srv_sess_has_room(path, bytes);
	struct rtrs_srv_origin *origin;
	int ret;

	lockdep_assert_held(&rtrs_srv_lock);
	origin = rtrs_srv_origin_find(path->sess->srv, &path->path.addr.dst);
	if (max && !has_room) {
		ret = rtrs_srv_check_handshakes(path, origin, bytes, max);
		if (ret)
			return ret;
	}
	ret = rtrs_srv_mem_try_charge(&path->mem.charged, bytes, path->end_why);
	if (ret)
		return ret;
	path->setup.began = get_jiffies_64();
	if (has_room)
		return 0;
	rtrs_srv_origin_get(path, origin);
	list_add_tail(&path->setup.handshake, &rtrs_srv_handshakes);
	rtrs_srv_nr_handshakes++;
	rtrs_srv_handshakes_bytes += bytes;
	return 0;
}

/**
 * rtrs_srv_handshake_end() - stop counting a path towards the limits
 * @path: path whose client is admitted, or that has ended; repeated calls have no effect.
 *	&rtrs_srv_mem.charged has not changed since rtrs_srv_handshake_begin()
 *
 * Context: under rtrs_srv_lock.
 */
void rtrs_srv_handshake_end(struct rtrs_srv_path *path)
{
	struct rtrs_srv_origin *origin = path->setup.origin;

	lockdep_assert_held(&rtrs_srv_lock);
	if (list_empty(&path->setup.handshake))
		return;
	list_del_init(&path->setup.handshake);
	rtrs_srv_nr_handshakes--;
	rtrs_srv_handshakes_bytes -= path->mem.charged;
	path->setup.origin = NULL;
	origin->bytes -= path->mem.charged;
	if (!--origin->nr) {
		hash_del(&origin->by_addr);
		kfree(origin);
	}
}
