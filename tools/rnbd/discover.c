// SPDX-License-Identifier: GPL-2.0
/*
 * rnbd discover, rnbd map --all: the volumes that a server lets this client map
 *
 * The kernel lists them: the options of a session are written to /dev/rnbd-discover, and the list
 * is read from the same open file, a line for each volume: NAME SECTORS MODE[,MODE...] UUID.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "volumes.h"

#define DISCOVER "rnbd-discover"

static const struct column columns[] = {
	{ "name", "VOLUME", TEXT }, { "size", "SIZE", SIZE }, { "modes", "MODES", TEXT },
	{ "uuid", "UUID", TEXT },
};

/* A list of words, each from malloc() */
struct words {
	char **all;
	int nr;
};

/* A server, from the command line */
struct target {
	/* Name of the session */
	char *session;
	/* Paths, and options of map, as they were given */
	struct words path_words, words;
	/* Access mode that was given; NULL: none */
	const char *mode;
	/* Parts of the line for the kernel; NULL: empty. An open session needs no path. */
	char *paths, *line;
};

/* A volume that the server has listed */
struct listed {
	char *name, *modes, *uuid;
	/* -1: unknown */
	long long size;
};

struct list {
	struct listed *all;
	size_t nr;
};

static void words_add(struct words *words, char *word)
{
	words->all = xrealloc(words->all, words->nr + 1, sizeof(*words->all));
	words->all[words->nr++] = word;
}

static void words_free(struct words *words)
{
	while (words->nr)
		free(words->all[--words->nr]);
	free(words->all);
	words->all = NULL;
}

/* Split a text at its commas. */
static void words_split(struct words *words, const char *text)
{
	char *copy = xstrdup(text), *next = copy, *word;

	while ((word = strsep(&next, ",")))
		words_add(words, xstrdup(word));
	free(copy);
}

static void target_free(struct target *target)
{
	words_free(&target->path_words);
	words_free(&target->words);
	free(target->session);
	free(target->paths);
	free(target->line);
}

/* Add a path for each server. A single local address is that of all paths. */
static int add_paths(struct target *target, const struct words *servers,
		     const struct words *locals)
{
	char *text, *path;
	int i, ret = RNBD_OK;

	if (locals->nr > 1 && locals->nr != servers->nr)
		return report_usage("from: one address, or one for each address of the server");
	for (i = 0; i < servers->nr && !ret; i++) {
		text = locals->nr ? xasprintf("%s@%s", locals->all[locals->nr > 1 ? i : 0],
					      servers->all[i]) : xstrdup(servers->all[i]);
		words_add(&target->path_words, text);
		ret = resolve_path(text, &path);
		if (ret)
			return ret;
		add_pair(&target->paths, "path", path);
		free(path);
	}
	return ret;
}

/* Check whether a session is open. */
static bool is_open(const struct rnbd *r, const char *name)
{
	struct model model;
	bool open = false;
	size_t i;

	model_read(r, &model);
	for (i = 0; i < model.nr_sessions && !open; i++)
		open = model.sessions[i].side == CLIENT && !strcmp(model.sessions[i].name, name);
	model_free(&model);
	return open;
}

/* Parse a word after the addresses. @mapping: options of devices and settings are valid, too. */
static int take_word(struct target *target, const char *word, bool mapping)
{
	enum volume_option option;
	const char *value;
	char *wrong;

	if (starts_with(word, "session=")) {
		free(target->session);
		target->session = xstrdup(word + strlen("session="));
		if (!is_word(target->session) || strpbrk(target->session, "/."))
			return report_usage("'%s' can't be the name of a session", target->session);
		return RNBD_OK;
	}
	if (mapping && has_word(ACCESS_MODES, word)) {
		target->mode = word;
		return RNBD_OK;
	}
	wrong = option_parse(word, 0, &option, &value);
	if (wrong)
		return report_error(wrong);
	if (option == ACCESS_MODE && mapping) {
		target->mode = value;
		return RNBD_OK;
	}
	if (!mapping && (option < FIRST_SESSION_OPTION || option >= FIRST_SETTING))
		return report_usage("%s: discover takes no such option", word);
	words_add(&target->words, xstrdup(word));
	if (option < FIRST_SETTING)
		add_pair(&target->line, volume_option_name(option), value);
	return RNBD_OK;
}

/*
 * Parse the addresses: SERVER[,SERVER...] [from LOCAL[,LOCAL...]]. SERVER may be the name of an
 * open session instead. Sets *@used to the number of words.
 */
