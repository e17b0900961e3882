// SPDX-License-Identifier: GPL-2.0
/*
 * The options of map_device, as NAME=VALUE in the table of volumes and on the command line. Options
 * from FIRST_SETTING on are also attributes of the session.
 */
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "volumes.h"

/* A misspelled name may differ from the meant one in a third of its characters. */
#define LETTERS_PER_MISTAKE 3

/* The value is one of @words, or a number from @min to @max, or text. */
static const struct option_kind {
	const char *name;
	const char *words;
	long long min, max;
	/* Any text is valid. */
	bool text;
} kinds[NR_VOLUME_OPTIONS] = {
	[ACCESS_MODE] = { "access_mode", ACCESS_MODES },
	[PATHS] = { "path" },
	[DEST_PORT] = { "dest_port", NULL, 1, 65535 },
	[NR_QUEUES] = { "nr_queues", NULL, 1, 64 },
	[NR_POLL_QUEUES] = { "nr_poll_queues", NULL, -1, 64 },
	[QUEUE_DEPTH] = { "queue_depth", NULL, 1, 4096 },
	[KEY] = { .name = "key", .text = true },
	[MP_POLICY] = { "mp_policy", "round-robin min-inflight min-latency rr mi ml RR MI ML" },
	[SETTING_MAX_RECONNECTS] = { "max_reconnect_attempts", NULL, -1, INT_MAX },
	[SETTING_RECONNECT_DELAY] = { "reconnect_delay_ms", NULL, 1, 3600000 },
	[SETTING_RECONNECT_DELAY_MAX] = { "reconnect_delay_max_ms", NULL, 1, 3600000 },
	[SETTING_HB_INTERVAL] = { "hb_interval_ms", NULL, 10, 3600000 },
	[SETTING_HB_MAX_MISSED] = { "hb_max_missed", NULL, 1, 1000 },
	[SETTING_FAILOVER_TIMEOUT] = { "failover_timeout", NULL, -1, 1000000 },
	[SETTING_UNFENCED_DELAY] = { "unfenced_delay_ms", NULL, 0, 3600000 },
};

