/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RNBD server: access rules. A tenant has its own volumes and hosts, and a network namespace in
 * which its clients connect. The first tenant always exists, and owns the volumes and hosts outside
 * of tenants/.
 */
#ifndef RNBD_SRV_RULES_H
#define RNBD_SRV_RULES_H

#include <linux/configfs.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/sizes.h>
#include <linux/uuid.h>
#include <linux/workqueue.h>

#include "rnbd-srv.h"

/* Most address prefixes of a host: their text in configfs must fit in a page. */
#define RNBD_SRV_HOST_PREFIXES	64

/* Most keys of a host: an old and a new one, so that keys can be changed without interruption */
#define RNBD_SRV_HOST_KEYS	2

/**
 * enum rnbd_srv_limit - limits of a host, for all its sessions together
 * @RNBD_SRV_MAX_SESSIONS: sessions
 * @RNBD_SRV_MAX_MEMORY: memory of all paths in bytes, without the data of large requests
 * @RNBD_SRV_NR_LIMITS: number of limits
 */
enum rnbd_srv_limit {
	RNBD_SRV_MAX_SESSIONS,
	RNBD_SRV_MAX_MEMORY,
	RNBD_SRV_NR_LIMITS
};

/**
 * struct rnbd_srv_host - a client, as configured by the administrator
 * @list: entry in &rnbd_srv_rules.hosts; written under rnbd_srv_lock as well
 * @rules: rules of the host's tenant
 * @item: directory in hosts/
 * @sessions: pattern of the names of the host's sessions, see glob_match()
 * @prefixes: prefixes of the host's addresses; NULL if never set
 * @nr_prefixes: number of @prefixes; 0 allows any address
 * @keys: secrets, one of which the client must prove to know; unused entries at the end are NULL.
 *	Without any, no proof is needed. These are copies, which do not change with @sources
 * @sources: keys in the administrator's keyrings from which @keys were copied
 * @limits: limits, indexed by enum rnbd_srv_limit; 0: unlimited. Read without a lock
 * @cgroup: path of the cgroup to which I/O is charged, or NULL
 * @css: I/O controller of @cgroup, or NULL
 *
 * All fields except @rules and @item are protected by rnbd_srv_rules_lock.
 */
struct rnbd_srv_host {
	struct list_head list;
	struct rnbd_srv_rules *rules;
	struct config_item item;
	char sessions[RTRS_NAME_LEN];
	struct rtrs_prefix *prefixes;
	unsigned int nr_prefixes;
	struct key *keys[RNBD_SRV_HOST_KEYS];
	struct key *sources[RNBD_SRV_HOST_KEYS];
	u64 limits[RNBD_SRV_NR_LIMITS];
	char *cgroup;
	struct cgroup_subsys_state *css;
};

/**
 * struct rnbd_srv_allow - a link from a volume to a host that may open it
 * @list: entry in &rnbd_srv_volume.allowed
 * @host: the host; configfs keeps it while the link exists
 */
struct rnbd_srv_allow {
	struct list_head list;
	const struct rnbd_srv_host *host;
};

/**
 * struct rnbd_srv_volume - a disk or file that clients open by a name instead of its path
 * @list: entry in &rnbd_srv_rules.volumes
 * @rules: rules of the volume's tenant
 * @group: directory in volumes/, with the name of the volume
 * @hosts: subdirectory of links to hosts
 * @allowed: list of struct rnbd_srv_allow, one for each link
 * @nr: cursor after this volume in a list of volumes; greater than @nr of older volumes
 * @uuid: UUID of the volume
 * @path: absolute path of the disk or file; NULL if not set
 * @modes: bit mask of the allowed access modes
 * @exclusive: only one session may open the volume at a time
 * @allow_any_host: any client may open the volume
 * @enabled: the volume can be opened
 * @gone: the directory has been removed
 *
 * All fields except @rules, @group, @hosts and @nr are protected by rnbd_srv_rules_lock.
 */
struct rnbd_srv_volume {
	struct list_head list;
	struct rnbd_srv_rules *rules;
	struct config_group group;
	struct config_group hosts;
	struct list_head allowed;
	u64 nr;
	uuid_t uuid;
	char *path;
	unsigned long modes;
	bool exclusive;
	bool allow_any_host;
	bool enabled;
	bool gone;
};

/**
 * struct rnbd_srv_rules - the rules of a tenant
 * @volumes: list of struct rnbd_srv_volume
 * @hosts: list of struct rnbd_srv_host
 * @listed: only volumes can be opened
 * @stopping: the tenant's port is being closed; written under the tenant's lock, read without it
 *
 * All fields except @stopping are protected by rnbd_srv_rules_lock, which is taken under
 * rnbd_srv_lock.
 */
