// SPDX-License-Identifier: GPL-2.0
/*
 * The server's rules: checks of their attributes, and their text format. Functions that check
 * something return an error message, which the caller frees, or NULL.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "rules.h"

#define BLANKS " \t\r\n"
/* Longest name of a session or device in messages */
#define WIRE_NAME_MAX 254
#define PATH_LENGTH_MAX 4000
#define HOST_PREFIXES 64
#define TENANT_MAX 31

/* These return the canonical value; or NULL, and set @why, if the value is invalid. */
static char *take_netns(const char *value, char **why);
static char *take_keys(const char *value, char **why);
static char *take_pattern(const char *value, char **why);
static char *take_limit(const char *value, char **why);
static char *take_cgroup(const char *value, char **why);
static char *take_prefixes(const char *value, char **why);
static char *take_path(const char *value, char **why);
static char *take_uuid(const char *value, char **why);
static char *take_modes(const char *value, char **why);
static char *take_switch(const char *value, char **why);
static char *take_names(const char *value, char **why);

static const struct {
	const char *name;
	enum rule_kind kind;
	char *(*take)(const char *value, char **why);
	/* Default value; NULL: see rules_fill() */
	const char *otherwise;
} attributes[NR_RULE_ATTRIBUTES] = {
	[RULE_NETNS] = { "netns", RULE_TENANT, take_netns, "" },
	[RULE_SESSIONS] = { "sessions", RULE_HOST, take_pattern, NULL },
	[RULE_ADDRESSES] = { "addresses", RULE_HOST, take_prefixes, "" },
	[RULE_KEYS] = { "keys", RULE_HOST, take_keys, "" },
	[RULE_MAX_SESSIONS] = { "max_sessions", RULE_HOST, take_limit, "0" },
	[RULE_MAX_MEMORY] = { "max_memory", RULE_HOST, take_limit, "0" },
	[RULE_CGROUP] = { "cgroup", RULE_HOST, take_cgroup, "" },
	[RULE_PATH] = { "path", RULE_VOLUME, take_path, NULL },
	[RULE_UUID] = { "uuid", RULE_VOLUME, take_uuid, "" },
	[RULE_MODES] = { "modes", RULE_VOLUME, take_modes, ACCESS_MODES },
	[RULE_EXCLUSIVE] = { "exclusive", RULE_VOLUME, take_switch, "0" },
	[RULE_ANY_HOST] = { "allow_any_host", RULE_VOLUME, take_switch, "0" },
	[RULE_HOSTS] = { "hosts", RULE_VOLUME, take_names, "" },
	[RULE_ENABLE] = { "enable", RULE_VOLUME, take_switch, "1" },
};

const char *rule_kind_name(enum rule_kind kind)
{
	static const char *const names[] = { "tenant", "host", "volume" };

	return names[kind];
}

const char *rule_attribute_name(enum rule_attribute attribute)
{
	return attributes[attribute].name;
}

bool rule_has(enum rule_kind kind, enum rule_attribute attribute)
{
	return attributes[attribute].kind == kind;
}

static bool is_name(const char *text)
{
	return is_word(text) && strlen(text) <= WIRE_NAME_MAX;
}

/* Check for an ASCII letter, regardless of the locale. */
static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Check whether the kernel accepts the first @len characters as the name of a tenant. */
static bool is_tenant(const char *name, size_t len)
{
	size_t i;

	if (!len || len > TENANT_MAX || !is_letter(*name))
		return false;
	for (i = 0; i < len; i++)
		if (!is_letter(name[i]) && !strchr("0123456789-_", name[i]))
			return false;
	return true;
}

static char *check_name(enum rule_kind kind, const char *name)
{
	const char *own = name;

	if (kind == RULE_TENANT && is_tenant(name, strlen(name)))
		return NULL;
	if (kind == RULE_TENANT)
		return xasprintf("'%s' can't be a tenant: a letter, up to %d letters, digits, - _",
				 name, TENANT_MAX - 1);
	if (is_tenant(name, strcspn(name, "/")) && strchr(name, '/'))
		own = strchr(name, '/') + 1;
	if (is_name(own) && !strpbrk(own, "/]") && *own != '.')
		return NULL;
	return xasprintf("'%s' can't be the name of a %s: %d printable characters, no blank / ] .",
			 name, rule_kind_name(kind), WIRE_NAME_MAX);
}

static void add_word(char **words, const char *word)
{
	char *longer = **words ? xasprintf("%s %s", *words, word) : xstrdup(word);

	free(*words);
	*words = longer;
}

