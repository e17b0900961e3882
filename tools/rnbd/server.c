// SPDX-License-Identifier: GPL-2.0
/*
 * Commands for the server's rules: tenants, hosts, volumes, the policy, and the configuration file.
 * Functions for volumes are called "export", to avoid confusion with the client's table of volumes.
 */
#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rules.h"

static const struct column tenant_columns[] = {
	{ "name", "TENANT", TEXT }, { "netns", "NETNS", TEXT },
	{ "listen", "LISTENS", YES_NO },
};

static const struct column host_columns[] = {
	{ "name", "HOST", TEXT }, { "sessions", "SESSIONS", TEXT },
	{ "addresses", "ADDRESSES", TEXT }, { "keys", "KEYS", TEXT },
	{ "limits", "LIMITS", TEXT }, { "cgroup", "CGROUP", TEXT },
};

static const struct column volume_columns[] = {
	{ "name", "VOLUME", TEXT }, { "path", "PATH", TEXT }, { "modes", "MODES", TEXT },
	{ "exclusive", "EXCLUSIVE", YES_NO }, { "hosts", "HOSTS", TEXT },
	{ "allow_any_host", "ANY HOST", YES_NO }, { "enable", "ENABLED", YES_NO },
};

/* Read the kernel's rules, and report errors. Returns an exit code. */
static int read_rules(const struct rnbd *r, struct rules *rules)
{
	int ret = rules_read(r, rules);

	if (!ret || !sysfs_exists(r, "module/rnbd_server"))
		return ret ? report_no_module(r, SERVER) : ret;
	return report_no_rules(r, ret);
}

/* Convert words to an array for JSON, or to one text for a table. */
static struct json_object *words_json(const struct rnbd *r, const char *words)
{
	struct json_object *array;
	char *copy, *next, *word;

	if (!r->json)
		return json_new_string(words);
	array = json_new_array();
	copy = xstrdup(words);
	for (next = copy; (word = strsep(&next, " "));)
		if (*word)
			json_append(array, json_new_string(text_clean(word)));
	free(copy);
	return array;
}

static void add_value(const struct rnbd *r, struct json_object *json, const struct rule *rule,
		      enum rule_attribute attribute)
{
	const char *name = rule_attribute_name(attribute), *value = rule->values[attribute];
	char *clean;

	switch (attribute) {
	case RULE_EXCLUSIVE:
	case RULE_ANY_HOST:
	case RULE_ENABLE:
		json_add_bool(json, name, !strcmp(value, "1"));
		break;
	case RULE_MAX_SESSIONS:
	case RULE_MAX_MEMORY:
		json_add_int(json, name, strtoll(value, NULL, 10));
		break;
	case RULE_NETNS:
	case RULE_SESSIONS:
	case RULE_PATH:
	case RULE_CGROUP:
		clean = text_clean(xstrdup(value));
		json_add_string(json, name, clean);
		free(clean);
		break;
	case RULE_UUID:
		clean = text_clean(xstrdup(value));
		json_add_string(json, name, *clean ? clean : NULL);
		free(clean);
		break;
	default:
		json_add(json, name, words_json(r, value));
	}
}

/* Add the limits that are set as one text, for the table. */
static void add_limits(struct json_object *json, const struct rule *host)
{
	enum rule_attribute i;
	char *all = xstrdup("");

	for (i = RULE_MAX_SESSIONS; i <= RULE_MAX_MEMORY; i++)
		if (strcmp(host->values[i], "0"))
			add_pair(&all, rule_attribute_name(i), host->values[i]);
	json_add_string(json, "limits", all);
	free(all);
}

static bool listens(const struct rnbd *r, const struct rule *tenant)
{
	long long n;

	return sysfs_read_number(r, &n, RULES_DIR "/tenants/%s/listen", tenant->name) && n;
}

static struct json_object *rules_json(const struct rnbd *r, const struct rules *rules,
				      enum rule_kind kind)
{
	struct json_object *array = json_new_array(), *json;
	char *name;
	size_t i, j;

	for (i = 0; i < rules->nr; i++) {
		if (rules->all[i].kind != kind)
			continue;
		json = json_new();
		name = text_clean(xstrdup(rules->all[i].name));
		json_add_string(json, "name", name);
		free(name);
		for (j = 0; j < NR_RULE_ATTRIBUTES; j++)
			if (rule_has(kind, j))
				add_value(r, json, &rules->all[i], j);
		if (kind == RULE_HOST && !r->json)
			add_limits(json, &rules->all[i]);
		if (kind == RULE_TENANT)
			json_add_bool(json, "listen", listens(r, &rules->all[i]));
		json_append(array, json);
	}
	return array;
}