static int take_server(const struct rnbd *r, struct target *target, int argc, char **argv,
		       int *used)
{
	struct words servers = { 0 }, locals = { 0 };
	int ret;

	*used = 1;
	if (is_open(r, argv[0])) {
		target->session = xstrdup(argv[0]);
		return RNBD_OK;
	}
	words_split(&servers, argv[0]);
	if (argc > 2 && !strcmp(argv[1], "from")) {
		words_split(&locals, argv[2]);
		*used = 3;
	}
	ret = add_paths(target, &servers, &locals);
	words_free(&servers);
	words_free(&locals);
	return ret;
}

/* Choose the session, unless one was named. An open session keeps the paths that it has. */
static int choose_session(const struct rnbd *r, struct target *target)
{
	char *path;
	bool joined;
	int ret;

	if (target->session)
		return RNBD_OK;
	ret = resolve_path(target->path_words.all[0], &path);
	if (ret)
		return ret;
	ret = session_for(r, target->path_words.all[0], path, &target->session, &joined);
	free(path);
	if (!ret && joined && is_open(r, target->session)) {
		free(target->paths);
		target->paths = NULL;
		words_free(&target->path_words);
	}
	return ret;
}

/* Parse SERVER[,SERVER...] [from LOCAL[,LOCAL...]] WORD... The caller always frees @target. */
static int target_parse(const struct rnbd *r, struct target *target, int argc, char **argv,
			bool mapping)
{
	int i, ret;

	memset(target, 0, sizeof(*target));
	ret = take_server(r, target, argc, argv, &i);
	for (; i < argc && !ret; i++)
		ret = take_word(target, argv[i], mapping);
	if (!ret)
		ret = choose_session(r, target);
	if (!ret)
		add_pair(&target->line, "sessname", target->session);
	return ret;
}

static void list_free(struct list *list)
{
	size_t i;

	for (i = 0; i < list->nr; i++) {
		free(list->all[i].name);
		free(list->all[i].modes);
		free(list->all[i].uuid);
	}
	free(list->all);
}

/* Parse a line of the kernel's list. Later words are those of newer modules. */
static void list_add(struct list *list, char *line)
{
	char *name = strsep(&line, " "), *size = strsep(&line, " ");
	char *modes = strsep(&line, " "), *uuid = strsep(&line, " ");
	long long sectors = 0;
	struct listed *listed;

	if (!*name || !uuid)
		return;
	parse_number(size, 0, LLONG_MAX / SECTOR, &sectors);
	list->all = xrealloc(list->all, list->nr + 1, sizeof(*list->all));
	listed = &list->all[list->nr++];
	listed->name = text_clean(xstrdup(name));
	listed->modes = text_clean(xstrdup(strcmp(modes, "-") ? modes : ""));
	listed->uuid = strcmp(uuid, "-") ? text_clean(xstrdup(uuid)) : NULL;
	listed->size = sectors ? sectors * SECTOR : -1;
}

/* Write the line, and read the answer. Returns an errno. */
static int ask(int fd, const char *line, struct list *list)
{
	char *text = NULL;
	size_t room = 0;
	FILE *from;
	ssize_t n;
	int err;

	if (write(fd, line, strlen(line)) < 0)
		return errno;
	from = fdopen(dup(fd), "r");
	if (!from)
		return errno;
	while ((n = getline(&text, &room, from)) >= 0) {
		text[strcspn(text, "\n")] = 0;
		list_add(list, text);
	}
	err = ferror(from) ? errno : 0;
	free(text);
	fclose(from);
	return err;
}

/* Get the volumes of a server. The caller always frees @list. */
static int discover(const struct rnbd *r, const struct target *target, struct list *list)
{
	char *node = xasprintf("%s/" DISCOVER, r->dev);
	char *doing = xasprintf("list the volumes of session %s", target->session);
	char *line = target->paths ? xasprintf("%s %s", target->line, target->paths) :
				     xstrdup(target->line);
	struct kmsg kmsg;
	int fd, err, ret = RNBD_OK;

	memset(list, 0, sizeof(*list));
	if (r->verbose) {
		fputs("echo ", stderr);
		print_quoted(stderr, line);
		fprintf(stderr, " 1<>%s >&1; cat <&1\n", node);
	}
	kmsg_open(r, &kmsg);
	fd = open(node, O_RDWR | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT && sysfs_exists(r, CLIENT_CTL)) {
		ret = report_failed("rnbd_client can't list volumes: there is no %s", node);
	} else if (fd < 0 && errno == ENOENT) {
		ret = report_no_module(r, CLIENT);
	} else {
		progress_begin(doing, 0);
		err = fd < 0 ? errno : ask(fd, line, list);
		progress_end();
		if (err)
			ret = report_write(r, &kmsg, doing, node, err);
	}
	kmsg_close(&kmsg);
	if (fd >= 0)
		close(fd);
	free(line);
	free(doing);
	free(node);
	return ret;
}