/* Convert each word of @value by @take. The results are separated by one blank. */
static char *take_words(const char *value, char *(*take)(const char *word, char **why),
			char **why)
{
	char *copy = xstrdup(value), *next = copy, *words = xstrdup(""), *word, *taken;

	while (words && (word = strsep(&next, BLANKS))) {
		if (!*word)
			continue;
		taken = take(word, why);
		if (taken) {
			add_word(&words, taken);
		} else {
			free(words);
			words = NULL;
		}
		free(taken);
	}
	free(copy);
	return words;
}

static char *take_pattern(const char *value, char **why)
{
	if (is_name(value))
		return xstrdup(value);
	*why = xasprintf("'%s' is no pattern: at most %d printable characters, no blank", value,
			 WIRE_NAME_MAX);
	return NULL;
}

/* Format a GID in the kernel's format. */
static char *gid_text(const unsigned char *raw)
{
	char *text = xstrdup("gid"), *longer;
	size_t i;

	for (i = 0; i < 8; i++) {
		longer = xasprintf("%s:%02x%02x", text, raw[2 * i], raw[2 * i + 1]);
		free(text);
		text = longer;
	}
	return text;
}

/* Convert an address prefix to the kernel's format. NULL if it is invalid. */
static char *prefix_text(const char *text, const char *bits)
{
	char *whole = parse_address(text), *numbered, *scope, *address, *prefix = NULL;
	char canonical[INET6_ADDRSTRLEN];
	unsigned char raw[16];
	long long n;
	int family;

	if (!whole)
		return NULL;
	numbered = number_scopes(whole);
	scope = numbered + strcspn(numbered, "%");
	address = xasprintf("%.*s", (int)(scope - strchr(numbered, ':') - 1),
			    strchr(numbered, ':') + 1);
	family = strchr(address, ':') ? AF_INET6 : AF_INET;
	n = family == AF_INET6 ? 128 : 32;
	if (inet_pton(family, address, raw) != 1 || (bits && !parse_number(bits, 0, n, &n))) {
		prefix = NULL;
	} else if (*numbered == 'i') {
		inet_ntop(family, raw, canonical, sizeof(canonical));
		prefix = xasprintf("ip:%s%s/%lld", canonical, scope, n);
	} else if (family == AF_INET6) {
		free(address);
		address = gid_text(raw);
		prefix = xasprintf("%s/%lld", address, n);
	}
	free(address);
	free(numbered);
	free(whole);
	return prefix;
}

static char *take_prefix(const char *word, char **why)
{
	char *copy = xstrdup(word), *bits = strchr(copy, '/'), *prefix;

	if (bits)
		*bits++ = 0;
	prefix = prefix_text(copy, bits);
	if (!prefix)
		*why = xasprintf("'%s' is no address: ip:ADDRESS[/BITS] or gid:GID[/BITS]", word);
	free(copy);
	return prefix;
}

static char *take_prefixes(const char *value, char **why)
{
	char *words = take_words(value, take_prefix, why);
	size_t nr = 1;
	char *c;

	for (c = words; c && *c; c++)
		nr += *c == ' ';
	if (nr <= HOST_PREFIXES)
		return words;
	*why = xasprintf("more than %d addresses: write shorter prefixes, or make one more host",
			 HOST_PREFIXES);
	free(words);
	return NULL;
}

static char *take_key(const char *word, char **why)
{
	if (is_name(word) && strchr(word, ':'))
		return xstrdup(word);
	*why = xasprintf("'%s' is no name of a key: there is a : in it, as in rnbd:web", word);
	return NULL;
}

static char *take_keys(const char *value, char **why)
{
	char *words = take_words(value, take_key, why), *second = words ? strchr(words, ' ') : NULL;

	if (!second || !strchr(second + 1, ' '))
		return words;
	*why = xstrdup("more than two keys");
	free(words);
	return NULL;
}

static char *take_netns(const char *value, char **why)
{
	if (!*value || (*value == '/' && is_word(value) && strlen(value) <= PATH_LENGTH_MAX))
		return xstrdup(value);
	*why = xasprintf("'%s' is no network namespace: a path, as in /run/netns/blue", value);
	return NULL;
}

static char *take_limit(const char *value, char **why)
{
	long long n;

	if (parse_number(value, 0, UINT32_MAX, &n))
		return xasprintf("%lld", n);
	*why = xasprintf("'%s' is no limit: a number, 0 for none", value);
	return NULL;
}

static char *take_cgroup(const char *value, char **why)
{
	if (!*value || (*value == '/' && is_word(value) && strlen(value) <= PATH_LENGTH_MAX))
		return xstrdup(value);
	*why = xasprintf("'%s' is no cgroup: its path below /sys/fs/cgroup, from / on", value);
	return NULL;
}