static const char *const kind_fields[] = { "tenants", "hosts", "volumes" };

static void print_kind(const struct rnbd *r, const struct rules *rules, enum rule_kind kind)
{
	struct json_object *rows = rules_json(r, rules, kind);

	if (kind == RULE_TENANT)
		print_list(r, rows, tenant_columns, ARRAY_SIZE(tenant_columns), kind_fields[kind]);
	else if (kind == RULE_HOST)
		print_list(r, rows, host_columns, ARRAY_SIZE(host_columns), kind_fields[kind]);
	else
		print_list(r, rows, volume_columns, ARRAY_SIZE(volume_columns), kind_fields[kind]);
	json_object_put(rows);
}

/* Print rules of a kind, or of all kinds if @kind is NR_RULE_KINDS. */
static void print_json(const struct rnbd *r, const struct rules *rules, enum rule_kind kind)
{
	struct json_object *whole = json_new();
	char *listens = sysfs_read(r, RULES_DIR "/listen");
	enum rule_kind i;

	if (kind == NR_RULE_KINDS) {
		json_add_string(whole, "policy", rules->policy);
		json_add_bool(whole, "listen", listens && !strcmp(listens, "1"));
	}
	for (i = 0; i < NR_RULE_KINDS; i++)
		if (kind == NR_RULE_KINDS || kind == i)
			json_add(whole, kind_fields[i], rules_json(r, rules, i));
	json_print(whole);
	json_object_put(whole);
	free(listens);
}

static bool has_tenants(const struct rules *rules)
{
	size_t i;

	for (i = 0; i < rules->nr; i++)
		if (rules->all[i].kind == RULE_TENANT)
			return true;
	return false;
}

static int list(const struct rnbd *r, enum rule_kind kind)
{
	struct rules rules;
	int ret = read_rules(r, &rules);

	if (ret)
		return ret;
	if (r->json) {
		print_json(r, &rules, kind);
	} else if (kind != NR_RULE_KINDS) {
		print_kind(r, &rules, kind);
	} else {
		printf("policy: %s\n", rules.policy);
		print_kind(r, &rules, RULE_VOLUME);
		print_kind(r, &rules, RULE_HOST);
		if (has_tenants(&rules))
			print_kind(r, &rules, RULE_TENANT);
	}
	rules_free(&rules);
	return RNBD_OK;
}

int cmd_rules(struct rnbd *r, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return list(r, NR_RULE_KINDS);
}

int cmd_tenant_list(struct rnbd *r, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return list(r, RULE_TENANT);
}

int cmd_host_list(struct rnbd *r, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return list(r, RULE_HOST);
}

int cmd_export_list(struct rnbd *r, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return list(r, RULE_VOLUME);
}

int cmd_policy(struct rnbd *r, int argc, char **argv)
{
	struct rules have, want = { 0 };
	int ret = read_rules(r, &have);
	char *why;

	if (ret)
		return ret;
	why = argc ? rules_set_policy(&want, argv[0]) : NULL;
	if (why)
		ret = report_usage("%s", why);
	else if (argc)
		ret = sysfs_set(r, "set the policy", RULES_DIR, "policy", want.policy);
	else
		puts(have.policy);
	free(why);
	rules_free(&want);
	rules_free(&have);
	return ret;
}

/* Parse ATTRIBUTE=VALUE... from the command line. Returns an exit code. */
static int take_words(struct rule *rule, int argc, char **argv)
{
	char *why, *value;
	int ret = RNBD_OK;

	for (; argc && !ret; argc--, argv++) {
		value = strchr(*argv, '=');
		if (!value)
			return report_usage("'%s' is not ATTRIBUTE=VALUE", *argv);
		*value++ = 0;
		why = rule_set(rule, *argv, value);
		if (why)
			ret = report_usage("%s", why);
		free(why);
	}
	return ret;
}

static int report_why(char *why)
{
	int ret = report_usage("%s", why);

	free(why);
	return ret;
}

/* Apply a changed or new rule. @old is the present one, or NULL. */
static int apply_one(const struct rnbd *r, const struct rules *have, const struct rule *old,
		     struct rule *rule)
{
	struct rules want = { .policy = have->policy, .all = rule, .nr = 1 };
	struct rules one = { .policy = have->policy, .all = (struct rule *)old, .nr = old ? 1 : 0 };
	char *words, *next, *host, *whole;
	int ret = RNBD_OK;