struct rnbd_srv_rules {
	struct list_head volumes;
	struct list_head hosts;
	bool listed;
	bool stopping;
};

/**
 * struct rnbd_srv_tenant - owner of rules, with a network namespace for its clients
 * @rules: rules of the tenant
 * @group: directory in tenants/; all 0 for the first tenant
 * @volumes: directory of the volumes
 * @hosts: directory of the hosts
 * @lock: held while the tenant's port is opened or closed; protects the following fields
 * @rtrs: the transport's server; NULL if the port is closed. Also read without the lock
 * @net: network namespace of the port, referenced; NULL if the port is closed
 * @netns: number of @net, or 0. Also read without the lock
 * @net_work: closes the port if @net has no processes any more
 */
struct rnbd_srv_tenant {
	struct rnbd_srv_rules rules;
	struct config_group group;
	struct config_group volumes;
	struct config_group hosts;
	struct mutex lock; /* the following fields */
	struct rtrs_srv *rtrs;
	struct net *net;
	unsigned int netns;
	struct delayed_work net_work;
};

/* Protects the rules of all tenants, as far as stated above */
extern struct mutex rnbd_srv_rules_lock;
extern struct rnbd_srv_tenant rnbd_srv_first;
extern const char * const rnbd_srv_limit_names[RNBD_SRV_NR_LIMITS];

/* Access modes of a new volume */
#define RNBD_SRV_ALL_MODES	(BIT(RNBD_ACCESS_MODES) - 1)

/* Get the shift from a value in configfs to a limit: memory is in MiB there, but in bytes here. */
static inline unsigned int rnbd_srv_limit_shift(enum rnbd_srv_limit limit)
{
	return limit == RNBD_SRV_MAX_MEMORY ? 20 : 0;
}

/* Most data of an answer to LIST, and most volumes in it */
#define RNBD_SRV_LIST_ROOM	SZ_4K
#define RNBD_SRV_LIST_VOLUMES	\
	((RNBD_SRV_LIST_ROOM - sizeof(struct rnbd_msg_list_rsp)) / \
	 (sizeof(struct rnbd_list_entry) + 8))

/* Maximum number of volumes that are checked for LIST without releasing the rules' lock */
#define RNBD_SRV_LIST_SCAN	1024

/**
 * struct rnbd_srv_list - answer to LIST
 * @room: bytes of @data that the client can receive
 * @len: bytes of @data that are used
 * @nr: number of volumes in @data
 * @cursor: &rnbd_srv_volume.nr of the last one
 * @paths: their paths
 * @data: the answer, zeroed beyond @len
 */
struct rnbd_srv_list {
	size_t room;
	size_t len;
	unsigned int nr;
	u64 cursor;
	char *paths[RNBD_SRV_LIST_VOLUMES];
	u8 data[RNBD_SRV_LIST_ROOM] __aligned(8);
};

/* configfs.c */
void rnbd_srv_add_parts(struct rnbd_srv_tenant *tenant, struct config_group *group);

/* rules.c */
bool rnbd_srv_host_ok(const struct rnbd_srv_volume *volume, const struct rnbd_srv_sess *sess);

/* listen.c */
void rnbd_srv_tenant_init(struct rnbd_srv_tenant *tenant);
int rnbd_srv_listen(struct rnbd_srv_tenant *tenant, struct net *net);
void rnbd_srv_unlisten(struct rnbd_srv_tenant *tenant);
void rnbd_srv_tenant_exit(struct rnbd_srv_tenant *tenant);

/* rules.c */
bool rnbd_srv_host_is(const struct rnbd_srv_host *host, const char *sessname,
		      const struct rtrs_srv_peer *peer);
int rnbd_srv_check_proof(const struct rnbd_srv_rules *rules, const char *sessname,
			 const struct rtrs_srv_peer *peer);

/* For unit tests only, from all files */
#if IS_ENABLED(CONFIG_KUNIT)
int rnbd_srv_list_fill(struct rnbd_srv_list *list, const struct rnbd_srv_sess *sess, u64 after);
struct rnbd_srv_host *rnbd_srv_host_beyond(const struct rnbd_srv_sess *sess,
					   const struct rtrs_srv_peer *a,
					   const struct rtrs_srv_peer *b);
enum rnbd_srv_limit rnbd_srv_over_limit(const struct rnbd_srv_host *host, const u64 *used);
int rnbd_srv_judge(const struct rnbd_srv_rules *rules, const struct rnbd_srv_map *map,
		   const struct rnbd_srv_volume **volume);
int rnbd_srv_check_known(const struct rnbd_srv_rules *rules, const char *sessname,
			 const struct rtrs_srv_peer *peer);
#endif

#endif /* RNBD_SRV_RULES_H */
