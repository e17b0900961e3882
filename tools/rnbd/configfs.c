// SPDX-License-Identifier: GPL-2.0
/*
 * The server's rules in the kernel: reading and changing. Only differing attributes are written, so
 * that clients are not disturbed needlessly.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rules.h"

/* Directory of named network namespaces */
#define NETNS_DIR "/run/netns"

/* Get the directory of all rules of a kind. @tenant is NULL for the first tenant. */
static char *kind_dir(const char *tenant, enum rule_kind kind)
{
	if (!tenant)
		return xasprintf("%s/%ss", RULES_DIR, rule_kind_name(kind));
	return xasprintf("%s/tenants/%s/%ss", RULES_DIR, tenant, rule_kind_name(kind));
}

static char *rule_dir(const struct rule *rule)
{
	char *tenant = rule_tenant(rule), *all = kind_dir(tenant, rule->kind);
	char *dir = xasprintf("%s/%s", all, tenant ? rule->name + strlen(tenant) + 1 : rule->name);

	free(all);
	free(tenant);
	return dir;
}

/* Replace sequences of blanks and newlines by one blank; remove them at both ends. */
static char *one_line(char *text)
{
	char *from = text, *to = text;

	while (*from) {
		from += strspn(from, "\n ");
		if (*from && to > text)
			*to++ = ' ';
		while (*from && *from != ' ' && *from != '\n')
			*to++ = *from++;
	}
	*to = 0;
	return text;
}

/* Remove one newline at the end: a path may contain others. */
static char *without_end(char *text)
{
	size_t n = strlen(text);

	if (n && text[n - 1] == '\n')
		text[n - 1] = 0;
	return text;
}

/* Get the hosts to which a volume has links. */
static char *read_links(const struct rnbd *r, const char *dir)
{
	char *hosts = xstrdup(""), *longer, *target, **links;
	size_t nr, i;

	links = sysfs_list(r, &nr, "%s/hosts", dir);
	for (i = 0; i < nr; i++) {
		target = sysfs_link_name(r, "%s/hosts/%s", dir, links[i]);
		if (target) {
			longer = xasprintf("%s%s%s", hosts, *hosts ? " " : "", target);
			free(hosts);
			hosts = longer;
		}
		free(target);
		free(links[i]);
	}
	free(links);
	return hosts;
}

/* Check whether a path refers to the network namespace with a number. */
static bool is_netns(const char *path, long long number)
{
	struct stat st;

	return number && !stat(path, &st) && st.st_ino == (ino_t)number;
}

/* Get the path of the network namespace in which a tenant listens; "" if there is none. */
static char *read_netns(const struct rnbd *r, const char *dir, long long *number)
{
	char *path, **names;
	size_t nr = 0, i;

	if (!sysfs_read_number(r, number, "%s/netns", dir) || !*number)
		return xstrdup("");
	names = list_dir(&nr, NETNS_DIR);
	for (i = 0; i < nr; i++) {
		path = xasprintf("%s/%s", NETNS_DIR, names[i]);
		if (is_netns(path, *number))
			break;
		free(path);
	}
	path = i < nr ? path : xstrdup("");
	for (i = 0; i < nr; i++)
		free(names[i]);
	free(names);
	return path;
}

static void read_rule(const struct rnbd *r, struct rules *rules, enum rule_kind kind,
		      const char *name)
{
	struct rule rule = { .kind = kind, .name = xstrdup(name) };
	char *dir = rule_dir(&rule), *text;
	size_t i;

	for (i = 0; i < NR_RULE_ATTRIBUTES; i++) {
		if (!rule_has(kind, i))
			continue;
		if (i == RULE_HOSTS || i == RULE_NETNS) {
			rule.values[i] = i == RULE_HOSTS ? read_links(r, dir) :
							   read_netns(r, dir, &rule.netns);
			continue;
		}
		text = sysfs_read_all(r, "%s/%s", dir, rule_attribute_name(i));
		if (text)
			rule.values[i] = i == RULE_PATH ? without_end(text) : one_line(text);
	}
	free(dir);
	rules->all = xrealloc(rules->all, rules->nr + 1, sizeof(rule));
	rules->all[rules->nr++] = rule;
}