	if (rule->kind == RULE_VOLUME && !*rule->values[RULE_PATH])
		return report_usage("volume %s has no path", rule->name);
	words = rule_tenant(rule);
	if (words && !rules_find(have, RULE_TENANT, words))
		ret = report_not_found("there is no tenant %s", words);
	free(words);
	words = xstrdup(rule->kind == RULE_VOLUME ? rule->values[RULE_HOSTS] : "");
	for (next = words; (host = strsep(&next, " "));) {
		whole = rule_host(rule, host);
		if (!ret && *host && !rules_find(have, RULE_HOST, whole))
			ret = report_not_found("there is no host %s", whole);
		free(whole);
	}
	free(words);
	return ret ? ret : rules_apply(r, &one, &want);
}

static int add(const struct rnbd *r, enum rule_kind kind, int argc, char **argv)
{
	struct rules have, added = { 0 };
	int ret = read_rules(r, &have);
	struct rule *rule;
	char *why;

	if (ret)
		return ret;
	if (rules_find(&have, kind, argv[0]))
		why = xasprintf("there is a %s %s already", rule_kind_name(kind), argv[0]);
	else
		why = rules_add(&added, kind, argv[0], &rule);
	ret = why ? report_why(why) : take_words(rule, argc - 1, argv + 1);
	if (!ret) {
		rules_fill(&added);
		ret = apply_one(r, &have, NULL, rule);
	}
	rules_free(&added);
	rules_free(&have);
	return ret;
}

static int set(const struct rnbd *r, enum rule_kind kind, int argc, char **argv)
{
	struct rules have, changed = { 0 };
	struct rule *rule, *old;
	int ret = read_rules(r, &have);
	size_t i;

	if (ret)
		return ret;
	old = rules_find(&have, kind, argv[0]);
	if (!old)
		ret = report_not_found("there is no %s %s", rule_kind_name(kind), argv[0]);
	else
		free(rules_add(&changed, kind, argv[0], &rule));
	if (!ret)
		ret = take_words(rule, argc - 1, argv + 1);
	if (!ret) {
		for (i = 0; i < NR_RULE_ATTRIBUTES; i++)
			if (rule_has(kind, i) && !rule->values[i])
				rule->values[i] = xstrdup(old->values[i]);
		ret = apply_one(r, &have, old, rule);
	}
	rules_free(&changed);
	rules_free(&have);
	return ret;
}

/* Report if another rule depends on @rule. RNBD_OK if it doesn't. */
static int report_user(const struct rule *rule, const struct rule *other)
{
	char *tenant = rule_tenant(other), *whole;
	const char *own = strchr(rule->name, '/');
	int ret = RNBD_OK;

	own = own ? own + 1 : rule->name;
	if (rule->kind == RULE_TENANT && tenant && !strcmp(tenant, rule->name))
		ret = report_failed("%s %s is there: delete it first",
				    rule_kind_name(other->kind), other->name);
	free(tenant);
	if (rule->kind != RULE_HOST || other->kind != RULE_VOLUME)
		return ret;
	whole = rule_host(other, own);
	if (!strcmp(whole, rule->name) && has_word(other->values[RULE_HOSTS], own))
		ret = report_failed("volume %s is for host %s: change its hosts= first",
				    other->name, rule->name);
	free(whole);
	return ret;
}

static int delete(const struct rnbd *r, enum rule_kind kind, const char *name)
{
	struct rules have, none = { 0 }, one;
	int ret = read_rules(r, &have);
	struct rule *rule;
	size_t i;

	if (ret)
		return ret;
	rule = rules_find(&have, kind, name);
	if (!rule)
		ret = report_not_found("there is no %s %s", rule_kind_name(kind), name);
	for (i = 0; !ret && i < have.nr; i++)
		ret = report_user(rule, &have.all[i]);
	if (!ret) {
		none.policy = have.policy;
		one = (struct rules){ .policy = have.policy, .all = rule, .nr = 1 };
		ret = rules_apply(r, &one, &none);
	}
	rules_free(&have);
	return ret;
}

int cmd_tenant_add(struct rnbd *r, int argc, char **argv)
{
	return add(r, RULE_TENANT, argc, argv);
}

int cmd_tenant_set(struct rnbd *r, int argc, char **argv)
{
	return set(r, RULE_TENANT, argc, argv);
}

int cmd_tenant_delete(struct rnbd *r, int argc, char **argv)
{
	(void)argc;
	return delete(r, RULE_TENANT, argv[0]);
}

int cmd_host_add(struct rnbd *r, int argc, char **argv)
{
	return add(r, RULE_HOST, argc, argv);
}

int cmd_host_set(struct rnbd *r, int argc, char **argv)
{
	return set(r, RULE_HOST, argc, argv);
}

