// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Limits of handshakes. Until a client is admitted, its paths count towards limits on their number
 * and memory, in total and for each client address. Connection requests beyond the limits cause no
 * allocation of memory, queue pairs or keys that lasts. A client's address is not authenticated.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/module.h>

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

/* Paths that count towards the limits, in the order in which they began; under rtrs_srv_lock */
static LIST_HEAD(rtrs_srv_handshakes);

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

/* Checks whether the path may be ended for the benefit of an address without a handshake. */
static bool rtrs_srv_handshake_is_slow(const struct rtrs_srv_path *path)
{
	return rtrs_srv_path_state(path) == RTRS_SRV_CONNECTING &&
	       time_after(jiffies, path->setup.began + msecs_to_jiffies(RTRS_SRV_SLOW_MS));
}

/* Ends slow handshakes, the oldest first: at least one, and enough to free @missing bytes. */
static int rtrs_srv_make_room(u64 missing)
{
	struct rtrs_srv_path *path;

	list_for_each_entry(path, &rtrs_srv_handshakes, setup.handshake) {
		if (!rtrs_srv_handshake_is_slow(path))
			continue;
		rtrs_srv_path_error(&path->path, -ETIMEDOUT,
				    "its handshake is slow, and other clients wait for theirs");
		if (path->mem.charged >= missing)
			return 0;
		missing -= path->mem.charged;
	}
	return -EAGAIN;
}

static int rtrs_srv_check_handshakes(struct rtrs_srv_path *path, u64 bytes, unsigned int max)
{
	u64 max_mem = rtrs_srv_mem_handshakes(), nr = 0, nr_own = 0, mem = 0, mem_own = 0;
	const struct rtrs_srv_path *other;
	u64 slow = 0, missing;

	if (bytes > max_mem) {
		snprintf(path->end_why, sizeof(path->end_why),
			 "%u connections take %llu bytes, more than the %llu for paths whose client is not admitted yet: raise max_memory, or let the client use fewer",
			 path->path.nr_cons, bytes, max_mem);
		return -ENOMEM;
	}
	list_for_each_entry(other, &rtrs_srv_handshakes, setup.handshake) {
		nr++;
		mem += other->mem.charged;
		if (rtrs_srv_handshake_is_slow(other))
			slow += other->mem.charged;
		/* Different networks may use the same addresses. */
		if (other->sess->srv == path->sess->srv &&
		    rtrs_addr_same_host(&other->path.addr.dst, &path->path.addr.dst)) {
			nr_own++;
			mem_own += other->mem.charged;
		}
	}
	if (rtrs_srv_may_begin(nr_own, nr, 1, max) &&
	    rtrs_srv_may_begin(mem_own, mem, bytes, max_mem))
		return 0;
	/* Memory of ending paths still counts, but becomes free without ending others. */
	missing = mem + bytes > max_mem ? min(bytes, mem + bytes - max_mem) : 0;
	return nr_own || slow < missing ? -EAGAIN : rtrs_srv_make_room(missing);
}

/**
 * rtrs_srv_handshake_begin() - charge a path that is to be set up, and count it towards the limits
 * @path: new path
 * @bytes: memory of the path until its client is admitted
 *
 * The path counts while it is in the list &rtrs_srv_setup.handshake.
 *
 * Context: under rtrs_srv_lock.
 * Return: 0; -EAGAIN if the client has to try again later; -ENOMEM if there is too little memory,
 * or @bytes exceeds the limit for all such paths: then &rtrs_srv_path.end_why is set.
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
	ret = rtrs_srv_mem_try_charge(&path->mem.charged, bytes, path->end_why);
	if (ret)
		return ret;
	path->setup.began = jiffies;
	if (!has_room)
		list_add_tail(&path->setup.handshake, &rtrs_srv_handshakes);
	return 0;
}