/* Read all rules of a kind. @tenant is NULL for the first tenant. */
static void read_kind(const struct rnbd *r, struct rules *rules, const char *tenant,
		      enum rule_kind kind)
{
	char *dir = kind_dir(tenant, kind), **names, *name;
	size_t nr, i;

	names = sysfs_list(r, &nr, "%s", dir);
	for (i = 0; i < nr; i++) {
		name = tenant ? xasprintf("%s/%s", tenant, names[i]) : xstrdup(names[i]);
		read_rule(r, rules, kind, name);
		free(name);
		free(names[i]);
	}
	free(names);
	free(dir);
}

/* Read the kernel's rules. Returns RNBD_NO_MODULE, without a message, if they don't exist. */
int rules_read(const struct rnbd *r, struct rules *rules)
{
	char *config = xasprintf("%s/kernel/config", r->sysfs);
	size_t nr, i;

	memset(rules, 0, sizeof(*rules));
	/* Needed without systemd. If this fails, the rules are missing, which is reported. */
	if (sysfs_exists(r, "module/rnbd_server") && !sysfs_exists(r, RULES_DIR))
		mount("configfs", config, "configfs", 0, NULL);
	free(config);
	if (!sysfs_exists(r, RULES_DIR))
		return RNBD_NO_MODULE;
	rules->policy = sysfs_read(r, RULES_DIR "/policy");
	read_kind(r, rules, NULL, RULE_TENANT);
	read_kind(r, rules, NULL, RULE_HOST);
	read_kind(r, rules, NULL, RULE_VOLUME);
	nr = rules->nr;
	for (i = 0; i < nr; i++) {
		if (rules->all[i].kind != RULE_TENANT)
			continue;
		read_kind(r, rules, rules->all[i].name, RULE_HOST);
		read_kind(r, rules, rules->all[i].name, RULE_VOLUME);
	}
	rules_fill(rules);
	return RNBD_OK;
}

int report_no_rules(const struct rnbd *r, int code)
{
	return report_as(code, "the rules aren't there: mount configfs on %s/kernel/config",
			 r->sysfs);
}

/* Describe an operation for messages, with the line in the configuration file. */
static char *doing(const struct rnbd *r, const struct rule *rule, const char *what)
{
	if (rule->line)
		return xasprintf("%s of %s %s (%s:%d)", what, rule_kind_name(rule->kind),
				 rule->name, r->server_conf, rule->line);
	return xasprintf("%s of %s %s", what, rule_kind_name(rule->kind), rule->name);
}

static int set_value(const struct rnbd *r, const struct rule *rule, enum rule_attribute attribute,
		     const char *value)
{
	char *what = xasprintf("set %s", rule_attribute_name(attribute));
	char *text = doing(r, rule, what), *dir = rule_dir(rule);
	int ret = sysfs_set(r, text, dir, rule_attribute_name(attribute), value);

	free(dir);
	free(text);
	free(what);
	return ret;
}

static int add_link(const struct rnbd *r, const struct rule *volume, const char *host)
{
	char *text = doing(r, volume, "add a host"), *dir = rule_dir(volume);
	char *tenant = rule_tenant(volume), *hosts = kind_dir(tenant, RULE_HOST);
	char *target = xasprintf("%s/%s", hosts, host);
	char *path = xasprintf("%s/hosts/%s", dir, host);
	int ret = sysfs_symlink(r, text, target, path);

	free(path);
	free(target);
	free(hosts);
	free(tenant);
	free(dir);
	free(text);
	return ret;
}

/* Remove the links to hosts that aren't in @keep. A link's own name can be any. */
static int remove_links(const struct rnbd *r, const struct rule *volume, const char *keep)
{
	char *text = doing(r, volume, "take away a host"), *dir = rule_dir(volume);
	char **links, *target, *path;
	int ret = RNBD_OK, one = RNBD_OK;
	size_t nr, i;

	links = sysfs_list(r, &nr, "%s/hosts", dir);
	for (i = 0; i < nr; i++) {
		path = xasprintf("%s/hosts/%s", dir, links[i]);
		target = sysfs_link_name(r, "%s", path);
		if (target && !has_word(keep, target))
			one = sysfs_unlink(r, text, path);
		ret = one ? one : ret;
		free(target);
		free(path);
		free(links[i]);
	}
	free(links);
	free(dir);
	free(text);
	return ret;
}