int cmd_host_delete(struct rnbd *r, int argc, char **argv)
{
	(void)argc;
	return delete(r, RULE_HOST, argv[0]);
}

int cmd_export_add(struct rnbd *r, int argc, char **argv)
{
	return add(r, RULE_VOLUME, argc, argv);
}

int cmd_export_set(struct rnbd *r, int argc, char **argv)
{
	return set(r, RULE_VOLUME, argc, argv);
}

int cmd_export_delete(struct rnbd *r, int argc, char **argv)
{
	(void)argc;
	return delete(r, RULE_VOLUME, argv[0]);
}

int cmd_rules_check(struct rnbd *r, int argc, char **argv)
{
	struct conf conf;
	size_t nr[NR_RULE_KINDS] = { 0 }, i;
	int ret;

	if (argc)
		r->server_conf = argv[0];
	if (access(r->server_conf, R_OK))
		return report_not_found("%s: %s", r->server_conf, strerror(errno));
	ret = conf_read(r, &conf);
	for (i = 0; i < conf.rules.nr; i++)
		nr[conf.rules.all[i].kind]++;
	if (ret)
		ret = RNBD_FAILED;
	else
		printf("%s: policy %s, %zu tenants, %zu hosts, %zu volumes\n", r->server_conf,
		       conf.rules.policy, nr[RULE_TENANT], nr[RULE_HOST], nr[RULE_VOLUME]);
	conf_free(&conf);
	return ret;
}

/* Check whether two paths refer to the same file. */
static bool is_same(const char *a, const char *b)
{
	char *real_a, *real_b;
	bool same = !strcmp(a, b);

	if (same)
		return true;
	real_a = realpath(a, NULL);
	real_b = realpath(b, NULL);
	same = real_a && real_b && !strcmp(real_a, real_b);
	free(real_a);
	free(real_b);
	return same;
}

static bool has_path(const struct rules *rules, int argc, char **argv)
{
	const struct rule *rule;
	int i;

	for (rule = rules->all; rule < rules->all + rules->nr; rule++)
		for (i = 0; i < argc; i++)
			if (rule->kind == RULE_VOLUME && rule->values[RULE_PATH] &&
			    is_same(rule->values[RULE_PATH], argv[i]))
				return true;
	return false;
}

/* Check whether a link is named after the contents of the device, such as a label or UUID. */
static bool is_by_contents(const char *link)
{
	static const char *const dirs[] = { "label", "uuid", "partlabel", "partuuid" };
	size_t i, len;

	if (strncmp(link, "/dev/disk/by-", 13))
		return false;
	link += 13;
	for (i = 0; i < ARRAY_SIZE(dirs); i++) {
		len = strlen(dirs[i]);
		if (!strncmp(link, dirs[i], len) && link[len] == '/')
			return true;
	}
	return false;
}

/* Print the links after the word "links" that udev may keep, in the format of SYMLINK. */
static void print_links(int argc, char **argv)
{
	bool links = false;
	int i;

	for (i = 0; i < argc; i++) {
		if (links && !strncmp(argv[i], "/dev/", 5) && !is_by_contents(argv[i]))
			printf("%s ", argv[i] + 5);
		links |= !strcmp(argv[i], "links");
	}
	printf("\n");
}

/* For udev: check whether a device with these names is a volume, in the file or the kernel. */
int cmd_rules_exports(struct rnbd *r, int argc, char **argv)
{
	struct rules rules = { 0 };
	struct conf conf;
	bool found;

	conf_read(r, &conf);
	if (sysfs_exists(r, RULES_DIR))
		rules_read(r, &rules);
	found = has_path(&conf.rules, argc, argv) || has_path(&rules, argc, argv);
	if (found)
		print_links(argc, argv);
	rules_free(&rules);
	conf_free(&conf);
	return found ? RNBD_OK : RNBD_NOT_FOUND;
}

int cmd_rules_save(struct rnbd *r, int argc, char **argv)
{
	struct rules rules;
	int ret;

	if (argc)
		r->server_conf = argv[0];
	ret = read_rules(r, &rules);
	if (ret)
		return ret;
	ret = conf_save(r, &rules);
	rules_free(&rules);
	return ret;
}

/* Delete all rules, but keep the policy: without rules, "open" would admit all clients. */
int cmd_rules_clear(struct rnbd *r, int argc, char **argv)
{
	struct rules have, none = { 0 };
	int ret = read_rules(r, &have);

	(void)argc;
	(void)argv;
	if (ret)
		return ret;
	none.policy = have.policy;
	ret = rules_apply(r, &have, &none);
	rules_free(&have);
	return ret;
}