/* The kernel strips blanks at the end, and would store another path. */
static char *take_path(const char *value, char **why)
{
	size_t len = strlen(value);

	if (*value == '/' && len <= PATH_LENGTH_MAX && !strpbrk(value, "\n") &&
	    !isspace((unsigned char)value[len - 1]))
		return xstrdup(value);
	*why = xasprintf("'%s' is no path of a disk or file: it begins with /, no blank at the end",
			 value);
	return NULL;
}

/* Check for 32 hexadecimal digits, not all 0, with hyphens in between. */
static bool is_uuid(const char *value)
{
	static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
	size_t i;

	for (i = 0; value[i] && form[i]; i++)
		if (form[i] == 'x' ? !isxdigit((unsigned char)value[i]) : value[i] != '-')
			return false;
	return value[i] == form[i] && strspn(value, "0-") < i;
}

/* Empty: the kernel's random one. The kernel prints lower case. */
static char *take_uuid(const char *value, char **why)
{
	char *uuid, *c;

	if (*value && !is_uuid(value)) {
		*why = xasprintf("'%s' is no UUID, as uuidgen prints them", value);
		return NULL;
	}
	uuid = xstrdup(value);
	for (c = uuid; *c; c++)
		*c = tolower((unsigned char)*c);
	return uuid;
}

static char *take_mode(const char *word, char **why)
{
	if (has_word(ACCESS_MODES, word))
		return xstrdup(word);
	*why = xasprintf("modes: '%s': there are " ACCESS_MODES, word);
	return NULL;
}

/* Sort access modes in the kernel's order. */
static char *take_modes(const char *value, char **why)
{
	static const char *const modes[] = { "ro", "rw", "migration", "handover" };
	char *words = take_words(value, take_mode, why), *sorted;
	size_t i;

	if (!words)
		return NULL;
	sorted = xstrdup("");
	for (i = 0; i < ARRAY_SIZE(modes); i++)
		if (has_word(words, modes[i]))
			add_word(&sorted, modes[i]);
	free(words);
	return sorted;
}

static char *take_switch(const char *value, char **why)
{
	static const char *const words[] = { "0", "1", "no", "yes", "n", "y", "N", "Y" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(words); i++)
		if (!strcmp(value, words[i]))
			return xstrdup(i % 2 ? "1" : "0");
	*why = xasprintf("'%s' is neither 0 nor 1", value);
	return NULL;
}

static char *take_name(const char *word, char **why)
{
	*why = strchr(word, '/') ? xasprintf("'%s': hosts are the volume's tenant's", word) :
				   check_name(RULE_HOST, word);
	return *why ? NULL : xstrdup(word);
}

static char *take_names(const char *value, char **why)
{
	return take_words(value, take_name, why);
}

/* Set an attribute by its name. It must not have been set before. */
char *rule_set(struct rule *rule, const char *name, const char *value)
{
	char *why = NULL;
	size_t i = 0;

	while (i < NR_RULE_ATTRIBUTES &&
	       (!rule_has(rule->kind, i) || strcmp(attributes[i].name, name)))
		i++;
	if (i == NR_RULE_ATTRIBUTES)
		return xasprintf("a %s has no '%s'", rule_kind_name(rule->kind), name);
	if (rule->values[i])
		return xasprintf("%s is given twice", name);
	rule->values[i] = attributes[i].take(value, &why);
	return why;
}

char *rules_add(struct rules *rules, enum rule_kind kind, const char *name, struct rule **rule)
{
	char *why = check_name(kind, name);

	if (why)
		return why;
	if (rules_find(rules, kind, name))
		return xasprintf("there is a %s %s already", rule_kind_name(kind), name);
	rules->all = xrealloc(rules->all, rules->nr + 1, sizeof(*rules->all));
	*rule = &rules->all[rules->nr++];
	memset(*rule, 0, sizeof(**rule));
	(*rule)->kind = kind;
	(*rule)->name = xstrdup(name);
	return NULL;
}

char *rules_set_policy(struct rules *rules, const char *policy)
{
	if (strcmp(policy, "open") && strcmp(policy, "listed"))
		return xasprintf("'%s' is no policy: there are open and listed", policy);
	if (rules->policy)
		return xstrdup("policy is given twice");
	rules->policy = xstrdup(policy);
	return NULL;
}

struct rule *rules_find(const struct rules *rules, enum rule_kind kind, const char *name)
{
	size_t i;

	for (i = 0; i < rules->nr; i++)
		if (rules->all[i].kind == kind && !strcmp(rules->all[i].name, name))
			return &rules->all[i];
	return NULL;
}

/* Get the name of a rule's tenant, which the caller frees; NULL for the first tenant. */
char *rule_tenant(const struct rule *rule)
{
	size_t n = strcspn(rule->name, "/");

	return rule->name[n] ? xasprintf("%.*s", (int)n, rule->name) : NULL;
}