static int set_hosts(const struct rnbd *r, const struct rule *have, const struct rule *want)
{
	char *copy = xstrdup(want->values[RULE_HOSTS]), *next = copy, *host;
	int ret = RNBD_OK, one;

	while ((host = strsep(&next, " "))) {
		if (!*host || has_word(have->values[RULE_HOSTS], host))
			continue;
		one = add_link(r, want, host);
		ret = one ? one : ret;
	}
	free(copy);
	one = remove_links(r, want, want->values[RULE_HOSTS]);
	return one ? one : ret;
}

/* A rule without a UUID keeps the one that the volume has. */
static bool differs(const struct rule *have, const struct rule *want,
		    enum rule_attribute attribute)
{
	if (attribute == RULE_UUID && !*want->values[attribute])
		return false;
	return strcmp(have->values[attribute], want->values[attribute]);
}

/* Change attributes. A volume's path and UUID change while it is disabled; enable is set last. */
static int change_rule(const struct rnbd *r, const struct rule *have, const struct rule *want)
{
	const char *enabled = NULL;
	int ret = RNBD_OK, one;
	size_t i;

	if (want->kind == RULE_VOLUME)
		enabled = have->values[RULE_ENABLE];
	if (enabled && !strcmp(enabled, "1") &&
	    (differs(have, want, RULE_PATH) || differs(have, want, RULE_UUID))) {
		enabled = "0";
		ret = set_value(r, want, RULE_ENABLE, enabled);
	}
	for (i = 0; i < NR_RULE_ATTRIBUTES; i++) {
		if (!rule_has(want->kind, i) || i == RULE_ENABLE || i == RULE_NETNS ||
		    !differs(have, want, i))
			continue;
		one = i == RULE_HOSTS ? set_hosts(r, have, want) :
					set_value(r, want, i, want->values[i]);
		ret = one ? one : ret;
	}
	if (!ret && enabled && strcmp(enabled, want->values[RULE_ENABLE]))
		ret = set_value(r, want, RULE_ENABLE, want->values[RULE_ENABLE]);
	return ret;
}

static int create_rule(const struct rnbd *r, const struct rule *want)
{
	char *text = doing(r, want, "make the folder"), *dir = rule_dir(want), *why;
	struct rules fresh = { 0 };
	struct rule *have;
	int ret;

	ret = sysfs_mkdir(r, text, dir);
	free(dir);
	free(text);
	if (ret)
		return ret;
	why = rules_add(&fresh, want->kind, want->name, &have);
	free(why);
	if (!why && want->kind == RULE_VOLUME)
		free(rule_set(have, "enable", "0"));
	if (!why) {
		rules_fill(&fresh);
		ret = change_rule(r, have, want);
	}
	rules_free(&fresh);
	return ret;
}

/* Stop a tenant from listening, which ends its sessions. */
static int unlisten(const struct rnbd *r, const struct rule *tenant, const char *text)
{
	char *dir = rule_dir(tenant);
	int ret = tenant->netns ? sysfs_set(r, text, dir, "listen", "0") : RNBD_OK;

	free(dir);
	return ret;
}

static int delete_rule(const struct rnbd *r, const struct rule *rule)
{
	char *text = doing(r, rule, "remove the folder"), *dir = rule_dir(rule);
	int ret = RNBD_OK;

	if (rule->kind == RULE_VOLUME)
		ret = remove_links(r, rule, "");
	/* Done before rmdir, which would wait for it and block other changes in configfs. */
	if (rule->kind == RULE_TENANT)
		ret = unlisten(r, rule, text);
	if (!ret)
		ret = sysfs_rmdir(r, text, dir);
	free(dir);
	free(text);
	return ret;
}

static int apply_kind(const struct rnbd *r, const struct rules *have, const struct rules *want,
		      enum rule_kind kind)
{
	const struct rule *rule, *old;
	int ret = RNBD_OK, one;

	for (rule = want->all; rule < want->all + want->nr; rule++) {
		if (rule->kind != kind)
			continue;
		old = rules_find(have, kind, rule->name);
		one = old ? change_rule(r, old, rule) : create_rule(r, rule);
		ret = one ? one : ret;
	}
	return ret;
}

