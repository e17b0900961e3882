/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The server's access rules: tenants, hosts, volumes, and the policy. They are read from configfs,
 * from the server's configuration file, or from the command line. Hosts and volumes of a tenant are
 * named TENANT/NAME.
 */
#ifndef RNBD_RULES_H
#define RNBD_RULES_H

#include "rnbd.h"

/* In the order of creation */
enum rule_kind { RULE_TENANT, RULE_HOST, RULE_VOLUME, NR_RULE_KINDS };

enum rule_attribute {
	RULE_NETNS,
	RULE_SESSIONS,
	RULE_ADDRESSES,
	RULE_KEYS,
	RULE_MAX_SESSIONS,
	RULE_MAX_MEMORY,
	RULE_CGROUP,
	RULE_PATH,
	RULE_UUID,
	RULE_MODES,
	RULE_EXCLUSIVE,
	RULE_ANY_HOST,
	RULE_HOSTS,
	RULE_ENABLE,
	NR_RULE_ATTRIBUTES
};

/* A tenant, a host or a volume */
struct rule {
	enum rule_kind kind;
	char *name;
	/* For a tenant: number of the network namespace in which it listens; 0: none */
	long long netns;
	/* Line in the configuration file; 0: from elsewhere */
	int line;
	/* Attributes of its kind. Words are separated by one blank. NULL: not specified */
	char *values[NR_RULE_ATTRIBUTES];
};

struct rules {
	/* "open" or "listed"; NULL: not specified */
	char *policy;
	struct rule *all;
	size_t nr;
};

/* ---- rules.c ---- */

const char *rule_kind_name(enum rule_kind kind);
const char *rule_attribute_name(enum rule_attribute attribute);
bool rule_has(enum rule_kind kind, enum rule_attribute attribute);
char *rule_set(struct rule *rule, const char *name, const char *value);
char *rules_add(struct rules *rules, enum rule_kind kind, const char *name, struct rule **rule);
char *rules_set_policy(struct rules *rules, const char *policy);
struct rule *rules_find(const struct rules *rules, enum rule_kind kind, const char *name);
char *rule_tenant(const struct rule *rule);
char *rule_host(const struct rule *volume, const char *host);
char *rules_check(const struct rules *rules, const struct rule **wrong);
void rules_fill(struct rules *rules);
void rules_free(struct rules *rules);
void rules_print(FILE *to, const struct rules *rules);

/* ---- configfs.c ---- */

#define RULES_DIR "kernel/config/rnbd"

int rules_read(const struct rnbd *r, struct rules *rules);
int report_no_rules(const struct rnbd *r, int code);
int rules_unlisten(const struct rnbd *r, const struct rules *have);
int rules_apply(const struct rnbd *r, const struct rules *have, const struct rules *want);

/* ---- conf.c ---- */

enum server_module { RTRS_SERVER, RNBD_SERVER, NR_MODULES };

#define NR_PARAMETERS 13

struct parameter {
	const char *name;
	enum server_module module;
	/* Can be changed while the module is loaded */
	bool live;
};

extern const struct parameter parameters[NR_PARAMETERS];

/* Contents of the configuration file */
struct conf {
	char *values[NR_PARAMETERS];
	/* The file specifies a policy or has sections */
	bool has_rules;
	struct rules rules;
};

int conf_read(const struct rnbd *r, struct conf *conf);
int conf_save(const struct rnbd *r, const struct rules *rules);
void conf_free(struct conf *conf);

#endif /* RNBD_RULES_H */