const char *volume_option_name(enum volume_option option)
{
	return kinds[option].name;
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/*
 * Count the characters to insert, delete or replace to turn one word into the other. @row[j] is the
 * distance of the part of @a read so far and the first j characters of @b.
 */
static size_t distance(const char *a, const char *b)
{
	size_t n = strlen(b), *row = xcalloc(n + 1, sizeof(*row)), before, above, j;

	for (j = 0; j <= n; j++)
		row[j] = j;
	for (; *a; a++) {
		before = row[0]++;
		for (j = 0; j < n; j++) {
			above = row[j + 1];
			row[j + 1] = least(before + (*a != b[j]), least(above, row[j]) + 1);
			before = above;
		}
	}
	before = row[n];
	free(row);
	return before;
}

/* Check whether @word is close to @name, closer than *@nearest, which is updated. */
static bool is_closer(const char *word, const char *name, size_t *nearest)
{
	size_t d = distance(word, name);

	if (d >= *nearest || d > strlen(name) / LETTERS_PER_MISTAKE)
		return false;
	*nearest = d;
	return true;
}

/*
 * Find the word that a misspelled word probably means. @words are separated by single blanks.
 * Returns NULL if none is close.
 */
char *closest_word(const char *words, const char *word)
{
	char *copy = xstrdup(words), *rest = copy, *name, *found = NULL;
	size_t nearest = SIZE_MAX;

	while ((name = strsep(&rest, " ")))
		if (is_closer(word, name, &nearest))
			found = name;
	found = found ? xstrdup(found) : NULL;
	free(copy);
	return found;
}

static enum volume_option find_option(const char *name)
{
	size_t i;

	/* The attribute's name in the in-tree driver */
	if (!strcmp(name, "mpath_policy"))
		return MP_POLICY;
	for (i = 0; i < NR_VOLUME_OPTIONS; i++)
		if (i != PATHS && !strcmp(kinds[i].name, name))
			return i;
	return NR_VOLUME_OPTIONS;
}

bool is_option(const char *name)
{
	return find_option(name) != NR_VOLUME_OPTIONS;
}

/* The names of all options from @first on, separated by blanks */
static char *names_from(enum volume_option first)
{
	char *names = xstrdup(""), *longer;
	size_t i;

	for (i = first; i < NR_VOLUME_OPTIONS; i++) {
		if (i == PATHS)
			continue;
		longer = xasprintf("%s%s%s", names, *names ? " " : "", kinds[i].name);
		free(names);
		names = longer;
	}
	return names;
}

/* Describe why @name is not the name of an option from @first on. */
static char *unknown_option(const char *word, const char *name, enum volume_option first)
{
	char *names = names_from(first), *closest = closest_word(names, name), *text;

	if (!first && !strcmp(name, kinds[PATHS].name))
		text = xasprintf("'%s': paths are given without path=", word);
	else if (find_option(name) < first)
		text = xasprintf("%s can't be changed later; it is an option of rnbd map", name);
	else if (closest)
		text = xasprintf("no option '%s'; did you mean %s?", word, closest);
	else
		text = xasprintf("no option '%s'; see: rnbd help %s", word,
				 first ? "session set" : "map");
	free(closest);
	free(names);
	return text;
}

/* Check a value. Returns a description of the error, or NULL. */
static char *check_value(const struct option_kind *kind, const char *value)
{
	long long n;

	if (kind->text)
		return is_word(value) ? NULL : xasprintf("%s= has no value", kind->name);
	if (kind->words && !has_word(kind->words, value))
		return xasprintf("%s=%s: it is one of %s", kind->name, value, kind->words);
	if (!kind->words && !parse_number(value, kind->min, kind->max, &n))
		return xasprintf("%s=%s: not a number from %lld to %lld", kind->name, value,
				 kind->min, kind->max);
	return NULL;
}

/* Get the long form of a valid value: the policies have short ones, too. */
static const char *long_form(enum volume_option option, const char *value)
{
	static const char *const forms[][2] = {
		{ "rr", "round-robin" }, { "mi", "min-inflight" }, { "ml", "min-latency" },
	};
	size_t i;

	for (i = 0; option == MP_POLICY && i < ARRAY_SIZE(forms); i++)
		if (!strcasecmp(value, forms[i][0]))
			return forms[i][1];
	return value;
}

/*
 * Parse NAME=VALUE, where NAME is an option from @first on. Returns NULL, or a description of the
 * error, which the caller frees. @value points into @word, or to the long form of that value.
 */
char *option_parse(const char *word, enum volume_option first, enum volume_option *option,
		   const char **value)
{
	size_t n = strcspn(word, "=");
	char *name = xasprintf("%.*s", (int)n, word), *wrong;

	*option = find_option(name);
	if (*option < first || *option == NR_VOLUME_OPTIONS || *option == PATHS) {
		wrong = unknown_option(word, name, first);
	} else if (!word[n]) {
		wrong = xasprintf("%s takes a value: %s=VALUE", name, name);
	} else {
		wrong = check_value(&kinds[*option], word + n + 1);
		*value = long_form(*option, word + n + 1);
	}
	free(name);
	return wrong;
}

/* Print the options from @first on, up to but not including @end, with their values. */
void options_print(enum volume_option first, enum volume_option end)
{
	const struct option_kind *kind;
	size_t i;

	for (i = first; i < end; i++) {
		kind = &kinds[i];
		if (i == PATHS)
			continue;
		if (kind->text)
			printf("  %s=NAME\n", kind->name);
		else if (kind->words)
			printf("  %s=  one of: %s\n", kind->name, kind->words);
		else
			printf("  %s=  %lld to %lld\n", kind->name, kind->min, kind->max);
	}
}