static int delete_kind(const struct rnbd *r, const struct rules *have, const struct rules *want,
		       enum rule_kind kind)
{
	const struct rule *rule;
	int ret = RNBD_OK, one;

	for (rule = have->all; rule < have->all + have->nr; rule++) {
		if (rule->kind != kind || rules_find(want, kind, rule->name))
			continue;
		one = delete_rule(r, rule);
		ret = one ? one : ret;
	}
	return ret;
}

/* Make a tenant listen in the network namespace of the process that writes to "listen". */
static int listen_in(const struct rnbd *r, const struct rule *tenant, const char *text,
		     const char *dir)
{
	const char *path = tenant->values[RULE_NETNS];
	int status, fd;
	pid_t pid;

	if (r->verbose || r->dry_run)
		fprintf(stderr, "nsenter --net=%s:\n", path);
	if (r->dry_run)
		return sysfs_set(r, text, dir, "listen", "1");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return report_failed("can't %s: %s: %s", text, path, strerror(errno));
	pid = fork();
	if (!pid) {
		if (setns(fd, CLONE_NEWNET))
			_exit(report_failed("can't %s: %s: %s", text, path, strerror(errno)));
		_exit(sysfs_set(r, text, dir, "listen", "1"));
	}
	close(fd);
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return report_failed("can't %s: %s", text, strerror(errno));
	return WIFEXITED(status) ? WEXITSTATUS(status) : RNBD_FAILED;
}

/* Set a tenant's network namespace. Done last, since clients can connect afterwards. */
static int set_netns(const struct rnbd *r, const struct rule *have, const struct rule *want)
{
	const char *path = want->values[RULE_NETNS];
	bool listens = have && have->netns;
	char *text, *dir;
	int ret = RNBD_OK;

	if (*path ? listens && is_netns(path, have->netns) : !listens)
		return ret;
	text = doing(r, want, "set netns");
	dir = rule_dir(want);
	if (listens)
		ret = unlisten(r, have, text);
	if (!ret && *path)
		ret = listen_in(r, want, text, dir);
	free(dir);
	free(text);
	return ret;
}

static int listen_all(const struct rnbd *r, const struct rules *have, const struct rules *want)
{
	const struct rule *rule;
	int ret = RNBD_OK, one;

	for (rule = want->all; rule < want->all + want->nr; rule++) {
		if (rule->kind != RULE_TENANT)
			continue;
		one = set_netns(r, rules_find(have, RULE_TENANT, rule->name), rule);
		ret = one ? one : ret;
	}
	return ret;
}

/* End the sessions of all tenants except the first one. */
int rules_unlisten(const struct rnbd *r, const struct rules *have)
{
	const struct rule *rule;
	int ret = RNBD_OK, one;

	for (rule = have->all; rule < have->all + have->nr; rule++) {
		if (rule->kind != RULE_TENANT)
			continue;
		one = unlisten(r, rule, "end its sessions");
		ret = one ? one : ret;
	}
	return ret;
}

static int set_policy(const struct rnbd *r, const struct rules *have, const struct rules *want)
{
	return strcmp(have->policy, want->policy) ?
	       sysfs_set(r, "set the policy", RULES_DIR, "policy", want->policy) : RNBD_OK;
}

/*
 * Change the kernel's rules from @have to @want. Continues after errors; returns an exit code.
 * Hosts are created before the volumes that have links to them, and deleted after them. Tenants
 * begin to listen only if all changes have succeeded.
 */
int rules_apply(const struct rnbd *r, const struct rules *have, const struct rules *want)
{
	enum rule_kind kind;
	int ret = RNBD_OK, one;

	for (kind = 0; kind < NR_RULE_KINDS; kind++) {
		one = apply_kind(r, have, want, kind);
		ret = ret ? ret : one;
	}
	while (kind--) {
		one = delete_kind(r, have, want, kind);
		ret = ret ? ret : one;
	}
	one = set_policy(r, have, want);
	ret = ret ? ret : one;
	/* Incomplete rules may admit clients that the complete rules would reject. */
	return ret ? ret : listen_all(r, have, want);
}