static struct json_object *modes_json(const struct rnbd *r, const char *modes)
{
	struct json_object *array;
	struct words words = { 0 };
	int i;

	if (!r->json)
		return json_new_string(*modes ? modes : "-");
	array = json_new_array();
	words_split(&words, modes);
	for (i = 0; i < words.nr; i++)
		if (*words.all[i])
			json_append(array, json_new_string(words.all[i]));
	words_free(&words);
	return array;
}

static struct json_object *list_json(const struct rnbd *r, const struct list *list)
{
	struct json_object *rows = json_new_array(), *row;
	const struct listed *listed;

	for (listed = list->all; listed < list->all + list->nr; listed++) {
		row = json_new();
		json_add_string(row, "name", listed->name);
		if (listed->size < 0)
			json_add(row, "size", NULL);
		else
			json_add_int(row, "size", listed->size);
		json_add(row, "modes", modes_json(r, listed->modes));
		json_add_string(row, "uuid", listed->uuid);
		json_append(rows, row);
	}
	return rows;
}

/* Arguments: SERVER[,SERVER...] [from LOCAL[,LOCAL...]] [session=NAME] [NAME=VALUE...] */
int cmd_discover(struct rnbd *r, int argc, char **argv)
{
	struct list list = { 0 };
	struct json_object *rows;
	struct target target;
	int ret;

	ret = target_parse(r, &target, argc, argv, false);
	if (!ret)
		ret = discover(r, &target, &list);
	if (!ret) {
		rows = list_json(r, &list);
		if (r->json)
			json_print(rows);
		else
			print_list(r, rows, columns, ARRAY_SIZE(columns), "volumes");
		json_object_put(rows);
	}
	list_free(&list);
	target_free(&target);
	return ret;
}

/* Choose the access mode: the one that was given, or rw, or ro if the volume allows only that. */
static const char *choose_mode(const struct target *target, const struct listed *listed)
{
	if (target->mode)
		return target->mode;
	return has_part(listed->modes, "ro", ',') && !has_part(listed->modes, "rw", ',') ?
	       "ro" : "rw";
}

static char **copy_words(char **to, const struct words *words)
{
	int i;

	for (i = 0; i < words->nr; i++)
		*to++ = words->all[i];
	return to;
}

static int map_listed(const struct rnbd *r, const struct target *target,
		      const struct listed *listed, struct json_object *rows)
{
	int argc = 4 + target->path_words.nr + target->words.nr, ret;
	char **argv = xcalloc(argc, sizeof(*argv));

	argv[0] = listed->name;
	argv[1] = (char *)"from";
	argv[2] = target->session;
	argv[3] = (char *)choose_mode(target, listed);
	copy_words(copy_words(argv + 4, &target->path_words), &target->words);
	ret = map_words(r, argc, argv);
	if (!ret && !r->dry_run)
		ret = report_mapped(r, listed->name, target->session, rows);
	free(argv);
	return ret;
}

/*
 * Map all volumes of a server. Continues after failures; returns the exit code of the first one.
 * Volumes that are mapped already are reported like new ones.
 */
int map_all(const struct rnbd *r, int argc, char **argv)
{
	struct json_object *rows = json_new_array();
	struct list list = { 0 };
	struct target target;
	int ret, one;
	size_t i;

	ret = target_parse(r, &target, argc, argv, true);
	if (!ret && r->save_name)
		ret = report_usage("--save takes no name with --all");
	if (!ret)
		ret = discover(r, &target, &list);
	if (!ret && !list.nr)
		ret = report_not_found("the server has no volume for this client");
	for (i = 0; i < list.nr; i++) {
		one = map_listed(r, &target, &list.all[i], rows);
		ret = ret ? ret : one;
	}
	if (r->json && list.nr)
		json_print(rows);
	json_object_put(rows);
	list_free(&list);
	target_free(&target);
	return ret;
}
