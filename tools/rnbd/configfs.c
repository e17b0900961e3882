// SPDX-License-Identifier: GPL-2.0
/*
 * The server's rules in the kernel: read, and changed to what they are to be. What doesn't differ
 * is left alone, so whoever uses it doesn't notice.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>

#include "rules.h"

static char *rule_dir(const struct rule *rule)
{
	return xasprintf("%s/%ss/%s", RULES_DIR, rule_kind_name(rule->kind), rule->name);
}

/* Blanks and ends of lines become one blank each, those around it none. */
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

/* Only at its end: there may be any in a path. */
static char *without_end(char *text)
{
	size_t n = strlen(text);

	if (n && text[n - 1] == '\n')
		text[n - 1] = 0;
	return text;
}

/* The hosts that a volume has links to */
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

static void read_rule(const struct rnbd *r, struct rules *rules, enum rule_kind kind,
		      const char *name)
{
	struct rule rule = { .kind = kind, .name = xstrdup(name) };
	char *dir = rule_dir(&rule), *text;
	size_t i;

	for (i = 0; i < NR_RULE_ATTRIBUTES; i++) {
		if (!rule_has(kind, i))
			continue;
		if (i == RULE_HOSTS) {
			rule.values[i] = read_links(r, dir);
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

/* What the kernel has. Without the server there is nothing: RNBD_NO_MODULE, not reported */
int rules_read(const struct rnbd *r, struct rules *rules)
{
	enum rule_kind kind;
	char **names, *config = xasprintf("%s/kernel/config", r->sysfs);
	size_t nr, i;

	memset(rules, 0, sizeof(*rules));
	/* Where no systemd has done that; if it can't be done, the rules aren't there. */
	if (sysfs_exists(r, "module/rnbd_server") && !sysfs_exists(r, RULES_DIR))
		mount("configfs", config, "configfs", 0, NULL);
	free(config);
	if (!sysfs_exists(r, RULES_DIR))
		return RNBD_NO_MODULE;
	rules->policy = sysfs_read(r, RULES_DIR "/policy");
	for (kind = 0; kind < NR_RULE_KINDS; kind++) {
		names = sysfs_list(r, &nr, RULES_DIR "/%ss", rule_kind_name(kind));
		for (i = 0; i < nr; i++) {
			read_rule(r, rules, kind, names[i]);
			free(names[i]);
		}
		free(names);
	}
	rules_fill(rules);
	return RNBD_OK;
}

int report_no_rules(const struct rnbd *r, int code)
{
	return report_as(code, "the rules aren't there: mount configfs on %s/kernel/config",
			 r->sysfs);
}

/* For messages: what is being done, and which line asks for it */
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
	char *target = xasprintf(RULES_DIR "/hosts/%s", host);
	char *path = xasprintf("%s/hosts/%s", dir, host);
	int ret = sysfs_symlink(r, text, target, path);

	free(path);
	free(target);
	free(dir);
	free(text);
	return ret;
}

/* Those that aren't in @keep; whatever their own names are */
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

static bool differs(const struct rule *have, const struct rule *want,
		    enum rule_attribute attribute)
{
	return strcmp(have->values[attribute], want->values[attribute]);
}

/* Everything but the folder. A volume is enabled last, and its path is changed while it isn't. */
static int change_rule(const struct rnbd *r, const struct rule *have, const struct rule *want)
{
	const char *enabled = NULL;
	int ret = RNBD_OK, one;
	size_t i;

	if (want->kind == RULE_VOLUME)
		enabled = have->values[RULE_ENABLE];
	if (enabled && !strcmp(enabled, "1") && differs(have, want, RULE_PATH)) {
		enabled = "0";
		ret = set_value(r, want, RULE_ENABLE, enabled);
	}
	for (i = 0; i < NR_RULE_ATTRIBUTES; i++) {
		if (!rule_has(want->kind, i) || i == RULE_ENABLE || !differs(have, want, i))
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

static int delete_rule(const struct rnbd *r, const struct rule *rule)
{
	char *text = doing(r, rule, "remove the folder"), *dir = rule_dir(rule);
	int ret = RNBD_OK;

	if (rule->kind == RULE_VOLUME)
		ret = remove_links(r, rule, "");
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

/*
 * Make @have, which the kernel has, what @want is. All that can be done is done; returns an exit
 * code. Hosts come before the volumes that have links to them, and go after them.
 */
int rules_apply(const struct rnbd *r, const struct rules *have, const struct rules *want)
{
	int codes[] = {
		apply_kind(r, have, want, RULE_HOST),
		apply_kind(r, have, want, RULE_VOLUME),
		delete_kind(r, have, want, RULE_VOLUME),
		delete_kind(r, have, want, RULE_HOST),
		strcmp(have->policy, want->policy) ?
			sysfs_set(r, "set the policy", RULES_DIR, "policy", want->policy) :
			RNBD_OK,
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(codes); i++)
		if (codes[i])
			return codes[i];
	return RNBD_OK;
}