/* Get the name of a volume's host, preceded by the tenant's name. The caller frees it. */
char *rule_host(const struct rule *volume, const char *host)
{
	size_t n = strcspn(volume->name, "/");

	return volume->name[n] ? xasprintf("%.*s/%s", (int)n, volume->name, host) : xstrdup(host);
}

/* Check that a volume's hosts exist. */
static char *check_hosts(const struct rules *rules, const struct rule *volume)
{
	char *copy = xstrdup(volume->values[RULE_HOSTS]), *next = copy, *host, *why = NULL, *whole;

	while (!why && (host = strsep(&next, " "))) {
		whole = rule_host(volume, host);
		if (*host && !rules_find(rules, RULE_HOST, whole))
			why = xasprintf("volume %s: there is no host %s", volume->name, whole);
		free(whole);
	}
	free(copy);
	return why;
}

/* Check that a rule's tenant exists. */
static char *check_tenant(const struct rules *rules, const struct rule *rule)
{
	char *tenant = rule_tenant(rule), *why = NULL;

	if (tenant && !rules_find(rules, RULE_TENANT, tenant))
		why = xasprintf("%s %s: there is no tenant %s", rule_kind_name(rule->kind),
				rule->name, tenant);
	free(tenant);
	return why;
}

/* Check the rules as a whole. @wrong is set to the rule with the error. */
char *rules_check(const struct rules *rules, const struct rule **wrong)
{
	const struct rule *rule;
	char *why = NULL;

	for (rule = rules->all; !why && rule < rules->all + rules->nr; rule++) {
		*wrong = rule;
		why = check_tenant(rules, rule);
		if (why || rule->kind != RULE_VOLUME)
			continue;
		if (!rule->values[RULE_PATH])
			why = xasprintf("volume %s has no path", rule->name);
		else if (rule->values[RULE_HOSTS])
			why = check_hosts(rules, rule);
	}
	return why;
}

/* Get a rule's name without the tenant's name. */
static const char *own_name(const struct rule *rule)
{
	const char *slash = strchr(rule->name, '/');

	return slash ? slash + 1 : rule->name;
}

/* Set attributes that are not set to their defaults. */
void rules_fill(struct rules *rules)
{
	struct rule *rule;
	size_t i;

	if (!rules->policy)
		rules->policy = xstrdup("open");
	for (rule = rules->all; rule < rules->all + rules->nr; rule++) {
		for (i = 0; i < NR_RULE_ATTRIBUTES; i++) {
			if (!rule_has(rule->kind, i) || rule->values[i])
				continue;
			if (attributes[i].otherwise)
				rule->values[i] = xstrdup(attributes[i].otherwise);
			else
				rule->values[i] = xstrdup(i == RULE_SESSIONS ? own_name(rule) : "");
		}
	}
}

void rules_free(struct rules *rules)
{
	size_t i, j;

	for (i = 0; i < rules->nr; i++) {
		free(rules->all[i].name);
		for (j = 0; j < NR_RULE_ATTRIBUTES; j++)
			free(rules->all[i].values[j]);
	}
	free(rules->all);
	free(rules->policy);
	memset(rules, 0, sizeof(*rules));
}

/* Interfaces of tenants keep numbers: in another network namespace, their names are unknown. */
static void print_addresses(FILE *to, const struct rule *rule)
{
	const char *value = rule->values[RULE_ADDRESSES];
	char *named = strchr(rule->name, '/') ? xstrdup(value) : name_scopes(value);

	fprintf(to, "%s = %s\n", attributes[RULE_ADDRESSES].name, named);
	free(named);
}

static void print_rule(FILE *to, const struct rule *rule)
{
	const char *otherwise;
	size_t i;

	fprintf(to, "\n[%s %s]\n", rule_kind_name(rule->kind), rule->name);
	for (i = 0; i < NR_RULE_ATTRIBUTES; i++) {
		otherwise = attributes[i].otherwise;
		if (!rule->values[i] || (otherwise && !strcmp(rule->values[i], otherwise)))
			continue;
		if (i == RULE_ADDRESSES)
			print_addresses(to, rule);
		else
			fprintf(to, "%s = %s\n", attributes[i].name, rule->values[i]);
	}
}

/* Print rules in the format of the configuration file. */
void rules_print(FILE *to, const struct rules *rules)
{
	enum rule_kind kind;
	size_t i;

	fprintf(to, "policy = %s\n", rules->policy);
	for (kind = 0; kind < NR_RULE_KINDS; kind++)
		for (i = 0; i < rules->nr; i++)
			if (rules->all[i].kind == kind)
				print_rule(to, &rules->all[i]);
}
