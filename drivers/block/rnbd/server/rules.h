/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RNBD server: who may open what, and where. A tenant has volumes and hosts of its own, and a
 * network namespace in which its clients connect. The first tenant is always there, and has all
 * that belongs to no other.
 */
#ifndef RNBD_SRV_RULES_H
#define RNBD_SRV_RULES_H

#include <linux/configfs.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/workqueue.h>

#include "rnbd-srv.h"

/* Most prefixes of a host: what configfs shows of them fits in a page. */
#define RNBD_SRV_HOST_PREFIXES	64

/* Keys of a host that may be valid at a time, so that they can be changed. */
#define RNBD_SRV_HOST_KEYS	2

/**
 * enum rnbd_srv_limit - what a host may have so much of, all its sessions together
 * @RNBD_SRV_MAX_SESSIONS: sessions
 * @RNBD_SRV_MAX_PATHS: paths
 * @RNBD_SRV_MAX_CONNECTIONS: connections of paths
 * @RNBD_SRV_MAX_SLOTS: requests in flight that paths have room for
 * @RNBD_SRV_MAX_MEMORY: bytes that paths take, but for the data of large requests
 * @RNBD_SRV_NR_LIMITS: how many limits there are
 */
enum rnbd_srv_limit {
	RNBD_SRV_MAX_SESSIONS,
	RNBD_SRV_MAX_PATHS,
	RNBD_SRV_MAX_CONNECTIONS,
	RNBD_SRV_MAX_SLOTS,
	RNBD_SRV_MAX_MEMORY,
	RNBD_SRV_NR_LIMITS
};

/**
 * struct rnbd_srv_host - a client, as the administrator knows it
 * @list: in &rnbd_srv_rules.hosts
 * @rules: of its tenant
 * @item: its folder in hosts/
 * @sessions: pattern of its sessions' names, see glob_match()
 * @prefixes: where it is, NULL if that was never set
 * @nr_prefixes: how many; 0: it may be anywhere
 * @keys: secrets of which it proves to know one; NULL behind the last one. If there are none, it
 *	proves nothing. Copies, which do not change with @sources
 * @sources: the keys in the administrator's keyrings that @keys were copied from
 * @limits: by enum rnbd_srv_limit; 0: none
 * @used: the same, as counted last; set under rnbd_srv_lock as well
 * @counting: in the list of those that are being counted
 * @counted: session of it that was counted last
 * @cgroup: path of the cgroup that pays for its I/O, NULL: none
 * @css: that cgroup's I/O controller, or NULL
 *
 * All but @rules and @item are protected by rnbd_srv_rules_lock.
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
	u64 used[RNBD_SRV_NR_LIMITS];
	struct list_head counting;
	const void *counted;
	char *cgroup;
	struct cgroup_subsys_state *css;
};

/**
 * struct rnbd_srv_allow - a link from a volume to a host that may open it
 * @list: in &rnbd_srv_volume.allowed
 * @host: the host; configfs keeps it as long as the link is there
 */
struct rnbd_srv_allow {
	struct list_head list;
	const struct rnbd_srv_host *host;
};

/**
 * struct rnbd_srv_volume - what clients open by a name, without learning its path
 * @list: in &rnbd_srv_rules.volumes
 * @rules: of its tenant
 * @group: its folder in volumes/, whose name is the volume's
 * @hosts: the folder of links in there
 * @allowed: links, of struct rnbd_srv_allow
 * @path: of the disk or file, not relative to dev_search_path; NULL if none was set
 * @modes: bits of access modes that it may be opened in
 * @exclusive: only one session may have it open
 * @allow_any_host: whoever reaches the server may open it
 * @enabled: it can be opened
 * @gone: its folder has been removed
 *
 * All but @rules, @group and @hosts are protected by rnbd_srv_rules_lock.
 */
struct rnbd_srv_volume {
	struct list_head list;
	struct rnbd_srv_rules *rules;
	struct config_group group;
	struct config_group hosts;
	struct list_head allowed;
	char *path;
	unsigned long modes;
	bool exclusive;
	bool allow_any_host;
	bool enabled;
	bool gone;
};

/**
 * struct rnbd_srv_rules - the rules of a tenant
 * @volumes: of struct rnbd_srv_volume
 * @hosts: of struct rnbd_srv_host
 * @listed: nothing but volumes can be opened
 * @stopping: the tenant's sessions are being ended by the administrator; READ_ONCE()
 *
 * Protected by rnbd_srv_rules_lock, which is taken under rnbd_srv_lock; @stopping is written under
 * the tenant's lock.
 */
struct rnbd_srv_rules {
	struct list_head volumes;
	struct list_head hosts;
	bool listed;
	bool stopping;
};

/**
 * struct rnbd_srv_tenant - whose rules they are, and where its clients connect
 * @rules: its rules
 * @group: its folder in tenants/; not the first one's
 * @volumes: the folder of its volumes
 * @hosts: the folder of its hosts
 * @lock: held while it begins or ends to listen; protects what follows
 * @rtrs: NULL while nobody can connect; read without the lock as well
 * @net: where it listens, with a reference; NULL while it does not
 * @netns: number of @net, or 0; read without the lock as well
 * @net_work: looks whether there is still somebody in @net
 */
struct rnbd_srv_tenant {
	struct rnbd_srv_rules rules;
	struct config_group group;
	struct config_group volumes;
	struct config_group hosts;
	struct mutex lock; /* what follows */
	struct rtrs_srv *rtrs;
	struct net *net;
	unsigned int netns;
	struct delayed_work net_work;
};

/* Protects all that is in folders as well. */
extern struct mutex rnbd_srv_rules_lock;
extern struct rnbd_srv_tenant rnbd_srv_first;
extern const char * const rnbd_srv_limit_names[RNBD_SRV_NR_LIMITS];

/* What a new volume may be opened in */
#define RNBD_SRV_ALL_MODES	(BIT(RNBD_ACCESS_MODES) - 1)

/* Administrators count memory in MiB. */
static inline unsigned int rnbd_srv_limit_shift(enum rnbd_srv_limit limit)
{
	return limit == RNBD_SRV_MAX_MEMORY ? 20 : 0;
}

/* listen.c */
void rnbd_srv_tenant_init(struct rnbd_srv_tenant *tenant);
bool rnbd_srv_listening(const struct rnbd_srv_tenant *tenant);
int rnbd_srv_listen(struct rnbd_srv_tenant *tenant, struct net *net);
void rnbd_srv_unlisten(struct rnbd_srv_tenant *tenant);
void rnbd_srv_tenant_exit(struct rnbd_srv_tenant *tenant);

#if IS_ENABLED(CONFIG_KUNIT)
bool rnbd_srv_over_limit(const struct rnbd_srv_host *host, enum rnbd_srv_limit *which);
int rnbd_srv_judge(const struct rnbd_srv_rules *rules, const struct rnbd_srv_map *map,
		   const struct rtrs_srv_peer *peer, const struct rnbd_srv_volume **volume);
int rnbd_srv_check_proof(const struct rnbd_srv_rules *rules, const char *sessname,
			 const struct rtrs_srv_peer *peer);
int rnbd_srv_check_known(const struct rnbd_srv_rules *rules, const char *sessname,
			 const struct rtrs_srv_peer *peer);
#endif

#endif /* RNBD_SRV_RULES_H */
